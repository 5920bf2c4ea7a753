"""A first look at a file from a stranger, by a child process that may fail.

HDF5 is C: a damaged or crafted file can let it search for ever, ask for all memory or crash. A forked child opens the
file first, under limits of time and memory; what it survives, the process itself may do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artsim.sim.foundation.apart import Limits, apart, can_fork
from artsim.sim.foundation.errors import ModelError

CPU_SECONDS = 4
_TEXT = 4000


def probe(path: Path, look: Callable[[], None]) -> None:
    """Call `look` in a child. Raises ModelError where it raises one, crashes, or asks for too much time or memory.

    Where there can be no child nothing is tried; what else goes wrong in it, the process itself will see.
    """

    def told() -> bytes:
        try:
            look()
        except ModelError as error:
            return str(error).encode()[:_TEXT]
        return b""

    if not can_fork():
        return
    answer = apart(told, Limits(CPU_SECONDS, wall_seconds=60, memory=1 << 30))
    if answer.data:
        raise ModelError(answer.data.decode("utf-8", "replace"))
    if answer.signal:
        what = "does not come to an end" if answer.slow else "crashes"
        raise ModelError(f"{path}: damaged: HDF5 {what} while reading it")
