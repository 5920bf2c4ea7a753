"""Frames of MJCF elements: position, and rotation in any of its five forms; a little quaternion algebra."""

from __future__ import annotations

import math

from artsim.loaders.mjcf.reading import Item
from artsim.sim.articulation.description import Pose, Quaternion, Vector3
from artsim.sim.foundation.dataclass import dataclass

ALTERNATIVES = ("axisangle", "xyaxes", "zaxis", "euler")
TINY = 1e-14  # below this length a vector has no direction (MuJoCo's mjEPS)
SAME_LINE = 1e-7  # sine of an angle below which MuJoCo takes a zaxis as along z
AXES: dict[str, Vector3] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, slots=True)
class Angles:
    """How the file means angles: its unit [rad], and the axes that Euler angles turn about."""

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


def from_columns(x: Vector3, y: Vector3, z: Vector3) -> Quaternion:
    """The quaternion of the rotation whose matrix has these columns, by its largest component (Shepperd 1978)."""
    trace = x[0] + y[1] + z[2]
    squares = (trace, x[0], y[1], z[2])
    largest = squares.index(max(squares))
    if largest == 0:
        q = (1.0 + trace, y[2] - z[1], z[0] - x[2], x[1] - y[0])
    elif largest == 1:
        q = (y[2] - z[1], 1.0 + x[0] - y[1] - z[2], x[1] + y[0], z[0] + x[2])
    elif largest == 2:
        q = (z[0] - x[2], x[1] + y[0], 1.0 - x[0] + y[1] - z[2], y[2] + z[1])
    else:
        q = (x[1] - y[0], z[0] + x[2], y[2] + z[1], 1.0 - x[0] - y[1] + z[2])
    length = math.hypot(*q)
    return (q[0] / length, q[1] / length, q[2] / length, q[3] / length)


def about(axis: Vector3, angle: float) -> Quaternion:
    """The rotation about a unit vector by an angle [rad]."""
    c, s = math.cos(angle / 2), math.sin(angle / 2)
    return (c, s * axis[0], s * axis[1], s * axis[2])


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """The rotation a after b."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


def conjugate(q: Quaternion) -> Quaternion:
    """The inverse rotation."""
    return (q[0], -q[1], -q[2], -q[3])


def cross(a: Vector3, b: Vector3) -> Vector3:
    """a × b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def rotate(q: Quaternion, v: Vector3) -> Vector3:
    """The vector v turned by q."""
    t = cross((q[1], q[2], q[3]), v)
    t = (2 * t[0], 2 * t[1], 2 * t[2])
    u = cross((q[1], q[2], q[3]), t)
    return (v[0] + q[0] * t[0] + u[0], v[1] + q[0] * t[1] + u[1], v[2] + q[0] * t[2] + u[2])


def compose(outer: Pose, inner: Pose) -> Pose:
    """A pose in a frame that is itself in a frame; exact where the outer one is the identity."""
    if outer == Pose():
        return inner
    x, y, z = rotate(outer.rotation, inner.position)
    px, py, pz = outer.position
    return Pose((px + x, py + y, pz + z), multiply(outer.rotation, inner.rotation))


def inverse(pose: Pose) -> Pose:
    """The frame of the parent in the child."""
    back = conjugate(pose.rotation)
    x, y, z = rotate(back, pose.position)
    return Pose((-x, -y, -z), back)
