"""The path of the file that a mesh name of a robot file refers to, and the refusal of names that may not be read.

A robot file comes from a stranger, so a name in it opens nothing outside the allowed roots: the model's folder, its
package root, every package given, and --mesh-root, each after symbolic links. No file is opened here: path, type and
extension are checked, and the content is read by the caller.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import islice
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from artsim.sim.foundation.dataclass import dataclass

EXTENSIONS = frozenset((".stl", ".obj", ".dae", ".ply", ".glb", ".gltf", ".msh"))
MAX_URI = 4096  # characters, as many as Linux allows
MAX_FOLDERS = 1000  # entries of a folder that are searched for packages
MAX_WALK = 8  # folders above the model that are searched for package.xml
GAZEBO_PATHS = ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "GAZEBO_MODEL_PATH", "SDF_PATH")  # of models
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=//)")


class AssetRefusedError(Exception):
    """A name that may not be read: outside the roots, on the net, a pipe, an unknown format. The text is the reason."""


class AssetOutsideError(AssetRefusedError):
    """A name outside the allowed roots; `why` is the reason in words that are the same for all files of a folder."""

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why or message


class AssetMissingError(Exception):
    """A file that does not exist: the text lists the paths tried; `why` is the same for all meshes of a folder."""

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why or message


@dataclass(slots=True)
class Assets:
    """Resolver of the mesh names of one model. `folder` is the model's, None for a model that is not in a file."""

    folder: Path | None
    packages: Mapping[str, Path] = field(default_factory=dict)
    mesh_root: Path | None = None
    mesh_dir: str = ""  # of the <mujoco> extension, relative to the model
    strip_path: bool = False  # of the <mujoco> extension: only the file's name counts
    found_packages: dict[str, Path | None] = field(default_factory=dict)
    base_roots: list[Path] | None = None

    def resolve(self, uri: str) -> Path:
        """The real path of an existing, regular, permitted mesh file. Raises AssetRefusedError or AssetMissingError."""
        if len(uri) > MAX_URI:
            raise AssetRefusedError(f"the file name has {len(uri)} characters; at most {MAX_URI} are read")
        name = uri.strip().replace("\\", "/")
        if not name or "\0" in name:
            raise AssetRefusedError("the file name is empty")
        tried: list[Path] = []
        refused: AssetRefusedError | None = None
        for candidate, root in self.candidates(name):
            try:
                return self.permit(candidate, root)
            except FileNotFoundError:
                tried.append(candidate)
            except AssetRefusedError as error:
                if not tried:  # the first candidate is the name as written, the others are guesses
                    refused = refused or error
        if refused:
            raise refused
        if not tried:
            raise AssetMissingError("the model is not in a file; give --mesh-root or --package NAME=DIR")
        folders = dict.fromkeys(path.parent for path in tried)
        raise AssetMissingError(f"tried {listed(dict.fromkeys(tried))}", f"tried in {listed(folders)}")

    def candidates(self, name: str) -> Iterator[tuple[Path, Path | None]]:
        """Paths a name may mean, best first, each with the package root it must stay in (None: any allowed root)."""
        scheme = SCHEME.match(name)
        kind = scheme[1].lower() if scheme else ""
        if kind in ("package", "model"):
            yield from self.package_candidates(name[len(kind) + 3 :])
        elif kind == "file":
            path = unquote(name[len("file://") :])
            yield from ((path_, None) for path_ in self.plain_candidates(path))
        elif kind:
            raise AssetRefusedError(f"{kind}:// is not read; meshes are files on this machine")
        else:
            yield from ((path_, None) for path_ in self.plain_candidates(name))

    def package_candidates(self, rest: str) -> Iterator[tuple[Path, Path | None]]:
        """package://NAME/PATH below the package's root; PATH must not leave it.

        15 public files write package:///PATH: either relative to the model, or with the name after a slash too many.
        """
        if rest.startswith("/"):
            rest = rest.lstrip("/")
            yield from ((path, None) for path in self.plain_candidates(rest))
            if "/" not in rest:
                return
        package, _, inner = rest.partition("/")
        if package in ("", ".", "..") or escapes(inner):
            raise AssetOutsideError("it leaves its package, outside the allowed roots")
        root = self.package_root(package)
        if root is not None:
            yield root / inner, root
        if self.mesh_root is not None:
            if inner:
                yield self.mesh_root / inner, self.mesh_root
            yield self.mesh_root / package / inner, self.mesh_root
        for above in self.folders_up():
            if inner:
                yield above / inner, None
            yield above / package / inner, None
        yield from ((path, None) for path in self.mujoco_candidates(inner))
        if root is None:
            raise AssetMissingError(
                f"no package {package!r}; give --package {shlex.quote(package)}=DIR or set ROS_PACKAGE_PATH"
            )

    def plain_candidates(self, name: str) -> Iterator[Path]:
        """A relative or absolute path."""
        if name.startswith("/"):
            yield Path(name)
            return
        if self.folder is not None:
            yield self.folder / name
        if self.mesh_root is not None:
            yield self.mesh_root / name
        yield from (above / name for above in self.folders_up())
        yield from self.mujoco_candidates(name)

    def folders_up(self) -> Iterator[Path]:
        """The model's folder and the folders above it, up to its package's root."""
        if self.folder is None:
            return
        top = model_root(self.folder)
        for above in walk_up(Path(os.path.abspath(self.folder))):  # noqa: PTH100 (links are kept on purpose)
            yield above
            if above == top:
                return

    def mujoco_candidates(self, name: str) -> Iterator[Path]:
        """Paths that MuJoCo would try: below meshdir, without the folders of the name if strippath is set."""
        if self.folder is not None and (self.mesh_dir or self.strip_path):
            folder = self.folder / self.mesh_dir
            yield folder / PurePosixPath(name).name
            if not self.strip_path:
                yield folder / name

    def permit(self, candidate: Path, root: Path | None, *, any_format: bool = False) -> Path:
        """The real path of a regular file below an allowed root, of a mesh's format unless `any_format`."""
        real = Path(os.path.realpath(candidate))
        roots = [*self.roots(), *([root] if root else [])]
        if not any(is_below(real, allowed) for allowed in roots):
            raise AssetOutsideError(*outside(candidate, real))
        try:
            mode = real.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            if not any_format:
                check_extension(real)
            raise FileNotFoundError from None
        except OSError as error:
            raise AssetRefusedError(f"{str(real)!r}: {error.strerror}") from None
        if not stat.S_ISREG(mode):
            raise AssetRefusedError(f"{str(real)!r} is not a regular file")
        if not any_format:
            check_extension(real)
        return real

    def roots(self) -> list[Path]:
        """The allowed roots, real paths."""
        if self.base_roots is None:
            given = [*self.packages.values(), *([self.mesh_root] if self.mesh_root else [])]
            if self.folder is not None:
                given += [self.folder, model_root(self.folder)]
            self.base_roots = [Path(os.path.realpath(path)) for path in given]
        return self.base_roots

    def package_root(self, name: str) -> Path | None:
        """The folder of a package, looked up once."""
        if name not in self.found_packages:
            self.found_packages[name] = next((p for p in self.package_places(name) if is_folder(p)), None)
        root = self.found_packages[name]
        return Path(os.path.realpath(root)) if root else None

    def package_places(self, name: str) -> Iterator[Path]:
        """Possible folders of a package: as given, or above the model, then in ROS 2's, Gazebo's and ROS 1's paths."""
        if name in self.packages:
            yield self.packages[name]
            return
        if self.folder is not None:
            yield from places_above(Path(os.path.abspath(self.folder)), name)  # noqa: PTH100 (links are kept on purpose)
        for prefix in search_path("AMENT_PREFIX_PATH"):
            yield prefix / "share" / name
        for variable in GAZEBO_PATHS:
            yield from (root / name for root in search_path(variable))
        roots = search_path("ROS_PACKAGE_PATH")
        for root in roots:
            if root.name == name:
                yield root
            yield from (path for path in (root / name, *root.glob(f"*/{glob_literal(name)}")) if is_package(path))
            yield root / name
        for root in roots:
            yield from packages_named(name, [root])
            yield from packages_named(name, folders_in(root))
        if self.folder is not None:
            for above in walk_up(Path(os.path.abspath(self.folder))):  # noqa: PTH100
                yield from packages_named(name, folders_in(above))


def places_above(folder: Path, name: str) -> Iterator[Path]:
    """Package folders that hold the model, or that are beside it in its workspace (the latter need a package.xml).

    Top-level folders are excluded, and those without a package.xml: a file must not declare /etc or somebody's home to
    be its package.
    """
    for above in walk_up(folder):
        if is_package(above) and name in (above.name, package_name(above)):
            yield above
        if is_package(above / name):
            yield above / name


def packages_named(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """The folders, and those in them, whose package.xml gives this name, as ROS has it: that of a folder may differ."""
    for folder in folders:
        if is_package(folder):
            if package_name(folder) == name:
                yield folder
        else:
            yield from (inner for inner in folders_in(folder) if package_name(inner) == name)


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, in order; at most MAX_FOLDERS entries are looked at."""
    try:
        with os.scandir(folder) as entries:
            found = [Path(entry.path) for entry in islice(entries, MAX_FOLDERS) if entry.is_dir()]
    except OSError:
        return []
    return sorted(found)


def walk_up(folder: Path) -> Iterator[Path]:
    """The folder and the folders above it, without top-level ones."""
    for above in (folder, *folder.parents)[:MAX_WALK]:
        if len(above.parts) > 2:
            yield above


def model_root(folder: Path) -> Path:
    """The package root of a model in `folder`: the nearest package.xml, else one folder up (urdf/ beside meshes/)."""
    absolute = Path(os.path.abspath(folder))  # noqa: PTH100 (links are kept on purpose)
    for above in walk_up(absolute):
        if is_package(above):
            return above
    parent = absolute.parent
    safe = len(parent.parts) > 2 and parent != Path.home()
    return parent if safe else absolute


def is_package(folder: Path) -> bool:
    """True if the folder holds a package.xml."""
    try:
        return (folder / "package.xml").is_file()
    except OSError:  # a name that is too long for the file system
        return False


def is_folder(path: Path) -> bool:
    """True if the folder exists; False for a name that the file system does not allow."""
    try:
        return path.is_dir()
    except OSError:
        return False


def package_name(folder: Path) -> str:
    """The <name> in the folder's package.xml, searched as text in its first 64 kB; '' if there is none."""
    try:
        with (folder / "package.xml").open("rb") as stream:
            found = re.search(rb"<name>\s*([\w.-]+)\s*</name>", stream.read(65536))
    except OSError:
        return ""
    return found[1].decode() if found else ""


def search_path(variable: str) -> list[Path]:
    """The folders that an environment variable lists."""
    return [Path(entry) for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def glob_literal(name: str) -> str:
    """A name for glob that matches only itself."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def listed(paths: Iterable[Path]) -> str:
    """Paths for a message."""
    return ", ".join(repr(str(path)) for path in paths)


def outside(candidate: Path, real: Path) -> tuple[str, str]:
    """Two messages, for a file outside the allowed roots and for all files of its folder. They name the option that
    allows the folder if the mesh's name climbs to it, as `../../meshes/a.stl` does.
    """
    climbs = ".." in candidate.parts and real.suffix.lower() in EXTENSIONS and len(real.parts) > 3
    option = f"--mesh-root {shlex.quote(str(real.parent))} allows it" if climbs else "--mesh-root DIR allows more"
    words = f"is outside the allowed roots; {option}"
    return f"{str(real)!r} {words}", f"{str(real.parent)!r} {words}"


def escapes(path: str) -> bool:
    """True if a relative path climbs above its start."""
    return path.startswith("/") or os.path.normpath(path).split("/")[0] == ".."


def is_below(path: Path, root: Path) -> bool:
    """True if a real path is the root or lies in it."""
    return path.is_relative_to(root)


def check_extension(path: Path) -> None:
    """Refuse a format that is not on the list: unknown ones may be archives, scripts or pipes."""
    if path.suffix.lower() not in EXTENSIONS:
        known = " ".join(sorted(extension[1:] for extension in EXTENSIONS))
        raise AssetRefusedError(f"format {path.suffix!r} of {path.name!r} is not read; formats: {known}")
