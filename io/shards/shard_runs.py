"""Computes the missing shards of a job, in this process or by a runner, and then writes the index."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from artsim.io.readers.open_output import open_output
from artsim.io.shards.job import Job, Outcome
from artsim.io.shards.shard_index import write_index
from artsim.io.shards.shards import Finished, OtherJobError, Shard, finished, finished_file, known_sums
from artsim.sim.foundation.errors import ModelError

_TOLD_ROWS = 5  # failed rows named in the outcome


class Watch(NamedTuple):
    """Callbacks of a computation of shards: a shard is done; rows done in unfinished shards; whether to stop."""

    done: Callable[[Shard, Finished], None]
    rows: Callable[[int], None]
    stop: Callable[[], bool]


Runner = Callable[[Sequence[Shard], Watch], bool]
"""Computes shards, each into its file; returns False if stopped before the last."""


def compute_shards(
    job: Job,
    output: Path,
    shards: Sequence[Shard],
    mine: Sequence[Shard],
    run: Runner,
    *,
    resume: bool = False,
    progress: Callable[[int], None] = lambda rows: None,
    stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Compute the shards in `mine`, all of them or some, and write the index once all shards exist.

    `resume` keeps shards that are complete and belong to the job. Raises ModelError if one belongs to another job, and
    whatever the runner raises; finished shards stay.
    """
    began = time.perf_counter()
    kept = _kept(job, output, mine) if resume else {}
    done = dict(kept)
    todo = [shard for shard in mine if shard not in done]
    complete = run(todo, Watch(done.__setitem__, lambda rows: progress(_rows(done) + rows), stop))
    notes = [f"kept {len(kept)} of {len(mine)} shards"] if kept else []
    found = [done[shard] for shard in mine if shard in done]
    unfit = ""
    if complete:
        try:
            notes.append(_finish(job, output, shards, done))
        except ModelError as error:
            unfit = str(error)
    elif len(mine) > 1:
        notes.append(f"{len(found)} of {len(mine)} shards are complete; --resume computes the rest")
    return Outcome(
        output=output if len(mine) == len(shards) else mine[0].path,
        rows=sum(shard.entry.rows for shard in found),
        seconds=time.perf_counter() - began,
        bytes=sum(shard.entry.bytes for shard in found),
        failed=sum(shard.entry.failed for shard in found),
        failed_rows=tuple(row for shard in found for row in shard.failed_rows)[:_TOLD_ROWS],
        complete=complete,
        kept=_rows(kept),
        notes=tuple(notes),
        told=job.told.together(shard.told for shard in found),
        unfit=unfit,
    )


def run_here(job: Job, **options: Any) -> Runner:
    """A runner of this process, with options of Job.compute; a shard is hashed while the next one is computed."""

    def run(todo: Sequence[Shard], watch: Watch) -> bool:
        hashed: list[tuple[Shard, Future[Finished]]] = []
        before = 0
        with ThreadPoolExecutor(1) as pool:
            for shard in todo:
                rows = partial(_counted, watch.rows, before)
                outcome = _compute(job, shard, rows, watch.stop, options)
                if not outcome.complete:
                    break
                hashed.append((shard, pool.submit(finished_now, shard, outcome)))
                before += outcome.rows
        for shard, future in hashed:
            watch.done(shard, future.result())
        return len(hashed) == len(todo)

    return run


def _counted(rows: Callable[[int], None], before: int, done: int) -> None:
    rows(before + done)


def compute_one(job: Job, shard: Shard, stop: Callable[[], bool], **options: Any) -> Finished | None:
    """Compute one shard, replacing an existing file; None if stopped."""
    outcome = _compute(job, shard, lambda rows: None, stop, options)
    return finished_now(shard, outcome) if outcome.complete else None


def _compute(
    job: Job, shard: Shard, rows: Callable[[int], None], stop: Callable[[], bool], options: Mapping[str, Any]
) -> Outcome:
    return job.compute(
        shard.first, shard.last, shard.path, force=True, signed=True, progress=rows, stop=stop, **options
    )


def finished_now(shard: Shard, outcome: Outcome) -> Finished:
    """The entry of a shard just written; its bytes are hashed."""
    return Finished.of(shard.path, shard.first, outcome.rows, outcome.failed, outcome.failed_rows, outcome.told)


def compute_file(job: Job, output: Path, *, resume: bool = False, **options: Any) -> Outcome:
    """Compute all rows into one file, with options of Job.compute; `resume` keeps a complete file of the job."""
    found = finished_file(job, output) if resume else None
    if found is None:
        return job.compute(0, job.rows, output, signed=resume, **options)
    entry = found.entry
    notes = (f"{output} is complete already",)
    counted = (output, entry.rows, 0.0, entry.bytes, entry.failed, found.failed_rows)
    return Outcome(*counted, kept=entry.rows, notes=notes, told=found.told)


def _kept(job: Job, output: Path, mine: Sequence[Shard]) -> dict[Shard, Finished]:
    sums = known_sums(job, output)
    found = {shard: finished(job, shard, sums.get(shard.path.name)) for shard in mine}
    return {shard: done for shard, done in found.items() if done is not None}


def _rows(done: Mapping[Shard, Finished]) -> int:
    return sum(shard.entry.rows for shard in done.values())


def _finish(job: Job, output: Path, shards: Sequence[Shard], done: Mapping[Shard, Finished]) -> str:
    """Write the index if every shard exists; returns a note for the user.

    Raises ModelError if a shard is damaged or belongs to another job.
    """
    there = [shard for shard in shards if shard in done or shard.path.exists()]
    if len(there) < len(shards):
        return f"{len(there)} of {len(shards)} shards are there; whoever finishes the last one writes {output}"
    entries = []
    for shard in shards:
        try:
            found = done.get(shard) or finished(job, shard)
        except OtherJobError as error:
            raise ModelError(f"{output} is not written: {error}") from None
        if found is None:
            raise ModelError(f"{output} is not written: {shard.path} is damaged")
        entries.append(found.entry)
    with open_output(shards[0].path) as first:  # metadata of a shard: the same for every writer
        created, provenance = str(first.attrs.get("created")), first.provenance
    content = job.index_content(provenance, [shard.path for shard in shards if shard.last > shard.first])
    write_index(output, content, entries, created)
    return f"all {len(shards)} shards are there: wrote the index {output}"
