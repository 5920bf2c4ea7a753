"""Compares results that were computed again with those in a file, block by block and from any thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from artsim.io.format.labels import DIMENSIONS
from artsim.io.readers.batch_recording import BatchRecording
from artsim.io.readers.differences import Difference, first_beyond, first_byte
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.sim.foundation.records import Array


class Comparison:
    """Finds the first difference between a file and results computed again; its `step` is the sample."""

    def __init__(self, stored: BatchRecording | RolloutRecording, tolerance: float) -> None:
        """`tolerance`: 0 compares bytes; else the accepted difference, relative to a variable's largest value."""
        self._stored, self._tolerance = stored, tolerance
        self._found: list[Difference] = []
        self._lock = threading.Lock()

    @property
    def first(self) -> Difference | None:
        """The difference at the lowest sample, or None."""
        return min(self._found, key=lambda found: found.step or 0, default=None)

    def compare(self, start: int, block: Mapping[str, Array]) -> None:
        """Compare the samples from `start` on."""
        for name in self._stored.variables:
            with self._lock:
                there = self._stored.read(name, start, start + len(block[name]))
            here = block[name].astype(there.dtype, copy=False)
            where = first_beyond(name, there, here, self._tolerance) if self._tolerance else first_byte(there, here)
            if where is not None:
                self._found.append(Difference(name, start + where[0], self._entry(name, where)))

    def _entry(self, name: str, where: tuple[int, ...]) -> str:
        """The labels of an entry."""
        dims = self._stored.variable(name).dims
        named = [(dim, k) for dim, k in zip(dims, where, strict=True) if dim in DIMENSIONS]
        return ", ".join(self._stored.names_of(dim)[k] for dim, k in named)
