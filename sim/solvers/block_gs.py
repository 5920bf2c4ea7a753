"""Block Gauss-Seidel: all rows of a joint have their turn together, and so have those of a loop or a tendon.

Seed 001, 3.1.2 with 2.3 and 2.4: λ changes by -M_soft (J u + bias + γ λ), M_soft = (J M̂⁻¹ Jᵀ + γ)⁻¹ of the joint's
rows. Bounds make of that a small complementarity problem. It is solved exactly, by block principal pivoting (Júdice and
Pires 1994): guess which rows are at a bound, solve for the others, put right all that contradicts the guess, or one at
a time where that goes in circles. A tiny proximal term lets rows say the same thing twice; repeated sweeps undo it.
Contacts have their turns as in `pgs`: one that is solved to the end each time can stick for ever against a limit.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.run import BLOCK
from artsim.sim.solvers.sweep import JOINT, answer_of, cone_turn, group_of, prepare, push, row_velocity

_PROXIMAL = 1e-9  # of a row's mobility
_ROUNDS = 60  # of pivots at most; one or two are the rule
_PATIENCE = 4  # rounds without progress before single pivots
_TOLERANCE = 1e-14
_LOWER, _FREE, _UPPER = -1, 0, 1


@njit
def block_gs(m: Any, w: Any, i: Any, r: Any, force: Any, u: Any, y: Any) -> None:
    """As `pgs`, in blocks."""
    prepare(m, w, r, force, u, y)
    _divide(m, r, y)
    change = 0.0
    for _ in range(i.iterations[0]):
        change = 0.0
        k = 0
        while k < r.number[0]:
            n = y.order[k]
            if r.cone[n] > 0:
                change = max(change, cone_turn(r, u, y, n))
            else:
                change = max(change, _solve_block(r, u, y, k, y.end[k]))
            k = y.end[k]
        r.report[0] += 1
        if change == 0.0:
            break
    r.report[1] = change


@njit
def _divide(m: Any, r: Any, y: Any) -> None:
    """y.end[k]: where the block that begins at place k of the order ends; y.matrix: its rows' A = J M̂⁻¹ Jᵀ + cfm."""
    k = 0
    while k < r.number[0]:
        end = k + 1
        while end < r.number[0] and end - k < BLOCK and _belongs(m, r, y, y.order[k], y.order[end]):
            end += 1
        y.end[k] = end
        y.factorised[k] = 0
        for p in range(k, end):
            n = y.order[p]
            for q in range(k, end):
                y.matrix[p, q - k] = answer_of(r, y, n, y.order[q])
            y.matrix[p, p - k] += _PROXIMAL * y.effective[n] + r.cfm[n]
            y.state[p] = _LOWER if r.lower[n] == 0.0 else _FREE
        k = end


@inlined
def _belongs(m: Any, r: Any, y: Any, n: Any, o: Any) -> bool:
    """Whether row o is in the block that begins with row n."""
    if r.cone[n] != 0 or r.cone[o] != 0:
        together: bool = r.cone[o] < 0  # a cone's rows keep their order
    else:
        joint = group_of(r, n) == JOINT + 1
        same = r.kind[n] == r.kind[o] and r.dof[n] == r.dof[o]
        together = y.key[n] // 16 == y.key[o] // 16 and (joint or same)
    return together


@njit
def _begin(r: Any, u: Any, y: Any, k: Any, end: Any) -> None:
    """y.rest: the velocities of a block's rows without its impulses."""
    for p in range(k, end):
        y.rest[p] = row_velocity(r, u, y.order[p])
        for q in range(k, end):
            y.rest[p] -= y.matrix[p, q - k] * r.impulse[y.order[q]]


@njit
def _take(r: Any, u: Any, y: Any, k: Any, end: Any) -> Any:
    """Change the impulses of a block to y.wanted; by how much its velocities change at most."""
    change = 0.0
    for p in range(k, end):
        n = y.order[p]
        delta = min(max(y.wanted[p], r.lower[n]), r.upper[n]) - r.impulse[n]
        if delta != 0.0:
            r.impulse[n] += delta
            push(u, y, n, delta)
            change = max(change, abs(delta) * y.matrix[p, p - k])
    return change


@njit
def _solve_block(r: Any, u: Any, y: Any, k: Any, end: Any) -> Any:
    """The rows at places k ≤ p < end of the order: impulses that fit all of them. Returns the largest change."""
    _begin(r, u, y, k, end)
    best = end - k + 1
    patience = _PATIENCE
    for _ in range(_ROUNDS):
        _solve_free(r, y, k, end)
        wrong = _count_wrong(r, y, k, end)
        if wrong == 0:
            break
        if wrong < best:
            best = wrong
            patience = _PATIENCE
        else:
            patience -= 1
        _pivot(y, k, end, patience < 0)
        y.factorised[k] = 0
    return _take(r, u, y, k, end)


@njit
def _solve_free(r: Any, y: Any, k: Any, end: Any) -> None:
    """y.wanted: the impulses if y.state is right. LDLᵀ of the free rows' matrix, kept while they stay the same."""
    if y.factorised[k] == 0:
        _factorise_free(y, k, end)
        y.factorised[k] = 1
    L = y.triangle
    for p in range(k, end):
        n = y.order[p]
        y.wanted[p] = 0.0
        if y.state[p] == _LOWER:
            y.wanted[p] = r.lower[n]
        elif y.state[p] == _UPPER:
            y.wanted[p] = r.upper[n]
    for p in range(k, end):
        if y.state[p] == _FREE:
            value = -y.rest[p]
            for q in range(k, end):
                if y.state[q] != _FREE:
                    value -= y.matrix[p, q - k] * y.wanted[q]
            for q in range(k, p):
                if y.state[q] == _FREE:
                    value -= L[p, q - k] * y.wanted[q]
            y.wanted[p] = value
    for p in range(end - 1, k - 1, -1):
        if y.state[p] == _FREE:
            value = y.wanted[p] * L[p, p - k]
            for q in range(p + 1, end):
                if y.state[q] == _FREE:
                    value -= L[q, p - k] * y.wanted[q]
            y.wanted[p] = value


@njit
def _factorise_free(y: Any, k: Any, end: Any) -> None:
    """y.triangle: L below the diagonal, 1 / D on it; 0 for a row that nothing moves."""
    L = y.triangle
    for p in range(k, end):
        if y.state[p] != _FREE:
            continue
        pivot = y.matrix[p, p - k]
        for q in range(k, p):
            if y.state[q] == _FREE:
                value = y.matrix[p, q - k]
                for s in range(k, q):
                    if y.state[s] == _FREE:
                        value -= L[p, s - k] * L[q, s - k] * y.pivot[s]
                L[p, q - k] = value * L[q, q - k]
                pivot -= L[p, q - k] * value
        y.pivot[p] = pivot
        L[p, p - k] = 1.0 / pivot if pivot > 0.0 else 0.0


@inlined
def _right_state(r: Any, y: Any, p: Any, k: Any, end: Any) -> Any:
    """What the state of the row at place p should be, as far as y.wanted says."""
    n = y.order[p]
    if y.state[p] == _FREE:
        size = _TOLERANCE * abs(y.wanted[p])
        state = _LOWER if y.wanted[p] < r.lower[n] - size else (_UPPER if y.wanted[p] > r.upper[n] + size else _FREE)
    else:
        value = y.rest[p]
        size = abs(value)
        for q in range(k, end):
            value += y.matrix[p, q - k] * y.wanted[q]
            size = max(size, abs(y.matrix[p, q - k] * y.wanted[q]))
        inward = -value * y.state[p]  # at the lower bound it must not be negative, at the upper one not positive
        state = _FREE if inward < -_TOLERANCE * size and y.matrix[p, p - k] > 0.0 else y.state[p]
    return state


@njit
def _count_wrong(r: Any, y: Any, k: Any, end: Any) -> Any:
    wrong = 0
    for p in range(k, end):
        y.right[p] = _right_state(r, y, p, k, end)
        if y.right[p] != y.state[p]:
            wrong += 1
    return wrong


@njit
def _pivot(y: Any, k: Any, end: Any, one: Any) -> None:
    """All states put right, or the last wrong one only (Murty 1974): that ends for any positive definite matrix."""
    for p in range(end - 1, k - 1, -1):
        if y.right[p] != y.state[p]:
            y.state[p] = y.right[p]
            if one:
                return
