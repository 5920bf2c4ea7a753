"""Which kernel a pair of shapes goes to."""

from __future__ import annotations

from typing import Any

from artsim.collision.box import box_box
from artsim.collision.capsule import capsule_box, capsule_capsule
from artsim.collision.convex import beside_ball, convex_convex, crossed_boxes
from artsim.collision.height_field import height_field_convex
from artsim.collision.plane import (
    plane_box,
    plane_capsule,
    plane_convex,
    plane_cylinder,
    plane_ellipsoid,
    plane_sphere,
)
from artsim.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHT_FIELD, PLANE, SPHERE, TRIANGLES
from artsim.collision.sphere import sphere_box, sphere_capsule, sphere_cylinder, sphere_sphere
from artsim.collision.triangles import triangles_convex
from artsim.sim.jit import njit


@njit
def collide(shapes: Any, placed: Any, gjk: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """Contacts of shapes a and b, kind[a] <= kind[b], that are nearer than margin, appended to the manifold.

    In closed form where there is one, else by GJK and EPA. What cannot move (planes, fields, triangles) does not touch
    its like.
    """
    one = shapes.kind[a]
    if one == PLANE:
        _with_plane(shapes, placed, a, b, margin, manifold)
    elif one == HEIGHT_FIELD or one == TRIANGLES:
        if shapes.kind[b] > TRIANGLES:
            _with_triangles(shapes, placed, gjk, a, b, margin, manifold)
    elif one == SPHERE:
        _with_sphere(shapes, placed, gjk, a, b, margin, manifold)
    elif one == CAPSULE and shapes.kind[b] == CAPSULE:
        capsule_capsule(shapes, placed, a, b, margin, manifold)
    elif one == CAPSULE and shapes.kind[b] == BOX:
        capsule_box(shapes, placed, a, b, margin, manifold)
    elif one == BOX and shapes.kind[b] == BOX:
        if box_box(shapes, placed, a, b, margin, manifold):
            crossed_boxes(shapes, placed, gjk, a, b, margin, manifold)
    else:
        convex_convex(shapes, placed, gjk, a, b, margin, manifold)


@njit
def _with_plane(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    other = shapes.kind[b]
    if other == SPHERE:
        plane_sphere(shapes, placed, a, b, margin, manifold)
    elif other == CAPSULE:
        plane_capsule(shapes, placed, a, b, margin, manifold)
    elif other == ELLIPSOID:
        plane_ellipsoid(shapes, placed, a, b, margin, manifold)
    elif other == CYLINDER:
        plane_cylinder(shapes, placed, a, b, margin, manifold)
    elif other == BOX:
        plane_box(shapes, placed, a, b, margin, manifold)
    else:
        plane_convex(shapes, placed, a, b, margin, manifold)


@njit
def _with_triangles(shapes: Any, placed: Any, gjk: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    if shapes.kind[a] == TRIANGLES:
        triangles_convex(shapes, placed, gjk, a, b, margin, manifold)
    else:
        height_field_convex(shapes, placed, gjk, a, b, margin, manifold)


@njit
def _with_sphere(shapes: Any, placed: Any, gjk: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    other = shapes.kind[b]
    if other == SPHERE:
        sphere_sphere(shapes, placed, a, b, margin, manifold)
    elif other == CAPSULE:
        sphere_capsule(shapes, placed, a, b, margin, manifold)
    elif other == CYLINDER:
        sphere_cylinder(shapes, placed, a, b, margin, manifold)
    elif other == BOX:
        sphere_box(shapes, placed, a, b, margin, manifold)
    else:
        convex_convex(shapes, placed, gjk, a, b, margin, manifold)
    if other == CAPSULE or other == CYLINDER or other == BOX:
        beside_ball(shapes, placed, gjk, a, b, margin, manifold)
