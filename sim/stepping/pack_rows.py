"""Builds the rows of a pack's listed contacts, and keeps rows of the step's previous solution.

The rows of a contact of the pack's list (pack_detection.py) are built in all lanes at once by contact_rows.py, as those
of a single robot.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.impedance import is_convex
from artsim.sim.contact.contact_list import empty_contact
from artsim.sim.contact.contact_rows import (
    add_rows,
    count_rows,
    opens,
    pull,
    set_grip,
    set_targets,
)
from artsim.sim.contact.pack_contacts import PackContactBundle, PackSolver
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, where_greater, zero_like
from artsim.sim.foundation.scalars import divisor, is_positive, largest
from artsim.sim.geometry.contacts import CONTACTS
from artsim.sim.run_data.run_records import ALL_ROWS, LASTING_PLACES, LASTING_ROWS, PLACES, Rows, RunBundle


@njit
def keep_rows_in_lanes(rows: Rows, contact: PackContactBundle | None) -> None:
    """Store the impulses of the step's previous solution in rows.previous_impulse by the places that rows will have,
    and the biases and softness of lasting rows in rows.previous_bias, ∞ where there was no row, and previous_cfm.

    Contacts that have been listed since have places between those of the others.
    """
    zero = zero_like(rows.impulse[0])
    for place in range(rows.number[LASTING_PLACES]):
        rows.previous_impulse[place] = zero
        rows.previous_bias[place] = zero + math.inf
    for n in range(rows.number[LASTING_ROWS]):
        rows.previous_impulse[rows.place[n]] = rows.impulse[n]
        rows.previous_bias[rows.place[n]] = rows.bias[n]
        rows.previous_cfm[rows.place[n]] = rows.cfm[n]
    place = rows.number[LASTING_PLACES]
    if contact is not None:
        for n in range(contact.data.number[CONTACTS]):
            first = contact.data.row[n]
            for k in range(count_rows(contact, n)):
                rows.previous_impulse[place] = rows.impulse[first + k] if first >= 0 else zero
                place += 1


@njit
def contact_rows_in_lanes(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle, pack: PackSolver
) -> None:
    """Build the rows of the listed contacts; if only their biases differ from those before (pack.same), set the biases.

    Lanes whose solution stands (pack.done) keep the counts of contacts that yield; the others begin again with those of
    the step's start, as a single robot does, whatever the other lanes have changed.
    """
    if contact.adhesion is not None:
        _find_pulls(contact)
    for n in range(contact.data.number[CONTACTS]):
        row = contact.data.row[n]
        if row >= 0:
            counted, begun = rows.regularised[row], contact.data.regularised[n]
            contact.data.regularised[n] = where_greater(pack.done[0], zero_like(begun), counted, begun)
    for n in range(contact.data.number[CONTACTS]):
        _contact_rows(robot, run, rows, contact, n, pack.same[0])


@njit
def _contact_rows(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle, n: int, same: int
) -> None:
    """Build the rows of contact n of the list; if only their biases differ from those before (`same`), set the biases.
    Lanes without that contact have zeros there.
    """
    data, inputs = robot.data, run.inputs
    if same == 1:
        if contact.data.row[n] >= 0:
            rows.regularised[contact.data.row[n]] = contact.data.regularised[n]
        rows.number[ALL_ROWS] += contact.data.rows[n]
        rows.number[PLACES] += contact.data.rows[n]
    else:
        if contact.adhesion is not None:
            empty_contact(contact, n, contact.adhesion.loose[n] * (1.0 - is_positive(contact.data.pull[n])))
        if not is_convex(inputs):
            opening = opens(robot.model, data, contact, n, 1.0 - contact.lanes.present[n])
            if any_positive(1.0 - opening):
                empty_contact(contact, n, 1.0 - opening)
        set_grip(inputs, contact, n)
        add_rows(robot, inputs, rows, contact, n)
    set_targets(robot, inputs, rows, contact, n)
    if contact.adhesion is not None:
        force = is_positive(contact.lanes.present[n]) * largest(contact.data.pull[n], like(0.0, data))
        if any_positive(force):
            pull(run, rows, contact, n, force)


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
