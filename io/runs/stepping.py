"""Simulation, advanced step by step from Python.

Inputs and settings may change between steps. It can be saved and restored at any step, and recorded in a file that
replays.
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from artsim.io.exports.formats import check_run_name
from artsim.io.format import schema
from artsim.io.runs.held_inputs import HeldInputs, action_of, input_names, numbers_of, pushed_places
from artsim.io.runs.named import Tables, joined, named_tables, row_count
from artsim.io.runs.plain_settings import plain_settings
from artsim.io.runs.prepare import held_controls, no_controls, prepared
from artsim.io.runs.progress import warm
from artsim.io.runs.provenance import provenance
from artsim.io.runs.recorder import Recorder
from artsim.io.runs.run import recorder_of, stored_state
from artsim.io.runs.step_rows import StepRows, read_only, rows_of
from artsim.io.runs.stepped import Numbers, Stepped
from artsim.sim.equipment.arrays import WRENCH
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import Overlap
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.run_records import NON_FINITE
from artsim.sim.runs import simulate
from artsim.sim.runs.block_of_rows import BlockOfRows
from artsim.sim.runs.changes import Change, changed, told_otherwise, with_entry
from artsim.sim.runs.controls import VALUES, ControlLog, Controls
from artsim.sim.runs.copied_packs import CopiedPacks
from artsim.sim.runs.copied_steps import CopiedSteps
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.packable import kernels, reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.setting import MAX_STEPS
from artsim.sim.runs.settings import RunSettings
from artsim.sim.runs.simulate import ControllerFunction
from artsim.sim.runs.start import follow_velocities, settle_coordinates
from artsim.sim.runs.step_derivatives import STEP, StepDerivatives, step_derivatives

_State = ArrayLike | Mapping[str, float]  # in the model's order, or by name


class Simulation(Stepped):
    """A robot's simulation that is advanced by calls of `step`.

    Args: those of artsim.simulate, without `steps`; with `output`, a file is written, which is whole after `close` or
        at the end of a `with` block, and which `artsim replay --verify` simulates again, changes included.

    Raises:
        UsageError, ModelError: as in artsim.simulate.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        controller: ControllerFunction | str = "none",
        controls: Controls | str | None = None,
        output: str | os.PathLike[str] | None = None,
        compress: str | None = None,
        force: bool = False,
        threads: int = 1,
        **settings: Unpack[RunSettings],
    ) -> None:
        if "steps" in settings:
            raise UsageError("Simulation: steps are taken by step(n)")
        if output is not None:
            check_run_name(output)
        plan, given, function = prepared(robot, controller, controls, {**settings, "steps": MAX_STEPS})
        if not plan.config.is_maximal:
            warm((entry, 1) for entry in plan.entries)
        self._set(simulation_of(plan, given or held_controls(plan), function, threads))
        self._held = HeldInputs(self._simulation)
        self._last: weakref.ref[StepRows] | None = None
        self._copies: CopiedSteps | CopiedPacks | None = None
        self._recorder: Recorder | None = None
        if output is not None:
            self._recorder = recorder_of(
                self._simulation,
                output,
                controls=no_controls(plan),
                provenance={**provenance("artsim.Simulation"), "threads": threads},
                compress=compress,
                force=force,
                changing=True,
            )
            self._log = ControlLog(self.robot.nv, plan.control.size)
            self._waiting: list[tuple[dict[str, Array], Tables]] = []
            atexit.register(_close, weakref.ref(self))

    def _set(self, simulation: simulate.Simulation) -> None:
        """Go on with this simulation."""
        self._simulation = simulation
        self._qpos, self._qvel, self._activation = (read_only(values) for values in simulation.state)
        self._in_one_call = 0 if simulation.controller is not None else simulation.steps_per_block

    # ------------------------------------------------------------------ state

    @property
    def _run(self) -> Plan:
        return self._simulation.plan

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        """The links with shapes that are left out of contact, since they overlap wherever the joints are."""
        return self._run.overlaps

    @property
    def steps(self) -> int:
        """Number of steps taken so far, including those before a restored snapshot."""
        return self._simulation.step

    @property
    def time(self) -> float:
        """Simulated time so far [s]."""
        return self._simulation.time

    @property
    def qpos(self) -> Real:
        """Coordinates (nq,) now [rad or m]: a read-only view, which steps change. Assign all, or some by name.

        Raises UsageError for values that are not finite or that break a coupling.
        """
        return self._qpos

    @qpos.setter
    def qpos(self, values: _State) -> None:
        labels = self.robot.labels
        whole = self._whole("qpos", values, labels.coords, self._qpos)
        if isinstance(values, Mapping):  # others than those named follow
            settle_coordinates(self.robot.model, labels, whole, values)
        self._change(state={"qpos": whole.tolist()})

    @property
    def qvel(self) -> Real:
        """Velocities (nv,) now [rad/s or m/s], as qpos."""
        return self._qvel

    @qvel.setter
    def qvel(self, values: _State) -> None:
        labels = self.robot.labels
        whole = self._whole("qvel", values, labels.dofs, self._qvel)
        if isinstance(values, Mapping):
            follow_velocities(self.robot.model, labels, self._qpos, whole, values)
        self._change(state={"qvel": whole.tolist()})

    @property
    def activation(self) -> Real:
        """Activations (nact,) of actuators now, as qpos."""
        return self._activation

    @activation.setter
    def activation(self, values: _State) -> None:
        equipped = self._run.equipped
        names = () if equipped is None else equipped.labels.activations
        self._change(state={"activation": self._whole("activation", values, names, self._activation).tolist()})

    # ------------------------------------------------------------------ steps

    def step(
        self,
        steps: int = 1,
        *,
        torque: Numbers | None = None,
        target: Numbers | None = None,
        target_velocity: Numbers | None = None,
        target_acceleration: Numbers | None = None,
        control: Numbers | None = None,
        wrench: Mapping[str, ArrayLike] | None = None,
    ) -> StepRows:
        """Take steps and return their recorded rows (settings `record`, `every`) by name, as in artsim.simulate.

        Inputs act from these steps on until they are given anew: joint forces (nv,) [N m, N], drives' targets (nv,),
        their velocities and the accelerations of computed torque, controls of actuators, and wrenches (6,) or forces
        (3,) on links [N, N m] by link. Joints may be given by name, the others then keep their values.

        Contacts and constraint rows have the names of their groups: `contact/contact_count`, `contact/point`,
        `constraint/name`, `delassus/value`, …

        Raises StoppedError, naming joint and time; the simulation then keeps the state at which it stopped.
        """
        if steps < 1:
            raise UsageError(f"step: got {steps}, want a number of steps from 1")
        self._keep_last()
        self._give(torque, target, target_velocity, target_acceleration, control, wrench)
        simulation = self._simulation
        if self._recorder is None and steps <= self._in_one_call:
            if simulation.take(steps):
                rows = StepRows(simulation)
                self._last = weakref.ref(rows)
                return rows
            return StepRows(simulation, self._joined(simulation.left_blocks()))
        return StepRows(simulation, self._joined(simulation.blocks(steps)))

    def _keep_last(self) -> None:
        """Copy the rows of the last call if they are still in use, before they are overwritten."""
        if self._last is not None and (rows := self._last()) is not None:
            rows.keep()

    def _joined(self, blocks: Iterator[BlockOfRows]) -> dict[str, Array]:
        """The rows of all blocks, which are also written where there is a file."""
        simulation, first = self._simulation, self.steps
        parts = []
        for block in blocks:
            parts.append(rows_of(simulation, block))
            if self._recorder is not None:
                self._write(block, first)
                first = self.steps
        self._check_inputs()
        simulation.check()
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _write(self, block: BlockOfRows, first: int) -> None:
        """Keep the rows of the steps from `first` on for the file, with the inputs that acted."""
        simulation = self._simulation
        if simulation.controller is None:
            for step, values in simulation.acting_from(first):
                self._log.append(step, *values)
        else:
            assert block.controls is not None
            for row, step in enumerate(block.controls.start_step):
                self._log.append(int(step), *(getattr(block.controls, name)[row] for name in VALUES))
        rows = {name: values.copy() for name, values in block.rows.items()}
        self._waiting.append((rows, named_tables(simulation.plan, block.tables)))
        assert self._recorder is not None
        waiting = sum(row_count(part, tables) for part, tables in self._waiting)
        if waiting >= self._recorder.block_rows:
            self._flush()

    def _flush(self) -> None:
        """Write the rows that wait."""
        assert self._recorder is not None
        if not self._waiting:
            return
        rows = joined([part for part, _ in self._waiting])
        tables = {group: joined([part[group] for _, part in self._waiting]) for group in self._waiting[0][1]}
        self._waiting = []
        self._recorder.write(rows, self._log.take(), tables)

    def _check_inputs(self) -> None:
        """Raise UsageError for inputs that are not finite, where these stopped the run."""
        if self._simulation.stop_reason != NON_FINITE:
            return
        for name in VALUES:
            values = self._simulation.acting(name)
            if not np.all(np.isfinite(values)):
                entry = input_names(self._simulation.plan, name)[int(np.argmin(np.isfinite(values)))]
                raise UsageError(f"{name} of {entry!r} is not finite")

    # ------------------------------------------------------------------ inputs

    def _put(self, name: str, entries: list[int] | slice, numbers: Array) -> None:
        self._held.values[name][entries] = numbers
        self._simulation.acting(name, later=True)[:, entries] = numbers

    def _put_wrench(self, link: str, numbers: Array) -> None:
        """See Stepped; a link without a place for wrenches gets one."""
        if link not in pushed_places(self._run):
            if self._recorder is not None:
                raise UsageError(
                    f"wrench: the file has no place for {link!r}; start with wrench={{{link!r}: (0, 0, 0)}}"
                )
            before = self._run.config.wrench
            self._change(settings={"wrench": {**before, link: [0.0] * WRENCH}})
        held = self._held.values["wrench"][self.robot.links.index(link)]
        held[:] = numbers
        self._simulation.acting("control", later=True)[:, pushed_places(self._run)[link]] = held

    def push(self, link: str, impulse: ArrayLike) -> StepRows:
        """Take a step in which an impulse (3,) [N s], or (6,) with an angular one [N m s], acts on a link; see step."""
        impulse = self._wrench("push", impulse)
        at = pushed_places(self._run).get(link)
        if at is None:
            self._put_wrench(link, np.zeros(WRENCH))
            at = pushed_places(self._run)[link]
        wrench = self._simulation.acting("control")[at] + impulse / self._run.dt
        held = self._held.values["wrench"][self.robot.links.index(link)]
        before, later = held.copy(), self._simulation.acting("control", later=True)[:, at].copy()
        rows = self.step(wrench={link: wrench})
        rows.keep()
        held[:] = before
        place = self._simulation.acting("control", later=True)[:, at]
        place[:] = later[len(later) - len(place) :]
        return rows

    # ------------------------------------------------------------------ derivatives

    def derivatives(
        self,
        inputs: Sequence[str] | None = None,
        parameters: Sequence[str] = (),
        *,
        reduced: bool = False,
        step: float = STEP,
    ) -> StepDerivatives:
        """Derivatives of the step that `step()` would take now; the simulation stays as it is.

        Args:
            inputs: "torque", "target", "target_velocity", "target_acceleration", "control"; by default controls of
                actuators, else targets of drives with gains, else torques; of those of a base only if it is named:
                "torque:root.*", as "target:*_knee" names some.
            parameters: "mass", "friction", "stiffness", … as VectorSimulation.vary has them, or of one part:
                "mass:forearm". Derivatives are by the value [kg, N m/rad, …] of each part that has one other than 0;
                "friction" is a factor of all contacts' coefficients.
            reduced: leave out dofs that follow others.
            step: of the differences [rad, m, rad/s, m/s].

        Of a Python controller's answer there are no derivatives: it is held. Raises UsageError: an unknown name;
        StoppedError: the step stops.
        """
        plan = self._simulation.plan
        if self._copies is None or self._copies.plan is not plan:
            self._copies = self._copies_of(plan)
        self._copies.begin(self._simulation)
        wanted = (action_of(plan),) if inputs is None else inputs
        return step_derivatives(self._copies, wanted, parameters, reduced=reduced, step=step)

    @staticmethod
    def _copies_of(plan: Plan) -> CopiedSteps | CopiedPacks:
        """Copies that take their steps in a pack, or one after the other where packs lack a feature of the run."""
        if reason_against_packs(plan):
            return CopiedSteps(plan)
        warm(kernels(plan))
        return CopiedPacks(plan)

    # ------------------------------------------------------------------ changes

    def change(self, **settings: Any) -> None:
        """Change settings from the next step on: gravity, gains, friction, couplings, wrenches, damping of links, …

        They have the names and meanings of RunSettings; values by name join those that were set before. Raises
        UsageError for a setting that cannot change during a run, and the errors of artsim.simulate.
        """
        config, given = self._run.config, plain_settings(settings, self.robot)
        for name, value in given.items():
            before = getattr(config, name, None)
            if isinstance(value, Mapping) and isinstance(before, Mapping):
                given[name] = {**before, **value}
        self._change(settings=given)

    def set_drive(
        self,
        joint: str,
        *,
        stiffness: float | None = None,
        damping: float | None = None,
        limit: float | None = None,
        mode: str | None = None,
    ) -> None:
        """Change the drive of a joint, or of all that a pattern matches: gains [N m/rad, N m s/rad; N/m, N s/m] and the
        largest force [N m, N]; mode "acceleration": gains in 1/s², 1/s."""
        given = {"stiffness": stiffness, "damping": damping, "drive_limit": limit, "drive_mode": mode}
        self.change(**{name: {joint: value} for name, value in given.items() if value is not None})

    def set_coupling(
        self,
        follower: str,
        *,
        ratio: float | None = None,
        offset: float | None = None,
        frequency: float | None = None,
        damping: float | None = None,
        erp: float | None = None,
    ) -> None:
        """Change the coupling of a joint that follows another: q = ratio · leader + offset; natural frequency [Hz] and
        damping ratio make it compliant, an erp a hard row. A follower that is eliminated is at its new place from the
        next step on."""
        config = self._run.config
        settings: dict[str, Any] = {}
        for name, value in (("coupling_ratio", ratio), ("coupling_offset", offset)):
            if value is not None:
                settings |= with_entry(config, name, follower, value)
        if frequency is not None:
            settings |= with_entry(config, "coupling_frequency", follower, frequency) | {"coupling": "compliant"}
        if damping is not None:
            settings |= with_entry(config, "coupling_damping", follower, damping)
        if erp is not None:
            settings |= with_entry(config, "coupling_erp", follower, erp)
        self._change(settings=settings)

    def set_compliance(self, name: str, compliance: float, *, damping: float | None = None) -> None:
        """Change the compliance [rad/(N m) or m/N] of a coupling, tendon equality or loop, by the joint or tendon that
        follows, the loop's name, or a pattern: 0 is hard, inf no constraint; and its damping [s]."""
        config = self._run.config
        settings = with_entry(config, "compliance", name, compliance)
        if damping is not None:
            settings |= with_entry(config, "compliance_damping", name, damping)
        self._change(settings=settings)

    def set_friction(
        self,
        joint: str | None = None,
        *,
        force: float | None = None,
        coefficient: float | None = None,
        ground: float | None = None,
    ) -> None:
        """Change the friction of a joint (or a pattern): Coulomb's force [N m, N], and the coefficient of that which
        goes by the load; `ground`: the coefficient of the ground."""
        given = {"joint_friction": force, "friction_coefficient": coefficient}
        settings: dict[str, Any] = {name: {joint: value} for name, value in given.items() if value is not None}
        if settings and joint is None:
            raise UsageError("set_friction: force and coefficient are those of a joint: give its name")
        if ground is not None:
            settings["ground_friction"] = ground
        self.change(**settings)

    def set_gravity(self, gravity: Sequence[float]) -> None:
        """Change the gravitational acceleration (3,) [m/s²]."""
        self.change(gravity=gravity)

    def _change(
        self,
        settings: Mapping[str, Any] | None = None,
        state: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self._keep_last()
        change = Change(self.steps, dict(settings or {}), dict(state or {}))
        before, after = self._simulation.plan, changed(self._simulation, change)
        if self._recorder is not None:
            self._flush()
            self._recorder.change(change.to_json())
        if after is not self._simulation:
            self._set(after)
            self._give(wrench=told_otherwise(before, after.plan))

    def _whole(self, what: str, values: _State, names: tuple[str, ...], now: Real) -> Real:
        """All entries of a part of the state, those that are not given by name as they are now."""
        if not isinstance(values, Mapping):
            given = numbers_of(what, values)
            if given.shape != (len(names),):
                raise UsageError(f"{what} has shape {given.shape}, want ({len(names)},): {', '.join(names[:8])}")
            return given
        whole = now.copy()
        for name, value in values.items():
            if name not in names:
                raise UsageError(f"{what}: {name!r} is not known{nearest(name, names)}")
            whole[names.index(name)] = value
        return whole

    # ------------------------------------------------------------------ snapshots and files

    def save(self) -> dict[str, Array]:
        """The current state as plain arrays by name, for numpy.savez; `restore` continues from it byte for byte.

        The inputs that steps were given belong to it, and the settings that were changed; a Python controller's own
        memory does not.
        """
        return self._held.saved(self._simulation)

    def restore(self, snapshot: Mapping[str, Array]) -> None:
        """Continue from a snapshot of this robot that started with the same settings, in this process or another.

        Raises UsageError if it does not fit, or if the simulation writes a file, which holds one run only.
        """
        if self._recorder is not None:
            raise UsageError("restore: this simulation writes a file, in which time only goes on")
        self._keep_last()
        restored = self._held.restored(self._simulation, snapshot)
        if restored is not self._simulation:
            self._set(restored)

    def close(self) -> None:
        """Finish the output file, if there is one."""
        if self._recorder is not None:
            self._flush()
            status = schema.NON_FINITE if self._simulation.stop_reason == NON_FINITE else schema.COMPLETE
            recorder, self._recorder = self._recorder, None
            recorder.close(status, None if self._simulation.spoiled else stored_state(self._simulation))

    def __del__(self) -> None:
        if getattr(self, "_recorder", None) is not None:
            self.close()


def _close(simulation: weakref.ref[Simulation]) -> None:
    """Finish the file of a simulation that the program left open."""
    if (left := simulation()) is not None:
        left.close()
