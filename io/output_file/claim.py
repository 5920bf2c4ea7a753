"""The place of an output: checked before anything is computed, its room on the disk, and its claim by a lock."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from pathlib import Path

from artsim.io.gate.locks import holder, refuse_busy
from artsim.io.output_file.failure import reason
from artsim.sim.foundation.errors import BusyError, OutputError


def check_output(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Refuse an output that cannot be created, before anything is computed; imports no HDF5, creates nothing.

    Raises OutputError (exit 73: directory, device, exists without `force`, no such folder, not writable) or
    BusyError (exit 75: another process writes it).
    """
    target = Path(path)
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        _check_folder(target)
        return
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: cannot create: {reason(error)}") from None
    if stat.S_ISDIR(mode):
        raise OutputError(f"{path}: is a directory; give the name of a file to create")
    if not stat.S_ISREG(mode):
        raise OutputError(f"{path}: is a device or pipe, not a file; HDF5 needs a file it can seek in")
    refuse_busy(target)
    if not force:
        raise OutputError(f"{path}: exists already; use --force to overwrite it")
    if not os.access(target, os.W_OK):
        raise OutputError(f"{path}: cannot overwrite: permission denied")
    _check_folder(Path(os.path.realpath(target)))


def _check_folder(target: Path) -> None:
    folder = target.parent
    if not folder.is_dir():
        what = "is not a directory" if folder.exists() else "does not exist"
        raise OutputError(f"{target}: cannot create: folder {str(folder)!r} {what}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{target}: cannot create: folder {str(folder)!r} is not writable")


def claim(path: Path) -> int:
    """Open or create a temporary file for reading and writing, and lock it.

    Links are refused, since they could lead to a file that is then destroyed, and so are files of other owners, who
    could read the output. Raises OutputError, BusyError.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        raise OutputError(f"{path}: cannot create: {reason(error)}") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        raise OutputError(f"{path}: is a device or pipe in the place of a file; remove it")
    if about.st_nlink != 1 or about.st_uid != os.geteuid():
        os.close(handle)
        raise OutputError(f"{path}: is in the way: it is somebody else's, or has other names too; remove it")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        told = f"{path}: in use by {holder(os.fstat(handle))}"
        os.close(handle)
        raise BusyError(told) from None
    except OSError:
        pass  # a file system without locks
    return handle


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
