"""Builds the row of a drive: the spring and damper that M̂ would hold, with the impulse bounded by the drive's limit.

Drives are rows in the sweeping solvers, and where they do not settle at their bounds (equipment/drives.py).

J v⁺ + (K (q - h b v - target) - D target_velocity) / (h a K + D) + λ / (h (h a K + D)) = 0: notes on mimic joints, eq.
21 to 23, with the weights a and b of actuation.py.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.state import RobotBundle, State
from artsim.sim.constraints.kinds import DRIVE_ROW
from artsim.sim.constraints.row import single_row
from artsim.sim.equipment.actuation import drive_force, foreseen, part_of_matrix
from artsim.sim.equipment.bounds import SLACK
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import divisor, largest
from artsim.sim.run_data.registry import SWEEPING
from artsim.sim.run_data.run_records import CONTROL_ROW, LASTING_ROWS, PLACES, Inputs, Rows, RunBundle, Step


@njit
def drives_need_rows(inputs: Inputs) -> bool:
    """True if a drive is a row in every step, or has gains that need the mass matrix."""
    for k in range(inputs.drive_stiffness.shape[0]):
        if inputs.drive_acceleration[k] == 1:
            return True
        if SWEEPING[inputs.solver[0]] and any_positive(inputs.drive_stiffness[k] + inputs.drive_damping[k]):
            return True
    return False


@njit
def note_implicit_drives(inputs: Inputs, rows: Rows) -> None:
    """Set rows.implicit (nv,), 1 for drives that are part of M̂ but where they do not settle; in both widths."""
    for k in range(rows.implicit.shape[0]):
        driven = any_positive(inputs.drive_stiffness[k] + inputs.drive_damping[k])
        rows.implicit[k] = 1 if driven and not SWEEPING[inputs.solver[0]] else 0


@njit
def drive_row(robot: RobotBundle, run: RunBundle, rows: Rows, k: int) -> None:
    """Append the row of dof k's drive, if it has one that is not part of M̂; in both widths. The row has no effect in
    lanes where the drive is part of M̂."""
    data = robot.data
    inputs, step = run.inputs, run.step
    h = inputs.time_step[0]
    stiff = step.stiffness[k] * (1.0 - 0.75 * step.share[k])
    part, zero = part_of_matrix(run, rows, k), zero_like(stiff)
    total = where_greater(part, zero, zero, h * stiff + step.damping[k])
    if not any_positive(total):
        driven = any_positive(inputs.drive_stiffness[k] + inputs.drive_damping[k])
        if driven and (inputs.drive_limit[k] < math.inf or not rows.implicit[k]):
            rows.number[PLACES] += 1
        return
    n = single_row(robot.model, data, rows, DRIVE_ROW, k, 1.0)
    behind = step.place[k] + h * foreseen(step.share[k], robot.state.qvel[k], 0.0)
    force = drive_force(run, step.counters[CONTROL_ROW], k, behind, 0.0)
    acts = where_greater(total, zero, zero + min(h * inputs.drive_limit[k], 1e308), zero)
    total = divisor(total)
    rows.error[n] = where_greater(step.stiffness[k], zero, -force / divisor(step.stiffness[k]), zero)
    rows.rate[n] = step.stiffness[k] / total
    rows.bias[n] = h * data.drift[k] - force / total
    rows.cfm[n] = 1.0 / (h * total)
    rows.lower[n] = -acts
    rows.upper[n] = acts


@njit
def make_drives_rows(run: RunBundle, chosen: Real) -> None:
    """Make rows of the drives that have a largest force where `chosen` is 1, for the rest of the step."""
    step, zero = run.step, zero_like(chosen)
    step.drive_rows[0] = largest(step.drive_rows[0], chosen)
    for k in range(step.drive_held.shape[0]):
        if run.inputs.drive_limit[k] < math.inf:
            step.drive_held[k] = where_greater(chosen, zero, zero, step.drive_held[k])


@njit
def keep_drives(state: State, step: Step, rows: Rows) -> None:
    """Note the drives that are at their largest forces at the end of the step."""
    for k in range(step.drive_held.shape[0]):
        state.drive_held[k] = step.drive_held[k]
    by_row = step.drive_rows[0]
    if any_positive(by_row):
        for n in range(rows.number[LASTING_ROWS]):
            if rows.kind[n] == DRIVE_ROW:
                k, impulse, most = rows.dof[n], rows.impulse[n], (1.0 - SLACK) * rows.upper[n]
                zero = zero_like(impulse)
                forwards = where_greater(impulse, most, zero + 1.0, zero)
                side = where_greater(-most, impulse, zero - 1.0, forwards)
                state.drive_held[k] = where_greater(by_row, zero, side, state.drive_held[k])
