"""A kernel that solves the articulated system for two diagonals, one after the other (test_articulated_inertias.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

from artsim.sim.articulation.dynamics import articulate, articulated_accelerations
from artsim.sim.articulation.kinematics import kinematics, world_inertia
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.foundation.jit import Entry, njit
from artsim.sim.foundation.records import Lanes1


class Loads(NamedTuple):
    """What the accelerations follow from."""

    before: Lanes1  # (nv,) the diagonal of the first solution
    diagonal: Lanes1  # (nv,) that of the second
    torque: Lanes1  # (nv,)
    kept: Lanes1  # (nv,) accelerations of the second, from what the first one leaves
    anew: Lanes1  # (nv,) the same from nothing


class LoadsBundle(NamedTuple):
    """The loads."""

    data: Loads


@njit
def solve_twice(robot: Any, loads: Any) -> None:
    """Set loads.kept and loads.anew at the robot's state."""
    model, state, data, load = robot.model, robot.state, robot.data, loads.data
    kinematics(model, state.qpos, data)
    world_inertia(model, data)
    articulate(model, load.before, data, False)
    articulate(model, load.diagonal, data, True)
    articulated_accelerations(model, state.qvel, load.torque, data, load.kept)
    articulate(model, load.diagonal, data, False)
    articulated_accelerations(model, state.qvel, load.torque, data, load.anew)


ENTRY = Entry("solve_twice", __name__, (RobotBundle, LoadsBundle))
