"""Measures the phases of a step: the time since the last mark is added to the phase that ends here."""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import cycles
from artsim.sim.run_data.phases import Clock


@inlined
def start(clock: Clock | None) -> None:
    """Start the clock."""
    if clock is not None:
        clock.last[0] = cycles()


@inlined
def mark(clock: Clock | None, phase: int) -> None:
    """End a phase; nothing is compiled where `clock` is None."""
    if clock is not None:
        now = cycles()
        clock.ticks[phase] += now - clock.last[0]
        clock.last[0] = now
