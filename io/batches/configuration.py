"""BatchConfig, the configuration of a batch, checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, field, fields
from typing import Any

from artsim.io.inputs.grid import Axis
from artsim.io.inputs.sampling import UNIFORM
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.quantities.catalogue import QUANTITIES, SYMMETRIC, WITH_WRENCH, resolve

ON_ERROR = ("stop", "skip")


@dataclass(frozen=True)
class BatchConfig:
    """The configuration of a batch: quantities, source of rows and how the robot is loaded; enough to repeat it.

    Raises UsageError: contradictory values, or values of a wrong type (they may come from a file).
    """

    model: str = "-"  # file
    load: Mapping[str, Any] = field(default_factory=dict)  # options of load_articulation
    gravity: tuple[float, ...] | None = None  # (3,) [m/s²]; None: the file's
    quantities: tuple[str, ...] = ()
    reduced: bool = False
    at: str = "com"
    links: tuple[str, ...] | None = None  # names and patterns; None: all
    packed: bool = False
    float32: bool = False
    input: str | None = None  # as for --input; alternatively
    samples: int | None = None
    grid: Mapping[str, Axis] = field(default_factory=dict)  # by coordinate
    q0: Mapping[str, float] = field(default_factory=dict)  # the other coordinates of a grid, by name or pattern
    degrees: tuple[str, ...] = ()  # names in grid and q0 whose values were given in degrees: joints that turn
    seed: int = 0
    distribution: str = UNIFORM
    velocity: float = 0.0  # scales of drawn inputs [rad/s, m/s]
    acceleration: float = 0.0  # [rad/s², m/s²]
    torque: float = 0.0  # [N m, N]
    wrench: float = 0.0  # [N, N m]
    on_error: str = "stop"

    def __post_init__(self) -> None:
        for f in fields(self):
            check_type(f.name, getattr(self, f.name))
        names = resolve(self.quantities)
        given = (self.input is not None) + (self.samples is not None) + bool(self.grid)
        if given != 1:
            only = ", only one of them" if given else ""
            raise UsageError(f"give --input FILE, --samples N or --grid JOINT=LOW:HIGH:N{only}")
        if self.q0 and not self.grid:
            raise UsageError("--q0 is for the coordinates that --grid leaves out")
        if self.gravity is not None and not (len(self.gravity) == 3 and all(map(math.isfinite, self.gravity))):
            raise UsageError("gravity: want three finite numbers X,Y,Z in m/s²")
        if self.packed and not set(names) & set(SYMMETRIC):
            raise UsageError(f"--packed is for {', '.join(SYMMETRIC)}; none of them is computed")
        if self.links is not None:
            of_links = any("link" in QUANTITIES[name].dims or "wrench" in QUANTITIES[name].inputs for name in names)
            if not of_links and WITH_WRENCH.isdisjoint(names):
                raise UsageError(f"--links is for quantities of links; {', '.join(names)} has none")
            if not self.links:
                raise UsageError("--links names no link")
            if len(set(self.links)) < len(self.links):
                raise UsageError("--links names a link twice")
        if self.on_error not in ON_ERROR:
            raise UsageError(f"on_error {self.on_error!r} is not known{nearest(self.on_error, ON_ERROR)}")

    def to_json(self) -> str:
        """The configuration as one JSON object."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> BatchConfig:
        """Read a configuration that `to_json` wrote. Raises UsageError."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise UsageError("batch configuration: not JSON") from None
        if not isinstance(content, dict):
            raise UsageError("batch configuration: not a JSON object")
        known = [f.name for f in fields(cls)]
        for name, value in content.items():
            if name not in known:
                raise UsageError(f"batch configuration: {name!r} is not known{nearest(name, known)}")
            if isinstance(value, list):
                content[name] = tuple(value)
        if isinstance(content.get("grid"), dict):
            content["grid"] = {
                key: tuple(axis) if isinstance(axis, list) else axis for key, axis in content["grid"].items()
            }
        return cls(**content)


_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("model", "at", "distribution", "on_error"), (str,)),
    **dict.fromkeys(("reduced", "packed", "float32"), (bool,)),
    **dict.fromkeys(("velocity", "acceleration", "torque", "wrench"), (int, float)),
    "load": (dict,),
    "quantities": (tuple,),
    "gravity": (tuple, type(None)),
    "links": (tuple, type(None)),
    "input": (str, type(None)),
    "samples": (int, type(None)),
    "grid": (dict,),
    "q0": (dict,),
    "degrees": (tuple,),
    "seed": (int,),
}
_ENTRIES: Mapping[str, type | tuple[type, ...]] = {
    "gravity": (int, float),
    "links": str,
    "quantities": str,
    "degrees": str,
}


def check_type(name: str, value: object) -> None:
    right = isinstance(value, _TYPES[name]) and (isinstance(value, bool) == (_TYPES[name] == (bool,)))
    if name in _ENTRIES and isinstance(value, tuple):
        right = right and all(isinstance(entry, _ENTRIES[name]) for entry in value)
    if name == "grid" and isinstance(value, dict):
        right = all(isinstance(axis, tuple) and len(axis) == 3 for axis in value.values())
    if not right:
        raise UsageError(f"batch configuration: {name} is {value!r}")
