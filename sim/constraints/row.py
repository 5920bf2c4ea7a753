"""Appends rows and entries to Rows, and sets the rates at which rows correct their errors."""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import State, Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, real, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.run_data.registry import SWEEPING
from artsim.sim.run_data.run_records import ALL_ROWS, LASTING_PLACES, LASTING_ROWS, PLACES, RESIDUAL, Inputs, Rows

TOLD = 1e-6  # [rad/s or m/s] constraint residual of a step above which the summary reports it
UNSOLVED = 1e-6  # [rad/s or m/s] constraint residual above which rows contradict each other
# of aims (stepping/aims.py)
AIMS = 12  # aims per step at most
MISSED = 1e-6  # [m or rad] miss above which the rows are aimed once more
CLOSED = 1e-9  # [m or rad] miss below which no further aim is needed
FASTER = 1.5  # largest growth of the fastest generalised velocity that an aim may cause
NEARER = 0.5  # an aim has helped if it leaves at most this share of the previous miss
_MOVED = 0.5  # least change of a miss by an aim, as a share of the aim, of a row that is not redundant
RECOVERY = 0.1  # [s] over which penetration of a bound, or an initial opening, is removed
_CREEP = 1e-3  # [m/s or rad/s] at which an error may always be removed: the error of one step, at once
_CLOSING = 0.5  # [m/s or rad/s] at which an open loop or tendon equality is closed
_PUSH = 5.0  # [rad/s or m/s] of the joints at most, with which a row corrects its error


@njit
def add_row(rows: Rows, kind: int, k: int) -> int:
    """Append a row without entries on dof k (or its kind's index): unbounded, hard, no bias. Return its number."""
    n = rows.number[ALL_ROWS]
    zero = zero_like(rows.bias[n])
    rows.number[ALL_ROWS] = n + 1
    rows.kind[n] = kind
    rows.dof[n] = k
    rows.part[n] = 0
    rows.place[n] = rows.number[PLACES]
    rows.number[PLACES] += 1
    if n == 0:
        rows.start[0] = 0
    rows.start[n + 1] = rows.start[n]
    rows.stop[n] = rows.start[n]
    rows.impulse[n] = zero
    rows.error[n] = zero
    rows.rate[n] = zero
    rows.bias[n] = zero
    rows.cfm[n] = zero
    rows.lower[n] = real(-1e308, zero)
    rows.upper[n] = real(1e308, zero)
    rows.cone[n] = 0
    rows.slope[n] = zero
    rows.shifting[n] = zero
    rows.regularised[n] = zero
    rows.static[n] = 0
    return n


@njit
def add_entry(model: Model, data: Workspace, rows: Rows, k: int, value: Real) -> None:
    """Add a dof to the last row. Followers act through G; a dof that cannot move only receives the force."""
    n = rows.number[ALL_ROWS] - 1
    entry = rows.start[n + 1]
    rows.start[n + 1] = entry + 1
    rows.entry_dof[entry] = k
    rows.entry_value[entry] = value
    a = model.dof_independent[k]
    if a >= 0:
        rows.column[rows.stop[n]] = a
        rows.value[rows.stop[n]] = value * data.gain[k]
        rows.stop[n] += 1


@njit
def single_row(model: Model, data: Workspace, rows: Rows, kind: int, k: int, sign: float) -> int:
    """Append a row on the velocity of dof k alone, J = sign G[k]. Return its number."""
    n = add_row(rows, kind, k)
    add_entry(model, data, rows, k, like(sign, data))
    return n


@njit
def begin_impulses(state: State, rows: Rows) -> None:
    """Set the impulses of the rows built so far, which are all but those of contacts, to those of the last step; of
    rows that cannot have any, as those of other lanes, to 0."""
    rows.number[LASTING_ROWS] = rows.number[ALL_ROWS]
    rows.number[LASTING_PLACES] = rows.number[PLACES]
    for n in range(rows.number[LASTING_ROWS]):
        impulse = state.impulse[rows.place[n]]
        zero = zero_like(impulse)
        rows.impulse[n] = where_greater(rows.upper[n], rows.lower[n], impulse, zero)


@njit
def hand_on_impulses(state: State, rows: Rows) -> None:
    """Store the impulses of lasting rows for the next step. Those of rows that contradict each other are not stored,
    since they would grow from step to step.
    """
    for n in range(state.impulse.shape[0]):
        state.impulse[n] = zero_like(state.impulse[n])
    for n in range(rows.number[LASTING_ROWS]):
        state.impulse[rows.place[n]] = if_agreed(rows, rows.impulse[n])


@inlined
def if_agreed(rows: Rows, impulse: Real) -> Real:
    """The impulse where the step's rows are solved, else 0."""
    zero = zero_like(impulse)
    return where_greater(rows.report[RESIDUAL], zero + UNSOLVED, zero, impulse)


@njit
def drift_of(data: Workspace, rows: Rows, n: int) -> Real:
    """J Ġ u: the acceleration along row n at zero independent acceleration, from its entries."""
    value = zero_like(rows.bias[n])
    for e in range(rows.start[n], rows.start[n + 1]):
        value += rows.entry_value[e] * data.drift[rows.entry_dof[e]]
    return value


@inlined
def row_rate(rows: Rows, n: int, v: Lanes1) -> Real:
    """J v of row n for velocities v of the dofs."""
    value = zero_like(rows.bias[n])
    for e in range(rows.start[n], rows.start[n + 1]):
        value += rows.entry_value[e] * v[rows.entry_dof[e]]
    return value


@inlined
def mobility_of_row(rows: Rows, inputs: Inputs, n: int) -> Real:
    """An upper bound of J M⁻¹ Jᵀ of row n, from its dofs in the pose of the file; of a single dof, its mobility."""
    root = zero_like(rows.bias[n])
    for e in range(rows.start[n], rows.start[n + 1]):
        root += absolute(rows.entry_value[e]) * math.sqrt(inputs.mobility[rows.entry_dof[e]])
    return root * root


@inlined
def recovery_rate(inputs: Inputs, size: Real, erp: float) -> Real:
    """The rate at which a hard row corrects an error of this size [rad or m]; returned in [1/s].

    A correction of the whole error at once would be a kick: the error decays exponentially over RECOVERY, a small error
    at once; or as --coupling-erp sets for all rows, or by `erp` for this row (-1: none of its own). The sweeping
    solvers, which leave errors at every step, correct the whole error at once.
    """
    h = inputs.time_step[0]
    if erp >= 0.0:
        return real(erp / h, size)
    if inputs.recovery[0] > 0.0:
        return real(inputs.recovery[0] / h, size)
    if SWEEPING[inputs.solver[0]]:
        return real(1.0 / h, size)
    creeping = _CREEP / largest(size, real(1e-300, size))
    return least(real(1.0 / h, size), largest(real(1.0 / RECOVERY, size), creeping))


@inlined
def closing_rate(inputs: Inputs, size: Real, erp: float) -> Real:
    """The rate [1/s] at which a loop or tendon equality corrects an error of this size [rad or m]: loops close at
    _CLOSING at most, unless --coupling-erp is given; `erp` as in `recovery_rate`."""
    h = inputs.time_step[0]
    if erp >= 0.0:
        return real(erp / h, size)
    if inputs.recovery[0] > 0.0:
        return real(inputs.recovery[0] / h, size)
    return least(real(1.0 / h, size), _CLOSING / largest(size, real(1e-300, size)))


@inlined
def share_of_aim(along: Real, square: Real) -> Real:
    """The share of an aim that would have met its target, by the secant along it; 0 where the aim hardly moved its
    rows. In both widths.

    `square` is the sum of squares of the misses aimed at, `along` their product with the misses that are left. Near a
    change point of a linkage J itself changes its size or sign within the step, and aims by J at the step's start go
    much too far or the wrong way.
    """
    zero = zero_like(square)
    moved = square - along
    size, least_size = absolute(moved), _MOVED * square
    return where_greater(size, least_size, square / where_greater(size, least_size, moved, zero + 1.0), zero)


@inlined
def within_reach(rows: Rows, n: int, rate: Real) -> Real:
    """`rate`, or the rate that corrects row n's error with joint velocities of _PUSH, if that is lower.

    Where a row hardly moves any dof (a straight arm, a dead centre), a velocity along the row would need unbounded
    joint velocities.
    """
    reach = zero_like(rows.bias[n])
    for e in range(rows.start[n], rows.start[n + 1]):
        reach += absolute(rows.entry_value[e])
    size = absolute(rows.error[n])
    return least(rate, _PUSH * reach / largest(size, real(1e-300, size)))


@inlined
def one_sided(rows: Rows, inputs: Inputs, n: int, gap: Real) -> None:
    """Make row n unilateral, letting the gap [rad or m] close within the step, in both widths.

    Initial penetration is removed over 0.1 s, since removing it at once would be a kick. The sweeping solvers violate
    bounds at every step and would drift at that rate; they remove all penetration at once, as PhysX does.
    """
    h = inputs.time_step[0]
    zero = zero_like(gap)
    rows.error[n] = gap
    rows.rate[n] = real(1.0 / h, gap)
    if any_positive(-gap):
        back = rows.rate[n]
        if inputs.recovery[0] > 0.0:
            back = real(inputs.recovery[0] / h, gap)
        elif not SWEEPING[inputs.solver[0]]:
            back = within_reach(rows, n, real(1.0 / max(h, RECOVERY), gap))
        rows.rate[n] = where_greater(-gap, zero, back, rows.rate[n])
    rows.bias[n] = rows.rate[n] * gap
    rows.lower[n] = zero
