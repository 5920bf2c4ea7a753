"""The list of the contacts that any lane of a pack has.

A contact of the list is of two shapes, and has a number among the contacts of the two and a dimension: lanes that have
a contact of this kind share it. The order of the list follows from these alone, so that a lane's rows come in the same
order whatever the other lanes do. The contacts of a step stay in the list for the next one, until no lane has them.
"""

from __future__ import annotations

from artsim.collision.shapes import MOST_CONTACTS
from artsim.sim.articulation.state import Workspace
from artsim.sim.contact.contact_rows import USUAL_GRIP
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, real, where_greater, zero_like
from artsim.sim.foundation.records import Pack
from artsim.sim.geometry.contacts import CONTACTS, DIRECTIONS, FOUND_CONTACTS


@njit
def list_contact(contact: PackContactBundle, n: int, number: int, at: int) -> int:
    """The place in the list of contact n of a lane, which is the `number`-th of its two shapes. It is looked for from
    place `at`, and entered where the list lacks it; contact.data.number tells if there is no room.
    """
    listed, key = contact.data.number, contact.lanes.key
    wanted = _key_of(contact, n, number)
    at = min(at, listed[CONTACTS])
    while at > 0 and key[at - 1] >= wanted:
        at -= 1
    while at < listed[CONTACTS] and key[at] < wanted:
        at += 1
    if at < listed[CONTACTS] and key[at] == wanted:
        return at
    if listed[CONTACTS] == key.shape[0]:
        listed[FOUND_CONTACTS] = listed[CONTACTS] + 1
        return at
    for later in range(listed[CONTACTS] - 1, at - 1, -1):
        _move_contact(contact, later, later + 1)
    for lane in range(contact.lanes.number.shape[0]):
        for k in range(contact.lanes.number[lane]):
            contact.lanes.place[lane, k] += 1 if contact.lanes.place[lane, k] >= at else 0
    listed[CONTACTS] += 1
    key[at] = wanted
    _describe(contact, n, at)
    return at


@inlined
def _key_of(contact: PackContactBundle, n: int, number: int) -> int:
    """The place in the order of the list of contact n of a lane: planes first, then by shapes."""
    shape = contact.detected.data.shape
    pair = contact.model.rank[shape[n, 0]] * contact.model.rank.shape[0] + contact.model.rank[shape[n, 1]]
    dimension = max(contact.detected.data.dimension[n], 1)
    key: int = (pair * MOST_CONTACTS + number) * (DIRECTIONS + 1) + dimension
    return key


@njit
def _describe(contact: PackContactBundle, n: int, at: int) -> None:
    """Begin contact `at` of the list with the properties of contact n of a lane that all lanes have in common."""
    found = contact.detected.data
    _forget_contact(contact, at, zero_like(contact.data.gap[at]) + 1.0)
    contact.data.row[at] = -1
    contact.data.dimension[at] = max(found.dimension[n], 1)
    contact.data.soft[at] = found.soft[n]
    for end in range(2):
        contact.data.shape[at, end] = found.shape[n, end]
    for j in range(2):
        contact.data.reference[at, j] = found.reference[n, j]
        contact.data.friction_reference[at, j] = found.friction_reference[n, j]
    for j in range(5):
        contact.data.impedance[at, j] = found.impedance[n, j]
        contact.data.friction[at, j] = found.friction[n, j] * contact.lanes.factor[0]
    contact.data.most_grip[at] = real(USUAL_GRIP, contact.data.gap[at])


@njit
def empty_contact(contact: PackContactBundle, n: int, chosen: Pack) -> None:
    """Take contact n of the list from lanes where `chosen` is 1: zeros, by which its rows have no effect there."""
    data = contact.data
    contact.lanes.present[n] = _left(contact.lanes.present[n], chosen)
    data.gap[n] = _left(data.gap[n], chosen)
    data.distance[n] = _left(data.distance[n], chosen)
    data.restitution[n] = _left(data.restitution[n], chosen)
    data.regularised[n] = _left(data.regularised[n], chosen)
    data.hardness[n] = _left(data.hardness[n], chosen)
    data.span[n] = _left(data.span[n], chosen)
    data.carriers[n] = _left(data.carriers[n], chosen)
    data.drift[n] = _left(data.drift[n], chosen)
    for j in range(2):
        data.swerve[n, j] = _left(data.swerve[n, j], chosen)
    for j in range(3):
        data.belt[n, j] = _left(data.belt[n, j], chosen)
        for end in range(2):
            data.arm[n, end, j] = _left(data.arm[n, end, j], chosen)
        for c in range(3):
            data.frame[n, j, c] = _left(data.frame[n, j, c], chosen)
    for j in range(DIRECTIONS):
        data.start[n, j] = _left(data.start[n, j], chosen)
    data.held[n] = _left(data.held[n], chosen)
    data.stays[n] = _left(data.stays[n], chosen)
    data.inside[n] = _left(data.inside[n], chosen)
    data.aimed[n] = _left(data.aimed[n], chosen)
    if contact.bounces is not None:
        contact.bounces.hit[n] = _left(contact.bounces.hit[n], chosen)
        contact.bounces.aimed[n] = _left(contact.bounces.aimed[n], chosen)


@inlined
def _left(value: Pack, chosen: Pack) -> Pack:
    zero = zero_like(value)
    return where_greater(chosen, zero, zero, value)


@njit
def _move_contact(contact: PackContactBundle, n: int, to: int) -> None:
    """Copy contact n of the list to place `to`."""
    data = contact.data
    contact.lanes.key[to] = contact.lanes.key[n]
    contact.lanes.present[to] = contact.lanes.present[n]
    data.row[to] = data.row[n]
    data.rows[to] = data.rows[n]
    data.dimension[to] = data.dimension[n]
    data.soft[to] = data.soft[n]
    data.most_grip[to] = data.most_grip[n]
    data.gap[to] = data.gap[n]
    data.distance[to] = data.distance[n]
    data.restitution[to] = data.restitution[n]
    data.regularised[to] = data.regularised[n]
    data.hardness[to] = data.hardness[n]
    data.span[to] = data.span[n]
    data.carriers[to] = data.carriers[n]
    for j in range(2):
        data.shape[to, j] = data.shape[n, j]
        data.reference[to, j] = data.reference[n, j]
        data.friction_reference[to, j] = data.friction_reference[n, j]
        data.bend[to, j] = data.bend[n, j]
    for j in range(4):
        data.carried[to, j] = data.carried[n, j]
    for j in range(3):
        data.roll[to, j] = data.roll[n, j]
        data.belt[to, j] = data.belt[n, j]
        for end in range(2):
            data.arm[to, end, j] = data.arm[n, end, j]
        for c in range(3):
            data.frame[to, j, c] = data.frame[n, j, c]
    for j in range(5):
        data.impedance[to, j] = data.impedance[n, j]
        data.friction[to, j] = data.friction[n, j]
    for j in range(DIRECTIONS):
        data.start[to, j] = data.start[n, j]
    if contact.adhesion is not None:
        data.adhesion[to] = data.adhesion[n]
        contact.adhesion.near[to] = contact.adhesion.near[n]
        contact.adhesion.loose[to] = contact.adhesion.loose[n]
    data.held[to] = data.held[n]
    data.stays[to] = data.stays[n]
    data.inside[to] = data.inside[n]
    data.aimed[to] = data.aimed[n]
    data.curve[to] = data.curve[n]
    data.change[to] = data.change[n]
    data.unaimed[to] = data.unaimed[n]
    data.foreseen[to] = data.foreseen[n]
    if contact.bounces is not None:
        contact.bounces.hit[to] = contact.bounces.hit[n]
        contact.bounces.aimed[to] = contact.bounces.aimed[n]
        contact.bounces.aim[to] = contact.bounces.aim[n]


@njit
def drop_contacts(contact: PackContactBundle) -> None:
    """Drop the contacts of the list that no lane has."""
    left = 0
    for n in range(contact.data.number[CONTACTS]):
        if not any_positive(contact.lanes.present[n]):
            continue
        if left < n:
            _move_contact(contact, n, left)
            for lane in range(contact.lanes.number.shape[0]):
                for k in range(contact.lanes.number[lane]):
                    if contact.lanes.place[lane, k] == n:
                        contact.lanes.place[lane, k] = left
        left += 1
    contact.data.number[CONTACTS] = left


@njit
def forget_contacts(data: Workspace, contact: PackContactBundle, chosen: Pack) -> None:
    """Take all contacts from lanes where `chosen` is 1."""
    contact.lanes.touching[0] = _left(contact.lanes.touching[0], chosen)
    for b in range(data.struck.shape[0]):
        data.struck[b] = _left(data.struck[b], chosen)
    for n in range(contact.data.number[CONTACTS]):
        _forget_contact(contact, n, chosen)


@inlined
def _forget_contact(contact: PackContactBundle, n: int, chosen: Pack) -> None:
    """Take contact n of the list, and its adhesion, from lanes where `chosen` is 1."""
    empty_contact(contact, n, chosen)
    if contact.adhesion is not None:
        contact.data.adhesion[n] = _left(contact.data.adhesion[n], chosen)
        contact.adhesion.near[n] = _left(contact.adhesion.near[n], chosen)
        contact.adhesion.loose[n] = _left(contact.adhesion.loose[n], chosen)
