"""Support points of convex shapes: the point of a shape that lies farthest in a direction.

Spheres and capsules are their core, a point or a segment, with a radius around it; the radius is added at the end, so
that shallow contacts of round shapes are distances of their cores.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from artsim.collision.shapes import BOX, CAPSULE, CONVEX, CYLINDER, ELLIPSOID, SPHERE, TRIANGLES
from artsim.sim.jit import inlined, njit

MOST_TIMES = 10.0  # the reach of the smaller side: of larger scales its precision is not a share
FEW = 20  # vertices: so many are looked at one by one, more are climbed


@inlined
def _set_side(shapes: Any, gjk: Any, side: int, a: int) -> None:
    """What shape `a` is, as one of the two sides."""
    kind = shapes.kind[a]
    gjk.kind[side, 0] = kind
    for axis in range(3):
        gjk.size[side, axis] = shapes.size[a, axis]
    gjk.radius[side] = shapes.size[a, 0] if kind == SPHERE or kind == CAPSULE else 0.0
    if kind == CONVEX:
        gjk.kind[side, 1] = shapes.vertex_start[shapes.mesh[a]]
        gjk.kind[side, 2] = shapes.vertex_start[shapes.mesh[a] + 1]
        gjk.kind[side, 3] = gjk.kind[side, 1]
        gjk.kind[side, 4] = shapes.mesh[a]


@inlined
def is_round(kind: int) -> bool:
    """Kinds on whose surface GJK and EPA only come near to the solution."""
    return kind == ELLIPSOID or kind == CYLINDER


@inlined
def are_smooth(gjk: Any) -> bool:
    """Two that touch at one point, about as large as each other: an ellipsoid and something round."""
    return bool(gjk.kind[1, 0] == ELLIPSOID and gjk.kind[0, 0] != TRIANGLES and gjk.scale[1] == gjk.scale[0])


@njit
def begin_pair(shapes: Any, placed: Any, gjk: Any, a: int, b: int) -> None:
    """Shape a is side 0, shape b is side 1; everything is in a's axes from here on."""
    _set_side(shapes, gjk, 0, a)
    _set_side(shapes, gjk, 1, b)
    gjk.scale[0] = shapes.reach[a] + shapes.reach[b]
    gjk.scale[1] = min(gjk.scale[0], MOST_TIMES * min(shapes.reach[a], shapes.reach[b]))
    d0 = placed.position[b, 0] - placed.position[a, 0]
    d1 = placed.position[b, 1] - placed.position[a, 1]
    d2 = placed.position[b, 2] - placed.position[a, 2]
    for i in range(3):
        gjk.origin[i] = placed.position[a, i]
        gjk.offset[i] = placed.rotation[a, 0, i] * d0 + placed.rotation[a, 1, i] * d1 + placed.rotation[a, 2, i] * d2
        for j in range(3):
            gjk.frame[i, j] = placed.rotation[a, i, j]
            gjk.rotation[i, j] = (
                placed.rotation[a, 0, i] * placed.rotation[b, 0, j]
                + placed.rotation[a, 1, i] * placed.rotation[b, 1, j]
                + placed.rotation[a, 2, i] * placed.rotation[b, 2, j]
            )


@njit
def begin_triangle(
    shapes: Any,
    placed: Any,
    gjk: Any,
    a: int,
    b: int,
    corners: tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any],
    depth: Any,
) -> None:
    """Side 0 is a triangle of shape a (corners in a's axes), side 1 is shape b.

    With depth > 0 [m] the triangle is a prism: it reaches so far behind its back. Its front is where its corners are
    seen counter-clockwise.
    """
    begin_pair(shapes, placed, gjk, a, b)
    p0, p1, p2, q0, q1, q2, r0, r1, r2 = corners
    T = gjk.triangle  # corners seen from the first one: a triangle of a large mesh is as exact as a small one
    T[0, 0] = 0.0
    T[0, 1] = 0.0
    T[0, 2] = 0.0
    T[1, 0] = q0 - p0
    T[1, 1] = q1 - p1
    T[1, 2] = q2 - p2
    T[2, 0] = r0 - p0
    T[2, 1] = r1 - p1
    T[2, 2] = r2 - p2
    n0 = T[1, 1] * T[2, 2] - T[1, 2] * T[2, 1]
    n1 = T[1, 2] * T[2, 0] - T[1, 0] * T[2, 2]
    n2 = T[1, 0] * T[2, 1] - T[1, 1] * T[2, 0]
    length = sqrt(n0 * n0 + n1 * n1 + n2 * n2)
    factor = -depth / length if length > 0.0 else 0.0
    T[3, 0] = factor * n0
    T[3, 1] = factor * n1
    T[3, 2] = factor * n2
    gjk.kind[0, 0] = TRIANGLES
    gjk.radius[0] = 0.0
    longest = 0.0
    for i in range(3):
        longest += abs(T[1, i]) + abs(T[2, i])
    gjk.scale[0] = longest + depth + shapes.reach[b]
    gjk.scale[1] = min(gjk.scale[0], MOST_TIMES * shapes.reach[b])
    gjk.offset[0] -= p0
    gjk.offset[1] -= p1
    gjk.offset[2] -= p2
    for i in range(3):
        gjk.origin[i] += gjk.frame[i, 0] * p0 + gjk.frame[i, 1] * p1 + gjk.frame[i, 2] * p2


@inlined
def _highest(shapes: Any, first: int, end: int, d0: Any, d1: Any, d2: Any) -> Any:
    """The vertex farthest along d, by looking at all."""
    best = first
    most = shapes.vertex[first, 0] * d0 + shapes.vertex[first, 1] * d1 + shapes.vertex[first, 2] * d2
    for i in range(first + 1, end):
        value = shapes.vertex[i, 0] * d0 + shapes.vertex[i, 1] * d1 + shapes.vertex[i, 2] * d2
        if value > most:
            most = value
            best = i
    return best


@inlined
def _climbed(shapes: Any, start: int, d0: Any, d1: Any, d2: Any) -> Any:
    """The vertex farthest along d, uphill along edges."""
    best = start
    most = shapes.vertex[start, 0] * d0 + shapes.vertex[start, 1] * d1 + shapes.vertex[start, 2] * d2
    at = -1
    while at != best:
        at = best
        for e in range(shapes.neighbour_start[at], shapes.neighbour_start[at + 1]):
            i = shapes.neighbour[e]
            value = shapes.vertex[i, 0] * d0 + shapes.vertex[i, 1] * d1 + shapes.vertex[i, 2] * d2
            if value > most:
                most = value
                best = i
    return best


@inlined
def farthest_vertex(shapes: Any, first: int, end: int, start: int, d0: Any, d1: Any, d2: Any) -> Any:
    """Of a convex mesh's vertices, `first` to before `end`, the one farthest along d; of many, uphill from `start`."""
    if end - first <= FEW:
        return _highest(shapes, first, end, d0, d1, d2)
    return _climbed(shapes, start, d0, d1, d2)


@njit
def support(shapes: Any, gjk: Any, side: int, d0: Any, d1: Any, d2: Any) -> Any:
    """The point of a side's core that lies farthest along d (any length), in the shape's own axes."""
    kind = gjk.kind[side, 0]
    z = gjk.size[side, 2]
    if kind == CONVEX:
        first = gjk.kind[side, 1]
        end = gjk.kind[side, 2]
        best = farthest_vertex(shapes, first, end, gjk.kind[side, 3], d0, d1, d2)
        gjk.kind[side, 3] = best
        return shapes.vertex[best, 0], shapes.vertex[best, 1], shapes.vertex[best, 2]
    x = gjk.size[side, 0]
    y = gjk.size[side, 1]
    if kind == BOX:
        return x if d0 >= 0.0 else -x, y if d1 >= 0.0 else -y, z if d2 >= 0.0 else -z
    if kind == CYLINDER:  # size: radius, half length
        across = sqrt(d0 * d0 + d1 * d1)
        factor = x / across if across > 1e-200 else 0.0
        return factor * d0, factor * d1, y if d2 >= 0.0 else -y
    if kind == CAPSULE:
        return 0.0, 0.0, y if d2 >= 0.0 else -y
    if kind == ELLIPSOID:
        e0 = x * d0
        e1 = y * d1
        e2 = z * d2
        length = sqrt(e0 * e0 + e1 * e1 + e2 * e2)
        factor = 1.0 / length if length > 1e-200 else 0.0
        return factor * x * e0, factor * y * e1, factor * z * e2
    if kind == TRIANGLES:
        return _triangle_support(gjk, d0, d1, d2)
    return 0.0, 0.0, 0.0


@inlined
def _triangle_support(gjk: Any, d0: Any, d1: Any, d2: Any) -> Any:
    T = gjk.triangle
    value1 = T[1, 0] * d0 + T[1, 1] * d1 + T[1, 2] * d2
    value2 = T[2, 0] * d0 + T[2, 1] * d1 + T[2, 2] * d2
    i = 0
    if value1 > 0.0 or value2 > 0.0:
        i = 1 if value1 >= value2 else 2
    swept = 1.0 if T[3, 0] * d0 + T[3, 1] * d1 + T[3, 2] * d2 > 0.0 else 0.0
    return T[i, 0] + swept * T[3, 0], T[i, 1] + swept * T[3, 1], T[i, 2] + swept * T[3, 2]


@njit
def difference(shapes: Any, gjk: Any, d0: Any, d1: Any, d2: Any) -> Any:
    """The point of the cores' Minkowski difference a - b farthest along d: w, and the point of a it is made of."""
    a0, a1, a2 = support(shapes, gjk, 0, d0, d1, d2)
    R = gjk.rotation
    s0, s1, s2 = support(
        shapes,
        gjk,
        1,
        -(R[0, 0] * d0 + R[1, 0] * d1 + R[2, 0] * d2),
        -(R[0, 1] * d0 + R[1, 1] * d1 + R[2, 1] * d2),
        -(R[0, 2] * d0 + R[1, 2] * d1 + R[2, 2] * d2),
    )
    w0 = a0 - gjk.offset[0] - (R[0, 0] * s0 + R[0, 1] * s1 + R[0, 2] * s2)
    w1 = a1 - gjk.offset[1] - (R[1, 0] * s0 + R[1, 1] * s1 + R[1, 2] * s2)
    w2 = a2 - gjk.offset[2] - (R[2, 0] * s0 + R[2, 1] * s1 + R[2, 2] * s2)
    return w0, w1, w2, a0, a1, a2


@inlined
def across(e0: Any, e1: Any, e2: Any) -> Any:
    """A vector across e, made with the axis that e has least of."""
    x, y, z = abs(e0), abs(e1), abs(e2)
    if x <= y and x <= z:
        return 0.0, e2, -e1
    if y <= z:
        return -e2, 0.0, e0
    return e1, -e0, 0.0
