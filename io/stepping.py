"""A simulation in the hand: taken step by step from Python, saved and restored at any of them."""

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
    """A robot's simulation that goes on as far as it is asked to.

    Args: as artsim.simulate's, without `steps` and `output`.

    Raises:
        UsageError, ModelError: as artsim.simulate.
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
        """Steps taken so far, those before a snapshot included."""
        return self._simulation.step

    @property
    def time(self) -> float:
        """Simulated time so far [s]."""
        return self._simulation.time

    @property
    def qpos(self) -> Real:
        """Coordinates (nq,) now."""
        return self._simulation.qpos

    @property
    def qvel(self) -> Real:
        """Velocities (nv,) now."""
        return self._simulation.qvel

    def step(self, steps: int = 1) -> dict[str, Array]:
        """Take steps; what of them is recorded (settings `record`, `every`), by name, as artsim.simulate gives it.

        Contacts are in it under the names of /contact after `contact/`: `contact/contact_count`, `contact/point`, …

        Raises StoppedError, naming joint and time; the simulation then stands where it stopped.
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
        """The state now, as plain arrays by name (numpy.savez stores them): with it `restore` goes on byte for byte."""
        return self._simulation.save()

    def restore(self, snapshot: Mapping[str, Array]) -> None:
        """Go on from a snapshot of this robot under the same settings, taken here or in another process.

        Raises UsageError when it does not fit.
        """
        self._simulation.restore(snapshot)
