"""Where the time of a step goes: what passed since the last mark counts for the phase that ends here."""

from __future__ import annotations

from typing import Any

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import cycles


@inlined
def start(clock: Any) -> None:
    """The begin of what is timed."""
    if clock is not None:
        clock.last[0] = cycles()


@inlined
def mark(clock: Any, phase: Any) -> None:
    """The end of a phase; nothing is compiled of it where k, the run's Clock, is None."""
    if clock is not None:
        now = cycles()
        clock.ticks[phase] += now - clock.last[0]
        clock.last[0] = now
