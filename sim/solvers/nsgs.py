"""Nonsmooth Gauss-Seidel: contact by contact, for what coulomb.py does not solve from where a step begins.

Every row or cone in turn gets the impulse that Coulomb's law asks for at the velocities of the moment, by one step of
projection with the mobilities J M̂⁻¹ Jᵀ of its own (Jean 1999; Acary and Brogliato 2008, chapter 13). Slow to the last
digit, but it comes near where Newton's steps turn in circles around a kink: 100 spheres that roll into each other take
50 to 150 sweeps to 1e-8, from where coulomb.py needs two or three steps.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import absolute, highest, sqrt, where_greater
from artsim.sim.solvers.cone import inverse_or_zero, largest, least
from artsim.sim.solvers.impulses import add_transposed, times

_NEAR = 1e5  # times the tolerance: coulomb.py's turn


@njit
def sweep(model: Any, data: Any, rows: Any, solver: Any, k: Any, tolerance: Any, most: Any) -> None:
    """At most so many sweeps over the rows of island k, from x = 0 and its λ; solver.gradient holds -f - Jᵀλ.

    x, solver.velocity and λ belong to each other after it. Sweeps are not counted as steps.
    """
    _find_trees(model.independent_parent, solver, k)
    _factorise_trees(model, data, solver, k)
    for e in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[e]
        for a in range(solver.block_start[b], solver.block_start[b + 1]):
            solver.direction[a] = solver.change[a] - solver.change[a]
            solver.through[a] = solver.change[a] - solver.change[a]
    for q in range(solver.unit_start[k], solver.unit_start[k + 1]):
        n = solver.listed[q]
        _find_steps(model, rows, solver, n)
        for row in range(n, n + max(rows.cone[n], 1)):
            solver.miss[row] = solver.velocity[row]  # at x = 0
    for e in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[e]
        for a in range(solver.block_start[b], solver.block_start[b + 1]):
            solver.direction[a] = -solver.gradient[a]
            solver.gradient[a] = solver.gradient[a] - solver.gradient[a]
    for e in range(solver.island_start[k], solver.island_start[k + 1]):
        root = solver.block_start[solver.member[e]]
        if solver.degree[root] == root:
            _solve_tree(model.independent_parent, solver, root, solver.change)
    for _ in range(most):
        moved = tolerance - tolerance
        for q in range(solver.unit_start[k], solver.unit_start[k + 1]):
            moved = largest(moved, _visit(model, rows, solver, solver.listed[q]))
        if highest(moved - _NEAR * tolerance) <= 0.0:
            break
    for q in range(solver.unit_start[k], solver.unit_start[k + 1]):
        n = solver.listed[q]
        times(rows, n, solver.change, solver.velocity)
        for row in range(n, n + max(rows.cone[n], 1)):
            solver.velocity[row] = solver.velocity[row] + solver.miss[row]


@njit
def _visit(model: Any, rows: Any, solver: Any, n: Any) -> Any:
    """A step of the unit of row n; how far its rows move for that [rad/s or m/s]."""
    times(rows, n, solver.change, solver.along)
    z = rows.impulse[n] - solver.pull[n] * (solver.along[n] + solver.miss[n] + rows.cfm[n] * rows.impulse[n])
    if rows.cone[n] > 1:
        z = largest(z, z - z)
        _rub(rows, solver, n, rows.slope[n] * z)
    else:
        z = least(largest(z, rows.lower[n]), rows.upper[n])
    solver.linear[n] = z - rows.impulse[n]
    moved = z - z
    for row in range(n, n + max(rows.cone[n], 1)):
        rows.impulse[row] = rows.impulse[row] + solver.linear[row]
        moved = largest(moved, absolute(solver.linear[row]) * inverse_or_zero(solver.pull[row]))
    if highest(moved) > 0.0:
        if solver.whole[n] == 1:
            _respond(rows, solver, n)
        else:
            add_transposed(rows, n, 1.0, solver.linear, solver.direction)
            _spread(model, rows, solver, n, solver.change)
    return moved


@inlined
def _respond(rows: Any, solver: Any, n: Any) -> None:
    """x += M̂⁻¹ Jᵀ dλ of the unit, dλ in solver.linear."""
    first = rows.start[n]
    if rows.cone[n] == 3:
        s = rows.start[n + 1]
        t = rows.start[n + 2]
        normal, tangent, other = solver.linear[n], solver.linear[n + 1], solver.linear[n + 2]
        for e in range(rows.stop[n] - first):
            a = rows.column[first + e]
            solver.change[a] = solver.change[a] + (
                solver.response[first + e] * normal + solver.response[s + e] * tangent + solver.response[t + e] * other
            )
        return
    for row in range(n, n + max(rows.cone[n], 1)):
        for e in range(rows.start[row], rows.stop[row]):
            solver.change[rows.column[e]] = solver.change[rows.column[e]] + solver.response[e] * solver.linear[row]


@inlined
def _rub(rows: Any, solver: Any, n: Any, most: Any) -> None:
    """solver.linear of the cone's tangential rows, whose impulse is then at most `most`."""
    square = most - most
    for row in range(n + 1, n + rows.cone[n]):
        slip = solver.along[row] + solver.miss[row] + rows.cfm[n] * rows.impulse[row]
        solver.linear[row] = rows.impulse[row] - solver.pull[row] * slip
        square = square + solver.linear[row] * solver.linear[row]
    length = sqrt(square)
    one = most - most + 1.0
    factor = where_greater(length, most, most * inverse_or_zero(length), one)
    for row in range(n + 1, n + rows.cone[n]):
        solver.linear[row] = factor * solver.linear[row] - rows.impulse[row]


@njit
def _find_steps(model: Any, rows: Any, solver: Any, n: Any) -> None:
    """solver.pull of the unit: impulse per velocity of its first row, and of the others what none of them exceeds.

    Its answers are kept where they have no more entries than its rows.
    """
    count = max(rows.cone[n], 1)
    solver.whole[n] = 1
    root, dofs = -1, 0
    for e in range(rows.start[n], rows.stop[n]):
        if solver.degree[rows.column[e]] != root:
            root = solver.degree[rows.column[e]]
            dofs += solver.list[root] - root
    if dofs != rows.stop[n] - rows.start[n]:
        solver.whole[n] = 0
    for row in range(n, n + count):
        solver.linear[row] = rows.impulse[n] - rows.impulse[n]
    widest = rows.impulse[n] - rows.impulse[n]
    for row in range(n, n + count):
        solver.linear[row] = solver.linear[row] + 1.0
        add_transposed(rows, n, 1.0, solver.linear, solver.direction)
        solver.linear[row] = solver.linear[row] - 1.0
        _answer(model, rows, solver, n, row)
        if row == n:
            solver.pull[n] = inverse_or_zero(solver.along[n] + rows.cfm[n])
        else:
            total = widest - widest
            for other in range(n + 1, n + count):
                total = total + absolute(solver.along[other])
            widest = largest(widest, total + rows.cfm[n])
    for row in range(n + 1, n + count):
        solver.pull[row] = inverse_or_zero(widest)


@njit
def _answer(model: Any, rows: Any, solver: Any, n: Any, row: Any) -> None:
    """solver.along = J M̂⁻¹ solver.direction of the unit of row n, of which `row` alone is pushed; solver.direction is
    0 again."""
    _spread(model, rows, solver, n, solver.through)
    times(rows, n, solver.through, solver.along)
    if solver.whole[n] == 1:
        for e in range(rows.start[row], rows.stop[row]):
            solver.response[e] = solver.through[rows.column[e]]
    for e in range(rows.start[n], rows.stop[n]):
        root = solver.degree[rows.column[e]]
        for a in range(root, solver.list[root]):
            solver.through[a] = solver.direction[a] - solver.direction[a]


@inlined
def _spread(model: Any, rows: Any, solver: Any, n: Any, out: Any) -> None:
    """out += M̂⁻¹ solver.direction of the trees that the unit of row n moves; solver.direction is 0 then."""
    root = -1
    for e in range(rows.start[n], rows.stop[n]):
        if solver.degree[rows.column[e]] != root:
            root = solver.degree[rows.column[e]]
            _solve_tree(model.independent_parent, solver, root, out)


# ------------------------------------------------------------------ trees


@njit
def _find_trees(parent: Any, solver: Any, k: Any) -> None:
    """solver.degree: the root of each dof's tree, of island k; solver.list of a root: the end of its tree's dofs."""
    for e in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[e]
        for a in range(solver.block_start[b], solver.block_start[b + 1]):
            root = a if parent[a] < 0 else solver.degree[parent[a]]
            solver.degree[a] = root
            solver.list[root] = a + 1


@njit
def _factorise_trees(model: Any, data: Any, solver: Any, k: Any) -> None:
    """M̂'s factor LᵀDL over the trees of island k in solver.transpose, by dof; 1 / D in solver.pivot."""
    parent = model.independent_parent
    for e in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[e]
        for a in range(solver.block_start[b], solver.block_start[b + 1]):
            c = a
            while c >= 0:
                solver.transpose[a, c] = data.factor[a, c]
                c = parent[c]
    for e in range(solver.island_start[k + 1] - 1, solver.island_start[k] - 1, -1):
        b = solver.member[e]
        for a in range(solver.block_start[b + 1] - 1, solver.block_start[b] - 1, -1):
            solver.pivot[a] = 1.0 / solver.transpose[a, a]
            i = parent[a]
            while i >= 0:
                factor = solver.transpose[a, i] * solver.pivot[a]
                j = i
                while j >= 0:
                    solver.transpose[i, j] = solver.transpose[i, j] - factor * solver.transpose[a, j]
                    j = parent[j]
                solver.transpose[a, i] = factor
                i = parent[i]


@njit
def _solve_tree(parent: Any, solver: Any, root: Any, out: Any) -> None:
    """out += M̂⁻¹ solver.direction of the tree that begins with a root; solver.direction is 0 then."""
    last = solver.list[root]
    for i in range(last - 1, root - 1, -1):
        if solver.degree[i] == root:
            j = parent[i]
            while j >= 0:
                solver.direction[j] = solver.direction[j] - solver.transpose[i, j] * solver.direction[i]
                j = parent[j]
    for i in range(root, last):
        if solver.degree[i] == root:
            value = solver.direction[i] * solver.pivot[i]
            j = parent[i]
            while j >= 0:
                value = value - solver.transpose[i, j] * solver.direction[j]
                j = parent[j]
            solver.direction[i] = value
            out[i] = out[i] + value
    for i in range(root, last):
        if solver.degree[i] == root:
            solver.direction[i] = solver.pivot[i] - solver.pivot[i]
