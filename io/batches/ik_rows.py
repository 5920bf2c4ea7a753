"""The rows of targets that an inverse kinematics looks for: poses typed, on a grid or of a file; points of files."""

from __future__ import annotations

import math
from contextlib import ExitStack
from itertools import product

import numpy as np

from artsim.io.batches.ik_config import BOTH, POSITION, ROTATION, GridAxis, IkConfig
from artsim.io.inputs.pose_files import PoseFile
from artsim.sim.articulation.pose_algebra import quaternion_from_rpy
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array

_MOST_TURNS = 1 << 20  # rotations of a grid


class Poses:
    """The poses of a configuration, by rows: typed ones, those of a grid or of a file; and points, if any are of files.

    Attributes:
        rows: their number.
        names: those of position, quaternion and point that rows have.
    """

    def __init__(self, config: IkConfig) -> None:
        """Raises UsageError and the errors of PoseFile."""
        self._stack = ExitStack()
        self._held: PoseFile | _Typed | _Grid
        if config.input is not None:
            self._held = self._stack.enter_context(PoseFile(config.input, config.link))
        elif config.grid:
            self._held = _Grid(config.grid)
        else:
            self._held = _Typed(config.pose)
        self._points = self._open_points(config)
        files = [each for each in self._points if isinstance(each, PoseFile)]
        rows = {each.rows for each in files} | (
            {self._held.rows} if config.input or config.grid or not files else set()
        )
        if len(rows) > 1:
            raise UsageError(f"targets have different numbers of rows: {', '.join(map(str, sorted(rows)))}")
        self.rows = rows.pop()
        lacking = {POSITION: "position", ROTATION: "quaternion"}.get(config.only)
        if lacking is not None and lacking not in self._held.names:
            raise UsageError(f"--only {config.only}: the poses have no {lacking}")
        self._of_poses = tuple(name for name in self._held.names if config.only == BOTH or name == lacking)
        self.names = (*self._of_poses, *(["point"] if files else []))

    def _open_points(self, config: IkConfig) -> list[PoseFile | Array]:
        """Files of points, opened, and typed points. Raises UsageError, and the errors of PoseFile."""
        found: list[PoseFile | Array] = []
        for name, point in config.points.items():
            if not isinstance(point, str):
                found.append(np.array(point, float))
                continue
            file = self._stack.enter_context(PoseFile(point, (name,)))
            if "position" not in file.names:
                raise UsageError(f"{point}: has no positions, which are wanted as points of {name}")
            found.append(file)
        return found

    def read(self, start: int, stop: int) -> dict[str, Array]:
        """Rows start … stop: position (rows, links, 3) and quaternion (rows, links, 4), those that count, and, if some
        are of files, `point` (rows, points, 3) of all."""
        rows = self._held.read(start, stop)
        found = {name: np.repeat(rows[name], (stop - start) // len(rows[name]), axis=0) for name in self._of_poses}
        if "point" in self.names:
            points = [
                each.read(start, stop)["position"][:, 0]
                if isinstance(each, PoseFile)
                else np.repeat(each[None], stop - start, axis=0)
                for each in self._points
            ]
            found["point"] = np.stack(points, axis=1)
        return found

    def close(self) -> None:
        """Close the file."""
        self._stack.close()


class _Typed:
    """Typed poses, a row of one for each link."""

    rows = 1

    def __init__(self, poses: tuple[tuple[float, ...], ...]) -> None:
        """Raises UsageError if some have rotations and others none."""
        if len({len(pose) > 3 for pose in poses}) > 1:
            raise UsageError("--pose: give positions alone for all links, or a rotation for each")
        self._tables: dict[str, Array] = {}
        if poses:
            self._tables["position"] = np.array([[pose[:3] for pose in poses]])
        if poses and len(poses[0]) > 3:
            turns = [pose[3:] if len(pose) == 7 else quaternion_from_rpy(*pose[3:]) for pose in poses]
            self._tables["quaternion"] = np.array([turns])
        self.names = tuple(self._tables)

    def read(self, start: int, stop: int) -> dict[str, Array]:
        """Its row."""
        return self._tables


class _Grid:
    """Every combination of evenly spaced entries of a pose; the last entry changes fastest."""

    def __init__(self, axes: tuple[GridAxis, ...]) -> None:
        """Raises UsageError for too many rows or rotations."""
        values = [np.linspace(*axis) if len(axis) == 3 else np.array(axis) for axis in axes]
        self._places, turns = values[:3], values[3:]
        self.names = ("position", "quaternion") if turns else ("position",)
        count = math.prod(map(len, turns))
        if count > _MOST_TURNS:
            raise UsageError(f"--grid: {count} rotations of each point, want at most {_MOST_TURNS}")
        self._shape = (*map(len, self._places), count)
        self.rows = math.prod(self._shape)
        made = product(*(each.tolist() for each in turns))
        self._turns = np.array([turn if len(turn) == 4 else quaternion_from_rpy(*turn) for turn in made if turn])

    def read(self, start: int, stop: int) -> dict[str, Array]:
        """Rows start … stop."""
        *place, turn = np.unravel_index(np.arange(start, stop), self._shape)
        position = np.stack([values[k] for values, k in zip(self._places, place, strict=True)], axis=1)
        found = {"position": position[:, None]}
        return found | {"quaternion": self._turns[turn][:, None]} if len(self._turns) else found
