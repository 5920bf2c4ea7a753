"""Settings given from Python, in the form of RunConfig."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artsim.sim.equipment.equip import labels_of
from artsim.sim.foundation.errors import ArtsimError, UsageError
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import OF_COUPLINGS, TURNING, read_angles

_GAINS = ("stiffness", "damping", "drive_limit", "friction_coefficient", "joint_friction", "armature")
_OF_LIMITS = ("lower_limit", "upper_limit", "limit_stiffness", "limit_damping")
_BY_NAME = {
    "q0": "coords",
    "control": "actuators",
    **dict.fromkeys(("v0", "target", "target_velocity", "target_acceleration", "torque", *_GAINS, *_OF_LIMITS), "dofs"),
}
_OF_CONSTRAINTS = ("constraint_alpha", "constraint_beta")
_ONE_OR_BY_NAME = (*OF_COUPLINGS, *_OF_CONSTRAINTS, "drive_mode", "drive_limit_kind")
_OF_TARGETS = ("target", "target_velocity", "target_acceleration")
_OF_INDEPENDENT = ("v0", *_OF_TARGETS, "torque", *_GAINS[:3])  # also without the joints that follow


def plain_settings(settings: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Settings in the form of RunConfig. Raises UsageError."""
    return {name: _plain(name, value, robot) for name, value in settings.items()}


def _plain(name: str, value: Any, robot: Robot) -> Any:
    """A setting in the form of RunConfig: Python numbers, values by name. Raises UsageError for other types."""
    try:
        return _numbers_by_name(name, value, robot)
    except ArtsimError:
        raise
    except (TypeError, ValueError, AttributeError):
        where = "; a file goes to controls=" if name == "control" and isinstance(value, str | os.PathLike) else ""
        raise UsageError(f"{name} is {value!r}, want numbers by name or in order{where}") from None


def _point(at: str | Sequence[float]) -> str:
    """A point of a link as a configuration has it."""
    return at if isinstance(at, str) else ",".join(repr(float(x)) for x in at)


def _push(link: str, impulse: Sequence[float], time: float) -> str:
    """A push as a configuration has it."""
    return f"{link}={_point(impulse)}@{float(time)!r}"


def _numbers_by_name(name: str, value: Any, robot: Robot) -> Any:
    if name == "activation":
        return {key: float(number) for key, number in value.items()}
    if name in _ONE_OR_BY_NAME and isinstance(value, Mapping):
        return {key: entry if isinstance(entry, str) else float(entry) for key, entry in value.items()}
    if name == "wrench":
        return {key: tuple(map(float, numbers)) for key, numbers in value.items()}
    if name == "wrench_at":
        return {key: _point(at) for key, at in value.items()} if isinstance(value, Mapping) else _point(value)
    if name == "push":
        return tuple(entry if isinstance(entry, str) else _push(*entry) for entry in value)
    if name in TURNING:
        return {key: read_angles(name, entry) for key, entry in value.items()}
    if name == "base_pose":
        places = value if isinstance(value, Mapping) else {"": value}
        return {key: tuple(map(float, place)) for key, place in places.items()}
    if name not in _BY_NAME:
        if name in ("gravity", "record") and value is not None and not isinstance(value, str):
            return tuple(entry if isinstance(entry, str) else float(entry) for entry in value)
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Mapping):
        return {key: float(number) for key, number in value.items()}
    numbers = np.asarray(value, float)
    if numbers.ndim == 0 and name in (*_GAINS, *_OF_LIMITS[2:]):
        return {"*": float(numbers)}
    names = _names_of(robot, _BY_NAME[name])
    if name in _OF_INDEPENDENT and numbers.shape == (len(robot.independent_dofs),):
        names = robot.independent_dofs
    if numbers.shape != (len(names),):
        raise UsageError(f"{name} has shape {numbers.shape}, want ({len(names)},): {', '.join(names[:8])}")
    return dict(zip(names, numbers.tolist(), strict=True))


def _names_of(robot: Robot, kind: str) -> tuple[str, ...]:
    """Names of a robot's coordinates, dofs or actuators."""
    if kind == "actuators":
        return labels_of(robot.articulation).controls
    names: tuple[str, ...] = getattr(robot.labels, kind)
    return names
