"""Builds the constraint rows of a pack: lasting rows, rows found lane by lane, limits that press, contacts in slots.

Lasting rows are those of joint friction, couplings, actuators and loops. A slot (pack_contacts.py) is treated as a
contact by contact_rows.py, which builds its rows in all lanes at once; a lane without that contact has zeros there, and
its rows have no effect.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import FIRST_IMPULSE, RobotBundle, State, Workspace
from artsim.sim.constraints.actuator_rows import actuator_rows_in_lanes
from artsim.sim.constraints.coupling_rows import coupling_row
from artsim.sim.constraints.friction_rows import add_friction
from artsim.sim.constraints.limit_rows import limit_row
from artsim.sim.constraints.loop_rows import loop_rows
from artsim.sim.constraints.row import add_entry, add_row
from artsim.sim.constraints.tendon_rows import tendon_limit_row
from artsim.sim.contact.contact_law import brings_apart
from artsim.sim.contact.contact_rows import (
    add_rows,
    count_rows,
    impulse_along,
    opens,
    pull,
    set_targets,
    slips_for_grip,
    throws,
)
from artsim.sim.contact.detection import set_drift, straight_share
from artsim.sim.contact.pack_bounces import aim_bounces
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.equipment.arrays import TENDON_LOWER
from artsim.sim.equipment.pack_equipment import PackEquipment
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, lane_count, lane_get, where_greater, zero_like
from artsim.sim.foundation.records import Ints1, Lanes1, Pack
from artsim.sim.foundation.scalars import divisor, largest, least
from artsim.sim.geometry.contacts import DIRECTIONS
from artsim.sim.run_data.run_records import ALL_ROWS, PLACES, Inputs, Rows, RunBundle
from artsim.sim.run_data.scratch import BUILT, KNOWN_ROWS, LISTED, SAME_ROWS, SolverBundle
from artsim.sim.stepping.packs import LaneBundle


@njit
def build_in_lanes(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: PackEquipment,
    solver: SolverBundle,
    contact: PackContactBundle | None,
) -> None:
    """Build all rows. Needs motion columns, and the accelerations that the bias leaves."""
    model, inputs = robot.model, run.inputs
    _order(solver, contact)
    rows.number[ALL_ROWS] = 0
    rows.number[PLACES] = 0
    for n in range(solver.pack.rubbing.shape[0]):
        dof = solver.pack.rubbing[n]
        force = model.friction[dof]
        if run.lanes.load is not None:
            force = force + model.friction_coefficient[dof] * robot.state.load[dof]
        add_friction(model, robot.data, inputs, rows, dof, force)
        rows.impulse[n] = robot.state.impulse[solver.pack.rubbing_place[n]]
    if run.lanes.lane_rows is not None:
        _own_rows(robot, rows, run.lanes)
    elif run.lanes.own is not None:
        _lasting_rows(robot, run, rows, equipment)
    sides = solver.pack.pressed.shape[0]
    for n in range(solver.pack.listing[LISTED]):
        listed = solver.pack.listed[n]
        if listed < sides:
            _limit_row(robot, run, rows, equipment, solver, listed)
        elif contact is not None:
            _contact_rows(robot, inputs, rows, contact, listed - sides, solver.pack.listing[SAME_ROWS])
    if contact is not None and contact.adhesion is not None:
        _pull_together(run, rows, contact)
    zero = like(0.0, robot.data)
    for n in range(solver.pack.listing[KNOWN_ROWS]):  # a step that is solved again begins from its previous solution
        rows.impulse[n] = where_greater(solver.pack.warm[0], zero, solver.pack.impulse[n], rows.impulse[n])
    solver.pack.listing[KNOWN_ROWS] = rows.number[ALL_ROWS]


@njit
def _order(solver: SolverBundle, contact: PackContactBundle | None) -> None:
    """Move the entries that have been listed since rows were built to their places: sides by number, then slots by
    number. The order of a lane's rows, and with it the rounding of its sums, then does not depend on the rows of other
    lanes, nor on the time at which they were listed.

    The impulses of the rows behind a new entry move on by its number of rows, in lanes that are solved and in lanes
    that start from these impulses.
    """
    pack = solver.pack
    sides = pack.pressed.shape[0]
    for n in range(pack.listing[BUILT], pack.listing[LISTED]):
        entry, place, behind = pack.listed[n], n, 0
        while place > 0 and pack.listed[place - 1] > entry:
            place -= 1
            behind += _rows_of(contact, pack.listed[place] - sides)
            pack.listed[place + 1] = pack.listed[place]
        pack.listed[place] = entry
        if pack.listing[KNOWN_ROWS] > 0:
            new = _rows_of(contact, entry - sides)
            first = pack.listing[KNOWN_ROWS] - behind
            for row in range(pack.listing[KNOWN_ROWS] - 1, first - 1, -1):
                pack.impulse[row + new] = pack.impulse[row]
            for row in range(first, first + new):
                pack.impulse[row] = zero_like(pack.done[0])
            pack.listing[KNOWN_ROWS] += new
    pack.listing[BUILT] = pack.listing[LISTED]


@inlined
def _rows_of(contact: PackContactBundle | None, slot: int) -> int:
    """The number of rows of a slot; one of a side, whose number is negative here."""
    rows = 1
    if contact is not None:
        rows = count_rows(contact, slot) if slot >= 0 else 1
    return rows


@njit
def _own_rows(robot: RobotBundle, rows: Rows, lanes: LaneBundle) -> None:
    """Append the rows that were found lane by lane."""
    own = lanes.own
    for t in range(own.kind.shape[0]):
        n = add_row(rows, own.kind[t], own.dof[t])
        rows.part[n] = own.part[t]
        for k in range(own.marked.shape[1]):
            if own.marked[t, k] == 1:
                add_entry(robot.model, robot.data, rows, k, own.value[t * own.marked.shape[1] + k])
        rows.error[n] = own.error[t]
        rows.rate[n] = own.rate[t]
        rows.bias[n] = own.bias[t] + own.aim[t]
        rows.cfm[n] = own.cfm[t]
        rows.lower[n] = own.lower[t]
        rows.upper[n] = own.upper[t]
        rows.impulse[n] = robot.state.impulse[own.place[t]]


@njit
def _lasting_rows(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: PackEquipment) -> None:
    """Append the rows of couplings, actuators and loops, for all lanes at once; if the rows of no lane are stale, those
    of the last call with new aims.
    """
    own, first = run.lanes.own, rows.number[ALL_ROWS]
    if any_positive(own.outdated[0]):
        own.outdated[0] = zero_like(own.outdated[0])
        for c in range(robot.model.row_follower.shape[0]):
            coupling_row(robot, run, rows, c)
        actuator_rows_in_lanes(robot, run, rows, equipment)
        if run.lanes.loops is not None:
            loops = run.lanes.loops
            loop_rows(robot.model, robot.state.qvel, robot.data, run, rows, loops, loops.data.columns)
        for t in range(own.kind.shape[0]):
            n = first + t
            own.kind[t], own.dof[t], own.part[t] = rows.kind[n], rows.dof[n], rows.part[n]
            own.bias[t], own.cfm[t] = rows.bias[n], rows.cfm[n]
    else:
        rows.number[ALL_ROWS] += own.kind.shape[0]
        rows.number[PLACES] += own.kind.shape[0]
    for t in range(own.kind.shape[0]):
        rows.bias[first + t] = own.bias[t] + own.aim[t]
        rows.impulse[first + t] = robot.state.impulse[own.place[t]]


@njit
def _limit_row(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: PackEquipment, solver: SolverBundle, place: int
) -> None:
    """Build the row of a side of a limit; lanes that do not need it get no impulse from it."""
    inputs, zero = run.inputs, like(0.0, robot.data)
    pressed = solver.pack.pressed[place]
    index, side = solver.pack.limited[place, 0], solver.pack.limited[place, 1]
    if side >= TENDON_LOWER:
        n = tendon_limit_row(robot.model, robot.state.qvel, robot.data, inputs, rows, equipment, index, side)
    else:
        n = limit_row(robot, inputs, rows, index, side)
    rows.upper[n] = where_greater(pressed, zero, rows.upper[n], zero)
    rows.impulse[n] = where_greater(pressed, zero, robot.state.impulse[solver.pack.limit_place[place]], zero)
    solver.pack.limit_row[place] = n


@njit
def keep_impulses(state: State, solver: SolverBundle, lanes: LaneBundle) -> None:
    """Store the impulses of all rows but those of contacts for the next step."""
    first = solver.pack.rubbing.shape[0]  # of the rows after those of joint friction
    for n in range(solver.pack.rubbing_place.shape[0]):
        state.impulse[solver.pack.rubbing_place[n]] = solver.pack.impulse[n]
    if lanes.own is not None:
        for t in range(lanes.own.place.shape[0]):
            state.impulse[lanes.own.place[t]] = solver.pack.impulse[first + t]
    for side in range(solver.pack.pressed.shape[0]):
        pressed = solver.pack.pressed[side]
        if any_positive(pressed):
            zero, impulse = zero_like(pressed), solver.pack.impulse[solver.pack.limit_row[side]]
            state.impulse[solver.pack.limit_place[side]] = where_greater(pressed, zero, impulse, zero)


@njit
def list_side(solver: SolverBundle, side: int) -> None:
    """Give a side of the limits a row."""
    solver.pack.listed[solver.pack.listing[LISTED]] = side
    solver.pack.listing[LISTED] += 1


@njit
def list_slots(solver: SolverBundle, contact: PackContactBundle) -> None:
    """Give all slots at which some lane is in contact their rows."""
    for slot in range(contact.data.active.shape[0]):
        if contact.data.active[slot] == 1 and contact.data.listed[slot] == 0:
            contact.data.listed[slot] = 1
            solver.pack.listed[solver.pack.listing[LISTED]] = solver.pack.pressed.shape[0] + slot
            solver.pack.listing[LISTED] += 1


@njit
def _contact_rows(
    robot: RobotBundle, inputs: Inputs, rows: Rows, contact: PackContactBundle, slot: int, same: int
) -> None:
    """Build the rows of a slot; if only their biases differ from those before (`same`), set the biases."""
    data = robot.data
    if same == 1:
        rows.number[ALL_ROWS] += contact.data.rows[slot]
        rows.number[PLACES] += contact.data.rows[slot]
    else:
        opening = opens(robot.model, data, contact, slot, 1.0 - contact.data.present[slot])
        if any_positive(1.0 - opening):
            _leave_out(contact, slot, opening)
        add_rows(robot, rows, contact, slot)
    if contact.sweep is not None:
        one = straight_share(data, inputs, contact.sweep, contact, contact.data.shape[slot, 0])
        two = straight_share(data, inputs, contact.sweep, contact, contact.data.shape[slot, 1])
        set_drift(data, contact, slot, one, two)
    else:
        set_drift(data, contact, slot, 1.0, 1.0)
    set_targets(robot, inputs, rows, contact, slot)
    if contact.bounces is not None:
        aim_bounces(robot, inputs, rows, contact, slot)


@njit
def _pull_together(run: RunBundle, rows: Rows, contact: PackContactBundle) -> None:
    """Add the adhesion of all slots to step.free. The force of an actuator is shared by the contacts of its body."""
    adhesion = contact.adhesion
    for slot in range(contact.data.active.shape[0]):
        adhesion.pull[slot] = adhesion.surface[slot]
    for a in range(adhesion.body.shape[0]):
        count = zero_like(adhesion.force[a])
        for slot in range(contact.data.active.shape[0]):
            if contact.data.active[slot] == 1 and _is_of(contact, slot, adhesion.body[a]):
                count = count + adhesion.near[slot]
        for slot in range(contact.data.active.shape[0]):
            if contact.data.active[slot] == 1 and _is_of(contact, slot, adhesion.body[a]):
                share = adhesion.near[slot] * adhesion.force[a] / divisor(count)
                adhesion.pull[slot] = adhesion.pull[slot] + share
    for slot in range(contact.data.active.shape[0]):
        if contact.data.active[slot] == 1:
            zero = zero_like(adhesion.pull[slot])
            force = where_greater(contact.data.present[slot], zero, largest(adhesion.pull[slot], zero), zero)
            if any_positive(force):
                pull(run, rows, contact, slot, force)


@inlined
def _is_of(contact: PackContactBundle, slot: int, body: int) -> bool:
    """True if a slot's contacts are on this body."""
    one, two = contact.data.shape[slot, 0], contact.data.shape[slot, 1]
    return contact.model.body[one] == body or contact.model.body[two] == body


@inlined
def _leave_out(contact: PackContactBundle, slot: int, opening: Pack) -> None:
    """Remove a slot's contact from the lanes in which it does not open: `opening` is 0 there."""
    contact.data.present[slot] = _kept(contact.data.present[slot], opening)
    contact.data.gap[slot] = _kept(contact.data.gap[slot], opening)
    contact.data.hardness[slot] = _kept(contact.data.hardness[slot], opening)
    contact.data.tilt[slot] = _kept(contact.data.tilt[slot], opening)
    for j in range(3):
        contact.data.lag[slot, j] = _kept(contact.data.lag[slot, j], opening)
        for c in range(3):
            contact.data.frame[slot, j, c] = _kept(contact.data.frame[slot, j, c], opening)
    for j in range(contact.data.start.shape[1]):
        contact.data.start[slot, j] = _kept(contact.data.start[slot, j], opening)


@inlined
def _kept(value: Pack, opening: Pack) -> Pack:
    zero = zero_like(value)
    return where_greater(opening, zero, value, zero)


@njit
def slips_in_lanes(rows: Rows, impulse: Lanes1, contact: PackContactBundle) -> Pack:
    """More than 0 where a contact slips for want of grip; single robots can give it more."""
    worst = zero_like(impulse[0]) - 1.0
    for slot in range(contact.data.active.shape[0]):
        if contact.data.active[slot] == 1 and contact.data.dimension[slot] > 1:
            slips = slips_for_grip(rows, impulse, contact, slot)
            worst = largest(worst, where_greater(slips, zero_like(slips), contact.data.present[slot], worst))
    return worst


@njit
def throw(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle, contact: PackContactBundle) -> Pack:
    """More than 0 where the removal of penetration throws a body, so that `contact_rows.limit_energy` intervenes in a
    lane without bounces.
    """
    worst = like(-1.0, robot.data)
    for slot in range(contact.data.active.shape[0]):
        if contact.data.active[slot] == 1 and contact.data.soft[slot] == 0:
            apart = brings_apart(rows.rate[contact.data.row[slot]], contact.data.gap[slot])
            if any_positive(apart):
                worst = largest(worst, least(apart, throws(robot, rows, solver.pack.impulse, run.step, contact, slot)))
    return worst


@njit
def take_impulses(solver: SolverBundle, contact: PackContactBundle) -> None:
    """Set contact.data.start to the impulses that the solver found, along the slots' directions."""
    for slot in range(contact.data.active.shape[0]):
        if contact.data.active[slot] == 1:
            for k in range(contact.data.dimension[slot]):
                contact.data.start[slot, k] = impulse_along(solver.pack.impulse, contact, slot, k)


@njit
def note_impulses(data: Workspace, contact: PackContactBundle, alive: Ints1, beyond: Lanes1) -> None:
    """Store contact.data.start in the memories of the lanes whose rows these are."""
    for lane in range(lane_count(data.rotation)):
        if not alive[lane] or lane_get(beyond, 0, lane) > 0.0:
            continue
        memory = contact.data.memory[1 - contact.data.half[0], lane]
        for n in range(contact.data.contact_count[lane]):
            slot = contact.data.slot[lane, n]
            if slot >= 0 and lane_get(contact.data.present, slot, lane) > 0.0:
                for k in range(contact.data.dimension[slot]):
                    memory[n, FIRST_IMPULSE + k] = lane_get(contact.data.start, DIRECTIONS * slot + k, lane)
