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
def actuator_forces(m: Any, v: Any, i: Any, e: Any, x: Any, f: Any, activation: Any, explicit: Any) -> None:
    """What the actuators do; lengths and moments are up to date. f.counters[4] is the control row.

    x.actuator_force (na,), x.activation_rate; x.actuator_total (nv,) = Σ moment · force of those that act explicitly;
    x.stiffness, x.damping, x.offset (nv,) of those in M̂; x.actuator_implicit says which is which.
    """
    h = i.time_step[0]
    row = f.counters[4]
    for n in range(e.control_lower.shape[0]):
        x.control[n] = i.control[row, n]
    if x.delayer[0] != 0:
        run_entry(x.delayer)
    for n in range(e.control_lower.shape[0]):
        x.control[n] = min(max(x.control[n], e.control_lower[n]), e.control_upper[n])
    for n in range(x.activation_rate.shape[0]):
        x.activation_rate[n] = 0.0
    for a in range(e.actuator_target.shape[0]):
        if e.actuator_active[a]:
            _rates(e, x, a, activation, h)
    for a in range(e.actuator_target.shape[0]):
        x.actuator_force[a] = 0.0
        x.actuator_scale[a] = 1.0
        if e.actuator_active[a]:
            x.actuator_input[a] = _input(e, x, a, activation, h)
            x.actuator_force[a] = _force(e, x, a, activation)
    _scale_tendons(e, x)
    for a in range(e.actuator_target.shape[0]):
        x.actuator_force[a] = min(max(x.actuator_force[a], e.force_lower[a]), e.force_upper[a])
        if e.actuator_active[a] and e.actuator_bias[a] == DC_MOTOR:
            x.actuator_force[a] += mechanical_force(e, x, a, activation)
    bound_norms(e, x)
    _distribute(e, x, explicit)


@njit
def _rates(e: Any, x: Any, a: Any, activation: Any, h: Any) -> None:
    """x.activation_rate of actuator a's states."""
    kind = e.actuator_dynamics[a]
    if kind == NO_DYNAMICS:
        return
    if kind == DC_MOTOR_DYNAMICS:
        motor_rates(e, x, a, activation, h)
        return
    n = e.activation_last[a]
    if kind == PID_DYNAMICS:
        limit_slew(e, x, a, activation, h)
        n = e.activation_slot[a, INTEGRAL]
        if n >= 0:
            error = role(e, x, a, 0) - x.actuator_length[a]
            if e.actuator_period[a] > 0.0:
                error = nearest(error, 0.0, e.actuator_period[a])
            x.activation_rate[n] = wound(error, activation[n], e.dynamics_parameters[a, 0])
        return
    u = x.control[e.control_first[a]]
    if e.actuator_period[a] > 0.0 and kind != INTEGRATOR:
        u = nearest(u, activation[n], e.actuator_period[a])  # a filtered setpoint goes the short way
    if kind == INTEGRATOR:
        x.activation_rate[n] = u
    elif kind == MUSCLE_DYNAMICS:
        x.activation_rate[n] = muscle_rate(e.dynamics_parameters[a], u, activation[n])
    else:
        x.activation_rate[n] = (u - activation[n]) / max(_TINY, e.dynamics_parameters[a, 0])


@njit
def _input(e: Any, x: Any, a: Any, activation: Any, h: Any) -> Any:
    """What the gain multiplies: the control, or the last activation (of the step's end where that acts early).

    A setpoint on a circle counts as its equal nearest to the length. Rotation: what its length is to become. PID: the
    force without its affine bias. DC motor: the current of the step's end, or the voltage.
    """
    if e.actuator_axis[a] >= 0:
        return setpoint(e, x, a)
    n = e.activation_last[a]
    kind = e.actuator_gain[a]
    if kind == DC_MOTOR and e.dynamics_parameters[a, 0] <= 0.0:
        return x.actuator_input[a]
    state = 0.0
    if n >= 0:
        state = activation[n]
        if e.activation_early[a]:
            state = next_activation(e, x, a, n, state, x.activation_rate[n], h)
    if kind == PID:
        return _servo(e, x, a, state)
    u = state if n >= 0 else x.control[e.control_first[a]]
    if e.actuator_period[a] > 0.0:
        u = nearest(u, x.actuator_length[a], e.actuator_period[a])
    return u


@njit
def _servo(e: Any, x: Any, a: Any, integral: Any) -> Any:
    """k_p times the position wanted, k_v times the velocity, feedforward, k_i times the integral."""
    b = e.bias_parameters[a]
    wanted = role(e, x, a, 0)
    if e.actuator_period[a] > 0.0:
        wanted = nearest(wanted, x.actuator_length[a], e.actuator_period[a])
    force = -b[1] * wanted + x.actuator_damping[a] * role(e, x, a, 1) + role(e, x, a, 2)
    if e.activation_slot[a, INTEGRAL] >= 0:
        force += e.gain_parameters[a, 0] * integral
    return force


@inlined
def _slopes(e: Any, x: Any, a: Any) -> Any:
    """Stiffness and damping of an affine force along its length, at its input."""
    stiffness = 0.0
    damping = 0.0
    if e.actuator_gain[a] == AFFINE:
        stiffness = -e.gain_parameters[a, 1] * x.actuator_input[a]
        damping = -e.gain_parameters[a, 2] * x.actuator_input[a]
    if e.actuator_bias[a] == AFFINE:
        stiffness -= e.bias_parameters[a, 1]
        damping += x.actuator_damping[a]
    return stiffness, damping


@inlined
def affine_force(e: Any, x: Any, a: Any) -> Any:
    """(constant, stiffness, damping) of a force that is constant - stiffness · length - damping · velocity."""
    stiffness, damping = _slopes(e, x, a)
    gain = 1.0 if e.actuator_gain[a] == PID else e.gain_parameters[a, 0]
    constant = gain * x.actuator_input[a]
    if e.actuator_bias[a] == AFFINE:
        constant += e.bias_parameters[a, 0]
    scale = x.actuator_scale[a]
    return scale * constant, scale * stiffness, scale * damping


@njit
def _force(e: Any, x: Any, a: Any, activation: Any) -> Any:
    """gain · input + bias at the length and velocity found, without bounds."""
    length = x.actuator_length[a]
    velocity = x.actuator_velocity[a]
    if e.actuator_gain[a] == DC_MOTOR:
        return motor_force(e, x, a, activation, x.actuator_input[a])
    if e.actuator_gain[a] != MUSCLE and e.actuator_bias[a] != MUSCLE:
        constant, stiffness, damping = affine_force(e, x, a)
        return constant - stiffness * length - damping * velocity
    low = e.actuator_length_range[a, 0]
    high = e.actuator_length_range[a, 1]
    force = 0.0
    if e.actuator_gain[a] == MUSCLE:
        gain = muscle_gain(e.gain_parameters[a], length, velocity, low, high, x.acceleration0[a])
        force = gain * x.actuator_input[a]
        if e.actuator_bias[a] == AFFINE:
            b = e.bias_parameters[a]
            force += b[0] + b[1] * length - x.actuator_damping[a] * velocity
    else:
        constant, stiffness, damping = affine_force(e, x, a)
        force = constant - stiffness * length - damping * velocity
    if e.actuator_bias[a] == MUSCLE:
        force += muscle_bias(e.bias_parameters[a], length, low, high, x.acceleration0[a])
    return force


@njit
def _scale_tendons(e: Any, x: Any) -> None:
    """Forces on a tendon whose sum is bounded are made smaller alike."""
    for t in range(e.tendon_force_lower.shape[0]):
        if e.tendon_force_lower[t] == -math.inf and e.tendon_force_upper[t] == math.inf:
            continue
        total = 0.0
        for a in range(e.actuator_target.shape[0]):
            if e.actuator_transmission[a] == TENDON and e.actuator_target[a] == t:
                total += x.actuator_force[a]
        bounded = min(max(total, e.tendon_force_lower[t]), e.tendon_force_upper[t])
        if bounded != total and total != 0.0:
            for a in range(e.actuator_target.shape[0]):
                if e.actuator_transmission[a] == TENDON and e.actuator_target[a] == t:
                    x.actuator_force[a] *= bounded / total


@njit
def _distribute(e: Any, x: Any, explicit: Any) -> None:
    """Each force to where it acts: explicitly on the dofs, in M̂, or in a row."""
    for k in range(x.actuator_total.shape[0]):
        x.actuator_total[k] = 0.0
        x.dof_held[k] = 0.0
    for a in range(e.actuator_target.shape[0]):
        x.actuator_implicit[a] = EXPLICIT
        if explicit == 0 and e.actuator_active[a] and e.actuator_linear[a] != EXPLICIT:
            stiffness, damping = _slopes(e, x, a)
            if stiffness >= 0.0 and damping >= 0.0 and stiffness + damping > 0.0:
                x.actuator_implicit[a] = e.actuator_linear[a]
        if x.actuator_implicit[a] == EXPLICIT:
            _add(e, x, a)
    _gather(e, x)


@inlined
def _add(e: Any, x: Any, a: Any) -> None:
    """Actuator a's force on the dofs."""
    for entry in range(e.actuator_entry[a], e.actuator_entry[a + 1]):
        x.actuator_total[e.actuator_dof[entry]] += x.actuator_moment[entry] * x.actuator_force[a]


@njit
def _gather(e: Any, x: Any) -> None:
    """x.stiffness, damping, offset of the actuators that act in M̂."""
    for k in range(x.stiffness.shape[0]):
        x.stiffness[k] = 0.0
        x.damping[k] = 0.0
        x.offset[k] = 0.0
    for a in range(e.actuator_target.shape[0]):
        k = e.actuator_target[a]
        if x.actuator_implicit[a] == IN_MATRIX and x.dof_held[k] == 0.0:
            gear = x.actuator_moment[e.actuator_entry[a]]
            constant, stiffness, damping = affine_force(e, x, a)
            x.stiffness[k] += gear * gear * stiffness
            x.damping[k] += gear * gear * damping
            x.offset[k] += gear * constant


@njit
def bound_totals(e: Any, x: Any) -> None:
    """What is known at the step's start: dofs whose actuators are all explicit, held within their joint's bound."""
    for k in range(x.actuator_total.shape[0]):
        if x.stiffness[k] == 0.0 and x.damping[k] == 0.0 and x.offset[k] == 0.0:
            x.actuator_total[k] = min(max(x.actuator_total[k], e.dof_force_lower[k]), e.dof_force_upper[k])


@njit
def weigh_actuators(i: Any, e: Any, x: Any) -> None:
    """x.actuator_share (na,) of those by rows, by their dofs' mobilities along the moment arms."""
    h = i.time_step[0]
    for a in range(e.actuator_linear.shape[0]):
        if x.actuator_implicit[a] == BY_ROW:
            mobility = 0.0
            for entry in range(e.actuator_entry[a], e.actuator_entry[a + 1]):
                mobility += x.actuator_moment[entry] ** 2 * i.mobility[e.actuator_dof[entry]]
            _, stiffness, _ = affine_force(e, x, a)
            x.actuator_share[a] = 1.0 / max(1.0, h * h * stiffness * mobility)


@njit
def guess_bounds(m: Any, q: Any, v: Any, i: Any, e: Any, x: Any, f: Any) -> None:
    """Make explicit, at their bound, implicit forces that would be beyond it if velocities stayed as they are.

    What is at its bound mostly was in the step before: if `clamp_actuators` finds the guess right, the step has its
    solution at once.
    """
    h = i.time_step[0]
    found = False
    for a in range(e.actuator_target.shape[0]):
        if x.actuator_implicit[a] != EXPLICIT:
            force = _force_over_step(e, x, f, a, x.actuator_velocity[a], x.actuator_velocity[a], h)
            if _is_beyond(force, e.force_lower[a], e.force_upper[a]):
                x.actuator_force[a] = min(max(force, e.force_lower[a]), e.force_upper[a])
                x.actuator_implicit[a] = GUESSED
                _add(e, x, a)
                found = True
            if e.actuator_axis[a] >= 0:
                x.actuator_force[a] = force
    guess_scales(e, x)
    if found:
        _gather(e, x)
    for k in range(x.actuator_total.shape[0]):
        if x.stiffness[k] != 0.0 or x.damping[k] != 0.0:
            place = coordinate(m, q, k) + h * foreseen(f.share[k], v[k], v[k])
            total = actuator_force(x, k, place, v[k])
            if _is_beyond(total, e.dof_force_lower[k], e.dof_force_upper[k]):
                _hold(e, x, k, total, 2.0)


@njit
def clamp_actuators(m: Any, s: Any, i: Any, e: Any, x: Any, f: Any) -> bool:
    """Make explicit, at their bound, implicit forces that are beyond it over the step; True if there are any.

    Also scale servos of rotations whose norm is not at its bound. The step ends at f.velocity. On False
    x.actuator_force holds what acted over the step. Wrong guesses are taken back; else a force that was made explicit
    stays so for this step: it is solved again a finite number of times.
    """
    h = i.time_step[0]
    found = False
    wrong = False
    for a in range(e.actuator_target.shape[0]):
        if x.actuator_implicit[a] == EXPLICIT:
            continue
        rate = 0.0
        for entry in range(e.actuator_entry[a], e.actuator_entry[a + 1]):
            rate += x.actuator_moment[entry] * f.velocity[e.actuator_dof[entry]]
        force = _force_over_step(e, x, f, a, x.actuator_velocity[a], rate, h)
        if x.actuator_implicit[a] == GUESSED:
            if not _stays(force, x.actuator_force[a], e.force_lower[a], e.force_upper[a]):
                x.actuator_implicit[a] = e.actuator_linear[a]
                x.actuator_force[a] = force
                wrong = True
            continue
        beyond = _is_beyond(force, e.force_lower[a], e.force_upper[a])
        x.actuator_force[a] = min(max(force, e.force_lower[a]), e.force_upper[a]) if beyond else force
        held = x.actuator_implicit[a] == IN_MATRIX and x.dof_held[e.actuator_target[a]] != 0.0
        if beyond and not held:
            x.actuator_implicit[a] = EXPLICIT
            _add(e, x, a)
            found = True
    for a in range(e.actuator_target.shape[0]):
        if e.actuator_axis[a] == 0 and x.actuator_implicit[a] == BY_ROW and not is_settled(e, x, a):
            found = True
            if not rescale(e, x, a):
                for n in range(a, a + 3):
                    x.actuator_implicit[n] = EXPLICIT
                    _add(e, x, n)
    for k in range(x.dof_held.shape[0]):
        if x.dof_held[k] == 2.0:
            total = _sum_on(e, x, k, False)
            if not _stays(total, x.actuator_total[k], e.dof_force_lower[k], e.dof_force_upper[k]):
                x.dof_held[k] = 0.0
                wrong = True
    if wrong:
        for k in range(x.dof_held.shape[0]):
            if x.dof_held[k] == 0.0:
                x.actuator_total[k] = _sum_on(e, x, k, True)
    if found or wrong:
        _gather(e, x)
    if wrong:
        bound_totals(e, x)
        return True
    for k in range(x.actuator_total.shape[0]):
        if x.dof_held[k] == 0.0 and (e.dof_force_lower[k] != -math.inf or e.dof_force_upper[k] != math.inf):
            total = actuator_force(x, k, felt_at(m, s, i, f, k), f.velocity[k])
            if _is_beyond(total, e.dof_force_lower[k], e.dof_force_upper[k]):
                _hold(e, x, k, total, 1.0)
                found = True
    return found


@inlined
def _force_over_step(e: Any, x: Any, f: Any, a: Any, before: Any, rate: Any, h: Any) -> Any:
    """An implicit actuator's force if its length changes at this rate, and at `before` before; without bounds."""
    constant, stiffness, damping = affine_force(e, x, a)
    share = share_of(e, x, f, a)
    return constant - stiffness * (x.actuator_length[a] + h * foreseen(share, before, rate)) - damping * rate


@inlined
def share_of(e: Any, x: Any, f: Any, a: Any) -> Any:
    """The share of an implicit actuator (actuation.py): its dof's, or as a row its own."""
    if e.actuator_linear[a] == IN_MATRIX:
        return f.share[e.actuator_target[a]]
    return x.actuator_share[a]


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
def _hold(e: Any, x: Any, k: Any, total: Any, how: Any) -> None:
    """Hold the sum of dof k's actuators at the bound that it is beyond."""
    x.dof_held[k] = how
    x.actuator_total[k] = min(max(total, e.dof_force_lower[k]), e.dof_force_upper[k])
    x.stiffness[k] = 0.0
    x.damping[k] = 0.0
    x.offset[k] = 0.0


@njit
def _sum_on(e: Any, x: Any, k: Any, explicit: Any) -> Any:
    """The sum of the actuators' forces on dof k, without bounds; of those alone that act explicitly, or of all."""
    total = x.compensation[k]
    for a in range(e.actuator_target.shape[0]):
        acts = not explicit or x.actuator_implicit[a] == EXPLICIT or x.actuator_implicit[a] == GUESSED
        for entry in range(e.actuator_entry[a], e.actuator_entry[a + 1]):
            if acts and e.actuator_dof[entry] == k:
                total += x.actuator_moment[entry] * x.actuator_force[a]
    return total


@njit
def next_activation(e: Any, x: Any, a: Any, n: Any, value: Any, rate: Any, h: Any) -> Any:
    """Activation n after h, within its range."""
    kind = e.actuator_dynamics[a]
    if kind == DC_MOTOR_DYNAMICS:
        return next_state(e, x, a, n, value, rate, h)
    if kind == FILTER_EXACT:
        time = max(_TINY, e.dynamics_parameters[a, 0])
        value += rate * time * (1.0 - exponential(-h / time))
    else:
        value += rate * h
    return min(max(value, e.activation_lower[a]), e.activation_upper[a])


@njit
def advance_activations(e: Any, x: Any, h: Any, activation: Any) -> None:
    """activation (nact,) at the end of the step. A setpoint on a circle stays near the length."""
    for a in range(e.actuator_target.shape[0]):
        if e.actuator_frozen[a]:
            continue
        for n in range(e.activation_first[a], e.activation_last[a] + 1):
            activation[n] = next_activation(e, x, a, n, activation[n], x.activation_rate[n], h)
        if e.actuator_dynamics[a] in _SETPOINTS and e.actuator_period[a] > 0.0:
            n = e.activation_last[a]
            activation[n] = nearest(activation[n], x.actuator_length[a], e.actuator_period[a])
