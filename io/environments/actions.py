"""Actions of an environment, turned into controls, targets of drives or torques."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from artsim.io.environments.task import START, Action, Numbers
from artsim.io.runs.held_inputs import input_names
from artsim.sim.articulation.model import following_dofs
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.runs.plan import Plan

_INPUTS = ("control", "target", "torque")


class Actions:
    """Actions (n, entries) of robots, and the inputs that they set.

    Attributes: `input`, `names` of the entries, `low` and `high` (entries,) bounds.
    """

    def __init__(self, plan: Plan, wanted: Action) -> None:
        """Raises UsageError for an input, entries or numbers that do not fit the robot."""
        self.input = wanted.input or _input_of(plan)
        if self.input not in _INPUTS:
            raise UsageError(f"action: input {self.input!r} is not known{nearest(self.input, _INPUTS)}")
        names = input_names(plan, self.input)
        acting = _acting(plan, self.input)
        self._places = _chosen(names, acting, wanted.entries, self.input)
        self.names = tuple(names[k] for k in self._places)
        low, high, scale, offset = (values[self._places] for values in _usual(plan, self.input))
        self.low, self.high = self._numbers("low", wanted.low, low), self._numbers("high", wanted.high, high)
        self._scale = self._numbers("scale", wanted.scale, scale)
        self._held = np.array(getattr(plan, self.input), float)[: len(names)]  # of entries that no action sets
        start = self._held[self._places]
        self._offset = start if wanted.offset == START else self._numbers("offset", wanted.offset, offset)
        if not (self.low <= self.high).all():
            raise UsageError("action: low is larger than high")

    def held(self, n: int) -> Array:
        """The inputs (n, all entries) before any action."""
        return np.tile(self._held, (n, 1))

    def set(self, inputs: Array, actions: Array) -> None:
        """Set the inputs (n, all entries) to those of actions within their bounds."""
        inputs[:, self._places] = self._offset + self._scale * actions

    def _numbers(self, key: str, given: Numbers | str, usual: Array) -> Array:
        """Numbers (entries,). Raises UsageError."""
        if given is None:
            return usual
        values = np.array(given, float)
        if values.shape not in ((), usual.shape):
            raise UsageError(f"action: {key} has {values.size} numbers, want {usual.size}: {', '.join(self.names)}")
        return np.broadcast_to(values, usual.shape).copy()


def _input_of(plan: Plan) -> str:
    """The input of actuators, else of drives with gains, else torques."""
    if input_names(plan, "control"):
        return "control"
    return "target" if np.any(plan.inputs["drive_stiffness"]) else "torque"


def _acting(plan: Plan, name: str) -> list[int]:
    """The entries that a pattern can mean: controls; for targets joints with a drive, for torques joints of one dof,
    in both without followers."""
    if name == "control":
        return list(range(len(input_names(plan, name))))
    labels, gains = plan.robot.labels, plan.inputs
    follows = set(following_dofs(plan.robot.model))
    single = [k for k, dof in enumerate(labels.dofs) if dof in labels.coords and k not in follows]
    driven = (gains["drive_stiffness"] > 0) | (gains["drive_damping"] > 0)
    return [k for k in single if name == "torque" or driven[k]]


def _chosen(names: Sequence[str], acting: Sequence[int], patterns: Sequence[str], name: str) -> list[int]:
    """The entries that patterns name, in the order of the robot. Raises UsageError for one that names none."""
    found = set[int]()
    for pattern in patterns:
        matching = [k for k in acting if fnmatchcase(names[k], pattern) or names[k] == pattern]
        if not matching:
            noun = {"control": "no actuator", "target": "no joint with a drive", "torque": "no joint of one dof"}[name]
            raise UsageError(f"action: {noun} is called {pattern!r}{nearest(pattern, [names[k] for k in acting])}")
        found.update(matching)
    return sorted(found)


def _usual(plan: Plan, name: str) -> tuple[Array, Array, Array, Array]:
    """Low, high, scale and offset of every entry where nothing else is given.

    Controls are actions themselves within their range, and those of the start ±1 where they have none. Targets are
    those of the start ±1 rad or m; torques up to the joint's largest, or 1 where it has none.
    """
    size = len(input_names(plan, name))
    low, high, scale, offset = -np.ones(size), np.ones(size), np.ones(size), np.zeros(size)
    if name == "control" and plan.equipped is not None:
        arrays = plan.equipped.arrays
        lower, upper = arrays.control_lower[:size], arrays.control_upper[:size]
        low, high = np.where(np.isfinite(lower), lower, low), np.where(np.isfinite(upper), upper, high)
        offset = np.where(np.isfinite(lower) | np.isfinite(upper), 0.0, plan.control[:size])
    elif name == "target":
        offset = np.array(plan.target)
    elif name == "torque":
        scale = np.where(np.isfinite(plan.robot.model.effort), plan.robot.model.effort, 1.0)
    return low, high, scale, offset
