"""The narrow phase: passes a pair of shapes to the kernel of their kinds."""

from __future__ import annotations

from artsim.collision.box import box_box
from artsim.collision.capsule import capsule_box, capsule_capsule
from artsim.collision.convex import beside_ball, convex_convex, crossed_boxes
from artsim.collision.gjk_work import GjkWork
from artsim.collision.height_field import height_field_convex
from artsim.collision.plane import (
    plane_box,
    plane_capsule,
    plane_convex,
    plane_cylinder,
    plane_ellipsoid,
    plane_sphere,
)
from artsim.collision.shapes import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HEIGHT_FIELD,
    PLANE,
    SPHERE,
    TRIANGLES,
    AnyPlaced,
    Manifold,
    Pair,
    Shapes,
)
from artsim.collision.sphere import sphere_box, sphere_capsule, sphere_cylinder, sphere_sphere
from artsim.collision.triangles import triangles_convex
from artsim.sim.foundation.jit import njit


@njit
def collide(shapes: Shapes, placed: AnyPlaced, gjk: GjkWork, a: int, b: int, margin: float, manifold: Manifold) -> None:
    """Append the contacts of shapes a and b, kind[a] <= kind[b], that are nearer than margin, to the manifold.

    Pairs use closed forms where these exist, else GJK and EPA. Immovable shapes (planes, height fields, triangles) do
    not collide with each other.
    """
    pair = Pair(shapes, placed, a, b, margin, manifold)
    one = shapes.kind[a]
    if one == PLANE:
        with_plane(pair)
    elif one == HEIGHT_FIELD or one == TRIANGLES:
        if shapes.kind[b] > TRIANGLES:
            _with_triangles(pair, gjk)
    elif one == SPHERE:
        _with_sphere(pair, gjk)
    elif one == CAPSULE and shapes.kind[b] == CAPSULE:
        capsule_capsule(pair)
    elif one == CAPSULE and shapes.kind[b] == BOX:
        capsule_box(pair)
    elif one == BOX and shapes.kind[b] == BOX:
        if box_box(pair):
            crossed_boxes(pair, gjk)
    else:
        convex_convex(pair, gjk)


@njit
def with_plane(pair: Pair) -> None:
    """Append the contacts of a pair whose shape a is a plane."""
    other = pair.shapes.kind[pair.b]
    if other == SPHERE:
        plane_sphere(pair)
    elif other == CAPSULE:
        plane_capsule(pair)
    elif other == ELLIPSOID:
        plane_ellipsoid(pair)
    elif other == CYLINDER:
        plane_cylinder(pair)
    elif other == BOX:
        plane_box(pair)
    else:
        plane_convex(pair)


@njit
def _with_triangles(pair: Pair, gjk: GjkWork) -> None:
    if pair.shapes.kind[pair.a] == TRIANGLES:
        triangles_convex(pair, gjk)
    else:
        height_field_convex(pair, gjk)


@njit
def _with_sphere(pair: Pair, gjk: GjkWork) -> None:
    other = pair.shapes.kind[pair.b]
    if other == SPHERE:
        sphere_sphere(pair)
    elif other == CAPSULE:
        sphere_capsule(pair)
    elif other == CYLINDER:
        sphere_cylinder(pair)
    elif other == BOX:
        sphere_box(pair)
    else:
        convex_convex(pair, gjk)
    if other == CAPSULE or other == CYLINDER or other == BOX:
        beside_ball(pair, gjk)
