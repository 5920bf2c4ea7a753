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
def collide(S: Any, P: Any, k: Any, a: Any, b: Any, margin: Any, c: Any) -> None:
    """Contacts of shapes a and b, kind[a] <= kind[b], that are nearer than margin, appended to c.

    In closed form where there is one, else by GJK and EPA. What cannot move (planes, fields, triangles) does not touch
    its like.
    """
    one = S.kind[a]
    if one == PLANE:
        _with_plane(S, P, a, b, margin, c)
    elif one == HEIGHT_FIELD or one == TRIANGLES:
        if S.kind[b] > TRIANGLES:
            _with_triangles(S, P, k, a, b, margin, c)
    elif one == SPHERE:
        _with_sphere(S, P, k, a, b, margin, c)
    elif one == CAPSULE and S.kind[b] == CAPSULE:
        capsule_capsule(S, P, a, b, margin, c)
    elif one == CAPSULE and S.kind[b] == BOX:
        capsule_box(S, P, a, b, margin, c)
    elif one == BOX and S.kind[b] == BOX:
        if box_box(S, P, a, b, margin, c):
            crossed_boxes(S, P, k, a, b, margin, c)
    else:
        convex_convex(S, P, k, a, b, margin, c)


@njit
def _with_plane(S: Any, P: Any, a: Any, b: Any, margin: Any, c: Any) -> None:
    other = S.kind[b]
    if other == SPHERE:
        plane_sphere(S, P, a, b, margin, c)
    elif other == CAPSULE:
        plane_capsule(S, P, a, b, margin, c)
    elif other == ELLIPSOID:
        plane_ellipsoid(S, P, a, b, margin, c)
    elif other == CYLINDER:
        plane_cylinder(S, P, a, b, margin, c)
    elif other == BOX:
        plane_box(S, P, a, b, margin, c)
    else:
        plane_convex(S, P, a, b, margin, c)


@njit
def _with_triangles(S: Any, P: Any, k: Any, a: Any, b: Any, margin: Any, c: Any) -> None:
    if S.kind[a] == TRIANGLES:
        triangles_convex(S, P, k, a, b, margin, c)
    else:
        height_field_convex(S, P, k, a, b, margin, c)


@njit
def _with_sphere(S: Any, P: Any, k: Any, a: Any, b: Any, margin: Any, c: Any) -> None:
    other = S.kind[b]
    if other == SPHERE:
        sphere_sphere(S, P, a, b, margin, c)
    elif other == CAPSULE:
        sphere_capsule(S, P, a, b, margin, c)
    elif other == CYLINDER:
        sphere_cylinder(S, P, a, b, margin, c)
    elif other == BOX:
        sphere_box(S, P, a, b, margin, c)
    else:
        convex_convex(S, P, k, a, b, margin, c)
    if other == CAPSULE or other == CYLINDER or other == BOX:
        beside_ball(S, P, k, a, b, margin, c)
