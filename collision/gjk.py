"""Distance of two convex cores by the algorithm of Gilbert, Johnson and Keerthi (GJK) on their Minkowski difference.

Sources: Gilbert, Johnson, Keerthi 1988; van den Bergen, Collision Detection in Interactive 3D Environments, ch. 4. The
nearest point of a simplex is found by comparing all parts that contain the newest point, as in exact arithmetic:
Johnson's determinants and sequential tests of signed volumes choose wrong parts of flat simplices. The iteration ends
before a step that would come no nearer to the origin.
"""

from __future__ import annotations

from math import inf, sqrt

from artsim.collision.gjk_work import GjkWork
from artsim.collision.shapes import Shapes
from artsim.collision.support import difference, is_round, keep_point
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import rotated_back
from artsim.sim.foundation.records import Reals2, Vec3
from artsim.sim.foundation.vec3 import cross, dot, minus, negative, plus_times, put, row_of, times, triple

APART, NEAR, OVERLAP = range(3)
_MOST_ROUNDS = 100
_PRECISION = 1e-12  # relative, of the distance of polyhedra
_ROUND_PRECISION = 1e-10  # relative to the scale, of the distance of ellipsoids and cylinders: normals to 1e-5
_ROUNDING = 4e-16  # of coordinates, relative to the scale
_TOUCHING = 1e-9  # relative to the scale: smaller distances count as overlap, since their direction is rounding
_ALMOST = 1e-6  # relative to the scale: an iteration that stalls unproven at this distance counts as overlap too,
_UNSURE = 1e-9  # since EPA's depth may be negative


@njit
def distance(shapes: Shapes, gjk: GjkWork, margin: float) -> int:
    """APART: the cores are farther apart than margin [m]. NEAR: gjk.nearest and the weighted simplex give the points.
    OVERLAP: the simplex contains the origin except for rounding.
    """
    rounded = is_round(gjk.kind[0, 0]) or is_round(gjk.kind[1, 0])
    tolerance = _ROUND_PRECISION * gjk.scale[1] if rounded else _ROUNDING * gjk.scale[0]
    return approach(shapes, gjk, _first_direction(gjk), margin, tolerance)


@njit
def approach(shapes: Shapes, gjk: GjkWork, v: Vec3, margin: float, tolerance: float) -> int:
    """`distance` from an initial direction v, b to a, until the distance is known to the tolerance [m]."""
    gjk.points[0] = 0
    floor = _TOUCHING * gjk.scale[0]
    almost = _ALMOST * gjk.scale[0]
    vv = inf
    for _ in range(_MOST_ROUNDS):
        w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, negative(v))
        w, a = (w0, w1, w2), (a0, a1, a2)
        vw = dot(v, w)
        if vw > 0.0 and vw * vw > margin * margin * dot(v, v):
            return APART
        if gjk.points[0] > 0 and vv - vw <= _PRECISION * vv + tolerance * sqrt(vv):
            break
        n = gjk.points[0]
        W = gjk.simplex
        keep_point(W, n, w, a)
        if n == 3 and _holds_origin(W):
            gjk.points[0] = 4
            return OVERLAP
        part, s, t, nearest = _nearest_part(W, n)
        if nearest >= vv:
            stuck = vv <= almost * almost and vv - vw > _UNSURE * gjk.scale[0] * sqrt(vv)
            return OVERLAP if stuck else NEAR
        vv = nearest
        _keep_part(gjk, n, part, s, t)
        v = triple(gjk.nearest)
        if vv <= floor * floor:
            return OVERLAP
    return NEAR


@inlined
def _first_direction(gjk: GjkWork) -> Vec3:
    """Initial direction from b to a: the opposite of `start`, or the difference of the centres; never zero."""
    s = triple(gjk.start)
    if s[0] != 0.0 or s[1] != 0.0 or s[2] != 0.0:
        return negative(rotated_back(gjk.frame, s))
    v = negative(gjk.offset)
    floor = 1e-12 * gjk.scale[0]
    if dot(v, v) <= floor * floor:
        return v[0], v[1], -1.0
    return v


@inlined
def _holds_origin(W: Reals2) -> bool:
    """True if the origin is in the tetrahedron; False for one without volume."""
    e, f, g = minus(row_of(W, 0), row_of(W, 3)), minus(row_of(W, 1), row_of(W, 3)), minus(row_of(W, 2), row_of(W, 3))
    q = negative(row_of(W, 3))
    # rows of the adjugate of (e f g)
    x, y, z = (cross(f, g), cross(g, e), cross(e, f))
    volume = dot(e, x)
    s = dot(q, x)
    t = dot(q, y)
    u = dot(q, z)
    if volume < 0.0:
        volume, s, t, u = -volume, -s, -t, -u
    size = abs(e[0] * x[0]) + abs(e[1] * x[1]) + abs(e[2] * x[2])
    inside = volume > 1e-14 * size and s >= 0.0 and t >= 0.0 and u >= 0.0 and s + t + u <= volume
    return bool(inside)


@inlined
def _edge(W: Reals2, n: int, i: int) -> tuple[float, float]:
    """Parameter of the nearest point on the edge from point n to point i, and its squared distance."""
    e = minus(row_of(W, i), row_of(W, n))
    ee = dot(e, e)
    s = -dot(row_of(W, n), e)
    s = s / ee if ee > 0.0 and s > 0.0 else 0.0
    s = min(s, 1.0)
    v = plus_times(row_of(W, n), s, e)
    return s, dot(v, v)


@inlined
def _face(W: Reals2, n: int, i: int, j: int) -> Vec3:
    """Weights of points i and j of the nearest point inside the triangle, and its squared distance; inf: not inside."""
    e, f = minus(row_of(W, i), row_of(W, n)), minus(row_of(W, j), row_of(W, n))
    normal = cross(e, f)
    square = dot(normal, normal)
    if square <= 1e-28 * (dot(e, e) * dot(f, f)):
        return 0.0, 0.0, inf
    q = negative(row_of(W, n))
    s = dot(cross(q, f), normal)
    t = dot(cross(e, q), normal)
    if s < 0.0 or t < 0.0 or s + t > square:
        return 0.0, 0.0, inf
    height = dot(normal, row_of(W, n))
    return s / square, t / square, height * height / square


@inlined
def _nearest_part(W: Reals2, n: int) -> tuple[int, float, float, float]:
    """The part of the simplex that contains point n and is nearest to the origin: bits of its other points, their
    weights in order, and the squared distance.
    """
    part = 0
    s = 0.0
    t = 0.0
    best = dot(row_of(W, n), row_of(W, n))
    for i in range(n):
        si, value = _edge(W, n, i)
        if value < best and si > 0.0:
            part, s, best = 1 << i, si, value
    for i in range(n):
        for j in range(i + 1, n):
            si, ti, value = _face(W, n, i, j)
            if value < best:
                part, s, t, best = (1 << i) | (1 << j), si, ti, value
    return part, s, t, best


@inlined
def _move(W: Reals2, source: int, target: int) -> None:
    for axis in range(6):
        W[target, axis] = W[source, axis]


@inlined
def _keep_part(gjk: GjkWork, n: int, part: int, s: float, t: float) -> None:
    """Reduce the simplex to a part, newest point last, and set gjk.nearest and the weights."""
    W = gjk.simplex
    at = 0
    for i in range(n):
        if part >> i & 1:
            if i != at:
                _move(W, i, at)
            gjk.weight[at] = s if at == 0 else t
            at += 1
    if n != at:
        _move(W, n, at)
    gjk.weight[at] = 1.0 - s - (t if at == 2 else 0.0)
    gjk.points[0] = at + 1
    e = minus(row_of(W, 0), row_of(W, at))
    if at < 2:
        put(gjk.nearest, plus_times(row_of(W, at), s if at == 1 else 0.0, e))
        return
    normal = cross(e, minus(row_of(W, 1), row_of(W, 2)))
    put(gjk.nearest, times(dot(normal, row_of(W, 2)) / dot(normal, normal), normal))
