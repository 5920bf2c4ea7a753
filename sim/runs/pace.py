"""How many steps a call takes, and what becomes of a call that takes too long for a signal to wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MOST_STEPS = 4096  # of a call
_FIRST = 16
_AIM = 0.2  # s that a call should take: a signal is looked at between calls
_PATIENCE = 0.4  # s that a call may go on after a signal
_LOOK = 0.05  # s between looks at the signal during a call


class Pace:
    """Steps per call by what steps cost so far."""

    def __init__(self) -> None:
        self._steps = _FIRST
        self.slow = True  # steps may take so long that even one of them is watched

    def steps(self) -> int:
        """How many steps the next call may take."""
        return self._steps

    def note(self, steps: int, seconds: float) -> None:
        """Learn from a call."""
        cost = seconds / max(steps, 1)
        self._steps = max(1, min(MOST_STEPS, 4 * max(steps, 1), int(_AIM / max(cost, 1e-9))))
        self.slow = cost > _AIM / 20


def call_watched(call: Callable[[], None], signalled: Callable[[], bool]) -> bool:
    """Call in a thread of its own, which holds no lock of Python's; False where a signal came and it did not end soon.

    The call then goes on in vain, on its own arrays, until the process ends.
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
