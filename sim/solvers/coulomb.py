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
    m: Any,
    w: Any,
    r: Any,
    force: Any,
    u: Any,
    y: Any,
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
    y.gradient holds M̂ x - f - Jᵀλ. Steps are added to y.sizes[2].
    """
    zero = tolerance - tolerance
    one = zero + 1.0
    left = zero + 1e300
    _balance(m, w, r, y, k)
    _set_rates(r, y, k, tolerance)
    _scale(r, y, k, zero + first)
    _recentre(r, y, k, one)
    size = _residual(r, y, k, zero)
    bar, past = size, 1.0
    start = size
    steps, since = 0, 0
    last = zero + 1e300
    while steps < most:
        good = ENOUGH * largest(tolerance, rounding(r, y, k))
        solved = _is_solved(size, last, good, tolerance)
        if highest(solved) > 0.0:
            _refresh(r, u, y, k)
            size = _residual(r, y, k, zero)
            solved = _is_solved(size, last, good, tolerance)
        if highest(solved) > 0.0:
            before = left
            left = where_greater(solved, zero, largest(_recentre(r, y, k, solved), size), left)
            beyond = where_greater(_largest_impulse(r, y, k), limit, solved, zero)
            beyond = where_greater(_pull(r, y, k), zero + ABSURD, solved, beyond)
            left = where_greater(beyond, zero, zero + 1e300, left)
            enough = where_greater(left, _NO_BETTER * before, good, tolerance)
            if highest(beyond) > 0.0 or highest(left - enough) <= 0.0:
                break
            _scale(r, y, k, where_greater(solved, zero, where_greater(left, tolerance, _FALL * one, one), one))
            size = _residual(r, y, k, zero)
            bar, past, since = size, 1.0, 0
            last = zero + 1e300
        elif since == _PATIENCE:
            if highest(_pull(r, y, k)) > ABSURD:
                left = zero + CONTRADICTION
                break
            _scale(r, y, k, _EASIER * one)
            _recentre(r, y, k, one)
            size = _residual(r, y, k, zero)
            bar, past, since = size, 1.0, 0
        if near and steps == _GLANCE and highest(size - start) > 0.0:
            break
        steps += 1
        since += 1
        _assemble(m, w, r, y, k)
        factorise_blocks(y, k, y.matrix, y.transpose, True)
        _direction(m, w, r, force, y, k)
        last = size
        size = _step(r, y, k, bar, size, near)
        bar = (_MEMORY * past * bar + size) / (_MEMORY * past + 1.0)
        past = _MEMORY * past + 1.0
        if not highest(size) < _OVERFLOWING:
            left = zero + CONTRADICTION
            break
    y.sizes[2] += steps
    # steps may have run out in a round
    good = ENOUGH * largest(tolerance, rounding(r, y, k))
    back = where_greater(size, good, where_greater(left, good, zero, one), zero)
    if highest(back) > 0.0:
        _go_back(m, w, r, force, y, k, back)
        size = _residual(r, y, k, zero)
    return largest(left, size)


@inlined
def _is_solved(size: Any, last: Any, good: Any, tolerance: Any) -> Any:
    """1 where the residual is within the tolerance, or good enough and hardly better than the last; else 0."""
    one = size - size + 1.0
    return where_greater(size, where_greater(size, _NO_BETTER * last, good, tolerance), one - one, one)


@njit
def rounding(r: Any, y: Any, k: Any) -> Any:
    """A tolerance [rad/s or m/s] of which ENOUGH are what is lost in the digits of island k's impulses."""
    lost = y.change[0] - y.change[0]
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            lost = largest(lost, absolute(r.impulse[row]) * inverse_or_zero(y.rho[row]))
    return _ROUNDING * least(lost, lost - lost + _LARGEST_PULL)


@njit
def _refresh(r: Any, u: Any, y: Any, k: Any) -> None:
    """y.velocity of x as it is: steps on the way there may have been so long that their digits are lost."""
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            value = r.bias[row]
            for e in range(r.start[row], r.stop[row]):
                value = value + r.value[e] * (u[r.column[e]] + y.change[r.column[e]])
            y.velocity[row] = value


@njit
def _go_back(m: Any, w: Any, r: Any, force: Any, y: Any, k: Any, chosen: Any) -> None:
    """λ becomes λ_k, which ended the round before, in the chosen lanes; x follows."""
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            r.impulse[row] = r.impulse[row] + chosen * (y.centre[row] - r.impulse[row])
    times_inertia(m.independent_parent, m.independent_run, w.factor, y, k, y.change, y.product)
    set_gradient(r, force, y, k)
    _balance(m, w, r, y, k)


@njit
def _balance(m: Any, w: Any, r: Any, y: Any, k: Any) -> None:
    """Move x to where M̂ x = f + Jᵀλ."""
    set_inertia(m, w, y, k, y.matrix)
    factorise_blocks(y, k, y.matrix, y.matrix, False)
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.direction[a] = -y.gradient[a]
            y.gradient[a] = y.gradient[a] - y.gradient[a]
    solve_blocks(y, k, y.matrix, y.matrix)
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        times(r, n, y.direction, y.along)
        for row in range(n, n + max(r.cone[n], 1)):
            y.velocity[row] = y.velocity[row] + y.along[row]
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.change[a] = y.change[a] + y.direction[a]


# ------------------------------------------------------------------ residual and derivatives


@njit
def _set_rates(r: Any, y: Any, k: Any, tolerance: Any) -> None:
    """y.rate: what a row's mobility says, or so much that velocities count where impulses are large.

    Whether a contact slides is told by λ - ρ û: a drive that presses a light link onto the ground with 1e7 N s makes
    ρ û of a slow slide less than the last digit of λ.
    """
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        size = tolerance - tolerance
        for row in range(n, n + max(r.cone[n], 1)):
            size = largest(size, absolute(r.impulse[row]))
        for row in range(n, n + max(r.cone[n], 1)):
            y.rate[row] = largest(y.rho[row], _DIGITS / tolerance * size)


@njit
def _residual(r: Any, y: Any, k: Any, t: Any) -> Any:
    """y.miss = λ - P(λ - ρ û) with t of the step taken, P's derivative in y.weight to weight3; |miss / ρ|."""
    square = t - t
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        if r.cone[n] > 1:
            square = square + _cone_residual(r, y, n, t)
        else:
            zero = square - square
            z = r.impulse[n] + t * y.linear[n]
            q = y.rate[n] * _yielding(r, y, n, z, t)
            p = z - q
            y.weight[n] = where_greater(p, r.lower[n], where_greater(r.upper[n], p, zero + 1.0, zero), zero)
            y.miss[n] = where_greater(y.weight[n], zero, q, z - least(largest(p, r.lower[n]), r.upper[n]))
            miss = y.miss[n] * inverse_or_zero(y.rate[n])
            square = square + miss * miss
    return sqrt(square)


@inlined
def _yielding(r: Any, y: Any, n: Any, z: Any, t: Any) -> Any:
    """Velocity of row n with what gives way at the impulse z."""
    return y.velocity[n] + t * y.along[n] + r.cfm[n] * z + y.eps[n] * (z - y.centre[n])


@njit
def _cone_residual(r: Any, y: Any, n: Any, t: Any) -> Any:
    """_residual's part of the cone that begins with row n; y.unit is the direction of its tangential impulse."""
    last = n + r.cone[n]
    zero = y.rate[n] - y.rate[n]
    square = zero
    slip = zero
    before = zero
    across = zero
    for row in range(n + 1, last):
        z = r.impulse[row] + t * y.linear[row]
        v = _yielding(r, y, row, z, t)
        slip = slip + v * v
        q = y.rate[n] * v
        y.unit[row] = z - q
        y.miss[row] = q
        square = square + y.unit[row] * y.unit[row]
        before = before + z * z
        across = across + q * (z + y.unit[row])
    y.shift[n] = r.slope[n] * sqrt(slip)
    z = r.impulse[n] + t * y.linear[n]
    q = y.rate[n] * (_yielding(r, y, n, z, t) + y.shift[n])
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, _, _ = cone_projection(r.slope[n], z - q, length, per_length)
    y.weight[n] = c0
    y.weight1[n] = c1
    y.weight2[n] = c2
    y.weight3[n] = c3
    before = sqrt(before)
    past = _past(r.slope[n] * z, before) + across * inverse_or_zero(before + length)  # μ z_n - |z_t - q_t|
    _set_cone_miss(r, y, n, z, q, past, per_length)
    square = y.miss[n] * y.miss[n]
    for row in range(n + 1, last):
        square = square + y.miss[row] * y.miss[row]
    scale = inverse_or_zero(y.rate[n])
    return square * scale * scale


@inlined
def _past(limit: Any, length: Any) -> Any:
    """limit - length, 0 where that is rounding."""
    past = limit - length
    return where_greater(absolute(past), _LAST_DIGITS * (limit + length), past, past - past)


@inlined
def _set_cone_miss(r: Any, y: Any, n: Any, z: Any, q: Any, past: Any, per_length: Any) -> None:
    """y.miss = z - P(z - q) of the cone that begins with row n, y.unit = the direction of z_t - q_t; y.miss holds q_t.

    Inside the cone P(z - q) = z - q, on its edge what is left of z is a small multiple of it: differences of large
    impulses would lose the digits of small velocities. z, q: normal parts; past: μ z_n - |z_t - q_t|.
    """
    zero = z - z
    mu = r.slope[n]
    g = 1.0 / (1.0 + mu * mu)
    touches = where_greater(y.weight[n], zero, zero + 1.0, zero)
    edge = touches * where_greater(zero + 1.0, y.weight[n], zero + 1.0, zero)
    y.miss[n] = where_greater(touches, zero, q + edge * (g * (mu * past + q) - q), z)
    more = edge * g * (mu * q - past)
    for row in range(n + 1, n + r.cone[n]):
        unit = y.unit[row] * per_length
        y.miss[row] = where_greater(touches, zero, y.miss[row] + unit * more, y.unit[row] + y.miss[row])
        y.unit[row] = unit


@njit
def _scale(r: Any, y: Any, k: Any, factor: Any) -> None:
    """Every ε, and what follows from it."""
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            y.eps[row] = factor * y.eps[row]
            y.inverse[row] = inverse_or_zero(r.cfm[row] + y.eps[row])


@njit
def _pull(r: Any, y: Any, k: Any) -> Any:
    """The largest velocity that an impulse would give its row alone, about [rad/s or m/s]."""
    most = y.change[0] - y.change[0]
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            most = largest(most, absolute(r.impulse[row]) * inverse_or_zero(y.rho[row]))
    return most


@njit
def _largest_impulse(r: Any, y: Any, k: Any) -> Any:
    most = y.change[0] - y.change[0]
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            most = largest(most, absolute(r.impulse[row]))
    return most


@njit
def _recentre(r: Any, y: Any, k: Any, chosen: Any) -> Any:
    """λ_k becomes λ in the chosen lanes; by how much the rows move for that [rad/s or m/s]."""
    left = chosen - chosen
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            off = r.impulse[row] - y.centre[row]
            left = largest(left, y.eps[row] * absolute(off))
            y.centre[row] = y.centre[row] + chosen * off
            y.along[row] = off - off
            y.linear[row] = off - off
    return left


# ------------------------------------------------------------------ the step

# With B the derivative of P and κ = ρ (cfm + ε) a row's equation is, to first order,
#     (1 - B + κ B) dλ = -miss - ρ B S J dx,   S = 1 + μ n v̂ᵀ of the shift.
# B is [c0, c1 eᵀ; c1 e, c2 e eᵀ + c3 1]: 1 along the cone's edge, c3 across e, 0 else; its functions look alike.
# The shift falls with the friction where that gives way, by μ v̂ᵀ κ dλ_t / ρ; where a contact slides, v̂ = -e at the
# solution, and along the edge κ is then divided by 1 + μ², and miss has one term more. What sticks has no shift.


@njit
def _stiffness(r: Any, y: Any, n: Any) -> Any:
    """The four numbers of ρ B / (1 - B + κ B)."""
    c3 = y.weight3[n]
    kappa = y.rate[n] * inverse_or_zero(y.inverse[n])
    across = y.rate[n] * c3 / (1.0 - c3 + kappa * c3)
    inverse = inverse_or_zero(_lengthwise(r, y, n))
    return y.weight[n] * inverse, y.weight1[n] * inverse, (y.weight2[n] + c3) * inverse - across, across


@inlined
def _lengthwise(r: Any, y: Any, n: Any) -> Any:
    """κ / ρ along the edge, or inside the cone."""
    return inverse_or_zero(y.inverse[n]) * (1.0 - r.slope[n] * y.weight1[n])


@inlined
def _on_edge(y: Any, n: Any) -> Any:
    """1 for a cone that slides, else 0."""
    zero = y.weight1[n] - y.weight1[n]
    return where_greater(y.weight1[n], zero, zero + 1.0, zero)


@njit
def _answer(r: Any, y: Any, k: Any) -> None:
    """y.linear = -miss / (1 - B + κ B): what λ does while x stands still."""
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        kappa = y.rate[n] * inverse_or_zero(y.inverse[n])
        if r.cone[n] <= 1:
            y.linear[n] = -y.miss[n] * (1.0 + y.weight[n] * (inverse_or_zero(kappa) - 1.0))
        else:
            lengthwise = inverse_or_zero(y.rate[n] * _lengthwise(r, y, n))
            gain = (1.0 - kappa) * lengthwise
            c3 = y.weight3[n]
            across = 1.0 / (1.0 - c3 + kappa * c3)
            along = kappa - kappa
            for row in range(n + 1, n + r.cone[n]):
                along = along + y.unit[row] * y.miss[row]
            edge = _on_edge(y, n)
            more = kappa * r.slope[n] * lengthwise * along * edge
            miss = y.miss[n] - (1.0 - edge) * y.weight[n] * y.rate[n] * y.shift[n]
            y.linear[n] = -(miss + gain * (y.weight[n] * miss + y.weight1[n] * along) + more * y.weight[n])
            both = gain * (y.weight1[n] * miss + (y.weight2[n] + c3) * along) + along - across * along
            both = both + more * y.weight1[n]
            for row in range(n + 1, n + r.cone[n]):
                y.linear[row] = -(y.unit[row] * both + across * y.miss[row])


@njit
def _assemble(m: Any, w: Any, r: Any, y: Any, k: Any) -> None:
    """y.matrix = M̂ + Jᵀ ρ B / (1 - B + κ B) S J of island k, y.transpose its transpose; lower triangles."""
    set_inertia(m, w, y, k, y.matrix)
    set_inertia(m, w, y, k, y.transpose)
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        if highest(y.weight[n]) <= 0.0:
            for row in range(n + 1, n + r.cone[n]):
                y.pull[row] = y.pull[row] - y.pull[row]  # nothing of an earlier step is left
            continue
        if r.cone[n] > 1:
            _add_cone(r, y, n)
        else:
            set_lines(r, y, n, False)
            weigh_lines(r, y, n, y.weight[n] * y.inverse[n], y.weight[n], y.weight[n], y.weight[n])
            add_product(r, y, n, y.matrix)
            add_product(r, y, n, y.transpose)


@njit
def _add_cone(r: Any, y: Any, n: Any) -> None:
    d0, d1, d2, d3 = _stiffness(r, y, n)
    slip = d0 - d0
    for row in range(n + 1, n + r.cone[n]):
        y.pull[row] = _yielding(r, y, row, r.impulse[row], d0 - d0)  # of the shift
        slip = slip + y.pull[row] * y.pull[row]
    slip = _on_edge(y, n) * r.slope[n] * inverse_or_zero(sqrt(slip))
    for row in range(n + 1, n + r.cone[n]):
        y.pull[row] = slip * y.pull[row]
    set_lines(r, y, n, True)
    weigh_lines(r, y, n, d0, d1, d2, d3)
    add_product(r, y, n, y.matrix)
    set_lines(r, y, n, False)
    weigh_lines(r, y, n, d0, d1, d2, d3)
    pull_lines(r, y, n)
    add_product(r, y, n, y.transpose)


@njit
def _direction(m: Any, w: Any, r: Any, force: Any, y: Any, k: Any) -> None:
    """y.direction = dx, y.along = J dx, y.linear = dλ."""
    _answer(r, y, k)
    times_inertia(m.independent_parent, m.independent_run, w.factor, y, k, y.change, y.product)
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.direction[a] = force[a] - y.product[a]
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        add_transposed(r, y.listed[q], 1.0, r.impulse, y.direction)
        add_transposed(r, y.listed[q], 1.0, y.linear, y.direction)
    solve_blocks(y, k, y.matrix, y.transpose)
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        times(r, n, y.direction, y.along)
        if r.cone[n] > 1:
            _cone_change(r, y, n)
        else:
            y.linear[n] = y.linear[n] - y.weight[n] * y.inverse[n] * y.along[n]


@njit
def _cone_change(r: Any, y: Any, n: Any) -> None:
    """What dx does to the impulses of the cone that begins with row n."""
    d0, d1, d2, d3 = _stiffness(r, y, n)
    zero = d0 - d0
    normal = y.along[n]
    along = zero
    for row in range(n + 1, n + r.cone[n]):
        normal = normal + y.pull[row] * y.along[row]
        along = along + y.unit[row] * y.along[row]
    y.linear[n] = y.linear[n] - (d0 * normal + d1 * along)
    for row in range(n + 1, n + r.cone[n]):
        y.linear[row] = y.linear[row] - (y.unit[row] * (d1 * normal + d2 * along) + d3 * y.along[row])


@njit
def _step(r: Any, y: Any, k: Any, bar: Any, size: Any, near: Any) -> Any:
    """Take the step where the residual is then below the bar, else half of it; the residual.

    As large as it was it stays where a row jumps from one bound to the other, to jump back: half of that step too.
    """
    zero = bar - bar
    then = _residual(r, y, k, zero + 1.0)
    t = where_greater(then, bar, zero + 0.5, zero + 1.0)
    t = where_greater(absolute(then - size), _SAME * size, t, zero + 0.5)
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            y.change[a] = y.change[a] + t * y.direction[a]
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            y.velocity[row] = y.velocity[row] + t * y.along[row]
            r.impulse[row] = r.impulse[row] + t * y.linear[row]
            y.along[row] = zero
            y.linear[row] = zero
    if near:
        _recentre(r, y, k, where_greater(_NO_BETTER * size, then, zero + 1.0, zero))
    return _residual(r, y, k, zero)
