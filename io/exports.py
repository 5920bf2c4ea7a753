"""The formats to which a run can be exported, one line each; a writer is imported only when it is used."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from artsim.io.finishing import put_in_place
from artsim.io.reader import Recording
from artsim.io.recorder import errno_of, reason, room
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ArtsimError, OutputError, StorageError, UsageError

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
    written: list[tuple[Path, Path]] | None = None  # of exports that are put in their places together

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


def write_all(exports: Mapping[str, Export]) -> list[str]:
    """Write exports by format, all or, where one fails, none; returns notes. Raises what `write` raises."""
    written: list[tuple[Path, Path]] = []
    notes = []
    try:
        for format_, export in exports.items():
            export.recording.check_size()
            notes += write(format_, replace(export, written=written))
        while written:
            with _storing(written[0][1]):
                put_in_place(*written[0])
            del written[0]
    finally:
        for partial, _ in written:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
    return notes


def write_whole(output: Path, data: bytes, written: list[tuple[Path, Path]] | None = None) -> None:
    """Write a file completely or not at all; `written` as in `written_whole`."""
    with written_whole(output, written=written) as partial:
        partial.write_bytes(data)


@contextlib.contextmanager
def written_whole(output: Path, size: int = 0, *, written: list[tuple[Path, Path]] | None = None) -> Iterator[Path]:
    """Yield the path of a temporary file beside the output, which replaces the output on success, else is removed.

    Its name is new and cannot be guessed, so that nobody can place a link there. size: the bytes it needs, if known;
    written: where given, the output is replaced later, by who keeps this list of temporary files and outputs.

    Raises StorageError without room for it, or if a write fails.
    """
    free, what = room(output.parent)
    if size > free:
        raise StorageError(f"{output}: cannot write: {what} {free} bytes; the file needs {size}")
    partial = output.with_name(f"{output.name[:150]}.{secrets.token_hex(8)}.partial{output.suffix}")
    try:
        with _storing(output):
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            yield partial
            if written is None:
                put_in_place(partial, output)
            else:
                written.append((partial, output))
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _storing(output: Path) -> Iterator[None]:
    """Raise StorageError where the output cannot be stored."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if errno_of(error) in _NO_ROOM:
            raise StorageError(f"{output}: cannot write: {reason(error)}") from None
        if isinstance(error, OSError) and not isinstance(error, ArtsimError):
            raise OutputError(f"{output}: cannot create: {reason(error)}") from None
        raise
