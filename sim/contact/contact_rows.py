"""A contact as rows: the gap, which must not close, and what friction holds within its cone.

The gap's row keeps the end of the step open: gap + h J v⁺ + ½ h² drift ≥ 0, so that a body that would arrive within
the step is stopped at the surface and not beyond it. Of the second order only what closes the gap counts: it is known
for the velocity before the step, and a body that is stopped in the step has none of what would have lifted it. What is
inside already is brought back over a tenth of a second, as with limits, but for what no joint can part
(`limit_energy`). A soft contact (MJCF's solref and solimp) gives way as in MuJoCo.

Friction has up to five rows: two slips, the spin about the normal, the rolling about two tangents. Its cone is an
ellipse, Σ (λ_k / μ_k)² ≤ λ_n²; the rows are scaled by μ_k / μ_1, which makes it round. The rows of a contact follow
each other and have the same columns in the same order, those of the dofs that move one of the bodies and not the other.

A pyramid (Anitescu and Potra 1997; MuJoCo's default) has two rows for each of these directions instead, along its edges
n ± μ_k t_k, which push only: plain bounds. What slides then rises by up to μ times its speed, and between its
directions a pyramid holds less, down to μ / √2.

What of this is law stands in contact_law.py. The rows of a contact are made here for one robot and for packs
(pack_rows.py) alike; contact_data is then a pack's slots, a slot being the contact n.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.articulation.kinematics import like, link_frame
from artsim.sim.constraints.impedance import impedance, softened
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.constraints.row import UNSOLVED, add_row, drift_of, one_sided, row_rate
from artsim.sim.contact.contact_law import (
    bounce_margin,
    brings_apart,
    does_work,
    held_beyond,
    in_direction,
    is_stuck,
    is_thrown,
    overlaps,
    parts,
    point_velocity,
    rebound,
    second_order,
    stiffness_and_damping,
)
from artsim.sim.equipment.arrays import BODY
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, highest, real, where_greater, zero_like
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.foundation.vec3 import crossed, minus, plus, put, times, triple
from artsim.sim.geometry.contacts import ALONG_NORMAL, CONTACTS, DIRECTIONS
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    DEEPEST,
    DEPTH,
    GAVE_WAY,
    LEFT_INSIDE_STEPS,
    LINK_A,
    LINK_B,
    MOST_AT_ONCE,
    REGULARISED_STEPS,
    RESIDUAL,
    SHARE,
    START_DEPTH,
    STEP_NUMBER,
    STOP_REASON,
)

_THROUGH = 0.5  # of a shape's thickness: contacts that gave way by as much stop the run


@njit
def contact_rows(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any) -> None:
    """The rows of this step's contacts, and step.free with what adhesion does. Needs motion columns."""
    inputs = run.inputs
    for n in range(contact.data.number[CONTACTS]):
        contact.data.pull[n] = contact.data.adhesion[n]
    if equipment is not None:
        _pull_by_actuators(equipment, contact)
    for n in range(contact.data.number[CONTACTS]):
        contact.data.row[n] = -1
        if contact.data.dimension[n] == 0 and contact.data.pull[n] > 0.0:
            contact.data.dimension[n] = 1
        if contact.data.soft[n] == 1:
            contact.data.hardness[n] = impedance(contact.data.impedance, n, -contact.data.gap[n])
        if contact.data.dimension[n] > 0 and opens(robot.model, robot.data, contact, n, 0.0) > 0.0:
            contact.data.hit[n] = 0
            add_rows(robot, rows, contact, n)
            set_targets(robot, inputs, rows, contact, n)
            if contact.data.restitution[n] > 0.0 and contact.data.soft[n] == 0:
                _set_rebounds(robot, inputs, rows, contact, n)
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
        for n in range(contact.data.number[CONTACTS]):
            count += _is_of(equipment, contact, n, a)
        for n in range(contact.data.number[CONTACTS]):
            if _is_of(equipment, contact, n, a) == 1:
                contact.data.pull[n] += equipment.data.actuator_force[a] / count


@inlined
def _is_of(equipment: Any, contact: Any, n: Any, a: Any) -> Any:
    """1: contact n, near enough to count, is one of the body that actuator a pulls at."""
    first = contact.model.body[contact.data.shape[n, 0]] == equipment.model.actuator_target[a]
    second = contact.model.body[contact.data.shape[n, 1]] == equipment.model.actuator_target[a]
    return 1 if (first or second) and contact.data.near[n] == 1 else 0


# ------------------------------------------------------------------ rows in both widths


@njit
def add_rows(robot: Any, rows: Any, contact: Any, n: Any) -> None:
    """The rows of contact n, which start at the last step's impulses, without bias."""
    contact.data.row[n] = rows.number[ALL_ROWS]
    if is_pyramid(contact, n):
        _add_edges(rows, contact, n)
    else:
        _add_directions(rows, contact, n)
    _add_columns(robot, rows, contact, n)


@njit
def _add_directions(rows: Any, contact: Any, n: Any) -> None:
    """As many rows as contact n has dimensions, without columns."""
    first = rows.number[ALL_ROWS]
    friction = _largest_friction(contact, n)
    one = real(1.0, friction)
    contact.data.rows[n] = contact.data.dimension[n]
    for k in range(contact.data.dimension[n]):
        row = _add_row(rows, contact, n)
        rows.cone[row] = -1
        rows.impulse[row] = contact.data.start[n, k]
        contact.data.scale[n, k] = contact.data.friction[n, k - 1] / _or_one(friction) if k > 1 else one
    rows.cone[first] = contact.data.dimension[n] if contact.data.dimension[n] > 1 else 0
    rows.slope[first] = friction


@njit
def _add_edges(rows: Any, contact: Any, n: Any) -> None:
    """Two rows for each direction in which contact n rubs, without columns; what contact_data.start holds is shared
    among them."""
    contact.data.rows[n] = 2 * (contact.data.dimension[n] - 1)
    for k in range(DIRECTIONS):
        contact.data.scale[n, k] = real(1.0, contact.data.scale[n, k])
    for edge in range(contact.data.rows[n]):
        row = _add_row(rows, contact, n)
        mu = contact.data.friction[n, edge // 2]
        start = contact.data.start[n, edge // 2 + 1]
        along = where_greater(mu, zero_like(mu), 0.5 * start / _or_one(mu), zero_like(mu))
        share = contact.data.start[n, ALONG_NORMAL] / contact.data.rows[n]
        rows.impulse[row] = share + (along if edge % 2 == 0 else -along)


@inlined
def _or_one(friction: Any) -> Any:
    """A coefficient of friction to divide by: 1 where there is none."""
    zero = zero_like(friction)
    return where_greater(friction, zero, friction, zero + 1.0)


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
def impulse_along(impulse: Any, contact: Any, n: Any, k: Any) -> Any:
    """Impulse of contact n in its direction k, times contact_data.scale; impulse (rows,)."""
    first = contact.data.row[n]
    if not is_pyramid(contact, n):
        return impulse[first + k]
    if k > 0:
        edge = first + 2 * (k - 1)
        return contact.data.friction[n, k - 1] * (impulse[edge] - impulse[edge + 1])
    value = zero_like(impulse[first])
    for row in range(first, first + contact.data.rows[n]):
        value += impulse[row]
    return value


@inlined
def _largest_friction(contact: Any, n: Any) -> Any:
    """By which the rows are scaled: of sliding, or what else there is."""
    value = contact.data.friction[n, 0]
    for k in range(1, contact.data.dimension[n] - 1):
        value = where_greater(value, zero_like(value), value, contact.data.friction[n, k])
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
    x = _from_reference(data, contact, n, 0)
    y = _from_reference(data, contact, n, 1)
    a = last_dof(model, one)
    b = last_dof(model, two)
    e = start  # of the first row
    c = start
    while a != b:
        if a > b:
            c = _add_column(robot, rows, contact, n, a, (-1.0, x), (e, c, count))
            a = model.dof_parent[a]
        else:
            c = _add_column(robot, rows, contact, n, b, (1.0, y), (e, c, count))
            b = model.dof_parent[b]
        e += 1
    for k in range(contact.data.rows[n]):
        row = first + k
        rows.start[row] = start + k * count
        rows.stop[row] = c + k * count
        rows.start[row + 1] = rows.start[row] + count


@njit
def opens(model: Any, data: Any, contact: Any, n: Any, opening: Any) -> Any:
    """1 where any dof moves the bodies of contact n apart, and not only along the surface, where the rest is rounding;
    else `opening`, a T.

    An impulse that mends an overlap against rounding has no bound.
    """
    a = last_dof(model, contact.model.body[contact.data.shape[n, 0]])
    b = last_dof(model, contact.model.body[contact.data.shape[n, 1]])
    zero = zero_like(opening)
    inside = overlaps(contact.data.gap[n]) if contact.data.soft[n] == 0 else zero
    N = triple(contact.data.frame[n, ALONG_NORMAL])
    while a != b and highest(1.0 - opening) > 0.0:
        end = 0 if a > b else 1
        k = max(a, b)
        if model.dof_independent[k] >= 0:
            linear, angular = _motion_of(data, k)
            x = _from_reference(data, contact, n, end)
            opening = largest(opening, parts(N, linear, angular, x, inside))
        if a > b:
            a = model.dof_parent[a]
        else:
            b = model.dof_parent[b]
    return opening


@inlined
def _motion_of(data: Any, k: Any) -> Any:
    """What a unit velocity of dof k does at the tree's reference point: a velocity and an angular velocity."""
    S = data.motion
    return (S[0, k], S[1, k], S[2, k]), (S[3, k], S[4, k], S[5, k])


@inlined
def _from_reference(data: Any, contact: Any, n: Any, end: Any) -> Any:
    """Where contact n's point is from the reference point of the tree of one of its bodies [m]."""
    return plus(triple(data.arm[contact.model.body[contact.data.shape[n, end]]]), triple(contact.data.arm[n, end]))


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
def _add_column(robot: Any, rows: Any, contact: Any, n: Any, k: Any, end: Any, place: Any) -> Any:
    """Dof k, which moves one end of contact n, in all its rows; where the next independent column goes.

    end: its sign, and the contact's point from the tree's reference point; place: entry and independent column in the
    first row, and how many entries the rows are apart.
    """
    sign, x = end
    entry, column, count = place
    data = robot.data
    frame = contact.data.frame[n]
    linear, angular = _motion_of(data, k)
    v = times(sign, point_velocity(linear, angular, x))
    angular = times(sign, angular)
    a = robot.model.dof_independent[k]
    gain = data.gain[k]
    for row in range(contact.data.rows[n]):
        if is_pyramid(contact, n):
            mu = contact.data.friction[n, row // 2]
            value = in_direction(frame, 0, v, angular)
            value += (mu if row % 2 == 0 else -mu) * in_direction(frame, row // 2 + 1, v, angular)
        else:
            value = contact.data.scale[n, row] * in_direction(frame, row, v, angular)
        rows.entry_dof[entry + row * count] = k
        rows.entry_value[entry + row * count] = value
        if a >= 0:
            rows.column[column + row * count] = a
            rows.value[column + row * count] = value * gain
    return column + 1 if a >= 0 else column


@njit
def set_targets(robot: Any, inputs: Any, rows: Any, contact: Any, n: Any) -> None:
    """Bias and softness of the rows of contact n, as if it had no restitution."""
    model, data = robot.model, robot.data
    h = inputs.time_step[0]
    pyramid = is_pyramid(contact, n)
    for k in range(contact.data.rows[n]):
        row = contact.data.row[n] + k
        belt = _belt(contact, n, k, pyramid)
        if k == 0 or pyramid:
            aim_open(model, data, inputs, rows, contact, n, row, belt)
        else:
            rows.bias[row] = h * _drift(model, data, rows, row) + belt
            if k < 3:
                rows.bias[row] += 0.5 * h * contact.data.swerve[n, k - 1] * contact.data.scale[n, k]
        if contact.data.soft[n] == 1:
            _soften(robot.state, rows, contact, n, k, h, belt, pyramid)


@inlined
def _belt(contact: Any, n: Any, k: Any, pyramid: Any) -> Any:
    """Velocity of moving surfaces in row k of contact n."""
    zero = zero_like(contact.data.friction[n, 0])
    if pyramid:
        mu = contact.data.friction[n, k // 2] if k < 4 else zero
        along = contact.data.belt[n, min(k // 2 + 1, 2)]
        return contact.data.belt[n, ALONG_NORMAL] + (mu if k % 2 == 0 else -mu) * along
    return contact.data.belt[n, k] * contact.data.scale[n, k] if k < 3 else zero


@inlined
def _drift(model: Any, data: Any, rows: Any, row: Any) -> Any:
    return drift_of(data, rows, row) if model.coupling_follower.shape[0] > 0 else like(0.0, data)


@inlined
def aim_open(model: Any, data: Any, inputs: Any, rows: Any, contact: Any, n: Any, row: Any, belt: Any) -> None:
    """Bias of contact n's row along the normal, or near it, of what does not bounce."""
    h = inputs.time_step[0]
    one_sided(rows, inputs, row, contact.data.gap[n])
    stuck = is_stuck(contact.data.gap[n], _reach(rows, row))
    zero = zero_like(stuck)
    rows.bias[row] = where_greater(stuck, zero, zero, rows.bias[row])
    rows.rate[row] = where_greater(stuck, zero, zero, rows.rate[row])
    rows.bias[row] += h * _drift(model, data, rows, row) + second_order(h, contact.data.drift[n]) + belt


@inlined
def _reach(rows: Any, row: Any) -> Any:
    """Σ |J| of a row."""
    reach = zero_like(rows.bias[row])
    for entry in range(rows.start[row], rows.stop[row]):
        reach += absolute(rows.value[entry])
    return reach


@njit
def _soften(state: Any, rows: Any, contact: Any, n: Any, k: Any, h: Any, belt: Any, pyramid: Any) -> None:
    """Row k of contact n gives way as in MuJoCo; friction is damped, it has no place to go back to."""
    row = contact.data.row[n] + k
    hardness = contact.data.hardness[n]
    zero = zero_like(hardness)
    K, B = stiffness_and_damping(
        contact.data.reference[n, 0], contact.data.reference[n, 1], contact.data.impedance[n, 1], h
    )
    mobility = (
        contact.model.mobility[contact.model.body[contact.data.shape[n, 0]]]
        + contact.model.mobility[contact.model.body[contact.data.shape[n, 1]]]
    )
    normal = k == 0 or pyramid
    error = contact.data.gap[n] if normal else zero
    rate = row_rate(rows, row, state.qvel)
    bias, cfm = softened(h, K if normal else 0.0, B, hardness, mobility, error, rate, 0.0)
    rows.bias[row] = bias + belt
    rows.error[row] = zero
    rows.rate[row] = zero
    cfm = where_greater(hardness, zero, cfm, zero)  # no hardness: this lane has no contact here
    if pyramid:  # as soft in friction as the cone (MuJoCo, engine_core_constraint.c)
        square = contact.data.friction[n, 0] * contact.data.friction[n, 0]
        rows.cfm[row] = 2.0 * square * contact.model.slack[0] * (1.0 + square) * cfm
        return
    rows.cfm[row] = cfm if k == 0 else rows.cfm[contact.data.row[n]]  # one for all rows of a cone
    if k > 0:
        rows.bias[row] -= held_beyond(contact.model.slack[0], rows.cfm[row], contact.data.start[n, k])


# ------------------------------------------------------------------ restitution


@njit
def _set_rebounds(robot: Any, inputs: Any, rows: Any, contact: Any, n: Any) -> None:
    """Bias of the rows of contact n, which has restitution, if it is met in this step."""
    pyramid = is_pyramid(contact, n)
    for k in range(contact.data.rows[n] if pyramid else 1):
        row = contact.data.row[n] + k
        rate = row_rate(rows, row, robot.state.qvel) + _belt(contact, n, k, pyramid)
        _aim_rebound(robot.model, inputs, rows, contact, n, row, rate)


@inlined
def _aim_rebound(model: Any, inputs: Any, rows: Any, contact: Any, n: Any, row: Any, rate: Any) -> None:
    """Bias of contact n's row along the normal, or near it, which closed at -rate before the step."""
    if bounces(contact, n, rate, inputs.time_step[0]):
        rows.bias[row] = min(rows.bias[row], -speed_of_rebound(model, contact, n, rate))


@inlined
def bounces(contact: Any, n: Any, rate: Any, h: Any) -> bool:
    """Whether contact n, closing at -rate, is met in this step, and fast enough."""
    met: bool = bounce_margin(contact.data.gap[n], contact.data.restitution[n], rate, h) >= 0.0
    return met


@inlined
def speed_of_rebound(model: Any, contact: Any, n: Any, rate: Any) -> Any:
    """The speed at which contact n, closing at -rate, opens after it is met."""
    N = contact.data.frame[n, ALONG_NORMAL]
    return rebound(contact.data.gap[n], N, model.gravity, contact.data.restitution[n], rate)


@inlined
def may_bounce(contact: Any) -> bool:
    """Whether any shape has restitution."""
    may = False
    for n in range(contact.model.restitution.shape[0]):
        may = may or contact.model.restitution[n] > 0.0
    return may


# ------------------------------------------------------------------ energy


@njit
def limit_energy(robot: Any, run: Any, rows: Any, contact: Any) -> bool:
    """Halve the restitution of contacts whose impulses do work, and leave inside what takes too much to bring apart;
    True when there are any: their rows are to be solved again.

    Newton's law beside friction can make energy: what a bounce throws back along the surface may be more than what it
    takes across it (Kane and Levinson 1985; Stronge 1990). And no joint may be able to part what is inside (links that
    overlap where they are hinged), or only at a speed that throws all about; it then only goes no deeper.
    """
    model, state = robot.model, robot.state
    inputs, step = run.inputs, run.step
    limited = False
    solved = rows.report[RESIDUAL] <= UNSOLVED
    for n in range(contact.data.number[CONTACTS]):
        row = contact.data.row[n]
        if row < 0:
            continue
        if contact.data.restitution[n] > 0.0:
            belt = contact.data.belt[n, ALONG_NORMAL]
            rate = row_rate(rows, row, state.qvel) + belt
            if (
                contact.data.hit[n] == 0
                and bounces(contact, n, rate, inputs.time_step[0])
                and _gains(state, rows, rows.impulse, step, contact, n) > 0.0
            ):
                contact.data.restitution[n] *= 0.5
                aim_open(model, robot.data, inputs, rows, contact, n, row, belt)
                _aim_rebound(model, inputs, rows, contact, n, row, rate)
                limited = True
        elif brings_apart(rows.rate[row], contact.data.gap[n]) > 0.0 and (
            throws(state, rows, rows.impulse, step, contact, n) > 0.0
            or not (solved or rows.regularised[row] > 0)  # a crowd gives way and is not solved
        ):
            _leave_inside(inputs, rows, contact, n)
            limited = True
    if limited and not solved:  # nor are its impulses a place to start from
        for row in range(rows.number[ALL_ROWS]):
            rows.impulse[row] = 0.0
    return limited


@inlined
def _leave_inside(inputs: Any, rows: Any, contact: Any, n: Any) -> None:
    """Contact n only goes no deeper; nor does it give way from what it had."""
    row = contact.data.row[n]
    for k in range(contact.data.rows[n] if is_pyramid(contact, n) else 1):
        rows.bias[row + k] -= rows.rate[row + k] * contact.data.gap[n] + second_order(
            inputs.time_step[0], contact.data.drift[n]
        )
        rows.rate[row + k] = 0.0
    for k in range(contact.data.rows[n]):
        rows.impulse[row + k] = 0.0


@inlined
def throws(state: Any, rows: Any, impulse: Any, step: Any, contact: Any, n: Any) -> Any:
    """1 where contact n does work on a dof that is faster than what is inside may be brought apart, in both widths."""
    row = contact.data.row[n]
    fastest = zero_like(rows.bias[row])
    for entry in range(rows.start[row], rows.stop[row]):
        fastest = largest(absolute(step.velocity[rows.entry_dof[entry]]), fastest)
    thrown = is_thrown(fastest)
    if highest(thrown) > 0.0:
        thrown = least(thrown, _gains(state, rows, impulse, step, contact, n))
    return thrown


@inlined
def _gains(state: Any, rows: Any, impulse: Any, step: Any, contact: Any, n: Any) -> Any:
    """1 where contact n's impulses do work, in both widths."""
    work, size = work_of(state, rows, impulse, step, contact, n)
    return does_work(work, size)


@inlined
def work_of(state: Any, rows: Any, impulse: Any, step: Any, contact: Any, n: Any) -> Any:
    """Twice the work of contact n's impulses, and the sum of its terms' sizes [J], in both widths."""
    work = zero_like(rows.bias[contact.data.row[n]])
    size = work
    for k in range(contact.data.rows[n]):
        row = contact.data.row[n] + k
        belt = _belt(contact, n, k, is_pyramid(contact, n))
        before = row_rate(rows, row, state.qvel) + belt
        after = row_rate(rows, row, step.velocity) + belt
        work += impulse[row] * (before + after)
        size += absolute(impulse[row]) * (absolute(before) + absolute(after))
    return work, size


# ------------------------------------------------------------------ what came of them


@njit
def note_contact_forces(rows: Any, step: Any, contact: Any, scale: Any) -> None:
    """contact_data.force = λ `scale` of the contacts' rows, less adhesion, which step.contact gets here;
    step.contact_extremes."""
    for n in range(contact.data.number[CONTACTS]):
        for k in range(contact.data.force.shape[1]):
            carries = contact.data.row[n] >= 0 and k < contact.data.dimension[n]
            contact.data.force[n, k] = (
                impulse_along(rows.impulse, contact, n, k) * contact.data.scale[n, k] * scale if carries else 0.0
            )
        if contact.data.row[n] >= 0 and contact.data.pull[n] > 0.0:
            contact.data.force[n, ALONG_NORMAL] -= contact.data.pull[n]
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
    for n in range(contact.data.number[CONTACTS]):
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
            step.contact_extremes[DEEPEST] = max(step.contact_extremes[DEEPEST], -contact.data.distance[n])
    _note_yielding(rows, step, contact)
    step.contact_extremes[MOST_AT_ONCE] = max(step.contact_extremes[MOST_AT_ONCE], count)
    step.contact_extremes[REGULARISED_STEPS] += regularised
    step.contact_extremes[LEFT_INSIDE_STEPS] += left


@njit
def _note_yielding(rows: Any, step: Any, contact: Any) -> None:
    """step.yielded of hard contacts that gave way: how deep they are, beyond what was inside at the start, and whose.

    What has gone through half of a shape stops the run: it comes out on the other side.
    """
    for n in range(contact.data.number[CONTACTS]):
        if step.counters[STEP_NUMBER] == 0:
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
            step.counters[STOP_REASON] = GAVE_WAY


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
    felt: bool = contact.data.gap[n] <= 0.0 or contact.data.force[n, ALONG_NORMAL] != 0.0
    return felt


@njit
def take_off_contacts(model: Any, data: Any, step: Any, contact: Any) -> None:
    """Subtract from step.link_force and step.link_torque (about the links' origins) what contacts do to their links."""
    for n in range(contact.data.number[CONTACTS]):
        F = contact.data.force[n]
        R = contact.data.frame[n]
        force = _along(R, F[0], F[1], F[2])
        torque = _along(R, F[3], F[4], F[5])
        for end in range(2):
            link = contact.model.link[contact.data.shape[n, end]]
            if link >= 0:
                sign = 1.0 if end == 1 else -1.0
                _, origin = link_frame(model, data, link)
                moment = plus(crossed(minus(contact.data.arm[n, end], origin), force), torque)
                put(step.link_force[link], minus(step.link_force[link], times(sign, force)))
                put(step.link_torque[link], minus(step.link_torque[link], times(sign, moment)))


@inlined
def _along(R: Any, x: Any, y: Any, z: Any) -> Any:
    """x, y, z along the rows of R, in world axes."""
    return (
        R[0, 0] * x + R[1, 0] * y + R[2, 0] * z,
        R[0, 1] * x + R[1, 1] * y + R[2, 1] * z,
        R[0, 2] * x + R[1, 2] * y + R[2, 2] * z,
    )
