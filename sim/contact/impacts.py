"""Resolves several impacts within one step in sequence: a body that is struck strikes the bodies that it then meets.

Newton's law asks a contact to open at e times the speed at which it closed before the step. A ball that rests against
the next one does not close at all: applied to all contacts at once, the law gives a row of balls speeds that no real
one has, or stops bodies that are struck only later in the step. Impacts are therefore taken in turn: contacts that
close fast enough to be met within the step are struck, all together, and the resulting velocities show the contacts
that are struck next. Friction waits for the solver, which receives the speeds at which contacts open at the end of the
sequence.

Impacts are ordered by time: the gaps close at the speeds of the moment, and the first to close is struck. Contacts of a
body that close at once are struck together where one blow does not make another contact close faster, as where a box
lands on its face or a ball parts two others, and one after the other where it does: a ball struck from two sides.

Contacts without restitution hold at once against any impulse.

All functions are written for both widths: robots of a pack are struck together, each until its own impacts end. A
condition that holds in some lanes only is a T that is 1 there and 0 elsewhere.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.row import row_rate
from artsim.sim.contact.contact_law import does_work
from artsim.sim.contact.contact_rows import bounces, speed_of_rebound, work_of
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, highest, real, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real
from artsim.sim.foundation.scalars import divisor, largest, least
from artsim.sim.geometry.contacts import CONTACTS, AnyContacts
from artsim.sim.run_data.run_records import Rows, RunBundle, Step
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.solvers.calls import answer, forms_mass_matrix

_ROUNDS = 1000  # impacts in sequence; contacts that then still close no longer bounce
_SWEEPS = 200  # over the contacts struck together
_EXACT = 1e-13  # tolerance, relative to the fastest of their speeds
_IDLE = -1e308  # a wish that is always satisfied
_NEVER = 1e300  # [s]
_AT_ONCE = 1e-9  # of the step: contacts that close within it close at the same time
_AGAINST = -1e-9  # of a contact's own mobility: a smaller coupling of two contacts is none


@inlined
def _can_bounce(contact: AnyContacts, n: int) -> bool:
    return contact.data.row[n] >= 0 and any_positive(contact.data.restitution[n]) and contact.data.soft[n] == 0


@njit
def pass_on_blows(robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts) -> Real:
    """1 where a contact bounces while another contact with restitution carries an impulse without bouncing, or bounces
    too and shares a body with it.
    """
    zero = like(0.0, robot.data)
    one = zero + 1.0
    meets, pressed, several = zero, zero, zero
    for n in range(contact.data.number[CONTACTS]):
        contact.bounces.blow[n] = zero  # here: 1 where it bounces
        if _can_bounce(contact, n):
            row = contact.data.row[n]
            rate = row_rate(rows, row, robot.state.qvel)
            bounce = bounces(contact, n, rate, run.inputs.time_step[0])
            contact.bounces.blow[n] = bounce
            meets = largest(meets, bounce)
            pressed = largest(pressed, where_greater(rows.impulse[row], zero, one - bounce, zero))
            if any_positive(bounce):
                for other in range(n):
                    if _share_a_body(contact, n, other):
                        several = largest(several, bounce * contact.bounces.blow[other])
    return largest(meets * pressed, several)


@inlined
def _bodies_of(contact: AnyContacts, n: int, other: int) -> tuple[int, int, int, int]:
    """The two bodies of contact n, and the two of the other one."""
    bodies, shapes = contact.model.body, contact.data.shape
    return bodies[shapes[n, 0]], bodies[shapes[n, 1]], bodies[shapes[other, 0]], bodies[shapes[other, 1]]


@inlined
def _share_a_body(contact: AnyContacts, n: int, other: int) -> bool:
    """True if two contacts, of different pairs of bodies, have a body in common that moves."""
    a, b, c, d = _bodies_of(contact, n, other)
    first = a > 0 and (a == c or a == d)
    second = b > 0 and (b == c or b == d)
    return (first or second) and not _are_alike(contact, n, other)


@inlined
def _are_alike(contact: AnyContacts, n: int, other: int) -> bool:
    """True if two contacts are of the same pair of bodies."""
    a, b, c, d = _bodies_of(contact, n, other)
    return (a == c and b == d) or (a == d and b == c)


@njit
def take_blows(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    contact: AnyContacts,
    solver: SolverBundle,
    chosen: Real,
    speeds: tuple[Lanes1, Lanes1],
) -> Real:
    """Take all impacts of the step in sequence where `chosen` is 1; 1 where there is a second round. Contacts then open
    at the sum of both `speeds` (nu,).

    Half of the step's forces act before the impacts and half after, so that elastic impacts conserve the energy that
    the integrator conserves, ½ v² with v in the middle of the step. Needs M̂ factorised, in data, tree or graph.
    """
    model, data = robot.model, robot.data
    step = run.step
    v, half = speeds
    zero = like(0.0, data)
    one = zero + 1.0
    _find_half(model, data, step, solver, half)
    for a in range(step.next.shape[0]):
        v[a] = robot.state.qvel[model.independent_dof[a]] + half[a]
    for n in range(contact.data.number[CONTACTS]):
        contact.bounces.hit[n] = where_greater(chosen, zero, zero, contact.bounces.hit[n])
        contact.bounces.lightness[n] = zero
        contact.bounces.opening[n] = largest(contact.data.gap[n], zero)
    turns = zero
    struck = _choose(robot, run, rows, contact, speeds, chosen)
    for _ in range(_ROUNDS):
        if highest(struck) <= 0.0:
            break
        _take_apart(robot, run, rows, contact, solver, v, struck)
        _strike(robot, run, rows, contact, solver, v, struck)
        turns = turns + struck
        struck = _choose(robot, run, rows, contact, speeds, struck)
    return where_greater(turns, one, one, zero)


@inlined
def _find_half(model: Model, data: Workspace, step: Step, solver: SolverBundle, half: Lanes1) -> None:
    """Set half (nu,) to half of the velocity change by forces in the step."""
    x = data.reduced
    for a in range(x.shape[0]):
        x[a] = 0.5 * step.free[a]
    answer(model, data, solver, 0, x.shape[0])
    for a in range(x.shape[0]):
        half[a] = x[a]


@inlined
def along_row(rows: Rows, row: int, v: Lanes1) -> Real:
    """J v of a row for velocities v (nu,) of the independent dofs."""
    value = zero_like(rows.bias[row])
    for e in range(rows.start[row], rows.stop[row]):
        value += rows.value[e] * v[rows.column[e]]
    return value


@njit
def weaken(robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, chosen: Real) -> Real:
    """Reduce the restitution of participating contacts where all contacts together gain energy and `chosen` is 1; 1
    where they do.

    A single contact may gain energy, since it passes on the energy that another one took. Opening more slowly by a
    share x reduces the work by about half of x times the size of its terms.
    """
    work = like(0.0, robot.data)
    zero = work
    one = work + 1.0
    size = work
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.row[n] >= 0:
            more, terms = work_of(robot.state, rows, run.step, contact, n)
            work += more
            size += terms
    gains = chosen * does_work(work, size)
    kept = largest(one - 3.0 * work / divisor(size), 0.5 * one)
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.row[n] >= 0:
            e = contact.data.restitution[n]
            contact.data.restitution[n] = where_greater(gains * contact.bounces.hit[n], zero, e * kept, e)
    return gains


@njit
def _choose(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, speeds: tuple[Lanes1, Lanes1], chosen: Real
) -> Real:
    """Let gaps close until the next contact is struck, and set contact.data.wish of contacts that are struck then and
    of those that hold; 1 where `chosen` is 1 and a contact is struck.

    Contacts are struck that the present speeds would close within a step, since positions move by the last speeds for a
    whole step. The time of this sequence may therefore be longer than the step.
    """
    v, half = speeds
    h = run.inputs.time_step[0]
    zero = like(0.0, robot.data)
    struck, soonest = zero, zero + _NEVER
    for n in range(contact.data.number[CONTACTS]):
        contact.bounces.wish[n] = real(_IDLE, zero)
        contact.bounces.blow[n] = zero  # here: 1 where it is to be struck
        if contact.data.row[n] < 0 or contact.data.soft[n] == 1:
            continue
        row = contact.data.row[n]
        e = contact.data.restitution[n]
        held = -largest(contact.data.gap[n], zero) / h - along_row(rows, row, half)
        contact.bounces.wish[n] = where_greater(e, zero, contact.bounces.wish[n], held)
        if any_positive(e):
            rate = along_row(rows, row, v)
            bounce = where_greater(e, zero, chosen * bounces(contact, n, rate, h), zero)
            contact.bounces.blow[n] = bounce
            time = contact.bounces.opening[n] / divisor(-rate)
            soonest = where_greater(bounce, zero, least(time, soonest), soonest)
            struck = largest(struck, bounce)
    soonest = where_greater(struck, zero, soonest, zero)
    for n in range(contact.data.number[CONTACTS]):
        if not _can_bounce(contact, n):
            continue
        rate = along_row(rows, contact.data.row[n], v)
        if any_positive(contact.bounces.blow[n]):
            late = contact.bounces.opening[n] / divisor(-rate) - soonest - _AT_ONCE * h
            now = where_greater(late, zero, zero, contact.bounces.blow[n])
            speed = speed_of_rebound(robot.model, contact, n, rate)
            contact.bounces.wish[n] = where_greater(now, zero, speed, contact.bounces.wish[n])
            contact.bounces.blow[n] = zero
        contact.bounces.opening[n] = largest(contact.bounces.opening[n] + soonest * rate, zero)
    return struck


@njit
def _take_apart(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, solver: SolverBundle, v: Lanes1, chosen: Real
) -> None:
    """Keep, among the contacts that close at once, the first, those of its two bodies, and those of one of these bodies
    that its blow does not make close faster. The other contacts are put off, and are struck next.
    """
    model, data = robot.model, robot.data
    zero = zero_like(chosen)
    idle = real(_IDLE, zero)
    for n in range(contact.data.number[CONTACTS]):
        if not _can_bounce(contact, n):
            continue
        first = where_greater(contact.bounces.wish[n], idle, chosen, zero)
        first = where_greater(contact.data.restitution[n], zero, first, zero)  # others hold at once, or are not there
        known = False
        for later in range(n + 1, contact.data.number[CONTACTS] if any_positive(first) else 0):
            if not _can_bounce(contact, later) or _are_alike(contact, n, later):
                continue
            both = where_greater(contact.bounces.wish[later], idle, first, zero)
            both = where_greater(contact.data.restitution[later], zero, both, zero)
            if not any_positive(both):
                continue
            off = both
            if _share_a_body(contact, n, later):
                if not known:
                    for a in range(data.reduced.shape[0]):
                        data.reduced[a] = zero
                    _push(model, data, rows, solver, contact.data.row[n], zero, v)
                    known = True
                own = along_row(rows, contact.data.row[n], data.reduced)
                off = where_greater(_AGAINST * own, along_row(rows, contact.data.row[later], data.reduced), both, zero)
            contact.bounces.wish[later] = where_greater(off, zero, idle, contact.bounces.wish[later])


@njit
def _strike(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, solver: SolverBundle, v: Lanes1, chosen: Real
) -> None:
    """Set v to the velocities after the impact where `chosen` is 1: no contact opens more slowly than its wish, and
    only contacts at that bound push.
    """
    model, data = robot.model, robot.data
    running = chosen
    zero = zero_like(chosen)
    for _ in range(_SWEEPS):
        fastest, left = zero, zero
        for n in range(contact.data.number[CONTACTS]):
            wish = contact.bounces.wish[n]
            awake = where_greater(wish, real(_IDLE, zero), running, zero)
            if contact.data.row[n] < 0 or highest(awake) <= 0.0:
                continue
            row = contact.data.row[n]
            short = wish - along_row(rows, row, v)
            fastest = where_greater(awake, zero, largest(fastest, absolute(wish)), fastest)
            before = contact.bounces.blow[n]
            acts = where_greater(short, zero, awake, where_greater(before, zero, awake, zero))
            if highest(acts) <= 0.0:
                continue
            if any_positive(where_greater(contact.bounces.lightness[n], zero, zero, acts)):
                _push(model, data, rows, solver, row, zero, v)
                contact.bounces.lightness[n] = along_row(rows, row, data.reduced)
            lightness = contact.bounces.lightness[n]
            after = where_greater(acts, zero, largest(before + short / divisor(lightness), zero), before)
            contact.bounces.blow[n] = after
            _push(model, data, rows, solver, row, after - before, v)
            left = largest(left, absolute(after - before) * lightness)
        running = where_greater(left, _EXACT * fastest, running, zero)
        if highest(running) <= 0.0:
            break
    for n in range(contact.data.number[CONTACTS]):
        if _can_bounce(contact, n):
            struck = least(chosen, where_greater(contact.bounces.blow[n], zero, zero + 1.0, zero))
            contact.bounces.hit[n] = largest(contact.bounces.hit[n], struck)


@njit
def _push(model: Model, data: Workspace, rows: Rows, solver: SolverBundle, row: int, amount: Real, v: Lanes1) -> None:
    """v += M̂⁻¹ Jᵀ `amount` of a row; data.reduced then holds M̂⁻¹ Jᵀ where the row's trees are."""
    x = data.reduced
    zero = zero_like(amount)
    if rows.start[row] == rows.stop[row]:
        return
    first, end = _tree_of(model, rows.column[rows.start[row]], solver)
    other, last = first, first
    for e in range(rows.start[row], rows.stop[row]):
        if rows.column[e] < first or rows.column[e] >= end:
            other, last = _tree_of(model, rows.column[e], solver)
    for a in range(first, end):
        x[a] = zero
    for a in range(other, last):
        x[a] = zero
    for e in range(rows.start[row], rows.stop[row]):
        x[rows.column[e]] = rows.value[e]
    answer(model, data, solver, first, end)
    answer(model, data, solver, other, last)
    for a in range(first, end):
        v[a] += amount * x[a]
    for a in range(other, last):
        v[a] += amount * x[a]


@inlined
def _tree_of(model: Model, a: int, solver: SolverBundle) -> tuple[int, int]:
    """First dof, and the one past the last, of the tree of independent dof a; of all dofs where trees are coupled."""
    count = model.independent_parent.shape[0]
    if not forms_mass_matrix(solver) or model.coupling_follower.shape[0] > 0:
        return 0, count
    first = a
    while model.independent_parent[first] >= 0:
        first = model.independent_parent[first]
    end = a + 1
    while end < count and model.independent_parent[end] >= 0:
        end += 1
    return first, end
