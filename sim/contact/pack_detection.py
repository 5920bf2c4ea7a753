"""Detects the contacts of a pack lane by lane, and enters them in slots (pack_contacts.py), the contacts of all lanes.

`found` is the ContactWork that detection fills for one lane after the other; `slots` are PackContacts.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like, velocities
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import ALLOWED, RobotBundle, Workspace
from artsim.sim.constraints.impedance import impedance
from artsim.sim.contact.contact_rows import reset_grip, set_grip, share_inside
from artsim.sim.contact.detection import (
    are_as_before,
    is_steady,
    name_contacts,
    note_found,
    note_turning,
    place_shapes,
    place_static,
    recognise,
    speed_bound,
    straight_share,
    widen,
)
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.rolling import trusted_turn
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import (
    absolute,
    highest,
    lane_count,
    lane_get,
    lane_of,
    lane_set,
    where_greater,
    zero_like,
)
from artsim.sim.foundation.records import Ints1, Pack, Reals1
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.scalars import largest
from artsim.sim.geometry.contacts import BEFORE_GAP, CONTACTS, DIRECTIONS, FOUND_CONTACTS
from artsim.sim.run_data.run_records import Inputs, RunBundle

_ROUNDING = 1e-9  # [m] by which boxes are apart at least


@njit
def place_world(model: Model, data: Workspace, contact: PackContactBundle) -> None:
    """Place the shapes that never move, once for all lanes."""
    place_static(model, data, contact)
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] == 0:
            _copy_place(contact, n, 0)


@inlined
def _copy_place(contact: PackContactBundle, n: int, lane: int) -> None:
    for j in range(3):
        contact.detected.data.position[n, j] = lane_get(contact.data.position, 3 * n + j, lane)
    for j in range(9):
        lane_set(contact.detected.data.rotation, 9 * n + j, 0, lane_get(contact.data.rotation, 9 * n + j, lane))


@njit
def find_in_lanes(robot: RobotBundle, inputs: Inputs, contact: PackContactBundle, alive: Ints1) -> bool:
    """Detect every lane's contacts and enter them in slots; False when they exceed a lane's room. Needs kinematics."""
    data = robot.data
    place_shapes(robot, inputs, contact)
    if contact.sweep is not None:
        for n in range(contact.model.body.shape[0]):
            share = straight_share(data, inputs, contact.sweep, contact, n)
            contact.data.margin[n] = contact.data.margin[n] * share
    zero = like(0.0, data)
    contact.data.touching[0] = zero
    contact.data.away[0] = zero
    for b in range(data.struck.shape[0]):
        data.struck[b] = zero
    for slot in range(contact.data.active.shape[0]):
        if contact.data.active[slot] == 1:
            _clear(contact, slot, zero)
    clear = _are_clear(contact, like(1.0, data))
    for lane in range(lane_count(robot.state.qpos)):
        contact.data.contact_count[lane] = 0
        if alive[lane]:
            if lane_of(clear, lane) > 0.0:
                contact.detected.data.number[FOUND_CONTACTS] = 0
                contact.detected.data.number[CONTACTS] = 0
            else:
                _detect(contact, lane)
            if contact.detected.data.number[FOUND_CONTACTS] > contact.detected.data.number[CONTACTS]:
                return False
            _take_contacts(robot.model, data, inputs, contact, lane)
    return True


@njit
def _are_clear(contact: PackContactBundle, one: Pack) -> Pack:
    """1 in lanes where no two shapes come near: the boxes of all pairs that may touch are apart, as in
    detection.detect.
    """
    g, data = contact.model, contact.data
    zero = zero_like(one)
    clear = one if data.listed_pairs.shape[0] > 0 else zero
    for j in range(data.listed_pairs.shape[0]):
        a, b = data.listed_pairs[j, 0], data.listed_pairs[j, 1]
        wide = data.margin[a] + data.margin[b] + (g.reach[a] + g.reach[b] + _ROUNDING)
        gap = zero
        for k in range(3):
            half = wide
            for n in range(3):
                half = half + absolute(data.rotation[a, k, n]) * g.extent[a, n]
                half = half + absolute(data.rotation[b, k, n]) * g.extent[b, n]
            gap = largest(gap, absolute(data.position[a, k] - data.position[b, k]) - half)
        clear = where_greater(gap, zero, clear, zero)
    return clear


@njit
def _detect(contact: PackContactBundle, lane: int) -> None:
    """Detect the contacts of a lane into found.data."""
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] > 0:
            _copy_place(contact, n, lane)
        contact.detected.data.margin[n] = lane_get(contact.data.margin, n, lane)
    run_entry(contact.data.detector)


@inlined
def _clear(contact: PackContactBundle, slot: int, zero: Pack) -> None:
    contact.data.active[slot] = 0
    contact.data.present[slot] = zero
    contact.data.gap[slot] = zero
    contact.data.distance[slot] = zero
    contact.data.restitution[slot] = zero
    contact.data.hardness[slot] = zero
    contact.data.tilt[slot] = zero
    for j in range(3):
        contact.data.lag[slot, j] = zero
        for end in range(2):
            contact.data.arm[slot, end, j] = zero
        for c in range(3):
            contact.data.frame[slot, j, c] = zero
    for j in range(DIRECTIONS):
        contact.data.start[slot, j] = zero
    if contact.adhesion is not None:
        contact.adhesion.near[slot] = zero
        contact.adhesion.surface[slot] = zero


@njit
def _take_contacts(model: Model, data: Workspace, inputs: Inputs, contact: PackContactBundle, lane: int) -> None:
    """Enter the contacts that detection found in a lane: in its memory and in contact.data."""
    recognise(model, data, contact.data.memory[contact.data.half[0], lane], contact.detected, lane)
    note_found(contact.data.before[lane], contact.detected)
    name_contacts(contact.data.memory[1 - contact.data.half[0], lane], contact.detected)
    contact.data.contact_count[lane] = contact.detected.data.number[CONTACTS]
    contact.data.deepest[lane] = 0.0
    for n in range(contact.detected.data.number[CONTACTS]):
        contact.data.deepest[lane] = max(-contact.detected.data.distance[n], contact.data.deepest[lane])
        _note_depth(contact, contact.data.sunk[lane], n)
    if contact.detected.data.number[CONTACTS] > 0:
        lane_set(contact.data.touching, 0, lane, 1.0)
    for n in range(contact.detected.data.number[CONTACTS]):
        for end in range(2):
            lane_set(data.struck, contact.model.body[contact.detected.data.shape[n, end]], lane, 1.0)
        contact.data.slot[lane, n] = -1
        if contact.detected.data.dimension[n] > 0 or _adheres(contact, n):
            slot = _slot_of(contact, n)
            if slot >= 0 and _fits(contact, n, slot):
                contact.data.slot[lane, n] = slot
                _take_contact(data, inputs, contact, lane, n, slot)
            else:
                lane_set(contact.data.away, 0, lane, 1.0)


@inlined
def _note_depth(contact: PackContactBundle, sunk: Reals1, n: int) -> None:
    """Note contact n of a lane as contact_rows.note_depths does."""
    share = share_inside(contact.detected, n)
    if share > sunk[0]:
        sunk[0] = share
        sunk[1] = -contact.detected.data.distance[n] - contact.detected.data.allowed[n]
        sunk[2] = contact.model.link[contact.detected.data.shape[n, 0]]
        sunk[3] = contact.model.link[contact.detected.data.shape[n, 1]]


@njit
def note_start(contact: PackContactBundle) -> None:
    """Note the depths of contacts in the first step: afterwards only depths beyond these count."""
    for lane in range(contact.data.contact_count.shape[0]):
        contact.data.start_depth[lane] = contact.data.deepest[lane]
        for j in range(contact.data.sunk.shape[1]):
            contact.data.sunk[lane, j] = 0.0
        memory = contact.data.memory[1 - contact.data.half[0], lane]
        for n in range(contact.data.contact_count[lane]):
            memory[n, ALLOWED] = max(-contact.data.before[lane, n, BEFORE_GAP], 0.0)


@inlined
def _slot_of(contact: PackContactBundle, n: int) -> int:
    """The slot of contact n, -1: none. The slots of a pair are adjacent."""
    a = contact.detected.data.shape[n, 0]
    b = contact.detected.data.shape[n, 1]
    place = 0
    while (
        place < n
        and contact.detected.data.shape[n - 1 - place, 0] == a
        and contact.detected.data.shape[n - 1 - place, 1] == b
    ):
        place += 1
    return contact.data.first[a, b] + place if place < contact.data.room[a, b] else -1


@inlined
def _fits(contact: PackContactBundle, n: int, slot: int) -> bool:
    """True if contact n is of a kind that slots support, and of the same dimension as in other lanes. Contacts that
    yield (Rows.regularised) are left to the solver of single robots.
    """
    belt = contact.detected.data.belt[n]
    still = belt[0] == 0.0 and belt[1] == 0.0 and belt[2] == 0.0
    alike = contact.data.active[slot] == 0 or contact.data.dimension[slot] == contact.detected.data.dimension[n]
    if contact.adhesion is not None:
        acts = contact.detected.data.dimension[n] > 0  # with adhesion other contacts act too, in some lanes only
    else:
        acts = contact.detected.data.adhesion[n] == 0.0
    return still and acts and contact.detected.data.regularised[n] == 0 and alike


@inlined
def _adheres(contact: PackContactBundle, n: int) -> bool:
    """True if contact n may adhere, by its surfaces or by an actuator."""
    if contact.detected.data.adhesion[n] > 0.0:
        return True
    if contact.adhesion is not None and contact.detected.data.near[n] == 1:
        for a in range(contact.adhesion.body.shape[0]):
            for end in range(2):
                if contact.model.body[contact.detected.data.shape[n, end]] == contact.adhesion.body[a]:
                    return True
    return False


@njit
def _take_contact(data: Workspace, inputs: Inputs, contact: PackContactBundle, lane: int, n: int, slot: int) -> None:
    """Enter contact n of a lane in a slot."""
    if contact.data.active[slot] == 0:
        _describe(inputs, contact, n, slot)
    for end in range(2):
        lane_set(contact.data.bend, 2 * slot + end, lane, trusted_turn(contact.detected, n, end))
    if not is_steady(contact.detected, n):
        note_turning(data, inputs, contact.detected, n, lane)
        lane_set(contact.data.tilt, slot, lane, contact.detected.data.tilt[n])
        for j in range(3):
            lane_set(contact.data.lag, 3 * slot + j, lane, contact.detected.data.lag[n, j])
    lane_set(contact.data.present, slot, lane, 1.0)
    lane_set(contact.data.gap, slot, lane, contact.detected.data.gap[n])
    lane_set(contact.data.distance, slot, lane, contact.detected.data.distance[n])
    lane_set(contact.data.restitution, slot, lane, contact.detected.data.restitution[n])
    if contact.detected.data.soft[n] == 1:
        depth = max(-contact.detected.data.gap[n], 0.0)
        lane_set(contact.data.hardness, slot, lane, impedance(contact.detected.data.impedance, n, depth))
    for j in range(3):
        for end in range(2):
            if contact.model.body[contact.detected.data.shape[n, end]] > 0:
                lane_set(contact.data.arm, 6 * slot + 3 * end + j, lane, contact.detected.data.arm[n, end, j])
        for c in range(3):
            lane_set(contact.data.frame, 9 * slot + 3 * j + c, lane, contact.detected.data.frame[n, j, c])
    if contact.adhesion is not None:
        lane_set(contact.adhesion.near, slot, lane, 1.0 * contact.detected.data.near[n])
        lane_set(contact.adhesion.surface, slot, lane, contact.detected.data.adhesion[n])
    for j in range(contact.detected.data.dimension[n]):
        lane_set(contact.data.start, DIRECTIONS * slot + j, lane, contact.detected.data.start[n, j])


@njit
def _describe(inputs: Inputs, contact: PackContactBundle, n: int, slot: int) -> None:
    """Set the properties that a slot's contacts have in common, from the first contact."""
    contact.data.active[slot] = 1
    contact.data.dimension[slot] = contact.detected.data.dimension[n]
    contact.data.soft[slot] = contact.detected.data.soft[n]
    for end in range(2):
        contact.data.shape[slot, end] = contact.detected.data.shape[n, end]
    for j in range(2):
        contact.data.reference[slot, j] = contact.detected.data.reference[n, j]
        contact.data.friction_reference[slot, j] = contact.detected.data.friction_reference[n, j]
    for j in range(5):
        contact.data.impedance[slot, j] = contact.detected.data.impedance[n, j]
    for j in range(max(contact.detected.data.dimension[n] - 1, 1)):
        contact.data.friction[slot, j] = contact.detected.data.friction[n, j] * contact.data.factor[0]
    reset_grip(contact, slot)
    set_grip(inputs, contact, slot)


@njit
def search_again(robot: RobotBundle, run: RunBundle, contact: PackContactBundle, chosen: Pack) -> Pack:
    """Detect again the contacts of chosen lanes whose step leaves the shapes' margins, with larger ones; 1 in lanes
    with other contacts, which are entered in slots. contact.data.outrun: 1 in lanes that exceed their room.
    """
    model, state, data = robot.model, robot.state, robot.data
    velocities(model, run.step.velocity, data)
    zero = like(0.0, data)
    contact.data.outrun[0] = zero
    contact.data.other[0] = zero
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] > 0:
            way = run.inputs.time_step[0] * speed_bound(model, data, contact, n)
            if contact.sweep is not None:
                way = way * straight_share(data, run.inputs, contact.sweep, contact, n)
            contact.data.outrun[0] = largest(contact.data.outrun[0], widen(contact, n, way))
    contact.data.outrun[0] = contact.data.outrun[0] * chosen
    if highest(contact.data.outrun[0]) <= 0.0:  # data keeps the velocities at the step's end
        return contact.data.other[0]
    velocities(model, state.qvel, data)
    for lane in range(lane_count(contact.data.outrun)):
        if run.lanes.data.alive[lane] and lane_get(contact.data.outrun, 0, lane) > 0.0:
            _detect(contact, lane)
            if contact.detected.data.number[FOUND_CONTACTS] == contact.detected.data.number[CONTACTS]:
                lane_set(contact.data.outrun, 0, lane, 0.0)
                if not are_as_before(contact.data.before[lane], contact.detected, contact.data.contact_count[lane]):
                    lane_set(contact.data.other, 0, lane, 1.0)
                    _forget_contacts(data, contact, lane)
                    _take_contacts(model, data, run.inputs, contact, lane)
    velocities(model, run.step.velocity, data)
    return contact.data.other[0]


@njit
def _forget_contacts(data: Workspace, contact: PackContactBundle, lane: int) -> None:
    """Remove a lane's contacts from the slots."""
    lane_set(contact.data.touching, 0, lane, 0.0)
    for b in range(data.struck.shape[0]):
        lane_set(data.struck, b, lane, 0.0)
    for slot in range(contact.data.active.shape[0]):
        if contact.data.active[slot] == 1:
            _clear_lane(contact, slot, lane)


@inlined
def _clear_lane(contact: PackContactBundle, slot: int, lane: int) -> None:
    """Empty a slot in one lane, as `_clear` does in all."""
    lane_set(contact.data.present, slot, lane, 0.0)
    lane_set(contact.data.gap, slot, lane, 0.0)
    lane_set(contact.data.distance, slot, lane, 0.0)
    lane_set(contact.data.restitution, slot, lane, 0.0)
    lane_set(contact.data.hardness, slot, lane, 0.0)
    lane_set(contact.data.tilt, slot, lane, 0.0)
    for j in range(3):
        lane_set(contact.data.lag, 3 * slot + j, lane, 0.0)
    for j in range(6):
        lane_set(contact.data.arm, 6 * slot + j, lane, 0.0)
    for j in range(9):
        lane_set(contact.data.frame, 9 * slot + j, lane, 0.0)
    for j in range(DIRECTIONS):
        lane_set(contact.data.start, DIRECTIONS * slot + j, lane, 0.0)
    if contact.adhesion is not None:
        lane_set(contact.adhesion.near, slot, lane, 0.0)
        lane_set(contact.adhesion.surface, slot, lane, 0.0)
