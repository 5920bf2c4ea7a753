"""Numeric arrays of .npy and .npz files, read in place by ranges of rows, without loading them into memory.

Compressed members, text and pipes cannot be read in place and are copied once into an anonymous temporary file. Nothing
is ever unpickled, and an array's declared size is compared with that of the file before it is read.
"""

from __future__ import annotations

import io
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from artsim.sim.foundation.errors import ArtsimError, ModelError, StorageError
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    import zipfile

_BLOCK = 1 << 20
_HEADER_BYTES = 1 << 14  # numpy itself reads headers of up to 10000
_SMALL = 1 << 20
_DEFLATE_RATIO = 1032  # highest compression ratio of zlib


class Table(Protocol):
    """A table of numbers that is read by ranges of rows."""

    def read(self, start: int, stop: int, into: Array) -> None:
        """Read rows start … stop into `into` (stop - start, …), float64 in C order."""


class Stored(NamedTuple):
    """An array in a file: its declared shape and type, and a function that opens it as `shape` (rows, …)."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    open: Callable[[tuple[int, ...]], Table]


# ---- reading in place


def read_at(handle: int, name: str, into: Array, offset: int) -> None:
    """Fill a contiguous array with the file's bytes from `offset` on. Raises ModelError if the file is too short."""
    view = into.reshape(-1).view(np.uint8).data
    while view:
        try:
            count = os.preadv(handle, [view], offset)
        except OSError as error:
            raise StorageError(f"{name}: cannot read: {os.strerror(error.errno or 0)}") from None
        if count == 0:
            raise ModelError(f"{name}: ends early: it was cut while it was read")
        view, offset = view[count:], offset + count


def sha256_of(handle: int) -> str:
    """SHA-256 of an open file; does not move its position."""
    import hashlib

    digest, offset = hashlib.sha256(), 0
    while block := os.pread(handle, _BLOCK, offset):
        digest.update(block)
        offset += len(block)
    return digest.hexdigest()


def temporary_file() -> BinaryIO:
    """An anonymous file on disk: in $TMPDIR, otherwise /var/tmp, because /tmp is often in memory."""
    import tempfile

    folder = "/var/tmp"
    there = "TMPDIR" not in os.environ and os.access(folder, os.W_OK)
    return tempfile.TemporaryFile(dir=folder if there else None)


@contextmanager
def spooling(name: str) -> Iterator[BinaryIO]:
    """A temporary file for the content of `name`, flushed at the end of the block.

    Raises StorageError (exit code 74) if the file cannot be written. The file is closed if the block fails.
    """
    file = None
    try:
        file = temporary_file()
        yield file
        file.flush()
    except BaseException as error:
        if file is not None:
            with suppress(OSError):  # closing flushes the rest, which fails again
                file.close()
        if isinstance(error, OSError) and not isinstance(error, ArtsimError):
            why = os.strerror(error.errno) if error.errno else str(error)
            raise StorageError(f"{name}: cannot be kept in a temporary file ($TMPDIR): {why}") from None
        raise


class NumberFile:
    """An array of real numbers of any layout, byte order and type, at an offset of an open file."""

    def __init__(
        self,
        handle: int,
        name: str,
        offset: int,
        shape: tuple[int, ...],
        dtype: Any = np.float64,
        fortran: bool = False,
        owner: Any = None,
    ) -> None:
        """`owner`: an object that closes the handle when it is garbage-collected."""
        self._handle, self._name, self._offset = handle, name, offset
        self._rows, self._row, self._dtype = shape[0], shape[1:], np.dtype(dtype)
        self._width = math.prod(self._row)
        self._columns = self._fortran_columns() if fortran else None
        self._owner = owner

    def _fortran_columns(self) -> list[int]:
        """For each entry of a row, in C order, the index of its column in the file."""
        places = np.arange(self._width).reshape(self._row, order="F")
        return [int(place) for place in places.reshape(-1)]

    def read(self, start: int, stop: int, into: Array) -> None:
        if into.size == 0:
            return
        size, width = self._dtype.itemsize, self._width
        with np.errstate(over="ignore"):  # a long double beyond the range of float64 becomes inf
            if self._columns is not None:
                column, flat = np.empty(stop - start, self._dtype), into.reshape(-1, width)
                for k, place in enumerate(self._columns):
                    read_at(self._handle, self._name, column, self._offset + (place * self._rows + start) * size)
                    flat[:, k] = column
            elif self._dtype == np.float64:  # False for the other byte order
                read_at(self._handle, self._name, into, self._offset + start * width * size)
            else:
                rows = np.empty(into.shape, self._dtype)
                read_at(self._handle, self._name, rows, self._offset + start * width * size)
                into[...] = rows


# ---- .npy


class Header(NamedTuple):
    """The header of a .npy array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int  # offset of the data [bytes]

    @property
    def end(self) -> int:
        return self.start + math.prod(self.shape) * self.dtype.itemsize


def npy_header(stream: Any) -> Header:
    """Read the header at the stream's position. Raises ValueError if there is none."""
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except (ArtsimError, OSError):
        raise
    except Exception as error:  # numpy parses the header as Python and may raise anything
        raise ValueError(f"bad array header: {str(error).splitlines()[0] if str(error) else error!r}") from None
    if any(n < 0 for n in shape):
        raise ValueError(f"bad array header: shape {shape}")
    return Header(shape, fortran, dtype, stream.tell())


def stored_npy(handle: int, name: str) -> Stored:
    """The array of a .npy file, read in place. Raises ModelError if it is no .npy file or is truncated."""
    try:
        header = npy_header(io.BytesIO(os.pread(handle, _HEADER_BYTES, 0)))
    except (ValueError, OSError) as error:
        raise ModelError(f"{name}: is no .npy array: {error}") from None
    held = os.fstat(handle).st_size
    if not header.dtype.hasobject and header.end > held:
        raise ModelError(f"{name}: declares {_kind(header)}, {header.end} bytes, but holds {held}")
    return Stored(
        header.shape,
        header.dtype,
        lambda shape: NumberFile(handle, name, header.start, shape, header.dtype, header.fortran),
    )


def _kind(header: Header) -> str:
    return f"{header.dtype} {header.shape}"


# ---- .npz


@contextmanager
def unzipping(name: str) -> Iterator[None]:
    """Convert whatever zipfile raises on a damaged archive to a ModelError."""
    import zipfile
    import zlib

    try:
        yield
    except ArtsimError:
        raise
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise ModelError(f"{name}: is no readable .npz archive: {error}") from None


class NpzArchive:
    """The arrays of a .npz file: stored members are read in place, deflated ones are unpacked to disk when opened.

    The checksums of stored members are not verified, because that would read the file twice.
    """

    def __init__(self, handle: int, name: str) -> None:
        """Open the archive. Raises ModelError if it is none or holds an array twice."""
        import zipfile

        self._handle, self._name = handle, name
        with unzipping(name):
            self._stream = os.fdopen(os.dup(handle), "rb")
            self._archive = zipfile.ZipFile(self._stream)
        infos = self._archive.infolist()
        self._members = {info.filename.removesuffix(".npy"): info for info in infos}
        self.names = tuple(self._members)
        if len(infos) > len(self.names):
            count = Counter(info.filename.removesuffix(".npy") for info in infos)
            raise ModelError(f"{name}: holds {count.most_common(1)[0][0]!r} twice")

    def close(self) -> None:
        self._archive.close()
        self._stream.close()

    def stored(self, key: str) -> Stored:
        """An array by its name. Raises ModelError if it is no array, is damaged or declares more than it stores."""
        header = self._header(key)
        return Stored(header.shape, header.dtype, lambda shape: self._table(key, header, shape))

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of strings; None if the archive has no such array."""
        if key not in self.names:
            return None
        header = self._header(key)
        if header.dtype.kind != "U" or len(header.shape) != 1 or header.end > _SMALL:
            return None
        with unzipping(self._name), self._archive.open(self._members[key]) as stream:
            return tuple(str(text) for text in np.lib.format.read_array(stream, allow_pickle=False))

    def _header(self, key: str) -> Header:
        info = self._members[key]
        with unzipping(self._name), self._archive.open(info) as stream:
            header = npy_header(stream)
        if not header.dtype.hasobject and header.end > info.file_size:
            raise ModelError(f"{self._name}: {key} declares {_kind(header)}, but holds {info.file_size} bytes")
        return header

    def _table(self, key: str, header: Header, shape: tuple[int, ...]) -> Table:
        import zipfile

        info, name = self._members[key], f"{self._name}: {key}"
        if info.compress_type == zipfile.ZIP_STORED:
            offset = self._data_offset(info) + header.start
            return NumberFile(self._handle, name, offset, shape, header.dtype, header.fortran)
        if info.compress_type != zipfile.ZIP_DEFLATED:
            raise ModelError(f"{name} is packed in a way that numpy does not write")
        if info.file_size > _SMALL + _DEFLATE_RATIO * info.compress_size:
            raise ModelError(f"{name} declares {info.file_size} bytes, which {info.compress_size} cannot hold")
        file = self._unpack(info, name)
        return NumberFile(file.fileno(), name, header.start, shape, header.dtype, header.fortran, owner=file)

    def _data_offset(self, info: zipfile.ZipInfo) -> int:
        """Offset of a stored member's data, behind its local header, whose name and extra field vary in length."""
        local = os.pread(self._handle, 30, info.header_offset)
        offset = (
            info.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
        )
        if len(local) < 30 or offset + info.file_size > os.fstat(self._handle).st_size:
            raise ModelError(f"{self._name}: is cut short")
        return offset

    def _unpack(self, info: zipfile.ZipInfo, name: str) -> BinaryIO:
        """Unpack a member to a temporary file. Raises StorageError if there is not enough space."""
        with spooling(name) as file:
            disk = os.fstatvfs(file.fileno())
            free = disk.f_bavail * disk.f_frsize
            if info.file_size > free:
                raise StorageError(f"{name} unpacks to {info.file_size} bytes; {free} are free ($TMPDIR)")
            with unzipping(self._name):
                stream = self._archive.open(info)
            while block := self._next(stream):
                file.write(block)
        return file

    def _next(self, stream: Any) -> bytes:
        with unzipping(self._name):
            block: bytes = stream.read(_BLOCK)
        return block
