"""Writes results for many configurations: a file is laid out once, then its rows are written at their places.

The number of rows is known, so every dataset has its place in the file before anything is computed, and rows need
neither HDF5 nor zipfile: `os.pwrite` puts them there, from any thread, without the GIL, and a full disk is an OSError
and no crash. The file's space is allocated at once, so that a disk that is too small is found before the work is done.
Until everything is written the file is called `<output>.partial`; whoever finds one may delete or replace it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import threading
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artsim.io import schema, seal
from artsim.io.layout import Section, lay_out_inputs, lay_out_model, lay_out_root
from artsim.io.recorder import ModelRecord, abandon, check_output, claim, reason, room
from artsim.io.schema import Labels
from artsim.sim.foundation.errors import BusyError, StorageError, UsageError
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    from zipfile import ZipInfo

SUFFIXES = (".h5", ".hdf5", ".npz")
_ALIGNMENT = 4096  # of datasets above _ALIGNED bytes: rows are copied by whole pages
_ALIGNED = 1 << 16
_READ_BYTES = 1 << 20
_SYNC_BYTES = 1 << 26  # put on the disk while more is computed: waiting for it at the end took a third of the time
_MARGIN_BYTES = 256 << 10  # labels, attributes and links of an HDF5 file, without the robot's text
_LABELS = ("coord", "dof", "independent_dof", "link")  # also when no variable has them


class Column(NamedTuple):
    """One variable: dimensions, shape and stored type of a row."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str  # "f8", "f4" or "i1"

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(np.prod(self.shape)) * int(self.dtype[1:])


class Content(NamedTuple):
    """What a file will hold: N rows of variables of one of schema's groups, names, the robot, where it comes from."""

    rows: int
    columns: Mapping[str, Column]
    labels: Labels
    model: ModelRecord
    facts: Mapping[str, str | int | float]  # attributes of the group
    provenance: Mapping[str, str | int | float]
    group: str = "batch"
    numbers: Mapping[str, Array] = {}  # of dimensions that have numbers for labels
    inputs: Mapping[str, Array] = {}  # as layout.lay_out_inputs takes them

    @property
    def bytes(self) -> int:
        """Bytes of all rows."""
        return self.rows * sum(column.row_bytes for column in self.columns.values())


class _Layout(NamedTuple):
    """Where each column's rows begin, and the bytes of the file; a zip archive's members, by name."""

    places: dict[str, int]
    size: int
    members: dict[str, ZipInfo]


class BatchWriter:
    """A file of `content` being written. A context manager: without `commit` nothing is left behind.

    Raises OutputError (73), BusyError (75), StorageError (74: not enough space, before any row), UsageError (a name
    that ends in none of SUFFIXES).
    """

    def __init__(self, path: str | os.PathLike[str], content: Content, *, force: bool = False) -> None:
        self.path = Path(path)
        check_name(self.path)
        check_output(self.path, force=force)
        self._target = self.path.resolve() if self.path.is_symlink() else self.path  # as when a run is written
        self.partial = self._target.with_name(self._target.name + ".partial")
        self._content = content
        self._writing, self._unsynced = threading.Lock(), 0  # the kernel writes one at a time, and spins while it waits
        self._handle = _claim(self.partial)
        try:
            check_output(self.path, force=force)  # again: another process may have finished it meanwhile
            self._layout = self._lay_out()
            self._allocate()
        except BaseException:
            self.discard()
            raise

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return self._layout.size

    def write(self, start: int, rows: int, block: Mapping[str, Array]) -> None:
        """Rows start … start + rows from the first rows of a block's arrays; from any thread. Raises StorageError."""
        for name, column in self._content.columns.items():
            with np.errstate(over="ignore"):  # above 1e38 a float32 is inf
                data = _bytes_of(block[name][:rows].astype(column.dtype, copy=False))
            try:
                with self._writing:
                    _write_all(self._handle, data, self._layout.places[name] + start * column.row_bytes)
                    self._unsynced += len(data)
                self._sync()
            except OSError as error:
                raise self._failed(f"writing stopped after {start} of {self._content.rows} rows", error) from None

    def commit(self) -> None:
        """Everything is written: put it on the disk and under its name. Raises StorageError."""
        try:
            if self._layout.members:
                _close_archive(self._handle, self._layout)
            else:
                seal.seal(self._handle, self._rows())
            os.fsync(self._handle)
            self._layout = self._layout._replace(size=os.fstat(self._handle).st_size)
            self.partial.replace(self._target)
        except OSError as error:
            raise self._failed("cannot finish the file", error) from None
        os.close(self._handle)
        self._handle = -1
        sync_folder(self._target.parent)

    def discard(self) -> None:
        """Give up: no file is left. Idempotent."""
        if self._handle < 0:
            return
        self.partial.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = -1

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    # inside

    def _lay_out(self) -> _Layout:
        """Everything but the rows."""
        os.ftruncate(self._handle, 0)
        rows = self._content.bytes + _ALIGNMENT * (len(self._content.columns) + len(self._content.inputs))
        rows += sum(values.nbytes for values in self._content.inputs.values())
        check_room(self.path, self.partial, self._content, rows)
        if self.path.suffix == ".npz":
            return _lay_out_archive(self._handle, self._content)
        return _lay_out_hdf5(self.partial, self._content)

    def _allocate(self) -> None:
        """Reserve the disk's space, of the parts that are still to be written too."""
        try:
            _reserve(self._handle, self._layout.size)
        except OSError as error:
            raise self._failed("no space for the file", error) from None

    def _rows(self) -> list[seal.Range]:
        """Where rows are: what is computed again tells whether they are whole."""
        sizes = {name: self._content.rows * column.row_bytes for name, column in self._content.columns.items()}
        return [(place, place + sizes[name]) for name, place in self._layout.places.items()]

    def _sync(self) -> None:
        """Now and then, by the thread whose turn it is, put what is written on the disk."""
        with self._writing:
            due = self._unsynced >= _SYNC_BYTES
            if due:
                self._unsynced = 0
        if due:
            os.fdatasync(self._handle)

    def _failed(self, what: str, error: OSError) -> StorageError:
        return StorageError(f"{self.path}: {what}: {reason(error)}; the file needs {self._layout.size} bytes")


def check_name(path: Path) -> None:
    """Raises UsageError for a name from which no kind of file follows."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: want a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")


def check_room(path: Path, partial: Path, content: Content, more: int) -> None:
    """Raises StorageError when the disk has no room for names, texts and `more`: HDF5 does not survive a full disk."""
    texts = 4 * len(content.model.text) + 4 * sum(map(len, map(str, content.provenance.values())))
    need = _MARGIN_BYTES + texts + more
    free, what = room(partial)
    if free < need:
        raise StorageError(f"{path}: {what} {free} bytes; the file needs {need} bytes")


def _claim(partial: Path) -> int:
    """The locked, perhaps old, partial file. Raises BusyError while another process works on it, OutputError."""
    handle = claim(partial)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(handle), partial.stat()):
            return handle
    os.close(handle)  # whoever had it has just finished it
    raise BusyError(f"{partial}: another process has just written it; try again")


def _bytes_of(values: Array) -> memoryview:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def _reserve(handle: int, size: int) -> None:
    """Space for so many bytes, where the file system can: os.posix_fallocate writes zeros where it cannot (NFS 3)."""
    import ctypes

    reserve = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if reserve is not None and reserve(handle, 0, ctypes.c_int64(0), ctypes.c_int64(size)) != 0:
        number = ctypes.get_errno()
        if number not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError(number, os.strerror(number))


def _write_all(handle: int, data: bytes | memoryview, offset: int) -> None:
    view = memoryview(data)
    while len(view):
        done = os.pwrite(handle, view, offset)
        view, offset = view[done:], offset + done


def sync_folder(folder: Path) -> None:
    """Put a folder's names on the disk."""
    with contextlib.suppress(OSError):  # some file systems cannot; the file itself is safe
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---- HDF5


def _lay_out_hdf5(path: Path, content: Content) -> _Layout:
    import h5py

    file = None
    try:
        file = h5py.File(
            path,
            "w",
            libver=("v110", "v110"),
            locking=False,
            alignment_threshold=_ALIGNED,
            alignment_interval=_ALIGNMENT,
        )
        places = lay_out_groups(file, content)
        file.close()
    except (OSError, RuntimeError) as error:
        abandon(file)
        raise StorageError(f"{path}: cannot lay out the file: {reason(error)}") from None
    return _Layout(places, path.stat().st_size, {})


def lay_out_groups(
    file: Any, content: Content, shards: Sequence[tuple[str, int, int]] = (), created: str | None = None
) -> dict[str, int]:
    """All groups of an open HDF5 file; where each column's rows begin.

    `shards`: the files (name, first row, rows) that hold the rows instead, of which this one is the index.
    """
    from artsim.io import hdf5

    root, labels = file.id, content.labels
    title = f"artsim {content.group} of {content.model.name}"
    lay_out_root(root, title, str(content.provenance.get("command", "artsim")), created)
    section = Section(root, content.group, labels)
    section.group.bare_dimension("sample", content.rows)
    section.scales(_labelled(content))
    beside = " ".join(path.rpartition("/")[2] for path in section.datasets)  # CF: the units are no data
    section.set_attributes({**content.facts, "coordinates": beside})
    for dim, values in content.numbers.items():
        section.fixed(dim, values)
    places = {}
    for name, column in content.columns.items():
        variable = schema.TABLE[f"{content.group}/{name}"]
        if content.group == "batch":
            variable = schema.batch_variable(name, column.dims)
        shape = (content.rows, *column.shape)
        attributes = section.attributes(name, variable)
        if shards and all(shape):
            section.group.virtual(name, column.dtype, shape, variable.dims, attributes, shards)
        else:
            places[name] = section.group.placed(name, column.dtype, shape, variable.dims, attributes)
    if content.inputs:
        lay_out_inputs(Section(root, "controls", labels.of_controls), content.inputs, content.rows)
    lay_out_model(Section(root, "model", labels), content.model)
    hdf5.set_attributes(hdf5.Group(root, "provenance").id, content.provenance)
    return places


def _labelled(content: Content) -> dict[str, None]:
    """The dimensions with names for labels, in order."""
    dims = dict.fromkeys([*(dim for column in content.columns.values() for dim in column.dims), *_LABELS])
    return {dim: None for dim in dims if dim not in content.numbers}


# ---- .npz: a zip archive of uncompressed .npy members, laid out by hand since zipfile writes one after the other


def _lay_out_archive(handle: int, content: Content) -> _Layout:
    """The members' heads, and the labels and texts whole; the local headers follow when the checksums are known."""
    layout = _Layout({}, 0, {})
    for dim, numbers in content.numbers.items():
        layout = _add_member(handle, layout, dim, numbers)
    for dim in _labelled(content):
        layout = _add_member(handle, layout, dim, np.array(schema.labels_of(dim, content.labels), dtype=np.str_))
    for name, values in (("facts", content.facts), ("provenance", content.provenance)):
        layout = _add_member(handle, layout, name, np.array(_json(values)))
    for name, column in content.columns.items():
        # a view of one number has the type and shape, and takes no memory
        rows = np.broadcast_to(np.zeros((), column.dtype), (content.rows, *column.shape))
        layout = _add_member(handle, layout, name, rows, later=True)
    return layout


def _json(values: Mapping[str, str | int | float]) -> str:
    import json

    return json.dumps(dict(values))


def _add_member(handle: int, layout: _Layout, name: str, values: Array, *, later: bool = False) -> _Layout:
    """Add a member at the end; its rows come `later`."""
    from zipfile import ZipInfo

    head = _npy_head(values)
    if not later:
        head += values.tobytes()
    info = ZipInfo(f"{name}.npy")
    info.external_attr = 0o600 << 16
    info.header_offset = layout.size
    info.file_size = info.compress_size = len(head) + (values.nbytes if later else 0)
    info.CRC = 0
    start = layout.size + len(info.FileHeader(zip64=True))
    _write_all(handle, head, start)
    places = {**layout.places, name: start + len(head)} if later else layout.places
    return _Layout(places, start + info.file_size, {**layout.members, name: info})


def _npy_head(values: Array) -> bytes:
    stream = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(values.dtype), "fortran_order": False, "shape": values.shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def _close_archive(handle: int, layout: _Layout) -> None:
    """The local headers, now that the checksums can be known, and the directory at the end."""
    from zipfile import ZipFile

    for info in layout.members.values():
        _check(handle, info)
        _write_all(handle, info.FileHeader(zip64=True), info.header_offset)
    with open(handle, "r+b", closefd=False) as file, ZipFile(file, "w") as archive:
        archive.filelist = list(layout.members.values())
        archive.start_dir = layout.size  # the directory is written there when the archive closes


def _check(handle: int, info: ZipInfo) -> None:
    """The checksum of a member's bytes, read back: they were not written in order."""
    start = info.header_offset + len(info.FileHeader(zip64=True))
    info.CRC = 0
    for offset in range(start, start + info.file_size, _READ_BYTES):
        count = min(_READ_BYTES, start + info.file_size - offset)
        info.CRC = zlib.crc32(os.pread(handle, count, offset), info.CRC)
