"""Meshes generated from parameters (`builtin`, `params`): spheres, cones, super-quadrics, wedges, plates.

Vertices and faces are in MuJoCo's order and, as in MuJoCo, in single precision. Errors are ValueErrors with the reason,
without the place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
MOST = 2000  # of a resolution, whose square is a number of vertices


class Made(NamedTuple):
    """Vertices (n, 3) and faces (m, 3); without faces those of the convex hull serve."""

    vertices: NDArray[Any]
    faces: NDArray[np.int64] = np.zeros((0, 3), np.int64)


def make_mesh(kind: str, params: Sequence[float]) -> Made:
    """The mesh of that kind. Raises ValueError for an unknown kind and for invalid parameters."""
    if kind not in KINDS:
        raise ValueError(f"builtin is {kind[:40]!r}, want one of {', '.join(KINDS)}")
    count, make = KINDS[kind]
    if len(params) != count:
        raise ValueError(f"params holds {len(params)} numbers, want {count} for a {kind}")
    return make(*params)


def whole(name: str, value: float, least: int, most: int = MOST) -> int:
    """A parameter cut to a whole number, as in MuJoCo."""
    if not least <= int(value) <= most:
        raise ValueError(f"the {name} is {value:g}, want {least} to {most}")
    return int(value)


def sphere(subdivisions: float) -> Made:
    """An icosahedron whose triangles are cut into four, `subdivisions` times."""
    phi = np.float32((1.0 + math.sqrt(5.0)) / 2.0)
    corners: list[tuple[Any, ...]] = [
        (-1, phi, 0),
        (1, phi, 0),
        (-1, -phi, 0),
        (1, -phi, 0),
        (0, -1, phi),
        (0, 1, phi),
        (0, -1, -phi),
    ]
    corners += [(0, 1, -phi), (phi, 0, -1), (phi, 0, 1), (-phi, 0, -1), (-phi, 0, 1)]
    start = np.array(corners, np.float32) / np.float64(np.sqrt(np.float64(np.float32(1.0) + phi * phi)))
    vertices = [*start.astype(np.float32)]
    faces = [
        *((0, 11, 5), (0, 5, 1), (0, 1, 7), (0, 7, 10), (0, 10, 11), (1, 5, 9), (5, 11, 4), (11, 10, 2), (10, 7, 6)),
        *((7, 1, 8), (3, 9, 4), (3, 4, 2), (3, 2, 6), (3, 6, 8), (3, 8, 9), (4, 9, 5), (2, 4, 11), (6, 2, 10)),
        *((8, 6, 7), (9, 8, 1)),
    ]
    for _ in range(whole("number of subdivisions", subdivisions, 0, 4)):
        halves: dict[tuple[int, int], int] = {}

        def half(a: int, b: int, known: dict[tuple[int, int], int] = halves) -> int:
            key = (min(a, b), max(a, b))
            if key not in known:
                middle = (vertices[a] + vertices[b]) / np.float32(2)
                x, y, z = middle
                known[key] = len(vertices)
                vertices.append(middle / np.sqrt(x * x + y * y + z * z))
            return known[key]

        finer = []
        for a, b, c in faces:
            ab, bc, ca = half(a, b), half(b, c), half(c, a)
            finer += [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
        faces = finer
    return Made(np.array(vertices), np.array(faces))


def hemisphere(resolution: float) -> Made:
    """Rows of four sides from the pole down to the equator, closed by a fan."""
    rows = whole("resolution", resolution, 0, 10) + 1
    pole, equator = np.array([0.0, 0.0, 1.0]), np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])
    vertices = [pole]
    for row in range(1, rows + 1):
        for side in range(4):
            start, end = (pole + row / rows * (equator[k % 4] - pole) for k in (side, side + 1))
            points = start + np.arange(row)[:, None] * ((end - start) / row)
            vertices += [*(points / np.linalg.norm(points, axis=1)[:, None])]
    vertices.append(np.zeros(3))
    faces = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 1)]
    for row in range(1, rows):
        here, around = 2 * row * (row - 1) + 1, 4 * row
        below, around_below = here + around, 4 * (row + 1)
        for side in range(4):
            for i in range(row + 1):
                a, b = i + row * side, i + (row + 1) * side
                first, low, next_low = here + a % around, below + b % around_below, below + (b + 1) % around_below
                faces.append((first, low, next_low))
                faces += [(first, next_low, here + (a + 1) % around)] if i < row else []
    rim = 2 * rows * (rows - 1) + 1
    faces += [(rim + i, len(vertices) - 1, rim + (i + 1) % (4 * rows)) for i in range(4 * rows)]
    return Made(np.array(vertices), np.array(faces))


def cone(edges: float, radius: float) -> Made:
    """A polygon at z = -1, and one of the given radius, or a point, at z = 1."""
    count = whole("number of edges", edges, 3)
    if not 0 <= radius <= 1:
        raise ValueError(f"the radius is {radius:g}, want 0 to 1")
    angle = 2 * np.arange(2 * count) * math.pi / count  # the upper polygon is a second turn, which rounds differently
    x, y = np.cos(angle), np.sin(angle)
    ring = np.stack([x[:count], y[:count], -np.ones(count)], axis=1)
    top = np.stack([radius * x[count:], radius * y[count:], np.ones(count)], axis=1)
    return Made(np.concatenate([ring, top if radius > 0 else np.array([[0.0, 0.0, 1.0]])]))


def cosine(angle: Any, power: float) -> Any:
    """|cos|^power with the cosine's sign."""
    return np.copysign(np.abs(np.cos(angle)) ** power, np.cos(angle))


def sine(angle: Any, power: float) -> Any:
    """|sin|^power with the sine's sign."""
    return np.copysign(np.abs(np.sin(angle)) ** power, np.sin(angle))


def supersphere(resolution: float, e: float, n: float) -> Made:
    """Rings between two poles; e shapes them, n the meridians."""
    count = whole("resolution", resolution, 3)
    if e < 0 or n < 0:
        raise ValueError(f"e and n are {e:g} and {n:g}, want at least 0")
    v = (-math.pi / 2 + np.arange(1, count) * math.pi / count)[:, None]
    u = (-math.pi + np.arange(count) * 2 * math.pi / count)[None, :]
    rings = np.stack(
        [cosine(v, n) * cosine(u, e), cosine(v, n) * sine(u, e), np.broadcast_to(sine(v, n), (count - 1, count))],
        axis=2,
    )
    vertices = np.concatenate([[[0.0, 0.0, -1.0]], rings.reshape(-1, 3), [[0.0, 0.0, 1.0]]])
    j = np.arange(count)
    after, north, last = (j + 1) % count, len(vertices) - 1, 1 + (count - 2) * count
    faces = [np.stack([0 * j, 1 + after, 1 + j], axis=1)]
    for i in range(count - 2):
        low, high = 1 + i * count, 1 + (i + 1) * count
        faces.append(np.stack([low + j, low + after, high + j, low + after, high + after, high + j], axis=1))
    faces.append(np.stack([last + j, last + after, 0 * j + north], axis=1))
    return Made(vertices, np.concatenate([part.reshape(-1, 3) for part in faces]))


def supertorus(resolution: float, radius: float, s: float, t: float) -> Made:
    """A ring of radius 1; `radius` and s shape its cross-section, t its circle."""
    count = whole("resolution", resolution, 3)
    if not 0 < radius <= 1 or s <= 0 or t <= 0:
        raise ValueError(f"radius, s, t are {radius:g}, {s:g}, {t:g}, want a radius in (0, 1] and more than 0")
    angle = 2 * math.pi * np.arange(count) / count
    u, v = angle[:, None], angle[None, :]
    across = 1 + radius * cosine(v, s)
    up = np.broadcast_to(radius * sine(v, s), (count, count))
    vertices = np.stack([across * cosine(u, t), across * sine(u, t), up], axis=2).reshape(-1, 3)
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
    a, b = i * count, (i + 1) % count * count
    after = (j + 1) % count
    return Made(vertices, np.stack([a + j, b + j, a + after, b + j, b + after, a + after], axis=1).reshape(-1, 3))


def wedge(columns: float, rows: float, width: float, height: float, gamma: float) -> Made:
    """Directions of a field of view [degrees], denser in its middle as gamma grows: points of the unit sphere."""
    count = (whole("resolution", columns, 1), whole("resolution", rows, 1))
    if not (0 < width <= 180 and 0 < height <= 90 and 0 <= gamma <= 1):
        raise ValueError(f"field of view and gamma are {width:g} {height:g} {gamma:g}, want up to 180, 90 and 1")
    middles = []
    for number, view in zip(count, (width, height), strict=True):
        even = np.cumsum([-1.0, *[2.0 / number] * number])
        edges = (gamma * even**5 + (1 - gamma) * even) * (view * math.pi / 180)
        middles.append((edges[1:] + edges[:-1]) / 2)
    a, e = middles[0][:, None], middles[1][None, :]
    up = np.broadcast_to(np.sin(e), count)
    return Made(np.stack([np.cos(e) * np.sin(a), up, -np.cos(e) * np.cos(a)], axis=2).reshape(-1, 3))


def plate(columns: float, rows: float) -> Made:
    """Points of a square at z = -1, whose inertia is that of a shell."""
    nx, ny = whole("resolution", columns, 1), whole("resolution", rows, 1)
    x, y = (-1 + (np.arange(n) + 0.5) * 2 / n for n in (nx, ny))
    grid = np.stack([*np.meshgrid(x, y, indexing="ij"), np.full((nx, ny), -1.0)], axis=2)
    i, j = (k.ravel() for k in np.meshgrid(np.arange(1, nx), np.arange(1, ny), indexing="ij"))
    low, high = (i - 1) * ny + j, i * ny + j
    return Made(grid.reshape(-1, 3), np.stack([low - 1, high - 1, low, high, low, high - 1], axis=1).reshape(-1, 3))


KINDS: dict[str, tuple[int, Callable[..., Made]]] = {
    "sphere": (1, sphere),
    "hemisphere": (1, hemisphere),
    "cone": (2, cone),
    "supersphere": (3, supersphere),
    "supertorus": (4, supertorus),
    "wedge": (5, wedge),
    "plate": (2, plate),
}
