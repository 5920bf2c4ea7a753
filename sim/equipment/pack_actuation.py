"""Actuators and drives of packs: sums by dof, and the bounds that forces reach in each lane.

An implicit force that leaves its bounds is held at the bound, as actuators.py does for one robot's actuators; a step
begins with the forces held that were held in the last step.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import coordinate, driven_at, felt_at, weigh_springs
from artsim.sim.equipment.affine import SLACK, bounded, force_over_step, share_of_row
from artsim.sim.equipment.arrays import EXPLICIT, GUESSED, IN_MATRIX
from artsim.sim.equipment.pack_equipment import PackEquipment
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, lane_set, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Pack
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import Inputs, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle


@njit
def set_constants(inputs: Inputs, equipment: PackEquipment) -> None:
    """Set the part of every actuator's force that its control determines, from the inputs at hand."""
    model, data = equipment.model, equipment.data
    for n in range(model.number.shape[0]):
        if model.varying[n] == 0:
            u = bounded(inputs.control[0, model.control[n]], model.control_lower[n], model.control_upper[n])
            data.constant[n] = model.gain[n] * u + model.bias[n]


@njit
def weigh(model: Model, run: RunBundle, equipment: PackEquipment) -> None:
    """Set the weights of springs, in which actuators count as within their bounds. Leaves data.stiffness so."""
    actuators, data = equipment.model, equipment.data
    for k in range(data.stiffness.shape[0]):
        data.stiffness[k] = zero_like(data.stiffness[k])
    for n in range(actuators.number.shape[0]):
        mobility = 0.0
        for entry in range(actuators.entry[n], actuators.entry[n + 1]):
            k, moment = actuators.dof[entry], actuators.moment[entry]
            mobility += moment * moment * run.inputs.mobility[k]
            if actuators.implicit[n] == IN_MATRIX:
                data.stiffness[k] = data.stiffness[k] + moment * moment * data.slope[n]
        data.share[n] = share_of_row(run.inputs.time_step[0], data.slope[n], mobility)
    weigh_springs(model, run, equipment)


@njit
def gather(equipment: PackEquipment) -> None:
    """Set the actuators' sums by dof, as in equipment/actuators.py: forces that are held count as explicit."""
    model, data = equipment.model, equipment.data
    for k in range(data.offset.shape[0]):
        zero = zero_like(data.offset[k])
        data.sum_total[k] = data.exerted[k]
        data.sum_offset[k] = zero
        data.sum_stiffness[k] = zero
        data.sum_damping[k] = zero
    for n in range(model.number.shape[0]):
        _add(equipment, n)
    for k in range(data.offset.shape[0]):
        zero = zero_like(data.offset[k])
        total = data.sum_total[k]
        if model.dof_implicit[k] == 0:
            total = bounded(total, model.dof_lower[k], model.dof_upper[k])
        side = data.dof_held[k]
        data.actuator_total[k] = _at_bound(side, model.dof_lower[k], model.dof_upper[k], total)
        data.offset[k] = _at_bound(side, 0.0, 0.0, data.sum_offset[k])
        data.stiffness[k] = _at_bound(side, 0.0, 0.0, data.sum_stiffness[k])
        data.damping[k] = _at_bound(side, 0.0, 0.0, data.sum_damping[k])


@inlined
def _add(equipment: PackEquipment, n: int) -> None:
    """Add actuator n to the sums of its dofs."""
    model, data = equipment.model, equipment.data
    constant, side = data.constant[n], data.held[n]
    zero = zero_like(constant)
    if model.implicit[n] == EXPLICIT:
        force = bounded(constant, model.force_lower[n], model.force_upper[n])
    else:
        force = _at_bound(side, model.force_lower[n], model.force_upper[n], zero)
    for entry in range(model.entry[n], model.entry[n + 1]):
        k, moment = model.dof[entry], model.moment[entry]
        data.sum_total[k] = data.sum_total[k] + moment * force
        if model.implicit[n] == IN_MATRIX:
            data.sum_offset[k] = data.sum_offset[k] + _at_bound(side, 0.0, 0.0, moment * constant)
            stiffness, damping = moment * moment * data.slope[n], moment * moment * data.resistance[n]
            data.sum_stiffness[k] = data.sum_stiffness[k] + _at_bound(side, 0.0, 0.0, stiffness)
            data.sum_damping[k] = data.sum_damping[k] + _at_bound(side, 0.0, 0.0, damping)


@inlined
def _at_bound(side: Pack, lower: float, upper: float, free: Pack) -> Pack:
    """The bound at which a force is held: `lower` where `side` is -1, `upper` where `side` is 1, elsewhere `free`."""
    zero = zero_like(side)
    return where_greater(side, zero, zero + upper, where_greater(zero, side, zero + lower, free))


@inlined
def still_free(chosen: Pack, one: Pack, changed: Pack) -> Pack:
    """1 in the chosen lanes that may still change a force: those where `one` is 0, or no force has changed yet."""
    return chosen - chosen * one * changed


@njit
def hold_forces(robot: RobotBundle, run: RunBundle, equipment: PackEquipment, chosen: Pack, one: Pack) -> Pack:
    """Hold forces that exceed their bounds over the step that ends at step.velocity, and release those that no longer
    would; 1 in lanes where a force changes. Only lanes where `chosen` is 1 change; where `one` is 1, only the first
    force that has to change does, as in actuators.clamp_actuators.
    """
    model, data = equipment.model, equipment.data
    state, step = robot.state, run.step
    changed = zero_like(chosen)
    for k in range(step.velocity.shape[0]):
        lower, upper = model.dof_lower[k], model.dof_upper[k]
        if model.dof_implicit[k] == 1 and (lower > -math.inf or upper < math.inf):
            total = data.sum_total[k] + data.sum_offset[k]
            total = total - data.sum_stiffness[k] * felt_at(robot, run, k) - data.sum_damping[k] * step.velocity[k]
            free = still_free(chosen, one, changed)
            changed = largest(changed, _hold(data.dof_held, k, total, (lower, upper), free))
    for n in range(model.number.shape[0]):
        lower, upper = model.force_lower[n], model.force_upper[n]
        if model.implicit[n] != EXPLICIT and (lower > -math.inf or upper < math.inf):
            share = data.share[n]
            if model.implicit[n] == IN_MATRIX:
                share = step.share[model.dof[model.entry[n]]]
            length, before = length_and_rate(robot, equipment, n, state.qvel)
            _, rate = length_and_rate(robot, equipment, n, step.velocity)
            force = force_over_step(
                data.constant[n],
                data.slope[n],
                data.resistance[n],
                length,
                share,
                before,
                rate,
                run.inputs.time_step[0],
            )
            free = still_free(chosen, one, changed)
            changed = largest(changed, _hold(data.held, n, force, (lower, upper), free * data.acts[n]))
    return changed


@inlined
def length_and_rate(robot: RobotBundle, equipment: PackEquipment, n: int, v: Lanes1) -> tuple[Pack, Pack]:
    """Length of actuator n, and its rate at velocities v (nv,)."""
    model = equipment.model
    length = zero_like(v[0])
    rate = length
    for entry in range(model.entry[n], model.entry[n + 1]):
        k, moment = model.dof[entry], model.moment[entry]
        length = length + moment * coordinate(robot.model, robot.state.qpos, k)
        rate = rate + moment * v[k]
    return length, rate


@njit
def set_drives(run: RunBundle) -> None:
    """Set the gains of drives, and the forces applied: those commanded and those of drives held at their largest
    force."""
    inputs, step, held = run.inputs, run.step, run.lanes.data.drive_held
    for k in range(step.applied.shape[0]):
        step.applied[k] = step.commanded[k]
        step.stiffness[k], step.damping[k] = _gains(run, k)
        if inputs.drive_limit[k] < math.inf:
            step.applied[k] = step.applied[k] + _at_bound(
                held[k], -inputs.drive_limit[k], inputs.drive_limit[k], zero_like(held[k])
            )
            step.stiffness[k] = _at_bound(held[k], 0.0, 0.0, step.stiffness[k])
            step.damping[k] = _at_bound(held[k], 0.0, 0.0, step.damping[k])


@inlined
def _gains(run: RunBundle, k: int) -> tuple[Pack, Pack]:
    """Stiffness and damping of drive k within its bounds."""
    inertia = run.step.drive_inertia[k]
    return inertia * run.inputs.drive_stiffness[k], inertia * run.inputs.drive_damping[k]


@njit
def hold_drives(robot: RobotBundle, run: RunBundle, rows: Rows, chosen: Pack, one: Pack) -> Pack:
    """Hold drives that exceed their largest forces over the step, and release those that no longer would; 1 in lanes
    where a drive changes. `chosen` and `one` as in hold_forces."""
    inputs, step = run.inputs, run.step
    changed = zero_like(chosen)
    for k in range(step.velocity.shape[0]):
        limit = inputs.drive_limit[k]
        if rows.implicit[k] and limit < math.inf:
            stiffness, damping = _gains(run, k)
            force = stiffness * (inputs.target[0, k] - driven_at(robot.state, run, k))
            force = force + damping * (inputs.target_velocity[0, k] - step.velocity[k])
            free = still_free(chosen, one, changed)
            changed = largest(changed, _hold(run.lanes.data.drive_held, k, force, (-limit, limit), free))
    return changed


@inlined
def _hold(held: Lanes1, n: int, force: Pack, bounds: tuple[float, float], chosen: Pack) -> Pack:
    """Set held[n] to the bound that the unbounded force exceeds, or to 0 if the force was held at a bound that it no
    longer exceeds; 1 in lanes where held[n] changes.
    """
    lower, upper = bounds
    zero = zero_like(force)
    one = zero + 1.0
    slack = SLACK * absolute(force)
    before = held[n]
    # a force that is held stays held at the bound itself; a force that is not held may exceed it by rounding
    above = where_greater(force, upper + where_greater(before, zero, zero, slack), one, zero)
    below = where_greater(lower - where_greater(zero, before, zero, slack), force, one, zero)
    # a force that leaves its bound is released first, even if it would be beyond the other bound: fewer rounds cycle
    side = above - below
    staying = where_greater(before * side, zero, before, zero)
    now = where_greater(absolute(before), zero, staying, side)
    now = where_greater(chosen, zero, now, before)
    held[n] = now
    return where_greater(absolute(now - before), zero, one, zero)


@njit
def begin_held(run: RunBundle, equipment: PackEquipment) -> None:
    """Hold the forces that were held at the end of the last step, also where a step is taken again."""
    lanes = run.lanes
    for k in range(lanes.data.drive_held.shape[0]):
        lanes.data.drive_held[k] = lanes.data.drive_was_held[k]
        equipment.data.dof_held[k] = equipment.data.dof_was_held[k]
    for n in range(equipment.data.held.shape[0]):
        equipment.data.held[n] = equipment.data.was_held[n]


@njit
def keep_held(run: RunBundle, equipment: PackEquipment) -> None:
    """Store the held forces for the next step."""
    lanes = run.lanes
    for k in range(lanes.data.drive_held.shape[0]):
        lanes.data.drive_was_held[k] = lanes.data.drive_held[k]
        equipment.data.dof_was_held[k] = equipment.data.dof_held[k]
    for n in range(equipment.data.held.shape[0]):
        equipment.data.was_held[n] = equipment.data.held[n]


@njit
def release_forces(equipment: PackEquipment) -> None:
    """Release all actuators, so that the next step begins with none held."""
    for k in range(equipment.data.dof_was_held.shape[0]):
        equipment.data.dof_was_held[k] = zero_like(equipment.data.dof_was_held[k])
    for n in range(equipment.data.was_held.shape[0]):
        equipment.data.was_held[n] = zero_like(equipment.data.was_held[n])


@njit
def keep_drive_impulses(robot: RobotBundle, run: RunBundle, solver: SolverBundle) -> None:
    """Store the impulses of drives that have a largest force, as a single robot's rows have them: 0 where the step has
    no rows.
    """
    inputs, step, data = run.inputs, run.step, run.lanes.data
    if data.bounded.shape[0] == 0:
        return
    zero = zero_like(data.leaves[0])
    has_rows = zero
    if solver.pack is not None:
        has_rows = solver.pack.bound[0]
    for n in range(data.bounded.shape[0]):
        has_rows = largest(has_rows, absolute(data.drive_held[data.bounded[n, 0]]))
    for n in range(data.bounded.shape[0]):
        k, place = data.bounded[n, 0], data.bounded[n, 1]
        limit = inputs.drive_limit[k]
        stiffness, damping = _gains(run, k)
        force = stiffness * (inputs.target[0, k] - driven_at(robot.state, run, k))
        force = force + damping * (inputs.target_velocity[0, k] - step.velocity[k])
        impulse = inputs.time_step[0] * _at_bound(data.drive_held[k], -limit, limit, force)
        robot.state.impulse[place] = where_greater(has_rows, zero, impulse, zero)


@njit
def take_bounds(equipment: PackEquipment, run: RunBundle, lane: int) -> None:
    """Hold in a lane the forces that were at their bounds in the step of the single robot."""
    model, alone, data = equipment.model, run.lanes.alone, run.lanes.data
    for n in range(data.bounded.shape[0]):
        k = data.bounded[n, 0]
        most = (1.0 - SLACK) * run.inputs.time_step[0] * run.inputs.drive_limit[k]
        impulse = alone.state.impulse[data.bounded[n, 1]]
        lane_set(data.drive_held, k, lane, 1.0 if impulse >= most else -1.0 if impulse <= -most else 0.0)
    for n in range(model.number.shape[0]):
        a = model.number[n]
        side = 1.0 if alone.forces.actuator_force[a] >= model.force_upper[n] else -1.0
        lane_set(equipment.data.held, n, lane, side if alone.forces.actuator_implicit[a] == GUESSED else 0.0)
    for k in range(alone.forces.dof_held.shape[0]):
        side = 1.0 if alone.forces.actuator_total[k] >= model.dof_upper[k] else -1.0
        lane_set(equipment.data.dof_held, k, lane, side if alone.forces.dof_held[k] == 1.0 else 0.0)
