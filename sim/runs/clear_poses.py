"""Configurations whose shapes are not inside each other, nor the ground: found ones are looked at, and others tried."""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.poses import body_poses
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import TOUCHING
from artsim.sim.ik.search_records import REACHED
from artsim.sim.ik.solver import PoseSearch
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.contact_model import touching_shapes
from artsim.sim.runs.overlap_probe import Probe

_AT_ONCE = 1024  # configurations in which bodies are placed at once
ROUNDS = 32  # other starts of a row whose configuration is not clear


class Clearance:
    """Looks for overlaps of the shapes that may touch in a run with --ground, --self-collide."""

    def __init__(self, articulation: Articulation, robot: Robot, notes: list[str], *, ground: bool, own: bool) -> None:
        """Raises UsageError for a robot of which no shapes may touch, ModelError for a mesh that cannot be read."""
        config = RunConfig(base=articulation.base, ground=ground, self_collide=own)
        touching = touching_shapes(articulation, robot, config, notes)
        if touching is None:
            raise UsageError("--clear: no shapes of this robot may touch each other (--self-collide, --ground)")
        self._model = robot.model
        self._probe = Probe(touching, touching.contacts.allowed)

    def depths(self, q: Real) -> Real:
        """The depth (N,) of the deepest overlap in each configuration (N, nq) [m]; 0: none, or a touch."""
        found = np.zeros(len(q))
        for start in range(0, len(q), _AT_ONCE):
            poses = zip(*body_poses(self._model, q[start : start + _AT_ONCE]), strict=True)
            found[start : start + _AT_ONCE] = [self._probe.depth(*pose) for pose in poses]
        found[found <= TOUCHING] = 0.0
        return found


def find_clear(
    search: PoseSearch,
    clearance: Clearance,
    wanted: tuple[Real, Real],
    start: Real,
    threads: int,
    first: int,
) -> dict[str, Array]:
    """The results of a search whose reached rows are clear where one of ROUNDS further starts leads to such a
    configuration, and their `depth` (N,) [m]. `wanted`, `start`, `first`: as PoseSearch.solve takes them."""
    found = search.solve(*wanted, start, threads, first)
    found["depth"] = clearance.depths(found["qpos"])
    for number in range(ROUNDS):
        rows = np.flatnonzero((found["status"] == REACHED) & (found["depth"] > 0))
        if not len(rows):
            break
        others = search.other_starts(start, first + rows, number)
        again = search.solve(wanted[0][rows], wanted[1][rows], others, threads, first)
        search.unwind(again["qpos"], start)
        again["depth"] = clearance.depths(again["qpos"])
        better = (again["status"] == REACHED) & (again["depth"] < found["depth"][rows])
        for name in ("iterations", "attempts"):
            found[name][rows] += again.pop(name)
        for name, values in again.items():
            found[name][rows[better]] = values[better]
    return found
