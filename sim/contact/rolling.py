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
"""

from __future__ import annotations

from math import sqrt

from artsim.collision.frames import along_axes, axis
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import turn
from artsim.sim.foundation.records import ConstReals1, Reals1, Vec3, Vector
from artsim.sim.foundation.vec3 import cross, dot, minus, plus, plus_times, times, triple
from artsim.sim.geometry.contacts import ALONG_NORMAL, OVAL, RIM, SHARP, ContactBundle

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
def lag(contact: ContactBundle, n: int, turning: Vec3, h: float) -> Vec3:
    """ω × s of contact n [m/s²], world axes, for the relative angular velocity of its second body to its first."""
    N = triple(contact.data.frame[n, ALONG_NORMAL])
    c = cross(turning, N)
    way = (0.0, 0.0, 0.0)
    for end in range(2):
        b = contact.data.shape[n, end]
        if contact.model.rolls[b] != SHARP and _is_face(contact, contact.data.shape[n, 1 - end], N):
            sign = 1.0 if end == 1 else -1.0
            half = 0.5 * sign * contact.data.distance[n]
            x = contact.data.point[n]
            q = contact.data.position[b]
            y = minus(plus_times(x, half, N), q)
            p0, p1, _ = along_axes(contact.data, b, y)
            m = along_axes(contact.data, b, times(-sign, N))
            d = along_axes(contact.data, b, triple(c))
            s = way_over(contact.model.rolls[b], contact.model.extent[b], p0, p1, m, d)
            most = min(_smallest(contact, b), _smallest(contact, contact.data.shape[n, 1 - end]))
            if h * h * dot(s, s) > most * most:
                continue  # a velocity that crosses the shape within a step carries no information
            way = plus(way, turn(contact.data.rotation, b, s))
    return cross(turning, way)


@inlined
def rolls(contact: ContactBundle, a: int, b: int) -> bool:
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


@njit
def tilt(contact: ContactBundle, n: int, first: Vec3, second: Vec3, apart: Vec3, h: float) -> float:
    """2 Ṅ·ċ - |c| |Ṅ|² of contact n [m/s²], 0 where the rotation of its normal is unknown.

    first, second: angular velocities of the two bodies [rad/s], apart: ċ [m/s], triples in world axes. Where two faces
    meet, either may carry the normal: the one that closes the gap less counts.
    """
    N = contact.data.frame[n, ALONG_NORMAL]
    a = contact.data.shape[n, 0]
    b = contact.data.shape[n, 1]
    on_first = _is_face(contact, a, N)
    on_second = _is_face(contact, b, N)
    length = contact.data.distance[n]
    if contact.model.rounding[a] + contact.model.rounding[b] > 0.0:
        return 0.0  # the terms of a large ball cancel only while its speeds last: impacts on the ball would gain energy
    if on_first or on_second:
        value = -1e308
        if on_first:
            value = max(value, _turning(cross(first, N), apart, length, h))
        if on_second:
            value = max(value, _turning(cross(second, N), apart, length, h))
        return value
    i = _edge(contact, a, N)
    j = _edge(contact, b, N)
    if i < 0 or j < 0:
        return 0.0
    return _turning(_rate_of_edges(contact, N, a, i, b, j, first, second), apart, length, h)


@inlined
def _turning(rate: Vec3, apart: Vec3, length: float, h: float) -> float:
    """2 Ṅ·ċ - |c| |Ṅ|² for Ṅ = rate, ċ = apart and |c| = length [m/s²]."""
    square = dot(rate, rate)
    value = 2.0 * dot(rate, apart) - length * square
    return value if h * h * square <= _FARTHEST * _FARTHEST else 0.0


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


@inlined
def _rate_of_edges(
    contact: ContactBundle, N: Reals1, a: int, i: int, b: int, j: int, first: Vec3, second: Vec3
) -> Vec3:
    """Ṅ of the normal of two edges, axes i of shape a and j of b: it stays perpendicular to both."""
    e = axis(contact.data, a, i)
    k = axis(contact.data, b, j)
    along_first = -dot(N, cross(first, e))
    along_second = -dot(N, cross(second, k))
    cosine = dot(e, k)
    square = 1.0 - cosine * cosine
    scale = 1.0 / square if square > _CROSSING * _CROSSING else 0.0
    x = scale * (along_first - cosine * along_second)
    y = scale * (along_second - cosine * along_first)
    return plus_times(times(x, e), y, k)
