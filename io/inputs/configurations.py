"""Reads configurations for `artsim batch` by rows from .npy, .npz, .h5, .csv files and standard input.

For every kind of file each input (qpos, qvel, qacc, tau, wrench) becomes a table of rows that is checked when it is
opened and then read in place: memory does not depend on the number of rows.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import FIXED_LABELS
from artsim.io.gate.gate import open_checked
from artsim.io.gate.values import read_texts, reading
from artsim.io.inputs.array_files import NpzArchive, Stored, Table, sha256_of, spooling, stored_npy
from artsim.io.inputs.csv_rows import Names, read_csv
from artsim.sim.articulation.model import Labels
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ArtsimError, MissingInputError, ModelError, UsageError, listed, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.catalogue import INPUTS, QUANTITIES

if TYPE_CHECKING:
    import h5py

SUFFIXES = {".npy": "npy", ".npz": "npz", ".h5": "h5", ".hdf5": "h5", ".csv": "csv"}
_STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")  # --input <(zcat poses.csv.gz)
_IN_H5 = re.compile(r"(.+\.(?:h5|hdf5)):(.*)", re.IGNORECASE | re.DOTALL)
_WORDS = {"O": "Python objects", "c": "complex numbers", "U": "texts", "S": "texts", "b": "booleans"}
_MAX_LABELS = 1 << 20


class Source(Protocol):
    """Rows of inputs, from a file or drawn."""

    @property
    def rows(self) -> int:
        """The number of rows, known at once."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs it holds, always including qpos, in the order of quantities.INPUTS."""

    @property
    def identity(self) -> dict[str, Any]:
        """The facts that determine the numbers, as plain data. The bytes of a file are hashed on first use."""

    threads: bool
    """True if several threads may read at the same time."""

    def read(self, start: int, stop: int, out: Mapping[str, Array]) -> None:
        """Read rows start … stop into out[name][: stop - start] (float64, C order) of every input in `out` it holds."""

    def close(self) -> None: ...


def open_input(
    text: str, labels: Labels, needed: Sequence[str], links: Sequence[str], wished: Sequence[str] = ()
) -> Source:
    """Open the source that `--input` names: a file, `FILE.h5:/path` of a dataset or group, or `-` (standard input).

    Args:
        needed: inputs that must be present. Others in the file are ignored, except wrench and those `wished`.
        links: the links to which the rows of a wrench belong.

    Raises MissingInputError (66: no such file), UsageError (2: unknown kind of file, missing input or dataset),
    ModelError (65: not a table of numbers for this robot, with name, shape or line), StorageError (74: no room to
    unpack it), BusyError (75).
    """
    robot = _Robot.of(labels, links)
    with ExitStack() as stack:
        name, inside, handle = opened_input(text, stack)
        kind = kind_of_input(name, handle)
        contents = _READERS[kind](_Opened(handle, name, inside, robot, stack))
        return _Configurations(kind, name, handle, contents, robot, needed, stack.pop_all(), wished)


# ---- the inputs of a robot


class _Robot(NamedTuple):
    """Names of the entries of inputs, by dimension."""

    names: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, labels: Labels, links: Sequence[str]) -> _Robot:
        return cls({"coord": labels.coords, "dof": labels.dofs, "link": tuple(links), "wrench": FIXED_LABELS["wrench"]})

    def row(self, name: str) -> tuple[int, ...]:
        """Shape of one row of an input."""
        return tuple(len(self.names[dim]) for dim in INPUTS[name])

    def columns(self) -> Names:
        """Names of CSV columns; a missing wrench is zero."""
        entries: dict[str, Sequence[str]] = {name: self.names[dims[0]] for name, dims in INPUTS.items()}
        entries["wrench"] = [f"{link}.{axis}" for link in self.names["link"] for axis in self.names["wrench"]]
        return Names(entries, optional=("wrench",), ignored={*QUANTITIES, "status", *schema.IK_VARIABLES})


class _Opened(NamedTuple):
    """An opened file, for its reader."""

    handle: int
    name: str
    inside: str
    robot: _Robot
    stack: ExitStack


@dataclass(frozen=True)
class _Contents:
    """The result of a reader: inputs by name, the names of everything else, and labels of dimensions if present."""

    arrays: Mapping[str, Stored]
    others: Sequence[str] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


# ---- opening


def is_stream(text: str) -> bool:
    """True if `--input` names a stream, which only this process can read, and only once."""
    return text == "-" or text.startswith(_STREAMS)


def opened_input(text: str, stack: ExitStack) -> tuple[str, str, int]:
    """Open the file; returns its name for messages, the path inside it, and the handle."""
    if is_stream(text):
        return _spooled_stream(text, stack)
    name, inside = text, ""
    if (match := _IN_H5.fullmatch(text)) and not Path(text).exists():
        name, inside = match.group(1), match.group(2)
    if Path(name).suffix.lower() not in SUFFIXES:
        raise UsageError(f"{name}: cannot tell what it is; configurations are in {', '.join(SUFFIXES)} or -")
    try:
        about = Path(name).stat()
        if not stat.S_ISREG(about.st_mode):
            kind = "a folder" if stat.S_ISDIR(about.st_mode) else "a device or pipe"
            raise MissingInputError(f"{name}: is {kind}, not a file")
        if about.st_size == 0:  # the system's own files (/proc) tell no size, and may never end
            raise ModelError(f"{name}: is empty")
        handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except ArtsimError:
        raise
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        why = "no such file" if isinstance(error, FileNotFoundError) else f"cannot read: {why}"
        raise MissingInputError(f"{name}: {why}") from None
    stack.callback(os.close, handle)
    return name, inside, handle


def _spooled_stream(text: str, stack: ExitStack) -> tuple[str, str, int]:
    """Copy a stream to a temporary file, since the number of rows must be known before the first is read."""
    name = "<stdin>" if text == "-" else text
    try:
        stream = sys.stdin.buffer if text == "-" else io.FileIO(text)
    except (OSError, AttributeError):  # there is no standard input
        raise MissingInputError(f"{name}: cannot be read") from None
    with spooling(name) as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    if text != "-":
        stream.close()
    stack.enter_context(file)
    return name, "", file.fileno()


def kind_of_input(name: str, handle: int) -> str:
    """The kind of a file by its suffix, that of a stream by its first bytes."""
    kind = None if name == "<stdin>" or name.startswith(_STREAMS) else SUFFIXES.get(Path(name).suffix.lower())
    if kind is not None:
        return kind
    head = os.pread(handle, 8, 0)
    if head.startswith(b"\x89HDF"):
        raise UsageError(f"{name}: HDF5 is no stream; name the file")
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    return "npz" if head.startswith((b"PK\x03\x04", b"PK\x05\x06")) else "csv"


# ---- readers


def _read_npy(given: _Opened) -> _Contents:
    return _Contents({"qpos": stored_npy(given.handle, given.name)})


def _read_npz(given: _Opened) -> _Contents:
    """Read arrays by name; a single array is qpos."""
    archive = NpzArchive(given.handle, given.name)
    given.stack.callback(archive.close)
    keys = {name: name for name in INPUTS if name in archive.names}
    if not keys and len(archive.names) == 1:
        keys = {"qpos": archive.names[0]}
    arrays = {name: archive.stored(key) for name, key in keys.items()}
    found = {dim: archive.texts(dim) for dim in ("coord", "dof", "link")}
    return _Contents(
        arrays,
        others=[name for name in archive.names if name not in keys.values()],
        labels={dim: texts for dim, texts in found.items() if texts is not None},
    )


def _read_csv(given: _Opened) -> _Contents:
    with os.fdopen(os.dup(given.handle), "rb") as stream:
        stream.seek(0)
        parsed = read_csv(stream, given.name, given.robot.columns())
    arrays = {
        name: array._replace(shape=(array.shape[0], *given.robot.row(name))) for name, array in parsed.arrays.items()
    }
    return _Contents(arrays, facts={"columns": parsed.columns.names})


def _read_h5(given: _Opened) -> _Contents:
    """Read an artsim run or batch, datasets at the root, or the object that the path names."""
    import h5py

    path = Path(given.name)
    file = given.stack.enter_context(open_checked(path))
    with reading(path):
        item = object_at(file, given.name, given.inside)
        if isinstance(item, h5py.Dataset):
            group, datasets = item.parent, {"qpos": item}
        else:
            group = item
            of_samples = "final_qpos" in group and group.name == "/rollout"  # of which the final states are taken
            keys = {name: f"final_{name}" if of_samples else name for name in INPUTS}
            datasets = {name: item[key] for name, key in keys.items() if _is_input(item.get(key))}
        valid = valid_rows(group)
        return _Contents(
            {name: stored_dataset(path, dataset, valid) for name, dataset in datasets.items()},
            others=[name for name in group if name not in datasets],
            labels=labels_in(path, group),
            facts={"dataset": item.name},
        )


def _is_input(item: Any) -> bool:
    """True for a dataset that is not the labels of a dimension; a run has a dimension called wrench."""
    import h5py

    return isinstance(item, h5py.Dataset) and not (item.is_scale and item.dtype.kind in "OS")


def object_at(file: h5py.File, name: str, inside: str) -> h5py.Dataset | h5py.Group:
    """The object at a path; without a path the rows of a run, batch or ik, the samples of a rollout, else the root.

    Raises UsageError."""
    import h5py

    if not inside:
        return next((file[group] for group in ("trajectory", "batch", "rollout", "ik") if group in file), file["/"])
    item = file["/"]
    for part in (part for part in inside.split("/") if part):
        if not isinstance(item, h5py.Group):
            raise UsageError(f"{name}: has no {inside!r}: {item.name} is a dataset")
        if part not in item:
            raise UsageError(f"{name}: has no {inside!r}: {item.name} has no {part!r}{nearest(part, item)}")
        item = item[part]
    return item


def valid_rows(group: h5py.Group) -> int | None:
    """The number of rows of a run that were written in full; None: all."""
    import h5py

    count = group.get("n_valid")
    if isinstance(count, h5py.Dataset) and count.shape == () and count.dtype.kind in "iu":
        return int(count[()])
    return None


def stored_dataset(path: Path, dataset: h5py.Dataset, valid: int | None) -> Stored:
    """A dataset, limited to its valid rows. Object types of h5py are texts: the gate accepts no others."""
    shape: tuple[int, ...] = dataset.shape or ()
    if valid is not None and len(shape) > 1:
        if shape[0] < valid:
            dataset.refresh()  # a writer may have grown it since the file was opened
            shape = dataset.shape
        if not 0 <= valid <= shape[0]:
            raise ModelError(f"{path}: {dataset.name} has {shape[0]} rows, n_valid is {valid}")
        shape = (valid, *shape[1:])
    dtype = np.dtype(np.str_) if dataset.dtype.kind == "O" else dataset.dtype
    return Stored(shape, dtype, lambda _: _Hdf5Rows(path, dataset))


class _Hdf5Rows:
    """The rows of a dataset, or a whole dataset as a single row."""

    def __init__(self, path: Path, dataset: h5py.Dataset) -> None:
        self._path, self._dataset = path, dataset

    def read(self, start: int, stop: int, into: Array) -> None:
        if into.size == 0:
            return
        with reading(self._path):
            if self._dataset.ndim < into.ndim:
                into[0] = self._dataset[()]
            else:
                self._dataset.read_direct(into, np.s_[start:stop])


def labels_in(
    path: Path, group: h5py.Group, dims: Sequence[str] = ("coord", "dof", "link")
) -> dict[str, tuple[str, ...]]:
    """The labels that a group has for these dimensions."""
    import h5py

    found = {}
    for dim in dims:
        dataset = group.get(dim)
        if isinstance(dataset, h5py.Dataset) and dataset.ndim == 1 and dataset.dtype.kind in "SO":
            if dataset.size > _MAX_LABELS:
                raise ModelError(f"{path}: {dataset.name} has {dataset.size} names")
            found[dim] = read_texts(path, dataset)
    return found


_READERS = {"npy": _read_npy, "npz": _read_npz, "csv": _read_csv, "h5": _read_h5}


# ---- from the result of a reader to a Source


class _Input(NamedTuple):
    """The rows of one input: their shape, and the order of entries in the file if it differs."""

    table: Table
    row: tuple[int, ...]
    order: Array | None

    def read(self, start: int, stop: int, into: Array) -> None:
        if self.order is None:
            self.table.read(start, stop, into)
        else:
            rows = np.empty_like(into)
            self.table.read(start, stop, rows)
            np.take(rows, self.order, axis=1, out=into)


class _Configurations:
    """The Source of a file."""

    threads = False  # HDF5 is not thread-safe

    def __init__(
        self,
        kind: str,
        name: str,
        handle: int,
        contents: _Contents,
        robot: _Robot,
        needed: Sequence[str],
        stack: ExitStack,
        wished: Sequence[str] = (),
    ) -> None:
        """`stack` closes the files that the reader opened."""
        self._handle, self._stack = handle, stack
        try:
            self.inputs = _wanted(name, contents, needed, wished)
            shapes = {key: _shape(name, key, contents.arrays[key], robot) for key in self.inputs}
            self.rows = _same_rows(name, shapes)
            orders = {key: _order(name, key, contents, robot) for key in self.inputs}
            self._tables = {
                key: _Input(contents.arrays[key].open(shapes[key]), shapes[key][1:], orders[key]) for key in self.inputs
            }
        except BaseException:
            stack.close()
            raise
        self._facts = {
            "kind": kind,
            **contents.facts,
            "rows": self.rows,
            "inputs": list(self.inputs),
            "order": {key: order.tolist() for key, order in orders.items() if order is not None},
        }
        self._sha256: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        if self._sha256 is None:
            self._sha256 = sha256_of(self._handle)
        return {**self._facts, "sha256": self._sha256}

    def read(self, start: int, stop: int, out: Mapping[str, Array]) -> None:
        for name, table in self._tables.items():
            if name in out:
                table.read(start, stop, out[name][: stop - start])

    def close(self) -> None:
        self._tables = {}
        self._stack.close()


def _wanted(name: str, contents: _Contents, needed: Sequence[str], wished: Sequence[str]) -> tuple[str, ...]:
    """The inputs to read. Raises UsageError if a needed one is missing."""
    for key in ("qpos", *needed):
        if key not in contents.arrays:
            held = [*contents.arrays, *contents.others]
            raise UsageError(f"{name}: has no {key}, which is needed; it holds {listed(held, 8)}")
    return tuple(key for key in INPUTS if key in contents.arrays and key in {"qpos", "wrench", *needed, *wished})


def _shape(name: str, key: str, array: Stored, robot: _Robot) -> tuple[int, ...]:
    """Shape (rows, …) of an input; a single row need not be a table. Raises ModelError for a wrong type or shape."""
    if array.dtype.kind not in "fiu":
        what = _WORDS.get(array.dtype.kind, str(array.dtype))
        raise ModelError(f"{name}: {key} holds {what}, want real numbers")
    row = robot.row(key)
    if array.shape == row:
        return (1, *row)
    if len(array.shape) != 1 + len(row) or array.shape[1:] != row:
        want = ", ".join(["N", *map(str, row)])
        dims = " and ".join(
            {"coord": "coordinates", "dof": "degrees of freedom"}.get(d, f"{d} entries") for d in INPUTS[key]
        )
        raise ModelError(f"{name}: {key} has shape {array.shape}, want ({want}): rows of {dims}")
    return array.shape


def _same_rows(name: str, shapes: Mapping[str, tuple[int, ...]]) -> int:
    rows = shapes["qpos"][0]
    for key, shape in shapes.items():
        if shape[0] != rows:
            raise ModelError(f"{name}: {key} has {shape[0]} rows, qpos {rows}")
    return rows


def _order(name: str, key: str, contents: _Contents, robot: _Robot) -> Array | None:
    """Places of the robot's entries in the file; None: same order. Raises ModelError if the file has other entries."""
    dim = INPUTS[key][0]
    want, found = robot.names[dim], contents.labels.get(dim)
    if found is None or found == want:
        return None
    for entry in want:
        if entry not in found:
            raise ModelError(f"{name}: {key} is of another robot: it has no {dim} {entry!r}{nearest(entry, found)}")
    if len(found) != len(want):
        raise ModelError(
            f"{name}: {key} is of another robot: it has {len(found)} names of {dim} entries, want {len(want)}"
        )
    place = {entry: k for k, entry in enumerate(found)}
    return np.array([place[entry] for entry in want], np.intp)
