"""The one table of the settings of a run: the type, default, bounds, group and meaning of each.

A line makes the option of `artsim run`, `rollout` and `bench` and its place in the help, the key of a TOML file, the
row of the documentation and the refusals of wrong values. RunSettings repeats names and types, for type checkers: a
keyword argument may be given in more forms than a RunConfig holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np

from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.run_data.controllers import CONTROLLERS
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.link_rules import Pair
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.run_data.run_records import RECORDED
from artsim.sim.runs.reading import COMMON, OF_MODEL
from artsim.sim.runs.setting import (
    ACTUATORS,
    AIMS,
    ANGLES,
    AXES,
    CONSTRAINTS,
    COORDS,
    COUNT,
    FORCES,
    FROM_0,
    GAINS,
    GAP,
    JOINT_WORDS,
    LIMITS,
    METRES,
    NAMES,
    OF_CONSTRAINTS,
    OF_FOLLOWERS,
    OF_JOINTS,
    ONE_OR_OF_FOLLOWERS,
    PAIR,
    PAIRS,
    PLACES,
    PUSHES,
    RATES,
    SHARE,
    STATES,
    TEXT_OR_OF_JOINTS,
    TEXT_OR_OF_LINKS,
    VECTOR,
    WRENCHES,
    Bounds,
    Group,
    settings_of,
)

COORDINATES = ("reduced", "maximal")
SCHEMES = ("auto", "baumgarte", "implicit")
CONES = ("auto", "elliptic", "pyramidal")
FILE, COULOMB, CONVEX = CONTACT_LAWS = ("file", "coulomb", "convex")
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
HOLD, LINEAR, CUBIC, PCHIP = INTERPOLATIONS = ("hold", "linear", "cubic", "pchip")
DRIVE_MODES = ("force", "acceleration")
LIMIT_KINDS = ("force", "impulse")
ERROR_STEPS = ("step", "sub-step")
MAX_ITERATIONS = 100_000  # of a sweeping solver per step, since no signal interrupts a step
TIME_STEP = 0.002  # [s] where neither the user nor the file gives one
LEAST_DT = 1e-12  # [s]; with a smaller one rates and their squares overflow
TIME_STEPS = Bounds(f"a time step of {LEAST_DT:g} s or more", 0, open=True)
ACCURACIES = Bounds("a number from 1e-12 to 1", 1e-12, 1)
SEEDS = Bounds("64 bits", -(2**63), 2**63 - 1)

START = Group("Start")
INPUTS = Group("Drives and inputs")
JOINTS = Group("Joints and couplings")
LINKS = Group("Links")
CONTACT = Group("Contact")
SOLVING = Group("Solver")

Value = Mapping[str, float]  # by joint, coordinate or dof name or pattern; "*" for all
Angles = tuple[float, ...]  # of a ball or free joint, by its name or pattern
Place = tuple[float, ...]  # position [m]; also roll, pitch and yaw [rad]


@dataclass(frozen=True)
class Settings:
    """The settings of a run, in SI units; maps are by name or pattern (sim/runs/patterns.py)."""

    steps: int = COMMON(1000, "Number of time steps to simulate.", bounds=COUNT)
    dt: float | None = COMMON(
        None, f"Time step [s]; default: that of the model file, else {TIME_STEP}.", bounds=TIME_STEPS
    )
    accuracy: float | None = COMMON(
        None,
        "Choose steps by their error, within --dt, which is the time between inputs and rows: the largest error [rad "
        "or m] that a second of motion may add to a coordinate.",
        bounds=ACCURACIES,
    )
    gravity: tuple[float, ...] | None = COMMON(
        None, "Gravitational acceleration [m/s²]; default: 0,0,-9.81.", VECTOR, changes=True
    )
    base: str = OF_MODEL["base"].field()
    q0: Value = COMMON(
        COORDS,
        "Initial coordinate of a joint [rad, m, or with a suffix: 30deg]; V,V,… or a file gives those of all joints.",
    )
    ground: bool = COMMON(False, "Add level ground that the robot's collision geometry can touch.")
    on_ground: float | None = COMMON(
        None,
        "Start a free base so that its lowest shape is GAP [m] above the ground; after --q0. Default: 0.",
        GAP,
        bounds=METRES,
    )
    assemble: str | None = COMMON(
        None,
        "Close loops and couplings before the first row, to 1e-12: by joints of these names or patterns; alone, or "
        "with *, by all but those that --q0 gives and free bases that no loop ties to anything else.",
        JOINT_WORDS,
    )
    torque: Value = COMMON(FORCES, "Constant joint force [N m, N].")
    target: Value = COMMON(
        AIMS, "Position target of a joint drive [rad, m]; needs gains. Also of a loop's drive, by its name."
    )
    stiffness: Value = COMMON(
        GAINS, "Stiffness of a joint drive [N m/rad, N/m]; without JOINT= that of all independent joints.", changes=True
    )
    damping: Value = COMMON(
        GAINS,
        "Damping of a joint drive [N m s/rad, N s/m]; without JOINT= that of all independent joints.",
        changes=True,
    )
    control: Value = COMMON(
        ACTUATORS,
        "Constant control of an actuator, or a .csv, .npz or .h5 file of inputs over time, whose columns are named "
        "ACTUATOR, JOINT.target, JOINT.velocity (or of a LOOP), JOINT.torque or LINK.fx, … LINK.tz (CSV from a pipe "
        "or -, too). FILE.h5:target=qpos,… takes variables of a run or a batch as target, velocity, torque or "
        "control.",
    )
    controller: str = COMMON(
        "none",
        "Built-in controller, or a Python function(t, qpos, qvel) that returns joint forces (nv,).",
        metavar=f"{'|'.join(CONTROLLERS)}|FILE.py:FUNCTION",
    )
    record: tuple[str, ...] = COMMON(
        DEFAULT_RECORD,
        f"Variables to record; +NAME adds to the default. Known: {', '.join(RECORDED)}.",
        NAMES,
        metavar="NAME,…",
    )
    every: int = COMMON(1, "Steps between two recorded rows.", bounds=COUNT)

    keyframe: str = START("", "Keyframe of the model file to start from.", metavar="NAME")
    v0: Value = START(RATES, "Initial velocity of a joint [rad/s, m/s]; V,V,… or a file gives those of all joints.")
    base_pose: Mapping[str, Place] = START(
        PLACES, "Position [m] and roll, pitch, yaw [rad] at which a free base starts; NAME is its joint or link."
    )
    activation: Value = START(STATES, "Initial activation of an actuator with dynamics.")
    seed: int = START(
        0, "Seed stored with the run, from which `artsim rollout` draws its samples, and --sensor-noise.", bounds=SEEDS
    )
    sensor_noise: bool = START(
        False,
        "Add normal noise to recorded sensors, of the standard deviation that an MJCF file gives each (noise), which "
        "MuJoCo ignores; drawn from --seed.",
    )

    target_velocity: Value = INPUTS(AIMS, "Velocity target of a joint drive [rad/s, m/s].")
    target_acceleration: Value = INPUTS(RATES, "Acceleration that computed torque adds to its feedback [rad/s², m/s²].")
    drive_limit: Value = INPUTS(
        GAINS, "Largest force of a joint drive [N m, N]; the joint's effort limit bounds it in any case.", changes=True
    )
    drive_mode: str | Mapping[str, str] = INPUTS(
        "force",
        "What the drive gains produce: force (default), or acceleration (gains in 1/s² and 1/s).",
        TEXT_OR_OF_JOINTS,
        choices=DRIVE_MODES,
        changes=True,
    )
    drive_limit_kind: str | Mapping[str, str] = INPUTS(
        "force",
        "What --drive-limit bounds: force (default), or impulse per step [N m s, N s].",
        TEXT_OR_OF_JOINTS,
        choices=LIMIT_KINDS,
        changes=True,
    )
    interpolate: str = INPUTS(
        HOLD,
        "How the inputs of a --control file go from row to row: held until the next row, along straight lines, "
        "along a cubic spline, or along cubics that keep between their rows (pchip): monotone where rows are, without "
        "overshoot where they hold. All but hold store inputs for every step.",
        choices=INTERPOLATIONS,
    )
    wrench: Mapping[str, tuple[float, ...]] = INPUTS(
        WRENCHES, "Constant force [N] and torque [N m] on a link; LINK may contain *.", changes=True
    )
    wrench_at: str | Mapping[str, str] = INPUTS(
        "origin",
        "Where the force of a wrench or push acts: the origin of the link (default), its centre of mass (com), or a "
        "point in its axes [m].",
        TEXT_OR_OF_LINKS,
        metavar="[LINK=]origin|com|X,Y,Z",
        changes=True,
    )
    wrench_frame: str | Mapping[str, str] = INPUTS(
        "world",
        "Axes of wrenches and pushes: the world's (default), or the link's.",
        TEXT_OR_OF_LINKS,
        metavar="[LINK=]world|link",
        changes=True,
    )
    push: tuple[str, ...] = INPUTS(
        (), "Impulse [N s, N m s] on a link at a time [s]: a wrench that acts for one step.", PUSHES
    )

    joint_friction: Value = JOINTS(
        OF_JOINTS, "Coulomb friction of a joint instead of the file's [N m, N].", changes=True
    )
    armature: Value = JOINTS(
        OF_JOINTS, "Armature (rotor inertia) of a joint instead of the file's [kg m², kg].", changes=True
    )
    lower_limit: Value = JOINTS(
        LIMITS,
        "Lower position limit of a joint, or of an axis of one (slab.x), instead of the file's [rad, m]. Equal to "
        "the upper limit it locks the axis.",
    )
    upper_limit: Value = JOINTS(LIMITS, "Upper position limit of a joint or axis instead of the file's [rad, m].")
    ignore_follower_limits: bool = JOINTS(
        False,
        "Leave out the file's position limits of joints that follow others, so that only a leader's own limits bound "
        "it.",
    )
    limit_stiffness: Value = JOINTS(
        GAINS,
        "Stiffness of the position limits of a joint or axis, which then give way as a spring does [N m/rad, N/m]; "
        "without it they are hard.",
    )
    limit_damping: Value = JOINTS(GAINS, "Damping of limits that have a stiffness [N m s/rad, N s/m].")
    swing_limit: Mapping[str, Angles] = JOINTS(
        ANGLES,
        "Largest swing of a ball or free joint [rad, or with a suffix: 30deg], instead of the file's: the half angle "
        "of a cone, or two, about the axes y and z of the joint's frame (PhysX's swing1 and swing2).",
        metavar="JOINT=ANGLE[,ANGLE]",
    )
    twist_limit: Mapping[str, Angles] = JOINTS(
        ANGLES,
        "Limits of a ball or free joint's twist about x [rad, or with a suffix: -30deg:30deg], instead of the file's.",
        metavar="JOINT=LOWER:UPPER",
    )
    twist_axis: Mapping[str, Angles] = JOINTS(
        AXES,
        "Axis in a ball or free joint's frame about which it twists, instead of x; the axes of its swing turn with it.",
        metavar="JOINT=x|y|z|X,Y,Z",
    )
    friction_coefficient: Value = JOINTS(
        GAINS, "Friction coefficient of a joint: friction per load transmitted by the joint (PhysX).", changes=True
    )
    velocity_limits: bool = JOINTS(False, "Enforce the joints' velocity limits.", changes=True)
    coupling: str = JOINTS(
        "auto",
        "How couplings (mimic joints, joint and tendon equalities) are enforced. exact: eliminated, or hard "
        "constraint rows for tendons and axes of ball joints; rows: hard constraint rows; compliant: springs; auto: "
        "exact unless the file makes them soft (MJCF solref). exact and rows also make loops hard.",
        choices=COUPLINGS,
        changes=True,
    )
    coupling_frequency: float | Value | None = JOINTS(
        None,
        "Natural frequency of compliant couplings [Hz]; with JOINT= (or a tendon's name) only the couplings of these "
        "followers are compliant.",
        ONE_OR_OF_FOLLOWERS,
        bounds=Bounds("Hz above 0", 0, open=True),
        metavar="[JOINT=]HZ",
        changes=True,
    )
    coupling_damping: float | Value = JOINTS(
        1.0,
        "Damping ratio of compliant couplings; default: 1.",
        ONE_OR_OF_FOLLOWERS,
        bounds=FROM_0,
        metavar="[JOINT=]RATIO",
        changes=True,
    )
    compliance: Value = JOINTS(
        OF_CONSTRAINTS,
        "Compliance of a coupling, tendon equality or loop [rad/(N m), m/N], by its following joint or tendon, or "
        "the loop's name, or a pattern: force -(C + D Ċ) / compliance at an error C. 0: hard; inf: no constraint.",
        bounds=Bounds("a number from 0; inf: no constraint", 0, infinite=True),
        metavar="NAME=COMPLIANCE",
        changes=True,
    )
    compliance_damping: Value = JOINTS(
        OF_CONSTRAINTS,
        "Damping D [s] of --compliance, default 0: the time in which an error decays. For a damping coefficient b [N "
        "s/m, N m s/rad] give b times the compliance.",
        bounds=FROM_0,
        metavar="NAME=SECONDS",
        changes=True,
    )
    coupling_ratio: Value = JOINTS(
        OF_FOLLOWERS, "Ratio of a linear coupling instead of the file's.", metavar="JOINT=RATIO", changes=True
    )
    coupling_offset: Value = JOINTS(
        OF_FOLLOWERS,
        "Offset of a linear coupling instead of the file's [rad, m].",
        metavar="JOINT=OFFSET",
        changes=True,
    )
    coupling_erp: float | Value = JOINTS(
        0.0,
        "Error reduction parameter: share of the error of couplings, loops, tendon equalities and violated limits "
        "that each step removes; with NAME= (a following joint or tendon, a loop, a pattern) that of these, which "
        "are then hard rows. Default: initial errors are removed over 0.1 s, errors left by a step in the next.",
        ONE_OR_OF_FOLLOWERS,
        bounds=SHARE,
        metavar="[NAME=]SHARE",
        changes=True,
    )

    link_damping: Mapping[str, Pair] = LINKS(
        PAIRS, "Damping of a link's linear and angular velocity [1/s]; LINK may contain *.", changes=True
    )
    link_velocity_limit: Mapping[str, Pair] = LINKS(
        PAIRS, "Largest linear and angular velocity of a link [m/s, rad/s]; either may be left out.", changes=True
    )
    com_velocity_limit: Pair | None = LINKS(
        None,
        "Largest linear and angular velocity of the whole robot at its centre of mass [m/s, rad/s].",
        PAIR,
        changes=True,
    )
    sleep_threshold: float = LINKS(
        0.0,
        "Kinetic energy per mass [m²/s²] below which a link counts as at rest (PhysX: 5e-5); 0: never sleep.",
        bounds=FROM_0,
    )
    sleep_time: float = LINKS(
        0.4, "Time for which all links must be at rest before the robot sleeps [s].", bounds=FROM_0
    )

    contacts: bool = CONTACT(
        True,
        "Whether contacts are simulated: with the ground if --ground is given, and between the robot's links and "
        "with its scene as the file says.",
    )
    self_collide: bool = CONTACT(False, "Let the links of a URDF collide with each other, except neighbours.")
    keep_overlaps: bool = CONTACT(
        False,
        "Keep contacts of shapes of one robot that overlap in the file's pose and wherever the joints are, which are "
        "left out and told otherwise.",
    )
    ground_height: float = CONTACT(0.0, "Height of the ground [m].", bounds=METRES)
    ground_friction: float = CONTACT(
        1.0,
        "Coefficient of friction of the ground; a contact uses the larger of it and the geom's (1 where the file "
        "gives none).",
        bounds=FROM_0,
        changes=True,
    )
    restitution: float = CONTACT(0.0, "Coefficient of restitution of all contacts.", bounds=SHARE, changes=True)
    contact_law: str = CONTACT(
        FILE,
        "Law of contacts, limits and friction. file: hard, Coulomb's friction exactly, but where an MJCF file gives "
        "softness (solref, solimp): soft and convex as in MuJoCo. coulomb: contacts by Coulomb's law, soft or not, "
        "and hard limits. convex: all as in MuJoCo, with its steps and its defaults for what the file leaves out; "
        "--integrator euler, implicitfast or runge-kutta, as the file says.",
        choices=CONTACT_LAWS,
    )
    cone: str = CONTACT(
        "auto",
        "Shape of the friction cone. A pyramid, MuJoCo's default, allows less friction between its axes than the "
        "cone of Coulomb's law. auto: of contacts that are soft as in MuJoCo the file's, otherwise elliptic.",
        choices=CONES,
    )
    continuous: bool = CONTACT(
        False,
        "Detect contacts continuously, within each step too: a thin body that turns far in one step stops where it "
        "would pass through another body and loses the rest of the step's motion.",
    )
    decompose: bool = CONTACT(
        False,
        "Decompose meshes into convex parts for collision where the convex hull has more than 1.2 times the volume "
        "of the mesh; needs artsim[decompose].",
    )
    max_contacts: int = CONTACT(
        20_000, "Largest number of simultaneous contacts; more of them stop the run.", bounds=COUNT
    )

    solver: str = SOLVING(
        "newton",
        "Constraint solver. newton: exact; pgs, tgs: projected and temporal Gauss-Seidel, in the order of the PhysX "
        "guide; block-gs: Gauss-Seidel joint by joint; jacobi: all rows at once from the velocities before; "
        "propagation, direct: newton by recursions over the tree in linear time, or over a graph of joints; brute: a "
        "dense matrix of all rows, to validate the others.",
        choices=SOLVERS,
    )
    iterations: int = SOLVING(
        64,
        "Sweeps per step of the solvers pgs, tgs, block-gs and jacobi, which start from zero impulses as PhysX does.",
        bounds=Bounds(f"1 to {MAX_ITERATIONS}", 1, MAX_ITERATIONS),
        changes=True,
    )
    velocity_iterations: int = SOLVING(
        0,
        "Sweeps of pgs and tgs after those of --iterations, by whose velocities positions move: without correcting "
        "errors, for the velocities at the end of the step (PhysX's velocity iterations).",
        bounds=Bounds(f"0 to {MAX_ITERATIONS}", 0, MAX_ITERATIONS),
        changes=True,
    )
    error_step: str = SOLVING(
        "step",
        "Time over which --solver tgs corrects an error in each of its sub-steps: that of the step, or the sub-step, "
        "at whose end nothing is left of it.",
        choices=ERROR_STEPS,
    )
    relaxation: float = SOLVING(
        1.0,
        "Share of its correction that a row takes in an iteration of --solver jacobi.",
        bounds=Bounds("a number above 0, up to 1", 0, 1, open=True),
    )
    mass_splitting: bool = SOLVING(
        True,
        "Whether rows of --solver jacobi that share bodies see shards of their mass, with which it converges; "
        "without, it may diverge and wants --relaxation.",
    )
    integrator: str = SOLVING(
        "auto",
        "Integrator. midpoint: semi-implicit Euler with Coriolis and gyroscopic terms midway in the step; "
        "semi-implicit-euler: with these at the step's start, as MuJoCo's Euler; rk4; implicit-midpoint, "
        "implicit-euler, generalized-alpha: with all forces at an implicit stage. auto: rk4 where the file asks "
        "for it and no constraint is one-sided, else midpoint; semi-implicit-euler with sweeping solvers and in "
        "maximal coordinates. euler, implicitfast, runge-kutta: MuJoCo's, for --contact-law convex, where auto is "
        "what the file asks for.",
        choices=("auto", *INTEGRATORS),
    )
    rho_inf: float | None = SOLVING(
        None,
        "Share of motion that is much faster than the step which a step of --integrator generalized-alpha keeps; "
        "default: 0.8.",
        bounds=Bounds("a number from 0 to 1", 0, 1),
    )
    coordinates: str = SOLVING(
        "reduced",
        "Coordinates of the simulation. reduced: joint coordinates; maximal: six per body, with joints as "
        "constraints (slow, for cross-checks).",
        choices=COORDINATES,
    )
    scheme: str = SOLVING(
        "auto",
        "How constraints are enforced. baumgarte (in maximal coordinates only): C̈ + α Ċ + β C = 0; implicit: by "
        "their values at the end of the step; auto: implicit.",
        choices=SCHEMES,
    )
    scheme_alpha: float | None = SOLVING(
        None,
        "α of the scheme. baumgarte: α [1/s], default 1/dt; implicit: weight of the force at the end of the step, "
        "default 1; in reduced coordinates that of springs and of what has a compliance, by default weighed as "
        "springs of joints are.",
    )
    scheme_beta: float | None = SOLVING(
        None,
        "β of the scheme. baumgarte: β [1/s²], default 1/dt²; implicit: weight of the velocity at the end of the "
        "step in the motion of positions, default 1 (with smaller ones motion gains energy, and in maximal "
        "coordinates joints drift apart).",
    )
    constraint_alpha: Value = SOLVING(
        CONSTRAINTS,
        "Baumgarte's α of one constraint [1/s]: of a loop, or of what a joint holds and its coupling.",
    )
    constraint_beta: Value = SOLVING(CONSTRAINTS, "Baumgarte's β of one constraint [1/s²].")

    density: float | None = OF_MODEL["density"].field()
    balance_inertia: bool = OF_MODEL["balance_inertia"].field()
    ignore_unsupported: bool = OF_MODEL["ignore_unsupported"].field()


SETTINGS = settings_of(Settings)
"""The lines of the table by name, in the order of the help."""

Values = float | Mapping[str, float] | Sequence[float] | np.ndarray[Any, np.dtype[np.floating[Any]]]
"""Numbers by name or pattern ("*_knee"), or in the model's order; for gains also one for all."""
DriveMode = Literal["force", "acceleration"]
LimitKind = Literal["force", "impulse"]


class RunSettings(TypedDict, total=False):
    """The settings as keyword arguments of artsim.simulate and artsim.rollout."""

    steps: int
    dt: float | None
    accuracy: float | None
    gravity: Sequence[float] | None
    base: Literal["fixed", "floating"]
    q0: Values
    ground: bool
    on_ground: float | None
    assemble: str | None
    torque: Values
    target: Values
    stiffness: Values
    damping: Values
    control: Values
    record: Sequence[str]
    every: int
    keyframe: str
    v0: Values
    base_pose: Sequence[float] | Mapping[str, Sequence[float]]
    activation: Mapping[str, float]
    seed: int
    sensor_noise: bool
    target_velocity: Values
    target_acceleration: Values
    drive_limit: Values
    drive_mode: DriveMode | Mapping[str, DriveMode]
    drive_limit_kind: LimitKind | Mapping[str, LimitKind]
    interpolate: Literal["hold", "linear", "cubic", "pchip"]
    wrench: Mapping[str, Sequence[float]]
    wrench_at: str | Sequence[float] | Mapping[str, str | Sequence[float]]
    wrench_frame: str | Mapping[str, str]
    push: Sequence[str | tuple[str, Sequence[float], float]]
    joint_friction: float | Mapping[str, float]
    armature: float | Mapping[str, float]
    lower_limit: Values
    upper_limit: Values
    ignore_follower_limits: bool
    limit_stiffness: Values
    limit_damping: Values
    swing_limit: Mapping[str, float | tuple[float, float]]
    twist_limit: Mapping[str, tuple[float, float]]
    twist_axis: Mapping[str, Literal["x", "y", "z"] | Sequence[float]]
    friction_coefficient: Values
    velocity_limits: bool
    coupling: Literal["auto", "exact", "rows", "compliant"]
    coupling_frequency: float | Mapping[str, float] | None
    coupling_damping: float | Mapping[str, float]
    compliance: Mapping[str, float]
    compliance_damping: Mapping[str, float]
    coupling_ratio: Mapping[str, float]
    coupling_offset: Mapping[str, float]
    coupling_erp: float | Mapping[str, float]
    link_damping: Mapping[str, Pair]
    link_velocity_limit: Mapping[str, Pair]
    com_velocity_limit: Pair | None
    sleep_threshold: float
    sleep_time: float
    contacts: bool
    self_collide: bool
    keep_overlaps: bool
    ground_height: float
    ground_friction: float
    restitution: float
    contact_law: Literal["file", "coulomb", "convex"]
    cone: Literal["auto", "elliptic", "pyramidal"]
    continuous: bool
    decompose: bool
    max_contacts: int
    solver: Literal["newton", "pgs", "tgs", "block-gs", "propagation", "direct", "jacobi", "brute"]
    iterations: int
    velocity_iterations: int
    error_step: Literal["step", "sub-step"]
    relaxation: float
    mass_splitting: bool
    integrator: Literal[
        "auto",
        "midpoint",
        "semi-implicit-euler",
        "rk4",
        "implicit-midpoint",
        "implicit-euler",
        "generalized-alpha",
        "euler",
        "implicitfast",
        "runge-kutta",
    ]
    rho_inf: float | None
    coordinates: Literal["reduced", "maximal"]
    scheme: Literal["auto", "baumgarte", "implicit"]
    scheme_alpha: float | None
    scheme_beta: float | None
    constraint_alpha: Mapping[str, float]
    constraint_beta: Mapping[str, float]
    density: float | None
    balance_inertia: bool
    ignore_unsupported: bool


_TOLD = (f"    {name}: {SETTINGS[name].meaning}" for name in RunSettings.__annotations__)
RunSettings.__doc__ = "\n".join((f"{RunSettings.__doc__}", "", *_TOLD))
