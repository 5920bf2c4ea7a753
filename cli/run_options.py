"""The options that make a RunConfig: names and numbers as typed, files of numbers, and their precedence."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from artsim.cli.options import is_file, read_input
from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import compile_model
from artsim.sim.equipment.equip import labels_of
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.run_data.run_records import RECORDED
from artsim.sim.runs.configuration import (
    CONES,
    CONTROLLERS,
    COORDINATES,
    COUPLINGS,
    DEFAULT_RECORD,
    MAX_ITERATIONS,
    MAX_STEPS,
    SCHEMES,
    RunConfig,
)
from artsim.sim.runs.plan import TIME_STEP, time_step

R = TypeVar("R")
_MOST_NUMBERS = 1 << 26  # bytes of a file of numbers


def finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """A finite number above 0, or nothing."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter(f"{value:g} is not a finite number above 0")
    return value


def read_gravity(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """X,Y,Z."""
    if value is None:
        return None
    numbers = tuple(_number(word, "--gravity") for word in value.split(","))
    if len(numbers) != 3:
        raise click.BadParameter(f"got {len(numbers)} numbers, want 3: X,Y,Z")
    return numbers


def _named(name: str, help_text: str, metavar: str = "[JOINT=]VALUE") -> Any:
    return click.option(name, multiple=True, metavar=metavar, help=help_text)


RUN_OPTIONS = (
    click.option("--steps", type=click.IntRange(min=1), default=1000, show_default=True, help="Steps to take."),
    click.option("--duration", type=float, callback=finite, help="Time to simulate [s], instead of --steps."),
    click.option("--dt", type=float, callback=finite, help=f"Time step [s]; default: the file's, else {TIME_STEP}."),
    click.option(
        "--every", type=click.IntRange(min=1), default=1, show_default=True, help="Record every this many steps."
    ),
    click.option("--gravity", callback=read_gravity, metavar="X,Y,Z", help="Gravity [m/s²]; default: 0,0,-9.81."),
    click.option("--keyframe", metavar="NAME", default="", help="Start from this keyframe of the file."),
    _named(
        "--q0", "Start coordinate of a joint [rad, m]; V,V,… or a file gives those of all joints.", "JOINT=VALUE|FILE"
    ),
    _named(
        "--v0", "Start velocity of a joint [rad/s, m/s]; V,V,… or a file gives those of all joints.", "JOINT=VALUE|FILE"
    ),
    _named("--activation", "Start state of an actuator with dynamics.", "ACTUATOR=VALUE"),
    _named("--target", "Position target of a drive [rad, m]; needs gains.", "JOINT=VALUE|FILE"),
    _named("--target-velocity", "Velocity target of a drive [rad/s, m/s].", "JOINT=VALUE|FILE"),
    _named("--torque", "Constant joint force [N m, N].", "JOINT=VALUE|FILE"),
    _named("--stiffness", "Drive stiffness [N m/rad, N/m], of one joint or of all that follow no other."),
    _named("--damping", "Drive damping [N m s/rad, N s/m]."),
    _named("--drive-limit", "Largest drive force [N m, N]; the joint's effort always bounds it."),
    click.option(
        "--drive-mode",
        type=click.Choice(["force", "acceleration"]),
        default="force",
        show_default=True,
        help="Whether gains give a force, or an acceleration [1/s², 1/s].",
    ),
    click.option(
        "--drive-limit-kind",
        type=click.Choice(["force", "impulse"]),
        default="force",
        show_default=True,
        help="Whether --drive-limit is a force or an impulse per step [N m s, N s].",
    ),
    _named("--friction-coefficient", "Joint friction as this times the load in the joint (PhysX)."),
    _named(
        "--control",
        "Control of an actuator; or inputs over time: .csv, .npz or .h5 with the names of actuators, joint.target, "
        "joint.velocity, joint.torque.",
        "ACTUATOR=VALUE|FILE",
    ),
    click.option(
        "--controller",
        default="none",
        show_default=True,
        metavar="|".join([*CONTROLLERS, "FILE.py:FUNCTION"]),
        help="Built-in controller, or function(t, qpos, qvel) -> forces (nv,).",
    ),
    click.option(
        "--solver",
        type=click.Choice(list(SOLVERS)),
        default="newton",
        show_default=True,
        help="newton: exact; pgs, tgs: Gauss-Seidel and its temporal kind, in the order of the PhysX guide; "
        "block-gs: Gauss-Seidel joint by joint; propagation, direct: newton over recursions in the tree, in linear "
        "time, or over a graph of joints.",
    ),
    click.option(
        "--iterations",
        type=click.IntRange(1, MAX_ITERATIONS),
        default=64,
        show_default=True,
        help="Sweeps per step of pgs, tgs and block-gs. They start from no impulse, as PhysX does.",
    ),
    click.option(
        "--coupling-erp",
        type=click.FloatRange(min=0, max=1),
        default=0.0,
        help="Share of the error of couplings, loops, tendon equalities and violated limits that a step takes back. "
        "Default: over a tenth of a second, what a step leaves by itself at once.",
    ),
    click.option(
        "--integrator",
        type=click.Choice(["auto", *INTEGRATORS]),
        default="auto",
        show_default=True,
        help="auto: rk4 where the file wants it and nothing needs rows that push one way, else semi-implicit-euler.",
    ),
    click.option(
        "--coordinates",
        type=click.Choice(COORDINATES),
        default="reduced",
        show_default=True,
        help="reduced: joint coordinates; maximal: six for every body, joints as constraints (slow, for cross-checks).",
    ),
    click.option(
        "--scheme",
        type=click.Choice(SCHEMES),
        default="auto",
        show_default=True,
        help="How maximal coordinates hold constraints: baumgarte, C̈ + α Ċ + β C = 0, or implicit, C = 0 at the "
        "step's end; auto is implicit.",
    ),
    click.option(
        "--scheme-alpha",
        type=float,
        help="α: baumgarte [1/s], default 1/dt; implicit: share of the force that is the step's end, default 1.",
    ),
    click.option(
        "--scheme-beta",
        type=float,
        help="β: baumgarte [1/s²], default 1/dt²; implicit: share of the velocity that is the step's end, default 1 "
        "(below it joints are not held well).",
    ),
    click.option(
        "--coupling",
        type=click.Choice(COUPLINGS),
        default="auto",
        show_default=True,
        help="Mimic joints, equalities of joints and of tendons: auto is exact unless the file says how soft (MJCF "
        "solref); exact: eliminated (of tendons: hard rows); rows: hard constraint rows (both hold loops hard, too); "
        "compliant: springs.",
    ),
    click.option(
        "--coupling-frequency",
        type=float,
        callback=finite,
        help="Natural frequency of couplings that are compliant [Hz].",
    ),
    click.option(
        "--coupling-damping",
        type=float,
        default=1.0,
        show_default=True,
        help="Damping ratio of couplings that are compliant.",
    ),
    click.option(
        "--contacts/--no-contacts",
        default=True,
        show_default=True,
        help="Whether anything touches: the ground with --ground, and the robot itself and its scene as the file says.",
    ),
    click.option(
        "--self-collide", is_flag=True, help="Links of a URDF touch each other, neighbours excepted; otherwise none do."
    ),
    click.option(
        "--decompose",
        is_flag=True,
        help="Meshes whose convex hulls are more than 1.2 times as large as they are collide as convex parts, not as "
        "their hulls; needs artsim[decompose].",
    ),
    click.option(
        "--cone",
        type=click.Choice(CONES),
        default=CONES[0],
        show_default=True,
        help="Shape of the friction cones. A pyramid, MuJoCo's default, holds less between its axes than the cone of "
        "Coulomb's law.",
    ),
    click.option(
        "--continuous",
        is_flag=True,
        help="Look between the start and the end of each step, too: a thin body that turns far in a step stops "
        "where it would pass through another one, and loses the rest of the step's motion.",
    ),
    click.option(
        "--restitution",
        type=click.FloatRange(0, 1),
        default=0.0,
        show_default=True,
        help="Coefficient of restitution of all contacts.",
    ),
    click.option(
        "--max-contacts",
        type=click.IntRange(min=1),
        default=20_000,
        show_default=True,
        help="Contacts at once; more stop the run.",
    ),
    click.option("--ground", is_flag=True, help="Level ground, which the robot's collision geometry touches."),
    click.option(
        "--ground-friction",
        type=click.FloatRange(min=0),
        default=1.0,
        show_default=True,
        help="Coefficient of friction of the ground; of it and that of a geom (1 where the file has none) the larger "
        "counts.",
    ),
    click.option("--ground-height", type=float, default=0.0, show_default=True, help="Height of the ground [m]."),
    click.option("--velocity-limits", is_flag=True, help="Enforce the joints' velocity limits."),
    _named("--link-damping", "Damping of a link's linear and angular velocity [1/s]; * matches names.", "LINK=LIN,ANG"),
    _named(
        "--link-velocity-limit", "Largest velocities of a link [m/s, rad/s]; either may be left out.", "LINK=LIN,ANG"
    ),
    click.option(
        "--com-velocity-limit", metavar="LIN,ANG", help="Largest velocities of the whole robot's centre of mass."
    ),
    click.option(
        "--sleep-threshold",
        type=float,
        default=0.0,
        show_default=True,
        help="Kinetic energy per mass [m²/s²] below which a link is still (PhysX: 5e-5); 0: the robot never sleeps.",
    ),
    click.option(
        "--sleep-time",
        type=float,
        default=0.4,
        show_default=True,
        help="How long all links are still before the robot sleeps [s].",
    ),
    click.option(
        "--record",
        "record",
        metavar="NAME,…",
        help=f"What to record, or +NAME to add to the default. Known: {', '.join(RECORDED)}.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Stored with the run."),
)

CONTROL_SUFFIXES = (".csv", ".npz", ".h5", ".hdf5")
_NAMES = {
    "q0": "coord",
    "v0": "dof",
    "target": "dof",
    "target_velocity": "dof",
    "torque": "dof",
    "stiffness": "gain",
    "damping": "gain",
    "drive_limit": "gain",
    "friction_coefficient": "gain",
    "control": "actuator",
    "activation": "state",
}


def run_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of a run; `run_config` makes the RunConfig of them."""
    for option in reversed(RUN_OPTIONS):
        command = option(command)
    return command


def run_config(
    ctx: click.Context, options: Mapping[str, Any], stored: Mapping[str, Any], articulation: Articulation, **more: Any
) -> RunConfig:
    """The configuration: what was typed (or set in ARTSIM_…), before `stored`, before the defaults.

    Raises UsageError for unknown names and wrong lengths.
    """
    values = dict(stored)
    if was_typed(ctx, "keyframe"):
        for name in ("q0", "v0", "control", "activation"):  # a stored start is that of another keyframe
            values.pop(name, None)
    labels, equipment = compile_model(articulation).labels, labels_of(articulation)
    names = {
        "coord": labels.coords,
        "dof": labels.dofs,
        "gain": labels.dofs,
        "actuator": equipment.controls,
        "state": equipment.activations,
    }
    known = [f.name for f in fields(RunConfig)]
    duration = _duration(ctx, options, values)
    for name in values:
        if name not in known:
            if name in {param.name for param in ctx.command.params} | {"package"}:
                raise UsageError(f"configuration: {name!r} is for the command line only")
            raise UsageError(f"configuration: {name!r} is not known{nearest(name, [*known, 'duration'])}")
    for name, kind in _NAMES.items():
        if kind == "gain" and isinstance(values.get(name), int | float) and not isinstance(values[name], bool):
            values[name] = {"*": float(values[name])}
    for name, value in options.items():
        typed = was_typed(ctx, name)
        if name not in known or not (typed or name not in values):
            continue
        if name in _NAMES:
            if not isinstance(values.get(name, {}), Mapping):
                raise UsageError(f"{name} is {values[name]!r}, want numbers by name")
            values[name] = {**values.get(name, {}), **_read_named(name, value, names[_NAMES[name]])}
        elif name in ("link_damping", "link_velocity_limit"):
            values[name] = {**values.get(name, {}), **_read_pairs(name, value)}
        elif name == "com_velocity_limit":
            values[name] = None if value is None else _read_pair("--com-velocity-limit", value)
        elif name == "record":
            values[name] = _read_record(value)
        else:
            values[name] = value
    config = RunConfig.from_mapping({**values, **more})
    if was_typed(ctx, "coupling_frequency") and config.coupling != "compliant":
        raise UsageError(f"--coupling-frequency is for --coupling compliant, not {config.coupling!r}")
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
    """True for an option given on the command line or in the environment."""
    return ctx.get_parameter_source(name) not in (None, click.core.ParameterSource.DEFAULT)


def _duration(ctx: click.Context, options: Mapping[str, Any], values: dict[str, Any]) -> float | None:
    """The time to simulate, typed or else stored (it leaves `values`); typed steps win over a stored duration."""
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


def _read_record(text: str | None) -> tuple[str, ...]:
    if text is None:
        return DEFAULT_RECORD
    names = [name.strip() for name in text.split(",") if name.strip()]
    added = [name.removeprefix("+") for name in names]
    if any(name.startswith("+") for name in names):
        added = [*DEFAULT_RECORD, *added]
    for name in added:
        if name not in RECORDED:
            raise UsageError(f"--record: {name!r} is not known{nearest(name, RECORDED)}")
    return tuple(name for name in RECORDED if name in added)  # the file's order


def control_file(words: Sequence[str]) -> str | None:
    """The one of --control's values that is a file. Raises UsageError for two."""
    files = control_files(words)
    if len(files) > 1:
        raise UsageError(f"--control: {len(files)} files, want one")
    return files[0] if files else None


def control_files(words: Sequence[str]) -> list[str]:
    """Those of --control's values that are files."""
    return [word for word in words if Path(word).suffix.lower() in CONTROL_SUFFIXES or is_file(word)]


def _read_named(option: str, words: tuple[str, ...], names: Sequence[str]) -> dict[str, float]:
    """JOINT=VALUE, a list of numbers, a file of them, or (gains) one number for all; later ones win."""
    flag = f"--{option.replace('_', '-')}"
    what = {"control": "an actuator", "activation": "an actuator state"}.get(option, "a joint")
    if option == "control":
        words = tuple(word for word in words if word not in control_files(words))
    values: dict[str, float] = {}
    for word in words:
        name, equals, number = word.rpartition("=")
        if equals:
            if name not in names:
                raise UsageError(f"{flag}: {name!r} is not {what} of this robot{nearest(name, names)}")
            values[name] = _number(number, f"{flag} {name}")
        elif _NAMES[option] == "gain" and "," not in word and not is_file(word):
            values["*"] = _number(word, flag)
        else:
            vector = _read_vector(flag, word)
            if len(vector) != len(names):
                raise UsageError(f"{flag}: got {len(vector)} numbers, want {len(names)}: {_listed(names)}")
            values.update(zip(names, vector, strict=True))
    return values


def _read_pairs(option: str, words: Sequence[str]) -> dict[str, tuple[float | None, ...]]:
    """LINK=LIN,ANG; later ones win."""
    flag = f"--{option.replace('_', '-')}"
    pairs = {}
    for word in words:
        name, equals, numbers = word.rpartition("=")
        if not equals:
            raise UsageError(f"{flag}: got {word!r}, want LINK=LIN,ANG")
        pairs[name] = _read_pair(f"{flag} {name}", numbers)
    return pairs


def _read_pair(what: str, text: str) -> tuple[float | None, ...]:
    """LIN,ANG; either may be left out."""
    parts = text.split(",")
    if len(parts) != 2:
        raise UsageError(f"{what}: got {text!r}, want two numbers LIN,ANG")
    return tuple(_number(part, what) if part.strip() else None for part in parts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _number(word: str, what: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise UsageError(f"{what}: {word!r} is not a number") from None
    if not math.isfinite(value):
        raise UsageError(f"{what}: {word} is not finite")
    return value


def _read_vector(flag: str, word: str) -> list[float]:
    path = Path(word)
    if not is_file(word):
        if path.suffix in (".npy", ".csv", ".txt"):
            raise UsageError(f"{flag}: file {word!r} does not exist")
        return [_number(part, flag) for part in word.split(",")]
    if path.suffix == ".npy":
        import numpy as np

        try:
            vector = np.load(io.BytesIO(read_input(path, _MOST_NUMBERS)), allow_pickle=False)
            if vector.dtype.kind not in "fiu":
                raise TypeError(f"{vector.dtype}")
            return [_number(str(float(x)), flag) for x in vector.ravel()]
        except (ValueError, TypeError, OSError) as error:
            raise UsageError(f"{flag}: {word}: not a .npy file of numbers ({error})") from None
    try:
        text = read_input(path, _MOST_NUMBERS).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{flag}: cannot read {word}: {error}") from None
    return [_number(part, f"{flag} {word}") for part in text.replace(",", " ").split()]
