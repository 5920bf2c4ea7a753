"""Points and elements of flexcomps that are boxes, cylinders and ellipsoids: a box's surface, projected.

In dimension 3 the elements are tetrahedra from the centre, in dimension 2 triangles of the surface without its upper
side. Points and elements are in MuJoCo's order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from artsim.sim.articulation.description import Vector3

Place = tuple[int, int, int]
Points = list[Vector3]


def flex_box(kind: str, dim: int, counts: Sequence[int], spacing: Vector3) -> tuple[Points, list[Sequence[int]]]:
    """Points [m] about the origin, and the corners of elements; `kind`: box, cylinder or ellipsoid, `dim`: 2 or 3."""
    half = (
        0.5 * spacing[0] * (counts[0] - 1),
        0.5 * spacing[1] * (counts[1] - 1),
        0.5 * spacing[2] * (counts[2] - 1),
    )
    points: Points = [(0.0, 0.0, 0.0)] if dim == 3 else []
    number: dict[Place, int] = {}
    for place in places(counts, dim):
        number[place] = len(points)
        points.append(projected(kind, place, counts, half))
    quads = (corners for axis in (2, 1, 0) for corners in sides(axis, counts, dim))
    elements: list[Sequence[int]] = []
    for triangles in quads:
        for triangle in triangles:
            corners = [number[place] for place in triangle]
            elements.append([0, *corners] if dim == 3 else corners)
    return points, elements


def places(counts: Sequence[int], dim: int) -> Iterator[Place]:
    """The grid places that have points: below and above, then two sides, then two sides."""
    nx, ny, nz = counts
    top = nz if dim == 2 else nz - 1  # without a lid the walls include the upper rim
    for z in (0, nz - 1) if dim == 3 else (0,):
        yield from ((x, y, z) for x in range(nx) for y in range(ny))
    for y in (0, ny - 1):
        yield from ((x, y, z) for x in range(nx) for z in range(1, top))
    for x in (0, nx - 1):
        yield from ((x, y, z) for y in range(1, ny - 1) for z in range(1, top))


def projected(kind: str, place: Place, counts: Sequence[int], half: Vector3) -> Vector3:
    """The point [m] of the shape onto which a grid place of the box is projected."""
    x, y, z = (2.0 * place[k] / (counts[k] - 1) - 1 for k in range(3))
    if kind == "cylinder":
        length, side = math.hypot(x, y), max(abs(x), abs(y))
        x, y = (x / length * side, y / length * side) if length > 0 else (0.0, 0.0)
    elif kind == "ellipsoid":
        length = math.sqrt(x * x + y * y + z * z)
        x, y, z = x / length, y / length, z / length
    return (x * half[0], y * half[1], z * half[2])


def sides(axis: int, counts: Sequence[int], dim: int) -> Iterator[tuple[tuple[Place, ...], tuple[Place, ...]]]:
    """Two triangles for each cell of the two sides across an axis."""
    u, v = (k for k in range(3) if k != axis)
    for end in (0, counts[axis] - 1):
        if axis == 2 and dim == 2 and end:
            continue
        for i in range(counts[u] - 1):
            for j in range(counts[v] - 1):
                yield cell(axis, end, i, j, dim)


def cell(axis: int, end: int, i: int, j: int, dim: int) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """The triangles of one cell: cut along one diagonal in a solid, and facing outward in a surface."""

    def at(a: int, b: int) -> Place:
        return ((end, a, b), (a, end, b), (a, b, end))[axis]

    if dim == 3:
        return (at(i, j), at(i + 1, j), at(i + 1, j + 1)), (at(i, j), at(i, j + 1), at(i + 1, j + 1))
    if axis == 2:  # only the lower side
        return (at(i, j), at(i + 1, j + 1), at(i + 1, j)), (at(i, j), at(i, j + 1), at(i + 1, j + 1))
    forward = (end == 0) == (axis == 1)
    first, other = (i, i + 1) if forward else (i + 1, i)
    return (at(first, j), at(other, j), at(other, j + 1)), (at(first, j), at(other, j + 1), at(first, j + 1))
