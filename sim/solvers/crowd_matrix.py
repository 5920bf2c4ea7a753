"""J̃ of a crowd, and its products: velocities J̃ y and their changes J̃ᵀ dλ, unit by unit; the island made ready, and x.

M̂ = LᵀDL and y = D^½ L x: J x = J̃ y, and y changes by J̃ᵀ dλ, with one J̃ = J L⁻¹ D^-½ for both, as in delassus.py. J̃
has the columns of J where these hold all their ancestors. It is kept then: in work.pairs for units visited abreast
(crowd_lanes.py), for others in work.inverse_mass_jacobian, in the places of J. Otherwise J x and J̃ᵀ dλ are found by
the trees. y stands in work.moving, where a block begins a row of SEATS entries.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import SEATS, STRIPS, WIDTH, ConstInts1, Reals1
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import NewtonWork
from artsim.sim.solvers.crowd_lanes import BODY, DOFS, OTHER, PAIR, PLACE_PAIRS
from artsim.sim.solvers.crowd_law import (
    BIG,
    COLUMNS,
    COSINE,
    LOWER,
    MISS,
    PULL,
    SINE,
    SLOPE,
    SMALL,
    SOFT,
    UPPER,
    W0,
    W1,
    W2,
    Units,
    law_of,
    of_row,
    principal,
    set_law,
    set_row,
)
from artsim.sim.solvers.crowd_order import ENTRY, KIND, ONE, PLACE, UNITS, has_ancestors, order_visits, short_blocks
from artsim.sim.solvers.impulses import add_transposed, rows_times
from artsim.sim.solvers.trees import factorise_trees, find_trees, fold, unfold

_SHIFT, _MASK = SEATS.bit_length() - 1, SEATS - 1  # a seat is SEATS times a row of work.moving, and a column


@njit
def begin_crowd(model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int) -> tuple[int, int]:
    """Factorise M̂ of the island, set y, J̃ and the law of its units; return the number of visits and of places.

    work.tree_pivot: 1 / √D.
    """
    parent = model.independent_parent
    find_trees(parent, work, island)
    factorise_trees(model, data, work, island)
    visits, places = order_visits(parent, rows, work, island)
    _begin_velocities(parent, work, island)
    for visit in range(visits):
        line = work.visits[visit]
        first, place = line[ENTRY], line[PLACE]
        count = max(rows.cone[work.sequence[first]], 1)
        stride = 1 if line[KIND] == ONE else WIDTH
        work.sides[place, DOFS] = 0
        for lane in range(stride):
            unit = Units(place, stride, lane)
            _clear(work, unit, count)
            if stride > 1:
                _clear_pair(work, unit, count)
            if lane < line[UNITS]:
                _prepare(parent, rows, work, work.sequence[first + lane], unit)
                if stride > 1:
                    _pair(rows, work, work.sequence[first + lane], unit)
    return visits, places


@inlined
def _begin_velocities(parent: ConstInts1, work: NewtonWork, island: int) -> None:
    """Set y of the island from work.gradient, and the seats of its dofs in work.moving; the last row is the world's."""
    seated = 0
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.tree_pivot[a] = math.sqrt(work.tree_pivot[a])
            work.direction[a] = -work.gradient[a]
            work.gradient[a] = 0.0
            work.seat[a] = seated + a - work.block_start[b]
        last = seated + work.block_start[b + 1] - work.block_start[b]
        while seated < last:
            for i in range(SEATS):
                work.moving[seated >> _SHIFT, i] = 0.0
            seated += SEATS
    for e in range(work.island_start[island], work.island_start[island + 1]):
        root = work.block_start[work.member[e]]
        if work.degree[root] == root:
            fold(parent, work, root)
            _move(work, root)
    for i in range(SEATS):
        work.moving[work.moving.shape[0] - 1, i] = 0.0


@njit
def end_crowd(model: Model, rows: Rows, work: NewtonWork, island: int, visits: int) -> None:
    """Set x, the impulses of the rows of the island and their velocities from the result of the iterations."""
    for e in range(work.island_start[island], work.island_start[island + 1]):
        root = work.block_start[work.member[e]]
        if work.degree[root] == root:
            _set_x(model.independent_parent, work, root)
    for visit in range(visits):
        line = work.visits[visit]
        stride = 1 if line[KIND] == ONE else WIDTH
        for lane in range(line[UNITS]):
            _end_unit(rows, work, work.sequence[line[ENTRY] + lane], Units(line[PLACE], stride, lane))


@inlined
def _end_unit(rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """Set the impulses of the unit of row n, and their velocities."""
    rows_times(rows, n, work.change, work.velocity)
    for row in range(max(rows.cone[n], 1)):
        rows.impulse[n + row] = of_row(work.impulse, unit, row)
        work.velocity[n + row] = work.velocity[n + row] + work.miss[n + row]
    if rows.cone[n] == 3:
        _from_axes(work, unit, n, rows.impulse)


# ------------------------------------------------------------------ a unit, made ready


@inlined
def _clear(work: NewtonWork, unit: Units, count: int) -> None:
    """Zero λ and the law of a unit of `count` rows, so that nothing moves it."""
    for row in range(count):
        set_row(work.impulse, unit, row, 0.0)
        set_row(work.scale, unit, row, 0.0)
        for column in range(COLUMNS):
            set_law(work, unit, row, column, 0.0)
    if count == 3:
        set_law(work, unit, 1, BIG, 1.0)  # they are divided by
        set_law(work, unit, 1, SMALL, 1.0)


@inlined
def _prepare(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """Set J̃, λ and the law of the unit of row n, over W = J M̂⁻¹ Jᵀ, which work.lines holds from line 1 on.

    The law of a contact with friction is in the axes of `principal`, and so are its λ and J̃, unless J̃ is not kept.
    """
    count = max(rows.cone[n], 1)
    work.whole[n] = 1 if has_ancestors(parent, rows, n) else 0
    for row in range(n, n + count):
        work.miss[row] = work.velocity[row]  # at x = 0
        work.linear[row] = 0.0
        set_row(work.impulse, unit, row - n, rows.impulse[row])
        set_law(work, unit, row - n, MISS, work.velocity[row] - work.eps[n] * work.centre[row])
        if work.whole[n] == 1:
            _set_line(parent, rows, work, n, row)
    soft = rows.cfm[n] + work.eps[n]
    set_law(work, unit, 0, SOFT, soft)
    set_law(work, unit, 0, SLOPE, rows.slope[n])
    if count == 3:
        set_law(work, unit, 2, COSINE, 1.0)  # of J in products by the trees
    for row in range(count):
        _answer(parent, rows, work, n, n + row, unit)
        for other in range(count):
            work.lines[1 + row, other] = work.along[n + other]
    if rows.cone[n] == 3:
        _set_contact(rows, work, n, unit, soft)
    else:
        _set_steps(work, count, unit, soft)
        if count == 1:
            set_law(work, unit, 0, LOWER, rows.lower[n])
            set_law(work, unit, 0, UPPER, rows.upper[n])
    for row in range(count):
        set_row(work.scale, unit, row, math.sqrt(inverse_or_zero(law_of(work, unit, row, PULL))))


@inlined
def _set_steps(work: NewtonWork, count: int, unit: Units, soft: float) -> None:
    """Set the impulses per velocity of a unit of `count` rows: of its first row, and an upper bound for the others."""
    W = work.lines[1:]
    set_law(work, unit, 0, PULL, inverse_or_zero(W[0, 0] + soft))
    widest = 0.0
    for row in range(1, count):
        total = 0.0
        for other in range(1, count):
            total += abs(W[row, other])
        widest = max(total + soft, widest)
    for row in range(1, count):
        set_law(work, unit, row, PULL, inverse_or_zero(widest))


@inlined
def _set_contact(rows: Rows, work: NewtonWork, n: int, unit: Units, soft: float) -> None:
    """Set the law of a contact with friction, and its J̃ and λ in the axes of the law."""
    W = work.lines[1:]
    w0, w1, w2 = W[0, 0] + soft, W[0, 1], W[0, 2]
    w11, w12, w22 = W[1, 1] + soft, W[1, 2], W[2, 2] + soft
    c, s, big, small = principal((w0, w1, w2, w11, w12, w22))
    w1, w2 = _turned(c, s, w1, w2)
    pull = inverse_or_zero(w0)
    set_law(work, unit, 0, W0, w0)
    set_law(work, unit, 0, W1, w1)
    set_law(work, unit, 0, W2, w2)
    set_law(work, unit, 0, PULL, pull)
    set_law(work, unit, 1, PULL, inverse_or_zero(big + w1 * w1 * pull))
    set_law(work, unit, 2, PULL, inverse_or_zero(small + w2 * w2 * pull))
    set_law(work, unit, 1, BIG, big)
    set_law(work, unit, 1, SMALL, small)
    set_law(work, unit, 2, COSINE, c)
    set_law(work, unit, 2, SINE, s)
    b, d = _turned(c, s, law_of(work, unit, 1, MISS), law_of(work, unit, 2, MISS))
    set_law(work, unit, 1, MISS, b)
    set_law(work, unit, 2, MISS, d)
    b, d = _turned(c, s, of_row(work.impulse, unit, 1), of_row(work.impulse, unit, 2))
    set_row(work.impulse, unit, 1, b)
    set_row(work.impulse, unit, 2, d)
    if work.whole[n] == 1:
        J, t, o = work.inverse_mass_jacobian, rows.start[n + 1], rows.start[n + 2]
        for e in range(rows.stop[n] - rows.start[n]):
            J[t + e], J[o + e] = _turned(c, s, J[t + e], J[o + e])


@inlined
def _turned(c: float, s: float, b: float, d: float) -> tuple[float, float]:
    """Two tangential components in axes whose cosine and sine are c and s."""
    return c * b + s * d, c * d - s * b


@inlined
def _to_axes(work: NewtonWork, unit: Units, n: int, x: Reals1) -> None:
    """Turn the tangential entries of x (rows,) for the contact of row n to the axes of its law."""
    c, s = law_of(work, unit, 2, COSINE), law_of(work, unit, 2, SINE)
    x[n + 1], x[n + 2] = _turned(c, s, x[n + 1], x[n + 2])


@inlined
def _from_axes(work: NewtonWork, unit: Units, n: int, x: Reals1) -> None:
    """The inverse of `_to_axes`."""
    c, s = law_of(work, unit, 2, COSINE), law_of(work, unit, 2, SINE)
    x[n + 1], x[n + 2] = _turned(c, -s, x[n + 1], x[n + 2])


@inlined
def _clear_pair(work: NewtonWork, unit: Units, count: int) -> None:
    """Zero J̃ of a unit abreast of others, of `count` rows; both bodies are the world."""
    work.sides[unit.place + unit.lane, BODY] = work.sides[unit.place + unit.lane, OTHER] = work.moving.shape[0] - 1
    for column in range(STRIPS * count):
        at = PLACE_PAIRS * unit.place + PAIR * column + unit.lane
        work.pairs[at] = work.pairs[at + WIDTH] = 0.0


@inlined
def _pair(rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """Set work.pairs and work.sides of the unit of row n, which moves one or two short blocks: J̃ of both."""
    a, b = short_blocks(rows, work, n)
    line = work.sides[unit.place + unit.lane]
    dofs = work.block_start[a + 1] - work.block_start[a]
    line[BODY] = work.seat[work.block_start[a]] >> _SHIFT
    if b >= 0:
        dofs = max(work.block_start[b + 1] - work.block_start[b], dofs)
        line[OTHER] = work.seat[work.block_start[b]] >> _SHIFT
    work.sides[unit.place, DOFS] = max(work.sides[unit.place, DOFS], dofs)
    for row in range(max(rows.cone[n], 1)):
        for e in range(rows.stop[n] - rows.start[n]):
            column = rows.column[rows.start[n] + e]
            own = work.block[column] == a
            i = column - work.block_start[a if own else b]
            at = PLACE_PAIRS * (unit.place + WIDTH * row) + PAIR * i + unit.lane
            work.pairs[at if own else at + WIDTH] = work.inverse_mass_jacobian[rows.start[n + row] + e]


@inlined
def _set_line(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, row: int) -> None:
    """Set J̃ of a row, in the places of its J."""
    for e in range(rows.start[row], rows.stop[row]):
        work.direction[rows.column[e]] += rows.value[e]
    root = -1
    for e in range(rows.start[n], rows.stop[n]):
        if work.degree[rows.column[e]] != root:
            root = work.degree[rows.column[e]]
            fold(parent, work, root)
    for e in range(rows.start[row], rows.stop[row]):
        work.inverse_mass_jacobian[e] = work.direction[rows.column[e]]
    for e in range(rows.start[row], rows.stop[row]):
        work.direction[rows.column[e]] = 0.0


@inlined
def _answer(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, row: int, unit: Units) -> None:
    """work.along = J M̂⁻¹ Jᵀ of the unit of row n for an impulse of 1 on `row`."""
    if work.whole[n] == 1:
        for other in range(n, n + max(rows.cone[n], 1)):
            shift = rows.start[other] - rows.start[row]
            total = 0.0
            for e in range(rows.start[row], rows.stop[row]):
                total += work.inverse_mass_jacobian[e] * work.inverse_mass_jacobian[e + shift]
            work.along[other] = total
    else:
        _answer_by_tree(parent, rows, work, n, row, unit)


@njit
def _answer_by_tree(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, row: int, unit: Units) -> None:
    """work.along = J M̂⁻¹ Jᵀ of the unit of row n for an impulse of 1 on `row`, by its trees, without J̃."""
    work.linear[row] = 1.0
    _apply_by_tree(parent, rows, work, n, unit)
    _find_by_tree(parent, rows, work, n, unit)
    for other in range(n, n + max(rows.cone[n], 1)):
        work.lines[0, other - n] = work.along[other]
    work.linear[row] = -1.0
    _apply_by_tree(parent, rows, work, n, unit)
    _find_by_tree(parent, rows, work, n, unit)
    for other in range(n, n + max(rows.cone[n], 1)):
        work.along[other] = work.lines[0, other - n] - work.along[other]
    work.linear[row] = 0.0


# ------------------------------------------------------------------ products of a unit visited by itself


@inlined
def find_velocities(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """work.along = J x of the unit of row n, of a contact with friction in the axes of its law."""
    if work.whole[n] == 0:
        _find_by_tree(parent, rows, work, n, unit)
        return
    J, first = work.inverse_mass_jacobian, rows.start[n]
    if rows.cone[n] == 3:
        s, t = rows.start[n + 1], rows.start[n + 2]
        normal, tangent, other = 0.0, 0.0, 0.0
        for e in range(rows.stop[n] - first):
            seat = work.seat[rows.column[first + e]]
            y = work.moving[seat >> _SHIFT, seat & _MASK]
            normal += J[first + e] * y
            tangent += J[s + e] * y
            other += J[t + e] * y
        work.along[n], work.along[n + 1], work.along[n + 2] = normal, tangent, other
        return
    for row in range(n, n + max(rows.cone[n], 1)):
        v = 0.0
        for e in range(rows.start[row], rows.stop[row]):
            seat = work.seat[rows.column[e]]
            v += J[e] * work.moving[seat >> _SHIFT, seat & _MASK]
        work.along[row] = v


@njit
def _find_by_tree(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """work.along = J x of the unit of row n by its trees, without J̃."""
    root = -1
    for e in range(rows.start[n], rows.stop[n]):
        if work.degree[rows.column[e]] != root:
            root = work.degree[rows.column[e]]
            _set_x(parent, work, root)
    rows_times(rows, n, work.change, work.along)
    if rows.cone[n] == 3:
        _to_axes(work, unit, n, work.along)


@inlined
def apply(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """y += J̃ᵀ dλ of the unit of row n, whose dλ is in work.linear."""
    if work.whole[n] == 0:
        _apply_by_tree(parent, rows, work, n, unit)
        return
    J, z, first = work.inverse_mass_jacobian, work.linear, rows.start[n]
    if rows.cone[n] == 3:
        s, t = rows.start[n + 1], rows.start[n + 2]
        normal, tangent, other = z[n], z[n + 1], z[n + 2]
        for e in range(rows.stop[n] - first):
            seat = work.seat[rows.column[first + e]]
            y = work.moving[seat >> _SHIFT, seat & _MASK] + J[first + e] * normal
            work.moving[seat >> _SHIFT, seat & _MASK] = y + J[s + e] * tangent + J[t + e] * other
        return
    for row in range(n, n + max(rows.cone[n], 1)):
        for e in range(rows.start[row], rows.stop[row]):
            seat = work.seat[rows.column[e]]
            work.moving[seat >> _SHIFT, seat & _MASK] += J[e] * z[row]


@njit
def _apply_by_tree(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """y += J̃ᵀ dλ of the unit of row n by its trees, without J̃; work.linear of a contact with friction then leaves the
    axes of its law."""
    if rows.cone[n] == 3:
        _from_axes(work, unit, n, work.linear)
    add_transposed(rows, n, 1.0, work.linear, work.direction)
    root = -1
    for e in range(rows.start[n], rows.stop[n]):
        if work.degree[rows.column[e]] != root:
            root = work.degree[rows.column[e]]
            fold(parent, work, root)
            _move(work, root)


@inlined
def _move(work: NewtonWork, root: int) -> None:
    """y += work.direction of the tree that begins with a root; work.direction is then 0."""
    for i in range(root, work.list[root]):
        if work.degree[i] == root:
            work.moving[work.seat[i] >> _SHIFT, work.seat[i] & _MASK] += work.direction[i]
            work.direction[i] = 0.0


@inlined
def _set_x(parent: ConstInts1, work: NewtonWork, root: int) -> None:
    """work.change = x = L⁻¹ D^-½ y of the tree that begins with a root."""
    for i in range(root, work.list[root]):
        if work.degree[i] == root:
            work.change[i] = work.moving[work.seat[i] >> _SHIFT, work.seat[i] & _MASK] * work.tree_pivot[i]
    unfold(parent, work, root, work.change)
