"""`artsim batch`: compute rigid-body quantities for many configurations and write them to a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from artsim.cli.batch_options import GROUPS, batch_config, batch_options, loops_left_open
from artsim.cli.grouped import GroupedCommand
from artsim.cli.numbers import Whole
from artsim.cli.options import OneModelOptions, model_options, reading_words, set_arguments
from artsim.cli.progress import caught_signals
from artsim.cli.sharding import Sharding, sharding_options
from artsim.cli.terminal import warn, warn_of_model
from artsim.io.batches.batch import Job, prepare
from artsim.io.batches.configuration import BatchConfig, for_workers
from artsim.io.batches.csv_output import STDOUT, is_csv, output_in_words
from artsim.io.output_file.batch_file import check_name
from artsim.io.runs.progress import progress_bar, warm
from artsim.io.runs.provenance import provenance
from artsim.io.shards.job import Outcome
from artsim.loaders.load import load_articulation
from artsim.sim.articulation.turn_limits import untied_axes
from artsim.sim.foundation.apart import available_cores
from artsim.sim.foundation.errors import ModelError, StoppedError, UsageError, printable


@click.command(
    cls=GroupedCommand,
    groups=GROUPS,
    short_help="Compute rigid-body quantities for many configurations.",
    context_settings={"auto_envvar_prefix": "ARTSIM"},
)
@click.argument("model")
@click.argument("arguments", nargs=-1, metavar="[NAME:=VALUE]…")
@batch_options
@sharding_options
@model_options
@click.option("--threads", type=Whole(1, 1024), metavar="N", help="Number of threads; default: one per core.")
@click.option("--chunk", type=Whole(1), metavar="N", help="Rows per block; default: as many as fit in a cache.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write (.h5, .npz or .csv); -: CSV on stdout.",
)
@click.option("--force", is_flag=True, help="Overwrite the output file.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Print neither the summary nor warnings.")
@click.pass_context
def batch(
    ctx: click.Context,
    /,
    model: str,
    arguments: tuple[str, ...],
    threads: int | None,
    chunk: int | None,
    output: Path,
    force: bool,
    as_json: bool,
    quiet: bool,
    sharding: Sharding,
    load_options: OneModelOptions,
    **options: Any,
) -> None:
    """Compute quantities of MODEL (URDF, MJCF or SDF, or - for standard input) for every configuration of --input.

    The bytes of the result depend on neither --threads nor --chunk, and memory does not grow with the number of rows.
    The summary goes to stderr. Every option can also be set as ARTSIM_<NAME> in the environment.
    """
    set_arguments(load_options, arguments)
    config, notes = batch_config(ctx, model, options, load_options)
    if not is_csv(output):
        check_name(output)
    elif as_json and str(output) == STDOUT:
        raise UsageError("--output - and --json both write to standard output")
    read = config.input or ""
    inputs = config.model, config.load.get("loops"), read, read.rpartition(":")[0]
    sharding.check(output, inputs, lambda: for_workers(config), force=force)
    threads = threads or (1 if sharding.scheduler else available_cores())
    with load_job(config) as job:
        if not quiet:
            warn([*notes, *loops_left_open(job.robot.articulation, job.quantities)])
            warn_of_model(job.robot.articulation.notes, [model, *arguments], reading_words(load_options))
        warm(job.evaluation.entries)  # Ctrl-C still ends the process here, before there is an output
        with caught_signals() as caught, progress_bar("computing", job.rows, unit="rows", show=not quiet) as advance:
            outcome = sharding.compute(
                job,
                output,
                work,
                progress=advance,
                stop=lambda: bool(caught),
                force=force,
                threads=threads,
                chunk=chunk,
                provenance={**provenance(" ".join(sys.argv[1:])), "threads": threads},
            )
    if not quiet:
        warn(untied_axes(job.robot.model, job.robot.labels))
    _finish(outcome, config, caught, as_json=as_json, quiet=quiet, force=force)


def load_job(config: BatchConfig) -> Job:
    """Load the robot and the rows that a configuration names; the job is the same in every process."""
    return prepare(load_articulation(config.model, **config.load), config)


def work(order: str, stop: Callable[[], bool] | None = None) -> str:
    """Compute a shard in a worker process of --scheduler."""
    from artsim.io.shards.scheduler import perform

    return perform(order, lambda config: load_job(BatchConfig.from_json(config)), stop)


def _finish(
    outcome: Outcome, config: BatchConfig, caught: list[int], *, as_json: bool, quiet: bool, force: bool
) -> None:
    """Print the summary and exit with the code of the outcome.

    With --force a shard of an earlier job may still wait to be overwritten by another process, which is no failure.
    """
    summary, strict = _summary(outcome), bool(config.load.get("strict"))
    beyond = outcome.told.notes()
    if not quiet and not (strict and outcome.complete):
        warn(beyond)
    if as_json:
        click.echo(json.dumps(summary))
    elif not quiet:
        for line in (_line(outcome, summary["rows_per_second"]), *outcome.notes):
            click.echo(printable(line), err=True)
    if not outcome.complete:
        raise SystemExit(128 + caught[0])
    if outcome.unfit and not force:
        raise ModelError(outcome.unfit)
    if outcome.unfit and not quiet:
        warn([outcome.unfit])
    wrong = beyond if strict else []
    if outcome.failed:
        failed = _describe_failed(outcome)
        if config.on_error == "stop":
            wrong = [f"{failed}; --on-error skip accepts them", *wrong]
        elif not quiet:
            warn([f"{outcome.output}: {failed}"])
    if wrong:
        raise StoppedError(f"{outcome.output}: {'; '.join(wrong)}{' (--strict)' if wrong[-1:] == beyond else ''}")


def _describe_failed(outcome: Outcome) -> str:
    told = ", ".join(map(str, outcome.failed_rows)) + (", …" if outcome.failed > len(outcome.failed_rows) else "")
    return (
        f"{outcome.failed} of {outcome.rows} rows could not be computed and hold NaN "
        f"(counted from 0: {told}); `status` says why"
    )


def _summary(outcome: Outcome) -> dict[str, Any]:
    computed = outcome.rows - outcome.kept
    return {
        "rows": outcome.rows,
        "kept": outcome.kept,
        "seconds": outcome.seconds,
        "rows_per_second": computed / outcome.seconds if outcome.seconds > 0 else 0.0,
        "failed": outcome.failed,
        "failed_rows": list(outcome.failed_rows),
        "beyond_limits": outcome.told.summary(),
        "complete": outcome.complete,
        "output": str(outcome.output) if outcome.complete else None,
        "bytes": outcome.bytes if outcome.complete else None,
    }


def _line(outcome: Outcome, rate: float) -> str:
    done = f"{outcome.rows - outcome.kept} rows in {outcome.seconds:.3g} s: {rate:,.0f} rows/s"
    if not outcome.complete:
        return f"{done}; interrupted" + ("" if outcome.notes else ", nothing is written")
    if outcome.kept == outcome.rows > 0:
        return "nothing was left to compute"
    return f"{done}; wrote {output_in_words(outcome.output)} ({outcome.bytes / 1e6:.3g} MB)"
