"""Contacts of a line that is tilted over a face: where it ends over the face or leaves it.

The side of a cylinder or capsule is a line, and so is an edge between two faces. A line that is tilted over the face of
another shape touches at one end of the part over it; a step that rotates the line about that point brings the other end
down. Hence both ends are contacts: an end of the line over the face along the normal of the face, a crossing of line
and edge along the common perpendicular of the two.
"""

from __future__ import annotations

from math import inf, sqrt

from artsim.collision.clipping import HASH, LINE, corner_of, inwards
from artsim.collision.frames import axis_of_side, clamp, point_to_world, to_world
from artsim.collision.gjk_work import GjkWork
from artsim.collision.manifold import add_apart
from artsim.collision.shapes import CAPSULE, CYLINDER, Manifold
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Vec3, Vec6
from artsim.sim.foundation.vec3 import (
    cross,
    divided,
    dot,
    length,
    minus,
    minus_times,
    negative,
    plus,
    plus_times,
    row_of,
    times,
    triple,
)

BESIDE = 1e-2  # relative to the scale: a corner nearer to another contact is redundant
SAME_DEPTH = 1e-9  # relative to the scale: tolerance with which a corner of the overlap is the deepest point
_OWN_END = -1  # in place of an edge: the line ends over the face
_ALONG = 0.01  # sine of the angle below which a line and an edge count as parallel


@inlined
def add_all_crossings(gjk: GjkWork, margin: float, manifold: Manifold, feature: int) -> None:
    """Add contacts of both sides' lines over the other's face. Needs gjk.gap, gjk.normal and `find_face` of both."""
    for side in range(2):
        if gjk.corners[side] >= 2 and gjk.corners[1 - side] > 2 and _find_line(gjk, side):
            _add_crossings(gjk, side, margin, manifold, feature)


@inlined
def is_too_deep(gjk: GjkWork, gap: float) -> bool:
    """True if a gap is deeper than that of the pair, or so deep that another direction is shorter."""
    return bool(gap < max(gjk.gap[0] - SAME_DEPTH * gjk.scale[1], -BESIDE * gjk.scale[1]))


# ------------------------------------------------------------------ lines


@inlined
def _line(gjk: GjkWork) -> tuple[Vec3, Vec3]:
    """Middle and direction of gjk.line."""
    L = gjk.line
    return (L[0], L[1], L[2]), (L[3], L[4], L[5])


@inlined
def _set_line(gjk: GjkWork, middle: Vec3, way: Vec3, half: float, radius: float) -> None:
    L = gjk.line
    L[0], L[1], L[2] = middle
    L[3], L[4], L[5] = way
    L[6] = half
    L[7] = radius


@inlined
def _middle(gjk: GjkWork, side: int) -> Vec3:
    """The middle of a side, gjk's axes."""
    return triple(gjk.offset) if side == 1 else (0.0, 0.0, 0.0)


@njit
def _find_line(gjk: GjkWork, side: int) -> bool:
    """Set gjk.line and gjk.ends to the line of a side that lies most along the contact plane and the features of its
    ends; False if there is none.
    """
    kind = gjk.kind[side, 0]
    if kind == CAPSULE or kind == CYLINDER:
        _set_line(gjk, _middle(gjk, side), axis_of_side(gjk, side, 2), gjk.size[side, 1], gjk.size[side, 0])
        gjk.ends[0] = 1
        gjk.ends[1] = 2
        return bool(gjk.corners[side] == 2)
    one, two = _foremost_edge(gjk, side)
    begin, end = corner_of(gjk, side, two), corner_of(gjk, side, one)
    way = minus(end, begin)
    size = length(way)
    if size <= BESIDE * gjk.scale[1]:
        return False
    _set_line(gjk, times(0.5, plus(end, begin)), divided(way, size), 0.5 * size, 0.0)
    gjk.ends[0] = gjk.feature[side, one]
    gjk.ends[1] = gjk.feature[side, two]
    return True


@inlined
def _foremost_edge(gjk: GjkWork, side: int) -> tuple[int, int]:
    """The two corners of the foremost edge of a side's face along the normal."""
    sign = 1.0 if side == 0 else -1.0
    count = gjk.corners[side]
    best = 0
    highest = -inf
    last = dot(gjk.normal, corner_of(gjk, side, count - 1)) * sign
    for i in range(count):
        height = dot(gjk.normal, corner_of(gjk, side, i)) * sign
        if height + last > highest:
            highest = height + last
            best = i
        last = height
    return (best - 1 if best > 0 else count - 1), best


# ------------------------------------------------------------------ the part of a line over a face


@njit
def _add_crossings(gjk: GjkWork, side: int, margin: float, manifold: Manifold, feature: int) -> None:
    """Add a contact at both ends of the part of gjk.line, the line of a side, over the other side's face."""
    face = 1 - side
    _, way = _line(gjk)
    if abs(dot(row_of(gjk.facing, face), way)) >= LINE:
        return
    if gjk.kind[face, 0] == CYLINDER:
        low, low_edge, high, high_edge = _over_disc(gjk, face)
    else:
        low, low_edge, high, high_edge = _over_polygon(gjk, face)
    if low <= high:
        _add_end(gjk, side, high, high_edge, 0, margin, manifold, feature)
        _add_end(gjk, side, low, low_edge, 1, margin, manifold, feature)


@njit
def _over_polygon(gjk: GjkWork, face: int) -> tuple[float, int, float, int]:
    """The interval of gjk.line over a face, seen along its normal, and the edges of the face at both ends."""
    middle, way = _line(gjk)
    low, high = -gjk.line[6], gjk.line[6]
    low_edge, high_edge = _OWN_END, _OWN_END
    facing = row_of(gjk.facing, face)
    for i in range(gjk.corners[face]):
        p0, p1, p2, i0, i1, i2 = inwards(gjk, face, i, facing)
        corner, inner = (p0, p1, p2), (i0, i1, i2)
        start = dot(inner, minus(middle, corner))
        slope = dot(inner, way)
        if slope > 0.0 and start + low * slope < 0.0:
            low, low_edge = -start / slope, i
        elif slope < 0.0 and start + high * slope < 0.0:
            high, high_edge = -start / slope, i
        elif slope == 0.0 and start < 0.0:
            low, high = 1.0, -1.0
    return low, low_edge, high, high_edge


@njit
def _over_disc(gjk: GjkWork, face: int) -> tuple[float, int, float, int]:
    """The interval of gjk.line over the flat end of a cylinder, which has one edge."""
    d0, d1, d2, a0, a1, a2 = _in_disc(gjk, face)
    aa, ad = a0 * a0 + a1 * a1 + a2 * a2, a0 * d0 + a1 * d1 + a2 * d2
    square = ad * ad - aa * (d0 * d0 + d1 * d1 + d2 * d2 - gjk.size[face, 0] * gjk.size[face, 0])
    if square <= 0.0:
        return 1.0, _OWN_END, -1.0, _OWN_END
    low, high = (-ad - sqrt(square)) / aa, (-ad + sqrt(square)) / aa
    h = gjk.line[6]
    low_edge = 0 if low > -h else _OWN_END
    high_edge = 0 if high < h else _OWN_END
    return max(low, -h), low_edge, min(high, h), high_edge


@inlined
def _in_disc(gjk: GjkWork, face: int) -> Vec6:
    """Middle of gjk.line relative to the flat end of a side, and its direction, both projected onto the disc."""
    middle, way = _line(gjk)
    f = row_of(gjk.facing, face)
    d = minus(middle, _middle(gjk, face))
    d = minus_times(d, dot(d, f), f)
    a = minus_times(way, dot(way, f), f)
    return d[0], d[1], d[2], a[0], a[1], a[2]


# ------------------------------------------------------------------ contacts


@njit
def _add_end(
    gjk: GjkWork, side: int, t: float, edge: int, end: int, margin: float, manifold: Manifold, feature: int
) -> None:
    """Add the contact of gjk.line at t, where it ends over the face or crosses an edge of it."""
    middle, way = _line(gjk)
    face = 1 - side
    normal = row_of(gjk.facing, face)
    on_face = corner_of(gjk, face, 0)
    away = gjk.line[7]  # distance of the surface from the line, against the normal
    number = gjk.ends[end]
    if edge == _OWN_END:
        if gjk.kind[side, 0] == CYLINDER:  # the rim, not a ball
            steep = dot(normal, way)
            away /= sqrt(1.0 - steep * steep)
            t += away * steep
    else:
        on_face, along = _edge(gjk, face, edge, t)
        across = cross(way, along)
        sine = length(across)
        if sine < _ALONG:
            return
        normal = times((1.0 if dot(normal, across) > 0.0 else -1.0) / sine, across)
        g = cross(along, normal)
        t = clamp(dot(g, minus(on_face, middle)) / dot(g, way), gjk.line[6])
        if away == 0.0:
            number = 1 + (gjk.ends[0] * 1000003 + gjk.ends[1] * 8191 + edge + 1) % HASH
    x = minus_times(plus_times(middle, t, way), away, normal)
    gap = dot(normal, minus(x, on_face))
    if gap >= margin or is_too_deep(gjk, gap):
        return
    gap = max(gap, gjk.gap[0])
    point = point_to_world(gjk, minus_times(x, 0.5 * gap, normal))
    normal = to_world(gjk, times(1.0 if side == 1 else -1.0, normal))
    add_apart(manifold, gap, point, normal, feature + 2 * number + side, BESIDE * gjk.scale[1])


@inlined
def _edge(gjk: GjkWork, face: int, edge: int, t: float) -> tuple[Vec3, Vec3]:
    """A point of an edge of a face and the unit vector along it; for a disc where gjk.line at t crosses its rim."""
    f = row_of(gjk.facing, face)
    p0, p1, p2, i0, i1, i2 = inwards(gjk, face, edge, f)
    point, inner = (p0, p1, p2), (i0, i1, i2)
    if gjk.kind[face, 0] == CYLINDER:
        d0, d1, d2, a0, a1, a2 = _in_disc(gjk, face)
        d = plus_times((d0, d1, d2), t, (a0, a1, a2))
        point = plus(plus_times(_middle(gjk, face), gjk.size[face, 1], f), d)
        inner = divided(negative(d), gjk.size[face, 0])
    return point, cross(f, inner)
