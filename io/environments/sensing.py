"""Observations as agents get them: values of expressions with noise, delay, scale and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from artsim.io.environments.task import Observation
from artsim.sim.foundation.records import Array


class Sensing:
    """The observation of a task, made from the first outputs of its program.

    Attributes: `size` of an observation; `names` of its entries; `parts`, the entries of each observed value by name;
    `low` and `high` (size,) bounds.
    """

    def __init__(self, wanted: Mapping[str, Observation], sizes: Mapping[str, int]) -> None:
        ends = np.cumsum([0, *sizes.values()]).tolist()
        self.size = ends[-1]
        self.parts = {name: slice(*pair) for name, pair in zip(sizes, pairwise(ends), strict=True)}
        self.names = tuple(name if size == 1 else f"{name}[{k}]" for name, size in sizes.items() for k in range(size))
        each = [wanted[name] for name, size in sizes.items() for _ in range(size)]
        self._noise, self._offset, self._scale, self.high = (
            np.array([getattr(one, name) for one in each]) for name in ("noise", "offset", "scale", "clip")
        )
        self.low = -self.high
        self._delay = np.array([one.delay for one in each], np.int64)
        self._noisy, self._scaled = bool(self._noise.any()), bool((self._offset != 0).any() or (self._scale != 1).any())
        self._bounded = bool(np.isfinite(self.high).any())
        self._history, self._now = np.zeros((int(self._delay.max()) + 1, 0, self.size)), 0

    def begin(self, robots: Array, output: Array, generators: Sequence[np.random.Generator]) -> None:
        """Measure robots that begin anew, whose delayed observations begin with the present values."""
        measured = output[robots, : self.size]
        if self._noisy:
            measured = measured + self._noise * np.array([each.standard_normal(self.size) for each in generators])
        if self._history.shape[1] != len(output):
            self._history = np.zeros((len(self._history), len(output), self.size))
        self._history[:, robots] = measured

    def measure(self, robots: Array, output: Array, noise: np.random.Generator) -> None:
        """Measure robots after a step. Noise is drawn for all, so that a robot's does not depend on the others."""
        self._now = (self._now + 1) % len(self._history)
        place = self._history[self._now]
        if self._noisy:
            drawn = noise.standard_normal(place.shape)
            place[robots] = output[robots, : self.size] + self._noise * drawn[robots]
        else:
            place[robots] = output[robots, : self.size]

    def write(self, robots: Array, out: Array) -> None:
        """Write the observations of robots."""
        if len(self._history) == 1:
            found = self._history[0, robots]
        else:
            found = np.empty((len(robots), self.size))
            for delay in np.unique(self._delay):
                own = self._delay == delay
                found[:, own] = self._history[(self._now - delay) % len(self._history)][np.ix_(robots, own)]
        if self._scaled:
            found = (found - self._offset) * self._scale
        if self._bounded:
            found = np.clip(found, self.low, self.high)
        out[robots] = found
