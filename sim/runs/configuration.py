"""The configuration of a run: names and numbers as a user gives them; plan.py resolves them for a robot.

Every output stores its RunConfig as plain JSON, from which `--config` and `replay` run it again; all names are resolved
to numbers except where the value is a name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, field, fields
from typing import Any, NamedTuple

from artsim.sim.foundation.angles import angle_or_number, plain_number
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import SettingError, UsageError, nearest
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.link_rules import Pair
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.run_data.run_records import COMPUTED_TORQUE, GRAVITY_COMPENSATION, NO_CONTROLLER, RECORDED


class Controller(NamedTuple):
    """A built-in controller: its law, and how it uses targets."""

    law: int  # Inputs.controller
    follows: bool = False  # the controller moves joints to targets without drives
    holds: bool = False  # the controller holds the initial position and takes no targets


CONTROLLERS = {
    "none": Controller(NO_CONTROLLER),
    "hold": Controller(COMPUTED_TORQUE, holds=True),
    "gravity-compensation": Controller(GRAVITY_COMPENSATION),
    "computed-torque": Controller(COMPUTED_TORQUE, follows=True),
}
COORDINATES = ("reduced", "maximal")
SCHEMES = ("auto", "baumgarte", "implicit")
CONES = ("elliptic", "pyramidal")
COUPLINGS = ("auto", "exact", "rows", "compliant")
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
    "tau_contact",
    "link_position",
    "link_quaternion",
    "incoming_wrench",
    "activation",
    "actuator_force",
    "contacts",
)
HOLD, LINEAR, CUBIC = INTERPOLATIONS = ("hold", "linear", "cubic")
DRIVE_MODES = ("force", "acceleration")
LIMIT_KINDS = ("force", "impulse")
ERROR_STEPS = ("step", "sub-step")
MAX_STEPS = 2**53  # larger step numbers are not exact in float64
MAX_ITERATIONS = 100_000  # of a sweeping solver per step, since no signal interrupts a step
LEAST_DT = 1e-12  # [s]; with a smaller one rates and their squares overflow
_PAIRS = ("link_damping", "link_velocity_limit")
OF_COUPLINGS = (
    "coupling_frequency",
    "coupling_damping",
    "compliance",
    "compliance_damping",
    "coupling_ratio",
    "coupling_offset",
    "coupling_erp",
)
"""The settings of single couplings, given as one value or by name."""
TURNING = {"swing_limit": 2, "twist_limit": 2, "twist_axis": 3}
"""The settings of swing and twist, and how many numbers each has."""
TURNING_WORDS = {"swing_limit": "ANGLE[,ANGLE]", "twist_limit": "LOWER:UPPER", "twist_axis": "x|y|z|X,Y,Z"}
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_COUNTS = ("steps", "every", "iterations", "max_contacts")
_TEXTS = {"record": "a list of names", "push": "a list of LINK=JX,JY,JZ@TIME"}
_TEXT_BY_NAME = {"drive_mode": "joint", "drive_limit_kind": "joint", "wrench_at": "link", "wrench_frame": "link"}
_CHOICES: Mapping[str, Collection[str]] = {
    "solver": SOLVERS,
    "error_step": ERROR_STEPS,
    "integrator": ("auto", *INTEGRATORS),
    "coordinates": COORDINATES,
    "scheme": SCHEMES,
    "coupling": COUPLINGS,
    "cone": CONES,
    "interpolate": INTERPOLATIONS,
    "drive_mode": DRIVE_MODES,
    "drive_limit_kind": LIMIT_KINDS,
    "base": ("fixed", "floating"),
}
Value = Mapping[str, float]  # by joint, coordinate or dof name or pattern; "*" for all
Angles = tuple[float, ...]  # of a ball or free joint, by its name or pattern
Place = tuple[float, ...]  # position [m]; also roll, pitch and yaw [rad]


@dataclass(frozen=True)
class RunConfig:
    """The configuration of a run, in SI units; maps are by name or pattern (sim/runs/patterns.py)."""

    steps: int = 1000
    dt: float | None = None  # [s]; None: that of the file, else TIME_STEP
    every: int = 1
    base: str = "fixed"
    balance_inertia: bool = False
    ignore_unsupported: bool = False
    density: float | None = None  # [kg/m³] of links of a URDF without mass
    gravity: tuple[float, ...] | None = None
    keyframe: str = ""  # keyframe of the file to start from
    q0: Value = field(default_factory=dict)  # by coordinate
    v0: Value = field(default_factory=dict)  # by dof
    base_pose: Mapping[str, Place] = field(default_factory=dict)  # by joint or link of a free body; "": the only one
    on_ground: float | None = None  # [m] height of the lowest shape of a free body above the ground at the start
    activation: Value = field(default_factory=dict)  # initial activations by actuator
    control: Value = field(default_factory=dict)  # by actuator
    target: Value = field(default_factory=dict)
    target_velocity: Value = field(default_factory=dict)
    target_acceleration: Value = field(default_factory=dict)  # of computed torque
    torque: Value = field(default_factory=dict)
    wrench: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # by link or pattern: force, torque [N, N m]
    wrench_at: str | Mapping[str, str] = "origin"  # where wrenches act: origin, com or X,Y,Z; also by link
    wrench_frame: str | Mapping[str, str] = "world"  # or "link": the axes of wrenches; also by link
    push: tuple[str, ...] = ()  # LINK=JX,JY,JZ[,LX,LY,LZ]@TIME: impulses [N s, N m s]
    stiffness: Value = field(default_factory=dict)
    damping: Value = field(default_factory=dict)
    drive_limit: Value = field(default_factory=dict)
    drive_mode: str | Mapping[str, str] = "force"  # or "acceleration": gains in 1/s² and 1/s; also by joint
    drive_limit_kind: str | Mapping[str, str] = "force"  # or "impulse": drive limits in N m s or N s; also by joint
    friction_coefficient: Value = field(default_factory=dict)
    joint_friction: Value = field(default_factory=dict)  # [N m, N] instead of the file's
    armature: Value = field(default_factory=dict)  # [kg m², kg] in place of the file's
    lower_limit: Value = field(default_factory=dict)  # [rad, m] by dof, instead of the file's
    upper_limit: Value = field(default_factory=dict)
    limit_stiffness: Value = field(default_factory=dict)  # [N m/rad, N/m] of position limits that give way
    limit_damping: Value = field(default_factory=dict)
    swing_limit: Mapping[str, Angles] = field(default_factory=dict)  # half angles about y and z of a ball's cone [rad]
    twist_limit: Mapping[str, Angles] = field(default_factory=dict)  # lower, upper [rad]
    twist_axis: Mapping[str, Angles] = field(default_factory=dict)  # (3,) about which a ball twists; default: x
    interpolate: str = HOLD  # how inputs over time go from row to row
    controller: str = "none"
    solver: str = "newton"
    iterations: int = 64
    velocity_iterations: int = 0  # pgs, tgs: sweeps after those that positions move by, without correcting errors
    error_step: str = "step"  # tgs: the time by which errors are divided, one of ERROR_STEPS
    relaxation: float = 1.0  # jacobi: share of its correction that a row applies in one sweep
    mass_splitting: bool = True  # jacobi: rows that share bodies see shards of them
    coupling_erp: float | Value = 0.0  # share of a hard row's error removed per step; 0: initial errors over 0.1 s
    integrator: str = "auto"  # auto: that of the file if it serves the robot, else midpoint
    coordinates: str = "reduced"  # or "maximal": six coordinates per body, joints as constraints
    scheme: str = "auto"  # reduced coordinates have the implicit one
    scheme_alpha: float | None = None  # Baumgarte: [1/s]; implicit: weight of the force at the step's end
    scheme_beta: float | None = None  # Baumgarte: [1/s²]; implicit: weight of the velocity at the step's end
    constraint_alpha: Value = field(default_factory=dict)  # by joint, loop or tendon: Baumgarte's α of its own [1/s]
    constraint_beta: Value = field(default_factory=dict)  # and β [1/s²]
    coupling: str = "auto"
    coupling_frequency: float | Value | None = None  # [Hz]; or by following joint or tendon: those are compliant
    coupling_damping: float | Value = 1.0
    compliance: Value = field(default_factory=dict)  # by following joint or tendon, or loop [rad/(N m) or m/N]
    compliance_damping: Value = field(default_factory=dict)  # of these [s]
    coupling_ratio: Value = field(default_factory=dict)  # by following joint: slope of a linear coupling
    coupling_offset: Value = field(default_factory=dict)  # by following joint [rad or m]
    velocity_limits: bool = False
    contacts: bool = True  # with the ground, with other models, and in MJCF as the file says
    self_collide: bool = False  # links of a URDF collide with each other
    decompose: bool = False  # meshes much smaller than their convex hulls collide as convex parts
    continuous: bool = False  # continuous collision detection for bodies that turn far in a step
    restitution: float = 0.0  # of all contacts, at least
    cone: str = "elliptic"  # shape of the friction cone
    max_contacts: int = 20_000  # simultaneous contacts; more stop the run
    ground: bool = False  # level, at ground_height
    ground_friction: float = 1.0  # coefficient; a contact uses the larger of it and the geom's
    ground_height: float = 0.0  # [m]
    link_damping: Mapping[str, Pair] = field(default_factory=dict)  # by link or pattern: linear, angular [1/s]
    link_velocity_limit: Mapping[str, Pair] = field(default_factory=dict)  # by link or pattern [m/s, rad/s]
    com_velocity_limit: Pair | None = None  # of the whole robot's centre of mass [m/s, rad/s]
    sleep_threshold: float = 0.0  # [m²/s²] kinetic energy per mass of a link at rest; 0: no sleeping
    sleep_time: float = 0.4  # [s] that all links are at rest before the robot sleeps
    record: tuple[str, ...] = DEFAULT_RECORD
    seed: int = 0

    def __post_init__(self) -> None:
        for f in fields(self):
            _check_type(f.name, getattr(self, f.name), f.default)
        for name, (right, want) in self._checks().items():
            if not right:
                raise SettingError(f"{name} is {getattr(self, name)}, want {want}", name)
        for name, known in _CHOICES.items():
            given = getattr(self, name)
            for entry, choice in given.items() if isinstance(given, Mapping) else (("", given),):
                if choice not in known:
                    of = f" of {entry!r}" if entry else ""
                    raise SettingError(f"{name}{of} {choice!r} is not known{nearest(choice, known)}", name, entry)
        if self.controller not in CONTROLLERS and not self.is_python:
            raise SettingError(
                f"controller {self.controller!r} is not known{nearest(self.controller, CONTROLLERS)}", "controller"
            )
        for name in self.record:
            if name not in RECORDED:
                raise SettingError(f"cannot record {name!r}{nearest(name, RECORDED)}", "record")
        if self.coupling == "compliant" and self.coupling_frequency in (None, {}):
            raise SettingError("coupling 'compliant' needs --coupling-frequency HZ", "coupling")

    def _checks(self) -> dict[str, tuple[bool, str]]:
        """By setting, True if its numbers are in their range, and the range in words."""
        checks = {name: (1 <= getattr(self, name) <= MAX_STEPS, f"1 to {MAX_STEPS}") for name in _COUNTS}
        checks["velocity_iterations"] = 0 <= self.velocity_iterations <= MAX_ITERATIONS, f"0 to {MAX_ITERATIONS}"
        checks["iterations"] = 1 <= self.iterations <= MAX_ITERATIONS, f"1 to {MAX_ITERATIONS}"
        checks["dt"] = self.dt is None or LEAST_DT <= self.dt < math.inf, f"a time step of {LEAST_DT:g} s or more"
        checks["seed"] = -(2**63) <= self.seed < 2**63, "64 bits"
        checks["coupling_frequency"] = all(0 < x < math.inf for x in _values(self.coupling_frequency)), "Hz above 0"
        checks["density"] = self.density is None or 0 < self.density < math.inf, "a positive number in kg/m³"
        checks["coupling_damping"] = all(map(_from_0, _values(self.coupling_damping))), "a finite number from 0"
        for name in ("ground_friction", "sleep_threshold", "sleep_time"):
            checks[name] = _from_0(getattr(self, name)), "a finite number from 0"
        checks["relaxation"] = 0 < self.relaxation <= 1, "a number above 0, up to 1"
        checks["restitution"] = 0 <= self.restitution <= 1, "a number from 0 to 1"
        checks["coupling_erp"] = all(0 <= x <= 1 for x in _values(self.coupling_erp)), "a number from 0 to 1"
        checks["compliance"] = all(x >= 0 for x in self.compliance.values()), "a number from 0; inf: no constraint"
        checks["compliance_damping"] = all(map(_from_0, self.compliance_damping.values())), "a finite number from 0"
        checks["ground_height"] = math.isfinite(self.ground_height), "a finite number in metres"
        checks["on_ground"] = self.on_ground is None or math.isfinite(self.on_ground), "a finite number in metres"
        vector = self.gravity is None or (len(self.gravity) == 3 and all(map(math.isfinite, self.gravity)))
        checks["gravity"] = vector, "three finite numbers X,Y,Z in m/s²"
        return checks

    @property
    def is_maximal(self) -> bool:
        """True if the run uses maximal coordinates."""
        return self.coordinates == "maximal"

    @property
    def built_in(self) -> Controller:
        """The built-in controller, or one without effect."""
        return CONTROLLERS.get(self.controller, CONTROLLERS["none"])

    @property
    def is_python(self) -> bool:
        """True if the controller is a function of a Python file."""
        return ".py:" in self.controller

    def to_json(self) -> str:
        """The configuration as one JSON object."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        """Read a configuration that `to_json` wrote. Raises UsageError for anything else."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"configuration is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise UsageError("configuration is not a JSON object")
        return cls.from_mapping(content)

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> RunConfig:
        """Make a configuration from plain values. Raises UsageError for an unknown name or a wrong type."""
        known = [f.name for f in fields(cls)]
        for name in content:
            if name not in known:
                raise SettingError(f"configuration: {name!r} is not known{nearest(name, known)}", name)
        values = dict(content)
        for name in ("gravity", "record", "com_velocity_limit", "push"):
            if isinstance(values.get(name), list):
                values[name] = tuple(values[name])
        record = values.get("record")
        if isinstance(record, tuple) and any(isinstance(name, str) and name.startswith("+") for name in record):
            values["record"] = record_names(record)
        if isinstance(values.get("base_pose"), list | tuple):
            values["base_pose"] = {"": values["base_pose"]}  # of the only free body
        for name in (*_PAIRS, *TURNING, "base_pose", "wrench"):
            if isinstance(values.get(name), Mapping):
                values[name] = {key: tuple(v) if isinstance(v, list) else v for key, v in values[name].items()}
        try:
            return cls(**values)
        except TypeError as error:
            raise UsageError(f"configuration: {error}") from error


def read_angles(setting: str, entry: object, what: str = "") -> Angles:
    """The numbers of a joint's limit of swing or twist, or axis of twist, given as numbers or as words: "30deg,20deg",
    "-1:1", "z". Raises SettingError, whose message begins with `what`, by default the setting."""
    if setting == "twist_axis" and isinstance(entry, str) and entry in _AXES:
        return _AXES[entry]
    parts: list[Any] = [entry]
    if isinstance(entry, str):
        parts = [*entry.split(":" if setting == "twist_limit" else ",")]
    elif not isinstance(entry, int | float):
        parts = list(entry) if isinstance(entry, Iterable) else []
    if setting == "swing_limit" and len(parts) == 1:
        parts = parts * 2
    read = plain_number if setting == "twist_axis" else angle_or_number
    try:
        numbers = tuple(read(part) if isinstance(part, str) else float(part) for part in parts)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != TURNING[setting] or not all(map(math.isfinite, numbers)):
        raise SettingError(f"{what or setting}: got {entry!r}, want {TURNING_WORDS[setting]}", setting)
    return numbers


def record_names(names: Sequence[Any], default: Sequence[str] = DEFAULT_RECORD) -> tuple[Any, ...]:
    """The variables to record, in the order of the file. "+NAME" adds to the default; entries that are no names stay,
    and are refused later."""
    if not all(isinstance(name, str) for name in names):
        return tuple(names)
    added = [name.removeprefix("+") for name in names]
    if any(name.startswith("+") for name in names):
        added = [*default, *added]
    known = [name for name in RECORDED if name in added]
    return (*known, *(name for name in added if name not in RECORDED))


def _values(given: object) -> list[float]:
    """The numbers of a setting that is one number, numbers by name, or None."""
    if isinstance(given, Mapping):
        return list(given.values())
    return [given] if isinstance(given, int | float) else []


def _from_0(value: float) -> bool:
    return 0 <= value < math.inf


def _check_type(name: str, value: object, default: object) -> None:
    """Refuse a value of another type than the field's default (configurations come from files)."""
    if name in _TEXT_BY_NAME:
        want = f"a text, or texts by {_TEXT_BY_NAME[name]}"
        entries = value.values() if isinstance(value, Mapping) else (value,)
        right = all(isinstance(entry, str) for entry in entries)
    elif name in ("coupling_frequency", "coupling_damping", "coupling_erp"):
        want = "a number, or numbers by joint or tendon"
        entries = value.values() if isinstance(value, Mapping) else (value,)
        right = all(map(_is_number, entries)) or (value is None and default is None)
    elif name == "base_pose":
        want = "X, Y, Z or X, Y, Z, ROLL, PITCH, YAW by joint or link"
        right = isinstance(value, Mapping) and all(map(_is_place, value.values()))
    elif name == "wrench":
        want = "finite FX, FY, FZ or FX, FY, FZ, TX, TY, TZ by link"
        right = isinstance(value, Mapping) and all(map(_is_place, value.values()))
    elif name in TURNING:
        want = f"{TURNING[name]} numbers by ball joint"
        right = isinstance(value, Mapping) and all(_are_numbers(entry, TURNING[name]) for entry in value.values())
    elif name in _TEXTS or name == "gravity":
        right = value is None or isinstance(value, tuple)
        entry = str if name in _TEXTS else (int, float)
        want = _TEXTS.get(name, "three numbers")
        right = right and all(isinstance(item, entry) for item in value or ())  # type: ignore[attr-defined]
    elif name in _PAIRS:
        want = "two numbers (linear, angular) by link"
        right = isinstance(value, Mapping) and all(map(_is_pair, value.values()))
    elif name == "com_velocity_limit":
        right, want = value is None or _is_pair(value), "two numbers: linear, angular"
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
        raise SettingError(f"{name} is {value!r}, want {want}", name)


def _is_place(value: object) -> bool:
    """True if the value is a position, or a position with roll, pitch and yaw."""
    numbers = isinstance(value, tuple) and all(_is_number(x) and math.isfinite(x) for x in value)
    return numbers and len(value) in (3, 6)  # type: ignore[arg-type]


def _are_numbers(value: object, count: int) -> bool:
    """True if the value is a tuple of `count` finite numbers."""
    return isinstance(value, tuple) and len(value) == count and all(_is_number(x) and math.isfinite(x) for x in value)


def _is_pair(value: object) -> bool:
    """True if the value is a pair of finite, non-negative numbers or Nones."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(x is None or (_is_number(x) and 0 <= x < math.inf) for x in value)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
