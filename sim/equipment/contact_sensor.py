"""Contact sensors: requested data of a fixed number of the contacts between two objects, as in MuJoCo.

Source: MuJoCo's XML reference, sensor/contact.
"""

from __future__ import annotations

import math

from artsim.collision.ray import is_inside
from artsim.sim.articulation.kinematics import origin_of
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.equipment.arrays import (
    ANYTHING,
    AS_FOUND,
    LEAST_DISTANCE,
    NET_FORCE,
    OF_GEOM,
    OF_LINK,
    EquipmentBundle,
)
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import turn_back, turned_back
from artsim.sim.foundation.records import Mat3, Vec3
from artsim.sim.foundation.spatial import shifted_force
from artsim.sim.foundation.vec3 import dot, minus, plus_times, row_of, times, triple_at
from artsim.sim.geometry.contacts import ALONG_NORMAL, CONTACTS, ContactBundle

_FOUND, _FORCE, _TORQUE, _DISTANCE, _POINT, _NORMAL, _TANGENT = range(7)  # bits of the data, in order


@njit
def contact_sensor(
    model: Model,
    data: Workspace,
    equipment: EquipmentBundle,
    n: int,
    frame: tuple[int, Mat3, Vec3],
    contact: ContactBundle,
) -> None:
    """Write the outputs of sensor n, initially 0; `frame` (body, rotation, place) is that of its site, if any.

    Contacts within margin and gap count, and those that carry a force. Each slot takes the contact that follows the
    previous one in the requested order, equal ones by their number.
    """
    count = 0
    for k in range(contact.data.number[CONTACTS]):
        if _match(model, data, equipment, n, frame, contact, k) != 0.0:
            count += 1
    if equipment.model.sensor_reduction[n] == NET_FORCE:
        if count > 0:
            _net_force(model, data, equipment, n, frame, contact, count)
        return
    width = (equipment.model.sensor_first[n + 1] - equipment.model.sensor_first[n]) // equipment.model.sensor_slots[n]
    last = -1
    for slot in range(min(count, equipment.model.sensor_slots[n])):
        best = -1
        for k in range(contact.data.number[CONTACTS]):
            after = last < 0 or _comes_before(equipment, contact, n, last, k)
            first = after and (best < 0 or _comes_before(equipment, contact, n, k, best))
            if first and _match(model, data, equipment, n, frame, contact, k) != 0.0:
                best = k
        last = best
        side = _match(model, data, equipment, n, frame, contact, best)
        _put(equipment, contact, n, equipment.model.sensor_first[n] + slot * width, best, side, count)


@njit
def _match(
    model: Model,
    data: Workspace,
    equipment: EquipmentBundle,
    n: int,
    frame: tuple[int, Mat3, Vec3],
    contact: ContactBundle,
    k: int,
) -> float:
    """1 if contact k matches sensor n, -1 if it does with its sides exchanged, else 0."""
    if contact.data.near[k] == 0 and contact.data.force[k, ALONG_NORMAL] == 0.0:
        return 0.0
    if equipment.model.sensor_zone[n] >= 0:
        body, R, d = frame
        o = origin_of(model, data, body)
        p = turned_back(R, minus(minus(row_of(contact.data.point, k), o), d))
        if not is_inside(equipment.model.sensor_zone[n], equipment.model.sensor_size[n], p):
            return 0.0
    a = contact.data.shape[k, 0]
    b = contact.data.shape[k, 1]
    straight = _is_of(model, equipment, n, 0, contact, a) and _is_of(model, equipment, n, 1, contact, b)
    cross = _is_of(model, equipment, n, 0, contact, b) and _is_of(model, equipment, n, 1, contact, a)
    if not straight and not cross:
        return 0.0
    return 1.0 if straight else -1.0


@inlined
def _is_of(model: Model, equipment: EquipmentBundle, n: int, end: int, contact: ContactBundle, shape: int) -> bool:
    """True if a shape is, or belongs to, the object that sensor n names at this end."""
    side = equipment.model.sensor_side[end, n]
    number = equipment.model.sensor_number[end, n]
    link = max(contact.model.link[shape], 0)  # shapes of the scene belong to the world
    if side == OF_GEOM:
        found = contact.model.geom[shape] == number
    elif side == OF_LINK:
        found = link == number
    else:
        while link > number and side != ANYTHING:
            link = model.link_parent[link]
        found = side == ANYTHING or link == number
    return found


@inlined
def _comes_before(equipment: EquipmentBundle, contact: ContactBundle, n: int, a: int, b: int) -> bool:
    """True if contact a precedes b in the order that sensor n asks for."""
    reduction = equipment.model.sensor_reduction[n]
    one = 0.0
    two = 0.0
    if reduction == LEAST_DISTANCE:
        one = contact.data.distance[a]
        two = contact.data.distance[b]
    elif reduction != AS_FOUND:
        one = -_strength(contact, a)
        two = -_strength(contact, b)
    return one < two or (one == two and a < b)


@inlined
def _strength(contact: ContactBundle, k: int) -> float:
    """The square of contact k's force [N²]."""
    F = contact.data.force[k]
    return dot(F, F)


@inlined
def _put(equipment: EquipmentBundle, contact: ContactBundle, n: int, at: int, k: int, side: float, count: int) -> None:
    """Write the requested data of contact k; exchanged sides turn its frame by half a turn about its second tangent."""
    data = equipment.model.sensor_data[n]
    if data & (1 << _FOUND):
        equipment.data.sensor[at] = count
        at += 1
    for first in range(0, 6, 3):
        if data & ((1 << _FORCE) if first == 0 else (1 << _TORQUE)):
            equipment.data.sensor[at] = contact.data.force[k, first]
            equipment.data.sensor[at + 1] = contact.data.force[k, first + 1]
            equipment.data.sensor[at + 2] = side * contact.data.force[k, first + 2]
            at += 3
    if data & (1 << _DISTANCE):
        equipment.data.sensor[at] = contact.data.distance[k]
        at += 1
    if data & (1 << _POINT):
        for j in range(3):
            equipment.data.sensor[at + j] = contact.data.point[k, j]
        at += 3
    for axis in range(2):
        if data & ((1 << _NORMAL) if axis == 0 else (1 << _TANGENT)):
            for j in range(3):
                equipment.data.sensor[at + j] = side * contact.data.frame[k, axis, j]
            at += 3


@njit
def _net_force(
    model: Model,
    data: Workspace,
    equipment: EquipmentBundle,
    n: int,
    frame: tuple[int, Mat3, Vec3],
    contact: ContactBundle,
    count: int,
) -> None:
    """Write all matching contacts as one, in world axes, at the mean of their points weighted by force."""
    c = (0.0, 0.0, 0.0)
    total = 0.0
    for k in range(contact.data.number[CONTACTS]):
        if _match(model, data, equipment, n, frame, contact, k) != 0.0:
            weight = math.sqrt(_strength(contact, k))
            c = plus_times(c, weight, row_of(contact.data.point, k))
            total += weight
    c = times(1.0 / max(total, 1e-15), c)
    f, q = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(contact.data.number[CONTACTS]):
        side = _match(model, data, equipment, n, frame, contact, k)
        if side != 0.0:
            F = _along(contact, k, 0), _along(contact, k, 3)
            F = shifted_force(F, minus(row_of(contact.data.point, k), c))
            f, q = plus_times(f, side, F[0]), plus_times(q, side, F[1])
    at = equipment.model.sensor_first[n]
    values = (f[0], f[1], f[2], q[0], q[1], q[2], 0.0, c[0], c[1], c[2], 1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    if equipment.model.sensor_data[n] & 1:
        equipment.data.sensor[at] = count
        at += 1
    place = 0
    for word in range(_FORCE, _TANGENT + 1):
        width = 1 if word == _DISTANCE else 3
        if (equipment.model.sensor_data[n] >> word) & 1:
            for j in range(width):
                equipment.data.sensor[at + j] = values[place + j]
            at += width
        place += width


@inlined
def _along(contact: ContactBundle, k: int, first: int) -> Vec3:
    """Force (first 0) or torque (3) of contact k in world axes."""
    return turn_back(contact.data.frame, k, triple_at(contact.data.force[k], first))
