"""Where contacts are in this configuration: shapes put in their places, boxes around them sorted and swept, pairs of
shapes through collision's kernels.

A contact is found before it is there: each shape has an allowance, how far it may move in the step, and what is nearer
than two shapes' allowances is a contact with a gap, which the step may close and no more. Should the step move a shape
farther than that after all, contacts are looked for again with a larger one (`outrun`). So nothing tunnels but what
turns far in a step (advancement.py looks at that, on request; such a shape's allowance is then only as large as its
points move in straight lines). Where all fall together, what falls is seen from a frame that falls with it, in which it
is slow and the ground is fast.

`detect` is an entry of its own, compiled once for all variants of the step, which calls it through its address: it
reads where the shapes are and nothing else of the engine.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.collision.narrow_phase import collide
from artsim.sim.clock import mark
from artsim.sim.constraints.contact import impulse_along
from artsim.sim.contacts import TOUCHING
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import cross, like, origin_of, point_of, turn, velocities
from artsim.sim.lanes import sqrt, where_greater
from artsim.sim.phases import BROAD_PHASE, NARROW_PHASE
from artsim.sim.recordtype import run_entry
from artsim.sim.rolling import has_still_normal, lag, rolls, tilt

_ACCELERATION = 20.0  # [m/s²] that bodies have without giving warning: gravity, and as much again
GROWTH = 1.5  # of allowances that were too small
_TOGETHER = 0.5  # of the speeds is left in a frame that is worth moving with
_MIXED = 1e-15  # a smaller weight of softness counts as none


# ------------------------------------------------------------------ in the step


@njit
def place_static(m: Any, w: Any, g: Any, t: Any) -> None:
    """Places of shapes that never move. Needs nothing."""
    for n in range(g.body.shape[0]):
        t.allowance[n] = like(0.0, w)
        if g.body[n] == 0:
            _place(m, w, g, t, n)


@njit
def find_contacts(m: Any, s: Any, w: Any, i: Any, g: Any, t: Any) -> bool:
    """Contacts of this configuration, or False when there is no room for all. Needs kinematics."""
    place_shapes(m, s, w, i, g, t)
    if t.advancement[0] != 0:
        for n in range(g.body.shape[0]):
            t.allowance[n] *= _straight(w, i, g, t, n)
    return detected(m, s, w, g, t)


@njit
def place_shapes(m: Any, s: Any, w: Any, i: Any, g: Any, t: Any) -> None:
    """Where shapes are and how far they may move, in both widths. Needs kinematics."""
    h = i.time_step[0]
    velocities(m, s.qvel, w)
    place_moving(m, w, g, t)
    _choose_frame(m, w, g, t)
    v = t.common
    still = h * sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    for n in range(g.body.shape[0]):
        moves = g.body[n] > 0
        t.allowance[n] = h * speed_bound(m, w, g, t, n) + h * h * _ACCELERATION if moves else still


@njit
def place_moving(m: Any, w: Any, g: Any, t: Any) -> None:
    """Places of shapes that can move. Needs kinematics."""
    for n in range(g.body.shape[0]):
        if g.body[n] > 0:
            _place(m, w, g, t, n)


@njit
def _choose_frame(m: Any, w: Any, g: Any, t: Any) -> None:
    """t.common: the mean velocity of the shapes that can move where most move with it, else 0."""
    count = 0
    zero = like(0.0, w)
    all_of_it = zero
    v0 = zero
    v1 = zero
    v2 = zero
    for n in range(g.body.shape[0]):
        if g.body[n] > 0:
            s0, s1, s2 = velocity_of(m, w, g, t, n)
            v0 += s0
            v1 += s1
            v2 += s2
            all_of_it += sqrt(s0 * s0 + s1 * s1 + s2 * s2)
            count += 1
    v0 /= max(count, 1)
    v1 /= max(count, 1)
    v2 /= max(count, 1)
    left = zero
    for n in range(g.body.shape[0]):
        if g.body[n] > 0:
            s0, s1, s2 = velocity_of(m, w, g, t, n)
            left += sqrt((s0 - v0) * (s0 - v0) + (s1 - v1) * (s1 - v1) + (s2 - v2) * (s2 - v2))
    most = _TOGETHER * all_of_it if count > 1 else zero
    t.common[0] = where_greater(most, left, v0, zero)
    t.common[1] = where_greater(most, left, v1, zero)
    t.common[2] = where_greater(most, left, v2, zero)


@njit
def detected(m: Any, s: Any, w: Any, g: Any, t: Any) -> bool:
    """Contacts of the shapes' places and allowances; see `find_contacts`."""
    run_entry(t.detector)
    if t.number[1] > t.number[0]:
        return False
    for n in range(t.number[0]):
        for end in range(2):
            body = g.body[t.shape[n, end]]
            o0, o1, o2 = origin_of(m, w, body)
            t.arm[n, end, 0] = t.point[n, 0] - o0
            t.arm[n, end, 1] = t.point[n, 1] - o1
            t.arm[n, end, 2] = t.point[n, 2] - o2
    _recall(s, t)
    return True


@njit
def note_found(t: Any) -> None:
    """t.before: the contacts, before they are looked for again."""
    for n in range(t.number[0]):
        known = t.before[n]
        known[0] = t.shape[n, 0]
        known[1] = t.shape[n, 1]
        known[2] = t.feature[n]
        known[3] = t.dimension[n]
        known[4] = t.gap[n]
        for j in range(3):
            known[5 + j] = t.point[n, j]


@njit
def are_as_before(t: Any, count: Any) -> bool:
    """Whether the contacts are the `count` of t.before: what was found with them holds."""
    if t.number[0] != count:
        return False
    for n in range(count):
        known = t.before[n]
        pair = known[0] == t.shape[n, 0] and known[1] == t.shape[n, 1] and known[2] == t.feature[n]
        if not pair or known[3] != t.dimension[n] or known[4] != t.gap[n]:
            return False
        for j in range(3):
            if known[5 + j] != t.point[n, j]:
                return False
    return True


@njit
def outrun(m: Any, w: Any, i: Any, f: Any, g: Any, t: Any) -> bool:
    """True when f.velocity moves a shape farther than its allowance, which is then larger."""
    h = i.time_step[0]
    velocities(m, f.velocity, w)
    far = False
    for n in range(g.body.shape[0]):
        if g.body[n] > 0:
            way = h * speed_bound(m, w, g, t, n) * _straight(w, i, g, t, n)
            if way > t.allowance[n]:
                t.allowance[n] = GROWTH * way
                far = True
    return far


@inlined
def _straight(w: Any, i: Any, g: Any, t: Any, n: Any) -> Any:
    """The share of the step in which shape n moves straight on; all of it without the continuous check."""
    share = 1.0
    if t.advancement[0] != 0:
        a = w.angular_velocity[g.body[n]]
        angle = i.time_step[0] * math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])
        share = t.straight[n] / max(angle, t.straight[n])
    return share


@inlined
def _place(m: Any, w: Any, g: Any, t: Any, n: Any) -> None:
    body = g.body[n]
    c = g.place[n]
    p0, p1, p2 = point_of(m, w, body, c[0], c[1], c[2])
    t.position[n, 0] = p0
    t.position[n, 1] = p1
    t.position[n, 2] = p2
    T = g.turn[n]
    for column in range(3):
        r0, r1, r2 = turn(w.rotation, body, T[0, column], T[1, column], T[2, column])
        t.rotation[n, 0, column] = r0
        t.rotation[n, 1, column] = r1
        t.rotation[n, 2, column] = r2


@inlined
def speed_bound(m: Any, w: Any, g: Any, t: Any, n: Any) -> Any:
    """A bound of the speed of shape n's points, seen from the frame that moves with t.common [m/s]."""
    a = w.angular_velocity[g.body[n]]
    v = t.common
    s0, s1, s2 = velocity_of(m, w, g, t, n)
    s0 -= v[0]
    s1 -= v[1]
    s2 -= v[2]
    turning = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])
    return sqrt(s0 * s0 + s1 * s1 + s2 * s2) + turning * g.swing[n]


@inlined
def velocity_of(m: Any, w: Any, g: Any, t: Any, n: Any) -> Any:
    """Velocity of shape n's origin [m/s]."""
    body = g.body[n]
    o0, o1, o2 = origin_of(m, w, body)
    p = t.position[n]
    a = w.angular_velocity[body]
    v = w.velocity[body]
    s0, s1, s2 = cross(a[0], a[1], a[2], p[0] - o0, p[1] - o1, p[2] - o2)
    return s0 + v[0], s1 + v[1], s2 + v[2]


@njit
def find_drifts(m: Any, w: Any, i: Any, g: Any, t: Any) -> None:
    """t.drift of every contact: that of the two surfaces' centres of curvature along the normal, which may turn.

    A sphere's gap changes with its centre, whatever it turns. Needs velocities, and the accelerations at zero
    independent acceleration, as the bias leaves them: less gravity, the world's too. Of what turns farther than it
    moves straight on a second derivative says little.
    """
    for n in range(t.number[0]):
        N = t.frame[n, 0]
        value = 0.0
        for end in range(2):
            shape = t.shape[n, end]
            body = g.body[shape]
            if body > 0:
                sign = 1.0 if end == 1 else -1.0
                x = t.arm[n, end]
                out = sign * (0.5 * t.distance[n] + g.rounding[shape])
                drift = acceleration_along(w, body, N, x[0] + out * N[0], x[1] + out * N[1], x[2] + out * N[2])
                value += sign * drift * _straight(w, i, g, t, shape) ** 2
        t.drift[n] = value
        if t.soft[n] == 0 and not has_still_normal(g, t, n):
            _tilt(w, i, g, t, n)
        t.swerve[n, 0] = 0.0
        t.swerve[n, 1] = 0.0
        stays = t.start[n, 0] > 0.0 or t.near[n] == 1
        if stays and t.soft[n] == 0 and rolls(g, t.shape[n, 0], t.shape[n, 1]):
            _roll(w, i, g, t, n)


@njit
def _tilt(w: Any, i: Any, g: Any, t: Any, n: Any) -> None:
    """Add to t.drift what the turning of the normal does."""
    N = t.frame[n, 0]
    o = w.angular_velocity
    v = w.velocity
    a0, a1, a2, straight = 0.0, 0.0, 0.0, 1.0
    for end in range(2):
        shape = t.shape[n, end]
        body = g.body[shape]
        if body > 0:
            sign = 1.0 if end == 1 else -1.0
            x = t.arm[n, end]
            out = sign * (0.5 * t.distance[n] + g.rounding[shape])
            y0, y1, y2 = x[0] + out * N[0], x[1] + out * N[1], x[2] + out * N[2]
            c0, c1, c2 = cross(o[body, 0], o[body, 1], o[body, 2], y0, y1, y2)
            a0, a1, a2 = a0 + sign * (v[body, 0] + c0), a1 + sign * (v[body, 1] + c1), a2 + sign * (v[body, 2] + c2)
            straight = min(straight, _straight(w, i, g, t, shape))
    one = o[g.body[t.shape[n, 0]]]
    two = o[g.body[t.shape[n, 1]]]
    first, second = (one[0], one[1], one[2]), (two[0], two[1], two[2])
    t.drift[n] += straight**2 * tilt(g, t, n, first, second, (a0, a1, a2), i.time_step[0])


@njit
def _roll(w: Any, i: Any, g: Any, t: Any, n: Any) -> None:
    """Add to t.drift, and make t.swerve, what the contact's way over the two surfaces does, where it stays."""
    N = t.frame[n, 0]
    o = w.angular_velocity
    one = g.body[t.shape[n, 0]]
    two = g.body[t.shape[n, 1]]
    o0, o1, o2 = o[two, 0] - o[one, 0], o[two, 1] - o[one, 1], o[two, 2] - o[one, 2]
    e0, e1, e2 = lag(g, t, n, o0, o1, o2, i.time_step[0])
    if e0 * e0 + e1 * e1 + e2 * e2 == 0.0:
        return
    t.drift[n] += N[0] * e0 + N[1] * e1 + N[2] * e2
    for k in range(2):
        T = t.frame[n, 1 + k]
        value = T[0] * e0 + T[1] * e1 + T[2] * e2
        for end in range(2):
            body = g.body[t.shape[n, end]]
            if body > 0:
                sign = 1.0 if end == 1 else -1.0
                half = 0.5 * sign * t.distance[n]
                x = t.arm[n, end]
                y0, y1, y2 = x[0] + half * N[0], x[1] + half * N[1], x[2] + half * N[2]
                value += sign * acceleration_along(w, body, T, y0, y1, y2)
        t.swerve[n, k] = value


@inlined
def acceleration_along(w: Any, body: Any, N: Any, r0: Any, r1: Any, r2: Any) -> Any:
    """Acceleration along N of the body's point at r from its origin, at zero independent acceleration [m/s²]."""
    o = w.angular_velocity[body]
    al = w.angular_acceleration[body]
    a = w.acceleration
    s0, s1, s2 = cross(o[0], o[1], o[2], r0, r1, r2)
    s0, s1, s2 = cross(o[0], o[1], o[2], s0, s1, s2)
    t0, t1, t2 = cross(al[0], al[1], al[2], r0, r1, r2)
    return (
        N[0] * (a[body, 0] - a[0, 0] + s0 + t0)
        + N[1] * (a[body, 1] - a[0, 1] + s1 + t1)
        + N[2] * (a[body, 2] - a[0, 2] + s2 + t2)
    )


# ------------------------------------------------------------------ from step to step


@njit
def _recall(s: Any, t: Any) -> None:
    """t.start, t.eased: impulses that these contacts had in the last step, and how long they gave way; 0 of new ones.

    Contacts come in much the same order in every step: the search goes on from where the last one was found.
    """
    known = 0
    while known < s.contact.shape[0] and s.contact[known, 0] != s.contact[known, 1]:
        known += 1
    at = 0
    for n in range(t.number[0]):
        t.eased[n] = 0
        for k in range(t.start.shape[1]):
            t.start[n, k] = 0.0
        for _ in range(known):
            old = s.contact[at]
            at = at + 1 if at + 1 < known else 0
            if old[0] == t.shape[n, 0] and old[1] == t.shape[n, 1] and old[2] == t.feature[n]:
                for k in range(t.start.shape[1]):
                    t.start[n, k] = old[3 + k]
                t.eased[n] = int(old[9])
                break


@njit
def remember(s: Any, r: Any, g: Any, t: Any, agreed: Any) -> None:
    """s.contact: the contacts and the impulses of their rows (none where the rows contradict each other)."""
    for n in range(s.contact.shape[0]):
        if n < t.number[0]:
            s.contact[n, 0] = t.shape[n, 0]
            s.contact[n, 1] = t.shape[n, 1]
            s.contact[n, 2] = t.feature[n]
            for k in range(t.start.shape[1]):
                carries = agreed and t.row[n] >= 0 and k < t.dimension[n]
                s.contact[n, 3 + k] = impulse_along(r, g, t, n, k) if carries else 0.0
            s.contact[n, 9] = r.eased[t.row[n]] if t.row[n] >= 0 else 0
        else:
            for k in range(s.contact.shape[1]):
                s.contact[n, k] = 0.0  # a shape never touches itself: no contact


# ------------------------------------------------------------------ the entry


@njit
def detect(g: Any, S: Any, k: Any, c: Any, t: Any, q: Any) -> None:
    """All contacts between shapes: planes with solids in order, then solids by sort and sweep (Baraff 1992, ch. 6).

    The order depends on the shapes' places alone. q: the run's Clock, None where nothing is timed.
    """
    t.number[0] = 0
    t.number[1] = 0
    for n in range(g.solid.shape[0]):
        _bound(g, t, g.solid[n])
    for j in range(g.plane.shape[0]):
        for n in range(g.solid.shape[0]):
            a = g.plane[j]
            b = g.solid[n]
            if g.allowed[a, b] >= 0 and _above_plane(g, t, a, b) < t.allowance[a] + t.allowance[b] + _margin(g, a, b):
                _touch(g, S, k, c, t, q, a, b)
    axis = _sort(g, t)
    second = (axis + 1) % 3
    third = (axis + 2) % 3
    for j in range(t.order.shape[0]):
        a = t.order[j]
        for n in range(j + 1, t.order.shape[0]):
            b = t.order[n]
            if t.low[b, axis] > t.high[a, axis]:
                break
            if (
                t.low[b, second] <= t.high[a, second]
                and t.low[a, second] <= t.high[b, second]
                and t.low[b, third] <= t.high[a, third]
                and t.low[a, third] <= t.high[b, third]
                and g.allowed[a, b] >= 0
            ):
                if S.kind[b] < S.kind[a] or (S.kind[b] == S.kind[a] and b < a):
                    _touch(g, S, k, c, t, q, b, a)
                else:
                    _touch(g, S, k, c, t, q, a, b)


@inlined
def _bound(g: Any, t: Any, n: Any) -> None:
    """The box around shape n, its allowance and its reach."""
    e = g.extent[n]
    wide = t.allowance[n] + g.reach[n]
    for k in range(3):
        R = t.rotation[n, k]
        half = abs(R[0]) * e[0] + abs(R[1]) * e[1] + abs(R[2]) * e[2] + wide
        t.low[n, k] = t.position[n, k] - half
        t.high[n, k] = t.position[n, k] + half


@inlined
def _above_plane(g: Any, t: Any, a: Any, b: Any) -> Any:
    """How far shape b's box is above the plane a [m]."""
    R = t.rotation
    height = 0.0
    for k in range(3):
        height += R[a, k, 2] * (t.position[b, k] - t.position[a, k])
    for axis in range(3):
        along = R[a, 0, 2] * R[b, 0, axis] + R[a, 1, 2] * R[b, 1, axis] + R[a, 2, 2] * R[b, 2, axis]
        height -= abs(along) * g.extent[b, axis]
    return height


@njit
def _sort(g: Any, t: Any) -> int:
    """t.order along the axis on which the shapes lie farthest apart, which is returned; equal ones by number."""
    n = t.order.shape[0]
    axis = 0
    widest = -1.0
    for k in range(3):
        mean = 0.0
        square = 0.0
        for j in range(n):
            x = t.position[g.solid[j], k]
            mean += x
            square += x * x
        spread = square - mean * mean / max(n, 1)
        if spread > widest:
            widest = spread
            axis = k
    for j in range(1, n):
        a = t.order[j]
        k = j - 1
        while k >= 0 and _after(t, t.order[k], a, axis):
            t.order[k + 1] = t.order[k]
            k -= 1
        t.order[k + 1] = a
    return axis


@inlined
def _after(t: Any, a: Any, b: Any, axis: Any) -> bool:
    after: bool = t.low[a, axis] > t.low[b, axis] or (t.low[a, axis] == t.low[b, axis] and a > b)
    return after


@inlined
def _margin(g: Any, a: Any, b: Any) -> Any:
    """How far apart a and b are a contact, active or not [m]: MuJoCo's sums of margins and gaps, or the pair's."""
    k = g.allowed[a, b] - 1
    if k >= 0:
        return g.pair_margin[k] + g.pair_gap[k]
    return g.margin[a] + g.margin[b] + g.gap[a] + g.gap[b]


@njit
def _touch(g: Any, S: Any, k: Any, c: Any, t: Any, q: Any, a: Any, b: Any) -> None:
    """Contacts of a pair whose boxes meet."""
    mark(q, BROAD_PHASE)
    reach = t.allowance[a] + t.allowance[b] + _margin(g, a, b)
    c.number[0] = 0
    collide(S, t, k, a, b, reach, c)
    for found in range(c.number[0]):
        if c.gap[found] > reach:
            continue
        t.number[1] += 1
        n = t.number[0]
        if n == t.gap.shape[0]:
            continue
        t.number[0] = n + 1
        t.shape[n, 0] = a
        t.shape[n, 1] = b
        t.feature[n] = c.feature[found]
        for j in range(3):
            t.point[n, j] = c.point[found, j]
        _set_frame(t.frame[n], c.normal[found, 0], c.normal[found, 1], c.normal[found, 2])
        _set_belt(g, t, n)
        _combine(g, t, n, a, b, c.gap[found])
    mark(q, NARROW_PHASE)


@inlined
def _set_frame(R: Any, n0: Any, n1: Any, n2: Any) -> None:
    """The normal and two tangents: y of the world laid into the plane, or z where the normal is near y (as in MuJoCo,
    where the two frictions of a pair depend on it)."""
    y, z = (1.0, 0.0) if abs(n1) < 0.5 else (0.0, 1.0)
    along = y * n1 + z * n2
    u0 = -along * n0
    u1 = y - along * n1
    u2 = z - along * n2
    scale = 1.0 / math.sqrt(u0 * u0 + u1 * u1 + u2 * u2)
    u0 *= scale
    u1 *= scale
    u2 *= scale
    R[0, 0] = n0
    R[0, 1] = n1
    R[0, 2] = n2
    R[1, 0] = u0
    R[1, 1] = u1
    R[1, 2] = u2
    R[2, 0], R[2, 1], R[2, 2] = cross(n0, n1, n2, u0, u1, u2)


@inlined
def _set_belt(g: Any, t: Any, n: Any) -> None:
    """Velocities of the two surfaces at contact n, of geoms that are belts."""
    for k in range(3):
        t.belt[n, k] = 0.0
    for end in range(2):
        shape = t.shape[n, end]
        b = g.belt[shape]
        if b[0] == 0.0 and b[1] == 0.0 and b[2] == 0.0 and b[3] == 0.0 and b[4] == 0.0 and b[5] == 0.0:
            continue
        sign = 1.0 if end == 1 else -1.0
        v0, v1, v2 = turn(t.rotation, shape, b[0], b[1], b[2])
        o0, o1, o2 = turn(t.rotation, shape, b[3], b[4], b[5])
        x = t.point[n]
        p = t.position[shape]
        c0, c1, c2 = cross(o0, o1, o2, x[0] - p[0], x[1] - p[1], x[2] - p[2])
        for k in range(3):
            R = t.frame[n, k]
            t.belt[n, k] += sign * (R[0] * (v0 + c0) + R[1] * (v1 + c1) + R[2] * (v2 + c2))


@njit
def _combine(g: Any, t: Any, n: Any, a: Any, b: Any, distance: Any) -> None:
    """Properties of contact n of the two shapes, or of their explicit pair. MuJoCo: computation chapter, Contact."""
    k = g.allowed[a, b] - 1
    t.distance[n] = distance
    t.restitution[n] = max(g.restitution[a], g.restitution[b])
    if k >= 0:
        for j in range(5):
            t.friction[n, j] = g.pair_friction[k, j]
            t.impedance[n, j] = g.pair_impedance[k, j]
        t.reference[n, 0] = g.pair_reference[k, 0]
        t.reference[n, 1] = g.pair_reference[k, 1]
        t.soft[n] = g.pair_soft[k]
        t.adhesion[n] = g.pair_adhesion[k]
        t.dimension[n] = g.pair_dimension[k]
        t.gap[n] = distance - g.pair_margin[k]
        excess = g.pair_gap[k]
    else:
        _mix(g, t, n, a, b)
        t.gap[n] = distance - (g.margin[a] + g.margin[b])
        excess = g.gap[a] + g.gap[b]
    t.near[n] = 1 if t.gap[n] <= max(excess, TOUCHING) else 0
    if t.near[n] == 0:
        t.adhesion[n] = 0.0
    if t.soft[n] == 1 and t.gap[n] > 0.0:
        t.dimension[n] = 0  # found only: what is soft begins to act at the surface
    elif t.friction[n, 0] <= 0.0 and t.friction[n, 1] <= 0.0:
        t.dimension[n] = 1


@njit
def _mix(g: Any, t: Any, n: Any, a: Any, b: Any) -> None:
    """Of two shapes the one of higher priority counts; else the larger friction and dimension, softness by weight."""
    share = _share(g, a, b)
    equal = g.priority[a] == g.priority[b]
    one = a if g.priority[a] >= g.priority[b] else b
    t.dimension[n] = max(g.dimension[a], g.dimension[b]) if equal else g.dimension[one]
    t.adhesion[n] = g.adhesion[a] + g.adhesion[b] if equal else g.adhesion[one]
    for j in range(5):
        friction = max(g.friction[a, j], g.friction[b, j]) if equal else g.friction[one, j]
        t.friction[n, j] = friction
        t.impedance[n, j] = share * g.impedance[a, j] + (1.0 - share) * g.impedance[b, j]
    t.soft[n] = 1 if (g.soft[a] == 1 and share > 0.0) or (g.soft[b] == 1 and share < 1.0) else 0
    stiff = equal and min(g.reference[a, 0], g.reference[b, 0]) <= 0.0  # a stiffness, not a time
    for j in range(2):
        mixed = share * g.reference[a, j] + (1.0 - share) * g.reference[b, j]
        t.reference[n, j] = min(g.reference[a, j], g.reference[b, j]) if stiff else mixed


@inlined
def _share(g: Any, a: Any, b: Any) -> Any:
    """How much of a's softness counts beside b's: 0 to 1."""
    if g.priority[a] != g.priority[b]:
        return 1.0 if g.priority[a] > g.priority[b] else 0.0
    first = g.mix[a] if g.mix[a] >= _MIXED else 0.0
    second = g.mix[b] if g.mix[b] >= _MIXED else 0.0
    return first / (first + second) if first + second > 0.0 else 0.5
