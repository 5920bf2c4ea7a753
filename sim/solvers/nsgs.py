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
def sweep(m: Any, w: Any, r: Any, y: Any, k: Any, tolerance: Any, most: Any) -> None:
    """At most so many sweeps over the rows of island k, from x = 0 and its λ; y.gradient holds -f - Jᵀλ.

    x, y.velocity and λ belong to each other after it. Sweeps are not counted as steps.
    """
    _find_trees(m.independent_parent, y, k)
    _factorise_trees(m, w, y, k)
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.direction[a] = y.change[a] - y.change[a]
            y.through[a] = y.change[a] - y.change[a]
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        _find_steps(m, r, y, n)
        for row in range(n, n + max(r.cone[n], 1)):
            y.miss[row] = y.velocity[row]  # at x = 0
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.direction[a] = -y.gradient[a]
            y.gradient[a] = y.gradient[a] - y.gradient[a]
    for e in range(y.island_start[k], y.island_start[k + 1]):
        root = y.block_start[y.member[e]]
        if y.degree[root] == root:
            _solve_tree(m.independent_parent, y, root, y.change)
    for _ in range(most):
        moved = tolerance - tolerance
        for q in range(y.unit_start[k], y.unit_start[k + 1]):
            moved = largest(moved, _visit(m, r, y, y.listed[q]))
        if highest(moved - _NEAR * tolerance) <= 0.0:
            break
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        times(r, n, y.change, y.velocity)
        for row in range(n, n + max(r.cone[n], 1)):
            y.velocity[row] = y.velocity[row] + y.miss[row]


@njit
def _visit(m: Any, r: Any, y: Any, n: Any) -> Any:
    """A step of the unit of row n; how far its rows move for that [rad/s or m/s]."""
    times(r, n, y.change, y.along)
    z = r.impulse[n] - y.pull[n] * (y.along[n] + y.miss[n] + r.cfm[n] * r.impulse[n])
    if r.cone[n] > 1:
        z = largest(z, z - z)
        _rub(r, y, n, r.slope[n] * z)
    else:
        z = least(largest(z, r.lower[n]), r.upper[n])
    y.linear[n] = z - r.impulse[n]
    moved = z - z
    for row in range(n, n + max(r.cone[n], 1)):
        r.impulse[row] = r.impulse[row] + y.linear[row]
        moved = largest(moved, absolute(y.linear[row]) * inverse_or_zero(y.pull[row]))
    if highest(moved) > 0.0:
        if y.whole[n] == 1:
            _respond(r, y, n)
        else:
            add_transposed(r, n, 1.0, y.linear, y.direction)
            _spread(m, r, y, n, y.change)
    return moved


@inlined
def _respond(r: Any, y: Any, n: Any) -> None:
    """x += M̂⁻¹ Jᵀ dλ of the unit, dλ in y.linear."""
    first = r.start[n]
    if r.cone[n] == 3:
        s = r.start[n + 1]
        t = r.start[n + 2]
        normal, tangent, other = y.linear[n], y.linear[n + 1], y.linear[n + 2]
        for e in range(r.stop[n] - first):
            a = r.column[first + e]
            y.change[a] = y.change[a] + (
                y.response[first + e] * normal + y.response[s + e] * tangent + y.response[t + e] * other
            )
        return
    for row in range(n, n + max(r.cone[n], 1)):
        for e in range(r.start[row], r.stop[row]):
            y.change[r.column[e]] = y.change[r.column[e]] + y.response[e] * y.linear[row]


@inlined
def _rub(r: Any, y: Any, n: Any, most: Any) -> None:
    """y.linear of the cone's tangential rows, whose impulse is then at most `most`."""
    square = most - most
    for row in range(n + 1, n + r.cone[n]):
        slip = y.along[row] + y.miss[row] + r.cfm[n] * r.impulse[row]
        y.linear[row] = r.impulse[row] - y.pull[row] * slip
        square = square + y.linear[row] * y.linear[row]
    length = sqrt(square)
    one = most - most + 1.0
    factor = where_greater(length, most, most * inverse_or_zero(length), one)
    for row in range(n + 1, n + r.cone[n]):
        y.linear[row] = factor * y.linear[row] - r.impulse[row]


@njit
def _find_steps(m: Any, r: Any, y: Any, n: Any) -> None:
    """y.pull of the unit: impulse per velocity of its first row, and of the others what none of them exceeds.

    Its answers are kept where they have no more entries than its rows.
    """
    count = max(r.cone[n], 1)
    y.whole[n] = 1
    root, dofs = -1, 0
    for e in range(r.start[n], r.stop[n]):
        if y.degree[r.column[e]] != root:
            root = y.degree[r.column[e]]
            dofs += y.list[root] - root
    if dofs != r.stop[n] - r.start[n]:
        y.whole[n] = 0
    for row in range(n, n + count):
        y.linear[row] = r.impulse[n] - r.impulse[n]
    widest = r.impulse[n] - r.impulse[n]
    for row in range(n, n + count):
        y.linear[row] = y.linear[row] + 1.0
        add_transposed(r, n, 1.0, y.linear, y.direction)
        y.linear[row] = y.linear[row] - 1.0
        _answer(m, r, y, n, row)
        if row == n:
            y.pull[n] = inverse_or_zero(y.along[n] + r.cfm[n])
        else:
            total = widest - widest
            for other in range(n + 1, n + count):
                total = total + absolute(y.along[other])
            widest = largest(widest, total + r.cfm[n])
    for row in range(n + 1, n + count):
        y.pull[row] = inverse_or_zero(widest)


@njit
def _answer(m: Any, r: Any, y: Any, n: Any, row: Any) -> None:
    """y.along = J M̂⁻¹ y.direction of the unit of row n, of which `row` alone is pushed; y.direction is 0 again."""
    _spread(m, r, y, n, y.through)
    times(r, n, y.through, y.along)
    if y.whole[n] == 1:
        for e in range(r.start[row], r.stop[row]):
            y.response[e] = y.through[r.column[e]]
    for e in range(r.start[n], r.stop[n]):
        root = y.degree[r.column[e]]
        for a in range(root, y.list[root]):
            y.through[a] = y.direction[a] - y.direction[a]


@inlined
def _spread(m: Any, r: Any, y: Any, n: Any, out: Any) -> None:
    """out += M̂⁻¹ y.direction of the trees that the unit of row n moves; y.direction is 0 then."""
    root = -1
    for e in range(r.start[n], r.stop[n]):
        if y.degree[r.column[e]] != root:
            root = y.degree[r.column[e]]
            _solve_tree(m.independent_parent, y, root, out)


# ------------------------------------------------------------------ trees


@njit
def _find_trees(parent: Any, y: Any, k: Any) -> None:
    """y.degree: the root of each dof's tree, of island k; y.list of a root: the end of its tree's dofs."""
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            root = a if parent[a] < 0 else y.degree[parent[a]]
            y.degree[a] = root
            y.list[root] = a + 1


@njit
def _factorise_trees(m: Any, w: Any, y: Any, k: Any) -> None:
    """M̂'s factor LᵀDL over the trees of island k in y.transpose, by dof; 1 / D in y.pivot."""
    parent = m.independent_parent
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            c = a
            while c >= 0:
                y.transpose[a, c] = w.factor[a, c]
                c = parent[c]
    for e in range(y.island_start[k + 1] - 1, y.island_start[k] - 1, -1):
        b = y.member[e]
        for a in range(y.block_start[b + 1] - 1, y.block_start[b] - 1, -1):
            y.pivot[a] = 1.0 / y.transpose[a, a]
            i = parent[a]
            while i >= 0:
                factor = y.transpose[a, i] * y.pivot[a]
                j = i
                while j >= 0:
                    y.transpose[i, j] = y.transpose[i, j] - factor * y.transpose[a, j]
                    j = parent[j]
                y.transpose[a, i] = factor
                i = parent[i]


@njit
def _solve_tree(parent: Any, y: Any, root: Any, out: Any) -> None:
    """out += M̂⁻¹ y.direction of the tree that begins with a root; y.direction is 0 then."""
    last = y.list[root]
    for i in range(last - 1, root - 1, -1):
        if y.degree[i] == root:
            j = parent[i]
            while j >= 0:
                y.direction[j] = y.direction[j] - y.transpose[i, j] * y.direction[i]
                j = parent[j]
    for i in range(root, last):
        if y.degree[i] == root:
            value = y.direction[i] * y.pivot[i]
            j = parent[i]
            while j >= 0:
                value = value - y.transpose[i, j] * y.direction[j]
                j = parent[j]
            y.direction[i] = value
            out[i] = out[i] + value
    for i in range(root, last):
        if y.degree[i] == root:
            y.direction[i] = y.pivot[i] - y.pivot[i]
