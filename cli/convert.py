"""`artsim convert`: write a robot in another format, and prove that the file says the same."""

from __future__ import annotations

import click

from artsim.cli.options import OneModelOptions, model_options, refuse_own_input, set_arguments
from artsim.cli.writing import Target, target_options, write_and_tell


@click.command(short_help="Write a robot in another format, with a proof.")
@click.argument("model", metavar="MODEL")
@click.argument("arguments", nargs=-1, metavar="[NAME:=VALUE]…")
@target_options
@model_options
def convert(model: str, arguments: tuple[str, ...], target: Target, load_options: OneModelOptions) -> None:
    """Write MODEL (URDF, MJCF or SDF, or - for standard input) to FILE in another format.

    The file is then loaded and compared with MODEL: fields one by one, and the mass matrix, gravity and bias forces,
    the places of links and the depths of contacts at random states. What the format cannot say is listed; --strict
    refuses to write without what affects motion, forces or contacts.
    """
    from artsim.loaders.load import load_articulation

    set_arguments(load_options, arguments)
    refuse_own_input(target.output, model)
    write_and_tell(load_articulation(model, **load_options), target, strict=load_options["strict"])
