"""InputTable, a control file as numbers, and the names that its columns may have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.errors import ModelError, UsageError, nearest
from artsim.sim.foundation.rotations import Real

SUFFIXES = {
    "torque": "torque",
    "target": "target",
    "velocity": "target_velocity",
    "acceleration": "target_acceleration",
}


class Names(NamedTuple):
    """Names of the possible inputs: dofs, and controls of actuators, of which wrenches on links are the last."""

    dofs: tuple[str, ...]
    actuators: tuple[str, ...]


class InputTable(NamedTuple):
    """A control file as numbers: times (rows,) [s], per kind of input the dofs (or actuators) and values (rows, n)."""

    time: Real
    columns: Mapping[str, tuple[list[int], Real]]


def check_time(path: Path, time: Real, row_name: str) -> None:
    """Raise ModelError unless times are finite, not negative and increasing."""
    if time.size == 0:
        raise ModelError(f"{path}: holds no row")
    bad = np.flatnonzero(~np.isfinite(time) | (time < 0))
    if bad.size:
        raise ModelError(f"{path}: {row_name} {bad[0] + 1}: time is {time[bad[0]]}; times are finite and start at 0")
    back = np.flatnonzero(np.diff(time) <= 0)
    if back.size:
        row = int(back[0]) + 1
        raise ModelError(
            f"{path}: {row_name} {row + 1}: time {time[row]} does not follow {time[row - 1]}; times increase"
        )


def index_of(path: Path | str, kind: str, name: str, names: tuple[str, ...]) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise UsageError(f"{path}: unknown {kind} {name!r}{nearest(name, names)}") from None
