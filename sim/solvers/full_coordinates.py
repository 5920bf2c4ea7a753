"""H = M̂ + Jᵀ D J by its parts, in full coordinates, for solvers that form neither.

With v = G d, what rows on one independent dof weigh is added to its δ, beside armature, h D + h² K. What weighs on
several at once is kept as wide rows B with a compliance each, and so are the eliminated couplings, v_follower = slope
v_leader or 0, with none. H d = b then is (M + δ) v = b' + Bᵀ λ, B v + compliance λ = 0, with Gᵀ b' = b.

Solutions are refined in d and λ together: a row's weight, a million times an inertia, times the rounding of d would
else be what is left to refine. What is called `p` here is a record of either solver.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.coupling import expand_velocity, reduce_vector
from artsim.sim.dynamics import column_momentum
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import axis_of, cross, symmetric_times


@njit
def note_diagonal(m: Any, w: Any, more: Any, p: Any) -> None:
    """p.diagonal (nv,), armature and more; p.inertia (nu,), M̂'s own diagonal but for what coupled dofs have in common.

    Needs `composites`.
    """
    for k in range(more.shape[0]):
        p.diagonal[k] = m.armature[k] + more[k]
    for a in range(p.inertia.shape[0]):
        p.inertia[a] = 0.0
    for k in range(m.dof_body.shape[0]):
        a = m.dof_independent[k]
        if a >= 0:
            f0, f1, f2, n0, n1, n2 = column_momentum(m, w, k)
            a0, a1, a2 = axis_of(w, k)
            own = a0 * f0 + a1 * f1 + a2 * f2 if m.dof_linear[k] else a0 * n0 + a1 * n1 + a2 * n2
            p.inertia[a] += w.gain[k] * w.gain[k] * (own + p.diagonal[k])


@njit
def note_couplings(m: Any, w: Any, p: Any) -> None:
    """δ without rows into p.weight, and the eliminated couplings as the only wide rows."""
    for k in range(p.weight.shape[0]):
        p.weight[k] = p.diagonal[k]
    p.counts[0] = 0
    for c in range(m.coupling_follower.shape[0]):
        k = m.coupling_follower[c]
        l = m.coupling_leader[c]
        q = _open(p, 0.0)
        p.wide[q, k] = 1.0
        # the leader of all: its gain is 1
        a = m.dof_independent[k]
        if l >= 0 and a >= 0:
            p.wide[q, m.independent_dof[a]] = -w.gain[k]


@njit
def note_rows(m: Any, r: Any, y: Any, p: Any) -> None:
    """Add what the rows weigh now (y.weight and cones' further numbers) to what `note_couplings` left."""
    for n in range(r.number[0]):
        if r.cone[n] == 0:
            y.weight_used[n] = y.weight[n]
            first = r.start[n]
            entries = r.stop[n] - first
            if y.weight[n] <= 0.0 or entries == 0:
                continue
            if entries == 1:
                p.weight[m.independent_dof[r.column[first]]] += y.weight[n] * r.value[first] * r.value[first]
            else:
                _add_to(m, r, p, _open(p, 1.0 / y.weight[n]), n, 1.0)
        elif r.cone[n] > 1:
            y.weight_used[n] = y.weight[n]
            _note_cone(m, r, y, p, n)


@njit
def _note_cone(m: Any, r: Any, y: Any, p: Any, n: Any) -> None:
    """A cone's rows, turned so that D is diagonal.

    At its edge D is one weight along (1, μ e) and another one across e: a reflection that takes e to the first tangent
    takes the other tangents to what is across. Elsewhere the rows are on their own.
    """
    last = n + r.cone[n]
    edge = y.weight1[n] > 0.0
    if y.weight[n] > 0.0:
        q = _open(p, 1.0 / y.weight[n])
        _add_to(m, r, p, q, n, 1.0)
        if edge:
            slope = y.weight1[n] / y.weight[n]
            for row in range(n + 1, last):
                _add_to(m, r, p, q, row, slope * y.unit[row])
    if y.weight3[n] <= 0.0:
        return
    sign = 1.0 if y.unit[n + 1] >= 0.0 else -1.0
    for row in range(n + 2 if edge else n + 1, last):
        q = _open(p, 1.0 / y.weight3[n])
        _add_to(m, r, p, q, row, 1.0)
        if edge:  # 1 - z zᵀ / (1 + |e_1|), z = e + sign(e_1) x
            share = y.unit[row] / (1.0 + abs(y.unit[n + 1]))
            for other in range(n + 1, last):
                _add_to(m, r, p, q, other, -share * (y.unit[other] + (sign if other == n + 1 else 0.0)))


@inlined
def _open(p: Any, compliance: Any) -> Any:
    """A wide row without entries. Returns its number."""
    q = p.counts[0]
    p.counts[0] = q + 1
    p.compliance[q] = compliance
    for k in range(p.wide.shape[1]):
        p.wide[q, k] = 0.0
    return q


@inlined
def _add_to(m: Any, r: Any, p: Any, q: Any, n: Any, scale: Any) -> None:
    for e in range(r.start[n], r.stop[n]):
        p.wide[q, m.independent_dof[r.column[e]]] += scale * r.value[e]


@inlined
def times(p: Any, q: Any, v: Any) -> Any:
    """Wide row q times v (nv,)."""
    value = 0.0
    for k in range(v.shape[0]):
        value += p.wide[q, k] * v[k]
    return value


@njit
def mass_times(m: Any, w: Any, p: Any, d: Any, out: Any) -> None:
    """out (nu,) = M̂ d. O(n)."""
    expand_velocity(m, d, w, p.moved)
    _momenta(m, w, p)
    for k in range(p.moved.shape[0]):
        p.force[k] += p.diagonal[k] * p.moved[k]
    reduce_vector(m, p.force, w, out)


@njit
def start_solve(p: Any, d: Any) -> None:
    """p.right and p.left (nu,) = b, which comes in d; d and p.total, λ of the wide rows, = 0, p.gap = 0."""
    for a in range(d.shape[0]):
        p.right[a] = d[a]
        p.left[a] = d[a]
        d[a] = 0.0
    for q in range(p.counts[0]):
        p.total[q] = 0.0
        p.gap[q] = 0.0


@njit
def note_remainder(m: Any, w: Any, p: Any, d: Any) -> None:
    """What d and p.total leave: p.left (nu,) = b - Gᵀ ((M + δ) v - Bᵀ λ), p.gap (k,) = -(B v + compliance λ)."""
    expand_velocity(m, d, w, p.moved)
    _momenta(m, w, p)
    for k in range(p.moved.shape[0]):
        p.force[k] = -(p.force[k] + p.weight[k] * p.moved[k])
    for q in range(p.counts[0]):
        if p.compliance[q] > 0.0:  # couplings hold in v = G d
            p.gap[q] = -(times(p, q, p.moved) + p.compliance[q] * p.total[q])
            for k in range(p.force.shape[0]):
                p.force[k] += p.total[q] * p.wide[q, k]
    reduce_vector(m, p.force, w, p.left)
    for a in range(d.shape[0]):
        p.left[a] += p.right[a]


@njit
def _momenta(m: Any, w: Any, p: Any) -> None:
    """p.force (nv,) = M v of the bodies alone, stiffened, for v = p.moved: velocities outward, momenta inward."""
    V = p.speed
    F = p.wrench
    nb = m.body_parent.shape[0]
    for i in range(1, nb):
        outward(m, w, V, i)
        for k in range(m.body_dof[i], m.body_dof[i + 1]):
            add_motion(m, w, V, i, k, p.moved[k])
        mass = m.body_mass[i]
        h0 = w.moment[i, 0]
        h1 = w.moment[i, 1]
        h2 = w.moment[i, 2]
        c0, c1, c2 = cross(V[i, 3], V[i, 4], V[i, 5], h0, h1, h2)
        t0, t1, t2 = cross(h0, h1, h2, V[i, 0], V[i, 1], V[i, 2])
        l0, l1, l2 = symmetric_times(w.inertia, i, V[i, 3], V[i, 4], V[i, 5])
        s0, s1, s2 = symmetric_times(w.stiffening, i, V[i, 3], V[i, 4], V[i, 5])
        F[i, 0] = mass * V[i, 0] + c0
        F[i, 1] = mass * V[i, 1] + c1
        F[i, 2] = mass * V[i, 2] + c2
        F[i, 3] = l0 + s0 + t0
        F[i, 4] = l1 + s1 + t1
        F[i, 5] = l2 + s2 + t2
    for i in range(nb - 1, 0, -1):
        for k in range(m.body_dof[i], m.body_dof[i + 1]):
            p.force[k] = along(m, w, F, i, k)
        inward(m, w, F, i)


@inlined
def outward(m: Any, w: Any, V: Any, i: Any) -> None:
    """V[i] (linear, angular) = the velocity that body i has from its parent's."""
    above = m.body_parent[i]
    c0, c1, c2 = cross(V[above, 3], V[above, 4], V[above, 5], w.offset[i, 0], w.offset[i, 1], w.offset[i, 2])
    V[i, 0] = V[above, 0] + c0
    V[i, 1] = V[above, 1] + c1
    V[i, 2] = V[above, 2] + c2
    V[i, 3] = V[above, 3]
    V[i, 4] = V[above, 4]
    V[i, 5] = V[above, 5]


@inlined
def inward(m: Any, w: Any, F: Any, i: Any) -> None:
    """F[parent] += the wrench F[i] (force, torque about body i's origin). The world takes none."""
    above = m.body_parent[i]
    if above > 0:
        c0, c1, c2 = cross(w.offset[i, 0], w.offset[i, 1], w.offset[i, 2], F[i, 0], F[i, 1], F[i, 2])
        F[above, 0] += F[i, 0]
        F[above, 1] += F[i, 1]
        F[above, 2] += F[i, 2]
        F[above, 3] += F[i, 3] + c0
        F[above, 4] += F[i, 4] + c1
        F[above, 5] += F[i, 5] + c2


@inlined
def add_motion(m: Any, w: Any, V: Any, i: Any, k: Any, x: Any) -> None:
    """V[i] += S_k x."""
    a0, a1, a2 = axis_of(w, k)
    first = 0 if m.dof_linear[k] else 3
    V[i, first] += a0 * x
    V[i, first + 1] += a1 * x
    V[i, first + 2] += a2 * x


@inlined
def along(m: Any, w: Any, F: Any, i: Any, k: Any) -> Any:
    """S_kᵀ F[i]."""
    a0, a1, a2 = axis_of(w, k)
    first = 0 if m.dof_linear[k] else 3
    return a0 * F[i, first] + a1 * F[i, first + 1] + a2 * F[i, first + 2]


@njit
def spread(m: Any, b: Any, p: Any) -> None:
    """p.force (nv,): b (nu,) on the independent dofs, nothing on followers: Gᵀ p.force = b."""
    for k in range(p.force.shape[0]):
        p.force[k] = 0.0
    for a in range(b.shape[0]):
        p.force[m.independent_dof[a]] = b[a]


@njit
def factorise_dense(S: Any, n: Any) -> None:
    """S = L D Lᵀ of the leading n × n in place, lower triangle: L below the diagonal, D on it. O(n³)."""
    for i in range(n):
        for j in range(i):
            value = S[i, j]
            for c in range(j):
                value -= S[i, c] * S[j, c]
            S[i, j] = value  # L D for now
        pivot = S[i, i]
        for j in range(i):
            lower = S[i, j] / S[j, j]
            pivot -= lower * S[i, j]
            S[i, j] = lower
        S[i, i] = pivot


@njit
def solve_dense(S: Any, n: Any, x: Any) -> None:
    """x[:n] = S⁻¹ x of the factorised S. O(n²)."""
    for i in range(n):
        for c in range(i):
            x[i] -= S[i, c] * x[c]
    for i in range(n):
        x[i] /= S[i, i]
    for i in range(n - 1, -1, -1):
        for c in range(i):
            x[c] -= S[i, c] * x[i]
