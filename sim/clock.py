"""Where the time of a step goes: what passed since the last mark counts for the phase that ends here."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined
from artsim.sim.lanes import cycles


@inlined
def start(k: Any) -> None:
    """The begin of what is timed."""
    if k is not None:
        k.last[0] = cycles()


@inlined
def mark(k: Any, phase: Any) -> None:
    """The end of a phase; nothing is compiled of it where k, the run's Clock, is None."""
    if k is not None:
        now = cycles()
        k.ticks[phase] += now - k.last[0]
        k.last[0] = now
