"""The formats to which a run can be exported, one line each; a writer is imported only when it is used."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from artsim.io.reader import Recording
from artsim.io.recorder import errno_of, reason, room
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import StorageError, UsageError

if TYPE_CHECKING:
    from artsim.io.viewer.motion import Motion


@dataclass(frozen=True)
class Export:
    """The request to a writer."""

    recording: Recording
    output: Path
    robot: Callable[[], Articulation]  # the stored robot, with its meshes if available
    fps: float = 30.0  # frame rate [1/s]
    forces: tuple[str, ...] | None = None  # kinds of motion.FORCES that are arrows; None: contacts where recorded
    force_scale: float = 1.0  # of the arrows' usual length

    def kinds_of_forces(self, motion: Motion) -> tuple[str, ...]:
        """The kinds of forces to draw. Raises UsageError for one that the file does not have, with what to record."""
        if self.forces is None:
            return tuple(kind for kind in ("contacts",) if not motion.lacks(kind))
        for kind in self.forces:
            if motion.lacks(kind):
                raise UsageError(f"{self.recording.path}: holds {motion.lacks(kind)}")
        return self.forces


class Format(NamedTuple):
    """A format: its file suffix, and its writer `module:function`, which takes an Export and returns notes."""

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
"""Formats by the name of their option, with underscores for dashes."""


def write(format_: str, export: Export) -> list[str]:
    """Write an export; returns notes. Raises UsageError and OSError as the format's writer does."""
    module, _, function = FORMATS[format_].writer.partition(":")
    notes: list[str] = getattr(import_module(module), function)(export)
    return notes


def write_whole(output: Path, data: bytes) -> None:
    """Write a file completely or not at all."""
    with written_whole(output) as partial:
        partial.write_bytes(data)


@contextlib.contextmanager
def written_whole(output: Path, size: int = 0) -> Iterator[Path]:
    """Yield the path of a temporary file beside the output, which replaces the output on success, else is removed.

    Its name is new and cannot be guessed, so that nobody can place a link there. size: the bytes it needs, if known.

    Raises StorageError without room for it, or if a write fails.
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
