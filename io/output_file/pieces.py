"""Stores collision and ray-casting shapes of meshes and height fields in /model; reads them from untrusted files.

With them a run can be simulated again without the mesh files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import FIXED_LABELS
from artsim.io.gate.values import read_whole
from artsim.io.output_file.layout import Section
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    from artsim.sim.geometry.solids import Kept, Piece

KINDS = ("convex", "triangles", "heightfield")  # by their numbers in the file
MOST = 1e9  # [m] largest distance of a vertex from its frame


def kept_bytes(kept: Kept | None) -> int:
    """The largest number of bytes that the pieces take in a file."""
    return 0 if kept is None else sum(array.nbytes for array in _arrays(kept).values())


def lay_out_pieces(section: Section, kept: Kept) -> None:
    """Write the packed datasets of the pieces in /model; none without pieces."""
    if not kept.pieces:
        return
    arrays = _arrays(kept)
    section.scales(["xyz", "plane_entry"])
    known = set()
    for name, values in arrays.items():
        dim = schema.TABLE[f"model/{name}"].dims[0]
        if dim not in known:
            section.group.bare_dimension(dim, len(values))
            known.add(dim)
        section.fixed(name, values, gzip=True)


def _arrays(kept: Kept) -> dict[str, Array]:
    """The datasets by name, without those of absent kinds of pieces."""
    rows = [_of_piece(piece) for piece in kept.pieces]
    joined = {
        name: np.concatenate([row[name] for row in rows if name in row])
        for name in _PIECE_ARRAYS
        if any(name in row for row in rows)
    }
    return {
        "use_geom": np.array(kept.geom, np.int32),
        "use_piece": np.array(kept.piece, np.int32),
        **({"use_seen": np.array(kept.seen, np.int8)} if any(kept.seen) else {}),
        **joined,
    }


_USE_ARRAYS = ("use_geom", "use_piece", "use_seen")
_PIECE_ARRAYS = (
    "piece_kind",
    "piece_vertices",
    "piece_faces",
    "vertex_position",
    "face_corners",
    "corner_vertex",
    "plane",
    "height",
)


def _of_piece(piece: Piece) -> dict[str, Array]:
    """The part of each dataset for one piece."""
    if piece.kind == "heightfield":
        assert piece.heights is not None
        return _head(piece, *piece.heights.shape) | {"height": piece.heights.ravel()}
    if piece.kind == "convex":
        assert piece.made is not None
        made = piece.made
        return _head(piece, len(made.vertices), len(made.planes)) | {
            "vertex_position": made.vertices,
            "face_corners": np.diff(made.corner_start).astype(np.int32),
            "corner_vertex": made.corners.astype(np.int32),
            "plane": made.planes,
        }
    assert piece.points is not None and piece.faces is not None
    return _head(piece, len(piece.points), len(piece.faces)) | {
        "vertex_position": piece.points,
        "face_corners": np.full(len(piece.faces), 3, np.int32),
        "corner_vertex": piece.faces.ravel().astype(np.int32),
    }


def _head(piece: Piece, vertices: int, faces: int) -> dict[str, Array]:
    return {
        "piece_kind": np.array([KINDS.index(piece.kind)], np.int8),
        "piece_vertices": np.array([vertices], np.int32),
        "piece_faces": np.array([faces], np.int32),
    }


# ------------------------------------------------------------------ reading


def read_pieces(group: Any, path: Path) -> Kept:
    """Read the pieces in /model, `group`, of a file that passed the gate. Raises ModelError if they are invalid."""
    from artsim.sim.geometry.solids import Kept

    if "piece_kind" not in group:
        return Kept()
    reading = _Reading(group, path)
    pieces = tuple(reading.piece(n) for n in range(len(reading.arrays["piece_kind"])))
    uses = reading.numbers("use_piece", len(pieces))
    geoms = reading.numbers("use_geom", 1 << 31)
    reading.want(len(uses) == len(geoms), "use_geom")
    seen = reading.numbers("use_seen", 2) if "use_seen" in group else np.zeros(len(uses), np.int8)
    reading.want(len(seen) == len(uses), "use_seen")
    for name, end in reading.ends.items():
        reading.want(end == len(reading.arrays[name]), name)
    return Kept(tuple(geoms.tolist()), tuple(uses.tolist()), pieces, tuple(seen.tolist()))


class _Reading:
    """Reads the datasets piece by piece and checks all indices, since kernels do not check them."""

    def __init__(self, group: Any, path: Path) -> None:
        self._path, self._where = path, f"{path}: /model"
        self.arrays = {name: self._array(group, name) for name in (*_USE_ARRAYS, *_PIECE_ARRAYS)}
        self.ends = dict.fromkeys(_PIECE_ARRAYS[3:], 0)
        count = len(self.arrays["piece_kind"])
        for name in _PIECE_ARRAYS[:3]:
            self.want(len(self.arrays[name]) == count and bool((self.arrays[name] >= 0).all()), name)
        self.want(bool((self.arrays["piece_kind"] < len(KINDS)).all()), "piece_kind")

    def _array(self, group: Any, name: str) -> Array:
        variable = schema.TABLE[f"model/{name}"]
        row = tuple(len(FIXED_LABELS[dim]) for dim in variable.dims[1:])
        if name not in group:
            return np.zeros((0, *row), variable.dtype)
        dataset = group[name]
        self.want(dataset.dtype == np.dtype(variable.dtype) and dataset.shape[1:] == row and dataset.ndim > 0, name)
        values = read_whole(self._path, dataset)
        if variable.dtype == "f8":
            self.want(bool((np.abs(values) < MOST).all()), name)
        return values

    def want(self, right: bool, name: str) -> None:
        if not right:
            raise ModelError(f"{self._where}/{name} is damaged: no shapes can be made of it")

    def numbers(self, name: str, beyond: int) -> Array:
        """Read a dataset of indices."""
        values = self.arrays[name]
        self.want(bool(((values >= 0) & (values < beyond)).all()), name)
        return values

    def _next(self, name: str, count: int) -> Array:
        """Read the next `count` rows."""
        start = self.ends[name]
        self.ends[name] = start + count
        self.want(self.ends[name] <= len(self.arrays[name]), name)
        return self.arrays[name][start : start + count]

    def piece(self, n: int) -> Piece:
        """Read piece n; pieces are read in order."""
        from artsim.sim.geometry.solids import convex_piece, field_piece, triangles_piece

        kind = KINDS[int(self.arrays["piece_kind"][n])]
        vertices, faces = int(self.arrays["piece_vertices"][n]), int(self.arrays["piece_faces"][n])
        if kind == "heightfield":
            return field_piece(self._next("height", vertices * faces).reshape(vertices, faces))
        points, sizes = self._next("vertex_position", vertices), self._next("face_corners", faces)
        self.want(faces > 0 and bool((sizes >= 3).all()), "face_corners")
        corners = self._next("corner_vertex", int(sizes.sum(dtype=np.int64)))
        self.want(bool(((corners >= 0) & (corners < vertices)).all()), "corner_vertex")
        if kind == "triangles":
            self.want(bool((sizes == 3).all()), "face_corners")
            return triangles_piece(points, corners.reshape(-1, 3))
        self.want(len(np.unique(corners)) == vertices, "corner_vertex")
        return convex_piece(points, self._next("plane", faces), sizes, corners)
