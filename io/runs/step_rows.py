"""StepRows, the rows that calls of `Simulation.step` return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from artsim.io.runs.named import named_tables
from artsim.sim.foundation.errors import nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs import simulate
from artsim.sim.runs.block_of_rows import BlockOfRows


class StepRows(Mapping[str, Array]):
    """The rows that steps recorded, by name: arrays of their own, copied when first looked at or by the next step."""

    def __init__(self, simulation: simulate.Simulation, earlier: dict[str, Array] | None = None) -> None:
        self._simulation = simulation
        self._copied: BlockOfRows | None = None
        self._rows = earlier

    def keep(self) -> None:
        """Copy the rows, before the block in which they are is written again."""
        if self._rows is None and self._copied is None:
            self._copied = self._simulation.copied()

    def _named(self) -> dict[str, Array]:
        """The rows by name. Raises StoppedError for one that is not finite."""
        if self._rows is None:
            self.keep()
            assert self._copied is not None
            self._rows = self._simulation.checked(self._copied) | tables_of(self._simulation, self._copied)
        return self._rows

    def __getitem__(self, name: str) -> Array:
        rows = self._named()
        if name not in rows:
            raise KeyError(f"{name!r} is not recorded{nearest(name, tuple(rows))}")
        return rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named())

    def __len__(self) -> int:
        return len(self._named())

    def __repr__(self) -> str:
        return f"StepRows({', '.join(self)})"


def rows_of(simulation: simulate.Simulation, block: BlockOfRows) -> dict[str, Array]:
    """The rows of a block and its tables, as arrays of their own."""
    return {name: np.array(values) for name, values in (block.rows | tables_of(simulation, block)).items()}


def tables_of(simulation: simulate.Simulation, block: BlockOfRows) -> dict[str, Array]:
    """The tables of a block under their names among rows."""
    tables = named_tables(simulation.plan, block.tables)
    return {f"{group}/{name}": values for group, table in tables.items() for name, values in table.items()}


def read_only(values: Real) -> Real:
    """A read-only view."""
    view = values.view()
    view.setflags(write=False)
    return view
