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
def take(rows: Any, force: Any, solver: Any, k: Any, tolerance: Any, close: Any) -> Any:
    """Go along d as far as island k's function falls; how far from solver.linear the rows then are [rad/s or m/s].

    `close`: where on the way that is, relative to the way; the whole step is taken where the slope has gone by 0.9.
    """
    zero = tolerance - tolerance
    base = zero
    bend = zero
    at_start = zero
    longest = zero
    for p in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[p]
        for a in range(solver.block_start[b], solver.block_start[b + 1]):
            longest = largest(longest, absolute(solver.direction[a]))
            base = base + (solver.product[a] - force[a]) * solver.direction[a]
            bend = bend + solver.through[a] * solver.direction[a]
            at_start = at_start + solver.gradient[a] * solver.direction[a]
    t = zero + 1.0
    value, _ = _slope_at(rows, solver, k, t)
    value = base + bend - value
    full = where_greater(absolute(value), 0.1 * absolute(at_start), zero, zero + 1.0)
    full = where_greater(longest, tolerance, full, zero + 1.0)
    if highest(1.0 - full) > 0.0:
        full = where_greater(_off_at_the_end(rows, solver, k, zero), tolerance, full, zero + 1.0)
    if highest(1.0 - full) > 0.0:
        t = _search(rows, solver, k, base, bend, full, close)
    _move(rows, solver, k, t)
    project(rows, solver, k)
    return where_greater(full, zero, _off(rows, solver, k, zero), zero + 1e300)


@njit
def leap(rows: Any, solver: Any, k: Any, zero: Any) -> Any:
    """Take the whole step along d, whatever the function does; how far from solver.linear the rows then are."""
    _move(rows, solver, k, zero + 1.0)
    project(rows, solver, k)
    return _off(rows, solver, k, zero)


@njit
def _move(rows: Any, solver: Any, k: Any, t: Any) -> None:
    """Take t of the step."""
    for p in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[p]
        for a in range(solver.block_start[b], solver.block_start[b + 1]):
            solver.change[a] = solver.change[a] + t * solver.direction[a]
            solver.product[a] = solver.product[a] + t * solver.through[a]
    for q in range(solver.unit_start[k], solver.unit_start[k + 1]):
        n = solver.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            solver.velocity[row] = solver.velocity[row] + t * solver.along[row]


@njit
def _off(rows: Any, solver: Any, k: Any, zero: Any) -> Any:
    """How far the rows are from solver.linear."""
    moved, larger, most, size = zero, zero, zero, zero
    for q in range(solver.unit_start[k], solver.unit_start[k + 1]):
        n = solver.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            off = absolute(rows.impulse[row] - solver.linear[row]) - _LAST_DIGITS * absolute(solver.linear[row])
            moved = largest(moved, off * inverse_or_zero(solver.inverse[row]))
            larger = largest(larger, _COARSE * off * inverse_or_zero(solver.rho[row]))
            most = largest(most, off)
            size = largest(size, absolute(solver.linear[row]))
    return _measured(moved, larger, most, size)


@inlined
def _measured(moved: Any, larger: Any, most: Any, size: Any) -> Any:
    """How far rows are off [rad/s or m/s]: by what they give way, or by more where an impulse is wrong, not rounded.

    Where hardly anything gives way a wrong impulse is a small velocity.
    """
    return where_greater(most, _WRONG * size, largest(moved, larger), moved)


@njit
def _off_at_the_end(rows: Any, solver: Any, k: Any, zero: Any) -> Any:
    """How far the rows would be from solver.linear after the whole step: hardly, and it ends where the slope is zero.

    The slope itself does not tell in the last digits, of large impulses times small velocities.
    """
    moved, larger, most, size = zero, zero, zero, zero
    for q in range(solver.unit_start[k], solver.unit_start[k + 1]):
        n = solver.listed[q]
        if rows.cone[n] > 1:
            off = sqrt(_off_of_cone(rows, solver, n, zero + 1.0))
        else:
            z = free_impulse(solver, n, solver.velocity[n] + solver.along[n])
            off = absolute(least(largest(z, rows.lower[n]), rows.upper[n]) - solver.linear[n])
        off = off - _LAST_DIGITS * absolute(solver.linear[n])
        moved = largest(moved, off * inverse_or_zero(solver.inverse[n]))
        larger = largest(larger, _COARSE * off * inverse_or_zero(solver.rho[n]))
        most = largest(most, off)
        size = largest(size, absolute(solver.linear[n]))
    return _measured(moved, larger, most, size)


@njit
def _off_of_cone(rows: Any, solver: Any, n: Any, t: Any) -> Any:
    """The square of how far the cone's impulse after t of the step is from solver.linear."""
    normal = free_impulse(solver, n, solver.velocity[n] + solver.shift[n] + t * solver.along[n])
    square = t - t
    for row in range(n + 1, n + rows.cone[n]):
        z = free_impulse(solver, row, solver.velocity[row] + t * solver.along[row])
        square = square + z * z
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    _, _, _, _, lengthwise, across = cone_projection(rows.slope[n], normal, length, per_length)
    off = lengthwise - solver.linear[n]
    square = off * off
    for row in range(n + 1, n + rows.cone[n]):
        off = (
            across * per_length * free_impulse(solver, row, solver.velocity[row] + t * solver.along[row])
            - solver.linear[row]
        )
        square = square + off * off
    return square


@njit
def _slope_at(rows: Any, solver: Any, k: Any, t: Any) -> Any:
    """Σ λ J d at x + t d, and how it falls with t."""
    value = t - t
    fall = t - t
    for q in range(solver.unit_start[k], solver.unit_start[k + 1]):
        n = solver.listed[q]
        if rows.cone[n] > 1:
            more, steeper = _cone_slope_at(rows, solver, n, t)
            value = value + more
            fall = fall + steeper
        else:
            slope = solver.along[n]
            z = free_impulse(solver, n, solver.velocity[n] + t * slope)
            value = value + least(largest(z, rows.lower[n]), rows.upper[n]) * slope
            inside = where_greater(z, rows.lower[n], where_greater(rows.upper[n], z, solver.inverse[n], t - t), t - t)
            fall = fall + inside * slope * slope
    return value, fall


@njit
def _cone_slope_at(rows: Any, solver: Any, n: Any, t: Any) -> Any:
    """_slope_at's part of the cone that begins with row n."""
    zero = t - t
    normal = free_impulse(solver, n, solver.velocity[n] + solver.shift[n] + t * solver.along[n])
    square = zero
    along = zero  # z_t · J_t d
    total = zero
    for row in range(n + 1, n + rows.cone[n]):
        z = free_impulse(solver, row, solver.velocity[row] + t * solver.along[row])
        square = square + z * z
        along = along + z * solver.along[row]
        total = total + solver.along[row] * solver.along[row]
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, lengthwise, across = cone_projection(rows.slope[n], normal, length, per_length)
    along = along * per_length
    slope = solver.along[n]
    fall = c0 * slope * slope + 2.0 * c1 * slope * along + c2 * along * along + c3 * total
    return lengthwise * slope + across * along, fall * solver.inverse[n]


@njit
def _search(rows: Any, solver: Any, k: Any, base: Any, bend: Any, full: Any, close: Any) -> Any:
    """The t at which the slope along d is zero; 1 where `full` is."""
    zero = base - base
    low = zero
    high = zero + 1e300
    t = zero + 1.0
    found = zero  # 1: this robot's t is, and stays whatever others in its pack still do
    for _ in range(_STEPS):
        value, fall = _slope_at(rows, solver, k, t)
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
