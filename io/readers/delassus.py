"""The Delassus matrix of a recorded step, K = J M⁻¹ Jᵀ + cfm, with the names of its constraint rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from artsim.io.format.labels import Labels
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.records import Array


class Delassus(NamedTuple):
    """The constraint rows of a step and K = J M⁻¹ Jᵀ + cfm, from their impulses to changes of their velocities."""

    names: tuple[str, ...]  # of the n rows: `limit:elbow.lower`, `contact:0.normal`
    impulse: Array  # (n,) over the step [N s or N m s]
    cfm: Array  # (n,) [1/kg or 1/(kg m²)]
    matrix: Array  # (n, n) symmetric [1/kg or 1/(kg m²)]


def delassus_of(
    labels: Labels, constraints: Mapping[str, Array], entries: Mapping[str, Array], where: str = "the run"
) -> Delassus:
    """The content of /constraint and /delassus for one recorded row. Raises ModelError for numbers that fit no rows."""
    count = len(constraints["name"])
    row, column = entries["row_a"], entries["row_b"]
    if len(row) and not (int(column.min()) >= 0 and bool(np.all(column <= row)) and int(row.max()) < count):
        raise ModelError(f"{where}: /delassus/row_a and row_b are not those of a lower triangle of {count} rows")
    name = constraints["name"]
    if count and not 0 <= int(name.min()) <= int(name.max()) < len(labels.constraint):
        raise ModelError(f"{where}: /constraint/name has numbers beyond its {len(labels.constraint)} labels")
    matrix = np.zeros((count, count))
    matrix[row, column] = matrix[column, row] = entries["value"]
    names = tuple(
        labels.constraint[n] if contact < 0 else labels.constraint[n].replace(".", f":{contact}.", 1)
        for n, contact in zip(name.tolist(), constraints["contact"].tolist(), strict=True)
    )
    return Delassus(names, constraints["impulse"], constraints["cfm"], matrix)
