"""`artsim edit`: change a robot's description, and write it as a file, with a proof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import click

from artsim.cli.numbers import Number, number_of
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


def _read_pairs(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> list[tuple[str, str]]:
    """LINK,LINK words."""
    pairs = [word.split(",") for word in words]
    for word, pair in zip(words, pairs, strict=True):
        if len(pair) != 2 or not all(pair):
            raise UsageError(f"{param.opts[0]}: {word!r}, want LINK,LINK")
    return [(first, second) for first, second in pairs]


def _read_gains(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """ACTUATOR=KP,KV words."""
    found = {}
    for word in words:
        name, text = _named(word, "--gains")
        parts = text.split(",")
        if len(parts) != 2:
            raise UsageError(f"--gains: {word!r}, want ACTUATOR=KP,KV")
        found[name] = number_of(parts[0], "--gains", "rad"), number_of(parts[1], "--gains", "rad")
    return found


def _read_names(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    """OLD=NEW words."""
    return dict(_named(word, param.opts[0]) for word in words)


def _read_kinds(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    """LINK=SHAPE words."""
    from artsim.loaders.fitting import KINDS

    found = dict(_named(word, param.opts[0]) for word in words)
    for name, kind in found.items():
        if kind not in KINDS:
            raise UsageError(f"--fit: {name!r} has {kind!r}, want one of {', '.join(KINDS)}")
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
@click.option(
    "--gains",
    multiple=True,
    metavar="ACTUATOR=KP,KV",
    callback=_read_gains,
    help="New gains of a servo [N m/rad, N m s/rad]; may be repeated.",
)
@click.option(
    "--scale-mesh",
    multiple=True,
    metavar="LINK=FACTOR",
    callback=_read_numbers,
    help="Factor for the meshes of a link, or of a pattern of links: 0.001 for meshes in mm.",
)
@click.option(
    "--solid",
    multiple=True,
    metavar="LINK=VALUE",
    callback=_read_numbers,
    help="Link, or pattern of links, whose mass, centre of mass and inertia are those of its shapes at this density "
    "[kg/m³].",
)
@click.option(
    "--inertia",
    multiple=True,
    metavar="LINK",
    help="Link, or pattern of links, whose centre of mass and inertia are those of its shapes; its mass stays.",
)
@click.option(
    "--hull",
    multiple=True,
    metavar="LINK",
    help="Link, or pattern of links, whose collision meshes become their hulls.",
)
@click.option(
    "--convex",
    multiple=True,
    metavar="LINK",
    help="Link, or pattern of links, whose collision meshes become nearly convex parts (artsim[decompose]).",
)
@click.option(
    "--fit",
    multiple=True,
    metavar="LINK=SHAPE",
    callback=_read_kinds,
    help="Primitive around each collision mesh of a link, the smallest one: box, sphere, cylinder or capsule.",
)
@click.option(
    "--simplify",
    multiple=True,
    metavar="LINK=TRIANGLES",
    callback=_read_numbers,
    help="Most triangles of a collision mesh of a link, or of a pattern of links (artsim[simplify]).",
)
@click.option(
    "--contact-friction",
    multiple=True,
    metavar="LINK=VALUE",
    callback=_read_numbers,
    help="Sliding friction of the collision shapes of a link, or of a pattern of links.",
)
@click.option(
    "--exclude", multiple=True, metavar="LINK,LINK", callback=_read_pairs, help="Two links that never touch each other."
)
@click.option("--mirror", is_flag=True, help="Reflect the robot, left to right (y to -y), and exchange names of sides.")
@click.option(
    "--base-joint",
    type=click.Choice(("fixed", "floating", "planar")),
    help="Joint between the world and the robot's root.",
)
@click.option("--lift", type=Number(-1e6, 1e6), metavar="HEIGHT", help="Height by which the robot is moved up [m].")
@click.option("--ground", type=Number(-1e6, 1e6), metavar="HEIGHT", help="Height of a level ground that is added [m].")
@click.option(
    "--rename",
    multiple=True,
    metavar="OLD=NEW",
    callback=_read_names,
    help="New name of what is called OLD; joint:OLD means a joint alone.",
)
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
    gains: dict[str, tuple[float, float]],
    solid: dict[str, float],
    inertia: tuple[str, ...],
    scale_mesh: dict[str, float],
    hull: tuple[str, ...],
    convex: tuple[str, ...],
    fit: dict[str, str],
    simplify: dict[str, float],
    contact_friction: dict[str, float],
    exclude: list[tuple[str, str]],
    mirror: bool,
    base_joint: Literal["fixed", "floating", "planar"] | None,
    lift: float | None,
    ground: float | None,
    rename: dict[str, str],
    prefix: str,
    target: Target,
    load_options: OneModelOptions,
    **values: dict[str, float],
) -> None:
    """Change MODEL (URDF, MJCF or SDF) and write it to FILE: .urdf, .xml or .mjcf, .sdf.

    Edits act in the order of this list: branches are dropped first, and names prefixed last. Items that act on a
    removed link or joint are left out and named. FILE is then loaded and compared, as `artsim convert` does.
    """
    from artsim.loaders import base_edits, shape_edits
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
    changes: Changes = {"limits": limits, "gains": gains, **values}  # type: ignore[typeddict-item]
    robot = with_changes(robot, changes)
    robot = shape_edits.with_mesh_scale(robot, scale_mesh) if scale_mesh else robot
    robot = shape_edits.with_densities(robot, solid) if solid else robot
    robot = shape_edits.with_shape_inertia(robot, inertia) if inertia else robot
    robot = shape_edits.with_hulls(robot, hull) if hull else robot
    robot = shape_edits.with_convex_parts(robot, convex) if convex else robot
    robot = shape_edits.with_primitives(robot, fit) if fit else robot
    robot = shape_edits.with_simpler_meshes(robot, simplify) if simplify else robot
    robot = shape_edits.with_contact_friction(robot, contact_friction) if contact_friction else robot
    robot = shape_edits.with_exclusions(robot, exclude) if exclude else robot
    if mirror:
        from artsim.loaders.mirror import mirrored

        robot = mirrored(robot)
    robot = base_edits.with_base_joint(robot, base_joint) if base_joint else robot
    robot = base_edits.lifted(robot, lift) if lift is not None else robot
    robot = base_edits.with_ground(robot, ground) if ground is not None else robot
    robot = base_edits.with_names(robot, rename) if rename else robot
    robot = prefixed(robot, prefix) if prefix else robot
    warn([str(note) for note in robot.notes if note not in read.notes])
    write_and_tell(robot, target, strict=load_options["strict"])
