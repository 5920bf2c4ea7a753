"""The drawable pieces of a robot: triangles, one piece per link, layer and colour; stage.py and video.py draw them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.io.viewer.tessellation import Triangles, height_field, primitive
from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.rotations import frame_with_z, rotation_matrix
from artsim.sim.geometry.solids import drawn_mesh

Layer = Literal["visual", "collision"]
Colour = tuple[float, float, float, float]

GREY: Colour = (0.72, 0.74, 0.78, 1.0)
FLOOR: Colour = (0.55, 0.6, 0.65, 1.0)
COLLISION: Colour = (0.95, 0.55, 0.15, 0.45)
SEEN_GROUPS = 3  # MJCF's groups from this one on are hidden
STICK: Colour = (0.5, 0.52, 0.56, 1.0)
SLENDER = 0.04  # ratio of a stick's radius to its length
REACH = 5.0  # [m] half size above which a shape counts as scenery

_Key = tuple[str, Layer, Colour, bool, bool]


class Piece(NamedTuple):
    """Triangles of one link in its frame. `flat`: shaded by facets; `scenery`: ground and similar shapes."""

    link: str
    layer: Layer
    colour: Colour
    flat: bool
    scenery: bool
    points: NDArray[np.float32]  # (n, 3) [m]
    faces: NDArray[np.uint32]  # (m, 3)


def pieces_of(articulation: Articulation, notes: list[str]) -> list[Piece]:
    """The pieces of all links; `notes` receives what cannot be drawn.

    A robot without visual geometry shows its collision geometry, and so does a link whose meshes are missing; a link
    without any geometry is drawn as sticks to its children.
    """
    found: dict[_Key, list[Triangles]] = {}
    absent: list[str] = []
    known: dict[object, Triangles | None] = {}
    for link, geom, layer in _layers(articulation):
        if geom.mesh_absent and not geom.pieces:
            absent.append(f"{geom.source}: mesh {geom.mesh_uri!r} {geom.mesh_absent}")
            continue
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
    """Show the collision geometry of links that have no visual geometry."""
    seen = {link for link, layer, *_ in found if layer == "visual"}
    for link, layer, _, flat, scenery in list(found):
        if layer == "collision" and link not in seen:
            key: _Key = (link, "visual", GREY, flat, scenery)
            found.setdefault(key, []).extend(found[link, layer, COLLISION, flat, scenery])


def _sticks(articulation: Articulation, drawn: Set[str]) -> Iterator[tuple[str, Triangles]]:
    """Sticks from the frame of every link that is not drawn to the frames of its children."""
    for joint in articulation.joints:
        towards = np.array(joint.pose.position)
        length = float(np.linalg.norm(towards))
        if joint.parent not in {*drawn, "world"} and length > 0 and joint.kind != "free":
            points, faces = primitive("capsule", (SLENDER * length, length / 2))
            turn = frame_with_z((towards / length).tolist())
            yield joint.parent, (points @ turn.T + towards / 2, faces)


def _layers(articulation: Articulation) -> Iterator[tuple[str, Geom, Layer]]:
    """The geoms of every link, with the layers that show them."""
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
    """A geom's triangles in the link's frame; None if its mesh is missing. `known`: meshes read before."""
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
