"""Builds the row of an actuator on a tendon, a site, a crank or a ball: its affine force at the end of the step.

J v⁺ + (K (L - h b L̇) - constant) / (h a K + D) + λ / (h (h a K + D)) = 0, as a drive's row (drive_rows.py) along the
moment arms J. The row has no bounds: an actuator beyond its range at the end of the step acts explicitly instead
(equipment/actuators.py).
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.kinds import ACTUATOR_ROW
from artsim.sim.constraints.row import add_entry, add_row, drift_of
from artsim.sim.equipment.actuators import affine_force
from artsim.sim.equipment.affine import row_of_force
from artsim.sim.equipment.arrays import BY_ROW, EquipmentBundle
from artsim.sim.equipment.pack_actuation import length_and_rate
from artsim.sim.equipment.pack_equipment import PackEquipment
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import absolute, where_greater, zero_like
from artsim.sim.run_data.run_records import Inputs, Rows, RunBundle


@njit
def has_actuator_rows(equipment: EquipmentBundle) -> bool:
    """True if there are actuators that may act through a row."""
    for a in range(equipment.model.actuator_linear.shape[0]):
        if equipment.model.actuator_linear[a] == BY_ROW:
            return True
    return False


@njit
def actuator_rows(model: Model, data: Workspace, inputs: Inputs, rows: Rows, equipment: EquipmentBundle) -> None:
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
        n = add_row(rows, ACTUATOR_ROW, a)
        error, rate, bias, cfm = row_of_force(
            h,
            affine_force(equipment, a),
            equipment.data.actuator_length[a],
            equipment.data.actuator_share[a],
            equipment.data.actuator_velocity[a],
        )
        if cfm <= 0.0:  # gains that are accelerations, without any mobility
            continue
        for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
            add_entry(model, data, rows, equipment.model.actuator_dof[entry], equipment.data.actuator_moment[entry])
        rows.error[n], rows.rate[n], rows.cfm[n] = error, rate, cfm
        rows.bias[n] = h * drift_of(data, rows, n) + bias


@njit
def actuator_rows_in_lanes(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: PackEquipment) -> None:
    """Append the rows of a pack's actuators on fixed tendons. A force held at its bound has an idle row."""
    actuators, data = equipment.model, equipment.data
    h = run.inputs.time_step[0]
    for n in range(actuators.number.shape[0]):
        if actuators.has_row[n] == 0:
            continue
        row = add_row(rows, ACTUATOR_ROW, actuators.number[n])
        if actuators.implicit[n] != BY_ROW:
            continue
        length, velocity = length_and_rate(robot, equipment, n, robot.state.qvel)
        zero = zero_like(length)
        free = where_greater(absolute(data.held[n]), zero, zero, zero + 1.0)
        for entry in range(actuators.entry[n], actuators.entry[n + 1]):
            add_entry(robot.model, robot.data, rows, actuators.dof[entry], free * actuators.moment[entry])
        affine = (data.constant[n], data.slope[n], data.resistance[n])
        error, rate, bias, cfm = row_of_force(h, affine, length, data.share[n], velocity)
        rows.error[row], rows.rate[row], rows.cfm[row] = free * error, free * rate, free * cfm
        rows.bias[row] = h * drift_of(robot.data, rows, row) + free * bias
