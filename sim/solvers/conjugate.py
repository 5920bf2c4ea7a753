"""Conjugate gradients on newton's convex problem, for crowds of free bodies whose matrix would take too long.

The directions are those of Polak and Ribière (1969), the line search is newton's own, the preconditioner is the block
diagonal of H at the start. A step costs O(contacts), however they are connected.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.run_data.scratch import NEWTON_STEPS
from artsim.sim.solvers.blocks import times_inertia
from artsim.sim.solvers.impulses import direction_of_columns, project, rows_times, set_gradient, set_lines, weigh_lines
from artsim.sim.solvers.line_search import take

_CLOSE = 1e-3  # relative accuracy of the step length
_AGAIN = 15  # steps until the preconditioner is rebuilt


@njit
def descend(model: Any, data: Any, rows: Any, force: Any, work: Any, k: Any, tolerance: Any, most: Any) -> Any:
    """Minimise over x of island k with the shifts held fixed, in `most` steps at most.

    Returns an estimate of the remaining error of x, to be compared with the tolerance [rad/s or m/s]. Steps are added
    to work.sizes[NEWTON_STEPS].
    """
    project(rows, work, k)
    set_gradient(rows, force, work, k)
    _precondition(model, data, rows, work, k)
    left = _apply(work, k)
    for p in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[p]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = -work.right[0, a]
    before = _dot(work, k)
    steps = 0
    while steps < most and left > tolerance:
        steps += 1
        times_inertia(
            model.independent_parent, model.independent_run, data.factor, work, k, work.direction, work.through
        )
        for q in range(work.unit_start[k], work.unit_start[k + 1]):
            rows_times(rows, work.listed[q], work.direction, work.along)
        take(rows, force, work, k, 1e-3 * tolerance, _CLOSE)
        set_gradient(rows, force, work, k)
        across = _dot(work, k)
        left = _apply(work, k)
        now = _dot(work, k)
        _turn(work, k, max(0.0, (now - across) * inverse_or_zero(before)))
        before = now
        if steps % _AGAIN == 0:
            _precondition(model, data, rows, work, k)
            left = _apply(work, k)
            before = _dot(work, k)
            _turn(work, k, 0.0)
    work.sizes[NEWTON_STEPS] += steps
    return left


@njit
def _dot(work: Any, k: Any) -> Any:
    """work.gradient · work.right over island k [J]."""
    total = 0.0
    for p in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[p]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            total = total + work.gradient[a] * work.right[0, a]
    return total


@njit
def _turn(work: Any, k: Any, beta: Any) -> None:
    """work.direction = beta work.direction - work.right; -work.right alone where that would be no descent."""
    fall = 0.0
    for p in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[p]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = beta * work.direction[a] - work.right[0, a]
            fall = fall + work.direction[a] * work.gradient[a]
    if fall > 0.0:
        for p in range(work.island_start[k], work.island_start[k + 1]):
            b = work.member[p]
            for a in range(work.block_start[b], work.block_start[b + 1]):
                work.direction[a] = -work.right[0, a]


@njit
def _precondition(model: Any, data: Any, rows: Any, work: Any, k: Any) -> None:
    """Factorise the diagonal blocks of H as L D Lᵀ, in place in work.matrix; 1 / D in work.pivot. O(contacts +
    dofs)."""
    _set_diagonal(model, data, work, k)
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if work.weight[n] > 0.0:
            set_lines(rows, work, n, False)
            weigh_lines(rows, work, n, work.weight[n], work.weight1[n], work.weight2[n], work.weight3[n])
            _add_diagonal(rows, work, n)
    H = work.matrix
    for p in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[p]
        start = work.place[work.block_start[b]]
        stop = start + work.block_start[b + 1] - work.block_start[b]
        for i in range(start, stop):
            for j in range(start, i):
                value = H[i, j]
                for c in range(start, j):
                    value = value - H[i, c] * H[j, c]
                H[i, j] = value
            pivot = H[i, i]
            for j in range(start, i):
                value = H[i, j] * work.pivot[j]
                pivot = pivot - value * H[i, j]
                H[i, j] = value
            work.pivot[i] = 1.0 / pivot


@njit
def _set_diagonal(model: Any, data: Any, work: Any, k: Any) -> None:
    """Copy M̂'s blocks to work.matrix; dofs of a block have adjacent places."""
    parent = model.independent_parent
    for p in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[p]
        first = work.block_start[b]
        for a in range(first, work.block_start[b + 1]):
            c = a
            while c >= first:
                work.matrix[work.place[a], work.place[c]] = data.factor[a, c]
                c = parent[c]


@njit
def _add_diagonal(rows: Any, work: Any, n: Any) -> None:
    """Add the weight of the unit of row n to the diagonal blocks; work.lines holds D J, ordered as by `set_lines`."""
    count = rows.stop[n] - rows.start[n]
    step = direction_of_columns(rows, n)
    begin = rows.start[n] if step > 0 else rows.stop[n] - 1
    for e in range(count):
        a = rows.column[begin + step * e]
        f = e
        while f >= 0 and work.block[rows.column[begin + step * f]] == work.block[a]:
            value = work.matrix[work.place[a], work.place[rows.column[begin + step * f]]]
            for row in range(max(rows.cone[n], 1)):
                value = value + work.lines[row, f] * rows.value[rows.start[n + row] + begin - rows.start[n] + step * e]
            work.matrix[work.place[a], work.place[rows.column[begin + step * f]]] = value
            f -= 1


@njit
def _apply(work: Any, k: Any) -> Any:
    """Set work.right (1, nu) to the preconditioned work.gradient; return its largest entry [rad/s or m/s]."""
    worst = 0.0
    H = work.matrix
    x = work.right
    for p in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[p]
        first = work.block_start[b]
        start = work.place[first]
        size = work.block_start[b + 1] - first
        for i in range(size):
            value = work.gradient[first + i]
            for j in range(i):
                value = value - H[start + i, start + j] * x[0, first + j]
            x[0, first + i] = value
        for i in range(size - 1, -1, -1):
            value = x[0, first + i] * work.pivot[start + i]
            for j in range(i + 1, size):
                value = value - H[start + j, start + i] * x[0, first + j]
            x[0, first + i] = value
            worst = max(abs(value), worst)
    return worst
