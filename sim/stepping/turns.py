"""The entry that has packs take their steps in turn, by one call from Python for any number of packs."""

from __future__ import annotations

from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.stepping.packs import Turns


@njit
def take_turns(turns: Turns) -> None:
    """Run the kernel of every pack that is due."""
    for p in range(turns.due.shape[0]):
        if turns.due[p] == 1:
            run_entry(turns.entry[p])
