"""A height field and a convex shape: contacts of the triangles under it.

Rows lie along y, columns along x; a cell's diagonal goes from its low to its high corner in both, as MuJoCo has it. The
field is solid down to its base: walls around it and its underside touch what comes from outside.
"""

from __future__ import annotations

from math import floor, inf
from typing import Any

from artsim.collision.support import begin_triangle
from artsim.collision.triangles import (
    MOST_KEPT,
    SAME,
    SHARP,
    STRIDE,
    TIE,
    add_touch,
    box_of,
    find_touch,
    is_touched,
    look_at,
    make_room,
    merge,
    push_out,
    rise_over,
    rises,
    thin_out,
)
from artsim.sim.jit import inlined, njit


@njit
def height_field_convex(shapes: Any, placed: Any, gjk: Any, a: int, b: int, margin: Any, manifold: Any) -> None:
    """The kernel of a height field and a sphere, capsule, ellipsoid, cylinder, box or convex mesh."""
    l0, l1, l2, h0, h1, h2 = box_of(shapes, placed, gjk, a, b, margin)
    inside = _holds(shapes, gjk, a)
    first = manifold.number[0]
    rows, columns = shapes.field_shape[shapes.mesh[a], 0], shapes.field_shape[shapes.mesh[a], 1]
    c0 = _cell(l0, shapes.size[a, 0], columns)
    c1 = _cell(h0, shapes.size[a, 0], columns)
    r0 = _cell(l1, shapes.size[a, 1], rows)
    r1 = _cell(h1, shapes.size[a, 1], rows)
    x, y, z = shapes.size[a, 0], shapes.size[a, 1], shapes.size[a, 2]
    if l0 > x or h0 < -x or l1 > y or h1 < -y or l2 > z or h2 < -z:
        return
    nearest = inf
    behind = -1
    left_out = -inf
    crossed = -1
    for r in range(r0, r1 + 1):
        for x in range(c0, c1 + 1):
            for half in range(2):
                if _highest(shapes, a, r, x, half) < l2:
                    continue
                begin_triangle(shapes, placed, gjk, a, b, _corners(shapes, a, r, x, half), 0.0)
                height, distance = look_at(gjk)
                feature = 2 * (r * columns + x) + half
                if distance < nearest * (1.0 + TIE) and (height >= 0.0 or distance < nearest * (1.0 - TIE)):
                    nearest = distance
                    behind = feature if height < 0.0 else -1
                if height >= 0.0 and find_touch(shapes, gjk, b, margin):
                    make_room(gjk, manifold, first)
                    peaks = (
                        _is_peak(shapes, gjk, a, r, x),
                        _is_peak(shapes, gjk, a, r + half, x + 1),
                        _is_peak(shapes, gjk, a, r + 1, x + 1 - half),
                    )
                    gap = add_touch(
                        shapes, gjk, margin, manifold, _rises(shapes, a, r, x, half), peaks, STRIDE * feature
                    )
                    if gap > left_out:
                        left_out = gap
                        crossed = feature
    if not inside:
        behind = -1
        _touch_walls(shapes, placed, gjk, a, b, margin, manifold, first, r0, r1, c0, c1)
    pushing = behind if behind >= 0 else crossed
    if pushing >= 0 and not is_touched(manifold, first):
        cell = pushing // 2
        begin_triangle(
            shapes, placed, gjk, a, b, _corners(shapes, a, cell // columns, cell % columns, pushing % 2), 0.0
        )
        push_out(shapes, gjk, margin, manifold, STRIDE * pushing)
    merge(manifold, first, SAME * shapes.reach[b])
    thin_out(gjk, manifold, first, MOST_KEPT)


@inlined
def _holds(shapes: Any, gjk: Any, a: int) -> bool:
    """Whether the origin of b is above the base and within the walls."""
    x, y, z = abs(gjk.offset[0]), abs(gjk.offset[1]), gjk.offset[2]
    return bool(x < shapes.size[a, 0] and y < shapes.size[a, 1] and z > -shapes.size[a, 2])


@inlined
def _cell(x: Any, half: Any, points: int) -> int:
    """The cell along one direction in which x lies, or the nearest one."""
    place = (x + half) / (2.0 * half) * (points - 1)
    return int(min(max(floor(place), 0.0), points - 2.0))


@inlined
def _point(shapes: Any, a: int, r: int, x: int) -> Any:
    """A point of the grid, in a's axes."""
    f = shapes.mesh[a]
    rows, columns = shapes.field_shape[f, 0], shapes.field_shape[f, 1]
    return (
        shapes.size[a, 0] * (2.0 * x / (columns - 1.0) - 1.0),
        shapes.size[a, 1] * (2.0 * r / (rows - 1.0) - 1.0),
        shapes.elevation[shapes.field_start[f] + r * columns + x],
    )


@njit
def _corners(shapes: Any, a: int, r: int, x: int, half: int) -> Any:
    """The nine numbers of a triangle's corners, two of them on the diagonal; half 0 is the one at low y."""
    p0, p1, p2 = _point(shapes, a, r, x)
    q0, q1, q2 = _point(shapes, a, r + half, x + 1)
    s0, s1, s2 = _point(shapes, a, r + 1, x + 1 - half)
    return p0, p1, p2, q0, q1, q2, s0, s1, s2


@inlined
def _highest(shapes: Any, a: int, r: int, x: int, half: int) -> Any:
    """The highest z of a triangle."""
    _, _, p2, _, _, q2, _, _, s2 = _corners(shapes, a, r, x, half)
    return max(p2, q2, s2)


@njit
def _rises(shapes: Any, a: int, r: int, x: int, half: int) -> Any:
    """How far normals may lean over the three edges of a triangle."""
    if half == 0:  # along x at low y; along y at high x; the diagonal
        return (
            _rise(shapes, a, r, x, r, x + 1, r + 1, x + 1, r - 1, x),
            _rise(shapes, a, r, x + 1, r + 1, x + 1, r, x, r + 1, x + 2),
            _rise(shapes, a, r + 1, x + 1, r, x, r, x + 1, r + 1, x),
        )
    return (  # the diagonal; along x at high y; along y at low x
        _rise(shapes, a, r, x, r + 1, x + 1, r + 1, x, r, x + 1),
        _rise(shapes, a, r + 1, x + 1, r + 1, x, r, x, r + 2, x + 1),
        _rise(shapes, a, r + 1, x, r, x, r + 1, x + 1, r, x - 1),
    )


@njit
def _is_peak(shapes: Any, gjk: Any, a: int, r: int, x: int) -> bool:
    """Whether no edge from a point of the grid rises along the normal."""
    f = shapes.mesh[a]
    p0, p1, p2 = _point(shapes, a, r, x)
    for i in range(6):  # the diagonals, along x, along y
        along = 1 if i % 2 == 0 else -1
        s = r + (along if i // 2 != 1 else 0)
        y = x + (along if i // 2 != 2 else 0)
        if 0 <= s < shapes.field_shape[f, 0] and 0 <= y < shapes.field_shape[f, 1]:
            q0, q1, q2 = _point(shapes, a, s, y)
            if rises(gjk, q0 - p0, q1 - p1, q2 - p2):
                return False
    return True


@njit
def _rise(shapes: Any, a: int, r0: int, x0: int, r1: int, x1: int, r2: int, x2: int, r3: int, x3: int) -> Any:
    """`rise_over` the edge from grid point 0 to 1 of a triangle with corner 2; corner 3 is the one across."""
    f = shapes.mesh[a]
    if r3 < 0 or x3 < 0 or r3 >= shapes.field_shape[f, 0] or x3 >= shapes.field_shape[f, 1]:
        return SHARP
    p0, p1, p2 = _point(shapes, a, r0, x0)
    q0, q1, q2 = _point(shapes, a, r1, x1)
    s0, s1, s2 = _point(shapes, a, r2, x2)
    t0, t1, t2 = _point(shapes, a, r3, x3)
    return rise_over(q0 - p0, q1 - p1, q2 - p2, s0 - p0, s1 - p1, s2 - p2, t0 - p0, t1 - p1, t2 - p2)


# ------------------------------------------------------------------ walls and underside


@njit
def _touch_walls(
    shapes: Any,
    placed: Any,
    gjk: Any,
    a: int,
    b: int,
    margin: Any,
    manifold: Any,
    first: int,
    r0: int,
    r1: int,
    c0: int,
    c1: int,
) -> None:
    """Contacts of the walls' pieces beside the cells under b, and of the underside."""
    rows, columns = shapes.field_shape[shapes.mesh[a], 0], shapes.field_shape[shapes.mesh[a], 1]
    feature = STRIDE * 2 * rows * columns
    for x in range(c0, c1 + 1):
        if r0 == 0:
            _touch_wall(shapes, placed, gjk, a, b, margin, manifold, first, 0, x, 0, x + 1, feature + STRIDE * (8 * x))
        if r1 == rows - 2:
            _touch_wall(
                shapes,
                placed,
                gjk,
                a,
                b,
                margin,
                manifold,
                first,
                rows - 1,
                x + 1,
                rows - 1,
                x,
                feature + STRIDE * (8 * x + 2),
            )
    for r in range(r0, r1 + 1):
        if c0 == 0:
            _touch_wall(
                shapes, placed, gjk, a, b, margin, manifold, first, r + 1, 0, r, 0, feature + STRIDE * (8 * r + 4)
            )
        if c1 == columns - 2:
            _touch_wall(
                shapes,
                placed,
                gjk,
                a,
                b,
                margin,
                manifold,
                first,
                r,
                columns - 1,
                r + 1,
                columns - 1,
                feature + STRIDE * (8 * r + 6),
            )
    x, y, z = shapes.size[a, 0], shapes.size[a, 1], -shapes.size[a, 2]
    corners = (-x, -y, z, -x, y, z, x, y, z)
    _touch_quad(shapes, placed, gjk, a, b, margin, manifold, first, corners, SHARP, feature - 2 * STRIDE)
    corners = (x, y, z, x, -y, z, -x, -y, z)
    _touch_quad(shapes, placed, gjk, a, b, margin, manifold, first, corners, SHARP, feature - STRIDE)


@njit
def _touch_wall(
    shapes: Any,
    placed: Any,
    gjk: Any,
    a: int,
    b: int,
    margin: Any,
    manifold: Any,
    first: int,
    r0: int,
    x0: int,
    r1: int,
    x1: int,
    feature: int,
) -> None:
    """The two triangles below a border edge of the surface, which has the field on its left."""
    p0, p1, p2 = _point(shapes, a, r0, x0)
    q0, q1, q2 = _point(shapes, a, r1, x1)
    z = -shapes.size[a, 2]
    rise = SHARP if _is_corner(shapes, a, r0, x0) else 0.0
    _touch_quad(shapes, placed, gjk, a, b, margin, manifold, first, (p0, p1, p2, p0, p1, z, q0, q1, z), rise, feature)
    rise = SHARP if _is_corner(shapes, a, r1, x1) else 0.0
    _touch_quad(
        shapes, placed, gjk, a, b, margin, manifold, first, (q0, q1, z, q0, q1, q2, p0, p1, p2), rise, feature + STRIDE
    )


@inlined
def _is_corner(shapes: Any, a: int, r: int, x: int) -> bool:
    """Whether a point of the grid is one of its four corners."""
    f = shapes.mesh[a]
    return (r == 0 or r == shapes.field_shape[f, 0] - 1) and (x == 0 or x == shapes.field_shape[f, 1] - 1)


@njit
def _touch_quad(
    shapes: Any,
    placed: Any,
    gjk: Any,
    a: int,
    b: int,
    margin: Any,
    manifold: Any,
    first: int,
    corners: Any,
    rise: Any,
    feature: int,
) -> None:
    """Half of a quadrilateral: the rise over its first edge is given, its second is a border, its third the diagonal.

    Corners are no peaks: where two walls meet above the ground, the edges have it.
    """
    begin_triangle(shapes, placed, gjk, a, b, corners, 0.0)
    height, _ = look_at(gjk)
    if height >= 0.0 and find_touch(shapes, gjk, b, margin):
        make_room(gjk, manifold, first)
        add_touch(shapes, gjk, margin, manifold, (rise, SHARP, 0.0), (False, False, False), feature)
