"""Counts the given configurations that lie beyond joint limits, so that a batch can say so."""

from __future__ import annotations

import math
import threading

import numpy as np

from artsim.sim.articulation.model import Labels, Model
from artsim.sim.foundation.records import Array

_SLACK = 1e-9  # rad or m beyond a limit that are rounding
_TURNS = 4 * math.pi  # rad of a hinge that are hardly intended


class LimitCheck:
    """The rows seen so far that are beyond the limits of a joint, from any thread."""

    def __init__(self, model: Model, labels: Labels) -> None:
        bounded = np.flatnonzero((model.dof_coord >= 0) & (np.isfinite(model.lower) | np.isfinite(model.upper)))
        hinges = np.flatnonzero((model.dof_coord >= 0) & (model.dof_linear == 0))
        self._coord, self._names = model.dof_coord[bounded], labels.coords
        self._lower, self._upper = model.lower[bounded], model.upper[bounded]
        self._hinge = set(model.dof_coord[hinges].tolist())
        self._lock = threading.Lock()
        self.rows, self._first = 0, (math.inf, 0, 0.0)  # row, place among the bounded, value

    def see(self, first: int, qpos: Array) -> None:
        """Look at rows of coordinates (n, nq) that begin at row `first`; those that are no numbers are left out."""
        values = qpos[:, self._coord]
        beyond = (values < self._lower - _SLACK) | (values > self._upper + _SLACK)
        rows = np.flatnonzero(beyond.any(axis=1))
        if len(rows):
            k = int(np.argmax(beyond[rows[0]]))
            with self._lock:
                self.rows += len(rows)
                self._first = min(self._first, (first + int(rows[0]), k, float(values[rows[0], k])))

    def notes(self) -> list[str]:
        """A warning that names the first such row and its joint; empty if there is none."""
        if not self.rows:
            return []
        row, k, value = self._first
        coord = int(self._coord[k])
        hint = ""
        if coord in self._hinge and abs(value) > _TURNS:
            hint = f"; if degrees are meant, {value:.6g} is {math.radians(value):.6g} rad"
        limits = f"[{self._lower[k]:.6g}, {self._upper[k]:.6g}]"
        return [
            f"{self.rows} row{'s are' if self.rows > 1 else ' is'} beyond joint limits (first: row {row}, counted from "
            f"0, {self._names[coord]} at {value:.6g}, limits {limits}){hint}"
        ]
