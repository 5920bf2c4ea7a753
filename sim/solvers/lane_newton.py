"""newton for one lane of a pack: an island that the strategies of packs leave is settled as a single robot's.

The rows that act in the lane, its M̂ and its impulses are copied into the records of a single robot, whose solver is
called by its entry (contact/pack_contacts.py: SingleSolver): no strategy of newton is compiled for lanes. Impulses are
in N s or N m s, velocities in rad/s or m/s.
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_get, lane_set
from artsim.sim.run_data.run_records import ALL_ROWS, LARGE, LASTING_ROWS, RESIDUAL, Rows, Step
from artsim.sim.run_data.scratch import SOLVE, SolverBundle
from artsim.sim.solvers.calls import ask


@njit
def settle_by_newton(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, lane: int) -> None:
    """Solve all rows of a lane from step.next (nu,): set it, pack.impulse (rows,) and rows.report[RESIDUAL] there.

    Newton may let contacts yield, which rows.regularised counts, or leave penetration where it is.
    """
    own, pack, nu = solver.single, solver.pack, step.next.shape[0]
    lane_set(pack.by_newton, 0, lane, 1.0)
    for entry in range(nu * nu):
        lane_set(own.data.factor, entry, 0, lane_get(robot.data.factor, entry, lane))
    for a in range(nu):
        own.step.free[a], own.step.next[a] = lane_get(step.free, a, lane), lane_get(step.next, a, lane)
    _take_rows(rows, solver, lane)
    ask(own.call, SOLVE)
    lane_set(rows.report, RESIDUAL, lane, own.rows.report[RESIDUAL])
    lane_set(rows.report, LARGE, lane, own.rows.report[LARGE])
    for a in range(nu):
        lane_set(step.next, a, lane, own.step.next[a])
        lane_set(pack.change, a, lane, 0.0)
    for n in range(rows.number[ALL_ROWS]):
        lane_set(pack.impulse, n, lane, 0.0)
    for row in range(own.rows.number[ALL_ROWS]):
        n = own.rows.place[row]
        lane_set(pack.impulse, n, lane, own.rows.impulse[row])
        lane_set(rows.regularised, n, lane, own.rows.regularised[row])


@njit
def _take_rows(rows: Rows, solver: SolverBundle, lane: int) -> None:
    """Copy the rows that may have an impulse in this lane, with their impulses at the start of the solution, in the
    order that they have for a single robot. single.rows.place: their numbers in the pack.
    """
    own, order = solver.single.rows, solver.single.order
    own.number[ALL_ROWS] = own.number[LASTING_ROWS] = 0
    own.start[0] = 0
    of_contacts = order.number.shape[0] > 0
    _take_units(rows, solver, lane, 0, rows.number[LASTING_ROWS] if of_contacts else rows.number[ALL_ROWS])
    own.number[LASTING_ROWS] = own.number[ALL_ROWS]
    if of_contacts:
        for n in range(order.number[lane]):
            at = order.place[lane, n]
            if at >= 0 and order.first_row[at] >= 0:
                _take_units(rows, solver, lane, order.first_row[at], order.first_row[at] + order.row_count[at])


@njit
def _take_units(rows: Rows, solver: SolverBundle, lane: int, n: int, end: int) -> None:
    """Append the units from row n to before `end` that act in this lane."""
    while n < end:
        size = max(rows.cone[n], 1)
        if _acts(rows, solver, n, lane):
            for row in range(n, n + size):
                _take_row(rows, solver, row, lane)
        n += size


@inlined
def _acts(rows: Rows, solver: SolverBundle, n: int, lane: int) -> bool:
    """True if the unit that begins with row n may have an impulse in this lane."""
    bounded: bool = lane_get(rows.upper, n, lane) > lane_get(rows.lower, n, lane)
    return bounded and rows.stop[n] > rows.start[n] and lane_get(solver.newton.rho, n, lane) > 0.0


@inlined
def _take_row(rows: Rows, solver: SolverBundle, n: int, lane: int) -> None:
    """Append row n of the lane."""
    own = solver.single.rows
    to = own.number[ALL_ROWS]
    own.number[ALL_ROWS] = to + 1
    own.place[to] = n
    own.kind[to], own.dof[to], own.part[to] = rows.kind[n], rows.dof[n], rows.part[n]
    own.cone[to], own.static[to] = rows.cone[n], rows.static[n]
    first, begin = own.start[to], rows.start[n]
    own.start[to + 1] = first + rows.start[n + 1] - begin
    own.stop[to] = first + rows.stop[n] - begin
    for e in range(rows.start[n + 1] - begin):
        own.entry_dof[first + e] = rows.entry_dof[begin + e]
        own.entry_value[first + e] = lane_get(rows.entry_value, begin + e, lane)
    for e in range(rows.stop[n] - begin):
        own.column[first + e] = rows.column[begin + e]
        own.value[first + e] = lane_get(rows.value, begin + e, lane)
    own.error[to], own.rate[to] = lane_get(rows.error, n, lane), lane_get(rows.rate, n, lane)
    own.bias[to], own.cfm[to] = lane_get(rows.bias, n, lane), lane_get(rows.cfm, n, lane)
    own.lower[to], own.upper[to] = lane_get(rows.lower, n, lane), lane_get(rows.upper, n, lane)
    own.slope[to], own.shifting[to] = lane_get(rows.slope, n, lane), lane_get(rows.shifting, n, lane)
    own.regularised[to] = lane_get(rows.regularised, n, lane)
    own.impulse[to] = lane_get(solver.newton.first, n, lane)
