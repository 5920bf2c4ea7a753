"""A contact as rows: the gap, which must not close, and what friction holds within its cone.

The gap's row keeps the end of the step open: gap + h J v⁺ + ½ h² drift ≥ 0, so that a body that would arrive within
the step is stopped at the surface and not beyond it. Of the second order only what closes the gap counts: it is known
for the velocity before the step, and a body that is stopped in the step has none of what would have lifted it. What is
inside already is brought back over a tenth of a second, as with limits, but for what no joint can part (`tame`). A soft
contact (MJCF's solref and solimp) gives way as in MuJoCo.

Friction has up to five rows: two slips, the spin about the normal, the rolling about two tangents. Its cone is an
ellipse, Σ (λ_k / μ_k)² ≤ λ_n²; the rows are scaled by μ_k / μ_1, which makes it round. The rows of a contact follow
each other and have the same columns in the same order, those of the dofs that move one of the bodies and not the other.

A pyramid (Anitescu and Potra 1997; MuJoCo's default) has two rows for each of these directions instead, along its edges
n ± μ_k t_k, which push only: plain bounds. What slides then rises by up to μ times its speed, and between its
directions a pyramid holds less, down to μ / √2.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.constraints.row import RECOVERY, UNSOLVED, add_row, drift_of, one_sided, row_rate
from artsim.sim.constraints.softness import impedance, softened
from artsim.sim.equipment.record import BODY
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import cross, link_frame
from artsim.sim.run import CONTACT_ROW, DEPTH, GAVE_WAY, LINK_A, LINK_B, SHARE, START_DEPTH

_ACROSS = 1e-7  # sine of the angle to the surface up to which a motion counts as one along it
_ACROSS_INSIDE = 1e-3  # the same of what is inside: links that overlap where they are hinged
_LOST = 1e-11  # share of its terms below which a sum is rounding
WORK = 1e-6  # share of what an impulse moves that counts as no work
PARTING = 10.0  # [rad/s or m/s] no dof faster to bring apart what is inside: some of it no joint can part
FARTHEST = 10.0  # [rad or m] no dof farther
_THROUGH = 0.5  # of a shape's thickness: contacts that gave way by as much stop the run
SLOW = 1e-3  # [m/s] bringing apart that does not matter
SLOWEST_BOUNCE = 0.05  # [m/s] an arrival below it does not bounce
_LASTING = 0.1  # 1 - e below which slower ones do: a ball that keeps its energy keeps it
ROUNDING = 1e-3  # of that speed


@njit
def contact_rows(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, g: Any, t: Any) -> None:
    """The rows of this step's contacts, and f.free with what adhesion does. Needs motion columns."""
    for n in range(t.number[0]):
        t.pull[n] = t.adhesion[n]
    if e is not None:
        _pull_by_actuators(e, x, g, t)
    for n in range(t.number[0]):
        t.row[n] = -1
        if t.dimension[n] == 0 and t.pull[n] > 0.0:
            t.dimension[n] = 1
        if t.dimension[n] > 0:
            t.row[n] = r.number[0]
            t.hit[n] = 0
            if is_pyramid(g, t, n):
                _add_edges(r, g, t, n)
            else:
                _add_rows(r, g, t, n)
            _add_columns(m, w, r, g, t, n)
            if not _opens(m, w, g, t, n):
                r.number[0] = t.row[n]
                t.row[n] = -1
                continue
            _set_targets(m, s, w, i, r, g, t, n)
            if t.pull[n] > 0.0:
                _pull(i, r, f, g, t, n)


@inlined
def is_pyramid(g: Any, t: Any, n: Any) -> bool:
    """Whether contact n's rows are the edges of a pyramid."""
    pyramid: bool = g.pyramidal[0] == 1 and t.dimension[n] > 1
    return pyramid


@inlined
def _pull(i: Any, r: Any, f: Any, g: Any, t: Any, n: Any) -> None:
    """f.free with the adhesion of contact n, along its normal."""
    row = t.row[n]
    opposite = row + 1 if is_pyramid(g, t, n) else row  # the mean of two edges
    for entry in range(r.start[row], r.stop[row]):
        normal = 0.5 * (r.value[entry] + r.value[entry - r.start[row] + r.start[opposite]])
        f.free[r.column[entry]] -= i.time_step[0] * t.pull[n] * normal


@njit
def _pull_by_actuators(e: Any, x: Any, g: Any, t: Any) -> None:
    """Share the force of an adhesion actuator among the contacts of its body."""
    for a in range(e.actuator_transmission.shape[0]):
        if e.actuator_transmission[a] != BODY:
            continue
        count = 0
        for n in range(t.number[0]):
            count += _is_of(e, g, t, n, a)
        for n in range(t.number[0]):
            if _is_of(e, g, t, n, a) == 1:
                t.pull[n] += x.actuator_force[a] / count


@inlined
def _is_of(e: Any, g: Any, t: Any, n: Any, a: Any) -> Any:
    """1: contact n, near enough to count, is one of the body that actuator a pulls at."""
    first = g.body[t.shape[n, 0]] == e.actuator_target[a]
    second = g.body[t.shape[n, 1]] == e.actuator_target[a]
    return 1 if (first or second) and t.near[n] == 1 else 0


@njit
def _add_rows(r: Any, g: Any, t: Any, n: Any) -> None:
    """As many rows as contact n has dimensions, without columns."""
    first = r.number[0]
    largest = largest_friction(t, n)
    t.rows[n] = t.dimension[n]
    for k in range(t.dimension[n]):
        row = _add_row(r, g, t, n)
        r.cone[row] = -1
        r.impulse[row] = t.start[n, k]
        t.scale[n, k] = t.friction[n, k - 1] / largest if k > 1 else 1.0
    r.cone[first] = t.dimension[n] if t.dimension[n] > 1 else 0
    r.slope[first] = largest


@njit
def _add_edges(r: Any, g: Any, t: Any, n: Any) -> None:
    """Two rows for each direction in which contact n rubs, without columns; what t.start holds is shared among them."""
    t.rows[n] = 2 * (t.dimension[n] - 1)
    for k in range(6):
        t.scale[n, k] = 1.0
    for edge in range(t.rows[n]):
        row = _add_row(r, g, t, n)
        mu = t.friction[n, edge // 2]
        along = 0.5 * t.start[n, edge // 2 + 1] / mu if mu > 0.0 else 0.0
        r.impulse[row] = t.start[n, 0] / t.rows[n] + (along if edge % 2 == 0 else -along)


@inlined
def _add_row(r: Any, g: Any, t: Any, n: Any) -> Any:
    row = add_row(r, CONTACT_ROW, n)
    r.eased[row] = t.eased[n]
    r.static[row] = 1 if g.body[t.shape[n, 0]] == 0 or g.body[t.shape[n, 1]] == 0 else 0
    return row


@inlined
def impulse_along(r: Any, g: Any, t: Any, n: Any, k: Any) -> Any:
    """Impulse of contact n in its direction k, times t.scale."""
    first = t.row[n]
    if not is_pyramid(g, t, n):
        return r.impulse[first + k]
    if k > 0:
        edge = first + 2 * (k - 1)
        return t.friction[n, k - 1] * (r.impulse[edge] - r.impulse[edge + 1])
    value = 0.0
    for row in range(first, first + t.rows[n]):
        value += r.impulse[row]
    return value


@inlined
def largest_friction(t: Any, n: Any) -> Any:
    """By which the rows are scaled: of sliding, or what else there is."""
    value = t.friction[n, 0]
    for k in range(1, t.dimension[n] - 1):
        if value <= 0.0:
            value = t.friction[n, k]
    return value


@njit
def _add_columns(m: Any, w: Any, r: Any, g: Any, t: Any, n: Any) -> None:
    """Columns of all rows of contact n: what moves both bodies moves the contact's point of both alike."""
    first = t.row[n]
    one = g.body[t.shape[n, 0]]
    two = g.body[t.shape[n, 1]]
    count = _count_columns(m, one, two)
    start = r.start[first]
    x = t.arm[n, 0]
    y = t.arm[n, 1]
    p = (w.arm[one, 0] + x[0], w.arm[one, 1] + x[1], w.arm[one, 2] + x[2])
    q = (w.arm[two, 0] + y[0], w.arm[two, 1] + y[1], w.arm[two, 2] + y[2])
    a = last_dof(m, one)
    b = last_dof(m, two)
    e = start  # of the first row
    c = start
    while a != b:
        if a > b:
            c = _add_column(m, w, r, g, t, n, a, -1.0, p, e, c, count)
            a = m.dof_parent[a]
        else:
            c = _add_column(m, w, r, g, t, n, b, 1.0, q, e, c, count)
            b = m.dof_parent[b]
        e += 1
    for k in range(t.rows[n]):
        row = first + k
        r.start[row] = start + k * count
        r.stop[row] = c + k * count
        r.start[row + 1] = r.start[row] + count


@njit
def _opens(m: Any, w: Any, g: Any, t: Any, n: Any) -> bool:
    """Whether any dof moves the bodies of contact n apart, and not only along the surface, where the rest is rounding.

    An impulse that mends an overlap against rounding has no bound.
    """
    a = last_dof(m, g.body[t.shape[n, 0]])
    b = last_dof(m, g.body[t.shape[n, 1]])
    while a != b:
        if _parts(m, w, g, t, n, 0 if a > b else 1, max(a, b)):
            return True
        if a > b:
            a = m.dof_parent[a]
        else:
            b = m.dof_parent[b]
    return False


@inlined
def _parts(m: Any, w: Any, g: Any, t: Any, n: Any, end: Any, k: Any) -> bool:
    """Whether dof k moves a body of contact n along the normal, by more than what is lost in its rounding."""
    S = w.motion
    N = t.frame[n, 0]
    body = g.body[t.shape[n, end]]
    x, y, z = w.arm[body, 0] + t.arm[n, end][0], w.arm[body, 1] + t.arm[n, end][1], w.arm[body, 2] + t.arm[n, end][2]
    u, v, c = cross(S[3, k], S[4, k], S[5, k], x, y, z)
    turning = S[3, k] * S[3, k] + S[4, k] * S[4, k] + S[5, k] * S[5, k]
    terms = turning * (x * x + y * y + z * z) + S[0, k] * S[0, k] + S[1, k] * S[1, k] + S[2, k] * S[2, k]
    u, v, c = u + S[0, k], v + S[1, k], c + S[2, k]
    along = N[0] * u + N[1] * v + N[2] * c
    inside = t.soft[n] == 0 and t.gap[n] < -SLOW * RECOVERY
    across = _ACROSS_INSIDE if inside else _ACROSS
    least = across * across * (u * u + v * v + c * c) + _LOST * _LOST * terms
    parts: bool = m.dof_independent[k] >= 0 and along * along > least
    return parts


@inlined
def last_dof(m: Any, body: Any) -> Any:
    """The last dof that moves a body, -1: none."""
    return m.body_dof[body + 1] - 1 if body > 0 else -1


@njit
def _count_columns(m: Any, first: Any, second: Any) -> Any:
    a = last_dof(m, first)
    b = last_dof(m, second)
    count = 0
    while a != b:
        if a > b:
            a = m.dof_parent[a]
        else:
            b = m.dof_parent[b]
        count += 1
    return count


@inlined
def _add_column(
    m: Any, w: Any, r: Any, g: Any, t: Any, n: Any, k: Any, sign: Any, p: Any, entry: Any, column: Any, count: Any
) -> Any:
    """Dof k in all rows of contact n, `count` entries apart; where the next independent column goes."""
    S = w.motion
    c0, c1, c2 = cross(S[3, k], S[4, k], S[5, k], p[0], p[1], p[2])
    c = (sign * (c0 + S[0, k]), sign * (c1 + S[1, k]), sign * (c2 + S[2, k]))
    a = m.dof_independent[k]
    gain = w.gain[k]
    for row in range(t.rows[n]):
        if is_pyramid(g, t, n):
            mu = t.friction[n, row // 2]
            value = _moved(w, t, n, k, sign, c, 0)
            value += (mu if row % 2 == 0 else -mu) * _moved(w, t, n, k, sign, c, row // 2 + 1)
        else:
            value = t.scale[n, row] * _moved(w, t, n, k, sign, c, row)
        r.entry_dof[entry + row * count] = k
        r.entry_value[entry + row * count] = value
        if a >= 0:
            r.column[column + row * count] = a
            r.value[column + row * count] = value * gain
    return column + 1 if a >= 0 else column


@inlined
def _moved(w: Any, t: Any, n: Any, k: Any, sign: Any, c: Any, j: Any) -> Any:
    """What a unit velocity of dof k, c of the point, is in direction j of contact n."""
    R = t.frame[n]
    if j < 3:
        return R[j, 0] * c[0] + R[j, 1] * c[1] + R[j, 2] * c[2]
    S = w.motion
    return sign * (R[j - 3, 0] * S[3, k] + R[j - 3, 1] * S[4, k] + R[j - 3, 2] * S[5, k])


@njit
def _set_targets(m: Any, s: Any, w: Any, i: Any, r: Any, g: Any, t: Any, n: Any) -> None:
    """Bias and softness of the rows of contact n."""
    h = i.time_step[0]
    pyramid = is_pyramid(g, t, n)
    for k in range(t.rows[n]):
        row = t.row[n] + k
        rate = 0.0
        if t.soft[n] == 1 or t.restitution[n] > 0.0:
            rate = row_rate(r, row, s.qvel)
        belt = _belt(t, n, k, pyramid)
        if k == 0 or pyramid:
            _aim_normal(m, w, i, r, t, n, row, rate, belt)
        else:
            r.bias[row] = h * _drift(m, w, r, row) + belt
            if k < 3:
                r.bias[row] += 0.5 * h * t.swerve[n, k - 1] * t.scale[n, k]
        if t.soft[n] == 1:
            _soften(r, g, t, n, k, h, rate, belt, pyramid)


@inlined
def _belt(t: Any, n: Any, k: Any, pyramid: Any) -> Any:
    """Velocity of moving surfaces in row k of contact n."""
    if pyramid:
        mu = t.friction[n, k // 2] if k < 4 else 0.0
        return t.belt[n, 0] + (mu if k % 2 == 0 else -mu) * t.belt[n, min(k // 2 + 1, 2)]
    return t.belt[n, k] * t.scale[n, k] if k < 3 else 0.0


@inlined
def _drift(m: Any, w: Any, r: Any, row: Any) -> Any:
    return drift_of(w, r, row) if m.coupling_follower.shape[0] > 0 else 0.0


@inlined
def _aim_normal(m: Any, w: Any, i: Any, r: Any, t: Any, n: Any, row: Any, rate: Any, belt: Any) -> None:
    """Bias of contact n's row along the normal, or near it; rate is its velocity before the step."""
    aim_open(m, w, i, r, t, n, row, belt)
    if t.restitution[n] > 0.0 and bounces(t, n, rate + belt, i.time_step[0]):
        r.bias[row] = min(r.bias[row], -rebound(m, t, n, rate + belt))


@inlined
def aim_open(m: Any, w: Any, i: Any, r: Any, t: Any, n: Any, row: Any, belt: Any) -> None:
    """The same of what does not bounce."""
    h = i.time_step[0]
    one_sided(r, i, row, t.gap[n])
    if _is_stuck(r, row, t.gap[n]):
        r.bias[row] = 0.0
        r.rate[row] = 0.0
    r.bias[row] += h * _drift(m, w, r, row) + 0.5 * h * min(t.drift[n], 0.0) + belt


@inlined
def _is_stuck(r: Any, row: Any, gap: Any) -> bool:
    """Whether what is inside would stay there however far the dofs turn that move a row."""
    reach = 0.0
    for entry in range(r.start[row], r.stop[row]):
        reach += abs(r.value[entry])
    stuck: bool = FARTHEST * reach < -gap
    return stuck


@njit
def _soften(r: Any, g: Any, t: Any, n: Any, k: Any, h: Any, rate: Any, belt: Any, pyramid: Any) -> None:
    """Row k of contact n gives way as in MuJoCo; friction is damped, it has no place to go back to."""
    row = t.row[n] + k
    d = impedance(t.impedance, n, -t.gap[n])
    K, B = stiffness_and_damping(t, n, h)
    mobility = g.mobility[g.body[t.shape[n, 0]]] + g.mobility[g.body[t.shape[n, 1]]]
    normal = k == 0 or pyramid
    error = t.gap[n] if normal else 0.0
    bias, cfm = softened(h, K if normal else 0.0, B, d, mobility, error, rate, 0.0)
    r.bias[row] = bias + belt
    r.error[row] = 0.0
    r.rate[row] = 0.0
    if pyramid:  # as soft in friction as the cone (MuJoCo, engine_core_constraint.c)
        square = t.friction[n, 0] * t.friction[n, 0]
        r.cfm[row] = 2.0 * square * g.slack[0] * (1.0 + square) * cfm
        return
    r.cfm[row] = cfm if k == 0 else r.cfm[t.row[n]]  # one for all rows of a cone
    if k > 0:  # less softness than the cone's, by what the force of the last step would give way beyond it
        r.bias[row] -= (1.0 - g.slack[0]) * r.cfm[row] * t.start[n, k]


@inlined
def stiffness_and_damping(t: Any, n: Any, h: Any) -> Any:
    """K [1/s²] and B [1/s] of solref; times are two steps at least (MuJoCo: modeling chapter, Solver parameters)."""
    time = t.reference[n, 0]
    ratio = t.reference[n, 1]
    most = t.impedance[n, 1]
    if time > 0.0:
        time = max(time, 2.0 * h)
        return 1.0 / (most * most * time * time * ratio * ratio), 2.0 / (most * time)
    return -time / (most * most), -ratio / most


@inlined
def rebound(m: Any, t: Any, n: Any, rate: Any) -> Any:
    """The speed at which contact n, closing at -rate, opens after it is met.

    Newton's law e at the surface, taken to where the body is when it turns round: it keeps the height it has there, so
    that e² of the height it fell from is what it comes back to, and no step length adds to it.
    """
    gap = max(t.gap[n], 0.0)
    N = t.frame[n, 0]
    e = t.restitution[n]
    fall = max(-(N[0] * m.gravity[0] + N[1] * m.gravity[1] + N[2] * m.gravity[2]), 0.0)
    square = e * e * rate * rate - 2.0 * (1.0 - e * e) * fall * gap
    return math.sqrt(max(square, 0.0))


@inlined
def bounces(t: Any, n: Any, rate: Any, h: Any) -> bool:
    """Whether contact n, closing at -rate, is met in this step, and fast enough."""
    met: bool = rate <= -slowest_bounce(t.restitution[n]) and max(t.gap[n], 0.0) + h * rate <= 0.0
    return met


@inlined
def may_bounce(g: Any) -> bool:
    """Whether any shape has restitution."""
    may = False
    for n in range(g.restitution.shape[0]):
        may = may or g.restitution[n] > 0.0
    return may


@inlined
def slowest_bounce(e: Any) -> Any:
    """The arrival below which nothing bounces [m/s]: else nothing came to rest, as what loses nothing never does."""
    return SLOWEST_BOUNCE * max(min(1.0, (1.0 - e) / _LASTING), ROUNDING)


@njit
def tame(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, g: Any, t: Any) -> bool:
    """Halve the restitution of contacts whose impulses do work, and leave inside what takes too much to bring apart;
    True when there are any: their rows are to be solved again.

    Newton's law beside friction can make energy: what a bounce throws back along the surface may be more than what it
    takes across it (Kane and Levinson 1985; Stronge 1990). And no joint may be able to part what is inside (links that
    overlap where they are hinged), or only at a speed that throws all about; it then only goes no deeper.
    """
    tamed = False
    solved = r.report[1] <= UNSOLVED
    for n in range(t.number[0]):
        row = t.row[n]
        if row < 0:
            continue
        if t.restitution[n] > 0.0:
            rate = row_rate(r, row, s.qvel)
            if t.hit[n] == 0 and bounces(t, n, rate + t.belt[n, 0], i.time_step[0]) and _does_work(s, r, f, g, t, n):
                t.restitution[n] *= 0.5
                _aim_normal(m, w, i, r, t, n, row, rate, t.belt[n, 0])
                tamed = True
        elif -r.rate[row] * t.gap[n] > SLOW and (
            _throws(s, r, f, g, t, n) or not (solved or r.eased[row] > 0)  # a crowd gives way and is not solved
        ):
            for k in range(t.rows[n] if is_pyramid(g, t, n) else 1):
                r.bias[row + k] -= r.rate[row + k] * t.gap[n] + 0.5 * i.time_step[0] * min(t.drift[n], 0.0)
                r.rate[row + k] = 0.0
            for k in range(t.rows[n]):
                r.impulse[row + k] = 0.0  # nor does it give way from what it had
            tamed = True
    if tamed and not solved:  # nor are its impulses a place to start from
        for row in range(r.number[0]):
            r.impulse[row] = 0.0
    return tamed


@inlined
def _throws(s: Any, r: Any, f: Any, g: Any, t: Any, n: Any) -> bool:
    """Whether contact n does work on a dof that is faster than what is inside may be brought apart."""
    row = t.row[n]
    fastest = 0.0
    for entry in range(r.start[row], r.stop[row]):
        fastest = max(fastest, abs(f.velocity[r.entry_dof[entry]]))
    return fastest > PARTING and _does_work(s, r, f, g, t, n)


@inlined
def _does_work(s: Any, r: Any, f: Any, g: Any, t: Any, n: Any) -> bool:
    """Whether contact n's impulses gain from the mean of the velocities before and after them."""
    work, size = work_of(s, r, f, g, t, n)
    gains: bool = work > WORK * size
    return gains


@inlined
def work_of(s: Any, r: Any, f: Any, g: Any, t: Any, n: Any) -> Any:
    """Twice the work of contact n's impulses, and the sum of its terms' sizes [J]."""
    work = 0.0
    size = 0.0
    for k in range(t.rows[n]):
        row = t.row[n] + k
        belt = _belt(t, n, k, is_pyramid(g, t, n))
        before = row_rate(r, row, s.qvel) + belt
        after = row_rate(r, row, f.velocity) + belt
        work += r.impulse[row] * (before + after)
        size += abs(r.impulse[row]) * (abs(before) + abs(after))
    return work, size


@njit
def note_contact_forces(r: Any, f: Any, g: Any, t: Any, scale: Any) -> None:
    """t.force = λ `scale` of the contacts' rows, less adhesion, which f.contact gets here; f.contact_extremes."""
    for n in range(t.number[0]):
        for k in range(t.force.shape[1]):
            carries = t.row[n] >= 0 and k < t.dimension[n]
            t.force[n, k] = impulse_along(r, g, t, n, k) * t.scale[n, k] * scale if carries else 0.0
        if t.row[n] >= 0 and t.pull[n] > 0.0:
            t.force[n, 0] -= t.pull[n]
            row = t.row[n]
            opposite = row + 1 if is_pyramid(g, t, n) else row
            for entry in range(r.start[row], r.start[row + 1]):
                normal = 0.5 * (r.entry_value[entry] + r.entry_value[entry - r.start[row] + r.start[opposite]])
                f.contact[r.entry_dof[entry]] -= t.pull[n] * normal
    count = 0
    eased = 0
    left = 0
    for n in range(t.number[0]):
        if t.row[n] >= 0:
            eased = max(eased, 1 if r.eased[t.row[n]] > 0 else 0)
            left = max(left, 1 if t.soft[n] == 0 and t.gap[n] < 0.0 and r.rate[t.row[n]] == 0.0 else 0)
        if is_felt(t, n):
            count += 1
            f.contact_extremes[1] = max(f.contact_extremes[1], -t.distance[n])
    _note_yielding(r, f, g, t)
    f.contact_extremes[0] = max(f.contact_extremes[0], count)
    f.contact_extremes[2] += eased
    f.contact_extremes[3] += left


@njit
def _note_yielding(r: Any, f: Any, g: Any, t: Any) -> None:
    """f.yielded of hard contacts that gave way: how deep they are, beyond what was inside at the start, and whose.

    What has gone through half of a shape stops the run: it comes out on the other side.
    """
    for n in range(t.number[0]):
        if f.counters[0] == 0:
            f.yielded[START_DEPTH] = max(f.yielded[START_DEPTH], -t.distance[n])
        if t.row[n] < 0 or r.eased[t.row[n]] == 0 or t.soft[n] == 1:
            continue
        depth = -t.distance[n] - f.yielded[START_DEPTH]
        if depth > f.yielded[DEPTH]:
            f.yielded[DEPTH] = depth
            f.yielded[LINK_A] = g.link[t.shape[n, 0]]
            f.yielded[LINK_B] = g.link[t.shape[n, 1]]
        share = depth * _per_thickness(g, t, n)
        f.yielded[SHARE] = max(f.yielded[SHARE], share)
        if share > _THROUGH:
            f.counters[2] = GAVE_WAY


@inlined
def _per_thickness(g: Any, t: Any, n: Any) -> Any:
    """1 / the least extent of the shapes of contact n [1/m]; planes have none."""
    value = 0.0
    for end in range(2):
        for axis in range(3):
            half = g.extent[t.shape[n, end], axis]
            if half > 0.0:
                value = max(value, 0.5 / half)
    return value


@inlined
def is_felt(t: Any, n: Any) -> bool:
    """Whether contact n touches or carries something; others are only near."""
    felt: bool = t.gap[n] <= 0.0 or t.force[n, 0] != 0.0
    return felt


@njit
def take_off_contacts(m: Any, w: Any, f: Any, g: Any, t: Any) -> None:
    """Subtract from f.link_force and f.link_torque (about the links' origins) what contacts do to their links."""
    for n in range(t.number[0]):
        F = t.force[n]
        R = t.frame[n]
        f0, f1, f2 = _along(R, F[0], F[1], F[2])
        t0, t1, t2 = _along(R, F[3], F[4], F[5])
        for end in range(2):
            link = g.link[t.shape[n, end]]
            if link >= 0:
                sign = 1.0 if end == 1 else -1.0
                _, o = link_frame(m, w, link)
                x = t.arm[n, end]
                c0, c1, c2 = cross(x[0] - o[0], x[1] - o[1], x[2] - o[2], f0, f1, f2)
                f.link_force[link, 0] -= sign * f0
                f.link_force[link, 1] -= sign * f1
                f.link_force[link, 2] -= sign * f2
                f.link_torque[link, 0] -= sign * (c0 + t0)
                f.link_torque[link, 1] -= sign * (c1 + t1)
                f.link_torque[link, 2] -= sign * (c2 + t2)


@inlined
def _along(R: Any, x: Any, y: Any, z: Any) -> Any:
    """x, y, z along the rows of R, in world axes."""
    return (
        R[0, 0] * x + R[1, 0] * y + R[2, 0] * z,
        R[0, 1] * x + R[1, 1] * y + R[2, 1] * z,
        R[0, 2] * x + R[1, 2] * y + R[2, 2] * z,
    )
