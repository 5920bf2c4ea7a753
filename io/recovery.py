"""Makes clean copies of run files whose writer died or which are continued, with only the rows written in full.

A file left by a killed writer is marked as being written, and its content beyond `n_valid` is undefined. The copy has
neither problem and opens in every HDF5 reader. The file itself is only ever replaced by renaming, so that it is
complete at any time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from artsim.io import schema, seal, superblock
from artsim.io.finishing import put_in_place
from artsim.io.reader import Recording, open_recording, reading
from artsim.io.recorder import claim, is_row, reason, room
from artsim.io.snapshots import checkpoints
from artsim.sim.foundation.errors import BusyError, OutputError, StorageError


class Recovered(NamedTuple):
    """The outcome: the clean file, its number of rows, and the state in which the run was found."""

    path: Path
    rows: int
    state: str


def recover(path: str | os.PathLike[str], output: str | os.PathLike[str] | None = None) -> Recovered:
    """Make the run file of a killed writer clean, in place or as `output`; a clean file is left unchanged.

    The run then counts as interrupted. Raises what open_recording raises; BusyError if a process is writing the file,
    OutputError, StorageError without room for the copy.
    """
    source = Path(path)
    with open_recording(source) as recording:
        state, rows = recording.state, recording.n_valid
        target = source if output is None else Path(output)
        if state == "running":
            raise BusyError(f"{source}: is being written; there is nothing to recover yet")
        unclean = state == "killed" or marked(source)
        if not unclean and output is None:
            return Recovered(source, rows, state)
        with clean_copy(recording, target) as part:
            if unclean:
                _cut(part, recording)
                _seal(part)
    return Recovered(target, rows, state)


def marked(path: Path) -> bool:
    """True if a file is marked as being written, by a living process or a dead one."""
    with path.open("rb") as stream:
        return superblock.being_written(stream.read(superblock.SIZE))


@contextmanager
def clean_copy(recording: Recording, target: Path) -> Iterator[Path]:
    """Yield a copy of the file beside `target`, without a writer's marks, which replaces the target at the end.

    Raises OutputError, StorageError, BusyError if a process is writing the target.
    """
    place = Path(os.path.realpath(target))
    part = place.with_name(f"{place.name}.recovering")
    size = recording.path.stat().st_size
    free, what = room(part)
    if free < size:
        raise StorageError(f"{target}: the clean copy needs {size} bytes: {what} {free} bytes")
    handle = claim(part)
    try:
        os.ftruncate(handle, 0)
        superblock.copy_unmarked(recording.path, handle)
        yield part
        put_in_place(part, place)
    except OSError as error:
        raise (StorageError if error.errno else OutputError)(f"{target}: cannot write: {reason(error)}") from None
    finally:
        part.unlink(missing_ok=True)
        os.close(handle)


def _cut(part: Path, recording: Recording) -> None:
    import h5py

    from artsim.io.hdf5 import cut

    with reading(part), h5py.File(part, "r+", libver=("v110", "v110"), locking=False) as file:
        cut(file, recording.n_valid, recording.controls.rows, len(checkpoints(recording)))
        file["trajectory/status"][()] = recording.status or schema.INTERRUPTED


def _seal(part: Path) -> None:
    """Seal the copy like a finished run."""
    import h5py

    with reading(part), h5py.File(part, "r", locking=False) as file:
        paths = [f"{group}/{name}" for group in ("trajectory", "contact") if group in file for name in file[group]]
        rows = seal.chunks_of(file[path].id for path in paths if is_row(path))
    with part.open("r+b") as stream:
        seal.seal(stream.fileno(), rows)
