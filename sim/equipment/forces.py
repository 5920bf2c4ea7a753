"""What the equipment does at a configuration, in the order in which its parts need each other."""

from __future__ import annotations

from typing import Any

from artsim.sim.actuation import weigh_springs
from artsim.sim.constraints.coupling import row_mobilities
from artsim.sim.constraints.loop import loop_mobilities
from artsim.sim.constraints.tendon import tendon_mobilities
from artsim.sim.dynamics import composites, factorise, mass_matrix, solve
from artsim.sim.equipment.actuators import actuator_forces, bound_totals, guess_bounds, weigh_actuators
from artsim.sim.equipment.passive import passive_extra
from artsim.sim.equipment.record import MUSCLE, PID
from artsim.sim.equipment.tendon_forces import tendon_forces, weigh_tendons
from artsim.sim.equipment.tendons import add_tendon_inertia, has_inertia, rest_lengths, tendon_paths
from artsim.sim.equipment.transmissions import transmissions
from artsim.sim.jit import njit
from artsim.sim.kinematics import kinematics, velocities, world_inertia


@njit
def calibrate(model: Any, data: Any, equipment: Any, equipment_data: Any, step: Any) -> None:
    """Lengths and mobilities that are defined in the pose of the file, into equipment_data. Once.

    Mobilities are MuJoCo's, of the tree without couplings but with the tendons' inertia. That M, factorised, stands in
    data.mass_matrix and equipment_data.row2 until the step makes its own.
    """
    if equipment_data.calibrated[0] == 1.0:
        return
    equipment_data.calibrated[0] = 1.0
    q = step.stage_qpos  # a constant array would have all that follows compiled a second time
    for k in range(step.velocity.shape[0]):
        step.velocity[k] = 0.0
    rest_lengths(model, q, step.velocity, data, equipment, equipment_data)
    for n in range(q.shape[0]):
        q[n] = equipment.reference[n]
    kinematics(model, q, data)
    world_inertia(model, data)
    velocities(model, step.velocity, data)
    tendon_paths(model, q, step.velocity, data, equipment, equipment_data)
    transmissions(model, q, step.velocity, data, equipment, equipment_data)
    for t in range(equipment_data.tendon_length.shape[0]):
        equipment_data.tendon_length0[t] = equipment_data.tendon_length[t]
    for a in range(equipment.actuator_target.shape[0]):
        equipment_data.actuator_damping[a] = -equipment.bias_parameters[a, 2]
    if _needs_mobilities(model, equipment, equipment_data):  # else M may be singular
        composites(model, data)
        mass_matrix(model, data)
        add_tendon_inertia(model, data, equipment, equipment_data)
        factorise(data.mass_matrix, equipment_data.row2, model.dof_parent, model.dof_run)
        _calibrate_actuators(model, data, equipment, equipment_data)
        tendon_mobilities(model, data, equipment, equipment_data)
        loop_mobilities(model, data, step, equipment, equipment_data)
        if has_inertia(equipment):
            row_mobilities(model, data, step, equipment, equipment_data)


@njit
def _needs_mobilities(model: Any, equipment: Any, equipment_data: Any) -> bool:
    """True when something is given relative to the robot's inertia."""
    for a in range(equipment.actuator_target.shape[0]):
        if (
            equipment.actuator_gain[a] == MUSCLE
            or equipment.actuator_bias[a] == MUSCLE
            or equipment_data.actuator_damping[a] < 0.0
        ):
            return True
    found: bool = equipment.loop_kind.shape[0] + equipment.tendon_row_follower.shape[0] > 0
    return found or (has_inertia(equipment) and model.row_follower.shape[0] > 0)


@njit
def _calibrate_actuators(model: Any, data: Any, equipment: Any, equipment_data: Any) -> None:
    """equipment_data.acceleration0 = |M⁻¹ J|, and damping ratios as dampings 2 ζ √(k_p m), m = 1 / J M⁻¹ Jᵀ (position
    servos).

    Of the servo of a rotation J M⁻¹ Jᵀ is the mean of its three.
    """
    y = equipment_data.row
    for a in range(equipment.actuator_target.shape[0]):
        for k in range(y.shape[0]):
            y[k] = 0.0
        for entry in range(equipment.actuator_entry[a], equipment.actuator_entry[a + 1]):
            y[equipment.actuator_dof[entry]] = equipment_data.actuator_moment[entry]
        solve(data.mass_matrix, equipment_data.row2, model.dof_parent, model.dof_run, y)
        square = 0.0
        for k in range(y.shape[0]):
            square += y[k] * y[k]
        equipment_data.acceleration0[a] = square**0.5
        mobility = 0.0
        for entry in range(equipment.actuator_entry[a], equipment.actuator_entry[a + 1]):
            mobility += equipment_data.actuator_moment[entry] * y[equipment.actuator_dof[entry]]
        equipment_data.actuator_share[a] = mobility
    for a in range(equipment.actuator_target.shape[0]):
        mobility = equipment_data.actuator_share[a]
        if equipment.actuator_axis[a] >= 0:
            n = a - equipment.actuator_axis[a]
            mobility = (
                equipment_data.actuator_share[n]
                + equipment_data.actuator_share[n + 1]
                + equipment_data.actuator_share[n + 2]
            ) / 3.0
        equipment_data.actuator_damping[a] = _servo_damping(equipment, a, mobility)


@njit
def _servo_damping(equipment: Any, a: Any, mobility: Any) -> Any:
    """The velocity coefficient of an affine bias; a positive one of a servo is its damping ratio."""
    rate = equipment.bias_parameters[a, 2]
    kp = -equipment.bias_parameters[a, 1]
    if rate <= 0.0 or (equipment.gain_parameters[a, 0] != kp and equipment.actuator_gain[a] != PID):
        return -rate
    if mobility <= 0.0 or kp <= 0.0:
        return 0.0
    return 2.0 * rate * (kp / mobility) ** 0.5


@njit
def equipment_forces(
    model: Any,
    q: Any,
    v: Any,
    data: Any,
    inputs: Any,
    equipment: Any,
    equipment_data: Any,
    step: Any,
    activation: Any,
    explicit: Any,
) -> None:
    """All forces of the equipment at (q, v), kinematics in data being up to date; `explicit` 1: nothing is implicit."""
    velocities(model, v, data)
    tendon_paths(model, q, v, data, equipment, equipment_data)
    weigh_tendons(inputs, equipment, equipment_data, explicit)
    tendon_forces(equipment, equipment_data)
    transmissions(model, q, v, data, equipment, equipment_data)
    actuator_forces(model, v, inputs, equipment, equipment_data, step, activation, explicit)
    passive_extra(model, q, v, data, equipment, equipment_data)
    bound_totals(equipment, equipment_data)
    if explicit == 0:
        weigh_springs(model, inputs, step, equipment_data)
        weigh_actuators(inputs, equipment, equipment_data)
        guess_bounds(model, q, v, inputs, equipment, equipment_data, step)
