"""Control files: joint torques and drive targets over time, from .csv, .npz or .h5."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from artsim.io.csv_rows import number_of, words_of
from artsim.io.tables import npy_header
from artsim.sim.controls import VALUES, Controls
from artsim.sim.errors import MissingInputError, ModelError, UsageError, nearest

if TYPE_CHECKING:
    import zipfile

    import h5py

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_FILE_BYTES = 1 << 30
_SUFFIXES = {"torque": "torque", "target": "target", "velocity": "target_velocity"}


# ---- control files


def read_controls(
    path: str | os.PathLike[str],
    dof_names: Sequence[str],
    dt: float,
    *,
    torque: FloatArray | None = None,
    target: FloatArray | None = None,
    target_velocity: FloatArray | None = None,
) -> Controls:
    """Read a .csv, .npz or .h5 control file for a robot with these dofs; a row acts from the first step at its time.

    CSV: a column `time` [s], then `<dof>.target`, `<dof>.velocity` or `<dof>.torque`. Arrays: `time` (rows,), any of
    `target`, `velocity`, `torque` (rows, n), and `names` (n,) unless n is the number of dofs. An artsim run file gives
    its own inputs. What the file does not name keeps `torque`, `target`, `target_velocity` (nv,), by default 0.

    Raises MissingInputError (66), ModelError (65: malformed, not finite, time not increasing; with row and column),
    UsageError (2: unknown dof, wrong number of columns for the robot).
    """
    where = Path(path)
    names = tuple(dof_names)
    held = _held(len(names), torque, target, target_velocity)
    readers = {".csv": _read_csv, ".npz": _read_npz, ".h5": _read_h5, ".hdf5": _read_h5}
    reader = readers.get(where.suffix.lower())
    if reader is None:
        raise UsageError(f"{path}: cannot tell what it is; control files end in .csv, .npz or .h5")
    _check_readable(where)
    return _controls(where, reader(where, names), len(names), dt, held)


def read_run_controls(
    path: str | os.PathLike[str],
    dof_names: Sequence[str],
    dt: float,
    *,
    torque: FloatArray | None = None,
    target: FloatArray | None = None,
    target_velocity: FloatArray | None = None,
) -> Controls:
    """The inputs of an artsim run file of any name, for a robot with these dofs; see `read_controls`."""
    where, names = Path(path), tuple(dof_names)
    held = _held(len(names), torque, target, target_velocity)
    return _controls(where, _run_inputs(where, names), len(names), dt, held)


def _held(nv: int, *rows: FloatArray | None) -> dict[str, FloatArray]:
    values = [np.zeros(nv) if row is None else np.asarray(row, np.float64) for row in rows]
    return dict(zip(VALUES, values, strict=True))


class _Table(NamedTuple):
    """A control file as numbers: times (rows,) [s], and per kind of input the dof indices and values (rows, n)."""

    time: FloatArray
    columns: Mapping[str, tuple[list[int], FloatArray]]


def _check_readable(path: Path) -> None:
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "no such file"
            raise MissingInputError(f"{path}: {what}")
        size = path.stat().st_size
        path.open("rb").close()
    except (OSError, ValueError) as error:
        raise MissingInputError(f"{path}: cannot read: {getattr(error, 'strerror', None) or error}") from None
    if size > MAX_FILE_BYTES and path.suffix.lower() not in (".h5", ".hdf5"):  # there each array has this bound
        raise ModelError(f"{path}: {size} bytes; control files are read up to {MAX_FILE_BYTES}")


def _controls(path: Path, table: _Table, nv: int, dt: float, held: Mapping[str, FloatArray]) -> Controls:
    """Times to steps: a row acts from the first step that does not begin before it; of several on a step, the last."""
    steps = table.time / dt
    if steps[-1] >= 2**53:
        raise ModelError(f"{path}: time {table.time[-1]} s is beyond every run")
    slack = 1e-9 + 1e-15 * steps  # time / dt is off by its rounding, which passes 1e-9 after some 10^6 steps
    start = np.ceil(steps - slack).astype(np.int64)
    last = np.append(np.diff(start) > 0, True)
    values = {name: np.tile(row, (start.size, 1)) for name, row in held.items()}
    for name, (indices, numbers) in table.columns.items():
        values[name][:, indices] = numbers
    start, values = start[last], {name: rows[last] for name, rows in values.items()}
    if start[0] > 0:
        start = np.insert(start, 0, 0)
        values = {name: np.vstack((held[name], rows)) for name, rows in values.items()}
    return Controls(start, **values)


def _check_time(path: Path, time: FloatArray, row_name: str) -> None:
    """Raise ModelError unless times are finite, not negative and increasing."""
    if time.size == 0:
        raise ModelError(f"{path}: holds no row")
    bad = np.flatnonzero(~np.isfinite(time) | (time < 0))
    if bad.size:
        raise ModelError(f"{path}: {row_name} {bad[0] + 1}: time is {time[bad[0]]}; times are finite and start at 0")
    back = np.flatnonzero(np.diff(time) <= 0)
    if back.size:
        row = int(back[0]) + 1
        raise ModelError(
            f"{path}: {row_name} {row + 1}: time {time[row]} does not follow {time[row - 1]}; times increase"
        )


def _dof_index(path: Path | str, name: str, names: tuple[str, ...]) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise UsageError(f"{path}: unknown joint {name!r}{nearest(name, names)}") from None


# ---- CSV


def _read_csv(path: Path, names: tuple[str, ...]) -> _Table:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    lines = text.splitlines()
    header_line = next((number for number, line in enumerate(lines) if line.strip()), None)
    if header_line is None:
        raise ModelError(f"{path}: is empty")
    header = [word.strip() for word in words_of(f"{path}:{header_line + 1}", lines[header_line])]
    columns = _csv_columns(path, header_line + 1, header, names)
    numbers = _csv_numbers(path, lines, header_line + 1, header)
    _check_time(path, numbers[:, 0], "row")
    by_kind: dict[str, tuple[list[int], list[int]]] = {}
    for column, (kind, dof) in enumerate(columns, start=1):
        dofs, places = by_kind.setdefault(kind, ([], []))
        dofs.append(dof)
        places.append(column)
    return _Table(numbers[:, 0], {kind: (dofs, numbers[:, places]) for kind, (dofs, places) in by_kind.items()})


def _csv_columns(path: Path, line: int, header: list[str], names: tuple[str, ...]) -> list[tuple[str, int]]:
    """What each column after the first drives: (kind, dof index)."""
    if header[0] != "time":
        hint = "; separate columns by commas" if ";" in header[0] or "\t" in header[0] else ""
        raise ModelError(f"{path}:{line}: the first column is {header[0]!r}, want 'time'{hint}")
    columns = []
    for word in header[1:]:
        joint, dot, suffix = word.rpartition(".")
        if not dot or suffix not in _SUFFIXES:
            raise ModelError(f"{path}:{line}: column {word!r}: want <joint>.target, <joint>.velocity or <joint>.torque")
        columns.append((_SUFFIXES[suffix], _dof_index(f"{path}:{line}", joint, names)))
    if not columns:
        raise ModelError(f"{path}:{line}: want <joint>.target, <joint>.velocity or <joint>.torque beside time")
    if len(set(columns)) < len(columns):
        twice = next(word for word in header if header.count(word) > 1)
        raise ModelError(f"{path}:{line}: column {twice!r} stands there twice")
    return columns


def _csv_numbers(path: Path, lines: list[str], skip: int, header: list[str]) -> FloatArray:
    """The rows (n, columns). numpy's reader is 20 times as fast; row by row where it refuses, to say where and why."""
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


# ---- arrays


def _read_npz(path: Path, names: tuple[str, ...]) -> _Table:
    """Arrays of a .npz; never unpickles, and refuses an archive that unpacks to more than it may."""
    import zipfile  # 4 ms that a run without a control file need not spend

    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = {member.filename.removesuffix(".npy"): member.file_size for member in archive.infolist()}
            if sum(unpacked.values()) > MAX_FILE_BYTES:
                raise ModelError(
                    f"{path}: unpacks to {sum(unpacked.values())} bytes; at most {MAX_FILE_BYTES} are read"
                )
            arrays = {name: _read_npy(archive, name) for name in unpacked if name in ("time", "names", *_SUFFIXES)}
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{path}: is no readable .npz archive: {error}") from None
    return _table(path, arrays, list(unpacked), names)


def _read_npy(archive: zipfile.ZipFile, name: str) -> Array:
    """One array; its declared size is compared with the archive's before numpy makes room for it."""
    size = archive.getinfo(f"{name}.npy").file_size
    with archive.open(f"{name}.npy") as stream:
        header = npy_header(stream)
    if header.end > size:
        raise ValueError(f"{name} declares the shape {header.shape}, but holds {size} bytes")
    with archive.open(f"{name}.npy") as stream:
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _read_h5(path: Path, names: tuple[str, ...]) -> _Table:
    """Arrays at the root of an HDF5 file, or the inputs of an artsim run on the same robot."""
    from artsim.io.reader import open_checked, reading

    with open_checked(path) as file, reading(path):
        if "artsim_schema" not in file.attrs:
            arrays = {name: _h5_array(path, file[name]) for name in ("time", "names", *_SUFFIXES) if name in file}
            return _table(path, arrays, list(file), names)
    return _run_inputs(path, names)


def _h5_array(path: Path, dataset: h5py.Dataset) -> Array:
    from artsim.io.reader import read_texts

    if dataset.dtype.kind in "SO":
        return np.array(read_texts(path, dataset), dtype=np.str_)
    if dataset.nbytes > MAX_FILE_BYTES:
        raise ModelError(f"{path}: {dataset.name} unpacks to {dataset.nbytes} bytes; at most {MAX_FILE_BYTES} are read")
    array: Array = dataset[()]
    return array


def _run_inputs(path: Path, names: tuple[str, ...]) -> _Table:
    from artsim.io.reader import open_recording

    with open_recording(path) as recording:
        if recording.labels.dof != names:
            other = ", ".join(sorted(set(recording.labels.dof) ^ set(names))[:4]) or "their order"
            raise UsageError(f"{path}: its inputs are for another robot; differing joints: {other}")
        inputs = recording.controls
        if not inputs.start_step.size:
            raise ModelError(f"{path}: holds no inputs: its run failed before the first step")
        time = inputs.start_step.astype(np.float64) * recording.dt
        every_dof = list(range(len(names)))
        return _Table(time, {name: (every_dof, getattr(inputs, name)) for name in VALUES})


def _table(path: Path, arrays: Mapping[str, Array], present: list[str], names: tuple[str, ...]) -> _Table:
    kinds = [name for name in _SUFFIXES if name in arrays]
    if "time" not in arrays or not kinds:
        raise ModelError(f"{path}: want arrays time and target, velocity or torque; it holds {', '.join(present[:8])}")
    time = _numbers(path, "time", arrays["time"], 1)
    _check_time(path, time, "time, entry")
    labels = _array_names(path, arrays["names"]) if "names" in arrays else names
    dofs = [_dof_index(path, name, names) for name in labels]
    if len(set(dofs)) < len(dofs):
        raise ModelError(f"{path}: names has {next(name for name in labels if labels.count(name) > 1)!r} twice")
    columns = {}
    for name in kinds:
        numbers = _numbers(path, name, arrays[name], 2)
        if numbers.shape != (time.size, len(labels)):
            want = f"({time.size}, {len(labels)}): times, {'names' if 'names' in arrays else 'degrees of freedom'}"
            raise UsageError(f"{path}: {name} has shape {numbers.shape}, want {want}")
        bad = np.argwhere(~np.isfinite(numbers))
        if bad.size:
            row, column = (int(index) for index in bad[0])
            what = f"{name} of {labels[column]!r}, row {row + 1}, column {column + 1}"
            raise ModelError(f"{path}: {what}: {numbers[row, column]} is not a finite number")
        columns[_SUFFIXES[name]] = (dofs, numbers)
    return _Table(time, columns)


def _numbers(path: Path, name: str, array: Array, ndim: int) -> FloatArray:
    if array.dtype.kind not in "fiu" or array.ndim != ndim:
        raise ModelError(f"{path}: {name} is {array.dtype} with {array.ndim} dimensions, want numbers with {ndim}")
    return array.astype(np.float64)


def _array_names(path: Path, array: Array) -> tuple[str, ...]:
    if array.dtype.kind not in "USO" or array.ndim != 1:
        raise ModelError(f"{path}: names is {array.dtype} with {array.ndim} dimensions, want a list of texts")
    return tuple(entry.decode("utf-8", "replace") if isinstance(entry, bytes) else str(entry) for entry in array)
