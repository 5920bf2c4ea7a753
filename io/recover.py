"""Runs whose writer died, or is to go on: a clean copy of the file, cut to rows that were written in full.

A file left by a killed writer is marked as being written, and beyond `n_valid` may hold anything. The copy has neither:
it opens in every reader of HDF5. The file itself is replaced, if at all, by renaming, so that it is whole at any time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from artsim.io import schema, superblock
from artsim.io.reader import Recording, open_recording, reading
from artsim.io.recorder import claim, reason, room
from artsim.sim.errors import BusyError, OutputError, StorageError

if TYPE_CHECKING:
    import h5py


class Recovered(NamedTuple):
    """What came of it: the clean file, its rows, the state in which the run was found."""

    path: Path
    rows: int
    state: str


def recover(path: str | os.PathLike[str], output: str | os.PathLike[str] | None = None) -> Recovered:
    """Make a run file clean that its killed writer left, in its place or as `output`; a clean one stays as it is.

    It then counts as interrupted. Raises as open_recording does; BusyError while a process writes it, OutputError,
    StorageError when there is no room for the copy.
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
                cut(part, rows, recording.status or schema.INTERRUPTED)
    return Recovered(target, rows, state)


def marked(path: Path) -> bool:
    """Whether a file is marked as being written, by whoever lives or not."""
    with path.open("rb") as stream:
        return superblock.being_written(stream.read(superblock.SIZE))


@contextmanager
def clean_copy(recording: Recording, target: Path) -> Iterator[Path]:
    """A copy of the file beside `target`, without a writer's marks; it takes the target's place in the end.

    Raises OutputError, StorageError, BusyError when a process writes the target.
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
        _copy(recording.path, handle)
        yield part
        os.fsync(handle)
        part.replace(place)
    except OSError as error:
        raise (StorageError if error.errno else OutputError)(f"{target}: cannot write: {reason(error)}") from None
    finally:
        part.unlink(missing_ok=True)
        os.close(handle)


def _copy(path: Path, handle: int) -> None:
    """The file's bytes, the head's marks cleared."""
    with path.open("rb") as source, os.fdopen(os.dup(handle), "wb") as target:
        head = source.read(superblock.SIZE)
        if superblock.being_written(head):
            head = superblock.without_marks(head, os.fstat(source.fileno()).st_size)
        target.write(head)
        shutil.copyfileobj(source, target, 1 << 20)


def cut(path: Path, rows: int, status: int) -> None:
    """Cut a run file without a writer to so many of its valid rows, and set its status."""
    import h5py

    with reading(path), h5py.File(path, "r+", libver=("v110", "v110"), locking=False) as file:
        _shorten(file["trajectory"], rows)
        if "contact" in file:
            counts = file["contact/contact_count"][:rows]
            for name in ("time", "contact_count"):
                file["contact"][name].resize(rows, 0)
            _shorten(file["contact"], int(np.sum(counts)), but=("time", "contact_count"))
        _shorten(file["controls"], int(file["controls/n_valid"][()]))
        file["trajectory/status"][()] = status


def _shorten(group: h5py.Group, rows: int, but: tuple[str, ...] = ()) -> None:
    """Everything in a group that grows, to so many rows."""
    for name, dataset in group.items():
        if name not in but and dataset.ndim and dataset.maxshape[0] is None:
            dataset.resize(rows, 0)
    group["n_valid"][()] = rows
