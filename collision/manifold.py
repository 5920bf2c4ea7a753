"""Appending a contact to the manifold of a pair, and whether one is there already."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined


@inlined
def add_contact(c: Any, gap: Any, p0: Any, p1: Any, p2: Any, n0: Any, n1: Any, n2: Any, feature: Any) -> None:
    """A contact at point p half way between the surfaces, normal n from a to b; what finds no room is left out."""
    k = c.number[0]
    if k < c.gap.shape[0]:
        c.number[0] = k + 1
        c.gap[k] = gap
        c.point[k, 0] = p0
        c.point[k, 1] = p1
        c.point[k, 2] = p2
        c.normal[k, 0] = n0
        c.normal[k, 1] = n1
        c.normal[k, 2] = n2
        c.feature[k] = feature


@inlined
def is_known(c: Any, p0: Any, p1: Any, p2: Any, near: Any) -> bool:
    """Whether there is a contact so near to p."""
    known = False
    for n in range(c.number[0]):
        d0, d1, d2 = c.point[n, 0] - p0, c.point[n, 1] - p1, c.point[n, 2] - p2
        known = known or d0 * d0 + d1 * d1 + d2 * d2 <= near * near
    return known
