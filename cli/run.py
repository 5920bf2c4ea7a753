"""`artsim run`: simulate a robot and write the result to an HDF5 file.

The command reads its options and the model, has io/runs/run.py simulate and record, and prints the summary.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from artsim.cli.config_file import Stored, read_config
from artsim.cli.depths import describe_depth
from artsim.cli.grouped import GroupedCommand
from artsim.cli.numbers import Whole
from artsim.cli.options import LoadOptions, is_file, reading_words, refuse_own_input
from artsim.cli.progress import caught_signals, storage_errors
from artsim.cli.run_options import GROUPS, run_config, run_options, was_typed
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
from artsim.io.exports.formats import check_run_name
from artsim.io.format import schema
from artsim.io.output_file.claim import check_output
from artsim.io.runs.prepare import clamped_controls, held_controls, late_controls, plan_controls, prepare
from artsim.io.runs.progress import progress_bar, warm
from artsim.io.runs.provenance import provenance
from artsim.io.runs.run import Outcome
from artsim.io.runs.run import run as simulate
from artsim.io.runs.starts import start_notes
from artsim.loaders.load import load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import MissingInputError, StoppedError, UsageError, printable
from artsim.sim.geometry.contacts import first_room
from artsim.sim.geometry.solids import with_pieces
from artsim.sim.runs.account import SUNK_FAR
from artsim.sim.runs.compliances import is_without_effect
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.reading import OF_MODEL
from artsim.sim.runs.simulate import ControllerFunction, Simulation

_FAR = 1e-3  # m or rad: loops that came open by more are reported
_EXCLUDE = "an SRDF, or <exclude> in MJCF, takes such pairs out"
_MORE_EXACT = "a smaller --dt helps, or --iterations where the solver sweeps"
_SMALLER = "a smaller --dt helps"
_RESIDUAL = 1e-6  # rad/s or m/s: larger residuals of the solver are reported
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
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="HDF5 file to write; without it only the summary is printed.",
)
@click.option("--force", is_flag=True, help="Overwrite the output file.")
@click.option(
    "--compress",
    type=click.Choice(["none", "gzip", "zstd"]),
    default="none",
    show_default=True,
    help="Compression of the recorded rows in the output file.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Configuration that other options override: a TOML file (- for standard input), or an output of `artsim run`, "
    "which is run again.",
)
@click.option(
    "--checkpoint",
    type=Whole(0),
    help="Steps between checkpoints, which store the whole state for --resume; 0: none. Default: 10000, or more where "
    "states are large beside the rows, so that they take a hundredth of the file.",
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
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Print neither the summary nor warnings.")
@click.option("-v", "--verbose", is_flag=True, help="Print more about the run.")
@click.pass_context
def run(
    ctx: click.Context,
    /,
    models: tuple[str, ...],
    output: Path | None,
    force: bool,
    compress: str,
    config: Path | None,
    checkpoint: int | None,
    resume: Path | None,
    threads: int,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    scene: SceneOptions,
    **options: Any,
) -> None:
    """Simulate MODEL (URDF, MJCF or SDF, or - for standard input), or several in one scene.

    A MODEL may also be a robot shipped with artsim (arm7) or one of robot_descriptions that is in its cache
    (panda_description). With --xacro, NAME:=VALUE sets an argument of its macros.

    In a scene, names begin with that of their model, which is its file name without suffix: arm/elbow, box/root.z.
    Values are given by joint name (--q0 elbow=0.5), vectors in the model's order in a file. The summary goes to stderr.
    Every option can also be set as ARTSIM_<NAME> in the environment.
    """
    if resume is not None:
        _refuse_beside_resume(ctx)
        with caught_signals() as caught:
            how = {"as_json": as_json, "quiet": quiet, "verbose": verbose, "strict": bool(scene.load["strict"])}
            _resume(resume, output, options, force, caught, threads=threads, **how)
        return
    stored = read_config(config)
    if not without_arguments(models)[0]:
        models = (*stored.models, *models)
    if not models and stored.text is None:
        raise UsageError("give a MODEL, or --config with an output of `artsim run`")
    if output is not None:
        refuse_own_input(output, *input_files(models, scene), None if config is None else str(config))
        check_run_name(output)
        check_output(output, force=force)
    for name in OF_MODEL:
        if not was_typed(ctx, name) and name in stored.values:
            scene.load[name] = stored.values[name]
    base = scene.load["base"]
    if base not in ("fixed", "floating"):
        raise UsageError(f"configuration: base is {base!r}, want 'fixed' or 'floating'")
    if "base" in stored.values:
        scene.bases.setdefault("", base)
    if not models and not scene.is_plain:
        raise UsageError("--place, --srdf, --loops and --base NAME=… are about models that are given, not stored ones")
    articulation = load_models(models, scene) if models else _load_stored(stored, scene.load)
    more = scene.recorded(articulation)
    with stored.located(ctx):
        plan = prepare(articulation, run_config(ctx, options, stored.values, articulation, **more))
    controls: Controls | None = None
    controller: ControllerFunction | None = None
    file = control_file(options["control"])
    if file is not None:
        controls = plan_controls(plan, file)
    if stored.text is not None and not any(was_typed(ctx, name) for name in _INPUTS):
        assert config is not None
        controls = plan_controls(plan, config, stored=True)  # as they acted; the Python code is not run again
    else:
        controller = _typed_controller(ctx, plan.config)
    if not quiet:
        acting = controls or held_controls(plan)
        notes = [*clamped_controls(plan, acting), *late_controls(plan, acting), *plan.notes]
        warn(notes, all_of_them=verbose, more="--verbose shows them")
        warn_of_model(articulation.notes, models, reading_words(scene.load), all_of_them=verbose)
    # Ctrl-C still ends the process here, before there is an output
    if not plan.config.is_maximal:  # maximal ones need no kernels
        with contextlib.redirect_stderr(io.StringIO() if quiet else sys.stderr):  # that something is compiled
            warm((entry, 1) for entry in plan.entries)
    strict = scene.load["strict"]
    start = start_notes(plan, controls) if as_json or strict or not quiet else []
    if start and strict:
        raise StoppedError(f"not started (--strict): {start[0]}")
    if not quiet:
        warn(start, all_of_them=True)
    with caught_signals() as caught:
        outcome = _simulate(
            plan,
            controls,
            controller,
            output,
            compress,
            checkpoint,
            force,
            caught,
            show=not quiet,
            strict=strict,
            threads=threads,
        )
    _finish(outcome, output, caught, as_json=as_json, quiet=quiet, verbose=verbose, strict=strict, start=start)


def _load_stored(stored: Stored, load_options: LoadOptions) -> Articulation:
    assert stored.text is not None
    options = load_options | {
        "meshes": False,
        "xacro": False,
    }  # its meshes are not available, its macros already expanded
    return with_pieces(load_text(stored.text, name="<stored model>", **options), stored.kept)


def _typed_controller(ctx: click.Context, config: RunConfig) -> ControllerFunction | None:
    """Load the Python controller of a run, if it has one.

    Raises UsageError for a controller that was not typed on the command line: neither a file from somebody else nor the
    environment may choose what code runs here.
    """
    if not config.is_python:
        return None
    if ctx.get_parameter_source("controller") != click.core.ParameterSource.COMMANDLINE:
        raise UsageError(
            f"controller {config.controller!r} is not run: Python controllers run only when typed on the command line; "
            f"look at the file, then give --controller {config.controller}, or another --controller"
        )
    return _python_controller(config.controller)


def _python_controller(words: str) -> ControllerFunction:
    """Load FILE.py:FUNCTION. Raises MissingInputError, UsageError."""
    import runpy

    path, _, name = words.rpartition(":")
    if not is_file(path):
        raise MissingInputError(f"--controller: {path}: no such file")
    sys.path.insert(
        0, str(Path(path).resolve().parent)
    )  # so that it can import modules beside it, as when Python runs it
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is the result's
            scope = runpy.run_path(path)
    except (Exception, SystemExit) as error:
        raise UsageError(f"--controller: {path}: {type(error).__name__}: {error}") from error
    if not callable(scope.get(name)):
        raise UsageError(f"--controller: {path} has no function {name!r}")
    function = scope[name]

    def ask(t: float, qpos: Any, qvel: Any) -> Any:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                return function(t, qpos, qvel)
        except (Exception, SystemExit) as error:
            raise UsageError(f"--controller: {name} at t = {t:.6g} s: {type(error).__name__}: {error}") from error

    return ask


def _simulate(
    plan: Plan,
    controls: Controls | None,
    controller: ControllerFunction | None,
    output: Path | None,
    compress: str,
    checkpoint: int | None,
    force: bool,
    caught: list[int],
    *,
    show: bool,
    strict: bool,
    threads: int,
) -> Outcome:
    with progress_bar("simulating", plan.config.steps, unit="steps", show=show) as advance, storage_errors():
        return simulate(
            plan,
            controls=controls,
            controller=controller,
            output=output,
            compress=compress,
            checkpoint=checkpoint,
            force=force,
            provenance={**provenance(" ".join(sys.argv[1:])), "threads": threads},
            progress=Watch(advance, caught, strict),
            threads=threads,
        )


@dataclass
class Watch:
    """Called after every block: moves the bar and ends the run on a signal or, with --strict, on a wrong result."""

    advance: Callable[[int], None]
    caught: list[int]
    strict: bool = False

    def __call__(self, simulation: Simulation) -> bool:
        self.advance(simulation.step)
        return self.signalled() or (self.strict and bool(_refused(simulation)))

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
    path: Path,
    output: Path | None,
    options: Mapping[str, Any],
    force: bool,
    caught: list[int],
    *,
    threads: int,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    strict: bool,
) -> None:
    """Continue a stored run; `strict` has the meaning that it has in `_simulate` and `_finish`."""
    from artsim.io.runs.resume import resume as resume_run
    from artsim.loaders.stored import load_stored

    ctx = click.get_current_context()
    steps = options["steps"] if was_typed(ctx, "steps") else None
    if output is not None:
        refuse_own_input(output, str(path))
        check_run_name(output)
        check_output(output, force=force)
    controller = _resumed_controller(ctx, options["controller"])
    with progress_bar("simulating", steps or 0, unit="steps", show=not quiet) as advance, storage_errors():
        outcome = resume_run(
            path,
            load_stored,
            steps=steps,
            output=output,
            controller=controller,
            provenance={**provenance(" ".join(sys.argv[1:])), "threads": threads},
            force=force,
            progress=Watch(advance, caught, strict),
            threads=threads,
        )
    if outcome is None:
        click.echo(printable(f"{path}: has all its steps"), err=True)
        return
    _finish(outcome, output or path, caught, as_json=as_json, quiet=quiet, verbose=verbose, strict=strict)


def _resumed_controller(ctx: click.Context, words: str) -> ControllerFunction | None:
    """Load the Python controller typed beside --resume; one set in the environment is not run."""
    typed = ctx.get_parameter_source("controller") == click.core.ParameterSource.COMMANDLINE
    if typed and ".py:" not in words:
        raise UsageError(f"--controller {words}: --resume takes the Python function that controlled the run")
    return _python_controller(words) if typed else None


def _finish(
    outcome: Outcome,
    output: Path | None,
    caught: list[int],
    *,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    strict: bool = False,
    start: Sequence[str] = (),
) -> None:
    """Print the summary and exit with the exit code of the run.

    `strict`: a wrong result is an error; `start`: the notes on the initial state.
    """
    summary = _summary(outcome, output) | {"start": [*start]}
    interrupted = bool(caught) and outcome.simulation.step < outcome.simulation.plan.config.steps
    checked = strict and not interrupted and not outcome.simulation.stop_reason
    refused = _refused(outcome.simulation) if checked else ""
    if as_json:
        click.echo(json.dumps(summary))
    elif not quiet:
        for line in _describe(summary, verbose=verbose):
            if not refused or line != f"warning: {refused}":  # which is the last line anyway
                click.echo(printable(line), err=True)
    if interrupted:
        if outcome.simulation.left_alone:  # an abandoned step still runs, on arrays that must stay until the end
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(128 + caught[0])
        raise SystemExit(128 + caught[0])
    outcome.simulation.check()
    if refused:
        raise StoppedError(f"stopped (--strict): {refused}")


def _refused(simulation: Simulation) -> str:
    """Why --strict ends the run (excess energy, contacts that yielded far, unsolved steps), or an empty string."""
    excess, residual = _excess(simulation), simulation.worst_residual
    if excess is not None:
        return _describe_excess(excess)
    held, opened = _held_inside(simulation), _opened(simulation)
    if held is not None:
        return _describe_held(held)
    if opened is not None:
        return _describe_opened(opened)
    if _gives_way_far(simulation):
        return _describe_yielding(_yielding(simulation) or {})
    unsolved = f"{_describe_residual(residual, simulation.unsolved_steps)}; {_MORE_EXACT}"
    return unsolved if not residual <= _RESIDUAL else ""


def _gives_way_far(simulation: Simulation) -> bool:
    """True if a hard contact got deeper by more than SUNK_FAR of a shape's thickness."""
    found = simulation.gave_way
    return found is not None and found[3] > SUNK_FAR


def _yielding(simulation: Simulation) -> dict[str, Any] | None:
    """Where hard contacts got deepest, or None."""
    found = simulation.gave_way
    return None if found is None else dict(zip(("link_a", "link_b", "depth", "share"), found, strict=True))


def _describe_yielding(where: Mapping[str, Any]) -> str:
    depth = describe_depth(where["depth"], where["share"], where["link_a"], where["link_b"])
    return f"hard contacts got deeper than at the start: {depth}"


def _describe_residual(residual: float | None, steps: int) -> str:
    return f"the solver left up to {residual or float('inf'):.3g} rad/s or m/s unsolved in {steps} steps"


def _summary(outcome: Outcome, output: Path | None) -> dict[str, Any]:
    simulation, seconds = outcome.simulation, outcome.seconds
    config, articulation = simulation.plan.config, simulation.plan.robot.articulation
    start, end = map(_number, simulation.energy)
    if outcome.status == schema.NON_FINITE:
        end = None
    return {
        "steps": simulation.step,
        "time": simulation.time,
        "seconds": seconds,
        "steps_per_second": simulation.step / seconds if seconds > 0 else 0.0,
        "times_real_time": simulation.time / seconds if seconds > 0 else 0.0,
        "energy": [start, end],
        "energy_excess": _excess(simulation),
        "coupling": config.coupling,
        "couplings": sum(not is_without_effect(c.follower, config) for c in articulation.couplings),
        "coupling_rows": len(simulation.plan.robot.model.row_follower) + len(simulation.plan.robot.model.axis_dof),
        "worst_coupling_error": simulation.coupling_error,
        "tendon_equalities": sum(not is_without_effect(c.follower, config) for c in articulation.tendon_couplings),
        "worst_tendon_error": simulation.tendon_error,
        "worst_solver_residual": _number(simulation.worst_residual),
        "unsolved_steps": simulation.unsolved_steps,
        "worst_loop_gap": simulation.loop_gap,
        "loops_opened": _opened(simulation),
        "joint_gap": simulation.joint_gap,
        "contacts": _contacts(simulation),
        "limit_steps": simulation.limit_steps,
        "status": outcome.status,
        "warnings": [*simulation.plan.notes, *map(str, simulation.plan.robot.articulation.notes)],
        "output": None if output is None else str(output),
        "bytes": output.stat().st_size if output is not None and output.exists() else None,
    }


def _excess(simulation: Simulation) -> dict[str, Any] | None:
    """Energy that nothing can have given, or None."""
    found = simulation.energy_excess
    return None if found is None else found._asdict()


def _opened(simulation: Simulation) -> dict[str, Any] | None:
    """By how much a hard loop came open, if a user may not overlook it."""
    for (gap, loop), unit in zip(simulation.loops_opened or (), ("m", "rad"), strict=False):
        if gap > _FAR:
            return {"loop": loop, "gap": gap, "unit": unit}
    return None


def _describe_opened(opened: Mapping[str, Any]) -> str:
    """A sentence on it."""
    return f"loop {opened['loop']!r} came open by {opened['gap']:.3g} {opened['unit']} during the run; {_SMALLER}"


def _contacts(simulation: Simulation) -> dict[str, Any] | None:
    """The largest number of contacts in a step, the deepest [m] and the room for contacts; None without contacts."""
    touching = simulation.plan.touching
    if touching is None:
        return None
    most, deepest = simulation.contact_extremes
    rooms = {"room": simulation.room, "first_room": first_room(touching)}
    steps = {"eased_steps": simulation.eased_steps, "left_inside_steps": simulation.left_inside_steps}
    yielding = {"gave_way": _yielding(simulation), "gave_way_far": _gives_way_far(simulation)}
    yielding |= {"held_inside": _held_inside(simulation)}
    return {"most": most, "deepest": deepest, **steps, **yielding, **rooms}


def _held_inside(simulation: Simulation) -> dict[str, Any] | None:
    """The contacts that hard loops hold inside, or None."""
    found = simulation.held_inside
    return None if found is None else dict(zip(("steps", "depth", "link_a", "link_b", "loop"), found, strict=True))


def _describe_held(held: Mapping[str, Any]) -> str:
    pair = f"{held['link_a']!r} and {held['link_b']!r} up to {held['depth']:.3g} m inside each other"
    left_out = f"their contact was left out in {held['steps']} steps"
    return f"loop {held['loop']!r} holds {pair}: {left_out}; {_EXCLUDE}"


def _number(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def _describe(summary: Mapping[str, Any], *, verbose: bool) -> list[str]:
    lines = [
        f"{summary['steps']} steps, {summary['time']:.6g} s simulated in {summary['seconds']:.3g} s: "
        f"{summary['steps_per_second']:,.0f} steps/s, {summary['times_real_time']:.3g} times real time"
    ]
    start, end = summary["energy"]
    if start is not None and end is not None:
        lines.append(f"energy {start:.6g} J at the start, {end:.6g} J at the end ({end - start:+.3g} J)")
    if summary["energy_excess"] is not None:
        lines.append(f"warning: {_describe_excess(summary['energy_excess'])}")
    if summary["couplings"]:
        how = f"{summary['worst_coupling_error']:.3g}" if summary["coupling_rows"] else "exact, by elimination"
        lines.append(f"worst coupling error: {how}")
    if summary["worst_loop_gap"] is not None:
        lines.append("loops open by up to {:.3g} m and {:.3g} rad".format(*summary["worst_loop_gap"]))
    if summary["loops_opened"] is not None:
        lines.append(f"warning: {_describe_opened(summary['loops_opened'])}")
    if summary["tendon_equalities"]:
        lines.append(f"worst error of tendon equalities: {summary['worst_tendon_error']:.3g}")
    residual = summary["worst_solver_residual"]
    if residual is None or residual > _RESIDUAL:
        lines.append(f"warning: {_describe_residual(residual, summary['unsolved_steps'])}; {_MORE_EXACT}")
    if summary["joint_gap"] is not None:
        lines.append("joints came apart by up to {:.3g} m and {:.3g} rad".format(*summary["joint_gap"]))
    if summary["contacts"] is not None:
        lines += _describe_contacts(summary["contacts"])
    limits = sorted(summary["limit_steps"].items(), key=lambda item: -item[1])
    if limits:
        shown = limits if verbose else limits[:6]
        more = f", and {len(limits) - len(shown)} more" if len(limits) > len(shown) else ""
        lines.append("at a limit: " + ", ".join(f"{name} ({n} steps)" for name, n in shown) + more)
    if summary["bytes"] is not None:
        lines.append(f"wrote {summary['output']} ({summary['bytes'] / 1e6:.3g} MB)")
    return lines


def _describe_excess(excess: Mapping[str, Any]) -> str:
    return (
        f"at t = {excess['time']:.6g} s there were {excess['created']:.3g} J of energy more than the "
        f"{excess['available']:.3g} J that inputs, drives, springs and heights can have given: {excess['source']} "
        f"gave it, and joint {excess['joint']!r} moves with most; try a smaller --dt"
    )


def _describe_contacts(contacts: Mapping[str, Any]) -> list[str]:
    if not contacts["most"]:
        return ["contacts: none"]
    lines = [f"contacts: {contacts['most']} at once, at most {max(contacts['deepest'], 0.0):.3g} m deep"]
    if contacts["eased_steps"]:
        lines.append(f"wedged or crowded contacts gave way in {contacts['eased_steps']} steps")
    if contacts["gave_way_far"]:
        lines.append(f"warning: {_describe_yielding(contacts['gave_way'])}")
    if contacts["left_inside_steps"]:
        stayed = f"penetration was left as it was in {contacts['left_inside_steps']} steps"
        lines.append(f"{stayed}, where removing it would throw bodies or contradict other constraints; {_EXCLUDE}")
    if contacts["held_inside"]:
        lines.append(f"warning: {_describe_held(contacts['held_inside'])}")
    if contacts["room"] > contacts["first_room"]:
        lines.append(f"room for contacts was enlarged from {contacts['first_room']} to {contacts['room']}")
    return lines
