"""Contents of the mesh files of a robot, read on request: the check of names and places opens none of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.foundation.errors import ModelError


class MeshContent(NamedTuple):
    """A mesh file, the first geom that refers to it, and its number of triangles."""

    geom: Geom
    path: Path
    triangles: int


def mesh_files(articulation: Articulation) -> dict[Path, Geom]:
    """Every mesh file once, with the first geom that refers to it."""
    found: dict[Path, Geom] = {}
    for link in articulation.links:
        for geom in link.geoms:
            if geom.mesh is not None:
                found.setdefault(geom.mesh, geom)
    return found


def read_contents(articulation: Articulation, max_faces: int | None) -> Iterator[MeshContent]:
    """Read every mesh file. Raises ModelError, with the line that names the file: damaged, or more than `max_faces`."""
    from artsim.collision.mesh import MAX_FACES, MeshError, read_mesh

    for path, geom in mesh_files(articulation).items():
        try:
            mesh = read_mesh(path, max_faces=MAX_FACES if max_faces is None else max_faces)
        except MeshError as error:
            raise ModelError(f"{geom.source}: mesh {geom.mesh_uri!r}: {error}") from error
        yield MeshContent(geom, path, len(mesh.faces))
