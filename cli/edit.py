"""`artsim edit`: change a robot's description, and write it as a file, with a proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from artsim.cli.numbers import Number, number_of
from artsim.cli.options import OneModelOptions, model_options, refuse_own_input
from artsim.cli.terminal import warn
from artsim.cli.writing import Target, target_options, write_and_tell
from artsim.sim.foundation.errors import UsageError

if TYPE_CHECKING:
    from artsim.sim.articulation.description import Articulation

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


def _read_two_numbers(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> dict[str, tuple[float, float]]:
    """NAME=NUMBER,NUMBER words."""
    found, option = {}, param.opts[0]
    for word in words:
        name, text = _named(word, option)
        parts = text.split(",")
        if len(parts) != 2:
            raise UsageError(f"{option}: {word!r}, want {param.metavar}")
        found[name] = number_of(parts[0], option, "rad"), number_of(parts[1], option, "rad")
    return found


def _read_pairs(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> list[tuple[str, str]]:
    """LINK,LINK words."""
    pairs = [word.split(",") for word in words]
    for word, pair in zip(words, pairs, strict=True):
        if len(pair) != 2 or not all(pair):
            raise UsageError(f"{param.opts[0]}: {word!r}, want LINK,LINK")
    return [(first, second) for first, second in pairs]


def _read_names(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    """OLD=NEW words."""
    return dict(_named(word, param.opts[0]) for word in words)


def _read_kinds(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    """LINK=SHAPE words."""
    from artsim.loaders.fitting import KINDS

    found = _read_names(ctx, param, words)
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
    "--limits",
    multiple=True,
    metavar="JOINT=LOW,HIGH",
    callback=_read_two_numbers,
    help="New limits of a joint [rad, m].",
)
@_value_options
@click.option(
    "--gains",
    multiple=True,
    metavar="ACTUATOR=KP,KV",
    callback=_read_two_numbers,
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
    help="New name of all items called OLD (link, joint, geom, …); joint:OLD renames a joint alone.",
)
@click.option("--prefix", default="", metavar="TEXT", help="Text put before all names of the robot, as in left_.")
@target_options
@model_options
def edit(model: str, target: Target, load_options: OneModelOptions, **options: Any) -> None:
    """Change MODEL (URDF, MJCF or SDF) and write it to FILE: .urdf, .xml or .mjcf, .sdf.

    Edits act in the order of this list: branches are dropped first, and names prefixed last. Items that act on a
    removed link or joint are left out and named. FILE is then loaded and compared, as `artsim convert` does.
    """
    from artsim.loaders.load import load_articulation

    refuse_own_input(target.output, model)
    read = robot = load_articulation(model, **load_options)
    options["changes"] = {name: options.pop(name) for name in ("limits", "gains", *_VALUES)}
    for name, change in _edits().items():
        value = options[name]
        if value or isinstance(value, float):  # a height of 0 is one
            robot = change(robot, value)
    warn([str(note) for note in robot.notes if note not in read.notes])
    write_and_tell(robot, target, strict=load_options["strict"])


def _edits() -> Mapping[str, Callable[[Articulation, Any], Articulation]]:
    """The edits by option, in the order in which they act."""
    from artsim.loaders import base_edits, shape_edits
    from artsim.loaders.edits import with_fixed_joints, without_branches, without_shapes
    from artsim.loaders.mirror import mirrored
    from artsim.loaders.scene import prefixed
    from artsim.loaders.writers.changes import with_changes

    return {
        "drop": without_branches,
        "fix": with_fixed_joints,
        "no_collision": lambda robot, links: without_shapes(robot, "collision", links),
        "no_visual": lambda robot, links: without_shapes(robot, "visual", links),
        "changes": with_changes,
        "scale_mesh": shape_edits.with_mesh_scale,
        "solid": shape_edits.with_densities,
        "inertia": shape_edits.with_shape_inertia,
        "hull": shape_edits.with_hulls,
        "convex": shape_edits.with_convex_parts,
        "fit": shape_edits.with_primitives,
        "simplify": shape_edits.with_simpler_meshes,
        "contact_friction": shape_edits.with_contact_friction,
        "exclude": shape_edits.with_exclusions,
        "mirror": lambda robot, _: mirrored(robot),
        "base_joint": base_edits.with_base_joint,
        "lift": base_edits.lifted,
        "ground": base_edits.with_ground,
        "rename": base_edits.with_names,
        "prefix": prefixed,
    }
