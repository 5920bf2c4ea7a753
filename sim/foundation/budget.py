"""What a model may take before it is refused: files of strangers ask for much in few bytes, and mean to.

Everything that expands is estimated before it is made. `ARTSIM_LIMITS=4` allows four times as much of all of it.
"""

from __future__ import annotations

import math
import os

from artsim.sim.foundation.errors import MemoryShortageError, UsageError

MEMORY = 1e9  # bytes of what a model's tables take
MORE = "ARTSIM_LIMITS=N allows N times as much"


def factor() -> float:
    """By how much the limits are wider than they are by default. Raises UsageError."""
    text = os.environ.get("ARTSIM_LIMITS", "").strip() or "1"
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(f"ARTSIM_LIMITS is {text[:40]!r}, want a number above 0")
    return value


def allowed(most: float) -> float:
    """A limit, widened as the user has it."""
    return most * factor()


def refuse_beyond_memory(needed: float, what: str) -> None:
    """Raise MemoryShortageError with the estimate where `what` takes more bytes than a model may."""
    if needed > allowed(MEMORY):
        raise MemoryShortageError(
            f"{what} would take {needed / 1e9:.3g} GB, above {allowed(MEMORY) / 1e9:.3g} GB; {MORE}"
        )
