"""Appending a contact to the manifold of a pair, and whether one is there already."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined


@inlined
def add_contact(manifold: Any, gap: Any, p0: Any, p1: Any, p2: Any, n0: Any, n1: Any, n2: Any, feature: Any) -> None:
    """A contact at point p half way between the surfaces, normal n from a to b; what finds no room is left out."""
    k = manifold.number[0]
    if k < manifold.gap.shape[0]:
        manifold.number[0] = k + 1
        manifold.gap[k] = gap
        manifold.point[k, 0] = p0
        manifold.point[k, 1] = p1
        manifold.point[k, 2] = p2
        manifold.normal[k, 0] = n0
        manifold.normal[k, 1] = n1
        manifold.normal[k, 2] = n2
        manifold.feature[k] = feature


@inlined
def is_known(manifold: Any, p0: Any, p1: Any, p2: Any, near: Any) -> bool:
    """Whether there is a contact so near to p."""
    known = False
    for n in range(manifold.number[0]):
        d0, d1, d2 = manifold.point[n, 0] - p0, manifold.point[n, 1] - p1, manifold.point[n, 2] - p2
        known = known or d0 * d0 + d1 * d1 + d2 * d2 <= near * near
    return known
