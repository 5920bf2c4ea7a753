"""The inputs of a run over time: joint torques and drive targets, each row held until the next begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from artsim.sim.errors import UsageError

if TYPE_CHECKING:
    import h5py

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Controls:
    """What acts on the robot from which step on; row k holds for steps start_step[k] ≤ step < start_step[k + 1].

    `start_step` (rows,) int64, increasing · `torque` [N m or N], `target` [rad or m], `target_velocity` [rad/s or
    m/s], each (rows, nv) float64. The arrays are made contiguous and read-only. Raises UsageError on wrong shapes.
    """

    start_step: IntArray
    torque: FloatArray
    target: FloatArray
    target_velocity: FloatArray

    def __post_init__(self) -> None:
        start = _frozen(np.asarray(self.start_step, dtype=np.int64))
        if start.ndim != 1 or np.any(np.diff(start) <= 0) or (start.size and start[0] < 0):
            raise UsageError("controls: start_step must be a list of increasing step numbers from 0")
        object.__setattr__(self, "start_step", start)
        shape = np.shape(self.torque)
        for name in ("torque", "target", "target_velocity"):
            values = _frozen(np.asarray(getattr(self, name), dtype=np.float64))
            if values.ndim != 2 or values.shape != (start.size, *shape[1:]):
                raise UsageError(f"controls: {name} has shape {values.shape}, want ({start.size}, nv) as torque has")
            object.__setattr__(self, name, values)

    @property
    def nv(self) -> int:
        return int(self.torque.shape[1])

    @property
    def rows(self) -> int:
        return int(self.start_step.size)

    def row_at(self, step: int) -> int:
        """The row that acts on `step`; -1 before the first."""
        return int(np.searchsorted(self.start_step, step, side="right")) - 1


def _frozen(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    copy = np.array(values, order="C")
    copy.setflags(write=False)
    return copy


def controls_from_file(file: h5py.File) -> Controls:
    """The inputs a run file holds in /controls, bit for bit; `file` must have passed the gate (reader.py)."""
    group = file["controls"]
    rows = int(group["n_valid"][()])
    values = {name: group[name][:rows] for name in ("start_step", "torque", "target", "target_velocity")}
    return Controls(**values)
