"""Settings that Python passes, in the form of RunConfig: Python numbers, values by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from artsim.sim.equipment.equip import labels_of
from artsim.sim.foundation.errors import ArtsimError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import read_angles
from artsim.sim.runs.settings import SETTINGS


def plain_settings(settings: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Settings in the form of RunConfig: Python numbers, values by name. Raises UsageError."""
    return {name: _plain(name, value, robot) for name, value in settings.items()}


def _plain(name: str, value: Any, robot: Robot) -> Any:
    try:
        return _in_form(name, value, robot)
    except ArtsimError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError):
        where = "; a file goes to controls=" if name == "control" and isinstance(value, str | os.PathLike) else ""
        raise UsageError(f"{name} is {value!r}, want numbers by name or in order{where}") from None


def _in_form(name: str, value: Any, robot: Robot) -> Any:
    """A setting in the form that its kind has; what is of another type stays, for RunConfig to refuse."""
    setting = SETTINGS.get(name)
    form, of = ("", "") if setting is None else (setting.kind.form, setting.kind.of)
    if form in _FORMS:
        return _FORMS[form](name, value)
    if form == "numbers" and isinstance(value, Mapping):
        return {key: float(number) for key, number in value.items()}
    if form == "numbers" and of in _IN_ORDER:
        return _in_order(name, np.asarray(value, float), of, robot)
    return value.item() if isinstance(value, np.generic) else value


_IN_ORDER = {"coord": "coords", "actuator": "controls", **dict.fromkeys(("dof", "aim", "gain", "joint"), "dofs")}
"""The names whose order an array of values has, by the kind of names of a setting."""


def _in_order(name: str, numbers: Array, of: str, robot: Robot) -> dict[str, float]:
    """An array of values by name: one for all, or in the order of the robot, with or without joints that follow."""
    if numbers.ndim == 0 and of in ("gain", "joint"):
        return {"*": float(numbers)}
    names: tuple[str, ...] = getattr(labels_of(robot.articulation) if of == "actuator" else robot.labels, _IN_ORDER[of])
    if names is robot.labels.dofs and numbers.shape == (len(robot.independent_dofs),):
        names = robot.independent_dofs
    if numbers.shape != (len(names),):
        raise UsageError(f"{name} has shape {numbers.shape}, want ({len(names)},): {', '.join(names[:8])}")
    return dict(zip(names, numbers.tolist(), strict=True))


def _texts(name: str, value: Any) -> Any:
    """A text or a point, or these by link."""
    if isinstance(value, Mapping):
        return {key: _point(at) for key, at in value.items()}
    return _point(value) if isinstance(value, Sequence | np.ndarray) else value


def _point(at: str | Sequence[float] | Array) -> str:
    """A point of a link as a configuration has it."""
    return at if isinstance(at, str) else ",".join(repr(float(x)) for x in at)


def _push(link: str, impulse: Sequence[float], time: float) -> str:
    """A push as a configuration has it."""
    return f"{link}={_point(impulse)}@{float(time)!r}"


def _places(name: str, value: Any) -> dict[str, tuple[float, ...]]:
    """Places or wrenches by name, or the place of the only free base."""
    places = value if isinstance(value, Mapping) else {"": value}
    return {key: tuple(map(float, place)) for key, place in places.items()}


def _angles(name: str, value: Any) -> dict[str, tuple[float, ...]]:
    return {key: read_angles(name, entry) for key, entry in value.items()}


def _of_constraints(name: str, value: Any) -> Any:
    """One number, or numbers by name; texts stay."""
    if isinstance(value, Mapping):
        return {key: entry if isinstance(entry, str) else float(entry) for key, entry in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _several(name: str, value: Any) -> Any:
    """A vector, or names; a single text stays."""
    if value is None or isinstance(value, str):
        return value
    return tuple(entry if isinstance(entry, str) else float(entry) for entry in value)


_FORMS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("vector", "names"), _several),
    **dict.fromkeys(("places", "wrenches"), _places),
    **dict.fromkeys(("numbers of followers", "numbers of constraints"), _of_constraints),
    "angles": _angles,
    "texts of links": _texts,
    "pushes": lambda name, value: tuple(entry if isinstance(entry, str) else _push(*entry) for entry in value),
}
"""How Python's values become those of a RunConfig, by the form of a setting's kind."""
