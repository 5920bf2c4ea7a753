"""Frames of SDFormat: their names in scopes, their poses, and the links that they are attached to.

By "Pose Frame Semantics" of SDFormat 1.7 and later: `relative_to` and `attached_to` name links, frames, joints and
nested models of their own scope, or, after `a::b::`, of a scope nested in it; without these attributes the pose of a
link and a nested model is in `__model__`, that of a frame in the element it is attached to or else in `__model__`, that
of a joint in its child. In a world, `world` takes the place of `__model__`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from artsim.loaders.elements import Element, child, describe, named, tag
from artsim.loaders.sdf.reading import SdfReading, flag_of, read_pose, text_of
from artsim.sim.articulation.description import Pose
from artsim.sim.articulation.pose_algebra import compose, inverse
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import nearest

MODEL = "__model__"
WORLD = "world"
BETWEEN = "::"
MOST_NESTED = 50  # models within models
Kind = Literal["link", "joint", "frame", "model"]
KINDS: tuple[Kind, ...] = ("link", "joint", "frame", "model")


@dataclass(frozen=True, slots=True)
class Named:
    """A named element of a scope: its raw pose, the frame of that pose, and the element it moves with (frames only)."""

    kind: Kind
    element: Element
    pose: Pose
    relative_to: str
    attached_to: str = ""


@dataclass(slots=True)
class Scope:
    """A model or a world: its named elements, by kind and name, and the models nested in it.

    `prefix` (`robot::`) precedes its names in the whole model, `fixed` is True for a static model.
    """

    reading: SdfReading
    element: Element
    own: str  # the name of its frame: __model__, or world
    prefix: str = ""
    fixed: bool = False
    names: dict[str, Named] = field(default_factory=dict)
    inner: dict[str, Scope] = field(default_factory=dict)
    poses: dict[str, Pose] = field(default_factory=dict)  # poses computed so far, in the scope's own frame
    links: dict[str, tuple[Scope, str]] = field(default_factory=dict)  # links found so far by link_of

    def of_kind(self, kind: Kind) -> Mapping[str, Named]:
        """The elements of a kind, by name."""
        return {name: item for name, item in self.names.items() if item.kind == kind}

    def split(self, name: str, element: Element) -> tuple[str, str]:
        """The part of a name that is in this scope, and the rest, which is a name in a nested model. A name that does
        not exist is refused.
        """
        if name == self.own or name in self.names:
            return name, ""
        first, _, rest = name.partition(BETWEEN)
        while rest:
            if first in self.inner:
                return first, rest
            further, _, rest = rest.partition(BETWEEN)
            first = first + BETWEEN + further
        return self.reading.refuse(
            element, f"{describe(element)} names {name[:80]!r}, which does not exist{nearest(name[:80], self.known())}"
        )

    def known(self) -> list[str]:
        """Every name in this scope, followed by the names in nested models."""
        found: list[str] = []
        open_: list[tuple[str, Scope]] = [("", self)]
        while open_:
            prefix, scope = open_.pop()
            found += [prefix + name for name in scope.names]
            open_ += [(f"{prefix}{name}{BETWEEN}", inner) for name, inner in scope.inner.items()]
        return found

    def pose_of(self, name: str, element: Element) -> Pose:
        """The pose of a named frame in the scope's own; `element`, for messages, uses the name. A cycle is refused."""
        path: list[tuple[str, Pose]] = []  # frames still to be placed, and in each the pose of the name asked for
        seen: dict[str, None] = {}
        asks = element
        while True:
            first, rest = self.split(name, asks)
            below = self.inner[first].pose_of(rest, asks) if rest else Pose()
            if first == self.own or first in self.poses:
                here = compose(self.poses.get(first, Pose()), below)
                break
            if first in seen:
                cycle = [*list(seen)[list(seen).index(first) :], first]
                self.reading.refuse(asks, f"frames form a cycle: {' -> '.join(map(repr, cycle[:12]))}")
            seen[first] = None
            item = self.names[first]
            path.append((first, below))
            name, asks = item.relative_to, item.element
        for first, below in reversed(path):
            self.poses[first] = compose(here, self.names[first].pose)
            here = compose(self.poses[first], below)
        return here

    def link_of(self, name: str, element: Element) -> tuple[Scope, str]:
        """The scope and the name of the link that a named frame moves with; of the world: its scope and `world`."""
        scope, asks = self, element
        path: dict[tuple[int, str], Scope] = {}  # frames on the way, with their scopes, by identity and name
        while name not in scope.links:
            if (id(scope), name) in path:
                scope.reading.refuse(asks, f"{describe(asks)}: what frames are attached to forms a cycle at {name!r}")
            path[id(scope), name] = scope
            if scope.own == WORLD and name == WORLD:
                scope.links[name] = (scope, WORLD)
                break
            first, rest = scope.split(name, asks)
            if rest:
                scope, name = scope.inner[first], rest
                continue
            if first == scope.own:
                name = scope.canonical()
                continue
            item = scope.names[first]
            asks = item.element
            if item.kind == "link":
                scope.links[name] = (scope, first)
            elif item.kind == "model":
                scope, name = scope.inner[first], MODEL
            else:
                name = item.attached_to
        found = scope.links[name]
        for (_, passed), owner in path.items():
            owner.links[passed] = found
        return found

    def canonical(self) -> str:
        """The name of the element that the model's own frame moves with: canonical_link, else the first link, else the
        first nested model. A model without any is refused.
        """
        given = self.element.get("canonical_link", "")
        if given:
            self.split(given, self.element)
            return given
        first = next((name for kind in ("link", "model") for name in self.of_kind(kind)), None)
        if first is None:
            self.reading.refuse(self.element, f"{describe(self.element)} has no links")
        return first


def read_scope(reading: SdfReading, element: Element, prefix: str = "", *, fixed: bool = False) -> Scope:
    """The scope of a <model> or <world> with all its named elements. Raises ModelError."""
    if prefix.count(BETWEEN) > MOST_NESTED:
        reading.refuse(element, f"{describe(element)}: models nest deeper than {MOST_NESTED}")
    own = WORLD if tag(element) == "world" else MODEL
    scope = Scope(reading, element, own, prefix, fixed or flag_of(reading, element, "static"))
    for item in element:
        kind = tag(item)
        if kind not in KINDS or (own == WORLD and kind == "link"):
            continue
        name = named(reading, item)
        check_name(reading, item, name, scope)
        if kind == "model":
            scope.inner[name] = read_scope(reading, item, prefix + name + BETWEEN, fixed=scope.fixed)
        scope.names[name] = read_named(reading, item, scope, name)
    return scope


def check_name(reading: SdfReading, element: Element, name: str, scope: Scope) -> None:
    """Refuse a name that is reserved or not unique in its scope."""
    if name == WORLD or (name.startswith("__") and name.endswith("__")):
        reading.refuse(element, f"{describe(element)}: the name {name!r} is reserved")
    if name in scope.names:
        first = scope.names[name]
        line = reading.at(first.element).line
        told = "is already defined" if first.kind == tag(element) else f"has the name of a {first.kind}"
        reading.refuse(element, f"{describe(element)} {told} at line {line}")


def read_named(reading: SdfReading, element: Element, scope: Scope, name: str) -> Named:
    """A link, joint, frame or nested model with its raw pose."""
    kind: Kind = tag(element)  # type: ignore[assignment]
    item = child(reading, element, "pose")
    pose, relative_to = read_pose(reading, item), "" if item is None else item.get("relative_to", "")
    if kind == "joint":
        attached = text_of(reading, element, "child")
        if attached == WORLD:
            reading.refuse(element, f"<child> of {describe(element)} is the world, which can only be a parent")
        return Named(kind, element, pose, relative_to or attached, attached)
    if kind == "frame":
        attached = element.get("attached_to", "") or scope.own
        return Named(kind, element, pose, relative_to or attached, attached)
    if kind == "model":
        inner, placement = scope.inner[name], element.get("placement_frame", "")
        if placement:
            pose = compose(pose, inverse(inner.pose_of(placement, element)))
    return Named(kind, element, pose, relative_to or scope.own)


def check_frames(scope: Scope) -> None:
    """Refuse a scope with frames whose pose is undefined (a cycle), used or not. Raises ModelError."""
    if scope.element.get("canonical_link"):
        scope.canonical()
    for name, item in scope.names.items():
        scope.pose_of(name, item.element)
        if item.kind == "frame" and item.element.get("attached_to"):
            scope.link_of(name, item.element)


def own_pose(reading: SdfReading, element: Element, scope: Scope) -> Pose:
    """The pose in the world of a <model> that is in no other model."""
    item = child(reading, element, "pose")
    pose, placement = read_pose(reading, item), element.get("placement_frame", "")
    relative_to = "" if item is None else item.get("relative_to", "")
    if item is not None and relative_to not in ("", WORLD):
        reading.refuse(item, f"{describe(item)}: relative_to is {relative_to[:80]!r}, but the model is in nothing else")
    return compose(pose, inverse(scope.pose_of(placement, element))) if placement else pose


def scopes_in(scope: Scope) -> list[tuple[Scope, Pose]]:
    """The scope and all scopes nested in it, in the order of the file, each with its pose in the outermost."""
    found: list[tuple[Scope, Pose]] = []
    open_ = [(scope, Pose())]
    while open_:
        here, pose = open_.pop()
        found.append((here, pose))
        nested = [
            (inner, compose(pose, here.pose_of(name, here.names[name].element))) for name, inner in here.inner.items()
        ]
        open_ += reversed(nested)
    return found
