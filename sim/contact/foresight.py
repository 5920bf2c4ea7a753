"""Foresees how the gaps of a step's contacts close along the arcs on which bodies turn.

The rows of contacts know the first derivative of their gaps, and of the second derivative the part that follows from
the velocities before the step (rolling.py). For a body that turns far in a step, or is struck in it, the remainder
leaves depths that add up from step to step. The contacts of these bodies are therefore aimed as loops are
(stepping/contact_aims.py): this file places the shapes where the velocities found lead, measures the gaps there by the
narrow phase of detection, and puts the mean curvature of each gap over the step into the bias of its normal row, in
place of the expected curvature. A step then leaves almost no penetration, and no bodies need to be pushed out
afterwards, which would throw them.

`foresee` is an entry of its own, compiled once for all variants of the step.
"""

from __future__ import annotations

from artsim.collision.narrow_phase import collide
from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import kinematics, like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.row import row_rate
from artsim.sim.contact.contact_rows import SUNK, is_pyramid, size_at
from artsim.sim.contact.detection import place_moving, velocity_of
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.rolling import ANY_TURN, STRUCK_TURN, trusted_turn
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Pack, Real
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.foundation.vec3 import cross, dot, length, minus, plus, plus_times, put, triple
from artsim.sim.geometry.contacts import ALONG_NORMAL, CONTACTS, AnyContacts, ContactBundle, NarrowBundle
from artsim.sim.run_data.run_records import Inputs, Rows, RunBundle, Step

_UNKNOWN = 1e308  # [m] a gap beyond the reach of the narrow phase
_FARTHEST = 0.5  # [rad] rotation in a step above which contacts are not aimed: the contact returns within few steps
_SETTLED = 1e-7  # change of the gaps at the end, relative to the shapes' sizes, that ends the aims
_FARTHER = 8.0  # largest aim, as a multiple of the missing gap
_GROWING = 4.0  # share by which surfaces may open faster than they closed, per rotation in a step [1/rad]
_STRUCK = 1e-3  # rotation in a step times its change in it [rad²] up to which the rotation before the step is enough
_ODD = 2.0  # times (hω)² of the sizes: the farthest that the gap of one contact can bend in a step


# ------------------------------------------------------------------ the entry


@njit
def foresee(robot: RobotBundle, run: RunBundle, contact: ContactBundle, narrow: NarrowBundle) -> None:
    """Set contact.data.ahead, the distances of the surfaces at the end of the step with step.velocity; _UNKNOWN for
    surfaces out of reach. Needs the bodies' velocities of step.velocity; restores data and the places of shapes.
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
    first = 0
    while first < contact.data.number[CONTACTS]:
        end = _end_of_pair(contact, first)
        if _are_aimed(contact, first, end):
            _measure(contact, narrow, first, end)
        first = end
    expand(model, state.qpos, state.qvel, data)
    for k in range(step.tangent.shape[0]):
        data.drift[k] = step.tangent[k]
    kinematics(model, state.qpos, data)
    place_moving(model, data, contact)


@njit
def _note_paths(model: Model, data: Workspace, contact: ContactBundle, h: float) -> None:
    """Set contact.data.ahead_point: the mean of the two surfaces' points at the end of the step, world axes [m]."""
    for n in range(contact.data.number[CONTACTS]):
        x = triple(contact.data.point[n])
        for end in range(2):
            shape = contact.data.shape[n, end]
            arm = minus(contact.data.point[n], contact.data.position[shape])
            turning = cross(triple(data.angular_velocity[contact.model.body[shape]]), arm)
            x = plus_times(x, 0.5 * h, plus(velocity_of(model, data, contact, shape), turning))
        put(contact.data.ahead_point[n], x)


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
        aimed = aimed or contact.data.aimed[n] == 1
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
def sinks(robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, n: int) -> Real:
    """More than 0 where contact n, a hard one, pushes or may push, and one of its bodies turns far: its row alone may
    leave the contact deeper than the row asks for. In both widths.

    Needs the bodies' velocities of step.velocity.
    """
    h = run.inputs.time_step[0]
    far = _leaves_row(robot, run.inputs, contact, n)
    if any_positive(far):
        near = _ODD * _turned_inside(robot.model, robot.data, h, contact, n) - h * slack(rows, run.step, contact, n)
        far = least(far, largest(near, push(rows, contact, n)))
        zero = zero_like(far)
        far = where_greater(contact.data.restitution[n], zero, zero - 1.0, far)  # left to the sequence of impacts
    return far


@njit
def choose_aimed(robot: RobotBundle, run: RunBundle, rows: Rows, contact: ContactBundle) -> bool:
    """Choose the contacts to aim, contact.data.aimed, all hard ones of bodies that turn far; True if one of them may
    sink. Needs the bodies' velocities of step.velocity.
    """
    chosen = False
    h = run.inputs.time_step[0]
    for n in range(contact.data.number[CONTACTS]):
        contact.data.aimed[n] = 0
        if contact.data.row[n] < 0 or contact.data.soft[n] == 1 or contact.data.restitution[n] > 0.0:
            continue
        if not (contact.data.overtaken[n] > 0.0 or _turns(robot.data, contact, n, h)):
            continue
        for end in range(2):
            contact.data.bend[n, end] = trusted_turn(contact, n, end)
        if not _leaves_row(robot, run.inputs, contact, n) > 0.0:
            continue
        contact.data.aimed[n] = 1
        contact.data.curve[n] = _curve_of(rows, contact, n)
        contact.data.unaimed[n] = contact.data.curve[n]
        contact.data.change[n] = 0.0
        chosen = chosen or sinks(robot, run, rows, contact, n) > 0.0
    return chosen


@njit
def sinks_in_lanes(robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle) -> Pack:
    """More than 0 in lanes of a pack in which a contact may sink; they take the step alone."""
    worst = like(-1.0, robot.data)
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.row[n] >= 0 and contact.data.soft[n] == 0:
            deeper = sinks(robot, run, rows, contact, n)
            worst = largest(worst, least(deeper, contact.lanes.present[n]))
    return worst


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
def _turns(data: Workspace, contact: ContactBundle, n: int, h: float) -> bool:
    """True if one of the bodies of contact n turns by more than STRUCK_TURN in the step, or did so before it."""
    square = 0.0
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        if body > 0:
            o = triple(data.angular_velocity[body])
            before = triple(contact.data.turning[body])
            square = max(square, dot(o, o), dot(before, before))
    return h * h * square > STRUCK_TURN * STRUCK_TURN


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
def aim(robot: RobotBundle, run: RunBundle, rows: Rows, contact: ContactBundle) -> bool:
    """Aim the chosen contacts at the gaps foreseen; True if the bias of one that acts changes noticeably.

    Needs the bodies' velocities of step.velocity. Where an aim has changed the gap by less than it asked for, the next
    aim asks for more in proportion (Aitken 1926), down to `_floor`. A gap that opens by more than the rotation of the
    bodies can explain belongs to another contact.
    """
    h = run.inputs.time_step[0]
    changed = False
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.aimed[n] == 0 or contact.data.ahead[n] >= _UNKNOWN:
            continue
        rate = _rate(rows, contact, n, run.step.velocity) + contact.data.belt[n, ALONG_NORMAL]
        curve = (contact.data.ahead[n] - contact.data.distance[n]) / h - rate
        change = curve - contact.data.curve[n]
        if change > 0.0 and curve * h > _ODD * _turned_inside(robot.model, robot.data, h, contact, n):
            continue
        acts = push(rows, contact, n) > 0.0 or slack(rows, run.step, contact, n) + change < 0.0
        before = contact.data.change[n]
        contact.data.change[n] = change if acts else 0.0
        if acts and abs(before) > abs(change) and before * change > 0.0:
            change *= min(1.0 / (1.0 - change / before), _FARTHER)
        curve = max(contact.data.curve[n] + change, _floor(robot, h, rows, contact, n))
        change = curve - contact.data.curve[n]
        bend_to(rows, contact, n, curve)
        misses = -h * change > _SETTLED * size_at(contact, n) or h * change > SUNK * size_at(contact, n)
        changed = changed or (acts and misses)
    return changed


@inlined
def _floor(robot: RobotBundle, h: float, rows: Rows, contact: ContactBundle, n: int) -> float:
    """The lowest curve of contact n [m/s]: with a lower one, the surfaces would open faster than they closed, which
    gains energy. Surfaces that slide or turn on each other close in each step as fast as they opened in the one before,
    up to the change of their rotation meanwhile; closing faster than the curvature of their motion is an impact.
    """
    asked = rows.rate[contact.data.row[n]] * contact.data.gap[n]
    closing = -_rate(rows, contact, n, robot.state.qvel) - contact.data.belt[n, ALONG_NORMAL]
    size = size_at(contact, n)
    angle = h * _fastest_turn(robot.data, contact, n)
    way = h * _passing(robot.model, robot.data, contact, n) + 2.0 * angle * size
    most = min((1.0 + _GROWING * angle) * max(closing, 0.0), way * way / (h * size))
    return min(-asked - most, contact.data.unaimed[n], 0.0)


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
def _passing(model: Model, data: Workspace, contact: ContactBundle, n: int) -> float:
    """The speed at which the two shapes of contact n pass each other [m/s]."""
    one, two = contact.data.shape[n, 0], contact.data.shape[n, 1]
    return length(minus(velocity_of(model, data, contact, two), velocity_of(model, data, contact, one)))


@inlined
def _curve_of(rows: Rows, contact: ContactBundle, n: int) -> float:
    """The part of contact n's bias that stands for the curvature of its gap [m/s]."""
    row = contact.data.row[n]
    bias = 0.5 * (rows.bias[row] + rows.bias[row + 1]) if is_pyramid(contact, n) else rows.bias[row]
    return bias - rows.rate[row] * contact.data.gap[n] - contact.data.belt[n, ALONG_NORMAL]


@inlined
def bend_to(rows: Rows, contact: ContactBundle, n: int, curve: float) -> None:
    """Replace the second-order term in the bias of contact n [m/s]."""
    row = contact.data.row[n]
    for k in range(contact.data.rows[n] if is_pyramid(contact, n) else 1):
        rows.bias[row + k] += curve - contact.data.curve[n]
    contact.data.curve[n] = curve


@njit
def keep_aims(contact: ContactBundle) -> None:
    """Keep the present biases for `take_aims_back`."""
    for n in range(contact.data.number[CONTACTS]):
        contact.data.unaimed[n] = contact.data.curve[n]


@njit
def take_aims_back(rows: Rows, contact: ContactBundle) -> None:
    """Restore the biases from before the last aim."""
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.aimed[n] == 1:
            bend_to(rows, contact, n, contact.data.unaimed[n])
