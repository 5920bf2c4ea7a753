"""Solves H d = b in linear time in the tree, without forming a matrix: impulses in, velocity changes out.

The method is that of Sakalauskas, Recoil Notes, 2021, 3.2.3.

This is the articulated-body recursion (Featherstone 2008, table 7.1) without bias forces: the weight of rows on one dof
is part of that dof's pivot, Sᵀ I S + δ. The k wide rows of `full_coordinates` enter by Woodbury's identity: with A the
system without them, (compliance + B A⁻¹ Bᵀ) λ = -B A⁻¹ b and d = A⁻¹ (b + Bᵀ λ).

Cost: O(n) to factorise and O(n) per solve, so O(n + k n + k² n + k³) per Newton step; k = 0 for limits, drives and
joint friction, 1 for a coupling, 3 to 6 for a loop. With wide rows a round of refinement restores the digits that their
sums lose. A coupled dof without inertia of its own would make A singular: its pivot is raised by a billionth of the
inertia that moves with it, which two rounds correct.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import along_axis, projected_inertia, rigid_inertia, shift_inertia, take_out
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.run_data.scratch import LIFTED_PIVOTS, WIDE_ROWS, PropagationWork
from artsim.sim.solvers.published.full_coordinates import (
    add_motion,
    along,
    factorise_dense,
    inward,
    note_remainder,
    outward,
    solve_dense,
    spread_over_dofs,
    start_solve,
    wide_times,
)

_FLOOR = 1e-9  # of a pivot, relative to the inertia that moves with its independent dof


@njit
def factorise_tree(model: Model, data: Workspace, tree: PropagationWork) -> None:
    """Prepare `solve_tree` with the weights and wide rows that tree holds. O(n + k n + k² n + k³)."""
    _articulate(model, data, tree)
    count = tree.counts[WIDE_ROWS]
    for q in range(count):
        _propagate(model, data, tree, tree.wide[q], tree.inverse_wide[q])
    for q in range(count):
        for o in range(q + 1):
            tree.small[q, o] = wide_times(tree, o, tree.inverse_wide[q])
        tree.small[q, q] += tree.compliance[q]
    factorise_dense(tree.small, count)


@njit
def _articulate(model: Model, data: Workspace, tree: PropagationWork) -> None:
    """Articulated inertias and pivots 1 / (Sᵀ I S + δ); tree.counts[LIFTED_PIVOTS] counts raised zero pivots."""
    nb = model.body_parent.shape[0]
    tree.counts[LIFTED_PIVOTS] = 0
    for i in range(1, nb):
        rigid_inertia(model, data, i)
    for i in range(nb - 1, 0, -1):
        for k in range(model.body_dof[i + 1] - 1, model.body_dof[i] - 1, -1):
            U = projected_inertia(model, data, i, k)
            D = along_axis(model, data, k, U) + tree.weight[k]
            lift = _least_pivot(model, data, tree, k)
            if lift > D:
                tree.counts[LIFTED_PIVOTS] += 1
                D = lift
            data.pivot[k] = 1.0 / D
            take_out(data, i, k, U, data.pivot[k])
        if model.body_parent[i] > 0:
            shift_inertia(model, data, i)


@njit
def _least_pivot(model: Model, data: Workspace, tree: PropagationWork, k: int) -> float:
    """The value to which the pivot of dof k is raised if it has next to no inertia by itself [kg m² or kg]."""
    a = model.dof_independent[k]
    if a < 0 or data.gain[k] == 0.0:
        return _FLOOR  # the velocity of this dof is 0 in any case
    return _FLOOR * tree.inertia[a] / (data.gain[k] * data.gain[k])


@njit
def _propagate(model: Model, data: Workspace, tree: PropagationWork, b: Reals1, x: Reals1) -> None:
    """x (nv,) = A⁻¹ b: impulses b in towards the root, velocity changes out again. O(n)."""
    F = tree.wrench
    V = tree.speed
    nb = model.body_parent.shape[0]
    for i in range(1, nb):
        for c in range(6):
            F[i, c] = 0.0
    for i in range(nb - 1, 0, -1):
        for k in range(model.body_dof[i + 1] - 1, model.body_dof[i] - 1, -1):
            rest = b[k] - along(model, data, F, i, k)
            data.surplus[k] = rest
            share = rest * data.pivot[k]
            for c in range(6):
                F[i, c] += data.projected[k, c] * share
        inward(model, data, F, i)
    for i in range(1, nb):
        outward(model, data, V, i)
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            rest = data.surplus[k]
            for c in range(6):
                rest -= data.projected[k, c] * V[i, c]
            x[k] = rest * data.pivot[k]
            add_motion(model, data, V, i, k, x[k])


@njit
def solve_tree(model: Model, data: Workspace, tree: PropagationWork, d: Reals1) -> None:
    """d (nu,) = H⁻¹ d: from impulses [N m s or N s] to changes of velocities [rad/s or m/s]. O(n + k n + k²)."""
    start_solve(tree, d)
    rounds = 3 if tree.counts[LIFTED_PIVOTS] > 0 else (2 if tree.counts[WIDE_ROWS] > 0 else 1)
    for n in range(rounds):
        if n > 0:
            note_remainder(model, data, tree, d)
        spread_over_dofs(model, tree.left, tree)
        _propagate(model, data, tree, tree.force, tree.moved)
        _add_wide(tree)
        for a in range(d.shape[0]):
            d[a] += tree.moved[model.independent_dof[a]]


@njit
def _add_wide(tree: PropagationWork) -> None:
    """Add the wide rows' effect to tree.moved = A⁻¹ b, and their λ to tree.total."""
    count = tree.counts[WIDE_ROWS]
    for q in range(count):
        tree.multiplier[q] = tree.gap[q] - wide_times(tree, q, tree.moved)
    solve_dense(tree.small, count, tree.multiplier)
    for q in range(count):
        tree.total[q] += tree.multiplier[q]
        for k in range(tree.moved.shape[0]):
            tree.moved[k] += tree.inverse_wide[q, k] * tree.multiplier[q]
