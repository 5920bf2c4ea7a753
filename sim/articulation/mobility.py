"""Mobilities of links in a pose, once, in numpy: time and memory grow with the number of bodies.

The inverse of the operational-space inertia, by the recursion of Kreutz-Delgado, Jain and Rodriguez (1992, "Recursive
formulation of operational space control"): articulated inertias from the tips to the root, mobilities from the root to
the tips. Bodies of one depth are visited at once. Does not need kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from artsim.sim.articulation.merged_links import SYMMETRIC
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.regularity import Frames, levels
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real


def centre_mobilities(model: Model, q: Real) -> Real:
    """The mobility of each link's centre of mass at q (nq,), mean of three axes (nl,) [1/kg]; 0 of fixed ones.

    Motions are (linear, angular) at the origin of a body, in world axes.
    """
    frames = Frames(model, q)
    nb = len(model.body_parent)
    depths = levels(model)
    down = np.tile(np.eye(6), (nb, 1, 1))  # from motions of the parent to those of the body
    down[:, :3, 3:] = -_cross(frames.origin - frames.origin[model.body_parent])
    inertia = _inertias(model, frames)
    linear = model.dof_linear[:, None] == 1
    axis = np.hstack([np.where(linear, frames.axis, 0.0), np.where(linear, 0.0, frames.axis)])
    force, gain = np.zeros((len(axis), 6)), np.zeros(len(axis))
    for bodies in reversed(depths):
        for body, dof in reversed(list(_dofs(model, bodies))):
            force[dof] = np.einsum("nij,nj->ni", inertia[body], axis[dof])
            pivot = np.einsum("ni,ni->n", axis[dof], force[dof]) + model.armature[dof]
            gain[dof] = np.divide(1.0, pivot, out=np.zeros(len(dof)), where=pivot > 0)
            inertia[body] -= np.einsum("n,ni,nj->nij", gain[dof], force[dof], force[dof])
        np.add.at(inertia, model.body_parent[bodies], _congruent(_transposed(down[bodies]), inertia[bodies]))
    mobility = np.zeros((nb, 6, 6))
    for bodies in depths:
        mobility[bodies] = _congruent(down[bodies], mobility[model.body_parent[bodies]])
        for body, dof in _dofs(model, bodies):
            loose = np.eye(6) - np.einsum("n,ni,nj->nij", gain[dof], axis[dof], force[dof])
            own = np.einsum("n,ni,nj->nij", gain[dof], axis[dof], axis[dof])
            mobility[body] = _congruent(loose, mobility[body]) + own
    body = model.link_body
    inside = model.link_position + np.einsum("lij,lj->li", model.link_rotation, model.link_com)
    to_centre = np.tile(np.eye(3, 6), (len(body), 1, 1))
    to_centre[:, :, 3:] = -_cross(np.einsum("lij,lj->li", frames.rotation[body], inside))
    mean: Real = np.trace(_congruent(to_centre, mobility[body]), axis1=1, axis2=2) / 3
    return mean


def _congruent(X: Real, matrix: Real) -> Real:
    """X A Xᵀ (n, r, r) of each X (n, r, c) and A (n, c, c)."""
    product: Real = X @ matrix @ _transposed(X)
    return product


def _transposed(matrices: Real) -> Real:
    return matrices.swapaxes(1, 2)


def _dofs(model: Model, bodies: Array) -> Iterator[tuple[Array, Array]]:
    """The first dof of each of these bodies, then the second dof of each that has two, and so on: bodies and dofs."""
    first, count = model.body_dof[bodies], np.diff(model.body_dof)[bodies]
    for n in range(count.max(initial=0)):
        yield bodies[count > n], first[count > n] + n


def _inertias(model: Model, frames: Frames) -> Real:
    """Spatial inertias (nb, 6, 6) about the origins of bodies, world axes."""
    moment = _cross(np.einsum("bij,bj->bi", frames.rotation, model.body_moment))
    inertia = np.zeros((len(moment), 6, 6))
    inertia[:, :3, :3] = model.body_mass[:, None, None] * np.eye(3)
    inertia[:, :3, 3:], inertia[:, 3:, :3] = -moment, moment
    own = model.body_inertia[:, SYMMETRIC]
    inertia[:, 3:, 3:] = _congruent(frames.rotation, own)
    return inertia


def _cross(vectors: Real) -> Real:
    """Matrices (n, 3, 3) of the cross products with these vectors (n, 3)."""
    return _transposed(np.cross(vectors[:, None, :], np.eye(3)))
