"""The convex problem of a step by the method of multipliers: rounds of Newton steps, from ε and λ_k to λ_k+1.

With the shifts held fixed and λ_k given, λ is a function of x: the projection of (ε λ_k - velocity) / (cfm + ε) on
bounds or cone. The step x is the minimum of a convex, piecewise quadratic function, found by Newton's method with an
exact line search; its matrix is H = M̂ + Jᵀ D J with D = 1 / (cfm + ε) where a row is within its bounds, else 0 (for
soft rows alone: Todorov 2014; Castro, Permenter, Han 2022). Then λ_k becomes λ, the proximal point of Rockafellar
(1976), and shifts become those that the velocities call for.

`prepare_island`, `newton_step` and `recentre` serve one robot (T is a float) and packs of 8 (T is 8 lanes); `iterate`
is the loop for one robot, and pack_newton.py has the loop for packs. x is in rad/s or m/s, as are rows' velocities; λ
in N s or N m s.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Pack, Real, Reals1
from artsim.sim.foundation.scalars import inverse_or_zero, largest, least
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import NEWTON_STEPS, NewtonWork, SolverBundle
from artsim.sim.solvers.impulses import add_transposed, hold, project, rows_times, set_gradient
from artsim.sim.solvers.inertia import factorise_with_rows, inertia_of, set_along, solve_island
from artsim.sim.solvers.line_search import EXACT, leap, take
from artsim.sim.solvers.loads import SOFT, are_of_one_pair, forget, loads_are_open
from artsim.sim.solvers.shift import follow_shift, start_shift
from artsim.sim.solvers.tolerance import AT_REST, ENOUGH, TOLERANCE, UNTRIED, largest_speed, rounding

# ε, relative to a row's mobility J M̂⁻¹ Jᵀ
PROXIMAL = 1e-6  # ε at the start
_LEAST_PROXIMAL = 1e-13  # least ε, for rows that agree slowly: a body much heavier than those that a row moves presses
_TIGHTER = 0.01  # factor on ε at each decrease

# ends of a round of Newton steps, and of all rounds
_BALANCED = 1e-13  # share of the largest impulse on a dof by which equations of motion may be off after a single step
_NO_PROGRESS = 0.7  # a step or round that leaves a larger share of the previous residual does not help
_STUCK_STEPS = 4  # unhelpful steps that end a round: the residual is lost in the digits of the impulses
_STALLED_ROUNDS = 8  # unhelpful rounds that end the search: rows contradict each other
_SLOW_AGREEMENT = 0.1  # a round that leaves a larger share of the impulses' residual calls for a smaller ε
_OPEN_DIGITS = 10.0  # tolerances: a smaller impulse residual is rounding, which a smaller ε does not remove
_CANCELLING = 1e5  # times a soft row's impulse: terms so large lose its digits in the first step


# ------------------------------------------------------------------ preparation


@njit
def prepare_island(data: Workspace, rows: Rows, step: Step, solver: SolverBundle, island: int) -> None:
    """Set x = 0 and λ_k = λ of the island, the rows' velocities there, and the constants of its steps, in
    solver.newton: the ε of the rows (eps), inverse = 1 / (cfm + ε) and the velocity that counts as none. O(entries).
    """
    work = solver.newton
    u = step.next
    gained = zero_like(u[0])
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.change[a] = zero_like(u[a])
            work.product[a] = zero_like(u[a])
            gained = largest(absolute(step.free[a]) * inverse_or_zero(inertia_of(data, a, solver)), gained)
    work.resting[island] = least(AT_REST * gained, zero_like(gained) + 1.0)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        mobility = like(0.0, data)
        for row in range(n, n + max(rows.cone[n], 1)):
            mobility = largest(mobility, _mobility(data, rows, row, solver))
        work.eps[n] = mobility
    first = work.unit_start[island]
    while first < work.unit_start[island + 1]:
        last = first + 1
        most = work.eps[work.listed[first]]
        while last < work.unit_start[island + 1] and are_of_one_pair(rows, work.listed[first], work.listed[last]):
            most = largest(most, work.eps[work.listed[last]])
            last += 1
        for entry in range(first, last):
            _prepare_unit(data, rows, u, work, work.listed[entry], most)
        first = last


@njit
def _prepare_unit(data: Workspace, rows: Rows, u: Lanes1, work: NewtonWork, n: int, most: Real) -> None:
    """Set λ_k, velocities and constants of the unit of row n; `most`: the highest mobility among contacts between the
    same bodies.

    Contacts of one pair of bodies share one ε, so that among all impulses that satisfy the rows those with the least
    sum of squares are found.
    """
    mobility = work.eps[n]
    eps = where_greater(rows.cfm[n], SOFT * mobility, like(0.0, data), PROXIMAL * most)
    inverse = inverse_or_zero(rows.cfm[n] + eps)  # 0: the row moves nothing
    rho = inverse_or_zero(mobility)
    rows_times(rows, n, u, work.velocity)
    for row in range(n, n + max(rows.cone[n], 1)):
        work.eps[row] = eps
        work.rho[row] = rho
        work.inverse[row] = inverse
        work.centre[row] = rows.impulse[row]
        work.velocity[row] = work.velocity[row] + rows.bias[row]
    if rows.cone[n] > 1:
        start_shift(rows, work, n)


@inlined
def _mobility(data: Workspace, rows: Rows, n: int, solver: SolverBundle) -> Real:
    """J diag(M̂)⁻¹ Jᵀ of row n [velocity per impulse]: of the order of J M̂⁻¹ Jᵀ, and not above it."""
    value = like(0.0, data)
    for e in range(rows.start[n], rows.stop[n]):
        value = value + rows.value[e] * rows.value[e] / inertia_of(data, rows.column[e], solver)
    return value


# ------------------------------------------------------------------ the Newton step


@njit
def newton_step(
    model: Model, data: Workspace, rows: Rows, step: Step, solver: SolverBundle, island: int, leaps: bool
) -> tuple[Real, Real]:
    """One Newton step of the island: d = -H⁻¹ gradient, x += t d, λ the projection at the new velocities.

    t is found by the line search, or is 1 if the step `leaps`. Returns the distance of the new λ from its linearisation
    (linear in solver.newton), and the tolerance, both T [rad/s or m/s].
    """
    work = solver.newton
    if work.factorised[island] == 0 or _differs(rows, work, island):
        factorise_with_rows(model, data, rows, solver, island)
        work.factorised[island] = 1
    set_gradient(rows, step.free, work, island)
    solve_island(model, data, solver, island)
    set_along(model, data, rows, solver, island)
    _linearise(rows, work, island)
    tolerance = TOLERANCE * largest_speed(step.next, work, island)
    if leaps:
        bent = leap(rows, work, island, zero_like(tolerance))
        if solver.pack is not None and solver.pack.exacting[0] == 1:
            bent = _unless_rounded(rows, step.free, work, island, bent)
    else:
        bent = take(rows, step.free, work, island, tolerance, EXACT)
    return bent, tolerance


@njit
def _unless_rounded(rows: Rows, force: Lanes1, work: NewtonWork, island: int, bent: Pack) -> Pack:
    """`bent`, or more than any tolerance in lanes where the first step lost digits of a soft row's impulse
    (`_is_cancelling`) or of M̂ x = f + Jᵀλ (`_is_balanced`), as in `iterate`.
    """
    zero = zero_like(bent)
    worst = zero - 1.0
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.gradient[a] = work.product[a] - force[a]
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        add_transposed(rows, n, -1.0, work.linear, work.gradient)
        lost = absolute(rows.bias[n]) * work.inverse[n] - _CANCELLING * absolute(work.linear[n])
        lost = where_greater(rows.upper[n], rows.lower[n], lost, zero - 1.0)  # elsewhere the row is of other lanes
        worst = largest(worst, where_greater(work.eps[n], zero, zero, lost))
    off, size = zero, zero
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            off = largest(off, absolute(work.gradient[a]))
            size = largest(size, largest(absolute(work.product[a]), absolute(force[a])))
    worst = largest(worst, off - _BALANCED * size)
    return where_greater(worst, zero, zero + UNTRIED, bent)


@njit
def _differs(rows: Rows, work: NewtonWork, island: int) -> bool:
    """True if any row of the island has a weight other than in the factorised matrix."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if any_positive(absolute(work.weight[n] - work.weight_used[n])):
            return True
        if rows.cone[n] > 1 and any_positive(work.weight1[n]):
            return True  # a cone's edge: its matrix rotates with every step
    return False


@njit
def _linearise(rows: Rows, work: NewtonWork, island: int) -> None:
    """work.linear: λ after the whole step, to first order; with it the equation of motion holds to rounding."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1:
            along = zero_like(work.along[n])
            for row in range(n + 1, n + rows.cone[n]):
                along = along + work.unit[row] * work.along[row]
            work.linear[n] = rows.impulse[n] - (work.weight[n] * work.along[n] + work.weight1[n] * along)
            common = work.weight1[n] * work.along[n] + work.weight2[n] * along
            for row in range(n + 1, n + rows.cone[n]):
                work.linear[row] = rows.impulse[row] - (work.unit[row] * common + work.weight3[n] * work.along[row])
        else:
            work.linear[n] = rows.impulse[n] - work.weight_used[n] * work.along[n]


@njit
def recentre(rows: Rows, work: NewtonWork, island: int, chosen: Real, shifts: bool) -> tuple[Real, Real]:
    """End a round of the island in lanes where `chosen` is 1: λ and λ_k become work.linear, and shifts follow the
    velocities if `shifts`. Returns the motion of the rows by the new impulses, and by impulses and shifts, T [rad/s or
    m/s].
    """
    zero = zero_like(chosen)
    left = zero
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            rows.impulse[row] = where_greater(chosen, zero, work.linear[row], rows.impulse[row])
            left = largest(left, work.eps[row] * absolute(work.linear[row] - work.centre[row]))
    moved = left
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if shifts and rows.cone[n] > 1:
            moved = largest(moved, follow_shift(rows, work, n, left, chosen))
        for row in range(n, n + max(rows.cone[n], 1)):
            work.centre[row] = where_greater(chosen, zero, work.linear[row], work.centre[row])
    return left, moved


# ------------------------------------------------------------------ the loop for a single robot


@njit
def iterate(
    robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int, most: int, shifts: bool, hasty: bool
) -> tuple[float, bool]:
    """Take Newton steps until the rows of the island are solved; return their residual [rad/s or m/s], and True if
    further steps would not help.

    `most`: most steps. `shifts`: True if shifts follow the velocities; in the first step all contacts that carried
    force before then stick. `hasty`: stop if the remaining steps will not suffice.
    """
    data = robot.data
    work = solver.newton
    project(rows, work, island)
    holds = shifts and hold(rows, work, island)
    left, before, still_open = 0.0, UNTRIED, UNTRIED
    ended = False
    shares = shifts and loads_are_open(rows, work, island) > 0.0
    stalled, stuck = 0, 0
    least_bent = UNTRIED
    steps = 0
    while steps < most:
        leaps = holds and steps == 0
        steps += 1
        bent, tolerance = newton_step(robot.model, data, rows, step, solver, island, leaps)
        stuck = stuck + 1 if bent > _NO_PROGRESS * least_bent else 0
        least_bent = min(bent, least_bent)
        rounded = stuck >= _STUCK_STEPS and bent <= ENOUGH * rounding(rows, work, island)
        if rounded or bent <= tolerance:
            stuck, least_bent = 0, UNTRIED
            open_before, (still_open, left) = still_open, recentre(rows, work, island, 1.0, shifts)
            ended = left <= tolerance and (
                steps > 1 or (not _is_cancelling(rows, work, island) and _is_balanced(rows, step.free, work, island))
            )
            if ended:
                break
            # nearly redundant rows converge slowly, contradictory rows never
            slow = still_open > _OPEN_DIGITS * tolerance and still_open > _SLOW_AGREEMENT * open_before
            tightened = slow and _tighten(rows, work, island)
            stalled += 1 if left > _NO_PROGRESS * before else 0
            ended = stalled == _STALLED_ROUNDS or (
                hasty and not tightened and _comes_late(left, before, most - steps, tolerance)
            )
            before = left
            if shares and not ended:
                forget(rows, work, island, 1.0)
                before, still_open = UNTRIED, UNTRIED
            shares = False
            if ended or steps >= most:
                break  # before `project`: the impulses stay those that caused the velocities
            project(rows, work, island)
    work.sizes[NEWTON_STEPS] += steps
    return left if ended else _unfinished(data, rows, step.free, solver, island, left), ended


@njit
def _is_cancelling(rows: Rows, work: NewtonWork, island: int) -> bool:
    """True if a soft row's impulse is a small difference of large terms, whose digits the first step loses."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        lost = abs(rows.bias[n]) * work.inverse[n] - _CANCELLING * abs(rows.impulse[n])
        if work.eps[n] <= 0.0 and lost > 0.0:
            return True
    return False


@njit
def _is_balanced(rows: Rows, force: Reals1, work: NewtonWork, island: int) -> bool:
    """True if M̂ x = f + Jᵀλ holds to rounding, which a first step that is long loses where rows have little
    compliance."""
    set_gradient(rows, force, work, island)
    off, size = 0.0, 0.0
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            off = max(off, abs(work.gradient[a]))
            size = max(size, abs(work.product[a]), abs(force[a]))
    return off <= _BALANCED * size


@inlined
def _comes_late(left: float, before: float, steps: int, tolerance: float) -> bool:
    """True if as many more rounds as good as the last would leave more than the tolerance."""
    then = left
    for _ in range(steps):
        then = then * left / before
    return then > tolerance


@njit
def _unfinished(data: Workspace, rows: Rows, force: Reals1, solver: SolverBundle, island: int, left: float) -> float:
    """The residual where steps run out in a round [rad/s or m/s]: of the rows, and of x from the impulses' effect."""
    work = solver.newton
    set_gradient(rows, force, work, island)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            left = max(work.eps[row] * abs(rows.impulse[row] - work.centre[row]), left)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            left = max(abs(work.direction[a]), left)
            left = max(abs(work.gradient[a]) / inertia_of(data, a, solver), left)
    return left


@njit
def _tighten(rows: Rows, work: NewtonWork, island: int) -> bool:
    """Decrease every ε of the island that is not at its least already; True if there are any."""
    tightened = False
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            if work.eps[row] * work.rho[row] > _LEAST_PROXIMAL:
                tightened = True
                work.eps[row] = _TIGHTER * work.eps[row]
                work.inverse[row] = inverse_or_zero(rows.cfm[row] + work.eps[row])
    return tightened
