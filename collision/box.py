"""Box and box: separating axes, clipped faces, exact distances.

Sources: Gottschalk, Lin, Manocha 1996 (the fifteen axes); Ericson, Real-Time Collision Detection, 4.4 and 5.5. For
overlapping boxes the axis of least penetration is that of the shortest separating translation. For separate boxes the
largest gap is the distance, unless a nearest point is a corner; then the nearest corner is searched for.

Features identify the corners and edges that meet, independent of which box has the face: 0 to 7 corners of a, 8 to 15
corners of b, from 16 on an edge of a (12 times its number) and one of b, from 160 on the nearest corners of separate
boxes. A box at rest therefore keeps its contacts when rounding changes the axis.
"""

from __future__ import annotations

from typing import NamedTuple

from artsim.collision.frames import along_axes, axis, centre, clamp, into, turned
from artsim.collision.manifold import add_contact
from artsim.collision.shapes import AnyPlaced, Pair
from artsim.collision.sphere import NO_DIRECTION, beyond
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import sqrt
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import (
    combined,
    cross,
    dot,
    length,
    minus,
    minus_times,
    negative,
    plus,
    plus_along,
    plus_times,
    row_of,
    shifted,
    times,
)

_SAME = 1e-8  # relative to the smaller box's half extents: smaller differences of lengths count as equal
_PARALLEL = 1e-8  # sine of the angle of edges below which they have no common normal
_FLAT = 0.9999  # cosine of the angle between a face and the contact plane above which the face lies on it
_NOTHING = 1e300
_NEAREST = 160  # the first feature of nearest corners


@njit
def box_box(pair: Pair) -> bool:
    """Add up to 8 contacts of faces, or one of edges, or the nearest corners of separate boxes; True for edges."""
    a = row_of(pair.shapes.size, pair.a)
    b = row_of(pair.shapes.size, pair.b)
    size = min(a[0] + a[1] + a[2], b[0] + b[1] + b[2])
    gap, code = separation(pair, _SAME * size)
    if gap >= pair.margin:
        return False
    if code < 6:
        add_faces(pair, code, gap, size)
    else:
        add_edges(pair, (code - 6) // 3, (code - 6) % 3, gap, size)
    return bool(code >= 6)


# ------------------------------------------------------------------ separating axes


@inlined
def larger(gap: float, code: int, other: float, k: int, bias: float) -> tuple[float, int]:
    """The larger of two gaps and its axis; the earlier axis if the gaps are equal."""
    if other > gap + bias:
        return other, k
    return gap, code


@inlined
def magnitudes(v: Vec3) -> Vec3:
    """|v_i|."""
    return abs(v[0]), abs(v[1]), abs(v[2])


@inlined
def reach(own: float, h: Vec3, q: Vec3) -> float:
    """Reach of two boxes along an axis of one: its half extent plus the other's half extents times |cosines|."""
    return own + h[0] * q[0] + h[1] * q[1] + h[2] * q[2]


@inlined
def edge_gap(t: Vec3, r: Vec3, a: Vec3, q: Vec3, b1: float, b2: float, p1: float, p2: float) -> float:
    """Gap along the cross product of an edge along a's first axis and one along r.

    t, r, a: offset, b's edge and a's half extents in a's axes, q = |r_i|; b1, b2: b's half extents in its two axes
    after its edge's, p1, p2 their |cosines| with a's edge.
    """
    square = r[1] * r[1] + r[2] * r[2]
    if square < _PARALLEL * _PARALLEL:
        return -_NOTHING
    return (abs(t[2] * r[1] - t[1] * r[2]) - (a[1] * q[2] + a[2] * q[1] + b1 * p2 + b2 * p1)) / sqrt(square)


@inlined
def edges_gap(
    found: tuple[float, int],
    t: Vec3,
    axes: tuple[Vec3, Vec3, Vec3],
    cosines: tuple[Vec3, Vec3, Vec3],
    a: Vec3,
    b: Vec3,
    first: int,
    bias: float,
) -> tuple[float, int]:
    """The largest of a known gap and the gaps of a's edge along its first axis with b's three edges, and its axis.

    `axes` are b's axes in a's axes, `cosines` the absolute values of their components.
    """
    gap, code = found
    x, y, z = axes
    p, q, r = cosines
    gap, code = larger(gap, code, edge_gap(t, x, a, p, b[1], b[2], q[0], r[0]), first, bias)
    gap, code = larger(gap, code, edge_gap(t, y, a, q, b[2], b[0], r[0], p[0]), first + 1, bias)
    return larger(gap, code, edge_gap(t, z, a, r, b[0], b[1], p[0], q[0]), first + 2, bias)


@njit
def separation(pair: Pair, bias: float) -> tuple[float, int]:
    """The largest gap along the fifteen axes and the axis: 0 to 2 a's faces, 3 to 5 b's, 6 + 3 i + j their edges.

    The search stops at the first gap beyond the margin.
    """
    placed = pair.placed
    a = row_of(pair.shapes.size, pair.a)
    b = row_of(pair.shapes.size, pair.b)
    t = into(placed, pair.a, centre(placed, pair.b))
    x = along_axes(placed, pair.a, axis(placed, pair.b, 0))
    y = along_axes(placed, pair.a, axis(placed, pair.b, 1))
    z = along_axes(placed, pair.a, axis(placed, pair.b, 2))
    p, q, r = magnitudes(x), magnitudes(y), magnitudes(z)
    gap = abs(t[0]) - reach(a[0], b, (p[0], q[0], r[0]))
    code = 0
    gap, code = larger(gap, code, abs(t[1]) - reach(a[1], b, (p[1], q[1], r[1])), 1, bias)
    gap, code = larger(gap, code, abs(t[2]) - reach(a[2], b, (p[2], q[2], r[2])), 2, bias)
    gap, code = larger(gap, code, abs(dot(t, x)) - reach(b[0], a, p), 3, bias)
    gap, code = larger(gap, code, abs(dot(t, y)) - reach(b[1], a, q), 4, bias)
    gap, code = larger(gap, code, abs(dot(t, z)) - reach(b[2], a, r), 5, bias)
    if gap >= pair.margin:
        return gap, code
    found = edges_gap((gap, code), t, (x, y, z), (p, q, r), a, b, 6, bias)
    t, a, x, y, z = shifted(t), shifted(a), shifted(x), shifted(y), shifted(z)
    p, q, r = shifted(p), shifted(q), shifted(r)
    found = edges_gap(found, t, (x, y, z), (p, q, r), a, b, 9, bias)
    t, a, x, y, z = shifted(t), shifted(a), shifted(x), shifted(y), shifted(z)
    p, q, r = shifted(p), shifted(q), shifted(r)
    return edges_gap(found, t, (x, y, z), (p, q, r), a, b, 12, bias)


@inlined
def between(pair: Pair, normal: Vec3) -> float:
    """Distance of b's centre from a's along a normal [m]."""
    return dot(minus(centre(pair.placed, pair.b), centre(pair.placed, pair.a)), normal)


# ------------------------------------------------------------------ faces


class Face(NamedTuple):
    """The reference face, which clips the other box's face, with the bounds of its contacts."""

    r: int  # the box
    k: int  # the face is across its axis k,
    side: float  # at its higher end, 1, or at its lower, -1
    half: Vec3  # half extents along the axes after k, and along k
    normal: Vec3  # of the contacts, equal or close to that of the face
    cosine: float  # between the two normals, not negative
    least: float  # lower bound of the gaps
    without: int  # a feature to leave out


class Facing(NamedTuple):
    """The incident face of the other box, in coordinates along the axes after k and away from the reference face."""

    o: int  # the box
    f: int  # the face is across its axis f,
    front: float  # at its higher end, 1, or at its lower, -1
    middle: Vec3
    e: Vec3  # vectors from the middle to the face's sides, along the two axes after f
    g: Vec3
    he: float  # half extents along these
    hg: float


@njit
def add_faces(pair: Pair, code: int, gap: float, size: float) -> None:
    """Add contacts where the axis of a face has the largest gap (or least penetration)."""
    r = pair.a if code < 3 else pair.b
    normal = axis(pair.placed, r, code % 3)
    if between(pair, normal) < 0.0:
        normal = negative(normal)
    lowest = _clip(pair, r, code % 3, gap, normal, _SAME * size, -1)
    if lowest > gap + (_SAME if gap > 0.0 else 10.0 * _SAME) * size:  # the nearest point is beside the face
        _add_nearest(pair, gap, normal, size)


@njit
def nearest_axis(placed: AnyPlaced, s: int, m: Vec3) -> tuple[int, float]:
    """The axis of s nearest to the direction m in either sense, and its cosine."""
    best = dot(axis(placed, s, 0), m)
    f = 0
    for k in range(1, 3):
        cosine = dot(axis(placed, s, k), m)
        if abs(cosine) > abs(best):
            best = cosine
            f = k
    return f, best


@inlined
def bit(x: float) -> int:
    """1 for the positive side of an axis, 0 for the other."""
    return 1 if x > 0.0 else 0


@inlined
def edge_number(k: int, one: float, two: float) -> int:
    """Number of an edge along axis k, at the sides `one` and `two` of the axes k + 1 and k + 2."""
    return 4 * k + bit(one) + 2 * bit(two)


@inlined
def corner_feature(second: int, k: int, s: float, s1: float, s2: float) -> int:
    """Feature of the corner at the sides s, s1, s2 of axes k, k + 1, k + 2; `second`: of shape b."""
    return 8 * second + (bit(s) << k) + (bit(s1) << (k + 1) % 3) + (bit(s2) << (k + 2) % 3)


@inlined
def edge_feature(swapped: bool, r: int, o: int) -> int:
    """Feature of edge r of a and edge o of b, or vice versa if swapped."""
    return 16 + (12 * o + r if swapped else 12 * r + o)


@njit
def _clip(pair: Pair, r: int, k: int, least: float, normal: Vec3, slack: float, without: int) -> float:
    """Add contacts of box r's face across its axis k with the incident face of the other box; returns the least gap.

    Contacts are the incident corners over r's face, the parts of incident edges within r's sides (Liang and Barsky),
    and r's corners below the incident face. Points up to `slack` beside r's face count as over it; the feature
    `without` is left out. `normal` is equal or close to that of the face; no gap along it is below `least`.
    """
    placed, size = pair.placed, pair.shapes.size
    o = pair.a if r == pair.b else pair.b
    to_other = -1.0 if r == pair.b else 1.0
    cosine = to_other * dot(axis(placed, r, k), normal)
    side = 1.0 if cosine > 0.0 else -1.0
    u = axis(placed, r, (k + 1) % 3)
    v = axis(placed, r, (k + 2) % 3)
    m = times(side, axis(placed, r, k))
    half = (size[r, (k + 1) % 3], size[r, (k + 2) % 3], size[r, k])
    face = Face(r, k, side, half, normal, abs(cosine), least, without)
    f, facing_cosine = nearest_axis(placed, o, m)
    front = -1.0 if facing_cosine > 0.0 else 1.0
    way = minus(plus_times(centre(placed, o), front * size[o, f], axis(placed, o, f)), centre(placed, r))
    he = size[o, (f + 1) % 3]
    hg = size[o, (f + 2) % 3]
    x, y, z = dot(way, u), dot(way, v), dot(way, m)
    e = _along(he, axis(placed, o, (f + 1) % 3), u, v, m)
    g = _along(hg, axis(placed, o, (f + 2) % 3), u, v, m)
    other = Facing(o, f, front, (x, y, z - half[2]), e, g, he, hg)
    lowest = add_sides(pair, face, other, slack)
    return min(lowest, add_corners_below(pair, face, other, slack))


@inlined
def _along(h: float, w: Vec3, u: Vec3, v: Vec3, m: Vec3) -> Vec3:
    """Components of the vector h w along three axes."""
    return h * dot(w, u), h * dot(w, v), h * dot(w, m)


@inlined
def add_sides(pair: Pair, face: Face, other: Facing, slack: float) -> float:
    """Add contacts of the incident face's four edges: their first ends over the reference face, and their
    intersections with its sides; returns the least gap.
    """
    swapped = face.r == pair.b
    i, j = (face.k + 1) % 3, (face.k + 2) % 3
    lowest = _NOTHING
    for q in range(4):
        se = 1.0 if q == 0 or q == 3 else -1.0
        sg = 1.0 if q < 2 else -1.0
        p = plus_times(plus_times(other.middle, se, other.e), sg, other.g)
        if q & 1:
            d = times(-2.0 * sg, other.g)
            edge = edge_number((other.f + 2) % 3, other.front, se)
        else:
            d = times(-2.0 * se, other.e)
            edge = edge_number((other.f + 1) % 3, sg, other.front)
        start, end, first, last = cut(p, d, face.half[0] + slack, face.half[1] + slack)
        if start > end:
            continue
        if start == 0.0:
            feature = corner_feature(0 if swapped else 1, other.f, other.front, se, sg)
            lowest = min(lowest, add_on_face(pair, face, p, feature))
        elif end < 1.0 or end - start > 1e-6:
            feature = edge_feature(swapped, side_edge(first, i, j, face.side), edge)
            lowest = min(lowest, add_on_face(pair, face, plus_times(p, start, d), feature))
        if end < 1.0 and end - start > 1e-6:
            feature = edge_feature(swapped, side_edge(last, i, j, face.side), edge)
            lowest = min(lowest, add_on_face(pair, face, plus_times(p, end, d), feature))
    return lowest


@inlined
def add_corners_below(pair: Pair, face: Face, other: Facing, slack: float) -> float:
    """Add contacts of the reference face's corners that are below the incident face; returns the least gap."""
    swapped = face.r == pair.b
    e, g = other.e, other.g
    lowest = _NOTHING
    area = e[0] * g[1] - e[1] * g[0]
    if abs(area) < 1e-200:
        return lowest
    for q in range(4):
        sx = 1.0 if q & 1 else -1.0
        sy = 1.0 if q & 2 else -1.0
        px = sx * face.half[0] - other.middle[0]
        py = sy * face.half[1] - other.middle[1]
        along_e = (px * g[1] - py * g[0]) / area
        along_g = (e[0] * py - e[1] * px) / area
        if abs(along_e) * other.he < other.he - slack and abs(along_g) * other.hg < other.hg - slack:
            z = other.middle[2] + along_e * e[2] + along_g * g[2]
            feature = corner_feature(1 if swapped else 0, face.k, face.side, sx, sy)
            lowest = min(lowest, add_on_face(pair, face, (sx * face.half[0], sy * face.half[1], z), feature))
    return lowest


@inlined
def side_edge(line: int, i: int, j: int, side: float) -> int:
    """The edge of a face (axes i, j, at `side` of the third) along its line: 0, 1 at the ends of i, 2, 3 of j."""
    end = 1.0 if line & 1 else -1.0
    if line < 2:
        return edge_number(j, side, end)
    return edge_number(i, end, side)


@inlined
def cut(p: Vec3, d: Vec3, hx: float, hy: float) -> tuple[float, float, int, int]:
    """The part of p + t d, t in [0, 1], in a rectangle: first and last t, and the sides they lie on (side_edge)."""
    return cut_across(cut_across((0.0, 1.0, 0, 0), p[0], d[0], hx, 0), p[1], d[1], hy, 2)


@inlined
def cut_across(
    part: tuple[float, float, int, int], p: float, d: float, h: float, line: int
) -> tuple[float, float, int, int]:
    """The subset of a part that lies between two parallel side lines, of which `line` numbers the lower one."""
    start, end, first, last = part
    if abs(d) > 1e-100:
        one = (-h - p) / d
        two = (h - p) / d
        back = d < 0.0
        if back:
            one, two = two, one
        if one > start:
            start = one
            first = line + 1 if back else line
        if two < end:
            end = two
            last = line if back else line + 1
    elif abs(p) > h:
        end = -1.0
    return start, end, first, last


@njit
def add_on_face(pair: Pair, face: Face, x: Vec3, feature: int) -> float:
    """Add the contact of the other box's point at x, of height x[2] over the face; its gap, or _NOTHING."""
    gap = max(x[2] / face.cosine, face.least)
    if gap < pair.margin and feature != face.without:
        placed, r, k = pair.placed, face.r, face.k
        middle = (x[0], x[1], (0.5 * x[2] + face.half[2]) * face.side)
        u, v, w = axis(placed, r, (k + 1) % 3), axis(placed, r, (k + 2) % 3), axis(placed, r, k)
        add_contact(pair.manifold, gap, plus_along(centre(placed, r), middle, u, v, w), face.normal, feature)
        return gap
    return _NOTHING


# ------------------------------------------------------------------ edges


@inlined
def sign_along(placed: AnyPlaced, s: int, k: int, normal: Vec3) -> float:
    """The end of axis k, 1 or -1, that is farther along a normal."""
    return 1.0 if dot(axis(placed, s, k), normal) > 0.0 else -1.0


@njit
def middle_of_edge(pair: Pair, s: int, k: int, one: float, two: float) -> Vec3:
    """Middle of the edge of box s along axis k, at the sides `one` and `two` of the axes after it."""
    i = (k + 1) % 3
    j = (k + 2) % 3
    size, placed = pair.shapes.size, pair.placed
    across = combined(one * size[s, i], axis(placed, s, i), two * size[s, j], axis(placed, s, j))
    return plus(centre(placed, s), across)


@njit
def add_edges(pair: Pair, i: int, j: int, gap: float, size: float) -> None:
    """Add the contact of edges along axis i of a and j of b, and contacts of faces that nearly lie on each other."""
    placed, a, b = pair.placed, pair.a, pair.b
    u = axis(placed, a, i)
    v = axis(placed, b, j)
    normal = cross(u, v)
    across = dot(normal, normal)
    scale = 1.0 / sqrt(across)
    if between(pair, normal) < 0.0:
        scale = -scale
    normal = times(scale, normal)
    a1 = sign_along(placed, a, (i + 1) % 3, normal)
    a2 = sign_along(placed, a, (i + 2) % 3, normal)
    b1 = -sign_along(placed, b, (j + 1) % 3, normal)
    b2 = -sign_along(placed, b, (j + 2) % 3, normal)
    feature = edge_feature(False, edge_number(i, a1, a2), edge_number(j, b1, b2))
    x = middle_of_edge(pair, a, i, a1, a2)
    y = middle_of_edge(pair, b, j, b1, b2)
    d = minus(y, x)
    k = dot(u, v)
    du = dot(d, u)
    dv = dot(d, v)
    s = (du - k * dv) / across
    t = (k * du - dv) / across
    ha = pair.shapes.size[a, i]
    hb = pair.shapes.size[b, j]
    beside = gap > 0.0 and max(abs(s) - ha, abs(t) - hb) > _SAME * size
    if not beside:
        s = clamp(s, ha)
        t = clamp(t, hb)
        both = plus_times(plus(plus_times(x, s, u), y), t, v)
        add_contact(pair.manifold, gap, times(0.5, both), normal, feature)
    of_a, cosine_a = nearest_axis(placed, a, normal)
    of_b, cosine_b = nearest_axis(placed, b, normal)
    lowest = _NOTHING
    if max(abs(cosine_a), abs(cosine_b)) > _FLAT:
        r = a if abs(cosine_a) >= abs(cosine_b) else b
        f = of_a if r == a else of_b
        lowest = _clip(pair, r, f, gap, normal, _SAME * size, -1 if beside else feature)
    if beside and lowest > gap + _SAME * size:
        _add_nearest(pair, gap, normal, size)


# ------------------------------------------------------------------ corners


@inlined
def _corner_of(pair: Pair, s: int, q: int) -> Vec3:
    """Position of corner q of box s, whose three bits give its side along each axis."""
    h = row_of(pair.shapes.size, s)
    x = (h[0] if q & 1 else -h[0], h[1] if q & 2 else -h[1], h[2] if q & 4 else -h[2])
    return plus(centre(pair.placed, s), turned(pair.placed, s, x))


@njit
def corner_from_box(pair: Pair, feature: int) -> tuple[Vec3, Vec3]:
    """A corner (0 to 7 of a, 8 to 15 of b), and the vector to it from the other box's nearest point, world axes."""
    owner = pair.a if feature < 8 else pair.b
    other = pair.b if feature < 8 else pair.a
    x = _corner_of(pair, owner, feature & 7)
    e = beyond(into(pair.placed, other, x), row_of(pair.shapes.size, other))
    return x, turned(pair.placed, other, e)


@inlined
def add_corner(pair: Pair, feature: int) -> None:
    """Add the contact of a corner that is separate from the other box."""
    x, e = corner_from_box(pair, feature)
    d = length(e)
    if d < pair.margin:
        scale = (-1.0 if feature < 8 else 1.0) / d
        add_contact(pair.manifold, d, minus_times(x, 0.5, e), times(scale, e), _NEAREST + feature)


@njit
def _add_nearest(pair: Pair, gap: float, normal: Vec3, size: float) -> None:
    """Add the corner nearest to the other box and, of equally near ones, the one farthest from it (edge along a box).

    For boxes that overlap or touch in a corner, which leaves the direction undefined, the lowest corner along the
    normal is added.
    """
    best = 0
    least = _NOTHING
    if gap > 0.0:
        for k in range(16):
            d = corner_distance(pair, k)
            if d < least - 1e-2 * _SAME * size:
                least = d
                best = k
    if gap <= 0.0 or least <= NO_DIRECTION * size:
        add_lowest(pair, gap, normal)
        return
    if least >= pair.margin:
        return
    add_corner(pair, best)
    y, _ = corner_from_box(pair, best)
    second = -1
    apart = 1e-3 * size
    for k in range(16):
        if corner_distance(pair, k) <= least + 10.0 * _SAME * size:
            x, _ = corner_from_box(pair, k)
            away = length(minus(x, y)) - 2.0 * least
            if away > apart:
                apart = away
                second = k
    if second >= 0:
        add_corner(pair, second)


@inlined
def corner_distance(pair: Pair, feature: int) -> float:
    """Distance of a corner from the other box [m]."""
    _, e = corner_from_box(pair, feature)
    return length(e)


@inlined
def add_lowest(pair: Pair, gap: float, normal: Vec3) -> None:
    """Add the contact of b's corner with the largest penetration."""
    q = 0
    for k in range(3):
        q += (1 if sign_along(pair.placed, pair.b, k, normal) < 0.0 else 0) << k
    x = _corner_of(pair, pair.b, q)
    add_contact(pair.manifold, gap, minus_times(x, 0.5 * gap, normal), normal, _NEAREST + 8 + q)
