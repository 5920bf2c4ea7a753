"""`artsim edit`: change a robot's description, and write it as a file, with a proof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from artsim.cli.numbers import number_of
from artsim.cli.options import OneModelOptions, model_options, refuse_own_input
from artsim.cli.terminal import warn
from artsim.cli.writing import Target, target_options, write_and_tell
from artsim.sim.foundation.errors import UsageError

_VALUES = {
    "mass": ("LINK", "mass of a link [kg]; its inertia grows with it"),
    "effort": ("JOINT", "largest force of a joint [N m, N]"),
    "velocity": ("JOINT", "velocity limit of a joint [rad/s, m/s]"),
    "damping": ("JOINT", "damping of a joint [N m s/rad, N s/m]"),
    "friction": ("JOINT", "dry friction of a joint [N m, N]"),
    "armature": ("JOINT", "rotor inertia of a joint [kg m², kg]"),
    "stiffness": ("JOINT", "stiffness of a joint's spring [N m/rad, N/m]"),
}


def _named(word: str, option: str) -> tuple[str, str]:
    name, equals, text = word.rpartition("=")
    if not equals or not name:
        raise UsageError(f"{option}: {word!r}, want NAME=VALUE")
    return name, text


def _read_numbers(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, float]:
    """NAME=VALUE words."""
    option = param.opts[0]
    return {name: number_of(text, option, "rad") for name, text in (_named(word, option) for word in words)}


def _read_places(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, float]:
    """NAME[=VALUE] words."""
    return _read_numbers(ctx, param, tuple(word if "=" in word else f"{word}=0" for word in words))


def _read_limits(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """NAME=LOW,HIGH words."""
    found = {}
    for word in words:
        name, text = _named(word, "--limits")
        ends = text.split(",")
        if len(ends) != 2:
            raise UsageError(f"--limits: {word!r}, want JOINT=LOW,HIGH")
        found[name] = number_of(ends[0], "--limits", "rad"), number_of(ends[1], "--limits", "rad")
    return found


def _value_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each value of links and joints."""
    for name, (of, meaning) in reversed(_VALUES.items()):
        text = f"New {meaning}; may be repeated."
        option = click.option(f"--{name}", multiple=True, metavar=f"{of}=VALUE", callback=_read_numbers, help=text)
        command = option(command)
    return command


@click.command(short_help="Change a robot, and write it as a file.")
@click.argument("model", metavar="MODEL")
@click.option(
    "--drop", multiple=True, metavar="LINK", help="Link, or pattern of links, to leave out, with all that it carries."
)
@click.option(
    "--fix",
    multiple=True,
    metavar="JOINT[=VALUE]",
    callback=_read_places,
    help="Joint, or pattern of joints, to fix at a coordinate [rad, m], by default 0; its followers are fixed with it.",
)
@click.option(
    "--no-collision",
    multiple=True,
    metavar="LINK",
    help="Link, or pattern of links, whose collision shapes are removed.",
)
@click.option(
    "--no-visual", multiple=True, metavar="LINK", help="Link, or pattern of links, whose visual shapes are removed."
)
@click.option(
    "--limits", multiple=True, metavar="JOINT=LOW,HIGH", callback=_read_limits, help="New limits of a joint [rad, m]."
)
@_value_options
@click.option("--prefix", default="", metavar="TEXT", help="Text put before all names of the robot, as in left_.")
@target_options
@model_options
def edit(
    model: str,
    drop: tuple[str, ...],
    fix: dict[str, float],
    no_collision: tuple[str, ...],
    no_visual: tuple[str, ...],
    limits: dict[str, tuple[float, float]],
    prefix: str,
    target: Target,
    load_options: OneModelOptions,
    **values: dict[str, float],
) -> None:
    """Change MODEL (URDF, MJCF or SDF) and write it to FILE: .urdf, .xml or .mjcf, .sdf.

    Branches are dropped first, then joints fixed, shapes removed, values set, and names prefixed. Items that act on a
    removed link or joint are left out and named. FILE is then loaded and compared, as `artsim convert` does.
    """
    from artsim.loaders.edits import with_fixed_joints, without_branches, without_shapes
    from artsim.loaders.load import load_articulation
    from artsim.loaders.scene import prefixed
    from artsim.loaders.writers.changes import Changes, with_changes

    refuse_own_input(target.output, model)
    read = load_articulation(model, **load_options)
    robot = without_branches(read, drop) if drop else read
    robot = with_fixed_joints(robot, fix) if fix else robot
    robot = without_shapes(robot, "collision", no_collision) if no_collision else robot
    robot = without_shapes(robot, "visual", no_visual) if no_visual else robot
    changes: Changes = {"limits": limits, **values}  # type: ignore[typeddict-item]
    robot = with_changes(robot, changes)
    robot = prefixed(robot, prefix) if prefix else robot
    warn([str(note) for note in robot.notes if note not in read.notes])
    write_and_tell(robot, target, strict=load_options["strict"])
