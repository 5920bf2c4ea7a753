"""A contact as constraint rows: the gap, which must not close, and friction within its cone.

The normal row keeps the surfaces apart at the end of the step: gap + h J v⁺ + ½ h² drift ≥ 0, so that a body that would
arrive within the step stops at the surface and not beyond it. Only the part of the second-order term that closes the
gap counts: the term is known for the velocity before the step, and the acceleration that would have lifted a body ends
when the body is stopped within the step. Initial penetration is removed over 0.1 s, as at limits, except for the part
that no joint can separate (rebounds.py). A soft contact (MJCF's solref and solimp) yields as in MuJoCo.

Friction has up to five rows: two tangential directions, spin about the normal, rolling about the two tangents. Its cone
is an ellipse, Σ (λ_k / μ_k)² ≤ λ_n²; the rows are scaled by μ_k / μ_1, which makes it circular. The rows of a contact
are adjacent and have the same columns in the same order, those of the dofs that move one of the bodies and not the
other.

A pyramid (Anitescu and Potra 1997; MuJoCo's default) has two rows for each direction in place of the cone's, along the
edges n ± μ_k t_k, which can only push: plain bounds. A sliding body then rises at up to μ times its speed, and between
its directions a pyramid transmits less friction, down to μ / √2.

The laws themselves are in contact_law.py. The rows are built here both for a single robot and for packs (pack_rows.py).
"""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import like, link_frame
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, State, Workspace
from artsim.sim.constraints.impedance import impedance, is_convex, looks_ahead, reference_at
from artsim.sim.constraints.kinds import CONTACT_ROW, EDGES
from artsim.sim.constraints.row import UNSOLVED, add_row, drift_of, one_sided, row_rate
from artsim.sim.contact.contact_law import (
    bounce_margin,
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
)
from artsim.sim.equipment.arrays import BODY, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, lane_get, real, where_greater, zero_like
from artsim.sim.foundation.records import Real, Reals1, Reals2, Vec3
from artsim.sim.foundation.scalars import divisor, largest, least
from artsim.sim.foundation.vec3 import cross, minus, plus, plus_times, put, row_of, times, triple
from artsim.sim.geometry.contacts import ALONG_NORMAL, CONTACTS, DIRECTIONS, SOFT_ALONE, AnyContacts, ContactBundle
from artsim.sim.run_data.registry import SWEEPING
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    DEEPEST,
    DEPTH,
    GAVE_WAY,
    HELD_A,
    HELD_B,
    HELD_BY,
    HELD_DEPTH,
    HELD_STEPS,
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
    Inputs,
    Rows,
    RunBundle,
    Step,
)

_LEAST = 1e-300  # [m/s or m] below 0 that counts as 0
SUNK = 5e-5  # share of the sizes that a step may leave as penetration, since the curvature of surfaces is unknown
_ROUNDING = 1e-12  # [m] penetration that is removed at any rate
USUAL_GRIP = 5.0  # friction coefficient that is used at first where the contact's own is larger
_MORE_GRIP = 100.0  # factor on the used coefficient where the contact slips
_LARGEST_GRIP = 1e6  # coefficient above which none is raised: the cone leaves out a microradian
_ON_EDGE = 0.999  # share of a contact's friction above which the contact is at the edge of its cone
_COUNTS = 1e-9  # share of the friction, in directions with less than their own coefficient, that does not count
_MOST_DAMPED = 5.0 / 3.0  # largest h B with which friction is stable, as for an explicit damper (impedance.py)
THROUGH = 0.5  # contacts that yielded by this share of a shape's thickness stop the run


@njit
def contact_rows(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, contact: ContactBundle
) -> None:
    """Build the rows of this step's contacts, and add adhesion to step.free. Needs motion columns."""
    inputs = run.inputs
    for n in range(contact.data.number[CONTACTS]):
        contact.data.pull[n] = contact.data.adhesion[n]
    if equipment is not None:
        _pull_by_actuators(equipment, contact)
    for n in range(contact.data.number[CONTACTS]):
        contact.data.row[n] = -1
        set_grip(inputs, contact, n)
        if contact.data.dimension[n] == 0 and contact.data.pull[n] > 0.0:
            contact.data.dimension[n] = 1
        if contact.data.soft[n] == 1:
            contact.data.hardness[n] = impedance(contact.data.impedance, n, max(-contact.data.gap[n], 0.0))
        acts = contact.data.dimension[n] > 0 and is_convex(inputs)
        if acts or (contact.data.dimension[n] > 0 and opens(robot.model, robot.data, contact, n, 0.0) > 0.0):
            add_rows(robot, inputs, rows, contact, n)
            set_targets(robot, inputs, rows, contact, n)
            if contact.data.pull[n] > 0.0:
                pull(run, rows, contact, n, contact.data.pull[n])


@inlined
def is_pyramid(contact: AnyContacts, n: int) -> bool:
    """True if contact n's rows are the edges of a pyramid."""
    chosen = contact.model.pyramidal[0] == 1 or (contact.model.pyramidal[0] == SOFT_ALONE and contact.data.soft[n] == 1)
    return chosen and contact.data.dimension[n] > 1


@inlined
def yields(inputs: Inputs, contact: AnyContacts, n: int) -> bool:
    """True if contact n is soft and acts by MuJoCo's law: its cone is without De Saxcé's shift."""
    return inputs.soft_law[0] == 1 and contact.data.soft[n] == 1


@inlined
def pull(run: RunBundle, rows: Rows, contact: AnyContacts, n: int, force: Real) -> None:
    """Add the adhesion of contact n [N], along its normal, to step.free; in both widths."""
    row = contact.data.row[n]
    opposite = row + 1 if is_pyramid(contact, n) else row  # the mean of two edges is the normal
    for entry in range(rows.start[row], rows.stop[row]):
        normal = 0.5 * (rows.value[entry] + rows.value[entry - rows.start[row] + rows.start[opposite]])
        run.step.free[rows.column[entry]] -= run.inputs.time_step[0] * force * normal


@njit
def _pull_by_actuators(equipment: EquipmentBundle, contact: ContactBundle) -> None:
    """Distribute the force of an adhesion actuator over the contacts of its body."""
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
def _is_of(equipment: EquipmentBundle, contact: ContactBundle, n: int, a: int) -> int:
    """1 where contact n is near enough to adhere and is on the body of adhesion actuator a."""
    first = contact.model.body[contact.data.shape[n, 0]] == equipment.model.actuator_target[a]
    second = contact.model.body[contact.data.shape[n, 1]] == equipment.model.actuator_target[a]
    return 1 if (first or second) and contact.data.near[n] == 1 else 0


# ------------------------------------------------------------------ rows in both widths


@inlined
def set_grip(inputs: Inputs, contact: AnyContacts, n: int) -> None:
    """Set the coefficients by which the rows of contact n are built: its own, or as much of them as it has needed so
    far.

    Once a contact sticks, a larger coefficient changes nothing, but De Saxcé's shift, μ |v_t|, magnifies the rounding
    of slips. Contacts that yield, soft pyramids, whose softness depends on the coefficient, and the sweeping solvers
    take the contact's own.
    """
    whole = SWEEPING[inputs.solver[0]] or (contact.data.soft[n] == 1 and is_pyramid(contact, n))
    whole = whole or yields(inputs, contact, n)
    for j in range(contact.data.grip.shape[1]):
        mu = contact.data.friction[n, j]
        contact.data.grip[n, j] = mu if whole else least(mu, _most_grip(contact, n, j))


@inlined
def _most_grip(contact: AnyContacts, n: int, j: int) -> Real:
    """The largest coefficient in direction j of contact n that is used; coefficients about axes are lengths [m]."""
    most = contact.data.most_grip[n]
    if j >= 2:
        size = 0.0
        for end in range(2):
            for axis in range(3):
                size = max(size, contact.model.extent[contact.data.shape[n, end], axis])
        most = most * size
    return most


@njit
def reset_grip(contact: AnyContacts, chosen: Real) -> None:
    """Limit the coefficients of all contacts to the usual ones, up to USUAL_GRIP, where `chosen` is 1."""
    zero = zero_like(chosen)
    for n in range(contact.data.number[CONTACTS]):
        most = contact.data.most_grip[n]
        contact.data.most_grip[n] = where_greater(chosen, zero, zero + USUAL_GRIP, most)


@njit
def _slips_for_grip(rows: Rows, contact: AnyContacts, n: int) -> Real:
    """1 where contact n is at the edge of its friction cone, and a direction with less than its own coefficient carries
    a share of the friction.
    """
    normal = impulse_along(rows, contact, n, ALONG_NORMAL)
    zero = zero_like(normal)
    pyramid = is_pyramid(contact, n)
    used, short = zero, zero
    for k in range(1, contact.data.dimension[n]):
        mu = contact.data.grip[n, k - 1]
        share = absolute(impulse_along(rows, contact, n, k))
        if not pyramid:
            share = share * contact.data.scale[n, k]
        share = share / _or_one(mu * normal)
        share = share if pyramid else share * share
        used += share
        short += where_greater(contact.data.friction[n, k - 1], mu, share, zero)
    slips = where_greater(used, zero + _ON_EDGE, zero + 1.0, zero)
    return where_greater(short, zero + _COUNTS, slips, zero)


@njit
def grips_more(inputs: Inputs, rows: Rows, contact: AnyContacts, chosen: Real) -> Real:
    """Give contacts that slip for want of grip more of their own friction, up to all of it, where `chosen` is 1; 1
    where there are any: the rows must be built again.
    """
    zero = zero_like(chosen)
    more = zero
    if SWEEPING[inputs.solver[0]]:
        return more
    chosen = where_greater(rows.report[RESIDUAL], zero + UNSOLVED, zero, chosen)
    for n in range(contact.data.number[CONTACTS]):
        most = contact.data.most_grip[n]
        usual = where_greater(zero + _LARGEST_GRIP, most, chosen, zero)
        if contact.data.row[n] >= 0 and contact.data.dimension[n] > 1 and any_positive(usual):
            slips = usual * _slips_for_grip(rows, contact, n)
            contact.data.most_grip[n] = where_greater(slips, zero, _MORE_GRIP * most, most)
            more = largest(more, slips)
    return more


@njit
def add_rows(robot: RobotBundle, inputs: Inputs, rows: Rows, contact: AnyContacts, n: int) -> None:
    """Append the rows of contact n, with the last step's impulses as warm start and without bias."""
    contact.data.row[n] = rows.number[ALL_ROWS]
    if is_pyramid(contact, n):
        _add_edges(rows, contact, n)
    else:
        _add_directions(inputs, rows, contact, n)
    _add_columns(robot, rows, contact, n)


@inlined
def count_rows(contact: AnyContacts, n: int) -> int:
    """The number of rows of contact n: its dimensions, or the edges of a pyramid."""
    return 2 * (contact.data.dimension[n] - 1) if is_pyramid(contact, n) else contact.data.dimension[n]


@njit
def _add_directions(inputs: Inputs, rows: Rows, contact: AnyContacts, n: int) -> None:
    """Append one row for each dimension of contact n, without columns.

    Rows are scaled so that the cone is circular. Where contacts yield as in MuJoCo, the softness of friction is `slack`
    times that of the normal, and the rows are scaled so that one softness serves all of them.
    """
    first = rows.number[ALL_ROWS]
    friction = _largest_friction(contact, n)
    one = real(1.0, friction)
    as_mujoco = yields(inputs, contact, n)
    stiffer = 1.0 / math.sqrt(contact.model.slack[0]) if as_mujoco else 1.0
    contact.data.rows[n] = count_rows(contact, n)
    for k in range(contact.data.dimension[n]):
        row = _add_row(rows, contact, n)
        rows.part[row] = k
        rows.cone[row] = -1
        rows.impulse[row] = contact.data.start[n, k]
        contact.data.scale[n, k] = contact.data.grip[n, k - 1] / _or_one(friction) if k > 1 else one
        if k > 0:
            contact.data.scale[n, k] = stiffer * contact.data.scale[n, k]
    rows.cone[first] = contact.data.dimension[n] if contact.data.dimension[n] > 1 else 0
    rows.slope[first] = friction / stiffer
    rows.shifting[first] = zero_like(friction) if as_mujoco else friction


@njit
def _add_edges(rows: Rows, contact: AnyContacts, n: int) -> None:
    """Append two rows for each friction direction of contact n, without columns; the warm start contact.data.start is
    shared among them.
    """
    contact.data.rows[n] = count_rows(contact, n)
    for k in range(DIRECTIONS):
        contact.data.scale[n, k] = real(1.0, contact.data.scale[n, k])
    for edge in range(contact.data.rows[n]):
        row = _add_row(rows, contact, n)
        rows.part[row] = EDGES + edge
        mu = contact.data.grip[n, edge // 2]
        start = contact.data.start[n, edge // 2 + 1]
        along = where_greater(mu, zero_like(mu), 0.5 * start / _or_one(mu), zero_like(mu))
        share = contact.data.start[n, ALONG_NORMAL] / contact.data.rows[n]
        rows.impulse[row] = share + (along if edge % 2 == 0 else -along)


@inlined
def _or_one(friction: Real) -> Real:
    """A friction coefficient to divide by: 1 where there is none."""
    zero = zero_like(friction)
    return where_greater(friction, zero, friction, zero + 1.0)


@inlined
def _add_row(rows: Rows, contact: AnyContacts, n: int) -> int:
    row = add_row(rows, CONTACT_ROW, n)
    rows.regularised[row] = contact.data.regularised[n]
    rows.static[row] = (
        1
        if contact.model.body[contact.data.shape[n, 0]] == 0 or contact.model.body[contact.data.shape[n, 1]] == 0
        else 0
    )
    return row


@inlined
def impulse_along(rows: Rows, contact: AnyContacts, n: int, k: int) -> Real:
    """Impulse of contact n in its direction k, times contact.data.scale."""
    first = contact.data.row[n]
    if not is_pyramid(contact, n):
        return rows.impulse[first + k]
    if k > 0:
        edge = first + 2 * (k - 1)
        return contact.data.grip[n, k - 1] * (rows.impulse[edge] - rows.impulse[edge + 1])
    value = zero_like(rows.impulse[first])
    for row in range(first, first + contact.data.rows[n]):
        value += rows.impulse[row]
    return value


@inlined
def _largest_friction(contact: AnyContacts, n: int) -> Real:
    """The coefficient by which the rows are scaled: the coefficient of sliding, or else the largest."""
    value = contact.data.grip[n, 0]
    for k in range(1, contact.data.dimension[n] - 1):
        value = where_greater(value, zero_like(value), value, contact.data.grip[n, k])
    return value


@njit
def _add_columns(robot: RobotBundle, rows: Rows, contact: AnyContacts, n: int) -> None:
    """Set the columns of all rows of contact n. Dofs that move both bodies move the contact point on both alike, and
    drop out."""
    model, data = robot.model, robot.data
    first = contact.data.row[n]
    one = contact.model.body[contact.data.shape[n, 0]]
    two = contact.model.body[contact.data.shape[n, 1]]
    count = _count_columns(model, one, two)
    start = rows.start[first]
    pyramid = is_pyramid(contact, n)
    x = _from_reference(data, contact, n, 0)
    y = _from_reference(data, contact, n, 1)
    a = last_dof(model, one)
    b = last_dof(model, two)
    e = start  # of the first row
    c = start
    while a != b:
        if a > b:
            c = _add_column(robot, rows, contact, n, pyramid, a, (-1.0, x), (e, c, count))
            a = model.dof_parent[a]
        else:
            c = _add_column(robot, rows, contact, n, pyramid, b, (1.0, y), (e, c, count))
            b = model.dof_parent[b]
        e += 1
    for k in range(contact.data.rows[n]):
        row = first + k
        rows.start[row] = start + k * count
        rows.stop[row] = c + k * count
        rows.start[row + 1] = rows.start[row] + count


@njit
def opens(model: Model, data: Workspace, contact: AnyContacts, n: int, opening: Real) -> Real:
    """1 where any dof separates the bodies of contact n, and not only along the surface, where the rest is rounding;
    elsewhere `opening`, a T.

    An impulse against rounding, to remove an overlap, would be unbounded.
    """
    a = last_dof(model, contact.model.body[contact.data.shape[n, 0]])
    b = last_dof(model, contact.model.body[contact.data.shape[n, 1]])
    zero = zero_like(opening)
    inside = overlaps(contact.data.gap[n]) if contact.data.soft[n] == 0 else zero
    N = triple(contact.data.frame[n, ALONG_NORMAL])
    while a != b and any_positive(1.0 - opening):
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
def _motion_of(data: Workspace, k: int) -> tuple[Vec3, Vec3]:
    """Velocity and angular velocity at the tree's reference point for a unit velocity of dof k."""
    S = data.motion
    return (S[0, k], S[1, k], S[2, k]), (S[3, k], S[4, k], S[5, k])


@inlined
def _from_reference(data: Workspace, contact: AnyContacts, n: int, end: int) -> Vec3:
    """Position of contact n's point from the reference point of the tree of one of its bodies [m]."""
    return plus(triple(data.arm[contact.model.body[contact.data.shape[n, end]]]), triple(contact.data.arm[n, end]))


@inlined
def last_dof(model: Model, body: int) -> int:
    """The last dof that moves a body, -1: none."""
    return model.body_dof[body + 1] - 1 if body > 0 else -1


@njit
def _count_columns(model: Model, first: int, second: int) -> int:
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
    robot: RobotBundle,
    rows: Rows,
    contact: AnyContacts,
    n: int,
    pyramid: bool,
    k: int,
    end: tuple[float, Vec3],
    place: tuple[int, int, int],
) -> int:
    """Enter dof k, which moves one end of contact n, in all its rows; return where the next independent column goes.

    end: its sign, and the contact point from the tree's reference point; place: entry and independent column in the
    first row, and the number of entries between rows.
    """
    sign, x = end
    entry, column, count = place
    data = robot.data
    frame = contact.data.frame[n]
    linear, angular = _motion_of(data, k)
    v = times(sign, point_velocity(linear, angular, x))
    a = robot.model.dof_independent[k]
    gain = data.gain[k]
    for row in range(contact.data.rows[n]):
        if pyramid:
            mu = contact.data.grip[n, row // 2]
            value = in_direction(frame, 0, v, sign, angular)
            value += (mu if row % 2 == 0 else -mu) * in_direction(frame, row // 2 + 1, v, sign, angular)
        else:
            value = contact.data.scale[n, row] * in_direction(frame, row, v, sign, angular)
        rows.entry_dof[entry + row * count] = k
        rows.entry_value[entry + row * count] = value
        if a >= 0:
            rows.column[column + row * count] = a
            rows.value[column + row * count] = value * gain
    return column + 1 if a >= 0 else column


@njit
def set_targets(robot: RobotBundle, inputs: Inputs, rows: Rows, contact: AnyContacts, n: int) -> None:
    """Bias and softness of the rows of contact n."""
    model, data = robot.model, robot.data
    h = inputs.time_step[0]
    pyramid = is_pyramid(contact, n)
    if contact.data.soft[n] == 1:
        for k in range(contact.data.rows[n]):
            _soften(robot.state, inputs, rows, contact, n, k)
        return
    aim_normal_rows(robot, inputs, rows, contact, n)
    for k in range(normal_rows(contact, n), contact.data.rows[n]):
        row = contact.data.row[n] + k
        rows.bias[row] = h * _drift(model, data, rows, row) + _belt(contact, n, k, pyramid)
        if k < 3:
            rows.bias[row] += 0.5 * h * contact.data.swerve[n, k - 1] * contact.data.scale[n, k]
    aim_rebounds(robot, inputs, rows, contact, n)
    _bend_anew(rows, contact, n)


@inlined
def _bend_anew(rows: Rows, contact: AnyContacts, n: int) -> None:
    """Bend the biases of contact n as the aims of this step ask (foresight.py), where its rows are built anew."""
    aimed = contact.data.aimed[n]
    if any_positive(aimed):
        zero = zero_like(aimed)
        bend = where_greater(aimed, zero, contact.data.curve[n] - contact.data.foreseen[n], zero)
        for k in range(normal_rows(contact, n)):
            rows.bias[contact.data.row[n] + k] += bend


@inlined
def aim_normal_rows(robot: RobotBundle, inputs: Inputs, rows: Rows, contact: AnyContacts, n: int) -> None:
    """Bias of the rows of contact n that keep its surfaces apart, where the contact does not bounce."""
    for k in range(normal_rows(contact, n)):
        row = contact.data.row[n] + k
        aim_open(robot, inputs, rows, contact, n, row, _belt(contact, n, k, is_pyramid(contact, n)))


@inlined
def _belt(contact: AnyContacts, n: int, k: int, pyramid: bool) -> Real:
    """Velocity of moving surfaces along row k of contact n."""
    direction = k // 2 if pyramid else k - 1  # in the tangent plane
    if direction < 0 or direction > 2:
        return zero_like(contact.data.grip[n, 0])
    along = contact.data.belt[n, direction]
    if pyramid:
        return (contact.data.grip[n, direction] if k % 2 == 0 else -contact.data.grip[n, direction]) * along
    return contact.data.scale[n, k] * along


@inlined
def _drift(model: Model, data: Workspace, rows: Rows, row: int) -> Real:
    return drift_of(data, rows, row) if model.coupling_follower.shape[0] > 0 else like(0.0, data)


@inlined
def aim_open(
    robot: RobotBundle, inputs: Inputs, rows: Rows, contact: AnyContacts, n: int, row: int, belt: Real
) -> None:
    """Bias of contact n's normal row, or of a pyramid edge, where the contact does not bounce."""
    model, data = robot.model, robot.data
    h = inputs.time_step[0]
    one_sided(rows, inputs, row, contact.data.gap[n])
    contact.data.overtaken[n] = zero_like(contact.data.gap[n])
    start = contact.data.start[n, ALONG_NORMAL]
    if inputs.recovery[0] == 0.0 and any_positive(start):
        closing = second_order(h, contact.data.drift[n]) - row_rate(rows, row, robot.state.qvel) - belt
        closing = where_greater(start, zero_like(start), closing, zero_like(start))
        contact.data.overtaken[n] = closing
        most = zero_like(closing) + SUNK * size_at(contact, n) / h
        rows.rate[row] = _back_at_once(rows.rate[row], h, contact.data.gap[n], least(closing, most))
        rows.bias[row] = rows.rate[row] * contact.data.gap[n]
    stuck = is_stuck(contact.data.gap[n], _reach(rows, row))
    zero = zero_like(stuck)
    rows.bias[row] = where_greater(stuck, zero, zero, rows.bias[row])
    rows.rate[row] = where_greater(stuck, zero, zero, rows.rate[row])
    rows.bias[row] += h * _drift(model, data, rows, row) + second_order(h, contact.data.drift[n]) + belt


@inlined
def _back_at_once(rate: Real, h: float, gap: Real, closing: Real) -> Real:
    """The share of penetration removed per second [1/s] at a contact that pushed in the last step and yet closes: its
    surfaces turned or slid over each other along a curve that the row did not know.

    The penetration would add up from step to step, and is therefore removed within the step, but beyond `rate` no
    faster than the surfaces close in excess of the row's prediction, since a faster removal would gain energy. Contacts
    that close much faster are aimed (foresight.py).
    """
    zero = zero_like(gap)
    opening = least(-gap / h, closing - rate * gap)
    faster = where_greater(-gap, zero + _ROUNDING, largest(rate, opening / divisor(-gap)), rate)
    return where_greater(closing, zero, faster, rate)


@inlined
def size_at(contact: AnyContacts, n: int) -> float:
    """The size of the moving shape of contact n [m], of the smaller one if both move."""
    size = 0.0
    for end in range(2):
        shape = contact.data.shape[n, end]
        own = contact.model.swing[shape] + contact.model.rounding[shape]
        if contact.model.body[shape] > 0 and own > 0.0:
            size = own if size == 0.0 else min(size, own)
    return size


@inlined
def _reach(rows: Rows, row: int) -> Real:
    """Σ |J| of a row."""
    reach = zero_like(rows.bias[row])
    for entry in range(rows.start[row], rows.stop[row]):
        reach += absolute(rows.value[entry])
    return reach


@njit
def _soften(state: State, inputs: Inputs, rows: Rows, contact: AnyContacts, n: int, k: int) -> None:
    """Bias and softness of row k of contact n, which yields as in MuJoCo (constraints/impedance.py); friction is damped
    only, since it has no reference position.

    By Coulomb's law friction is as soft as the normal but for the share `slack`; otherwise its rows are scaled for it.
    """
    row, h = contact.data.row[n] + k, inputs.time_step[0]
    pyramid = is_pyramid(contact, n)
    hardness, belt = contact.data.hardness[n], _belt(contact, n, k, pyramid)
    zero = zero_like(hardness)
    most = contact.data.impedance[n, 1]
    K, B = reference_at(contact.data.reference, n, most, h)
    z, y = h * B, h * h * K * hardness
    g, S = looks_ahead(inputs, z, y)
    rate = row_rate(rows, row, state.qvel) + belt
    if k == 0 or pyramid:
        bias = (y / h * contact.data.gap[n] + (z - g * z - 1.0) * rate) / S
        rows.lower[row] = zero
    else:  # by the S of the normal, since all rows of a cone have one cfm
        _, B = reference_at(contact.data.friction_reference, n, most, h)
        damped = zero + h * B if is_convex(inputs) else least(h * B / S, zero + _MOST_DAMPED)
        bias = (damped - 1.0) * rate
    rows.bias[row] = bias + belt
    rows.error[row] = rows.rate[row] = zero
    resistance = _mobility(contact, n) * (1.0 - hardness) / (divisor(hardness) * S)
    cfm = where_greater(hardness, zero, resistance, zero)  # no hardness: this lane has no contact here
    if pyramid:
        cfm = cfm * _softness_of_edges(contact, n)
    rows.cfm[row] = cfm
    if k > 0 and not pyramid and not yields(inputs, contact, n):
        rows.bias[row] -= held_beyond(contact.model.slack[0], cfm, contact.data.start[n, k])


@inlined
def _mobility(contact: AnyContacts, n: int) -> float:
    """The mobility by which the softness of contact n is scaled [1/kg]."""
    one: float = contact.model.mobility[contact.data.shape[n, 0]]
    two: float = contact.model.mobility[contact.data.shape[n, 1]]
    return one + two


@inlined
def _softness_of_edges(contact: AnyContacts, n: int) -> Real:
    """The softness of the edges of a pyramid relative to a cone's normal: friction is as soft as the cone's (MuJoCo,
    engine_core_constraint.c)."""
    square = contact.data.grip[n, 0] * contact.data.grip[n, 0]
    return 2.0 * square * contact.model.slack[0] * (1.0 + square)


# ------------------------------------------------------------------ restitution


@njit
def aim_rebounds(robot: RobotBundle, inputs: Inputs, rows: Rows, contact: AnyContacts, n: int) -> None:
    """Change the bias of the rows of contact n, as aim_normal_rows leaves them, where it bounces, stays inside, or is
    left out."""
    zero = zero_like(contact.data.gap[n])
    if contact.bounces is not None and any_positive(contact.data.restitution[n]):
        row = contact.data.row[n]
        struck = least(rows.bias[row], contact.bounces.aim[n])
        _set_rebounds(robot, inputs, rows, contact, n)
        rows.bias[row] = where_greater(contact.bounces.aimed[n], zero, struck, rows.bias[row])
    inside = contact.data.inside[n]
    if any_positive(inside):
        known = second_order(inputs.time_step[0], contact.data.drift[n])
        for row in range(contact.data.row[n], contact.data.row[n] + normal_rows(contact, n)):
            left = rows.bias[row] - (rows.rate[row] * contact.data.gap[n] + known)
            rows.bias[row] = where_greater(inside, zero, left, rows.bias[row])
            rows.rate[row] = where_greater(inside, zero, zero, rows.rate[row])
    held, stays = absolute(contact.data.held[n]), contact.data.stays[n]
    if any_positive(held + stays):
        for row in range(contact.data.row[n], contact.data.row[n] + normal_rows(contact, n)):
            left = rows.bias[row] - rows.rate[row] * contact.data.gap[n]
            apart = where_greater(held, zero, contact.data.apart[0], rows.bias[row])
            rows.bias[row] = where_greater(stays, zero, left, apart)
            rows.rate[row] = where_greater(held + stays, zero, zero, rows.rate[row])


@inlined
def _set_rebounds(robot: RobotBundle, inputs: Inputs, rows: Rows, contact: AnyContacts, n: int) -> None:
    """Bias of the rows of contact n, which has restitution, where the impact occurs in this step."""
    pyramid = is_pyramid(contact, n)
    for k in range(normal_rows(contact, n)):
        row = contact.data.row[n] + k
        rate = row_rate(rows, row, robot.state.qvel) + _belt(contact, n, k, pyramid)
        _aim_rebound(robot.model, inputs, rows, contact, n, row, rate)


@inlined
def _aim_rebound(model: Model, inputs: Inputs, rows: Rows, contact: AnyContacts, n: int, row: int, rate: Real) -> None:
    """Bias of contact n's normal row, or of a pyramid edge, where it closed at -rate before the step."""
    rebounds = least(rows.bias[row], -speed_of_rebound(model, contact, n, rate))
    rows.bias[row] = where_greater(
        bounces(contact, n, rate, inputs.time_step[0]), zero_like(rate), rebounds, rows.bias[row]
    )


@inlined
def bounces(contact: AnyContacts, n: int, rate: Real, h: float) -> Real:
    """1 where contact n, which closes at -rate, is met within this step, fast enough to bounce."""
    zero = zero_like(rate)
    margin = bounce_margin(contact.data.gap[n], contact.data.restitution[n], rate, h)
    return where_greater(margin, zero - _LEAST, zero + 1.0, zero)  # 0 where it is not a number


@inlined
def speed_of_rebound(model: Model, contact: AnyContacts, n: int, rate: Real) -> Real:
    """The speed at which contact n, closing at -rate, opens after the impact."""
    N = contact.data.frame[n, ALONG_NORMAL]
    return rebound(contact.data.gap[n], N, model.gravity, contact.data.restitution[n], rate)


@inlined
def may_bounce(contact: ContactBundle) -> bool:
    """True if any shape has restitution."""
    may = False
    for n in range(contact.model.restitution.shape[0]):
        may = may or contact.model.restitution[n] > 0.0
    return may


# ------------------------------------------------------------------ energy


@inlined
def normal_rows(contact: AnyContacts, n: int) -> int:
    """The number of contact n's rows that keep its surfaces apart, which come first."""
    return contact.data.rows[n] if is_pyramid(contact, n) else 1


@inlined
def removal_power(rows: Rows, contact: AnyContacts, n: int) -> Real:
    """The power that the removal of the penetration of contact n takes [W h], in both widths."""
    first = contact.data.row[n]
    power = zero_like(rows.bias[first])
    for row in range(first, first + normal_rows(contact, n)):
        power -= rows.impulse[row] * rows.rate[row] * contact.data.gap[n]
    return power


@inlined
def throws(robot: RobotBundle, rows: Rows, step: Step, contact: AnyContacts, n: int) -> Real:
    """1 where contact n does work on a dof whose velocity changes by more in the step than the removal of penetration
    may change it, in both widths. The velocity itself does not count, so that spinning bodies are not left inside.
    """
    row = contact.data.row[n]
    opening = -rows.rate[row] * contact.data.gap[n]
    thrown = zero_like(opening)
    for entry in range(rows.start[row], rows.stop[row]):
        k = rows.entry_dof[entry]
        change = absolute(step.velocity[k] - robot.state.qvel[k])
        thrown = largest(thrown, is_thrown(change, opening, robot.model.dof_linear[k]))
    if any_positive(thrown):
        thrown = least(thrown, gains(robot.state, rows, step, contact, n))
    return thrown


@inlined
def gains(state: State, rows: Rows, step: Step, contact: AnyContacts, n: int) -> Real:
    """1 where contact n's impulses do positive work, in both widths."""
    work, size = work_of(state, rows, step, contact, n)
    return does_work(work, size)


@inlined
def work_of(state: State, rows: Rows, step: Step, contact: AnyContacts, n: int) -> tuple[Real, Real]:
    """Twice the work of contact n's impulses, and the sum of its terms' sizes [J], in both widths."""
    work = zero_like(rows.bias[contact.data.row[n]])
    size = work
    for k in range(contact.data.rows[n]):
        row = contact.data.row[n] + k
        belt = _belt(contact, n, k, is_pyramid(contact, n))
        before = row_rate(rows, row, state.qvel) + belt
        after = row_rate(rows, row, step.velocity) + belt
        work += rows.impulse[row] * (before + after)
        size += absolute(rows.impulse[row]) * (absolute(before) + absolute(after))
    return work, size


# ------------------------------------------------------------------ results


@njit
def note_contact_forces(rows: Rows, step: Step, contact: ContactBundle, scale: float) -> None:
    """contact.data.force = λ `scale` of the contacts' rows, less adhesion, which is added to step.contact here; updates
    step.contact_extremes.
    """
    for n in range(contact.data.number[CONTACTS]):
        for k in range(contact.data.force.shape[1]):
            carries = contact.data.row[n] >= 0 and k < contact.data.dimension[n]
            contact.data.force[n, k] = (
                impulse_along(rows, contact, n, k) * contact.data.scale[n, k] * scale if carries else 0.0
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
    note_depths(step, contact)
    note_held(step.held, step, contact, 0)
    _stop_at_half(rows, step, contact)
    step.contact_extremes[MOST_AT_ONCE] = max(step.contact_extremes[MOST_AT_ONCE], count)
    step.contact_extremes[REGULARISED_STEPS] += regularised
    step.contact_extremes[LEFT_INSIDE_STEPS] += left


@njit
def note_held(held: Reals1, step: Step, contact: AnyContacts, lane: int) -> None:
    """Note in `held` (5,), as in Step.held, the contacts that hard loops hold inside in a step of a robot that is
    awake: the deepest, and the number of steps with any. In both widths; a single robot is its lane 0.
    """
    if lane_get(step.asleep, 0, lane) > 0.0:
        return
    found = 0.0
    for n in range(contact.data.number[CONTACTS]):
        by = lane_get(contact.data.held, n, lane)
        if by > 0.0:
            found = 1.0
            depth = -lane_get(contact.data.distance, n, lane)
            if depth > held[HELD_DEPTH]:
                held[HELD_DEPTH] = depth
                held[HELD_A] = contact.model.link[contact.data.shape[n, 0]]
                held[HELD_B] = contact.model.link[contact.data.shape[n, 1]]
                held[HELD_BY] = by - 1.0
    held[HELD_STEPS] += found


@njit
def note_depths(step: Step, contact: ContactBundle) -> None:
    """Note in step.yielded the hard contact that has got deepest since the start of the run, as a share of a shape's
    thickness. Positions alone count, not the reason.
    """
    for n in range(contact.data.number[CONTACTS]):
        step.contact_extremes[DEEPEST] = max(step.contact_extremes[DEEPEST], -contact.data.distance[n])
        if step.counters[STEP_NUMBER] == 0:
            contact.data.allowed[n] = max(-contact.data.distance[n], 0.0)
            step.yielded[START_DEPTH] = max(step.yielded[START_DEPTH], -contact.data.distance[n])
        share = share_inside(contact, n)
        if share > step.yielded[SHARE]:
            step.yielded[SHARE] = share
            step.yielded[DEPTH] = -contact.data.distance[n] - contact.data.allowed[n]
            step.yielded[LINK_A] = contact.model.link[contact.data.shape[n, 0]]
            step.yielded[LINK_B] = contact.model.link[contact.data.shape[n, 1]]


@njit
def share_inside(contact: ContactBundle, n: int) -> float:
    """The depth of contact n beyond the depth of its pair at the start of the run, as a share of the thickness of the
    thinner shape; 0 for soft contacts.
    """
    if contact.data.soft[n] == 1 or contact.data.dimension[n] == 0:
        return 0.0
    depth = -contact.data.distance[n] - contact.data.allowed[n]
    return depth * per_thickness(contact, n) if depth > 0.0 else 0.0


@njit
def _stop_at_half(rows: Rows, step: Step, contact: ContactBundle) -> None:
    """Stop the run where a contact that gives way has passed half of a shape's thickness: the shape would leave on the
    other side.
    """
    for n in range(contact.data.number[CONTACTS]):
        gives = contact.data.row[n] >= 0 and rows.regularised[contact.data.row[n]] > 0
        if gives and share_inside(contact, n) > THROUGH:
            step.counters[STOP_REASON] = GAVE_WAY


@inlined
def per_thickness(contact: AnyContacts, n: int) -> float:
    """1 / the least extent of the shapes of contact n [1/m]; 0 for planes."""
    least_half = 1e300
    for end in range(2):
        for axis in range(3):
            half = contact.model.extent[contact.data.shape[n, end], axis]
            least_half = min(least_half, half if half > 0.0 else 1e300)
    return 0.5 / least_half


@inlined
def is_felt(contact: ContactBundle, n: int) -> bool:
    """True if contact n touches or carries a force; speculative contacts do neither."""
    touches = contact.data.gap[n] <= 0.0 and contact.data.absent[n] == 0
    return touches or contact.data.force[n, ALONG_NORMAL] != 0.0


@njit
def take_off_contacts(model: Model, data: Workspace, step: Step, contact: ContactBundle) -> None:
    """Subtract the contacts' effect on links from step.link_force and step.link_torque (about the links' origins)."""
    for n in range(contact.data.number[CONTACTS]):
        F = contact.data.force[n]
        R = contact.data.frame[n]
        force = _along(R, F[0], F[1], F[2])
        torque = _along(R, F[3], F[4], F[5])
        for end in range(2):
            shape = contact.data.shape[n, end]
            link = contact.model.link[shape]
            if link >= 0:
                sign = 1.0 if end == 1 else -1.0
                _, origin = link_frame(model, data, link)
                # lanes of a pack have no arm on the world's body
                arm = (
                    row_of(contact.data.arm[n], end) if contact.model.body[shape] > 0 else row_of(contact.data.point, n)
                )
                moment = plus(cross(minus(arm, origin), force), torque)
                put(step.link_force[link], minus(step.link_force[link], times(sign, force)))
                put(step.link_torque[link], minus(step.link_torque[link], times(sign, moment)))


@inlined
def _along(R: Reals2, x: float, y: float, z: float) -> Vec3:
    """The vector with components x, y, z along the rows of R, in world axes."""
    return plus_times(plus_times(times(x, row_of(R, 0)), y, row_of(R, 1)), z, row_of(R, 2))
