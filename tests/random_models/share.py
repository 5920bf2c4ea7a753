"""What random models reach of MJCF: each element and attribute at its place, and whether artsim reads it."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from artsim.loaders.mjcf.mjcf_schema import MJCF, Kind
from artsim.loaders.mjcf.supported import ELEMENTS, REFUSED, SENSORS, support

Place = tuple[tuple[str, ...], str]  # tags from below the root, and the attribute ("": the element itself)
OURS = {"centred", "exactmeshinertia"}  # in outputs, and of files older than MuJoCo 4
GROUPS = ("read", "without effect", "refused")


@functools.cache
def paths() -> dict[int, tuple[str, ...]]:
    """The place of each kind of element. What may stand in several (a body in a frame) has the first."""
    found: dict[int, tuple[str, ...]] = {}
    stack: list[tuple[tuple[str, ...], Kind]] = [((), MJCF)]
    while stack:
        path, kind = stack.pop()
        if id(kind) not in found:
            found[id(kind)] = path
            stack += [((*path, name), inner) for name, inner in reversed(kind.children.items())]
    return found


@functools.cache
def kinds() -> dict[tuple[str, ...], Kind]:
    """The kinds of element by place."""
    found: dict[tuple[str, ...], Kind] = {}
    stack: list[Kind] = [MJCF]
    while stack:
        kind = stack.pop()
        path = paths()[id(kind)]
        if path not in found:
            found[path] = kind
            stack.extend(kind.children.values())
    return found


def group_of(path: tuple[str, ...], attribute: str) -> str:
    """read, without effect or refused."""
    if attribute:
        return support(path, attribute).kind
    if any(tag in REFUSED for tag in path) or (path[:1] == ("sensor",) and path[-1] in SENSORS):
        return "refused"
    return "without effect" if any(tag in ELEMENTS for tag in path) else "read"


@functools.cache
def places() -> dict[Place, str]:
    """Everything that MuJoCo 4.0 knows, and its group."""
    found: dict[Place, str] = {}
    for path, kind in kinds().items():
        for attribute in ("", *sorted(kind.attributes - OURS)):
            found[path, attribute] = group_of(path, attribute)
    return found


def elements(root: Element) -> list[tuple[Element, Kind]]:
    """All elements of a model with their kinds."""
    found: list[tuple[Element, Kind]] = []
    stack: list[tuple[Element, Kind]] = [(root, MJCF)]
    while stack:
        element, kind = stack.pop()
        found.append((element, kind))
        stack += [(child, kind.children[child.tag]) for child in element if child.tag in kind.children]
    return found


def used(text: str | Element) -> set[Place]:
    """The places that a model reaches."""
    root: Any = fromstring(text) if isinstance(text, str) else text
    found: set[Place] = set()
    for element, kind in elements(root):
        path = paths()[id(kind)]
        found |= {(path, name) for name in ("", *element.attrib) if (path, name) in places()}
    return found


def shares(reached: Iterable[Place]) -> dict[str, tuple[int, int]]:
    """Of each group, how many are reached and how many there are."""
    total, have = Counter(places().values()), Counter(places()[place] for place in set(reached))
    return {group: (have[group], total[group]) for group in GROUPS}


def missing(reached: set[Place], group: str) -> list[str]:
    """The places of a group that are not reached."""
    return [
        "/".join(path) + f" {name}"
        for (path, name), of in places().items()
        if of == group and (path, name) not in reached
    ]
