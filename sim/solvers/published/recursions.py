"""The entries of propagation and direct: newton's convex steps with another linear algebra, which forms no matrix."""

from __future__ import annotations

from artsim.sim.articulation.coupling import reduce_matrix
from artsim.sim.articulation.dynamics import mass_matrix
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.run_records import ALL_ROWS, ITERATIONS, LASTING_ROWS, RESIDUAL, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import (
    ANSWER,
    ASKED_FOR,
    BEGIN,
    FACTORISE,
    FROM,
    ISLANDS,
    NEWTON_STEPS,
    REDUCE,
    SOLVE,
    SOLVE_AGAIN,
    TO,
    SolverBundle,
)
from artsim.sim.solvers.attempts import note_start
from artsim.sim.solvers.calls import ask
from artsim.sim.solvers.elimination import one_island
from artsim.sim.solvers.inertia import factorise_inertia, reduce_inertia, solve_inertia
from artsim.sim.solvers.loads import loads_are_open, rub
from artsim.sim.solvers.multipliers import iterate
from artsim.sim.solvers.newton import begin_again, begin_island, note_large_pulls
from artsim.sim.solvers.tolerance import TOLERANCE, largest_speed

_STEPS = 100  # Newton steps at most; two to six are the rule
_CONVEX = 1e5  # tolerances: a larger residual leaves contacts to more than convex steps


@njit
def solve_by_recursions(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """The tasks of a solver whose scratch is `tree` or `graph`, decided at compile time."""
    model, data, step = robot.model, robot.data, run.step
    task = solver.call.task
    if task[ASKED_FOR] == REDUCE:
        reduce_inertia(model, data, step, solver)
    elif task[ASKED_FOR] == FACTORISE:
        factorise_inertia(model, data, solver)
    elif task[ASKED_FOR] == ANSWER:
        if task[TO] > task[FROM]:
            solve_inertia(model, data, solver, data.reduced)
    else:
        if task[ASKED_FOR] == SOLVE_AGAIN:
            begin_again(rows, step, solver.newton)
        else:
            solver.newton.again[0] = BEGIN
            one_island(model, rows, solver.newton)
        _settle(robot, rows, step, solver)
        note_large_pulls(rows, solver.newton)
        _solve_with_mass_matrix(model, data, rows, step, solver)


@njit
def _settle(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle) -> None:
    """Find x and λ, then u; contacts get convex steps only. All rows are one island, or those of newton, where it has
    solved the step before.
    """
    work = solver.newton
    most = 0
    rows.report[RESIDUAL] = 0.0
    for island in range(work.sizes[ISLANDS]):
        begin_island(robot, rows, step, solver, island)
        work.sizes[NEWTON_STEPS] = 0
        note_start(rows, work, island)
        left, _ = iterate(robot, rows, step, solver, island, _STEPS, True, False)
        rows.report[RESIDUAL] = max(rows.report[RESIDUAL], left)
        most = max(most, work.sizes[NEWTON_STEPS])
    rows.report[ITERATIONS] += most
    for a in range(step.next.shape[0]):
        step.next[a] = step.next[a] + work.change[a]


@njit
def _solve_with_mass_matrix(model: Model, data: Workspace, rows: Rows, step: Step, solver: SolverBundle) -> None:
    """Solve contacts that convex steps leave, with M̂, which the rest of newton needs: convex steps neither converge on
    all contacts nor share the loads of contacts that slip (loads.py).
    """
    work = solver.newton
    if rows.number[ALL_ROWS] == rows.number[LASTING_ROWS]:
        return
    shared = loads_are_open(rows, work, 0) <= 0.0 or rub(rows, work, 0, rows.impulse) <= 0.0
    if shared and rows.report[RESIDUAL] <= _CONVEX * TOLERANCE * largest_speed(step.next, work, 0):
        return
    for a in range(step.next.shape[0]):
        step.next[a] -= work.change[a]
    for n in range(rows.number[ALL_ROWS]):
        rows.impulse[n] = work.first[n]
    mass_matrix(model, data)
    reduce_matrix(model, data, step.diagonal)
    ask(solver.fallback, SOLVE)
