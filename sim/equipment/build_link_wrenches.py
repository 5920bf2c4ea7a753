"""Builds the arrays of wrenches on links that are inputs of the run. Kernel-free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.description import Pose, Vector3
from artsim.sim.equipment.arrays import LINK_AXES, WORLD_AXES
from artsim.sim.equipment.places import Places
from artsim.sim.foundation.records import Array

COMPONENTS = ("fx", "fy", "fz", "tx", "ty", "tz")
"""The components of a wrench, which the control called LINK.fx, … sets."""


class LinkWrench(NamedTuple):
    """A link on which a wrench acts, and the point and axes of the wrench."""

    link: str
    point: Vector3 | None = (0.0, 0.0, 0.0)  # where the force acts, in link axes [m]; None: centre of mass
    in_link_axes: bool = False  # else the axes of force and torque are the world's

    @property
    def controls(self) -> tuple[str, ...]:
        """The names of its controls."""
        return tuple(f"{self.link}.{component}" for component in COMPONENTS)


def link_wrench_arrays(wrenches: tuple[LinkWrench, ...], places: Places) -> dict[str, Array]:
    """The arrays of wrenches, whose controls follow those of the actuators."""
    points = [
        places.centre(wrench.link) if wrench.point is None else places.frame(wrench.link, Pose(wrench.point))[2]
        for wrench in wrenches
    ]
    return {
        "link_wrench_link": np.array([places.links[wrench.link] for wrench in wrenches], np.int64),
        "link_wrench_point": np.array(points, float).reshape(-1, 3),
        "link_wrench_axes": np.array([LINK_AXES if w.in_link_axes else WORLD_AXES for w in wrenches], np.int64),
    }
