"""`artsim export`: write a stored simulation in another format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from artsim.cli.options import SAMPLES, mesh_options, positive, refuse_own_input
from artsim.cli.progress import storage_errors
from artsim.cli.stored_robot import stored_robot
from artsim.cli.terminal import printable, warn
from artsim.io.exports import FORMATS, Export, write
from artsim.io.recorder import check_output
from artsim.io.samples import opened_runs
from artsim.loaders.stored import load_stored
from artsim.sim.foundation.errors import UsageError

R = TypeVar("R")


def format_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add one option per format, which takes the file to write."""
    for name, format_ in reversed(FORMATS.items()):
        meaning, metavar = f"Write {format_.meaning}.", f"FILE{format_.suffix}"
        command = click.option(option_of(name), type=click.Path(path_type=Path), metavar=metavar, help=meaning)(command)
    return command


def option_of(format_: str) -> str:
    """The option that selects a format."""
    return f"--{format_.replace('_', '-')}"


@click.command(short_help="Write a stored simulation in another format.")
@click.argument("file", type=click.Path(path_type=Path))
@format_options
@SAMPLES
@click.option(
    "--fps",
    type=float,
    callback=positive,
    default=30.0,
    show_default=True,
    help="Frame rate of the exported motion [1/s].",
)
@mesh_options
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def export(
    file: Path,
    samples: tuple[int, ...],
    fps: float,
    packages: Mapping[str, Path],
    mesh_root: Path | None,
    force: bool,
    **outputs: Any,
) -> None:
    """Write FILE, an output of `artsim run` or with --sample of `artsim rollout`, in the requested formats and print
    the sizes of the written files."""
    wanted: dict[str, Path] = {name: outputs[name] for name in FORMATS if outputs[name] is not None}
    if not wanted:
        raise UsageError(f"give a format: {' '.join(f'{option_of(name)} FILE' for name in FORMATS)}")
    for output in wanted.values():
        refuse_own_input(output, str(file))
        check_output(output, force=force)
    if len(samples) > 1:
        raise UsageError("--sample: one for each export")
    with opened_runs([file], samples, load_stored) as (recording,):
        for name, output in wanted.items():
            request = Export(recording, output, lambda: stored_robot(recording, packages, mesh_root), fps)
            with storage_errors():
                notes = write(name, request)
            warn(notes)
            click.echo(f"wrote {printable(str(output))} ({output.stat().st_size / 1e6:.3g} MB)")
