"""Newton on Coulomb's law itself, for contacts that the convex problems of newton.py do not bring together.

The unknowns are x and λ, with M̂ x = f + Jᵀλ, and the rows' equations are λ = P(λ - ρ û), P the projection on
bounds or cone and û the rows' velocity with De Saxcé's shift and the proximal term (Alart and Curnier 1991, with the
shift's derivative in the matrix). That matrix is not symmetric, and there is no function that falls: steps are taken as
long as the residual shrinks (semismooth Newton with backtracking). ε starts large and falls from round to round; a
step that hardly moves makes it larger again.

Tried on 100 throws of one to three bodies with three or four contacts each, friction 0.1 to 1 mixed
(tests/test_newton.py), solved to 1e-9: within 100 Newton steps the convex problems of newton.py with the shift iterated
18, by secants 6; with an outer Newton method on the shifts 98, 128 steps in the mean; this one 100, 13 steps, at most
40. Contacts that stick, or slide one by one, are settled by those in one to three, which is why they come first.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import absolute, highest, sqrt, where_greater
from artsim.sim.solvers.cone import cone_projection, inverse_or_zero, largest, least

_STEPS = 60
_HALVINGS = 8
_STUCK = 0.01  # a shorter step than this: the problem is made easier
_ABSURD = 1e10  # rad/s or m/s: only rows that contradict each other pull so; a stiff drive against a contact 1e6
_FIRST = 1e4  # ε at the start, relative to newton's; a tenth in every further round


@njit
def coulomb(m: Any, w: Any, r: Any, u: Any, y: Any, tolerance: Any) -> Any:
    """Go on from newton's x and λ; what is then left of the rows [rad/s or m/s], and the number of steps.

    y.gradient holds M̂ x - f - Jᵀλ.
    """
    zero = y.change[0] - y.change[0]
    one = zero + 1.0
    apart = one  # what is left of the equation of motion, relative to the start
    left = zero + 1e300
    _scale(r, y, zero + _FIRST)
    _recentre(r, y, one)
    size = _residual(r, y, zero)
    steps = 0
    while steps < _STEPS:
        solved = where_greater(apart, zero, zero, where_greater(size, tolerance, zero, one))
        if highest(solved) > 0.0:
            left = where_greater(solved, zero, _recentre(r, y, solved), left)
            left = where_greater(_pull(r, y), zero + _ABSURD, zero + 1e300, left)
            if highest(left - tolerance) <= 0.0:
                break
            _scale(r, y, where_greater(solved, zero, where_greater(left, tolerance, 0.1 * one, one), one))
            size = _residual(r, y, zero)
        steps += 1
        _assemble(m, w, r, y)
        factorise_general(y.matrix, y.pivot, y.parent)
        _direction(r, y)
        t = _walk(r, y, size)
        apart = (1.0 - t) * apart
        stuck = where_greater(zero + _STUCK, t, one, zero)
        if highest(stuck) > 0.0:
            _scale(r, y, 1.0 + 9.0 * stuck)
            _recentre(r, y, stuck)
        size = _residual(r, y, zero)
    return left, steps


# ------------------------------------------------------------------ residual and derivatives


@njit
def _residual(r: Any, y: Any, t: Any) -> Any:
    """y.miss = λ - P(λ - ρ û) with t of the step taken, P's derivative in y.weight to weight3; |miss / ρ|."""
    square = y.change[0] - y.change[0]
    for n in range(r.number[0]):
        if r.cone[n] == 0:
            zero = square - square
            z = r.impulse[n] + t * y.linear[n]
            p = z - y.rho[n] * _yielding(r, y, n, z, t)
            y.miss[n] = z - least(largest(p, r.lower[n]), r.upper[n])
            y.weight[n] = where_greater(p, r.lower[n], where_greater(r.upper[n], p, zero + 1.0, zero), zero)
            miss = y.miss[n] * inverse_or_zero(y.rho[n])
            square = square + miss * miss
        elif r.cone[n] > 1:
            square = square + _cone_residual(r, y, n, t)
    return sqrt(square)


@inlined
def _yielding(r: Any, y: Any, n: Any, z: Any, t: Any) -> Any:
    """Velocity of row n with what gives way at the impulse z."""
    return y.velocity[n] + t * y.along[n] + r.cfm[n] * z + y.eps[n] * (z - y.centre[n])


@njit
def _cone_residual(r: Any, y: Any, n: Any, t: Any) -> Any:
    """_residual's part of the cone that begins with row n; y.unit is the direction of its tangential impulse."""
    last = n + r.cone[n]
    zero = y.rho[n] - y.rho[n]
    square = zero
    slip = zero
    for row in range(n + 1, last):
        v = y.velocity[row] + t * y.along[row]
        slip = slip + v * v
        z = r.impulse[row] + t * y.linear[row]
        p = z - y.rho[n] * _yielding(r, y, row, z, t)
        y.unit[row] = p
        y.miss[row] = z
        square = square + p * p
    slip = sqrt(slip)
    z = r.impulse[n] + t * y.linear[n]
    p = z - y.rho[n] * (_yielding(r, y, n, z, t) + r.slope[n] * slip)
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, along, across = cone_projection(r.slope[n], p, length, per_length)
    y.weight[n] = c0
    y.weight1[n] = c1
    y.weight2[n] = c2
    y.weight3[n] = c3
    y.miss[n] = z - along
    square = y.miss[n] * y.miss[n]
    for row in range(n + 1, last):
        y.unit[row] = y.unit[row] * per_length
        y.miss[row] = y.miss[row] - across * y.unit[row]
        square = square + y.miss[row] * y.miss[row]
    scale = inverse_or_zero(y.rho[n])
    return square * scale * scale


@njit
def _scale(r: Any, y: Any, factor: Any) -> None:
    """Every ε, and what follows from it."""
    for n in range(r.number[0]):
        y.eps[n] = factor * y.eps[n]
        y.inverse[n] = inverse_or_zero(r.cfm[n] + y.eps[n])


@njit
def _pull(r: Any, y: Any) -> Any:
    """The largest velocity that an impulse would give its row alone, about [rad/s or m/s]."""
    most = y.change[0] - y.change[0]
    for n in range(r.number[0]):
        most = largest(most, absolute(r.impulse[n]) * inverse_or_zero(y.rho[n]))
    return most


@njit
def _recentre(r: Any, y: Any, chosen: Any) -> Any:
    """λ_k becomes λ in the chosen lanes; by how much the rows move for that [rad/s or m/s]."""
    left = y.change[0] - y.change[0]
    for n in range(r.number[0]):
        off = r.impulse[n] - y.centre[n]
        left = largest(left, y.eps[n] * absolute(off))
        y.centre[n] = y.centre[n] + chosen * off
        y.along[n] = off - off
        y.linear[n] = off - off
    return left


# ------------------------------------------------------------------ the step

# With B the derivative of P and κ = ρ (cfm + ε) a row's equation is, to first order,
#     (1 - B + κ B) dλ = -miss - ρ B S J dx,   S = 1 + μ n v̂ᵀ of the shift.
# B is [c0, c1 eᵀ; c1 e, c2 e eᵀ + c3 1]: 1 along the cone's edge, c3 across e, 0 else; its functions look alike.


@njit
def _stiffness(y: Any, n: Any) -> Any:
    """The four numbers of ρ B / (1 - B + κ B)."""
    c3 = y.weight3[n]
    kappa = y.rho[n] * inverse_or_zero(y.inverse[n])
    across = y.rho[n] * c3 / (1.0 - c3 + kappa * c3)
    return (
        y.weight[n] * y.inverse[n],
        y.weight1[n] * y.inverse[n],
        (y.weight2[n] + c3) * y.inverse[n] - across,
        across,
    )


@njit
def _answer(r: Any, y: Any) -> None:
    """y.linear = -miss / (1 - B + κ B): what λ does while x stands still."""
    for n in range(r.number[0]):
        kappa = y.rho[n] * inverse_or_zero(y.inverse[n])
        if r.cone[n] == 0:
            y.linear[n] = -y.miss[n] * (1.0 + y.weight[n] * (inverse_or_zero(kappa) - 1.0))
        elif r.cone[n] > 1:
            gain = inverse_or_zero(kappa) - 1.0
            c3 = y.weight3[n]
            across = 1.0 / (1.0 - c3 + kappa * c3)
            along = kappa - kappa
            for row in range(n + 1, n + r.cone[n]):
                along = along + y.unit[row] * y.miss[row]
            y.linear[n] = -(y.miss[n] + gain * (y.weight[n] * y.miss[n] + y.weight1[n] * along))
            both = gain * (y.weight1[n] * y.miss[n] + (y.weight2[n] + c3) * along) + along - across * along
            for row in range(n + 1, n + r.cone[n]):
                y.linear[row] = -(y.unit[row] * both + across * y.miss[row])


@njit
def _assemble(m: Any, w: Any, r: Any, y: Any) -> None:
    """y.matrix = M̂ + Jᵀ ρ B / (1 - B + κ B) S J, both triangles over y.parent's tree."""
    H = y.matrix
    for a in range(H.shape[0]):
        j = a
        while j >= 0:
            H[a, j] = H[a, j] - H[a, j]
            H[j, a] = H[a, j]
            j = y.parent[j]
        j = a
        while j >= 0:
            H[a, j] = w.factor[a, j]
            H[j, a] = w.factor[a, j]
            j = m.independent_parent[j]
    for n in range(r.number[0]):
        if r.cone[n] == 0:
            if highest(y.weight[n]) > 0.0:
                _add(r, H, n, n, y.weight[n] * y.inverse[n])
        elif r.cone[n] > 1 and highest(y.weight[n]) > 0.0:
            _add_cone(r, y, H, n)


@njit
def _add(r: Any, H: Any, n: Any, o: Any, weight: Any) -> None:
    """H += weight J_nᵀ J_o."""
    for e in range(r.start[n], r.stop[n]):
        x = weight * r.value[e]
        for d in range(r.start[o], r.stop[o]):
            H[r.column[e], r.column[d]] = H[r.column[e], r.column[d]] + x * r.value[d]


@njit
def _add_cone(r: Any, y: Any, H: Any, n: Any) -> None:
    last = n + r.cone[n]
    d0, d1, d2, d3 = _stiffness(y, n)
    slip = d0 - d0
    for row in range(n + 1, last):
        slip = slip + y.velocity[row] * y.velocity[row]
    slip = r.slope[n] * inverse_or_zero(sqrt(slip))
    _add(r, H, n, n, d0)
    for row in range(n + 1, last):
        pull = slip * y.velocity[row]  # of the shift
        _add(r, H, n, row, d1 * y.unit[row] + d0 * pull)
        _add(r, H, row, n, d1 * y.unit[row])
        _add(r, H, row, row, d3)
        for other in range(n + 1, last):
            pull = slip * y.velocity[other]
            _add(r, H, row, other, d2 * y.unit[row] * y.unit[other] + d1 * y.unit[row] * pull)


@njit
def factorise_general(H: Any, inverse_pivot: Any, parent: Any) -> None:
    """H = U L in place, both of H's pattern: the tree's, both triangles; U with the unit diagonal. O(n d²)."""
    for k in range(H.shape[0] - 1, -1, -1):
        inverse = 1.0 / H[k, k]
        inverse_pivot[k] = inverse
        i = parent[k]
        while i >= 0:
            a = H[i, k] * inverse
            H[i, k] = a
            j = parent[k]
            while j >= 0:
                H[i, j] = H[i, j] - a * H[k, j]
                j = parent[j]
            i = parent[i]


@njit
def solve_general(H: Any, inverse_pivot: Any, parent: Any, x: Any) -> None:
    """x = H⁻¹ x for the factorised H. O(n d)."""
    for k in range(x.shape[0] - 1, -1, -1):
        i = parent[k]
        while i >= 0:
            x[i] = x[i] - H[i, k] * x[k]
            i = parent[i]
    for k in range(x.shape[0]):
        value = x[k]
        j = parent[k]
        while j >= 0:
            value = value - H[k, j] * x[j]
            j = parent[j]
        x[k] = value * inverse_pivot[k]


@njit
def _direction(r: Any, y: Any) -> None:
    """y.direction = dx, y.along = J dx, y.linear = dλ."""
    _answer(r, y)
    for a in range(y.direction.shape[0]):
        y.direction[a] = -y.gradient[a]
    for n in range(r.number[0]):
        for e in range(r.start[n], r.stop[n]):
            y.direction[r.column[e]] = y.direction[r.column[e]] + r.value[e] * y.linear[n]
    solve_general(y.matrix, y.pivot, y.parent, y.direction)
    for n in range(r.number[0]):
        value = y.rho[n] - y.rho[n]
        for e in range(r.start[n], r.stop[n]):
            value = value + r.value[e] * y.direction[r.column[e]]
        y.along[n] = value
    for n in range(r.number[0]):
        if r.cone[n] == 0:
            y.linear[n] = y.linear[n] - y.weight[n] * y.inverse[n] * y.along[n]
        elif r.cone[n] > 1:
            _cone_change(r, y, n)


@njit
def _cone_change(r: Any, y: Any, n: Any) -> None:
    """What dx does to the impulses of the cone that begins with row n."""
    d0, d1, d2, d3 = _stiffness(y, n)
    zero = d0 - d0
    slip = zero
    pull = zero
    along = zero
    for row in range(n + 1, n + r.cone[n]):
        slip = slip + y.velocity[row] * y.velocity[row]
        pull = pull + y.velocity[row] * y.along[row]
        along = along + y.unit[row] * y.along[row]
    normal = y.along[n] + r.slope[n] * pull * inverse_or_zero(sqrt(slip))
    y.linear[n] = y.linear[n] - (d0 * normal + d1 * along)
    for row in range(n + 1, n + r.cone[n]):
        y.linear[row] = y.linear[row] - (y.unit[row] * (d1 * normal + d2 * along) + d3 * y.along[row])


@njit
def _walk(r: Any, y: Any, size: Any) -> Any:
    """Take the step, or the largest half of a half of it that shrinks the residual; how much of it that is."""
    zero = size - size
    t = zero + 1.0
    found = _residual(r, y, t)
    for _ in range(_HALVINGS):
        worse = where_greater(found, (1.0 - 1e-4 * t) * size, zero + 1.0, zero)
        if highest(worse) <= 0.0:
            break
        t = where_greater(worse, zero, 0.5 * t, t)
        found = _residual(r, y, t)
    for a in range(y.change.shape[0]):
        y.change[a] = y.change[a] + t * y.direction[a]
        y.gradient[a] = y.gradient[a] - t * y.gradient[a]
    for n in range(r.number[0]):
        y.velocity[n] = y.velocity[n] + t * y.along[n]
        r.impulse[n] = r.impulse[n] + t * y.linear[n]
        y.along[n] = zero
        y.linear[n] = zero
    return t
