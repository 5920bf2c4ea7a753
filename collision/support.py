"""Support points of convex shapes: the point of a shape that is farthest in a direction.

Spheres and capsules are represented by their cores, a point or a segment; the radius is added at the end, so that
shallow contacts of round shapes are distances of their cores.
"""

from __future__ import annotations

from math import sqrt

from artsim.collision.frames import axis, into
from artsim.collision.gjk_work import GjkWork
from artsim.collision.shapes import BOX, CAPSULE, CONVEX, CYLINDER, ELLIPSOID, SPHERE, TRIANGLES, Pair, Shapes
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import rotated, rotated_back, turn_back
from artsim.sim.foundation.records import Reals2, Vec3, Vec6, Vector
from artsim.sim.foundation.vec3 import (
    by_component,
    dot,
    length,
    minus,
    negative,
    plus,
    plus_times,
    put,
    row_of,
    set_row,
    times,
)

MOST_TIMES = (
    10.0  # bound of the scale, in reaches of the smaller side, whose precision must not depend on the larger one
)
_FEW = 20  # up to this number of vertices all are compared; for more the search climbs along edges


@inlined
def _set_side(shapes: Shapes, gjk: GjkWork, side: int, a: int) -> None:
    """Make shape `a` one of the two sides."""
    kind = shapes.kind[a]
    gjk.kind[side, 0] = kind
    set_row(gjk.size, side, row_of(shapes.size, a))
    gjk.radius[side] = shapes.size[a, 0] if kind == SPHERE or kind == CAPSULE else 0.0
    if kind == CONVEX:
        gjk.kind[side, 1] = shapes.vertex_start[shapes.mesh[a]]
        gjk.kind[side, 2] = shapes.vertex_start[shapes.mesh[a] + 1]
        gjk.kind[side, 3] = gjk.kind[side, 1]
        gjk.kind[side, 4] = shapes.mesh[a]


@inlined
def is_round(kind: int) -> bool:
    """True if GJK and EPA only approximate the solution on the surface of this kind."""
    return kind == ELLIPSOID or kind == CYLINDER


@inlined
def are_smooth(gjk: GjkWork) -> bool:
    """True if the two shapes are an ellipsoid and a round shape of similar size, which touch at one point."""
    return bool(gjk.kind[1, 0] == ELLIPSOID and gjk.kind[0, 0] != TRIANGLES and gjk.scale[1] == gjk.scale[0])


@njit
def begin_pair(pair: Pair, gjk: GjkWork) -> None:
    """Make shape a side 0 and shape b side 1; all vectors are then in a's axes."""
    shapes, placed, a, b = pair.shapes, pair.placed, pair.a, pair.b
    _set_side(shapes, gjk, 0, a)
    _set_side(shapes, gjk, 1, b)
    gjk.scale[0] = shapes.reach[a] + shapes.reach[b]
    gjk.scale[1] = min(gjk.scale[0], MOST_TIMES * min(shapes.reach[a], shapes.reach[b]))
    put(gjk.origin, row_of(placed.position, a))
    put(gjk.offset, into(placed, a, row_of(placed.position, b)))
    for i in range(3):
        for j in range(3):
            gjk.frame[i, j] = placed.rotation[a, i, j]
        gjk.rotation[0, i], gjk.rotation[1, i], gjk.rotation[2, i] = turn_back(placed.rotation, a, axis(placed, b, i))


@njit
def begin_triangle(pair: Pair, gjk: GjkWork, corners: tuple[Vec3, Vec3, Vec3], depth: float) -> None:
    """Make a triangle of shape a (corners in a's axes) side 0 and shape b side 1.

    With depth > 0 [m] the triangle is a prism that extends behind its back by this depth. Its corners are
    counter-clockwise seen from the front.
    """
    begin_pair(pair, gjk)
    p, q, r = corners
    T = gjk.triangle  # corners relative to the first one, so that triangles of large meshes lose no precision
    set_row(T, 0, (0.0, 0.0, 0.0))
    set_row(T, 1, minus(q, p))
    set_row(T, 2, minus(r, p))
    n = front_of(T)
    size = length(n)
    set_row(T, 3, times(-depth / size if size > 0.0 else 0.0, n))
    gjk.kind[0, 0] = TRIANGLES
    gjk.radius[0] = 0.0
    longest = 0.0
    for i in range(3):
        longest += abs(T[1, i]) + abs(T[2, i])
    reach = pair.shapes.reach[pair.b]
    gjk.scale[0] = longest + depth + reach
    gjk.scale[1] = min(gjk.scale[0], MOST_TIMES * reach)
    put(gjk.offset, minus(gjk.offset, p))
    put(gjk.origin, plus(gjk.origin, rotated(gjk.frame, p)))


@inlined
def front_of(T: Reals2) -> Vec3:
    """The normal of a triangle's front, of any length; its first corner is the origin."""
    return (
        T[1, 1] * T[2, 2] - T[1, 2] * T[2, 1],
        T[1, 2] * T[2, 0] - T[1, 0] * T[2, 2],
        T[1, 0] * T[2, 1] - T[1, 1] * T[2, 0],
    )


@inlined
def _highest(shapes: Shapes, first: int, end: int, d: Vec3) -> int:
    """The vertex farthest along d, by comparing all."""
    best = first
    most = dot(row_of(shapes.vertex, first), d)
    for i in range(first + 1, end):
        value = dot(row_of(shapes.vertex, i), d)
        if value > most:
            most = value
            best = i
    return best


@inlined
def _climbed(shapes: Shapes, start: int, d: Vec3) -> int:
    """The vertex farthest along d, by hill climbing along edges."""
    best = start
    most = dot(row_of(shapes.vertex, start), d)
    at = -1
    while at != best:
        at = best
        for e in range(shapes.neighbour_start[at], shapes.neighbour_start[at + 1]):
            i = shapes.neighbour[e]
            value = dot(row_of(shapes.vertex, i), d)
            if value > most:
                most = value
                best = i
    return best


@inlined
def farthest_vertex(shapes: Shapes, first: int, end: int, start: int, d: Vec3) -> int:
    """The vertex of a convex mesh, from `first` to before `end`, farthest along d; many are climbed from `start`."""
    if end - first <= _FEW:
        return _highest(shapes, first, end, d)
    return _climbed(shapes, start, d)


@njit
def support(shapes: Shapes, gjk: GjkWork, side: int, d: Vec3) -> Vec3:
    """The point of a side's core farthest along d (any length), in the shape's own axes."""
    kind = gjk.kind[side, 0]
    if kind == CONVEX:
        first = gjk.kind[side, 1]
        end = gjk.kind[side, 2]
        best = farthest_vertex(shapes, first, end, gjk.kind[side, 3], d)
        gjk.kind[side, 3] = best
        return row_of(shapes.vertex, best)
    x, y, z = row_of(gjk.size, side)
    if kind == BOX:
        return x if d[0] >= 0.0 else -x, y if d[1] >= 0.0 else -y, z if d[2] >= 0.0 else -z
    if kind == CYLINDER:  # size: radius, half length
        across = sqrt(d[0] * d[0] + d[1] * d[1])
        factor = x / across if across > 1e-200 else 0.0
        return factor * d[0], factor * d[1], y if d[2] >= 0.0 else -y
    if kind == CAPSULE:
        return 0.0, 0.0, y if d[2] >= 0.0 else -y
    if kind == ELLIPSOID:
        e = by_component((x, y, z), d)
        size = length(e)
        factor = 1.0 / size if size > 1e-200 else 0.0
        return by_component(times(factor, (x, y, z)), e)
    if kind == TRIANGLES:
        return _triangle_support(gjk, d)
    return 0.0, 0.0, 0.0


@inlined
def _triangle_support(gjk: GjkWork, d: Vec3) -> Vec3:
    T = gjk.triangle
    swept = 1.0 if dot(row_of(T, 3), d) > 0.0 else 0.0
    return plus_times(row_of(T, farthest_corner(gjk, d)), swept, row_of(T, 3))


@inlined
def farthest_corner(gjk: GjkWork, d: Vec3) -> int:
    """The corner of the triangle farthest along d."""
    value1 = dot(row_of(gjk.triangle, 1), d)
    value2 = dot(row_of(gjk.triangle, 2), d)
    i = 0
    if value1 > 0.0 or value2 > 0.0:
        i = 1 if value1 >= value2 else 2
    return i


@njit
def difference(shapes: Shapes, gjk: GjkWork, d: Vec3) -> Vec6:
    """The point of the cores' Minkowski difference a - b farthest along d: w, and the point of a it is made of.

    Returns six numbers: of a pair of tuples LLVM contracts the products of callers to other FMAs.
    """
    a = support(shapes, gjk, 0, d)
    b = support(shapes, gjk, 1, negative(rotated_back(gjk.rotation, d)))
    w = minus(minus(a, gjk.offset), rotated(gjk.rotation, b))
    return w[0], w[1], w[2], a[0], a[1], a[2]


@inlined
def keep_point(points: Reals2, i: int, w: Vec3, a: Vec3) -> None:
    """Store a point of the difference and its point of a as row i of a simplex or a polytope."""
    points[i, 0], points[i, 1], points[i, 2] = w
    points[i, 3], points[i, 4], points[i, 5] = a


@inlined
def point_of_a(points: Reals2, i: int) -> Vec3:
    """The point of a stored in row i."""
    return points[i, 3], points[i, 4], points[i, 5]


@inlined
def across(e: Vector) -> Vec3:
    """A vector orthogonal to e, from the axis along which e is smallest."""
    x, y, z = abs(e[0]), abs(e[1]), abs(e[2])
    if x <= y and x <= z:
        return 0.0, e[2], -e[1]
    if y <= z:
        return -e[2], 0.0, e[0]
    return e[1], -e[0], 0.0
