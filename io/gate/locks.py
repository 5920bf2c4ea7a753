"""Locks of files, by which a writer keeps out other writers."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from artsim.sim.foundation.errors import BusyError


def refuse_busy(path: Path) -> None:
    """Raise BusyError if another process holds a lock on the file, as a writer always does."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return  # unreadable: whoever opens it next says why
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BusyError(f"{path}: in use by {holder(os.fstat(handle))}") from None
    except OSError:
        pass  # a file system without locks
    finally:
        os.close(handle)


def holder(status: os.stat_result) -> str:
    """The text `process 123` from the kernel's lock table, if available."""
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if len(words) >= 6 and words[5] == device:
                return f"process {words[4]}"
    except OSError:
        pass
    return "another process"
