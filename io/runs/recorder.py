"""Recorder, which writes a run to an HDF5 file in blocks, so that a reader can follow it and a killed run can be read.

First everything is created (including the place of the final state), then SWMR starts, then blocks of rows are
appended; `n_valid` is raised only after the rows of a block have reached the operating system. Memory does not grow
with the number of steps.

`write` checks the free space before HDF5 does, and closes the file properly. If a write fails nevertheless, `broken` is
set and the process ends as output_file/failure.py describes. A command line should not wait for that, but print the
line of the StorageError, flush, and call `os._exit(error.exit_code)`.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import Labels
from artsim.io.gate import seal, superblock
from artsim.io.gate.walk import has_zstd
from artsim.io.output_file.claim import check_output, claim, room
from artsim.io.output_file.failure import abandon, reason
from artsim.io.output_file.layout import Section, lay_out_root
from artsim.io.output_file.model_record import ModelRecord, lay_out_model
from artsim.io.output_file.pieces import kept_bytes
from artsim.io.output_file.whole_file import put_in_place
from artsim.io.runs.run_layout import CHANGE_BYTES, MARGIN_BYTES, RunLayout, is_row
from artsim.sim.foundation.errors import ArtsimError, StorageError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.runs.controls import Controls

_CHECKPOINT_BYTES = 256 << 10  # of chunks that a checkpoint may be the first of


def check_compression(compress: str | None) -> None:
    """Raise UsageError for an unknown compression, or one whose package is not installed."""
    if compress not in (None, "gzip", "zstd"):
        raise UsageError(f"compress is {compress!r}, want gzip or zstd{nearest(compress, ('gzip', 'zstd'))}")
    if compress == "zstd" and not has_zstd():
        raise UsageError("zstd needs the package hdf5plugin: pip install 'artsim[zstd]'")


class Earlier(NamedTuple):
    """A run file that a recorder continues, and the numbers of rows to keep. Its writer is dead or has finished."""

    path: Path
    rows: int
    controls: int
    checkpoints: int


class Recorder:
    """A run file being written. Use as a context manager, or call `close` (an exception closes as interrupted).

    `labels` name the entries of rows; `variables` are names in schema.RECORDED and RAGGED_BY_NAME; `steps_total` is the
    number of steps if known (it sizes the chunks); `dt` [s] the time step; row k is the state before step k * every.
    `state`: a state of the run by the names of schema.STATE, for its shapes; /final holds one, and so does /checkpoint
    after every `checkpoint` steps (None: by the sizes of rows and state; 0: none).
    `controls`: the inputs known in advance; without rows each `write` brings its own.
    `provenance`: attributes of /provenance (command, config as JSON, versions, cpu, threads, seed, …).
    `earlier`: a run to continue, in place or in a new file; labels, variables and inputs must be its own.
    `changing`: True if settings or state change between steps, which `change` notes.
    `force` overwrites a file. `compress`: "gzip" (level 4, shuffled) or "zstd" (level 3, shuffled, by the package
    hdf5plugin) give smaller files but take longer.

    Raises OutputError (73), BusyError (75), StorageError (74), UsageError for an unknown variable.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        labels: Labels,
        dt: float,
        model: ModelRecord,
        controls: Controls,
        provenance: Mapping[str, str | int | float],
        variables: Sequence[str] = schema.DEFAULT_RECORDED,
        steps_total: int | None = None,
        state: Mapping[str, Array],
        checkpoint: int | None = 0,
        every: int = 1,
        compress: str | None = None,
        force: bool = False,
        earlier: Earlier | None = None,
        changing: bool = False,
    ) -> None:
        self.path = Path(path)
        check_compression(compress)
        self._layout = RunLayout(
            self.path,
            labels,
            variables,
            state,
            dt=dt,
            every=every,
            steps_total=steps_total,
            checkpoint=checkpoint,
            compress=compress,
            changing=changing,
            control_rows=controls.rows,
            free=room(self.path)[0],
        )
        self._table_rows = dict.fromkeys(self._layout.tables, 0)
        self._datasets: dict[str, Any] = {}
        self._last_inputs: bytes | None = None  # of a run that is taken up
        self._rows = self._control_rows = self._checkpoints = self._known_rows = self._change_bytes = 0
        self._broken = self._closed = False
        self._waiting: tuple[Path, Path] | None = None  # the file of a run that is taken up, and whose place it takes
        check_output(path, force=force)
        copied = earlier.path.stat().st_size if earlier else 0
        self._check_space(0, controls.rows, more=len(model.text) * 2 + kept_bytes(model.kept) + copied)
        if earlier is None:
            self._create(force, "w", lambda: self._lay_out(model, controls, provenance))
        else:
            self._create(force, "r+", lambda: self._take_up(earlier, provenance), earlier.path)

    # for callers

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that every block must hold, in the file's order."""
        return self._layout.variables

    @property
    def rows(self) -> int:
        """Rows written so far."""
        return self._rows

    @property
    def broken(self) -> bool:
        """True if HDF5 failed to write; the process must then be ended by os._exit."""
        return self._broken

    @property
    def block_rows(self) -> int:
        """Rows per chunk: blocks of this size are written fastest, each chunk once."""
        return self._layout.block_rows

    @property
    def bytes_needed(self) -> int | None:
        """Uncompressed size of the whole run [bytes]; None if its length is not known."""
        return self._layout.bytes_needed

    @property
    def checkpoint_steps(self) -> int:
        """Number of steps between checkpoints; 0: none."""
        return self._layout.checkpoint_steps

    # writing

    def checkpoint(self, state: Mapping[str, Array]) -> None:
        """Store a state between two steps, by the names of schema.STATE. Raises StorageError."""
        self._check_space(0, 0, more=sum(values.nbytes for values in state.values()) + _CHECKPOINT_BYTES)
        with self._guard():
            for name, values in state.items():
                path = f"checkpoint/{name}"
                if name == "contact":
                    start = self._known_rows
                    self._known_rows += len(values)
                    self._append("checkpoint/contact_row", start, np.arange(start, self._known_rows))
                    self._append(path, start, np.ascontiguousarray(values))
                    values, path = np.asarray(len(values)), "checkpoint/contact_count"
                dtype = schema.TABLE[path].dtype
                self._append(path, self._checkpoints, np.ascontiguousarray(values[None], dtype=dtype))
            self._append("checkpoint/checkpoint", self._checkpoints, np.array([self._checkpoints]))
            self._file.flush()
            self._checkpoints += 1
            self._set("checkpoint/n_valid", self._checkpoints)
            self._file.flush()

    def write(
        self,
        block: Mapping[str, Array],
        controls: Controls | None = None,
        tables: Mapping[str, Mapping[str, Array]] | None = None,
    ) -> None:
        """Append n rows of every variable: `block[name]` has shape (n, …) as the table says.

        `controls`: the inputs that began to act within this block, when they were not known in advance.
        `tables`: by recorded group of schema.RAGGED its count (n,), and the table of these rows.
        Raises StorageError; the rows written before it stay readable.
        """
        rows, values = self._layout.checked(block, tables or {})
        entries = {
            group: self._layout.checked_table(group, (tables or {}).get(group, {}), rows) for group in self._table_rows
        }
        sizes = {group: len(table["step"]) for group, table in entries.items()}
        self._check_space(rows, 0 if controls is None else controls.rows, sizes)
        with self._guard():
            for name, array in values.items():
                self._append(f"trajectory/{name}", self._rows, array)
            steps = np.arange(self._rows, self._rows + rows, dtype=np.int64) * self._layout.every
            self._append("trajectory/time", self._rows, steps * self._layout.dt)
            for group, table in entries.items():
                self._append(f"{group}/time", self._rows, steps * self._layout.dt)
                self._append_table(group, table)
            if controls is not None:
                self._append_controls(controls)
            self._file.flush()
            self._rows += rows
            self._set("trajectory/n_valid", self._rows)
            self._file.flush()
        self._take_place()

    def change(self, line: str) -> None:
        """Append a line about a change between the rows written so far and the next. Raises StorageError."""
        values = np.frombuffer(f"{line}\n".encode(), np.int8)
        self._check_space(0, 0, more=len(values) + CHANGE_BYTES)
        with self._guard():
            self._append("controls/changes", self._change_bytes, values)
            self._change_bytes += len(values)
            self._file.flush()

    def _take_place(self) -> None:
        """Let a continued run replace the file that it continues."""
        if self._waiting is not None:
            put_in_place(*self._waiting)
            self._waiting = None

    def close(self, status: int = schema.COMPLETE, final: Mapping[str, Any] | None = None) -> None:
        """Store the state after the last step (the fields of /final that the robot has), then the status; idempotent.

        The file of a run that failed before its first row is removed. Raises StorageError.
        """
        if self._closed or self._broken:
            return
        self._take_place()
        with self._guard():
            for name, value in (final or {}).items():
                if name == "contact" and "final/contact" in self._datasets:
                    self._append("final/contact_row", 0, np.arange(len(value)))
                    self._append("final/contact", 0, np.ascontiguousarray(value))
                elif f"final/{name}" in self._datasets:
                    self._set(f"final/{name}", value)
            self._file.flush()
            self._set("trajectory/status", status)
            self._file.flush()
            rows = seal.chunks_of(self._datasets[path] for path in self._datasets if is_row(path))
            self._file.close()
        with contextlib.suppress(OSError):  # no room for it: the file is whole without
            seal.seal(self._handle, rows)
        self._closed = True
        with self._guard():
            os.fsync(self._handle)
        if self._rows == 0 and status == schema.INTERRUPTED:
            self.path.unlink(missing_ok=True)  # a run that failed at once leaves nothing
        os.close(self._handle)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None and self._waiting is not None:
            self._give_up()
        self.close(schema.COMPLETE if kind is None else schema.INTERRUPTED)

    def _give_up(self) -> None:
        """Leave the run that was to be continued unchanged."""
        assert self._waiting is not None
        if not (self._closed or self._broken):
            self._closed = True
            with contextlib.suppress(OSError, RuntimeError):
                self._file.close()
            os.close(self._handle)
        self._waiting[0].unlink(missing_ok=True)

    # inside

    def _create(self, force: bool, mode: str, lay_out: Callable[[], None], copied: Path | None = None) -> None:
        """Lay the file out under a temporary name and move it to its place once it is readable.

        HDF5's own lock is not sufficient: HDF5 truncates a file before it finds it locked (in a trial "w" destroyed a
        run that was being written), and it drops its lock when SWMR starts. This lock is exclusive while the file is
        laid out, then shared until it is closed, which admits readers and keeps other writers out.
        """
        import h5py

        place = Path(os.path.realpath(self.path))
        part = place.with_name(f"{place.name}.part")
        self._handle = claim(part)
        try:
            check_output(self.path, force=force)  # again: another process may have been as far
            with self._guard():
                if copied is not None:
                    os.ftruncate(self._handle, 0)
                    superblock.copy_unmarked(copied, self._handle)
                self._file = h5py.File(part, mode, libver=("v110", "v110"), locking=False)
                lay_out()
                self._file.swmr_mode = True
            with contextlib.suppress(OSError):
                fcntl.flock(self._handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if copied is None:
                put_in_place(part, place)
            else:  # a run that is taken up stays as it is until there is more of it
                self._waiting = part, place
        except BaseException:
            self._closed = True
            if not self._broken and hasattr(self, "_file"):
                self._file.close()
            part.unlink(missing_ok=True)
            os.close(self._handle)
            raise

    def _lay_out(self, model: ModelRecord, controls: Controls, provenance: Mapping[str, str | int | float]) -> None:
        from artsim.io.output_file import hdf5

        root = self._file.id
        lay_out_root(root, f"artsim run of {model.name}", str(provenance.get("command", "artsim")))
        self._layout.lay_out_rows(root, self._datasets)
        self._layout.lay_out_controls(root, self._datasets)
        self._append_controls(controls)
        self._layout.lay_out_final(root, self._datasets)
        self._layout.lay_out_checkpoints(root, self._datasets)
        lay_out_model(Section(root, "model", self._layout.labels, self._datasets), model)
        hdf5.set_attributes(hdf5.Group(root, "provenance").id, provenance)

    def _take_up(self, earlier: Earlier, provenance: Mapping[str, str | int | float]) -> None:
        """Turn the copy of a run into the file that this run would have written up to there."""
        from artsim.io.output_file import hdf5

        file = self._file
        hdf5.cut(file, earlier.rows, earlier.controls, earlier.checkpoints)
        for name, value in {"trajectory/status": schema.RUNNING, "final/time": np.nan, "final/step": 0}.items():
            file[name][()] = value
        for name in ("final/contact", "final/contact_row"):
            if name in file:
                file[name].resize(0, 0)
        if self._layout.steps_total is not None:
            file["trajectory"].attrs["steps_total"] = self._layout.steps_total
        told = {name: hdf5.storable(value) if isinstance(value, str) else value for name, value in provenance.items()}
        file["provenance"].attrs.update(told)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        file.attrs["history"] = f"{file.attrs['history']}\n{now} {told.get('command', '')}"
        numbers = ["final/contact_row", "checkpoint/contact_row", "checkpoint/checkpoint"]
        numbers += [f"{group}/row" for group in self._table_rows]
        for path in (*schema.TABLE, *numbers):
            if path in file and schema.TABLE.get(path, schema.TABLE["final/step"]).dtype != "str":
                self._datasets[path] = hdf5.open_growing(file, path)
        self._rows, self._control_rows, self._checkpoints = earlier.rows, earlier.controls, earlier.checkpoints
        self._table_rows = {group: len(file[f"{group}/row"]) for group in self._table_rows}
        self._layout.chunk = file["trajectory/time"].chunks[0]
        if "checkpoint/contact" in file:
            self._known_rows = len(file["checkpoint/contact"])
        self._layout.control_names = tuple(name for name in self._layout.control_names if f"controls/{name}" in file)
        if earlier.controls:
            last = [file[f"controls/{name}"][-1] for name in self._layout.control_names]
            self._last_inputs = b"".join(values.tobytes() for values in last)
        if "checkpoint" not in file:
            self._layout.lay_out_checkpoints(file.id, self._datasets)

    def _append_table(self, group: str, table: Mapping[str, Array]) -> None:
        ragged = schema.RAGGED[group]
        self._append(f"{group}/{ragged.counted_by}", self._rows, table[ragged.counted_by])
        start = self._table_rows[group]
        end = self._table_rows[group] = start + len(table["step"])
        self._append(f"{group}/row", start, np.arange(start, end))
        for name in ragged.table:
            self._append(f"{group}/{name}", start, table[name])
        self._file.flush()
        self._set(f"{group}/n_valid", end)

    def _append(self, path: str, start: int, values: Array) -> None:
        from artsim.io.output_file.hdf5 import append_rows

        append_rows(self._datasets[path], start, values)

    def _append_controls(self, controls: Controls) -> None:
        controls = self._new_inputs(controls)
        if controls.rows == 0:
            return
        start = self._control_rows
        self._append("controls/start_step", start, controls.start_step)
        self._append("controls/time", start, controls.start_step * self._layout.dt)
        for name in self._layout.control_names:
            self._append(f"controls/{name}", start, getattr(controls, name))
        self._control_rows += controls.rows
        self._set("controls/n_valid", self._control_rows)

    def _new_inputs(self, controls: Controls) -> Controls:
        """The controls without the first row of a continued run if it only repeats the last row before."""
        values = [getattr(controls, name) for name in self._layout.control_names]
        repeated = controls.rows > 0 and b"".join(array[0].tobytes() for array in values) == self._last_inputs
        if controls.rows:
            self._last_inputs = None
        if not repeated:
            return controls
        later = {name: array[1:] for name, array in zip(self._layout.control_names, values, strict=True)}
        return Controls(controls.start_step[1:], **later)

    def _set(self, path: str, value: Any) -> None:
        from artsim.io.output_file.hdf5 import write_whole

        write_whole(self._datasets[path], np.ascontiguousarray(value, dtype=schema.TABLE[path].dtype))

    def _check_space(
        self, rows: int, control_rows: int, tables: Mapping[str, int] | None = None, more: int = 0
    ) -> None:
        """Raise StorageError, with the file closed properly, if the next block does not fit on the disk."""
        need = _growth(self._rows, rows, self._layout.block_rows) * self._layout.row_bytes
        need += _growth(self._control_rows, control_rows, self._layout.control_chunk) * self._layout.control_row_bytes
        for group, entries in (tables or {}).items():
            need += (
                _growth(self._table_rows[group], entries, self._layout.table_chunk(group)) * schema.RAGGED[group].bytes
            )
        need += more + MARGIN_BYTES
        free, what = room(self.path)
        if free >= need:
            return
        error = self._storage_error(f"{what} {free} bytes")
        if self._rows or self._datasets:
            self.close(schema.INTERRUPTED)
        raise error

    def _storage_error(self, reason: str) -> StorageError:
        total = "" if self._layout.rows_total is None else f" of {self._layout.rows_total}"
        needed = "" if self._layout.bytes_needed is None else f"; the run needs {self._layout.bytes_needed} bytes"
        return StorageError(f"{self.path}: writing stopped after {self._rows}{total} rows: {reason}{needed}")

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn a failure of HDF5 in the block into StorageError, and prevent its file from being closed."""
        try:
            yield
        except ArtsimError:
            raise
        except (OSError, RuntimeError) as error:
            self._broken = True
            abandon(getattr(self, "_file", None))
            raise self._storage_error(reason(error)) from None


def _growth(rows: int, more: int, chunk: int) -> int:
    """Number of rows by which the file grows when `more` are appended, in whole chunks."""
    return (-(-(rows + more) // chunk) - -(-rows // chunk)) * chunk
