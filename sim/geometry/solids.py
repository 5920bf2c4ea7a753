"""Converts geoms of a description to collision's solids; meshes are read here, each file once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.collision.build import Solid
from artsim.collision.decompose import NoDecomposerError, convex_parts
from artsim.collision.hull import corners_of, from_faces, hull_volume, polyhedron, triangles_of, volume
from artsim.collision.mesh import MAX_FACES, Mesh, MeshError, read_mesh
from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.rotations import Real, rotation_matrix

SWOLLEN = 1.2  # ratio of hull to mesh volume above which a hull is noted, and replaced by parts on request


Piece = Solid  # a piece uses only kind and made, points and faces, or heights


class Kept(NamedTuple):
    """Meshes and height fields of a run; with these a model's text is enough to repeat the simulation."""

    geom: tuple[int, ...] = ()  # for each use of a piece: number of its geom among those of all links, in order
    piece: tuple[int, ...] = ()
    pieces: tuple[Piece, ...] = ()
    seen: tuple[int, ...] = ()  # of each use: 1: rangefinders see the piece, 0: the piece collides


def joined(*parts: Kept) -> Kept:
    """All uses and pieces of several Kept."""
    geom, piece, pieces, seen = Kept()
    for part in parts:
        piece += tuple(n + len(pieces) for n in part.piece)
        geom, pieces, seen = geom + part.geom, pieces + part.pieces, seen + part.seen
    return Kept(geom, piece, pieces, seen)


def convex_piece(vertices: Real, planes: Real, sizes: NDArray[Any], corners: NDArray[np.int32]) -> Piece:
    """A convex piece; see hull.from_faces."""
    return Solid("convex", (), np.zeros(3), np.eye(3), made=from_faces(vertices, planes, sizes, corners))


def triangles_piece(points: Real, faces: NDArray[Any]) -> Piece:
    """Triangles (m, 3) of points (n, 3)."""
    return Solid("triangles", (), np.zeros(3), np.eye(3), points=points, faces=faces)


def field_piece(heights: Real) -> Piece:
    """Heights (rows, columns) [m]."""
    return Solid("heightfield", (), np.zeros(3), np.eye(3), heights=heights)


def with_pieces(articulation: Articulation, kept: Kept) -> Articulation:
    """The articulation, read from a text alone, with geoms that collide and are seen as stored in `kept`."""
    if not kept.pieces:
        return articulation
    of_geom: dict[tuple[int, int], tuple[Solid, ...]] = {}
    for geom, piece, seen in zip(kept.geom, kept.piece, kept.seen, strict=True):
        of_geom[geom, seen] = (*of_geom.get((geom, seen), ()), kept.pieces[piece])
    links, number = [], 0
    for link in articulation.links:
        found = [[of_geom.get((number + n, seen), ()) for seen in (0, 1)] for n in range(len(link.geoms))]
        geoms = tuple(
            replace(geom, pieces=pieces, sights=sights)
            for geom, (pieces, sights) in zip(link.geoms, found, strict=True)
        )
        links.append(replace(link, geoms=geoms) if any(map(any, found)) else link)
        number += len(geoms)
    return replace(articulation, links=tuple(links))


def read_solids(
    geoms: Sequence[tuple[Geom, bool]],
    *,
    exact: Sequence[bool],
    notes: list[str],
    max_faces: int | None = None,
    decompose: bool = False,
) -> list[Solid]:
    """The solids of geoms that may touch others, each with the number of its geom; poses are in the links.

    `geoms`: each geom, and True if it moves. `exact`: for each geom, True if a static mesh collides as it is, without
    an interior (URDF), False if as its convex hull (MJCF), or with `decompose` as several convex parts if the hull is
    more than SWOLLEN times as large as the mesh. Geoms whose meshes were not looked for are left out. Raises ModelError
    with the geom's line for a mesh that is missing or damaged.
    """
    files: dict[object, Mesh] = {}
    solids: list[Solid] = []
    unseen: list[str] = []
    for number, (geom, moving) in enumerate(geoms):
        position, rotation = np.array(geom.pose.position), rotation_matrix(geom.pose.rotation)
        plain = Solid(geom.kind, geom.size, position, rotation, number, _title(geom))
        if geom.pieces:
            solids += [
                plain._replace(
                    kind=piece.kind, made=piece.made, points=piece.points, faces=piece.faces, heights=piece.heights
                )
                for piece in geom.pieces
            ]
        elif geom.kind == "mesh":
            mesh = _mesh(geom, files, MAX_FACES if max_faces is None else max_faces)
            if mesh is None:
                unseen.append(geom.name or geom.mesh_uri or geom.kind)
            else:
                solid = _of_mesh(plain, geom, mesh, exact[number] and not moving)
                if solid.kind == "triangles":
                    _note_open(solid, geom, notes)
                parts = _parts(solid, geom, mesh, decompose, notes, told=exact[number])
                solids += parts or [solid]
        elif geom.kind == "heightfield":
            if geom.heights:
                solids.append(plain._replace(heights=np.array(geom.heights)))
            elif geom.mesh_absent:
                raise ModelError(f"{plain.name}: heights {geom.mesh_absent} (--no-meshes: goes on without)")
            else:
                unseen.append(geom.name or geom.mesh_uri or geom.kind)
        else:
            solids.append(plain)
    if unseen:
        verb = f"and {len(unseen) - 1} more do" if len(unseen) > 1 else "does"
        notes.append(f"{unseen[0]!r} {verb} not collide: meshes were not looked for")
    return solids


def _title(geom: Geom) -> str:
    """The beginning of errors about a geom: its place in the file, its name, its mesh."""
    called = f"geom {geom.name!r}" if geom.name else "a geom"
    mesh = f": mesh {geom.mesh_uri!r}" if geom.mesh_uri else ""
    return f"{geom.source}: {called}{mesh}"


def _mesh(geom: Geom, files: dict[object, Mesh], max_faces: int) -> Mesh | None:
    """The mesh that a geom refers to, or None if none was looked for."""
    if geom.vertices:
        points = np.array(geom.vertices).reshape(-1, 3)
        faces = np.array(geom.faces, np.int32).reshape(-1, 3)
        return Mesh(points, faces, np.full(min(len(faces), 1), len(faces), np.int32))
    if geom.mesh_absent:
        raise ModelError(f"{_title(geom)} {geom.mesh_absent}; it is used for collision (--no-meshes: goes on without)")
    if geom.mesh is None:
        return None
    if geom.mesh not in files:
        try:
            files[geom.mesh] = read_mesh(geom.mesh, max_faces=max_faces)
        except MeshError as error:
            raise ModelError(f"{_title(geom)}: {error} (--no-meshes: goes on without)") from error
    return files[geom.mesh]


def _of_mesh(plain: Solid, geom: Geom, mesh: Mesh, exact: bool) -> Solid:
    """A mesh in the geom's frame, as it is or as the source of its hull."""
    points, faces = _in_geom_frame(geom, mesh)
    kind = "triangles" if exact and len(faces) else "convex"
    corners = corners_of(mesh.vertices, geom.most_hull_vertices) if kind == "convex" else None
    return plain._replace(kind=kind, points=points, faces=faces, corners=corners)


def _in_geom_frame(geom: Geom, mesh: Mesh) -> tuple[Real, NDArray[Any]]:
    """Points (n, 3) [m] and faces (m, 3), which face outward also under a mirroring scale."""
    return _placed(geom, mesh.vertices), mesh.faces[:, ::-1] if np.prod(geom.scale) < 0 else mesh.faces


def _placed(geom: Geom, points: Real) -> Real:
    """Points of a mesh in the geom's frame."""
    pose = geom.mesh_pose
    placed: Real = (points - np.array(pose.position)) @ rotation_matrix(pose.rotation) * np.array(geom.scale)
    return placed


def drawn_mesh(geom: Geom, *, max_faces: int = MAX_FACES) -> tuple[Real, NDArray[Any]] | None:
    """Points (n, 3) [m] and triangles (m, 3) of a mesh geom in its frame: of its hull where it has no faces, of the
    pieces that it collided as where its file is not at hand.

    None where no mesh was looked for. Raises ModelError with the geom's line for a mesh that is missing or damaged.
    """
    if geom.pieces and geom.mesh is None:
        return _of_pieces(geom.pieces)
    mesh = _mesh(geom, {}, max_faces)
    if mesh is None:
        return None
    points, faces = _in_geom_frame(geom, mesh)
    if len(faces):
        return points, faces
    corners = corners_of(mesh.vertices, geom.most_hull_vertices)
    try:
        hull = polyhedron(points if corners is None else points[corners])
    except ValueError as error:
        raise ModelError(f"{_title(geom)}: {error}") from error
    return hull.vertices, triangles_of(hull)


def _of_pieces(pieces: Sequence[Piece]) -> tuple[Real, NDArray[Any]]:
    """Points and triangles of all pieces."""
    points, faces, count = [np.zeros((0, 3))], [np.zeros((0, 3), np.int32)], 0
    for piece in pieces:
        if piece.made is not None:
            found, corners = piece.made.vertices, triangles_of(piece.made)
        elif piece.points is not None and piece.faces is not None:
            found, corners = piece.points, piece.faces
        else:
            continue
        points.append(found)
        faces.append(corners + count)
        count += len(found)
    return np.concatenate(points), np.concatenate(faces)


def _note_open(solid: Solid, geom: Geom, notes: list[str]) -> None:
    """Note once per mesh that collides face by face if faces lack neighbours or face inward."""
    if solid.kind != "triangles" or solid.points is None or solid.faces is None:
        return
    edges = np.concatenate([solid.faces[:, pair] for pair in ([0, 1], [1, 2], [2, 0])])
    edges = edges[edges[:, 0] != edges[:, 1]]
    edges = edges.astype(np.int64)
    there, back = (np.unique(one @ [len(solid.points), 1]) for one in (edges, edges[:, ::-1]))
    note = ""
    if not np.array_equal(there, back):
        note = f"mesh {geom.mesh_uri!r} is not closed, or its faces look both ways: from behind, things pass through"
    elif volume(solid.points, solid.faces) < 0:
        note = f"mesh {geom.mesh_uri!r} is inside out: things pass through it from outside"
    if note and note not in notes:
        notes.append(note)


def _parts(solid: Solid, geom: Geom, mesh: Mesh, decompose: bool, notes: list[str], *, told: bool) -> list[Solid]:
    """The convex parts of a mesh whose hull is much larger than the mesh; [] where it collides as its hull.

    The large hull is noted once per mesh, if `told` or if parts were wanted.
    """
    ratio = _swelling(solid) if solid.kind == "convex" and (told or decompose) else 0.0
    if ratio <= SWOLLEN:
        return []
    why = "--decompose: as parts"
    if decompose:
        try:
            found = convex_parts(mesh.vertices, mesh.faces)
            return [
                solid._replace(
                    points=_placed(geom, points), faces=None, corners=corners_of(points, geom.most_hull_vertices)
                )
                for points in found
            ]
        except NoDecomposerError:
            why = "--decompose needs `pip install artsim[decompose]`"
        except ValueError as error:
            why = f"{error}: it has no parts"
    note = f"mesh {geom.mesh_uri!r} collides as its convex hull, which is {ratio:.3g} times as large ({why})"
    if note not in notes:
        notes.append(note)
    return []


def _swelling(solid: Solid) -> float:
    """Ratio of a mesh's hull to the mesh in volume; 0 where that cannot be determined."""
    if solid.points is None or solid.faces is None or not len(solid.faces):
        return 0.0
    try:
        hull = hull_volume(polyhedron(solid.points if solid.corners is None else solid.points[solid.corners]))
    except ValueError:  # refused where the shape is built
        return 0.0
    held = volume(solid.points, solid.faces)
    return hull / held if held > 0 else 0.0
