"""`artsim rollout`: simulate many variations of a run and write them to one file."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from artsim.cli.depths import describe_depth
from artsim.cli.grouped import GroupedCommand
from artsim.cli.numbers import Number, Whole
from artsim.cli.options import reading_words
from artsim.cli.progress import caught_signals
from artsim.cli.rollout_recipe import Sources, drive_by, job_of, job_of_recipe, recipe
from artsim.cli.run_controller import policy_file, typed_policy
from artsim.cli.run_options import GROUPS, run_config, run_options
from artsim.cli.run_summary import (
    HELD_INSIDE,
    MORE_EXACT,
    describe_held,
    describe_motors,
    describe_residual,
    overlaps_of,
    refuse_overlaps,
)
from artsim.cli.scene_options import SceneOptions, input_files, load_models, models_argument, scene_options
from artsim.cli.sharding import Sharding, sharding_options
from artsim.cli.terminal import warn, warn_of_model
from artsim.cli.words import control_files
from artsim.io.output_file.batch_file import check_name
from artsim.io.rollouts.draws import STARTS, RolloutConfig, spread_ends
from artsim.io.rollouts.roll import Outcome, roll
from artsim.io.rollouts.rollout import check_rollout, policy_facts, refuse_stopped
from artsim.io.runs.effort_tally import MOTOR
from artsim.io.runs.prepare import clamped_controls, late_controls, prepare
from artsim.io.runs.progress import progress_bar, warm
from artsim.io.runs.provenance import provenance
from artsim.io.shards.job import Outcome as Computed
from artsim.sim.foundation.angles import DEGREES, angle_or_number, plain_number
from artsim.sim.foundation.apart import available_cores
from artsim.sim.foundation.errors import ModelError, StoppedError, UsageError, nearest, printable
from artsim.sim.run_data.controllers import CONTROLLERS
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.packable import kernels, reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDABLE, ROLLOUT_RECORDED
from artsim.sim.runs.setting import MAX_STEPS
from artsim.sim.runs.settings import CONVEX
from artsim.sim.runs.varied import VARIED
from artsim.sim.runs.wrench_inputs import late_pushes

_DEGREES = "artsim.cli.rollout.degrees"
_OTHERWISE = {
    "controller": {"help": "Built-in controller.", "metavar": "|".join(CONTROLLERS)},
    "record": {
        "help": f"Variables to record; +NAME adds to the default, {' and '.join(ROLLOUT_RECORDED)}. The word none "
        f"stands for final states, without rows. Known: {', '.join(ROLLOUT_RECORDABLE)}."
    },
}
"""The options of a run that say something else of rollouts: the controllers and variables that packs have."""


_GROUPS = {
    **{
        title: tuple(name for name in names if name not in ("resume", "converge"))
        for title, names in GROUPS.items()
        if title != "Speed"
    },
    "Speed and shards": ("threads", "shards", "scheduler", "shard", "resume"),
}
"""The options of each group, in the order of the help."""


def _factors(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """Read NAME=LOW:HIGH words, separated by commas, of which later ones override earlier ones; and names of files."""
    bounds, files = {}, []
    for word in (part.strip() for text in words for part in text.split(",") if part.strip()):
        if "=" not in word and Path(word).suffix.lower() in (".npz", ".csv"):
            files.append(word)
            continue
        name, equals, ends = word.partition("=")
        numbers = ends.split(":")
        try:
            low, high = map(plain_number, numbers)
        except ValueError:
            raise click.BadParameter(f"{word!r} is not NAME=LOW:HIGH") from None
        if not (equals and math.isfinite(low) and math.isfinite(high)):
            raise click.BadParameter(f"{word!r} is not NAME=LOW:HIGH")
        bounds[name.strip().replace("-", "_")] = (low, high)
    return bounds, files


def _offsets(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, Any]:
    """Read X, COORD=X and COORD=LOW:HIGH words, separated by commas; later ones override earlier ones.

    The names of those in degrees are kept, since only the robot tells which joints turn.
    """
    offsets = {}
    for word in (part.strip() for text in words for part in text.split(",") if part.strip()):
        name, equals, text = word.rpartition("=")
        try:
            numbers = [angle_or_number(number) for number in text.split(":")]
            if DEGREES in text:
                ctx.meta.setdefault(_DEGREES, []).append(name.strip())
        except ValueError:
            numbers = []
        if not all(map(math.isfinite, numbers)) or not 1 <= len(numbers) <= (2 if equals else 1):
            raise click.BadParameter(f"{word!r} is not X, COORD=X or COORD=LOW:HIGH")
        offsets[name.strip()] = numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])
    return offsets


def _check_degrees(plan: Plan, names: Sequence[str]) -> None:
    """Raise UsageError for offsets in degrees of a coordinate that is no angle."""
    coords, units = plan.robot.coords, plan.robot.labels.coord_units
    for name in names:
        low, high = spread_ends(plan, {name: (-1.0, 1.0)})
        for coord in np.flatnonzero(high > low):
            if units[coord] != "rad":
                raise UsageError(f"--spread: {coords[coord]} is in {units[coord]}, not in degrees")


@click.command(
    cls=GroupedCommand,
    groups=_GROUPS,
    short_help="Simulate many variations of a run.",
    context_settings={"auto_envvar_prefix": "ARTSIM"},
)
@models_argument()
@click.option("--samples", type=Whole(1), metavar="N", required=True, help="Number of samples to simulate.")
@click.option(
    "--start",
    default=STARTS[0],
    show_default=True,
    metavar=f"{'|'.join(STARTS)}|FILE",
    help="Where samples start: at the given state; drawn within the joint limits as `artsim batch` draws; or at those "
    "of a file, one for each or one for all: .npy, .npz, .csv, .h5, a run, or a rollout's final states.",
)
@click.option(
    "--spread",
    multiple=True,
    callback=_offsets,
    metavar="X|COORD=X|COORD=LOW:HIGH,…",
    help="Random offsets of initial coordinates [rad, m, 10deg]. X moves every joint by at most X, no base; "
    "COORD=X moves the coordinates of that name or pattern, also of bases, by at most X, COORD=LOW:HIGH by LOW to "
    "HIGH.",
)
@click.option(
    "--velocity-spread",
    type=Number(),
    default=0.0,
    help="Largest random offset of the initial velocities [rad/s, m/s].",
)
@click.option(
    "--randomise",
    multiple=True,
    callback=_factors,
    metavar="NAME=LOW:HIGH,…|FILE",
    help=f"Factors drawn uniformly from LOW to HIGH for each link or joint: {', '.join(VARIED)} (of all contacts), "
    "gravity, push (of each number of the impulses of --push); centre: offsets of the links' centres of mass [m]; "
    "ground_height: by how much planes of the world are raised [m]; push_time: times of the pushes [s]; delay: delays "
    "of the controls that an MJCF file delays [s]. FILE (.npz, .csv) gives these for each sample.",
)
@click.option(
    "--until",
    default="",
    metavar="EXPRESSION",
    help="End a sample before the first step at whose state this is true: 'trunk.z < 0.2 or abs(knee) > 2'.",
)
@click.option(
    "--cost",
    default="",
    metavar="EXPRESSION",
    help="Sum of this over the steps of each sample, at the state before each: 'hip**2 + 0.1 * hip.velocity**2'.",
)
@click.option(
    "--policy",
    metavar="FILE.py:FUNCTION|FILE.onnx",
    help="Inputs of all samples at once: a function of qpos (samples, nq), qvel (samples, nv) and time [s] that gives "
    "their action (samples, n), controls of actuators, else targets of drives, else torques, or inputs by name; or a "
    "network of the same (artsim[onnx]). The output holds the inputs that it gave, by which it is replayed.",
)
@click.option(
    "--hold",
    type=Whole(1, MAX_STEPS),
    default=1,
    show_default=True,
    metavar="N",
    help="Steps for which the inputs that --policy gives act.",
)
@partial(run_options, otherwise=_OTHERWISE)
@scene_options
@sharding_options
@click.option("--threads", type=Whole(1, 1024), metavar="N", help="Number of threads; default: one per core.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write (.h5 or .npz); without it only the summary is printed.",
)
@click.option("--force", is_flag=True, help="Overwrite the output file.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Print neither the summary nor warnings.")
@click.pass_context
def rollout(
    ctx: click.Context,
    /,
    models: tuple[str, ...],
    samples: int,
    start: str,
    spread: dict[str, float | tuple[float, float]],
    velocity_spread: float,
    randomise: tuple[dict[str, tuple[float, float]], list[str]],
    until: str,
    cost: str,
    policy: str | None,
    hold: int,
    threads: int | None,
    output: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    scene: SceneOptions,
    sharding: Sharding,
    **options: Any,
) -> None:
    """Simulate N variations of a run of MODEL (URDF, MJCF or SDF, or - for standard input), 8 at a time.

    Several models form one scene, as in `artsim run`. A sample depends on --seed and its number alone, and the bytes of
    the result do not depend on --threads. --control takes one file for all samples, or arrays of shape (samples, rows,
    joints). The summary goes to stderr.
    """
    drawn, tables = randomise
    start_file = None if start in STARTS else start
    if start_file is not None and not Path(start).suffix:
        raise UsageError(f"--start {start!r} is not known{nearest(start, STARTS)}, and is no file")
    config = RolloutConfig(samples, STARTS[0] if start_file else start, spread, velocity_spread, drawn, until, cost)
    sources = Sources(models, scene, tuple(control_files(options["control"])), start_file, tuple(tables), policy, hold)
    if output is not None:
        check_name(output)
        inputs = (*input_files(models, scene), *tables, *sources.controls, start_file, policy and policy_file(policy))
        sharding.check(output, inputs, lambda: recipe(RunConfig(), config, sources), force=force)
    elif sharding.count or sharding.resume:
        raise UsageError("--shard, --shards, --scheduler and --resume are for files: give --output")
    drive = drive_by(config, sources, typed_policy(ctx, policy), in_file=output is not None)
    articulation = load_models(models, scene)
    stored = {"record": list(ROLLOUT_RECORDED)}
    plan = prepare(articulation, run_config(ctx, options, stored, articulation, **scene.recorded(articulation)))
    _check_degrees(plan, ctx.meta.get(_DEGREES, ()))
    job = job_of(plan, config, sources, drive=drive, keep=sharding.count is None, strict=bool(scene.load["strict"]))
    plan = job.plan
    controls = check_rollout(plan, config, job.controls)
    if not quiet:
        warn([*clamped_controls(plan, controls[0]), *late_controls(plan, controls[0]), *_notes(plan, job.config)])
        warn_of_model(articulation.notes, models, reading_words(scene.load))
    if scene.load["strict"]:
        refuse_overlaps(plan)
    warm(kernels(plan))  # Ctrl-C still ends the process here, before there is an output
    threads = threads or (1 if sharding.scheduler else available_cores())
    with caught_signals() as caught, progress_bar("simulating", samples, unit="samples", show=not quiet) as advance:
        watch: dict[str, Any] = {"progress": advance, "stop": lambda: bool(caught)}
        if output is None:
            outcome = roll(plan, job.config, controls=controls, given=job.given, drive=drive, threads=threads, **watch)
        else:
            facts = {**provenance(" ".join(sys.argv[1:])), "threads": threads, **policy_facts(drive)}
            made = sharding.compute(job, output, work, force=force, threads=threads, provenance=facts, **watch)
            outcome = _outcome(plan, made)
    _tell(plan, outcome, samples, as_json=as_json, quiet=quiet)
    if caught and not outcome.complete:
        raise SystemExit(128 + caught[0])
    if outcome.unfit and not force:
        raise ModelError(outcome.unfit)
    if outcome.unfit and not quiet:
        warn([outcome.unfit])
    refuse_stopped(outcome)
    warnings = _warnings(outcome)
    if scene.load["strict"] and warnings:
        raise StoppedError(f"stopped (--strict): {warnings[0]}")


def _notes(plan: Plan, config: RolloutConfig) -> list[str]:
    """The notes on the run, without those on times of pushes where samples have their own."""
    own = "push_time" in (*config.randomise, *config.given)
    late = late_pushes(plan.pushed, plan.config.steps * plan.dt) if own else []
    return [note for note in plan.notes if note not in late]


def work(order: str, stop: Callable[[], bool] | None = None) -> str:
    """Simulate a shard in a worker process of --scheduler."""
    from artsim.io.shards.scheduler import perform

    return perform(order, job_of_recipe, stop)


def _outcome(plan: Plan, made: Computed) -> Outcome:
    """The outcome of samples in files."""
    written = made.output if made.complete or made.bytes else None
    more = {"kept": made.kept, "notes": made.notes, "unfit": made.unfit, "output": written, "bytes": made.bytes}
    return Outcome.of(plan, made.told, made.rows, made.seconds, complete=made.complete, **more)


def _most_sunk(outcome: Outcome) -> dict[str, Any]:
    """The sample in which a hard contact got deepest, and where."""
    return dict(zip(("sample", "share", "depth", "link_a", "link_b"), outcome.most_sunk, strict=True))


def _most_held_inside(outcome: Outcome) -> dict[str, Any] | None:
    """The sample in which hard loops held contacts deepest inside, and which; None if they held none."""
    found = outcome.most_held_inside
    return None if found is None else dict(zip(("sample", *HELD_INSIDE), found, strict=True))


def _warnings(outcome: Outcome) -> list[str]:
    """Sentences on all for which --strict refuses a rollout."""
    held = _most_held_inside(outcome)
    told = [] if held is None else [_describe_held(outcome, held)]
    told += [_describe_sunk(outcome)] if outcome.sunk else []
    return [*told, _describe_unsolved(outcome)] if outcome.unsolved else told


def _describe_held(outcome: Outcome, held: Mapping[str, Any]) -> str:
    return f"in {_samples(outcome.held_inside)}, deepest in sample {held['sample']}, {describe_held(held)}"


def _describe_sunk(outcome: Outcome) -> str:
    sample, share, depth, one, two = outcome.most_sunk
    where = describe_depth(depth, share, one, two)
    return f"in {_samples(outcome.sunk)} hard contacts got deeper than at the start, most in sample {sample}: {where}"


def _describe_unsolved(outcome: Outcome) -> str:
    sample, residual, steps = outcome.most_unsolved
    left = describe_residual(residual, steps)
    return f"in {_samples(outcome.unsolved)}, most in sample {sample}, {left}; {MORE_EXACT}"


def _samples(count: int) -> str:
    return "1 sample" if count == 1 else f"{count} samples"


def _tell(plan: Plan, outcome: Outcome, samples: int, *, as_json: bool, quiet: bool) -> None:
    """Print the summary."""
    rate = outcome.steps / outcome.seconds if outcome.seconds > 0 else 0.0
    if as_json:
        efforts = {name: seconds for name, (seconds, _) in outcome.at_effort.items()}
        summary = {
            "samples": outcome.samples,
            "contact_law": plan.config.contact_law,
            "steps": outcome.steps,
            "seconds": outcome.seconds,
            "steps_per_second": rate,
            "packed": outcome.packed,
            "solved_alone": outcome.solved_alone,
            "stopped": outcome.stopped,
            "ended": outcome.tally.ended,
            "inside": outcome.inside,
            "deepest": outcome.deepest[1],
            "overlaps": overlaps_of(plan),
            "sunk": outcome.sunk,
            "most_sunk": _most_sunk(outcome),
            "held_inside": outcome.held_inside,
            "most_held_inside": _most_held_inside(outcome),
            "unsolved": outcome.unsolved,
            "worst_solver_residual": outcome.most_unsolved[1],
            "at_effort": efforts if {*MOTOR} & {*plan.config.record} else None,
            "messages": list(outcome.messages),
            "kept": outcome.kept,
            "complete": outcome.complete,
            "output": None if outcome.output is None else str(outcome.output),
            "bytes": outcome.bytes if outcome.output is not None else None,
        }
        click.echo(json.dumps(summary))
        return
    if quiet:
        return
    now = outcome.samples - outcome.kept
    lines = [f"{now} samples, {outcome.steps} steps in {outcome.seconds:.3g} s: {rate:,.0f} steps/s"]
    if outcome.kept and not now:
        lines = ["nothing was left to simulate"]
    if not outcome.packed:
        lines.append(f"one sample at a time: packs do not know {reason_against_packs(plan)}")
    if outcome.inside:
        sample, depth = outcome.deepest
        where = ", but for pairs that a loop holds together" if plan.robot.articulation.loops else ""
        count = "1 sample starts" if outcome.inside == 1 else f"{outcome.inside} samples start"
        then = f"this penetration is removed over 0.1 s, which moves the links{where}"
        if plan.config.contact_law == CONVEX:
            then = "the springs of the convex contact law push the links apart"
        lines.append(f"{count} inside something, deepest sample {sample} by {1e3 * depth:.3g} mm; {then}")
    lines += [f"warning: {told}" for told in _warnings(outcome)]
    if outcome.at_effort:
        motors = [f"{name} ({t:.3g} s in {_samples(n)})" for name, (t, n) in outcome.at_effort.items()]
        lines.append(describe_motors(motors))
    if outcome.tally.ended:
        lines.append(f"{_samples(outcome.tally.ended)} ended by --until, status 4")
    if outcome.stopped:
        lines.append(
            f"{_samples(outcome.stopped)} of {outcome.samples} stopped early, which `status` and `n_valid` tell:"
        )
    lines += outcome.messages
    if outcome.stopped > len(outcome.messages):
        lines.append("…")
    if not outcome.complete:
        rest = f" of {samples}: the other samples have status 0" if outcome.output is not None else ""
        lines.append(f"interrupted after {_samples(outcome.samples)}{rest}")
    lines += outcome.notes
    if outcome.output is not None:
        lines.append(f"wrote {outcome.output} ({outcome.bytes / 1e6:.3g} MB)")
    for line in lines:
        click.echo(printable(line), err=True)
