"""Newton steps of coulomb.py for a few rows, in their impulses alone.

Once M̂ x = f + Jᵀλ holds, a Newton step of coulomb_system.py keeps it, so that the rows' velocities change by W dλ with
the Delassus matrix W = J M̂⁻¹ Jᵀ, and dλ = -D S W dλ + the change of λ at fixed x, with D S of `_stiffness` and the
shift. W is computed once, from J L⁻¹ with M̂ = Lᵀ D L; a step then costs O(rows³) instead of a factorisation of
M̂ + Jᵀ D S J, and x is computed at the end. For more than MOST_DELASSUS_ROWS rows the factorisation is cheaper; where a
stiff drive presses on a light link, it is more accurate.

Every function serves both widths. The units that take part are listed in work.stepping_unit, and their rows are
numbered from 0. Packs list the rows of some lanes (pack_coulomb.py), where other lanes' rows are zeros that change
nothing; of the pack's W, lanes whose rows differ take their own part (lane_coulomb.py).
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, lane_count, sqrt, zero_like
from artsim.sim.foundation.records import Lanes1, Vec4
from artsim.sim.foundation.strips import subtract_rows
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import FEW_UNITS, KEPT_ISLAND, KEPT_UNITS, MOST_DELASSUS_ROWS, NewtonWork
from artsim.sim.solvers.blocks import island_places, solve_blocks, start_of, stop_of
from artsim.sim.solvers.coulomb_system import set_pull, set_still_change, stiffness
from artsim.sim.solvers.impulses import add_transposed

MOST_PULL = 1e3  # [rad/s or m/s] by an impulse, beyond which W dλ loses too many digits of velocities


@njit
def list_delassus_rows(rows: Rows, work: NewtonWork, island: int) -> bool:
    """List all units of the island; False if they have too many rows for steps in impulses."""
    count = 0
    work.sizes[FEW_UNITS] = 0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        count += max(rows.cone[n], 1)
        if count > MOST_DELASSUS_ROWS:
            return False
        list_unit(work, n)
    return True


@inlined
def list_unit(work: NewtonWork, n: int) -> None:
    """List the unit of row n."""
    work.stepping_unit[work.sizes[FEW_UNITS]] = n
    work.sizes[FEW_UNITS] += 1


# ------------------------------------------------------------------ W


@njit
def set_delassus(rows: Rows, work: NewtonWork, island: int) -> None:
    """work.delassus (rows, rows) = J M̂⁻¹ Jᵀ of the units listed, of the island, for M̂ factorised in work.matrix
    [velocity per impulse]."""
    first, last = island_places(work, island)
    for i in range(first, last):
        work.right[0, i] = sqrt(work.pivot[i])
    m = 0
    for unit in range(work.sizes[FEW_UNITS]):
        n = work.stepping_unit[unit]
        _set_half(rows, work, island, n, unit, m)
        _set_products(work, island, unit, m, max(rows.cone[n], 1))
        for row in range(max(rows.cone[n], 1)):
            work.delassus_row[m + row] = n + row
        m += max(rows.cone[n], 1)
        work.unit_stop[unit] = m
        work.delassus_unit[unit] = n
    work.sizes[KEPT_UNITS] = work.sizes[FEW_UNITS]
    work.sizes[KEPT_ISLAND] = island + 1


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
    """work.linear (rows,) = dλ and work.along (rows,) = W dλ of the units listed, of the island. O(rows³)."""
    set_still_change(rows, work, island)
    units = work.sizes[FEW_UNITS]
    m = work.unit_stop[units - 1] if units > 0 else 0
    _set_system(rows, work, m)
    _reduce(work, units, m)
    x = work.impulse_change
    for i in range(m - 1, -1, -1):
        value = work.system[i, m]
        for c in range(i + 1, m):
            value = value - work.system[i, c] * x[c]
        x[i] = value * work.system_pivot[i]
    for i in range(m):
        value = zero_like(x[i])
        for c in range(m):
            value = value + work.delassus[i, c] * x[c]
        work.along[work.delassus_row[i]] = value
        work.linear[work.delassus_row[i]] = x[i]


@njit
def _set_system(rows: Rows, work: NewtonWork, m: int) -> None:
    """work.system (rows, rows + 1) = 1 + D S W, and the change of λ at fixed x in the last column."""
    i = 0
    for unit in range(work.sizes[FEW_UNITS]):
        n = work.stepping_unit[unit]
        zero = zero_like(work.weight[n])
        work.unit_idle[unit] = 0 if any_positive(work.weight[n]) else 1
        if rows.cone[n] > 1:
            d0, d1, d2, d3 = stiffness(rows, work, n)
            set_pull(rows, work, n)
            if rows.cone[n] == 3:
                _set_three(work, n, i, m, (d0, d1, d2, d3))
            for c in range(m if rows.cone[n] != 3 else 0):
                normal = work.delassus[i, c]
                along = zero
                for row in range(1, rows.cone[n]):
                    normal = normal + work.pull[n + row] * work.delassus[i + row, c]
                    along = along + work.unit[n + row] * work.delassus[i + row, c]
                work.system[i, c] = d0 * normal + d1 * along
                common = d1 * normal + d2 * along
                for row in range(1, rows.cone[n]):
                    work.system[i + row, c] = work.unit[n + row] * common + d3 * work.delassus[i + row, c]
        else:
            weight = work.weight[n] * work.inverse[n]
            for c in range(m):
                work.system[i, c] = weight * work.delassus[i, c]
        for row in range(max(rows.cone[n], 1)):
            work.system[i + row, i + row] = work.system[i + row, i + row] + 1.0
            work.system[i + row, m] = work.linear[n + row]
        i += max(rows.cone[n], 1)


@inlined
def _set_three(work: NewtonWork, n: int, i: int, m: int, numbers: Vec4) -> None:
    """Set D S W of a contact of three rows, in the lines from i."""
    A, W = work.system, work.delassus
    d0, d1, d2, d3 = numbers
    p1, p2, e1, e2 = work.pull[n + 1], work.pull[n + 2], work.unit[n + 1], work.unit[n + 2]
    for c in range(m):
        w1, w2 = W[i + 1, c], W[i + 2, c]
        normal = W[i, c] + p1 * w1 + p2 * w2
        along = e1 * w1 + e2 * w2
        common = d1 * normal + d2 * along
        A[i, c] = d0 * normal + d1 * along
        A[i + 1, c] = e1 * common + d3 * w1
        A[i + 2, c] = e2 * common + d3 * w2


@njit
def _reduce(work: NewtonWork, units: int, m: int) -> None:
    """Eliminate below the diagonal, unit by unit; 1 / pivots are in work.system_pivot. Where a unit is idle in all
    lanes, its rows hold the diagonal and the last column alone."""
    first = 0
    for unit in range(units):
        stop = work.unit_stop[unit]
        begin = 0
        for other in range(unit if work.unit_idle[unit] == 0 else 0):
            end = work.unit_stop[other]
            c = m if work.unit_idle[other] == 1 else end
            if lane_count(work.system) > 1 and stop - first == 3 and end - begin == 3:
                _take_out_three(work, first, begin, c, m)
            else:
                for i in range(first, stop):
                    _take_out(work, i, begin, end, c, m)
            begin = end
        for i in range(first, stop):
            if work.unit_idle[unit] == 0:
                _take_out(work, i, first, i, i, m)
            work.system_pivot[i] = 1.0 / work.system[i, i]
        first = stop


@inlined
def _take_out(work: NewtonWork, i: int, begin: int, end: int, c: int, m: int) -> None:
    """Eliminate the rows from `begin` to before `end`, whose columns beyond these begin with c, from line i."""
    A, x = work.system, work.factors
    for r in range(begin, end):
        x[r] = A[i, r] * work.system_pivot[r]
        for column in range(r + 1, end):
            A[i, column] = A[i, column] - x[r] * A[r, column]
    subtract_rows(A, i, c, A, begin, end, c, m + 1 - c, x)


@inlined
def _take_out_three(work: NewtonWork, i: int, r: int, first: int, m: int) -> None:
    """Eliminate the three rows from r from the three lines from i, nine factors at once."""
    A, pivot = work.system, work.system_pivot
    u01, u02, u12 = A[r, r + 1], A[r, r + 2], A[r + 1, r + 2]
    x00, x10, x20 = A[i, r] * pivot[r], A[i + 1, r] * pivot[r], A[i + 2, r] * pivot[r]
    x01 = (A[i, r + 1] - x00 * u01) * pivot[r + 1]
    x11 = (A[i + 1, r + 1] - x10 * u01) * pivot[r + 1]
    x21 = (A[i + 2, r + 1] - x20 * u01) * pivot[r + 1]
    x02 = (A[i, r + 2] - x00 * u02 - x01 * u12) * pivot[r + 2]
    x12 = (A[i + 1, r + 2] - x10 * u02 - x11 * u12) * pivot[r + 2]
    x22 = (A[i + 2, r + 2] - x20 * u02 - x21 * u12) * pivot[r + 2]
    for c in range(first, m + 1):
        a0, a1, a2 = A[r, c], A[r + 1, c], A[r + 2, c]
        A[i, c] = A[i, c] - x00 * a0 - x01 * a1 - x02 * a2
        A[i + 1, c] = A[i + 1, c] - x10 * a0 - x11 * a1 - x12 * a2
        A[i + 2, c] = A[i + 2, c] - x20 * a0 - x21 * a1 - x22 * a2


@njit
def set_change(rows: Rows, force: Lanes1, work: NewtonWork, island: int) -> None:
    """work.change (nu,) = x of the island with M̂ x = f + Jᵀλ, for M̂ factorised in work.matrix."""
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
            work.change[a] = work.direction[a]
