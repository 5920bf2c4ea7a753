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
def descend(m: Any, w: Any, r: Any, force: Any, y: Any, k: Any, tolerance: Any, most: Any) -> Any:
    """Bring x of island k to the minimum for the shifts as they are, in so many steps at most.

    About how far x still is from it [rad/s or m/s]. Steps are added to y.sizes[2].
    """
    zero = tolerance - tolerance
    project(r, y, k)
    set_gradient(r, force, y, k)
    _precondition(m, w, r, y, k)
    left = _apply(y, k, zero)
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.direction[a] = -y.right[0, a]
    before = _dot(y, k, zero)
    steps = 0
    while steps < most and highest(left - tolerance) > 0.0:
        steps += 1
        times_inertia(m.independent_parent, m.independent_run, w.factor, y, k, y.direction, y.through)
        for q in range(y.unit_start[k], y.unit_start[k + 1]):
            times(r, y.listed[q], y.direction, y.along)
        take(r, force, y, k, 1e-3 * tolerance, _CLOSE)
        set_gradient(r, force, y, k)
        across = _dot(y, k, zero)
        left = _apply(y, k, zero)
        now = _dot(y, k, zero)
        _turn(y, k, largest((now - across) * inverse_or_zero(before), zero))
        before = now
        if steps % _AGAIN == 0:
            _precondition(m, w, r, y, k)
            left = _apply(y, k, zero)
            before = _dot(y, k, zero)
            _turn(y, k, zero)
    y.sizes[2] += steps
    return left


@njit
def _dot(y: Any, k: Any, total: Any) -> Any:
    """y.gradient · y.right."""
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            total = total + y.gradient[a] * y.right[0, a]
    return total


@njit
def _turn(y: Any, k: Any, beta: Any) -> None:
    """y.direction = beta y.direction - y.right; -y.right alone where that would not fall."""
    fall = beta - beta
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.direction[a] = beta * y.direction[a] - y.right[0, a]
            fall = fall + y.direction[a] * y.gradient[a]
    rises = where_greater(fall, beta - beta, beta - beta + 1.0, beta - beta)
    if highest(rises) > 0.0:
        for p in range(y.island_start[k], y.island_start[k + 1]):
            b = y.member[p]
            for a in range(y.block_start[b], y.block_start[b + 1]):
                y.direction[a] = where_greater(rises, rises - rises, -y.right[0, a], y.direction[a])


@njit
def _precondition(m: Any, w: Any, r: Any, y: Any, k: Any) -> None:
    """The blocks on H's diagonal as L D Lᵀ, in place in y.matrix; 1 / D in y.pivot."""
    _set_diagonal(m, w, y, k)
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        if highest(y.weight[n]) > 0.0:
            set_lines(r, y, n, False)
            weigh_lines(r, y, n, y.weight[n], y.weight1[n], y.weight2[n], y.weight3[n])
            _add_diagonal(r, y, n)
    H = y.matrix
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        start = y.place[y.block_start[b]]
        stop = start + y.block_start[b + 1] - y.block_start[b]
        for i in range(start, stop):
            for j in range(start, i):
                value = H[i, j]
                for c in range(start, j):
                    value = value - H[i, c] * H[j, c]
                H[i, j] = value
            pivot = H[i, i]
            for j in range(start, i):
                value = H[i, j] * y.pivot[j]
                pivot = pivot - value * H[i, j]
                H[i, j] = value
            y.pivot[i] = 1.0 / pivot


@njit
def _set_diagonal(m: Any, w: Any, y: Any, k: Any) -> None:
    """M̂'s blocks; dofs of a block have their places side by side."""
    parent = m.independent_parent
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        first = y.block_start[b]
        for a in range(first, y.block_start[b + 1]):
            c = a
            while c >= first:
                y.matrix[y.place[a], y.place[c]] = w.factor[a, c]
                c = parent[c]


@njit
def _add_diagonal(r: Any, y: Any, n: Any) -> None:
    """What the unit of row n adds to the blocks on the diagonal; D J is in y.lines, ordered as by `set_lines`."""
    count = r.stop[n] - r.start[n]
    step = direction_of_columns(r, n)
    begin = r.start[n] if step > 0 else r.stop[n] - 1
    for e in range(count):
        a = r.column[begin + step * e]
        f = e
        while f >= 0 and y.block[r.column[begin + step * f]] == y.block[a]:
            value = y.matrix[y.place[a], y.place[r.column[begin + step * f]]]
            for row in range(max(r.cone[n], 1)):
                value = value + y.lines[row, f] * r.value[r.start[n + row] + begin - r.start[n] + step * e]
            y.matrix[y.place[a], y.place[r.column[begin + step * f]]] = value
            f -= 1


@njit
def _apply(y: Any, k: Any, worst: Any) -> Any:
    """y.right = the preconditioner's inverse times y.gradient; its largest entry."""
    H = y.matrix
    x = y.right
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        first = y.block_start[b]
        start = y.place[first]
        size = y.block_start[b + 1] - first
        for i in range(size):
            value = y.gradient[first + i]
            for j in range(i):
                value = value - H[start + i, start + j] * x[0, first + j]
            x[0, first + i] = value
        for i in range(size - 1, -1, -1):
            value = x[0, first + i] * y.pivot[start + i]
            for j in range(i + 1, size):
                value = value - H[start + j, start + i] * x[0, first + j]
            x[0, first + i] = value
            worst = largest(worst, absolute(value))
    return worst
