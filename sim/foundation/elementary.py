"""exp, log, powers and atan2 in kernels, without the C library, whose results differ between machines.

Rational approximations of Cephes (Moshier), error below 2 ulp.
"""

from __future__ import annotations

import math

from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import lane_count, lane_of, with_lane, zero_like
from artsim.sim.foundation.records import Real


@njit
def exponential(x: float) -> float:
    """exp(x); 0 and inf beyond the range of floats."""
    if x > 709.78:
        return math.inf
    if x < -745.2:
        return 0.0
    n = math.floor(1.4426950408889634073599 * x + 0.5)
    x -= n * 6.93145751953125e-1  # ln 2 in two parts, the first exact
    x -= n * 1.42860682030941723212e-6
    z = x * x
    p = x * ((1.26177193074810590878e-4 * z + 3.02994407707441961300e-2) * z + 9.99999999999999999910e-1)
    q = ((3.00198505138664455042e-6 * z + 2.52448340349684104192e-3) * z + 2.27265548208155028766e-1) * z + 2.0
    return (1.0 + 2.0 * p / (q - p)) * _power_of_two(n // 2) * _power_of_two(n - n // 2)


@njit
def _power_of_two(n: int) -> float:
    base = 2.0 if n >= 0 else 0.5
    left = abs(n)
    power = 1.0
    while left > 0:
        if left % 2 == 1:
            power *= base
        base *= base
        left //= 2
    return power


@njit
def logarithm(x: float) -> float:
    """The natural logarithm of x > 0."""
    whole = 0.0
    shift = 512
    while shift > 0:  # x = m 2^whole with √½ ≤ m < √2
        large = _power_of_two(shift)
        if x >= large:
            x /= large
            whole += shift
        elif x * large <= 1.0:
            x *= large
            whole -= shift
        shift //= 2
    if x < 0.70710678118654752440:
        x *= 2.0
        whole -= 1.0
    elif x >= 1.41421356237309504880:
        x *= 0.5
        whole += 1.0
    f = x - 1.0
    p = (1.01875663804580931796e-4 * f + 4.97494994976747001425e-1) * f + 4.70579119878881725854
    p = ((p * f + 1.44989225341610930846e1) * f + 1.79368678507819816313e1) * f + 7.70838733755885391666
    q = ((f + 1.12873587189167450590e1) * f + 4.52279145837532221105e1) * f + 8.29875266912776603211e1
    q = (q * f + 7.11544750618563894466e1) * f + 2.31251620126765340583e1
    z = f * f
    rest = f * z * p / q - whole * 2.121944400546905827679e-4 - 0.5 * z
    return f + rest + whole * 0.693359375  # ln 2 in two parts


@njit
def power(x: Real, exponent: float) -> Real:
    """x to the power of an exponent, x ≥ 0, in both widths; whole exponents up to 16 by multiplication."""
    value = zero_like(x) + 1.0
    if exponent == math.floor(exponent) and 0.0 <= exponent <= 16.0:
        for _ in range(int(exponent)):
            value = value * x
    else:
        for lane in range(lane_count(x)):
            each = lane_of(x, lane)
            value = with_lane(value, lane, exponential(exponent * logarithm(each)) if each > 0.0 else 0.0)
    return value


@njit
def arctangent(y: float, x: float) -> float:
    """The angle of the point (x, y), within ±π; 0 at the origin."""
    if x == 0.0 and y == 0.0:
        return 0.0
    angle = _first_quadrant(abs(y), abs(x))
    if x < 0.0:
        angle = math.pi - angle
    return -angle if y < 0.0 else angle


@njit
def _first_quadrant(y: float, x: float) -> float:
    """atan(y / x) of numbers ≥ 0, by way of the ranges below 0.66, around 1 and beyond tan(3π/8)."""
    base = 0.0
    rest = 0.0  # of `base`, beyond its last digit
    t = 0.0
    if y > 2.41421356237309504880 * x:
        base = 0.5 * math.pi
        rest = 6.123233995736765886130e-17
        t = -x / y
    elif y > 0.66 * x:
        base = 0.25 * math.pi
        rest = 3.061616997868382943065e-17
        t = (y - x) / (y + x)
    else:
        t = y / x
    z = t * t
    p = (-8.750608600031904122785e-1 * z - 1.615753718733365076637e1) * z - 7.500855792314704667340e1
    p = (p * z - 1.228866684490136173410e2) * z - 6.485021904942025371773e1
    q = ((z + 2.485846490142306297962e1) * z + 1.650270098316988542046e2) * z + 4.328810604912902668951e2
    q = (q * z + 4.853903996359136964868e2) * z + 1.945506571482613964425e2
    return base + (t * (z * p / q) + t + rest)
