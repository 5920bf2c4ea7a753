"""Transformations between the axes of the world, of shapes, and of gjk, which works in the axes of its side 0."""

from __future__ import annotations

from artsim.collision.gjk_work import GjkWork
from artsim.collision.shapes import AnyPlaced
from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.mat3 import plus_rotated, rotated, rotated_back, turn, turn_back
from artsim.sim.foundation.records import Vec3, Vector
from artsim.sim.foundation.vec3 import minus, plus, row_of, triple


@inlined
def clamp(x: float, h: float) -> float:
    """The value in [-h, h] nearest to x."""
    return min(max(x, -h), h)


@inlined
def axis(placed: AnyPlaced, s: int, k: int) -> Vec3:
    """Axis k of shape s, world axes."""
    R = placed.rotation
    return R[s, 0, k], R[s, 1, k], R[s, 2, k]


@inlined
def centre(placed: AnyPlaced, s: int) -> Vec3:
    """The origin of shape s, world axes."""
    return row_of(placed.position, s)


@inlined
def turned(placed: AnyPlaced, s: int, v: Vec3) -> Vec3:
    """Transform a vector from the axes of shape s to world axes."""
    return turn(placed.rotation, s, v)


@inlined
def along_axes(placed: AnyPlaced, s: int, v: Vector) -> Vec3:
    """Transform a vector from world axes to those of shape s."""
    return turn_back(placed.rotation, s, v)


@inlined
def into(placed: AnyPlaced, s: int, x: Vec3) -> Vec3:
    """Transform a world point to the frame of shape s."""
    return along_axes(placed, s, minus(x, centre(placed, s)))


# ------------------------------------------------------------------ gjk's axes


@inlined
def to_world(gjk: GjkWork, v: Vec3) -> Vec3:
    """Transform a vector from gjk's axes to world axes."""
    return rotated(gjk.frame, v)


@inlined
def point_to_world(gjk: GjkWork, x: Vec3) -> Vec3:
    """Transform a point from gjk's frame to the world."""
    return plus(triple(gjk.origin), rotated(gjk.frame, x))


@inlined
def axis_of_side(gjk: GjkWork, side: int, k: int) -> Vec3:
    """Axis k of a side, gjk's axes."""
    R = gjk.rotation
    if side == 1:
        return R[0, k], R[1, k], R[2, k]
    return 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0


@inlined
def from_side(gjk: GjkWork, side: int, v: Vec3) -> Vec3:
    """Transform a vector from a side's own axes to gjk's."""
    if side == 1:
        return rotated(gjk.rotation, v)
    return v


@inlined
def to_side(gjk: GjkWork, side: int, v: Vec3) -> Vec3:
    """Transform a vector from gjk's axes to a side's own."""
    if side == 1:
        return rotated_back(gjk.rotation, v)
    return v


@inlined
def point_from_side(gjk: GjkWork, side: int, x: Vec3) -> Vec3:
    """Transform a point from a side's own frame to gjk's."""
    if side == 1:
        return plus_rotated(gjk.offset, gjk.rotation, x)
    return x
