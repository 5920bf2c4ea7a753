"""Spool: rows of a table that come in any order, kept in a nameless file until all are known."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.records import Array

_COPY_BYTES = 1 << 20


class _Part(NamedTuple):
    """Rows that came together: their turn, their number, and where their columns begin in the file."""

    turn: int
    rows: int
    place: int


class Spool:
    """Rows of some columns in parts, which are put in order at the end. Memory: some numbers per part.

    Nothing of it stays behind a process that is killed. Raises OSError.
    """

    def __init__(self, folder: Path, row_bytes: Mapping[str, int]) -> None:
        """`folder`: of the disk that shall hold it. `row_bytes`: of each column."""
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  # closed by `close`
        self._row_bytes = row_bytes
        self._parts: list[_Part] = []
        self._end = 0
        self._lock = threading.Lock()

    @property
    def rows(self) -> int:
        """Number of rows so far."""
        return sum(part.rows for part in self._parts)

    def add(self, turn: int, columns: Sequence[Array]) -> None:
        """Add rows, an array for each column, from any thread; parts follow each other in the order of their turns."""
        rows, data = len(columns[0]), b"".join(np.ascontiguousarray(values).tobytes() for values in columns)
        with self._lock:
            place, self._end = self._end, self._end + len(data)
            if rows:
                self._parts.append(_Part(turn, rows, place))
        view = memoryview(data)
        while len(view):
            done = os.pwrite(self._file.fileno(), view, place + len(data) - len(view))
            view = view[done:]

    def copy(self, write: Callable[[str, int, bytes], None]) -> None:
        """Hand on all rows in order: write(column, first byte in the column, bytes)."""
        before = 0
        for part in sorted(self._parts):
            place = part.place
            for name, size in self._row_bytes.items():
                for start in range(0, part.rows * size, _COPY_BYTES):
                    count = min(_COPY_BYTES, part.rows * size - start)
                    write(name, before * size + start, os.pread(self._file.fileno(), count, place + start))
                place += part.rows * size
            before += part.rows

    def close(self) -> None:
        """Remove the file. Idempotent."""
        self._file.close()
