"""Rows of a pack that are recorded: each lane's forces are booked, and its row written, by the code of a single robot.

That code sees the lane's arrays in place. The pack has solved the step, so that recording changes no byte of it.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import origin_of, velocities
from artsim.sim.articulation.state import RobotBundle, State
from artsim.sim.contact.detection import is_near
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.forces import equipment_forces
from artsim.sim.equipment.implicit_actuators import note_unbounded_forces
from artsim.sim.equipment.link_wrenches import apply_link_wrenches
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.equipment.transmissions import transmissions
from artsim.sim.foundation.gather_scatter import scatter
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_count, lane_get
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.foundation.vec3 import plus, put, row_of
from artsim.sim.geometry.contacts import CONTACTS, ContactBundle
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import (
    AT_REST,
    EVALUATION,
    ROWS_RECORDED,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STIFFENED,
    Rows,
    RunBundle,
)
from artsim.sim.stepping.accelerations import add_up_forces
from artsim.sim.stepping.beside import record_row
from artsim.sim.stepping.booking import book_forces, rest
from artsim.sim.stepping.lane_ends import step_of_lane
from artsim.sim.stepping.packs import FIRST_SAMPLE, FIRST_SLOT, ROWS_OF_SAMPLE, SLOTS_OF_LANE


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
def record_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle | None) -> None:
    """Record the step just solved as a row of the sample of each living lane."""
    lanes, plan, counters = run.lanes, run.block.plan, run.step.counters
    row = counters[STEP_NUMBER] // plan[STEPS_PER_ROW]
    stiffened = counters[EVALUATION] == STIFFENED
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane]:
            own = lanes.helpers.counters[lane]
            own[STEP_NUMBER], own[EVALUATION], own[AT_REST] = step_of_lane(run, lane), counters[EVALUATION], 0
            own[ROWS_RECORDED] = (plan[FIRST_SAMPLE] + lane) * plan[ROWS_OF_SAMPLE] + row
            lanes.helpers.noise_key[lane, 1] = lanes.data.number[lane]
            if contact is not None:
                for n in range(contact.data.number[CONTACTS]):
                    contact.data.absent[n] = 0 if lane_get(contact.lanes.present, n, lane) > 0.0 else 1
                slot = plan[FIRST_SLOT] + lane * plan[SLOTS_OF_LANE] + row % plan[SLOTS_OF_LANE]
                lanes.alone.contacts[0] = slot * contact.detected.data.gap.shape[0]  # as many as a step may have
            if stiffened:
                for i in range(robot.data.stiffening.shape[0]):
                    for c in range(robot.data.stiffening.shape[1]):
                        lanes.alone.stiffening[i, c] = lane_get(robot.data.stiffening[i], c, lane)
                for k in range(robot.data.slack.shape[0]):
                    lanes.alone.slack[k] = lane_get(robot.data.slack, k, lane)
            run_entry(lanes.helpers.recorder[lane])


@njit
def record_lane(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: ContactBundle | None,
    rules: RuleBundle | None,
) -> None:
    """Book the forces of a lane's step, and record its row."""
    step = run.step
    if connected(step.integrator):
        _book_evaluation(robot, run, equipment, rules)
    else:
        if equipment is not None:
            _note_equipment(robot, run, equipment)
        book_forces(robot, run, rows, equipment, contact, rules)
        if step.asleep[0] > 0.0:
            rest(robot, step)
    if contact is not None:
        _locate(robot, contact)
    record_row(robot, run, rows, equipment, contact)


@inlined
def _note_equipment(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Set the lengths and forces of equipment that packs leave out, and part the wrenches on links, which are inputs,
    from the passive forces, to which packs add them."""
    state = robot.state
    velocities(robot.model, state.qvel, robot.data)
    tendon_paths(robot, state.qpos, state.qvel, equipment)
    transmissions(robot, state.qpos, state.qvel, equipment)
    note_unbounded_forces(run, equipment)
    if equipment.model.link_wrench_link.shape[0] > 0:
        step = run.step
        for k in range(step.applied.shape[0]):
            equipment.data.passive[k] += step.applied[k]
        apply_link_wrenches(robot, run, equipment)
        for k in range(step.applied.shape[0]):
            equipment.data.passive[k] -= step.applied[k]


@inlined
def _book_evaluation(
    robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None, rules: RuleBundle | None
) -> None:
    """Book the forces of an evaluation at the state, which has neither rows nor equipment but actuators of joints."""
    state = robot.state
    if equipment is not None:
        equipment_forces(robot, state.qpos, state.qvel, run, equipment, state.activation, 1)
    add_up_forces(robot, state.qpos, state.qvel, run, equipment, rules)


@njit
def _locate(robot: RobotBundle, contact: ContactBundle) -> None:
    """Set the points of contacts, which lanes hold from their bodies' origins, and which of them are near."""
    model, data = robot.model, robot.data
    for n in range(contact.data.number[CONTACTS]):
        contact.data.near[n] = 1 if contact.data.absent[n] == 0 and is_near(contact, n) else 0
        shape = contact.data.shape[n]
        end = 0 if contact.model.body[shape[0]] > 0 else 1
        origin = origin_of(model, data, contact.model.body[shape[end]])
        put(contact.data.point[n], plus(origin, row_of(contact.data.arm[n], end)))
