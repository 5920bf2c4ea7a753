"""Accelerated nonsmooth Gauss-Seidel for crowds: hundreds to thousands of contacts whose matrix would take too long.

An iteration visits all units twice (Jean 1999). A contact's three rows get the impulse that satisfies Coulomb's law
exactly at the current velocities of its two bodies (Bonnefon and Daviet 2011 list the cases); other units take a
projection step. The motion of λ in the two sweeps is then combined with the motions of earlier iterations so that the
least motion is left (Anderson 1965; Walker and Ni 2011), and the result is projected onto the cones. Where this mixture
does not help, sweeps go on without it for a while. J M̂⁻¹ Jᵀ is never formed: an iteration costs O(contacts) for any
connections. Units are visited by colours, none of which moves a body twice, WIDTH at once (crowd_lanes.py); that takes
as many iterations as the order in which they are listed, or a few fewer.

Sweeps alone reduce the residual of softness ε, relative to a contact's mobility, by a share of about ε; mixed, by the
root of ε. Measured on 216 to 1000 spheres and boxes poured into a box, friction 0.5, warm: 50 iterations to 1e-7 m/s at
ε = 0.01 (sweeps alone: 400), 20 at 0.1, 180 at 0.001; cold 100 to 260. Several contacts of two bodies count as one:
with ε for each of them, boxes take twice as many. An iteration takes longest where contacts slide. Without ε these
heaps take more than 10,000 sweeps: the impulses that wedge them build up slowly. Conjugate gradients on the sweeps
(Silcowitz, Niebe, Erleben 2010), ADMM, Newton's method on each convex problem of De Saxcé's shift, and on the law
itself, all stall at 1e-4 m/s there. Sweeps forwards and backwards took a fifth more time, and did not converge on a
castle of sand.

Impulses are in N s or N m s, velocities of rows in rad/s or m/s; a unit is identified by its first row, n.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.foundation.body_strips import add_scaled, product, subtract, turn
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import WIDTH, ConstInts1, Reals1
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.foundation.strip_pairs import NONE, add_one, add_three, one_product, three_products
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import MIXED, NEWTON_STEPS, NewtonWork, SolverBundle
from artsim.sim.solvers.attempts import begin, restart
from artsim.sim.solvers.cone import cone_projection
from artsim.sim.solvers.crowd_lanes import (
    BIG,
    BODY,
    COSINE,
    LOWER,
    MISS,
    OTHER,
    PAIRED,
    PULL,
    RATE,
    SINE,
    SLOPE,
    SMALL,
    SOFT,
    UPPER,
    W0,
    W1,
    W2,
    set_contacts,
    set_rows,
    velocities,
    visit_contacts,
    visit_rows,
)
from artsim.sim.solvers.crowd_law import impulse_at, principal
from artsim.sim.solvers.impulses import add_transposed, rows_times
from artsim.sim.solvers.nsgs import factorise_trees, find_trees
from artsim.sim.solvers.tolerance import UNTRIED

SOLVED_CROWD = 0.1 * UNSOLVED  # [rad/s or m/s] residual at which iterations end
SOLVED_FEW = 1e-3 * UNSOLVED  # [rad/s or m/s] residual at which iterations end for islands that are no crowds
_HARD_ITERATIONS = 300  # in all rounds with contacts as hard as they are
_PROXIMAL = 0.01  # ε of the first round, relative to a row's mobility
_HARDER = 0.1  # factor on ε in every further round
_LONGER = 3.0  # iterations of a further round, as a multiple of those of the round before
_WINDOW = 20  # iterations in which a mixture must help: else as many go without it, then twice as many
_PROGRESS = 0.5  # share of the motion that a mixture may leave at most in these iterations
_RISING = 2.0  # a mixture is taken back if the next pair of sweeps moves λ by more than this multiple of the last one
_RANK = 1e-12  # relative to the trace: added to the diagonal of the mixture's normal equations
_COLOURS = 60  # at most, one per bit
_CONTACT, _ROW, _ELSE = range(3)  # kinds of a colour's units: contacts and rows that take turns with others; the rest
_SHIFT, _MASK = WIDTH.bit_length() - 1, WIDTH - 1  # a seat is WIDTH times a row of work.moving, and a column


@njit
def solve_hard_crowd(
    model: Model, data: Workspace, rows: Rows, step: Step, solver: SolverBundle, island: int
) -> tuple[float, bool]:
    """Solve Coulomb's law of the island, a crowd, with contacts as hard as they are, by the proximal point method:
    rounds with ever smaller ε, each about the impulses of the one before. Returns the residual [rad/s or m/s], and True
    if the island is solved.

    Turn: first; every 64 steps where contacts are regularised. Costs: 300 iterations. Gives up: after these, or where
    the next round would take more. Needed by test_crowd.py::test_what_newton_solves_comes_out_the_same.
    """
    work = solver.newton
    restart(model, data, rows, step, solver, island)
    share, steps, left = _PROXIMAL, 0, UNTRIED
    while True:
        _set_proximal(rows, work, island, share)
        before = work.sizes[NEWTON_STEPS]
        left = sweep_crowd(model, data, rows, work, island, SOLVED_CROWD, _HARD_ITERATIONS - steps)
        taken = work.sizes[NEWTON_STEPS] - before
        if left > SOLVED_CROWD:
            return left, False
        left = max(_give(rows, work, island), left)
        if left <= SOLVED_CROWD:
            return left, True
        steps += taken
        if steps + int(_LONGER * taken) >= _HARD_ITERATIONS:
            return left, False
        share = _HARDER * share
        begin(model, data, rows, step, solver, island)


@njit
def has_hard_contacts(rows: Rows, work: NewtonWork, island: int) -> bool:
    """True if any contact of the island has no compliance of its own."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.kind[n] == CONTACT_ROW and work.given[n] <= 0.0:
            return True
    return False


@njit
def _set_proximal(rows: Rows, work: NewtonWork, island: int, share: float) -> None:
    """Set ε of the hard rows of the island, which have one, to a share of their mobility."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if work.eps[n] > 0.0:
            for row in range(n, n + max(rows.cone[n], 1)):
                work.eps[row] = share * inverse_or_zero(work.rho[n])


@njit
def _give(rows: Rows, work: NewtonWork, island: int) -> float:
    """The largest velocity by which rows of the island yield since λ is not λ_k [rad/s or m/s]."""
    most = 0.0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            most = max(work.eps[row] * abs(rows.impulse[row] - work.centre[row]), most)
    return most


# ------------------------------------------------------------------ the iteration


@njit
def sweep_crowd(
    model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int, tolerance: float, most: int
) -> float:
    """Iterate on the rows of the island, `most` times at most, from x = 0 and its λ; work.gradient holds -f - Jᵀλ.

    The rows' law has their cfm and the proximal term of work.eps and work.centre. Returns its residual [rad/s or m/s];
    x, work.velocity and λ are consistent. Iterations are added to work.sizes[NEWTON_STEPS].
    """
    count = _begin(model, data, rows, work, island)
    left = _residual(model, rows, work, island)
    differences, last = 0, -1.0  # number of differences in the mixture; motion of the last sweeps, -1: not comparable
    plain, rest = False, _WINDOW  # True while iterations go without a mixture; for how many iterations
    bar, since = UNTRIED, 0  # motion of the sweeps before these iterations, and the number of iterations since
    steps = 0
    while steps < most and left > tolerance:
        steps += 1
        _copy(work.impulse, work.before, count)
        for _ in range(2):
            _sweep(model, rows, work, island)
        moved, most_moved = _measure(work, count)
        if most_moved <= tolerance:
            left = _residual(model, rows, work, island)
            if left <= tolerance:
                break
        since += 1
        if since == (rest if plain else _WINDOW):
            rest = 2 * rest if plain else rest
            plain = not plain and moved > _PROGRESS * bar
            bar, since = moved, 0
            if plain:
                differences, last = 0, -1.0
        if plain:
            continue
        if last >= 0.0 and moved > _RISING * last:
            _set_impulses(model, rows, work, island, work.low)
            differences, last = 0, -1.0
            continue
        if last >= 0.0:
            _remember(work, count, differences, differences % MIXED)
            differences += 1
        _copy(work.before, work.off, count)
        _copy(work.impulse, work.low, count)
        last = moved
        if differences > 0 and steps < most:
            _mix(work, count, min(differences, MIXED))
            _set_impulses(model, rows, work, island, work.before)
    if steps == most:
        left = _residual(model, rows, work, island)
    _end(model, rows, work, island)
    work.sizes[NEWTON_STEPS] += steps
    return left


@njit
def _begin(model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int) -> int:
    """Factorise M̂ = LᵀDL of the island, set y and the constants of the iterations, and return the number of its rows.

    y = D^½ L x, in work.moving: J x = J̃ y, and y changes by J̃ᵀ dλ, with one J̃ = J L⁻¹ D^-½ for both, as in
    delassus.py. L is as sparse as the tree (Featherstone 2008, section 6.5), so that J̃ has the columns of J where these
    hold all their ancestors; work.tree_pivot: 1 / √D. A block begins a row of work.moving.
    """
    parent = model.independent_parent
    find_trees(parent, work, island)
    factorise_trees(model, data, work, island)
    _line_up(model, rows, work, island)
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
            for i in range(WIDTH):
                work.moving[seated >> _SHIFT, i] = 0.0
            seated += WIDTH
    for e in range(work.island_start[island], work.island_start[island + 1]):
        root = work.block_start[work.member[e]]
        if work.degree[root] == root:
            _fold(parent, work, root)
            _move(work, root)
    for i in range(WIDTH):
        work.moving[work.moving.shape[0] - 1, i] = 0.0
    entry, p = 0, 0
    while entry < work.unit_start[island + 1] - work.unit_start[island]:
        count, group_size = max(rows.cone[work.sequence[entry]], 1), work.group_size[entry]
        for lane in range(group_size):
            _prepare(parent, rows, work, work.sequence[entry + lane], p + lane, group_size)
        if group_size == WIDTH:
            _turn_strip(work, p, count)
        p += group_size * count
        entry += group_size
    return p


@inlined
def _turn_strip(work: NewtonWork, p: int, count: int) -> None:
    """Turn the lines of WIDTH units with `count` rows each into the layout of crowd_lanes.py."""
    width = 0
    for lane in range(WIDTH):
        width = max(work.sides[p + lane, PAIRED], width)
        if work.sides[p + lane, OTHER] == NONE:
            work.sides[p + lane, OTHER] = work.moving.shape[0] - 1
    work.sides[p, PAIRED] = width
    for row in range(count):
        turn(work.law, p + WIDTH * row, 0)
        turn(work.pairs, p + WIDTH * row, 0)
        turn(work.pairs, p + WIDTH * row, WIDTH)


@njit
def _line_up(model: Model, rows: Rows, work: NewtonWork, island: int) -> None:
    """Set work.sequence: the units of the island by colours, so that units that share no tree follow each other and can
    be visited at once, and the processor need not wait for one unit to begin with the next.

    A unit gets the first colour that no earlier unit of its trees has. Of a colour, contacts are visited first, WIDTH
    at once while there are enough, then rows with bounds. Units without a colour are visited last, one by one.
    """
    first = work.unit_start[island]
    count = work.unit_start[island + 1] - first
    for entry in range(first, first + count):
        n = work.listed[entry]
        for e in range(rows.start[n], rows.stop[n]):
            work.colours[work.degree[rows.column[e]]] = 0
    colours, late = 0, 0
    for entry in range(count):
        n = work.listed[first + entry]
        used, root = 0, -1
        for e in range(rows.start[n], rows.stop[n]):
            if work.degree[rows.column[e]] != root:
                root = work.degree[rows.column[e]]
                used |= work.colours[root]
        colour = 0
        while used >> colour & 1:
            colour += 1
        if colour >= _COLOURS:
            colour = _COLOURS + late
            late += 1
        else:
            for e in range(rows.start[n], rows.stop[n]):
                work.colours[work.degree[rows.column[e]]] |= 1 << colour
        work.group_of[entry] = colour
        colours = max(colour + 1, colours)
    for key in range(3 * colours + 1):
        work.group_start[key] = 0
    for entry in range(count):
        work.group_of[entry] = 3 * work.group_of[entry] + _kind_of(
            model.independent_parent, rows, work, work.listed[first + entry]
        )
        work.group_start[work.group_of[entry] + 1] += 1
    for key in range(3 * colours):
        work.group_start[key + 1] += work.group_start[key]
    for entry in range(count):
        key = work.group_of[entry]
        work.sequence[work.group_start[key]] = work.listed[first + entry]
        work.group_start[key] += 1
    entry = 0
    for key in range(3 * colours):
        while entry < work.group_start[key]:
            many = key % 3 != _ELSE and entry + WIDTH <= work.group_start[key]
            work.group_size[entry] = WIDTH if many else 1
            entry += work.group_size[entry]


@inlined
def _kind_of(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int) -> int:
    """The kind of the unit of row n: _CONTACT or _ROW if it can be visited with others of that kind, since it moves one
    or two short blocks and keeps its J̃; else _ELSE.
    """
    if (rows.cone[n] > 1 and rows.cone[n] != 3) or not _has_ancestors(parent, rows, n):
        return _ELSE
    a, _ = _short_blocks(rows, work, n)
    if a < 0:
        return _ELSE
    return _CONTACT if rows.cone[n] == 3 else _ROW


@njit
def _end(model: Model, rows: Rows, work: NewtonWork, island: int) -> None:
    """Set x, the impulses of the rows of the island and their velocities from the result of the iterations."""
    for e in range(work.island_start[island], work.island_start[island + 1]):
        root = work.block_start[work.member[e]]
        if work.degree[root] == root:
            _unfold(model.independent_parent, work, root, work.change)
    entry, p = 0, 0
    while entry < work.unit_start[island + 1] - work.unit_start[island]:
        count, group_size = max(rows.cone[work.sequence[entry]], 1), work.group_size[entry]
        if group_size == WIDTH and count == 3:
            turn(work.law, p + 2 * WIDTH, 0)
        for lane in range(group_size):
            _take(rows, work, work.sequence[entry + lane], p + lane, group_size)
        p += group_size * count
        entry += group_size


@inlined
def _take(rows: Rows, work: NewtonWork, n: int, p: int, stride: int) -> None:
    """Set the impulses of the unit of row n, and their velocities."""
    if rows.cone[n] == 3:
        c, s = work.law[p + 2 * stride, COSINE], work.law[p + 2 * stride, SINE]
        b, d = work.impulse[p + stride], work.impulse[p + 2 * stride]
        work.impulse[p + stride], work.impulse[p + 2 * stride] = c * b - s * d, s * b + c * d
    rows_times(rows, n, work.change, work.velocity)
    for row in range(n, n + max(rows.cone[n], 1)):
        rows.impulse[row] = work.impulse[p + (row - n) * stride]
        work.velocity[row] = work.velocity[row] + work.miss[row]


# ------------------------------------------------------------------ a unit, made ready


@inlined
def _prepare(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, p: int, stride: int) -> None:
    """Set J̃, λ and the law of the unit of row n, whose places among the island's rows are p, p + stride and so on.

    work.law has a line per row; that of a contact with friction is in the axes of `principal`, and so are its λ and J̃,
    unless J̃ has more columns than J and is not kept.
    """
    count = max(rows.cone[n], 1)
    soft = rows.cfm[n] + work.eps[n]
    work.whole[n] = 1 if _has_ancestors(parent, rows, n) else 0
    for row in range(n, n + count):
        work.miss[row] = work.velocity[row]  # at x = 0
        work.linear[row] = 0.0
        work.impulse[p + (row - n) * stride] = rows.impulse[row]
        work.law[p + (row - n) * stride, MISS] = work.velocity[row] - work.eps[n] * work.centre[row]
        if work.whole[n] == 1:
            _set_line(parent, rows, work, n, row)
    work.law[p, SOFT] = soft
    work.law[p, SLOPE] = rows.slope[n]
    work.sides[p, PAIRED] = 0
    if rows.cone[n] == 3:
        _set_contact(parent, rows, work, n, p, stride, soft)
    else:
        widest = 0.0
        for row in range(n, n + count):
            _answer(parent, rows, work, n, row, p)
            if row == n:
                work.law[p, PULL] = inverse_or_zero(work.along[n] + soft)
            else:
                total = 0.0
                for other in range(n + 1, n + count):
                    total += abs(work.along[other])
                widest = max(total + soft, widest)
        for row in range(1, count):
            work.law[p + row, PULL] = inverse_or_zero(widest)
        if count == 1:
            work.law[p, LOWER], work.law[p, UPPER] = rows.lower[n], rows.upper[n]
    if work.whole[n] == 1 and (count == 1 or count == 3):
        _pair(rows, work, n, p, stride, count)
    for row in range(count):
        place = p + row * stride
        work.high[place] = math.sqrt(inverse_or_zero(work.law[place, PULL]))


@inlined
def _set_contact(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, p: int, stride: int, soft: float) -> None:
    """Set the law of a contact with friction, and its J̃ and λ in the axes of the law."""
    law = work.law
    law[p + 2 * stride, COSINE], law[p + 2 * stride, SINE] = 1.0, 0.0
    _answer(parent, rows, work, n, n, p)
    w0, w1, w2 = work.along[n] + soft, work.along[n + 1], work.along[n + 2]
    _answer(parent, rows, work, n, n + 1, p)
    w11, w12 = work.along[n + 1] + soft, work.along[n + 2]
    _answer(parent, rows, work, n, n + 2, p)
    w22 = work.along[n + 2] + soft
    c, s, big, small = principal((w0, w1, w2, w11, w12, w22))
    law[p, W0], law[p, W1], law[p, W2] = w0, c * w1 + s * w2, c * w2 - s * w1
    law[p, RATE] = 0.0
    law[p, PULL] = inverse_or_zero(w0)
    law[p + stride, PULL] = inverse_or_zero(big + law[p, W1] * law[p, W1] * law[p, PULL])
    law[p + 2 * stride, PULL] = inverse_or_zero(small + law[p, W2] * law[p, W2] * law[p, PULL])
    law[p + stride, BIG], law[p + stride, SMALL] = big, small
    law[p + 2 * stride, COSINE], law[p + 2 * stride, SINE] = c, s
    b, d = law[p + stride, MISS], law[p + 2 * stride, MISS]
    law[p + stride, MISS], law[p + 2 * stride, MISS] = c * b + s * d, c * d - s * b
    b, d = work.impulse[p + stride], work.impulse[p + 2 * stride]
    work.impulse[p + stride], work.impulse[p + 2 * stride] = c * b + s * d, c * d - s * b
    if work.whole[n] == 1:
        t, o = rows.start[n + 1], rows.start[n + 2]
        for e in range(rows.stop[n] - rows.start[n]):
            b, d = work.inverse_mass_jacobian[t + e], work.inverse_mass_jacobian[o + e]
            work.inverse_mass_jacobian[t + e] = c * b + s * d
            work.inverse_mass_jacobian[o + e] = c * d - s * b


@inlined
def _short_blocks(rows: Rows, work: NewtonWork, n: int) -> tuple[int, int]:
    """The two blocks that the unit of row n moves, -1 in place of a second one; twice -1 if the unit moves no block,
    more than two, or a block of more than WIDTH dofs.
    """
    a, b = -1, -1
    for e in range(rows.start[n], rows.stop[n]):
        block = work.block[rows.column[e]]
        if a < 0:
            a = block
        elif block != a and b < 0:
            b = block
        if (block != a and block != b) or work.block_start[block + 1] - work.block_start[block] > WIDTH:
            return -1, -1
    return a, b


@inlined
def _pair(rows: Rows, work: NewtonWork, n: int, p: int, stride: int, count: int) -> None:
    """Set work.pairs and work.sides of the unit of row n, if it moves one or two short blocks: J̃ of both."""
    a, b = _short_blocks(rows, work, n)
    if a < 0:
        return
    width = work.block_start[a + 1] - work.block_start[a]
    if b >= 0:
        width = max(work.block_start[b + 1] - work.block_start[b], width)
    work.sides[p, PAIRED] = width
    work.sides[p, BODY] = work.seat[work.block_start[a]] >> _SHIFT
    work.sides[p, OTHER] = work.seat[work.block_start[b]] >> _SHIFT if b >= 0 else NONE
    for row in range(count):
        for i in range(2 * WIDTH):
            work.pairs[p + row * stride, i] = 0.0
        for e in range(rows.stop[n] - rows.start[n]):
            column = rows.column[rows.start[n] + e]
            i = column - work.block_start[a] if work.block[column] == a else WIDTH + column - work.block_start[b]
            work.pairs[p + row * stride, i] = work.inverse_mass_jacobian[rows.start[n + row] + e]


@inlined
def _has_ancestors(parent: ConstInts1, rows: Rows, n: int) -> bool:
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


@inlined
def _set_line(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, row: int) -> None:
    """Set J̃ of a row, in the places of its J."""
    for e in range(rows.start[row], rows.stop[row]):
        work.direction[rows.column[e]] += rows.value[e]
    root = -1
    for e in range(rows.start[n], rows.stop[n]):
        if work.degree[rows.column[e]] != root:
            root = work.degree[rows.column[e]]
            _fold(parent, work, root)
    for e in range(rows.start[row], rows.stop[row]):
        work.inverse_mass_jacobian[e] = work.direction[rows.column[e]]
    for e in range(rows.start[row], rows.stop[row]):
        work.direction[rows.column[e]] = 0.0


@inlined
def _answer(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, row: int, p: int) -> None:
    """work.along = J M̂⁻¹ Jᵀ of the unit of row n for an impulse of 1 on `row`."""
    if work.whole[n] == 1:
        for other in range(n, n + max(rows.cone[n], 1)):
            shift = rows.start[other] - rows.start[row]
            total = 0.0
            for e in range(rows.start[row], rows.stop[row]):
                total += work.inverse_mass_jacobian[e] * work.inverse_mass_jacobian[e + shift]
            work.along[other] = total
    else:
        _answer_by_tree(parent, rows, work, n, row, p)


@njit
def _answer_by_tree(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, row: int, p: int) -> None:
    """work.along = J M̂⁻¹ Jᵀ of the unit of row n for an impulse of 1 on `row`, by its trees, without J̃."""
    work.linear[row] = 1.0
    _apply(parent, rows, work, n, p)
    _find_velocities(parent, rows, work, n, p)
    for other in range(n, n + max(rows.cone[n], 1)):
        work.lines[0, other - n] = work.along[other]
    work.linear[row] = -1.0
    _apply(parent, rows, work, n, p)
    _find_velocities(parent, rows, work, n, p)
    for other in range(n, n + max(rows.cone[n], 1)):
        work.along[other] = work.lines[0, other - n] - work.along[other]
    work.linear[row] = 0.0


# ------------------------------------------------------------------ a unit, solved


@njit
def _sweep(model: Model, rows: Rows, work: NewtonWork, island: int) -> None:
    """Solve all units of the island, one after the other."""
    entry, p = 0, 0
    while entry < work.unit_start[island + 1] - work.unit_start[island]:
        n, group_size = work.sequence[entry], work.group_size[entry]
        if rows.cone[n] == 3:
            if group_size == WIDTH:
                visit_contacts(work, p)
            else:
                _visit_contact(model.independent_parent, rows, work, n, p)
        elif group_size == WIDTH:
            visit_rows(work, p)
        elif rows.cone[n] <= 1 and work.whole[n] == 1:
            _visit_row(rows, work, n, p)
        else:
            _visit(model.independent_parent, rows, work, n, p)
        p += group_size * max(rows.cone[n], 1)
        entry += group_size


@inlined
def _visit_contact(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, p: int) -> None:
    """Solve the contact of row n by its law. For a contact that stays open only the normal velocity is computed."""
    law = work.law
    a, b, c = work.impulse[p], work.impulse[p + 1], work.impulse[p + 2]
    paired = work.sides[p, PAIRED] > 0
    body, other = work.sides[p, BODY], work.sides[p, OTHER]
    if paired:
        if a <= 0.0 and one_product(work.pairs, p, work.moving, body, other) + law[p, MISS] >= 0.0:
            return
        v0, v1, v2 = three_products(work.pairs, p, work.moving, body, other)
    else:
        _find_velocities(parent, rows, work, n, p)
        v0, v1, v2 = work.along[n], work.along[n + 1], work.along[n + 2]
    v = v0 + law[p, MISS], v1 + law[p + 1, MISS], v2 + law[p + 2, MISS]
    w = law[p, W0], law[p, W1], law[p, W2], law[p + 1, BIG], law[p + 1, SMALL]
    rest = law[p, SOFT], law[p, PULL], law[p, SLOPE], law[p, RATE]
    z0, z1, z2, law[p, RATE] = impulse_at(v, (a, b, c), w, rest)
    work.impulse[p], work.impulse[p + 1], work.impulse[p + 2] = z0, z1, z2
    if paired:
        add_three(work.pairs, p, work.moving, body, other, (z0 - a, z1 - b, z2 - c))
    else:
        work.linear[n], work.linear[n + 1], work.linear[n + 2] = z0 - a, z1 - b, z2 - c
        _apply(parent, rows, work, n, p)


@inlined
def _visit_row(rows: Rows, work: NewtonWork, n: int, p: int) -> None:
    """Solve a row with bounds whose J̃ is kept."""
    z = work.impulse[p]
    paired = work.sides[p, PAIRED] > 0
    body, other = work.sides[p, BODY], work.sides[p, OTHER]
    v = one_product(work.pairs, p, work.moving, body, other) if paired else _velocity_of(rows, work, n)
    v += work.law[p, MISS] + work.law[p, SOFT] * z
    change = min(max(rows.lower[n], z - work.law[p, PULL] * v), rows.upper[n]) - z
    if change != 0.0:
        work.impulse[p] = z + change
        if paired:
            add_one(work.pairs, p, work.moving, body, other, change)
        else:
            _add_line(rows, work, n, change)


@inlined
def _visit(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, p: int) -> None:
    """Take a projection step with any other unit."""
    law = work.law
    _find_velocities(parent, rows, work, n, p)
    soft = law[p, SOFT]
    z = work.impulse[p] - law[p, PULL] * (work.along[n] + law[p, MISS] + soft * work.impulse[p])
    if rows.cone[n] > 1:
        z = max(0.0, z)
        _rub(rows, work, n, p, law[p, SLOPE] * z)
    else:
        z = min(max(rows.lower[n], z), rows.upper[n])
    work.linear[n] = z - work.impulse[p]
    moves = False
    for row in range(n, n + max(rows.cone[n], 1)):
        moves = moves or work.linear[row] != 0.0
        work.impulse[p + row - n] += work.linear[row]
    if moves:
        _apply(parent, rows, work, n, p)


@inlined
def _rub(rows: Rows, work: NewtonWork, n: int, p: int, most: float) -> None:
    """work.linear of the cone's tangential rows, for an impulse of at most `most` [N s]."""
    square = 0.0
    for row in range(n + 1, n + rows.cone[n]):
        place = p + row - n
        slip = work.along[row] + work.law[place, MISS] + work.law[p, SOFT] * work.impulse[place]
        work.linear[row] = work.impulse[place] - work.law[place, PULL] * slip
        square += work.linear[row] * work.linear[row]
    length = math.sqrt(square)
    factor = most * inverse_or_zero(length) if length > most else 1.0
    for row in range(n + 1, n + rows.cone[n]):
        work.linear[row] = factor * work.linear[row] - work.impulse[p + row - n]


@inlined
def _velocity_of(rows: Rows, work: NewtonWork, n: int) -> float:
    """J̃ y of row n."""
    v = 0.0
    for e in range(rows.start[n], rows.stop[n]):
        seat = work.seat[rows.column[e]]
        v += work.inverse_mass_jacobian[e] * work.moving[seat >> _SHIFT, seat & _MASK]
    return v


@inlined
def _add_line(rows: Rows, work: NewtonWork, n: int, change: float) -> None:
    """y += J̃ᵀ dλ of row n."""
    for e in range(rows.start[n], rows.stop[n]):
        seat = work.seat[rows.column[e]]
        work.moving[seat >> _SHIFT, seat & _MASK] += work.inverse_mass_jacobian[e] * change


@njit
def _find_velocities(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, p: int) -> None:
    """work.along = J x of the unit of row n, of a contact with friction in the axes of its law."""
    if work.sides[p, PAIRED] > 0 and rows.cone[n] == 3:
        body, other = work.sides[p, BODY], work.sides[p, OTHER]
        work.along[n], work.along[n + 1], work.along[n + 2] = three_products(work.pairs, p, work.moving, body, other)
        return
    if work.whole[n] == 1:
        for row in range(n, n + max(rows.cone[n], 1)):
            work.along[row] = _velocity_of(rows, work, row)
        return
    root = -1
    for e in range(rows.start[n], rows.stop[n]):
        if work.degree[rows.column[e]] != root:
            root = work.degree[rows.column[e]]
            _unfold(parent, work, root, work.change)
    rows_times(rows, n, work.change, work.along)
    if rows.cone[n] == 3:
        c, s = work.law[p + 2, COSINE], work.law[p + 2, SINE]
        b, d = work.along[n + 1], work.along[n + 2]
        work.along[n + 1], work.along[n + 2] = c * b + s * d, c * d - s * b


@inlined
def _apply(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, p: int) -> None:
    """y += J̃ᵀ dλ of the unit of row n, whose dλ is in work.linear."""
    if work.sides[p, PAIRED] > 0 and rows.cone[n] != 3:
        add_one(work.pairs, p, work.moving, work.sides[p, BODY], work.sides[p, OTHER], work.linear[n])
    elif work.sides[p, PAIRED] > 0:
        change = work.linear[n], work.linear[n + 1], work.linear[n + 2]
        add_three(work.pairs, p, work.moving, work.sides[p, BODY], work.sides[p, OTHER], change)
    elif work.whole[n] == 0:
        _apply_by_tree(parent, rows, work, n, p)
    else:
        for row in range(n, n + max(rows.cone[n], 1)):
            _add_line(rows, work, row, work.linear[row])


@njit
def _apply_by_tree(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, p: int) -> None:
    """y += J̃ᵀ dλ of the unit of row n by its trees, without J̃; work.linear of a contact with friction then leaves the
    axes of its law."""
    if rows.cone[n] == 3:
        c, s = work.law[p + 2, COSINE], work.law[p + 2, SINE]
        b, d = work.linear[n + 1], work.linear[n + 2]
        work.linear[n + 1], work.linear[n + 2] = c * b - s * d, s * b + c * d
    add_transposed(rows, n, 1.0, work.linear, work.direction)
    root = -1
    for e in range(rows.start[n], rows.stop[n]):
        if work.degree[rows.column[e]] != root:
            root = work.degree[rows.column[e]]
            _fold(parent, work, root)
            _move(work, root)


# ------------------------------------------------------------------ trees


@inlined
def _fold(parent: ConstInts1, work: NewtonWork, root: int) -> None:
    """work.direction = D^-½ L⁻ᵀ work.direction of the tree that begins with a root."""
    for i in range(work.list[root] - 1, root - 1, -1):
        if work.degree[i] == root:
            value = work.direction[i]
            j, p = parent[i], work.tree_start[i] + 1
            while j >= 0:
                work.direction[j] = work.direction[j] - work.tree_factor[p] * value
                j, p = parent[j], p + 1
            work.direction[i] = value * work.tree_pivot[i]


@inlined
def _move(work: NewtonWork, root: int) -> None:
    """y += work.direction of the tree that begins with a root; work.direction is then 0."""
    for i in range(root, work.list[root]):
        if work.degree[i] == root:
            work.moving[work.seat[i] >> _SHIFT, work.seat[i] & _MASK] += work.direction[i]
            work.direction[i] = 0.0


@inlined
def _unfold(parent: ConstInts1, work: NewtonWork, root: int, out: Reals1) -> None:
    """out = x = L⁻¹ D^-½ y of the tree that begins with a root."""
    for i in range(root, work.list[root]):
        if work.degree[i] == root:
            value = work.moving[work.seat[i] >> _SHIFT, work.seat[i] & _MASK] * work.tree_pivot[i]
            j, p = parent[i], work.tree_start[i] + 1
            while j >= 0:
                value = value - work.tree_factor[p] * out[j]
                j, p = parent[j], p + 1
            out[i] = value


# ------------------------------------------------------------------ the mixture


@inlined
def _copy(x: Reals1, out: Reals1, count: int) -> None:
    """out = x, of `count` entries."""
    for p in range(count):
        out[p] = x[p]


@njit
def _measure(work: NewtonWork, count: int) -> tuple[float, float]:
    """Set work.before to the motion of λ since λ was noted there, times its scale; return the norm of this motion, and
    the largest change of a row's velocity by its own impulse [rad/s or m/s].
    """
    square, most = 0.0, 0.0
    for p in range(count):
        moved = work.high[p] * (work.impulse[p] - work.before[p])
        work.before[p] = moved
        square += moved * moved
        most = max(abs(moved) * work.high[p], most)
    return math.sqrt(square), most


@njit
def _remember(work: NewtonWork, count: int, differences: int, place: int) -> None:
    """Note the differences of the motion of λ, and of λ after the sweeps, from the last ones, at a place of
    work.history; and in work.gram the products of the motions' differences with each other, and in its last column with
    the present motion.
    """
    motion, result = work.history[place], work.history[MIXED + place]
    subtract(work.before, work.off, motion, count)
    subtract(work.impulse, work.low, result, count)
    for other in range(min(differences + 1, MIXED)):
        total = product(work.history[other], motion, count)
        work.gram[place, other] = total
        work.gram[other, place] = total
        work.gram[other, MIXED] += total
    work.gram[place, MIXED] = product(motion, work.before, count)


@njit
def _mix(work: NewtonWork, count: int, differences: int) -> None:
    """work.before = the λ after the sweeps, less the combination of noted differences that leaves the least motion.

    The least squares are solved by their normal equations, L D Lᵀ in the last rows of work.gram.
    """
    L = work.gram[MIXED:]
    trace = 0.0
    for a in range(differences):
        trace += work.gram[a, a]
    for a in range(differences):
        L[a, MIXED] = work.gram[a, MIXED]
        for b in range(a + 1):
            value = work.gram[a, b] + (_RANK * trace if a == b else 0.0)
            for c in range(b):
                value -= L[a, c] * L[b, c] * L[c, c]
            L[a, b] = value * inverse_or_zero(L[b, b]) if b < a else value
    for a in range(differences):
        for b in range(a):
            L[a, MIXED] -= L[a, b] * L[b, MIXED]
    for a in range(differences - 1, -1, -1):
        L[a, MIXED] *= inverse_or_zero(L[a, a])
        for b in range(a + 1, differences):
            L[a, MIXED] -= L[b, a] * L[b, MIXED]
    _copy(work.low, work.before, count)
    for a in range(differences):
        add_scaled(work.before, -L[a, MIXED], work.history[MIXED + a], count)


@njit
def _set_impulses(model: Model, rows: Rows, work: NewtonWork, island: int, wanted: Reals1) -> None:
    """Set λ of the island to `wanted`, within bounds and cones, and y to match."""
    entry, p = 0, 0
    while entry < work.unit_start[island + 1] - work.unit_start[island]:
        n, group_size = work.sequence[entry], work.group_size[entry]
        if group_size == WIDTH and rows.cone[n] == 3:
            set_contacts(work, p, wanted)
        elif group_size == WIDTH:
            set_rows(work, p, wanted)
        else:
            _set_unit(model, rows, work, n, p, wanted)
        p += group_size * max(rows.cone[n], 1)
        entry += group_size


@inlined
def _set_unit(model: Model, rows: Rows, work: NewtonWork, n: int, p: int, wanted: Reals1) -> None:
    """Set λ of the unit of row n to `wanted`, within bounds or cone, and y to match."""
    last = n + max(rows.cone[n], 1)
    z = wanted[p]
    scale = 1.0
    if rows.cone[n] > 1:
        z = max(0.0, z)
        square = 0.0
        for row in range(n + 1, last):
            square += wanted[p + row - n] * wanted[p + row - n]
        most = work.law[p, SLOPE] * z
        if square > most * most:
            scale = most / math.sqrt(square)
    else:
        z = min(max(rows.lower[n], z), rows.upper[n])
    moves = z != work.impulse[p]
    work.linear[n] = z - work.impulse[p]
    work.impulse[p] = z
    for row in range(n + 1, last):
        place = p + row - n
        work.linear[row] = scale * wanted[place] - work.impulse[place]
        work.impulse[place] += work.linear[row]
        moves = moves or work.linear[row] != 0.0
    if moves:
        _apply(model.independent_parent, rows, work, n, p)


# ------------------------------------------------------------------ the residual


@njit
def _residual(model: Model, rows: Rows, work: NewtonWork, island: int) -> float:
    """The largest |λ - P(λ - ρ û)| / ρ of a unit of the island [rad/s or m/s], as coulomb_system.py has it."""
    worst = 0.0
    entry, p = 0, 0
    while entry < work.unit_start[island + 1] - work.unit_start[island]:
        n, group_size = work.sequence[entry], work.group_size[entry]
        count = max(rows.cone[n], 1)
        if group_size == WIDTH:
            velocities(work, p, count)
            for lane in range(WIDTH):
                rate = work.rho[work.sequence[entry + lane]]
                worst = max(_miss_in_lane(work, p, count, lane, rate) * inverse_or_zero(rate), worst)
        else:
            worst = max(_miss(model, rows, work, n, p) * inverse_or_zero(work.rho[n]), worst)
        p += group_size * count
        entry += group_size
    return worst


@njit
def _miss(model: Model, rows: Rows, work: NewtonWork, n: int, p: int) -> float:
    """|λ - P(λ - ρ û)| of the unit of row n."""
    _find_velocities(model.independent_parent, rows, work, n, p)
    z = work.impulse[p]
    free = z - work.rho[n] * (work.along[n] + work.law[p, MISS] + work.law[p, SOFT] * z)
    if rows.cone[n] > 1:
        return _cone_miss(rows, work, n, p, free)
    return abs(z - min(max(rows.lower[n], free), rows.upper[n]))


@inlined
def _miss_in_lane(work: NewtonWork, p: int, count: int, lane: int, rate: float) -> float:
    """|λ - P(λ - ρ û)| of a unit that is visited with others, whose velocities are in work.abreast."""
    law = work.law
    soft, mu = law[p + SOFT, lane], law[p + SLOPE, lane]
    z = work.impulse[p + lane]
    free = z - rate * (work.abreast[0, lane] + law[p + MISS, lane] + soft * z)
    if count == 1:
        return abs(z - min(max(law[p + LOWER, lane], free), law[p + UPPER, lane]))
    b, d = work.impulse[p + WIDTH + lane], work.impulse[p + 2 * WIDTH + lane]
    v1 = work.abreast[1, lane] + law[p + WIDTH + MISS, lane] + soft * b
    v2 = work.abreast[2, lane] + law[p + 2 * WIDTH + MISS, lane] + soft * d
    free -= rate * mu * math.sqrt(v1 * v1 + v2 * v2)
    t1, t2 = b - rate * v1, d - rate * v2
    length = math.sqrt(t1 * t1 + t2 * t2)
    _, _, _, _, along, across = cone_projection(mu, free, length, inverse_or_zero(length))
    scale = across * inverse_or_zero(length)
    off0, off1, off2 = z - along, b - scale * t1, d - scale * t2
    return math.sqrt(off0 * off0 + off1 * off1 + off2 * off2)


@njit
def _cone_miss(rows: Rows, work: NewtonWork, n: int, p: int, free: float) -> float:
    """|λ - P(λ - ρ û)| of the cone that begins with row n; `free`: its normal part, without the shift."""
    slip, square = 0.0, 0.0
    for row in range(n + 1, n + rows.cone[n]):
        place = p + row - n
        v = work.along[row] + work.law[place, MISS] + work.law[p, SOFT] * work.impulse[place]
        slip += v * v
        work.linear[row] = work.impulse[place] - work.rho[n] * v
        square += work.linear[row] * work.linear[row]
    mu = work.law[p, SLOPE]
    free -= work.rho[n] * mu * math.sqrt(slip)
    length = math.sqrt(square)
    _, _, _, _, along, across = cone_projection(mu, free, length, inverse_or_zero(length))
    off = work.impulse[p] - along
    total = off * off
    for row in range(n + 1, n + rows.cone[n]):
        off = work.impulse[p + row - n] - across * inverse_or_zero(length) * work.linear[row]
        total += off * off
    return math.sqrt(total)
