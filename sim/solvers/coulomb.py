"""Newton's method on Coulomb's law itself, for contacts on which the convex problems of multipliers.py do not converge.

The unknowns are x and λ, with M̂ x = f + Jᵀλ, and the rows' equations are λ = P(λ - ρ û), P the projection on bounds or
cone and û the rows' velocity with De Saxcé's shift and the proximal term (Alart and Curnier 1991, with the shift's
derivative in the matrix); residual and matrix are in coulomb_system.py. The matrix is not symmetric, and there is no
merit function: a step is halved once where the residual would rise above a mean of the previous ones (Zhang and Hager
2004), and then taken. Shorter steps were tried: they get stuck at kinks that a bold step passes. ε decreases from round
to round; a round that takes long raises ε again.

`take_rounds` is the loop over steps of one robot, of the lanes of a pack together (pack_coulomb.py), and of a lane by
itself (lane_coulomb.py). Masks, T of 0 and 1, say which lanes take part: a lane that has ended moves no more, and its
result depends on no other lane. Steps are taken in impulses (delassus.py) where few rows take part, until impulses are
too large for that.

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
from artsim.sim.foundation.records import Real, Vec3
from artsim.sim.foundation.scalars import inverse_or_zero, largest
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import NEWTON_STEPS, STEPPING_UNITS, NewtonWork
from artsim.sim.solvers.blocks import factorise_blocks, set_inertia, solve_blocks
from artsim.sim.solvers.coulomb_system import assemble, find_direction, residual, residual_after, set_rates
from artsim.sim.solvers.delassus import MOST_PULL, find_in_impulses, list_delassus_rows, set_change, set_delassus
from artsim.sim.solvers.impulses import rows_times
from artsim.sim.solvers.loads import SHARED, forget, loads_are_open
from artsim.sim.solvers.multipliers import PROXIMAL
from artsim.sim.solvers.tolerance import (
    ABSURD,
    CONTRADICTION,
    ENOUGH,
    UNTRIED,
    largest_impulse,
    largest_pull,
    rounding_of,
)

_ROUND_STEPS = 15  # per round, before the problem is made easier; where loads are shared, at most
_EASIER = 10.0  # factor on ε to make the problem easier
_HARDER = 0.03  # factor on ε in every further round
_SHARED_EPS = SHARED / PROXIMAL  # least ε, relative to work.eps, of rows that leave loads open: it shares the loads
_REACHED = 1.001 * _SHARED_EPS
# residuals too small to change the sharing of loads, on the way and at last, relative to velocities left by compliance
_TOLD_APART, _TOLD_WELL = 1e-2, 1e-3
_ANEW = 1e4  # first ε, relative to work.eps, of loads that are shared anew: the start then does not matter
_NO_BETTER = 0.3  # a step or round that leaves a larger share of the previous residual is no better
_MEMORY = 0.85  # weight of previous residuals in the mean that bounds a step's
_GLANCE = 2  # steps within which a start near the solution must get nearer
_SAME = 1e-6  # relative difference below which two residuals are equal
_OVERFLOWING = 1e100  # [rad/s or m/s]

# (most, first, near). most: steps. first: ε at the start, relative to work.eps. near: no rounds, λ_k follows every good
# step, which takes fewer steps close to the solution and misses it more often from afar
Effort: TypeAlias = tuple[int, float, bool]
# (most, first, near, balanced, shared). balanced: M̂ x = f + Jᵀλ holds already. shared: loads that rows leave open are
# shared in the first rounds (loads.py), in which λ_k is 0; later ones take the compliance away, with the same ε
WholeEffort: TypeAlias = tuple[int, float, bool, bool, bool]
Bounds: TypeAlias = tuple[float, float]  # tolerance of the residual [rad/s or m/s], limit of impulses [N s or N m s]
# (chosen, opened, tolerance, limit), T. chosen: 1 where steps are taken. opened: 1 where loads are to be shared
Task: TypeAlias = tuple[Real, Real, Real, Real]
# (last, bar, past, since, taken), T: the residual before the last step and the mean above which a step is halved
# [rad/s or m/s]; the weight of residuals in that mean; steps of the round; steps
Pace: TypeAlias = tuple[Real, Real, Real, Real, Real]


@njit
def coulomb(
    robot: RobotBundle, rows: Rows, step: Step, work: NewtonWork, island: int, bounds: Bounds, effort: WholeEffort
) -> float:
    """Continue from the x and λ of the island of one robot; return the residual of its rows [rad/s or m/s].

    work.gradient holds M̂ x - f - Jᵀλ. Each step costs an unsymmetric factorisation, or O(rows³) in impulses, and two
    evaluations of the residual.
    """
    tolerance, limit = bounds
    most, first, near, balanced, shared = effort
    work.sizes[STEPPING_UNITS] = 0
    if largest_pull(rows, work, island) <= MOST_PULL:
        list_delassus_rows(rows, work, island)
    in_impulses = work.sizes[STEPPING_UNITS] > 0
    if in_impulses or not balanced:
        balance(robot.model, robot.data, rows, work, island)
    if in_impulses:
        set_delassus(rows, work, island)
    opened = loads_are_open(rows, work, island) if shared else 0.0
    return take_rounds(robot, rows, step, work, island, (1.0, opened, tolerance, limit), (most, first, near))


@njit
def take_rounds(
    robot: RobotBundle | None, rows: Rows, step: Step | None, work: NewtonWork, island: int, task: Task, effort: Effort
) -> Real:
    """Take steps in chosen lanes, from where M̂ x = f + Jᵀλ; return the residual of their rows [rad/s or m/s].

    The units in work.stepping_unit take steps in impulses; without any, all units take them in x. Without `robot` and
    `step` there are no dofs, and W tells velocities. A residual within ENOUGH tolerances that no longer improves is
    accepted. Lanes that are done wait for the others: velocities are then recomputed for all at once, in steps by W
    alone by the caller (pack_coulomb.py).
    """
    chosen, opened, tolerance, limit = task
    most, first, near = effort
    zero, one = zero_like(chosen), zero_like(chosen) + 1.0
    set_rates(rows, work, island, tolerance)
    size, shares, ease = _begin_rounds(rows, work, island, first, opened, tolerance if near else zero - 1.0)
    start, left, pace = size, zero + UNTRIED, (zero + UNTRIED, size, one, zero, zero)
    running, waiting, large, moved = chosen, zero, zero, False
    while any_positive(running) or (step is not None and any_positive(large)):
        pull = largest_pull(rows, work, island)
        good = ENOUGH * largest(rounding_of(pull), tolerance)
        on = where_greater(size, _bound_of_sharing(pull, tolerance, ease), zero, running * shares)
        size, shares, ease = _go_on_sharing(rows, work, island, on, (size, shares, ease))
        pace = _begin_pace(on, size, pace)
        waiting = largest(waiting, running * (one - shares) * is_met(size, pace[0], good, tolerance))
        met = zero
        if not any_positive(running - waiting):
            size, moved = _refreshed(rows, step, work, island, waiting, size), False
            met, waiting = waiting * is_met(size, pace[0], good, tolerance), zero
        if any_positive(met):
            left, ended = _end_round(rows, work, island, met, (size, left, pull), (limit, good, tolerance))
            running, met = running - ended, met - ended
            size = _harden(rows, work, island, met, opened, size)
        easier = where_greater(pace[3], zero + (_ROUND_STEPS - 0.5), (running - waiting) * (one - met), zero)
        if any_positive(easier):
            left, ended = _give_up(easier, shares, pull, left)
            running, easier = running - ended, easier - ended
            size = _ease(rows, work, island, easier, size)
        pace = _begin_pace(met + easier, size, pace)
        running = running - _no_nearer(running - waiting, pace[4], size, start) if near else running
        moving = running - waiting
        if work.sizes[STEPPING_UNITS] > 0:
            large = largest(large, where_greater(pull, zero + MOST_PULL, moving, zero))
            running, moving = running * (one - large), moving * (one - large)
            if step is not None and any_positive(large) and not any_positive(running):
                size = _leave_impulses(rows, step, work, island, large, size)
                running, moving, large = large, large, zero
        if any_positive(moving):
            follows, moved = one - shares if near else zero, True
            size, pace = _advance(robot, rows, step, work, island, (moving, follows, size), pace)
            lost = where_greater(zero + _OVERFLOWING, size, zero, moving)
            left = where_greater(lost, zero, zero + CONTRADICTION, left)
            running = where_greater(pace[4], zero + (most - 0.5), zero, running - lost)
    if robot is None or step is None:
        return largest(size, left)
    if moved and work.sizes[STEPPING_UNITS] > 0:
        set_change(rows, step.free, work, island, chosen)
    return _better_of_both(robot, rows, step, work, island, (chosen, tolerance), (size, left))


# ------------------------------------------------------------------ sharing loads


@njit
def _begin_rounds(rows: Rows, work: NewtonWork, island: int, first: float, opened: Real, loaded: Real) -> Vec3:
    """Begin the first round with ε times `first`, or times _ANEW where loads are open; return its residual [rad/s or
    m/s], 1 where loads are to be shared, and the factor on ε.

    loaded: the residual [rad/s or m/s] within which the given λ are the loads of the step before, which were shared
    there. The loads of a step that goes on as the one before are followed from `first`. -1: loads are shared anew.
    """
    zero = zero_like(opened)
    anew = where_greater(zero, loaded, opened, zero)
    ease = where_greater(anew, zero, zero + _ANEW, zero + first)
    size = _begin_round(rows, work, island, ease, zero + 1.0)
    shares = where_greater(size, loaded, opened, zero)
    if any_positive(shares):
        forget(rows, work, island, shares)
        size = residual(rows, work, island)
    return size, shares, ease


@inlined
def _bound_of_sharing(pull: Real, tolerance: Real, ease: Real) -> Real:
    """The residual [rad/s or m/s] below which loads are shared with this ε: a small part of the velocities that its
    compliance leaves."""
    zero = zero_like(ease)
    share = where_greater(ease, zero + _REACHED, zero + _TOLD_APART, zero + _TOLD_WELL)
    return largest(tolerance, share * PROXIMAL * ease * pull)


@inlined
def _go_on_sharing(rows: Rows, work: NewtonWork, island: int, on: Real, sharing: Vec3) -> Vec3:
    """In lanes where `on` is 1, go on with a smaller ε. After the ε that shares the loads, λ_k is set to λ, so that
    rows lose the velocities that compliance has left. Return the residual [rad/s or m/s], 1 where loads are still to be
    shared, and ε relative to work.eps at the start; `sharing`: these three before.
    """
    size, shares, ease = sharing
    zero = zero_like(ease)
    if not any_positive(on):
        return sharing
    shared = where_greater(ease, zero + _REACHED, zero, on)
    if any_positive(on - shared):
        harder = where_greater(on - shared, zero, largest(zero + _HARDER, _SHARED_EPS / ease), zero + 1.0)
        _scale(rows, work, island, harder)
        ease = ease * harder
    if any_positive(shared):
        _recentre(rows, work, island, shared)
    return where_greater(on, zero, residual(rows, work, island), size), shares - shared, ease


# ------------------------------------------------------------------ rounds


@inlined
def is_met(size: Real, last: Real, good: Real, tolerance: Real) -> Real:
    """1 where the residual is within the tolerance, or good enough and hardly better than the last one; else 0."""
    zero = zero_like(size)
    return where_greater(size, where_greater(size, _NO_BETTER * last, good, tolerance), zero, zero + 1.0)


@inlined
def _refreshed(rows: Rows, step: Step | None, work: NewtonWork, island: int, waiting: Real, size: Real) -> Real:
    """The residual [rad/s or m/s], in lanes where `waiting` is 1 by velocities that are computed anew from x."""
    if step is None:
        return size
    refresh(rows, step, work, island, waiting)
    return where_greater(waiting, zero_like(size), residual(rows, work, island), size)


@inlined
def _begin_pace(anew: Real, size: Real, pace: Pace) -> Pace:
    """The pace; in lanes where `anew` is 1, that of a round that begins with the residual `size` [rad/s or m/s]."""
    last, bar, past, since, taken = pace
    zero = zero_like(size)
    last = where_greater(anew, zero, zero + UNTRIED, last)
    past = where_greater(anew, zero, zero + 1.0, past)
    return last, where_greater(anew, zero, size, bar), past, where_greater(anew, zero, zero, since), taken


@njit
def _begin_round(rows: Rows, work: NewtonWork, island: int, factor: Real, chosen: Real) -> Real:
    """Scale every ε, and begin a round from the λ found in lanes where `chosen` is 1; return its residual [rad/s or
    m/s].
    """
    _scale(rows, work, island, factor)
    _recentre(rows, work, island, chosen)
    return residual(rows, work, island)


@inlined
def _end_round(rows: Rows, work: NewtonWork, island: int, met: Real, found: Vec3, bounds: Vec3) -> tuple[Real, Real]:
    """Set λ_k to λ in lanes where `met` is 1; return the residual of their rows [rad/s or m/s], and 1 for the end:
    impulses are too large, or the tolerance is met, or the round is good and hardly better than the one before.

    found: the residual of the steps, that of the rows after the round before, the largest pull.
    """
    size, before, pull = found
    limit, good, tolerance = bounds
    zero = zero_like(met)
    left = largest(size, _recentre(rows, work, island, met))
    ended = where_greater(left, where_greater(left, _NO_BETTER * before, good, tolerance), zero, met)
    huge = where_greater(largest_impulse(rows, work, island), limit, met, zero)
    huge = where_greater(pull, zero + ABSURD, met, huge)
    left = where_greater(huge, zero, zero + UNTRIED, left)
    return where_greater(met, zero, left, before), largest(ended, huge)


@inlined
def _harden(rows: Rows, work: NewtonWork, island: int, met: Real, opened: Real, size: Real) -> Real:
    """Go on with a smaller ε in lanes where `met` is 1, but for loads that are open; return the residual [rad/s or
    m/s]."""
    zero = zero_like(met)
    if not any_positive(met):
        return size
    harder = where_greater(opened, zero, zero + 1.0, zero + _HARDER)
    _scale(rows, work, island, where_greater(met, zero, harder, zero + 1.0))
    return where_greater(met, zero, residual(rows, work, island), size)


@inlined
def _give_up(easier: Real, shares: Real, pull: Real, left: Real) -> tuple[Real, Real]:
    """The residual of rows [rad/s or m/s], and 1 for the end, in lanes whose round takes too long: where loads could
    not be shared, or where impulses grow without bound."""
    zero = zero_like(easier)
    absurd = where_greater(pull, zero + ABSURD, easier, zero)
    ended = where_greater(shares, zero, easier, absurd)
    return where_greater(ended * (1.0 - shares), zero, zero + CONTRADICTION, left), ended


@inlined
def _ease(rows: Rows, work: NewtonWork, island: int, easier: Real, size: Real) -> Real:
    """Begin a round with a larger ε in lanes where `easier` is 1; return the residual [rad/s or m/s]."""
    zero = zero_like(easier)
    if not any_positive(easier):
        return size
    eased = _begin_round(rows, work, island, where_greater(easier, zero, zero + _EASIER, zero + 1.0), easier)
    return where_greater(easier, zero, eased, size)


@inlined
def _no_nearer(moving: Real, taken: Real, size: Real, start: Real) -> Real:
    """1 in moving lanes that are no nearer than at the start after a few steps."""
    zero = zero_like(moving)
    glance = where_greater(absolute(taken - _GLANCE), zero + 0.5, zero, moving)
    return where_greater(size, start, glance, zero)


@inlined
def _leave_impulses(rows: Rows, step: Step, work: NewtonWork, island: int, large: Real, size: Real) -> Real:
    """Go on with steps in x in lanes where `large` is 1; return the residual [rad/s or m/s], there by velocities that
    follow from x."""
    refresh(rows, step, work, island, large)
    work.sizes[STEPPING_UNITS] = 0
    return where_greater(large, zero_like(size), residual(rows, work, island), size)


@inlined
def _better_of_both(
    robot: RobotBundle,
    rows: Rows,
    step: Step,
    work: NewtonWork,
    island: int,
    goal: tuple[Real, Real],
    found: tuple[Real, Real],
) -> Real:
    """The rows' residual [rad/s or m/s] where the last round ended with `left` and the residual is `size`.

    Where the steps of chosen lanes ran out in a round that is worse than the one before, λ becomes that round's result,
    λ_k. goal: (chosen, tolerance); found: (size, left).
    """
    chosen, tolerance = goal
    size, left = found
    zero = zero_like(size)
    good = ENOUGH * largest(rounding_of(largest_pull(rows, work, island)), tolerance)
    back = where_greater(size, good, where_greater(left, good, zero, chosen), zero)
    if any_positive(back):
        for entry in range(work.unit_start[island], work.unit_start[island + 1]):
            n = work.listed[entry]
            for row in range(n, n + max(rows.cone[n], 1)):
                rows.impulse[row] = where_greater(back, zero, work.centre[row], rows.impulse[row])
        _factorise_inertia(robot.model, robot.data, work, island)
        set_change(rows, step.free, work, island, back)
        refresh(rows, step, work, island, back)
        size = where_greater(back, zero, residual(rows, work, island), size)
    return largest(size, left)


# ------------------------------------------------------------------ steps


@inlined
def _advance(
    robot: RobotBundle | None, rows: Rows, step: Step | None, work: NewtonWork, island: int, start: Vec3, pace: Pace
) -> tuple[Real, Pace]:
    """Take a step in moving lanes; return the residual after it [rad/s or m/s], and the pace. start: (moving, follows,
    size). Where `follows` is 1, λ_k follows a good step; size: the residual before the step.
    """
    moving, follows, size = start
    last, bar, past, since, taken = pace
    zero = zero_like(size)
    _find_step(robot, rows, step, work, island)
    then = _take_step(rows, work, island, (bar, size), follows, moving)
    work.sizes[NEWTON_STEPS] += 1
    last = where_greater(moving, zero, size, last)
    size = where_greater(moving, zero, then, size)
    bar = where_greater(moving, zero, (_MEMORY * past * bar + size) / (_MEMORY * past + 1.0), bar)
    past = where_greater(moving, zero, _MEMORY * past + 1.0, past)
    return size, (last, bar, past, since + moving, taken + moving)


@njit
def _find_step(robot: RobotBundle | None, rows: Rows, step: Step | None, work: NewtonWork, island: int) -> None:
    """Find the Newton step: work.linear = dλ, work.along = J dx, and work.direction = dx unless it is one in
    impulses."""
    if robot is None or step is None or work.sizes[STEPPING_UNITS] > 0:
        find_in_impulses(rows, work, island)
    else:
        assemble(robot.model, robot.data, rows, work, island)
        factorise_blocks(work, island, work.matrix, work.transpose, True)
        find_direction(robot.model, robot.data, rows, step.free, work, island)


@njit
def _take_step(
    rows: Rows, work: NewtonWork, island: int, sizes: tuple[Real, Real], follows: Real, chosen: Real
) -> Real:
    """Take the step if the residual after it does not exceed the bar, else half the step, in lanes where `chosen` is 1;
    return the residual after the step taken [rad/s or m/s]. sizes: the bar and the residual before the step.

    Where a row jumps from one bound to the other, and would jump back in the next step, the residual keeps its size:
    that step is halved, too. Where `follows` is 1, λ_k becomes λ after a whole step that is good, and the residual is
    that with the new λ_k.
    """
    bar, size = sizes
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
        good = where_greater(_NO_BETTER * size, then, one, zero)
        whole = whole * where_greater(follows, zero, good, one)
        if any_positive(chosen * follows * whole):
            _recentre(rows, work, island, chosen * follows * whole)
    if not any_positive(chosen * (one - whole)):
        return then
    return residual(rows, work, island)


@njit
def refresh(rows: Rows, step: Step, work: NewtonWork, island: int, chosen: Real) -> None:
    """Recompute work.velocity from x in lanes where `chosen` is 1: earlier steps may have been so long that digits of
    work.velocity are lost. Steps in impulses move λ alone: x is then computed first, for all lanes.
    """
    if work.sizes[STEPPING_UNITS] > 0:
        set_change(rows, step.free, work, island, zero_like(chosen) + 1.0)
    u, zero = step.next, zero_like(chosen)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            value = rows.bias[row]
            for e in range(rows.start[row], rows.stop[row]):
                value = value + rows.value[e] * (u[rows.column[e]] + work.change[rows.column[e]])
            work.velocity[row] = where_greater(chosen, zero, value, work.velocity[row])


@njit
def balance(model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int) -> None:
    """Move x of the island to where M̂ x = f + Jᵀλ, with the rows' velocities; work.gradient becomes 0."""
    _factorise_inertia(model, data, work, island)
    balance_by_factor(rows, work, island)


@njit
def _factorise_inertia(model: Model, data: Workspace, work: NewtonWork, island: int) -> None:
    """Factorise M̂ of the island in work.matrix."""
    set_inertia(model, data, work, island, work.matrix)
    factorise_blocks(work, island, work.matrix, work.matrix, False)


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
def _scale(rows: Rows, work: NewtonWork, island: int, factor: Real) -> None:
    """Scale every ε of the island, and set the quantities that depend on ε."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.eps[row] = factor * work.eps[row]
            work.inverse[row] = inverse_or_zero(rows.cfm[row] + work.eps[row])


@njit
def _recentre(rows: Rows, work: NewtonWork, island: int, chosen: Real) -> Real:
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
