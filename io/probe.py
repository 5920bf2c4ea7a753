"""A first look at a file from a stranger, by a child process that may fail.

HDF5 is C: a damaged or crafted file can let it search for ever, ask for all memory or crash. A forked child opens the
file first, under limits of time and memory; what it survives, the process itself may do.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

from artsim.sim.errors import ModelError

CPU_SECONDS = 4
_WALL_SECONDS = 60  # the disk may be slow, and the machine busy
_MEMORY = 1 << 30
_TEXT = 4000


def probe(path: Path, look: Callable[[], None]) -> None:
    """Call `look` in a child. Raises ModelError where it raises one, crashes, or asks for too much time or memory.

    Not beside other threads, where a fork is not safe, nor where there is no fork: then nothing is tried.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of numpy's, which wait for work
        child = os.fork()
    if child == 0:
        os.close(reader)
        _look(look, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        told = stream.read(_TEXT).decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    if told:
        raise ModelError(told)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        slow = number in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)
        raise ModelError(f"{path}: damaged: HDF5 {'does not come to an end' if slow else 'crashes'} while reading it")


def _look(look: Callable[[], None], writer: int) -> None:
    """The child's part; it never returns."""
    try:
        _limit()
        look()
    except ModelError as error:
        os.write(writer, str(error).encode()[:_TEXT])
    except BaseException:
        pass  # the process itself will see it
    finally:
        os._exit(0)


def _limit() -> None:
    import faulthandler
    import resource

    faulthandler.disable()  # a crash is told in a line
    for number in (signal.SIGALRM, signal.SIGXCPU, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(_WALL_SECONDS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MEMORY,) * 2)
