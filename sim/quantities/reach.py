"""Finds configurations for poses of links: what `Robot.ik` and `artsim ik` share of a robot's inverse kinematics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import Compiled, Labels
from artsim.sim.equipment.arrays import Equipped
from artsim.sim.foundation.apart import available_cores
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.pieces import PIECE
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.ik.clear_search import Clear, find_clear
from artsim.sim.ik.solver import PoseSearch
from artsim.sim.ik.wanted_poses import Target, pose_tables
from artsim.sim.quantities.evaluator import numbers


def pose_search(
    articulation: Articulation,
    compiled: Compiled,
    equipped: Equipped | None,
    targets: Sequence[Target],
    *,
    move: Sequence[str] | None = None,
    posture: Mapping[str, float] | None = None,
    tolerance: Sequence[float] = (1e-6, 1e-6),
    attempts: int = 100,
    iterations: int = 50,
    seed: int = 0,
    path: bool = False,
    dt: float | None = None,
) -> PoseSearch:
    """The search for a robot's targets; see Robot.ik. Raises UsageError."""
    most = None if dt is None else _within_speeds(articulation, compiled, dt)
    return PoseSearch(
        compiled,
        equipped,
        targets,
        move=move,
        posture=posture,
        most=most,
        tolerance=tolerance,
        attempts=attempts,
        iterations=iterations,
        seed=seed,
        path=path,
    )


def find_poses(
    compiled: Compiled,
    search: PoseSearch,
    targets: Sequence[Target],
    start: ArrayLike | None,
    threads: int | None,
    clear: Clear | None,
) -> dict[str, Array]:
    """The results for the targets' tables; see Robot.ik. Raises UsageError."""
    position, quaternion, single = pose_tables(targets)
    starts = _starts(compiled, start)
    if len(starts) > 1 and len(position) == 1 and not search.path:
        position, quaternion = (np.repeat(table, len(starts), axis=0) for table in (position, quaternion))
        single = False
    elif len(starts) > 1 and search.path:
        raise UsageError("start: a path has one, (nq,): each row starts where the one before it ended")
    elif len(starts) not in (1, len(position)):
        raise UsageError(f"start has {len(starts)} rows, the targets {len(position)}")
    if threads is None:
        threads = available_cores() if len(position) > PIECE else 1
    if clear is None:
        found = search.solve(position, quaternion, starts, threads)
    elif search.path:
        raise UsageError("clear finds configurations row by row, and path one from the other: give one of them")
    else:
        found = find_clear(search, clear, (position, quaternion), starts, threads, 0)
    return {name: values[0] for name, values in found.items()} if single else found


def _starts(compiled: Compiled, start: ArrayLike | None) -> Real:
    """Starts (N, nq) or (1, nq), with quaternions normalised."""
    nq = len(compiled.labels.coords)
    starts: Real = compiled.reference[None] if start is None else numbers("start", start)
    if starts.ndim not in (1, 2) or starts.shape[-1] != nq:
        raise UsageError(f"start has shape {starts.shape}, want ({nq},) or (N, {nq})")
    starts = starts.reshape(-1, nq)
    odd = np.flatnonzero(~np.isfinite(starts).all(axis=1))
    if len(odd):
        raise UsageError(f"start: row {odd[0]} is not finite: {starts[odd[0]].tolist()}")
    return unit_quaternions(compiled.labels, starts)


def unit_quaternions(labels: Labels, q: Real) -> Real:
    """Coordinates (N, nq) with quaternions of unit length. Raises UsageError naming one of zeros."""
    q = q.copy()
    for name, coords in labels.joint_coords.items():
        dofs = labels.joint_dofs[name]
        if coords.stop - coords.start > dofs.stop - dofs.start:
            part = q[:, coords.stop - 4 : coords.stop]
            length = np.linalg.norm(part, axis=1, keepdims=True)
            if not (length > 1e-9).all():
                raise UsageError(f"start: the quaternion of {name!r} is zero")
            part /= length
    return q


def _within_speeds(articulation: Articulation, compiled: Compiled, dt: float) -> Real:
    """The distance (nv,) that each dof goes within a time at its velocity limit; inf without one."""
    if not isinstance(dt, int | float) or not 0.0 < dt < math.inf:
        raise UsageError(f"dt is {dt!r}, want a time above 0 [s]")
    model, labels = compiled.model, compiled.labels
    most = np.full(len(labels.dofs), np.inf)
    for joint in articulation.joints:
        if joint.velocity is not None and joint.name in labels.joint_dofs:
            most[labels.joint_dofs[joint.name]] = joint.velocity * dt
    for follower, leader, p in zip(
        model.coupling_follower[::-1], model.coupling_leader[::-1], model.coupling_polynomial[::-1], strict=True
    ):
        if leader >= 0 and p[1] and not p[2:].any():
            most[leader] = min(most[leader], most[follower] / abs(p[1]))
    return most
