"""A plan simulated to its end, into a file or block by block into functions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from artsim.io.format import schema
from artsim.io.output_file.model_record import model_record
from artsim.io.runs.named import Tables, named_tables, row_count, run_labels
from artsim.io.runs.prepare import held_controls, no_controls
from artsim.io.runs.provenance import facts_of
from artsim.io.runs.recorder import Recorder
from artsim.io.runs.snapshots import stored
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.run_records import NON_FINITE
from artsim.sim.runs.block_of_rows import BlockOfRows
from artsim.sim.runs.changes import Change, changed
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.simulate import ControllerFunction, Simulation

Progress = Callable[[Simulation], bool]
"""Called after every block; True asks the run to stop."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    simulation: Simulation
    status: int  # schema.COMPLETE, NON_FINITE or INTERRUPTED
    seconds: float  # for simulating and writing, without loading, compiling and laying out the file


def run(
    plan: Plan,
    *,
    controls: Controls | None = None,
    controller: ControllerFunction | None = None,
    output: str | os.PathLike[str] | None = None,
    provenance: Mapping[str, str | int | float] | None = None,
    compress: str | None = None,
    checkpoint: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
    on_block: Callable[[dict[str, Array], Tables], None] | None = None,
    changes: Sequence[Change] = (),
    threads: int = 1,
) -> Outcome:
    """Simulate, into a file if `output` is given; the results of a Python controller are stored as they acted.

    on_block: called with the recorded rows and tables of every block, which are valid only during the call.
    checkpoint: see Recorder. changes: of state and settings between steps, in the order of steps.
    threads: see Simulation.

    Raises the errors of Recorder and Simulation. A run that stops early returns, with the status stored in the file.
    """
    controls = controls or held_controls(plan)
    simulation = simulation_of(plan, controls, controller, threads)
    if output is None:
        began = time.perf_counter()
        simulation, status = _drive(simulation, None, progress, on_block, changes)
        return Outcome(simulation, status, time.perf_counter() - began)
    recorder = recorder_of(
        simulation,
        output,
        controls=controls if controller is None else no_controls(plan),
        provenance=provenance or {},
        steps_total=plan.config.steps,
        checkpoint=checkpoint,
        compress=compress,
        force=force,
        changing=bool(changes),
    )
    return record(simulation, recorder, progress, on_block, changes)


def recorder_of(
    simulation: Simulation,
    output: str | os.PathLike[str],
    *,
    controls: Controls,
    provenance: Mapping[str, str | int | float],
    compress: str | None,
    **options: Any,
) -> Recorder:
    """Open the file of a simulation that has not begun. Raises as Recorder, which takes the other options."""
    plan = simulation.plan
    return Recorder(
        output,
        labels=run_labels(plan),
        dt=plan.dt,
        model=model_record(plan.robot.articulation, plan.kept),
        controls=controls,
        provenance={**provenance, "config": plan.config.to_json(), **facts_of(plan)},
        variables=plan.config.record,
        state=stored_state(simulation),
        every=plan.config.every,
        compress=None if compress == "none" else compress,
        **options,
    )


def record(
    simulation: Simulation,
    recorder: Recorder,
    progress: Progress | None = None,
    on_block: Callable[[dict[str, Array], Tables], None] | None = None,
    changes: Sequence[Change] = (),
) -> Outcome:
    """Simulate to the end, or until the run stops, into a file, and close the file."""
    with recorder:
        simulation.block_rows = recorder.block_rows
        simulation.reblock()
        began = time.perf_counter()
        simulation, status = _drive(simulation, recorder, progress, on_block, changes)
        recorder.close(status, None if simulation.spoiled else stored_state(simulation))
    return Outcome(simulation, status, time.perf_counter() - began)


def _drive(
    simulation: Simulation,
    recorder: Recorder | None,
    progress: Progress | None,
    on_block: Callable[[dict[str, Array], Tables], None] | None,
    changes: Sequence[Change],
) -> tuple[Simulation, int]:
    """Simulate to the end, with changes on the way; returns the simulation as it is then, and the status."""
    total = simulation.plan.config.steps
    for change in (*changes, None):
        simulation.signalled = getattr(progress, "signalled", None)
        end = total if change is None else min(change.step, total)
        for block in _blocks(simulation, recorder, end):
            tables = named_tables(simulation.plan, block.tables)
            empty = not row_count(block.rows, tables) and block.controls is None
            if recorder is not None and not empty:
                recorder.write(block.rows, block.controls, tables)
            if on_block is not None:
                on_block(block.rows, tables)
            if progress is not None and progress(simulation) and simulation.step < total:
                return simulation, schema.INTERRUPTED
        if simulation.stop_reason:
            status = schema.NON_FINITE if simulation.stop_reason == NON_FINITE else schema.INTERRUPTED
            return simulation, status
        if change is not None:
            if recorder is not None:
                recorder.change(change.to_json())
            simulation = changed(simulation, change)
    return simulation, schema.COMPLETE


def _blocks(simulation: Simulation, recorder: Recorder | None, total: int) -> Iterator[BlockOfRows]:
    """Yield the blocks up to a step, and store checkpoints in the file in between."""
    every, last = 0 if recorder is None else recorder.checkpoint_steps, simulation.plan.config.steps
    while simulation.step < total and not simulation.stop_reason:
        end = min(total, (simulation.step // every + 1) * every) if every else total
        yield from simulation.blocks(end - simulation.step)
        at_checkpoint = every and simulation.step % every == 0
        if recorder is not None and at_checkpoint and simulation.step < last and not simulation.stop_reason:
            recorder.checkpoint(stored_state(simulation))


def stored_state(simulation: Simulation) -> dict[str, Array]:
    """The full state of a run as its file stores it."""
    plan = simulation.plan
    return stored(simulation.save(), plan.dt, touching=plan.touching is not None)
