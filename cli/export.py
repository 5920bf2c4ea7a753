"""`artsim export`: write a stored simulation in another format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from artsim.cli.numbers import FACTOR, Number, number_of
from artsim.cli.options import SAMPLES, mesh_options, refuse_own_input
from artsim.cli.progress import storage_errors
from artsim.cli.stored_robot import stored_robot
from artsim.cli.terminal import warn
from artsim.io.exports.formats import FORMATS, write_all
from artsim.io.exports.request import Export, Look
from artsim.io.output_file.claim import check_output
from artsim.io.rollouts.samples import opened_runs
from artsim.loaders.stored import load_stored
from artsim.sim.foundation.errors import UsageError, nearest, printable

R = TypeVar("R")
_KINDS = {"contacts": "contacts", "joint-forces": "joint forces", "joint-torques": "joint torques"}
_DRAWN = ("video", "html")


def format_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add one option per format, which takes the file to write."""
    for name, format_ in reversed(FORMATS.items()):
        meaning, metavar = f"Write {format_.meaning}.", f"FILE{format_.suffix}"
        command = click.option(option_of(name), type=click.Path(path_type=Path), metavar=metavar, help=meaning)(command)
    return command


def option_of(format_: str) -> str:
    """The option that selects a format."""
    return f"--{format_.replace('_', '-')}"


def read_kinds(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Read NAME,NAME,… of kinds of forces; none: none of them."""
    if value is None:
        return None
    words = list(dict.fromkeys(word.strip() for word in value.split(",") if word.strip()))
    for word in words:
        if word not in _KINDS and word != "none":
            raise click.BadParameter(f"{word!r} is not known{nearest(word, [*_KINDS, 'none'])}")
    return tuple(_KINDS[word] for word in words if word != "none")


def read_camera(ctx: click.Context, param: click.Parameter, value: str | None) -> Look | None:
    """Read AZIMUTH,ELEVATION[,DISTANCE] [deg, m] as the look from there."""
    if value is None:
        return None
    numbers = tuple(number_of(word, "--camera") for word in value.split(","))
    if len(numbers) not in (2, 3):
        raise click.BadParameter(f"got {len(numbers)} numbers, want AZIMUTH,ELEVATION or AZIMUTH,ELEVATION,DISTANCE")
    if not -89.0 <= numbers[1] <= 89.0 or abs(numbers[0]) > 360.0 or not all(0 < x < 1e6 for x in numbers[2:]):
        raise click.BadParameter(f"{value}: want an azimuth within 360, an elevation within 89, a distance above 0")
    return Look(numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else None)


@click.command(short_help="Write a stored simulation in another format.")
@click.argument("file", type=click.Path(path_type=Path))
@format_options
@SAMPLES
@click.option(
    "--fps",
    type=Number(1e-3, 1e4),
    default=30.0,
    show_default=True,
    help="Frame rate of the exported motion [1/s].",
)
@click.option(
    "--forces",
    callback=read_kinds,
    metavar="NAME,…",
    help="Arrows in --video and --html: contacts (default, where recorded), joint-forces, joint-torques, none. Those "
    "of joints act on links from their parents; without a recorded incoming_wrench only parts along axes are known.",
)
@click.option(
    "--force-scale",
    type=FACTOR,
    default=1.0,
    show_default=True,
    metavar="X",
    help="Length of the arrows, times that for which the robot's weight as a contact force is 0.8 of its size.",
)
@click.option(
    "--camera",
    callback=read_camera,
    metavar="AZIMUTH,ELEVATION[,DISTANCE]",
    help="Direction from which --video is seen: angles about z, from the x axis, and above the horizon [deg], and the "
    "distance [m]. Default: -39,20 from where all of the run is in sight.",
)
@click.option("--follow", default="", metavar="LINK", help="Link with which the camera of --video moves.")
@click.option("--background", default="", metavar="COLOUR", help="Background of --video: a name, or #RRGGBB.")
@click.option("--floor", is_flag=True, help="Draw a floor in --video also if the run had no ground.")
@mesh_options
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def export(
    file: Path,
    samples: tuple[int, ...],
    fps: float,
    forces: tuple[str, ...] | None,
    force_scale: float,
    camera: Look | None,
    follow: str,
    background: str,
    floor: bool,
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
    if (forces is not None or force_scale != 1.0) and not wanted.keys() & set(_DRAWN):
        raise UsageError("--forces and --force-scale are for --video and --html")
    if (camera or follow or background or floor) and "video" not in wanted:
        raise UsageError("--camera, --follow, --background and --floor are for --video")
    look = replace(camera or Look(), background=background, floor=floor, follow=follow)
    if len({*map(os.path.realpath, wanted.values())}) < len(wanted):
        raise UsageError("two formats have the same file")
    for output in wanted.values():
        refuse_own_input(output, str(file))
        check_output(output, force=force)
    if len(samples) > 1:
        raise UsageError("--sample: one for each export")
    with opened_runs([file], samples, load_stored) as (recording,):
        robot = partial(stored_robot, recording, packages, mesh_root)
        with storage_errors():
            notes = write_all(
                {
                    name: Export(recording, output, robot, fps, forces, force_scale, look)
                    for name, output in wanted.items()
                }
            )
        warn(notes)
        for output in wanted.values():
            click.echo(f"wrote {printable(str(output))} ({output.stat().st_size / 1e6:.3g} MB)")
