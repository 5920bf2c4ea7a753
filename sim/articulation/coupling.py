"""Eliminates hard couplings: q = g(y), v = G u, a = G u̇ + Ġ u, and forces on followers act through Gᵀ.

A follower is a polynomial of one leader, which may itself be a follower: couplings are stored leaders first, so one
pass gives the composed position, the composed gain (the follower's only entry in its row of G) and the drift Ġ u.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Lanes1, Real, Reals1, Vec3


@inlined
def follow(p: Reals1, x: Real) -> Vec3:
    """Σ p_i xⁱ and its first and second derivative."""
    return (
        p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4]))),
        p[1] + x * (2.0 * p[2] + x * (3.0 * p[3] + x * (4.0 * p[4]))),
        2.0 * p[2] + x * (6.0 * p[3] + x * (12.0 * p[4])),
    )


@njit
def expand(model: Model, q: Lanes1, v: Lanes1, data: Workspace) -> None:
    """Set followers' coordinates and velocities from their leaders', and gains and drifts in data. O(nc)."""
    for c in range(model.coupling_follower.shape[0]):
        f = model.coupling_follower[c]
        l = model.coupling_leader[c]
        p = model.coupling_polynomial[c]
        if l < 0:
            zero = like(0.0, data)
            q[model.dof_coord[f]] = zero + p[0]
            v[f] = zero
            data.gain[f] = zero
            data.drift[f] = zero
        else:
            place, slope, bend = follow(p, q[model.dof_coord[l]])
            q[model.dof_coord[f]] = place
            data.drift[f] = bend * v[l] * v[l] + slope * data.drift[l]
            v[f] = slope * v[l]
            data.gain[f] = slope * data.gain[l]


@njit
def expand_velocity(model: Model, u: Lanes1, data: Workspace, v: Lanes1) -> None:
    """v (nv,) = G u (nu,)."""
    for k in range(v.shape[0]):
        a = model.dof_independent[k]
        if a >= 0:
            v[k] = data.gain[k] * u[a]
        else:
            v[k] = data.gain[k] - data.gain[k]


@njit
def end_velocities(model: Model, data: Workspace, u: Lanes1, h: float, v: Lanes1) -> None:
    """v (nv,) = G u + h Ġ u of the velocities u (nu,) at the end of a step."""
    expand_velocity(model, u, data, v)
    for k in range(v.shape[0]):
        v[k] += h * data.drift[k]


@njit
def reduce_vector(model: Model, x: Lanes1, data: Workspace, r: Lanes1) -> None:
    """r (nu,) = Gᵀ x (nv,)."""
    for a in range(r.shape[0]):
        r[a] = x[model.independent_dof[a]]
    for c in range(model.coupling_follower.shape[0]):
        f = model.coupling_follower[c]
        a = model.dof_independent[f]
        if a >= 0:
            r[a] = r[a] + data.gain[f] * x[f]


@njit
def reduce_matrix(model: Model, data: Workspace, diagonal: Lanes1) -> None:
    """data.factor = Gᵀ (M + diag) G, lower triangle over the elimination tree. O(n d)."""
    H = data.factor
    M = data.mass_matrix
    zero = like(0.0, data)
    coupled = model.coupling_follower.shape[0] > 0
    if coupled:
        for a in range(H.shape[0]):
            j = a
            while j >= 0:
                H[a, j] = zero
                j = model.independent_parent[j]
    for k in range(model.dof_body.shape[0]):
        if not coupled:
            H[k, k] = M[k, k] + diagonal[k]
            j = model.dof_parent[k]
            while j >= 0:
                start = model.dof_run[j]
                for c in range(start, j + 1):
                    H[k, c] = M[k, c]
                j = model.dof_parent[start]
        else:
            a = model.dof_independent[k]
            if a >= 0:
                H[a, a] = H[a, a] + data.gain[k] * data.gain[k] * (M[k, k] + diagonal[k])
                j = model.dof_parent[k]
                while j >= 0:
                    b = model.dof_independent[j]
                    if b >= 0:
                        x = data.gain[k] * data.gain[j] * M[k, j]
                        if a == b:
                            H[a, a] = H[a, a] + 2.0 * x
                        elif a > b:
                            H[a, b] = H[a, b] + x
                        else:
                            H[b, a] = H[b, a] + x
                    j = model.dof_parent[j]
