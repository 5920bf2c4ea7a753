"""The superblock, the first 48 bytes of an HDF5 file: detects an open writer and repairs the file of a dead one.

HDF5 refuses to open a file left in SWMR mode normally, and opening it as a SWMR reader is unsafe: on a wrong checksum
HDF5 2.0 retries 100 times with doubling delays and effectively never returns (a truncated file hangs). With its write
marks cleared and the end of file corrected, it opens like any other file. `Unmarked` does both on the fly, read-only.
"""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from typing import Any

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SIZE = 48  # bytes of a superblock of version 2 or 3 with 8-byte addresses
_WRITE, _SWMR = 1, 4  # the marks at byte 11


def being_written(head: bytes) -> bool:
    """True if a file that starts with `head` is marked as open for writing (its writer may be dead)."""
    return len(head) >= SIZE and head[:9] == SIGNATURE + b"\x03" and head[9] == 8 and bool(head[11] & (_WRITE | _SWMR))


def without_marks(head: bytes, file_bytes: int) -> bytes:
    """The superblock for a file of `file_bytes` bytes without a writer. Raises ValueError if `head` is damaged."""
    if struct.unpack_from("<I", head, SIZE - 4)[0] != checksum(head[: SIZE - 4]):
        raise ValueError("wrong checksum of the superblock")
    clean = bytearray(head[: SIZE - 4])
    clean[11] &= ~(_WRITE | _SWMR) & 0xFF
    struct.pack_into("<Q", clean, 28, file_bytes)
    return bytes(clean) + struct.pack("<I", checksum(bytes(clean)))


def checksum(data: bytes) -> int:
    """Jenkins' lookup3 hash (hashlittle, initial value 0), which HDF5 uses for its metadata."""
    a = b = c = (0xDEADBEEF + len(data)) & 0xFFFFFFFF
    blocks = max(0, (len(data) - 1) // 12)
    for x, y, z in struct.iter_unpack("<3I", data[: 12 * blocks]):
        a, b, c = _mix(a + x, b + y, c + z)
    if not data:
        return c
    x, y, z = struct.unpack("<3I", data[12 * blocks :].ljust(12, b"\0"))
    return _finish(a + x, b + y, c + z)


def _turn(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a, c = (a - c) ^ _turn(c, bits), c + b
        a, b, c = b, c, a
    return a & 0xFFFFFFFF, b & 0xFFFFFFFF, c & 0xFFFFFFFF


def _finish(a: int, b: int, c: int) -> int:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _turn(b, bits)) & 0xFFFFFFFF
        a, b, c = b, c, a
    return b


def copy_unmarked(path: Path, handle: int) -> None:
    """Copy a file to an open one, clearing its write marks. Raises OSError, ValueError."""
    with path.open("rb") as source, os.fdopen(os.dup(handle), "wb") as target:
        head = source.read(SIZE)
        if being_written(head):
            head = without_marks(head, os.fstat(source.fileno()).st_size)
        target.write(head)
        while block := source.read(1 << 20):
            target.write(block)


class Unmarked(io.RawIOBase):
    """A file left in SWMR mode, read as if its writer had closed it: h5py.File(Unmarked(path), "r")."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError, and ValueError if the superblock is damaged."""
        super().__init__()
        self._stream = path.open("rb", buffering=0)
        self._bytes = os.fstat(self._stream.fileno()).st_size
        self._head = without_marks(self._stream.read(SIZE), self._bytes)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Any) -> int:
        start = self._stream.tell()
        count: int = self._stream.readinto(buffer) or 0
        if start < SIZE:
            patch = self._head[start : min(SIZE, start + count)]
            memoryview(buffer).cast("B")[: len(patch)] = patch
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()
