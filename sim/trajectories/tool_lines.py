"""Straight lines of a tool through poses: positions along lines, rotations at an even rate about a fixed axis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.trajectories.curves import ramp, rounded

_ARM = 0.2  # [m/rad] by which turns count in lengths beside metres


class ToolLines(NamedTuple):
    """Lines through k poses, in a length along them; corners are rounded within `radius` of each."""

    at: Real  # (k,) lengths of the poses
    position: Real  # (k, 3) [m]
    quaternion: Real | None  # (k, 4) w, x, y, z; None: any rotation
    radius: Real  # (k,) 0 at the ends

    def poses(self, s: Real) -> tuple[Real, Real | None]:
        """Positions (rows, 3) and quaternions (rows, 4) at lengths (rows,).

        At a corner C between lines along u₁ and u₂ they are C - r(-x) u₁ + r(x) u₂ at the length x from it, where r is
        the ramp that corners of joint paths have, too, and rotations likewise.
        """
        corner = np.clip(np.searchsorted(self.at, s) - 1, 0, len(self.at) - 2)
        corner += s - self.at[corner] > 0.5 * (self.at[corner + 1] - self.at[corner])
        x, radius = s - self.at[corner], self.radius[corner]
        onwards = _ramps(x, radius)
        back = _ramps(-x, radius)
        line = np.diff(self.position, axis=0) / np.diff(self.at)[:, None]
        before, behind = _beside(line, corner)
        position = self.position[corner] - back[:, None] * before + onwards[:, None] * behind
        if self.quaternion is None:
            return position, None
        turn = Rotation.from_quat(self.quaternion, scalar_first=True)
        rate = (turn[:-1].inv() * turn[1:]).as_rotvec() / np.diff(self.at)[:, None]
        before, behind = _beside(rate, corner)
        found = turn[corner] * Rotation.from_rotvec(-back[:, None] * before)
        found = found * Rotation.from_rotvec(onwards[:, None] * behind)
        return position, found.as_quat(scalar_first=True)

    def part(self, first: int, last: int) -> ToolLines:
        """The lines between two poses, with lengths from 0."""
        turn = None if self.quaternion is None else self.quaternion[first : last + 1]
        return ToolLines(
            self.at[first : last + 1] - self.at[first],
            self.position[first : last + 1],
            turn,
            np.zeros(last + 1 - first) if last == first + 1 else self.radius[first : last + 1],
        )


def tool_lines(position: Real, quaternion: Real | None, blend: float) -> list[ToolLines]:
    """The lines through poses, of which none repeats the one before: one for each if they end in corners, else one."""
    step = np.diff(position, axis=0)
    if quaternion is not None:
        turn = Rotation.from_quat(quaternion, scalar_first=True)
        step = np.concatenate([step, _ARM * (turn[:-1].inv() * turn[1:]).as_rotvec()], axis=1)
    at = np.concatenate([[0.0], np.cumsum(np.linalg.norm(step, axis=1))])
    radius = np.zeros(len(at))
    if blend > 0.0:
        radius[1:-1] = [rounded(at, n, blend) for n in range(1, len(at) - 1)]
        return [ToolLines(at, position, quaternion, radius)]
    whole = ToolLines(at, position, quaternion, radius)
    return [whole.part(n, n + 1) for n in range(len(at) - 1)]


def _beside(lines: Real, corner: Array) -> tuple[Real, Real]:
    """The directions of the lines before and behind corners; 0 beyond the ends."""
    none = np.zeros((1, lines.shape[1]))
    around = np.concatenate([none, lines, none])
    return around[corner], around[corner + 1]


def _ramps(x: Real, radius: Real) -> Real:
    found = np.maximum(x, 0.0)
    for size in np.unique(radius[radius > 0]).tolist():
        found = np.where(radius == size, ramp(x, size), found)
    return found
