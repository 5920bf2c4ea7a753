"""A triangle mesh that does not move and a convex shape: contacts of the triangles near it.

Triangles have a front only, the side from which their corners are seen counter-clockwise. The edges between them must
not catch: a contact's normal stays within the normals of the triangles that meet at the edge, so that a shape slides
over a tessellated floor as over a plane. When the middle of the shape is behind its nearest triangle, that one pushes.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from artsim.collision.convex import add_manifold, add_nearest, add_overlap, find_nearest, touches_once
from artsim.collision.shapes import SPHERE
from artsim.collision.support import begin_pair, begin_triangle, difference, support
from artsim.sim.jit import inlined, njit

MOST_KEPT = 16  # contacts of a pair
FULL = 40  # contacts before which they are thinned out: one triangle adds up to nine
SAME = 1e-5  # of the shape's reach: contacts that near to each other are one
LEVEL = 1e-5  # tangent of the angle at an edge below which it is none
STEEP = 50.0  # tangent beyond which an edge is as good as sharp
DEEPER = 2.0  # how many times deeper than need be a normal may say that they are that was bent
TIE = 1e-9  # relative: distances of triangles at the same edge or corner; a front counts before a back
TOUCHING = 1e-5  # of the sizes: gaps below which the points that are nearest say nothing of the normal
CONCAVE = -1.0
SHARP = inf
APART, STRAIGHT, BENT = 0, 1, 2
STRIDE = 1 << 32  # features of a triangle


@njit
def triangles_convex(shapes: Any, placed: Any, gjk: Any, a: int, b: int, margin: Any, manifold: Any) -> None:
    """The kernel of a triangle mesh and a sphere, capsule, ellipsoid, cylinder, box or convex mesh."""
    l0, l1, l2, h0, h1, h2 = box_of(shapes, placed, gjk, a, b, margin)
    first = manifold.number[0]
    mesh = shapes.mesh[a]
    node = shapes.node_start[mesh]
    end = shapes.node_start[mesh + 1]
    nearest = inf
    behind = -1
    left_out = -inf
    crossed = -1
    while node < end:
        B = shapes.node_box[node]
        if B[0] > h0 or B[1] > h1 or B[2] > h2 or B[3] < l0 or B[4] < l1 or B[5] < l2:
            node = shapes.node_skip[node]
            continue
        for t in range(shapes.node_triangle[node, 0], shapes.node_triangle[node, 1]):
            if _is_near(shapes, t, l0, l1, l2, h0, h1, h2):
                begin_triangle(shapes, placed, gjk, a, b, _corners(shapes, t), 0.0)
                height, distance = look_at(gjk)
                if distance < nearest * (1.0 + TIE) and (height >= 0.0 or distance < nearest * (1.0 - TIE)):
                    nearest = distance
                    behind = t if height < 0.0 else -1
                if height >= 0.0 and find_touch(shapes, gjk, b, margin):
                    make_room(gjk, manifold, first)
                    rises = _rise(shapes, t, 0), _rise(shapes, t, 1), _rise(shapes, t, 2)
                    peaks = _is_peak(shapes, gjk, t, 0), _is_peak(shapes, gjk, t, 1), _is_peak(shapes, gjk, t, 2)
                    gap = add_touch(shapes, gjk, margin, manifold, rises, peaks, STRIDE * t)
                    if gap > left_out:
                        left_out = gap
                        crossed = t
        node += 1
    pushing = behind if behind >= 0 else crossed
    if pushing >= 0 and not is_touched(manifold, first):
        begin_triangle(shapes, placed, gjk, a, b, _corners(shapes, pushing), 0.0)
        push_out(shapes, gjk, margin, manifold, STRIDE * pushing)
    merge(manifold, first, SAME * shapes.reach[b])
    thin_out(gjk, manifold, first, MOST_KEPT)


@inlined
def _corners(shapes: Any, t: int) -> Any:
    """The nine numbers of a triangle's corners."""
    V = shapes.vertex
    i, j, l = shapes.triangle[t, 0], shapes.triangle[t, 1], shapes.triangle[t, 2]
    return V[i, 0], V[i, 1], V[i, 2], V[j, 0], V[j, 1], V[j, 2], V[l, 0], V[l, 1], V[l, 2]


@inlined
def _is_near(shapes: Any, t: int, l0: Any, l1: Any, l2: Any, h0: Any, h1: Any, h2: Any) -> bool:
    """Whether a triangle's bounding box meets the box from l to h."""
    p0, p1, p2, q0, q1, q2, r0, r1, r2 = _corners(shapes, t)
    outside = min(p0, q0, r0) > h0 or min(p1, q1, r1) > h1 or min(p2, q2, r2) > h2
    return not (outside or max(p0, q0, r0) < l0 or max(p1, q1, r1) < l1 or max(p2, q2, r2) < l2)


@njit
def _rise(shapes: Any, t: int, e: int) -> Any:
    """How far normals may lean over edge e of a triangle: `rise_over`, by the triangle across it."""
    other = shapes.triangle_across[t, e]
    if other < 0:
        return SHARP
    V = shapes.vertex
    i, j = shapes.triangle[t, e], shapes.triangle[t, (e + 1) % 3]
    far = shapes.triangle[other, 0]
    for corner in range(3):
        candidate = shapes.triangle[other, corner]
        if candidate != i and candidate != j:
            far = candidate
    own = shapes.triangle[t, (e + 2) % 3]
    p0, p1, p2 = V[i, 0], V[i, 1], V[i, 2]
    return rise_over(
        V[j, 0] - p0,
        V[j, 1] - p1,
        V[j, 2] - p2,
        V[own, 0] - p0,
        V[own, 1] - p1,
        V[own, 2] - p2,
        V[far, 0] - p0,
        V[far, 1] - p1,
        V[far, 2] - p2,
    )


@njit
def _is_peak(shapes: Any, gjk: Any, t: int, corner: int) -> bool:
    """Whether no edge from a corner rises along the normal."""
    V = shapes.vertex
    v = shapes.triangle[t, corner]
    for e in range(shapes.neighbour_start[v], shapes.neighbour_start[v + 1]):
        w = shapes.neighbour[e]
        if rises(gjk, V[w, 0] - V[v, 0], V[w, 1] - V[v, 1], V[w, 2] - V[v, 2]):
            return False
    return True


@inlined
def rises(gjk: Any, e0: Any, e1: Any, e2: Any) -> bool:
    """Whether an edge rises along the normal."""
    along = gjk.normal[0] * e0 + gjk.normal[1] * e1 + gjk.normal[2] * e2
    return bool(along > LEVEL * sqrt(e0 * e0 + e1 * e1 + e2 * e2))


@inlined
def rise_over(e0: Any, e1: Any, e2: Any, o0: Any, o1: Any, o2: Any, f0: Any, f1: Any, f2: Any) -> Any:
    """The tangent of the angle by which the surface falls behind an edge; 0: it goes on level, CONCAVE: it rises,
    SHARP: it falls steeply. Seen from the edge's begin: its end e, the triangle's own far corner o, the other one's f.
    """
    n0, n1, n2 = e1 * o2 - e2 * o1, e2 * o0 - e0 * o2, e0 * o1 - e1 * o0  # normal, of any length
    m0, m1, m2 = e1 * n2 - e2 * n1, e2 * n0 - e0 * n2, e0 * n1 - e1 * n0  # over the edge, |m| = |e| |n|
    length = sqrt(e0 * e0 + e1 * e1 + e2 * e2)
    down = -(n0 * f0 + n1 * f1 + n2 * f2) * length
    forth = m0 * f0 + m1 * f1 + m2 * f2
    size = sqrt(down * down + forth * forth)
    if abs(down) <= LEVEL * size:
        return 0.0 if forth >= 0.0 else SHARP
    if down < 0.0:
        return CONCAVE
    return down / forth if forth * STEEP > down else SHARP


# ------------------------------------------------------------------ one triangle


@njit
def box_of(shapes: Any, placed: Any, gjk: Any, a: int, b: int, margin: Any) -> Any:
    """The lowest and highest corner of the box around b in a's axes, margin included."""
    begin_pair(shapes, placed, gjk, a, b)
    grown = gjk.radius[1] + margin
    return (
        gjk.offset[0] - _extent(shapes, gjk, 0, -1.0) - grown,
        gjk.offset[1] - _extent(shapes, gjk, 1, -1.0) - grown,
        gjk.offset[2] - _extent(shapes, gjk, 2, -1.0) - grown,
        gjk.offset[0] + _extent(shapes, gjk, 0, 1.0) + grown,
        gjk.offset[1] + _extent(shapes, gjk, 1, 1.0) + grown,
        gjk.offset[2] + _extent(shapes, gjk, 2, 1.0) + grown,
    )


@inlined
def _extent(shapes: Any, gjk: Any, axis: int, sign: Any) -> Any:
    """How far the core of b reaches from its origin along an axis of a."""
    R = gjk.rotation
    d0, d1, d2 = sign * R[axis, 0], sign * R[axis, 1], sign * R[axis, 2]
    s0, s1, s2 = support(shapes, gjk, 1, d0, d1, d2)
    return d0 * s0 + d1 * s1 + d2 * s2


@njit
def look_at(gjk: Any) -> Any:
    """How high the origin of b is above the triangle's plane, and how far from the triangle. Of a sphere that is all:
    gjk.normal, gjk.point[0] and gjk.gap (without the radius) too.
    """
    T = gjk.triangle
    n0, n1, n2 = normal_of(gjk)
    q0, q1, q2 = gjk.offset[0], gjk.offset[1], gjk.offset[2]
    height = n0 * q0 + n1 * q1 + n2 * q2
    u, v = _nearest_on(T, q0, q1, q2)
    distance = 0.0
    for axis in range(3):
        gjk.point[0, axis] = u * T[1, axis] + v * T[2, axis]
        gjk.normal[axis] = gjk.offset[axis] - gjk.point[0, axis]
        distance += gjk.normal[axis] * gjk.normal[axis]
    distance = sqrt(distance)
    gjk.gap[0] = distance
    near = distance <= 1e-9 * gjk.scale[0]
    gjk.normal[0] = n0 if near else gjk.normal[0] / distance
    gjk.normal[1] = n1 if near else gjk.normal[1] / distance
    gjk.normal[2] = n2 if near else gjk.normal[2] / distance
    return height, distance


@inlined
def normal_of(gjk: Any) -> Any:
    """The unit normal of the triangle's front, gjk's axes."""
    T = gjk.triangle
    n0 = T[1, 1] * T[2, 2] - T[1, 2] * T[2, 1]
    n1 = T[1, 2] * T[2, 0] - T[1, 0] * T[2, 2]
    n2 = T[1, 0] * T[2, 1] - T[1, 1] * T[2, 0]
    factor = 1.0 / sqrt(n0 * n0 + n1 * n1 + n2 * n2)
    return factor * n0, factor * n1, factor * n2


@inlined
def _nearest_on(T: Any, q0: Any, q1: Any, q2: Any) -> Any:
    """The point of a triangle nearest to q: its weights along the edges from the first corner to the other two
    (Ericson, Real-Time Collision Detection, 5.1.5).
    """
    d1 = T[1, 0] * q0 + T[1, 1] * q1 + T[1, 2] * q2
    d2 = T[2, 0] * q0 + T[2, 1] * q1 + T[2, 2] * q2
    g11 = T[1, 0] * T[1, 0] + T[1, 1] * T[1, 1] + T[1, 2] * T[1, 2]
    g12 = T[1, 0] * T[2, 0] + T[1, 1] * T[2, 1] + T[1, 2] * T[2, 2]
    g22 = T[2, 0] * T[2, 0] + T[2, 1] * T[2, 1] + T[2, 2] * T[2, 2]
    if d1 <= 0.0 and d2 <= 0.0:
        return 0.0, 0.0
    d3, d4 = d1 - g11, d2 - g12
    if d3 >= 0.0 and d4 <= d3:
        return 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        return d1 / g11, 0.0
    d5, d6 = d1 - g12, d2 - g22
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        return 0.0, d2 / g22
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 >= d3 and d5 >= d6:
        w = (d4 - d3) / (d4 - d3 + d5 - d6)
        return 1.0 - w, w
    total = va + vb + vc
    return vb / total, vc / total


@njit
def find_touch(shapes: Any, gjk: Any, b: int, margin: Any) -> bool:
    """`find_nearest`, after `look_at`, which has it for a sphere."""
    if shapes.kind[b] != SPHERE:
        return find_nearest(shapes, gjk, margin)
    gjk.gap[0] -= gjk.radius[1]
    for axis in range(3):
        gjk.point[1, axis] = gjk.point[0, axis] + gjk.gap[0] * gjk.normal[axis]
    return bool(gjk.gap[0] < margin)


@njit
def add_touch(
    shapes: Any,
    gjk: Any,
    margin: Any,
    manifold: Any,
    rises: tuple[Any, Any, Any],
    peaks: tuple[Any, Any, Any],
    feature: int,
) -> Any:
    """The contacts of what `find_touch` found, their normal within what the triangles across the edges (`rise_over`)
    and around the corners (`peaks`: no edge from it rises along the normal) allow.

    Where there are none though the shape crosses the triangle: the gap along the triangle's normal; -inf elsewhere.
    """
    first = manifold.number[0]
    nearest = gjk.gap[0]
    crosses = nearest < 0.0
    leaning = _lean(shapes, gjk, margin, rises, peaks)
    if leaning != APART:
        add_manifold(shapes, gjk, margin, manifold, feature)
        if leaning == BENT and crosses:
            for i in range(first, manifold.number[0]):
                manifold.gap[i] = max(manifold.gap[i], nearest)
    elif not (crosses or touches_once(gjk)):  # another triangle is nearer: here only what may come down flat counts
        _turn_to(shapes, gjk, *normal_of(gjk))
        if gjk.gap[0] < margin:
            add_overlap(shapes, gjk, nearest, margin, manifold, feature)
    if manifold.number[0] > first or not crosses:
        return -inf
    n0, n1, n2 = normal_of(gjk)
    _turn_to(shapes, gjk, n0, n1, n2)
    return gjk.gap[0]


@njit
def _lean(shapes: Any, gjk: Any, margin: Any, rises: tuple[Any, Any, Any], peaks: tuple[Any, Any, Any]) -> int:
    """Bend the normal into the range of the edges over which it leans; APART unless the two are then nearer than
    margin, BENT where the depth along the normal is that of another triangle's front.
    """
    T = gjk.triangle
    n0, n1, n2 = normal_of(gjk)
    up = gjk.normal[0] * n0 + gjk.normal[1] * n1 + gjk.normal[2] * n2
    l0, l1, l2 = gjk.normal[0] - up * n0, gjk.normal[1] - up * n1, gjk.normal[2] - up * n2
    value1 = l0 * T[1, 0] + l1 * T[1, 1] + l2 * T[1, 2]
    value2 = l0 * T[2, 0] + l1 * T[2, 1] + l2 * T[2, 2]
    i = 0
    if value1 > 0.0 or value2 > 0.0:
        i = 1 if value1 >= value2 else 2
    j = 2 if i == 0 else i - 1  # the edge that ends at the corner that lies farthest along the normal
    a0, a1, a2 = _over(gjk, i, n0, n1, n2)
    b0, b1, b2 = _over(gjk, j, n0, n1, n2)
    cosine = a0 * b0 + a1 * b1 + a2 * b2
    along_a = l0 * a0 + l1 * a1 + l2 * a2
    along_b = l0 * b0 + l1 * b1 + l2 * b2
    det = max(1.0 - cosine * cosine, 1e-12)
    x = max((along_a - cosine * along_b) / det, 0.0)
    y = max((along_b - cosine * along_a) / det, 0.0)
    if min(x, y) > LEVEL and _of(peaks, i):
        return STRAIGHT
    rise_a = _of(rises, i)
    rise_b = _of(rises, j)
    upright = max(up, 0.0)
    if up <= 0.0 and rise_a < SHARP and rise_b < SHARP:
        upright = 1.0
        x = rise_a if x > y else 0.0
        y = rise_b if x == 0.0 else 0.0
    xx = min(x, max(rise_a, 0.0) * upright) if rise_a < SHARP else x
    yy = min(y, max(rise_b, 0.0) * upright) if rise_b < SHARP else y
    xx = max(xx, 0.0)
    yy = max(yy, 0.0)
    if up > 0.0 and x - xx < 2.0 * LEVEL and y - yy < 2.0 * LEVEL:
        return STRAIGHT
    if gjk.gap[0] > TOUCHING * gjk.scale[0]:
        return APART  # another triangle is nearer
    m0 = upright * n0 + xx * a0 + yy * b0
    m1 = upright * n1 + xx * a1 + yy * b1
    m2 = upright * n2 + xx * a2 + yy * b2
    length = sqrt(m0 * m0 + m1 * m1 + m2 * m2)
    if length < 1e-9:
        return APART
    least = min(DEEPER * gjk.gap[0], -TOUCHING * gjk.scale[0])
    _turn_to(shapes, gjk, m0 / length, m1 / length, m2 / length)
    if gjk.gap[0] >= margin:
        return APART
    shallow = gjk.gap[0] > least
    if xx > 0.0 or yy > 0.0:
        return BENT if shallow else APART
    if _is_over(gjk, n0, n1, n2, rises, False):
        return STRAIGHT
    return BENT if _is_over(gjk, n0, n1, n2, rises, shallow) else APART  # the farthest point is another triangle's


@inlined
def _of(three: tuple[Any, Any, Any], i: int) -> Any:
    """One of three."""
    a, b, c = three
    return a if i == 0 else (b if i == 1 else c)


@inlined
def _over(gjk: Any, i: int, n0: Any, n1: Any, n2: Any) -> Any:
    """The unit vector in the triangle's plane that leads out over the edge from corner i on."""
    T = gjk.triangle
    j = (i + 1) % 3
    e0, e1, e2 = T[j, 0] - T[i, 0], T[j, 1] - T[i, 1], T[j, 2] - T[i, 2]
    m0, m1, m2 = e1 * n2 - e2 * n1, e2 * n0 - e0 * n2, e0 * n1 - e1 * n0
    factor = 1.0 / sqrt(m0 * m0 + m1 * m1 + m2 * m2)
    return factor * m0, factor * m1, factor * m2


@njit
def _turn_to(shapes: Any, gjk: Any, n0: Any, n1: Any, n2: Any) -> None:
    """Take another normal: the gap along it, between the points that lie farthest along it."""
    w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, n0, n1, n2)
    gjk.normal[0] = n0
    gjk.normal[1] = n1
    gjk.normal[2] = n2
    gap = -(n0 * w0 + n1 * w1 + n2 * w2) - gjk.radius[1]
    gjk.gap[0] = gap
    gjk.point[1, 0] = a0 - w0 - gjk.radius[1] * n0
    gjk.point[1, 1] = a1 - w1 - gjk.radius[1] * n1
    gjk.point[1, 2] = a2 - w2 - gjk.radius[1] * n2
    for axis in range(3):
        gjk.point[0, axis] = gjk.point[1, axis] - gap * gjk.normal[axis]


@njit
def _is_over(gjk: Any, n0: Any, n1: Any, n2: Any, rises: tuple[Any, Any, Any], shallow: bool) -> bool:
    """Whether the point of b lies over the triangle; when shallow, also behind an edge where the surface rises."""
    T = gjk.triangle
    for i in range(3):
        m0, m1, m2 = _over(gjk, i, n0, n1, n2)
        x0, x1, x2 = gjk.point[1, 0] - T[i, 0], gjk.point[1, 1] - T[i, 1], gjk.point[1, 2] - T[i, 2]
        if not (shallow and _of(rises, i) == CONCAVE) and m0 * x0 + m1 * x1 + m2 * x2 > 1e-9 * gjk.scale[0]:
            return False
    return True


@inlined
def is_touched(manifold: Any, first: int) -> bool:
    """Whether a contact has depth."""
    for i in range(first, manifold.number[0]):
        if manifold.gap[i] < 0.0:
            return True
    return False


@njit
def push_out(shapes: Any, gjk: Any, margin: Any, manifold: Any, feature: int) -> None:
    """A contact along the triangle's normal, whatever is in between."""
    n0, n1, n2 = normal_of(gjk)
    _turn_to(shapes, gjk, n0, n1, n2)
    if gjk.gap[0] < margin:
        add_nearest(gjk, manifold, feature)


# ------------------------------------------------------------------ what is kept


@inlined
def make_room(gjk: Any, manifold: Any, first: int) -> None:
    """Thin out the contacts from `first` on when those of a triangle might not fit any more."""
    if manifold.number[0] >= FULL:
        thin_out(gjk, manifold, first, MOST_KEPT)


@njit
def merge(manifold: Any, first: int, tolerance: Any) -> None:
    """Contacts at the same point with the same normal become the deepest of them."""
    kept = first
    for i in range(first, manifold.number[0]):
        found = -1
        for j in range(first, kept):
            d0 = manifold.point[i, 0] - manifold.point[j, 0]
            d1 = manifold.point[i, 1] - manifold.point[j, 1]
            d2 = manifold.point[i, 2] - manifold.point[j, 2]
            cosine = (
                manifold.normal[i, 0] * manifold.normal[j, 0]
                + manifold.normal[i, 1] * manifold.normal[j, 1]
                + manifold.normal[i, 2] * manifold.normal[j, 2]
            )
            if d0 * d0 + d1 * d1 + d2 * d2 <= tolerance * tolerance and cosine > 0.999:
                found = j
        if found < 0:
            _move(manifold, i, kept)
            kept += 1
        elif manifold.gap[i] < manifold.gap[found]:
            _move(manifold, i, found)
    manifold.number[0] = kept


@inlined
def _move(manifold: Any, i: int, j: int) -> None:
    """Contact i takes the place of j."""
    manifold.gap[j] = manifold.gap[i]
    manifold.feature[j] = manifold.feature[i]
    for axis in range(3):
        manifold.point[j, axis] = manifold.point[i, axis]
        manifold.normal[j, axis] = manifold.normal[i, axis]


@njit
def thin_out(gjk: Any, manifold: Any, first: int, most: int) -> None:
    """Of many contacts the deepest and those farthest from all that are kept, in their order."""
    end = manifold.number[0]
    if end - first <= most:
        return
    away = gjk.distance  # scratch that is free now
    chosen = first
    for i in range(first, end):
        away[i] = inf
        if manifold.gap[i] < manifold.gap[chosen]:
            chosen = i
    for _ in range(most):
        for i in range(first, end):
            d0 = manifold.point[i, 0] - manifold.point[chosen, 0]
            d1 = manifold.point[i, 1] - manifold.point[chosen, 1]
            d2 = manifold.point[i, 2] - manifold.point[chosen, 2]
            away[i] = min(away[i], d0 * d0 + d1 * d1 + d2 * d2)
        away[chosen] = -1.0  # kept
        for i in range(first, end):
            if away[i] > away[chosen]:
                chosen = i
    kept = first
    for i in range(first, end):
        if away[i] == -1.0:
            _move(manifold, i, kept)
            kept += 1
    manifold.number[0] = kept
