"""Rows at the velocities found: their impulses and the derivatives of these; products with J and Jᵀ.

A unit is a row with bounds or a cone, identified by its first row, n; all rows of a cone have the same columns in the
same order. T is a float, or a pack of 8 lanes. Impulses are in N s or N m s, velocities of rows in m/s or rad/s.
"""

from __future__ import annotations

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Pack, Real
from artsim.sim.foundation.scalars import inverse_or_zero, largest, least
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import NewtonWork, SolverBundle
from artsim.sim.solvers.cone import cone_projection


@njit
def rows_times(rows: Rows, n: int, x: Lanes1, out: Lanes1) -> None:
    """out[row] = J x of the unit's rows, for x (nu,). O(entries)."""
    first = rows.start[n]
    if rows.cone[n] == 3:
        s = rows.start[n + 1]
        t = rows.start[n + 2]
        zero = zero_like(rows.bias[n])
        normal, tangent, other = zero, zero, zero
        for e in range(rows.stop[n] - first):
            value = x[rows.column[first + e]]
            normal = normal + rows.value[first + e] * value
            tangent = tangent + rows.value[s + e] * value
            other = other + rows.value[t + e] * value
        out[n], out[n + 1], out[n + 2] = normal, tangent, other
        return
    for row in range(n, n + max(rows.cone[n], 1)):
        value = zero_like(rows.bias[row])
        for e in range(rows.start[row], rows.stop[row]):
            value = value + rows.value[e] * x[rows.column[e]]
        out[row] = value


@njit
def add_transposed(rows: Rows, n: int, factor: float, z: Lanes1, x: Lanes1) -> None:
    """x (nu,) += factor Jᵀ z of the unit's rows, for z (rows,). O(entries)."""
    first = rows.start[n]
    if rows.cone[n] == 3:
        s = rows.start[n + 1]
        t = rows.start[n + 2]
        normal, tangent, other = factor * z[n], factor * z[n + 1], factor * z[n + 2]
        for e in range(rows.stop[n] - first):
            a = rows.column[first + e]
            x[a] = x[a] + (rows.value[first + e] * normal + rows.value[s + e] * tangent + rows.value[t + e] * other)
        return
    for row in range(n, n + max(rows.cone[n], 1)):
        value = factor * z[row]
        for e in range(rows.start[row], rows.stop[row]):
            x[rows.column[e]] = x[rows.column[e]] + rows.value[e] * value


@njit
def set_gradient(rows: Rows, force: Lanes1, work: NewtonWork, island: int) -> None:
    """work.gradient (nu,) = M̂ x - f - Jᵀλ of the island at the present x and λ [N s or N m s]."""
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.gradient[a] = work.product[a] - force[a]
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        add_transposed(rows, work.listed[entry], -1.0, rows.impulse, work.gradient)


@inlined
def free_impulse(work: NewtonWork, n: int, velocity: Real) -> Real:
    """The impulse of row n at its velocity, without bounds: (ε λ_k - velocity) / (cfm + ε)."""
    return (work.eps[n] * work.centre[n] - velocity) * work.inverse[n]


@njit
def project(rows: Rows, work: NewtonWork, island: int) -> None:
    """Set rows.impulse of the island from its rows' velocities, and the derivatives: work.weight for rows with bounds,
    work.weight to work.weight3 and work.unit for cones. O(rows).
    """
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1:
            _project_cone(rows, work, n)
        else:
            z = free_impulse(work, n, work.velocity[n])
            rows.impulse[n] = least(largest(z, rows.lower[n]), rows.upper[n])
            zero = zero_like(z)
            work.weight[n] = where_greater(
                z, rows.lower[n], where_greater(rows.upper[n], z, work.inverse[n], zero), zero
            )


@njit
def _project_cone(rows: Rows, work: NewtonWork, n: int) -> None:
    """Set the impulses of the cone that begins with row n, and their derivatives; see `cone_projection`."""
    normal = free_impulse(work, n, work.velocity[n] + work.shift[n])
    square = zero_like(normal)
    for row in range(n + 1, n + rows.cone[n]):
        z = free_impulse(work, row, work.velocity[row])
        work.unit[row] = z
        square = square + z * z
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, along, across = cone_projection(rows.slope[n], normal, length, per_length)
    work.weight[n] = c0 * work.inverse[n]
    work.weight1[n] = c1 * work.inverse[n]
    work.weight2[n] = c2 * work.inverse[n]
    work.weight3[n] = c3 * work.inverse[n]
    rows.impulse[n] = along
    for row in range(n + 1, n + rows.cone[n]):
        work.unit[row] = work.unit[row] * per_length
        rows.impulse[row] = across * work.unit[row]


@njit
def hold(rows: Rows, work: NewtonWork, island: int) -> bool:
    """Make contacts that carried force in the last step stick in the first Newton step of this one; True if there are
    any.

    From x = 0 a line search would follow every kink on the way to a solution in which most of these contacts stick.
    """
    holds = False
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1 and rows.kind[n] == CONTACT_ROW:
            held = work.centre[n]
            zero = zero_like(held)
            holds = holds or any_positive(held)
            work.shift[n] = where_greater(held, zero, zero, work.shift[n])
            work.before[n] = work.shift[n]
            work.weight[n] = where_greater(held, zero, work.inverse[n], work.weight[n])
            work.weight1[n] = where_greater(held, zero, zero, work.weight1[n])
            work.weight2[n] = where_greater(held, zero, zero, work.weight2[n])
            work.weight3[n] = where_greater(held, zero, work.inverse[n], work.weight3[n])
            for row in range(n, n + rows.cone[n]):
                free = free_impulse(work, row, work.velocity[row])
                rows.impulse[row] = where_greater(held, zero, free, rows.impulse[row])
    return holds


@inlined
def direction_of_columns(rows: Rows, n: int) -> int:
    """1, or -1 where the columns of the unit descend."""
    return -1 if rows.stop[n] > rows.start[n] and rows.column[rows.stop[n] - 1] < rows.column[rows.start[n]] else 1


@njit
def set_lines(rows: Rows, work: NewtonWork, n: int, at: int, pulled: bool) -> None:
    """work.lines (rows, entries) = J of the unit, from line `at` on; if it is `pulled`, its normal row is J_n + μ v̂ᵀ
    J_t, with μ v̂ in work.pull.

    Entries whose columns descend are reversed.
    """
    count = rows.stop[n] - rows.start[n]
    step = direction_of_columns(rows, n)
    for row in range(max(rows.cone[n], 1)):
        first = rows.start[n + row] if step > 0 else rows.start[n + row] + count - 1
        for e in range(count):
            work.lines[at + row, e] = rows.value[first + step * e]
    if pulled:
        for row in range(1, rows.cone[n]):
            for e in range(count):
                work.lines[at, e] = work.lines[at, e] + work.pull[n + row] * work.lines[at + row, e]


@njit
def weigh_lines(rows: Rows, work: NewtonWork, n: int, at: int, d0: Real, d1: Real, d2: Real, d3: Real) -> None:
    """work.lines = D work.lines of the unit, from line `at` on: the cone's D = [d0, d1 eᵀ; d1 e, d2 e eᵀ + d3 1], d0
    for a row with bounds."""
    for e in range(rows.stop[n] - rows.start[n]):
        normal = work.lines[at, e]
        along = zero_like(d1)
        for row in range(1, rows.cone[n]):
            along = along + work.unit[n + row] * work.lines[at + row, e]
        work.lines[at, e] = d0 * normal + d1 * along
        common = d1 * normal + d2 * along
        for row in range(1, rows.cone[n]):
            work.lines[at + row, e] = work.unit[n + row] * common + d3 * work.lines[at + row, e]


@njit
def pull_lines(rows: Rows, work: NewtonWork, n: int) -> None:
    """Add μ v̂ times the first line to the others: the transpose of the addition to the first line in `set_lines`."""
    for row in range(1, rows.cone[n]):
        for e in range(rows.stop[n] - rows.start[n]):
            work.lines[row, e] = work.lines[row, e] + work.pull[n + row] * work.lines[0, e]


# ------------------------------------------------------------------ of packs


@njit
def keep(rows: Rows, solver: SolverBundle, island: int, impulse: Lanes1, chosen: Pack) -> None:
    """Keep x of the island and these impulses (rows,) in pack.change and pack.impulse, in lanes where `chosen` is 1."""
    work = solver.newton
    zero = zero_like(chosen)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            solver.pack.change[a] = where_greater(chosen, zero, work.change[a], solver.pack.change[a])
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            solver.pack.impulse[row] = where_greater(chosen, zero, impulse[row], solver.pack.impulse[row])
