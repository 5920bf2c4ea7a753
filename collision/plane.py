"""A plane with every convex shape. The normal is the plane's z axis; what is below the plane is inside."""

from __future__ import annotations

from typing import Any

from artsim.collision.frames import axis, centre, dot, turned_back
from artsim.collision.manifold import add_contact
from artsim.collision.support import farthest_vertex
from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import sqrt

FEW = 8  # corners of a mesh that are all contacts; of more there is a choice
AROUND = 8  # directions in which a mesh may tilt; the first a sixteenth of a turn from the plane's x axis
COSINE_16 = 0.9238795325112867
SINE_16 = 0.3826834323650898
TILTS = 3  # so many in each, smaller and smaller
FINER = 0.25
UPRIGHT = 1e-6  # sine of a cylinder's tilt below which its lowest point is no direction to rely on
STANDING = 0.7  # cosine of the tilt above which a cylinder stands on an end, below which it lies on its side
DIAGONAL = 0.7071067811865476  # cosine of 45 degrees


@inlined
def height(placed: Any, a: Any, x0: Any, x1: Any, x2: Any) -> Any:
    """Of a point above plane a."""
    n0, n1, n2 = axis(placed, a, 2)
    return dot(x0 - placed.position[a, 0], x1 - placed.position[a, 1], x2 - placed.position[a, 2], n0, n1, n2)


@inlined
def add_point(
    placed: Any, a: Any, x0: Any, x1: Any, x2: Any, gap: Any, margin: Any, feature: Any, manifold: Any
) -> None:
    """The contact of a surface's point that is `gap` above plane a."""
    if gap < margin:
        n0, n1, n2 = axis(placed, a, 2)
        half = 0.5 * gap
        add_contact(manifold, gap, x0 - half * n0, x1 - half * n1, x2 - half * n2, n0, n1, n2, feature)


@njit
def plane_sphere(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """One contact."""
    x0, x1, x2 = centre(placed, b)
    r = shapes.size[b, 0]
    n0, n1, n2 = axis(placed, a, 2)
    add_point(placed, a, x0 - r * n0, x1 - r * n1, x2 - r * n2, height(placed, a, x0, x1, x2) - r, margin, 0, manifold)


@njit
def plane_capsule(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """Two contacts, one of each end."""
    x0, x1, x2 = centre(placed, b)
    u0, u1, u2 = axis(placed, b, 2)
    r = shapes.size[b, 0]
    n0, n1, n2 = axis(placed, a, 2)
    for end in range(2):
        h = shapes.size[b, 1] * (2 * end - 1)
        y0 = x0 + h * u0
        y1 = x1 + h * u1
        y2 = x2 + h * u2
        add_point(
            placed, a, y0 - r * n0, y1 - r * n1, y2 - r * n2, height(placed, a, y0, y1, y2) - r, margin, end, manifold
        )


@njit
def plane_ellipsoid(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """One contact: the point whose tangent plane is parallel; r_i = s_i² l_i / |s l|, l the normal in its axes."""
    n0, n1, n2 = axis(placed, a, 2)
    l0, l1, l2 = turned_back(placed, b, n0, n1, n2)
    w0 = shapes.size[b, 0] * l0
    w1 = shapes.size[b, 1] * l1
    w2 = shapes.size[b, 2] * l2
    reach = sqrt(dot(w0, w1, w2, w0, w1, w2))
    x0, x1, x2 = centre(placed, b)
    gap = height(placed, a, x0, x1, x2) - reach
    if gap < margin:
        w0 *= shapes.size[b, 0] / reach
        w1 *= shapes.size[b, 1] / reach
        w2 *= shapes.size[b, 2] / reach
        R = placed.rotation
        x0 -= R[b, 0, 0] * w0 + R[b, 0, 1] * w1 + R[b, 0, 2] * w2
        x1 -= R[b, 1, 0] * w0 + R[b, 1, 1] * w1 + R[b, 1, 2] * w2
        x2 -= R[b, 2, 0] * w0 + R[b, 2, 1] * w1 + R[b, 2, 2] * w2
        add_point(placed, a, x0, x1, x2, gap, margin, 0, manifold)


@inlined
def add_rim(
    shapes: Any, placed: Any, a: Any, b: Any, end: Any, w0: Any, w1: Any, margin: Any, feature: Any, manifold: Any
) -> None:
    """The contact of the point of a cylinder's rim in direction (w0, w1) of its axes, at the end -1 or 1."""
    x0, x1, x2 = centre(placed, b)
    R = placed.rotation
    r = shapes.size[b, 0]
    h = shapes.size[b, 1] * end
    x0 += r * (w0 * R[b, 0, 0] + w1 * R[b, 0, 1]) + h * R[b, 0, 2]
    x1 += r * (w0 * R[b, 1, 0] + w1 * R[b, 1, 1]) + h * R[b, 1, 2]
    x2 += r * (w0 * R[b, 2, 0] + w1 * R[b, 2, 1]) + h * R[b, 2, 2]
    add_point(placed, a, x0, x1, x2, height(placed, a, x0, x1, x2), margin, feature, manifold)


@njit
def plane_cylinder(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """Lying: the lowest point of either rim. Standing: four of the lower rim, fixed in it but for the lowest.

    Features: 0 and 1 the lowest points of the rims, then the fixed ones.
    """
    n0, n1, n2 = axis(placed, a, 2)
    l0, l1, l2 = turned_back(placed, b, n0, n1, n2)
    tilt = sqrt(l0 * l0 + l1 * l1)
    end = -1 if l2 > 0.0 else 1
    w0 = 0.0
    w1 = 0.0
    if tilt > UPRIGHT:
        w0 = -l0 / tilt
        w1 = -l1 / tilt
        add_rim(shapes, placed, a, b, end, w0, w1, margin, (end + 1) // 2, manifold)
    if abs(l2) < STANDING:
        add_rim(shapes, placed, a, b, -end, w0, w1, margin, (1 - end) // 2, manifold)
        return
    for k in range(4):  # the lowest point stands in for the fixed one next to it
        q0 = 0.0 if k & 1 else 1.0 - k
        q1 = 2.0 - k if k & 1 else 0.0
        near = q0 * w0 + q1 * w1
        if near < DIAGONAL:
            add_rim(shapes, placed, a, b, end, q0, q1, margin, 4 + 2 * (end + 1) + k, manifold)


@njit
def plane_box(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """The four corners of the face that looks at the plane; features: corners, three bits."""
    n0, n1, n2 = axis(placed, a, 2)
    l0, l1, l2 = turned_back(placed, b, n0, n1, n2)
    x0, x1, x2 = centre(placed, b)
    middle = height(placed, a, x0, x1, x2)
    e0 = shapes.size[b, 0] * l0
    e1 = shapes.size[b, 1] * l1
    e2 = shapes.size[b, 2] * l2
    if middle - (abs(e0) + abs(e1) + abs(e2)) >= margin:
        return
    k = 0
    steepest = l0
    if abs(l1) > abs(steepest):
        k = 1
        steepest = l1
    if abs(l2) > abs(steepest):
        k = 2
        steepest = l2
    down = 0 if steepest > 0.0 else 1  # the bit of the lower side
    R = placed.rotation
    for corner in range(8):
        if (corner >> k) & 1 != down:
            continue
        s0 = 2 * (corner & 1) - 1
        s1 = (corner & 2) - 1
        s2 = (corner >> 1 & 2) - 1
        gap = middle + s0 * e0 + s1 * e1 + s2 * e2
        h0 = s0 * shapes.size[b, 0]
        h1 = s1 * shapes.size[b, 1]
        h2 = s2 * shapes.size[b, 2]
        y0 = x0 + h0 * R[b, 0, 0] + h1 * R[b, 0, 1] + h2 * R[b, 0, 2]
        y1 = x1 + h0 * R[b, 1, 0] + h1 * R[b, 1, 1] + h2 * R[b, 1, 2]
        y2 = x2 + h0 * R[b, 2, 0] + h1 * R[b, 2, 1] + h2 * R[b, 2, 2]
        add_point(placed, a, y0, y1, y2, gap, margin, corner, manifold)


@inlined
def corner_height(shapes: Any, v: Any, l0: Any, l1: Any, l2: Any) -> Any:
    """Of vertex v along l, both in the shape's axes."""
    return l0 * shapes.vertex[v, 0] + l1 * shapes.vertex[v, 1] + l2 * shapes.vertex[v, 2]


@inlined
def add_corner(shapes: Any, placed: Any, a: Any, b: Any, first: Any, v: Any, margin: Any, manifold: Any) -> None:
    """The contact of vertex v of convex mesh b."""
    x0, x1, x2 = centre(placed, b)
    R = placed.rotation
    p = shapes.vertex
    x0 += R[b, 0, 0] * p[v, 0] + R[b, 0, 1] * p[v, 1] + R[b, 0, 2] * p[v, 2]
    x1 += R[b, 1, 0] * p[v, 0] + R[b, 1, 1] * p[v, 1] + R[b, 1, 2] * p[v, 2]
    x2 += R[b, 2, 0] * p[v, 0] + R[b, 2, 1] * p[v, 1] + R[b, 2, 2] * p[v, 2]
    add_point(placed, a, x0, x1, x2, height(placed, a, x0, x1, x2), margin, v - first, manifold)


@njit
def plane_convex(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> None:
    """The corners within the margin, or of more than FEW those that can come to lie on the plane; features: corners."""
    x0, x1, x2 = centre(placed, b)
    middle = height(placed, a, x0, x1, x2)
    if middle - shapes.reach[b] >= margin:
        return
    n0, n1, n2 = axis(placed, a, 2)
    l0, l1, l2 = turned_back(placed, b, n0, n1, n2)
    first = shapes.vertex_start[shapes.mesh[b]]
    last = shapes.vertex_start[shapes.mesh[b] + 1]
    lowest = first
    depth = corner_height(shapes, first, l0, l1, l2)
    number = 0
    for v in range(first, last):
        h = corner_height(shapes, v, l0, l1, l2)
        number += 1 if middle + h < margin else 0
        if h < depth:
            depth = h
            lowest = v
    if number > FEW:
        add_corner(shapes, placed, a, b, first, lowest, margin, manifold)
        add_tilted(
            shapes, placed, a, b, lowest, (margin - min(middle + depth, 0.0)) / shapes.reach[b], margin, manifold
        )
    elif number > 0:
        for v in range(first, last):
            add_corner(shapes, placed, a, b, first, v, margin, manifold)


@njit
def add_tilted(shapes: Any, placed: Any, a: Any, b: Any, lowest: Any, most: Any, margin: Any, manifold: Any) -> None:
    """The corners that are lowest when b is tilted in any of AROUND directions, by up to `most` [rad], each once.

    Whatever becomes of the velocities, a corner goes in deepest only if it is lowest at the end of the step; b turns
    by no more than its margin over its reach, or contacts are looked for again. The outermost corners alone hold
    nothing that is domed: its middle goes in between them.
    """
    n0, n1, n2 = axis(placed, a, 2)
    l0, l1, l2 = turned_back(placed, b, n0, n1, n2)
    n0, n1, n2 = axis(placed, a, 0)
    u0, u1, u2 = turned_back(placed, b, n0, n1, n2)
    n0, n1, n2 = axis(placed, a, 1)
    v0, v1, v2 = turned_back(placed, b, n0, n1, n2)
    first = shapes.vertex_start[shapes.mesh[b]]
    last = shapes.vertex_start[shapes.mesh[b] + 1]
    begin = manifold.number[0] - 1
    cosine = COSINE_16
    sine = SINE_16
    for _ in range(AROUND):
        tilt = most
        for _ in range(TILTS):
            x = tilt * cosine
            y = tilt * sine
            best = farthest_vertex(
                shapes, first, last, lowest, x * u0 + y * v0 - l0, x * u1 + y * v1 - l1, x * u2 + y * v2 - l2
            )
            known = False
            for k in range(begin, manifold.number[0]):
                known = known or manifold.feature[k] == best - first
            if not known:
                add_corner(shapes, placed, a, b, first, best, margin, manifold)
            tilt *= FINER
        cosine, sine = DIAGONAL * (cosine - sine), DIAGONAL * (sine + cosine)
