"""Coulomb's law for one lane of a pack, in the impulses of its own few rows.

Lanes that are apart (own_rows.py) take their Newton steps as a single robot does. A lane's own rows are copied into
records of one robot (contact/pack_contacts.py: LaneSolver), without dofs: velocities of rows follow from impulses by W
alone. Impulses are in N s or N m s, velocities in rad/s or m/s.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import lane_get, lane_set
from artsim.sim.foundation.records import Ints1
from artsim.sim.run_data.scratch import STEPPING_UNITS, SolverBundle
from artsim.sim.solvers.coulomb import Effort, Task, take_rounds
from artsim.sim.solvers.delassus import list_unit, row_count
from artsim.sim.solvers.own_rows import begin_row, taken_fields


@njit
def settle_lane(cone: Ints1, solver: SolverBundle, lane: int, task: Task, effort: Effort) -> float:
    """Solve the lane's own rows from the λ and the velocities there, by `take_rounds`; their λ becomes that found.
    Return their residual [rad/s or m/s]. cone: that of the rows of all lanes.
    """
    own = solver.lane.work
    _take_rows(cone, solver, lane)
    left = take_rounds(None, solver.lane.rows, None, own, 0, task, effort)
    for i in range(row_count(own)):
        lane_set(solver.own.rows.impulse, own.marked[i], lane, solver.lane.rows.impulse[i])
    return left


@njit
def _take_rows(cone: Ints1, solver: SolverBundle, lane: int) -> None:
    """Copy the units of the lane, and their part of W."""
    shared, own, rows = solver.own, solver.lane.work, solver.lane.rows
    source, target = taken_fields(shared.rows, shared.work), taken_fields(rows, own)
    own.sizes[STEPPING_UNITS] = 0
    count, at = 0, 0
    while at < solver.pack.own_end[lane]:
        n = solver.pack.own_row[at, lane]
        size = 1 if n < 0 else max(cone[n], 1)
        if n >= 0 and lane_get(shared.rows.upper, at, lane) > lane_get(shared.rows.lower, at, lane):
            rows.cone[count] = cone[n]
            own.listed[own.sizes[STEPPING_UNITS]] = count
            list_unit(own, count)
            for row in range(at, at + size):
                for f in range(len(target)):
                    target[f][count] = lane_get(source[f], row, lane)
                begin_row(rows, own, count)
                own.delassus_row[count] = count
                own.marked[count] = row
                count += 1
            own.unit_stop[own.sizes[STEPPING_UNITS] - 1] = count
        at += size
    own.unit_start[1] = own.sizes[STEPPING_UNITS]
    room = shared.work.delassus.shape[1]
    for i in range(count):
        for j in range(count):
            own.delassus[i, j] = lane_get(shared.work.delassus, own.marked[i] * room + own.marked[j], lane)
