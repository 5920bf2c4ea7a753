"""Builds the row of an actuator on a tendon, a site, a crank or a ball: its affine force at the end of the step.

J v⁺ + (K (L - h b L̇) - constant) / (h a K + D) + λ / (h (h a K + D)) = 0, as a drive's row (drive_rows.py) along the
moment arms J. The row has no bounds: an actuator beyond its range at the end of the step is held there as a constant
force instead (equipment/implicit_actuators.py), and its row is idle.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.constraints.kinds import ACTUATOR_ROW
from artsim.sim.constraints.row import add_entry, add_row, drift_of
from artsim.sim.equipment.affine import row_of_force
from artsim.sim.equipment.arrays import BY_ROW, EquipmentBundle
from artsim.sim.equipment.implicit_actuators import affine_force
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import absolute, any_positive, surely_zero, where_greater, zero_like
from artsim.sim.run_data.run_records import Inputs, Rows


@njit
def has_actuator_rows(equipment: EquipmentBundle) -> bool:
    """True if there are actuators that may act through a row."""
    for a in range(equipment.model.actuator_linear.shape[0]):
        if equipment.model.actuator_linear[a] == BY_ROW:
            return True
    return False


@njit
def actuator_rows(model: Model, data: Workspace, inputs: Inputs, rows: Rows, equipment: EquipmentBundle) -> None:
    """Append the rows of actuators that do not act on a single dof, in both widths; those of forces that are constant
    in this step are idle, and keep the others' numbers."""
    h, e = inputs.time_step[0], equipment.data
    for a in range(equipment.model.actuator_linear.shape[0]):
        if equipment.model.actuator_linear[a] != BY_ROW:
            continue
        n = add_row(rows, ACTUATOR_ROW, a)
        affine = affine_force(equipment, a)
        error, rate, bias, cfm = row_of_force(
            h, affine, e.actuator_length[a], e.actuator_share[a], e.actuator_velocity[a]
        )
        free = e.acts[a] * (1.0 - absolute(e.held[a]))
        free = where_greater(cfm, zero_like(free), free, zero_like(free))  # not without any mobility (loop_drives.py)
        if surely_zero(free) or not any_positive(e.acts[a]):
            continue
        for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
            add_entry(model, data, rows, equipment.model.actuator_dof[entry], free * e.actuator_moment[entry])
        rows.error[n], rows.rate[n], rows.cfm[n] = free * error, free * rate, free * cfm
        rows.bias[n] = h * drift_of(data, rows, n) + free * bias
