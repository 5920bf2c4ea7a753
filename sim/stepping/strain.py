"""Settles steps in which hard loops are strained: their rows yield by more than a hair.

A row of a hard loop yields by a share of its links' mobility (constraints/loop_rows.py), so that redundant rows have a
solution. There are three reasons why that opens the loop noticeably, and a remedy for each:

Contacts that push apart links that the loop holds together. No motion removes their penetration. These contacts would
open the loop at the speed of the removal, against its yield alone (5e7 N), and the loop would close again: energy from
nothing. The contacts are left out of the step, and the summary names them.

Loads on links that are light beside the bodies that they carry, or beside the drives that hold them: the mobility of
such links is no measure of the load on the loop (legs of a milligram under a platform). Their rows are stiffened until
they yield by less than a hair.

Redundant rows that contradict each other. Neither of the remedies above helps, and aims.py relaxes these rows.

The effect of a remedy shows the reason: a remedy that leaves more than _HELPED of the yield is taken back. Between any
two solutions `settle_strain` decides what comes next, for a single robot and for each lane of a pack.
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.constraints.loop_rows import HAIR, STRAINED, is_of_hard_loop, is_pushing, softness
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.contact.contact_rows import removal_power, set_targets
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import divisor, largest
from artsim.sim.geometry.contacts import CONTACTS, AnyContacts, EitherContacts
from artsim.sim.run_data.run_records import ALL_ROWS, LASTING_ROWS, RESIDUAL, Rows, RunBundle, Step
from artsim.sim.solvers.tolerance import UNTRIED
from artsim.sim.stepping.aims import fastest_of, lies_in

_LEFT = 1e-8  # [m or rad] to which a stiffened row opens
_STIFFEST = 1e-7  # least factor on the cfm of a row
_HELPED = 0.5  # share of the yield that a remedy may leave
_MINOR = 0.1  # share of the largest yield below which the yield of a row may be the effect of other rows
_ROUNDS = 3  # at most for either reason
_APART = 1e3  # times the largest velocity: speed at which contacts that are left out seem to open

# the last solution: the first with these rows; with the chosen contacts left out; with those of them that close only
# kept from getting deeper; with these left out again; without a change to contacts, which did not help; with rows
# stiffened; with the softness of these rows given back. Or none is left
_FIRST, _OPENED, _KEPT, _REOPENED, _RESTORED, _STIFFENED, _SOFTENED, _SETTLED = range(8)
PHASE, COUNT, MOST = range(3)  # entries of Step.straining


@njit
def begin_strain(step: Step, contact: EitherContacts, chosen: Real) -> None:
    """Look for strain from the beginning where `chosen` is 1, and the rows are built anew."""
    zero = zero_like(chosen)
    step.straining[PHASE] = where_greater(chosen, zero, zero + _FIRST, step.straining[PHASE])
    if contact is not None:
        for n in range(contact.data.number[CONTACTS]):
            contact.data.held[n] = where_greater(chosen, zero, zero, contact.data.held[n])
            contact.data.stays[n] = where_greater(chosen, zero, zero, contact.data.stays[n])


@inlined
def is_straining(step: Step) -> Real:
    """1 in the midst of the further solutions for strain."""
    return lies_in(step.straining[PHASE], _OPENED, _SOFTENED)


@njit
def settle_strain(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle, contact: EitherContacts, chosen: Real
) -> Real:
    """1 where `chosen` is 1 and the rows are to be solved again, since hard loops yield by more than a hair: without
    the contacts or the softness that they yield to. Rows that are not solved at first are left as they are.
    """
    step, zero = run.step, zero_like(chosen)
    phase = step.straining[PHASE]
    on = where_greater(zero + (_SETTLED - 0.5), phase, chosen, zero)
    if not any_positive(on):
        return zero
    opening = run.inputs.time_step[0] * _yield_of_loops(rows, equipment)
    solved = where_greater(rows.report[RESIDUAL], zero + UNSOLVED, zero, on)
    strained = where_greater(opening, zero + HAIR, solved * lies_in(phase, _FIRST, _FIRST), zero)
    step.straining[COUNT] = where_greater(strained, zero, zero, step.straining[COUNT])
    again = zero
    if contact is not None:
        again = _leave_out(robot, run, rows, equipment, contact, (on, solved, strained, opening))
    ready = strained + on * lies_in(phase, _OPENED, _RESTORED) - again
    step.straining[COUNT] = where_greater(ready, zero, zero, step.straining[COUNT])
    stiffened = on * lies_in(phase, _STIFFENED, _STIFFENED)
    again = again + _stiffen(run, rows, equipment, (ready, solved, stiffened, opening))
    _go_to(step, _SETTLED, on - again)
    # newton begins anew, since the softness of rows or the contacts that count are others; it starts from the impulses
    # that _begin_from_zero has left, in both widths
    rows.report[RESIDUAL] = where_greater(again, zero, zero + UNTRIED, rows.report[RESIDUAL])
    return again


@inlined
def _go_to(step: Step, phase: int, chosen: Real) -> None:
    """Note the phase where `chosen` is 1."""
    zero = zero_like(chosen)
    step.straining[PHASE] = where_greater(chosen, zero, zero + phase, step.straining[PHASE])


@njit
def _yield_of_loops(rows: Rows, equipment: EquipmentBundle) -> Real:
    """The fastest yield of a hard loop's row [m/s or rad/s]."""
    most = zero_like(rows.bias[0])
    for n in range(rows.number[LASTING_ROWS]):
        if is_of_hard_loop(rows, equipment, n):
            most = largest(most, absolute(rows.cfm[n] * rows.impulse[n]))
    return most


@njit
def _begin_from_zero(rows: Rows, equipment: EquipmentBundle, chosen: Real) -> None:
    """Clear the impulses of contacts and hard loops where `chosen` is 1, since the last ones were no answer to a
    load."""
    zero = zero_like(chosen)
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] == CONTACT_ROW or is_of_hard_loop(rows, equipment, n):
            rows.impulse[n] = where_greater(chosen, zero, zero, rows.impulse[n])


# ------------------------------------------------------------------ contacts


@njit
def _leave_out(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle,
    contact: AnyContacts,
    lanes: tuple[Real, Real, Real, Real],
) -> Real:
    """Leave out contacts that strain loops; 1 where the rows are to be solved again. If leaving them out helps but
    bodies of some then move into each other, these contacts stay in the step without removal of their penetration,
    provided that this helps as well.

    `lanes`: 1 where to look, where rows are solved, and where strain has just been found; the opening of loops.
    """
    on, solved, strained, opening = lanes
    step, zero = run.step, zero_like(on)
    phase = step.straining[PHASE]
    opened, kept = on * lies_in(phase, _OPENED, _OPENED), on * lies_in(phase, _KEPT, _KEPT)
    helped = where_greater(opening, step.straining[MOST], zero, solved)
    closing = _settle_opened(run, rows, contact, opened * helped)
    failed = opened - opened * helped
    apart = kept - kept * helped
    _settle_closing(contact, closing, apart, failed + kept * helped)
    ended = opened * helped - closing + kept * helped + on * lies_in(phase, _REOPENED, _REOPENED)
    further = where_greater(opening, zero + HAIR, ended, zero)
    further = where_greater(zero + (_ROUNDS - 0.5), step.straining[COUNT], further, zero)
    found = _choose(rows, equipment, contact, strained + further)
    again = found + closing + apart + failed
    if any_positive(again):
        step.straining[COUNT] = step.straining[COUNT] + found
        step.straining[MOST] = where_greater(found, zero, _HELPED * opening, step.straining[MOST])
        fastest = _APART * largest(fastest_of(step, zero), zero + 1.0)
        contact.data.apart[0] = where_greater(found + apart, zero, fastest, contact.data.apart[0])
        _go_to(step, _OPENED, found)
        _go_to(step, _KEPT, closing)
        _go_to(step, _REOPENED, apart)
        _go_to(step, _RESTORED, failed)
        _begin_from_zero(rows, equipment, again)
        if run.lanes is None:  # a pack sets the targets of all contacts for every solution
            for n in range(contact.data.number[CONTACTS]):
                if _is_hard(contact, n):
                    set_targets(robot, run.inputs, rows, contact, n)
    return again


@njit
def _settle_opened(run: RunBundle, rows: Rows, contact: AnyContacts, chosen: Real) -> Real:
    """Leave the chosen contacts out for good where `chosen` is 1, but for those whose bodies then move into each other;
    1 where there are any of these."""
    h, zero = run.inputs.time_step[0], zero_like(chosen)
    closing = zero
    if not any_positive(chosen):
        return closing
    for n in range(contact.data.number[CONTACTS]):
        tried = where_greater(zero, contact.data.held[n], chosen, zero)
        if any_positive(tried):
            closes = where_greater(zero - HAIR, h * _rate_of(rows, run.step, contact.data.row[n]), tried, zero)
            _set_held(contact, n, tried - closes, -contact.data.held[n])
            closing = largest(closing, closes)
    return closing


@njit
def _settle_closing(contact: AnyContacts, closing: Real, apart: Real, let: Real) -> None:
    """Settle the contacts that are still only chosen. Where `closing` is 1, they are kept from getting deeper; where
    `apart` is 1, they are left out for good; where `let` is 1, they stay as they are."""
    zero = zero_like(closing)
    if not any_positive(closing + apart + let):
        return
    for n in range(contact.data.number[CONTACTS]):
        tried = where_greater(zero, contact.data.held[n], zero + 1.0, zero)
        stays = where_greater(tried * closing, zero, zero + 1.0, contact.data.stays[n])
        contact.data.stays[n] = where_greater(tried * apart, zero, zero, stays)
        _set_held(contact, n, tried * apart, -contact.data.held[n])
        _set_held(contact, n, tried * let, zero)


@inlined
def _set_held(contact: AnyContacts, n: int, chosen: Real, value: Real) -> None:
    """Set contact.data.held of contact n where `chosen` is 1."""
    contact.data.held[n] = where_greater(chosen, zero_like(chosen), value, contact.data.held[n])


@inlined
def _rate_of(rows: Rows, step: Step, row: int) -> Real:
    """The velocity of a row without its bias [m/s]."""
    rate = zero_like(rows.bias[row])
    for e in range(rows.start[row], rows.stop[row]):
        rate += rows.value[e] * step.next[rows.column[e]]
    return rate


@njit
def _choose(rows: Rows, equipment: EquipmentBundle, contact: AnyContacts, looking: Real) -> Real:
    """Set contact.data.held to -1 - loop, for the loop that yields most, of contacts that may strain loops, and of all
    penetrating contacts between the same two bodies, where `looking` is 1; 1 where there are any.
    """
    found = zero_like(looking)
    if not any_positive(looking):
        return found
    loop, total = _most_strained(rows, equipment)
    for n in range(contact.data.number[CONTACTS]):
        if not _is_hard(contact, n):
            continue
        pushes = looking * _may_push(contact, n) * is_pushing(removal_power(rows, contact, n), total)
        if any_positive(pushes):
            found = largest(found, pushes)
            for other in range(contact.data.number[CONTACTS]):
                if _is_hard(contact, other) and _same_bodies(contact, n, other):
                    _set_held(contact, other, pushes * _may_push(contact, other), -1.0 - loop)
    return found


@inlined
def _is_hard(contact: AnyContacts, n: int) -> bool:
    """True if contact n has rows and is not soft."""
    hard: bool = contact.data.row[n] >= 0 and contact.data.soft[n] == 0
    return hard


@inlined
def _may_push(contact: AnyContacts, n: int) -> Real:
    """1 where contact n penetrates and takes part in the step."""
    held, zero = contact.data.held[n], zero_like(contact.data.held[n])
    may = where_greater(contact.data.gap[n], zero, zero, where_greater(held, zero, zero, zero + 1.0))
    if contact.lanes is not None:
        may = may * contact.lanes.present[n]
    return may


@inlined
def _same_bodies(contact: AnyContacts, n: int, other: int) -> bool:
    """True if two contacts are between the same two bodies."""
    alike = True
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        alike = alike and body == contact.model.body[contact.data.shape[other, end]]
    return alike


@njit
def _most_strained(rows: Rows, equipment: EquipmentBundle) -> tuple[Real, Real]:
    """The hard loop that takes up most power in yielding, and the power that all of them take up [W h], Σ cfm λ²."""
    zero = zero_like(rows.bias[0])
    loop, most, power, total = zero - 1.0, zero, zero, zero
    before = -1
    for n in range(rows.number[LASTING_ROWS]):
        if not is_of_hard_loop(rows, equipment, n):
            continue
        power = power if rows.dof[n] == before else zero  # a loop's rows are adjacent
        before = rows.dof[n]
        own = rows.cfm[n] * rows.impulse[n] * rows.impulse[n]
        power, total = power + own, total + own
        loop = where_greater(power, most, zero + before, loop)
        most = largest(most, power)
    return loop, total


# ------------------------------------------------------------------ loads on light links


@njit
def _stiffen(run: RunBundle, rows: Rows, equipment: EquipmentBundle, lanes: tuple[Real, Real, Real, Real]) -> Real:
    """Stiffen the rows of loops that yield to a load; 1 where the rows are to be solved again.

    `lanes`: 1 where this begins, where rows are solved, and where rows have been stiffened; the opening of loops.
    """
    ready, solved, stiffened, opening = lanes
    step, h, zero = run.step, run.inputs.time_step[0], zero_like(ready)
    contradict = zero
    if any_positive(stiffened):
        contradict = _give_back(rows, equipment, h, stiffened, solved)
        _begin_from_zero(rows, equipment, contradict)
        _go_to(step, _SOFTENED, contradict)
    on = where_greater(opening, zero + STRAINED, ready + stiffened - contradict, zero)
    on = where_greater(zero + (_ROUNDS - 0.5), step.straining[COUNT], on, zero)
    if any_positive(on):
        step.straining[COUNT] = step.straining[COUNT] + on
        _go_to(step, _STIFFENED, on)
        for n in range(rows.number[LASTING_ROWS]):
            if is_of_hard_loop(rows, equipment, n):
                own = absolute(rows.cfm[n] * rows.impulse[n])
                rows.unaimed[rows.place[n]] = where_greater(on, zero, own, rows.unaimed[rows.place[n]])
                stiffer = rows.cfm[n] * largest(zero + _STIFFEST, _LEFT / divisor(h * own))
                loaded = where_greater(h * own, zero + STRAINED, on, zero)
                rows.cfm[n] = where_greater(loaded, zero, stiffer, rows.cfm[n])
    return contradict + on


@njit
def _give_back(rows: Rows, equipment: EquipmentBundle, h: float, stiffened: Real, solved: Real) -> Real:
    """Give back their softness to rows that still yield as before they were stiffened, when their yields are in
    rows.unaimed: they contradict others. 1 where `stiffened` is 1 and there are any."""
    zero = zero_like(stiffened)
    worst, contradict = zero, zero
    for n in range(rows.number[LASTING_ROWS]):
        if is_of_hard_loop(rows, equipment, n):
            worst = largest(worst, rows.unaimed[rows.place[n]])
    for n in range(rows.number[LASTING_ROWS]):
        if is_of_hard_loop(rows, equipment, n):
            before = rows.unaimed[rows.place[n]]
            most = _HELPED * largest(before, _MINOR * worst)
            still = where_greater(absolute(rows.cfm[n] * rows.impulse[n]), most, stiffened, zero)
            still = where_greater(h * before, zero + STRAINED, still, zero)
            still = where_greater(before, zero, largest(still, stiffened - stiffened * solved), zero)
            rows.cfm[n] = where_greater(still, zero, softness(equipment, rows.dof[n], rows.part[n]), rows.cfm[n])
            contradict = largest(contradict, still)
    return contradict
