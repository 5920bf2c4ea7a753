"""Shards in worker processes of this machine, started here and spoken to through pipes, which nobody else can reach.

A worker is given text (scheduler.py: an order) and gives text back. What a worker that died was working on is given to
a new one, which writes the same bytes.
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

from artsim.io.shard_runs import Watch
from artsim.io.shards import Finished, Shard
from artsim.sim.foundation.errors import StoppedError

Stop = Callable[[], bool]
Work = Callable[..., str]  # of an order and, in processes started here, Stop
Read = Callable[[str, Shard], Finished]

_POLL = 0.1  # s
_DEATHS = 3  # workers that may die of one shard
_ENDING = 20.0  # s that workers have to put away what they are at
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def follow(count: int, orders: Mapping[Shard, str], work: Work, read: Read, watch: Watch) -> bool:
    """Have `count` workers call `work` (a function of a module) with every order; False when it is time to stop.

    Raises StoppedError when a shard kills worker after worker, and what `read` raises of an answer.
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
                    with contextlib.suppress(OSError):  # it died: that is seen below
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
    """A worker and what it is at."""

    def __init__(self, process: BaseProcess) -> None:
        self.process = process
        self.shard: Shard | None = None


@contextlib.contextmanager
def _workers() -> Iterator[dict[Connection, _Busy]]:
    """Workers by their pipes; they end with the block."""
    busy: dict[Connection, _Busy] = {}
    try:
        yield busy
    finally:
        for pipe in busy:
            pipe.close()  # which a worker takes for a sign to stop
        for entry in busy.values():
            entry.process.join(_ENDING)
            entry.process.kill()
            entry.process.join()


def _start(work: Work, busy: dict[Connection, _Busy]) -> None:
    """One more worker. It is deaf to Ctrl-C and SIGTERM, which a terminal or a job system sends to all processes at
    once: the pipe tells it when to stop. What blocks signals here is inherited by the process.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    resource_tracker.ensure_running()  # it unblocks signals in the thread that starts it
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        process = context.Process(target=_serve, args=(work, theirs), daemon=True)
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    theirs.close()
    busy[ours] = _Busy(process)


def _end(pipe: Connection, entry: _Busy) -> None:
    """A worker that has nothing to do any more, or is dead."""
    pipe.close()
    entry.process.join(_ENDING)
    entry.process.kill()
    entry.process.join()


def _serve(work: Work, pipe: Any) -> None:
    """A worker: order after order, until the pipe ends."""

    def stop() -> bool:
        return bool(pipe.poll())  # orders come one at a time: there is something only at the end

    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(work(pipe.recv_bytes().decode(), stop).encode())
    os._exit(0)
