"""Stages of step.solve_step that differ for a pack, which takes them for all lanes at once.

All lanes take the step without rows, or the step with couplings and the rows of joint friction, of limits and of
contacts with static shapes. Lanes whose limits or actuators leave their bounds get further rows and held forces, and
the step is solved again; the other lanes then find the velocities found before, to the last bit. lanes.beyond marks the
lanes that touch something else, or are not solved by the packs' solver: pack_step.py takes the steps of those lanes one
by one.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import end_velocities
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.limit_rows import beyond_limit
from artsim.sim.constraints.tendon_rows import beyond_tendon_limit
from artsim.sim.contact.foresight import sinks_in_lanes
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.pack_detection import find_in_lanes, lacks_room, search_again
from artsim.sim.contact.rebounds import begin_bounces, bounce_on, goes_on
from artsim.sim.equipment.actuation import find_places
from artsim.sim.equipment.arrays import ROUNDS_TOGETHER, TENDON_LOWER
from artsim.sim.equipment.bounds import still_free
from artsim.sim.equipment.drives import begin_drives, hold_drives, set_drives
from artsim.sim.equipment.pack_actuation import gather, hold_forces
from artsim.sim.equipment.pack_equipment import PackEquipment
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, highest, lane_count, lane_set, where_greater, zero_like
from artsim.sim.foundation.records import Pack
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.run_data.run_records import M_IS_SET, WEIGHED, WITHOUT_ROWS, Rows, RunBundle
from artsim.sim.run_data.scratch import KNOWN_ROWS, SAME_ROWS, SolverBundle
from artsim.sim.stepping.aims import aim_rows
from artsim.sim.stepping.controller import command
from artsim.sim.stepping.evaluations import misplaces_bias, start_evaluations
from artsim.sim.stepping.free_motion import free_step
from artsim.sim.stepping.lane_equipment import exert
from artsim.sim.stepping.lane_rows import (
    aim_bounds_in_lanes,
    begin_own_rows,
    clamp_own_actuators,
    forget_aims,
    takes_springs,
)
from artsim.sim.stepping.pack_rows import slips_in_lanes, throw
from artsim.sim.stepping.packs import (
    BOUNDS,
    CROWD,
    OUTRUN,
    SLIPPED,
    STIFF_TENDON,
    STRAINED,
    THROWN,
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
def find_forces_in_lanes(robot: RobotBundle, run: RunBundle, equipment: PackEquipment) -> None:
    """Forces at the state, and the targets of drives."""
    state = robot.state
    find_places(robot.model, state.qpos, run, 0)
    run.lanes.data.leaves[0] = like(-1.0, robot.data)
    if connected(run.lanes.helpers.exerter[0]):
        exert(robot, run, equipment)
        if not takes_springs(run.lanes):
            leave(run.lanes, equipment.data.stiff[0], STIFF_TENDON)
    command(robot, state.qpos, state.qvel, run, equipment, run.inputs.time_step[0])
    begin_drives(state, run.step)
    set_drives(run)
    gather(equipment)


@njit
def look_for_contacts_in_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle) -> bool:
    """Detect the step's contacts; False, with lanes.counters[CROWD] = 1, where they exceed the room."""
    if not find_in_lanes(robot, run.inputs, contact, run.lanes.data.alive):
        run.lanes.data.counters[CROWD] = 1
        return False
    return True


@njit
def start_in_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle | None, solver: SolverBundle) -> None:
    """Set the start of the step: the velocities before it, the contacts found, and the limits that pressed in the last
    step.
    """
    lanes, zero = run.lanes, like(0.0, robot.data)
    lanes.data.searches[0] = zero
    lanes.data.rounds[0] = zero
    start_evaluations(robot, run, zero + 1.0)
    if lanes.own is not None:
        begin_own_rows(run, zero + 1.0)
    if solver.pack is not None:
        solver.pack.done[0] = zero
        solver.pack.listing[KNOWN_ROWS] = 0
        solver.pack.listing[SAME_ROWS] = 0
        if contact is not None and contact.bounces is not None:
            begin_bounces(contact, zero + 1.0)
        for side in range(solver.pack.pressed.shape[0]):
            pressing = robot.state.impulse[solver.pack.limit_place[side]]
            solver.pack.pressed[side] = where_greater(pressing, zero, zero + 1.0, zero)
            solver.pack.limit_row[side] = -1


@njit
def hold_without_rows_in_lanes(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: PackEquipment,
    contact: PackContactBundle | None,
    solver: SolverBundle,
) -> bool:
    """True if no lane with rows or couplings is to be solved; otherwise the velocities of the step without rows are in
    solver.pack.free."""
    if solver.pack is None:
        free_step(robot, run, rows, equipment)
        run.step.retries[WITHOUT_ROWS] = 1
        return True
    _choose_bound(robot, run.lanes, solver, contact)
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


@njit
def changes_in_lanes(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: PackEquipment,
    contact: PackContactBundle | None,
    solver: SolverBundle,
) -> bool:
    """True if the step must be solved again, since in some lanes the velocities found call for other rows of limits,
    other forces held at their bounds, or the bias at another step.middle, which are then set.

    The changes of a lane depend on its own velocities only. A lane whose bounds change settles its bounds first.
    """
    lanes = run.lanes
    zero = like(0.0, robot.data)
    one = zero + 1.0
    chosen, bouncing = _lanes_to_look_at(lanes, contact, solver, one)
    changed = _change_bounds(robot, run, rows, equipment, solver, chosen)
    settled, again = chosen - changed, _count_round(lanes, changed)
    if lanes.own is not None:
        forget_aims(run, rows, changed)
        if lanes.lane_rows is None:
            lanes.own.outdated[0] = largest(lanes.own.outdated[0], changed)
        if lanes.loops is not None:
            strained = strains(run, rows, contact, settled)
            leave(lanes, strained, STRAINED)
            settled = settled - strained
        solved = where_greater(solver.pack.skip[0], zero, zero, settled)
        aimed = aim_rows(robot, run, rows, lanes.loops, solver.pack.impulse, solved)
        settled, again = settled - aimed, largest(again, aimed)
    if contact is not None and contact.bounces is not None:
        bounced = bounce_on(robot, run, rows, contact, solver, settled + bouncing)
        settled, again = settled + bouncing - bounced, largest(again, bounced)
        pressed = _press_after_bounces(
            robot, run, rows, equipment, contact, solver, bouncing - least(bouncing, bounced)
        )
        settled, again = settled - pressed, largest(again, _count_round(lanes, pressed))
        changed = largest(changed, pressed)
    if lanes.lane_rows is not None:
        broken = _breaks_bounds(robot, run, rows, contact, settled)
        settled, again = settled - least(settled, broken), largest(again, where_greater(broken, one, zero, broken))
    moved = misplaces_bias(robot, run, rows, lanes.loops, settled)
    if lanes.own is not None:
        begin_own_rows(run, moved)
    if contact is not None and contact.bounces is not None:
        begin_bounces(contact, moved)
    again = largest(again, moved)
    if highest(again) > 0.0:
        _note_changes(run, equipment, solver, changed)
    elif contact is not None:
        again = _outruns_contacts(robot, run, contact, solver)
    if highest(again) <= 0.0:
        return False
    if solver.pack is not None:
        solver.pack.done[0] = one - again
        for k in range(run.step.next.shape[0]):
            solver.pack.kept[k] = run.step.next[k]
    return True


@inlined
def _lanes_to_look_at(
    lanes: LaneBundle, contact: PackContactBundle | None, solver: SolverBundle, one: Pack
) -> tuple[Pack, Pack]:
    """1 in lanes whose solution is to be looked at; 1 in those that are in the midst of a bounce."""
    zero = zero_like(one)
    chosen, bouncing = one, zero
    if solver.pack is not None:
        leave(lanes, solver.pack.bound[0] - solver.pack.solved[0], UNSOLVED)
        chosen = where_greater(solver.pack.done[0], zero, zero, chosen)
        if contact is not None:
            chosen = where_greater(contact.lanes.yielding[0], zero, zero, chosen)
    chosen = where_greater(lanes.data.leaves[0], zero, zero, chosen)
    if contact is not None and contact.bounces is not None:
        bouncing = chosen * goes_on(contact)
        chosen = chosen - bouncing
    return chosen, bouncing


@inlined
def _change_bounds(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: PackEquipment, solver: SolverBundle, chosen: Pack
) -> Pack:
    """Hold drives and actuators at their bounds, and let limits press, in chosen lanes; 1 in those that change."""
    lanes = run.lanes
    zero = zero_like(chosen)
    one_by_one = where_greater(lanes.data.rounds[0], zero + (ROUNDS_TOGETHER - 0.5), zero + 1.0, zero)
    changed = hold_drives(robot, run, rows, chosen, one_by_one)
    free = still_free(chosen, one_by_one, changed)
    changed = largest(changed, hold_forces(robot, run, equipment, free, one_by_one))
    if lanes.lane_rows is not None:
        held = clamp_own_actuators(robot, run, still_free(chosen, one_by_one, changed))
        changed = largest(changed, held)
    if solver.pack is not None:
        changed = largest(changed, _press(robot, run, equipment, solver, chosen))
    return changed


@inlined
def _note_changes(run: RunBundle, equipment: PackEquipment, solver: SolverBundle, changed: Pack) -> None:
    """Prepare forces and rows for a further solution, after changes of bounds in lanes where `changed` is 1."""
    lanes = run.lanes
    if highest(changed) > 0.0:
        set_drives(run)
        gather(equipment)
    if solver.pack is not None:
        solver.pack.warm[0] = solver.pack.bound[0]
        anew = highest(changed) > 0.0 or run.step.counters[WEIGHED] & M_IS_SET == 0
        if lanes.lane_rows is not None:
            anew = True
        solver.pack.listing[SAME_ROWS] = 0 if anew else 1


@inlined
def _count_round(lanes: LaneBundle, changed: Pack) -> Pack:
    """Count a round in lanes whose bounds have changed; 1 in those that may go on."""
    zero = zero_like(changed)
    lanes.data.rounds[0] = lanes.data.rounds[0] + changed
    given_up = where_greater(lanes.data.rounds[0], zero + (ROUNDS_TOGETHER + _ROUNDS_ONE_BY_ONE), changed, zero)
    leave(lanes, given_up, BOUNDS)
    return changed - given_up


@inlined
def _breaks_bounds(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle | None, chosen: Pack
) -> Pack:
    """Direct the rows that bound velocities of links; 1 in lanes to be solved again. Lanes that no round brings within
    their bounds take the step alone."""
    broken = aim_bounds_in_lanes(robot, run, chosen)
    one = zero_like(chosen) + 1.0
    leave(run.lanes, broken - one, BOUNDS)
    forget_aims(run, rows, broken)
    if contact is not None and contact.bounces is not None:
        begin_bounces(contact, broken)
    return broken


@inlined
def _press_after_bounces(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: PackEquipment,
    contact: PackContactBundle,
    solver: SolverBundle,
    chosen: Pack,
) -> Pack:
    """Give chosen lanes, solved again for bounces, the rows of limits that the bounces violate; 1 in lanes that get
    any."""
    pressed = zero_like(chosen)
    if any_positive(chosen):
        pressed = _press(robot, run, equipment, solver, chosen)
        begin_bounces(contact, pressed)
        if run.lanes.own is not None:
            forget_aims(run, rows, pressed)
    return pressed


@njit
def _outruns_contacts(robot: RobotBundle, run: RunBundle, contact: PackContactBundle, solver: SolverBundle) -> Pack:
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
    late = where_greater(lanes.data.searches[0], zero + (most - 0.5), chosen, zero)
    other = search_again(robot, run, contact, chosen)
    if lacks_room(contact):
        lanes.data.counters[CROWD] = 1
        return zero
    leave(lanes, late * other, OUTRUN)
    other = other * (zero + 1.0 - late)
    lanes.data.searches[0] = lanes.data.searches[0] + other
    if any_positive(other):
        solver.pack.warm[0] = zero
        solver.pack.listing[SAME_ROWS] = 0
        lanes.data.rounds[0] = zero
        start_evaluations(robot, run, other)
        if lanes.own is not None:
            begin_own_rows(run, other)
        if contact.bounces is not None:
            begin_bounces(contact, other)
    return other


@inlined
def _press(robot: RobotBundle, run: RunBundle, equipment: PackEquipment, solver: SolverBundle, chosen: Pack) -> Pack:
    """Give lanes where `chosen` is 1 the rows of limits that the velocities found violate; 1 in lanes that get any."""
    zero = zero_like(chosen)
    changed = zero
    for n in range(solver.pack.pressed.shape[0]):
        index, side = solver.pack.limited[n, 0], solver.pack.limited[n, 1]
        if side >= TENDON_LOWER:
            beyond = beyond_tendon_limit(run, equipment, index, side)
        else:
            beyond = beyond_limit(robot, run, index, side)
        new = where_greater(beyond, zero, chosen - chosen * solver.pack.pressed[n], zero)
        solver.pack.pressed[n] = solver.pack.pressed[n] + new
        changed = largest(changed, new)
    return changed


@njit
def look_beyond(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle | None, solver: SolverBundle
) -> None:
    """Set lanes.beyond to more than 0 in lanes that are to be solved again for other reasons, or whose contacts yield.

    Needs the bodies' velocities of step.velocity, as search_again leaves them.
    """
    lanes = run.lanes
    if contact is not None:
        if contact.bounces is None:
            leave(lanes, throw(robot, run, rows, solver, contact), THROWN)
        leave(lanes, contact.lanes.yielding[0], YIELDING)
        leave(lanes, slips_in_lanes(rows, contact), SLIPPED)
        if contact.sweep is None:
            leave(lanes, sinks_in_lanes(robot, run, rows, contact), TURNED)


@njit
def _choose_bound(
    robot: RobotBundle, lanes: LaneBundle, solver: SolverBundle, contact: PackContactBundle | None
) -> None:
    """Set pack.bound, the lanes with rows, and pack.skip, those the solver ignores. Both include dead lanes."""
    one = like(1.0, robot.data)
    always = solver.pack.rubbing.shape[0] + robot.model.coupling_follower.shape[0] > 0
    always = always or lanes.own is not None or solver.pack.always[0] == 1
    solver.pack.bound[0] = one if always else zero_like(one)
    solver.pack.skip[0] = zero_like(one)
    if contact is not None:
        solver.pack.bound[0] = largest(solver.pack.bound[0], contact.lanes.touching[0])
        solver.pack.skip[0] = contact.lanes.yielding[0]
    for side in range(solver.pack.pressed.shape[0]):
        solver.pack.bound[0] = largest(solver.pack.bound[0], solver.pack.pressed[side])
    idle = where_greater(solver.pack.bound[0], zero_like(one), solver.pack.done[0], one)
    solver.pack.skip[0] = where_greater(idle, zero_like(one), one, solver.pack.skip[0])
    for lane in range(lane_count(robot.state.qpos)):
        if not lanes.data.alive[lane]:
            lane_set(solver.pack.bound, 0, lane, 1.0)
            lane_set(solver.pack.skip, 0, lane, 1.0)
