"""Poses of bodies in numpy, for one-off queries in a process without kernels."""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, PLANAR, PRISMATIC, Model
from artsim.sim.foundation.rotations import Real, rotation_matrix, turn_about_z


def body_poses(model: Model, q: Real) -> tuple[Real, Real]:
    """Rotations (…, nb, 3, 3) and origins (…, nb, 3) [m] of all bodies' internal frames at coordinates q (…, nq)."""
    nb = len(model.body_parent)
    rotation, origin = np.tile(np.eye(3), (*q.shape[:-1], nb, 1, 1)), np.zeros((*q.shape[:-1], nb, 3))
    for i in range(1, nb):
        above = model.body_parent[i]
        turn, place = pose_in_parent(model, i, q)
        origin[..., i, :] = origin[..., above, :] + _turned(rotation[..., above, :, :], place)
        rotation[..., i, :, :] = rotation[..., above, :, :] @ turn
    return rotation, origin


def pose_in_parent(model: Model, i: int, q: Real) -> tuple[Real, Real]:
    """Rotation (…, 3, 3) and origin (…, 3) [m] of body i's internal frame in its parent's, at coordinates q (…, nq)."""
    kind, n = model.joint_type[i], int(model.body_coord[i])
    shift, turn = np.zeros((*q.shape[:-1], 3)), np.eye(3)
    if kind == PRISMATIC:
        shift[..., 2] = q[..., n]
    elif kind == PLANAR:
        shift[..., :2], turn = q[..., n : n + 2], turn_about_z(q[..., n + 2])
    elif kind in (BALL, FREE):
        if kind == FREE:
            shift, n = q[..., n : n + 3], n + 3
        turn = rotation_matrix(np.moveaxis(q[..., n : n + 4], -1, 0))
    else:
        turn = turn_about_z(q[..., n])
    joint = model.tree_rotation[i]
    return joint @ turn, model.tree_position[i] + _turned(joint, shift)


def _turned(rotation: Real, v: Real) -> Real:
    """Vectors (…, 3) turned by matrices (…, 3, 3)."""
    return (rotation @ v[..., None])[..., 0]


def at_leader(p: Real, x: float) -> tuple[float, float]:
    """A coupling's value and slope at its leader's coordinate x."""
    value = p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4])))
    return float(value), float(p[1] + x * (2 * p[2] + x * (3 * p[3] + x * 4 * p[4])))


def bend_at_leader(p: Real, x: float) -> float:
    """A coupling's second derivative at its leader's coordinate x."""
    return float(2 * p[2] + x * (6 * p[3] + x * 12 * p[4]))
