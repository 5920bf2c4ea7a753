"""Newton's method on Coulomb's law itself, for contacts on which the convex problems of multipliers.py do not converge.

The unknowns are x and λ, with M̂ x = f + Jᵀλ, and the rows' equations are λ = P(λ - ρ û), P the projection on bounds or
cone and û the rows' velocity with De Saxcé's shift and the proximal term (Alart and Curnier 1991, with the shift's
derivative in the matrix); residual and matrix are in coulomb_system.py. The matrix is not symmetric, and there is no
merit function: a step is halved once where the residual would rise above a mean of the previous ones (Zhang and Hager
2004), and then taken. Shorter steps were tried: they get stuck at kinks that a bold step passes. ε decreases from round
to round; a round that takes long raises ε again.

Solved to 1e-9: 800 throws of one to three bodies with three or four contacts each, friction mixed from 0.1 to 1, in 16
steps on average and 30 at most; 100 stacks of two to ten boxes with four contacts per face, kicked, in 35 and 131 (with
eight convex steps that did not help); the problems of tests/benchmarks/friction.py.
"""

from __future__ import annotations

from typing import TypeAlias

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Real, Reals1, Vec3
from artsim.sim.foundation.scalars import inverse_or_zero, largest
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import NEWTON_STEPS, NewtonWork
from artsim.sim.solvers.blocks import factorise_blocks, set_inertia, solve_blocks, times_inertia
from artsim.sim.solvers.coulomb_system import assemble, find_direction, residual, residual_after, set_rates
from artsim.sim.solvers.delassus import MOST_PULL, find_in_impulses, list_delassus_rows, set_change, set_delassus
from artsim.sim.solvers.impulses import rows_times, set_gradient
from artsim.sim.solvers.loads import SHARED, forget, loads_are_open
from artsim.sim.solvers.multipliers import PROXIMAL
from artsim.sim.solvers.tolerance import (
    ABSURD,
    CONTRADICTION,
    ENOUGH,
    UNTRIED,
    largest_impulse,
    largest_pull,
    rounding,
)

ROUND_STEPS = 15  # per round, before the problem is made easier; where loads are shared, at most
EASIER = 10.0  # factor on ε to make the problem easier
HARDER = 0.03  # factor on ε in every further round
SHARED_EPS = SHARED / PROXIMAL  # least ε, relative to work.eps, of rows that leave loads open: it shares the loads
REACHED = 1.001 * SHARED_EPS
# residuals too small to change the sharing of loads, on the way and at last, relative to velocities left by compliance
_TOLD_APART, _TOLD_WELL = 1e-2, 1e-3
ANEW = 1e4  # first ε, relative to work.eps, of loads that are shared anew: the start then does not matter
NO_BETTER = 0.3  # a step or round that leaves a larger share of the previous residual is no better
MEMORY = 0.85  # weight of previous residuals in the mean that bounds a step's
GLANCE = 2  # steps within which a start near the solution must get nearer
_SAME = 1e-6  # relative difference below which two residuals are equal
OVERFLOWING = 1e100  # [rad/s or m/s]

# (most, first, near, balanced, shared). most: steps. first: ε at the start, relative to work.eps. near: no rounds, λ_k
# follows every good step, which takes fewer steps close to the solution and misses it more often from afar. balanced:
# M̂ x = f + Jᵀλ holds already. shared: loads that rows leave open are shared in the first rounds (loads.py), in which
# λ_k is 0; later ones take the compliance away, with the same ε
Effort: TypeAlias = tuple[int, float, bool, bool, bool]
Bounds: TypeAlias = tuple[float, float]  # tolerance of the residual [rad/s or m/s], limit of impulses [N s or N m s]


@njit
def coulomb(
    robot: RobotBundle, rows: Rows, step: Step, work: NewtonWork, island: int, bounds: Bounds, effort: Effort
) -> float:
    """Continue from the x and λ of the island; return the residual of its rows [rad/s or m/s].

    Rounding may end the search before the tolerance is met: a residual within ENOUGH tolerances that no longer improves
    is accepted. Impulses above the limit are no solution. work.gradient holds M̂ x - f - Jᵀλ. Steps are added to
    work.sizes[NEWTON_STEPS]; each costs an unsymmetric factorisation and two evaluations of the residual.
    """
    model, data = robot.model, robot.data
    tolerance, limit = bounds
    most, first, near, balanced, shared = effort
    left = UNTRIED
    in_impulses = _prepare(model, data, rows, work, island, balanced, tolerance)
    opened = loads_are_open(rows, work, island) if shared else 0.0
    size, shares, ease = begin_rounds(rows, work, island, first, opened, tolerance if near else -1.0)
    bar, past, start, last = size, 1.0, size, UNTRIED
    steps, since = 0, 0
    while steps < most:
        if shares > 0.0 and size <= bound_of_sharing(rows, work, island, tolerance, ease):
            size, shares, ease = go_on_sharing(rows, work, island, 1.0, ease)
            bar, past, since, last = size, 1.0, 0, UNTRIED
        good = ENOUGH * max(rounding(rows, work, island), tolerance)
        if shares <= 0.0 and is_met(size, last, good, tolerance) > 0.0:
            size = _refreshed(rows, step, work, island, in_impulses)
        if shares <= 0.0 and is_met(size, last, good, tolerance) > 0.0:
            left, ended = _end_round(rows, work, island, size, left, limit, good, tolerance)
            if ended:
                break
            scale(rows, work, island, 1.0 if opened > 0.0 else HARDER)
            size = residual(rows, work, island)
            bar, past, since, last = size, 1.0, 0, UNTRIED
        elif since == ROUND_STEPS:
            if shares > 0.0 or largest_pull(rows, work, island) > ABSURD:
                left = left if shares > 0.0 else CONTRADICTION
                break
            size = begin_round(rows, work, island, EASIER, 1.0)
            bar, past, since = size, 1.0, 0
        if near and steps == GLANCE and size > start:
            break
        steps, since = steps + 1, since + 1
        if in_impulses and largest_pull(rows, work, island) > MOST_PULL:
            in_impulses, size = False, _refreshed(rows, step, work, island, True)
        find_step(model, data, rows, step, work, island, in_impulses)
        last, size = size, take_step(rows, work, island, bar, size, 1.0 - shares if near else 0.0, 1.0)
        bar = (MEMORY * past * bar + size) / (MEMORY * past + 1.0)
        past = MEMORY * past + 1.0
        if not size < OVERFLOWING:
            left = CONTRADICTION
            break
    work.sizes[NEWTON_STEPS] += steps
    if in_impulses:
        set_change(rows, step.free, work, island)
    return _better_of_both(robot, rows, step.free, work, island, tolerance, left, size)


@inlined
def _prepare(
    model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int, balanced: bool, tolerance: float
) -> bool:
    """True if steps are taken in impulses; sets the quantities that either kind of step needs, with M̂ x = f + Jᵀλ."""
    in_impulses = largest_pull(rows, work, island) <= MOST_PULL and list_delassus_rows(rows, work, island)
    if in_impulses or not balanced:
        balance(model, data, rows, work, island)
    if in_impulses:
        set_delassus(rows, work, island)
    set_rates(rows, work, island, tolerance)
    return bool(in_impulses)


@inlined
def _refreshed(rows: Rows, step: Step, work: NewtonWork, island: int, in_impulses: bool) -> float:
    """The residual [rad/s or m/s] by velocities that are computed anew from x."""
    refresh(rows, step, work, island, 1.0, in_impulses)
    return residual(rows, work, island)


@inlined
def is_met(size: Real, last: Real, good: Real, tolerance: Real) -> Real:
    """1 where the residual is within the tolerance, or good enough and hardly better than the last one; else 0."""
    zero = zero_like(size)
    return where_greater(size, where_greater(size, NO_BETTER * last, good, tolerance), zero, zero + 1.0)


@inlined
def bound_of_sharing(rows: Rows, work: NewtonWork, island: int, tolerance: Real, ease: Real) -> Real:
    """The residual [rad/s or m/s] below which loads are shared with this ε: a small part of the velocities that its
    compliance leaves."""
    zero = zero_like(ease)
    share = where_greater(ease, zero + REACHED, zero + _TOLD_APART, zero + _TOLD_WELL)
    return largest(tolerance, share * PROXIMAL * ease * largest_pull(rows, work, island))


@njit
def go_on_sharing(rows: Rows, work: NewtonWork, island: int, chosen: Real, ease: Real) -> Vec3:
    """In lanes where `chosen` is 1, go on with a smaller ε. After the ε that shares the loads, λ_k is set to λ, so that
    rows lose the velocities that compliance has left. Return the residual [rad/s or m/s], 1 where loads are still to be
    shared, and ε relative to work.eps at the start.
    """
    zero = zero_like(ease)
    shared = where_greater(ease, zero + REACHED, zero, chosen)
    if any_positive(chosen - shared):
        harder = where_greater(chosen - shared, zero, largest(zero + HARDER, SHARED_EPS / ease), zero + 1.0)
        scale(rows, work, island, harder)
        ease = ease * harder
    if any_positive(shared):
        recentre(rows, work, island, shared)
    return residual(rows, work, island), chosen - shared, ease


@njit
def begin_rounds(rows: Rows, work: NewtonWork, island: int, first: float, opened: Real, loaded: Real) -> Vec3:
    """Begin the first round with ε times `first`, or times ANEW where loads are open; return its residual [rad/s or
    m/s], 1 where loads are to be shared, and the factor on ε.

    loaded: the residual [rad/s or m/s] within which the given λ are the loads of the step before, which were shared
    there. The loads of a step that goes on as the one before are followed from `first`. -1: loads are shared anew.
    """
    zero = zero_like(opened)
    anew = where_greater(zero, loaded, opened, zero)
    ease = where_greater(anew, zero, zero + ANEW, zero + first)
    size = begin_round(rows, work, island, ease, zero + 1.0)
    shares = where_greater(size, loaded, opened, zero)
    if any_positive(shares):
        forget(rows, work, island, shares)
        size = residual(rows, work, island)
    return size, shares, ease


@njit
def begin_round(rows: Rows, work: NewtonWork, island: int, factor: Real, chosen: Real) -> Real:
    """Scale every ε, and begin a round from the λ found in lanes where `chosen` is 1; return its residual [rad/s or
    m/s].
    """
    scale(rows, work, island, factor)
    recentre(rows, work, island, chosen)
    return residual(rows, work, island)


@njit
def _end_round(
    rows: Rows, work: NewtonWork, island: int, size: float, before: float, limit: float, good: float, tolerance: float
) -> tuple[float, bool]:
    """Set λ_k to λ, with the residual `size`; return the rows' residual [rad/s or m/s], and True for a stop: impulses
    are too large, or the tolerance is met, or the round is `good` and hardly better than the one before.
    """
    left = max(size, recentre(rows, work, island, 1.0))
    if largest_impulse(rows, work, island) > limit or largest_pull(rows, work, island) > ABSURD:
        return UNTRIED, True
    return left, left <= (good if left > NO_BETTER * before else tolerance)


@njit
def _better_of_both(
    robot: RobotBundle,
    rows: Rows,
    force: Reals1,
    work: NewtonWork,
    island: int,
    tolerance: float,
    left: float,
    size: float,
) -> float:
    """The rows' residual [rad/s or m/s] where the last round ended with `left` and the residual is `size`.

    Where the steps ran out in a round that is worse than the one before, λ becomes that round's result, λ_k.
    """
    good = ENOUGH * max(rounding(rows, work, island), tolerance)
    if size > good and not left > good:
        _go_back(robot.model, robot.data, rows, force, work, island)
        size = residual(rows, work, island)
    return max(size, left)


@njit
def find_step(
    model: Model, data: Workspace, rows: Rows, step: Step, work: NewtonWork, island: int, in_impulses: bool
) -> None:
    """Find the Newton step: work.linear = dλ, work.along = J dx, and work.direction = dx unless the step is
    taken `in_impulses`.
    """
    if in_impulses:
        find_in_impulses(rows, work, island)
    else:
        assemble(model, data, rows, work, island)
        factorise_blocks(work, island, work.matrix, work.transpose, True)
        find_direction(model, data, rows, step.free, work, island)


@njit
def refresh(rows: Rows, step: Step, work: NewtonWork, island: int, chosen: Real, in_impulses: bool) -> None:
    """Recompute work.velocity from x in lanes where `chosen` is 1: earlier steps may have been so long that digits of
    work.velocity are lost. After steps `in_impulses`, which move λ alone, x is computed first.
    """
    if in_impulses:
        set_change(rows, step.free, work, island)
    u, zero = step.next, zero_like(chosen)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            value = rows.bias[row]
            for e in range(rows.start[row], rows.stop[row]):
                value = value + rows.value[e] * (u[rows.column[e]] + work.change[rows.column[e]])
            work.velocity[row] = where_greater(chosen, zero, value, work.velocity[row])


@njit
def _go_back(model: Model, data: Workspace, rows: Rows, force: Reals1, work: NewtonWork, island: int) -> None:
    """Reset λ to λ_k, with x to match."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            rows.impulse[row] = rows.impulse[row] + (work.centre[row] - rows.impulse[row])
    times_inertia(model.independent_parent, model.independent_run, data.factor, work, island, work.change, work.product)
    set_gradient(rows, force, work, island)
    balance(model, data, rows, work, island)


@njit
def balance(model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int) -> None:
    """Move x of the island to where M̂ x = f + Jᵀλ, with the rows' velocities; work.gradient becomes 0."""
    set_inertia(model, data, work, island, work.matrix)
    factorise_blocks(work, island, work.matrix, work.matrix, False)
    balance_by_factor(rows, work, island)


@njit
def balance_by_factor(rows: Rows, work: NewtonWork, island: int) -> None:
    """Move x of the island to where M̂ x = f + Jᵀλ, with M̂ factorised in work.matrix; see `balance`."""
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = -work.gradient[a]
            work.gradient[a] = zero_like(work.gradient[a])
    solve_blocks(work, island, work.matrix, work.matrix)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        rows_times(rows, n, work.direction, work.along)
        for row in range(n, n + max(rows.cone[n], 1)):
            work.velocity[row] = work.velocity[row] + work.along[row]
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.change[a] = work.change[a] + work.direction[a]


@njit
def scale(rows: Rows, work: NewtonWork, island: int, factor: Real) -> None:
    """Scale every ε of the island, and set the quantities that depend on ε."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.eps[row] = factor * work.eps[row]
            work.inverse[row] = inverse_or_zero(rows.cfm[row] + work.eps[row])


@njit
def recentre(rows: Rows, work: NewtonWork, island: int, chosen: Real) -> Real:
    """Set λ_k of the island to λ in lanes where `chosen` is 1, with no step pending; return the resulting motion of the
    rows [rad/s or m/s]."""
    left = zero_like(chosen)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            off = rows.impulse[row] - work.centre[row]
            left = largest(work.eps[row] * absolute(off), left)
            work.centre[row] = where_greater(chosen, zero_like(off), rows.impulse[row], work.centre[row])
            work.along[row] = zero_like(off)
            work.linear[row] = zero_like(off)
    return left


@njit
def take_step(rows: Rows, work: NewtonWork, island: int, bar: Real, size: Real, follows: Real, chosen: Real) -> Real:
    """Take the step if the residual after it does not exceed the bar, else half the step, in lanes where `chosen` is 1;
    return the residual after the step taken [rad/s or m/s].

    Where a row jumps from one bound to the other, and would jump back in the next step, the residual keeps its size:
    that step is halved, too. Where `follows` is 1, λ_k becomes λ after a whole step that is good, and the residual is
    that with the new λ_k.
    """
    zero = zero_like(size)
    one = zero + 1.0
    then = residual_after(rows, work, island, one, one - follows)
    t = where_greater(absolute(then - size), _SAME * size, one, zero + 0.5)
    t = where_greater(then, bar, zero + 0.5, t)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            changed = work.change[a] + t * work.direction[a]
            work.change[a] = where_greater(chosen, zero, changed, work.change[a])
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            velocity, impulse = work.velocity[row] + t * work.along[row], rows.impulse[row] + t * work.linear[row]
            work.velocity[row] = where_greater(chosen, zero, velocity, work.velocity[row])
            rows.impulse[row] = where_greater(chosen, zero, impulse, rows.impulse[row])
            work.along[row] = zero
            work.linear[row] = zero
    whole = where_greater(t, zero + 0.75, one, zero)
    if any_positive(follows):
        good = where_greater(NO_BETTER * size, then, one, zero)
        whole = whole * where_greater(follows, zero, good, one)
        if any_positive(chosen * follows * whole):
            recentre(rows, work, island, chosen * follows * whole)
    if not any_positive(chosen * (one - whole)):
        return then
    return residual(rows, work, island)
