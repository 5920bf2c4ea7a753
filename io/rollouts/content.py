"""The content of a rollout's file: its variables, inputs and facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import Labels
from artsim.io.output_file.batch_file import Column, Content
from artsim.io.output_file.model_record import model_record
from artsim.io.rollouts.draws import Draws, RolloutConfig
from artsim.io.rollouts.given import COLUMNS
from artsim.io.rollouts.sample_inputs import SampleControls
from artsim.io.runs.named import run_labels
from artsim.io.runs.provenance import overlap_facts
from artsim.sim.foundation.records import Array
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import records_contacts, row_count
from artsim.sim.runs.varied import part_labels, shape_of


def content_of(
    plan: Plan,
    config: RolloutConfig,
    draws: Draws,
    controls: Sequence[Controls],
    samples: range,
    facts: Mapping[str, str | int | float],
    *,
    acted: bool = False,
) -> Content:
    """The content of a file of these samples, with their controls, or one for all of them.

    `acted`: whether a policy gave the controls, which are then each sample's own, also where they are equal: files of
    other samples have as many.
    """
    robot, rows = plan.robot, row_count(plan)
    columns = {}
    for name, shape in plan.row_shapes.items():
        variable = schema.TABLE[f"rollout/{name}"]
        columns[name] = Column(variable.dims[1:], (rows, *shape), variable.dtype)
    contacts = dict[str, Column]()
    if records_contacts(plan):
        columns["contact_count"] = Column(("time",), (rows,), "i8")
        for name in schema.SAMPLE_CONTACT_TABLE:
            variable = schema.TABLE[f"contact/{name}"]
            contacts[name] = Column(variable.dims[1:], (3,) * len(variable.dims[1:]), variable.dtype)
    columns |= {"final_qpos": Column(("coord",), (robot.nq,), "f8"), "final_qvel": Column(("dof",), (robot.nv,), "f8")}
    columns |= {f"start_{name}": columns[f"final_{name}"] for name in draws.starts}
    for name in draws.properties:
        columns[COLUMNS[name]] = Column(schema.TABLE[f"rollout/{COLUMNS[name]}"].dims[1:], shape_of(plan, name), "f8")
    own = [*(["cost"] if config.cost else []), "unsolved_steps", "worst_residual", "n_valid", "status"]
    if plan.touching is not None:
        held = ["held_steps", "held_depth"] if has_held(plan) else []
        own = ["start_depth", "sunk", "sunk_share", *held, *own]
    columns |= {name: Column((), (), schema.TABLE[f"rollout/{name}"].dtype) for name in own}
    told: dict[str, str | int | float] = {"dt": plan.dt, "steps": plan.config.steps, "every": plan.config.every}
    told["seed"] = plan.config.seed
    both = {"run": json.loads(plan.config.to_json()), "rollout": asdict(config)}
    return Content(
        rows=len(samples),
        columns=columns,
        labels=sample_labels(plan),
        model=model_record(robot.articulation, plan.kept),
        facts=told | {"first_row": samples.start, "rows_of_job": config.samples},
        provenance={**facts, "config": json.dumps(both, sort_keys=True), **told, **overlap_facts(plan)},
        group="rollout",
        numbers={"time": np.arange(rows) * (plan.config.every * plan.dt)},
        inputs=_inputs(plan, controls, acted=acted),
        contacts=contacts,
    )


def sample_labels(plan: Plan) -> Labels:
    """The labels of a rollout: those of a run, and of properties that samples have of their own."""
    pushes, delayed = (tuple(part_labels(plan, name) or ()) for name in ("push", "delay"))
    return run_labels(plan)._replace(push=pushes, delayed_control=delayed)


def has_held(plan: Plan) -> bool:
    """True if loops may hold links inside each other."""
    return plan.touching is not None and bool(plan.robot.articulation.loops)


def left_out(content: Content, samples: int) -> dict[str, Array]:
    """The block of samples that were not simulated: NaN, whole numbers -1, no valid rows and status 0."""
    block = {}
    for name, column in content.columns.items():
        empty = np.nan if column.dtype.startswith("f") else -1
        number = {"n_valid": 0, "status": schema.RUNNING}.get(name, empty)
        block[name] = np.broadcast_to(np.array(number, column.dtype), (samples, *column.shape))
    return block


def _inputs(plan: Plan, controls: Sequence[Controls], *, acted: bool) -> dict[str, Array]:
    """The inputs as they acted; those that all samples share are stored once, unless a policy gave them."""
    first = controls[0]
    names = schema.CONTROL_VALUES if first.control.size else schema.CONTROL_VALUES[:-1]
    inputs = {"time": first.start_step * plan.dt, "start_step": first.start_step}
    for name in names:
        if isinstance(controls, SampleControls):
            each = controls.arrays.get(name, getattr(first, name)[None])
        else:
            values = [getattr(one, name) for one in controls]
            each = values[0][None] if all(_equal(one, values[0]) for one in values) else np.stack(values)
        own = acted and isinstance(controls, SampleControls) and name in controls.arrays
        inputs[name] = each if own or not all(_equal(one, each[0]) for one in each) else each[0]
    return inputs


def _equal(one: Array, other: Array) -> bool:
    """True for numbers of the same bits."""
    return np.array_equal(one.view(np.int64), other.view(np.int64))
