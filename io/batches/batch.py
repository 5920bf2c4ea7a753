"""Quantities computed for many configurations, from a source of rows into a file, by blocks in constant memory.

While some blocks are computed, another one is read or written. Rows do not depend on each other, so their bytes depend
neither on the block size nor on the number of threads or files.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from artsim import __version__
from artsim.io.batches.configuration import OPTIONS, BatchConfig, for_workers
from artsim.io.batches.csv_output import CsvWriter, is_csv
from artsim.io.format import schema
from artsim.io.inputs.configurations import Source, open_input
from artsim.io.inputs.grid import Grid
from artsim.io.inputs.limit_check import BeyondLimits, LimitCheck
from artsim.io.inputs.sampling import BLOCK as SAMPLING_BLOCK
from artsim.io.inputs.sampling import open_samples
from artsim.io.output_file.batch_file import BatchWriter, Column, Content
from artsim.io.output_file.model_record import model_record
from artsim.io.readers.batch_recording import BatchRecording
from artsim.io.runs.named import file_labels
from artsim.io.runs.progress import warm
from artsim.io.shards.job import Outcome, canonical, digest_of_model
from artsim.sim.articulation.description import Articulation
from artsim.sim.equipment.arrays import EquipmentLabels
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import MemoryShortageError, UsageError
from artsim.sim.foundation.memory import memory_left
from artsim.sim.foundation.rotations import Real
from artsim.sim.quantities.catalogue import needed_inputs, resolve
from artsim.sim.quantities.evaluation import Evaluation
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.patterns import by_name, matching, matching_links, names_of
from artsim.sim.runs.start import initial_qpos

BLOCK_BYTES = 1 << 20  # of a block's results: fits in a core's cache and is worth a system call
MIN_ROWS = 64
_BLOCK_ROWS = 1 << 16
_TOLD_ROWS = 5  # number of failed rows that are named
_THREAD_BYTES = 16 << 20  # address space of a thread: stack and scratch
Write = Callable[[int, int, Mapping[str, Any]], None]
"""write(first row counted from the first of all, rows, arrays of at least so many), from any thread."""


@dataclass(frozen=True)
class Job:
    """A configuration with its robot and its open source of rows, which the context manager closes."""

    config: BatchConfig
    robot: Robot
    source: Source

    recording = BatchRecording
    told = BeyondLimits
    successes = (0,)
    options = OPTIONS

    @property
    def rows(self) -> int:
        """Number of configurations."""
        return self.source.rows

    @property
    def quantities(self) -> tuple[str, ...]:
        """The quantities to compute, groups expanded."""
        return resolve(self.config.quantities)

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The links of link quantities, patterns expanded. Raises UsageError for a name or pattern of none."""
        return links_of(self.robot, self.config)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The evaluation that computes blocks of rows, with one thread per block."""
        config = self.config
        return self.robot.evaluation(
            config.quantities,
            reduced=config.reduced,
            at=config.at,
            links=self.links,
            packed=config.packed,
            wrench="wrench" in self.source.inputs,
        )

    def limit_check(self) -> LimitCheck | None:
        """An empty account of given rows beyond joint limits; None if they are drawn, within the limits."""
        return None if self.config.samples is not None else LimitCheck(self.robot.model, self.robot.labels)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Everything that determines the bytes of the rows, as plain data. It hashes the whole input file."""
        config, articulation, evaluation = self.config, self.robot.articulation, self.evaluation
        return {
            "artsim": __version__,
            "model": digest_of_model(articulation.text),
            "base": articulation.base,
            **{name: bool(config.load.get(name, False)) for name in ("balance_inertia", "ignore_unsupported")},
            "density": config.load.get("density"),
            "gravity": self.robot.model.gravity.tolist(),
            "inputs": list(evaluation.inputs),
            "quantities": list(evaluation.quantities),
            "links": list(evaluation.links),
            **{name: getattr(config, name) for name in ("reduced", "at", "packed", "float32")},
            "source": self.source.identity,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the facts; jobs with equal digests have equal rows."""
        return sha256(canonical(self.facts).encode()).hexdigest()

    def for_workers(self) -> str:
        """The configuration for other processes. Raises UsageError if it reads a stream."""
        return for_workers(self.config).to_json()

    def index_content(self, provenance: Mapping[str, str | int | float], shards: Sequence[Path]) -> Content:
        """See Job."""
        return content_of(self, 0, self.rows, provenance, signed=True)

    def compute(self, first: int, last: int, output: Path, **options: Any) -> Outcome:
        """Compute rows first … last into one complete file, or none, with options of compute_rows."""
        return compute_rows(self, first, last, output, **options)

    def told_of(self, stored: BatchRecording) -> BeyondLimits:
        """The given rows of a finished file that are beyond joint limits."""
        check = self.limit_check()
        if check is None or "qpos" not in stored:
            return BeyondLimits()
        for start in range(0, stored.rows, _BLOCK_ROWS):
            check.see(stored.first_row + start, stored.read("qpos", start, min(start + _BLOCK_ROWS, stored.rows)))
        return check.found

    def warm(self) -> None:
        """Load the machine code that computes rows."""
        warm(self.evaluation.entries)

    def close(self) -> None:
        """Close the source."""
        self.source.close()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def prepare(articulation: Articulation, config: BatchConfig) -> Job:
    """Compile the robot and open the source of rows.

    Raises UsageError, ModelError, and the errors of open_input and open_samples.
    """
    robot = Robot.of(articulation, gravity=config.gravity)
    needed = needed_inputs(resolve(config.quantities))
    links = links_of(robot, config)
    if config.input is not None:
        return Job(config, robot, open_input(config.input, robot.labels, needed, links))
    if config.grid:
        return Job(config, robot, Grid(robot.model, robot.labels, config.grid, _start(robot, config), needed))
    scales = {name: getattr(config, name) for name in ("velocity", "acceleration", "torque", "wrench")}
    assert config.samples is not None
    source = open_samples(
        robot.model,
        robot.labels,
        needed,
        links,
        rows=config.samples,
        seed=config.seed,
        distribution=config.distribution,
        **scales,
    )
    return Job(config, robot, source)


def links_of(robot: Robot, config: BatchConfig) -> tuple[str, ...]:
    """The links that a configuration names, patterns expanded."""
    return robot.links if config.links is None else matching_links(config.links, robot.links)


def _start(robot: Robot, config: BatchConfig) -> Real:
    """The coordinates (nq,) that a grid does not change."""
    names = names_of(robot.articulation, robot.model, robot.labels, EquipmentLabels())["coord"]
    q0 = by_name("q0", config.q0, names)
    for name in config.degrees:
        found = [name] if name in names.known else matching(name, names)
        slides = [coord for coord in found if names.units[coord] != "rad"]
        if slides:
            raise UsageError(f"{slides[0]} is in {names.units[slides[0]]}, not in degrees")
    return initial_qpos(robot.compiled, q0, [])


def writer_of(output: str | os.PathLike[str], content: Content, *, force: bool) -> BatchWriter | CsvWriter:
    """A writer for the kind of file that a name means; - is CSV on standard output."""
    if is_csv(output):
        return CsvWriter(output, content, force=force)
    return BatchWriter(output, content, force=force)


def compute_rows(
    job: Job,
    first: int,
    last: int,
    output: str | os.PathLike[str],
    *,
    threads: int = 1,
    chunk: int | None = None,
    force: bool = False,
    signed: bool = False,
    provenance: Mapping[str, str | int | float] | None = None,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Outcome:
    """Compute rows first … last (exclusive) of a job into one complete file, or none.

    Args:
        threads: number of blocks that are computed at a time; one more is read or written meanwhile.
        chunk: rows per block; by default the results of a block take BLOCK_BYTES.
        signed: store the job's digest and facts, by which the file can be recognised; always done for drawn rows,
            while for an input file every byte has to be read.
        provenance: attributes of /provenance besides the configuration.
        progress: called after each block with the rows done.
        stop: asked after each block; True ends the work without a file.

    Raises MemoryShortageError before anything is done; what BatchWriter and the source raise.
    """
    rows = block_rows(job, last - first, chunk)
    slots = min(max(1, threads) + 1, -(-(last - first) // rows))
    check_memory(job, slots, rows)
    with writer_of(output, content_of(job, first, last, provenance or {}, signed=signed), force=force) as writer:
        began = time.perf_counter()
        try:
            stream = _Stream(job, writer.write, range(first, last, rows), slots)
            complete = stream.run(progress, stop)
        except MemoryError:
            raise _shortage(job, slots, rows, *memory_left()) from None
        if complete:
            writer.commit()
        seconds = time.perf_counter() - began
        failed_rows = tuple(stream.failed_rows)
        told = (stream.failed, failed_rows, complete)
        return Outcome(writer.path, stream.rows_done, seconds, writer.bytes, *told, told=stream.beyond)


def stream_rows(job: Job, write: Write, starts: range, slots: int) -> None:
    """Compute the blocks of rows that begin at `starts`, in one thread less than there are slots, and hand them on."""
    _Stream(job, write, starts, slots).run(None, None)


def block_rows(job: Job, rows: int, chunk: int | None) -> int:
    """Rows of a block: as asked for, or whole packs with BLOCK_BYTES of results; no more than there are."""
    if chunk is None:
        chunk = max(MIN_ROWS, BLOCK_BYTES // max(8, 8 * _results(job)) // 8 * 8)
        if chunk > SAMPLING_BLOCK:
            chunk -= chunk % SAMPLING_BLOCK  # a part of a block of samples costs as much as the whole
    return max(1, min(chunk, rows))


def check_memory(job: Job, slots: int, rows: int) -> None:
    """Raises MemoryShortageError when so many blocks of so many rows do not fit."""
    left, what = memory_left()
    if _bytes(job, slots, rows) > left:
        raise _shortage(job, slots, rows, left, what)


def _shortage(job: Job, slots: int, rows: int, left: int, what: str) -> MemoryShortageError:
    need = f"{slots} block{'s' * (slots > 1)} of {rows} rows need {_bytes(job, slots, rows) / 1e6:.0f} MB"
    hint = "; try a smaller --chunk or fewer --threads" if rows > MIN_ROWS or slots > 1 else ""
    return MemoryShortageError(f"not enough memory: {need}, {what} {left / 1e6:.0f} MB{hint}")


def _bytes(job: Job, slots: int, rows: int) -> int:
    """Memory of the blocks, each with one column converted for the file, and of the threads that process them."""
    shapes = job.evaluation.shapes.values()
    numbers = 1 + sum(map(math.prod, shapes)) + max(map(math.prod, shapes))
    return slots * (8 * numbers * rows + _THREAD_BYTES)


def _results(job: Job) -> int:
    """Number of values that are computed per row."""
    return sum(math.prod(job.evaluation.shapes[name]) for name in job.evaluation.quantities)


class _Stream:
    """The stream of rows: workers take block after block, which they read, compute and write.

    There is one worker more than may compute at a time, so that reading and writing do not delay the others. A block
    stays with its worker, in its core's cache.
    """

    def __init__(self, job: Job, write: Write, starts: range, slots: int) -> None:
        self._source, self._hand_on, self._limits = job.source, write, job.limit_check()
        self._all, self._starts = starts, iter(starts)
        self._slots = [_Slot(job.evaluation, starts.step) for _ in range(slots)]
        self._reading, self._telling = threading.Lock(), threading.Lock()
        self._computing = threading.Semaphore(max(1, slots - 1))
        self._ended = False
        self.failed, self.failed_rows = 0, list[int]()
        self.rows_done = 0

    @property
    def beyond(self) -> BeyondLimits:
        """The given rows beyond joint limits."""
        return BeyondLimits() if self._limits is None else self._limits.found

    def run(self, progress: Callable[[int], None] | None, stop: Callable[[], bool] | None) -> bool:
        """Process all blocks; False if `stop` ended it."""
        from concurrent.futures import ThreadPoolExecutor  # imports logging

        with ThreadPoolExecutor(max(1, len(self._slots))) as pool:
            try:
                workers = [pool.submit(self._work, slot, progress, stop) for slot in self._slots]
            except RuntimeError:  # "can't start new thread"
                self._ended = True
                raise MemoryError from None
        for worker in workers:
            worker.result()
        self.failed_rows = sorted(self.failed_rows)[:_TOLD_ROWS]
        return not self._ended

    def _work(self, slot: _Slot, progress: Callable[[int], None] | None, stop: Callable[[], bool] | None) -> None:
        try:
            while (block := self._read(slot)) is not None:
                start, rows = block
                if self._limits is not None and "qpos" in slot.inputs:
                    self._limits.see(start, slot.inputs["qpos"][:rows])
                with self._computing:
                    slot.call(rows)
                self._write(slot, start, rows)
                with self._telling:
                    self.rows_done += rows
                    if progress is not None:
                        progress(self.rows_done)
                if stop is not None and stop():
                    self._ended = True
        except BaseException:
            self._ended = True  # the others need not go on
            raise

    def _read(self, slot: _Slot) -> tuple[int, int] | None:
        """Read the next block; returns its first row and number of rows, or None at the end."""
        with self._reading:
            start = None if self._ended else next(self._starts, None)
            if start is None:
                return None
            stop = min(start + self._all.step, self._all.stop)
            if not self._source.threads:
                self._source.read(start, stop, slot.inputs)
        if self._source.threads:
            self._source.read(start, stop, slot.inputs)
        return start, stop - start

    def _write(self, slot: _Slot, start: int, rows: int) -> None:
        """Rows that failed hold NaN."""
        bad = np.flatnonzero(slot.outputs["status"][:rows])
        if len(bad):
            for name, values in slot.outputs.items():
                if name != "status":
                    values[bad] = np.nan
            with self._telling:
                self.failed += len(bad)
                self.failed_rows += [start + int(k) for k in bad[:_TOLD_ROWS]]
        self._hand_on(start - self._all.start, rows, slot.arrays)


class _Slot:
    """The arrays of a block, and the function that computes its first n rows."""

    def __init__(self, evaluation: Evaluation, rows: int) -> None:
        self.inputs, self.outputs = evaluation.allocate(rows)
        self.arrays = {**self.inputs, **self.outputs}
        self.call = evaluation.bound(self.inputs, self.outputs)


def content_of(
    job: Job, first: int, last: int, provenance: Mapping[str, str | int | float], *, signed: bool
) -> Content:
    """The content of a file of rows first … last of a job."""
    config = job.config
    facts: dict[str, str | int | float] = {
        "at": config.at,
        "reduced": int(config.reduced),
        "packed": int(config.packed),
        "first_row": first,
        "rows_of_job": job.rows,
    }
    provenance = {**provenance, "config": config.to_json(), "seed": config.seed}
    if signed or config.samples is not None:
        facts["digest"], provenance["facts"] = job.digest, canonical(job.facts)
    return Content(
        rows=last - first,
        columns=_columns(job.evaluation, config.float32),
        labels=file_labels(job.robot.labels)._replace(link=job.evaluation.links, constraint=job.evaluation.constraints),
        model=model_record(job.robot.articulation),
        facts=facts,
        provenance=provenance,
    )


def _columns(evaluation: Evaluation, float32: bool) -> dict[str, Column]:
    """The variables of the file: inputs, results and `status`."""
    columns = {}
    for name in evaluation.inputs:
        columns[name] = Column(schema.TABLE[f"batch/{name}"].dims[1:], evaluation.shapes[name], "f8")
    for name in evaluation.quantities:
        columns[name] = Column(evaluation.dims[name], evaluation.shapes[name], "f4" if float32 else "f8")
    return {**columns, "status": Column((), (), "i1")}
