"""Actuators: forces from controls and activations, and the activations' rates (MuJoCo's computation chapter).

force = gain(length, velocity) · input + bias(length, velocity); the input is the control, or the activation it drives.
A force that is affine in length and velocity is implicit in a semi-implicit step, with the weights of actuation.py, and
therefore stable at any gain (implicit_actuators.py). On a joint of one dof it is part of M̂, elsewhere a constraint row
(constraints/actuator_rows.py). All other forces, and all forces in RK4, are those at the start of the step.
"""

from __future__ import annotations

import math

from artsim.sim.equipment.affine import bounded
from artsim.sim.equipment.arrays import (
    AFFINE,
    DC_MOTOR,
    DC_MOTOR_DYNAMICS,
    FILTER,
    FILTER_EXACT,
    INTEGRAL,
    INTEGRATOR,
    LONGEST,
    MUSCLE,
    MUSCLE_DYNAMICS,
    NO_DYNAMICS,
    PID,
    PID_DYNAMICS,
    ROLE_FEEDFORWARD,
    ROLE_POSITION,
    ROLE_VELOCITY,
    SHORTEST,
    TENDON,
    EquipmentBundle,
)
from artsim.sim.equipment.dc_motor import (
    limit_slew,
    mechanical_force,
    motor_force,
    motor_rates,
    nearest_turn,
    next_state,
    role,
    wound,
)
from artsim.sim.equipment.implicit_actuators import affine_force, set_affine_force
from artsim.sim.equipment.muscle import muscle_bias, muscle_gain, muscle_rate
from artsim.sim.equipment.rotation_servo import bound_norms, setpoint
from artsim.sim.foundation.elementary import exponential
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.run_data.run_records import CONTROL_ROW, RunBundle

_TINY = 1e-15  # least time constant [s]
_SETPOINTS = (INTEGRATOR, FILTER, FILTER_EXACT)  # dynamics whose activation is a position servo's setpoint


@njit
def actuator_forces(run: RunBundle, equipment: EquipmentBundle, activation: Reals1, explicit: int) -> None:
    """Compute all actuator forces from up-to-date lengths and moment arms; step.counters holds the control row.

    Sets in equipment.data activation_rate (nact,), actuator_force (na,) as if all forces were explicit, and the terms
    of their affine parts: constant, slope, resistance and acts (na,); no force acts implicitly if `explicit` is 1.
    """
    inputs = run.inputs
    h = inputs.time_step[0]
    row = run.step.counters[CONTROL_ROW]
    for n in range(equipment.model.control_lower.shape[0]):
        equipment.data.control[n] = inputs.control[row, n]
    if connected(equipment.data.delayer):
        run_entry(equipment.data.delayer)
    for n in range(equipment.model.control_lower.shape[0]):
        equipment.data.control[n] = bounded(
            equipment.data.control[n], equipment.model.control_lower[n], equipment.model.control_upper[n]
        )
    for n in range(equipment.data.activation_rate.shape[0]):
        equipment.data.activation_rate[n] = 0.0
    for a in range(equipment.model.actuator_target.shape[0]):
        if equipment.model.actuator_active[a]:
            _rates(equipment, a, activation, h)
    for a in range(equipment.model.actuator_target.shape[0]):
        equipment.data.actuator_force[a] = 0.0
        equipment.data.acts[a] = 0.0
        # gains that are accelerations wait for M (constraints/actuator_rows.py): their bounds cannot be guessed yet
        equipment.data.actuator_scale[a] = 0.0 if equipment.model.actuator_by_inertia[a] else 1.0
        if equipment.model.actuator_active[a]:
            equipment.data.actuator_input[a] = _input(equipment, a, activation, h)
            set_affine_force(run.inputs, equipment, a, explicit)
            equipment.data.actuator_force[a] = _force(equipment, a, activation)
    _scale_tendons(equipment)
    for a in range(equipment.model.actuator_target.shape[0]):
        equipment.data.actuator_force[a] = bounded(
            equipment.data.actuator_force[a], equipment.model.force_lower[a], equipment.model.force_upper[a]
        )
        if equipment.model.actuator_active[a] and equipment.model.actuator_bias[a] == DC_MOTOR:
            equipment.data.actuator_force[a] += mechanical_force(equipment, a, activation)
    bound_norms(equipment)


@njit
def _rates(equipment: EquipmentBundle, a: int, activation: Reals1, h: float) -> None:
    """Set equipment.data.activation_rate of actuator a's activations [1/s]."""
    kind = equipment.model.actuator_dynamics[a]
    if kind == NO_DYNAMICS:
        return
    if kind == DC_MOTOR_DYNAMICS:
        motor_rates(equipment, a, activation, h)
        return
    n = equipment.model.activation_last[a]
    if kind == PID_DYNAMICS:
        limit_slew(equipment, a, activation, h)
        n = equipment.model.activation_slot[a, INTEGRAL]
        if n >= 0:
            error = role(equipment, a, ROLE_POSITION) - equipment.data.actuator_length[a]
            if equipment.model.actuator_period[a] > 0.0:
                error = nearest_turn(error, 0.0, equipment.model.actuator_period[a])
            equipment.data.activation_rate[n] = wound(error, activation[n], equipment.model.dynamics_parameters[a, 0])
        return
    u = equipment.data.control[equipment.model.control_first[a]]
    if equipment.model.actuator_period[a] > 0.0 and kind != INTEGRATOR:
        u = nearest_turn(u, activation[n], equipment.model.actuator_period[a])  # a filtered setpoint goes the short way
    if kind == INTEGRATOR:
        equipment.data.activation_rate[n] = u
    elif kind == MUSCLE_DYNAMICS:
        equipment.data.activation_rate[n] = muscle_rate(equipment.model.dynamics_parameters[a], u, activation[n])
    else:
        equipment.data.activation_rate[n] = (u - activation[n]) / max(_TINY, equipment.model.dynamics_parameters[a, 0])


@njit
def _input(equipment: EquipmentBundle, a: int, activation: Reals1, h: float) -> float:
    """The input, which the gain multiplies: the control, or the last activation (at the end of the step if early).

    A setpoint on a circle is unwound to the turn nearest to the length. The input of a rotation servo is the wanted
    length, that of a PID servo the force without its affine bias, that of a DC motor the current at the end of the step
    or the voltage.
    """
    if equipment.model.actuator_axis[a] >= 0:
        return setpoint(equipment, a)
    n = equipment.model.activation_last[a]
    kind = equipment.model.actuator_gain[a]
    if kind == DC_MOTOR and equipment.model.dynamics_parameters[a, 0] <= 0.0:
        return equipment.data.actuator_input[a]
    state = 0.0
    if n >= 0:
        state = activation[n]
        if equipment.model.activation_early[a]:
            state = next_activation(equipment, a, n, state, equipment.data.activation_rate[n], h)
    if kind == PID:
        return _servo(equipment, a, state)
    u = state if n >= 0 else equipment.data.control[equipment.model.control_first[a]]
    if equipment.model.actuator_period[a] > 0.0:
        u = nearest_turn(u, equipment.data.actuator_length[a], equipment.model.actuator_period[a])
    return u


@njit
def _servo(equipment: EquipmentBundle, a: int, integral: float) -> float:
    """Input of a PID servo: k_p · wanted position + k_v · velocity + feedforward + k_i · integral."""
    b = equipment.model.bias_parameters[a]
    wanted = role(equipment, a, ROLE_POSITION)
    if equipment.model.actuator_period[a] > 0.0:
        wanted = nearest_turn(wanted, equipment.data.actuator_length[a], equipment.model.actuator_period[a])
    force = (
        -b[1] * wanted
        + equipment.data.actuator_damping[a] * role(equipment, a, ROLE_VELOCITY)
        + role(equipment, a, ROLE_FEEDFORWARD)
    )
    if equipment.model.activation_slot[a, INTEGRAL] >= 0:
        force += equipment.model.gain_parameters[a, 0] * integral
    return force


@njit
def _force(equipment: EquipmentBundle, a: int, activation: Reals1) -> float:
    """gain · input + bias at the current length and velocity, without bounds [N m or N]."""
    length = equipment.data.actuator_length[a]
    velocity = equipment.data.actuator_velocity[a]
    if equipment.model.actuator_gain[a] == DC_MOTOR:
        return motor_force(equipment, a, activation, equipment.data.actuator_input[a])
    if equipment.model.actuator_gain[a] != MUSCLE and equipment.model.actuator_bias[a] != MUSCLE:
        constant, stiffness, damping = affine_force(equipment, a)
        return constant - stiffness * length - damping * velocity
    low = equipment.model.actuator_length_range[a, SHORTEST]
    high = equipment.model.actuator_length_range[a, LONGEST]
    force = 0.0
    if equipment.model.actuator_gain[a] == MUSCLE:
        gain = muscle_gain(
            equipment.model.gain_parameters[a], length, velocity, low, high, equipment.data.acceleration0[a]
        )
        force = gain * equipment.data.actuator_input[a]
        if equipment.model.actuator_bias[a] == AFFINE:
            b = equipment.model.bias_parameters[a]
            force += b[0] + b[1] * length - equipment.data.actuator_damping[a] * velocity
    else:
        constant, stiffness, damping = affine_force(equipment, a)
        force = constant - stiffness * length - damping * velocity
    if equipment.model.actuator_bias[a] == MUSCLE:
        force += muscle_bias(equipment.model.bias_parameters[a], length, low, high, equipment.data.acceleration0[a])
    return force


@njit
def _scale_tendons(equipment: EquipmentBundle) -> None:
    """Scale down the forces on each tendon by a common factor where their sum is bounded."""
    for t in range(equipment.model.tendon_force_lower.shape[0]):
        if equipment.model.tendon_force_lower[t] == -math.inf and equipment.model.tendon_force_upper[t] == math.inf:
            continue
        total = 0.0
        for a in range(equipment.model.actuator_target.shape[0]):
            if equipment.model.actuator_transmission[a] == TENDON and equipment.model.actuator_target[a] == t:
                total += equipment.data.actuator_force[a]
        within = bounded(total, equipment.model.tendon_force_lower[t], equipment.model.tendon_force_upper[t])
        if within != total and total != 0.0:
            for a in range(equipment.model.actuator_target.shape[0]):
                if equipment.model.actuator_transmission[a] == TENDON and equipment.model.actuator_target[a] == t:
                    equipment.data.actuator_force[a] *= within / total


@njit
def next_activation(equipment: EquipmentBundle, a: int, n: int, value: float, rate: float, h: float) -> float:
    """Activation n after a time h [s], clamped to its range."""
    kind = equipment.model.actuator_dynamics[a]
    if kind == DC_MOTOR_DYNAMICS:
        return next_state(equipment, a, n, value, rate, h)
    if kind == FILTER_EXACT:
        time = max(_TINY, equipment.model.dynamics_parameters[a, 0])
        value += rate * time * (1.0 - exponential(-h / time))
    else:
        value += rate * h
    return min(max(value, equipment.model.activation_lower[a]), equipment.model.activation_upper[a])


@njit
def advance_activations(equipment: EquipmentBundle, h: float, activation: Reals1) -> None:
    """Advance activation (nact,) to the end of the step; a setpoint on a circle stays near the length."""
    for a in range(equipment.model.actuator_target.shape[0]):
        if equipment.model.actuator_frozen[a]:
            continue
        for n in range(equipment.model.activation_first[a], equipment.model.activation_last[a] + 1):
            activation[n] = next_activation(equipment, a, n, activation[n], equipment.data.activation_rate[n], h)
        if equipment.model.actuator_dynamics[a] in _SETPOINTS and equipment.model.actuator_period[a] > 0.0:
            n = equipment.model.activation_last[a]
            activation[n] = nearest_turn(
                activation[n], equipment.data.actuator_length[a], equipment.model.actuator_period[a]
            )
