"""Steps that lanes of a pack take by the entry of single robots, since these record forces; and the end of a lane."""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.state import RobotBundle, State
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lane_records import put_lane, take_lane, take_over
from artsim.sim.foundation.lanes import lane_count, lane_get, lane_set
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.run_data.run_records import (
    CROWDED,
    DEPTH,
    EVALUATION,
    FIRST_CONTACT,
    FIRST_ROW,
    LINK_A,
    LINK_B,
    RUNNING,
    SHARE,
    START_DEPTH,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STOP_DOF,
    STOP_REASON,
    UNSOLVED_STEPS,
    RunBundle,
)
from artsim.sim.stepping.packs import FIRST_SAMPLE, ROWS_OF_SAMPLE, AnyBlock, LaneBundle


@inlined
def step_of_lane(run: RunBundle, lane: int) -> int:
    """The number of this step of a lane, 0 for its first."""
    number: int = run.step.counters[STEP_NUMBER] - run.lanes.data.began[lane]
    return number


@njit
def record_steps(
    robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None, contact: PackContactBundle | None
) -> bool:
    """Take one step of every lane by itself, which the single robot records as a row of the lane's sample; False, noted
    in step.counters, if contacts exceed the room.
    """
    lanes, plan = run.lanes, run.block.plan
    row = run.step.counters[STEP_NUMBER] // plan[STEPS_PER_ROW]
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane]:
            lanes.alone.plan[FIRST_ROW] = (plan[FIRST_SAMPLE] + lane) * plan[ROWS_OF_SAMPLE] + row
            if contact is not None:  # each row has room for as many contacts as a step may have
                room = contact.detected.data.gap.shape[0]
                lanes.alone.plan[FIRST_CONTACT] = lanes.alone.plan[FIRST_ROW] * room
            _step_alone(robot, run, equipment, contact, lane)
            if run.step.counters[STOP_REASON] == CROWDED:
                return False
        lane_set(lanes.data.recorded, 0, lane, 1.0 if lanes.data.alive[lane] else 0.0)
    take_over(robot.state, lanes.data.recorded[0], lanes.moved)
    if contact is not None:
        contact.lanes.half[0] = 1 - contact.lanes.half[0]
    expand(robot.model, robot.state.qpos, robot.state.qvel, robot.data)
    return True


@njit
def _step_alone(
    robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None, contact: PackContactBundle | None, lane: int
) -> None:
    """Take the step of one lane by the entry of single robots; its state after it goes into lanes.moved."""
    lanes, alone = run.lanes, run.lanes.alone
    if contact is not None:
        _take_contacts(contact, lanes, lane)
    take_lane(robot.model, lane, alone.model)
    take_lane(run.inputs, lane, alone.inputs)
    take_lane(robot.state, lane, alone.state)
    if equipment is not None:
        take_lane(equipment.data, lane, alone.forces)
    alone.noise_key[1] = lanes.data.number[lane]
    for n in range(alone.delay.shape[0]):
        alone.delay[n] = lanes.data.delay[lane, n]
    for c in range(alone.step.effective_coupling.shape[0]):
        alone.step.effective_coupling[c] = lane_get(run.step.effective_coupling, c, lane)
    counters = alone.step.counters
    for n in range(counters.shape[0]):
        if n != EVALUATION:  # the step before has yet to be cleared of its stiffening
            counters[n] = 0
    counters[STEP_NUMBER] = step_of_lane(run, lane)
    alone.step.yielded[UNSOLVED_STEPS] = alone.step.worst_residual[0] = 0.0
    run_entry(lanes.data.single)
    if counters[STOP_REASON] == CROWDED:
        run.step.counters[STOP_REASON] = CROWDED
        return
    lanes.data.unsolved[lane] += int(alone.step.yielded[UNSOLVED_STEPS])
    lanes.data.worst_residual[lane] = max(lanes.data.worst_residual[lane], alone.step.worst_residual[0])
    if contact is not None:
        _put_depths(contact, run, lane)
    if counters[STOP_REASON] != RUNNING:
        end(robot.state, run, lane, counters[STOP_REASON], counters[STOP_DOF])
        return
    put_lane(alone.state, lanes.moved, lane)
    if contact is not None:
        memory = contact.lanes.memory[1 - contact.lanes.half[0], lane]
        for n in range(memory.shape[0]):
            for j in range(memory.shape[1]):
                memory[n, j] = alone.state.contact[n, j]


@njit
def _take_contacts(contact: PackContactBundle, lanes: LaneBundle, lane: int) -> None:
    """Copy a lane's contacts of the last step, its friction and planes, and the depths noted so far to the single
    robot."""
    alone, yielded, sunk = lanes.alone, lanes.alone.step.yielded, contact.lanes.sunk[lane]
    for n in range(alone.step.held.shape[0]):
        alone.step.held[n] = contact.lanes.held[lane, n]
    yielded[START_DEPTH] = 0.0
    yielded[SHARE], yielded[DEPTH], yielded[LINK_A], yielded[LINK_B] = sunk[0], sunk[1], sunk[2], sunk[3]
    memory = contact.lanes.memory[contact.lanes.half[0], lane]
    for n in range(memory.shape[0]):
        for j in range(memory.shape[1]):
            alone.state.contact[n, j] = memory[n, j]
    factor = lane_get(contact.lanes.factor, 0, lane)
    for n in range(contact.model.friction.shape[0]):
        for j in range(contact.model.friction.shape[1]):
            alone.friction[n, j] = factor * contact.model.friction[n, j]
    for j in range(contact.model.plane.shape[0]):
        n = contact.model.plane[j]
        if contact.model.body[n] == 0:
            alone.place[n, 2] = contact.model.place[n, 2] + lane_get(contact.lanes.raised, 0, lane)
    for n in range(contact.model.pair_friction.shape[0]):
        for j in range(contact.model.pair_friction.shape[1]):
            alone.pair_friction[n, j] = factor * contact.model.pair_friction[n, j]


@inlined
def _put_depths(contact: PackContactBundle, run: RunBundle, lane: int) -> None:
    """Note the depths of the single robot's contacts as those of the lane."""
    yielded, sunk = run.lanes.alone.step.yielded, contact.lanes.sunk[lane]
    if step_of_lane(run, lane) == 0:
        contact.lanes.start_depth[lane] = yielded[START_DEPTH]
    sunk[0], sunk[1], sunk[2], sunk[3] = yielded[SHARE], yielded[DEPTH], yielded[LINK_A], yielded[LINK_B]
    for n in range(run.lanes.alone.step.held.shape[0]):
        contact.lanes.held[lane, n] = run.lanes.alone.step.held[n]


@njit
def end(state: State, run: RunBundle, lane: int, reason: int, dof: int) -> None:
    """Stop a lane: its final state is the one before the step."""
    lanes = run.lanes
    lanes.data.alive[lane] = 0
    lanes.data.stopped[lane] = step_of_lane(run, lane)
    lanes.data.stopped_dof[lane] = dof
    lanes.data.reason[lane] = reason
    record_final(state, run.block, lane)


@inlined
def record_final(state: State, block: AnyBlock, lane: int) -> None:
    sample = block.plan[FIRST_SAMPLE] + lane
    for n in range(block.final_qpos.shape[1]):
        block.final_qpos[sample, n] = lane_get(state.qpos, n, lane)
    for k in range(block.final_qvel.shape[1]):
        block.final_qvel[sample, k] = lane_get(state.qvel, k, lane)
