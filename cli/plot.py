"""`artsim plot`: draw figures of stored simulations, and maps over the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from artsim.cli.info import is_recording
from artsim.cli.options import SAMPLES, refuse_own_input
from artsim.cli.terminal import warn
from artsim.io.exports.figures import GROUPS, draw
from artsim.io.exports.maps import draw_map
from artsim.io.output_file.claim import check_output
from artsim.io.readers.batch_recording import BatchRecording
from artsim.io.readers.ik_recording import IkRecording
from artsim.io.readers.open_output import open_output
from artsim.io.rollouts.samples import opened_runs
from artsim.loaders.stored import load_stored
from artsim.sim.foundation.errors import UsageError, printable


@click.command(short_help="Draw a stored simulation over time, or a map of the workspace.")
@click.argument("arguments", metavar="FILE.h5... [NAME...]", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Figure to write (.png, .svg, .pdf); default: FILE.png in the current folder.",
)
@click.option(
    "--entries",
    metavar="NAME,...",
    default="",
    help="Entries to draw: names or patterns of coordinates, dofs, links, actuators, ...",
)
@SAMPLES
@click.option("--force", is_flag=True, help="Overwrite the output file.")
def plot(arguments: tuple[str, ...], output: Path | None, entries: str, samples: tuple[int, ...], force: bool) -> None:
    """Draw FILE.h5, an output of `artsim run`, or with --sample of `artsim rollout`, over time; several are overlaid.

    NAME is a recorded variable (qpos, tau_drive, link_position, ...) or states, forces (by source, for each degree of
    freedom), energy, contacts. Without any NAME, the states, the largest forces, and energy and contacts where recorded
    are drawn.

    An output of `artsim ik` is drawn as a map of the positions that are reached; one of `artsim batch` with
    link_position of one link as a map of joint forces, NAME or the first of inverse_dynamics, gravity, bias, as the
    largest share of an effort limit.
    """
    files = [argument for argument in arguments if is_recording(argument)]
    names = [argument for argument in arguments if argument not in files]
    if not files:
        raise UsageError(f"{arguments[0]}: is no output of artsim; give a FILE.h5, then names ({', '.join(GROUPS)}, …)")
    output = output or Path(f"{Path(files[0]).stem}.png")
    for file in files:
        refuse_own_input(output, file)
    check_output(output, force=force)
    wanted = [entry for entry in entries.split(",") if entry]
    if not _drew_map(files, samples, output, names, wanted):
        with opened_runs(files, samples, load_stored) as recordings:
            warn(draw(recordings, output, names, wanted), more="--entries picks what is drawn")
    click.echo(f"wrote {printable(str(output))} ({output.stat().st_size / 1e6:.3g} MB)")


def _drew_map(
    files: Sequence[str], samples: Sequence[int], output: Path, names: Sequence[str], entries: Sequence[str]
) -> bool:
    """Draw the map of an ik or a batch; False: the files are runs or rollouts."""
    with open_output(files[0]) as stored:
        if not isinstance(stored, BatchRecording | IkRecording):
            return False
        if len(files) > 1 or samples:
            raise UsageError(
                f"{files[0]}: rows of a batch or an ik are no motion; they are drawn by themselves, as a map"
            )
        warn(draw_map(stored, output, names, entries))
    return True
