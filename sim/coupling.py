"""Hard couplings, eliminated: q = g(y), v = G u, a = G u̇ + Ġ u, and what acts on followers acts through Gᵀ.

A follower is a polynomial of one leader, which may follow another: couplings come leaders first, so one pass gives
the composed position, the composed gain (the follower's only entry in its row of G) and the drift Ġ u.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import like


@inlined
def follow(p: Any, x: Any) -> Any:
    """Σ p_i xⁱ, its slope and its bend (first and second derivative)."""
    return (
        p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4]))),
        p[1] + x * (2.0 * p[2] + x * (3.0 * p[3] + x * (4.0 * p[4]))),
        2.0 * p[2] + x * (6.0 * p[3] + x * (12.0 * p[4])),
    )


@njit
def expand(m: Any, q: Any, v: Any, w: Any) -> None:
    """Followers' coordinates and velocities from their leaders'; gains and drifts into w. O(nc)."""
    for c in range(m.coupling_follower.shape[0]):
        f = m.coupling_follower[c]
        l = m.coupling_leader[c]
        p = m.coupling_polynomial[c]
        if l < 0:
            zero = like(0.0, w)
            q[m.dof_coord[f]] = zero + p[0]
            v[f] = zero
            w.gain[f] = zero
            w.drift[f] = zero
        else:
            place, slope, bend = follow(p, q[m.dof_coord[l]])
            q[m.dof_coord[f]] = place
            w.drift[f] = bend * v[l] * v[l] + slope * w.drift[l]
            v[f] = slope * v[l]
            w.gain[f] = slope * w.gain[l]


@njit
def expand_velocity(m: Any, u: Any, w: Any, v: Any) -> None:
    """v (nv,) = G u (nu,)."""
    for k in range(v.shape[0]):
        a = m.dof_independent[k]
        if a >= 0:
            v[k] = w.gain[k] * u[a]
        else:
            v[k] = w.gain[k] - w.gain[k]


@njit
def reduce_vector(m: Any, x: Any, w: Any, r: Any) -> None:
    """r (nu,) = Gᵀ x (nv,)."""
    for a in range(r.shape[0]):
        r[a] = x[m.independent_dof[a]]
    for c in range(m.coupling_follower.shape[0]):
        f = m.coupling_follower[c]
        a = m.dof_independent[f]
        if a >= 0:
            r[a] = r[a] + w.gain[f] * x[f]


@njit
def reduce_matrix(m: Any, w: Any, diagonal: Any) -> None:
    """w.factor = Gᵀ (M + diag) G, lower triangle over the elimination tree. O(n d)."""
    H = w.factor
    M = w.mass_matrix
    zero = like(0.0, w)
    coupled = m.coupling_follower.shape[0] > 0
    if coupled:
        for a in range(H.shape[0]):
            j = a
            while j >= 0:
                H[a, j] = zero
                j = m.independent_parent[j]
    for k in range(m.dof_body.shape[0]):
        if not coupled:
            H[k, k] = M[k, k] + diagonal[k]
            j = m.dof_parent[k]
            while j >= 0:
                start = m.dof_run[j]
                for c in range(start, j + 1):
                    H[k, c] = M[k, c]
                j = m.dof_parent[start]
        else:
            a = m.dof_independent[k]
            if a >= 0:
                H[a, a] = H[a, a] + w.gain[k] * w.gain[k] * (M[k, k] + diagonal[k])
                j = m.dof_parent[k]
                while j >= 0:
                    b = m.dof_independent[j]
                    if b >= 0:
                        x = w.gain[k] * w.gain[j] * M[k, j]
                        if a == b:
                            H[a, a] = H[a, a] + 2.0 * x
                        elif a > b:
                            H[a, b] = H[a, b] + x
                        else:
                            H[b, a] = H[b, a] + x
                    j = m.dof_parent[j]
