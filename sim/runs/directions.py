"""Directions of the derivatives of a step: columns of the state, of inputs and of properties, and starts along them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from artsim.sim.articulation.tangent import Tangent, follow_leaders
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.controls import VALUES
from artsim.sim.runs.copied_equations import CopiedEquations
from artsim.sim.runs.copied_steps import Ends, Starts
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.row_states import RowStates
from artsim.sim.runs.varied import shape_of, unvaried


class Copies(Protocol):
    """Takes the steps of copies of a run (copied_steps.py)."""

    plan: Plan
    tangent: Tangent

    @property
    def state(self) -> tuple[Real, Real, Real]:
        """Coordinates (nq,), velocities (nv,) and activations (nact,) before the step."""

    @property
    def inputs(self) -> Mapping[str, Real]:
        """The inputs of the step by name."""

    @property
    def memory(self) -> Mapping[str, Real]:
        """The changes of velocities in the steps before, by name of MEMORY."""

    @property
    def equations(self) -> CopiedEquations | None:
        """The equations of the step; None where its copies are not in a pack."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the entries of outputs."""

    def step(self, starts: Starts) -> Ends:
        """The ends of copies of the step, whose tables may be written anew by the next call."""

    def told(self, starts: Starts) -> list[RowStates]:
        """The states of the rows of these steps."""


EXPECTED = "expected"
"""The change of velocities that the midpoint integrator expects (stepping/midpoint.py: expected_change)."""


class Column(NamedTuple):
    """A direction of differences: of the state, of an input or of a property."""

    of: str  # "qpos", "qvel", "activation", EXPECTED, a name of VALUES or of VARIED and PLACED
    entry: tuple[int, ...]
    name: str
    size: float = 1.0  # change per STEP, in the entry's unit
    value: float = 1.0  # of which a factor is varied: derivatives are by the value


class Directions:
    """Starts of copies of a step, each changed along one of the columns, or along none."""

    def __init__(self, copies: Copies, columns: Sequence[Column]) -> None:
        self.copies, self.columns = copies, columns
        self._entry = [_flat_entry(copies.plan, column) for column in columns]

    def starts(self, chosen: Sequence[int | None], changes: Real) -> Starts:
        """The starts of steps along columns, one for each, or of the step itself (None)."""
        plan, count = self.copies.plan, len(chosen)
        qpos, qvel, activation = (np.repeat(values[None], count, axis=0) for values in self.copies.state)
        inputs, factors, memory = dict[str, Real](), dict[str, Real](), dict[str, Real]()
        along = np.zeros_like(qvel)
        rows: dict[str, list[tuple[int, int]]] = {}
        for row, n in enumerate(chosen):
            if n is not None:
                rows.setdefault(self.columns[n].of, []).append((row, self._entry[n]))
        for of, pairs in rows.items():
            those, entries = np.array(pairs).T
            if of == "qpos":
                place = along
            elif of in ("qvel", "activation"):
                place = qvel if of == "qvel" else activation
            elif of == EXPECTED:
                memory = {name: np.repeat(values[None], count, axis=0) for name, values in self.copies.memory.items()}
                for values in memory.values():
                    values[those, entries] += changes[those]
                continue
            elif of in VALUES:
                place = inputs[of] = np.repeat(self.copies.inputs[of][None], count, axis=0)
            else:
                shape = shape_of(plan, of) or (1,)
                place = factors[of] = np.array(np.broadcast_to(unvaried(plan, of), (count, *shape)), float, order="C")
            place.reshape(count, -1)[those, entries] += changes[those]
        if "qpos" in rows:
            qpos = self.copies.tangent.moved(qpos, along)
        if rows:
            follow_leaders(plan.robot.model, qpos, qvel)
        return Starts(qpos, qvel, activation, inputs, factors, memory)


def _flat_entry(plan: Plan, column: Column) -> int:
    """The number of a column's entry in its array."""
    if len(column.entry) == 1:
        return column.entry[0]
    return int(np.ravel_multi_index(column.entry, shape_of(plan, column.of)))
