"""From files, standard input or a stored text to an Articulation: the bytes, then the reader of the root's format."""

from __future__ import annotations

import dataclasses
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn, Unpack, cast

from artsim.loaders.assets import Assets
from artsim.loaders.elements import Reading, tag
from artsim.loaders.follower_limits import with_follower_notes
from artsim.loaders.loop_entry import MAX_MB
from artsim.loaders.loops import with_loops
from artsim.loaders.names import Found, find_model
from artsim.loaders.other_kinds import refuse_other_kinds
from artsim.loaders.read_options import ReadOptions, whole
from artsim.loaders.scene import MARK, SceneModel, StoredModel, base_of, merge, parse_scene
from artsim.loaders.srdf import with_srdf
from artsim.loaders.urdf import read_urdf
from artsim.loaders.xml import Document, check_size, decode, parse
from artsim.sim.articulation.description import Articulation, Pose, Source
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ArtsimError, MissingInputError, ModelError
from artsim.sim.foundation.files import read_start

LEAST_LENGTH = 1e-12  # [m], of sizes of shapes; a hundredth of an atom
STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")  # `artsim check <(xacro robot.xacro)`


def load_articulation(
    path: str | Path, *, loops: str | Path | None = None, **options: Unpack[ReadOptions]
) -> Articulation:
    """Read a robot file; `-` is standard input, a name that is no file's one of artsim's robots or a description.

    `loops` is a TOML file of loops that close the tree (loops.py): the model is then a scene of one, whose text holds
    both.
    Raises MissingInputError (no such file) and ModelError (`file:line: reason`).
    """
    how = whole(options)
    if loops is not None:
        return load_scene([SceneEntry("", str(path), loops=str(loops))], default_base=how["base"], **options)
    found = Found(Path("-")) if str(path) == "-" else find_model(str(path))
    name, most = str(found.path), how["max_xml_mb"]
    data = read_stream(sys.stdin.buffer, "<stdin>", most) if name == "-" else read_file(Path(name), most)
    refuse_other_kinds(data, name)
    how["packages"] = {**found.packages, **(how["packages"] or {})}
    how["arguments"] = {**found.arguments, **(how["arguments"] or {})}
    where = None if name == "-" or name.startswith(STREAMS) else Path(name)
    return load_text(data, name="<stdin>" if name == "-" else name, path=where, **how)


def load_text(
    text: bytes | str, *, name: str, path: Path | None = None, **options: Unpack[ReadOptions]
) -> Articulation:
    """Read a robot from its text (standard input, a model stored in an output), under the same limits as a file.

    `name` stands for the file in messages. `path` is the file of the text, which mesh names are relative to.
    """
    how = whole(options)
    most = how["max_xml_mb"]
    if is_scene(text):
        check_size(len(text), file=name, max_mb=most)
        return load_stored_scene(text, name, lambda stored, called: _load_part(stored, called, how), max_xml_mb=most)
    assets = assets_of(path, how)
    document = parse(text, file=name, max_mb=most)
    if how["xacro"]:
        document = expand(document, name, path, assets, most, how["arguments"] or {})
    elif name.endswith(".xacro"):
        raise ModelError(f"{Source(name)}: a xacro file, which is a program; --xacro expands it, where you trust it")
    reading = Reading(
        name,
        assets=assets if how["meshes"] else None,
        strict=how["strict"],
        balance_inertia=how["balance_inertia"],
        ignore_unsupported=how["ignore_unsupported"],
        density=how["density"],
        max_faces=how["max_faces"],
        notes=list(document.notes),
        lines=document.lines,
        macros=document.macros,
    )
    articulation = with_follower_notes(read_document(document, reading, assets, most))
    refuse_tiny(articulation)
    if not articulation.conventions.base_chosen and how["base"] == "floating":
        refuse_base(name, articulation)
    text = articulation.text or document.text
    return dataclasses.replace(articulation, text=text, base=how["base"], max_faces=how["max_faces"])


def _load_part(stored: StoredModel, called: str, how: ReadOptions) -> Articulation:
    """A model of a stored scene: its macros are expanded already, and no folder of its meshes is known."""
    own: ReadOptions = {"base": stored.base, "packages": {}, "mesh_root": None, "xacro": False}
    return load_text(stored.text, name=called, **(how | own))


def assets_of(path: Path | None, how: ReadOptions) -> Assets:
    """The folders from which the meshes of a file may be read."""
    return Assets(
        folder=None if path is None else path.parent,
        packages={key: Path(folder) for key, folder in (how["packages"] or {}).items()},
        mesh_root=None if how["mesh_root"] is None else Path(how["mesh_root"]),
    )


@dataclass(frozen=True, slots=True)
class SceneEntry:
    """A model of a scene: its name ('': alone), file, base (None: from the file), pose, SRDF file and file of loops."""

    name: str
    file: str
    base: Literal["fixed", "floating"] | None = None
    place: Pose = dataclasses.field(default_factory=Pose)
    srdf: str = ""
    loops: str = ""


def load_scene(
    entries: Sequence[SceneEntry],
    *,
    default_base: Literal["fixed", "floating"] | None = None,
    **options: Unpack[ReadOptions],
) -> Articulation:
    """Read several models and make them one; see scene.merge. Options but the base hold for each.

    The base of a URDF is that of its entry, else `default_base`, else free if it is one link with mass in a scene of
    several models, else fixed.
    Raises as load_articulation does; ModelError also for an SRDF or a file of loops that does not fit.
    """
    how = whole(options)
    how["base"], most = "fixed", how["max_xml_mb"]
    alone = len(entries) == 1
    models = []
    for entry in entries:
        robot = load_articulation(entry.file, **how)
        if (entry.base or (default_base if alone else None)) == "floating" and not robot.conventions.base_chosen:
            refuse_base(robot.path, robot)
        robot = dataclasses.replace(robot, base=base_of(robot, entry.base or default_base, alone=alone))
        srdf, loops = (
            decode(read_file(Path(file), limit), file) if file else ""
            for file, limit in ((entry.srdf, most), (entry.loops, MAX_MB))
        )
        made = SceneModel(entry.name, robot, entry.place, srdf, entry.srdf, loops, entry.loops)
        models.append(scene_model(made, most))
    return dataclasses.replace(merge(models), max_faces=how["max_faces"])


def load_stored_scene(
    text: bytes | str, name: str, read: Callable[[StoredModel, str], Articulation], *, max_xml_mb: float = 64.0
) -> Articulation:
    """A scene from its own text; `read` is called with each of its models and the model's name in messages."""
    models = []
    for stored in parse_scene(text if isinstance(text, str) else decode(text, name), name):
        called = f"<model {stored.name or stored.file!r}>"
        if is_scene(stored.text):
            raise ModelError(f"{name}: a scene within a scene")
        robot = dataclasses.replace(read(stored, called), path=stored.file)
        beside = (stored.srdf, stored.srdf_file, stored.loops, stored.loops_file)
        made = SceneModel(stored.name, robot, stored.place, *beside)
        models.append(scene_model(made, max_xml_mb))
    return merge(models)


def scene_model(model: SceneModel, max_mb: float) -> SceneModel:
    """The model with its SRDF and its file of loops applied."""
    robot = model.articulation
    if model.srdf_file:
        robot = with_srdf(robot, model.srdf, file=model.srdf_file, max_mb=max_mb)
    if model.loops_file:
        robot = with_follower_notes(with_loops(robot, model.loops, file=model.loops_file))
    return dataclasses.replace(model, articulation=robot)


def refuse_tiny(articulation: Articulation) -> None:
    """Refuse shapes with sizes or scales above 0 but below LEAST_LENGTH: products of them would be 0."""
    for link in articulation.links:
        for geom in link.geoms:
            for what, values in (("size", geom.size), ("scale", geom.scale)):
                least = min((abs(value) for value in values if value), default=1.0)
                if least < LEAST_LENGTH:
                    told = (
                        f"{geom.kind} {geom.name!r} of link {link.name!r}: {what} {least:.3g} is below {LEAST_LENGTH:g}"
                    )
                    raise ModelError(f"{geom.source}: {told}")


def is_scene(text: bytes | str) -> bool:
    """True if a text is that of a scene, not XML."""
    return text.startswith(MARK) if isinstance(text, str) else text.startswith(MARK.encode())


def refuse_base(name: str, robot: Articulation) -> NoReturn:
    """Refuse --base floating for a format whose files state which links are free."""
    how = {"mjcf": "give a body a <freejoint>, not --base floating"}.get(robot.format, robot.conventions.how_to_free)
    raise ModelError(f"{Source(name)}: {robot.format.upper()} says itself what is free: {how}")


def read_document(document: Document, reading: Reading, assets: Assets, max_xml_mb: float) -> Articulation:
    """The articulation, read by the reader of the root tag's format."""
    name = tag(document.root)
    if name == "robot":
        return read_urdf(document.root, reading)
    if name == "mujoco":
        from artsim.loaders.mjcf.read import read_mjcf  # 25 files that a URDF does not need

        if reading.density is not None:
            reading.note(
                document.root, "--density is for a URDF's links; the geoms of MJCF have densities of their own"
            )
        return read_mjcf(document.root, reading, assets, max_mb=max_xml_mb)
    if name == "sdf":
        from artsim.loaders.sdf.read import read_sdf

        if reading.density is not None:
            reading.note(document.root, "--density is for a URDF's links; a link of SDF without <inertial> weighs 1 kg")
        return read_sdf(document.root, reading, assets, max_mb=max_xml_mb)
    return reading.refuse(document.root, f"root is <{name[:40]}>, want <robot>, <mujoco> or <sdf>")


def expand(
    document: Document, name: str, path: Path | None, assets: Assets, max_xml_mb: float, arguments: Mapping[str, str]
) -> Document:
    """The document after xacro, with the lines of its elements in the sources. The text was checked before."""
    from artsim.loaders.expand import expand_xacro

    text, places = expand_xacro(
        document.text, file=name, path=path, assets=assets, max_mb=max_xml_mb, arguments=arguments
    )
    expanded = parse(text, file=f"{name} (expanded)", max_mb=max_xml_mb)
    lines: dict[int, Source] = {}
    macros: dict[Source, str] = {}
    for element, place in zip(expanded.root.iter(), places, strict=False):  # one line of the result each
        if place is not None:
            lines[cast(int, element.sourceline or 0)] = place.source  # lxml-stubs gives it no type
            macros[place.source] = place.words
    return dataclasses.replace(expanded, notes=(*document.notes, *expanded.notes), lines=lines, macros=macros)


def read_file(path: Path, max_mb: float) -> bytes:
    """The file's bytes; the size is checked before reading, and a pipe without a writer does not block."""
    try:
        status = path.stat()
        is_stream = str(path).startswith(STREAMS)
        if stat.S_ISDIR(status.st_mode):
            raise MissingInputError(f"{path}: is a folder, want a robot file")
        if not stat.S_ISREG(status.st_mode) and not is_stream:
            raise ModelError(f"{Source(str(path))}: not a regular file")
        check_size(status.st_size, file=str(path), max_mb=max_mb)
        if not is_stream:
            return read_start(path, status.st_size)
        with path.open("rb") as stream:
            return read_stream(stream, str(path), max_mb)
    except ArtsimError:
        raise
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else os.strerror(error.errno or 0)
        raise MissingInputError(f"{path}: {reason}") from None
    except ValueError:  # a NUL in the name
        raise MissingInputError(f"{str(path)!r}: no such file") from None


def read_stream(stream: BinaryIO, name: str, max_mb: float) -> bytes:
    """The stream's bytes, of which the cap and one more are read at most, so that an endless stream ends."""
    data = stream.read(int(max_mb * 1e6) + 1)
    check_size(len(data), file=name, max_mb=max_mb)
    return data
