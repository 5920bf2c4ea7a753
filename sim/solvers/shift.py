"""De Saxcé's shift of friction cones, which follows the velocities from one convex problem to the next.

With the shift μ |v_t| added to a contact's normal velocity, Coulomb's law is one complementarity over the cone and its
dual (De Saxcé and Feng 1998). A shift that is held fixed leaves the problem convex (Acary, Cadoux, Lemaréchal, Malick
2011); between problems it is moved to the value that the velocities found call for. Shifts are in m/s. A cone is
identified by its first row, n.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import inverse_or_zero, largest, least
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import NewtonWork

_UNKNOWN = 1e300  # [m/s] above every shift
_TELLING = (
    10.0  # a shift is known to be too small or too large if its error is this many times the residual of impulses
)
_ROUNDED = 1e-6  # relative to a shift: one that is off by less follows secants alone
_ON_EDGE = 0.999  # of the square of the largest friction, above which a contact counts as having slid
_TOO_LARGE = 1e-12  # [m/s] by which a shift may exceed the one wanted


@inlined
def wanted_shift(rows: Rows, work: NewtonWork, n: int) -> Real:
    """μ |v_t| of the cone [m/s], 0 of a convex one, without the regularised part of the velocity: a sticking contact
    has no shift."""
    square = zero_like(work.velocity[n])
    for row in range(n + 1, n + rows.cone[n]):
        slip = (
            work.velocity[row]
            + rows.cfm[row] * rows.impulse[row]
            + work.eps[row] * (rows.impulse[row] - work.centre[row])
        )
        square = square + slip * slip
    return rows.shifting[n] * sqrt(square)


@njit
def start_shift(rows: Rows, work: NewtonWork, n: int) -> None:
    """Set the cone's shift to the one that the present velocities call for, without a bracket yet."""
    work.shift[n] = wanted_shift(rows, work, n)
    work.before[n] = work.shift[n]
    work.off[n] = zero_like(work.shift[n])
    work.low[n] = work.off[n]
    work.high[n] = work.off[n] + _UNKNOWN


@inlined
def follow_shift(rows: Rows, work: NewtonWork, n: int, left: Real, chosen: Real) -> Real:
    """Move the cone's shift, in lanes where `chosen` is 1, towards the shift that the velocities call for; return the
    change [m/s].

    From the second time on the shift follows the secant through the last two, which is exact for a contact that slides
    independently, but stays between shifts known to be too small or too large. `left`: the residual that the impulses
    leave in the rows' velocities [rad/s or m/s].
    """
    zero = zero_like(chosen)
    wanted = wanted_shift(rows, work, n)
    off = wanted - work.shift[n]
    far = where_greater(absolute(off), _ROUNDED * (work.shift[n] + wanted), zero + 1.0, zero)
    telling = where_greater(absolute(off), _TELLING * left, far, zero)
    _note_bracket(work, n, off, where_greater(chosen, zero, telling, zero), chosen)
    moved = work.shift[n] - work.before[n]
    rate = (off - work.off[n]) * moved * inverse_or_zero(moved * moved)  # change of `off`; -1: the wanted shift stays
    rate = where_greater(moved * moved, zero, least(rate, zero - 0.25), zero - 1.0)
    following = largest(work.shift[n] - off / rate, zero)
    work.before[n] = where_greater(chosen, zero, work.shift[n], work.before[n])
    work.off[n] = where_greater(chosen, zero, off, work.off[n])
    moved_to = where_greater(far, zero, _within_bracket(work, n, following), following)
    work.shift[n] = where_greater(chosen, zero, moved_to, work.shift[n])
    return absolute(off)


@inlined
def _note_bracket(work: NewtonWork, n: int, off: Real, telling: Real, chosen: Real) -> None:
    """Note the cone's shift as too small or too large where `telling` is 1: the impulses are accurate enough to decide.

    Other contacts' shifts change the wanted one: a bracket that has closed around none is opened again.
    """
    zero = zero_like(off)
    work.low[n] = where_greater(telling * off, zero, work.shift[n], work.low[n])
    work.high[n] = where_greater(-telling * off, zero, work.shift[n], work.high[n])
    closed = where_greater(0.01 * absolute(off), work.high[n] - work.low[n], chosen, zero)
    work.low[n] = where_greater(closed, zero, zero, work.low[n])
    work.high[n] = where_greater(closed, zero, zero + _UNKNOWN, work.high[n])


@inlined
def _within_bracket(work: NewtonWork, n: int, following: Real) -> Real:
    """The shift `following` [m/s] if it lies within the cone's bracket, else the bracket's midpoint where it has
    one."""
    zero = zero_like(following)
    middle = where_greater(zero + 0.5 * _UNKNOWN, work.high[n], 0.5 * (work.low[n] + work.high[n]), following)
    above_low = where_greater(following, work.low[n], following, where_greater(work.low[n], zero, middle, following))
    return where_greater(work.high[n], above_low, above_low, middle)


@njit
def slides(rows: Rows, work: NewtonWork, island: int, resting: Real) -> Real:
    """1 where a contact of the island slid in the last step and still does, faster than `resting` [m/s]; else 0."""
    zero = zero_like(resting)
    sliding = zero
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1:
            now = where_greater(work.shift[n] - rows.shifting[n] * resting, zero, zero + 1.0, sliding)
            sliding = where_greater(slid_before(rows, work, n), zero, now, sliding)
    return sliding


@inlined
def slid_before(rows: Rows, work: NewtonWork, n: int) -> Real:
    """1 where the cone's warm-start impulse, work.first, is on the cone's edge, else 0."""
    zero = zero_like(work.first[n])
    square = zero
    for row in range(n + 1, n + rows.cone[n]):
        square = square + work.first[row] * work.first[row]
    limit = rows.slope[n] * work.first[n]
    return where_greater(square - _ON_EDGE * limit * limit, zero, zero + 1.0, zero)


# ------------------------------------------------------------------ of a single robot's contacts


@njit
def farthest_shift(rows: Rows, work: NewtonWork, island: int) -> float:
    """The largest distance of a shift of the island from the one wanted [m/s]."""
    farthest = 0.0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1:
            farthest = max(abs(wanted_shift(rows, work, n) - work.shift[n]), farthest)
    return farthest


@njit
def move_shifts(rows: Rows, work: NewtonWork, island: int) -> float:
    """Set all shifts of the island to those wanted; return the largest change [m/s]."""
    farthest = 0.0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1:
            wanted = wanted_shift(rows, work, n)
            farthest = max(abs(wanted - work.shift[n]), farthest)
            work.shift[n] = wanted
    return farthest


@njit
def drop_large_shifts(rows: Rows, work: NewtonWork, island: int) -> bool:
    """Zero the shifts of the island that exceed those wanted, which let contacts sink; True if there are any.

    A contact without a shift never sinks: a sliding one rises (Anitescu and Potra 1997).
    """
    dropped = False
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1 and work.shift[n] - wanted_shift(rows, work, n) - _TOO_LARGE > 0.0:
            work.shift[n] = 0.0
            dropped = True
    return dropped
