"""Builds convex polyhedra from points: qhull's triangles, with coplanar ones merged into faces."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.collision.mesh import Real, Whole, convex_hull, keep, merged, mesh_cache_folder, recall

_STAMP = b"artsim hull 2 "  # changes with the results of this file
_FLAT = 4e-7  # relative to the size: distance from a plane that counts as coplanar (STL holds 24 bits)
_THIN = 1e-9  # relative to the size: thickness that counts as zero
_KEPT_ABOVE = 100  # points: smaller hulls are built faster than they are found in the cache


class Polyhedron(NamedTuple):
    """A convex polyhedron, or a flat polygon with two sides. Arrays are read-only; indices are of `vertices`."""

    vertices: Real  # (v, 3)
    neighbour_start: Whole  # (v + 1,)
    neighbours: Whole  # along edges, ascending
    planes: Real  # (f, 4) outward unit normal, distance from the origin
    corner_start: Whole  # (f + 1,)
    corners: Whole  # counter-clockwise seen from outside


def polyhedron(points: Real) -> Polyhedron:
    """The convex hull of points (n, 3), cached in the user's cache folder.

    Raises ValueError where the points lie on a line.
    """
    points = np.ascontiguousarray(points, np.float64)
    folder = mesh_cache_folder() if len(points) > _KEPT_ABOVE else None
    path = None
    if folder is not None:
        digest = hashlib.sha256(_STAMP + points.tobytes())
        path = folder / f"{digest.hexdigest()}.npz"
        kept = recall(path, Polyhedron)
        if kept is not None:
            return kept
    made = _make(points)
    for array in made:
        array.setflags(write=False)
    if path is not None:
        keep(path, made)
    return made


def corners_of(points: Real, most: int) -> Whole | None:
    """Indices of the points of a mesh (n, 3) that make up a hull of at most `most` vertices; None stands for all.

    qhull stops at that number. Which points it has then depends on the axes and, for symmetric points, on rounding.
    Therefore `points` are those of the file, before scale and pose, in single precision, as in MuJoCo.
    """
    if most < 0:
        return None
    try:
        return np.unique(convex_hull(points.astype(np.float32).astype(np.float64), most))
    except ValueError:  # in one plane
        return None


def _make(points: Real) -> Polyhedron:
    """Build the hull relative to the middle of the points, which preserves precision."""
    distinct, _ = merged(points)
    middle = (distinct.min(axis=0) + distinct.max(axis=0)) / 2
    centred = distinct - middle
    spread = np.concatenate([centred - centred.mean(axis=0), np.zeros((3, 3))])  # at least three rows
    lengths, axes = np.linalg.svd(spread, full_matrices=False)[1:]
    if lengths[1] <= _THIN * lengths[0]:
        raise ValueError("the mesh has no convex hull: its vertices lie on a line")
    flat = max(_FLAT * float(np.abs(distinct).max()), _THIN * float(lengths[0]))
    faces = None
    if lengths[2] > _THIN * lengths[0]:
        try:
            faces = _faces(centred, convex_hull(centred), flat)
        except ValueError:  # too thin for qhull
            faces = None
    if faces is None:
        ring = _ring(centred, axes)
        faces = [ring, ring[::-1]]
    return _assembled(centred, faces, middle)


def _ring(points: Real, axes: Real) -> list[int]:
    """The corners of the convex hull of points in the plane of the first two axes, in order."""
    flat = (points - points.mean(axis=0)) @ axes[:2].T
    return outline(flat, 1e-12 * float(np.prod(flat.max(axis=0) - flat.min(axis=0))))


def outline(flat: Real, area: float = 0.0) -> list[int]:
    """The corners of the convex hull of points (n, 2), counter-clockwise (Andrew 1979); a corner spans more than `area`
    with its neighbours."""
    ascending = np.lexsort((flat[:, 1], flat[:, 0])).tolist()
    places = flat.tolist()
    ring: list[int] = []
    for order in (ascending, ascending[::-1]):
        chain: list[int] = []
        for k in order:
            while len(chain) > 1 and _turn(places[chain[-2]], places[chain[-1]], places[k]) <= area:
                chain.pop()
            chain.append(k)
        ring += chain[:-1]
    return ring


def _turn(a: list[float], b: list[float], c: list[float]) -> float:
    """Twice the area of a triangle, positive where it is passed counter-clockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _faces(points: Real, triangles: Whole, flat: float) -> list[list[int]]:
    """Merge the triangles of a hull that lie within `flat` of a plane into polygons.

    Vertices inside a polygon or on its edges are left out. If merging does not give a polyhedron, the triangles remain.
    """
    rows = triangles.tolist()
    regions = _regions(points, triangles, flat)
    loops = [_loop(found, rows) for found in regions]
    meeting = np.bincount([v for loop in loops for v in loop], minlength=len(points))
    polygons = [[v for v in loop if meeting[v] > 2] for loop in loops]
    return polygons if _is_polyhedron(polygons) else rows


def _regions(points: Real, triangles: Whole, flat: float) -> list[list[int]]:
    """Groups of coplanar triangles, beginning with the largest triangles."""
    corners = points[triangles]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(doubled, axis=1)
    rows, places = triangles.tolist(), points.tolist()
    normals = (doubled / np.maximum(areas, 1e-300)[:, None]).tolist()
    behind = {(b, a): (n, c) for n, (i, j, k) in enumerate(rows) for a, b, c in ((i, j, k), (j, k, i), (k, i, j))}
    free = [True] * len(rows)
    regions = []
    for seed in np.argsort(-areas, kind="stable").tolist():
        if not free[seed]:
            continue
        free[seed] = False
        found, (x, y, z), start = [seed], normals[seed], places[rows[seed][0]]
        height = x * start[0] + y * start[1] + z * start[2]
        for triangle in found:
            i, j, k = rows[triangle]
            for edge in ((i, j), (j, k), (k, i)):
                other, corner = behind.get(edge, (-1, -1))
                if other < 0 or not free[other]:
                    continue
                p, n = places[corner], normals[other]
                upright = n[0] * x + n[1] * y + n[2] * z
                if abs(x * p[0] + y * p[1] + z * p[2] - height) <= flat and (upright >= 0.5 or areas[other] == 0):
                    free[other] = False
                    found.append(other)
        regions.append(found)
    return regions


def _loop(found: list[int], rows: list[list[int]]) -> list[int]:
    """The corners around connected triangles, or [] if these do not form a single ring."""
    edges = {edge for n in found for i, j, k in (rows[n],) for edge in ((i, j), (j, k), (k, i))}
    following = {a: b for a, b in edges if (b, a) not in edges}
    start = min(following, default=-1)
    ring = [start]
    while following.get(ring[-1], start) != start:
        ring.append(following.pop(ring[-1]))
    following.pop(ring[-1], None)
    return [] if following else ring


def _is_polyhedron(polygons: list[list[int]]) -> bool:
    """True if every edge is traversed once in each direction and Euler's formula holds."""
    edges = [edge for ring in polygons for edge in zip(ring, [*ring[1:], *ring[:1]], strict=True)]
    directed = set(edges)
    if min(map(len, polygons)) < 3 or len(directed) < len(edges) or any((b, a) not in directed for a, b in directed):
        return False
    return len({a for a, _ in edges}) - len(edges) // 2 + len(polygons) == 2


def _assembled(points: Real, faces: list[list[int]], middle: Real) -> Polyhedron:
    """The polyhedron as arrays, with only the vertices that faces use."""
    used = sorted({v for ring in faces for v in ring})
    number = {v: n for n, v in enumerate(used)}
    rings = [[number[v] for v in ring] for ring in faces]
    vertices = points[used]
    corners = np.array([v for ring in rings for v in ring], np.int32)
    following = np.array([v for ring in rings for v in (*ring[1:], ring[0])], np.int32)
    start = np.cumsum([0, *map(len, rings)]).astype(np.int32)
    planes = _planes(vertices, corners, following, start, middle)
    return Polyhedron(vertices + middle, *_neighbours(corners, following, len(used)), planes, start, corners)


def _neighbours(corners: Whole, following: Whole, count: int) -> tuple[Whole, Whole]:
    """Neighbours along edges of `count` vertices: the start of each list, and the concatenated lists."""
    pairs = np.unique(np.stack([corners, following], axis=1), axis=0)  # each edge is passed in both directions
    return np.searchsorted(pairs[:, 0], np.arange(count + 1)).astype(np.int32), np.ascontiguousarray(pairs[:, 1])


def from_faces(vertices: Real, planes: Real, sizes: NDArray[np.integer[Any]], corners: Whole) -> Polyhedron:
    """A polyhedron from the arrays stored in an output; `sizes` (f,) are the numbers of corners of the faces."""
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    following = np.roll(corners, -1)
    following[start[1:] - 1] = corners[start[:-1]]
    made = Polyhedron(vertices, *_neighbours(corners, following, len(vertices)), planes, start, corners)
    for array in made:
        array.setflags(write=False)
    return made


def _planes(vertices: Real, corners: Whole, following: Whole, start: Whole, middle: Real) -> Real:
    """Planes through the outermost corners of faces, by the normals of their areas (Newell)."""
    face = np.repeat(np.arange(len(start) - 1), np.diff(start))
    first = vertices[corners[start[:-1]]][face]
    normals = np.add.reduceat(np.cross(vertices[corners] - first, vertices[following] - first), start[:-1])
    lengths = np.linalg.norm(normals, axis=1)
    away = vertices[corners[start[:-1]]] - vertices.mean(axis=0)  # for a face without area
    normals = np.where((lengths > 0)[:, None], normals, away)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    heights = np.maximum.reduceat(np.einsum("ij,ij->i", vertices[corners], normals[face]), start[:-1])
    return np.column_stack([normals, heights + normals @ middle])


def volume(vertices: Real, faces: NDArray[np.integer[Any]]) -> float:
    """The signed volume [m³] that triangles enclose."""
    a, b, c = (vertices[faces[:, k]] - vertices.mean(axis=0) for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def triangles_of(made: Polyhedron) -> NDArray[Any]:
    """Triangles (m, 3) in a fan from the first corner of every face; two of each face have no area."""
    before = np.repeat(made.corner_start[:-1], np.diff(made.corner_start))
    following = np.arange(1, len(made.corners) + 1)
    following[made.corner_start[1:] - 1] = made.corner_start[:-1]
    return np.stack([made.corners[before], made.corners, made.corners[following]], axis=1)


def hull_volume(made: Polyhedron) -> float:
    """The volume [m³] of a polyhedron."""
    return volume(made.vertices, triangles_of(made))
