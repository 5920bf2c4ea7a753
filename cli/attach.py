"""`artsim attach`: fix one robot to a link of another, and write both as one file, with a proof."""

from __future__ import annotations

import click

from artsim.cli.options import OneModelOptions, model_options, refuse_own_input
from artsim.cli.terminal import warn
from artsim.cli.words import read_pose
from artsim.cli.writing import Target, target_options, write_and_tell
from artsim.sim.articulation.description import Pose
from artsim.sim.articulation.pose_algebra import quaternion_from_rpy


def _read_pose(ctx: click.Context, param: click.Parameter, word: str | None) -> Pose:
    if word is None:
        return Pose()
    x, y, z, *turn = read_pose("--pose", word)
    return Pose((x, y, z), quaternion_from_rpy(turn[0], turn[1], turn[2])) if turn else Pose((x, y, z))


@click.command(short_help="Fix one robot to a link of another, as one file.")
@click.argument("tool", metavar="TOOL")
@click.argument("carrier", metavar="MODEL")
@click.option("--at", required=True, metavar="LINK", help="Link of MODEL to which TOOL's root link is fixed.")
@click.option(
    "--pose",
    metavar="X,Y,Z[,ROLL,PITCH,YAW]",
    callback=_read_pose,
    help="Pose of TOOL's root link in LINK [m, rad, or with a suffix: 90deg]; default: that of LINK.",
)
@click.option("--prefix", default="", metavar="TEXT", help="Text put before all names of TOOL, as in left_.")
@target_options
@model_options
def attach(
    tool: str,
    carrier: str,
    at: str,
    pose: Pose,
    prefix: str,
    target: Target,
    load_options: OneModelOptions,
) -> None:
    """Fix TOOL, a hand or a sensor say, to a link of MODEL, and write both to FILE: .urdf, .xml or .mjcf, .sdf, .usda.

    The file is then loaded and compared with the two together, as `artsim convert` does. Options of the whole run are
    those of MODEL.
    """
    from artsim.loaders.attach import attached
    from artsim.loaders.load import load_articulation

    refuse_own_input(target.output, tool, carrier)
    parts = [load_articulation(file, **load_options) for file in (carrier, tool)]
    robot = attached(parts[0], parts[1], at, pose, prefix)
    warn([str(note) for note in robot.notes if note not in (*parts[0].notes, *parts[1].notes)])
    write_and_tell(robot, target, strict=load_options["strict"])
