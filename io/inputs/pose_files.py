"""Reads poses of links for `artsim ik` by rows from .npy, .npz, .h5, .csv files and standard input.

Positions and rotations are arrays `position` and `quaternion`, (N, 3) and (N, 4), or (N, links, …); or one array of
both, (N, 7). `link_position` and `link_quaternion` of a batch or a run are taken by the links' names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artsim.io.format.labels import FIXED_LABELS
from artsim.io.gate.gate import open_checked
from artsim.io.gate.values import reading
from artsim.io.inputs.array_files import NpzArchive, Stored, stored_npy
from artsim.io.inputs.configurations import (
    SUFFIXES,
    kind_of_input,
    labels_in,
    object_at,
    opened_input,
    stored_dataset,
    valid_rows,
)
from artsim.io.inputs.csv_rows import Columns, number_of, read_csv
from artsim.sim.foundation.errors import ModelError, UsageError, listed, nearest
from artsim.sim.foundation.records import Array

_NAMES = {
    "position": ("position", "link_position", "target_position"),
    "quaternion": ("quaternion", "link_quaternion", "target_quaternion"),
}
_WIDTHS = {"position": 3, "quaternion": 4}
POSE = 7
_CSV = {"position": ("x", "y", "z"), "quaternion": ("qw", "qx", "qy", "qz")}


def is_pose_file(text: str) -> bool:
    """True for a name of a file of poses, which may be followed by the path of a dataset."""
    name = text.rpartition(":")[0] if ":/" in text else text
    return Path(name).suffix.lower() in SUFFIXES


class _Contents(NamedTuple):
    """The arrays of a file, the names of everything in it, and the links of an axis of links, if they are named."""

    arrays: Mapping[str, Stored]
    held: Sequence[str]
    links: tuple[str, ...] | None


class PoseFile:
    """Rows of poses of the wanted links, which the context manager closes.

    Attributes:
        rows: their number.
        names: those of position and quaternion that the file has.
    """

    def __init__(self, text: str, links: Sequence[str]) -> None:
        """Open the file that `--input` names: a file, `FILE.h5:/path` of a dataset or group, or `-`.

        Raises MissingInputError, UsageError, ModelError, StorageError as open_input does.
        """
        self._stack = ExitStack()
        with ExitStack() as stack:
            name, inside, handle = opened_input(text, stack)
            contents = _READERS[kind_of_input(name, handle)](name, inside, handle, links, stack)
            self._tables, rows = {}, {}
            for key, stored in _found(name, contents).items():
                shape, chosen = _shape(name, key, stored, links, contents.links)
                rows[key] = shape[0]
                self._tables[key] = stored.open(shape), shape[1:], chosen
            if len(set(rows.values())) > 1:
                raise ModelError(f"{name}: {', '.join(f'{key} has {n} rows' for key, n in rows.items())}")
            self.rows = next(iter(rows.values()))
            whole = "pose" in self._tables
            self.names = tuple(_WIDTHS) if whole else tuple(self._tables)
            self._links = len(links)
            self._stack = stack.pop_all()

    def read(self, start: int, stop: int) -> dict[str, Array]:
        """Rows start … stop of `names`: position (rows, links, 3), quaternion (rows, links, 4)."""
        found = {}
        for key, (table, row, chosen) in self._tables.items():
            values = np.empty((stop - start, *row))
            table.read(start, stop, values)
            found[key] = values[:, chosen] if chosen is not None else values.reshape(len(values), self._links, -1)
        if "pose" in found:
            pose = found.pop("pose")
            found = {"position": pose[..., :3], "quaternion": pose[..., 3:]}
        return found

    def __enter__(self) -> PoseFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def _found(name: str, contents: _Contents) -> dict[str, Stored]:
    """The arrays of poses by the names here. Raises UsageError if there are none."""
    found = {
        key: contents.arrays[known] for key, names in _NAMES.items() for known in names if known in contents.arrays
    }
    if found:
        return found
    if "pose" in contents.arrays:
        stored = contents.arrays["pose"]
        width = stored.shape[-1] if stored.shape else 0
        if width in (3, 4, POSE):
            return {{3: "position", 4: "quaternion"}.get(width, "pose"): stored}
        raise ModelError(f"{name}: has shape {stored.shape}, want rows of 3 (position), 4 (quaternion) or 7 numbers")
    raise UsageError(f"{name}: has no position and no quaternion; it holds {listed(contents.held, 8)}")


def _shape(
    name: str, key: str, stored: Stored, links: Sequence[str], named: tuple[str, ...] | None
) -> tuple[tuple[int, ...], list[int] | None]:
    """The shape (rows, …) of an array, and the places of the wanted links in it; None: it has one link.

    Raises ModelError for a wrong type or shape.
    """
    if stored.dtype.kind not in "fiu":
        raise ModelError(f"{name}: {key} holds {stored.dtype}, want real numbers")
    width = _WIDTHS.get(key, POSE)
    shape = stored.shape
    if shape == (width,) and len(links) == 1:
        return (1, width), None
    if len(shape) == 2 and shape[1] == width and len(links) == 1:
        return shape, None
    if len(shape) != 3 or shape[2] != width or (named is None and shape[1] != len(links)):
        want = f"(N, {width})" if len(links) == 1 else f"(N, {len(links)}, {width})"
        raise ModelError(f"{name}: {key} has shape {shape}, want {want}")
    if named is None:
        return shape, [*range(len(links))]
    for link in links:
        if link not in named:
            raise ModelError(f"{name}: {key} has no link {link!r}{nearest(link, named)}")
    return shape, [named.index(link) for link in links]


def _read_npy(name: str, inside: str, handle: int, links: Sequence[str], stack: ExitStack) -> _Contents:
    return _Contents({"pose": stored_npy(handle, name)}, ["an array"], None)


def _read_npz(name: str, inside: str, handle: int, links: Sequence[str], stack: ExitStack) -> _Contents:
    archive = NpzArchive(handle, name)
    stack.callback(archive.close)
    known = {key for names in _NAMES.values() for key in names} & {*archive.names}
    arrays = {key: archive.stored(key) for key in known}
    if not known and len(archive.names) == 1:
        arrays = {"pose": archive.stored(archive.names[0])}
    dim = "target_link" if any(key.startswith("target") for key in known) else "link"
    return _Contents(arrays, archive.names, archive.texts(dim))


def _read_h5(name: str, inside: str, handle: int, links: Sequence[str], stack: ExitStack) -> _Contents:
    import h5py

    path = Path(name)
    file = stack.enter_context(open_checked(path))
    with reading(path):
        item = object_at(file, name, inside)
        if isinstance(item, h5py.Dataset):
            return _Contents({"pose": stored_dataset(path, item, valid_rows(item.parent))}, [item.name], None)
        known = [key for names in _NAMES.values() for key in names if isinstance(item.get(key), h5py.Dataset)]
        arrays = {key: stored_dataset(path, item[key], valid_rows(item)) for key in known}
        dim = "target_link" if any(key.startswith("target") for key in known) else "link"
        return _Contents(arrays, list(item), labels_in(path, item, (dim,)).get(dim))


def _read_csv(name: str, inside: str, handle: int, links: Sequence[str], stack: ExitStack) -> _Contents:
    with os.fdopen(os.dup(handle), "rb") as stream:
        stream.seek(0)
        parsed = read_csv(stream, name, PoseColumns(links))
    shaped = {
        key: stored._replace(shape=(stored.shape[0], len(links), _WIDTHS[key])) for key, stored in parsed.arrays.items()
    }
    return _Contents(shaped, parsed.columns.names, None)


_READERS: Mapping[str, Any] = {"npy": _read_npy, "npz": _read_npz, "csv": _read_csv, "h5": _read_h5}


class PoseColumns:
    """The columns of CSV files of poses: x, y, z, qw, qx, qy, qz of one link, `tool.x` of several, and
    `link_position.tool.x` as a batch writes them. Other columns are left out."""

    def __init__(self, links: Sequence[str]) -> None:
        self._links = links
        self._known: dict[str, tuple[str, int]] = {}
        for n, link in enumerate(links):
            for key, names in _CSV.items():
                for k, axis in enumerate(names):
                    place = (key, n * len(names) + k)
                    self._known[f"{link}.{axis}"] = place
                    if len(links) == 1:
                        self._known[axis] = self._known[f"{key}.{axis.removeprefix('q')}"] = place
                    dim = FIXED_LABELS["xyz" if key == "position" else "quat"][k]
                    for known in _NAMES[key]:
                        self._known[f"{known}.{link}.{dim}"] = place

    def is_header(self, words: Sequence[str]) -> bool:
        """True for a row of names."""
        return any(number_of(word) is None for word in words)

    def by_name(self, where: str, words: list[str]) -> Columns:
        """The columns of a header. Raises ModelError if there are no poses, or some of their entries are missing."""
        places = {key: [-1] * (len(names) * len(self._links)) for key, names in _CSV.items()}
        for column, word in enumerate(words):
            if word in self._known:
                key, k = self._known[word]
                places[key][k] = column
        found = {key: at for key, at in places.items() if max(at) >= 0}
        if not found:
            want = "x,y,z,qw,qx,qy,qz" if len(self._links) == 1 else f"{self._links[0]}.x, …"
            raise ModelError(f"{where}: no column of a pose, want {want}; it has {listed(words, 8)}")
        for key, at in found.items():
            if -1 in at:
                n, k = divmod(at.index(-1), len(_CSV[key]))
                name = _CSV[key][k] if len(self._links) == 1 else f"{self._links[n]}.{_CSV[key][k]}"
                raise ModelError(f"{where}: no column {name!r}")
        return Columns(words, found)

    def by_order(self, where: str, count: int) -> Columns:
        """The columns without a header: 3 of a position or 7 of a pose. Raises ModelError for another number."""
        if len(self._links) > 1 or count not in (3, POSE):
            want = "a first line that names them" if len(self._links) > 1 else "3 (x,y,z), 7 (x,y,z,qw,qx,qy,qz)"
            raise ModelError(f"{where}: {count} columns, want {want}")
        places = {"position": [0, 1, 2]} | ({"quaternion": [3, 4, 5, 6]} if count == POSE else {})
        return Columns([*_CSV["position"], *_CSV["quaternion"]][:count], places)
