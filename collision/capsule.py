"""Contacts of capsules with capsules and boxes, from exact distances of segments, to which the radius is added."""

from __future__ import annotations

from artsim.collision.frames import along_axes, axis, centre, clamp, into, turned
from artsim.collision.shapes import Pair
from artsim.collision.sphere import NO_DIRECTION, add_ball, beyond, direction, from_box
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import sqrt
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import (
    combined,
    component,
    cross,
    dot,
    length,
    minus,
    minus_times,
    negative,
    plus_times,
    row_of,
    shifted,
    times,
)

_ALONG = 0.01  # sine of the angle below which two capsules count as parallel
_SAME = 1e-9  # relative difference below which distances count as equal
_BESIDE = 0.1  # cosine of the normal and an axis of a box below which a capsule is beside the faces across that axis
_APART = 0.01  # relative to the radius: contacts closer to each other are merged
_NOWHERE = 1e300


@inlined
def alike(one: Vec3, two: Vec3) -> bool:
    """True if two unit normals are equal except for rounding."""
    return max(abs(one[0] - two[0]), max(abs(one[1] - two[1]), abs(one[2] - two[2]))) < _SAME


# ------------------------------------------------------------------ capsules


@inlined
def ball_on_capsule(pair: Pair, s: float, least: float, otherwise: Vec3) -> tuple[Vec3, float, Vec3]:
    """Capsule a's ball at s along its axis against capsule b: centre, distance and normal; see `direction`."""
    placed, size, a, b = pair.placed, pair.shapes.size, pair.a, pair.b
    v = axis(placed, b, 2)
    x = plus_times(centre(placed, a), s, axis(placed, a, 2))
    y = centre(placed, b)
    t = clamp(dot(minus(x, y), v), size[b, 1])
    d, normal = direction(minus(plus_times(y, t, v), x), least, otherwise)
    return x, d - size[a, 0] - size[b, 0], normal


@njit
def capsule_capsule(pair: Pair) -> None:
    """Add the nearest points (feature 0) and, for parallel capsules, the ends of their common part (1, 2).

    Nearest points of two segments: Ericson, Real-Time Collision Detection, 5.1.9, computed with the component of b's
    axis orthogonal to a's, so that nearly parallel axes lose no digits.
    """
    placed, a, b = pair.placed, pair.a, pair.b
    ra, ha, _ = row_of(pair.shapes.size, a)
    rb, hb, _ = row_of(pair.shapes.size, b)
    u = axis(placed, a, 2)
    v = axis(placed, b, 2)
    r = minus(centre(placed, b), centre(placed, a))
    if length(r) - (ha + hb + ra + rb) >= pair.margin:
        return
    k = dot(u, v)
    w = minus_times(u, k, v)
    across = dot(w, w)
    along_a = dot(r, u)
    along_b = dot(r, v)
    s = 0.0
    if across > 1e-30:
        s = clamp(dot(w, minus_times(r, along_b, v)) / across, ha)
    if abs(k * s - along_b) > hb:
        s = clamp(along_a + k * clamp(k * s - along_b, hb), ha)
    # if the axes intersect, the normal is orthogonal to both
    _, out = direction(cross(u, v), 1e-08, axis(placed, a, 0))
    if dot(out, r) < 0.0:
        out = negative(out)
    least = NO_DIRECTION * (ra + rb + ha + hb)
    x, gap, normal = ball_on_capsule(pair, s, least, out)
    if gap >= pair.margin:
        return
    if across < _ALONG * _ALONG:
        low = max(along_a - abs(k) * hb, -ha)
        high = min(along_a + abs(k) * hb, ha)
        if high - low > _APART * (ra + rb):
            most = gap + _SAME * (ha + hb)
            y, first, one = ball_on_capsule(pair, low, least, out)
            add_ball(pair, y, first, one, 1)
            y, second, two = ball_on_capsule(pair, high, least, out)
            add_ball(pair, y, second, two, 2)
            if (alike(normal, one) and first <= most) or (alike(normal, two) and second <= most):
                return
    add_ball(pair, x, gap, normal, 0)


# ------------------------------------------------------------------ capsule and box


@inlined
def slope(h: Vec3, x: Vec3, u: Vec3, t: float) -> float:
    """Half the derivative by t of the squared distance of x + t u from a box; it increases with t."""
    return dot(u, beyond(plus_times(x, t, u), h))


@njit
def nearest_on_segment(h: Vec3, x: Vec3, u: Vec3, half: float) -> float:
    """The t in [-half, half] where x + t u is nearest to a box of half extents h.

    The slope is linear between the six t at which a face's plane is cross: they shrink the interval around its zero.
    """
    low = -half
    high = half
    g_low = slope(h, x, u, low)
    if g_low >= 0.0:
        return low
    g_high = slope(h, x, u, high)
    if g_high <= 0.0:
        return high
    for k in range(6):
        along = component(u, k // 2)
        e = component(h, k // 2)
        if abs(along) > 1e-12:
            t = ((e if k & 1 else -e) - component(x, k // 2)) / along
            if low < t and t < high:
                g = slope(h, x, u, t)
                if g < 0.0:
                    low = t
                    g_low = g
                else:
                    high = t
                    g_high = g
    return low - g_low * (high - low) / (g_high - g_low)


@inlined
def shrink(low: float, high: float, h: float, x: float, u: float) -> tuple[float, float]:
    """The part of [low, high] where |x + t u| <= h."""
    if abs(u) > 1e-12:
        middle = -x / u
        half = abs(h / u)
        low = max(low, middle - half)
        high = min(high, middle + half)
    return low, high


@njit
def capsule_box(pair: Pair) -> None:
    """Add the nearest points and, for a capsule along a face or an edge, the other end of the common part.

    Features: 0 and 1 are the lower and the higher of two contacts along the axis, 2 is a single one.
    """
    placed, a, b = pair.placed, pair.a, pair.b
    x = into(placed, b, centre(placed, a))
    u = along_axes(placed, b, axis(placed, a, 2))
    h = row_of(pair.shapes.size, b)
    radius, half, _ = row_of(pair.shapes.size, a)
    apart = max(abs(x[1]) - h[1] - half * abs(u[1]), abs(x[2]) - h[2] - half * abs(u[2]))
    if max(abs(x[0]) - h[0] - half * abs(u[0]), apart) - radius >= pair.margin:
        return
    t = nearest_on_segment(h, x, u, half)
    d, away = from_box(h, plus_times(x, t, u))
    if d - radius >= pair.margin:
        return
    size = h[0] + h[1] + h[2]
    if d <= NO_DIRECTION * size:
        axis_through_box(pair, x, u)
        return
    low = -half
    high = half
    if abs(away[0]) < _BESIDE:
        low, high = shrink(low, high, h[0], x[0], u[0])
    if abs(away[1]) < _BESIDE:
        low, high = shrink(low, high, h[1], x[1], u[1])
    if abs(away[2]) < _BESIDE:
        low, high = shrink(low, high, h[2], x[2], u[2])
    near = low
    far = high
    if t - low > high - t:
        near = high
        far = low
    e, other = from_box(h, plus_times(x, near, u))
    if e > d + _SAME * size or not alike(other, away):
        near = t
    if high - low <= _APART * radius:
        add_at(pair, h, x, u, t, 2)
        return
    add_at(pair, h, x, u, min(near, far), 0)
    add_at(pair, h, x, u, max(near, far), 1)


@njit
def add_at(pair: Pair, h: Vec3, x: Vec3, u: Vec3, t: float, feature: int) -> None:
    """Add the contact of the ball at x + t u with the box, both in its axes."""
    d, away = from_box(h, plus_times(x, t, u))
    normal = turned(pair.placed, pair.b, negative(away))
    add_ball(pair, on_axis(pair, t), d - pair.shapes.size[pair.a, 0], normal, feature)


@inlined
def on_axis(pair: Pair, t: float) -> Vec3:
    """The point at t along the capsule's axis, world axes."""
    return plus_times(centre(pair.placed, pair.a), t, axis(pair.placed, pair.a, 2))


@inlined
def edge_depth(h: Vec3, x: Vec3, u: Vec3) -> float:
    """Penetration of a line in a box, orthogonal to the line and to an edge along the first axis."""
    across = sqrt(u[1] * u[1] + u[2] * u[2])
    if across < 1e-8:
        return _NOWHERE
    return (h[1] * abs(u[2]) + h[2] * abs(u[1]) - abs(x[1] * u[2] - x[2] * u[1])) / across


@inlined
def shallower(depth: float, k: int, other: float, j: int, bias: float) -> tuple[float, int]:
    """The smaller of two penetrations and its axis; the earlier axis if they are equal."""
    if other < depth - bias:
        return other, j
    return depth, k


@njit
def axis_through_box(pair: Pair, x: Vec3, u: Vec3) -> None:
    """Add contacts of a capsule whose axis intersects the box, along the axis of least penetration.

    The candidate axes of a segment and a box are the box's normals and the cross products of the segment and an edge.
    """
    h = row_of(pair.shapes.size, pair.b)
    half = pair.shapes.size[pair.a, 1]
    bias = _SAME * (h[0] + h[1] + h[2])
    h1, x1, u1 = shifted(h), shifted(x), shifted(u)
    h2, x2, u2 = shifted(h1), shifted(x1), shifted(u1)
    k = 0
    depth = h[0] + half * abs(u[0]) - abs(x[0])
    depth, k = shallower(depth, k, h[1] + half * abs(u[1]) - abs(x[1]), 1, bias)
    depth, k = shallower(depth, k, h[2] + half * abs(u[2]) - abs(x[2]), 2, bias)
    depth, k = shallower(depth, k, edge_depth(h, x, u), 3, bias)
    depth, k = shallower(depth, k, edge_depth(h1, x1, u1), 4, bias)
    depth, k = shallower(depth, k, edge_depth(h2, x2, u2), 5, bias)
    if k == 0:
        leave_by_face(pair, 0, h, x, u)
    elif k == 1:
        leave_by_face(pair, 1, h1, x1, u1)
    elif k == 2:
        leave_by_face(pair, 2, h2, x2, u2)
    elif k == 3:
        leave_by_edge(pair, 0, h, x, u, depth)
    elif k == 4:
        leave_by_edge(pair, 1, h1, x1, u1, depth)
    else:
        leave_by_edge(pair, 2, h2, x2, u2, depth)


@njit
def leave_by_face(pair: Pair, k: int, h: Vec3, x: Vec3, u: Vec3) -> None:
    """Add both ends of the part of the axis over the face across the box's axis k; h, x, u begin with k."""
    radius, half, _ = row_of(pair.shapes.size, pair.a)
    low, high = shrink(-half, half, h[1], x[1], u[1])
    low, high = shrink(low, high, h[2], x[2], u[2])
    out = 1.0 if x[0] >= 0.0 else -1.0
    deep = low if out * u[0] > 0.0 else high  # of the two, the one that penetrates farther
    normal = times(-out, axis(pair.placed, pair.b, k))
    for end in range(2):
        t = high if end else low
        if t == deep or high - low > _APART * radius:
            gap = out * (x[0] + t * u[0]) - h[0] - radius
            add_ball(pair, on_axis(pair, t), gap, normal, end)
            if low == high:
                return


@njit
def leave_by_edge(pair: Pair, k: int, h: Vec3, x: Vec3, u: Vec3, depth: float) -> None:
    """Add the contact of the axis with an edge along the box's axis k; h, x, u begin with k."""
    radius, half, _ = row_of(pair.shapes.size, pair.a)
    across = sqrt(u[1] * u[1] + u[2] * u[2])
    w1 = u[2] / across
    w2 = -u[1] / across
    if x[1] * w1 + x[2] * w2 < 0.0:
        w1 = -w1
        w2 = -w2
    e1 = h[1] if w1 >= 0.0 else -h[1]
    e2 = h[2] if w2 >= 0.0 else -h[2]
    t = clamp(((e1 - x[1]) * u[1] + (e2 - x[2]) * u[2]) / (across * across), half)
    way = combined(w1, axis(pair.placed, pair.b, (k + 1) % 3), w2, axis(pair.placed, pair.b, (k + 2) % 3))
    add_ball(pair, on_axis(pair, t), -depth - radius, negative(way), 2)
