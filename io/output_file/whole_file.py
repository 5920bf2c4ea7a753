"""Files written completely or not at all.

After a power failure, too, there is the file that was there before, or the new one, whole: a finished file is on the
disk before it has its name, and then its name is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from artsim.io.output_file.claim import room
from artsim.io.output_file.failure import errno_of, reason
from artsim.sim.foundation.errors import ArtsimError, OutputError, StorageError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


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
        with storing(output):
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
def storing(output: Path) -> Iterator[None]:
    """Raise StorageError where the output cannot be stored."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if errno_of(error) in _NO_ROOM:
            raise StorageError(f"{output}: cannot write: {reason(error)}") from None
        if isinstance(error, OSError) and not isinstance(error, ArtsimError):
            raise OutputError(f"{output}: cannot create: {reason(error)}") from None
        raise


def put_in_place(part: Path, place: Path) -> None:
    """Sync a finished file, give it its name, and sync the folder. Raises OSError."""
    handle = os.open(part, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    part.replace(place)
    sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk."""
    with contextlib.suppress(OSError):  # unsupported by some file systems; the file itself is safe
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
