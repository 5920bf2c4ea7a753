"""Runs work that may fail, such as readers of untrusted files, in a forked child under limits of time and memory.

Such a reader may search without end, ask for all memory or crash, and none of that reaches the process itself.

A child ends with the process that started it, however that ends: on Linux the kernel kills it (PR_SET_PDEATHSIG, sent
when the thread that forked ends, so children are started by threads that wait for them); elsewhere a thread of the
child waits for the end of a pipe of which only the parent holds the other side.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple, NoReturn

_PR_SET_PDEATHSIG = 1
_SIGNALS = ("SIGALRM", "SIGXCPU", "SIGINT", "SIGTERM")  # signals that end the child, despite handlers of the process


class Limits(NamedTuple):
    """The time and memory that a child may take."""

    cpu_seconds: float
    wall_seconds: float  # the disk may be slow, and the machine busy
    memory: int  # bytes of address space in addition to those that the process has already


class Answer(NamedTuple):
    """The output of a child, whole or empty, and the signal that ended the child; 0: none."""

    data: bytes
    signal: int

    @property
    def slow(self) -> bool:
        """True if the child took too long."""
        return self.signal in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)


def can_fork() -> bool:
    """True if a fork is possible and safe: the system has forks, and the process no other threads."""
    return hasattr(os, "fork") and threading.active_count() == 1


def apart(work: Callable[[], bytes], limits: Limits) -> Answer:
    """The result of `work` in a child of this process; empty if it raises or is ended. Needs `can_fork`."""
    reader, writer = os.pipe()
    child = _fork()
    if child == 0:
        os.close(reader)
        _work(work, limits, writer)
    try:
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            data = stream.read()
    except BaseException:  # a signal of the user's
        end_children([child])
        raise
    _, status = os.waitpid(child, 0)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return Answer(b"" if ended_by else data, ended_by)


def available_cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_child(work: Callable[[], object]) -> int:
    """Run `work` in a child of this process, without limits and silent about its failure; return the child's number.

    The signals that end programs end the child, despite handlers of this process. Needs `can_fork`.
    """
    child = _fork()
    if child == 0:
        try:
            _reset_signals()
            work()
        except BaseException:
            pass  # whoever needs the result makes it again, and sees why it fails
        finally:
            os._exit(0)
    return child


def end_children(children: Iterable[int]) -> None:
    """Kill children of this process that have not been waited for, and wait for them."""
    children = list(children)
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    for child in children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _fork() -> int:
    parent, line = os.getpid(), life_line()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of numpy's, which wait for work
        child = os.fork()
    if child == 0:
        end_with(parent, line)
    return child


_lines: dict[int, tuple[int, int]] = {}  # the pipe of each process that has started children: both of its ends


def life_line() -> int:
    """The end of a pipe at which children see this process end; -1 on Linux, where the kernel ends them."""
    if sys.platform == "linux":
        return -1
    if os.getpid() not in _lines:
        _lines[os.getpid()] = os.pipe()
    return _lines[os.getpid()][0]


def end_with(parent: int, line: int) -> None:
    """End this child process with its parent, at once if the parent has ended; `line`: the parent's `life_line`."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)
        return
    if parent in _lines:  # forked: the pipe's other side is the parent's alone
        os.close(_lines[parent][1])

    def watch() -> None:
        with contextlib.suppress(OSError):
            os.read(line, 1)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _reset_signals() -> None:
    for name in _SIGNALS:
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def _work(work: Callable[[], bytes], limits: Limits, writer: int) -> NoReturn:
    """The child's part."""
    try:
        _limit(limits)
        data = work()
        with os.fdopen(writer, "wb") as stream:
            stream.write(data)
    except BaseException:
        pass  # no answer tells enough
    finally:
        os._exit(0)


def _limit(limits: Limits) -> None:
    """Bound the time and memory of this process, for good."""
    import faulthandler
    import resource

    faulthandler.disable()  # a crash is told in a line
    _reset_signals()
    signal.alarm(max(1, round(limits.wall_seconds)))
    seconds = max(1, round(limits.cpu_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    # by its number: whoever looks at the files that a reader opens has replaced `open`
    with contextlib.suppress(OSError), os.fdopen(os.open("/proc/self/statm", os.O_RDONLY), "rb") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limits.memory,) * 2)
