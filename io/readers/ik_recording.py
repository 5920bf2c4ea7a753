"""IkRecording, a file of `artsim ik` read by the names of its variables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.io.format import schema
from artsim.io.format.variable import Variable
from artsim.io.readers.output import read_labels
from artsim.io.readers.sampled_output import SampledOutput
from artsim.sim.foundation.errors import ModelError

if TYPE_CHECKING:
    import h5py


class IkRecording(SampledOutput):
    """Configurations for poses of links: `found["qpos"]` is (rows, nq), `found["status"]` 0 where they are reached.

    `labels` name the entries (`target_link`: those with targets), `variables` are the names, wanted poses first.
    """

    group_name = "ik"

    def __init__(self, path: Path, file: h5py.File) -> None:
        """Use open_output: `file` must have passed the gate."""
        super().__init__(path, file, ("ik", "model", "provenance"))
        group = file["ik"]
        self.labels = read_labels(path, group)
        self.variables = tuple(name for name in schema.IK_VARIABLES if name in group)
        self.rows = int(group["status"].shape[0])
        for name in self.variables:
            variable = self.variable(name)
            want = (self.rows, *(len(self.names_of(dim)) for dim in variable.dims[1:]))
            if group[name].shape != want or group[name].dtype != variable.dtype:
                found = f"{group[name].dtype} {group[name].shape}"
                raise ModelError(f"{path}: /ik/{name} is {found}, want {variable.dtype} {want}")

    def __len__(self) -> int:
        return self.rows

    def _extent(self) -> str:
        return f"{self.rows} rows"

    def variable(self, name: str) -> Variable:
        """The schema's entry of a variable."""
        return schema.TABLE[f"ik/{name}"]

    @property
    def missed(self) -> int:
        """Number of rows whose targets are not reached."""
        return int(np.count_nonzero(self.read("status")))

    def summary(self) -> dict[str, Any]:
        """The content that `artsim info FILE` prints, as plain data."""
        return {
            "file": str(self.path),
            "bytes": self._bytes,
            **self.attrs,
            "model": self.model,
            "warnings": self.warnings,
            "rows": self.rows,
            "not_reached": self.missed,
            "targets": list(self.labels.target_link),
            "frame": str(self.facts.get("frame", "world")),
            **self.names_told(),
            "variables": self._variables_told(),
            "provenance": self.provenance,
        }
