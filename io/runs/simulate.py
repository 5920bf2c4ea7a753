"""`artsim.simulate`: a run from Python, into memory or a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Unpack

import numpy as np

from artsim.io.exports.formats import check_run_name
from artsim.io.format import schema
from artsim.io.readers.delassus import Delassus, delassus_of
from artsim.io.readers.labelled_rows import LabelledRows
from artsim.io.readers.recording import Recording, open_recording
from artsim.io.runs.named import Tables, joined, row_count, run_labels
from artsim.io.runs.prepare import prepared
from artsim.io.runs.progress import progress_bar, warm
from artsim.io.runs.provenance import overlap_facts, provenance
from artsim.io.runs.run import Outcome, run, stored_state
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.settings import RunSettings
from artsim.sim.runs.simulate import ControllerFunction, Simulation


class MemoryRecording(LabelledRows):
    """A run held in memory; addressed like a Recording: `["qpos"]`, `.labels`, `.time`, `.to_xarray()`."""

    def __init__(self, plan: Plan, rows: dict[str, Array], tables: Tables, outcome: Outcome) -> None:
        self.robot = plan.robot
        self.config = plan.config
        self.status = outcome.status
        self.labels = run_labels(plan)
        self.variables = tuple(name for name in schema.RECORDED if name in rows)
        self.attrs = {"title": f"artsim run of {plan.robot.articulation.name}", **overlap_facts(plan)}
        self.dt, self.every = plan.dt, plan.config.every
        self.contacts = tables.get("contact", {})  # see Recording.contacts
        self.tables = tables  # by group of schema.RAGGED
        self._rows = rows
        self.final = stored_state(outcome.simulation)

    @property
    def n_valid(self) -> int:
        """Number of rows."""
        return len(self._rows["time"])

    @property
    def state(self) -> str:
        """complete, or stopped at a non-finite state or at an inequality the solver does not serve."""
        return "complete" if self.status == schema.COMPLETE else "stopped"

    def _extent(self) -> str:
        return f"{self.n_valid} rows"

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def delassus(self, row: int) -> Delassus:
        """The constraint rows of a recorded row, and their K, dense; see Recording.delassus."""
        if "delassus" not in self.tables:
            raise UsageError("the run holds no delassus; simulate with record=['+delassus']")
        constraints, entries = (self._table_row(group, row) for group in ("constraint", "delassus"))
        return delassus_of(self.labels, constraints, entries)

    def _table_row(self, group: str, row: int) -> dict[str, Array]:
        ragged, table = schema.RAGGED[group], self.tables[group]
        ends = np.concatenate([[0], np.cumsum(table[ragged.counted_by])])
        return {name: table[name][ends[row] : ends[row + 1]] for name in ragged.table}

    def __getitem__(self, name: str) -> Array:
        """Every row of a recorded variable, or `time` (n_valid,) [s]."""
        if name not in self._rows:
            raise UsageError(f"the run has no {name!r}{nearest(name, self.variables)}")
        return self.dense(name, self._rows[name])


def simulate(
    robot: Robot,
    *,
    controller: ControllerFunction | str = "none",
    controls: Controls | str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    compress: str | None = None,
    checkpoint: int | None = None,
    check: bool = True,
    progress: bool = False,
    threads: int = 1,
    **settings: Unpack[RunSettings],
) -> MemoryRecording | Recording:
    """Simulate a robot; settings.SimulateOptions describes the arguments, `artsim.simulate` results and errors."""
    if output is not None:
        check_run_name(output)
    plan, controls, function = prepared(robot, controller, controls, settings)
    if not plan.config.is_maximal:
        warm((entry, 1) for entry in plan.entries)
    blocks: list[dict[str, Array]] = []
    parts: list[Tables] = []

    def keep(rows: dict[str, Array], tables: Tables) -> None:
        blocks.append({name: values.copy() for name, values in rows.items()})
        parts.append(tables)

    with progress_bar("simulating", plan.config.steps, unit="steps", show=progress) as advance:
        outcome = run(
            plan,
            controls=controls,
            controller=function,
            output=output,
            provenance={**provenance("artsim.simulate"), "threads": threads},
            compress=compress,
            checkpoint=checkpoint,
            force=force,
            progress=_Shown(advance) if progress else None,
            on_block=None if output is not None else keep,
            threads=threads,
        )
    if check:
        outcome.simulation.check()
    if output is not None:
        return open_recording(output)
    rows = joined(blocks)
    tables = {group: joined([part[group] for part in parts]) for group in (parts[0] if parts else {})}
    count = row_count(rows, tables)
    rows["time"] = np.arange(count, dtype=np.int64) * plan.config.every * plan.dt
    return MemoryRecording(plan, rows, tables, outcome)


class _Shown:
    """Called after every block: moves a bar and never ends the run."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance

    def __call__(self, simulation: Simulation) -> bool:
        self._advance(simulation.step)
        return False
