"""Detects the contacts of a pack lane by lane, and enters them in the list of all lanes.

contact.detected holds the contacts that detection finds for one lane after the other, contact.data the list
(contact_list.py).
"""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import like, velocities
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import ALLOWED, FEATURE, SHAPE_A, SHAPE_B, RobotBundle, Workspace
from artsim.sim.constraints.impedance import impedance
from artsim.sim.contact.contact_list import drop_contacts, forget_contacts, list_contact
from artsim.sim.contact.contact_rows import share_inside
from artsim.sim.contact.detection import (
    above_plane,
    are_as_before,
    bound,
    name_contacts,
    note_found,
    place_shapes,
    place_static,
    reach_of,
    recognise,
    sort_boxes,
    speed_bound,
    straight_share,
    widen,
)
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.rolling import trusted_turn
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import (
    any_positive,
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
    """Place the shapes that never move: once for all lanes, but for planes, which lanes raise."""
    place_static(model, data, contact)
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] == 0:
            _copy_place(contact, n, 0)
    for j in range(contact.model.plane.shape[0]):
        n = contact.model.plane[j]
        if contact.model.body[n] == 0:
            contact.data.position[n, 2] = contact.data.position[n, 2] + contact.lanes.raised[0]


@njit
def place_planes(contact: PackContactBundle, lane: int) -> None:
    """Place the planes of the world where a lane has them."""
    for j in range(contact.model.plane.shape[0]):
        n = contact.model.plane[j]
        if contact.model.body[n] == 0:
            contact.detected.data.position[n, 2] = lane_get(contact.data.position, 3 * n + 2, lane)


@inlined
def _copy_place(contact: PackContactBundle, n: int, lane: int) -> None:
    for j in range(3):
        contact.detected.data.position[n, j] = lane_get(contact.data.position, 3 * n + j, lane)
    for j in range(9):
        lane_set(contact.detected.data.rotation, 9 * n + j, 0, lane_get(contact.data.rotation, 9 * n + j, lane))


@njit
def find_in_lanes(robot: RobotBundle, inputs: Inputs, contact: PackContactBundle, alive: Ints1) -> bool:
    """Detect every lane's contacts and list them; False where they exceed a lane's room, or the list's. Needs
    kinematics.
    """
    data = robot.data
    place_shapes(robot, inputs, contact)
    if contact.sweep is not None:
        for n in range(contact.model.body.shape[0]):
            contact.data.margin[n] = contact.data.margin[n] * straight_share(data, inputs, contact, n)
    one = like(1.0, data)
    clear = _are_clear(contact, one - contact.lanes.touching[0])
    forget_contacts(data, contact, one)
    contact.lanes.yielding[0] = zero_like(one)
    contact.data.number[FOUND_CONTACTS] = 0
    for lane in range(lane_count(robot.state.qpos)):
        contact.lanes.number[lane] = 0
        if alive[lane]:
            if lane_of(clear, lane) > 0.0:
                contact.detected.data.number[FOUND_CONTACTS] = 0
                contact.detected.data.number[CONTACTS] = 0
            else:
                _detect(contact, lane)
            _take_contacts(robot.model, data, contact, lane)
            if lacks_room(contact):
                return False
    drop_contacts(contact)
    return True


@inlined
def lacks_room(contact: PackContactBundle) -> bool:
    """True if the contacts that were looked for last exceed their lane's room, or those of all lanes the list's."""
    own, listed = contact.detected.data.number, contact.data.number
    lacks: bool = own[FOUND_CONTACTS] > own[CONTACTS] or listed[FOUND_CONTACTS] > listed[CONTACTS]
    return lacks


@njit
def _are_clear(contact: PackContactBundle, chosen: Pack) -> Pack:
    """1 in chosen lanes where no two shapes come near: the boxes of all pairs that may touch are apart, as in
    detection.detect. Boxes around those of all lanes are swept, so that only pairs that are near somewhere are compared
    in all lanes.
    """
    g, data, swept = contact.model, contact.data, contact.detected.data.swept
    zero, clear = zero_like(chosen), chosen
    if not any_positive(chosen):
        return clear
    for j in range(g.solid.shape[0]):
        b = g.solid[j]
        bound(contact, b)
        for n in range(g.plane.shape[0]):
            a = g.plane[n]
            if g.allowed[a, b] >= 0:
                above = above_plane(contact, a, b) - reach_of(contact, a, b)
                clear = where_greater(above, zero + _ROUNDING, clear, zero)
        for k in range(3):
            contact.detected.data.low[b, k] = -highest(-data.low[b, k]) - _ROUNDING
            contact.detected.data.high[b, k] = highest(data.high[b, k])
        if not any_positive(clear):
            return clear
    sort_boxes(contact.detected)
    order = contact.detected.data.order
    for j in range(order.shape[0]):
        n = j + 1
        while n < order.shape[0] and swept[n, 0] <= swept[j, 1]:
            if _overlap(swept[j], swept[n]) and g.allowed[order[j], order[n]] >= 0:
                clear = clear * _are_apart(contact, order[j], order[n])
                if not any_positive(clear):
                    return clear
            n += 1
    return clear


@inlined
def _overlap(one: Reals1, other: Reals1) -> bool:
    """True if two boxes that are swept overlap along the second and the third axis."""
    across: bool = one[2] <= other[3] and other[2] <= one[3] and one[4] <= other[5] and other[4] <= one[5]
    return across


@inlined
def _are_apart(contact: PackContactBundle, a: int, b: int) -> Pack:
    """1 in lanes where the boxes of two shapes are apart."""
    low, high = contact.data.low, contact.data.high
    gap = low[a, 0] - high[b, 0]
    for k in range(3):
        gap = largest(gap, largest(low[a, k] - high[b, k], low[b, k] - high[a, k]))
    zero = zero_like(gap)
    return where_greater(gap, zero + _ROUNDING, zero + 1.0, zero)


@njit
def _detect(contact: PackContactBundle, lane: int) -> None:
    """Detect the contacts of a lane into contact.detected."""
    _copy_places(contact, lane)
    run_entry(contact.detected.data.detector)


@inlined
def _copy_places(contact: PackContactBundle, lane: int) -> None:
    """Place the shapes of contact.detected as those of a lane, with their margins."""
    place_planes(contact, lane)
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] > 0:
            _copy_place(contact, n, lane)
        contact.detected.data.margin[n] = lane_get(contact.data.margin, n, lane)


# ------------------------------------------------------------------ the contacts of a lane


@njit
def _take_contacts(model: Model, data: Workspace, contact: PackContactBundle, lane: int) -> None:
    """Enter the contacts that detection found in a lane: in its memory and in the list. Nothing where they exceed the
    lane's room; not all where they exceed the list's.
    """
    if lacks_room(contact):
        return
    found, lanes = contact.detected, contact.lanes
    recognise(model, data, lanes.memory[lanes.half[0], lane], found, lane)
    note_found(lanes.before[lane], found)
    name_contacts(lanes.memory[1 - lanes.half[0], lane], found)
    lanes.number[lane] = found.data.number[CONTACTS]
    lanes.deepest[lane] = 0.0
    if found.data.number[CONTACTS] > 0:
        lane_set(lanes.touching, 0, lane, 1.0)
    for n in range(found.data.number[CONTACTS]):
        lanes.place[lane, n] = -1
    number, at = 0, 0
    for n in range(found.data.number[CONTACTS]):
        lanes.deepest[lane] = max(-found.data.distance[n], lanes.deepest[lane])
        _note_depth(contact, lanes.sunk[lane], n)
        for end in range(2):
            lane_set(data.struck, contact.model.body[found.data.shape[n, end]], lane, 1.0)
        number = number + 1 if _is_of_last_pair(contact, n) else 0
        if found.data.regularised[n] > 0.0:
            lane_set(lanes.yielding, 0, lane, 1.0)
        if found.data.dimension[n] > 0 or _adheres(contact, n):
            at = list_contact(contact, n, number, at)
            if lacks_room(contact):
                return
            lanes.place[lane, n] = at
            _take_contact(contact, lane, n, at)


@inlined
def _is_of_last_pair(contact: PackContactBundle, n: int) -> bool:
    """True if contact n of a lane is of the same two shapes as the one before it."""
    shape = contact.detected.data.shape
    same: bool = n > 0 and shape[n - 1, 0] == shape[n, 0] and shape[n - 1, 1] == shape[n, 1]
    return same


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
def note_start(contact: PackContactBundle, lane: int) -> None:
    """Note the depths of a lane's contacts in its first step: afterwards only depths beyond these count."""
    lanes = contact.lanes
    lanes.start_depth[lane] = lanes.deepest[lane]
    for j in range(lanes.sunk.shape[1]):
        lanes.sunk[lane, j] = 0.0
    memory = lanes.memory[1 - lanes.half[0], lane]
    for n in range(lanes.number[lane]):
        memory[n, ALLOWED] = max(-lanes.before[lane, n, BEFORE_GAP], 0.0)


@inlined
def _adheres(contact: PackContactBundle, n: int) -> bool:
    """True if contact n of a lane may adhere, by its surfaces or by an actuator."""
    if contact.adhesion is not None and contact.detected.data.near[n] == 1:
        if contact.detected.data.adhesion[n] > 0.0:
            return True
        for a in range(contact.adhesion.body.shape[0]):
            for end in range(2):
                if contact.model.body[contact.detected.data.shape[n, end]] == contact.adhesion.body[a]:
                    return True
    return False


@njit
def _take_contact(contact: PackContactBundle, lane: int, n: int, at: int) -> None:
    """Enter contact n of a lane as contact `at` of the list."""
    found = contact.detected.data
    for end in range(2):
        lane_set(contact.data.bend, 2 * at + end, lane, trusted_turn(contact.detected, n, end))
    if found.span[n] > 0.0:
        lane_set(contact.data.span, at, lane, found.span[n])
        for j in range(3):
            lane_set(contact.data.roll, 3 * at + j, lane, found.roll[n, j])
    if found.carriers[n] > 0.0:
        lane_set(contact.data.carriers, at, lane, found.carriers[n])
        for j in range(4):
            lane_set(contact.data.carried, 4 * at + j, lane, found.carried[n, j])
    lane_set(contact.lanes.present, at, lane, 1.0)
    lane_set(contact.data.gap, at, lane, found.gap[n])
    lane_set(contact.data.distance, at, lane, found.distance[n])
    lane_set(contact.data.restitution, at, lane, found.restitution[n])
    lane_set(contact.data.regularised, at, lane, found.regularised[n])
    if found.soft[n] == 1:
        depth = max(-found.gap[n], 0.0)
        lane_set(contact.data.hardness, at, lane, impedance(found.impedance, n, depth))
    for j in range(3):
        lane_set(contact.data.belt, 3 * at + j, lane, found.belt[n, j])
        for end in range(2):
            if contact.model.body[found.shape[n, end]] > 0:
                lane_set(contact.data.arm, 6 * at + 3 * end + j, lane, found.arm[n, end, j])
        for c in range(3):
            lane_set(contact.data.frame, 9 * at + 3 * j + c, lane, found.frame[n, j, c])
    if contact.adhesion is not None:
        lane_set(contact.data.adhesion, at, lane, found.adhesion[n])
        lane_set(contact.adhesion.near, at, lane, 1.0 * found.near[n])
        lane_set(contact.adhesion.loose, at, lane, 1.0 if found.dimension[n] == 0 else 0.0)
    for j in range(found.dimension[n]):
        lane_set(contact.data.start, DIRECTIONS * at + j, lane, found.start[n, j])


@njit
def measure_lanes(contact: PackContactBundle, chosen: Pack) -> None:
    """Set contact.data.ahead of the aimed contacts of lanes where `chosen` is 1, whose shapes are placed at the end of
    the step, by the entry that measures them for one lane after the other (foresight.py)."""
    found, lanes = contact.detected.data, contact.lanes
    for lane in range(lanes.number.shape[0]):
        if not lane_of(chosen, lane) > 0.0:
            continue
        memory = lanes.memory[1 - lanes.half[0], lane]
        _copy_places(contact, lane)
        found.number[CONTACTS] = found.number[FOUND_CONTACTS] = lanes.number[lane]
        for n in range(lanes.number[lane]):
            at = lanes.place[lane, n]
            found.shape[n, 0], found.shape[n, 1] = int(memory[n, SHAPE_A]), int(memory[n, SHAPE_B])
            found.feature[n] = int(memory[n, FEATURE])
            found.aimed[n] = lane_get(contact.data.aimed, at, lane) if at >= 0 else 0.0
            found.distance[n] = (
                lane_get(contact.data.distance, at, lane) if at >= 0 else lanes.before[lane, n, BEFORE_GAP]
            )
            for j in range(3):
                found.ahead_point[n, j] = lane_get(contact.data.ahead_point, 3 * at + j, lane) if at >= 0 else math.inf
        run_entry(found.foresight)
        for n in range(lanes.number[lane]):
            if lanes.place[lane, n] >= 0:
                lane_set(contact.data.ahead, lanes.place[lane, n], lane, found.ahead[n])


# ------------------------------------------------------------------ in a step that leaves margins


@njit
def search_again(robot: RobotBundle, run: RunBundle, contact: PackContactBundle, chosen: Pack) -> Pack:
    """Detect again the contacts of chosen lanes whose step leaves the shapes' margins, with larger ones; 1 in lanes
    with other contacts, which are entered in the list. The search ends where contacts exceed the room.
    """
    model, state, data, lanes = robot.model, robot.state, robot.data, contact.lanes
    velocities(model, run.step.velocity, data)
    zero = like(0.0, data)
    lanes.outrun[0] = zero
    lanes.other[0] = zero
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] > 0:
            way = run.inputs.time_step[0] * speed_bound(model, data, contact, n)
            way = way * straight_share(data, run.inputs, contact, n)
            lanes.outrun[0] = largest(lanes.outrun[0], widen(contact, n, way))
    lanes.outrun[0] = lanes.outrun[0] * chosen
    if highest(lanes.outrun[0]) <= 0.0:  # data keeps the velocities at the step's end
        return lanes.other[0]
    velocities(model, state.qvel, data)
    for lane in range(lane_count(lanes.outrun)):
        if run.lanes.data.alive[lane] and lane_get(lanes.outrun, 0, lane) > 0.0 and not lacks_room(contact):
            _detect(contact, lane)
            found = contact.detected
            if lacks_room(contact) or are_as_before(lanes.before[lane], found, lanes.number[lane]):
                continue
            lane_set(lanes.other, 0, lane, 1.0)
            lanes.chosen[0] = zero
            lane_set(lanes.chosen, 0, lane, 1.0)
            forget_contacts(data, contact, lanes.chosen[0])
            _take_contacts(model, data, contact, lane)
    velocities(model, run.step.velocity, data)
    return lanes.other[0]
