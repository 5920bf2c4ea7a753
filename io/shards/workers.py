"""Computes shards in local worker processes, which communicate through pipes that no other process can reach.

A worker receives an order as text (scheduler.py) and answers with text. If a worker dies, its shard is given to a new
one, which writes the same bytes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from artsim.io.shards.shard_runs import Watch
from artsim.io.shards.shards import Finished, Shard
from artsim.sim.foundation.apart import end_with
from artsim.sim.foundation.errors import StoppedError

Stop = Callable[[], bool]
Work = Callable[..., str]  # takes an order and, in local processes, a Stop
Read = Callable[[str, Shard], Finished]

_POLL = 0.1  # s
_DEATHS = 3  # number of workers that may die of one shard
_ENDING = 20.0  # s in which workers must stop
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def follow(count: int, orders: Mapping[Shard, str], work: Work, read: Read, watch: Watch) -> bool:
    """Have `count` workers call `work` (a module-level function) with every order; False if stopped.

    Raises StoppedError if several workers die of the same shard, and whatever `read` raises for an answer.
    """
    todo = list(reversed(list(orders)))
    deaths: dict[Shard, int] = {}
    with _workers() as busy:
        while todo or busy:
            while todo and len(busy) < count:
                _start(work, busy)
            for pipe, entry in busy.items():
                if entry.shard is None and todo:
                    entry.shard = todo.pop()
                    with contextlib.suppress(OSError):  # a dead worker is detected below
                        pipe.send_bytes(orders[entry.shard].encode())
            for pipe in [pipe for pipe, entry in busy.items() if entry.shard is None]:
                _end(pipe, busy.pop(pipe))
            for ready in wait(list(busy), _POLL):
                pipe = next(pipe for pipe in busy if pipe is ready)
                shard = busy[pipe].shard
                assert shard is not None
                try:
                    answer = pipe.recv_bytes().decode()
                except (EOFError, OSError):
                    _end(pipe, busy.pop(pipe))
                    deaths[shard] = deaths.get(shard, 0) + 1
                    if deaths[shard] > _DEATHS:
                        what = "worker after worker died of it; is there memory enough?"
                        raise StoppedError(f"shard {shard.number} of {shard.of}: {what}") from None
                    todo.append(shard)
                    continue
                busy[pipe].shard = None
                watch.done(shard, read(answer, shard))
                watch.rows(0)
            if (todo or busy) and watch.stop():
                return False
    return True


class _Busy:
    """A worker and its current shard."""

    def __init__(self, process: BaseProcess) -> None:
        self.process = process
        self.shard: Shard | None = None


@contextlib.contextmanager
def _workers() -> Iterator[dict[Connection, _Busy]]:
    """Workers by their pipes; they are ended with the block."""
    busy: dict[Connection, _Busy] = {}
    try:
        yield busy
    finally:
        for pipe in busy:
            pipe.close()  # tells the worker to stop
        for entry in busy.values():
            entry.process.join(_ENDING)
            entry.process.kill()
            entry.process.join()


def _start(work: Work, busy: dict[Connection, _Busy]) -> None:
    """Start another worker, which ignores Ctrl-C and SIGTERM and is stopped through its pipe.

    A terminal or a job system sends these signals to all processes at once. The process inherits the signal mask set
    here.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    resource_tracker.ensure_running()  # starting it unblocks signals in this thread
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        process = context.Process(target=_serve, args=(work, theirs), daemon=True)
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    theirs.close()
    busy[ours] = _Busy(process)


def _end(pipe: Connection, entry: _Busy) -> None:
    """End a worker that is idle or dead."""
    pipe.close()
    entry.process.join(_ENDING)
    entry.process.kill()
    entry.process.join()


def _serve(work: Work, pipe: Any) -> None:
    """The main function of a worker: perform orders until the pipe is closed."""

    parent = multiprocessing.parent_process()
    assert parent is not None and parent.pid is not None
    end_with(parent.pid, parent.sentinel)

    def stop() -> bool:
        return bool(pipe.poll())  # orders come one at a time: while one is performed, only the end can arrive

    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(work(pipe.recv_bytes().decode(), stop).encode())
    os._exit(0)
