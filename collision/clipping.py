"""Flat against flat: where two shapes lie on each other with faces or lines, a contact at every corner of the overlap.

The deepest contact's normal is known. A face across it (the reference) clips the other shape's face or line (the
incident one) by its sides, Sutherland and Hodgman 1974; what is left are contacts, each with its own gap along the
normal. Cylinders' flat ends are octagons here, and their sides, like capsules, lines.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from artsim.collision.gjk_work import MOST_CORNERS
from artsim.collision.normals import AS_GOOD, try_normal
from artsim.collision.shapes import BOX, CAPSULE, CONVEX, CYLINDER, TRIANGLES
from artsim.sim.jit import inlined, njit

ACROSS = 1.0 - 2e-8  # cosine between a face's normal and the contact's: 2e-4 rad
ALMOST = 1.0 - 2e-6  # of round shapes, before the face's normal is tried
ROUND = 0.70710678118654752
LINE = 0.5  # a capsule's or cylinder's axis and the normal: cosine below which its side is a line
PARALLEL = 1.0 - 5e-5  # cosine between axes: 0.01 rad
MOST_KEPT = 8
HASH = 2147483629  # prime below 2**31: features are numbers below


# ------------------------------------------------------------------ faces and lines of a shape


@inlined
def _put_corner(gjk: Any, side: int, i: int, x0: Any, x1: Any, x2: Any, feature: int) -> None:
    """Corner i of a side's polygon, from the shape's own axes into gjk's."""
    if side == 1:
        R = gjk.rotation
        x0, x1, x2 = (
            gjk.offset[0] + R[0, 0] * x0 + R[0, 1] * x1 + R[0, 2] * x2,
            gjk.offset[1] + R[1, 0] * x0 + R[1, 1] * x1 + R[1, 2] * x2,
            gjk.offset[2] + R[2, 0] * x0 + R[2, 1] * x1 + R[2, 2] * x2,
        )
    gjk.polygon[side, i, 0] = x0
    gjk.polygon[side, i, 1] = x1
    gjk.polygon[side, i, 2] = x2
    gjk.feature[side, i] = feature


@njit
def find_face(shapes: Any, gjk: Any, side: int) -> Any:
    """The face or line of a side that looks most along the contact's normal: gjk.polygon, gjk.corners, of a face
    gjk.facing (its outward normal, gjk's axes). The cosine between the normals; 0: no face.
    """
    sign = 1.0 if side == 0 else -1.0
    m0, m1, m2 = sign * gjk.normal[0], sign * gjk.normal[1], sign * gjk.normal[2]
    if side == 1:
        R = gjk.rotation
        m0, m1, m2 = (
            R[0, 0] * m0 + R[1, 0] * m1 + R[2, 0] * m2,
            R[0, 1] * m0 + R[1, 1] * m1 + R[2, 1] * m2,
            R[0, 2] * m0 + R[1, 2] * m1 + R[2, 2] * m2,
        )
    kind = gjk.kind[side, 0]
    gjk.corners[side] = 0
    f0 = 0.0
    f1 = 0.0
    f2 = 0.0
    if kind == BOX:
        f0, f1, f2 = _box_face(gjk, side, m0, m1, m2)
    elif kind == CONVEX:
        f0, f1, f2 = _mesh_face(shapes, gjk, side, m0, m1, m2)
    elif kind == CYLINDER:
        f2 = _cylinder_face(gjk, side, m0, m1, m2)
    elif kind == CAPSULE and abs(m2) < LINE:
        _put_corner(gjk, side, 0, 0.0, 0.0, gjk.size[side, 1], 1)
        _put_corner(gjk, side, 1, 0.0, 0.0, -gjk.size[side, 1], 2)
        gjk.corners[side] = 2
    elif kind == TRIANGLES:
        f0, f1, f2 = _triangle_face(gjk, side, m0, m1, m2)
    cosine = f0 * m0 + f1 * m1 + f2 * m2
    if side == 1:
        R = gjk.rotation
        f0, f1, f2 = (
            R[0, 0] * f0 + R[0, 1] * f1 + R[0, 2] * f2,
            R[1, 0] * f0 + R[1, 1] * f1 + R[1, 2] * f2,
            R[2, 0] * f0 + R[2, 1] * f1 + R[2, 2] * f2,
        )
    gjk.facing[side, 0] = f0
    gjk.facing[side, 1] = f1
    gjk.facing[side, 2] = f2
    return cosine


@inlined
def _box_face(gjk: Any, side: int, m0: Any, m1: Any, m2: Any) -> Any:
    x, y, z = abs(m0), abs(m1), abs(m2)
    axis = 0 if x >= y and x >= z else (1 if y >= z else 2)
    up = (m0 if axis == 0 else (m1 if axis == 1 else m2)) >= 0.0
    for i in range(4):
        turn = i if up else 3 - i
        u = 1 if turn == 0 or turn == 3 else 0
        v = 1 if turn < 2 else 0
        # positive sides of x, y, z as bits; u is the axis after `axis`, v the one after that
        bits = (int(up) << axis) | (u << (axis + 1) % 3) | (v << (axis + 2) % 3)
        x0 = gjk.size[side, 0] if bits & 1 else -gjk.size[side, 0]
        x1 = gjk.size[side, 1] if bits & 2 else -gjk.size[side, 1]
        x2 = gjk.size[side, 2] if bits & 4 else -gjk.size[side, 2]
        _put_corner(gjk, side, i, x0, x1, x2, 1 + bits)
    gjk.corners[side] = 4
    sign = 1.0 if up else -1.0
    return sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0


@inlined
def _mesh_face(shapes: Any, gjk: Any, side: int, m0: Any, m1: Any, m2: Any) -> Any:
    """Of all faces; a face of too many corners keeps evenly chosen ones."""
    mesh = gjk.kind[side, 4]
    face = shapes.face_start[mesh]
    best = -inf
    for f in range(shapes.face_start[mesh], shapes.face_start[mesh + 1]):
        cosine = shapes.plane[f, 0] * m0 + shapes.plane[f, 1] * m1 + shapes.plane[f, 2] * m2
        if cosine > best:
            best = cosine
            face = f
    first = shapes.corner_start[face]
    count = shapes.corner_start[face + 1] - first
    kept = min(count, MOST_CORNERS)
    for i in range(kept):
        v = shapes.corner[first + i * count // kept]
        _put_corner(
            gjk, side, i, shapes.vertex[v, 0], shapes.vertex[v, 1], shapes.vertex[v, 2], 1 + v - gjk.kind[side, 1]
        )
    gjk.corners[side] = kept
    return shapes.plane[face, 0], shapes.plane[face, 1], shapes.plane[face, 2]


@inlined
def _cylinder_face(gjk: Any, side: int, m0: Any, m1: Any, m2: Any) -> Any:
    """Fills in a flat end, or the line of the side; the end's normal along z, 0 for a line."""
    r = gjk.size[side, 0]
    h = gjk.size[side, 1]
    if abs(m2) < LINE:
        factor = r / sqrt(m0 * m0 + m1 * m1)
        _put_corner(gjk, side, 0, factor * m0, factor * m1, h, 1)
        _put_corner(gjk, side, 1, factor * m0, factor * m1, -h, 2)
        gjk.corners[side] = 2
        return 0.0
    sign = 1.0 if m2 > 0.0 else -1.0
    for i in range(8):
        turn = i if m2 > 0.0 else 7 - i
        c0 = 1.0 if turn == 0 else (-1.0 if turn == 4 else (0.0 if turn % 4 == 2 else ROUND))
        c1 = 1.0 if turn == 2 else (-1.0 if turn == 6 else (0.0 if turn % 4 == 0 else ROUND))
        c0 = -c0 if turn == 3 or turn == 5 else c0
        c1 = -c1 if turn == 5 or turn == 7 else c1
        _put_corner(gjk, side, i, r * c0, r * c1, sign * h, (3 if m2 > 0.0 else 11) + turn)
    gjk.corners[side] = 8
    return sign


@inlined
def _triangle_face(gjk: Any, side: int, m0: Any, m1: Any, m2: Any) -> Any:
    """Its front; its back too when it is no prism."""
    T = gjk.triangle
    n0 = T[1, 1] * T[2, 2] - T[1, 2] * T[2, 1]
    n1 = T[1, 2] * T[2, 0] - T[1, 0] * T[2, 2]
    n2 = T[1, 0] * T[2, 1] - T[1, 1] * T[2, 0]
    length = sqrt(n0 * n0 + n1 * n1 + n2 * n2)
    back = n0 * m0 + n1 * m1 + n2 * m2 < 0.0
    swept = T[3, 0] != 0.0 or T[3, 1] != 0.0 or T[3, 2] != 0.0
    if length == 0.0 or (back and swept):
        return 0.0, 0.0, 0.0
    for i in range(3):
        j = 2 - i if back else i
        _put_corner(gjk, side, i, T[j, 0], T[j, 1], T[j, 2], 1 + j)
    gjk.corners[side] = 3
    factor = -1.0 / length if back else 1.0 / length
    return factor * n0, factor * n1, factor * n2


# ------------------------------------------------------------------ clipping


@njit
def clip(gjk: Any, reference: int) -> int:
    """The incident polygon within the sides of the reference face, in gjk.polygon; in which of its three it ends."""
    source = 1 - reference
    target = 2
    if gjk.corners[source] == 2:
        _clip_line(gjk, reference)
        return source
    m0, m1, m2 = gjk.facing[reference, 0], gjk.facing[reference, 1], gjk.facing[reference, 2]
    sides = gjk.corners[reference]
    for i in range(sides):
        p0, p1, p2, i0, i1, i2 = inwards(gjk, reference, i, m0, m1, m2)
        count = _clip_by_plane(gjk, source, target, i, p0, p1, p2, i0, i1, i2)
        gjk.corners[target] = count
        source, target = target, source
        if count == 0:
            break
    return source


@inlined
def inwards(gjk: Any, reference: int, i: int, m0: Any, m1: Any, m2: Any) -> Any:
    """Corner i of the reference face and the unit vector from its edge i inwards; zeros of an edge without length."""
    Q = gjk.polygon
    j = i + 1 if i + 1 < gjk.corners[reference] else 0
    p0, p1, p2 = Q[reference, i, 0], Q[reference, i, 1], Q[reference, i, 2]
    e0, e1, e2 = Q[reference, j, 0] - p0, Q[reference, j, 1] - p1, Q[reference, j, 2] - p2
    i0, i1, i2 = m1 * e2 - m2 * e1, m2 * e0 - m0 * e2, m0 * e1 - m1 * e0
    length = sqrt(i0 * i0 + i1 * i1 + i2 * i2)
    factor = 1.0 / length if length > 0.0 else 0.0
    return p0, p1, p2, factor * i0, factor * i1, factor * i2


@njit
def is_over(gjk: Any, reference: int, x0: Any, x1: Any, x2: Any) -> bool:
    """Whether a point lies within the sides of the reference face."""
    m0, m1, m2 = gjk.facing[reference, 0], gjk.facing[reference, 1], gjk.facing[reference, 2]
    for i in range(gjk.corners[reference]):
        p0, p1, p2, i0, i1, i2 = inwards(gjk, reference, i, m0, m1, m2)
        if i0 * (x0 - p0) + i1 * (x1 - p1) + i2 * (x2 - p2) < 0.0:
            return False
    return True


@inlined
def _clip_by_plane(
    gjk: Any, source: int, target: int, edge: int, p0: Any, p1: Any, p2: Any, i0: Any, i1: Any, i2: Any
) -> int:
    """What of a polygon lies on the side of the plane to which i points; touching it is inside."""
    Q = gjk.polygon
    tolerance = 1e-12 * gjk.scale[0]
    n = gjk.corners[source]
    count = 0
    last = n - 1
    h_last = i0 * (Q[source, last, 0] - p0) + i1 * (Q[source, last, 1] - p1) + i2 * (Q[source, last, 2] - p2)
    for at in range(n):
        h = i0 * (Q[source, at, 0] - p0) + i1 * (Q[source, at, 1] - p1) + i2 * (Q[source, at, 2] - p2)
        if (h < -tolerance and h_last > tolerance) or (h > tolerance and h_last < -tolerance):
            t = h_last / (h_last - h)
            for axis in range(3):
                Q[target, count, axis] = Q[source, last, axis] + t * (Q[source, at, axis] - Q[source, last, axis])
            mixed = gjk.feature[source, last] * 1000003 + gjk.feature[source, at] * 8191 + edge + 1
            gjk.feature[target, count] = 1 + mixed % HASH
            count += 1
        if h >= -tolerance and count < Q.shape[1]:
            for axis in range(3):
                Q[target, count, axis] = Q[source, at, axis]
            gjk.feature[target, count] = gjk.feature[source, at]
            count += 1
        last = at
        h_last = h
    return count


@inlined
def _clip_line(gjk: Any, reference: int) -> None:
    """The incident line within the reference face; its ends keep their features."""
    Q = gjk.polygon
    side = 1 - reference
    m0, m1, m2 = gjk.facing[reference, 0], gjk.facing[reference, 1], gjk.facing[reference, 2]
    low = 0.0
    high = 1.0
    for i in range(gjk.corners[reference]):
        p0, p1, p2, i0, i1, i2 = inwards(gjk, reference, i, m0, m1, m2)
        start = i0 * (Q[side, 0, 0] - p0) + i1 * (Q[side, 0, 1] - p1) + i2 * (Q[side, 0, 2] - p2)
        end = i0 * (Q[side, 1, 0] - p0) + i1 * (Q[side, 1, 1] - p1) + i2 * (Q[side, 1, 2] - p2)
        if start < 0.0 and end < 0.0:
            high = -1.0
        elif start < 0.0:
            low = max(low, start / (start - end))
        elif end < 0.0:
            high = min(high, start / (start - end))
    if low > high:
        gjk.corners[side] = 0
        return
    for axis in range(3):
        start = Q[side, 0, axis]
        way = Q[side, 1, axis] - start
        Q[side, 0, axis] = start + low * way
        Q[side, 1, axis] = start + high * way


@njit
def lines_side_by_side(shapes: Any, gjk: Any) -> bool:
    """Two capsules or cylinders, their axes parallel: the overlap's two ends. gjk.polygon[2] has the points half way
    between the surfaces and gjk.room their gaps; False: they cross, or lie one after the other.
    """
    u0, u1, u2 = gjk.rotation[0, 2], gjk.rotation[1, 2], gjk.rotation[2, 2]
    if gjk.corners[0] != 2 or gjk.corners[1] != 2 or abs(u2) < PARALLEL:
        return False
    away = sqrt(gjk.offset[0] * gjk.offset[0] + gjk.offset[1] * gjk.offset[1])
    if away > 0.1 * (gjk.size[0, 0] + gjk.size[1, 0]):
        try_normal(shapes, gjk, gjk.offset[0] / away, gjk.offset[1] / away, 0.0, AS_GOOD * gjk.scale[1])
    reach = gjk.size[1, 1] * abs(u2)
    low = max(-gjk.size[0, 1], gjk.offset[2] - reach)
    high = min(gjk.size[0, 1], gjk.offset[2] + reach)
    if high - low <= 1e-6 * gjk.scale[0]:
        return False
    gjk.corners[2] = 2
    for i in range(2):
        z = high if i == 0 else low
        s = (z - gjk.offset[2]) / u2
        d0, d1 = gjk.offset[0] + s * u0, gjk.offset[1] + s * u1
        along = d0 * gjk.normal[0] + d1 * gjk.normal[1]
        away = sqrt(d0 * d0 + d1 * d1) if along > 0.0 else along
        gap = max(away - gjk.size[0, 0] - gjk.size[1, 0], gjk.gap[0])  # sections across a's axis are only nearly round
        half = gjk.size[0, 0] + 0.5 * gap
        gjk.room[i] = gap
        gjk.polygon[2, i, 0] = half * gjk.normal[0]
        gjk.polygon[2, i, 1] = half * gjk.normal[1]
        gjk.polygon[2, i, 2] = z + half * gjk.normal[2]
        gjk.feature[2, i] = 1 + i
    return True


# ------------------------------------------------------------------ what is kept


@njit
def measure(gjk: Any, reference: int, at: int, margin: Any) -> int:
    """Corners of polygon `at` become contact points half way between the surfaces, gaps in gjk.room, nearer than
    margin; how many.
    """
    Q = gjk.polygon
    side = 1 - reference
    n0, n1, n2 = gjk.normal[0], gjk.normal[1], gjk.normal[2]
    sign = 1.0 if reference == 0 else -1.0  # the incident surface lies this way along the normal
    m0, m1, m2 = gjk.facing[reference, 0], gjk.facing[reference, 1], gjk.facing[reference, 2]
    p0, p1, p2 = Q[reference, 0, 0], Q[reference, 0, 1], Q[reference, 0, 2]
    slope = sign * (m0 * n0 + m1 * n1 + m2 * n2)
    kept = 0
    for i in range(gjk.corners[at]):
        x0, x1, x2 = Q[at, i, 0], Q[at, i, 1], Q[at, i, 2]
        radius = gjk.radius[side]
        gap = max((m0 * (x0 - p0) + m1 * (x1 - p1) + m2 * (x2 - p2)) / slope - radius, gjk.gap[0])
        if gap < margin:
            back = -sign * (radius + 0.5 * gap)
            Q[at, kept, 0] = x0 + back * n0
            Q[at, kept, 1] = x1 + back * n1
            Q[at, kept, 2] = x2 + back * n2
            gjk.feature[at, kept] = 2 * gjk.feature[at, i] + side
            gjk.room[kept] = gap
            kept += 1
    gjk.corners[at] = kept
    return kept


@njit
def spread(gjk: Any, at: int, count: int) -> int:
    """Of many points the deepest and those farthest from all that are kept, in their order; how many."""
    if count <= MOST_KEPT:
        return count
    Q = gjk.polygon
    first = 0
    for i in range(count):
        gjk.away[i] = inf
        if gjk.room[i] < gjk.room[first]:
            first = i
    for _ in range(MOST_KEPT):
        for i in range(count):
            d0, d1, d2 = Q[at, i, 0] - Q[at, first, 0], Q[at, i, 1] - Q[at, first, 1], Q[at, i, 2] - Q[at, first, 2]
            gjk.away[i] = min(gjk.away[i], d0 * d0 + d1 * d1 + d2 * d2)
        gjk.away[first] = -1.0  # kept
        for i in range(count):
            if gjk.away[i] > gjk.away[first]:
                first = i
    kept = 0
    for i in range(count):
        if gjk.away[i] == -1.0:
            for axis in range(3):
                Q[at, kept, axis] = Q[at, i, axis]
            gjk.feature[at, kept] = gjk.feature[at, i]
            gjk.room[kept] = gjk.room[i]
            kept += 1
    return kept
