"""The order in which the units of a crowd are visited: by colours, as many abreast as there are.

A unit gets the first colour that no earlier unit of its trees has, so that units of a colour share no tree: they can be
visited at once, and the processor need not wait for one unit to begin with the next. Of a colour, contacts are visited
first, then rows with bounds, WIDTH at once: places that are left over are empty. Other units are visited one by one,
and so is a unit that is left over alone: on a plate under a heap every contact has a colour of its own, and eight lanes
for one contact took a half longer there.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import STRIPS, WIDTH, ConstInts1
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import CROWD_COLOURS, NewtonWork

CONTACTS, ROWS, ONE = range(3)  # kinds of visits: contacts abreast, rows with bounds abreast, one unit of any kind
KIND, ENTRY, UNITS, PLACE = range(4)  # columns of work.visits


@njit
def order_visits(parent: ConstInts1, rows: Rows, work: NewtonWork, island: int) -> tuple[int, int]:
    """Set work.visits and work.sequence of the island; return the number of visits, and of places of their rows."""
    first = work.unit_start[island]
    count = work.unit_start[island + 1] - first
    groups = _find_groups(parent, rows, work, first, count)
    for group in range(groups + 1):
        work.group_start[group] = 0
    for entry in range(count):
        work.group_start[work.group_of[entry] + 1] += 1
    for group in range(groups):
        work.group_start[group + 1] += work.group_start[group]
    for entry in range(count):
        group = work.group_of[entry]
        work.sequence[work.group_start[group]] = work.listed[first + entry]
        work.group_start[group] += 1
    visit, entry, place = 0, 0, 0
    for group in range(groups):
        kind, last = group % 3, work.group_start[group]  # each group now ends where it is said to begin
        while entry < last:
            kind = ONE if last - entry == 1 else kind
            abreast = 1 if kind == ONE else WIDTH
            units = min(abreast, last - entry)
            line = work.visits[visit]
            line[KIND], line[ENTRY], line[UNITS], line[PLACE] = kind, entry, units, place
            place += abreast * max(rows.cone[work.sequence[entry]], 1)
            entry += units
            visit += 1
    return visit, place


@inlined
def _find_groups(parent: ConstInts1, rows: Rows, work: NewtonWork, first: int, count: int) -> int:
    """Set work.group_of, 3 times the colour of a unit and its kind, of the units listed from `first` on; return the
    number of these groups.
    """
    for entry in range(count):
        n = work.listed[first + entry]
        for e in range(rows.start[n], rows.stop[n]):
            work.colours[work.degree[rows.column[e]]] = 0
    colours, late = 0, 0
    for entry in range(count):
        n = work.listed[first + entry]
        colour = _first_colour(rows, work, n)
        if colour >= CROWD_COLOURS:
            colour = CROWD_COLOURS + late
            late += 1
        else:
            for e in range(rows.start[n], rows.stop[n]):
                work.colours[work.degree[rows.column[e]]] |= 1 << colour
        work.group_of[entry] = 3 * colour + _kind_of(parent, rows, work, n)
        colours = max(colour + 1, colours)
    return 3 * colours


@inlined
def _first_colour(rows: Rows, work: NewtonWork, n: int) -> int:
    """The first colour that no tree of the unit of row n has."""
    used, root = 0, -1
    for e in range(rows.start[n], rows.stop[n]):
        if work.degree[rows.column[e]] != root:
            root = work.degree[rows.column[e]]
            used |= work.colours[root]
    colour = 0
    while used >> colour & 1:
        colour += 1
    return colour


@inlined
def _kind_of(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int) -> int:
    """The kind of the unit of row n: CONTACTS or ROWS if it can be visited with others of that kind, since it moves one
    or two short blocks and keeps its J̃; else ONE.
    """
    if (rows.cone[n] > 1 and rows.cone[n] != 3) or not has_ancestors(parent, rows, n):
        return ONE
    a, _ = short_blocks(rows, work, n)
    if a < 0:
        return ONE
    return CONTACTS if rows.cone[n] == 3 else ROWS


@inlined
def short_blocks(rows: Rows, work: NewtonWork, n: int) -> tuple[int, int]:
    """The two blocks that the unit of row n moves, -1 in place of a second one; twice -1 if the unit moves no block,
    more than two, or a block of more than STRIPS dofs.
    """
    a, b = -1, -1
    for e in range(rows.start[n], rows.stop[n]):
        block = work.block[rows.column[e]]
        if a < 0:
            a = block
        elif block != a and b < 0:
            b = block
        if (block != a and block != b) or work.block_start[block + 1] - work.block_start[block] > STRIPS:
            return -1, -1
    return a, b


@inlined
def has_ancestors(parent: ConstInts1, rows: Rows, n: int) -> bool:
    """True if the columns of the unit of row n hold all their ancestors, as a rule one after the other."""
    for e in range(rows.start[n], rows.stop[n]):
        above = parent[rows.column[e]]
        if above < 0 or (e + 1 < rows.stop[n] and rows.column[e + 1] == above):
            continue
        there = False
        for other in range(rows.start[n], rows.stop[n]):
            there = there or rows.column[other] == above
        if not there:
            return False
    return True
