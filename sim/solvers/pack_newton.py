"""newton for a pack: the same convex steps for 8 robots, each of which ends by itself.

A robot's result is what it has found when its own rows are met; that others in the pack still go on changes nothing of
it, nor do the rows that only they have. Those that a few steps do not settle are left to the step of a single robot.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit
from artsim.sim.kinematics import like
from artsim.sim.lanes import absolute, highest, where_greater
from artsim.sim.solvers.cone import largest, least
from artsim.sim.solvers.elimination import find_structure
from artsim.sim.solvers.impulses import follow_shift, hold, project, set_gradient
from artsim.sim.solvers.line_search import EXACT, leap, take
from artsim.sim.solvers.newton import (
    TOLERANCE,
    differs,
    factorise_island,
    largest_speed,
    linearise,
    prepare,
    set_along,
    solve_island,
)

_STEPS = 8  # that all wait for the slowest


@njit
def solve_pack(model: Any, data: Any, rows: Any, step: Any, solver: Any) -> None:
    """step.next (nu,) becomes the velocities at the end of the step, pack.impulse (rows,) what makes them.

    pack.skip: 1 for robots that nothing is asked of; pack.solved: 1 for those, and for those whose rows are met. M̂ is
    in data.factor, step.free the impulse of all else, rows.impulse where the search starts.
    """
    work = solver.newton
    u = step.next
    find_structure(model, rows, work)
    solver.pack.solved[0] = like(1.0, data)
    for k in range(work.sizes[1]):
        work.factorised[k] = 0
        prepare(model, data, rows, u, solver, k)
        solver.pack.solved[0] = least(solver.pack.solved[0], _settle(model, data, rows, step, solver, k))
    for a in range(u.shape[0]):
        u[a] = u[a] + solver.pack.change[a]


@njit
def _settle(model: Any, data: Any, rows: Any, step: Any, solver: Any, k: Any) -> Any:
    """pack.change and pack.impulse of island k; 1 where its rows are met. The steps are those of newton.py."""
    work = solver.newton
    one = like(1.0, data)
    zero = like(0.0, data)
    ended = solver.pack.skip[0]
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            solver.pack.change[a] = zero
    project(rows, work, k)
    hold(rows, work, k)
    for turn in range(_STEPS):
        if work.factorised[k] == 0 or differs(rows, work, k):
            factorise_island(model, data, rows, solver, k)
            work.factorised[k] = 1
        set_gradient(rows, step.free, work, k)
        solve_island(model, data, solver, k)
        set_along(model, data, rows, solver, k)
        linearise(rows, work, k)
        tolerance = TOLERANCE * largest_speed(step.next, work, k)
        bent = leap(rows, work, k, zero) if turn == 0 else take(rows, step.free, work, k, tolerance, EXACT)
        flat = where_greater(bent, tolerance, zero, one)
        if highest(flat) > 0.0:
            left = _recentre(rows, work, k, flat)
            now = where_greater(left, tolerance, zero, flat) * (one - ended)
            if highest(now) > 0.0:
                _keep(rows, solver, k, now)
                ended = ended + now
            if highest(one - ended) <= 0.0:
                break
            project(rows, work, k)
    return ended


@njit
def _keep(rows: Any, solver: Any, k: Any, now: Any) -> None:
    """What the robots have found for which `now` is 1."""
    work = solver.newton
    zero = now - now
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            solver.pack.change[a] = where_greater(now, zero, work.change[a], solver.pack.change[a])
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            solver.pack.impulse[row] = where_greater(now, zero, work.linear[row], solver.pack.impulse[row])


@njit
def _recentre(rows: Any, work: Any, k: Any, flat: Any) -> Any:
    """λ_k becomes the λ found, and shifts follow the velocities, where `flat` is 1; how far that is [rad/s or m/s]."""
    zero = flat - flat
    left = zero
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            left = largest(left, work.eps[row] * absolute(work.linear[row] - work.centre[row]))
            rows.impulse[row] = where_greater(flat, zero, work.linear[row], rows.impulse[row])
        if rows.cone[n] > 1:
            shift = work.shift[n]
            before = work.before[n]
            off = work.off[n]
            left = largest(left, follow_shift(rows, work, n, left))
            work.shift[n] = where_greater(flat, zero, work.shift[n], shift)
            work.before[n] = where_greater(flat, zero, work.before[n], before)
            work.off[n] = where_greater(flat, zero, work.off[n], off)
        for row in range(n, n + max(rows.cone[n], 1)):
            work.centre[row] = where_greater(flat, zero, work.linear[row], work.centre[row])
    return left
