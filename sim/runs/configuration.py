"""The configuration of a run: names and numbers as a user gives them; plan.py resolves them for a robot.

Every output stores its RunConfig as plain JSON, from which `--config` and `replay` run it again; all names are resolved
to numbers except where the value is a name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from artsim.sim.foundation.angles import angle_or_number, plain_number
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import SettingError, UsageError, nearest
from artsim.sim.run_data.controllers import CONTROLLERS, Controller
from artsim.sim.run_data.run_records import RECORDED
from artsim.sim.runs.setting import AXES
from artsim.sim.runs.settings import DEFAULT_RECORD, LEAST_DT, SETTINGS, TIME_STEPS, Angles, Settings

NO_RECORD = "none"
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True)
class RunConfig(Settings):
    """The configuration of a run: its settings, checked."""

    def __post_init__(self) -> None:
        for name, setting in SETTINGS.items():
            if (value := getattr(self, name)) is not setting.default:
                setting.check(name, value)
        if self.dt is not None and self.dt < LEAST_DT:
            raise SettingError(f"dt is {self.dt}, want {TIME_STEPS.words}", "dt")
        if self.controller not in CONTROLLERS and not self.is_python:
            raise SettingError(
                f"controller {self.controller!r} is not known{nearest(self.controller, CONTROLLERS)}", "controller"
            )
        for name in self.record:
            if name not in RECORDED:
                raise SettingError(f"cannot record {name!r}{nearest(name, RECORDED)}", "record")
        if self.coupling == "compliant" and self.coupling_frequency in (None, {}):
            raise SettingError("coupling 'compliant' needs --coupling-frequency HZ", "coupling")

    @property
    def is_maximal(self) -> bool:
        """True if the run uses maximal coordinates."""
        return self.coordinates == "maximal"

    @property
    def built_in(self) -> Controller:
        """The built-in controller, or one without effect."""
        return CONTROLLERS.get(self.controller, CONTROLLERS["none"])

    @property
    def is_python(self) -> bool:
        """True if the controller is a function of a Python file."""
        return ".py:" in self.controller

    def to_json(self) -> str:
        """The configuration as one JSON object."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        """Read a configuration that `to_json` wrote. Raises UsageError for anything else."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"configuration is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise UsageError("configuration is not a JSON object")
        return cls.from_mapping(content)

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> RunConfig:
        """Make a configuration from plain values. Raises UsageError for an unknown name or a wrong type."""
        for name in content:
            if name not in SETTINGS:
                raise SettingError(f"configuration: {name!r} is not known{nearest(name, SETTINGS)}", name)
        values = {name: SETTINGS[name].kind.plain(value) for name, value in content.items()}
        record = values.get("record")
        if isinstance(record, tuple) and any(isinstance(name, str) and name.startswith("+") for name in record):
            values["record"] = record_names(record)
        try:
            return cls(**values)
        except TypeError as error:
            raise UsageError(f"configuration: {error}") from error


def read_angles(setting: str, entry: object, what: str = "") -> Angles:
    """The numbers of a joint's limit of swing or twist, or axis of twist, given as numbers or as words: "30deg,20deg",
    "-1:1", "z". Raises SettingError, whose message begins with `what`, by default the setting."""
    if setting == "twist_axis" and isinstance(entry, str) and entry in _AXES:
        return _AXES[entry]
    parts: list[Any] = [entry]
    if isinstance(entry, str):
        parts = [*entry.split(":" if setting == "twist_limit" else ",")]
    elif not isinstance(entry, int | float):
        parts = list(entry) if isinstance(entry, Iterable) else []
    if setting == "swing_limit" and len(parts) == 1:
        parts = parts * 2
    read = plain_number if setting == "twist_axis" else angle_or_number
    try:
        numbers = tuple(read(part) if isinstance(part, str) else float(part) for part in parts)
    except (TypeError, ValueError):
        numbers = ()
    declared = SETTINGS[setting]
    if len(numbers) != (3 if declared.kind is AXES else 2) or not all(map(math.isfinite, numbers)):
        form = declared.metavar.removeprefix("JOINT=")
        raise SettingError(f"{what or setting}: got {entry!r}, want {form}", setting)
    return numbers


def record_names(names: Sequence[Any], default: Sequence[str] = DEFAULT_RECORD) -> tuple[Any, ...]:
    """The variables to record, in the order of the file. "+NAME" adds to the default, "none" alone stands for none;
    entries that are no names stay, and are refused later."""
    if tuple(names) == (NO_RECORD,):
        return ()
    if not all(isinstance(name, str) for name in names):
        return tuple(names)
    added = [name.removeprefix("+") for name in names]
    if any(name.startswith("+") for name in names):
        added = [*default, *added]
    known = [name for name in RECORDED if name in added]
    return (*known, *(name for name in added if name not in RECORDED))
