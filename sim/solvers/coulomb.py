"""Newton on Coulomb's law itself, for contacts that the convex problems of newton.py do not bring together.

The unknowns are x and λ, with M̂ x = f + Jᵀλ, and the rows' equations are λ = P(λ - ρ û), P the projection on
bounds or cone and û the rows' velocity with De Saxcé's shift and the proximal term (Alart and Curnier 1991, with the
shift's derivative in the matrix). That matrix is not symmetric, and there is no function that falls: a step is halved
once where the residual would rise above a mean of those before (Zhang and Hager 2004), and then taken. Shorter steps
were tried: they get stuck at kinks that a bold one jumps over. ε falls from round to round; a round that takes long
makes it larger again.

Solved to 1e-9: 800 throws of one to three bodies with three or four contacts each, friction 0.1 to 1 mixed, in 16 steps
in the mean, 30 at most; 100 stacks of two to ten boxes with four contacts per face, kicked, in 35 and 131 (with eight
steps of newton.py that did not help); the problems of tests/benchmarks/friction.py.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import absolute, highest, sqrt, where_greater
from artsim.sim.solvers.blocks import add_product, factorise_blocks, set_inertia, solve_blocks, times_inertia
from artsim.sim.solvers.cone import cone_projection, inverse_or_zero, largest, least
from artsim.sim.solvers.impulses import add_transposed, pull_lines, set_gradient, set_lines, times, weigh_lines

_PATIENCE = 15  # steps in a round, before the problem is made easier
_EASIER = 10.0  # ε then
_FALL = 0.03  # in every further round
_NO_BETTER = 0.3  # of what was left before, in a step or a round
ENOUGH = 1e4  # tolerances, when nothing gets better
_MEMORY = 0.85  # of residuals before, in what a step is measured by
_GLANCE = 2  # steps, after which what was near is nearer
_SAME = 1e-6  # of a residual
CONTRADICTION = 1e301  # what is left where impulses have no end
_ROUNDING = 1e-22  # of what impulses do to a row alone
_LARGEST_PULL = 1e11  # [rad/s or m/s] that impulses do to a row alone, if a stiff drive presses on a light link
_LAST_DIGITS = 1e-15  # of an impulse
_DIGITS = 1e-15  # of an impulse that a velocity as small as the tolerance counts
_OVERFLOWING = 1e100  # rad/s or m/s
ABSURD = (
    1e13  # rad/s or m/s: only rows that contradict each other pull so; a drive of 1e8 N m/rad against a light link 1e10
)


@njit
def coulomb(
    robot: Any,
    rows: Any,
    force: Any,
    u: Any,
    work: Any,
    k: Any,
    tolerance: Any,
    limit: Any,
    most: Any,
    first: Any,
    near: Any,
) -> Any:
    """Go on from newton's x and λ of island k, for so many steps; what is then left of its rows [rad/s or m/s].

    Rounding may end before `tolerance`: what is within ENOUGH times that and gets no better is as good as it gets.
    `first`: ε at the start, relative to newton's. `near`: no rounds, λ_k follows every good step, which takes
    fewer of them from close to the solution and misses it more often from afar. Impulses above the limit are none.
    solver.gradient holds M̂ x - f - Jᵀλ. Steps are added to solver.sizes[2].
    """
    model, data = robot.model, robot.data
    zero = tolerance - tolerance
    one = zero + 1.0
    left = zero + 1e300
    _balance(model, data, rows, work, k)
    _set_rates(rows, work, k, tolerance)
    _scale(rows, work, k, zero + first)
    _recentre(rows, work, k, one)
    size = _residual(rows, work, k, zero)
    bar, past = size, 1.0
    start = size
    steps, since = 0, 0
    last = zero + 1e300
    while steps < most:
        good = ENOUGH * largest(tolerance, rounding(rows, work, k))
        solved = _is_solved(size, last, good, tolerance)
        if highest(solved) > 0.0:
            _refresh(rows, u, work, k)
            size = _residual(rows, work, k, zero)
            solved = _is_solved(size, last, good, tolerance)
        if highest(solved) > 0.0:
            before = left
            left = where_greater(solved, zero, largest(_recentre(rows, work, k, solved), size), left)
            beyond = where_greater(_largest_impulse(rows, work, k), limit, solved, zero)
            beyond = where_greater(_pull(rows, work, k), zero + ABSURD, solved, beyond)
            left = where_greater(beyond, zero, zero + 1e300, left)
            enough = where_greater(left, _NO_BETTER * before, good, tolerance)
            if highest(beyond) > 0.0 or highest(left - enough) <= 0.0:
                break
            _scale(rows, work, k, where_greater(solved, zero, where_greater(left, tolerance, _FALL * one, one), one))
            size = _residual(rows, work, k, zero)
            bar, past, since = size, 1.0, 0
            last = zero + 1e300
        elif since == _PATIENCE:
            if highest(_pull(rows, work, k)) > ABSURD:
                left = zero + CONTRADICTION
                break
            _scale(rows, work, k, _EASIER * one)
            _recentre(rows, work, k, one)
            size = _residual(rows, work, k, zero)
            bar, past, since = size, 1.0, 0
        if near and steps == _GLANCE and highest(size - start) > 0.0:
            break
        steps += 1
        since += 1
        _assemble(model, data, rows, work, k)
        factorise_blocks(work, k, work.matrix, work.transpose, True)
        _direction(model, data, rows, force, work, k)
        last = size
        size = _step(rows, work, k, bar, size, near)
        bar = (_MEMORY * past * bar + size) / (_MEMORY * past + 1.0)
        past = _MEMORY * past + 1.0
        if not highest(size) < _OVERFLOWING:
            left = zero + CONTRADICTION
            break
    work.sizes[2] += steps
    # steps may have run out in a round
    good = ENOUGH * largest(tolerance, rounding(rows, work, k))
    back = where_greater(size, good, where_greater(left, good, zero, one), zero)
    if highest(back) > 0.0:
        _go_back(model, data, rows, force, work, k, back)
        size = _residual(rows, work, k, zero)
    return largest(left, size)


@inlined
def _is_solved(size: Any, last: Any, good: Any, tolerance: Any) -> Any:
    """1 where the residual is within the tolerance, or good enough and hardly better than the last; else 0."""
    one = size - size + 1.0
    return where_greater(size, where_greater(size, _NO_BETTER * last, good, tolerance), one - one, one)


@njit
def rounding(rows: Any, work: Any, k: Any) -> Any:
    """A tolerance [rad/s or m/s] of which ENOUGH are what is lost in the digits of island k's impulses."""
    lost = work.change[0] - work.change[0]
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            lost = largest(lost, absolute(rows.impulse[row]) * inverse_or_zero(work.rho[row]))
    return _ROUNDING * least(lost, lost - lost + _LARGEST_PULL)


@njit
def _refresh(rows: Any, u: Any, work: Any, k: Any) -> None:
    """solver.velocity of x as it is: steps on the way there may have been so long that their digits are lost."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            value = rows.bias[row]
            for e in range(rows.start[row], rows.stop[row]):
                value = value + rows.value[e] * (u[rows.column[e]] + work.change[rows.column[e]])
            work.velocity[row] = value


@njit
def _go_back(model: Any, data: Any, rows: Any, force: Any, work: Any, k: Any, chosen: Any) -> None:
    """λ becomes λ_k, which ended the round before, in the chosen lanes; x follows."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            rows.impulse[row] = rows.impulse[row] + chosen * (work.centre[row] - rows.impulse[row])
    times_inertia(model.independent_parent, model.independent_run, data.factor, work, k, work.change, work.product)
    set_gradient(rows, force, work, k)
    _balance(model, data, rows, work, k)


@njit
def _balance(model: Any, data: Any, rows: Any, work: Any, k: Any) -> None:
    """Move x to where M̂ x = f + Jᵀλ."""
    set_inertia(model, data, work, k, work.matrix)
    factorise_blocks(work, k, work.matrix, work.matrix, False)
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = -work.gradient[a]
            work.gradient[a] = work.gradient[a] - work.gradient[a]
    solve_blocks(work, k, work.matrix, work.matrix)
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        times(rows, n, work.direction, work.along)
        for row in range(n, n + max(rows.cone[n], 1)):
            work.velocity[row] = work.velocity[row] + work.along[row]
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.change[a] = work.change[a] + work.direction[a]


# ------------------------------------------------------------------ residual and derivatives


@njit
def _set_rates(rows: Any, work: Any, k: Any, tolerance: Any) -> None:
    """solver.rate: what a row's mobility says, or so much that velocities count where impulses are large.

    Whether a contact slides is told by λ - ρ û: a drive that presses a light link onto the ground with 1e7 N s makes
    ρ û of a slow slide less than the last digit of λ.
    """
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        size = tolerance - tolerance
        for row in range(n, n + max(rows.cone[n], 1)):
            size = largest(size, absolute(rows.impulse[row]))
        for row in range(n, n + max(rows.cone[n], 1)):
            work.rate[row] = largest(work.rho[row], _DIGITS * inverse_or_zero(tolerance) * size)


@njit
def _residual(rows: Any, work: Any, k: Any, t: Any) -> Any:
    """solver.miss = λ - P(λ - ρ û) with t of the step taken, P's derivative in solver.weight to weight3; |miss / ρ|."""
    square = t - t
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.cone[n] > 1:
            square = square + _cone_residual(rows, work, n, t)
        else:
            zero = square - square
            z = rows.impulse[n] + t * work.linear[n]
            q = work.rate[n] * _yielding(rows, work, n, z, t)
            p = z - q
            work.weight[n] = where_greater(p, rows.lower[n], where_greater(rows.upper[n], p, zero + 1.0, zero), zero)
            work.miss[n] = where_greater(work.weight[n], zero, q, z - least(largest(p, rows.lower[n]), rows.upper[n]))
            miss = work.miss[n] * inverse_or_zero(work.rate[n])
            square = square + miss * miss
    return sqrt(square)


@inlined
def _yielding(rows: Any, work: Any, n: Any, z: Any, t: Any) -> Any:
    """Velocity of row n with what gives way at the impulse z."""
    return work.velocity[n] + t * work.along[n] + rows.cfm[n] * z + work.eps[n] * (z - work.centre[n])


@njit
def _cone_residual(rows: Any, work: Any, n: Any, t: Any) -> Any:
    """_residual's part of the cone that begins with row n; solver.unit is the direction of its tangential impulse."""
    last = n + rows.cone[n]
    zero = work.rate[n] - work.rate[n]
    square = zero
    slip = zero
    before = zero
    across = zero
    for row in range(n + 1, last):
        z = rows.impulse[row] + t * work.linear[row]
        v = _yielding(rows, work, row, z, t)
        slip = slip + v * v
        q = work.rate[n] * v
        work.unit[row] = z - q
        work.miss[row] = q
        square = square + work.unit[row] * work.unit[row]
        before = before + z * z
        across = across + q * (z + work.unit[row])
    work.shift[n] = rows.slope[n] * sqrt(slip)
    z = rows.impulse[n] + t * work.linear[n]
    q = work.rate[n] * (_yielding(rows, work, n, z, t) + work.shift[n])
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
def _past(limit: Any, length: Any) -> Any:
    """limit - length, 0 where that is rounding."""
    past = limit - length
    return where_greater(absolute(past), _LAST_DIGITS * (limit + length), past, past - past)


@inlined
def _set_cone_miss(rows: Any, work: Any, n: Any, z: Any, q: Any, past: Any, per_length: Any) -> None:
    """solver.miss = z - P(z - q) of the cone that begins with row n, solver.unit = the direction of z_t - q_t;
    solver.miss holds q_t.

    Inside the cone P(z - q) = z - q, on its edge what is left of z is a small multiple of it: differences of large
    impulses would lose the digits of small velocities. z, q: normal parts; past: μ z_n - |z_t - q_t|.
    """
    zero = z - z
    mu = rows.slope[n]
    g = 1.0 / (1.0 + mu * mu)
    touches = where_greater(work.weight[n], zero, zero + 1.0, zero)
    edge = touches * where_greater(zero + 1.0, work.weight[n], zero + 1.0, zero)
    work.miss[n] = where_greater(touches, zero, q + edge * (g * (mu * past + q) - q), z)
    more = edge * g * (mu * q - past)
    for row in range(n + 1, n + rows.cone[n]):
        unit = work.unit[row] * per_length
        work.miss[row] = where_greater(touches, zero, work.miss[row] + unit * more, work.unit[row] + work.miss[row])
        work.unit[row] = unit


@njit
def _scale(rows: Any, work: Any, k: Any, factor: Any) -> None:
    """Every ε, and what follows from it."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.eps[row] = factor * work.eps[row]
            work.inverse[row] = inverse_or_zero(rows.cfm[row] + work.eps[row])


@njit
def _pull(rows: Any, work: Any, k: Any) -> Any:
    """The largest velocity that an impulse would give its row alone, about [rad/s or m/s]."""
    most = work.change[0] - work.change[0]
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            most = largest(most, absolute(rows.impulse[row]) * inverse_or_zero(work.rho[row]))
    return most


@njit
def _largest_impulse(rows: Any, work: Any, k: Any) -> Any:
    most = work.change[0] - work.change[0]
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            most = largest(most, absolute(rows.impulse[row]))
    return most


@njit
def _recentre(rows: Any, work: Any, k: Any, chosen: Any) -> Any:
    """λ_k becomes λ in the chosen lanes; by how much the rows move for that [rad/s or m/s]."""
    left = chosen - chosen
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            off = rows.impulse[row] - work.centre[row]
            left = largest(left, work.eps[row] * absolute(off))
            work.centre[row] = work.centre[row] + chosen * off
            work.along[row] = off - off
            work.linear[row] = off - off
    return left


# ------------------------------------------------------------------ the step

# With B the derivative of P and κ = ρ (cfm + ε) a row's equation is, to first order,
#     (1 - B + κ B) dλ = -miss - ρ B S J dx,   S = 1 + μ n v̂ᵀ of the shift.
# B is [c0, c1 eᵀ; c1 e, c2 e eᵀ + c3 1]: 1 along the cone's edge, c3 across e, 0 else; its functions look alike.
# The shift falls with the friction where that gives way, by μ v̂ᵀ κ dλ_t / ρ; where a contact slides, v̂ = -e at the
# solution, and along the edge κ is then divided by 1 + μ², and miss has one term more. What sticks has no shift.


@njit
def _stiffness(rows: Any, work: Any, n: Any) -> Any:
    """The four numbers of ρ B / (1 - B + κ B)."""
    c3 = work.weight3[n]
    kappa = work.rate[n] * inverse_or_zero(work.inverse[n])
    across = work.rate[n] * c3 / (1.0 - c3 + kappa * c3)
    inverse = inverse_or_zero(_lengthwise(rows, work, n))
    return work.weight[n] * inverse, work.weight1[n] * inverse, (work.weight2[n] + c3) * inverse - across, across


@inlined
def _lengthwise(rows: Any, work: Any, n: Any) -> Any:
    """κ / ρ along the edge, or inside the cone."""
    return inverse_or_zero(work.inverse[n]) * (1.0 - rows.slope[n] * work.weight1[n])


@inlined
def _on_edge(work: Any, n: Any) -> Any:
    """1 for a cone that slides, else 0."""
    zero = work.weight1[n] - work.weight1[n]
    return where_greater(work.weight1[n], zero, zero + 1.0, zero)


@njit
def _answer(rows: Any, work: Any, k: Any) -> None:
    """solver.linear = -miss / (1 - B + κ B): what λ does while x stands still."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        kappa = work.rate[n] * inverse_or_zero(work.inverse[n])
        if rows.cone[n] <= 1:
            work.linear[n] = -work.miss[n] * (1.0 + work.weight[n] * (inverse_or_zero(kappa) - 1.0))
        else:
            lengthwise = inverse_or_zero(work.rate[n] * _lengthwise(rows, work, n))
            gain = (1.0 - kappa) * lengthwise
            c3 = work.weight3[n]
            across = 1.0 / (1.0 - c3 + kappa * c3)
            along = kappa - kappa
            for row in range(n + 1, n + rows.cone[n]):
                along = along + work.unit[row] * work.miss[row]
            edge = _on_edge(work, n)
            more = kappa * rows.slope[n] * lengthwise * along * edge
            miss = work.miss[n] - (1.0 - edge) * work.weight[n] * work.rate[n] * work.shift[n]
            work.linear[n] = -(miss + gain * (work.weight[n] * miss + work.weight1[n] * along) + more * work.weight[n])
            both = gain * (work.weight1[n] * miss + (work.weight2[n] + c3) * along) + along - across * along
            both = both + more * work.weight1[n]
            for row in range(n + 1, n + rows.cone[n]):
                work.linear[row] = -(work.unit[row] * both + across * work.miss[row])


@njit
def _assemble(model: Any, data: Any, rows: Any, work: Any, k: Any) -> None:
    """solver.matrix = M̂ + Jᵀ ρ B / (1 - B + κ B) S J of island k, solver.transpose its transpose; lower triangles."""
    set_inertia(model, data, work, k, work.matrix)
    set_inertia(model, data, work, k, work.transpose)
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if highest(work.weight[n]) <= 0.0:
            for row in range(n + 1, n + rows.cone[n]):
                work.pull[row] = work.pull[row] - work.pull[row]  # nothing of an earlier step is left
            continue
        if rows.cone[n] > 1:
            _add_cone(rows, work, n)
        else:
            set_lines(rows, work, n, False)
            weigh_lines(
                rows,
                work,
                n,
                work.weight[n] * work.inverse[n],
                work.weight[n],
                work.weight[n],
                work.weight[n],
            )
            add_product(rows, work, n, work.matrix)
            add_product(rows, work, n, work.transpose)


@njit
def _add_cone(rows: Any, work: Any, n: Any) -> None:
    d0, d1, d2, d3 = _stiffness(rows, work, n)
    slip = d0 - d0
    for row in range(n + 1, n + rows.cone[n]):
        work.pull[row] = _yielding(rows, work, row, rows.impulse[row], d0 - d0)  # of the shift
        slip = slip + work.pull[row] * work.pull[row]
    slip = _on_edge(work, n) * rows.slope[n] * inverse_or_zero(sqrt(slip))
    for row in range(n + 1, n + rows.cone[n]):
        work.pull[row] = slip * work.pull[row]
    set_lines(rows, work, n, True)
    weigh_lines(rows, work, n, d0, d1, d2, d3)
    add_product(rows, work, n, work.matrix)
    set_lines(rows, work, n, False)
    weigh_lines(rows, work, n, d0, d1, d2, d3)
    pull_lines(rows, work, n)
    add_product(rows, work, n, work.transpose)


@njit
def _direction(model: Any, data: Any, rows: Any, force: Any, work: Any, k: Any) -> None:
    """solver.direction = dx, solver.along = J dx, solver.linear = dλ."""
    _answer(rows, work, k)
    times_inertia(model.independent_parent, model.independent_run, data.factor, work, k, work.change, work.product)
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = force[a] - work.product[a]
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        add_transposed(rows, work.listed[q], 1.0, rows.impulse, work.direction)
        add_transposed(rows, work.listed[q], 1.0, work.linear, work.direction)
    solve_blocks(work, k, work.matrix, work.transpose)
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        times(rows, n, work.direction, work.along)
        if rows.cone[n] > 1:
            _cone_change(rows, work, n)
        else:
            work.linear[n] = work.linear[n] - work.weight[n] * work.inverse[n] * work.along[n]


@njit
def _cone_change(rows: Any, work: Any, n: Any) -> None:
    """What dx does to the impulses of the cone that begins with row n."""
    d0, d1, d2, d3 = _stiffness(rows, work, n)
    zero = d0 - d0
    normal = work.along[n]
    along = zero
    for row in range(n + 1, n + rows.cone[n]):
        normal = normal + work.pull[row] * work.along[row]
        along = along + work.unit[row] * work.along[row]
    work.linear[n] = work.linear[n] - (d0 * normal + d1 * along)
    for row in range(n + 1, n + rows.cone[n]):
        work.linear[row] = work.linear[row] - (work.unit[row] * (d1 * normal + d2 * along) + d3 * work.along[row])


@njit
def _step(rows: Any, work: Any, k: Any, bar: Any, size: Any, near: Any) -> Any:
    """Take the step where the residual is then below the bar, else half of it; the residual.

    As large as it was it stays where a row jumps from one bound to the other, to jump back: half of that step too.
    """
    zero = bar - bar
    then = _residual(rows, work, k, zero + 1.0)
    t = where_greater(then, bar, zero + 0.5, zero + 1.0)
    t = where_greater(absolute(then - size), _SAME * size, t, zero + 0.5)
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.change[a] = work.change[a] + t * work.direction[a]
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.velocity[row] = work.velocity[row] + t * work.along[row]
            rows.impulse[row] = rows.impulse[row] + t * work.linear[row]
            work.along[row] = zero
            work.linear[row] = zero
    if near:
        _recentre(rows, work, k, where_greater(_NO_BETTER * size, then, zero + 1.0, zero))
    return _residual(rows, work, k, zero)
