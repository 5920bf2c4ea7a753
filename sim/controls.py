"""The inputs of a run over time: joint torques and drive targets, each row held until the next begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from artsim.sim.errors import UsageError

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

VALUES = ("torque", "target", "target_velocity")


@dataclass(frozen=True, slots=True, eq=False)
class Controls:
    """What acts on the robot from which step on; row k holds for steps start_step[k] ≤ step < start_step[k + 1].

    `start_step` (rows,) int64, increasing · `torque` [N m or N], `target` [rad or m], `target_velocity` [rad/s or
    m/s], each (rows, nv) float64 · `control` (rows, ncontrol) of the actuators. The arrays
    are made contiguous and read-only. Raises UsageError on wrong shapes.
    """

    start_step: IntArray
    torque: FloatArray
    target: FloatArray
    target_velocity: FloatArray
    control: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        start = _frozen(np.asarray(self.start_step, dtype=np.int64))
        if start.ndim != 1 or np.any(np.diff(start) <= 0) or (start.size and start[0] < 0):
            raise UsageError("controls: start_step must be a list of increasing step numbers from 0")
        object.__setattr__(self, "start_step", start)
        shape = np.shape(self.torque)
        for name in VALUES:
            values = _frozen(np.asarray(getattr(self, name), dtype=np.float64))
            if values.ndim != 2 or values.shape != (start.size, *shape[1:]):
                raise UsageError(f"controls: {name} has shape {values.shape}, want ({start.size}, nv) as torque has")
            object.__setattr__(self, name, values)
        control = _frozen(np.asarray(self.control, dtype=np.float64))
        if control.size == 0:
            control = _frozen(np.zeros((start.size, 0)))
        if control.ndim != 2 or len(control) != start.size:
            raise UsageError(f"controls: control has shape {control.shape}, want ({start.size}, actuators)")
        object.__setattr__(self, "control", control)

    @classmethod
    def held(
        cls,
        *,
        torque: FloatArray,
        target: FloatArray,
        target_velocity: FloatArray,
        control: FloatArray | None = None,
    ) -> Controls:
        """One row, (nv,) each, for the whole run."""
        rows = np.zeros((1, 0)) if control is None else control[None]
        return cls(np.zeros(1, np.int64), torque[None], target[None], target_velocity[None], rows)

    @property
    def nv(self) -> int:
        return int(self.torque.shape[1])

    @property
    def rows(self) -> int:
        return int(self.start_step.size)

    def row_at(self, step: int) -> int:
        """The row that acts on `step`; -1 before the first."""
        return int(np.searchsorted(self.start_step, step, side="right")) - 1


def _frozen(values: Array) -> Array:
    copy = np.array(values, order="C")
    copy.setflags(write=False)
    return copy


class ControlLog:
    """Collects what a Python controller returns, step by step, until the rows are taken away to be stored.

    A step whose inputs are bit for bit those of the step before adds no row. The rows do not outlive `take`.
    """

    def __init__(self, nv: int) -> None:
        self._nv = nv
        self._steps: list[int] = []
        self._rows: list[FloatArray] = []  # (3, nv): torque, target, target_velocity
        self._last = b""

    def append(self, step: int, torque: FloatArray, target: FloatArray, target_velocity: FloatArray) -> None:
        """The inputs (nv,) each that act from `step` on; steps increase."""
        row = np.array((torque, target, target_velocity), dtype=np.float64).reshape(3, self._nv)
        content = row.tobytes()
        if content != self._last:
            self._steps.append(step)
            self._rows.append(row)
            self._last = content

    def take(self) -> Controls:
        """The rows since the last call."""
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 3, self._nv)
        controls = Controls(np.array(self._steps, np.int64), rows[:, 0], rows[:, 1], rows[:, 2])
        self._steps, self._rows = [], []
        return controls
