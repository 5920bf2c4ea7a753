"""Robots by name: robots shipped with artsim, and cached robots of the package robot_descriptions."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from artsim.sim.foundation.errors import MissingInputError, nearest

CACHE = "ROBOT_DESCRIPTIONS_CACHE"  # the variable that robot_descriptions reads, too
KINDS = ("URDF_PATH", "MJCF_PATH", "XACRO_PATH")  # the first that a description has


class Found(NamedTuple):
    """A model's file; for a description made of macros also their arguments and the folders of their packages."""

    path: Path
    arguments: Mapping[str, str] = {}
    packages: Mapping[str, Path] = {}


def find_model(word: str) -> Found:
    """The file that a word names: a path, else a bundled robot (`arm7`), else a description (`panda_description`).

    Nothing is downloaded. Raises MissingInputError for a name of neither, and for a description that is not cached.
    """
    path = Path(word)
    if exists(path) or not re.fullmatch(r"[A-Za-z0-9_]+", word):
        return Found(path)
    robots = bundled()
    if word in robots:
        return Found(robots[word])
    if word.endswith("_description"):
        return find_description(word)
    close = nearest(word, sorted(robots)) if robots else ""
    raise MissingInputError(f"{word}: no such file{close}")


def exists(path: Path) -> bool:
    """True if the path exists; a folder counts, and is refused when it is read."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return True


def bundled() -> dict[str, Path]:
    """The robots that are installed with artsim, by name."""
    folder = Path(__file__).parents[1] / "robots"
    return {path.stem: path for path in sorted(folder.glob("*.*")) if path.suffix in (".urdf", ".xml")}


def find_description(name: str) -> Found:
    """The file of a description, which must be in the cache of robot_descriptions. Raises MissingInputError."""
    if find_spec("robot_descriptions") is None:
        raise MissingInputError(f"{name}: no such file, and robot_descriptions is not installed: artsim[descriptions]")
    known = sorted(import_module("robot_descriptions._descriptions").DESCRIPTIONS)
    if name not in known:
        raise MissingInputError(f"{name}: no such file, nor a description{nearest(name, known)}")
    module = imported_without_network(name)
    for kind in KINDS:
        path = Path(str(getattr(module, kind, "")))
        if path.is_file():
            return Found(path, texts_of(module, "XACRO_ARGS"), packages_of(module))
    raise MissingInputError(f"{name}: its files are not in the cache, {cache_folder()}")


def packages_of(module: ModuleType) -> dict[str, Path]:
    """The packages that a description declares: its own under its folder's name, and those of its macros."""
    own = getattr(module, "PACKAGE_PATH", "")
    named = {Path(own).name: own} if isinstance(own, str) and own else {}
    return {name: Path(folder) for name, folder in {**named, **texts_of(module, "XACRO_PACKAGE_PATHS")}.items()}


def texts_of(module: ModuleType, name: str) -> dict[str, str]:
    """The dictionary of texts of that name in a description's module; empty if there is none."""
    values = getattr(module, name, {})
    return {str(key): str(value) for key, value in values.items()} if isinstance(values, dict) else {}


def cache_folder() -> Path:
    """The folder of robot_descriptions' downloads."""
    return Path(os.environ.get(CACHE, "~/.cache/robot_descriptions")).expanduser()


def imported_without_network(name: str) -> ModuleType:
    """The description's module. Its import would clone a repository; here the clone must exist already.

    Raises MissingInputError if there is no clone.
    """
    repositories = import_module("robot_descriptions._repositories").REPOSITORIES

    def cached(repository: str, commit: str | None = None) -> str:
        place = repositories[repository].cache_path
        folder = cache_folder() / (place if commit is None else f"{place}-{commit}/{place}")
        if not folder.is_dir():
            raise MissingInputError(
                f"{name}: {folder} is not there, and nothing is downloaded unasked: "
                f"`python -m robot_descriptions pull {name}` does"
            )
        return str(folder)

    stand_in = ModuleType("robot_descriptions._cache")
    stand_in.clone_to_cache = cached  # type: ignore[attr-defined]
    before = {key: sys.modules.pop(key, None) for key in (stand_in.__name__, f"robot_descriptions.{name}")}
    sys.modules[stand_in.__name__] = stand_in
    try:
        return import_module(f"robot_descriptions.{name}")
    except ImportError as error:
        raise MissingInputError(f"{name}: {error}") from error
    finally:
        for key, module in before.items():
            sys.modules.pop(key, None)
            if module is not None:
                sys.modules[key] = module
