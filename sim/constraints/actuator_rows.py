"""Builds the row of an actuator on a tendon, a site, a crank or a ball: its affine force at the end of the step.

J v⁺ + (K (L - h b L̇) - constant) / (h a K + D) + λ / (h (h a K + D)) = 0, as a drive's row (drive_rows.py) along the
moment arms J. The row has no bounds: an actuator beyond its range at the end of the step acts explicitly instead
(equipment/actuators.py).
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.kinds import ACTUATOR_ROW
from artsim.sim.constraints.row import add_entry, add_row, drift_of
from artsim.sim.equipment.actuation import foreseen
from artsim.sim.equipment.actuators import affine_force
from artsim.sim.equipment.arrays import BY_ROW
from artsim.sim.foundation.jit import njit


@njit
def has_actuator_rows(equipment: Any) -> bool:
    """Whether there are actuators that may act through a row."""
    for a in range(equipment.model.actuator_linear.shape[0]):
        if equipment.model.actuator_linear[a] == BY_ROW:
            return True
    return False


@njit
def actuator_rows(model: Any, data: Any, inputs: Any, rows: Any, equipment: Any) -> None:
    """Append the rows of this step's implicit actuators that do not act on a single dof."""
    h = inputs.time_step[0]
    for a in range(equipment.model.actuator_linear.shape[0]):
        if equipment.model.actuator_linear[a] != BY_ROW:
            continue
        if (
            equipment.data.actuator_implicit[a] != BY_ROW
        ):  # explicit in this step: an idle row keeps the others' numbers
            add_row(rows, ACTUATOR_ROW, a)
            continue
        constant, stiffness, damping = affine_force(equipment, a)
        share = equipment.data.actuator_share[a]
        total = h * (1.0 - 0.75 * share) * stiffness + damping
        n = add_row(rows, ACTUATOR_ROW, a)
        if total <= 0.0:  # gains that are accelerations, where nothing can move
            continue
        for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
            add_entry(model, data, rows, equipment.model.actuator_dof[entry], equipment.data.actuator_moment[entry])
        force = constant - stiffness * (
            equipment.data.actuator_length[a] + h * foreseen(share, equipment.data.actuator_velocity[a], 0.0)
        )
        if stiffness > 0.0:
            rows.error[n] = -force / stiffness
            rows.rate[n] = stiffness / total
        rows.bias[n] = h * drift_of(data, rows, n) - force / total
        rows.cfm[n] = 1.0 / (h * total)
