"""The law of the units of a crowd, of T: of one unit, or of WIDTH of them that are visited abreast, a pack of each.

A unit is a contact with friction, of three rows, or a row with bounds (crowd_visits.py has cones of more rows). Its
impulses, and the constants of its law, stand at its place among the rows of the island, which `Units` tells.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from artsim.sim.foundation.body_strips import Lane, load, save
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, real, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Real, Reals1, Vec3, Vec4, Vec6
from artsim.sim.foundation.scalars import divisor, inverse_or_zero, largest, least
from artsim.sim.run_data.scratch import NewtonWork

# columns of work.law, in the line of a unit's first row
MISS, SOFT, SLOPE, RATE, PULL, W0, W1, W2 = range(8)  # RATE: κ of a contact that slides; PULL: impulse per velocity
LOWER, UPPER = W0, W1  # of a row with bounds
BIG, SMALL = 1, 2  # in the line of a contact's second row
COSINE, SINE = 1, 2  # in the line of a contact's third row
COLUMNS = 8  # of work.law
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


# ------------------------------------------------------------------ units and their numbers


class Units(NamedTuple):
    """The unit, or the units, whose numbers are read and written; all by the same code."""

    place: int  # of the first row of the first unit, among the rows of the island
    stride: int  # from the place of a unit's row to that of its next: WIDTH for units abreast, 1 for one by itself
    lane: Lane  # the unit among those abreast, 0 for one by itself; None: all of them, as packs


@inlined
def law_of(work: NewtonWork, units: Units, row: int, column: int) -> Real:
    """A constant of the law, in the line of the unit's row."""
    return load(work.law, COLUMNS * (units.place + units.stride * row) + units.stride * column, units.lane)


@inlined
def set_law(work: NewtonWork, units: Units, row: int, column: int, value: Real) -> None:
    """The inverse of `law_of`."""
    save(work.law, COLUMNS * (units.place + units.stride * row) + units.stride * column, units.lane, value)


@inlined
def of_row(x: Reals1, units: Units, row: int) -> Real:
    """The entry of a vector of places for a row of the unit."""
    return load(x, units.place + units.stride * row, units.lane)


@inlined
def set_row(x: Reals1, units: Units, row: int, value: Real) -> None:
    """The inverse of `of_row`."""
    save(x, units.place + units.stride * row, units.lane, value)


@inlined
def _set_contact(work: NewtonWork, units: Units, z: Vec3) -> Vec3:
    """Set λ of a contact; return its change."""
    before = of_row(work.impulse, units, 0), of_row(work.impulse, units, 1), of_row(work.impulse, units, 2)
    set_row(work.impulse, units, 0, z[0])
    set_row(work.impulse, units, 1, z[1])
    set_row(work.impulse, units, 2, z[2])
    return z[0] - before[0], z[1] - before[1], z[2] - before[2]


# ------------------------------------------------------------------ λ from velocities


@inlined
def pushes(work: NewtonWork, units: Units, v: Real) -> Real:
    """Positive for a contact that has an impulse, or approaches; v: J̃ y of its normal row."""
    z = of_row(work.impulse, units, 0)
    zero = zero_like(z)
    return where_greater(z, zero, z, -(v + law_of(work, units, 0, MISS)))


@inlined
def solve_contact(work: NewtonWork, units: Units, v: Vec3) -> Vec3:
    """Set λ of a contact to that of its law at the velocity v = J̃ y; return its change."""
    z = of_row(work.impulse, units, 0), of_row(work.impulse, units, 1), of_row(work.impulse, units, 2)
    at = (
        v[0] + law_of(work, units, 0, MISS),
        v[1] + law_of(work, units, 1, MISS),
        v[2] + law_of(work, units, 2, MISS),
    )
    w0, w1, w2 = law_of(work, units, 0, W0), law_of(work, units, 0, W1), law_of(work, units, 0, W2)
    w = w0, w1, w2, law_of(work, units, 1, BIG), law_of(work, units, 1, SMALL)
    soft, pull = law_of(work, units, 0, SOFT), law_of(work, units, 0, PULL)
    rest = soft, pull, law_of(work, units, 0, SLOPE), law_of(work, units, 0, RATE)
    z0, z1, z2, rate = impulse_at(at, z, w, rest)
    set_law(work, units, 0, RATE, rate)
    return _set_contact(work, units, (z0, z1, z2))


@inlined
def solve_row(work: NewtonWork, units: Units, v: Real) -> Real:
    """Set λ of a row with bounds to that of its law at the velocity v = J̃ y; return its change."""
    z = of_row(work.impulse, units, 0)
    v = v + law_of(work, units, 0, MISS) + law_of(work, units, 0, SOFT) * z
    return take_row(work, units, z - law_of(work, units, 0, PULL) * v)


# ------------------------------------------------------------------ λ as wanted


@inlined
def take_contact(work: NewtonWork, units: Units) -> Vec3:
    """Set λ of a contact to work.wanted, within the cone; return its change."""
    normal = of_row(work.wanted, units, 0)
    b, d = of_row(work.wanted, units, 1), of_row(work.wanted, units, 2)
    zero = zero_like(normal)
    normal = where_greater(normal, zero, normal, zero)
    square = b * b + d * d
    most = law_of(work, units, 0, SLOPE) * normal
    scale = where_greater(square, most * most, most / divisor(sqrt(square)), zero + 1.0)
    return _set_contact(work, units, (normal, scale * b, scale * d))


@inlined
def take_row(work: NewtonWork, units: Units, z: Real) -> Real:
    """Set λ of a row with bounds to z, within these; return its change."""
    before = of_row(work.impulse, units, 0)
    z = least(largest(law_of(work, units, 0, LOWER), z), law_of(work, units, 0, UPPER))
    set_row(work.impulse, units, 0, z)
    return z - before


# ------------------------------------------------------------------ Coulomb's law of a contact


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
