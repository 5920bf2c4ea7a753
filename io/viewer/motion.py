"""The motion of a recorded run: link poses and forces of single rows, read from the file as they are requested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.io.reader import Recording
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig

if TYPE_CHECKING:
    from artsim.sim.quantities.robot import Robot

Array = NDArray[Any]


class Poses(NamedTuple):
    """Frames of all links in the world."""

    positions: Array  # (nlink, 3) [m]
    quaternions: Array  # (nlink, 4)


class Forces(NamedTuple):
    """Forces at points, in world axes."""

    points: Array  # (n, 3) [m]
    vectors: Array  # (n, 3) [N]


class Motion:
    """Poses and forces of a recording. Raises UsageError if it holds neither poses nor coordinates."""

    def __init__(self, recording: Recording, articulation: Articulation) -> None:
        self.recording, self._articulation = recording, articulation
        self.rows = recording.n_valid
        self.interval = recording.dt * recording.every  # [s]
        self.links = recording.labels.link
        self._robot: Robot | None = None
        self._has_poses = {"link_position", "link_quaternion"} <= set(recording.variables)
        if not self._has_poses and "qpos" not in recording:
            raise UsageError(f"{recording.path}: holds neither link_position and link_quaternion nor qpos to show")
        if not self.rows:
            raise UsageError(f"{recording.path}: holds no rows to show")
        self.forces_known = tuple(
            name
            for name, there in (
                ("contacts", recording.has_contacts),
                ("joint forces", "incoming_wrench" in recording and self._has_poses),
            )
            if there
        )

    @property
    def duration(self) -> float:
        """The time of the last row [s]."""
        return (self.rows - 1) * self.interval

    def row_at(self, time: float) -> int:
        """The last row at or before `time` [s], clamped to the first and last row."""
        return min(max(int(time / self.interval + 1e-6), 0), self.rows - 1)

    def poses(self, row: int) -> Poses:
        """The poses of one row, as recorded or computed from its qpos."""
        if self._has_poses:
            return Poses(*(self.recording.read(name, row, row + 1)[0] for name in ("link_position", "link_quaternion")))
        found = self.robot.compute(self.recording.read("qpos", row, row + 1)[0], quantities=["link_pose"])
        return Poses(found["link_position"], found["link_quaternion"])

    @property
    def robot(self) -> Robot:
        """The robot of the recording, compiled as for the run."""
        if self._robot is None:
            from artsim.sim.runs.plan import compiled_robot

            config = RunConfig.from_mapping(self.recording.config)
            robot = compiled_robot(self._articulation, config, locks=False)
            if robot.coords != self.recording.labels.coord or robot.links != self.links:
                raise UsageError(f"{self.recording.path}: its coordinates are not those of the robot in it")
            self._robot = robot
        return self._robot

    def forces(self, kind: str, row: int) -> Forces:
        """The forces of one row.

        `contacts`: on the second link of each pair, at the contact points; `joint forces`: of parents on links, at the
        links' frame origins.
        """
        if kind == "contacts":
            found = self.recording.read_contacts(row, row + 1)
            second = np.cross(found["normal"], found["tangent"])
            axes = np.stack([found["normal"], found["tangent"], second], axis=1)
            forces = Forces(found["point"], np.einsum("nd,ndx->nx", found["force"], axes))
        else:
            wrench = self.recording.read("incoming_wrench", row, row + 1)[0]
            forces = Forces(self.poses(row).positions, wrench[:, :3])
        finite = np.isfinite(forces.points).all(axis=1) & np.isfinite(forces.vectors).all(axis=1)
        return Forces(forces.points[finite], forces.vectors[finite])

    @property
    def weight(self) -> float:
        """Weight of the robot on Earth [N], the scale of force arrows; 1 if it has no mass."""
        masses = [link.inertial.mass for link in self._articulation.links if link.inertial]
        return 9.81 * sum(masses) or 1.0
