"""Rollouts: N variations of one run, drawn from a seed, simulated in packs and threads, into one file or memory.

A sample depends only on the seed and its number, not on other samples. The bytes of a file therefore do not depend on
the number of threads, nor those of a sample on the number of samples.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from artsim.io import schema
from artsim.io.batch_file import BatchWriter, Column, Content
from artsim.io.comparison import Comparison
from artsim.io.control_files import for_every_step, read_sample_controls
from artsim.io.facts import first_sampled_fact
from artsim.io.interpolation import Interpolation
from artsim.io.labelled_rows import LabelledRows
from artsim.io.memory import memory_left
from artsim.io.output_words import variables_named
from artsim.io.progress import progress_bar, warm
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
    plan_controls,
    plan_of,
    prepared,
    provenance,
)
from artsim.io.sampling import DISTRIBUTIONS, Stream, open_samples
from artsim.io.settings import RolloutSettings
from artsim.io.starts import DEEP
from artsim.sim.articulation.model import following_dofs
from artsim.sim.foundation.apart import available_cores
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import MemoryShortageError, StoppedError, UsageError, nearest
from artsim.sim.foundation.records import WIDTH, Array
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.run_records import GAVE_WAY, NON_FINITE, RUNNING, TOO_FAST
from artsim.sim.runs.account import SUNK_FAR, bound_of_link, link_name
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.packable import kernels, reason_against_packs
from artsim.sim.runs.patterns import is_of_base
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED, Results, Roller, make_roller
from artsim.sim.runs.setting import MAX_STEPS
from artsim.sim.runs.varied import VARIED, Variations
from artsim.sim.runs.wrench_inputs import with_pushes

GIVEN = "given"
JOINTS = ""  # in RolloutConfig.spread: all joints of one dof that do not carry a base
STARTS = (GIVEN, *DISTRIBUTIONS)
_BLOCK_BYTES = 1 << 20  # results that one thread computes before it writes them
_STREAMS = ("spread", "velocity_spread", *VARIED)  # random streams of the seed, whose order must not change
_FIRST_STREAM = 64  # `artsim batch` uses the streams before
_TOLD = 5  # number of stopped samples that are named
_THREAD_BYTES = 16 << 20


@dataclass(frozen=True)
class RolloutConfig:
    """The number of samples and what is varied between them. Raises UsageError for invalid values."""

    samples: int
    start: str = GIVEN
    # largest offset of the joints' coordinates [rad, m]; or by coordinate or pattern (JOINTS: all joints) the largest
    # offset or the ends of its range
    spread: float | Mapping[str, float | Sequence[float]] = 0.0
    velocity_spread: float = 0.0  # [rad/s, m/s]
    randomise: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # range of factors by name in VARIED

    def offsets(self) -> dict[str, tuple[float, float]]:
        """The ends of initial offsets by coordinate or pattern. Raises UsageError for invalid ones."""
        given = self.spread if isinstance(self.spread, Mapping) else {JOINTS: self.spread}
        ends = {}
        for name, reach in given.items():
            low, high = (-reach, reach) if isinstance(reach, int | float) else (float(end) for end in reach)
            if not -math.inf < low <= high < math.inf:
                of = f" of {name!r}" if name else ""
                raise UsageError(f"spread{of} is {reach}, want a finite number from 0, or LOW:HIGH")
            ends[name] = (low, high)
        return ends

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= MAX_STEPS:
            raise UsageError(f"samples is {self.samples}, want 1 to {MAX_STEPS}")
        if self.start not in STARTS:
            raise UsageError(f"start {self.start!r} is not known{nearest(self.start, STARTS)}")
        if not 0.0 <= self.velocity_spread < math.inf:
            raise UsageError(f"velocity_spread is {self.velocity_spread}, want a finite number from 0")
        self.offsets()
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
    """The outcome of a rollout."""

    samples: int  # finished ones
    steps: int  # of all samples, without those after a sample's end
    seconds: float
    packed: bool  # simulated in packs of 8
    alone: Mapping[str, int]  # steps that samples took outside of packs, by cause
    stopped: int  # number of samples that stopped early
    inside: int  # number of samples that start with something more than 1 mm inside something
    sunk: int  # number of samples in which a hard contact got deeper by more than SUNK_FAR of a shape's thickness
    most_sunk: tuple[int, float, float, str, str]  # the sample that did most; share, depth [m] and two links
    deepest: tuple[int, float]  # the sample that is deepest inside at its start, and the depth [m]
    messages: tuple[str, ...]  # about the first of these
    complete: bool = True
    output: Path | None = None
    bytes: int = 0

    @property
    def steps_alone(self) -> int:
        """The number of steps that samples took outside of packs."""
        return sum(self.alone.values())


# ------------------------------------------------------------------ what is drawn


class Draws:
    """Draws the variations of a rollout by sample."""

    def __init__(self, plan: Plan, config: RolloutConfig, controls: Sequence[Controls]) -> None:
        """`controls`: one for all samples, or one per sample. Raises UsageError for a negative seed."""
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
        fast = _velocity_spread(plan, config)
        reach = {"spread": spread_ends(plan, config.offsets()), "velocity_spread": (-fast, fast)}
        ends = {name: (low, high) for name, (low, high) in reach.items() if low.any() or high.any()}
        for name, (low, high) in config.randomise.items():
            ends[name] = np.full(sizes[VARIED[name]], low), np.full(sizes[VARIED[name]], high)
        self.factors = {name: VARIED[name] for name in VARIED if name in ends}
        self._streams = {
            name: Stream(seed, _FIRST_STREAM + _STREAMS.index(name), False, *bounds) for name, bounds in ends.items()
        }

    def read(self, start: int, stop: int) -> Variations:
        """Draw samples start … stop."""
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


def spread_ends(plan: Plan, offsets: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
    """The ends of the offsets of each coordinate (nq,). Rotations of ball and free joints and followers have none, the
    places of bases only where they are named.

    Raises UsageError for a name that no coordinate with an offset has.
    """
    model, coords = plan.robot.model, plan.robot.coords
    followers = following_dofs(model)
    movable = {int(coord): dof for dof, coord in enumerate(model.dof_coord) if coord >= 0 and dof not in followers}
    low, high = np.zeros(plan.robot.nq), np.zeros(plan.robot.nq)
    for name, ends in offsets.items():
        if name == JOINTS:
            found = [coord for coord, dof in movable.items() if not is_of_base(model, dof)]
        else:
            found = [coord for coord in movable if fnmatchcase(coords[coord], name)]
            if not found:
                known = [coords[coord] for coord in movable]
                raise UsageError(f"spread: {name!r} is no coordinate that can be spread{nearest(name, known)}")
        low[found], high[found] = ends
    return low, high


def _velocity_spread(plan: Plan, config: RolloutConfig) -> Array:
    model, values = plan.robot.model, np.zeros(plan.robot.nv)
    values[model.independent_dof] = config.velocity_spread
    return values


def _within_limits(plan: Plan, moved: Array, given: Array) -> Array:
    """Clamp moved coordinates to their limits; those given beyond a limit keep their values."""
    model = plan.robot.model
    for dof, coord in enumerate(model.dof_coord):
        if coord >= 0:
            lower = np.minimum(model.lower[dof], given[:, coord])
            moved[:, coord] = np.clip(moved[:, coord], lower, np.maximum(model.upper[dof], given[:, coord]))
    return moved


def plan_sample_controls(plan: Plan, path: str | os.PathLike[str], samples: int) -> list[Controls]:
    """Read a control file: one Controls for all samples, or one per sample. Raises what plan_controls raises."""
    names = () if plan.equipped is None else plan.equipped.labels.controls
    held = {name: getattr(plan, name) for name in VALUES}
    interpolation = Interpolation(plan.config.interpolate, plan.config.steps)
    if variables_named(str(path)) is not None:
        return [plan_controls(plan, path)]
    controls = read_sample_controls(
        path, samples, plan.robot.dofs, plan.dt, actuators=names, interpolation=interpolation, **held
    )
    controls = [with_pushes(one, plan.pushed, plan.dt) for one in controls]
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
    """Simulate all samples, into a file if `output` is given, which is either complete or not written.

    Args:
        controls: one for all samples, or one per sample; empty: the inputs of the plan.
        facts: attributes of /provenance besides the configuration.
        on_block: called with the number of the first sample and the arrays of a block, from any thread.
        progress: called with the number of finished samples. stop: True ends the work.

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
    """The stream of samples: every thread takes block after block, simulates it and hands it on."""

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
        self._done = self._steps = self._stopped = self._inside = 0
        self._deepest = (0, 0.0)
        self._sunk, self._most_sunk = 0, (0, 0.0, 0.0, -1, -1)
        self._messages: list[tuple[int, str]] = []
        self._seconds = 0.0

    def run(
        self,
        hand_on: Callable[[int, dict[str, Array]], None] | None,
        progress: Callable[[int], None] | None,
        stop: Callable[[], bool] | None,
    ) -> bool:
        """Simulate all samples; False if `stop` ended it."""
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
        """The outcome of the rollout."""
        sample, share, depth, one, two = self._most_sunk
        return Outcome(
            samples=self._done,
            steps=self._steps,
            seconds=self._seconds,
            packed=not reason_against_packs(self.plan),
            alone=_totals(roller.alone for roller in self._rollers),
            stopped=self._stopped,
            inside=self._inside,
            sunk=self._sunk,
            most_sunk=(sample, share, depth, link_name(self.plan, one), link_name(self.plan, two)),
            deepest=self._deepest,
            messages=tuple(text for _, text in self._messages),
            complete=complete,
        )

    def _next(self) -> tuple[int, Variations] | None:
        """The number of the first sample of the next block, and its variations; None at the end."""
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
        """Hand on the results of a block, with NaN after the end of a stopped sample."""
        plan, count = self.plan, len(variations)
        block = self._arrays(results, variations)
        stopped = results.stopped[:count]
        depth = results.start_depth[:count]
        with self._lock:
            self._inside += int(np.count_nonzero(depth > DEEP))
            worst = int(depth.argmax())
            self._deepest = max(self._deepest, (start + worst, float(depth[worst])), key=lambda one: (one[1], -one[0]))
            sunk = results.sunk[:count]
            self._sunk += int(np.count_nonzero(sunk[:, 0] > SUNK_FAR))
            most = int(sunk[:, 0].argmax())
            share, depth_there, *links = sunk[most].tolist()
            here = (start + most, share, depth_there, int(links[0]), int(links[1]))
            self._most_sunk = max(self._most_sunk, here, key=lambda one: (one[1], -one[0]))
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
            **({} if self.plan.touching is None else _depths(results, count)),
            "n_valid": valid,
            "status": _status(results.reason[:count]),
        }


def _depths(results: Results, count: int) -> dict[str, Array]:
    """The depths of contacts at the start, and by how much hard contacts got deeper since."""
    return {"start_depth": results.start_depth[:count], "sunk": results.sunk[:count, 1]}


def _totals(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of counts by name, largest first."""
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return dict(total.most_common())


def _status(reason: Array) -> Array:
    """The status of each sample, as for a run."""
    early = np.where(reason == NON_FINITE, schema.NON_FINITE, schema.INTERRUPTED)
    return np.where(reason == RUNNING, schema.COMPLETE, early).astype(np.int8)


def _why(plan: Plan, results: Results, k: int) -> str:
    """When and why the k-th sample of a block stopped early."""
    step, dof, reason = int(results.stopped[k]), int(results.stopped_dof[k]), results.reason[k]
    when = f"stopped at t = {step * plan.dt:.6g} s (step {step})"
    if reason == TOO_FAST:
        return f"{when}: {bound_of_link(plan, dof)}"
    if reason == GAVE_WAY:
        return f"{when}: contacts gave way by half of a shape's thickness"
    what = f"joint {plan.robot.dofs[dof]!r}" if dof < plan.robot.nv else "a tendon"
    reached = f"{what} reached its limit, and rk4 has no rows for it"
    why = f"the velocity of {what} is not finite" if reason == NON_FINITE else reached
    return f"{when}: {why}"


def _sample_bytes(plan: Plan) -> int:
    rows = -(-plan.config.steps // plan.config.every)
    sizes = {"qpos": plan.robot.nq, "qvel": plan.robot.nv}
    return 8 * (rows * sum(sizes[name] for name in ROLLOUT_RECORDED if name in plan.config.record) + 64)


def _block_samples(plan: Plan, samples: int, threads: int) -> int:
    """Samples per block: whole packs of about _BLOCK_BYTES of results, with at least one block per thread."""
    packs = max(1, _BLOCK_BYTES // (WIDTH * _sample_bytes(plan)))
    return WIDTH * min(packs, -(-samples // (WIDTH * threads)))


def _check_memory(plan: Plan, samples: int, threads: int) -> None:
    """Raise MemoryShortageError before anything is simulated."""
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
    if plan.touching is not None:
        columns |= {name: Column((), (), "f8") for name in ("start_depth", "sunk")}
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
    """The inputs as they acted; inputs that all samples share are stored once."""
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
    """Verify a rollout as runs.verify does, by simulating its samples again; `step` is the sample."""
    with opened(Path(path), lambda where, file, _: RolloutRecording(where, file)) as stored:
        both = stored.config
        plan = plan_of(stored, load, both.get("run", {}))
        config = RolloutConfig(**both.get("rollout", {}))
        found = Comparison(stored, tolerance if made_elsewhere(stored) else 0.0)
        controls = check_rollout(plan, config, stored.controls)
        roll(plan, config, controls=controls, threads=threads, on_block=found.compare)
        facts = None if made_elsewhere(stored) else first_sampled_fact(stored, plan.robot.articulation)
        return found.first or facts


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

    def _extent(self) -> str:
        return f"{len(self._arrays['status'])} samples of {len(self._arrays['time'])} rows"

    def variable(self, name: str) -> schema.Variable:
        """The schema's entry of a variable."""
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
    progress: bool = False,
    **settings: Unpack[RolloutSettings],
) -> MemoryRollout | RolloutRecording:
    """Simulate many variations of a run from Python.

    Args:
        controls: inputs for all samples or one per sample: Controls, or a file as for `artsim rollout --control`.
        output: HDF5 or .npz file to write; None, and .npz, return the results in memory.
        threads: number of threads; default: one per core.
        check: raise StoppedError if samples stopped early; False returns them as they are.
        progress: show a bar on a terminal or in a notebook.
        settings: see RolloutSettings: start, spread, velocity_spread, randomise, and those of a run (steps, dt, …).

    Raises UsageError, ModelError, StoppedError; with an output also what BatchWriter raises.
    """
    of_run: dict[str, Any] = {"record": ROLLOUT_RECORDED, **settings}
    own = {f.name: of_run.pop(f.name) for f in fields(RolloutConfig) if f.name in of_run}
    config = RolloutConfig(samples, **own)
    one = controls if isinstance(controls, Controls) else None
    plan, one, _ = prepared(robot, controller, one, of_run, controls)
    warm(kernels(plan))
    if isinstance(controls, str | os.PathLike):
        given: Sequence[Controls] = plan_sample_controls(plan, controls, samples)
    else:
        interpolation = Interpolation(plan.config.interpolate, plan.config.steps)
        each: Sequence[Controls] = () if controls is None or one is not None else controls  # type: ignore[assignment]
        given = [one] if one is not None else [for_every_step(own, plan.dt, interpolation) for own in each]
        given = given if one is not None else [with_pushes(own, plan.pushed, plan.dt) for own in given]
    arrays: dict[str, Array] = {}
    first = threading.Lock()

    def keep(start: int, block: dict[str, Array]) -> None:
        with first:
            for name, values in block.items():
                if name not in arrays:
                    arrays[name] = np.zeros((samples, *values.shape[1:]), values.dtype)
        for name, values in block.items():
            arrays[name][start : start + len(values)] = values

    with progress_bar("simulating", samples, unit="samples", show=progress) as advance:
        outcome = roll(
            plan,
            config,
            controls=check_rollout(plan, config, given),
            output=output,
            threads=threads or available_cores(),
            force=force,
            facts=provenance("artsim.rollout"),
            on_block=None if output is not None else keep,
            progress=advance,
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
    """Check the number of controls and return them. Raises UsageError, also for variables that rollouts lack."""
    for name in plan.config.record:
        if name not in ROLLOUT_RECORDED:
            raise UsageError(f"a rollout records {' and '.join(ROLLOUT_RECORDED)}, not {name!r}")
    if len(controls) > 1 and len(controls) != config.samples:
        raise UsageError(f"controls: there are {len(controls)} for {config.samples} samples")
    if any(not np.array_equal(one.start_step, controls[0].start_step) for one in controls):
        raise UsageError("controls: those of samples begin at different steps")
    return controls


def refuse_stopped(outcome: Outcome) -> None:
    """Raise StoppedError if samples stopped early."""
    if outcome.stopped:
        more = f" (and {outcome.stopped - 1} more)" if outcome.stopped > 1 else ""
        raise StoppedError(f"{outcome.messages[0]}{more}; `n_valid` says how far each came")
