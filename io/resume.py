"""Runs that go on: from the state at their end, or from the last checkpoint before they broke off."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from artsim.io.reader import Recording, open_recording
from artsim.io.recorder import Earlier, Recorder, model_record
from artsim.io.recovery import recover
from artsim.io.runs import (
    Load,
    Outcome,
    Progress,
    facts_of,
    held_controls,
    no_controls,
    record,
    run_labels,
    stored_plan,
    stored_state,
)
from artsim.io.snapshots import checkpoint_state, checkpoints, final_state, restored
from artsim.sim.foundation.errors import BusyError, StoppedError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.runs.simulate import ControllerFunction, simulation_of


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
) -> Outcome | None:
    """Go on with a run that was killed, interrupted or is complete: its datasets become those of one never stopped.

    Args:
        load: as for stored_plan.
        steps: how many the run shall have in the end; None: as many as it was to have.
        output: a file to write; None: the run's own, which is replaced when the new one stands.
        controller: the Python function that controlled the run, if one did: what a file names is never run.

    Returns None when nothing is left to do; a file whose writer died at the very end is made clean.

    Raises as open_recording, stored_plan, Recorder and recover do; BusyError while a process writes the file,
    StoppedError when the run cannot go on, UsageError for fewer steps than there are.
    """
    source = Path(path)
    with open_recording(source) as recording:
        if recording.state == "running":
            raise BusyError(f"{source}: is being written by another process")
        if recording.state == "stopped":
            raise StoppedError(f"{source}: the run stopped by itself; it cannot go on")
        state, made = _start(recording)
        done = 0 if state is None else int(state["step"])
        total = int(recording.config.get("steps", 0)) if steps is None else steps
        if done > total:
            raise UsageError(f"{source}: has {done} steps already, more than {total}")
        if done == total:
            recover(source)
            return None
        plan = stored_plan(recording, load, steps=total)
        if plan.config.is_python and controller is None:
            raise UsageError(f"{source}: a Python controller acted in it; give it again with --controller")
        controls, interval = recording.controls, recording.checkpoint_steps
    simulation = simulation_of(plan, held_controls(plan) if plan.config.is_python else controls, controller)
    template = stored_state(simulation)
    if state is not None:
        simulation.restore(restored(state, simulation.save()))
    kept = int(np.searchsorted(controls.start_step, done)) if plan.config.is_python else controls.rows
    recorder = Recorder(
        source if output is None else output,
        labels=run_labels(plan),
        dt=plan.dt,
        model=model_record(plan.robot.articulation),
        controls=no_controls(plan),
        provenance=dict(provenance or {}) | {"config": plan.config.to_json(), **facts_of(plan)},
        variables=plan.config.record,
        steps_total=total,
        state=template,
        checkpoint=interval,
        every=plan.config.every,
        force=force or output is None,
        earlier=Earlier(source, -(-done // plan.config.every), kept, made),
    )
    with recorder:
        if interval and done == (made + 1) * interval:  # where the run ended: it was no end
            recorder.checkpoint(stored_state(simulation))
        return record(simulation, recorder, progress)


def _start(recording: Recording) -> tuple[dict[str, Array] | None, int]:
    """The state to go on from, None for the start of the run; how many checkpoints stay."""
    steps = checkpoints(recording)
    state = final_state(recording)
    if state is not None:
        return state, int(np.count_nonzero(steps <= int(state["step"])))
    return (checkpoint_state(recording, len(steps) - 1) if len(steps) else None), len(steps)
