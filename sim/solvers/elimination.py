"""In which order the Newton matrix is eliminated, and what that ties together: islands, blocks, their fill.

Dofs that follow each other in the tree without a branch are a block: a free body is one, a leg another. M̂ ties a block
to all that it hangs on, a row ties all blocks that it moves. What is not tied at all is an island, solved by itself.
Within an island the block that is tied to the fewest dofs is eliminated next, and ties those to each other (minimum
degree: Tinney and Walker 1967; George and Liu 1989); of equal ones the last, so that a tree goes leaves first, without
fill. All that is a function of the rows' columns alone.

The matrix is stored with its dofs in that order, those eliminated first at the end (`place`): its rows then have their
entries in few runs side by side.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit


@njit
def find_structure(m: Any, r: Any, y: Any) -> None:
    """y.place, y.order, y.runs, … for the rows that are there. Blocks are found once: they are the model's."""
    if y.sizes[0] == 0:
        _find_blocks(m.independent_parent, y)
    _find_islands(m.independent_parent, r, y)
    _list_units(r, y)
    _tie(m.independent_parent, r, y)
    end = y.place.shape[0]
    for k in range(y.sizes[1]):
        end = _order(y, y.island_start[k], y.island_start[k + 1], end)


@njit
def one_island(m: Any, r: Any, y: Any) -> None:
    """All dofs and rows as one island, without an order, for solvers that have their own linear algebra."""
    if y.sizes[0] == 0:
        _find_blocks(m.independent_parent, y)
    y.sizes[1] = min(y.sizes[0], 1)
    for b in range(y.sizes[0]):
        y.island[b] = 0
    _list_members(y)
    _list_units(r, y)


@njit
def _find_blocks(parent: Any, y: Any) -> None:
    """y.block of each dof, y.block_start; their number is y.sizes[0]."""
    nu = parent.shape[0]
    for a in range(nu):
        y.place[a] = 0
    for a in range(nu):
        if parent[a] >= 0:
            y.place[parent[a]] += 1
    count = 0
    for a in range(nu):
        if a == 0 or parent[a] != a - 1 or y.place[a - 1] > 1:
            y.block_start[count] = a
            count += 1
        y.block[a] = count - 1
    y.block_start[count] = nu
    y.sizes[0] = count


# ------------------------------------------------------------------ islands


@njit
def _find_islands(parent: Any, r: Any, y: Any) -> None:
    """y.island of each block, numbered by their first blocks; their number is y.sizes[1]."""
    for b in range(y.sizes[0]):
        above = parent[y.block_start[b]]
        y.island[b] = y.island[y.block[above]] if above >= 0 else b  # blocks come after what they hang on
    n = 0
    while n < r.number[0]:
        for e in range(r.start[n] + 1, r.stop[n]):
            b = y.block[r.column[e]]
            if b != y.block[r.column[e - 1]]:
                _unite(y.island, y.block[r.column[e - 1]], b)
        n += max(r.cone[n], 1)
    count = 0
    for b in range(y.sizes[0]):
        if y.island[b] == b:
            y.degree[b] = count
            count += 1
        else:
            y.island[b] = _first_of(y.island, b)
    for b in range(y.sizes[0]):
        y.island[b] = y.degree[y.island[b]]
    y.sizes[1] = count
    _list_members(y)


@inlined
def _first_of(island: Any, b: Any) -> Any:
    while island[b] != b:
        island[b] = island[island[b]]
        b = island[b]
    return b


@njit
def _unite(island: Any, b: Any, c: Any) -> None:
    b = _first_of(island, b)
    c = _first_of(island, c)
    if b < c:
        island[c] = b
    else:
        island[b] = c


@njit
def _list_members(y: Any) -> None:
    """y.member: the blocks of each island in turn, which begin at y.island_start."""
    for k in range(y.sizes[1] + 1):
        y.island_start[k] = 0
    for b in range(y.sizes[0]):
        y.island_start[y.island[b] + 1] += 1
    for k in range(y.sizes[1]):
        y.island_start[k + 1] += y.island_start[k]
        y.degree[k] = y.island_start[k]
    for b in range(y.sizes[0]):
        k = y.island[b]
        y.member[y.degree[k]] = b
        y.degree[k] += 1


@njit
def _list_units(r: Any, y: Any) -> None:
    """y.listed: box rows and cones by island, as their first rows; where an island's begin is in y.unit_start.

    One without columns goes with the first island; where nothing can move, there is none.
    """
    for k in range(y.sizes[1] + 1):
        y.unit_start[k] = 0
    if y.sizes[1] == 0:
        return
    n = 0
    while n < r.number[0]:
        y.unit_start[_island_of(r, y, n) + 1] += 1
        n += max(r.cone[n], 1)
    for k in range(y.sizes[1]):
        y.unit_start[k + 1] += y.unit_start[k]
        y.degree[k] = y.unit_start[k]
    n = 0
    while n < r.number[0]:
        k = _island_of(r, y, n)
        y.listed[y.degree[k]] = n
        y.degree[k] += 1
        n += max(r.cone[n], 1)


@inlined
def _island_of(r: Any, y: Any, n: Any) -> Any:
    return y.island[y.block[r.column[r.start[n]]]] if r.stop[n] > r.start[n] else 0


# ------------------------------------------------------------------ order and fill


@njit
def _tie(parent: Any, r: Any, y: Any) -> None:
    """y.tie[b, c] = 1 where the matrix ties two blocks."""
    for k in range(y.sizes[1]):
        for p in range(y.island_start[k], y.island_start[k + 1]):
            for q in range(y.island_start[k], y.island_start[k + 1]):
                y.tie[y.member[p], y.member[q]] = 0
    for b in range(y.sizes[0]):
        above = parent[y.block_start[b]]
        while above >= 0:
            c = y.block[above]
            y.tie[b, c] = 1
            y.tie[c, b] = 1
            above = parent[y.block_start[c]]
    n = 0
    while n < r.number[0]:
        _tie_row(r, y, n)
        n += max(r.cone[n], 1)


@njit
def _tie_row(r: Any, y: Any, n: Any) -> None:
    """Tie the blocks of row n's columns to each other."""
    count = 0
    for e in range(r.start[n], r.stop[n]):
        b = y.block[r.column[e]]
        p = count - 1
        while p >= 0 and y.list[p] != b:
            p -= 1
        if p < 0:
            for q in range(count):
                y.tie[y.list[q], b] = 1
                y.tie[b, y.list[q]] = 1
            y.list[count] = b
            count += 1


@njit
def _order(y: Any, first: Any, last: Any, end: Any) -> Any:
    """Eliminate the island whose blocks are y.member[first:last]; its places end before `end`. Where they begin."""
    for p in range(first, last):
        b = y.member[p]
        y.tie[b, b] = 0
        y.degree[b] = 0
        for q in range(first, last):
            if y.tie[b, y.member[q]] == 1:
                y.degree[b] += _size(y, y.member[q])
    for p in range(first, last):
        b = _next(y, first, last)
        y.order[p] = b
        end -= _size(y, b)
        for a in range(_size(y, b)):
            y.place[y.block_start[b] + a] = end + a
        _eliminate(y, b, first, last)
    for p in range(first, last):
        _find_runs(y, y.order[p])
    return end


@inlined
def _size(y: Any, b: Any) -> Any:
    return y.block_start[b + 1] - y.block_start[b]


@njit
def _next(y: Any, first: Any, last: Any) -> Any:
    """The block of the lowest degree among those that are left; of equal ones the last."""
    best = -1
    for p in range(first, last):
        b = y.member[p]
        if y.degree[b] >= 0 and (best < 0 or y.degree[b] <= y.degree[best]):
            best = b
    return best


@njit
def _eliminate(y: Any, b: Any, first: Any, last: Any) -> None:
    """Tie to each other what b is tied to; that is then in y.run_start[b], by block."""
    neighbours = y.run_start[b]
    count = 0
    for p in range(first, last):
        c = y.member[p]
        if y.tie[b, c] == 1 and y.degree[c] >= 0:
            neighbours[count] = c
            count += 1
    y.run_count[b] = count
    y.degree[b] = -1
    for p in range(count):
        c = neighbours[p]
        y.degree[c] -= _size(y, b)
        for q in range(p):
            if y.tie[c, neighbours[q]] == 0:
                y.tie[c, neighbours[q]] = 1
                y.tie[neighbours[q], c] = 1
                y.degree[c] += _size(y, neighbours[q])
                y.degree[neighbours[q]] += _size(y, c)


@njit
def _find_runs(y: Any, b: Any) -> None:
    """The entries of block b's rows left of the block itself: runs of columns run_start to run_stop, ascending."""
    start = y.run_start[b]
    stop = y.run_stop[b]
    for p in range(y.run_count[b]):
        c = start[p]
        place = y.place[y.block_start[c]]
        size = _size(y, c)
        q = p
        while q > 0 and start[q - 1] > place:
            start[q] = start[q - 1]
            stop[q] = stop[q - 1]
            q -= 1
        start[q] = place
        stop[q] = place + size
    count = 0
    for p in range(y.run_count[b]):
        if count > 0 and stop[count - 1] == start[p]:
            stop[count - 1] = stop[p]
        else:
            start[count] = start[p]
            stop[count] = stop[p]
            count += 1
    y.run_count[b] = count
