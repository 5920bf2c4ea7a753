"""Resolves a configuration against a robot: names become the arrays from which a simulation starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation
from artsim.sim.contact.continuous import ADVANCE, FORESEE
from artsim.sim.equipment.arrays import EquipmentLabels, Equipped
from artsim.sim.equipment.build_actuators import idle_controls
from artsim.sim.equipment.build_loops import open_loops
from artsim.sim.equipment.delays import Delayed, delay_entries, delays_of
from artsim.sim.equipment.equip import equip, labels_of
from artsim.sim.foundation.budget import refuse_beyond_memory
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError, SettingError
from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import CLOCKED_DETECT, DETECT, Overlap, Touching
from artsim.sim.geometry.solids import Kept, joined
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.link_rules import LinkRules, link_rules
from artsim.sim.run_data.registry import NEWTON, SOLVERS, Solver
from artsim.sim.run_data.run_records import TABLES_OF
from artsim.sim.run_data.scratch import CROWD_TREES, NewtonWork, may_crowd
from artsim.sim.runs.closed_start import assembled, told_of_lock
from artsim.sim.runs.compiled_robot import compiled_robot, hard_axes, tied
from artsim.sim.runs.compliances import common_erp, told_of_compliances, told_of_open_loops, with_constraint_names
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.contact_laws import (
    soft_limits,
    softness_inputs,
    told_of_law,
    with_default_softness,
    with_served_law,
)
from artsim.sim.runs.contact_model import touching_shapes
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.joint_values import (
    dof_values,
    drive_inputs,
    held_places,
    joint_values,
    left_out_by_all,
    mobilities,
    position_limits,
    values_by_name,
)
from artsim.sim.runs.maximal_choice import with_scheme
from artsim.sim.runs.patterns import expanded, has_patterns, names_of, of_followers, with_joint_settings
from artsim.sim.runs.placing import stand_on_ground
from artsim.sim.runs.refusals import (
    integrator_for,
    needs_rows,
    refuse_beside_accuracy,
    refuse_idle_targets,
    refuse_turning_drives,
    refuse_unservable,
    with_rows_for_contacts,
)
from artsim.sim.runs.settings import CONVEX, COULOMB, DEFAULT_RECORD, LEAST_DT, TIME_STEP
from artsim.sim.runs.sights import CAST, Seen, seen_shapes
from artsim.sim.runs.start import find_keyframe, follow_velocities, initial_qpos, moved_into_limits
from artsim.sim.runs.wrench_inputs import LinkWrenches, idle_wrenches, link_wrenches, with_pushes
from artsim.sim.stepping.allocation import block_shapes
from artsim.sim.stepping.entries import (
    beside_entry,
    integrator_entry,
    simulate_entry,
    smooth_entry,
    solver_entry,
    solver_of,
)

_DOFS = {"fixed": 0, "planar": 3, "ball": 3, "floating": 6, "free": 6}  # others: 1


@dataclass(frozen=True)
class Plan:
    """A configuration resolved against a robot: all arrays a simulation starts from."""

    config: RunConfig
    robot: Robot
    inputs: Mapping[str, Array]  # the fields of Inputs except the controls
    torque: Real  # (nv,) the inputs without a control file
    target: Real  # (nv,)
    target_velocity: Real  # (nv,)
    target_acceleration: Real  # (nv,)
    qpos: Real  # (nq,)
    qvel: Real  # (nv,)
    notes: tuple[str, ...]
    equipped: Equipped | None = None
    control: Real = field(default_factory=lambda: np.zeros(0))  # (ncontrol,) of the actuators, and wrenches on links
    activation: Real = field(default_factory=lambda: np.zeros(0))  # (nact,) at the start
    touching: Touching | None = None
    rules: LinkRules | None = None
    seen: Seen | None = None
    delayed: Delayed | None = None
    sample: int = 0  # number of the robot among those of a rollout, by which the noise of sensors is drawn
    pushed: LinkWrenches = field(default_factory=LinkWrenches)

    @property
    def dt(self) -> float:
        """The time step [s]."""
        return float(self.inputs["time_step"][0])

    @cached_property
    def pushed_by_sample(self) -> Plan:
        """The plan of samples that have pushes of their own: its controls hold none."""
        return replace(self, pushed=self.pushed._replace(by_sample=True))

    @cached_property
    def spare(self) -> list[Any]:
        """Rollers of this plan that have run, for further rollouts; see sampled_runs.take_roller."""
        return []

    @cached_property
    def row_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of one row of each variable that it records and that has rows of one size."""
        shapes = block_shapes(self.robot.model, self.equipped)
        return {name: shapes[name] for name in self.config.record if name not in TABLES_OF}

    @cached_property
    def held(self) -> Controls:
        """Its torques, targets and controls, constant over the whole run but for pushes."""
        held = Controls.held(**{name: getattr(self, name) for name in VALUES})
        return with_pushes(held, self.pushed, self.dt)

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        """The links with shapes that are left out of contact since no joint parts them (overlaps.py)."""
        return () if self.touching is None else self.touching.overlaps

    @property
    def kept(self) -> Kept:
        """The meshes and height fields, of contacts and of rangefinders, that outputs store."""
        return joined(*(part.kept for part in (self.touching, self.seen) if part is not None))

    @property
    def entry(self) -> Entry:
        """The kernel that takes the steps."""
        return self._entry()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All kernels that the run needs: that of the steps and those that it calls."""
        delays = () if self.delayed is None else delay_entries(self.delayed, self.touching is not None)
        integrator = self.integrator_entry()
        return (
            self.entry,
            *(() if integrator is None else (integrator,)),
            *(() if self.smooth_entry is None else (self.smooth_entry,)),
            self.beside_entry,
            *self.shared_entries,
            *((CAST,) if self.seen is not None else ()),
            *delays,
        )

    @property
    def shared_entries(self) -> tuple[Entry, ...]:
        """The kernels that a single robot has in common with the lanes of packs: solver, contact detection."""
        touching = self.touching is not None
        found = {DETECT: touching, ADVANCE: touching and self.config.continuous, FORESEE: self.foresees}
        return *self.solver_entries, *(entry for entry, used in found.items() if used)

    @property
    def foresees(self) -> bool:
        """True if contacts are aimed at where a step leads: not by the sweeping solvers."""
        return self.touching is not None and not SOLVERS[self.config.solver].sweeping

    @property
    def beside_entry(self) -> Entry:
        """The kernel of the tasks beside steps (stepping/beside.py)."""
        return beside_entry(self.equipped is not None, self.touching is not None)

    @property
    def solver(self) -> Solver:
        """The solver of the steps."""
        return solver_of(INTEGRATORS[self.config.integrator], SOLVERS[self.config.solver])

    @property
    def solver_entries(self) -> tuple[Entry, ...]:
        """The kernel of the solver, and that of newton beside solvers that leave contacts to it."""
        whole = self.touching is not None or may_crowd(self.robot.model)
        used = [self.solver]
        if NewtonWork in self.solver.work and self.solver.number != NEWTON:
            used.append(SOLVERS["newton"])
        return tuple(solver_entry(solver, whole) for solver in used)

    @property
    def clocked_entry(self) -> Entry:
        """The kernel that takes the steps and times their phases."""
        return self._entry(clocked=True)

    @property
    def clocked_entries(self) -> tuple[Entry, ...]:
        """The kernels needed besides `entries` to time the phases."""
        integrator = self.integrator_entry(clocked=True)
        detect = CLOCKED_DETECT if self.touching is not None else None
        return self.clocked_entry, *(entry for entry in (integrator, detect) if entry is not None)

    def _entry(self, *, clocked: bool = False) -> Entry:
        there = [part is not None for part in (self.equipped, self.touching, self.rules)]
        return simulate_entry(*there, clocked=clocked)

    def integrator_entry(self, *, clocked: bool = False) -> Entry | None:
        """The kernel of an integrator with steps of its own, or None."""
        there = [part is not None for part in (self.equipped, self.rules)]
        return integrator_entry(INTEGRATORS[self.config.integrator], *there, clocked=clocked)

    @property
    def smooth_entry(self) -> Entry | None:
        """The kernel of steps in which nothing acts that is one-sided, for runs by accuracy; None where all steps of
        such a run need rows."""
        inputs, smooth = self.inputs, self.config.accuracy is not None and not self.activation.size
        if not smooth or inputs["limit_margin"].any() or needs_rows(self.robot, self.config, self.equipped):
            return None
        return smooth_entry(self.equipped is not None, self.rules is not None)

    @property
    def work(self) -> tuple[type[Any], ...]:
        """The types of the solver's scratch records."""
        return self.solver.work


def plan_run(articulation: Articulation, config: RunConfig) -> Plan:
    """Make the plan of a run: resolve the names of a configuration into arrays.

    Raises:
        UsageError: an unknown name (with the nearest), a follower given inconsistently, a target without gains, an
            option that the integrator or solver cannot serve.
        ModelError: the model cannot be simulated.
    """
    notes: list[str] = []
    chosen = config.integrator
    config = _with_names(articulation, config)
    articulation = with_joint_settings(articulation, config)
    config = with_options(articulation, config, notes)
    if config.contact_law == CONVEX:
        articulation = with_default_softness(articulation)
    robot = compiled_robot(articulation, config)
    asked = config.contact_law
    config = with_served_law(robot, config)
    pushed = link_wrenches(robot.labels.links, config)
    equipped = equip(tied(articulation, config), robot.compiled, pushed.wrenches)
    config = _with_loop_targets(config, EquipmentLabels() if equipped is None else equipped.labels)
    start = _plan_start(articulation, config, robot, equipped, pushed, notes)
    robot = _with_limits(robot, config)
    touching = touching_shapes(articulation, robot, config, notes)
    if config.on_ground is not None:
        stand_on_ground(robot.model, robot.labels, start.qpos, touching, config.on_ground)
    if touching is not None and chosen == "auto":
        config = with_rows_for_contacts(config, notes)
    inputs = _plan_inputs(articulation, config, robot, equipped, notes)
    notes += told_of_law(articulation, asked, config, touching)
    refuse_unservable(robot, config, equipped, touching)
    refuse_turning_drives(config, robot, inputs)
    target = dof_values(config.target, robot.labels, "target", held_places(robot.model, start.qpos))
    refuse_idle_targets(config, robot, inputs, target)
    record = _recordable(config, equipped, touching, notes)
    equipped = _with_noise(equipped, config, "sensors" in record, notes)
    dt = float(inputs["time_step"][0])
    notes += idle_wrenches(robot.model, robot.labels, pushed, config.steps * dt)
    delayed = delays_of(articulation, equipped, dt, notes, sensors="sensors" in record)
    refuse_beside_accuracy(config, delayed is not None)
    config = with_scheme(articulation, config, robot, equipped, touching, delayed is not None)
    others = ("torque", "target_velocity", "target_acceleration")
    of_links = config.link_damping, config.link_velocity_limit, config.com_velocity_limit
    return Plan(
        replace(_resolved(config, robot, start), wrench=pushed.by_link(), record=record),
        robot,
        inputs,
        **{name: dof_values(getattr(config, name), robot.labels, name, np.zeros(robot.nv)) for name in others},
        target=target,
        qpos=start.qpos,
        qvel=start.qvel,
        notes=tuple(notes),
        equipped=equipped,
        control=np.array([*start.control.values(), *pushed.held], float),
        activation=np.array([*start.activation.values()], float),
        touching=touching,
        rules=link_rules(robot.model, robot.labels, *of_links),
        seen=seen_shapes(articulation, robot, config, notes) if "sensors" in record else None,
        delayed=delayed,
        pushed=pushed,
        sample=0,
    )


def _with_noise(equipped: Equipped | None, config: RunConfig, recorded: bool, notes: list[str]) -> Equipped | None:
    """The equipment without the noise of its sensors, unless that is wanted; where it is and nothing shows it, a note
    says why."""
    wanted = config.sensor_noise and recorded
    noisy = equipped is not None and equipped.arrays.sensor_noise.any()
    if config.sensor_noise and not (noisy and recorded):
        notes.append(
            f"--sensor-noise changes nothing: {'sensors are not recorded' if noisy else 'no sensor has noise'}"
        )
    if wanted or equipped is None or not noisy:
        return equipped
    quiet = np.zeros_like(equipped.arrays.sensor_noise)
    return replace(equipped, arrays=equipped.arrays._replace(sensor_noise=quiet))


class _Start(NamedTuple):
    """The state that a run starts from, and the controls that act without a control file."""

    qpos: Real
    qvel: Real
    activation: Mapping[str, float]  # by name, all of them
    control: Mapping[str, float]


def _plan_start(
    articulation: Articulation,
    config: RunConfig,
    robot: Robot,
    equipped: Equipped | None,
    pushed: LinkWrenches,
    notes: list[str],
) -> _Start:
    """The start that the configuration, its keyframe and the file give, with notes on moved joints and open loops."""
    labels, model = robot.labels, robot.model
    names = EquipmentLabels() if equipped is None else equipped.labels
    key = find_keyframe(articulation, config.keyframe)
    soft = config.contact_law == CONVEX
    places = key.qpos, config.base_pose
    yielding = soft_limits(articulation, config, robot)
    qpos = initial_qpos(robot.compiled, config.q0, notes, *places, soft=soft, yielding=yielding)
    if articulation.conventions.pose_drawn and not (key.qpos or soft or config.assemble):
        notes += moved_into_limits(robot.compiled, qpos)
    if config.assemble is not None:
        qpos = assembled(_with_limits(robot, config), equipped, config.assemble, config.q0, qpos)
    notes += told_of_lock(robot, equipped, qpos)
    if equipped is not None:
        notes += told_of_open_loops(equipped, open_loops(model, equipped, qpos, 1e-3), common_erp(config))
    qvel = dof_values(config.v0, labels, "v0", np.array(key.qvel or np.zeros(robot.nv)))
    activation = values_by_name(config.activation, names.activations, "activation", "actuator state", key.activation)
    idle = () if equipped is None else idle_controls(articulation)
    actuated = names.controls[: len(names.controls) - len(pushed.held)]
    control = values_by_name(config.control, actuated, "control", "actuator", key.control or idle)
    follow_velocities(model, labels, qpos, qvel, config.v0)
    activations = dict(zip(names.activations, activation.tolist(), strict=True))
    return _Start(qpos, qvel, activations, dict(zip(actuated, control.tolist(), strict=True)))


def _with_limits(robot: Robot, config: RunConfig) -> Robot:
    """The robot with the limits and the joint friction of the configuration."""
    model, changes = robot.model, dict[str, Array]()
    if not config.velocity_limits:
        changes["velocity_limit"] = np.full(robot.nv, np.inf)
    if config.friction_coefficient:
        changes["friction_coefficient"] = joint_values(
            config.friction_coefficient, robot, "friction_coefficient", model.friction_coefficient
        )
    changes |= position_limits(robot, config)
    return robot.with_model(changes) if changes else robot


def _plan_inputs(
    articulation: Articulation, config: RunConfig, robot: Robot, equipped: Equipped | None, notes: list[str]
) -> dict[str, Array]:
    """The fields of Inputs except the controls, with notes on constraints of the run that differ from the file's."""
    inputs = drive_inputs(robot, config, config.dt or time_step(articulation))
    notes += left_out_by_all(robot, config)
    notes += hard_axes(articulation, config)
    notes += told_of_compliances(articulation, config)
    inputs["mobility"] = mobilities(robot, inputs, equipped)
    inputs |= softness_inputs(articulation, config, robot)
    return inputs


def _with_names(articulation: Articulation, config: RunConfig) -> RunConfig:
    """The configuration with the names of this robot in place of patterns."""
    _refuse_large(articulation)
    if has_patterns(config):
        compiled = compile_model(articulation)
        names = names_of(articulation, compiled.model, compiled.labels, labels_of(articulation))
        config = expanded(config, names)
    joints = [coupling.follower for coupling in articulation.couplings]
    both = [*joints, *(coupling.follower for coupling in articulation.tendon_couplings)]
    given: dict[str, Any] = {
        setting: of_followers(setting, values, followers)
        for followers, settings in (
            (both, ("coupling_frequency", "coupling_damping")),
            (joints, ("coupling_ratio", "coupling_offset")),
        )
        for setting in settings
        if isinstance(values := getattr(config, setting), Mapping) and values
    }
    given |= with_constraint_names(articulation, replace(config, **given))
    return replace(config, **given) if given else config


def _with_loop_targets(config: RunConfig, names: EquipmentLabels) -> RunConfig:
    """The configuration with targets of loops' drives moved to the controls, since these targets are controls."""
    for setting, suffix in (("target", "target"), ("target_velocity", "velocity")):
        values: Mapping[str, float] = getattr(config, setting)
        moved = {name: value for name, value in values.items() if f"{name}.{suffix}" in names.controls}
        for name in moved:
            if f"{name}.{suffix}" in config.control:
                raise SettingError(f"{setting}: {name!r} is given as control {name}.{suffix} too", setting, name)
        if moved:
            kept = {name: value for name, value in values.items() if name not in moved}
            control = {**config.control, **{f"{name}.{suffix}": value for name, value in moved.items()}}
            config = replace(config, **{setting: kept, "control": control})  # type: ignore[arg-type]
    return config


def with_options(articulation: Articulation, config: RunConfig, notes: list[str]) -> RunConfig:
    """The configuration with the file's time step, integrator and cone, if it leaves these open."""
    integrator = config.integrator
    if integrator == "auto":
        integrator = integrator_for(articulation, config, notes).name
    dt = config.dt if config.dt is not None else time_step(articulation)
    cone = config.cone
    if cone == "auto":
        cones = {COULOMB: "elliptic", CONVEX: articulation.options.cone or "pyramidal"}
        cone = cones.get(config.contact_law, "auto")
    return replace(config, dt=dt, integrator=integrator, cone=cone)


def _refuse_large(articulation: Articulation) -> None:
    """Raise MemoryShortageError if the matrices of a step (M̂, its factors, the solver's) are too large. Of a crowd, an
    island of more than CROWD_TREES trees, no matrix is made, and arrays that are never written take no memory.
    """
    tree: dict[str, str] = {}  # its root, by link
    dofs: dict[str, int] = {}  # by root
    if articulation.base == "floating" and articulation.links:
        tree[articulation.links[0].name] = articulation.links[0].name
        dofs[articulation.links[0].name] = 6
    for joint in articulation.joints:
        moving = _DOFS.get(joint.kind, 1)
        root = tree.get(joint.parent) or (joint.child if moving else "")
        if root:
            tree[joint.child] = root
            dofs[root] = dofs.get(root, 0) + moving
    total = sum(dofs.values())
    together = min(total, CROWD_TREES * max(dofs.values(), default=0))
    refuse_beyond_memory(32 * total * together, f"the matrices of {total} degrees of freedom")


def time_step(articulation: Articulation) -> float:
    """The time step of the file, else TIME_STEP [s]. Raises ModelError for one below LEAST_DT."""
    dt = articulation.options.timestep or TIME_STEP
    if dt < LEAST_DT:
        raise ModelError(f"{articulation.path}: its time step is {dt:g} s, want {LEAST_DT:g} s or more")
    return dt


_EQUIPMENT_ROWS = {
    "tau_loop": "loops",
    "tau_tendon": "tendons",
    "activation": "activations",
    "actuator_force": "actuators",
    "actuator_length": "actuators",
    "actuator_velocity": "actuators",
    "tendon_length": "tendons",
    "tendon_velocity": "tendons",
    "tendon_force": "tendons",
    "loop_wrench": "loops",
    "sensors": "sensors",
}


_OF_REDUCED = ("sensors", "asleep")  # recorded in joint coordinates only


def _recordable(
    config: RunConfig, equipped: Equipped | None, touching: Touching | None, notes: list[str]
) -> tuple[str, ...]:
    """The variables to record, without those that the robot lacks."""
    names = EquipmentLabels() if equipped is None else equipped.labels
    kept: list[str] = []
    for name in config.record:
        if name in ("tau_contact", "contact_wrench", "contacts") and touching is None:
            if name not in DEFAULT_RECORD:
                notes.append(f"{name} is not recorded: nothing can touch anything")
            continue
        if config.is_maximal and name in _OF_REDUCED:
            if name not in DEFAULT_RECORD or names.sensors:
                notes.append(f"{name} is not recorded: maximal coordinates have none")
            continue
        if name in _EQUIPMENT_ROWS and not getattr(names, _EQUIPMENT_ROWS[name]):
            if name not in DEFAULT_RECORD:
                notes.append(f"{name} is not recorded: the robot has no {_EQUIPMENT_ROWS[name]}")
        else:
            kept.append(name)
    return tuple(kept)


def _resolved(config: RunConfig, robot: Robot, start: _Start) -> RunConfig:
    """The configuration with the full initial state; followers are left out so that it can be edited and run again."""
    model, labels = robot.model, robot.labels
    coords = {int(model.dof_coord[k]) for k in model.coupling_follower}
    dofs = {int(k) for k in model.coupling_follower}
    return replace(
        config,
        q0={name: float(start.qpos[n]) for n, name in enumerate(labels.coords) if n not in coords},
        v0={name: float(start.qvel[k]) for k, name in enumerate(labels.dofs) if k not in dofs},
        base_pose={},  # q0 holds where the bases are
        on_ground=None,
        assemble=None,
        activation=start.activation,
        control=start.control,
    )
