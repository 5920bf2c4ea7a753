"""Steps of a pack: 8 robots of one model at once, each with its own masses, gains, inputs and state.

Lanes go through the same stages as a single robot, step.solve_step. A lane for which these do not suffice takes the
step of a single robot instead, through the entry that `artsim run` calls, so that no lane ever depends on the others.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, State, Workspace
from artsim.sim.constraints.drive_rows import keep_drives
from artsim.sim.constraints.row import hand_on_impulses
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.pack_detection import find_in_lanes, note_start, place_world
from artsim.sim.equipment.actuation import control_row, weigh_springs
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.implicit_actuators import set_plain_forces, weigh
from artsim.sim.foundation.gather_scatter import scatter
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lane_records import take_lane, take_over
from artsim.sim.foundation.lanes import any_positive, lane_count, lane_get, lane_set, where_greater, zero_like
from artsim.sim.foundation.records import ConstReals3, Lanes2
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.run_data.run_records import (
    ADVANCE,
    EVALUATE,
    LASTING_ROWS,
    NON_FINITE,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.booking import note_load, set_end_velocity
from artsim.sim.stepping.lane_equipment import keep_lanes
from artsim.sim.stepping.lanes_alone import count_alone, end, record_final, record_steps, step_alone
from artsim.sim.stepping.midpoint import stiffened
from artsim.sim.stepping.pack_rows import note_impulses, take_impulses
from artsim.sim.stepping.packs import CROWD, FIRST_SAMPLE, INPUT_ROW, ROWS_OF_SAMPLE, STEP, AnyBlock, LaneBundle
from artsim.sim.stepping.sleeping import begin_asleep, count_still, note_places, stay_asleep
from artsim.sim.stepping.step import place, run_integrator, solve_step


@njit
def roll(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: PackContactBundle | None,
    rules: None,
    solver: SolverBundle,
) -> None:
    """Take a pack's steps as step.simulate does, or fewer where the contacts exceed the room.

    run.lanes holds the state of the lanes, the arrays of a single robot's step, and inputs over time; solver.pack holds
    the arrays that all rows share, or is None without rows. Where more is recorded than the state, each lane takes the
    steps of recorded rows by itself. A lane whose velocities are not finite is dead: its numbers are still computed,
    but carry no meaning.
    """
    state, data = robot.state, robot.data
    block, lanes = run.block, run.lanes
    expand(robot.model, state.qpos, state.qvel, data)
    if contact is not None:
        place_world(robot.model, data, contact)
    if lanes.load is not None and lanes.data.counters[STEP] == 0:
        _begin_load(robot, run)
    for _ in range(block.plan[STEPS_TO_TAKE]):
        choose_inputs(robot.model, data, run, equipment)
        recorded = lanes.data.counters[STEP] % block.plan[STEPS_PER_ROW] == 0
        if recorded:
            record(state, block, lanes.data.counters[STEP] // block.plan[STEPS_PER_ROW])
        begin_asleep(state, run)
        if recorded and block.plan[ROWS_OF_SAMPLE] > 0:
            record_steps(robot, run, equipment, contact)
        elif _rests(run):
            keep_lanes(robot, run)
        elif connected(run.step.integrator):
            _let_integrator_step(robot, run, equipment)
        else:
            _take_step(robot, run, rows, equipment, contact, rules, solver)
        if lanes.data.counters[CROWD] == 1:
            return
        lanes.data.counters[STEP] += 1
    if contact is not None and block.plan[STEPS_TO_TAKE] == 0:  # depths at the state; steps note those before them
        place(robot)
        if not find_in_lanes(robot, run.inputs, contact, lanes.data.alive):
            lanes.data.counters[CROWD] = 1
            return
    for lane in range(lane_count(state.qpos)):
        if lanes.data.alive[lane]:
            record_final(state, block, lane)


@inlined
def _rests(run: RunBundle) -> bool:
    """True if all living lanes sleep through this step, in which nothing then moves."""
    for lane in range(run.lanes.data.alive.shape[0]):
        if run.lanes.data.alive[lane] and not lane_get(run.step.asleep, 0, lane) > 0.0:
            return False
    return True


@njit
def choose_inputs(model: Model, data: Workspace, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Select the row of inputs that acts on this step, and derive the equipment's forces from it."""
    inputs, lanes = run.inputs, run.lanes
    row = control_row(lanes.controls.start_step, lanes.data.counters[INPUT_ROW], lanes.data.counters[STEP])
    if row == lanes.data.counters[INPUT_ROW]:
        return
    lanes.data.counters[INPUT_ROW] = row
    _spread_row(data, lanes.controls.torque, row, inputs.torque)
    _spread_row(data, lanes.controls.target, row, inputs.target)
    _spread_row(data, lanes.controls.target_velocity, row, inputs.target_velocity)
    _spread_row(data, lanes.controls.target_acceleration, row, inputs.target_acceleration)
    _spread_row(data, lanes.controls.control, row, inputs.control)
    if equipment is not None:
        set_plain_forces(inputs, equipment)
        weigh(model, run, equipment)
    else:
        weigh_springs(model, run, equipment)


@inlined
def _spread_row(data: Workspace, table: ConstReals3, row: int, out: Lanes2) -> None:
    """Spread row `row` of the table (1 or lanes, rows, n) over the lanes of out (1, n)."""
    for k in range(out.shape[1]):
        if table.shape[0] == 1:
            out[0, k] = like(table[0, row, k], data)
        else:
            for lane in range(lane_count(out)):
                lane_set(out, k, lane, table[lane, row, k])


@njit
def record(state: State, block: AnyBlock, row: int) -> None:
    """Record position and velocity before the step as row `row` of the samples at hand."""
    if block.qpos.shape[1] > 0:
        n = block.qpos.shape[2]
        start = block.plan[FIRST_SAMPLE] * block.qpos.shape[1] + row
        scatter(state.qpos, block.qpos, start * n, block.qpos.shape[1] * n)
    if block.qvel.shape[1] > 0:
        n = block.qvel.shape[2]
        start = block.plan[FIRST_SAMPLE] * block.qvel.shape[1] + row
        scatter(state.qvel, block.qvel, start * n, block.qvel.shape[1] * n)


@njit
def _take_step(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: PackContactBundle | None,
    rules: None,
    solver: SolverBundle,
) -> None:
    """Take one semi-implicit step of all lanes; no step, with lanes.counters[CROWD] = 1, if contacts exceed the
    room."""
    model, state, data = robot.model, robot.state, robot.data
    lanes = run.lanes
    if any_positive(run.step.asleep[0]):
        note_places(state, run)
    solve_step(robot, run, rows, equipment, contact, rules, solver)
    if lanes.data.counters[CROWD] == 1:
        return
    if contact is not None and lanes.data.counters[STEP] == 0:
        note_start(contact)
    rests = like(-1.0, data)
    lanes.data.leaves[0] = where_greater(run.step.asleep[0], zero_like(rests), rests, lanes.data.leaves[0])
    alone = any_positive(lanes.data.leaves[0])
    if alone:
        for lane in range(lane_count(state.qpos)):
            if lanes.data.alive[lane] and lane_get(lanes.data.leaves, 0, lane) > 0.0:
                step_alone(robot, run, equipment, contact, lane)
                if lanes.data.counters[CROWD] == 1:
                    return
        count_alone(lanes)
    _find_dead(robot, run, lanes)
    hand_on_impulses(state, rows, rows.number[LASTING_ROWS])
    keep_drives(state, run.step, rows)
    if contact is not None:
        take_impulses(rows, contact)
        note_impulses(data, contact, lanes.data.alive, lanes.data.leaves)
        contact.lanes.half[0] = 1 - contact.lanes.half[0]
    if lanes.load is not None:
        _note_loads(robot, run)
    _move(robot, run, contact)
    keep_lanes(robot, run)
    if equipment is not None:
        for n in range(state.activation.shape[0]):
            equipment.data.start_activation[n] = state.activation[n]
            state.activation[n] = equipment.data.next_activation[n]
    if any_positive(run.step.asleep[0]):
        stay_asleep(state, run, equipment)
    count_still(robot, run, equipment)
    if alone:
        take_over(state, lanes.data.leaves[0], lanes.moved)
    expand(model, state.qpos, state.qvel, data)


@njit
def _let_integrator_step(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Let the integrator, which has steps of its own, take one step of all lanes."""
    state = robot.state
    if any_positive(run.step.asleep[0]):
        note_places(state, run)
    run_integrator(run.step, EVALUATE)
    run_integrator(run.step, ADVANCE)
    if any_positive(run.step.asleep[0]):
        stay_asleep(state, run, equipment)
        expand(robot.model, state.qpos, state.qvel, robot.data)
    count_still(robot, run, equipment)


@njit
def _begin_load(robot: RobotBundle, run: RunBundle) -> None:
    """Note the load on the joints before the first step."""
    step = run.step
    place(robot)
    for k in range(step.qacc.shape[0]):
        step.qacc[k] = like(0.0, robot.data)
    note_load(robot, step)


@njit
def _note_loads(robot: RobotBundle, run: RunBundle) -> None:
    """Note the load in this step of all lanes but those that sleep."""
    state, step, lanes = robot.state, run.step, run.lanes
    zero = like(0.0, robot.data)
    for k in range(step.qacc.shape[0]):
        lanes.load.kept[k] = state.load[k]
        step.qacc[k] = (step.velocity[k] - state.qvel[k]) / run.inputs.time_step[0]
    note_load(robot, step)
    for k in range(step.qacc.shape[0]):
        state.load[k] = where_greater(step.asleep[0], zero, lanes.load.kept[k], state.load[k])


@njit
def _move(robot: RobotBundle, run: RunBundle, contact: PackContactBundle | None) -> None:
    """Advance velocities and coordinates to the end of the step, as booking.move_on does."""
    set_end_velocity(robot, run, stiffened(robot.data))
    if contact is not None and contact.sweep is not None:
        _sweep(robot, run, contact)
    move(robot.model, robot.state.qpos, run.step.tangent, run.inputs.time_step[0])


@njit
def _sweep(robot: RobotBundle, run: RunBundle, contact: PackContactBundle) -> None:
    """Move each lane to where the continuous check stops its trees."""
    lanes = run.lanes
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane] and not lane_get(lanes.data.leaves, 0, lane) > 0.0:
            take_lane(robot.state, lane, lanes.alone.state)
            for k in range(run.step.tangent.shape[0]):
                lanes.alone.step.tangent[k] = lane_get(run.step.tangent, k, lane)
            run_entry(contact.detected.data.advancement)
            for k in range(run.step.tangent.shape[0]):
                lane_set(run.step.tangent, k, lane, lanes.alone.step.tangent[k])


@njit
def _find_dead(robot: RobotBundle, run: RunBundle, lanes: LaneBundle) -> None:
    """Mark lanes whose end velocities of the step without rows are not finite and are not replaced by another step."""
    state, data = robot.state, robot.data
    step = run.step
    total = like(0.0, data)
    for k in range(step.next.shape[0]):
        total = total + 0.0 * step.next[k]
    one = like(1.0, data)
    lanes.data.dead[0] = where_greater(one, total, zero_like(one), one)  # NaN does not compare less than one
    if any_positive(lanes.data.dead[0]):
        for lane in range(lane_count(state.qpos)):
            if (
                lanes.data.alive[lane]
                and lane_get(lanes.data.dead, 0, lane) > 0.0
                and not lane_get(lanes.data.leaves, 0, lane) > 0.0
            ):
                first = 0
                while math.isfinite(lane_get(step.next, first, lane)):
                    first += 1
                end(state, lanes, run.block, lane, NON_FINITE, robot.model.independent_dof[first])
