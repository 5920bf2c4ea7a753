"""The path of a tendon around a sphere or a cylinder between two sites, or through it to a side site inside.

All points are in the geom's frame. For a cylinder (infinite, along z) the problem is planar with a rise; for a sphere
the path lies in the plane of the two sites and the centre. The geometry, the criterion for no contact with the geom,
and the tolerance of the equation of the inside path are MuJoCo's (XML reference, "spatial"), so that lengths agree to
rounding.
"""

from __future__ import annotations

import math

from artsim.sim.equipment.arrays import PATH_SPHERE
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import combined, cross, divided, dot, length

_LEAST = 1e-15  # smaller lengths [m] and divisors count as 0
_ROUNDS = 20  # of Newton's method
_TOLERANCE = 1e-6  # [rad]


@inlined
def unit3(a: Vec3) -> tuple[Vec3, float]:
    """A vector's direction and its length; the direction of the zero vector is the first axis."""
    far = length(a)
    return (divided(a, far) if far >= _LEAST else (1.0, 0.0, 0.0)), far


@inlined
def _unit2(x: float, y: float) -> tuple[float, float]:
    length = math.sqrt(x * x + y * y)
    if length < _LEAST:
        return 1.0, 0.0
    return x / length, y / length


@njit
def wrap(kind: int, radius: float, p: Vec3, q: Vec3, sided: bool, side: Vec3) -> tuple[float, Vec3, Vec3]:
    """The path from p to q around the geom: its length on the geom [m], and the points where it arrives and leaves.

    With `sided` the path is on the side of `side`, or passes through the geom if that is inside. Length -1: the path is
    straight from p to q.
    """
    nothing = (-1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    x, far = unit3(p)
    if far < _LEAST or dot(q, q) < _LEAST * _LEAST:
        return nothing
    y = (0.0, 1.0, 0.0)
    if kind == PATH_SPHERE:
        y = _second_axis(x, q)
    else:
        x = (1.0, 0.0, 0.0)
    a0, a1 = dot(p, x), dot(p, y)
    b0, b1 = dot(q, x), dot(q, y)
    if sided and dot(side, side) < radius * radius:
        on_geom, t0, t1 = _inside(a0, a1, b0, b1, radius)
        u0, u1 = t0, t1
    else:
        c0, c1 = _unit2(dot(side, x), dot(side, y))
        on_geom, t0, t1, u0, u1 = _around(a0, a1, b0, b1, radius, sided, c0, c1)
    if on_geom < 0.0:
        return nothing
    if kind == PATH_SPHERE:
        return on_geom, combined(t0, x, t1, y), combined(u0, x, u1, y)
    before = math.sqrt((a0 - t0) ** 2 + (a1 - t1) ** 2)
    after = math.sqrt((b0 - u0) ** 2 + (b1 - u1) ** 2)
    slope = (q[2] - p[2]) / (before + on_geom + after)  # unrolled, the path is a straight line
    return math.sqrt(1.0 + slope * slope) * on_geom, (t0, t1, p[2] + slope * before), (u0, u1, q[2] - slope * after)


@njit
def _second_axis(x: Vec3, q: Vec3) -> Vec3:
    """The unit vector orthogonal to x in the plane of x and q; if they are parallel, in an arbitrary plane."""
    n = cross(x, q)
    if length(n) < _LEAST:
        other = (0.0, 1.0, 1.0)  # not along x, since the component where x is largest is 0
        if abs(x[1]) > abs(x[0]) and abs(x[1]) > abs(x[2]):
            other = (1.0, 0.0, 1.0)
        elif abs(x[2]) > abs(x[0]) and abs(x[2]) > abs(x[1]):
            other = (1.0, 1.0, 0.0)
        n = cross(x, other)
    n, _ = unit3(n)
    y, _ = unit3(cross(n, x))
    return y


@njit
def _around(
    a0: float, a1: float, b0: float, b1: float, radius: float, sided: bool, c0: float, c1: float
) -> tuple[float, ...]:
    """The path from a to b around a circle about 0: arc length and tangent points of a and b; -1: straight.

    The path winds about 0 like the polyline a, c, b if `sided`, else like the straight line. The tangents take up the
    angles between end points and tangent points; the arc on the circle is the rest, if any.
    """
    far_a, far_b = a0 * a0 + a1 * a1, b0 * b0 + b1 * b1
    if min(far_a, far_b) < radius * radius or radius < _LEAST or (a0 - b0) ** 2 + (a1 - b1) ** 2 < _LEAST:
        return -1.0, 0.0, 0.0, 0.0, 0.0
    winding = _angle(a0, a1, c0, c1) + _angle(c0, c1, b0, b1) if sided else _angle(a0, a1, b0, b1)
    reach_a = math.sqrt(max(far_a - radius * radius, 0.0))
    reach_b = math.sqrt(max(far_b - radius * radius, 0.0))
    arc = abs(winding) - math.atan2(reach_a, radius) - math.atan2(reach_b, radius)
    if arc < 0.0:
        return -1.0, 0.0, 0.0, 0.0, 0.0
    turn = math.copysign(radius, winding)
    t0 = radius / far_a * (radius * a0) - turn * reach_a / far_a * a1
    t1 = radius / far_a * (radius * a1) + turn * reach_a / far_a * a0
    u0 = radius / far_b * (radius * b0) + turn * reach_b / far_b * b1
    u1 = radius / far_b * (radius * b1) - turn * reach_b / far_b * b0
    return radius * arc, t0, t1, u0, u1


@inlined
def _angle(x0: float, x1: float, y0: float, y1: float) -> float:
    """Angle from x to y, counter-clockwise, in (-π, π] (adding 0.0 removes the sign of a zero)."""
    return math.atan2(x0 * y1 - x1 * y0 + 0.0, x0 * y0 + x1 * y1)


@njit
def _inside(a0: float, a1: float, b0: float, b1: float, radius: float) -> Vec3:
    """The path from a to b through the circle about 0: 0 and the point of the circle that it touches; -1: straight.

    The point of the shortest path sees both ends under the same angle φ: asin(A sin φ) + asin(B sin φ) - 2 φ + G = 0,
    where A and B are radius over distance and G is the angle between a and b.
    """
    far_a, far_b = math.sqrt(a0 * a0 + a1 * a1), math.sqrt(b0 * b0 + b1 * b1)
    d0, d1 = b0 - a0, b1 - a1
    distance = d0 * d0 + d1 * d1
    if min(far_a, far_b) <= radius or radius < _LEAST:
        return -1.0, 0.0, 0.0
    nearest = -(d0 * a0 + d1 * a1) / distance if distance > _LEAST else 0.0
    if 0.0 < nearest < 1.0 and (a0 + nearest * d0) ** 2 + (a1 + nearest * d1) ** 2 <= radius * radius:
        return -1.0, 0.0, 0.0
    A, B = radius / far_a, radius / far_b
    between = _angle(a0, a1, b0, b1)
    seen = _seen_angle(A, B, abs(between))
    if seen < 0.0:  # without a root the middle serves
        m0, m1 = _unit2(a0 + b0, a1 + b1)
        return 0.0, radius * m0, radius * m1
    if between > 0.0:
        x, y, turned = a0 / far_a, a1 / far_a, seen - math.asin(A * math.sin(seen))
    else:
        x, y, turned = b0 / far_b, b1 / far_b, seen - math.asin(B * math.sin(seen))
    cosine, sine = math.cos(turned), math.sin(turned)
    return 0.0, radius * (cosine * x - sine * y), radius * (sine * x + cosine * y)


@njit
def _seen_angle(A: float, B: float, G: float) -> float:
    """The root φ of _inside's equation by Newton's method from the right; -1 if it does not converge."""
    angle = 0.5 * math.pi
    f = math.asin(A) + math.asin(B) - math.pi + G
    if f > 0.0:
        return -1.0
    for _ in range(_ROUNDS):
        if abs(f) <= _TOLERANCE:
            return angle
        sine = math.sin(angle)
        bend = A / math.sqrt(1.0 - (A * sine) ** 2) + B / math.sqrt(1.0 - (B * sine) ** 2)
        slope = math.cos(angle) * bend - 2.0
        if slope > -_LEAST or f / slope < 0.0:
            return -1.0
        angle -= f / slope
        f = math.asin(A * math.sin(angle)) + math.asin(B * math.sin(angle)) - 2.0 * angle + G
        if f > _TOLERANCE:
            return -1.0
    return -1.0
