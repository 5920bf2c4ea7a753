"""Masses that --density gives beside trimesh's: `python tests/benchmarks/density.py CORPUS [--density 1000]`.

Every URDF of the corpus that has links without mass and with shapes at hand. trimesh reads the mesh files itself and
weighs what they enclose, or their convex hulls where they are open; primitive shapes are its own meshes of them, fine
enough for four digits.
"""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

from artsim.loaders.density import has_mass
from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Articulation, Geom, Link
from artsim.sim.foundation.errors import ArtsimError


def weight(geom: Geom, density: float) -> float | None:
    """Mass [kg] of a shape by trimesh; None where it has none."""
    made: Any
    if geom.kind == "box":
        made = trimesh.creation.box(2.0 * np.array(geom.size))
    elif geom.kind == "sphere":
        made = trimesh.creation.icosphere(6, geom.size[0])
    elif geom.kind == "cylinder":
        made = trimesh.creation.cylinder(geom.size[0], 2.0 * geom.size[1], sections=4096)
    elif geom.kind == "mesh" and geom.mesh is not None:
        made = trimesh.load(geom.mesh, force="mesh")
        made.apply_scale(np.abs(geom.scale))
        made.merge_vertices(merge_tex=True, merge_norm=True)
        paired = made.is_winding_consistent and not (np.bincount(made.edges_unique_inverse) % 2).any()
        if not paired or abs(made.volume) < 1e-12 * max(made.scale, 1e-9) ** 3:  # four faces may share an edge
            made = made.convex_hull
    else:
        return None
    return float(density * abs(made.volume))


def weighed(link: Link, density: float) -> float:
    """Mass of a link [kg]: of what collides, else of what is seen."""
    for role in ("collision", "visual"):
        parts = [weight(geom, density) for geom in link.geoms if geom.role == role]
        if any(part for part in parts):
            return sum(part for part in parts if part)
    return 0.0


def compared(path: Path, density: float) -> list[tuple[str, float, float]]:
    """Name, mass here and mass by trimesh [kg] of every link that --density is for. Raises ArtsimError."""

    def read(**options: Any) -> Articulation:
        return load_articulation(path, ignore_unsupported=True, balance_inertia=True, **options)

    without = {link.name for link in read().links if not has_mass(link)}
    if not without:
        return []
    links = [link for link in read(density=density).links if link.name in without and link.inertial is not None]
    return [(link.name, link.inertial.mass, weighed(link, density)) for link in links if link.inertial is not None]


def main() -> None:
    """A line for each robot, and for each link that differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--density", type=float, default=1000.0)
    parser.add_argument("--bound", type=float, default=1e-3, help="relative difference that is told of")
    words = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found = []
    print("| robot | links | mass here [kg] | by trimesh [kg] | largest difference of a link |\n|---|---|---|---|---|")
    for entry in json.loads((words.corpus / "index.json").read_text()):
        if entry["format"] != "urdf":
            continue
        try:
            links = compared(words.corpus / entry["path"], words.density)
        except ArtsimError as error:
            print(f"| {entry['id']} | | refused: {str(error)[-100:]} | | |", flush=True)
            continue
        if not links:
            continue
        shares = [abs(here - there) / max(there, 1e-12) for _, here, there in links]
        totals = [sum(link[k] for link in links) for k in (1, 2)]
        print(f"| {entry['id']} | {len(links)} | {totals[0]:.6g} | {totals[1]:.6g} | {max(shares):.1e} |", flush=True)
        found += shares
        for (name, here, there), share in zip(links, shares, strict=True):
            if share > words.bound:
                print(f"|   {name} | | {here:.6g} | {there:.6g} | {share:.1e} |", flush=True)
    print(f"\n{len(found)} links, {sum(share > words.bound for share in found)} beyond {words.bound:g}")


if __name__ == "__main__":
    main()
