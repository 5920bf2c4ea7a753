"""Builds the Shapes that kernels read from the solids of a model, once before a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.collision.hull import Polyhedron, polyhedron
from artsim.collision.mesh import Real, Whole
from artsim.collision.shapes import (
    BOX,
    CAPSULE,
    CONVEX,
    CYLINDER,
    ELLIPSOID,
    HEIGHT_FIELD,
    PLANE,
    SPHERE,
    TRIANGLES,
    Shapes,
)
from artsim.collision.triangle_tree import TriangleTree, triangle_tree
from artsim.sim.foundation.errors import ModelError

PRIMITIVES = {"sphere": SPHERE, "capsule": CAPSULE, "ellipsoid": ELLIPSOID, "cylinder": CYLINDER, "box": BOX}


class Solid(NamedTuple):
    """A geom, or a part of one, that may touch.

    `kind`: plane, sphere, capsule, ellipsoid, cylinder, box, convex (the hull of `points`), triangles (one-sided, for
    bodies that never move) or heightfield. `size` [m]: as in a description's Geom; heightfield: half lengths along x
    and y, depth of the base.
    """

    kind: str
    size: Sequence[float]
    position: Real  # (3,) of its frame in the link frame [m]
    rotation: Real  # (3, 3)
    geom: int = 0  # number of the geom
    name: str = ""  # prefix of error messages: file, line, geom, mesh
    points: Real | None = None  # (n, 3) [m] in its frame
    faces: NDArray[np.integer[Any]] | None = None  # (m, 3)
    heights: Real | None = None  # (rows, columns) [m] above the origin of its frame
    corners: Whole | None = None  # indices of the points that make up its hull; None: all
    made: Polyhedron | None = None  # the hull, if it is known already


class Built(NamedTuple):
    """Shapes, with the geom of each and the pose of its frame in the link frame."""

    shapes: Shapes
    geom: NDArray[np.int64]  # (n,)
    position: Real  # (n, 3) [m]
    rotation: Real  # (n, 3, 3)
    piece: NDArray[np.int64]  # (n,) its piece; -1: a primitive
    pieces: tuple[Solid, ...]  # convex, triangles and heightfields, each once; they replace the mesh files


class _Parts:
    """Collects the meshes and height fields of Shapes, each once."""

    def __init__(self) -> None:
        self.meshes: list[tuple[Polyhedron | TriangleTree, Real]] = []  # with the middle of its bounding box
        self.fields: list[Real] = []
        self.pieces: list[Solid] = []
        self.piece_of_mesh: list[int] = []
        self.piece_of_field: list[int] = []
        self.known: dict[object, int] = {}

    def mesh(self, solid: Solid) -> int:
        """The number of the solid's mesh."""
        key = _content(solid)
        if key not in self.known:
            piece, made = _piece(solid)
            used = made.vertices[np.unique(made.triangles)] if isinstance(made, TriangleTree) else made.vertices
            self.known[key] = len(self.meshes)
            self.meshes.append((made, (used.min(axis=0) + used.max(axis=0)) / 2))
            self.piece_of_mesh.append(len(self.pieces))
            self.pieces.append(piece)
        return self.known[key]

    def field(self, solid: Solid, middle: float) -> int:
        """The number of the solid's height field."""
        assert solid.heights is not None
        self.fields.append(solid.heights - middle)
        self.piece_of_field.append(len(self.pieces))
        self.pieces.append(Solid("heightfield", solid.size, np.zeros(3), np.eye(3), heights=solid.heights))
        return len(self.fields) - 1


def _content(solid: Solid) -> object:
    """A key that is equal for solids of the same mesh."""
    if solid.made is not None:
        return id(solid.made)
    assert solid.points is not None
    points = np.ascontiguousarray(solid.points, np.float64)
    numbers = [b"" if listed is None else listed.tobytes() for listed in (solid.faces, solid.corners)]
    return solid.kind, points.tobytes(), *numbers


def _piece(solid: Solid) -> tuple[Solid, Polyhedron | TriangleTree]:
    """The hull or tree of a mesh, and the piece from which it can be built again."""
    piece = Solid(solid.kind, (), np.zeros(3), np.eye(3))
    points = None if solid.points is None else np.ascontiguousarray(solid.points, np.float64)
    if solid.kind == "triangles":
        assert points is not None and solid.faces is not None
        return piece._replace(points=points, faces=solid.faces), triangle_tree(points, solid.faces)
    made = solid.made
    if made is None:
        assert points is not None
        made = polyhedron(points if solid.corners is None else points[solid.corners])
    return piece._replace(made=made), made


def build_shapes(solids: Sequence[Solid]) -> Built:
    """Build the arrays that kernels read. Raises ModelError, with the solid's name, for a mesh without extent."""
    parts = _Parts()
    rows = [_row(solid, parts) for solid in solids]
    count = len(solids)
    positions = np.array([solid.position for solid in solids], float).reshape(count, 3)
    rotations = np.array([solid.rotation for solid in solids], float).reshape(count, 3, 3)
    middles = np.array([middle for *_, middle in rows]).reshape(count, 3)
    sizes = np.array([size for _, size, *_ in rows]).reshape(count, 3)
    kinds = np.array([kind for kind, *_ in rows], np.int64)
    arrays = {
        "kind": kinds,
        "size": sizes,
        "reach": np.array([reach for *_, reach, _, _ in rows], float),
        "mesh": np.array([number for *_, number, _ in rows], np.int64),
        **_mesh_arrays(parts.meshes),
        **_field_arrays(parts.fields),
    }
    return Built(
        Shapes(**{name: _constant(array) for name, array in arrays.items()}),
        _constant(np.array([solid.geom for solid in solids], np.int64)),
        _constant(positions + np.einsum("nij,nj->ni", rotations, middles)),
        _constant(rotations),
        _constant(np.array([_piece_number(parts, kind, number) for kind, _, _, number, _ in rows], np.int64)),
        tuple(parts.pieces),
    )


def _piece_number(parts: _Parts, kind: int, number: int) -> int:
    if number < 0:
        return -1
    return (parts.piece_of_field if kind == HEIGHT_FIELD else parts.piece_of_mesh)[number]


def _constant(array: NDArray[Any]) -> NDArray[Any]:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


_Row = tuple[int, Real, float, int, Real]  # kind, size, reach, mesh, middle of the bounding box


def _row(solid: Solid, parts: _Parts) -> _Row:
    """The entries of Shapes for one solid."""
    if solid.kind == "plane":
        return PLANE, np.zeros(3), np.inf, -1, np.zeros(3)
    if solid.kind == "heightfield":
        return _field_row(solid, parts)
    if solid.kind not in PRIMITIVES:
        return _mesh_row(solid, parts)
    size = np.zeros(3)
    size[: len(solid.size)] = solid.size
    kind = PRIMITIVES[solid.kind]
    reach = {
        SPHERE: size[0],
        CAPSULE: size[0] + size[1],
        ELLIPSOID: size.max(),
        CYLINDER: np.hypot(size[0], size[1]),
        BOX: np.linalg.norm(size),
    }[kind]
    return kind, size, float(reach), -1, np.zeros(3)


def _mesh_row(solid: Solid, parts: _Parts) -> _Row:
    """The entries of a mesh, whose frame moves to the middle of its bounding box."""
    try:
        number = parts.mesh(solid)
    except ValueError as error:
        raise ModelError(f"{solid.name}: {error}") from error
    made, middle = parts.meshes[number]
    used = made.vertices[made.triangles.ravel()] if isinstance(made, TriangleTree) else made.vertices
    half = np.abs(used - middle).max(axis=0)
    reach = float(np.linalg.norm(used - middle, axis=1).max())
    return TRIANGLES if solid.kind == "triangles" else CONVEX, half, reach, number, middle


def _field_row(solid: Solid, parts: _Parts) -> _Row:
    """The entries of a height field, whose bounding box reaches from its base to its highest point."""
    assert solid.heights is not None
    if min(solid.heights.shape) < 2:
        raise ModelError(f"{solid.name}: a height field has two rows and two columns at least")
    x, y, base = solid.size[:3]
    top = float(solid.heights.max())
    middle = np.array([0.0, 0.0, (top - base) / 2])
    half = np.array([x, y, (top + base) / 2])
    return HEIGHT_FIELD, half, float(np.linalg.norm(half)), parts.field(solid, middle[2]), middle


def _mesh_arrays(meshes: Sequence[tuple[Polyhedron | TriangleTree, Real]]) -> dict[str, NDArray[Any]]:
    """Vertices, faces, triangles and trees of all meshes, concatenated with shifted indices."""
    pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in (*_WHOLE, *_REAL)}
    totals = dict.fromkeys(("vertex", "neighbour", "face", "corner", "triangle", "node"), 0)
    starts: dict[str, list[int]] = {name: [0] for name in ("vertex", "face", "triangle", "node")}
    for made, middle in meshes:
        arrays = _of_tree(made, middle, totals) if isinstance(made, TriangleTree) else _of_hull(made, middle, totals)
        for name, array in arrays.items():
            pieces[name].append(array)
        lengths = {name: len(arrays.get(array, ())) for name, array in _LENGTH.items()}
        for name, length in lengths.items():
            totals[name] += length
        for name, found in starts.items():
            found.append(totals[name])
    wide = {name: np.concatenate([np.zeros((0, n), np.int64), *pieces[name]]) for name, n in _WHOLE.items() if n}
    flat = {name: np.concatenate([np.zeros(0, np.int64), *pieces[name]]) for name, n in _WHOLE.items() if not n}
    reals = {name: np.concatenate([np.zeros((0, n)), *pieces[name]]) for name, n in _REAL.items()}
    ends = {name: np.concatenate([[0], flat[name]]).astype(np.int64) for name in ("neighbour_start", "corner_start")}
    return {
        **wide,
        **flat,
        **reals,
        **ends,
        **{f"{name}_start": np.array(row, np.int64) for name, row in starts.items()},
    }


_WHOLE = {
    "neighbour_start": 0,
    "neighbour": 0,
    "corner_start": 0,
    "corner": 0,
    "triangle": 3,
    "triangle_across": 3,
    "node_skip": 0,
    "node_triangle": 2,
}
_REAL = {"vertex": 3, "plane": 4, "node_box": 6}
_LENGTH = {
    "vertex": "vertex",
    "neighbour": "neighbour",
    "face": "plane",
    "corner": "corner",
    "triangle": "triangle",
    "node": "node_box",
}


def _of_hull(made: Polyhedron, middle: Real, totals: dict[str, int]) -> dict[str, NDArray[Any]]:
    """The arrays of a convex mesh about its middle; starts hold ends here, since the leading 0 is added once."""
    planes = made.planes.copy()
    planes[:, 3] -= planes[:, :3] @ middle
    return {
        "vertex": made.vertices - middle,
        "neighbour_start": made.neighbour_start[1:].astype(np.int64) + totals["neighbour"],
        "neighbour": made.neighbours.astype(np.int64) + totals["vertex"],
        "plane": planes,
        "corner_start": made.corner_start[1:].astype(np.int64) + totals["corner"],
        "corner": made.corners.astype(np.int64) + totals["vertex"],
    }


def _of_tree(made: TriangleTree, middle: Real, totals: dict[str, int]) -> dict[str, NDArray[Any]]:
    """The arrays of a triangle mesh about its middle."""
    shift = totals["triangle"]
    inner = made.leaf[:, 1] == 0
    return {
        "vertex": made.vertices - middle,
        "neighbour_start": made.neighbour_start[1:] + totals["neighbour"],
        "neighbour": made.neighbour + totals["vertex"],
        "triangle": made.triangles + totals["vertex"],
        "triangle_across": np.where(made.across < 0, -1, made.across + shift),
        "node_box": made.box - np.tile(middle, 2),
        "node_skip": made.skip + totals["node"],
        "node_triangle": np.where(inner[:, None], 0, made.leaf + shift),
    }


def _field_arrays(fields: Sequence[Real]) -> dict[str, NDArray[Any]]:
    """The arrays of all height fields, concatenated."""
    return {
        "field_start": np.cumsum([0, *(field.size for field in fields)]).astype(np.int64),
        "field_shape": np.array([field.shape for field in fields], np.int64).reshape(-1, 2),
        "elevation": np.concatenate([np.zeros(0), *(field.ravel() for field in fields)]),
    }
