"""Solves H d = b by a block graph in maximal coordinates: joints are nodes, bodies are edges.

The method is that of Sakalauskas, Recoil Notes, 2021, 1.2.

Every body has its own six velocities and the inverse mass W; joint i connects its body to its parent by six rows J_i,
the locked directions hard, a dof's direction with the compliance 1 / δ of its diagonal weight (armature, h D + h² K,
rows on it alone). The Delassus matrix K = J W Jᵀ + compliance then has the nodes N_i = Σ J W Jᵀ, and edges E_ij only
where two joints share a body: a joint's elders under the same parent, and the parent's own joint. Eliminated from the
leaves, each as a Cholesky block of 6 × 6, it fills in nowhere else. Wide rows (couplings, loops, tendons;
`full_coordinates`) are nodes after all the joints, and their edges to the joints are the fill. A dof's row is scaled by
√δ, so that rows of zero weight need no special case, and every block is 6 × 6.

Some bodies have no inverse mass: they stand between the joints of one link, or are points. Each body therefore receives
a hundred-millionth of the inertia that it carries. Two rounds of refinement with the exact H correct for the added
inertia, and for rounding in K where light bodies carry heavy ones. O(n) for a chain; O(s²) for s joints on one body;
O(k n + k² n + k³) for k wide rows.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import axis_of
from artsim.sim.articulation.model import BALL, FREE, PLANAR, PRISMATIC, REVOLUTE, Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import symmetric_times
from artsim.sim.foundation.records import Reals1, Reals2
from artsim.sim.foundation.vec3 import cross, dot, minus, row_of, set_row, times
from artsim.sim.run_data.scratch import SHARED_INERTIA, SHARED_MASS, WIDE_ROWS, DirectWork
from artsim.sim.solvers.published.full_coordinates import (
    factorise_dense,
    note_remainder,
    solve_dense,
    spread_over_dofs,
    start_solve,
)

_SHARE = 1e-8  # share of the inertia that a body carries, added to its own inertia
_ROUNDS = 3  # solves, of which all but the first refine


@njit
def factorise_graph(model: Model, data: Workspace, graph: DirectWork) -> None:
    """Prepare `solve_graph` with the weights and wide rows that graph holds. Needs `composites`."""
    _bodies(model, data, graph)
    for i in range(1, model.body_parent.shape[0]):
        _joint_rows(model, data, graph, i)
    for i in range(1, model.body_parent.shape[0]):
        _node(model, graph, i)
        _edges(model, graph, i)
    for q in range(graph.counts[WIDE_ROWS]):
        _wide_node(model, graph, q)
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        _eliminate(model, graph, i)
    factorise_dense(graph.small, graph.counts[WIDE_ROWS])


@njit
def solve_graph(model: Model, data: Workspace, graph: DirectWork, d: Reals1) -> None:
    """d (nu,) = H⁻¹ d: from impulses [N m s or N s] to changes of velocities [rad/s or m/s]."""
    start_solve(graph, d)
    for n in range(_ROUNDS):
        if n > 0:
            note_remainder(model, data, graph, d)
        spread_over_dofs(model, graph.left, graph)
        _multipliers(model, graph)
        _velocities(model, graph)
        for a in range(d.shape[0]):
            d[a] += _dof_velocity(model, graph, model.independent_dof[a])


@inlined
def _dof_velocity(model: Model, graph: DirectWork, k: int) -> float:
    """The velocity of dof k: from the bodies' velocities, or from its own row √δ v + μ = 0 where that is stiffer."""
    i = model.dof_body[k]
    row = graph.dof_row[k]
    if graph.stiff[i, row] > 1.0:
        return -graph.held[i, row] / graph.scale[i, row]
    return graph.rate[i, row]


# ------------------------------------------------------------------ the graph


@njit
def _bodies(model: Model, data: Workspace, graph: DirectWork) -> None:
    """graph.centre (nb, 3) from the body's origin; W: graph.inverse_mass (nb,), graph.inverse_inertia (nb, 6) about the
    centre.
    """
    for i in range(1, model.body_parent.shape[0]):
        above = model.body_parent[i]
        Y = data.composite_inertia[i]
        mass = model.carried_mass[i]
        turning = Y[0] + Y[3] + Y[5]
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            if model.dof_linear[k]:
                mass += graph.diagonal[k]
            else:
                turning += graph.diagonal[k]
        # a body that carries nothing gets its parent's share
        share = graph.share[i]
        share[SHARED_MASS] = _SHARE * mass if mass > 0.0 else (graph.share[above, SHARED_MASS] if above > 0 else _SHARE)
        share[SHARED_INERTIA] = _SHARE * turning
        if not turning > 0.0:
            share[SHARED_INERTIA] = graph.share[above, SHARED_INERTIA] if above > 0 else _SHARE
        graph.inverse_mass[i] = 1.0 / (model.body_mass[i] + graph.share[i, SHARED_MASS])
        c = times(graph.inverse_mass[i], row_of(data.moment, i))
        set_row(graph.centre, i, c)
        h = row_of(data.moment, i)
        I = data.inertia[i]
        S = data.stiffening[i]
        extra = graph.share[i, SHARED_INERTIA]
        _invert(
            graph.inverse_inertia,
            i,
            I[0] + S[0] + extra - c[1] * h[1] - c[2] * h[2],
            I[1] + S[1] + c[0] * h[1],
            I[2] + S[2] + c[0] * h[2],
            I[3] + S[3] + extra - c[0] * h[0] - c[2] * h[2],
            I[4] + S[4] + c[1] * h[2],
            I[5] + S[5] + extra - c[0] * h[0] - c[1] * h[1],
        )


@inlined
def _invert(out: Reals2, i: int, xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> None:
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
def _joint_rows(model: Model, data: Workspace, graph: DirectWork, i: int) -> None:
    """The six rows of joint i: force, torque about its body's centre, torque about its parent's (to be negated).

    Rows 0 to 2 push along three axes at body i's origin, 3 to 5 turn about three; the dofs' directions are among them.
    """
    R = data.rotation
    k = model.body_dof[i]
    for row in range(6):
        graph.scale[i, row] = 1.0
        graph.soft[i, row] = 0.0
        for axis in range(3):
            graph.push[i, row, axis] = R[i, axis, row] if row < 3 else 0.0
            graph.turn[i, row, axis] = R[i, axis, row - 3] if row >= 3 else 0.0
    kind = model.joint_type[i]
    if kind == PLANAR or kind == FREE:  # joints that push along axes that do not turn with the body
        for row in range(3):
            graph.push[i, row, 0], graph.push[i, row, 1], graph.push[i, row, 2] = axis_of(data, k + row)
    above = model.body_parent[i]
    for row in range(6):
        f = graph.push[i, row]
        t = graph.turn[i, row]
        c = cross(f, row_of(graph.centre, i))
        d = minus(row_of(data.offset, i), row_of(graph.centre, above))
        e = cross(d, f)
        graph.back[i, row, 0] = t[0] + e[0]
        graph.back[i, row, 1] = t[1] + e[1]
        graph.back[i, row, 2] = t[2] + e[2]
        t[0] += c[0]
        t[1] += c[1]
        t[2] += c[2]
    for n in range(model.body_dof[i + 1] - k):
        row = _row_of(kind, n)
        graph.dof_row[k + n] = row
        graph.scale[i, row] = max(graph.weight[k + n], 0.0) ** 0.5
        graph.soft[i, row] = 1.0


@inlined
def _row_of(kind: int, n: int) -> int:
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
def _node(model: Model, graph: DirectWork, i: int) -> None:
    """N_i, lower triangle."""
    above = model.body_parent[i]
    N = graph.node[i]
    for a in range(6):
        for b in range(a + 1):
            f = _dot(graph.push[i, a], graph.push[i, b])
            value = f * graph.inverse_mass[i] + _through(graph, i, graph.turn[i, a], graph.turn[i, b])
            if above > 0:
                value += f * graph.inverse_mass[above] + _through(graph, above, graph.back[i, a], graph.back[i, b])
            N[a, b] = graph.scale[i, a] * graph.scale[i, b] * value
        graph.stiff[i, a] = N[a, a] * graph.soft[i, a]
        N[a, a] += graph.soft[i, a]


@njit
def _edges(model: Model, graph: DirectWork, i: int) -> None:
    """E from joint i to its elders, the joints before it on the same parent, and to the parent's own."""
    above = model.body_parent[i]
    if above == 0:
        return
    j = graph.elder[i]
    for n in range(graph.edge_start[i], graph.edge_start[i + 1]):
        other = j if j > 0 else above
        for a in range(6):
            for b in range(6):
                if j > 0:
                    torque = _through(graph, above, graph.back[i, a], graph.back[j, b])
                    value = _dot(graph.push[i, a], graph.push[j, b]) * graph.inverse_mass[above] + torque
                else:
                    torque = _through(graph, above, graph.back[i, a], graph.turn[above, b])
                    value = -_dot(graph.push[i, a], graph.push[above, b]) * graph.inverse_mass[above] - torque
                graph.edge[n, a, b] = graph.scale[i, a] * graph.scale[other, b] * value
        j = graph.elder[j]


@inlined
def _dot(a: Reals1, b: Reals1) -> float:
    return dot(a, b)


@inlined
def _through(graph: DirectWork, i: int, s: Reals1, t: Reals1) -> float:
    """s · W t of two torques on body i."""
    x = symmetric_times(graph.inverse_inertia, i, t)
    return dot(s, x)


@njit
def _wide_node(model: Model, graph: DirectWork, q: int) -> None:
    """Wide row q's edges to all joints, graph.strip[q] (nb, 6), and to the wide rows before it."""
    for k in range(graph.force.shape[0]):
        graph.force[k] = graph.wide[q, k]
    _set_rates(model, graph, False)
    for i in range(1, model.body_parent.shape[0]):
        for a in range(6):
            graph.strip[q, i, a] = graph.scale[i, a] * graph.rate[i, a]
    for o in range(q + 1):
        graph.small[q, o] = _times_rates(model, graph, o)
    graph.small[q, q] += graph.compliance[q]


@njit
def _times_rates(model: Model, graph: DirectWork, q: int) -> float:
    """Wide row q times the dofs' velocities in graph.rate."""
    value = 0.0
    for k in range(graph.force.shape[0]):
        value += graph.wide[q, k] * graph.rate[model.dof_body[k], graph.dof_row[k]]
    return value


@njit
def _set_rates(model: Model, graph: DirectWork, held: bool) -> None:
    """graph.rate (nb, 6) = J W Jᵀ of the impulses graph.force (nv,) on the dofs and, if held, of the joints' own in
    graph.held.
    """
    nb = model.body_parent.shape[0]
    F = graph.wrench
    for i in range(1, nb):
        for c in range(6):
            F[i, c] = 0.0
            graph.impulse[i, c] = graph.scale[i, c] * graph.held[i, c] if held else 0.0
    for k in range(graph.force.shape[0]):
        graph.impulse[model.dof_body[k], graph.dof_row[k]] += graph.force[k]
    for i in range(1, nb):
        above = model.body_parent[i]
        for a in range(6):
            x = graph.impulse[i, a]
            if x == 0.0:
                continue
            for c in range(3):
                F[i, c] += x * graph.push[i, a, c]
                F[i, 3 + c] += x * graph.turn[i, a, c]
                F[above, c] -= x * graph.push[i, a, c]
                F[above, 3 + c] -= x * graph.back[i, a, c]
    V = graph.speed
    for i in range(1, nb):
        for c in range(3):
            V[i, c] = F[i, c] * graph.inverse_mass[i]
        V[i, 3], V[i, 4], V[i, 5] = symmetric_times(graph.inverse_inertia, i, (F[i, 3], F[i, 4], F[i, 5]))
    for i in range(1, nb):
        above = model.body_parent[i]
        for a in range(6):
            value = 0.0
            for c in range(3):
                value += graph.push[i, a, c] * (V[i, c] - V[above, c])
                value += graph.turn[i, a, c] * V[i, 3 + c] - graph.back[i, a, c] * V[above, 3 + c]
            graph.rate[i, a] = value


# ------------------------------------------------------------------ LDLᵀ in blocks


@njit
def _eliminate(model: Model, graph: DirectWork, i: int) -> None:
    """Eliminate joint i: N_i = L Lᵀ, X = L⁻¹ E for each edge, and -Xᵀ X on all pairs of its neighbours."""
    L = graph.node[i]
    for a in range(6):
        for b in range(a):
            for c in range(b):
                L[a, b] -= L[a, c] * L[b, c]
            L[a, b] /= L[b, b]
        for c in range(a):
            L[a, a] -= L[a, c] * L[a, c]
        L[a, a] = L[a, a] ** 0.5
    first = graph.edge_start[i]
    last = graph.edge_start[i + 1]
    for n in range(first, last):
        for b in range(6):
            for a in range(6):
                for c in range(a):
                    graph.edge[n, a, b] -= L[a, c] * graph.edge[n, c, b]
                graph.edge[n, a, b] /= L[a, a]
    for q in range(graph.counts[WIDE_ROWS]):
        _forward(L, graph.strip[q, i])
    j = graph.elder[i]
    for n in range(first, last):
        _into_node(graph.node[j if j > 0 else model.body_parent[i]], graph.edge[n])
        if j > 0:  # the edges of j are to the elders that follow here, in this order
            for o in range(n + 1, last):
                _into_edge(graph.edge[graph.edge_start[j] + o - n - 1], graph.edge[n], graph.edge[o])
        for q in range(graph.counts[WIDE_ROWS]):
            _into_strip(graph.strip[q, j if j > 0 else model.body_parent[i]], graph.edge[n], graph.strip[q, i])
        j = graph.elder[j]
    for q in range(graph.counts[WIDE_ROWS]):
        for o in range(q + 1):
            for c in range(6):
                graph.small[q, o] -= graph.strip[q, i, c] * graph.strip[o, i, c]


@inlined
def _forward(L: Reals2, x: Reals1) -> None:
    """x = L⁻¹ x."""
    for a in range(6):
        for c in range(a):
            x[a] -= L[a, c] * x[c]
        x[a] /= L[a, a]


@inlined
def _backward(L: Reals2, x: Reals1) -> None:
    """x = L⁻ᵀ x."""
    for a in range(5, -1, -1):
        x[a] /= L[a, a]
        for c in range(a):
            x[c] -= L[a, c] * x[a]


@njit
def _into_node(N: Reals2, X: Reals2) -> None:
    for a in range(6):
        for b in range(a + 1):
            for c in range(6):
                N[a, b] -= X[c, a] * X[c, b]


@njit
def _into_edge(E: Reals2, X: Reals2, Y: Reals2) -> None:
    for a in range(6):
        for b in range(6):
            for c in range(6):
                E[a, b] -= X[c, a] * Y[c, b]


@inlined
def _into_strip(s: Reals1, X: Reals2, x: Reals1) -> None:
    """s -= Xᵀ x."""
    for a in range(6):
        for c in range(6):
            s[a] -= X[c, a] * x[c]


@njit
def _multipliers(model: Model, graph: DirectWork) -> None:
    """graph.held (nb, 6) and graph.multiplier of the wide rows: reactions to the impulses on the dofs, graph.force."""
    nb = model.body_parent.shape[0]
    count = graph.counts[WIDE_ROWS]
    _set_rates(model, graph, False)
    for q in range(count):
        graph.multiplier[q] = graph.gap[q] - _times_rates(model, graph, q)
    for i in range(1, nb):
        for a in range(6):
            graph.held[i, a] = -graph.scale[i, a] * graph.rate[i, a]
    for i in range(nb - 1, 0, -1):
        x = graph.held[i]
        _forward(graph.node[i], x)
        j = graph.elder[i]
        for n in range(graph.edge_start[i], graph.edge_start[i + 1]):
            _into_strip(graph.held[j if j > 0 else model.body_parent[i]], graph.edge[n], x)
            j = graph.elder[j]
        for q in range(count):
            for c in range(6):
                graph.multiplier[q] -= graph.strip[q, i, c] * x[c]
    solve_dense(graph.small, count, graph.multiplier)
    for i in range(1, nb):
        x = graph.held[i]
        for q in range(count):
            for c in range(6):
                x[c] -= graph.strip[q, i, c] * graph.multiplier[q]
        j = graph.elder[i]
        for n in range(graph.edge_start[i], graph.edge_start[i + 1]):
            other = graph.held[j if j > 0 else model.body_parent[i]]
            for a in range(6):
                for b in range(6):
                    x[a] -= graph.edge[n, a, b] * other[b]
            j = graph.elder[j]
        _backward(graph.node[i], x)


@njit
def _velocities(model: Model, graph: DirectWork) -> None:
    """graph.rate (nb, 6) from the impulses on the dofs and all multipliers."""
    for q in range(graph.counts[WIDE_ROWS]):
        graph.total[q] += graph.multiplier[q]
        for k in range(graph.force.shape[0]):
            graph.force[k] += graph.wide[q, k] * graph.multiplier[q]
    _set_rates(model, graph, True)
