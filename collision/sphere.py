"""Spheres: with spheres, capsules, cylinders and boxes, and what a point is to these."""

from __future__ import annotations

from typing import Any

from artsim.collision.frames import axis, centre, clamp, dot, into, turned
from artsim.collision.manifold import add_contact
from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import sqrt

NEAR = 1e-10  # relative to the shapes: a shorter distance says nothing about a direction


@inlined
def add_ball(
    manifold: Any,
    margin: Any,
    x0: Any,
    x1: Any,
    x2: Any,
    radius: Any,
    gap: Any,
    n0: Any,
    n1: Any,
    n2: Any,
    feature: Any,
) -> None:
    """The contact of a ball about x, of shape a, with what is `gap` beyond its surface along the normal."""
    if gap < margin:
        r = radius + 0.5 * gap
        add_contact(manifold, gap, x0 + r * n0, x1 + r * n1, x2 + r * n2, n0, n1, n2, feature)


@inlined
def direction(d0: Any, d1: Any, d2: Any, least: Any, f0: Any, f1: Any, f2: Any) -> Any:
    """Length and direction of d; the direction is f where d is no longer than `least`."""
    length = sqrt(dot(d0, d1, d2, d0, d1, d2))
    if length > least:
        return length, d0 / length, d1 / length, d2 / length
    return length, f0, f1, f2


@inlined
def from_box(h0: Any, h1: Any, h2: Any, x0: Any, x1: Any, x2: Any) -> Any:
    """Distance of a point from a box (inside: negative, to the nearest face), and the direction away from it."""
    e0 = x0 - clamp(x0, h0)
    e1 = x1 - clamp(x1, h1)
    e2 = x2 - clamp(x2, h2)
    d = sqrt(dot(e0, e1, e2, e0, e1, e2))
    if d > NEAR * (h0 + h1 + h2):
        return d, e0 / d, e1 / d, e2 / d
    d = abs(x0) - h0
    n0 = 1.0 if x0 >= 0.0 else -1.0
    n1 = 0.0
    n2 = 0.0
    if abs(x1) - h1 > d:
        d = abs(x1) - h1
        n0 = 0.0
        n1 = 1.0 if x1 >= 0.0 else -1.0
    if abs(x2) - h2 > d:
        d = abs(x2) - h2
        n0 = 0.0
        n1 = 0.0
        n2 = 1.0 if x2 >= 0.0 else -1.0
    return d, n0, n1, n2


@inlined
def from_cylinder(radius: Any, h: Any, x0: Any, x1: Any, x2: Any) -> Any:
    """Distance of a point from a cylinder (inside: negative, to where it is left soonest), and the direction away."""
    rho = sqrt(x0 * x0 + x1 * x1)
    if rho > 0.0:
        u0 = x0 / rho
        u1 = x1 / rho
    else:
        u0 = 1.0
        u1 = 0.0
    side = rho - radius
    end = abs(x2) - h
    up = 1.0 if x2 >= 0.0 else -1.0
    if side > 0.0 and end > 0.0:
        d = sqrt(side * side + end * end)
        if d > NEAR * (radius + h):
            return d, u0 * side / d, u1 * side / d, up * end / d
    if side > end:
        return side, u0, u1, 0.0
    return end, 0.0, 0.0, up


@njit
def sphere_sphere(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """One contact; of concentric spheres the normal is up."""
    x0, x1, x2 = centre(placed, a)
    y0, y1, y2 = centre(placed, b)
    d, n0, n1, n2 = direction(y0 - x0, y1 - x1, y2 - x2, 1e-150, 0.0, 0.0, 1.0)
    radius = shapes.size[a, 0]
    add_ball(manifold, margin, x0, x1, x2, radius, d - (radius + shapes.size[b, 0]), n0, n1, n2, 0)


@njit
def sphere_capsule(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """One contact; a sphere centred on the capsule's axis leaves across it."""
    x0, x1, x2 = centre(placed, a)
    y0, y1, y2 = centre(placed, b)
    u0, u1, u2 = axis(placed, b, 2)
    t = clamp(dot(x0 - y0, x1 - y1, x2 - y2, u0, u1, u2), shapes.size[b, 1])
    f0, f1, f2 = axis(placed, b, 0)
    radius = shapes.size[a, 0]
    both = radius + shapes.size[b, 0]
    d, n0, n1, n2 = direction(y0 + t * u0 - x0, y1 + t * u1 - x1, y2 + t * u2 - x2, NEAR * both, f0, f1, f2)
    add_ball(manifold, margin, x0, x1, x2, radius, d - both, n0, n1, n2, 0)


@njit
def sphere_cylinder(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """One contact."""
    x0, x1, x2 = centre(placed, a)
    l0, l1, l2 = into(placed, b, x0, x1, x2)
    d, m0, m1, m2 = from_cylinder(shapes.size[b, 0], shapes.size[b, 1], l0, l1, l2)
    n0, n1, n2 = turned(placed, b, -m0, -m1, -m2)
    add_ball(manifold, margin, x0, x1, x2, shapes.size[a, 0], d - shapes.size[a, 0], n0, n1, n2, 0)


@njit
def sphere_box(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """One contact."""
    x0, x1, x2 = centre(placed, a)
    l0, l1, l2 = into(placed, b, x0, x1, x2)
    d, m0, m1, m2 = from_box(shapes.size[b, 0], shapes.size[b, 1], shapes.size[b, 2], l0, l1, l2)
    n0, n1, n2 = turned(placed, b, -m0, -m1, -m2)
    add_ball(manifold, margin, x0, x1, x2, shapes.size[a, 0], d - shapes.size[a, 0], n0, n1, n2, 0)
