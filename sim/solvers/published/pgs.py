"""Projected Gauss-Seidel: sweeps over all rows, one after the other in PhysX's order.

If rows contradict each other, the last one wins.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.run_records import ITERATIONS, RESIDUAL, VELOCITY_SWEEPS, Rows, RunBundle
from artsim.sim.run_data.scratch import ASKED_FOR, SOLVE, SolverBundle, SweepWork
from artsim.sim.solvers.published.sweep import prepare_sweeps, sweep, sweep_velocities


@njit
def solve_by_pgs(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """The tasks of pgs (calls.py)."""
    if solver.call.task[ASKED_FOR] == SOLVE:  # a step is solved once, whatever its retries ask for
        pgs(robot.model, robot.data, run, rows, solver.sweeps)


@njit
def pgs(model: Model, data: Workspace, run: RunBundle, rows: Rows, sweeps: SweepWork) -> None:
    """Solve as `newton` does, but from λ = 0, with at most inputs.iterations sweeps.

    rows.report: number of sweeps, the largest change of a row's velocity in the last one [rad/s or m/s]. For the cost
    of a sweep see `sweep`.
    """
    step = run.step
    prepare_sweeps(model, data, rows, step, sweeps)
    change = 0.0
    for _ in range(run.inputs.iterations[0]):
        change = sweep(rows, step.next, sweeps)
        rows.report[ITERATIONS] += 1
        if change == 0.0:
            break  # further sweeps would change nothing
    if run.inputs.sweeping[VELOCITY_SWEEPS] > 0.0:
        for a in range(step.next.shape[0]):
            sweeps.mean[model.independent_dof[a]] = step.next[a]
        change = sweep_velocities(run.inputs, rows, step.next, sweeps, rows.error)
    rows.report[RESIDUAL] = change
