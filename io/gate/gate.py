"""The gate: every .h5 file that a command reads passes through here, and is refused unless it is clearly harmless.

An HDF5 file may point to other files (external links, external raw storage, virtual datasets: h5py would disclose
/etc/passwd to the sender of such a file), declare 10^12 numbers in a kilobyte, link in circles, or load code (filter
plugins).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from artsim.io.gate.opening import closing_on_error, open_walked
from artsim.io.gate.probe import probe
from artsim.io.gate.shard_table import check_shards

if TYPE_CHECKING:
    import h5py


def open_checked(path: str | os.PathLike[str]) -> h5py.File:
    """Open an HDF5 file for reading if it is harmless, even if it is being written or its writer was killed.

    Raises MissingInputError (66: missing or not readable), ModelError (65: not HDF5, damaged, or refused, with the path
    of the offending object), BusyError (75: another process has just created it).
    """
    probe(Path(path), lambda: open_gated(Path(path))[0].close())
    return open_gated(Path(path))[0]


def open_gated(path: Path, *, shards: bool = True) -> tuple[h5py.File, bool]:
    """Open a file through the gate; returns it, and whether a living process is writing it.

    `shards`: check those of an index, too; callers that leave them unchecked must not read /batch.
    """
    file, written, virtual = open_walked(path)
    if virtual and shards:
        with closing_on_error(path, file):
            check_shards(path, file, virtual)
    return file, written
