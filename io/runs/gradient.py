"""Gradients of a cost over a run, by one pass backwards through the derivatives of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from artsim.io.runs.held_inputs import action_of
from artsim.io.runs.stepping import Simulation
from artsim.sim.articulation.poses import at_leader, bend_at_leader
from artsim.sim.articulation.tangent import Tangent
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.run_data.run_records import MIDWAY
from artsim.sim.runs.controls import VALUES
from artsim.sim.runs.copied_steps import MEMORY
from artsim.sim.runs.step_derivatives import DIFFERENCES, StepDerivatives

_CHANGE = 1e-6  # [rad, m, rad/s, m/s] of differences of the cost of a state

Cost = Callable[[int, Real, Real], Any]


@dataclass(frozen=True)
class Gradient:
    """The cost of a run, and its derivatives by the inputs of every step, by the state at the start, in the tangent
    space, and by properties."""

    cost: float
    qpos: Real  # (steps + 1, nq) the run
    qvel: Real  # (steps + 1, nv)
    by_inputs: Real  # (steps, nu)
    by_start: Real  # (nx,)
    by_parameters: Real  # (np,)
    inputs: tuple[str, ...]  # names of the columns of by_inputs: "torque:elbow"
    states: tuple[str, ...]  # of by_start: "q:elbow", "v:elbow"
    parameters: tuple[str, ...]
    differenced: int  # steps whose derivatives are differences of steps
    kinked: int  # steps with a kink: the gradient is that of one of its sides


def gradient(
    simulation: Simulation,
    cost: Cost,
    steps: int,
    *,
    controls: Mapping[str, ArrayLike] | None = None,
    inputs: Sequence[str] | None = None,
    parameters: Sequence[str] = (),
) -> Gradient:
    """The gradient of a cost over the next steps of a simulation, which stays as it is.

    The run is simulated once, with a snapshot of about every √steps-th step. From the last one backwards these
    stretches are simulated again, and the adjoint of the state, λ = ∂cost/∂x, is carried through the derivatives of
    their steps: λ_k = ∂c_k/∂x + A_kᵀ λ_{k+1}; and likewise that of the changes of velocities in the last two steps,
    from which the midpoint integrator expects the next one. So the time of a gradient does not depend on the number of
    inputs of the run.

    Args:
        cost: the share c(k, qpos, qvel) of the state after k steps, k = 0 … steps, in the sum; either a number, of
            which differences are taken, or (number, by qpos in the tangent space (nv,), by qvel (nv,)).
        controls: inputs by name, (steps, ·), one row for each step; others are held.
        inputs, parameters: as in Simulation.derivatives; inputs are by default those in `controls`.

    Raises:
        UsageError: tables of another shape, an unknown name; StoppedError: the run stops.
    """
    given = {name: _table(simulation, name, values, steps) for name, values in (controls or {}).items()}
    if steps < 1:
        raise UsageError(f"gradient: got {steps} steps, want 1 or more")
    if simulation._simulation.controller is not None:
        raise UsageError("gradient: there are no derivatives of a Python controller's answers")
    wanted = tuple(inputs if inputs is not None else given or (action_of(simulation._simulation.plan),))
    start = simulation.save()
    try:
        return _Backward(simulation, cost, steps, given, wanted, parameters).result()
    finally:
        simulation.restore(start)


def _table(simulation: Simulation, name: str, values: ArrayLike, steps: int) -> Real:
    """Inputs (steps, entries) of one name."""
    if name not in VALUES:
        raise UsageError(f"controls: {name!r} is not known; known: {', '.join(VALUES)}")
    table = np.array(values, float)
    entries = len(simulation._simulation.acting(name))
    if table.ndim != 2 or len(table) != steps or table.shape[1] > entries:
        raise UsageError(f"controls: {name} has shape {table.shape}, want ({steps}, {entries})")
    if not np.isfinite(table).all():
        raise UsageError(f"controls: {name} is not finite")
    return table


class _Backward:
    """The pass through a run and back."""

    def __init__(
        self,
        simulation: Simulation,
        cost: Cost,
        steps: int,
        controls: Mapping[str, Real],
        inputs: Sequence[str],
        parameters: Sequence[str],
    ) -> None:
        self._simulation, self._cost, self._steps, self._controls = simulation, cost, steps, controls
        self._inputs, self._parameters = inputs, parameters
        self._model = simulation.robot.model
        self._tangent = Tangent(self._model)
        self._stretch = max(1, isqrt(steps))
        self._qpos = np.empty((steps + 1, simulation.robot.nq))
        self._qvel = np.empty((steps + 1, simulation.robot.nv))

    def result(self) -> Gradient:
        """Run forwards, then backwards."""
        snapshots = self._forwards()
        total, adjoint = self._share(self._steps)
        plan = self._simulation._simulation.plan
        expects = bool(plan.inputs["scheme"][MIDWAY] > 0.0)
        nv = self._simulation.robot.nv
        of_change, of_earlier = np.zeros(nv), np.zeros(nv)
        velocities = slice(nv, 2 * nv)
        by_inputs: list[Real] = []
        by_parameters: Real | float = 0.0
        differenced = kinked = 0
        found: StepDerivatives | None = None
        for first in reversed(range(0, self._steps, self._stretch)):
            states = self._again(snapshots[first // self._stretch], first)
            for k, state in reversed(list(enumerate(states, first))):
                self._simulation.restore(state)
                self._give(k)
                found = self._simulation.derivatives(self._inputs, self._parameters, expected=expects)
                adjoint[velocities] += of_change
                by_inputs.append(found.B.T @ adjoint)
                by_parameters = by_parameters + found.P.T @ adjoint
                share, by_state = self._share(k)
                before, of_expected = of_change, found.E.T @ adjoint if expects else np.zeros(nv)
                last, earlier = (state[name] for name in MEMORY)
                follows = (last * earlier > 0.0) * of_expected
                smaller = np.abs(last) <= np.abs(earlier)
                of_change, of_earlier = follows * smaller + of_earlier, follows * ~smaller
                adjoint = found.A.T @ adjoint + by_state
                adjoint[velocities] -= before
                total += share
                differenced += found.method == DIFFERENCES
                kinked += bool(found.kinks)
        assert found is not None
        return Gradient(
            cost=total,
            qpos=self._qpos,
            qvel=self._qvel,
            by_inputs=np.array(by_inputs[::-1]),
            by_start=self._folded(adjoint),
            by_parameters=np.asarray(by_parameters),
            inputs=found.inputs,
            states=found.states,
            parameters=found.parameters,
            differenced=differenced,
            kinked=kinked,
        )

    def _forwards(self) -> list[dict[str, Array]]:
        """The run, with a snapshot at the start of each stretch."""
        snapshots, simulation = [], self._simulation
        for k in range(self._steps + 1):
            self._qpos[k], self._qvel[k] = simulation.qpos, simulation.qvel
            if k < self._steps:
                if k % self._stretch == 0:
                    snapshots.append(simulation.save())
                self._give(k)
                simulation.step()
        return snapshots

    def _again(self, snapshot: Mapping[str, Array], first: int) -> list[dict[str, Array]]:
        """The snapshots of all steps of a stretch."""
        self._simulation.restore(snapshot)
        states = [dict(snapshot)]
        for k in range(first, min(first + self._stretch, self._steps) - 1):
            self._give(k)
            self._simulation.step()
            states.append(self._simulation.save())
        return states

    def _give(self, k: int) -> None:
        """Give the inputs of step k."""
        for name, table in self._controls.items():
            self._simulation.give(name, table[k])

    def _share(self, k: int) -> tuple[float, Real]:
        """The share of the state after k steps in the cost, and its derivatives (nx,)."""
        q, v = self._qpos[k], self._qvel[k]
        nv = len(v)
        found = self._cost(k, q, v)
        by = np.zeros(2 * nv + len(self._simulation.activation))
        if isinstance(found, tuple):
            by[:nv], by[nv : 2 * nv] = found[1], found[2]
            return float(found[0]), by
        for n in range(nv):
            change = np.zeros(nv)
            change[n] = _CHANGE
            up, down = (self._cost(k, self._tangent.moved(q, sign * change), v) for sign in (1.0, -1.0))
            by[n] = (up - down) / (2 * _CHANGE)
            by[nv + n] = (self._cost(k, q, v + change) - self._cost(k, q, v - change)) / (2 * _CHANGE)
        return float(found), by

    def _folded(self, adjoint: Real) -> Real:
        """The adjoint (nx,) of the start, in which followers of eliminated couplings follow."""
        model, q, v = self._model, self._qpos[0], self._qvel[0]
        made, nv = adjoint.copy(), len(v)
        for follower, leader, p in zip(
            model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
        ):
            if leader >= 0:
                x = q[model.dof_coord[leader]]
                (_, slope), bend = at_leader(p, x), bend_at_leader(p, x)
                made[leader] += slope * adjoint[follower] + bend * v[leader] * adjoint[nv + follower]
                made[nv + leader] += slope * adjoint[nv + follower]
            made[follower] = made[nv + follower] = 0.0
        return made
