"""Foresees how the gaps of a step's contacts close along the arcs on which bodies turn.

The rows of contacts know the first derivative of their gaps, and of the second derivative the part that follows from
the velocities before the step (rolling.py). For a body that turns far in a step, or is struck in it, the remainder
leaves depths that add up from step to step. The contacts of these bodies are therefore aimed as loops are
(stepping/contact_aims.py): this file places the shapes where the velocities found lead, measures the gaps there by the
narrow phase of detection, and puts the mean curvature of each gap over the step into the bias of its normal row, in
place of the expected curvature. A step then leaves almost no penetration, and no bodies need to be pushed out
afterwards, which would throw them.

`measure` is an entry of its own, compiled once for all variants of the step. Packs call it for one lane after the
other.
"""

from __future__ import annotations

from artsim.collision.narrow_phase import collide
from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import kinematics, origin_of
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.row import row_rate
from artsim.sim.contact.contact_rows import SUNK, is_pyramid, normal_rows, size_at
from artsim.sim.contact.detection import place_moving, velocity_of
from artsim.sim.contact.pack_detection import measure_lanes
from artsim.sim.contact.rolling import ANY_TURN, STRUCK_TURN, trusted_turn
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real, Vec3
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.scalars import is_positive, largest, least
from artsim.sim.foundation.vec3 import cross, dot, length, minus, plus, plus_times, put, row_of, triple
from artsim.sim.geometry.contacts import (
    ALONG_NORMAL,
    CONTACTS,
    AnyContacts,
    ContactBundle,
    EitherContacts,
    NarrowBundle,
)
from artsim.sim.run_data.run_records import Inputs, Rows, RunBundle, Step

_UNKNOWN = 1e308  # [m] a gap beyond the reach of the narrow phase
_FARTHEST = 0.5  # [rad] rotation in a step above which contacts are not aimed: the contact returns within few steps
_SETTLED = 1e-7  # change of the gaps at the end, relative to the shapes' sizes, that ends the aims
_FARTHER = 8.0  # largest aim, as a multiple of the missing gap
_GROWING = 4.0  # share by which surfaces may open faster than they closed, per rotation in a step [1/rad]
_STRUCK = 1e-3  # rotation in a step times its change in it [rad²] up to which the rotation before the step is enough
_ODD = 2.0  # times (hω)² of the sizes: the farthest that the gap of one contact can bend in a step


# ------------------------------------------------------------------ the gaps ahead


@njit
def foresee(robot: RobotBundle, run: RunBundle, contact: EitherContacts, chosen: Real) -> None:
    """Set contact.data.ahead, the distances of the surfaces of aimed contacts at the end of the step with
    step.velocity, where `chosen` is 1; _UNKNOWN for surfaces out of reach. Needs the bodies' velocities of
    step.velocity; restores data and the places of shapes.
    """
    model, state, data = robot.model, robot.state, robot.data
    step, h = run.step, run.inputs.time_step[0]
    _note_paths(model, data, contact, h)
    for k in range(step.tangent.shape[0]):
        step.tangent[k] = data.drift[k]
    for n in range(step.stage_qpos.shape[0]):
        step.stage_qpos[n] = state.qpos[n]
    move(model, step.stage_qpos, step.velocity, h)
    expand(model, step.stage_qpos, step.stage_qvel, data)
    kinematics(model, step.stage_qpos, data)
    place_moving(model, data, contact)
    if contact.lanes is not None:
        measure_lanes(contact, chosen)
    else:
        run_entry(contact.data.foresight)
    expand(model, state.qpos, state.qvel, data)
    for k in range(step.tangent.shape[0]):
        data.drift[k] = step.tangent[k]
    kinematics(model, state.qpos, data)
    place_moving(model, data, contact)


@njit
def _note_paths(model: Model, data: Workspace, contact: AnyContacts, h: float) -> None:
    """Set contact.data.ahead_point: the mean of the two surfaces' points at the end of the step, world axes [m]."""
    for n in range(contact.data.number[CONTACTS]):
        point = _point_of(model, data, contact, n)
        x = point
        for end in range(2):
            shape = contact.data.shape[n, end]
            arm = minus(point, contact.data.position[shape])
            turning = cross(triple(data.angular_velocity[contact.model.body[shape]]), arm)
            x = plus_times(x, 0.5 * h, plus(velocity_of(model, data, contact, shape), turning))
        put(contact.data.ahead_point[n], x)


@inlined
def _point_of(model: Model, data: Workspace, contact: AnyContacts, n: int) -> Vec3:
    """The point of contact n, world axes [m]."""
    if contact.lanes is None:
        return triple(contact.data.point[n])
    end = 1 if contact.model.body[contact.data.shape[n, 1]] > 0 else 0  # the arm of the world is not listed
    body = contact.model.body[contact.data.shape[n, end]]
    return plus(origin_of(model, data, body), row_of(contact.data.arm[n], end))


# ------------------------------------------------------------------ the entry


@njit
def measure(contact: ContactBundle, narrow: NarrowBundle) -> None:
    """Set contact.data.ahead of the contacts of a robot, or of a lane, whose shapes are placed at the end of the step.
    Needs contact.data.ahead_point.
    """
    first = 0
    while first < contact.data.number[CONTACTS]:
        end = _end_of_pair(contact, first)
        if _are_aimed(contact, first, end):
            _measure(contact, narrow, first, end)
        first = end


@inlined
def _end_of_pair(contact: ContactBundle, first: int) -> int:
    """The number after the last contact of the pair of shapes of contact `first`; contacts of a pair are adjacent."""
    end = first + 1
    while (
        end < contact.data.number[CONTACTS]
        and contact.data.shape[end, 0] == contact.data.shape[first, 0]
        and contact.data.shape[end, 1] == contact.data.shape[first, 1]
    ):
        end += 1
    return end


@inlined
def _are_aimed(contact: ContactBundle, first: int, end: int) -> bool:
    aimed = False
    for n in range(first, end):
        contact.data.ahead[n] = _UNKNOWN
        aimed = aimed or contact.data.aimed[n] > 0.0
    return aimed


@njit
def _measure(contact: ContactBundle, narrow: NarrowBundle, first: int, end: int) -> None:
    """Measure the contacts of a pair where its shapes are placed. A point found belongs to the contact of the same
    feature, else to the contact nearest to it."""
    a = contact.data.shape[first, 0]
    b = contact.data.shape[first, 1]
    reach = contact.data.margin[a] + contact.data.margin[b]
    for n in range(first, end):
        reach = max(reach, contact.data.distance[n])
    manifold = narrow.manifold
    manifold.number[0] = 0
    collide(narrow.shapes, contact.data, narrow.gjk, a, b, reach, manifold)
    for found in range(manifold.number[0]):
        nearest, least = first, _UNKNOWN
        for n in range(first, end):
            way = minus(manifold.point[found], contact.data.ahead_point[n])
            square = -1.0 if contact.data.feature[n] == manifold.feature[found] else dot(way, way)
            if square < least:
                nearest, least = n, square
        contact.data.ahead[nearest] = min(contact.data.ahead[nearest], manifold.gap[found])


# ------------------------------------------------------------------ the choice of contacts, and their biases


@njit
def turns_far(model: Model, data: Workspace, inputs: Inputs, contact: AnyContacts, n: int) -> Real:
    """More than 0 where contact n is new and one of its bodies turns farther in the step than its row foresees, or
    where the rotation changes in the step, since the drift is computed from the rotation before. In both widths.

    Needs the bodies' velocities.
    """
    h = inputs.time_step[0]
    struck = _STRUCK * _STRUCK
    beyond = zero_like(contact.data.gap[n]) - 1.0
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        if body > 0:
            o = triple(data.angular_velocity[body])
            before = triple(contact.data.turning[body])
            change = minus(o, before)
            most = contact.data.bend[n, end]
            square = h * h * dot(o, o)
            arrived = where_greater(contact.data.start[n, ALONG_NORMAL], zero_like(square), zero_like(square), square)
            beyond = largest(beyond, arrived - most * most)
            changed = 2.0 * h * h * dot(change, change) * (square + h * h * dot(before, before)) - struck
            beyond = largest(
                beyond, where_greater(most, zero_like(most) + ANY_TURN * 0.5, zero_like(most) - 1.0, changed)
            )
    return beyond


@njit
def choose_aimed(robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, chosen: Real) -> Real:
    """Choose the contacts to aim where `chosen` is 1, contact.data.aimed, all hard ones of bodies that turn far; 1
    where one of them may sink. Needs the bodies' velocities of step.velocity.
    """
    zero, h = zero_like(chosen), run.inputs.time_step[0]
    sinking = zero
    for n in range(contact.data.number[CONTACTS]):
        contact.data.aimed[n] = where_greater(chosen, zero, zero, contact.data.aimed[n])
        if contact.data.row[n] < 0 or contact.data.soft[n] == 1:
            continue
        may = chosen
        if contact.lanes is not None:
            may = may * contact.lanes.present[n]
        may = where_greater(contact.data.restitution[n], zero, zero, may)  # left to the sequence of impacts
        may = may * largest(is_positive(contact.data.overtaken[n]), _turns(robot.data, contact, n, h))
        if not any_positive(may):
            continue
        if contact.lanes is None:
            for end in range(2):
                contact.data.bend[n, end] = trusted_turn(contact, n, end)
        may = may * is_positive(_leaves_row(robot, run.inputs, contact, n))
        if not any_positive(may):
            continue
        contact.data.aimed[n] = largest(contact.data.aimed[n], may)
        curve = _curve_of(rows, contact, n)
        contact.data.foreseen[n] = where_greater(may, zero, curve, contact.data.foreseen[n])
        contact.data.curve[n] = where_greater(may, zero, curve, contact.data.curve[n])
        contact.data.change[n] = where_greater(may, zero, zero, contact.data.change[n])
        sinking = largest(sinking, may * _sinks(robot, run, rows, contact, n))
    return sinking


@inlined
def _sinks(robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, n: int) -> Real:
    """1 where contact n, whose gap bends otherwise than its row foresees, pushes or may push: its row alone may leave
    the contact deeper than it asks for.
    """
    h = run.inputs.time_step[0]
    near = _ODD * _turned_inside(robot.model, robot.data, h, contact, n) - h * slack(rows, run.step, contact, n)
    return is_positive(largest(near, push(rows, contact, n)))


@inlined
def _leaves_row(robot: RobotBundle, inputs: Inputs, contact: AnyContacts, n: int) -> Real:
    """More than 0 where the gap of contact n bends in the step otherwise than its row foresees, in both widths."""
    h = inputs.time_step[0]
    turning = turns_far(robot.model, robot.data, inputs, contact, n)
    bends = largest(turning, _curves(robot.data, h, contact, n))
    return least(bends, _FARTHEST - h * _fastest_turn(robot.data, contact, n))


@inlined
def _curves(data: Workspace, h: float, contact: AnyContacts, n: int) -> Real:
    """More than 0 where contact n closes faster than its row foresees although it pushed in the last step, and its row
    does not know the curvature of the gap, or its bodies turn too far for it.

    Where the row knows the curvature, a blow in the last step explains the closing, and the blow is over.
    """
    unknown = zero_like(contact.data.gap[n]) - 1.0
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        most = contact.data.bend[n, end]
        unknown = largest(unknown, 1.5 * STRUCK_TURN - most)
        if body > 0:
            o = triple(data.angular_velocity[body])
            unknown = largest(unknown, h * h * dot(o, o) - most * most)
    return least(unknown, h * contact.data.overtaken[n] - SUNK * size_at(contact, n))


@inlined
def _turns(data: Workspace, contact: AnyContacts, n: int, h: float) -> Real:
    """1 where one of the bodies of contact n turns by more than STRUCK_TURN in the step, or did so before it."""
    square = zero_like(contact.data.gap[n])
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        if body > 0:
            o = triple(data.angular_velocity[body])
            before = triple(contact.data.turning[body])
            square = largest(square, largest(dot(o, o), dot(before, before)))
    return is_positive(h * h * square - STRUCK_TURN * STRUCK_TURN)


@inlined
def push(rows: Rows, contact: AnyContacts, n: int) -> Real:
    """The largest impulse of the normal rows of contact n, in both widths."""
    row = contact.data.row[n]
    most = rows.impulse[row]
    for k in range(1, contact.data.rows[n] if is_pyramid(contact, n) else 1):
        most = largest(most, rows.impulse[row + k])
    return most


@inlined
def _rate(rows: Rows, contact: AnyContacts, n: int, v: Lanes1) -> Real:
    """The rate at which the gap of contact n opens by the bodies' velocities v (nv,), to first order [m/s]."""
    row = contact.data.row[n]
    if is_pyramid(contact, n):  # the mean of two edges is the normal
        return 0.5 * (row_rate(rows, row, v) + row_rate(rows, row + 1, v))
    return row_rate(rows, row, v)


@inlined
def slack(rows: Rows, step: Step, contact: AnyContacts, n: int) -> Real:
    """The opening speed of contact n in excess of the speed that its row asks for [m/s]."""
    row = contact.data.row[n]
    bias = rows.bias[row]
    if is_pyramid(contact, n):
        bias = 0.5 * (rows.bias[row] + rows.bias[row + 1])
    return _rate(rows, contact, n, step.velocity) + bias


@njit
def aim(robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, chosen: Real) -> Real:
    """Aim the contacts that are aimed at the gaps foreseen, where `chosen` is 1; 1 where the bias of one that acts
    changes noticeably. contact.data.unaimed keeps the curves from before.

    Needs the bodies' velocities of step.velocity. Where an aim has changed the gap by less than it asked for, the next
    aim asks for more in proportion (Aitken 1926), down to `_floor`. A gap that opens by more than the rotation of the
    bodies can explain belongs to another contact.
    """
    h, zero = run.inputs.time_step[0], zero_like(chosen)
    one, changed = zero + 1.0, zero
    for n in range(contact.data.number[CONTACTS]):
        aimed = chosen * contact.data.aimed[n]
        if not any_positive(aimed):
            continue
        contact.data.unaimed[n] = where_greater(aimed, zero, contact.data.curve[n], contact.data.unaimed[n])
        aimed = where_greater(zero + _UNKNOWN, contact.data.ahead[n], aimed, zero)
        ahead = where_greater(aimed, zero, contact.data.ahead[n], contact.data.distance[n])
        rate = _rate(rows, contact, n, run.step.velocity)
        curve = (ahead - contact.data.distance[n]) / h - rate
        change = curve - contact.data.curve[n]
        odd = _ODD * _turned_inside(robot.model, robot.data, h, contact, n)
        aimed = aimed - aimed * is_positive(change) * where_greater(curve * h, odd, one, zero)
        acts = largest(is_positive(push(rows, contact, n)), is_positive(-slack(rows, run.step, contact, n) - change))
        before = contact.data.change[n]
        contact.data.change[n] = where_greater(aimed, zero, acts * change, before)
        growing = acts * where_greater(absolute(before), absolute(change), is_positive(before * change), zero)
        ratio = growing * change / where_greater(growing, zero, before, one)
        change = change * where_greater(growing, zero, least(one / (one - ratio), zero + _FARTHER), one)
        curve = largest(contact.data.curve[n] + change, _floor(robot, h, rows, contact, n))
        change = curve - contact.data.curve[n]
        bend_to(rows, contact, n, curve, aimed)
        size = size_at(contact, n)
        misses = largest(is_positive(-h * change - _SETTLED * size), is_positive(h * change - SUNK * size))
        changed = largest(changed, aimed * acts * misses)
    return changed


@inlined
def _floor(robot: RobotBundle, h: float, rows: Rows, contact: AnyContacts, n: int) -> Real:
    """The lowest curve of contact n [m/s]: with a lower one, the surfaces would open faster than they closed, which
    gains energy. Surfaces that slide or turn on each other close in each step as fast as they opened in the one before,
    up to the change of their rotation meanwhile; closing faster than the curvature of their motion is an impact.
    """
    asked = rows.rate[contact.data.row[n]] * contact.data.gap[n]
    closing = -_rate(rows, contact, n, robot.state.qvel)
    zero, size = zero_like(closing), size_at(contact, n)
    angle = h * _fastest_turn(robot.data, contact, n)
    way = h * _passing(robot.model, robot.data, contact, n) + 2.0 * angle * size
    most = least((1.0 + _GROWING * angle) * largest(closing, zero), way * way / (h * size))
    return least(least(-asked - most, contact.data.unaimed[n]), zero)


@inlined
def _fastest_turn(data: Workspace, contact: AnyContacts, n: int) -> Real:
    """The larger angular speed of the bodies of contact n [rad/s], in both widths."""
    square = zero_like(contact.data.gap[n])
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        if body > 0:
            o = triple(data.angular_velocity[body])
            square = largest(square, dot(o, o))
    return sqrt(square)


@inlined
def _turned_inside(model: Model, data: Workspace, h: float, contact: AnyContacts, n: int) -> Real:
    """An estimate of the bend of the gap of contact n in the step by the rotation of its bodies [m], in both widths."""
    turn = h * _fastest_turn(data, contact, n)
    way = zero_like(turn)
    for end in range(2):
        shape = contact.data.shape[n, end]
        if contact.model.body[shape] > 0:
            way = largest(way, h * length(velocity_of(model, data, contact, shape)))
    return turn * (way + turn * size_at(contact, n))


@inlined
def _passing(model: Model, data: Workspace, contact: AnyContacts, n: int) -> Real:
    """The speed at which the two shapes of contact n pass each other [m/s]."""
    one, two = contact.data.shape[n, 0], contact.data.shape[n, 1]
    return length(minus(velocity_of(model, data, contact, two), velocity_of(model, data, contact, one)))


@inlined
def _curve_of(rows: Rows, contact: AnyContacts, n: int) -> Real:
    """The part of contact n's bias that stands for the curvature of its gap [m/s]."""
    row = contact.data.row[n]
    bias = 0.5 * (rows.bias[row] + rows.bias[row + 1]) if is_pyramid(contact, n) else rows.bias[row]
    return bias - rows.rate[row] * contact.data.gap[n]


@inlined
def bend_to(rows: Rows, contact: AnyContacts, n: int, curve: Real, chosen: Real) -> None:
    """Replace the second-order term in the bias of contact n [m/s] where `chosen` is 1."""
    zero, row = zero_like(chosen), contact.data.row[n]
    for k in range(normal_rows(contact, n)):
        bent = rows.bias[row + k] + (curve - contact.data.curve[n])
        rows.bias[row + k] = where_greater(chosen, zero, bent, rows.bias[row + k])
    contact.data.curve[n] = where_greater(chosen, zero, curve, contact.data.curve[n])


@njit
def take_aims_back(rows: Rows, contact: AnyContacts, chosen: Real) -> None:
    """Restore the biases from before the last aim where `chosen` is 1."""
    for n in range(contact.data.number[CONTACTS]):
        aimed = chosen * contact.data.aimed[n]
        if any_positive(aimed):
            bend_to(rows, contact, n, contact.data.unaimed[n], aimed)
