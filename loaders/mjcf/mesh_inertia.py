"""Mass and inertia of meshes, and of geoms fitted to them, as MuJoCo's compiler gives them.

Errors are ValueErrors with the reason, without the place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artsim.loaders.mjcf.geom_inertia import TINY, MeshShape, normalised, principal_axes, scaled
from artsim.sim.articulation.description import Pose, Quaternion, Vector3
from artsim.sim.articulation.pose_algebra import compose

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Real = NDArray[np.float64]
    Whole = NDArray[np.integer[Any]]

MESH_INERTIAS = ("legacy", "exact", "convex", "shell")
SMALL = 1e-15  # MuJoCo's mjMINVAL: smaller areas and volumes of a mesh count as 0
# MuJoCo's tolerances for meshes, as geom_inertia.py has those for bodies
MESH_COUPLED = MESH_EQUAL = 1e-7


def read_mesh_shape(
    path: Path,
    *,
    kind: str = "legacy",
    scale: Sequence[float] = (1.0, 1.0, 1.0),
    refpos: Sequence[float] = (0.0, 0.0, 0.0),
    refquat: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
    maxhullvert: int = -1,
    max_faces: int | None = None,
) -> MeshShape:
    """`mesh_shape` of a file that may be read. Raises ValueError, also for a damaged file.

    Of an OBJ the first object counts, with the vertices of all objects, as in MuJoCo.
    """
    from artsim.collision.mesh import MAX_FACES, MeshError, read_mesh

    try:
        mesh = read_mesh(path, max_faces=MAX_FACES if max_faces is None else max_faces)
    except MeshError as error:
        raise ValueError(str(error)) from error
    faces = mesh.faces[: mesh.parts[0]] if len(mesh.parts) else mesh.faces
    return mesh_shape(
        mesh.vertices, faces, kind=kind, scale=scale, refpos=refpos, refquat=refquat, maxhullvert=maxhullvert
    )


def mesh_shape(
    vertices: Real | Sequence[float],
    faces: Whole | Sequence[int],
    *,
    kind: str = "legacy",
    scale: Sequence[float] = (1.0, 1.0, 1.0),
    refpos: Sequence[float] = (0.0, 0.0, 0.0),
    refquat: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
    maxhullvert: int = -1,
) -> MeshShape:
    """Centre a mesh as MuJoCo does. `vertices` (n, 3) [m], `faces` (m, 3), or their numbers in one row, as in the
    attributes vertex and face; without faces the convex hull serves.

    `kind`: exact sums signed volumes, legacy their absolute values, convex takes the hull, shell the surface.
    Raises ValueError (no volume, inside out, inconsistent orientation, coplanar vertices).
    """
    import numpy as np

    from artsim.collision.mesh import convex_hull, is_closed
    from artsim.sim.foundation.rotations import rotation_matrix

    if kind not in MESH_INERTIAS:
        raise ValueError(f"mesh inertia {kind!r}, want {', '.join(MESH_INERTIAS)}")
    if 0.0 in tuple(scale):
        raise ValueError("a scale of 0 flattens the mesh")
    if np.size(vertices) < 12 or np.size(vertices) % 3 or np.size(faces) % 3:
        raise ValueError(
            f"{np.size(vertices)} coordinates and {np.size(faces)} indices: want threes, and four vertices"
        )
    points = np.asarray(vertices, np.float32).astype(np.float64).reshape(-1, 3)  # the precision of MuJoCo
    faces = np.asarray(faces, np.int64).reshape(-1, 3)
    if len(faces) and not (faces.min() >= 0 and faces.max() < len(points)):
        raise ValueError(f"a face refers to a vertex that does not exist; there are {len(points)}")
    if kind == "exact":
        check_orientation(points, faces)
    if kind == "convex" or not len(faces):
        faces = convex_hull(points, maxhullvert)
    closed = kind not in ("legacy", "exact") or is_closed(points, faces)
    points = (points - np.asarray(refpos)) @ rotation_matrix(normalised_from(refquat)) * np.asarray(scale)
    if math.prod(scale) < 0:
        faces = faces[:, [0, 2, 1]]
    amount, centre, inertia = mass_properties(points, faces, kind)
    moments, rotation = principal_axes(inertia.tolist(), MESH_COUPLED, MESH_EQUAL)
    turned = (points - centre) @ rotation_matrix(rotation)
    return MeshShape(
        pose=Pose(triple(centre), rotation),
        amount=amount,
        box=equal_box(moments, amount),
        lower=triple(turned.min(axis=0)),
        upper=triple(turned.max(axis=0)),
        closed=closed,
    )


def mass_properties(points: Real, faces: Whole, kind: str) -> tuple[float, Real, Real]:
    """Volume [m³] (area [m²] of a shell), centre of mass (3,) [m] and inertia (3, 3) about it at density one.

    Sums over pyramids with apex at the faces' centroid, then again with apex at the centre of mass, volume included:
    with absolute values (legacy) the volume depends on the apex.
    """
    import numpy as np

    corners = points[faces]  # (m, 3, 3)
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(doubled, axis=1) / 2
    tiny = areas < SMALL / 2
    doubled[tiny], areas[tiny] = 0.0, 0.0
    middles = corners.mean(axis=1)
    area = float(areas.sum())
    if area < SMALL:
        raise ValueError("the mesh has no surface")
    centroid = areas @ middles / area
    if kind == "shell":
        return area, centroid, second_moments(corners - centroid, areas / 12)

    def volumes(origin: Real) -> Real:
        signed: Real = np.einsum("ij,ij->i", middles - origin, doubled) / 6
        return np.abs(signed) if kind == "legacy" else signed

    weights = volumes(centroid)
    volume = float(weights.sum())
    if volume < 0 and abs(volume) >= SMALL:
        raise ValueError("the mesh has a negative volume: its faces are inside out")
    if volume < SMALL:
        raise ValueError("the mesh has no volume; inertia='shell' takes its surface")
    centre = weights @ (0.75 * middles + 0.25 * centroid) / volume
    weights = volumes(centre)
    return float(weights.sum()), centre, second_moments(corners - centre, weights / 20)


def second_moments(corners: Real, weights: Real) -> Real:
    """Inertia (3, 3) about the origin of triangles (m, 3, 3) [m], each with a twelfth of its area as weight, or of
    tetrahedra from the origin to the triangles, with a twentieth of their volume.
    """
    import numpy as np

    products = np.zeros((3, 3))
    for points in (corners[:, 0], corners[:, 1], corners[:, 2], corners.sum(axis=1)):
        products += (points * weights[:, None]).T @ points
    inertia: Real = np.trace(products) * np.eye(3) - products
    return inertia


def equal_box(moments: Vector3, amount: float) -> Vector3:
    """Half sizes [m] of the box with these moments at density one."""
    total = sum(moments)
    if moments[2] <= 0 or max(moments) > total / 2 * (1 + 1e-6) + 1e-9:
        raise ValueError("the mesh has an inertia that no body can have")
    a, b, c = (math.sqrt(max(0.0, 6 * (total - 2 * moment) / amount)) / 2 for moment in moments)
    return (a, b, c)


def check_orientation(points: Real, faces: Whole) -> None:
    """Raise ValueError if two faces traverse an edge in the same direction; slivers do not count."""
    import numpy as np

    corners = points[faces]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    seen = faces[np.linalg.norm(doubled, axis=1) / 2 > math.sqrt(SMALL)].astype(np.int64)
    edges = np.concatenate([seen[:, [0, 1]], seen[:, [1, 2]], seen[:, [2, 0]]]) @ np.array([len(points), 1])
    edges.sort()
    twice = edges[1:][edges[1:] == edges[:-1]]
    if len(twice):
        first, second = divmod(int(twice[0]), len(points))
        raise ValueError(
            f"two faces pass the edge from vertex {first + 1} to {second + 1} in the same direction: inertia='exact' "
            "needs faces that agree"
        )


def normalised_from(q: Sequence[float]) -> Quaternion:
    """A unit quaternion from four numbers; zero means no rotation."""
    w, x, y, z = q
    return normalised((w, x, y, z)) if math.hypot(w, x, y, z) > TINY else (1.0, 0.0, 0.0, 0.0)


def triple(row: Real) -> Vector3:
    """Three floats."""
    x, y, z = row.tolist()
    return (x, y, z)


def mesh_geom_pose(pose: Pose, mesh: MeshShape, centre: Vector3 = (0.0, 0.0, 0.0)) -> Pose:
    """The compiled frame of a geom that refers to a mesh, from its pos and quat in the file.

    `centre` [m] is the centre from `fit_to_mesh`, for a primitive that is fitted to the mesh.
    """
    return compose(pose, compose(mesh.pose, Pose(centre)))


def fit_to_mesh(kind: str, mesh: MeshShape, *, aabb: bool = False, scale: float = 1.0) -> tuple[Vector3, Vector3]:
    """Size [m] of the primitive that stands for a mesh, and its centre in the mesh's centred frame.

    The fit is to the box of equal inertia, or with `aabb` (compiler's fitaabb) to the bounds of the vertices. `scale`
    is the geom's fitscale. Raises ValueError for a kind that cannot be fitted.
    """
    centre = (0.0, 0.0, 0.0)
    a, b, c = mesh.box
    if aabb:
        x, y, z = ((low + high) / 2 for low, high in zip(mesh.lower, mesh.upper, strict=True))
        a, b, c = mesh.upper[0] - x, mesh.upper[1] - y, mesh.upper[2] - z
        centre = (x, y, z)
    wide = max(a, b) if aabb else (a + b) / 2
    if kind == "sphere":
        size = (max(a, b, c) if aabb else (a + b + c) / 3, 0.0, 0.0)
    elif kind == "capsule":
        size = (wide, c - wide if aabb else max(0.0, c - wide / 2), 0.0)
    elif kind == "cylinder":
        size = (wide, c, 0.0)
    elif kind in ("ellipsoid", "box"):
        size = (a, b, c)
    else:
        raise ValueError(f"a {kind} cannot be fitted to a mesh")
    return scaled(scale, size), centre
