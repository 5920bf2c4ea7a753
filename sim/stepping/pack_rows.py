"""Builds the constraint rows of a pack: lasting rows, rows found lane by lane, limits that press, listed contacts.

Lasting rows are those of joint friction, couplings, actuators and loops. The rows of a contact of the pack's list
(pack_detection.py) are built in all lanes at once by contact_rows.py, as those of a single robot.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import FIRST_IMPULSE, RobotBundle, Workspace
from artsim.sim.constraints.actuator_rows import actuator_rows
from artsim.sim.constraints.coupling_rows import coupling_row
from artsim.sim.constraints.friction_rows import add_friction
from artsim.sim.constraints.limit_rows import limit_row
from artsim.sim.constraints.loop_rows import loop_rows
from artsim.sim.constraints.row import add_entry, add_row, begin_impulses
from artsim.sim.constraints.tendon_rows import tendon_limit_row
from artsim.sim.contact.contact_rows import (
    add_rows,
    count_rows,
    impulse_along,
    opens,
    pull,
    set_grip,
    set_targets,
)
from artsim.sim.contact.detection import set_drift, straight_share
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.pack_detection import empty_contact
from artsim.sim.equipment.arrays import TENDON_LOWER, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, lane_count, lane_get, where_greater, zero_like
from artsim.sim.foundation.records import Ints1, Lanes1, Pack
from artsim.sim.foundation.scalars import divisor, largest
from artsim.sim.geometry.contacts import CONTACTS, DIRECTIONS
from artsim.sim.run_data.run_records import ALL_ROWS, PLACES, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import KNOWN_ROWS, SAME_ROWS, SolverBundle
from artsim.sim.stepping.lane_rows import find_own_rows
from artsim.sim.stepping.packs import OwnRows


@njit
def build_in_lanes(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    solver: SolverBundle,
    contact: PackContactBundle | None,
) -> None:
    """Build all rows. Needs motion columns, and the accelerations that the bias leaves."""
    model, inputs = robot.model, run.inputs
    _make_way(run.step, solver, contact)
    rows.number[ALL_ROWS] = 0
    rows.number[PLACES] = 0
    for n in range(solver.pack.rubbing.shape[0]):
        dof = solver.pack.rubbing[n]
        force = model.friction[dof]
        if run.lanes.load is not None:
            force = force + model.friction_coefficient[dof] * robot.state.load[dof]
        add_friction(model, robot.data, inputs, rows, dof, force)
        rows.place[n] = solver.pack.rubbing_place[n]
    if run.lanes.own is not None:
        _own_rows(robot, run, rows, equipment)
    for side in range(solver.pack.limited.shape[0]):
        if any_positive(pressing(run.step, solver, side)):
            _limit_row(robot, run, rows, equipment, solver, side)
    begin_impulses(robot.state, rows)
    if contact is not None:
        if contact.adhesion is not None:
            _find_pulls(contact)
        for n in range(contact.data.number[CONTACTS]):
            _contact_rows(robot, run, rows, contact, n, solver.pack.listing[SAME_ROWS])
    zero = like(0.0, robot.data)
    for n in range(solver.pack.listing[KNOWN_ROWS]):  # a step that is solved again begins from its previous solution
        rows.impulse[n] = where_greater(solver.pack.warm[0], zero, solver.pack.impulse[n], rows.impulse[n])
    solver.pack.listing[KNOWN_ROWS] = rows.number[ALL_ROWS]


@njit
def _make_way(step: Step, solver: SolverBundle, contact: PackContactBundle | None) -> None:
    """Move the impulses of the step's previous solution to the rows' new places, in lanes that are solved and in lanes
    that start from these impulses: limits and contacts that have come since have rows between the others.

    The order of a lane's rows, and with it the rounding of its sums, then does not depend on the rows of other lanes,
    nor on the time at which they came. Rows never move down within a step.
    """
    pack = solver.pack
    if pack.listing[KNOWN_ROWS] == 0:
        return
    sides = pack.limited.shape[0]
    more = 0
    for side in range(sides):
        more += 1 if any_positive(pressing(step, solver, side)) and pack.limit_row[side] < 0 else 0
    if contact is not None:
        for n in range(contact.data.number[CONTACTS]):
            more += count_rows(contact, n) if contact.data.row[n] < 0 else 0
    if more == 0:
        return
    row = pack.listing[KNOWN_ROWS] + more
    pack.listing[KNOWN_ROWS] = row
    if contact is not None:
        for n in range(contact.data.number[CONTACTS] - 1, -1, -1):
            row -= count_rows(contact, n)
            _move_impulses(pack.impulse, contact.data.row[n], row, count_rows(contact, n))
    for side in range(sides - 1, -1, -1):
        if any_positive(pressing(step, solver, side)):
            row -= 1
            _move_impulses(pack.impulse, pack.limit_row[side], row, 1)


@inlined
def _move_impulses(impulse: Lanes1, row: int, to: int, count: int) -> None:
    """Move `count` impulses that begin at `row` to later rows; zeros for rows that are new, where `row` is -1."""
    for k in range(count - 1, -1, -1):
        impulse[to + k] = impulse[row + k] if row >= 0 else zero_like(impulse[to + k])


@njit
def _own_rows(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None) -> None:
    """Append the own rows. Where those of no lane are outdated, they are the rows of the last call, with other aims."""
    own, first = run.lanes.own, rows.number[ALL_ROWS]
    if not any_positive(own.outdated[0]):
        rows.number[ALL_ROWS] += own.kind.shape[0]
        rows.number[PLACES] += own.kind.shape[0]
        return
    zero = zero_like(own.outdated[0])
    for t in range(own.kind.shape[0]):
        own.aimed[t] = rows.bias[first + t]
    if run.lanes.lane_rows is not None:
        find_own_rows(robot, run)
        _append_found_rows(robot, rows, own)
    else:
        _build_own_rows(robot, run, rows, equipment)
    for t in range(own.kind.shape[0]):
        n = first + t
        rows.bias[n] = where_greater(own.outdated[0], zero, own.bias[t], own.aimed[t])
        rows.place[n] = own.place[t]
    own.outdated[0] = zero


@njit
def _append_found_rows(robot: RobotBundle, rows: Rows, own: OwnRows) -> None:
    """Append the rows that were found lane by lane."""
    for t in range(own.kind.shape[0]):
        n = add_row(rows, own.kind[t], own.dof[t])
        rows.part[n] = own.part[t]
        for k in range(own.marked.shape[1]):
            if own.marked[t, k] == 1:
                add_entry(robot.model, robot.data, rows, k, own.value[t * own.marked.shape[1] + k])
        rows.error[n] = own.error[t]
        rows.rate[n] = own.rate[t]
        rows.cfm[n] = own.cfm[t]
        rows.lower[n] = own.lower[t]
        rows.upper[n] = own.upper[t]


@njit
def _build_own_rows(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None) -> None:
    """Append the rows of couplings, actuators and loops, for all lanes at once."""
    own, first = run.lanes.own, rows.number[ALL_ROWS]
    for c in range(robot.model.row_follower.shape[0]):
        coupling_row(robot, run, rows, c)
    if equipment is not None:
        actuator_rows(robot.model, robot.data, run.inputs, rows, equipment)
    if run.lanes.loops is not None:
        loops = run.lanes.loops
        loop_rows(robot.model, robot.state.qvel, robot.data, run, rows, loops, loops.data.columns)
    for t in range(own.kind.shape[0]):
        own.bias[t] = rows.bias[first + t]


@inlined
def pressing(step: Step, solver: SolverBundle, n: int) -> Pack:
    """1 in lanes in which side n of the limits has a row."""
    return step.pressed[solver.pack.limited[n, 2], solver.pack.limited[n, 3]]


@njit
def _limit_row(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, solver: SolverBundle, place: int
) -> None:
    """Build the row of a side of a limit; lanes that do not need it get no impulse from it."""
    inputs, zero = run.inputs, like(0.0, robot.data)
    pressed = pressing(run.step, solver, place)
    index, side = solver.pack.limited[place, 0], solver.pack.limited[place, 1]
    if equipment is not None and side >= TENDON_LOWER:
        n = tendon_limit_row(robot.model, robot.state.qvel, robot.data, inputs, rows, equipment, index, side)
    else:
        n = limit_row(robot, inputs, rows, index, side)
    rows.upper[n] = where_greater(pressed, zero, rows.upper[n], zero)
    rows.place[n] = solver.pack.limit_place[place]
    solver.pack.limit_row[place] = n
    rows.unaimed[n] = rows.bias[n]  # its aims would be those of the row that was in its place


@njit
def _contact_rows(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle, n: int, same: int
) -> None:
    """Build the rows of contact n of the list; if only their biases differ from those before (`same`), set the biases.
    Lanes without that contact have zeros there.
    """
    data, inputs = robot.data, run.inputs
    if same == 1:
        rows.number[ALL_ROWS] += contact.data.rows[n]
        rows.number[PLACES] += contact.data.rows[n]
    else:
        if contact.adhesion is not None:
            empty_contact(contact, n, contact.adhesion.loose[n] * (1.0 - _is_positive(contact.data.pull[n])))
        opening = opens(robot.model, data, contact, n, 1.0 - contact.lanes.present[n])
        if any_positive(1.0 - opening):
            empty_contact(contact, n, 1.0 - opening)
        set_grip(inputs, contact, n)
        add_rows(robot, rows, contact, n)
    if contact.sweep is not None:
        one = straight_share(data, inputs, contact.sweep, contact, contact.data.shape[n, 0])
        two = straight_share(data, inputs, contact.sweep, contact, contact.data.shape[n, 1])
        set_drift(data, contact, n, one, two)
    else:
        set_drift(data, contact, n, 1.0, 1.0)
    set_targets(robot, inputs, rows, contact, n)
    if contact.adhesion is not None:
        force = _is_positive(contact.lanes.present[n]) * largest(contact.data.pull[n], like(0.0, data))
        if any_positive(force):
            pull(run, rows, contact, n, force)


@inlined
def _is_positive(value: Pack) -> Pack:
    zero = zero_like(value)
    return where_greater(value, zero, zero + 1.0, zero)


@njit
def _find_pulls(contact: PackContactBundle) -> None:
    """Set contact.data.pull. The force of an actuator is shared by the contacts of its body."""
    adhesion = contact.adhesion
    for n in range(contact.data.number[CONTACTS]):
        contact.data.pull[n] = contact.data.adhesion[n]
    for a in range(adhesion.body.shape[0]):
        count = zero_like(adhesion.force[a])
        for n in range(contact.data.number[CONTACTS]):
            if _is_of(contact, n, adhesion.body[a]):
                count = count + adhesion.near[n]
        for n in range(contact.data.number[CONTACTS]):
            if _is_of(contact, n, adhesion.body[a]):
                contact.data.pull[n] += adhesion.near[n] * adhesion.force[a] / divisor(count)


@inlined
def _is_of(contact: PackContactBundle, n: int, body: int) -> bool:
    """True if contact n of the list is on this body."""
    one, two = contact.data.shape[n, 0], contact.data.shape[n, 1]
    return contact.model.body[one] == body or contact.model.body[two] == body


@njit
def take_impulses(rows: Rows, contact: PackContactBundle) -> None:
    """Set contact.data.start to the impulses that the solver found, along the contacts' directions."""
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.row[n] >= 0:
            for k in range(contact.data.dimension[n]):
                contact.data.start[n, k] = impulse_along(rows, contact, n, k)


@njit
def note_impulses(data: Workspace, contact: PackContactBundle, alive: Ints1, beyond: Lanes1) -> None:
    """Store contact.data.start in the memories of the lanes whose rows these are."""
    for lane in range(lane_count(data.rotation)):
        if not alive[lane] or lane_get(beyond, 0, lane) > 0.0:
            continue
        memory = contact.lanes.memory[1 - contact.lanes.half[0], lane]
        for n in range(contact.lanes.number[lane]):
            place = contact.lanes.place[lane, n]
            if place >= 0 and lane_get(contact.lanes.present, place, lane) > 0.0:
                for k in range(contact.data.dimension[place]):
                    memory[n, FIRST_IMPULSE + k] = lane_get(contact.data.start, DIRECTIONS * place + k, lane)
