"""BatchRecording, a file of `artsim batch` read by the names of its variables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.io.format import schema
from artsim.io.format.variable import Variable
from artsim.io.readers.output import read_labels
from artsim.io.readers.sampled_output import SampledOutput
from artsim.sim.foundation.errors import ModelError
from artsim.sim.quantities.catalogue import QUANTITIES, dims_of

if TYPE_CHECKING:
    import h5py

_BLOCK_ROWS = 1 << 20


class BatchRecording(SampledOutput):
    """Quantities of many configurations: `batch["gravity"]` is (rows, nv), `batch["status"]` says which rows are NaN.

    `labels` name the entries (`link`: the requested links), `variables` are the names, inputs first.
    """

    group_name = "batch"

    def __init__(self, path: Path, file: h5py.File) -> None:
        """Use open_output: `file` must have passed the gate."""
        super().__init__(path, file, ("batch", "model", "provenance"))
        group = file["batch"]
        self.at = str(self.facts["at"])
        self.reduced, self.packed = bool(self.facts["reduced"]), bool(self.facts["packed"])
        self.labels = read_labels(path, group)
        self.variables = tuple(name for name in schema.BATCHED if name in group)
        self.rows = int(group["status"].shape[0])
        for name in self.variables:
            self._check_shape(name, group[name])

    def __len__(self) -> int:
        return self.rows

    def _extent(self) -> str:
        return f"{self.rows} rows"

    def variable(self, name: str) -> Variable:
        """The schema's entry of a variable, with the dimensions that it has in this file."""
        if name not in QUANTITIES:
            return schema.TABLE[f"batch/{name}"]
        return schema.batch_variable(name, dims_of(name, reduced=self.reduced, packed=self.packed))

    @property
    def failed(self) -> int:
        """Number of rows that could not be computed and hold NaN."""
        if self.shards:
            return sum(shard.failed for shard in self.shards)
        starts = range(0, self.rows, _BLOCK_ROWS)
        return sum(int(np.count_nonzero(self.read("status", start, start + _BLOCK_ROWS))) for start in starts)

    def summary(self) -> dict[str, Any]:
        """The content that `artsim info FILE` prints, as plain data."""
        return {
            "file": str(self.path),
            "bytes": self._bytes,
            **self.attrs,
            "model": self.model,
            "warnings": self.warnings,
            "rows": self.rows,
            "first_row": self.first_row,
            "rows_of_job": self.rows_of_job,
            "failed": self.failed,
            "shards": [shard.name for shard in self.shards],
            "at": self.at,
            "reduced": self.reduced,
            "packed": self.packed,
            **self.names_told(),
            "variables": self._variables_told(),
            "provenance": self.provenance,
        }

    def _check_shape(self, name: str, dataset: h5py.Dataset) -> None:
        """Refuse a variable whose type and shape do not fit the labels and the number of rows of `status`."""
        variable = self.variable(name)
        want = (self.rows, *(len(self.names_of(dim)) for dim in variable.dims[1:]))
        kinds = ("f8", "f4") if name in QUANTITIES else (variable.dtype,)
        if dataset.shape != want or dataset.dtype not in kinds:
            raise ModelError(
                f"{self.path}: /batch/{name} is {dataset.dtype} {dataset.shape}, want {variable.dtype} {want}"
            )
