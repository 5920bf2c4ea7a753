"""Writes results for many configurations: a file is laid out once, then its rows are written in place.

The number of rows is known, so every dataset has its place in the file before anything is computed, but for contacts,
which wait in a nameless file until all are known. Rows need neither
HDF5 nor zipfile: `os.pwrite` writes them from any thread, without the GIL, and a full disk raises OSError instead of
crashing. The space of the file is allocated at once, so that a lack of space shows before the work is done. An
unfinished file is called `<output>.partial`; a leftover one may be deleted or replaced.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import Labels, labels_of
from artsim.io.gate import seal
from artsim.io.output_file.claim import check_output, claim, room
from artsim.io.output_file.failure import abandon, reason
from artsim.io.output_file.layout import Section, lay_out_inputs, lay_out_root
from artsim.io.output_file.model_record import ModelRecord, lay_out_model
from artsim.io.output_file.spool import Spool
from artsim.io.output_file.whole_file import put_in_place
from artsim.sim.foundation.errors import BusyError, StorageError, UsageError
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    from zipfile import ZipInfo

SUFFIXES = (".h5", ".hdf5", ".npz")
_ALIGNMENT = 4096  # of datasets above _ALIGNED bytes, so that rows are copied by whole pages
_ALIGNED = 1 << 16
_READ_BYTES = 1 << 20
_SYNC_BYTES = 1 << 26  # synced while more is computed; a sync at the end took a third of the time
_MARGIN_BYTES = 256 << 10  # labels, attributes and links of an HDF5 file, without the robot's text
_LABELS = ("coord", "dof", "independent_dof", "link")  # written even if no variable needs them


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
    """The content of a file: N rows of variables of one of schema's groups, labels, the robot and the provenance."""

    rows: int
    columns: Mapping[str, Column]
    labels: Labels
    model: ModelRecord
    facts: Mapping[str, str | int | float]  # attributes of the group
    provenance: Mapping[str, str | int | float]
    group: str = "batch"
    numbers: Mapping[str, Array] = {}  # labels of dimensions that are numbered
    inputs: Mapping[str, Array] = {}  # see layout.lay_out_inputs
    contacts: Mapping[str, Column] = {}  # of a contact, of which a sample has any number

    @property
    def bytes(self) -> int:
        """Bytes of all rows."""
        return self.rows * sum(column.row_bytes for column in self.columns.values())


class _Layout(NamedTuple):
    """The first byte of each column's rows, the size of the file [bytes], and the members of a zip archive by name."""

    places: dict[str, int]
    size: int
    members: dict[str, ZipInfo]


class BatchWriter:
    """Writes a file of `content`. As a context manager it leaves nothing behind without `commit`.

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
        self._writing, self._unsynced = threading.Lock(), 0  # the kernel serialises writes and spins while waiting
        self._handle = _claim(self.partial)
        self._spool: Spool | None = None
        try:
            check_output(self.path, force=force)  # again, since another process may have finished it meanwhile
            self._layout = self._lay_out()
            self._allocate()
            self._spool = self._make_spool()
        except BaseException:
            self.discard()
            raise

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return self._layout.size

    def write(self, start: int, rows: int, block: Mapping[str, Array]) -> None:
        """Write rows start … start + rows from a block's first rows, and its contacts (`contact/point`, …), from any
        thread. Raises StorageError."""
        for name, column in self._content.columns.items():
            with np.errstate(over="ignore"):  # values above 1e38 become inf in float32
                data = _bytes_of(block[name][:rows].astype(column.dtype, copy=False))
            try:
                with self._writing:
                    _write_all(self._handle, data, self._layout.places[name] + start * column.row_bytes)
                    self._unsynced += len(data)
                self._sync()
            except OSError as error:
                raise self._failed(f"writing stopped after {start} of {self._content.rows} rows", error) from None
        if self._spool is not None and "contact/sample" in block:  # not of samples that are left out
            contacts = [block[f"contact/{name}"] for name in self._content.contacts]
            try:
                self._spool.add(start, contacts)
            except OSError as error:
                raise self._failed(f"writing stopped after {start} of {self._content.rows} rows", error) from None

    def commit(self) -> None:
        """Finish the file: sync it to disk and give it its final name. Raises StorageError."""
        if self._spool is not None:
            self._write_contacts(self._spool)
        try:
            if self._layout.members:
                _close_archive(self._handle, self._layout)
            else:
                seal.seal(self._handle, self._rows())
            self._layout = self._layout._replace(size=os.fstat(self._handle).st_size)
            put_in_place(self.partial, self._target)
        except OSError as error:
            raise self._failed("cannot finish the file", error) from None
        os.close(self._handle)
        self._handle = -1

    def discard(self) -> None:
        """Give up and remove the file. Idempotent."""
        if self._spool is not None:
            self._spool.close()
        if self._handle < 0:
            return
        self.partial.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = -1

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.discard()

    # inside

    def _lay_out(self) -> _Layout:
        """Write everything except the rows."""
        os.ftruncate(self._handle, 0)
        rows = self._content.bytes + _ALIGNMENT * (len(self._content.columns) + len(self._content.inputs))
        rows += sum(values.nbytes for values in self._content.inputs.values())
        check_room(self.path, self.partial, self._content, rows)
        if self.path.suffix == ".npz":
            return _lay_out_archive(self._handle, self._content)
        return _lay_out_hdf5(self.partial, self._content)

    def _allocate(self) -> None:
        """Reserve disk space, including that of rows still to be written, but for contacts."""
        try:
            _reserve(self._handle, self._layout.size)
        except OSError as error:
            raise self._failed("no space for the file", error) from None

    def _make_spool(self) -> Spool | None:
        """The place for contacts until all are known; None: no contacts are written."""
        if not self._content.contacts:
            return None
        try:
            return Spool(
                self.partial.parent, {name: column.row_bytes for name, column in self._content.contacts.items()}
            )
        except OSError as error:
            raise self._failed("cannot make a temporary file", error) from None

    def _write_contacts(self, spool: Spool) -> None:
        """Lay out the contacts, whose number is known now, and copy them to their places. Raises StorageError."""
        content, rows = self._content, spool.rows
        size = rows * sum(column.row_bytes for column in content.contacts.values())
        check_room(self.path, self.partial, content, size + _ALIGNMENT * len(content.contacts))
        if self._layout.members:
            self._layout = _lay_out_contacts_in_archive(self._handle, self._layout, content, rows)
        else:
            self._layout = _lay_out_contacts_hdf5(self.partial, self._layout, content, rows)
        self._allocate()
        places = self._layout.places
        try:
            spool.copy(lambda name, start, data: _write_all(self._handle, data, places[f"contact/{name}"] + start))
        except OSError as error:
            raise self._failed(f"cannot write {rows} contacts", error) from None

    def _rows(self) -> list[seal.Range]:
        """The byte ranges of rows, which the seal spares because computing them again verifies them."""
        sizes = {name: self._content.rows * column.row_bytes for name, column in self._content.columns.items()}
        if self._spool is not None:
            rows = self._spool.rows
            sizes |= {f"contact/{name}": rows * column.row_bytes for name, column in self._content.contacts.items()}
        return [(place, place + sizes[name]) for name, place in self._layout.places.items()]

    def _sync(self) -> None:
        """Sync the written bytes from time to time, in the thread whose turn it is."""
        with self._writing:
            due = self._unsynced >= _SYNC_BYTES
            if due:
                self._unsynced = 0
        if due:
            os.fdatasync(self._handle)

    def _failed(self, what: str, error: OSError) -> StorageError:
        return StorageError(f"{self.path}: {what}: {reason(error)}; the file needs {self._layout.size} bytes")


def check_name(path: Path) -> None:
    """Raise UsageError for a name whose suffix does not give a kind of file."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: want a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")


def check_room(path: Path, partial: Path, content: Content, more: int) -> None:
    """Raise StorageError if the disk lacks room for names, texts and `more`: HDF5 does not survive a full disk."""
    texts = 4 * len(content.model.text) + 4 * sum(map(len, map(str, content.provenance.values())))
    need = _MARGIN_BYTES + texts + more
    free, what = room(partial)
    if free < need:
        raise StorageError(f"{path}: {what} {free} bytes; the file needs {need} bytes")


def _claim(partial: Path) -> int:
    """Open and lock the partial file, perhaps an old one. Raises BusyError if another process uses it, OutputError."""
    handle = claim(partial)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(handle), partial.stat()):
            return handle
    os.close(handle)  # its previous holder has just finished it
    raise BusyError(f"{partial}: another process has just written it; try again")


def _bytes_of(values: Array) -> memoryview:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def _reserve(handle: int, size: int) -> None:
    """Reserve space if the file system supports it; os.posix_fallocate would write zeros otherwise (NFS 3)."""
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


# ---- HDF5


def _lay_out_hdf5(path: Path, content: Content) -> _Layout:
    places = _laid_out_in(path, "w", lambda file: lay_out_groups(file, content), "the file")
    return _Layout(places, path.stat().st_size, {})


def _lay_out_contacts_hdf5(path: Path, layout: _Layout, content: Content, rows: int) -> _Layout:
    """Lay out /contact in a file that has been laid out without it."""
    places = _laid_out_in(path, "r+", lambda file: lay_out_contacts(file, content, rows), f"{rows} contacts")
    return _Layout({**layout.places, **places}, path.stat().st_size, {})


def _laid_out_in(path: Path, mode: str, lay_out: Callable[[Any], dict[str, int]], what: str) -> dict[str, int]:
    """Open an HDF5 file with aligned datasets, let `lay_out` lay it out, and close it; the places that `lay_out`
    returns. `what` names the part laid out in errors. Raises StorageError."""
    import h5py

    file = None
    try:
        file = h5py.File(
            path,
            mode,
            libver=("v110", "v110"),
            locking=False,
            alignment_threshold=_ALIGNED,
            alignment_interval=_ALIGNMENT,
        )
        places: dict[str, int] = lay_out(file)
        file.close()
    except (OSError, RuntimeError) as error:
        abandon(file)
        raise StorageError(f"{path}: cannot lay out {what}: {reason(error)}") from None
    return places


def lay_out_contacts(
    file: Any, content: Content, rows: int, shards: Sequence[tuple[str, int, int]] = ()
) -> dict[str, int]:
    """Lay out /contact in an open HDF5 file; returns where the rows of each column begin, by path.

    `shards`: the files (name, first contact, contacts) that hold the contacts if this file is their index.
    """
    labels = content.labels
    section = Section(file.id, "contact", labels._replace(link=labels.touching_link))
    section.group.bare_dimension("row", rows)
    section.scales(schema.RAGGED["contact"].labels)
    places = {}
    for name, column in content.contacts.items():
        variable = schema.TABLE[f"contact/{name}"]
        shape, attributes = (rows, *column.shape), section.attributes(name, variable)
        if shards:
            section.group.virtual(name, column.dtype, shape, variable.dims, attributes, shards)
        else:
            places[f"contact/{name}"] = section.group.placed(name, column.dtype, shape, variable.dims, attributes)
    return places


def lay_out_groups(
    file: Any, content: Content, shards: Sequence[tuple[str, int, int]] = (), created: str | None = None
) -> dict[str, int]:
    """Lay out all groups of an open HDF5 file; returns where the rows of each column begin.

    `shards`: the files (name, first row, rows) that hold the rows if this file is their index.
    """
    from artsim.io.output_file import hdf5

    root, labels = file.id, content.labels
    title = f"artsim {content.group} of {content.model.name}"
    lay_out_root(root, title, str(content.provenance.get("command", "artsim")), created)
    section = Section(root, content.group, labels)
    section.group.bare_dimension("sample", content.rows)
    section.scales(_labelled(content))
    beside = " ".join(path.rpartition("/")[2] for path in section.datasets)  # CF: units do not count as data
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
        lay_out_inputs(Section(root, "controls", labels.of_controls), content.inputs, content.rows, shards)
    lay_out_model(Section(root, "model", labels), content.model)
    hdf5.set_attributes(hdf5.Group(root, "provenance").id, content.provenance)
    return places


def _labelled(content: Content) -> dict[str, None]:
    """The dimensions labelled by names, in order."""
    dims = dict.fromkeys([*(dim for column in content.columns.values() for dim in column.dims), *_LABELS])
    if "constraint_pair" in dims:
        dims["constraint"] = None
    return {dim: None for dim in dims if dim not in content.numbers}


# ---- .npz: a zip archive of uncompressed .npy members, laid out here since zipfile writes members sequentially


def _lay_out_archive(handle: int, content: Content) -> _Layout:
    """Write the members' heads, labels and texts; the local headers follow once the checksums are known."""
    layout = _Layout({}, 0, {})
    for dim, numbers in content.numbers.items():
        layout = _add_member(handle, layout, dim, numbers)
    for dim in _labelled(content):
        layout = _add_member(handle, layout, dim, np.array(labels_of(dim, content.labels), dtype=np.str_))
    for name, values in (("facts", content.facts), ("provenance", content.provenance)):
        layout = _add_member(handle, layout, name, np.array(_json(values)))
    for name, column in content.columns.items():
        # a view of one number has the type and shape, and takes no memory
        rows = np.broadcast_to(np.zeros((), column.dtype), (content.rows, *column.shape))
        layout = _add_member(handle, layout, name, rows, later=True)
    return layout


def _lay_out_contacts_in_archive(handle: int, layout: _Layout, content: Content, rows: int) -> _Layout:
    """Write the heads of the contacts' members, and the names of the geometries and links that they number."""
    names = {"contact/link": content.labels.touching_link, "contact/geom": content.labels.geom}
    for name, texts in names.items():
        layout = _add_member(handle, layout, name, np.array(texts, dtype=np.str_))
    for name, column in content.contacts.items():
        empty = np.broadcast_to(np.zeros((), column.dtype), (rows, *column.shape))
        layout = _add_member(handle, layout, f"contact/{name}", empty, later=True)
    return layout


def _json(values: Mapping[str, str | int | float]) -> str:
    import json

    return json.dumps(dict(values))


def _add_member(handle: int, layout: _Layout, name: str, values: Array, *, later: bool = False) -> _Layout:
    """Add a member at the end; with `later` its rows follow later."""
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
    """Write the local headers, with checksums, and the directory at the end."""
    from zipfile import ZipFile

    for info in layout.members.values():
        _check(handle, info)
        _write_all(handle, info.FileHeader(zip64=True), info.header_offset)
    with open(handle, "r+b", closefd=False) as file, ZipFile(file, "w") as archive:
        archive.filelist = list(layout.members.values())
        archive.start_dir = layout.size  # the directory is written there when the archive closes


def _check(handle: int, info: ZipInfo) -> None:
    """Set the checksum of a member from its bytes, which are read back since they were not written in order."""
    start = info.header_offset + len(info.FileHeader(zip64=True))
    info.CRC = 0
    for offset in range(start, start + info.file_size, _READ_BYTES):
        count = min(_READ_BYTES, start + info.file_size - offset)
        info.CRC = zlib.crc32(os.pread(handle, count, offset), info.CRC)
