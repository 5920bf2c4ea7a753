"""`artsim info`: summarise a robot file or an output file on one screen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from artsim.cli.check import align, counts, describe_joint, describe_totals, joint_kinds, joint_object, total_mass
from artsim.cli.note_kinds import by_kind
from artsim.cli.options import OneModelOptions, model_options, set_arguments
from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Actuator, Articulation
from artsim.sim.foundation.errors import printable
from artsim.sim.foundation.files import read_start

MAX_ROWS = 24  # lines of a table
MAX_NAMES = 12  # names in a line
_HDF5 = b"\x89HDF\r\n\x1a\n"


@click.command(short_help="Say what a robot file or an output file holds.")
@click.argument("file", metavar="MODEL|FILE.h5")
@click.argument("arguments", nargs=-1, metavar="[NAME:=VALUE]…")
@model_options
@click.option("--json", "as_json", is_flag=True, help="Print the content as one JSON object instead of text.")
def info(file: str, arguments: tuple[str, ...], as_json: bool, load_options: OneModelOptions) -> None:
    """Say what MODEL (a robot file, or - for standard input) or FILE.h5 (an output of artsim's) holds."""
    if is_recording(file):
        from artsim.io.readers.open_output import open_output
        from artsim.io.readers.sampled_output import SampledOutput

        with open_output(file) as output:
            kind = output.group_name if isinstance(output, SampledOutput) else "run"
            content: dict[str, Any] = {"kind": kind, **output.summary(), "config": output.config}
        describe = {"batch": describe_batch, "ik": describe_ik, "rollout": describe_rollout}.get(kind, describe_run)
        lines = describe(content)
    else:
        set_arguments(load_options, arguments)
        articulation = load_articulation(file, **load_options)
        content = model_object(articulation)
        lines = describe_model(articulation)
    if as_json:
        click.echo(json.dumps(content))
        return
    for line in lines:
        click.echo(printable(line))


def is_recording(file: str) -> bool:
    """True if a name stands for an output file, judged by its first bytes, or by its suffix if it cannot be read."""
    path = Path(file)
    if file != "-" and path.suffix.lower() in (".h5", ".hdf5"):
        return True
    try:
        if file == "-" or not path.is_file():
            return False
        return read_start(path, len(_HDF5)) == _HDF5
    except (OSError, ValueError):
        return False  # reading it as a model reports the reason


# --- a model ---------------------------------------------------------------------------------------------------------


def describe_model(articulation: Articulation) -> list[str]:
    """Totals, the moving joints with their limits, and the names that options refer to."""
    couplings = {coupling.follower: coupling for coupling in articulation.couplings}
    moving = [joint for joint in articulation.joints if joint.kind != "fixed"]
    rows = [("JOINT", "TYPE", "RANGE", "EFFORT", "VELOCITY")]
    rows += [describe_joint(joint, couplings) for joint in moving[:MAX_ROWS]]
    lines = [*describe_totals(articulation), *(["", *align([*rows])] if moving else [])]
    if len(moving) > MAX_ROWS:
        lines.append(f"… and {len(moving) - MAX_ROWS} more joints; `artsim check` prints the tree")
    lines += describe_equipment(articulation)
    if articulation.notes:
        count = len(articulation.notes)
        lines += ["", f"{count} {'warning' if count == 1 else 'warnings'}; `artsim check` prints them"]
    return lines


def describe_equipment(articulation: Articulation) -> list[str]:
    """A table of the actuators, and the names of the keyframes and sensors."""
    rows = [("ACTUATOR", "ACTS ON", "CONTROL")]
    rows += [describe_actuator(actuator) for actuator in articulation.actuators[:MAX_ROWS]]
    lines = ["", *align([*rows])] if articulation.actuators else []
    if len(articulation.actuators) > MAX_ROWS:
        lines.append(f"… and {len(articulation.actuators) - MAX_ROWS} more actuators; --json lists all")
    for what, parts in (("keyframes", articulation.keyframes), ("sensors", articulation.sensors)):
        if parts:
            lines += ["", f"{what} ({len(parts)}): {some([part.name for part in parts])}"]
    return lines


def describe_actuator(actuator: Actuator) -> tuple[str, str, str]:
    """Name and target of an actuator, and the range of each of its controls."""
    ranges = ["any" if bounds is None else f"{bounds[0]:.6g} … {bounds[1]:.6g}" for bounds in actuator.control_ranges]
    told = [f"{name} {bounds}".strip() for name, bounds in zip(actuator.inputs, ranges, strict=True)]
    return actuator.name, f"{actuator.transmission} {actuator.target}", ", ".join(told)


def model_object(articulation: Articulation) -> dict[str, Any]:
    """Everything for --json, in rad, m, N m, N and kg."""
    couplings = {coupling.follower: coupling for coupling in articulation.couplings}
    return {
        "kind": "model",
        "file": articulation.path,
        "name": articulation.name,
        "format": articulation.format,
        "base": articulation.base,
        "counts": counts(articulation) | {"joint_types": joint_kinds(articulation)},
        "mass": total_mass(articulation),
        "links": [link.name for link in articulation.links],
        "joints": [joint_object(joint, couplings.get(joint.name)) for joint in articulation.joints],
        "actuators": [actuator_object(actuator) for actuator in articulation.actuators],
        "keyframes": [key.name for key in articulation.keyframes],
        "sensors": [sensor.name for sensor in articulation.sensors],
        "warnings": len(articulation.notes),
    }


def actuator_object(actuator: Actuator) -> dict[str, Any]:
    """Name and target of an actuator, and the range of each of its controls."""
    return {
        "name": actuator.name,
        "transmission": actuator.transmission,
        "target": actuator.target,
        "inputs": actuator.inputs,
        "control_ranges": actuator.control_ranges,
    }


# --- a run -----------------------------------------------------------------------------------------------------------


def describe_run(run: Mapping[str, Any]) -> list[str]:
    """State, length, configuration, robot, then a table of the variables."""
    model, config = run["model"], run["config"]
    total = "" if run["steps_total"] is None else f" of {run['steps_total']}"
    state = {"killed": "killed, so incomplete (artsim recover cleans the file)"}.get(run["state"], run["state"])
    every = "every step" if run["every"] == 1 else f"every {run['every']} steps"
    lines = [
        f"{run['file']}: run of {model.get('format', '')} robot {model.get('name', '')!r}, {state} "
        f"({run['bytes'] / 1e6:.3g} MB)",
        f"{run['rows']} rows, {every}{total} of {run['dt']:g} s; {run['duration']:g} s recorded",
        ", ".join(
            f"{name} {config[name]}"
            for name in ("integrator", "solver", "coupling", "controller", "base")
            if name in config
        ),
        *([f"actuators ({len(config['control'])}): {some(list(config['control']))}"] if config.get("control") else []),
        *names_and_origin(run),
        "",
    ]
    return [*lines, *variables(run)]


def names_and_origin(content: Mapping[str, Any]) -> list[str]:
    """The names of the robot's entries, and the origin of the file."""
    facts = content["provenance"]
    return [
        f"links ({len(content['links'])}): {some(content['links'])}",
        f"dofs ({len(content['dofs'])}, {len(content['independent_dofs'])} independent): {some(content['dofs'])}",
        f"created {content.get('created', 'at an unknown time')} by {versions(facts)}",
        f"command: artsim {facts.get('command', '')}",
        *overlaps_told(facts),
        *model_warnings(content["warnings"]),
    ]


def overlaps_told(facts: Mapping[str, Any]) -> list[str]:
    """The number of pairs of shapes that were left out of contact, if any were."""
    count = facts.get("overlaps_left_out")
    return [f"pairs of shapes left out of contact, as no joint parts them: {count}"] if count else []


def model_warnings(told: list[str]) -> list[str]:
    """The warnings about the robot's file."""
    if not told:
        return []
    lines = by_kind(told)
    more = [f"  … and {len(lines) - MAX_ROWS} more; --json lists all"] if len(lines) > MAX_ROWS else []
    return [f"warnings of the model ({len(told)}):", *(f"  {line}" for line in lines[:MAX_ROWS]), *more]


def variables(content: Mapping[str, Any]) -> list[str]:
    """A table of the stored variables."""
    rows = [("VARIABLE", "SHAPE", "UNIT", "MEANING")]
    for name, variable in content["variables"].items():
        shape = ", ".join(f"{dim} {n}" for dim, n in zip(variable["dims"], variable["shape"], strict=True))
        rows.append((name, shape, variable["units"], variable["long_name"]))
    return align([*rows])


# --- a batch ---------------------------------------------------------------------------------------------------------


def describe_batch(batch: Mapping[str, Any]) -> list[str]:
    """The number of rows, the quantities and the origin of a batch."""
    model, first = batch["model"], batch["first_row"]
    part = "" if batch["rows"] == batch["rows_of_job"] else f", from row {first} of {batch['rows_of_job']}"
    part = _of_shards(batch) or part
    coordinates = "independent" if batch["reduced"] else "full"
    point = "centres of mass" if batch["at"] == "com" else "frames' origins"
    return [
        f"{batch['file']}: batch of {model.get('format', '')} robot {model.get('name', '')!r} "
        f"({batch['bytes'] / 1e6:.3g} MB)",
        f"{batch['rows']} rows{part}, {batch['failed']} failed; {coordinates} coordinates, links at their {point}",
        *names_and_origin(batch),
        "",
        *variables(batch),
    ]


def describe_ik(found: Mapping[str, Any]) -> list[str]:
    """The number of rows, the targets and the origin of an inverse kinematics."""
    model = found["model"]
    return [
        f"{found['file']}: inverse kinematics of {model.get('format', '')} robot {model.get('name', '')!r} "
        f"({found['bytes'] / 1e6:.3g} MB)",
        f"{found['rows']} rows, {found['not_reached']} not reached; poses of {some(found['targets'])} in the frame of "
        f"{found['frame']}",
        *names_and_origin(found),
        "",
        *variables(found),
    ]


def _of_shards(content: Mapping[str, Any]) -> str:
    """The number of files over which an index extends, in words; empty for a file with rows of its own."""
    return f" in {len(content['shards'])} files beside it" if content["shards"] else ""


def describe_rollout(rollout: Mapping[str, Any]) -> list[str]:
    """The number of samples, the variables and the origin of a rollout."""
    model = rollout["model"]
    all_samples = rollout["rows_of_job"]
    part = "" if rollout["samples"] == all_samples else f", from sample {rollout['first_row']} of {all_samples}"
    part = _of_shards(rollout) or part
    early = f", {rollout['ended']} ended by --until" if rollout["ended"] else ""
    told = early + (f", {rollout['missing']} not simulated: the rollout was interrupted" if rollout["missing"] else "")
    return [
        f"{rollout['file']}: rollout of {model.get('format', '')} robot {model.get('name', '')!r} "
        f"({rollout['bytes'] / 1e6:.3g} MB)",
        f"{rollout['samples']} samples of {rollout['rows']} rows{part}, {rollout['stopped']} stopped early{told}",
        *names_and_origin(rollout),
        "",
        *variables(rollout),
    ]


def some(names: list[str]) -> str:
    """The first few names as text."""
    return ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")


def versions(facts: Mapping[str, Any]) -> str:
    """The stored versions as text, for example `artsim 0.1.0, numpy 2.4, …`; any stored value is accepted."""
    try:
        return ", ".join(f"{name} {version}" for name, version in json.loads(facts["versions"]).items())
    except (KeyError, ValueError, AttributeError, TypeError):
        return "unknown versions"
