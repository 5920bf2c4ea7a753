"""The step as a page, for one robot and for packs, and the loop over a block of steps.

Semi-implicit Euler: kinematics → M̂ and bias → constraint rows → solver → positions. A robot that only limits constrain
first takes the step without rows, in O(n), which stands if it violates no limit.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.kinematics import kinematics, weigh_down, world_inertia
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.drive_rows import note_implicit_drives
from artsim.sim.constraints.loop_rows import note_loop_gaps
from artsim.sim.contact.contact_rows import note_depths
from artsim.sim.contact.detection import find_contacts, place_static
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.pack_detection import find_in_lanes, note_start, place_world
from artsim.sim.equipment.actuation import control_row
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_count, lane_set
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.geometry.contacts import CONTACTS, EitherContacts
from artsim.sim.run_data.clock import mark, start
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.phases import INTEGRATION, RECORDING
from artsim.sim.run_data.run_records import (
    ADVANCE,
    AT_REST,
    BEGIN,
    CONSTRAINTS,
    CONTROL_ROW,
    CROWDED,
    END,
    ENTRIES,
    EVALUATE,
    FIRST_CONTACT,
    FREE_STEPS_POSSIBLE,
    RECORD,
    ROWS_RECORDED,
    RUNGE_KUTTA,
    RUNNING,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    STOP_REASON,
    TASK,
    WATCH,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.assembly import needs_rows
from artsim.sim.stepping.booking import book_forces, end_step, move_on, note_load, rest
from artsim.sim.stepping.lane_booking import begin_step_in_lanes
from artsim.sim.stepping.lane_ends import lanes_live, lanes_rest, note_lanes, record_final, step_of_lane
from artsim.sim.stepping.lane_equipment import choose_inputs, keep_lanes
from artsim.sim.stepping.lane_recording import record_lanes, record_state
from artsim.sim.stepping.packs import ROWS_OF_SAMPLE
from artsim.sim.stepping.recorded_constraints import lacks_room
from artsim.sim.stepping.recording import is_full
from artsim.sim.stepping.sleeping import begin_asleep
from artsim.sim.stepping.solution import is_finite, solve_step
from artsim.sim.stepping.stages import take_stages
from artsim.sim.stepping.work import book_work, is_due, is_new, note_lag


@njit
def simulate(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Take the block's steps from the state, recording a row every STEPS_PER_ROW, or stop early with the reason in
    step.counters. A pack takes them with all lanes at once.

    None stands for `equipment` that the robot lacks, for `contact` in a run without contact, for `rules` where links
    have no damping and no limits, for the members of `solver` that the chosen one does not use, and for run.clock
    unless the phases of the step are timed. The code that would need them is then not compiled.
    """
    start(run.clock)
    begin(robot, run, rows, equipment, contact, rules)
    for _ in range(run.block.plan[STEPS_TO_TAKE]):
        if _is_over(run):
            run.step.counters[STEP_NUMBER] += 1
            continue
        if not _has_room(run, rows, contact):
            break
        mark(run.clock, INTEGRATION)
        choose_controls(robot, run, equipment)
        if not take_step(robot, run, rows, equipment, contact, rules, solver):
            break
        run.step.counters[STEP_NUMBER] += 1
    end(robot, run, equipment, contact)
    mark(run.clock, INTEGRATION)


@njit
def begin(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: EitherContacts,
    rules: RuleBundle | None,
) -> None:
    """Prepare a block of steps."""
    step, block = run.step, run.block
    step.counters[FREE_STEPS_POSSIBLE] = 0 if needs_rows(robot.model, run.inputs, equipment, rules) else 1
    note_implicit_drives(run.inputs, rows)
    if run.lanes is not None:
        _begin_lanes(robot, run, contact)
        return
    run_beside(step, BEGIN)
    if is_new(step):
        note_lag(run, rows)
    block.constraints[CONSTRAINTS] = 0
    block.constraints[ENTRIES] = 0
    if contact is not None:
        block.contacts[0] = block.plan[FIRST_CONTACT]
        place_static(robot.model, robot.data, contact)


@njit
def _begin_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle | None) -> None:
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


@inlined
def _is_over(run: RunBundle) -> bool:
    """True if no lane takes steps any more."""
    return run.lanes is not None and not lanes_live(run)


@inlined
def _has_room(run: RunBundle, rows: Rows, contact: EitherContacts) -> bool:
    """True if the block has room for what a further row of a single robot may hold."""
    if run.lanes is not None:
        return True
    if contact is not None:  # noqa: SIM102  # known to the compiler, the next condition not
        if is_full(run, contact):
            return False
    return not lacks_room(run.block, rows)


@njit
def end(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None, contact: EitherContacts) -> None:
    """End a block of steps: note energies, gaps, and the depths of contacts at the state."""
    if run.lanes is not None:
        _end_lanes(robot, run, contact)
        return
    run_beside(run.step, END)
    if equipment is not None:
        note_loop_gaps(robot.model, robot.data, run.step, equipment)
    if contact is not None and run.block.plan[STEPS_TO_TAKE] == 0:  # steps note those before them
        kinematics(robot.model, robot.state.qpos, robot.data)
        find_contacts(robot, run.inputs, contact)
        note_depths(run.step, contact)


@njit
def _end_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle | None) -> None:
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


@njit
def take_step(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> bool:
    """Solve, record and apply one step. False if it stops at the state before the step; step.counters say why.

    An integrator with steps of its own takes the places of solve_step and move_on, by its entry.
    """
    step = run.step
    recorded = step.counters[STEP_NUMBER] % run.block.plan[STEPS_PER_ROW] == 0
    begin_asleep(robot.state, run)
    if run.lanes is not None:
        if connected(run.lanes.data.rater):
            run_entry(run.lanes.data.rater)
        if recorded:
            record_state(robot.state, run)
        begin_step_in_lanes(robot, run)
    if not _rests(run, recorded):
        if connected(step.integrator):
            run_integrator(step, EVALUATE)
        else:
            solve_step(robot, run, rows, equipment, contact, rules, solver)
            if run.lanes is None and step.counters[STOP_REASON] != CROWDED:
                book_forces(robot, run, rows, equipment, contact, rules)
        if not _is_settled(robot, run, rows, equipment, contact, solver):
            return False
    if run.lanes is None:
        _record(run, equipment, recorded)
    elif recorded and run.block.plan[ROWS_OF_SAMPLE] > 0:
        record_lanes(robot, run, contact)
    if not _lies_still(run):
        if connected(step.integrator):
            run_integrator(step, ADVANCE)
        else:
            if run.inputs.convex[0] == RUNGE_KUTTA:
                take_stages(robot, run, rows, equipment, contact, rules, solver)
            move_on(robot, run, rows, equipment, contact, solver)
        if run.lanes is None:
            book_work(run, rows)
            if step.counters[STOP_REASON] != RUNNING:
                step.counters[ROWS_RECORDED] -= 1 if recorded else 0  # a step that was taken back has no row
                return False
        end_step(robot, run, equipment)
    _keep_samples(robot, run, equipment)
    return True


@inlined
def _rests(run: RunBundle, recorded: bool) -> bool:
    """True if the robot, or all lanes, sleep through this step, and its forces are known or not asked for."""
    if run.lanes is not None:
        return not (recorded and run.block.plan[ROWS_OF_SAMPLE] > 0) and lanes_rest(run)
    return run.step.asleep[0] > 0.0 and run.step.counters[AT_REST] == 1


@inlined
def _lies_still(run: RunBundle) -> bool:
    """True if the robot, or all lanes, sleep through this step."""
    if run.lanes is not None:
        return lanes_rest(run)
    return run.step.asleep[0] > 0.0


@inlined
def _is_settled(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: EitherContacts,
    solver: SolverBundle,
) -> bool:
    """True if the step just solved can be taken; lanes that end are marked."""
    step = run.step
    if run.lanes is not None:
        if connected(step.integrator):
            return True
        if step.counters[STOP_REASON] == CROWDED:
            return False
        if contact is not None:
            for lane in range(lane_count(robot.state.qpos)):
                if step_of_lane(run, lane) == 0:
                    note_start(contact, lane)
        note_lanes(robot, run, rows, solver)
        return True
    if step.asleep[0] > 0.0:
        rest(robot, step)
        return True
    return step.counters[STOP_REASON] == RUNNING and is_finite(robot.model, step)


@inlined
def _record(run: RunBundle, equipment: EquipmentBundle | None, recorded: bool) -> None:
    """Measure for delayed sensors, and record a row of a single robot where the step is `recorded`."""
    if equipment is not None and connected(equipment.data.feeler):
        run_entry(equipment.data.feeler)
    if recorded:
        mark(run.clock, INTEGRATION)
        run_beside(run.step, RECORD)
        mark(run.clock, RECORDING)


@inlined
def _keep_samples(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Keep the samples of delayed controls and sensors."""
    if run.lanes is not None:
        keep_lanes(robot, run)
    elif equipment is not None and connected(equipment.data.keeper):
        run_entry(equipment.data.keeper)


@inlined
def run_beside(step: Step, task: int) -> None:
    """Let the entry of beside.py do one of its tasks."""
    step.beside[TASK] = task
    run_entry(step.beside)


@inlined
def run_integrator(step: Step, task: int) -> None:
    """Let the integrator, which has steps of its own, do one of its tasks."""
    step.integrator[TASK] = task
    run_entry(step.integrator)


@njit
def choose_controls(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Set step.counters[CONTROL_ROW] for this step of a single robot, or the inputs of each lane; compare energies
    where it is due."""
    if run.lanes is not None:
        choose_inputs(robot.model, robot.data, run, equipment)
        return
    if is_due(run.step):
        run_beside(run.step, WATCH)
    counters = run.step.counters
    counters[CONTROL_ROW] = control_row(run.inputs.start_step, counters[CONTROL_ROW], counters[STEP_NUMBER])
