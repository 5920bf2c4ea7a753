"""Accelerated nonsmooth Gauss-Seidel for crowds: hundreds to thousands of contacts whose matrix would take too long.

An iteration visits all units twice (Jean 1999). A contact's three rows get the impulse that satisfies Coulomb's law
exactly at the current velocities of its two bodies (Bonnefon and Daviet 2011 list the cases); other units take a
projection step. What the two sweeps move is then mixed with that of the iterations before so that the least of it is
left (Anderson 1965; Walker and Ni 2011), and projected onto the cones. Where mixing does not help, sweeps go on without
for a while. J M̂⁻¹ Jᵀ is never formed: an iteration costs O(contacts), however they are connected.

Sweeps alone reduce the residual of softness ε, relative to a contact's mobility, by a share of about ε; mixed, by its
root. Measured on 216 to 1000 spheres and boxes poured into a box, friction 0.5, warm: 50 iterations to 1e-7 m/s at ε =
0.01 (sweeps alone: 400), 20 at 0.1, 180 at 0.001; cold 100 to 260. As hard as they are, such heaps take more than
10,000 sweeps: the impulses that wedge them build up slowly. Conjugate gradients on the sweeps (Silcowitz, Niebe,
Erleben 2010), ADMM, Newton's method on each convex problem of De Saxcé's shift, and on the law itself, all stall at
1e-4 m/s there. Sweeps forwards and backwards took a fifth more time, and did not converge on a castle of sand.

Impulses are in N s or N m s, velocities of rows in rad/s or m/s; a unit is identified by its first row, n.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.run_data.scratch import MIXED, NEWTON_STEPS
from artsim.sim.solvers.attempts import begin, restart
from artsim.sim.solvers.cone import cone_projection
from artsim.sim.solvers.impulses import rows_times
from artsim.sim.solvers.nsgs import add_impulses, end_sweeps, find_steps, note_reach, push, rub, start_sweeps
from artsim.sim.solvers.tolerance import UNTRIED

SOLVED_CROWD = 0.8 * UNSOLVED  # [rad/s or m/s] residual at which iterations end
_HARD_ITERATIONS = 300  # in all rounds with contacts as hard as they are
_PROXIMAL = 0.01  # ε of the first of these, relative to a row's mobility
_HARDER = 0.1  # factor on ε in every further one, which takes
_LONGER = 3.0  # times the iterations of the one before
_WINDOW = 20  # iterations in which a mixture must
_PROGRESS = 0.5  # leave at most this share of the motion: else as many do without, then twice as many
_RISING = 2.0  # times the last one: what a pair of sweeps moves after a mixture that is taken back
_RANK = 1e-12  # relative to the trace: added to the diagonal of the mixture's normal equations
_ROOTS = 60  # steps at most to a contact's root
_ROOT = 1e-13  # relative accuracy of that root


@njit
def solve_hard_crowd(model: Any, data: Any, rows: Any, step: Any, solver: Any, k: Any) -> Any:
    """Solve Coulomb's law of island k, a crowd, with contacts as hard as they are, by the proximal point method: rounds
    with ever smaller ε, each about the impulses of the one before. Returns the residual [rad/s or m/s], and whether
    that solves it.

    Turn: first; every 64 steps where contacts are regularised. Costs: 300 iterations. Gives up: after these, or where
    the next round would take more. Needed by test_crowd.py::test_what_newton_solves_comes_out_the_same.
    """
    work = solver.newton
    restart(model, data, rows, step, solver, k)
    share, steps, left = _PROXIMAL, 0, UNTRIED
    while True:
        _set_proximal(rows, work, k, share)
        before = work.sizes[NEWTON_STEPS]
        left = sweep_crowd(model, data, rows, work, k, SOLVED_CROWD, _HARD_ITERATIONS - steps)
        taken = work.sizes[NEWTON_STEPS] - before
        if left > SOLVED_CROWD:
            return left, False
        left = max(_give(rows, work, k), left)
        if left <= SOLVED_CROWD:
            return left, True
        steps += taken
        if steps + int(_LONGER * taken) >= _HARD_ITERATIONS:
            return left, False
        share = _HARDER * share
        begin(model, data, rows, step, solver, k)


@njit
def has_hard_contacts(rows: Any, work: Any, k: Any) -> bool:
    """Whether any contact of island k has no compliance of its own."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.kind[n] == CONTACT_ROW and work.given[n] <= 0.0:
            return True
    return False


@njit
def _set_proximal(rows: Any, work: Any, k: Any, share: Any) -> None:
    """Set ε of the hard rows of island k, which have one, to a share of their mobility."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if work.eps[n] > 0.0:
            for row in range(n, n + max(rows.cone[n], 1)):
                work.eps[row] = share * inverse_or_zero(work.rho[n])


@njit
def _give(rows: Any, work: Any, k: Any) -> Any:
    """How far rows of island k move for λ not to be λ_k [rad/s or m/s]."""
    most = 0.0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            most = max(work.eps[row] * abs(rows.impulse[row] - work.centre[row]), most)
    return most


# ------------------------------------------------------------------ the iteration


@njit
def sweep_crowd(model: Any, data: Any, rows: Any, work: Any, k: Any, tolerance: Any, most: Any) -> Any:
    """Iterate on the rows of island k, `most` times at most, from x = 0 and its λ; work.gradient holds -f - Jᵀλ.

    The rows' law has their cfm and the proximal term of work.eps and work.centre. Returns its residual [rad/s or m/s];
    x, work.velocity and λ are consistent. Iterations are added to work.sizes[NEWTON_STEPS].
    """
    start_sweeps(model, data, rows, work, k)
    count = _prepare(model, rows, work, k)
    left = _residual(rows, work, k)
    known, last = 0, -1.0  # differences in the mixture; how far the last sweeps moved, -1: not comparable
    plain, rest = False, _WINDOW  # whether iterations do without a mixture, and for how many they will
    bar, since = UNTRIED, 0  # how far sweeps moved before these iterations, and how many there have been
    steps = 0
    while steps < most and left > tolerance:
        steps += 1
        _note(rows, work, k, work.before)
        for _ in range(2):
            for q in range(work.unit_start[k], work.unit_start[k + 1]):
                _visit(model, rows, work, work.listed[q])
        moved, most_moved = _measure(rows, work, k)
        if most_moved <= tolerance:
            left = _residual(rows, work, k)
            if left <= tolerance:
                break
        since += 1
        if since == (rest if plain else _WINDOW):
            rest = 2 * rest if plain else rest
            plain = not plain and moved > _PROGRESS * bar
            bar, since = moved, 0
            if plain:
                known, last = 0, -1.0
        if plain:
            continue
        if last >= 0.0 and moved > _RISING * last:
            _set_impulses(model, rows, work, k, work.low)
            known, last = 0, -1.0
            continue
        _note(rows, work, k, work.unit)
        if last >= 0.0:
            _remember(work, count, known % MIXED)
            known += 1
        for p in range(count):
            work.off[p] = work.before[p]
            work.low[p] = work.unit[p]
        last = moved
        if known > 0 and steps < most:
            _mix(work, count, min(known, MIXED))
            _set_impulses(model, rows, work, k, work.before)
    if steps == most:
        left = _residual(rows, work, k)
    end_sweeps(rows, work, k)
    work.sizes[NEWTON_STEPS] += steps
    return left


@njit
def _prepare(model: Any, rows: Any, work: Any, k: Any) -> Any:
    """Set what is constant in the iterations of island k, and return how many rows it has.

    work.weight and work.weight1: the six entries of a contact's J M̂⁻¹ Jᵀ; work.pull: impulse per velocity of other
    units; work.high: scale of a row's impulse, by its place among the island's rows, as work.before, off, low, unit and
    history are.
    """
    p = 0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        note_reach(rows, work, n)
        soft = rows.cfm[n] + work.eps[n]
        work.shift[n] = 0.0  # κ of a contact that slides
        if rows.cone[n] == 3:
            _set_block(model, rows, work, n, soft)
        else:
            find_steps(model, rows, work, n, soft)
        for row in range(n, n + max(rows.cone[n], 1)):
            work.miss[row] = work.miss[row] - work.eps[n] * work.centre[row]
            work.high[p] = math.sqrt(inverse_or_zero(work.pull[row]))
            p += 1
    return p


@njit
def _set_block(model: Any, rows: Any, work: Any, n: Any, soft: Any) -> None:
    """J M̂⁻¹ Jᵀ of a contact: its first row in work.weight, the other three entries in work.weight1."""
    for row in range(3):
        work.linear[n + row] = 0.0
    for row in range(3):
        push(model, rows, work, n, n + row)
        work.pull[n + row] = inverse_or_zero(work.along[n + row] + soft)
        if row == 0:
            work.weight[n], work.weight[n + 1], work.weight[n + 2] = work.along[n], work.along[n + 1], work.along[n + 2]
        elif row == 1:
            work.weight1[n], work.weight1[n + 1] = work.along[n + 1], work.along[n + 2]
        else:
            work.weight1[n + 2] = work.along[n + 2]


# ------------------------------------------------------------------ a unit


@njit
def _visit(model: Any, rows: Any, work: Any, n: Any) -> None:
    """Solve the unit of row n."""
    rows_times(rows, n, work.change, work.along)
    soft = rows.cfm[n] + work.eps[n]
    if rows.cone[n] == 3:
        a, b, c = rows.impulse[n], rows.impulse[n + 1], rows.impulse[n + 2]
        w0, w1, w2 = work.weight[n], work.weight[n + 1], work.weight[n + 2]
        w11, w12, w22 = work.weight1[n], work.weight1[n + 1], work.weight1[n + 2]
        free = (
            work.along[n] + work.miss[n] - (w0 * a + w1 * b + w2 * c),
            work.along[n + 1] + work.miss[n + 1] - (w1 * a + w11 * b + w12 * c),
            work.along[n + 2] + work.miss[n + 2] - (w2 * a + w12 * b + w22 * c),
        )
        block = (w0 + soft, w1, w2, w11 + soft, w12, w22 + soft)
        z0, z1, z2, work.shift[n] = contact_impulse(block, free, rows.slope[n], work.shift[n])
        work.linear[n], work.linear[n + 1], work.linear[n + 2] = z0 - a, z1 - b, z2 - c
    else:
        z = rows.impulse[n] - work.pull[n] * (work.along[n] + work.miss[n] + soft * rows.impulse[n])
        if rows.cone[n] > 1:
            z = max(0.0, z)
            rub(rows, work, n, rows.slope[n] * z, soft)
        else:
            z = min(max(rows.lower[n], z), rows.upper[n])
        work.linear[n] = z - rows.impulse[n]
    moves = False
    for row in range(n, n + max(rows.cone[n], 1)):
        moves = moves or work.linear[row] != 0.0
        rows.impulse[row] = rows.impulse[row] + work.linear[row]
    if moves:
        add_impulses(model, rows, work, n)


@njit
def contact_impulse(block: Any, free: Any, mu: Any, rate: Any) -> Any:
    """The impulse (normal, two tangents) by Coulomb's law of a contact whose velocity is W impulse + free, and κ.

    W = (W00, W01, W02, W11, W12, W22), symmetric, positive definite. Opening: 0. Sticking: no velocity. Sliding: the
    tangential velocity is -κ times the tangential impulse, whose length is μ times the normal one; κ > 0 is found by
    Newton's method within a bracket, in the axes of W's Schur complement, from `rate` if that is positive.
    """
    w0, w1, w2, w11, w12, w22 = block
    if free[0] >= 0.0 or w0 <= 0.0:
        return 0.0, 0.0, 0.0, rate
    p1, p2, most = w1 / w0, w2 / w0, -free[0] / w0
    s11, s12, s22 = w11 - w1 * p1, w12 - w1 * p2, w22 - w2 * p2
    g1, g2 = free[1] + w1 * most, free[2] + w2 * most
    mean, half = 0.5 * (s11 + s22), 0.5 * (s11 - s22)
    radius = math.sqrt(half * half + s12 * s12)
    c, s = 1.0, 0.0
    if radius > _ROOT * mean:
        c, s = (half + radius, s12) if half >= 0.0 else (s12, radius - half)
        length = math.sqrt(c * c + s * s)
        c, s = c / length, s / length
    big, small = mean + radius, max(mean - radius, _RANK * mean)
    g1, g2 = c * g1 + s * g2, c * g2 - s * g1
    p1, p2 = c * p1 + s * p2, c * p2 - s * p1
    z1, z2 = -g1 / big, -g2 / small
    z0 = most - p1 * z1 - p2 * z2
    if z0 < 0.0 or z1 * z1 + z2 * z2 > mu * mu * z0 * z0:
        z0, z1, z2, rate = _sliding((big, small), (g1, g2), (p1, p2), most, mu, rate)
    return z0, c * z1 - s * z2, s * z1 + c * z2, rate


@njit
def _sliding(stiff: Any, g: Any, p: Any, most: Any, mu: Any, rate: Any) -> Any:
    """The impulse of a sliding contact, and κ: (stiff + κ) z_t = -g, z_n = most - p·z_t, |z_t| = μ z_n for a κ > 0."""
    if mu <= 0.0:
        return most, 0.0, 0.0, rate
    low, high = 0.0, 1e300
    if rate <= 0.0:
        rate = max(math.sqrt(g[0] * g[0] + g[1] * g[1]) / (mu * most) - stiff[0], 1e-3 * stiff[0])
    z0, z1, z2 = most, 0.0, 0.0
    for _ in range(_ROOTS):
        i1, i2 = 1.0 / (stiff[0] + rate), 1.0 / (stiff[1] + rate)
        z1, z2 = -g[0] * i1, -g[1] * i2
        z0 = most - p[0] * z1 - p[1] * z2
        length = math.sqrt(z1 * z1 + z2 * z2)
        off = length - mu * z0
        if abs(off) <= _ROOT * (length + mu * abs(z0)):
            break
        if off > 0.0:
            low = rate
        else:
            high = rate
        falls = -(z1 * z1 * i1 + z2 * z2 * i2) / length  # derivatives of the length and of z0 with the rate
        lifts = p[0] * z1 * i1 + p[1] * z2 * i2
        following = -1.0
        if z0 > 0.0:  # 1 / ratio is nearly linear in the rate
            ratio = length / (mu * z0)
            slope = falls / length - lifts / z0
            if slope < 0.0:
                following = rate + (1.0 - ratio) / slope
        elif falls - mu * lifts < 0.0:
            following = rate - off / (falls - mu * lifts)
        if not (low < following < high):
            following = 0.5 * (low + high) if high < 1e299 else 2.0 * rate + stiff[0]
        rate = following
    z0 = max(z0, 0.0)
    length = math.sqrt(z1 * z1 + z2 * z2)
    scale = mu * z0 * inverse_or_zero(length)
    return z0, scale * z1, scale * z2, rate


# ------------------------------------------------------------------ the mixture


@njit
def _note(rows: Any, work: Any, k: Any, out: Any) -> None:
    """out = λ of island k, by place."""
    p = 0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            out[p] = rows.impulse[row]
            p += 1


@njit
def _measure(rows: Any, work: Any, k: Any) -> Any:
    """Set work.before to by how much λ has moved since it was noted there, times its scale; return the norm of that,
    and the largest velocity that a row's own impulse has changed [rad/s or m/s].
    """
    square, most = 0.0, 0.0
    p = 0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            moved = work.high[p] * (rows.impulse[row] - work.before[p])
            work.before[p] = moved
            square += moved * moved
            most = max(abs(moved) * work.high[p], most)
            p += 1
    return math.sqrt(square), most


@njit
def _remember(work: Any, count: Any, place: Any) -> None:
    """Note by how much the motion of λ, and λ after the sweeps, differ from the last ones, at a place of work.history,
    and the products of these motions in work.gram.
    """
    motion, result = work.history[place], work.history[MIXED + place]
    for p in range(count):
        motion[p] = work.before[p] - work.off[p]
        result[p] = work.high[p] * (work.unit[p] - work.low[p])
    for other in range(MIXED):
        total = _product(work.history[other], motion, count)
        work.gram[place, other] = total
        work.gram[other, place] = total


@njit
def _product(x: Any, y: Any, count: Any) -> Any:
    """The sum of products of the first entries of two vectors, in four sums that the processor adds side by side."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    p = 0
    while p + 3 < count:
        a += x[p] * y[p]
        b += x[p + 1] * y[p + 1]
        c += x[p + 2] * y[p + 2]
        d += x[p + 3] * y[p + 3]
        p += 4
    while p < count:
        a += x[p] * y[p]
        p += 1
    return (a + b) + (c + d)


@njit
def _mix(work: Any, count: Any, known: Any) -> None:
    """work.before = the λ after the sweeps, less the combination of noted differences that leaves least of the motion.

    The least squares are solved by their normal equations, L D Lᵀ in the last rows of work.gram.
    """
    L = work.gram[MIXED:]
    trace = 0.0
    for a in range(known):
        trace += work.gram[a, a]
    for a in range(known):
        L[a, MIXED] = _product(work.history[a], work.off, count)
        for b in range(a + 1):
            value = work.gram[a, b] + (_RANK * trace if a == b else 0.0)
            for c in range(b):
                value -= L[a, c] * L[b, c] * L[c, c]
            L[a, b] = value * inverse_or_zero(L[b, b]) if b < a else value
    for a in range(known):
        for b in range(a):
            L[a, MIXED] -= L[a, b] * L[b, MIXED]
    for a in range(known - 1, -1, -1):
        L[a, MIXED] *= inverse_or_zero(L[a, a])
        for b in range(a + 1, known):
            L[a, MIXED] -= L[b, a] * L[b, MIXED]
    for p in range(count):
        work.before[p] = 0.0
    for a in range(known):
        share = L[a, MIXED]
        result = work.history[MIXED + a]
        for p in range(count):
            work.before[p] += share * result[p]
    for p in range(count):
        work.before[p] = work.unit[p] - work.before[p] * inverse_or_zero(work.high[p])


@njit
def _set_impulses(model: Any, rows: Any, work: Any, k: Any, wanted: Any) -> None:
    """Set λ of island k to what is wanted, by place, within bounds and cones, and x to match."""
    p = 0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        last = n + max(rows.cone[n], 1)
        z = wanted[p]
        scale = 1.0
        if rows.cone[n] > 1:
            z = max(0.0, z)
            square = 0.0
            for row in range(n + 1, last):
                square += wanted[p + row - n] * wanted[p + row - n]
            most = rows.slope[n] * z
            if square > most * most:
                scale = most / math.sqrt(square)
        else:
            z = min(max(rows.lower[n], z), rows.upper[n])
        work.linear[n] = z - rows.impulse[n]
        for row in range(n + 1, last):
            work.linear[row] = scale * wanted[p + row - n] - rows.impulse[row]
        for row in range(n, last):
            rows.impulse[row] = rows.impulse[row] + work.linear[row]
        add_impulses(model, rows, work, n)
        p += last - n


# ------------------------------------------------------------------ the residual


@njit
def _residual(rows: Any, work: Any, k: Any) -> Any:
    """The largest |λ - P(λ - ρ û)| / ρ of a unit of island k [rad/s or m/s], as coulomb_system.py has it."""
    worst = 0.0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        rows_times(rows, n, work.change, work.along)
        soft = rows.cfm[n] + work.eps[n]
        rate = work.rho[n]
        z = rows.impulse[n]
        free = z - rate * (work.along[n] + work.miss[n] + soft * z)
        if rows.cone[n] > 1:
            miss = _cone_miss(rows, work, n, free, soft)
        else:
            miss = abs(z - min(max(rows.lower[n], free), rows.upper[n]))
        worst = max(miss * inverse_or_zero(rate), worst)
    return worst


@njit
def _cone_miss(rows: Any, work: Any, n: Any, free: Any, soft: Any) -> Any:
    """|λ - P(λ - ρ û)| of the cone that begins with row n; `free`: its normal part, without the shift."""
    slip, square = 0.0, 0.0
    for row in range(n + 1, n + rows.cone[n]):
        v = work.along[row] + work.miss[row] + soft * rows.impulse[row]
        slip += v * v
        work.linear[row] = rows.impulse[row] - work.rho[n] * v
        square += work.linear[row] * work.linear[row]
    mu = rows.slope[n]
    free -= work.rho[n] * mu * math.sqrt(slip)
    length = math.sqrt(square)
    _, _, _, _, along, across = cone_projection(mu, free, length, inverse_or_zero(length))
    off = rows.impulse[n] - along
    total = off * off
    for row in range(n + 1, n + rows.cone[n]):
        off = rows.impulse[row] - across * inverse_or_zero(length) * work.linear[row]
        total += off * off
    return math.sqrt(total)
