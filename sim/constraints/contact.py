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

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.constraints.row import RECOVERY, UNSOLVED, add_row, drift_of, one_sided, row_rate
from artsim.sim.constraints.softness import impedance, softened
from artsim.sim.equipment.record import BODY
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import cross, link_frame
from artsim.sim.run import DEPTH, GAVE_WAY, LINK_A, LINK_B, SHARE, START_DEPTH

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
def contact_rows(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any) -> None:
    """The rows of this step's contacts, and step.free with what adhesion does. Needs motion columns."""
    for n in range(contact.data.number[0]):
        contact.data.pull[n] = contact.data.adhesion[n]
    if equipment is not None:
        _pull_by_actuators(equipment, contact)
    for n in range(contact.data.number[0]):
        contact.data.row[n] = -1
        if contact.data.dimension[n] == 0 and contact.data.pull[n] > 0.0:
            contact.data.dimension[n] = 1
        if contact.data.dimension[n] > 0:
            contact.data.row[n] = rows.number[0]
            contact.data.hit[n] = 0
            if is_pyramid(contact, n):
                _add_edges(rows, contact, n)
            else:
                _add_rows(rows, contact, n)
            _add_columns(robot, rows, contact, n)
            if not _opens(robot.model, robot.data, contact, n):
                rows.number[0] = contact.data.row[n]
                contact.data.row[n] = -1
                continue
            _set_targets(robot, run.inputs, rows, contact, n)
            if contact.data.pull[n] > 0.0:
                _pull(run, rows, contact, n)


@inlined
def is_pyramid(contact: Any, n: Any) -> bool:
    """Whether contact n's rows are the edges of a pyramid."""
    pyramid: bool = contact.model.pyramidal[0] == 1 and contact.data.dimension[n] > 1
    return pyramid


@inlined
def _pull(run: Any, rows: Any, contact: Any, n: Any) -> None:
    """step.free with the adhesion of contact n, along its normal."""
    row = contact.data.row[n]
    opposite = row + 1 if is_pyramid(contact, n) else row  # the mean of two edges
    for entry in range(rows.start[row], rows.stop[row]):
        normal = 0.5 * (rows.value[entry] + rows.value[entry - rows.start[row] + rows.start[opposite]])
        run.step.free[rows.column[entry]] -= run.inputs.time_step[0] * contact.data.pull[n] * normal


@njit
def _pull_by_actuators(equipment: Any, contact: Any) -> None:
    """Share the force of an adhesion actuator among the contacts of its body."""
    for a in range(equipment.model.actuator_transmission.shape[0]):
        if equipment.model.actuator_transmission[a] != BODY:
            continue
        count = 0
        for n in range(contact.data.number[0]):
            count += _is_of(equipment, contact, n, a)
        for n in range(contact.data.number[0]):
            if _is_of(equipment, contact, n, a) == 1:
                contact.data.pull[n] += equipment.data.actuator_force[a] / count


@inlined
def _is_of(equipment: Any, contact: Any, n: Any, a: Any) -> Any:
    """1: contact n, near enough to count, is one of the body that actuator a pulls at."""
    first = contact.model.body[contact.data.shape[n, 0]] == equipment.model.actuator_target[a]
    second = contact.model.body[contact.data.shape[n, 1]] == equipment.model.actuator_target[a]
    return 1 if (first or second) and contact.data.near[n] == 1 else 0


@njit
def _add_rows(rows: Any, contact: Any, n: Any) -> None:
    """As many rows as contact n has dimensions, without columns."""
    first = rows.number[0]
    largest = largest_friction(contact, n)
    contact.data.rows[n] = contact.data.dimension[n]
    for k in range(contact.data.dimension[n]):
        row = _add_row(rows, contact, n)
        rows.cone[row] = -1
        rows.impulse[row] = contact.data.start[n, k]
        contact.data.scale[n, k] = contact.data.friction[n, k - 1] / largest if k > 1 else 1.0
    rows.cone[first] = contact.data.dimension[n] if contact.data.dimension[n] > 1 else 0
    rows.slope[first] = largest


@njit
def _add_edges(rows: Any, contact: Any, n: Any) -> None:
    """Two rows for each direction in which contact n rubs, without columns; what contact_data.start holds is shared
    among them."""
    contact.data.rows[n] = 2 * (contact.data.dimension[n] - 1)
    for k in range(6):
        contact.data.scale[n, k] = 1.0
    for edge in range(contact.data.rows[n]):
        row = _add_row(rows, contact, n)
        mu = contact.data.friction[n, edge // 2]
        along = 0.5 * contact.data.start[n, edge // 2 + 1] / mu if mu > 0.0 else 0.0
        rows.impulse[row] = contact.data.start[n, 0] / contact.data.rows[n] + (along if edge % 2 == 0 else -along)


@inlined
def _add_row(rows: Any, contact: Any, n: Any) -> Any:
    row = add_row(rows, CONTACT_ROW, n)
    rows.regularised[row] = contact.data.regularised[n]
    rows.static[row] = (
        1
        if contact.model.body[contact.data.shape[n, 0]] == 0 or contact.model.body[contact.data.shape[n, 1]] == 0
        else 0
    )
    return row


@inlined
def impulse_along(rows: Any, contact: Any, n: Any, k: Any) -> Any:
    """Impulse of contact n in its direction k, times contact_data.scale."""
    first = contact.data.row[n]
    if not is_pyramid(contact, n):
        return rows.impulse[first + k]
    if k > 0:
        edge = first + 2 * (k - 1)
        return contact.data.friction[n, k - 1] * (rows.impulse[edge] - rows.impulse[edge + 1])
    value = 0.0
    for row in range(first, first + contact.data.rows[n]):
        value += rows.impulse[row]
    return value


@inlined
def largest_friction(contact: Any, n: Any) -> Any:
    """By which the rows are scaled: of sliding, or what else there is."""
    value = contact.data.friction[n, 0]
    for k in range(1, contact.data.dimension[n] - 1):
        if value <= 0.0:
            value = contact.data.friction[n, k]
    return value


@njit
def _add_columns(robot: Any, rows: Any, contact: Any, n: Any) -> None:
    """Columns of all rows of contact n: what moves both bodies moves the contact's point of both alike."""
    model, data = robot.model, robot.data
    first = contact.data.row[n]
    one = contact.model.body[contact.data.shape[n, 0]]
    two = contact.model.body[contact.data.shape[n, 1]]
    count = _count_columns(model, one, two)
    start = rows.start[first]
    x = contact.data.arm[n, 0]
    y = contact.data.arm[n, 1]
    p = (data.arm[one, 0] + x[0], data.arm[one, 1] + x[1], data.arm[one, 2] + x[2])
    q = (data.arm[two, 0] + y[0], data.arm[two, 1] + y[1], data.arm[two, 2] + y[2])
    a = last_dof(model, one)
    b = last_dof(model, two)
    e = start  # of the first row
    c = start
    while a != b:
        if a > b:
            c = _add_column(robot, rows, contact, n, a, -1.0, p, e, c, count)
            a = model.dof_parent[a]
        else:
            c = _add_column(robot, rows, contact, n, b, 1.0, q, e, c, count)
            b = model.dof_parent[b]
        e += 1
    for k in range(contact.data.rows[n]):
        row = first + k
        rows.start[row] = start + k * count
        rows.stop[row] = c + k * count
        rows.start[row + 1] = rows.start[row] + count


@njit
def _opens(model: Any, data: Any, contact: Any, n: Any) -> bool:
    """Whether any dof moves the bodies of contact n apart, and not only along the surface, where the rest is rounding.

    An impulse that mends an overlap against rounding has no bound.
    """
    a = last_dof(model, contact.model.body[contact.data.shape[n, 0]])
    b = last_dof(model, contact.model.body[contact.data.shape[n, 1]])
    while a != b:
        if _parts(model, data, contact, n, 0 if a > b else 1, max(a, b)):
            return True
        if a > b:
            a = model.dof_parent[a]
        else:
            b = model.dof_parent[b]
    return False


@inlined
def _parts(model: Any, data: Any, contact: Any, n: Any, end: Any, k: Any) -> bool:
    """Whether dof k moves a body of contact n along the normal, by more than what is lost in its rounding."""
    S = data.motion
    N = contact.data.frame[n, 0]
    body = contact.model.body[contact.data.shape[n, end]]
    x, y, z = (
        data.arm[body, 0] + contact.data.arm[n, end][0],
        data.arm[body, 1] + contact.data.arm[n, end][1],
        data.arm[body, 2] + contact.data.arm[n, end][2],
    )
    u, v, c = cross(S[3, k], S[4, k], S[5, k], x, y, z)
    turning = S[3, k] * S[3, k] + S[4, k] * S[4, k] + S[5, k] * S[5, k]
    terms = turning * (x * x + y * y + z * z) + S[0, k] * S[0, k] + S[1, k] * S[1, k] + S[2, k] * S[2, k]
    u, v, c = u + S[0, k], v + S[1, k], c + S[2, k]
    along = N[0] * u + N[1] * v + N[2] * c
    inside = contact.data.soft[n] == 0 and contact.data.gap[n] < -SLOW * RECOVERY
    across = _ACROSS_INSIDE if inside else _ACROSS
    least = across * across * (u * u + v * v + c * c) + _LOST * _LOST * terms
    parts: bool = model.dof_independent[k] >= 0 and along * along > least
    return parts


@inlined
def last_dof(model: Any, body: Any) -> Any:
    """The last dof that moves a body, -1: none."""
    return model.body_dof[body + 1] - 1 if body > 0 else -1


@njit
def _count_columns(model: Any, first: Any, second: Any) -> Any:
    a = last_dof(model, first)
    b = last_dof(model, second)
    count = 0
    while a != b:
        if a > b:
            a = model.dof_parent[a]
        else:
            b = model.dof_parent[b]
        count += 1
    return count


@inlined
def _add_column(
    robot: Any, rows: Any, contact: Any, n: Any, k: Any, sign: Any, p: Any, entry: Any, column: Any, count: Any
) -> Any:
    """Dof k in all rows of contact n, `count` entries apart; where the next independent column goes."""
    data = robot.data
    S = data.motion
    c0, c1, c2 = cross(S[3, k], S[4, k], S[5, k], p[0], p[1], p[2])
    c = (sign * (c0 + S[0, k]), sign * (c1 + S[1, k]), sign * (c2 + S[2, k]))
    a = robot.model.dof_independent[k]
    gain = data.gain[k]
    for row in range(contact.data.rows[n]):
        if is_pyramid(contact, n):
            mu = contact.data.friction[n, row // 2]
            value = _moved(data, contact, n, k, sign, c, 0)
            value += (mu if row % 2 == 0 else -mu) * _moved(data, contact, n, k, sign, c, row // 2 + 1)
        else:
            value = contact.data.scale[n, row] * _moved(data, contact, n, k, sign, c, row)
        rows.entry_dof[entry + row * count] = k
        rows.entry_value[entry + row * count] = value
        if a >= 0:
            rows.column[column + row * count] = a
            rows.value[column + row * count] = value * gain
    return column + 1 if a >= 0 else column


@inlined
def _moved(data: Any, contact: Any, n: Any, k: Any, sign: Any, c: Any, j: Any) -> Any:
    """What a unit velocity of dof k, c of the point, is in direction j of contact n."""
    R = contact.data.frame[n]
    if j < 3:
        return R[j, 0] * c[0] + R[j, 1] * c[1] + R[j, 2] * c[2]
    S = data.motion
    return sign * (R[j - 3, 0] * S[3, k] + R[j - 3, 1] * S[4, k] + R[j - 3, 2] * S[5, k])


@njit
def _set_targets(robot: Any, inputs: Any, rows: Any, contact: Any, n: Any) -> None:
    """Bias and softness of the rows of contact n."""
    h = inputs.time_step[0]
    pyramid = is_pyramid(contact, n)
    for k in range(contact.data.rows[n]):
        row = contact.data.row[n] + k
        rate = 0.0
        if contact.data.soft[n] == 1 or contact.data.restitution[n] > 0.0:
            rate = row_rate(rows, row, robot.state.qvel)
        belt = _belt(contact, n, k, pyramid)
        if k == 0 or pyramid:
            _aim_normal(robot, inputs, rows, contact, n, row, rate, belt)
        else:
            rows.bias[row] = h * _drift(robot.model, robot.data, rows, row) + belt
            if k < 3:
                rows.bias[row] += 0.5 * h * contact.data.swerve[n, k - 1] * contact.data.scale[n, k]
        if contact.data.soft[n] == 1:
            _soften(rows, contact, n, k, h, rate, belt, pyramid)


@inlined
def _belt(contact: Any, n: Any, k: Any, pyramid: Any) -> Any:
    """Velocity of moving surfaces in row k of contact n."""
    if pyramid:
        mu = contact.data.friction[n, k // 2] if k < 4 else 0.0
        return contact.data.belt[n, 0] + (mu if k % 2 == 0 else -mu) * contact.data.belt[n, min(k // 2 + 1, 2)]
    return contact.data.belt[n, k] * contact.data.scale[n, k] if k < 3 else 0.0


@inlined
def _drift(model: Any, data: Any, rows: Any, row: Any) -> Any:
    return drift_of(data, rows, row) if model.coupling_follower.shape[0] > 0 else 0.0


@inlined
def _aim_normal(robot: Any, inputs: Any, rows: Any, contact: Any, n: Any, row: Any, rate: Any, belt: Any) -> None:
    """Bias of contact n's row along the normal, or near it; rate is its velocity before the step."""
    model = robot.model
    aim_open(model, robot.data, inputs, rows, contact, n, row, belt)
    if contact.data.restitution[n] > 0.0 and bounces(contact, n, rate + belt, inputs.time_step[0]):
        rows.bias[row] = min(rows.bias[row], -rebound(model, contact, n, rate + belt))


@inlined
def aim_open(model: Any, data: Any, inputs: Any, rows: Any, contact: Any, n: Any, row: Any, belt: Any) -> None:
    """The same of what does not bounce."""
    h = inputs.time_step[0]
    one_sided(rows, inputs, row, contact.data.gap[n])
    if _is_stuck(rows, row, contact.data.gap[n]):
        rows.bias[row] = 0.0
        rows.rate[row] = 0.0
    rows.bias[row] += h * _drift(model, data, rows, row) + 0.5 * h * min(contact.data.drift[n], 0.0) + belt


@inlined
def _is_stuck(rows: Any, row: Any, gap: Any) -> bool:
    """Whether what is inside would stay there however far the dofs turn that move a row."""
    reach = 0.0
    for entry in range(rows.start[row], rows.stop[row]):
        reach += abs(rows.value[entry])
    stuck: bool = FARTHEST * reach < -gap
    return stuck


@njit
def _soften(rows: Any, contact: Any, n: Any, k: Any, h: Any, rate: Any, belt: Any, pyramid: Any) -> None:
    """Row k of contact n gives way as in MuJoCo; friction is damped, it has no place to go back to."""
    row = contact.data.row[n] + k
    d = impedance(contact.data.impedance, n, -contact.data.gap[n])
    K, B = stiffness_and_damping(contact, n, h)
    mobility = (
        contact.model.mobility[contact.model.body[contact.data.shape[n, 0]]]
        + contact.model.mobility[contact.model.body[contact.data.shape[n, 1]]]
    )
    normal = k == 0 or pyramid
    error = contact.data.gap[n] if normal else 0.0
    bias, cfm = softened(h, K if normal else 0.0, B, d, mobility, error, rate, 0.0)
    rows.bias[row] = bias + belt
    rows.error[row] = 0.0
    rows.rate[row] = 0.0
    if pyramid:  # as soft in friction as the cone (MuJoCo, engine_core_constraint.c)
        square = contact.data.friction[n, 0] * contact.data.friction[n, 0]
        rows.cfm[row] = 2.0 * square * contact.model.slack[0] * (1.0 + square) * cfm
        return
    rows.cfm[row] = cfm if k == 0 else rows.cfm[contact.data.row[n]]  # one for all rows of a cone
    if k > 0:  # less softness than the cone's, by what the force of the last step would give way beyond it
        rows.bias[row] -= (1.0 - contact.model.slack[0]) * rows.cfm[row] * contact.data.start[n, k]


@inlined
def stiffness_and_damping(contact: Any, n: Any, h: Any) -> Any:
    """K [1/s²] and B [1/s] of solref; times are two steps at least (MuJoCo: modeling chapter, Solver parameters)."""
    time = contact.data.reference[n, 0]
    ratio = contact.data.reference[n, 1]
    most = contact.data.impedance[n, 1]
    if time > 0.0:
        time = max(time, 2.0 * h)
        return 1.0 / (most * most * time * time * ratio * ratio), 2.0 / (most * time)
    return -time / (most * most), -ratio / most


@inlined
def rebound(model: Any, contact: Any, n: Any, rate: Any) -> Any:
    """The speed at which contact n, closing at -rate, opens after it is met.

    Newton's law e at the surface, taken to where the body is when it turns round: it keeps the height it has there, so
    that e² of the height it fell from is what it comes back to, and no step length adds to it.
    """
    gap = max(contact.data.gap[n], 0.0)
    N = contact.data.frame[n, 0]
    e = contact.data.restitution[n]
    fall = max(-(N[0] * model.gravity[0] + N[1] * model.gravity[1] + N[2] * model.gravity[2]), 0.0)
    square = e * e * rate * rate - 2.0 * (1.0 - e * e) * fall * gap
    return math.sqrt(max(square, 0.0))


@inlined
def bounces(contact: Any, n: Any, rate: Any, h: Any) -> bool:
    """Whether contact n, closing at -rate, is met in this step, and fast enough."""
    met: bool = rate <= -slowest_bounce(contact.data.restitution[n]) and max(contact.data.gap[n], 0.0) + h * rate <= 0.0
    return met


@inlined
def may_bounce(contact: Any) -> bool:
    """Whether any shape has restitution."""
    may = False
    for n in range(contact.model.restitution.shape[0]):
        may = may or contact.model.restitution[n] > 0.0
    return may


@inlined
def slowest_bounce(e: Any) -> Any:
    """The arrival below which nothing bounces [m/s]: else nothing came to rest, as what loses nothing never does."""
    return SLOWEST_BOUNCE * max(min(1.0, (1.0 - e) / _LASTING), ROUNDING)


@njit
def tame(robot: Any, run: Any, rows: Any, contact: Any) -> bool:
    """Halve the restitution of contacts whose impulses do work, and leave inside what takes too much to bring apart;
    True when there are any: their rows are to be solved again.

    Newton's law beside friction can make energy: what a bounce throws back along the surface may be more than what it
    takes across it (Kane and Levinson 1985; Stronge 1990). And no joint may be able to part what is inside (links that
    overlap where they are hinged), or only at a speed that throws all about; it then only goes no deeper.
    """
    state = robot.state
    inputs, step = run.inputs, run.step
    tamed = False
    solved = rows.report[1] <= UNSOLVED
    for n in range(contact.data.number[0]):
        row = contact.data.row[n]
        if row < 0:
            continue
        if contact.data.restitution[n] > 0.0:
            rate = row_rate(rows, row, state.qvel)
            if (
                contact.data.hit[n] == 0
                and bounces(contact, n, rate + contact.data.belt[n, 0], inputs.time_step[0])
                and _does_work(state, rows, step, contact, n)
            ):
                contact.data.restitution[n] *= 0.5
                _aim_normal(robot, inputs, rows, contact, n, row, rate, contact.data.belt[n, 0])
                tamed = True
        elif -rows.rate[row] * contact.data.gap[n] > SLOW and (
            _throws(state, rows, step, contact, n)
            or not (solved or rows.regularised[row] > 0)  # a crowd gives way and is not solved
        ):
            for k in range(contact.data.rows[n] if is_pyramid(contact, n) else 1):
                rows.bias[row + k] -= rows.rate[row + k] * contact.data.gap[n] + 0.5 * inputs.time_step[0] * min(
                    contact.data.drift[n], 0.0
                )
                rows.rate[row + k] = 0.0
            for k in range(contact.data.rows[n]):
                rows.impulse[row + k] = 0.0  # nor does it give way from what it had
            tamed = True
    if tamed and not solved:  # nor are its impulses a place to start from
        for row in range(rows.number[0]):
            rows.impulse[row] = 0.0
    return tamed


@inlined
def _throws(state: Any, rows: Any, step: Any, contact: Any, n: Any) -> bool:
    """Whether contact n does work on a dof that is faster than what is inside may be brought apart."""
    row = contact.data.row[n]
    fastest = 0.0
    for entry in range(rows.start[row], rows.stop[row]):
        fastest = max(fastest, abs(step.velocity[rows.entry_dof[entry]]))
    return fastest > PARTING and _does_work(state, rows, step, contact, n)


@inlined
def _does_work(state: Any, rows: Any, step: Any, contact: Any, n: Any) -> bool:
    """Whether contact n's impulses gain from the mean of the velocities before and after them."""
    work, size = work_of(state, rows, step, contact, n)
    gains: bool = work > WORK * size
    return gains


@inlined
def work_of(state: Any, rows: Any, step: Any, contact: Any, n: Any) -> Any:
    """Twice the work of contact n's impulses, and the sum of its terms' sizes [J]."""
    work = 0.0
    size = 0.0
    for k in range(contact.data.rows[n]):
        row = contact.data.row[n] + k
        belt = _belt(contact, n, k, is_pyramid(contact, n))
        before = row_rate(rows, row, state.qvel) + belt
        after = row_rate(rows, row, step.velocity) + belt
        work += rows.impulse[row] * (before + after)
        size += abs(rows.impulse[row]) * (abs(before) + abs(after))
    return work, size


@njit
def note_contact_forces(rows: Any, step: Any, contact: Any, scale: Any) -> None:
    """contact_data.force = λ `scale` of the contacts' rows, less adhesion, which step.contact gets here;
    step.contact_extremes."""
    for n in range(contact.data.number[0]):
        for k in range(contact.data.force.shape[1]):
            carries = contact.data.row[n] >= 0 and k < contact.data.dimension[n]
            contact.data.force[n, k] = (
                impulse_along(rows, contact, n, k) * contact.data.scale[n, k] * scale if carries else 0.0
            )
        if contact.data.row[n] >= 0 and contact.data.pull[n] > 0.0:
            contact.data.force[n, 0] -= contact.data.pull[n]
            row = contact.data.row[n]
            opposite = row + 1 if is_pyramid(contact, n) else row
            for entry in range(rows.start[row], rows.start[row + 1]):
                normal = 0.5 * (
                    rows.entry_value[entry] + rows.entry_value[entry - rows.start[row] + rows.start[opposite]]
                )
                step.contact[rows.entry_dof[entry]] -= contact.data.pull[n] * normal
    count = 0
    regularised = 0
    left = 0
    for n in range(contact.data.number[0]):
        if contact.data.row[n] >= 0:
            regularised = max(regularised, 1 if rows.regularised[contact.data.row[n]] > 0 else 0)
            left = max(
                left,
                1
                if contact.data.soft[n] == 0 and contact.data.gap[n] < 0.0 and rows.rate[contact.data.row[n]] == 0.0
                else 0,
            )
        if is_felt(contact, n):
            count += 1
            step.contact_extremes[1] = max(step.contact_extremes[1], -contact.data.distance[n])
    _note_yielding(rows, step, contact)
    step.contact_extremes[0] = max(step.contact_extremes[0], count)
    step.contact_extremes[2] += regularised
    step.contact_extremes[3] += left


@njit
def _note_yielding(rows: Any, step: Any, contact: Any) -> None:
    """step.yielded of hard contacts that gave way: how deep they are, beyond what was inside at the start, and whose.

    What has gone through half of a shape stops the run: it comes out on the other side.
    """
    for n in range(contact.data.number[0]):
        if step.counters[0] == 0:
            step.yielded[START_DEPTH] = max(step.yielded[START_DEPTH], -contact.data.distance[n])
        if contact.data.row[n] < 0 or rows.regularised[contact.data.row[n]] == 0 or contact.data.soft[n] == 1:
            continue
        depth = -contact.data.distance[n] - step.yielded[START_DEPTH]
        if depth > step.yielded[DEPTH]:
            step.yielded[DEPTH] = depth
            step.yielded[LINK_A] = contact.model.link[contact.data.shape[n, 0]]
            step.yielded[LINK_B] = contact.model.link[contact.data.shape[n, 1]]
        share = depth * _per_thickness(contact, n)
        step.yielded[SHARE] = max(step.yielded[SHARE], share)
        if share > _THROUGH:
            step.counters[2] = GAVE_WAY


@inlined
def _per_thickness(contact: Any, n: Any) -> Any:
    """1 / the least extent of the shapes of contact n [1/m]; planes have none."""
    value = 0.0
    for end in range(2):
        for axis in range(3):
            half = contact.model.extent[contact.data.shape[n, end], axis]
            if half > 0.0:
                value = max(value, 0.5 / half)
    return value


@inlined
def is_felt(contact: Any, n: Any) -> bool:
    """Whether contact n touches or carries something; others are only near."""
    felt: bool = contact.data.gap[n] <= 0.0 or contact.data.force[n, 0] != 0.0
    return felt


@njit
def take_off_contacts(model: Any, data: Any, step: Any, contact: Any) -> None:
    """Subtract from step.link_force and step.link_torque (about the links' origins) what contacts do to their links."""
    for n in range(contact.data.number[0]):
        F = contact.data.force[n]
        R = contact.data.frame[n]
        f0, f1, f2 = _along(R, F[0], F[1], F[2])
        t0, t1, t2 = _along(R, F[3], F[4], F[5])
        for end in range(2):
            link = contact.model.link[contact.data.shape[n, end]]
            if link >= 0:
                sign = 1.0 if end == 1 else -1.0
                _, o = link_frame(model, data, link)
                x = contact.data.arm[n, end]
                c0, c1, c2 = cross(x[0] - o[0], x[1] - o[1], x[2] - o[2], f0, f1, f2)
                step.link_force[link, 0] -= sign * f0
                step.link_force[link, 1] -= sign * f1
                step.link_force[link, 2] -= sign * f2
                step.link_torque[link, 0] -= sign * (c0 + t0)
                step.link_torque[link, 1] -= sign * (c1 + t1)
                step.link_torque[link, 2] -= sign * (c2 + t2)


@inlined
def _along(R: Any, x: Any, y: Any, z: Any) -> Any:
    """x, y, z along the rows of R, in world axes."""
    return (
        R[0, 0] * x + R[1, 0] * y + R[2, 0] * z,
        R[0, 1] * x + R[1, 1] * y + R[2, 1] * z,
        R[0, 2] * x + R[1, 2] * y + R[2, 2] * z,
    )
