"""Determines the elimination order of the Newton matrix, and its structure: islands, blocks, their fill.

Consecutive dofs in an unbranched part of the tree form a block: a free body is one, a leg another. M̂ couples a block
to all its ancestors, a row couples all blocks that it moves. Blocks that nothing couples to others form an island,
which is solved by itself. Within an island, the block coupled to the fewest dofs is eliminated next, which couples its
neighbours to each other (minimum degree: Tinney and Walker 1967; George and Liu 1989); among equals the last, so that a
tree is eliminated leaves first, without fill. All of this depends on the rows' columns alone.

A crowd, an island of many bodies with hundreds of contacts, has no order: its matrix would take too long (crowd.py).

The matrix is stored with its dofs in that order, those eliminated first at the end (`place`), so that the entries of
its rows lie in few contiguous runs.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive
from artsim.sim.foundation.records import ConstInts1, Ints1
from artsim.sim.run_data.run_records import ALL_ROWS, Rows
from artsim.sim.run_data.scratch import BLOCKS, CROWD_TREES, ISLANDS, TIED_ROWS, NewtonWork

# units, and bodies or robots: with more of both, the matrix of a Newton step takes longer than sweeps
_CROWD, _CROWD_TREES = 300, 100
_SOFT_CROWD = 100  # units, with more than CROWD_TREES trees, if all contacts are soft, so that sweeps end soon


@njit
def find_structure(model: Model, rows: Rows, work: NewtonWork, in_lanes: bool, whole: bool) -> None:
    """Find islands, order and fill for the present rows: work.member, order, place, run_start and so on.

    Blocks are found once, since they belong to the model, and the rest again when columns of rows have changed: the
    columns of a robot that stands or slides stay for many steps. O(blocks² · fill) at most for the largest island that
    is ordered; O(blocks + entries) without contacts; O(entries) without a change.

    in_lanes: the rows are those of all robots of a pack, each of which shall be computed as if it were alone. The order
    is then that of the tree, and all is one island if rows may tie branches (`whole`); the entries that rows of others
    add to the fill are zeros, which change no sum. Otherwise crowds are not ordered.
    """
    if work.sizes[BLOCKS] == 0:
        _find_blocks(model.independent_parent, work)
    elif _is_known(rows, work):
        return
    _note_columns(rows, work)
    if whole:
        one_island(model, rows, work)
    else:
        _find_islands(model.independent_parent, rows, work)
        _list_units(rows, work)
    end = work.place.shape[0]
    for k in range(work.sizes[ISLANDS]):
        work.crowded[k] = 0 if in_lanes else _is_crowd(model, rows, work, k)
        if work.crowded[k] == 0:
            _tie(model.independent_parent, rows, work, k)
            end = _order(work, work.island_start[k], work.island_start[k + 1], end, in_lanes)


@njit
def _is_crowd(model: Model, rows: Rows, work: NewtonWork, island: int) -> int:
    """1 if the island has so many bodies and contacts that its matrix takes too long, else 0."""
    units = work.unit_start[island + 1] - work.unit_start[island]
    if units <= _SOFT_CROWD:
        return 0
    trees = 0
    for p in range(work.island_start[island], work.island_start[island + 1]):
        trees += 1 if model.independent_parent[work.block_start[work.member[p]]] < 0 else 0
    if trees <= CROWD_TREES:
        return 0
    if units > _CROWD and trees > _CROWD_TREES:
        return 1
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.kind[n] == CONTACT_ROW and not _is_soft(rows, n):
            return 0
    return 1


@inlined
def _is_soft(rows: Rows, n: int) -> bool:
    """True if row n has a compliance, in any lane."""
    return any_positive(rows.cfm[n])


@njit
def _is_known(rows: Rows, work: NewtonWork) -> bool:
    """True if the rows have the columns and the softness of those for which the structure was found."""
    if work.sizes[TIED_ROWS] != rows.number[ALL_ROWS]:
        return False
    for n in range(rows.number[ALL_ROWS]):
        if (
            work.structure_cone[n] != rows.cone[n]
            or (work.structure_soft[n] == 1) != _is_soft(rows, n)
            or work.structure_stop[n] - work.structure_start[n] != rows.stop[n] - rows.start[n]
        ):
            return False
        shift = rows.start[n] - work.structure_start[n]
        for e in range(work.structure_start[n], work.structure_stop[n]):
            if work.structure_column[e] != rows.column[e + shift]:
                return False
    return True


@njit
def _note_columns(rows: Rows, work: NewtonWork) -> None:
    """Store the rows' columns and cones for `_is_known`."""
    work.sizes[TIED_ROWS] = rows.number[ALL_ROWS]
    for n in range(rows.number[ALL_ROWS]):
        work.structure_cone[n] = rows.cone[n]
        work.structure_soft[n] = 1 if _is_soft(rows, n) else 0
        work.structure_start[n] = rows.start[n]
        work.structure_stop[n] = rows.stop[n]
        for e in range(rows.start[n], rows.stop[n]):
            work.structure_column[e] = rows.column[e]


@njit
def one_island(model: Model, rows: Rows, work: NewtonWork) -> None:
    """Make all dofs and rows one island, without an order, for solvers with linear algebra of their own."""
    if work.sizes[BLOCKS] == 0:
        _find_blocks(model.independent_parent, work)
    work.sizes[ISLANDS] = min(work.sizes[BLOCKS], 1)
    for b in range(work.sizes[BLOCKS]):
        work.island[b] = 0
    _list_members(work)
    _list_units(rows, work)


@njit
def _find_blocks(parent: ConstInts1, work: NewtonWork) -> None:
    """work.block of each dof, work.block_start, work.tree_start; the number of blocks is work.sizes[BLOCKS]."""
    nu = parent.shape[0]
    for a in range(nu):
        work.place[a] = 0
    for a in range(nu):
        if parent[a] >= 0:
            work.place[parent[a]] += 1
    count = 0
    for a in range(nu):
        if a == 0 or parent[a] != a - 1 or work.place[a - 1] > 1:
            work.block_start[count] = a
            count += 1
        work.block[a] = count - 1
    work.block_start[count] = nu
    work.sizes[BLOCKS] = count
    entries = 0
    for a in range(nu):
        work.tree_start[a] = entries
        above = a
        while above >= 0:
            entries += 1
            above = parent[above]


# ------------------------------------------------------------------ islands


@njit
def _find_islands(parent: ConstInts1, rows: Rows, work: NewtonWork) -> None:
    """work.island of each block, numbered by their first blocks; the number of islands is work.sizes[ISLANDS]."""
    for b in range(work.sizes[BLOCKS]):
        above = parent[work.block_start[b]]
        work.island[b] = work.island[work.block[above]] if above >= 0 else b  # blocks come after their ancestors
    n = 0
    while n < rows.number[ALL_ROWS]:
        for e in range(rows.start[n] + 1, rows.stop[n]):
            b = work.block[rows.column[e]]
            if b != work.block[rows.column[e - 1]]:
                _unite(work.island, work.block[rows.column[e - 1]], b)
        n += max(rows.cone[n], 1)
    count = 0
    for b in range(work.sizes[BLOCKS]):
        if work.island[b] == b:
            work.degree[b] = count
            count += 1
        else:
            work.island[b] = _first_of(work.island, b)
    for b in range(work.sizes[BLOCKS]):
        work.island[b] = work.degree[work.island[b]]
    work.sizes[ISLANDS] = count
    _list_members(work)


@inlined
def _first_of(island: Ints1, b: int) -> int:
    """The first block of the set that contains block b, with path compression."""
    while island[b] != b:
        island[b] = island[island[b]]
        b = island[b]
    return b


@njit
def _unite(island: Ints1, b: int, c: int) -> None:
    """Unite the sets of two blocks (Tarjan 1975)."""
    b = _first_of(island, b)
    c = _first_of(island, c)
    if b < c:
        island[c] = b
    else:
        island[b] = c


@njit
def _list_members(work: NewtonWork) -> None:
    """work.member: the blocks of each island in turn, beginning at work.island_start."""
    for k in range(work.sizes[ISLANDS] + 1):
        work.island_start[k] = 0
    for b in range(work.sizes[BLOCKS]):
        work.island_start[work.island[b] + 1] += 1
    for k in range(work.sizes[ISLANDS]):
        work.island_start[k + 1] += work.island_start[k]
        work.degree[k] = work.island_start[k]
    for b in range(work.sizes[BLOCKS]):
        k = work.island[b]
        work.member[work.degree[k]] = b
        work.degree[k] += 1


@njit
def _list_units(rows: Rows, work: NewtonWork) -> None:
    """Set work.listed, the units by island, as their first rows, and work.unit_start, the entry at which an island's
    units begin.

    A unit is a row with bounds or a cone. A unit without columns belongs to the first island; without any mobility
    there are no islands.
    """
    for island in range(work.sizes[ISLANDS] + 1):
        work.unit_start[island] = 0
    if work.sizes[ISLANDS] == 0:
        return
    n = 0
    while n < rows.number[ALL_ROWS]:
        work.unit_start[_island_of(rows, work, n) + 1] += 1
        n += max(rows.cone[n], 1)
    for island in range(work.sizes[ISLANDS]):
        work.unit_start[island + 1] += work.unit_start[island]
        work.degree[island] = work.unit_start[island]
    n = 0
    while n < rows.number[ALL_ROWS]:
        island = _island_of(rows, work, n)
        work.listed[work.degree[island]] = n
        work.degree[island] += 1
        n += max(rows.cone[n], 1)


@inlined
def _island_of(rows: Rows, work: NewtonWork, n: int) -> int:
    """The island of row n: that of its first column, or the first island."""
    return work.island[work.block[rows.column[rows.start[n]]]] if rows.stop[n] > rows.start[n] else 0


# ------------------------------------------------------------------ order and fill


@njit
def _tie(parent: ConstInts1, rows: Rows, work: NewtonWork, island: int) -> None:
    """work.tie[b, c] = 1 where the matrix couples two blocks of the island."""
    for p in range(work.island_start[island], work.island_start[island + 1]):
        for entry in range(work.island_start[island], work.island_start[island + 1]):
            work.tie[work.member[p], work.member[entry]] = 0
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[p]
        above = parent[work.block_start[b]]
        while above >= 0:
            c = work.block[above]
            work.tie[b, c] = 1
            work.tie[c, b] = 1
            above = parent[work.block_start[c]]
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        _tie_row(rows, work, work.listed[entry])


@njit
def _tie_row(rows: Rows, work: NewtonWork, n: int) -> None:
    """Couple the blocks of row n's columns to each other."""
    count = 0
    for e in range(rows.start[n], rows.stop[n]):
        b = work.block[rows.column[e]]
        p = count - 1
        while p >= 0 and work.list[p] != b:
            p -= 1
        if p < 0:
            for q in range(count):
                work.tie[work.list[q], b] = 1
                work.tie[b, work.list[q]] = 1
            work.list[count] = b
            count += 1


@njit
def _order(work: NewtonWork, first: int, last: int, end: int, as_tree: bool) -> int:
    """Order the island of blocks work.member[first:last], whose places end before `end`; return where they begin.

    as_tree: by the tree alone, from its leaves.
    """
    for p in range(first, last):
        b = work.member[p]
        work.tie[b, b] = 0
        work.degree[b] = 0
        for q in range(first, last):
            if work.tie[b, work.member[q]] == 1:
                work.degree[b] += _size(work, work.member[q])
    for p in range(first, last):
        b = work.member[last - 1 - (p - first)] if as_tree else _next(work, first, last)
        work.order[p] = b
        end -= _size(work, b)
        for a in range(_size(work, b)):
            work.place[work.block_start[b] + a] = end + a
        work.block_at[end] = b
        _eliminate(work, b, first, last)
    for p in range(first, last):
        _find_runs(work, work.order[p])
    return end


@inlined
def _size(work: NewtonWork, b: int) -> int:
    """Number of dofs of block b."""
    return work.block_start[b + 1] - work.block_start[b]


@njit
def _next(work: NewtonWork, first: int, last: int) -> int:
    """The remaining block of the lowest degree; among equals the last."""
    best = -1
    for p in range(first, last):
        b = work.member[p]
        if work.degree[b] >= 0 and (best < 0 or work.degree[b] <= work.degree[best]):
            best = b
    return best


@njit
def _eliminate(work: NewtonWork, b: int, first: int, last: int) -> None:
    """Couple block b's neighbours to each other; they are then listed in work.run_start[b]."""
    neighbours = work.run_start[b]
    count = 0
    for p in range(first, last):
        c = work.member[p]
        if work.tie[b, c] == 1 and work.degree[c] >= 0:
            neighbours[count] = c
            count += 1
    work.run_count[b] = count
    work.degree[b] = -1
    for p in range(count):
        c = neighbours[p]
        work.degree[c] -= _size(work, b)
        for q in range(p):
            if work.tie[c, neighbours[q]] == 0:
                work.tie[c, neighbours[q]] = 1
                work.tie[neighbours[q], c] = 1
                work.degree[c] += _size(work, neighbours[q])
                work.degree[neighbours[q]] += _size(work, c)


@njit
def _find_runs(work: NewtonWork, b: int) -> None:
    """Note the entries of block b's rows left of the block itself: runs of columns run_start to run_stop, ascending."""
    start = work.run_start[b]
    stop = work.run_stop[b]
    for p in range(work.run_count[b]):
        c = start[p]
        place = work.place[work.block_start[c]]
        size = _size(work, c)
        q = p
        while q > 0 and start[q - 1] > place:
            start[q] = start[q - 1]
            stop[q] = stop[q - 1]
            q -= 1
        start[q] = place
        stop[q] = place + size
    count = 0
    for p in range(work.run_count[b]):
        if count > 0 and stop[count - 1] == start[p]:
            stop[count - 1] = stop[p]
        else:
            start[count] = start[p]
            stop[count] = stop[p]
            count += 1
    work.run_count[b] = count
