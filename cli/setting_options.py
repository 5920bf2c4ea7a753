"""Lines of the tables of settings as options of commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from artsim.cli.numbers import Number, Seconds, Whole, number_of
from artsim.sim.foundation.angles import plain_number
from artsim.sim.runs.setting import (
    FLAG,
    GAP,
    JOINT_WORDS,
    MAX_STEPS,
    NAMES,
    NUMBER,
    PAIR,
    TEXT,
    TEXT_OR_OF_JOINTS,
    VECTOR,
    WHOLE,
    Setting,
)

F = TypeVar("F", bound=Callable[..., Any])
_TIMES = ("dt",)  # settings that may have units of time


def option_of(name: str, setting: Setting, **otherwise: Any) -> Callable[[F], F]:
    """The option of a setting; `otherwise` are arguments of click.option in place of those that follow from it."""
    flag, default = f"--{name.replace('_', '-')}", setting.default
    how: dict[str, Any] = {"help": setting.meaning, "metavar": setting.metavar or setting.kind.metavar or None}
    if default is not None and setting.kind in (WHOLE, NUMBER, TEXT):
        how |= {"default": default, "show_default": bool(default != "")}
    if setting.kind is FLAG and default:
        flag = f"{flag}/--no-{flag[2:]}"
        how |= {"default": True, "show_default": True}
    elif setting.kind is FLAG:
        how["is_flag"] = True
    elif setting.kind is TEXT and setting.choices:
        how["type"] = click.Choice(list(setting.choices))
    elif setting.kind in (WHOLE, NUMBER):
        how["type"] = _type_of(setting, Seconds if name in _TIMES else Number)
    elif setting.kind is GAP:
        how |= {"is_flag": False, "flag_value": "0", "callback": read_gap}
    elif setting.kind is JOINT_WORDS:
        how |= {"is_flag": False, "flag_value": "*", "callback": read_joints}
    elif setting.kind is VECTOR:
        how["callback"] = read_gravity
    elif setting.kind not in (TEXT, PAIR, NAMES):
        how["multiple"] = True
    if kind := _names_in(name, setting, how["metavar"] or ""):
        how["shell_complete"] = partial(_complete_names, name, kind)
    if setting.kind is TEXT_OR_OF_JOINTS:
        how["metavar"] = f"[JOINT=]{'|'.join(setting.choices)}"
    return click.option(flag, **{**how, **otherwise})


def _names_in(name: str, setting: Setting, metavar: str) -> str:
    """The kind of names that a shell completes in the option's values; "" for none."""
    if name in ("record", "keyframe"):
        return name
    return "link" if "LINK" in metavar else setting.kind.of


def _complete_names(name: str, kind: str, ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
    from artsim.cli.completion import complete_names  # for a shell alone

    return complete_names(name, kind, incomplete)


def _type_of(setting: Setting, number: type[Number]) -> Number | Whole:
    """The numbers that an option takes; bounds beyond those of exact whole numbers are left to RunConfig."""
    bounds = setting.bounds
    least = None if bounds is None or bounds.least < -MAX_STEPS else bounds.least
    most = None if bounds is None or bounds.most >= MAX_STEPS else bounds.most
    if setting.kind is WHOLE:
        return Whole(*(None if end is None else int(end) for end in (least, most)))
    return number(least, most, min_open=bounds is not None and bounds.open)


def read_gap(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Read a length [m] that may be left out, in which case the next word is no number but, say, a MODEL."""
    try:
        gap = None if value is None else plain_number(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no gap in metres; give MODEL first, or --on-ground=0") from None
    return gap


def read_joints(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Read names of joints that may be left out, in which case the next word is a MODEL."""
    if value is not None and Path(value).suffix.lower() in (".urdf", ".xml", ".sdf", ".xacro", ".toml", ".h5"):
        raise click.BadParameter(f"{value!r} names no joints; give MODEL first, or --assemble='*'")
    return value


def read_gravity(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """Read X,Y,Z [m/s²]."""
    if value is None:
        return None
    numbers = tuple(number_of(word, "--gravity") for word in value.split(","))
    if len(numbers) != 3:
        raise click.BadParameter(f"got {len(numbers)} numbers, want 3: X,Y,Z")
    return numbers
