"""Continues runs from the state at their end, or from the last checkpoint before they broke off."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from artsim.io.exports.rows import blocks_of
from artsim.io.readers.recording import Recording, open_recording
from artsim.io.runs.prepare import held_controls, no_controls
from artsim.io.runs.recorder import Earlier
from artsim.io.runs.recovery import recover
from artsim.io.runs.replay import Load, stored_plan
from artsim.io.runs.run import Outcome, Progress, record, recorder_of, stored_state
from artsim.io.runs.snapshots import checkpoint_state, checkpoints, final_state, restored
from artsim.sim.foundation.errors import BusyError, ModelError, StoppedError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.runs.block_of_rows import MAY_BE_INFINITE, first_odd
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.simulate import ControllerFunction


def resume(
    path: str | os.PathLike[str],
    load: Load,
    *,
    steps: int | None = None,
    output: str | os.PathLike[str] | None = None,
    controller: ControllerFunction | None = None,
    provenance: Mapping[str, str | int | float] | None = None,
    force: bool = False,
    progress: Progress | None = None,
    threads: int = 1,
) -> Outcome | None:
    """Continue a run that was killed, interrupted or is complete; its datasets equal those of an uninterrupted run.

    Args:
        load: as for stored_plan.
        steps: total number of steps of the run; None: as originally configured.
        output: a file to write; None: the run's own file, which is replaced once the new one is complete.
        controller: the Python function that controlled the run, if any; code named in a file is never run.
        threads: see Simulation.

    Returns None if nothing is left to do; a file whose writer died at the very end is made clean.

    Raises the errors of open_recording, stored_plan, Recorder and recover; BusyError if a process is writing the file,
    StoppedError if the run cannot continue, UsageError for fewer steps than already taken.
    """
    source = Path(path)
    with open_recording(source) as recording:
        if recording.state == "running":
            raise BusyError(f"{source}: is being written by another process")
        state, made, done, total = _remainder(recording, steps)
        if done == total:
            recover(source)
            return None
        plan = stored_plan(recording, load, steps=total)
        if plan.config.is_python and controller is None:
            raise UsageError(f"{source}: a Python controller acted in it; give it again with --controller")
        controls, interval = recording.controls, recording.checkpoint_steps
    acting = held_controls(plan) if plan.config.is_python else controls
    simulation = simulation_of(plan, acting, controller, threads)
    if state is not None:
        simulation.restore(restored(state, simulation.save()))
    kept = int(np.searchsorted(controls.start_step, done)) if plan.config.is_python else controls.rows
    recorder = recorder_of(
        simulation,
        source if output is None else output,
        controls=no_controls(plan),
        provenance=provenance or {},
        compress=None,
        steps_total=total,
        checkpoint=interval,
        force=force or output is None,
        earlier=Earlier(source, -(-done // plan.config.every), kept, made),
    )
    with recorder:
        if interval and done == (made + 1) * interval:  # the former end of the run becomes a checkpoint
            recorder.checkpoint(stored_state(simulation))
        return record(simulation, recorder, progress)


class _Remainder(NamedTuple):
    """The part of a run that is left: the state from which to continue (None: the start of the run), the number of
    checkpoints to keep, the steps done and those of the whole run.
    """

    state: dict[str, Array] | None
    made: int
    done: int
    total: int


def _remainder(recording: Recording, steps: int | None) -> _Remainder:
    """Raise StoppedError, UsageError or ModelError for a recording that cannot go on to `steps` steps."""
    if recording.state == "stopped":
        raise StoppedError(f"{recording.path}: the run stopped by itself; it cannot go on")
    if recording.steps_total is None or recording.changes:
        raise UsageError(f"{recording.path}: was stepped from Python, and goes on there only")
    state, made = _start(recording)
    done = 0 if state is None else int(state["step"])
    total = int(recording.config.get("steps", 0)) if steps is None else steps
    if done > total:
        raise UsageError(f"{recording.path}: has {done} steps already, more than {total}")
    recording.check_size()
    _refuse_odd(recording, state or {}, -(-done // recording.every))
    return _Remainder(state, made, done, total)


def _refuse_odd(recording: Recording, state: Mapping[str, Array], rows: int) -> None:
    """Raise ModelError for rows to keep, or a state to go on from, that are not finite, as no run writes them."""
    for name in state.keys() - {"extremes"}:
        if first_odd(state[name]) is not None:
            raise ModelError(f"{recording.path}: the state's {name} is not finite: no run has written this")
    for start, stop in blocks_of(recording):
        if start >= rows:
            return
        parts = {name: recording.read_stored(name, start, stop) for name in recording.variables}
        for group in recording.tables:
            contacts = group == "contact"
            parts |= recording.read_contacts(start, stop) if contacts else recording.read_table(group, start, stop)
        for name, values in parts.items():
            if name not in MAY_BE_INFINITE and first_odd(values) is not None:
                where = f"steps {start * recording.every} to {stop * recording.every}"
                raise ModelError(f"{recording.path}: {name} is not finite in {where}: no run has written this")


def _start(recording: Recording) -> tuple[dict[str, Array] | None, int]:
    """The state from which to continue (None: the start of the run), and the number of checkpoints to keep."""
    steps = checkpoints(recording)
    state = final_state(recording)
    if state is not None:
        return state, int(np.count_nonzero(steps <= int(state["step"])))
    return (checkpoint_state(recording, len(steps) - 1) if len(steps) else None), len(steps)
