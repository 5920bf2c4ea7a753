"""Contacts of a static triangle mesh with a convex shape, from the triangles near the shape.

Triangles are one-sided: their front is the side from which the corners are counter-clockwise. Internal edges must not
catch: a contact's normal stays within the normals of the triangles at the edge, so that a shape slides over a
tessellated floor as over a plane. If the middle of the shape is behind its nearest triangle, this triangle pushes it
out.
"""

from __future__ import annotations

from math import inf, sqrt

from artsim.collision.clipping import KEPT, keep_farthest
from artsim.collision.convex import add_manifold, add_nearest, add_overlap, find_nearest, touches_once
from artsim.collision.gjk_work import GjkWork
from artsim.collision.shapes import SPHERE, Manifold, Pair, Shapes
from artsim.collision.support import begin_pair, begin_triangle, difference, farthest_corner, front_of, support
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals2, Vec3
from artsim.sim.foundation.vec3 import (
    combined,
    component,
    cross,
    divided,
    dot,
    length,
    minus,
    minus_times,
    plus,
    plus_times,
    put,
    row_of,
    set_row,
    times,
    triple,
)

_MOST_KEPT = 16  # contacts kept per pair
_FULL = 40  # number of contacts at which they are thinned out; one triangle adds up to nine
_SAME = 1e-5  # relative to the shape's reach: contacts closer to each other are merged
_LEVEL = 1e-5  # tangent of the angle at an edge below which the edge counts as flat
_STEEP = 50.0  # tangent of the angle at an edge above which the edge counts as sharp
_DEEPER = 2.0  # largest ratio by which a bent normal may exaggerate the depth
_TIE = 1e-9  # relative difference of distances of triangles at one edge or corner; fronts take precedence over backs
_TOUCHING = 1e-5  # relative to the sizes: gaps below which the nearest points do not define the normal
_CONCAVE = -1.0
FALLING = inf
_APART, _STRAIGHT, _BENT = 0, 1, 2
STRIDE = 1 << 32  # number of features per triangle


@njit
def triangles_convex(pair: Pair, gjk: GjkWork) -> None:
    """The kernel for a triangle mesh and a sphere, capsule, ellipsoid, cylinder, box or convex mesh."""
    shapes = pair.shapes
    low, high = box_of(pair, gjk)
    first = pair.manifold.number[0]
    mesh = shapes.mesh[pair.a]
    node = shapes.node_start[mesh]
    end = shapes.node_start[mesh + 1]
    nearest = inf
    behind = -1
    left_out = -inf
    crossed_one = -1
    while node < end:
        box = shapes.node_box[node]
        if not _meets((box[0], box[1], box[2]), (box[3], box[4], box[5]), low, high):
            node = shapes.node_skip[node]
            continue
        for t in range(shapes.node_triangle[node, 0], shapes.node_triangle[node, 1]):
            corners = _corners(shapes, t)
            if _meets(lowest(corners), highest_of(corners), low, high):
                begin_triangle(pair, gjk, corners, 0.0)
                height, away = look_at(gjk)
                nearest, behind = nearer(nearest, behind, height, away, t)
                if height >= 0.0 and find_touch(pair, gjk):
                    make_room(pair, gjk, first)
                    rises = _rise(shapes, t, 0), _rise(shapes, t, 1), _rise(shapes, t, 2)
                    peaks = _is_peak(shapes, gjk, t, 0), _is_peak(shapes, gjk, t, 1), _is_peak(shapes, gjk, t, 2)
                    gap = add_touch(pair, gjk, rises, peaks, STRIDE * t)
                    if gap > left_out:
                        left_out = gap
                        crossed_one = t
        node += 1
    pushing = behind if behind >= 0 else crossed_one
    if pushing >= 0 and not is_touched(pair, first):
        begin_triangle(pair, gjk, _corners(shapes, pushing), 0.0)
        push_out(pair, gjk, STRIDE * pushing)
    finish(pair, gjk, first)


@inlined
def nearer(nearest: float, behind: int, height: float, distance: float, t: int) -> tuple[float, int]:
    """Update with triangle t the distance of the nearest triangle, and its number if it is seen from behind."""
    if distance < nearest * (1.0 + _TIE) and (height >= 0.0 or distance < nearest * (1.0 - _TIE)):
        nearest = distance
        behind = t if height < 0.0 else -1
    return nearest, behind


@inlined
def _corners(shapes: Shapes, t: int) -> tuple[Vec3, Vec3, Vec3]:
    """A triangle's corners."""
    V = shapes.vertex
    T = shapes.triangle
    return row_of(V, T[t, 0]), row_of(V, T[t, 1]), row_of(V, T[t, 2])


@inlined
def lowest(corners: tuple[Vec3, Vec3, Vec3]) -> Vec3:
    """The lowest corner of a triangle's bounding box."""
    p, q, r = corners
    return min(p[0], q[0], r[0]), min(p[1], q[1], r[1]), min(p[2], q[2], r[2])


@inlined
def highest_of(corners: tuple[Vec3, Vec3, Vec3]) -> Vec3:
    """The highest corner of a triangle's bounding box."""
    p, q, r = corners
    return max(p[0], q[0], r[0]), max(p[1], q[1], r[1]), max(p[2], q[2], r[2])


@inlined
def _meets(one_low: Vec3, one_high: Vec3, low: Vec3, high: Vec3) -> bool:
    """True if two boxes, given by their lowest and highest corners, overlap."""
    beyond = one_low[0] > high[0] or one_low[1] > high[1] or one_low[2] > high[2]
    return not (beyond or one_high[0] < low[0] or one_high[1] < low[1] or one_high[2] < low[2])


@njit
def _rise(shapes: Shapes, t: int, e: int) -> float:
    """Bound of the tilt of normals over edge e of a triangle: `rise_over` with the triangle across it."""
    other = shapes.triangle_across[t, e]
    if other < 0:
        return FALLING
    V = shapes.vertex
    i, j = shapes.triangle[t, e], shapes.triangle[t, (e + 1) % 3]
    far = shapes.triangle[other, 0]
    for corner in range(3):
        candidate = shapes.triangle[other, corner]
        if candidate != i and candidate != j:
            far = candidate
    own = shapes.triangle[t, (e + 2) % 3]
    return rise_over(
        minus(row_of(V, j), row_of(V, i)), minus(row_of(V, own), row_of(V, i)), minus(row_of(V, far), row_of(V, i))
    )


@njit
def _is_peak(shapes: Shapes, gjk: GjkWork, t: int, corner: int) -> bool:
    """True if no edge from a corner rises along the normal."""
    V = shapes.vertex
    v = shapes.triangle[t, corner]
    for e in range(shapes.neighbour_start[v], shapes.neighbour_start[v + 1]):
        if rises(gjk, minus(row_of(V, shapes.neighbour[e]), row_of(V, v))):
            return False
    return True


@inlined
def rises(gjk: GjkWork, e: Vec3) -> bool:
    """True if an edge rises along the normal."""
    return bool(dot(gjk.normal, e) > _LEVEL * length(e))


@inlined
def rise_over(e: Vec3, own: Vec3, other: Vec3) -> float:
    """Tangent of the angle by which the surface falls beyond an edge; 0: flat, _CONCAVE: it rises, FALLING: steep.

    Vectors from the start of the edge: its end e, the opposite corners of its own and of the other triangle.
    """
    normal = cross(e, own)  # of any length
    over = cross(e, normal)  # outwards over the edge, of length |e| times that of the normal
    down = -dot(normal, other) * length(e)
    forth = dot(over, other)
    size = sqrt(down * down + forth * forth)
    if abs(down) <= _LEVEL * size:
        return 0.0 if forth >= 0.0 else FALLING
    if down < 0.0:
        return _CONCAVE
    return down / forth if forth * _STEEP > down else FALLING


# ------------------------------------------------------------------ one triangle


@njit
def box_of(pair: Pair, gjk: GjkWork) -> tuple[Vec3, Vec3]:
    """The lowest and highest corner of the box around b in a's axes, margin included."""
    begin_pair(pair, gjk)
    grown = gjk.radius[1] + pair.margin
    below = (_extent(pair, gjk, 0, -1.0), _extent(pair, gjk, 1, -1.0), _extent(pair, gjk, 2, -1.0))
    above = (_extent(pair, gjk, 0, 1.0), _extent(pair, gjk, 1, 1.0), _extent(pair, gjk, 2, 1.0))
    around = (grown, grown, grown)
    return minus(minus(gjk.offset, below), around), plus(plus(gjk.offset, above), around)


@inlined
def _extent(pair: Pair, gjk: GjkWork, axis: int, sign: float) -> float:
    """Extent of the core of b from its origin along an axis of a."""
    d = times(sign, row_of(gjk.rotation, axis))
    s = support(pair.shapes, gjk, 1, d)
    return dot(d, s)


@njit
def look_at(gjk: GjkWork) -> tuple[float, float]:
    """Height of b's origin above the triangle's plane, and its distance from the triangle.

    For a sphere this also sets gjk.normal, gjk.point[0] and gjk.gap (without the radius).
    """
    T = gjk.triangle
    front = normal_of(gjk)
    height = dot(front, gjk.offset)
    u, v = _nearest_on(T, triple(gjk.offset))
    nearest = combined(u, row_of(T, 1), v, row_of(T, 2))
    way = minus(gjk.offset, nearest)
    distance = length(way)
    set_row(gjk.point, 0, nearest)
    gjk.gap[0] = distance
    near = distance <= 1e-9 * gjk.scale[0]
    put(gjk.normal, front if near else divided(way, distance))
    return height, distance


@inlined
def normal_of(gjk: GjkWork) -> Vec3:
    """The unit normal of the triangle's front, gjk's axes."""
    normal = front_of(gjk.triangle)
    return times(1.0 / length(normal), normal)


@inlined
def _nearest_on(T: Reals2, q: Vec3) -> tuple[float, float]:
    """The point of a triangle nearest to q, as weights along the edges from the first corner to the other two.

    Source: Ericson, Real-Time Collision Detection, 5.1.5.
    """
    d1 = dot(row_of(T, 1), q)
    d2 = dot(row_of(T, 2), q)
    g11 = dot(row_of(T, 1), row_of(T, 1))
    g12 = dot(row_of(T, 1), row_of(T, 2))
    g22 = dot(row_of(T, 2), row_of(T, 2))
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
def find_touch(pair: Pair, gjk: GjkWork) -> bool:
    """`find_nearest` after `look_at`, which already has the result for a sphere."""
    if pair.shapes.kind[pair.b] != SPHERE:
        return find_nearest(pair.shapes, gjk, pair.margin)
    gjk.gap[0] -= gjk.radius[1]
    set_row(gjk.point, 1, plus_times(row_of(gjk.point, 0), gjk.gap[0], gjk.normal))
    return bool(gjk.gap[0] < pair.margin)


@njit
def add_touch(pair: Pair, gjk: GjkWork, rises: Vec3, peaks: tuple[bool, bool, bool], feature: int) -> float:
    """Add the contacts found by `find_touch`, with the normal bounded by the neighbouring triangles.

    Bounds are `rises` over the three edges (see `rise_over`) and `peaks` at the three corners (no edge from the corner
    rises along the normal). If there is no contact though the shape crosses the triangle, returns the gap along the
    triangle's normal, else -inf.
    """
    shapes, margin, manifold = pair.shapes, pair.margin, pair.manifold
    first = manifold.number[0]
    nearest = gjk.gap[0]
    crosses = nearest < 0.0
    leaning = _lean(pair, gjk, rises, peaks)
    if leaning != _APART:
        add_manifold(shapes, gjk, margin, manifold, feature)
        if leaning == _BENT and crosses:
            for i in range(first, manifold.number[0]):
                manifold.gap[i] = max(manifold.gap[i], nearest)
    elif not (
        crosses or touches_once(gjk)
    ):  # another triangle is nearer: only faces that may come to lie flat count here
        _turn_to(shapes, gjk, normal_of(gjk))
        if gjk.gap[0] < margin:
            add_overlap(shapes, gjk, nearest, margin, manifold, feature)
    if manifold.number[0] > first or not crosses:
        return -inf
    _turn_to(shapes, gjk, normal_of(gjk))
    return gjk.gap[0]


@njit
def _lean(pair: Pair, gjk: GjkWork, rises: Vec3, peaks: tuple[bool, bool, bool]) -> int:
    """Bend the normal into the range allowed by the edges over which it tilts.

    Returns _APART unless the two shapes are then nearer than margin, and _BENT if the depth along the normal belongs to
    the front of another triangle.
    """
    front = normal_of(gjk)
    up = dot(gjk.normal, front)
    level = minus_times(gjk.normal, up, front)
    i = farthest_corner(gjk, level)
    j = 2 if i == 0 else i - 1  # the edge that ends at the corner farthest along the normal
    a = _over(gjk, i, front)
    b = _over(gjk, j, front)
    cosine = dot(a, b)
    along_a = dot(level, a)
    along_b = dot(level, b)
    det = max(1.0 - cosine * cosine, 1e-12)
    x = max((along_a - cosine * along_b) / det, 0.0)
    y = max((along_b - cosine * along_a) / det, 0.0)
    if min(x, y) > _LEVEL and component(peaks, i):
        return _STRAIGHT
    rise_a = component(rises, i)
    rise_b = component(rises, j)
    upright = max(up, 0.0)
    if up <= 0.0 and rise_a < FALLING and rise_b < FALLING:
        upright = 1.0
        x = rise_a if x > y else 0.0
        y = rise_b if x == 0.0 else 0.0
    xx = min(x, max(rise_a, 0.0) * upright) if rise_a < FALLING else x
    yy = min(y, max(rise_b, 0.0) * upright) if rise_b < FALLING else y
    xx = max(xx, 0.0)
    yy = max(yy, 0.0)
    if up > 0.0 and x - xx < 2.0 * _LEVEL and y - yy < 2.0 * _LEVEL:
        return _STRAIGHT
    if gjk.gap[0] > _TOUCHING * gjk.scale[0]:
        return _APART  # another triangle is nearer
    bent = plus_times(combined(upright, front, xx, a), yy, b)
    size = length(bent)
    if size < 1e-9:
        return _APART
    least = min(_DEEPER * gjk.gap[0], -_TOUCHING * gjk.scale[0])
    _turn_to(pair.shapes, gjk, divided(bent, size))
    if gjk.gap[0] >= pair.margin:
        return _APART
    shallow = gjk.gap[0] > least
    if xx > 0.0 or yy > 0.0:
        return _BENT if shallow else _APART
    if _is_over(gjk, front, rises, False):
        return _STRAIGHT
    return _BENT if _is_over(gjk, front, rises, shallow) else _APART  # the farthest point belongs to another triangle


@inlined
def _over(gjk: GjkWork, i: int, front: Vec3) -> Vec3:
    """The outward unit vector in the triangle's plane, orthogonal to the edge that starts at corner i."""
    T = gjk.triangle
    over = cross(minus(row_of(T, (i + 1) % 3), row_of(T, i)), front)
    return times(1.0 / length(over), over)


@njit
def _turn_to(shapes: Shapes, gjk: GjkWork, normal: Vec3) -> None:
    """Take another normal, with the gap between the support points along it."""
    w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, normal)
    w, a = (w0, w1, w2), (a0, a1, a2)
    put(gjk.normal, normal)
    gap = -dot(normal, w) - gjk.radius[1]
    gjk.gap[0] = gap
    set_row(gjk.point, 1, minus_times(minus(a, w), gjk.radius[1], normal))
    set_row(gjk.point, 0, minus_times(row_of(gjk.point, 1), gap, normal))


@njit
def _is_over(gjk: GjkWork, front: Vec3, rises: Vec3, shallow: bool) -> bool:
    """True if the point of b is over the triangle or, for a shallow contact, beyond an edge where the surface rises."""
    for i in range(3):
        x = minus(row_of(gjk.point, 1), row_of(gjk.triangle, i))
        behind = shallow and component(rises, i) == _CONCAVE
        if not behind and dot(_over(gjk, i, front), x) > 1e-9 * gjk.scale[0]:
            return False
    return True


@inlined
def is_touched(pair: Pair, first: int) -> bool:
    """True if a contact from `first` on penetrates."""
    for i in range(first, pair.manifold.number[0]):
        if pair.manifold.gap[i] < 0.0:
            return True
    return False


@njit
def push_out(pair: Pair, gjk: GjkWork, feature: int) -> None:
    """Add a contact along the triangle's normal, regardless of what lies between."""
    _turn_to(pair.shapes, gjk, normal_of(gjk))
    if gjk.gap[0] < pair.margin:
        add_nearest(gjk, pair.manifold, feature)


# ------------------------------------------------------------------ contacts that are kept


@inlined
def make_room(pair: Pair, gjk: GjkWork, first: int) -> None:
    """Thin out the contacts from `first` on if those of another triangle might not fit."""
    if pair.manifold.number[0] >= _FULL:
        thin_out(gjk, pair.manifold, first, _MOST_KEPT)


@njit
def finish(pair: Pair, gjk: GjkWork, first: int) -> None:
    """Merge and thin out the contacts from `first` on."""
    merge(pair.manifold, first, _SAME * pair.shapes.reach[pair.b])
    thin_out(gjk, pair.manifold, first, _MOST_KEPT)


@njit
def merge(manifold: Manifold, first: int, tolerance: float) -> None:
    """Merge contacts at the same point with the same normal into the deepest of them."""
    kept = first
    for i in range(first, manifold.number[0]):
        found = -1
        for j in range(first, kept):
            d = minus(row_of(manifold.point, i), row_of(manifold.point, j))
            cosine = dot(row_of(manifold.normal, i), row_of(manifold.normal, j))
            if dot(d, d) <= tolerance * tolerance and cosine > 0.999:
                found = j
        if found < 0:
            _move(manifold, i, kept)
            kept += 1
        elif manifold.gap[i] < manifold.gap[found]:
            _move(manifold, i, found)
    manifold.number[0] = kept


@inlined
def _move(manifold: Manifold, i: int, j: int) -> None:
    """Move contact i to the place of contact j."""
    manifold.gap[j] = manifold.gap[i]
    manifold.feature[j] = manifold.feature[i]
    set_row(manifold.point, j, manifold.point[i])
    set_row(manifold.normal, j, manifold.normal[i])


@njit
def thin_out(gjk: GjkWork, manifold: Manifold, first: int, most: int) -> None:
    """Reduce many contacts to the deepest and those farthest from all kept ones, in order."""
    end = manifold.number[0]
    if end - first <= most:
        return
    chosen = first
    for i in range(first, end):
        if manifold.gap[i] < manifold.gap[chosen]:
            chosen = i
    away = gjk.distance  # unused scratch
    keep_farthest(manifold.point, away, first, end, chosen, most)
    kept = first
    for i in range(first, end):
        if away[i] == KEPT:
            _move(manifold, i, kept)
            kept += 1
    manifold.number[0] = kept
