"""`artsim run`: simulate a robot and write the result to an HDF5 file.

The command reads its options and the model, has io/runs/run.py simulate and record, and prints the summary.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from artsim.cli.config_file import Stored, read_config
from artsim.cli.grouped import GroupedCommand
from artsim.cli.numbers import Whole
from artsim.cli.options import reading_words
from artsim.cli.progress import caught_signals, storage_errors
from artsim.cli.run_controller import resumed_controller, typed_controller
from artsim.cli.run_options import GROUPS, run_config, run_options, was_typed
from artsim.cli.run_output import Destination, Report, large_output, output_options
from artsim.cli.run_pictures import Pictures, picture_options
from artsim.cli.run_summary import refuse_overlaps, refused, sentences, summary_of
from artsim.cli.scene_options import (
    SceneOptions,
    input_files,
    load_models,
    models_argument,
    scene_options,
    without_arguments,
)
from artsim.cli.terminal import warn, warn_of_model
from artsim.cli.words import control_file
from artsim.io.runs.effort_tally import EffortTally
from artsim.io.runs.prepare import clamped_controls, held_controls, late_controls, plan_controls, prepare
from artsim.io.runs.progress import progress_bar, warm
from artsim.io.runs.provenance import provenance
from artsim.io.runs.run import Outcome
from artsim.io.runs.run import run as simulate
from artsim.io.runs.starts import start_notes
from artsim.loaders.load import load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import StoppedError, UsageError, printable
from artsim.sim.geometry.solids import with_pieces
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.reading import OF_MODEL
from artsim.sim.runs.simulate import ControllerFunction, Simulation

_INPUTS = (
    "control",
    "controller",
    "torque",
    "target",
    "target_velocity",
    "target_acceleration",
    "wrench",
    "wrench_at",
    "wrench_frame",
    "push",
)


@click.command(
    cls=GroupedCommand,
    groups=GROUPS,
    short_help="Simulate a robot and write the result to an HDF5 file.",
    context_settings={"auto_envvar_prefix": "ARTSIM"},
)
@models_argument(required=False)
@run_options
@scene_options
@output_options
@picture_options
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Configuration that other options override: a TOML file (- for standard input), or an output of `artsim run`, "
    "which is run again.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run file to continue, in FILE or as --output: one that was killed or interrupted, or is given more --steps.",
)
@click.option(
    "--threads",
    type=Whole(1, 1024),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of threads. They solve groups of bodies that do not touch each other side by side; the result does "
    "not depend on their number.",
)
@click.option(
    "--converge",
    is_flag=True,
    help="Simulate with half and a quarter of the time step as well, and print for every coordinate its error, its "
    "order of convergence, and the limit or contact after which it does not converge. No file is written.",
)
@click.pass_context
def run(
    ctx: click.Context,
    /,
    models: tuple[str, ...],
    config: Path | None,
    resume: Path | None,
    threads: int,
    converge: bool,
    scene: SceneOptions,
    to: Destination,
    report: Report,
    pictures: Pictures,
    **options: Any,
) -> None:
    """Simulate MODEL (URDF, MJCF or SDF, or - for standard input), or several in one scene.

    A MODEL may also be a robot shipped with artsim (arm7) or one of robot_descriptions that is in its cache
    (panda_description). With --xacro, NAME:=VALUE sets an argument of its macros.

    In a scene, names begin with that of their model, which is its file name without suffix: arm/elbow, box/root.z.
    Values are given by joint name (--q0 elbow=0.5), vectors in the model's order in a file. The summary goes to stderr.
    Every option can also be set as ARTSIM_<NAME> in the environment.
    """
    report = report._replace(strict=bool(scene.load["strict"]))
    if converge and (to.output is not None or resume is not None or pictures.files):
        raise UsageError("--converge writes no run: it is not for --output, --html, --plot and --resume")
    if resume is not None:
        _resume(ctx, resume, to, report, options, threads)
        return
    stored = read_config(config)
    if not without_arguments(models)[0]:
        models = (*stored.models, *models)
    if not models and stored.text is None:
        raise UsageError("give a MODEL, or --config with an output of `artsim run`")
    inputs_of_run = (*input_files(models, scene), None if config is None else str(config))
    to.check(*inputs_of_run)
    pictures.check(to, *inputs_of_run)
    articulation = _load(ctx, models, stored, scene)
    more = scene.recorded(articulation)
    with stored.located(ctx):
        plan = prepare(articulation, run_config(ctx, options, stored.values, articulation, **more))
    inputs = functools.partial(
        _inputs, ctx, file=control_file(options["control"]), stored=None if stored.text is None else config
    )
    controls, controller = inputs(plan)
    if not report.quiet:
        acting = controls or held_controls(plan)
        notes = [*clamped_controls(plan, acting), *late_controls(plan, acting), *plan.notes]
        warn(notes, all_of_them=report.verbose, more="--verbose shows them")
        warn_of_model(articulation.notes, models, reading_words(scene.load), all_of_them=report.verbose)
    # Ctrl-C still ends the process here, before there is an output
    start = _ready(plan, controls, report)
    if converge:
        _converge(plan, articulation, inputs, report)
        return
    if to.output is not None and not report.quiet and (told := large_output(plan, to)):
        click.echo(told, err=True)
    tally = EffortTally(plan)
    drawn: dict[str, int] = {}
    with pictures.kept(to) as place:
        with caught_signals() as caught:
            outcome = _simulate(plan, controls, controller, place, report, caught, threads, tally)
        if pictures.files and place.output is not None:
            drawn = pictures.draw(place.output, articulation, quiet=report.quiet)
    _finish(outcome, to.output, report, caught, start, tally.at_limit, drawn)


def _converge(
    plan: Plan,
    articulation: Articulation,
    inputs: Callable[[Plan], tuple[Controls | None, ControllerFunction | None]],
    report: Report,
) -> None:
    """Print the convergence of the run."""
    from artsim.cli.run_convergence import print_convergence
    from artsim.io.runs.convergence import Inputs, converge

    def make(config: RunConfig) -> tuple[Plan, Inputs]:
        made = prepare(articulation, config)
        return made, inputs(made)

    print_convergence(converge(plan, make), plan.config.steps, as_json=report.as_json)


def _load(ctx: click.Context, models: Sequence[str], stored: Stored, scene: SceneOptions) -> Articulation:
    """The models, or the one that an output stored, read as the options say, else as the configuration does."""
    for name in OF_MODEL:
        if not was_typed(ctx, name) and name in stored.values:
            scene.load[name] = stored.values[name]
    base = scene.load["base"]
    if base not in ("fixed", "floating"):
        raise UsageError(f"configuration: base is {base!r}, want 'fixed' or 'floating'")
    if "base" in stored.values:
        scene.bases.setdefault("", base)
    if models:
        return load_models(models, scene)
    if not scene.is_plain:
        raise UsageError("--place, --srdf, --loops and --base NAME=… are about models that are given, not stored ones")
    assert stored.text is not None
    options = scene.load | {"meshes": False, "xacro": False}  # no meshes are at hand, its macros are expanded
    return with_pieces(load_text(stored.text, name="<stored model>", **options), stored.kept)


def _inputs(
    ctx: click.Context, plan: Plan, file: str | None, stored: Path | None
) -> tuple[Controls | None, ControllerFunction | None]:
    """The inputs over time and the Python controller. Those of `stored`, an output that is run again, act as they did,
    unless others are typed; its Python code is not run again.
    """
    controls = None if file is None else plan_controls(plan, file)
    if stored is not None and not any(was_typed(ctx, name) for name in _INPUTS):
        return plan_controls(plan, stored, stored=True), None
    return controls, typed_controller(ctx, plan.config)


def _ready(plan: Plan, controls: Controls | None, report: Report) -> list[str]:
    """Have the kernels ready, and return the notes on the start. Raises StoppedError for one, and for pairs left out
    of contact, with --strict."""
    if report.strict:
        refuse_overlaps(plan)
    if not plan.config.is_maximal:  # maximal ones need no kernels
        with contextlib.redirect_stderr(io.StringIO() if report.quiet else sys.stderr):  # that something is compiled
            warm((entry, 1) for entry in plan.entries)
    start = start_notes(plan, controls) if report.as_json or report.strict or not report.quiet else []
    if start and report.strict:
        raise StoppedError(f"not started (--strict): {start[0]}")
    if not report.quiet:
        warn(start, all_of_them=True)
    return start


def _simulate(
    plan: Plan,
    controls: Controls | None,
    controller: ControllerFunction | None,
    to: Destination,
    report: Report,
    caught: list[int],
    threads: int,
    tally: EffortTally,
) -> Outcome:
    show = not report.quiet
    with progress_bar("simulating", plan.config.steps, unit="steps", show=show) as advance, storage_errors():
        return simulate(
            plan,
            controls=controls,
            controller=controller,
            **to._asdict(),
            provenance=_provenance(threads),
            progress=Watch(advance, caught, report.strict),
            threads=threads,
            on_block=tally,
        )


def _provenance(threads: int) -> dict[str, str | int | float]:
    return {**provenance(" ".join(sys.argv[1:])), "threads": threads}


@dataclass
class Watch:
    """Called after every block: moves the bar and ends the run on a signal or, with --strict, on a wrong result."""

    advance: Callable[[int], None]
    caught: list[int]
    strict: bool = False

    def __call__(self, simulation: Simulation) -> bool:
        self.advance(simulation.step)
        return self.signalled() or (self.strict and bool(refused(simulation)))

    def signalled(self) -> bool:
        """True if a signal asked the run to end."""
        return bool(self.caught)


_WITH_RESUME = {"resume", "steps", "output", "force", "controller", "strict", "as_json", "quiet", "verbose", "threads"}


def _refuse_beside_resume(ctx: click.Context) -> None:
    """Raise UsageError for options that would change the resumed run, whose configuration is that in its file."""
    for param in ctx.command.params:
        if param.name and param.name not in _WITH_RESUME and was_typed(ctx, param.name):
            what = param.opts[0] if param.opts[0].startswith("-") else "a MODEL"
            raise UsageError(f"{what} is not for --resume, which goes on with the run as its file has it")


def _resume(
    ctx: click.Context, path: Path, to: Destination, report: Report, options: Mapping[str, Any], threads: int
) -> None:
    """Continue a stored run."""
    from artsim.io.runs.resume import resume as resume_run
    from artsim.loaders.stored import load_stored

    _refuse_beside_resume(ctx)
    steps = options["steps"] if was_typed(ctx, "steps") else None
    with caught_signals() as caught:
        to.check(str(path))
        controller = resumed_controller(ctx, options["controller"])
        with progress_bar("simulating", steps or 0, unit="steps", show=not report.quiet) as advance, storage_errors():
            outcome = resume_run(
                path,
                load_stored,
                steps=steps,
                output=to.output,
                controller=controller,
                provenance=_provenance(threads),
                force=to.force,
                progress=Watch(advance, caught, report.strict),
                threads=threads,
            )
        if outcome is None:
            click.echo(printable(f"{path}: has all its steps"), err=True)
        else:
            _finish(outcome, to.output or path, report, caught)


def _finish(
    outcome: Outcome,
    output: Path | None,
    report: Report,
    caught: list[int],
    start: Sequence[str] = (),
    at_effort: Mapping[str, float] = {},
    drawn: Mapping[str, int] = {},
) -> None:
    """Print the summary and exit with the exit code of the run. `start`: the notes on the initial state; `at_effort`:
    the times for which motors gave their largest forces [s]; `drawn`: sizes of pictures [bytes]."""
    summary = summary_of(outcome, output) | {"start": [*start], "at_effort": {**at_effort}, "pictures": {**drawn}}
    interrupted = bool(caught) and outcome.simulation.step < outcome.simulation.plan.config.steps
    checked = report.strict and not interrupted and not outcome.simulation.stop_reason
    reason = refused(outcome.simulation) if checked else ""
    if report.as_json:
        click.echo(json.dumps(summary))
    elif not report.quiet:
        for line in sentences(summary, verbose=report.verbose):
            if not reason or line != f"warning: {reason}":  # which is the last line anyway
                click.echo(printable(line), err=True)
    if interrupted:
        if output is not None and not report.quiet:
            click.echo(f"interrupted; artsim run --resume {printable(str(output))} goes on", err=True)
        if outcome.simulation.left_alone:  # an abandoned step still runs, on arrays that must stay until the end
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(128 + caught[0])
        raise SystemExit(128 + caught[0])
    outcome.simulation.check()
    if reason:
        raise StoppedError(f"stopped (--strict): {reason}")
