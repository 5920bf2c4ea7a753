"""Step length along newton's direction d: an exact line search on its convex, piecewise quadratic function.

The function's slope along d increases with the share t of the step, linearly except at kinks. Where the whole step ends
near the slope's root it is taken; otherwise the root is found by a bracketed Newton's method. A step as small as
rounding is taken whole. Every function serves both widths: t, tolerances and results are T, a float or a pack of 8
lanes.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real, Vec4
from artsim.sim.foundation.scalars import inverse_or_zero, largest, least
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import NewtonWork
from artsim.sim.solvers.cone import cone_projection
from artsim.sim.solvers.impulses import free_impulse, project

EXACT = 1e-12  # relative accuracy of t
_MOST_EVALUATIONS = 30  # of the slope, in the search for its root
_LAST_DIGITS = 2e-15  # relative to an impulse
_WRONG = 1e-9  # an impulse off by more than this share of the largest is wrong, not rounded
_COARSE = 1e-6  # of a row's mobility: the least by which wrong impulses are measured as velocities


@njit
def take(rows: Rows, force: Lanes1, work: NewtonWork, island: int, tolerance: Real, close: float) -> Real:
    """Step along d to the minimum of the island's function; return the distance of the rows from work.linear after the
    step [rad/s or m/s].

    The whole step is taken where it removes nine tenths of the slope, or is shorter than the tolerance [rad/s or m/s];
    otherwise t is found to the relative accuracy `close`. O(rows · evaluations of the slope).
    """
    zero = zero_like(tolerance)
    base = zero
    bend = zero
    at_start = zero
    longest = zero
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[p]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            longest = largest(longest, absolute(work.direction[a]))
            base = base + (work.product[a] - force[a]) * work.direction[a]
            bend = bend + work.through[a] * work.direction[a]
            at_start = at_start + work.gradient[a] * work.direction[a]
    t = zero + 1.0
    value, _ = _slope_at(rows, work, island, t)
    value = base + bend - value
    full = where_greater(absolute(value), 0.1 * absolute(at_start), zero, zero + 1.0)
    full = where_greater(longest, tolerance, full, zero + 1.0)
    if any_positive(1.0 - full):
        full = where_greater(_off_at_the_end(rows, work, island, zero), tolerance, full, zero + 1.0)
    if any_positive(1.0 - full):
        t = _search(rows, work, island, base, bend, full, close)
    _move(rows, work, island, t)
    project(rows, work, island)
    return where_greater(full, zero, _off(rows, work, island, zero), zero + 1e300)


@njit
def leap(rows: Rows, work: NewtonWork, island: int, zero: Real) -> Real:
    """Take the whole step along d regardless of the function; return the distance of the rows from work.linear after
    the step [rad/s or m/s].
    """
    _move(rows, work, island, zero + 1.0)
    project(rows, work, island)
    return _off(rows, work, island, zero)


@njit
def _move(rows: Rows, work: NewtonWork, island: int, t: Real) -> None:
    """Move x, M̂ x and the rows' velocities by t of the step."""
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[p]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.change[a] = work.change[a] + t * work.direction[a]
            work.product[a] = work.product[a] + t * work.through[a]
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.velocity[row] = work.velocity[row] + t * work.along[row]


@njit
def _off(rows: Rows, work: NewtonWork, island: int, zero: Real) -> Real:
    """The distance of the rows' impulses from work.linear, as a velocity [rad/s or m/s]."""
    found = zero, zero, zero, zero
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            found = _noted(work, row, absolute(rows.impulse[row] - work.linear[row]), found)
    return _measured(found)


@inlined
def _noted(work: NewtonWork, row: int, off: Real, found: Vec4) -> Vec4:
    """The largest distances of rows from work.linear, and the largest impulse there, with those of a row."""
    moved, larger, most, size = found
    off = off - _LAST_DIGITS * absolute(work.linear[row])
    return (
        largest(moved, off * inverse_or_zero(work.inverse[row])),
        largest(larger, _COARSE * off * inverse_or_zero(work.rho[row])),
        largest(most, off),
        largest(size, absolute(work.linear[row])),
    )


@inlined
def _measured(found: Vec4) -> Real:
    """The distance of rows from work.linear [rad/s or m/s]: measured by their compliance, or by more if an impulse is
    wrong and not just rounded.

    Where rows have next to no compliance, a wrong impulse would otherwise count as a small velocity.
    """
    moved, larger, most, size = found
    return where_greater(most, _WRONG * size, largest(moved, larger), moved)


@njit
def _off_at_the_end(rows: Rows, work: NewtonWork, island: int, zero: Real) -> Real:
    """The distance of the rows from work.linear after the whole step [rad/s or m/s].

    Where this distance is zero, so is the slope. The slope itself, a sum of large impulses times small velocities,
    cannot show its zero, since its last digits are lost.
    """
    found = zero, zero, zero, zero
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1:
            off = sqrt(_off_of_cone(rows, work, n, zero + 1.0))
        else:
            z = free_impulse(work, n, work.velocity[n] + work.along[n])
            off = absolute(least(largest(z, rows.lower[n]), rows.upper[n]) - work.linear[n])
        found = _noted(work, n, off, found)
    return _measured(found)


@njit
def _off_of_cone(rows: Rows, work: NewtonWork, n: int, t: Real) -> Real:
    """The squared distance of the cone's impulse after t of the step from work.linear."""
    normal = free_impulse(work, n, work.velocity[n] + work.shift[n] + t * work.along[n])
    square = zero_like(t)
    for row in range(n + 1, n + rows.cone[n]):
        z = free_impulse(work, row, work.velocity[row] + t * work.along[row])
        square = square + z * z
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    _, _, _, _, lengthwise, across = cone_projection(rows.slope[n], normal, length, per_length)
    off = lengthwise - work.linear[n]
    square = off * off
    for row in range(n + 1, n + rows.cone[n]):
        off = across * per_length * free_impulse(work, row, work.velocity[row] + t * work.along[row]) - work.linear[row]
        square = square + off * off
    return square


@njit
def _slope_at(rows: Rows, work: NewtonWork, island: int, t: Real) -> tuple[Real, Real]:
    """Σ λ J d at x + t d [J], and its derivative with respect to t."""
    zero = zero_like(t)
    value = zero
    fall = zero
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1:
            more, steeper = _cone_slope_at(rows, work, n, t)
            value = value + more
            fall = fall + steeper
        else:
            slope = work.along[n]
            z = free_impulse(work, n, work.velocity[n] + t * slope)
            value = value + least(largest(z, rows.lower[n]), rows.upper[n]) * slope
            inside = where_greater(z, rows.lower[n], where_greater(rows.upper[n], z, work.inverse[n], zero), zero)
            fall = fall + inside * slope * slope
    return value, fall


@njit
def _cone_slope_at(rows: Rows, work: NewtonWork, n: int, t: Real) -> tuple[Real, Real]:
    """The part of `_slope_at` from the cone that begins with row n."""
    zero = zero_like(t)
    normal = free_impulse(work, n, work.velocity[n] + work.shift[n] + t * work.along[n])
    square = zero
    along = zero  # z_t · J_t d
    total = zero
    for row in range(n + 1, n + rows.cone[n]):
        z = free_impulse(work, row, work.velocity[row] + t * work.along[row])
        square = square + z * z
        along = along + z * work.along[row]
        total = total + work.along[row] * work.along[row]
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, lengthwise, across = cone_projection(rows.slope[n], normal, length, per_length)
    along = along * per_length
    slope = work.along[n]
    fall = c0 * slope * slope + 2.0 * c1 * slope * along + c2 * along * along + c3 * total
    return lengthwise * slope + across * along, fall * work.inverse[n]


@njit
def _search(rows: Rows, work: NewtonWork, island: int, base: Real, bend: Real, full: Real, close: float) -> Real:
    """The t at which the slope along d is zero; 1 in lanes where `full` is 1."""
    zero = zero_like(base)
    low = zero
    high = zero + 1e300
    t = zero + 1.0
    found = zero  # 1: t of this robot is found, and stays fixed while other robots of the pack go on
    for _ in range(_MOST_EVALUATIONS):
        value, fall = _slope_at(rows, work, island, t)
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
        if not any_positive(1.0 - found):
            break
    return t
