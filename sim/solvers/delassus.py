"""Newton steps of coulomb.py for a few rows, in their impulses alone.

Once M̂ x = f + Jᵀλ holds, a Newton step of coulomb_system.py keeps it, so that the rows' velocities change by W dλ with
the Delassus matrix W = J M̂⁻¹ Jᵀ, and dλ = -D S W dλ + the change of λ at fixed x, with D S of `stiffness` and the
shift. W is computed once, from J L⁻¹ with M̂ = Lᵀ D L; a step then costs O(rows³) instead of a factorisation of
M̂ + Jᵀ D S J, and x is computed at the end. For more than MOST_DELASSUS_ROWS rows the factorisation is cheaper; where a
stiff drive presses on a light link, it is more accurate.

Every function serves a single robot, a lane by itself and the lanes of a pack. The units that take part are listed in
work.stepping_unit, and their rows are numbered from 0. Packs list the rows of all their lanes, and move each lane's own
side by side before W is formed (own_rows.py).
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real, Vec4
from artsim.sim.foundation.strips import load_strip, store_strip, strip_size, subtract_rows
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import KEPT_ISLAND, KEPT_UNITS, MOST_DELASSUS_ROWS, STEPPING_UNITS, NewtonWork
from artsim.sim.solvers.blocks import island_places, solve_blocks, start_of, stop_of
from artsim.sim.solvers.coulomb_system import set_pull, set_still_change, stiffness
from artsim.sim.solvers.impulses import add_transposed

MOST_PULL = 1e3  # [rad/s or m/s] by an impulse, beyond which W dλ loses too many digits of velocities


@njit
def list_delassus_rows(rows: Rows, work: NewtonWork, island: int) -> None:
    """List all units of the island, or none if they have too many rows for steps in impulses."""
    count = 0
    work.sizes[STEPPING_UNITS] = 0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        count += max(rows.cone[n], 1)
        if count > MOST_DELASSUS_ROWS:
            work.sizes[STEPPING_UNITS] = 0
            return
        list_unit(work, n)


@inlined
def list_unit(work: NewtonWork, n: int) -> None:
    """List the unit of row n."""
    work.stepping_unit[work.sizes[STEPPING_UNITS]] = n
    work.sizes[STEPPING_UNITS] += 1


# ------------------------------------------------------------------ W


@njit
def set_delassus(rows: Rows, work: NewtonWork, island: int) -> None:
    """work.delassus (rows, rows) = J M̂⁻¹ Jᵀ of the units listed, of the island, for M̂ factorised in work.matrix
    [velocity per impulse]."""
    set_halves(rows, work, island)
    multiply_halves(work, island, work.sizes[STEPPING_UNITS])


@njit
def set_halves(rows: Rows, work: NewtonWork, island: int) -> None:
    """work.half = J L⁻¹ D^(-½) of the units listed, of the island, a line a row."""
    first, last = island_places(work, island)
    for i in range(first, last):
        work.right[0, i] = sqrt(work.pivot[i])
    m = 0
    for unit in range(work.sizes[STEPPING_UNITS]):
        n = work.stepping_unit[unit]
        _set_half(rows, work, island, n, unit, m)
        for row in range(max(rows.cone[n], 1)):
            work.delassus_row[m + row] = n + row
        m += max(rows.cone[n], 1)
        work.unit_stop[unit] = m
    work.sizes[KEPT_UNITS] = work.sizes[STEPPING_UNITS]
    work.sizes[KEPT_ISLAND] = island + 1


@njit
def multiply_halves(work: NewtonWork, island: int, units: int) -> None:
    """work.delassus = the products of the lines of work.half, for this number of units."""
    m = 0
    for unit in range(units):
        _set_products(work, island, unit, m, work.unit_stop[unit] - m)
        m = work.unit_stop[unit]


@njit
def _set_half(rows: Rows, work: NewtonWork, island: int, n: int, unit: int, m: int) -> None:
    """work.half[m:] = J L⁻¹ D^(-½) of the unit of row n, by place; work.reach[unit, b]: 1 where it may move block b."""
    count = max(rows.cone[n], 1)
    first, last = island_places(work, island)
    zero = zero_like(work.pivot[first])
    for row in range(m, m + count):
        for i in range(first, last):
            work.half[row, i] = zero
    for p in range(work.island_start[island], work.island_start[island + 1]):
        work.reach[unit, work.member[p]] = 0
    for e in range(rows.stop[n] - rows.start[n]):
        a = rows.column[rows.start[n] + e]
        work.reach[unit, work.block[a]] = 1
        i = work.place[a]
        for row in range(count):
            work.half[m + row, i] = work.half[m + row, i] + rows.value[rows.start[n + row] + e]
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.order[p]
        if work.reach[unit, b] == 1:
            if count == 3:
                _eliminate_three(work, b, m)
            else:
                for row in range(m, m + count):
                    _eliminate(work, b, row)
            for run in range(work.run_count[b]):
                c = work.run_start[b, run]
                while c < work.run_stop[b, run]:
                    above = work.block_at[c]
                    work.reach[unit, above] = 1
                    c += work.block_start[above + 1] - work.block_start[above]
            for row in range(m, m + count):
                for i in range(start_of(work, b), stop_of(work, b)):
                    work.half[row, i] = work.half[row, i] * work.right[0, i]


@inlined
def _eliminate(work: NewtonWork, b: int, row: int) -> None:
    """Subtract block b's rows of the factor from a line of work.half."""
    start, stop = start_of(work, b), stop_of(work, b)
    for i in range(stop - 1, start - 1, -1):
        work.factors[i] = work.half[row, i] * work.pivot[i]
        subtract_rows(work.half, row, start, work.matrix, i, i + 1, start, i - start, work.factors)
    for run in range(work.run_count[b]):
        c = work.run_start[b, run]
        subtract_rows(work.half, row, c, work.matrix, start, stop, c, work.run_stop[b, run] - c, work.factors)


@inlined
def _eliminate_three(work: NewtonWork, b: int, m: int) -> None:
    """Subtract block b's rows of the factor from the three lines of work.half of a contact, from line m, each entry of
    the factor from all three together."""
    start, stop = start_of(work, b), stop_of(work, b)
    for i in range(stop - 1, start - 1, -1):
        pivot = work.pivot[i]
        x0, x1, x2 = work.half[m, i] * pivot, work.half[m + 1, i] * pivot, work.half[m + 2, i] * pivot
        for c in range(start, i):
            entry = work.matrix[i, c]
            work.half[m, c] = work.half[m, c] - x0 * entry
            work.half[m + 1, c] = work.half[m + 1, c] - x1 * entry
            work.half[m + 2, c] = work.half[m + 2, c] - x2 * entry
    for run in range(work.run_count[b]):
        for c in range(work.run_start[b, run], work.run_stop[b, run]):
            h0, h1, h2 = work.half[m, c], work.half[m + 1, c], work.half[m + 2, c]
            for i in range(start, stop):
                entry = work.matrix[i, c] * work.pivot[i]
                h0 = h0 - work.half[m, i] * entry
                h1 = h1 - work.half[m + 1, i] * entry
                h2 = h2 - work.half[m + 2, i] * entry
            work.half[m, c], work.half[m + 1, c], work.half[m + 2, c] = h0, h1, h2


@njit
def _set_products(work: NewtonWork, island: int, unit: int, m: int, count: int) -> None:
    """Set the rows m to m + count of work.delassus up to the diagonal, and the columns that mirror them."""
    j = 0
    other = 0
    while other <= unit:
        stop = work.unit_stop[other] if other < unit else m + count
        three = count == 3 and stop - j == 3
        if three:
            _multiply_three(work, island, unit, other, m, j)
        for row in range(m, m if three else m + count):
            for column in range(j, stop):
                value = zero_like(work.half[row, 0])
                for p in range(work.island_start[island], work.island_start[island + 1]):
                    b = work.member[p]
                    if work.reach[unit, b] == 1 and work.reach[other, b] == 1:
                        for i in range(start_of(work, b), stop_of(work, b)):
                            value = value + work.half[row, i] * work.half[column, i]
                work.delassus[row, column] = value
                work.delassus[column, row] = value
        j = stop
        other += 1


@inlined
def _multiply_three(work: NewtonWork, island: int, unit: int, other: int, m: int, j: int) -> None:
    """Set the products of two contacts, whose lines begin with m and j: nine entries at once."""
    H = work.half
    zero = zero_like(H[0, 0])
    w00, w01, w02, w10, w11, w12, w20, w21, w22 = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for p in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[p]
        if work.reach[unit, b] == 1 and work.reach[other, b] == 1:
            for i in range(start_of(work, b), stop_of(work, b)):
                a0, a1, a2 = H[m, i], H[m + 1, i], H[m + 2, i]
                c0, c1, c2 = H[j, i], H[j + 1, i], H[j + 2, i]
                w00, w01, w02 = w00 + a0 * c0, w01 + a0 * c1, w02 + a0 * c2
                w10, w11, w12 = w10 + a1 * c0, w11 + a1 * c1, w12 + a1 * c2
                w20, w21, w22 = w20 + a2 * c0, w21 + a2 * c1, w22 + a2 * c2
    W = work.delassus
    W[m, j], W[m, j + 1], W[m, j + 2] = w00, w01, w02
    W[m + 1, j], W[m + 1, j + 1], W[m + 1, j + 2] = w10, w11, w12
    W[m + 2, j], W[m + 2, j + 1], W[m + 2, j + 2] = w20, w21, w22
    W[j, m], W[j + 1, m], W[j + 2, m] = w00, w01, w02
    W[j, m + 1], W[j + 1, m + 1], W[j + 2, m + 1] = w10, w11, w12
    W[j, m + 2], W[j + 1, m + 2], W[j + 2, m + 2] = w20, w21, w22


# ------------------------------------------------------------------ the step


@njit
def find_in_impulses(rows: Rows, work: NewtonWork, island: int) -> None:
    """work.linear (rows,) = dλ and work.along (rows,) = W dλ of the units listed, of the island. O(rows³).

    Rows of W and of the system are read and written in whole strips (strips.py), unused last columns included: a strip
    read back after a narrower write would wait for that write. The right-hand side, and then dλ, stands in
    work.impulse_change. Units that are idle keep their change at fixed x.
    """
    set_still_change(rows, work, island)
    A, W, z = work.system, work.delassus, work.impulse_change
    m = row_count(work)
    strip = strip_size(A)
    width = (m + strip - 1) // strip * strip
    _set_system(rows, work, width)
    _reduce(work, width)
    _substitute_back(work)
    c = 0
    while c + 4 * strip <= width:
        _multiply_four(work, m, c, strip)
        c += 4 * strip
    while c < width:
        along = z[0] * load_strip(W, 0, c)
        for r in range(1, m):
            along = along + z[r] * load_strip(W, r, c)
        store_strip(A, 0, c, along)
        c += strip
    for i in range(m):
        work.along[work.delassus_row[i]] = A[0, i]
        work.linear[work.delassus_row[i]] = z[i]


@njit
def _substitute_back(work: NewtonWork) -> None:
    """Substitute the solution back into the eliminated rows, from the last unit to the first; rows of a contact side by
    side: sums of one row after the other would each wait for the sum before."""
    A, z, pivot = work.system, work.impulse_change, work.system_pivot
    m = row_count(work)
    for unit in range(work.sizes[STEPPING_UNITS] - 1, -1, -1):
        stop = work.unit_stop[unit]
        i = work.unit_stop[unit - 1] if unit > 0 else 0
        if work.unit_idle[i] == 1:
            continue
        if stop - i == 3:
            z0, z1, z2 = z[i], z[i + 1], z[i + 2]
            for c in range(stop, m):
                z0, z1, z2 = z0 - A[i, c] * z[c], z1 - A[i + 1, c] * z[c], z2 - A[i + 2, c] * z[c]
            z2 = z2 * pivot[i + 2]
            z1 = (z1 - A[i + 1, i + 2] * z2) * pivot[i + 1]
            z0 = (z0 - A[i, i + 1] * z1 - A[i, i + 2] * z2) * pivot[i]
            z[i], z[i + 1], z[i + 2] = z0, z1, z2
            continue
        for row in range(stop - 1, i - 1, -1):
            value = z[row]
            for c in range(row + 1, m):
                value = value - A[row, c] * z[c]
            z[row] = value * pivot[row]


@inlined
def _multiply_four(work: NewtonWork, m: int, c: int, strip: int) -> None:
    """Set four strips of W dλ, in the first line of the system, from column c."""
    W, z = work.delassus, work.impulse_change
    a0, a1 = z[0] * load_strip(W, 0, c), z[0] * load_strip(W, 0, c + strip)
    a2, a3 = z[0] * load_strip(W, 0, c + 2 * strip), z[0] * load_strip(W, 0, c + 3 * strip)
    for r in range(1, m):
        a0, a1 = a0 + z[r] * load_strip(W, r, c), a1 + z[r] * load_strip(W, r, c + strip)
        a2, a3 = a2 + z[r] * load_strip(W, r, c + 2 * strip), a3 + z[r] * load_strip(W, r, c + 3 * strip)
    store_strip(work.system, 0, c, a0)
    store_strip(work.system, 0, c + strip, a1)
    store_strip(work.system, 0, c + 2 * strip, a2)
    store_strip(work.system, 0, c + 3 * strip, a3)


@inlined
def row_count(work: NewtonWork) -> int:
    """The number of rows of the units listed."""
    units = work.sizes[STEPPING_UNITS]
    return work.unit_stop[units - 1] if units > 0 else 0


@njit
def _set_system(rows: Rows, work: NewtonWork, width: int) -> None:
    """work.system (rows, rows) = 1 + D S W in rows of units that are not idle; the change of λ at fixed x in
    work.impulse_change."""
    W, A = work.delassus, work.system
    i = 0
    for unit in range(work.sizes[STEPPING_UNITS]):
        n = work.stepping_unit[unit]
        size = max(rows.cone[n], 1)
        idle = 0 if any_positive(work.weight[n]) else 1
        if idle == 0 and rows.cone[n] > 1:
            set_pull(rows, work, n)
            if size == 3:  # the compiler unrolls loops over three rows
                _set_cone(work, n, i, 3, width, stiffness(rows, work, n))
            else:
                _set_cone(work, n, i, size, width, stiffness(rows, work, n))
        elif idle == 0:
            weight = work.weight[n] * work.inverse[n]
            for c in range(0, width, strip_size(A)):
                store_strip(A, i, c, weight * load_strip(W, i, c))
        for row in range(size):
            A[i, i] = A[i, i] + 1.0
            work.unit_idle[i] = idle
            work.impulse_change[i] = work.linear[n + row]
            i += 1


@inlined
def _set_cone(work: NewtonWork, n: int, i: int, size: int, width: int, numbers: Vec4) -> None:
    """Set D S W of the cone, in the lines from i."""
    A, W = work.system, work.delassus
    d0, d1, d2, d3 = numbers
    for c in range(0, width, strip_size(A)):
        w = load_strip(W, i + 1, c)
        normal = load_strip(W, i, c) + work.pull[n + 1] * w
        along = work.unit[n + 1] * w
        for row in range(2, size):
            w = load_strip(W, i + row, c)
            normal = normal + work.pull[n + row] * w
            along = along + work.unit[n + row] * w
        common = d1 * normal + d2 * along
        store_strip(A, i, c, d0 * normal + d1 * along)
        for row in range(1, size):
            store_strip(A, i + row, c, work.unit[n + row] * common + d3 * load_strip(W, i + row, c))


@njit
def _reduce(work: NewtonWork, width: int) -> None:
    """Eliminate below the diagonal, unit by unit; 1 / pivots are in work.system_pivot."""
    first = 0
    for unit in range(work.sizes[STEPPING_UNITS]):
        stop = work.unit_stop[unit]
        if work.unit_idle[first] == 0:
            begin = 0
            other = 0
            while other < unit:
                end = work.unit_stop[other]
                other += 1
                if end - begin == 1:  # single rows, one after the other, are taken out together
                    while (
                        other < unit
                        and work.unit_stop[other] == end + 1
                        and work.unit_idle[end] == work.unit_idle[begin]
                    ):
                        end += 1
                        other += 1
                if work.unit_idle[begin] == 1:
                    _take_out_idle(work, first, stop, begin, end)
                elif stop - first == 3 and end - begin == 3:
                    _take_out_three(work, first, begin, width)
                else:
                    for i in range(first, stop):
                        _take_out(work, i, begin, end, width)
                begin = end
            for i in range(first, stop):
                _take_out(work, i, first, i, width)
                work.system_pivot[i] = 1.0 / work.system[i, i]
        first = stop


@inlined
def _take_out_idle(work: NewtonWork, first: int, stop: int, begin: int, end: int) -> None:
    """Eliminate the rows from `begin` to before `end`, which are those of 1, from the rows from `first` on."""
    A, z = work.system, work.impulse_change
    for i in range(first, stop):
        for r in range(begin, end):
            z[i] = z[i] - A[i, r] * z[r]


@inlined
def _take_out(work: NewtonWork, i: int, begin: int, end: int, width: int) -> None:
    """Eliminate the rows from `begin` to before `end` from row i."""
    A, x, z = work.system, work.factors, work.impulse_change
    for r in range(begin, end):
        value = A[i, r]
        for q in range(begin, r):
            value = value - x[q] * A[q, r]
        x[r] = value * work.system_pivot[r]
        z[i] = z[i] - x[r] * z[r]
    strip = strip_size(A)
    if begin < end:
        for c in range(end - end % strip, width, strip):
            a = load_strip(A, i, c)
            for r in range(begin, end):
                a = a - x[r] * load_strip(A, r, c)
            store_strip(A, i, c, a)


@inlined
def _take_out_three(work: NewtonWork, i: int, r: int, width: int) -> None:
    """Eliminate the three rows from r from the three rows from i, nine factors at once."""
    A, z, pivot = work.system, work.impulse_change, work.system_pivot
    u01, u02, u12 = A[r, r + 1], A[r, r + 2], A[r + 1, r + 2]
    x00, x10, x20 = A[i, r] * pivot[r], A[i + 1, r] * pivot[r], A[i + 2, r] * pivot[r]
    x01 = (A[i, r + 1] - x00 * u01) * pivot[r + 1]
    x11 = (A[i + 1, r + 1] - x10 * u01) * pivot[r + 1]
    x21 = (A[i + 2, r + 1] - x20 * u01) * pivot[r + 1]
    x02 = (A[i, r + 2] - x00 * u02 - x01 * u12) * pivot[r + 2]
    x12 = (A[i + 1, r + 2] - x10 * u02 - x11 * u12) * pivot[r + 2]
    x22 = (A[i + 2, r + 2] - x20 * u02 - x21 * u12) * pivot[r + 2]
    z0, z1, z2 = z[r], z[r + 1], z[r + 2]
    z[i] = z[i] - x00 * z0 - x01 * z1 - x02 * z2
    z[i + 1] = z[i + 1] - x10 * z0 - x11 * z1 - x12 * z2
    z[i + 2] = z[i + 2] - x20 * z0 - x21 * z1 - x22 * z2
    strip = strip_size(A)
    for c in range((r + 3) - (r + 3) % strip, width, strip):
        a0, a1, a2 = load_strip(A, r, c), load_strip(A, r + 1, c), load_strip(A, r + 2, c)
        store_strip(A, i, c, load_strip(A, i, c) - x00 * a0 - x01 * a1 - x02 * a2)
        store_strip(A, i + 1, c, load_strip(A, i + 1, c) - x10 * a0 - x11 * a1 - x12 * a2)
        store_strip(A, i + 2, c, load_strip(A, i + 2, c) - x20 * a0 - x21 * a1 - x22 * a2)


@njit
def set_change(rows: Rows, force: Lanes1, work: NewtonWork, island: int, chosen: Real) -> None:
    """work.change (nu,) = x of the island with M̂ x = f + Jᵀλ in lanes where `chosen` is 1, for M̂ factorised in
    work.matrix."""
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = force[a]
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        add_transposed(rows, work.listed[entry], 1.0, rows.impulse, work.direction)
    solve_blocks(work, island, work.matrix, work.matrix)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.change[a] = where_greater(chosen, zero_like(chosen), work.direction[a], work.change[a])
