"""Control files as CSV text, read into an InputTable."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np

from artsim.io.inputs.csv_rows import number_of, words_of
from artsim.io.inputs.input_table import SUFFIXES, InputTable, Names, check_time, index_of
from artsim.sim.foundation.errors import ModelError, nearest
from artsim.sim.foundation.rotations import Real


def parse_csv(path: Path, data: bytes, names: Names) -> InputTable:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    lines = text.splitlines()
    header_line = next((number for number, line in enumerate(lines) if line.strip()), None)
    if header_line is None:
        raise ModelError(f"{path}: is empty")
    header = [word.strip() for word in words_of(f"{path}:{header_line + 1}", lines[header_line])]
    columns = _csv_columns(path, header_line + 1, header, names)
    numbers = _csv_numbers(path, lines, header_line + 1, header)
    check_time(path, numbers[:, 0], "row")
    by_kind: dict[str, tuple[list[int], list[int]]] = {}
    for column, (kind, dof) in enumerate(columns, start=1):
        dofs, places = by_kind.setdefault(kind, ([], []))
        dofs.append(dof)
        places.append(column)
    return InputTable(numbers[:, 0], {kind: (dofs, numbers[:, places]) for kind, (dofs, places) in by_kind.items()})


def _csv_columns(path: Path, line: int, header: list[str], names: Names) -> list[tuple[str, int]]:
    """The input of each column after the first: (kind, index of the dof or actuator)."""
    if header[0] != "time":
        hint = "; separate columns by commas" if ";" in header[0] or "\t" in header[0] else ""
        raise ModelError(f"{path}:{line}: the first column is {header[0]!r}, want 'time'{hint}")
    columns = []
    wanted = "<joint>.target, <joint>.velocity, <joint>.acceleration, <joint>.torque, <link>.fx, …" + (
        " or an actuator" if names.actuators else ""
    )
    for word in header[1:]:
        if word in names.actuators:
            columns.append(("control", names.actuators.index(word)))
            continue
        joint, dot, suffix = word.rpartition(".")
        if not dot or suffix not in SUFFIXES:
            raise ModelError(f"{path}:{line}: column {word!r}: want {wanted}{nearest(word, names.actuators)}")
        columns.append((SUFFIXES[suffix], index_of(f"{path}:{line}", "joint", joint, names.dofs)))
    if not columns:
        raise ModelError(f"{path}:{line}: want {wanted} beside time")
    if len(set(columns)) < len(columns):
        twice = next(word for word in header if header.count(word) > 1)
        raise ModelError(f"{path}:{line}: column {twice!r} stands there twice")
    return columns


def _csv_numbers(path: Path, lines: list[str], skip: int, header: list[str]) -> Real:
    """The rows (n, columns), by numpy's reader (20 times as fast) or, if it fails, row by row to locate the error."""
    try:
        if not any(line.strip() for line in lines[skip:]):
            return np.empty((0, len(header)))
        body = io.StringIO("\n".join(lines[skip:]))
        numbers = np.loadtxt(body, delimiter=",", comments=None, ndmin=2, dtype=np.float64)
        if numbers.shape[0] and numbers.shape[1] == len(header) and np.isfinite(numbers).all():
            return numbers
    except ValueError:
        pass
    rows = [_csv_row(path, number, line, header) for number, line in enumerate(lines[skip:], skip + 1) if line.strip()]
    return np.array(rows, dtype=np.float64).reshape(-1, len(header))


def _csv_row(path: Path, number: int, line: str, header: list[str]) -> list[float]:
    words = words_of(f"{path}:{number}", line)
    if len(words) != len(header):
        raise ModelError(f"{path}:{number}: {len(words)} values, want {len(header)} as in the header")
    return [_csv_number(path, number, name, word) for name, word in zip(header, words, strict=True)]


def _csv_number(path: Path, number: int, name: str, word: str) -> float:
    value = number_of(word)
    if value is None or not math.isfinite(value):
        raise ModelError(f"{path}:{number}: column {name!r}: {word.strip()!r} is not a finite number")
    return value
