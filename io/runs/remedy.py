"""Suggests how links that move without mass can get one, for the refusal of a run and the warning of `check`."""

from __future__ import annotations

from collections.abc import Collection

from artsim.sim.articulation.description import Articulation


def density_helps(articulation: Articulation, links: Collection[str]) -> str:
    """The hint that --density gives these links the mass of their shapes; empty for links without shapes."""
    shapes = [geom for link in articulation.links if link.name in links for geom in link.geoms]
    if articulation.conventions.own_densities or not shapes:
        return ""
    if all(geom.kind == "mesh" and geom.mesh is None for geom in shapes):
        return "--density 1000 with --package NAME=DIR or --mesh-root DIR: those of its shapes, whose meshes are absent"
    return "--density 1000: those of its shapes"
