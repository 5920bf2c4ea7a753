"""Improves the normals of round shapes, for which GJK and EPA only approximate the solution.

The signed distance of two convex shapes is the maximum over all directions of the separation along them (-depth for
overlapping shapes). Testing a direction, such as a face's normal or one orthogonal to a cylinder's axis, therefore
takes one support point.
"""

from __future__ import annotations

from math import inf, sqrt

from artsim.collision.frames import axis_of_side
from artsim.collision.gjk import NEAR, approach
from artsim.collision.gjk_work import GjkWork
from artsim.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE, Shapes
from artsim.collision.support import across, difference, keep_point, point_of_a
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import (
    combined,
    cross,
    dot,
    length,
    minus_times,
    negative,
    plus,
    plus_times,
    put,
    row_of,
    set_row,
    times,
    triple,
)

AS_GOOD = 1e-8  # relative to the scale: loss of separation accepted for a face's normal
_FAR = 1e300
_ROUNDING = 1e-15  # of depths, relative to the scale
_MOST_STEPS = 10
_ENOUGH = 1e-6  # rad: smallest step after which another one pays
_FARTHEST = 0.3  # rad: largest step
_FAR_OFF = 1e-3  # rad: change of the normal after which its points are computed again
_EVEN = 1e-5  # relative size of a curvature that counts as rounding
_OUT = 0.03  # relative to the scale: distance to which shapes are separated to find their contact points
_NUDGE = 1e-5  # rad
_ACROSS_AXIS = 0.05  # cosine of a cylinder's axis and the normal below which an orthogonal normal is tried


@njit
def try_normal(shapes: Shapes, gjk: GjkWork, normal: Vec3, tolerance: float) -> bool:
    """Accept a unit direction as the normal if its separation is as large, within the tolerance [m].

    The points move to the new normal about their middle; the support points of the cores remain in the simplex.
    """
    w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, normal)
    w, a = (w0, w1, w2), (a0, a1, a2)
    gap = -dot(normal, w) - gjk.radius[0] - gjk.radius[1]
    if gap < gjk.gap[0] - tolerance:
        return False
    gjk.gap[0] = gap
    put(gjk.normal, normal)
    middle = times(0.5, plus(row_of(gjk.point, 0), row_of(gjk.point, 1)))
    set_row(gjk.point, 0, minus_times(middle, 0.5 * gap, normal))
    set_row(gjk.point, 1, plus_times(middle, 0.5 * gap, gjk.normal))
    keep_point(gjk.simplex, 0, w, a)
    return True


@njit
def try_towards(shapes: Shapes, gjk: GjkWork, way: Vec3, tolerance: float) -> bool:
    """`try_normal` for a direction of any length."""
    return try_normal(shapes, gjk, times(1.0 / length(way), way), tolerance)


@njit
def snap_to_face(shapes: Shapes, gjk: GjkWork, side: int) -> bool:
    """Accept the normal of a side's face if it is as good."""
    normal = times(1.0 if side == 0 else -1.0, row_of(gjk.facing, side))
    if not try_normal(shapes, gjk, normal, AS_GOOD * gjk.scale[1]):
        return False
    _touch(gjk, 1 - side)
    return True


@inlined
def _touch(gjk: GjkWork, side: int) -> None:
    """Move the contact to the support point of a round side; the support point of other shapes is not unique."""
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
def touch_ellipsoid(shapes: Shapes, gjk: GjkWork) -> None:
    """Move the contact to the support point of side 1, an ellipsoid, the only point with this normal."""
    if try_normal(shapes, gjk, triple(gjk.normal), _FAR):
        _touch(gjk, 1)


@njit
def snap_across_axes(shapes: Shapes, gjk: GjkWork) -> None:
    """Accept a normal orthogonal to a cylinder's axis if it is better; coaxial cylinders have a ring of equal ones."""
    for side in range(2):
        if gjk.kind[side, 0] == CYLINDER:
            u = axis_of_side(gjk, side, 2)
            along = dot(gjk.normal, u)
            if (
                along != 0.0
                and abs(along) < _ACROSS_AXIS
                and try_towards(shapes, gjk, minus_times(gjk.normal, along, u), 0.0)
                and abs(along) > _FAR_OFF
            ):
                gjk.loose[0] = inf


# ------------------------------------------------------------------ depths that EPA has not proven, or not precisely


@njit
def settle_normal(shapes: Shapes, gjk: GjkWork) -> None:
    """Refine EPA's direction by Newton's method on the depth as a function of the direction.

    The depth has creases where the direction is orthogonal to an axis of a box, cylinder or capsule. On a crease one
    degree of freedom remains, at an intersection of creases none. A step is accepted only if it improves the depth.
    """
    for _ in range(_MOST_STEPS):
        creases, crease = _snap_to_creases(shapes, gjk)
        if creases == 2 or not (_step_along(shapes, gjk, crease) if creases == 1 else _step(shapes, gjk)):
            break


@inlined
def _is_crease(gjk: GjkWork, side: int, k: int) -> bool:
    """True if a side is straight along its axis k."""
    kind = gjk.kind[side, 0]
    return bool(kind == BOX or (k == 2 and (kind == CYLINDER or kind == CAPSULE)))


@njit
def _snap_to_creases(shapes: Shapes, gjk: GjkWork) -> tuple[int, Vec3]:
    """Make the normal orthogonal to up to two nearly orthogonal axes if that is better; their number and the first."""
    creases = 0
    crease = (0.0, 0.0, 0.0)
    for i in range(6):
        u = axis_of_side(gjk, i // 3, i % 3)
        along = dot(gjk.normal, u)
        if not _is_crease(gjk, i // 3, i % 3) or abs(along) > _ACROSS_AXIS:
            continue
        way = minus_times(gjk.normal, along, u)
        if creases == 1:
            both = cross(crease, u)
            share = dot(both, way)
            if abs(share) < _ACROSS_AXIS:  # the same crease, or nearly
                continue
            way = times(share, both)
        if not try_towards(shapes, gjk, way, _ROUNDING * gjk.scale[0]):
            continue
        if abs(along) > _ENOUGH:
            gjk.loose[0] = inf
        if _rises(shapes, gjk, u):
            creases += 1
            if creases == 2:
                break
            crease = u
    return creases, crease


@njit
def _rises(shapes: Shapes, gjk: GjkWork, u: Vec3) -> bool:
    """True if the depth increases on both sides of the crease on which the normal lies."""
    for way in range(2):
        d = _NUDGE if way == 0 else -_NUDGE
        w0, w1, w2, _, _, _ = difference(shapes, gjk, plus_times(gjk.normal, d, u))
        w = (w0, w1, w2)
        if d * dot(w, u) < 0.0:
            return False
    return True


@njit
def _step_along(shapes: Shapes, gjk: GjkWork, crease: Vec3) -> bool:
    """Take a step along a crease; True if another one may help."""
    t = cross(gjk.normal, crease)
    g, _ = _slope(shapes, gjk, 0.0, 0.0, t, crease)
    p, _ = _slope(shapes, gjk, _NUDGE, 0.0, t, crease)
    if not p > g:
        return False
    return _try_step(shapes, gjk, -g * _NUDGE / (p - g), t)


@njit
def _step(shapes: Shapes, gjk: GjkWork) -> bool:
    """Take a step in any direction; True if another one may help."""
    t = across(gjk.normal)
    t = times(1.0 / length(t), t)
    u = cross(gjk.normal, t)
    g0, g1 = _slope(shapes, gjk, 0.0, 0.0, t, u)
    p0, p1 = _slope(shapes, gjk, _NUDGE, 0.0, t, u)
    q0, q1 = _slope(shapes, gjk, 0.0, _NUDGE, t, u)
    h00, h11, h01 = (p0 - g0) / _NUDGE, (q1 - g1) / _NUDGE, 0.5 * (p1 - g1 + q0 - g0) / _NUDGE
    mean, half = 0.5 * (h00 + h11), 0.5 * (h00 - h11)
    most = mean + sqrt(half * half + h01 * h01)  # the eigenvalues: this and the smaller one
    if not most > 0.0:
        return False
    least = max(2.0 * mean - most, _EVEN * most)
    c, s = (most - h11, h01) if half > 0.0 else (h01, most - h00)
    size = sqrt(c * c + s * s)
    c, s = (c / size, s / size) if size > 0.0 else (1.0, 0.0)
    x, y = -(g0 * c + g1 * s) / most, -(g1 * c - g0 * s) / least
    x, y = c * x - s * y, s * x + c * y
    size = sqrt(x * x + y * y)
    factor = 1.0 / size if size > 0.0 else 0.0
    return _try_step(shapes, gjk, size, combined(factor * x, t, factor * y, u))


@njit
def _try_step(shapes: Shapes, gjk: GjkWork, size: float, t: Vec3) -> bool:
    """Rotate the normal by `size` [rad] towards the orthogonal t if that is better; True if another step may help."""
    size = min(max(size, -_FARTHEST), _FARTHEST)
    if not try_towards(shapes, gjk, plus_times(gjk.normal, size, t), 0.0):
        return False
    gjk.loose[0] = inf
    return bool(abs(size) > _ENOUGH)


@njit
def _slope(shapes: Shapes, gjk: GjkWork, x: float, y: float, t: Vec3, u: Vec3) -> tuple[float, float]:
    """Derivatives by x and y of the cores' extent along m = n + x t + y u, per length of m."""
    m = plus_times(plus_times(gjk.normal, x, t), y, u)
    w0, w1, w2, _, _, _ = difference(shapes, gjk, m)
    w = (w0, w1, w2)
    square = dot(m, m)
    size = sqrt(square)
    share = dot(w, m) / square
    return (dot(w, t) - share * x) / size, (dot(w, u) - share * y) / size


@njit
def place_points(shapes: Shapes, gjk: GjkWork) -> None:
    """Find the contact points of an overlap with known normal: b is moved out along it to find the nearest points.

    EPA's face does not give the points if it is not on the surface, as for concentric shapes, for which many directions
    are equally deep.
    """
    normal = triple(gjk.normal)
    way = _OUT * gjk.scale[1] - gjk.gap[0] - gjk.radius[0] - gjk.radius[1]
    put(gjk.offset, plus_times(gjk.offset, way, normal))
    state = approach(shapes, gjk, negative(normal), _FAR, _ROUNDING * gjk.scale[0])
    put(gjk.offset, minus_times(gjk.offset, way, gjk.normal))
    if state != NEAR:
        return
    point = times(gjk.radius[0], normal)
    for i in range(gjk.points[0]):
        point = plus_times(point, gjk.weight[i], point_of_a(gjk.simplex, i))
    set_row(gjk.point, 0, point)
    set_row(gjk.point, 1, plus_times(point, gjk.gap[0], normal))
    try_normal(shapes, gjk, times(-1.0 / length(gjk.nearest), gjk.nearest), 0.0)
