"""Configurations moved along tangent directions and compared in them, in numpy, for rows of configurations at once."""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.foundation.rotations import Real


def moved(model: Model, q: Real, step: Real) -> Real:
    """q ⊕ step, (…, nq), of steps (…, nv): coordinates add, quaternions turn by the exponential in body axes, as
    integrators.move does."""
    return Tangent(model).moved(q, step)


def move_joint(model: Model, i: int, q: Real, step: Real) -> None:
    """Move the coordinates of body i's joint in q (…, nq) by a step (…, dofs) in its dofs."""
    n, flat = _flat_coordinates(model, i)
    q[..., n : n + flat] += step[..., :flat]
    if flat == step.shape[-1]:
        return
    q[..., n + flat : n + flat + 4] = _turned_by(q[..., n + flat : n + flat + 4], step[..., flat:])


def difference(model: Model, q: Real, start: Real) -> Real:
    """q ⊖ start (…, nv), the step by which `moved` leads from start (nq,) or (…, nq) to q (…, nq); rotations of at most
    π."""
    return Tangent(model).difference(q, start)


def follow_leaders(model: Model, q: Real, v: Real) -> None:
    """Set coordinates and velocities of followers whose couplings are eliminated, in q (…, nq) and v (…, nv), from
    those of their leaders."""
    for follower, leader, p in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        if leader < 0:
            q[..., model.dof_coord[follower]], v[..., follower] = p[0], 0.0
            continue
        x = q[..., model.dof_coord[leader]]
        q[..., model.dof_coord[follower]] = p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4])))
        v[..., follower] = (p[1] + x * (2 * p[2] + x * (3 * p[3] + x * 4 * p[4]))) * v[..., leader]


class Tangent:
    """`moved` and `difference` of one model, whose coordinates are sorted once by how they add."""

    def __init__(self, model: Model) -> None:
        added, turned = list[tuple[int, int]](), list[tuple[int, int]]()
        for i in range(1, len(model.body_parent)):
            k, (n, flat) = int(model.body_dof[i]), _flat_coordinates(model, i)
            added += [(n + m, k + m) for m in range(flat)]
            if flat < model.body_dof[i + 1] - k:
                turned.append((n + flat, k + flat))
        self._coordinate, self._dof = np.array(added, np.int64).reshape(-1, 2).T
        self._turned, self._nv = turned, len(model.dof_body)

    def moved(self, q: Real, step: Real) -> Real:
        """q ⊕ step (…, nq) of steps (…, nv)."""
        found = np.array(np.broadcast_to(q, (*step.shape[:-1], q.shape[-1])))
        found[..., self._coordinate] += step[..., self._dof]
        for n, k in self._turned:
            found[..., n : n + 4] = _turned_by(found[..., n : n + 4], step[..., k : k + 3])
        return found

    def difference(self, q: Real, start: Real) -> Real:
        """q ⊖ start (…, nv)."""
        found = np.zeros((*np.broadcast_shapes(q.shape, start.shape)[:-1], self._nv))
        found[..., self._dof] = q[..., self._coordinate] - start[..., self._coordinate]
        for n, k in self._turned:
            found[..., k : k + 3] = _turn_between(start[..., n : n + 4], q[..., n : n + 4])
        return found


def _flat_coordinates(model: Model, i: int) -> tuple[int, int]:
    """The first coordinate of body i's joint, and the number of those that add."""
    kind, dofs = int(model.joint_type[i]), int(model.body_dof[i + 1] - model.body_dof[i])
    return int(model.body_coord[i]), 0 if kind == BALL else 3 if kind == FREE else dofs


def _turned_by(q: Real, turn: Real) -> Real:
    """Quaternions (…, 4), turned by rotation vectors (…, 3) in their own axes."""
    x, y, z = turn[..., 0], turn[..., 1], turn[..., 2]
    half = 0.5 * np.sqrt(x * x + y * y + z * z)
    w, scale = np.cos(half), 0.5 * np.sinc(half / np.pi)
    x, y, z = scale * x, scale * y, scale * z
    a, b, c, d = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    made = np.empty((*half.shape, 4))
    made[..., 0] = a * w - b * x - c * y - d * z
    made[..., 1] = a * x + b * w + c * z - d * y
    made[..., 2] = a * y - b * z + c * w + d * x
    made[..., 3] = a * z + b * y - c * x + d * w
    return made / np.sqrt((made * made).sum(axis=-1, keepdims=True))


def _turn_between(start: Real, end: Real) -> Real:
    """The rotation vector (…, 3), in the axes of `start`, that turns one quaternion into another."""
    a, b, c, d = start[..., 0], start[..., 1], start[..., 2], start[..., 3]
    w, x, y, z = end[..., 0], end[..., 1], end[..., 2], end[..., 3]
    cosine = a * w + b * x + c * y + d * z
    turn = np.empty((*cosine.shape, 3))
    turn[..., 0] = a * x - b * w - c * z + d * y
    turn[..., 1] = a * y - c * w - d * x + b * z
    turn[..., 2] = a * z - d * w - b * y + c * x
    turn = np.where((cosine < 0)[..., None], -turn, turn)
    sine = np.sqrt((turn * turn).sum(axis=-1))
    half = np.arctan2(sine, np.abs(cosine))
    small = sine < 1e-9
    scale = np.where(small, 2.0, 2.0 * half / np.where(small, 1.0, sine))
    return turn * scale[..., None]
