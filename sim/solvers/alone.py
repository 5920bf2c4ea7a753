"""newton as an entry of its own: compiled once, whatever a step has beside its rows."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.recordtype import run_entry
from artsim.sim.solvers.newton import newton, newton_again


@njit
def solve_alone(robot: Any, rows: Any, step: Any, solver: Any) -> None:
    """step.next (nu,) becomes the velocities at the end of the step, rows.impulse what makes them; see `newton`."""
    if solver.newton.again[0] == 1:
        newton_again(robot, rows, step.free, step.next, solver)
    else:
        newton(robot, None, rows, step.free, step.next, solver)


@inlined
def run_newton(work: Any, again: Any) -> None:
    """Run that entry."""
    work.again[0] = again
    run_entry(work.entry)
