"""LabelledRows, the common base of runs and batches in memory and in files: rows addressed by name, with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from artsim.io import schema
from artsim.io.schema import Labels, Variable

if TYPE_CHECKING:
    import xarray

Array = npt.NDArray[Any]


class LabelledRows:
    """Stored rows: `rows["qpos"]` is (n_valid, nq), `rows.labels` names the entries; `variables` lists the names."""

    labels: Labels
    variables: tuple[str, ...]
    attrs: dict[str, Any]

    def __getitem__(self, name: str) -> Array:
        raise KeyError(name)

    @property
    def time(self) -> Array:
        """(n_valid,) time of each row [s]."""
        return self["time"]

    def names_of(self, dim: str) -> tuple[str, ...]:
        """The labels of a dimension."""
        return schema.labels_of(dim, self.labels)

    def names_told(self) -> dict[str, list[str]]:
        """The names of links, coordinates and dofs, as a summary tells them."""
        return {
            "links": list(self.labels.link),
            "coords": list(self.labels.coord),
            "dofs": list(self.labels.dof),
            "independent_dofs": list(self.labels.independent_dof),
        }

    def variable(self, name: str) -> Variable:
        """The schema's entry of a variable, with dense Jacobians."""
        return schema.dense_variable(name)

    def dense(self, name: str, values: Array) -> Array:
        """Stored rows of a variable in the form of `variable`: Jacobians (n, nlink, 6, nv) from (n, columns, 6)."""
        if name != "jacobian":
            return values
        full: Array = np.zeros((len(values), len(self.labels.link), 6, len(self.labels.dof)))
        full.swapaxes(2, 3)[:, list(self.labels.jacobian_link), list(self.labels.jacobian_dof)] = values
        return full

    def meaning(self, name: str) -> dict[str, str]:
        """`units`, `long_name` and `comment` of a variable."""
        variable = self.variable(name)
        units = schema.unit_of(variable, schema.entry_units(self.labels))
        return {"units": units, "long_name": variable.meaning, "comment": variable.comment}

    def to_xarray(self, variables: tuple[str, ...] | None = None) -> xarray.Dataset:
        """The valid rows as a labelled dataset in memory; requires the package xarray."""
        import xarray

        names = self.variables if variables is None else variables
        data = {}
        for name in names:
            data[name] = (self.variable(name).dims, self[name], self.meaning(name))
        dims = dict.fromkeys(dim for entry in data.values() for dim in entry[0])
        coords: dict[str, Any] = {dim: list(self.names_of(dim)) for dim in dims if dim in schema.DIMENSIONS}
        if "time" in dims:
            coords["time"] = ("time", self.time, {"units": "s"})
        for name, values in schema.entry_units(self.labels).items():
            if schema.LABELS_OF_ENTRIES[name][0] in dims:
                coords[name] = (schema.LABELS_OF_ENTRIES[name], list(values))
        return xarray.Dataset(data, coords, self.attrs)
