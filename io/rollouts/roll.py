"""Rollouts: N variations of one run, drawn from a seed, simulated in packs and threads, into one file or memory.

A sample depends only on the seed and its number, not on other samples. The bytes of a file therefore do not depend on
the number of threads, nor those of a sample on the number of samples.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from artsim.io.format import schema
from artsim.io.output_file.batch_file import BatchWriter, Content, check_name
from artsim.io.output_file.claim import check_output
from artsim.io.rollouts.content import content_of, has_held, left_out
from artsim.io.rollouts.derived_rows import RolloutDerivatives
from artsim.io.rollouts.draws import Draws, RolloutConfig
from artsim.io.rollouts.driven import Drive, DrivenRoller, criteria_of, make_driven_roller
from artsim.io.rollouts.given import COLUMNS, NOTHING, Given
from artsim.io.rollouts.tally import NAMED, UNKNOWN, Tally, efforts_of
from artsim.io.runs.named import named_contacts
from artsim.io.runs.prepare import held_controls
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import MemoryShortageError, UsageError
from artsim.sim.foundation.memory import memory_left
from artsim.sim.foundation.records import WIDTH, Array
from artsim.sim.run_data.run_records import (
    CROWDED,
    GAVE_WAY,
    HELD_A,
    HELD_DEPTH,
    HELD_STEPS,
    NON_FINITE,
    RUNNING,
    TOO_FAST,
)
from artsim.sim.runs.account import bound_of_link, held_by_name, link_name
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.packable import reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import (
    Results,
    Roller,
    keep_roller,
    make_roller,
    records_contacts,
    row_count,
    take_roller,
)
from artsim.sim.runs.varied import Variations, shape_of

_BLOCK_BYTES = 1 << 20  # results that one thread computes before it writes them
_THREAD_BYTES = 16 << 20
_CONTACTS_OF_ROW = 8  # guessed
Hand = Callable[[int, dict[str, Array]], None]
"""hand_on(number of the first sample, arrays of a block), from any thread."""


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
    messages: tuple[str, ...]  # about the first of those that stopped early
    tally: Tally
    # the time for which each dof's motor gave its largest force in recorded rows [s], of all samples together, and the
    # number of samples in which it did, the longest first
    at_effort: dict[str, tuple[float, int]]
    derivatives: RolloutDerivatives | None = None  # of the steps of samples, if they were asked for
    complete: bool = True
    output: Path | None = None  # None: nothing is written
    bytes: int = 0
    kept: int = 0  # number of samples that existed before
    notes: tuple[str, ...] = ()  # about shards
    unfit: str = ""  # why the index of shards that are all there is not written

    @classmethod
    def of(cls, plan: Plan, tally: Tally, samples: int, seconds: float, **more: Any) -> Outcome:
        """The outcome that a tally of this number of samples tells."""
        sample, share, depth, *links = tally.most_sunk
        one, two = (_link_told(plan, link) for link in links)
        return cls(
            samples=samples,
            steps=tally.steps,
            seconds=seconds,
            packed=not reason_against_packs(plan),
            solved_alone=tally.solved_alone,
            unsolved=tally.unsolved,
            most_unsolved=tally.most_unsolved,
            stopped=tally.stopped,
            inside=tally.inside,
            sunk=tally.sunk,
            most_sunk=(sample, share, depth, one, two),
            held_inside=tally.held,
            most_held_inside=_held_told(plan, *tally.most_held),
            deepest=tally.deepest,
            messages=tuple(text for _, text in tally.stops),
            tally=tally,
            at_effort={
                plan.robot.labels.dofs[dof]: (rows * plan.dt * plan.config.every, count)
                for dof, rows, count in sorted(tally.at_effort, key=lambda each: -each[1])
            },
            **more,
        )


def _link_told(plan: Plan, link: int) -> str:
    return "?" if link == UNKNOWN else link_name(plan, link)


def _held_told(plan: Plan, sample: int, held: tuple[float, ...]) -> tuple[int, int, float, str, str, str] | None:
    """The sample, steps, depth [m], links and loop of contacts that hard loops held inside; None without any."""
    if held[HELD_STEPS] and held[HELD_A] == UNKNOWN:
        return sample, int(held[HELD_STEPS]), held[HELD_DEPTH], "?", "?", "?"
    found = held_by_name(plan, np.array(held))
    return None if found is None else (sample, *found)


def roll(
    plan: Plan,
    config: RolloutConfig,
    *,
    controls: Sequence[Controls] = (),
    given: Given = NOTHING,
    samples: range | None = None,
    output: str | os.PathLike[str] | None = None,
    threads: int = 1,
    force: bool = False,
    strict: bool = False,
    drive: Drive | None = None,
    keep: bool = True,
    content: Callable[[Sequence[Controls]], Content] | None = None,
    facts: Mapping[str, str | int | float] | None = None,
    on_block: Hand | None = None,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Outcome:
    """Simulate all samples, into a file if `output` is given. Of a rollout that is stopped, or interrupted by
    KeyboardInterrupt, the file holds the samples that were finished; those that were not have status 0.

    Args:
        controls: one for all of the samples, or one for each of them; empty: the inputs of the plan.
        given: starts and properties of samples that are not drawn; config.given names them.
        samples: the numbers of those to simulate; None: all.
        strict: whether a sample that stops early ends the work.
        drive: what is done between steps; None: what the configuration asks for.
        keep: whether the file of an interrupted rollout stays, with the samples that are done.
        content: gives that of the file, by the inputs as they acted; None: that of these samples.
        facts: attributes of /provenance besides the configuration.
        on_block: called with the number of the first sample and the arrays of a block, from any thread.
        progress: called with the number of finished samples. stop: True ends the work.

    Raises UsageError, MemoryShortageError, what BatchWriter raises.
    """
    controls = controls or [held_controls(plan)]
    samples = range(config.samples) if samples is None else samples
    if plan.config.is_python:
        raise UsageError("a rollout takes built-in controllers only; inputs over time are for --control")
    stream = Stream(plan, config, controls, samples, threads, given, strict=strict, drive=drive)
    if output is None:
        complete = stream.run(on_block, progress, stop)
        if complete:
            stream.keep_rollers()
        return stream.outcome(complete, derivatives=stream.derived)
    driven = drive is not None and drive.policy is not None
    if content is None:

        def content(acted: Sequence[Controls]) -> Content:
            return content_of(plan, config, stream.draws, acted, samples, facts or {}, acted=driven)

    if driven:
        return _write_driven(stream, Path(output), content, force=force, progress=progress, stop=stop)
    return _write(stream, Path(output), content(controls), force=force, keep=keep, progress=progress, stop=stop)


def _write(
    stream: Stream,
    output: Path,
    layout: Content,
    *,
    force: bool,
    keep: bool,
    progress: Callable[[int], None] | None,
    stop: Callable[[], bool] | None,
) -> Outcome:
    """Simulate all samples and write them block by block."""
    with BatchWriter(output, layout, force=force) as writer:

        def commit() -> bool:
            """Finish the file, if it is to be kept; samples that are not done are marked."""
            missing = stream.missing()
            if missing and not (keep and stream.done):
                return False
            for first, last in missing:
                writer.write(first, last - first, left_out(layout, last - first))
            writer.commit()
            return True

        def write(start: int, block: dict[str, Array]) -> None:
            writer.write(start - stream.samples.start, len(block["status"]), block)

        try:
            complete = stream.run(write, progress, stop)
        except KeyboardInterrupt:
            commit()
            raise
        written = {"output": writer.path, "bytes": writer.bytes} if commit() else {}
        if complete:
            stream.keep_rollers()
        return stream.outcome(complete, **written)


def _write_driven(
    stream: Stream,
    output: Path,
    content: Callable[[Sequence[Controls]], Content],
    *,
    force: bool,
    progress: Callable[[int], None] | None,
    stop: Callable[[], bool] | None,
) -> Outcome:
    """Simulate all samples by a policy, then write them with the inputs that it gave, by which they are simulated again
    without it. Nothing is written if it is stopped."""
    check_name(output)
    check_output(output, force=force)
    found: list[dict[str, Array]] = []
    if not stream.run(lambda _, block: found.append(block), progress, stop):
        return stream.outcome(False)
    with BatchWriter(output, content(stream.acted), force=force) as writer:
        for block in found:  # one, or none of a shard without samples
            writer.write(0, len(block["status"]), block)
        writer.commit()
        return stream.outcome(True, output=writer.path, bytes=writer.bytes)


class Stream:
    """The stream of samples: every thread takes block after block, simulates it and hands it on."""

    def __init__(
        self,
        plan: Plan,
        config: RolloutConfig,
        controls: Sequence[Controls],
        samples: range,
        threads: int,
        given: Given = NOTHING,
        *,
        strict: bool = False,
        drive: Drive | None = None,
    ) -> None:
        """`controls`: one for all of the samples, or one for each of them."""
        self.plan, self.config, self._strict = plan, config, strict
        self.draws = Draws(plan, config, given)
        self._controls, self.samples = controls, samples
        self._drive = drive or Drive(config.until, config.cost)
        crew = threads if self._drive.in_fleet else 1  # a policy is asked for all samples at once
        threads //= crew
        self._block = _block_samples(plan, len(samples), threads)
        if self._drive.in_fleet:
            self._block = max(WIDTH, -(-len(samples) // WIDTH) * WIDTH)
        blocks = -(-len(samples) // self._block)
        self._threads = max(1, min(threads, blocks))
        self._starts = iter(samples[:: self._block])
        self._lock, self._ended = threading.Lock(), False
        self._task = (self._drive, crew) if self._drive else None
        self._criteria = criteria_of(plan, self._drive)
        kept = (take_roller(plan, controls[0], self._block, self._task) for _ in range(self._threads))
        self._rollers = [roller for roller in kept if roller is not None]
        if missing := self._threads - len(self._rollers):
            _check_memory(plan, self._block, missing)
            self._rollers += [self._roller(controls[0], crew) for _ in range(missing)]
        self.done = 0  # number of samples
        self._taken: list[int] = []  # the first samples of finished blocks
        self._tally = Tally()
        self._seconds = 0.0

    def _roller(self, controls: Controls, threads: int) -> Roller:
        """A new roller; `threads`: those of its own."""
        results = Results.of(self.plan, self._block)
        if self._drive:
            return make_driven_roller(self.plan, controls, results, self._drive, self._criteria, threads)
        return make_roller(self.plan, controls, results)

    def run(
        self,
        hand_on: Hand | None,
        progress: Callable[[int], None] | None,
        stop: Callable[[], bool] | None,
    ) -> bool:
        """Simulate all samples; False if `stop` ended it, or a sample that stopped where these are refused."""

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
        _in_threads(work, self._rollers)
        self._seconds = time.perf_counter() - began
        return not self._ended

    def keep_rollers(self) -> None:
        """Keep the rollers for further rollouts of the plan."""
        for roller in self._rollers:
            keep_roller(self.plan, roller)

    @property
    def acted(self) -> Sequence[Controls]:
        """The inputs of each sample as they acted, which a policy gave; without samples those of the plan."""
        (roller,) = self._rollers
        assert isinstance(roller, DrivenRoller)
        return roller.acted or [held_controls(self.plan)]

    @property
    def derived(self) -> RolloutDerivatives | None:
        """The derivatives of the samples' steps, if they were asked for."""
        found = [roller.derived for roller in self._rollers if isinstance(roller, DrivenRoller)]
        return found[0] if found else None

    def missing(self) -> list[tuple[int, int]]:
        """The blocks of samples that are not done, counted from the first of the stream: from, and to before."""
        first, count = self.samples.start, len(self.samples)
        return [
            (start - first, min(start - first + self._block, count))
            for start in sorted({*self.samples[:: self._block]} - {*self._taken})
        ]

    @property
    def tally(self) -> Tally:
        """What is told of the samples that are done."""
        return self._tally._replace(solved_alone=sum(roller.solved_alone for roller in self._rollers))

    def outcome(self, complete: bool, **more: Any) -> Outcome:
        """The outcome of the rollout."""
        return Outcome.of(self.plan, self.tally, self.done, self._seconds, complete=complete, **more)

    def _next(self) -> tuple[int, Variations] | None:
        """The number of the first sample of the next block, and its variations; None at the end."""
        with self._lock:
            start = next(self._starts, None)
            if start is None:
                return None
            stop, each = min(start + self._block, self.samples.stop), self._controls
            own = each[start - self.samples.start : stop - self.samples.start] if len(each) > 1 else ()
            return start, self.draws.read(start, stop, own)

    def _asked(self, stop: Callable[[], bool] | None) -> bool:
        if stop is not None and stop():
            self._ended = True
        return self._ended

    def _take(
        self,
        results: Results,
        start: int,
        variations: Variations,
        hand_on: Hand | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        """Hand on the results of a block, with NaN or -1 after the end of a stopped sample."""
        plan, count = self.plan, len(variations)
        block = self._arrays(results, start, variations)
        tally = Tally.of_block(start, results.of_samples(count), plan.config.steps)
        tally = tally._replace(at_effort=efforts_of(plan, block))
        early = np.flatnonzero(results.stopped[:count] >= 0)[:NAMED]
        stops = tuple((start + int(k), f"sample {start + k} {_why(plan, results, int(k))}") for k in early)
        if hand_on is not None:
            hand_on(start, block)
        with self._lock:
            contacts = len(block.get("contact/sample", ()))
            self._tally = Tally.together([self._tally, tally._replace(stops=stops, contacts=contacts)])
            self._taken.append(start)
            self.done += count
            if stops and self._strict:
                self._ended = True
            if progress is not None:
                progress(self.done)

    def _arrays(self, results: Results, start: int, variations: Variations) -> dict[str, Array]:
        """The variables of a block by name."""
        count, plan = len(variations), self.plan
        every, stopped, ended = plan.config.every, results.stopped[:count], results.ended[:count]
        early = np.maximum(stopped, ended)
        valid = np.where(early >= 0, -(-early // every), row_count(plan))
        types = {name: schema.TABLE[f"rollout/{name}"].dtype for name in results.rows}
        for k in np.flatnonzero(valid < row_count(plan)):
            for name, values in results.rows.items():
                values[k, valid[k] :] = np.nan if types[name] == "f8" else -1
        rows = {name: values[:count].astype(types[name], copy=False) for name, values in results.rows.items()}
        return {
            **rows,
            **(self._contacts(results, start, valid) if records_contacts(plan) else {}),
            "final_qpos": results.final_qpos[:count],
            "final_qvel": results.final_qvel[:count],
            **{f"start_{name}": values for name, values in self.draws.given_starts(start, start + count).items()},
            **{COLUMNS[n]: x[:, 0] if not shape_of(plan, n) else x for n, x in variations.factors.items()},
            **_depths(plan, results, count),
            **({"cost": results.cost[:count]} if self._drive.cost else {}),
            "unsolved_steps": results.unsolved[:count],
            "worst_residual": results.residual[:count],
            "n_valid": valid,
            "status": np.where(ended >= 0, schema.ENDED, _status(results.reason[:count])).astype(np.int8),
        }

    def _contacts(self, results: Results, start: int, valid: Array) -> dict[str, Array]:
        """The contacts of the valid rows of a block, sample after sample, by the paths of their datasets."""
        ends = np.zeros(len(results.reason), np.int64)
        ends[: len(valid)] = valid * self.plan.config.every
        samples, contacts = results.contacts.in_order(ends)
        named = {"sample": start + samples, **named_contacts(self.plan, {"contact_count": samples, **contacts})}
        return {f"contact/{name}": named[name] for name in schema.SAMPLE_CONTACT_TABLE}


def _in_threads(work: Callable[[Roller], None], rollers: Sequence[Roller]) -> None:
    """Do the work of every roller in a thread of its own, of which this is one."""
    if len(rollers) == 1:
        work(rollers[0])
        return
    from concurrent.futures import ThreadPoolExecutor  # imports logging

    with ThreadPoolExecutor(len(rollers) - 1) as pool:
        workers = [pool.submit(work, roller) for roller in rollers[1:]]
        work(rollers[0])
    for worker in workers:
        worker.result()


def _depths(plan: Plan, results: Results, count: int) -> dict[str, Array]:
    """The depths of contacts at the start, by how much hard contacts got deeper since, and those that loops held."""
    if plan.touching is None:
        return {}
    sunk, held = results.sunk[:count], results.held[:count]
    found = {"start_depth": results.start_depth[:count], "sunk": sunk[:, 1], "sunk_share": sunk[:, 0]}
    if has_held(plan):
        found |= {"held_steps": held[:, HELD_STEPS].astype(np.int64), "held_depth": held[:, HELD_DEPTH]}
    return found


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
    """Bytes of a sample's results; those of its contacts are guessed."""
    contacts = _CONTACTS_OF_ROW * schema.RAGGED["contact"].bytes if records_contacts(plan) else 0
    return row_count(plan) * (8 * sum(map(math.prod, plan.row_shapes.values())) + contacts) + 512


def _block_samples(plan: Plan, samples: int, threads: int) -> int:
    """Samples per block: whole packs of about _BLOCK_BYTES of results, with at least one block per thread."""
    packs = max(1, _BLOCK_BYTES // (WIDTH * _sample_bytes(plan)))
    return WIDTH * max(1, min(packs, -(-samples // (WIDTH * threads))))


def _check_memory(plan: Plan, samples: int, threads: int) -> None:
    """Raise MemoryShortageError before the arrays of threads are made, and anything is simulated."""
    need, (left, what) = threads * (samples * _sample_bytes(plan) + _THREAD_BYTES), memory_left()
    if need > left:
        told = f"{threads} blocks of {samples} samples need {need / 1e6:.0f} MB, {what} {left / 1e6:.0f} MB"
        raise MemoryShortageError(f"not enough memory: {told}; try a larger --every or fewer --threads")
