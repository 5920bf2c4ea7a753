"""Linear algebra of the Newton matrix H (nu, nu), in the order and with the fill that elimination.py determined.

The lower triangle of H is stored by rows, and that of its transpose as G; both are the same array where H is symmetric.
Subtracting a block's rows from another row takes one pass over that row. The code serves both widths: entries are T,
floats or packs of 8 lanes, in kg m² or kg.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import zero_like
from artsim.sim.foundation.records import ConstInts1, Ints1, Lanes1, Lanes2
from artsim.sim.foundation.strips import row_times, subtract_rows
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import NewtonWork
from artsim.sim.solvers.impulses import direction_of_columns


@inlined
def start_of(work: NewtonWork, b: int) -> int:
    """The place where block b begins."""
    return work.place[work.block_start[b]]


@inlined
def stop_of(work: NewtonWork, b: int) -> int:
    """The place where block b ends."""
    return work.place[work.block_start[b]] + work.block_start[b + 1] - work.block_start[b]


@inlined
def island_places(work: NewtonWork, island: int) -> tuple[int, int]:
    """The first place of the island, and the one after its last."""
    return start_of(work, work.order[work.island_start[island + 1] - 1]), stop_of(
        work, work.order[work.island_start[island]]
    )


@njit
def set_inertia(model: Model, data: Workspace, work: NewtonWork, island: int, H: Lanes2) -> None:
    """H = M̂ of the island, from data.factor, which holds it by dof; zeros where fill will occur. O(fill)."""
    parent = model.independent_parent
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[p]
        start = start_of(work, b)
        for i in range(start, stop_of(work, b)):
            zero = zero_like(data.factor[0, 0])
            for c in range(start, i + 1):
                H[i, c] = zero
            for run in range(work.run_count[b]):
                for c in range(work.run_start[b, run], work.run_stop[b, run]):
                    H[i, c] = zero
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[p]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            i = work.place[a]
            c = a
            while c >= 0:
                j = work.place[c]
                H[max(i, j), min(i, j)] = data.factor[a, c]
                c = parent[c]


@njit
def times_inertia(
    parent: ConstInts1, run: ConstInts1, H: Lanes2, work: NewtonWork, island: int, d: Lanes1, out: Lanes1
) -> None:
    """out (nu,) = M̂ d of the island, with M̂'s lower triangle over the tree in H, by dof. O(dofs · depth)."""
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[p]
        for i in range(work.block_start[b], work.block_start[b + 1]):
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
def add_product(rows: Rows, work: NewtonWork, n: int, many: int, H: Lanes2) -> None:
    """H += Jᵀ T of `many` rows from row n on, which have the same columns; lower triangle. T (rows, entries) is in
    work.lines, ordered as by `set_lines`. O(entries²)."""
    count = rows.stop[n] - rows.start[n]
    step = direction_of_columns(rows, n)
    begin = rows.start[n] if step > 0 else rows.stop[n] - 1
    e = 0
    while e < count:  # work.span: the end of the contiguous run of columns that begins with an entry
        stop = e + 1
        while stop < count and (
            work.place[rows.column[begin + step * stop]] == work.place[rows.column[begin + step * (stop - 1)]] + 1
        ):
            stop += 1
        work.span[e] = stop
        e = stop
    for e in range(count):
        i = work.place[rows.column[begin + step * e]]
        for row in range(many):
            work.factors[row] = -rows.value[rows.start[n + row] + begin - rows.start[n] + step * e]
        f = 0
        while f < count:
            c = work.place[rows.column[begin + step * f]]
            if c <= i:
                length = min(work.span[f] - f, i + 1 - c)
                subtract_rows(H, i, c, work.lines, 0, many, f, length, work.factors)
            f = work.span[f]


@njit
def factorise_blocks(work: NewtonWork, island: int, H: Lanes2, G: Lanes2, both: bool) -> None:
    """Factorise H of the island in place, and G if `both`: H = Lᵀ D L by blocks, leaves first, 1 / D in work.pivot.
    O(fill²).
    """
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.order[p]
        start = start_of(work, b)
        stop = stop_of(work, b)
        for i in range(stop - 1, start - 1, -1):
            _reduce_row(work, b, H, G, both, i, (i + 1, stop), start)
            work.pivot[i] = 1.0 / H[i, i]
        for run in range(work.run_count[b]):
            for i in range(work.run_start[b, run], work.run_stop[b, run]):
                _reduce_row(work, b, H, G, both, i, (start, stop), -1)


@inlined
def _reduce_row(
    work: NewtonWork, b: int, H: Lanes2, G: Lanes2, both: bool, i: int, rows: tuple[int, int], own: int
) -> None:
    """Subtract rows of block b, the first to the one before the last, from row i: in the block itself, which begins at
    `own`, or beyond the block (own = -1).
    """
    _reduce(work, b, H, G, i, rows, own)
    if both:
        _reduce(work, b, G, H, i, rows, own)


@inlined
def _reduce(work: NewtonWork, b: int, H: Lanes2, G: Lanes2, i: int, rows: tuple[int, int], own: int) -> None:
    """Subtract the rows from row i of one of the two triangles, over the runs of entries that the block has besides its
    own."""
    runs = (work.run_start[b], work.run_stop[b], work.run_count[b])
    _reduce_runs((work.pivot, work.factors), runs, H, G, i, rows, own)


@njit
def _reduce_runs(
    scratch: tuple[Lanes1, Lanes1],
    runs: tuple[Ints1, Ints1, int],
    H: Lanes2,
    G: Lanes2,
    i: int,
    rows: tuple[int, int],
    own: int,
) -> None:
    """`_reduce` with arrays, passed in registers; runs: their starts, their ends and their number."""
    pivot, x = scratch
    starts, stops, count = runs
    first, last = rows
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
def solve_blocks(work: NewtonWork, island: int, H: Lanes2, G: Lanes2) -> None:
    """work.direction (nu,) = H⁻¹ work.direction of the island, for the factorised H. O(fill)."""
    x = work.right
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[p]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            x[0, work.place[a]] = work.direction[a]
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.order[p]
        start = start_of(work, b)
        stop = stop_of(work, b)
        for i in range(stop - 1, start - 1, -1):
            work.factors[i] = x[0, i] * work.pivot[i]
            subtract_rows(x, 0, start, G, i, i + 1, start, i - start, work.factors)
        for run in range(work.run_count[b]):
            c = work.run_start[b, run]
            subtract_rows(x, 0, c, G, start, stop, c, work.run_stop[b, run] - c, work.factors)
    for p in range(work.island_start[island + 1] - 1, work.island_start[island] - 1, -1):
        b = work.order[p]
        start = start_of(work, b)
        for i in range(start, stop_of(work, b)):
            value = x[0, i]
            for run in range(work.run_count[b]):
                c = work.run_start[b, run]
                value = value - row_times(H, i, c, work.run_stop[b, run] - c, x)
            if i > start:
                value = value - row_times(H, i, start, i - start, x)
            x[0, i] = value * work.pivot[i]
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[p]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = x[0, work.place[a]]
