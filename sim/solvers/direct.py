"""H d = b by a block graph in maximal coordinates: joints are nodes, bodies are edges (seed 001, 1.2).

Every body has its own six velocities and the inverse mass W; joint i holds its body to its parent by six rows J_i, the
locked directions hard, a dof's direction with the compliance 1 / δ of what weighs on it (armature, h D + h² K, rows on
it alone). K = J W Jᵀ + compliance then has the nodes N_i = Σ J W Jᵀ and edges E_ij only where two joints share a body:
a joint's elders under the same parent, and the parent's own joint. Eliminated from the leaves, each as a Cholesky block
of 6 × 6, it fills in nowhere else. Wide rows (couplings, loops, tendons; `full_coordinates`) are nodes after all the
joints, and their edges to the joints are the fill. A dof's row is scaled by √δ: so rows of no weight are there too,
and every block is 6 × 6.

Not every body has an inverse mass: some stand between the joints of one link, some are points. Each therefore gets a
hundred-millionth of the inertia that it carries. What that changes, and rounding in K where light bodies bear heavy
ones, is taken back by two rounds of refinement with the exact H. O(n) for a chain; O(s²) for s joints on one body;
O(k n + k² n + k³) for k wide rows.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import axis_of, cross, symmetric_times
from artsim.sim.model import BALL, FREE, PLANAR, PRISMATIC, REVOLUTE
from artsim.sim.solvers.full_coordinates import factorise_dense, note_remainder, solve_dense, spread, start_solve

_SHARE = 1e-8  # of what a body carries, added to its own inertia
_ROUNDS = 3  # solves; all but the first of them refine


@njit
def factorise_graph(m: Any, w: Any, p: Any) -> None:
    """Ready for `solve_graph` with the weights and wide rows that p holds. Needs `composites`."""
    _bodies(m, w, p)
    for i in range(1, m.body_parent.shape[0]):
        _joint_rows(m, w, p, i)
    for i in range(1, m.body_parent.shape[0]):
        _node(m, p, i)
        _edges(m, p, i)
    for q in range(p.counts[0]):
        _wide_node(m, p, q)
    for i in range(m.body_parent.shape[0] - 1, 0, -1):
        _eliminate(m, p, i)
    factorise_dense(p.small, p.counts[0])


@njit
def solve_graph(m: Any, w: Any, p: Any, d: Any) -> None:
    """d (nu,) = H⁻¹ d."""
    start_solve(p, d)
    for n in range(_ROUNDS):
        if n > 0:
            note_remainder(m, w, p, d)
        spread(m, p.left, p)
        _multipliers(m, p)
        _velocities(m, p)
        for a in range(d.shape[0]):
            d[a] += _dof_velocity(m, p, m.independent_dof[a])


@inlined
def _dof_velocity(m: Any, p: Any, k: Any) -> Any:
    """Of dof k: from the bodies' velocities, or from its own row √δ v + μ = 0 where that is the stiffer."""
    i = m.dof_body[k]
    row = p.dof_row[k]
    if p.stiff[i, row] > 1.0:
        return -p.held[i, row] / p.scale[i, row]
    return p.rate[i, row]


# ------------------------------------------------------------------ the graph


@njit
def _bodies(m: Any, w: Any, p: Any) -> None:
    """p.centre (nb, 3) from the body's origin; W: p.inverse_mass (nb,), p.inverse_inertia (nb, 6) about the centre."""
    for i in range(1, m.body_parent.shape[0]):
        above = m.body_parent[i]
        Y = w.composite_inertia[i]
        mass = m.carried_mass[i]
        turning = Y[0] + Y[3] + Y[5]
        for k in range(m.body_dof[i], m.body_dof[i + 1]):
            if m.dof_linear[k]:
                mass += p.diagonal[k]
            else:
                turning += p.diagonal[k]
        # of what carries nothing at all: as its parent's
        p.share[i, 0] = _SHARE * mass if mass > 0.0 else (p.share[above, 0] if above > 0 else _SHARE)
        p.share[i, 1] = _SHARE * turning if turning > 0.0 else (p.share[above, 1] if above > 0 else _SHARE)
        p.inverse_mass[i] = 1.0 / (m.body_mass[i] + p.share[i, 0])
        c0 = w.moment[i, 0] * p.inverse_mass[i]
        c1 = w.moment[i, 1] * p.inverse_mass[i]
        c2 = w.moment[i, 2] * p.inverse_mass[i]
        p.centre[i, 0] = c0
        p.centre[i, 1] = c1
        p.centre[i, 2] = c2
        h0 = w.moment[i, 0]
        h1 = w.moment[i, 1]
        h2 = w.moment[i, 2]
        I = w.inertia[i]
        S = w.stiffening[i]
        extra = p.share[i, 1]
        _invert(
            p.inverse_inertia,
            i,
            I[0] + S[0] + extra - c1 * h1 - c2 * h2,
            I[1] + S[1] + c0 * h1,
            I[2] + S[2] + c0 * h2,
            I[3] + S[3] + extra - c0 * h0 - c2 * h2,
            I[4] + S[4] + c1 * h2,
            I[5] + S[5] + extra - c0 * h0 - c1 * h1,
        )


@inlined
def _invert(out: Any, i: Any, xx: Any, xy: Any, xz: Any, yy: Any, yz: Any, zz: Any) -> None:
    """out[i] = the inverse of a symmetric 3 × 3."""
    a = yy * zz - yz * yz
    b = xz * yz - xy * zz
    c = xy * yz - xz * yy
    scale = 1.0 / (xx * a + xy * b + xz * c)
    out[i, 0] = a * scale
    out[i, 1] = b * scale
    out[i, 2] = c * scale
    out[i, 3] = (xx * zz - xz * xz) * scale
    out[i, 4] = (xy * xz - xx * yz) * scale
    out[i, 5] = (xx * yy - xy * xy) * scale


@njit
def _joint_rows(m: Any, w: Any, p: Any, i: Any) -> None:
    """The six rows of joint i: force, torque about its body's centre, torque about its parent's (to be taken negative).

    Rows 0 to 2 push along three axes at body i's origin, 3 to 5 turn about three; the dofs' directions are among them.
    """
    R = w.rotation
    k = m.body_dof[i]
    for row in range(6):
        p.scale[i, row] = 1.0
        p.soft[i, row] = 0.0
        for axis in range(3):
            p.push[i, row, axis] = R[i, axis, row] if row < 3 else 0.0
            p.turn[i, row, axis] = R[i, axis, row - 3] if row >= 3 else 0.0
    kind = m.joint_type[i]
    if kind == PLANAR or kind == FREE:  # these push along axes that do not turn with the body
        for row in range(3):
            p.push[i, row, 0], p.push[i, row, 1], p.push[i, row, 2] = axis_of(w, k + row)
    above = m.body_parent[i]
    for row in range(6):
        f = p.push[i, row]
        t = p.turn[i, row]
        c0, c1, c2 = cross(f[0], f[1], f[2], p.centre[i, 0], p.centre[i, 1], p.centre[i, 2])
        d0 = w.offset[i, 0] - p.centre[above, 0]
        d1 = w.offset[i, 1] - p.centre[above, 1]
        d2 = w.offset[i, 2] - p.centre[above, 2]
        e0, e1, e2 = cross(d0, d1, d2, f[0], f[1], f[2])
        p.back[i, row, 0] = t[0] + e0
        p.back[i, row, 1] = t[1] + e1
        p.back[i, row, 2] = t[2] + e2
        t[0] += c0
        t[1] += c1
        t[2] += c2
    for n in range(m.body_dof[i + 1] - k):
        row = _row_of(kind, n)
        p.dof_row[k + n] = row
        p.scale[i, row] = max(p.weight[k + n], 0.0) ** 0.5
        p.soft[i, row] = 1.0


@inlined
def _row_of(kind: Any, n: Any) -> Any:
    """The row of a joint's n-th dof."""
    if kind == REVOLUTE:
        return 5
    if kind == PRISMATIC:
        return 2
    if kind == BALL:
        return 3 + n
    if kind == PLANAR and n == 2:
        return 5
    return n


@njit
def _node(m: Any, p: Any, i: Any) -> None:
    """N_i, lower triangle."""
    above = m.body_parent[i]
    N = p.node[i]
    for a in range(6):
        for b in range(a + 1):
            f = _dot(p.push[i, a], p.push[i, b])
            value = f * p.inverse_mass[i] + _through(p, i, p.turn[i, a], p.turn[i, b])
            if above > 0:
                value += f * p.inverse_mass[above] + _through(p, above, p.back[i, a], p.back[i, b])
            N[a, b] = p.scale[i, a] * p.scale[i, b] * value
        p.stiff[i, a] = N[a, a] * p.soft[i, a]
        N[a, a] += p.soft[i, a]


@njit
def _edges(m: Any, p: Any, i: Any) -> None:
    """E from joint i to its elders, the joints before it on the same parent, and to the parent's own."""
    above = m.body_parent[i]
    if above == 0:
        return
    j = p.elder[i]
    for n in range(p.edge_start[i], p.edge_start[i + 1]):
        other = j if j > 0 else above
        for a in range(6):
            for b in range(6):
                if j > 0:
                    torque = _through(p, above, p.back[i, a], p.back[j, b])
                    value = _dot(p.push[i, a], p.push[j, b]) * p.inverse_mass[above] + torque
                else:
                    torque = _through(p, above, p.back[i, a], p.turn[above, b])
                    value = -_dot(p.push[i, a], p.push[above, b]) * p.inverse_mass[above] - torque
                p.edge[n, a, b] = p.scale[i, a] * p.scale[other, b] * value
        j = p.elder[j]


@inlined
def _dot(a: Any, b: Any) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def _through(p: Any, i: Any, s: Any, t: Any) -> Any:
    """s · W t of two torques on body i."""
    x0, x1, x2 = symmetric_times(p.inverse_inertia, i, t[0], t[1], t[2])
    return s[0] * x0 + s[1] * x1 + s[2] * x2


@njit
def _wide_node(m: Any, p: Any, q: Any) -> None:
    """Wide row q's edges to all joints, p.strip[q] (nb, 6), and to the wide rows before it."""
    for k in range(p.force.shape[0]):
        p.force[k] = p.wide[q, k]
    _answer(m, p, False)
    for i in range(1, m.body_parent.shape[0]):
        for a in range(6):
            p.strip[q, i, a] = p.scale[i, a] * p.rate[i, a]
    for o in range(q + 1):
        p.small[q, o] = _times_rates(m, p, o)
    p.small[q, q] += p.compliance[q]


@njit
def _times_rates(m: Any, p: Any, q: Any) -> Any:
    """Wide row q times the dofs' velocities in p.rate."""
    value = 0.0
    for k in range(p.force.shape[0]):
        value += p.wide[q, k] * p.rate[m.dof_body[k], p.dof_row[k]]
    return value


@njit
def _answer(m: Any, p: Any, held: Any) -> None:
    """p.rate (nb, 6) = J W Jᵀ of the impulses p.force (nv,) on the dofs and, if held, of the joints' own in p.held."""
    nb = m.body_parent.shape[0]
    F = p.wrench
    for i in range(1, nb):
        for c in range(6):
            F[i, c] = 0.0
            p.impulse[i, c] = p.scale[i, c] * p.held[i, c] if held else 0.0
    for k in range(p.force.shape[0]):
        p.impulse[m.dof_body[k], p.dof_row[k]] += p.force[k]
    for i in range(1, nb):
        above = m.body_parent[i]
        for a in range(6):
            x = p.impulse[i, a]
            if x == 0.0:
                continue
            for c in range(3):
                F[i, c] += x * p.push[i, a, c]
                F[i, 3 + c] += x * p.turn[i, a, c]
                F[above, c] -= x * p.push[i, a, c]
                F[above, 3 + c] -= x * p.back[i, a, c]
    V = p.speed
    for i in range(1, nb):
        for c in range(3):
            V[i, c] = F[i, c] * p.inverse_mass[i]
        V[i, 3], V[i, 4], V[i, 5] = symmetric_times(p.inverse_inertia, i, F[i, 3], F[i, 4], F[i, 5])
    for i in range(1, nb):
        above = m.body_parent[i]
        for a in range(6):
            value = 0.0
            for c in range(3):
                value += p.push[i, a, c] * (V[i, c] - V[above, c])
                value += p.turn[i, a, c] * V[i, 3 + c] - p.back[i, a, c] * V[above, 3 + c]
            p.rate[i, a] = value


# ------------------------------------------------------------------ its LDLᵀ, in blocks


@njit
def _eliminate(m: Any, p: Any, i: Any) -> None:
    """Take joint i out: N_i = L Lᵀ, X = L⁻¹ E for each edge, and -Xᵀ X on all pairs of its neighbours."""
    L = p.node[i]
    for a in range(6):
        for b in range(a):
            for c in range(b):
                L[a, b] -= L[a, c] * L[b, c]
            L[a, b] /= L[b, b]
        for c in range(a):
            L[a, a] -= L[a, c] * L[a, c]
        L[a, a] = L[a, a] ** 0.5
    first = p.edge_start[i]
    last = p.edge_start[i + 1]
    for n in range(first, last):
        for b in range(6):
            for a in range(6):
                for c in range(a):
                    p.edge[n, a, b] -= L[a, c] * p.edge[n, c, b]
                p.edge[n, a, b] /= L[a, a]
    for q in range(p.counts[0]):
        _forward(L, p.strip[q, i])
    j = p.elder[i]
    for n in range(first, last):
        _into_node(p.node[j if j > 0 else m.body_parent[i]], p.edge[n])
        if j > 0:  # its edges are to the elders that follow here, in the same order
            for o in range(n + 1, last):
                _into_edge(p.edge[p.edge_start[j] + o - n - 1], p.edge[n], p.edge[o])
        for q in range(p.counts[0]):
            _into_strip(p.strip[q, j if j > 0 else m.body_parent[i]], p.edge[n], p.strip[q, i])
        j = p.elder[j]
    for q in range(p.counts[0]):
        for o in range(q + 1):
            for c in range(6):
                p.small[q, o] -= p.strip[q, i, c] * p.strip[o, i, c]


@inlined
def _forward(L: Any, x: Any) -> None:
    """x = L⁻¹ x."""
    for a in range(6):
        for c in range(a):
            x[a] -= L[a, c] * x[c]
        x[a] /= L[a, a]


@inlined
def _backward(L: Any, x: Any) -> None:
    """x = L⁻ᵀ x."""
    for a in range(5, -1, -1):
        x[a] /= L[a, a]
        for c in range(a):
            x[c] -= L[a, c] * x[a]


@njit
def _into_node(N: Any, X: Any) -> None:
    for a in range(6):
        for b in range(a + 1):
            for c in range(6):
                N[a, b] -= X[c, a] * X[c, b]


@njit
def _into_edge(E: Any, X: Any, Y: Any) -> None:
    for a in range(6):
        for b in range(6):
            for c in range(6):
                E[a, b] -= X[c, a] * Y[c, b]


@inlined
def _into_strip(s: Any, X: Any, x: Any) -> None:
    """s -= Xᵀ x."""
    for a in range(6):
        for c in range(6):
            s[a] -= X[c, a] * x[c]


@njit
def _multipliers(m: Any, p: Any) -> None:
    """p.held (nb, 6) and p.multiplier of the wide rows: impulses that answer those on the dofs, p.force."""
    nb = m.body_parent.shape[0]
    count = p.counts[0]
    _answer(m, p, False)
    for q in range(count):
        p.multiplier[q] = p.gap[q] - _times_rates(m, p, q)
    for i in range(1, nb):
        for a in range(6):
            p.held[i, a] = -p.scale[i, a] * p.rate[i, a]
    for i in range(nb - 1, 0, -1):
        x = p.held[i]
        _forward(p.node[i], x)
        j = p.elder[i]
        for n in range(p.edge_start[i], p.edge_start[i + 1]):
            _into_strip(p.held[j if j > 0 else m.body_parent[i]], p.edge[n], x)
            j = p.elder[j]
        for q in range(count):
            for c in range(6):
                p.multiplier[q] -= p.strip[q, i, c] * x[c]
    solve_dense(p.small, count, p.multiplier)
    for i in range(1, nb):
        x = p.held[i]
        for q in range(count):
            for c in range(6):
                x[c] -= p.strip[q, i, c] * p.multiplier[q]
        j = p.elder[i]
        for n in range(p.edge_start[i], p.edge_start[i + 1]):
            other = p.held[j if j > 0 else m.body_parent[i]]
            for a in range(6):
                for b in range(6):
                    x[a] -= p.edge[n, a, b] * other[b]
            j = p.elder[j]
        _backward(p.node[i], x)


@njit
def _velocities(m: Any, p: Any) -> None:
    """p.rate (nb, 6) that the impulses on the dofs and all multipliers make."""
    for q in range(p.counts[0]):
        p.total[q] += p.multiplier[q]
        for k in range(p.force.shape[0]):
            p.force[k] += p.wide[q, k] * p.multiplier[q]
    _answer(m, p, True)
