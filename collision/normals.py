"""Better normals on round shapes, where GJK and EPA only come near to the solution.

The signed distance of two convex shapes is the greatest that any direction sees (and -depth the greatest of negative
ones), so that trying a direction is one support point: a face's normal, one across a cylinder's axis.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from artsim.collision.gjk import NEAR, approach
from artsim.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from artsim.collision.support import across, difference
from artsim.sim.jit import inlined, njit

AS_GOOD = 1e-8  # relative to the scale: what a face's normal may see less
FAR = 1e300
ROUNDING = 1e-15  # of depths, relative to the scale
MOST_STEPS = 10
ENOUGH = 1e-6  # rad: the step after a smaller one gains nothing
FARTHEST = 0.3  # rad, of a step
FAR_OFF = 1e-3  # rad: the points of a normal so far away are others
EVEN = 1e-5  # curvatures that are so much smaller than others are rounding
OUT = 0.03  # relative to the scale: how far apart shapes are moved to see where they touch
NUDGE = 1e-5  # rad
ACROSS_AXIS = 0.05  # cosine between a cylinder's axis and the normal below which one across the axis is tried


@njit
def try_normal(shapes: Any, gjk: Any, n0: Any, n1: Any, n2: Any, tolerance: Any) -> bool:
    """Take the unit direction n for the normal when it sees as much [m]; the points move to it about their middle,
    the farthest ones of the cores along n stay in the simplex.
    """
    w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, n0, n1, n2)
    gap = -(n0 * w0 + n1 * w1 + n2 * w2) - gjk.radius[0] - gjk.radius[1]
    if gap < gjk.gap[0] - tolerance:
        return False
    gjk.gap[0] = gap
    gjk.normal[0] = n0
    gjk.normal[1] = n1
    gjk.normal[2] = n2
    for axis in range(3):
        middle = 0.5 * (gjk.point[0, axis] + gjk.point[1, axis])
        gjk.point[0, axis] = middle - 0.5 * gap * gjk.normal[axis]
        gjk.point[1, axis] = middle + 0.5 * gap * gjk.normal[axis]
    gjk.simplex[0, 0] = w0
    gjk.simplex[0, 1] = w1
    gjk.simplex[0, 2] = w2
    gjk.simplex[0, 3] = a0
    gjk.simplex[0, 4] = a1
    gjk.simplex[0, 5] = a2
    return True


@njit
def snap_to_face(shapes: Any, gjk: Any, side: int) -> bool:
    """Take the normal of a side's face when it is as good."""
    sign = 1.0 if side == 0 else -1.0
    n0, n1, n2 = sign * gjk.facing[side, 0], sign * gjk.facing[side, 1], sign * gjk.facing[side, 2]
    if not try_normal(shapes, gjk, n0, n1, n2, AS_GOOD * gjk.scale[1]):
        return False
    _touch(gjk, 1 - side)
    return True


@inlined
def _touch(gjk: Any, side: int) -> None:
    """The contact is where a round side's farthest point lies; of other shapes no single point does."""
    if gjk.kind[side, 0] != ELLIPSOID and gjk.kind[side, 0] != SPHERE:
        return
    for axis in range(3):
        a = gjk.simplex[0, 3 + axis] + gjk.radius[0] * gjk.normal[axis]
        if side == 1:
            b = gjk.simplex[0, 3 + axis] - gjk.simplex[0, axis] - gjk.radius[1] * gjk.normal[axis]
            a = b - gjk.gap[0] * gjk.normal[axis]
        gjk.point[0, axis] = a
        gjk.point[1, axis] = a + gjk.gap[0] * gjk.normal[axis]


@njit
def touch_ellipsoid(shapes: Any, gjk: Any) -> None:
    """The points are where the farthest one of side 1, an ellipsoid, lies: no other belongs to the normal."""
    if try_normal(shapes, gjk, gjk.normal[0], gjk.normal[1], gjk.normal[2], FAR):
        _touch(gjk, 1)


@njit
def snap_across_axes(shapes: Any, gjk: Any) -> None:
    """Take a normal across a cylinder's axis when it is better: coaxial ones have a ring of equally deep directions."""
    for side in range(2):
        if gjk.kind[side, 0] == CYLINDER:
            R = gjk.rotation
            u0 = 0.0 if side == 0 else R[0, 2]
            u1 = 0.0 if side == 0 else R[1, 2]
            u2 = 1.0 if side == 0 else R[2, 2]
            along = gjk.normal[0] * u0 + gjk.normal[1] * u1 + gjk.normal[2] * u2
            if along != 0.0 and abs(along) < ACROSS_AXIS:
                n0, n1, n2 = gjk.normal[0] - along * u0, gjk.normal[1] - along * u1, gjk.normal[2] - along * u2
                factor = 1.0 / sqrt(n0 * n0 + n1 * n1 + n2 * n2)
                if try_normal(shapes, gjk, factor * n0, factor * n1, factor * n2, 0.0) and abs(along) > FAR_OFF:
                    gjk.loose[0] = inf


# ------------------------------------------------------------------ depths that EPA has not proven, or not precisely


@njit
def settle_normal(shapes: Any, gjk: Any) -> None:
    """Newton's method on the depth as a function of the direction, from EPA's on. The depth has creases where the
    direction is across an axis of a box, cylinder or capsule; on one of them there is one way left to go, where two
    cross there is none. Each step is taken only if it is better.
    """
    for _ in range(MOST_STEPS):
        creases, e0, e1, e2 = _snap_to_creases(shapes, gjk)
        if creases == 2 or not (_step_along(shapes, gjk, e0, e1, e2) if creases == 1 else _step(shapes, gjk)):
            break


@inlined
def _crease(gjk: Any, i: int) -> Any:
    """Axis i of the three of each side, and whether the side is straight along it."""
    side = i // 3
    axis = i - 3 * side
    kind = gjk.kind[side, 0]
    straight = kind == BOX or (axis == 2 and (kind == CYLINDER or kind == CAPSULE))
    if side == 0:
        return straight, 1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0, 1.0 if axis == 2 else 0.0
    return straight, gjk.rotation[0, axis], gjk.rotation[1, axis], gjk.rotation[2, axis]


@njit
def _snap_to_creases(shapes: Any, gjk: Any) -> Any:
    """Take the normal across up to two axes near it where that is better; how many, and the first one."""
    creases = 0
    e0, e1, e2 = 0.0, 0.0, 0.0
    for i in range(6):
        straight, u0, u1, u2 = _crease(gjk, i)
        along = gjk.normal[0] * u0 + gjk.normal[1] * u1 + gjk.normal[2] * u2
        if not straight or abs(along) > ACROSS_AXIS:
            continue
        n0, n1, n2 = gjk.normal[0] - along * u0, gjk.normal[1] - along * u1, gjk.normal[2] - along * u2
        if creases == 1:
            m0, m1, m2 = e1 * u2 - e2 * u1, e2 * u0 - e0 * u2, e0 * u1 - e1 * u0
            length = m0 * n0 + m1 * n1 + m2 * n2
            if abs(length) < ACROSS_AXIS:  # the same crease, or nearly
                continue
            n0, n1, n2 = m0 * length, m1 * length, m2 * length
        factor = 1.0 / sqrt(n0 * n0 + n1 * n1 + n2 * n2)
        if not try_normal(shapes, gjk, factor * n0, factor * n1, factor * n2, ROUNDING * gjk.scale[0]):
            continue
        if abs(along) > ENOUGH:
            gjk.loose[0] = inf
        if _rises(shapes, gjk, u0, u1, u2):
            creases += 1
            if creases == 2:
                break
            e0, e1, e2 = u0, u1, u2
    return creases, e0, e1, e2


@njit
def _rises(shapes: Any, gjk: Any, u0: Any, u1: Any, u2: Any) -> bool:
    """Whether the depth grows to both sides of a crease that the normal is on."""
    for way in range(2):
        d = NUDGE if way == 0 else -NUDGE
        w0, w1, w2, _, _, _ = difference(
            shapes, gjk, gjk.normal[0] + d * u0, gjk.normal[1] + d * u1, gjk.normal[2] + d * u2
        )
        if d * (w0 * u0 + w1 * u1 + w2 * u2) < 0.0:
            return False
    return True


@njit
def _step_along(shapes: Any, gjk: Any, e0: Any, e1: Any, e2: Any) -> bool:
    """A step on the crease across e; whether there is more to gain."""
    n0, n1, n2 = gjk.normal[0], gjk.normal[1], gjk.normal[2]
    t0, t1, t2 = n1 * e2 - n2 * e1, n2 * e0 - n0 * e2, n0 * e1 - n1 * e0
    g, _ = _slope(shapes, gjk, 0.0, 0.0, t0, t1, t2, e0, e1, e2)
    p, _ = _slope(shapes, gjk, NUDGE, 0.0, t0, t1, t2, e0, e1, e2)
    if not p > g:
        return False
    return _try_step(shapes, gjk, -g * NUDGE / (p - g), t0, t1, t2)


@njit
def _step(shapes: Any, gjk: Any) -> bool:
    """A step in any direction; whether there is more to gain."""
    n0, n1, n2 = gjk.normal[0], gjk.normal[1], gjk.normal[2]
    t0, t1, t2 = across(n0, n1, n2)
    factor = 1.0 / sqrt(t0 * t0 + t1 * t1 + t2 * t2)
    t0, t1, t2 = factor * t0, factor * t1, factor * t2
    u0, u1, u2 = n1 * t2 - n2 * t1, n2 * t0 - n0 * t2, n0 * t1 - n1 * t0
    g0, g1 = _slope(shapes, gjk, 0.0, 0.0, t0, t1, t2, u0, u1, u2)
    p0, p1 = _slope(shapes, gjk, NUDGE, 0.0, t0, t1, t2, u0, u1, u2)
    q0, q1 = _slope(shapes, gjk, 0.0, NUDGE, t0, t1, t2, u0, u1, u2)
    h00, h11, h01 = (p0 - g0) / NUDGE, (q1 - g1) / NUDGE, 0.5 * (p1 - g1 + q0 - g0) / NUDGE
    mean, half = 0.5 * (h00 + h11), 0.5 * (h00 - h11)
    most = mean + sqrt(half * half + h01 * h01)  # the eigenvalues: this and the smaller one
    if not most > 0.0:
        return False
    least = max(2.0 * mean - most, EVEN * most)
    c, s = (most - h11, h01) if half > 0.0 else (h01, most - h00)
    length = sqrt(c * c + s * s)
    c, s = (c / length, s / length) if length > 0.0 else (1.0, 0.0)
    x, y = -(g0 * c + g1 * s) / most, -(g1 * c - g0 * s) / least
    x, y = c * x - s * y, s * x + c * y
    size = sqrt(x * x + y * y)
    factor = 1.0 / size if size > 0.0 else 0.0
    x, y = factor * x, factor * y
    return _try_step(shapes, gjk, size, x * t0 + y * u0, x * t1 + y * u1, x * t2 + y * u2)


@njit
def _try_step(shapes: Any, gjk: Any, size: Any, t0: Any, t1: Any, t2: Any) -> bool:
    """Turn the normal towards t, across it, by `size` [rad] if that is better; whether there is more to gain."""
    size = min(max(size, -FARTHEST), FARTHEST)
    m0, m1, m2 = gjk.normal[0] + size * t0, gjk.normal[1] + size * t1, gjk.normal[2] + size * t2
    factor = 1.0 / sqrt(m0 * m0 + m1 * m1 + m2 * m2)
    if not try_normal(shapes, gjk, factor * m0, factor * m1, factor * m2, 0.0):
        return False
    gjk.loose[0] = inf
    return bool(abs(size) > ENOUGH)


@njit
def _slope(shapes: Any, gjk: Any, x: Any, y: Any, t0: Any, t1: Any, t2: Any, u0: Any, u1: Any, u2: Any) -> Any:
    """How the cores' extent along m = n + x t + y u, per length of m, changes with x and y."""
    m0, m1, m2 = gjk.normal[0] + x * t0 + y * u0, gjk.normal[1] + x * t1 + y * u1, gjk.normal[2] + x * t2 + y * u2
    w0, w1, w2, _, _, _ = difference(shapes, gjk, m0, m1, m2)
    mm = m0 * m0 + m1 * m1 + m2 * m2
    length = sqrt(mm)
    share = (w0 * m0 + w1 * m1 + w2 * m2) / mm
    return (w0 * t0 + w1 * t1 + w2 * t2 - share * x) / length, (w0 * u0 + w1 * u1 + w2 * u2 - share * y) / length


@njit
def place_points(shapes: Any, gjk: Any) -> None:
    """The points of an overlap whose normal is known: b is moved out along the normal and the nearest points are
    found. EPA's face does not tell where they are when it is not on the surface: shapes about the same centre, which
    many directions are equally deep for.
    """
    n0, n1, n2 = gjk.normal[0], gjk.normal[1], gjk.normal[2]
    way = OUT * gjk.scale[1] - gjk.gap[0] - gjk.radius[0] - gjk.radius[1]
    for axis in range(3):
        gjk.offset[axis] += way * gjk.normal[axis]
    state = approach(shapes, gjk, -n0, -n1, -n2, FAR, ROUNDING * gjk.scale[0])
    for axis in range(3):
        gjk.offset[axis] -= way * gjk.normal[axis]
    if state != NEAR:
        return
    for axis in range(3):
        point = gjk.radius[0] * gjk.normal[axis]
        for i in range(gjk.points[0]):
            point += gjk.weight[i] * gjk.simplex[i, 3 + axis]
        gjk.point[0, axis] = point
        gjk.point[1, axis] = point + gjk.gap[0] * gjk.normal[axis]
    v0, v1, v2 = gjk.nearest[0], gjk.nearest[1], gjk.nearest[2]
    factor = -1.0 / sqrt(v0 * v0 + v1 * v1 + v2 * v2)
    try_normal(shapes, gjk, factor * v0, factor * v1, factor * v2, 0.0)
