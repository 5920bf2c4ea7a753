"""Stepped, the common base of simulations that calls of `step` advance: inputs act until they are given anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from artsim.io.format.labels import Labels
from artsim.io.runs.held_inputs import input_names, named_entries, numbers_of
from artsim.io.runs.named import run_labels
from artsim.sim.equipment.arrays import WRENCH
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.controls import VALUES
from artsim.sim.runs.plan import Plan

Numbers = ArrayLike | Mapping[str, ArrayLike]
"""Numbers in the model's order, or by name: of one robot (entries,); of n (n, entries), or (entries,) for all alike."""


class Stepped(ABC):
    """One robot, or n, which calls of `step` advance: artsim.Simulation and artsim.VectorSimulation."""

    count: int | None = None
    """The number of robots, None of one whose arrays have no axis of robots."""

    @property
    @abstractmethod
    def _run(self) -> Plan:
        """The run as it is now."""

    @abstractmethod
    def _put(self, name: str, entries: list[int] | slice, numbers: Array) -> None:
        """Set entries of an input from the next step on, to (entries,) or (n, entries)."""

    @abstractmethod
    def _put_wrench(self, link: str, numbers: Array) -> None:
        """Set the wrench on a link from the next step on, to (6,) or (n, 6)."""

    @abstractmethod
    def close(self) -> None:
        """End what outlasts the steps: threads, the output file."""

    @property
    def robot(self) -> Robot:
        """The robot as it is simulated."""
        return self._run.robot

    @property
    def labels(self) -> Labels:
        """The names along the axes of arrays."""
        return run_labels(self._run)

    # ------------------------------------------------------------------ inputs

    def give(self, name: str, values: Numbers) -> None:
        """Set the input of this name, "target", "control", … from the next step on, as `step` does.

        Raises UsageError: a name that is not of this robot, numbers of a wrong shape.
        """
        shape, whole = self._shapes[name]
        if isinstance(values, np.ndarray) and values.shape == shape:
            self._put(name, whole, values)
            return
        names = self._names[name]
        if isinstance(values, Mapping):
            entries = named_entries(name, values, names)
            each = [self._each(f"{name} of {entry!r}", number, ((),)) for entry, number in values.items()]
            self._put(name, entries, np.stack(np.broadcast_arrays(*each), axis=-1) if each else np.zeros(0))
        else:
            free = [names.index(dof) for dof in self.robot.independent_dofs] if name != "control" else []
            sizes = ((len(names),), (len(free),)) if free else ((len(names),),)
            given = self._each(name, values, sizes, names)
            independent = len(free) == given.shape[-1] < len(names)
            self._put(name, free if independent else slice(len(names)), given)

    @cached_property
    def _names(self) -> dict[str, tuple[str, ...]]:
        """The names of the entries of every input."""
        return {name: input_names(self._run, name) for name in VALUES}

    @cached_property
    def _shapes(self) -> dict[str, tuple[tuple[int, ...], slice]]:
        """The shape of each input, of each robot, and all of its entries."""
        robots = () if self.count is None else (self.count,)
        return {name: ((*robots, len(names)), slice(len(names))) for name, names in self._names.items()}

    def _give(
        self,
        torque: Numbers | None = None,
        target: Numbers | None = None,
        target_velocity: Numbers | None = None,
        target_acceleration: Numbers | None = None,
        control: Numbers | None = None,
        wrench: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Set the inputs that are given, and the wrenches on links. No loop: a step may take 3 µs."""
        if torque is not None:
            self.give("torque", torque)
        if target is not None:
            self.give("target", target)
        if target_velocity is not None:
            self.give("target_velocity", target_velocity)
        if target_acceleration is not None:
            self.give("target_acceleration", target_acceleration)
        if control is not None:
            self.give("control", control)
        if wrench is not None:
            for link, numbers in wrench.items():
                self._put_wrench(link, self._wrench(f"wrench of {link!r}", numbers))

    def _each(self, what: str, values: Any, sizes: tuple[tuple[int, ...], ...], names: tuple[str, ...] = ()) -> Array:
        """Numbers of one of these shapes, for one robot or all, or for each of n. Raises UsageError."""
        given: Array = numbers_of(what, values)
        n = () if self.count is None else (self.count,)
        if not any(given.shape in (size, (*n, *size)) for size in sizes):
            want = f"{(*n, *sizes[0])}, or {sizes[0]} for all" if n else " or ".join(map(str, sorted({*sizes})))
            told = f": {', '.join(names[:8])}" if names and not n else ""
            raise UsageError(f"{what} has shape {given.shape}, want {want}{told}")
        return given

    def _wrench(self, what: str, values: ArrayLike) -> Array:
        """Forces, or forces and torques, as (6,) or (n, 6)."""
        given = self._each(what, values, ((WRENCH,), (3,)))
        return given if given.shape[-1] == WRENCH else np.concatenate([given, np.zeros_like(given)], axis=-1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
