"""The options of `artsim batch` that make a BatchConfig, and the checks that each of them has an effect."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from artsim.cli.grouped import READING, Groups, grouped
from artsim.cli.options import OneModelOptions
from artsim.cli.setting_options import option_of
from artsim.cli.words import pairs_of
from artsim.io.batches.configuration import BATCH_SETTINGS, NAMED, BatchConfig
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.angles import DEGREES, angle_or_number
from artsim.sim.foundation.errors import UsageError
from artsim.sim.quantities.catalogue import OF_CONSTRAINTS, WITH_WRENCH, needed_inputs, resolve

R = TypeVar("R")

_SCALES = {"velocity": "qvel", "acceleration": "qacc", "torque": "tau", "wrench": "wrench"}
_COUNT = re.compile("[0-9]{1,18}")


def names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Read NAME,NAME,…"""
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def read_grid(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
    """Read JOINT=LOW:HIGH:N words; the numbers stay texts that may have the suffix deg."""
    axes: dict[str, tuple[Any, ...]] = {}
    for word in words:
        name, equals, text = word.rpartition("=")
        ends = text.split(":")
        if not equals or len(ends) != 3 or not _COUNT.fullmatch(ends[2].strip()) or None in map(_quantity, ends[:2]):
            raise click.BadParameter(f"{word!r} is not JOINT=LOW:HIGH:N")
        if name in axes:
            raise click.BadParameter(f"{name!r} is named twice")
        axes[name] = (ends[0], ends[1], int(ends[2]))
    return axes


def read_start(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    """Read JOINT=VALUE words; the numbers stay texts that may have the suffix deg."""
    words = tuple(pair for word in words for pair in pairs_of(word))
    pairs = [word.rpartition("=") for word in words]
    for (name, _, text), word in zip(pairs, words, strict=True):
        if not name or _quantity(text) is None:
            raise click.BadParameter(f"{word!r} is not JOINT=VALUE")
    return {name: text for name, _, text in pairs}


def _quantity(text: str) -> float | None:
    """A finite number, in rad if it has the suffix deg; None for anything else."""
    try:
        value = angle_or_number(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _in_degrees(text: str) -> bool:
    return text.strip().endswith(DEGREES)


_HOW: Mapping[str, dict[str, Any]] = {
    "compute": {"callback": names},
    "links": {"callback": names},
    "grid": {"callback": read_grid},
    "q0": {"callback": read_start},
}

GROUPS: Groups = {
    **grouped(BATCH_SETTINGS, {"q0": ("output", "force", "base"), "at": ("loops",), "on_error": ("as_json", "quiet")}),
    "Speed and shards": ("threads", "chunk", "shards", "scheduler", "shard", "resume"),
    **READING,
}
"""The options of each group, in the order of the help."""


def batch_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of a batch; `batch_config` makes the BatchConfig of them."""
    for name, setting in reversed(BATCH_SETTINGS.items()):
        if setting.group:
            option = "compute" if name == "quantities" else name
            command = option_of(option, setting, **_HOW.get(option, {}))(command)
    return command


def batch_config(
    ctx: click.Context, model: str, options: Mapping[str, Any], load_options: OneModelOptions
) -> tuple[BatchConfig, list[str]]:
    """Make the configuration, with notes on options that the user may have overlooked.

    Raises UsageError, also for options without effect.
    """
    if not options["compute"]:
        raise UsageError(f"give --compute NAME,…; known: {NAMED}, derivatives")
    if model == "-" and options["input"] == "-":
        raise UsageError("MODEL and --input cannot both be standard input")
    load = {**load_options, "packages": {name: str(folder) for name, folder in load_options["packages"].items()}}
    load["mesh_root"] = None if load_options["mesh_root"] is None else str(load_options["mesh_root"])
    rest = {name: value for name, value in options.items() if name != "compute"}
    grid, start = rest.pop("grid"), rest.pop("q0")
    of_grid = [name for name, (low, high, _) in grid.items() if _in_degrees(low) or _in_degrees(high)]
    rest |= {
        "grid": {name: (_quantity(low), _quantity(high), count) for name, (low, high, count) in grid.items()},
        "q0": {name: _quantity(text) for name, text in start.items()},
        "degrees": (*of_grid, *(name for name, text in start.items() if _in_degrees(text))),
    }
    config = BatchConfig(model=model, load=load, quantities=options["compute"], **rest)
    return config, _check_scales(ctx, config)


def loops_left_open(articulation: Articulation, quantities: Sequence[str]) -> list[str]:
    """A warning about loops and equalities of tendons, of which the quantities of a tree know nothing."""
    if OF_CONSTRAINTS.issuperset(quantities):
        return []
    names = [loop.name for loop in articulation.loops if loop.active]
    names += [equality.name for equality in articulation.tendon_couplings]
    if not names:
        return []
    which = f"loop {names[0]!r} is" if len(names) == 1 else f"{len(names)} loops ({names[0]!r}, …) are"
    return [f"{which} left open: quantities are those of the tree"]


def _check_scales(ctx: click.Context, config: BatchConfig) -> list[str]:
    """Refuse scales that are not drawn or not used; note the inputs that are used but stay zero."""
    quantities = resolve(config.quantities)
    needed, notes = needed_inputs(quantities), []
    for name in ("seed", "distribution", *_SCALES):
        if config.samples is None and ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"--{name} is for --samples")
    for name, given in _SCALES.items() if config.samples is not None else ():
        used = given in needed or (given == "wrench" and not WITH_WRENCH.isdisjoint(quantities))
        if getattr(config, name) > 0 and not used:
            raise UsageError(f"--{name} does nothing: {', '.join(quantities)} needs no {given}")
        if getattr(config, name) == 0 and given in needed:
            notes.append(f"{given} is zero in every sample; --{name} draws it")
    return notes
