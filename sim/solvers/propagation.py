"""H d = b in linear time in the tree, no matrix formed: impulses in, velocity changes out (seed 001, 3.2.3).

The articulated-body recursion (Featherstone 2008, table 7.1) without bias forces: what rows on one dof weigh is part of
that dof's pivot, Sᵀ I S + δ. The k wide rows of `full_coordinates` come by Woodbury's identity: with A the system
without them, (compliance + B A⁻¹ Bᵀ) λ = -B A⁻¹ b and d = A⁻¹ (b + Bᵀ λ).

Cost: O(n) to factorise and O(n) per solve, so O(n + k n + k² n + k³) per Newton step; k = 0 for limits, drives and
joint friction, 1 for a coupling, 3 to 6 for a loop. With wide rows a round of refinement takes back what their sums
lose to rounding. A coupled dof that carries no inertia by itself would make A singular: its pivot gets a billionth of
what moves with it, which two rounds take back.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.dynamics import projected_inertia, rigid_inertia, shift_inertia, take_out
from artsim.sim.jit import njit
from artsim.sim.solvers.full_coordinates import (
    add_motion,
    along,
    factorise_dense,
    inward,
    note_remainder,
    outward,
    solve_dense,
    spread,
    start_solve,
    times,
)

_FLOOR = 1e-9  # of a pivot, relative to the inertia that moves with its independent dof


@njit
def factorise_tree(m: Any, w: Any, p: Any) -> None:
    """Ready for `solve_tree` with the weights and wide rows that p holds."""
    _articulate(m, w, p)
    count = p.counts[0]
    for q in range(count):
        _propagate(m, w, p, p.wide[q], p.response[q])
    for q in range(count):
        for o in range(q + 1):
            p.small[q, o] = times(p, o, p.response[q])
        p.small[q, q] += p.compliance[q]
    factorise_dense(p.small, count)


@njit
def _articulate(m: Any, w: Any, p: Any) -> None:
    """Articulated inertias, pivots 1 / (Sᵀ I S + δ); p.counts[1]: how many of these were lifted from nothing."""
    nb = m.body_parent.shape[0]
    p.counts[1] = 0
    for i in range(1, nb):
        rigid_inertia(m, w, i)
    for i in range(nb - 1, 0, -1):
        for k in range(m.body_dof[i + 1] - 1, m.body_dof[i] - 1, -1):
            U0, U1, U2, U3, U4, U5, D = projected_inertia(m, w, i, k)
            D += p.weight[k]
            lift = _least_pivot(m, w, p, k)
            if lift > D:
                p.counts[1] += 1
                D = lift
            w.pivot[k] = 1.0 / D
            take_out(w, i, k, U0, U1, U2, U3, U4, U5, w.pivot[k])
        if m.body_parent[i] > 0:
            shift_inertia(m, w, i)


@njit
def _least_pivot(m: Any, w: Any, p: Any, k: Any) -> Any:
    """What the pivot of a dof is lifted to that carries next to nothing by itself."""
    a = m.dof_independent[k]
    if a < 0 or w.gain[k] == 0.0:
        return _FLOOR  # its velocity is 0 all the same
    return _FLOOR * p.inertia[a] / (w.gain[k] * w.gain[k])


@njit
def _propagate(m: Any, w: Any, p: Any, b: Any, x: Any) -> None:
    """x (nv,) = A⁻¹ b: impulses b in towards the root, velocity changes out again. O(n)."""
    F = p.wrench
    V = p.speed
    nb = m.body_parent.shape[0]
    for i in range(1, nb):
        for c in range(6):
            F[i, c] = 0.0
    for i in range(nb - 1, 0, -1):
        for k in range(m.body_dof[i + 1] - 1, m.body_dof[i] - 1, -1):
            rest = b[k] - along(m, w, F, i, k)
            w.surplus[k] = rest
            share = rest * w.pivot[k]
            for c in range(6):
                F[i, c] += w.projected[k, c] * share
        inward(m, w, F, i)
    for i in range(1, nb):
        outward(m, w, V, i)
        for k in range(m.body_dof[i], m.body_dof[i + 1]):
            rest = w.surplus[k]
            for c in range(6):
                rest -= w.projected[k, c] * V[i, c]
            x[k] = rest * w.pivot[k]
            add_motion(m, w, V, i, k, x[k])


@njit
def solve_tree(m: Any, w: Any, p: Any, d: Any) -> None:
    """d (nu,) = H⁻¹ d."""
    start_solve(p, d)
    rounds = 3 if p.counts[1] > 0 else (2 if p.counts[0] > 0 else 1)
    for n in range(rounds):
        if n > 0:
            note_remainder(m, w, p, d)
        spread(m, p.left, p)
        _propagate(m, w, p, p.force, p.moved)
        _add_answers(p)
        for a in range(d.shape[0]):
            d[a] += p.moved[m.independent_dof[a]]


@njit
def _add_answers(p: Any) -> None:
    """What the wide rows make of p.moved = A⁻¹ b."""
    count = p.counts[0]
    for q in range(count):
        p.multiplier[q] = p.gap[q] - times(p, q, p.moved)
    solve_dense(p.small, count, p.multiplier)
    for q in range(count):
        p.total[q] += p.multiplier[q]
        for k in range(p.moved.shape[0]):
            p.moved[k] += p.response[q, k] * p.multiplier[q]
