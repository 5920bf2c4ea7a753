"""BatchConfig and the one table of the settings of a batch, from which `artsim batch` has its options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from artsim.io.inputs.configurations import is_stream
from artsim.io.inputs.grid import Axis
from artsim.io.inputs.sampling import DISTRIBUTIONS, UNIFORM
from artsim.io.shards.shards import absolute
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import SettingError, UsageError, nearest
from artsim.sim.quantities.catalogue import DERIVATIVES, GROUPS, QUANTITIES, SYMMETRIC, WITH_WRENCH, resolve
from artsim.sim.runs.reading import COMMON
from artsim.sim.runs.setting import FROM_0, NAMES, NUMBERS, TEXT, WHOLE, Bounds, Group, Kind, by_name, settings_of
from artsim.sim.runs.settings import SETTINGS

KNOWN = ", ".join([*QUANTITIES, *GROUPS])
NAMED = ", ".join(name for name in (*QUANTITIES, *GROUPS) if name not in DERIVATIVES and "deriv" not in name)
"""Those that a message has room for."""
SEEDS = Bounds("a whole number from 0", 0)
GRID = by_name(
    "grid", "LOW, HIGH, N by joint", lambda axis: isinstance(axis, tuple) and len(axis) == 3, "JOINT=LOW:HIGH:N"
)
LOADING = Kind("loading", "options by name", lambda value: isinstance(value, dict))

DRAWN = Group("Drawn rows")
RESULTS = Group("Results")
NO_OPTION = Group("")  # which follow from other words of the command


@dataclass(frozen=True)
class BatchConfig:
    """The configuration of a batch: quantities, source of rows and how the robot is loaded; enough to repeat it.

    Raises UsageError: contradictory values, or values of a wrong type (they may come from a file).
    """

    model: str = NO_OPTION("-", "File of the model.")
    load: Mapping[str, Any] = NO_OPTION(LOADING, "Options of load_articulation.")
    degrees: tuple[str, ...] = NO_OPTION((), "Names in grid and q0 with values in degrees: joints that turn.", NAMES)

    quantities: tuple[str, ...] = COMMON(
        (),
        f"Quantities to compute: {KNOWN}. (delassus is K = J M⁻¹ Jᵀ of couplings, loops and equalities of "
        "tendons; with contacts, limits and drives: `artsim run --record +delassus`. Names in _dq, _dv, _dtau are "
        "derivatives by position, velocity, force.)",
        NAMES,
    )
    samples: int | None = COMMON(
        None, "Number of random configurations to draw instead of reading --input.", WHOLE, bounds=SEEDS, metavar="N"
    )
    input: str | None = COMMON(
        None,
        "Configurations to compute: .npy, .npz, .csv, .h5, FILE.h5:/dataset, or - for standard input.",
        TEXT,
        metavar="FILE",
    )
    grid: Mapping[str, Axis] = COMMON(
        GRID,
        "Compute N evenly spaced values of a joint [rad, m, or with a suffix: -90deg:90deg:19]; of several joints "
        "every combination, the last one fastest.",
    )
    q0: Mapping[str, float] = COMMON(
        NUMBERS,
        "Coordinates of the joints that --grid leaves out; default: the pose of the file.",
        metavar="JOINT=VALUE",
    )
    gravity: tuple[float, ...] | None = SETTINGS["gravity"].field()
    links: tuple[str, ...] | None = COMMON(
        None, "Links for which link quantities are computed, names or patterns ('*_foot'); default: all.", NAMES
    )
    at: str = COMMON(
        "com",
        "Reference point of link Jacobians, velocities and wrenches: the centre of mass or the frame's origin.",
        choices=("com", "origin"),
    )

    seed: int = DRAWN(0, "Seed of the random numbers of --samples.", bounds=SEEDS)
    distribution: str = DRAWN(
        UNIFORM,
        "Distribution of drawn coordinates: uniform within the joint limits, or normal about their middle.",
        choices=DISTRIBUTIONS,
    )
    velocity: float = DRAWN(0.0, "Scale of drawn velocities [rad/s, m/s].", bounds=FROM_0, metavar="X")
    acceleration: float = DRAWN(0.0, "Scale of drawn accelerations [rad/s², m/s²].", bounds=FROM_0, metavar="X")
    torque: float = DRAWN(0.0, "Scale of drawn joint forces [N m, N].", bounds=FROM_0, metavar="X")
    wrench: float = DRAWN(0.0, "Scale of drawn wrenches on links [N, N m].", bounds=FROM_0, metavar="X")

    reduced: bool = RESULTS(False, "Give results in independent coordinates, without the followers of couplings.")
    packed: bool = RESULTS(False, "Store symmetric matrices as their lower triangles, row by row.")
    float32: bool = RESULTS(False, "Store results in single precision (7 digits), in half the space.")
    on_error: str = RESULTS(
        "stop",
        "What follows rows that cannot be computed and hold NaN: exit code 3 (stop), or 0 and a warning (skip).",
        choices=("stop", "skip"),
    )

    def __post_init__(self) -> None:
        for name, setting in BATCH_SETTINGS.items():
            setting.check(name, getattr(self, name))
        names = resolve(self.quantities)
        given = (self.input is not None) + (self.samples is not None) + bool(self.grid)
        if given != 1:
            only = ", only one of them" if given else ""
            raise UsageError(f"give --input FILE, --samples N or --grid JOINT=LOW:HIGH:N{only}")
        if self.q0 and not self.grid:
            raise UsageError("--q0 is for the coordinates that --grid leaves out")
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
        for name, value in content.items():
            if name not in BATCH_SETTINGS:
                raise UsageError(f"batch configuration: {name!r} is not known{nearest(name, BATCH_SETTINGS)}")
            content[name] = BATCH_SETTINGS[name].kind.plain(value)
        try:
            return cls(**content)
        except SettingError as error:
            raise UsageError(f"batch configuration: {error}") from None


def for_workers(config: BatchConfig) -> BatchConfig:
    """The configuration with absolute file names, for other processes. Raises UsageError if it reads a stream."""
    if config.model == "-" or is_stream(config.input or ""):
        raise UsageError("--scheduler: workers cannot read standard input; name the file")
    load = dict(config.load)
    load["packages"] = {name: absolute(folder) for name, folder in (load.get("packages") or {}).items()}
    for name in ("mesh_root", "loops"):
        load[name] = absolute(load[name]) if load.get(name) else None
    given = None if config.input is None else absolute(config.input)
    return replace(config, model=absolute(config.model), input=given, load=load)


OPTIONS = {
    "artsim": "the version of artsim",
    "model": "the text of MODEL",
    "base": "--base",
    "balance_inertia": "--balance-inertia",
    "ignore_unsupported": "--ignore-unsupported",
    "density": "--density",
    "gravity": "--gravity",
    "quantities": "--compute",
    "links": "--links",
    "reduced": "--reduced",
    "at": "--at",
    "packed": "--packed",
    "float32": "--float32",
    "source.kind": "the kind of input",
    "source.rows": "the number of rows",
    "source.seed": "--seed",
    "source.start": "--q0",
    "source.distribution": "--distribution",
    "source.scales.qvel": "--velocity",
    "source.scales.qacc": "--acceleration",
    "source.scales.tau": "--torque",
    "source.scales.wrench": "--wrench",
    "source.sha256": "the content of --input",
    "source.dataset": "--input",
}
"""The facts that determine the rows' bytes (Job.facts), with the option that sets each; in order of reporting."""

BATCH_SETTINGS = settings_of(BatchConfig)
"""The lines of the table by name, in the order of the help."""
