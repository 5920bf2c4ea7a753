"""`artsim ik`: find configurations in which links have given poses."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from artsim.cli.batch_options import names
from artsim.cli.grouped import READING, GroupedCommand, Groups, grouped
from artsim.cli.numbers import Whole, number_of
from artsim.cli.options import OneModelOptions, model_options, reading_words, refuse_own_input, set_arguments
from artsim.cli.progress import caught_signals
from artsim.cli.setting_options import option_of
from artsim.cli.terminal import warn, warn_of_model
from artsim.cli.words import read_by_name
from artsim.io.batches.csv_output import STDOUT, is_csv, output_in_words
from artsim.io.batches.ik import FLIP, IkJob, IkOutcome, prepare_ik, same_file, write_ik
from artsim.io.batches.ik_config import IK_SETTINGS, MOST_VALUES, STOP, IkConfig
from artsim.io.inputs.pose_files import is_pose_file
from artsim.io.output_file.batch_file import check_name
from artsim.io.runs.progress import progress_bar, warm
from artsim.io.runs.provenance import provenance
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.apart import available_cores
from artsim.sim.foundation.errors import StoppedError, UsageError, printable
from artsim.sim.ik.search_records import REACHED
from artsim.sim.ik.solver import STATUS_MEANING

R = TypeVar("R")
_COUNT = re.compile("[0-9]{1,18}")
GROUPS: Groups = {
    **grouped(
        IK_SETTINGS, {"input": ("output", "force"), "posture": ("base", "loops"), "on_error": ("as_json", "quiet")}
    ),
    "Speed": ("threads", "chunk"),
    **READING,
}
"""The options of each group, in the order of the help."""


def _read_poses(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> tuple[tuple[float, ...], ...]:
    """Read X,Y,Z[,R,P,Y|,QW,QX,QY,QZ] words, angles in rad or with the suffix deg."""
    poses = []
    for word in words:
        parts = word.split(",")
        if len(parts) not in (3, 6, 7):
            raise click.BadParameter(f"{word!r} has {len(parts)} numbers, want X,Y,Z, and R,P,Y or QW,QX,QY,QZ")
        poses.append(
            tuple(number_of(part, "--pose", "rad" if len(parts) == 6 and k > 2 else "") for k, part in enumerate(parts))
        )
    return tuple(poses)


def _read_grid(ctx: click.Context, param: click.Parameter, word: str | None) -> tuple[tuple[float, ...], ...]:
    """Read X,Y,Z[,R,P,Y|,QW,QX,QY,QZ] with LOW:HIGH:N in place of some numbers."""
    if word is None:
        return ()
    parts = word.split(",")
    if len(parts) not in (3, 6, 7):
        raise click.BadParameter(f"{word!r} has {len(parts)} entries, want X,Y,Z, and R,P,Y or QW,QX,QY,QZ")
    axes: list[tuple[float, ...]] = []
    for k, part in enumerate(parts):
        unit, ends = "rad" if len(parts) == 6 and k > 2 else "", part.split(":")
        if len(ends) not in (1, 3) or (len(ends) == 3 and not _COUNT.fullmatch(ends[2].strip())):
            raise click.BadParameter(f"{part!r} is neither a number nor LOW:HIGH:N")
        numbers = tuple(number_of(end, "--grid", unit) for end in ends[:2])
        if len(ends) == 3 and not (numbers[0] <= numbers[1] and 1 <= int(ends[2]) <= MOST_VALUES):
            raise click.BadParameter(f"{part!r}: want LOW:HIGH:N, LOW ≤ HIGH, N from 1 to {MOST_VALUES}")
        axes.append((*numbers, int(ends[2])) if len(ends) == 3 else numbers)
    return tuple(axes)


def _by_link(*counts: int) -> Callable[..., dict[str, tuple[float, ...]]]:
    """A callback that reads LINK=NUMBER,… words of so many numbers."""

    def read(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
        found: dict[str, tuple[float, ...]] = {}
        for word in words:
            name, equals, text = word.rpartition("=")
            parts = text.split(",")
            if not name or not equals or len(parts) not in counts:
                raise click.BadParameter(f"{word!r} is not {param.metavar}")
            found[name] = tuple(number_of(part, f"{param.opts[0]} {name}") for part in parts)
        return found

    return read


def _read_looks(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> dict[str, tuple[float, ...] | str]:
    """Read LINK=X,Y,Z and LINK=FILE words."""
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals or not text:
            raise click.BadParameter(f"{word!r} is not {param.metavar}")
        found[name] = _point(f"{param.opts[0]} {name}", text)
    return found


def _read_point(ctx: click.Context, param: click.Parameter, word: str | None) -> tuple[float, ...] | str | None:
    """Read X,Y,Z or FILE."""
    return None if word is None else _point(param.opts[0], word)


def _point(option: str, text: str) -> tuple[float, ...] | str:
    parts = text.split(",")
    if len(parts) == 1 and is_pose_file(text):
        return text
    if len(parts) != 3:
        raise UsageError(f"{option}: {text!r} is neither X,Y,Z nor a file (.npy, .npz, .csv, .h5)")
    return tuple(number_of(part, option) for part in parts)


def _read_tolerance(ctx: click.Context, param: click.Parameter, word: str | None) -> tuple[float, ...] | None:
    """Read LENGTH,ANGLE."""
    if word is None:
        return None
    parts = word.split(",")
    if len(parts) != 2:
        raise click.BadParameter(f"{word!r} has {len(parts)} numbers, want LENGTH,ANGLE")
    return number_of(parts[0], "--tolerance"), number_of(parts[1], "--tolerance", "rad")


_HOW: Mapping[str, dict[str, Any]] = {
    "link": {"multiple": True},
    "pose": {"multiple": True, "callback": _read_poses},
    "grid": {"callback": _read_grid, "multiple": False, "default": None},
    "look_at": {"callback": _read_looks},
    "look_axis": {"callback": _by_link(3)},
    "com": {"callback": _read_point, "multiple": False, "default": None},
    "weight": {"callback": _by_link(1, 2)},
    "move": {"callback": names},
    "tolerance": {"callback": _read_tolerance, "multiple": False, "default": None},
}


def _ik_options(command: Callable[..., R]) -> Callable[..., R]:
    for name, setting in reversed(IK_SETTINGS.items()):
        if setting.group:
            command = option_of(name, setting, **_HOW.get(name, {}))(command)
    return command


@click.command(
    cls=GroupedCommand,
    groups=GROUPS,
    short_help="Find configurations for poses of links.",
    context_settings={"auto_envvar_prefix": "ARTSIM"},
)
@click.argument("model")
@click.argument("arguments", nargs=-1, metavar="[NAME:=VALUE]…")
@_ik_options
@model_options
@click.option("--threads", type=Whole(1, 1024), metavar="N", help="Number of threads; default: one per core.")
@click.option("--chunk", type=Whole(1), metavar="N", help="Rows per block; default: 32768.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write (.h5, .npz or .csv); -: CSV on stdout. Without: the configuration of --pose is printed.",
)
@click.option("--force", is_flag=True, help="Overwrite the output file.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary, or the configuration, as one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print neither the summary nor warnings.")
def ik(
    model: str,
    arguments: tuple[str, ...],
    threads: int | None,
    chunk: int | None,
    output: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    load_options: OneModelOptions,
    **options: Any,
) -> None:
    """Find configurations of MODEL (URDF, MJCF or SDF, or - for standard input) in which links have given poses.

    Joint limits are kept, couplings and loops hold. A row that cannot be reached gives the nearest configuration that
    was found, and its distance. Outputs can be the --input of `artsim batch`, also as streams: -o - and --input -.
    """
    set_arguments(load_options, arguments)
    if model == "-" and options["input"] == "-":
        raise UsageError("MODEL and --input cannot both be standard input")
    rows = [f"--{name.replace('_', '-')}" for name in ("input", "grid", "look_at", "com") if _has_rows(options[name])]
    if output is None and rows:
        raise UsageError(f"give -o FILE for the configurations of {rows[0]}; -: CSV on stdout")
    if output is not None and not is_csv(output):
        check_name(output)
    if as_json and output is not None and str(output) == STDOUT:
        raise UsageError("--output - and --json both write to standard output")
    articulation = load_articulation(model, **load_options)
    for name in ("q0", "posture"):
        options[name] = read_by_name(name, options[name], articulation)
    given = {name: value for name, value in options.items() if not (name == "tolerance" and value is None)}
    load = {**load_options, "packages": {name: str(folder) for name, folder in load_options["packages"].items()}}
    load["mesh_root"] = None if load_options["mesh_root"] is None else str(load_options["mesh_root"])
    config = IkConfig(model=model, load=load, **given)
    if output is not None:
        refuse_own_input(output, *same_file(output, config))
    threads = threads or available_cores()
    with prepare_ik(articulation, config) as job:
        if not quiet:
            warn(job.notes)
            warn_of_model(articulation.notes, [model, *arguments], reading_words(load_options))
        warm([(job.search.entry, job.search.width)])
        if output is None:
            _print_one(job, as_json=as_json)
            return
        with caught_signals() as caught, progress_bar("finding", job.rows, unit="rows", show=not quiet) as advance:
            outcome = write_ik(
                job,
                output,
                threads=threads,
                chunk=chunk,
                force=force,
                provenance={**provenance(" ".join(sys.argv[1:])), "threads": threads},
                progress=advance,
                stop=lambda: bool(caught),
            )
    _finish(outcome, output, config, caught, as_json=as_json, quiet=quiet)


def _has_rows(value: Any) -> bool:
    """True for a file of rows, points of which some are of files, and a grid."""
    if isinstance(value, dict):
        return any(isinstance(point, str) for point in value.values())
    return isinstance(value, str) or (isinstance(value, tuple) and value != () and isinstance(value[0], tuple))


def _print_one(job: IkJob, *, as_json: bool) -> None:
    """Print the configuration of one pose. Raises StoppedError if it is not reached."""
    (_, found), *_ = job.found(1)
    labels = job.robot.labels
    values = found["qpos"][0].tolist()
    errors = {name: float(found[name][0]) for name in job.search.errors}
    more = {"depth": float(found["depth"][0])} if "depth" in found else {}
    told = {"attempts": int(found["attempts"][0]), "iterations": int(found["iterations"][0])}
    status = int(found["status"][0])
    if as_json:
        qpos = dict(zip(labels.coords, values, strict=True))
        click.echo(json.dumps({"qpos": qpos, "status": STATUS_MEANING[status], **errors, **more, **told}))
    else:
        width = max(map(len, labels.coords))
        for name, value, unit in zip(labels.coords, values, labels.coord_units, strict=True):
            click.echo(printable(f"  {name.ljust(width)}  {value:14.9g}  {unit if unit != '1' else ''}").rstrip())
    depth = more.get("depth", 0.0)
    if status == REACHED and depth > 0:
        raise StoppedError(f"reached only with shapes inside each other, by {depth:.3g} m (--clear)")
    if status != REACHED:
        raise StoppedError(f"{STATUS_MEANING[status]}: {_distance(errors, told['attempts'])}")
    if not as_json:
        click.echo(f"reached: {_distance(errors, told['attempts'])}", err=True)


def _distance(errors: Mapping[str, float], attempts: int) -> str:
    units = {"position_error": "m", "rotation_error": "rad", "constraint_error": "in its loops"}
    parts = [f"{value:.3g} {units[name]}" for name, value in errors.items()]
    return f"{', '.join(parts)} away, after {attempts} start{'s' * (attempts > 1)}"


def _finish(
    outcome: IkOutcome, output: Path, config: IkConfig, caught: list[int], *, as_json: bool, quiet: bool
) -> None:
    """Print the summary and exit with the code of the outcome."""
    summary = _summary(outcome, output)
    tally = outcome.tally
    if as_json:
        click.echo(json.dumps(summary))
    elif not quiet:
        done = f"{tally.rows} rows in {outcome.seconds:.3g} s: {summary['rows_per_second']:,.0f} rows/s"
        told = output_in_words(output)
        end = f"wrote {told} ({outcome.bytes / 1e6:.3g} MB)" if outcome.complete else "interrupted, nothing is written"
        click.echo(printable(f"{done}, {tally.reached} reached; {end}"), err=True)
    if not quiet and tally.flip_count:
        warn([f"the path jumps at {_rows(tally.flip_count, tally.flips)}: a joint moves by more than {FLIP} rad or m"])
    if not outcome.complete:
        raise SystemExit(128 + caught[0])
    missed = tally.rows - tally.reached
    wrong = []
    if tally.touching:
        told = f"{tally.touching} rows" if tally.touching > 1 else "1 row"
        wrong.append(
            f"{told} reached only with shapes inside each other, by up to {tally.deepest:.3g} m; `depth` says which"
        )
    if not missed and not wrong:
        return
    if missed:
        far = f"up to {tally.farthest[0]:.3g} m, {tally.farthest[1]:.3g} rad away"
        left = f"; {tally.open} of them leave a loop or coupling open" if tally.open else ""
        wrong.insert(0, f"{_rows(missed, tally.missed_rows)} not reached, {far}{left}; `status` says which")
    if config.on_error == STOP:
        raise StoppedError(f"{output_in_words(output)}: {'; '.join(wrong)}; --on-error skip accepts them")
    if not quiet:
        warn([f"{output_in_words(output)}: {each}" for each in wrong])


def _rows(count: int, first: tuple[int, ...]) -> str:
    told = ", ".join(map(str, first)) + (", …" if count > len(first) else "")
    return f"{count} row{'s' * (count > 1)} (counted from 0: {told})"


def _summary(outcome: IkOutcome, output: Path) -> dict[str, Any]:
    tally = outcome.tally
    return {
        "rows": tally.rows,
        "reached": tally.reached,
        "not_reached": tally.rows - tally.reached,
        "open": tally.open,
        "not_reached_rows": list(tally.missed_rows),
        "farthest": list(tally.farthest),
        "worst_reached": list(tally.worst),
        "iterations": tally.iterations,
        "overlapping": tally.touching,
        "deepest": tally.deepest,
        "jumps": tally.flip_count,
        "jump_rows": list(tally.flips),
        "seconds": outcome.seconds,
        "rows_per_second": tally.rows / outcome.seconds if outcome.seconds > 0 else 0.0,
        "complete": outcome.complete,
        "output": str(output) if outcome.complete else None,
        "bytes": outcome.bytes if outcome.complete else None,
    }
