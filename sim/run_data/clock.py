"""Measures the phases of a step: the time since the last mark is added to the phase that ends here."""

from __future__ import annotations

from typing import Any

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import cycles


@inlined
def start(clock: Any) -> None:
    """Start the clock."""
    if clock is not None:
        clock.last[0] = cycles()


@inlined
def mark(clock: Any, phase: Any) -> None:
    """End a phase; nothing is compiled where `clock` is None."""
    if clock is not None:
        now = cycles()
        clock.ticks[phase] += now - clock.last[0]
        clock.last[0] = now
