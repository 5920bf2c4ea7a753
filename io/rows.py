"""What a run in memory and a run in a file share: rows addressed by name, with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from artsim.io import schema
from artsim.io.schema import Labels

if TYPE_CHECKING:
    import xarray

Array = npt.NDArray[Any]


class Rows:
    """Recorded rows: `rows["qpos"]` is (n_valid, nq), `rows.labels` names the entries; `variables` lists the names."""

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

    def meaning(self, name: str) -> dict[str, str]:
        """`units`, `long_name` and `comment` of a variable."""
        variable = schema.TABLE[f"trajectory/{name}"]
        units = schema.unit_of(variable, schema.entry_units(self.labels))
        return {"units": units, "long_name": variable.meaning, "comment": variable.comment}

    def to_xarray(self, variables: tuple[str, ...] | None = None) -> xarray.Dataset:
        """The valid rows as a labelled dataset in memory; needs the package xarray."""
        import xarray

        names = self.variables if variables is None else variables
        data = {}
        for name in names:
            data[name] = (schema.TABLE[f"trajectory/{name}"].dims, self[name], self.meaning(name))
        dims = dict.fromkeys(dim for entry in data.values() for dim in entry[0])
        coords: dict[str, Any] = {dim: list(self.names_of(dim)) for dim in dims if dim != "time"}
        coords["time"] = ("time", self.time, {"units": "s"})
        for name, values in schema.entry_units(self.labels).items():
            if schema.LABELS_OF_ENTRIES[name][0] in dims:
                coords[name] = (schema.LABELS_OF_ENTRIES[name], list(values))
        return xarray.Dataset(data, coords, self.attrs)
