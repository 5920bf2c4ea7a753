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
def solve_pack(m: Any, w: Any, r: Any, f: Any, y: Any, p: Any) -> None:
    """f.next (nu,) becomes the velocities at the end of the step, p.impulse (rows,) what makes them.

    p.skip: 1 for robots that nothing is asked of; p.solved: 1 for those, and for those whose rows are met. M̂ is in
    w.factor, f.free the impulse of all else, r.impulse where the search starts.
    """
    u = f.next
    find_structure(m, r, y)
    p.solved[0] = like(1.0, w)
    for k in range(y.sizes[1]):
        y.factorised[k] = 0
        prepare(m, w, r, u, y, None, None, k)
        p.solved[0] = least(p.solved[0], _settle(m, w, r, f, y, p, k))
    for a in range(u.shape[0]):
        u[a] = u[a] + p.change[a]


@njit
def _settle(m: Any, w: Any, r: Any, f: Any, y: Any, p: Any, k: Any) -> Any:
    """p.change and p.impulse of island k; 1 where its rows are met. The steps are those of newton.py."""
    one = like(1.0, w)
    zero = like(0.0, w)
    ended = p.skip[0]
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            p.change[a] = zero
    project(r, y, k)
    hold(r, y, k)
    for turn in range(_STEPS):
        if y.factorised[k] == 0 or differs(r, y, k):
            factorise_island(m, w, r, y, None, None, k)
            y.factorised[k] = 1
        set_gradient(r, f.free, y, k)
        solve_island(m, w, y, None, None, k)
        set_along(m, w, r, y, None, None, k)
        linearise(r, y, k)
        tolerance = TOLERANCE * largest_speed(f.next, y, k)
        bent = leap(r, y, k, zero) if turn == 0 else take(r, f.free, y, k, tolerance, EXACT)
        flat = where_greater(bent, tolerance, zero, one)
        if highest(flat) > 0.0:
            left = _recentre(r, y, k, flat)
            now = where_greater(left, tolerance, zero, flat) * (one - ended)
            if highest(now) > 0.0:
                _keep(r, y, p, k, now)
                ended = ended + now
            if highest(one - ended) <= 0.0:
                break
            project(r, y, k)
    return ended


@njit
def _keep(r: Any, y: Any, p: Any, k: Any, now: Any) -> None:
    """What the robots have found for which `now` is 1."""
    zero = now - now
    for e in range(y.island_start[k], y.island_start[k + 1]):
        b = y.member[e]
        for a in range(y.block_start[b], y.block_start[b + 1]):
            p.change[a] = where_greater(now, zero, y.change[a], p.change[a])
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            p.impulse[row] = where_greater(now, zero, y.linear[row], p.impulse[row])


@njit
def _recentre(r: Any, y: Any, k: Any, flat: Any) -> Any:
    """λ_k becomes the λ found, and shifts follow the velocities, where `flat` is 1; how far that is [rad/s or m/s]."""
    zero = flat - flat
    left = zero
    for q in range(y.unit_start[k], y.unit_start[k + 1]):
        n = y.listed[q]
        for row in range(n, n + max(r.cone[n], 1)):
            left = largest(left, y.eps[row] * absolute(y.linear[row] - y.centre[row]))
            r.impulse[row] = where_greater(flat, zero, y.linear[row], r.impulse[row])
        if r.cone[n] > 1:
            shift = y.shift[n]
            before = y.before[n]
            off = y.off[n]
            left = largest(left, follow_shift(r, y, n, left))
            y.shift[n] = where_greater(flat, zero, y.shift[n], shift)
            y.before[n] = where_greater(flat, zero, y.before[n], before)
            y.off[n] = where_greater(flat, zero, y.off[n], off)
        for row in range(n, n + max(r.cone[n], 1)):
            y.centre[row] = where_greater(flat, zero, y.linear[row], y.centre[row])
    return left
