"""`artsim linearize`: linear models of a robot about a state, of its motion and of one step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from artsim.cli.grouped import GroupedCommand, Groups
from artsim.cli.numbers import ABOVE_0, number_of
from artsim.cli.options import reading_words, refuse_own_input
from artsim.cli.run_options import GROUPS as OF_RUN
from artsim.cli.run_options import run_config, run_options
from artsim.cli.scene_options import SceneOptions, input_files, load_models, models_argument, scene_options
from artsim.cli.tables import aligned, matrix_lines
from artsim.cli.terminal import warn, warn_of_model
from artsim.cli.words import control_file
from artsim.io.runs.linear_models import arrays_of, check_name, of_plan, outputs_of, save
from artsim.io.runs.prepare import prepare
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import UsageError, printable
from artsim.sim.foundation.records import Array
from artsim.sim.runs.linear_system import LinearSystem
from artsim.sim.runs.linearization import LinearModel
from artsim.sim.runs.step_derivatives import STEP

R = TypeVar("R")

_OF_STEPS = ("steps", "duration", "every", "record", "push", "interpolate", "seed", "sensor_noise", "config")
"""Options of a run over many steps."""
GROUPS: Groups = {
    "Linear model": ("inputs", "at", "trim", "hold_contacts", "lqr", "step", "output", "force", "as_json", "quiet"),
    **{
        name: tuple(option for option in options if option not in _OF_STEPS)
        for name, options in OF_RUN.items()
        if name not in ("Samples", "Output", "Speed")
    },
}
"""The options of each group, in the order of the help."""


def of_state(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of a run that tell its state and forces."""
    return run_options(command, without=_OF_STEPS)


def _words(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(word.strip() for word in value.split(",") if word.strip())


def _weights(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, float] | None:
    """Read Q,R."""
    if value is None:
        return None
    numbers = tuple(number_of(word, "--lqr") for word in value.split(","))
    if len(numbers) != 2:
        raise click.BadParameter(f"got {len(numbers)} numbers, want 2: Q,R")
    return numbers[0], numbers[1]


@click.command(
    cls=GroupedCommand,
    groups=GROUPS,
    short_help="Find linear models of a robot about a state.",
    context_settings={"auto_envvar_prefix": "ARTSIM"},
)
@models_argument()
@of_state
@scene_options
@click.option(
    "--inputs",
    metavar="NAME[:ENTRY],…",
    callback=_words,
    help="The inputs u: torque, target, target_velocity, target_acceleration, control, or some of their entries "
    "(torque:*_knee); default: controls of actuators, else targets of drives with a stiffness, else torques.",
)
@click.option("--at", metavar="FILE[:ROW]", help="The state in a row of a run's file, by default the last.")
@click.option("--trim", is_flag=True, help="Look for a state at rest nearby, and the inputs that keep it there.")
@click.option(
    "--hold-contacts/--no-hold-contacts",
    default=True,
    show_default=True,
    help="Whether contacts that press at the state stay where they are in the continuous model, which has none "
    "otherwise.",
)
@click.option(
    "--lqr",
    metavar="Q,R",
    callback=_weights,
    help="Weights of all states and of all inputs: also find the gains of linear-quadratic regulators.",
)
@click.option("--step", type=ABOVE_0, default=STEP, show_default=True, help="Step of differences [rad, m, rad/s, m/s].")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write: .npz, .mat or .h5, with all names."
)
@click.option("--force", is_flag=True, help="Overwrite the output file.")
@click.option("--json", "as_json", is_flag=True, help="Print the models as one JSON object on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings.")
@click.pass_context
def linearize(
    ctx: click.Context,
    /,
    models: tuple[str, ...],
    scene: SceneOptions,
    inputs: tuple[str, ...] | None,
    at: str | None,
    trim: bool,
    hold_contacts: bool,
    lqr: tuple[float, float] | None,
    step: float,
    output: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Linearise MODEL, or several in a scene, about a state: ẋ = A x + B u, x⁺ = A x + B u after a step, y = C x + D u.

    The state is that in which `artsim run` would start (--q0, --v0, --keyframe, …), or a row of a run (--at). x are
    changes of the coordinates of independent joints (of rotations in the body's axes), their velocities and
    activations; y those of sensors, without any x itself. In continuous time loops are closed and contacts held
    rigidly, and x leaves out joints that these determine; a step has the engine's own law.
    """
    if output is not None:
        refuse_own_input(output, *input_files(models, scene))
        check_name(output, force=force)
    if control_file(options["control"]) is not None:
        raise UsageError("linearize: --control FILE gives inputs over time; give ACTUATOR=VALUE")
    articulation = load_models(models, scene)
    given = {} if at is None else _state_of(at, articulation)
    more = {**scene.recorded(articulation), "record": outputs_of(articulation), "steps": 1}
    config = run_config(ctx, options, given, articulation, **more)
    if config.is_python:
        raise UsageError("linearize: a Python controller has no linear model")
    plan = prepare(articulation, config)
    found = of_plan(plan, inputs, trim=trim, hold_contacts=hold_contacts, step=step)
    gains: tuple[Array | None, Array | None] = (None, None)
    if lqr is not None:
        gains = found.continuous.lqr(*lqr)[0], found.discrete.lqr(*lqr)[0]
    if not quiet:
        warn([*plan.notes, *found.notes])
        warn_of_model(articulation.notes, models, reading_words(scene.load))
    if output is not None:
        save(found, output, gains, force=force)
    if as_json:
        arrays = arrays_of(found, gains)
        click.echo(json.dumps({name: np.asarray(values).tolist() for name, values in arrays.items()}))
    else:
        for line in _lines(found, gains):
            click.echo(printable(line))


def _state_of(at: str, articulation: Articulation) -> dict[str, Any]:
    """The settings that start from a row of a run's file. Raises UsageError."""
    from artsim.io.readers.open_output import open_output
    from artsim.io.readers.recording import Recording

    path, _, row = at.rpartition(":") if at.rpartition(":")[2].lstrip("-").isdigit() else (at, "", "-1")
    with open_output(path) as run:
        if not isinstance(run, Recording):
            raise UsageError(f"--at {path}: want the output of `artsim run`")
        if not -run.n_valid <= int(row) < run.n_valid:
            raise UsageError(f"--at {at}: the run has rows 0 to {run.n_valid - 1}")
        labels = run.labels
        given = {
            "q0": dict(zip(labels.coord, run["qpos"][int(row)].tolist(), strict=True)),
            "v0": dict(zip(labels.dof, run["qvel"][int(row)].tolist(), strict=True)),
        }
        if labels.actuator_state and "activation" in run:
            given["activation"] = dict(zip(labels.actuator_state, run["activation"][int(row)].tolist(), strict=True))
    return given


def _lines(model: LinearModel, gains: tuple[Array | None, Array | None]) -> list[str]:
    """Both models as lines: poles, matrices and gains."""
    lines = ["the state"]
    lines += aligned([(name, f"{value:.8g}") for name, value in zip(model.continuous.inputs, model.u, strict=True)])
    for system, gain in zip((model.continuous, model.discrete), gains, strict=True):
        lines += ["", f"a step of {system.dt:g} s" if system.dt else "continuous"]
        lines += _system(system)
        if gain is not None:
            lines += ["K", *matrix_lines(system.inputs, system.states, gain)]
    return lines


def _system(system: LinearSystem) -> list[str]:
    lines = ["poles", *("  " + _pole(complex(pole), system.dt) for pole in system.poles)]
    lines += ["A", *matrix_lines(system.states, system.states, system.A)]
    lines += ["B", *matrix_lines(system.states, system.inputs, system.B)] if system.inputs else []
    if system.outputs != system.states:
        lines += ["C", *matrix_lines(system.outputs, system.states, system.C)]
        lines += ["D", *matrix_lines(system.outputs, system.inputs, system.D)] if system.inputs else []
    return lines


def _pole(pole: complex, dt: float) -> str:
    """A pole, its frequency and damping."""
    rate = complex(np.log(pole)) / dt if dt and pole else pole
    size = abs(rate)
    told = f"{pole.real:.6g}" + (f" {'+' if pole.imag > 0 else '-'} {abs(pole.imag):.6g} j" if pole.imag else "")
    if pole.imag and size > 0:
        told += f"  ({size / (2 * np.pi):.4g} Hz, damping {-rate.real / size:.3g})"
    return told
