"""Frames of MJCF elements: position, and rotation in any of its five forms."""

from __future__ import annotations

import math

from artsim.loaders.mjcf.reading import Item
from artsim.sim.articulation.description import Pose, Quaternion, Vector3
from artsim.sim.articulation.pose_algebra import about, cross, from_columns, multiply
from artsim.sim.foundation.dataclass import dataclass

ALTERNATIVES = ("axisangle", "xyaxes", "zaxis", "euler")
TINY = 1e-14  # below this length a vector has no direction (MuJoCo's mjEPS)
SAME_LINE = 1e-7  # sine of an angle below which MuJoCo takes a zaxis as along z
AXES: dict[str, Vector3] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, slots=True)
class Angles:
    """The unit of the file's angles [rad], and the axes that Euler angles turn about."""

    unit: float = math.pi / 180.0  # MJCF's default is degrees
    sequence: str = "xyz"


def read_frame(item: Item, angles: Angles) -> Pose:
    """pos and quat, axisangle, euler, xyaxes or zaxis."""
    return Pose(item.vector("pos", (0.0, 0.0, 0.0)), read_rotation(item, angles))


def read_rotation(item: Item, angles: Angles) -> Quaternion:
    """The element's rotation; an alternative form wins over quat."""
    given = [name for name in ALTERNATIVES if item.has(name)]
    if len(given) > 1:
        item.refuse(f"has both {given[0]} and {given[1]}, which say the same")
    form = given[0] if given else "quat"
    if form == "quat":
        w, x, y, z = item.numbers("quat", 4, 4, (1.0, 0.0, 0.0, 0.0))
        return unit_quaternion(item, (w, x, y, z))
    if form == "axisangle":
        x, y, z, angle = item.numbers("axisangle", 4, 4)
        return about(unit(item, "axisangle", (x, y, z)), angle * angles.unit)
    if form == "euler":
        return from_euler(item.vector("euler"), angles)
    if form == "zaxis":
        return from_z(unit(item, "zaxis", item.vector("zaxis")))
    return from_axes(item)


def unit_quaternion(item: Item, q: Quaternion) -> Quaternion:
    """q normalised, refused where it has no length."""
    length = math.hypot(*q)
    if length < TINY:
        item.refuse("quat has length 0, want a rotation")
    return (q[0] / length, q[1] / length, q[2] / length, q[3] / length)


def unit(item: Item, name: str, vector: Vector3) -> Vector3:
    """The direction of a vector, refused where it has none."""
    length = math.hypot(*vector)
    if length < TINY:
        item.refuse(f"{name} has length {length:g}, want a direction")
    return (vector[0] / length, vector[1] / length, vector[2] / length)


def from_euler(euler: Vector3, angles: Angles) -> Quaternion:
    """Rotations about the sequence's axes; a capital letter means the axis of the parent, which stays."""
    q: Quaternion = (1.0, 0.0, 0.0, 0.0)
    for letter, angle in zip(angles.sequence, euler, strict=True):
        turn = about(AXES[letter.lower()], angle * angles.unit)
        q = multiply(q, turn) if letter.islower() else multiply(turn, q)
    return q


def from_z(z: Vector3) -> Quaternion:
    """The shortest rotation that takes (0, 0, 1) to the unit vector z."""
    axis = (-z[1], z[0], 0.0)
    sine = math.hypot(axis[0], axis[1])
    if sine < SAME_LINE:
        return about(AXES["x"], math.atan2(0.0, z[2]))
    return about((axis[0] / sine, axis[1] / sine, 0.0), math.atan2(sine, z[2]))


def from_axes(item: Item) -> Quaternion:
    """xyaxes: the x axis, and a vector that with it spans the plane of x and y."""
    numbers = item.numbers("xyaxes", 6, 6)
    x = unit(item, "xyaxes", (numbers[0], numbers[1], numbers[2]))
    along = sum(a * b for a, b in zip(x, numbers[3:], strict=True))
    y = unit(
        item,
        "xyaxes",
        (numbers[3] - along * x[0], numbers[4] - along * x[1], numbers[5] - along * x[2]),
    )
    return from_columns(x, y, cross(x, y))
