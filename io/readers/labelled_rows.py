"""LabelledRows, the common base of runs and batches in memory and in files: rows addressed by name, with labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import DIMENSIONS, LABELS_OF_ENTRIES, Labels, entry_names, entry_units, labels_of
from artsim.io.format.variable import Variable, unit_of
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    import pandas
    import xarray

_TOLD = 6  # variables named in a repr
_OF_ROWS = ("sample", "time")


class LabelledRows:
    """Stored rows: `rows["qpos"]` is (n_valid, nq), `rows.labels` names the entries; `variables` lists the names."""

    labels: Labels
    variables: tuple[str, ...]
    attrs: dict[str, Any]

    def __getitem__(self, name: str) -> Array:
        raise KeyError(name)

    def __repr__(self) -> str:
        path = getattr(self, "path", None)
        where = repr(path.name) if path is not None else repr(str(self.attrs.get("title", "")))
        names = ", ".join(self.variables[:_TOLD]) + (", …" if len(self.variables) > _TOLD else "")
        return f"<{type(self).__name__} {where}: {self._extent()}; {names or 'no variables'}>"

    def _extent(self) -> str:
        """The number of rows in words, without reading them."""
        return "rows"

    @property
    def time(self) -> Array:
        """(n_valid,) time of each row [s]."""
        return self["time"]

    def names_of(self, dim: str) -> tuple[str, ...]:
        """The labels of a dimension."""
        return labels_of(dim, self.labels)

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
        """Stored rows of a variable in the form of `variable`: Jacobians (…, nlink, 6, nv) from (…, columns, 6)."""
        if name != "jacobian":
            return values
        full: Array = np.zeros((*values.shape[:-2], len(self.labels.link), 6, len(self.labels.dof)))
        full.swapaxes(-2, -1)[..., list(self.labels.jacobian_link), list(self.labels.jacobian_dof), :] = values
        return full

    def meaning(self, name: str) -> dict[str, str]:
        """`units`, `long_name` and `comment` of a variable."""
        variable = self.variable(name)
        units = unit_of(variable, entry_units(self.labels))
        return {"units": units, "long_name": variable.meaning, "comment": variable.comment}

    def to_pandas(self, variables: Sequence[str] | None = None) -> pandas.DataFrame:
        """The valid rows as a table in memory, indexed by time, sample, or both; requires the package pandas.

        Columns are called as those of `artsim export --csv`: `qpos.joint_1`. By default all variables are there that
        have a row for every entry of the index. Raises UsageError for variables that have rows of their own.
        """
        import pandas

        names = self.variables if variables is None else tuple(variables)
        leading = {name: tuple(dim for dim in self.variable(name).dims if dim in _OF_ROWS) for name in names}
        rows = max(leading.values(), key=len, default=("time",))
        if variables is None:
            names = tuple(name for name in names if leading[name] == rows)
        for name in names:
            if leading[name] != rows:
                raise UsageError(f"{name} has rows by {_words(leading[name])}, other variables by {_words(rows)}")
        columns: dict[str, Array] = {}
        for name in names:
            labels = map(self.names_of, self.variable(name).dims[len(rows) :])
            values = self[name]
            flat = values.reshape(math.prod(values.shape[: len(rows)]), -1)
            columns |= zip(entry_names(labels, name), flat.T, strict=True)
        return pandas.DataFrame(columns, index=self._index(rows, names))

    def _index(self, rows: tuple[str, ...], names: Sequence[str]) -> pandas.Index[Any]:
        """The index of a table whose rows go by these dimensions."""
        import pandas

        levels = [self.time if dim == "time" else np.arange(len(self[names[0]])) for dim in rows]
        if len(rows) == 1:
            return pandas.Index(levels[0], name=rows[0])
        return pandas.MultiIndex.from_product(levels, names=rows)

    def to_xarray(self, variables: tuple[str, ...] | None = None) -> xarray.Dataset:
        """The valid rows as a labelled dataset in memory; requires the package xarray."""
        import xarray

        names = self.variables if variables is None else variables
        data = {}
        for name in names:
            data[name] = (self.variable(name).dims, self[name], self.meaning(name))
        dims = dict.fromkeys(dim for entry in data.values() for dim in entry[0])
        coords: dict[str, Any] = {dim: list(self.names_of(dim)) for dim in dims if dim in DIMENSIONS}
        if "time" in dims:
            coords["time"] = ("time", self.time, {"units": "s"})
        for name, values in entry_units(self.labels).items():
            if LABELS_OF_ENTRIES[name][0] in dims:
                coords[name] = (LABELS_OF_ENTRIES[name], list(values))
        return xarray.Dataset(data, coords, self.attrs)


def _words(dims: Sequence[str]) -> str:
    return " and ".join(dims) or "nothing"
