"""Samples that are ended early, rated by a cost, driven by a function, or derived.

Expressions are evaluated by the packs (sim/stepping/rating.py). Samples with a policy take their steps in a fleet, as a
VectorSimulation's robots do, so that it is asked for all at once, and so do those whose steps are derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from artsim.io.expressions.language import Compiler
from artsim.io.expressions.names import OF_LINKS, Names
from artsim.io.rollouts.derived_rows import DerivedRows, RolloutDerivatives
from artsim.io.rollouts.sample_inputs import SampleControls
from artsim.io.runs.held_inputs import action_of, input_names, numbers_of, pushed_places
from artsim.io.runs.named import run_labels
from artsim.io.runs.progress import warm
from artsim.sim.foundation.errors import StoppedError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.run_records import RUNNING
from artsim.sim.runs.control_tables import control_tables
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.fleet import Fleet
from artsim.sim.runs.packable import reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.rated import Criteria, Rater, rating_kernels
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED, PackRoller, Results, Roller, Stop
from artsim.sim.runs.varied import PUSHES, Variations, own_pushes
from artsim.sim.runs.wrench_inputs import push_steps

_STEPS_PER_CALL = 2048  # signals are polled between calls only
Policy = Callable[[Array, Array, float], Any]
"""policy(qpos (samples, nq), qvel (samples, nv), time [s]): inputs (samples, n), or inputs by name."""


class Drive(NamedTuple):
    """The treatment of samples between steps: expressions of the state (empty: none), and a function."""

    until: str = ""  # which is not 0 where a sample ends
    cost: str = ""  # which is summed over the steps, at the state before each
    policy: Policy | None = None
    hold: int = 1  # steps for which the inputs that the policy gives act
    keeps_inputs: bool = False  # whether these are kept, so that samples can be simulated again without the policy
    derivatives: tuple[str, ...] | None = None  # the inputs by which steps from recorded rows are derived; None: no
    source: str = ""  # SHA-256 of the policy's file, by which parts of a rollout know that they are of one policy

    def __bool__(self) -> bool:
        return bool(self.until or self.cost or self.in_fleet)

    @property
    def in_fleet(self) -> bool:
        """True if samples take their steps in a fleet."""
        return self.policy is not None or self.derivatives is not None

    @property
    def policy_name(self) -> str:
        """The name of the policy, by which files tell of it."""
        return str(getattr(self.policy, "__qualname__", None) or type(self.policy).__name__)


class DrivenRoller:
    """Runs samples in a fleet, with a policy or derivatives of steps; see sim/runs/sampled_runs.py: Roller."""

    def __init__(
        self,
        plan: Plan,
        controls: Controls,
        results: Results,
        drive: Drive,
        threads: int = 1,
        raters: Callable[[], Rater] | None = None,
    ) -> None:
        """`raters`: as of Fleet."""
        self._policy, self._hold, self._derivatives = drive.policy, drive.hold, drive.derivatives
        self.derived: RolloutDerivatives | None = None
        self.results, self.solved_alone = results, 0
        self.samples, self.task = len(results.reason), (drive, threads)
        self._plan, self._controls, self._keeps_inputs = plan, controls, drive.keeps_inputs
        self._fleet, self._before = Fleet(plan, controls, len(results.reason), threads, raters), 0
        self.acted: Sequence[Controls] = ()  # the inputs of each sample as they acted, if they are kept

    def begin(self, controls: Controls) -> None:
        """See Roller."""
        self._controls, self._before = controls, self._fleet.solved_alone

    def run(self, variations: Variations, stop: Stop) -> bool:
        """See Roller."""
        fleet, results, count = self._fleet, self.results, len(variations)
        self._begin(variations)
        results.contacts.clear()
        given = variations.controls or [self._controls]
        inputs, begins = control_tables(self._plan, given), given[0].start_step.tolist()
        pushes = _Pushes(self._plan, variations)
        kept = _KeptInputs(self._plan, inputs, begins, self._hold) if self._keeps_inputs else None
        derived = None if self._derivatives is None else DerivedRows(self._plan, self._derivatives, count)
        step, steps, every = 0, self._plan.config.steps, self._plan.config.every
        while step < steps:
            if step in begins:
                for name, table in inputs.items():
                    fleet.inputs[name][:count] = table[:, begins.index(step)]
            if step in pushes.changes:
                row = int(np.searchsorted(begins, step, side="right")) - 1
                pushes.act(fleet.inputs["control"][:count], inputs["control"][:, row], step)
            self._record(step)
            going = np.flatnonzero(fleet.going)
            if not len(going):
                break
            if self._policy is not None and step % self._hold == 0:
                names = self._act(self._policy, count, step, going)
                if kept is not None:
                    kept.track(names, count)
            if kept is not None:
                kept.keep(step, fleet, count)
            ahead = self._ahead(step, [*begins, *pushes.after(step)])
            row, beside = divmod(step, every)
            if derived is not None and not beside:
                derived.take(fleet, row, going)
            fleet.step(ahead, record=not beside)
            if not beside:
                self._take_row(row, going)
            for rater in fleet.raters:
                rater.check(variations.first)
            step += ahead
            if stop():
                return False
        self._finish(step)
        self.acted = () if kept is None else kept.controls()
        self.derived = None if derived is None else derived.until(np.maximum(results.stopped, results.ended))
        return True

    def _begin(self, variations: Variations) -> None:
        """Begin with these samples; the other robots of the fleet take no steps."""
        fleet, count = self._fleet, len(variations)
        some = np.arange(count)
        if {*variations.factors} - {*PUSHES}:
            self.samples = 0  # their arrays differ from the plan's
            fleet.vary(some, variations.factors)
        fleet.reset(some, variations.qpos, variations.qvel, np.tile(self._plan.activation, (count, 1)))
        fleet.number(variations.first)
        for rater in fleet.raters:
            rater.begin()
        fleet.end(np.arange(count, fleet.n))

    def _ahead(self, step: int, begins: Sequence[int]) -> int:
        """The number of steps until inputs change, or something is recorded."""
        every, steps = self._plan.config.every, self._plan.config.steps
        ends = [steps, step + _STEPS_PER_CALL, *(begin for begin in begins if begin > step)]
        if self.results.rows or self._derivatives is not None:
            ends.append((step // every + 1) * every)
            if self._fleet.records and step % every == 0:
                ends.append(step + 1)
        if self._policy is not None:
            ends.append((step // self._hold + 1) * self._hold)
        return min(ends) - step

    def _record(self, step: int) -> None:
        """Record the states before a step; those of samples that have ended are overwritten later."""
        row, beside = divmod(step, self._plan.config.every)
        for name in ROLLOUT_RECORDED if not beside else ():
            if name in self.results.rows:
                self.results.rows[name][:, row] = getattr(self._fleet, name)

    def _take_row(self, row: int, samples: Array) -> None:
        """Take what the fleet has recorded of some samples in the last step of a call."""
        fleet, results = self._fleet, self.results
        for name, values in fleet.rows.items():
            results.rows[name][samples, row] = values[samples]
        if "contact_count" in results.rows:
            found = fleet.contacts()
            results.rows["contact_count"][samples, row] = found.pop("contact_count")[samples]
            own = np.isin(found["robot"], samples)
            results.contacts.add(found.pop("robot")[own], {name: values[own] for name, values in found.items()})

    def _act(self, policy: Policy, count: int, step: int, going: Array) -> Iterable[str]:
        """Set the inputs that the policy gives; their names. Raises UsageError for others than it should."""
        fleet, time = self._fleet, step * self._plan.dt
        answer = policy(fleet.qpos[:count].copy(), fleet.qvel[:count].copy(), time)
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
        return named.keys()

    def _finish(self, step: int) -> None:
        """Read the final states, stops and depths of samples."""
        fleet, results = self._fleet, self.results
        results.final_qpos[:], results.final_qvel[:] = fleet.qpos, fleet.qvel
        results.reason[:], results.stopped_dof[:] = fleet.reason, fleet.stopped_dof
        results.stopped[:] = np.where(fleet.reason == RUNNING, -1, fleet.steps)
        results.unsolved[:], results.residual[:] = fleet.unsolved, fleet.worst_residual
        results.start_depth[:], results.sunk[:], results.held[:] = fleet.contact_tallies()
        self.solved_alone = fleet.solved_alone - self._before


class _KeptInputs:
    """The inputs of samples as they act, row by row, but for pushes that samples have of their own."""

    def __init__(self, plan: Plan, tables: Mapping[str, Array], begins: Sequence[int], hold: int) -> None:
        """`tables`: the inputs that were given (n, rows, ·), of each sample or of all; rows begin at `begins`."""
        steps = plan.config.steps
        self._starts = np.unique([*(begin for begin in begins if begin < steps), *range(0, steps, hold)])
        row = np.searchsorted(begins, self._starts, side="right") - 1
        self._given = {name: table[:, row] for name, table in tables.items()}
        self._acted = dict[str, Array]()
        self._first = len(plan.control) - len(plan.pushed.held)  # of the wrenches among the controls

    def track(self, names: Iterable[str], samples: int) -> None:
        """Keep these inputs from now on."""
        for name in names:
            if name not in self._acted:
                given = self._given[name]
                self._acted[name] = np.array(np.broadcast_to(given, (samples, *given.shape[1:])))

    def keep(self, step: int, fleet: Fleet, samples: int) -> None:
        """Keep the inputs that act from this step on, if a row begins here."""
        row = int(np.searchsorted(self._starts, step))
        if row == len(self._starts) or self._starts[row] != step:
            return
        for name, values in self._acted.items():
            width = self._first if name == "control" else values.shape[2]
            values[:, row, :width] = fleet.inputs[name][:samples, :width]

    def controls(self) -> Sequence[Controls]:
        """The inputs of each sample, or those of all."""
        first = Controls(self._starts, **{name: values[0] for name, values in self._given.items()})
        own = {name: values for name, values in self._given.items() if len(values) > 1} | self._acted
        return SampleControls(first, own) if own else [first]


class _Pushes:
    """The pushes of samples that have their own, as changes of their wrenches in time."""

    def __init__(self, plan: Plan, variations: Variations) -> None:
        self._dt, self._first = plan.dt, len(plan.control) - len(plan.pushed.held)
        found = own_pushes(plan, variations.factors, len(variations))
        impulses, times = (np.zeros((0, 0, 6)), np.zeros((0, 0))) if found is None else found
        self._impulses, self._steps = impulses, push_steps(times, plan.dt)
        places = pushed_places(plan)
        self._places = [places[push.link] for push in plan.pushed.pushes]
        self._times = np.unique([self._steps, self._steps + 1])
        self.changes = frozenset(self._times.tolist())  # steps at which pushes begin or end

    def after(self, step: int) -> list[int]:
        """The next step at which pushes begin or end; empty if there is none."""
        k = int(np.searchsorted(self._times, step, side="right"))
        times: list[int] = self._times[k : k + 1].tolist()
        return times

    def act(self, control: Array, given: Array, step: int) -> None:
        """Set the wrenches in `control` (samples, ·) to those given, with the pushes of this step."""
        control[:, self._first :] = given[:, self._first :]
        for sample, push in np.argwhere(self._steps == step):
            control[sample, self._places[push]] += self._impulses[sample, push] / self._dt


def criteria_of(plan: Plan, drive: Drive) -> Criteria | None:
    """The expressions by which samples are rated, compiled; None without any. Raises UsageError for one that has no
    meaning, and for features that packs lack."""
    if not (drive.until or drive.cost):
        return None
    _refuse(plan)
    action = action_of(plan)
    labels = input_names(plan, action)
    names = Names(run_labels(plan), labels)
    compiler, titles = Compiler(names, {"dt": plan.dt}), ("until", "cost")
    outputs = [compiler.number(getattr(drive, title) or "0", title) for title in titles]
    if forced := [*names.recorded()]:
        title = "until" if drive.until else "cost"
        raise UsageError(f"{title}: {forced[0]!r} is of a step, not of the state before it")
    instructions = compiler.instructions(outputs)

    def why_unknown(registers: Array, sample: int) -> str:
        found = dict(zip(titles, instructions.outputs, strict=True))
        title, output = next((title, output) for title, output in found.items() if np.isnan(registers[output]))
        return f"{title} of sample {sample}: {compiler.reason(registers, output)}"

    links = {name: table for name, table in OF_LINKS.items() if name in names.used}
    return Criteria(instructions, links, action, len(labels), why_unknown)


def make_driven_roller(
    plan: Plan, controls: Controls, results: Results, drive: Drive, criteria: Criteria | None, threads: int
) -> Roller:
    """Make a roller whose samples are rated, and driven by a policy where there is one. Raises UsageError for features
    that packs lack."""
    make_rater: Callable[[], Rater] | None = None
    if criteria is not None:
        make_rater = partial(Rater, plan, criteria, results.ended, results.cost)
        warm(rating_kernels(criteria))
    if not drive.in_fleet:
        return PackRoller(plan, controls, results, (drive, threads), make_rater and make_rater())
    _refuse(plan)
    return DrivenRoller(plan, controls, results, drive, threads, make_rater)


def _refuse(plan: Plan) -> None:
    """Raise UsageError for features that packs lack."""
    if reason := reason_against_packs(plan):
        raise UsageError(f"packs lack {reason}: samples cannot be ended, rated or driven on the way")
