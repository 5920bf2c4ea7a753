"""The phases of a step that are timed on request, by name, and their total times. Does not import numba."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.foundation.records import Ints1


class Clock(NamedTuple):
    """Durations of the phases of steps, in ticks of the processor's counter."""

    ticks: Ints1  # (len(PHASES),)
    last: Ints1  # (1,) time of the last mark


PHASES = (
    "kinematics and forces",
    "broad phase",
    "narrow phase",
    "mass matrix and bias",
    "rows",
    "solver",
    "integration",
    "recording",
)
FORCES, BROAD_PHASE, NARROW_PHASE, SYSTEM, ROWS, SOLVER, INTEGRATION, RECORDING = range(8)
