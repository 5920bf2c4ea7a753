"""Affine forces of actuators over a step, their bounds, and the sums of all actuators by dof; for both widths.

An affine force is constant - slope · length - resistance · velocity. Where it is implicit (EquipmentWork.acts), it is
part of M̂ or a row, as Equipment.actuator_linear says, unless it is held at a bound, as a constant of the step. A step
begins with those forces held that would exceed their bounds if the velocities did not change: mostly the velocities
found confirm this guess, and the step is solved at once. The same holds for the sums of dofs that have bounds.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.actuation import actuator_force, coordinate, foreseen, spring_step, weigh_springs
from artsim.sim.equipment.affine import bounded, force_over_step, share_of_row
from artsim.sim.equipment.arrays import (
    AFFINE,
    BY_ROW,
    CONSTANT,
    EXPLICIT,
    IN_MATRIX,
    PER_LENGTH,
    PER_VELOCITY,
    PID,
    EquipmentBundle,
)
from artsim.sim.equipment.bounds import at_bound, hold, side_of, still_free
from artsim.sim.equipment.rotation_servo import guess_scales, scale_rotations
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, real, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real, Vec3
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import NOT_CONVEX, Inputs, RunBundle, Step

# ------------------------------------------------------------------ the forces


@njit
def set_affine_force(inputs: Inputs, equipment: EquipmentBundle, a: int, explicit: int) -> None:
    """Set constant, slope and resistance of actuator a's force from its input, and whether it is implicit: where it is
    a spring or a damper, unless `explicit` is 1."""
    model, data = equipment.model, equipment.data
    u = data.actuator_input[a]
    zero = zero_like(u)
    slope, resistance = zero, zero
    constant = (1.0 if model.actuator_gain[a] == PID else model.gain_parameters[a, CONSTANT]) * u
    if model.actuator_gain[a] == AFFINE:
        slope = -model.gain_parameters[a, PER_LENGTH] * u
        resistance = -model.gain_parameters[a, PER_VELOCITY] * u
    if model.actuator_bias[a] == AFFINE:
        constant = constant + model.bias_parameters[a, CONSTANT]
        slope = slope - model.bias_parameters[a, PER_LENGTH]
        resistance = resistance + data.actuator_damping[a]
    data.constant[a], data.slope[a], data.resistance[a] = constant, slope, resistance
    acts = zero
    by_row = model.actuator_linear[a] == BY_ROW and inputs.convex[0] != NOT_CONVEX  # and explicit there
    if explicit == 0 and model.actuator_linear[a] != EXPLICIT and not by_row:
        acts = where_greater(slope + resistance, zero, zero + 1.0, zero)
        acts = where_greater(zero, slope, zero, where_greater(zero, resistance, zero, acts))
    data.acts[a] = acts


@njit
def set_plain_forces(inputs: Inputs, equipment: EquipmentBundle) -> None:
    """Set the forces of a pack's actuators from the inputs at hand, if no force depends on more: those without slopes
    are then constant, and the others affine with constant slopes and moment arms."""
    model, data = equipment.model, equipment.data
    for a in range(model.actuator_target.shape[0]):
        data.actuator_scale[a] = real(1.0, data.actuator_scale[a])
        if model.actuator_active[a]:
            n = model.control_first[a]
            data.actuator_input[a] = bounded(inputs.control[0, n], model.control_lower[n], model.control_upper[n])
            set_affine_force(inputs, equipment, a, 0)
            data.actuator_force[a] = bounded(data.constant[a], model.force_lower[a], model.force_upper[a])


@njit
def set_plain_lengths(model: Model, q: Lanes1, v: Lanes1, equipment: EquipmentBundle) -> None:
    """Set lengths of actuators and their rates at (q, v) where an implicit force is a row or may meet a bound, if the
    moment arms are constant."""
    data = equipment.data
    for a in range(data.actuator_length.shape[0]):
        if (equipment.model.actuator_linear[a] == BY_ROW or _has_bounds(equipment, a)) and any_positive(data.acts[a]):
            _set_plain_length(model, q, v, equipment, a)


@inlined
def _set_plain_length(model: Model, q: Lanes1, v: Lanes1, equipment: EquipmentBundle, a: int) -> None:
    """Set length of actuator a and its rate at (q, v), if the moment arms are constant."""
    data = equipment.data
    length = zero_like(data.actuator_length[a])
    for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
        k = equipment.model.actuator_dof[entry]
        length = length + data.actuator_moment[entry] * coordinate(model, q, k)
    data.actuator_length[a] = length
    data.actuator_velocity[a] = _rate(equipment, a, v)


@njit
def set_plain_explicit_forces(model: Model, q: Lanes1, v: Lanes1, equipment: EquipmentBundle) -> None:
    """Set the actuators' sums by dof at (q, v) with no force implicit, if slopes and moment arms are constant."""
    data = equipment.data
    for a in range(data.actuator_length.shape[0]):
        _set_plain_length(model, q, v, equipment, a)
        data.acts[a] = zero_like(data.acts[a])
        force = data.constant[a] - data.slope[a] * data.actuator_length[a]
        force = force - data.resistance[a] * data.actuator_velocity[a]
        data.actuator_force[a] = bounded(force, equipment.model.force_lower[a], equipment.model.force_upper[a])
    gather(equipment)


@inlined
def affine_force(equipment: EquipmentBundle, a: int) -> Vec3:
    """(constant, stiffness, damping) of a force that is constant - stiffness · length - damping · velocity."""
    data = equipment.data
    scale = data.actuator_scale[a]
    return scale * data.constant[a], scale * data.slope[a], scale * data.resistance[a]


@inlined
def _rate(equipment: EquipmentBundle, a: int, v: Lanes1) -> Real:
    """Rate of the length of actuator a at velocities v (nv,)."""
    rate = zero_like(equipment.data.actuator_length[a])
    for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
        rate = rate + equipment.data.actuator_moment[entry] * v[equipment.model.actuator_dof[entry]]
    return rate


@inlined
def _force_over_step(equipment: EquipmentBundle, step: Step, a: int, rate: Real, h: float) -> Real:
    """Unbounded force of an implicit actuator whose length changes at `rate`."""
    data = equipment.data
    constant, stiffness, damping = affine_force(equipment, a)
    share = data.actuator_share[a]
    if equipment.model.actuator_linear[a] == IN_MATRIX:
        share = step.share[equipment.model.actuator_target[a]]
    before, length = data.actuator_velocity[a], data.actuator_length[a]
    return force_over_step(constant, stiffness, damping, length, share, before, rate, h)


# ------------------------------------------------------------------ sums by dof


@njit
def gather(equipment: EquipmentBundle) -> None:
    """Set the actuators' sums by dof: actuator_total of the forces that are constant in this step, and stiffness,
    damping and offset of those in M̂. A bounded sum without forces in M̂ is known, and so is one that is held.
    """
    model, data = equipment.model, equipment.data
    for k in range(data.offset.shape[0]):
        zero = zero_like(data.offset[k])
        data.actuator_total[k] = data.compensation[k]
        data.stiffness[k], data.damping[k], data.offset[k] = zero, zero, zero
    for a in range(model.actuator_target.shape[0]):
        _add(equipment, a)
    for k in range(data.offset.shape[0]):
        if _is_bounded(model.dof_force_lower[k], model.dof_force_upper[k]):
            zero, total = zero_like(data.offset[k]), data.actuator_total[k]
            within = bounded(total, model.dof_force_lower[k], model.dof_force_upper[k])
            data.actuator_total[k] = where_greater(data.stiffness[k] + data.damping[k], zero, total, within)
            _bind_sum(equipment, k)


@inlined
def _add(equipment: EquipmentBundle, a: int) -> None:
    """Add actuator a to the sums of its dofs."""
    model, data = equipment.model, equipment.data
    acts = data.acts[a]
    side, zero = acts * data.held[a], zero_like(acts)
    force = where_greater(acts, zero, zero, data.actuator_force[a])
    force = at_bound(side, model.force_lower[a], model.force_upper[a], force)
    for entry in range(model.actuator_entry[a], model.actuator_entry[a + 1]):
        k = model.actuator_dof[entry]
        data.actuator_total[k] += data.actuator_moment[entry] * force
    if model.actuator_linear[a] == IN_MATRIX:
        free = acts - absolute(side)
        k, gear = model.actuator_target[a], data.actuator_moment[model.actuator_entry[a]]
        constant, stiffness, damping = affine_force(equipment, a)
        data.stiffness[k] += gear * gear * (free * stiffness)
        data.damping[k] += gear * gear * (free * damping)
        data.offset[k] += gear * (free * constant)


@inlined
def _is_bounded(lower: float, upper: float) -> bool:
    """True if a force has a bound."""
    return lower > -math.inf or upper < math.inf


@inlined
def _bind_sum(equipment: EquipmentBundle, k: int) -> None:
    """Replace the sums of dof k by the bound where the sum is held there."""
    model, data = equipment.model, equipment.data
    side = data.dof_held[k]
    data.actuator_total[k] = at_bound(side, model.dof_force_lower[k], model.dof_force_upper[k], data.actuator_total[k])
    data.offset[k] = at_bound(side, 0.0, 0.0, data.offset[k])
    data.stiffness[k] = at_bound(side, 0.0, 0.0, data.stiffness[k])
    data.damping[k] = at_bound(side, 0.0, 0.0, data.damping[k])


@njit
def release(equipment: EquipmentBundle) -> None:
    """Release all forces, and set the sums by dof."""
    data = equipment.data
    for k in range(data.dof_held.shape[0]):
        data.dof_held[k] = zero_like(data.dof_held[k])
    for a in range(data.held.shape[0]):
        data.held[a] = zero_like(data.held[a])
    gather(equipment)


# ------------------------------------------------------------------ weights and bounds


@njit
def weigh(model: Model, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Set the shares of all springs (actuation.py), in which actuators count as within their bounds: all are released.
    The share of an actuator that is a row comes from the mobility along its moment arms.
    """
    release(equipment)
    weigh_springs(model, run, equipment)
    data = equipment.data
    for a in range(data.acts.shape[0]):
        if equipment.model.actuator_linear[a] == BY_ROW and any_positive(data.acts[a]):
            mobility = zero_like(data.acts[a])
            for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
                moment = data.actuator_moment[entry]
                mobility = mobility + moment * moment * run.inputs.mobility[equipment.model.actuator_dof[entry]]
            _, stiffness, _ = affine_force(equipment, a)
            data.actuator_share[a] = share_of_row(run.inputs.time_step[0], stiffness, mobility)


@njit
def guess_bounds(model: Model, q: Lanes1, v: Lanes1, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Hold the implicit forces, and the sums of dofs, that would exceed their bounds if the velocities did not change,
    and no others."""
    step, data, h = run.step, equipment.data, spring_step(run.inputs)
    changed = zero_like(step.bound_rounds[0])
    for k in range(data.dof_held.shape[0]):
        changed = largest(changed, absolute(data.dof_held[k]))
        data.dof_held[k] = zero_like(changed)
    for a in range(data.held.shape[0]):
        lower, upper = equipment.model.force_lower[a], equipment.model.force_upper[a]
        servo, acts = equipment.model.actuator_axis[a] >= 0, data.acts[a]
        if (servo or _is_bounded(lower, upper)) and any_positive(acts + absolute(data.held[a])):
            force = _force_over_step(equipment, step, a, data.actuator_velocity[a], h)
            side = acts * side_of(force, (lower, upper), zero_like(force))
            changed = largest(changed, absolute(side - data.held[a]))
            data.held[a] = side
            if servo:
                data.actuator_force[a] = where_greater(acts, zero_like(acts), force, data.actuator_force[a])
    guess_scales(equipment)
    if any_positive(changed):
        gather(equipment)
    for k in range(data.dof_held.shape[0]):
        bounds = equipment.model.dof_force_lower[k], equipment.model.dof_force_upper[k]
        if _is_bounded(bounds[0], bounds[1]):
            place = coordinate(model, q, k) + h * foreseen(step.share[k], v[k], v[k])
            total = actuator_force(equipment, k, place, v[k])
            data.dof_held[k] = side_of(total, bounds, zero_like(total))
            _bind_sum(equipment, k)


@njit
def hold_actuators(run: RunBundle, equipment: EquipmentBundle, chosen: Real, one: Real) -> Real:
    """Hold at their bounds the implicit forces, and the sums of dofs, that exceed them over the step that ends at
    step.velocity, and release those that no longer would; 1 where a force changes. Rotation servos whose norm is not at
    its bound are scaled. Where nothing changes, actuator_force (na,) holds the forces that acted; in packs, those that
    matter to bounds.

    Only lanes where `chosen` is 1 change; where `one` is 1, only the first force that has to change does. That ends for
    every positive definite matrix (Murty 1974, Note on a Bard-type scheme).
    """
    if not any_positive(chosen):
        return zero_like(chosen)
    changed = _hold_forces(run, equipment, chosen, one)
    changed = largest(changed, scale_rotations(equipment, chosen))
    changed = _hold_sums(equipment, chosen, one, changed)
    if any_positive(changed):
        gather(equipment)
    return changed


@njit
def _hold_forces(run: RunBundle, equipment: EquipmentBundle, chosen: Real, one: Real) -> Real:
    """Hold or release single forces; 1 where one changes. A force that does not count, since the sum of its dof is
    held, is not held itself."""
    model, data = equipment.model, equipment.data
    changed = zero_like(chosen)
    for a in range(model.actuator_target.shape[0]):
        acts = data.acts[a]
        if not any_positive(acts) or not (run.lanes is None or _has_bounds(equipment, a)):
            continue
        zero, lower, upper = zero_like(acts), model.force_lower[a], model.force_upper[a]
        rate = _rate(equipment, a, run.step.velocity)
        force = _force_over_step(equipment, run.step, a, rate, run.inputs.time_step[0])
        idle = zero
        if model.actuator_linear[a] == IN_MATRIX:
            idle = absolute(data.dof_held[model.actuator_target[a]]) * (1.0 - absolute(data.held[a]))
        if _is_bounded(lower, upper):
            free = still_free(chosen, one, changed)
            changed = largest(changed, hold(data.held, a, force, (lower, upper), acts * (free - free * idle)))
        force = where_greater(idle, zero, bounded(force, lower, upper), force)
        force = at_bound(data.held[a], lower, upper, force)
        data.actuator_force[a] = where_greater(acts, zero, force, data.actuator_force[a])
    return changed


@njit
def note_unbounded_forces(run: RunBundle, equipment: EquipmentBundle) -> None:
    """Set actuator_force of the implicit actuators without bounds, which packs leave out, over the step that ends at
    step.velocity."""
    for a in range(equipment.model.actuator_target.shape[0]):
        if any_positive(equipment.data.acts[a]) and not _has_bounds(equipment, a):
            rate = _rate(equipment, a, run.step.velocity)
            force = _force_over_step(equipment, run.step, a, rate, run.inputs.time_step[0])
            equipment.data.actuator_force[a] = force


@inlined
def _has_bounds(equipment: EquipmentBundle, a: int) -> bool:
    """True if the force of actuator a, its norm, or a sum to which it belongs has a bound."""
    model = equipment.model
    found = model.actuator_axis[a] >= 0 or _is_bounded(model.force_lower[a], model.force_upper[a])
    if model.actuator_linear[a] == IN_MATRIX:
        k = model.actuator_target[a]
        found = found or _is_bounded(model.dof_force_lower[k], model.dof_force_upper[k])
    return found


@njit
def _hold_sums(equipment: EquipmentBundle, chosen: Real, one: Real, changed: Real) -> Real:
    """Hold or release the sums of dofs, after forces have `changed`; 1 where any changes."""
    model, data = equipment.model, equipment.data
    if not _sum_up(equipment):
        return changed
    for k in range(data.dof_held.shape[0]):
        lower, upper = model.dof_force_lower[k], model.dof_force_upper[k]
        if _is_bounded(lower, upper):
            free = still_free(chosen, one, changed) * _varies(equipment, k)
            changed = largest(changed, hold(data.dof_held, k, data.dof_force[k], (lower, upper), free))
    return changed


@inlined
def _varies(equipment: EquipmentBundle, k: int) -> Real:
    """1 where the sum of dof k depends on the velocities found, or did before it was held."""
    data = equipment.data
    zero = zero_like(data.offset[k])
    varies = data.stiffness[k] + data.damping[k] + absolute(data.dof_held[k])
    return where_greater(varies, zero, zero + 1.0, zero)


@njit
def _sum_up(equipment: EquipmentBundle) -> bool:
    """Set dof_force (nv,) from actuator_force; False, and nothing set, if the sum of no dof has a bound."""
    model, data = equipment.model, equipment.data
    found = False
    for k in range(data.dof_force.shape[0]):
        found = found or _is_bounded(model.dof_force_lower[k], model.dof_force_upper[k])
        data.dof_force[k] = data.compensation[k]
    if found:
        for a in range(model.actuator_target.shape[0]):
            for entry in range(model.actuator_entry[a], model.actuator_entry[a + 1]):
                data.dof_force[model.actuator_dof[entry]] += data.actuator_moment[entry] * data.actuator_force[a]
    return found


@njit
def excess_at_bounds(run: RunBundle, equipment: EquipmentBundle, chosen: Real) -> Real:
    """The velocity that the largest excess of a force over its bound in the step would cause [rad/s or m/s], in both
    widths. actuator_force (na,) then holds the forces that acted where `chosen` is 1; in packs, those that matter.
    """
    model, data, h = equipment.model, equipment.data, run.inputs.time_step[0]
    zero = zero_like(chosen)
    most = zero
    for a in range(model.actuator_target.shape[0]):
        acts = data.acts[a]
        if not any_positive(acts) or not (run.lanes is None or _has_bounds(equipment, a)):
            continue
        force = _force_over_step(equipment, run.step, a, _rate(equipment, a, run.step.velocity), h)
        free = where_greater(absolute(data.held[a]), zero, zero, chosen * acts)
        data.actuator_force[a] = where_greater(free, zero, force, data.actuator_force[a])
        wrong = absolute(bounded(force, model.force_lower[a], model.force_upper[a]) - data.actuator_force[a])
        wrong = where_greater(acts, zero, wrong, zero)
        for entry in range(model.actuator_entry[a], model.actuator_entry[a + 1]):
            mobility = run.inputs.mobility[model.actuator_dof[entry]]
            most = largest(most, h * mobility * absolute(data.actuator_moment[entry]) * wrong)
    if _sum_up(equipment):
        for k in range(data.dof_held.shape[0]):
            lower, upper = model.dof_force_lower[k], model.dof_force_upper[k]
            total = data.dof_force[k]
            acted = at_bound(data.dof_held[k], lower, upper, total)
            wrong = _varies(equipment, k) * absolute(bounded(total, lower, upper) - acted)
            most = largest(most, h * run.inputs.mobility[k] * wrong)
    return most
