"""Computes, before the first step, the lengths and mobilities that are defined in the pose of the file."""

from __future__ import annotations

from artsim.sim.articulation.dynamics import composites, factorise, mass_matrix, solve
from artsim.sim.articulation.kinematics import kinematics, velocities, world_inertia
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.coupling_rows import row_mobilities
from artsim.sim.constraints.loop_rows import loop_mobilities
from artsim.sim.constraints.tendon_rows import tendon_mobilities
from artsim.sim.equipment.arrays import CONSTANT, MUSCLE, PER_LENGTH, PER_VELOCITY, PID, EquipmentBundle
from artsim.sim.equipment.tendons import add_tendon_inertia, has_inertia, rest_lengths, tendon_paths
from artsim.sim.equipment.transmissions import transmissions
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.run_records import Step


@njit
def calibrate(robot: RobotBundle, equipment: EquipmentBundle, step: Step, soft: bool) -> None:
    """Store in equipment.data the lengths and mobilities that are defined in the pose of the file. Runs once. `soft`:
    limits or dry friction are.

    Mobilities are MuJoCo's: of the tree without couplings but with the inertia of tendons. The M of these mobilities is
    left factorised in data.mass_matrix and equipment.data.row2 until the step computes its own.
    """
    model, data = robot.model, robot.data
    if equipment.data.calibrated[0] == 1.0:
        return
    equipment.data.calibrated[0] = 1.0
    q = step.stage_qpos  # a constant array would compile everything below a second time
    for k in range(step.velocity.shape[0]):
        step.velocity[k] = 0.0
    rest_lengths(robot, q, step.velocity, equipment)
    for n in range(q.shape[0]):
        q[n] = equipment.model.reference[n]
    kinematics(model, q, data)
    world_inertia(model, data)
    velocities(model, step.velocity, data)
    tendon_paths(robot, q, step.velocity, equipment)
    transmissions(robot, q, step.velocity, equipment)
    for t in range(equipment.data.tendon_length.shape[0]):
        equipment.data.tendon_length0[t] = equipment.data.tendon_length[t]
    for a in range(equipment.model.actuator_target.shape[0]):
        equipment.data.actuator_damping[a] = -equipment.model.bias_parameters[a, PER_VELOCITY]
    tied = equipment.model.tendon_lower.shape[0] > 0 and soft
    if tied or _needs_mobilities(model, equipment):  # otherwise M may be singular
        composites(model, data)
        mass_matrix(model, data)
        add_tendon_inertia(model, data, equipment)
        factorise(data.mass_matrix, equipment.data.row2, model.dof_parent, model.dof_run)
        _calibrate_actuators(model, data, equipment)
        tendon_mobilities(model, data, equipment)
        loop_mobilities(model, data, step, equipment)
        if has_inertia(equipment):
            row_mobilities(model, data, step, equipment)


@njit
def _needs_mobilities(model: Model, equipment: EquipmentBundle) -> bool:
    """True if a parameter of the equipment is given relative to the robot's inertia."""
    for a in range(equipment.model.actuator_target.shape[0]):
        if (
            equipment.model.actuator_gain[a] == MUSCLE
            or equipment.model.actuator_bias[a] == MUSCLE
            or equipment.data.actuator_damping[a] < 0.0
        ):
            return True
    found: bool = equipment.model.loop_kind.shape[0] + equipment.model.tendon_row_follower.shape[0] > 0
    return found or (has_inertia(equipment) and model.row_follower.shape[0] > 0)


@njit
def _calibrate_actuators(model: Model, data: Workspace, equipment: EquipmentBundle) -> None:
    """Set equipment.data.acceleration0 = |M⁻¹ J|, and convert the damping ratios of position servos to dampings 2 ζ
    √(k_p m), where m = 1 / J M⁻¹ Jᵀ.

    For a servo of a rotation, J M⁻¹ Jᵀ is the mean over its three axes.
    """
    y = equipment.data.row
    for a in range(equipment.model.actuator_target.shape[0]):
        for k in range(y.shape[0]):
            y[k] = 0.0
        for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
            y[equipment.model.actuator_dof[entry]] = equipment.data.actuator_moment[entry]
        solve(data.mass_matrix, equipment.data.row2, model.dof_parent, model.dof_run, y)
        square = 0.0
        for k in range(y.shape[0]):
            square += y[k] * y[k]
        equipment.data.acceleration0[a] = square**0.5
        mobility = 0.0
        for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
            mobility += equipment.data.actuator_moment[entry] * y[equipment.model.actuator_dof[entry]]
        equipment.data.actuator_share[a] = mobility
    for a in range(equipment.model.actuator_target.shape[0]):
        mobility = equipment.data.actuator_share[a]
        if equipment.model.actuator_axis[a] >= 0:
            n = a - equipment.model.actuator_axis[a]
            mobility = (
                equipment.data.actuator_share[n]
                + equipment.data.actuator_share[n + 1]
                + equipment.data.actuator_share[n + 2]
            ) / 3.0
        equipment.data.actuator_damping[a] = _servo_damping(equipment, a, mobility)


@njit
def _servo_damping(equipment: EquipmentBundle, a: int, mobility: float) -> float:
    """The velocity coefficient of an affine bias; a positive coefficient of a servo is its damping ratio."""
    rate = equipment.model.bias_parameters[a, PER_VELOCITY]
    kp = -equipment.model.bias_parameters[a, PER_LENGTH]
    if rate <= 0.0 or (equipment.model.gain_parameters[a, CONSTANT] != kp and equipment.model.actuator_gain[a] != PID):
        return -rate
    if mobility <= 0.0 or kp <= 0.0:
        return 0.0
    return 2.0 * rate * (kp / mobility) ** 0.5
