"""Steps of copies of a run: the step that a simulation would take next, from other states, inputs and properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.articulation.tangent import Tangent
from artsim.sim.equipment.arrays import EquipmentLabels
from artsim.sim.foundation.errors import UsageError
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
    """The states of n copies at the end of their step, and outputs of it."""

    qpos: Real  # (n, nq)
    qvel: Real  # (n, nv)
    activation: Real  # (n, nact)
    outputs: Real  # (n, ny) recorded variables, of the state before the step and the forces over it


class Starts(NamedTuple):
    """The states of n copies before the step, and the inputs and properties in which they differ from the run."""

    qpos: Real  # (n, nq)
    qvel: Real  # (n, nv)
    activation: Real  # (n, nact)
    inputs: Mapping[str, Real]  # by name of VALUES (n, entries)
    factors: Mapping[str, Real]  # as Variations has them (n, …)


def empty_ends(starts: Starts, outputs: int) -> Ends:
    """Room for the ends of copies."""
    qpos, qvel, activation = (np.empty_like(values) for values in starts[:3])
    return Ends(qpos, qvel, activation, np.empty((len(qpos), outputs)))


def next_inputs(run: Simulation) -> dict[str, Real]:
    """The inputs (entries,) of the next step of a run, by name; a Python controller answers once."""
    inputs: dict[str, Real] = {name: np.array(run.acting(name)) for name in VALUES}
    if run.controller is not None:
        inputs["torque"][:] = run.controller(run.time, run.qpos, run.qvel)
    return inputs


def _names_of(plan: Plan, outputs: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the entries of outputs."""
    labels = EquipmentLabels() if plan.equipped is None else plan.equipped.labels
    if outputs not in ((), ("sensors",)):
        raise UsageError(f"outputs: {', '.join(outputs)} is not known; known: sensors")
    return labels.sensors if outputs else ()


class CopiedSteps:
    """Takes steps of copies of a run, one after the other, with the run's own kernels: each begins with all that the
    run remembers of earlier steps."""

    def __init__(self, plan: Plan, outputs: tuple[str, ...] = ()) -> None:
        """`outputs`: variables of the trajectory that a step also tells."""
        if plan.config.accuracy is not None:
            raise UsageError("derivatives are those of a step of one length; leave --accuracy out")
        self.plan, self.tangent = plan, Tangent(plan.robot.model)
        own = with_own_arrays(plan)
        self._own = replace(own, config=replace(own.config, record=outputs))
        self.outputs = _names_of(plan, outputs)
        held = Controls.held(**{name: getattr(plan, name) for name in VALUES})
        self._copy = simulation_of(self._own, held)
        self._varied = VariedArrays(plan)
        self._snapshot = self._copy.save()

    def begin(self, run: Simulation) -> None:
        """Take the state of a run, its memory and the inputs of its next step; a Python controller's answer is held."""
        self._snapshot = run.save()
        for name, values in next_inputs(run).items():
            getattr(self._copy.inputs, name)[0] = values

    @property
    def inputs(self) -> dict[str, Real]:
        """The inputs (entries,) of the run's next step, by name."""
        return {name: getattr(self._copy.inputs, name)[0].copy() for name in VALUES}

    @property
    def state(self) -> tuple[Real, Real, Real]:
        """The coordinates (nq,), velocities (nv,) and activations (nact,) of the run."""
        return self._snapshot["qpos"], self._snapshot["qvel"], self._snapshot["activation"]

    def step(self, starts: Starts) -> Ends:
        """The ends of n copies. Raises StoppedError where the run itself would stop."""
        ends = empty_ends(starts, len(self.outputs))
        for n in self._taken(starts):
            for place, values in zip(ends, self._copy.state, strict=False):
                place[n] = values
            if self.outputs:
                ends.outputs[n] = np.concatenate([self._rows[name][0].ravel() for name in self._own.config.record])
        return ends

    def told(self, starts: Starts) -> list[RowStates]:
        """The states of the constraint rows of n copies. Raises StoppedError likewise."""
        return [row_states(self._copy) for _ in self._taken(starts)]

    def _taken(self, starts: Starts) -> Iterator[int]:
        """Take the step of one copy after the other."""
        held = self.inputs
        for n in range(len(starts.qpos)):
            self._set(starts, n)
            try:
                self._take()
            finally:
                self._unset(starts, held)
            yield n

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
        self._touch(factors)
        copy.calibrate_anew()

    def _touch(self, factors: Mapping[str, Array]) -> None:
        """Set the friction of contacts and the height of planes."""
        if self._own.touching is None or self.plan.touching is None:
            return
        g, before = self._own.touching.contacts, self.plan.touching.contacts
        for name in ("friction", "pair_friction") if "friction" in factors else ():
            getattr(g, name)[:] = getattr(before, name) * factors["friction"].item()
        if "ground_height" in factors:
            planes = g.plane[g.body[g.plane] == 0]
            g.place[planes, 2] = before.place[planes, 2] + factors["ground_height"].item()

    def _take(self) -> None:
        """Take a step, which may need more room for contacts."""
        copy = self._copy
        if copy.take(1):
            self._rows = copy.taken().rows if self.outputs else {}
            return
        for block in copy.left_blocks():
            self._rows = {**block.rows}
        copy.check()
