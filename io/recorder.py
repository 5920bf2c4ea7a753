"""Writes a run to an HDF5 file in blocks, so that a reader can follow it and a killed run can be read.

First everything is created (including the place of the final state), then SWMR starts, then blocks of rows are
appended; `n_valid` is raised only after the rows of a block have reached the operating system. Memory does not grow
with the number of steps.

When HDF5 itself fails to write (disk full, I/O error) its state cannot be repaired, and HDF5 2.0 crashes while the
interpreter exits (SIGBUS or SIGSEGV in trials). `write` therefore checks the free space before HDF5 does, and closes
the file properly. If a write fails nevertheless, `broken` is set and a guard ends the process by `os._exit(74)` after
Python's own exit handlers, with stdout and stderr flushed. A command line should not wait for that, but print the line
of the StorageError, flush, and call `os._exit(error.exit_code)`.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import fcntl
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from artsim.io import schema, seal, superblock
from artsim.io.finishing import put_in_place
from artsim.io.layout import Section, lay_out_model, lay_out_root
from artsim.io.pieces import kept_bytes
from artsim.io.schema import Labels, Variable
from artsim.sim.foundation.errors import ArtsimError, BusyError, OutputError, StorageError, UsageError, nearest
from artsim.sim.runs.controls import Controls

if TYPE_CHECKING:
    from artsim.sim.articulation.description import Articulation
    from artsim.sim.geometry.solids import Kept

Array = npt.NDArray[Any]

CHUNK_BYTES = 1 << 21  # a block has some 13 datasets: with 1 << 20, recording Jacobians takes twice as long
_MARGIN_BYTES = 128 << 10  # metadata that HDF5 writes beside a block, and what closing needs
_FINAL_CONTACTS = 64  # in a chunk of /final and /checkpoint
_CHECKPOINTS = 16  # in a chunk
_CHANGE_BYTES = 4096  # in a chunk
_BLOCKS = 16  # smallest number of blocks that fit into the free space
_CHECKPOINT_STEPS = 10_000
_CHECKPOINT_BYTES = 256 << 10  # of chunks that a checkpoint may be the first of


class MeshRecord(NamedTuple):
    """One use of a mesh file: link, the URI as written, the file it resolved to ("" when not found)."""

    link: str
    uri: str
    path: str = ""


class ModelRecord(NamedTuple):
    """The robot as stored in a run file. Sequences are per link or per joint; missing limits are ±inf."""

    text: str
    format: str
    name: str
    path: str
    sha256: str
    links: tuple[str, ...]
    link_parents: tuple[str, ...]  # "" for a root
    link_masses: tuple[float, ...]  # [kg]
    joints: tuple[str, ...] = ()
    joint_types: tuple[str, ...] = ()
    joint_parents: tuple[str, ...] = ()
    joint_children: tuple[str, ...] = ()
    joint_lower: tuple[float, ...] = ()  # [rad or m]
    joint_upper: tuple[float, ...] = ()
    joint_effort: tuple[float, ...] = ()  # [N m or N]
    joint_velocity: tuple[float, ...] = ()  # [rad/s or m/s]
    meshes: tuple[MeshRecord, ...] = ()
    warnings: tuple[str, ...] = ()  # about the file
    kept: Kept | None = None  # shapes as which meshes and height fields collide and are seen


def model_record(robot: Articulation, kept: Kept | None = None) -> ModelRecord:
    """The record of a robot, with the shapes of everything that may touch or be seen."""
    import hashlib

    inf = float("inf")
    joints = robot.joints
    parents = {joint.child: joint.parent for joint in joints}
    return ModelRecord(
        text=robot.text,
        format=robot.format,
        name=robot.name,
        path=str(Path(robot.path).absolute()) if Path(robot.path).is_file() else robot.path,  # found from anywhere
        sha256=hashlib.sha256(robot.text.encode()).hexdigest(),
        links=tuple(link.name for link in robot.links),
        link_parents=tuple(parents.get(link.name, "") for link in robot.links),
        link_masses=tuple(link.inertial.mass if link.inertial else 0.0 for link in robot.links),
        joints=tuple(joint.name for joint in joints),
        joint_types=tuple(joint.kind for joint in joints),
        joint_parents=tuple(joint.parent for joint in joints),
        joint_children=tuple(joint.child for joint in joints),
        joint_lower=tuple(-inf if joint.lower is None else joint.lower for joint in joints),
        joint_upper=tuple(inf if joint.upper is None else joint.upper for joint in joints),
        joint_effort=tuple(inf if joint.effort is None else joint.effort for joint in joints),
        joint_velocity=tuple(inf if joint.velocity is None else joint.velocity for joint in joints),
        meshes=tuple(
            MeshRecord(link.name, geom.mesh_uri, str(geom.mesh or ""))
            for link in robot.links
            for geom in link.geoms
            if geom.kind == "mesh"
        ),
        warnings=tuple(map(str, robot.notes)),
        kept=kept,
    )


def check_output(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Refuse an output that cannot be created, before anything is computed; imports no HDF5, creates nothing.

    Raises OutputError (exit 73: directory, device, exists without `force`, no such folder, not writable) or
    BusyError (exit 75: another process writes it).
    """
    target = Path(path)
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        _check_folder(target)
        return
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: cannot create: {reason(error)}") from None
    if stat.S_ISDIR(mode):
        raise OutputError(f"{path}: is a directory; give the name of a file to create")
    if not stat.S_ISREG(mode):
        raise OutputError(f"{path}: is a device or pipe, not a file; HDF5 needs a file it can seek in")
    refuse_busy(target)
    if not force:
        raise OutputError(f"{path}: exists already; use --force to overwrite it")
    if not os.access(target, os.W_OK):
        raise OutputError(f"{path}: cannot overwrite: permission denied")
    _check_folder(Path(os.path.realpath(target)))


def check_run_name(path: str | os.PathLike[str]) -> None:
    """Raise UsageError for an output of a run whose suffix is that of another format."""
    target = Path(path)
    if target.suffix in ("", ".h5", ".hdf5"):
        return
    from artsim.io.exports import FORMATS

    formats = {format_.suffix: name for name, format_ in reversed(FORMATS.items())}
    if target.suffix.lower() not in formats:
        return
    option = f"--{formats[target.suffix.lower()].replace('_', '-')}"
    told = f"`artsim export {target.stem}.h5 {option} {target.name}` writes it then in this format"
    raise UsageError(f"{path}: a run is written as HDF5, to a name in .h5; {told}")


def _check_folder(target: Path) -> None:
    folder = target.parent
    if not folder.is_dir():
        what = "is not a directory" if folder.exists() else "does not exist"
        raise OutputError(f"{target}: cannot create: folder {str(folder)!r} {what}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{target}: cannot create: folder {str(folder)!r} is not writable")


def reason(error: BaseException) -> str:
    """The operating system's message if there is one, else the first line of the error."""
    number = errno_of(error)
    return os.strerror(number) if number else str(error).split("\n", 1)[0]


def errno_of(error: BaseException) -> int | None:
    """The operating system's error number, which HDF5 hides in its text."""
    hidden = re.search(r"errno = (\d+)", str(error))
    return int(hidden[1]) if hidden else getattr(error, "errno", None)


def refuse_busy(path: Path) -> None:
    """Raise BusyError if another process holds a lock on the file, as a writer always does."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return  # unreadable: whoever opens it next says why
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BusyError(f"{path}: in use by {_holder(os.fstat(handle))}") from None
    except OSError:
        pass  # a file system without locks
    finally:
        os.close(handle)


def claim(path: Path) -> int:
    """Open or create a temporary file for reading and writing, and lock it.

    Links are refused, since they could lead to a file that is then destroyed, and so are files of other owners, who
    could read what is written. Raises OutputError, BusyError.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        raise OutputError(f"{path}: cannot create: {reason(error)}") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        raise OutputError(f"{path}: is a device or pipe in the place of a file; remove it")
    if about.st_nlink != 1 or about.st_uid != os.geteuid():
        os.close(handle)
        raise OutputError(f"{path}: is in the way: it is somebody else's, or has other names too; remove it")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(os.fstat(handle))
        os.close(handle)
        raise BusyError(f"{path}: in use by {holder}") from None
    except OSError:
        pass  # a file system without locks
    return handle


def _holder(status: os.stat_result) -> str:
    """The text `process 123` from the kernel's lock table, if available."""
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if len(words) >= 6 and words[5] == device:
                return f"process {words[4]}"
    except OSError:
        pass
    return "another process"


def check_compression(compress: str | None) -> None:
    """Raise UsageError for an unknown compression, or one whose package is not installed."""
    if compress not in (None, "gzip", "zstd"):
        raise UsageError(f"compress is {compress!r}, want gzip or zstd{nearest(compress, ('gzip', 'zstd'))}")
    if compress == "zstd":
        from artsim.io.hdf5 import has_zstd

        if not has_zstd():
            raise UsageError("zstd needs the package hdf5plugin: pip install 'artsim[zstd]'")


class Earlier(NamedTuple):
    """A run file that a recorder continues, and what is kept of it. Its writer is dead or has finished."""

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
    `changing`: whether settings or state change between steps, which `change` notes.
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
        self._labels, self._dt, self._every, self._compress = labels, dt, every, compress
        self._changing, self._change_bytes = changing, 0
        self._steps_total, self._state = steps_total, state
        self._rows_total = None if steps_total is None else -(-steps_total // every)
        self._variables = tuple(name for name in _known(variables) if _has_entries(name, labels))
        groups = (schema.RAGGED_BY_NAME.get(name, ()) for name in variables)
        self._table_rows = {group: 0 for found in groups for group in found}  # by recorded group of schema.RAGGED
        self._shapes = {name: _row_shape(schema.TABLE[f"trajectory/{name}"], labels) for name in self._variables}
        self._datasets: dict[str, Any] = {}
        self._last_inputs: bytes | None = None  # of a run that is taken up
        self._chunk = 0
        self._rows = self._control_rows = self._checkpoints = self._known_rows = 0
        self._broken = self._closed = False
        self._waiting: tuple[Path, Path] | None = None  # the file of a run that is taken up, and whose place it takes
        self._checkpoint_steps = self._steps_between(checkpoint)
        check_output(path, force=force)
        self._block_bytes = room(self.path)[0] // _BLOCKS  # what a small disk has room for before it is full
        nv, actuators = len(labels.dof), len(labels.controls)
        self._control_names: tuple[str, ...] = schema.CONTROL_VALUES if actuators else schema.CONTROL_VALUES[:-1]
        self._control_row_bytes = 16 + 32 * nv + 8 * actuators
        self._control_chunk = max(1, min(CHUNK_BYTES // (8 * max(1, nv, actuators)), controls.rows or self.block_rows))
        copied = earlier.path.stat().st_size if earlier else 0
        self._check_space(0, controls.rows, more=len(model.text) * 2 + kept_bytes(model.kept) + copied)
        if earlier is None:
            self._create(force, "w", lambda: self._lay_out(model, controls, provenance))
        else:
            self._create(force, "r+", lambda: self._take_up(earlier, provenance), earlier.path)

    # what a caller asks

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that every block must hold, in the file's order."""
        return self._variables

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
        """Rows per chunk: blocks of this size are written fastest, each chunk once. At most 2 MiB per variable."""
        if self._chunk:
            return self._chunk
        widest = max([8, *(8 * _size(shape) for shape in self._shapes.values())])
        rows = max(1, min(CHUNK_BYTES // widest, self._block_bytes // self._row_bytes))
        return rows if self._rows_total is None else max(1, min(rows, self._rows_total))

    @property
    def bytes_needed(self) -> int | None:
        """Uncompressed size of the whole run [bytes]; None if its length is not known."""
        if self._rows_total is None:
            return None
        return self._rows_total * self._row_bytes + _MARGIN_BYTES

    @property
    def _row_bytes(self) -> int:
        return 8 + 16 * len(self._table_rows) + sum(8 * _size(shape) for shape in self._shapes.values())

    def _table_chunk(self, group: str) -> int:
        """Rows per chunk of a table of contacts or constraints; a few for each step of a short run."""
        most = max(1, min(CHUNK_BYTES // 24, self._block_bytes // schema.RAGGED[group].bytes))
        return most if self._rows_total is None else min(most, 4 * self._rows_total)

    @property
    def checkpoint_steps(self) -> int:
        """Number of steps between checkpoints; 0: none."""
        return self._checkpoint_steps

    def _steps_between(self, wanted: int | None) -> int:
        """Steps between checkpoints: few enough to lose only seconds of work, while states take 1 % of the file."""
        if wanted is None:
            size = sum(values.nbytes for values in self._state.values())
            return max(_CHECKPOINT_STEPS, -(-100 * size // self._row_bytes) * self._every)
        return wanted

    @property
    def _checkpoints_total(self) -> int:
        """The number of checkpoints of the run; the state at its end is /final instead."""
        if not self._checkpoint_steps:
            return 0
        return sys.maxsize if self._steps_total is None else (self._steps_total - 1) // self._checkpoint_steps

    # writing

    def checkpoint(self, state: Mapping[str, Array]) -> None:
        """Store a state between two steps, by the names of schema.STATE. Raises StorageError."""
        self._check_space(0, 0, more=sum(values.nbytes for values in state.values()) + _CHECKPOINT_BYTES)
        with _Guard(self):
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
        rows, values = self._checked(block, tables or {})
        entries = {group: self._checked_table(group, (tables or {}).get(group, {}), rows) for group in self._table_rows}
        sizes = {group: len(table["step"]) for group, table in entries.items()}
        self._check_space(rows, 0 if controls is None else controls.rows, sizes)
        with _Guard(self):
            for name, array in values.items():
                self._append(f"trajectory/{name}", self._rows, array)
            steps = np.arange(self._rows, self._rows + rows, dtype=np.int64) * self._every
            self._append("trajectory/time", self._rows, steps * self._dt)
            for group, table in entries.items():
                self._append(f"{group}/time", self._rows, steps * self._dt)
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
        self._check_space(0, 0, more=len(values) + _CHANGE_BYTES)
        with _Guard(self):
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
        with _Guard(self):
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
        with _Guard(self):
            os.fsync(self._handle)
        if self._rows == 0 and status == schema.INTERRUPTED:
            self.path.unlink(missing_ok=True)  # a run that failed at once leaves nothing
        os.close(self._handle)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            with _Guard(self):
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
        from artsim.io import hdf5

        root = self._file.id
        lay_out_root(root, f"artsim run of {model.name}", str(provenance.get("command", "artsim")))
        self._lay_out_trajectory(Section(root, "trajectory", self._labels, self._datasets))
        labels = self._labels._replace(link=self._labels.touching_link)
        for group in self._table_rows:
            self._lay_out_table(Section(root, group, labels, self._datasets), group)
        self._lay_out_controls(Section(root, "controls", self._labels.of_controls, self._datasets), controls)
        self._lay_out_final(Section(root, "final", self._labels, self._datasets))
        if self._checkpoints_total:
            self._lay_out_checkpoints(Section(root, "checkpoint", self._labels, self._datasets))
        lay_out_model(Section(root, "model", self._labels, self._datasets), model)
        hdf5.set_attributes(hdf5.Group(root, "provenance").id, provenance)

    def _take_up(self, earlier: Earlier, provenance: Mapping[str, str | int | float]) -> None:
        """Turn the copy of a run into what this run would have written up to there."""
        from artsim.io import hdf5

        file = self._file
        hdf5.cut(file, earlier.rows, earlier.controls, earlier.checkpoints)
        for name, value in {"trajectory/status": schema.RUNNING, "final/time": np.nan, "final/step": 0}.items():
            file[name][()] = value
        for name in ("final/contact", "final/contact_row"):
            if name in file:
                file[name].resize(0, 0)
        if self._steps_total is not None:
            file["trajectory"].attrs["steps_total"] = self._steps_total
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
        self._chunk = file["trajectory/time"].chunks[0]
        if "checkpoint/contact" in file:
            self._known_rows = len(file["checkpoint/contact"])
        self._control_names = tuple(name for name in self._control_names if f"controls/{name}" in file)
        if earlier.controls:
            last = [file[f"controls/{name}"][-1] for name in self._control_names]
            self._last_inputs = b"".join(values.tobytes() for values in last)
        if self._checkpoints_total and "checkpoint" not in file:
            self._lay_out_checkpoints(Section(file.id, "checkpoint", self._labels, self._datasets))

    def _lay_out_trajectory(self, section: Section) -> None:
        facts: dict[str, str | int | float] = {"dt": float(self._dt), "every": int(self._every)}
        facts["checkpoint_steps"] = int(self._checkpoint_steps)
        if self._steps_total is not None:
            facts["steps_total"] = int(self._steps_total)
        section.set_attributes(facts)
        section.growing("time", (), self.block_rows, self._compress)
        dims = [dim for name in self._variables for dim in schema.TABLE[f"trajectory/{name}"].dims[1:]]
        # also when nothing recorded needs them
        more = [dim for dim in schema.EQUIPMENT if getattr(self._labels, dim)]
        section.scales([*dims, "coord", "dof", "independent_dof", "link", *more])
        for name in self._variables:
            section.growing(name, self._shapes[name], self.block_rows, self._compress)
        section.fixed("n_valid", np.int64(0))
        section.fixed("status", np.int8(schema.RUNNING))

    def _lay_out_table(self, section: Section, group: str) -> None:
        ragged, chunk = schema.RAGGED[group], self._table_chunk(group)
        section.growing("time", (), self.block_rows, self._compress)
        section.numbers("row", chunk, self._compress)
        section.scales(ragged.labels)
        section.growing(ragged.counted_by, (), self.block_rows, self._compress)
        for name in ragged.table:
            shape = _row_shape(schema.TABLE[f"{group}/{name}"], self._labels)
            section.growing(name, shape, chunk, self._compress)
        section.fixed("n_valid", np.int64(0))

    def _lay_out_controls(self, section: Section, controls: Controls) -> None:
        rows = self._control_chunk
        section.growing("time", (), rows, self._compress)
        section.scales(["dof"] + ["actuator"] * bool(self._labels.controls))
        section.growing("start_step", (), rows, self._compress)
        for name in self._control_names:
            section.growing(
                name, _row_shape(schema.TABLE[f"controls/{name}"], self._labels.of_controls), rows, self._compress
            )
        if self._changing:
            section.growing("changes", (), _CHANGE_BYTES, None)
        section.fixed("n_valid", np.int64(0))
        self._append_controls(controls)

    def _lay_out_final(self, section: Section) -> None:
        self._lay_out_dimensions(section, "final")
        for name, values in self._state.items():
            if name == "contact":
                section.growing(name, values.shape[1:], _FINAL_CONTACTS, None)
            else:
                unknown = 0 if schema.TABLE[f"final/{name}"].dtype == "i8" else np.nan
                section.fixed(name, np.full(values.shape, unknown, schema.TABLE[f"final/{name}"].dtype))

    def _lay_out_checkpoints(self, section: Section) -> None:
        rows = min(_CHECKPOINTS, self._checkpoints_total)
        section.numbers("checkpoint", rows, None)
        self._lay_out_dimensions(section, "checkpoint")
        for name, values in self._state.items():
            if name == "contact":
                section.growing(name, values.shape[1:], _FINAL_CONTACTS, self._compress)
                section.growing("contact_count", (), rows, None)
            else:
                section.growing(name, values.shape, rows, self._compress)
        section.fixed("n_valid", np.int64(0))

    def _lay_out_dimensions(self, section: Section, group: str) -> None:
        """The dimensions of a state."""
        sizes: dict[str, int] = {}
        for name, values in self._state.items():
            dims = [dim for dim in schema.TABLE[f"{group}/{name}"].dims if dim != "checkpoint"]
            sizes |= dict(zip(dims, values.shape, strict=True))
        section.scales(dim for dim in sizes if dim not in schema.NUMBERED)
        for dim, size in sizes.items():
            if dim == "contact_row":
                section.numbers(dim, _FINAL_CONTACTS, None)
            elif dim in schema.NUMBERED:
                attributes = {"units": "1", "long_name": f"{schema.NUMBERED[dim]} number"}
                section.group.fixed(dim, np.arange(size), [dim], attributes)

    def _checked(
        self, block: Mapping[str, Array], tables: Mapping[str, Mapping[str, Array]]
    ) -> tuple[int, dict[str, Array]]:
        """The number of rows of a block, and its arrays in the file's types and order."""
        if set(block) != set(self._variables):
            odd = sorted(set(block) ^ set(self._variables))
            raise UsageError(f"{self.path}: a block must hold exactly the recorded variables; differing: {odd}")
        if set(tables) != set(self._table_rows):
            odd = sorted(set(tables) ^ set(self._table_rows))
            raise UsageError(f"{self.path}: a block must hold exactly the recorded tables; differing: {odd}")
        counts = [tables[group][schema.RAGGED[group].counted_by] for group in tables]
        rows = len(next(iter((*block.values(), *counts)), ()))
        values = {}
        for name in self._variables:
            dtype = schema.TABLE[f"trajectory/{name}"].dtype
            values[name] = np.ascontiguousarray(block[name], dtype=dtype)
            want = (rows, *self._shapes[name])
            if values[name].shape != want:
                raise UsageError(f"{self.path}: {name} has shape {values[name].shape}, want {want}")
        return rows, values

    def _checked_table(self, group: str, table: Mapping[str, Array], rows: int) -> dict[str, Array]:
        """A table of a block in the file's types."""
        ragged = schema.RAGGED[group]
        wanted = (ragged.counted_by, *ragged.table)
        if set(table) != set(wanted):
            odd = sorted(set(table) ^ set(wanted))
            raise UsageError(f"{self.path}: /{group} of a block must hold exactly its table; differing: {odd}")
        values: dict[str, Array] = {}
        for name in wanted:
            variable = schema.TABLE[f"{group}/{name}"]
            values[name] = np.ascontiguousarray(table[name], dtype=variable.dtype)
            count = rows if name == ragged.counted_by else int(values[ragged.counted_by].sum())
            want = (count, *_row_shape(variable, self._labels))
            if values[name].shape != want:
                raise UsageError(f"{self.path}: /{group}/{name} has shape {values[name].shape}, want {want}")
        return values

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
        from artsim.io.hdf5 import append_rows

        append_rows(self._datasets[path], start, values)

    def _append_controls(self, controls: Controls) -> None:
        controls = self._new_inputs(controls)
        if controls.rows == 0:
            return
        start = self._control_rows
        self._append("controls/start_step", start, controls.start_step)
        self._append("controls/time", start, controls.start_step * self._dt)
        for name in self._control_names:
            self._append(f"controls/{name}", start, getattr(controls, name))
        self._control_rows += controls.rows
        self._set("controls/n_valid", self._control_rows)

    def _new_inputs(self, controls: Controls) -> Controls:
        """The controls without the first row of a continued run if it only repeats the last row before."""
        values = [getattr(controls, name) for name in self._control_names]
        repeated = controls.rows > 0 and b"".join(array[0].tobytes() for array in values) == self._last_inputs
        if controls.rows:
            self._last_inputs = None
        if not repeated:
            return controls
        later = {name: array[1:] for name, array in zip(self._control_names, values, strict=True)}
        return Controls(controls.start_step[1:], **later)

    def _set(self, path: str, value: Any) -> None:
        from artsim.io.hdf5 import write_whole

        write_whole(self._datasets[path], np.ascontiguousarray(value, dtype=schema.TABLE[path].dtype))

    def _check_space(
        self, rows: int, control_rows: int, tables: Mapping[str, int] | None = None, more: int = 0
    ) -> None:
        """Raise StorageError, with the file closed properly, if the next block does not fit on the disk."""
        need = _growth(self._rows, rows, self.block_rows) * self._row_bytes
        need += _growth(self._control_rows, control_rows, self._control_chunk) * self._control_row_bytes
        for group, entries in (tables or {}).items():
            need += _growth(self._table_rows[group], entries, self._table_chunk(group)) * schema.RAGGED[group].bytes
        need += more + _MARGIN_BYTES
        free, what = room(self.path)
        if free >= need:
            return
        error = self._storage_error(f"{what} {free} bytes")
        if self._rows or self._datasets:
            self.close(schema.INTERRUPTED)
        raise error

    def _storage_error(self, reason: str) -> StorageError:
        total = "" if self._rows_total is None else f" of {self._rows_total}"
        needed = "" if self.bytes_needed is None else f"; the run needs {self.bytes_needed} bytes"
        return StorageError(f"{self.path}: writing stopped after {self._rows}{total} rows: {reason}{needed}")

    def _fail(self, error: BaseException) -> StorageError:
        """Handle a failure of HDF5: prevent its file from being closed, and return the StorageError."""
        self._broken = True
        abandon(getattr(self, "_file", None))
        return self._storage_error(reason(error))


class _Guard:
    """Turns an OSError or RuntimeError of HDF5 inside the block into StorageError, and marks the recorder broken."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError | RuntimeError) and not isinstance(error, ArtsimError):
            raise self._recorder._fail(error) from None


_ABANDONED: list[Any] = []


def abandon(file: Any) -> None:
    """Prevent HDF5 from touching a file again that it failed to write."""
    _ABANDONED.append(file)
    if len(_ABANDONED) == 1:
        atexit.register(_leave)


def _leave() -> None:
    """End the process before HDF5's own exit handler runs, which would crash on a file that it failed to write."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(StorageError.exit_code)


def _known(variables: Sequence[str]) -> tuple[str, ...]:
    """The variables in the table's order. Raises UsageError for an unknown one."""
    for name in variables:
        known = (*schema.RECORDED, *schema.RAGGED_BY_NAME)
        if name not in known:
            raise UsageError(f"cannot record {name!r}{nearest(name, known)}")
    return tuple(name for name in schema.RECORDED if name in variables)


def is_row(path: str) -> bool:
    """True if a dataset grows with the run and can be computed again."""
    group, _, name = path.partition("/")
    dims = schema.TABLE[path].dims if path in schema.TABLE else (name,)
    return group in ("trajectory", *schema.RAGGED) and dims[:1] in (("time",), ("row",))


def _has_entries(name: str, labels: Labels) -> bool:
    """True if a variable has entries; False for actuators or tendons of a robot without any."""
    dims = schema.TABLE[f"trajectory/{name}"].dims
    return all(schema.labels_of(dim, labels) for dim in dims if dim in schema.EQUIPMENT)


def _growth(rows: int, more: int, chunk: int) -> int:
    """Number of rows by which the file grows when `more` are appended, in whole chunks."""
    return (-(-(rows + more) // chunk) - -(-rows // chunk)) * chunk


def _row_shape(variable: Variable, labels: Labels) -> tuple[int, ...]:
    return tuple(len(schema.labels_of(dim, labels)) for dim in variable.dims[1:])


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def room(path: Path) -> tuple[int, str]:
    """The number of bytes that can still be written, and their bound: the disk or the process's file size limit."""
    import resource

    try:
        disk = os.statvfs(path if path.exists() else path.parent)
        size = path.stat().st_size if path.exists() else 0
    except OSError:
        return sys.maxsize, ""  # unknown: the write itself will fail
    free = disk.f_bavail * disk.f_frsize
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit - size < free:
        return limit - size, "the file size limit (ulimit -f) leaves"
    return free, "no space left on the disk: it has"
