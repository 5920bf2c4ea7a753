"""Actuators: forces from controls and activations, and the activations' rates (MuJoCo's computation chapter).

force = gain(length, velocity) · input + bias(length, velocity); the input is the control, or the activation it drives.
A force that is affine in length and velocity is implicit in a semi-implicit step, with the weights of actuation.py: so
stable at any gain. On a joint of one dof it is part of M̂, elsewhere a row (constraints/actuator.py). All others, and
all forces in RK4, are those at the step's start.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.actuation import actuator_force, coordinate, felt_at, foreseen
from artsim.sim.elementary import exponential
from artsim.sim.equipment.dc_motor import (
    limit_slew,
    mechanical_force,
    motor_force,
    motor_rates,
    nearest,
    next_state,
    role,
    wound,
)
from artsim.sim.equipment.muscle import muscle_bias, muscle_gain, muscle_rate
from artsim.sim.equipment.record import (
    AFFINE,
    BY_ROW,
    DC_MOTOR,
    DC_MOTOR_DYNAMICS,
    EXPLICIT,
    FILTER,
    FILTER_EXACT,
    GUESSED,
    IN_MATRIX,
    INTEGRAL,
    INTEGRATOR,
    MUSCLE,
    MUSCLE_DYNAMICS,
    NO_DYNAMICS,
    PID,
    PID_DYNAMICS,
    TENDON,
)
from artsim.sim.equipment.rotation_servo import bound_norms, guess_scales, is_settled, rescale, setpoint
from artsim.sim.jit import inlined, njit
from artsim.sim.recordtype import run_entry

_TINY = 1e-15  # least time constant [s]
_SLACK = 1e-12  # of a bound, relative
_SETPOINTS = (INTEGRATOR, FILTER, FILTER_EXACT)  # whose state is a position servo's setpoint


@njit
def actuator_forces(
    model: Any, v: Any, inputs: Any, equipment: Any, equipment_data: Any, step: Any, activation: Any, explicit: Any
) -> None:
    """What the actuators do; lengths and moments are up to date. step.counters[4] is the control row.

    equipment_data.actuator_force (na,), equipment_data.activation_rate; equipment_data.actuator_total (nv,) = Σ moment
    · force of those that act explicitly; equipment_data.stiffness, equipment_data.damping, equipment_data.offset (nv,)
    of those in M̂; equipment_data.actuator_implicit says which is which.
    """
    h = inputs.time_step[0]
    row = step.counters[4]
    for n in range(equipment.control_lower.shape[0]):
        equipment_data.control[n] = inputs.control[row, n]
    if equipment_data.delayer[0] != 0:
        run_entry(equipment_data.delayer)
    for n in range(equipment.control_lower.shape[0]):
        equipment_data.control[n] = min(
            max(equipment_data.control[n], equipment.control_lower[n]), equipment.control_upper[n]
        )
    for n in range(equipment_data.activation_rate.shape[0]):
        equipment_data.activation_rate[n] = 0.0
    for a in range(equipment.actuator_target.shape[0]):
        if equipment.actuator_active[a]:
            _rates(equipment, equipment_data, a, activation, h)
    for a in range(equipment.actuator_target.shape[0]):
        equipment_data.actuator_force[a] = 0.0
        equipment_data.actuator_scale[a] = 1.0
        if equipment.actuator_active[a]:
            equipment_data.actuator_input[a] = _input(equipment, equipment_data, a, activation, h)
            equipment_data.actuator_force[a] = _force(equipment, equipment_data, a, activation)
    _scale_tendons(equipment, equipment_data)
    for a in range(equipment.actuator_target.shape[0]):
        equipment_data.actuator_force[a] = min(
            max(equipment_data.actuator_force[a], equipment.force_lower[a]), equipment.force_upper[a]
        )
        if equipment.actuator_active[a] and equipment.actuator_bias[a] == DC_MOTOR:
            equipment_data.actuator_force[a] += mechanical_force(equipment, equipment_data, a, activation)
    bound_norms(equipment, equipment_data)
    _distribute(equipment, equipment_data, explicit)


@njit
def _rates(equipment: Any, equipment_data: Any, a: Any, activation: Any, h: Any) -> None:
    """equipment_data.activation_rate of actuator a's states."""
    kind = equipment.actuator_dynamics[a]
    if kind == NO_DYNAMICS:
        return
    if kind == DC_MOTOR_DYNAMICS:
        motor_rates(equipment, equipment_data, a, activation, h)
        return
    n = equipment.activation_last[a]
    if kind == PID_DYNAMICS:
        limit_slew(equipment, equipment_data, a, activation, h)
        n = equipment.activation_slot[a, INTEGRAL]
        if n >= 0:
            error = role(equipment, equipment_data, a, 0) - equipment_data.actuator_length[a]
            if equipment.actuator_period[a] > 0.0:
                error = nearest(error, 0.0, equipment.actuator_period[a])
            equipment_data.activation_rate[n] = wound(error, activation[n], equipment.dynamics_parameters[a, 0])
        return
    u = equipment_data.control[equipment.control_first[a]]
    if equipment.actuator_period[a] > 0.0 and kind != INTEGRATOR:
        u = nearest(u, activation[n], equipment.actuator_period[a])  # a filtered setpoint goes the short way
    if kind == INTEGRATOR:
        equipment_data.activation_rate[n] = u
    elif kind == MUSCLE_DYNAMICS:
        equipment_data.activation_rate[n] = muscle_rate(equipment.dynamics_parameters[a], u, activation[n])
    else:
        equipment_data.activation_rate[n] = (u - activation[n]) / max(_TINY, equipment.dynamics_parameters[a, 0])


@njit
def _input(equipment: Any, equipment_data: Any, a: Any, activation: Any, h: Any) -> Any:
    """What the gain multiplies: the control, or the last activation (of the step's end where that acts early).

    A setpoint on a circle counts as its equal nearest to the length. Rotation: what its length is to become. PID: the
    force without its affine bias. DC motor: the current of the step's end, or the voltage.
    """
    if equipment.actuator_axis[a] >= 0:
        return setpoint(equipment, equipment_data, a)
    n = equipment.activation_last[a]
    kind = equipment.actuator_gain[a]
    if kind == DC_MOTOR and equipment.dynamics_parameters[a, 0] <= 0.0:
        return equipment_data.actuator_input[a]
    state = 0.0
    if n >= 0:
        state = activation[n]
        if equipment.activation_early[a]:
            state = next_activation(equipment, equipment_data, a, n, state, equipment_data.activation_rate[n], h)
    if kind == PID:
        return _servo(equipment, equipment_data, a, state)
    u = state if n >= 0 else equipment_data.control[equipment.control_first[a]]
    if equipment.actuator_period[a] > 0.0:
        u = nearest(u, equipment_data.actuator_length[a], equipment.actuator_period[a])
    return u


@njit
def _servo(equipment: Any, equipment_data: Any, a: Any, integral: Any) -> Any:
    """k_p times the position wanted, k_v times the velocity, feedforward, k_i times the integral."""
    b = equipment.bias_parameters[a]
    wanted = role(equipment, equipment_data, a, 0)
    if equipment.actuator_period[a] > 0.0:
        wanted = nearest(wanted, equipment_data.actuator_length[a], equipment.actuator_period[a])
    force = (
        -b[1] * wanted
        + equipment_data.actuator_damping[a] * role(equipment, equipment_data, a, 1)
        + role(equipment, equipment_data, a, 2)
    )
    if equipment.activation_slot[a, INTEGRAL] >= 0:
        force += equipment.gain_parameters[a, 0] * integral
    return force


@inlined
def _slopes(equipment: Any, equipment_data: Any, a: Any) -> Any:
    """Stiffness and damping of an affine force along its length, at its input."""
    stiffness = 0.0
    damping = 0.0
    if equipment.actuator_gain[a] == AFFINE:
        stiffness = -equipment.gain_parameters[a, 1] * equipment_data.actuator_input[a]
        damping = -equipment.gain_parameters[a, 2] * equipment_data.actuator_input[a]
    if equipment.actuator_bias[a] == AFFINE:
        stiffness -= equipment.bias_parameters[a, 1]
        damping += equipment_data.actuator_damping[a]
    return stiffness, damping


@inlined
def affine_force(equipment: Any, equipment_data: Any, a: Any) -> Any:
    """(constant, stiffness, damping) of a force that is constant - stiffness · length - damping · velocity."""
    stiffness, damping = _slopes(equipment, equipment_data, a)
    gain = 1.0 if equipment.actuator_gain[a] == PID else equipment.gain_parameters[a, 0]
    constant = gain * equipment_data.actuator_input[a]
    if equipment.actuator_bias[a] == AFFINE:
        constant += equipment.bias_parameters[a, 0]
    scale = equipment_data.actuator_scale[a]
    return scale * constant, scale * stiffness, scale * damping


@njit
def _force(equipment: Any, equipment_data: Any, a: Any, activation: Any) -> Any:
    """gain · input + bias at the length and velocity found, without bounds."""
    length = equipment_data.actuator_length[a]
    velocity = equipment_data.actuator_velocity[a]
    if equipment.actuator_gain[a] == DC_MOTOR:
        return motor_force(equipment, equipment_data, a, activation, equipment_data.actuator_input[a])
    if equipment.actuator_gain[a] != MUSCLE and equipment.actuator_bias[a] != MUSCLE:
        constant, stiffness, damping = affine_force(equipment, equipment_data, a)
        return constant - stiffness * length - damping * velocity
    low = equipment.actuator_length_range[a, 0]
    high = equipment.actuator_length_range[a, 1]
    force = 0.0
    if equipment.actuator_gain[a] == MUSCLE:
        gain = muscle_gain(equipment.gain_parameters[a], length, velocity, low, high, equipment_data.acceleration0[a])
        force = gain * equipment_data.actuator_input[a]
        if equipment.actuator_bias[a] == AFFINE:
            b = equipment.bias_parameters[a]
            force += b[0] + b[1] * length - equipment_data.actuator_damping[a] * velocity
    else:
        constant, stiffness, damping = affine_force(equipment, equipment_data, a)
        force = constant - stiffness * length - damping * velocity
    if equipment.actuator_bias[a] == MUSCLE:
        force += muscle_bias(equipment.bias_parameters[a], length, low, high, equipment_data.acceleration0[a])
    return force


@njit
def _scale_tendons(equipment: Any, equipment_data: Any) -> None:
    """Forces on a tendon whose sum is bounded are made smaller alike."""
    for t in range(equipment.tendon_force_lower.shape[0]):
        if equipment.tendon_force_lower[t] == -math.inf and equipment.tendon_force_upper[t] == math.inf:
            continue
        total = 0.0
        for a in range(equipment.actuator_target.shape[0]):
            if equipment.actuator_transmission[a] == TENDON and equipment.actuator_target[a] == t:
                total += equipment_data.actuator_force[a]
        bounded = min(max(total, equipment.tendon_force_lower[t]), equipment.tendon_force_upper[t])
        if bounded != total and total != 0.0:
            for a in range(equipment.actuator_target.shape[0]):
                if equipment.actuator_transmission[a] == TENDON and equipment.actuator_target[a] == t:
                    equipment_data.actuator_force[a] *= bounded / total


@njit
def _distribute(equipment: Any, equipment_data: Any, explicit: Any) -> None:
    """Each force to where it acts: explicitly on the dofs, in M̂, or in a row."""
    for k in range(equipment_data.actuator_total.shape[0]):
        equipment_data.actuator_total[k] = 0.0
        equipment_data.dof_held[k] = 0.0
    for a in range(equipment.actuator_target.shape[0]):
        equipment_data.actuator_implicit[a] = EXPLICIT
        if explicit == 0 and equipment.actuator_active[a] and equipment.actuator_linear[a] != EXPLICIT:
            stiffness, damping = _slopes(equipment, equipment_data, a)
            if stiffness >= 0.0 and damping >= 0.0 and stiffness + damping > 0.0:
                equipment_data.actuator_implicit[a] = equipment.actuator_linear[a]
        if equipment_data.actuator_implicit[a] == EXPLICIT:
            _add(equipment, equipment_data, a)
    _gather(equipment, equipment_data)


@inlined
def _add(equipment: Any, equipment_data: Any, a: Any) -> None:
    """Actuator a's force on the dofs."""
    for entry in range(equipment.actuator_entry[a], equipment.actuator_entry[a + 1]):
        equipment_data.actuator_total[equipment.actuator_dof[entry]] += (
            equipment_data.actuator_moment[entry] * equipment_data.actuator_force[a]
        )


@njit
def _gather(equipment: Any, equipment_data: Any) -> None:
    """equipment_data.stiffness, damping, offset of the actuators that act in M̂."""
    for k in range(equipment_data.stiffness.shape[0]):
        equipment_data.stiffness[k] = 0.0
        equipment_data.damping[k] = 0.0
        equipment_data.offset[k] = 0.0
    for a in range(equipment.actuator_target.shape[0]):
        k = equipment.actuator_target[a]
        if equipment_data.actuator_implicit[a] == IN_MATRIX and equipment_data.dof_held[k] == 0.0:
            gear = equipment_data.actuator_moment[equipment.actuator_entry[a]]
            constant, stiffness, damping = affine_force(equipment, equipment_data, a)
            equipment_data.stiffness[k] += gear * gear * stiffness
            equipment_data.damping[k] += gear * gear * damping
            equipment_data.offset[k] += gear * constant


@njit
def bound_totals(equipment: Any, equipment_data: Any) -> None:
    """What is known at the step's start: dofs whose actuators are all explicit, held within their joint's bound."""
    for k in range(equipment_data.actuator_total.shape[0]):
        if equipment_data.stiffness[k] == 0.0 and equipment_data.damping[k] == 0.0 and equipment_data.offset[k] == 0.0:
            equipment_data.actuator_total[k] = min(
                max(equipment_data.actuator_total[k], equipment.dof_force_lower[k]), equipment.dof_force_upper[k]
            )


@njit
def weigh_actuators(inputs: Any, equipment: Any, equipment_data: Any) -> None:
    """equipment_data.actuator_share (na,) of those by rows, by their dofs' mobilities along the moment arms."""
    h = inputs.time_step[0]
    for a in range(equipment.actuator_linear.shape[0]):
        if equipment_data.actuator_implicit[a] == BY_ROW:
            mobility = 0.0
            for entry in range(equipment.actuator_entry[a], equipment.actuator_entry[a + 1]):
                mobility += equipment_data.actuator_moment[entry] ** 2 * inputs.mobility[equipment.actuator_dof[entry]]
            _, stiffness, _ = affine_force(equipment, equipment_data, a)
            equipment_data.actuator_share[a] = 1.0 / max(1.0, h * h * stiffness * mobility)


@njit
def guess_bounds(model: Any, q: Any, v: Any, inputs: Any, equipment: Any, equipment_data: Any, step: Any) -> None:
    """Make explicit, at their bound, implicit forces that would be beyond it if velocities stayed as they are.

    What is at its bound mostly was in the step before: if `clamp_actuators` finds the guess right, the step has its
    solution at once.
    """
    h = inputs.time_step[0]
    found = False
    for a in range(equipment.actuator_target.shape[0]):
        if equipment_data.actuator_implicit[a] != EXPLICIT:
            force = _force_over_step(
                equipment,
                equipment_data,
                step,
                a,
                equipment_data.actuator_velocity[a],
                equipment_data.actuator_velocity[a],
                h,
            )
            if _is_beyond(force, equipment.force_lower[a], equipment.force_upper[a]):
                equipment_data.actuator_force[a] = min(max(force, equipment.force_lower[a]), equipment.force_upper[a])
                equipment_data.actuator_implicit[a] = GUESSED
                _add(equipment, equipment_data, a)
                found = True
            if equipment.actuator_axis[a] >= 0:
                equipment_data.actuator_force[a] = force
    guess_scales(equipment, equipment_data)
    if found:
        _gather(equipment, equipment_data)
    for k in range(equipment_data.actuator_total.shape[0]):
        if equipment_data.stiffness[k] != 0.0 or equipment_data.damping[k] != 0.0:
            place = coordinate(model, q, k) + h * foreseen(step.share[k], v[k], v[k])
            total = actuator_force(equipment_data, k, place, v[k])
            if _is_beyond(total, equipment.dof_force_lower[k], equipment.dof_force_upper[k]):
                _hold(equipment, equipment_data, k, total, 2.0)


@njit
def clamp_actuators(model: Any, state: Any, inputs: Any, equipment: Any, equipment_data: Any, step: Any) -> bool:
    """Make explicit, at their bound, implicit forces that are beyond it over the step; True if there are any.

    Also scale servos of rotations whose norm is not at its bound. The step ends at step.velocity. On False
    equipment_data.actuator_force holds what acted over the step. Wrong guesses are taken back; else a force that was
    made explicit stays so for this step: it is solved again a finite number of times.
    """
    h = inputs.time_step[0]
    found = False
    wrong = False
    for a in range(equipment.actuator_target.shape[0]):
        if equipment_data.actuator_implicit[a] == EXPLICIT:
            continue
        rate = 0.0
        for entry in range(equipment.actuator_entry[a], equipment.actuator_entry[a + 1]):
            rate += equipment_data.actuator_moment[entry] * step.velocity[equipment.actuator_dof[entry]]
        force = _force_over_step(equipment, equipment_data, step, a, equipment_data.actuator_velocity[a], rate, h)
        if equipment_data.actuator_implicit[a] == GUESSED:
            if not _stays(force, equipment_data.actuator_force[a], equipment.force_lower[a], equipment.force_upper[a]):
                equipment_data.actuator_implicit[a] = equipment.actuator_linear[a]
                equipment_data.actuator_force[a] = force
                wrong = True
            continue
        beyond = _is_beyond(force, equipment.force_lower[a], equipment.force_upper[a])
        equipment_data.actuator_force[a] = (
            min(max(force, equipment.force_lower[a]), equipment.force_upper[a]) if beyond else force
        )
        held = (
            equipment_data.actuator_implicit[a] == IN_MATRIX
            and equipment_data.dof_held[equipment.actuator_target[a]] != 0.0
        )
        if beyond and not held:
            equipment_data.actuator_implicit[a] = EXPLICIT
            _add(equipment, equipment_data, a)
            found = True
    for a in range(equipment.actuator_target.shape[0]):
        if (
            equipment.actuator_axis[a] == 0
            and equipment_data.actuator_implicit[a] == BY_ROW
            and not is_settled(equipment, equipment_data, a)
        ):
            found = True
            if not rescale(equipment, equipment_data, a):
                for n in range(a, a + 3):
                    equipment_data.actuator_implicit[n] = EXPLICIT
                    _add(equipment, equipment_data, n)
    for k in range(equipment_data.dof_held.shape[0]):
        if equipment_data.dof_held[k] == 2.0:
            total = _sum_on(equipment, equipment_data, k, False)
            if not _stays(
                total, equipment_data.actuator_total[k], equipment.dof_force_lower[k], equipment.dof_force_upper[k]
            ):
                equipment_data.dof_held[k] = 0.0
                wrong = True
    if wrong:
        for k in range(equipment_data.dof_held.shape[0]):
            if equipment_data.dof_held[k] == 0.0:
                equipment_data.actuator_total[k] = _sum_on(equipment, equipment_data, k, True)
    if found or wrong:
        _gather(equipment, equipment_data)
    if wrong:
        bound_totals(equipment, equipment_data)
        return True
    for k in range(equipment_data.actuator_total.shape[0]):
        if equipment_data.dof_held[k] == 0.0 and (
            equipment.dof_force_lower[k] != -math.inf or equipment.dof_force_upper[k] != math.inf
        ):
            total = actuator_force(equipment_data, k, felt_at(model, state, inputs, step, k), step.velocity[k])
            if _is_beyond(total, equipment.dof_force_lower[k], equipment.dof_force_upper[k]):
                _hold(equipment, equipment_data, k, total, 1.0)
                found = True
    return found


@inlined
def _force_over_step(equipment: Any, equipment_data: Any, step: Any, a: Any, before: Any, rate: Any, h: Any) -> Any:
    """An implicit actuator's force if its length changes at this rate, and at `before` before; without bounds."""
    constant, stiffness, damping = affine_force(equipment, equipment_data, a)
    share = share_of(equipment, equipment_data, step, a)
    return (
        constant - stiffness * (equipment_data.actuator_length[a] + h * foreseen(share, before, rate)) - damping * rate
    )


@inlined
def share_of(equipment: Any, equipment_data: Any, step: Any, a: Any) -> Any:
    """The share of an implicit actuator (actuation.py): its dof's, or as a row its own."""
    if equipment.actuator_linear[a] == IN_MATRIX:
        return step.share[equipment.actuator_target[a]]
    return equipment_data.actuator_share[a]


@inlined
def _is_beyond(force: Any, lower: Any, upper: Any) -> bool:
    """Whether a force is out of its bounds by more than rounding."""
    slack = _SLACK * abs(force)
    beyond: bool = force < lower - slack or force > upper + slack
    return beyond


@inlined
def _stays(force: Any, bound: Any, lower: Any, upper: Any) -> bool:
    """Whether a force still wants to be at the bound at which it was held, or beyond."""
    stays: bool = (bound == upper and force >= upper) or (bound == lower and force <= lower)
    return stays


@inlined
def _hold(equipment: Any, equipment_data: Any, k: Any, total: Any, how: Any) -> None:
    """Hold the sum of dof k's actuators at the bound that it is beyond."""
    equipment_data.dof_held[k] = how
    equipment_data.actuator_total[k] = min(max(total, equipment.dof_force_lower[k]), equipment.dof_force_upper[k])
    equipment_data.stiffness[k] = 0.0
    equipment_data.damping[k] = 0.0
    equipment_data.offset[k] = 0.0


@njit
def _sum_on(equipment: Any, equipment_data: Any, k: Any, explicit: Any) -> Any:
    """The sum of the actuators' forces on dof k, without bounds; of those alone that act explicitly, or of all."""
    total = equipment_data.compensation[k]
    for a in range(equipment.actuator_target.shape[0]):
        acts = (
            not explicit
            or equipment_data.actuator_implicit[a] == EXPLICIT
            or equipment_data.actuator_implicit[a] == GUESSED
        )
        for entry in range(equipment.actuator_entry[a], equipment.actuator_entry[a + 1]):
            if acts and equipment.actuator_dof[entry] == k:
                total += equipment_data.actuator_moment[entry] * equipment_data.actuator_force[a]
    return total


@njit
def next_activation(equipment: Any, equipment_data: Any, a: Any, n: Any, value: Any, rate: Any, h: Any) -> Any:
    """Activation n after h, within its range."""
    kind = equipment.actuator_dynamics[a]
    if kind == DC_MOTOR_DYNAMICS:
        return next_state(equipment, equipment_data, a, n, value, rate, h)
    if kind == FILTER_EXACT:
        time = max(_TINY, equipment.dynamics_parameters[a, 0])
        value += rate * time * (1.0 - exponential(-h / time))
    else:
        value += rate * h
    return min(max(value, equipment.activation_lower[a]), equipment.activation_upper[a])


@njit
def advance_activations(equipment: Any, equipment_data: Any, h: Any, activation: Any) -> None:
    """activation (nact,) at the end of the step. A setpoint on a circle stays near the length."""
    for a in range(equipment.actuator_target.shape[0]):
        if equipment.actuator_frozen[a]:
            continue
        for n in range(equipment.activation_first[a], equipment.activation_last[a] + 1):
            activation[n] = next_activation(
                equipment, equipment_data, a, n, activation[n], equipment_data.activation_rate[n], h
            )
        if equipment.actuator_dynamics[a] in _SETPOINTS and equipment.actuator_period[a] > 0.0:
            n = equipment.activation_last[a]
            activation[n] = nearest(activation[n], equipment_data.actuator_length[a], equipment.actuator_period[a])
