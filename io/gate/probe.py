"""Opens an untrusted file first in a child process, which may fail.

HDF5 is C: a damaged or crafted file can make it loop for ever, allocate all memory or crash. A forked child therefore
opens the file first, with limits of time and memory; a file that the child survives is safe for the process itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artsim.sim.foundation.apart import Limits, apart, can_fork
from artsim.sim.foundation.errors import ModelError

CPU_SECONDS = 4
_TEXT = 4000


def probe(path: Path, look: Callable[[], None]) -> None:
    """Call `look` in a child. Raises ModelError if `look` raises one, crashes, or exceeds the limits of time or memory.

    Without a child nothing is tried; other errors will occur again in the process itself.
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
