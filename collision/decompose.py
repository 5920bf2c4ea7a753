"""A closed mesh cut into parts that are nearly convex, for what moves: computed once, kept by content.

The part whose convex hull holds most of what the part does not is cut in two by a plane across one of the mesh's axes,
by that of some that leaves the least hulls, until hulls are near enough or the parts too many (as Mamou 2016 and Wei
2022 do it, with manifold's exact solids in place of voxels).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.collision.hull import volume
from artsim.collision.mesh import Real, Whole, keep, merged, mesh_cache_folder, recall

_STAMP = b"artsim parts 1 "  # changes with what is made of a mesh
MOST_PARTS = 32
_NEAR = 0.02  # of the mesh's volume: a hull that holds no more beside its part is left
_LEVELS = 12  # equal slices of a part between which it may be cut, across each axis
_LARGE = 4000  # triangles: a mesh of more is simplified first,
_DETAIL = 2e-3  # by so much of its size


class Parts(NamedTuple):
    """Points whose convex hulls are the parts, one part after the other."""

    points: Real  # (n, 3)
    sizes: Whole  # (parts,) points of each


class NoDecomposerError(Exception):
    """The extra `decompose` is not installed."""


def convex_parts(vertices: Real, faces: NDArray[np.integer[Any]]) -> list[Real]:
    """The points of each part of a mesh; kept in the user's cache folder.

    Raises NoDecomposerError; ValueError for a mesh that is not closed.
    """
    folder = mesh_cache_folder()
    digest = hashlib.sha256(_STAMP + np.ascontiguousarray(vertices).tobytes() + faces.astype(np.int64).tobytes())
    path = None if folder is None else folder / f"{digest.hexdigest()}.npz"
    parts = recall(path, Parts) if path else None
    if parts is None:
        made = _cut(_solid(vertices, faces))
        parts = Parts(np.concatenate(made), np.array([len(points) for points in made], np.int32))
        if path:
            keep(path, parts)
    return np.split(parts.points, np.cumsum(parts.sizes)[:-1])


def _solid(vertices: Real, faces: NDArray[np.integer[Any]]) -> Any:
    """The mesh as manifold has it, outside out."""
    try:
        import manifold3d
    except ImportError:
        raise NoDecomposerError from None
    points, index = merged(vertices)
    corners = index[faces].astype(np.uint64)
    corners = corners[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]
    if volume(points, corners.astype(np.int64)) < 0:
        corners = corners[:, ::-1]
    solid = manifold3d.Manifold(manifold3d.Mesh64(points, np.ascontiguousarray(corners)))
    if solid.status() != manifold3d.Error.NoError or solid.is_empty():
        raise ValueError("it is not closed")
    if solid.num_tri() > _LARGE:
        solid = solid.simplify(_DETAIL * float(np.ptp(points, axis=0).max()))
    return solid


def _cut(solid: Any) -> list[Real]:
    """The points of the hulls of its parts."""
    near = _NEAR * solid.volume()
    open_ = [(_excess(piece), piece) for piece in solid.decompose()]
    done: list[Any] = []
    while open_:
        worst = max(range(len(open_)), key=lambda n: open_[n][0])
        excess, piece = open_.pop(worst)
        halves = _halves(piece) if excess > near and len(open_) + len(done) + 1 < MOST_PARTS else ()
        if halves:
            open_ += [(_excess(part), part) for half in halves for part in half.decompose()]
        else:
            done.append(piece)
    return [np.array(piece.hull().to_mesh64().vert_properties)[:, :3] for piece in done]


def _excess(piece: Any) -> float:
    """The volume [m³] of a piece's hull beside it."""
    return float(piece.hull().volume() - piece.volume())


def _halves(piece: Any) -> tuple[Any, ...]:
    """The two sides of the best plane; nothing where no plane leaves two."""
    best, halves = np.inf, ()
    for normal, offset in _planes(piece):
        pair = piece.split_by_plane(normal, offset)
        if any(half.is_empty() for half in pair):
            continue
        size = sum(half.hull().volume() for half in pair)
        if size < best * (1 - 1e-9):  # the first of several that are as good
            best, halves = size, tuple(pair)
    return halves


def _planes(piece: Any) -> Iterator[tuple[tuple[float, float, float], float]]:
    """Planes across the axes: where few vertices lie, through these, and in equal steps."""
    points = np.array(piece.to_mesh64().vert_properties)[:, :3]
    for axis, normal in enumerate(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))):
        low, high = points[:, axis].min(), points[:, axis].max()
        levels = np.unique(points[:, axis])[1:-1]
        steps = low + (high - low) * np.arange(1, _LEVELS) / _LEVELS
        for offset in (*(levels if len(levels) < _LEVELS else ()), *steps):
            yield normal, float(offset)
