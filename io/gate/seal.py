"""A seal: a checksum appended to a finished HDF5 file, behind the end that HDF5 knows; HDF5 drops it when it writes.

HDF5 checks its metadata but not its strings: a flipped bit there changes a name, or makes HDF5 search for ever. The
gate of the readers therefore checks the seal before HDF5 opens a file. Rows are left out: they can be gigabytes, and
replaying the run finds the one that differs. A file without a seal (of a killed run, or modified since) is still read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

MAGIC = b"\nartsim seal 1\n\0"
_END = struct.Struct("<32sQ16s")  # digest, number of ranges, MAGIC
_RANGE = struct.Struct("<QQ")
_BLOCK = 1 << 20
_MOST = 1 << 20  # ranges

Range = tuple[int, int]
"""First byte and end (exclusive) of a range."""


def seal(handle: int, spared: Iterable[Range] = ()) -> None:
    """Append the checksum of a finished file, without the `spared` ranges. Raises OSError."""
    size = os.fstat(handle).st_size
    ranges = merged(spared)
    table = b"".join(_RANGE.pack(*one) for one in ranges)
    end = table + _END.pack(_digest(handle, size, ranges, table), len(ranges), MAGIC)
    while end:
        done = os.pwrite(handle, end, size)
        end, size = end[done:], size + done


def is_whole(path: Path) -> bool | None:
    """True if a file is unchanged since it was sealed, None if it has no seal. Raises OSError."""
    with path.open("rb") as stream:
        handle, size = stream.fileno(), os.fstat(stream.fileno()).st_size
        end = os.pread(handle, _END.size, max(0, size - _END.size))
        if len(end) < _END.size:
            return None
        digest, count, magic = _END.unpack(end)
        start = size - _END.size - count * _RANGE.size
        if magic != MAGIC:
            return None
        if count > _MOST or start < 0:
            return False
        table = os.pread(handle, count * _RANGE.size, start)
        ranges: list[Range] = list(_RANGE.iter_unpack(table))
        if any(not a <= b <= start for a, b in ranges) or ranges != merged(ranges):
            return False
        return bool(_digest(handle, start, ranges, table) == digest)


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Sort the ranges and merge those that overlap or touch."""
    found: list[Range] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        elif stop > start:
            found.append((start, stop))
    return found


def _digest(handle: int, size: int, spared: Sequence[Range], table: bytes) -> bytes:
    digest, place = sha256(table), 0
    for start, stop in [*spared, (size, size)]:
        while place < start:
            block = os.pread(handle, min(_BLOCK, start - place), place)
            if not block:
                break
            digest.update(block)
            place += len(block)
        place = max(place, stop)
    return digest.digest()


def chunks_of(datasets: Iterable[Any]) -> list[Range]:
    """Byte ranges of the chunks of h5py's low-level datasets; none before HDF5 1.12.3, which does not list them."""
    found: list[Range] = []
    for dataset in datasets:
        if hasattr(dataset, "chunk_iter"):
            dataset.chunk_iter(lambda chunk: found.append((chunk.byte_offset, chunk.byte_offset + chunk.size)))
    return found
