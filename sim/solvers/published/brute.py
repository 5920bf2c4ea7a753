"""The brute direct solver: K = J M̂⁻¹ Jᵀ + cfm as a dense matrix, and the rows' conditions solved with it.

Sakalauskas, Recoil Notes, 2021, 3.2.1: slow, to validate the other solvers. The brute solver shares with them only the
rows and M̂'s factor: impulses λ are found such that w = K λ + q, the rows' velocities, is complementary to λ in its
bounds or cone, by a semismooth Newton method on the conditions of Alart and Curnier (1991) with an LU factorisation of
all rows at once. Redundant rows are told apart by a proximal term, whose effect repeated solutions remove.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.dynamics import factorise, solve
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.run_records import ALL_ROWS, ITERATIONS, LASTING_ROWS, RESIDUAL, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import ASKED_FOR, SOLVE_AGAIN, BruteWork, SolverBundle
from artsim.sim.solvers.loads import SHARED, SOFT, are_of_one_pair

_PROXIMAL = 1e-9  # relative to K's diagonal
_STEPS = 60  # of Newton's method; as many as the states of rows change, a few as a rule
_ROUNDS = 4  # of the proximal term, between which sweeps give another start
_SWEEPS = 50
_SOLVED = 1e-13  # residual relative to the largest velocity of a row
_GOOD = 1e-9  # residual, relative to that velocity, of the worst solution whose loads are shared
_EASY = 1e5  # first compliance of contacts that share loads, relative to the last
_ENDING = 3  # rounds that take this compliance away
_SHARP = 1e-17  # residual sought with the last compliance: even a small one leaves loads unequal


@njit
def solve_by_brute(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """The tasks of brute (calls.py)."""
    brute(robot, rows, run.step, solver.dense, solver.call.task[ASKED_FOR] == SOLVE_AGAIN)


@njit
def brute(robot: RobotBundle, rows: Rows, step: Step, work: BruteWork, again: bool) -> None:
    """Solve as `newton` does (newton.py). `again`: with another bias or cfm than in the last call. O(rows³) a
    step."""
    model, data = robot.model, robot.data
    if not again:
        _build(model, data, rows, step, work)
    n = rows.number[ALL_ROWS]
    fastest = 0.0
    for i in range(n):
        work.delassus[i, i] = _entry(rows, work, i, i) + rows.cfm[i]
        work.speed[i] = rows.bias[i]
        for e in range(rows.start[i], rows.stop[i]):
            work.speed[i] += rows.value[e] * work.free[rows.column[e]]
        fastest = max(fastest, abs(work.speed[i]))
    best = math.inf
    for attempt in range(_ROUNDS):
        for _ in range(_SWEEPS if attempt > 0 else 0):
            _sweep(rows, work, n)
        left = _newton(rows, work, n, _SOLVED * fastest)
        if left < best:
            best = left
            for i in range(n):
                work.best[i] = rows.impulse[i]
        if best <= _SOLVED * fastest:
            break
    if best <= _GOOD * fastest and rows.number[ALL_ROWS] > rows.number[LASTING_ROWS]:
        best = _share(rows, work, n, best, fastest)
    for a in range(step.next.shape[0]):
        step.next[a] = work.free[a]
    for i in range(n):
        rows.impulse[i] = work.best[i]
        for a in range(step.next.shape[0]):
            step.next[a] += work.inverse_mass_jacobian[i, a] * rows.impulse[i]
    rows.report[ITERATIONS] += work.steps[0]
    rows.report[RESIDUAL] = best if n > 0 else 0.0


@njit
def _share(rows: Rows, work: BruteWork, n: int, best: float, fastest: float) -> float:
    """Set work.best to the impulses of loads.py, of all that contacts may have; return the residual.

    Solutions for a compliance lead to that for a tenth of it; rounds of the method of multipliers then remove it.
    """
    for i in range(n):
        rows.impulse[i] = work.best[i]
        work.given[i] = work.delassus[i, i]
        work.centre[i] = 0.0
    give = _EASY
    while give > 0.5:
        for i in range(n):
            work.delassus[i, i] = work.given[i] + give * work.share[i]
        _newton(rows, work, n, (_SOLVED if give > 1.5 else _SHARP) * fastest)
        give *= 0.1
    for _ in range(_ENDING):
        for i in range(n):
            work.speed[i] -= work.share[i] * (rows.impulse[i] - work.centre[i])
            work.centre[i] = rows.impulse[i]
        _newton(rows, work, n, _SOLVED * fastest)
    for i in range(n):
        work.speed[i] += work.share[i] * work.centre[i]
        work.delassus[i, i] = work.given[i]
    left = _residual(rows, work, n)
    if left <= max(best, _SOLVED * fastest):
        best = left
        for i in range(n):
            work.best[i] = rows.impulse[i]
    return best


@njit
def _set_shares(data: Workspace, rows: Rows, work: BruteWork) -> None:
    """Set work.share (rows,): the compliance with which contacts share loads, from diag(M̂); one value for all contacts
    of two bodies."""
    first, n = 0, rows.number[ALL_ROWS]
    while first < n:
        last, most = first, 0.0
        while last < n and (last == first or are_of_one_pair(rows, first, last)):
            for i in range(last, last + max(rows.cone[last], 1)):
                mobility = 0.0
                for e in range(rows.start[i], rows.stop[i]):
                    mobility += rows.value[e] * rows.value[e] / data.factor[rows.column[e], rows.column[e]]
                most = max(most, mobility)
            last += max(rows.cone[last], 1)
        for i in range(first, last):
            work.share[i] = SHARED * most if rows.cfm[i] <= SOFT * most else 0.0
        first = last


@njit
def _build(model: Model, data: Workspace, rows: Rows, step: Step, work: BruteWork) -> None:
    """Set work.free (nu,), the velocities without rows, M̂⁻¹ Jᵀ line by line, and K."""
    _set_shares(data, rows, work)
    factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)
    solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, step.free)
    for a in range(step.next.shape[0]):
        work.free[a] = step.next[a] + step.free[a]
    for i in range(rows.number[ALL_ROWS]):
        x = work.inverse_mass_jacobian[i]
        for a in range(x.shape[0]):
            x[a] = 0.0
        for e in range(rows.start[i], rows.stop[i]):
            x[rows.column[e]] += rows.value[e]
        solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, x)
        for j in range(rows.number[ALL_ROWS]):
            work.delassus[j, i] = _entry(rows, work, j, i)
    work.steps[0] = 0


@njit
def _entry(rows: Rows, work: BruteWork, j: int, i: int) -> float:
    """Entry (j, i) of J M̂⁻¹ Jᵀ."""
    value = 0.0
    for e in range(rows.start[j], rows.stop[j]):
        value += rows.value[e] * work.inverse_mass_jacobian[i, rows.column[e]]
    return value


@njit
def _velocity(rows: Rows, work: BruteWork, i: int, n: int) -> float:
    """w of row i."""
    value = work.speed[i]
    for j in range(n):
        value += work.delassus[i, j] * rows.impulse[j]
    return value


@njit
def _scale(work: BruteWork, i: int) -> float:
    """A row's mobility, by which velocities and impulses are compared; 1 for a row that moves nothing."""
    return work.delassus[i, i] if work.delassus[i, i] > 0.0 else 1.0


@njit
def _residual(rows: Rows, work: BruteWork, n: int) -> float:
    """Set work.velocity to w; return the residual of the rows' conditions [rad/s or m/s]."""
    for i in range(n):
        work.velocity[i] = _velocity(rows, work, i, n)
    left = 0.0
    i = 0
    while i < n:
        scale = _scale(work, i)
        if rows.cone[i] == 0:
            to = min(max(rows.impulse[i] - work.velocity[i] / scale, rows.lower[i]), rows.upper[i])
            if work.delassus[i, i] > 0.0:
                left = max(left, abs(rows.impulse[i] - to) * scale)
            i += 1
            continue
        last = i + rows.cone[i]
        left = max(left, abs(rows.impulse[i] - max(rows.impulse[i] - work.velocity[i] / scale, 0.0)) * scale)
        common = _common_scale(work, i, last)
        share = _disc_share(rows, work, i, last, common)
        for k in range(i + 1, last):
            to = share * (rows.impulse[k] - work.velocity[k] / common)
            left = max(left, abs(rows.impulse[k] - to) * common)
        i = last
    return left


@njit
def _common_scale(work: BruteWork, i: int, last: int) -> float:
    """The scale shared by the tangential rows of the cone at row i."""
    common = 0.0
    for k in range(i + 1, last):
        common = max(common, work.delassus[k, k])
    return common if common > 0.0 else 1.0


@njit
def _disc_share(rows: Rows, work: BruteWork, i: int, last: int, scale: float) -> float:
    """The factor that brings λ_t - w_t / scale into the disc slope · λ_n."""
    square = 0.0
    for k in range(i + 1, last):
        wanted = rows.impulse[k] - work.velocity[k] / scale
        square += wanted * wanted
    most = rows.slope[i] * max(rows.impulse[i], 0.0)
    return most / math.sqrt(square) if square > most * most else 1.0


@njit
def _newton(rows: Rows, work: BruteWork, n: int, enough: float) -> float:
    """Change rows.impulse by semismooth Newton steps; return the residual [rad/s or m/s]."""
    left = _residual(rows, work, n)
    best = left
    for i in range(n):
        work.kept[i] = rows.impulse[i]
    for _ in range(_STEPS):
        if best <= enough:
            break
        _linearise(rows, work, n)
        _factorise_dense(work, n)
        _solve_dense(work, n)
        for i in range(n):
            rows.impulse[i] += work.right[i]
        work.steps[0] += 1
        left = _residual(rows, work, n)
        if left < best:
            best = left
            for i in range(n):
                work.kept[i] = rows.impulse[i]
    for i in range(n):
        rows.impulse[i] = work.kept[i]
    return best


@njit
def _linearise(rows: Rows, work: BruteWork, n: int) -> None:
    """Set work.matrix and work.right: the Newton step's system for the states that the rows have now."""
    i = 0
    while i < n:
        if rows.cone[i] == 0:
            scale = _scale(work, i)
            wanted = rows.impulse[i] - work.velocity[i] / scale
            if wanted < rows.lower[i]:
                _set_known(work, i, n, rows.lower[i] - rows.impulse[i])
            elif wanted > rows.upper[i]:
                _set_known(work, i, n, rows.upper[i] - rows.impulse[i])
            else:
                _set_free(work, i, n)
            i += 1
        else:
            _linearise_cone(rows, work, i, n)
            i += rows.cone[i]


@njit
def _set_known(work: BruteWork, i: int, n: int, change: float) -> None:
    """Row i takes an impulse that is known."""
    for j in range(n):
        work.matrix[i, j] = 0.0
    work.matrix[i, i] = 1.0
    work.right[i] = change


@njit
def _set_free(work: BruteWork, i: int, n: int) -> None:
    """Row i loses its velocity."""
    scale = _scale(work, i)
    for j in range(n):
        work.matrix[i, j] = work.delassus[i, j] / scale
    work.matrix[i, i] += _PROXIMAL if work.delassus[i, i] > 0.0 else 1.0
    work.right[i] = -work.velocity[i] / scale if work.delassus[i, i] > 0.0 else 0.0


@njit
def _linearise_cone(rows: Rows, work: BruteWork, i: int, n: int) -> None:
    """The conditions of a contact: open, sticking, or sliding, where the friction's direction turns with the slip."""
    last = i + rows.cone[i]
    if rows.impulse[i] - work.velocity[i] / _scale(work, i) <= 0.0:
        for k in range(i, last):
            _set_known(work, k, n, -rows.impulse[k])
        return
    _set_free(work, i, n)
    scale = _common_scale(work, i, last)
    square = 0.0
    for k in range(i + 1, last):
        wanted = rows.impulse[k] - work.velocity[k] / scale
        square += wanted * wanted
    size = math.sqrt(square)
    normal = max(rows.impulse[i], 0.0)
    most = rows.slope[i] * normal
    if size <= most:
        for k in range(i + 1, last):
            _set_free(work, k, n)
        return
    for k in range(i + 1, last):  # λ_k = most d_k / |d| with d = λ_t - w_t / scale
        dk = rows.impulse[k] - work.velocity[k] / scale
        for j in range(n):
            work.matrix[k, j] = 0.0
        work.matrix[k, k] += 1.0
        for m in range(i + 1, last):
            dm = rows.impulse[m] - work.velocity[m] / scale
            turn = most / size * ((1.0 if k == m else 0.0) - dk * dm / square)
            work.matrix[k, m] -= turn
            for j in range(n):
                work.matrix[k, j] += turn * work.delassus[m, j] / scale
        work.matrix[k, i] -= rows.slope[i] * dk / size
        work.right[k] = most * dk / size - rows.impulse[k]


@njit
def _factorise_dense(work: BruteWork, n: int) -> None:
    """LU of work.matrix with partial pivoting, in place."""
    A, order = work.matrix, work.order
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        order[k] = pivot
        if pivot != k:
            for j in range(n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
        inverse = 1.0 / A[k, k] if A[k, k] != 0.0 else 0.0
        for i in range(k + 1, n):
            A[i, k] *= inverse
            if A[i, k] != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= A[i, k] * A[k, j]


@njit
def _solve_dense(work: BruteWork, n: int) -> None:
    """work.right = A⁻¹ work.right."""
    A, x = work.matrix, work.right
    for k in range(n):
        pivot = work.order[k]
        if pivot != k:
            x[k], x[pivot] = x[pivot], x[k]
    for i in range(n):
        for j in range(i):
            x[i] -= A[i, j] * x[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= A[i, j] * x[j]
        x[i] = x[i] / A[i, i] if A[i, i] != 0.0 else 0.0


@njit
def _sweep(rows: Rows, work: BruteWork, n: int) -> None:
    """A Gauss-Seidel sweep, for a start from which Newton's method finds the states of rows."""
    i = 0
    while i < n:
        if rows.cone[i] == 0:
            if work.delassus[i, i] > 0.0:
                wanted = rows.impulse[i] - _velocity(rows, work, i, n) / work.delassus[i, i]
                rows.impulse[i] = min(max(wanted, rows.lower[i]), rows.upper[i])
            i += 1
            continue
        last = i + rows.cone[i]
        rows.impulse[i] = max(rows.impulse[i] - _velocity(rows, work, i, n) / _scale(work, i), 0.0)
        scale = 2.0 * _common_scale(work, i, last)
        for k in range(i + 1, last):
            work.velocity[k] = _velocity(rows, work, k, n)
        share = _disc_share(rows, work, i, last, scale)
        for k in range(i + 1, last):
            rows.impulse[k] = share * (rows.impulse[k] - work.velocity[k] / scale)
        i = last
