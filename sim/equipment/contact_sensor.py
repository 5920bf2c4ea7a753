"""Contact sensors: a fixed number of the contacts between two objects, and what is asked of them, as in MuJoCo
(XML reference, sensor/contact)."""

from __future__ import annotations

import math
from typing import Any

from artsim.collision.ray import is_inside
from artsim.sim.equipment.record import (
    ANYTHING,
    AS_FOUND,
    LEAST_DISTANCE,
    NET_FORCE,
    OF_GEOM,
    OF_LINK,
)
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import cross, origin_of, turned_back

FOUND, FORCE, TORQUE, DISTANCE, POINT, NORMAL, TANGENT = range(7)  # bits of the data, in order


@njit
def contact_sensor(m: Any, w: Any, e: Any, x: Any, n: Any, frame: Any, g: Any, t: Any) -> None:
    """The outputs of sensor n, whose site, if it has one, is on this frame (body, rotation, place); they are 0 before.

    Contacts count that are within margin and gap or carry a force. A new one is looked for in every slot: the first
    after the last one by the order wanted, and of equal ones by number.
    """
    count = 0
    for k in range(t.number[0]):
        if _match(m, w, e, n, frame, g, t, k) != 0.0:
            count += 1
    if e.sensor_reduction[n] == NET_FORCE:
        if count > 0:
            _net_force(m, w, e, x, n, frame, g, t, count)
        return
    width = (e.sensor_first[n + 1] - e.sensor_first[n]) // e.sensor_slots[n]
    last = -1
    for slot in range(min(count, e.sensor_slots[n])):
        best = -1
        for k in range(t.number[0]):
            after = last < 0 or _comes_before(e, g, t, n, last, k)
            first = after and (best < 0 or _comes_before(e, g, t, n, k, best))
            if first and _match(m, w, e, n, frame, g, t, k) != 0.0:
                best = k
        last = best
        side = _match(m, w, e, n, frame, g, t, best)
        _put(e, g, t, x, n, e.sensor_first[n] + slot * width, best, side, count)


@njit
def _match(m: Any, w: Any, e: Any, n: Any, frame: Any, g: Any, t: Any, k: Any) -> float:
    """0: contact k is none of sensor n's; 1: it is, -1: with the two sides exchanged."""
    if t.near[k] == 0 and t.force[k, 0] == 0.0:
        return 0.0
    if e.sensor_zone[n] >= 0:
        body, R, d = frame
        o = origin_of(m, w, body)
        p = turned_back(R, t.point[k, 0] - o[0] - d[0], t.point[k, 1] - o[1] - d[1], t.point[k, 2] - o[2] - d[2])
        if not is_inside(e.sensor_zone[n], e.sensor_size[n], p):
            return 0.0
    a = t.shape[k, 0]
    b = t.shape[k, 1]
    straight = _is_of(m, e, n, 0, g, a) and _is_of(m, e, n, 1, g, b)
    crossed = _is_of(m, e, n, 0, g, b) and _is_of(m, e, n, 1, g, a)
    if not straight and not crossed:
        return 0.0
    return 1.0 if straight else -1.0


@inlined
def _is_of(m: Any, e: Any, n: Any, end: Any, g: Any, shape: Any) -> bool:
    """Whether a shape is, or is of, what sensor n has at this end."""
    side = e.sensor_side[end, n]
    number = e.sensor_number[end, n]
    link = max(g.link[shape], 0)  # what stands in the scene is of the world
    if side == OF_GEOM:
        found = g.geom[shape] == number
    elif side == OF_LINK:
        found = link == number
    else:
        while link > number and side != ANYTHING:
            link = m.link_parent[link]
        found = side == ANYTHING or link == number
    is_of: bool = found
    return is_of


@inlined
def _comes_before(e: Any, g: Any, t: Any, n: Any, a: Any, b: Any) -> bool:
    """Whether contact a comes before b in the order that sensor n wants."""
    reduction = e.sensor_reduction[n]
    one = 0.0
    two = 0.0
    if reduction == LEAST_DISTANCE:
        one = t.distance[a]
        two = t.distance[b]
    elif reduction != AS_FOUND:
        one = -_strength(t, a)
        two = -_strength(t, b)
    before: bool = one < two or (one == two and a < b)
    return before


@inlined
def _strength(t: Any, k: Any) -> Any:
    """The square of the force [N²]."""
    F = t.force[k]
    return F[0] * F[0] + F[1] * F[1] + F[2] * F[2]


@inlined
def _put(e: Any, g: Any, t: Any, x: Any, n: Any, at: Any, k: Any, side: Any, count: Any) -> None:
    """What is asked of contact k. With the sides exchanged its frame is turned half around its second tangent."""
    data = e.sensor_data[n]
    if data & (1 << FOUND):
        x.sensor[at] = count
        at += 1
    for first in range(0, 6, 3):
        if data & ((1 << FORCE) if first == 0 else (1 << TORQUE)):
            x.sensor[at] = t.force[k, first]
            x.sensor[at + 1] = t.force[k, first + 1]
            x.sensor[at + 2] = side * t.force[k, first + 2]
            at += 3
    if data & (1 << DISTANCE):
        x.sensor[at] = t.distance[k]
        at += 1
    if data & (1 << POINT):
        for j in range(3):
            x.sensor[at + j] = t.point[k, j]
        at += 3
    for axis in range(2):
        if data & ((1 << NORMAL) if axis == 0 else (1 << TANGENT)):
            for j in range(3):
                x.sensor[at + j] = side * t.frame[k, axis, j]
            at += 3


@njit
def _net_force(m: Any, w: Any, e: Any, x: Any, n: Any, frame: Any, g: Any, t: Any, count: Any) -> None:
    """All of its contacts as one, in world axes, at the mean of their points weighed by their forces."""
    c0 = c1 = c2 = 0.0
    total = 0.0
    for k in range(t.number[0]):
        if _match(m, w, e, n, frame, g, t, k) != 0.0:
            weight = math.sqrt(_strength(t, k))
            c0 += weight * t.point[k, 0]
            c1 += weight * t.point[k, 1]
            c2 += weight * t.point[k, 2]
            total += weight
    scale = 1.0 / max(total, 1e-15)
    c0, c1, c2 = scale * c0, scale * c1, scale * c2
    f0 = f1 = f2 = 0.0
    q0 = q1 = q2 = 0.0
    for k in range(t.number[0]):
        side = _match(m, w, e, n, frame, g, t, k)
        if side != 0.0:
            a0, a1, a2 = _along(t, k, 0)
            b0, b1, b2 = _along(t, k, 3)
            d0, d1, d2 = cross(t.point[k, 0] - c0, t.point[k, 1] - c1, t.point[k, 2] - c2, a0, a1, a2)
            f0 += side * a0
            f1 += side * a1
            f2 += side * a2
            q0 += side * (b0 + d0)
            q1 += side * (b1 + d1)
            q2 += side * (b2 + d2)
    at = e.sensor_first[n]
    values = (f0, f1, f2, q0, q1, q2, 0.0, c0, c1, c2, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    if e.sensor_data[n] & 1:
        x.sensor[at] = count
        at += 1
    place = 0
    for word in range(FORCE, TANGENT + 1):
        width = 1 if word == DISTANCE else 3
        if (e.sensor_data[n] >> word) & 1:
            for j in range(width):
                x.sensor[at + j] = values[place + j]
            at += width
        place += width


@inlined
def _along(t: Any, k: Any, first: Any) -> Any:
    """Force (first 0) or torque (3) of contact k in world axes."""
    R = t.frame[k]
    a, b, c = t.force[k, first], t.force[k, first + 1], t.force[k, first + 2]
    return (
        R[0, 0] * a + R[1, 0] * b + R[2, 0] * c,
        R[0, 1] * a + R[1, 1] * b + R[2, 1] * c,
        R[0, 2] * a + R[1, 2] * b + R[2, 2] * c,
    )
