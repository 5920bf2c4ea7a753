"""Reads control files (joint torques, drive targets and controls over time) from .csv, .npz or .h5 into Controls."""

from __future__ import annotations

import io
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from artsim.io.csv_rows import number_of, words_of
from artsim.io.interpolation import HELD, Interpolation
from artsim.io.tables import npy_header
from artsim.sim.equipment.build_link_wrenches import COMPONENTS
from artsim.sim.foundation.errors import ArtsimError, MissingInputError, ModelError, UsageError, listed, nearest
from artsim.sim.foundation.files import read_start
from artsim.sim.runs.configuration import HOLD
from artsim.sim.runs.controls import VALUES, Controls

if TYPE_CHECKING:
    import zipfile

    import h5py

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_FILE_BYTES = 1 << 30
STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
SUFFIXES = {
    "torque": "torque",
    "target": "target",
    "velocity": "target_velocity",
    "acceleration": "target_acceleration",
}
ARRAYS = (*SUFFIXES, "control")
WRENCHES, LINKS = "wrench", "links"  # arrays of wrenches on links, and which these are
_KNOWN = ("time", "names", "actuators", LINKS, WRENCHES, *ARRAYS)


class _Names(NamedTuple):
    """Names of the possible inputs: dofs, and controls of actuators, of which wrenches on links are the last."""

    dofs: tuple[str, ...]
    actuators: tuple[str, ...]


# ---- control files


def read_controls(
    path: str | os.PathLike[str],
    dof_names: Sequence[str],
    dt: float,
    *,
    torque: FloatArray | None = None,
    target: FloatArray | None = None,
    target_velocity: FloatArray | None = None,
    target_acceleration: FloatArray | None = None,
    control: FloatArray | None = None,
    actuators: Sequence[str] = (),
    interpolation: Interpolation = HELD,
) -> Controls:
    """Read a .csv, .npz or .h5 control file for a robot with these dofs; a row acts from the first step at its time.

    CSV: a column `time` [s], then `<dof>.target`, `<dof>.velocity`, `<dof>.acceleration` (of computed torque),
    `<dof>.torque`, or the name of one of `actuators`, among which are `<link>.fx`, `.fy`, `.fz` [N] and `.tx`, `.ty`,
    `.tz` [N m] for links with wrenches. Arrays: `time` (rows,), any of `target`, `velocity`, `acceleration`, `torque`
    (rows, n), with `names` (n,) unless n is the number of dofs, `control` (rows, n) with `actuators` (n,) unless n is
    the number of actuators, and `wrench` (rows, n, 6) with `links` (n,); or arrays (rows,) called as the columns of
    CSV. An artsim run file gives its own inputs. `-` and pipes of the shell are read as CSV. Inputs that the file does
    not name keep `torque`, `target`, `target_velocity`, `target_acceleration` (nv,) and `control` (actuators,), by
    default 0.

    Raises MissingInputError (66), ModelError (65: malformed, not finite, time not increasing; with row and column),
    UsageError (2: unknown dof, wrong number of columns for the robot).
    """
    where = Path(path)
    names = _Names(tuple(dof_names), tuple(actuators))
    held = _held(names, torque, target, target_velocity, target_acceleration, control)
    if is_stream(str(path)):
        name = Path("<stdin>" if str(path) == "-" else path)
        return controls_of(name, _parse_csv(name, _stream_bytes(str(path)), names), dt, held, interpolation)
    readers = {".csv": _read_csv, ".npz": _read_npz, ".h5": _read_h5, ".hdf5": _read_h5}
    reader = readers.get(where.suffix.lower())
    if reader is None:
        raise UsageError(f"{path}: cannot tell what it is; control files end in .csv, .npz or .h5")
    _check_readable(where)
    return controls_of(where, reader(where, names), dt, held, interpolation)


def read_run_controls(
    path: str | os.PathLike[str],
    dof_names: Sequence[str],
    dt: float,
    *,
    torque: FloatArray | None = None,
    target: FloatArray | None = None,
    target_velocity: FloatArray | None = None,
    target_acceleration: FloatArray | None = None,
    control: FloatArray | None = None,
    actuators: Sequence[str] = (),
) -> Controls:
    """The inputs of an artsim run file of any name, for a robot with these dofs; see `read_controls`."""
    where, names = Path(path), _Names(tuple(dof_names), tuple(actuators))
    held = _held(names, torque, target, target_velocity, target_acceleration, control)
    return controls_of(where, _run_inputs(where, names), dt, held)


def read_sample_controls(
    path: str | os.PathLike[str],
    samples: int,
    dof_names: Sequence[str],
    dt: float,
    *,
    torque: FloatArray,
    target: FloatArray,
    target_velocity: FloatArray,
    target_acceleration: FloatArray,
    control: FloatArray,
    actuators: Sequence[str] = (),
    interpolation: Interpolation = HELD,
) -> list[Controls]:
    """Read a control file for many runs: one Controls for all, or one for each if arrays have a dimension for samples.

    These are `target`, `velocity`, `acceleration`, `torque` or `control` of shape (samples, rows, n) in a .npz or .h5
    file, with `time` (rows,) and everything else that `read_controls` takes. Raises what it raises; UsageError: wrong
    number of samples.
    """
    where, names = Path(path), _Names(tuple(dof_names), tuple(actuators))
    held = _held(names, torque, target, target_velocity, target_acceleration, control)
    arrays = _arrays_by_sample(where, names)
    if not arrays:
        given = dict(zip(VALUES, (torque, target, target_velocity, target_acceleration, control), strict=True))
        return [read_controls(path, dof_names, dt, actuators=actuators, interpolation=interpolation, **given)]
    for name, values in arrays.items():
        if values.ndim == 3 and len(values) != samples:
            raise UsageError(f"{path}: {name} has shape {values.shape}: want {samples} samples first")
    controls = []
    for k in range(samples):
        own = {name: values[k] if values.ndim == 3 else values for name, values in arrays.items()}
        controls.append(controls_of(where, _table(where, own, list(arrays), names), dt, held, interpolation))
    return controls


def _arrays_by_sample(path: Path, names: _Names) -> dict[str, Array]:
    """The arrays of a file if some have a dimension for samples; empty for any other control file."""
    _check_readable(path)
    if path.suffix.lower() == ".npz":
        arrays = _npz_arrays(path, names)[0]
    elif path.suffix.lower() in (".h5", ".hdf5"):
        arrays = _h5_arrays(path, names)
    else:
        return {}
    sampled = any(values.ndim == 3 for name, values in arrays.items() if name != WRENCHES)
    return arrays if sampled else {}


def _held(names: _Names, *rows: FloatArray | None) -> dict[str, FloatArray]:
    sizes = (*[len(names.dofs)] * 4, len(names.actuators))
    values = [np.zeros(n) if row is None else np.asarray(row, np.float64) for n, row in zip(sizes, rows, strict=True)]
    return dict(zip(VALUES, values, strict=True))


class InputTable(NamedTuple):
    """A control file as numbers: times (rows,) [s], per kind of input the dofs (or actuators) and values (rows, n)."""

    time: FloatArray
    columns: Mapping[str, tuple[list[int], FloatArray]]


_read_ahead: dict[str, bytes] = {}  # of streams, which can be read once only, until their inputs are read


def links_pushed(path: str | os.PathLike[str], links: Sequence[str]) -> list[str]:
    """Those of `links` on which a control file has wrenches; none of a file that `read_controls` will refuse."""
    columns = [f"{link}.{component}" for link in links for component in COMPONENTS]
    try:
        present = _names_in(path)
    except ArtsimError:
        return []
    found = {name.rpartition(".")[0] for name in set(columns) & set(present)}
    return [link for link in links if link in found or link in present]


def _names_in(path: str | os.PathLike[str]) -> set[str]:
    """The names of a file's columns or arrays, and of the links of its array of wrenches."""
    if is_stream(str(path)):
        _read_ahead[str(path)] = data = _stream_bytes(str(path))
        return _header_of(data)
    where = Path(path)
    if where.suffix.lower() not in (".csv", ".npz", ".h5", ".hdf5"):
        return set()
    _check_readable(where)
    if where.suffix.lower() == ".csv":
        return _header_of(read_start(where, MAX_FILE_BYTES))
    nobody = _Names((), ())
    if where.suffix.lower() == ".npz":
        arrays, present = _npz_arrays(where, nobody)
    else:
        from artsim.io.reader import open_checked, open_recording, reading

        with open_checked(where) as file, reading(where):
            of_run = "artsim_schema" in file.attrs
            present = list(file)
        if of_run:
            with open_recording(where) as recording:
                return set(recording.labels.controls)
        arrays = _h5_arrays(where, nobody)
    pushed = _array_names(where, arrays[LINKS]) if LINKS in arrays else ()
    return {*present, *pushed}


def _header_of(data: bytes) -> set[str]:
    """The words of a CSV text's first line that is not empty."""
    line = next((line for line in data.decode("utf-8-sig", "replace").splitlines() if line.strip()), "")
    return {word.strip() for word in line.split(",")}


def is_stream(text: str) -> bool:
    """True if a name stands for standard input or a pipe of the shell, `--control <(…)`."""
    return text == "-" or text.startswith(STREAMS)


def _stream_bytes(text: str) -> bytes:
    """All bytes of a stream. Raises MissingInputError, ModelError for too many, UsageError for those of no CSV."""
    if text in _read_ahead:
        return _read_ahead.pop(text)
    try:
        with sys.stdin.buffer if text == "-" else Path(text).open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, AttributeError) as error:
        raise MissingInputError(f"{text}: cannot read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ModelError(f"{text}: more than {MAX_FILE_BYTES} bytes")
    if data.startswith((b"PK\x03\x04", b"\x89HDF")):
        raise UsageError(f"{text}: streams are read as CSV; give the name of a .npz or .h5 file")
    return data


def _check_readable(path: Path) -> None:
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "no such file"
            raise MissingInputError(f"{path}: {what}")
        size = path.stat().st_size
        path.open("rb").close()
    except ArtsimError:
        raise
    except (OSError, ValueError) as error:
        raise MissingInputError(f"{path}: cannot read: {getattr(error, 'strerror', None) or error}") from None
    if size > MAX_FILE_BYTES and path.suffix.lower() not in (".h5", ".hdf5"):  # in HDF5 this bounds each array
        raise ModelError(f"{path}: {size} bytes; control files are read up to {MAX_FILE_BYTES}")


def controls_of(
    path: Path,
    table: InputTable,
    dt: float,
    held: Mapping[str, FloatArray],
    interpolation: Interpolation = HELD,
) -> Controls:
    """Convert times to steps: a row acts from the first step that does not begin before it; the last of a step wins.

    Interpolated inputs of a step are those at its beginning.
    """
    steps = table.time / dt
    if steps[-1] >= 2**53:
        raise ModelError(f"{path}: time {table.time[-1]} s is beyond every run")
    slack = 1e-9 + 1e-15 * steps  # rounding of time / dt, which exceeds 1e-9 after some 10^6 steps
    start = np.ceil(steps - slack).astype(np.int64)
    if interpolation.kind == HOLD:
        last = np.append(np.diff(start) > 0, True)
        start, columns = start[last], {name: (at, rows[last]) for name, (at, rows) in table.columns.items()}
    else:
        start = interpolation.steps_between(start, sum(map(len, held.values())))
        columns = {
            name: (at, interpolation.values(table.time, rows, np.float64(dt) * start))
            for name, (at, rows) in table.columns.items()
        }
    values = {name: np.tile(row, (start.size, 1)) for name, row in held.items()}
    for name, (indices, numbers) in columns.items():
        values[name][:, indices] = numbers
    begin = int(start[0])
    if begin > 0:
        start = np.insert(start, 0, 0)
        values = {name: np.vstack((held[name], rows)) for name, rows in values.items()}
    return Controls(start, **values).beginning_at(begin)


def for_every_step(controls: Controls, dt: float, interpolation: Interpolation) -> Controls:
    """Controls between whose rows inputs are interpolated; the same if they are held, or have no row."""
    if interpolation.kind == HOLD or not controls.rows:
        return controls
    values = {name: getattr(controls, name) for name in VALUES}
    columns = {name: (list(range(rows.shape[1])), rows) for name, rows in values.items() if rows.shape[1]}
    held = {name: rows[0] for name, rows in values.items()}
    return controls_of(
        Path("controls"), InputTable(np.float64(dt) * controls.start_step, columns), dt, held, interpolation
    )


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


def _index(path: Path | str, kind: str, name: str, names: tuple[str, ...]) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise UsageError(f"{path}: unknown {kind} {name!r}{nearest(name, names)}") from None


# ---- CSV


def _read_csv(path: Path, names: _Names) -> InputTable:
    return _parse_csv(path, read_start(path, MAX_FILE_BYTES), names)


def _parse_csv(path: Path, data: bytes, names: _Names) -> InputTable:
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
    _check_time(path, numbers[:, 0], "row")
    by_kind: dict[str, tuple[list[int], list[int]]] = {}
    for column, (kind, dof) in enumerate(columns, start=1):
        dofs, places = by_kind.setdefault(kind, ([], []))
        dofs.append(dof)
        places.append(column)
    return InputTable(numbers[:, 0], {kind: (dofs, numbers[:, places]) for kind, (dofs, places) in by_kind.items()})


def _csv_columns(path: Path, line: int, header: list[str], names: _Names) -> list[tuple[str, int]]:
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
        columns.append((SUFFIXES[suffix], _index(f"{path}:{line}", "joint", joint, names.dofs)))
    if not columns:
        raise ModelError(f"{path}:{line}: want {wanted} beside time")
    if len(set(columns)) < len(columns):
        twice = next(word for word in header if header.count(word) > 1)
        raise ModelError(f"{path}:{line}: column {twice!r} stands there twice")
    return columns


def _csv_numbers(path: Path, lines: list[str], skip: int, header: list[str]) -> FloatArray:
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


# ---- arrays


def _read_npz(path: Path, names: _Names) -> InputTable:
    arrays, present = _npz_arrays(path, names)
    return _table(path, arrays, present, names)


def _npz_arrays(path: Path, names: _Names) -> tuple[dict[str, Array], list[str]]:
    """Read the arrays of inputs in a .npz, and all names in it; never unpickles, refuses what unpacks to too much."""
    import zipfile  # takes 4 ms, which runs without a control file save

    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = {member.filename.removesuffix(".npy"): member.file_size for member in archive.infolist()}
            if sum(unpacked.values()) > MAX_FILE_BYTES:
                raise ModelError(
                    f"{path}: unpacks to {sum(unpacked.values())} bytes; at most {MAX_FILE_BYTES} are read"
                )
            arrays = {name: _read_npy(archive, name) for name in unpacked if _is_known(name, names)}
    except ArtsimError:
        raise
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{path}: is no readable .npz archive: {error}") from None
    return arrays, list(unpacked)


def _read_npy(archive: zipfile.ZipFile, name: str) -> Array:
    """Read one array; its declared size is compared with the archive's before numpy allocates it."""
    size = archive.getinfo(f"{name}.npy").file_size
    with archive.open(f"{name}.npy") as stream:
        header = npy_header(stream)
    if header.end > size:
        raise ValueError(f"{name} declares the shape {header.shape}, but holds {size} bytes")
    with archive.open(f"{name}.npy") as stream:
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _read_h5(path: Path, names: _Names) -> InputTable:
    """Read the arrays at the root of an HDF5 file, or the inputs of an artsim run of the same robot."""
    from artsim.io.reader import open_checked, reading

    with open_checked(path) as file, reading(path):
        if "artsim_schema" not in file.attrs:
            arrays = {name: _h5_array(path, file[name]) for name in file if _is_known(name, names)}
            return _table(path, arrays, list(file), names)
    return _run_inputs(path, names)


def _h5_arrays(path: Path, names: _Names) -> dict[str, Array]:
    """Read the arrays at the root of an HDF5 file that artsim did not write."""
    from artsim.io.reader import open_checked, reading

    with open_checked(path) as file, reading(path):
        if "artsim_schema" in file.attrs:
            return {}
        return {name: _h5_array(path, file[name]) for name in file if _is_known(name, names)}


def _h5_array(path: Path, dataset: h5py.Dataset) -> Array:
    from artsim.io.reader import read_texts, read_whole

    if dataset.dtype.kind in "SO":
        return np.array(read_texts(path, dataset), dtype=np.str_)
    return read_whole(path, dataset)


def _run_inputs(path: Path, names: _Names) -> InputTable:
    from artsim.io.reader import open_recording

    with open_recording(path) as recording:
        for kind, theirs, ours in (
            ("joints", recording.labels.dof, names.dofs),
            ("controls", recording.labels.controls, names.actuators),
        ):
            if theirs != ours:
                other = ", ".join(sorted(set(theirs) ^ set(ours))[:4]) or "their order"
                raise UsageError(f"{path}: its inputs are for another robot; differing {kind}: {other}")
        inputs = recording.controls
        if not inputs.start_step.size:
            raise ModelError(f"{path}: holds no inputs: its run failed before the first step")
        time = inputs.start_step.astype(np.float64) * recording.dt
        tables = {name: getattr(inputs, name) for name in VALUES}
        return InputTable(time, {name: (list(range(table.shape[1])), table) for name, table in tables.items()})


def _is_known(name: str, names: _Names) -> bool:
    """True if an array of this name holds inputs: all of a kind, or a column as in CSV."""
    return name in _KNOWN or name in names.actuators or name.rpartition(".")[2] in SUFFIXES


def _single_columns(path: Path, arrays: Mapping[str, Array], names: _Names) -> dict[str, tuple[list[int], list[Array]]]:
    """The arrays (rows,) that are called as columns of CSV: places and numbers by kind."""
    found: dict[str, tuple[list[int], list[Array]]] = {}
    for name in (name for name in arrays if name not in _KNOWN):
        if name in names.actuators:
            kind, place = "control", names.actuators.index(name)
        else:
            joint, _, suffix = name.rpartition(".")
            kind, place = SUFFIXES[suffix], _index(path, "joint", joint, names.dofs)
        places, columns = found.setdefault(kind, ([], []))
        places.append(place)
        columns.append(_numbers(path, name, arrays[name], 1))
    return found


def _table(path: Path, arrays: Mapping[str, Array], present: list[str], names: _Names) -> InputTable:
    arrays = _with_wrench_columns(path, arrays)
    kinds = [name for name in ARRAYS if name in arrays]
    single = _single_columns(path, arrays, names)
    if "time" not in arrays or not (kinds or single):
        raise ModelError(
            f"{path}: want arrays time and target, velocity, acceleration, torque or control, or JOINT.target, …; "
            f"it holds {listed(present, 8)}"
        )
    time = _numbers(path, "time", arrays["time"], 1)
    _check_time(path, time, "time, entry")
    columns = {}
    for kind, (places, parts) in single.items():
        for place, part in zip(places, parts, strict=True):
            if part.shape != time.shape:
                label = (names.actuators if kind == "control" else names.dofs)[place]
                raise UsageError(f"{path}: {kind} of {label!r} has {part.size} entries, want {time.size}, one per time")
        columns[kind] = (places, np.stack(parts, axis=1))
    for name in kinds:
        kind, known, given = (
            ("actuator", names.actuators, "actuators") if name == "control" else ("joint", names.dofs, "names")
        )
        labels = _array_names(path, arrays[given]) if given in arrays else known
        places = [_index(path, kind, label, known) for label in labels]
        if len(set(places)) < len(places):
            raise ModelError(f"{path}: {given} has {next(x for x in labels if labels.count(x) > 1)!r} twice")
        numbers = _numbers(path, name, arrays[name], 2)
        if numbers.shape != (time.size, len(labels)):
            plural = given if given in arrays or name == "control" else "degrees of freedom"
            want = f"({time.size}, {len(labels)}): times, {plural}"
            raise UsageError(f"{path}: {name} has shape {numbers.shape}, want {want}")
        key = SUFFIXES.get(name, name)
        if key in columns:
            raise ModelError(f"{path}: {name} stands there for all and for single joints or actuators")
        columns[key] = (places, numbers)
    _check_finite(path, columns, names)
    return InputTable(time, columns)


def _with_wrench_columns(path: Path, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """The arrays with columns LINK.fx, … in place of `wrench` (rows, n, 6) and `links` (n,)."""
    if WRENCHES not in arrays:
        return arrays
    if LINKS not in arrays:
        raise ModelError(f"{path}: want links, the names of the links, beside {WRENCHES}")
    links, numbers = _array_names(path, arrays[LINKS]), _numbers(path, WRENCHES, arrays[WRENCHES], 3)
    if numbers.shape[1:] != (len(links), len(COMPONENTS)):
        want = f"(times, {len(links)}, {len(COMPONENTS)}): times, links, force and torque"
        raise UsageError(f"{path}: {WRENCHES} has shape {numbers.shape}, want {want}")
    columns = {
        f"{link}.{component}": numbers[:, n, k]
        for n, link in enumerate(links)
        for k, component in enumerate(COMPONENTS)
    }
    return {name: values for name, values in arrays.items() if name not in (WRENCHES, LINKS)} | columns


def _check_finite(path: Path, columns: Mapping[str, tuple[list[int], FloatArray]], names: _Names) -> None:
    """Raise ModelError, with kind, name, row and column, for a number that is not finite."""
    words = {kind: word for word, kind in SUFFIXES.items()}
    for kind, (places, numbers) in columns.items():
        bad = np.argwhere(~np.isfinite(numbers))
        if bad.size:
            row, column = (int(index) for index in bad[0])
            label = (names.actuators if kind == "control" else names.dofs)[places[column]]
            what = f"{words.get(kind, kind)} of {label!r}, row {row + 1}, column {column + 1}"
            raise ModelError(f"{path}: {what}: {numbers[row, column]} is not a finite number")


def _numbers(path: Path, name: str, array: Array, ndim: int) -> FloatArray:
    if array.dtype.kind not in "fiu" or array.ndim != ndim:
        raise ModelError(f"{path}: {name} is {array.dtype} with {array.ndim} dimensions, want numbers with {ndim}")
    return array.astype(np.float64)


def _array_names(path: Path, array: Array) -> tuple[str, ...]:
    if array.dtype.kind not in "USO" or array.ndim != 1:
        raise ModelError(f"{path}: names is {array.dtype} with {array.ndim} dimensions, want a list of texts")
    return tuple(entry.decode("utf-8", "replace") if isinstance(entry, bytes) else str(entry) for entry in array)
