"""Rows at the velocities found: their impulses, how those give way, De Saxcé's shift; J times a vector and back.

A unit is a box row or a cone, called by its first row; all rows of a cone have the same columns in the same order.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import absolute, highest, sqrt, where_greater
from artsim.sim.solvers.cone import cone_projection, inverse_or_zero, largest, least

_UNKNOWN = 1e300  # m/s, above every shift
_TELLING = 10.0  # times what impulses leave open
_ROUNDED = 1e-6  # of a shift: what is off by less is brought in by secants alone


@njit
def times(rows: Any, n: Any, x: Any, out: Any) -> None:
    """out[row] = J x of the unit's rows."""
    first = rows.start[n]
    if rows.cone[n] == 3:
        s = rows.start[n + 1]
        t = rows.start[n + 2]
        zero = rows.bias[n] - rows.bias[n]
        normal, tangent, other = zero, zero, zero
        for e in range(rows.stop[n] - first):
            value = x[rows.column[first + e]]
            normal = normal + rows.value[first + e] * value
            tangent = tangent + rows.value[s + e] * value
            other = other + rows.value[t + e] * value
        out[n], out[n + 1], out[n + 2] = normal, tangent, other
        return
    for row in range(n, n + max(rows.cone[n], 1)):
        value = rows.bias[row] - rows.bias[row]
        for e in range(rows.start[row], rows.stop[row]):
            value = value + rows.value[e] * x[rows.column[e]]
        out[row] = value


@njit
def add_transposed(rows: Any, n: Any, factor: Any, z: Any, x: Any) -> None:
    """x += factor Jᵀ z of the unit's rows."""
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
def set_gradient(rows: Any, force: Any, work: Any, k: Any) -> None:
    """solver.gradient = M̂ x - f - Jᵀλ."""
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.gradient[a] = work.product[a] - force[a]
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        add_transposed(rows, work.listed[q], -1.0, rows.impulse, work.gradient)


@inlined
def wanted_shift(rows: Any, work: Any, n: Any) -> Any:
    """μ |v_t| of the cone, without what gives way: a contact that sticks has none."""
    square = work.velocity[n] - work.velocity[n]
    for row in range(n + 1, n + rows.cone[n]):
        slip = (
            work.velocity[row]
            + rows.cfm[row] * rows.impulse[row]
            + work.eps[row] * (rows.impulse[row] - work.centre[row])
        )
        square = square + slip * slip
    return rows.slope[n] * sqrt(square)


@njit
def start_shift(rows: Any, work: Any, n: Any) -> None:
    """The shift of the cone at the velocities found."""
    work.shift[n] = wanted_shift(rows, work, n)
    work.before[n] = work.shift[n]
    work.off[n] = work.shift[n] - work.shift[n]
    work.low[n] = work.off[n]
    work.high[n] = work.off[n] + _UNKNOWN


@inlined
def follow_shift(rows: Any, work: Any, n: Any, left: Any) -> Any:
    """Move the shift of the cone to where the velocities want it; how far that is [m/s].

    From the second time on by the secant through the last two, which is exact for a contact that slides alone, but
    not beyond shifts that were too small or too large. `left`: how far the impulses leave the rows' velocities open.
    """
    wanted = wanted_shift(rows, work, n)
    off = wanted - work.shift[n]
    far = where_greater(absolute(off), _ROUNDED * (work.shift[n] + wanted), off - off + 1.0, off - off)
    _note_bracket(work, n, off, far * where_greater(absolute(off), _TELLING * left, far, far - far))
    moved = work.shift[n] - work.before[n]
    rate = (off - work.off[n]) * moved * inverse_or_zero(moved * moved)  # how off answers; -1: the wish stays
    rate = where_greater(moved * moved, off - off, least(rate, off - off - 0.25), off - off - 1.0)
    work.before[n] = work.shift[n]
    work.off[n] = off
    following = largest(work.shift[n] - off / rate, off - off)
    middle = where_greater(off - off + 0.5 * _UNKNOWN, work.high[n], 0.5 * (work.low[n] + work.high[n]), following)
    above_low = where_greater(
        following, work.low[n], following, where_greater(work.low[n], off - off, middle, following)
    )
    within = where_greater(work.high[n], above_low, above_low, middle)
    work.shift[n] = where_greater(far, off - off, within, following)
    return absolute(off)


@inlined
def _note_bracket(work: Any, n: Any, off: Any, telling: Any) -> None:
    """The shift that the cone has as one too small or too large, where `telling` is 1: impulses are good enough.

    Other contacts' shifts move what it is told by: a bracket that has closed around nothing is opened again.
    """
    zero = off - off
    work.low[n] = where_greater(telling * off, zero, work.shift[n], work.low[n])
    work.high[n] = where_greater(-telling * off, zero, work.shift[n], work.high[n])
    closed = where_greater(0.01 * absolute(off), work.high[n] - work.low[n], zero + 1.0, zero)
    work.low[n] = where_greater(closed, zero, zero, work.low[n])
    work.high[n] = where_greater(closed, zero, zero + _UNKNOWN, work.high[n])


@inlined
def free_impulse(work: Any, n: Any, velocity: Any) -> Any:
    """(ε λ_k - velocity) / (cfm + ε): the impulse of row n without bounds."""
    return (work.eps[n] * work.centre[n] - velocity) * work.inverse[n]


@njit
def project(rows: Any, work: Any, k: Any) -> None:
    """rows.impulse of island k, and how it gives way: solver.weight of box rows, the four numbers and direction of a
    cone."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.cone[n] > 1:
            _project_cone(rows, work, n)
        else:
            z = free_impulse(work, n, work.velocity[n])
            rows.impulse[n] = least(largest(z, rows.lower[n]), rows.upper[n])
            zero = z - z
            work.weight[n] = where_greater(
                z, rows.lower[n], where_greater(rows.upper[n], z, work.inverse[n], zero), zero
            )


@njit
def _project_cone(rows: Any, work: Any, n: Any) -> None:
    """The projection P of z on |t| ≤ μ n, and its derivative: [c0, c1 eᵀ; c1 e, c2 e eᵀ + c3 1], e = z_t / |z_t|."""
    normal = free_impulse(work, n, work.velocity[n] + work.shift[n])
    square = normal - normal
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
def hold(rows: Any, work: Any, k: Any) -> bool:
    """Contacts that carried something in the last step hold on in this one, as far as the first Newton step goes;
    whether there are any.

    From x = 0 a line search would follow every kink on the way to where most of them stick after all.
    """
    holds = False
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.cone[n] > 1 and rows.kind[n] == CONTACT_ROW:
            held = work.centre[n]
            zero = held - held
            holds = holds or highest(held) > 0.0
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
def direction_of_columns(rows: Any, n: Any) -> Any:
    """1, or -1 where the columns of the unit descend."""
    return -1 if rows.stop[n] > rows.start[n] and rows.column[rows.stop[n] - 1] < rows.column[rows.start[n]] else 1


@njit
def set_lines(rows: Any, work: Any, n: Any, pulled: Any) -> None:
    """solver.lines (rows, entries) = J of the unit, the normal one with μ v̂ᵀ J_t (solver.pull) added if it is pulled.

    Entries whose columns descend are turned around.
    """
    count = rows.stop[n] - rows.start[n]
    step = direction_of_columns(rows, n)
    for row in range(max(rows.cone[n], 1)):
        first = rows.start[n + row] if step > 0 else rows.start[n + row] + count - 1
        for e in range(count):
            work.lines[row, e] = rows.value[first + step * e]
    if pulled:
        for row in range(1, rows.cone[n]):
            for e in range(count):
                work.lines[0, e] = work.lines[0, e] + work.pull[n + row] * work.lines[row, e]


@njit
def weigh_lines(rows: Any, work: Any, n: Any, d0: Any, d1: Any, d2: Any, d3: Any) -> None:
    """solver.lines = D solver.lines with the cone's D = [d0, d1 eᵀ; d1 e, d2 e eᵀ + d3 1]; of a box row D is d0."""
    for e in range(rows.stop[n] - rows.start[n]):
        normal = work.lines[0, e]
        along = d1 - d1
        for row in range(1, rows.cone[n]):
            along = along + work.unit[n + row] * work.lines[row, e]
        work.lines[0, e] = d0 * normal + d1 * along
        common = d1 * normal + d2 * along
        for row in range(1, rows.cone[n]):
            work.lines[row, e] = work.unit[n + row] * common + d3 * work.lines[row, e]


@njit
def pull_lines(rows: Any, work: Any, n: Any) -> None:
    """The transpose of what `set_lines` adds: μ v̂ times the first line, to the others."""
    for row in range(1, rows.cone[n]):
        for e in range(rows.stop[n] - rows.start[n]):
            work.lines[row, e] = work.lines[row, e] + work.pull[n + row] * work.lines[0, e]
