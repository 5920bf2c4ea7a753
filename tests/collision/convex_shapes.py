"""Shapes for tests of collision's kernels, hulls by scipy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from artsim.collision.shapes import BOX, CAPSULE, CONVEX, CYLINDER, ELLIPSOID, MOST_CONTACTS, SPHERE, Manifold, Shapes

Array = np.ndarray[Any, Any]
KINDS = {
    "sphere": SPHERE,
    "capsule": CAPSULE,
    "ellipsoid": ELLIPSOID,
    "cylinder": CYLINDER,
    "box": BOX,
    "convex": CONVEX,
}


class Hull(NamedTuple):
    """A polyhedron: corners of faces counter-clockwise seen from outside."""

    points: Array  # (n, 3)
    faces: list[list[int]]
    planes: Array  # (m, 4)


def hull(points: Array) -> Hull:
    """The hull of points, its middle moved to the origin; coplanar triangles are one face. A flat one has two faces."""
    points = np.unique(points, axis=0)
    points = points - (points.min(0) + points.max(0)) / 2
    _, spread, axes = np.linalg.svd(points - points.mean(0))
    if spread[2] < 1e-12 * spread[0]:
        flat = points @ axes[:2].T
        order = ConvexHull(flat).vertices
        corners = points[order]
        normal = np.cross(axes[0], axes[1])
        d = float(normal @ corners[0])
        planes = np.array([[*normal, d], [*-normal, -d]])
        n = len(order)
        return Hull(corners, [list(range(n)), list(range(n))[::-1]], planes)
    found = ConvexHull(points)
    names = {old: new for new, old in enumerate(found.vertices)}
    groups: dict[tuple[float, ...], tuple[Array, set[int]]] = {}
    for simplex, plane in zip(found.simplices, found.equations, strict=True):
        groups.setdefault(tuple(np.round(plane, 9) + 0.0), (plane, set()))[1].update(names[i] for i in simplex)
    corners = points[found.vertices]
    faces, planes = [], []
    for plane, members in groups.values():
        normal = plane[:3] / np.linalg.norm(plane[:3])
        index = sorted(members)
        middle = corners[index].mean(0)
        x = corners[index[0]] - middle
        angle = [np.arctan2(np.cross(x, corners[i] - middle) @ normal, x @ (corners[i] - middle)) for i in index]
        faces.append([index[i] for i in np.argsort(angle)])
        planes.append([*normal, float(np.max(corners[index] @ normal))])
    return Hull(corners, faces, np.array(planes))


def make_shapes(items: Sequence[tuple[str, Any]]) -> Shapes:
    """Shapes of (kind, size); for convex meshes a Hull takes the size's place."""
    kind, size, reach, mesh = [], [], [], []
    points: list[Array] = []
    vertex_start, neighbours, faces, planes, face_start = [0], [], [], [], [0]
    for name, what in items:
        kind.append(KINDS[name])
        if name != "convex":
            s = np.zeros(3)
            s[: len(what)] = what
            mesh.append(-1)
            reach.append(
                {"sphere": s[0], "capsule": s[0] + s[1], "cylinder": np.hypot(s[0], s[1]), "ellipsoid": s.max()}.get(
                    name, np.linalg.norm(s)
                )
            )
        else:
            first = vertex_start[-1]
            mesh.append(len(vertex_start) - 1)
            s = np.abs(what.points).max(0)
            reach.append(np.linalg.norm(what.points, axis=1).max())
            points.extend(what.points)
            vertex_start.append(first + len(what.points))
            beside: list[set[int]] = [set() for _ in what.points]
            for face in what.faces:
                for i, j in zip(face, [*face[1:], face[0]], strict=True):
                    beside[i].add(first + j)
                    beside[j].add(first + i)
                faces.append([first + i for i in face])
            neighbours.extend(sorted(others) for others in beside)
            planes.extend(what.planes)
            face_start.append(face_start[-1] + len(what.faces))
        size.append(s)

    def starts(rows: Sequence[Sequence[int]]) -> Array:
        return np.cumsum([0, *map(len, rows)]).astype(np.int64)

    def whole(values: Any) -> Array:
        return np.array(values, np.int64).reshape(-1)

    made = Shapes(
        kind=whole(kind),
        size=np.array(size, float).reshape(-1, 3),
        reach=np.array(reach, float),
        mesh=whole(mesh),
        vertex_start=whole(vertex_start),
        vertex=np.array(points, float).reshape(-1, 3),
        neighbour_start=starts(neighbours),
        neighbour=whole([i for row in neighbours for i in row]),
        face_start=whole(face_start),
        plane=np.array(planes, float).reshape(-1, 4),
        corner_start=starts(faces),
        corner=whole([i for face in faces for i in face]),
        triangle_start=np.zeros(1, np.int64),
        triangle=np.zeros((0, 3), np.int64),
        triangle_across=np.zeros((0, 3), np.int64),
        node_start=np.zeros(1, np.int64),
        node_box=np.zeros((0, 6)),
        node_skip=np.zeros(0, np.int64),
        node_triangle=np.zeros((0, 2), np.int64),
        field_start=np.zeros(1, np.int64),
        field_shape=np.zeros((0, 2), np.int64),
        elevation=np.zeros(0),
    )
    for array in made:
        array.setflags(write=False)
    return made


def make_manifold() -> Manifold:
    """An empty one."""
    n = MOST_CONTACTS
    return Manifold(np.zeros(1, np.int64), np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n, np.int64))
