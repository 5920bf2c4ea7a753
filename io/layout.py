"""Lays out the groups of a file by the schema: labels with units, attributes, the robot."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from artsim.io import schema
from artsim.io.pieces import lay_out_pieces
from artsim.io.schema import Labels, Variable

if TYPE_CHECKING:
    from artsim.io.recorder import ModelRecord

Array = npt.NDArray[Any]

MOST_WARNINGS, MOST_LETTERS = 200, 500  # number and length of a model's warnings in an output


def lay_out_root(root: Any, title: str, command: str, created: str | None = None) -> None:
    """Write the attributes of the file itself; `created` (ISO 8601) defaults to now."""
    from artsim.io import hdf5

    created = created or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    hdf5.set_attributes(
        root,
        {
            "Conventions": schema.CONVENTIONS,
            "artsim_schema": schema.SCHEMA_VERSION,
            "title": title,
            "history": f"{created} {command}",
            "created": created,
        },
    )


class Section:
    """A group `name` of the schema that is being laid out; `datasets` collects the created ones by path."""

    def __init__(self, root: Any, name: str, labels: Labels, datasets: dict[str, Any] | None = None) -> None:
        from artsim.io import hdf5

        self.group = hdf5.Group(root, name)
        self.datasets: dict[str, Any] = {} if datasets is None else datasets
        self._name, self._labels = name, labels
        self._units = schema.entry_units(labels)

    def set_attributes(self, values: Mapping[str, str | int | float]) -> None:
        """Write attributes of the group."""
        from artsim.io import hdf5

        hdf5.set_attributes(self.group.id, values)

    def scales(self, dims: Iterable[str]) -> None:
        """Write the labels of these dimensions, the units along them, and the links and dofs of columns."""
        needed = dict.fromkeys(dims)
        for dim in needed:
            attributes = {"units": "1", "long_name": schema.DIMENSIONS[dim].meaning}
            self.group.fixed(dim, texts(schema.labels_of(dim, self._labels)), [dim], attributes)
        for name, values in self._units.items():
            if f"{self._name}/{name}" in schema.TABLE and schema.LABELS_OF_ENTRIES[name][0] in needed:
                self.fixed(name, texts(values))
        if "jacobian_column" in needed:
            for name in ("jacobian_link", "jacobian_dof"):
                self.fixed(name, np.array(getattr(self._labels, name), np.int32))

    def fixed(self, name: str, values: Any, *, gzip: bool = False, variable: Variable | None = None) -> None:
        """Write a dataset of the schema with its values; `variable` replaces the schema's entry."""
        path = f"{self._name}/{name}"
        variable = variable or schema.TABLE[path]
        attributes = self.attributes(name, variable)
        self.datasets[path] = self.group.fixed(name, np.asarray(values), variable.dims, attributes, gzip=gzip)

    def growing(self, name: str, row: tuple[int, ...], rows: int, compress: str | None) -> None:
        """Create an empty dataset of the schema whose first dimension grows, with `rows` rows per chunk."""
        path = f"{self._name}/{name}"
        variable = schema.TABLE[path]
        attributes = self.attributes(name, variable)
        self.datasets[path] = self.group.growing(name, variable.dtype, row, rows, variable.dims, attributes, compress)

    def numbers(self, dim: str, rows: int, compress: str | None) -> None:
        """Create a growing dimension labelled by numbers."""
        attributes = {"units": "1", "long_name": f"{dim.replace('_', ' ')} number"}
        self.datasets[f"{self._name}/{dim}"] = self.group.growing(dim, "i8", (), rows, [dim], attributes, compress)

    def attributes(self, name: str, variable: Variable) -> dict[str, str]:
        """units, long_name, comment, and the coordinate variables that belong to the variable (CF `coordinates`)."""
        attributes = {"units": schema.unit_of(variable, self._units), "long_name": variable.meaning}
        if variable.comment:
            attributes["comment"] = variable.comment
        beside = [
            entry
            for entry, dims in schema.LABELS_OF_ENTRIES.items()
            if dims[0] in variable.dims and f"{self._name}/{entry}" in schema.TABLE
        ]
        if beside and name not in schema.LABELS_OF_ENTRIES:
            attributes["coordinates"] = " ".join(beside)
        return attributes


def lay_out_inputs(section: Section, inputs: Mapping[str, Array], samples: int) -> None:
    """Write /controls of a rollout: an input common to all samples (rows, n), or one per sample (samples, rows, n)."""
    section.fixed("time", inputs["time"])
    section.scales(["dof"] + ["actuator"] * ("control" in inputs))
    if any(values.ndim == 3 for values in inputs.values()):
        section.group.bare_dimension("sample", samples)
    section.fixed("start_step", inputs["start_step"])
    for name in schema.CONTROL_VALUES:
        if name in inputs:
            section.fixed(name, inputs[name], variable=schema.sample_input(name) if inputs[name].ndim == 3 else None)
    section.fixed("n_valid", np.int64(len(inputs["time"])))


def lay_out_model(section: Section, model: ModelRecord) -> None:
    """Write /model: the robot's file as text, and facts that readers need without parsing it."""
    section.set_attributes({"name": model.name, "format": model.format, "path": model.path, "sha256": model.sha256})
    if model.warnings:
        section.set_attributes({"warnings": json.dumps(shortened(model.warnings), ensure_ascii=False)})
    for dim, values in (("link", model.links), ("joint", model.joints)):
        attributes = {"units": "1", "long_name": schema.DIMENSIONS[dim].meaning}
        section.group.fixed(dim, texts(values), [dim], attributes)
    if model.kept is not None:
        lay_out_pieces(section, model.kept)
    if model.meshes:
        numbers = np.arange(len(model.meshes))
        section.group.fixed("mesh", numbers, ["mesh"], {"units": "1", "long_name": "mesh number"})
        for field in ("uri", "path", "link"):
            section.fixed(f"mesh_{field}", texts([getattr(mesh, field) for mesh in model.meshes]))
    section.fixed("source", np.array(model.text, dtype=object))
    section.fixed("link_parent", texts(model.link_parents))
    section.fixed("link_mass", np.array(model.link_masses, dtype=np.float64))
    for field, attribute in (("type", "joint_types"), ("parent", "joint_parents"), ("child", "joint_children")):
        section.fixed(f"joint_{field}", texts(getattr(model, attribute)))
    for field in ("lower", "upper", "effort", "velocity"):
        section.fixed(f"joint_{field}", np.array(getattr(model, f"joint_{field}"), dtype=np.float64))


def shortened(warnings: Sequence[str]) -> list[str]:
    """The warnings limited to MOST_WARNINGS and MOST_LETTERS; the last one gives the number of omitted ones."""
    kept = [told if len(told) <= MOST_LETTERS else f"{told[:MOST_LETTERS]} …" for told in warnings[:MOST_WARNINGS]]
    more = len(warnings) - len(kept)
    return [*kept, f"{more} more; artsim check lists all"] if more else kept


def texts(values: Sequence[str]) -> Array:
    """Texts as an array of objects, as h5py requires."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
