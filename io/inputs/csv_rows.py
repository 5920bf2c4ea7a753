"""Reads CSV text: cells, numbers with file, line and column in every error, and tables of configurations."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np

from artsim.io.inputs.array_files import NumberFile, Stored, spooling
from artsim.sim.foundation.angles import plain_number
from artsim.sim.foundation.errors import ModelError, nearest
from artsim.sim.foundation.records import Array

_BLOCK = 1 << 20
_MAX_LINE = 1 << 24


def words_of(where: str, line: str) -> list[str]:
    """The cells of a line. Raises ModelError."""
    import csv

    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:
        raise ModelError(f"{where}: {error}") from None


def number_of(word: str) -> float | None:
    """The number that a word stands for, or None; nan and inf are numbers, 1_000 is not."""
    try:
        return plain_number(word)
    except ValueError:
        return None


class Columns(NamedTuple):
    """The columns of a file: names for messages, and per input the columns of its entries, -1: zero."""

    names: list[str]
    places: Mapping[str, list[int]]


class Header(Protocol):
    """The columns that a kind of file can have, by its first line."""

    def is_header(self, words: Sequence[str]) -> bool:
        """True for a row of names."""

    def by_name(self, where: str, words: list[str]) -> Columns:
        """The columns of a header. Raises ModelError."""

    def by_order(self, where: str, count: int) -> Columns:
        """The columns without a header. Raises ModelError."""


class Names:
    """The columns that a robot's configurations can have: per input its entries' names, qpos first."""

    def __init__(
        self, entries: Mapping[str, Sequence[str]], optional: Sequence[str] = (), ignored: Collection[str] = ()
    ) -> None:
        """Entries without a column are 0 in the `optional` inputs, and an error in others. Columns that are called as
        one of `ignored`, or begin with its name and a dot, are left out.
        """
        self._ignored = ignored
        self._entries, self._optional = entries, optional
        plain = {entry: ("qpos", k) for k, entry in enumerate(entries["qpos"])}
        dotted = {f"{name}.{entry}": (name, k) for name in entries for k, entry in enumerate(entries[name])}
        self._known = plain | {word: place for word, place in dotted.items() if word not in plain}

    def is_header(self, words: Sequence[str]) -> bool:
        """True for a row of names: no word is a number, or the others are columns (a joint may be called 1)."""
        others = [word for word in words if number_of(word) is None]
        if not others:
            return all(word in self._known for word in words)
        return len(others) == len(words) or any(word in self._known or self._is_left_out(word) for word in others)

    def _is_left_out(self, word: str) -> bool:
        return word not in self._known and word.partition(".")[0] in self._ignored

    def by_name(self, where: str, words: list[str]) -> Columns:
        """The columns of a header. Raises ModelError for unknown, duplicate or missing columns."""
        places = {name: [-1] * len(entries) for name, entries in self._entries.items()}
        for column, word in enumerate(words):
            if self._is_left_out(word):
                continue
            if word not in self._known:
                hint = _separator_hint(words) or nearest(word, self._known)
                raise ModelError(f"{where}: column {word[:60]!r} is not known{hint}")
            name, k = self._known[word]
            if places[name][k] >= 0:
                raise ModelError(f"{where}: column {word!r} stands there twice")
            places[name][k] = column
        found = {name: at for name, at in places.items() if name == "qpos" or max(at, default=-1) >= 0}
        for name, at in found.items():
            if -1 in at and name not in self._optional:
                entry = self._entries[name][at.index(-1)]
                raise ModelError(f"{where}: no column {entry if name == 'qpos' else f'{name}.{entry}'!r}")
        return Columns(words, found)

    def by_order(self, where: str, count: int) -> Columns:
        """The columns without a header: qpos, or qpos and qvel. Raises ModelError for any other number of columns."""
        coords, dofs = self._entries["qpos"], self._entries["qvel"]
        nq, nv = len(coords), len(dofs)
        places = {"qpos": list(range(nq))}
        if count == nq + nv:
            places["qvel"] = list(range(nq, nq + nv))
        elif count != nq:
            want = f"{nq} (qpos), {nq + nv} (qpos, qvel) or a first line that names them"
            raise ModelError(f"{where}: {count} columns, want {want}")
        return Columns([*coords, *(f"qvel.{dof}" for dof in dofs)][:count], places)


def _separator_hint(words: Sequence[str]) -> str:
    return "; separate columns by commas" if len(words) == 1 and any(c in words[0] for c in ";\t ") else ""


class CsvRows(NamedTuple):
    """A CSV file, parsed: its columns, and per input its rows."""

    columns: Columns
    arrays: Mapping[str, Stored]


def read_csv(stream: BinaryIO, name: str, names: Header) -> CsvRows:
    """Parse a CSV file block by block into a temporary file per input.

    Raises ModelError with file, line and column; StorageError when there is no room for the rows.
    """
    blocks = _blocks(stream, name)
    first, block = next(blocks, (1, b""))
    columns, first, block = _header(name, first, block.removeprefix(b"\xef\xbb\xbf"), names)
    rows = 0
    with ExitStack() as stack:
        files = {key: stack.enter_context(spooling(name)) for key in columns.places}
        for line, lines in chain([(first, block)], blocks):
            numbers = _numbers(name, line, lines, columns.names)
            rows += len(numbers)
            for key, places in columns.places.items():
                files[key].write(_pick(numbers, places).tobytes())
    arrays = {}
    for key, file in files.items():
        shape = (rows, len(columns.places[key]))
        arrays[key] = Stored(shape, np.dtype(np.float64), partial(_spooled, file, name))
    return CsvRows(columns, arrays)


def _spooled(file: BinaryIO, name: str, shape: tuple[int, ...]) -> NumberFile:
    return NumberFile(file.fileno(), name, 0, shape, owner=file)


def _pick(numbers: Array, places: Sequence[int]) -> Array:
    """The columns at these places; zeros for -1."""
    picked: Array = numbers[:, places]
    picked[:, [place < 0 for place in places]] = 0.0
    return picked


def _blocks(stream: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line."""
    line, rest = 1, b""
    while data := stream.read(_BLOCK):
        end = data.rfind(b"\n") + 1
        if end:
            block = rest + data[:end]
            yield line, block
            line, rest = line + block.count(b"\n"), data[end:]
        else:
            rest += data
        if len(rest) > _MAX_LINE:
            raise ModelError(f"{name}:{line}: more than {_MAX_LINE} bytes without a line end")
    if rest:
        yield line, rest


def _header(name: str, first: int, block: bytes, names: Header) -> tuple[Columns, int, bytes]:
    """The columns, and the remaining rows of the first block with the number of their first line."""
    start = 0
    for number, line in enumerate(block.split(b"\n"), first):
        where, end = f"{name}:{number}", start + len(line) + 1
        if text := _text(where, line).strip():
            # numpy.savetxt writes names behind a #
            words = [word.strip() for word in words_of(where, text.removeprefix("#"))]
            if names.is_header(words):
                return names.by_name(where, words), number + 1, block[end:]
            return names.by_order(where, len(words)), number, block[start:]
        start = end
    raise ModelError(f"{name}: is empty; want rows, or at least a line that names the columns")


def _text(where: str, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise ModelError(f"{where}: is not UTF-8 text") from None


def _numbers(name: str, first: int, lines: bytes, columns: list[str]) -> Array:
    """The rows (n, columns), by numpy's fast reader or, if it fails, row by row to locate the error."""
    if not lines.strip():
        return np.empty((0, len(columns)))
    try:
        numbers = np.loadtxt(io.BytesIO(lines), delimiter=",", comments=None, ndmin=2, encoding="latin1")
        if numbers.shape[1] == len(columns):
            return numbers
    except ValueError:
        pass
    rows = [
        _row(f"{name}:{number}", line, columns) for number, line in enumerate(lines.split(b"\n"), first) if line.strip()
    ]
    return np.array(rows, np.float64).reshape(-1, len(columns))


def _row(where: str, line: bytes, columns: list[str]) -> list[float]:
    words = words_of(where, _text(where, line).strip())
    if len(words) != len(columns):
        raise ModelError(f"{where}: {len(words)} values, want {len(columns)}")
    row = [number_of(word) for word in words]
    for column, word, number in zip(columns, words, row, strict=True):
        if number is None:
            raise ModelError(f"{where}: column {column!r}: {word.strip()[:60]!r} is not a number")
    return [number for number in row if number is not None]
