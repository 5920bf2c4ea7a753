"""Facts in an output beside its rows: what it says of the robot, of units and meanings, compared with what its own
content gives again. Who ran it, when and by which command cannot be made again; only the seal speaks for these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from artsim.io import schema
from artsim.io.reader import Difference, Output, attributes_of, read_texts, read_whole, reading
from artsim.io.recorder import model_record
from artsim.io.sampled_output import SampledOutput
from artsim.sim.articulation.description import Articulation

_LIMITS = ("joint_lower", "joint_upper", "joint_effort", "joint_velocity")
_FIELDS = {
    **{name: name for name in _LIMITS},
    "link": "links",
    "joint": "joints",
    "link_parent": "link_parents",
    "link_mass": "link_masses",
    "joint_type": "joint_types",
    "joint_parent": "joint_parents",
    "joint_child": "joint_children",
}
_OF_THE_MAKER = {
    "": {"created", "history"},
    "model": {"path", "warnings"},
    "provenance": {"command", "config", "cpu", "versions", "level", "threads", "steps"},
    "trajectory": {"steps_total"},  # compared with the plan (io/runs.py)
}
"""Attributes that say who made a file, and how, by group."""


def first_fact(output: Output, robot: Articulation) -> Difference | None:
    """The first fact of /model that is not that of the robot read from the file's own text, or None."""
    record = model_record(robot)
    group = output._file["model"]
    with reading(output.path):
        for name, field in _FIELDS.items():
            wanted = getattr(record, field)
            if name not in group or _content(output, group[name]) != _as_stored(wanted):
                return Difference(f"model/{name}", None, "")
        for name in ("name", "format", "sha256"):
            if output.model.get(name) != getattr(record, name):
                return Difference(f"model {name}", None, "")
    return None


def first_sampled_fact(output: SampledOutput, robot: Articulation) -> Difference | None:
    """The first fact of /model, or unit of a variable, that is another one where a batch or rollout is made again."""
    units = schema.entry_units(output.labels)
    with reading(output.path):
        for name in output.variables:
            told = attributes_of(output._file[output.group_name][name]).get("units")
            if told != schema.unit_of(output.variable(name), units):
                return Difference(f"{output.group_name}/{name} units", None, "")
    return first_fact(output, robot)


def _as_stored(values: tuple[Any, ...]) -> bytes | tuple[str, ...]:
    texts = all(isinstance(value, str) for value in values)
    return tuple(values) if values and texts else np.array(values, np.float64).tobytes()


def _content(output: Output, dataset: Any) -> bytes | tuple[str, ...]:
    if dataset.dtype.kind in "SO" and dataset.size:
        return read_texts(output.path, dataset)
    return np.asarray(read_whole(output.path, dataset)).tobytes()


def first_other(given: Output, again: Output) -> Difference | None:
    """The first dataset, attribute or label of a run made again that is missing or another one in the file given, or
    None. Rows are not compared, nor is what the file holds beside."""
    with reading(given.path), reading(again.path):
        left = dict(_items(given))
        for name, right in _items(again):
            if name not in left:
                return Difference(name, None, "")
            if (found := _first_attribute(name, left[name], right)) is not None:
                return found
            if hasattr(right, "dtype") and not _same_labels(given, left[name], again, right):
                return Difference(name, None, "")
    return None


def _same_labels(given: Output, left: Any, again: Output, right: Any) -> bool:
    """True if two datasets have the same type and, where they hold labels, the same ones; paths may be others."""
    if getattr(left, "dtype", None) != right.dtype or left.ndim != right.ndim:
        return False
    beside = right.dtype.kind != "O" or right.name.startswith(("/model/source", "/model/mesh"))
    return beside or read_texts(given.path, left) == read_texts(again.path, right)


def _items(output: Output) -> Iterator[tuple[str, Any]]:
    """The root, the groups and what is in them, by name."""
    yield "", output._file
    for name, group in output._file.items():
        yield name, group
        for inner, item in group.items() if not hasattr(group, "dtype") else ():
            yield f"{name}/{inner}", item


def _first_attribute(name: str, left: Any, right: Any) -> Difference | None:
    before, after = attributes_of(left), attributes_of(right)
    for key in after:
        if key not in _OF_THE_MAKER.get(name, ()) and before.get(key) != after.get(key):
            return Difference(f"{name} {key}".strip(), None, "")
    return None
