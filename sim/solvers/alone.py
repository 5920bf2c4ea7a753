"""The entry of newton (calls.py), compiled once for all variants of the step, which differ outside the rows."""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.run_records import Rows, RunBundle
from artsim.sim.run_data.scratch import ASKED_FOR, HELPS, SOLVE_AGAIN, SolverBundle
from artsim.sim.solvers.newton import newton, newton_again, take_islands


@njit
def solve_alone(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """step.next (nu,) gets the velocities at the end of the step [rad/s or m/s], rows.impulse (rows,) the impulses that
    cause them [N s or N m s]; see `newton`.

    With the scratch of a helping thread, the entry takes islands that another thread has begun.
    """
    _solve(robot, run, rows, solver, True)


@njit
def solve_without_contacts(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """`solve_alone` for runs without contacts: a quarter of the code."""
    _solve(robot, run, rows, solver, None)


@njit
def _solve(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle, contacts: bool | None) -> None:
    step = run.step
    if solver.newton.sizes[HELPS] == 1:
        take_islands(robot, rows, step, solver, contacts)
    elif solver.call.task[ASKED_FOR] == SOLVE_AGAIN:
        newton_again(robot, rows, step, solver, contacts)
    else:
        newton(robot, rows, step, solver, contacts)
