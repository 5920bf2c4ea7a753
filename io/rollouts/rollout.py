"""`artsim.rollout`: a rollout from Python, into memory or a file; a file simulated again."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from artsim.io.format import schema
from artsim.io.format.variable import Variable
from artsim.io.readers.differences import Comparison, Difference
from artsim.io.readers.facts import first_sampled_fact
from artsim.io.readers.labelled_rows import LabelledRows
from artsim.io.readers.open_output import open_output
from artsim.io.readers.output import opened
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.rollouts.content import sample_labels
from artsim.io.rollouts.derived_rows import RolloutDerivatives
from artsim.io.rollouts.draws import GIVEN, STARTS, RolloutConfig
from artsim.io.rollouts.driven import Drive, Policy
from artsim.io.rollouts.given import COLUMNS, STATE, Given, given_values
from artsim.io.rollouts.onnx_policy import OnnxPolicy
from artsim.io.rollouts.roll import Outcome, roll
from artsim.io.rollouts.sample_inputs import array_controls, file_controls
from artsim.io.runs.held_inputs import action_of
from artsim.io.runs.named import joined
from artsim.io.runs.prepare import acting_controls, prepared
from artsim.io.runs.progress import progress_bar, warm
from artsim.io.runs.provenance import made_elsewhere, overlap_facts, provenance
from artsim.io.runs.replay import TOLERANCE, Load, plan_of
from artsim.io.settings import RolloutSettings
from artsim.sim.foundation.apart import available_cores
from artsim.sim.foundation.errors import StoppedError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import record_names
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.packable import kernels
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDABLE, ROLLOUT_RECORDED, records_contacts, row_count
from artsim.sim.runs.setting import MAX_STEPS
from artsim.sim.runs.varied import with_pushes_by_sample

if TYPE_CHECKING:
    from artsim.io.settings import ControlsOfSamples


def verify_rollout(
    path: str | os.PathLike[str], load: Load, *, threads: int = 1, tolerance: float = TOLERANCE
) -> Difference | None:
    """Verify a rollout as runs.verify does, by simulating its samples again; `step` is the sample."""
    with opened(Path(path), lambda where, file, _: RolloutRecording(where, file)) as stored:
        both = stored.config
        plan = plan_of(stored, load, both.get("run", {}))
        config = RolloutConfig(**both.get("rollout", {}))
        plan = with_pushes_by_sample(plan, [*config.randomise, *config.given])
        found = Comparison(stored, tolerance if made_elsewhere(stored) else 0.0)
        names = {name: f"start_{name}" if name in STATE else COLUMNS[name] for name in config.given}
        values = {name: stored[column] for name, column in names.items()}
        starts = {name: values.pop(name) for name in STATE if name in values}
        rows = {name: own[:, None] if own.ndim == 1 else own for name, own in values.items()}
        given = Given(stored.first_row, starts, rows)
        controls = stored.controls
        first = stored.first_row

        def compare(start: int, block: dict[str, Array]) -> None:
            found.compare(start - first, block)

        samples = range(first, first + stored.samples)
        roll(plan, config, controls=controls, given=given, samples=samples, threads=threads, on_block=compare)
        facts = None if made_elsewhere(stored) else first_sampled_fact(stored, plan.robot.articulation)
        return found.first or facts


class MemoryRollout(LabelledRows):
    """A rollout held in memory: `rollout["qpos"]` is (samples, rows, nq); addressed like a RolloutRecording."""

    def __init__(
        self, plan: Plan, arrays: dict[str, Array], outcome: Outcome, contacts: Sequence[dict[str, Array]] = ()
    ) -> None:
        """`contacts`: of blocks of samples in order, by the names of their columns."""
        self.outcome = outcome
        self.labels = sample_labels(plan)
        self.variables = tuple(name for name in schema.ROLLED if name in arrays)
        self.attrs: dict[str, Any] = {"title": f"artsim rollout of {plan.robot.articulation.name}"}
        self.attrs |= overlap_facts(plan)
        self._arrays = {**arrays, "time": np.arange(row_count(plan)) * (plan.config.every * plan.dt)}
        self._contacts = contacts
        self.has_contacts = records_contacts(plan)

    def __getitem__(self, name: str) -> Array:
        """Every sample of a variable, or `time` (rows,) [s]."""
        if name not in self._arrays:
            raise UsageError(f"the rollout has no {name!r}{nearest(name, self.variables)}")
        return self.dense(name, self._arrays[name])

    @cached_property
    def contacts(self) -> dict[str, Array]:
        """All contacts, as in RolloutRecording.contacts; empty if none were recorded."""
        if not self.has_contacts:
            return {}
        return {"contact_count": self._arrays["contact_count"], **joined([*self._contacts])}

    def read_contacts(self, start: int = 0, stop: int | None = None) -> dict[str, Array]:
        """The contacts of samples start … stop, as in RolloutRecording.read_contacts."""
        found = dict(self.contacts)
        if not found:
            return found
        count = found.pop("contact_count")
        start, stop, _ = slice(start, stop).indices(len(count))
        own = slice(*np.searchsorted(found["sample"], (start, max(start, stop))))
        return {"contact_count": count[start:stop], **{name: values[own] for name, values in found.items()}}

    @property
    def derivatives(self) -> RolloutDerivatives:
        """The derivatives of the samples' steps. Raises UsageError if they were not asked for."""
        if self.outcome.derivatives is None:
            raise UsageError("the rollout has no derivatives: artsim.rollout(…, derivatives=True)")
        return self.outcome.derivatives

    @property
    def stopped(self) -> int:
        """Number of samples that stopped early; `outcome.messages` tells of the first of them."""
        return self.outcome.stopped

    def _extent(self) -> str:
        early = f", {self.stopped} stopped early" if self.stopped else ""
        return f"{len(self._arrays['status'])} samples of {len(self._arrays['time'])} rows{early}"

    def variable(self, name: str) -> Variable:
        """The schema's entry of a variable, with dense Jacobians."""
        return schema.dense_variable(name, "rollout")


def rollout(
    robot: Robot,
    *,
    samples: int,
    controller: str = "none",
    controls: ControlsOfSamples = None,
    output: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    force: bool = False,
    policy: Policy | str | os.PathLike[str] | None = None,
    hold: int = 1,
    derivatives: bool | Sequence[str] = False,
    check: bool = False,
    progress: bool = False,
    **settings: Unpack[RolloutSettings],
) -> MemoryRollout | RolloutRecording:
    """Simulate many variations of a run; settings.RolloutOptions describes the arguments.

    A sample that stops early raises nothing: its `status` is not 1, `n_valid` tells how many rows it has, and `stopped`
    of the result how many samples did. With `check` they raise StoppedError, after all are simulated and written.
    """
    of_run: dict[str, Any] = {**settings}
    named = of_run.get("record", ROLLOUT_RECORDED)
    of_run["record"] = record_names([named] if isinstance(named, str) else named, ROLLOUT_RECORDED)
    own = {f.name: of_run.pop(f.name) for f in fields(RolloutConfig) if f.name in of_run}
    each = _each(of_run, controls)
    start = own.pop("start", GIVEN)
    drawn, tables = _tables(own.pop("randomise", {}), samples)
    plan, _, _ = prepared(robot, controller, None, of_run, _files(controls))
    plan = with_pushes_by_sample(plan, [*drawn, *tables])
    if not plan.spare:  # rollers that have run have them
        warm(kernels(plan))
    is_drawn = isinstance(start, str) and start in STARTS
    if isinstance(start, str) and not is_drawn and not Path(start).suffix:
        raise UsageError(f"start {start!r} is not known{nearest(start, STARTS)}, and is no file")
    values = given_values(plan, samples, None if is_drawn else start, tables)
    own |= {"start": start if is_drawn else GIVEN, "randomise": drawn, "given": values.names}
    config = RolloutConfig(samples, **own)
    given = _sample_controls(plan, controls if each is None else each, samples)
    blocks = _Blocks(samples)
    drive = drive_of(config, policy, hold, in_file=output is not None)
    drive = drive._replace(derivatives=_derived_by(plan, derivatives, output))
    with progress_bar("simulating", samples, unit="samples", show=progress) as advance:
        outcome = roll(
            plan,
            config,
            controls=check_rollout(plan, config, given),
            given=values,
            drive=drive,
            output=output,
            threads=threads or available_cores(),
            force=force,
            facts=None if output is None else provenance("artsim.rollout") | policy_facts(drive),
            on_block=None if output is not None else blocks.keep,
            progress=advance,
        )
    if check:
        refuse_stopped(outcome)
    if output is not None:
        opened = open_output(output)
        assert isinstance(opened, RolloutRecording)
        return opened
    return MemoryRollout(plan, blocks.arrays, outcome, blocks.contacts)


class _Blocks:
    """Blocks of samples, collected from any thread."""

    def __init__(self, samples: int) -> None:
        self.arrays: dict[str, Array] = {}  # (samples, …) by variable
        self._samples, self._lock = samples, threading.Lock()
        self._touched: dict[int, dict[str, Array]] = {}  # by the first sample of a block

    def keep(self, start: int, block: dict[str, Array]) -> None:
        """Keep the arrays of the samples from `start` on."""
        by_sample = {name: values for name, values in block.items() if "/" not in name}
        with self._lock:
            self._touched[start] = {path.rpartition("/")[2]: block[path] for path in block if path not in by_sample}
            for name, values in by_sample.items():
                if name not in self.arrays:
                    self.arrays[name] = np.zeros((self._samples, *values.shape[1:]), values.dtype)
        for name, values in by_sample.items():
            self.arrays[name][start : start + len(values)] = values

    @property
    def contacts(self) -> list[dict[str, Array]]:
        """The contacts of the blocks, in the order of their samples."""
        return [self._touched[start] for start in sorted(self._touched)]


def _derived_by(plan: Plan, asked: bool | Sequence[str], output: object) -> tuple[str, ...] | None:
    """The inputs by which steps are derived, those of the action if none is named; None: steps are not derived."""
    if asked is False:
        return None
    if output is not None:
        raise UsageError("derivatives are kept in memory: no output")
    if asked is True:
        return (action_of(plan),)
    return (asked,) if isinstance(asked, str) else tuple(asked)


def drive_of(
    config: RolloutConfig, policy: Policy | str | os.PathLike[str] | None, hold: int, *, in_file: bool
) -> Drive:
    """The treatment of samples between steps; `policy`: a function, or the name of an ONNX file. `in_file`: whether a
    file holds the inputs that the policy gives. Raises UsageError."""
    if not 1 <= hold <= MAX_STEPS:
        raise UsageError(f"hold is {hold}, want a number of steps from 1")
    if policy is None and hold != 1:
        raise UsageError("hold is for the inputs that a policy gives")
    if isinstance(policy, str | os.PathLike):
        policy = OnnxPolicy(policy)
    if policy is not None and not callable(policy):
        raise UsageError(f"policy is {policy!r}, want a function of qpos, qvel and time, or an ONNX file")
    return Drive(config.until, config.cost, policy, hold, policy is not None and in_file)


def policy_facts(drive: Drive) -> dict[str, str]:
    """Attributes of /provenance that tell of the policy whose inputs a file holds."""
    return {} if drive.policy is None else {"policy": drive.policy_name}


def _tables(randomise: Mapping[str, Any], samples: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ranges of properties that are drawn, and the values of those that are given: arrays with a row per sample."""
    if not isinstance(randomise, Mapping):
        raise UsageError(f"randomise is {randomise!r}, want ranges or arrays by name")
    tables = {name: own for name, own in randomise.items() if np.ndim(own) > 1 or np.size(own) != 2}
    return {name: own for name, own in randomise.items() if name not in tables}, tables


def _each(settings: dict[str, Any], controls: Any) -> dict[str, Any] | None:
    """The arrays of inputs that differ between samples, by name, taken out of the settings; None without any.

    Raises UsageError where there are controls, too.
    """
    several = {name: settings[name] for name in VALUES if _has_rows(settings.get(name))}
    for name in several:
        if controls is not None:
            raise UsageError(f"{name} is an array with rows for samples, and controls are given: give one of them")
        del settings[name]
    return several or None


def _has_rows(value: Any) -> bool:
    """True for numbers of more than one dimension: those of a setting have one."""
    return not isinstance(value, str | Mapping) and value is not None and np.ndim(value) > 1


def _files(controls: Any) -> Any:
    """The control file, or the first one of those of all samples; None: there is none."""
    found = controls[0] if isinstance(controls, Sequence) and not isinstance(controls, str) and controls else controls
    return found if isinstance(found, str | os.PathLike) else None


def _sample_controls(plan: Plan, controls: Any, samples: int) -> Sequence[Controls]:
    """The controls of all samples or of each, from files, arrays, or Controls; empty: those of the plan."""
    if controls is None:
        return ()
    if _files(controls) is not None:
        return file_controls(plan, controls, samples)
    if isinstance(controls, Mapping):
        for name in controls:
            if name not in VALUES:
                raise UsageError(f"controls: {name!r} is not known{nearest(name, VALUES)}; known: {', '.join(VALUES)}")
        return array_controls(plan, controls, samples)
    if isinstance(controls, Controls):
        controls = [controls]
    if isinstance(controls, np.ndarray):
        return array_controls(plan, {action_of(plan): controls}, samples)
    return [acting_controls(plan, own) for own in controls]


def check_rollout(plan: Plan, config: RolloutConfig, controls: Sequence[Controls]) -> Sequence[Controls]:
    """Check the number of controls and return them. Raises UsageError, also for variables that rollouts lack."""
    for name in plan.config.record:
        if name not in ROLLOUT_RECORDABLE:
            raise UsageError(f"a rollout does not record {name!r}: take the sample as a run by `artsim run`")
    if len(controls) > 1 and len(controls) != config.samples:
        raise UsageError(f"controls: there are {len(controls)} for {config.samples} samples")
    steps = [one.start_step for one in controls]
    if any(own is not steps[0] and not np.array_equal(own, steps[0]) for own in steps):
        raise UsageError("controls: those of samples begin at different steps")
    return controls


def refuse_stopped(outcome: Outcome) -> None:
    """Raise StoppedError if samples stopped early."""
    if outcome.stopped:
        more = f" (and {outcome.stopped - 1} more)" if outcome.stopped > 1 else ""
        raise StoppedError(f"{outcome.messages[0]}{more}; `n_valid` says how far each came")
