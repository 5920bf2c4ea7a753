"""Writes results for many configurations as CSV, to a file or to standard output, in the order of the rows."""

from __future__ import annotations

import csv
import io
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from artsim.io.exports.tables import harmless
from artsim.io.format.labels import entry_names, labels_of
from artsim.io.output_file.batch_file import Content
from artsim.io.output_file.claim import check_output, claim
from artsim.io.output_file.failure import reason
from artsim.io.output_file.whole_file import put_in_place
from artsim.sim.foundation.errors import StorageError
from artsim.sim.foundation.records import Array

STDOUT = "-"


def output_in_words(path: str | os.PathLike[str]) -> str:
    """The name of an output, as messages have it."""
    return "standard output" if os.fspath(path) == STDOUT else os.fspath(path)


def is_csv(path: str | os.PathLike[str]) -> bool:
    """True if results of this name are written as CSV."""
    return os.fspath(path) == STDOUT or Path(path).suffix.lower() == ".csv"


class CsvWriter:
    """Writes a line per row and a column per entry, `gravity.joint_1`, with the numbers of BatchWriter.

    Blocks that come before their turn wait in memory. Numbers can be read back exactly. A file appears when it is
    complete; standard output receives lines as they become known. Raises the errors of BatchWriter.
    """

    def __init__(self, path: str | os.PathLike[str], content: Content, *, force: bool = False) -> None:
        self.path, self._content = Path(path), content
        self._partial: Path | None = None
        self._waiting: dict[int, tuple[int, bytes]] = {}
        self._next, self.bytes = 0, 0
        self._lock = threading.Lock()
        self._stream: BinaryIO
        if os.fspath(path) == STDOUT:
            self._stream = sys.stdout.buffer
        else:
            check_output(self.path, force=force)
            self._partial = self.path.with_name(self.path.name + ".partial")
            self._stream = os.fdopen(claim(self._partial), "r+b")
            self._stream.truncate(0)
        self._put(_lines([[harmless(name) for name in columns_of(content)]]))

    def write(self, start: int, rows: int, block: Mapping[str, Array]) -> None:
        """Write rows start … start + rows from a block's first rows, from any thread. Raises StorageError."""
        parts = []
        for name, column in self._content.columns.items():
            values = block[name][:rows].reshape(rows, -1)
            if column.dtype == "f4":  # as many digits as single precision has
                with np.errstate(over="ignore"):
                    values = values.astype(np.float32).astype(str).astype(object)
            parts.append(values.astype(object))
        text = _lines(np.concatenate(parts, axis=1).tolist())
        with self._lock:
            self._waiting[start] = rows, text
            while self._next in self._waiting:
                count, ready = self._waiting.pop(self._next)
                self._put(ready)
                self._next += count

    def commit(self) -> None:
        """Finish the file and give it its final name. Raises StorageError."""
        try:
            self._stream.flush()
            if self._partial is not None:
                put_in_place(self._partial, self.path)
                self._stream.close()
                self._partial = None
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StorageError(f"{self.path}: cannot finish the file: {reason(error)}") from None

    def discard(self) -> None:
        """Give up and remove an unfinished file."""
        if self._partial is not None:
            with suppress(OSError):
                self._stream.close()
            self._partial.unlink(missing_ok=True)
            self._partial = None

    def __enter__(self) -> CsvWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.discard()

    def _put(self, text: bytes) -> None:
        try:
            self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            where = f"{self.path}: writing stopped after {self._next} of {self._content.rows} rows"
            raise StorageError(f"{where}: {reason(error)}") from None
        self.bytes += len(text)


def columns_of(content: Content) -> list[str]:
    """The names of all columns: a variable's name, and the labels of its entry."""
    names: list[str] = []
    for name, column in content.columns.items():
        names += entry_names((labels_of(dim, content.labels) for dim in column.dims), name)
    return names


def _lines(rows: list[list[object]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
