"""Actuators: forces from controls and activations, and the activations' rates (MuJoCo's computation chapter).

force = gain(length, velocity) · input + bias(length, velocity); the input is the control, or the activation it drives.
A force that is affine in length and velocity is implicit in a semi-implicit step, with the weights of actuation.py, and
therefore stable at any gain. On a joint of one dof it is part of M̂, elsewhere a constraint row
(constraints/actuator_rows.py). All other forces, and all forces in RK4, are those at the start of the step.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import actuator_force, coordinate, felt_at, foreseen
from artsim.sim.equipment.affine import add_to_joint, bounded, force_over_step, is_beyond, share_of_row
from artsim.sim.equipment.arrays import (
    AFFINE,
    BY_ROW,
    CONSTANT,
    DC_MOTOR,
    DC_MOTOR_DYNAMICS,
    EXPLICIT,
    FILTER,
    FILTER_EXACT,
    GUESSED,
    IN_MATRIX,
    INTEGRAL,
    INTEGRATOR,
    LONGEST,
    MUSCLE,
    MUSCLE_DYNAMICS,
    NO_DYNAMICS,
    PER_LENGTH,
    PER_VELOCITY,
    PID,
    PID_DYNAMICS,
    ROLE_FEEDFORWARD,
    ROLE_POSITION,
    ROLE_VELOCITY,
    ROUNDS_TOGETHER,
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
from artsim.sim.equipment.muscle import muscle_bias, muscle_gain, muscle_rate
from artsim.sim.equipment.rotation_servo import bound_norms, guess_scales, is_settled, rescale, setpoint
from artsim.sim.foundation.elementary import exponential
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1, Vec3
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.run_data.run_records import CONTROL_ROW, Inputs, RunBundle, Step

_TINY = 1e-15  # least time constant [s]
_SETPOINTS = (INTEGRATOR, FILTER, FILTER_EXACT)  # dynamics whose activation is a position servo's setpoint


@njit
def actuator_forces(
    model: Model, v: Reals1, run: RunBundle, equipment: EquipmentBundle, activation: Reals1, explicit: int
) -> None:
    """Compute all actuator forces from up-to-date lengths and moment arms; step.counters holds the control row.

    Sets in equipment.data actuator_force (na,), activation_rate (nact,), actuator_total (nv,) = Σ moment · force of
    the explicit actuators, stiffness, damping and offset (nv,) of those in M̂, and actuator_implicit (na,): EXPLICIT,
    IN_MATRIX, BY_ROW or GUESSED.
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
        # gains that are accelerations wait for M (constraints/actuator_rows.py): their bounds cannot be guessed yet
        equipment.data.actuator_scale[a] = 0.0 if equipment.model.actuator_by_inertia[a] else 1.0
        if equipment.model.actuator_active[a]:
            equipment.data.actuator_input[a] = _input(equipment, a, activation, h)
            equipment.data.actuator_force[a] = _force(equipment, a, activation)
    _scale_tendons(equipment)
    for a in range(equipment.model.actuator_target.shape[0]):
        equipment.data.actuator_force[a] = bounded(
            equipment.data.actuator_force[a], equipment.model.force_lower[a], equipment.model.force_upper[a]
        )
        if equipment.model.actuator_active[a] and equipment.model.actuator_bias[a] == DC_MOTOR:
            equipment.data.actuator_force[a] += mechanical_force(equipment, a, activation)
    bound_norms(equipment)
    _distribute(equipment, explicit)


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


@inlined
def _slopes(equipment: EquipmentBundle, a: int) -> tuple[float, float]:
    """Stiffness and damping of an affine force along its length, at its input."""
    stiffness = 0.0
    damping = 0.0
    if equipment.model.actuator_gain[a] == AFFINE:
        stiffness = -equipment.model.gain_parameters[a, PER_LENGTH] * equipment.data.actuator_input[a]
        damping = -equipment.model.gain_parameters[a, PER_VELOCITY] * equipment.data.actuator_input[a]
    if equipment.model.actuator_bias[a] == AFFINE:
        stiffness -= equipment.model.bias_parameters[a, PER_LENGTH]
        damping += equipment.data.actuator_damping[a]
    return stiffness, damping


@inlined
def affine_force(equipment: EquipmentBundle, a: int) -> Vec3:
    """(constant, stiffness, damping) of a force that is constant - stiffness · length - damping · velocity."""
    stiffness, damping = _slopes(equipment, a)
    gain = 1.0 if equipment.model.actuator_gain[a] == PID else equipment.model.gain_parameters[a, CONSTANT]
    constant = gain * equipment.data.actuator_input[a]
    if equipment.model.actuator_bias[a] == AFFINE:
        constant += equipment.model.bias_parameters[a, CONSTANT]
    scale = equipment.data.actuator_scale[a]
    return scale * constant, scale * stiffness, scale * damping


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
def _distribute(equipment: EquipmentBundle, explicit: int) -> None:
    """Pass each force on to where it acts: explicitly on the dofs, in M̂, or in a row."""
    for k in range(equipment.data.actuator_total.shape[0]):
        equipment.data.actuator_total[k] = 0.0
        equipment.data.dof_held[k] = 0.0
    for a in range(equipment.model.actuator_target.shape[0]):
        equipment.data.actuator_implicit[a] = EXPLICIT
        if explicit == 0 and equipment.model.actuator_active[a] and equipment.model.actuator_linear[a] != EXPLICIT:
            stiffness, damping = _slopes(equipment, a)
            if stiffness >= 0.0 and damping >= 0.0 and stiffness + damping > 0.0:
                equipment.data.actuator_implicit[a] = equipment.model.actuator_linear[a]
        if equipment.data.actuator_implicit[a] == EXPLICIT:
            _add(equipment, a)
    _gather(equipment)


@inlined
def _add(equipment: EquipmentBundle, a: int) -> None:
    """Add actuator a's force to the dofs it acts on."""
    for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
        equipment.data.actuator_total[equipment.model.actuator_dof[entry]] += (
            equipment.data.actuator_moment[entry] * equipment.data.actuator_force[a]
        )


@njit
def _gather(equipment: EquipmentBundle) -> None:
    """Sum up equipment.data.stiffness, damping and offset (nv,) of the actuators that act in M̂."""
    for k in range(equipment.data.stiffness.shape[0]):
        equipment.data.stiffness[k] = 0.0
        equipment.data.damping[k] = 0.0
        equipment.data.offset[k] = 0.0
    for a in range(equipment.model.actuator_target.shape[0]):
        k = equipment.model.actuator_target[a]
        if equipment.data.actuator_implicit[a] == IN_MATRIX and equipment.data.dof_held[k] == 0.0:
            gear = equipment.data.actuator_moment[equipment.model.actuator_entry[a]]
            constant, stiffness, damping = affine_force(equipment, a)
            add_to_joint(equipment.data, k, gear, constant, stiffness, damping)


@njit
def bound_totals(equipment: EquipmentBundle) -> None:
    """Clamp the actuator sum of the dofs whose actuators are all explicit, which is known at the start of the step."""
    for k in range(equipment.data.actuator_total.shape[0]):
        if equipment.data.stiffness[k] == 0.0 and equipment.data.damping[k] == 0.0 and equipment.data.offset[k] == 0.0:
            equipment.data.actuator_total[k] = bounded(
                equipment.data.actuator_total[k], equipment.model.dof_force_lower[k], equipment.model.dof_force_upper[k]
            )


@njit
def weigh_actuators(inputs: Inputs, equipment: EquipmentBundle) -> None:
    """Set equipment.data.actuator_share (na,) of actuators that are rows, from the mobility along their moment arms."""
    h = inputs.time_step[0]
    for a in range(equipment.model.actuator_linear.shape[0]):
        if equipment.data.actuator_implicit[a] == BY_ROW:
            mobility = 0.0
            for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
                mobility += (
                    equipment.data.actuator_moment[entry] ** 2 * inputs.mobility[equipment.model.actuator_dof[entry]]
                )
            _, stiffness, _ = affine_force(equipment, a)
            equipment.data.actuator_share[a] = share_of_row(h, stiffness, mobility)


@njit
def guess_bounds(model: Model, q: Reals1, v: Reals1, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Make explicit, at their bound, the implicit forces that would exceed it if the velocities did not change.

    A force at its bound was mostly at this bound in the previous step, too: if `clamp_actuators` confirms the guess,
    the step is solved at once.
    """
    step = run.step
    h = run.inputs.time_step[0]
    found = False
    for a in range(equipment.model.actuator_target.shape[0]):
        if equipment.data.actuator_implicit[a] != EXPLICIT:
            force = _force_over_step(
                equipment, step, a, equipment.data.actuator_velocity[a], equipment.data.actuator_velocity[a], h
            )
            if is_beyond(force, equipment.model.force_lower[a], equipment.model.force_upper[a]) > 0.0:
                equipment.data.actuator_force[a] = bounded(
                    force, equipment.model.force_lower[a], equipment.model.force_upper[a]
                )
                equipment.data.actuator_implicit[a] = GUESSED
                _add(equipment, a)
                found = True
            if equipment.model.actuator_axis[a] >= 0:
                equipment.data.actuator_force[a] = force
    guess_scales(equipment)
    if found:
        _gather(equipment)
    for k in range(equipment.data.actuator_total.shape[0]):
        if equipment.data.stiffness[k] != 0.0 or equipment.data.damping[k] != 0.0:
            place = coordinate(model, q, k) + h * foreseen(step.share[k], v[k], v[k])
            total = actuator_force(equipment, k, place, v[k])
            if is_beyond(total, equipment.model.dof_force_lower[k], equipment.model.dof_force_upper[k]) > 0.0:
                _hold(equipment, k, total)


@njit
def clamp_actuators(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle) -> bool:
    """Make explicit, at their bound, the implicit forces that exceed it over the step, and implicit again those that
    are held there and would be within their bounds; True if there are any.

    Also rescales rotation servos whose norm is not at its bound. The step ends at step.velocity. On False,
    equipment.data.actuator_force (na,) holds the forces that acted over the step.

    The forces held are the active set of a linear complementarity problem. In the first ROUNDS_TOGETHER rounds all
    forces on the wrong side of their bounds change sides at once, which rarely takes more than two rounds but may
    cycle; then one force changes in each round, the first in a fixed order, which ends for every positive definite
    matrix (Murty 1974, Note on a Bard-type scheme).
    """
    one = run.step.bound_rounds[0] > ROUNDS_TOGETHER
    changed = _clamp_forces(run, equipment, one, False)
    if _scale_rotations(equipment):
        changed = True
    if not (one and changed) and _clamp_totals(robot, run, equipment, one):
        changed = True
    if changed:
        _add_explicit(equipment)
        _gather(equipment)
        bound_totals(equipment)
    return changed


@inlined
def _clamp_forces(run: RunBundle, equipment: EquipmentBundle, one: bool, of_rows: bool) -> bool:
    """True if forces of actuators, or of those alone that may be rows, were held at their bounds or released: all that
    have to be, or the first one.
    """
    changed = False
    for a in range(equipment.model.actuator_target.shape[0]):
        counts = equipment.data.actuator_implicit[a] != EXPLICIT
        if of_rows:
            counts = counts and equipment.model.actuator_linear[a] == BY_ROW
        if counts and not (one and changed):
            changed = _clamp_force(run, equipment, a) or changed
    return changed


@njit
def clamp_row_actuators(run: RunBundle, equipment: EquipmentBundle) -> bool:
    """Hold at their bounds, or release, the forces of actuators that are or may be rows; True if any has changed."""
    changed = _clamp_forces(run, equipment, run.step.bound_rounds[0] > ROUNDS_TOGETHER, True)
    return _scale_rotations(equipment) or changed


@njit
def _clamp_force(run: RunBundle, equipment: EquipmentBundle, a: int) -> bool:
    """True if actuator a, which is not explicit, was held at its bound, or was and is released."""
    lower, upper = equipment.model.force_lower[a], equipment.model.force_upper[a]
    force = _force_at_end(run, equipment, a)
    if equipment.data.actuator_implicit[a] == GUESSED:
        released = not _stays(force, equipment.data.actuator_force[a], lower, upper)
        if released:
            equipment.data.actuator_implicit[a] = equipment.model.actuator_linear[a]
            equipment.data.actuator_force[a] = force
        return released
    beyond = is_beyond(force, lower, upper) > 0.0
    equipment.data.actuator_force[a] = bounded(force, lower, upper) if beyond else force
    in_matrix = equipment.data.actuator_implicit[a] == IN_MATRIX
    held = in_matrix and equipment.data.dof_held[equipment.model.actuator_target[a]] != 0.0
    found = beyond and not held
    if found:
        equipment.data.actuator_implicit[a] = GUESSED
    return found


@inlined
def _force_at_end(run: RunBundle, equipment: EquipmentBundle, a: int) -> float:
    """Unbounded force of an implicit actuator over the step that ends at step.velocity."""
    rate = 0.0
    for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
        rate += equipment.data.actuator_moment[entry] * run.step.velocity[equipment.model.actuator_dof[entry]]
    before = equipment.data.actuator_velocity[a]
    return _force_over_step(equipment, run.step, a, before, rate, run.inputs.time_step[0])


@inlined
def _scale_rotations(equipment: EquipmentBundle) -> bool:
    """Scale servos of rotations whose norm is not at its bound, or make them explicit; True if there are any."""
    found = False
    for a in range(equipment.model.actuator_target.shape[0]):
        if (
            equipment.model.actuator_axis[a] == 0
            and equipment.data.actuator_implicit[a] == BY_ROW
            and not is_settled(equipment, a)
        ):
            found = True
            if not rescale(equipment, a):
                for n in range(a, a + 3):
                    equipment.data.actuator_implicit[n] = EXPLICIT
    return found


@inlined
def _clamp_totals(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, one: bool) -> bool:
    """True if sums of joints' actuators were held at their bounds or released: all that have to be, or the first one
    (`one`)."""
    changed = False
    for k in range(equipment.data.actuator_total.shape[0]):
        lower, upper = equipment.model.dof_force_lower[k], equipment.model.dof_force_upper[k]
        if (lower != -math.inf or upper != math.inf) and not (one and changed):
            if equipment.data.dof_held[k] == 1.0:
                if not _stays(_sum_on(equipment, k), equipment.data.actuator_total[k], lower, upper):
                    equipment.data.dof_held[k] = 0.0
                    changed = True
            else:
                total = actuator_force(equipment, k, felt_at(robot, run, k), run.step.velocity[k])
                if is_beyond(total, lower, upper) > 0.0:
                    _hold(equipment, k, total)
                    changed = True
    return changed


@njit
def excess_at_bounds(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle) -> float:
    """The velocity that the largest excess of a force over its bound in the step would cause [rad/s or m/s].
    equipment.data.actuator_force (na,) then holds the forces that acted.
    """
    mobility, h, most = run.inputs.mobility, run.inputs.time_step[0], 0.0
    for a in range(equipment.model.actuator_target.shape[0]):
        if equipment.data.actuator_implicit[a] != EXPLICIT:
            force = _force_at_end(run, equipment, a)
            if equipment.data.actuator_implicit[a] != GUESSED:
                equipment.data.actuator_force[a] = force
            within = bounded(force, equipment.model.force_lower[a], equipment.model.force_upper[a])
            wrong = abs(within - equipment.data.actuator_force[a])
            for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
                k = equipment.model.actuator_dof[entry]
                most = max(most, h * mobility[k] * abs(equipment.data.actuator_moment[entry]) * wrong)
    for k in range(equipment.data.actuator_total.shape[0]):
        held = equipment.data.dof_held[k] == 1.0
        free = actuator_force(equipment, k, felt_at(robot, run, k), run.step.velocity[k])
        total = _sum_on(equipment, k) if held else free
        within = bounded(total, equipment.model.dof_force_lower[k], equipment.model.dof_force_upper[k])
        most = max(most, h * mobility[k] * abs(within - (equipment.data.actuator_total[k] if held else total)))
    return most


@inlined
def _force_over_step(equipment: EquipmentBundle, step: Step, a: int, before: float, rate: float, h: float) -> float:
    """Unbounded force of an implicit actuator whose length changes at `rate`, and at `before` before the step."""
    constant, stiffness, damping = affine_force(equipment, a)
    share = share_of(equipment, step, a)
    return force_over_step(constant, stiffness, damping, equipment.data.actuator_length[a], share, before, rate, h)


@inlined
def share_of(equipment: EquipmentBundle, step: Step, a: int) -> float:
    """The share of an implicit actuator (actuation.py): that of its dof, or its own if it is a row."""
    if equipment.model.actuator_linear[a] == IN_MATRIX:
        return step.share[equipment.model.actuator_target[a]]
    return equipment.data.actuator_share[a]


@inlined
def _stays(force: float, bound: float, lower: float, upper: float) -> bool:
    """True if a force that is held at a bound would still be at or beyond it."""
    return (bound == upper and force >= upper) or (bound == lower and force <= lower)


@inlined
def _hold(equipment: EquipmentBundle, k: int, total: float) -> None:
    """Hold the sum of dof k's actuators at the bound that it exceeds."""
    equipment.data.dof_held[k] = 1.0
    equipment.data.actuator_total[k] = bounded(
        total, equipment.model.dof_force_lower[k], equipment.model.dof_force_upper[k]
    )
    equipment.data.stiffness[k] = 0.0
    equipment.data.damping[k] = 0.0
    equipment.data.offset[k] = 0.0


@njit
def _sum_on(equipment: EquipmentBundle, k: int) -> float:
    """The unbounded sum of the actuators' forces on dof k."""
    total = equipment.data.compensation[k]
    for a in range(equipment.model.actuator_target.shape[0]):
        for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
            if equipment.model.actuator_dof[entry] == k:
                total += equipment.data.actuator_moment[entry] * equipment.data.actuator_force[a]
    return total


@inlined
def _add_explicit(equipment: EquipmentBundle) -> None:
    """Sum up the explicit forces on each dof whose sum is not held."""
    for k in range(equipment.data.dof_held.shape[0]):
        if equipment.data.dof_held[k] == 0.0:
            equipment.data.actuator_total[k] = equipment.data.compensation[k]
    for a in range(equipment.model.actuator_target.shape[0]):
        if equipment.data.actuator_implicit[a] == EXPLICIT or equipment.data.actuator_implicit[a] == GUESSED:
            for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
                k = equipment.model.actuator_dof[entry]
                if equipment.data.dof_held[k] == 0.0:
                    equipment.data.actuator_total[k] += (
                        equipment.data.actuator_moment[entry] * equipment.data.actuator_force[a]
                    )


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
