"""What is drawn of a robot: triangles, one piece for every link, layer and colour."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.io.viewer.tessellation import Triangles, height_field, primitive
from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.spatial import frame_with_z, rotation_matrix
from artsim.sim.geometry.solids import drawn_mesh

Layer = Literal["visual", "collision"]
Colour = tuple[float, float, float, float]

GREY: Colour = (0.72, 0.74, 0.78, 1.0)
FLOOR: Colour = (0.55, 0.6, 0.65, 1.0)
COLLISION: Colour = (0.95, 0.55, 0.15, 0.45)
SEEN_GROUPS = 3  # MJCF's groups from here on are not for looking at
STICK: Colour = (0.5, 0.52, 0.56, 1.0)
SLENDER = 0.04  # radius of a stick by its length
REACH = 5.0  # [m] the half size from which on a shape is scenery, not robot


_Key = tuple[str, Layer, Colour, bool, bool]


class Piece(NamedTuple):
    """Triangles of one link in its frame. `flat`: facets are meant; `scenery`: ground and the like."""

    link: str
    layer: Layer
    colour: Colour
    flat: bool
    scenery: bool
    points: NDArray[np.float32]  # (n, 3) [m]
    faces: NDArray[np.uint32]  # (m, 3)


def pieces_of(articulation: Articulation, notes: list[str]) -> list[Piece]:
    """The pieces of all links; what cannot be drawn is told in `notes`.

    A robot without anything to look at shows what collides, as does a link whose meshes are gone; a link that has
    nothing to show is sticks to where its children are.
    """
    found: dict[_Key, list[Triangles]] = {}
    absent: list[str] = []
    known: dict[object, Triangles | None] = {}
    for link, geom, layer in _layers(articulation):
        try:
            triangles = _triangles(geom, known)
        except ModelError as error:
            absent.append(str(error))
            continue
        if triangles is None:
            absent.append(geom.mesh_uri or geom.name)
            continue
        scenery = geom.kind in ("plane", "heightfield") or max(geom.size, default=0.0) > REACH
        key: _Key = (link, layer, _colour(geom, layer), geom.kind == "mesh", scenery)
        found.setdefault(key, []).append(triangles)
    _stand_in(found)
    for name, stick in _sticks(articulation, {link for link, *_ in found}):
        found.setdefault((name, "visual", STICK, False, False), []).append(stick)
    if absent:
        told = dict.fromkeys(absent)
        more = f" and {len(told) - 1} more" if len(told) > 1 else ""
        notes.append(f"not drawn, since the mesh is not at hand: {next(iter(told))}{more}")
    return [Piece(*key, *_joined(parts)) for key, parts in found.items()]


def _stand_in(found: dict[_Key, list[Triangles]]) -> None:
    """Show what collides of links that have nothing else to look at."""
    seen = {link for link, layer, *_ in found if layer == "visual"}
    for link, layer, _, flat, scenery in list(found):
        if layer == "collision" and link not in seen:
            key: _Key = (link, "visual", GREY, flat, scenery)
            found.setdefault(key, []).extend(found[link, layer, COLLISION, flat, scenery])


def _sticks(articulation: Articulation, drawn: Set[str]) -> Iterator[tuple[str, Triangles]]:
    """From the frame of every link that is not drawn to those of its children."""
    for joint in articulation.joints:
        towards = np.array(joint.pose.position)
        length = float(np.linalg.norm(towards))
        if joint.parent not in {*drawn, "world"} and length > 0 and joint.kind != "free":
            points, faces = primitive("capsule", (SLENDER * length, length / 2))
            turn = frame_with_z((towards / length).tolist())
            yield joint.parent, (points @ turn.T + towards / 2, faces)


def _layers(articulation: Articulation) -> Iterator[tuple[str, Geom, Layer]]:
    """Every link's geoms with the layers that show them."""
    geoms = [(link.name, geom) for link in articulation.links for geom in link.geoms]
    by_group = articulation.conventions.shown_by_group
    seen = [geom.role == "visual" or (by_group and geom.group < SEEN_GROUPS) for _, geom in geoms]
    bare = not any(seen)
    for (link, geom), looked_at in zip(geoms, seen, strict=True):
        if looked_at or bare:
            yield link, geom, "visual"
        if geom.role == "collision":
            yield link, geom, "collision"


def _colour(geom: Geom, layer: Layer) -> Colour:
    if layer == "collision":
        return COLLISION
    if geom.material is not None and geom.material.rgba is not None:
        return geom.material.rgba
    return FLOOR if geom.kind in ("plane", "heightfield") else GREY


def _triangles(geom: Geom, known: dict[object, Triangles | None]) -> Triangles | None:
    """In the link's frame; None for a mesh that is not there. `known`: mesh files that were read before."""
    if geom.kind == "mesh":
        key = geom.mesh and (geom.mesh, geom.scale, geom.mesh_pose, geom.most_hull_vertices)
        mesh = known[key] if key in known else drawn_mesh(geom)
        if key:
            known[key] = mesh
        if mesh is None:
            return None
        points, faces = mesh
    elif geom.kind == "heightfield":
        kept = next((piece.heights for piece in geom.pieces if piece.heights is not None), None)
        if not geom.heights and kept is None:
            return None
        points, faces = height_field(np.array(geom.heights) if kept is None else kept, geom.size)
    else:
        points, faces = primitive(geom.kind, geom.size)
    return points @ rotation_matrix(geom.pose.rotation).T + geom.pose.position, faces


def _joined(parts: list[Triangles]) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    starts = np.cumsum([0, *(len(points) for points, _ in parts)])
    faces = np.concatenate([faces + start for (_, faces), start in zip(parts, starts, strict=False)])
    return np.concatenate([points for points, _ in parts]).astype(np.float32), faces.astype(np.uint32)
