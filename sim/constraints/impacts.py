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
def pass_on_blows(state: Any, inputs: Any, rows: Any, contact_data: Any) -> bool:
    """Whether a contact bounces while another one, which could, is pressed on and does not."""
    meets = False
    pressed = False
    for n in range(contact_data.number[0]):
        if _can_bounce(contact_data, n):
            if bounces(
                contact_data,
                n,
                row_rate(rows, contact_data.row[n], state.qvel) + contact_data.belt[n, 0],
                inputs.time_step[0],
            ):
                meets = True
            elif rows.impulse[contact_data.row[n]] > 0.0:
                pressed = True
    return meets and pressed


@inlined
def _can_bounce(contact_data: Any, n: Any) -> bool:
    can: bool = contact_data.row[n] >= 0 and contact_data.restitution[n] > 0.0 and contact_data.soft[n] == 0
    return can


@njit
def take_blows(
    model: Any, state: Any, data: Any, inputs: Any, rows: Any, step: Any, contact_data: Any, tree: Any, graph: Any
) -> bool:
    """Bias of the contacts that bounce, by all impacts of the step in turn; False where there is no second turn.

    Half of the step's forces act before the impacts and half after them, so that elastic ones keep the energy that the
    integrator keeps, ½ v² with v in the middle of the step. Needs M̂ factorised, in data, tree or graph.
    """
    v = step.stage_qvel
    half = step.tangent
    _find_half(model, data, step, tree, graph, half)
    for a in range(step.next.shape[0]):
        v[a] = state.qvel[model.independent_dof[a]] + half[a]
    for n in range(contact_data.number[0]):
        contact_data.hit[n] = 0
        contact_data.lightness[n] = 0.0
    turns = 0
    while turns < _ROUNDS and _choose(model, inputs, rows, contact_data, v, half):
        _strike(model, data, rows, contact_data, tree, graph, v)
        turns += 1
    if turns > 1:
        for n in range(contact_data.number[0]):
            if _can_bounce(contact_data, n):
                row = contact_data.row[n]
                aim_open(model, data, inputs, rows, contact_data, n, row, contact_data.belt[n, 0])
                if contact_data.hit[n] == 1:
                    rows.bias[row] = min(rows.bias[row], -_rate(rows, row, v) - _rate(rows, row, half))
    return turns > 1


@inlined
def _find_half(model: Any, data: Any, step: Any, tree: Any, graph: Any, half: Any) -> None:
    """Half of what the forces do to the velocities in the step (nu,)."""
    x = data.reduced
    for a in range(x.shape[0]):
        x[a] = 0.5 * step.free[a]
    _answer(model, data, tree, graph, x, 0, x.shape[0])
    for a in range(x.shape[0]):
        half[a] = x[a]


@inlined
def _rate(rows: Any, row: Any, v: Any) -> Any:
    """J v of a row for velocities v (nu,) of the independent dofs."""
    value = 0.0
    for e in range(rows.start[row], rows.stop[row]):
        value += rows.value[e] * v[rows.column[e]]
    return value


@njit
def weaken(state: Any, rows: Any, step: Any, contact_model: Any, contact_data: Any) -> bool:
    """Take from the restitution of contacts that took part where all contacts together make energy; True if they do.

    One alone may: it hands on what another one took. Opening more slowly by a share of x they do less work by about
    half of x of its terms' sizes.
    """
    work = 0.0
    size = 0.0
    for n in range(contact_data.number[0]):
        if contact_data.row[n] >= 0:
            more, terms = work_of(state, rows, step, contact_model, contact_data, n)
            work += more
            size += terms
    if work <= WORK * size:
        return False
    kept = max(1.0 - 3.0 * work / size, 0.5)
    for n in range(contact_data.number[0]):
        if contact_data.hit[n] == 1:
            contact_data.restitution[n] *= kept
    return True


@njit
def _choose(model: Any, inputs: Any, rows: Any, contact_data: Any, v: Any, half: Any) -> bool:
    """contact_data.wish of the contacts that are struck now, and of those that hold; whether any is struck."""
    h = inputs.time_step[0]
    struck = False
    for n in range(contact_data.number[0]):
        contact_data.wish[n] = _IDLE
        contact_data.blow[n] = 0.0
        if contact_data.row[n] < 0 or contact_data.soft[n] == 1:
            continue
        rate = _rate(rows, contact_data.row[n], v) + contact_data.belt[n, 0]
        gap = max(contact_data.gap[n], 0.0)
        if contact_data.restitution[n] == 0.0:
            contact_data.wish[n] = -gap / h - contact_data.belt[n, 0] - _rate(rows, contact_data.row[n], half)
        elif bounces(contact_data, n, rate, h):
            contact_data.wish[n] = rebound(model, contact_data, n, rate) - contact_data.belt[n, 0]
            struck = True
    return struck


@njit
def _strike(model: Any, data: Any, rows: Any, contact_data: Any, tree: Any, graph: Any, v: Any) -> None:
    """v after the impact: no contact opens more slowly than it should, and only those push that just do."""
    for _ in range(_SWEEPS):
        fastest = 0.0
        left = 0.0
        for n in range(contact_data.number[0]):
            if contact_data.wish[n] == _IDLE:
                continue
            row = contact_data.row[n]
            short = contact_data.wish[n] - _rate(rows, row, v)
            fastest = max(fastest, abs(contact_data.wish[n]))
            if short <= 0.0 and contact_data.blow[n] == 0.0:
                continue
            if contact_data.lightness[n] == 0.0:
                _push(model, data, rows, tree, graph, row, 0.0, v)
                contact_data.lightness[n] = _rate(rows, row, data.reduced)
            before = contact_data.blow[n]
            contact_data.blow[n] = max(before + short / contact_data.lightness[n], 0.0)
            _push(model, data, rows, tree, graph, row, contact_data.blow[n] - before, v)
            left = max(left, abs(contact_data.blow[n] - before) * contact_data.lightness[n])
        if left <= _EXACT * fastest:
            break
    for n in range(contact_data.number[0]):
        if contact_data.blow[n] > 0.0 and contact_data.restitution[n] > 0.0:
            contact_data.hit[n] = 1


@njit
def _push(model: Any, data: Any, rows: Any, tree: Any, graph: Any, row: Any, amount: Any, v: Any) -> None:
    """v += M̂⁻¹ Jᵀ `amount` of a row; data.reduced holds M̂⁻¹ Jᵀ then, where the row's trees are."""
    x = data.reduced
    if rows.start[row] == rows.stop[row]:
        return
    first, end = _tree_of(model, rows.column[rows.start[row]], tree, graph)
    other, last = first, first
    for e in range(rows.start[row], rows.stop[row]):
        if rows.column[e] < first or rows.column[e] >= end:
            other, last = _tree_of(model, rows.column[e], tree, graph)
    for a in range(first, end):
        x[a] = 0.0
    for a in range(other, last):
        x[a] = 0.0
    for e in range(rows.start[row], rows.stop[row]):
        x[rows.column[e]] = rows.value[e]
    _answer(model, data, tree, graph, x, first, end)
    _answer(model, data, tree, graph, x, other, last)
    for a in range(first, end):
        v[a] += amount * x[a]
    for a in range(other, last):
        v[a] += amount * x[a]


@inlined
def _tree_of(model: Any, a: Any, tree: Any, graph: Any) -> Any:
    """The first dof of the tree of independent dof a, and the one after its last; all where trees are coupled."""
    count = model.independent_parent.shape[0]
    if tree is not None or graph is not None or model.coupling_follower.shape[0] > 0:
        return 0, count
    first = a
    while model.independent_parent[first] >= 0:
        first = model.independent_parent[first]
    end = a + 1
    while end < count and model.independent_parent[end] >= 0:
        end += 1
    return first, end


@inlined
def _answer(model: Any, data: Any, tree: Any, graph: Any, x: Any, first: Any, end: Any) -> None:
    """x = M̂⁻¹ x of a tree."""
    if tree is not None:
        if end > first:
            solve_tree(model, data, tree, x)
    elif graph is not None:
        if end > first:
            solve_graph(model, data, graph, x)
    else:
        solve_part(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, x, first, end)
