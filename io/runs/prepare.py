"""The plan of a run with its inputs over time, from a robot and settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from artsim.io.inputs.control_files import controls_of, for_every_step, links_pushed, read_controls, read_run_controls
from artsim.io.inputs.interpolation import Interpolation
from artsim.io.inputs.output_inputs import read_output_inputs, variables_named
from artsim.io.runs.plain_settings import plain_settings
from artsim.io.runs.remedy import density_helps
from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.regularity import singular_links
from artsim.sim.foundation.errors import ModelError, UsageError
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.compiled_robot import compiled_robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.length_range import with_length_ranges
from artsim.sim.runs.plan import Plan, plan_run
from artsim.sim.runs.reading import OF_MODEL
from artsim.sim.runs.refusals import NEEDS_COMPUTED_TORQUE, led_targets, undriven
from artsim.sim.runs.simulate import ControllerFunction
from artsim.sim.runs.wrench_inputs import with_links, with_pushes

_PLANS = 4  # of the last runs of a robot are kept: calls that are repeated begin at once


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
    return plan.held


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


def no_controls(plan: Plan) -> Controls:
    """Empty controls, for those of a controller, which follow block by block."""
    empty = np.zeros((0, plan.robot.nv))
    return Controls(np.zeros(0, np.int64), empty, empty, empty, np.zeros((0, len(plan.control))))


def prepared(
    robot: Robot,
    controller: ControllerFunction | str,
    controls: Controls | str | os.PathLike[str] | None,
    settings: Mapping[str, Any],
    file: object = None,
) -> tuple[Plan, Controls | None, ControllerFunction | None]:
    """The plan of a run, its inputs over time, and the Python controller, from the arguments of `simulate`. `file`:
    another control file, for the inputs of samples."""
    function = None if isinstance(controller, str) else controller
    name = controller if isinstance(controller, str) else _python_name(controller)
    robot = as_read(robot, settings)
    values = {**robot.loaded_with, **plain_settings(settings, robot), "controller": name}
    pushed: tuple[str, ...] = ()
    if isinstance(file := controls if file is None else file, str | os.PathLike):
        pushed = tuple(links_pushed(file, [link.name for link in robot.articulation.links]))
    plan = _plan_of(robot, values, pushed)
    if isinstance(controls, Controls):
        controls = acting_controls(plan, controls)
    elif controls is not None:
        controls = plan_controls(plan, controls)
    return plan, controls, function


def acting_controls(plan: Plan, controls: Controls) -> Controls:
    """The inputs of a run for each of its steps, with its pushes; controls of actuators and wrenches that are not given
    are those of the plan."""
    every = for_every_step(controls, plan.dt, Interpolation(plan.config.interpolate, plan.config.steps))
    if not every.control.shape[1] and plan.pushed.pushes:
        every = every.with_values({"control": np.tile(plan.control, (every.rows, 1))})
    return with_pushes(every, plan.pushed, plan.dt)


def _plan_of(robot: Robot, values: dict[str, Any], pushed: tuple[str, ...]) -> Plan:
    """The plan of a run whose control file pushes these links; that of one of the last _PLANS runs where it was of the
    same settings."""
    known = values, pushed
    try:
        plan = next((plan for before, plan in robot.plans if before == known), None)
    except ValueError:  # arrays where none belong, which RunConfig refuses
        plan = None
    if plan is None:
        plan = prepare(robot.articulation, with_links(RunConfig.from_mapping(values), pushed))
        robot.plans.insert(0, (known, plan))
        del robot.plans[_PLANS:]
    return plan


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
    if base not in robot.on_bases:
        articulation = replace(robot.articulation, base=base)
        config = RunConfig.from_mapping({**robot.loaded_with, "base": base})
        compiled = compiled_robot(articulation, config, locks=False)
        robot.on_bases[base] = replace(compiled, loaded_with={**robot.loaded_with, "base": base})
    return robot.on_bases[base]


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
