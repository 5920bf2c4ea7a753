"""Round shapes about the same centre, along the same axes or much larger than the other: depths are the least ones,
contact points lie on the surfaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from tests.collision.convex_kernels import slow
from tests.collision.pair_kernels import contacts_of, make_shapes
from tests.collision.pair_scenes import Array, Scene, deepest, gap_along, misplaced, pick, reach, scene, smaller_reach

ROUND = [
    *((SPHERE, ELLIPSOID), (CAPSULE, ELLIPSOID), (ELLIPSOID, ELLIPSOID), (ELLIPSOID, CYLINDER), (ELLIPSOID, BOX)),
    *((CAPSULE, CYLINDER), (CYLINDER, CYLINDER), (CYLINDER, BOX)),
]
each_pair = pytest.mark.parametrize(("one", "other"), ROUND)
many = pytest.mark.skipif(slow(), reason="25000 pairs")


def gap_point_normal(s: Scene) -> tuple[Array, Array, Array]:
    """Of the deepest contact of each pair."""
    found = contacts_of(*s, general=False)
    k = deepest(found)
    return pick(found.gap, k), pick(found.point, k), pick(found.normal, k)


def more_along_others(s: Scene, gap: Array, normal: Array) -> Array:
    """How much larger the gap is along directions beside the normal, also those that stay across an axis of a shape."""
    rng = np.random.default_rng(1)
    ways = [rng.normal(size=normal.shape) for _ in range(8)]
    ways += [np.cross(s.rotation[which::2, :, axis], normal) for which in range(2) for axis in range(3)]
    most = np.zeros(len(gap))
    for way in ways:
        for angle in (-1e-2, -1e-3, -1e-4, 1e-4, 1e-3, 1e-2):
            n = normal + angle * way
            most = np.maximum(most, gap_along(s, n / np.linalg.norm(n, axis=1)[:, None]) - gap)
    return most


@each_pair
@many
def test_on_a_grid(one: int, other: int) -> None:
    """Many directions are as deep: any of them will do, with points that belong to it."""
    s = scene(one, other, "aligned", 25_000, 1)
    gap, point, normal = gap_point_normal(s)
    assert (misplaced(s, gap, point, normal) / smaller_reach(s)).max() < 1e-4  # EPA's points: up to 0.3
    assert (np.abs(gap_along(s, normal) - gap) / smaller_reach(s)).max() < 1e-6  # GJK of what touches: up to 1e-5
    assert (more_along_others(s, gap, normal) / smaller_reach(s)).max() < 1e-6  # EPA's depths: up to 5e-5


@each_pair
@many
def test_sizes_far_apart(one: int, other: int) -> None:
    """Depths are right for the smaller shape, up to 1e4 times smaller."""
    s = scene(one, other, "scaled", 25_000, 1)
    gap, _, normal = gap_point_normal(s)
    assert (np.abs(gap_along(s, normal) - gap) / smaller_reach(s)).max() < 1e-6
    assert (more_along_others(s, gap, normal) / smaller_reach(s)).max() < 1e-6  # EPA's depths: up to 4e-4


TURNED = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # the axis of the second shape across


@pytest.mark.parametrize(
    ("one", "size", "other", "other_size", "offset", "rotation", "gap"),
    [
        (CYLINDER, [0.5, 0.5, 0], BOX, [2.0, 1.5, 1.0], [2.0, 1.5, 0], np.eye(3), -0.5),  # an edge in the axis
        (CYLINDER, [1.0, 0.5, 0], CYLINDER, [1.0, 0.5, 0], [1.0, 0.5, -0.5], TURNED, -1.0),
        (CAPSULE, [2.0, 0.5, 0], CYLINDER, [0.5, 1.0, 0], [0, 0, -0.5], TURNED, -2.5),  # an end in the axis
        (CAPSULE, [0.5, 1.0, 0], ELLIPSOID, [0.5, 0.5, 0.5], [0, 0, -1.0], np.eye(3), -1.0),  # an end in the centre
        (ELLIPSOID, [0.5, 0.5, 0.5], BOX, [0.5, 1.5, 1.5], [0, 1.5, 1.5], np.eye(3), -0.5),  # the centre on an edge
        (SPHERE, [1.0, 0, 0], ELLIPSOID, [0.5, 0.5, 2.0], [0, 0, 0], np.eye(3), -1.5),
    ],
)
def test_closed_forms(
    one: int, size: Any, other: int, other_size: Any, offset: Any, rotation: Array, gap: float
) -> None:
    kind, sizes = np.array([one, other]), np.array([size, other_size])
    shapes = make_shapes(kind, sizes, reach=reach(kind, sizes))
    s = Scene(shapes, np.array([[0, 0, 0], offset], float), np.array([np.eye(3), rotation]))
    found, point, normal = gap_point_normal(s)
    assert found[0] == pytest.approx(gap, abs=1e-9)
    assert gap_along(s, normal)[0] == pytest.approx(gap, abs=1e-9)
    assert misplaced(s, found, point, normal)[0] < 1e-6
