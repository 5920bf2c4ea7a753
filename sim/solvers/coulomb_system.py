"""Coulomb's law as a system of equations: the residual of its rows, and the Newton step that follows from it.

The rows' equations are miss = λ - P(λ - ρ û) = 0 (Alart and Curnier 1991). With B the derivative of P and κ = ρ (cfm +
ε), a row's equation is, to first order,
(1 - B + κ B) dλ = -miss - ρ B S J dx,   S = 1 + μ n v̂ᵀ of the shift.
B is [c0, c1 eᵀ; c1 e, c2 e eᵀ + c3 1]: 1 along the cone's edge, c3 across e, 0 otherwise; functions of B have the same
form. Where the friction rows are regularised, the shift decreases by μ v̂ᵀ κ dλ_t / ρ; where a contact slides, v̂ = -e
at the solution, and along the edge κ is then divided by 1 + μ², and miss has one more term. A sticking contact has no
shift.

work.weight to work.weight3 hold c0 to c3, work.unit holds e. Impulses are in N s or N m s, velocities of rows in rad/s
or m/s; a cone is identified by its first row, n. Every function serves both widths: numbers of rows are T, a float or a
pack of 8 lanes.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, highest, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real, Vec4
from artsim.sim.foundation.scalars import divisor, inverse_or_zero, largest, least
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import KEPT_ISLAND, NewtonWork
from artsim.sim.solvers.blocks import add_product, set_inertia, solve_blocks, times_inertia
from artsim.sim.solvers.cone import cone_projection
from artsim.sim.solvers.impulses import add_transposed, pull_lines, rows_times, set_lines, weigh_lines

_LAST_DIGITS = 1e-15  # relative to an impulse
_COUNTED_DIGITS = 1e-15  # relative to an impulse, as which a velocity as small as the tolerance counts


# ------------------------------------------------------------------ the residual


@njit
def set_rates(rows: Rows, work: NewtonWork, island: int, tolerance: Real) -> None:
    """work.rate: ρ of the island's rows [impulse per velocity], from a row's mobility, or large enough that velocities
    count where impulses are large.

    The sliding of a contact is decided by λ - ρ û: where a drive presses a light link onto the ground with 1e7 N s, ρ û
    of a slow slide is less than the last digit of λ.
    """
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        size = zero_like(tolerance)
        for row in range(n, n + max(rows.cone[n], 1)):
            size = largest(absolute(rows.impulse[row]), size)
        for row in range(n, n + max(rows.cone[n], 1)):
            work.rate[row] = largest(_COUNTED_DIGITS * inverse_or_zero(tolerance) * size, work.rho[row])


@inlined
def residual(rows: Rows, work: NewtonWork, island: int) -> Real:
    """|miss / ρ| of the island [rad/s or m/s]; see residual_after."""
    zero = zero_like(work.change[0])
    return residual_after(rows, work, island, zero, zero + 1.0)


@njit
def residual_after(rows: Rows, work: NewtonWork, island: int, t: Real, off: Real) -> Real:
    """|miss / ρ| of the island with the share t of the step taken [rad/s or m/s]; sets work.miss = λ - P(λ - ρ û) and
    the derivative of P in work.weight to work.weight3. O(rows). off: 1, or 0 for the residual with λ_k at the λ
    reached.
    """
    zero = zero_like(work.change[0])
    square = zero
    for p in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[p]
        if rows.cone[n] > 1:
            square = square + _cone_residual(rows, work, n, t, off)
        else:
            z = rows.impulse[n] + t * work.linear[n]
            q = work.rate[n] * _yielding(rows, work, n, z, t, off)
            bounded = least(largest(rows.lower[n], z - q), rows.upper[n])
            below = where_greater(rows.upper[n], z - q, zero + 1.0, zero)
            work.weight[n] = where_greater(z - q, rows.lower[n], below, zero)
            work.miss[n] = where_greater(work.weight[n], zero, q, z - bounded)
            miss = work.miss[n] * inverse_or_zero(work.rate[n])
            square = square + miss * miss
    return sqrt(square)


@inlined
def _yielding(rows: Rows, work: NewtonWork, n: int, z: Real, t: Real, off: Real) -> Real:
    """Velocity of row n at the impulse z, with its compliance."""
    return work.velocity[n] + t * work.along[n] + rows.cfm[n] * z + work.eps[n] * (off * (z - work.centre[n]))


@njit
def _cone_residual(rows: Rows, work: NewtonWork, n: int, t: Real, off: Real) -> Real:
    """The cone's part of the squared residual; work.unit is the direction of z_t - q_t, with z = λ and q = ρ û."""
    last = n + rows.cone[n]
    zero = zero_like(work.rate[n])
    square, slip, before, across = zero, zero, zero, zero
    for row in range(n + 1, last):
        z = rows.impulse[row] + t * work.linear[row]
        v = _yielding(rows, work, row, z, t, off)
        slip = slip + v * v
        q = work.rate[n] * v
        work.unit[row] = z - q
        work.miss[row] = q
        square = square + work.unit[row] * work.unit[row]
        before = before + z * z
        across = across + q * (z + work.unit[row])
    work.shift[n] = rows.shifting[n] * sqrt(slip)
    z = rows.impulse[n] + t * work.linear[n]
    q = work.rate[n] * (_yielding(rows, work, n, z, t, off) + work.shift[n])
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, _, _ = cone_projection(rows.slope[n], z - q, length, per_length)
    work.weight[n] = c0
    work.weight1[n] = c1
    work.weight2[n] = c2
    work.weight3[n] = c3
    before = sqrt(before)
    past = _past(rows.slope[n] * z, before) + across * inverse_or_zero(before + length)  # μ z_n - |z_t - q_t|
    _set_cone_miss(rows, work, n, z, q, past, per_length)
    square = work.miss[n] * work.miss[n]
    for row in range(n + 1, last):
        square = square + work.miss[row] * work.miss[row]
    scale = inverse_or_zero(work.rate[n])
    return square * scale * scale


@inlined
def _past(limit: Real, length: Real) -> Real:
    """limit - length, or 0 if the difference is rounding."""
    past = limit - length
    return where_greater(absolute(past), _LAST_DIGITS * (limit + length), past, zero_like(past))


@inlined
def _set_cone_miss(rows: Rows, work: NewtonWork, n: int, z: Real, q: Real, past: Real, per_length: Real) -> None:
    """work.miss = z - P(z - q) of the cone, work.unit = the direction of z_t - q_t; on entry work.miss holds q_t and
    work.unit holds z_t - q_t.

    Inside the cone P(z - q) = z - q, and on its edge the remainder is a small multiple of z: differences of large
    impulses would lose the digits of small velocities. z, q: normal parts; past: μ z_n - |z_t - q_t|.
    """
    zero = zero_like(z)
    weight = work.weight[n]  # 0 outside of the cone, 1 inside
    mu = rows.slope[n]
    g = 1.0 / (1.0 + mu * mu)
    on_edge = where_greater(zero + 1.0, weight, q + (g * (mu * past + q) - q), q)
    work.miss[n] = where_greater(weight, zero, on_edge, z)
    more = where_greater(zero + 1.0, weight, g * (mu * q - past), zero)
    for row in range(n + 1, n + rows.cone[n]):
        unit = work.unit[row] * per_length
        within = work.miss[row] + unit * more
        work.miss[row] = where_greater(weight, zero, within, work.unit[row] + work.miss[row])
        work.unit[row] = unit


# ------------------------------------------------------------------ the step


@njit
def stiffness(rows: Rows, work: NewtonWork, n: int) -> Vec4:
    """The four numbers of the cone's ρ B / (1 - B + κ B) [impulse per velocity]."""
    c3 = work.weight3[n]
    kappa = work.rate[n] * inverse_or_zero(work.inverse[n])
    across = work.rate[n] * c3 / divisor(1.0 - c3 + kappa * c3)  # 0 for a row that moves nothing
    inverse = inverse_or_zero(_lengthwise(rows, work, n))
    return work.weight[n] * inverse, work.weight1[n] * inverse, (work.weight2[n] + c3) * inverse - across, across


@inlined
def _lengthwise(rows: Rows, work: NewtonWork, n: int) -> Real:
    """κ / ρ along the cone's edge, or inside the cone."""
    return inverse_or_zero(work.inverse[n]) * (1.0 - rows.shifting[n] * work.weight1[n])


@inlined
def _on_edge(work: NewtonWork, n: int) -> Real:
    """1 for a cone that slides, else 0."""
    zero = zero_like(work.weight1[n])
    return where_greater(work.weight1[n], zero, zero + 1.0, zero)


@njit
def set_still_change(rows: Rows, work: NewtonWork, island: int) -> None:
    """work.linear = -miss / (1 - B + κ B): the change of λ at fixed x."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        kappa = work.rate[n] * inverse_or_zero(work.inverse[n])
        if rows.cone[n] <= 1:
            work.linear[n] = -work.miss[n] * (1.0 + work.weight[n] * (inverse_or_zero(kappa) - 1.0))
        else:
            lengthwise = inverse_or_zero(work.rate[n] * _lengthwise(rows, work, n))
            gain = (1.0 - kappa) * lengthwise
            c3 = work.weight3[n]
            across = 1.0 / divisor(1.0 - c3 + kappa * c3)
            along = zero_like(kappa)
            for row in range(n + 1, n + rows.cone[n]):
                along = along + work.unit[row] * work.miss[row]
            edge = _on_edge(work, n)
            more = kappa * rows.shifting[n] * lengthwise * along * edge
            miss = work.miss[n] - (1.0 - edge) * work.weight[n] * work.rate[n] * work.shift[n]
            work.linear[n] = -(miss + gain * (work.weight[n] * miss + work.weight1[n] * along) + more * work.weight[n])
            both = gain * (work.weight1[n] * miss + (work.weight2[n] + c3) * along) + along - across * along
            both = both + more * work.weight1[n]
            for row in range(n + 1, n + rows.cone[n]):
                work.linear[row] = -(work.unit[row] * both + across * work.miss[row])


@njit
def assemble(model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int) -> None:
    """work.matrix (nu, nu) = M̂ + Jᵀ ρ B / (1 - B + κ B) S J of the island, work.transpose its transpose; lower
    triangles [kg m² or kg]. O(entries²) for each row."""
    work.sizes[KEPT_ISLAND] = 0
    set_inertia(model, data, work, island, work.matrix)
    set_inertia(model, data, work, island, work.transpose)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if highest(work.weight[n]) <= 0.0:
            for row in range(n + 1, n + rows.cone[n]):
                work.pull[row] = zero_like(work.pull[row])  # clears the value of an earlier step
        elif rows.cone[n] > 1:
            _add_cone(rows, work, n)
        else:
            set_lines(rows, work, n, 0, False)
            weigh_lines(
                rows,
                work,
                n,
                0,
                work.weight[n] * work.inverse[n],
                work.weight[n],
                work.weight[n],
                work.weight[n],
            )
            add_product(rows, work, n, 1, work.matrix)
            add_product(rows, work, n, 1, work.transpose)


@njit
def _add_cone(rows: Rows, work: NewtonWork, n: int) -> None:
    """Add the cone's part to both matrices."""
    d0, d1, d2, d3 = stiffness(rows, work, n)
    set_pull(rows, work, n)
    set_lines(rows, work, n, 0, True)
    weigh_lines(rows, work, n, 0, d0, d1, d2, d3)
    add_product(rows, work, n, rows.cone[n], work.matrix)
    set_lines(rows, work, n, 0, False)
    weigh_lines(rows, work, n, 0, d0, d1, d2, d3)
    pull_lines(rows, work, n)
    add_product(rows, work, n, rows.cone[n], work.transpose)


@njit
def set_pull(rows: Rows, work: NewtonWork, n: int) -> None:
    """work.pull = μ v̂ of the cone's shift where it slides, else 0."""
    slip = zero_like(work.weight[n])
    for row in range(n + 1, n + rows.cone[n]):
        work.pull[row] = _yielding(rows, work, row, rows.impulse[row], 0.0, 1.0)
        slip = slip + work.pull[row] * work.pull[row]
    slip = _on_edge(work, n) * rows.shifting[n] * inverse_or_zero(sqrt(slip))
    for row in range(n + 1, n + rows.cone[n]):
        work.pull[row] = slip * work.pull[row]


@njit
def find_direction(model: Model, data: Workspace, rows: Rows, force: Lanes1, work: NewtonWork, island: int) -> None:
    """work.direction (nu,) = dx, work.along (rows,) = J dx, work.linear (rows,) = dλ, by the factorised
    matrix. O(fill)."""
    set_still_change(rows, work, island)
    times_inertia(model.independent_parent, model.independent_run, data.factor, work, island, work.change, work.product)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = force[a] - work.product[a]
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        add_transposed(rows, work.listed[entry], 1.0, rows.impulse, work.direction)
        add_transposed(rows, work.listed[entry], 1.0, work.linear, work.direction)
    solve_blocks(work, island, work.matrix, work.transpose)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        rows_times(rows, n, work.direction, work.along)
        if rows.cone[n] > 1:
            _add_cone_change(rows, work, n)
        else:
            work.linear[n] = work.linear[n] - work.weight[n] * work.inverse[n] * work.along[n]


@njit
def _add_cone_change(rows: Rows, work: NewtonWork, n: int) -> None:
    """Add to work.linear the change of the cone's impulses by dx."""
    d0, d1, d2, d3 = stiffness(rows, work, n)
    normal = work.along[n]
    along = zero_like(normal)
    for row in range(n + 1, n + rows.cone[n]):
        normal = normal + work.pull[row] * work.along[row]
        along = along + work.unit[row] * work.along[row]
    work.linear[n] = work.linear[n] - (d0 * normal + d1 * along)
    for row in range(n + 1, n + rows.cone[n]):
        work.linear[row] = work.linear[row] - (work.unit[row] * (d1 * normal + d2 * along) + d3 * work.along[row])
