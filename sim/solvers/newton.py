"""The default: a proximal Newton method on velocities, exact for hard and soft rows together, friction cones too.

A step asks for the change x of the velocities u with M̂ x = f + Jᵀλ and, for every row, its velocity J (u + x) + bias
+ cfm λ complementary to λ in its bounds or its cone. Outer iterations are the method of multipliers (proximal point,
Rockafellar 1976): a row may differ by ε (λ - λ_k) and λ_k becomes λ. That converges fast for ε far below J M̂⁻¹ Jᵀ, for
rows that say the same thing twice too. With λ_k fixed λ is a function of x, the projection on the bounds of
(ε λ_k - velocity) / (cfm + ε), and the step is the minimum of a convex, piecewise quadratic function of x: Newton with
an exact line search (so for soft rows alone: Todorov 2014, Castro 2022). Its matrix is M̂ + Jᵀ D J, which has the tree's
sparsity but for what a row ties across branches; D is 1 / (cfm + ε) where a row is within its bounds, else 0.

Coulomb's friction is a cone |λ_t| ≤ μ λ_n with De Saxcé's shift: the normal velocity carries μ |v_t|, which the outer
iterations hold fixed, so that the inner problem stays convex (Acary, Cadoux, Lemaréchal, Malick 2011). Contacts that
stick or slide alone settle so in a step or two; several that slide together take coulomb.py.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.dynamics import factorise, multiply, solve
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import like
from artsim.sim.lanes import absolute, highest, sqrt, where_greater
from artsim.sim.solvers.cone import cone_projection, inverse_or_zero, largest, least
from artsim.sim.solvers.coulomb import coulomb
from artsim.sim.solvers.direct import factorise_graph, solve_graph
from artsim.sim.solvers.full_coordinates import mass_times, note_couplings, note_rows
from artsim.sim.solvers.propagation import factorise_tree, solve_tree

PROXIMAL = 1e-6  # ε relative to a row's mobility
_SOFT = 1e-7  # a row that gives way by more of its mobility needs no ε
_TOLERANCE = 1e-13  # of rows' velocities, relative to the largest velocity
_STEPS = 100  # Newton steps at most; two to six are the rule
_CONTACT_STEPS = 8  # at first, where there are contacts
_FIRST_STEPS = 40  # and where there are none, before coulomb.py has its turn
_STALLED = 8  # rounds that hardly help
_SEARCH = 30  # of the line search


@njit
def newton(m: Any, w: Any, i: Any, r: Any, force: Any, u: Any, y: Any, p: Any, d: Any) -> None:
    """u (nu,) becomes u + x, r.impulse (rows,) becomes λ; what it holds on entry is where the search starts.

    Where `p` or `d` is not None, propagation or direct do the linear algebra with what it holds instead (w.factor is
    then not looked at, and contacts get convex steps alone); which of them is decided when this is compiled.

    `force` (nu,): the impulse of all else. w.factor holds M̂, the lower triangle over m's elimination tree, not
    factorised. r.report: Newton steps added up, what is left of the rows [rad/s or m/s].
    O(n d² + rows) per Newton step, d being the number of a dof's ancestors, those that rows add included.
    """
    _prepare(m, w, r, u, y, p, d)
    if p is None and d is None:
        _pattern(m, r, y)
    left = _settle(m, w, r, force, u, y, p, d, False)
    _finish(r, u, y, left)


@njit
def newton_again(m: Any, w: Any, r: Any, force: Any, u: Any, y: Any, p: Any, d: Any) -> None:
    """Go on from where `newton` ended, with r.bias changed since; u holds its velocities."""
    for a in range(u.shape[0]):
        u[a] = u[a] - y.change[a]
    cones = _has_cones(r)
    if cones:
        _prepare(m, w, r, u, y, p, d)
    else:
        for n in range(r.number[0]):
            value = r.bias[n]
            for e in range(r.start[n], r.stop[n]):
                value = value + r.value[e] * (u[r.column[e]] + y.change[r.column[e]])
            y.velocity[n] = value
    left = _settle(m, w, r, force, u, y, p, d, not cones)
    _finish(r, u, y, left)


@inlined
def _finish(r: Any, u: Any, y: Any, left: Any) -> None:
    for a in range(u.shape[0]):
        u[a] = u[a] + y.change[a]
    r.report[1] = highest(left)


@njit
def _settle(m: Any, w: Any, r: Any, force: Any, u: Any, y: Any, p: Any, d: Any, going: Any) -> Any:
    """x and λ, and what is left of the rows. `going`: y holds what an earlier call left. coulomb.py needs M̂."""
    if p is None and d is None:
        return _settle_all(m, w, r, force, u, y, going)
    for n in range(r.number[0]):
        y.first[n] = r.impulse[n]
    left, _ = _iterate(m, w, r, force, u, y, p, d, going, _STEPS, True)
    if _has_cones(r) and highest(left - _TOLERANCE * _size(u, y)) > 0.0:
        left = _compromise(m, w, r, force, u, y, p, d)
    return left


@njit
def _compromise(m: Any, w: Any, r: Any, force: Any, u: Any, y: Any, p: Any, d: Any) -> Any:
    """The last resort: the convex problem with the shifts of the step's start, which always has its minimum."""
    _restart(m, w, r, force, u, y, p, d)
    left, _ = _iterate(m, w, r, force, u, y, p, d, False, _STEPS, False)
    for n in range(r.number[0]):
        if r.cone[n] > 1:
            left = largest(left, absolute(_wanted_shift(r, y, n) - y.shift[n]))
    return left


@njit
def _settle_all(m: Any, w: Any, r: Any, force: Any, u: Any, y: Any, going: Any) -> Any:
    """Few convex steps settle contacts that stick, or slide each by itself; coulomb.py what they leave."""
    for n in range(r.number[0]):
        y.first[n] = r.impulse[n]
    cones = _has_cones(r)
    most = _CONTACT_STEPS if cones else _FIRST_STEPS
    left, ended = _iterate(m, w, r, force, u, y, None, None, going, most, True)
    tolerance = _TOLERANCE * _size(u, y)
    if (cones or not ended) and highest(left - tolerance) > 0.0:
        _restart(m, w, r, force, u, y, None, None)
        left, steps = coulomb(m, w, r, u, y, tolerance)
        r.report[0] += steps
        if highest(left - tolerance) > 0.0:
            left = _compromise(m, w, r, force, u, y, None, None)
    return left


@njit
def _restart(m: Any, w: Any, r: Any, force: Any, u: Any, y: Any, p: Any, d: Any) -> None:
    """x = 0 and λ as they came in."""
    for n in range(r.number[0]):
        r.impulse[n] = y.first[n]
    _prepare(m, w, r, u, y, p, d)
    _gradient(r, force, y)


@njit
def _iterate(
    m: Any, w: Any, r: Any, force: Any, u: Any, y: Any, p: Any, d: Any, factorised: Any, most: Any, shifts: Any
) -> Any:
    """Newton steps until the rows are met; what is left of them, and whether more steps would not help.

    `factorised`: H is, with y.weight_used.
    """
    _project(r, y)
    left = y.change[0] - y.change[0]
    before = left + 1e300
    ended = False
    stalled = 0
    steps = 0
    while steps < most:
        if not factorised or _differs(r, y):
            _factorise(m, w, r, y, p, d)
            factorised = True
        steps += 1
        _gradient(r, force, y)
        for a in range(u.shape[0]):
            y.direction[a] = -y.gradient[a]
        _solve(m, w, y, p, d)
        _along(m, w, r, y, p, d)
        _linearise(r, y)
        tolerance = _TOLERANCE * _size(u, y)
        bent = _take(r, force, y, tolerance)
        if highest(bent - tolerance) <= 0.0:
            left = _recentre(r, y, shifts)
            ended = highest(left - tolerance) <= 0.0
            if ended:
                break
            # rows that nearly say the same thing agree slowly, rows that contradict each other never
            if highest(left - 0.3 * before) > 0.0:
                stalled += 1
                if stalled <= 2:
                    _tighten(r, y)
            before = left
            ended = stalled == _STALLED
            if ended:
                break  # before _project: the impulses stay those that made the velocities
            _project(r, y)
    r.report[0] += steps
    if not ended:
        for n in range(r.number[0]):
            left = largest(left, y.eps[n] * absolute(r.impulse[n] - y.centre[n]))
        for a in range(u.shape[0]):
            left = largest(left, absolute(y.direction[a]))
    return left, ended


@njit
def _has_cones(r: Any) -> bool:
    for n in range(r.number[0]):
        if r.cone[n] > 1:
            return True
    return False


@njit
def _tighten(r: Any, y: Any) -> None:
    """A hundredth of every ε."""
    for n in range(r.number[0]):
        y.eps[n] = 0.01 * y.eps[n]
        y.inverse[n] = inverse_or_zero(r.cfm[n] + y.eps[n])


@inlined
def _size(u: Any, y: Any) -> Any:
    """What rounding is measured by: 1, or the largest velocity at the step's start or end."""
    size = y.change[0] - y.change[0] + 1.0
    for a in range(u.shape[0]):
        size = largest(size, largest(absolute(u[a]), absolute(u[a] + y.change[a])))
    return size


@njit
def _prepare(m: Any, w: Any, r: Any, u: Any, y: Any, p: Any, d: Any) -> None:
    """What does not change in the iterations: ε and 1 / (cfm + ε) of the rows, their velocities at x = 0; λ_k."""
    for a in range(u.shape[0]):
        y.change[a] = u[a] - u[a]
        y.product[a] = u[a] - u[a]
    n = 0
    while n < r.number[0]:
        count = max(r.cone[n], 1)
        mobility = like(0.0, w)
        for row in range(n, n + count):
            mobility = largest(mobility, _mobility(w, r, row, p, d))
        eps = where_greater(r.cfm[n], _SOFT * mobility, like(0.0, w), PROXIMAL * mobility)
        total = r.cfm[n] + eps
        for row in range(n, n + count):
            y.eps[row] = eps
            y.rho[row] = inverse_or_zero(mobility)
            y.inverse[row] = inverse_or_zero(total)  # 0: moves nothing
            y.centre[row] = r.impulse[row]
            y.velocity[row] = r.bias[row]
            for e in range(r.start[row], r.stop[row]):
                y.velocity[row] = y.velocity[row] + r.value[e] * u[r.column[e]]
        n += count
    _shift(r, y)


@inlined
def _mobility(w: Any, r: Any, n: Any, p: Any, d: Any) -> Any:
    """J diag(M̂)⁻¹ Jᵀ of row n: of the right size, and not above J M̂⁻¹ Jᵀ."""
    value = like(0.0, w)
    for e in range(r.start[n], r.stop[n]):
        value = value + r.value[e] * r.value[e] / _inertia(w, r.column[e], p, d)
    return value


@inlined
def _inertia(w: Any, a: Any, p: Any, d: Any) -> Any:
    """M̂'s diagonal."""
    if p is not None:
        return p.inertia[a]
    if d is not None:
        return d.inertia[a]
    return w.factor[a, a]


@njit
def _pattern(m: Any, r: Any, y: Any) -> None:
    """y.parent, y.run: the elimination tree with the dofs of each row, or of each cone's rows, on one path to the root.

    Filling in happens between ancestors only (Liu 1990), so the deepest dof of a row gets the others above it.
    """
    for a in range(y.parent.shape[0]):
        y.parent[a] = m.independent_parent[a]
    n = 0
    while n < r.number[0]:
        count = max(r.cone[n], 1)
        deepest = -1
        for e in range(r.start[n], r.stop[n]):
            deepest = max(deepest, r.column[e])
        for row in range(n, n + count):
            for e in range(r.start[row], r.stop[row]):
                deepest = max(deepest, r.column[e])
        for row in range(n, n + count):
            for e in range(r.start[row], r.stop[row]):
                _put_above(y.parent, deepest, r.column[e])
        n += count
    for a in range(y.parent.shape[0]):
        y.run[a] = y.run[a - 1] if a > 0 and y.parent[a] == a - 1 else a


@njit
def _put_above(parent: Any, b: Any, a: Any) -> None:
    """Make a an ancestor of b, and keep what was above b above it."""
    while a != b:
        if b < a:
            a, b = b, a
        while parent[b] > a:
            b = parent[b]
        above = parent[b]
        if above == a:
            return
        parent[b] = a
        if above < 0:
            return
        b = a
        a = above


# ------------------------------------------------------------------ rows at the velocities found


@njit
def _shift(r: Any, y: Any) -> None:
    """De Saxcé's shift of each cone at the velocities found."""
    for n in range(r.number[0]):
        if r.cone[n] > 1:
            y.shift[n] = _wanted_shift(r, y, n)
            y.before[n] = y.shift[n]
            y.off[n] = y.shift[n] - y.shift[n]


@inlined
def _wanted_shift(r: Any, y: Any, n: Any) -> Any:
    """μ |v_t| of the cone that begins with row n."""
    square = y.velocity[n] - y.velocity[n]
    for row in range(n + 1, n + r.cone[n]):
        square = square + y.velocity[row] * y.velocity[row]
    return r.slope[n] * sqrt(square)


@njit
def _project(r: Any, y: Any) -> None:
    """r.impulse, and how it gives way: y.weight of box rows, the four numbers and the direction of a cone."""
    for n in range(r.number[0]):
        if r.cone[n] == 0:
            z = _free_impulse(y, n, y.velocity[n])
            r.impulse[n] = least(largest(z, r.lower[n]), r.upper[n])
            zero = z - z
            inside = where_greater(z, r.lower[n], where_greater(r.upper[n], z, y.inverse[n], zero), zero)
            y.weight[n] = inside
        elif r.cone[n] > 1:
            _project_cone(r, y, n)


@inlined
def _free_impulse(y: Any, n: Any, velocity: Any) -> Any:
    """(ε λ_k - velocity) / (cfm + ε): the impulse of row n without bounds."""
    return (y.eps[n] * y.centre[n] - velocity) * y.inverse[n]


@njit
def _project_cone(r: Any, y: Any, n: Any) -> None:
    """The projection P of z on |t| ≤ μ n, and its derivative: [c0, c1 eᵀ; c1 e, c2 e eᵀ + c3 1], e = z_t / |z_t|."""
    mu = r.slope[n]
    normal = _free_impulse(y, n, y.velocity[n] + y.shift[n])
    square = normal - normal
    for row in range(n + 1, n + r.cone[n]):
        z = _free_impulse(y, row, y.velocity[row])
        y.unit[row] = z
        square = square + z * z
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, along, across = cone_projection(mu, normal, length, per_length)
    y.weight[n] = c0 * y.inverse[n]
    y.weight1[n] = c1 * y.inverse[n]
    y.weight2[n] = c2 * y.inverse[n]
    y.weight3[n] = c3 * y.inverse[n]
    r.impulse[n] = along
    for row in range(n + 1, n + r.cone[n]):
        y.unit[row] = y.unit[row] * per_length
        r.impulse[row] = across * y.unit[row]


# ------------------------------------------------------------------ the Newton step


@njit
def _differs(r: Any, y: Any) -> bool:
    """Whether any row gives way otherwise than in the matrix that stands factorised."""
    for n in range(r.number[0]):
        if r.cone[n] >= 0 and highest(absolute(y.weight[n] - y.weight_used[n])) > 0.0:
            return True
        if r.cone[n] > 1 and highest(y.weight1[n]) > 0.0:
            return True  # a cone's edge: its matrix turns with every step
    return False


@njit
def _factorise(m: Any, w: Any, r: Any, y: Any, p: Any, d: Any) -> None:
    """H = M̂ + Jᵀ D J with the weights that hold now, ready for `_solve`."""
    if p is not None:
        note_couplings(m, w, p)
        note_rows(m, r, y, p)
        factorise_tree(m, w, p)
    elif d is not None:
        note_couplings(m, w, d)
        note_rows(m, r, y, d)
        factorise_graph(m, w, d)
    else:
        _assemble(m, w, r, y)
        factorise(y.matrix, y.pivot, y.parent, y.run)


@njit
def _solve(m: Any, w: Any, y: Any, p: Any, d: Any) -> None:
    """y.direction = H⁻¹ y.direction."""
    if p is not None:
        solve_tree(m, w, p, y.direction)
    elif d is not None:
        solve_graph(m, w, d, y.direction)
    else:
        solve(y.matrix, y.pivot, y.parent, y.run, y.direction)


@njit
def _assemble(m: Any, w: Any, r: Any, y: Any) -> None:
    """y.matrix = M̂ + Jᵀ D J, lower triangle over y.parent's tree."""
    H = y.matrix
    for a in range(H.shape[0]):
        j = a
        while j >= 0:
            start = y.run[j]
            for c in range(start, j + 1):
                H[a, c] = H[a, c] - H[a, c]
            j = y.parent[start]
        j = a
        while j >= 0:
            start = m.independent_run[j]
            for c in range(start, j + 1):
                H[a, c] = w.factor[a, c]
            j = m.independent_parent[start]
    for n in range(r.number[0]):
        if r.cone[n] == 0:
            y.weight_used[n] = y.weight[n]
            if highest(y.weight[n]) > 0.0:
                _add_product(r, H, n, n, y.weight[n])
        elif r.cone[n] > 1:
            y.weight_used[n] = y.weight[n]
            if highest(y.weight[n]) > 0.0:
                _add_cone(r, y, H, n)


@njit
def _add_product(r: Any, H: Any, n: Any, o: Any, weight: Any) -> None:
    """H += weight J_nᵀ J_o; for n ≠ o to be called with both orders."""
    for e in range(r.start[n], r.stop[n]):
        a = r.column[e]
        x = weight * r.value[e]
        for d in range(r.start[o], r.stop[o]):
            if r.column[d] <= a:
                H[a, r.column[d]] = H[a, r.column[d]] + x * r.value[d]


@njit
def _add_cone(r: Any, y: Any, H: Any, n: Any) -> None:
    last = n + r.cone[n]
    _add_product(r, H, n, n, y.weight[n])
    edge = highest(y.weight1[n]) > 0.0
    for row in range(n + 1, last):
        _add_product(r, H, row, row, y.weight3[n])
        if edge:
            x = y.weight1[n] * y.unit[row]
            _add_product(r, H, n, row, x)
            _add_product(r, H, row, n, x)
            for other in range(n + 1, last):
                _add_product(r, H, row, other, y.weight2[n] * y.unit[row] * y.unit[other])


@njit
def _gradient(r: Any, force: Any, y: Any) -> None:
    """y.gradient = M̂ x - f - Jᵀλ."""
    for a in range(force.shape[0]):
        y.gradient[a] = y.product[a] - force[a]
    for n in range(r.number[0]):
        for e in range(r.start[n], r.stop[n]):
            y.gradient[r.column[e]] = y.gradient[r.column[e]] - r.value[e] * r.impulse[n]


@njit
def _along(m: Any, w: Any, r: Any, y: Any, p: Any, d: Any) -> None:
    """What the direction does: y.along = J times it, y.through = M̂ times it."""
    if p is not None:
        mass_times(m, w, p, y.direction, y.through)
    elif d is not None:
        mass_times(m, w, d, y.direction, y.through)
    else:
        multiply(w.factor, m.independent_parent, m.independent_run, y.direction, y.through)
    for n in range(r.number[0]):
        value = like(0.0, w)
        for e in range(r.start[n], r.stop[n]):
            value = value + r.value[e] * y.direction[r.column[e]]
        y.along[n] = value


@njit
def _linearise(r: Any, y: Any) -> None:
    """y.linear: λ at the full step, to first order: with it the step's equation of motion holds to rounding."""
    for n in range(r.number[0]):
        if r.cone[n] == 0:
            y.linear[n] = r.impulse[n] - y.weight_used[n] * y.along[n]
        elif r.cone[n] > 1:
            along = y.along[n] - y.along[n]
            for row in range(n + 1, n + r.cone[n]):
                along = along + y.unit[row] * y.along[row]
            y.linear[n] = r.impulse[n] - (y.weight[n] * y.along[n] + y.weight1[n] * along)
            common = y.weight1[n] * y.along[n] + y.weight2[n] * along
            for row in range(n + 1, n + r.cone[n]):
                y.linear[row] = r.impulse[row] - (y.unit[row] * common + y.weight3[n] * y.along[row])


@njit
def _take(r: Any, force: Any, y: Any, tolerance: Any) -> Any:
    """Go along d as far as the function falls; how far from its linearisation the rows then are [rad/s or m/s].

    The function's slope along d rises with the step t, in pieces: the full step if that ends near its root, else the
    root by Newton's steps kept in a bracket. A step of rounding's size is taken as it is.
    """
    zero = y.gradient[0] - y.gradient[0]
    base = zero
    bend = zero
    at_start = zero
    longest = zero
    for a in range(force.shape[0]):
        longest = largest(longest, absolute(y.direction[a]))
        base = base + (y.product[a] - force[a]) * y.direction[a]
        bend = bend + y.through[a] * y.direction[a]
        at_start = at_start + y.gradient[a] * y.direction[a]
    t = zero + 1.0
    value, _ = _slope_at(r, y, t)
    value = base + bend - value
    full = where_greater(absolute(value), 0.1 * absolute(at_start), zero, zero + 1.0)
    full = where_greater(longest, tolerance, full, zero + 1.0)
    if highest(1.0 - full) > 0.0:
        t = _search(r, y, base, bend, full)
    for a in range(force.shape[0]):
        y.change[a] = y.change[a] + t * y.direction[a]
        y.product[a] = y.product[a] + t * y.through[a]
    for n in range(r.number[0]):
        y.velocity[n] = y.velocity[n] + t * y.along[n]
    _project(r, y)
    worst = zero
    for n in range(r.number[0]):
        worst = largest(worst, absolute(r.impulse[n] - y.linear[n]) * inverse_or_zero(y.inverse[n]))
    return where_greater(full, zero, worst, zero + 1e300)


@njit
def _slope_at(r: Any, y: Any, t: Any) -> Any:
    """Σ λ J d at x + t d, and how it falls with t."""
    value = t - t
    fall = t - t
    for n in range(r.number[0]):
        if r.cone[n] == 0:
            slope = y.along[n]
            z = _free_impulse(y, n, y.velocity[n] + t * slope)
            value = value + least(largest(z, r.lower[n]), r.upper[n]) * slope
            inside = where_greater(z, r.lower[n], where_greater(r.upper[n], z, y.inverse[n], t - t), t - t)
            fall = fall + inside * slope * slope
        elif r.cone[n] > 1:
            more, steeper = _cone_slope_at(r, y, n, t)
            value = value + more
            fall = fall + steeper
    return value, fall


@njit
def _cone_slope_at(r: Any, y: Any, n: Any, t: Any) -> Any:
    """_slope_at's part of the cone that begins with row n."""
    zero = t - t
    normal = _free_impulse(y, n, y.velocity[n] + y.shift[n] + t * y.along[n])
    square = zero
    along = zero  # z_t · J_t d
    total = zero
    for row in range(n + 1, n + r.cone[n]):
        z = _free_impulse(y, row, y.velocity[row] + t * y.along[row])
        square = square + z * z
        along = along + z * y.along[row]
        total = total + y.along[row] * y.along[row]
    length = sqrt(square)
    per_length = inverse_or_zero(length)
    c0, c1, c2, c3, lengthwise, across = cone_projection(r.slope[n], normal, length, per_length)
    along = along * per_length
    slope = y.along[n]
    fall = c0 * slope * slope + 2.0 * c1 * slope * along + c2 * along * along + c3 * total
    return lengthwise * slope + across * along, fall * y.inverse[n]


@njit
def _search(r: Any, y: Any, base: Any, bend: Any, full: Any) -> Any:
    """The t at which the slope along d is zero; 1 where `full` is."""
    zero = base - base
    low = zero
    high = zero + 1e300
    t = zero + 1.0
    for _ in range(_SEARCH):
        value, fall = _slope_at(r, y, t)
        value = base + t * bend - value
        steep = bend + fall
        low = where_greater(value, zero, low, t)
        high = where_greater(value, zero, t, high)
        following = t - value / steep
        middle = where_greater(zero + 1e299, high, 0.5 * (low + high), 2.0 * t)
        following = where_greater(following, low, where_greater(high, following, following, middle), middle)
        following = where_greater(full, zero, zero + 1.0, following)
        moved = highest(absolute(following - t) - 1e-12 * t)
        t = following
        if moved <= 0.0:
            break
    return t


@njit
def _recentre(r: Any, y: Any, shifts: Any) -> Any:
    """λ_k becomes the λ found, shifts follow the velocities if they are to; how far the rows move [rad/s or m/s]."""
    left = y.change[0] - y.change[0]
    for n in range(r.number[0]):
        r.impulse[n] = y.linear[n]
        left = largest(left, y.eps[n] * absolute(y.linear[n] - y.centre[n]))
        y.centre[n] = y.linear[n]
    for n in range(r.number[0]):
        if shifts and r.cone[n] > 1:
            left = largest(left, _follow(r, y, n))
    return left


@inlined
def _follow(r: Any, y: Any, n: Any) -> Any:
    """Move the shift of the cone that begins with row n to where the velocities want it; how far that is.

    From the second time on by the secant through the last two, which is exact for a contact that slides alone.
    """
    wanted = _wanted_shift(r, y, n)
    off = wanted - y.shift[n]
    moved = y.shift[n] - y.before[n]
    rate = (off - y.off[n]) * moved * inverse_or_zero(moved * moved)  # how off answers; -1: the wish stays
    rate = where_greater(moved * moved, off - off, least(rate, off - off - 0.25), off - off - 1.0)
    y.before[n] = y.shift[n]
    y.off[n] = off
    y.shift[n] = largest(y.shift[n] - off / rate, off - off)
    return absolute(off)
