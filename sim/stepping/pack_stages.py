"""Stages of step.solve_step that differ for a pack, which takes them for all lanes at once.

Lanes without rows take the step without rows, all others are solved together. Lanes whose velocities call for it
(retries.py) are solved again, with other rows, targets or forces; the other lanes keep the velocities found before, to
the last bit. A lane that the pack does not solve leaves it for this step, with a cause: lanes_alone.py takes the steps
of those lanes one by one.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import end_velocities
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.actuator_rows import has_actuator_rows
from artsim.sim.constraints.tendon_rows import beyond_tendon_limit
from artsim.sim.contact.contact_rows import reset_grip
from artsim.sim.contact.foresight import sinks_in_lanes
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.pack_detection import find_in_lanes, lacks_room, search_again
from artsim.sim.contact.rebounds import begin_bounces
from artsim.sim.equipment.actuation import find_places
from artsim.sim.equipment.arrays import ROUNDS_TOGETHER, TENDON_LOWER, EquipmentBundle
from artsim.sim.equipment.drives import begin_drives, set_drives
from artsim.sim.equipment.implicit_actuators import guess_bounds, set_plain_lengths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, highest, lane_count, lane_set, where_greater, zero_like
from artsim.sim.foundation.records import Pack
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.run_data.run_records import M_IS_SET, WEIGHED, WITHOUT_ROWS, Rows, RunBundle
from artsim.sim.run_data.scratch import KNOWN_ROWS, SAME_ROWS, SolverBundle
from artsim.sim.stepping.aims import begin_aims
from artsim.sim.stepping.controller import command
from artsim.sim.stepping.evaluations import start_evaluations
from artsim.sim.stepping.free_motion import free_step
from artsim.sim.stepping.lane_equipment import exert
from artsim.sim.stepping.lane_rows import (
    aim_bounds_in_lanes,
    begin_own_rows,
    takes_springs,
)
from artsim.sim.stepping.pack_rows import pressing
from artsim.sim.stepping.packs import (
    BOUNDS,
    CROWD,
    STIFF_TENDON,
    STRAINED,
    TURNED,
    UNSOLVED,
    YIELDING,
    LaneBundle,
)
from artsim.sim.stepping.strain import strains

_ROUNDS_ONE_BY_ONE = 16  # in which bounds settle before a lane takes the step alone
_MOST_SEARCHES = 3  # for contacts, besides the first
_MOST_SEARCHES_OF_BLOWS = 39  # for contacts that bounce, besides the first


@njit
def find_forces_in_lanes(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Forces at the state, and the targets of drives."""
    state = robot.state
    find_places(robot.model, state.qpos, run, 0)
    run.lanes.data.leaves[0] = like(-1.0, robot.data)
    if equipment is not None:
        if connected(run.lanes.helpers.exerter[0]):
            exert(robot, run, equipment)
            if not takes_springs(run.lanes):
                leave(run.lanes, equipment.data.tendon_by_row[0], STIFF_TENDON)
        else:
            set_plain_lengths(robot.model, state.qpos, state.qvel, equipment)
        guess_bounds(robot.model, state.qpos, state.qvel, run, equipment)
    command(robot, state.qpos, state.qvel, run, equipment, run.inputs.time_step[0])
    begin_drives(state, run.step)
    set_drives(run)


@njit
def look_for_contacts_in_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle) -> bool:
    """Detect the step's contacts; False, with lanes.counters[CROWD] = 1, where they exceed the room."""
    if not find_in_lanes(robot, run.inputs, contact, run.lanes.data.alive):
        run.lanes.data.counters[CROWD] = 1
        return False
    return True


@njit
def start_in_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle | None, solver: SolverBundle) -> None:
    """Begin with no solution, and with the rows of the limits that pressed in the last step."""
    lanes, zero = run.lanes, like(0.0, robot.data)
    lanes.data.searches[0] = zero
    if lanes.own is not None:
        begin_own_rows(run, zero + 1.0)
    if solver.pack is not None:
        solver.pack.done[0] = zero
        solver.pack.listing[KNOWN_ROWS] = 0
        solver.pack.listing[SAME_ROWS] = 0
        for n in range(solver.pack.limited.shape[0]):
            pressed = where_greater(robot.state.impulse[solver.pack.limit_place[n]], zero, zero + 1.0, zero)
            run.step.pressed[solver.pack.limited[n, 2], solver.pack.limited[n, 3]] = pressed
            solver.pack.limit_row[n] = -1


@njit
def hold_without_rows_in_lanes(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: PackContactBundle | None,
    solver: SolverBundle,
) -> bool:
    """True if no lane with rows or couplings is to be solved; otherwise the velocities of the step without rows are in
    solver.pack.free."""
    if solver.pack is None:
        free_step(robot, run, rows, equipment)
        run.step.retries[WITHOUT_ROWS] = 1
        return True
    _choose_bound(robot, run, solver, contact)
    left = 1.0 - solver.pack.done[0]
    if any_positive((1.0 - solver.pack.bound[0]) * left):
        free_step(robot, run, rows, equipment)
        for k in range(solver.pack.free.shape[0]):
            solver.pack.free[k] = run.step.next[k]
    run.step.retries[WITHOUT_ROWS] = 0
    if any_positive(solver.pack.bound[0] * left):
        return False
    _keep_what_stands(robot, run, solver)
    return True


@njit
def find_velocities_in_lanes(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle | None, solver: SolverBundle
) -> None:
    """step.next and step.velocity: by the pack's solver in lanes with rows, from the step without rows elsewhere."""
    if solver.pack is None:
        return
    step = run.step
    zero = like(0.0, robot.data)
    run_entry(solver.pack.entry)
    for k in range(step.next.shape[0]):
        step.next[k] = where_greater(solver.pack.bound[0], zero, step.next[k], solver.pack.free[k])
    _keep_what_stands(robot, run, solver)


@inlined
def _keep_what_stands(robot: RobotBundle, run: RunBundle, solver: SolverBundle) -> None:
    """Restore the velocities of lanes that are not solved again, and set step.velocity of all."""
    step = run.step
    zero = zero_like(solver.pack.done[0])
    for k in range(step.next.shape[0]):
        step.next[k] = where_greater(solver.pack.done[0], zero, solver.pack.kept[k], step.next[k])
    end_velocities(robot.model, robot.data, step.next, run.inputs.time_step[0], step.velocity)


@inlined
def leave(lanes: LaneBundle, value: Pack, cause: int) -> None:
    """Make lanes where the value is more than 0 take this step alone; the first cause of a lane is kept."""
    zero = zero_like(value)
    first = where_greater(lanes.data.leaves[0], zero, lanes.data.cause[0], zero + cause)
    lanes.data.cause[0] = where_greater(value, zero, first, lanes.data.cause[0])
    lanes.data.leaves[0] = largest(lanes.data.leaves[0], value)


@inlined
def lanes_to_look_at(run: RunBundle, solver: SolverBundle, one: Pack) -> Pack:
    """1 in lanes whose solution is to be looked at: not in those whose rows the solver ignores."""
    chosen, zero = one, zero_like(one)
    if solver.pack is not None:
        leave(run.lanes, solver.pack.bound[0] - solver.pack.solved[0], UNSOLVED)
        chosen = where_greater(solver.pack.done[0], zero, zero, chosen)
        chosen = where_greater(solver.pack.bound[0] * solver.pack.skip[0], zero, zero, chosen)
    return where_greater(run.lanes.data.leaves[0], zero, zero, chosen)


@inlined
def outdate_actuator_rows(run: RunBundle, equipment: EquipmentBundle, changed: Pack) -> None:
    """Let rows that are found lane by lane be found anew where actuators have `changed`, if some act by rows."""
    if run.lanes.lane_rows is not None and has_actuator_rows(equipment):
        run.lanes.own.outdated[0] = largest(run.lanes.own.outdated[0], changed)


@inlined
def leave_unsettled(run: RunBundle, changed: Pack) -> None:
    """Let lanes in which forces still reach or leave their bounds after the last round take the step alone."""
    most = zero_like(changed) + (ROUNDS_TOGETHER + _ROUNDS_ONE_BY_ONE)
    leave(run.lanes, where_greater(run.step.bound_rounds[0], most, changed, zero_like(changed)), BOUNDS)


@inlined
def leave_where_strained(
    run: RunBundle, rows: Rows, contact: PackContactBundle | None, left: Pack, fresh: Pack
) -> Pack:
    """Let lanes whose loops are strained in their first solution, where `fresh` is 1, take the step alone; 1 in the
    lanes of `left` that go on."""
    if run.lanes.loops is None:
        return left
    strained = strains(run, rows, contact, fresh)
    leave(run.lanes, strained, STRAINED)
    return left - strained


@inlined
def break_rules_in_lanes(robot: RobotBundle, run: RunBundle, chosen: Pack) -> Pack:
    """Direct the rows that bound velocities of links; 1 in lanes to be solved again. Lanes that no round brings within
    their bounds take the step alone."""
    if run.lanes.lane_rows is None:
        return zero_like(chosen)
    broken = aim_bounds_in_lanes(robot, run, chosen)
    one = zero_like(chosen) + 1.0
    leave(run.lanes, broken - one, BOUNDS)
    return least(one, broken)


@njit
def next_in_lanes(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: PackContactBundle | None,
    solver: SolverBundle,
    again: tuple[Pack, Pack, Pack],
) -> bool:
    """True if the step is to be solved again. `again`: 1 in lanes whose rows have changed, whose targets have, and
    whose bias acts elsewhere."""
    lanes, (changed, aimed, moved) = run.lanes, again
    zero = zero_like(changed)
    if lanes.own is not None:
        begin_own_rows(run, moved)
        if lanes.lane_rows is None:
            lanes.own.outdated[0] = largest(lanes.own.outdated[0], changed)
    further = where_greater(lanes.data.leaves[0], zero, zero, changed + aimed + moved)
    if highest(further) > 0.0:
        _note_changes(run, solver, changed)
    elif contact is not None:
        further = _outruns_contacts(robot, run, rows, contact, solver)
    if highest(further) <= 0.0:
        look_beyond(robot, run, rows, contact, solver)
        return False
    if solver.pack is not None:
        solver.pack.done[0] = zero + 1.0 - further
        for k in range(run.step.next.shape[0]):
            solver.pack.kept[k] = run.step.next[k]
    return True


@inlined
def _note_changes(run: RunBundle, solver: SolverBundle, changed: Pack) -> None:
    """Prepare rows for a further solution, where rows have changed in lanes where `changed` is 1."""
    if solver.pack is not None:
        solver.pack.warm[0] = solver.pack.bound[0]
        anew = highest(changed) > 0.0 or run.step.counters[WEIGHED] & M_IS_SET == 0
        if run.lanes.lane_rows is not None:
            anew = anew or any_positive(run.lanes.own.outdated[0])
        solver.pack.listing[SAME_ROWS] = 0 if anew else 1


@njit
def _outruns_contacts(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle, solver: SolverBundle
) -> Pack:
    """1 in lanes whose shapes leave their speculative margins and meet other contacts, with which the step begins anew;
    none, with lanes.counters[CROWD] = 1, where these exceed the room. All other lanes are solved by now.
    """
    lanes = run.lanes
    zero = like(0.0, robot.data)
    chosen = where_greater(lanes.data.leaves[0], zero, zero, zero + 1.0)
    chosen = where_greater(contact.lanes.yielding[0], zero, zero, chosen)
    most = _MOST_SEARCHES
    if contact.bounces is not None:
        most = _MOST_SEARCHES_OF_BLOWS
    chosen = where_greater(lanes.data.searches[0], zero + (most - 0.5), zero, chosen)
    other = search_again(robot, run, contact, chosen)
    if lacks_room(contact):
        lanes.data.counters[CROWD] = 1
        return zero
    lanes.data.searches[0] = lanes.data.searches[0] + other
    if any_positive(other):
        solver.pack.warm[0] = zero
        solver.pack.listing[SAME_ROWS] = 0
        run.step.bound_rounds[0] = zero
        start_evaluations(robot, run, other)
        if lanes.own is not None:
            begin_own_rows(run, other)
        begin_aims(run, rows, other)
        reset_grip(contact, other)
        begin_bounces(contact, other)
    return other


@inlined
def press_tendons(run: RunBundle, equipment: EquipmentBundle, solver: SolverBundle, chosen: Pack) -> Pack:
    """Give lanes where `chosen` is 1 the rows of tendons' limits that the velocities found violate; 1 in lanes that get
    any."""
    zero = zero_like(chosen)
    changed = zero
    for n in range(solver.pack.limited.shape[0]):
        index, side = solver.pack.limited[n, 0], solver.pack.limited[n, 1]
        if side >= TENDON_LOWER:
            pressed = pressing(run.step, solver, n)
            new = where_greater(beyond_tendon_limit(run, equipment, index, side), zero, chosen - chosen * pressed, zero)
            run.step.pressed[solver.pack.limited[n, 2], solver.pack.limited[n, 3]] = pressed + new
            changed = largest(changed, new)
    return changed


@njit
def look_beyond(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle | None, solver: SolverBundle
) -> None:
    """Let lanes whose contacts yield, or belong to bodies that turn far, take the step alone.

    Needs the bodies' velocities of step.velocity, as search_again leaves them.
    """
    lanes = run.lanes
    if contact is not None:
        leave(lanes, contact.lanes.yielding[0], YIELDING)
        if contact.sweep is None:
            leave(lanes, sinks_in_lanes(robot, run, rows, contact), TURNED)


@njit
def _choose_bound(robot: RobotBundle, run: RunBundle, solver: SolverBundle, contact: PackContactBundle | None) -> None:
    """Set pack.bound, the lanes with rows, and pack.skip, those the solver ignores. Both include dead lanes."""
    lanes, one = run.lanes, like(1.0, robot.data)
    always = solver.pack.rubbing.shape[0] + robot.model.coupling_follower.shape[0] > 0
    always = always or lanes.own is not None or solver.pack.always[0] == 1
    solver.pack.bound[0] = one if always else zero_like(one)
    solver.pack.skip[0] = zero_like(one)
    if contact is not None:
        solver.pack.bound[0] = largest(solver.pack.bound[0], contact.lanes.touching[0])
        solver.pack.skip[0] = contact.lanes.yielding[0]
    for n in range(solver.pack.limited.shape[0]):
        solver.pack.bound[0] = largest(solver.pack.bound[0], pressing(run.step, solver, n))
    idle = where_greater(solver.pack.bound[0], zero_like(one), solver.pack.done[0], one)
    solver.pack.skip[0] = where_greater(idle, zero_like(one), one, solver.pack.skip[0])
    for lane in range(lane_count(robot.state.qpos)):
        if not lanes.data.alive[lane]:
            lane_set(solver.pack.bound, 0, lane, 1.0)
            lane_set(solver.pack.skip, 0, lane, 1.0)
