"""Actuators of packs: sums by dof, and the bounds that forces reach in each lane.

An implicit force that leaves its bounds is held at the bound, as actuators.py does for one robot's actuators; a step
begins with the forces held that were held in the last step.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import coordinate, felt_at, weigh_springs
from artsim.sim.equipment.affine import bounded, force_over_step, share_of_row
from artsim.sim.equipment.arrays import EXPLICIT, GUESSED, IN_MATRIX
from artsim.sim.equipment.bounds import at_bound, hold, still_free
from artsim.sim.equipment.pack_equipment import PackEquipment
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_set, zero_like
from artsim.sim.foundation.records import Lanes1, Pack
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import Inputs, RunBundle


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
        data.actuator_total[k] = at_bound(side, model.dof_lower[k], model.dof_upper[k], total)
        data.offset[k] = at_bound(side, 0.0, 0.0, data.sum_offset[k])
        data.stiffness[k] = at_bound(side, 0.0, 0.0, data.sum_stiffness[k])
        data.damping[k] = at_bound(side, 0.0, 0.0, data.sum_damping[k])


@inlined
def _add(equipment: PackEquipment, n: int) -> None:
    """Add actuator n to the sums of its dofs."""
    model, data = equipment.model, equipment.data
    constant, side = data.constant[n], data.held[n]
    zero = zero_like(constant)
    if model.implicit[n] == EXPLICIT:
        force = bounded(constant, model.force_lower[n], model.force_upper[n])
    else:
        force = at_bound(side, model.force_lower[n], model.force_upper[n], zero)
    for entry in range(model.entry[n], model.entry[n + 1]):
        k, moment = model.dof[entry], model.moment[entry]
        data.sum_total[k] = data.sum_total[k] + moment * force
        if model.implicit[n] == IN_MATRIX:
            data.sum_offset[k] = data.sum_offset[k] + at_bound(side, 0.0, 0.0, moment * constant)
            stiffness, damping = moment * moment * data.slope[n], moment * moment * data.resistance[n]
            data.sum_stiffness[k] = data.sum_stiffness[k] + at_bound(side, 0.0, 0.0, stiffness)
            data.sum_damping[k] = data.sum_damping[k] + at_bound(side, 0.0, 0.0, damping)


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
            changed = largest(changed, hold(data.dof_held, k, total, (lower, upper), free))
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
            changed = largest(changed, hold(data.held, n, force, (lower, upper), free * data.acts[n]))
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
def begin_held(equipment: PackEquipment) -> None:
    """Hold the forces that were held at the end of the last step, also where a step is taken again."""
    for k in range(equipment.data.dof_held.shape[0]):
        equipment.data.dof_held[k] = equipment.data.dof_was_held[k]
    for n in range(equipment.data.held.shape[0]):
        equipment.data.held[n] = equipment.data.was_held[n]


@njit
def keep_held(equipment: PackEquipment) -> None:
    """Store the held forces for the next step."""
    for k in range(equipment.data.dof_held.shape[0]):
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
def take_bounds(equipment: PackEquipment, run: RunBundle, lane: int) -> None:
    """Hold in a lane the forces that were at their bounds in the step of the single robot."""
    model, alone = equipment.model, run.lanes.alone
    for n in range(model.number.shape[0]):
        a = model.number[n]
        side = 1.0 if alone.forces.actuator_force[a] >= model.force_upper[n] else -1.0
        lane_set(equipment.data.held, n, lane, side if alone.forces.actuator_implicit[a] == GUESSED else 0.0)
    for k in range(alone.forces.dof_held.shape[0]):
        side = 1.0 if alone.forces.actuator_total[k] >= model.dof_upper[k] else -1.0
        lane_set(equipment.data.dof_held, k, lane, side if alone.forces.dof_held[k] == 1.0 else 0.0)
