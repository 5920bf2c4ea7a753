"""Contacts of spheres with spheres, capsules, cylinders and boxes, and the distances of points from these."""

from __future__ import annotations

from artsim.collision.frames import axis, centre, clamp, into, turned
from artsim.collision.manifold import add_contact
from artsim.collision.shapes import Pair
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import sqrt
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import divided, dot, length, minus, negative, plus_times, row_of

NO_DIRECTION = 1e-10  # relative to the shapes: shorter distances do not define a direction


@inlined
def add_ball(pair: Pair, x: Vec3, gap: float, normal: Vec3, feature: int) -> None:
    """Add the contact of a ball about x, of shape a's radius, with a surface at `gap` from it along the normal."""
    if gap < pair.margin:
        r = pair.shapes.size[pair.a, 0] + 0.5 * gap
        add_contact(pair.manifold, gap, plus_times(x, r, normal), normal, feature)


@inlined
def direction(d: Vec3, least: float, otherwise: Vec3) -> tuple[float, Vec3]:
    """Length and direction of d; the direction is `otherwise` where d is no longer than `least`."""
    size = length(d)
    if size > least:
        return size, divided(d, size)
    return size, otherwise


@inlined
def beyond(x: Vec3, h: Vec3) -> Vec3:
    """Vector to a point from the nearest point of a box of half extents h."""
    return x[0] - clamp(x[0], h[0]), x[1] - clamp(x[1], h[1]), x[2] - clamp(x[2], h[2])


@inlined
def from_box(h: Vec3, x: Vec3) -> tuple[float, Vec3]:
    """Signed distance of a point from a box (inside: to the nearest face), and the direction away from it."""
    e = beyond(x, h)
    d = length(e)
    if d > NO_DIRECTION * (h[0] + h[1] + h[2]):
        return d, divided(e, d)
    d = abs(x[0]) - h[0]
    away = (1.0 if x[0] >= 0.0 else -1.0, 0.0, 0.0)
    if abs(x[1]) - h[1] > d:
        d = abs(x[1]) - h[1]
        away = (0.0, 1.0 if x[1] >= 0.0 else -1.0, 0.0)
    if abs(x[2]) - h[2] > d:
        d = abs(x[2]) - h[2]
        away = (0.0, 0.0, 1.0 if x[2] >= 0.0 else -1.0)
    return d, away


@inlined
def from_cylinder(radius: float, h: float, x: Vec3) -> tuple[float, Vec3]:
    """Signed distance of a point from a cylinder (inside: to the nearest surface), and the direction away from it."""
    rho = sqrt(x[0] * x[0] + x[1] * x[1])
    if rho > 0.0:
        u0 = x[0] / rho
        u1 = x[1] / rho
    else:
        u0 = 1.0
        u1 = 0.0
    side = rho - radius
    end = abs(x[2]) - h
    up = 1.0 if x[2] >= 0.0 else -1.0
    if side > 0.0 and end > 0.0:
        d = sqrt(side * side + end * end)
        if d > NO_DIRECTION * (radius + h):
            return d, (u0 * side / d, u1 * side / d, up * end / d)
    if side > end:
        return side, (u0, u1, 0.0)
    return end, (0.0, 0.0, up)


@njit
def sphere_sphere(pair: Pair) -> None:
    """Add one contact; the normal of concentric spheres is up."""
    x = centre(pair.placed, pair.a)
    d, normal = direction(minus(centre(pair.placed, pair.b), x), 1e-150, (0.0, 0.0, 1.0))
    size = pair.shapes.size
    add_ball(pair, x, d - (size[pair.a, 0] + size[pair.b, 0]), normal, 0)


@njit
def sphere_capsule(pair: Pair) -> None:
    """Add one contact; for a sphere centred on the capsule's axis the normal is orthogonal to the axis."""
    placed, size = pair.placed, pair.shapes.size
    x = centre(placed, pair.a)
    y = centre(placed, pair.b)
    u = axis(placed, pair.b, 2)
    t = clamp(dot(minus(x, y), u), size[pair.b, 1])
    both = size[pair.a, 0] + size[pair.b, 0]
    d, normal = direction(minus(plus_times(y, t, u), x), NO_DIRECTION * both, axis(placed, pair.b, 0))
    add_ball(pair, x, d - both, normal, 0)


@njit
def sphere_cylinder(pair: Pair) -> None:
    """Add one contact."""
    x = centre(pair.placed, pair.a)
    size = pair.shapes.size
    d, away = from_cylinder(size[pair.b, 0], size[pair.b, 1], into(pair.placed, pair.b, x))
    add_ball(pair, x, d - size[pair.a, 0], turned(pair.placed, pair.b, negative(away)), 0)


@njit
def sphere_box(pair: Pair) -> None:
    """Add one contact."""
    x = centre(pair.placed, pair.a)
    size = pair.shapes.size
    d, away = from_box(row_of(size, pair.b), into(pair.placed, pair.b, x))
    add_ball(pair, x, d - size[pair.a, 0], turned(pair.placed, pair.b, negative(away)), 0)
