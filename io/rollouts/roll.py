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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from artsim.io.format import schema
from artsim.io.output_file.batch_file import BatchWriter, Column, Content
from artsim.io.output_file.model_record import model_record
from artsim.io.rollouts.draws import Draws, RolloutConfig
from artsim.io.runs.named import run_labels
from artsim.io.runs.prepare import held_controls
from artsim.io.runs.provenance import overlap_facts
from artsim.io.runs.starts import DEEP
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import MemoryShortageError, UsageError
from artsim.sim.foundation.memory import memory_left
from artsim.sim.foundation.records import WIDTH, Array
from artsim.sim.run_data.run_records import CROWDED, GAVE_WAY, HELD_DEPTH, HELD_STEPS, NON_FINITE, RUNNING, TOO_FAST
from artsim.sim.runs.account import SUNK_FAR, bound_of_link, held_by_name, link_name
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.packable import reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import Results, Roller, keep_roller, make_roller, row_count, row_shapes, take_roller
from artsim.sim.runs.varied import VARIED, Variations

_BLOCK_BYTES = 1 << 20  # results that one thread computes before it writes them
_TOLD = 5  # number of stopped samples that are named
_THREAD_BYTES = 16 << 20


@dataclass(frozen=True)
class Outcome:
    """The outcome of a rollout."""

    samples: int  # finished ones
    steps: int  # of all samples, without those after a sample's end
    seconds: float
    packed: bool  # simulated in packs of 8
    solved_alone: int  # steps of samples whose rows the solver of a single robot solved
    unsolved: int  # number of samples in which the solver left rows unsolved
    most_unsolved: tuple[int, float, int]  # the sample with the largest residual; residual [rad/s or m/s], steps
    stopped: int  # number of samples that stopped early
    inside: int  # number of samples that start with something more than 1 mm inside something
    sunk: int  # number of samples in which a hard contact got deeper by more than SUNK_FAR of a shape's thickness
    most_sunk: tuple[int, float, float, str, str]  # the sample that did most; share, depth [m] and two links
    held_inside: int  # number of samples in which hard loops held contacts inside, which were then left out
    # the sample with the deepest of these contacts; steps with any there, depth [m], two links and the loop; None if
    # there are none
    most_held_inside: tuple[int, int, float, str, str, str] | None
    deepest: tuple[int, float]  # the sample that is deepest inside at its start, and the depth [m]
    messages: tuple[str, ...]  # about the first of these
    complete: bool = True
    output: Path | None = None
    bytes: int = 0


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
        outcome = stream.outcome(complete)
        if complete:
            stream.keep_rollers()
        return outcome
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
        self._starts = iter(range(0, config.samples, self._block))
        self._lock, self._ended = threading.Lock(), False
        kept = (take_roller(plan, controls[0], self._block) for _ in range(self._threads))
        self._rollers = [roller for roller in kept if roller is not None]
        if missing := self._threads - len(self._rollers):
            _check_memory(plan, self._block, missing)
            self._rollers += [make_roller(plan, controls[0], Results.of(plan, self._block)) for _ in range(missing)]
        self._done = self._steps = self._stopped = self._inside = 0
        self._deepest = (0, 0.0)
        self._sunk, self._most_sunk = 0, (0, 0.0, 0.0, -1, -1)
        self._unsolved, self._most_unsolved = 0, (0, 0.0, 0)
        self._held, self._most_held = 0, (0, np.zeros(5))
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
        with ThreadPoolExecutor(self._threads) as pool:  # which makes threads as they are asked for; this is one, too
            workers = [pool.submit(work, roller) for roller in self._rollers[1:]]
            work(self._rollers[0])
        for worker in workers:
            worker.result()
        self._seconds = time.perf_counter() - began
        return not self._ended

    def keep_rollers(self) -> None:
        """Keep the rollers for further rollouts of the plan."""
        for roller in self._rollers:
            keep_roller(self.plan, roller)

    def outcome(self, complete: bool) -> Outcome:
        """The outcome of the rollout."""
        sample, share, depth, one, two = self._most_sunk
        held = held_by_name(self.plan, self._most_held[1])
        return Outcome(
            samples=self._done,
            steps=self._steps,
            seconds=self._seconds,
            packed=not reason_against_packs(self.plan),
            solved_alone=sum(roller.solved_alone for roller in self._rollers),
            unsolved=self._unsolved,
            most_unsolved=self._most_unsolved,
            stopped=self._stopped,
            inside=self._inside,
            sunk=self._sunk,
            most_sunk=(sample, share, depth, link_name(self.plan, one), link_name(self.plan, two)),
            held_inside=self._held,
            most_held_inside=None if held is None else (self._most_held[0], *held),
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
        """Hand on the results of a block, with NaN or -1 after the end of a stopped sample."""
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
            held = results.held[:count]
            self._held += int(np.count_nonzero(held[:, HELD_STEPS]))
            most = int(held[:, HELD_DEPTH].argmax())
            self._most_held = max(
                self._most_held, (start + most, held[most].copy()), key=lambda one: (one[1][HELD_DEPTH], -one[0])
            )
            unsolved, residual = results.unsolved[:count], results.residual[:count]
            self._unsolved += int(np.count_nonzero(unsolved))
            most = int(residual.argmax())
            left = (start + most, float(residual[most]), int(unsolved[most]))
            self._most_unsolved = max(self._most_unsolved, left, key=lambda one: (one[1], -one[0]))
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
        valid = np.where(stopped < 0, row_count(self.plan), -(-stopped // every))
        types = {name: schema.TABLE[f"rollout/{name}"].dtype for name in results.rows}
        for k in np.flatnonzero(stopped >= 0):
            for name, values in results.rows.items():
                values[k, valid[k] :] = np.nan if types[name] == "f8" else -1
        rows = {name: values[:count].astype(types[name], copy=False) for name, values in results.rows.items()}
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


def _status(reason: Array) -> Array:
    """The status of each sample, as for a run."""
    early = np.where(reason == NON_FINITE, schema.NON_FINITE, schema.INTERRUPTED)
    return np.where(reason == RUNNING, schema.COMPLETE, early).astype(np.int8)


def _why(plan: Plan, results: Results, k: int) -> str:
    """The time and the reason of the early stop of a block's k-th sample."""
    return why_stopped(plan, int(results.stopped[k]), int(results.reason[k]), int(results.stopped_dof[k]))


def why_stopped(plan: Plan, step: int, reason: int, dof: int) -> str:
    """The time and the reason of an early stop at this step, by a reason of Step.counters[STOP_REASON] and its dof."""
    when = f"stopped at t = {step * plan.dt:.6g} s (step {step})"
    if reason == TOO_FAST:
        return f"{when}: {bound_of_link(plan, dof)}"
    if reason == CROWDED:
        return f"{when}: more than {plan.config.max_contacts} contacts; see --max-contacts"
    if reason == GAVE_WAY:
        return f"{when}: contacts gave way by half of a shape's thickness"
    what = f"joint {plan.robot.dofs[dof]!r}" if dof < plan.robot.nv else "a tendon"
    reached = f"{what} reached its limit, and rk4 has no rows for it"
    why = f"the velocity of {what} is not finite" if reason == NON_FINITE else reached
    return f"{when}: {why}"


def _sample_bytes(plan: Plan) -> int:
    return 8 * (row_count(plan) * sum(map(math.prod, row_shapes(plan).values())) + 64)


def _block_samples(plan: Plan, samples: int, threads: int) -> int:
    """Samples per block: whole packs of about _BLOCK_BYTES of results, with at least one block per thread."""
    packs = max(1, _BLOCK_BYTES // (WIDTH * _sample_bytes(plan)))
    return WIDTH * min(packs, -(-samples // (WIDTH * threads)))


def _check_memory(plan: Plan, samples: int, threads: int) -> None:
    """Raise MemoryShortageError before the arrays of threads are made, and anything is simulated."""
    need, (left, what) = threads * (samples * _sample_bytes(plan) + _THREAD_BYTES), memory_left()
    if need > left:
        told = f"{threads} blocks of {samples} samples need {need / 1e6:.0f} MB, {what} {left / 1e6:.0f} MB"
        raise MemoryShortageError(f"not enough memory: {told}; try a larger --every or fewer --threads")


def _content(
    plan: Plan,
    config: RolloutConfig,
    draws: Draws,
    controls: Sequence[Controls],
    facts: Mapping[str, str | int | float],
) -> Content:
    robot, rows = plan.robot, row_count(plan)
    columns = {}
    for name, shape in row_shapes(plan).items():
        variable = schema.TABLE[f"rollout/{name}"]
        columns[name] = Column(variable.dims[1:], (rows, *shape), variable.dtype)
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
        labels=run_labels(plan),
        model=model_record(robot.articulation, plan.kept),
        facts=told,
        provenance={**facts, "config": json.dumps(both, sort_keys=True), **told, **overlap_facts(plan)},
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
