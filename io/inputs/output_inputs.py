"""Results of artsim as inputs of a run: `--control FILE.h5:target=qpos,torque=gravity`.

Rows of a run keep their times; those of a batch, which has none, follow each other step by step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from artsim.io.inputs.input_table import SUFFIXES, InputTable
from artsim.io.readers.open_output import open_output
from artsim.io.readers.recording import Recording
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.sim.foundation.errors import ModelError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot


def read_output_inputs(
    path: str, pairs: Mapping[str, str], robot: Robot, controls: tuple[str, ...], dt: float
) -> InputTable:
    """The variables of a run or batch of a robot as inputs, by the names of its joints or actuators.

    A position is the target of the joint of its coordinate; joints without one (turns of bases and balls) have no such
    target. Raises UsageError: unknown variables, those of other dimensions; ModelError: another robot.
    """
    with open_output(path) as output:
        if isinstance(output, RolloutRecording):
            raise UsageError(f"{path}: is a rollout: `artsim export --sample K` makes a run's table of a sample")
        if isinstance(output, Recording):
            time = np.asarray(output.time, float)
        else:
            time = dt * np.arange(output.rows)
        if not len(time):
            raise ModelError(f"{path}: holds no row")
        columns = {}
        for name, variable in pairs.items():
            if variable not in output.variables:
                raise UsageError(f"{path}: has no {variable!r}{nearest(variable, output.variables)}")
            dims = output.variable(variable).dims[1:]
            if len(dims) != 1:
                raise UsageError(
                    f"{path}: {variable} has entries by {', '.join(dims) or 'nothing'}, want one per joint"
                )
            known = _places(name, robot, controls)
            found = _columns(path, variable, np.asarray(output[variable], float), output.names_of(dims[0]), known)
            columns[SUFFIXES.get(name, name)] = found
        return InputTable(time, columns)


def _places(name: str, robot: Robot, controls: tuple[str, ...]) -> dict[str, int]:
    """The places of an input's entries, by the names of coordinates and dofs, or of actuators."""
    if name == "control":
        return {label: k for k, label in enumerate(controls)}
    coord_of = {int(coord): dof for dof, coord in enumerate(robot.model.dof_coord) if coord >= 0}
    of_coords = {robot.coords[coord]: dof for coord, dof in coord_of.items()}
    return {**of_coords, **{label: k for k, label in enumerate(robot.dofs)}}


def _columns(
    path: str, variable: str, values: Array, labels: tuple[str, ...], known: Mapping[str, int]
) -> tuple[list[int], Array]:
    """The places of inputs, and the columns for them."""
    found = [(known[label], n) for n, label in enumerate(labels) if label in known]
    if not found:
        raise ModelError(f"{path}: {variable} is of another robot: it has {', '.join(labels[:4])}")
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        raise ModelError(f"{path}: {variable} of {labels[int(bad[0][1])]!r} is not finite in row {int(bad[0][0])}")
    return [place for place, _ in found], values[:, [n for _, n in found]]


INPUTS = ("torque", "target", "velocity", "acceleration", "control")
_WORD = re.compile(r"(?P<file>.+\.(?:h5|hdf5)):(?P<pairs>[^/]*)", re.IGNORECASE | re.DOTALL)


def variables_named(word: str) -> tuple[str, dict[str, str]] | None:
    """The file of FILE.h5:INPUT=VARIABLE,… and the variable of each input; None for any other word.

    Raises UsageError for other words than INPUT=VARIABLE.
    """
    match = _WORD.fullmatch(word)
    if match is None or Path(word).exists():
        return None
    pairs = {}
    for pair in match["pairs"].split(","):
        name, equals, variable = (part.strip() for part in pair.partition("="))
        if not equals or not variable:
            raise UsageError(f"--control {word}: {pair!r} is not INPUT=VARIABLE, as target=qpos")
        if name not in INPUTS:
            raise UsageError(f"--control {word}: {name!r} is no input{nearest(name, INPUTS)}")
        pairs[name] = variable
    return match["file"], pairs
