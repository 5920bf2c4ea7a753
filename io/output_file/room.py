"""Room for an output on the disk."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def room(path: Path) -> tuple[int, str]:
    """The number of bytes that can still be written, and their bound: the disk or the process's file size limit."""
    import resource

    try:
        disk = os.statvfs(path if path.exists() else path.parent)
        size = path.stat().st_size if path.exists() else 0
    except OSError:
        return sys.maxsize, ""  # unknown: the write itself will fail
    free = disk.f_bavail * disk.f_frsize
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit - size < free:
        return limit - size, "the file size limit (ulimit -f) leaves"
    return free, "no space left on the disk: it has"
