"""Two convex shapes of any kind: what is nearest, how deep they overlap, and the contacts that follow."""

from __future__ import annotations

from math import sqrt
from typing import Any

from artsim.collision.clipping import ACROSS, ALMOST, clip, find_face, lines_side_by_side, measure, spread
from artsim.collision.epa import depth
from artsim.collision.gjk import APART, NEAR, distance
from artsim.collision.manifold import add_contact
from artsim.collision.normals import place_points, settle_normal, snap_across_axes, snap_to_face, touch_ellipsoid
from artsim.collision.shapes import CYLINDER, ELLIPSOID, SPHERE
from artsim.collision.support import are_smooth, begin_pair, begin_triangle, is_round
from artsim.sim.jit import inlined, njit


@njit
def convex_convex(S: Any, P: Any, k: Any, a: int, b: int, margin: Any, c: Any) -> None:
    """The kernel of every two of sphere, capsule, ellipsoid, cylinder, box and convex mesh."""
    begin_pair(S, P, k, a, b)
    if find_nearest(S, k, margin):
        add_manifold(S, k, margin, c, 0)


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
def find_nearest(S: Any, k: Any, margin: Any) -> bool:
    """Whether the two sides are nearer than margin; k.gap, k.normal (from a to b) and k.point on both surfaces,
    in k's axes: `to_world` takes them out of there.
    """
    radii = k.radius[0] + k.radius[1]
    state = distance(S, k, margin + radii)
    if state == APART:
        return False
    if state == NEAR:
        _nearest_of_simplex(k)
        proven = True
    else:
        proven = depth(S, k)
    k.gap[0] -= radii
    for axis in range(3):
        k.point[0, axis] += k.radius[0] * k.normal[axis]
        k.point[1, axis] -= k.radius[1] * k.normal[axis]
    if state != NEAR:
        snap_across_axes(S, k)
        smooth = are_smooth(k)
        if not proven or smooth or (k.scale[1] < k.scale[0] and k.loose[0] > PRECISE * k.scale[1]):
            settle_normal(S, k)
        if smooth:
            touch_ellipsoid(S, k)
        elif k.loose[0] > LOOSE * k.scale[1]:
            place_points(S, k)
    return bool(k.gap[0] < margin)


@inlined
def _nearest_of_simplex(k: Any) -> None:
    """Gap, normal and points of the cores from what GJK left."""
    v0, v1, v2 = k.nearest[0], k.nearest[1], k.nearest[2]
    gap = sqrt(v0 * v0 + v1 * v1 + v2 * v2)
    k.gap[0] = gap
    for axis in range(3):
        k.normal[axis] = -k.nearest[axis] / gap
        point = 0.0
        for i in range(k.points[0]):
            point += k.weight[i] * k.simplex[i, 3 + axis]
        k.point[0, axis] = point
        k.point[1, axis] = point - k.nearest[axis]


@inlined
def to_world(k: Any, x0: Any, x1: Any, x2: Any) -> Any:
    """A vector in k's axes turned into the world's; a point needs k.origin added."""
    F = k.frame
    return (
        F[0, 0] * x0 + F[0, 1] * x1 + F[0, 2] * x2,
        F[1, 0] * x0 + F[1, 1] * x1 + F[1, 2] * x2,
        F[2, 0] * x0 + F[2, 1] * x1 + F[2, 2] * x2,
    )


@inlined
def add_nearest(k: Any, c: Any, feature: int) -> None:
    """What `find_nearest` found as a contact."""
    A = k.point
    p0, p1, p2 = to_world(k, 0.5 * (A[0, 0] + A[1, 0]), 0.5 * (A[0, 1] + A[1, 1]), 0.5 * (A[0, 2] + A[1, 2]))
    n0, n1, n2 = to_world(k, k.normal[0], k.normal[1], k.normal[2])
    add_contact(c, k.gap[0], k.origin[0] + p0, k.origin[1] + p1, k.origin[2] + p2, n0, n1, n2, feature)


# ------------------------------------------------------------------ more than one contact

SAME_DEPTH = 1e-9  # relative to the scale: a corner of the overlap as deep as that is the deepest point


@njit
def add_manifold(S: Any, k: Any, margin: Any, c: Any, feature: int) -> None:
    """What `find_nearest` found, as the corners of the overlap where flat lies on flat, else as one contact.

    The deepest point is among them, or is added to them, first and with feature 0.
    """
    kinds = k.kind
    one_point = kinds[0, 0] == SPHERE or kinds[0, 0] == ELLIPSOID or kinds[1, 0] == ELLIPSOID
    # the first of these kinds is a; a sphere meets polyhedra exactly as it is
    at = -1
    count = 0
    reference = _reference(S, k)
    if reference >= 0:
        if not one_point and k.corners[1 - reference] > 0:
            at = clip(k, reference)
            count = measure(k, reference, at, margin)
            count = spread(k, at, count)
    elif lines_side_by_side(S, k):
        at = 2
        count = 2
    deepest = margin
    for i in range(count):
        deepest = min(deepest, k.room[i])
    if count == 0 or deepest > k.gap[0] + SAME_DEPTH * k.scale[1]:
        add_nearest(k, c, feature)
    n0, n1, n2 = to_world(k, k.normal[0], k.normal[1], k.normal[2])
    for i in range(count):
        if k.room[i] < margin:
            p0, p1, p2 = to_world(k, k.polygon[at, i, 0], k.polygon[at, i, 1], k.polygon[at, i, 2])
            q0, q1, q2 = k.origin[0] + p0, k.origin[1] + p1, k.origin[2] + p2
            add_contact(c, k.room[i], q0, q1, q2, n0, n1, n2, feature + k.feature[at, i])


@njit
def _reference(S: Any, k: Any) -> int:
    """The side whose face lies across the normal, a's first, an octagon that stands for a disc last; -1: neither.

    Of round shapes the normal is known only nearly: a face that is as good takes its place. Where one is not, the other
    side's may be.
    """
    rounded = is_round(k.kind[0, 0]) or is_round(k.kind[1, 0])
    least = ALMOST if rounded else ACROSS
    cosine_a = find_face(S, k, 0)
    cosine_b = find_face(S, k, 1)
    first = 0 if cosine_a >= least and (cosine_b < least or k.kind[0, 0] != CYLINDER) else 1
    for n in range(2):
        side = first if n == 0 else 1 - first
        cosine = cosine_a if side == 0 else cosine_b
        if cosine >= least and (not rounded or snap_to_face(S, k, side) or cosine >= ACROSS):
            return side
    return -1
