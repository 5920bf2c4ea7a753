"""No file imports, directly or through others, one that imports it: each can be read after those below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.conftest import ROOT
from tests.house.test_house import SOURCES, imported

LEFT = {("sim.foundation.compiler", f"sim.foundation.{name}") for name in ("jit", "recordtype", "sparing")}
"""Imports that close a circle: the compiler hands numba back to the entries that called for it."""


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


MODULES = {module_of(path): path for path in SOURCES}


def named(path: Path) -> Iterator[str]:
    """The modules that texts of a file name, for a function that imports them later: `artsim.io.exports.tables`.

    Texts in sim name the kernels that other kernels call through pointers, which no import stands for.
    """
    if path.relative_to(ROOT).parts[0] == "sim":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("artsim."):
            yield node.value.partition(":")[0]


def imports_of(path: Path) -> set[str]:
    """The modules that a file needs: imported at its top, in functions, for type checking, or named in a text."""
    found = set()
    for name in (*imported(path), *named(path)):
        whole = name.removeprefix("artsim.")
        found.add(whole if whole in MODULES else whole.rpartition(".")[0])
    return found & MODULES.keys() - {module_of(path)}


def circle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of a circle in their order, the first again at the end; empty without one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]
    return []


def test_circles_are_found() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert sorted(circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}})[1:]) == ["a", "b", "c"]


def test_imports_go_in_no_circle() -> None:
    """Also within a room, and also those in functions, which would only hide a circle."""
    graph = {
        module: {other for other in imports_of(path) if (module, other) not in LEFT} for module, path in MODULES.items()
    }
    assert circle_in(graph) == []
    assert all(other in imports_of(MODULES[module]) for module, other in LEFT), "an exception that is gone"
