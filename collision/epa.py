"""How deep two convex cores overlap (expanding polytope algorithm), on their Minkowski difference.

van den Bergen, Collision Detection in Interactive 3D Environments, ch. 4.3.8. A polytope inside the difference, the
origin in it, grows where it is nearest to the origin. Its nearest face bounds the depth from below, the support
function at any face's normal from above: what is returned is always a translation that separates, the shortest seen,
whatever room and rounding did to the polytope.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from artsim.collision.gjk_work import MOST_FACES, MOST_VERTICES
from artsim.collision.support import across, are_smooth, difference, is_round
from artsim.sim.jit import inlined, njit

PRECISION = 1e-10  # of the depth, relative to the scale
SMOOTH_PRECISION = 1e-7  # the same of two smooth ones: Newton's method goes on from there
ROUND_PRECISION = 1e-8  # the same with ellipsoids and cylinders: a hundredth costs a third more time
SETTLED = 1e-6  # relative to the scale: a face that is so near to the surface tells where the shapes touch
FLAT = 1e-10  # what is thinner, relative to the scale, has no thickness
COPLANAR = 1e-9  # difference of distances, relative to the scale
MOST_WAY = 8  # coplanar faces on the way to the one below the origin
VISIBLE = 1e-14  # heights above a face, relative to the scale, that are not rounding


@njit
def depth(shapes: Any, gjk: Any) -> bool:
    """The depth of the overlap that `distance` found: gjk.gap, negative; gjk.normal, gjk.point on the cores, gjk.loose.
    False: room or digits ran out before it was proven the least.
    """
    gjk.gap[0] = -inf
    gjk.loose[0] = 0.0
    return not _make_tetrahedron(shapes, gjk) or _expand(shapes, gjk)


@inlined
def _put_vertex(gjk: Any, i: int, w0: Any, w1: Any, w2: Any, a0: Any, a1: Any, a2: Any) -> None:
    V = gjk.vertex
    V[i, 0] = w0
    V[i, 1] = w1
    V[i, 2] = w2
    V[i, 3] = a0
    V[i, 4] = a1
    V[i, 5] = a2


@inlined
def _keep_witness(gjk: Any, height: Any, n0: Any, n1: Any, n2: Any, a0: Any, a1: Any, a2: Any) -> None:
    """The shortest way out so far: along the unit normal n, from the point of a that lies over the origin."""
    gjk.gap[0] = -height
    gjk.normal[0] = n0
    gjk.normal[1] = n1
    gjk.normal[2] = n2
    gjk.point[0, 0] = a0
    gjk.point[0, 1] = a1
    gjk.point[0, 2] = a2
    for axis in range(3):
        gjk.point[1, axis] = gjk.point[0, axis] - height * gjk.normal[axis]


# ------------------------------------------------------------------ the first polytope


@njit
def _try_direction(shapes: Any, gjk: Any, i: int, d0: Any, d1: Any, d2: Any) -> bool:
    """Vertex i farthest along d (any length); True when the origin lies on the surface there: nothing more to do."""
    factor = 1.0 / sqrt(d0 * d0 + d1 * d1 + d2 * d2)
    d0 *= factor
    d1 *= factor
    d2 *= factor
    w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, d0, d1, d2)
    _put_vertex(gjk, i, w0, w1, w2, a0, a1, a2)
    height = d0 * w0 + d1 * w1 + d2 * w2
    if height > FLAT * gjk.scale[0]:
        return False
    a0, a1, a2 = _point_of_simplex(gjk)
    _keep_witness(gjk, height, d0, d1, d2, a0, a1, a2)
    return True


@inlined
def _point_of_simplex(gjk: Any) -> Any:
    """The point of a where the simplex of `distance` comes nearest to the origin."""
    a0 = 0.0
    a1 = 0.0
    a2 = 0.0
    total = 0.0
    for i in range(min(gjk.points[0], 3)):
        weight = gjk.weight[i]
        total += weight
        a0 += weight * gjk.simplex[i, 3]
        a1 += weight * gjk.simplex[i, 4]
        a2 += weight * gjk.simplex[i, 5]
    return (a0 / total, a1 / total, a2 / total) if total > 0.0 else (a0, a1, a2)


@njit
def _make_tetrahedron(shapes: Any, gjk: Any) -> bool:
    """Vertices 0 to 3 around the origin (on the surface at worst). False: the depth is nothing, and known."""
    n = gjk.points[0]
    for i in range(n):
        W = gjk.simplex
        _put_vertex(gjk, i, W[i, 0], W[i, 1], W[i, 2], W[i, 3], W[i, 4], W[i, 5])
    if n == 1 and _to_second(shapes, gjk):
        return False
    if n <= 2 and _to_third(shapes, gjk):
        return False
    return n == 4 or not _to_fourth(shapes, gjk)


@njit
def _to_second(shapes: Any, gjk: Any) -> bool:
    """A second vertex: the origin is the first one, so that a direction from which it is seen exists nearby."""
    for trial in range(6):
        sign = 1.0 if trial % 2 == 0 else -1.0
        axis = trial // 2
        d0 = sign if axis == 0 else 0.0
        d1 = sign if axis == 1 else 0.0
        d2 = sign if axis == 2 else 0.0
        if _try_direction(shapes, gjk, 1, d0, d1, d2):
            return True
    return False


@njit
def _to_third(shapes: Any, gjk: Any) -> bool:
    """A third vertex, off the segment of the first two on which the origin lies."""
    V = gjk.vertex
    e0, e1, e2 = V[1, 0] - V[0, 0], V[1, 1] - V[0, 1], V[1, 2] - V[0, 2]
    f0, f1, f2 = across(e0, e1, e2)
    g0, g1, g2 = e1 * f2 - e2 * f1, e2 * f0 - e0 * f2, e0 * f1 - e1 * f0
    return (
        _try_direction(shapes, gjk, 2, f0, f1, f2)
        or _try_direction(shapes, gjk, 2, -f0, -f1, -f2)
        or _try_direction(shapes, gjk, 2, g0, g1, g2)
        or _try_direction(shapes, gjk, 2, -g0, -g1, -g2)
    )


@njit
def _to_fourth(shapes: Any, gjk: Any) -> bool:
    """A fourth vertex, off the triangle of the first three on which the origin lies."""
    V = gjk.vertex
    e0, e1, e2 = V[1, 0] - V[0, 0], V[1, 1] - V[0, 1], V[1, 2] - V[0, 2]
    f0, f1, f2 = V[2, 0] - V[0, 0], V[2, 1] - V[0, 1], V[2, 2] - V[0, 2]
    n0, n1, n2 = e1 * f2 - e2 * f1, e2 * f0 - e0 * f2, e0 * f1 - e1 * f0
    if n0 * n0 + n1 * n1 + n2 * n2 == 0.0:
        n0, n1, n2 = across(e0, e1, e2)
    # towards b first: of two ways out of something flat the one that the centres say
    sign = 1.0 if n0 * gjk.offset[0] + n1 * gjk.offset[1] + n2 * gjk.offset[2] >= 0.0 else -1.0
    return _try_direction(shapes, gjk, 3, sign * n0, sign * n1, sign * n2) or _try_direction(
        shapes, gjk, 3, -sign * n0, -sign * n1, -sign * n2
    )


# ------------------------------------------------------------------ growing


@njit
def _expand(shapes: Any, gjk: Any) -> bool:
    """Grow where it is nearest; whether that came to an end."""
    _first_faces(gjk)
    rounded = is_round(gjk.kind[0, 0]) or is_round(gjk.kind[1, 0])
    tolerance = (SMOOTH_PRECISION if are_smooth(gjk) else ROUND_PRECISION if rounded else PRECISION) * gjk.scale[0]
    gjk.loose[0] = inf
    for vertex in range(4, MOST_VERTICES):
        face = _nearest_face(gjk, tolerance)
        if face < 0:
            return True
        lower = gjk.distance[face]
        if gjk.loose[0] <= SETTLED * gjk.scale[0] and -gjk.gap[0] - lower <= tolerance:
            return True
        n0, n1, n2 = gjk.plane[face, 0], gjk.plane[face, 1], gjk.plane[face, 2]
        w0, w1, w2, a0, a1, a2 = difference(shapes, gjk, n0, n1, n2)
        height = n0 * w0 + n1 * w1 + n2 * w2
        shorter = height < -gjk.gap[0] - tolerance
        if shorter or (height <= -gjk.gap[0] + tolerance and height - lower < gjk.loose[0]):
            b0, b1, b2, beside = _point_of_face(gjk, _face_below(gjk, face))
            _keep_witness(gjk, height, n0, n1, n2, b0, b1, b2)
            gjk.loose[0] = height - lower + beside
        if height - lower <= tolerance:
            return True
        _put_vertex(gjk, vertex, w0, w1, w2, a0, a1, a2)
        edges = _open(gjk, face, w0, w1, w2)
        if edges < 3 or not _close(gjk, edges, vertex):
            break
    return False


@inlined
def _first_faces(gjk: Any) -> None:
    """The tetrahedron's faces, turned outwards."""
    V = gjk.vertex
    e0, e1, e2 = V[1, 0] - V[0, 0], V[1, 1] - V[0, 1], V[1, 2] - V[0, 2]
    f0, f1, f2 = V[2, 0] - V[0, 0], V[2, 1] - V[0, 1], V[2, 2] - V[0, 2]
    g0, g1, g2 = V[3, 0] - V[0, 0], V[3, 1] - V[0, 1], V[3, 2] - V[0, 2]
    volume = g0 * (e1 * f2 - e2 * f1) + g1 * (e2 * f0 - e0 * f2) + g2 * (e0 * f1 - e1 * f0)
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
def _make_face(gjk: Any, face: int, i: int, j: int, h: int, across_ij: int, across_jh: int, across_hi: int) -> None:
    """A face with corners i, j, h, beside which lie these faces."""
    V = gjk.vertex
    gjk.corner[face, 0] = i
    gjk.corner[face, 1] = j
    gjk.corner[face, 2] = h
    gjk.beside[face, 0] = across_ij
    gjk.beside[face, 1] = across_jh
    gjk.beside[face, 2] = across_hi
    e0, e1, e2 = V[j, 0] - V[i, 0], V[j, 1] - V[i, 1], V[j, 2] - V[i, 2]
    f0, f1, f2 = V[h, 0] - V[i, 0], V[h, 1] - V[i, 1], V[h, 2] - V[i, 2]
    n0, n1, n2 = e1 * f2 - e2 * f1, e2 * f0 - e0 * f2, e0 * f1 - e1 * f0
    nn = n0 * n0 + n1 * n1 + n2 * n2
    size = (e0 * e0 + e1 * e1 + e2 * e2) * (f0 * f0 + f1 * f1 + f2 * f2)
    if nn <= 1e-24 * size or nn == 0.0:  # a sliver has no normal: it is there, but never the nearest, never seen
        gjk.plane[face, 0] = 0.0
        gjk.plane[face, 1] = 0.0
        gjk.plane[face, 2] = 0.0
        gjk.distance[face] = 1e300
        return
    factor = 1.0 / sqrt(nn)
    n0 *= factor
    n1 *= factor
    n2 *= factor
    gjk.plane[face, 0] = n0
    gjk.plane[face, 1] = n1
    gjk.plane[face, 2] = n2
    gjk.distance[face] = n0 * V[i, 0] + n1 * V[i, 1] + n2 * V[i, 2]
    if gjk.distance[face] <= -gjk.gap[0] + ROUND_PRECISION * gjk.scale[0] and gjk.listed[face] == 0:
        gjk.listed[face] = 1
        gjk.candidate[gjk.faces[2]] = face
        gjk.faces[2] += 1


@inlined
def _nearest_face(gjk: Any, tolerance: Any) -> Any:
    """The candidate nearest to the origin; -1: none is left. What is removed, or beyond the shortest way out, goes."""
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
def _is_visible(gjk: Any, f: int, w0: Any, w1: Any, w2: Any) -> bool:
    height = gjk.plane[f, 0] * w0 + gjk.plane[f, 1] * w1 + gjk.plane[f, 2] * w2 - gjk.distance[f]
    return bool(height > VISIBLE * gjk.scale[0])


@inlined
def _remove(gjk: Any, f: int) -> None:
    gjk.distance[f] = inf
    gjk.free[gjk.faces[1]] = f
    gjk.faces[1] += 1


@njit
def _open(gjk: Any, face: int, w0: Any, w1: Any, w2: Any) -> int:
    """Remove what is seen from w, around `face`; the edges of the hole in turn: corners, the face across, its edge.

    From each face on over its edges counter-clockwise, depth first: so the edges come in order.
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
        if _is_visible(gjk, g, w0, w1, w2):
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
def _push(gjk: Any, top: int, face: int, edge: int, edges: int) -> None:
    gjk.stack[top, 0] = face
    gjk.stack[top, 1] = edge
    gjk.stack[top, 2] = edges


@inlined
def _close(gjk: Any, edges: int, vertex: int) -> bool:
    """New faces from the hole's edges to the vertex. False: there is no room, or the edges are not one loop."""
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
def _take_face(gjk: Any) -> Any:
    """A face that was removed, or one that never was."""
    if gjk.faces[1] > 0:
        gjk.faces[1] -= 1
        return gjk.free[gjk.faces[1]]
    gjk.listed[gjk.faces[0]] = 0
    gjk.faces[0] += 1
    return gjk.faces[0] - 1


@inlined
def _face_below(gjk: Any, face: int) -> Any:
    """The origin's projection into the nearest plane lies in one of the faces in that plane: over edges to that one."""
    V = gjk.vertex
    d = gjk.distance[face]
    n0, n1, n2 = gjk.plane[face, 0], gjk.plane[face, 1], gjk.plane[face, 2]
    for _ in range(MOST_WAY):
        across = -1
        worst = -FLAT * gjk.scale[0] * gjk.scale[0]
        for e in range(3):
            i, j = gjk.corner[face, e], gjk.corner[face, (e + 1) % 3]
            e0, e1, e2 = V[j, 0] - V[i, 0], V[j, 1] - V[i, 1], V[j, 2] - V[i, 2]
            q0, q1, q2 = d * n0 - V[i, 0], d * n1 - V[i, 1], d * n2 - V[i, 2]
            inwards = n0 * (e1 * q2 - e2 * q1) + n1 * (e2 * q0 - e0 * q2) + n2 * (e0 * q1 - e1 * q0)
            if inwards < worst:
                worst = inwards
                across = e
        if across < 0:
            break
        beyond = gjk.beside[face, across]
        cosine = n0 * gjk.plane[beyond, 0] + n1 * gjk.plane[beyond, 1] + n2 * gjk.plane[beyond, 2]
        if gjk.distance[beyond] > d + COPLANAR * gjk.scale[0] or cosine < 0.999:
            break
        face = beyond
    return face


@inlined
def _point_of_face(gjk: Any, face: int) -> Any:
    """The point of a over the origin's projection into a face, and how far beside the face that projection is."""
    V = gjk.vertex
    i, j, h = gjk.corner[face, 0], gjk.corner[face, 1], gjk.corner[face, 2]
    n0, n1, n2 = gjk.plane[face, 0], gjk.plane[face, 1], gjk.plane[face, 2]
    e0, e1, e2 = V[j, 0] - V[i, 0], V[j, 1] - V[i, 1], V[j, 2] - V[i, 2]
    f0, f1, f2 = V[h, 0] - V[i, 0], V[h, 1] - V[i, 1], V[h, 2] - V[i, 2]
    q0, q1, q2 = -V[i, 0], -V[i, 1], -V[i, 2]
    area = n0 * (e1 * f2 - e2 * f1) + n1 * (e2 * f0 - e0 * f2) + n2 * (e0 * f1 - e1 * f0)
    s = (n0 * (q1 * f2 - q2 * f1) + n1 * (q2 * f0 - q0 * f2) + n2 * (q0 * f1 - q1 * f0)) / area
    t = (n0 * (e1 * q2 - e2 * q1) + n1 * (e2 * q0 - e0 * q2) + n2 * (e0 * q1 - e1 * q0)) / area
    beside = max(-s, -t, s + t - 1.0, 0.0) * (abs(e0) + abs(e1) + abs(e2) + abs(f0) + abs(f1) + abs(f2))
    s = min(max(s, 0.0), 1.0)
    t = min(max(t, 0.0), 1.0 - s)
    r = 1.0 - s - t
    return (
        r * V[i, 3] + s * V[j, 3] + t * V[h, 3],
        r * V[i, 4] + s * V[j, 4] + t * V[h, 4],
        r * V[i, 5] + s * V[j, 5] + t * V[h, 5],
        beside,
    )
