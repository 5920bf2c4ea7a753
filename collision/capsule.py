"""Capsules: with capsules and boxes. Both are segments with a radius: what is exact for segments is exact for them."""

from __future__ import annotations

from typing import Any

from artsim.collision.frames import axis, centre, clamp, dot, into, turned, turned_back
from artsim.collision.sphere import NEAR, add_ball, direction, from_box
from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import sqrt

ALONG = 0.01  # sine of the angle of two capsules below which they lie along each other
SAME = 1e-9  # relative: distances that differ by less are one
BESIDE = 0.1  # cosine of the normal and an axis of a box below which a capsule is beside the faces across that axis
APART = 0.01  # of the radius: contacts nearer to each other are one


@inlined
def alike(n0: Any, n1: Any, n2: Any, m0: Any, m1: Any, m2: Any) -> Any:
    """Whether two unit normals are one."""
    return max(abs(n0 - m0), max(abs(n1 - m1), abs(n2 - m2))) < SAME


@inlined
def ball_on_capsule(
    placed: Any, a: Any, b: Any, s: Any, hb: Any, ra: Any, rb: Any, least: Any, f0: Any, f1: Any, f2: Any
) -> Any:
    """Capsule a's ball at s along its axis against capsule b: centre, distance, normal."""
    u0, u1, u2 = axis(placed, a, 2)
    v0, v1, v2 = axis(placed, b, 2)
    x0, x1, x2 = centre(placed, a)
    x0 += s * u0
    x1 += s * u1
    x2 += s * u2
    y0, y1, y2 = centre(placed, b)
    t = clamp(dot(x0 - y0, x1 - y1, x2 - y2, v0, v1, v2), hb)
    d, n0, n1, n2 = direction(y0 + t * v0 - x0, y1 + t * v1 - x1, y2 + t * v2 - x2, least, f0, f1, f2)
    return x0, x1, x2, d - ra - rb, n0, n1, n2


@njit
def capsule_capsule(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """The nearest points (feature 0); of capsules along each other the ends of their common part (1, 2) too.

    Nearest points of two segments: Ericson, Real-Time Collision Detection, 5.1.9, with the part of b's axis across
    a's, so that nearly parallel ones lose no digits.
    """
    u0, u1, u2 = axis(placed, a, 2)
    v0, v1, v2 = axis(placed, b, 2)
    x0, x1, x2 = centre(placed, a)
    y0, y1, y2 = centre(placed, b)
    r0 = y0 - x0
    r1 = y1 - x1
    r2 = y2 - x2
    ha = shapes.size[a, 1]
    hb = shapes.size[b, 1]
    ra = shapes.size[a, 0]
    rb = shapes.size[b, 0]
    if sqrt(dot(r0, r1, r2, r0, r1, r2)) - (ha + hb + ra + rb) >= margin:
        return
    k = dot(u0, u1, u2, v0, v1, v2)
    w0 = u0 - k * v0
    w1 = u1 - k * v1
    w2 = u2 - k * v2
    across = dot(w0, w1, w2, w0, w1, w2)
    along_a = dot(r0, r1, r2, u0, u1, u2)
    along_b = dot(r0, r1, r2, v0, v1, v2)
    s = 0.0
    if across > 1e-30:
        s = clamp(dot(w0, w1, w2, r0 - along_b * v0, r1 - along_b * v1, r2 - along_b * v2) / across, ha)
    t = k * s - along_b
    if abs(t) > hb:
        t = clamp(t, hb)
        s = clamp(along_a + k * t, ha)
    # where the axes meet the way out is across both
    f0 = u1 * v2 - u2 * v1
    f1 = u2 * v0 - u0 * v2
    f2 = u0 * v1 - u1 * v0
    e0, e1, e2 = axis(placed, a, 0)
    _, f0, f1, f2 = direction(f0, f1, f2, 1e-8, e0, e1, e2)
    if dot(f0, f1, f2, r0, r1, r2) < 0.0:
        f0 = -f0
        f1 = -f1
        f2 = -f2
    least = NEAR * (ra + rb + ha + hb)
    z0, z1, z2, gap, n0, n1, n2 = ball_on_capsule(placed, a, b, s, hb, ra, rb, least, f0, f1, f2)
    if gap >= margin:
        return
    if across < ALONG * ALONG:
        low = max(along_a - abs(k) * hb, -ha)
        high = min(along_a + abs(k) * hb, ha)
        if high - low > APART * (ra + rb):
            p0, p1, p2, first, m0, m1, m2 = ball_on_capsule(placed, a, b, low, hb, ra, rb, least, f0, f1, f2)
            add_ball(manifold, margin, p0, p1, p2, ra, first, m0, m1, m2, 1)
            known = alike(n0, n1, n2, m0, m1, m2) and first <= gap + SAME * (ha + hb)
            p0, p1, p2, second, m0, m1, m2 = ball_on_capsule(placed, a, b, high, hb, ra, rb, least, f0, f1, f2)
            add_ball(manifold, margin, p0, p1, p2, ra, second, m0, m1, m2, 2)
            if known or (alike(n0, n1, n2, m0, m1, m2) and second <= gap + SAME * (ha + hb)):
                return
    add_ball(manifold, margin, z0, z1, z2, ra, gap, n0, n1, n2, 0)


@inlined
def slope(h0: Any, h1: Any, h2: Any, x0: Any, x1: Any, x2: Any, u0: Any, u1: Any, u2: Any, t: Any) -> Any:
    """Half the derivative by t of the squared distance of x + t u from a box; grows with t."""
    y0 = x0 + t * u0
    y1 = x1 + t * u1
    y2 = x2 + t * u2
    return dot(u0, u1, u2, y0 - clamp(y0, h0), y1 - clamp(y1, h1), y2 - clamp(y2, h2))


@njit
def nearest_on_segment(h0: Any, h1: Any, h2: Any, x0: Any, x1: Any, x2: Any, u0: Any, u1: Any, u2: Any, h: Any) -> Any:
    """The t in [-h, h] where x + t u is nearest to a box.

    The slope is linear between the six t at which a face's plane is crossed: they shrink the interval around its zero.
    """
    low = -h
    high = h
    g_low = slope(h0, h1, h2, x0, x1, x2, u0, u1, u2, low)
    if g_low >= 0.0:
        return low
    g_high = slope(h0, h1, h2, x0, x1, x2, u0, u1, u2, high)
    if g_high <= 0.0:
        return high
    for k in range(6):
        u = u0 if k < 2 else (u1 if k < 4 else u2)
        x = x0 if k < 2 else (x1 if k < 4 else x2)
        e = h0 if k < 2 else (h1 if k < 4 else h2)
        if abs(u) > 1e-12:
            t = ((e if k & 1 else -e) - x) / u
            if low < t and t < high:
                g = slope(h0, h1, h2, x0, x1, x2, u0, u1, u2, t)
                if g < 0.0:
                    low = t
                    g_low = g
                else:
                    high = t
                    g_high = g
    return low - g_low * (high - low) / (g_high - g_low)


@inlined
def shrink(low: Any, high: Any, h: Any, x: Any, u: Any) -> Any:
    """What of [low, high] has |x + t u| <= h."""
    if abs(u) > 1e-12:
        middle = -x / u
        half = abs(h / u)
        low = max(low, middle - half)
        high = min(high, middle + half)
    return low, high


@njit
def capsule_box(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """The nearest points and, where the capsule lies along a face or an edge, the other end of what they share.

    Features: 0 and 1 the lower and the higher of two along the axis, 2 one alone.
    """
    p0, p1, p2 = centre(placed, a)
    x0, x1, x2 = into(placed, b, p0, p1, p2)
    p0, p1, p2 = axis(placed, a, 2)
    u0, u1, u2 = turned_back(placed, b, p0, p1, p2)
    h0 = shapes.size[b, 0]
    h1 = shapes.size[b, 1]
    h2 = shapes.size[b, 2]
    radius = shapes.size[a, 0]
    h = shapes.size[a, 1]
    if max(abs(x0) - h0 - h * abs(u0), max(abs(x1) - h1 - h * abs(u1), abs(x2) - h2 - h * abs(u2))) - radius >= margin:
        return
    t = nearest_on_segment(h0, h1, h2, x0, x1, x2, u0, u1, u2, h)
    d, m0, m1, m2 = from_box(h0, h1, h2, x0 + t * u0, x1 + t * u1, x2 + t * u2)
    if d - radius >= margin:
        return
    size = h0 + h1 + h2
    if d <= NEAR * size:
        axis_through_box(shapes, placed, a, b, x0, x1, x2, u0, u1, u2, margin, manifold)
        return
    low = -h
    high = h
    if abs(m0) < BESIDE:
        low, high = shrink(low, high, h0, x0, u0)
    if abs(m1) < BESIDE:
        low, high = shrink(low, high, h1, x1, u1)
    if abs(m2) < BESIDE:
        low, high = shrink(low, high, h2, x2, u2)
    near = low
    far = high
    if t - low > high - t:
        near = high
        far = low
    e, l0, l1, l2 = from_box(h0, h1, h2, x0 + near * u0, x1 + near * u1, x2 + near * u2)
    if e > d + SAME * size or not alike(l0, l1, l2, m0, m1, m2):
        near = t
    if high - low <= APART * radius:
        add_at(placed, a, b, h0, h1, h2, x0, x1, x2, u0, u1, u2, t, radius, margin, 2, manifold)
        return
    add_at(placed, a, b, h0, h1, h2, x0, x1, x2, u0, u1, u2, min(near, far), radius, margin, 0, manifold)
    add_at(placed, a, b, h0, h1, h2, x0, x1, x2, u0, u1, u2, max(near, far), radius, margin, 1, manifold)


@njit
def add_at(
    placed: Any,
    a: Any,
    b: Any,
    h0: Any,
    h1: Any,
    h2: Any,
    x0: Any,
    x1: Any,
    x2: Any,
    u0: Any,
    u1: Any,
    u2: Any,
    t: Any,
    radius: Any,
    margin: Any,
    feature: Any,
    manifold: Any,
) -> None:
    """The contact of the ball at x + t u with the box, both in its axes."""
    d, m0, m1, m2 = from_box(h0, h1, h2, x0 + t * u0, x1 + t * u1, x2 + t * u2)
    n0, n1, n2 = turned(placed, b, -m0, -m1, -m2)
    y0, y1, y2 = centre(placed, a)
    v0, v1, v2 = axis(placed, a, 2)
    add_ball(manifold, margin, y0 + t * v0, y1 + t * v1, y2 + t * v2, radius, d - radius, n0, n1, n2, feature)


@inlined
def edge_depth(h1: Any, h2: Any, x1: Any, x2: Any, u1: Any, u2: Any) -> Any:
    """Depth of a line in a rectangle, across the line; sine of the angle of line and edge too."""
    length = sqrt(u1 * u1 + u2 * u2)
    if length < 1e-8:
        return 1e300, length
    return (h1 * abs(u2) + h2 * abs(u1) - abs(x1 * u2 - x2 * u1)) / length, length


@njit
def axis_through_box(
    shapes: Any,
    placed: Any,
    a: Any,
    b: Any,
    x0: Any,
    x1: Any,
    x2: Any,
    u0: Any,
    u1: Any,
    u2: Any,
    margin: Any,
    manifold: Any,
) -> None:
    """Contacts of a capsule whose axis meets the box: the shortest way out, by separating axes.

    Those of a segment and a box are the box's normals and what is across both the segment and an edge.
    """
    h0 = shapes.size[b, 0]
    h1 = shapes.size[b, 1]
    h2 = shapes.size[b, 2]
    h = shapes.size[a, 1]
    bias = SAME * (h0 + h1 + h2)
    k = 0
    depth = h0 + h * abs(u0) - abs(x0)
    other = h1 + h * abs(u1) - abs(x1)
    if other < depth - bias:
        depth = other
        k = 1
    other = h2 + h * abs(u2) - abs(x2)
    if other < depth - bias:
        depth = other
        k = 2
    other, _ = edge_depth(h1, h2, x1, x2, u1, u2)
    if other < depth - bias:
        depth = other
        k = 3
    other, _ = edge_depth(h2, h0, x2, x0, u2, u0)
    if other < depth - bias:
        depth = other
        k = 4
    other, _ = edge_depth(h0, h1, x0, x1, u0, u1)
    if other < depth - bias:
        depth = other
        k = 5
    if k == 0:
        leave_by_face(shapes, placed, a, b, 0, h0, h1, h2, x0, x1, x2, u0, u1, u2, margin, manifold)
    elif k == 1:
        leave_by_face(shapes, placed, a, b, 1, h1, h2, h0, x1, x2, x0, u1, u2, u0, margin, manifold)
    elif k == 2:
        leave_by_face(shapes, placed, a, b, 2, h2, h0, h1, x2, x0, x1, u2, u0, u1, margin, manifold)
    elif k == 3:
        leave_by_edge(shapes, placed, a, b, 0, h1, h2, x1, x2, u1, u2, depth, margin, manifold)
    elif k == 4:
        leave_by_edge(shapes, placed, a, b, 1, h2, h0, x2, x0, u2, u0, depth, margin, manifold)
    else:
        leave_by_edge(shapes, placed, a, b, 2, h0, h1, x0, x1, u0, u1, depth, margin, manifold)


@njit
def leave_by_face(
    shapes: Any,
    placed: Any,
    a: Any,
    b: Any,
    k: Any,
    h0: Any,
    h1: Any,
    h2: Any,
    x0: Any,
    x1: Any,
    x2: Any,
    u0: Any,
    u1: Any,
    u2: Any,
    margin: Any,
    manifold: Any,
) -> None:
    """Both ends of what of the axis is over the face across the box's axis k; x, u, h begin with k."""
    h = shapes.size[a, 1]
    radius = shapes.size[a, 0]
    low, high = shrink(-h, h, h1, x1, u1)
    low, high = shrink(low, high, h2, x2, u2)
    out = 1.0 if x0 >= 0.0 else -1.0
    deep = low if out * u0 > 0.0 else high  # of the two, the one that is farther in
    m0, m1, m2 = axis(placed, b, k)
    v0, v1, v2 = axis(placed, a, 2)
    y0, y1, y2 = centre(placed, a)
    for end in range(2):
        t = high if end else low
        if t == deep or high - low > APART * radius:
            gap = out * (x0 + t * u0) - h0 - radius
            z0 = y0 + t * v0
            z1 = y1 + t * v1
            z2 = y2 + t * v2
            add_ball(manifold, margin, z0, z1, z2, radius, gap, -out * m0, -out * m1, -out * m2, end)
            if low == high:
                return


@njit
def leave_by_edge(
    shapes: Any,
    placed: Any,
    a: Any,
    b: Any,
    k: Any,
    h1: Any,
    h2: Any,
    x1: Any,
    x2: Any,
    u1: Any,
    u2: Any,
    depth: Any,
    margin: Any,
    manifold: Any,
) -> None:
    """The axis against an edge along the box's axis k; x, u, h are the two components after k."""
    radius = shapes.size[a, 0]
    length = sqrt(u1 * u1 + u2 * u2)
    w1 = u2 / length
    w2 = -u1 / length
    if x1 * w1 + x2 * w2 < 0.0:
        w1 = -w1
        w2 = -w2
    e1 = h1 if w1 >= 0.0 else -h1
    e2 = h2 if w2 >= 0.0 else -h2
    t = clamp(((e1 - x1) * u1 + (e2 - x2) * u2) / (length * length), shapes.size[a, 1])
    i0, i1, i2 = axis(placed, b, (k + 1) % 3)
    j0, j1, j2 = axis(placed, b, (k + 2) % 3)
    v0, v1, v2 = axis(placed, a, 2)
    y0, y1, y2 = centre(placed, a)
    n0 = -(w1 * i0 + w2 * j0)
    n1 = -(w1 * i1 + w2 * j1)
    n2 = -(w1 * i2 + w2 * j2)
    add_ball(manifold, margin, y0 + t * v0, y1 + t * v1, y2 + t * v2, radius, -depth - radius, n0, n1, n2, 2)
