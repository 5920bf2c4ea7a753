"""Motions from rest to rest with limits of jerk, point to point, by Ruckig (Berscheid and Kröger 2021).

All joints begin and end together, on a straight line if their limits allow it. Followers and joint forces are not
Ruckig's: where a motion exceeds their limits, velocity, acceleration and jerk are lowered together until it does not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artsim.sim.foundation.errors import StoppedError, UsageError
from artsim.sim.foundation.rotations import Real
from artsim.sim.trajectories.joint_motion import Motion, motion, movable
from artsim.sim.trajectories.timing import KEPT, Limits, Mover

_LOOKED_AT = 1001  # moments of a motion
_ROUNDS = 40
_SLOWEST = 1e-3  # share of the limits below which a motion is given up


class JerkLimited(NamedTuple):
    """A motion of Ruckig's between two points."""

    mover: Mover
    trajectory: Any  # ruckig.Trajectory

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.trajectory.duration)

    def at(self, time: Real) -> tuple[Motion, Real]:
        """The motion and the forces at times (rows,) [s]."""
        y, v, a = (
            np.array(each) for each in zip(*(self.trajectory.at_time(t)[:3] for t in time.tolist()), strict=True)
        )
        moved = motion(self.mover.model, self.mover.base, y, v, a)
        return moved, self.mover.forces(moved)


def point_to_point(mover: Mover, start: Real, goal: Real, limits: Limits, jerk: Real) -> JerkLimited:
    """The motion between points (n,) of the movable dofs; largest jerk (n,) [rad/s³ or m/s³].

    Raises UsageError without the package ruckig, StoppedError for a motion that no speed brings within the limits.
    """
    columns, share = movable(mover.model), 1.0
    of_columns = limits.velocity[columns], limits.acceleration[columns], jerk
    for _ in range(_ROUNDS):
        made = JerkLimited(mover, _made(start, goal, of_columns, share))
        moved, force = made.at(np.linspace(0.0, made.duration, _LOOKED_AT))
        with np.errstate(invalid="ignore"):
            parts = (
                np.abs(moved.v) / limits.velocity,
                np.sqrt(np.abs(moved.a) / limits.acceleration),
                np.abs(force) / limits.force,
            )
        worst = [float(each.max(initial=0.0)) for each in parts]
        if max(worst) <= 1.0 + KEPT:
            return made
        share /= 1.0 + 1.05 * (max(worst) - 1.0) + 1e-6
        if share < _SLOWEST:
            break
    k = int(np.argmax(parts[2].max(axis=0)))
    name = mover.dofs[mover.model.independent_dof[k]]
    raise StoppedError(
        f"no speed of this motion is within the limits; {name} needs {parts[2][:, k].max():.3g} times its force"
    )


def _made(start: Real, goal: Real, limits: tuple[Real, Real, Real], share: float) -> Any:
    try:
        import ruckig
    except ImportError:
        raise UsageError('point to point motions need ruckig: pip install "artsim[ruckig]"') from None
    wanted = ruckig.InputParameter(len(start))
    wanted.current_position, wanted.target_position = start.tolist(), goal.tolist()
    # joints without limits do not move: any number serves
    velocity, acceleration, jerk = (
        (share**power * np.where(np.isfinite(each), each, 1.0)).tolist() for power, each in enumerate(limits, start=1)
    )
    wanted.max_velocity, wanted.max_acceleration, wanted.max_jerk = velocity, acceleration, jerk
    wanted.synchronization = ruckig.Synchronization.Phase
    trajectory = ruckig.Trajectory(len(start))
    result = ruckig.Ruckig(len(start)).calculate(wanted, trajectory)
    if result not in (ruckig.Result.Working, ruckig.Result.Finished):
        raise StoppedError(f"Ruckig finds no motion: {result.name}")
    return trajectory
