"""A run's configuration: names and numbers as a user gives them, and the arrays they mean for a robot.

RunConfig is what is stored in every output and run again by `--config` and `replay`: plain JSON, all names resolved
to numbers except where a name is the value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from artsim.sim.controls import Controls
from artsim.sim.description import Articulation, Coupling, Keyframe
from artsim.sim.equipment.build import equip
from artsim.sim.equipment.build_loops import open_loops
from artsim.sim.equipment.record import PATH_CYLINDER, PATH_SPHERE, EquipmentLabels, Equipped
from artsim.sim.errors import UsageError, nearest
from artsim.sim.jit import Entry
from artsim.sim.model import BALL, FREE, Compiled, Labels, Model, compile_model
from artsim.sim.records import Array
from artsim.sim.robot import Robot
from artsim.sim.run import (
    AUTO,
    COMPUTED_TORQUE,
    DIRECT,
    GRAVITY_COMPENSATION,
    NO_CONTROLLER,
    PGS,
    RECORDED,
    RK4,
    SEMI_IMPLICIT_EULER,
    SIMULATE,
    Inputs,
)
from artsim.sim.spatial import Real

SOLVERS = {"auto": AUTO, "pgs": PGS, "direct": DIRECT}
INTEGRATORS = {"semi-implicit-euler": SEMI_IMPLICIT_EULER, "rk4": RK4}
TIME_STEP = 0.002  # [s] where neither the user nor the file says another
COUPLINGS = ("auto", "exact", "rows", "compliant")
CONTROLLERS = {
    "none": NO_CONTROLLER,
    "hold": COMPUTED_TORQUE,  # towards where it starts
    "gravity-compensation": GRAVITY_COMPENSATION,
    "computed-torque": COMPUTED_TORQUE,
}
DEFAULT_RECORD = (
    "qpos",
    "qvel",
    "qacc",
    "tau_applied",
    "tau_drive",
    "tau_passive",
    "tau_coupling",
    "tau_limit",
    "tau_loop",
    "tau_tendon",
    "link_position",
    "link_quaternion",
    "incoming_wrench",
    "activation",
    "actuator_force",
)
MAX_STEPS = 2**53  # beyond it step numbers are no float64
TRACKING_FREQUENCY = 20.0  # [rad/s] of the critically damped errors of computed torque
Value = Mapping[str, float]  # by joint, coordinate or dof name; "*" for all


@dataclass(frozen=True)
class RunConfig:
    """What a run does. SI units; maps are by name, "*" means every joint of one dof that is no follower."""

    steps: int = 1000
    dt: float | None = None  # [s]; None: the file's, else TIME_STEP
    every: int = 1
    base: str = "fixed"
    balance_inertia: bool = False
    ignore_unsupported: bool = False
    gravity: tuple[float, ...] | None = None
    keyframe: str = ""  # of the file, to start from
    q0: Value = field(default_factory=dict)  # by coordinate
    v0: Value = field(default_factory=dict)  # by dof
    activation: Value = field(default_factory=dict)  # of actuators with dynamics, at the start
    control: Value = field(default_factory=dict)  # by actuator
    target: Value = field(default_factory=dict)
    target_velocity: Value = field(default_factory=dict)
    torque: Value = field(default_factory=dict)
    stiffness: Value = field(default_factory=dict)
    damping: Value = field(default_factory=dict)
    drive_limit: Value = field(default_factory=dict)
    drive_mode: str = "force"  # or "acceleration": gains in 1/s² and 1/s
    drive_limit_kind: str = "force"  # or "impulse": drive limits in N m s or N s
    friction_coefficient: Value = field(default_factory=dict)
    controller: str = "none"
    solver: str = "auto"
    iterations: int = 64
    integrator: str = "auto"  # the file's where it can serve the robot, else semi-implicit-euler
    coupling: str = "auto"
    coupling_frequency: float | None = None  # [Hz]
    coupling_damping: float = 1.0
    velocity_limits: bool = False
    record: tuple[str, ...] = DEFAULT_RECORD
    seed: int = 0

    def __post_init__(self) -> None:
        for f in fields(self):
            _check_type(f.name, getattr(self, f.name), f.default)
        for name in ("steps", "every", "iterations"):
            if not 1 <= getattr(self, name) <= MAX_STEPS:
                raise UsageError(f"{name} is {getattr(self, name)}, want 1 to {MAX_STEPS}")
        if self.dt is not None and not (math.isfinite(self.dt) and self.dt > 0):
            raise UsageError(f"dt is {self.dt}, want a positive time step in seconds")
        if self.coupling_frequency is not None and not (
            math.isfinite(self.coupling_frequency) and self.coupling_frequency > 0
        ):
            raise UsageError(f"coupling_frequency is {self.coupling_frequency}, want a positive number in Hz")
        if not (math.isfinite(self.coupling_damping) and self.coupling_damping >= 0):
            raise UsageError(f"coupling_damping is {self.coupling_damping}, want a finite number from 0")
        choices = {
            "solver": SOLVERS,
            "integrator": ("auto", *INTEGRATORS),
            "coupling": COUPLINGS,
            "drive_mode": ("force", "acceleration"),
            "drive_limit_kind": ("force", "impulse"),
            "base": ("fixed", "floating"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise UsageError(f"{name} {getattr(self, name)!r} is not known{nearest(getattr(self, name), known)}")
        if self.controller not in CONTROLLERS and not self.is_python:
            raise UsageError(f"controller {self.controller!r} is not known{nearest(self.controller, CONTROLLERS)}")
        for name in self.record:
            if name not in RECORDED:
                raise UsageError(f"cannot record {name!r}{nearest(name, RECORDED)}")
        if self.coupling == "compliant" and self.coupling_frequency is None:
            raise UsageError("coupling 'compliant' needs --coupling-frequency HZ")
        if self.gravity is not None and (len(self.gravity) != 3 or not all(map(math.isfinite, self.gravity))):
            raise UsageError("gravity: want three finite numbers X,Y,Z in m/s²")

    @property
    def is_python(self) -> bool:
        """True when the controller is a function of a Python file."""
        return ".py:" in self.controller

    def to_json(self) -> str:
        """The configuration as one JSON object."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        """The configuration that `to_json` wrote. Raises UsageError for what is none."""
        try:
            content = json.loads(text)
        except ValueError as error:
            raise UsageError(f"configuration is not JSON: {error}") from error
        return cls.from_mapping(content)

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> RunConfig:
        """A configuration from plain values. Raises UsageError for an unknown name or a wrong type."""
        known = {f.name for f in fields(cls)}
        for name in content:
            if name not in known:
                raise UsageError(f"configuration: {name!r} is not known{nearest(name, known)}")
        values = dict(content)
        for name in ("gravity", "record"):
            if isinstance(values.get(name), list):
                values[name] = tuple(values[name])
        try:
            return cls(**values)
        except TypeError as error:
            raise UsageError(f"configuration: {error}") from error


def _check_type(name: str, value: object, default: object) -> None:
    """Refuse a value of another type than the field's default (configurations come from files)."""
    if name in ("gravity", "record"):
        right = value is None or isinstance(value, tuple)
        entry = str if name == "record" else (int, float)
        want = "a list of names" if name == "record" else "three numbers"
        right = right and all(isinstance(item, entry) for item in value or ())  # type: ignore[attr-defined]
    elif default is MISSING:
        want = "numbers by name"
        right = isinstance(value, Mapping) and all(_is_number(number) for number in value.values())
    elif isinstance(default, bool):
        right, want = isinstance(value, bool), "true or false"
    elif isinstance(default, int):
        right, want = isinstance(value, int) and not isinstance(value, bool), "a whole number"
    elif isinstance(default, str):
        right, want = isinstance(value, str), "a text"
    else:
        right, want = _is_number(value) or (default is None and value is None), "a number"
    if not right:
        raise UsageError(f"{name} is {value!r}, want {want}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Plan:
    """A configuration resolved against a robot: all arrays a simulation starts from."""

    config: RunConfig
    robot: Robot
    inputs: Mapping[str, Array]  # Inputs but the controls
    torque: Real  # (nv,) what holds when no control file says otherwise
    target: Real  # (nv,)
    target_velocity: Real  # (nv,)
    qpos: Real  # (nq,)
    qvel: Real  # (nv,)
    notes: tuple[str, ...]
    equipped: Equipped | None = None
    control: Real = field(default_factory=lambda: np.zeros(0))  # (ncontrol,) of the actuators
    activation: Real = field(default_factory=lambda: np.zeros(0))  # (nact,) at the start

    @property
    def dt(self) -> float:
        """The time step [s]."""
        return float(self.inputs["time_step"][0])

    @property
    def entry(self) -> Entry:
        """The kernel that runs it."""
        return SIMULATE[INTEGRATORS[self.config.integrator], self.equipped is not None]


def plan_run(articulation: Articulation, config: RunConfig) -> Plan:
    """Resolve names into arrays.

    Raises:
        UsageError: an unknown name (with the nearest), a follower given inconsistently, a target without gains, an
            option that the integrator or solver cannot serve.
        ModelError: the model cannot be simulated.
    """
    notes: list[str] = []
    config = with_options(articulation, config, notes)
    robot = compiled_robot(articulation, config)
    equipped = equip(articulation, robot.compiled)
    labels, model = robot.labels, robot.model
    names = EquipmentLabels() if equipped is None else equipped.labels
    key = find_keyframe(articulation, config.keyframe)
    qpos = initial_qpos(robot.compiled, config.q0, notes, key.qpos)
    if equipped is not None:
        notes += [
            f"loop {name!r} starts open by {gap:.3g} m or rad; it is closed at half a metre or radian per second"
            for name, gap in open_loops(model, equipped, qpos, 1e-3).items()
        ]
    qvel = _dof_values(config.v0, labels, "v0", np.array(key.qvel or np.zeros(robot.nv)))
    activation = _values(config.activation, names.activations, "activation", "actuator state", key.activation)
    control = _values(config.control, names.controls, "control", "actuator", key.control)
    _follow_velocities(model, labels, qpos, qvel, config.v0)
    changes: dict[str, Array] = {}
    if not config.velocity_limits:
        changes["velocity_limit"] = np.full(robot.nv, np.inf)
    if config.friction_coefficient:
        changes["friction_coefficient"] = _joint_values(
            config.friction_coefficient, robot, "friction_coefficient", model.friction_coefficient
        )
    robot = robot.with_model(changes) if changes else robot
    inputs = _drives(robot, config, config.dt or time_step(articulation))
    _refuse_unservable(robot, config, equipped)
    zero = np.zeros(robot.nv)
    hold = np.array([qpos[c] if c >= 0 else 0.0 for c in model.dof_coord])
    target = _dof_values(config.target, labels, "target", hold)
    _refuse_idle_targets(config, labels, inputs)
    return Plan(
        replace(
            _resolved(config, model, labels, qpos, qvel),
            activation=dict(zip(names.activations, activation.tolist(), strict=True)),
            control=dict(zip(names.controls, control.tolist(), strict=True)),
            record=_recordable(config, equipped, notes),
        ),
        robot,
        inputs,
        _dof_values(config.torque, labels, "torque", zero),
        target,
        _dof_values(config.target_velocity, labels, "target_velocity", zero),
        qpos,
        qvel,
        tuple(notes),
        equipped,
        control,
        activation,
    )


def with_options(articulation: Articulation, config: RunConfig, notes: list[str]) -> RunConfig:
    """The configuration with the time step and the integrator that the file wants, where the user wants none."""
    options = articulation.options
    integrator = config.integrator
    if integrator == "auto":
        integrator = "semi-implicit-euler"  # implicit in springs, dampers, drives: what implicit ones are used for
        if options.integrator == "RK4":
            reason = _rows_needed(articulation)
            integrator = "semi-implicit-euler" if reason else "rk4"
            if reason:
                notes.append(f"the file wants RK4, which has no rows for {reason}: semi-implicit-euler is used")
    dt = config.dt if config.dt is not None else time_step(articulation)
    return replace(config, dt=dt, integrator=integrator)


def time_step(articulation: Articulation) -> float:
    """The file's time step, else artsim's [s]."""
    return articulation.options.timestep or TIME_STEP


def _rows_needed(articulation: Articulation) -> str:
    """What of the robot RK4 would stop at or refuse; empty when there is nothing."""
    for joint in articulation.joints:
        if joint.friction or joint.friction_coefficient:
            return f"the friction of joint {joint.name!r}"
        if joint.lower is not None or joint.upper is not None:
            return f"the limits of joint {joint.name!r}"
    for tendon in articulation.tendons:
        if tendon.friction or tendon.lower is not None or tendon.upper is not None:
            return f"the limits or friction of tendon {tendon.name!r}"
    return ""


def find_keyframe(articulation: Articulation, name: str) -> Keyframe:
    """The keyframe of that name; one that gives nothing where there is no name. Raises UsageError."""
    if not name:
        return Keyframe("")
    for key in articulation.keyframes:
        if key.name == name:
            return key
    known = [key.name for key in articulation.keyframes]
    there = nearest(name, known) or f"; the file has {', '.join(known[:8]) or 'none'}"
    raise UsageError(f"keyframe {name!r} does not exist{there}")


def _values(given: Value, names: tuple[str, ...], what: str, kind: str, start: Sequence[float]) -> Real:
    """Values by name over those to start with, (names,)."""
    values = np.array(start if len(start) else np.zeros(len(names)), float)
    for name, value in given.items():
        if name not in names:
            raise UsageError(f"{what}: {name!r} is no {kind} of this robot{nearest(name, names)}")
        if not math.isfinite(value):
            raise UsageError(f"{what}: {name} is {value}, want a finite number")
        values[names.index(name)] = value
    return values


_EQUIPMENT_ROWS = {
    "tau_loop": "loops",
    "tau_tendon": "tendons",
    "activation": "activations",
    "actuator_force": "actuators",
    "actuator_length": "actuators",
    "actuator_velocity": "actuators",
    "tendon_length": "tendons",
    "tendon_velocity": "tendons",
    "sensors": "sensors",
}


def _recordable(config: RunConfig, equipped: Equipped | None, notes: list[str]) -> tuple[str, ...]:
    """What is to be recorded, without what the robot does not have."""
    names = EquipmentLabels() if equipped is None else equipped.labels
    kept: list[str] = []
    for name in config.record:
        if name in _EQUIPMENT_ROWS and not getattr(names, _EQUIPMENT_ROWS[name]):
            if name not in DEFAULT_RECORD:
                notes.append(f"{name} is not recorded: the robot has no {_EQUIPMENT_ROWS[name]}")
        else:
            kept.append(name)
    return tuple(kept)


def _refuse_idle_targets(config: RunConfig, labels: Labels, inputs: Mapping[str, Array]) -> None:
    """A target that nothing would follow is a mistake."""
    if config.controller == "computed-torque":
        return
    driven = (inputs["drive_stiffness"] > 0) | (inputs["drive_damping"] > 0)
    for name in config.target:
        if config.controller == "hold":
            raise UsageError(f"controller 'hold' keeps the start; for a target of {name!r} use computed-torque")
        if not driven[labels.dofs.index(name)]:
            raise UsageError(f"target of {name!r} needs a drive: give --stiffness {name}=… and --damping {name}=…")


def _resolved(config: RunConfig, model: Model, labels: Labels, qpos: Real, qvel: Real) -> RunConfig:
    """The configuration with the whole start in it; followers are left out, so that it can be changed and run again."""
    coords = {int(model.dof_coord[k]) for k in model.coupling_follower}
    dofs = {int(k) for k in model.coupling_follower}
    return replace(
        config,
        q0={name: float(qpos[n]) for n, name in enumerate(labels.coords) if n not in coords},
        v0={name: float(qvel[k]) for k, name in enumerate(labels.dofs) if k not in dofs},
    )


def compiled_robot(articulation: Articulation, config: RunConfig, *, locks: bool = True) -> Robot:
    """The articulation with its arrays, couplings and gravity as configured; see compile_model."""
    soft = articulation
    if config.coupling == "compliant":
        soft = replace(articulation, couplings=tuple(_softened(c, config) for c in articulation.couplings))
    return Robot(articulation, compile_model(soft, coupling=config.coupling, locks=locks, gravity=config.gravity))


def _softened(coupling: Coupling, config: RunConfig) -> Coupling:
    if coupling.frequency is not None:
        return coupling
    return replace(coupling, frequency=config.coupling_frequency, damping_ratio=config.coupling_damping)


# ------------------------------------------------------------------ the state to start from


def initial_qpos(compiled: Compiled, given: Value, notes: list[str], key: Sequence[float] = ()) -> Real:
    """Coordinates to start from: a keyframe's, or the file's pose clamped into the limits; then what is `given`.

    Followers come last.

    Raises UsageError: unknown coordinate, value not finite, or a follower given against its leader.
    """
    model, labels = compiled.model, compiled.labels
    if len(key):
        q = np.array(key, float)
    else:
        q = compiled.reference.copy()
        _clamp(model, q)
    for name, value in given.items():
        if name not in labels.coords:
            raise UsageError(f"q0: {name!r} is not a coordinate of this robot{nearest(name, labels.coords)}")
        if not math.isfinite(value):
            raise UsageError(f"q0: {name} is {value}, want a finite number")
        q[labels.coords.index(name)] = value
    _unit_quaternions(model, labels, q)
    for follower, leader, p in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        coord = int(model.dof_coord[follower])
        want, _ = _at_leader(p, q[model.dof_coord[leader]] if leader >= 0 else 0.0)
        name = labels.coords[coord]
        if name in given and abs(given[name] - want) > 1e-9 * max(1.0, abs(want)):
            raise UsageError(f"q0: {name} follows another joint and must be {want:.9g} here, got {given[name]:.9g}")
        q[coord] = want
    _place_row_followers(model, labels, q, given)
    for k, coord in enumerate(model.dof_coord):
        if coord >= 0 and not model.lower[k] - 1e-9 <= q[coord] <= model.upper[k] + 1e-9:
            notes.append(
                f"{labels.coords[coord]} starts at {q[coord]:.6g}, outside its limits "
                f"[{model.lower[k]:.6g}, {model.upper[k]:.6g}]"
            )
    return q


def _at_leader(p: Real, x: float) -> tuple[float, float]:
    """A coupling's value and slope where its leader is at x."""
    value = p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4])))
    return float(value), float(p[1] + x * (2 * p[2] + x * (3 * p[3] + x * 4 * p[4])))


def _place_row_followers(model: Model, labels: Labels, q: Real, given: Value) -> None:
    """Followers whose couplings are rows start where these want them; one that is given may start elsewhere.

    One that another coupling eliminates is where that one wants it.
    """
    for _ in model.row_follower:  # not leaders first: as many passes as a chain can be long
        for follower, leader, p in zip(model.row_follower, model.row_leader, model.row_polynomial, strict=True):
            coord = int(model.dof_coord[follower])
            if labels.coords[coord] not in given and follower not in model.coupling_follower:
                q[coord], _ = _at_leader(p, q[model.dof_coord[leader]] if leader >= 0 else 0.0)


def _clamp(model: Model, q: Real) -> None:
    """Move independent coordinates into their own limits and, through linear couplings, their followers'."""
    low, high = model.lower.copy(), model.upper.copy()
    for c in range(len(model.coupling_follower) - 1, -1, -1):
        follower, leader = model.coupling_follower[c], model.coupling_leader[c]
        p = model.coupling_polynomial[c]
        if leader < 0 or p[1] == 0 or np.any(p[2:]):
            continue
        ends = sorted(((low[follower] - p[0]) / p[1], (high[follower] - p[0]) / p[1]))
        if max(low[leader], ends[0]) <= min(high[leader], ends[1]):
            low[leader], high[leader] = max(low[leader], ends[0]), min(high[leader], ends[1])
    for k in model.independent_dof:
        coord = model.dof_coord[k]
        if coord >= 0:
            q[coord] = min(max(q[coord], low[k]), high[k])


def _unit_quaternions(model: Model, labels: Labels, q: Real) -> None:
    for i, kind in enumerate(model.joint_type):
        if i == 0 or kind not in (BALL, FREE):
            continue
        start = int(model.body_coord[i]) + (3 if kind == FREE else 0)
        part = slice(start, start + 4)
        length = float(np.linalg.norm(q[part]))
        if length < 1e-9:
            raise UsageError(f"q0: the quaternion {', '.join(labels.coords[part])} is zero")
        if abs(length - 1.0) > 1e-14:  # leaves a quaternion that was made unit before as it is, bit for bit
            q[part] /= length


def _follow_velocities(model: Model, labels: Labels, q: Real, v: Real, given: Value) -> None:
    for follower, leader, p in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        want = _at_leader(p, q[model.dof_coord[leader]])[1] * v[leader] if leader >= 0 else 0.0
        name = labels.dofs[follower]
        if name in given and abs(given[name] - want) > 1e-9 * max(1.0, abs(want)):
            raise UsageError(f"v0: {name} follows another joint and must be {want:.9g} here, got {given[name]:.9g}")
        v[follower] = want
    for _ in model.row_follower:
        for follower, leader, p in zip(model.row_follower, model.row_leader, model.row_polynomial, strict=True):
            if labels.dofs[follower] not in given and follower not in model.coupling_follower:
                v[follower] = _at_leader(p, q[model.dof_coord[leader]])[1] * v[leader] if leader >= 0 else 0.0


# ------------------------------------------------------------------ names to arrays


def _dof_values(given: Value, labels: Labels, what: str, default: Real) -> Real:
    values = np.array(default, float)
    for name, value in given.items():
        if name not in labels.dofs:
            raise UsageError(f"{what}: {name!r} is not a joint of this robot{nearest(name, labels.dofs)}")
        if not math.isfinite(value):
            raise UsageError(f"{what}: {name} is {value}, want a finite number")
        values[labels.dofs.index(name)] = value
    return values


def _joint_values(given: Value, robot: Robot, what: str, default: Real) -> Real:
    """Per-dof values by name; "*" sets every joint of one dof that is no follower."""
    values = np.array(default, float)
    if "*" in given:
        values[drivable(robot.model)] = given["*"]
    named = {name: value for name, value in given.items() if name != "*"}
    values = _dof_values(named, robot.labels, what, values)
    if np.any(values < 0):
        name = robot.labels.dofs[int(np.argmin(values))]
        raise UsageError(f"{what}: {name} is {values.min()}, want a number from 0")
    return values


def drivable(model: Model) -> list[int]:
    """Dofs a drive makes sense on: joints of one dof that are no followers, be their couplings eliminated or rows."""
    count = np.diff(model.body_dof)
    followers = set(model.row_follower)
    return [int(k) for k in model.independent_dof if count[model.dof_body[k]] == 1 and k not in followers]


def _drives(robot: Robot, config: RunConfig, dt: float) -> dict[str, Array]:
    model = robot.model
    zero = np.zeros(robot.nv)
    drive_stiffness = _joint_values(config.stiffness, robot, "stiffness", zero)
    drive_damping = _joint_values(config.damping, robot, "damping", zero)
    limit = _joint_values(config.drive_limit, robot, "drive_limit", np.full(robot.nv, np.inf))
    if config.drive_limit_kind == "impulse":
        limit = limit / dt
    driven = (drive_stiffness > 0) | (drive_damping > 0)
    gain = TRACKING_FREQUENCY
    return {
        "time_step": np.array([dt]),
        "solver": np.array([SOLVERS[config.solver]]),
        "iterations": np.array([config.iterations]),
        "controller": np.array([CONTROLLERS.get(config.controller, NO_CONTROLLER)]),
        "controller_gains": np.array([gain**2, 2 * gain]),
        "drive_stiffness": drive_stiffness,
        "drive_damping": drive_damping,
        "drive_limit": np.minimum(limit, model.effort),
        "drive_acceleration": (driven & (config.drive_mode == "acceleration")).astype(np.int64),
    }


def _refuse_unservable(robot: Robot, config: RunConfig, equipped: Equipped | None) -> None:
    """RK4 and `direct` have no rows that push one way: say so before the run where it is already sure."""
    model = robot.model
    reason = ""
    if np.any(model.friction > 0) or np.any(model.friction_coefficient > 0):
        k = int(np.argmax((model.friction > 0) | (model.friction_coefficient > 0)))
        reason = f"joint friction ({robot.dofs[k]})"
    elif equipped is not None and np.any(equipped.arrays.tendon_friction > 0):
        t = int(np.argmax(equipped.arrays.tendon_friction > 0))
        reason = f"the friction of tendon {equipped.labels.tendons[t]!r}"
    elif config.velocity_limits:
        reason = "--velocity-limits"
    if reason and config.integrator == "rk4":
        raise UsageError(f"integrator 'rk4' has no inequality rows, which {reason} needs; use semi-implicit-euler")
    wrapped = None if equipped is None else _wrapped_equality(equipped)
    if wrapped and config.integrator == "rk4":
        raise UsageError(
            f"integrator 'rk4' cannot hold the equality of tendon {wrapped!r}, which wraps around a geom; "
            "use semi-implicit-euler"
        )
    if reason and config.solver == "direct":
        raise UsageError(f"solver 'direct' serves equalities only, {reason} needs 'auto' or 'pgs'")


def _wrapped_equality(equipped: Equipped) -> str | None:
    """A tendon that wraps around a geom and is held by a hard equality."""
    e = equipped.arrays
    held = np.concatenate([e.tendon_row_follower, e.tendon_row_leader])[np.tile(e.tendon_row_reference[:, 0] < 0, 2)]
    for t in held[held >= 0]:
        if np.isin(e.path_kind[e.tendon_path[t] : e.tendon_path[t + 1]], (PATH_SPHERE, PATH_CYLINDER)).any():
            name: str = equipped.labels.tendons[t]
            return name
    return None


def make_inputs(plan: Plan, controls: Controls) -> Inputs:
    """The Inputs record: the plan's constants and these control rows; the plan's controls where these have none.

    Raises UsageError: controls for another number of actuators.
    """
    control = controls.control
    if control.shape[1] == 0:
        control = np.tile(plan.control, (len(control), 1))
    if control.shape[1] != plan.control.size:  # kernels do not look
        raise UsageError(f"controls: there are {control.shape[1]} for {plan.control.size} actuators")
    return Inputs(
        **{name: np.ascontiguousarray(values) for name, values in plan.inputs.items()},
        start_step=np.ascontiguousarray(controls.start_step, np.int64),
        torque=np.array(controls.torque, float, order="C"),  # a copy: a Python controller writes into it
        target=np.array(controls.target, float),
        target_velocity=np.array(controls.target_velocity, float),
        control=np.array(control, float, order="C"),
    )
