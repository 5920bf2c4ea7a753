"""Clearance: how deep shapes are inside each other, or in the ground, in tables of configurations."""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.poses import body_poses
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import TOUCHING
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.contact_model import touching_shapes
from artsim.sim.runs.overlap_probe import Probe

_AT_ONCE = 1024  # configurations in which bodies are placed at once


class Clearance:
    """Looks for overlaps of the shapes that may touch in a run with --ground, --self-collide.

    Attributes:
        kept: the shapes as which meshes and height fields collide, as files keep them.
    """

    def __init__(
        self, robot: Robot, *, ground: bool = False, self_collide: bool = False, notes: list[str] | None = None
    ) -> None:
        """`ground`: shapes in level ground at height 0 count, too; `notes` receives what is told of shapes.

        Raises UsageError for a robot of which no shapes may touch, ModelError for a mesh that cannot be read.
        """
        config = RunConfig(base=robot.articulation.base, ground=ground, self_collide=self_collide)
        touching = touching_shapes(robot.articulation, robot, config, [] if notes is None else notes)
        if touching is None:
            raise UsageError("--clear: no shapes of this robot may touch each other (--self-collide, --ground)")
        self.kept = touching.kept
        self._model = robot.model
        self._probe = Probe(touching, touching.contacts.allowed)

    def depths(self, q: Real) -> Real:
        """The depth (N,) of the deepest overlap in each configuration (N, nq) [m]; 0: none, or a touch."""
        q = np.asarray(q, float).reshape(-1, int(self._model.body_coord[-1]))
        found = np.zeros(len(q))
        for start in range(0, len(q), _AT_ONCE):
            poses = zip(*body_poses(self._model, q[start : start + _AT_ONCE]), strict=True)
            found[start : start + _AT_ONCE] = [self._probe.depth(*pose) for pose in poses]
        found[found <= TOUCHING] = 0.0
        return found
