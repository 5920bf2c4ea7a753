"""Contacts of a height field with a convex shape, from the triangles below the shape.

Rows are along y, columns along x; the diagonal of a cell goes from its low to its high corner in both, as in MuJoCo.
The field is solid down to its base: its walls and its underside collide with shapes outside.
"""

from __future__ import annotations

from math import floor, inf

from artsim.collision.gjk_work import GjkWork
from artsim.collision.shapes import Pair, Shapes
from artsim.collision.support import begin_triangle
from artsim.collision.triangles import (
    FALLING,
    STRIDE,
    add_touch,
    box_of,
    find_touch,
    finish,
    highest_of,
    is_touched,
    look_at,
    make_room,
    nearer,
    push_out,
    rise_over,
    rises,
)
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import minus


@njit
def height_field_convex(pair: Pair, gjk: GjkWork) -> None:
    """The kernel for a height field and a sphere, capsule, ellipsoid, cylinder, box or convex mesh."""
    shapes, a = pair.shapes, pair.a
    low, high = box_of(pair, gjk)
    inside = _holds(shapes, gjk, a)
    first = pair.manifold.number[0]
    rows, columns = shapes.field_shape[shapes.mesh[a], 0], shapes.field_shape[shapes.mesh[a], 1]
    c0 = _cell(low[0], shapes.size[a, 0], columns)
    c1 = _cell(high[0], shapes.size[a, 0], columns)
    r0 = _cell(low[1], shapes.size[a, 1], rows)
    r1 = _cell(high[1], shapes.size[a, 1], rows)
    if _is_beside(shapes, a, low, high):
        return
    nearest = inf
    behind = -1
    left_out = -inf
    cross = -1
    for r in range(r0, r1 + 1):
        for x in range(c0, c1 + 1):
            for half in range(2):
                corners = _corners(shapes, a, r, x, half)
                if highest_of(corners)[2] < low[2]:
                    continue
                begin_triangle(pair, gjk, corners, 0.0)
                height, away = look_at(gjk)
                feature = 2 * (r * columns + x) + half
                nearest, behind = nearer(nearest, behind, height, away, feature)
                if height >= 0.0 and find_touch(pair, gjk):
                    make_room(pair, gjk, first)
                    p, q, s = _grid_points(r, x, half)
                    peaks = _is_peak(shapes, gjk, a, p), _is_peak(shapes, gjk, a, q), _is_peak(shapes, gjk, a, s)
                    gap = add_touch(pair, gjk, _rises(shapes, a, r, x, half), peaks, STRIDE * feature)
                    if gap > left_out:
                        left_out = gap
                        cross = feature
    if not inside:
        behind = -1
        _touch_walls(pair, gjk, first, r0, r1, c0, c1)
    pushing = behind if behind >= 0 else cross
    if pushing >= 0 and not is_touched(pair, first):
        cell = pushing // 2
        corners = _corners(shapes, a, cell // columns, cell % columns, pushing % 2)
        begin_triangle(pair, gjk, corners, 0.0)
        push_out(pair, gjk, STRIDE * pushing)
    finish(pair, gjk, first)


@inlined
def _holds(shapes: Shapes, gjk: GjkWork, a: int) -> bool:
    """True if the origin of b is above the base and within the walls."""
    x, y, z = abs(gjk.offset[0]), abs(gjk.offset[1]), gjk.offset[2]
    return bool(x < shapes.size[a, 0] and y < shapes.size[a, 1] and z > -shapes.size[a, 2])


@inlined
def _is_beside(shapes: Shapes, a: int, low: Vec3, high: Vec3) -> bool:
    """True if a box is separate from the bounding box of the field."""
    x, y, z = shapes.size[a, 0], shapes.size[a, 1], shapes.size[a, 2]
    return bool(low[0] > x or high[0] < -x or low[1] > y or high[1] < -y or low[2] > z or high[2] < -z)


@inlined
def _cell(x: float, half: float, points: int) -> int:
    """The cell along one direction in which x lies, or the nearest one."""
    place = (x + half) / (2.0 * half) * (points - 1)
    return int(min(max(floor(place), 0.0), points - 2.0))


# ------------------------------------------------------------------ points of the grid: row, column


@inlined
def _point(shapes: Shapes, a: int, at: tuple[int, int]) -> Vec3:
    """Position of a point of the grid in a's axes."""
    f = shapes.mesh[a]
    rows, columns = shapes.field_shape[f, 0], shapes.field_shape[f, 1]
    r, x = at
    return (
        shapes.size[a, 0] * (2.0 * x / (columns - 1.0) - 1.0),
        shapes.size[a, 1] * (2.0 * r / (rows - 1.0) - 1.0),
        shapes.elevation[shapes.field_start[f] + r * columns + x],
    )


@inlined
def _has_point(shapes: Shapes, a: int, at: tuple[int, int]) -> bool:
    """True if the grid has such a point."""
    f = shapes.mesh[a]
    return bool(0 <= at[0] < shapes.field_shape[f, 0] and 0 <= at[1] < shapes.field_shape[f, 1])


@inlined
def _grid_points(r: int, x: int, half: int) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """The corners (row, column) of a triangle of the cell that begins at row r and column x; half 0: that at low y."""
    return (r, x), (r + half, x + 1), (r + 1, x + 1 - half)


@njit
def _corners(shapes: Shapes, a: int, r: int, x: int, half: int) -> tuple[Vec3, Vec3, Vec3]:
    """Positions of the corners of a triangle in a's axes."""
    p, q, s = _grid_points(r, x, half)
    return _point(shapes, a, p), _point(shapes, a, q), _point(shapes, a, s)


@njit
def _rises(shapes: Shapes, a: int, r: int, x: int, half: int) -> Vec3:
    """Bounds of the tilt of normals over the three edges of a triangle; see `rise_over`."""
    p, q, s = _grid_points(r, x, half)
    if half == 0:  # along x at low y; along y at high x; the diagonal
        return (
            _rise(shapes, a, p, q, s, (r - 1, x)),
            _rise(shapes, a, q, s, p, (r + 1, x + 2)),
            _rise(shapes, a, s, p, q, (r + 1, x)),
        )
    return (  # the diagonal; along x at high y; along y at low x
        _rise(shapes, a, p, q, s, (r, x + 1)),
        _rise(shapes, a, q, s, p, (r + 2, x + 1)),
        _rise(shapes, a, s, p, q, (r, x - 1)),
    )


@njit
def _is_peak(shapes: Shapes, gjk: GjkWork, a: int, at: tuple[int, int]) -> bool:
    """True if no edge from a point of the grid rises along the normal."""
    p = _point(shapes, a, at)
    for i in range(6):  # the diagonals, along x, along y
        along = 1 if i % 2 == 0 else -1
        other = (at[0] + (along if i // 2 != 1 else 0), at[1] + (along if i // 2 != 2 else 0))
        if _has_point(shapes, a, other) and rises(gjk, minus(_point(shapes, a, other), p)):
            return False
    return True


@njit
def _rise(
    shapes: Shapes, a: int, begin: tuple[int, int], end: tuple[int, int], own: tuple[int, int], other: tuple[int, int]
) -> float:
    """`rise_over` the edge between two points of a triangle with the corner `own`; the `other` corner is across."""
    if not _has_point(shapes, a, other):
        return FALLING
    p = _point(shapes, a, begin)
    e = minus(_point(shapes, a, end), p)
    return rise_over(e, minus(_point(shapes, a, own), p), minus(_point(shapes, a, other), p))


# ------------------------------------------------------------------ walls and underside


@njit
def _touch_walls(pair: Pair, gjk: GjkWork, first: int, r0: int, r1: int, c0: int, c1: int) -> None:
    """Add contacts of the wall pieces beside the cells under b, and of the underside."""
    shapes, a = pair.shapes, pair.a
    rows, columns = shapes.field_shape[shapes.mesh[a], 0], shapes.field_shape[shapes.mesh[a], 1]
    feature = STRIDE * 2 * rows * columns
    for x in range(c0, c1 + 1):
        if r0 == 0:
            _touch_wall(pair, gjk, first, (0, x), (0, x + 1), feature + STRIDE * (8 * x))
        if r1 == rows - 2:
            _touch_wall(pair, gjk, first, (rows - 1, x + 1), (rows - 1, x), feature + STRIDE * (8 * x + 2))
    for r in range(r0, r1 + 1):
        if c0 == 0:
            _touch_wall(pair, gjk, first, (r + 1, 0), (r, 0), feature + STRIDE * (8 * r + 4))
        if c1 == columns - 2:
            _touch_wall(pair, gjk, first, (r, columns - 1), (r + 1, columns - 1), feature + STRIDE * (8 * r + 6))
    x, y, z = shapes.size[a, 0], shapes.size[a, 1], -shapes.size[a, 2]
    _touch_half(pair, gjk, first, ((-x, -y, z), (-x, y, z), (x, y, z)), FALLING, feature - 2 * STRIDE)
    _touch_half(pair, gjk, first, ((x, y, z), (x, -y, z), (-x, -y, z)), FALLING, feature - STRIDE)


@njit
def _touch_wall(
    pair: Pair, gjk: GjkWork, first: int, begin: tuple[int, int], end: tuple[int, int], feature: int
) -> None:
    """Add contacts of the two wall triangles below a border edge of the surface, with the field on its left."""
    p = _point(pair.shapes, pair.a, begin)
    q = _point(pair.shapes, pair.a, end)
    z = -pair.shapes.size[pair.a, 2]
    below_p = (p[0], p[1], z)
    below_q = (q[0], q[1], z)
    rise = FALLING if _is_corner(pair.shapes, pair.a, begin) else 0.0
    _touch_half(pair, gjk, first, (p, below_p, below_q), rise, feature)
    rise = FALLING if _is_corner(pair.shapes, pair.a, end) else 0.0
    _touch_half(pair, gjk, first, (below_q, q, p), rise, feature + STRIDE)


@inlined
def _is_corner(shapes: Shapes, a: int, at: tuple[int, int]) -> bool:
    """True if a point of the grid is one of its four corners."""
    f = shapes.mesh[a]
    r, x = at
    return (r == 0 or r == shapes.field_shape[f, 0] - 1) and (x == 0 or x == shapes.field_shape[f, 1] - 1)


@njit
def _touch_half(
    pair: Pair, gjk: GjkWork, first: int, corners: tuple[Vec3, Vec3, Vec3], rise: float, feature: int
) -> None:
    """Add contacts of half a quadrilateral: the rise over its first edge is given, its second is a border edge, its
    third the diagonal.

    Corners do not count as peaks: where two walls meet above the ground, their edges make the contacts.
    """
    begin_triangle(pair, gjk, corners, 0.0)
    height, _ = look_at(gjk)
    if height >= 0.0 and find_touch(pair, gjk):
        make_room(pair, gjk, first)
        add_touch(pair, gjk, (rise, FALLING, 0.0), (False, False, False), feature)
