"""Block Gauss-Seidel: all rows of a joint are solved together, and so are those of a loop or a tendon.

Sakalauskas, Recoil Notes, 2021, 3.1.2 with 2.3 and 2.4: λ changes by -M_soft (J u + bias + γ λ), M_soft = (J M̂⁻¹ Jᵀ +
γ)⁻¹ of the joint's rows. Bounds make this a small complementarity problem, which block principal pivoting (Júdice and
Pires 1994) solves exactly: guess which rows are at a bound, solve for the others, and correct every row that
contradicts the guess, or only one where that cycles. A tiny proximal term permits redundant rows; repeated sweeps
remove its effect. Contacts are solved as in `pgs`, since a contact solved exactly each time may stick for ever against
a limit.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.kinds import JOINT_TURN
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.run_data.run_records import ALL_ROWS, ITERATIONS, RESIDUAL, Rows, RunBundle
from artsim.sim.run_data.scratch import ASKED_FOR, BLOCK, SOLVE, SolverBundle, SweepWork
from artsim.sim.solvers.published.sweep import cone_turn, delassus_of, prepare_sweeps, push, row_velocity, turn_of

_PROXIMAL = 1e-9  # relative to a row's diagonal entry of the Delassus matrix
_ROUNDS = 60  # most pivoting rounds; one or two are the rule
_PATIENCE = 4  # rounds without progress before single pivots
_TOLERANCE = 1e-14  # relative to the terms that sum to a row's impulse or velocity
_LOWER, _FREE, _UPPER = -1, 0, 1


@njit
def solve_by_block_gs(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """The tasks of block-gs (calls.py)."""
    if solver.call.task[ASKED_FOR] == SOLVE:  # a step is solved once, whatever its retries ask for
        block_gs(robot.model, robot.data, run, rows, solver.sweeps)


@njit
def block_gs(model: Model, data: Workspace, run: RunBundle, rows: Rows, sweeps: SweepWork) -> None:
    """Solve as `pgs` does, in blocks. A block costs O(rows³) where its rows change between bounds and free."""
    step = run.step
    prepare_sweeps(model, data, rows, step, sweeps)
    _divide(model, rows, sweeps)
    change = 0.0
    for _ in range(run.inputs.iterations[0]):
        change = 0.0
        k = 0
        while k < rows.number[ALL_ROWS]:
            n = sweeps.order[k]
            if rows.cone[n] > 0:
                change = max(change, cone_turn(rows, step.next, sweeps, n))
            else:
                change = max(change, _solve_block(rows, step.next, sweeps, k, sweeps.end[k]))
            k = sweeps.end[k]
        rows.report[ITERATIONS] += 1
        if change == 0.0:
            break
    rows.report[RESIDUAL] = change


@njit
def _divide(model: Model, rows: Rows, sweeps: SweepWork) -> None:
    """Set sweeps.end[k], the end of the block that begins at place k of the order, and sweeps.matrix, the block's part
    of the Delassus matrix, J M̂⁻¹ Jᵀ + cfm.
    """
    k = 0
    while k < rows.number[ALL_ROWS]:
        end = k + 1
        while (
            end < rows.number[ALL_ROWS]
            and end - k < BLOCK
            and _belongs(model, rows, sweeps, sweeps.order[k], sweeps.order[end])
        ):
            end += 1
        sweeps.end[k] = end
        sweeps.factorised[k] = 0
        for p in range(k, end):
            n = sweeps.order[p]
            for q in range(k, end):
                sweeps.matrix[p, q - k] = delassus_of(rows, sweeps, n, sweeps.order[q])
            sweeps.matrix[p, p - k] += _PROXIMAL * sweeps.delassus[n] + rows.cfm[n]
            sweeps.state[p] = _LOWER if rows.lower[n] == 0.0 else _FREE
        k = end


@inlined
def _belongs(model: Model, rows: Rows, sweeps: SweepWork, n: int, o: int) -> bool:
    """True if row o is in the block that begins with row n."""
    if rows.cone[n] != 0 or rows.cone[o] != 0:
        together: bool = rows.cone[o] < 0  # a cone's rows keep their order
    else:
        joint = turn_of(rows, n) == JOINT_TURN
        same = rows.kind[n] == rows.kind[o] and rows.dof[n] == rows.dof[o]
        together = sweeps.key[n] // 16 == sweeps.key[o] // 16 and (joint or same)
    return together


@njit
def _begin(rows: Rows, u: Reals1, sweeps: SweepWork, k: int, end: int) -> None:
    """Set sweeps.rest: the velocities of a block's rows without its impulses."""
    for p in range(k, end):
        sweeps.rest[p] = row_velocity(rows, u, sweeps.order[p])
        for q in range(k, end):
            sweeps.rest[p] -= sweeps.matrix[p, q - k] * rows.impulse[sweeps.order[q]]


@njit
def _take(rows: Rows, u: Reals1, sweeps: SweepWork, k: int, end: int) -> float:
    """Change the impulses of a block to sweeps.wanted; return the largest change of its velocities."""
    change = 0.0
    for p in range(k, end):
        n = sweeps.order[p]
        delta = min(max(sweeps.wanted[p], rows.lower[n]), rows.upper[n]) - rows.impulse[n]
        if delta != 0.0:
            rows.impulse[n] += delta
            push(u, sweeps, n, delta)
            change = max(change, abs(delta) * sweeps.matrix[p, p - k])
    return change


@njit
def _solve_block(rows: Rows, u: Reals1, sweeps: SweepWork, k: int, end: int) -> float:
    """Solve the rows at places k ≤ p < end of the order for impulses that satisfy all; return the largest change."""
    _begin(rows, u, sweeps, k, end)
    best = end - k + 1
    patience = _PATIENCE
    for _ in range(_ROUNDS):
        _solve_free(rows, sweeps, k, end)
        wrong = _count_wrong(rows, sweeps, k, end)
        if wrong == 0:
            break
        if wrong < best:
            best = wrong
            patience = _PATIENCE
        else:
            patience -= 1
        _pivot(sweeps, k, end, patience < 0)
        sweeps.factorised[k] = 0
    return _take(rows, u, sweeps, k, end)


@njit
def _solve_free(rows: Rows, sweeps: SweepWork, k: int, end: int) -> None:
    """Set sweeps.wanted to the impulses for sweeps.state, by LDLᵀ of the free rows' matrix, kept until other rows are
    free.
    """
    if sweeps.factorised[k] == 0:
        _factorise_free(sweeps, k, end)
        sweeps.factorised[k] = 1
    L = sweeps.triangle
    for p in range(k, end):
        n = sweeps.order[p]
        sweeps.wanted[p] = 0.0
        if sweeps.state[p] == _LOWER:
            sweeps.wanted[p] = rows.lower[n]
        elif sweeps.state[p] == _UPPER:
            sweeps.wanted[p] = rows.upper[n]
    for p in range(k, end):
        if sweeps.state[p] == _FREE:
            value = -sweeps.rest[p]
            for q in range(k, end):
                if sweeps.state[q] != _FREE:
                    value -= sweeps.matrix[p, q - k] * sweeps.wanted[q]
            for q in range(k, p):
                if sweeps.state[q] == _FREE:
                    value -= L[p, q - k] * sweeps.wanted[q]
            sweeps.wanted[p] = value
    for p in range(end - 1, k - 1, -1):
        if sweeps.state[p] == _FREE:
            value = sweeps.wanted[p] * L[p, p - k]
            for q in range(p + 1, end):
                if sweeps.state[q] == _FREE:
                    value -= L[q, p - k] * sweeps.wanted[q]
            sweeps.wanted[p] = value


@njit
def _factorise_free(sweeps: SweepWork, k: int, end: int) -> None:
    """Set sweeps.triangle: L below the diagonal, 1 / D on it; 0 for a row without mobility."""
    L = sweeps.triangle
    for p in range(k, end):
        if sweeps.state[p] != _FREE:
            continue
        pivot = sweeps.matrix[p, p - k]
        for q in range(k, p):
            if sweeps.state[q] == _FREE:
                value = sweeps.matrix[p, q - k]
                for s in range(k, q):
                    if sweeps.state[s] == _FREE:
                        value -= L[p, s - k] * L[q, s - k] * sweeps.pivot[s]
                L[p, q - k] = value * L[q, q - k]
                pivot -= L[p, q - k] * value
        sweeps.pivot[p] = pivot
        L[p, p - k] = 1.0 / pivot if pivot > 0.0 else 0.0


@inlined
def _right_state(rows: Rows, sweeps: SweepWork, p: int, k: int, end: int) -> int:
    """The state that the row at place p should have, judging by sweeps.wanted."""
    n = sweeps.order[p]
    if sweeps.state[p] == _FREE:
        size = _TOLERANCE * abs(sweeps.wanted[p])
        state = (
            _LOWER
            if sweeps.wanted[p] < rows.lower[n] - size
            else (_UPPER if sweeps.wanted[p] > rows.upper[n] + size else _FREE)
        )
    else:
        value = sweeps.rest[p]
        size = abs(value)
        for q in range(k, end):
            value += sweeps.matrix[p, q - k] * sweeps.wanted[q]
            size = max(size, abs(sweeps.matrix[p, q - k] * sweeps.wanted[q]))
        inward = -value * sweeps.state[p]  # must not be negative at the lower bound, nor positive at the upper one
        state = _FREE if inward < -_TOLERANCE * size and sweeps.matrix[p, p - k] > 0.0 else sweeps.state[p]
    return state


@njit
def _count_wrong(rows: Rows, sweeps: SweepWork, k: int, end: int) -> int:
    """Set sweeps.right to the states that the rows of the block should have; return the number of rows in another
    state."""
    wrong = 0
    for p in range(k, end):
        sweeps.right[p] = _right_state(rows, sweeps, p, k, end)
        if sweeps.right[p] != sweeps.state[p]:
            wrong += 1
    return wrong


@njit
def _pivot(sweeps: SweepWork, k: int, end: int, one: bool) -> None:
    """Correct all states, or only the last wrong one, which terminates for a positive definite matrix (Murty 1974)."""
    for p in range(end - 1, k - 1, -1):
        if sweeps.right[p] != sweeps.state[p]:
            sweeps.state[p] = sweeps.right[p]
            if one:
                return
