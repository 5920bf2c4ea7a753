"""Counts the given configurations that lie beyond joint limits, so that a batch can say so."""

from __future__ import annotations

import math
import threading

import numpy as np

from artsim.sim.articulation.model import Labels, Model
from artsim.sim.articulation.turn_limits import beyond_turns
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
        self._model, self._labels = model, labels
        self._lock = threading.Lock()
        self.rows, self._first = 0, (math.inf, "", 0.0, (0.0, 0.0), False)  # row, name, value, limits, of a hinge

    def see(self, first: int, qpos: Array) -> None:
        """Look at rows of coordinates (n, nq) that begin at row `first`; those that are no numbers are left out."""
        values = qpos[:, self._coord]
        beyond = (values < self._lower - _SLACK) | (values > self._upper + _SLACK)
        odd = beyond.any(axis=1)
        turns = beyond_turns(self._model, self._labels, qpos) if len(self._model.turn_range) else []
        for turned, _, _, _ in turns:
            odd = odd | turned
        rows = np.flatnonzero(odd)
        if len(rows):
            row = int(rows[0])
            name, value, limits, hinge = self._culprit(values[row], beyond[row], turns, row)
            with self._lock:
                self.rows += len(rows)
                if first + row < self._first[0]:
                    self._first = first + row, name, value, limits, hinge

    def _culprit(
        self, values: Array, beyond: Array, turns: list[tuple[Array, str, Array, Array]], row: int
    ) -> tuple[str, float, tuple[float, float], bool]:
        """What is beyond its limits in a row, its value and limits, and whether it is a hinge."""
        if beyond.any():
            k = int(np.argmax(beyond))
            coord, limits = int(self._coord[k]), (float(self._lower[k]), float(self._upper[k]))
            return self._names[coord], float(values[k]), limits, coord in self._hinge
        what, angle, ends = next((what, angle, ends) for odd, what, angle, ends in turns if odd[row])
        return what, float(angle[row]), (float(ends[row, 0]), float(ends[row, 1])), False

    def notes(self) -> list[str]:
        """A warning that names the first such row and its joint; empty if there is none."""
        if not self.rows:
            return []
        row, name, value, (lower, upper), hinge = self._first
        hint = ""
        if hinge and abs(value) > _TURNS:
            hint = f"; if degrees are meant, {value:.6g} is {math.radians(value):.6g} rad"
        limits = f"[{lower:.6g}, {upper:.6g}]"
        return [
            f"{self.rows} row{'s are' if self.rows > 1 else ' is'} beyond joint limits (first: row {row}, counted from "
            f"0, {name} at {value:.6g}, limits {limits}){hint}"
        ]
