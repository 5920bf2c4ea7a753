"""The inputs of a run over time: joint torques and drive targets, each row held until the next begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import StoppedError, UsageError

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

VALUES = ("torque", "target", "target_velocity", "target_acceleration", "control")


@dataclass(frozen=True, slots=True, eq=False)
class Controls:
    """Inputs of a run by step; row k acts in the steps start_step[k] ≤ step < start_step[k + 1].

    `start_step` (rows,) int64, increasing · `torque` [N m or N], `target` [rad or m], `target_velocity` [rad/s or m/s],
    `target_acceleration` [rad/s² or m/s²], each (rows, nv) float64 · `control` (rows, ncontrol) of the actuators. The
    arrays are made contiguous and read-only.
    Raises UsageError on wrong shapes.
    """

    start_step: IntArray
    torque: FloatArray
    target: FloatArray
    target_velocity: FloatArray
    control: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    target_acceleration: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # by default 0
    begin: int = field(default=0, init=False)  # the step of a file's first row; inputs without a file act before it

    def __post_init__(self) -> None:
        start = _frozen(np.asarray(self.start_step, dtype=np.int64))
        if start.ndim != 1 or np.any(np.diff(start) <= 0) or (start.size and start[0] < 0):
            raise UsageError("controls: start_step must be a list of increasing step numbers from 0")
        object.__setattr__(self, "start_step", start)
        shape = np.shape(self.torque)
        if np.size(self.control) == 0:
            object.__setattr__(self, "control", np.zeros((start.size, 0)))
        if np.size(self.target_acceleration) == 0:
            object.__setattr__(self, "target_acceleration", np.zeros(shape))
        for name in VALUES:
            values = _frozen(np.asarray(getattr(self, name), dtype=np.float64))
            wide = name == "control" or values.shape[1:] == shape[1:]
            if values.ndim != 2 or len(values) != start.size or not wide:
                want = "actuators)" if name == "control" else "nv) as torque has"
                raise UsageError(f"controls: {name} has shape {values.shape}, want ({start.size}, {want}")
            object.__setattr__(self, name, values)

    @classmethod
    def held(
        cls,
        *,
        torque: FloatArray,
        target: FloatArray,
        target_velocity: FloatArray,
        target_acceleration: FloatArray | None = None,
        control: FloatArray | None = None,
    ) -> Controls:
        """Make controls of one row, each array (nv,), for the whole run."""
        rows = np.zeros((1, 0)) if control is None else control[None]
        acceleration = np.zeros_like(torque) if target_acceleration is None else target_acceleration
        return cls(np.zeros(1, np.int64), torque[None], target[None], target_velocity[None], rows, acceleration[None])

    def beginning_at(self, step: int) -> Controls:
        """The controls with the note that a file gave those from this step on."""
        object.__setattr__(self, "begin", step)
        return self

    def with_values(self, values: Mapping[str, FloatArray]) -> Controls:
        """A copy with some values replaced, by read-only contiguous arrays of the same shapes; the others are
        shared."""
        made = object.__new__(Controls)
        for name in ("start_step", *VALUES, "begin"):
            object.__setattr__(made, name, values.get(name, getattr(self, name)))
        return made

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
    """Collects the results of a Python controller, step by step, until `take` hands the rows over to be stored.

    A step whose inputs are bit for bit those of the previous step adds no row.
    """

    def __init__(self, nv: int, actuators: int = 0) -> None:
        self._ends = [nv, 2 * nv, 3 * nv, 4 * nv]
        self._width = 4 * nv + actuators
        self._steps: list[int] = []
        self._rows: list[FloatArray] = []  # VALUES, one after the other
        self._last = b""

    def append(self, step: int, *values: FloatArray) -> None:
        """Add the inputs that act from `step` on, in the order of VALUES; steps increase."""
        row = np.concatenate(values).astype(np.float64)
        content = row.tobytes()
        if content != self._last:
            self._steps.append(step)
            self._rows.append(row)
            self._last = content

    def take(self) -> Controls:
        """Remove and return the rows since the last call."""
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, self._width)
        values = dict(zip(VALUES, np.split(rows, self._ends, axis=1), strict=True))
        controls = Controls(np.array(self._steps, np.int64), **values)
        self._steps, self._rows = [], []
        return controls


def torque_of(answer: Any, dofs: Sequence[str], time: float) -> FloatArray:
    """The joint forces (nv,) that a Python controller returned at this time [s].

    Raises UsageError for something other than nv numbers, StoppedError for one that is not finite.
    """
    try:
        torque = np.array(answer, float)
    except (TypeError, ValueError) as error:
        raise UsageError(f"controller: returned {type(answer).__name__}, want {len(dofs)} numbers") from error
    if torque.shape != (len(dofs),):
        raise UsageError(f"controller: returned shape {torque.shape}, want ({len(dofs)},): one force per dof")
    if not np.all(np.isfinite(torque)):
        name = dofs[int(np.argmin(np.isfinite(torque)))]
        raise StoppedError(f"stopped at t = {time:.6g} s: the controller's force on {name!r} is not finite")
    return torque
