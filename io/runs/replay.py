"""A run simulated again from its file, and compared with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from artsim.io.format import schema
from artsim.io.readers.differences import Difference, first_difference
from artsim.io.readers.facts import first_fact, first_other
from artsim.io.readers.output import Output
from artsim.io.readers.recording import Recording, open_recording
from artsim.io.runs.prepare import prepare
from artsim.io.runs.provenance import made_elsewhere
from artsim.io.runs.run import run
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError, UsageError
from artsim.sim.geometry.solids import with_pieces
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import Plan

Load = Callable[[str, str, RunConfig], Articulation]
"""load(text, name, config) reads a stored model."""


def plan_of(output: Output, load: Load, settings: Mapping[str, Any]) -> Plan:
    """The plan of a run of the robot in a file. Raises ModelError, UsageError."""
    if "config" not in output.provenance:
        raise ModelError(f"{output.path}: holds no configuration: it does not say what was simulated")
    config = RunConfig.from_mapping(settings)
    articulation = load(output.model_text, str(output.model.get("name", "model")), config)
    return prepare(with_pieces(articulation, output.kept), config)


def stored_plan(recording: Recording, load: Load, **changes: Any) -> Plan:
    """The plan of a run from its file, with changes to its configuration.

    Raises ModelError, and UsageError if contacts need shapes that the file does not hold.
    """
    plan = plan_of(recording, load, recording.config | changes)
    if recording.has_contacts and plan.touching is None:
        raise UsageError(f"{recording.path}: what touched is not in the file: it cannot be simulated again")
    return plan


TOLERANCE = 1e-6  # accepted difference of rows from other machines or versions, relative to the largest value


def verify(path: str | os.PathLike[str], load: Load, *, tolerance: float = TOLERANCE) -> Difference | None:
    """Simulate a file again from its model text, configuration and inputs, and compare byte for byte.

    `load(text, name, config)` reads the stored model. Returns the first difference, or None. For a run that broke off
    (writer killed, disk full, controller failed) only the rows are compared, since it wrote no final state. Rows of a
    run from elsewhere (`made_elsewhere`) may differ by the tolerance; see first_difference. Raises what the gate and
    the run raise; UsageError for a file without rows, or with contacts of a model without any.
    """
    import tempfile

    with open_recording(path) as recording:
        if not (recording.variables or recording.tables) or recording.n_valid == 0:
            raise UsageError(f"{path}: holds no trajectory to compare")
        recording.check_size()
        ended = recording.status != schema.RUNNING and bool(np.isfinite(recording.final["time"]))
        plan = stored_plan(recording, load)
        with tempfile.TemporaryDirectory(prefix="artsim-verify-") as folder:
            again = Path(folder) / "again.h5"
            status = _again(plan, recording, again)
            with open_recording(again) as other:
                elsewhere = made_elsewhere(recording)
                difference = first_difference(recording, other, tolerance if elsewhere else 0.0)
                if difference is None and not elsewhere:
                    difference = first_other(recording, other) or first_fact(recording, plan.robot.articulation)
    if difference and difference.dataset.startswith("final/") and not ended:
        return None
    return difference or _in_ending(recording, plan, status)


def _in_ending(recording: Recording, plan: Plan, status: int) -> Difference | None:
    """The first difference in length and end of a run that ended properly; `status`: how the new run ended."""
    if recording.steps_total not in (None, plan.config.steps):
        return Difference("steps_total", None, f"{recording.steps_total}, {plan.config.steps}")
    if recording.status in (schema.COMPLETE, schema.NON_FINITE) and recording.status != status:
        return Difference("status", None, f"{recording.status}, {status}")
    return None


def _again(plan: Plan, recording: Recording, path: Path) -> int:
    config = replace(
        plan.config,
        steps=_steps_taken(plan.config, recording),
        record=(*recording.variables, *(name for name in schema.RAGGED_BY_NAME if recording.has_tables(name))),
        controller="none" if plan.config.is_python else plan.config.controller,  # its outputs are in the file
    )
    plan = replace(plan, config=config)
    interval = recording.checkpoint_steps
    return run(plan, controls=recording.controls, changes=recording.changes, output=path, checkpoint=interval).status


def _steps_taken(config: RunConfig, recording: Recording) -> int:
    """The number of steps to simulate: never many more than the rows of the file, whatever its configuration says."""
    rows = recording.n_valid
    if recording.steps_total is None and recording.status == schema.COMPLETE:
        return min(int(recording.final["step"]), rows * recording.every)
    if recording.status == schema.INTERRUPTED and int(recording.final["step"]) > 0:
        return min(int(recording.final["step"]), rows * recording.every)
    if recording.status in (schema.RUNNING, schema.INTERRUPTED):
        return (rows - 1) * recording.every + 1
    return min(config.steps, (rows + 1) * recording.every)
