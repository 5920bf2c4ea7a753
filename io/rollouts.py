"""Rollouts: N variations of one run, drawn from a seed, simulated in packs and threads, into one file or memory.

What a sample is depends on the seed and its number alone, and samples do not depend on each other: so a file's bytes
are the same for every number of threads, and a sample's for every number of samples.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from artsim.io import schema
from artsim.io.batch_file import BatchWriter, Column, Content
from artsim.io.comparison import Comparison
from artsim.io.control_files import read_sample_controls
from artsim.io.labelled_rows import LabelledRows
from artsim.io.memory import memory_left
from artsim.io.reader import Difference, opened
from artsim.io.recorder import model_record
from artsim.io.rollout_reader import RolloutRecording
from artsim.io.runs import (
    TOLERANCE,
    Load,
    check_driven,
    file_labels,
    held_controls,
    made_elsewhere,
    plan_of,
    prepared,
    provenance,
)
from artsim.io.sampling import DISTRIBUTIONS, Stream, open_samples
from artsim.io.settings import RolloutSettings
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import MemoryShortageError, StoppedError, UsageError, nearest
from artsim.sim.foundation.records import WIDTH, Array
from artsim.sim.quantities.evaluation import available_threads
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.run_records import NON_FINITE, RUNNING
from artsim.sim.runs.configuration import MAX_STEPS
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import (
    ROLLOUT_RECORDED,
    VARIED,
    Results,
    Roller,
    Variations,
    make_roller,
    reason_against_packs,
)

GIVEN = "given"
STARTS = (GIVEN, *DISTRIBUTIONS)
_BLOCK_BYTES = 1 << 20  # of samples that one thread simulates before it writes them
_STREAMS = ("spread", "velocity_spread", *VARIED)  # of the seed; their order is part of what a seed means
_FIRST_STREAM = 64  # `artsim batch` draws from those before
_TOLD = 5  # samples that are named
_THREAD_BYTES = 16 << 20


@dataclass(frozen=True)
class RolloutConfig:
    """What is varied, and how often. Raises UsageError for what cannot be."""

    samples: int
    start: str = GIVEN
    spread: float = 0.0  # [rad, m]
    velocity_spread: float = 0.0  # [rad/s, m/s]
    randomise: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # of VARIED: factors from … to

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= MAX_STEPS:
            raise UsageError(f"samples is {self.samples}, want 1 to {MAX_STEPS}")
        if self.start not in STARTS:
            raise UsageError(f"start {self.start!r} is not known{nearest(self.start, STARTS)}")
        for name in ("spread", "velocity_spread"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise UsageError(f"{name} is {getattr(self, name)}, want a finite number from 0")
        if self.spread and self.start != GIVEN:
            raise UsageError(f"spread is about the given start, and start is {self.start!r}")
        for name, bounds in self.randomise.items():
            if name not in VARIED:
                raise UsageError(f"randomise: {name!r} is not known{nearest(name, VARIED)}; known: {', '.join(VARIED)}")
            low, high = bounds
            least = np.nextafter(0.0, 1.0) if name == "mass" else 0.0
            if not least <= low <= high < math.inf:
                raise UsageError(f"randomise: {name}={low:g}:{high:g}: want factors LOW:HIGH, 0 < LOW ≤ HIGH")


@dataclass(frozen=True)
class Outcome:
    """What came of a rollout."""

    samples: int  # done
    steps: int  # of all samples, those after a sample's end not counted
    seconds: float
    packed: bool  # 8 at a time
    alone: int  # steps that samples of packs took by themselves
    stopped: int  # samples
    messages: tuple[str, ...]  # about the first of these
    complete: bool = True
    output: Path | None = None
    bytes: int = 0


# ------------------------------------------------------------------ what is drawn


class Draws:
    """The variations of a rollout, by sample."""

    def __init__(self, plan: Plan, config: RolloutConfig, controls: Sequence[Controls]) -> None:
        """`controls`: one for all samples, or one for each. Raises UsageError for a seed below 0."""
        self._plan, self._controls = plan, controls
        seed, model = _seed(plan.config.seed), plan.robot.model
        self._samples = None
        if config.start != GIVEN:
            self._samples = open_samples(
                model, plan.robot.labels, (), (), rows=config.samples, seed=seed, distribution=config.start
            )
        if "friction" in config.randomise and plan.touching is None:
            raise UsageError("randomise: friction is that of contacts, nothing may touch; joints have joint_friction")
        sizes = {"link": len(plan.robot.links), "dof": plan.robot.nv, "": 1}
        reach = {"spread": _spread(plan, config.spread), "velocity_spread": _velocity_spread(plan, config)}
        ends = {name: (-values, values) for name, values in reach.items() if values.any()}
        for name, (low, high) in config.randomise.items():
            ends[name] = np.full(sizes[VARIED[name]], low), np.full(sizes[VARIED[name]], high)
        self.factors = {name: VARIED[name] for name in VARIED if name in ends}
        self._streams = {
            name: Stream(seed, _FIRST_STREAM + _STREAMS.index(name), False, *bounds) for name, bounds in ends.items()
        }

    def read(self, start: int, stop: int) -> Variations:
        """Samples start … stop."""
        plan, n = self._plan, stop - start
        drawn = {}
        for name, stream in self._streams.items():
            drawn[name] = np.empty((n, stream.width))
            stream.read(start, stop, drawn[name])
        qpos = np.tile(plan.qpos, (n, 1))
        if self._samples is not None:
            self._samples.read(start, stop, {"qpos": qpos})
        if "spread" in drawn:
            qpos = _within_limits(plan, qpos + drawn.pop("spread"), qpos)
        qvel = plan.qvel + drawn.pop("velocity_spread", np.zeros((n, plan.robot.nv)))
        return Variations(qpos, qvel, drawn, self._controls[start:stop] if len(self._controls) > 1 else ())


def _seed(seed: int) -> int:
    if not 0 <= seed < 2**63:
        raise UsageError(f"seed {seed}: want 0 … 2^63 - 1")
    return seed


def _spread(plan: Plan, reach: float) -> Array:
    """(nq,) how far each coordinate is moved at most: rotations of ball and free joints and followers not at all."""
    model, values = plan.robot.model, np.zeros(plan.robot.nq)
    followers = {*model.coupling_follower.tolist(), *model.row_follower.tolist()}
    for dof, coord in enumerate(model.dof_coord):
        if coord >= 0 and dof not in followers:
            values[coord] = reach
    return values


def _velocity_spread(plan: Plan, config: RolloutConfig) -> Array:
    model, values = plan.robot.model, np.zeros(plan.robot.nv)
    values[model.independent_dof] = config.velocity_spread
    return values


def _within_limits(plan: Plan, moved: Array, given: Array) -> Array:
    """Coordinates that were moved beyond their limits are at them, or stay where they were given if that is beyond."""
    model = plan.robot.model
    for dof, coord in enumerate(model.dof_coord):
        if coord >= 0:
            lower = np.minimum(model.lower[dof], given[:, coord])
            moved[:, coord] = np.clip(moved[:, coord], lower, np.maximum(model.upper[dof], given[:, coord]))
    return moved


def plan_sample_controls(plan: Plan, path: str | os.PathLike[str], samples: int) -> list[Controls]:
    """A control file's inputs: one for all samples, or one for each. Raises as plan_controls does."""
    names = () if plan.equipped is None else plan.equipped.labels.controls
    held = {name: getattr(plan, name) for name in ("torque", "target", "target_velocity", "control")}
    controls = read_sample_controls(path, samples, plan.robot.dofs, plan.dt, actuators=names, **held)
    for one in controls:
        check_driven(plan, one, path)
    return controls


# ------------------------------------------------------------------ simulating


def roll(
    plan: Plan,
    config: RolloutConfig,
    *,
    controls: Sequence[Controls] = (),
    output: str | os.PathLike[str] | None = None,
    threads: int = 1,
    force: bool = False,
    facts: Mapping[str, str | int | float] | None = None,
    on_block: Callable[[int, dict[str, Array]], None] | None = None,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Outcome:
    """Simulate all samples, into a file when `output` is given: a complete one, or none.

    Args:
        controls: one for all samples, or one for each; none: what the plan holds.
        facts: attributes of /provenance besides the configuration.
        on_block: called with the first sample and the arrays of some samples, from any thread.
        progress: called with the samples done. stop: True ends the work.

    Raises UsageError, MemoryShortageError, what BatchWriter raises.
    """
    controls = controls or [held_controls(plan)]
    if plan.config.is_python:
        raise UsageError("a rollout takes built-in controllers only; inputs over time are for --control")
    stream = _Stream(plan, config, controls, threads)
    if output is None:
        complete = stream.run(on_block, progress, stop)
        return stream.outcome(complete)
    content = _content(plan, config, stream.draws, controls, facts or {})
    with BatchWriter(output, content, force=force) as writer:

        def write(start: int, block: dict[str, Array]) -> None:
            writer.write(start, len(block["status"]), block)

        complete = stream.run(write, progress, stop)
        if complete:
            writer.commit()
        outcome = stream.outcome(complete)
        return replace(outcome, output=writer.path, bytes=writer.bytes) if complete else outcome


class _Stream:
    """Samples on their way: every thread takes block after block, simulates and hands it on."""

    def __init__(self, plan: Plan, config: RolloutConfig, controls: Sequence[Controls], threads: int) -> None:
        self.plan, self.config = plan, config
        self.draws = Draws(plan, config, controls)
        self._block = _block_samples(plan, config.samples, threads)
        blocks = -(-config.samples // self._block)
        self._threads = max(1, min(threads, blocks))
        _check_memory(plan, self._block, self._threads)
        self._starts = iter(range(0, config.samples, self._block))
        self._lock, self._ended = threading.Lock(), False
        self._rollers = [make_roller(plan, controls[0], Results.of(plan, self._block)) for _ in range(self._threads)]
        self._done = self._steps = self._stopped = 0
        self._messages: list[tuple[int, str]] = []
        self._seconds = 0.0

    def run(
        self,
        hand_on: Callable[[int, dict[str, Array]], None] | None,
        progress: Callable[[int], None] | None,
        stop: Callable[[], bool] | None,
    ) -> bool:
        """All samples; False when it was asked to stop."""
        from concurrent.futures import ThreadPoolExecutor  # imports logging

        def work(roller: Roller) -> None:
            try:
                while not self._ended and (block := self._next()) is not None:
                    if not roller.run(block[1], lambda: self._asked(stop)):
                        return
                    self._take(roller.results, *block, hand_on, progress)
            except BaseException:
                self._ended = True  # the others need not go on
                raise

        began = time.perf_counter()
        with ThreadPoolExecutor(self._threads) as pool:
            workers = [pool.submit(work, roller) for roller in self._rollers]
        for worker in workers:
            worker.result()
        self._seconds = time.perf_counter() - began
        return not self._ended

    def outcome(self, complete: bool) -> Outcome:
        """What came of it."""
        return Outcome(
            samples=self._done,
            steps=self._steps,
            seconds=self._seconds,
            packed=not reason_against_packs(self.plan),
            alone=sum(roller.alone for roller in self._rollers),
            stopped=self._stopped,
            messages=tuple(text for _, text in self._messages),
            complete=complete,
        )

    def _next(self) -> tuple[int, Variations] | None:
        """The first sample of the next block, and what its samples are."""
        with self._lock:
            start = next(self._starts, None)
            if start is None:
                return None
            return start, self.draws.read(start, min(start + self._block, self.config.samples))

    def _asked(self, stop: Callable[[], bool] | None) -> bool:
        if stop is not None and stop():
            self._ended = True
        return self._ended

    def _take(
        self,
        results: Results,
        start: int,
        variations: Variations,
        hand_on: Callable[[int, dict[str, Array]], None] | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        """Results of a block, passed on; NaN where a sample had stopped."""
        plan, count = self.plan, len(variations)
        block = self._arrays(results, variations)
        stopped = results.stopped[:count]
        with self._lock:
            self._steps += int(np.where(stopped < 0, plan.config.steps, stopped).sum())
            for k in np.flatnonzero(stopped >= 0):
                self._stopped += 1
                self._messages.append((start + int(k), f"sample {start + k} {_why(plan, results, int(k))}"))
            self._messages = sorted(self._messages)[:_TOLD]
        if hand_on is not None:
            hand_on(start, block)
        with self._lock:
            self._done += count
            if progress is not None:
                progress(self._done)

    def _arrays(self, results: Results, variations: Variations) -> dict[str, Array]:
        count, every = len(variations), self.plan.config.every
        stopped = results.stopped[:count]
        rows = {name: results.rows[name][:count] for name in ROLLOUT_RECORDED if name in self.plan.config.record}
        total = -(-self.plan.config.steps // every)
        valid = np.where(stopped < 0, total, -(-stopped // every))
        for k in np.flatnonzero(stopped >= 0):
            for values in rows.values():
                values[k, valid[k] :] = np.nan
        return {
            **rows,
            "final_qpos": results.final_qpos[:count],
            "final_qvel": results.final_qvel[:count],
            **{f"{n}_factor": x if VARIED[n] else x[:, 0] for n, x in variations.factors.items()},
            "n_valid": valid,
            "status": _status(results.reason[:count]),
        }


def _status(reason: Array) -> Array:
    """As a run's status."""
    early = np.where(reason == NON_FINITE, schema.NON_FINITE, schema.INTERRUPTED)
    return np.where(reason == RUNNING, schema.COMPLETE, early).astype(np.int8)


def _why(plan: Plan, results: Results, k: int) -> str:
    """When and why the k-th sample of a block stopped early."""
    step, dof = int(results.stopped[k]), int(results.stopped_dof[k])
    what = f"joint {plan.robot.dofs[dof]!r}" if dof < plan.robot.nv else "a tendon"
    reached = f"{what} reached its limit, and rk4 has no rows for it"
    why = f"the velocity of {what} is not finite" if results.reason[k] == NON_FINITE else reached
    return f"stopped at t = {step * plan.dt:.6g} s (step {step}): {why}"


def _sample_bytes(plan: Plan) -> int:
    rows = -(-plan.config.steps // plan.config.every)
    sizes = {"qpos": plan.robot.nq, "qvel": plan.robot.nv}
    return 8 * (rows * sum(sizes[name] for name in ROLLOUT_RECORDED if name in plan.config.record) + 64)


def _block_samples(plan: Plan, samples: int, threads: int) -> int:
    """Whole packs of about _BLOCK_BYTES of results, and something to do for every thread."""
    packs = max(1, _BLOCK_BYTES // (WIDTH * _sample_bytes(plan)))
    return WIDTH * min(packs, -(-samples // (WIDTH * threads)))


def _check_memory(plan: Plan, samples: int, threads: int) -> None:
    """Raises MemoryShortageError before anything is done."""
    need, (left, what) = threads * (samples * _sample_bytes(plan) + _THREAD_BYTES), memory_left()
    if need > left:
        told = f"{threads} blocks of {samples} samples need {need / 1e6:.0f} MB, {what} {left / 1e6:.0f} MB"
        raise MemoryShortageError(f"not enough memory: {told}; try a larger --every or fewer --threads")


# ------------------------------------------------------------------ what the file says


def _content(
    plan: Plan,
    config: RolloutConfig,
    draws: Draws,
    controls: Sequence[Controls],
    facts: Mapping[str, str | int | float],
) -> Content:
    robot, rows = plan.robot, -(-plan.config.steps // plan.config.every)
    columns = {
        name: Column(schema.TABLE[f"rollout/{name}"].dims[1:], (rows, size), "f8")
        for name, size in (("qpos", robot.nq), ("qvel", robot.nv))
        if name in plan.config.record
    }
    columns |= {"final_qpos": Column(("coord",), (robot.nq,), "f8"), "final_qvel": Column(("dof",), (robot.nv,), "f8")}
    sizes = {"link": len(robot.links), "dof": robot.nv}
    for name, dim in draws.factors.items():
        columns[f"{name}_factor"] = Column((dim,), (sizes[dim],), "f8") if dim else Column((), (), "f8")
    columns |= {"n_valid": Column((), (), "i8"), "status": Column((), (), "i1")}
    told: dict[str, str | int | float] = {"dt": plan.dt, "steps": plan.config.steps, "every": plan.config.every}
    told["seed"] = plan.config.seed
    both = {"run": json.loads(plan.config.to_json()), "rollout": asdict(config)}
    return Content(
        rows=config.samples,
        columns=columns,
        labels=file_labels(robot.labels, plan.equipped),
        model=model_record(robot.articulation, plan.kept),
        facts=told,
        provenance={**facts, "config": json.dumps(both, sort_keys=True), **told},
        group="rollout",
        numbers={"time": np.arange(rows) * (plan.config.every * plan.dt)},
        inputs=_inputs(plan, controls),
    )


def _inputs(plan: Plan, controls: Sequence[Controls]) -> dict[str, Array]:
    """The inputs as they acted: what all samples share is there once."""
    first = controls[0]
    names = schema.CONTROL_VALUES if first.control.size else schema.CONTROL_VALUES[:-1]
    inputs = {"time": first.start_step * plan.dt, "start_step": first.start_step}
    for name in names:
        values = [getattr(one, name) for one in controls]
        alike = all(np.array_equal(one.view(np.int64), values[0].view(np.int64)) for one in values)
        inputs[name] = values[0] if alike else np.stack(values)
    return inputs


def verify_rollout(
    path: str | os.PathLike[str], load: Load, *, threads: int = 1, tolerance: float = TOLERANCE
) -> Difference | None:
    """As runs.verify, of a rollout: its samples, with their draws and inputs, simulated again. `step` is the sample."""
    with opened(Path(path), lambda where, file, _: RolloutRecording(where, file)) as stored:
        both = stored.config
        plan = plan_of(stored, load, both.get("run", {}))
        config = RolloutConfig(**both.get("rollout", {}))
        found = Comparison(stored, tolerance if made_elsewhere(stored) else 0.0)
        controls = check_rollout(plan, config, stored.controls)
        roll(plan, config, controls=controls, threads=threads, on_block=found.compare)
        return found.first


# ------------------------------------------------------------------ from Python


class MemoryRollout(LabelledRows):
    """A rollout held in memory: `rollout["qpos"]` is (samples, rows, nq); addressed like a RolloutRecording."""

    def __init__(self, plan: Plan, arrays: dict[str, Array], outcome: Outcome) -> None:
        self.outcome = outcome
        self.labels = file_labels(plan.robot.labels, plan.equipped)
        self.variables = tuple(name for name in schema.ROLLED if name in arrays)
        self.attrs: dict[str, Any] = {"title": f"artsim rollout of {plan.robot.articulation.name}"}
        rows = -(-plan.config.steps // plan.config.every)
        self._arrays = {**arrays, "time": np.arange(rows) * (plan.config.every * plan.dt)}

    def __getitem__(self, name: str) -> Array:
        """Every sample of a variable, or `time` (rows,) [s]."""
        if name not in self._arrays:
            raise UsageError(f"the rollout has no {name!r}{nearest(name, self.variables)}")
        return self._arrays[name]

    def variable(self, name: str) -> schema.Variable:
        """Its line of the table."""
        return schema.TABLE[f"rollout/{name}"]


def rollout(
    robot: Robot,
    *,
    samples: int,
    controller: str = "none",
    controls: Controls | Sequence[Controls] | str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    force: bool = False,
    check: bool = True,
    **settings: Unpack[RolloutSettings],
) -> MemoryRollout | RolloutRecording:
    """Simulate many variations of a run from Python.

    Args:
        controls: inputs of all samples, or one for each: Controls, or a file as `artsim rollout --control` takes.
        output: HDF5 or .npz file to write; None keeps the results in memory (.npz: returned are the results too).
        threads: cores to compute on; by default all.
        check: raise StoppedError when samples stopped early; False returns them as they are.
        settings: as RolloutSettings lists them: start, spread, velocity_spread, randomise, and a run's (steps, dt, …).

    Raises UsageError, ModelError, StoppedError; with an output also what BatchWriter raises.
    """
    of_run: dict[str, Any] = {"record": ROLLOUT_RECORDED, **settings}
    own = {f.name: of_run.pop(f.name) for f in fields(RolloutConfig) if f.name in of_run}
    config = RolloutConfig(samples, **own)
    one = controls if isinstance(controls, Controls) else None
    plan, one, _ = prepared(robot, controller, one, of_run)
    if isinstance(controls, str | os.PathLike):
        given: Sequence[Controls] = plan_sample_controls(plan, controls, samples)
    else:
        given = [one] if one is not None else list(controls or ())  # type: ignore[arg-type]
    arrays: dict[str, Array] = {}
    first = threading.Lock()

    def keep(start: int, block: dict[str, Array]) -> None:
        with first:
            for name, values in block.items():
                if name not in arrays:
                    arrays[name] = np.zeros((samples, *values.shape[1:]), values.dtype)
        for name, values in block.items():
            arrays[name][start : start + len(values)] = values

    outcome = roll(
        plan,
        config,
        controls=check_rollout(plan, config, given),
        output=output,
        threads=threads or available_threads(),
        force=force,
        facts=provenance("artsim.rollout"),
        on_block=None if output is not None else keep,
    )
    if check:
        refuse_stopped(outcome)
    if output is not None:
        from artsim.io.batch_reader import open_output

        opened = open_output(output)
        assert isinstance(opened, RolloutRecording)
        return opened
    return MemoryRollout(plan, arrays, outcome)


def check_rollout(plan: Plan, config: RolloutConfig, controls: Sequence[Controls]) -> Sequence[Controls]:
    """The controls, when there are as many as can be used. Raises UsageError, also for what is not recorded."""
    for name in plan.config.record:
        if name not in ROLLOUT_RECORDED:
            raise UsageError(f"a rollout records {' and '.join(ROLLOUT_RECORDED)}, not {name!r}")
    if len(controls) > 1 and len(controls) != config.samples:
        raise UsageError(f"controls: there are {len(controls)} for {config.samples} samples")
    if any(not np.array_equal(one.start_step, controls[0].start_step) for one in controls):
        raise UsageError("controls: those of samples begin at different steps")
    return controls


def refuse_stopped(outcome: Outcome) -> None:
    """Raises StoppedError when samples stopped early."""
    if outcome.stopped:
        more = f" (and {outcome.stopped - 1} more)" if outcome.stopped > 1 else ""
        raise StoppedError(f"{outcome.messages[0]}{more}; `n_valid` says how far each came")
