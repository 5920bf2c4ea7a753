"""Failures of writing: their reasons, and files that HDF5 failed to write.

The state of HDF5 after a failed write (disk full, I/O error) cannot be repaired, and HDF5 2.0 crashes while the
interpreter exits (SIGBUS or SIGSEGV in trials). Once a file is abandoned, a guard therefore ends the process by
`os._exit(74)` after Python's own exit handlers, with stdout and stderr flushed.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
from typing import Any

from artsim.sim.foundation.errors import StorageError


def reason(error: BaseException) -> str:
    """The operating system's message if there is one, else the first line of the error."""
    number = errno_of(error)
    return os.strerror(number) if number else str(error).split("\n", 1)[0]


def errno_of(error: BaseException) -> int | None:
    """The operating system's error number, which HDF5 hides in its text."""
    hidden = re.search(r"errno = (\d+)", str(error))
    return int(hidden[1]) if hidden else getattr(error, "errno", None)


_ABANDONED: list[Any] = []


def abandon(file: Any) -> None:
    """Prevent HDF5 from touching a file again that it failed to write."""
    _ABANDONED.append(file)
    if len(_ABANDONED) == 1:
        atexit.register(_leave)


def _leave() -> None:
    """End the process before HDF5's own exit handler runs, which would crash on a file that it failed to write."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(StorageError.exit_code)
