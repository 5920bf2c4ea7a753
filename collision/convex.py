"""Two convex shapes of any kind: what is nearest, how deep they overlap, and the contacts that follow."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from artsim.collision.clipping import ACROSS, ALMOST, clip, find_face, is_over, lines_side_by_side, measure, spread
from artsim.collision.crossings import BESIDE, SAME_DEPTH, add_all_crossings
from artsim.collision.epa import depth
from artsim.collision.frames import to_world
from artsim.collision.gjk import APART, NEAR, distance
from artsim.collision.manifold import add_contact, is_known
from artsim.collision.normals import place_points, settle_normal, snap_across_axes, snap_to_face, touch_ellipsoid
from artsim.collision.plane import AROUND, COSINE_16, DIAGONAL, FEW, FINER, SINE_16
from artsim.collision.shapes import CAPSULE, CONVEX, CYLINDER, ELLIPSOID, SPHERE, TRIANGLES
from artsim.collision.sphere import from_cylinder
from artsim.collision.support import (
    MOST_TIMES,
    across,
    are_smooth,
    begin_pair,
    begin_triangle,
    farthest_vertex,
    is_round,
)
from artsim.sim.jit import inlined, njit


@njit
def convex_convex(shapes: Any, placed: Any, gjk: Any, a: int, b: int, margin: Any, manifold: Any) -> None:
    """The kernel of every two of sphere, capsule, ellipsoid, cylinder, box and convex mesh."""
    begin_pair(shapes, placed, gjk, a, b)
    if find_nearest(shapes, gjk, margin):
        flat = add_manifold(shapes, gjk, margin, manifold, 0)
        _add_all_corners(gjk, margin, manifold)
        if not (flat or touches_once(gjk)):
            add_all_crossings(gjk, margin, manifold, 0)


@njit
def crossed_boxes(shapes: Any, placed: Any, gjk: Any, a: int, b: int, margin: Any, manifold: Any) -> None:
    """Contacts of edges of two boxes that are tilted over the other's face, besides those found of edges that cross."""
    if manifold.number[0] == 0:
        return
    _take_first(shapes, placed, gjk, a, b, manifold)
    find_face(shapes, gjk, 0)
    find_face(shapes, gjk, 1)
    add_all_crossings(gjk, margin, manifold, OF_BOXES)


@njit
def beside_ball(shapes: Any, placed: Any, gjk: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """Corners of b near the sphere a, besides the one contact that its closed form has found; see `_add_corners`."""
    if manifold.number[0] == 0 or shapes.size[a, 0] <= shapes.reach[b]:
        return
    _take_first(shapes, placed, gjk, a, b, manifold)
    find_face(shapes, gjk, 1)
    _add_corners(gjk, 1, margin, manifold)


@njit
def _take_first(shapes: Any, placed: Any, gjk: Any, a: int, b: int, manifold: Any) -> None:
    """The first contact as what `find_nearest` would find, but for its points."""
    begin_pair(shapes, placed, gjk, a, b)
    F = gjk.frame
    gjk.gap[0] = manifold.gap[0]
    n0, n1, n2 = manifold.normal[0, 0], manifold.normal[0, 1], manifold.normal[0, 2]
    for axis in range(3):
        gjk.normal[axis] = F[0, axis] * n0 + F[1, axis] * n1 + F[2, axis] * n2


@njit
def triangle_convex(
    S: Any,
    P: Any,
    k: Any,
    a: int,
    b: int,
    corners: tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any],
    depth: Any,
    margin: Any,
    c: Any,
    feature: int,
) -> None:
    """The same for one triangle of shape a: its corners (nine numbers) in a's axes; with depth > 0 a prism behind it.

    Features count from `feature` on: numbers below 2**32 are added to it.
    """
    begin_triangle(S, P, k, a, b, corners, depth)
    if find_nearest(S, k, margin):
        add_manifold(S, k, margin, c, feature)


PRECISE = 1e-8  # relative to the scale: depths of a much smaller side that are known less well are improved
LOOSE = 1e-6  # the same: points that may be farther than that from where the gap is are found again


@njit
def find_nearest(shapes: Any, gjk: Any, margin: Any) -> bool:
    """Whether the two sides are nearer than margin; gjk.gap, gjk.normal (from a to b) and gjk.point on both surfaces,
    in gjk's axes: `to_world` takes them out of there.
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
    for axis in range(3):
        gjk.point[0, axis] += gjk.radius[0] * gjk.normal[axis]
        gjk.point[1, axis] -= gjk.radius[1] * gjk.normal[axis]
    if state != NEAR:
        snap_across_axes(shapes, gjk)
        smooth = are_smooth(gjk)
        if not proven or smooth or (gjk.scale[1] < gjk.scale[0] and gjk.loose[0] > PRECISE * gjk.scale[1]):
            settle_normal(shapes, gjk)
        if smooth:
            touch_ellipsoid(shapes, gjk)
        elif gjk.loose[0] > LOOSE * gjk.scale[1]:
            place_points(shapes, gjk)
    return bool(gjk.gap[0] < margin)


@inlined
def _nearest_of_simplex(gjk: Any) -> None:
    """Gap, normal and points of the cores from what GJK left."""
    v0, v1, v2 = gjk.nearest[0], gjk.nearest[1], gjk.nearest[2]
    gap = sqrt(v0 * v0 + v1 * v1 + v2 * v2)
    gjk.gap[0] = gap
    for axis in range(3):
        gjk.normal[axis] = -gjk.nearest[axis] / gap
        point = 0.0
        for i in range(gjk.points[0]):
            point += gjk.weight[i] * gjk.simplex[i, 3 + axis]
        gjk.point[0, axis] = point
        gjk.point[1, axis] = point - gjk.nearest[axis]


@inlined
def add_nearest(gjk: Any, manifold: Any, feature: int) -> None:
    """What `find_nearest` found as a contact."""
    A = gjk.point
    p0, p1, p2 = to_world(gjk, 0.5 * (A[0, 0] + A[1, 0]), 0.5 * (A[0, 1] + A[1, 1]), 0.5 * (A[0, 2] + A[1, 2]))
    n0, n1, n2 = to_world(gjk, gjk.normal[0], gjk.normal[1], gjk.normal[2])
    add_contact(manifold, gjk.gap[0], gjk.origin[0] + p0, gjk.origin[1] + p1, gjk.origin[2] + p2, n0, n1, n2, feature)


# ------------------------------------------------------------------ more than one contact

OF_BOXES = 512  # features of lines count from there, past those of box.py


@njit
def add_manifold(shapes: Any, gjk: Any, margin: Any, manifold: Any, feature: int) -> bool:
    """What `find_nearest` found, as the corners of the overlap where flat lies on flat, else as one contact; whether
    there is such a face.

    The deepest point is among them, or is added to them, first and with feature 0.
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
    moving = margin > MOVING * gjk.scale[1] and gjk.kind[0, 0] != TRIANGLES
    if moving and at >= 0 and reference >= 0 and gjk.kind[1 - reference, 0] == CONVEX:
        _add_tilted(shapes, gjk, reference, margin, manifold)
    return reference >= 0


@njit
def add_overlap(shapes: Any, gjk: Any, nearest: Any, margin: Any, manifold: Any, feature: int) -> None:
    """Only the corners of the overlap of two faces across gjk.normal; the two are `nearest` to each other elsewhere."""
    reference = _reference(shapes, gjk)
    if reference >= 0 and _is_flat(gjk, 1 - reference):
        gjk.gap[0] = -inf
        at = clip(gjk, reference)
        count = spread(gjk, at, measure(gjk, reference, at, margin))
        _add_corners_of(gjk, at, count, nearest, margin, manifold, feature)


@inlined
def touches_once(gjk: Any) -> bool:
    """Whether one of the two is so round that they touch in one point at most."""
    a, b = gjk.kind[0, 0], gjk.kind[1, 0]
    return bool(a == SPHERE or b == SPHERE or a == ELLIPSOID or b == ELLIPSOID)


@inlined
def _is_flat(gjk: Any, incident: int) -> bool:
    """Whether a side's face, or line, may lie on the other's."""
    return bool(not touches_once(gjk) and gjk.corners[incident] > 0)


@inlined
def _add_corners_of(gjk: Any, at: int, count: int, least: Any, margin: Any, manifold: Any, feature: int) -> None:
    """The first corners of polygon `at` whose gaps are at least so much, and less than margin."""
    n0, n1, n2 = to_world(gjk, gjk.normal[0], gjk.normal[1], gjk.normal[2])
    for i in range(count):
        if least <= gjk.room[i] < margin:
            p0, p1, p2 = to_world(gjk, gjk.polygon[at, i, 0], gjk.polygon[at, i, 1], gjk.polygon[at, i, 2])
            q0, q1, q2 = gjk.origin[0] + p0, gjk.origin[1] + p1, gjk.origin[2] + p2
            add_contact(manifold, gjk.room[i], q0, q1, q2, n0, n1, n2, feature + gjk.feature[at, i])


MOVING = 1e-3  # relative to the scale: with a smaller margin nothing comes down that is not down
RINGS = 4  # of tilts, the largest first


@njit
def _add_tilted(shapes: Any, gjk: Any, reference: int, margin: Any, manifold: Any) -> None:
    """Corners of a mesh over a reference face that come down when it tilts, as in `plane.add_tilted`: the incident
    face is one of many where the mesh is domed.
    """
    side = 1 - reference
    first, end = gjk.kind[side, 1], gjk.kind[side, 2]
    if end - first <= FEW:
        return
    sign = 1.0 if reference == 0 else -1.0
    f0, f1, f2 = gjk.facing[reference, 0], gjk.facing[reference, 1], gjk.facing[reference, 2]
    slope = sign * (f0 * gjk.normal[0] + f1 * gjk.normal[1] + f2 * gjk.normal[2])
    u0, u1, u2 = across(f0, f1, f2)
    scale = 1.0 / sqrt(u0 * u0 + u1 * u1 + u2 * u2)
    u0, u1, u2 = scale * u0, scale * u1, scale * u2
    v0, v1, v2 = f1 * u2 - f2 * u1, f2 * u0 - f0 * u2, f0 * u1 - f1 * u0
    q0, q1, q2 = gjk.polygon[reference, 0, 0], gjk.polygon[reference, 0, 1], gjk.polygon[reference, 0, 2]
    cosine = COSINE_16
    sine = SINE_16
    last = -1
    for _ in range(AROUND):
        tilt = (margin - min(gjk.gap[0], 0.0)) * MOST_TIMES / gjk.scale[1]
        for _ in range(RINGS):
            x, y = tilt * cosine, tilt * sine
            tilt *= FINER
            best = _lowest(shapes, gjk, side, x * u0 + y * v0 - f0, x * u1 + y * v1 - f1, x * u2 + y * v2 - f2)
            if best == last:
                continue
            last = best
            p0, p1, p2 = _placed(gjk, side, shapes.vertex[best, 0], shapes.vertex[best, 1], shapes.vertex[best, 2])
            gap = max((f0 * (p0 - q0) + f1 * (p1 - q1) + f2 * (p2 - q2)) / slope, gjk.gap[0])
            if gap < margin and is_over(gjk, reference, p0, p1, p2):
                _add_apart(gjk, manifold, gap, sign, p0, p1, p2, 2 * (1 + best - first) + side)
        cosine, sine = DIAGONAL * (cosine - sine), DIAGONAL * (sine + cosine)


@inlined
def _lowest(shapes: Any, gjk: Any, side: int, d0: Any, d1: Any, d2: Any) -> int:
    """The vertex of a mesh farthest along d, gjk's axes."""
    if side == 1:
        R = gjk.rotation
        d0, d1, d2 = (
            R[0, 0] * d0 + R[1, 0] * d1 + R[2, 0] * d2,
            R[0, 1] * d0 + R[1, 1] * d1 + R[2, 1] * d2,
            R[0, 2] * d0 + R[1, 2] * d1 + R[2, 2] * d2,
        )
    vertex: int = farthest_vertex(shapes, gjk.kind[side, 1], gjk.kind[side, 2], gjk.kind[side, 3], d0, d1, d2)
    return vertex


@inlined
def _placed(gjk: Any, side: int, x0: Any, x1: Any, x2: Any) -> Any:
    """A point of a side in gjk's axes."""
    if side == 1:
        R = gjk.rotation
        return (
            gjk.offset[0] + R[0, 0] * x0 + R[0, 1] * x1 + R[0, 2] * x2,
            gjk.offset[1] + R[1, 0] * x0 + R[1, 1] * x1 + R[1, 2] * x2,
            gjk.offset[2] + R[2, 0] * x0 + R[2, 1] * x1 + R[2, 2] * x2,
        )
    return x0, x1, x2


@inlined
def _add_apart(gjk: Any, manifold: Any, gap: Any, sign: Any, x0: Any, x1: Any, x2: Any, feature: int) -> None:
    """The contact of a point that is `gap` from a face, along the contacts' normal, unless there is one close by."""
    half = 0.5 * sign * gap
    p0, p1, p2 = to_world(gjk, x0 - half * gjk.normal[0], x1 - half * gjk.normal[1], x2 - half * gjk.normal[2])
    p0, p1, p2 = p0 + gjk.origin[0], p1 + gjk.origin[1], p2 + gjk.origin[2]
    if not is_known(manifold, p0, p1, p2, BESIDE * gjk.scale[1]):
        n0, n1, n2 = to_world(gjk, gjk.normal[0], gjk.normal[1], gjk.normal[2])
        add_contact(manifold, gap, p0, p1, p2, n0, n1, n2, feature)


# ------------------------------------------------------------------ flat beside round

LEAST = 1e-150  # a length to divide by
WITHIN = 0.9  # of an ellipsoid, seen from its middle: farther in its surface says nothing to first order


@inlined
def _add_all_corners(gjk: Any, margin: Any, manifold: Any) -> None:
    """Corners of what `add_manifold` has looked at where no face has clipped another."""
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
def _add_corners(gjk: Any, side: int, margin: Any, manifold: Any) -> None:
    """A contact at every corner of a side's face or line that is nearer than margin to the other side, which is round.

    They touch in a point or a line; but what turns about it in the step comes down with its corners.
    """
    for i in range(gjk.corners[side]):
        x0, x1, x2 = gjk.polygon[side, i, 0], gjk.polygon[side, i, 1], gjk.polygon[side, i, 2]
        gap, m0, m1, m2 = _from_round(gjk, 1 - side, x0, x1, x2)
        gap -= gjk.radius[side]
        if gap >= margin or gap < max(gjk.gap[0] - SAME_DEPTH * gjk.scale[1], -BESIDE * gjk.scale[1]):
            continue  # deeper than the pair, or far inside, where the way out is another
        gap = max(gap, gjk.gap[0])
        back = gjk.radius[side] + 0.5 * gap
        p0, p1, p2 = to_world(gjk, x0 - back * m0, x1 - back * m1, x2 - back * m2)
        p0, p1, p2 = p0 + gjk.origin[0], p1 + gjk.origin[1], p2 + gjk.origin[2]
        if not is_known(manifold, p0, p1, p2, BESIDE * gjk.scale[1]):
            n0, n1, n2 = to_world(gjk, m0, m1, m2)
            sign = 1.0 if side == 1 else -1.0
            feature = 2 * gjk.feature[side, i] + side
            add_contact(manifold, gap, p0, p1, p2, sign * n0, sign * n1, sign * n2, feature)


@njit
def _from_round(gjk: Any, side: int, x0: Any, x1: Any, x2: Any) -> Any:
    """Distance of a point from a round side and the direction away, all in gjk's axes; an ellipsoid's to first
    order."""
    R = gjk.rotation
    if side == 1:
        x0, x1, x2 = x0 - gjk.offset[0], x1 - gjk.offset[1], x2 - gjk.offset[2]
        x0, x1, x2 = (
            R[0, 0] * x0 + R[1, 0] * x1 + R[2, 0] * x2,
            R[0, 1] * x0 + R[1, 1] * x1 + R[2, 1] * x2,
            R[0, 2] * x0 + R[1, 2] * x1 + R[2, 2] * x2,
        )
    kind = gjk.kind[side, 0]
    if kind == CYLINDER:
        gap, m0, m1, m2 = from_cylinder(gjk.size[side, 0], gjk.size[side, 1], x0, x1, x2)
    elif kind == ELLIPSOID:
        e0, e1, e2 = x0 / gjk.size[side, 0], x1 / gjk.size[side, 1], x2 / gjk.size[side, 2]
        level = sqrt(e0 * e0 + e1 * e1 + e2 * e2)
        m0, m1, m2 = e0 / gjk.size[side, 0], e1 / gjk.size[side, 1], e2 / gjk.size[side, 2]
        length = max(sqrt(m0 * m0 + m1 * m1 + m2 * m2), LEAST)
        gap = (level - 1.0) * level / length if level > WITHIN else -inf
        m0, m1, m2 = m0 / length, m1 / length, m2 / length
    else:
        if kind == CAPSULE:
            x2 -= min(max(x2, -gjk.size[side, 1]), gjk.size[side, 1])
        length = max(sqrt(x0 * x0 + x1 * x1 + x2 * x2), LEAST)
        gap = length - gjk.radius[side]
        m0, m1, m2 = x0 / length, x1 / length, x2 / length
    if side == 1:
        m0, m1, m2 = (
            R[0, 0] * m0 + R[0, 1] * m1 + R[0, 2] * m2,
            R[1, 0] * m0 + R[1, 1] * m1 + R[1, 2] * m2,
            R[2, 0] * m0 + R[2, 1] * m1 + R[2, 2] * m2,
        )
    return gap, m0, m1, m2


@njit
def _reference(shapes: Any, gjk: Any) -> int:
    """The side whose face lies across the normal, a's first, an octagon that stands for a disc last; -1: neither.

    Of round shapes the normal is known only nearly: a face that is as good takes its place. Where one is not, the other
    side's may be.
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
