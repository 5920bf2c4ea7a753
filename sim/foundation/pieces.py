"""Rows that several threads compute, in pieces that each takes as it becomes free."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from artsim.sim.foundation.records import Array

PIECE = 1024  # number of rows that a thread takes at a time


def compute_in_pieces(workers: Sequence[tuple[Array, Callable[[], None]]], rows: int, piece: int = PIECE) -> None:
    """Compute rows 0 … rows: a worker is the bounds (2,) of its piece, and the function that computes it.

    The first worker is this thread.
    """
    if len(workers) == 1 or rows <= piece:
        bounds, call = workers[0]
        bounds[0], bounds[1] = 0, rows
        call()
        return
    starts = iter(range(0, rows, piece))  # next() on it is atomic under the GIL

    def work(bounds: Array, call: Callable[[], None]) -> None:
        for start in starts:
            bounds[:] = (start, min(start + piece, rows))
            call()

    threads = [threading.Thread(target=work, args=worker) for worker in workers[1:]]
    for thread in threads:
        thread.start()
    work(*workers[0])
    for thread in threads:
        thread.join()
