"""Jacobi iteration: the impulses of all rows from the velocities at hand, then the velocities that they lead to.

Sakalauskas, Recoil Notes, 2021, 3.1.1, with the rows of `pgs`. Rows that share bodies correct one error several times
over, so that plain Jacobi diverges where these rows outweigh a row's own mobility. Two remedies:

- relaxation: a row takes a share ω of its turn;
- mass splitting (Tonge, Benevolenski, Voroshilov 2012; the "body shattering" of the notes' plan): a body that n rows
  share is n shards with an n-th of the mass each, so that a row sees n times its mobility J M̂⁻¹ Jᵀ. In joint
  coordinates the rows that share with a row are those that its impulse moves. Of D⁻¹ (J M̂⁻¹ Jᵀ) with D = n diag(J M̂⁻¹
  Jᵀ) no eigenvalue exceeds 1 (Gershgorin, with |A_ij| ≤ √(A_ii A_jj)), so that the iteration converges.

Solutions are those of `pgs`, since both remedies change nothing where rows have no error.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.run_data.run_records import ALL_ROWS, ITERATIONS, RELAXATION, RESIDUAL, SHARDS, Rows, RunBundle
from artsim.sim.run_data.scratch import ASKED_FOR, SOLVE, SolverBundle, SweepWork
from artsim.sim.solvers.published.sweep import delassus_of, prepare_sweeps, push, row_velocity

_UNBOUNDED = 1e308


@njit
def solve_by_jacobi(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """The tasks of jacobi (calls.py)."""
    if solver.call.task[ASKED_FOR] == SOLVE:  # a step is solved once, whatever its retries ask for
        jacobi(robot.model, robot.data, run, rows, solver.sweeps)


@njit
def jacobi(model: Model, data: Workspace, run: RunBundle, rows: Rows, sweeps: SweepWork) -> None:
    """Solve as `pgs` does, with at most inputs.iterations iterations. O(rows (entries + nu)) each."""
    step, relaxation = run.step, run.inputs.sweeping[RELAXATION]
    prepare_sweeps(model, data, rows, step, sweeps)
    if run.inputs.sweeping[SHARDS] > 0.0:
        split_masses(rows, sweeps)
    change = 0.0
    for _ in range(run.inputs.iterations[0]):
        _find_impulses(rows, step.next, sweeps, relaxation)
        change = _take_impulses(rows, step.next, sweeps)
        rows.report[ITERATIONS] += 1
        if change == 0.0:
            break
    rows.report[RESIDUAL] = change


@njit
def split_masses(rows: Rows, sweeps: SweepWork) -> None:
    """Multiply the mobility of every row by the number of rows that its impulse moves. O(rows² entries)."""
    for n in range(rows.number[ALL_ROWS]):
        sweeps.rest[n] = 0.0
        for other in range(rows.number[ALL_ROWS]):
            if delassus_of(rows, sweeps, other, n) != 0.0:
                sweeps.rest[n] += 1.0
    for n in range(rows.number[ALL_ROWS]):
        sweeps.delassus[n] *= max(1.0, sweeps.rest[n])


@njit
def _find_impulses(rows: Rows, u: Reals1, sweeps: SweepWork, relaxation: float) -> None:
    """Set sweeps.wanted to all impulses after this iteration, from the velocities u before it."""
    for n in range(rows.number[ALL_ROWS]):
        if rows.cone[n] == 0:
            sweeps.wanted[n] = min(max(_turned(rows, u, sweeps, n, relaxation), rows.lower[n]), rows.upper[n])
        elif rows.cone[n] > 0:
            sweeps.wanted[n] = min(max(_turned(rows, u, sweeps, n, relaxation), 0.0), _UNBOUNDED)
            _find_friction(rows, u, sweeps, n, relaxation)


@njit
def _find_friction(rows: Rows, u: Reals1, sweeps: SweepWork, n: int, relaxation: float) -> None:
    """The tangential impulses of the cone at row n, within the disc that its new normal impulse allows."""
    square = 0.0
    for row in range(n + 1, n + rows.cone[n]):
        sweeps.wanted[row] = _turned(rows, u, sweeps, row, relaxation)
        square += sweeps.wanted[row] * sweeps.wanted[row]
    most = rows.slope[n] * sweeps.wanted[n]
    share = most / math.sqrt(square) if square > most * most else 1.0
    for row in range(n + 1, n + rows.cone[n]):
        sweeps.wanted[row] *= share


@njit
def _turned(rows: Rows, u: Reals1, sweeps: SweepWork, n: int, relaxation: float) -> float:
    """The impulse of row n after its turn, without bounds."""
    denominator = sweeps.delassus[n] + rows.cfm[n]
    if denominator <= 0.0:
        return rows.impulse[n]  # the row has no mobility
    return rows.impulse[n] - relaxation * row_velocity(rows, u, n) / denominator


@njit
def _take_impulses(rows: Rows, u: Reals1, sweeps: SweepWork) -> float:
    """Change all impulses to sweeps.wanted and the velocities with them; return the largest change of a row's velocity
    by its own impulse [rad/s or m/s]."""
    change = 0.0
    for n in range(rows.number[ALL_ROWS]):
        delta = sweeps.wanted[n] - rows.impulse[n]
        if delta != 0.0:
            rows.impulse[n] = sweeps.wanted[n]
            push(u, sweeps, n, delta)
            change = max(change, abs(delta) * (sweeps.delassus[n] + rows.cfm[n]))
    return change
