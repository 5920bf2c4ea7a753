"""Contacts of shapes that lie on each other with faces or lines: one contact at every corner of the overlap.

The normal of the deepest contact is known. A face orthogonal to it (the reference face) clips the face or line of the
other shape (the incident one) by its sides (Sutherland and Hodgman 1974). The remaining corners are contacts, each with
its own gap along the normal. Flat ends of cylinders are octagons here; their sides, like capsules, are lines.
"""

from __future__ import annotations

from math import inf, sqrt

from artsim.collision.frames import axis_of_side, from_side, point_from_side, to_side
from artsim.collision.gjk_work import MOST_CORNERS, GjkWork
from artsim.collision.normals import AS_GOOD, try_normal
from artsim.collision.shapes import BOX, CAPSULE, CONVEX, CYLINDER, TRIANGLES, Shapes
from artsim.collision.support import front_of
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1, Reals2, Vec3, Vec6
from artsim.sim.foundation.vec3 import component, cross, dot, length, minus, plus_times, row_of, set_row, times, triple

ACROSS = 1.0 - 2e-8  # cosine between a face's normal and the contact's: 2e-4 rad
ALMOST = 1.0 - 2e-6  # the cosine for round shapes, before the normal of the face is tried
_ROUND = 0.70710678118654752
LINE = 0.5  # a capsule's or cylinder's axis and the normal: cosine below which its side is a line
_PARALLEL = 1.0 - 5e-5  # cosine between axes: 0.01 rad
_MOST_KEPT = 8
KEPT = -1.0  # marks a kept point in place of its distance
HASH = 2147483629  # prime below 2**31, above all features


# ------------------------------------------------------------------ faces and lines of a shape


@inlined
def corner_of(gjk: GjkWork, side: int, i: int) -> Vec3:
    """Corner i of a polygon: of a side, or of the clipped polygon."""
    return gjk.polygon[side, i, 0], gjk.polygon[side, i, 1], gjk.polygon[side, i, 2]


@inlined
def _beyond(gjk: GjkWork, side: int, i: int, point: Vec3, normal: Vec3) -> float:
    """Signed distance of corner i of a polygon from the plane through a point, along the plane's normal."""
    return dot(normal, minus(corner_of(gjk, side, i), point))


@inlined
def _set_corner(gjk: GjkWork, side: int, i: int, x: Vec3, feature: int) -> None:
    gjk.polygon[side, i, 0], gjk.polygon[side, i, 1], gjk.polygon[side, i, 2] = x
    gjk.feature[side, i] = feature


@inlined
def _put_corner(gjk: GjkWork, side: int, i: int, x: Vec3, feature: int) -> None:
    """Set corner i of a side's polygon, transformed from the shape's own axes to gjk's."""
    _set_corner(gjk, side, i, point_from_side(gjk, side, x), feature)


@njit
def find_face(shapes: Shapes, gjk: GjkWork, side: int) -> float:
    """Find the face or line of a side that faces the contact normal most; returns the cosine of the normals, 0: none.

    Sets gjk.polygon and gjk.corners and, for a face, gjk.facing (its outward normal in gjk's axes).
    """
    m = to_side(gjk, side, times(1.0 if side == 0 else -1.0, gjk.normal))
    kind = gjk.kind[side, 0]
    gjk.corners[side] = 0
    x, y, z = 0.0, 0.0, 0.0
    if kind == BOX:
        x, y, z = _box_face(gjk, side, m)
    elif kind == CONVEX:
        x, y, z = _mesh_face(shapes, gjk, side, m)
    elif kind == CYLINDER:
        z = _cylinder_face(gjk, side, m)
    elif kind == CAPSULE and abs(m[2]) < LINE:
        _put_corner(gjk, side, 0, (0.0, 0.0, gjk.size[side, 1]), 1)
        _put_corner(gjk, side, 1, (0.0, 0.0, -gjk.size[side, 1]), 2)
        gjk.corners[side] = 2
    elif kind == TRIANGLES:
        x, y, z = _triangle_face(gjk, side, m)
    set_row(gjk.facing, side, from_side(gjk, side, (x, y, z)))
    return dot((x, y, z), m)


@inlined
def _box_face(gjk: GjkWork, side: int, m: Vec3) -> Vec3:
    x, y, z = abs(m[0]), abs(m[1]), abs(m[2])
    axis = 0 if x >= y and x >= z else (1 if y >= z else 2)
    up = component(m, axis) >= 0.0
    h = row_of(gjk.size, side)
    for i in range(4):
        turn = i if up else 3 - i
        u = 1 if turn == 0 or turn == 3 else 0
        v = 1 if turn < 2 else 0
        # positive sides of x, y, z as bits; u is the axis after `axis`, v the one after that
        bits = (int(up) << axis) | (u << (axis + 1) % 3) | (v << (axis + 2) % 3)
        corner = (h[0] if bits & 1 else -h[0], h[1] if bits & 2 else -h[1], h[2] if bits & 4 else -h[2])
        _put_corner(gjk, side, i, corner, 1 + bits)
    gjk.corners[side] = 4
    sign = 1.0 if up else -1.0
    return sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0


@inlined
def _mesh_face(shapes: Shapes, gjk: GjkWork, side: int, m: Vec3) -> Vec3:
    """Search all faces of a mesh; from a face with too many corners evenly chosen ones are kept."""
    mesh = gjk.kind[side, 4]
    face = shapes.face_start[mesh]
    best = -inf
    for f in range(shapes.face_start[mesh], shapes.face_start[mesh + 1]):
        cosine = dot(row_of(shapes.plane, f), m)
        if cosine > best:
            best = cosine
            face = f
    first = shapes.corner_start[face]
    count = shapes.corner_start[face + 1] - first
    kept = min(count, MOST_CORNERS)
    for i in range(kept):
        v = shapes.corner[first + i * count // kept]
        _put_corner(gjk, side, i, row_of(shapes.vertex, v), 1 + v - gjk.kind[side, 1])
    gjk.corners[side] = kept
    return row_of(shapes.plane, face)


@inlined
def _cylinder_face(gjk: GjkWork, side: int, m: Vec3) -> float:
    """Fill in a flat end or the line of the side; returns the end's normal along z, 0 for a line."""
    r = gjk.size[side, 0]
    h = gjk.size[side, 1]
    if abs(m[2]) < LINE:
        factor = r / sqrt(m[0] * m[0] + m[1] * m[1])
        _put_corner(gjk, side, 0, (factor * m[0], factor * m[1], h), 1)
        _put_corner(gjk, side, 1, (factor * m[0], factor * m[1], -h), 2)
        gjk.corners[side] = 2
        return 0.0
    sign = 1.0 if m[2] > 0.0 else -1.0
    for i in range(8):
        turn = i if m[2] > 0.0 else 7 - i
        c0 = 1.0 if turn == 0 else (-1.0 if turn == 4 else (0.0 if turn % 4 == 2 else _ROUND))
        c1 = 1.0 if turn == 2 else (-1.0 if turn == 6 else (0.0 if turn % 4 == 0 else _ROUND))
        c0 = -c0 if turn == 3 or turn == 5 else c0
        c1 = -c1 if turn == 5 or turn == 7 else c1
        _put_corner(gjk, side, i, (r * c0, r * c1, sign * h), (3 if m[2] > 0.0 else 11) + turn)
    gjk.corners[side] = 8
    return sign


@inlined
def _triangle_face(gjk: GjkWork, side: int, m: Vec3) -> Vec3:
    """Fill in the triangle's front, or its back if it is not a prism."""
    T = gjk.triangle
    normal = front_of(T)
    size = length(normal)
    back = dot(normal, m) < 0.0
    swept = T[3, 0] != 0.0 or T[3, 1] != 0.0 or T[3, 2] != 0.0
    if size == 0.0 or (back and swept):
        return 0.0, 0.0, 0.0
    for i in range(3):
        j = 2 - i if back else i
        _put_corner(gjk, side, i, row_of(T, j), 1 + j)
    gjk.corners[side] = 3
    return times(-1.0 / size if back else 1.0 / size, normal)


# ------------------------------------------------------------------ clipping


@njit
def clip(gjk: GjkWork, reference: int) -> int:
    """Clip the incident polygon by the sides of the reference face; returns the index in gjk.polygon of the result."""
    source = 1 - reference
    target = 2
    if gjk.corners[source] == 2:
        _clip_line(gjk, reference)
        return source
    facing = row_of(gjk.facing, reference)
    for i in range(gjk.corners[reference]):
        p0, p1, p2, i0, i1, i2 = inwards(gjk, reference, i, facing)
        count = _clip_by_plane(gjk, source, target, i, (p0, p1, p2), (i0, i1, i2))
        gjk.corners[target] = count
        source, target = target, source
        if count == 0:
            break
    return source


@inlined
def inwards(gjk: GjkWork, reference: int, i: int, facing: Vec3) -> Vec6:
    """Corner i of the reference face, whose normal is given, and the unit vector from its edge i inwards.

    The vector is zero for an edge without length.
    """
    j = i + 1 if i + 1 < gjk.corners[reference] else 0
    corner = corner_of(gjk, reference, i)
    inner = cross(facing, minus(corner_of(gjk, reference, j), corner))
    size = length(inner)
    inner = times(1.0 / size if size > 0.0 else 0.0, inner)
    return corner[0], corner[1], corner[2], inner[0], inner[1], inner[2]


@njit
def is_over(gjk: GjkWork, reference: int, x: Vec3) -> bool:
    """True if a point lies within the sides of the reference face."""
    facing = row_of(gjk.facing, reference)
    for i in range(gjk.corners[reference]):
        p0, p1, p2, i0, i1, i2 = inwards(gjk, reference, i, facing)
        if i0 * (x[0] - p0) + i1 * (x[1] - p1) + i2 * (x[2] - p2) < 0.0:
            return False
    return True


@inlined
def _clip_by_plane(gjk: GjkWork, source: int, target: int, edge: int, corner: Vec3, inner: Vec3) -> int:
    """Clip a polygon by a plane, keeping the side to which `inner` points and the plane itself."""
    tolerance = 1e-12 * gjk.scale[0]
    n = gjk.corners[source]
    count = 0
    last = n - 1
    h_last = _beyond(gjk, source, last, corner, inner)
    for at in range(n):
        h = _beyond(gjk, source, at, corner, inner)
        if (h < -tolerance and h_last > tolerance) or (h > tolerance and h_last < -tolerance):
            begin = corner_of(gjk, source, last)
            cut = plus_times(begin, h_last / (h_last - h), minus(corner_of(gjk, source, at), begin))
            mixed = gjk.feature[source, last] * 1000003 + gjk.feature[source, at] * 8191 + edge + 1
            _set_corner(gjk, target, count, cut, 1 + mixed % HASH)
            count += 1
        if h >= -tolerance and count < gjk.polygon.shape[1]:
            _set_corner(gjk, target, count, corner_of(gjk, source, at), gjk.feature[source, at])
            count += 1
        last = at
        h_last = h
    return count


@inlined
def _clip_line(gjk: GjkWork, reference: int) -> None:
    """Clip the incident line by the reference face; its ends keep their features."""
    side = 1 - reference
    facing = row_of(gjk.facing, reference)
    low = 0.0
    high = 1.0
    for i in range(gjk.corners[reference]):
        p0, p1, p2, i0, i1, i2 = inwards(gjk, reference, i, facing)
        corner, inner = (p0, p1, p2), (i0, i1, i2)
        start = _beyond(gjk, side, 0, corner, inner)
        end = _beyond(gjk, side, 1, corner, inner)
        if start < 0.0 and end < 0.0:
            high = -1.0
        elif start < 0.0:
            low = max(low, start / (start - end))
        elif end < 0.0:
            high = min(high, start / (start - end))
    if low > high:
        gjk.corners[side] = 0
        return
    begin = corner_of(gjk, side, 0)
    way = minus(corner_of(gjk, side, 1), begin)
    set_row(gjk.polygon[side], 0, plus_times(begin, low, way))
    set_row(gjk.polygon[side], 1, plus_times(begin, high, way))


@njit
def lines_side_by_side(shapes: Shapes, gjk: GjkWork) -> bool:
    """Find the two ends of the overlap of capsules or cylinders with parallel axes; False if they do not overlap.

    gjk.polygon[2] holds the points half way between the surfaces, gjk.room their gaps.
    """
    u = axis_of_side(gjk, 1, 2)
    if gjk.corners[0] != 2 or gjk.corners[1] != 2 or abs(u[2]) < _PARALLEL:
        return False
    away = sqrt(gjk.offset[0] * gjk.offset[0] + gjk.offset[1] * gjk.offset[1])
    if away > 0.1 * (gjk.size[0, 0] + gjk.size[1, 0]):
        across = (gjk.offset[0] / away, gjk.offset[1] / away, 0.0)
        try_normal(shapes, gjk, across, AS_GOOD * gjk.scale[1])
    reach = gjk.size[1, 1] * abs(u[2])
    low = max(-gjk.size[0, 1], gjk.offset[2] - reach)
    high = min(gjk.size[0, 1], gjk.offset[2] + reach)
    if high - low <= 1e-6 * gjk.scale[0]:
        return False
    gjk.corners[2] = 2
    for i in range(2):
        z = high if i == 0 else low
        s = (z - gjk.offset[2]) / u[2]
        d0, d1 = (gjk.offset[0] + s * u[0], gjk.offset[1] + s * u[1])
        along = d0 * gjk.normal[0] + d1 * gjk.normal[1]
        away = sqrt(d0 * d0 + d1 * d1) if along > 0.0 else along
        gap = max(
            away - gjk.size[0, 0] - gjk.size[1, 0], gjk.gap[0]
        )  # sections orthogonal to a's axis are only nearly circular
        half = gjk.size[0, 0] + 0.5 * gap
        gjk.room[i] = gap
        gjk.polygon[2, i, 0] = half * gjk.normal[0]
        gjk.polygon[2, i, 1] = half * gjk.normal[1]
        gjk.polygon[2, i, 2] = z + half * gjk.normal[2]
        gjk.feature[2, i] = 1 + i
    return True


# ------------------------------------------------------------------ points that are kept


@njit
def measure(gjk: GjkWork, reference: int, at: int, margin: float) -> int:
    """Turn the corners of polygon `at` into contact points half way between the surfaces; returns their number.

    Only points nearer than margin are kept; gjk.room holds their gaps.
    """
    side = 1 - reference
    normal = triple(gjk.normal)
    sign = 1.0 if reference == 0 else -1.0  # direction of the incident surface along the normal
    face = row_of(gjk.facing, reference)
    corner = corner_of(gjk, reference, 0)
    slope = sign * dot(face, normal)
    kept = 0
    for i in range(gjk.corners[at]):
        x = corner_of(gjk, at, i)
        radius = gjk.radius[side]
        gap = max(dot(face, minus(x, corner)) / slope - radius, gjk.gap[0])
        if gap < margin:
            x = plus_times(x, -sign * (radius + 0.5 * gap), normal)
            _set_corner(gjk, at, kept, x, 2 * gjk.feature[at, i] + side)
            gjk.room[kept] = gap
            kept += 1
    gjk.corners[at] = kept
    return kept


@njit
def spread(gjk: GjkWork, at: int, count: int) -> int:
    """Reduce many points to the deepest and those farthest from all kept ones, in order; returns their number."""
    if count <= _MOST_KEPT:
        return count
    first = 0
    for i in range(count):
        if gjk.room[i] < gjk.room[first]:
            first = i
    keep_farthest(gjk.polygon[at], gjk.away, 0, count, first, _MOST_KEPT)
    kept = 0
    for i in range(count):
        if gjk.away[i] == KEPT:
            _set_corner(gjk, at, kept, corner_of(gjk, at, i), gjk.feature[at, i])
            gjk.room[kept] = gjk.room[i]
            kept += 1
    return kept


@inlined
def keep_farthest(points: Reals2, away: Reals1, first: int, end: int, chosen: int, most: int) -> None:
    """Mark `most` of the points from `first` to before `end` by away = KEPT: the chosen one, then always the point
    farthest from all kept ones. For the others `away` holds the squared distance to the kept ones.
    """
    for i in range(first, end):
        away[i] = inf
    for _ in range(most):
        for i in range(first, end):
            d = minus(row_of(points, i), row_of(points, chosen))
            away[i] = min(away[i], dot(d, d))
        away[chosen] = KEPT
        for i in range(first, end):
            if away[i] > away[chosen]:
                chosen = i
