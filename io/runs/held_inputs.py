"""Inputs and settings that a stepped simulation was given on the way, as parts of its snapshots.

A snapshot has the same arrays whatever was given: inputs of all joints, controls, and wrenches on all links, NaN where
the control rows of the start still act; and the settings that are no longer those of the start, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from artsim.sim.equipment.arrays import WRENCH
from artsim.sim.foundation.errors import ArtsimError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.changes import CHANGEABLE, changed_config, controls_for
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.plan import Plan, plan_run
from artsim.sim.runs.simulate import Simulation

_SETTINGS = "changed_settings"
_COMMAND, _PUSHED = "command", "command_wrench"


class HeldInputs:
    """The inputs given to steps since the start; `values` by input, with those of `wrench` by link (links, 6)."""

    def __init__(self, simulation: Simulation) -> None:
        plan = simulation.plan
        self._start, self._controls = plan, _whole_controls(simulation)
        links, actuated = len(plan.robot.links), len(plan.control) - len(plan.pushed.held)
        sizes = dict.fromkeys(VALUES, (plan.robot.nv,)) | {"control": (actuated,), "wrench": (links, WRENCH)}
        self.values = {name: np.full(size, np.nan) for name, size in sizes.items()}

    def saved(self, simulation: Simulation) -> dict[str, Array]:
        """The simulation's snapshot with the held inputs and the settings that were changed."""
        snapshot = simulation.save()
        command, own = snapshot[_COMMAND], self._own_commands
        pushed = np.zeros(self.values["wrench"].shape)
        pushed[_pushed_links(simulation.plan)] = command[own:].reshape(-1, WRENCH)
        held = {f"held_{name}": values.copy() for name, values in self.values.items()}
        settings = np.array(_changed(self._start.config, simulation.plan.config))
        return {**snapshot, _COMMAND: command[:own], _PUSHED: pushed, **held, _SETTINGS: settings}

    def restored(self, simulation: Simulation, snapshot: Mapping[str, Array]) -> Simulation:
        """The simulation of a snapshot: this one, or another where settings differ. Raises UsageError for a snapshot
        that does not fit; the simulation is then as it was."""
        given = dict(snapshot)
        held = {name: np.asarray(given.pop(f"held_{name}", ())) for name in self.values}
        pushed, settings = np.asarray(given.pop(_PUSHED, ())), str(given.pop(_SETTINGS, ""))
        for name, values in (*held.items(), ("wrench", pushed)):
            if values.shape != self.values[name].shape or values.dtype.kind != "f":
                raise UsageError(
                    f"snapshot: held inputs {name!r} have shape {values.shape}, want {self.values[name].shape}; "
                    "is it of another robot?"
                )
        plan = self._plan_with(simulation.plan, settings)
        command = np.asarray(given.get(_COMMAND, ()))
        if command.ndim == 1:
            given[_COMMAND] = np.concatenate([command, pushed[_pushed_links(plan)].ravel()])
        goes_on = simulation
        if plan is not simulation.plan:
            controls = controls_for(self._controls, self._start, plan)
            goes_on = simulation_of(plan, controls, simulation.controller, simulation.threads)
        goes_on.restore(given)
        self._reset(goes_on)
        self.values = {name: np.array(values) for name, values in held.items()}
        self._act(goes_on)
        return goes_on

    @property
    def _own_commands(self) -> int:
        """The size of the commands without those of wrenches."""
        return sum(self.values[name].size for name in VALUES)

    def _plan_with(self, now: Plan, settings: str) -> Plan:
        """The plan with these changed settings: the one there is, or a new one."""
        if settings == _changed(self._start.config, now.config):
            return now
        try:
            content = json.loads(settings)
            config = changed_config(self._start.config, content)
        except (ValueError, TypeError, RecursionError, ArtsimError) as error:
            raise UsageError(f"snapshot: {_SETTINGS} is {settings[:80]!r}: {error}") from None
        return plan_run(self._start.robot.articulation, config)

    def _reset(self, simulation: Simulation) -> None:
        """Let the control rows of the start act again."""
        if all(np.isnan(values).all() for values in self.values.values()):
            return
        controls = controls_for(self._controls, self._start, simulation.plan)
        for name in VALUES:
            getattr(simulation.inputs, name)[:] = getattr(controls, name)

    def _act(self, simulation: Simulation) -> None:
        """Let the held inputs act from the next step on."""
        for name in VALUES:
            known = np.flatnonzero(~np.isnan(self.values[name]))
            simulation.acting(name, later=True)[:, known] = self.values[name][known]
        for link, at in pushed_places(simulation.plan).items():
            wrench = self.values["wrench"][simulation.plan.robot.links.index(link)]
            if not np.isnan(wrench).any():
                simulation.acting("control", later=True)[:, at] = wrench


def pushed_places(plan: Plan) -> dict[str, slice]:
    """The places among the controls of the wrenches on links, by link."""
    first = len(plan.control) - len(plan.pushed.held)
    links = [wrench.link for wrench in plan.pushed.wrenches]
    return {link: slice(first + WRENCH * k, first + WRENCH * (k + 1)) for k, link in enumerate(links)}


def input_names(plan: Plan, name: str) -> tuple[str, ...]:
    """The names of an input's entries; controls without those of wrenches."""
    if name != "control":
        return plan.robot.dofs
    count = len(plan.control) - len(plan.pushed.held)
    return () if plan.equipped is None else plan.equipped.labels.controls[:count]


def action_of(plan: Plan) -> str:
    """The input that an array without a name is: controls of actuators, else targets of drives, else torques."""
    if input_names(plan, "control"):
        return "control"
    return "target" if np.any(plan.inputs["drive_stiffness"]) else "torque"


def named_entries(name: str, given: Iterable[str], names: tuple[str, ...]) -> list[int]:
    """The entries of an input with these names. Raises UsageError."""
    for entry in given:
        if entry not in names:
            noun = "an actuator" if name == "control" else "a joint"
            raise UsageError(f"{name}: {entry!r} is not {noun} of this robot{nearest(entry, names)}")
    return [names.index(entry) for entry in given]


def _pushed_links(plan: Plan) -> list[int]:
    return [plan.robot.links.index(wrench.link) for wrench in plan.pushed.wrenches]


def _whole_controls(simulation: Simulation) -> Controls:
    """The controls of a simulation, those of actuators included."""
    given = simulation.controls
    if given.control.shape == simulation.inputs.control.shape:
        return given
    values = {name: getattr(given, name) for name in VALUES} | {"control": simulation.inputs.control}
    return Controls(given.start_step, **values)


def _changed(start: RunConfig, now: RunConfig) -> str:
    """The settings that differ from those of the start, as JSON."""
    names: Sequence[str] = () if now is start else CHANGEABLE
    differing: dict[str, Any] = {
        name: getattr(now, name) for name in names if getattr(now, name) != getattr(start, name)
    }
    return json.dumps(differing, sort_keys=True)


def numbers_of(what: str, values: Any) -> Real:
    """Numbers in order. Raises UsageError."""
    try:
        return np.array(values, float)
    except (TypeError, ValueError):
        raise UsageError(f"{what} is {values!r}, want numbers") from None
