"""The shapes that rangefinders see, as arrays: every geom that is not fully transparent; meshes, not their hulls.

The kernel that casts the rays (ray_casting.py) is an entry of its own, since only runs with rangefinders need it. No
numba here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from artsim.collision.build import Solid, build_shapes
from artsim.collision.mesh import MAX_FACES
from artsim.collision.shapes import HEIGHT_FIELD, PLANE, Placed, Shapes
from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.jit import Entry, point_at, point_at_lanes
from artsim.sim.foundation.records import Array, allocate
from artsim.sim.foundation.rotations import rotation_matrix
from artsim.sim.geometry.collision_pairs import conventions_of_links
from artsim.sim.geometry.contacts import Sights
from artsim.sim.geometry.solids import Kept, drawn_mesh
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.contact_model import ground_plane, kept_pieces, on_bodies
from artsim.sim.stepping.packs import CAST_OF_LANE


class Seen(NamedTuple):
    """The shapes that rangefinders see in a run; not a record itself."""

    sights: Sights
    shapes: Shapes
    kept: Kept  # the meshes and height fields that outputs store


Seeing = tuple[RobotBundle, EquipmentBundle | None]
"""The bundles of a lane by which its rays are cast."""
CAST = Entry("cast_rays", "artsim.sim.contact.ray_casting", (Model, Workspace, EquipmentBundle, Sights, Shapes, Placed))


def connect_rays(seen: Seen, model: Model, work: Workspace, equipment: EquipmentBundle) -> object:
    """Let kernels that receive `equipment` cast rays, for as long as the returned object is kept."""
    return point_at(CAST, 1, equipment.data.ray_caster, model, work, equipment, *_scene(seen))


def connect_rays_of_lanes(seen: Seen, pointers: Array, first: Seeing, second: Seeing) -> object:
    """Let the lanes' kernels cast rays by `pointers` (lanes, 2), for as long as the returned object is kept. `first`,
    `second`: the records of lanes 0 and 1."""
    scene = _scene(seen)
    lanes = [(robot.model, robot.data, equipment, *scene) for robot, equipment in (first, second)]
    return point_at_lanes(CAST_OF_LANE, pointers, *lanes)


def _scene(seen: Seen) -> tuple[Sights, Shapes, Placed]:
    n = len(seen.sights.body)
    placed: Placed = allocate(Placed, {"position": (n, 3), "rotation": (n, 3, 3)})
    return seen.sights, seen.shapes, placed


def seen_shapes(articulation: Articulation, robot: Robot, config: RunConfig, notes: list[str]) -> Seen | None:
    """Build the shapes that the rangefinders see; None if none is recorded.

    Raises:
        ModelError: a mesh that can be seen is missing or cannot be read.
    """
    if not any(sensor.kind == "rangefinder" for sensor in articulation.sensors):
        return None
    geoms = [*_visible(articulation), *([(-1, ground_plane(config))] if config.ground else [])]
    max_faces = MAX_FACES if articulation.max_faces is None else articulation.max_faces
    built = build_shapes([made for n, (_, geom) in enumerate(geoms) for made in _solids(geom, n, max_faces, notes)])
    link = np.array([geoms[n][0] for n in built.geom], np.int64)
    body, place, turn = on_bodies(robot.model, link, built)
    window, floor = np.zeros((len(link), 2)), np.zeros(len(link))
    for n, (kind, geom) in enumerate(zip(built.shapes.kind, built.geom, strict=True)):
        size = geoms[geom][1].size
        if kind == PLANE:
            window[n, : len(size[:2])] = size[:2]
        elif kind == HEIGHT_FIELD:
            floor[n] = size[2] - built.shapes.size[n, 2]
    arrays = (body, link, place, turn, window, floor)
    for array in arrays:
        array.setflags(write=False)
    kept = kept_pieces(articulation, [geom for _, geom in geoms], built, seen=True)
    return Seen(Sights(*arrays), built.shapes, kept)


def _visible(articulation: Articulation) -> Iterator[tuple[int, Geom]]:
    """Visible geoms with the number of their link; for a URDF the collision geoms, which stand for the visual ones."""
    conventions = conventions_of_links(articulation)
    for n, link in enumerate(articulation.links):
        for geom in link.geoms:
            if not geom.hidden and not (conventions[n].seen_by_shapes and geom.role == "visual"):
                yield n, geom


def _solids(geom: Geom, number: int, max_faces: int, notes: list[str]) -> list[Solid]:
    """The solids of a geom for ray casting; none, with a note, if its mesh was not loaded."""
    called = geom.name or geom.mesh_uri or geom.kind
    title = f"{geom.source}: geom {called!r}"
    position, rotation = np.array(geom.pose.position), rotation_matrix(geom.pose.rotation)
    solid = Solid(geom.kind, geom.size, position, rotation, number, title)
    if geom.kind not in ("mesh", "heightfield"):
        return [solid]
    if geom.sights:
        return [
            solid._replace(kind=piece.kind, points=piece.points, faces=piece.faces, heights=piece.heights)
            for piece in geom.sights
        ]
    if geom.mesh_absent:
        raise ModelError(f"{title} {geom.mesh_absent}; rangefinders can see it (--no-meshes: goes on without)")
    if geom.kind == "heightfield" and geom.heights:
        return [solid._replace(heights=np.array(geom.heights))]
    found = drawn_mesh(geom, max_faces=max_faces) if geom.kind == "mesh" else None
    if found is None:
        notes.append(f"rangefinders do not see {called!r}: meshes were not looked for")
        return []
    return [solid._replace(kind="triangles", points=found[0], faces=found[1])]
