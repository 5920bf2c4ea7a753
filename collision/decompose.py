"""Decomposes a closed mesh of a moving body into nearly convex parts; results are cached by content.

The part with the largest excess of its convex hull's volume over its own is cut in two by a plane across one of the
mesh's axes. Of several candidate planes the one with the smallest hulls is used, until the hulls are tight enough or
the parts too many (after Mamou 2016 and Wei 2022, with manifold's exact solids in place of voxels).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.collision.hull import volume
from artsim.collision.mesh import Real, Whole, keep, merged, mesh_cache_folder, recall

_STAMP = b"artsim parts 1 "  # changes with the results of this file
MOST_PARTS = 32
_NEAR = 0.02  # relative to the mesh's volume: excess up to which a hull is tight enough
_LEVELS = 12  # number of equal slices of a part along each axis between which it may be cut
_LARGE = 4000  # triangles: larger meshes are simplified first,
_DETAIL = 2e-3  # with this tolerance relative to their size


class Parts(NamedTuple):
    """Points whose convex hulls are the parts, concatenated."""

    points: Real  # (n, 3)
    sizes: Whole  # (parts,) points of each


class NoDecomposerError(Exception):
    """The extra `decompose` is not installed."""


def convex_parts(vertices: Real, faces: NDArray[np.integer[Any]]) -> list[Real]:
    """The points of each convex part of a mesh; cached in the user's cache folder.

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
    """The mesh as a solid of manifold, oriented outwards."""
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
    """Decompose a solid and return the points of its parts' hulls."""
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
    """The volume of a piece's hull outside of the piece [m³]."""
    return float(piece.hull().volume() - piece.volume())


def _halves(piece: Any) -> tuple[Any, ...]:
    """The two sides of the best cutting plane; empty if no plane leaves two."""
    best, halves = np.inf, ()
    for normal, offset in _planes(piece):
        pair = piece.split_by_plane(normal, offset)
        if any(half.is_empty() for half in pair):
            continue
        size = sum(half.hull().volume() for half in pair)
        if size < best * (1 - 1e-9):  # the first of several equally good ones
            best, halves = size, tuple(pair)
    return halves


def _planes(piece: Any) -> Iterator[tuple[tuple[float, float, float], float]]:
    """Candidate planes across the axes: in equal steps, and through the vertices if these are few."""
    points = np.array(piece.to_mesh64().vert_properties)[:, :3]
    for axis, normal in enumerate(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))):
        low, high = points[:, axis].min(), points[:, axis].max()
        levels = np.unique(points[:, axis])[1:-1]
        steps = low + (high - low) * np.arange(1, _LEVELS) / _LEVELS
        for offset in (*(levels if len(levels) < _LEVELS else ()), *steps):
            yield normal, float(offset)
