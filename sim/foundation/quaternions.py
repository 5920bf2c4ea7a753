"""Quaternions (w, x, y, z) in kernels: from a matrix, and their exact integration on the group."""

from __future__ import annotations

import math

from artsim.sim.foundation.elementary import arctangent
from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import real, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Mat3, Real, Vec3, Vec4
from artsim.sim.foundation.scalars import largest
from artsim.sim.foundation.sincos import sincos


@inlined
def quaternion_of(R: Mat3) -> Vec4:
    """Unit quaternion, w ≥ 0, of a rotation matrix given as 9 T by rows: by the largest of trace and diagonal
    (Shepperd 1978).
    """
    r00, r01, r02, r10, r11, r12, r20, r21, r22 = R
    trace = r00 + r11 + r22
    w, x, y, z = r10 - r01, r02 + r20, r12 + r21, 1.0 - r00 - r11 + r22
    above = r22
    w, x, y, z = _unless_less(r11, above, (r02 - r20, r01 + r10, 1.0 - r00 + r11 - r22, r12 + r21), (w, x, y, z))
    above = largest(r11, above)
    w, x, y, z = _unless_less(r00, above, (r21 - r12, 1.0 + r00 - r11 - r22, r01 + r10, r02 + r20), (w, x, y, z))
    above = largest(r00, above)
    w, x, y, z = _unless_less(trace, above, (1.0 + trace, r21 - r12, r02 - r20, r10 - r01), (w, x, y, z))
    scale = 1.0 / sqrt(w * w + x * x + y * y + z * z)
    scale = where_greater(zero_like(w), w, -scale, scale)
    return w * scale, x * scale, y * scale, z * scale


@inlined
def _unless_less(a: Real, b: Real, q: Vec4, other: Vec4) -> Vec4:
    """q unless a < b, then the other quaternion."""
    return (
        where_greater(b, a, other[0], q[0]),
        where_greater(b, a, other[1], q[1]),
        where_greater(b, a, other[2], q[2]),
        where_greater(b, a, other[3], q[3]),
    )


@inlined
def turn_quaternion(q: Lanes1, n: int, r0: Real, r1: Real, r2: Real) -> None:
    """q[n:n+4] ← q ⊗ exp(r): the rotation vector r (rad) is in the turned frame's axes. Kept at unit length."""
    square = r0 * r0 + r1 * r1 + r2 * r2
    angle = sqrt(square)
    small = real(1e-4, angle)
    sine, cosine = sincos(0.5 * angle)
    # below 1e-4 rad the series of both to fourth order is exact to rounding
    c = where_greater(angle, small, cosine, 1.0 - square / 8.0 + square * square / 384.0)
    s = where_greater(angle, small, sine / where_greater(angle, small, angle, small), 0.5 - square / 48.0)
    r0 *= s
    r1 *= s
    r2 *= s
    w = q[n]
    x = q[n + 1]
    y = q[n + 2]
    z = q[n + 3]
    a = w * c - x * r0 - y * r1 - z * r2
    b = w * r0 + x * c + y * r2 - z * r1
    d = w * r1 - x * r2 + y * c + z * r0
    e = w * r2 + x * r1 - y * r0 + z * c
    scale = 1.0 / sqrt(a * a + b * b + d * d + e * e)
    q[n] = a * scale
    q[n + 1] = b * scale
    q[n + 2] = d * scale
    q[n + 3] = e * scale


@inlined
def quaternion_along(r0: float, r1: float, r2: float) -> Vec4:
    """Unit quaternion of a rotation vector [rad]; floats."""
    angle = math.sqrt(r0 * r0 + r1 * r1 + r2 * r2)
    sine, c = sincos(0.5 * angle)
    s = sine / angle if angle > 0.0 else 0.5
    return c, s * r0, s * r1, s * r2


@inlined
def rotation_between(w: float, x: float, y: float, z: float, c: float, a: float, b: float, d: float) -> Vec3:
    """log(q⁻¹ t) of unit quaternions q = (w, x, y, z), t = (c, a, b, d): the rotation from q to t, in q's axes
    [rad]."""
    return rotation_vector(
        w * c + x * a + y * b + z * d,
        w * a - x * c - y * d + z * b,
        w * b - y * c - z * a + x * d,
        w * d - z * c - x * b + y * a,
    )


@inlined
def rotation_vector(w: float, x: float, y: float, z: float) -> Vec3:
    """Axis times angle (at most π) of a unit quaternion: its logarithm, twice."""
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 * arctangent(sine, abs(w)) / sine if sine > 0.0 else 2.0
    if w < 0.0:
        scale = -scale
    return scale * x, scale * y, scale * z
