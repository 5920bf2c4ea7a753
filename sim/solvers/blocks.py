"""Linear algebra of the Newton matrix, in the order and with the fill that elimination.py found.

H is stored by rows, its lower triangle, and its transpose's lower triangle, G; they are the same array where H is
symmetric. What the rows of a block take off another row is one pass over that row.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.solvers.impulses import direction_of_columns
from artsim.sim.strips import row_times, subtract_rows


@inlined
def _start(y: Any, b: Any) -> Any:
    """Where block b begins."""
    return y.place[y.block_start[b]]


@inlined
def _stop(y: Any, b: Any) -> Any:
    return y.place[y.block_start[b]] + y.block_start[b + 1] - y.block_start[b]


@njit
def set_inertia(m: Any, w: Any, y: Any, k: Any, H: Any) -> None:
    """H = M̂ of island k."""
    parent = m.independent_parent
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        start = _start(y, b)
        for i in range(start, _stop(y, b)):
            zero = w.factor[y.block_start[b], y.block_start[b]] * 0.0
            for c in range(start, i + 1):
                H[i, c] = zero
            for run in range(y.run_count[b]):
                for c in range(y.run_start[b, run], y.run_stop[b, run]):
                    H[i, c] = zero
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            i = y.place[a]
            c = a
            while c >= 0:
                j = y.place[c]
                H[max(i, j), min(i, j)] = w.factor[a, c]
                c = parent[c]


@njit
def times_inertia(parent: Any, run: Any, H: Any, y: Any, k: Any, d: Any, out: Any) -> None:
    """out (nu,) = M̂ d of island k, with M̂'s lower triangle over the tree in H."""
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        for i in range(y.block_start[b], y.block_start[b + 1]):
            x = d[i]
            value = H[i, i] * x
            j = parent[i]
            while j >= 0:
                start = run[j]
                for c in range(start, j + 1):
                    value = value + H[i, c] * d[c]
                    out[c] = out[c] + H[i, c] * x
                j = parent[start]
            out[i] = value


@njit
def add_product(r: Any, y: Any, n: Any, H: Any) -> None:
    """H += Jᵀ T of the unit of row n, lower triangle; T (rows, entries) is in y.lines, ordered as by `set_lines`."""
    count = r.stop[n] - r.start[n]
    step = direction_of_columns(r, n)
    begin = r.start[n] if step > 0 else r.stop[n] - 1
    e = 0
    while e < count:  # y.span: where the run of columns side by side that begins with an entry ends
        stop = e + 1
        while stop < count and (
            y.place[r.column[begin + step * stop]] == y.place[r.column[begin + step * (stop - 1)]] + 1
        ):
            stop += 1
        y.span[e] = stop
        e = stop
    for e in range(count):
        i = y.place[r.column[begin + step * e]]
        for row in range(max(r.cone[n], 1)):
            y.factors[row] = -r.value[r.start[n + row] + begin - r.start[n] + step * e]
        f = 0
        while f < count:
            c = y.place[r.column[begin + step * f]]
            if c <= i:
                length = min(y.span[f] - f, i + 1 - c)
                subtract_rows(H, i, c, y.lines, 0, max(r.cone[n], 1), f, length, y.factors)
            f = y.span[f]


@njit
def factorise_blocks(y: Any, k: Any, H: Any, G: Any, both: Any) -> None:
    """H of island k, and G if both are to be, factorised in place, with 1 / D in y.pivot."""
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.order[p]
        start = _start(y, b)
        stop = _stop(y, b)
        for i in range(stop - 1, start - 1, -1):
            _reduce_row(y, b, H, G, both, i, i + 1, stop, start)
            y.pivot[i] = 1.0 / H[i, i]
        for run in range(y.run_count[b]):
            for i in range(y.run_start[b, run], y.run_stop[b, run]):
                _reduce_row(y, b, H, G, both, i, start, stop, -1)


@inlined
def _reduce_row(y: Any, b: Any, H: Any, G: Any, both: Any, i: Any, first: Any, last: Any, own: Any) -> None:
    """Take the rows first to last of block b off row i; in the block itself (which begins at `own`) or beyond."""
    _reduce(y.pivot, y.factors, y.run_start[b], y.run_stop[b], y.run_count[b], H, G, i, first, last, own)
    if both:
        _reduce(y.pivot, y.factors, y.run_start[b], y.run_stop[b], y.run_count[b], G, H, i, first, last, own)


@njit
def _reduce(
    pivot: Any, x: Any, starts: Any, stops: Any, count: Any, H: Any, G: Any, i: Any, first: Any, last: Any, own: Any
) -> None:
    for q in range(first, last):
        x[q] = G[q, i] * pivot[q]
    if own >= 0:
        subtract_rows(H, i, own, H, first, last, own, i + 1 - own, x)
    for run in range(count):
        c = starts[run]
        if own < 0 and c > i:
            break
        end = stops[run] if own >= 0 else min(stops[run], i + 1)
        subtract_rows(H, i, c, H, first, last, c, end - c, x)


@njit
def solve_blocks(y: Any, k: Any, H: Any, G: Any) -> None:
    """y.direction = H⁻¹ y.direction, of island k, for the factorised H."""
    x = y.right
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            x[0, y.place[a]] = y.direction[a]
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.order[p]
        start = _start(y, b)
        stop = _stop(y, b)
        for i in range(stop - 1, start - 1, -1):
            y.factors[i] = x[0, i] * y.pivot[i]
            subtract_rows(x, 0, start, G, i, i + 1, start, i - start, y.factors)
        for run in range(y.run_count[b]):
            c = y.run_start[b, run]
            subtract_rows(x, 0, c, G, start, stop, c, y.run_stop[b, run] - c, y.factors)
    for p in range(y.island_start[k + 1] - 1, y.island_start[k] - 1, -1):
        b = y.order[p]
        start = _start(y, b)
        for i in range(start, _stop(y, b)):
            value = x[0, i]
            for run in range(y.run_count[b]):
                c = y.run_start[b, run]
                value = value - row_times(H, i, c, y.run_stop[b, run] - c, x)
            if i > start:
                value = value - row_times(H, i, start, i - start, x)
            x[0, i] = value * y.pivot[i]
    for p in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[p]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.direction[a] = x[0, y.place[a]]
