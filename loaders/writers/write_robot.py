"""A Robot to a file, for Python: what was changed in its description is written, what was changed in arrays refused."""

from __future__ import annotations

from os import PathLike
from typing import Literal, Unpack

import numpy as np

from artsim.loaders.writers.changes import Changes, with_changes
from artsim.loaders.writers.write import Written, write_articulation
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.foundation.errors import UsageError
from artsim.sim.quantities.robot import Robot

DESCRIBED = (
    *("tree_rotation", "tree_position", "body_mass", "body_moment", "body_inertia", "link_mass", "link_com"),
    *("link_inertia", "armature", "damping", "stiffness", "spring_reference", "friction", "lower", "upper"),
    *("effort", "velocity_limit"),
)
"""The arrays of a model that its description gives."""


def write_robot(
    robot: Robot,
    path: str | PathLike[str],
    *,
    force: bool = False,
    strict: bool = False,
    meshes: Literal["copy", "path"] = "copy",
    **changes: Unpack[Changes],
) -> Written:
    """Write a robot to a file of another format; artsim.write describes the arguments."""
    refuse_changed_arrays(robot)
    return write_articulation(
        with_changes(robot.articulation, changes), path, force=force, strict=strict, meshes=meshes
    )


def refuse_changed_arrays(robot: Robot) -> None:
    """Refuse a robot whose arrays are not those of its description, from which files are written."""
    own = compile_model(robot.articulation).model
    given = robot.model
    for name in DESCRIBED:
        first, second = np.asarray(getattr(own, name)), np.asarray(getattr(given, name))
        if first.shape != second.shape or not np.array_equal(first, second, equal_nan=True):
            raise UsageError(
                f"the robot's array {name!r} was changed, and a file is written from its description: give the change "
                "to write (mass={'link': kg}, limits={'joint': (low, high)}, …)"
            )
