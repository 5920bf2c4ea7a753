"""Coulomb's law for one lane of a pack, in the impulses of its own few rows.

Robots of a pack touch with different limbs, and need different numbers of Newton steps: 8 lanes that step together
solve the rows of all for as long as the slowest needs. The factor of M̂ and W = J M̂⁻¹ Jᵀ are therefore found for all
lanes at once (delassus.py). The remaining dense problem, as small as the lane's own rows, is solved for one lane after
the other, by the functions of coulomb.py for a single robot, so that a lane's result cannot depend on the others.

The rows that act in the lane are copied into records of one robot (contact/pack_contacts.py: LaneSolver), without dofs:
velocities of rows follow from impulses by W alone. Impulses are in N s or N m s, velocities in rad/s or m/s.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_get, lane_set
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import FEW_UNITS, NewtonWork, SolverBundle
from artsim.sim.solvers.coulomb import (
    EASIER,
    GLANCE,
    HARDER,
    MEMORY,
    NO_BETTER,
    OVERFLOWING,
    ROUND_STEPS,
    begin_round,
    begin_rounds,
    bound_of_sharing,
    go_on_sharing,
    is_met,
    recentre,
    scale,
    take_step,
)
from artsim.sim.solvers.coulomb_system import residual, set_rates
from artsim.sim.solvers.delassus import MOST_PULL, find_in_impulses, list_unit, row_count
from artsim.sim.solvers.tolerance import ABSURD, ENOUGH, UNTRIED, largest_impulse, largest_pull, rounding

GIVEN_UP, SETTLED, HEAVY = range(3)  # ends of a lane's steps; HEAVY: impulses are too large for steps in impulses


@njit
def settle_lane(
    rows: Rows,
    solver: SolverBundle,
    lane: int,
    bounds: tuple[float, float],
    effort: tuple[int, float, bool, bool],
    opened: float,
) -> int:
    """Solve the rows of this lane that are listed in solver.newton from its λ and the velocities there; rows.impulse
    becomes the λ found where the lane is SETTLED. bounds: the tolerance and the limit, and effort, as for `slide`;
    opened: 1 where loads that rows leave open are to be shared.
    """
    tolerance, limit = bounds
    _take_rows(rows, solver, lane)
    ending = _settle(solver.lane.rows, solver.lane.work, tolerance, limit, effort, opened)
    if ending == SETTLED:
        _put_impulses(rows, solver, lane)
    return ending


@njit
def _take_rows(rows: Rows, solver: SolverBundle, lane: int) -> None:
    """Copy the units listed that may have an impulse in this lane, and their part of W."""
    work = solver.newton
    lane_rows, own = solver.lane.rows, solver.lane.work
    own.sizes[FEW_UNITS] = 0
    count = 0
    begin = 0
    for unit in range(work.sizes[FEW_UNITS]):
        n = work.stepping_unit[unit]
        if lane_get(rows.upper, n, lane) > lane_get(rows.lower, n, lane) and lane_get(work.rho, n, lane) > 0.0:
            lane_rows.cone[count] = rows.cone[n]
            lane_rows.slope[count] = lane_get(rows.slope, n, lane)
            own.listed[own.sizes[FEW_UNITS]] = count
            list_unit(own, count)
            for row in range(max(rows.cone[n], 1)):
                _take_row(rows, solver, n + row, lane, count)
                own.delassus_row[count] = count
                own.marked[count] = begin + row
                count += 1
            own.unit_stop[own.sizes[FEW_UNITS] - 1] = count
        begin += max(rows.cone[n], 1)
    own.unit_start[1] = own.sizes[FEW_UNITS]
    room = work.delassus.shape[1]
    for i in range(count):
        for j in range(count):
            own.delassus[i, j] = lane_get(work.delassus, own.marked[i] * room + own.marked[j], lane)


@inlined
def _take_row(rows: Rows, solver: SolverBundle, n: int, lane: int, to: int) -> None:
    """Copy row n of the lane."""
    work = solver.newton
    lane_rows, own = solver.lane.rows, solver.lane.work
    lane_rows.cfm[to] = lane_get(rows.cfm, n, lane)
    lane_rows.lower[to] = lane_get(rows.lower, n, lane)
    lane_rows.upper[to] = lane_get(rows.upper, n, lane)
    lane_rows.impulse[to] = lane_get(rows.impulse, n, lane)
    own.centre[to] = lane_rows.impulse[to]
    own.velocity[to] = lane_get(work.velocity, n, lane)
    own.eps[to] = lane_get(work.eps, n, lane)
    own.rho[to] = lane_get(work.rho, n, lane)
    own.along[to] = 0.0
    own.linear[to] = 0.0


@njit
def _put_impulses(rows: Rows, solver: SolverBundle, lane: int) -> None:
    """Copy the impulses found back."""
    work = solver.newton
    lane_rows, own = solver.lane.rows, solver.lane.work
    for i in range(row_count(own)):
        n = work.delassus_row[own.marked[i]]
        lane_set(rows.impulse, n, lane, lane_rows.impulse[i])
        lane_set(work.centre, n, lane, lane_rows.impulse[i])


@njit
def _settle(
    rows: Rows, work: NewtonWork, tolerance: float, limit: float, effort: tuple[int, float, bool, bool], opened: float
) -> int:
    """Take the steps of `coulomb`, from the λ and velocities in `work`; return GIVEN_UP, SETTLED or HEAVY."""
    most, first, near, _ = effort
    left = UNTRIED
    set_rates(rows, work, 0, tolerance)
    size, shares, ease = begin_rounds(rows, work, 0, first, opened, tolerance if near else -1.0)
    bar, past, start, last = size, 1.0, size, UNTRIED
    since = 0
    for turn in range(most + 1):
        if shares > 0.0 and size <= bound_of_sharing(rows, work, 0, tolerance, ease):
            size, shares, ease = go_on_sharing(rows, work, 0, 1.0, ease)
            bar, past, since, last = size, 1.0, 0, UNTRIED
        good = ENOUGH * max(rounding(rows, work, 0), tolerance)
        if shares <= 0.0 and is_met(size, last, good, tolerance) > 0.0:
            before = left
            left = max(size, recentre(rows, work, 0, 1.0))
            if largest_impulse(rows, work, 0) > limit or largest_pull(rows, work, 0) > ABSURD:
                return GIVEN_UP
            if left <= (good if left > NO_BETTER * before else tolerance):
                return SETTLED
            scale(rows, work, 0, 1.0 if opened > 0.0 else HARDER)
            size = residual(rows, work, 0)
            bar, past, since, last = size, 1.0, 0, UNTRIED
        elif since == ROUND_STEPS:
            if shares > 0.0:
                return GIVEN_UP
            size = begin_round(rows, work, 0, EASIER, 1.0)
            bar, past, since = size, 1.0, 0
        since += 1
        if turn == most or (near and turn == GLANCE and size > start):
            return GIVEN_UP
        if largest_pull(rows, work, 0) > MOST_PULL:
            return HEAVY
        find_in_impulses(rows, work, 0)
        last, size = size, take_step(rows, work, 0, bar, size, 1.0 - shares if near else 0.0, 1.0)
        bar = (MEMORY * past * bar + size) / (MEMORY * past + 1.0)
        past = MEMORY * past + 1.0
        if not size < OVERFLOWING:
            return GIVEN_UP
    return GIVEN_UP
