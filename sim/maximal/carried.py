"""The parts that a robot carries beside its tree in one configuration: lines, and tendons and actuators as sums of
lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import Equipment
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.spatial import Real
from artsim.sim.maximal.bodies import BodyStates, Masses
from artsim.sim.maximal.body_actuators import transmissions_of_bodies
from artsim.sim.maximal.body_tendons import Tendons, place_sites, summed, tendon_paths_of_bodies
from artsim.sim.maximal.conversion import body_states
from artsim.sim.maximal.joints import joint_lines
from artsim.sim.maximal.lines import Lines, SummedLines, joined_lines
from artsim.sim.maximal.loops import loop_lines


class Lengths(NamedTuple):
    """Lengths of tendons in poses of the file."""

    rest: Real  # (nt, 2) between which the spring is slack [m or rad]
    in_file: Real  # (nt,)


class Carried(NamedTuple):
    """The lines of joints, loops, tendons and actuators, and the parts that consist of them."""

    lines: Lines
    loops: slice  # their lines
    tendons: Tendons | None
    transmissions: SummedLines | None


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
    e: Equipment | None, model: Model, masses: Masses, state: BodyStates, dof_line: Array, lengths: Lengths | None
) -> Carried:
    """All lines of a robot, but for contacts, and its tendons and actuators."""
    joints = joint_lines(model, masses, state)
    end = len(joints.rate)
    if e is None or lengths is None:
        return Carried(joints, slice(end, end), None, None)
    parts = [joints]
    if len(e.loop_kind):
        parts.append(loop_lines(e, masses, state))
    loops = slice(end, sum(len(part.rate) for part in parts))
    sites = place_sites(e, masses, state)
    paths = tendon_paths_of_bodies(e, model, sites, state.qpos, dof_line, loops.stop)
    acting = paths.line, paths.factor, paths.length
    first = loops.stop + len(paths.lines.rate)
    transmissions = transmissions_of_bodies(e, model, sites, acting, state, dof_line, first)
    lines = joined_lines([*parts, paths.lines, transmissions.lines])
    rate, drift = (summed(paths.line, paths.factor, values) for values in (lines.rate, lines.drift))
    tendons = Tendons(paths.line, paths.factor, paths.length, rate, drift, lengths.rest, lengths.in_file)
    return Carried(lines, loops, tendons, transmissions)
