"""Options of the output of a run and of the words about it, which `artsim run` receives as two records."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from artsim.cli.numbers import Whole
from artsim.cli.options import refuse_own_input
from artsim.io.exports.formats import check_run_name
from artsim.io.output_file.claim import check_output

if TYPE_CHECKING:
    from artsim.sim.runs.plan import Plan

R = TypeVar("R")

LARGE = 1e9  # bytes: larger files are told of before the run


class Destination(NamedTuple):
    """The file of a run, None for none, and how it is written."""

    output: Path | None
    force: bool
    compress: str
    checkpoint: int | None

    def check(self, *inputs: str | None) -> None:
        """Refuse an output that cannot be written, or that is one of the inputs."""
        if self.output is not None:
            refuse_own_input(self.output, *inputs)
            check_run_name(self.output)
            check_output(self.output, force=self.force)


def large_output(plan: Plan, to: Destination) -> str:
    """A line on the size of a file above LARGE, said before the run; empty for smaller ones."""
    from artsim.io.runs.named import run_labels
    from artsim.io.runs.run_layout import bytes_of_rows

    config = plan.config
    size = bytes_of_rows(config.record, run_labels(plan), -(-config.steps // config.every))
    if size <= LARGE:
        return ""
    packed = ", before it is compressed" if to.compress != "none" else ""
    return f"the file will take {size / 1e9:.3g} GB{packed}; --every N keeps every Nth step, --record fewer variables"


class Report(NamedTuple):
    """The words about a run: its summary as JSON, none, or more; `strict`: a wrong result is an error."""

    as_json: bool
    quiet: bool
    verbose: bool
    strict: bool = False


OUTPUT_OPTIONS = (
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help="HDF5 file to write; without it only the summary is printed.",
    ),
    click.option("--force", is_flag=True, help="Overwrite the output file."),
    click.option(
        "--compress",
        type=click.Choice(["none", "gzip", "zstd"]),
        default="none",
        show_default=True,
        help="Compression of the recorded rows in the output file.",
    ),
    click.option(
        "--checkpoint",
        type=Whole(0),
        help="Steps between checkpoints, which store the whole state for --resume; 0: none. Default: 10000, or more "
        "where states are large beside the rows, so that they take a hundredth of the file.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object on stdout."),
    click.option("-q", "--quiet", is_flag=True, help="Print neither the summary nor warnings."),
    click.option("-v", "--verbose", is_flag=True, help="Print more about the run."),
)


def output_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add these options; the command receives `to: Destination` and `report: Report`."""

    @functools.wraps(command)
    def wrapped(*args: Any, as_json: bool, quiet: bool, verbose: bool, **kwargs: Any) -> R:
        to = Destination(*(kwargs.pop(name) for name in Destination._fields))
        return command(*args, to=to, report=Report(as_json, quiet, verbose), **kwargs)

    decorated: Callable[..., R] = wrapped
    for option in reversed(OUTPUT_OPTIONS):
        decorated = option(decorated)
    return decorated
