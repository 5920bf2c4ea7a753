"""Steps of a pack: 8 robots of one model at once, with masses, gains, inputs and states of their own.

All lanes take the step without rows, or that with rows of joint friction and of contacts with what never moves. Those
that it would lead beyond another bound, that touch something else or that the solver of packs does not settle take the
step of a single robot instead, the very entry that `artsim run` calls: so a lane never depends on what the others do.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.actuation import (
    actuator_force,
    control_row,
    coordinate,
    felt_at,
    find_places,
    implicit_system,
    is_beyond_drive,
    weigh_springs,
)
from artsim.sim.constraints.limit import beyond_limits
from artsim.sim.coupling import reduce_matrix
from artsim.sim.dynamics import composites, coupled_bias, mass_matrix
from artsim.sim.equipment.affine import add_to_joint, bounded, force_over_step, is_beyond
from artsim.sim.integrators import move
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import accelerations, kinematics, like, world_inertia
from artsim.sim.lanes import highest, lane_count, lane_get, lane_set, where_greater, zero_like
from artsim.sim.midpoint import foresee_spin, turning_and_tautness, unsettled
from artsim.sim.pack_detection import find_in_lanes, find_outrun, place_world
from artsim.sim.pack_rows import build_in_lanes, may_gain_energy, note_impulses
from artsim.sim.recordtype import run_entry
from artsim.sim.rollout import ALONE, CROWD, HELD, INPUT_ROW, STEP
from artsim.sim.run import (
    CROWDED,
    FIRST_SAMPLE,
    NON_FINITE,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    STOP_DOF,
    STOP_REASON,
)
from artsim.sim.solvers.cone import largest, least
from artsim.sim.system import free_step
from artsim.sim.tables import scatter


@njit
def roll(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, rules: Any, solver: Any) -> None:
    """Take steps from state as block.plan says, and record; fewer where there is no room for all contacts.

    actuators and equipment_data: of actuators; controls: inputs over time; lanes: what is known of the lanes; single:
    the arrays of the step of a single robot; block: what is recorded; pack: of rows, where there may be some;
    contact_model, slots and found: where there may be contacts, shapes, contacts of the lanes, detection's
    scratch. A lane whose velocities are not finite is dead: its numbers go on and mean nothing.
    """
    state, data = robot.state, robot.data
    block, lanes = run.block, run.lanes
    if contact is not None:
        place_world(robot.model, data, contact)
    for _ in range(block.plan[STEPS_TO_TAKE]):
        _choose_inputs(data, run.inputs, equipment, lanes)
        if lanes.data.counters[STEP] % block.plan[STEPS_PER_ROW] == 0:
            _record(state, block, lanes.data.counters[STEP] // block.plan[STEPS_PER_ROW])
        _step(robot, run, rows, equipment, lanes, solver, contact)
        if lanes.data.counters[CROWD] == 1:
            return
        lanes.data.counters[STEP] += 1
    for lane in range(lane_count(state.qpos)):
        if lanes.data.alive[lane]:
            _record_final(state, block, lane)


@njit
def _choose_inputs(data: Any, inputs: Any, equipment: Any, lanes: Any) -> None:
    """The one row of inputs: those that act on this step; and what they make of the equipment."""
    row = control_row(lanes.controls.start_step, lanes.data.counters[INPUT_ROW], lanes.data.counters[STEP])
    if row == lanes.data.counters[INPUT_ROW]:
        return
    lanes.data.counters[INPUT_ROW] = row
    _spread_row(data, lanes.controls.torque, row, inputs.torque)
    _spread_row(data, lanes.controls.target, row, inputs.target)
    _spread_row(data, lanes.controls.target_velocity, row, inputs.target_velocity)
    _spread_row(data, lanes.controls.control, row, inputs.control)
    _actuate(data, inputs, equipment)


@njit
def _actuate(data: Any, inputs: Any, equipment: Any) -> None:
    """The actuators' forces by dof, as equipment/actuators.py has them."""
    zero = like(0.0, data)
    for k in range(equipment.data.offset.shape[0]):
        equipment.data.actuator_total[k] = zero
        equipment.data.offset[k] = zero
        equipment.data.stiffness[k] = zero
        equipment.data.damping[k] = zero
    for n in range(equipment.model.dof.shape[0]):
        k = equipment.model.dof[n]
        gear = equipment.model.gear[n]
        u = bounded(
            inputs.control[0, equipment.model.control[n]],
            equipment.model.control_lower[n],
            equipment.model.control_upper[n],
        )
        constant = equipment.model.gain[n] * u + equipment.model.bias[n]
        equipment.data.constant[n] = constant
        if equipment.model.implicit[n] == 1:
            add_to_joint(equipment.data, k, gear, constant, equipment.model.stiffness[n], equipment.model.damping[n])
        else:
            force = bounded(constant, equipment.model.force_lower[n], equipment.model.force_upper[n])
            equipment.data.actuator_total[k] = equipment.data.actuator_total[k] + gear * force
    for k in range(equipment.data.offset.shape[0]):
        if equipment.model.dof_implicit[k] == 0:
            equipment.data.actuator_total[k] = bounded(
                equipment.data.actuator_total[k], equipment.model.dof_lower[k], equipment.model.dof_upper[k]
            )


@inlined
def _spread_row(data: Any, table: Any, row: Any, out: Any) -> None:
    """Row `row` of the table (1 or lanes, rows, n) into the lanes of out (1, n)."""
    for k in range(out.shape[1]):
        if table.shape[0] == 1:
            out[0, k] = like(table[0, row, k], data)
        else:
            for lane in range(lane_count(out)):
                lane_set(out, k, lane, table[lane, row, k])


@njit
def _record(state: Any, block: Any, row: Any) -> None:
    """The state before the step as row `row` of the block at hand."""
    if block.qpos.shape[1] > 0:
        n = block.qpos.shape[2]
        start = block.plan[FIRST_SAMPLE] * block.qpos.shape[1] + row
        scatter(state.qpos, block.qpos, start * n, block.qpos.shape[1] * n)
    if block.qvel.shape[1] > 0:
        n = block.qvel.shape[2]
        start = block.plan[FIRST_SAMPLE] * block.qvel.shape[1] + row
        scatter(state.qvel, block.qvel, start * n, block.qvel.shape[1] * n)


@inlined
def _record_final(state: Any, block: Any, lane: Any) -> None:
    sample = block.plan[FIRST_SAMPLE] + lane
    for n in range(block.final_qpos.shape[1]):
        block.final_qpos[sample, n] = lane_get(state.qpos, n, lane)
    for k in range(block.final_qvel.shape[1]):
        block.final_qvel[sample, k] = lane_get(state.qvel, k, lane)


@njit
def _step(robot: Any, run: Any, rows: Any, equipment: Any, lanes: Any, solver: Any, contact: Any) -> None:
    """One semi-implicit step of all lanes; none, and lanes.counters[CROWD] = 1, where contacts find no room."""
    model, state, data = robot.model, robot.state, robot.data
    inputs, step = run.inputs, run.step
    kinematics(model, state.qpos, data)
    world_inertia(model, data)
    if contact is not None and not find_in_lanes(robot, inputs, contact, lanes.data.alive):
        lanes.data.counters[CROWD] = 1
        return
    for k in range(step.applied.shape[0]):
        step.applied[k] = inputs.torque[0, k]
        step.stiffness[k] = inputs.drive_stiffness[k]
        step.damping[k] = inputs.drive_damping[k]
        step.middle[k] = state.qvel[k]
    foresee_spin(model, state.qvel, data, inputs.time_step[0], step.middle)
    find_places(model, state.qpos, run, 0)
    weigh_springs(model, run, equipment)
    lanes.data.beyond[0] = like(-1.0, data)
    if solver.pack is None:
        free_step(robot, run, rows, equipment)
    else:
        _step_with_rows(robot, run, rows, equipment, lanes, solver, contact)
    beyond = largest(
        _beyond_bounds(robot, run, rows),
        _beyond_actuators(robot, run, equipment),
    )
    lanes.data.beyond[0] = largest(lanes.data.beyond[0], largest(beyond, _needs_more(robot, run, solver)))
    alone = highest(lanes.data.beyond[0]) > 0.0
    if alone:
        for lane in range(lane_count(state.qpos)):
            if lanes.data.alive[lane] and lane_get(lanes.data.beyond, 0, lane) > 0.0:
                _step_alone(robot, run, lanes, contact, lane)
                if lanes.data.counters[CROWD] == 1:
                    return
    _find_dead(robot, run, lanes)
    if solver.pack is not None:
        for n in range(solver.pack.rubbing.shape[0]):
            zero = like(0.0, data)
            solver.pack.held[n] = where_greater(lanes.data.beyond[0], zero, zero, solver.pack.impulse[n])
    if contact is not None:
        note_impulses(data, solver, contact, lanes.data.alive, lanes.data.beyond)
        contact.data.half[0] = 1 - contact.data.half[0]
    for k in range(step.next.shape[0]):
        state.qvel[model.independent_dof[k]] = step.next[k]
    move(model, state.qpos, state.qvel, inputs.time_step[0])
    if alone or lanes.data.counters[HELD] == 1:
        _take_over(robot, lanes)
        lanes.data.counters[HELD] = 1 if alone else 0


@njit
def _step_with_rows(robot: Any, run: Any, rows: Any, equipment: Any, lanes: Any, solver: Any, contact: Any) -> None:
    """step.next, step.velocity of the lanes without rows by the step without, of the others by the pack's solver.

    lanes.beyond: more than 0 where that is not all that there is.
    """
    data = robot.data
    step = run.step
    _choose_bound(robot, lanes, solver, contact)
    if highest(1.0 - solver.pack.bound[0]) > 0.0:
        free_step(robot, run, rows, equipment)
        for k in range(solver.pack.free.shape[0]):
            solver.pack.free[k] = step.next[k]
    if highest(solver.pack.bound[0]) > 0.0:
        _solve_rows(robot, run, rows, equipment, solver, contact)
        zero = like(0.0, data)
        for k in range(step.next.shape[0]):
            step.next[k] = where_greater(solver.pack.bound[0], zero, step.next[k], solver.pack.free[k])
            step.velocity[k] = step.next[k]
        lanes.data.beyond[0] = where_greater(
            solver.pack.bound[0], solver.pack.solved[0], like(1.0, data), lanes.data.beyond[0]
        )
        if contact is not None:
            lanes.data.beyond[0] = largest(lanes.data.beyond[0], may_gain_energy(robot, run, rows, solver, contact))
    if contact is not None:
        lanes.data.beyond[0] = largest(lanes.data.beyond[0], contact.data.away[0])
        find_outrun(robot.model, data, run, contact, lanes.data.alive, lanes.data.beyond)
        lanes.data.beyond[0] = largest(lanes.data.beyond[0], contact.data.outrun[0])


@njit
def _choose_bound(robot: Any, lanes: Any, solver: Any, contact: Any) -> None:
    """pack.bound: who has rows; pack.skip: who is not asked for. The dead are counted among both."""
    one = like(1.0, robot.data)
    solver.pack.bound[0] = one if solver.pack.rubbing.shape[0] > 0 else zero_like(one)
    solver.pack.skip[0] = zero_like(one)
    if contact is not None:
        solver.pack.bound[0] = largest(solver.pack.bound[0], contact.data.touching[0])
        solver.pack.skip[0] = contact.data.away[0]
    for lane in range(lane_count(robot.state.qpos)):
        if not lanes.data.alive[lane]:
            lane_set(solver.pack.bound, 0, lane, 1.0)
            lane_set(solver.pack.skip, 0, lane, 1.0)
        elif lane_get(solver.pack.bound, 0, lane) == 0.0:
            lane_set(solver.pack.skip, 0, lane, 1.0)


@njit
def _solve_rows(robot: Any, run: Any, rows: Any, equipment: Any, solver: Any, contact: Any) -> None:
    """step.next by the pack's solver."""
    model, data = robot.model, robot.data
    inputs, step = run.inputs, run.step
    coupled_bias(model, step.middle, data)
    composites(model, data)
    mass_matrix(model, data)
    implicit_system(robot, run, rows, equipment)
    reduce_matrix(model, data, step.diagonal)
    for k in range(step.force.shape[0]):
        step.free[k] = inputs.time_step[0] * (step.force[k] - data.bias[k])
        step.next[k] = robot.state.qvel[k]
    build_in_lanes(robot, inputs, rows, solver, contact)
    run_entry(solver.pack.entry)


@inlined
def _needs_more(robot: Any, run: Any, solver: Any) -> Any:
    """More than 0 where one evaluation of the step is not enough (midpoint.py)."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    h = run.inputs.time_step[0]
    if solver.pack is not None:
        for k in range(step.qacc.shape[0]):
            step.qacc[k] = (step.velocity[k] - state.qvel[k]) / h
        accelerations(model, state.qvel, step.qacc, data)
    turning, tautness = turning_and_tautness(model, data, h)
    return largest(least(turning, unsettled(robot, step)), tautness)


@inlined
def _beyond_bounds(robot: Any, run: Any, rows: Any) -> Any:
    """More than 0 where the step without rows breaks a limit of a joint or a drive."""
    beyond = like(-1.0, robot.data)
    for k in range(run.step.velocity.shape[0]):
        beyond = largest(beyond, beyond_limits(robot, run, k))
        if rows.implicit[k] and run.inputs.drive_limit[k] < math.inf:
            beyond = largest(beyond, is_beyond_drive(robot.state, run, 0, k))
    return beyond


@inlined
def _beyond_actuators(robot: Any, run: Any, equipment: Any) -> Any:
    """More than 0 where an actuator or the sum of a joint's is beyond its bounds at the end of the step."""
    state = robot.state
    step = run.step
    h = run.inputs.time_step[0]
    beyond = like(-1.0, robot.data)
    for n in range(equipment.model.dof.shape[0]):
        if equipment.model.implicit[n] == 1 and (
            equipment.model.force_lower[n] > -math.inf or equipment.model.force_upper[n] < math.inf
        ):
            k = equipment.model.dof[n]
            gear = equipment.model.gear[n]
            force = force_over_step(
                equipment.data.constant[n],
                equipment.model.stiffness[n],
                equipment.model.damping[n],
                gear * coordinate(robot.model, state.qpos, k),
                step.share[k],
                gear * state.qvel[k],
                gear * step.velocity[k],
                h,
            )
            beyond = largest(beyond, is_beyond(force, equipment.model.force_lower[n], equipment.model.force_upper[n]))
    for k in range(step.velocity.shape[0]):
        if equipment.model.dof_implicit[k] == 1 and (
            equipment.model.dof_lower[k] > -math.inf or equipment.model.dof_upper[k] < math.inf
        ):
            force = actuator_force(equipment, k, felt_at(robot, run, k), step.velocity[k])
            beyond = largest(beyond, is_beyond(force, equipment.model.dof_lower[k], equipment.model.dof_upper[k]))
    return beyond


@njit
def _step_alone(robot: Any, run: Any, lanes: Any, contact: Any, lane: Any) -> None:
    """The step of one lane by the entry of single robots, with rows where they are needed; the result into lanes."""
    state = robot.state
    if contact is not None:
        _take_contacts(contact, lanes, lane)
    _take_robot(robot.model, run.inputs, lanes, lane)
    _take_lane(state.qpos, lane, lanes.single.qpos)
    _take_lane(state.qvel, lane, lanes.single.qvel)
    _take_lane(lanes.data.impulse, lane, lanes.single.impulse)
    for n in range(lanes.single.counters.shape[0]):
        lanes.single.counters[n] = 0
    lanes.single.counters[STEP_NUMBER] = lanes.data.counters[STEP]
    run_entry(lanes.data.single)
    if lanes.single.counters[STOP_REASON] == CROWDED:
        lanes.data.counters[CROWD] = 1
        return
    lanes.data.counters[ALONE] += 1
    if lanes.single.counters[STOP_REASON] == NON_FINITE:
        _end(state, lanes, run.block, lane, lanes.single.counters[STOP_DOF])
        return
    _put_lane(lanes.single.qpos, lanes.data.qpos, lane)
    _put_lane(lanes.single.qvel, lanes.data.qvel, lane)
    _put_lane(lanes.single.impulse, lanes.data.found, lane)
    if contact is not None:
        memory = contact.data.memory[1 - contact.data.half[0], lane]
        for n in range(memory.shape[0]):
            for j in range(memory.shape[1]):
                memory[n, j] = lanes.single.contact[n, j]


@njit
def _take_contacts(contact: Any, lanes: Any, lane: Any) -> None:
    """A lane's contacts of the last step, and its friction."""
    memory = contact.data.memory[contact.data.half[0], lane]
    for n in range(memory.shape[0]):
        for j in range(memory.shape[1]):
            lanes.single.contact[n, j] = memory[n, j]
    factor = lane_get(contact.data.factor, 0, lane)
    for n in range(contact.model.friction.shape[0]):
        for j in range(contact.model.friction.shape[1]):
            lanes.single.contact_friction[n, j] = factor * contact.model.friction[n, j]
    for n in range(contact.model.pair_friction.shape[0]):
        for j in range(contact.model.pair_friction.shape[1]):
            lanes.single.pair_friction[n, j] = factor * contact.model.pair_friction[n, j]


@njit
def _take_robot(model: Any, inputs: Any, lanes: Any, lane: Any) -> None:
    """What is a lane's own beside its state."""
    _take_lane(model.body_mass, lane, lanes.single.body_mass)
    _take_lane(model.carried_mass, lane, lanes.single.carried_mass)
    _take_lane(model.body_moment, lane, lanes.single.body_moment)
    _take_lane(model.body_inertia, lane, lanes.single.body_inertia)
    _take_lane(model.armature, lane, lanes.single.armature)
    _take_lane(model.damping, lane, lanes.single.damping)
    _take_lane(model.stiffness, lane, lanes.single.stiffness)
    _take_lane(model.friction, lane, lanes.single.friction)
    _take_lane(inputs.drive_stiffness, lane, lanes.single.drive_stiffness)
    _take_lane(inputs.drive_damping, lane, lanes.single.drive_damping)
    _take_lane(inputs.torque, lane, lanes.single.torque)
    _take_lane(inputs.target, lane, lanes.single.target)
    _take_lane(inputs.target_velocity, lane, lanes.single.target_velocity)
    _take_lane(inputs.control, lane, lanes.single.control)


@inlined
def _take_lane(values: Any, lane: Any, out: Any) -> None:
    for n in range(out.size):
        lane_set(out, n, 0, lane_get(values, n, lane))


@inlined
def _put_lane(values: Any, out: Any, lane: Any) -> None:
    for n in range(values.size):
        lane_set(out, n, lane, lane_get(values, n, 0))


@njit
def _find_dead(robot: Any, run: Any, lanes: Any) -> None:
    """Lanes whose velocities at the end of the step without rows are not finite, and which nothing else replaces."""
    state, data = robot.state, robot.data
    step = run.step
    total = like(0.0, data)
    for k in range(step.next.shape[0]):
        total = total + 0.0 * step.next[k]
    one = like(1.0, data)
    lanes.data.dead[0] = where_greater(one, total, zero_like(one), one)  # not a number is not less than one
    if highest(lanes.data.dead[0]) > 0.0:
        for lane in range(lane_count(state.qpos)):
            if (
                lanes.data.alive[lane]
                and lane_get(lanes.data.dead, 0, lane) > 0.0
                and not lane_get(lanes.data.beyond, 0, lane) > 0.0
            ):
                first = 0
                while math.isfinite(lane_get(step.next, first, lane)):
                    first += 1
                _end(state, lanes, run.block, lane, robot.model.independent_dof[first])


@njit
def _end(state: Any, lanes: Any, block: Any, lane: Any, dof: Any) -> None:
    """A lane stops here: the state before the step is its final one."""
    lanes.data.alive[lane] = 0
    lanes.data.stopped[lane] = lanes.data.counters[STEP]
    lanes.data.stopped_dof[lane] = dof
    _record_final(state, block, lane)


@njit
def _take_over(robot: Any, lanes: Any) -> None:
    """What lanes found that took the step alone; solvers of the others start from nothing the next time."""
    state = robot.state
    zero = like(0.0, robot.data)
    beyond = lanes.data.beyond[0]
    for n in range(state.qpos.shape[0]):
        state.qpos[n] = where_greater(beyond, zero, lanes.data.qpos[n], state.qpos[n])
    for k in range(state.qvel.shape[0]):
        state.qvel[k] = where_greater(beyond, zero, lanes.data.qvel[k], state.qvel[k])
    for n in range(lanes.data.impulse.shape[0]):
        lanes.data.impulse[n] = where_greater(beyond, zero, lanes.data.found[n], zero)
