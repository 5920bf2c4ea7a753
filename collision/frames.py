"""Between the world's axes and a shape's; points and vectors as three scalars."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined


@inlined
def dot(x0: Any, x1: Any, x2: Any, y0: Any, y1: Any, y2: Any) -> Any:
    """x . y of two vectors."""
    return x0 * y0 + x1 * y1 + x2 * y2


@inlined
def clamp(x: Any, h: Any) -> Any:
    """What of [-h, h] is nearest to x."""
    return min(max(x, -h), h)


@inlined
def axis(placed: Any, s: Any, k: Any) -> Any:
    """Axis k of shape s, world axes."""
    R = placed.rotation
    return R[s, 0, k], R[s, 1, k], R[s, 2, k]


@inlined
def turned(placed: Any, s: Any, v0: Any, v1: Any, v2: Any) -> Any:
    """A vector in the axes of shape s, in world axes."""
    R = placed.rotation
    return (
        R[s, 0, 0] * v0 + R[s, 0, 1] * v1 + R[s, 0, 2] * v2,
        R[s, 1, 0] * v0 + R[s, 1, 1] * v1 + R[s, 1, 2] * v2,
        R[s, 2, 0] * v0 + R[s, 2, 1] * v1 + R[s, 2, 2] * v2,
    )


@inlined
def turned_back(placed: Any, s: Any, v0: Any, v1: Any, v2: Any) -> Any:
    """A vector in world axes, in those of shape s."""
    R = placed.rotation
    return (
        R[s, 0, 0] * v0 + R[s, 1, 0] * v1 + R[s, 2, 0] * v2,
        R[s, 0, 1] * v0 + R[s, 1, 1] * v1 + R[s, 2, 1] * v2,
        R[s, 0, 2] * v0 + R[s, 1, 2] * v1 + R[s, 2, 2] * v2,
    )


@inlined
def into(placed: Any, s: Any, x0: Any, x1: Any, x2: Any) -> Any:
    """A point of the world, in the axes of shape s from its origin."""
    o = placed.position
    return turned_back(placed, s, x0 - o[s, 0], x1 - o[s, 1], x2 - o[s, 2])


@inlined
def centre(placed: Any, s: Any) -> Any:
    """The origin of shape s, world axes."""
    return placed.position[s, 0], placed.position[s, 1], placed.position[s, 2]


@inlined
def to_world(gjk: Any, x0: Any, x1: Any, x2: Any) -> Any:
    """A vector in gjk's axes turned into the world's; a point needs gjk.origin added."""
    F = gjk.frame
    return (
        F[0, 0] * x0 + F[0, 1] * x1 + F[0, 2] * x2,
        F[1, 0] * x0 + F[1, 1] * x1 + F[1, 2] * x2,
        F[2, 0] * x0 + F[2, 1] * x1 + F[2, 2] * x2,
    )
