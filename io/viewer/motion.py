"""The motion of a recorded run: link poses, forces and torques of single rows, read from the file on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from artsim.io.readers.recording import Recording
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.runs.configuration import RunConfig

if TYPE_CHECKING:
    from artsim.sim.quantities.robot import Robot

FORCES = ("contacts", "joint forces", "joint torques")
JOINT_TAUS = ("tau_applied", "tau_drive", "tau_passive", "tau_coupling", "tau_limit")  # what acts within joints
_LEVER = 0.25  # of the robot's size: its weight at this arm is the torque whose arrow is as long as the weight's


class Poses(NamedTuple):
    """Frames of all links in the world."""

    positions: Array  # (nlink, 3) [m]
    quaternions: Array  # (nlink, 4)


class Forces(NamedTuple):
    """Forces or torques at points, in world axes."""

    points: Array  # (n, 3) [m]
    vectors: Array  # (n, 3) [N] or [N m]


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
        self._taus = tuple(name for name in JOINT_TAUS if name in recording and "qpos" in recording)
        self.forces_known = tuple(kind for kind in FORCES if not self.lacks(kind))

    def lacks(self, kind: str) -> str:
        """Why forces of a kind cannot be shown, and what to record for it; empty if they can."""
        if kind == "contacts":
            return "" if self.recording.has_contacts else "no contacts; record a run with --contacts on"
        if "incoming_wrench" in self.recording or any(self._axes(kind)):
            return ""
        return f"no {kind}; record a run with --record +incoming_wrench"

    def told(self, kind: str) -> str:
        """The name of a kind of forces, for a legend."""
        if kind == "contacts":
            return "contact forces"
        if "incoming_wrench" in self.recording:
            return f"{kind}, of parents on links"
        return f"{kind} along axes ({' + '.join(self._taus)})"

    def metres(self, kind: str, size: float) -> float:
        """Length of an arrow [m/N, m/(N m)] that is the robot's size [m] for its weight; for joints, some of which
        bear it all, half of that, and for its torque at a lever."""
        if kind == "contacts":
            return size / self.weight
        return 0.5 * (size if kind == "joint forces" else 1.0 / _LEVER) / self.weight

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
            from artsim.sim.runs.compiled_robot import compiled_robot

            config = RunConfig.from_mapping(self.recording.config)
            robot = compiled_robot(self._articulation, config, locks=False)
            if robot.coords != self.recording.labels.coord or robot.links != self.links:
                raise UsageError(f"{self.recording.path}: its coordinates are not those of the robot in it")
            self._robot = robot
        return self._robot

    def forces(self, kind: str, row: int) -> Forces:
        """The forces or torques of one row.

        `contacts`: on the second link of each pair, at the contact points; `joint forces` and `joint torques`: of
        parents on links, at the links' frame origins, whole where incoming_wrench is recorded, else along the joints'
        axes: what acts within the joints.
        """
        if kind == "contacts":
            forces = self._contacts(row)
        elif "incoming_wrench" in self.recording:
            wrench = self.recording.read("incoming_wrench", row, row + 1)[0]
            part = wrench[:, :3] if kind == "joint forces" else wrench[:, 3:]
            forces = Forces(self.poses(row).positions, part)
        else:
            forces = self._along_axes(kind, row)
        finite = np.isfinite(forces.points).all(axis=1) & np.isfinite(forces.vectors).all(axis=1)
        return Forces(forces.points[finite], forces.vectors[finite])

    def _contacts(self, row: int) -> Forces:
        found = self.recording.read_contacts(row, row + 1)
        second = np.cross(found["normal"], found["tangent"])
        axes = np.stack([found["normal"], found["tangent"], second], axis=1)
        return Forces(found["point"], np.einsum("nd,ndx->nx", found["force"], axes))

    def _along_axes(self, kind: str, row: int) -> Forces:
        """The joints' own forces, or torques, along their axes; a column of a link's Jacobian is such an axis."""
        tau = sum(self.recording.read(name, row, row + 1)[0] for name in self._taus)
        jacobian = self.robot.compute(
            self.recording.read("qpos", row, row + 1)[0], quantities=["jacobian"], at="origin"
        )["jacobian"]
        half = slice(0, 3) if kind == "joint forces" else slice(3, 6)
        vectors = np.zeros((len(self.links), 3))
        links, dofs = self._axes(kind)
        for link, dof in zip(links, dofs, strict=True):
            vectors[link] += jacobian[link, half, dof] * tau[dof]
        moved = sorted(set(links))
        return Forces(self.poses(row).positions[moved], vectors[moved])

    def _axes(self, kind: str) -> tuple[list[int], list[int]]:
        """The links, and the dofs above them, along which there is a force, or a torque; a free base has none."""
        links, dofs = list[int](), list[int]()
        labels, unit = self.recording.labels, "N" if kind == "joint forces" else "N m"
        if not self._taus:
            return links, dofs
        for joint in self._articulation.joints:
            own = [] if joint.kind in ("fixed", "free") else self._dofs_of(joint.name)
            for dof in own:
                if labels.force_units[dof] == unit:
                    links.append(self.links.index(joint.child))
                    dofs.append(dof)
        return links, dofs

    def _dofs_of(self, joint: str) -> list[int]:
        """The dofs of a joint, whose names begin with its own."""
        dofs = self.recording.labels.dof
        return [k for k, name in enumerate(dofs) if name == joint or name.rpartition(".")[0] == joint]

    @property
    def weight(self) -> float:
        """Weight of the robot on Earth [N], the scale of force arrows; 1 if it has no mass."""
        masses = [link.inertial.mass for link in self._articulation.links if link.inertial]
        return 9.81 * sum(masses) or 1.0
