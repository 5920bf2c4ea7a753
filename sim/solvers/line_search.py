"""How far to go along newton's direction: an exact line search on its convex, piecewise quadratic function.

The function's slope along d rises with the step t, in pieces: the full step if that ends near its root, else the root
by Newton's steps kept in a bracket. A step of rounding's size is taken as it is.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import absolute, highest, sqrt, where_greater
from artsim.sim.solvers.cone import cone_projection, inverse_or_zero, largest, least
from artsim.sim.solvers.impulses import free_impulse, project

_STEPS = 30
EXACT = 1e-12
_LAST_DIGITS = 2e-15  # of an impulse
_WRONG = 1e-9  # of the largest impulse: more than rounding
_COARSE = 1e-6  # of a row's mobility: what it is then measured by


@njit
def take(r: Any, force: Any, y: Any, k: Any, tolerance: Any, close: Any) -> Any:
    """Go along d as far as island k's function falls; how far from y.linear the rows then are [rad/s or m/s].

    `close`: where on the way that is, relative to the way; the whole step is taken where the slope has gone by 0.9.
    """
    zero = tolerance - tolerance
    base = zero
    bend = zero
    at_start = zero
    longest = zero
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            longest = largest(longest, absolute(y.direction[a]))
            base = base + (y.product[a] - force[a]) * y.direction[a]
            bend = bend + y.through[a] * y.direction[a]
            at_start = at_start + y.gradient[a] * y.direction[a]
    t = zero + 1.0
    value, _ = _slope_at(r, y, k, t)
    value = base + bend - value
    full = where_greater(absolute(value), 0.1 * absolute(at_start), zero, zero + 1.0)
    full = where_greater(longest, tolerance, full, zero + 1.0)
    if highest(1.0 - full) > 0.0:
        full = where_greater(_off_at_the_end(r, y, k, zero), tolerance, full, zero + 1.0)
    if highest(1.0 - full) > 0.0:
        t = _search(r, y, k, base, bend, full, close)
    _move(r, y, k, t)
    project(r, y, k)
    return where_greater(full, zero, _off(r, y, k, zero), zero + 1e300)


@njit
def leap(r: Any, y: Any, k: Any, zero: Any) -> Any:
    """Take the whole step along d, whatever the function does; how far from y.linear the rows then are."""
    _move(r, y, k, zero + 1.0)
    project(r, y, k)
    return _off(r, y, k, zero)


@njit
def _move(r: Any, y: Any, k: Any, t: Any) -> None:
    """Take t of the step."""
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.change[a] = y.change[a] + t * y.direction[a]
            y.product[a] = y.product[a] + t * y.through[a]
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            y.velocity[row] = y.velocity[row] + t * y.along[row]


@njit
def _off(r: Any, y: Any, k: Any, zero: Any) -> Any:
    """How far the rows are from y.linear."""
    moved, larger, most, size = zero, zero, zero, zero
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            off = absolute(r.impulse[row] - y.linear[row]) - _LAST_DIGITS * absolute(y.linear[row])
            moved = largest(moved, off * inverse_or_zero(y.inverse[row]))
            larger = largest(larger, _COARSE * off * inverse_or_zero(y.rho[row]))
            most = largest(most, off)
            size = largest(size, absolute(y.linear[row]))
    return _measured(moved, larger, most, size)


@inlined
def _measured(moved: Any, larger: Any, most: Any, size: Any) -> Any:
    """How far rows are off [rad/s or m/s]: by what they give way, or by more where an impulse is wrong, not rounded.

    Where hardly anything gives way a wrong impulse is a small velocity.
    """
    return where_greater(most, _WRONG * size, largest(moved, larger), moved)


@njit
def _off_at_the_end(r: Any, y: Any, k: Any, zero: Any) -> Any:
    """How far the rows would be from y.linear after the whole step: hardly, and it ends where the slope is zero.

    The slope itself does not tell in the last digits, of large impulses times small velocities.
    """
    moved, larger, most, size = zero, zero, zero, zero
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        if r.cone[n] > 1:
            off = sqrt(_off_of_cone(r, y, n, zero + 1.0))
        else:
            z = free_impulse(y, n, y.velocity[n] + y.along[n])
            off = absolute(least(largest(z, r.lower[n]), r.upper[n]) - y.linear[n])
        off = off - _LAST_DIGITS * absolute(y.linear[n])
        moved = largest(moved, off * inverse_or_zero(y.inverse[n]))
        larger = largest(larger, _COARSE * off * inverse_or_zero(y.rho[n]))
        most = largest(most, off)
        size = largest(size, absolute(y.linear[n]))
    return _measured(moved, larger, most, size)


@njit
def _off_of_cone(r: Any, y: Any, n: Any, t: Any) -> Any:
    """The square of how far the cone's impulse after t of the step is from y.linear."""
    normal = free_impulse(y, n, y.velocity[n] + y.shift[n] + t * y.along[n])
    square = t - t
    for row in range(n + 1, n + r.cone[n]):
        z = free_impulse(y, row, y.velocity[row] + t * y.along[row])
        square = square + z * z
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    _, _, _, _, lengthwise, across = cone_projection(r.slope[n], normal, length, per_length)
    off = lengthwise - y.linear[n]
    square = off * off
    for row in range(n + 1, n + r.cone[n]):
        off = across * per_length * free_impulse(y, row, y.velocity[row] + t * y.along[row]) - y.linear[row]
        square = square + off * off
    return square


@njit
def _slope_at(r: Any, y: Any, k: Any, t: Any) -> Any:
    """Σ λ J d at x + t d, and how it falls with t."""
    value = t - t
    fall = t - t
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        if r.cone[n] > 1:
            more, steeper = _cone_slope_at(r, y, n, t)
            value = value + more
            fall = fall + steeper
        else:
            slope = y.along[n]
            z = free_impulse(y, n, y.velocity[n] + t * slope)
            value = value + least(largest(z, r.lower[n]), r.upper[n]) * slope
            inside = where_greater(z, r.lower[n], where_greater(r.upper[n], z, y.inverse[n], t - t), t - t)
            fall = fall + inside * slope * slope
    return value, fall


@njit
def _cone_slope_at(r: Any, y: Any, n: Any, t: Any) -> Any:
    """_slope_at's part of the cone that begins with row n."""
    zero = t - t
    normal = free_impulse(y, n, y.velocity[n] + y.shift[n] + t * y.along[n])
    square = zero
    along = zero  # z_t · J_t d
    total = zero
    for row in range(n + 1, n + r.cone[n]):
        z = free_impulse(y, row, y.velocity[row] + t * y.along[row])
        square = square + z * z
        along = along + z * y.along[row]
        total = total + y.along[row] * y.along[row]
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, lengthwise, across = cone_projection(r.slope[n], normal, length, per_length)
    along = along * per_length
    slope = y.along[n]
    fall = c0 * slope * slope + 2.0 * c1 * slope * along + c2 * along * along + c3 * total
    return lengthwise * slope + across * along, fall * y.inverse[n]


@njit
def _search(r: Any, y: Any, k: Any, base: Any, bend: Any, full: Any, close: Any) -> Any:
    """The t at which the slope along d is zero; 1 where `full` is."""
    zero = base - base
    low = zero
    high = zero + 1e300
    t = zero + 1.0
    found = zero  # 1: this robot's t is, and stays whatever others in its pack still do
    for _ in range(_STEPS):
        value, fall = _slope_at(r, y, k, t)
        value = base + t * bend - value
        steep = bend + fall
        low = where_greater(value, zero, low, t)
        high = where_greater(value, zero, t, high)
        following = t - value / steep
        middle = where_greater(zero + 1e299, high, 0.5 * (low + high), 2.0 * t)
        following = where_greater(following, low, where_greater(high, following, following, middle), middle)
        following = where_greater(full, zero, zero + 1.0, following)
        following = where_greater(found, zero, t, following)
        found = where_greater(absolute(following - t), close * t, found, zero + 1.0)
        t = following
        if highest(1.0 - found) <= 0.0:
            break
    return t
