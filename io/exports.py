"""What a run can be exported to: one line per format, whose writer is imported when it is asked for."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from artsim.io.reader import Recording
from artsim.io.recorder import errno_of, reason, room
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import StorageError


@dataclass(frozen=True)
class Export:
    """What is asked of a writer."""

    recording: Recording
    output: Path
    robot: Callable[[], Articulation]  # the stored robot, with its meshes where they are at hand
    fps: float = 30.0  # of what moves


class Format(NamedTuple):
    """A format: its file, and `module:function`, called with an Export, returning what the user should know."""

    suffix: str
    writer: str
    meaning: str


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

FORMATS = {
    "csv": Format(".csv", "artsim.io.export_tables:write_csv", "a table as text, a line per row"),
    "npz": Format(".npz", "artsim.io.export_tables:write_npz", "NumPy arrays by name, contacts and inputs too"),
    "parquet": Format(".parquet", "artsim.io.export_tables:write_parquet", "a table for pandas, Polars, Spark"),
    "contacts_csv": Format(".csv", "artsim.io.export_tables:write_contacts_csv", "contacts as text, a line for each"),
    "contacts_parquet": Format(
        ".parquet", "artsim.io.export_tables:write_contacts_parquet", "contacts as a table, a row for each"
    ),
    "mcap": Format(".mcap", "artsim.io.export_mcap:write_mcap", "a log for Foxglove: a topic per variable"),
    "robomimic": Format(".hdf5", "artsim.io.export_robomimic:write_robomimic", "a demonstration as robomimic reads it"),
    "video": Format(".mp4", "artsim.io.viewer.video:write_video", "a video"),
    "html": Format(".html", "artsim.io.viewer.page:write_page", "one page that plays in any browser, offline"),
}
"""By the option's name, its dashes as underscores."""


def write(format_: str, export: Export) -> list[str]:
    """Write one; returns notes. Raises UsageError and OSError as the format's writer does."""
    module, _, function = FORMATS[format_].writer.partition(":")
    notes: list[str] = getattr(import_module(module), function)(export)
    return notes


def write_whole(output: Path, data: bytes) -> None:
    """All of it or nothing."""
    with written_whole(output) as partial:
        partial.write_bytes(data)


@contextlib.contextmanager
def written_whole(output: Path, size: int = 0) -> Iterator[Path]:
    """A file to write, beside the output; it is put in its place when all went well, else removed.

    Its name cannot be guessed, and nothing has it yet: nobody lays a link there. size: bytes that it needs, if known.

    Raises StorageError where there is no room for it, or a write fails.
    """
    free, what = room(output.parent)
    if size > free:
        raise StorageError(f"{output}: cannot write: {what} {free} bytes; the file needs {size}")
    partial = output.with_name(f"{output.name[:150]}.{secrets.token_hex(8)}.partial{output.suffix}")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield partial
        partial.replace(output)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, (OSError, RuntimeError)) and errno_of(error) in _NO_ROOM:
            raise StorageError(f"{output}: cannot write: {reason(error)}") from None
        raise
