"""The options that make a RunConfig: how typed names, numbers and files are read, and which takes precedence."""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from artsim.cli.numbers import ABOVE_0, FROM_0, Number, Whole
from artsim.cli.options import STREAMS, is_file, read_input
from artsim.io.control_files import links_pushed
from artsim.io.output_words import variables_named
from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import compile_model
from artsim.sim.equipment.equip import labels_of
from artsim.sim.foundation.angles import DEGREES, angle_or_number, plain_number
from artsim.sim.foundation.errors import ArtsimError, SettingError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.run_data.run_records import RECORDED
from artsim.sim.runs.configuration import (
    CONES,
    CONTROLLERS,
    COORDINATES,
    COUPLINGS,
    DEFAULT_RECORD,
    DRIVE_MODES,
    ERROR_STEPS,
    HOLD,
    INTERPOLATIONS,
    LIMIT_KINDS,
    MAX_ITERATIONS,
    MAX_STEPS,
    SCHEMES,
    TURNING,
    TURNING_WORDS,
    RunConfig,
    read_angles,
    record_names,
)
from artsim.sim.runs.patterns import ALL, KINDS, TURNED, Names, by_name, matching, matching_links, names_of, unmatched
from artsim.sim.runs.plan import TIME_STEP, time_step
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED
from artsim.sim.runs.wrench_inputs import with_links

R = TypeVar("R")
_MOST_NUMBERS = 1 << 26  # bytes read at most from a file of numbers


def read_gap(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Read a length [m] that may be left out, in which case the next word is no number but, say, a MODEL."""
    try:
        gap = None if value is None else plain_number(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no gap in metres; give MODEL first, or --on-ground=0") from None
    return gap


def read_gravity(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """Read X,Y,Z [m/s²]."""
    if value is None:
        return None
    numbers = tuple(_number(word, "--gravity") for word in value.split(","))
    if len(numbers) != 3:
        raise click.BadParameter(f"got {len(numbers)} numbers, want 3: X,Y,Z")
    return numbers


def _named(name: str, help_text: str, metavar: str = "[JOINT=]VALUE") -> Any:
    return click.option(name, multiple=True, metavar=metavar, help=help_text)


RUN_OPTIONS = (
    click.option("--steps", type=Whole(1), default=1000, show_default=True, help="Number of time steps to simulate."),
    click.option("--duration", type=ABOVE_0, help="Simulated time [s], given instead of --steps."),
    click.option("--dt", type=ABOVE_0, help=f"Time step [s]; default: that of the model file, else {TIME_STEP}."),
    click.option("--every", type=Whole(1), default=1, show_default=True, help="Steps between two recorded rows."),
    click.option(
        "--gravity",
        callback=read_gravity,
        metavar="X,Y,Z",
        help="Gravitational acceleration [m/s²]; default: 0,0,-9.81.",
    ),
    click.option("--keyframe", metavar="NAME", default="", help="Keyframe of the model file to start from."),
    _named(
        "--q0",
        "Initial coordinate of a joint [rad, m, or with a suffix: 30deg]; V,V,… or a file gives those of all joints.",
        "JOINT=VALUE|FILE",
    ),
    _named(
        "--v0",
        "Initial velocity of a joint [rad/s, m/s]; V,V,… or a file gives those of all joints.",
        "JOINT=VALUE|FILE",
    ),
    _named(
        "--base-pose",
        "Position [m] and roll, pitch, yaw [rad] at which a free base starts; NAME is its joint or link.",
        "[NAME=]X,Y,Z[,R,P,Y]",
    ),
    click.option(
        "--on-ground",
        is_flag=False,
        flag_value="0",
        callback=read_gap,
        metavar="[GAP]",
        help="Start a free base so that its lowest shape is GAP [m] above the ground; after --q0. Default: 0.",
    ),
    _named("--activation", "Initial activation of an actuator with dynamics.", "ACTUATOR=VALUE"),
    _named(
        "--target",
        "Position target of a joint drive [rad, m]; needs gains. Also of a loop's drive, by its name.",
        "JOINT=VALUE|FILE",
    ),
    _named("--target-velocity", "Velocity target of a joint drive [rad/s, m/s].", "JOINT=VALUE|FILE"),
    _named(
        "--target-acceleration",
        "Acceleration that computed torque adds to its feedback [rad/s², m/s²].",
        "JOINT=VALUE|FILE",
    ),
    _named("--torque", "Constant joint force [N m, N].", "JOINT=VALUE|FILE"),
    _named(
        "--wrench",
        "Constant force [N] and torque [N m] on a link; LINK may contain *.",
        "LINK=FX,FY,FZ[,TX,TY,TZ]",
    ),
    _named(
        "--wrench-at",
        "Where the force of a wrench or push acts: the origin of the link (default), its centre of mass (com), or a "
        "point in its axes [m].",
        "[LINK=]origin|com|X,Y,Z",
    ),
    _named("--wrench-frame", "Axes of wrenches and pushes: the world's (default), or the link's.", "[LINK=]world|link"),
    _named(
        "--push",
        "Impulse [N s, N m s] on a link at a time [s]: a wrench that acts for one step.",
        "LINK=JX,JY,JZ[,LX,LY,LZ]@TIME",
    ),
    _named("--stiffness", "Stiffness of a joint drive [N m/rad, N/m]; without JOINT= that of all independent joints."),
    _named("--damping", "Damping of a joint drive [N m s/rad, N s/m]; without JOINT= that of all independent joints."),
    _named("--drive-limit", "Largest force of a joint drive [N m, N]; the joint's effort limit bounds it in any case."),
    _named(
        "--drive-mode",
        "What the drive gains produce: force (default), or acceleration (gains in 1/s² and 1/s).",
        f"[JOINT=]{'|'.join(DRIVE_MODES)}",
    ),
    _named(
        "--drive-limit-kind",
        "What --drive-limit bounds: force (default), or impulse per step [N m s, N s].",
        f"[JOINT=]{'|'.join(LIMIT_KINDS)}",
    ),
    _named("--joint-friction", "Coulomb friction of a joint instead of the file's [N m, N]."),
    _named("--armature", "Armature (rotor inertia) of a joint instead of the file's [kg m², kg]."),
    _named(
        "--friction-coefficient", "Friction coefficient of a joint: friction per load transmitted by the joint (PhysX)."
    ),
    _named(
        "--lower-limit",
        "Lower position limit of a joint, or of an axis of one (slab.x), instead of the file's [rad, m]. Equal to the "
        "upper limit it locks the axis.",
        "JOINT=VALUE",
    ),
    _named("--upper-limit", "Upper position limit of a joint or axis instead of the file's [rad, m].", "JOINT=VALUE"),
    _named(
        "--limit-stiffness",
        "Stiffness of the position limits of a joint or axis, which then give way as a spring does [N m/rad, N/m]; "
        "without it they are hard.",
    ),
    _named("--limit-damping", "Damping of limits that have a stiffness [N m s/rad, N s/m]."),
    _named(
        "--swing-limit",
        "Largest swing of a ball or free joint [rad, or with a suffix: 30deg], instead of the file's: the half angle "
        "of a cone, or two, about the axes y and z of the joint's frame (PhysX's swing1 and swing2).",
        "JOINT=ANGLE[,ANGLE]",
    ),
    _named(
        "--twist-limit",
        "Limits of a ball or free joint's twist about x [rad, or with a suffix: -30deg:30deg], instead of the file's.",
        "JOINT=LOWER:UPPER",
    ),
    _named(
        "--twist-axis",
        "Axis in a ball or free joint's frame about which it twists, instead of x; the axes of its swing turn with it.",
        "JOINT=x|y|z|X,Y,Z",
    ),
    _named(
        "--control",
        "Constant control of an actuator, or a .csv, .npz or .h5 file of inputs over time, whose columns are named "
        "ACTUATOR, JOINT.target, JOINT.velocity (or of a LOOP), JOINT.torque or LINK.fx, … LINK.tz (CSV from a "
        "pipe or -, too). "
        "FILE.h5:target=qpos,… takes variables of a run or a batch as target, velocity, torque or control.",
        "ACTUATOR=VALUE|FILE",
    ),
    click.option(
        "--interpolate",
        type=click.Choice(INTERPOLATIONS),
        default=HOLD,
        show_default=True,
        help="How the inputs of a --control file go from row to row: held until the next row, along straight lines, or "
        "along a cubic spline. All but hold store inputs for every step.",
    ),
    click.option(
        "--solver",
        type=click.Choice(list(SOLVERS)),
        default="newton",
        show_default=True,
        help="Constraint solver. newton: exact; pgs, tgs: projected and temporal Gauss-Seidel, in the order of the "
        "PhysX guide; block-gs: Gauss-Seidel joint by joint; jacobi: all rows at once from the velocities before; "
        "propagation, direct: newton by recursions over the tree in linear time, or over a graph of joints; brute: a "
        "dense matrix of all rows, to validate the others.",
    ),
    click.option(
        "--relaxation",
        type=Number(0, 1, min_open=True),
        default=1.0,
        show_default=True,
        help="Share of its correction that a row takes in an iteration of --solver jacobi.",
    ),
    click.option(
        "--mass-splitting/--no-mass-splitting",
        default=True,
        show_default=True,
        help="Whether rows of --solver jacobi that share bodies see shards of their mass, with which it converges; "
        "without, it may diverge and wants --relaxation.",
    ),
    click.option(
        "--iterations",
        type=Whole(1, MAX_ITERATIONS),
        default=64,
        show_default=True,
        help="Sweeps per step of the solvers pgs, tgs, block-gs and jacobi, which start from zero impulses as PhysX "
        "does.",
    ),
    click.option(
        "--velocity-iterations",
        type=Whole(0, MAX_ITERATIONS),
        default=0,
        show_default=True,
        help="Sweeps of pgs and tgs after those of --iterations, by whose velocities positions move: without "
        "correcting errors, for the velocities at the end of the step (PhysX's velocity iterations).",
    ),
    click.option(
        "--error-step",
        type=click.Choice(ERROR_STEPS),
        default="step",
        show_default=True,
        help="Time over which --solver tgs corrects an error in each of its sub-steps: that of the step, or the "
        "sub-step, at whose end nothing is left of it.",
    ),
    _named(
        "--coupling-erp",
        "Error reduction parameter: share of the error of couplings, loops, tendon equalities and violated limits that "
        "each step removes; with NAME= (a following joint or tendon, a loop, a pattern) that of these, which are then "
        "hard rows. Default: initial errors are removed over 0.1 s, errors left by a step in the next.",
        "[NAME=]SHARE",
    ),
    click.option(
        "--integrator",
        type=click.Choice(["auto", *INTEGRATORS]),
        default="auto",
        show_default=True,
        help="Integrator. midpoint: semi-implicit Euler with Coriolis and gyroscopic terms midway in the step; "
        "semi-implicit-euler: with these at the step's start, as MuJoCo's Euler; rk4. auto: rk4 where the file asks "
        "for it and no constraint is one-sided, else midpoint; semi-implicit-euler with sweeping solvers and in "
        "maximal coordinates.",
    ),
    click.option(
        "--coordinates",
        type=click.Choice(COORDINATES),
        default="reduced",
        show_default=True,
        help="Coordinates of the simulation. reduced: joint coordinates; maximal: six per body, with joints as "
        "constraints (slow, for cross-checks: contacts, tendons and actuators included).",
    ),
    click.option(
        "--scheme",
        type=click.Choice(SCHEMES),
        default="auto",
        show_default=True,
        help="How constraints are enforced. baumgarte (in maximal coordinates only): C̈ + α Ċ + β C = 0; implicit: by "
        "their values at the end of the step; auto: implicit.",
    ),
    click.option(
        "--scheme-alpha",
        type=Number(),
        help="α of the scheme. baumgarte: α [1/s], default 1/dt; implicit: weight of the force at the end of the step, "
        "default 1; in reduced coordinates that of springs and of what has a compliance, by default weighed as "
        "springs of joints are.",
    ),
    click.option(
        "--scheme-beta",
        type=Number(),
        help="β of the scheme. baumgarte: β [1/s²], default 1/dt²; implicit: weight of the velocity at the end of the "
        "step in the motion of positions, default 1 (with smaller ones motion gains energy, and in maximal coordinates "
        "joints drift apart).",
    ),
    _named(
        "--constraint-alpha",
        "Baumgarte's α of one constraint [1/s]: of what a joint holds and the coupling by which it follows, of a loop, "
        "of a tendon's equality.",
        "NAME=VALUE",
    ),
    _named("--constraint-beta", "Baumgarte's β of one constraint [1/s²].", "NAME=VALUE"),
    click.option(
        "--coupling",
        type=click.Choice(COUPLINGS),
        default="auto",
        show_default=True,
        help="How couplings (mimic joints, joint and tendon equalities) are enforced. exact: eliminated, or hard "
        "constraint rows for tendons and axes of ball joints; rows: hard constraint rows; compliant: springs; auto: "
        "exact unless the file makes them soft (MJCF solref). exact and rows also make loops hard.",
    ),
    _named(
        "--coupling-frequency",
        "Natural frequency of compliant couplings [Hz]; with JOINT= (or a tendon's name) only the couplings of these "
        "followers are compliant.",
        "[JOINT=]HZ",
    ),
    _named(
        "--compliance",
        "Compliance of a coupling, tendon equality or loop [rad/(N m), m/N], by its following joint or tendon, or the "
        "loop's name, or a pattern: force -(C + D Ċ) / compliance at an error C. 0: hard; inf: no constraint.",
        "NAME=COMPLIANCE",
    ),
    _named(
        "--compliance-damping",
        "Damping D [s] of --compliance, default 0: the time in which an error decays. For a damping coefficient b "
        "[N s/m, N m s/rad] give b times the compliance.",
        "NAME=SECONDS",
    ),
    _named("--coupling-ratio", "Ratio of a linear coupling instead of the file's.", "JOINT=RATIO"),
    _named("--coupling-offset", "Offset of a linear coupling instead of the file's [rad, m].", "JOINT=OFFSET"),
    _named("--coupling-damping", "Damping ratio of compliant couplings; default: 1.", "[JOINT=]RATIO"),
    click.option(
        "--contacts/--no-contacts",
        default=True,
        show_default=True,
        help="Whether contacts are simulated: with the ground if --ground is given, and between the robot's links and "
        "with its scene as the file says.",
    ),
    click.option(
        "--self-collide", is_flag=True, help="Let the links of a URDF collide with each other, except neighbours."
    ),
    click.option(
        "--decompose",
        is_flag=True,
        help="Decompose meshes into convex parts for collision where the convex hull has more than 1.2 times the "
        "volume of the mesh; needs artsim[decompose].",
    ),
    click.option(
        "--cone",
        type=click.Choice(CONES),
        default=CONES[0],
        show_default=True,
        help="Shape of the friction cone. A pyramid, MuJoCo's default, allows less friction between its axes than the "
        "cone of Coulomb's law.",
    ),
    click.option(
        "--continuous",
        is_flag=True,
        help="Detect contacts continuously, within each step too: a thin body that turns far in one step stops where "
        "it would pass through another body and loses the rest of the step's motion.",
    ),
    click.option(
        "--restitution",
        type=Number(0, 1),
        default=0.0,
        show_default=True,
        help="Coefficient of restitution of all contacts.",
    ),
    click.option(
        "--max-contacts",
        type=Whole(1),
        default=20_000,
        show_default=True,
        help="Largest number of simultaneous contacts; more of them stop the run.",
    ),
    click.option("--ground", is_flag=True, help="Add level ground that the robot's collision geometry can touch."),
    click.option(
        "--ground-friction",
        type=FROM_0,
        default=1.0,
        show_default=True,
        help="Coefficient of friction of the ground; a contact uses the larger of it and the geom's (1 where the file "
        "gives none).",
    ),
    click.option("--ground-height", type=Number(), default=0.0, show_default=True, help="Height of the ground [m]."),
    click.option("--velocity-limits", is_flag=True, help="Enforce the joints' velocity limits."),
    _named(
        "--link-damping", "Damping of a link's linear and angular velocity [1/s]; LINK may contain *.", "LINK=LIN,ANG"
    ),
    _named(
        "--link-velocity-limit",
        "Largest linear and angular velocity of a link [m/s, rad/s]; either may be left out.",
        "LINK=LIN,ANG",
    ),
    click.option(
        "--com-velocity-limit",
        metavar="LIN,ANG",
        help="Largest linear and angular velocity of the whole robot at its centre of mass [m/s, rad/s].",
    ),
    click.option(
        "--sleep-threshold",
        type=FROM_0,
        default=0.0,
        show_default=True,
        help="Kinetic energy per mass [m²/s²] below which a link counts as at rest (PhysX: 5e-5); 0: never sleep.",
    ),
    click.option(
        "--sleep-time",
        type=FROM_0,
        default=0.4,
        show_default=True,
        help="Time for which all links must be at rest before the robot sleeps [s].",
    ),
    click.option(
        "--seed",
        type=Whole(),
        default=0,
        show_default=True,
        help="Seed stored with the run, from which `artsim rollout` draws its samples.",
    ),
)

CONTROL_SUFFIXES = (".csv", ".npz", ".h5", ".hdf5")
_CHOSEN = {"drive_mode": DRIVE_MODES, "drive_limit_kind": LIMIT_KINDS}
_OF_MOTION = ("q0", "v0", "a0", "target", "target_velocity", "target_acceleration")
_OPTION_KINDS = {**KINDS, "a0": "dof"}
_BY_FOLLOWER = ("coupling_frequency", "coupling_damping", "coupling_ratio", "coupling_offset", "coupling_erp")
_COMPLIANT = ("compliance", "compliance_damping")


def _controller_option(choices: Sequence[str], more: str = "") -> Any:
    help_text = f"Built-in controller{more}."
    return click.option("--controller", default="none", show_default=True, metavar="|".join(choices), help=help_text)


def _record_option(known: Sequence[str]) -> Any:
    meaning = f"Variables to record; +NAME adds to the default. Known: {', '.join(known)}."
    return click.option("--record", "record", metavar="NAME,…", help=meaning)


OF_RUNS = (
    _controller_option(
        [*CONTROLLERS, "FILE.py:FUNCTION"], ", or a Python function(t, qpos, qvel) that returns joint forces (nv,)"
    ),
    _record_option(RECORDED),
)
"""The options of `artsim run` that `artsim rollout` has in another form."""
OF_ROLLOUTS = (_controller_option([*CONTROLLERS]), _record_option(ROLLOUT_RECORDED))


def run_options(command: Callable[..., R], of_this: Sequence[Any] = OF_RUNS) -> Callable[..., R]:
    """Add the options of a run; `run_config` makes the RunConfig of them."""
    for option in reversed((*RUN_OPTIONS, *of_this)):
        command = option(command)
    return command


def rollout_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of a run as rollouts have them."""
    return run_options(command, OF_ROLLOUTS)


def run_config(
    ctx: click.Context, options: Mapping[str, Any], stored: Mapping[str, Any], articulation: Articulation, **more: Any
) -> RunConfig:
    """Make the configuration: typed values (or ARTSIM_…) take precedence over `stored`, and these over the defaults.

    Raises UsageError for unknown names and wrong lengths.
    """
    values = dict(stored)
    if was_typed(ctx, "keyframe"):
        for name in ("q0", "v0", "control", "activation"):  # a stored start belongs to another keyframe
            values.pop(name, None)
    names = functools.cache(functools.partial(_names, articulation))
    known = [f.name for f in fields(RunConfig)]
    duration = _duration(ctx, options, values)
    for name in values:
        if name not in known:
            if name in {param.name for param in ctx.command.params} | {"package"}:
                raise SettingError(f"configuration: {name!r} is for the command line only", name)
            raise SettingError(f"configuration: {name!r} is not known{nearest(name, [*known, 'duration'])}", name)
    for name in KINDS.keys() & values.keys():
        values[name] = _stored_by_name(name, values[name], names)
    for name in TURNING.keys() & values.keys():
        if isinstance(values[name], Mapping):
            values[name] = {key: read_angles(name, entry) for key, entry in values[name].items()}
    for name, value in options.items():
        typed = was_typed(ctx, name)
        if name not in known or not (typed or name not in values):
            continue
        if name in RunConfig.__dataclass_fields__ and not typed and value == ():
            continue  # RunConfig has the default
        values[name] = _read_option(name, value, values.get(name), names)
    config = RunConfig.from_mapping({**values, **more})
    if (file := control_file(options.get("control", ()))) is not None:
        config = with_links(config, links_pushed(file, [link.name for link in articulation.links]))
    if was_typed(ctx, "coupling_frequency") and config.coupling != "compliant":
        raise UsageError(f"--coupling-frequency is for --coupling compliant, not {config.coupling!r}")
    if was_typed(ctx, "on_ground") and not config.contacts:
        raise UsageError("--on-ground looks for the ground among contacts, which --no-contacts leaves out")
    if was_typed(ctx, "ground") and config.ground and not config.contacts:
        raise UsageError("--ground is for contacts, which --no-contacts leaves out")
    for name in ("ground_friction", "ground_height"):
        if was_typed(ctx, name) and not config.ground:
            raise UsageError(f"--{name.replace('_', '-')} is for --ground")
    if duration is None:
        return config
    dt = config.dt or time_step(articulation)
    steps = duration / dt
    if not steps <= MAX_STEPS:
        raise UsageError(f"duration {duration:g} s is {steps:g} steps of {dt:g} s, more than {MAX_STEPS}")
    return replace(config, steps=max(1, round(steps)))


def was_typed(ctx: click.Context, name: str) -> bool:
    """True if an option was given on the command line or in the environment."""
    return ctx.get_parameter_source(name) not in (None, click.core.ParameterSource.DEFAULT)


def _duration(ctx: click.Context, options: Mapping[str, Any], values: dict[str, Any]) -> float | None:
    """The simulated time [s], typed or else stored (removed from `values`); typed steps override a stored duration."""
    if was_typed(ctx, "steps") and was_typed(ctx, "duration"):
        raise UsageError("give --steps or --duration, not both")
    stored: float | None = values.pop("duration", None)
    if stored is not None:
        if "steps" in values:
            raise UsageError("configuration: give steps or duration, not both")
        if isinstance(stored, bool) or not isinstance(stored, int | float) or not 0 < stored < math.inf:
            raise UsageError(f"duration is {stored!r}, want a finite number above 0")
    typed: float | None = options.get("duration")
    if typed is not None or was_typed(ctx, "steps"):
        return typed
    return stored


def _names(articulation: Articulation) -> dict[str, Names]:
    """The names after which values of this robot are given, by kind."""
    compiled = compile_model(articulation)
    return names_of(articulation, compiled.model, compiled.labels, labels_of(articulation))


def _stored_by_name(name: str, value: Any, names: Callable[[], Mapping[str, Names]]) -> Any:
    """A setting of a configuration file: one gain becomes that of all joints, texts with a unit become numbers."""
    if KINDS[name] in ("gain", "joint") and isinstance(value, int | float) and not isinstance(value, bool):
        return {ALL: float(value)}
    if not isinstance(value, Mapping) or name in _CHOSEN:
        return value
    found = dict(value)
    for entry, number in value.items():
        if isinstance(number, str):
            del found[entry]
            try:
                found |= _read_named(name, (f"{entry}={number}",), names()[KINDS[name]])
            except UsageError as error:
                raise SettingError(f"configuration: {str(error).removeprefix('--')}", name, entry) from None
    return found


def _read_option(name: str, value: Any, stored: Any, names: Callable[[], Mapping[str, Names]]) -> Any:
    """The value of a typed option, or its default, in the form of RunConfig; entries by name join the stored ones."""
    before = stored if isinstance(stored, Mapping) else {}
    if name in _CHOSEN:
        return _read_choices(name, value, stored, names()[KINDS[name]])
    if name in KINDS:
        if not isinstance({} if stored is None else stored, Mapping):
            raise SettingError(f"{name} is {stored!r}, want numbers by name", name)
        return {**before, **_read_named(name, value, names()[KINDS[name]])}
    if name in _BY_FOLLOWER:
        return _read_by_follower(name, value, stored)
    if name in _COMPLIANT:
        return {**before, **_read_compliances(name, value)}
    if name == "wrench":
        return {**before, **dict(map(_read_wrench, value))}
    if name in ("wrench_at", "wrench_frame"):
        return _read_texts(value, stored)
    if name == "push":
        return tuple(value)
    if name in TURNING:
        return {**before, **_read_turning(name, value, names()[TURNED])}
    if name == "base_pose":
        return {**before, **dict(map(read_base_pose, value))}
    if name in ("link_damping", "link_velocity_limit"):
        return {**before, **_read_pairs(name, value)}
    if name == "com_velocity_limit":
        return None if value is None else _read_pair("--com-velocity-limit", value)
    if name == "record":
        return DEFAULT_RECORD if value is None else _read_record(value, stored or DEFAULT_RECORD)
    return value


def _read_turning(option: str, words: Sequence[str], names: Names) -> dict[str, tuple[float, ...]]:
    """Read JOINT=… words about swing and twist by the joints' names."""
    flag, given = f"--{option.replace('_', '-')}", {}
    for word in words:
        name, equals, text = word.rpartition("=")
        if not equals:
            raise UsageError(f"{flag}: got {word!r}, want JOINT={TURNING_WORDS[option]}")
        given[name] = read_angles(option, text, f"{flag} {name}")
    return by_name(option, given, names)


def _read_record(text: str, default: Sequence[str]) -> tuple[str, ...]:
    names = record_names([name.strip() for name in text.split(",") if name.strip()], default)
    for name in names:
        if name not in RECORDED:
            raise UsageError(f"--record: {name!r} is not known{nearest(name, RECORDED)}")
    return names


def _read_choices(option: str, words: Sequence[str], stored: Any, names: Names) -> Any:
    """Read [JOINT=]CHOICE words: one choice for all, or choices by joint."""
    flag = f"--{option.replace('_', '-')}"
    known, alone = _CHOSEN[option], [word for word in words if "=" not in word]
    chosen = dict(word.rpartition("=")[::2] for word in words if "=" in word)
    for choice in (*alone, *chosen.values()):
        if choice not in known:
            raise UsageError(f"{flag}: {choice!r} is not known{nearest(choice, known)}")
    if not chosen:
        return alone[-1]
    before = stored if isinstance(stored, Mapping) else {} if stored is None else {ALL: stored}
    return {**before, **({ALL: alone[-1]} if alone else {}), **by_name(option, chosen, names, keep={ALL})}


def _read_by_follower(option: str, words: Sequence[str], stored: Any) -> float | dict[str, float]:
    """Read [JOINT=]NUMBER words: one number for all, or numbers by follower."""
    flag = f"--{option.replace('_', '-')}"
    pairs = [word.rpartition("=") for word in words]
    numbers = {name or ALL: _number(number, f"{flag} {name}".rstrip()) for name, _, number in pairs}
    if numbers.keys() == {ALL}:
        return numbers[ALL]
    before = {ALL: stored} if option == "coupling_erp" and isinstance(stored, int | float) else stored
    return {**(before if isinstance(before, Mapping) else {}), **numbers}


def _read_compliances(option: str, words: Sequence[str]) -> dict[str, float]:
    """Read NAME=NUMBER words; a compliance may be inf."""
    flag, found = f"--{option.replace('_', '-')}", {}
    for word in (pair for given in words for pair in pairs_of(given)):
        name, equals, number = word.rpartition("=")
        if not equals:
            raise UsageError(f"{flag}: got {word!r}, want NAME={number}")
        without = option == "compliance" and number.strip() == "inf"
        found[name] = math.inf if without else _number(number, f"{flag} {name}")
    return found


def read_by_name(option: str, words: tuple[str, ...], articulation: Articulation) -> dict[str, float]:
    """Read JOINT=VALUE words, lists or files of one option for this robot. Raises UsageError."""
    return _read_named(option, words, _names(articulation)[_OPTION_KINDS[option]]) if words else {}


def read_wrenches(words: Sequence[str], links: Sequence[str]) -> Array:
    """Read LINK=FX,FY,FZ[,TX,TY,TZ] words as (links, 6) [N, N m]; those of a link add up, those of a pattern act on
    each that it matches. Raises UsageError."""
    import numpy as np

    wrenches = np.zeros((len(links), 6))
    for name, numbers in map(_read_wrench, words):
        for link in matching_links([name], links, "--wrench"):
            wrenches[links.index(link), : len(numbers)] += numbers
    return wrenches


def _read_wrench(word: str) -> tuple[str, tuple[float, ...]]:
    """Read LINK=FX,FY,FZ[,TX,TY,TZ]."""
    name, _, text = word.rpartition("=")
    parts = text.split(",")
    if not name or len(parts) not in (3, 6):
        raise UsageError(f"--wrench: got {word!r}, want LINK=FX,FY,FZ or LINK=FX,FY,FZ,TX,TY,TZ")
    return name, tuple(_number(part, f"--wrench {name}") for part in parts)


def _read_texts(words: Sequence[str], stored: Any) -> str | dict[str, str]:
    """Read [LINK=]TEXT words: one for all links, or texts by link and, as "", that of all others."""
    found = {name: text for name, _, text in (word.rpartition("=") for word in words)}
    if found.keys() == {""}:
        return found[""]
    return {**(stored if isinstance(stored, Mapping) else {} if stored is None else {"": stored}), **found}


def read_base_pose(word: str) -> tuple[str, tuple[float, ...]]:
    """Read [NAME=]X,Y,Z[,R,P,Y], angles in rad or with the suffix deg."""
    name, _, text = word.rpartition("=")
    parts = text.split(",")
    if len(parts) not in (3, 6):
        raise UsageError(f"--base-pose: {text!r} has {len(parts)} numbers, want X,Y,Z or X,Y,Z,ROLL,PITCH,YAW")
    if any(part.strip().endswith(DEGREES) for part in parts[:3]):
        raise UsageError(f"--base-pose: {text!r}: X,Y,Z are in metres")
    return name, tuple(_number(part, "--base-pose", "rad") for part in parts)


def control_file(words: Sequence[str]) -> str | None:
    """The value of --control that is a file, or None. Raises UsageError for more than one."""
    files = control_files(words)
    if len(files) > 1:
        raise UsageError(f"--control: {len(files)} files, want one")
    return files[0] if files else None


def control_files(words: Sequence[str]) -> list[str]:
    """The values of --control that are files."""
    return [
        word
        for word in words
        if Path(word).suffix.lower() in CONTROL_SUFFIXES
        or word == "-"
        or word.startswith(STREAMS)
        or is_file(word)
        or variables_named(word) is not None
    ]


def _read_named(option: str, words: tuple[str, ...], names: Names) -> dict[str, float]:
    """Read JOINT=VALUE, where JOINT may be a pattern, a list or file of numbers, or (gains) one number for all.

    Later words override earlier ones, names override patterns. The "*" of gains stays.
    """
    flag, one_for_all = f"--{option.replace('_', '-')}", _OPTION_KINDS[option] in ("gain", "joint")
    if option == "control":
        words = tuple(word for word in words if word not in control_files(words))
    exact: dict[str, float] = {}
    by_pattern: dict[str, float] = {}
    for word in (pair for given in words for pair in pairs_of(given, names.known)):
        name, equals, number = word.rpartition("=")
        if equals and name in names.known:
            exact[name] = _number(number, f"{flag} {name}", _units(option, names).get(name, ""))
        elif equals and one_for_all and name == ALL:
            by_pattern[ALL] = _number(number, flag)
        elif equals:
            by_pattern |= _read_pattern(flag, name, number, names._replace(units=_units(option, names)))
        elif one_for_all and "," not in word and not is_file(word):
            by_pattern[ALL] = _number(word, flag)
        else:
            exact |= _read_vector(flag, word, option, names)
    return {**by_pattern, **exact}


def pairs_of(word: str, known: Collection[str] = ()) -> list[str]:
    """The JOINT=VALUE words of JOINT=VALUE,JOINT=VALUE,…; any other word, or one whose name is known, as it is."""
    parts = word.split(",")
    several = len(parts) > 1 and all("=" in part for part in parts)
    return parts if several and word.rpartition("=")[0] not in known else [word]


def _read_pattern(flag: str, pattern: str, number: str, names: Names) -> dict[str, float]:
    """The value by the names that a pattern matches; of a value in degrees, by the joints among them that turn."""
    matches = matching(pattern, names)
    if number.endswith(DEGREES) and matches:
        matches = [name for name in matches if "rad" in names.units.get(name, "")]
        if not matches:
            raise UsageError(f"{flag}: {pattern!r} matches no joint that turns, for {number}")
    if not matches:
        raise UsageError(f"{flag}: {unmatched(pattern, names)}")
    return dict.fromkeys(matches, _number(number, f"{flag} {pattern}", "rad"))


def _read_pairs(option: str, words: Sequence[str]) -> dict[str, tuple[float | None, ...]]:
    """Read LINK=LIN,ANG words; later ones override earlier ones."""
    flag = f"--{option.replace('_', '-')}"
    pairs = {}
    for word in words:
        name, equals, numbers = word.rpartition("=")
        if not equals:
            raise UsageError(f"{flag}: got {word!r}, want LINK=LIN,ANG")
        pairs[name] = _read_pair(f"{flag} {name}", numbers)
    return pairs


def _read_pair(what: str, text: str) -> tuple[float | None, ...]:
    """Read LIN,ANG; either may be left out."""
    parts = text.split(",")
    if len(parts) != 2:
        raise UsageError(f"{what}: got {text!r}, want two numbers LIN,ANG")
    return tuple(_number(part, what) if part.strip() else None for part in parts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _is_number(text: str) -> bool:
    try:
        angle_or_number(text)
    except ValueError:
        return False
    return True


def _number(word: str, what: str, unit: str = "") -> float:
    """A finite number; with the suffix deg, an angle in rad."""
    text = word.strip()
    angle = text.endswith(DEGREES)
    if angle and "rad" not in unit:
        raise UsageError(f"{what}: {word!r} is an angle, want {unit or 'a number'}")
    try:
        value = angle_or_number(text)
    except ValueError:
        raise UsageError(f"{what}: {word!r} is not a number") from None
    if not math.isfinite(value):
        raise UsageError(f"{what}: {word} is not finite")
    return value


def _read_vector(flag: str, word: str, option: str, names: Names) -> dict[str, float]:
    """A list or file of numbers by name, in the model's order: of all names, or of those that follow no other."""
    numbers, known = _numbers_of(flag, word), names.known
    if len(numbers) != len(known):
        if len(numbers) != len(names.independent):
            for text in numbers:
                if not _is_number(text):
                    raise UsageError(f"{flag}: {text[:80]!r} is neither NAME=VALUE, nor a number or a file")
            count = "1 number" if len(numbers) == 1 else f"{len(numbers)} numbers"
            raise UsageError(f"{flag}: got {count}, want {_wanted(len(numbers), option, names)}")
        known = names.independent
    units = _units(option, names)
    pairs = zip(known, numbers, strict=True)
    return {name: _number(text, f"{flag} {name}", units.get(name, "")) for name, text in pairs}


def _units(option: str, names: Names) -> Mapping[str, str]:
    """The units of coordinates and velocities by name; other values are in no unit that can be chosen."""
    return names.units if option in _OF_MOTION else {}


def _wanted(given: int, option: str, names: Names) -> str:
    """How many numbers a list may have, of what, and what may have been meant."""
    known, free = names.known, names.independent
    counts = f"{len(known)}" if len(known) == len(free) else f"{len(known)} (or {len(free)} without followers)"
    hint = ""
    of_base = {"q0": 7}.get(option, 6)
    if names.noun == "a joint" and given == len(known) + of_base:
        hint = f"; {of_base} more are those of a floating base (--base floating)"
    elif names.noun == "a joint" and option != "q0" and given == len(known) + 1:
        hint = "; velocities and forces of a floating base are 6, its coordinates 7"
    return f"{counts}: {_listed(known)}{hint}"


def _numbers_of(flag: str, word: str) -> list[str]:
    path = Path(word)
    if not is_file(word):
        if path.suffix in (".npy", ".csv", ".txt"):
            raise UsageError(f"{flag}: file {word!r} does not exist")
        return word.split(",")
    if path.suffix == ".npy":
        import numpy as np

        try:
            vector = np.load(io.BytesIO(read_input(path, _MOST_NUMBERS)), allow_pickle=False)
            if vector.dtype.kind not in "fiu":
                raise TypeError(f"{vector.dtype}")
            return [repr(float(x)) for x in vector.ravel()]
        except ArtsimError:
            raise
        except (ValueError, TypeError, OSError) as error:
            raise UsageError(f"{flag}: {word}: not a .npy file of numbers ({error})") from None
    try:
        text = read_input(path, _MOST_NUMBERS).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{flag}: cannot read {word}: {error}") from None
    return text.replace(",", " ").split()
