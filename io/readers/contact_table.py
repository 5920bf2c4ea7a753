"""The table of contacts in files of runs and rollouts: checks of its types and of the numbers in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from artsim.io.format.labels import Labels
from artsim.io.format.variable import Variable
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    import h5py


def check_contacts(path: Path, labels: Labels, contacts: Mapping[str, Array]) -> None:
    """Raise ModelError for contacts of links or geometries that have no label."""
    for name, known in (("link", labels.touching_link), ("geom", labels.geom)) if contacts else ():
        for side in ("a", "b"):
            values = contacts[f"{name}_{side}"]
            if len(values) and not 0 <= int(values.min()) <= int(values.max()) < len(known):
                raise ModelError(f"{path}: /contact/{name}_{side} has numbers beyond its {len(known)} labels")


def check_table_shape(path: Path, dataset: h5py.Dataset, variable: Variable, row: tuple[int, ...]) -> None:
    """Raise ModelError for a column of a table of another type than the schema's, or with rows of another shape."""
    if dataset.ndim == 0 or dataset.shape[1:] != row or dataset.dtype != np.dtype(variable.dtype):
        want = f"{variable.dtype} {('rows', *row)}"
        raise ModelError(f"{path}: {dataset.name} is {dataset.dtype} {dataset.shape}, want {want}")
