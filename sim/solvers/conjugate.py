"""Conjugate gradients on newton's convex problem: crowds of free bodies, whose matrix would take too long.

The directions are Polak and Ribière's (1969), the line search is newton's own, the preconditioner is H without what
ties one block of dofs to another, as it is at the start. A step costs O(contacts), however they are tied together.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit
from artsim.sim.lanes import absolute, highest, where_greater
from artsim.sim.solvers.blocks import times_inertia
from artsim.sim.solvers.cone import inverse_or_zero, largest
from artsim.sim.solvers.impulses import direction_of_columns, project, set_gradient, set_lines, times, weigh_lines
from artsim.sim.solvers.line_search import take

_CLOSE = 1e-3
_AGAIN = 15  # steps until the preconditioner is made again


@njit
def descend(model: Any, data: Any, rows: Any, force: Any, solver: Any, k: Any, tolerance: Any, most: Any) -> Any:
    """Bring x of island k to the minimum for the shifts as they are, in so many steps at most.

    About how far x still is from it [rad/s or m/s]. Steps are added to solver.sizes[2].
    """
    zero = tolerance - tolerance
    project(rows, solver, k)
    set_gradient(rows, force, solver, k)
    _precondition(model, data, rows, solver, k)
    left = _apply(solver, k, zero)
    for p in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[p]
        for a in range(solver.block_start[b], solver.block_start[b + 1]):
            solver.direction[a] = -solver.right[0, a]
    before = _dot(solver, k, zero)
    steps = 0
    while steps < most and highest(left - tolerance) > 0.0:
        steps += 1
        times_inertia(
            model.independent_parent, model.independent_run, data.factor, solver, k, solver.direction, solver.through
        )
        for q in range(solver.unit_start[k], solver.unit_start[k + 1]):
            times(rows, solver.listed[q], solver.direction, solver.along)
        take(rows, force, solver, k, 1e-3 * tolerance, _CLOSE)
        set_gradient(rows, force, solver, k)
        across = _dot(solver, k, zero)
        left = _apply(solver, k, zero)
        now = _dot(solver, k, zero)
        _turn(solver, k, largest((now - across) * inverse_or_zero(before), zero))
        before = now
        if steps % _AGAIN == 0:
            _precondition(model, data, rows, solver, k)
            left = _apply(solver, k, zero)
            before = _dot(solver, k, zero)
            _turn(solver, k, zero)
    solver.sizes[2] += steps
    return left


@njit
def _dot(solver: Any, k: Any, total: Any) -> Any:
    """solver.gradient · solver.right."""
    for p in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[p]
        for a in range(solver.block_start[b], solver.block_start[b + 1]):
            total = total + solver.gradient[a] * solver.right[0, a]
    return total


@njit
def _turn(solver: Any, k: Any, beta: Any) -> None:
    """solver.direction = beta solver.direction - solver.right; -solver.right alone where that would not fall."""
    fall = beta - beta
    for p in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[p]
        for a in range(solver.block_start[b], solver.block_start[b + 1]):
            solver.direction[a] = beta * solver.direction[a] - solver.right[0, a]
            fall = fall + solver.direction[a] * solver.gradient[a]
    rises = where_greater(fall, beta - beta, beta - beta + 1.0, beta - beta)
    if highest(rises) > 0.0:
        for p in range(solver.island_start[k], solver.island_start[k + 1]):
            b = solver.member[p]
            for a in range(solver.block_start[b], solver.block_start[b + 1]):
                solver.direction[a] = where_greater(rises, rises - rises, -solver.right[0, a], solver.direction[a])


@njit
def _precondition(model: Any, data: Any, rows: Any, solver: Any, k: Any) -> None:
    """The blocks on H's diagonal as L D Lᵀ, in place in solver.matrix; 1 / D in solver.pivot."""
    _set_diagonal(model, data, solver, k)
    for q in range(solver.unit_start[k], solver.unit_start[k + 1]):
        n = solver.listed[q]
        if highest(solver.weight[n]) > 0.0:
            set_lines(rows, solver, n, False)
            weigh_lines(rows, solver, n, solver.weight[n], solver.weight1[n], solver.weight2[n], solver.weight3[n])
            _add_diagonal(rows, solver, n)
    H = solver.matrix
    for p in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[p]
        start = solver.place[solver.block_start[b]]
        stop = start + solver.block_start[b + 1] - solver.block_start[b]
        for i in range(start, stop):
            for j in range(start, i):
                value = H[i, j]
                for c in range(start, j):
                    value = value - H[i, c] * H[j, c]
                H[i, j] = value
            pivot = H[i, i]
            for j in range(start, i):
                value = H[i, j] * solver.pivot[j]
                pivot = pivot - value * H[i, j]
                H[i, j] = value
            solver.pivot[i] = 1.0 / pivot


@njit
def _set_diagonal(model: Any, data: Any, solver: Any, k: Any) -> None:
    """M̂'s blocks; dofs of a block have their places side by side."""
    parent = model.independent_parent
    for p in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[p]
        first = solver.block_start[b]
        for a in range(first, solver.block_start[b + 1]):
            c = a
            while c >= first:
                solver.matrix[solver.place[a], solver.place[c]] = data.factor[a, c]
                c = parent[c]


@njit
def _add_diagonal(rows: Any, solver: Any, n: Any) -> None:
    """What the unit of row n adds to the blocks on the diagonal; D J is in solver.lines, ordered as by `set_lines`."""
    count = rows.stop[n] - rows.start[n]
    step = direction_of_columns(rows, n)
    begin = rows.start[n] if step > 0 else rows.stop[n] - 1
    for e in range(count):
        a = rows.column[begin + step * e]
        f = e
        while f >= 0 and solver.block[rows.column[begin + step * f]] == solver.block[a]:
            value = solver.matrix[solver.place[a], solver.place[rows.column[begin + step * f]]]
            for row in range(max(rows.cone[n], 1)):
                value = (
                    value + solver.lines[row, f] * rows.value[rows.start[n + row] + begin - rows.start[n] + step * e]
                )
            solver.matrix[solver.place[a], solver.place[rows.column[begin + step * f]]] = value
            f -= 1


@njit
def _apply(solver: Any, k: Any, worst: Any) -> Any:
    """solver.right = the preconditioner's inverse times solver.gradient; its largest entry."""
    H = solver.matrix
    x = solver.right
    for p in range(solver.island_start[k], solver.island_start[k + 1]):
        b = solver.member[p]
        first = solver.block_start[b]
        start = solver.place[first]
        size = solver.block_start[b + 1] - first
        for i in range(size):
            value = solver.gradient[first + i]
            for j in range(i):
                value = value - H[start + i, start + j] * x[0, first + j]
            x[0, first + i] = value
        for i in range(size - 1, -1, -1):
            value = x[0, first + i] * solver.pivot[start + i]
            for j in range(i + 1, size):
                value = value - H[start + j, start + i] * x[0, first + j]
            x[0, first + i] = value
            worst = largest(worst, absolute(value))
    return worst
