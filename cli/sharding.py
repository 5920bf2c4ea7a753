"""The options that divide a batch or a rollout into shards, and how the shards are then computed."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from artsim.cli.numbers import Whole
from artsim.cli.options import refuse_own_input
from artsim.io.batches.csv_output import STDOUT
from artsim.io.output_file.claim import check_output
from artsim.io.shards.job import Job, Outcome
from artsim.io.shards.shards import check_new, check_shard_names, plan, shard_path
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError

R = TypeVar("R")

SHARDS = 16  # number with --scheduler and without --shards
MOST_SHARDS = 100_000


@dataclass(frozen=True)
class Sharding:
    """Which part of a job this command computes, and where."""

    shard: tuple[int, int] | None
    shards: int | None
    scheduler: str | None
    resume: bool

    @property
    def count(self) -> int | None:
        """The number of shards; None: one file."""
        return self.shard[1] if self.shard else self.shards or (SHARDS if self.scheduler else None)

    def check(
        self, output: Path, inputs: Sequence[str | None], for_workers: Callable[[], object], *, force: bool
    ) -> None:
        """Refuse options that are wrong for any model. `inputs`: files that no output may overwrite; `for_workers`
        refuses what other processes cannot read. Raises UsageError, OutputError, BusyError."""
        if self.shard and (self.shards or self.scheduler):
            raise UsageError("--shard is one shard of a job system's; --shards and --scheduler compute all of them")
        if self.resume and force:
            raise UsageError("--resume keeps what fits, --force overwrites it: give one of them")
        if self.scheduler:
            from artsim.io.shards.scheduler import check_scheduler

            check_scheduler(self.scheduler)
            for_workers()
        if self.count or self.resume:
            check_shard_names(output, self.count or 1)
        numbers = [self.shard[0]] if self.shard else range(1, (self.count or 0) + 1)
        if str(output) == STDOUT:
            return
        paths = [output, *(shard_path(output, number, self.count or 1) for number in numbers)]
        if self.count and not (self.resume or force):
            check_new(paths)
        for path in paths:
            refuse_own_input(path, *inputs)
            check_output(path, force=force or self.resume)

    def compute(
        self,
        job: Job,
        output: Path,
        work: Callable[..., str],
        *,
        progress: Callable[[int], None],
        stop: Callable[[], bool],
        force: bool,
        **options: Any,
    ) -> Outcome:
        """Compute the rows, their shards or one of them.

        `work` is the function that worker processes call with an order; `options` are those of Job.compute.
        """
        from artsim.io.shards.shard_runs import compute_file, compute_shards, run_here

        watch: dict[str, Any] = {"resume": self.resume, "progress": progress, "stop": stop}
        if self.count is None:
            return compute_file(job, output, force=force, **watch, **options)
        shards = plan(job.rows, self.count, output)
        mine = shards if self.shard is None else [shards[self.shard[0] - 1]]
        if self.scheduler is None:
            run = run_here(job, **options)
        else:
            from artsim.io.shards.scheduler import run_on

            run = run_on(self.scheduler, job, work, **options)
        return compute_shards(job, output, shards, mine, run, **watch)


def read_shard(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Read I/K with 1 ≤ I ≤ K."""
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not I/K, as 3/16")
    number, count = int(match[1]), int(match[2])
    if count > MOST_SHARDS:
        raise click.BadParameter(f"{value!r}: more than {MOST_SHARDS} shards")
    if not 1 <= number <= count:
        raise click.BadParameter(f"{value!r}: shards count from 1: 1/{count} … {count}/{count}")
    return number, count


SHARDING_OPTIONS = (
    click.option(
        "--shard",
        callback=read_shard,
        metavar="I/K",
        help="Compute shard I of K (from 1), a file beside --output; the last one to end writes the index, --output.",
    ),
    click.option(
        "--shards",
        type=Whole(1, MOST_SHARDS),
        metavar="K",
        help="Number of shards to compute, one file each, together with their index.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Where the shards (16, or --shards) are computed: in N processes here, local:N, or on a dask cluster that "
        "you trust and that trusts you, tcp://HOST:PORT or tls://HOST:PORT.",
    ),
    click.option(
        "--resume", is_flag=True, help="Keep complete shards that match these options and compute the missing ones."
    ),
)


def sharding_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add these options; the command receives them as one argument, `sharding: Sharding`."""

    @functools.wraps(command)
    def wrapped(
        *args: Any,
        shard: tuple[int, int] | None,
        shards: int | None,
        scheduler: str | None,
        resume: bool,
        **kwargs: Any,
    ) -> R:
        return command(*args, sharding=Sharding(shard, shards, scheduler, resume), **kwargs)

    decorated: Callable[..., R] = wrapped
    for option in reversed(SHARDING_OPTIONS):
        decorated = option(decorated)
    return decorated
