"""Better normals on round shapes, where GJK and EPA only come near to the solution.

The signed distance of two convex shapes is the greatest that any direction sees (and -depth the greatest of negative
ones), so that trying a direction is one support point: a face's normal, one across a cylinder's axis.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from artsim.collision.shapes import CYLINDER, ELLIPSOID, SPHERE
from artsim.collision.support import across, difference
from artsim.sim.jit import inlined, njit

AS_GOOD = 1e-8  # relative to the scale: what a face's normal may see less
OFF = 1e-3  # of the depth: a point that lies so far inside its surface is none of contact
FAR = 1e300
MOST_STEPS = 10
NUDGE = 1e-5  # rad
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
    _touch(k, 1 - side)
    return True


@inlined
def _touch(k: Any, side: int) -> None:
    """The contact is where a round side's farthest point lies; of other shapes no single point does."""
    if k.kind[side, 0] != ELLIPSOID and k.kind[side, 0] != SPHERE:
        return
    for axis in range(3):
        a = k.simplex[0, 3 + axis] + k.radius[0] * k.normal[axis]
        if side == 1:
            b = k.simplex[0, 3 + axis] - k.simplex[0, axis] - k.radius[1] * k.normal[axis]
            a = b - k.gap[0] * k.normal[axis]
        k.point[0, axis] = a
        k.point[1, axis] = a + k.gap[0] * k.normal[axis]


@njit
def settle_on_ellipsoid(S: Any, k: Any) -> None:
    """Move the points to an ellipsoid's farthest one where EPA's do not lie on the surfaces: shapes about the same
    centre, which many directions are equally deep for.
    """
    side = 0 if k.kind[0, 0] == ELLIPSOID else 1
    if k.kind[side, 0] != ELLIPSOID:
        return
    n0, n1, n2 = k.normal[0], k.normal[1], k.normal[2]
    w0, w1, w2, a0, a1, a2 = difference(S, k, n0, n1, n2)
    P = k.point
    extent = n0 * a0 + n1 * a1 + n2 * a2
    height = extent + k.radius[0] - (n0 * P[0, 0] + n1 * P[0, 1] + n2 * P[0, 2])
    extent -= n0 * w0 + n1 * w1 + n2 * w2
    height = max(height, n0 * P[1, 0] + n1 * P[1, 1] + n2 * P[1, 2] - extent + k.radius[1])
    if height > OFF * abs(k.gap[0]) and try_normal(S, k, n0, n1, n2, FAR):
        _touch(k, side)


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


@njit
def descend(S: Any, k: Any) -> None:
    """Newton's method on the depth as a function of the direction, from the one that EPA ran out of room with: round
    shapes deep in each other, where many directions are nearly as short. Each step is taken only if it is better.
    """
    for _ in range(MOST_STEPS):
        n0, n1, n2 = k.normal[0], k.normal[1], k.normal[2]
        t0, t1, t2 = across(n0, n1, n2)
        factor = 1.0 / sqrt(t0 * t0 + t1 * t1 + t2 * t2)
        t0, t1, t2 = factor * t0, factor * t1, factor * t2
        u0, u1, u2 = n1 * t2 - n2 * t1, n2 * t0 - n0 * t2, n0 * t1 - n1 * t0
        g0, g1 = _slope(S, k, 0.0, 0.0, t0, t1, t2, u0, u1, u2)
        p0, p1 = _slope(S, k, NUDGE, 0.0, t0, t1, t2, u0, u1, u2)
        q0, q1 = _slope(S, k, 0.0, NUDGE, t0, t1, t2, u0, u1, u2)
        h00, h11, h01 = (p0 - g0) / NUDGE, (q1 - g1) / NUDGE, 0.5 * (p1 - g1 + q0 - g0) / NUDGE
        determinant = h00 * h11 - h01 * h01
        if not (determinant > 0.0 and h00 > 0.0):
            break
        x = (h01 * g1 - h11 * g0) / determinant
        y = (h01 * g0 - h00 * g1) / determinant
        m0, m1, m2 = n0 + x * t0 + y * u0, n1 + x * t1 + y * u1, n2 + x * t2 + y * u2
        factor = 1.0 / sqrt(m0 * m0 + m1 * m1 + m2 * m2)
        if not try_normal(S, k, factor * m0, factor * m1, factor * m2, 0.0):
            break
        _touch(k, 0)
        _touch(k, 1)
        if x * x + y * y < 1e-18:
            break


@njit
def _slope(S: Any, k: Any, x: Any, y: Any, t0: Any, t1: Any, t2: Any, u0: Any, u1: Any, u2: Any) -> Any:
    """How the cores' extent along m = n + x t + y u, per length of m, changes with x and y."""
    m0, m1, m2 = k.normal[0] + x * t0 + y * u0, k.normal[1] + x * t1 + y * u1, k.normal[2] + x * t2 + y * u2
    w0, w1, w2, _, _, _ = difference(S, k, m0, m1, m2)
    mm = m0 * m0 + m1 * m1 + m2 * m2
    length = sqrt(mm)
    share = (w0 * m0 + w1 * m1 + w2 * m2) / mm
    return (w0 * t0 + w1 * t1 + w2 * t2 - share * x) / length, (w0 * u0 + w1 * u1 + w2 * u2 - share * y) / length
