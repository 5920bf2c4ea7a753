"""A finished file put in its place: on the disk before it has its name, and the name on the disk, too, so that after a
power failure there is the file that was there before, or the new one, whole.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


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
