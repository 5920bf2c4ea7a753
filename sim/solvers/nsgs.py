"""Nonsmooth Gauss-Seidel: contact by contact, for rows that coulomb.py does not solve from the start of a step.

Every row or cone in turn gets the impulse that satisfies Coulomb's law at the current velocities, by one projection
step with its own block J M̂⁻¹ Jᵀ of the Delassus matrix (Jean 1999; Acary and Brogliato 2008, chapter 13). The sweeps
converge slowly to the last digit, but come near where Newton steps cycle around a kink: 100 spheres that roll into each
other take 50 to 150 sweeps to 1e-8, from where coulomb.py needs two or three steps.

A unit is a row with bounds or a cone, identified by its first row, n; rows' velocities are in rad/s or m/s, impulses in
N s or N m s.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import ConstInts1, Reals1
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import NewtonWork
from artsim.sim.solvers.impulses import add_transposed, rows_times
from artsim.sim.solvers.trees import factorise_trees, find_trees, fold, unfold

_NEAR = 1e5  # tolerances: once no row moves by more in a sweep, coulomb.py continues


@njit
def sweep_island(
    model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int, tolerance: float, most: int
) -> None:
    """Sweep the rows of the island at most `most` times, from x = 0 and its λ; work.gradient holds -f - Jᵀλ.

    Afterwards x, work.velocity and λ are consistent. Sweeps are not counted as steps; one costs O(entries), or O(dofs ·
    depth) for each row that moves only some dofs of its trees.
    """
    _start_sweeps(model, data, rows, work, island)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        _note_reach(rows, work, work.listed[entry])
        _find_steps(model, rows, work, work.listed[entry])
    for _ in range(most):
        moved = 0.0
        for entry in range(work.unit_start[island], work.unit_start[island + 1]):
            moved = max(_visit(model, rows, work, work.listed[entry]), moved)
        if moved <= _NEAR * tolerance:
            break
    _end_sweeps(rows, work, island)


@njit
def _start_sweeps(model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int) -> None:
    """Factorise M̂ of the island by its trees, and set x to match λ; work.miss: the rows' velocities at x = 0."""
    find_trees(model.independent_parent, work, island)
    factorise_trees(model, data, work, island)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = -work.gradient[a]
            work.gradient[a] = 0.0
            work.through[a] = 0.0
    for e in range(work.island_start[island], work.island_start[island + 1]):
        root = work.block_start[work.member[e]]
        if work.degree[root] == root:
            _solve_tree(model.independent_parent, work, root, work.change)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.miss[row] = work.velocity[row]  # at x = 0


@njit
def _end_sweeps(rows: Rows, work: NewtonWork, island: int) -> None:
    """Set the velocities of the rows of the island at the x found."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        rows_times(rows, n, work.change, work.velocity)
        for row in range(n, n + max(rows.cone[n], 1)):
            work.velocity[row] = work.velocity[row] + work.miss[row]


@njit
def _visit(model: Model, rows: Rows, work: NewtonWork, n: int) -> float:
    """Solve the unit of row n; return the resulting motion of its rows [rad/s or m/s]."""
    rows_times(rows, n, work.change, work.along)
    z = rows.impulse[n] - work.pull[n] * (work.along[n] + work.miss[n] + rows.cfm[n] * rows.impulse[n])
    if rows.cone[n] > 1:
        z = max(0.0, z)
        _rub(rows, work, n, rows.slope[n] * z)
    else:
        z = min(max(rows.lower[n], z), rows.upper[n])
    work.linear[n] = z - rows.impulse[n]
    moved = 0.0
    for row in range(n, n + max(rows.cone[n], 1)):
        rows.impulse[row] = rows.impulse[row] + work.linear[row]
        moved = max(abs(work.linear[row]) * inverse_or_zero(work.pull[row]), moved)
    if moved > 0.0:
        _add_impulses(model, rows, work, n)
    return moved


@inlined
def _add_impulses(model: Model, rows: Rows, work: NewtonWork, n: int) -> None:
    """x += M̂⁻¹ Jᵀ dλ of the unit, whose dλ is in work.linear."""
    if work.whole[n] == 1:
        _add_velocities(rows, work, n)
    else:
        add_transposed(rows, n, 1.0, work.linear, work.direction)
        _spread(model, rows, work, n, work.change)


@inlined
def _add_velocities(rows: Rows, work: NewtonWork, n: int) -> None:
    """x += M̂⁻¹ Jᵀ dλ of the unit, from its M̂⁻¹ Jᵀ, which is kept."""
    first = rows.start[n]
    if rows.cone[n] == 3:
        s = rows.start[n + 1]
        t = rows.start[n + 2]
        normal, tangent, other = work.linear[n], work.linear[n + 1], work.linear[n + 2]
        for e in range(rows.stop[n] - first):
            a = rows.column[first + e]
            work.change[a] = work.change[a] + (
                work.inverse_mass_jacobian[first + e] * normal
                + work.inverse_mass_jacobian[s + e] * tangent
                + work.inverse_mass_jacobian[t + e] * other
            )
        return
    for row in range(n, n + max(rows.cone[n], 1)):
        for e in range(rows.start[row], rows.stop[row]):
            a = rows.column[e]
            work.change[a] = work.change[a] + work.inverse_mass_jacobian[e] * work.linear[row]


@inlined
def _rub(rows: Rows, work: NewtonWork, n: int, most: float) -> None:
    """work.linear of the cone's tangential rows, for an impulse of at most `most` [N s]."""
    square = 0.0
    for row in range(n + 1, n + rows.cone[n]):
        slip = work.along[row] + work.miss[row] + rows.cfm[n] * rows.impulse[row]
        work.linear[row] = rows.impulse[row] - work.pull[row] * slip
        square = square + work.linear[row] * work.linear[row]
    length = math.sqrt(square)
    factor = most * inverse_or_zero(length) if length > most else 1.0
    for row in range(n + 1, n + rows.cone[n]):
        work.linear[row] = factor * work.linear[row] - rows.impulse[row]


@njit
def _note_reach(rows: Rows, work: NewtonWork, n: int) -> None:
    """Set work.whole of the unit. M̂⁻¹ Jᵀ is kept if it has no more entries than J: if the unit moves all dofs of its
    trees.
    """
    work.whole[n] = 1
    root, dofs = -1, 0
    for e in range(rows.start[n], rows.stop[n]):
        if work.degree[rows.column[e]] != root:
            root = work.degree[rows.column[e]]
            dofs += work.list[root] - root
    if dofs != rows.stop[n] - rows.start[n]:
        work.whole[n] = 0


@njit
def _find_steps(model: Model, rows: Rows, work: NewtonWork, n: int) -> None:
    """work.pull of the unit: impulse per velocity of its first row, and an upper bound for the others."""
    soft = rows.cfm[n]
    count = max(rows.cone[n], 1)
    for row in range(n, n + count):
        work.linear[row] = 0.0
    widest = 0.0
    for row in range(n, n + count):
        _push(model, rows, work, n, row)
        if row == n:
            work.pull[n] = inverse_or_zero(work.along[n] + soft)
        else:
            total = 0.0
            for other in range(n + 1, n + count):
                total = total + abs(work.along[other])
            widest = max(total + soft, widest)
    for row in range(n + 1, n + count):
        work.pull[row] = inverse_or_zero(widest)


@njit
def _push(model: Model, rows: Rows, work: NewtonWork, n: int, row: int) -> None:
    """work.along = J M̂⁻¹ Jᵀ of the unit of row n for an impulse of 1 on `row`; work.linear is 0 before and after."""
    work.linear[row] = work.linear[row] + 1.0
    add_transposed(rows, n, 1.0, work.linear, work.direction)
    work.linear[row] = work.linear[row] - 1.0
    _spread(model, rows, work, n, work.through)
    rows_times(rows, n, work.through, work.along)
    if work.whole[n] == 1:
        for e in range(rows.start[row], rows.stop[row]):
            work.inverse_mass_jacobian[e] = work.through[rows.column[e]]
    for e in range(rows.start[n], rows.stop[n]):
        root = work.degree[rows.column[e]]
        for a in range(root, work.list[root]):
            work.through[a] = 0.0


@inlined
def _spread(model: Model, rows: Rows, work: NewtonWork, n: int, out: Reals1) -> None:
    """out (nu,) += M̂⁻¹ work.direction of the trees that the unit of row n moves; work.direction is then 0."""
    root = -1
    for e in range(rows.start[n], rows.stop[n]):
        if work.degree[rows.column[e]] != root:
            root = work.degree[rows.column[e]]
            _solve_tree(model.independent_parent, work, root, out)


@inlined
def _solve_tree(parent: ConstInts1, work: NewtonWork, root: int, out: Reals1) -> None:
    """out (nu,) += M̂⁻¹ work.direction of the tree that begins with a root; work.direction is then 0."""
    fold(parent, work, root)
    unfold(parent, work, root, work.direction)
    for i in range(root, work.list[root]):
        if work.degree[i] == root:
            out[i] = out[i] + work.direction[i]
            work.direction[i] = 0.0
