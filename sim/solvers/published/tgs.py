"""Temporal Gauss-Seidel, as in PhysX: every sweep is a sub-step, after which the positions move on.

Notes on mimic joints, "PGS and TGS Implementation": the biases follow the positions; test impulses and denominators
stay. An error C is corrected at C / Δt (eq. 5), with Δt the time step or the sub-step; an open gap may close within the
sub-step. A spring and damper (a drive, a compliant mimic joint) gives each sub-step an impulse of its own by eq. 21
with the sub-step for dt; bounds hold for the sum. Rows with MJCF compliance keep their law, which is one of the whole
step.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    BY_SUB_STEP,
    ITERATIONS,
    RESIDUAL,
    VELOCITY_SWEEPS,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import ASKED_FOR, SOLVE, SolverBundle, SweepWork
from artsim.sim.solvers.published.sweep import is_spring, prepare_sweeps, sweep, sweep_velocities


@njit
def solve_by_tgs(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """The tasks of tgs (calls.py)."""
    if solver.call.task[ASKED_FOR] == SOLVE:  # a step is solved once, whatever its retries ask for
        tgs(robot.model, robot.data, run, rows, solver.sweeps)


@njit
def tgs(model: Model, data: Workspace, run: RunBundle, rows: Rows, sweeps: SweepWork) -> None:
    """Solve as `pgs` does; sweeps.mean (nv,) gets the independent dofs' mean velocity [rad/s or m/s], by which
    positions move.

    rows.bias, rows.cfm and rows.rate are overwritten. The impulses of springs in the last sub-step count as change in
    rows.report, even at rest.
    """
    inputs, step = run.inputs, run.step
    prepare_sweeps(model, data, rows, step, sweeps)
    h = inputs.time_step[0] / inputs.iterations[0]
    _start(inputs.time_step[0], h, rows, sweeps)
    for a in range(step.next.shape[0]):
        sweeps.mean[model.independent_dof[a]] = 0.0
    change = 0.0
    for _ in range(inputs.iterations[0]):
        _set_biases(h, h / inputs.time_step[0] if inputs.sweeping[BY_SUB_STEP] > 0.0 else 1.0, rows, sweeps)
        change = sweep(rows, step.next, sweeps)
        _move(h, rows, step.next, sweeps)
        for a in range(step.next.shape[0]):
            sweeps.mean[model.independent_dof[a]] += step.next[a] / inputs.iterations[0]
    rows.report[ITERATIONS] += inputs.iterations[0]
    if inputs.sweeping[VELOCITY_SWEEPS] > 0.0:
        change = sweep_velocities(inputs, rows, step.next, sweeps, sweeps.corrected)
    rows.report[RESIDUAL] = change


@njit
def _start(step: float, h: float, rows: Rows, sweeps: SweepWork) -> None:
    """Set sweeps.error, sweeps.rest (the bias without the error's part), and rate and cfm of springs for sub-steps of
    h [s]."""
    for n in range(rows.number[ALL_ROWS]):
        sweeps.error[n] = rows.error[n]
        sweeps.rest[n] = rows.bias[n] - rows.rate[n] * rows.error[n]
        if is_spring(rows, n):
            stiffness = rows.rate[n] / (step * rows.cfm[n])
            damping = 1.0 / (step * rows.cfm[n]) - step * stiffness
            total = h * stiffness + max(damping, 0.0)
            rows.rate[n] = stiffness / total
            rows.cfm[n] = 1.0 / (h * total)


@njit
def _set_biases(h: float, share: float, rows: Rows, sweeps: SweepWork) -> None:
    """Set the biases at the positions of this sub-step; errors are corrected over `share` of the step."""
    for n in range(rows.number[ALL_ROWS]):
        rate = rows.rate[n]
        spring = is_spring(rows, n)
        sweeps.corrected[n] = sweeps.error[n]
        if rows.lower[n] == 0.0 and rate > 0.0 and sweeps.error[n] >= 0.0:
            rate = 1.0 / h  # of an open limit or contact
        elif not spring:
            rate = rate / share
            sweeps.corrected[n] = sweeps.error[n] / share  # times rows.rate
        rows.bias[n] = rate * sweeps.error[n] + sweeps.rest[n]
        if spring:
            rows.bias[n] -= rows.cfm[n] * rows.impulse[n]  # impulses of earlier sub-steps do not count


@njit
def _move(h: float, rows: Rows, u: Reals1, sweeps: SweepWork) -> None:
    """Advance the errors by the sub-step."""
    for n in range(rows.number[ALL_ROWS]):
        if rows.rate[n] > 0.0:
            velocity = sweeps.rest[n]
            for e in range(rows.start[n], rows.stop[n]):
                velocity += rows.value[e] * u[rows.column[e]]
            sweeps.error[n] += h * velocity
