"""The schema of artsim's files: one table of all datasets with their dimensions, units and meanings.

Writers, readers, `artsim info` and the documentation use this table; a test compares it with real files. Names of a
robot's parts are labels stored in datasets and never HDF5 paths; the paths are the constants below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple  # 5 times as fast to define as a dataclass, and every run imports these

from artsim.io.format.model_variables import MODEL
from artsim.io.format.run_variables import RUN
from artsim.io.format.sample_variables import SAMPLES
from artsim.io.format.variable import Variable

SCHEMA_VERSION = "1.0"
CONVENTIONS = "CF-1.11 artsim-1"
RUNNING, COMPLETE, NON_FINITE, INTERRUPTED = 0, 1, 2, 3
ENDED = 4  # of samples, where they were to end
STATUS_MEANING = {
    RUNNING: "running, or left by a writer that was killed",
    COMPLETE: "complete",
    NON_FINITE: "stopped: non-finite state",
    INTERRUPTED: "interrupted",
}
TABLE: dict[str, Variable] = {**RUN, **SAMPLES, **MODEL}
TABLE |= {
    **{
        path.replace("final/", "checkpoint/"): variable
        if variable.dtype == "str" or path == "final/contact"
        else variable._replace(dims=("checkpoint", *variable.dims))
        for path, variable in TABLE.items()
        if path.startswith("final/")
    },
    "checkpoint/contact_count": Variable(
        ("checkpoint",), "1", "contacts", "i8", comment="their rows follow those of earlier checkpoints"
    ),
    "checkpoint/n_valid": Variable((), "1", "checkpoints written in full", "i8"),
}
"""Path -> variable. A label dataset `<group>/<dimension>` exists for every dimension a group uses (DIMENSIONS)."""

STATE = tuple(
    path.removeprefix("final/")
    for path, variable in TABLE.items()
    if path.startswith("final/") and variable.dtype != "str"
)
"""The variables of a state, in the order of the file."""


def _rows_of(group: str, dimension: str) -> tuple[str, ...]:
    """The variables of a group with this first dimension, in the order of the file."""
    paths = (path for path, variable in TABLE.items() if variable.dims[:1] == (dimension,))
    return tuple(path.removeprefix(f"{group}/") for path in paths if path.startswith(f"{group}/"))


RECORDED = tuple(name for name in _rows_of("trajectory", "time") if name != "time")
"""Every per-step variable that a run can record, in the order of the file, but for those of RAGGED_BY_NAME."""

CONTACT_TABLE = tuple(name for name in _rows_of("contact", "row") if name != "sample")
"""The recorded variables of a contact."""

SAMPLE_CONTACT_TABLE = ("sample", *CONTACT_TABLE)
"""The variables of a contact of a rollout."""

BATCHED = _rows_of("batch", "sample")
"""Every variable of many configurations, in the order of the file."""

IK_VARIABLES = _rows_of("ik", "sample")
"""Every variable of an inverse kinematics, in the order of the file."""

ROLLED = _rows_of("rollout", "sample")
"""Every variable of a rollout, in the order of the file."""


class Ragged(NamedTuple):
    """A group that holds a table with another number of rows in every step."""

    counted_by: str  # the variable that counts the rows of a step
    table: tuple[str, ...]
    labels: tuple[str, ...]  # dimensions with labels
    bytes: int  # of a row of the table


RAGGED = {
    "contact": Ragged("contact_count", CONTACT_TABLE, ("link", "geom", "xyz", "direction"), 160),
    "constraint": Ragged("constraint_count", _rows_of("constraint", "row"), ("constraint",), 40),
    "delassus": Ragged("entry_count", _rows_of("delassus", "row"), (), 32),
}
RAGGED_BY_NAME = {"contacts": ("contact",), "delassus": ("constraint", "delassus")}
"""The groups of RAGGED by the name in --record that asks for them."""

DEFAULT_RECORDED = tuple(name for name in RECORDED if not TABLE[f"trajectory/{name}"].on_request)
"""The variables that a run records by default."""

CONTROL_VALUES = ("torque", "target", "target_velocity", "target_acceleration", "control")


def dense_variable(name: str, group: str = "trajectory") -> Variable:
    """TABLE's entry of a recorded variable as returned in Python: Jacobians are dense."""
    variable = TABLE[f"{group}/{name}"]
    return variable._replace(dims=(*variable.dims[:-2], "link", "twist", "dof")) if name == "jacobian" else variable


def batch_variable(name: str, dims: Sequence[str]) -> Variable:
    """TABLE's entry of a batch variable whose rows have the dimensions `dims` (reduced, packed)."""
    variable = TABLE[f"batch/{name}"]
    reduced = any(dim.startswith("independent") and dim not in variable.dims for dim in dims)
    unit = re.sub(r"\b(dof|force)_units", r"independent_\1_units", variable.unit) if reduced else variable.unit
    return variable._replace(dims=("sample", *dims), unit=unit)


def sample_input(name: str) -> Variable:
    """TABLE's entry of an input that differs between the samples of a rollout."""
    variable = TABLE[f"controls/{name}"]
    return variable._replace(dims=("sample", *variable.dims))
