"""Samples that are looked at while they are simulated: ended early, rated by a cost, or driven by a function.

They take their steps in a fleet, as a VectorSimulation's robots do; between these the expressions are evaluated, for
all samples at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from artsim.io.expressions.language import Compiler
from artsim.io.expressions.names import OF_LINKS, Names
from artsim.io.rollouts.sample_inputs import action_of
from artsim.io.rollouts.states import quantities_of
from artsim.io.runs.held_inputs import input_names, numbers_of
from artsim.io.runs.named import run_labels
from artsim.io.runs.progress import warm
from artsim.sim.foundation.errors import StoppedError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.program import EVALUATE, ProgramRun
from artsim.sim.run_data.run_records import RUNNING
from artsim.sim.runs.control_tables import control_tables
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.fleet import Fleet
from artsim.sim.runs.packable import reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED, Results, Stop
from artsim.sim.runs.varied import Variations

_STEPS_PER_CALL = 2048  # signals are polled between calls only
Policy = Callable[[Array, Array, float], Any]
"""policy(qpos (samples, nq), qvel (samples, nv), time [s]): inputs (samples, n), or inputs by name."""


class Drive(NamedTuple):
    """What is done with samples between steps: expressions of the state (empty: none), and a function."""

    until: str = ""  # which is not 0 where a sample ends
    cost: str = ""  # which is summed over the steps, at the state before each
    policy: Policy | None = None
    hold: int = 1  # steps for which the inputs that the policy gives act

    def __bool__(self) -> bool:
        return bool(self.until or self.cost or self.policy)


class DrivenRoller:
    """Runs samples in a fleet; see sim/runs/sampled_runs.py: Roller."""

    def __init__(self, plan: Plan, controls: Controls, results: Results, drive: Drive, threads: int = 1) -> None:
        """Raises UsageError: an expression that has no meaning, or features that packs lack."""
        if reason := reason_against_packs(plan):
            raise UsageError(f"packs lack {reason}: samples cannot be ended, rated or driven on the way")
        self.results, self.solved_alone = results, 0
        self.samples, self.task = len(results.reason), (drive, threads)
        self._plan, self._controls, self._drive = plan, controls, drive
        self._fleet, self._before = Fleet(plan, controls, len(results.reason), threads), 0
        self._seen = _Seen(plan, self._fleet, drive) if drive.until or drive.cost else None

    def begin(self, controls: Controls) -> None:
        """See Roller."""
        self._controls, self._before = controls, self._fleet.solved_alone

    def run(self, variations: Variations, stop: Stop) -> bool:
        """See Roller."""
        fleet, results, count = self._fleet, self.results, len(variations)
        self._begin(variations)
        results.ended[:], results.cost[:] = -1, 0.0
        given = variations.controls or [self._controls]
        inputs, begins = control_tables(self._plan, given), given[0].start_step.tolist()
        step, steps, every = 0, self._plan.config.steps, self._plan.config.every
        while step < steps:
            if step in begins:
                for name, table in inputs.items():
                    fleet.inputs[name][:count] = table[:, begins.index(step)]
            self._record(step)
            going = np.flatnonzero(fleet.going)
            if self._drive.policy is not None and step % self._drive.hold == 0 and len(going):
                self._act(count, step, going)
            if self._seen is not None:
                going = self._look(step, going)
            if not len(going):
                break
            ahead = self._ahead(step, begins)
            row, beside = divmod(step, every)
            fleet.step(ahead, record=not beside)
            for name, values in fleet.rows.items() if not beside else ():
                results.rows[name][:, row] = values
            step += ahead
            if stop():
                return False
        self._finish(step)
        return True

    def _begin(self, variations: Variations) -> None:
        """Begin with these samples; the other robots of the fleet take no steps."""
        fleet, count = self._fleet, len(variations)
        some = np.arange(count)
        if variations.factors:
            self.samples = 0  # their arrays differ from the plan's
            fleet.vary(some, variations.factors)
        fleet.reset(some, variations.qpos, variations.qvel, np.tile(self._plan.activation, (count, 1)))
        fleet.number(variations.first)
        fleet.end(np.arange(count, fleet.n))

    def _ahead(self, step: int, begins: Sequence[int]) -> int:
        """The number of steps until inputs change, or something is recorded or looked at."""
        if self._seen is not None:
            return 1
        every, steps = self._plan.config.every, self._plan.config.steps
        ends = [steps, step + _STEPS_PER_CALL, *(begin for begin in begins if begin > step)]
        if self.results.rows:
            ends.append((step // every + 1) * every)
            if self._fleet.rows and step % every == 0:
                ends.append(step + 1)
        if self._drive.policy is not None:
            ends.append((step // self._drive.hold + 1) * self._drive.hold)
        return min(ends) - step

    def _record(self, step: int) -> None:
        """Record the states before a step; those of samples that have ended are overwritten later."""
        row, beside = divmod(step, self._plan.config.every)
        for name in ROLLOUT_RECORDED if not beside else ():
            if name in self.results.rows:
                self.results.rows[name][:, row] = getattr(self._fleet, name)

    def _look(self, step: int, going: Array) -> Array:
        """End the samples that shall end, and add the cost of the step of the others; those that go on."""
        assert self._seen is not None
        ending, cost = self._seen.at(going)
        self.results.ended[going[ending]] = step
        self._fleet.end(going[ending])
        rest = going[~ending]
        self.results.cost[rest] += cost[~ending]
        return rest

    def _act(self, count: int, step: int, going: Array) -> None:
        """Set the inputs that the policy gives. Raises UsageError for others than it should."""
        assert self._drive.policy is not None
        fleet, time = self._fleet, step * self._plan.dt
        answer = self._drive.policy(fleet.qpos[:count].copy(), fleet.qvel[:count].copy(), time)
        named = answer if isinstance(answer, Mapping) else {action_of(self._plan): answer}
        for name, values in named.items():
            if name not in VALUES:
                raise UsageError(f"policy: {name!r} is not known{nearest(name, VALUES)}; known: {', '.join(VALUES)}")
            width = len(input_names(self._plan, name))
            numbers = np.asarray(numbers_of(f"policy: {name}", values))
            if numbers.shape not in ((width,), (count, width)):
                raise UsageError(
                    f"policy: {name} has shape {numbers.shape}, want {(count, width)}, or {(width,)} for all"
                )
            whole = np.broadcast_to(numbers, (count, width))
            wrong = going[~np.isfinite(whole[going]).all(axis=1)]
            if len(wrong):
                raise StoppedError(f"policy: {name} of sample {wrong[0]} at t = {time:.6g} s is not finite")
            fleet.inputs[name][going, :width] = whole[going]

    def _finish(self, step: int) -> None:
        """Read the final states, stops and depths of samples."""
        fleet, results = self._fleet, self.results
        results.final_qpos[:], results.final_qvel[:] = fleet.qpos, fleet.qvel
        results.reason[:], results.stopped_dof[:] = fleet.reason, fleet.stopped_dof
        results.stopped[:] = np.where(fleet.reason == RUNNING, -1, fleet.steps)
        results.unsolved[:], results.residual[:] = fleet.unsolved, fleet.worst_residual
        results.start_depth[:], results.sunk[:], results.held[:] = fleet.contact_tallies()
        self.solved_alone = fleet.solved_alone - self._before


class _Seen:
    """The expressions of samples, evaluated at their states."""

    def __init__(self, plan: Plan, fleet: Fleet, drive: Drive) -> None:
        self._fleet, self._texts = fleet, [text for text in (drive.until, drive.cost) if text]
        self._titles = [title for title in ("until", "cost") if getattr(drive, title)]
        action, labels = action_of(plan), input_names(plan, action_of(plan))
        names = Names(run_labels(plan), labels)
        self._compiler = Compiler(names, {"dt": plan.dt})
        outputs = [self._compiler.number(getattr(drive, title), title) for title in self._titles]
        if forced := [*names.recorded()]:
            raise UsageError(f"{self._titles[0]}: {forced[0]!r} is of a step, not of the state before it")
        n = fleet.n
        tables = {name: getattr(fleet, name) for name in ("qpos", "qvel", "activation")}
        self._inputs = fleet.inputs[action][:, : len(labels)]
        self._action = np.zeros(self._inputs.shape)
        tables |= {"time": fleet.time.reshape(n, 1), "action": self._action}
        links = [name for name in OF_LINKS if name in names.used]
        self._find_links: Callable[[], None] = _nothing
        if links:
            found, self._find_links = quantities_of(plan.robot, fleet, links)
            tables |= {OF_LINKS[name]: values.reshape(n, -1) for name, values in found.items()}
        warm([(EVALUATE, 1)])
        self._program = ProgramRun(
            self._compiler.instructions(outputs), {name: values for name, values in tables.items() if values.size}, n
        )

    def at(self, samples: Array) -> tuple[Array, Array]:
        """Whether each of some samples ends here, and the cost of each. Raises StoppedError for one that is NaN."""
        self._find_links()
        self._action[:] = self._inputs
        self._program.run(samples)
        found = self._program.output[samples]
        if np.isnan(found).any():
            k, number = (int(index) for index in np.argwhere(np.isnan(found))[0])
            why = self._compiler.reason(self._program.registers(int(samples[k])), self._program.outputs[number])
            raise StoppedError(f"{self._titles[number]} of sample {samples[k]}: {why}")
        by_title = dict(zip(self._titles, found.T, strict=True))
        none = np.zeros(len(samples))
        return by_title.get("until", none) != 0, by_title.get("cost", none)


def _nothing() -> None:
    """Where no quantity of links is asked for."""
