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
def find_structure(model: Any, rows: Any, solver: Any) -> None:
    """solver.place, solver.order, solver.runs, … for the rows that are there. Blocks are found once: they are the
    model's."""
    if solver.sizes[0] == 0:
        _find_blocks(model.independent_parent, solver)
    _find_islands(model.independent_parent, rows, solver)
    _list_units(rows, solver)
    _tie(model.independent_parent, rows, solver)
    end = solver.place.shape[0]
    for k in range(solver.sizes[1]):
        end = _order(solver, solver.island_start[k], solver.island_start[k + 1], end)


@njit
def one_island(model: Any, rows: Any, solver: Any) -> None:
    """All dofs and rows as one island, without an order, for solvers that have their own linear algebra."""
    if solver.sizes[0] == 0:
        _find_blocks(model.independent_parent, solver)
    solver.sizes[1] = min(solver.sizes[0], 1)
    for b in range(solver.sizes[0]):
        solver.island[b] = 0
    _list_members(solver)
    _list_units(rows, solver)


@njit
def _find_blocks(parent: Any, solver: Any) -> None:
    """solver.block of each dof, solver.block_start; their number is solver.sizes[0]."""
    nu = parent.shape[0]
    for a in range(nu):
        solver.place[a] = 0
    for a in range(nu):
        if parent[a] >= 0:
            solver.place[parent[a]] += 1
    count = 0
    for a in range(nu):
        if a == 0 or parent[a] != a - 1 or solver.place[a - 1] > 1:
            solver.block_start[count] = a
            count += 1
        solver.block[a] = count - 1
    solver.block_start[count] = nu
    solver.sizes[0] = count


# ------------------------------------------------------------------ islands


@njit
def _find_islands(parent: Any, rows: Any, solver: Any) -> None:
    """solver.island of each block, numbered by their first blocks; their number is solver.sizes[1]."""
    for b in range(solver.sizes[0]):
        above = parent[solver.block_start[b]]
        solver.island[b] = (
            solver.island[solver.block[above]] if above >= 0 else b
        )  # blocks come after what they hang on
    n = 0
    while n < rows.number[0]:
        for e in range(rows.start[n] + 1, rows.stop[n]):
            b = solver.block[rows.column[e]]
            if b != solver.block[rows.column[e - 1]]:
                _unite(solver.island, solver.block[rows.column[e - 1]], b)
        n += max(rows.cone[n], 1)
    count = 0
    for b in range(solver.sizes[0]):
        if solver.island[b] == b:
            solver.degree[b] = count
            count += 1
        else:
            solver.island[b] = _first_of(solver.island, b)
    for b in range(solver.sizes[0]):
        solver.island[b] = solver.degree[solver.island[b]]
    solver.sizes[1] = count
    _list_members(solver)


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
def _list_members(solver: Any) -> None:
    """solver.member: the blocks of each island in turn, which begin at solver.island_start."""
    for k in range(solver.sizes[1] + 1):
        solver.island_start[k] = 0
    for b in range(solver.sizes[0]):
        solver.island_start[solver.island[b] + 1] += 1
    for k in range(solver.sizes[1]):
        solver.island_start[k + 1] += solver.island_start[k]
        solver.degree[k] = solver.island_start[k]
    for b in range(solver.sizes[0]):
        k = solver.island[b]
        solver.member[solver.degree[k]] = b
        solver.degree[k] += 1


@njit
def _list_units(rows: Any, solver: Any) -> None:
    """solver.listed: box rows and cones by island, as their first rows; where an island's begin is in
    solver.unit_start.

    One without columns goes with the first island; where nothing can move, there is none.
    """
    for k in range(solver.sizes[1] + 1):
        solver.unit_start[k] = 0
    if solver.sizes[1] == 0:
        return
    n = 0
    while n < rows.number[0]:
        solver.unit_start[_island_of(rows, solver, n) + 1] += 1
        n += max(rows.cone[n], 1)
    for k in range(solver.sizes[1]):
        solver.unit_start[k + 1] += solver.unit_start[k]
        solver.degree[k] = solver.unit_start[k]
    n = 0
    while n < rows.number[0]:
        k = _island_of(rows, solver, n)
        solver.listed[solver.degree[k]] = n
        solver.degree[k] += 1
        n += max(rows.cone[n], 1)


@inlined
def _island_of(rows: Any, solver: Any, n: Any) -> Any:
    return solver.island[solver.block[rows.column[rows.start[n]]]] if rows.stop[n] > rows.start[n] else 0


# ------------------------------------------------------------------ order and fill


@njit
def _tie(parent: Any, rows: Any, solver: Any) -> None:
    """solver.tie[b, c] = 1 where the matrix ties two blocks."""
    for k in range(solver.sizes[1]):
        for p in range(solver.island_start[k], solver.island_start[k + 1]):
            for q in range(solver.island_start[k], solver.island_start[k + 1]):
                solver.tie[solver.member[p], solver.member[q]] = 0
    for b in range(solver.sizes[0]):
        above = parent[solver.block_start[b]]
        while above >= 0:
            c = solver.block[above]
            solver.tie[b, c] = 1
            solver.tie[c, b] = 1
            above = parent[solver.block_start[c]]
    n = 0
    while n < rows.number[0]:
        _tie_row(rows, solver, n)
        n += max(rows.cone[n], 1)


@njit
def _tie_row(rows: Any, solver: Any, n: Any) -> None:
    """Tie the blocks of row n's columns to each other."""
    count = 0
    for e in range(rows.start[n], rows.stop[n]):
        b = solver.block[rows.column[e]]
        p = count - 1
        while p >= 0 and solver.list[p] != b:
            p -= 1
        if p < 0:
            for q in range(count):
                solver.tie[solver.list[q], b] = 1
                solver.tie[b, solver.list[q]] = 1
            solver.list[count] = b
            count += 1


@njit
def _order(solver: Any, first: Any, last: Any, end: Any) -> Any:
    """Eliminate the island whose blocks are solver.member[first:last]; its places end before `end`. Where they
    begin."""
    for p in range(first, last):
        b = solver.member[p]
        solver.tie[b, b] = 0
        solver.degree[b] = 0
        for q in range(first, last):
            if solver.tie[b, solver.member[q]] == 1:
                solver.degree[b] += _size(solver, solver.member[q])
    for p in range(first, last):
        b = _next(solver, first, last)
        solver.order[p] = b
        end -= _size(solver, b)
        for a in range(_size(solver, b)):
            solver.place[solver.block_start[b] + a] = end + a
        _eliminate(solver, b, first, last)
    for p in range(first, last):
        _find_runs(solver, solver.order[p])
    return end


@inlined
def _size(solver: Any, b: Any) -> Any:
    return solver.block_start[b + 1] - solver.block_start[b]


@njit
def _next(solver: Any, first: Any, last: Any) -> Any:
    """The block of the lowest degree among those that are left; of equal ones the last."""
    best = -1
    for p in range(first, last):
        b = solver.member[p]
        if solver.degree[b] >= 0 and (best < 0 or solver.degree[b] <= solver.degree[best]):
            best = b
    return best


@njit
def _eliminate(solver: Any, b: Any, first: Any, last: Any) -> None:
    """Tie to each other what b is tied to; that is then in solver.run_start[b], by block."""
    neighbours = solver.run_start[b]
    count = 0
    for p in range(first, last):
        c = solver.member[p]
        if solver.tie[b, c] == 1 and solver.degree[c] >= 0:
            neighbours[count] = c
            count += 1
    solver.run_count[b] = count
    solver.degree[b] = -1
    for p in range(count):
        c = neighbours[p]
        solver.degree[c] -= _size(solver, b)
        for q in range(p):
            if solver.tie[c, neighbours[q]] == 0:
                solver.tie[c, neighbours[q]] = 1
                solver.tie[neighbours[q], c] = 1
                solver.degree[c] += _size(solver, neighbours[q])
                solver.degree[neighbours[q]] += _size(solver, c)


@njit
def _find_runs(solver: Any, b: Any) -> None:
    """The entries of block b's rows left of the block itself: runs of columns run_start to run_stop, ascending."""
    start = solver.run_start[b]
    stop = solver.run_stop[b]
    for p in range(solver.run_count[b]):
        c = start[p]
        place = solver.place[solver.block_start[c]]
        size = _size(solver, c)
        q = p
        while q > 0 and start[q - 1] > place:
            start[q] = start[q - 1]
            stop[q] = stop[q - 1]
            q -= 1
        start[q] = place
        stop[q] = place + size
    count = 0
    for p in range(solver.run_count[b]):
        if count > 0 and stop[count - 1] == start[p]:
            stop[count - 1] = stop[p]
        else:
            start[count] = start[p]
            stop[count] = stop[p]
            count += 1
    solver.run_count[b] = count
