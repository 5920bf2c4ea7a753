"""A run and its file: simulate a plan into a recorder, and simulate a file again to compare it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from artsim.io import schema
from artsim.io.controls import Controls
from artsim.io.reader import Difference, Recording, first_difference, open_recording
from artsim.io.recorder import Recorder, model_record
from artsim.sim.configuration import Plan, RunConfig, plan_run
from artsim.sim.description import Articulation
from artsim.sim.errors import ModelError, UsageError
from artsim.sim.model import Labels
from artsim.sim.records import Array
from artsim.sim.regularity import singular_links
from artsim.sim.run import NON_FINITE
from artsim.sim.simulate import Controller, ControlRows, Simulation

Progress = Callable[[Simulation], bool]
"""Called after every block; True asks the run to stop."""


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    simulation: Simulation
    status: int  # schema.COMPLETE, NON_FINITE or INTERRUPTED


def prepare(articulation: Articulation, config: RunConfig) -> Plan:
    """plan_run, after making sure that the model has dynamics.

    Raises ModelError naming the links that move without inertia, UsageError as plan_run does.
    """
    plan = plan_run(articulation, config)
    links = singular_links(plan.robot.compiled)
    if links:
        source = next(link.source for link in articulation.links if link.name == links[0])
        more = f" (and {len(links) - 1} more: {', '.join(map(repr, links[1:6]))}{', …' if len(links) > 6 else ''})"
        raise ModelError(
            f"{source}: link {links[0]!r}{more if len(links) > 1 else ''} moves without any inertia, "
            "that of the links beyond included; give it mass and inertia, or fix its joint"
        )
    return plan


def held_controls(plan: Plan) -> Controls:
    """The plan's torques and targets for the whole run."""
    return Controls.held(torque=plan.torque, target=plan.target, target_velocity=plan.target_velocity)


def run(
    plan: Plan,
    *,
    controls: Controls | None = None,
    controller: Controller | None = None,
    output: str | os.PathLike[str] | None = None,
    provenance: Mapping[str, str | int | float] | None = None,
    compress: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
    on_block: Callable[[dict[str, Array]], None] | None = None,
) -> Outcome:
    """Simulate, into a file when `output` is given; what a Python controller returned is stored as it acted.

    Raises what Recorder and Simulation raise. A run that stops early returns, with the status stored in the file.
    """
    controls = controls or held_controls(plan)
    simulation = Simulation(plan, _rows(controls), controller)
    if output is None:
        return Outcome(simulation, _drive(simulation, None, progress, on_block))
    recorder = Recorder(
        output,
        labels=file_labels(plan.robot.labels),
        dt=plan.config.dt,
        model=model_record(plan.robot.articulation),
        controls=controls if controller is None else _none(plan.robot.nv),
        provenance=dict(provenance or {}) | {"config": plan.config.to_json(), **_facts(plan)},
        variables=plan.config.record,
        steps_total=plan.config.steps,
        every=plan.config.every,
        compress="gzip" if compress == "gzip" else None,
        force=force,
    )
    with recorder:
        simulation.block_rows = recorder.block_rows
        simulation.reblock()
        status = _drive(simulation, recorder, progress, on_block)
        recorder.close(
            status,
            {"qpos": simulation.qpos, "qvel": simulation.qvel, "step": simulation.step, "time": simulation.time},
        )
    return Outcome(simulation, status)


def _drive(
    simulation: Simulation,
    recorder: Recorder | None,
    progress: Progress | None,
    on_block: Callable[[dict[str, Array]], None] | None,
) -> int:
    for block in simulation.blocks():
        if recorder is not None:
            recorder.write(block.rows, None if block.controls is None else _controls(block.controls))
        if on_block is not None:
            on_block(block.rows)
        if progress is not None and progress(simulation) and simulation.step < simulation.plan.config.steps:
            return schema.INTERRUPTED
    if simulation.stop_reason:
        return schema.NON_FINITE if simulation.stop_reason == NON_FINITE else schema.INTERRUPTED
    return schema.COMPLETE


def _rows(controls: Controls) -> ControlRows:
    return ControlRows(controls.start_step, controls.torque, controls.target, controls.target_velocity)


def _controls(rows: ControlRows) -> Controls:
    return Controls(rows.start_step, rows.torque, rows.target, rows.target_velocity)


def _none(nv: int) -> Controls:
    empty = np.zeros((0, nv))
    return Controls(np.zeros(0, np.int64), empty, empty, empty)


def _facts(plan: Plan) -> dict[str, str | int | float]:
    config = plan.config
    return {
        "dt": config.dt,
        "steps": config.steps,
        "every": config.every,
        "integrator": config.integrator,
        "solver": config.solver,
        "coupling": config.coupling,
        "seed": config.seed,
    }


def file_labels(labels: Labels) -> schema.Labels:
    """The engine's labels as the file names them."""
    return schema.Labels(
        coord=labels.coords,
        dof=labels.dofs,
        link=labels.links,
        independent_dof=labels.independent_dofs,
        coord_units=labels.coord_units,
        dof_units=labels.dof_units,
        force_units=labels.force_units,
    )


# ------------------------------------------------------------------ replay


def verify(path: str | os.PathLike[str], load: Callable[[str, str, RunConfig], Articulation]) -> Difference | None:
    """Simulate again what the file holds (model text, configuration, inputs) and compare byte for byte.

    `load(text, name, config)` reads the stored model. Returns the first difference, None when there is none.
    Raises as the gate and the run do; UsageError for a file that is no run.
    """
    with open_recording(path) as recording:
        config = RunConfig.from_mapping(recording.config)
        if "qpos" not in recording:
            raise UsageError(f"{path}: holds no trajectory to compare")
        plan = plan_run(load(recording.model_text, str(recording.model.get("name", "model")), config), config)
        folder = Path(tempfile.mkdtemp(prefix="artsim-verify-"))
        again = folder / "again.h5"
        try:
            _again(plan, recording, again)
            with open_recording(again) as other:
                return first_difference(recording, other)
        finally:
            again.unlink(missing_ok=True)
            for left in folder.iterdir():
                left.unlink()
            folder.rmdir()


def _again(plan: Plan, recording: Recording, path: Path) -> None:
    from dataclasses import replace

    steps = int(recording.final["step"]) if recording.status != schema.RUNNING else plan.config.steps
    config = replace(plan.config, steps=max(steps, 1), controller=_without_python(plan.config))
    run(replace(plan, config=config), controls=recording.controls, output=path)


def _without_python(config: RunConfig) -> str:
    """A Python controller is never run again: its outputs are in the file."""
    return "none" if config.is_python else config.controller
