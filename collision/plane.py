"""Contacts of a plane with every convex shape. The normal is the plane's z axis; below the plane is inside."""

from __future__ import annotations

from artsim.collision.frames import along_axes, axis, centre, turned
from artsim.collision.manifold import add_contact
from artsim.collision.shapes import Pair
from artsim.collision.support import farthest_vertex
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import sqrt
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import (
    by_component,
    combined,
    component,
    divided,
    dot,
    length,
    minus,
    minus_times,
    plus,
    plus_along,
    plus_times,
    row_of,
)

FEW = 8  # largest number of corners of a mesh that are all contacts; of more corners some are chosen
AROUND = 8  # directions in which a mesh may tilt, the first a sixteenth of a turn from the plane's x axis
COSINE_16 = 0.9238795325112867
SINE_16 = 0.3826834323650898
TILTS = 3  # tilt angles in each direction, decreasing
FINER = 0.25
UPRIGHT = 1e-6  # sine of a cylinder's tilt below which its lowest point is unreliable
STANDING = 0.7  # cosine of the tilt above which a cylinder stands on an end, below which it lies on its side
DIAGONAL = 0.7071067811865476  # cosine of 45 degrees


@inlined
def height(pair: Pair, x: Vec3) -> float:
    """Height of a point above plane a [m]."""
    return dot(minus(x, centre(pair.placed, pair.a)), axis(pair.placed, pair.a, 2))


@inlined
def add_point(pair: Pair, x: Vec3, gap: float, feature: int) -> None:
    """Add the contact of a surface point that is `gap` above plane a."""
    if gap < pair.margin:
        normal = axis(pair.placed, pair.a, 2)
        add_contact(pair.manifold, gap, minus_times(x, 0.5 * gap, normal), normal, feature)


@njit
def plane_sphere(pair: Pair) -> None:
    """Add one contact."""
    x = centre(pair.placed, pair.b)
    r = pair.shapes.size[pair.b, 0]
    normal = axis(pair.placed, pair.a, 2)
    add_point(pair, minus_times(x, r, normal), height(pair, x) - r, 0)


@njit
def plane_capsule(pair: Pair) -> None:
    """Add two contacts, one for each end."""
    x = centre(pair.placed, pair.b)
    u = axis(pair.placed, pair.b, 2)
    r = pair.shapes.size[pair.b, 0]
    normal = axis(pair.placed, pair.a, 2)
    for end in range(2):
        h = pair.shapes.size[pair.b, 1] * (2 * end - 1)
        y = plus_times(x, h, u)
        add_point(pair, minus_times(y, r, normal), height(pair, y) - r, end)


@njit
def plane_ellipsoid(pair: Pair) -> None:
    """Add the point whose tangent plane is parallel: r_i = s_i² l_i / |s l|, with the normal l in the shape's axes."""
    size = row_of(pair.shapes.size, pair.b)
    w = by_component(size, along_axes(pair.placed, pair.b, axis(pair.placed, pair.a, 2)))
    reach = length(w)
    x = centre(pair.placed, pair.b)
    gap = height(pair, x) - reach
    if gap < pair.margin:
        r = by_component(w, divided(size, reach))
        add_point(pair, minus(x, turned(pair.placed, pair.b, r)), gap, 0)


@inlined
def add_rim(pair: Pair, end: int, w0: float, w1: float, feature: int) -> None:
    """Add the contact of a cylinder's rim in direction (w0, w1) of its axes, at the end -1 or 1."""
    x = centre(pair.placed, pair.b)
    r = pair.shapes.size[pair.b, 0]
    h = pair.shapes.size[pair.b, 1] * end
    R, b = pair.placed.rotation, pair.b
    out = (
        r * (w0 * R[b, 0, 0] + w1 * R[b, 0, 1]) + h * R[b, 0, 2],
        r * (w0 * R[b, 1, 0] + w1 * R[b, 1, 1]) + h * R[b, 1, 2],
        r * (w0 * R[b, 2, 0] + w1 * R[b, 2, 1]) + h * R[b, 2, 2],
    )
    x = plus(x, out)
    add_point(pair, x, height(pair, x), feature)


@njit
def plane_cylinder(pair: Pair) -> None:
    """Add the lowest point of each rim of a lying cylinder, or four points of the lower rim of a standing one.

    The four points are fixed to the rim, except the lowest one. Features: 0 and 1 are the lowest points of the rims,
    followed by the fixed ones.
    """
    l0, l1, l2 = along_axes(pair.placed, pair.b, axis(pair.placed, pair.a, 2))
    tilt = sqrt(l0 * l0 + l1 * l1)
    end = -1 if l2 > 0.0 else 1
    w0 = 0.0
    w1 = 0.0
    if tilt > UPRIGHT:
        w0 = -l0 / tilt
        w1 = -l1 / tilt
        add_rim(pair, end, w0, w1, (end + 1) // 2)
    if abs(l2) < STANDING:
        add_rim(pair, -end, w0, w1, (1 - end) // 2)
        return
    for k in range(4):  # the lowest point replaces the nearest fixed one
        q0 = 0.0 if k & 1 else 1.0 - k
        q1 = 2.0 - k if k & 1 else 0.0
        near = q0 * w0 + q1 * w1
        if near < DIAGONAL:
            add_rim(pair, end, q0, q1, 4 + 2 * (end + 1) + k)


@njit
def plane_box(pair: Pair) -> None:
    """Add the four corners of the face nearest to the plane; features: corners, three bits."""
    placed, b = pair.placed, pair.b
    l = along_axes(pair.placed, pair.b, axis(pair.placed, pair.a, 2))
    x = centre(placed, b)
    middle = height(pair, x)
    size = row_of(pair.shapes.size, b)
    e = by_component(size, l)
    if middle - (abs(e[0]) + abs(e[1]) + abs(e[2])) >= pair.margin:
        return
    k = 0
    if abs(l[1]) > abs(l[0]):
        k = 1
    if abs(l[2]) > abs(component(l, k)):
        k = 2
    down = 0 if component(l, k) > 0.0 else 1  # the bit of the lower side
    for corner in range(8):
        if (corner >> k) & 1 != down:
            continue
        s0 = 2 * (corner & 1) - 1
        s1 = (corner & 2) - 1
        s2 = (corner >> 1 & 2) - 1
        h = (s0 * size[0], s1 * size[1], s2 * size[2])
        y = plus_along(x, h, axis(placed, b, 0), axis(placed, b, 1), axis(placed, b, 2))
        add_point(pair, y, middle + s0 * e[0] + s1 * e[1] + s2 * e[2], corner)


@inlined
def add_vertex(pair: Pair, first: int, v: int) -> None:
    """Add the contact of vertex v of convex mesh b."""
    x = plus(centre(pair.placed, pair.b), turned(pair.placed, pair.b, row_of(pair.shapes.vertex, v)))
    add_point(pair, x, height(pair, x), v - first)


@njit
def plane_convex(pair: Pair) -> None:
    """Add the corners within the margin or, of more than FEW, those that can touch the plane; feature: corner."""
    shapes, b, margin = pair.shapes, pair.b, pair.margin
    middle = height(pair, centre(pair.placed, b))
    if middle - shapes.reach[b] >= margin:
        return
    l = along_axes(pair.placed, pair.b, axis(pair.placed, pair.a, 2))
    first = shapes.vertex_start[shapes.mesh[b]]
    last = shapes.vertex_start[shapes.mesh[b] + 1]
    lowest = first
    depth = dot(l, row_of(shapes.vertex, first))
    number = 0
    for v in range(first, last):
        h = dot(l, row_of(shapes.vertex, v))
        number += 1 if middle + h < margin else 0
        if h < depth:
            depth = h
            lowest = v
    if number > FEW:
        add_vertex(pair, first, lowest)
        add_tilted(pair, lowest, (margin - min(middle + depth, 0.0)) / shapes.reach[b])
    elif number > 0:
        for v in range(first, last):
            add_vertex(pair, first, v)


@njit
def add_tilted(pair: Pair, lowest: int, most: float) -> None:
    """Add the corners that are lowest when b is tilted in any of AROUND directions by up to `most` [rad], each once.

    For any velocities, only a corner that is lowest at the end of the step can penetrate deepest, and b rotates by no
    more than its margin over its reach, or contacts are detected again. The outermost corners alone do not support a
    domed mesh, whose middle penetrates between them.
    """
    shapes, placed, manifold = pair.shapes, pair.placed, pair.manifold
    l = along_axes(pair.placed, pair.b, axis(pair.placed, pair.a, 2))
    u = along_axes(placed, pair.b, axis(placed, pair.a, 0))
    v = along_axes(placed, pair.b, axis(placed, pair.a, 1))
    first = shapes.vertex_start[shapes.mesh[pair.b]]
    last = shapes.vertex_start[shapes.mesh[pair.b] + 1]
    begin = manifold.number[0] - 1
    cosine = COSINE_16
    sine = SINE_16
    outermost = lowest  # each search starts from the corner found last, which is near
    for _ in range(AROUND):
        tilt = most
        best = outermost
        for ring in range(TILTS):
            down = minus(combined(tilt * cosine, u, tilt * sine, v), l)
            best = farthest_vertex(shapes, first, last, best, down)
            outermost = best if ring == 0 else outermost
            known = False
            for k in range(begin, manifold.number[0]):
                known = known or manifold.feature[k] == best - first
            if not known:
                add_vertex(pair, first, best)
            tilt *= FINER
        cosine, sine = DIAGONAL * (cosine - sine), DIAGONAL * (sine + cosine)
