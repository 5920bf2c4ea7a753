"""`artsim compute`: rigid-body quantities of one configuration, as a table, JSON or CSV."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click
import numpy as np

from artsim.cli.batch_options import loops_left_open, names
from artsim.cli.grouped import READING, GroupedCommand, Groups
from artsim.cli.options import OneModelOptions, model_options, reading_words, set_arguments
from artsim.cli.setting_options import option_of
from artsim.cli.tables import aligned, matrix_lines
from artsim.cli.terminal import warn, warn_of_model
from artsim.cli.words import read_base_pose, read_by_name, read_wrenches
from artsim.io.batches.configuration import BATCH_SETTINGS, NAMED
from artsim.io.format import schema
from artsim.io.format.labels import Labels, entry_names, entry_units, labels_of
from artsim.io.format.variable import Variable, unit_of
from artsim.io.runs.named import file_labels
from artsim.loaders.load import load_articulation
from artsim.sim.articulation.poses import at_leader, bend_at_leader
from artsim.sim.articulation.turn_limits import untied_axes
from artsim.sim.foundation.errors import StoppedError, UsageError, printable
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.catalogue import INPUTS, OF_CONSTRAINTS, STATUS_MEANING, dims_of, resolve
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.compiled_robot import compiled_robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.patterns import matching_links
from artsim.sim.runs.settings import SETTINGS
from artsim.sim.runs.start import find_keyframe, follow_velocities, initial_qpos

F = TypeVar("F", bound=Callable[..., Any])
GROUPS: Groups = {
    "Common": ("q0", "v0", "a0", "torque", "wrench", "base", "base_pose", "keyframe", "gravity"),
    "Links and loops": ("links", "at", "loops"),
    "Results": ("reduced", "as_json", "as_csv", "quiet"),
    **READING,
}
"""The options of each group, in the order of the help."""


def _named(name: str, metavar: str, meaning: str) -> Callable[[F], F]:
    return click.option(name, multiple=True, metavar=metavar, help=meaning)


@click.command(
    cls=GroupedCommand,
    groups=GROUPS,
    short_help="Compute rigid-body quantities of one configuration.",
    context_settings={"auto_envvar_prefix": "ARTSIM"},
)
@click.argument("model")
@click.argument("quantities", nargs=-1, required=True, metavar="NAME… [NAME:=VALUE]…")
@_named("--q0", "JOINT=VALUE|FILE", "Coordinate of a joint [rad, m, or with a suffix: 30deg]; V,V,…: those of all.")
@_named("--v0", "JOINT=VALUE|FILE", "Velocity of a joint [rad/s, m/s].")
@_named("--a0", "JOINT=VALUE|FILE", "Acceleration of a joint [rad/s², m/s²].")
@_named("--torque", "JOINT=VALUE|FILE", "Joint force for forward_dynamics [N m, N].")
@_named(
    "--wrench",
    "LINK=FX,FY,FZ,TX,TY,TZ",
    "Force and torque on a link, or on each of a pattern, at the point that --at names, in world axes [N, N m].",
)
@_named("--base-pose", "[NAME=]X,Y,Z[,R,P,Y]", "Position [m] and roll, pitch, yaw [rad] of a free base.")
@click.option("--keyframe", metavar="NAME", default="", help="Keyframe of the model file that gives the coordinates.")
@option_of("gravity", SETTINGS["gravity"])
@option_of("reduced", BATCH_SETTINGS["reduced"])
@option_of("at", BATCH_SETTINGS["at"])
@option_of("links", BATCH_SETTINGS["links"], callback=names)
@model_options
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object on stdout.")
@click.option(
    "--csv", "as_csv", is_flag=True, help="Print the results as CSV, with the columns of `artsim batch -o x.csv`."
)
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings.")
def compute(
    model: str,
    quantities: tuple[str, ...],
    reduced: bool,
    at: str,
    links: tuple[str, ...] | None,
    as_json: bool,
    as_csv: bool,
    quiet: bool,
    load_options: OneModelOptions,
    **options: Any,
) -> None:
    """Compute quantities of MODEL (URDF, MJCF or SDF, or - for standard input) in one configuration and print them.

    NAME is gravity, mass_matrix, jacobian, …: `artsim batch --help` lists them. delassus is K = J M⁻¹ Jᵀ of the
    couplings, loops and equalities of tendons; with the rows of contacts, limits and drives too, which depend on the
    motion, runs record it: `artsim run MODEL --steps 1 --record delassus -o FILE`.
    """
    if as_json and as_csv:
        raise UsageError("give --json or --csv, not both")
    arguments = [word for word in quantities if ":=" in word]
    try:
        wanted = resolve([word for word in quantities if word not in arguments])
    except UsageError as error:
        raise UsageError(
            f"{error} (known: {NAMED}, derivatives)" if "known:" not in str(error) else str(error)
        ) from None
    set_arguments(load_options, arguments)
    articulation = load_articulation(model, **load_options)
    config = RunConfig(
        base=articulation.base,
        gravity=options["gravity"],
        keyframe=options["keyframe"],
        q0=read_by_name("q0", options["q0"], articulation),
        v0=read_by_name("v0", options["v0"], articulation),
        base_pose=dict(map(read_base_pose, options["base_pose"])),
    )
    robot = compiled_robot(articulation, config, locks=False)
    links = None if links is None else matching_links(links, robot.links)
    notes: list[str] = []
    given = _inputs(robot, config, options, links, notes)
    notes += untied_axes(robot.model, robot.labels)
    if not quiet:
        warn([*notes, *loops_left_open(articulation, wanted)])
        warn_of_model(articulation.notes, [model, *arguments], reading_words(load_options))
    found = robot.compute(**given, quantities=[*wanted, "status"], reduced=reduced, at=at, links=links)
    status = int(found.pop("status"))
    if status:
        raise StoppedError(f"cannot be computed: {STATUS_MEANING[status]}")
    labels = file_labels(robot.labels)._replace(link=links or robot.links)
    if not OF_CONSTRAINTS.isdisjoint(wanted):
        labels = labels._replace(constraint=robot.constraints(reduced=reduced))
    variables = {name: schema.batch_variable(name, dims_of(name, reduced=reduced)) for name in wanted}
    if as_json:
        click.echo(json.dumps({name: _plain(variables[name], found[name], labels) for name in wanted}))
    elif as_csv:
        _print_csv(given, found, variables, labels)
    else:
        for name in wanted:
            for line in _table(name, variables[name], np.asarray(found[name]), labels):
                click.echo(printable(line))


def _inputs(
    robot: Robot, config: RunConfig, options: Mapping[str, Any], links: Sequence[str] | None, notes: list[str]
) -> dict[str, Any]:
    """The configuration, and the other inputs that are given. Followers follow."""
    model, labels = robot.model, robot.labels
    key = find_keyframe(robot.articulation, config.keyframe)
    qpos = initial_qpos(robot.compiled, config.q0, notes, key.qpos, config.base_pose)
    qvel = np.array(key.qvel or np.zeros(robot.nv))
    for name, value in config.v0.items():
        qvel[labels.dofs.index(name)] = value
    follow_velocities(model, labels, qpos, qvel, config.v0)
    qacc, tau = np.zeros(robot.nv), np.zeros(robot.nv)
    given_qacc = read_by_name("a0", options["a0"], robot.articulation)
    for values, given in ((qacc, given_qacc), (tau, read_by_name("torque", options["torque"], robot.articulation))):
        for name, value in given.items():
            values[labels.dofs.index(name)] = value
    for follower, leader, p in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        if labels.dofs[follower] not in given_qacc:
            x = qpos[model.dof_coord[leader]] if leader >= 0 else 0.0
            slope, bend = at_leader(p, x)[1], bend_at_leader(p, x)
            qacc[follower] = slope * qacc[leader] + bend * qvel[leader] ** 2 if leader >= 0 else 0.0
    inputs = {"qpos": qpos, "qvel": qvel, "qacc": qacc, "tau": tau}
    if options["wrench"]:
        inputs["wrench"] = read_wrenches(options["wrench"], links or robot.links)
    return inputs


def _plain(variable: Variable, values: Array, labels: Labels) -> dict[str, Any]:
    """A result as plain data: dimensions, the labels of their entries, unit and values."""
    dims = variable.dims[1:]
    return {
        "dims": list(dims),
        "labels": {dim: list(labels_of(dim, labels)) for dim in dims},
        "units": unit_of(variable, entry_units(labels)),
        "values": np.asarray(values).tolist(),
    }


def _print_csv(
    given: Mapping[str, Array],
    found: Mapping[str, Array],
    variables: Mapping[str, Variable],
    labels: Labels,
) -> None:
    """Print a line of names and one of numbers."""
    header: list[str] = []
    numbers: list[float] = []
    for name, values in ({"qpos": given["qpos"]} | dict(found)).items():
        dims = INPUTS[name] if name in INPUTS else variables[name].dims[1:]
        header += entry_names((labels_of(dim, labels) for dim in dims), name)
        numbers += np.asarray(values).reshape(-1).tolist()
    csv.writer(sys.stdout, lineterminator="\n").writerows([header, numbers])


def _table(name: str, variable: Variable, values: Array, labels: Labels) -> list[str]:
    """A result as lines: entries below each other, matrices as tables, quantities of links link by link."""
    of = [labels_of(dim, labels) for dim in variable.dims[1:]]
    units = entry_units(labels)
    unit = unit_of(variable, units)
    if values.ndim == 0:
        return [f"{name} [{unit}]: {float(values):.8g}", ""]
    if values.ndim == 1:
        return [
            f"{name} [{unit}]",
            *aligned([(label, f"{x:.8g}") for label, x in zip(of[0], values, strict=True)]),
            "",
        ]
    if values.ndim == 2:
        return [f"{name} [{unit}]", *matrix_lines(of[0], of[1], values), ""]
    lines = []
    for label, part in zip(of[0], values, strict=True):
        lines += [f"{name} of {label} [{unit}]", *matrix_lines(of[1], of[2], part), ""]
    return lines
