"""Simulation, which Python code advances step by step and can save and restore at any step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import numpy as np

from artsim.io import runs
from artsim.io.settings import RunSettings
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.spatial import Real
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import MAX_STEPS
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.simulate import ControllerFunction, simulation_of


class Simulation:
    """A robot's simulation that is advanced by calls of `step`.

    Args: those of artsim.simulate, without `steps` and `output`.

    Raises:
        UsageError, ModelError: as in artsim.simulate.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        controller: ControllerFunction | str = "none",
        controls: Controls | str | None = None,
        **settings: Unpack[RunSettings],
    ) -> None:
        if "steps" in settings:
            raise UsageError("Simulation: steps are taken by step(n)")
        plan, given, function = runs.prepared(robot, controller, controls, {**settings, "steps": MAX_STEPS})
        self._simulation = simulation_of(plan, given or runs.held_controls(plan), function)

    @property
    def robot(self) -> Robot:
        """The robot as it is simulated."""
        return self._simulation.plan.robot

    @property
    def steps(self) -> int:
        """Number of steps taken so far, including those before a restored snapshot."""
        return self._simulation.step

    @property
    def time(self) -> float:
        """Simulated time so far [s]."""
        return self._simulation.time

    @property
    def qpos(self) -> Real:
        """Current coordinates (nq,) [rad or m]."""
        return self._simulation.qpos

    @property
    def qvel(self) -> Real:
        """Current velocities (nv,) [rad/s or m/s]."""
        return self._simulation.qvel

    def step(self, steps: int = 1) -> dict[str, Array]:
        """Take steps and return their recorded rows (settings `record`, `every`) by name, as in artsim.simulate.

        Contacts have the names of /contact with the prefix `contact/`: `contact/contact_count`, `contact/point`, …

        Raises StoppedError, naming joint and time; the simulation then keeps the state at which it stopped.
        """
        if steps < 1:
            raise UsageError(f"step: got {steps}, want a number of steps from 1")
        parts = []
        for block in self._simulation.blocks(steps):
            contacts = runs.named_contacts(self._simulation.plan, block.contacts)
            rows = block.rows | {f"contact/{name}": values for name, values in contacts.items()}
            parts.append({name: np.array(values) for name, values in rows.items()})
        self._simulation.check()
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def save(self) -> dict[str, Array]:
        """The current state as plain arrays by name, for numpy.savez; `restore` continues from it byte for byte."""
        return self._simulation.save()

    def restore(self, snapshot: Mapping[str, Array]) -> None:
        """Continue from a snapshot of this robot with the same settings, taken in this process or another.

        Raises UsageError if it does not fit.
        """
        self._simulation.restore(snapshot)
