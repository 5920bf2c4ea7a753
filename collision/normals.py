"""Better normals on round shapes, where GJK and EPA only come near to the solution.

The signed distance of two convex shapes is the greatest that any direction sees (and -depth the greatest of negative
ones), so that trying a direction is one support point: a face's normal, one across a cylinder's axis.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from artsim.collision.shapes import CYLINDER, ELLIPSOID, SPHERE
from artsim.collision.support import difference
from artsim.sim.jit import njit

AS_GOOD = 1e-8  # relative to the scale: what a face's normal may see less
ACROSS_AXIS = 0.05  # cosine between a cylinder's axis and the normal below which one across the axis is tried


@njit
def try_normal(S: Any, k: Any, n0: Any, n1: Any, n2: Any, tolerance: Any) -> bool:
    """Take the unit direction n for the normal when it sees as much [m]; the points move to it about their middle,
    the farthest ones of the cores along n stay in the simplex.
    """
    w0, w1, w2, a0, a1, a2 = difference(S, k, n0, n1, n2)
    gap = -(n0 * w0 + n1 * w1 + n2 * w2) - k.radius[0] - k.radius[1]
    if gap < k.gap[0] - tolerance:
        return False
    k.gap[0] = gap
    k.normal[0] = n0
    k.normal[1] = n1
    k.normal[2] = n2
    for axis in range(3):
        middle = 0.5 * (k.point[0, axis] + k.point[1, axis])
        k.point[0, axis] = middle - 0.5 * gap * k.normal[axis]
        k.point[1, axis] = middle + 0.5 * gap * k.normal[axis]
    k.simplex[0, 0] = w0
    k.simplex[0, 1] = w1
    k.simplex[0, 2] = w2
    k.simplex[0, 3] = a0
    k.simplex[0, 4] = a1
    k.simplex[0, 5] = a2
    return True


@njit
def snap_to_face(S: Any, k: Any, side: int) -> bool:
    """Take the normal of a side's face when it is as good."""
    sign = 1.0 if side == 0 else -1.0
    n0, n1, n2 = sign * k.facing[side, 0], sign * k.facing[side, 1], sign * k.facing[side, 2]
    if not try_normal(S, k, n0, n1, n2, AS_GOOD * k.scale[0]):
        return False
    other = k.kind[1 - side, 0]
    if other != ELLIPSOID and other != SPHERE:
        return True  # no single point of it touches
    for axis in range(3):
        if side == 0:
            b = k.simplex[0, 3 + axis] - k.simplex[0, axis] - k.radius[1] * k.normal[axis]
            k.point[1, axis] = b
            k.point[0, axis] = b - k.gap[0] * k.normal[axis]
        else:
            a = k.simplex[0, 3 + axis] + k.radius[0] * k.normal[axis]
            k.point[0, axis] = a
            k.point[1, axis] = a + k.gap[0] * k.normal[axis]
    return True


@njit
def snap_across_axes(S: Any, k: Any) -> None:
    """Take a normal across a cylinder's axis when it is better: coaxial ones have a ring of equally deep directions."""
    for side in range(2):
        if k.kind[side, 0] == CYLINDER:
            R = k.rotation
            u0 = 0.0 if side == 0 else R[0, 2]
            u1 = 0.0 if side == 0 else R[1, 2]
            u2 = 1.0 if side == 0 else R[2, 2]
            along = k.normal[0] * u0 + k.normal[1] * u1 + k.normal[2] * u2
            if along != 0.0 and abs(along) < ACROSS_AXIS:
                n0, n1, n2 = k.normal[0] - along * u0, k.normal[1] - along * u1, k.normal[2] - along * u2
                factor = 1.0 / sqrt(n0 * n0 + n1 * n1 + n2 * n2)
                try_normal(S, k, factor * n0, factor * n1, factor * n2, 0.0)
