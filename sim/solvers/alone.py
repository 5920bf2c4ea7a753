"""Runs newton as an entry of its own, compiled once for all variants of the step, which differ outside the rows."""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import GO_ON, HELPS, NewtonWork, SolverBundle
from artsim.sim.solvers.newton import newton, newton_again, take_islands


@njit
def solve_alone(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle) -> None:
    """step.next (nu,) gets the velocities at the end of the step [rad/s or m/s], rows.impulse (rows,) the impulses that
    cause them [N s or N m s]; see `newton`. solver.newton.again: whether to go on from where the last call ended.

    Over the scratch of a thread that helps, it takes islands that another thread has begun.
    """
    _solve(robot, rows, step, solver, True)


@njit
def solve_without_contacts(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle) -> None:
    """The same for runs without contacts, a quarter of the code."""
    _solve(robot, rows, step, solver, None)


@njit
def _solve(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, contacts: bool | None) -> None:
    if solver.newton.sizes[HELPS] == 1:
        take_islands(robot, rows, step, solver, contacts)
    elif solver.newton.again[0] == GO_ON:
        newton_again(robot, rows, step, solver, contacts)
    else:
        newton(robot, rows, step, solver, contacts)


@inlined
def run_newton(work: NewtonWork, again: int) -> None:
    """Run that entry for the step's rows; `again`: BEGIN, or GO_ON with another bias."""
    work.again[0] = again
    run_entry(work.entry)
