"""Rows at the velocities found: their impulses, how those give way, De Saxcé's shift; J times a vector and back.

A unit is a box row or a cone, called by its first row; all rows of a cone have the same columns in the same order.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import absolute, highest, sqrt, where_greater
from artsim.sim.run import CONTACT_ROW
from artsim.sim.solvers.cone import cone_projection, inverse_or_zero, largest, least

_UNKNOWN = 1e300  # m/s, above every shift
_TELLING = 10.0  # times what impulses leave open
_ROUNDED = 1e-6  # of a shift: what is off by less is brought in by secants alone


@njit
def times(r: Any, n: Any, x: Any, out: Any) -> None:
    """out[row] = J x of the unit's rows."""
    first = r.start[n]
    if r.cone[n] == 3:
        s = r.start[n + 1]
        t = r.start[n + 2]
        zero = r.bias[n] - r.bias[n]
        normal, tangent, other = zero, zero, zero
        for e in range(r.stop[n] - first):
            value = x[r.column[first + e]]
            normal = normal + r.value[first + e] * value
            tangent = tangent + r.value[s + e] * value
            other = other + r.value[t + e] * value
        out[n], out[n + 1], out[n + 2] = normal, tangent, other
        return
    for row in range(n, n + max(r.cone[n], 1)):
        value = r.bias[row] - r.bias[row]
        for e in range(r.start[row], r.stop[row]):
            value = value + r.value[e] * x[r.column[e]]
        out[row] = value


@njit
def add_transposed(r: Any, n: Any, factor: Any, z: Any, x: Any) -> None:
    """x += factor Jᵀ z of the unit's rows."""
    first = r.start[n]
    if r.cone[n] == 3:
        s = r.start[n + 1]
        t = r.start[n + 2]
        normal, tangent, other = factor * z[n], factor * z[n + 1], factor * z[n + 2]
        for e in range(r.stop[n] - first):
            a = r.column[first + e]
            x[a] = x[a] + (r.value[first + e] * normal + r.value[s + e] * tangent + r.value[t + e] * other)
        return
    for row in range(n, n + max(r.cone[n], 1)):
        value = factor * z[row]
        for e in range(r.start[row], r.stop[row]):
            x[r.column[e]] = x[r.column[e]] + r.value[e] * value


@njit
def set_gradient(r: Any, force: Any, y: Any, k: Any) -> None:
    """y.gradient = M̂ x - f - Jᵀλ."""
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.gradient[a] = y.product[a] - force[a]
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        add_transposed(r, y.listed[q], -1.0, r.impulse, y.gradient)


@inlined
def wanted_shift(r: Any, y: Any, n: Any) -> Any:
    """μ |v_t| of the cone, without what gives way: a contact that sticks has none."""
    square = y.velocity[n] - y.velocity[n]
    for row in range(n + 1, n + r.cone[n]):
        slip = y.velocity[row] + r.cfm[row] * r.impulse[row] + y.eps[row] * (r.impulse[row] - y.centre[row])
        square = square + slip * slip
    return r.slope[n] * sqrt(square)


@njit
def start_shift(r: Any, y: Any, n: Any) -> None:
    """The shift of the cone at the velocities found."""
    y.shift[n] = wanted_shift(r, y, n)
    y.before[n] = y.shift[n]
    y.off[n] = y.shift[n] - y.shift[n]
    y.low[n] = y.off[n]
    y.high[n] = y.off[n] + _UNKNOWN


@inlined
def follow_shift(r: Any, y: Any, n: Any, left: Any) -> Any:
    """Move the shift of the cone to where the velocities want it; how far that is [m/s].

    From the second time on by the secant through the last two, which is exact for a contact that slides alone, but
    not beyond shifts that were too small or too large. `left`: how far the impulses leave the rows' velocities open.
    """
    wanted = wanted_shift(r, y, n)
    off = wanted - y.shift[n]
    far = where_greater(absolute(off), _ROUNDED * (y.shift[n] + wanted), off - off + 1.0, off - off)
    _note_bracket(y, n, off, far * where_greater(absolute(off), _TELLING * left, far, far - far))
    moved = y.shift[n] - y.before[n]
    rate = (off - y.off[n]) * moved * inverse_or_zero(moved * moved)  # how off answers; -1: the wish stays
    rate = where_greater(moved * moved, off - off, least(rate, off - off - 0.25), off - off - 1.0)
    y.before[n] = y.shift[n]
    y.off[n] = off
    following = largest(y.shift[n] - off / rate, off - off)
    middle = where_greater(off - off + 0.5 * _UNKNOWN, y.high[n], 0.5 * (y.low[n] + y.high[n]), following)
    above_low = where_greater(following, y.low[n], following, where_greater(y.low[n], off - off, middle, following))
    within = where_greater(y.high[n], above_low, above_low, middle)
    y.shift[n] = where_greater(far, off - off, within, following)
    return absolute(off)


@inlined
def _note_bracket(y: Any, n: Any, off: Any, telling: Any) -> None:
    """The shift that the cone has as one too small or too large, where `telling` is 1: impulses are good enough.

    Other contacts' shifts move what it is told by: a bracket that has closed around nothing is opened again.
    """
    zero = off - off
    y.low[n] = where_greater(telling * off, zero, y.shift[n], y.low[n])
    y.high[n] = where_greater(-telling * off, zero, y.shift[n], y.high[n])
    closed = where_greater(0.01 * absolute(off), y.high[n] - y.low[n], zero + 1.0, zero)
    y.low[n] = where_greater(closed, zero, zero, y.low[n])
    y.high[n] = where_greater(closed, zero, zero + _UNKNOWN, y.high[n])


@inlined
def free_impulse(y: Any, n: Any, velocity: Any) -> Any:
    """(ε λ_k - velocity) / (cfm + ε): the impulse of row n without bounds."""
    return (y.eps[n] * y.centre[n] - velocity) * y.inverse[n]


@njit
def project(r: Any, y: Any, k: Any) -> None:
    """r.impulse of island k, and how it gives way: y.weight of box rows, the four numbers and direction of a cone."""
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        if r.cone[n] > 1:
            _project_cone(r, y, n)
        else:
            z = free_impulse(y, n, y.velocity[n])
            r.impulse[n] = least(largest(z, r.lower[n]), r.upper[n])
            zero = z - z
            y.weight[n] = where_greater(z, r.lower[n], where_greater(r.upper[n], z, y.inverse[n], zero), zero)


@njit
def _project_cone(r: Any, y: Any, n: Any) -> None:
    """The projection P of z on |t| ≤ μ n, and its derivative: [c0, c1 eᵀ; c1 e, c2 e eᵀ + c3 1], e = z_t / |z_t|."""
    normal = free_impulse(y, n, y.velocity[n] + y.shift[n])
    square = normal - normal
    for row in range(n + 1, n + r.cone[n]):
        z = free_impulse(y, row, y.velocity[row])
        y.unit[row] = z
        square = square + z * z
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, along, across = cone_projection(r.slope[n], normal, length, per_length)
    y.weight[n] = c0 * y.inverse[n]
    y.weight1[n] = c1 * y.inverse[n]
    y.weight2[n] = c2 * y.inverse[n]
    y.weight3[n] = c3 * y.inverse[n]
    r.impulse[n] = along
    for row in range(n + 1, n + r.cone[n]):
        y.unit[row] = y.unit[row] * per_length
        r.impulse[row] = across * y.unit[row]


@njit
def hold(r: Any, y: Any, k: Any) -> bool:
    """Contacts that carried something in the last step hold on in this one, as far as the first Newton step goes;
    whether there are any.

    From x = 0 a line search would follow every kink on the way to where most of them stick after all.
    """
    holds = False
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        if r.cone[n] > 1 and r.kind[n] == CONTACT_ROW:
            held = y.centre[n]
            zero = held - held
            holds = holds or highest(held) > 0.0
            y.shift[n] = where_greater(held, zero, zero, y.shift[n])
            y.before[n] = y.shift[n]
            y.weight[n] = where_greater(held, zero, y.inverse[n], y.weight[n])
            y.weight1[n] = where_greater(held, zero, zero, y.weight1[n])
            y.weight2[n] = where_greater(held, zero, zero, y.weight2[n])
            y.weight3[n] = where_greater(held, zero, y.inverse[n], y.weight3[n])
            for row in range(n, n + r.cone[n]):
                free = free_impulse(y, row, y.velocity[row])
                r.impulse[row] = where_greater(held, zero, free, r.impulse[row])
    return holds


@inlined
def direction_of_columns(r: Any, n: Any) -> Any:
    """1, or -1 where the columns of the unit descend."""
    return -1 if r.stop[n] > r.start[n] and r.column[r.stop[n] - 1] < r.column[r.start[n]] else 1


@njit
def set_lines(r: Any, y: Any, n: Any, pulled: Any) -> None:
    """y.lines (rows, entries) = J of the unit, the normal one with μ v̂ᵀ J_t (y.pull) added if it is pulled.

    Entries whose columns descend are turned around.
    """
    count = r.stop[n] - r.start[n]
    step = direction_of_columns(r, n)
    for row in range(max(r.cone[n], 1)):
        first = r.start[n + row] if step > 0 else r.start[n + row] + count - 1
        for e in range(count):
            y.lines[row, e] = r.value[first + step * e]
    if pulled:
        for row in range(1, r.cone[n]):
            for e in range(count):
                y.lines[0, e] = y.lines[0, e] + y.pull[n + row] * y.lines[row, e]


@njit
def weigh_lines(r: Any, y: Any, n: Any, d0: Any, d1: Any, d2: Any, d3: Any) -> None:
    """y.lines = D y.lines with the cone's D = [d0, d1 eᵀ; d1 e, d2 e eᵀ + d3 1]; of a box row D is d0."""
    for e in range(r.stop[n] - r.start[n]):
        normal = y.lines[0, e]
        along = d1 - d1
        for row in range(1, r.cone[n]):
            along = along + y.unit[n + row] * y.lines[row, e]
        y.lines[0, e] = d0 * normal + d1 * along
        common = d1 * normal + d2 * along
        for row in range(1, r.cone[n]):
            y.lines[row, e] = y.unit[n + row] * common + d3 * y.lines[row, e]


@njit
def pull_lines(r: Any, y: Any, n: Any) -> None:
    """The transpose of what `set_lines` adds: μ v̂ times the first line, to the others."""
    for row in range(1, r.cone[n]):
        for e in range(r.stop[n] - r.start[n]):
            y.lines[row, e] = y.lines[row, e] + y.pull[n + row] * y.lines[0, e]
