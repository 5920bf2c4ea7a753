"""The distance of two convex cores (GJK), on their Minkowski difference.

Gilbert, Johnson, Keerthi 1988; van den Bergen, Collision Detection in Interactive 3D Environments, ch. 4. The nearest
point of a simplex is found by comparing all of its parts that hold the newest point, as they do in exact arithmetic:
Johnson's determinants, and signs of volumes that are tested one after the other, choose a wrong part of flat simplices.
A step that gets no nearer to the origin is the last one, and is not made.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from artsim.collision.support import difference, is_round
from artsim.sim.jit import inlined, njit

APART, NEAR, OVERLAP = range(3)
MOST_ROUNDS = 100
PRECISION = 1e-12  # of the distance of polyhedra, relative
ROUND_PRECISION = 1e-10  # of that of ellipsoids and cylinders, relative to the scale: normals to 1e-5
ROUNDING = 4e-16  # of coordinates, relative to the scale
TOUCHING = 1e-9  # relative to the scale: nearer than that is overlap, the direction would be rounding
ALMOST = 1e-6  # relative to the scale: as near as that, what gets stuck far from proven is overlap too:
UNSURE = 1e-9  # EPA's depth may as well be negative


@njit
def distance(shapes: Any, gjk: Any, margin: Any) -> int:
    """APART: the cores are farther apart than margin [m]. NEAR: gjk.nearest and the simplex with its weights say where.
    OVERLAP: the simplex holds the origin, but for rounding.
    """
    v0, v1, v2 = _first_direction(gjk)
    rounded = is_round(gjk.kind[0, 0]) or is_round(gjk.kind[1, 0])
    tolerance = ROUND_PRECISION * gjk.scale[1] if rounded else ROUNDING * gjk.scale[0]
    return approach(shapes, gjk, v0, v1, v2, margin, tolerance)


@njit
def approach(shapes: Any, gjk: Any, v0: Any, v1: Any, v2: Any, margin: Any, tolerance: Any) -> int:
    """The same from a direction on, b to a, until the distance is known to the tolerance [m]."""
    gjk.points[0] = 0
    floor = TOUCHING * gjk.scale[0]
    almost = ALMOST * gjk.scale[0]
    vv = inf
    for _ in range(MOST_ROUNDS):
        w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, -v0, -v1, -v2)
        vw = v0 * w0 + v1 * w1 + v2 * w2
        length2 = v0 * v0 + v1 * v1 + v2 * v2
        if vw > 0.0 and vw * vw > margin * margin * length2:
            return APART
        if gjk.points[0] > 0 and vv - vw <= PRECISION * vv + tolerance * sqrt(vv):
            break
        n = gjk.points[0]
        W = gjk.simplex
        W[n, 0] = w0
        W[n, 1] = w1
        W[n, 2] = w2
        W[n, 3] = a0
        W[n, 4] = a1
        W[n, 5] = a2
        if n == 3 and _holds_origin(W):
            gjk.points[0] = 4
            return OVERLAP
        part, s, t, nearest = _nearest_part(W, n)
        if nearest >= vv:
            stuck = vv <= almost * almost and vv - vw > UNSURE * gjk.scale[0] * sqrt(vv)
            return OVERLAP if stuck else NEAR
        vv = nearest
        _keep_part(gjk, n, part, s, t)
        v0, v1, v2 = gjk.nearest[0], gjk.nearest[1], gjk.nearest[2]
        if vv <= floor * floor:
            return OVERLAP
    return NEAR


@inlined
def _first_direction(gjk: Any) -> Any:
    """From b to a: against `start`, or the difference of the centres; never zero."""
    s0, s1, s2 = gjk.start[0], gjk.start[1], gjk.start[2]
    if s0 != 0.0 or s1 != 0.0 or s2 != 0.0:
        F = gjk.frame
        return (
            -(F[0, 0] * s0 + F[1, 0] * s1 + F[2, 0] * s2),
            -(F[0, 1] * s0 + F[1, 1] * s1 + F[2, 1] * s2),
            -(F[0, 2] * s0 + F[1, 2] * s1 + F[2, 2] * s2),
        )
    v0, v1, v2 = -gjk.offset[0], -gjk.offset[1], -gjk.offset[2]
    floor = 1e-12 * gjk.scale[0]
    if v0 * v0 + v1 * v1 + v2 * v2 <= floor * floor:
        v2 = -1.0
    return v0, v1, v2


@inlined
def _holds_origin(W: Any) -> bool:
    """Whether the origin is in the tetrahedron; not in one without volume."""
    e0, e1, e2 = W[0, 0] - W[3, 0], W[0, 1] - W[3, 1], W[0, 2] - W[3, 2]
    f0, f1, f2 = W[1, 0] - W[3, 0], W[1, 1] - W[3, 1], W[1, 2] - W[3, 2]
    g0, g1, g2 = W[2, 0] - W[3, 0], W[2, 1] - W[3, 1], W[2, 2] - W[3, 2]
    q0, q1, q2 = -W[3, 0], -W[3, 1], -W[3, 2]
    # rows of the adjugate of (e f g)
    x0, x1, x2 = f1 * g2 - f2 * g1, f2 * g0 - f0 * g2, f0 * g1 - f1 * g0
    y0, y1, y2 = g1 * e2 - g2 * e1, g2 * e0 - g0 * e2, g0 * e1 - g1 * e0
    z0, z1, z2 = e1 * f2 - e2 * f1, e2 * f0 - e0 * f2, e0 * f1 - e1 * f0
    volume = e0 * x0 + e1 * x1 + e2 * x2
    s = q0 * x0 + q1 * x1 + q2 * x2
    t = q0 * y0 + q1 * y1 + q2 * y2
    u = q0 * z0 + q1 * z1 + q2 * z2
    if volume < 0.0:
        volume, s, t, u = -volume, -s, -t, -u
    size = abs(e0 * x0) + abs(e1 * x1) + abs(e2 * x2)
    inside = volume > 1e-14 * size and s >= 0.0 and t >= 0.0 and u >= 0.0 and s + t + u <= volume
    return bool(inside)


@inlined
def _edge(W: Any, n: int, i: int) -> Any:
    """How far along the edge from point n to point i the nearest point lies, and its distance squared."""
    e0, e1, e2 = W[i, 0] - W[n, 0], W[i, 1] - W[n, 1], W[i, 2] - W[n, 2]
    ee = e0 * e0 + e1 * e1 + e2 * e2
    s = -(W[n, 0] * e0 + W[n, 1] * e1 + W[n, 2] * e2)
    s = s / ee if ee > 0.0 and s > 0.0 else 0.0
    s = min(s, 1.0)
    v0, v1, v2 = W[n, 0] + s * e0, W[n, 1] + s * e1, W[n, 2] + s * e2
    return s, v0 * v0 + v1 * v1 + v2 * v2


@inlined
def _face(W: Any, n: int, i: int, j: int) -> Any:
    """Weights of points i and j of the nearest point inside the triangle, and its distance squared; inf: not inside."""
    e0, e1, e2 = W[i, 0] - W[n, 0], W[i, 1] - W[n, 1], W[i, 2] - W[n, 2]
    f0, f1, f2 = W[j, 0] - W[n, 0], W[j, 1] - W[n, 1], W[j, 2] - W[n, 2]
    n0, n1, n2 = e1 * f2 - e2 * f1, e2 * f0 - e0 * f2, e0 * f1 - e1 * f0
    nn = n0 * n0 + n1 * n1 + n2 * n2
    size = (e0 * e0 + e1 * e1 + e2 * e2) * (f0 * f0 + f1 * f1 + f2 * f2)
    if nn <= 1e-28 * size:
        return 0.0, 0.0, inf
    q0, q1, q2 = -W[n, 0], -W[n, 1], -W[n, 2]
    s = (q1 * f2 - q2 * f1) * n0 + (q2 * f0 - q0 * f2) * n1 + (q0 * f1 - q1 * f0) * n2
    t = (e1 * q2 - e2 * q1) * n0 + (e2 * q0 - e0 * q2) * n1 + (e0 * q1 - e1 * q0) * n2
    if s < 0.0 or t < 0.0 or s + t > nn:
        return 0.0, 0.0, inf
    height = n0 * W[n, 0] + n1 * W[n, 1] + n2 * W[n, 2]
    return s / nn, t / nn, height * height / nn


@inlined
def _nearest_part(W: Any, n: int) -> Any:
    """The part of the simplex, point n among its points, that is nearest to the origin: which (bits: the other points),
    its weights in their order, and the distance squared.
    """
    part = 0
    s = 0.0
    t = 0.0
    best = W[n, 0] * W[n, 0] + W[n, 1] * W[n, 1] + W[n, 2] * W[n, 2]
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
def _move(W: Any, source: int, target: int) -> None:
    for axis in range(6):
        W[target, axis] = W[source, axis]


@inlined
def _keep_part(gjk: Any, n: int, part: int, s: Any, t: Any) -> None:
    """The simplex becomes that part, its newest point last; gjk.nearest and weights of it."""
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
    e0, e1, e2 = W[0, 0] - W[at, 0], W[0, 1] - W[at, 1], W[0, 2] - W[at, 2]
    if at < 2:
        s = s if at == 1 else 0.0
        for axis in range(3):
            gjk.nearest[axis] = W[at, axis] + s * (W[0, axis] - W[at, axis])
        return
    f0, f1, f2 = W[1, 0] - W[2, 0], W[1, 1] - W[2, 1], W[1, 2] - W[2, 2]
    n0, n1, n2 = e1 * f2 - e2 * f1, e2 * f0 - e0 * f2, e0 * f1 - e1 * f0
    factor = (n0 * W[2, 0] + n1 * W[2, 1] + n2 * W[2, 2]) / (n0 * n0 + n1 * n1 + n2 * n2)
    gjk.nearest[0], gjk.nearest[1], gjk.nearest[2] = factor * n0, factor * n1, factor * n2
