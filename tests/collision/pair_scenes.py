"""Random pairs of shapes, and what a contact of two convex shapes must be whatever found it.

The signed gap of two convex shapes is the largest, over all directions n, of min over b of n x less max over a of n x.
So a normal proves itself: the gap along it is the gap that was found. Of shapes apart the two surface points prove the
other half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from artsim.collision import shapes as of
from artsim.collision.shapes import Shapes
from tests.collision.pair_kernels import Array, Pairs, contacts_of, make_shapes

FAMILIES = ("random", "touching", "scaled", "aligned")
CORNERS = 32  # of the convex mesh: one for all pairs, in a ball of radius 1


class Scene(NamedTuple):
    """Pairs of shapes: 2 i and 2 i + 1."""

    shapes: Shapes
    position: Array  # (2 n, 3)
    rotation: Array  # (2 n, 3, 3)


# ------------------------------------------------------------------ pairs


def hull_points() -> Array:
    """The corners of the convex mesh."""
    points = np.random.default_rng(7).normal(size=(CORNERS, 3))
    return points / np.linalg.norm(points, axis=1)[:, None]


def sizes(kind: int, n: int, rng: np.random.Generator, spread: float) -> Array:
    """Sizes (n, 3) between e**-spread and e**spread times a common one; planes and meshes have none."""
    size = np.exp(rng.uniform(-spread, spread, (n, 3)))
    size[:, {of.PLANE: 0, of.CONVEX: 0, of.SPHERE: 1, of.CAPSULE: 2, of.CYLINDER: 2}.get(kind, 3) :] = 0.0
    return size


def reach(kind: Array, size: Array) -> Array:
    """Radius of a ball about each shape; planes: 0."""
    straight = size[:, 0] + size[:, 1]
    most = np.select(
        [kind == of.PLANE, kind == of.CONVEX, kind == of.CAPSULE, kind == of.CYLINDER, kind == of.BOX],
        [0.0, 1.0, straight, np.hypot(size[:, 0], size[:, 1]), np.linalg.norm(size, axis=1)],
        size.max(axis=1),
    )
    return np.asarray(most)


def mesh_arrays(kind: Array) -> dict[str, Array]:
    """What Shapes holds of the one convex mesh."""
    points = hull_points()
    hull = ConvexHull(points)
    beside: list[set[int]] = [set() for _ in points]
    for triangle in hull.simplices:
        for v in triangle:
            beside[v] |= set(triangle) - {v}
    faces = [t if np.linalg.det(points[t]) > 0 else t[::-1] for t in hull.simplices]  # the origin is inside
    planes = hull.equations * (1.0, 1.0, 1.0, -1.0)
    return {
        "mesh": np.where(kind == of.CONVEX, 0, -1),
        "vertex_start": np.array([0, len(points)]),
        "vertex": points,
        "neighbour_start": np.cumsum([0, *(len(s) for s in beside)]),
        "neighbour": np.concatenate([sorted(s) for s in beside]),
        "face_start": np.array([0, len(faces)]),
        "plane": planes,
        "corner_start": np.arange(0, 3 * len(faces) + 1, 3),
        "corner": np.concatenate(faces),
    }


def scene(one: int, two: int, family: str, n: int, seed: int) -> Scene:
    """n pairs of two kinds."""
    rng = np.random.default_rng([seed, one, two, FAMILIES.index(family)])
    kind = np.tile([one, two], n)
    size = np.empty((2 * n, 3))
    for k, of_kind in enumerate((one, two)):
        size[k::2] = sizes(of_kind, n, rng, 4.6 if family == "scaled" else 1.0)
        size[k::2] *= 0.1 if family == "scaled" else 1.0
    rotation = Rotation.random(2 * n, rng).as_matrix()
    shapes_reach = reach(kind, size)
    both = shapes_reach[0::2] + shapes_reach[1::2]
    way = rng.normal(size=(n, 3))
    way *= (both * rng.uniform(0.0, 1.2, n) / np.linalg.norm(way, axis=1))[:, None]
    if family == "aligned":
        size = np.maximum(np.round(size * 2) / 2, 0.5) * (size > 0)
        shapes_reach = reach(kind, size)
        quarter = Rotation.from_euler("xyz", rng.integers(0, 4, (2 * n, 3)) * (np.pi / 2)).as_matrix()
        rotation = np.where(rng.random((2 * n, 1, 1)) < 0.8, np.round(quarter), rotation)
        way = rng.integers(-4, 5, (n, 3)) * 0.5
    position = np.repeat(rng.uniform(-1.0, 1.0, (n, 3)), 2, axis=0)
    position[1::2] += way
    made = Scene(make_shapes(kind, size, reach=shapes_reach, **mesh_arrays(kind)), position, rotation)
    if family == "touching":  # by what is found itself: the truth is looked for again
        found = contacts_of(*made)
        k = deepest(found)
        off = rng.choice([0.0, 1e-12, 1e-9, 1e-6, 1e-3], n) * rng.choice([-1, 1], n) * both
        position[1::2] += pick(found.normal, k) * (off - pick(found.gap, k))[:, None]
    return made


def deepest(found: Pairs) -> Array:
    """Which contact of each pair is the deepest."""
    gaps = np.where(np.arange(found.gap.shape[1]) < found.number[:, None], found.gap, np.inf)
    return np.asarray(np.argmin(gaps, axis=1))


def pick(values: Array, k: Array) -> Array:
    """values[i, k[i]]."""
    return np.asarray(values[np.arange(len(k)), k])


# ------------------------------------------------------------------ truth


def supports(s: Scene, which: int, n: Array) -> Array:
    """The largest n x over one shape of each pair; n (pairs, 3)."""
    size, R = s.shapes.size[which::2], s.rotation[which::2]
    l = np.einsum("nij,ni->nj", R, n)
    kind = int(s.shapes.kind[which])
    if kind == of.PLANE:
        out = np.zeros(len(n))
    elif kind == of.SPHERE:
        out = size[:, 0]
    elif kind == of.CAPSULE:
        out = size[:, 0] + size[:, 1] * np.abs(l[:, 2])
    elif kind == of.ELLIPSOID:
        out = np.linalg.norm(size * l, axis=1)
    elif kind == of.CYLINDER:
        out = size[:, 0] * np.hypot(l[:, 0], l[:, 1]) + size[:, 1] * np.abs(l[:, 2])
    elif kind == of.BOX:
        out = (size * np.abs(l)).sum(axis=1)
    else:
        out = (l @ s.shapes.vertex.T).max(axis=1)
    return np.asarray(out)


def gap_along(s: Scene, n: Array) -> Array:
    """The gap between the shapes of each pair along n, from the first to the second."""
    way = np.einsum("ni,ni->n", s.position[1::2] - s.position[0::2], n)
    return np.asarray(way - supports(s, 0, n) - supports(s, 1, -n))


def outside(s: Scene, which: int, x: Array) -> Array:
    """How far the points x (pairs, 3) are outside one shape of each pair; exact in sign, and near the surface."""
    size, R = s.shapes.size[which::2], s.rotation[which::2]
    l = np.einsum("nij,ni->nj", R, x - s.position[which::2])
    kind = int(s.shapes.kind[which])
    if kind == of.PLANE:
        out = l[:, 2]
    elif kind in (of.SPHERE, of.CAPSULE):
        l[:, 2] -= np.clip(l[:, 2], -size[:, 1], size[:, 1])
        out = np.linalg.norm(l, axis=1) - size[:, 0]
    elif kind == of.ELLIPSOID:
        out = (np.linalg.norm(l / size, axis=1) - 1.0) * size.min(axis=1)
    elif kind == of.CYLINDER:
        out = np.maximum(np.hypot(l[:, 0], l[:, 1]) - size[:, 0], np.abs(l[:, 2]) - size[:, 1])
    elif kind == of.BOX:
        out = (np.abs(l) - size).max(axis=1)
    else:
        out = (l @ s.shapes.plane[:, :3].T - s.shapes.plane[:, 3]).max(axis=1)
    return np.asarray(out)


def misplaced(s: Scene, gap: Array, point: Array, normal: Array) -> Array:
    """How far the two surface points of a contact of each pair are from the surfaces."""
    half = normal * (0.5 * gap)[:, None]
    return np.asarray(np.maximum(np.abs(outside(s, 0, point - half)), np.abs(outside(s, 1, point + half))))


def smaller_reach(s: Scene) -> Array:
    """Of the two shapes of each pair."""
    reaches = np.where(s.shapes.kind == of.PLANE, np.inf, s.shapes.reach)
    return np.asarray(np.minimum(reaches[0::2], reaches[1::2]))
