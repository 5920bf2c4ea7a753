"""Tessellates primitive shapes: triangles in the geom's frame, counter-clockwise seen from outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Whole = NDArray[np.int32]
Triangles = tuple[Real, Whole]
"""Points (n, 3) [m] and faces (m, 3)."""

AROUND = 32  # vertices of a circle
INFINITE = 20.0  # half length of an infinite plane [m]


def primitive(kind: str, size: Sequence[float]) -> Triangles:
    """The triangles of a geom; `size` as in description.Geom. Sharp edges have separate vertices for either side."""
    if kind == "box":
        return box(np.asarray(size, float))
    if kind == "plane":
        return plane(*(half or INFINITE for half in size[:2]))
    if kind == "cylinder":
        return cylinder(size[0], size[1])
    if kind == "capsule":
        return capsule(size[0], size[1])
    points, faces = capsule(1.0, 0.0)
    return points * (np.asarray(size, float) if kind == "ellipsoid" else size[0]), faces


def box(half: Real) -> Triangles:
    """A box of half lengths `half` [m]: six faces of four vertices each."""
    square = np.array([[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]], float)
    sides = []
    for axis in range(3):
        turned = np.roll(square, axis + 1, axis=1)
        sides += [turned, -turned[::-1]]
    faces = np.array([[4 * side + k for k in corner] for side in range(6) for corner in ((0, 1, 2), (0, 2, 3))])
    return np.concatenate(sides) * half, faces.astype(np.int32)


def plane(x: float, y: float) -> Triangles:
    """A rectangle of half lengths x, y [m] that faces +z."""
    points = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]], float)
    return points, np.array([[0, 1, 2], [0, 2, 3]], np.int32)


def cylinder(radius: float, half: float) -> Triangles:
    """A cylinder about z: a side and two caps."""
    low, high = ring(radius, -half), ring(radius, half)
    points = np.concatenate([low, high, low, high, [[0, 0, -half], [0, 0, half]]])
    k = np.arange(AROUND)
    after, bottom = (k + 1) % AROUND, np.full(AROUND, 4 * AROUND)
    lids = np.concatenate(
        [
            np.stack([bottom, 2 * AROUND + after, 2 * AROUND + k], axis=1),
            np.stack([bottom + 1, 3 * AROUND + k, 3 * AROUND + after], axis=1),
        ]
    )
    return points, np.concatenate([between_rings(1), lids]).astype(np.int32)


def capsule(radius: float, half: float) -> Triangles:
    """A capsule about z: rings from the lower to the upper pole; a sphere if `half` is 0."""
    rows = AROUND // 4
    lower = np.linspace(-np.pi / 2, 0, rows + 1)
    upper = np.linspace(0, np.pi / 2, rows + 1)[1 if half == 0 else 0 :]
    rings = [ring(radius * np.cos(a), radius * np.sin(a) - half) for a in lower]
    rings += [ring(radius * np.cos(a), radius * np.sin(a) + half) for a in upper]
    return np.concatenate(rings), between_rings(len(rings) - 1)


def ring(radius: float, height: float) -> Real:
    """Vertices (AROUND, 3) of a circle about z."""
    angles = np.arange(AROUND) * (2 * np.pi / AROUND)
    return np.stack([radius * np.cos(angles), radius * np.sin(angles), np.full(AROUND, height)], axis=1)


def between_rings(gaps: int) -> Whole:
    """Faces between successive rings of AROUND vertices, from bottom to top."""
    k = np.arange(AROUND)
    after = (k + 1) % AROUND
    gap = np.concatenate([np.stack([k, after, AROUND + after], 1), np.stack([k, AROUND + after, AROUND + k], 1)])
    return np.concatenate([gap + AROUND * row for row in range(gaps)]).astype(np.int32)


def height_field(z: Real, size: Sequence[float]) -> Triangles:
    """The upper side of a height field; heights `z` [m], rows along y, columns along x."""
    rows, columns = z.shape
    x, y = np.meshgrid(np.linspace(-size[0], size[0], columns), np.linspace(-size[1], size[1], rows))
    first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    lower = np.stack([first, first + 1, first + columns + 1], axis=1)
    upper = np.stack([first, first + columns + 1, first + columns], axis=1)
    return np.stack([x, y, z], axis=-1).reshape(-1, 3), np.concatenate([lower, upper]).astype(np.int32)
