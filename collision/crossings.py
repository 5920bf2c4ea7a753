"""A line tilted over a face: contacts where it ends over the face or leaves it.

The side of a cylinder or capsule is a line, and so is an edge between two faces. Where one is tilted over another
shape's face they touch at one end of what is over it; a step that turns the line about that point brings the other end
down. So either is a contact: an end of the line over the face along the face's normal, a line that crosses an edge of
the face along what is across the two.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from artsim.collision.clipping import HASH, LINE, inwards
from artsim.collision.frames import clamp, to_world
from artsim.collision.manifold import add_contact, is_known
from artsim.collision.shapes import CAPSULE, CYLINDER
from artsim.sim.jit import inlined, njit

BESIDE = 1e-2  # relative to the scale: a corner nearer than that to another contact says the same
SAME_DEPTH = 1e-9  # relative to the scale: a corner of the overlap as deep as that is the deepest point
OWN_END = -1  # the edge of a face where a line ends over it
ALONG = 0.01  # sine of the angle of a line and an edge below which one lies along the other


@inlined
def add_all_crossings(gjk: Any, margin: Any, manifold: Any, feature: int) -> None:
    """Contacts of the lines of both sides over the other's face. Needs gjk.gap, gjk.normal and `find_face` of both."""
    for side in range(2):
        if gjk.corners[side] >= 2 and gjk.corners[1 - side] > 2 and _find_line(gjk, side):
            _add_crossings(gjk, side, margin, manifold, feature)


@njit
def _find_line(gjk: Any, side: int) -> bool:
    """gjk.line, gjk.ends: the line of a side that lies most along the contact, and the features of its ends. False
    where there is none.
    """
    L = gjk.line
    kind = gjk.kind[side, 0]
    if kind == CAPSULE or kind == CYLINDER:
        L[0], L[1], L[2], L[3], L[4], L[5] = _axis(gjk, side)
        L[6] = gjk.size[side, 1]
        L[7] = gjk.size[side, 0]
        gjk.ends[0] = 1
        gjk.ends[1] = 2
        return bool(gjk.corners[side] == 2)
    one, two = _foremost_edge(gjk, side)
    Q = gjk.polygon
    length = 0.0
    for axis in range(3):
        L[axis] = 0.5 * (Q[side, one, axis] + Q[side, two, axis])
        L[3 + axis] = Q[side, one, axis] - Q[side, two, axis]
        length += L[3 + axis] * L[3 + axis]
    length = sqrt(length)
    if length <= BESIDE * gjk.scale[1]:
        return False
    for axis in range(3):
        L[3 + axis] /= length
    L[6] = 0.5 * length
    L[7] = 0.0
    gjk.ends[0] = gjk.feature[side, one]
    gjk.ends[1] = gjk.feature[side, two]
    return True


@inlined
def _foremost_edge(gjk: Any, side: int) -> Any:
    """Of a side's face the edge that is foremost along the normal: its two corners."""
    sign = 1.0 if side == 0 else -1.0
    Q = gjk.polygon
    count = gjk.corners[side]
    best = 0
    highest = -inf
    last = _along(gjk, Q[side, count - 1]) * sign
    for i in range(count):
        height = _along(gjk, Q[side, i]) * sign
        if height + last > highest:
            highest = height + last
            best = i
        last = height
    return (best - 1 if best > 0 else count - 1), best


@inlined
def _along(gjk: Any, x: Any) -> Any:
    return gjk.normal[0] * x[0] + gjk.normal[1] * x[1] + gjk.normal[2] * x[2]


@inlined
def _axis(gjk: Any, side: int) -> Any:
    """The middle and the direction of a side's z axis, gjk's axes."""
    if side == 1:
        R = gjk.rotation
        return gjk.offset[0], gjk.offset[1], gjk.offset[2], R[0, 2], R[1, 2], R[2, 2]
    return 0.0, 0.0, 0.0, 0.0, 0.0, 1.0


@njit
def _add_crossings(gjk: Any, side: int, margin: Any, manifold: Any, feature: int) -> None:
    """A contact at either end of what of gjk.line, a side's, is over the other side's face."""
    L = gjk.line
    face = 1 - side
    if abs(gjk.facing[face, 0] * L[3] + gjk.facing[face, 1] * L[4] + gjk.facing[face, 2] * L[5]) >= LINE:
        return
    if gjk.kind[face, 0] == CYLINDER:
        low, low_edge, high, high_edge = _over_disc(gjk, face)
    else:
        low, low_edge, high, high_edge = _over_polygon(gjk, face)
    if low <= high:
        _add_end(gjk, side, high, high_edge, 0, margin, manifold, feature)
        _add_end(gjk, side, low, low_edge, 1, margin, manifold, feature)


@njit
def _over_polygon(gjk: Any, face: int) -> Any:
    """From where to where along it gjk.line is over a face, and the edges there; seen along the face's normal."""
    L = gjk.line
    low, high = -L[6], L[6]
    low_edge, high_edge = OWN_END, OWN_END
    m0, m1, m2 = gjk.facing[face, 0], gjk.facing[face, 1], gjk.facing[face, 2]
    for i in range(gjk.corners[face]):
        p0, p1, p2, i0, i1, i2 = inwards(gjk, face, i, m0, m1, m2)
        start = i0 * (L[0] - p0) + i1 * (L[1] - p1) + i2 * (L[2] - p2)
        slope = i0 * L[3] + i1 * L[4] + i2 * L[5]
        if slope > 0.0 and start + low * slope < 0.0:
            low, low_edge = -start / slope, i
        elif slope < 0.0 and start + high * slope < 0.0:
            high, high_edge = -start / slope, i
        elif slope == 0.0 and start < 0.0:
            low, high = 1.0, -1.0
    return low, low_edge, high, high_edge


@njit
def _over_disc(gjk: Any, face: int) -> Any:
    """The same for the flat end of a cylinder, which has one edge."""
    d0, d1, d2, a0, a1, a2 = _in_disc(gjk, face)
    aa, ad = a0 * a0 + a1 * a1 + a2 * a2, a0 * d0 + a1 * d1 + a2 * d2
    square = ad * ad - aa * (d0 * d0 + d1 * d1 + d2 * d2 - gjk.size[face, 0] * gjk.size[face, 0])
    if square <= 0.0:
        return 1.0, OWN_END, -1.0, OWN_END
    low, high = (-ad - sqrt(square)) / aa, (-ad + sqrt(square)) / aa
    h = gjk.line[6]
    low_edge = 0 if low > -h else OWN_END
    high_edge = 0 if high < h else OWN_END
    return max(low, -h), low_edge, min(high, h), high_edge


@inlined
def _in_disc(gjk: Any, face: int) -> Any:
    """gjk.line's middle from that of the flat end of a side, and its direction, without what is along the normal."""
    L = gjk.line
    f0, f1, f2 = gjk.facing[face, 0], gjk.facing[face, 1], gjk.facing[face, 2]
    q0, q1, q2, _, _, _ = _axis(gjk, face)
    d0, d1, d2 = L[0] - q0, L[1] - q1, L[2] - q2
    height = d0 * f0 + d1 * f1 + d2 * f2
    steep = L[3] * f0 + L[4] * f1 + L[5] * f2
    return d0 - height * f0, d1 - height * f1, d2 - height * f2, L[3] - steep * f0, L[4] - steep * f1, L[5] - steep * f2


@njit
def _add_end(gjk: Any, side: int, t: Any, edge: int, end: int, margin: Any, manifold: Any, feature: int) -> None:
    """The contact of gjk.line at t, where it ends over the face or crosses an edge of it."""
    L = gjk.line
    o0, o1, o2, u0, u1, u2 = L[0], L[1], L[2], L[3], L[4], L[5]
    m0, m1, m2 = gjk.facing[1 - side, 0], gjk.facing[1 - side, 1], gjk.facing[1 - side, 2]
    p0, p1, p2 = gjk.polygon[1 - side, 0, 0], gjk.polygon[1 - side, 0, 1], gjk.polygon[1 - side, 0, 2]
    away = L[7]  # of the surface's point from the line, against m
    number = gjk.ends[end]
    if edge == OWN_END:
        if gjk.kind[side, 0] == CYLINDER:  # its rim, not a ball
            steep = m0 * u0 + m1 * u1 + m2 * u2
            away /= sqrt(1.0 - steep * steep)
            t += away * steep
    else:
        p0, p1, p2, e0, e1, e2 = _edge(gjk, 1 - side, edge, t)
        n0, n1, n2 = u1 * e2 - u2 * e1, u2 * e0 - u0 * e2, u0 * e1 - u1 * e0
        length = sqrt(n0 * n0 + n1 * n1 + n2 * n2)
        if length < ALONG:
            return
        factor = (1.0 if m0 * n0 + m1 * n1 + m2 * n2 > 0.0 else -1.0) / length
        m0, m1, m2 = factor * n0, factor * n1, factor * n2
        g0, g1, g2 = e1 * m2 - e2 * m1, e2 * m0 - e0 * m2, e0 * m1 - e1 * m0
        way = g0 * (p0 - o0) + g1 * (p1 - o1) + g2 * (p2 - o2)
        t = clamp(way / (g0 * u0 + g1 * u1 + g2 * u2), L[6])
        if away == 0.0:
            number = 1 + (gjk.ends[0] * 1000003 + gjk.ends[1] * 8191 + edge + 1) % HASH
    x0, x1, x2 = o0 + t * u0 - away * m0, o1 + t * u1 - away * m1, o2 + t * u2 - away * m2
    gap = m0 * (x0 - p0) + m1 * (x1 - p1) + m2 * (x2 - p2)
    if gap >= margin or gap < max(gjk.gap[0] - SAME_DEPTH * gjk.scale[1], -BESIDE * gjk.scale[1]):
        return  # deeper than the pair, or far inside, where the way out is another
    half = 0.5 * max(gap, gjk.gap[0])
    y0, y1, y2 = to_world(gjk, x0 - half * m0, x1 - half * m1, x2 - half * m2)
    y0, y1, y2 = y0 + gjk.origin[0], y1 + gjk.origin[1], y2 + gjk.origin[2]
    if not is_known(manifold, y0, y1, y2, BESIDE * gjk.scale[1]):
        sign = 1.0 if side == 1 else -1.0
        n0, n1, n2 = to_world(gjk, sign * m0, sign * m1, sign * m2)
        add_contact(manifold, 2.0 * half, y0, y1, y2, n0, n1, n2, feature + 2 * number + side)


@inlined
def _edge(gjk: Any, face: int, edge: int, t: Any) -> Any:
    """A point of an edge of a face and the unit vector along it; of a disc where gjk.line at t crosses its rim."""
    f0, f1, f2 = gjk.facing[face, 0], gjk.facing[face, 1], gjk.facing[face, 2]
    p0, p1, p2, i0, i1, i2 = inwards(gjk, face, edge, f0, f1, f2)
    if gjk.kind[face, 0] == CYLINDER:
        d0, d1, d2, a0, a1, a2 = _in_disc(gjk, face)
        d0, d1, d2 = d0 + t * a0, d1 + t * a1, d2 + t * a2
        q0, q1, q2, _, _, _ = _axis(gjk, face)
        h = gjk.size[face, 1]
        p0, p1, p2 = q0 + h * f0 + d0, q1 + h * f1 + d1, q2 + h * f2 + d2
        i0, i1, i2 = -d0 / gjk.size[face, 0], -d1 / gjk.size[face, 0], -d2 / gjk.size[face, 0]
    return p0, p1, p2, f1 * i2 - f2 * i1, f2 * i0 - f0 * i2, f0 * i1 - f1 * i0
