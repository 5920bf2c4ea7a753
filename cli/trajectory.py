"""`artsim trajectory`: a motion through way points, as fast as limits allow, as inputs that a run follows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from artsim.cli.batch_options import names
from artsim.cli.grouped import READING, GroupedCommand, Groups
from artsim.cli.numbers import Number, Seconds
from artsim.cli.options import OneModelOptions, model_options, reading_words, refuse_own_input, set_arguments
from artsim.cli.terminal import warn, warn_of_model
from artsim.cli.words import MOTION_LIMITS, read_by_name, read_tool_pose
from artsim.io.batches.csv_output import STDOUT, output_in_words
from artsim.io.batches.trajectory_files import (
    check_trajectory_output,
    read_way_points,
    trajectory_text,
    write_trajectory,
)
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import UsageError, nearest, printable
from artsim.sim.foundation.rotations import Real
from artsim.sim.quantities.robot import Robot
from artsim.sim.quantities.trajectory import KINDS, TIMINGS, TOPP_RA, WITH_COMPUTED_TORQUE, WITH_DRIVES, Trajectory
from artsim.sim.runs.patterns import ALL
from artsim.sim.runs.start import initial_qpos
from artsim.sim.trajectories.joint_motion import movable

F = TypeVar("F", bound=Callable[..., Any])
GROUPS: Groups = {
    "Way points": ("through", "via", "link", "lines", "blend", "q0"),
    "Limits": MOTION_LIMITS,
    "Results": ("timing", "dt", "inputs", "output", "force", "as_json", "quiet"),
    "Reading the model": ("base", "loops", *READING["Reading the model"]),
}
"""The options of each group, in the order of the help."""


def _limit(flag: str, unit: str, meaning: str) -> Callable[[F], F]:
    return click.option(
        flag, multiple=True, metavar="[JOINT=]VALUE", help=f"Largest {meaning} [{unit}]; without JOINT= of all joints."
    )


@click.command(
    cls=GroupedCommand,
    groups=GROUPS,
    short_help="Find the fastest motion through way points.",
    context_settings={"auto_envvar_prefix": "ARTSIM"},
)
@click.argument("model")
@click.argument("arguments", nargs=-1, metavar="[NAME:=VALUE]…")
@click.option(
    "--through",
    metavar="FILE",
    help="Way points, a row each: configurations as `artsim batch` reads them, or with --link poses as `artsim ik` "
    "does (.npy, .npz, .csv, .h5, or -). The motion begins at the first.",
)
@click.option(
    "--via",
    multiple=True,
    metavar="JOINT=VALUE,…|POSE",
    help="Way point: coordinates of joints, of which others stay, or of all (V,V,…); with --link X,Y,Z[,R,P,Y|"
    ",QW,QX,QY,QZ]. May be repeated; the motion begins at --q0.",
)
@click.option("--link", metavar="NAME", help="Link whose frame passes the way points.")
@click.option(
    "--lines",
    is_flag=True,
    help="Straight lines of the joints, or of --link, which stop at each way point, in place of a smooth curve.",
)
@click.option(
    "--blend",
    type=Number(0),
    metavar="LENGTH",
    help="With --lines: round corners within this length before and behind them [m, rad] and pass them without a stop.",
)
@click.option(
    "--q0",
    multiple=True,
    metavar="JOINT=VALUE|FILE",
    help="Coordinate from which --via begins, near which poses are looked for, and which joints that do not move keep; "
    "default: the pose of the file.",
)
@_limit("--max-velocity", "rad/s, m/s", "velocity, in place of the file's")
@_limit("--max-acceleration", "rad/s², m/s²", "acceleration; default: none")
@_limit("--max-torque", "N m, N", "force of a motor, in place of the file's effort")
@_limit("--max-jerk", "rad/s³, m/s³", "jerk, for --timing ruckig")
@click.option(
    "--timing",
    type=click.Choice(TIMINGS),
    default=TOPP_RA,
    show_default=True,
    help="How time is found: the fastest motion along the path (topp-ra), or with limits of jerk from point to point, "
    "at rest at each (ruckig).",
)
@click.option(
    "--dt", type=Seconds(0, min_open=True), default=0.002, show_default=True, metavar="S", help="Time from row to row."
)
@click.option(
    "--inputs",
    callback=names,
    default=",".join(WITH_DRIVES),
    show_default=True,
    metavar="NAME,…",
    help=f"Inputs to write, of {', '.join(KINDS)}. The default is for drives; {','.join(WITH_COMPUTED_TORQUE)} for "
    "--controller computed-torque, which finds torques by itself.",
)
@model_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write (.csv, .npz or .h5): inputs for `artsim run --control`; -: CSV on stdout. .npz and .h5 also "
    "hold qpos, qvel and qacc, the --input of `artsim batch`.",
)
@click.option("--force", is_flag=True, help="Overwrite the output file.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print neither the summary nor warnings.")
def trajectory(
    model: str,
    arguments: tuple[str, ...],
    through: str | None,
    via: tuple[str, ...],
    link: str | None,
    lines: bool,
    blend: float | None,
    q0: tuple[str, ...],
    timing: str,
    dt: float,
    inputs: tuple[str, ...],
    output: Path,
    force: bool,
    as_json: bool,
    quiet: bool,
    load_options: OneModelOptions,
    **limits: tuple[str, ...],
) -> None:
    """Find the fastest motion of MODEL (URDF, MJCF or SDF, or - for standard input) through way points, from rest to
    rest, within limits of velocity, acceleration and of motors' forces, as inputs that `artsim run` follows.

    Forces are those against inertia, gravity, springs, dampers and friction; followers of mimics keep their limits.
    """
    set_arguments(load_options, arguments)
    if (through is None) == (not via):
        raise UsageError("give --through FILE or --via WAYPOINT" + (", only one" if via else ""))
    if model == "-" and through == "-":
        raise UsageError("MODEL and --through cannot both be standard input")
    if as_json and str(output) == STDOUT:
        raise UsageError("--output - and --json both write to standard output")
    for kind in inputs:
        if kind not in KINDS:
            raise UsageError(f"--inputs: {kind!r} is not known{nearest(kind, KINDS)}")
    if not inputs:
        raise UsageError("--inputs names none")
    check_trajectory_output(output, force=force)
    refuse_own_input(output, model, through, load_options.get("loops"))
    articulation = load_articulation(model, **load_options)
    robot = Robot.of(articulation)
    notes: list[str] = []
    start = initial_qpos(robot.compiled, read_by_name("q0", q0, articulation), notes)
    points, quaternion = (
        read_way_points(through, robot.labels, link) if through is not None else _typed(robot, start, via, link)
    )
    if not quiet:
        warn(notes)
        warn_of_model(articulation.notes, [model, *arguments], reading_words(load_options))
    given = {name: _limits_of(robot, name, limits[name]) for name in MOTION_LIMITS}
    found = robot.trajectory(
        points,
        link=link,
        quaternion=quaternion,
        start=start,
        from_start=bool(via),
        lines=lines,
        blend=blend or 0.0,
        timing=timing,
        dt=dt,
        **given,
    )
    if str(output) == STDOUT:
        click.echo(trajectory_text(found, inputs), nl=False)
    else:
        write_trajectory(found, output, inputs)
    _tell(found, robot, output, as_json=as_json, quiet=quiet)


def _typed(robot: Robot, start: Real, via: Sequence[str], link: str | None) -> tuple[Real, Real | None]:
    """Typed way points: configurations (k, nq), or positions (k, 3) and quaternions (k, 4) of a link."""
    if link is None:
        points, last = [], start
        for word in via:
            given = read_by_name("via", (word,), robot.articulation)
            kept = dict(zip(robot.coords, last.tolist(), strict=True))
            followers = {*robot.coords} - {robot.coords[n] for n in robot.model.dof_coord[movable(robot.model)]}
            free = {name: value for name, value in kept.items() if name not in followers}
            last = initial_qpos(robot.compiled, {**free, **given}, [])
            points.append(last)
        return np.array(points), None
    poses = [read_tool_pose("--via", word) for word in via]
    if len({len(pose) for pose in poses}) > 1:
        raise UsageError("--via: give positions alone for all way points, or a rotation for each")
    table = np.array(poses)
    return table[:, :3], table[:, 3:] if table.shape[1] > 3 else None


def _limits_of(robot: Robot, option: str, words: tuple[str, ...]) -> dict[str, float] | None:
    """Limits by joint from [JOINT=]VALUE words."""
    if not words:
        return None
    given = read_by_name(option, words, robot.articulation)
    of_all = given.pop(ALL, None)
    every = {} if of_all is None else {robot.dofs[k]: of_all for k in movable(robot.model).tolist()}
    return {**every, **given}


def _tell(found: Trajectory, robot: Robot, output: Path, *, as_json: bool, quiet: bool) -> None:
    """Print the summary."""
    start = dict(zip(found.driven, found.inputs()["target"][0].tolist(), strict=True))
    summary = {
        "duration": found.duration,
        "rows": len(found.time),
        "way_points": found.way_points.tolist(),
        "used": {kind: dict(shares) for kind, shares in found.used.items()},
        "start": start,
        "output": str(output),
    }
    if as_json:
        click.echo(json.dumps(summary))
    elif not quiet:
        times = ", ".join(f"{time:.3g}" for time in found.way_points[:8]) + (", …" * (len(found.way_points) > 8))
        lines = [f"{found.duration:.4g} s through {len(found.way_points)} way points ({times} s)", _used(found)]
        words = ",".join(f"{name}={value:.9g}" for name, value in start.items())
        lines += [f"wrote {output_in_words(output)} ({len(found.time)} rows); it begins at --q0 {words}"]
        for line in lines:
            click.echo(printable(line), err=True)


def _used(found: Trajectory) -> str:
    """The limits that are reached, and else the largest shares."""
    parts = []
    for kind, shares in found.used.items():
        full = [name for name, share in shares.items() if (kind, name) in found.reached]
        if full:
            parts.append(f"{kind} of {', '.join(full[:6])}{', …' * (len(full) > 6)}")
        elif shares:
            name = max(shares, key=lambda each: shares[each])
            parts.append(f"{kind} up to {100.0 * shares[name]:.3g} % ({name})")
    return f"limits used: {'; '.join(parts)}"
