"""Finds the inertia that each joint moves: links without any, and the joints' mobilities, once, in numpy.

A model with a joint that moves no inertia has no forward dynamics, and `run` refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artsim.sim.articulation.description import Tendon
from artsim.sim.articulation.merged_links import SYMMETRIC
from artsim.sim.articulation.model import BALL, BY_PLACE, BY_TURN, FREE, PRISMATIC, REVOLUTE, Compiled, Model
from artsim.sim.articulation.poses import body_poses
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, symmetric

_DENSE = 600  # dofs up to which the whole matrix is tested; above, each dof against its own composite inertia
_ON_AXIS = 1e-20  # relative rounding of the inertia about the joint of a mass exactly on its axis
_SINGULAR = 1e-12  # relative to a pivot's diagonal entry


def singular_links(compiled: Compiled, tendons: Sequence[Tendon] = ()) -> list[str]:
    """Names of the links whose joint moves no inertia at a generic configuration, including the model's couplings.

    GᵀMG is regular exactly when there are none; with `tendons`, M includes the armature of fixed tendons. Masses and
    inertias below any plausible robot's count as they are.
    """
    model = compiled.model
    bad = _singular_dofs(model, fixed_moments(compiled, tendons))
    first_link = {
        int(body): name for name, body in zip(reversed(compiled.labels.links), model.link_body[::-1], strict=True)
    }
    for body in range(len(model.body_parent) - 1, 0, -1):  # bodies between the joints of one link are that link's
        first_link.setdefault(int(model.body_parent[body]), first_link[body])
    return sorted({first_link[int(model.dof_body[k])] for k in bad}, key=compiled.labels.links.index)


def is_singular(model: Model) -> bool:
    """True if some link's joint moves no inertia, leaving tendons out."""
    return len(_singular_dofs(model, np.zeros((0, len(model.dof_body))))) > 0


def _singular_dofs(model: Model, J: Real) -> list[int]:
    """Dofs that move no inertia, including JᵀJ (nv, nv) of tendons."""
    if len(model.dof_body) == 0:
        return []
    frames = Frames(model, _unsymmetric(model))
    carried, about = _carried(model, frames)
    gain = _gains(model)
    if len(model.dof_body) <= _DENSE:
        return _singular_pivots(model, frames, gain, J, about)
    carried = carried + np.square(J).sum(axis=0)
    own = np.zeros(len(model.independent_dof))
    scale = np.zeros_like(own)
    for k, a in enumerate(model.dof_independent):
        if a >= 0:
            own[a] += gain[k] ** 2 * (carried[k] + model.armature[k])
            scale[a] += gain[k] ** 2 * about[k]
    return [int(model.independent_dof[a]) for a in np.flatnonzero(own <= _ON_AXIS * scale)]


def fixed_moments(compiled: Compiled, tendons: Sequence[Tendon]) -> Real:
    """√armature J (k, nv) of the fixed tendons among them."""
    dofs = {name: k for k, name in enumerate(compiled.labels.dofs)}
    fixed = [tendon for tendon in tendons if tendon.kind == "fixed" and tendon.armature > 0]
    J = np.zeros((len(fixed), len(dofs)))
    for n, tendon in enumerate(fixed):
        for point in tendon.path:
            J[n, dofs[point.name]] += point.value * tendon.armature**0.5
    return J


def inverse_inertias(model: Model, q: Real, dofs: Sequence[int]) -> Real:
    """Diagonal entries of M⁻¹ at q (nq,), for some dofs; M is that of the tree, armature included."""
    M = _mass_matrix(model, Frames(model, q))
    units = np.eye(len(M))[:, list(dofs)]
    found: Real = np.einsum("kn,kn->n", units, np.linalg.lstsq(M, units, rcond=None)[0])
    return found


def dof_mobilities(compiled: Compiled) -> Real:
    """(M⁻¹)_kk (nv,), of the reduced M where there are hard couplings, in the pose of the file [1/(kg m²) or 1/kg].

    For large models, and where M is singular in that pose, 1 / M_kk: the mobility of a dof with all others at rest.
    """
    model = compiled.model
    frames = Frames(model, compiled.reference)
    carried, _ = _carried(model, frames)
    own = carried + model.armature
    alone = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0)
    if len(model.dof_body) > _DENSE or len(model.dof_body) == 0:
        return alone
    G = _gain_matrix(model, _gains(model))
    try:
        inverse = np.linalg.inv(G.T @ _mass_matrix(model, frames) @ G)
    except np.linalg.LinAlgError:
        return alone
    J = _hard_rows(model) @ G
    inverse -= inverse @ J.T @ np.linalg.pinv(J @ inverse @ J.T) @ J @ inverse
    mobility = np.einsum("ka,ab,kb->k", G, inverse, G)
    return np.where((mobility >= 0.0) & np.isfinite(mobility), mobility, alone)


def _hard_rows(model: Model) -> Real:
    """(rows, nv) of the hard couplings that are rows, at a generic configuration of their leaders; of axes of balls,
    which are not turned."""
    hard = np.flatnonzero(model.row_frequency < 0)
    J = np.zeros((len(hard), len(model.dof_body)))
    for n, c in enumerate(hard):
        p, leader = model.row_polynomial[c], model.row_leader[c]
        J[n, model.row_follower[c]] = 1.0
        if leader >= 0:
            J[n, leader] -= p[1] + 0.3 * (2 * p[2] + 0.3 * (3 * p[3] + 0.3 * 4 * p[4]))
    of_axes = np.zeros((len(model.axis_dof), len(model.dof_body)))
    for row, turn, dof, terms in zip(of_axes, model.axis_turn, model.axis_dof, model.axis_terms, strict=True):
        row[turn], row[dof] = terms[BY_TURN], terms[BY_PLACE]
    return np.concatenate([J, of_axes])


def _gain_matrix(model: Model, gain: Real) -> Real:
    """G (nv, nu) from the single entry of each row."""
    G = np.zeros((len(gain), len(model.independent_dof)))
    for k, a in enumerate(model.dof_independent):
        if a >= 0:
            G[k, a] = gain[k]
    return G


def _gains(model: Model) -> Real:
    """G's entry of each dof at a generic configuration of its leaders."""
    gain = np.ones(len(model.dof_body))
    for follower, leader, p in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        slope = p[1] + 0.3 * (2 * p[2] + 0.3 * (3 * p[3] + 0.3 * 4 * p[4]))
        gain[follower] = slope * gain[leader] if leader >= 0 else 0.0
    return gain


class Frames:
    """Origins (nb, 3), rotations (nb, 3, 3), axes (nv, 3), at q (nq,)."""

    def __init__(self, model: Model, q: Real) -> None:
        self.rotation, self.origin = body_poses(model, q)
        body = model.dof_body
        kind, place = model.joint_type[body], np.arange(len(body)) - model.body_dof[body]
        turned = (kind == BALL) | ((kind == FREE) & (place >= 3))  # about axes of the body, the others are the joint's
        joint = self.rotation[model.body_parent] @ model.tree_rotation
        frame = np.where(turned[:, None, None], self.rotation[body], joint[body])
        column = np.where((kind == REVOLUTE) | (kind == PRISMATIC), 2, place % 3)
        self.axis = frame[np.arange(len(body)), :, column]


def _unsymmetric(model: Model) -> Real:
    """Coordinates (nq,) without accidental alignments."""
    q = np.zeros(model.body_coord[-1])
    for i in range(1, len(model.body_parent)):
        kind, end = model.joint_type[i], model.body_coord[i + 1]
        angle = 0.4 + 0.7 * np.sin(1.0 + 3.0 * i)
        if kind in (BALL, FREE):
            q[end - 4 : end] = np.array([1.0, 0.3, -0.2, 0.5]) / np.sqrt(1.38)
        else:
            q[end - 1] = 0.1 * angle if kind == PRISMATIC else angle
    return q


def _carried(model: Model, frames: Frames) -> tuple[Real, Real]:
    """Per dof: its composite inertia along its axis, and the trace of that inertia (the scale of rounding)."""
    mass = np.array(model.body_mass)
    moment = np.einsum("bij,bj->bi", frames.rotation, model.body_moment)
    inertia = frames.rotation @ model.body_inertia[:, SYMMETRIC] @ frames.rotation.swapaxes(1, 2)
    for bodies in reversed(levels(model)):
        i = bodies[::-1]
        above = model.body_parent[i]
        d, h, m = frames.origin[i] - frames.origin[above], moment[i], mass[i, None, None]
        shift = 2 * _dot(d, h) * np.eye(3) - _outer(d, h) - _outer(h, d)
        np.add.at(inertia, above, inertia[i] + shift + m * (_dot(d, d) * np.eye(3) - _outer(d, d)))
        np.add.at(moment, above, h + mass[i, None] * d)
        np.add.at(mass, above, mass[i])
    body = model.dof_body
    linear = np.asarray(model.dof_linear, bool)
    along = np.einsum("ki,kij,kj->k", frames.axis, inertia[body], frames.axis)
    return np.where(linear, mass[body], along), np.trace(inertia[body], axis1=1, axis2=2)


def levels(model: Model) -> list[Array]:
    """The bodies of each depth, the nearest to the world first, without the world itself."""
    depth = np.zeros(len(model.body_parent), np.int64)
    for i in range(1, len(depth)):
        depth[i] = depth[model.body_parent[i]] + 1
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)[1:]


def _dot(a: Real, b: Real) -> Real:
    """Scalar products of vectors (n, 3), as (n, 1, 1)."""
    product: Real = a[:, None, :] @ b[:, :, None]
    return product


def _outer(a: Real, b: Real) -> Real:
    product: Real = a[:, :, None] * b[:, None, :]
    return product


def _singular_pivots(model: Model, frames: Frames, gain: Real, J: Real, about: Real) -> list[int]:
    """Dofs whose pivot vanishes when Gᵀ (M + JᵀJ) G is factorised from the tips to the root."""
    M = _mass_matrix(model, frames) + J.T @ J
    G = _gain_matrix(model, gain)
    H = G.T @ M @ G
    scale = np.zeros(len(H))
    for k, a in enumerate(model.dof_independent):
        if a >= 0:
            scale[a] += gain[k] ** 2 * about[k]
    bad = []
    diagonal = np.diag(H).copy()
    for a in range(len(H) - 1, -1, -1):
        if H[a, a] <= max(_SINGULAR * diagonal[a], _ON_AXIS * scale[a]):
            bad.append(int(model.independent_dof[a]))
            continue  # as if the dof were locked
        H[:a, :a] -= np.outer(H[:a, a], H[a, :a]) / H[a, a]
    return bad


def _mass_matrix(model: Model, frames: Frames) -> Real:
    """M with armature, by Σ Jᵀ I J over the bodies: slow and simple."""
    M = np.diag(np.array(model.armature))
    chain: list[list[int]] = [[]]
    for i in range(1, len(model.body_parent)):
        dofs = list(range(model.body_dof[i], model.body_dof[i + 1]))
        chain.append(chain[model.body_parent[i]] + dofs)
        mass = model.body_mass[i]
        R = frames.rotation[i]
        if mass == 0 and not np.any(model.body_inertia[i]):
            continue
        com = model.body_moment[i] / mass if mass else np.zeros(3)
        about_com = symmetric(model.body_inertia[i]) - mass * (com @ com * np.eye(3) - np.outer(com, com))
        centre = frames.origin[i] + R @ com
        index = np.array(chain[i])
        axis = frames.axis[index]
        linear = np.asarray(model.dof_linear[index], bool)[:, None]
        arm = centre - frames.origin[model.dof_body[index]]
        velocity = np.where(linear, axis, np.cross(axis, arm))
        spin = np.where(linear, 0.0, axis)
        M[np.ix_(index, index)] += mass * velocity @ velocity.T + spin @ (R @ about_com @ R.T) @ spin.T
    return M
