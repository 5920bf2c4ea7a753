"""Limits on the resources of a model: a small untrusted file may ask for a great deal, even deliberately.

Everything that expands is estimated before it is created. `ARTSIM_LIMITS=4` allows four times as much of everything.
"""

from __future__ import annotations

import math
import os

from artsim.sim.foundation.errors import MemoryShortageError, UsageError

MEMORY = 1e9  # bytes of a model's tables
MORE = "ARTSIM_LIMITS=N allows N times as much"


def factor() -> float:
    """The factor by which ARTSIM_LIMITS widens the limits. Raises UsageError."""
    text = os.environ.get("ARTSIM_LIMITS", "").strip() or "1"
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(f"ARTSIM_LIMITS is {text[:40]!r}, want a number above 0")
    return value


def allowed(most: float) -> float:
    """A limit, widened by the user's factor."""
    return most * factor()


def refuse_beyond_memory(needed: float, what: str) -> None:
    """Raise MemoryShortageError with the estimate where `what` takes more bytes than a model may."""
    if needed > allowed(MEMORY):
        raise MemoryShortageError(
            f"{what} would take {needed / 1e9:.3g} GB, above {allowed(MEMORY) / 1e9:.3g} GB; {MORE}"
        )
