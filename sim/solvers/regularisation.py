"""Contacts that give way: a hard contact's velocity may differ by a share of its mobility times what its impulse
changes from the step before.

That is one round of the method of multipliers for each step, which what rests does not feel. What is to be brought
apart can be what friction holds together (a ball wedged into a corner): no impulses do it, or there is no end to them.
And many contacts that carry each other are hard to solve to the last digit. Normal impulses are partly forgotten, so
that they cannot grow for ever; with less kept than taken, no energy is made.

rows.regularised counts, at a contact's first row, for how many steps in a row it has given way.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.solvers.attempts import CLOSE, attempt, is_articulated, restart
from artsim.sim.solvers.conjugate import descend
from artsim.sim.solvers.shift import move_shifts, slid_before
from artsim.sim.solvers.tolerance import (
    ABSURD,
    TOLERANCE,
    UNTRIED,
    demanded_impulse,
    is_solved,
    largest_speed,
    natural_impulse,
)

_GIVE = (0.01, 0.1)  # of a row's mobility: how much a contact gives way, at first and where that is not solved
_KEPT = 0.9  # of the normal impulse before, from which a contact gives way
_KEPT_IF_SOFTER = math.sqrt(_GIVE[0] / _GIVE[1])  # of every impulse before, where it gives way by the larger share
_HALTED = 1e-9  # [m/s] a contact that goes deeper no faster goes nowhere
_THROWING = 100.0  # times the impulse demanded: larger ones that came in would throw things about, a little turned
_RETRY_STEPS = 64  # so often contacts that give way are tried as hard ones
_EARLY_RETRIES = (8, 16, 32)  # and after so many steps
_NEAR = (0, 30, CLOSE)  # effort of an attempt from the impulses before
_SWEPT = (100, 30, CLOSE)  # effort of an attempt from where sweeps lead

# crowds
_CROWD_STEPS = 150  # of conjugate gradients at most, for each guess of the shifts
_CROWD_TOLERANCE = 1e-6  # of the largest velocity
_CROWD_GUESSES = 4  # of the shifts at most
_CROWD_NEAR = 1e-3  # of the largest velocity: shifts that are so near the ones wanted are as good


@njit
def regularise(robot: Any, rows: Any, step: Any, solver: Any, k: Any, tolerance: Any, sinking: Any) -> Any:
    """Solve Coulomb's law of island k with contacts that give way; what is left of its rows [rad/s or m/s].

    A solution in which a contact goes deeper faster than `sinking` [m/s] does not count: what presses is too heavy for
    what gives way.

    Turn: in strategies.py first with sinking 0 and few units, then with more. Costs: 200 sweeps and 120 Coulomb steps.
    Gives up: after two softnesses with up to two attempts each; contacts are hard again then. Needed by
    test_strategies.py::test_what_friction_holds_against_a_limit_gives_way (sinking 0) and
    test_contact_hard.py::test_a_crowded_box_of_balls (more).
    """
    data = robot.data
    work = solver.newton
    left = UNTRIED
    near = is_articulated(robot.model, work, k) or steps_regularised(rows, work, k) > 0
    _forget_unnatural(data, rows, step, work, k, tolerance)
    for level in range(len(_GIVE)):
        _soften(rows, work, k, level)
        limit = natural_impulse(data, rows, step, work, k, tolerance)
        left = UNTRIED
        if near:
            left = attempt(robot, rows, step, solver, k, tolerance, limit, _NEAR)
        if not is_solved(left, tolerance):
            left = attempt(robot, rows, step, solver, k, tolerance, limit, _SWEPT)
        if is_solved(left, tolerance):
            if not _sinks(rows, work, k, level, sinking):
                mark_regularised(rows, work, k, steps_regularised(rows, work, k) + 1)
                break
            left = UNTRIED
        _harden(rows, work, k, level)
    return left


@njit
def regularise_crowd(model: Any, data: Any, rows: Any, step: Any, solver: Any, k: Any) -> Any:
    """Solve the convex problem of island k with contacts that give way, for a few guesses of the shifts; what is left
    of Coulomb's law [rad/s or m/s].

    The first guess is the shifts of the step's start, the next are those found. Whatever the shifts are, the convex
    problem has its minimum, and sliding takes energy: λ·v = -(shift) λ_n.

    Turn: of a crowd, after one attempt with hard contacts every 64 steps. Costs: four times 150 steps of conjugate
    gradients. Gives up: never. Needed by test_conjugate.py::test_a_crowd_of_grains.
    """
    work = solver.newton
    _forget_unnatural(data, rows, step, work, k, TOLERANCE * largest_speed(step.next, work, k))
    _soften(rows, work, k, 0)
    restart(model, data, rows, step, solver, k)
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.cone[n] > 1 and not slid_before(rows, work, n):
            work.shift[n] = 0.0
    left = 0.0
    for guess in range(_CROWD_GUESSES):
        speed = largest_speed(step.next, work, k)
        left = descend(model, data, rows, step.free, work, k, _CROWD_TOLERANCE * speed, _CROWD_STEPS)
        left = max(move_shifts(rows, work, k), left)
        if guess > 0 and left <= _CROWD_NEAR * speed:
            break
    mark_regularised(rows, work, k, steps_regularised(rows, work, k) + 1)
    return left


@njit
def _forget_unnatural(data: Any, rows: Any, step: Any, work: Any, k: Any, tolerance: Any) -> None:
    """Zero impulses that came in and are large enough to inject energy, a little turned; of contacts alone."""
    if natural_impulse(data, rows, step, work, k, tolerance) < ABSURD:
        most = _THROWING * demanded_impulse(data, step, work, k, tolerance)
        for q in range(work.unit_start[k], work.unit_start[k + 1]):
            n = work.listed[q]
            for row in range(n, n + max(rows.cone[n], 1)):
                if abs(work.first[row]) > most:
                    work.first[row] = 0.0


# ------------------------------------------------------------------ softness


@njit
def _soften(rows: Any, work: Any, k: Any, level: Any) -> None:
    """Let hard contacts of island k give way by the share _GIVE[level] of their mobility, from their preload."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.kind[n] == CONTACT_ROW:
            give = _GIVE[level] * inverse_or_zero(work.rho[n])
            if work.given[n] > 0.0:
                give = 0.0
            for row in range(n, n + max(rows.cone[n], 1)):
                rows.cfm[row] = rows.cfm[row] + give
                rows.bias[row] = rows.bias[row] - give * _preload(rows, work, n, row, level)


@njit
def _harden(rows: Any, work: Any, k: Any, level: Any) -> None:
    """Undo `_soften`."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            give = rows.cfm[row] - work.given[row]
            rows.bias[row] = rows.bias[row] + give * _preload(rows, work, n, row, level)
            rows.cfm[row] = work.given[row]


@inlined
def _preload(rows: Any, work: Any, n: Any, row: Any, level: Any) -> Any:
    """The impulse [N s or N m s] from which a contact gives way; 0 where it did not give way before.

    λ·v = give λ·(preload - λ) ≤ give / 2 (preload² - λ²): what it gives back is what it took before, as a spring does.
    So nothing of a hard contact's impulse is kept, and less where it gives way by more.
    """
    kept = (_KEPT if row == n else 1.0) * (_KEPT_IF_SOFTER if level > 0 else 1.0)
    return kept * work.first[row] if rows.regularised[n] > 0 else 0.0


@njit
def _sinks(rows: Any, work: Any, k: Any, level: Any, sinking: Any) -> bool:
    """Whether a contact that gives way goes deeper faster than `sinking` [m/s]: what presses is too heavy for it.

    Of a contact that is inside already it counts whether it goes deeper, not by how much slower it is brought out.
    """
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.kind[n] == CONTACT_ROW:
            give = rows.cfm[n] - work.given[n]
            inside = rows.rate[n] * min(rows.error[n], 0.0)
            if inside - work.velocity[n] - give * _preload(rows, work, n, n, level) > sinking + _HALTED:
                return True
    return False


# ------------------------------------------------------------------ for how long


@njit
def steps_regularised(rows: Any, work: Any, k: Any) -> Any:
    """For how many steps contacts of island k have given way, the longest."""
    most = 0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        most = max(most, rows.regularised[work.listed[q]])
    return most


@njit
def mark_regularised(rows: Any, work: Any, k: Any, steps: Any) -> None:
    """Note that contacts of island k have given way for so many steps."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        rows.regularised[n] = steps if rows.kind[n] == CONTACT_ROW else 0


@inlined
def is_retried(steps: Any, crowd: Any) -> bool:
    """Whether contacts that have given way for so many steps, or none, are tried as hard ones; a crowd takes longer to
    try."""
    retried: bool = steps % _RETRY_STEPS == 0 or (steps in _EARLY_RETRIES and not crowd)
    return retried
