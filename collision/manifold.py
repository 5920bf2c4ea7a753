"""Adds contacts to the manifold of a pair, optionally only where it has none yet."""

from __future__ import annotations

from artsim.collision.shapes import Manifold
from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import dot, minus, row_of, set_row


@inlined
def add_contact(manifold: Manifold, gap: float, point: Vec3, normal: Vec3, feature: int) -> None:
    """Add a contact at a point half way between the surfaces, normal from a to b; it is dropped without room."""
    k = manifold.number[0]
    if k < manifold.gap.shape[0]:
        manifold.number[0] = k + 1
        manifold.gap[k] = gap
        set_row(manifold.point, k, point)
        set_row(manifold.normal, k, normal)
        manifold.feature[k] = feature


@inlined
def is_known(manifold: Manifold, point: Vec3, near: float) -> bool:
    """True if a contact lies within `near` of a point."""
    known = False
    for n in range(manifold.number[0]):
        way = minus(row_of(manifold.point, n), point)
        known = known or dot(way, way) <= near * near
    return known


@inlined
def add_apart(manifold: Manifold, gap: float, point: Vec3, normal: Vec3, feature: int, near: float) -> None:
    """Add a contact unless one lies within `near` of the point."""
    if not is_known(manifold, point, near):
        add_contact(manifold, gap, point, normal, feature)
