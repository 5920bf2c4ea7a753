"""State of the SDF reader, and typed reading of values that elements hold as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import cast

from artsim.loaders.assets import Assets
from artsim.loaders.elements import (
    Element,
    Reading,
    child,
    convert,
    describe,
    normalised,
)
from artsim.sim.articulation.description import Pose, Quaternion, Source, Vector3
from artsim.sim.articulation.pose_algebra import quaternion_from_rpy
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import nearest

Origin = tuple[str, Assets]  # a file's name in messages, and the resolver of the names in it
INFINITE = ("inf", "+inf", "infinity", "+infinity")
FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(slots=True)
class SdfReading(Reading):
    """A model being read, which may consist of several files: `origins` gives the file of an element."""

    origins: dict[Element, Origin] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)  # parts of the file that move nothing, and the reasons
    written: bool = False  # True if masses were written into the tree: outputs must then hold it
    bare: dict[Element, str] = field(default_factory=dict)  # links without <inertial>, by their whole names
    idle: dict[Element, str] = field(default_factory=dict)  # joints with effort 0, by their whole names

    def origin(self, element: Element) -> Origin | None:
        """The included file that holds the element; None for the model's own."""
        node: Element | None = element if self.origins else None
        while node is not None and node not in self.origins:
            node = node.getparent()
        return None if node is None else self.origins[node]

    def at(self, element: Element) -> Source:
        """File and line of the element."""
        origin = self.origin(element)
        line = cast(int, element.sourceline or 0)
        return (self.lines.get(line) if origin is None else None) or Source(origin[0] if origin else self.file, line)

    def assets_of(self, element: Element) -> Assets | None:
        """The resolver of mesh names in the element; None if meshes are not searched for."""
        origin = self.origin(element)
        return self.assets if self.assets is None or origin is None else origin[1]


def listed(names: Sequence[str]) -> str:
    """Names for a message, at most eight of them."""
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")


def text_of(reading: SdfReading, element: Element, name: str, default: str | None = None) -> str:
    """The text of a child, stripped; without a default, a child with text is required."""
    item = child(reading, element, name)
    text = "" if item is None else (item.text or "").strip()
    if text:
        return text
    if default is None:
        reading.refuse(element if item is None else item, f"{describe(element)} has no <{name}>")
    return default


def number_of(
    reading: SdfReading, element: Element | None, name: str, default: float, *, least: float | None = None
) -> float:
    """The number that a child holds, refused below `least`; `default` without the child."""
    item = None if element is None else child(reading, element, name)
    if item is None:
        return default
    value = convert(reading, item, "content", item.text or "", 1)[0]
    if least is not None and value < least:
        reading.refuse(item, f"{describe(item)} is {value:g}, want at least {least:g}")
    return value


def bound_of(reading: SdfReading, element: Element | None, name: str) -> float | None:
    """The number that a child holds; None without the child and for ±infinity, which SDFormat also writes as 1e16."""
    item = None if element is None else child(reading, element, name)
    if item is None or (item.text or "").strip().lower().replace("-", "", 1) in INFINITE:
        return None
    value = convert(reading, item, "effort", item.text or "", 1)[0]
    return None if abs(value) >= 1e16 else value


def vector_of(reading: SdfReading, element: Element, name: str, default: Vector3) -> Vector3:
    """The three numbers that a child holds; `default` without the child."""
    item = child(reading, element, name)
    if item is None:
        return default
    x, y, z = convert(reading, item, "content", item.text or "", 3)
    return (x, y, z)


def flag_of(reading: SdfReading, element: Element | None, name: str, default: bool = False) -> bool:
    """The flag that a child holds; `default` without the child."""
    item = None if element is None else child(reading, element, name)
    if item is None:
        return default
    text = (item.text or "").strip().lower()
    if text not in FLAGS:
        reading.refuse(item, f"{describe(item)} is {text[:40]!r}, want true or false")
    return FLAGS[text]


def attribute_flag(reading: SdfReading, element: Element, name: str) -> bool:
    """True if an attribute is present and true."""
    text = element.get(name, "false").strip().lower()
    if text not in FLAGS:
        reading.refuse(element, f"{describe(element)}: {name} is {text[:40]!r}, want true or false")
    return FLAGS[text]


def read_pose(reading: SdfReading, element: Element | None) -> Pose:
    """<pose>: x y z [m] and roll pitch yaw (or a quaternion); identity for a missing or empty one."""
    text = "" if element is None else (element.text or "").strip()
    if element is None or not text:
        return Pose()
    form = element.get("rotation_format", "euler_rpy")
    if form not in ("euler_rpy", "quat_xyzw"):
        told = f"{describe(element)}: rotation_format is {form[:40]!r}"
        reading.refuse(element, f"{told}{nearest(form[:40], ('euler_rpy', 'quat_xyzw'))}")
    degrees = attribute_flag(reading, element, "degrees")
    if form == "euler_rpy":
        x, y, z, *angles = convert(reading, element, "content", text, 6)
        roll, pitch, yaw = map(math.radians, angles) if degrees else angles
        return Pose((x, y, z), quaternion_from_rpy(roll, pitch, yaw))
    if degrees:
        reading.refuse(element, f"{describe(element)}: a quaternion is not in degrees")
    x, y, z, i, j, k, w = convert(reading, element, "content", text, 7)
    return Pose((x, y, z), unit_quaternion(reading, element, (w, i, j, k)))


def unit_quaternion(reading: SdfReading, element: Element, q: Quaternion) -> Quaternion:
    """q normalised; a zero quaternion is refused."""
    w, x, y, z = normalised(reading, element, q, f"{describe(element)}: the quaternion", "a rotation")
    return (w, x, y, z)
