"""Primitives around points: the smallest box, ball, cylinder or capsule, over axes that faces of the hull suggest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artsim.collision.hull import outline
from artsim.collision.mesh import convex_hull
from artsim.sim.articulation.description import Pose
from artsim.sim.foundation.rotations import Real, frame_with_z, quaternion

MOST_AXES = 200  # normals of the largest faces of a hull that are tried
KINDS = ("box", "sphere", "cylinder", "capsule")


def fitted(kind: str, points: Real) -> tuple[tuple[float, ...], Pose]:
    """The size, as a geom has it, and the pose of the smallest primitive around points (n, 3) [m] among those tried.

    A smallest box has a face flush with one of the hull's (O'Rourke 1985 has two edges flush, which is rarer); its
    other sides are those of the smallest rectangle, which has an edge flush (Freeman, Shapira 1975). Raises ValueError
    for points in a plane.
    """
    faces = convex_hull(points)
    used = points[np.unique(faces)]
    if kind == "sphere":
        centre, radius = ball(used)
        return (radius,), Pose(_triple(centre))
    fit, volume_of = _ALONG_Z[kind]
    best: tuple[float, tuple[float, ...], Pose] | None = None
    for axis in axes(points, faces):
        R = frame_with_z(axis.tolist())
        size, centre, turn = fit(used @ R)
        volume = volume_of(size)
        if best is None or volume < best[0] * (1.0 - 1e-9):
            q = quaternion(R @ turn).tolist()
            best = float(volume), size, Pose(_triple(R @ centre), (q[0], q[1], q[2], q[3]))
    assert best is not None
    return best[1], best[2]


def axes(points: Real, faces: NDArray[np.integer[Any]]) -> Iterator[Real]:
    """Unit vectors along which a primitive may stand: frame axes, principal axes, normals of the largest faces."""
    yield from np.eye(3)
    yield from np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    corners = points[faces]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(doubled, axis=1)
    for k in np.argsort(-areas, kind="stable")[:MOST_AXES]:
        if areas[k] > 0:
            yield doubled[k] / areas[k]


def boxed(local: Real) -> tuple[tuple[float, ...], Real, Real]:
    """Half sizes, centre and rotation of the smallest box that stands on z."""
    low, high = local[:, 2].min(), local[:, 2].max()
    flat = local[:, :2]
    angles = [0.0]
    ring = outline(flat)
    edges = np.diff(flat[[*ring, ring[0]]], axis=0)
    angles += np.arctan2(edges[:, 1], edges[:, 0]).tolist()
    best: tuple[float, float, Real, Real] | None = None
    for angle in angles:
        c, s = np.cos(angle), np.sin(angle)
        turned = flat @ np.array([[c, -s], [s, c]])
        span = np.ptp(turned, axis=0)
        if best is None or span[0] * span[1] < best[0] * (1.0 - 1e-12):
            best = float(span[0] * span[1]), angle, span, (turned.min(axis=0) + turned.max(axis=0)) / 2.0
    assert best is not None
    _, angle, span, middle = best
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    centre = turn @ np.array([middle[0], middle[1], (low + high) / 2.0])
    return (float(span[0]) / 2.0, float(span[1]) / 2.0, float(high - low) / 2.0), centre, turn


def in_cylinder(local: Real) -> tuple[tuple[float, ...], Real, Real]:
    """Radius and half length, centre and rotation of the smallest cylinder along z."""
    middle, radius = ball(local[:, :2])
    low, high = local[:, 2].min(), local[:, 2].max()
    return (radius, float(high - low) / 2.0), np.array([*middle, (low + high) / 2.0]), np.eye(3)


def in_capsule(local: Real) -> tuple[tuple[float, ...], Real, Real]:
    """Radius and half length, centre and rotation of the smallest capsule along z of the radius of the cylinder."""
    middle, radius = ball(local[:, :2])
    away = np.square(local[:, :2] - middle).sum(axis=1)
    room = np.sqrt(np.maximum(radius * radius - away, 0.0))
    top, bottom = float((local[:, 2] - room).max()), float((local[:, 2] + room).min())
    half = max(0.0, (top - bottom) / 2.0)
    return (radius, half), np.array([*middle, (top + bottom) / 2.0]), np.eye(3)


_ALONG_Z: Mapping[str, tuple[Callable[[Real], tuple[tuple[float, ...], Real, Real]], Callable[[Any], float]]] = {
    "box": (boxed, lambda s: 8.0 * s[0] * s[1] * s[2]),
    "cylinder": (in_cylinder, lambda s: 2.0 * np.pi * s[0] ** 2 * s[1]),
    "capsule": (in_capsule, lambda s: np.pi * s[0] ** 2 * (2.0 * s[1] + 4.0 / 3.0 * s[0])),
}
"""The smallest primitive along z around points, and its volume by its size."""


def ball(points: Real) -> tuple[Real, float]:
    """Centre and radius of the smallest ball around points (n, d), d = 2 or 3.

    Welzl's algorithm by the farthest point: the ball of a few points grows by the point that is farthest outside
    (Gärtner 1999).
    """
    support = [points[0]]
    centre, radius = points[0], 0.0
    for _ in range(1000):
        away = np.linalg.norm(points - centre, axis=1)
        far = int(np.argmax(away))
        if away[far] <= radius * (1.0 + 1e-12) + 1e-15:
            break
        support = [points[far], *support]
        centre, radius, support = _smallest(support)
    away = np.linalg.norm(points - centre, axis=1)
    return centre, float(away.max())


def _smallest(points: list[Real]) -> tuple[Real, float, list[Real]]:
    """The smallest ball around at most d + 2 points, and those that it touches."""
    from itertools import combinations

    best: tuple[Real, float, list[Real]] | None = None
    for count in range(1, min(len(points), len(points[0]) + 1) + 1):
        for chosen in combinations(points, count):
            A = np.array(chosen)
            D = A[1:] - A[0]
            try:
                x = np.linalg.solve(2.0 * D @ D.T, np.square(D).sum(axis=1)) if count > 1 else np.zeros(0)
            except np.linalg.LinAlgError:
                continue
            centre = A[0] + x @ D if count > 1 else A[0]
            radius = float(np.linalg.norm(A[0] - centre))
            holds = all(np.linalg.norm(p - centre) <= radius * (1.0 + 1e-10) + 1e-15 for p in points)
            if holds and (best is None or radius < best[1]):
                best = centre, radius, list(chosen)
    assert best is not None
    return best


def _triple(values: Real) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return x, y, z
