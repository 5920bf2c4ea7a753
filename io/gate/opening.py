"""HDF5 files opened: whole ones, ones being written, and ones left by a killed writer."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artsim.io.gate import seal, superblock
from artsim.io.gate.kinds import looks_like
from artsim.io.gate.locks import refuse_busy
from artsim.io.gate.values import first_line, reading
from artsim.io.gate.walk import Walk
from artsim.sim.foundation.errors import ArtsimError, BusyError, MissingInputError, ModelError
from artsim.sim.foundation.files import read_start

if TYPE_CHECKING:
    import h5py


def open_walked(path: Path) -> tuple[h5py.File, bool, dict[str, Any]]:
    """Open a file whose seal and objects are as they should be.

    Returns the file, whether a living process is writing it, and its virtual datasets by path, of which the sources are
    still to be checked.
    """
    _check_is_hdf5(path)
    with reading(path):
        if seal.is_whole(path) is False:
            raise ModelError(f"{path}: damaged: its bytes are not those that were written (checksum)")
        file, written = _open(path)
    with closing_on_error(path, file):
        return file, written, Walk(path, file).run()


@contextmanager
def closing_on_error(path: Path, file: h5py.File) -> Iterator[None]:
    """Close the file if the block raises, and turn exceptions of HDF5 into a ModelError."""
    try:
        with reading(path):
            yield
    except BaseException:
        file.close()
        raise


def refuse_virtual(path: Path, virtual: Mapping[str, Any]) -> None:
    """Raise ModelError for virtual datasets, which h5py would read from any file that they name."""
    for name in virtual:
        raise ModelError(f"{path}: refused: {name} is a virtual dataset: its data are in other files")


def _check_is_hdf5(path: Path) -> None:
    """Refuse anything but a regular HDF5 file, and name the kind that it looks like."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "directory" if stat.S_ISDIR(mode) else "device or pipe"
            raise ModelError(f"{path}: is a {kind}, not an HDF5 file")
        head = read_start(path, 512)
    except ArtsimError:
        raise
    except FileNotFoundError:
        raise MissingInputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise MissingInputError(f"{path}: cannot read: {first_line(error)}") from None
    if not head.startswith(superblock.SIGNATURE):
        raise ModelError(f"{path}: is not an HDF5 file; it looks like {looks_like(head)}")


def _open(path: Path) -> tuple[h5py.File, bool]:
    """Open a file; returns it, and whether a living process writes it. A dead writer's file is read as if closed."""
    import h5py

    with path.open("rb") as stream:
        marked = superblock.being_written(stream.read(superblock.SIZE))
    try:
        if not marked:
            return h5py.File(path, "r"), False
        if _locked(path):
            return h5py.File(path, "r", swmr=True), True
        return h5py.File(superblock.Unmarked(path), "r"), False
    except BlockingIOError:
        raise BusyError(f"{path}: is being created by another process; try again") from None


def _locked(path: Path) -> bool:
    """True if another process holds a lock on the file."""
    try:
        refuse_busy(path)
    except BusyError:
        return True
    return False
