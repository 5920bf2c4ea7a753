"""Decides whether a step is solved again, and from where: step.solve_step loops on the result of `look_again`.

| the velocities found show that | change | solved again | at most |
|---|---|---|---|
| a limit would be violated that has no row (constraints/limit_rows.py) | the limit gets a row | from the rows | 4 nv |
| a drive leaves its bounds (equipment/drives.py) | its force becomes constant, at last a row | from the rows | 8 + 16 |
| an actuator leaves its bounds (equipment/actuators.py) | its force becomes constant | from the rows | 8 + 8 (nv +
actuators) |
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

from artsim.sim.articulation.kinematics import velocities
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
from artsim.sim.contact.rebounds import aim_again, bounce_on
from artsim.sim.equipment.actuators import clamp_actuators, excess_at_bounds
from artsim.sim.equipment.arrays import ROUNDS_TOGETHER, EitherEquipment, EquipmentBundle
from artsim.sim.equipment.drives import hold_drives, set_drives
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.geometry.contacts import CONTACTS, ContactBundle, EitherContacts
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.phases import BROAD_PHASE, SOLVER, SYSTEM
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    BETA,
    BOUND_ROUNDS,
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
from artsim.sim.stepping.aims import close_loops
from artsim.sim.stepping.contact_aims import aim_contacts
from artsim.sim.stepping.evaluations import misplaces_bias, start_evaluations
from artsim.sim.stepping.free_motion import free_step
from artsim.sim.stepping.midpoint import (
    note_struck,
)
from artsim.sim.stepping.pack_stages import changes_in_lanes, hold_without_rows_in_lanes, look_beyond, start_in_lanes
from artsim.sim.stepping.strain import settle_strain
from artsim.sim.stepping.system import set_end_velocities

FROM_BIAS, FROM_ROWS, SOLVED = range(3)

_ROUNDS_PER_FORCE = 8  # rounds per force that may be at a bound
_ROUNDS_OF_DRIVES = 16  # one by one, before drives become rows
_SEARCHES = 4  # for contacts, where the step moves shapes farther than their margins
_SEARCHES_OF_BLOWS = 40  # for contacts that bounce: each search finds contacts of the bodies just struck


@njit
def start_search(robot: RobotBundle, run: RunBundle, contact: EitherContacts, solver: SolverBundle) -> None:
    """Set the velocities expected midway, from which evaluations with these contacts start."""
    if run.lanes is not None:
        start_in_lanes(robot, run, contact, solver)
        return
    step = run.step
    if contact is not None:
        note_struck(robot.data, contact)
        for n in range(contact.data.number[CONTACTS]):
            reset_grip(contact, n)
    start_evaluations(robot, run, 1.0)
    for n in range(RULE_ROUNDS, step.retries.shape[0]):
        step.retries[n] = 0
    for k in range(step.pressed.shape[0]):
        for side in range(step.pressed.shape[1]):
            step.pressed[k, side] = 0


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
        if settled and _holds(robot, run, equipment) and not _clamped(robot, run, equipment):
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

    Lanes of a pack are solved again together, each for its own reasons; lanes that the pack does not solve take the
    step alone.
    """
    if run.lanes is not None:
        if changes_in_lanes(robot, run, rows, equipment, contact, solver):
            return FROM_BIAS
        look_beyond(robot, run, rows, contact, solver)
        return SOLVED
    if run.step.retries[WITHOUT_ROWS] == 0:
        if presses(robot, run, False) or _leaves_bounds(robot, run, rows, equipment):
            return FROM_ROWS
        _solve_on(robot, run, rows, equipment, contact, solver)
        if presses(robot, run, False) or _slips(run, rows, contact):
            return FROM_ROWS
        if rules is not None and _breaks_rules(robot, run, rows, rules):
            return FROM_ROWS
    if not sweeps_rows(solver) and misplaces_bias(robot, run, rows, equipment, 1.0) > 0.0:
        return FROM_BIAS
    if contact is not None:
        if _outruns_contacts(robot, run, contact, solver):
            return FROM_BIAS
        if _aims_contacts(robot, run, rows, contact, solver) and (
            presses(robot, run, False) or _slips(run, rows, contact)
        ):
            return FROM_ROWS
    return SOLVED


@njit
def _leaves_bounds(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None) -> bool:
    """True if rows must be rebuilt since drives or actuators leave their bounds, or return within them. Drives that do
    not settle become rows. Bounds of actuators that are still violated after the last round count as the solver's
    residual.
    """
    step = run.step
    step.retries[BOUND_ROUNDS] += 1
    one = 1.0 if step.retries[BOUND_ROUNDS] > ROUNDS_TOGETHER else 0.0
    if hold_drives(robot, run, rows, 1.0, one) > 0.0:
        if step.retries[BOUND_ROUNDS] < ROUNDS_TOGETHER + _ROUNDS_OF_DRIVES:
            set_drives(run)
        else:
            make_drives_rows(run, rows)
            step.retries[BOUND_ROUNDS] = 0
        return True
    if equipment is None:
        step.retries[BOUND_ROUNDS] = 0
        return False
    forces = step.velocity.shape[0] + equipment.model.actuator_target.shape[0]
    if step.retries[BOUND_ROUNDS] >= ROUNDS_TOGETHER + _ROUNDS_PER_FORCE * forces:
        rows.report[RESIDUAL] = max(rows.report[RESIDUAL], excess_at_bounds(robot, run, equipment))
    elif clamp_actuators(robot, run, equipment):
        return True
    step.retries[BOUND_ROUNDS] = 0
    return False


@njit
def _solve_on(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: ContactBundle | None,
    solver: SolverBundle,
) -> None:
    """Solve the rows again with other biases, of loops and of contacts. The sweeping solvers take the published step as
    it stands, without further solutions.
    """
    if sweeps_rows(solver):
        return
    if equipment is not None and has_hard_loops(equipment):
        settle_strain(robot, run, rows, equipment, contact, solver)
    close_loops(robot, run, rows, equipment, solver)
    if contact is not None:
        _limit_restitution(robot, run, rows, contact, solver)


@njit
def _limit_restitution(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: ContactBundle, solver: SolverBundle
) -> None:
    """Solve again where impacts cause further ones, and while contacts gain energy, with ever less restitution."""
    while bounce_on(robot, run, rows, contact, solver, 1.0) > 0.0:
        aim_again(robot, run.inputs, rows, contact)
        ask(solver.call, SOLVE_AGAIN)
        set_end_velocities(robot.model, robot.data, run)
        mark(run.clock, SOLVER)


@inlined
def _slips(run: RunBundle, rows: Rows, contact: ContactBundle | None) -> bool:
    """True if rows must be rebuilt since contacts slip that have more friction."""
    if contact is not None:
        return grips_more(run.inputs, rows, contact)
    return False


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
def _outruns_contacts(robot: RobotBundle, run: RunBundle, contact: ContactBundle, solver: SolverBundle) -> bool:
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
            start_search(robot, run, contact, solver)
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
    if presses(robot, run, True) or opens_cones(robot, run) or opens_turns(robot, run):
        return False
    if equipment is not None:
        return tendons_hold(run, equipment)
    return True


@njit
def _clamped(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> bool:
    """Remove actuators beyond their bounds from M̂ and the rows. True when there are any."""
    if equipment is not None:
        return clamp_actuators(robot, run, equipment)
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
