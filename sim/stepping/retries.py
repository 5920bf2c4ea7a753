"""Decides whether a step is solved again, and from where: step.solve_step loops on the result of `look_again`.

| the velocities found show that | change | solved again | at most |
|---|---|---|---|
| a limit would be violated that has no row (constraints/limit_rows.py) | the limit gets a row | from the rows | 4 nv |
| a drive leaves its bounds (equipment/drives.py) | its force becomes constant, at last a row | from the rows | 8 + 16 |
| an actuator leaves its bounds (equipment/implicit_actuators.py) | its force becomes constant | from the rows | 8 + 8
(nv + actuators); 8 + 16 in packs |
| hard loops yield (stepping/strain.py) | contacts that they yield to, or their softness | on the spot | 6 |
| hard loops, tendon equalities and curved couplings miss (stepping/aims.py) | their biases | on the spot | 12 |
| contacts slip for want of grip (contact/contact_rows.py) | their coefficients | from the rows | 3 each |
| impacts cause further impacts (contact/rebounds.py) | biases of contacts | on the spot | 6 |
| contacts gain energy (contact/rebounds.py) | biases of contacts | on the spot | 6 |
| a link is too fast (constraints/link_velocity_rows.py) | the direction bounded | from the rows | 8 |
| bodies are taut (midpoint.py) | their inertias are stiffened | from the bias | 1 |
| bodies turn fast, couplings curve (midpoint.py) | where the bias acts | from the bias | 8 |
| shapes leave their speculative margins (detection.py) | the contacts | from the bias | 3; 39 if some bounce |
| contacts of bodies that turn far miss (contact/foresight.py) | their biases | on the spot | 6 |

The table is in order: each line is settled before those below it are examined, and again after them.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import like, velocities
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.drive_rows import make_drives_rows
from artsim.sim.constraints.limit_rows import opens_cones, presses
from artsim.sim.constraints.link_velocity_rows import MOST_BOUND_ROUNDS as MOST_ROUNDS
from artsim.sim.constraints.link_velocity_rows import aim_bounds, note_excess
from artsim.sim.constraints.loop_rows import has_hard_loops
from artsim.sim.constraints.tendon_rows import tendons_hold
from artsim.sim.constraints.turn_limit_rows import opens_turns
from artsim.sim.contact.contact_rows import grips_more, may_bounce, reset_grip
from artsim.sim.contact.detection import are_as_before, detected, note_found, outrun
from artsim.sim.contact.foresight import choose_aimed
from artsim.sim.contact.rebounds import aim_again, begin_bounces, bounce_on, is_bouncing
from artsim.sim.equipment.arrays import ROUNDS_TOGETHER, AnyEquipment, EitherEquipment, EquipmentBundle
from artsim.sim.equipment.drives import hold_drives, set_drives
from artsim.sim.equipment.implicit_actuators import excess_at_bounds, hold_actuators
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.geometry.contacts import CONTACTS, ContactBundle, EitherContacts
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.phases import BROAD_PHASE, SOLVER, SYSTEM
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    BETA,
    CROWDED,
    DRIVE_ROWS,
    FREE_STEPS_POSSIBLE,
    ITERATIONS,
    LASTING_ROWS,
    RESIDUAL,
    RULE_ROUNDS,
    SEARCHES,
    STOP_REASON,
    WITHOUT_ROWS,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import SOLVE_AGAIN, SolverBundle
from artsim.sim.solvers.calls import ask, sweeps_rows
from artsim.sim.stepping.aims import aim_rows, begin_aims, is_aiming
from artsim.sim.stepping.contact_aims import aim_contacts
from artsim.sim.stepping.evaluations import misplaces_bias, start_evaluations
from artsim.sim.stepping.free_motion import free_step
from artsim.sim.stepping.midpoint import (
    note_struck,
)
from artsim.sim.stepping.pack_stages import (
    break_rules_in_lanes,
    hold_without_rows_in_lanes,
    lanes_to_look_at,
    leave_unsettled,
    leave_where_strained,
    next_in_lanes,
    outdate_actuator_rows,
    press_tendons,
    start_in_lanes,
)
from artsim.sim.stepping.strain import settle_strain
from artsim.sim.stepping.system import set_end_velocities

FROM_BIAS, FROM_ROWS, FROM_TARGETS, SOLVED = range(4)

_ROUNDS_PER_FORCE = 8  # rounds per force that may be at a bound
_ROUNDS_OF_DRIVES = 16  # one by one, before drives become rows
_SEARCHES = 4  # for contacts, where the step moves shapes farther than their margins
_SEARCHES_OF_BLOWS = 40  # for contacts that bounce: each search finds contacts of the bodies just struck


@njit
def start_search(robot: RobotBundle, run: RunBundle, rows: Rows, contact: EitherContacts, solver: SolverBundle) -> None:
    """Set the velocities expected midway, from which evaluations with these contacts start."""
    step = run.step
    one = like(1.0, robot.data)
    if contact is not None:
        if run.lanes is None:
            note_struck(robot.data, contact)
        reset_grip(contact, one)
    start_evaluations(robot, run, one)
    begin_targets(run, rows, contact, one)
    step.bound_rounds[0] = zero_like(one)
    for k in range(step.pressed.shape[0]):
        for side in range(step.pressed.shape[1]):
            step.pressed[k, side] = zero_like(one)
    if run.lanes is not None:
        start_in_lanes(robot, run, contact, solver)
    else:
        for n in range(RULE_ROUNDS, step.retries.shape[0]):
            step.retries[n] = 0


@njit
def holds_without_rows(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    solver: SolverBundle,
) -> bool:
    """True if the step without rows suffices. This step is tried, in O(n), where only limits may call for rows."""
    if run.lanes is not None:
        return hold_without_rows_in_lanes(robot, run, rows, equipment, contact, solver)
    step = run.step
    _choose_implicit(run, rows, solver)
    set_drives(run)
    rows.report[ITERATIONS] = 0.0
    step.retries[WITHOUT_ROWS] = 0
    if step.counters[FREE_STEPS_POSSIBLE] == 1 and not _touches(contact) and not _springs_are_rows(equipment):
        rows.number[ALL_ROWS] = 0
        rows.number[LASTING_ROWS] = 0
        rows.report[RESIDUAL] = 0.0
        settled = _settles_freely(robot, run, rows, equipment)
        mark(run.clock, SYSTEM)
        if settled and _holds(robot, run, equipment) and not _clamped(run, equipment):
            step.retries[WITHOUT_ROWS] = 1
    return step.retries[WITHOUT_ROWS] == 1


@inlined
def _choose_implicit(run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """Choose the drives that are part of M̂: all, but those of sweeping solvers and those that have become rows."""
    inputs = run.inputs
    for k in range(rows.implicit.shape[0]):
        driven = inputs.drive_stiffness[k] + inputs.drive_damping[k] > 0.0
        by_row = sweeps_rows(solver) or (run.step.retries[DRIVE_ROWS] == 1 and inputs.drive_limit[k] < math.inf)
        rows.implicit[k] = 1 if driven and not by_row else 0


@njit
def _settles_freely(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None) -> bool:
    """Take the step without rows, with drives held at their largest forces; False if the drives do not settle."""
    for _ in range(ROUNDS_TOGETHER):
        free_step(robot, run, rows, equipment)
        if hold_drives(robot, run, rows, 1.0, 0.0) <= 0.0:
            return True
        set_drives(run)
    return False


@njit
def look_again(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> int:
    """Return the stage from which the velocities found require the step to be solved again, or SOLVED.

    Lanes of a pack are solved again together, each for its own reasons: a decision depends on the lane's own numbers.
    Lanes that the pack does not solve take the step alone.
    """
    left = like(1.0, robot.data)
    if run.lanes is not None:
        left = lanes_to_look_at(run, solver, left)
    changed, aimed = zero_like(left), zero_like(left)
    if run.step.retries[WITHOUT_ROWS] == 0 or run.lanes is not None:
        fresh = left - left * _goes_on(run, contact)
        changed = _change_bounds(robot, run, rows, equipment, solver, fresh)
        left = _settle_strain(robot, run, rows, equipment, contact, solver, left - changed, fresh - changed)
        aimed = _aim_again(robot, run, rows, equipment, contact, solver, left)
        left = left - aimed
        moving = left - left * fresh  # where velocities have changed since limits were looked at
        if run.lanes is None and equipment is not None and has_hard_loops(equipment):  # or strain may have changed them
            moving = left
        late = _change_rows(robot, run, rows, equipment, contact, rules, solver, (left, moving))
        changed, left = changed + late, left - late
    moved = zero_like(left)
    if not sweeps_rows(solver):
        moved = misplaces_bias(robot, run, rows, _loops_of(run, equipment), left)
    begin_targets(run, rows, contact, changed + moved)
    if run.lanes is not None:
        further = next_in_lanes(robot, run, rows, equipment, contact, solver, (changed, aimed, moved))
        return FROM_BIAS if further else SOLVED
    if changed + moved > 0.0:
        return FROM_ROWS if changed > 0.0 else FROM_BIAS
    if aimed > 0.0:
        return FROM_TARGETS
    if contact is not None:
        if _outruns_contacts(robot, run, rows, contact, solver):
            return FROM_BIAS
        if _aims_contacts(robot, run, rows, contact, solver):
            changed = _change_rows(robot, run, rows, equipment, contact, None, solver, (1.0, 1.0))
            begin_targets(run, rows, contact, changed)
            if changed > 0.0:
                return FROM_ROWS
    return SOLVED


@inlined
def _loops_of(run: RunBundle, equipment: EitherEquipment) -> AnyEquipment | None:
    """The equipment with the loops, or the loops of a pack."""
    if run.lanes is not None:
        return run.lanes.loops
    return equipment


@inlined
def press_limits(
    robot: RobotBundle, run: RunBundle, equipment: EitherEquipment, solver: SolverBundle, chosen: Real
) -> Real:
    """1 where `chosen` is 1 and the velocities found violate sides of limits without rows, which now get them."""
    pressed = presses(robot, run, chosen, False)
    if run.lanes is not None and solver.pack is not None and equipment is not None:
        pressed = largest(pressed, press_tendons(run, equipment, solver, chosen))
    return pressed


@inlined
def _goes_on(run: RunBundle, contact: EitherContacts) -> Real:
    """1 in the midst of a sequence of solutions that differ in targets alone."""
    midst = is_aiming(run.step)
    if contact is not None:
        midst = largest(midst, is_bouncing(contact))
    return midst


@njit
def begin_targets(run: RunBundle, rows: Rows, contact: EitherContacts, chosen: Real) -> None:
    """Aim the rows and the rebounds of contacts from the beginning where `chosen` is 1."""
    if any_positive(chosen):
        begin_aims(run, rows, chosen)
        if contact is not None:
            begin_bounces(contact, chosen)


@njit
def _change_bounds(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EitherEquipment, solver: SolverBundle, chosen: Real
) -> Real:
    """1 where `chosen` is 1 and rows must be built anew, since limits call for rows, or drives or actuators leave their
    bounds or return within them. Drives that do not settle become rows. Bounds of actuators that are still violated
    after the last round count as the solver's residual.
    """
    step = run.step
    if not any_positive(chosen):
        return chosen
    pressed = press_limits(robot, run, equipment, solver, chosen)
    zero = zero_like(chosen)
    left = chosen - pressed
    step.bound_rounds[0] = step.bound_rounds[0] + left
    one = where_greater(step.bound_rounds[0], zero + (ROUNDS_TOGETHER + 0.5), zero + 1.0, zero)
    changed = hold_drives(robot, run, rows, left, one)
    if any_positive(changed):
        _change_drives(run, rows)
    if equipment is not None:
        changed = changed + _hold_actuators(run, rows, equipment, left - changed, one)
    if run.lanes is not None:
        leave_unsettled(run, changed)
    step.bound_rounds[0] = where_greater(left - changed, zero, zero, step.bound_rounds[0])
    return pressed + changed


@inlined
def _change_drives(run: RunBundle, rows: Rows) -> None:
    """Set the gains of drives of which some are held or released, or make rows of those of one robot that do not
    settle."""
    if run.lanes is None and run.step.bound_rounds[0] >= ROUNDS_TOGETHER + _ROUNDS_OF_DRIVES:
        make_drives_rows(run, rows)
        run.step.bound_rounds[0] = 0.0
    else:
        set_drives(run)


@inlined
def _hold_actuators(run: RunBundle, rows: Rows, equipment: EquipmentBundle, chosen: Real, one: Real) -> Real:
    """1 where `chosen` is 1 and actuators leave their bounds, or return within them; for one robot up to the last
    round."""
    if run.lanes is None:
        forces = run.step.velocity.shape[0] + equipment.model.actuator_target.shape[0]
        if chosen > 0.0 and run.step.bound_rounds[0] >= ROUNDS_TOGETHER + _ROUNDS_PER_FORCE * forces:
            rows.report[RESIDUAL] = max(rows.report[RESIDUAL], excess_at_bounds(run, equipment))
            return 0.0
    changed = hold_actuators(run, equipment, chosen, one)
    if run.lanes is not None:
        outdate_actuator_rows(run, equipment, changed)
    return changed


@inlined
def _settle_strain(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    solver: SolverBundle,
    left: Real,
    fresh: Real,
) -> Real:
    """Settle strained loops where `fresh` is 1, which is their first solution; 1 where `left` is 1 and the lane goes
    on."""
    if run.lanes is not None:
        return leave_where_strained(run, rows, contact, left, fresh)
    if equipment is not None and fresh > 0.0 and has_hard_loops(equipment) and not sweeps_rows(solver):
        settle_strain(robot, run, rows, equipment, contact, solver)
    return left


@njit
def _aim_again(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    solver: SolverBundle,
    chosen: Real,
) -> Real:
    """1 where `chosen` is 1 and the rows are to be solved again with other targets, of loops or of contacts. The
    sweeping solvers take the published step as it stands, without further solutions.
    """
    if sweeps_rows(solver) or not any_positive(chosen):
        return zero_like(chosen)
    aimed = zero_like(chosen)
    if run.lanes is None:
        aimed = aim_rows(robot, run, rows, equipment, rows.impulse, chosen)
    elif run.lanes.own is not None:
        aimed = aim_rows(robot, run, rows, run.lanes.loops, solver.pack.impulse, chosen)
    if contact is not None:
        bounced = bounce_on(robot, run, rows, contact, solver, chosen - aimed)
        if run.lanes is None and any_positive(bounced):
            aim_again(robot, run.inputs, rows, contact)
        aimed = aimed + bounced
    return aimed


@njit
def solve_again(robot: RobotBundle, run: RunBundle, solver: SolverBundle) -> None:
    """Solve the rows of a single robot again, which differ from those solved before in their biases alone."""
    if run.lanes is None:
        ask(solver.call, SOLVE_AGAIN)
        set_end_velocities(robot.model, robot.data, run)
        mark(run.clock, SOLVER)


@njit
def _change_rows(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
    lanes: tuple[Real, Real],
) -> Real:
    """1 where the targets just reached call for other rows: of limits, of contacts that slip for want of grip, of links
    that are too fast. `lanes`: 1 where to look, and 1 where to look at limits."""
    chosen, moving = lanes
    changed = zero_like(chosen)
    if not any_positive(chosen):
        return changed
    if any_positive(moving):
        changed = press_limits(robot, run, equipment, solver, moving)
    if contact is not None:
        changed = changed + grips_more(run.inputs, rows, contact, chosen - changed)
    if run.lanes is not None:
        return changed + break_rules_in_lanes(robot, run, chosen - changed)
    if rules is not None and changed <= 0.0 and _breaks_rules(robot, run, rows, rules):
        changed = 1.0
    return changed


@njit
def _breaks_rules(robot: RobotBundle, run: RunBundle, rows: Rows, rules: RuleBundle) -> bool:
    """True if rows must be rebuilt since links exceed their velocity bounds in directions that have no row yet."""
    step = run.step
    step.retries[RULE_ROUNDS] += 1
    if aim_bounds(robot, run, rules) and step.retries[RULE_ROUNDS] < MOST_ROUNDS:
        return True
    note_excess(robot.model, robot.data, rows, step, rules)
    step.retries[RULE_ROUNDS] = 0
    return False


@njit
def _outruns_contacts(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: ContactBundle, solver: SolverBundle
) -> bool:
    """True if shapes leave their speculative margins and meet other contacts; bodies then have their velocities from
    before the step again, else those at its end. If contacts exceed the room, step.counters say so.
    """
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    step.retries[SEARCHES] += 1
    most = _SEARCHES_OF_BLOWS if may_bounce(contact) else _SEARCHES
    if step.retries[SEARCHES] >= most:
        velocities(model, step.velocity, data)
    elif outrun(model, data, run, contact):
        velocities(model, state.qvel, data)
        count = contact.data.number[CONTACTS]
        note_found(contact.data.before, contact)
        if not detected(robot, contact):
            step.counters[STOP_REASON] = CROWDED
            return False
        mark(run.clock, BROAD_PHASE)
        if not are_as_before(contact.data.before, contact, count):
            start_search(robot, run, rows, contact, solver)
            return True
        velocities(model, step.velocity, data)
    return False


@njit
def _aims_contacts(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: ContactBundle, solver: SolverBundle
) -> bool:
    """True if contacts of bodies that turn far are aimed at where the velocities found lead, by further solutions.

    Needs the bodies' velocities at the step's end, and leaves those from before the step.
    """
    aims: bool = not sweeps_rows(solver) and run.inputs.scheme[BETA] == 1.0
    aims = aims and contact.data.advancement[0] == 0  # the continuous check has contacts of times before the end
    aims = aims and run.step.counters[STOP_REASON] != CROWDED and choose_aimed(robot, run, rows, contact)
    if aims:
        aim_contacts(robot, run, rows, contact, solver)
    velocities(robot.model, robot.state.qvel, robot.data)
    return aims


@njit
def _holds(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> bool:
    """True if the velocities found satisfy all limits of joints and tendons."""
    if presses(robot, run, 1.0, True) > 0.0 or opens_cones(robot, run) or opens_turns(robot, run):
        return False
    if equipment is not None:
        return tendons_hold(run, equipment)
    return True


@njit
def _clamped(run: RunBundle, equipment: EquipmentBundle | None) -> bool:
    """Hold actuators that leave their bounds; True if there are any."""
    if equipment is not None:
        return hold_actuators(run, equipment, 1.0, 0.0) > 0.0
    return False


@inlined
def _springs_are_rows(equipment: EquipmentBundle | None) -> bool:
    """True if tendons' springs are too stiff to be explicit at this time step."""
    if equipment is not None:
        return equipment.data.tendon_by_row[0] == 1.0
    return False


@inlined
def _touches(contact: ContactBundle | None) -> bool:
    """True if there are contacts, touching or speculative."""
    if contact is not None:
        return contact.data.number[CONTACTS] > 0
    return False
