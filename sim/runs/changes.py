"""Changes of the state or of settings between two steps of a run.

They are made in place where a run is stepped, and repeated where its file is simulated again.

A changed setting makes a new plan from the robot's description, so that the setting has the meaning that it has at the
start of a run; the state goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.equipment.arrays import WRENCH
from artsim.sim.foundation.errors import ModelError, SettingError, UsageError, nearest
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.patterns import ALL
from artsim.sim.runs.plan import Plan, plan_run
from artsim.sim.runs.settings import SETTINGS
from artsim.sim.runs.simulate import Simulation
from artsim.sim.runs.start import follow_velocities, settle_coordinates

CHANGEABLE = tuple(name for name, setting in SETTINGS.items() if setting.changes)
"""The settings that can change during a run."""
STATES = ("qpos", "qvel", "activation")


class Change(NamedTuple):
    """A change before a step: settings by the names of RunConfig, or whole parts of the state."""

    step: int
    settings: Mapping[str, Any] = {}
    state: Mapping[str, Sequence[float]] = {}

    def to_json(self) -> str:
        """The change as one line."""
        return json.dumps(self._asdict(), sort_keys=True)

    @classmethod
    def from_json(cls, line: str) -> Change:
        """Read a line written by `to_json`. Raises ModelError for any other text."""
        try:
            content = json.loads(line)
            step, settings, state = int(content["step"]), dict(content["settings"]), dict(content["state"])
            right = step >= 0 and set(settings) <= set(CHANGEABLE) and set(state) <= set(STATES)
            numbers = {name: [float(x) for x in values] for name, values in state.items()}
        except (ValueError, KeyError, TypeError, RecursionError):
            right = False
        if not right:
            raise ModelError(f"a change is {line[:80]!r}, want step, settings and state")
        return cls(step, settings, numbers)


def changed_config(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """The configuration with other settings. Raises SettingError for one that does not change during a run."""
    for name in settings:
        if name not in CHANGEABLE:
            raise SettingError(f"{name!r} does not change during a run{nearest(name, CHANGEABLE)}", name)
    return RunConfig.from_mapping({**asdict(config), **settings})


def changed(simulation: Simulation, change: Change) -> Simulation:
    """The simulation that goes on from this one's state with a change; the same object if only the state changes.

    Raises the errors of plan_run, and UsageError for a state of wrong size, not finite, or that breaks a coupling.
    """
    if change.settings:
        old = simulation.plan
        plan = plan_run(old.robot.articulation, changed_config(old.config, change.settings))
        values = {name: getattr(simulation.inputs, name) for name in VALUES}
        acting = controls_for(Controls(simulation.inputs.start_step, **values), old, plan)
        changed_run = simulation_of(plan, acting, simulation.controller, simulation.threads)
        changed_run.go_on_from(simulation)
        qpos, qvel = np.array(changed_run.qpos), np.array(changed_run.qvel)
        settle_coordinates(plan.robot.model, plan.robot.labels, qpos, {})
        follow_velocities(plan.robot.model, plan.robot.labels, qpos, qvel, {})
        changed_run.set_state(qpos=qpos, qvel=qvel)
        simulation = changed_run
    if change.state:
        simulation.set_state(**_checked_state(simulation, change.state))
    return simulation


def _checked_state(simulation: Simulation, state: Mapping[str, Sequence[float]]) -> dict[str, Real]:
    """The given parts of the state, and the velocities of followers, as arrays."""
    robot = simulation.plan.robot
    labels, model = robot.labels, robot.model
    found = {name: np.array(values, float) for name, values in state.items()}
    for name, values in found.items():
        size = getattr(simulation, name).shape
        if values.shape != size:
            raise UsageError(f"{name} has shape {values.shape}, want {size}")
        if not np.all(np.isfinite(values)):
            raise UsageError(f"{name} is not finite")
    qpos, qvel = found.get("qpos", np.array(simulation.qpos)), found.get("qvel", np.array(simulation.qvel))
    if "qpos" in found:
        settle_coordinates(model, labels, qpos, dict(zip(labels.coords, qpos.tolist(), strict=True)))
    if "qpos" in found or "qvel" in found:
        given = dict(zip(labels.dofs, qvel.tolist(), strict=True)) if "qvel" in found else {}
        follow_velocities(model, labels, qpos, qvel, given)
        found["qvel"] = qvel
    return found


def controls_for(controls: Controls, before: Plan, after: Plan) -> Controls:
    """The controls of one plan for another: wrenches that only the other plan has take the values of its settings."""
    told, tells = _wrenches(before), _wrenches(after)
    if [*told] == [*tells]:
        return controls
    values = {name: getattr(controls, name) for name in VALUES}
    own = values["control"].shape[1] - WRENCH * len(told)
    columns = {link: values["control"][:, own + WRENCH * k : own + WRENCH * (k + 1)] for k, link in enumerate(told)}
    pushed = [columns[link] if link in told else np.tile(held, (controls.rows, 1)) for link, held in tells.items()]
    values["control"] = np.concatenate([values["control"][:, :own], *pushed], axis=1)
    return Controls(controls.start_step, **values)


def told_otherwise(before: Plan, after: Plan) -> dict[str, tuple[float, ...]]:
    """The wrenches of the second plan on links for which the settings of the first tell another one."""
    told = _wrenches(before)
    return {link: wrench for link, wrench in _wrenches(after).items() if told.get(link, wrench) != wrench}


def _wrenches(plan: Plan) -> dict[str, tuple[float, ...]]:
    """The wrenches that a plan holds, by link, in their order among the controls."""
    held = plan.pushed.held.reshape(-1, WRENCH).tolist()
    return {wrench.link: tuple(values) for wrench, values in zip(plan.pushed.wrenches, held, strict=True)}


def with_entry(config: RunConfig, setting: str, name: str, value: float) -> dict[str, Any]:
    """The setting with another value for one name."""
    before = getattr(config, setting)
    if setting == "coupling_erp" and not isinstance(before, Mapping):
        before = {ALL: before}
    return {setting: {**(before if isinstance(before, Mapping) else {}), name: value}}
