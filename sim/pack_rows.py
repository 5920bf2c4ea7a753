"""Constraint rows of a pack: joint friction, and contacts in slots (pack_contacts.py). Detection goes lane by lane.

What the rows say is what constraints/contact.py and constraints/friction.py have for one robot, whose doctrine is told
there. p: PackContacts, d: the ContactWork that detection fills for one lane after the other, y: PackSolver.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.contact import (
    FARTHEST,
    PARTING,
    SLOW,
    WORK,
    largest_friction,
    last_dof,
    slowest_bounce,
    stiffness_and_damping,
)
from artsim.sim.constraints.kinds import CONTACT_ROW, FRICTION_ROW
from artsim.sim.constraints.row import RECOVERY
from artsim.sim.constraints.softness import impedance, softened
from artsim.sim.detection import GROWTH, acceleration_along, place_shapes, place_static, speed_bound
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import cross, like, velocities
from artsim.sim.lanes import absolute, highest, lane_count, lane_get, lane_set, where_greater
from artsim.sim.recordtype import run_entry
from artsim.sim.rolling import has_still_normal, lag, rolls, tilt
from artsim.sim.solvers.cone import largest, least

_SHORT = 1e-2  # [m or 1] largest entry along the normal of what may move along the surface alone, to ten metres away

# ------------------------------------------------------------------ detection


@njit
def place_world(m: Any, w: Any, g: Any, p: Any, d: Any) -> None:
    """Places of shapes that never move, once for all lanes."""
    place_static(m, w, g, p)
    for n in range(g.body.shape[0]):
        if g.body[n] == 0:
            _copy_place(p, d, n, 0)


@inlined
def _copy_place(p: Any, d: Any, n: Any, lane: Any) -> None:
    for j in range(3):
        d.position[n, j] = lane_get(p.position, 3 * n + j, lane)
    for j in range(9):
        lane_set(d.rotation, 9 * n + j, 0, lane_get(p.rotation, 9 * n + j, lane))


@njit
def find_in_lanes(m: Any, s: Any, w: Any, i: Any, g: Any, p: Any, d: Any, alive: Any) -> bool:
    """Contacts of every lane, in slots; False when there is no room for all of a lane's. Needs kinematics."""
    place_shapes(m, s, w, i, g, p)
    zero = like(0.0, w)
    p.touching[0] = zero
    p.away[0] = zero
    for b in range(w.struck.shape[0]):
        w.struck[b] = zero
    for slot in range(p.active.shape[0]):
        if p.active[slot] == 1:
            _clear(p, slot, zero)
    for lane in range(lane_count(s.qpos)):
        p.found[lane] = 0
        if alive[lane]:
            _detect(g, p, d, lane)
            if d.number[1] > d.number[0]:
                return False
            _take_contacts(w, g, m, i, p, d, lane)
    return True


@njit
def _detect(g: Any, p: Any, d: Any, lane: Any) -> None:
    """The contacts of a lane into d."""
    for n in range(g.body.shape[0]):
        if g.body[n] > 0:
            _copy_place(p, d, n, lane)
        d.allowance[n] = lane_get(p.allowance, n, lane)
    run_entry(p.detector)


@inlined
def _clear(p: Any, slot: Any, zero: Any) -> None:
    p.active[slot] = 0
    p.gap[slot] = zero
    p.stiffening[slot] = zero
    p.tilt[slot] = zero
    for j in range(3):
        p.arm[slot, j] = zero
        p.lag[slot, j] = zero
        for c in range(3):
            p.frame[slot, j, c] = zero
    for j in range(p.start.shape[1]):
        p.start[slot, j] = zero


@njit
def _take_contacts(w: Any, g: Any, m: Any, i: Any, p: Any, d: Any, lane: Any) -> None:
    """The contacts that detection found into a lane: its memory, and slots."""
    count = d.number[0]
    p.found[lane] = count
    if count > 0:
        lane_set(p.touching, 0, lane, 1.0)
    memory = p.memory[1 - p.half[0], lane]
    for n in range(count):
        for end in range(2):
            lane_set(w.struck, g.body[d.shape[n, end]], lane, 1.0)
        memory[n, 0] = d.shape[n, 0]
        memory[n, 1] = d.shape[n, 1]
        memory[n, 2] = d.feature[n]
        for j in range(p.start.shape[1]):
            memory[n, 3 + j] = 0.0
        memory[n, 9] = 0
        p.slot[lane, n] = -1
        if d.dimension[n] > 0 or d.adhesion[n] > 0.0:
            slot = _slot_of(p, d, n)
            if slot < 0 or not _fits(p, d, n, slot):
                lane_set(p.away, 0, lane, 1.0)
                slot = -1
            else:
                _take_contact(w, g, m, p, d, lane, n, slot)
                if d.soft[n] == 0 and not has_still_normal(g, d, n):
                    _take_tilt(w, i, g, p, d, lane, n, slot)
                if p.rolls[slot] == 1:
                    _take_lag(w, i, g, p, d, lane, n, slot)
            p.slot[lane, n] = slot
    end = count
    while end < memory.shape[0] and memory[end, 0] != memory[end, 1]:
        for j in range(memory.shape[1]):
            memory[end, j] = 0.0
        end += 1


@inlined
def _slot_of(p: Any, d: Any, n: Any) -> Any:
    """The slot of contact n: those of a pair follow each other. -1: it has none."""
    a = d.shape[n, 0]
    b = d.shape[n, 1]
    place = 0
    while place < n and d.shape[n - 1 - place, 0] == a and d.shape[n - 1 - place, 1] == b:
        place += 1
    return p.first[a, b] + place if place < p.room[a, b] else -1


@inlined
def _fits(p: Any, d: Any, n: Any, slot: Any) -> bool:
    """Whether contact n is of a kind that slots know, and of as many dimensions as that of other lanes."""
    b = d.belt[n]
    still = b[0] == 0.0 and b[1] == 0.0 and b[2] == 0.0
    fits: bool = still and d.adhesion[n] == 0.0 and (p.active[slot] == 0 or p.dimension[slot] == d.dimension[n])
    return fits


@njit
def _take_contact(w: Any, g: Any, m: Any, p: Any, d: Any, lane: Any, n: Any, slot: Any) -> None:
    if p.active[slot] == 0:
        _describe(g, p, d, n, slot)
    body = p.body[slot]
    root = m.body_root[body]
    lane_set(p.gap, slot, lane, d.gap[n])
    if d.soft[n] == 1:
        lane_set(p.stiffening, slot, lane, impedance(d.impedance, n, -d.gap[n]))
    for j in range(3):
        origin = lane_get(w.offset, 3 * root + j, lane) + lane_get(w.arm, 3 * body + j, lane)
        lane_set(p.arm, 3 * slot + j, lane, d.point[n, j] - origin)
        for c in range(3):
            lane_set(p.frame, 9 * slot + 3 * j + c, lane, d.frame[n, j, c])
    old = p.memory[p.half[0], lane]
    for e in range(old.shape[0]):
        if old[e, 0] == old[e, 1]:
            break
        if old[e, 0] == d.shape[n, 0] and old[e, 1] == d.shape[n, 1] and old[e, 2] == d.feature[n]:
            for j in range(d.dimension[n]):
                lane_set(p.start, p.start.shape[1] * slot + j, lane, old[e, 3 + j])
            if old[e, 9] > 0:
                lane_set(p.away, 0, lane, 1.0)  # contacts that give way are for the solver of single robots
            break


@njit
def _take_lag(w: Any, i: Any, g: Any, p: Any, d: Any, lane: Any, n: Any, slot: Any) -> None:
    sign = 1.0 if p.end[slot] == 1 else -1.0
    o0 = sign * lane_get(w.angular_velocity, 3 * p.body[slot], lane)
    o1 = sign * lane_get(w.angular_velocity, 3 * p.body[slot] + 1, lane)
    o2 = sign * lane_get(w.angular_velocity, 3 * p.body[slot] + 2, lane)
    if lane_get(p.start, p.start.shape[1] * slot, lane) <= 0.0 and d.near[n] == 0:
        return
    e0, e1, e2 = lag(g, d, n, o0, o1, o2, i.time_step[0])
    lane_set(p.lag, 3 * slot, lane, e0)
    lane_set(p.lag, 3 * slot + 1, lane, e1)
    lane_set(p.lag, 3 * slot + 2, lane, e2)


@njit
def _take_tilt(w: Any, i: Any, g: Any, p: Any, d: Any, lane: Any, n: Any, slot: Any) -> None:
    """As `detection._tilt`."""
    body = p.body[slot]
    sign = 1.0 if p.end[slot] == 1 else -1.0
    N = d.frame[n, 0]
    out = sign * (0.5 * d.distance[n] + g.rounding[p.shape[slot]])
    o0 = lane_get(w.angular_velocity, 3 * body, lane)
    o1 = lane_get(w.angular_velocity, 3 * body + 1, lane)
    o2 = lane_get(w.angular_velocity, 3 * body + 2, lane)
    y0 = lane_get(p.arm, 3 * slot, lane) + out * N[0]
    y1 = lane_get(p.arm, 3 * slot + 1, lane) + out * N[1]
    y2 = lane_get(p.arm, 3 * slot + 2, lane) + out * N[2]
    c0, c1, c2 = cross(o0, o1, o2, y0, y1, y2)
    a0 = sign * (lane_get(w.velocity, 3 * body, lane) + c0)
    a1 = sign * (lane_get(w.velocity, 3 * body + 1, lane) + c1)
    a2 = sign * (lane_get(w.velocity, 3 * body + 2, lane) + c2)
    still, moves = (0.0, 0.0, 0.0), (o0, o1, o2)
    first = still if p.end[slot] == 1 else moves
    second = moves if p.end[slot] == 1 else still
    lane_set(p.tilt, slot, lane, tilt(g, d, n, first, second, (a0, a1, a2), i.time_step[0]))


@njit
def _describe(g: Any, p: Any, d: Any, n: Any, slot: Any) -> None:
    """What a slot's contacts have in common, from the first one."""
    p.active[slot] = 1
    end = 1 if g.body[d.shape[n, 1]] > 0 else 0
    p.end[slot] = end
    p.shape[slot] = d.shape[n, end]
    p.body[slot] = g.body[d.shape[n, end]]
    p.dimension[slot] = d.dimension[n]
    p.soft[slot] = d.soft[n]
    p.rolls[slot] = 1 if d.soft[n] == 0 and rolls(g, d.shape[n, 0], d.shape[n, 1]) else 0
    p.restitution[slot] = d.restitution[n]
    for j in range(2):
        p.reference[slot, j] = d.reference[n, j]
    for j in range(5):
        p.impedance[slot, j] = d.impedance[n, j]
    p.slope[slot] = largest_friction(d, n)
    for j in range(d.dimension[n]):
        p.scale[slot, j] = d.friction[n, j - 1] / p.slope[slot] if j > 1 else 1.0


@njit
def find_outrun(m: Any, w: Any, i: Any, f: Any, g: Any, p: Any, d: Any, alive: Any, beyond: Any) -> None:
    """p.outrun, of lanes whose step holds so far: `detection.outrun`, where that finds other contacts."""
    velocities(m, f.velocity, w)
    p.outrun[0] = like(-1.0, w)
    for n in range(g.body.shape[0]):
        if g.body[n] > 0:
            way = i.time_step[0] * speed_bound(m, w, g, p, n)
            p.outrun[0] = largest(p.outrun[0], way - p.allowance[n])
            p.allowance[n] = where_greater(way, p.allowance[n], GROWTH * way, p.allowance[n])
    if highest(p.outrun[0]) > 0.0:
        for lane in range(lane_count(p.outrun)):
            if alive[lane] and lane_get(p.outrun, 0, lane) > 0.0 and lane_get(beyond, 0, lane) <= 0.0:
                _detect(g, p, d, lane)
                if _are_as_before(p, d, lane):
                    lane_set(p.outrun, 0, lane, -1.0)


@njit
def _are_as_before(p: Any, d: Any, lane: Any) -> bool:
    """Whether the contacts in d are those that the lane's rows were made of."""
    if d.number[1] != p.found[lane]:
        return False
    memory = p.memory[1 - p.half[0], lane]
    for n in range(d.number[1]):
        slot = p.slot[lane, n]
        if memory[n, 0] != d.shape[n, 0] or memory[n, 1] != d.shape[n, 1] or memory[n, 2] != d.feature[n]:
            return False
        if slot >= 0 and lane_get(p.gap, slot, lane) != d.gap[n]:
            return False
    return True


# ------------------------------------------------------------------ rows


@njit
def build_in_lanes(m: Any, w: Any, i: Any, r: Any, f: Any, y: Any, g: Any, p: Any) -> None:
    """All rows. Needs motion columns, and the accelerations that the bias leaves."""
    r.number[0] = 0
    r.start[0] = 0
    zero = like(0.0, w)
    for n in range(y.rubbing.shape[0]):
        dof = y.rubbing[n]
        row = _add_row(r, FRICTION_ROW, 1, zero)
        r.column[r.start[row]] = dof
        r.value[r.start[row]] = like(1.0, w)
        r.upper[row] = i.time_step[0] * m.friction[dof]
        r.lower[row] = -r.upper[row]
        r.impulse[row] = y.held[n]
    if g is not None:
        for slot in range(p.active.shape[0]):
            if p.active[slot] == 1:
                _contact(m, w, i, r, f, g, p, slot)


@inlined
def _add_row(r: Any, kind: Any, entries: Any, zero: Any) -> Any:
    """A hard row with so many entries, to be filled in. Returns its number."""
    n = r.number[0]
    r.number[0] = n + 1
    r.kind[n] = kind
    r.stop[n] = r.start[n] + entries
    r.start[n + 1] = r.stop[n]
    r.bias[n] = zero
    r.cfm[n] = zero
    r.lower[n] = zero
    r.upper[n] = zero + 1e308
    r.cone[n] = 0
    r.slope[n] = zero
    return n


@njit
def _contact(m: Any, w: Any, i: Any, r: Any, f: Any, g: Any, p: Any, slot: Any) -> None:
    """The rows of a slot."""
    zero = like(0.0, w)
    dof = last_dof(m, p.body[slot])
    count = 0
    while dof >= 0:
        count += 1
        dof = m.dof_parent[dof]
    p.row[slot] = r.number[0]
    for j in range(p.dimension[slot]):
        row = _add_row(r, CONTACT_ROW, count, zero)
        r.cone[row] = -1
        r.impulse[row] = p.start[slot, j]
    first = p.row[slot]
    r.cone[first] = p.dimension[slot] if p.dimension[slot] > 1 else 0
    r.slope[first] = p.slope[slot] * p.factor[0]
    _set_columns(m, w, r, p, slot)
    if p.soft[slot] == 1:
        _aim_soft(i, r, f, g, p, slot, zero)
    else:
        _aim_hard(w, i, r, g, p, slot, zero)


@njit
def _set_columns(m: Any, w: Any, r: Any, p: Any, slot: Any) -> None:
    S = w.motion
    R = p.frame[slot]
    body = p.body[slot]
    first = p.row[slot]
    sign = 1.0 if p.end[slot] == 1 else -1.0
    x0 = w.arm[body, 0] + p.arm[slot, 0]
    x1 = w.arm[body, 1] + p.arm[slot, 1]
    x2 = w.arm[body, 2] + p.arm[slot, 2]
    dof = last_dof(m, body)
    e = 0
    while dof >= 0:
        c0, c1, c2 = cross(S[3, dof], S[4, dof], S[5, dof], x0, x1, x2)
        c0 = c0 + S[0, dof]
        c1 = c1 + S[1, dof]
        c2 = c2 + S[2, dof]
        for j in range(p.dimension[slot]):
            if j < 3:
                value = R[j, 0] * c0 + R[j, 1] * c1 + R[j, 2] * c2
            else:
                value = R[j - 3, 0] * S[3, dof] + R[j - 3, 1] * S[4, dof] + R[j - 3, 2] * S[5, dof]
            place = r.start[first + j] + e
            r.column[place] = dof
            r.value[place] = sign * p.scale[slot, j] * value
        e += 1
        dof = m.dof_parent[dof]


@inlined
def _rate(r: Any, n: Any, u: Any, zero: Any) -> Any:
    """J u of row n."""
    value = zero
    for e in range(r.start[n], r.stop[n]):
        value = value + r.value[e] * u[r.column[e]]
    return value


@njit
def _aim_hard(w: Any, i: Any, r: Any, g: Any, p: Any, slot: Any, zero: Any) -> None:
    """The normal row keeps the gap open at the end of the step; what is inside is brought back slowly."""
    h = i.time_step[0]
    gap = p.gap[slot]
    N = p.frame[slot, 0]
    sign = 1.0 if p.end[slot] == 1 else -1.0
    out = sign * (0.5 * gap + g.rounding[p.shape[slot]])
    x = p.arm[slot]
    drift = acceleration_along(w, p.body[slot], N, x[0] + out * N[0], x[1] + out * N[1], x[2] + out * N[2])
    row = p.row[slot]
    reach = zero
    for e in range(r.start[row], r.stop[row]):
        reach = reach + absolute(r.value[e])
    recovery = where_greater(-gap, FARTHEST * reach, zero, gap / max(h, RECOVERY))  # as `contact._is_stuck`
    bias = where_greater(zero, gap, recovery, gap / h)
    e = p.lag[slot]
    drift = sign * drift + N[0] * e[0] + N[1] * e[1] + N[2] * e[2] + p.tilt[slot]
    r.bias[row] = bias + 0.5 * h * least(drift, zero)
    if p.rolls[slot] == 1:
        _roll(w, i, r, p, slot, 0.5 * sign * gap, sign, zero)


@njit
def _roll(w: Any, i: Any, r: Any, p: Any, slot: Any, half: Any, sign: Any, zero: Any) -> None:
    """The friction rows of what stays in contact and rolls."""
    N = p.frame[slot, 0]
    e = p.lag[slot]
    x = p.arm[slot]
    x0, x1, x2 = x[0] + half * N[0], x[1] + half * N[1], x[2] + half * N[2]
    for j in range(1, min(p.dimension[slot], 3)):
        T = p.frame[slot, j]
        swerve = T[0] * e[0] + T[1] * e[1] + T[2] * e[2]
        swerve = swerve + sign * acceleration_along(w, p.body[slot], T, x0, x1, x2)
        row = p.row[slot] + j
        more = 0.5 * i.time_step[0] * p.scale[slot, j] * swerve
        r.bias[row] = where_greater(e[0] * e[0] + e[1] * e[1] + e[2] * e[2], zero, r.bias[row] + more, r.bias[row])


@njit
def _aim_soft(i: Any, r: Any, f: Any, g: Any, p: Any, slot: Any, zero: Any) -> None:
    """As MuJoCo has it; nothing where there is no contact. Needs the velocities before the step in f.next."""
    first = p.row[slot]
    K, B = stiffness_and_damping(p, slot, i.time_step[0])
    d = p.stiffening[slot]
    for j in range(p.dimension[slot]):
        row = first + j
        rate = _rate(r, row, f.next, zero)
        error = p.gap[slot] if j == 0 else zero
        mobility = g.mobility[0] + g.mobility[p.body[slot]]
        bias, cfm = softened(i.time_step[0], K if j == 0 else 0.0, B, d, mobility, error, rate, 0.0)
        r.cfm[row] = where_greater(d, zero, cfm, zero) if j == 0 else r.cfm[first]
        if j > 0:
            bias = bias - (1.0 - g.slack[0]) * r.cfm[first] * p.start[slot, j]
        r.bias[row] = where_greater(d, zero, bias, zero)


@njit
def untamed(w: Any, i: Any, r: Any, f: Any, s: Any, y: Any, p: Any) -> Any:
    """More than 0 where `contact.tame` may want to: a contact is met in this step that bounces, or does work on what is
    fast; and where what is inside moves so little that `contact._parts` may say no.
    """
    zero = like(0.0, w)
    worst = zero - 1.0
    for slot in range(p.active.shape[0]):
        row = p.row[slot]
        if p.active[slot] == 0:
            continue
        if p.restitution[slot] > 0.0:
            rate = _rate(r, row, s.qvel, zero)
            arrives = -(largest(p.gap[slot], zero) + i.time_step[0] * rate)
            worst = largest(worst, least(-rate - slowest_bounce(p.restitution[slot]), arrives) + 1e-12)
        elif p.soft[slot] == 0:
            fastest = zero
            lever = zero
            for e in range(r.start[row], r.stop[row]):
                fastest = largest(fastest, absolute(f.next[r.column[e]]))
                lever = largest(lever, absolute(r.value[e]))
            inside = -p.gap[slot] / max(i.time_step[0], RECOVERY) - SLOW
            throws = least(fastest - PARTING, _gain(w, r, f, s, y, p, slot))
            worst = largest(worst, least(inside, largest(throws, _SHORT - lever)))
    return worst


@inlined
def _gain(w: Any, r: Any, f: Any, s: Any, y: Any, p: Any, slot: Any) -> Any:
    """More than 0 where a contact's impulses do work; `contact._does_work`."""
    work = like(0.0, w)
    size = like(0.0, w)
    for row in range(p.row[slot], p.row[slot] + p.dimension[slot]):
        before = _rate(r, row, s.qvel, like(0.0, w))
        after = _rate(r, row, f.next, like(0.0, w))
        work = work + y.impulse[row] * (before + after)
        size = size + absolute(y.impulse[row]) * (absolute(before) + absolute(after))
    return work - WORK * size


@njit
def note_contacts(w: Any, y: Any, p: Any, alive: Any, beyond: Any) -> None:
    """The impulses found into the memories of the lanes whose rows these are."""
    for lane in range(lane_count(w.rotation)):
        if not alive[lane] or lane_get(beyond, 0, lane) > 0.0:
            continue
        memory = p.memory[1 - p.half[0], lane]
        for n in range(p.found[lane]):
            slot = p.slot[lane, n]
            if slot >= 0:
                for j in range(p.dimension[slot]):
                    memory[n, 3 + j] = lane_get(y.impulse, p.row[slot] + j, lane)
