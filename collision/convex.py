"""Contacts of two convex shapes of any kind, from their nearest points (GJK) or penetration (EPA)."""

from __future__ import annotations

from math import inf

from artsim.collision.clipping import (
    ACROSS,
    ALMOST,
    clip,
    corner_of,
    find_face,
    is_over,
    lines_side_by_side,
    measure,
    spread,
)
from artsim.collision.crossings import BESIDE, SAME_DEPTH, add_all_crossings, is_too_deep
from artsim.collision.epa import depth
from artsim.collision.frames import from_side, point_from_side, point_to_world, to_side, to_world
from artsim.collision.gjk import APART, NEAR, distance
from artsim.collision.gjk_work import GjkWork
from artsim.collision.manifold import add_apart, add_contact
from artsim.collision.normals import place_points, settle_normal, snap_across_axes, snap_to_face, touch_ellipsoid
from artsim.collision.plane import AROUND, COSINE_16, DIAGONAL, FEW, FINER, SINE_16
from artsim.collision.shapes import CAPSULE, CONVEX, CYLINDER, ELLIPSOID, SPHERE, TRIANGLES, Manifold, Pair, Shapes
from artsim.collision.sphere import from_cylinder
from artsim.collision.support import (
    MOST_TIMES,
    across,
    are_smooth,
    begin_pair,
    begin_triangle,
    farthest_vertex,
    is_round,
    point_of_a,
)
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import rotated_back
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import (
    combined,
    cross,
    divided,
    dot,
    length,
    minus,
    minus_times,
    negative,
    plus,
    plus_times,
    put,
    row_of,
    set_row,
    times,
    triple,
)


@njit
def convex_convex(pair: Pair, gjk: GjkWork) -> None:
    """The kernel for any two of sphere, capsule, ellipsoid, cylinder, box and convex mesh."""
    begin_pair(pair, gjk)
    if find_nearest(pair.shapes, gjk, pair.margin):
        flat = add_manifold(pair.shapes, gjk, pair.margin, pair.manifold, 0)
        _add_all_corners(gjk, pair.margin, pair.manifold)
        if not (flat or touches_once(gjk)):
            add_all_crossings(gjk, pair.margin, pair.manifold, 0)


@njit
def crossed_boxes(pair: Pair, gjk: GjkWork) -> None:
    """Add contacts of edges of two boxes that are tilted over the other's face, besides those of crossing edges."""
    if pair.manifold.number[0] == 0:
        return
    _take_first(pair, gjk)
    find_face(pair.shapes, gjk, 0)
    find_face(pair.shapes, gjk, 1)
    add_all_crossings(gjk, pair.margin, pair.manifold, _OF_BOXES)


@njit
def beside_ball(pair: Pair, gjk: GjkWork) -> None:
    """Add corners of b near the sphere a, besides the single contact of the closed form; see `_add_corners`."""
    if pair.manifold.number[0] == 0 or pair.shapes.size[pair.a, 0] <= pair.shapes.reach[pair.b]:
        return
    _take_first(pair, gjk)
    find_face(pair.shapes, gjk, 1)
    _add_corners(gjk, 1, pair.margin, pair.manifold)


@njit
def _take_first(pair: Pair, gjk: GjkWork) -> None:
    """Take the first contact as the result of `find_nearest`, except its points."""
    begin_pair(pair, gjk)
    gjk.gap[0] = pair.manifold.gap[0]
    put(gjk.normal, rotated_back(gjk.frame, row_of(pair.manifold.normal, 0)))


@njit
def triangle_convex(pair: Pair, gjk: GjkWork, corners: tuple[Vec3, Vec3, Vec3], depth: float, feature: int) -> None:
    """The kernel for one triangle of shape a, given by its corners in a's axes; with depth > 0 a prism behind it.

    Features are `feature` plus numbers below 2**32.
    """
    begin_triangle(pair, gjk, corners, depth)
    if find_nearest(pair.shapes, gjk, pair.margin):
        add_manifold(pair.shapes, gjk, pair.margin, pair.manifold, feature)


_PRECISE = 1e-8  # relative to the scale: less precise penetrations of a much smaller side are refined
_LOOSE = 1e-6  # relative to the scale: less precise points are computed again


@njit
def find_nearest(shapes: Shapes, gjk: GjkWork, margin: float) -> bool:
    """Find gap, normal (from a to b) and nearest points; True if the two sides are nearer than margin.

    The results gjk.gap, gjk.normal and gjk.point (one on each surface) are in gjk's axes; see `to_world`.
    """
    radii = gjk.radius[0] + gjk.radius[1]
    state = distance(shapes, gjk, margin + radii)
    if state == APART:
        return False
    if state == NEAR:
        _nearest_of_simplex(gjk)
        proven = True
    else:
        proven = depth(shapes, gjk)
    gjk.gap[0] -= radii
    set_row(gjk.point, 0, plus_times(row_of(gjk.point, 0), gjk.radius[0], gjk.normal))
    set_row(gjk.point, 1, minus_times(row_of(gjk.point, 1), gjk.radius[1], gjk.normal))
    if state != NEAR:
        snap_across_axes(shapes, gjk)
        smooth = are_smooth(gjk)
        if not proven or smooth or (gjk.scale[1] < gjk.scale[0] and gjk.loose[0] > _PRECISE * gjk.scale[1]):
            settle_normal(shapes, gjk)
        if smooth:
            touch_ellipsoid(shapes, gjk)
        elif gjk.loose[0] > _LOOSE * gjk.scale[1]:
            place_points(shapes, gjk)
    return bool(gjk.gap[0] < margin)


@inlined
def _nearest_of_simplex(gjk: GjkWork) -> None:
    """Set gap, normal and points of the cores from the simplex of GJK."""
    nearest = triple(gjk.nearest)
    gap = length(nearest)
    gjk.gap[0] = gap
    put(gjk.normal, divided(negative(nearest), gap))
    point = (0.0, 0.0, 0.0)
    for i in range(gjk.points[0]):
        point = plus_times(point, gjk.weight[i], point_of_a(gjk.simplex, i))
    set_row(gjk.point, 0, point)
    set_row(gjk.point, 1, minus(point, nearest))


@inlined
def add_nearest(gjk: GjkWork, manifold: Manifold, feature: int) -> None:
    """Add the result of `find_nearest` as a contact."""
    middle = times(0.5, plus(row_of(gjk.point, 0), row_of(gjk.point, 1)))
    normal = to_world(gjk, triple(gjk.normal))
    add_contact(manifold, gjk.gap[0], point_to_world(gjk, middle), normal, feature)


# ------------------------------------------------------------------ more than one contact

_OF_BOXES = 512  # first feature of lines, beyond those of box.py


@njit
def add_manifold(shapes: Shapes, gjk: GjkWork, margin: float, manifold: Manifold, feature: int) -> bool:
    """Add the corners of the overlap of flat faces, else the result of `find_nearest` as a single contact.

    Returns True with a reference face. The deepest point is among the contacts, or is added first, with feature 0.
    """
    at = -1
    count = 0
    reference = _reference(shapes, gjk)
    if reference >= 0:
        if _is_flat(gjk, 1 - reference):
            at = clip(gjk, reference)
            count = measure(gjk, reference, at, margin)
            count = spread(gjk, at, count)
    elif lines_side_by_side(shapes, gjk):
        at = 2
        count = 2
    deepest = margin
    for i in range(count):
        deepest = min(deepest, gjk.room[i])
    if count == 0 or deepest > gjk.gap[0] + SAME_DEPTH * gjk.scale[1]:
        add_nearest(gjk, manifold, feature)
    _add_corners_of(gjk, at, count, -inf, margin, manifold, feature)
    moving = margin > _MOVING * gjk.scale[1] and gjk.kind[0, 0] != TRIANGLES
    if moving and at >= 0 and reference >= 0 and gjk.kind[1 - reference, 0] == CONVEX:
        _add_tilted(shapes, gjk, reference, margin, manifold)
    return reference >= 0


@njit
def add_overlap(shapes: Shapes, gjk: GjkWork, nearest: float, margin: float, manifold: Manifold, feature: int) -> None:
    """Add only the corners of the overlap of two faces orthogonal to gjk.normal; the `nearest` points are elsewhere."""
    reference = _reference(shapes, gjk)
    if reference >= 0 and _is_flat(gjk, 1 - reference):
        gjk.gap[0] = -inf
        at = clip(gjk, reference)
        count = spread(gjk, at, measure(gjk, reference, at, margin))
        _add_corners_of(gjk, at, count, nearest, margin, manifold, feature)


@inlined
def touches_once(gjk: GjkWork) -> bool:
    """True if one of the two shapes is so round that they touch in at most one point."""
    a, b = gjk.kind[0, 0], gjk.kind[1, 0]
    return bool(a == SPHERE or b == SPHERE or a == ELLIPSOID or b == ELLIPSOID)


@inlined
def _is_flat(gjk: GjkWork, incident: int) -> bool:
    """True if a side's face or line may lie on that of the other side."""
    return bool(not touches_once(gjk) and gjk.corners[incident] > 0)


@inlined
def _add_corners_of(
    gjk: GjkWork, at: int, count: int, least: float, margin: float, manifold: Manifold, feature: int
) -> None:
    """Add the first `count` corners of polygon `at` with gaps from `least` to below margin."""
    normal = to_world(gjk, triple(gjk.normal))
    for i in range(count):
        if least <= gjk.room[i] < margin:
            x = point_to_world(gjk, corner_of(gjk, at, i))
            add_contact(manifold, gjk.room[i], x, normal, feature + gjk.feature[at, i])


_MOVING = 1e-3  # relative to the scale: with a smaller margin no further corner can touch within the step
_RINGS = 4  # number of tilt angles, the largest first


@njit
def _add_tilted(shapes: Shapes, gjk: GjkWork, reference: int, margin: float, manifold: Manifold) -> None:
    """Add corners of a mesh over a reference face that can touch when it tilts, as in `plane.add_tilted`.

    This is needed for domed meshes, where the incident face is one of many.
    """
    side = 1 - reference
    first, end = gjk.kind[side, 1], gjk.kind[side, 2]
    if end - first <= FEW:
        return
    sign = 1.0 if reference == 0 else -1.0
    face = row_of(gjk.facing, reference)
    slope = sign * dot(face, gjk.normal)
    u = across(face)
    u = times(1.0 / length(u), u)
    v = cross(face, u)
    corner = corner_of(gjk, reference, 0)
    cosine = COSINE_16
    sine = SINE_16
    last = -1
    for _ in range(AROUND):
        tilt = (margin - min(gjk.gap[0], 0.0)) * MOST_TIMES / gjk.scale[1]
        for _ in range(_RINGS):
            down = minus(combined(tilt * cosine, u, tilt * sine, v), face)
            tilt *= FINER
            best = farthest_vertex(shapes, first, end, gjk.kind[side, 3], to_side(gjk, side, down))
            if best == last:
                continue
            last = best
            x = point_from_side(gjk, side, row_of(shapes.vertex, best))
            gap = max(dot(face, minus(x, corner)) / slope, gjk.gap[0])
            if gap < margin and is_over(gjk, reference, x):
                middle = point_to_world(gjk, minus_times(x, 0.5 * sign * gap, gjk.normal))
                normal = to_world(gjk, triple(gjk.normal))
                add_apart(manifold, gap, middle, normal, 2 * (1 + best - first) + side, BESIDE * gjk.scale[1])
        cosine, sine = DIAGONAL * (cosine - sine), DIAGONAL * (sine + cosine)


# ------------------------------------------------------------------ flat beside round

_LEAST = 1e-150  # smallest divisor
_WITHIN = 0.9  # relative radius in an ellipsoid below which its distance is not known to first order


@inlined
def _add_all_corners(gjk: GjkWork, margin: float, manifold: Manifold) -> None:
    """Add the corners of the faces found by `add_manifold` if no face has clipped another."""
    if gjk.corners[0] <= 2 or gjk.corners[1] <= 2:
        for side in range(2):
            kind = gjk.kind[1 - side, 0]
            if (
                kind == SPHERE
                or kind == CAPSULE
                or kind == ELLIPSOID
                or (kind == CYLINDER and gjk.corners[1 - side] <= 2)
            ):
                _add_corners(gjk, side, margin, manifold)


@njit
def _add_corners(gjk: GjkWork, side: int, margin: float, manifold: Manifold) -> None:
    """Add a contact at every corner of a side's face or line that is nearer than margin to the other, round side.

    The two shapes touch in a point or a line, but a body that rotates about it within the step touches with its
    corners.
    """
    for i in range(gjk.corners[side]):
        x = corner_of(gjk, side, i)
        gap, away = _from_round(gjk, 1 - side, x)
        gap -= gjk.radius[side]
        if gap >= margin or is_too_deep(gjk, gap):
            continue
        gap = max(gap, gjk.gap[0])
        middle = point_to_world(gjk, minus_times(x, gjk.radius[side] + 0.5 * gap, away))
        normal = times(1.0 if side == 1 else -1.0, to_world(gjk, away))
        add_apart(manifold, gap, middle, normal, 2 * gjk.feature[side, i] + side, BESIDE * gjk.scale[1])


@njit
def _from_round(gjk: GjkWork, side: int, x: Vec3) -> tuple[float, Vec3]:
    """Distance of a point from a round side (for an ellipsoid to first order) and the direction away, in gjk's axes."""
    if side == 1:
        x = rotated_back(gjk.rotation, minus(x, gjk.offset))
    kind = gjk.kind[side, 0]
    if kind == CYLINDER:
        gap, (m0, m1, m2) = from_cylinder(gjk.size[side, 0], gjk.size[side, 1], x)
    elif kind == ELLIPSOID:
        size = row_of(gjk.size, side)
        e = (x[0] / size[0], x[1] / size[1], x[2] / size[2])
        level = length(e)
        m = (e[0] / size[0], e[1] / size[1], e[2] / size[2])
        steep = max(length(m), _LEAST)
        gap = (level - 1.0) * level / steep if level > _WITHIN else -inf
        m0, m1, m2 = divided(m, steep)
    else:
        if kind == CAPSULE:
            x = (x[0], x[1], x[2] - min(max(x[2], -gjk.size[side, 1]), gjk.size[side, 1]))
        far = max(length(x), _LEAST)
        gap = far - gjk.radius[side]
        m0, m1, m2 = divided(x, far)
    return gap, from_side(gjk, side, (m0, m1, m2))


@njit
def _reference(shapes: Shapes, gjk: GjkWork) -> int:
    """The side whose face is orthogonal to the normal, preferring a's, and octagons of discs last; -1: neither.

    The normal of round shapes is known only approximately, so an equally good normal of a face replaces it. If one
    side's face is not good enough, that of the other may be.
    """
    rounded = is_round(gjk.kind[0, 0]) or is_round(gjk.kind[1, 0])
    least = ALMOST if rounded else ACROSS
    cosine_a = find_face(shapes, gjk, 0)
    cosine_b = find_face(shapes, gjk, 1)
    first = 0 if cosine_a >= least and (cosine_b < least or gjk.kind[0, 0] != CYLINDER) else 1
    for n in range(2):
        side = first if n == 0 else 1 - first
        cosine = cosine_a if side == 0 else cosine_b
        if cosine >= least and (not rounded or snap_to_face(shapes, gjk, side) or cosine >= ACROSS):
            return side
    return -1
