"""The groups of a file laid out by the schema: labels with units, attributes, inputs."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import DIMENSIONS, LABELS_OF_ENTRIES, Labels, entry_units, labels_of
from artsim.io.format.variable import Variable, unit_of
from artsim.sim.foundation.records import Array


def lay_out_root(root: Any, title: str, command: str, created: str | None = None) -> None:
    """Write the attributes of the file itself; `created` (ISO 8601) defaults to now."""
    from artsim.io.output_file import hdf5

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
        from artsim.io.output_file import hdf5

        self.group = hdf5.Group(root, name)
        self.datasets: dict[str, Any] = {} if datasets is None else datasets
        self._name, self._labels = name, labels
        self._units = entry_units(labels)

    def set_attributes(self, values: Mapping[str, str | int | float]) -> None:
        """Write attributes of the group."""
        from artsim.io.output_file import hdf5

        hdf5.set_attributes(self.group.id, values)

    def scales(self, dims: Iterable[str]) -> None:
        """Write the labels of these dimensions, the units along them, and the links and dofs of columns."""
        needed = dict.fromkeys(dims)
        for dim in needed:
            attributes = {"units": "1", "long_name": DIMENSIONS[dim]}
            self.group.fixed(dim, texts(labels_of(dim, self._labels)), [dim], attributes)
        for name, values in self._units.items():
            if f"{self._name}/{name}" in schema.TABLE and LABELS_OF_ENTRIES[name][0] in needed:
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
        attributes = {"units": unit_of(variable, self._units), "long_name": variable.meaning}
        if variable.comment:
            attributes["comment"] = variable.comment
        beside = [
            entry
            for entry, dims in LABELS_OF_ENTRIES.items()
            if dims[0] in variable.dims and f"{self._name}/{entry}" in schema.TABLE
        ]
        if beside and name not in LABELS_OF_ENTRIES:
            attributes["coordinates"] = " ".join(beside)
        return attributes


def lay_out_inputs(
    section: Section, inputs: Mapping[str, Array], samples: int, shards: Sequence[tuple[str, int, int]] = ()
) -> None:
    """Write /controls of a rollout: an input common to all samples (rows, n), or one per sample (samples, rows, n), in
    an index of shards those of the files (name, first row, rows)."""
    section.fixed("time", inputs["time"])
    section.scales(["dof"] + ["actuator"] * ("control" in inputs))
    if any(values.ndim == 3 for values in inputs.values()):
        section.group.bare_dimension("sample", samples)
    section.fixed("start_step", inputs["start_step"])
    for name in schema.CONTROL_VALUES:
        if name not in inputs:
            continue
        values, variable = inputs[name], schema.sample_input(name)
        if values.ndim == 2:
            section.fixed(name, values)
        elif shards and values.size:
            attributes = section.attributes(name, variable)
            section.group.virtual(name, variable.dtype, values.shape, variable.dims, attributes, shards)
        else:
            section.fixed(name, values, variable=variable)
    section.fixed("n_valid", np.int64(len(inputs["time"])))


def texts(values: Sequence[str]) -> Array:
    """Texts as an array of objects, as h5py requires."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
