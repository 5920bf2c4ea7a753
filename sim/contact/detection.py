"""Detects contacts: places shapes, sorts and sweeps the boxes around them, passes pairs to collision's kernels.

Contacts are detected speculatively: each shape has a speculative margin, the distance by which it may move in the step,
and shapes nearer than the sum of their margins have a contact with a gap, which the step may close but not overshoot.
Should the step move a shape beyond its margin after all, contacts are detected again with a larger one (`outrun`). Only
shapes that turn far within a step can then tunnel: advancement.py checks them on request, and their margins cover only
the straight part of their points' motion. Where all shapes fall together, velocities are taken in a frame that falls
along, in which the falling shapes are slow and the ground is fast.

`detect` is an entry of its own, compiled once for all variants of the step, which call it through its address. The
entry reads the places of the shapes and nothing else of the engine. Packs use it to detect the contacts of one lane
after the other (pack_detection.py); arguments named `lane` are 0 for a single robot.
"""

from __future__ import annotations

import math

from artsim.collision.narrow_phase import collide
from artsim.collision.shapes import CAPSULE, PLANE
from artsim.sim.articulation.kinematics import like, linear_velocities, origin_of, point_of, velocities
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import (
    ALLOWED,
    CONTACT_MEMORY,
    FEATURE,
    FIRST_IMPULSE,
    REGULARISED,
    SHAPE_A,
    SHAPE_B,
    RobotBundle,
    State,
    Workspace,
)
from artsim.sim.constraints.impedance import is_convex
from artsim.sim.constraints.row import if_agreed
from artsim.sim.contact.contact_law import centre_of_curvature
from artsim.sim.contact.contact_rows import impulse_along
from artsim.sim.contact.rolling import lag, note_curvature, tilt
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, lane_get, real, where_greater, zero_like
from artsim.sim.foundation.mat3 import set_rotation, turn, turn_matrix
from artsim.sim.foundation.records import Lanes1, Lanes2, Real, Reals1, Reals2, Vec3
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.foundation.vec3 import (
    cross,
    divided,
    dot,
    length,
    minus,
    plus,
    plus_times,
    put,
    row_of,
    set_row,
    times,
    triple,
    triple_at,
)
from artsim.sim.geometry.contacts import (
    ALONG_NORMAL,
    ALONG_TANGENT,
    BEFORE_DIMENSION,
    BEFORE_GAP,
    BEFORE_POINT,
    CONTACTS,
    DIRECTIONS,
    FOUND_CONTACTS,
    LEAST_MIX,
    TOUCHING,
    AnyContacts,
    AnySweep,
    ContactBundle,
    EitherContacts,
    NarrowBundle,
)
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.phases import BROAD_PHASE, NARROW_PHASE, Clock
from artsim.sim.run_data.run_records import Inputs, Rows, RunBundle

_ACCELERATION = 20.0  # [m/s²] that a body may acquire without warning: gravity, and as much again
_GROWTH = 1.5  # factor for margins that were too small
_TOGETHER = 0.5  # share of the speeds left in a frame that is worth moving with
_ALIGNED = 1e-20  # square of the sine of the angle to the normal above which an axis has a direction in the plane


# ------------------------------------------------------------------ in the step


@njit
def place_static(model: Model, data: Workspace, contact: AnyContacts) -> None:
    """Place the shapes that never move."""
    for n in range(contact.model.body.shape[0]):
        contact.data.margin[n] = like(0.0, data)
        if contact.model.body[n] == 0:
            _place(model, data, contact, n)


@njit
def find_contacts(robot: RobotBundle, inputs: Inputs, contact: ContactBundle) -> bool:
    """Detect the contacts of this configuration; False when they exceed the room. Needs kinematics."""
    place_shapes(robot, inputs, contact)
    if contact.data.advancement[0] != 0:
        for n in range(contact.model.body.shape[0]):
            contact.data.margin[n] *= straight_share(robot.data, inputs, contact, n)
    return detected(robot, contact)


@njit
def place_shapes(robot: RobotBundle, inputs: Inputs, contact: AnyContacts) -> None:
    """Place all shapes and set their margins, in both widths. Needs kinematics."""
    model, data = robot.model, robot.data
    h = inputs.time_step[0]
    velocities(model, robot.state.qvel, data)
    place_moving(model, data, contact)
    _choose_frame(model, data, contact)
    for b in range(contact.data.turning.shape[0]):
        put(contact.data.turning[b], triple(data.angular_velocity[b]))
    still = h * length(contact.data.common)
    for n in range(contact.model.body.shape[0]):
        moves = contact.model.body[n] > 0
        contact.data.margin[n] = h * speed_bound(model, data, contact, n) + h * h * _ACCELERATION if moves else still
        if is_convex(inputs):  # which knows contacts that touch alone
            contact.data.margin[n] = zero_like(still)


@njit
def place_moving(model: Model, data: Workspace, contact: AnyContacts) -> None:
    """Place the shapes that can move. Needs kinematics."""
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] > 0:
            _place(model, data, contact, n)


@njit
def _choose_frame(model: Model, data: Workspace, contact: AnyContacts) -> None:
    """contact.data.common: the mean velocity of the movable shapes if most of them move with it, else 0."""
    count = 0
    zero = like(0.0, data)
    all_of_it = zero
    total = (zero, zero, zero)
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] > 0:
            speed = velocity_of(model, data, contact, n)
            total = plus(total, speed)
            all_of_it += length(speed)
            count += 1
    mean = divided(total, max(count, 1))
    left = zero
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] > 0:
            left += length(minus(velocity_of(model, data, contact, n), mean))
    most = _TOGETHER * all_of_it if count > 1 else zero
    contact.data.common[0] = where_greater(most, left, mean[0], zero)
    contact.data.common[1] = where_greater(most, left, mean[1], zero)
    contact.data.common[2] = where_greater(most, left, mean[2], zero)


@njit
def detected(robot: RobotBundle, contact: ContactBundle) -> bool:
    """Detect the contacts at the shapes' places and margins; see `find_contacts`."""
    run_entry(contact.data.detector)
    if contact.data.number[FOUND_CONTACTS] > contact.data.number[CONTACTS]:
        return False
    recognise(robot.model, robot.data, robot.state.contact, contact, 0)
    return True


@njit
def recognise(model: Model, data: Workspace, memory: Reals2, contact: ContactBundle, lane: int) -> None:
    """Locate the contacts of a lane on their bodies, recall their impulses and counts of the last step from `memory`,
    and note how the surfaces curve there."""
    for n in range(contact.data.number[CONTACTS]):
        for end in range(2):
            body = contact.model.body[contact.data.shape[n, end]]
            origin = (0.0, 0.0, 0.0)
            if body > 0:
                root = model.body_root[body]
                origin = plus(_lane_triple(data.offset, root, lane), _lane_triple(data.arm, body, lane))
            put(contact.data.arm[n, end], minus(contact.data.point[n], origin))
    _recall(memory, contact)
    for n in range(contact.data.number[CONTACTS]):
        note_curvature(contact, n)


@inlined
def _lane_triple(a: Lanes2, n: int, lane: int) -> Vec3:
    """Row n of an array (…, 3) in one lane, as floats."""
    return lane_get(a, 3 * n, lane), lane_get(a, 3 * n + 1, lane), lane_get(a, 3 * n + 2, lane)


@njit
def note_found(before: Reals2, contact: ContactBundle) -> None:
    """Copy the contacts to before (k, CONTACT_BEFORE) ahead of another detection."""
    for n in range(contact.data.number[CONTACTS]):
        earlier = before[n]
        earlier[SHAPE_A] = contact.data.shape[n, 0]
        earlier[SHAPE_B] = contact.data.shape[n, 1]
        earlier[FEATURE] = contact.data.feature[n]
        earlier[BEFORE_DIMENSION] = contact.data.dimension[n]
        earlier[BEFORE_GAP] = contact.data.gap[n]
        for j in range(3):
            earlier[BEFORE_POINT + j] = contact.data.point[n, j]


@njit
def are_as_before(before: Reals2, contact: ContactBundle, count: int) -> bool:
    """True if the contacts are the `count` contacts of `before`, so that results obtained with these hold."""
    if contact.data.number[CONTACTS] != count:
        return False
    for n in range(count):
        earlier = before[n]
        if (
            not _is_same(earlier, contact, n)
            or earlier[BEFORE_DIMENSION] != contact.data.dimension[n]
            or earlier[BEFORE_GAP] != contact.data.gap[n]
        ):
            return False
        for j in range(3):
            if earlier[BEFORE_POINT + j] != contact.data.point[n, j]:
                return False
    return True


@inlined
def _is_same(earlier: Reals1, contact: ContactBundle, n: int) -> bool:
    """True if contact n is between the same two shapes, at the same feature, as the earlier one."""
    same: bool = (
        earlier[SHAPE_A] == contact.data.shape[n, 0]
        and earlier[SHAPE_B] == contact.data.shape[n, 1]
        and earlier[FEATURE] == contact.data.feature[n]
    )
    return same


@njit
def outrun(model: Model, data: Workspace, run: RunBundle, contact: ContactBundle) -> bool:
    """True if step.velocity moves a shape beyond its speculative margin, which is then enlarged."""
    inputs = run.inputs
    h = inputs.time_step[0]
    velocities(model, run.step.velocity, data)
    beyond = 0.0
    for n in range(contact.model.body.shape[0]):
        if contact.model.body[n] > 0:
            way = h * speed_bound(model, data, contact, n) * straight_share(data, inputs, contact, n)
            beyond = largest(beyond, widen(contact, n, way))
    return beyond > 0.0


@inlined
def widen(contact: AnyContacts, n: int, way: Real) -> Real:
    """1 where shape n moves beyond its margin, which is then enlarged; else 0; in both widths."""
    margin = contact.data.margin[n]
    zero = zero_like(margin)
    contact.data.margin[n] = where_greater(way, margin, _GROWTH * way, margin)
    return where_greater(way, margin, zero + 1.0, zero)


@inlined
def straight_share(data: Workspace, inputs: Inputs, contact: EitherContacts, n: int) -> Real:
    """The share of the step in which shape n counts as moving straight, in both widths; 1 without the continuous
    check."""
    share = real(1.0, contact.data.margin[n])
    if contact.lanes is None:
        if contact.data.advancement[0] != 0:
            share = _share_under_check(data, inputs, contact.data, contact, n)
    elif contact.sweep is not None:
        share = _share_under_check(data, inputs, contact.sweep, contact, n)
    return share


@inlined
def _share_under_check(data: Workspace, inputs: Inputs, sweep: AnySweep, contact: AnyContacts, n: int) -> Real:
    """The share of the step in which shape n counts as moving straight, under the continuous check, which has
    sweep.straight; in both widths."""
    angle = inputs.time_step[0] * length(data.angular_velocity[contact.model.body[n]])
    most = real(sweep.straight[n], angle)
    return most / largest(angle, most) if contact.model.body[n] > 0 else real(1.0, angle)


@inlined
def _place(model: Model, data: Workspace, contact: AnyContacts, n: int) -> None:
    body = contact.model.body[n]
    set_row(contact.data.position, n, point_of(model, data, body, contact.model.place[n]))
    set_rotation(contact.data.rotation, n, turn_matrix(data.rotation, body, contact.model.turn[n]))


@inlined
def speed_bound(model: Model, data: Workspace, contact: AnyContacts, n: int) -> Real:
    """A bound of the speed of shape n's points, in the frame that moves with contact.data.common [m/s]."""
    speed = minus(velocity_of(model, data, contact, n), contact.data.common)
    return length(speed) + length(data.angular_velocity[contact.model.body[n]]) * contact.model.swing[n]


@inlined
def velocity_of(model: Model, data: Workspace, contact: AnyContacts, n: int) -> Vec3:
    """Velocity of shape n's origin [m/s]."""
    body = contact.model.body[n]
    arm = minus(contact.data.position[n], origin_of(model, data, body))
    return plus(cross(triple(data.angular_velocity[body]), arm), data.velocity[body])


# ------------------------------------------------------------------ second order


@njit
def find_drifts(model: Model, v: Lanes1, data: Workspace, inputs: Inputs, contact: AnyContacts) -> None:
    """contact.data.drift and contact.data.swerve of every contact at velocities v (nv,), in both widths. Needs the
    bodies' angular velocities and accelerations as in `_set_drift`; leaves angular velocities as they are.
    """
    if _has_turning_normals(contact):
        linear_velocities(model, v, data)
    for n in range(contact.data.number[CONTACTS]):
        one = straight_share(data, inputs, contact, contact.data.shape[n, 0])
        two = straight_share(data, inputs, contact, contact.data.shape[n, 1])
        _set_drift(data, inputs.time_step[0], contact, n, one, two)


@inlined
def _has_turning_normals(contact: AnyContacts) -> bool:
    """True if the normal of a contact turns at a known rate."""
    for n in range(contact.data.number[CONTACTS]):
        if any_positive(contact.data.carriers[n]):
            return True
    return False


@inlined
def _parting_of_centres(data: Workspace, contact: AnyContacts, n: int) -> Vec3:
    """Velocity of the second surface's centre of curvature at contact n relative to the first's [m/s]."""
    zero = zero_like(contact.data.gap[n])
    apart = (zero, zero, zero)
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        if body > 0:
            sign = 1.0 if end == 1 else -1.0
            turning = cross(row_of(data.angular_velocity, body), _centre_of_curvature(contact, n, end, sign))
            apart = plus_times(apart, sign, plus(row_of(data.velocity, body), turning))
    return apart


@inlined
def _centre_of_curvature(contact: AnyContacts, n: int, end: int, sign: float) -> Vec3:
    """The centre of curvature of the surface of one end of contact n, from the origin of its body; see
    `centre_of_curvature`."""
    N = triple(contact.data.frame[n, ALONG_NORMAL])
    rounding = contact.model.rounding[contact.data.shape[n, end]]
    return centre_of_curvature(triple(contact.data.arm[n, end]), N, sign, contact.data.distance[n], rounding)


@njit
def _set_drift(data: Workspace, h: float, contact: AnyContacts, n: int, one: Real, two: Real) -> None:
    """Set contact.data.drift of contact n: the acceleration along the normal of one surface's centre of curvature
    against the other's, with the terms of the turning normal and of the contact's motion over the surfaces; and
    contact.data.swerve: the change of the slip along the tangents where the contact rolls. In both widths.

    A sphere's gap changes with its centre, for any rotation. For a shape that turns farther than it moves straight, a
    second derivative says little: one and two are the shares of the step in which the two shapes move straight. Needs
    velocities, and the accelerations at zero independent acceleration, as the bias leaves them: less gravity, the
    world's too.
    """
    N = triple(contact.data.frame[n, ALONG_NORMAL])
    drift = zero_like(contact.data.drift[n])
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        if body > 0:
            sign = 1.0 if end == 1 else -1.0
            share = two if end == 1 else one
            y = _centre_of_curvature(contact, n, end, sign)
            drift += sign * acceleration_along(data, body, N, y) * (share * share)
    contact.data.swerve[n, 0] = zero_like(drift)
    contact.data.swerve[n, 1] = zero_like(drift)
    turns, rolls = any_positive(contact.data.carriers[n]), any_positive(contact.data.span[n])
    if turns or rolls:
        first = row_of(data.angular_velocity, contact.model.body[contact.data.shape[n, 0]])
        second = row_of(data.angular_velocity, contact.model.body[contact.data.shape[n, 1]])
        if turns:
            share = least(one, two)
            drift += share * share * tilt(contact, n, first, second, _parting_of_centres(data, contact, n), h)
        if rolls:
            lagging = lag(contact, n, minus(second, first), h)
            square = dot(lagging, lagging)
            drift += dot(N, lagging)
            for k in range(2):
                swerve = _swerve(data, contact, n, 1 + k, N, lagging)
                contact.data.swerve[n, k] = where_greater(square, zero_like(square), swerve, zero_like(square))
    contact.data.drift[n] = drift


@inlined
def _swerve(data: Workspace, contact: AnyContacts, n: int, j: int, N: Vec3, lagging: Vec3) -> Real:
    """Rate of change of contact n's slip along its direction j where it rolls [m/s²]."""
    T = triple(contact.data.frame[n, j])
    value = dot(T, lagging)
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        if body > 0:
            sign = 1.0 if end == 1 else -1.0
            half = 0.5 * sign * contact.data.distance[n]
            y = plus_times(triple(contact.data.arm[n, end]), half, N)
            value += sign * acceleration_along(data, body, T, y)
    return value


@inlined
def acceleration_along(data: Workspace, body: int, N: Vec3, r: Vec3) -> Real:
    """Acceleration along N of the body's point at r from its origin, at zero independent acceleration [m/s²]."""
    w = row_of(data.angular_velocity, body)
    a = minus(row_of(data.acceleration, body), row_of(data.acceleration, 0))
    a = plus(plus(a, cross(w, cross(w, r))), cross(row_of(data.angular_acceleration, body), r))
    return dot(N, a)


# ------------------------------------------------------------------ from step to step


@njit
def _recall(memory: Reals2, contact: ContactBundle) -> None:
    """Warm-start the contacts: contact.data.start, their impulses in the last step, contact.data.regularised, the
    number of steps in which they yielded, and contact.data.allowed; 0 for new contacts. memory: as State.contact.

    A contact is looked for in the list of its second shape, which is never a plane. Several contacts of two shapes and
    one feature are paired in order with those of the last step.
    """
    for n in range(contact.data.earlier_contact.shape[0]):
        contact.data.earlier_contact[n] = -1
    for n in range(_count_known(memory) - 1, -1, -1):
        shape = int(memory[n, SHAPE_B])
        contact.data.next_earlier[n] = contact.data.earlier_contact[shape]
        contact.data.earlier_contact[shape] = n
    at = 0
    for n in range(contact.data.number[CONTACTS]):
        found = _find_known(memory, contact, n, at)
        at = found + 1 if found >= 0 else at
        for k in range(DIRECTIONS):
            contact.data.start[n, k] = memory[found, FIRST_IMPULSE + k] if found >= 0 else 0.0
        contact.data.regularised[n] = memory[found, REGULARISED] if found >= 0 else 0.0
        contact.data.allowed[n] = _allowed(memory, contact, n)


@inlined
def _allowed(memory: Reals2, contact: ContactBundle, n: int) -> float:
    """The depth at the start of the run of the pair of contact n, while the pair stays near [m]."""
    allowed = 0.0
    at = contact.data.earlier_contact[contact.data.shape[n, 1]]
    while at >= 0:
        if memory[at, SHAPE_A] == contact.data.shape[n, 0]:
            allowed = max(memory[at, ALLOWED], allowed)
        at = contact.data.next_earlier[at]
    return allowed


@inlined
def _find_known(memory: Reals2, contact: ContactBundle, n: int, after: int) -> int:
    """The place of contact n in the memory, the first one not before `after` if there are several; -1: none."""
    first = -1
    at = contact.data.earlier_contact[contact.data.shape[n, 1]]
    while at >= 0:
        if _is_same(memory[at], contact, n):
            if at >= after:
                return at
            first = at if first < 0 else first
        at = contact.data.next_earlier[at]
    return first


@njit
def remember(state: State, rows: Rows, contact: ContactBundle) -> None:
    """Store the contacts and their rows' impulses in state.contact (zeros where rows contradict each other)."""
    name_contacts(state.contact, contact)
    for n in range(contact.data.number[CONTACTS]):
        row = contact.data.row[n]
        if row >= 0:
            state.contact[n, REGULARISED] = rows.regularised[row]
            for k in range(contact.data.dimension[n]):
                state.contact[n, FIRST_IMPULSE + k] = if_agreed(rows, impulse_along(rows, contact, n, k))


@njit
def name_contacts(memory: Reals2, contact: ContactBundle) -> None:
    """Store the present contacts, with zero impulses, in memory, laid out as State.contact."""
    count = min(contact.data.number[CONTACTS], memory.shape[0])
    for n in range(max(count, _count_known(memory))):
        earlier = memory[n]
        for k in range(CONTACT_MEMORY):
            earlier[k] = 0.0  # a shape never touches itself: no contact
        if n < count:
            earlier[SHAPE_A] = contact.data.shape[n, 0]
            earlier[SHAPE_B] = contact.data.shape[n, 1]
            earlier[FEATURE] = contact.data.feature[n]
            earlier[ALLOWED] = contact.data.allowed[n]


@inlined
def _count_known(memory: Reals2) -> int:
    """The number of contacts in a memory, which come first in it."""
    known = 0
    while known < memory.shape[0] and memory[known, SHAPE_A] != memory[known, SHAPE_B]:
        known += 1
    return known


# ------------------------------------------------------------------ the entry


@njit
def detect(contact: ContactBundle, narrow: NarrowBundle, clock: Clock | None) -> None:
    """Detect all contacts: planes with solids in order, then solids by sort and sweep (Baraff 1992, ch. 6).

    The order depends on the shapes' places alone. clock: None if phases are not timed.
    """
    contact.data.number[CONTACTS] = 0
    contact.data.number[FOUND_CONTACTS] = 0
    for n in range(contact.model.solid.shape[0]):
        bound(contact, contact.model.solid[n])
    for j in range(contact.model.plane.shape[0]):
        for n in range(contact.model.solid.shape[0]):
            a = contact.model.plane[j]
            b = contact.model.solid[n]
            if contact.model.allowed[a, b] >= 0 and above_plane(contact, a, b) < reach_of(contact, a, b):
                _touch(contact, narrow, clock, a, b)
    sort_boxes(contact)
    kind = narrow.shapes.kind
    for j in range(contact.data.order.shape[0]):
        a = contact.data.order[j]
        box = contact.data.swept[j]
        end, low2, high2, low3, high3 = box[1], box[2], box[3], box[4], box[5]
        for n in range(j + 1, contact.data.order.shape[0]):
            other = contact.data.swept[n]
            if other[0] > end:
                break
            if other[2] <= high2 and low2 <= other[3] and other[4] <= high3 and low3 <= other[5]:
                b = contact.data.order[n]
                if contact.model.allowed[a, b] >= 0:
                    if kind[b] < kind[a] or (kind[b] == kind[a] and b < a):
                        _touch(contact, narrow, clock, b, a)
                    else:
                        _touch(contact, narrow, clock, a, b)


@njit
def sort_boxes(contact: ContactBundle) -> None:
    """Sort contact.data.order, and copy the boxes in that order, in which they are swept: reading them from all over
    takes longer than comparing."""
    axis = _sort(contact)
    for j in range(contact.data.order.shape[0]):
        n = contact.data.order[j]
        for k in range(3):
            along = (axis + k) % 3
            contact.data.swept[j, 2 * k] = contact.data.low[n, along]
            contact.data.swept[j, 2 * k + 1] = contact.data.high[n, along]


@inlined
def bound(contact: AnyContacts, n: int) -> None:
    """Set the box around shape n, with its margin and its reach, in both widths."""
    e = contact.model.extent[n]
    wide = contact.data.margin[n] + contact.model.reach[n]
    for k in range(3):
        R = contact.data.rotation[n, k]
        half = absolute(R[0]) * e[0] + absolute(R[1]) * e[1] + absolute(R[2]) * e[2] + wide
        contact.data.low[n, k] = contact.data.position[n, k] - half
        contact.data.high[n, k] = contact.data.position[n, k] + half


@inlined
def above_plane(contact: AnyContacts, a: int, b: int) -> Real:
    """Height of shape b's box above the plane a [m], in both widths."""
    R = contact.data.rotation
    height = zero_like(contact.data.margin[b])
    for k in range(3):
        height += R[a, k, 2] * (contact.data.position[b, k] - contact.data.position[a, k])
    for axis in range(3):
        along = R[a, 0, 2] * R[b, 0, axis] + R[a, 1, 2] * R[b, 1, axis] + R[a, 2, 2] * R[b, 2, axis]
        height -= absolute(along) * contact.model.extent[b, axis]
    return height


@njit
def _sort(contact: ContactBundle) -> int:
    """Sort contact.data.order along the axis on which the shapes are spread farthest, which is returned; ties go by
    number.
    """
    n = contact.data.order.shape[0]
    axis = 0
    widest = -1.0
    for k in range(3):
        mean = 0.0
        square = 0.0
        for j in range(n):
            x = contact.data.position[contact.model.solid[j], k]
            mean += x
            square += x * x
        spread = square - mean * mean / max(n, 1)
        if spread > widest:
            widest = spread
            axis = k
    for j in range(1, n):
        a = contact.data.order[j]
        k = j - 1
        while k >= 0 and _after(contact, contact.data.order[k], a, axis):
            contact.data.order[k + 1] = contact.data.order[k]
            k -= 1
        contact.data.order[k + 1] = a
    return axis


@inlined
def _after(contact: ContactBundle, a: int, b: int, axis: int) -> bool:
    after: bool = contact.data.low[a, axis] > contact.data.low[b, axis] or (
        contact.data.low[a, axis] == contact.data.low[b, axis] and a > b
    )
    return after


@inlined
def reach_of(contact: AnyContacts, a: int, b: int) -> Real:
    """Distance below which a and b, with their speculative margins, have a contact [m], in both widths."""
    return contact.data.margin[a] + contact.data.margin[b] + _margin(contact, a, b)


@inlined
def _margin(contact: AnyContacts, a: int, b: int) -> float:
    """Distance below which a and b have a contact, active or not [m]: MuJoCo's sums of margins and gaps, or the
    pair's."""
    k = contact.model.allowed[a, b] - 1
    if k >= 0:
        return contact.model.pair_margin[k] + contact.model.pair_gap[k]
    return contact.model.margin[a] + contact.model.margin[b] + contact.model.gap[a] + contact.model.gap[b]


@njit
def _touch(contact: ContactBundle, narrow: NarrowBundle, clock: Clock | None, a: int, b: int) -> None:
    """Detect the contacts of a pair whose boxes overlap."""
    mark(clock, BROAD_PHASE)
    reach = reach_of(contact, a, b)
    manifold = narrow.manifold
    manifold.number[0] = 0
    collide(narrow.shapes, contact.data, narrow.gjk, a, b, reach, manifold)
    for found in range(manifold.number[0]):
        if manifold.gap[found] > reach:
            continue
        contact.data.number[FOUND_CONTACTS] += 1
        n = contact.data.number[CONTACTS]
        if n == contact.data.gap.shape[0]:
            continue
        contact.data.number[CONTACTS] = n + 1
        contact.data.shape[n, 0] = a
        contact.data.shape[n, 1] = b
        contact.data.feature[n] = manifold.feature[found]
        for j in range(3):
            contact.data.point[n, j] = manifold.point[found, j]
        N = manifold.normal[found]
        _set_frame(contact.data.frame[n], triple(N), _alignment(contact, narrow, a, b))
        _set_belt(contact, n)
        _combine(contact, n, a, b, manifold.gap[found])
    mark(clock, NARROW_PHASE)


@inlined
def _alignment(contact: ContactBundle, narrow: NarrowBundle, a: int, b: int) -> Vec3:
    """The axis of a capsule on a plane, along which MuJoCo aligns the tangents of their contacts, where friction
    depends on its direction; else zeros."""
    k = contact.model.allowed[a, b] - 1
    differs = k >= 0 and contact.model.pair_friction[k, 0] != contact.model.pair_friction[k, 1]
    R = contact.data.rotation[b]
    found = (0.0, 0.0, 0.0)
    aligned = narrow.shapes.kind[a] == PLANE and narrow.shapes.kind[b] == CAPSULE
    if aligned and (differs or contact.model.pyramidal[0] != 0):
        found = (R[0, 2], R[1, 2], R[2, 2])
    return found


@inlined
def _set_frame(R: Reals2, n: Vec3, axis: Vec3) -> None:
    """Set the normal and two tangents: `axis` projected into the plane, unless it is 0 or normal to the plane; else the
    world's y, or z where the normal is near y (as in MuJoCo, where the two frictions of a pair depend on it).
    """
    y, z = (1.0, 0.0) if abs(n[1]) < 0.5 else (0.0, 1.0)
    along = y * n[1] + z * n[2]
    u = (-along * n[0], y - along * n[1], z - along * n[2])
    aligned = minus(axis, times(dot(axis, n), n))
    if dot(aligned, aligned) > _ALIGNED:
        u = aligned
    scale = 1.0 / math.sqrt(dot(u, u))
    u = times(scale, u)
    set_row(R, 0, n)
    set_row(R, 1, u)
    set_row(R, 2, cross(n, u))


@inlined
def _set_belt(contact: ContactBundle, n: int) -> None:
    """Set the velocities of the two surfaces at contact n, in its tangent plane, if geoms are belts."""
    for k in range(3):
        contact.data.belt[n, k] = 0.0
    for end in range(2):
        shape = contact.data.shape[n, end]
        b = contact.model.belt[shape]
        if b[0] == 0.0 and b[1] == 0.0 and b[2] == 0.0 and b[3] == 0.0 and b[4] == 0.0 and b[5] == 0.0:
            continue
        sign = 1.0 if end == 1 else -1.0
        v = turn(contact.data.rotation, shape, triple(b))
        w = turn(contact.data.rotation, shape, triple_at(b, 3))
        v = plus(v, cross(w, minus(contact.data.point[n], contact.data.position[shape])))
        for k in range(2):
            contact.data.belt[n, k] += sign * dot(contact.data.frame[n, ALONG_TANGENT + k], v)
        contact.data.belt[n, 2] += sign * dot(contact.data.frame[n, ALONG_NORMAL], w)


@njit
def _combine(contact: ContactBundle, n: int, a: int, b: int, distance: float) -> None:
    """Set properties of contact n from the two shapes, or their explicit pair (MuJoCo, Computation chapter,
    Contact)."""
    k = contact.model.allowed[a, b] - 1
    contact.data.distance[n] = distance
    contact.data.restitution[n] = max(contact.model.restitution[a], contact.model.restitution[b])
    if k >= 0:
        for j in range(5):
            contact.data.friction[n, j] = contact.model.pair_friction[k, j]
            contact.data.impedance[n, j] = contact.model.pair_impedance[k, j]
        given = contact.model.pair_friction_reference[k, 0] != 0.0 or contact.model.pair_friction_reference[k, 1] != 0.0
        for j in range(2):
            contact.data.reference[n, j] = contact.model.pair_reference[k, j]
            along = contact.model.pair_friction_reference[k, j] if given else contact.model.pair_reference[k, j]
            contact.data.friction_reference[n, j] = along
        contact.data.soft[n] = contact.model.pair_soft[k]
        contact.data.adhesion[n] = contact.model.pair_adhesion[k]
        contact.data.dimension[n] = contact.model.pair_dimension[k]
        contact.data.gap[n] = distance - contact.model.pair_margin[k]
    else:
        _mix(contact, n, a, b)
        contact.data.gap[n] = distance - (contact.model.margin[a] + contact.model.margin[b])
    contact.data.near[n] = 1 if is_near(contact, n) else 0
    if contact.data.near[n] == 0:
        contact.data.adhesion[n] = 0.0
    if contact.data.soft[n] == 1 and contact.data.gap[n] >= 0.0:
        contact.data.dimension[n] = 0  # detected only: a soft contact begins to act at the surface
    elif contact.data.friction[n, 0] <= 0.0 and contact.data.friction[n, 1] <= 0.0:
        contact.data.dimension[n] = 1


@inlined
def is_near(contact: ContactBundle, n: int) -> bool:
    """True if contact n is within its margin and gap."""
    a, b = contact.data.shape[n, 0], contact.data.shape[n, 1]
    k = contact.model.allowed[a, b] - 1
    excess = contact.model.pair_gap[k] if k >= 0 else contact.model.gap[a] + contact.model.gap[b]
    near: bool = contact.data.gap[n] <= max(excess, TOUCHING)
    return near


@njit
def _mix(contact: ContactBundle, n: int, a: int, b: int) -> None:
    """Set properties of contact n: those of the shape of higher priority; of shapes of one priority the larger friction
    and dimension, and softness by weight."""
    share = _share(contact, a, b)
    equal = contact.model.priority[a] == contact.model.priority[b]
    one = a if contact.model.priority[a] >= contact.model.priority[b] else b
    contact.data.dimension[n] = (
        max(contact.model.dimension[a], contact.model.dimension[b]) if equal else contact.model.dimension[one]
    )
    contact.data.adhesion[n] = (
        contact.model.adhesion[a] + contact.model.adhesion[b] if equal else contact.model.adhesion[one]
    )
    for j in range(5):
        friction = (
            max(contact.model.friction[a, j], contact.model.friction[b, j]) if equal else contact.model.friction[one, j]
        )
        contact.data.friction[n, j] = friction
        contact.data.impedance[n, j] = (
            share * contact.model.impedance[a, j] + (1.0 - share) * contact.model.impedance[b, j]
        )
    contact.data.soft[n] = (
        1 if (contact.model.soft[a] == 1 and share > 0.0) or (contact.model.soft[b] == 1 and share < 1.0) else 0
    )
    stiff = (
        equal and min(contact.model.reference[a, 0], contact.model.reference[b, 0]) <= 0.0
    )  # a stiffness, not a time
    for j in range(2):
        mixed = share * contact.model.reference[a, j] + (1.0 - share) * contact.model.reference[b, j]
        contact.data.reference[n, j] = (
            min(contact.model.reference[a, j], contact.model.reference[b, j]) if stiff else mixed
        )
        contact.data.friction_reference[n, j] = contact.data.reference[n, j]


@inlined
def _share(contact: ContactBundle, a: int, b: int) -> float:
    """Weight of a's softness in the mix with b's: 0 to 1."""
    if contact.model.priority[a] != contact.model.priority[b]:
        return 1.0 if contact.model.priority[a] > contact.model.priority[b] else 0.0
    first = contact.model.mix[a] if contact.model.mix[a] >= LEAST_MIX else 0.0
    second = contact.model.mix[b] if contact.model.mix[b] >= LEAST_MIX else 0.0
    return first / (first + second) if first + second > 0.0 else 0.5
