"""The lines of a robot's tendons and actuators in one configuration, and these as sums of lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import Equipment
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.bodies import BodyStates, Masses
from artsim.sim.maximal.conversion import body_states
from artsim.sim.maximal.lines import Lines, joined_lines
from tests.maximal.oracle.body_actuators import transmissions_of_bodies
from tests.maximal.oracle.body_tendons import Tendons, place_sites, tendon_paths_of_bodies
from tests.maximal.oracle.sums import SummedLines, summed


class Lengths(NamedTuple):
    """Lengths of tendons in poses of the file."""

    rest: Real  # (nt, 2) between which the spring is slack [m or rad]
    in_file: Real  # (nt,)


class Carried(NamedTuple):
    """All lines of a robot but for contacts, and its tendons and actuators as sums of them."""

    lines: Lines
    tendons: Tendons
    transmissions: SummedLines


def reference_lengths(e: Equipment, model: Model, masses: Masses, dof_line: Array) -> Lengths:
    """The lengths at the springs' references, where the file gives no other, and in the pose of the file."""
    found = []
    for qpos in (e.relaxed, e.reference):
        state = body_states(model, masses, qpos, np.zeros(len(model.dof_body)))
        paths = tendon_paths_of_bodies(e, model, place_sites(e, masses, state), qpos, dof_line, 0)
        found.append(paths.length)
    rest = np.where(np.isnan(e.tendon_spring), found[0][:, None], e.tendon_spring)
    return Lengths(rest, found[1])


def carried(
    e: Equipment, model: Model, masses: Masses, state: BodyStates, lines: Lines, dof_line: Array, lengths: Lengths
) -> Carried:
    """Tendons and actuators, their lines behind `lines`, those of joints and loops."""
    first, sites = len(lines.rate), place_sites(e, masses, state)
    paths = tendon_paths_of_bodies(e, model, sites, state.qpos, dof_line, first)
    acting = paths.line, paths.factor, paths.length
    further = first + len(paths.lines.rate)
    transmissions = transmissions_of_bodies(e, model, sites, acting, state, dof_line, further)
    lines = joined_lines([lines, paths.lines, transmissions.lines])
    rate, drift = (summed(paths.line, paths.factor, values) for values in (lines.rate, lines.drift))
    tendons = Tendons(paths.line, paths.factor, paths.length, rate, drift, lengths.rest, lengths.in_file)
    return Carried(lines, tendons, transmissions)
