"""Resolves several impacts within one step in sequence: what is struck strikes what it then meets.

Newton's law asks a contact to open at e times the speed at which it closed before the step. A ball that rests against
the next one does not close at all: applied to all contacts at once, the law gives a row of balls speeds that no real
one has, or stops what is struck only later in the step. Impacts are therefore taken in turn: contacts that close fast
enough to be met within the step are struck, all together, and the resulting velocities show which come next. Friction
waits for the solver, which receives the speeds at which contacts open at the end of the sequence.

Contacts without restitution hold at once, whatever is pressed on them.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.articulation.dynamics import solve_part
from artsim.sim.constraints.row import row_rate
from artsim.sim.contact.contact_law import does_work
from artsim.sim.contact.contact_rows import aim_open, bounces, speed_of_rebound, work_of
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.geometry.contacts import ALONG_NORMAL, CONTACTS
from artsim.sim.solvers.direct import solve_graph
from artsim.sim.solvers.propagation import solve_tree

_ROUNDS = 1000  # impacts in sequence; contacts that then still close no longer bounce
_SWEEPS = 200  # over the contacts struck together
_EXACT = 1e-13  # tolerance, relative to the fastest of their speeds
_IDLE = -1e308  # a wish that is always satisfied


@njit
def pass_on_blows(state: Any, inputs: Any, rows: Any, contact: Any) -> bool:
    """Whether a contact bounces while another, which could, is pressed on and does not."""
    meets = False
    pressed = False
    for n in range(contact.data.number[CONTACTS]):
        if _can_bounce(contact, n):
            if bounces(
                contact,
                n,
                row_rate(rows, contact.data.row[n], state.qvel) + contact.data.belt[n, ALONG_NORMAL],
                inputs.time_step[0],
            ):
                meets = True
            elif rows.impulse[contact.data.row[n]] > 0.0:
                pressed = True
    return meets and pressed


@inlined
def _can_bounce(contact: Any, n: Any) -> bool:
    can: bool = contact.data.row[n] >= 0 and contact.data.restitution[n] > 0.0 and contact.data.soft[n] == 0
    return can


@njit
def take_blows(robot: Any, run: Any, rows: Any, contact: Any, solver: Any) -> bool:
    """Bias of the contacts that bounce, from all impacts of the step in sequence; False where there is no second round.

    Half of the step's forces act before the impacts and half after, so that elastic impacts conserve the energy that
    the integrator conserves, ½ v² with v in the middle of the step. Needs M̂ factorised, in data, tree or graph.
    """
    model, data = robot.model, robot.data
    inputs, step = run.inputs, run.step
    v = step.stage_qvel
    half = step.tangent
    _find_half(model, data, step, solver, half)
    for a in range(step.next.shape[0]):
        v[a] = robot.state.qvel[model.independent_dof[a]] + half[a]
    for n in range(contact.data.number[CONTACTS]):
        contact.data.hit[n] = 0
        contact.data.lightness[n] = 0.0
    turns = 0
    while turns < _ROUNDS and _choose(model, inputs, rows, contact, v, half):
        _strike(model, data, rows, contact, solver, v)
        turns += 1
    if turns > 1:
        for n in range(contact.data.number[CONTACTS]):
            if _can_bounce(contact, n):
                row = contact.data.row[n]
                aim_open(model, data, inputs, rows, contact, n, row, contact.data.belt[n, ALONG_NORMAL])
                if contact.data.hit[n] == 1:
                    rows.bias[row] = min(rows.bias[row], -_rate(rows, row, v) - _rate(rows, row, half))
    return turns > 1


@inlined
def _find_half(model: Any, data: Any, step: Any, solver: Any, half: Any) -> None:
    """Half of the velocity change by forces in the step (nu,)."""
    x = data.reduced
    for a in range(x.shape[0]):
        x[a] = 0.5 * step.free[a]
    _answer(model, data, solver, x, 0, x.shape[0])
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
def weaken(state: Any, rows: Any, step: Any, contact: Any) -> bool:
    """Reduce the restitution of participating contacts where all contacts together gain energy; True if they do.

    A single contact may gain energy, since it passes on what another one took. Opening more slowly by a share x reduces
    the work by about half of x times the size of its terms.
    """
    work = 0.0
    size = 0.0
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.row[n] >= 0:
            more, terms = work_of(state, rows, rows.impulse, step, contact, n)
            work += more
            size += terms
    if does_work(work, size) == 0.0:
        return False
    kept = max(1.0 - 3.0 * work / size, 0.5)
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.hit[n] == 1:
            contact.data.restitution[n] *= kept
    return True


@njit
def _choose(model: Any, inputs: Any, rows: Any, contact: Any, v: Any, half: Any) -> bool:
    """Set contact.data.wish of the contacts struck now and of those that hold; return whether any is struck."""
    h = inputs.time_step[0]
    struck = False
    for n in range(contact.data.number[CONTACTS]):
        contact.data.wish[n] = _IDLE
        contact.data.blow[n] = 0.0
        if contact.data.row[n] < 0 or contact.data.soft[n] == 1:
            continue
        rate = _rate(rows, contact.data.row[n], v) + contact.data.belt[n, ALONG_NORMAL]
        gap = max(contact.data.gap[n], 0.0)
        if contact.data.restitution[n] == 0.0:
            belt = contact.data.belt[n, ALONG_NORMAL]
            contact.data.wish[n] = -gap / h - belt - _rate(rows, contact.data.row[n], half)
        elif bounces(contact, n, rate, h):
            contact.data.wish[n] = speed_of_rebound(model, contact, n, rate) - contact.data.belt[n, ALONG_NORMAL]
            struck = True
    return struck


@njit
def _strike(model: Any, data: Any, rows: Any, contact: Any, solver: Any, v: Any) -> None:
    """v after the impact: no contact opens more slowly than it should, and only contacts at that bound push."""
    for _ in range(_SWEEPS):
        fastest = 0.0
        left = 0.0
        for n in range(contact.data.number[CONTACTS]):
            if contact.data.wish[n] == _IDLE:
                continue
            row = contact.data.row[n]
            short = contact.data.wish[n] - _rate(rows, row, v)
            fastest = max(fastest, abs(contact.data.wish[n]))
            if short <= 0.0 and contact.data.blow[n] == 0.0:
                continue
            if contact.data.lightness[n] == 0.0:
                _push(model, data, rows, solver, row, 0.0, v)
                contact.data.lightness[n] = _rate(rows, row, data.reduced)
            before = contact.data.blow[n]
            contact.data.blow[n] = max(before + short / contact.data.lightness[n], 0.0)
            _push(model, data, rows, solver, row, contact.data.blow[n] - before, v)
            left = max(left, abs(contact.data.blow[n] - before) * contact.data.lightness[n])
        if left <= _EXACT * fastest:
            break
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.blow[n] > 0.0 and contact.data.restitution[n] > 0.0:
            contact.data.hit[n] = 1


@njit
def _push(model: Any, data: Any, rows: Any, solver: Any, row: Any, amount: Any, v: Any) -> None:
    """v += M̂⁻¹ Jᵀ `amount` of a row; data.reduced then holds M̂⁻¹ Jᵀ where the row's trees are."""
    x = data.reduced
    if rows.start[row] == rows.stop[row]:
        return
    first, end = _tree_of(model, rows.column[rows.start[row]], solver)
    other, last = first, first
    for e in range(rows.start[row], rows.stop[row]):
        if rows.column[e] < first or rows.column[e] >= end:
            other, last = _tree_of(model, rows.column[e], solver)
    for a in range(first, end):
        x[a] = 0.0
    for a in range(other, last):
        x[a] = 0.0
    for e in range(rows.start[row], rows.stop[row]):
        x[rows.column[e]] = rows.value[e]
    _answer(model, data, solver, x, first, end)
    _answer(model, data, solver, x, other, last)
    for a in range(first, end):
        v[a] += amount * x[a]
    for a in range(other, last):
        v[a] += amount * x[a]


@inlined
def _tree_of(model: Any, a: Any, solver: Any) -> Any:
    """First dof, and the one past the last, of the tree of independent dof a; of all dofs where trees are coupled."""
    count = model.independent_parent.shape[0]
    if solver.tree is not None or solver.graph is not None or model.coupling_follower.shape[0] > 0:
        return 0, count
    first = a
    while model.independent_parent[first] >= 0:
        first = model.independent_parent[first]
    end = a + 1
    while end < count and model.independent_parent[end] >= 0:
        end += 1
    return first, end


@inlined
def _answer(model: Any, data: Any, solver: Any, x: Any, first: Any, end: Any) -> None:
    """x = M̂⁻¹ x of a tree."""
    if solver.tree is not None:
        if end > first:
            solve_tree(model, data, solver.tree, x)
    elif solver.graph is not None:
        if end > first:
            solve_graph(model, data, solver.graph, x)
    else:
        solve_part(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, x, first, end)
