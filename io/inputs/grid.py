"""Configurations on a grid, the input of `batch --grid`: every combination of evenly spaced coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artsim.sim.articulation.model import Labels, Model, following_dofs
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real

Axis = tuple[float, float, int]
"""The ends of a coordinate's range [rad, m], and the number of its values, both ends included."""


class Grid:
    """A Source (configurations.py): the last named coordinate changes fastest, the others are those of `start`.

    Followers of exact couplings are where their leaders put them; other inputs are zero. Raises UsageError: a name that
    is no coordinate, one that follows another or is part of a rotation, a number of rows beyond 2^53.
    """

    threads = True

    def __init__(
        self, model: Model, labels: Labels, axes: Mapping[str, Axis], start: Real, needed: Sequence[str] = ()
    ) -> None:
        """`start` (nq,): where everything else is; `needed`: the inputs that must be there."""
        dof_of = {int(coord): dof for dof, coord in enumerate(model.dof_coord) if coord >= 0}
        followers = following_dofs(model)
        self._coords = []
        for name, (low, high, count) in axes.items():
            coord = labels.coords.index(name) if name in labels.coords else -1
            if coord not in dof_of:
                known = [labels.coords[n] for n in dof_of]
                raise UsageError(
                    f"--grid: {name!r} is not a joint of this robot that slides or turns{nearest(name, known)}"
                )
            if dof_of[coord] in followers:
                raise UsageError(f"--grid: {name!r} follows another joint")
            if not (-math.inf < low <= high < math.inf and count >= 1):
                raise UsageError(f"--grid: {name}={low:g}:{high:g}:{count}: want LOW:HIGH:N, LOW ≤ HIGH, N from 1")
            self._coords.append(coord)
        self._shape = tuple(count for _, _, count in axes.values())
        self.rows = math.prod(self._shape)
        if self.rows >= 2**53:
            raise UsageError(f"--grid: {self.rows} rows: want fewer than 2^53")
        self._values = [np.linspace(low, high, count) for low, high, count in axes.values()]
        self._model, self._start = model, np.array(start)
        self.inputs = ("qpos", *(name for name in ("qvel", "qacc", "tau") if name in needed))
        grid = {name: list(axis) for name, axis in axes.items()}
        self.identity: dict[str, Any] = {"kind": "grid", "rows": self.rows, "grid": grid, "start": self._start.tolist()}

    def read(self, start: int, stop: int, out: Mapping[str, Array]) -> None:
        """Write rows start … stop into out[name][: stop - start]."""
        rows = out["qpos"][: stop - start]
        rows[:] = self._start
        indices = np.unravel_index(np.arange(start, stop), self._shape)
        for coord, values, index in zip(self._coords, self._values, indices, strict=True):
            rows[:, coord] = values[index]
        model = self._model
        for follower, leader, p in zip(
            model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
        ):
            if leader >= 0:
                x = rows[:, model.dof_coord[leader]]
                rows[:, model.dof_coord[follower]] = np.polynomial.polynomial.polyval(x, p)
        for name in self.inputs[1:]:
            if name in out:
                out[name][: stop - start] = 0.0

    def close(self) -> None:
        """Do nothing: no file is open."""
