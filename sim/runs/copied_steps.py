"""Steps of copies of a run: the step that a simulation would take next, from other states, inputs and properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.lane_simulation import with_own_arrays
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.row_states import RowStates, row_states
from artsim.sim.runs.simulate import Simulation
from artsim.sim.runs.varied import VariedArrays
from artsim.sim.stepping.packs import LANE_GAINS


class Ends(NamedTuple):
    """The states of n copies at the end of their step."""

    qpos: Real  # (n, nq)
    qvel: Real  # (n, nv)
    activation: Real  # (n, nact)


class Starts(NamedTuple):
    """The states of n copies before the step, and the inputs and properties in which they differ from the run."""

    qpos: Real  # (n, nq)
    qvel: Real  # (n, nv)
    activation: Real  # (n, nact)
    inputs: Mapping[str, Real]  # by name of VALUES (n, entries)
    factors: Mapping[str, Real]  # as Variations has them (n, …)


class CopiedSteps:
    """Takes steps of copies of a run, one after the other, with the run's own kernels: each begins with all that the
    run remembers of earlier steps."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._own = with_own_arrays(plan)
        held = Controls.held(**{name: getattr(plan, name) for name in VALUES})
        self._copy = simulation_of(self._own, held)
        self._varied = VariedArrays(plan)
        self._snapshot: dict[str, Array] = {}

    def begin(self, run: Simulation) -> None:
        """Take the state of a run, its memory and the inputs of its next step; a Python controller's answer is held."""
        copy = self._copy
        self._snapshot = run.save()
        for name in VALUES:
            getattr(copy.inputs, name)[0] = run.acting(name)
        if run.controller is not None:
            copy.inputs.torque[0] = run.controller(run.time, run.qpos, run.qvel)

    @property
    def inputs(self) -> dict[str, Real]:
        """The inputs (entries,) of the run's next step, by name."""
        return {name: getattr(self._copy.inputs, name)[0].copy() for name in VALUES}

    @property
    def state(self) -> tuple[Real, Real, Real]:
        """The coordinates (nq,), velocities (nv,) and activations (nact,) of the run."""
        return self._snapshot["qpos"], self._snapshot["qvel"], self._snapshot["activation"]

    def step(self, starts: Starts, *, told: bool = False) -> tuple[Ends, list[RowStates]]:
        """The ends of n copies and, if `told`, the states of their constraint rows. Raises StoppedError where the run
        itself would stop."""
        ends = Ends(*(np.empty_like(values) for values in starts[:3]))
        states = []
        held = self.inputs
        for n in range(len(starts.qpos)):
            self._set(starts, n)
            try:
                self._take()
            finally:
                self._unset(starts, held)
            for place, values in zip(ends, self._copy.state, strict=True):
                place[n] = values
            if told:
                states.append(row_states(self._copy))
        return ends, states

    def _set(self, starts: Starts, n: int) -> None:
        """Give the copy the state, inputs and properties of one start."""
        copy = self._copy
        copy.restore(self._snapshot)
        state = {"qpos": starts.qpos[n], "qvel": starts.qvel[n], "activation": starts.activation[n]}
        if self.plan.config.is_maximal:
            copy.set_state(**state)
        else:
            for place, values in zip(copy.state, state.values(), strict=True):
                place[:] = values
        for name, values in starts.inputs.items():
            getattr(copy.inputs, name)[0] = values[n]
        if starts.factors:
            self._vary({name: values[n : n + 1] for name, values in starts.factors.items()})

    def _unset(self, starts: Starts, held: Mapping[str, Real]) -> None:
        """Give the copy the inputs and properties of the run again."""
        for name in starts.inputs:
            getattr(self._copy.inputs, name)[0] = held[name]
        if starts.factors:
            ones = {name: np.broadcast_to(self._neutral(name), v[:1].shape) for name, v in starts.factors.items()}
            self._vary(ones)

    def _neutral(self, name: str) -> Array | float:
        if name == "gravity":
            return self.plan.robot.model.gravity
        return 0.0 if name in ("centre", "ground_height") else 1.0

    def _vary(self, factors: Mapping[str, Real]) -> None:
        """Set properties of the copy by factors (1, …)."""
        own, copy = self._own, self._copy
        for name, values in self._varied.of(factors).items():
            record: Any = copy.inputs if name in LANE_GAINS else own.robot.model
            getattr(record, name)[:] = values[0]
        if own.touching is not None and self.plan.touching is not None:
            g, before = own.touching.contacts, self.plan.touching.contacts
            for name in ("friction", "pair_friction") if "friction" in factors else ():
                getattr(g, name)[:] = getattr(before, name) * factors["friction"].item()
            if "ground_height" in factors:
                planes = g.plane[g.body[g.plane] == 0]
                g.place[planes, 2] = before.place[planes, 2] + factors["ground_height"].item()
        copy.calibrate_anew()

    def _take(self) -> None:
        """Take a step, which may need more room for contacts."""
        copy = self._copy
        if not copy.take(1):
            for _ in copy.left_blocks():
                pass
            copy.check()
