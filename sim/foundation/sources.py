"""The sources of machine code: a digest of a module and of all modules of the engine that it imports.

numba's own cache goes by a function's own file, and silently runs stale code after an edit to a helper elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_IMPORT = re.compile(rb"^[ \t]*from (artsim[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


@cache
def digest_of(*modules: str) -> str:
    """A digest of the sources of these modules and of everything of artsim that they import, directly or not."""
    digest = sha256()
    for module in sorted(_imported(modules)):
        digest.update(_source(module)[0])
    return digest.hexdigest()[:16]


def size_of(module: str) -> int:
    """The size of the same sources [bytes]."""
    return sum(_file(each).stat().st_size for each in _imported([module]))


def _imported(modules: Iterable[str]) -> set[str]:
    """These modules and all of artsim that they import, directly or not."""
    found = set[str]()
    to_do = list(modules)
    while to_do:
        module = to_do.pop()
        if module not in found:
            found.add(module)
            to_do.extend(_source(module)[1])
    return found


@cache
def _source(module: str) -> tuple[bytes, tuple[str, ...]]:
    """The digest of a module's file, and the modules of artsim that it imports anywhere in it."""
    content = _file(module).read_bytes()
    imported = {name for place, names in _IMPORT.findall(content) for name in _modules(place.decode(), names.decode())}
    return module.encode() + sha256(content).digest(), tuple(imported)


def _modules(place: str, names: str) -> Iterable[str]:
    """The modules that `from place import names` reads: the place, or modules in it."""
    if _PACKAGE.joinpath(*place.split(".")[1:]).is_dir():
        inside = (f"{place}.{name}" for name in re.findall(r"(\w+)(?: as \w+)?", names))
        return (module for module in inside if _file(module).is_file())
    return (place,)


def _file(module: str) -> Path:
    root, *names = module.split(".")
    if root == "artsim":
        return _PACKAGE.joinpath(*names).with_suffix(".py")
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(module)
    return Path(spec.origin)
