"""The index of a job in shards: a small HDF5 file that presents the files with the rows as one output.

/batch or /rollout holds virtual datasets over the shards, which are found by name in the folder of the index; /shards
lists them.
"""

from __future__ import annotations

import glob
import os
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from artsim.io.gate import seal
from artsim.io.gate.shard_table import Entry, contact_spans
from artsim.io.output_file.batch_file import Content, check_room, lay_out_contacts, lay_out_groups
from artsim.io.output_file.failure import abandon, reason
from artsim.io.output_file.layout import Section, texts
from artsim.io.output_file.whole_file import put_in_place
from artsim.sim.foundation.errors import StorageError

_SHARD_BYTES = 512  # upper bound of the index's bytes per shard and dataset


def write_index(path: Path, content: Content, entries: Sequence[Entry], created: str) -> None:
    """Write the index of these shards under a temporary name, then rename it. Raises StorageError.

    The same shards give the same bytes, so it does not matter which of several processes writes last.
    """
    import h5py

    partial = _own_partial(path)
    check_room(path, partial, content, len(entries) * (1 + len(content.columns) + len(content.contacts)) * _SHARD_BYTES)
    sources = [(entry.name, entry.first_row, entry.rows) for entry in entries if entry.rows]
    file = None
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # never follow a link planted there
        file = h5py.File(partial, "w", libver=("v110", "v110"), locking=False)
        lay_out_groups(file, content, sources, created)
        if content.contacts:
            spans = contact_spans(entries)
            lay_out_contacts(file, content, sum(count for _, _, count in spans), spans)
        _lay_out_table(Section(file.id, "shards", content.labels), entries)
        file.close()
    except (OSError, RuntimeError) as error:
        abandon(file)
        raise StorageError(f"{path}: cannot write the index: {reason(error)}") from None
    try:
        with partial.open("r+b") as stream:
            seal.seal(stream.fileno())
        put_in_place(partial, path)
    except OSError as error:
        raise StorageError(f"{path}: cannot finish the index: {reason(error)}") from None
    finally:
        partial.unlink(missing_ok=True)


def _own_partial(path: Path) -> Path:
    """An unguessable temporary name of this process; removes such files of dead processes of this machine."""
    host = socket.gethostname()
    for old in path.parent.glob(f"{glob.escape(f'{path.name}.{host}-')}*.partial"):
        pid = old.name.removeprefix(f"{path.name}.{host}-").partition(".")[0]
        if pid.isdecimal() and not _is_alive(int(pid)):
            old.unlink(missing_ok=True)
    return path.with_name(f"{path.name}.{host}-{os.getpid()}.{secrets.token_hex(8)}.partial")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _lay_out_table(section: Section, entries: Sequence[Entry]) -> None:
    numbers = np.arange(1, len(entries) + 1)
    section.group.fixed("shard", numbers, ["shard"], {"units": "1", "long_name": "shard"})
    for field in Entry._fields:
        values = [getattr(entry, field) for entry in entries]
        section.fixed(field, texts(values) if isinstance(values[0], str) else np.array(values, np.int64))
