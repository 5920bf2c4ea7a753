"""A sphere and a plane: the one pair of shapes that touches so far."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined


@inlined
def sphere_plane(c0: Any, c1: Any, c2: Any, radius: Any, point: Any, frame: Any) -> Any:
    """The gap between them (negative: depth) [m], and the sphere's point that is nearest to the plane.

    The sphere's centre is at (c0, c1, c2); the plane goes through `point` (3,), its normal is the first row of `frame`
    (3, 3). All in world axes.
    """
    n0 = frame[0, 0]
    n1 = frame[0, 1]
    n2 = frame[0, 2]
    gap = n0 * (c0 - point[0]) + n1 * (c1 - point[1]) + n2 * (c2 - point[2]) - radius
    return gap, c0 - radius * n0, c1 - radius * n1, c2 - radius * n2
