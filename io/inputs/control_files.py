"""Control files (joint torques, drive targets and controls over time) in .csv, .npz or .h5, read into Controls."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from artsim.io.gate.gate import open_checked
from artsim.io.gate.values import reading
from artsim.io.inputs.control_arrays import (
    LINKS,
    MAX_FILE_BYTES,
    WRENCHES,
    array_names,
    h5_array,
    h5_arrays,
    is_known,
    npz_arrays,
    table_of,
)
from artsim.io.inputs.control_csv import parse_csv
from artsim.io.inputs.input_table import SUFFIXES, InputTable, Names
from artsim.io.inputs.interpolation import HELD, Interpolation
from artsim.io.readers.recording import open_recording
from artsim.sim.equipment.build_link_wrenches import COMPONENTS
from artsim.sim.foundation.errors import ArtsimError, MissingInputError, ModelError, UsageError
from artsim.sim.foundation.files import read_start
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.settings import HOLD

STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def read_controls(
    path: str | os.PathLike[str],
    dof_names: Sequence[str],
    dt: float,
    *,
    actuators: Sequence[str] = (),
    interpolation: Interpolation = HELD,
    **held: Real,
) -> Controls:
    """Read a .csv, .npz or .h5 control file for a robot with these dofs; a row acts from the first step at its time.

    CSV: a column `time` [s], then `<dof>.target`, `<dof>.velocity`, `<dof>.acceleration` (of computed torque),
    `<dof>.torque`, or the name of one of `actuators`, among which are `<link>.fx`, `.fy`, `.fz` [N] and `.tx`, `.ty`,
    `.tz` [N m] for links with wrenches. Arrays: `time` (rows,), any of `target`, `velocity`, `acceleration`, `torque`
    (rows, n), with `names` (n,) unless n is the number of dofs, `control` (rows, n) with `actuators` (n,) unless n is
    the number of actuators, and `wrench` (rows, n, 6) with `links` (n,); or arrays (rows,) called as the columns of
    CSV. An artsim run file gives its own inputs. `-` and pipes of the shell are read as CSV. `held`: inputs that the
    file does not name, of `torque`, `target`, `target_velocity`, `target_acceleration` (nv,) and `control`
    (actuators,); by default 0.

    Raises MissingInputError (66), ModelError (65: malformed, not finite, time not increasing; with row and column),
    UsageError (2: unknown dof, wrong number of columns for the robot).
    """
    where = Path(path)
    names = Names(tuple(dof_names), tuple(actuators))
    rows = _held(names, held)
    if is_stream(str(path)):
        name = Path("<stdin>" if str(path) == "-" else path)
        return controls_of(name, parse_csv(name, _stream_bytes(str(path)), names), dt, rows, interpolation)
    readers = {".csv": _read_csv, ".npz": _read_npz, ".h5": _read_h5, ".hdf5": _read_h5}
    reader = readers.get(where.suffix.lower())
    if reader is None:
        raise UsageError(f"{path}: cannot tell what it is; control files end in .csv, .npz or .h5")
    check_readable(where)
    return controls_of(where, reader(where, names), dt, rows, interpolation)


def read_run_controls(
    path: str | os.PathLike[str],
    dof_names: Sequence[str],
    dt: float,
    *,
    actuators: Sequence[str] = (),
    **held: Real,
) -> Controls:
    """The inputs of an artsim run file of any name, for a robot with these dofs; see `read_controls`."""
    where, names = Path(path), Names(tuple(dof_names), tuple(actuators))
    rows = _held(names, held)
    return controls_of(where, _run_inputs(where, names), dt, rows)


def read_sample_controls(
    path: str | os.PathLike[str],
    samples: int,
    dof_names: Sequence[str],
    dt: float,
    *,
    actuators: Sequence[str] = (),
    interpolation: Interpolation = HELD,
    **held: Real,
) -> list[Controls]:
    """Read a control file for many runs: one Controls for all, or one for each if arrays have a dimension for samples.

    These are `target`, `velocity`, `acceleration`, `torque` or `control` of shape (samples, rows, n) in a .npz or .h5
    file, or `wrench` (samples, rows, links, 6), with `time` (rows,) and everything else that `read_controls` takes.
    Raises its errors; UsageError: wrong number of samples.
    """
    where, names = Path(path), Names(tuple(dof_names), tuple(actuators))
    rows = _held(names, held)
    arrays = _arrays_by_sample(where, names)
    if not arrays:
        return [read_controls(path, dof_names, dt, actuators=actuators, interpolation=interpolation, **held)]
    varied = {name: values for name, values in arrays.items() if _is_by_sample(name, values)}
    for name, values in varied.items():
        if len(values) != samples:
            raise UsageError(f"{path}: {name} has shape {values.shape}: want {samples} samples first")

    def of_sample(k: int) -> InputTable:
        own = {name: values[k] for name, values in varied.items()}
        return table_of(where, arrays | own, list(arrays), names)

    first = of_sample(0)
    if (
        interpolation.kind == HOLD
        and WRENCHES not in varied
        and all(np.isfinite(values).all() for values in varied.values())
    ):
        held_ones = controls_of(where, first, dt, rows)
        if not held_ones.begin:
            return _of_all_samples(held_ones, first, varied, dt)
    tables = [first, *(of_sample(k) for k in range(1, samples))]
    return [controls_of(where, table, dt, rows, interpolation) for table in tables]


def _of_all_samples(first: Controls, table: InputTable, varied: Mapping[str, Array], dt: float) -> list[Controls]:
    """The controls of all samples, held between rows, from those of the first sample and its table; other values than
    those that are `varied` are shared."""
    _, last = _steps_of(table.time, dt)
    wholes = {}
    for name, values in varied.items():
        kind = SUFFIXES.get(name, name)
        whole = np.tile(getattr(first, kind), (len(values), 1, 1))
        whole[:, :, table.columns[kind][0]] = values[:, last]
        whole.setflags(write=False)
        wholes[kind] = whole
    count = len(next(iter(wholes.values())))
    return [first.with_values({kind: whole[k] for kind, whole in wholes.items()}) for k in range(count)]


def _arrays_by_sample(path: Path, names: Names) -> dict[str, Array]:
    """The arrays of a file if some have a dimension for samples; empty for any other control file."""
    check_readable(path)
    if path.suffix.lower() == ".npz":
        arrays = npz_arrays(path, partial(is_known, names=names))[0]
    elif path.suffix.lower() in (".h5", ".hdf5"):
        arrays = h5_arrays(path, partial(is_known, names=names))
    else:
        return {}
    return arrays if any(_is_by_sample(name, values) for name, values in arrays.items()) else {}


def _is_by_sample(name: str, values: Array) -> bool:
    """True for an array of inputs with a dimension for samples."""
    return values.ndim == (4 if name == WRENCHES else 3)


def _held(names: Names, given: Mapping[str, Real]) -> dict[str, Real]:
    """The inputs that hold where a file names none, by their names in Controls; 0 where none are given."""
    sizes = dict(zip(VALUES, (*[len(names.dofs)] * 4, len(names.actuators)), strict=True))
    return {name: np.asarray(given.get(name, np.zeros(n)), np.float64) for name, n in sizes.items()}


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
    check_readable(where)
    if where.suffix.lower() == ".csv":
        return _header_of(read_start(where, MAX_FILE_BYTES))
    if where.suffix.lower() == ".npz":
        arrays, present = npz_arrays(where, LINKS.__eq__)
    else:
        with open_checked(where) as file, reading(where):
            of_run = "artsim_schema" in file.attrs
            present = list(file)
        if of_run:
            with open_recording(where) as recording:
                return set(recording.labels.controls)
        arrays = h5_arrays(where, LINKS.__eq__)
    pushed = array_names(where, arrays[LINKS]) if LINKS in arrays else ()
    return {*present, *pushed}


def _header_of(data: bytes) -> set[str]:
    """The words of a CSV text's first line that is not empty."""
    line = next((line for line in data.decode("utf-8-sig", "replace").splitlines() if line.strip()), "")
    return {word.strip() for word in line.split(",")}


def is_stream(text: str) -> bool:
    """True for standard input and pipes of the shell, `--control <(…)`."""
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


def check_readable(path: Path) -> None:
    """Raise MissingInputError for a file that cannot be read, ModelError for one that is too large."""
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
    held: Mapping[str, Real],
    interpolation: Interpolation = HELD,
) -> Controls:
    """Convert times to steps: a row acts from the first step that does not begin before it; the last of a step wins.

    Interpolated inputs of a step are those at its beginning.
    """
    if table.time[-1] / dt >= 2**53:
        raise ModelError(f"{path}: time {table.time[-1]} s is beyond every run")
    start, last = _steps_of(table.time, dt)
    if interpolation.kind == HOLD:
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


def _steps_of(time: Real, dt: float) -> tuple[Array, Array]:
    """The first steps (rows,) that do not begin before these times, and True for the last row of each step."""
    steps = time / dt
    slack = 1e-9 + 1e-15 * steps  # rounding of time / dt, which exceeds 1e-9 after some 10^6 steps
    start = np.ceil(steps - slack).astype(np.int64)
    return start, np.append(np.diff(start) > 0, True)


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


def _read_csv(path: Path, names: Names) -> InputTable:
    return parse_csv(path, read_start(path, MAX_FILE_BYTES), names)


def _read_npz(path: Path, names: Names) -> InputTable:
    arrays, present = npz_arrays(path, partial(is_known, names=names))
    return table_of(path, arrays, present, names)


def _read_h5(path: Path, names: Names) -> InputTable:
    """Read the arrays at the root of an HDF5 file, or the inputs of an artsim run of the same robot."""
    with open_checked(path) as file, reading(path):
        if "artsim_schema" not in file.attrs:
            arrays = {name: h5_array(path, file[name]) for name in file if is_known(name, names)}
            return table_of(path, arrays, list(file), names)
    return _run_inputs(path, names)


def _run_inputs(path: Path, names: Names) -> InputTable:
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
