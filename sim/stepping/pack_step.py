"""Steps of a pack: 8 robots of one model at once, each with its own masses, gains, inputs and state.

Lanes go through the same steps as a single robot, step.take_step; this file has what a pack does beside: inputs of each
lane, recording, the ends of lanes. No lane ever depends on the others.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.kinematics import kinematics, like, weigh_down, world_inertia
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, State, Workspace
from artsim.sim.constraints.row import TOLD
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.pack_detection import find_in_lanes, note_start, place_world
from artsim.sim.equipment.actuation import control_row, weigh_springs
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.implicit_actuators import set_plain_forces, weigh
from artsim.sim.foundation.gather_scatter import scatter
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, lane_count, lane_get, lane_set, where_greater, zero_like
from artsim.sim.foundation.records import ConstReals3, Lanes1, Lanes2
from artsim.sim.geometry.contacts import CONTACTS
from artsim.sim.run_data.run_records import (
    CROWDED,
    NON_FINITE,
    RESIDUAL,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    STOP_REASON,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.booking import note_load
from artsim.sim.stepping.lane_ends import end, record_final, step_of_lane
from artsim.sim.stepping.packs import FIRST_SAMPLE


@njit
def begin_in_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle | None) -> None:
    """Prepare a block of steps: set followers from their leaders; in lanes before their first step, note the load on
    joints. The list of contacts begins empty, since other packs may have used it."""
    state, data, step = robot.state, robot.data, run.step
    expand(robot.model, state.qpos, state.qvel, data)
    weigh_down(robot.model, data)
    if contact is not None:
        contact.data.number[CONTACTS] = 0
        place_world(robot.model, data, contact)
    first = False
    for lane in range(lane_count(state.qpos)):
        begins = step_of_lane(run, lane) == 0
        lane_set(step.asleep, 0, lane, 0.0 if begins else 1.0)  # which keeps the load that is known
        first = first or begins
    if first:
        kinematics(robot.model, state.qpos, data)
        world_inertia(robot.model, data)
        for k in range(step.velocity.shape[0]):
            step.velocity[k] = state.qvel[k]
        note_load(robot, run)


@njit
def end_in_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle | None) -> None:
    """End a block of steps: note the depths of contacts at the state, if no steps were to be taken, and the states."""
    state, lanes, counters = robot.state, run.lanes, run.step.counters
    if contact is not None and run.block.plan[STEPS_TO_TAKE] == 0:  # steps note those before them
        kinematics(robot.model, state.qpos, robot.data)
        if not find_in_lanes(robot, run.inputs, contact, lanes.data.alive):
            counters[STOP_REASON] = CROWDED
    if counters[STOP_REASON] == CROWDED:
        return
    for lane in range(lane_count(state.qpos)):
        if lanes.data.alive[lane]:
            record_final(state, run.block, lane)


@inlined
def lanes_live(run: RunBundle) -> bool:
    """True if a lane takes steps."""
    living = 0
    for lane in range(run.lanes.data.alive.shape[0]):
        living += run.lanes.data.alive[lane]
    return living > 0


@inlined
def lanes_rest(run: RunBundle) -> bool:
    """True if all living lanes sleep through this step, in which nothing then moves."""
    for lane in range(run.lanes.data.alive.shape[0]):
        if run.lanes.data.alive[lane] and not lane_get(run.step.asleep, 0, lane) > 0.0:
            return False
    return True


@njit
def choose_inputs(model: Model, data: Workspace, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Select the row of inputs that acts on this step, and derive the equipment's forces from it."""
    inputs, lanes = run.inputs, run.lanes
    row = control_row(lanes.controls.start_step, lanes.data.input_row[0], run.step.counters[STEP_NUMBER])
    if row == lanes.data.input_row[0]:
        return
    lanes.data.input_row[0] = row
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
def record_state(state: State, run: RunBundle) -> None:
    """Record position and velocity before the step as a row of the samples at hand."""
    block = run.block
    row = run.step.counters[STEP_NUMBER] // block.plan[STEPS_PER_ROW]
    if block.qpos.shape[1] > 0:
        n = block.qpos.shape[2]
        start = block.plan[FIRST_SAMPLE] * block.qpos.shape[1] + row
        scatter(state.qpos, block.qpos, start * n, block.qpos.shape[1] * n)
    if block.qvel.shape[1] > 0:
        n = block.qvel.shape[2]
        start = block.plan[FIRST_SAMPLE] * block.qvel.shape[1] + row
        scatter(state.qvel, block.qvel, start * n, block.qvel.shape[1] * n)


@njit
def settle_lanes(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: PackContactBundle | None,
    solver: SolverBundle,
) -> bool:
    """Note residuals, and end lanes whose velocities are not finite; False if contacts exceed the room."""
    step = run.step
    if step.counters[STOP_REASON] == CROWDED:
        return False
    if contact is not None:
        for lane in range(lane_count(robot.state.qpos)):
            if step_of_lane(run, lane) == 0:
                note_start(contact, lane)
    if solver.pack is not None:
        _count_by_newton(run, solver.pack.by_newton)
    _find_dead(robot, run)
    _note_residuals(run, rows)
    return True


@inlined
def _count_by_newton(run: RunBundle, by_newton: Lanes1) -> None:
    """Count the lanes whose rows newton itself has solved in this step."""
    if any_positive(by_newton[0]):
        for lane in range(lane_count(by_newton)):
            solved = run.lanes.data.alive[lane] and lane_get(by_newton, 0, lane) > 0.0
            run.lanes.data.by_newton[0] += 1 if solved else 0


@njit
def _note_residuals(run: RunBundle, rows: Rows) -> None:
    """Note the residuals of lanes in which the solver left any, as booking.book_forces does."""
    lanes = run.lanes
    if not any_positive(rows.report[RESIDUAL]):
        return
    for lane in range(lane_count(rows.report)):
        residual = lane_get(rows.report, RESIDUAL, lane)
        if lanes.data.alive[lane]:
            lanes.data.worst_residual[lane] = max(lanes.data.worst_residual[lane], residual)
            lanes.data.unsolved[lane] += 1 if residual > TOLD else 0


@njit
def _find_dead(robot: RobotBundle, run: RunBundle) -> None:
    """Mark lanes whose end velocities are not finite."""
    state, data = robot.state, robot.data
    step, lanes = run.step, run.lanes
    total = like(0.0, data)
    for k in range(step.next.shape[0]):
        total = total + 0.0 * step.next[k]
    one = like(1.0, data)
    lanes.data.dead[0] = where_greater(one, total, zero_like(one), one)  # NaN does not compare less than one
    if any_positive(lanes.data.dead[0]):
        for lane in range(lane_count(state.qpos)):
            if lanes.data.alive[lane] and lane_get(lanes.data.dead, 0, lane) > 0.0:
                first = 0
                while math.isfinite(lane_get(step.next, first, lane)):
                    first += 1
                end(state, run, lane, NON_FINITE, robot.model.independent_dof[first])
