"""Looks up named links, frames and joints in a compiled model. Kernel-free."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from artsim.sim.articulation.description import Pose
from artsim.sim.articulation.model import Compiled
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.rotations import Real, rotation_matrix


@dataclass(frozen=True)
class Places:
    """Places in a compiled model: links and frames on them, the dofs of joints, and the dofs that move a body."""

    compiled: Compiled
    links: Mapping[str, int]
    sites: Mapping[str, int]
    tendons: Mapping[str, int]
    wraps: Mapping[str, int]
    actuators: Mapping[str, int]

    def frame(self, link: str, pose: Pose) -> tuple[int, Real, Real]:
        """The body and a frame of a link in the body's own frame: rotation (3, 3), position (3,) [m].

        "world" need not be a link.
        """
        turn, place = rotation_matrix(pose.rotation), np.array(pose.position)
        if link not in self.links:
            return 0, turn, place
        model, n = self.compiled.model, self.links[link]
        rotation, position = model.link_rotation[n], model.link_position[n]
        return int(model.link_body[n]), rotation @ turn, position + rotation @ place

    def centre(self, link: str) -> Real:
        """A link's centre of mass in its body's own frame (3,) [m]."""
        if link not in self.links:
            return np.zeros(3)
        model, n = self.compiled.model, self.links[link]
        centre: Real = model.link_position[n] + model.link_rotation[n] @ model.link_com[n]
        return centre

    def first_dof(self, joint: str) -> int:
        """The first dof of a moving joint."""
        return int(self.compiled.labels.joint_dofs[joint].start)

    def dofs_of_body(self, body: int) -> set[int]:
        """The dofs that move a body: those of its joint and of all joints before it."""
        model = self.compiled.model
        found: set[int] = set()
        while body > 0:
            found.update(range(int(model.body_dof[body]), int(model.body_dof[body + 1])))
            body = int(model.body_parent[body])
        return found
