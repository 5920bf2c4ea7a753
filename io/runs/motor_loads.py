"""Loads of joints and actuators in a stored run or rollout, beside what motors can give.

A joint's motor gives what inputs, controllers, drives and actuators give: tau_applied + tau_drive, of the recorded
rows, beside its largest force (the lower of the file's effort and --drive-limit) and its velocity limit. RMS is over
all rows, by which the heating of electric motors is judged. Actuators stand beside their ranges of force.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from artsim.io.exports.rows import blocks_of
from artsim.io.readers.recording import Recording
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.runs.effort_tally import MOTOR, counted_forces, largest_forces
from artsim.io.runs.replay import Load, plan_of
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.runs.plan import Plan

_SAMPLES = 64  # of a rollout that are read at once
_SPEED, _ACTUATOR = "qvel", "actuator_force"


@dataclass(frozen=True)
class MotorLoad:
    """The load of one motor: of a joint's dof, or of an actuator, whose speed is not looked at.

    `peak`, `rms` [N m or N]; `limit`: its largest force, inf without; `at_limit`: the time for which it gave that [s];
    `speed`, `speed_limit` [rad/s or m/s], `at_speed_limit` [s]; `power`: the largest of force times speed [W].
    """

    name: str
    unit: str
    peak: float
    rms: float
    limit: float
    at_limit: float
    speed: float = 0.0
    speed_limit: float = float("inf")
    at_speed_limit: float = 0.0
    power: float = 0.0

    @property
    def share(self) -> float:
        """The peak over the limit; 0 without a limit."""
        return self.peak / self.limit if self.limit > 0 else np.inf if self.peak > 0 else 0.0

    @property
    def speed_share(self) -> float:
        """The largest speed over its limit; 0 without one."""
        return self.speed / self.speed_limit if self.speed_limit > 0 else 0.0


def motor_loads(output: Recording | RolloutRecording, load: Load) -> list[MotorLoad]:
    """The loads of all dofs that a motor drives or may drive, then of all actuators.

    `load(text, name, config)` reads the stored model. Raises UsageError for a file that lacks the forces.
    """
    settings = output.config if isinstance(output, Recording) else output.config.get("run", {})
    plan = plan_of(output, load, {**settings, "contacts": False, "velocity_limits": True})
    dt, every = (output.dt, output.every) if isinstance(output, Recording) else (plan.dt, plan.config.every)
    time = dt * every
    dofs = _Sums(largest_forces(plan))
    speeds = _Sums(np.array(plan.robot.model.velocity_limit))
    power = np.zeros(plan.robot.nv)
    for rows in _blocks(output, (*MOTOR, _SPEED)):
        force = np.sum([rows[name] for name in MOTOR if name in rows], axis=0)
        dofs.add(force)
        speeds.add(rows[_SPEED])
        power = np.maximum(power, np.max(force * rows[_SPEED], axis=0, initial=0.0))
    names, units = plan.robot.labels.dofs, plan.robot.labels.force_units
    found = [
        MotorLoad(
            names[k],
            units[k],
            *dofs.of(k, time),
            speed=speeds.peak[k],
            speed_limit=speeds.limit[k],
            at_speed_limit=float(speeds.reached[k] * time),
            power=float(power[k]),
        )
        for k in _driven(plan, dofs)
    ]
    return found + _actuators(output, plan, time)


class _Sums:
    """Peaks, squares and times at a limit of the columns of rows that come block by block."""

    def __init__(self, limit: Array) -> None:
        self.limit, self.peak = limit, np.zeros(len(limit))
        self._square, self.reached, self._rows = np.zeros(len(limit)), np.zeros(len(limit), np.int64), 0

    def add(self, values: Array) -> None:
        """Count some rows."""
        size = np.abs(values)
        self.peak = np.maximum(self.peak, size.max(axis=0, initial=0.0))
        self._square += (values**2).sum(axis=0)
        self.reached += (size >= counted_forces(self.limit)).sum(axis=0)
        self._rows += len(values)

    def of(self, k: int, time: float) -> tuple[float, float, float, float]:
        """Peak, RMS, limit and time at the limit of a column."""
        rms = float(np.sqrt(self._square[k] / max(self._rows, 1)))
        return float(self.peak[k]), rms, float(self.limit[k]), float(self.reached[k] * time)


def _driven(plan: Plan, dofs: _Sums) -> list[int]:
    """The dofs with a largest force or on which a motor has acted."""
    return [k for k in range(plan.robot.nv) if dofs.peak[k] > 0 or np.isfinite(dofs.limit[k])]


def _actuators(output: Recording | RolloutRecording, plan: Plan, time: float) -> list[MotorLoad]:
    if plan.equipped is None or _ACTUATOR not in output or not plan.equipped.labels.actuators:
        return []
    arrays = plan.equipped.arrays
    sums = _Sums(np.maximum(np.abs(arrays.force_lower), np.abs(arrays.force_upper)))
    for rows in _blocks(output, (_ACTUATOR,)):
        sums.add(rows[_ACTUATOR])
    names = plan.equipped.labels.actuators
    return [MotorLoad(name, "N or N m", *sums.of(k, time)) for k, name in enumerate(names)]


def _blocks(output: Recording | RolloutRecording, names: tuple[str, ...]) -> Iterator[dict[str, Array]]:
    """Rows of these variables, (rows, n) each, block by block, those of a rollout sample by sample."""
    there = [name for name in names if name in output]
    if not {*there} & {*MOTOR, _ACTUATOR} or (_SPEED in names and _SPEED not in there):
        want = "tau_applied, tau_drive and qvel"
        raise UsageError(f"{output.path}: holds no {want}; record them (--record +tau_applied,tau_drive)")
    if isinstance(output, Recording):
        for start, stop in blocks_of(output, there):
            yield {name: output.read(name, start, stop) for name in there}
        return
    for start in range(0, output.samples, _SAMPLES):
        stop = min(start + _SAMPLES, output.samples)
        valid = output.read("n_valid", start, stop).astype(np.int64)
        found = {name: output.read(name, start, stop) for name in there}
        for sample, count in enumerate(valid):
            yield {name: values[sample, :count] for name, values in found.items()}


def plain(load: MotorLoad) -> dict[str, Any]:
    """A load as plain values; None for limits that there are not."""
    named = {name: getattr(load, name) for name in MotorLoad.__annotations__}
    named |= {"share": load.share, "speed_share": load.speed_share}
    infinite = [name for name, value in named.items() if isinstance(value, float) and not np.isfinite(value)]
    return {**named, **dict.fromkeys(infinite)}
