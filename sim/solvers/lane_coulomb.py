"""Coulomb's law for one lane of a pack, in the impulses of its own few rows.

Robots of a pack touch with different limbs, and need different numbers of Newton steps: 8 lanes that step together
solve the rows of all for as long as the slowest needs. The factor of M̂ and W = J M̂⁻¹ Jᵀ are therefore found for all
lanes at once (delassus.py). The remaining dense problem, as small as the lane's own rows, is solved for one lane after
the other, as for a single robot, so that a lane's result cannot depend on the others.

The rows that act in the lane are copied into records of one robot (contact/pack_contacts.py: LaneSolver), without dofs:
velocities of rows follow from impulses by W alone. Impulses are in N s or N m s, velocities in rad/s or m/s.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_get, lane_set
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import STEPPING_UNITS, SolverBundle
from artsim.sim.solvers.coulomb import Effort, Task, take_rounds
from artsim.sim.solvers.delassus import list_unit, row_count
from artsim.sim.solvers.tolerance import is_solved


@njit
def settle_lane(rows: Rows, solver: SolverBundle, lane: int, task: Task, effort: Effort) -> bool:
    """Solve the rows of this lane that are listed in solver.newton from its λ and the velocities there, by
    `take_rounds`; rows.impulse becomes the λ found. True if they are solved.
    """
    own = solver.lane.work
    _take_rows(rows, solver, lane)
    left = take_rounds(None, solver.lane.rows, None, own, 0, task, effort)
    for i in range(row_count(own)):
        n = solver.newton.delassus_row[own.marked[i]]
        lane_set(rows.impulse, n, lane, solver.lane.rows.impulse[i])
        lane_set(solver.newton.centre, n, lane, solver.lane.rows.impulse[i])
    return is_solved(left, task[2])


@njit
def _take_rows(rows: Rows, solver: SolverBundle, lane: int) -> None:
    """Copy the units listed that may have an impulse in this lane, and their part of W."""
    work = solver.newton
    lane_rows, own = solver.lane.rows, solver.lane.work
    own.sizes[STEPPING_UNITS] = 0
    count = 0
    begin = 0
    for unit in range(work.sizes[STEPPING_UNITS]):
        n = work.stepping_unit[unit]
        if lane_get(rows.upper, n, lane) > lane_get(rows.lower, n, lane) and lane_get(work.rho, n, lane) > 0.0:
            lane_rows.cone[count] = rows.cone[n]
            lane_rows.slope[count] = lane_get(rows.slope, n, lane)
            own.listed[own.sizes[STEPPING_UNITS]] = count
            list_unit(own, count)
            for row in range(max(rows.cone[n], 1)):
                _take_row(rows, solver, n + row, lane, count)
                own.delassus_row[count] = count
                own.marked[count] = begin + row
                count += 1
            own.unit_stop[own.sizes[STEPPING_UNITS] - 1] = count
        begin += max(rows.cone[n], 1)
    own.unit_start[1] = own.sizes[STEPPING_UNITS]
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
