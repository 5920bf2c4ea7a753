"""Regularised contacts, one by one and in crowds: hard contacts that yield a little to changes of their impulses.

The velocity of a contact may deviate by a share of its mobility times the change of its impulse from the step before.

Regularisation is one round of the method of multipliers per step, which a resting contact does not feel. Penetration
may be held by friction (a ball wedged into a corner), so that no impulses separate it, or only unbounded ones; and many
contacts that carry each other are hard to solve to the last digit. Part of the normal impulses is discarded each step,
so that they cannot grow without bound; since less is kept than was taken, no energy is gained.

rows.regularised counts, at a contact's first row, the consecutive steps in which the contact has been regularised.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import NewtonWork, SolverBundle
from artsim.sim.solvers.attempts import CLOSE, attempt, begin, is_articulated, warm_start
from artsim.sim.solvers.crowd import SOLVED_CROWD, SOLVED_FEW, has_hard_contacts, sweep_crowd
from artsim.sim.solvers.loads import are_of_one_pair
from artsim.sim.solvers.tolerance import (
    TOLERANCE,
    UNBOUNDED,
    UNTRIED,
    demanded_impulse,
    is_solved,
    largest_speed,
    natural_impulse,
)

_GIVE = (0.01, 0.1, 1.0)  # levels of regularisation, relative to a row's mobility: the next if one is not solved
_LEVELS = 2  # number of these levels for islands that are no crowds
_KEPT = 0.9  # share of the previous normal impulse that is the preload of a regularised contact
_KEPT_IF_SOFTER = math.sqrt(_GIVE[0] / _GIVE[1])  # share of every previous impulse, per larger regularisation
_HALTED = 1e-9  # of the largest velocity: a contact that gets deeper more slowly counts as at rest
_THROWING = 100.0  # times the impulse demanded: larger warm-start impulses, a little rotated, would inject energy
_RETRY_STEPS = 64  # interval at which regularised contacts are tried as hard ones
_EARLY_RETRIES = (8, 16, 32)  # numbers of steps after which they are tried, too
_NEAR = (0, 30, CLOSE)  # effort of an attempt from the previous impulses
_SWEPT = (100, 30, CLOSE)  # effort of an attempt from the result of sweeps
_CROWD_SWEEPS = 300  # iterations of crowd.py at most, for each softness


@njit
def regularise(
    robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int, tolerance: float, sinking: float
) -> float:
    """Solve Coulomb's law of the island with regularised contacts; return the residual of its rows [rad/s or m/s].

    A solution in which a contact goes deeper faster than `sinking` [m/s] does not count: the load is too heavy for the
    contact.

    Turn: in strategies.py first with sinking 0 and few units, then with more of articulated robots. Costs: 200 sweeps
    and 120 Coulomb steps. Gives up: after two softnesses with up to two attempts each; contacts are hard again then.
    Needed by test_strategies.py::test_what_friction_holds_against_a_limit_gives_way (sinking 0) and
    test_contact_hard.py::test_a_crowded_box_of_balls (more).
    """
    data = robot.data
    work = solver.newton
    left = UNTRIED
    near = is_articulated(robot.model, work, island) or steps_regularised(rows, work, island) > 0
    _forget_unnatural(data, rows, step, work, island, tolerance)
    for level in range(_LEVELS):
        _soften(rows, work, island, level, False)
        limit = natural_impulse(data, rows, step, work, island, tolerance)
        left = UNTRIED
        if near:
            left = attempt(robot, rows, step, solver, island, tolerance, limit, _NEAR)
        if not is_solved(left, tolerance):
            left = attempt(robot, rows, step, solver, island, tolerance, limit, _SWEPT)
        if is_solved(left, tolerance):
            if not _sinks(rows, work, island, level, sinking + _HALTED * largest_speed(step.next, work, island)):
                mark_regularised(rows, work, island, steps_regularised(rows, work, island) + 1)
                break
            left = UNTRIED
        _harden(rows, work, island, level, False)
    return left


@njit
def regularise_crowd(model: Model, data: Workspace, rows: Rows, step: Step, solver: SolverBundle, island: int) -> float:
    """Solve Coulomb's law of the island, a crowd, with regularised contacts; return the residual of its rows [rad/s or
    m/s], at most the tolerance if it succeeds: SOLVED_CROWD, and SOLVED_FEW for fewer units. If hard contacts with a
    little regularisation are not solved, all contacts are regularised, and more.

    Turn: of a crowd whose contacts are not solved as they are, or were not lately; of fewer free bodies that nothing
    else solves, even nearly. Costs: thrice 300 iterations of crowd.py, 50 as a rule. Gives up: never. Needed by
    test_crowd.py::test_a_crowd_of_grains.
    """
    work = solver.newton
    tolerance = SOLVED_CROWD if work.crowded[island] == 1 else SOLVED_FEW
    _forget_unnatural(data, rows, step, work, island, TOLERANCE * largest_speed(step.next, work, island))
    warm_start(rows, work, island)
    left = UNTRIED
    first = 0 if has_hard_contacts(rows, work, island) else 1
    for level in range(first, len(_GIVE)):
        if level > first:
            _harden(rows, work, island, level - 1, True)
        _soften(rows, work, island, level, True)
        begin(model, data, rows, step, solver, island)
        left = sweep_crowd(model, data, rows, work, island, tolerance, _CROWD_SWEEPS)
        if left <= tolerance:
            break
    mark_regularised(rows, work, island, steps_regularised(rows, work, island) + 1)
    return left


@njit
def _forget_unnatural(data: Workspace, rows: Rows, step: Step, work: NewtonWork, island: int, tolerance: float) -> None:
    """Zero warm-start impulses of contacts that are large enough to inject energy when slightly rotated."""
    if natural_impulse(data, rows, step, work, island, tolerance) < UNBOUNDED:
        most = _THROWING * demanded_impulse(rows, data, step, work, island, tolerance)
        for entry in range(work.unit_start[island], work.unit_start[island + 1]):
            n = work.listed[entry]
            for row in range(n, n + max(rows.cone[n], 1)):
                if abs(work.first[row]) > most:
                    work.first[row] = 0.0


# ------------------------------------------------------------------ softness


@njit
def _soften(rows: Rows, work: NewtonWork, island: int, level: int, crowd: bool) -> None:
    """Regularise hard contacts of the island by the share _GIVE[level] of their mobility, from their preload; `crowd`:
    True if the island is a crowd, whose soft contacts are included from the second level on, and in which several
    contacts of two bodies together give way as a single one would."""
    first = work.unit_start[island]
    while first < work.unit_start[island + 1]:
        last = first + 1
        if crowd:
            while last < work.unit_start[island + 1] and are_of_one_pair(rows, work.listed[first], work.listed[last]):
                last += 1
        for entry in range(first, last):
            n = work.listed[entry]
            if rows.kind[n] == CONTACT_ROW:
                give = (last - first) * _GIVE[level] * inverse_or_zero(work.rho[n])
                if work.given[n] > 0.0 and not (crowd and level > 0):
                    give = 0.0
                for row in range(n, n + max(rows.cone[n], 1)):
                    rows.cfm[row] = rows.cfm[row] + give
                    rows.bias[row] = rows.bias[row] - give * _preload(rows, work, n, row, level, crowd)
        first = last


@njit
def _harden(rows: Rows, work: NewtonWork, island: int, level: int, crowd: bool) -> None:
    """Undo `_soften`."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            give = rows.cfm[row] - work.given[row]
            rows.bias[row] = rows.bias[row] + give * _preload(rows, work, n, row, level, crowd)
            rows.cfm[row] = work.given[row]


@inlined
def _preload(rows: Rows, work: NewtonWork, n: int, row: int, level: int, crowd: bool) -> float:
    """The impulse [N s or N m s] about which a contact is regularised; 0 for a contact that was not regularised before.

    λ·v = give λ·(preload - λ) ≤ give / 2 (preload² - λ²): a regularised contact returns at most the energy that it took
    before, as a spring does. No part of a hard contact's impulse is therefore kept, and a smaller part at the larger
    regularisation. In a crowd only contacts that remove penetration lose part of their impulses, which would otherwise
    grow; the loss would make all other contacts sink.
    """
    pushes = rows.rate[n] * rows.error[n] < 0.0
    kept = (_KEPT if row == n and (pushes or not crowd) else 1.0) * _KEPT_IF_SOFTER**level
    return kept * work.first[row] if rows.regularised[n] > 0 else 0.0


@njit
def _sinks(rows: Rows, work: NewtonWork, island: int, level: int, sinking: float) -> bool:
    """True if a regularised contact gets deeper faster than `sinking` [m/s]: the load is too heavy for it.

    For a contact that penetrates already, only getting deeper counts, not a slower removal of its penetration.
    """
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.kind[n] == CONTACT_ROW:
            give = rows.cfm[n] - work.given[n]
            inside = rows.rate[n] * min(rows.error[n], 0.0)
            if inside - work.velocity[n] - give * _preload(rows, work, n, n, level, False) > sinking:
                return True
    return False


# ------------------------------------------------------------------ duration


@njit
def steps_regularised(rows: Rows, work: NewtonWork, island: int) -> int:
    """The longest number of steps for which contacts of the island have been regularised."""
    most = 0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        most = max(most, int(rows.regularised[work.listed[entry]]))
    return most


@njit
def mark_regularised(rows: Rows, work: NewtonWork, island: int, steps: int) -> None:
    """Note that contacts of the island have been regularised for `steps` steps."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        rows.regularised[n] = float(steps) if rows.kind[n] == CONTACT_ROW else 0.0


@inlined
def is_retried(steps: int, crowd: bool) -> bool:
    """True if contacts that have been regularised for `steps` steps (0: not at all) are tried as hard ones; those of a
    crowd, in which a trial takes longer, are tried less often.
    """
    return steps % _RETRY_STEPS == 0 or (steps in _EARLY_RETRIES and not crowd)
