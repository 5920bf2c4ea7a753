"""The options that make a RunConfig, one for each line of the table of settings; which value takes precedence."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import click

from artsim.cli.grouped import READING, Groups, grouped
from artsim.cli.numbers import Seconds
from artsim.cli.setting_options import option_of
from artsim.cli.words import READERS, control_files, names_for, stored_by_name
from artsim.io.inputs.control_files import links_pushed
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import SettingError, UsageError, nearest
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import time_step
from artsim.sim.runs.reading import OF_MODEL
from artsim.sim.runs.setting import MAX_STEPS
from artsim.sim.runs.settings import SETTINGS
from artsim.sim.runs.wrench_inputs import with_links

R = TypeVar("R")

_BESIDE = {
    "steps": ("duration",),
    "every": ("output", "html", "plot", "force", "config"),
    "activation": ("place",),
    "coupling_erp": ("loops",),
    "self_collide": ("srdf",),
}
"""Options that are no settings of a run, by the setting after which the help has them."""

GROUPS: Groups = {
    "Samples": ("samples", "start", "spread", "velocity_spread", "randomise", "until", "cost", "policy", "hold"),
    **grouped(SETTINGS, _BESIDE),
    **READING,
    "Output": ("as_json", "quiet", "verbose", "compress", "checkpoint", "resume", "converge"),
    "Speed": ("threads",),
}
"""The options of each group by the names of their parameters, in the order of the help: of run, rollout and bench."""

DURATION = click.option(
    "--duration", type=Seconds(0, min_open=True), help="Simulated time [s] (or 500ms, 2min), given instead of --steps."
)


def run_options(
    command: Callable[..., R], otherwise: Mapping[str, Any] = {}, without: Collection[str] = ()
) -> Callable[..., R]:
    """Add the options of a run but for those with which models are read; `run_config` makes the RunConfig of them.

    `otherwise`: by setting, arguments of click.option that a command has in place of those of `artsim run`; `without`:
    names of options that it lacks.
    """
    for name, setting in reversed(SETTINGS.items()):
        if name not in OF_MODEL and name not in without:
            command = option_of(name, setting, **otherwise.get(name, {}))(command)
    return command if "duration" in without else DURATION(command)


def run_config(
    ctx: click.Context, options: Mapping[str, Any], stored: Mapping[str, Any], articulation: Articulation, **more: Any
) -> RunConfig:
    """Make the configuration: typed values (or ARTSIM_…) take precedence over `stored`, and these over the defaults.

    Raises UsageError for unknown names and wrong lengths.
    """
    values = dict(stored)
    if was_typed(ctx, "keyframe"):
        for name in ("q0", "v0", "control", "activation"):  # a stored start belongs to another keyframe
            values.pop(name, None)
    duration = _duration(ctx, options, values)
    _refuse_unknown(ctx, values)
    names = functools.cache(functools.partial(names_for, articulation))
    values = {name: stored_by_name(name, value, names) for name, value in values.items()}
    for name in SETTINGS:
        if name in options and was_typed(ctx, name):
            reader = READERS.get(SETTINGS[name].kind.form)
            values[name] = options[name] if reader is None else reader(name, options[name], values.get(name), names)
    config = RunConfig.from_mapping({**values, **more})
    for file in control_files(options.get("control", ())):
        config = with_links(config, links_pushed(file, [link.name for link in articulation.links]))
    _refuse_idle(ctx, config)
    if duration is None:
        return config
    dt = config.dt or time_step(articulation)
    steps = duration / dt
    if not steps <= MAX_STEPS:
        raise UsageError(f"duration {duration:g} s is {steps:g} steps of {dt:g} s, more than {MAX_STEPS}")
    return replace(config, steps=max(1, round(steps)))


def _refuse_unknown(ctx: click.Context, stored: Mapping[str, Any]) -> None:
    """Raise SettingError for a stored name that is no setting."""
    for name in stored:
        if name not in SETTINGS:
            if name in {param.name for param in ctx.command.params} | {"package"}:
                raise SettingError(f"configuration: {name!r} is for the command line only", name)
            raise SettingError(f"configuration: {name!r} is not known{nearest(name, [*SETTINGS, 'duration'])}", name)


def _refuse_idle(ctx: click.Context, config: RunConfig) -> None:
    """Raise UsageError for a typed option that has no effect beside the others."""
    if was_typed(ctx, "coupling_frequency") and config.coupling != "compliant":
        raise UsageError(f"--coupling-frequency is for --coupling compliant, not {config.coupling!r}")
    if was_typed(ctx, "on_ground") and not config.contacts:
        raise UsageError("--on-ground looks for the ground among contacts, which --no-contacts leaves out")
    if was_typed(ctx, "ground") and config.ground and not config.contacts:
        raise UsageError("--ground is for contacts, which --no-contacts leaves out")
    for name in ("ground_friction", "ground_height"):
        if was_typed(ctx, name) and not config.ground:
            raise UsageError(f"--{name.replace('_', '-')} is for --ground")


def was_typed(ctx: click.Context, name: str) -> bool:
    """True if an option was given on the command line or in the environment."""
    return ctx.get_parameter_source(name) not in (None, click.core.ParameterSource.DEFAULT)


def _duration(ctx: click.Context, options: Mapping[str, Any], values: dict[str, Any]) -> float | None:
    """The simulated time [s], typed or else stored (removed from `values`); typed steps override a stored duration."""
    if "steps" not in options:  # of a command without steps
        return None
    if was_typed(ctx, "steps") and was_typed(ctx, "duration"):
        raise UsageError("give --steps or --duration, not both")
    stored: float | None = values.pop("duration", None)
    if stored is not None:
        if "steps" in values:
            raise UsageError("configuration: give steps or duration, not both")
        if isinstance(stored, bool) or not isinstance(stored, int | float) or not 0 < stored < math.inf:
            raise UsageError(f"duration is {stored!r}, want a finite number above 0")
    typed: float | None = options.get("duration")
    if typed is not None or was_typed(ctx, "steps"):
        return typed
    return stored
