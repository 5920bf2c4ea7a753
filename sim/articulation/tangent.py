"""Configurations moved along tangent directions and compared in them, in numpy, for rows of configurations at once."""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.foundation.rotations import Real


def moved(model: Model, q: Real, step: Real) -> Real:
    """q ⊕ step, (…, nq), of steps (…, nv): coordinates add, quaternions turn by the exponential in body axes, as
    integrators.move does."""
    found = np.array(np.broadcast_to(q, (*step.shape[:-1], q.shape[-1])))
    for i in range(1, len(model.body_parent)):
        move_joint(model, i, found, step[..., model.body_dof[i] : model.body_dof[i + 1]])
    return found


def move_joint(model: Model, i: int, q: Real, step: Real) -> None:
    """Move the coordinates of body i's joint in q (…, nq) by a step (…, dofs) in its dofs."""
    n, flat = _flat_coordinates(model, i)
    q[..., n : n + flat] += step[..., :flat]
    if flat == step.shape[-1]:
        return
    turn = step[..., flat:]
    angle = np.linalg.norm(turn, axis=-1)
    w, (x, y, z) = np.cos(0.5 * angle), np.moveaxis(0.5 * np.sinc(0.5 * angle / np.pi)[..., None] * turn, -1, 0)
    a, b, c, d = np.moveaxis(q[..., n + flat : n + flat + 4], -1, 0)
    made = np.stack(
        (
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ),
        axis=-1,
    )
    q[..., n + flat : n + flat + 4] = made / np.linalg.norm(made, axis=-1, keepdims=True)


def difference(model: Model, q: Real, start: Real) -> Real:
    """q ⊖ start (…, nv), the step by which `moved` leads from start (nq,) or (…, nq) to q (…, nq); rotations of at most
    π."""
    found = np.zeros((*np.broadcast_shapes(q.shape, start.shape)[:-1], len(model.dof_body)))
    for i in range(1, len(model.body_parent)):
        k, (n, flat) = int(model.body_dof[i]), _flat_coordinates(model, i)
        found[..., k : k + flat] = q[..., n : n + flat] - start[..., n : n + flat]
        if flat < model.body_dof[i + 1] - k:
            part = slice(n + flat, n + flat + 4)
            found[..., k + flat : k + flat + 3] = _turn_between(start[..., part], q[..., part])
    return found


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


def _flat_coordinates(model: Model, i: int) -> tuple[int, int]:
    """The first coordinate of body i's joint, and the number of those that add."""
    kind, dofs = int(model.joint_type[i]), int(model.body_dof[i + 1] - model.body_dof[i])
    return int(model.body_coord[i]), 0 if kind == BALL else 3 if kind == FREE else dofs


def _turn_between(start: Real, end: Real) -> Real:
    """The rotation vector (…, 3), in the axes of `start`, that turns one quaternion into another."""
    a, b, c, d = np.moveaxis(start, -1, 0)
    w, x, y, z = np.moveaxis(end, -1, 0)
    turn = np.stack(
        (a * x - b * w - c * z + d * y, a * y - c * w - d * x + b * z, a * z - d * w - b * y + c * x), axis=-1
    )
    cosine = a * w + b * x + c * y + d * z
    turn = np.where((cosine < 0)[..., None], -turn, turn)
    sine = np.linalg.norm(turn, axis=-1)
    half = np.arctan2(sine, np.abs(cosine))
    small = sine < 1e-9
    scale = np.where(small, 2.0, 2.0 * half / np.where(small, 1.0, sine))
    return turn * scale[..., None]
