"""What the sweeping solvers share: answers to test impulses, the order of the rows, one row's and one cone's turn.

Gauss-Seidel over rows with accumulated impulses (seed 001, eq. 2.10; seed 000, eq. 16 and 18): a row's turn is
Δλ = -(J u + bias + cfm λ) / (J M̂⁻¹ Jᵀ + cfm), λ kept in its bounds. All start from λ = 0, as PhysX does.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.dynamics import factorise, solve
from artsim.sim.jit import inlined, njit
from artsim.sim.run import (
    ACTUATOR_ROW,
    COUPLING_ROW,
    DRIVE_ROW,
    FRICTION_ROW,
    LOOP_ROW,
    POSITION_ROW,
    TENDON_ROW,
    VELOCITY_ROW,
)

JOINT = 2  # the group of all rows of one joint, which block_gs solves together
_GROUPS = 16  # room for groups and their parts in a key


@njit
def prepare(m: Any, w: Any, r: Any, force: Any, u: Any, y: Any) -> None:
    """u (nu,) becomes u without constraints; no impulses; answers and order are made. M̂ is left factorised.

    O(answers · nu · depth), an answer for each dof that rows act on alone and for each row that acts on several.
    """
    factorise(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run)
    _answers(m, w, r, y)
    _bound_slips(r, y)
    _arrange(m, r, y)
    solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, force)
    for a in range(u.shape[0]):
        u[a] += force[a]
    for n in range(r.number[0]):
        r.impulse[n] = 0.0


# ------------------------------------------------------------------ test impulses


@njit
def _answers(m: Any, w: Any, r: Any, y: Any) -> None:
    """M̂⁻¹ Jᵀ of row n: y.scale[n] times y.response[y.answer[n]]; y.effective = J M̂⁻¹ Jᵀ.

    Rows on one dof alone, which most are, share the answer to a unit impulse there.
    """
    for a in range(y.of_column.shape[0]):
        y.of_column[a] = -1
    for n in range(r.number[0]):
        first = r.start[n]
        y.answer[n] = n
        y.scale[n] = 1.0
        alone = r.stop[n] == first + 1
        if alone:
            y.scale[n] = r.value[first]
            if y.of_column[r.column[first]] >= 0:
                y.answer[n] = y.of_column[r.column[first]]
            y.of_column[r.column[first]] = y.answer[n]
        if y.answer[n] == n:
            x = y.response[n]
            for a in range(x.shape[0]):
                x[a] = 0.0
            for e in range(first, r.stop[n]):
                x[r.column[e]] += 1.0 if alone else r.value[e]
            solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, x)
        y.effective[n] = answer_of(r, y, n, n)


@inlined
def answer_of(r: Any, y: Any, n: Any, o: Any) -> Any:
    """J_n M̂⁻¹ J_oᵀ: velocity of row n for a unit impulse of row o."""
    value = 0.0
    x = y.response[y.answer[o]]
    for e in range(r.start[n], r.stop[n]):
        value += r.value[e] * x[r.column[e]]
    return value * y.scale[o]


@njit
def _bound_slips(r: Any, y: Any) -> None:
    """One mobility for all tangential rows of a cone, not below any of theirs together (Gershgorin).

    With one of their own each, friction would not point against the slip.
    """
    for n in range(r.number[0]):
        last = n + r.cone[n]
        most = 0.0
        for row in range(n + 1, last):
            total = 0.0
            for other in range(n + 1, last):
                total += abs(answer_of(r, y, row, other))
            most = max(most, total)
        for row in range(n + 1, last):
            y.effective[row] = most


# ------------------------------------------------------------------ the order


@njit
def _arrange(m: Any, r: Any, y: Any) -> None:
    """y.order: the rows from root to tip, for each link in the PhysX guide's sequence ("Articulation Drive Stability").

    Link dynamic constraint, dynamic contact, mimic joint, drive, position limit, velocity limit, static constraint and
    contact. What the guide does not name: tendons and actuators that act on several dofs come with the last joint that
    they move, before its mimic joint; joint friction before the drive. Rows hardly ever change their places: sorting by
    insertion what was sorted in the last step.
    """
    if y.sorted[0] != r.number[0]:
        y.sorted[0] = r.number[0]
        for k in range(r.number[0]):
            y.order[k] = k
    for n in range(r.number[0]):
        if r.cone[n] < 0:
            y.key[n] = y.key[n - 1]  # a cone's rows stay together, even one that nothing moves
        else:
            y.key[n] = (_link(m, r, n) * _GROUPS + group_of(r, n)) * _GROUPS + _part_of(r.kind[n])
    for k in range(r.number[0]):
        n = y.order[k]
        j = k
        while j > 0 and _comes_after(y, y.order[j - 1], n):
            y.order[j] = y.order[j - 1]
            j -= 1
        y.order[j] = n


@inlined
def _comes_after(y: Any, a: Any, b: Any) -> bool:
    after: bool = y.key[a] > y.key[b] or (y.key[a] == y.key[b] and a > b)
    return after


@njit
def _link(m: Any, r: Any, n: Any) -> Any:
    """The link with which row n has its turn: of a mimic joint the first of its two, of others the last they move."""
    first = m.dof_body.shape[0]
    last = -1
    for e in range(r.start[n], r.start[n + 1]):
        first = min(first, r.entry_dof[e])
        last = max(last, r.entry_dof[e])
    if last < 0:
        return 0
    return m.dof_body[first if r.kind[n] == COUPLING_ROW else last]


@inlined
def group_of(r: Any, n: Any) -> Any:
    """Which of a link's constraints row n belongs to, in the order of their turns."""
    kind = r.kind[n]
    group = 4 if r.static[n] else 0  # a contact
    if kind == LOOP_ROW:
        group = 3 if r.static[n] else -1
    elif kind == TENDON_ROW or kind == ACTUATOR_ROW:
        group = 1
    elif _part_of(kind) > 0:
        group = JOINT
    return group + 1


@inlined
def _part_of(kind: Any) -> Any:
    """The place of a row among those of its joint, from 1."""
    part = 0
    if kind == COUPLING_ROW:
        part = 1
    elif kind == FRICTION_ROW:
        part = 2
    elif kind == DRIVE_ROW:
        part = 3
    elif kind == POSITION_ROW:
        part = 4
    elif kind == VELOCITY_ROW:
        part = 5
    return part


# ------------------------------------------------------------------ turns


@njit
def sweep(r: Any, u: Any, y: Any) -> Any:
    """A turn of every row; the largest change of a row's velocity [rad/s or m/s]. O(entries + nu · rows that act)."""
    change = 0.0
    for k in range(r.number[0]):
        n = y.order[k]
        if r.cone[n] == 0:
            change = max(change, turn(r, u, y, n, r.lower[n], r.upper[n]))
        elif r.cone[n] > 0:
            change = max(change, cone_turn(r, u, y, n))
    return change


@njit
def turn(r: Any, u: Any, y: Any, n: Any, lower: Any, upper: Any) -> Any:
    """The turn of row n. Returns the change of its velocity."""
    denominator = y.effective[n] + r.cfm[n]
    if denominator <= 0.0:
        return 0.0  # nothing it acts on can move
    new = min(max(r.impulse[n] - row_velocity(r, u, n) / denominator, lower), upper)
    change = new - r.impulse[n]
    if change == 0.0:
        return 0.0
    r.impulse[n] = new
    push(u, y, n, change)
    return abs(change) * denominator


@njit
def cone_turn(r: Any, u: Any, y: Any, n: Any) -> Any:
    """The turn of a contact: its normal row, then the tangential ones together, projected on the disc slope · λ_n."""
    change = turn(r, u, y, n, 0.0, 1e308)
    last = n + r.cone[n]
    denominator = y.effective[n + 1] + r.cfm[n]
    if last == n + 1 or denominator <= 0.0:
        return change
    square = 0.0
    for row in range(n + 1, last):
        y.wanted[row] = r.impulse[row] - row_velocity(r, u, row) / denominator
        square += y.wanted[row] * y.wanted[row]
    most = r.slope[n] * r.impulse[n]
    share = most / math.sqrt(square) if square > most * most else 1.0
    for row in range(n + 1, last):
        delta = share * y.wanted[row] - r.impulse[row]
        if delta != 0.0:
            r.impulse[row] += delta
            push(u, y, row, delta)
            change = max(change, abs(delta) * denominator)
    return change


@inlined
def row_velocity(r: Any, u: Any, n: Any) -> Any:
    """J u + bias + cfm λ of row n."""
    value = r.bias[n] + r.cfm[n] * r.impulse[n]
    for e in range(r.start[n], r.stop[n]):
        value += r.value[e] * u[r.column[e]]
    return value


@inlined
def push(u: Any, y: Any, n: Any, impulse: Any) -> None:
    """u changes by what an impulse of row n does."""
    x = y.response[y.answer[n]]
    impulse = y.scale[n] * impulse
    for a in range(u.shape[0]):
        u[a] += x[a] * impulse
