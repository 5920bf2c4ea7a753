"""Builds the tree of bounding boxes over triangles, and their adjacency, for the kernels of triangle meshes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.collision.mesh import Real, merged

LEAF = 4  # largest number of triangles in a leaf
_Ints = NDArray[np.int64]


class TriangleTree(NamedTuple):
    """Triangles in the order of the leaves of a balanced binary tree, its nodes depth first. Numbers are the mesh's."""

    vertices: Real  # (v, 3) distinct
    triangles: _Ints  # (t, 3)
    across: _Ints  # (t, 3) the triangle behind the edge from corner k to the next; -1: none
    neighbour_start: _Ints  # (v + 1,)
    neighbour: _Ints  # vertices along edges
    box: Real  # (nodes, 6)
    skip: _Ints  # (nodes,)
    leaf: _Ints  # (nodes, 2)


def triangle_tree(vertices: Real, faces: NDArray[np.integer]) -> TriangleTree:
    """Build the tree of a mesh without its triangles of zero area. Raises ValueError if none is left."""
    points, index = merged(vertices)
    corners = points[index[faces]]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1, initial=0.0)
    good = np.linalg.norm(doubled, axis=1) > 1e-12 * longest**2
    if not good.any():
        raise ValueError("the mesh has no triangle with an area")
    triangles, corners = index[faces][good].astype(np.int64), corners[good]
    low, high = corners.min(axis=1), corners.max(axis=1)
    levels = max(0, int(np.ceil(np.log2(len(triangles) / LEAF))))
    order = _order(low + high, levels)
    triangles, low, high = triangles[order], low[order], high[order]
    box, skip, leaf = _nodes(low, high, levels)
    return TriangleTree(points, triangles, _across(triangles), *_neighbours(triangles, len(points)), box, skip, leaf)


def _order(middles: Real, levels: int) -> _Ints:
    """Order of the triangles in the leaves: each part is split across its longest side, all of a level at once."""
    count = len(middles)
    order = np.arange(count)
    for level in range(levels):
        starts = _starts(count, level)
        part = np.repeat(np.arange(1 << level), np.diff(starts))
        ranked = middles[order]
        extent = np.maximum.reduceat(ranked, starts[:-1]) - np.minimum.reduceat(ranked, starts[:-1])
        axis = extent.argmax(axis=1)[part]
        order = order[np.lexsort((ranked[np.arange(count), axis], part))]
    return order


def _starts(count: int, level: int) -> _Ints:
    """The starts of the 2^level parts of `count` triangles, and the end."""
    return (np.arange((1 << level) + 1) * count) >> level


def _nodes(low: Real, high: Real, levels: int) -> tuple[Real, _Ints, _Ints]:
    """Boxes, skips and leaves of the tree, depth first."""
    total = (2 << levels) - 1
    box, skip, leaf = np.empty((total, 6)), np.empty(total, np.int64), np.zeros((total, 2), np.int64)
    place = np.zeros(1, np.int64)
    for level in range(levels + 1):
        starts = _starts(len(low), level)
        box[place, :3] = np.minimum.reduceat(low, starts[:-1])
        box[place, 3:] = np.maximum.reduceat(high, starts[:-1])
        below = (2 << (levels - level)) - 1  # number of nodes of the subtree that begins here
        skip[place] = place + below
        if level == levels:
            leaf[place] = np.stack([starts[:-1], starts[1:]], axis=1)
        else:
            place = np.stack([place + 1, place + 1 + (below - 1) // 2], axis=1).ravel()
    return box, skip, leaf


def _neighbours(triangles: _Ints, count: int) -> tuple[_Ints, _Ints]:
    """Neighbours along edges of `count` vertices: the start of each list, and the concatenated lists."""
    edges = np.concatenate([triangles[:, [i, j]] for i in range(3) for j in range(3) if i != j])
    numbers = np.unique(edges[:, 0] * count + edges[:, 1])
    return np.searchsorted(numbers, np.arange(count + 1) * count), numbers % count


def _across(triangles: _Ints) -> _Ints:
    """The triangle across each edge, or -1 if more than two triangles share it or two traverse it in one direction."""
    count = len(triangles)
    a, b = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    most = int(triangles.max()) + 1
    there, back = a * most + b, b * most + a
    order = np.argsort(there, kind="stable")
    ranked = there[order]
    place = np.minimum(np.searchsorted(ranked, back), 3 * count - 1)
    _, inverse, uses = np.unique(there, return_inverse=True, return_counts=True)
    found = np.where(
        (ranked[place] == back) & (uses[inverse[order[place]]] == 1) & (uses[inverse] == 1), order[place] // 3, -1
    )
    return np.asarray(found.reshape(-1, 3))
