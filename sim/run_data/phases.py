"""The phases of a step that are timed on request, and where their times add up. No numba here."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.foundation.records import Ints1


class Clock(NamedTuple):
    """How long the phases of steps took, in ticks of the processor's counter. Kernels call it `k` or `q`."""

    ticks: Ints1  # (len(PHASES),)
    last: Ints1  # (1,) the last mark


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
