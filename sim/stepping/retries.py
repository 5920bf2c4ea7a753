"""Decides whether a step is solved again, and from where: solution.solve_step loops on the result of `look_again`.

| the velocities found show that | change | solved again | at most |
|---|---|---|---|
| a limit would be violated that has no row (constraints/limit_rows.py) | the limit gets a row | from the rows | 4 nv |
| a drive leaves its bounds (equipment/drives.py) | its force becomes constant, at last a row | from the rows | 8 + 16 |
| an actuator leaves its bounds (equipment/implicit_actuators.py) | its force becomes constant | from the rows | 8 + 8
(nv + actuators) |
| hard loops yield (stepping/strain.py) | contacts that they yield to, or their softness | on the spot | 13 |
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

from artsim.sim.articulation.kinematics import like, velocities
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.drive_rows import make_drives_rows
from artsim.sim.constraints.impedance import is_convex
from artsim.sim.constraints.limit_rows import begin_limits, has_ball_limits, presses, turns_too_far
from artsim.sim.constraints.link_velocity_rows import MOST_BOUND_ROUNDS as MOST_ROUNDS
from artsim.sim.constraints.link_velocity_rows import aim_bounds, loosen, note_excess
from artsim.sim.constraints.loop_rows import has_hard_loops
from artsim.sim.constraints.tendon_limit_rows import begin_tendon_limits, press_tendons
from artsim.sim.contact.contact_rows import grips_more, reset_grip
from artsim.sim.contact.rebounds import aim_again, begin_bounces, bounce_on, is_bouncing
from artsim.sim.equipment.arrays import ROUNDS_TOGETHER, EitherEquipment, EquipmentBundle
from artsim.sim.equipment.drives import hold_drives, set_drives
from artsim.sim.equipment.implicit_actuators import excess_at_bounds, hold_actuators
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, lane_of, where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.geometry.contacts import EitherContacts
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.phases import SOLVER
from artsim.sim.run_data.run_records import (
    CROWDED,
    ITERATIONS,
    RESIDUAL,
    STOP_DOF,
    STOP_REASON,
    TOO_FAST,
    WITHOUT_ROWS,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import SOLVE_AGAIN, SolverBundle
from artsim.sim.solvers.calls import ask, sweeps_rows
from artsim.sim.stepping.aims import aim_rows, begin_aims, is_aiming
from artsim.sim.stepping.contact_aims import (
    aim_contacts,
    aims_contacts,
    begin_contact_aims,
    has_contact_aims,
    is_aiming_contacts,
)
from artsim.sim.stepping.evaluations import misplaces_bias, start_evaluations
from artsim.sim.stepping.lane_calls import begin_solutions, lanes_to_look_at, start_again
from artsim.sim.stepping.lane_ends import end
from artsim.sim.stepping.midpoint import note_struck
from artsim.sim.stepping.searches import outruns_contacts
from artsim.sim.stepping.strain import begin_strain, is_straining, settle_strain
from artsim.sim.stepping.system import set_end_velocities

FROM_BIAS, FROM_ROWS, FROM_TARGETS, SOLVED = range(4)

_ROUNDS_PER_FORCE = 8  # rounds per force that may be at a bound
_ROUNDS_OF_DRIVES = 16  # one by one, before drives become rows


@njit
def start_search(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Begin the search for the velocities at the step's end, with the contacts at its start."""
    if run.lanes is not None:
        run.lanes.data.searches[0] = like(0.0, robot.data)
    if solver.pack is not None:
        begin_solutions(solver.pack)
    _begin_with_contacts(robot, run, rows, equipment, contact, rules, like(1.0, robot.data))


@njit
def _begin_with_contacts(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    rules: RuleBundle | None,
    chosen: Real,
) -> None:
    """Set the velocities expected midway, from which evaluations with these contacts start, where `chosen` is 1."""
    step, zero = run.step, zero_like(chosen)
    unforeseen = 1.0 if is_convex(run.inputs) and has_ball_limits(robot.model) else 0.0  # as such steps are solved once
    if contact is not None:
        if run.lanes is None:
            note_struck(robot.data, contact)
        reset_grip(contact, chosen)
    start_evaluations(robot, run, chosen)
    begin_targets(run, contact, chosen)
    step.bound_rounds[0] = where_greater(chosen, zero, zero, step.bound_rounds[0])
    step.drive_rows[0] = where_greater(chosen, zero, zero, step.drive_rows[0])
    step.ball_rows[0] = where_greater(chosen, zero, zero + unforeseen, step.ball_rows[0])
    step.rule_rounds[0] = where_greater(chosen, zero, zero, step.rule_rounds[0])
    step.outdated[0] = largest(step.outdated[0], chosen)
    rows.report[RESIDUAL] = where_greater(chosen, zero, zero, rows.report[RESIDUAL])
    rows.report[ITERATIONS] = where_greater(chosen, zero, zero, rows.report[ITERATIONS])
    begin_limits(robot, run, chosen)
    if equipment is not None:
        begin_tendon_limits(robot, run, equipment, chosen)
    if rules is not None:
        loosen(rules, chosen)
    if run.lanes is None:
        for n in range(WITHOUT_ROWS, step.retries.shape[0]):
            step.retries[n] = 0


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
    A step of the convex law is solved once.
    """
    if is_convex(run.inputs):
        return SOLVED
    left = like(1.0, robot.data)
    if solver.pack is not None:
        left = lanes_to_look_at(run.step, solver.pack, left)
    if contact is not None:
        left = left - left * is_aiming_contacts(contact)
    fresh = left - left * _goes_on(run, contact)
    changed = _change_bounds(robot, run, rows, equipment, solver, fresh)
    left = left - changed
    aimed = _settle_strain(robot, run, rows, equipment, contact, solver, left)
    aimed = aimed + _aim_again(robot, run, rows, equipment, contact, solver, left - aimed)
    left = left - aimed
    moving = left - left * fresh  # where velocities have changed since limits were looked at
    late = _change_rows(robot, run, rows, equipment, contact, rules, solver, (left, moving))
    changed, left = changed + late, left - late
    moved = zero_like(left)
    if not sweeps_rows(solver):
        moved = misplaces_bias(robot, run, rows, equipment, left)
    begin_targets(run, contact, changed + moved)
    run.step.outdated[0] = largest(run.step.outdated[0], changed + moved)
    if rules is not None:
        loosen(rules, moved)
    if contact is not None and not any_positive(changed + aimed + moved):
        other = outruns_contacts(robot, run, rows, contact, solver, 1.0 - has_contact_aims(contact))
        if any_positive(other):
            _begin_with_contacts(robot, run, rows, equipment, contact, rules, other)
            return FROM_BIAS
        aimed, changed = _aim_contacts(robot, run, rows, equipment, contact, solver)
        run.step.outdated[0] = largest(run.step.outdated[0], changed)
    if not any_positive(changed + aimed + moved):
        return SOLVED
    if solver.pack is not None:
        by_rules = rules is not None and any_positive(run.step.outdated[0])
        start_again(run.step, rows, solver.pack, (changed, aimed, moved), by_rules)
    if run.lanes is not None:
        return FROM_BIAS
    if any_positive(changed):
        return FROM_ROWS if any_positive(run.step.bound[0]) else FROM_BIAS
    return FROM_BIAS if any_positive(moved) else FROM_TARGETS


@inlined
def press_limits(robot: RobotBundle, run: RunBundle, equipment: EitherEquipment, chosen: Real) -> Real:
    """1 where `chosen` is 1 and the velocities found violate sides of limits without rows, which now get them."""
    step = run.step
    pressed = presses(robot, run, chosen)
    if equipment is not None:
        pressed = largest(pressed, press_tendons(robot, run, equipment, chosen))
    balls = turns_too_far(robot, run, chosen - chosen * step.bound[0])  # of which all have rows if there are any
    step.ball_rows[0] = largest(step.ball_rows[0], balls)
    return largest(pressed, balls)


@inlined
def _goes_on(run: RunBundle, contact: EitherContacts) -> Real:
    """1 in the midst of a sequence of solutions that differ in targets alone."""
    midst = largest(is_straining(run.step), is_aiming(run.step))
    if contact is not None:
        midst = largest(midst, is_bouncing(contact))
    return midst


@njit
def begin_targets(run: RunBundle, contact: EitherContacts, chosen: Real) -> None:
    """Settle strain, the aims of rows and the rebounds of contacts from the beginning where `chosen` is 1."""
    if any_positive(chosen):
        begin_strain(run.step, contact, chosen)
        begin_aims(run.step, chosen)
        if contact is not None:
            begin_bounces(contact, chosen)
            begin_contact_aims(contact, chosen)


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
    pressed = press_limits(robot, run, equipment, chosen)
    zero = zero_like(chosen)
    left = chosen - pressed
    step.bound_rounds[0] = step.bound_rounds[0] + left
    one = where_greater(step.bound_rounds[0], zero + (ROUNDS_TOGETHER + 0.5), zero + 1.0, zero)
    changed = hold_drives(robot, run, rows, left, one)
    if any_positive(changed):
        _change_drives(run, changed)
    if equipment is not None:
        changed = changed + _hold_actuators(run, rows, equipment, left - changed, one)
    step.bound_rounds[0] = where_greater(left - changed, zero, zero, step.bound_rounds[0])
    return pressed + changed


@inlined
def _change_drives(run: RunBundle, changed: Real) -> None:
    """Set the gains of drives of which some are held or released where `changed` is 1, or make rows of those that do
    not settle."""
    zero, rounds = zero_like(changed), run.step.bound_rounds
    unsettled = where_greater(rounds[0], zero + (ROUNDS_TOGETHER + _ROUNDS_OF_DRIVES - 0.5), changed, zero)
    if any_positive(unsettled):
        make_drives_rows(run, unsettled)
        rounds[0] = where_greater(unsettled, zero, zero, rounds[0])
    set_drives(run)


@inlined
def _hold_actuators(run: RunBundle, rows: Rows, equipment: EquipmentBundle, chosen: Real, one: Real) -> Real:
    """1 where `chosen` is 1 and actuators leave their bounds, or return within them, up to the last round."""
    zero, left = zero_like(chosen), rows.report[RESIDUAL]
    forces = run.step.velocity.shape[0] + equipment.model.actuator_target.shape[0]
    most = ROUNDS_TOGETHER + _ROUNDS_PER_FORCE * forces
    last = where_greater(run.step.bound_rounds[0], zero + (most - 0.5), chosen, zero)
    if any_positive(last):
        rows.report[RESIDUAL] = where_greater(last, zero, largest(left, excess_at_bounds(run, equipment, last)), left)
    return hold_actuators(run, equipment, chosen - last, one)


@njit
def _settle_strain(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    solver: SolverBundle,
    chosen: Real,
) -> Real:
    """1 where `chosen` is 1 and the rows are to be solved again, since hard loops are strained."""
    if equipment is not None and has_hard_loops(equipment) and not sweeps_rows(solver):
        return settle_strain(robot, run, rows, equipment, contact, chosen)
    return zero_like(chosen)


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
    aimed = aim_rows(robot, run, rows, equipment, chosen)
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
        changed = press_limits(robot, run, equipment, moving)
    if contact is not None:
        changed = changed + grips_more(run.inputs, rows, contact, chosen - changed)
    if rules is not None:
        changed = changed + _breaks_rules(robot, run, rows, rules, chosen - changed)
    return changed


@njit
def _breaks_rules(robot: RobotBundle, run: RunBundle, rows: Rows, rules: RuleBundle, chosen: Real) -> Real:
    """1 where `chosen` is 1 and rows must be rebuilt since links exceed their velocity bounds in directions that have
    no row yet. The excess after the last round counts as the solver's residual, and may end the run."""
    step, zero = run.step, zero_like(chosen)
    if not any_positive(chosen):
        return zero
    step.rule_rounds[0] = step.rule_rounds[0] + chosen
    broken = aim_bounds(robot, run, rules, chosen)
    on = where_greater(zero + MOST_ROUNDS, step.rule_rounds[0], broken, zero)
    if any_positive(broken - on):
        _stop_where_fast(robot, run, note_excess(robot.model, robot.data, rows, rules, broken - on))
    step.rule_rounds[0] = where_greater(chosen, on, zero, step.rule_rounds[0])
    return on


@inlined
def _stop_where_fast(robot: RobotBundle, run: RunBundle, fast: Real) -> None:
    """Stop the run where `fast` is 1 + the number of a bound that a velocity exceeds, not 0."""
    if run.lanes is None:
        if fast > 0.0:
            run.step.counters[STOP_REASON] = TOO_FAST
            run.step.counters[STOP_DOF] = int(fast) - 1
    elif any_positive(fast):
        for lane in range(run.lanes.data.alive.shape[0]):
            if run.lanes.data.alive[lane] and lane_of(fast, lane) > 0.0:
                end(robot.state, run, lane, TOO_FAST, int(lane_of(fast, lane)) - 1)


@njit
def _aim_contacts(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    solver: SolverBundle,
) -> tuple[Real, Real]:
    """1 where contacts of bodies that turn far are aimed at where the velocities found lead, and 1 where the end of the
    sequence of aims calls for other rows. Leaves the bodies' velocities from before the step.
    """
    zero = like(0.0, robot.data)
    if run.step.counters[STOP_REASON] == CROWDED or not aims_contacts(run, contact, solver):
        velocities(robot.model, robot.state.qvel, robot.data)
        return zero, zero
    chosen = zero + 1.0
    midst = chosen * is_aiming_contacts(contact)
    aimed = aim_contacts(robot, run, rows, contact, chosen)
    ended = midst - midst * aimed
    changed = _change_rows(robot, run, rows, equipment, contact, None, solver, (ended, ended))
    begin_targets(run, contact, changed)
    return aimed, changed
