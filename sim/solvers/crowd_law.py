"""Coulomb's law of one contact of a crowd, of T: of a contact by itself, or of WIDTH of them at once."""

from __future__ import annotations

import math

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, real, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Real, Vec3, Vec4, Vec6
from artsim.sim.foundation.scalars import divisor, inverse_or_zero, largest, least

_ROOTS = 60  # steps at most to a contact's root
_STEEP = 1e6  # largest κ from which the steps start, as a multiple of the tangential velocity per impulse
_ROOT = 1e-11  # relative accuracy of that root
_LEAST = 1e-12  # least share of the mean of the two entries of `principal` for the smaller one


@njit
def principal(block: Vec6) -> Vec4:
    """The axes of a contact's tangents in which the Schur complement of its normal row in W is diagonal: their cosine
    and sine, and the two entries.

    W = (W00, W01, W02, W11, W12, W22): velocity per impulse, symmetric, positive definite.
    """
    w0, w1, w2, w11, w12, w22 = block
    inverse = inverse_or_zero(w0)
    s11, s12, s22 = w11 - w1 * w1 * inverse, w12 - w1 * w2 * inverse, w22 - w2 * w2 * inverse
    mean, half = 0.5 * (s11 + s22), 0.5 * (s11 - s22)
    radius = math.sqrt(half * half + s12 * s12)
    c, s = 1.0, 0.0
    if radius > _ROOT * mean:
        c, s = (half + radius, s12) if half >= 0.0 else (s12, radius - half)
        length = math.sqrt(c * c + s * s)
        c, s = c / length, s / length
    return c, s, mean + radius, max(mean - radius, _LEAST * mean)


@inlined
def impulse_at(v: Vec3, z: Vec3, w: tuple[Real, ...], rest: Vec4) -> Vec4:
    """The impulse, and κ, of a contact that has the velocity v at the impulse z, both in its axes.

    w = (W00, W01, W02, the two entries of `principal`), rest = (soft, 1 / W00, mu, κ of before); `soft` is part of W.
    """
    w0, w1, w2, big, small = w
    soft, inverse, mu, rate = rest
    a, b, c = z
    along = w1 * b + w2 * c
    free = (
        v[0] + soft * a - (w0 * a + along),
        v[1] + soft * b - (w1 * a + big * b + w1 * inverse * along),
        v[2] + soft * c - (w2 * a + small * c + w2 * inverse * along),
    )
    return contact_impulse((w1, w2, inverse, big, small), free, mu, rate)


@inlined
def contact_impulse(axes: tuple[Real, ...], free: Vec3, mu: Real, rate: Real) -> Vec4:
    """The impulse (normal, two tangents) by Coulomb's law of a contact whose velocity is W impulse + free, and κ.

    axes = (W01, W02, 1 / W00, the two entries of `principal`), all in its axes. Opening: 0. Sticking: no velocity.
    Sliding: the tangential velocity is -κ times the tangential impulse, whose length is μ times the normal one; κ > 0
    is found by Newton's method within a bracket, from `rate` if that is positive.
    """
    w1, w2, inverse, big, small = axes
    zero = zero_like(mu)
    most = -free[0] * inverse
    g1, g2 = free[1] + w1 * most, free[2] + w2 * most
    p1, p2 = w1 * inverse, w2 * inverse
    z1, z2 = -g1 / big, -g2 / small
    z0 = most - p1 * z1 - p2 * z2
    over = z1 * z1 + z2 * z2 - mu * mu * z0 * z0
    over = where_greater(zero, z0, real(1.0, zero), over)
    over = where_greater(most, zero, over, zero)  # positive for a contact that slides
    if any_positive(over):
        s0, s1, s2, found = _sliding((big, small), (g1, g2), (p1, p2), most, (mu, rate, over))
        z0 = where_greater(over, zero, s0, z0)
        z1 = where_greater(over, zero, s1, z1)
        z2 = where_greater(over, zero, s2, z2)
        rate = where_greater(over, zero, found, rate)
    z0 = where_greater(most, zero, z0, zero)
    z1 = where_greater(most, zero, z1, zero)
    z2 = where_greater(most, zero, z2, zero)
    return z0, z1, z2, rate


@inlined
def _sliding(stiff: tuple[Real, Real], g: tuple[Real, Real], p: tuple[Real, Real], most: Real, given: Vec3) -> Vec4:
    """The impulse of a sliding contact, and κ: (stiff + κ) z_t = -g, z_n = most - p·z_t, |z_t| = μ z_n for a κ > 0.

    given = (mu, κ of before, a number that is positive for contacts that slide); of others the result has no meaning.
    """
    big, small = stiff
    mu, first, over = given
    zero = zero_like(most)
    rough = where_greater(mu, zero, over, zero)
    start = sqrt(g[0] * g[0] + g[1] * g[1]) / divisor(mu * most) - big
    start = largest(start, 1e-3 * big)
    rate = where_greater(first, zero, first, start)
    rate = least(rate, _STEEP * big)  # the κ of a contact that was hardly loaded would cost the digits of the result
    low, high = zero, zero + 1e300
    z0, z1, z2, length = most, zero, zero, zero
    for _ in range(_ROOTS):
        inverse = 1.0 / ((big + rate) * (small + rate))
        i1, i2 = (small + rate) * inverse, (big + rate) * inverse
        z1, z2 = -g[0] * i1, -g[1] * i2
        z0 = most - p[0] * z1 - p[1] * z2
        square = z1 * z1 + z2 * z2
        length = sqrt(square)
        off = length - mu * z0
        miss = absolute(off) - _ROOT * (length + mu * absolute(z0))
        miss = where_greater(rough, zero, miss, zero)
        if not any_positive(miss):
            break
        low = where_greater(off, zero, rate, low)
        high = where_greater(off, zero, high, rate)
        falls = z1 * z1 * i1 + z2 * z2 * i2  # -d length / d rate, times the length
        lifts = p[0] * z1 * i1 + p[1] * z2 * i2  # d z0 / d rate
        part = where_greater(z0, zero, off * square, off * length)  # mu z0 / length is nearly linear in the rate
        slope = where_greater(z0, zero, mu * (falls * z0 + lifts * square), falls + mu * lifts * length)
        following = where_greater(slope, zero, rate + part / divisor(slope), zero - 1.0)
        between = where_greater(zero + 1e299, high, 0.5 * (low + high), 2.0 * rate + big)
        following = where_greater(following, low, following, between)
        following = where_greater(high, following, following, between)
        rate = where_greater(miss, zero, following, rate)
    z0 = largest(z0, zero)
    scale = mu * z0 * inverse_or_zero(length)
    z0 = where_greater(mu, zero, z0, most)
    z1 = where_greater(mu, zero, scale * z1, zero)
    z2 = where_greater(mu, zero, scale * z2, zero)
    return z0, z1, z2, where_greater(mu, zero, rate, first)
