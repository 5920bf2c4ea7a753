"""Calls the solver of this step's rows, selected by its scratch and its number."""

from __future__ import annotations

from artsim.sim.articulation.coupling import reduce_matrix
from artsim.sim.articulation.dynamics import mass_matrix
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.registry import BLOCK_GS, JACOBI, PGS, TGS
from artsim.sim.run_data.run_records import ALL_ROWS, LASTING_ROWS, RESIDUAL, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import BEGIN, GO_ON, NewtonWork, SolverBundle
from artsim.sim.solvers.alone import run_newton
from artsim.sim.solvers.block_gs import block_gs
from artsim.sim.solvers.brute import brute
from artsim.sim.solvers.jacobi import jacobi
from artsim.sim.solvers.loads import loads_are_open, rub
from artsim.sim.solvers.newton import newton, newton_again
from artsim.sim.solvers.pgs import pgs
from artsim.sim.solvers.tgs import tgs
from artsim.sim.solvers.tolerance import TOLERANCE, largest_speed

_CONVEX = 1e5  # tolerances: a larger residual leaves contacts to more than convex steps


@njit
def solve_rows(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """Solve for the impulses of the rows and step.next (nu,), by the solver whose scratch is present; see `newton`."""
    model, data = robot.model, robot.data
    inputs, step = run.inputs, run.step
    if solver.newton is not None:
        if solver.tree is None and solver.graph is None:
            run_newton(solver.newton, BEGIN)
        else:
            newton(robot, rows, step, solver, None)
            _solve_with_mass_matrix(model, data, rows, step, solver.newton)
    if solver.sweeps is not None:
        if inputs.solver[0] == PGS:
            pgs(model, data, run, rows, solver.sweeps)
        elif inputs.solver[0] == TGS:
            tgs(model, data, run, rows, solver.sweeps)
        elif inputs.solver[0] == BLOCK_GS:
            block_gs(model, data, run, rows, solver.sweeps)
        elif inputs.solver[0] == JACOBI:
            jacobi(model, data, run, rows, solver.sweeps)
    if solver.dense is not None:
        brute(robot, rows, step, solver.dense, 0)


@njit
def solve_again(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle) -> None:
    """Continue with another bias; see `newton_again`."""
    if solver.newton is not None:
        if solver.tree is None and solver.graph is None:
            run_newton(solver.newton, GO_ON)
        else:
            newton_again(robot, rows, step, solver, None)
            _solve_with_mass_matrix(robot.model, robot.data, rows, step, solver.newton)
    if solver.dense is not None:
        brute(robot, rows, step, solver.dense, 1)


@njit
def _solve_with_mass_matrix(model: Model, data: Workspace, rows: Rows, step: Step, work: NewtonWork) -> None:
    """Solve contacts that propagation and direct leave: convex steps do not converge on all of them, nor share the
    loads of contacts that slip (loads.py), and the rest of newton needs M̂.
    """
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
    run_newton(work, BEGIN)
