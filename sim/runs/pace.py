"""Chooses the number of steps per kernel call, and abandons a call that outlasts a signal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MOST_STEPS = 4096  # per call
_FIRST = 16
_AIM = 0.2  # s that a call should take: signals are polled between calls
_PATIENCE = 0.4  # s for which a call may continue after a signal
_LOOK = 0.05  # s between polls of the signal during a call


class Pace:
    """Steps per call, chosen from the cost of previous steps."""

    def __init__(self) -> None:
        self._steps = _FIRST
        self.slow = True  # True while steps may take so long that even a single one is watched

    def steps(self) -> int:
        """The number of steps of the next call."""
        return self._steps

    def note(self, steps: int, seconds: float) -> None:
        """Record the duration of a call [s]."""
        cost = seconds / max(steps, 1)
        self._steps = max(1, min(MOST_STEPS, 4 * max(steps, 1), int(_AIM / max(cost, 1e-9))))
        self.slow = cost > _AIM / 20


def call_watched(call: Callable[[], None], signalled: Callable[[], bool]) -> bool:
    """Run a call in a thread of its own without the GIL; False if a signal came and the call did not end soon.

    The abandoned call then continues on its own arrays until the process ends.
    """
    failures: list[BaseException] = []

    def work() -> None:
        try:
            call()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    left = _PATIENCE
    while thread.is_alive() and left > 0:
        before = time.perf_counter()
        thread.join(_LOOK)
        if signalled():
            left -= time.perf_counter() - before
    if failures:
        raise failures[0]
    return not thread.is_alive()
