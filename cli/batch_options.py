"""The options that make a BatchConfig."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from artsim.cli.options import LoadOptions
from artsim.cli.run_options import read_gravity
from artsim.io.batches import ON_ERROR, BatchConfig
from artsim.io.sampling import DISTRIBUTIONS, UNIFORM
from artsim.sim.foundation.errors import UsageError
from artsim.sim.quantities.catalogue import GROUPS, QUANTITIES, needed_inputs, resolve

R = TypeVar("R")

KNOWN = ", ".join([*QUANTITIES, *GROUPS])
_SCALES = {"velocity": "qvel", "acceleration": "qacc", "torque": "tau", "wrench": "wrench"}
_WITH_WRENCH = {"external_force", "inverse_dynamics", "forward_dynamics"}


def names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """NAME,NAME,…"""
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def scale(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """A finite number from 0."""
    if not (math.isfinite(value) and value >= 0):
        raise click.BadParameter(f"{value:g} is not a finite number from 0")
    return value


def _scale(name: str, help_text: str) -> Any:
    return click.option(name, type=float, callback=scale, default=0.0, show_default=True, metavar="X", help=help_text)


BATCH_OPTIONS = (
    click.option(
        "--input",
        metavar="FILE",
        help="Configurations: .npy, .npz, .csv, .h5, FILE.h5:/dataset, or - for standard input.",
    ),
    click.option("--samples", type=click.IntRange(min=0), metavar="N", help="Draw this many configurations instead."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of what is drawn."),
    click.option(
        "--distribution",
        type=click.Choice(DISTRIBUTIONS),
        default=UNIFORM,
        show_default=True,
        help="Uniform within the joint limits, or normal about their middle.",
    ),
    _scale("--velocity", "Scale of drawn velocities [rad/s, m/s]."),
    _scale("--acceleration", "Scale of drawn accelerations [rad/s², m/s²]."),
    _scale("--torque", "Scale of drawn joint forces [N m, N]."),
    _scale("--wrench", "Scale of drawn wrenches on links [N, N m]."),
    click.option("--compute", callback=names, metavar="NAME,…", help=f"What to compute: {KNOWN}."),
    click.option("--reduced", is_flag=True, help="In independent coordinates: without followers of couplings."),
    click.option(
        "--at",
        type=click.Choice(["com", "origin"]),
        default="com",
        show_default=True,
        help="Jacobians, velocities and wrenches of a link: at its centre of mass or its frame's origin.",
    ),
    click.option("--links", callback=names, metavar="NAME,…", help="Links of link quantities; default: all."),
    click.option("--gravity", callback=read_gravity, metavar="X,Y,Z", help="Gravity [m/s²]; default: 0,0,-9.81."),
    click.option("--float32", is_flag=True, help="Store results with 7 digits, in half the space."),
    click.option("--packed", is_flag=True, help="Store lower triangles of symmetric matrices, row by row."),
    click.option(
        "--on-error",
        type=click.Choice(ON_ERROR),
        default="stop",
        show_default=True,
        help="Rows that cannot be computed hold NaN: exit code 3 (stop), or 0 and a warning (skip).",
    ),
)


def batch_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of a batch; `batch_config` makes the BatchConfig of them."""
    for option in reversed(BATCH_OPTIONS):
        command = option(command)
    return command


def batch_config(
    ctx: click.Context, model: str, options: Mapping[str, Any], load_options: LoadOptions
) -> tuple[BatchConfig, list[str]]:
    """The configuration, and what the user may have overlooked. Raises UsageError, also for what would do nothing."""
    if not options["compute"]:
        raise UsageError(f"give --compute NAME,…; known: {KNOWN}")
    if model == "-" and options["input"] == "-":
        raise UsageError("MODEL and --input cannot both be standard input")
    load = {**load_options, "packages": {name: str(folder) for name, folder in load_options["packages"].items()}}
    load["mesh_root"] = None if load_options["mesh_root"] is None else str(load_options["mesh_root"])
    rest = {name: value for name, value in options.items() if name != "compute"}
    config = BatchConfig(model=model, load=load, quantities=options["compute"], **rest)
    return config, _check_scales(ctx, config)


def _check_scales(ctx: click.Context, config: BatchConfig) -> list[str]:
    """What is drawn must be asked for, and be used; what is used and stays zero is worth a word."""
    quantities = resolve(config.quantities)
    needed, notes = needed_inputs(quantities), []
    for name in ("seed", "distribution", *_SCALES):
        if config.samples is None and ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"--{name} is for --samples")
    for name, given in _SCALES.items() if config.samples is not None else ():
        used = given in needed or (given == "wrench" and bool(_WITH_WRENCH & set(quantities)))
        if getattr(config, name) > 0 and not used:
            raise UsageError(f"--{name} does nothing: {', '.join(quantities)} needs no {given}")
        if getattr(config, name) == 0 and given in needed:
            notes.append(f"{given} is zero in every sample; --{name} draws it")
    return notes
