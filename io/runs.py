"""Runs and their files: simulates a plan into a recorder or memory, and simulates a file again to compare it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from artsim import __version__
from artsim.io import schema
from artsim.io.control_files import controls_of, for_every_step, links_pushed, read_controls, read_run_controls
from artsim.io.facts import first_fact, first_other
from artsim.io.interpolation import Interpolation
from artsim.io.labelled_rows import LabelledRows
from artsim.io.output_inputs import read_output_inputs
from artsim.io.output_words import variables_named
from artsim.io.progress import progress_bar, warm
from artsim.io.reader import Delassus, Difference, Output, Recording, delassus_of, first_difference, open_recording
from artsim.io.recorder import Recorder, check_run_name, model_record
from artsim.io.remedy import density_helps
from artsim.io.snapshots import stored
from artsim.sim.articulation.chains import jacobian_columns
from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import Labels
from artsim.sim.articulation.regularity import singular_links
from artsim.sim.equipment.arrays import EquipmentLabels, Equipped
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.targets import level, processor
from artsim.sim.geometry.solids import with_pieces
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.run_records import NON_FINITE
from artsim.sim.runs.changes import Change, changed
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.constraint_names import constraint_names, number_constraints, number_contacts
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.length_range import with_length_ranges
from artsim.sim.runs.plan import Plan, compiled_robot, plan_run
from artsim.sim.runs.reading import OF_MODEL
from artsim.sim.runs.refusals import NEEDS_COMPUTED_TORQUE, led_targets, undriven
from artsim.sim.runs.settings import RunSettings
from artsim.sim.runs.simulate import BlockOfRows, ControllerFunction, Simulation, simulation_of
from artsim.sim.runs.wrench_inputs import with_links, with_pushes

Tables = dict[str, dict[str, Array]]
"""By group of schema.RAGGED: its count and its table by names."""

Progress = Callable[[Simulation], bool]
"""Called after every block; True asks the run to stop."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    simulation: Simulation
    status: int  # schema.COMPLETE, NON_FINITE or INTERRUPTED
    seconds: float  # for simulating and writing, without loading, compiling and laying out the file


def prepare(articulation: Articulation, config: RunConfig) -> Plan:
    """Make the plan of a run after checking that the model has dynamics and finding length ranges of muscles.

    Raises ModelError naming links that move without inertia or a muscle whose length is unbounded, UsageError like
    plan_run.
    """
    plan = plan_run(articulation, config)
    links = singular_links(plan.robot.compiled, articulation.tendons)
    if links:
        source = next(link.source for link in articulation.links if link.name == links[0])
        more = f" (and {len(links) - 1} more: {', '.join(map(repr, links[1:6]))}{', …' if len(links) > 6 else ''})"
        remedy = density_helps(articulation, links)
        raise ModelError(
            f"{source}: link {links[0]!r}{more if len(links) > 1 else ''} moves without any inertia, "
            f"that of the links beyond included; give it mass and inertia{remedy and f' ({remedy})'}, "
            "or fix its joint (or one of them, where several do the same)"
            + ("; the armature of spatial tendons does not count" if _spatial_armature(articulation) else "")
        )
    notes: list[str] = []
    ranged = with_length_ranges(articulation, notes)
    if ranged is not articulation:
        plan = plan_run(ranged, config)
    return replace(plan, notes=(*plan.notes, *notes))


def _spatial_armature(articulation: Articulation) -> bool:
    return any(tendon.kind == "spatial" and tendon.armature > 0 for tendon in articulation.tendons)


def held_controls(plan: Plan) -> Controls:
    """The plan's torques, targets and controls, constant over the whole run but for pushes."""
    held = Controls.held(**{name: getattr(plan, name) for name in VALUES})
    return with_pushes(held, plan.pushed, plan.dt)


def clamped_controls(plan: Plan, controls: Controls) -> list[str]:
    """A warning about controls outside of their actuators' ranges, except 0, which may be a default."""
    if plan.equipped is None or not controls.control.size:
        return []
    lower, upper = plan.equipped.arrays.control_lower, plan.equipped.arrays.control_upper
    beyond = ((controls.control < lower) | (controls.control > upper)) & (controls.control != 0)
    found = np.flatnonzero(beyond.any(axis=0))
    if not found.size:
        return []
    n = int(found[0])
    value = controls.control[np.argmax(beyond[:, n]), n]
    more = f" (and those of {found.size - 1} more actuators)" if found.size > 1 else ""
    name = plan.equipped.labels.controls[n]
    return [f"control {value:g} of {name!r}{more} is outside its range [{lower[n]:g}, {upper[n]:g}] and is clamped"]


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

    Raises what Recorder and Simulation raise. A run that stops early returns, with the status stored in the file.
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
    """Open the file of a simulation that has not begun. Raises what Recorder raises, which takes the other options."""
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


def row_count(rows: Mapping[str, Array], tables: Tables) -> int:
    """The number of recorded rows of a block."""
    counts = [table[schema.RAGGED[group].counted_by] for group, table in tables.items()]
    return len(next(iter((*rows.values(), *counts)), ()))


def named_tables(plan: Plan, found: Mapping[str, Array]) -> Tables:
    """The tables of a block in the form of the groups of schema.RAGGED."""
    tables: Tables = {}
    if "contact_count" in found:
        tables["contact"] = named_contacts(plan, found)
    if "constraint_count" in found:
        kind, owner = found["constraint_kind"], found["constraint_owner"]
        constraints = {name: found[f"constraint_{name}"] for name in ("count", "step", "cfm", "impulse")}
        constraints["constraint_count"] = constraints.pop("count")
        constraints["name"] = number_constraints(constraint_names(plan), kind, owner, found["constraint_part"])
        constraints["contact"] = number_contacts(kind, owner)
        tables["constraint"] = _typed("constraint", constraints)
        renamed = {"entry_count": "entry_count", "step": "entry_step", "value": "entry_value"}
        renamed |= {"row_a": "entry_row", "row_b": "entry_column"}
        tables["delassus"] = _typed("delassus", {name: found[field] for name, field in renamed.items()})
    return tables


def named_contacts(plan: Plan, found: Mapping[str, Array]) -> dict[str, Array]:
    """Contacts of a block by the names of /contact, with the links and geoms of shapes."""
    if plan.touching is None or "contact_count" not in found:
        return {}
    g = plan.touching.contacts
    of_world = file_labels(plan.robot.labels).touching_link.index("world")
    shapes = found["contact_shapes"].astype(np.int64)
    link, geom = np.where(g.link < 0, of_world, g.link)[shapes], g.geom[shapes]
    sides = {"link_a": link[:, 0], "link_b": link[:, 1], "geom_a": geom[:, 0], "geom_b": geom[:, 1]}
    rest = {name: found[f"contact_{name}"] for name in schema.CONTACT_TABLE if name not in sides}
    return _typed("contact", {"contact_count": found["contact_count"], **sides, **rest})


def _typed(group: str, table: Mapping[str, Array]) -> dict[str, Array]:
    """A table in the order and the types of its group."""
    names = (schema.RAGGED[group].counted_by, *schema.RAGGED[group].table)
    return {name: table[name].astype(schema.TABLE[f"{group}/{name}"].dtype) for name in names}


def no_controls(plan: Plan) -> Controls:
    """Empty controls, for those of a controller, which follow block by block."""
    empty = np.zeros((0, plan.robot.nv))
    return Controls(np.zeros(0, np.int64), empty, empty, empty, np.zeros((0, len(plan.control))))


def facts_of(plan: Plan) -> dict[str, str | int | float]:
    config = plan.config
    return {
        "dt": plan.dt,
        "steps": config.steps,
        "every": config.every,
        "integrator": config.integrator,
        "solver": config.solver,
        "coupling": config.coupling,
        "seed": config.seed,
    }


def run_labels(plan: Plan) -> schema.Labels:
    """The labels of a run as stored in its file."""
    labels = file_labels(plan.robot.labels, plan.equipped)
    if plan.touching is not None and "contacts" in plan.config.record:
        labels = labels._replace(geom=plan.touching.geoms)
    if "delassus" in plan.config.record:
        labels = labels._replace(constraint=tuple(constraint_names(plan).values()))
    if "jacobian" in plan.config.record:
        link, dof = (tuple(indices.tolist()) for indices in jacobian_columns(plan.robot.model))
        labels = labels._replace(jacobian_link=link, jacobian_dof=dof)
    return labels


def file_labels(labels: Labels, equipped: Equipped | None = None) -> schema.Labels:
    """The engine's labels in the form of the file, without geoms and columns of Jacobians."""
    names = EquipmentLabels() if equipped is None else equipped.labels
    return schema.Labels(
        coord=labels.coords,
        dof=labels.dofs,
        link=labels.links,
        independent_dof=labels.independent_dofs,
        coord_units=labels.coord_units,
        dof_units=labels.dof_units,
        force_units=labels.force_units,
        actuator=names.actuators,
        actuator_state=names.activations,
        tendon=names.tendons,
        loop=names.loops,
        sensor=names.sensors,
        sensor_units=names.sensor_units,
    ).with_controls(names.controls)


def provenance(command: str) -> dict[str, str | int | float]:
    """The provenance of a run: command, versions, processor."""
    versions = {name: _version(name) for name in ("numpy", "numba", "llvmlite", "h5py")}
    return {
        "command": command,
        "versions": json.dumps({"artsim": __version__, "python": sys.version.split()[0], **versions}),
        "threads": 1,
        "cpu": processor(),
        "level": level(),
    }


def _version(package: str) -> str:
    """A package's version without importing it; importlib.metadata alone takes 20 ms."""
    if package in sys.modules:
        return str(sys.modules[package].__version__)
    spec = find_spec(package)
    folder = Path(spec.origin).parents[1] if spec is not None and spec.origin else Path()
    for about in folder.glob(f"{package}-*.dist-info"):
        return about.name.removesuffix(".dist-info").partition("-")[2]
    from importlib import metadata

    return metadata.version(package)


# ------------------------------------------------------------------ from Python


class MemoryRecording(LabelledRows):
    """A run held in memory; addressed like a Recording: `["qpos"]`, `.labels`, `.time`, `.to_xarray()`."""

    def __init__(self, plan: Plan, rows: dict[str, Array], tables: Tables, outcome: Outcome) -> None:
        self.robot = plan.robot
        self.config = plan.config
        self.status = outcome.status
        self.labels = run_labels(plan)
        self.variables = tuple(name for name in schema.RECORDED if name in rows)
        self.attrs = {"title": f"artsim run of {plan.robot.articulation.name}"}
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
    """Simulate a robot from Python.

    Args:
        robot: the robot; its options of loading (base, couplings, gravity) also hold for the run, unless `settings`
            override them.
        controller: name of a built-in controller, or function(t, qpos, qvel) -> joint forces (nv,).
        controls: targets and torques over time: Controls, or a file as for `artsim run --control`.
        output: HDF5 file to write; None keeps the rows in memory. `force` overwrites it, `compress`: gzip or zstd.
        checkpoint: steps between checkpoints in the output; None: chosen by their size; 0: none.
        check: raise StoppedError if the run stops early; False returns the rows recorded until then.
        progress: show a bar on a terminal or in a notebook.
        threads: number of threads that solve groups of bodies in contact side by side; results do not depend on it.
        settings: see RunSettings: steps, dt, every, q0, v0, target, torque, stiffness, damping, record, …

    Returns:
        The run in memory, or the output file, opened.

    Raises:
        UsageError, ModelError, StoppedError; with an output also what Recorder raises.
    """
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


def joined(blocks: list[dict[str, Array]]) -> dict[str, Array]:
    """The arrays of consecutive blocks, one after the other."""
    return {name: np.concatenate([block[name] for block in blocks]) for name in (blocks[0] if blocks else ())}


def prepared(
    robot: Robot,
    controller: ControllerFunction | str,
    controls: Controls | str | os.PathLike[str] | None,
    settings: Mapping[str, Any],
    file: object = None,
) -> tuple[Plan, Controls | None, ControllerFunction | None]:
    """The plan of a run, its inputs over time, and the Python controller, from the arguments of `simulate`. `file`:
    another control file, for the inputs of samples."""
    from artsim.io.plain_settings import plain_settings

    function = None if isinstance(controller, str) else controller
    name = controller if isinstance(controller, str) else _python_name(controller)
    robot = as_read(robot, settings)
    values = {**robot.loaded_with, **plain_settings(settings, robot)}
    config = RunConfig.from_mapping({**values, "controller": name})
    if isinstance(file := controls if file is None else file, str | os.PathLike):
        config = with_links(config, links_pushed(file, [link.name for link in robot.articulation.links]))
    plan = prepare(robot.articulation, config)
    if isinstance(controls, Controls):
        controls = for_every_step(controls, plan.dt, Interpolation(plan.config.interpolate, plan.config.steps))
        controls = with_pushes(controls, plan.pushed, plan.dt)
    elif controls is not None:
        controls = plan_controls(plan, controls)
    return plan, controls, function


def as_read(robot: Robot, settings: Mapping[str, Any]) -> Robot:
    """The robot with the base that a run's settings ask for.

    Raises UsageError for a base that an MJCF file chooses itself, and for settings of reading that differ from those
    with which the robot was read.
    """
    for name, setting in OF_MODEL.items():
        before = robot.loaded_with.get(name, setting.default)
        if name != "base" and name in settings and robot.loaded_with and settings[name] != before:
            raise UsageError(f"{name} is an option of artsim.load: this robot was loaded with {before}")
    base = settings.get("base", robot.articulation.base)
    if base == robot.articulation.base or base not in ("fixed", "floating"):  # which RunConfig refuses
        return robot
    if not robot.articulation.conventions.base_chosen:
        raise UsageError(f"base is {base!r}, but the model's file says itself what is free: {robot.articulation.path}")
    articulation = replace(robot.articulation, base=base)
    compiled = compiled_robot(articulation, RunConfig.from_mapping({**robot.loaded_with, "base": base}), locks=False)
    return replace(compiled, loaded_with={**robot.loaded_with, "base": base})


def plan_controls(plan: Plan, path: str | os.PathLike[str], *, stored: bool = False) -> Controls:
    """Read the inputs of a control file for this run; `stored`: of a run file with any name, as they acted."""
    names = () if plan.equipped is None else plan.equipped.labels.controls
    held = {name: getattr(plan, name) for name in VALUES}
    if stored:
        return read_run_controls(path, plan.robot.dofs, plan.dt, actuators=names, **held)
    interpolation = Interpolation(plan.config.interpolate, plan.config.steps)
    if (named := variables_named(str(path))) is not None:
        file, pairs = named
        table = read_output_inputs(file, pairs, plan.robot, names, plan.dt)
        controls = controls_of(Path(file), table, plan.dt, held, interpolation)
    else:
        controls = read_controls(path, plan.robot.dofs, plan.dt, actuators=names, interpolation=interpolation, **held)
    check_driven(plan, controls, path)
    return with_pushes(controls, plan.pushed, plan.dt)


def late_controls(plan: Plan, controls: Controls) -> list[str]:
    """A warning about inputs of a file whose first row is later than the start of the run."""
    if not controls.begin:
        return []
    given = [name for name in VALUES if getattr(plan.config, name) and np.any(getattr(plan, name))]
    options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
    what = f"the values of {options} act" if given else "no torque acts and targets are the start"
    return [f"inputs begin at t = {controls.begin * plan.dt:.6g} s; before that {what}"]


def check_driven(plan: Plan, controls: Controls, path: str | os.PathLike[str]) -> None:
    """Raise UsageError for targets of joints without a drive, and accelerations without computed torque."""
    if plan.config.built_in.follows:
        return
    for k in np.flatnonzero(np.any(controls.target_acceleration, axis=0)):
        raise UsageError(f"{path}: acceleration of {plan.robot.dofs[k]!r} {NEEDS_COMPUTED_TORQUE}")
    driven = (plan.inputs["drive_stiffness"] > 0) | (plan.inputs["drive_damping"] > 0)
    driven[[*led_targets(plan.robot.model, controls.target)]] = True
    moved = np.any((controls.target != plan.target) | (controls.target_velocity != plan.target_velocity), axis=0)
    for k in np.flatnonzero(moved & ~driven):
        name = plan.robot.dofs[k]
        raise UsageError(f"{path}: target of {name!r} {undriven(name)}")


def _python_name(function: ControllerFunction) -> str:
    """The name of a Python controller in the file. Its outputs are stored, so the name is never looked up."""
    module = str(getattr(function, "__module__", None) or "python")
    return f"{module}.py:{getattr(function, '__qualname__', type(function).__name__)}"


# ------------------------------------------------------------------ replay


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
_MATTER = ("artsim", "numpy", "numba", "llvmlite")  # versions that may change numbers


def made_elsewhere(output: Output) -> str:
    """How processor and versions differ from those here, in words; if empty, numbers must agree bit for bit."""
    here = provenance("")
    there = {"cpu": output.provenance.get("cpu", here["cpu"]), "versions": output.provenance.get("versions", "{}")}
    told = [] if there["cpu"] == here["cpu"] else [f"cpu {there['cpu']}, here {here['cpu']}"]
    try:
        before, now = json.loads(there["versions"]), json.loads(str(here["versions"]))
        told += [
            f"{name} {before[name]}, here {now[name]}" for name in _MATTER if before.get(name, now[name]) != now[name]
        ]
    except (ValueError, AttributeError, TypeError):
        told.append("unknown versions")
    return "; ".join(told)


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
