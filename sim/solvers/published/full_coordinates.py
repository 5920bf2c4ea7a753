"""H = M̂ + Jᵀ D J as separate parts in full coordinates, for propagation and direct, which form neither.

With v = G d, the weight of rows on one independent dof is added to its δ, beside armature and h D + h² K. Rows on
several dofs are kept as wide rows B (k, nv) with a compliance each, and so are the eliminated couplings, v_follower =
slope v_leader or 0, with zero compliance. H d = b is then (M + δ) v = b' + Bᵀ λ, B v + compliance λ = 0, with Gᵀ b' =
b.

Solutions are refined in d and λ together: otherwise the remainder would be dominated by the rounding of d times a row's
weight, which may be a million times an inertia. `parts` is the record of either solver. Inertias and weights are in kg
m² or kg, impulses in N m s or N s, velocities in rad/s or m/s.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand_velocity, reduce_vector
from artsim.sim.articulation.dynamics import along_axis, column_momentum
from artsim.sim.articulation.kinematics import axis_of
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import symmetric_times
from artsim.sim.foundation.records import Reals1, Reals2
from artsim.sim.foundation.spatial import pair_plus, set_six, shifted_force, six_of, velocity_at
from artsim.sim.foundation.vec3 import (
    cross,
    dot,
    plus,
    plus_times,
    put_at,
    row_of,
    times,
    triple_at,
)
from artsim.sim.run_data.run_records import ALL_ROWS, Rows
from artsim.sim.run_data.scratch import WIDE_ROWS, FullWork, NewtonWork


@njit
def note_diagonal(model: Model, data: Workspace, more: Reals1, parts: FullWork) -> None:
    """Set parts.diagonal (nv,) to armature plus `more` (nv,), and parts.inertia (nu,) to M̂'s diagonal without the
    cross terms of coupled dofs. Needs `composites`. O(n).
    """
    for k in range(more.shape[0]):
        parts.diagonal[k] = model.armature[k] + more[k]
    for a in range(parts.inertia.shape[0]):
        parts.inertia[a] = 0.0
    for k in range(model.dof_body.shape[0]):
        a = model.dof_independent[k]
        if a >= 0:
            own = along_axis(model, data, k, column_momentum(model, data, k))
            parts.inertia[a] += data.gain[k] * data.gain[k] * (own + parts.diagonal[k])


@njit
def note_couplings(model: Model, data: Workspace, parts: FullWork) -> None:
    """Set parts.weight (nv,) to δ without rows, and make the eliminated couplings the only wide rows. O(k nv)."""
    for k in range(parts.weight.shape[0]):
        parts.weight[k] = parts.diagonal[k]
    parts.counts[WIDE_ROWS] = 0
    for c in range(model.coupling_follower.shape[0]):
        k = model.coupling_follower[c]
        l = model.coupling_leader[c]
        q = _open(parts, 0.0)
        parts.wide[q, k] = 1.0
        # the root of the chain of leaders, whose gain is 1
        a = model.dof_independent[k]
        if l >= 0 and a >= 0:
            parts.wide[q, model.independent_dof[a]] = -data.gain[k]


@njit
def note_rows(model: Model, rows: Rows, work: NewtonWork, parts: FullWork) -> None:
    """Add the rows' present weights, work.weight to work.weight3, to the result of `note_couplings`. O(k nv +
    entries)."""
    for n in range(rows.number[ALL_ROWS]):
        if rows.cone[n] == 0:
            work.weight_used[n] = work.weight[n]
            first = rows.start[n]
            entries = rows.stop[n] - first
            if work.weight[n] <= 0.0 or entries == 0:
                continue
            if entries == 1:
                parts.weight[model.independent_dof[rows.column[first]]] += (
                    work.weight[n] * rows.value[first] * rows.value[first]
                )
            else:
                _add_to(model, rows, parts, _open(parts, 1.0 / work.weight[n]), n, 1.0)
        elif rows.cone[n] > 1:
            work.weight_used[n] = work.weight[n]
            _note_cone(model, rows, work, parts, n)


@njit
def _note_cone(model: Model, rows: Rows, work: NewtonWork, parts: FullWork, n: int) -> None:
    """Add a cone's rows, rotated so that D is diagonal.

    On its edge D is one weight along (1, μ e) and another across e: a reflection that maps e to the first tangent maps
    the other tangents to those across. Elsewhere the rows are independent.
    """
    last = n + rows.cone[n]
    edge = work.weight1[n] > 0.0
    if work.weight[n] > 0.0:
        q = _open(parts, 1.0 / work.weight[n])
        _add_to(model, rows, parts, q, n, 1.0)
        if edge:
            slope = work.weight1[n] / work.weight[n]
            for row in range(n + 1, last):
                _add_to(model, rows, parts, q, row, slope * work.unit[row])
    if work.weight3[n] <= 0.0:
        return
    sign = 1.0 if work.unit[n + 1] >= 0.0 else -1.0
    for row in range(n + 2 if edge else n + 1, last):
        q = _open(parts, 1.0 / work.weight3[n])
        _add_to(model, rows, parts, q, row, 1.0)
        if edge:  # 1 - z zᵀ / (1 + |e_1|), z = e + sign(e_1) x
            share = work.unit[row] / (1.0 + abs(work.unit[n + 1]))
            for other in range(n + 1, last):
                _add_to(model, rows, parts, q, other, -share * (work.unit[other] + (sign if other == n + 1 else 0.0)))


@inlined
def _open(parts: FullWork, compliance: float) -> int:
    """Append a wide row without entries; return its number."""
    q = parts.counts[WIDE_ROWS]
    parts.counts[WIDE_ROWS] = q + 1
    parts.compliance[q] = compliance
    for k in range(parts.wide.shape[1]):
        parts.wide[q, k] = 0.0
    return q


@inlined
def _add_to(model: Model, rows: Rows, parts: FullWork, q: int, n: int, scale: float) -> None:
    """Add row n, scaled, to wide row q."""
    for e in range(rows.start[n], rows.stop[n]):
        parts.wide[q, model.independent_dof[rows.column[e]]] += scale * rows.value[e]


@inlined
def wide_times(parts: FullWork, q: int, v: Reals1) -> float:
    """Wide row q times v (nv,). O(nv)."""
    value = 0.0
    for k in range(v.shape[0]):
        value += parts.wide[q, k] * v[k]
    return value


@njit
def mass_times(model: Model, data: Workspace, parts: FullWork, d: Reals1, out: Reals1) -> None:
    """out (nu,) = M̂ d. O(n)."""
    expand_velocity(model, d, data, parts.moved)
    _momenta(model, data, parts)
    for k in range(parts.moved.shape[0]):
        parts.force[k] += parts.diagonal[k] * parts.moved[k]
    reduce_vector(model, parts.force, data, out)


@njit
def start_solve(parts: FullWork, d: Reals1) -> None:
    """Start solving for b, passed in d (nu,): parts.right and parts.left (nu,) become b; d, parts.gap and parts.total,
    the λ of the wide rows (k,), become 0.
    """
    for a in range(d.shape[0]):
        parts.right[a] = d[a]
        parts.left[a] = d[a]
        d[a] = 0.0
    for q in range(parts.counts[WIDE_ROWS]):
        parts.total[q] = 0.0
        parts.gap[q] = 0.0


@njit
def note_remainder(model: Model, data: Workspace, parts: FullWork, d: Reals1) -> None:
    """Note the remainder of d (nu,) and parts.total: parts.left (nu,) = b - Gᵀ ((M + δ) v - Bᵀ λ), parts.gap (k,) = -(B
    v + compliance λ). O(n + k nv).
    """
    expand_velocity(model, d, data, parts.moved)
    _momenta(model, data, parts)
    for k in range(parts.moved.shape[0]):
        parts.force[k] = -(parts.force[k] + parts.weight[k] * parts.moved[k])
    for q in range(parts.counts[WIDE_ROWS]):
        if parts.compliance[q] > 0.0:  # couplings hold exactly in v = G d
            parts.gap[q] = -(wide_times(parts, q, parts.moved) + parts.compliance[q] * parts.total[q])
            for k in range(parts.force.shape[0]):
                parts.force[k] += parts.total[q] * parts.wide[q, k]
    reduce_vector(model, parts.force, data, parts.left)
    for a in range(d.shape[0]):
        parts.left[a] += parts.right[a]


@njit
def _momenta(model: Model, data: Workspace, parts: FullWork) -> None:
    """parts.force (nv,) = M v of the bodies alone, stiffened, for v = parts.moved: velocities outward, momenta
    inward."""
    V = parts.speed
    F = parts.wrench
    nb = model.body_parent.shape[0]
    for i in range(1, nb):
        outward(model, data, V, i)
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            add_motion(model, data, V, i, k, parts.moved[k])
        u, w = six_of(V, i)
        h = row_of(data.moment, i)
        spin = plus(symmetric_times(data.inertia, i, w), symmetric_times(data.stiffening, i, w))
        set_six(F, i, (plus(times(model.body_mass[i], u), cross(w, h)), plus(spin, cross(h, u))))
    for i in range(nb - 1, 0, -1):
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            parts.force[k] = along(model, data, F, i, k)
        inward(model, data, F, i)


@inlined
def outward(model: Model, data: Workspace, V: Reals2, i: int) -> None:
    """V[i] (linear, angular) = the velocity that body i has from its parent's (Featherstone 2008, table 5.1)."""
    above = six_of(V, model.body_parent[i])
    set_six(V, i, (velocity_at(above, row_of(data.offset, i)), above[1]))


@inlined
def inward(model: Model, data: Workspace, F: Reals2, i: int) -> None:
    """F[parent] += the wrench F[i] (force, torque about body i's origin). The wrench on the world is not computed."""
    above = model.body_parent[i]
    if above > 0:
        set_six(F, above, pair_plus(six_of(F, above), shifted_force(six_of(F, i), row_of(data.offset, i))))


@inlined
def add_motion(model: Model, data: Workspace, V: Reals2, i: int, k: int, x: float) -> None:
    """V[i] += S_k x."""
    a = axis_of(data, k)
    first = 0 if model.dof_linear[k] else 3
    put_at(V[i], first, plus_times(triple_at(V[i], first), x, a))


@inlined
def along(model: Model, data: Workspace, F: Reals2, i: int, k: int) -> float:
    """S_kᵀ F[i]."""
    a = axis_of(data, k)
    first = 0 if model.dof_linear[k] else 3
    return dot(a, triple_at(F[i], first))


@njit
def spread_over_dofs(model: Model, b: Reals1, parts: FullWork) -> None:
    """parts.force (nv,): b (nu,) on the independent dofs, zero on followers, so that Gᵀ parts.force = b."""
    for k in range(parts.force.shape[0]):
        parts.force[k] = 0.0
    for a in range(b.shape[0]):
        parts.force[model.independent_dof[a]] = b[a]


@njit
def factorise_dense(S: Reals2, n: int) -> None:
    """S = L D Lᵀ of the leading n × n in place, lower triangle: L below the diagonal, D on it. O(n³)."""
    for i in range(n):
        for j in range(i):
            value = S[i, j]
            for c in range(j):
                value -= S[i, c] * S[j, c]
            S[i, j] = value  # holds L D until it is divided
        pivot = S[i, i]
        for j in range(i):
            lower = S[i, j] / S[j, j]
            pivot -= lower * S[i, j]
            S[i, j] = lower
        S[i, i] = pivot


@njit
def solve_dense(S: Reals2, n: int, x: Reals1) -> None:
    """x[:n] = S⁻¹ x of the factorised S. O(n²)."""
    for i in range(n):
        for c in range(i):
            x[i] -= S[i, c] * x[c]
    for i in range(n):
        x[i] /= S[i, i]
    for i in range(n - 1, -1, -1):
        for c in range(i):
            x[c] -= S[i, c] * x[i]
