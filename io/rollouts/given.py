"""Given: starts and properties of samples that a user gives in place of drawn ones, in arrays or files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artsim.io.format.labels import FIXED_LABELS
from artsim.io.inputs.configurations import open_input
from artsim.io.inputs.control_arrays import npz_arrays
from artsim.io.inputs.control_files import check_readable
from artsim.io.rollouts.states import properties_of, settle, states_of
from artsim.sim.foundation.errors import ModelError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.varied import VARIED, components_of, part_labels, refuse_fixed, shape_of, unvaried

STATE = ("qpos", "qvel")
_AXES = {3: FIXED_LABELS["xyz"], 6: FIXED_LABELS["wrench"]}  # by the number of components
File = str | os.PathLike[str]

COLUMNS = {
    **{name: f"{name}_factor" for name in VARIED},
    "gravity": "gravity_vector",
    "centre": "centre_offset",
    "ground_height": "ground_height",
    "delay": "delay",
    "push": "push_impulse",
    "push_time": "push_time",
}
"""The variables of properties of samples, by their names in Variations."""


class Given(NamedTuple):
    """Values by sample, the first row of which is of sample number `first`."""

    first: int = 0
    starts: Mapping[str, Array] = {}  # of STATE: (n, nq), (n, nv)
    properties: Mapping[str, Array] = {}  # as Variations has them

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what is given."""
        return (*self.starts, *self.properties)

    def rows(self, name: str, start: int, stop: int) -> Array:
        """The values of samples start … stop."""
        values: Array = {**self.starts, **self.properties}[name][start - self.first : stop - self.first]
        return values

    @property
    def digest(self) -> str:
        """SHA-256 of all values, empty without any."""
        if not self.names:
            return ""
        digest = sha256()
        for name, values in {**self.starts, **self.properties}.items():
            digest.update(f"{name} {values.shape}".encode())
            digest.update(np.ascontiguousarray(values).data)
        return digest.hexdigest()


NOTHING = Given()


def refuse_unknown(where: str, name: str) -> None:
    """Raise UsageError for a name that is no property of samples."""
    if name not in COLUMNS:
        known = ", ".join(COLUMNS)
        raise UsageError(f"{where}: {name!r} is not known{nearest(name, tuple(COLUMNS))}; known: {known}")


def given_values(plan: Plan, samples: int, start: Any = None, properties: Mapping[str, Any] | None = None) -> Given:
    """Starts and properties of all samples from arrays, mappings or files.

    Args:
        start: coordinates (samples, nq); `qpos` and `qvel` by name, each an array or by the names of its entries; or a
            file of configurations, a run or a rollout, of which the final states are taken. One row is for all.
        properties: of COLUMNS by name, (samples, parts) or (parts,) for all.

    Raises UsageError, and the errors of open_input for a file.
    """
    for name in properties or {}:
        refuse_unknown("randomise", name)
    starts = {} if start is None else _starts(plan, samples, start)
    return Given(0, starts, properties_of(plan, properties or {}, samples, "randomise"))


def _starts(plan: Plan, samples: int, start: Any) -> dict[str, Array]:
    """The states at which samples start."""
    labels, where = plan.robot.labels, ""
    if isinstance(start, str | os.PathLike):
        start, where = _states_of_file(plan, samples, str(start)), f"{start}: "
    named = start if isinstance(start, Mapping) else {"qpos": start}
    for name in named:
        if name not in STATE:
            raise UsageError(f"start: {name!r} is not known{nearest(name, STATE)}; known: {', '.join(STATE)}")
    of_start, names = (plan.qpos, plan.qvel), (labels.coords, labels.dofs)
    given = [named.get(name) for name in STATE]
    made = [
        states_of(f"{where}start {name}", values, entries, default, samples)
        for name, values, entries, default in zip(STATE, given, names, of_start, strict=True)
    ]
    settle(plan, made[0], made[1], *given)
    return {name: values for name, values, own in zip(STATE, made, given, strict=True) if own is not None}


def _states_of_file(plan: Plan, samples: int, path: str) -> dict[str, Array]:
    """The states in a file, of which velocities may be missing: one for each sample, or one for all."""
    source = open_input(path, plan.robot.labels, (), (), wished=("qvel",))
    try:
        if source.rows not in (1, samples):
            raise UsageError(f"{path}: has {source.rows} rows for {samples} samples; want one for each, or one for all")
        sizes = dict(zip(STATE, (plan.robot.nq, plan.robot.nv), strict=True))
        found = {name: np.zeros((source.rows, sizes[name])) for name in STATE if name in source.inputs}
        source.read(0, source.rows, found)
    finally:
        source.close()
    return {name: values if source.rows > 1 or samples == 1 else values[0] for name, values in found.items()}


def property_file(plan: Plan, path: File, samples: int) -> dict[str, Any]:
    """The properties in a .npz file of arrays by name, or a .csv file of columns `mass.LINK`, `damping.JOINT`,
    `friction`, `gravity.x`, `centre.LINK.x`, `push.LINK.fx`; parts that have no column are as in the model.

    Raises UsageError: an unknown column or a wrong number of rows; MissingInputError, ModelError.
    """
    where = Path(path)
    check_readable(where)
    if where.suffix.lower() == ".npz":
        arrays, present = npz_arrays(where, COLUMNS.__contains__)
        for name in present:
            refuse_unknown(str(path), name)
        return dict(arrays)
    head, _, body = where.read_text("utf-8-sig").partition("\n")
    try:
        rows = np.array([[float(word) for word in line.split(",")] for line in body.splitlines() if line.strip()])
    except ValueError as error:
        raise ModelError(f"{path}: no table of numbers: {error}") from None
    columns = [word.strip() for word in head.split(",")]
    if rows.shape != (samples, len(columns)):
        raise UsageError(
            f"{path}: has shape {rows.shape}, want {(samples, len(columns))}: samples, columns of its head"
        )
    return _of_columns(plan, path, columns, rows)


def _of_columns(plan: Plan, path: File, columns: Sequence[str], rows: Array) -> dict[str, Any]:
    """The properties that the columns of a table give."""
    found: dict[str, Any] = {}
    for column, values in zip(columns, rows.T, strict=True):
        name, _, rest = column.partition(".")
        if name not in COLUMNS:
            raise UsageError(f"{path}: column {column!r} is of no property{nearest(name, tuple(COLUMNS))}")
        refuse_fixed(plan, [name])
        place = _place(plan, name, rest)
        if place is None:
            axes = ", ".join(_AXES.get(components_of(name), ()))
            known = ", ".join(part_labels(plan, name) or ())
            parts = [f"{what} {of}" for what, of in (("parts", known), ("axes", axes)) if of]
            raise UsageError(
                f"{path}: column {column!r} is of no part of this robot; known: {'; '.join(parts) or name}"
            )
        start = np.array(np.broadcast_to(unvaried(plan, name), (len(rows), *shape_of(plan, name))), float)
        found.setdefault(name, start)[(slice(None), *place)] = values
    return found


def _place(plan: Plan, name: str, rest: str) -> tuple[int, ...] | None:
    """The place of a column within a sample's values of a property, by what follows the name; None: there is none."""
    labels, part, axis = part_labels(plan, name), rest, ""
    if components_of(name):
        part, _, axis = rest.rpartition(".")
        if axis not in _AXES[components_of(name)]:
            return None
    ends = (_AXES[components_of(name)].index(axis),) if axis else ()
    if labels is None:
        return None if part else ends
    return (labels.index(part), *ends) if part in labels else None
