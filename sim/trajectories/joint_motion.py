"""Motions of the joints of one degree of freedom, with followers after their leaders, in numpy for rows at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import PRISMATIC, REVOLUTE, Model
from artsim.sim.foundation.rotations import Real


class Motion(NamedTuple):
    """Coordinates and their two derivatives by time or by the length of a path, of all joints."""

    q: Real  # (rows, nq)
    v: Real  # (rows, nv)
    a: Real  # (rows, nv)


def movable(model: Model) -> Real:
    """The independent dofs (n,) of hinges and sliders: the columns of a path."""
    kinds = model.joint_type[model.dof_body[model.independent_dof]]
    return model.independent_dof[(kinds == REVOLUTE) | (kinds == PRISMATIC)]


def motion(model: Model, base: Real, y: Real, y1: Real, y2: Real) -> Motion:
    """The motion of all joints from that of the movable ones (rows, n); others stay as in base (nq,)."""
    columns = movable(model)
    rows, nv = len(y), len(model.dof_body)
    q = np.repeat(base[None], rows, axis=0)
    v, a = np.zeros((rows, nv)), np.zeros((rows, nv))
    q[:, model.dof_coord[columns]] = y
    v[:, columns], a[:, columns] = y1, y2
    for follower, leader, p in _couplings(model):
        if leader < 0:
            q[:, model.dof_coord[follower]] = p[0]
            continue
        x = q[:, model.dof_coord[leader]]
        slope = p[1] + x * (2 * p[2] + x * (3 * p[3] + x * 4 * p[4]))
        bend = 2 * p[2] + x * (6 * p[3] + x * 12 * p[4])
        q[:, model.dof_coord[follower]] = p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4])))
        v[:, follower] = slope * v[:, leader]
        a[:, follower] = slope * a[:, leader] + bend * v[:, leader] ** 2
    return Motion(q, v, a)


def slopes(model: Model, q: Real) -> Real:
    """The derivative (rows, nv) of each dof by the independent one that moves it; 0: none does."""
    found = np.zeros((len(q), len(model.dof_body)))
    found[:, model.independent_dof] = 1.0
    for follower, leader, p in _couplings(model):
        if leader >= 0:
            x = q[:, model.dof_coord[leader]]
            found[:, follower] = (p[1] + x * (2 * p[2] + x * (3 * p[3] + x * 4 * p[4]))) * found[:, leader]
    return found


def on_leaders(model: Model, q: Real, forces: Real) -> Real:
    """Forces (rows, nv) of all dofs as those of the independent ones (rows, nu): Gᵀ τ."""
    found = np.zeros((len(q), len(model.independent_dof)))
    weighted = slopes(model, q) * forces
    for k, independent in enumerate(model.dof_independent.tolist()):
        if independent >= 0:
            found[:, independent] += weighted[:, k]
    return found


def resisted(model: Model, q: Real, v: Real) -> tuple[Real, Real, Real]:
    """Forces (rows, nv) that a motor gives against springs, against the Coulomb friction of velocities v, and against
    dampers."""
    at = np.where(model.dof_coord >= 0, q[:, np.maximum(model.dof_coord, 0)], 0.0)
    springs = model.stiffness * (at - model.spring_reference)
    return springs, model.friction * np.sign(v), model.damping * v


def _couplings(model: Model) -> list[tuple[int, int, Real]]:
    columns = (model.coupling_follower.tolist(), model.coupling_leader.tolist(), model.coupling_polynomial)
    return list(zip(*columns, strict=True))
