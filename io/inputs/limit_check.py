"""Given configurations beyond joint limits, joint by joint, so that a batch can say so."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.articulation.model import Labels, Model
from artsim.sim.articulation.turn_limits import beyond_turns
from artsim.sim.foundation.records import Array

_SLACK = 1e-9  # rad or m beyond a limit that are rounding
_TURNS = 4 * math.pi  # rad of a hinge that are hardly intended
_TOLD_JOINTS = 3


class Excess(NamedTuple):
    """The rows that are beyond the limits of one joint; rows are counted from 0 over the whole job."""

    rows: int
    first_row: int
    worst_row: int
    value: float  # there [rad, m]
    lower: float
    upper: float
    unit: str

    @property
    def amount(self) -> float:
        """The distance of the worst row beyond its limit [rad, m]."""
        return max(self.lower - self.value, self.value - self.upper)

    def __or__(self, other: Excess) -> Excess:
        """Both together."""
        worst = min(self, other, key=lambda one: (-one.amount, one.worst_row))
        return worst._replace(rows=self.rows + other.rows, first_row=min(self.first_row, other.first_row))


class BeyondLimits(NamedTuple):
    """The number of rows beyond any limit, and the limits passed, by joint."""

    rows: int = 0
    joints: Mapping[str, Excess] = {}

    @property
    def contacts(self) -> int:
        """Number of contacts in a shard, of which configurations have none."""
        return 0

    @classmethod
    def together(cls, parts: Iterable[BeyondLimits]) -> BeyondLimits:
        """Those of parts that have no row in common."""
        rows, joints = 0, dict[str, Excess]()
        for part in parts:
            rows += part.rows
            for name, excess in part.joints.items():
                joints[name] = joints[name] | excess if name in joints else excess
        return cls(rows, joints)

    @classmethod
    def from_plain(cls, content: Any) -> BeyondLimits:
        """Read one from plain data of JSON."""
        rows, joints = content
        return cls(int(rows), {name: Excess(*values) for name, values in joints.items()})

    def summary(self) -> dict[str, Any]:
        """As one object of the summary, without numbers that JSON does not have."""
        joints = {
            name: {
                **excess._asdict(),
                "excess": excess.amount,
                "lower": excess.lower if math.isfinite(excess.lower) else None,
                "upper": excess.upper if math.isfinite(excess.upper) else None,
            }
            for name, excess in self._by_amount()
        }
        return {"rows": self.rows, "joints": joints}

    def notes(self) -> list[str]:
        """A warning that names the joints that are farthest beyond; empty if there is none."""
        if not self.rows:
            return []
        joints = self._by_amount()
        told = ", ".join(_told(name, excess) for name, excess in joints[:_TOLD_JOINTS])
        more = f" and {len(joints) - _TOLD_JOINTS} more joints" if len(joints) > _TOLD_JOINTS else ""
        turned = [excess.value for _, excess in joints if excess.unit == "rad" and abs(excess.value) > _TURNS]
        hint = f"; if degrees are meant, {turned[0]:.6g} is {math.radians(turned[0]):.6g} rad" if turned else ""
        return [f"{self.rows} row{'s are' if self.rows > 1 else ' is'} beyond joint limits: {told}{more}{hint}"]

    def _by_amount(self) -> list[tuple[str, Excess]]:
        return sorted(self.joints.items(), key=lambda item: (-item[1].amount, item[0]))


def _told(name: str, excess: Excess) -> str:
    rows = "row" if excess.rows == 1 else f"{excess.rows} rows, farthest row"
    limits = f"[{excess.lower:.6g}, {excess.upper:.6g}]"
    return (
        f"{name} by {excess.amount:.4g} {excess.unit} ({rows} {excess.worst_row}, counted from 0, "
        f"at {excess.value:.6g}, limits {limits})"
    )


class LimitCheck:
    """The rows seen so far that are beyond the limits of a joint, from any thread."""

    def __init__(self, model: Model, labels: Labels) -> None:
        bounded = np.flatnonzero((model.dof_coord >= 0) & (np.isfinite(model.lower) | np.isfinite(model.upper)))
        self._coord = model.dof_coord[bounded]
        self._names = [labels.coords[coord] for coord in self._coord]
        self._units = [labels.coord_units[coord] for coord in self._coord]
        self._lower, self._upper = model.lower[bounded], model.upper[bounded]
        self._model, self._labels = model, labels
        self._lock = threading.Lock()
        self.found = BeyondLimits()

    def see(self, first: int, qpos: Array) -> None:
        """Look at rows of coordinates (n, nq) that begin at row `first`; those that are no numbers are left out."""
        values = qpos[:, self._coord]
        beyond = (values < self._lower - _SLACK) | (values > self._upper + _SLACK)
        limits = [
            (beyond[:, k], self._names[k], values[:, k], np.tile((self._lower[k], self._upper[k]), (len(values), 1)))
            for k in np.flatnonzero(beyond.any(axis=0))
        ]
        if len(self._model.turn_range):
            limits += beyond_turns(self._model, self._labels, qpos)
        units = dict(zip(self._names, self._units, strict=True))
        joints, odd = {}, np.zeros(len(qpos), bool)
        for outside, name, value, ends in limits:
            rows = np.flatnonzero(outside)
            if not len(rows):
                continue
            excess = np.maximum(ends[:, 0] - value, value - ends[:, 1])
            odd[rows] = True
            worst = int(rows[np.argmax(excess[rows])])
            lower, upper = map(float, ends[worst])
            place = first + int(rows[0]), first + worst
            joints[name] = Excess(len(rows), *place, float(value[worst]), lower, upper, units.get(name, "rad"))
        if joints:
            with self._lock:
                self.found = BeyondLimits.together((self.found, BeyondLimits(int(odd.sum()), joints)))
