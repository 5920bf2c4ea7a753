"""The start of a file that a user names, read without waiting for the system's own files that never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_start(path: Path, most: int) -> bytes:
    """At most `most` bytes from the start of a regular file. Raises OSError.

    A file whose size is 0 counts as empty: the system's own (/proc/kmsg) tell no size, and some of them never end.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    with os.fdopen(os.open(path, flags), "rb") as stream:
        about = os.fstat(stream.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise OSError(0, "not a regular file", str(path))
        return stream.read(min(most, about.st_size))
