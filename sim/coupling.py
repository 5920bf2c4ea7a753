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
def secant_drift(m: Any, s: Any, w: Any, h: Any, f: Any) -> bool:
    """w.drift by the secants of the last step and of that which leads to f.next (nu,); False where none is nonlinear.

    A follower's acceleration is then (g(y + h u⁺) - 2 g(y) + g(y - h u)) / h², and Ġu what of that G u̇ leaves; its
    f.middle is the mean velocity over both steps, (g(y + h u⁺) - g(y - h u)) / 2 h.
    """
    bent = False
    for c in range(m.coupling_follower.shape[0]):
        l = m.coupling_leader[c]
        p = m.coupling_polynomial[c]
        if l >= 0 and (p[2] != 0.0 or p[3] != 0.0 or p[4] != 0.0):
            bent = True
    if not bent:
        return False
    for a in range(f.next.shape[0]):
        k = m.independent_dof[a]
        n = m.dof_coord[k]
        if n >= 0:
            f.stage_qpos[n] = s.qpos[n] + h * f.next[a]
            f.start_qpos[n] = s.qpos[n] - h * s.qvel[k]
    for c in range(m.coupling_follower.shape[0]):
        k = m.coupling_follower[c]
        l = m.coupling_leader[c]
        if l < 0:
            f.stage_qpos[m.dof_coord[k]] = s.qpos[m.dof_coord[k]]
            f.start_qpos[m.dof_coord[k]] = s.qpos[m.dof_coord[k]]
            continue
        n = m.dof_coord[k]
        after, _, _ = follow(m.coupling_polynomial[c], f.stage_qpos[m.dof_coord[l]])
        before, _, _ = follow(m.coupling_polynomial[c], f.start_qpos[m.dof_coord[l]])
        f.stage_qpos[n] = after
        f.start_qpos[n] = before
        a = m.dof_independent[k]
        if a >= 0:
            change = w.gain[k] * (f.next[a] - s.qvel[m.independent_dof[a]])
            f.middle[k] = (after - before) / (2.0 * h)
            w.drift[k] = ((after - s.qpos[n]) - (s.qpos[n] - before)) / (h * h) - change / h
    return True


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
