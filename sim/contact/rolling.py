"""Second-order change of a contact within a step: its point moves over curved surfaces, its normal turns with faces.

The rows of a contact give the relative velocity of the two bodies' points at the contact. Where a rim or an ellipsoid
rolls, the contact has moved on by the end of the step to a point that moves differently: to second order by half of the
time step times ω × s, with ω the relative angular velocity of the two bodies and s the velocity of the contact over the
surface. Where the normal turns at rate d against a surface, s is W⁻¹ d, W being the surface's shape operator (do Carmo
1976, ch. 3); along a rim, the rim's circle turns. Without this term a rolling body sinks in proportion to the time
step.

The normal N of a face turns with it, that of two edges with both. With c the vector between the two surfaces' centres
of curvature (or points, where they are sharp), the gap is N·c less their radii, and its second derivative is N·c̈ + 2
Ṅ·ċ + N̈·c, the last term being -|c| |Ṅ|². A body sliding over a turning face would sink into it without the last two
(`tilt`).

The shapes' part of both terms is constant in a step: `note_curvature` computes it when a contact is detected, in the
plane of the contact's tangents. The part of the velocities (`lag`, `tilt`) is code of both widths.
"""

from __future__ import annotations

from math import sqrt

from artsim.collision.frames import along_axes, axis
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import where_greater, zero_like
from artsim.sim.foundation.records import ConstReals1, Real, Reals1, Vec3, Vector
from artsim.sim.foundation.scalars import largest
from artsim.sim.foundation.vec3 import combined, cross, dot, minus, plus, plus_times, put, row_of, times, triple
from artsim.sim.geometry.contacts import ALONG_NORMAL, OVAL, RIM, SHARP, AnyContacts, ContactBundle

_ON_RIM = 1e-3  # of the radius: nearer to the axis is the flat end
_LOWEST = 1.0 - 1e-6  # cosine of the directions from the axis to a point and of the normal: of a rim's foremost point
_UPRIGHT = 1e-3  # sine of the angle of axis and normal below which no point of a rim is foremost
_ON_FACE = 1.0 - 1e-9  # cosine of a normal and a box's axis above which the contact is on a face, not an edge
_ACROSS = 1e-7  # cosine below which a normal and an edge are perpendicular
_CROSSING = 0.1  # sine of the angle of two edges below which their normal may turn arbitrarily fast
ANY_TURN = 1e150  # [rad] no rotation is too far
_BENDS = 5e-2  # [rad] rotation in a step up to which a drift of second order suffices: a sixth of its cube is left
STRUCK_TURN = 1.5e-2  # [rad] rotation up to which a drift that lacks terms suffices: half of its square is left
_FARTHEST = 0.5  # [rad] rotation per step above which a second derivative carries no information
_ONE, _TWO_FACES = 1.0, 2.0  # in contact.data.carriers


@njit
def way_over(kind: int, size: ConstReals1, p0: float, p1: float, normal: Vec3, turning: Vec3) -> Vec3:
    """Velocity s [m/s] of a contact over a surface, all in the shape's axes.

    p0, p1: the point's x and y [m]; normal: the outward one; turning: its rate of change relative to the surface
    [1/s]; size: half extents [m].
    """
    m = normal
    d = turning
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    if kind == RIM:
        across = sqrt(m[0] * m[0] + m[1] * m[1])
        away = sqrt(p0 * p0 + p1 * p1)
        if across > _UPRIGHT and away > (1.0 - _ON_RIM) * size[0] and (p0 * m[0] + p1 * m[1] > _LOWEST * away * across):
            u0 = -m[1] / across
            u1 = m[0] / across
            speed = size[0] / across * (u0 * d[0] + u1 * d[1])
            s0 = speed * u0
            s1 = speed * u1
    elif kind == OVAL:
        x = (size[0] * size[0] * m[0], size[1] * size[1] * m[1], size[2] * size[2] * m[2])
        reach = sqrt(dot(x, m))
        along = dot(x, d) / (reach * reach)
        s0 = (size[0] * size[0] * d[0] - along * x[0]) / reach
        s1 = (size[1] * size[1] * d[1] - along * x[1]) / reach
        s2 = (size[2] * size[2] * d[2] - along * x[2]) / reach
    return s0, s1, s2


@inlined
def _is_face(contact: ContactBundle, a: int, N: Vector) -> bool:
    """True if a contact along N is on a flat face of shape a: a plane, or a face across an axis of the solid."""
    m = along_axes(contact.data, a, triple(N))
    flat = abs(m[2]) > _ON_FACE
    if contact.model.rolls[a] == SHARP:
        flat = flat or abs(m[0]) > _ON_FACE or abs(m[1]) > _ON_FACE
    return flat and contact.model.rolls[a] != OVAL and contact.model.rounding[a] == 0.0


@inlined
def _smallest(contact: ContactBundle, a: int) -> float:
    """The largest distance by which a contact may move over a shape [m]: the shape's radius or smallest half extent;
    infinite on a plane."""
    e = contact.model.extent[a]
    if contact.model.rolls[a] == RIM:
        return e[0]
    return min(e[0], e[1], e[2]) if e[0] > 0.0 else 1e308


@njit
def note_curvature(contact: ContactBundle, n: int) -> None:
    """Set contact.data.roll, span, carried and carriers of contact n, which has been detected; no span where it does
    not roll, no carriers where its normal keeps its direction or turns at an unknown rate.

    Soft contacts have neither. Only contacts that persist roll.
    """
    contact.data.span[n] = 0.0
    contact.data.carriers[n] = 0.0
    if contact.data.soft[n] == 1:
        return
    stays = contact.data.start[n, ALONG_NORMAL] > 0.0 or contact.data.near[n] == 1
    if stays and _rolls(contact, contact.data.shape[n, 0], contact.data.shape[n, 1]):
        _note_roll(contact, n)
    if not has_still_normal(contact, n):
        _note_carriers(contact, n)


@inlined
def _note_roll(contact: ContactBundle, n: int) -> None:
    """Set contact.data.roll and span of contact n, where one of its surfaces is curved and the other is a face."""
    frame = contact.data.frame[n]
    N = triple(frame[ALONG_NORMAL])
    for end in range(2):
        b = contact.data.shape[n, end]
        other = contact.data.shape[n, 1 - end]
        if contact.model.rolls[b] != SHARP and _is_face(contact, other, N):
            sign = 1.0 if end == 1 else -1.0
            half = 0.5 * sign * contact.data.distance[n]
            y = minus(plus_times(contact.data.point[n], half, N), row_of(contact.data.position, b))
            p0, p1, _ = along_axes(contact.data, b, y)
            m = along_axes(contact.data, b, times(-sign, N))
            first = along_axes(contact.data, b, triple(frame[1]))
            second = along_axes(contact.data, b, triple(frame[2]))
            kind, size = contact.model.rolls[b], contact.model.extent[b]
            over_first = way_over(kind, size, p0, p1, m, first)
            over_second = way_over(kind, size, p0, p1, m, second)
            roll = (dot(first, over_first), dot(first, over_second), dot(second, over_second))
            if roll[0] + roll[2] > 0.0:  # not the flat end of a cylinder
                put(contact.data.roll[n], roll)
                contact.data.span[n] = min(_smallest(contact, b), _smallest(contact, other))


@njit
def lag(contact: AnyContacts, n: int, turning: Vec3, h: float) -> Vec3:
    """ω × s of contact n [m/s²], world axes, for the relative angular velocity of its second body to its first; 0 where
    contact.data.span is. In both widths."""
    frame, roll = contact.data.frame[n], contact.data.roll[n]
    c = cross(turning, triple(frame[ALONG_NORMAL]))
    c1, c2 = dot(frame[1], c), dot(frame[2], c)
    s1 = roll[0] * c1 + roll[1] * c2
    s2 = roll[1] * c1 + roll[2] * c2
    s = combined(s1, triple(frame[1]), s2, triple(frame[2]))
    span = contact.data.span[n]
    zero = zero_like(span)
    beyond = h * h * (s1 * s1 + s2 * s2) - span * span
    lagging = cross(turning, s)
    return (  # a velocity that crosses the shape within a step carries no information
        where_greater(beyond, zero, zero, lagging[0]),
        where_greater(beyond, zero, zero, lagging[1]),
        where_greater(beyond, zero, zero, lagging[2]),
    )


@inlined
def _rolls(contact: ContactBundle, a: int, b: int) -> bool:
    """True if contacts roll over one of the two shapes."""
    return contact.model.rolls[a] != SHARP or contact.model.rolls[b] != SHARP


# ------------------------------------------------------------------ rotating normals


@inlined
def has_still_normal(contact: ContactBundle, n: int) -> bool:
    """True if contact n is on a face of a static shape."""
    N = contact.data.frame[n, ALONG_NORMAL]
    still = False
    for end in range(2):
        b = contact.data.shape[n, end]
        still = still or (contact.model.body[b] == 0 and _is_face(contact, b, N))
    return still


@njit
def trusted_turn(contact: ContactBundle, n: int, end: int) -> float:
    """The rotation [rad] in a step of one of the bodies of contact n up to which the drift of its gap suffices: any for
    a ball that turns about its centre.
    """
    one = contact.data.shape[n, end]
    other = contact.data.shape[n, 1 - end]
    e = contact.model.extent[one]
    if contact.model.rounding[one] > 0.0 and e[0] == e[2] and e[1] == e[2]:
        c = contact.model.place[one]
        return ANY_TURN if c[0] == 0.0 and c[1] == 0.0 and c[2] == 0.0 else _BENDS
    if has_still_normal(contact, n):
        return _BENDS
    if contact.model.rounding[one] + contact.model.rounding[other] > 0.0:
        return STRUCK_TURN
    N = contact.data.frame[n, ALONG_NORMAL]
    known = _is_face(contact, one, N) or _is_face(contact, other, N)
    known = known or (_edge(contact, one, N) >= 0 and _edge(contact, other, N) >= 0)
    return _BENDS if known else STRUCK_TURN


@inlined
def _note_carriers(contact: ContactBundle, n: int) -> None:
    """Set contact.data.carried and carriers of contact n, whose normal is not that of a static face.

    Two edges, axes e and k, keep the normal perpendicular to both: with the vectors e* and k* of the reciprocal basis
    (e*·e = 1, e*·k = 0), Ṅ = e* e·(ω × N) + k* k·(ω' × N), and e* eᵀ + k* kᵀ = 1 in the plane of the two.
    """
    a = contact.data.shape[n, 0]
    b = contact.data.shape[n, 1]
    frame = contact.data.frame[n]
    N = frame[ALONG_NORMAL]
    if contact.model.rounding[a] + contact.model.rounding[b] > 0.0:
        return  # the terms of a large ball cancel only while its speeds last: impacts on the ball would gain energy
    on_first = _is_face(contact, a, N)
    on_second = _is_face(contact, b, N)
    share = 1.0 if on_first else 0.0
    carried = (share, 0.0, 0.0, share)
    if on_first or on_second:
        contact.data.carriers[n] = _TWO_FACES if on_first and on_second else _ONE
    else:
        i = _edge(contact, a, N)
        j = _edge(contact, b, N)
        if i < 0 or j < 0:
            return
        e = axis(contact.data, a, i)
        k = axis(contact.data, b, j)
        cosine = dot(e, k)
        square = 1.0 - cosine * cosine
        if square <= _CROSSING * _CROSSING:
            return
        dual = times(1.0 / square, plus_times(e, -cosine, k))
        d1, d2, e1, e2 = dot(frame[1], dual), dot(frame[2], dual), dot(frame[1], e), dot(frame[2], e)
        carried = (d1 * e1, d1 * e2, d2 * e1, d2 * e2)
        contact.data.carriers[n] = _ONE
    for c in range(4):
        contact.data.carried[n, c] = carried[c]


@njit
def tilt(contact: AnyContacts, n: int, first: Vec3, second: Vec3, apart: Vec3, h: float) -> Real:
    """2 Ṅ·ċ - |c| |Ṅ|² of contact n [m/s²], 0 where the rotation of its normal is unknown. In both widths.

    first, second: angular velocities of the two bodies [rad/s], apart: ċ [m/s], triples in world axes. Where two faces
    meet, either may carry the normal: the one that closes the gap less counts.
    """
    frame, share = contact.data.frame[n], contact.data.carried[n]
    N = triple(frame[ALONG_NORMAL])
    by_second = cross(second, N)
    change = minus(cross(first, N), by_second)
    c1, c2 = dot(frame[1], change), dot(frame[2], change)
    way1 = share[0] * c1 + share[1] * c2
    way2 = share[2] * c1 + share[3] * c2
    rate = plus(by_second, combined(way1, triple(frame[1]), way2, triple(frame[2])))
    carriers, distance = contact.data.carriers[n], contact.data.distance[n]
    value = _turning(rate, apart, distance, h)
    either = largest(value, _turning(by_second, apart, distance, h))
    zero = zero_like(value)
    value = where_greater(carriers, zero + _ONE, either, value)
    return where_greater(carriers, zero, value, zero)


@inlined
def _turning(rate: Vec3, apart: Vec3, distance: Real, h: float) -> Real:
    """2 Ṅ·ċ - |c| |Ṅ|² for Ṅ = rate, ċ = apart and |c| = distance [m/s²]; 0 for a rotation too far for the step."""
    square = dot(rate, rate)
    value = 2.0 * dot(rate, apart) - distance * square
    zero = zero_like(value)
    return where_greater(h * h * square, zero + _FARTHEST * _FARTHEST, zero, value)


@inlined
def _edge(contact: ContactBundle, b: int, N: Reals1) -> int:
    """The axis of box b that is perpendicular to N; -1: none."""
    m = along_axes(contact.data, b, triple(N))
    edge = -1
    if contact.model.square[b] == 1 and abs(m[2]) <= _ACROSS:
        edge = 2
    elif contact.model.square[b] == 1 and abs(m[1]) <= _ACROSS:
        edge = 1
    elif contact.model.square[b] == 1 and abs(m[0]) <= _ACROSS:
        edge = 0
    return edge
