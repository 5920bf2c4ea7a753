"""Penetration depth of two convex cores by the expanding polytope algorithm (EPA) on their Minkowski difference.

Source: van den Bergen, Collision Detection in Interactive 3D Environments, ch. 4.3.8. A polytope inside the difference
that contains the origin is expanded where it is nearest to the origin. Its nearest face bounds the depth from below,
the support function at the normal of any face from above. The result is always a separating translation, the shortest
one found, regardless of rounding and of the room for the polytope.
"""

from __future__ import annotations

from math import inf, sqrt

from artsim.collision.gjk_work import MOST_FACES, MOST_VERTICES, GjkWork
from artsim.collision.shapes import Shapes
from artsim.collision.support import across, are_smooth, difference, is_round, keep_point, point_of_a
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import (
    combined,
    cross,
    divided,
    dot,
    length,
    minus,
    minus_times,
    negative,
    plus_times,
    put,
    row_of,
    set_row,
    times,
)

_PRECISION = 1e-10  # of the depth, relative to the scale
_SMOOTH_PRECISION = 1e-7  # the precision for two smooth shapes, where Newton's method continues
_ROUND_PRECISION = 1e-8  # the precision for ellipsoids and cylinders; a hundredth of it costs a third more time
_SETTLED = 1e-6  # relative to the scale: distance of a face from the surface at which it gives the contact point
_FLAT = 1e-10  # relative to the scale: thickness that counts as zero
_COPLANAR = 1e-9  # difference of distances, relative to the scale
_MOST_WAY = 8  # largest number of coplanar faces visited to find the one below the origin
_VISIBLE = 1e-14  # smallest height above a face, relative to the scale, that is not rounding


@njit
def depth(shapes: Shapes, gjk: GjkWork) -> bool:
    """Compute the depth of an overlap found by `distance`: gjk.gap (negative), gjk.normal, gjk.point, gjk.loose.

    The points are on the cores. False: room or precision ran out before the depth was proven to be the least.
    """
    gjk.gap[0] = -inf
    gjk.loose[0] = 0.0
    return not _make_tetrahedron(shapes, gjk) or _expand(shapes, gjk)


@inlined
def _keep_witness(gjk: GjkWork, height: float, normal: Vec3, a: Vec3) -> None:
    """Store the shortest separating translation so far: along the unit normal, with the point of a over the origin."""
    gjk.gap[0] = -height
    put(gjk.normal, normal)
    set_row(gjk.point, 0, a)
    set_row(gjk.point, 1, minus_times(a, height, normal))


# ------------------------------------------------------------------ the first polytope


@njit
def _try_direction(shapes: Shapes, gjk: GjkWork, i: int, way: Vec3) -> bool:
    """Set vertex i to the farthest along `way` (any length); True if the origin lies on the surface there."""
    d = times(1.0 / length(way), way)
    w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, d)
    w, a = (w0, w1, w2), (a0, a1, a2)
    keep_point(gjk.vertex, i, w, a)
    height = dot(d, w)
    if height > _FLAT * gjk.scale[0]:
        return False
    _keep_witness(gjk, height, d, _point_of_simplex(gjk))
    return True


@inlined
def _point_of_simplex(gjk: GjkWork) -> Vec3:
    """The point of a where the simplex of `distance` comes nearest to the origin."""
    a = (0.0, 0.0, 0.0)
    total = 0.0
    for i in range(min(gjk.points[0], 3)):
        total += gjk.weight[i]
        a = plus_times(a, gjk.weight[i], point_of_a(gjk.simplex, i))
    return divided(a, total) if total > 0.0 else a


@njit
def _make_tetrahedron(shapes: Shapes, gjk: GjkWork) -> bool:
    """Set vertices 0 to 3 around the origin, possibly on the surface; False if the depth is zero."""
    n = gjk.points[0]
    for i in range(n):
        keep_point(gjk.vertex, i, row_of(gjk.simplex, i), point_of_a(gjk.simplex, i))
    if n == 1 and _to_second(shapes, gjk):
        return False
    if n <= 2 and _to_third(shapes, gjk):
        return False
    return n == 4 or not _to_fourth(shapes, gjk)


@njit
def _to_second(shapes: Shapes, gjk: GjkWork) -> bool:
    """Find a second vertex if the first is the origin, in a nearby direction from which the origin is seen."""
    for trial in range(6):
        sign = 1.0 if trial % 2 == 0 else -1.0
        axis = trial // 2
        way = (sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0)
        if _try_direction(shapes, gjk, 1, way):
            return True
    return False


@njit
def _to_third(shapes: Shapes, gjk: GjkWork) -> bool:
    """Find a third vertex off the segment of the first two, on which the origin lies."""
    e = minus(row_of(gjk.vertex, 1), row_of(gjk.vertex, 0))
    f = across(e)
    g = cross(e, f)
    return (
        _try_direction(shapes, gjk, 2, f)
        or _try_direction(shapes, gjk, 2, negative(f))
        or _try_direction(shapes, gjk, 2, g)
        or _try_direction(shapes, gjk, 2, negative(g))
    )


@njit
def _to_fourth(shapes: Shapes, gjk: GjkWork) -> bool:
    """Find a fourth vertex off the triangle of the first three, on which the origin lies."""
    V = gjk.vertex
    e = minus(row_of(V, 1), row_of(V, 0))
    normal = cross(e, minus(row_of(V, 2), row_of(V, 0)))
    if dot(normal, normal) == 0.0:
        normal = across(e)
    # towards b first: of the two directions out of a flat shape the centres decide
    sign = 1.0 if dot(normal, gjk.offset) >= 0.0 else -1.0
    return _try_direction(shapes, gjk, 3, times(sign, normal)) or _try_direction(shapes, gjk, 3, times(-sign, normal))


# ------------------------------------------------------------------ growing


@njit
def _expand(shapes: Shapes, gjk: GjkWork) -> bool:
    """Expand the polytope at its nearest face; True if this converged."""
    _first_faces(gjk)
    rounded = is_round(gjk.kind[0, 0]) or is_round(gjk.kind[1, 0])
    tolerance = (_SMOOTH_PRECISION if are_smooth(gjk) else _ROUND_PRECISION if rounded else _PRECISION) * gjk.scale[0]
    gjk.loose[0] = inf
    for vertex in range(4, MOST_VERTICES):
        face = _nearest_face(gjk, tolerance)
        if face < 0:
            return True
        lower = gjk.distance[face]
        if gjk.loose[0] <= _SETTLED * gjk.scale[0] and -gjk.gap[0] - lower <= tolerance:
            return True
        normal = row_of(gjk.plane, face)
        w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, normal)
        w, a = (w0, w1, w2), (a0, a1, a2)
        height = dot(normal, w)
        shorter = height < -gjk.gap[0] - tolerance
        if shorter or (height <= -gjk.gap[0] + tolerance and height - lower < gjk.loose[0]):
            point, beside = _point_of_face(gjk, _face_below(gjk, face))
            _keep_witness(gjk, height, normal, point)
            gjk.loose[0] = height - lower + beside
        if height - lower <= tolerance:
            return True
        keep_point(gjk.vertex, vertex, w, a)
        edges = _open(gjk, face, w)
        if edges < 3 or not _close(gjk, edges, vertex):
            break
    return False


@inlined
def _first_faces(gjk: GjkWork) -> None:
    """Make the faces of the tetrahedron, oriented outwards."""
    V = gjk.vertex
    volume = dot(
        minus(row_of(V, 3), row_of(V, 0)), cross(minus(row_of(V, 1), row_of(V, 0)), minus(row_of(V, 2), row_of(V, 0)))
    )
    if volume > 0.0:  # then 0 1 2 is seen clockwise from outside
        for axis in range(6):
            V[0, axis], V[1, axis] = V[1, axis], V[0, axis]
    gjk.faces[0] = 4
    gjk.faces[1] = 0
    gjk.faces[2] = 0
    for f in range(4):
        gjk.listed[f] = 0
    _make_face(gjk, 0, 0, 1, 2, 1, 2, 3)
    _make_face(gjk, 1, 1, 0, 3, 0, 3, 2)
    _make_face(gjk, 2, 2, 1, 3, 0, 1, 3)
    _make_face(gjk, 3, 0, 2, 3, 0, 2, 1)


@njit
def _make_face(gjk: GjkWork, face: int, i: int, j: int, h: int, across_ij: int, across_jh: int, across_hi: int) -> None:
    """Make a face with corners i, j, h and the given neighbouring faces."""
    V = gjk.vertex
    gjk.corner[face, 0] = i
    gjk.corner[face, 1] = j
    gjk.corner[face, 2] = h
    gjk.beside[face, 0] = across_ij
    gjk.beside[face, 1] = across_jh
    gjk.beside[face, 2] = across_hi
    e, f = minus(row_of(V, j), row_of(V, i)), minus(row_of(V, h), row_of(V, i))
    normal = cross(e, f)
    square = dot(normal, normal)
    # a sliver has no normal: it exists, but is never the nearest face and never visible
    if square <= 1e-24 * (dot(e, e) * dot(f, f)) or square == 0.0:
        set_row(gjk.plane, face, (0.0, 0.0, 0.0))
        gjk.distance[face] = 1e300
        return
    normal = times(1.0 / sqrt(square), normal)
    set_row(gjk.plane, face, normal)
    gjk.distance[face] = dot(normal, row_of(V, i))
    if gjk.distance[face] <= -gjk.gap[0] + _ROUND_PRECISION * gjk.scale[0] and gjk.listed[face] == 0:
        gjk.listed[face] = 1
        gjk.candidate[gjk.faces[2]] = face
        gjk.faces[2] += 1


@inlined
def _nearest_face(gjk: GjkWork, tolerance: float) -> int:
    """The candidate face nearest to the origin, or -1; drops candidates that are removed or beyond the best depth."""
    upper = -gjk.gap[0] + tolerance
    count = gjk.faces[2]
    kept = 0
    nearest = -1
    least = inf
    for i in range(count):
        f = gjk.candidate[i]
        value = gjk.distance[f]
        if value <= upper:
            gjk.candidate[kept] = f
            kept += 1
            if value < least:
                least = value
                nearest = f
        else:
            gjk.listed[f] = 0
    gjk.faces[2] = kept
    return nearest


@inlined
def _is_visible(gjk: GjkWork, f: int, w: Vec3) -> bool:
    return bool(dot(row_of(gjk.plane, f), w) - gjk.distance[f] > _VISIBLE * gjk.scale[0])


@inlined
def _remove(gjk: GjkWork, f: int) -> None:
    gjk.distance[f] = inf
    gjk.free[gjk.faces[1]] = f
    gjk.faces[1] += 1


@njit
def _open(gjk: GjkWork, face: int, w: Vec3) -> int:
    """Remove the faces around `face` that are visible from w; returns the edges of the hole in order.

    Each edge is stored with its corner, the face across and the edge there. A depth-first walk over the edges of each
    face, counter-clockwise, visits the edges in order.
    """
    edges = 0
    top = 0
    _push(gjk, 0, face, 0, 3)
    _remove(gjk, face)
    while top >= 0:
        if gjk.stack[top, 2] == 0:
            top -= 1
            continue
        f = gjk.stack[top, 0]
        e = gjk.stack[top, 1]
        gjk.stack[top, 1] = (e + 1) % 3
        gjk.stack[top, 2] -= 1
        g = gjk.beside[f, e]
        if gjk.distance[g] == inf:
            continue
        start = gjk.corner[f, e]
        end = gjk.corner[f, (e + 1) % 3]
        j = 0 if gjk.corner[g, 0] == end else (1 if gjk.corner[g, 1] == end else 2)
        if _is_visible(gjk, g, w):
            _remove(gjk, g)
            top += 1
            _push(gjk, top, g, (j + 1) % 3, 2)
        else:
            gjk.horizon[edges, 0] = start
            gjk.horizon[edges, 1] = end
            gjk.horizon[edges, 2] = g
            gjk.horizon[edges, 3] = j
            edges += 1
    return edges


@inlined
def _push(gjk: GjkWork, top: int, face: int, edge: int, edges: int) -> None:
    gjk.stack[top, 0] = face
    gjk.stack[top, 1] = edge
    gjk.stack[top, 2] = edges


@inlined
def _close(gjk: GjkWork, edges: int, vertex: int) -> bool:
    """Make faces from the edges of the hole to the vertex; False without room or if the edges are not one loop."""
    if MOST_FACES - gjk.faces[0] + gjk.faces[1] < edges:
        return False
    for e in range(edges):
        if gjk.horizon[e, 1] != gjk.horizon[(e + 1) % edges, 0]:
            return False
        gjk.stack[e, 0] = _take_face(gjk)
    for e in range(edges):
        face = gjk.stack[e, 0]
        after = gjk.stack[e + 1 if e + 1 < edges else 0, 0]
        before = gjk.stack[e - 1 if e > 0 else edges - 1, 0]
        _make_face(gjk, face, gjk.horizon[e, 0], gjk.horizon[e, 1], vertex, gjk.horizon[e, 2], after, before)
        gjk.beside[gjk.horizon[e, 2], gjk.horizon[e, 3]] = face
    return True


@inlined
def _take_face(gjk: GjkWork) -> int:
    """The number of an unused face: a removed one or a new one."""
    if gjk.faces[1] > 0:
        gjk.faces[1] -= 1
        return gjk.free[gjk.faces[1]]
    gjk.listed[gjk.faces[0]] = 0
    gjk.faces[0] += 1
    return gjk.faces[0] - 1


@inlined
def _face_below(gjk: GjkWork, face: int) -> int:
    """The face, among coplanar ones, that contains the projection of the origin, found by walking over edges."""
    V = gjk.vertex
    d = gjk.distance[face]
    normal = row_of(gjk.plane, face)
    below = times(d, normal)
    for _ in range(_MOST_WAY):
        across = -1
        worst = -_FLAT * gjk.scale[0] * gjk.scale[0]
        for e in range(3):
            i, j = gjk.corner[face, e], gjk.corner[face, (e + 1) % 3]
            inwards = dot(normal, cross(minus(row_of(V, j), row_of(V, i)), minus(below, row_of(V, i))))
            if inwards < worst:
                worst = inwards
                across = e
        if across < 0:
            break
        beyond = gjk.beside[face, across]
        if gjk.distance[beyond] > d + _COPLANAR * gjk.scale[0] or dot(normal, row_of(gjk.plane, beyond)) < 0.999:
            break
        face = beyond
    return face


@inlined
def _point_of_face(gjk: GjkWork, face: int) -> tuple[Vec3, float]:
    """The point of a over the origin's projection onto a face, and the distance of this projection from the face."""
    V = gjk.vertex
    i, j, h = gjk.corner[face, 0], gjk.corner[face, 1], gjk.corner[face, 2]
    normal = row_of(gjk.plane, face)
    e, f = minus(row_of(V, j), row_of(V, i)), minus(row_of(V, h), row_of(V, i))
    q = negative(row_of(V, i))
    area = dot(normal, cross(e, f))
    s = dot(normal, cross(q, f)) / area
    t = dot(normal, cross(e, q)) / area
    edges = abs(e[0]) + abs(e[1]) + abs(e[2]) + abs(f[0]) + abs(f[1]) + abs(f[2])
    beside = max(-s, -t, s + t - 1.0, 0.0) * edges
    s = min(max(s, 0.0), 1.0)
    t = min(max(t, 0.0), 1.0 - s)
    point = plus_times(combined(1.0 - s - t, point_of_a(V, i), s, point_of_a(V, j)), t, point_of_a(V, h))
    return point, beside
