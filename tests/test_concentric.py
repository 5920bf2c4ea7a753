"""Ellipsoids about the same centre as other shapes, along the same axes: their contact points lie on the surfaces."""

from __future__ import annotations

import pytest

from artsim.collision.shapes import BOX, CYLINDER, ELLIPSOID
from tests.convex_kernels import slow
from tests.pair_kernels import contacts_of
from tests.pair_scenes import deepest, misplaced, pick, scene, smaller_reach


@pytest.mark.parametrize("other", [ELLIPSOID, CYLINDER, BOX])
@pytest.mark.skipif(slow(), reason="25000 pairs")
def test_points_lie_on_surfaces(other: int) -> None:
    """Of pairs on a grid, where many directions are as deep; one at most is off."""
    s = scene(ELLIPSOID, other, "aligned", 25_000, 1)
    found = contacts_of(*s, general=False)
    k = deepest(found)
    off = misplaced(s, pick(found.gap, k), pick(found.point, k), pick(found.normal, k)) / smaller_reach(s)
    assert (off > 1e-3).sum() <= 1  # EPA alone: 9, 28 and 12
