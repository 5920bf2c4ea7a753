"""Builds the row of a drive: the spring and damper that M̂ would hold, with the impulse bounded by the drive's limit.

J v⁺ + (K (q - h b v - target) - D target_velocity) / (h a K + D) + λ / (h (h a K + D)) = 0: notes on mimic joints, eq.
21 to 23, with the weights a and b of actuation.py.
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.kinds import DRIVE_ROW
from artsim.sim.constraints.row import single_row
from artsim.sim.equipment.actuation import drive_force, foreseen
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.registry import SWEEPING
from artsim.sim.run_data.run_records import CONTROL_ROW, PLACES, Inputs, Rows, RunBundle


@njit
def drives_need_rows(inputs: Inputs) -> bool:
    """True if a drive is a row in every step, or has gains that need the mass matrix."""
    for k in range(inputs.drive_stiffness.shape[0]):
        if inputs.drive_acceleration[k] == 1:
            return True
        if SWEEPING[inputs.solver[0]] and inputs.drive_stiffness[k] + inputs.drive_damping[k] > 0.0:
            return True
    return False


@njit
def drive_row(robot: RobotBundle, run: RunBundle, rows: Rows, k: int) -> None:
    """Append the row of dof k's drive, if it has one that is not part of M̂."""
    data = robot.data
    inputs, step = run.inputs, run.step
    h = inputs.time_step[0]
    stiff = step.stiffness[k] * (1.0 - 0.75 * step.share[k])
    total = h * stiff + step.damping[k]
    if rows.implicit[k] or total <= 0.0:
        if not rows.implicit[k] and inputs.drive_stiffness[k] + inputs.drive_damping[k] > 0.0:
            rows.number[PLACES] += 1
        return
    n = single_row(robot.model, data, rows, DRIVE_ROW, k, 1.0)
    behind = step.place[k] + h * foreseen(step.share[k], robot.state.qvel[k], 0.0)
    force = drive_force(run, step.counters[CONTROL_ROW], k, behind, 0.0)
    if step.stiffness[k] > 0.0:
        rows.error[n] = -force / step.stiffness[k]
        rows.rate[n] = step.stiffness[k] / total
    rows.bias[n] = h * data.drift[k] - force / total
    rows.cfm[n] = 1.0 / (h * total)
    rows.lower[n] = max(-h * inputs.drive_limit[k], -1e308)
    rows.upper[n] = min(h * inputs.drive_limit[k], 1e308)
