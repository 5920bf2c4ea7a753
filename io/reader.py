"""The gate: every .h5 file that a command reads passes through here, and is refused unless it is clearly harmless.

An HDF5 file may point to other files (external links, external raw storage, virtual datasets: h5py would disclose
/etc/passwd to the sender of such a file), declare 10^12 numbers in a kilobyte, link in circles, or load code (filter
plugins). `open_checked` walks the whole tree without following or reading anything and accepts only hard links, numbers
and texts, known filters, and sizes that the file can really hold. `open_recording` reads a run file.
"""

from __future__ import annotations

import json
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from artsim.io import schema, seal, superblock
from artsim.io.labelled_rows import LabelledRows
from artsim.io.probe import probe
from artsim.io.schema import Labels
from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.errors import (
    ArtsimError,
    BusyError,
    MissingInputError,
    ModelError,
    UsageError,
    listed,
    nearest,
)
from artsim.sim.foundation.files import read_start
from artsim.sim.runs.changes import Change
from artsim.sim.runs.controls import VALUES, Controls

if TYPE_CHECKING:
    import h5py

    from artsim.sim.geometry.solids import Kept

Array = npt.NDArray[Any]

MAX_OBJECTS = 20_000
MAX_DEPTH = 16
MAX_CHUNK_BYTES = 1 << 28
MAX_TEXT_BYTES = 1 << 20  # of a fixed-length text
_SMALL = 1 << 20  # bytes that may be declared without being stored (fill values)
_RATIOS = {1: 1032, 32015: 1 << 15}  # largest compression ratios of zlib and zstd
_WHOLE = 1 << 26  # bytes to which a dataset that is read whole may unpack regardless of its stored size
_ROWS = 1 << 30  # likewise for rows that are read at once
_MOST_PACKED = 64  # times its stored bytes that a run of more than _ROWS may unpack to
_FEW = 1 << 20  # bytes of a chunk that HDF5 caches for its next row
_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32"}
_BLOCK_BYTES = 1 << 22


class Difference(NamedTuple):
    """The first place where two recordings differ: dataset path, step (None without time), name of the entry."""

    dataset: str
    step: int | None
    name: str


# ---- the gate


def open_checked(path: str | os.PathLike[str]) -> h5py.File:
    """Open an HDF5 file for reading if it is harmless, even if it is being written or its writer was killed.

    Raises MissingInputError (66: missing or not readable), ModelError (65: not HDF5, damaged, or refused, with the path
    of the offending object), BusyError (75: another process has just created it).
    """
    probe(Path(path), lambda: open_gated(Path(path))[0].close())
    return open_gated(Path(path))[0]


def open_gated(path: Path, *, shards: Literal["check", "leave", "refuse"] = "check") -> tuple[h5py.File, bool]:
    """Open a file through the gate; returns it, and whether a living process is writing it.

    `shards`: how to treat those of an index; callers that leave them unchecked must not read /batch.
    """
    _check_is_hdf5(path)
    with reading(path):
        if seal.is_whole(path) is False:
            raise ModelError(f"{path}: damaged: its bytes are not those that were written (checksum)")
        file, written = _open(path)
        try:
            virtual = _Walk(path, file).run()
            if virtual and shards != "leave":
                _check_index(path, file, virtual, refuse=shards == "refuse")
        except BaseException:
            file.close()
            raise
    return file, written


def _check_index(path: Path, file: h5py.File, virtual: Mapping[str, Any], *, refuse: bool) -> None:
    """Refuse data in other files, except in the index of a batch, from the shards that its table lists."""
    if refuse or "shards" not in file or "batch" not in file:
        raise ModelError(f"{path}: refused: {next(iter(virtual))} is a virtual dataset: its data are in other files")
    from artsim.io.shard_index import check_shards

    check_shards(path, file, virtual)


def _check_is_hdf5(path: Path) -> None:
    """Refuse anything but a regular HDF5 file, and say what it looks like."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "directory" if stat.S_ISDIR(mode) else "device or pipe"
            raise ModelError(f"{path}: is a {kind}, not an HDF5 file")
        head = read_start(path, 512)
    except ArtsimError:
        raise
    except FileNotFoundError:
        raise MissingInputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise MissingInputError(f"{path}: cannot read: {_first_line(error)}") from None
    if not head.startswith(superblock.SIGNATURE):
        raise ModelError(f"{path}: is not an HDF5 file; it looks like {_looks_like(head)}")


def _looks_like(head: bytes) -> str:
    if not head:
        return "an empty file"
    if head.startswith(b"MATLAB"):
        return "a MATLAB file"
    if head.startswith(b"PK\x03\x04"):
        return "a zip or .npz archive"
    if head.startswith(b"\x93NUMPY"):
        return "a .npy array"
    if head.startswith(b"CDF"):
        return "a netCDF 3 file"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return "XML, perhaps a robot's file"
    text = all(byte >= 32 or byte in b"\t\r\n" for byte in head)
    return "a text file" if text else "some other binary file"


def _open(path: Path) -> tuple[h5py.File, bool]:
    """Open a file; returns it, and whether a living process writes it. A dead writer's file is read as if closed."""
    import h5py

    with path.open("rb") as stream:
        marked = superblock.being_written(stream.read(superblock.SIZE))
    try:
        if not marked:
            return h5py.File(path, "r"), False
        if _locked(path):
            return h5py.File(path, "r", swmr=True), True
        return h5py.File(superblock.Unmarked(path), "r"), False
    except BlockingIOError:
        raise BusyError(f"{path}: is being created by another process; try again") from None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn every exception of HDF5 or h5py on a damaged file into a ModelError."""
    try:
        yield
    except ArtsimError:
        raise
    except MemoryError:
        raise ModelError(f"{path}: damaged: asks for more memory than there is") from None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
        raise ModelError(f"{path}: damaged: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and error.strerror and "\n" not in error.strerror:
        return os.strerror(error.errno)
    return (str(error) or type(error).__name__).split("\n", 1)[0]


class _Walk:
    """Visits every object of a file once, without following anything or reading data."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        self._path, self._root = path, file.id
        self._file_bytes = path.stat().st_size
        self._seen: set[int] = set()
        self._virtual: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """Check all objects; returns the virtual datasets by path, whose sources are still to be checked."""
        from h5py import h5g, h5o

        groups: list[tuple[Any, str, int]] = [(h5g.open(self._root, b"/"), "", 0)]
        self._visit(groups[0][0], "/")
        while groups:
            group, name, depth = groups.pop()
            if depth >= MAX_DEPTH or len(self._seen) + group.get_num_objs() > MAX_OBJECTS:
                raise self._refused(name, "has too many groups or datasets")
            for key in group:
                child = f"{name}/{key.decode('utf-8', 'backslashreplace')}"
                self._check_link(group, key, child)
                item = h5o.open(group, key)
                first = self._visit(item, child)
                if isinstance(item, h5g.GroupID):
                    if not first:
                        raise self._refused(child, "is linked in a circle or twice")
                    groups.append((item, child, depth + 1))
                elif first:
                    self._check_dataset(item, child)
        return self._virtual

    def _refused(self, name: str, why: str) -> ModelError:
        return ModelError(f"{self._path}: refused: {name or '/'!s} {why}")

    def _visit(self, item: Any, name: str) -> bool:
        """Note the object; False if it was visited before under another name."""
        from h5py import h5o

        address = h5o.get_info(item).addr
        if address in self._seen:
            return False
        self._seen.add(address)
        return True

    def _check_link(self, group: Any, key: bytes, name: str) -> None:
        from h5py import h5l

        kind = group.links.get_info(key).type
        if kind != h5l.TYPE_HARD:
            what = {h5l.TYPE_SOFT: "a soft link", h5l.TYPE_EXTERNAL: "a link to another file"}
            raise self._refused(name, f"is {what.get(kind, 'a link of an unknown kind')}")

    def _check_dataset(self, item: Any, name: str) -> None:
        from h5py import h5d

        if not isinstance(item, h5d.DatasetID):
            raise self._refused(name, "is a named datatype")
        plist = item.get_create_plist()
        if plist.get_layout() != h5d.VIRTUAL and plist.get_external_count():
            raise self._refused(name, "has its data in another file")
        self._check_filters(plist, name)
        width = self._check_type(item.get_type(), name)
        if plist.get_layout() == h5d.VIRTUAL:
            self._virtual[name] = item
            return
        self._check_size(item, plist, width, name)

    def _check_filters(self, plist: Any, name: str) -> None:
        from artsim.io.hdf5 import ZSTD, has_zstd

        for index in range(plist.get_nfilters()):
            code, _, _, label = plist.get_filter(index)
            if code == ZSTD and not has_zstd():
                raise self._refused(name, "is compressed by zstd, which needs hdf5plugin: pip install 'artsim[zstd]'")
            if code not in (*_FILTERS, ZSTD):
                words = label.decode("utf-8", "replace") or "no name"
                raise self._refused(name, f"needs the filter {code} ({words}), which artsim does not use (hdf5plugin)")

    def _check_type(self, kind: Any, name: str) -> int:
        """The bytes of one entry; only numbers, enumerations (booleans) and texts are accepted."""
        from h5py import h5t

        family, size = kind.get_class(), int(kind.get_size())
        if family in (h5t.INTEGER, h5t.FLOAT, h5t.ENUM) and size <= 16:
            return size
        if family == h5t.STRING and size <= MAX_TEXT_BYTES:
            return size
        raise self._refused(name, "holds neither numbers nor texts")

    def _check_size(self, item: Any, plist: Any, width: int, name: str) -> None:
        """Refuse a declared size that the file cannot store, such as 10^12 doubles in a kilobyte."""
        from h5py import h5d

        count, ratio = 1, 1
        if _is_bare_dimension(item):
            return  # never stored, regardless of its length
        for n in item.get_space().shape or ():
            count *= int(n)
        stored = min(int(item.get_storage_size()), self._file_bytes)
        if plist.get_layout() == h5d.CHUNKED:
            chunk = width
            for n in plist.get_chunk():
                chunk *= int(n)
            if chunk > MAX_CHUNK_BYTES:
                raise self._refused(name, f"has chunks of {chunk} bytes; at most {MAX_CHUNK_BYTES} are read")
            packers = [_RATIOS.get(plist.get_filter(k)[0], 1) for k in range(plist.get_nfilters())]
            if len([packer for packer in packers if packer > 1]) > 1:
                raise self._refused(name, "is compressed twice")
            ratio = max([1, *packers])
        if count * width > _SMALL + stored * ratio:
            raise self._refused(name, f"declares {count} entries, but {stored} bytes are stored")


def _is_bare_dimension(item: Any) -> bool:
    """True if a dataset is a dimension without labels, as in netCDF-4 files and /batch: a scale that was never written.

    It is always of type float32, which nothing here reads as labels, `status` or counts, whatever length it declares.
    """
    from h5py import h5a, h5t

    from artsim.io.hdf5 import BARE_DIMENSION

    kind = item.get_type()
    if kind.get_class() != h5t.FLOAT or kind.get_size() != 4:
        return False
    if len(item.get_space().shape or ()) != 1 or item.get_storage_size() or not h5a.exists(item, b"NAME"):
        return False
    name = h5a.open(item, b"NAME")
    kind = name.get_type()
    if name.shape != () or kind.get_class() != h5t.STRING or kind.is_variable_str() or kind.get_size() > 256:
        return False
    text = np.zeros((), f"S{kind.get_size()}")
    name.read(text)
    return bytes(text[()]).startswith(BARE_DIMENSION)


def read_whole(path: Path, dataset: Any) -> Array:
    """Read a dataset that is not a table of rows. Raises ModelError if it unpacks to far more than is stored."""
    _refuse_unpacking(path, dataset, int(dataset.nbytes), _WHOLE)
    values: Array = dataset[()]
    return values


def _refuse_unpacking(path: Path, dataset: Any, size: int, most: int) -> None:
    """Raise ModelError if reading unpacks more than `most` bytes and far more than is stored."""
    if size > allowed(most) and size > 4 * (stored := int(dataset.id.get_storage_size())):
        raise ModelError(f"{path}: refused: {dataset.name} unpacks from {stored} bytes to {size}; {MORE}")


def _row_bytes(dataset: Any) -> int:
    return int(dataset.dtype.itemsize * np.prod(dataset.shape[1:], dtype=np.int64))


def read_count(path: Path, dataset: Any) -> int:
    """Read a single non-negative integer. Raises ModelError for anything else."""
    if dataset.shape != () or dataset.dtype.kind not in "iu" or (value := int(dataset[()])) < 0:
        raise ModelError(f"{path}: {dataset.name} is {dataset.dtype} {dataset.shape}, want one whole number from 0")
    return value


def read_texts(path: Path, dataset: h5py.Dataset) -> tuple[str, ...]:
    """Read a text dataset, a few entries at a time, since a crafted file may point 10^6 entries to one long text."""
    with reading(path):
        if dataset.dtype.kind not in "SO":
            raise ModelError(f"{path}: {dataset.name} holds {dataset.dtype}, want texts")
        left = 4 * path.stat().st_size
        texts: list[str] = []
        for start in range(0, dataset.size, 16):
            block = [dataset[()]] if dataset.shape == () else dataset[start : start + 16]
            texts += [entry.decode() if isinstance(entry, bytes) else str(entry) for entry in block]
            left -= sum(len(text) for text in texts[start:])
            if left < 0:
                raise ModelError(f"{path}: refused: {dataset.name} unpacks to more text than the file holds")
        return tuple(texts)


def read_labels(path: Path, group: h5py.Group) -> Labels:
    """Read the labels of a group."""
    texts = {name: read_texts(path, group[name]) for name in _NAMES if name in group}
    return Labels(**texts)  # type: ignore[arg-type]  # the fields that are no texts are not among these


_NAMES = tuple(name for name in Labels._fields if not name.startswith(("jacobian", "control")))


# ---- a run file


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """Open a run file: complete, being written, or left by a killed writer.

    Raises what `open_checked` raises; also ModelError, with the kind of file, for HDF5 that is not an artsim run.
    """
    return opened(Path(path), Recording)


O = TypeVar("O", bound="Output")


def opened(path: Path, kind: Callable[[Path, h5py.File, bool], O]) -> O:
    """Open an output after a child process has opened and read it. `kind` takes path, file, whether it is written."""

    def open_it() -> O:
        file, written = open_gated(path)
        try:
            with reading(path):
                return kind(path, file, written)
        except BaseException:
            file.close()
            raise

    def look() -> None:
        with open_it() as output, suppress(ArtsimError):  # raised again when the process itself opens it
            _ = output.summary(), output.model_text, output.config

    probe(path, look)
    return open_it()


class Output(ABC):
    """An open output of artsim that has passed the gate. Close it, or use it as a context manager."""

    path: Path
    provenance: dict[str, Any]
    _file: h5py.File

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What `artsim info FILE` tells, as plain data for JSON too."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration of the run. Raises ModelError if it is not a JSON object."""
        try:
            config = json.loads(self.provenance.get("config", "{}"))
        except (ValueError, TypeError, RecursionError) as error:
            raise ModelError(f"{self.path}: /provenance config is no JSON: {_first_line(error)}") from None
        if not isinstance(config, dict):
            raise ModelError(f"{self.path}: /provenance config is no JSON object")
        return config

    @property
    def model(self) -> dict[str, Any]:
        """Name, format, path and sha256 of the robot's file."""
        with reading(self.path):
            return {name: value for name, value in attributes_of(self._file["model"]).items() if name != "warnings"}

    @property
    def warnings(self) -> list[str]:
        """The warnings about the robot's file when it was read, as printed by `artsim check`."""
        with reading(self.path):
            text = attributes_of(self._file["model"]).get("warnings", "[]")
        try:
            told = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise ModelError(f"{self.path}: /model warnings are no JSON: {_first_line(error)}") from None
        if not isinstance(told, list) or not all(isinstance(line, str) for line in told):
            raise ModelError(f"{self.path}: /model warnings are no list of texts")
        return told

    @property
    def model_text(self) -> str:
        """The text of the robot's file as used, expanded. It is untrusted input: parse it with the same limits."""
        with reading(self.path):
            return read_texts(self.path, self._file["model/source"])[0]

    @property
    def kept(self) -> Kept:
        """The shapes as which meshes and height fields collided (sim/geometry/solids.py: with_pieces).

        Raises ModelError if they are damaged.
        """
        from artsim.io.pieces import read_pieces

        with reading(self.path):
            return read_pieces(self._file["model"], self.path)


class Recording(Output, LabelledRows):
    """A run, addressed by name: `recording["qpos"]` is (n_valid, nq). Close it, or use it as a context manager.

    Only the `n_valid` rows that were written in full are ever returned.
    """

    def __init__(self, path: Path, file: h5py.File, written: bool) -> None:
        """Use open_recording: `file` must have passed the gate; `written`: a living process is writing it."""
        self.path = path
        self._written = written
        self._file = file
        check_schema(path, file, "run", ("trajectory", "controls", "final", "model", "provenance"))
        group = file["trajectory"]
        self.attrs: dict[str, Any] = attributes_of(file)
        self.provenance: dict[str, Any] = attributes_of(file["provenance"])
        self.status = read_count(path, group["status"])
        self.n_valid = read_count(path, group["n_valid"])
        facts = attributes_of(group)
        self.dt, self.every = float(facts["dt"]), int(facts["every"])
        if not (0 < self.dt < np.inf and self.every >= 1):
            raise ModelError(f"{path}: dt is {self.dt:g} and every {self.every}, want numbers above 0")
        self.steps_total: int | None = facts.get("steps_total")
        self.labels = read_labels(path, group)
        if "actuator" in file["controls"]:
            self.labels = self.labels.with_controls(read_texts(path, file["controls/actuator"]))
        self.tables = tuple(name for name in schema.RAGGED if name in file)
        self.has_contacts = "contact" in file
        if self.has_contacts:
            self.labels = self.labels._replace(geom=read_texts(path, file["contact/geom"]))
        if ("constraint" in file) != ("delassus" in file):
            raise ModelError(f"{path}: has only one of the groups /constraint and /delassus")
        if "constraint" in file:
            self.labels = self.labels._replace(constraint=read_texts(path, file["constraint/constraint"]))
        if "jacobian" in group:
            link = self._indices(group["jacobian_link"], len(self.labels.link))
            dof = self._indices(group["jacobian_dof"], len(self.labels.dof))
            self.labels = self.labels._replace(jacobian_link=link, jacobian_dof=dof)
        self.variables = tuple(name for name in schema.RECORDED if name in group)
        self._ends: dict[str, Array] = {}  # by table
        self._check_shapes()

    # the rows

    def _extent(self) -> str:
        return f"{self.n_valid} rows"

    def __getitem__(self, name: str) -> Array:
        """Every valid row of a recorded variable, or `time` (n_valid,) [s]."""
        return self.read(name)

    def __contains__(self, name: object) -> bool:
        return name == "time" or name in self.variables

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Read the valid rows in start … stop of a variable. Raises UsageError for a variable that was not recorded."""
        return self.dense(name, self.read_stored(name, start, stop))

    def read_stored(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Read rows as stored: for Jacobians only the columns that labels.jacobian_link and jacobian_dof name."""
        if name not in self:
            raise UsageError(f"{self.path}: has no {name!r}{nearest(name, self.variables)}")
        stop = self.n_valid if stop is None else min(stop, self.n_valid)
        with reading(self.path):
            dataset = self._file["trajectory"][name]
            _refuse_unpacking(self.path, dataset, (stop - start) * _row_bytes(dataset), _ROWS)
            values: Array = dataset[start : max(start, stop)]
        return values

    def check_size(self) -> None:
        """Raise ModelError if the rows of all variables unpack far more than is stored: who reads them all writes as
        much, and a small file can hold rows without end."""
        with reading(self.path):
            rows = [self._file["trajectory"][name] for name in ("time", *self.variables)]
            tables = [self._file[group][name] for group in self.tables for name in schema.RAGGED[group].table]
            size = sum(self.n_valid * _row_bytes(dataset) for dataset in rows) + sum(int(t.nbytes) for t in tables)
            stored = sum(int(dataset.id.get_storage_size()) for dataset in (*rows, *tables))
        if size > allowed(_ROWS) and size > _MOST_PACKED * stored:
            raise ModelError(
                f"{self.path}: refused: its rows unpack from {stored / 1e6:.3g} MB to {size / 1e9:.3g} GB; {MORE}"
            )

    def check_packing(self, name: str, rows: int | None = None) -> None:
        """Raise ModelError if reading a variable, or `rows` single rows of it, unpacks far more than is stored."""
        with reading(self.path):
            dataset = self._file["trajectory"][name]
            size = self.n_valid * _row_bytes(dataset)
            if rows is not None and dataset.chunks:
                chunk = dataset.chunks[0] * _row_bytes(dataset)
                size = rows * chunk if chunk > _FEW else min(size, rows * chunk)
            _refuse_unpacking(self.path, dataset, size, _ROWS)

    @property
    def contacts(self) -> dict[str, Array]:
        """The content of /contact: contact_count (n_valid,), and for all contacts in order the fields of
        schema.CONTACT_TABLE (`step`, `link_a`, `point`, …). labels.touching_link and labels.geom name the indices.
        """
        return self.read_contacts()

    def read_contacts(self, start: int = 0, stop: int | None = None) -> dict[str, Array]:
        """Read the contacts of the valid rows in start … stop; empty if none were recorded.

        Raises ModelError for invalid counts or indices.
        """
        found = self.read_table("contact", start, stop) if self.has_contacts else {}
        for name, labels in (("link", self.labels.touching_link), ("geom", self.labels.geom)) if found else ():
            for side in ("a", "b"):
                self._check_indices(f"contact/{name}_{side}", found[f"{name}_{side}"], len(labels))
        return found

    def has_tables(self, name: str) -> bool:
        """True if the groups of schema.RAGGED_BY_NAME[name] are in the file."""
        return set(schema.RAGGED_BY_NAME[name]) <= set(self.tables)

    def read_table(self, group: str, start: int = 0, stop: int | None = None) -> dict[str, Array]:
        """Read the count of a group of schema.RAGGED for the valid rows in start … stop, and its table of these rows.

        Raises UsageError for a group that was not recorded, ModelError for counts that do not fit.
        """
        if group not in self.tables:
            raise UsageError(f"{self.path}: holds no {group}{nearest(group, self.tables)}")
        stop = self.n_valid if stop is None else min(stop, self.n_valid)
        ragged, ends = schema.RAGGED[group], self._ends_of(group)
        rows = slice(int(ends[start]), int(ends[max(start, stop)]))
        with reading(self.path):
            found = {ragged.counted_by: np.diff(ends[start : max(start, stop) + 1])}
            found |= {name: self._file[group][name][rows] for name in ragged.table}
        return found

    def delassus(self, row: int) -> Delassus:
        """The constraint rows of a recorded row, and their K, dense.

        Raises UsageError where K was not recorded, ModelError for numbers that fit no rows.
        """
        if not 0 <= row < self.n_valid:
            raise UsageError(f"{self.path}: has no row {row}; there are {self.n_valid}, from 0")
        constraints, entries = (self.read_table(group, row, row + 1) for group in ("constraint", "delassus"))
        return delassus_of(self.labels, constraints, entries, str(self.path))

    def _check_indices(self, path: str, values: Array, most: int) -> None:
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) < most:
            raise ModelError(f"{self.path}: /{path} has numbers beyond its {most} labels")

    def _ends_of(self, name: str) -> Array:
        """Where the entries of each row end in a table, beginning with 0 (n_valid + 1,)."""
        if name not in self._ends:
            ragged = schema.RAGGED[name]
            with reading(self.path):
                group = self._file[name]
                for dataset in (group[ragged.counted_by], *(group[entry] for entry in ragged.table)):
                    _refuse_unpacking(self.path, dataset, int(dataset.nbytes), _ROWS)
                counts: Array = group[ragged.counted_by][: self.n_valid]
                ends = np.concatenate([[0], np.cumsum(counts)])
                there = min(len(group[entry]) for entry in ragged.table)
            if len(counts) < self.n_valid or (len(counts) and int(counts.min()) < 0) or not 0 <= ends[-1] <= there:
                what = "contacts" if name == "contact" else "rows"
                what = f"{there} {what} in the file"
                raise ModelError(f"{self.path}: /{name}/{ragged.counted_by} does not fit the {what}")
            self._ends[name] = ends
        return self._ends[name]

    # the rest of the file

    def group(self, name: str) -> h5py.Group | None:
        """A group of the file, or None."""
        import h5py

        found = self._file.get(name)
        return found if isinstance(found, h5py.Group) else None

    @property
    def checkpoint_steps(self) -> int:
        """Number of steps between checkpoints; 0 without checkpoints."""
        with reading(self.path):
            return max(0, int(attributes_of(self._file["trajectory"]).get("checkpoint_steps", 0)))

    @property
    def controls(self) -> Controls:
        """The inputs as they acted, bit for bit."""
        with reading(self.path):
            return controls_from_file(self._file)

    @property
    def changes(self) -> list[Change]:
        """Changes of state and settings between steps, in their order. Raises ModelError for text that is none."""
        group = self._file["controls"]
        if "changes" not in group:
            return []
        with reading(self.path):
            text = read_whole(self.path, group["changes"]).tobytes().decode("utf-8", "replace")
        return [Change.from_json(line) for line in text.splitlines()]

    @property
    def final(self) -> dict[str, Array]:
        """The full state after the last step (schema: final/…); NaN if the run did not end properly."""
        with reading(self.path):
            group = self._file["final"]
            state = {name: self._of_state(group[name], name) for name in schema.STATE if name in group}
        if not {"time", "step"} <= set(state):
            raise ModelError(f"{self.path}: /final has no time or no step")
        read_count(self.path, self._file["final/step"])
        return state

    @property
    def state(self) -> str:
        """complete, stopped, interrupted, running (its writer was alive when the file was opened) or killed."""
        if self.status == schema.RUNNING:
            return "running" if self._written else "killed"
        words = {schema.COMPLETE: "complete", schema.NON_FINITE: "stopped", schema.INTERRUPTED: "interrupted"}
        return words.get(self.status, f"unknown ({self.status})")

    def summary(self) -> dict[str, Any]:
        """What `artsim info FILE` tells, as plain data for JSON too."""
        group = self._file["trajectory"]
        variables = {
            name: {
                "dims": list(schema.TABLE[f"trajectory/{name}"].dims),
                "shape": [self.n_valid, *group[name].shape[1:]],
                **self.meaning(name),
            }
            for name in self.variables
        }
        for group in self.tables:
            variables |= self._table_told(group)
        return {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            **self.attrs,
            "state": self.state,
            "model": self.model,
            "warnings": self.warnings,
            "rows": self.n_valid,
            "steps_total": self.steps_total,
            "dt": self.dt,
            "every": self.every,
            "duration": self.n_valid * self.every * self.dt,
            **self.names_told(),
            "variables": variables,
            "provenance": self.provenance,
        }

    # inside

    def _of_state(self, dataset: Any, name: str) -> Array:
        """Read a field of /final; the schema gives its type and, for labelled dimensions, the labels give its shape."""
        variable = schema.TABLE[f"final/{name}"]
        fixed = {*schema.NUMBERED, *schema.FIXED_LABELS}
        known = [None if dim in fixed else len(schema.labels_of(dim, self.labels)) for dim in variable.dims]
        right = dataset.ndim == len(known) and dataset.dtype == np.dtype(variable.dtype)
        if not right or any(n is not None and n != m for n, m in zip(known, dataset.shape, strict=True)):
            raise ModelError(f"{self.path}: {dataset.name} is {dataset.dtype} {dataset.shape}, which fits no state")
        return read_whole(self.path, dataset)

    def _indices(self, dataset: h5py.Dataset, most: int) -> tuple[int, ...]:
        """Read indices below `most`. Raises ModelError for others."""
        values = read_whole(self.path, dataset)
        if values.ndim != 1 or values.dtype.kind != "i" or np.any((values < 0) | (values >= most)):
            raise ModelError(f"{self.path}: {dataset.name} must hold indices below {most}")
        indices: tuple[int, ...] = tuple(values.tolist())
        return indices

    def _table_told(self, group: str) -> dict[str, Any]:
        """The part of `summary` about a group of schema.RAGGED."""
        ragged = schema.RAGGED[group]
        rows = int(self._ends_of(group)[-1])
        told = {}
        for name in (ragged.counted_by, *ragged.table):
            variable = schema.TABLE[f"{group}/{name}"]
            shape = [rows if dim == "row" else self.n_valid if dim == "time" else 3 for dim in variable.dims]
            meaning = {"units": variable.unit, "long_name": variable.meaning, "comment": variable.comment}
            told[f"{group}/{name}"] = {"dims": list(variable.dims), "shape": shape, **meaning}
        return told

    def _check_shapes(self) -> None:
        """Refuse known variables whose type, shape or number of rows do not fit the labels and n_valid."""
        self._check_table_shapes()
        group = self._file["trajectory"]
        for name in ("time", *self.variables):
            variable = schema.TABLE[f"trajectory/{name}"]
            want = tuple(len(self.names_of(dim)) for dim in variable.dims[1:])
            dataset = group[name]
            if dataset.ndim >= 1 and dataset.shape[0] < self.n_valid:
                dataset.refresh()  # a writer may have grown it since the file was opened
            wrong_rows = dataset.ndim == 0 or not 0 <= self.n_valid <= dataset.shape[0]
            if wrong_rows or dataset.shape[1:] != want or dataset.dtype != np.dtype(variable.dtype):
                shape = (self.n_valid, *want)
                raise ModelError(
                    f"{self.path}: /trajectory/{name} is {dataset.dtype} {dataset.shape}, want {variable.dtype} {shape}"
                )

    def _check_table_shapes(self) -> None:
        """Refuse tables of schema.RAGGED of wrong types or shapes."""
        for group in self.tables:
            for name in (schema.RAGGED[group].counted_by, *schema.RAGGED[group].table):
                variable = schema.TABLE[f"{group}/{name}"]
                want = tuple(len(self.names_of(dim)) for dim in variable.dims[1:])
                dataset = self._file[group][name]
                if self._written:
                    dataset.refresh()  # it may have grown since the file was opened
                if dataset.shape[1:] != want or dataset.ndim == 0 or dataset.dtype != np.dtype(variable.dtype):
                    raise ModelError(
                        f"{self.path}: /{group}/{name} is {dataset.dtype} {dataset.shape}, "
                        f"want {variable.dtype} {('rows', *want)}"
                    )


class Delassus(NamedTuple):
    """The constraint rows of a step and K = J M⁻¹ Jᵀ + cfm, from their impulses to changes of their velocities."""

    names: tuple[str, ...]  # of the n rows: `limit:elbow.lower`, `contact:0.normal`
    impulse: Array  # (n,) over the step [N s or N m s]
    cfm: Array  # (n,) [1/kg or 1/(kg m²)]
    matrix: Array  # (n, n) symmetric [1/kg or 1/(kg m²)]


def delassus_of(
    labels: Labels, constraints: Mapping[str, Array], entries: Mapping[str, Array], where: str = "the run"
) -> Delassus:
    """The content of /constraint and /delassus for one recorded row. Raises ModelError for numbers that fit no rows."""
    count = len(constraints["name"])
    row, column = entries["row_a"], entries["row_b"]
    if len(row) and not (int(column.min()) >= 0 and bool(np.all(column <= row)) and int(row.max()) < count):
        raise ModelError(f"{where}: /delassus/row_a and row_b are not those of a lower triangle of {count} rows")
    name = constraints["name"]
    if count and not 0 <= int(name.min()) <= int(name.max()) < len(labels.constraint):
        raise ModelError(f"{where}: /constraint/name has numbers beyond its {len(labels.constraint)} labels")
    matrix = np.zeros((count, count))
    matrix[row, column] = matrix[column, row] = entries["value"]
    names = tuple(
        labels.constraint[n] if contact < 0 else labels.constraint[n].replace(".", f":{contact}.", 1)
        for n, contact in zip(name.tolist(), constraints["contact"].tolist(), strict=True)
    )
    return Delassus(names, constraints["impulse"], constraints["cfm"], matrix)


def check_schema(path: Path, file: h5py.File, kind: str, groups: Sequence[str]) -> None:
    """Refuse anything but a `kind` of output of this major version of the format, and say what it is."""
    import h5py

    version = attributes_of(file).get("artsim_schema")
    if version is None:
        raise ModelError(f"{path}: is an HDF5 file, but not artsim's{_kind_of(file)}")
    if str(version).split(".")[0] != schema.SCHEMA_VERSION.split(".")[0]:
        raise ModelError(f"{path}: is written in artsim schema {version}; this artsim reads {schema.SCHEMA_VERSION}")
    for name in groups:
        if not isinstance(file.get(name), h5py.Group):
            raise ModelError(f"{path}: is an artsim file, but not of a {kind}: it has no group /{name}")


def _kind_of(file: h5py.File) -> str:
    """The text `; it looks like …` for files that a robotics user may confuse."""
    keys, attributes = set(file), set(file.attrs)
    if {"data", "mask"} <= keys or ("data" in keys and "env_args" in file["data"].attrs):
        return "; it looks like a robomimic dataset"
    if any(key.startswith("episode_") for key in keys) or "minari_version" in attributes:
        return "; it looks like a Minari dataset"
    if {"keras_version", "layer_names"} & attributes or "model_weights" in keys:
        return "; it looks like a Keras model"
    if "_NCProperties" in attributes:
        return "; it looks like a netCDF file"
    return f"; it holds {listed(sorted(keys), 6)}"


def attributes_of(item: Any) -> dict[str, Any]:
    """The scalar texts and numbers among an object's attributes; others are not read."""
    from h5py import h5a, h5t

    values = {}
    for name in item.attrs:
        attribute = h5a.open(item.id, name.encode())
        if attribute.shape == () and attribute.get_type().get_class() in (h5t.STRING, h5t.INTEGER, h5t.FLOAT):
            values[name] = _plain(item.attrs[name])
    return values


def _plain(value: Any) -> Any:
    """A value of h5py as str, int or float."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value


def _locked(path: Path) -> bool:
    from artsim.io.recorder import refuse_busy

    try:
        refuse_busy(path)
    except BusyError:
        return True
    return False


# ---- comparing two runs


def controls_from_file(file: h5py.File) -> Controls:
    """Read the inputs in /controls of a run file, bit for bit; `file` must have passed the gate."""
    group, path = file["controls"], Path(str(file.filename))
    rows = read_count(path, group["n_valid"])
    values = {name: read_whole(path, group[name])[:rows] for name in ("start_step", *VALUES) if name in group}
    return Controls(**values)


def first_difference(a: Recording, b: Recording, tolerance: float = 0.0) -> Difference | None:
    """The first difference between two runs, byte by byte (a NaN equals the same NaN), or None.

    Compared are time step and row interval, labels, recorded variables, their rows in step order, the inputs, and the
    states at the end and at checkpoints, in blocks of 4 MB. `tolerance`: accepted difference of rows, relative to the
    variable's largest value in the block; contacts and states are then not compared.
    """
    for name in ("dt", "every"):
        if getattr(a, name) != getattr(b, name):
            return Difference(name, None, f"{getattr(a, name)}, {getattr(b, name)}")
    if a.labels != b.labels:
        return Difference("labels", None, _differing_label(a.labels, b.labels))
    if a.tables != b.tables:
        return Difference("variables", None, ", ".join(sorted(set(a.tables) ^ set(b.tables))))
    if a.variables != b.variables:
        return Difference("variables", None, ", ".join(sorted(set(a.variables) ^ set(b.variables))))
    found = _first_row(a, b, tolerance)
    if found is not None:
        return found
    if a.n_valid != b.n_valid:
        return Difference("n_valid", min(a.n_valid, b.n_valid) * a.every, f"{a.n_valid} rows, {b.n_valid} rows")
    if a.changes != b.changes:
        return Difference("controls/changes", None, "")
    return _in_controls(a, b) or (None if tolerance else _in_final(a, b) or _in_checkpoints(a, b))


def _differing_label(a: Labels, b: Labels) -> str:
    return next(name for name in Labels._fields if getattr(a, name) != getattr(b, name))


def _first_row(a: Recording, b: Recording, tolerance: float) -> Difference | None:
    rows = min(a.n_valid, b.n_valid)
    for start in range(0, rows, (step := _rows_per_block(a))):
        stop = min(start + step, rows)
        found = [_in_block(a, b, name, start, stop, tolerance) for name in ("time", *a.variables)]
        if not tolerance:
            for group in a.tables:
                found += [_in_table(a, b, group, start, stop), _in_table_times(a, b, group, start, stop)]
        differences = [difference for difference in found if difference is not None]
        if differences:
            return min(differences, key=lambda difference: difference.step or 0)
    return None


def _rows_per_block(a: Recording) -> int:
    widths = [8 * int(np.prod([len(a.names_of(dim)) for dim in _row_dims(name)])) for name in a.variables]
    return max(1, _BLOCK_BYTES // max([8, *widths]))


def _row_dims(name: str) -> tuple[str, ...]:
    return schema.TABLE[f"trajectory/{name}"].dims[1:]


def _in_block(a: Recording, b: Recording, name: str, start: int, stop: int, tolerance: float) -> Difference | None:
    left, right = a.read_stored(name, start, stop), b.read_stored(name, start, stop)
    where = first_beyond(name, left, right, tolerance) if tolerance else first_byte(left, right)
    if where is None:
        return None
    labels = [a.names_of(dim)[index] for dim, index in zip(_row_dims(name), where[1:], strict=True)]
    return Difference(name, (start + where[0]) * a.every, ", ".join(labels))


def first_beyond(name: str, left: Array, right: Array, tolerance: float) -> tuple[int, ...] | None:
    """Index of the first entry that differs by more than the tolerance; statistics of the solver may differ."""
    if name in ("solver_iterations", "solver_residual"):
        return None
    largest = float(np.max(np.abs(left), initial=0.0, where=np.isfinite(left)))
    wrong = ~np.isclose(right, left, rtol=0.0, atol=tolerance * largest, equal_nan=True)
    return tuple(int(index) for index in np.argwhere(wrong)[0]) if wrong.any() else None


def _in_table(a: Recording, b: Recording, group: str, start: int, stop: int) -> Difference | None:
    """The first difference between the tables of rows start … stop."""
    if group == "contact":
        left, right = a.read_contacts(start, stop), b.read_contacts(start, stop)
    else:
        left, right = a.read_table(group, start, stop), b.read_table(group, start, stop)
    found: list[Difference] = []
    for name in left:
        if left[name].shape != right[name].shape:
            continue  # then their counts differ
        where = first_byte(left[name], right[name])
        if where is None:
            continue
        if name == schema.RAGGED[group].counted_by:
            return Difference(
                f"{group}/{name}", (start + where[0]) * a.every, f"{left[name][where]}, {right[name][where]}"
            )
        entry = ", ".join(a.labels.geom[left[side][where[0]]] for side in ("geom_a", "geom_b") if side in left)
        found.append(Difference(f"{group}/{name}", int(left["step"][where[0]]), entry))
    return min(found, key=lambda difference: difference.step or 0, default=None)


def _in_table_times(a: Recording, b: Recording, group: str, start: int, stop: int) -> Difference | None:
    """The first difference between the row times stored with a table."""
    times = [run.group(group) for run in (a, b)]
    if times[0] is None or times[1] is None:
        return None
    where = first_byte(*(found["time"][start:stop] for found in times if found is not None))
    return None if where is None else Difference(f"{group}/time", (start + where[0]) * a.every, "")


def first_byte(left: Array, right: Array) -> tuple[int, ...] | None:
    """Index of the first entry whose bytes differ; the shapes are equal."""
    if left.tobytes() == right.tobytes():
        return None
    if left.shape != right.shape or left.dtype != right.dtype:
        return (0,) * left.ndim
    bits = f"u{left.itemsize}"
    flat = int(np.flatnonzero(left.reshape(-1).view(bits) != right.reshape(-1).view(bits))[0])
    return tuple(int(index) for index in np.unravel_index(flat, left.shape))


def _in_controls(a: Recording, b: Recording) -> Difference | None:
    controls_a, controls_b = a.controls, b.controls
    for name in ("start_step", *schema.CONTROL_VALUES):
        left, right = getattr(controls_a, name), getattr(controls_b, name)
        if left.tobytes() != right.tobytes() or left.shape != right.shape:
            return Difference(f"controls/{name}", None, "")
    return None


def _in_final(a: Recording, b: Recording) -> Difference | None:
    """The first difference between two final states."""
    left, right = a.final, b.final
    for name in schema.STATE:
        if (name in left) != (name in right):
            return Difference(f"final/{name}", None, "")
        if name in left and left[name].tobytes() != right[name].tobytes():
            return Difference(f"final/{name}", None, _entry_of_state(a, name, left[name], right[name]))
    return None


def _in_checkpoints(a: Recording, b: Recording) -> Difference | None:
    """The first difference between the checkpoints that both have."""
    groups = a.group("checkpoint"), b.group("checkpoint")
    if groups[0] is None or groups[1] is None:
        return None
    count = min(read_count(a.path, group["n_valid"]) for group in groups if group is not None)
    for name in ("contact_count", *schema.STATE):
        if any(name not in group for group in groups if group is not None):
            continue
        stop = count if name != "contact" else int(groups[0]["contact_count"][:count].sum())
        left, right = (group[name][:stop] for group in groups if group is not None)
        if left.tobytes() != right.tobytes():
            where = first_byte(left, right) if left.shape == right.shape else None
            known = where is not None and name not in ("contact", "contact_count")
            step = int(groups[0]["step"][where[0]]) if known and where else None
            entry = _entry_of_state(a, name, left[where[0]], right[where[0]]) if known and where else ""
            return Difference(f"checkpoint/{name}", step, entry)
    return None


def _entry_of_state(a: Recording, name: str, left: Array, right: Array) -> str:
    """The name of the first entry that differs, if entries have names."""
    dims = schema.TABLE[f"final/{name}"].dims
    if left.shape != right.shape or len(dims) != 1 or dims[0] in schema.NUMBERED:
        return ""
    where = first_byte(left, right)
    return schema.labels_of(dims[0], a.labels)[where[0]] if where else ""
