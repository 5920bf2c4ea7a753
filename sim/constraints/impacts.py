"""Several impacts within one step, one after the other: what is struck strikes what it then meets.

Newton's law asks a contact to open at e times the speed at which it closed before the step. A ball that rests against
the next one does not close at all: asked of all at once, the law gives a row of balls speeds that no row ever had, or
stops what is only struck later in the step. Here impacts are taken in turn: those contacts that close fast enough to be
met within the step are struck, all of them together; with the velocities that this leaves the next ones are looked for.
Friction waits for the solver, which gets the speeds at which contacts open at the end of all this.

Contacts that have no restitution hold at once whatever is pressed on them.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.contact import WORK, aim_open, bounces, rebound, work_of
from artsim.sim.constraints.row import row_rate
from artsim.sim.dynamics import solve_part
from artsim.sim.jit import inlined, njit
from artsim.sim.solvers.direct import solve_graph
from artsim.sim.solvers.propagation import solve_tree

_ROUNDS = 1000  # of impacts; what then still closes no longer bounces
_SWEEPS = 200  # over the contacts struck together
_EXACT = 1e-13  # of the fastest of their speeds
_IDLE = -1e308  # a wish that is always met


@njit
def pass_on_blows(s: Any, i: Any, r: Any, t: Any) -> bool:
    """Whether a contact bounces while another one, which could, is pressed on and does not."""
    meets = False
    pressed = False
    for n in range(t.number[0]):
        if _can_bounce(t, n):
            if bounces(t, n, row_rate(r, t.row[n], s.qvel) + t.belt[n, 0], i.time_step[0]):
                meets = True
            elif r.impulse[t.row[n]] > 0.0:
                pressed = True
    return meets and pressed


@inlined
def _can_bounce(t: Any, n: Any) -> bool:
    can: bool = t.row[n] >= 0 and t.restitution[n] > 0.0 and t.soft[n] == 0
    return can


@njit
def take_blows(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, t: Any, p: Any, d: Any) -> bool:
    """Bias of the contacts that bounce, by all impacts of the step in turn; False where there is no second turn.

    Half of the step's forces act before the impacts and half after them, so that elastic ones keep the energy that the
    integrator keeps, ½ v² with v in the middle of the step. Needs the factorised M̂, in w or in p or d.
    """
    v = f.stage_qvel
    half = f.tangent
    _find_half(m, w, f, p, d, half)
    for a in range(f.next.shape[0]):
        v[a] = s.qvel[m.independent_dof[a]] + half[a]
    for n in range(t.number[0]):
        t.hit[n] = 0
        t.lightness[n] = 0.0
    turns = 0
    while turns < _ROUNDS and _choose(m, i, r, t, v, half):
        _strike(m, w, r, t, p, d, v)
        turns += 1
    if turns > 1:
        for n in range(t.number[0]):
            if _can_bounce(t, n):
                row = t.row[n]
                aim_open(m, w, i, r, t, n, row, t.belt[n, 0])
                if t.hit[n] == 1:
                    r.bias[row] = min(r.bias[row], -_rate(r, row, v) - _rate(r, row, half))
    return turns > 1


@inlined
def _find_half(m: Any, w: Any, f: Any, p: Any, d: Any, half: Any) -> None:
    """Half of what the forces do to the velocities in the step (nu,)."""
    x = w.reduced
    for a in range(x.shape[0]):
        x[a] = 0.5 * f.free[a]
    _answer(m, w, p, d, x, 0, x.shape[0])
    for a in range(x.shape[0]):
        half[a] = x[a]


@inlined
def _rate(r: Any, row: Any, v: Any) -> Any:
    """J v of a row for velocities v (nu,) of the independent dofs."""
    value = 0.0
    for e in range(r.start[row], r.stop[row]):
        value += r.value[e] * v[r.column[e]]
    return value


@njit
def weaken(s: Any, r: Any, f: Any, g: Any, t: Any) -> bool:
    """Take from the restitution of contacts that took part where all contacts together make energy; True if they do.

    One alone may: it hands on what another one took. Opening more slowly by a share of x they do less work by about
    half of x of its terms' sizes.
    """
    work = 0.0
    size = 0.0
    for n in range(t.number[0]):
        if t.row[n] >= 0:
            more, terms = work_of(s, r, f, g, t, n)
            work += more
            size += terms
    if work <= WORK * size:
        return False
    kept = max(1.0 - 3.0 * work / size, 0.5)
    for n in range(t.number[0]):
        if t.hit[n] == 1:
            t.restitution[n] *= kept
    return True


@njit
def _choose(m: Any, i: Any, r: Any, t: Any, v: Any, half: Any) -> bool:
    """t.wish of the contacts that are struck now, and of those that hold; whether any is struck."""
    h = i.time_step[0]
    struck = False
    for n in range(t.number[0]):
        t.wish[n] = _IDLE
        t.blow[n] = 0.0
        if t.row[n] < 0 or t.soft[n] == 1:
            continue
        rate = _rate(r, t.row[n], v) + t.belt[n, 0]
        gap = max(t.gap[n], 0.0)
        if t.restitution[n] == 0.0:
            t.wish[n] = -gap / h - t.belt[n, 0] - _rate(r, t.row[n], half)
        elif bounces(t, n, rate, h):
            t.wish[n] = rebound(m, t, n, rate) - t.belt[n, 0]
            struck = True
    return struck


@njit
def _strike(m: Any, w: Any, r: Any, t: Any, p: Any, d: Any, v: Any) -> None:
    """v after the impact: no contact opens more slowly than it should, and only those push that just do."""
    for _ in range(_SWEEPS):
        fastest = 0.0
        left = 0.0
        for n in range(t.number[0]):
            if t.wish[n] == _IDLE:
                continue
            row = t.row[n]
            short = t.wish[n] - _rate(r, row, v)
            fastest = max(fastest, abs(t.wish[n]))
            if short <= 0.0 and t.blow[n] == 0.0:
                continue
            if t.lightness[n] == 0.0:
                _push(m, w, r, p, d, row, 0.0, v)
                t.lightness[n] = _rate(r, row, w.reduced)
            before = t.blow[n]
            t.blow[n] = max(before + short / t.lightness[n], 0.0)
            _push(m, w, r, p, d, row, t.blow[n] - before, v)
            left = max(left, abs(t.blow[n] - before) * t.lightness[n])
        if left <= _EXACT * fastest:
            break
    for n in range(t.number[0]):
        if t.blow[n] > 0.0 and t.restitution[n] > 0.0:
            t.hit[n] = 1


@njit
def _push(m: Any, w: Any, r: Any, p: Any, d: Any, row: Any, amount: Any, v: Any) -> None:
    """v += M̂⁻¹ Jᵀ `amount` of a row; w.reduced holds M̂⁻¹ Jᵀ then, where the row's trees are."""
    x = w.reduced
    if r.start[row] == r.stop[row]:
        return
    first, end = _tree_of(m, r.column[r.start[row]], p, d)
    other, last = first, first
    for e in range(r.start[row], r.stop[row]):
        if r.column[e] < first or r.column[e] >= end:
            other, last = _tree_of(m, r.column[e], p, d)
    for a in range(first, end):
        x[a] = 0.0
    for a in range(other, last):
        x[a] = 0.0
    for e in range(r.start[row], r.stop[row]):
        x[r.column[e]] = r.value[e]
    _answer(m, w, p, d, x, first, end)
    _answer(m, w, p, d, x, other, last)
    for a in range(first, end):
        v[a] += amount * x[a]
    for a in range(other, last):
        v[a] += amount * x[a]


@inlined
def _tree_of(m: Any, a: Any, p: Any, d: Any) -> Any:
    """The first dof of the tree of independent dof a, and the one after its last; all where trees are coupled."""
    count = m.independent_parent.shape[0]
    if p is not None or d is not None or m.coupling_follower.shape[0] > 0:
        return 0, count
    first = a
    while m.independent_parent[first] >= 0:
        first = m.independent_parent[first]
    end = a + 1
    while end < count and m.independent_parent[end] >= 0:
        end += 1
    return first, end


@inlined
def _answer(m: Any, w: Any, p: Any, d: Any, x: Any, first: Any, end: Any) -> None:
    """x = M̂⁻¹ x of a tree."""
    if p is not None:
        if end > first:
            solve_tree(m, w, p, x)
    elif d is not None:
        if end > first:
            solve_graph(m, w, d, x)
    else:
        solve_part(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, x, first, end)
