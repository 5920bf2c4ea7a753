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

The effect of a remedy shows the reason: a remedy that leaves more than _HELPED of the yield is taken back.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import end_velocities
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.constraints.loop_rows import HAIR, STRAINED, is_of_hard_loop, is_pushing, softness
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.contact.contact_rows import normal_rows, removal_power
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Pack, Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.geometry.contacts import CONTACTS, ContactBundle
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.phases import SOLVER
from artsim.sim.run_data.run_records import AIMED, ALL_ROWS, LASTING_ROWS, PHASE, RESIDUAL, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import SOLVE_AGAIN, SolverBundle
from artsim.sim.solvers.calls import ask
from artsim.sim.solvers.tolerance import UNTRIED

_LEFT = 1e-8  # [m or rad] to which a stiffened row opens
_STIFFEST = 1e-7  # least factor on the cfm of a row
_HELPED = 0.5  # share of the yield that a remedy may leave
_MINOR = 0.1  # share of the largest yield below which the yield of a row may be the effect of other rows
_ROUNDS = 3  # at most for either reason
_APART = 1e3  # times the largest velocity: speed at which contacts that are left out seem to open


@njit
def settle_strain(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle,
    contact: ContactBundle | None,
    solver: SolverBundle,
) -> None:
    """Solve again where hard loops yield by more than a hair, without the contacts or the softness that they yield to.

    Needs the first solution of rows that are not aimed yet.
    """
    h = run.inputs.time_step[0]
    if rows.report[RESIDUAL] > UNSOLVED or h * _yield_of_loops(rows, equipment) <= HAIR:
        return
    if contact is not None:
        for _ in range(_ROUNDS):
            if not _leave_out(robot, run, rows, equipment, contact, solver):
                break
            if h * _yield_of_loops(rows, equipment) <= HAIR:
                break
    for _ in range(_ROUNDS):
        if not _stiffen_rows(robot, run, rows, equipment, solver):
            break
    end_velocities(robot.model, robot.data, run.step.next, h, run.step.velocity)
    mark(run.clock, SOLVER)


@njit
def _yield_of_loops(rows: Rows, equipment: EquipmentBundle) -> Real:
    """The fastest yield of a hard loop's row [m/s or rad/s], in both widths."""
    most = zero_like(rows.bias[0])
    for n in range(rows.number[LASTING_ROWS]):
        if is_of_hard_loop(rows, equipment, n):
            most = largest(most, absolute(rows.cfm[n] * rows.impulse[n]))
    return most


@njit
def _power_of_yield(rows: Rows, equipment: EquipmentBundle) -> Real:
    """The power that all hard loops take up in yielding [W h], Σ cfm λ², in both widths."""
    total = zero_like(rows.bias[0])
    for n in range(rows.number[LASTING_ROWS]):
        if is_of_hard_loop(rows, equipment, n):
            total += rows.cfm[n] * rows.impulse[n] * rows.impulse[n]
    return total


@njit
def strains(
    run: RunBundle, rows: Rows, equipment: EquipmentBundle, contact: PackContactBundle | None, chosen: Pack
) -> Pack:
    """1 in lanes where `chosen` is 1 and hard loops, not aimed yet, are strained: such lanes take the step alone."""
    h, zero = run.inputs.time_step[0], zero_like(chosen)
    chosen = where_greater(zero + AIMED, run.step.aiming[PHASE], chosen, zero)
    most = h * _yield_of_loops(rows, equipment)
    strained = where_greater(most, zero + STRAINED, chosen, zero)
    yielding = where_greater(most, zero + HAIR, chosen, zero)
    if contact is not None and any_positive(yielding):
        total = _power_of_yield(rows, equipment)
        for n in range(contact.data.number[CONTACTS]):
            if contact.data.row[n] >= 0 and contact.data.soft[n] == 0:
                strained = largest(strained, yielding * is_pushing(removal_power(rows, contact, n), total))
    return strained


# ------------------------------------------------------------------ contacts


@njit
def _leave_out(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle,
    contact: ContactBundle,
    solver: SolverBundle,
) -> bool:
    """Leave out the contacts that strain loops; True if there are any and leaving them out helped. If bodies of these
    contacts then move into each other, all of these contacts stay in the step without removal of their penetration,
    provided that this helps as well.
    """
    h = run.inputs.time_step[0]
    most = _HELPED * _yield_of_loops(rows, equipment)
    if not _choose(rows, equipment, contact):
        return False
    _open_wide(run.step, rows, contact)
    _solve_without_start(robot, rows, run.step, equipment, solver)
    helped = _has_helped(rows, equipment, most)
    closing = False
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.held[n] < 0 and helped:
            contact.data.held[n] = -contact.data.held[n]
            if h * (_rate_of(rows, run.step, contact.data.row[n])) < -HAIR:
                contact.data.held[n] = -contact.data.held[n]
                closing = True
    if helped and not closing:
        return True
    _set_back(rows, contact, helped)
    _solve_without_start(robot, rows, run.step, equipment, solver)
    if helped and not _has_helped(rows, equipment, most):
        _open_wide(run.step, rows, contact)
        _solve_without_start(robot, rows, run.step, equipment, solver)
        for n in range(contact.data.number[CONTACTS]):
            contact.data.held[n] = abs(contact.data.held[n])
    for n in range(contact.data.number[CONTACTS]):
        contact.data.held[n] = max(contact.data.held[n], 0)
    return helped


@inlined
def _has_helped(rows: Rows, equipment: EquipmentBundle, most: float) -> bool:
    """True if the rows are solved with loops that yield by `most` at most."""
    return rows.report[RESIDUAL] <= UNSOLVED and _yield_of_loops(rows, equipment) <= most


@njit
def _open_wide(step: Step, rows: Rows, contact: ContactBundle) -> None:
    """Make chosen contacts open too fast to act; their biases and rates are kept in rows.unaimed and rows.miss."""
    fastest = 1.0
    for a in range(step.next.shape[0]):
        fastest = max(fastest, abs(step.next[a]))
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.held[n] < 0:
            for row in range(contact.data.row[n], contact.data.row[n] + normal_rows(contact, n)):
                rows.unaimed[row], rows.miss[row] = rows.bias[row], rows.rate[row]
                rows.bias[row], rows.rate[row] = _APART * fastest, 0.0


@njit
def _set_back(rows: Rows, contact: ContactBundle, inside: bool) -> None:
    """Restore the rows of chosen contacts; `inside`: without the removal of their penetration."""
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.held[n] < 0:
            for row in range(contact.data.row[n], contact.data.row[n] + normal_rows(contact, n)):
                rows.bias[row], rows.rate[row] = rows.unaimed[row], rows.miss[row]
                if inside:
                    rows.bias[row] -= rows.rate[row] * contact.data.gap[n]
                    rows.rate[row] = 0.0


@inlined
def _rate_of(rows: Rows, step: Step, row: int) -> float:
    """The velocity of a row without its bias [m/s]."""
    rate = 0.0
    for e in range(rows.start[row], rows.stop[row]):
        rate += rows.value[e] * step.next[rows.column[e]]
    return rate


@njit
def _choose(rows: Rows, equipment: EquipmentBundle, contact: ContactBundle) -> bool:
    """Set contact.data.held to -1 - loop, for the loop that yields most, of contacts that may strain loops, and of all
    penetrating contacts between the same two bodies; True if there are any.
    """
    loop, total = _most_strained(rows, equipment), _power_of_yield(rows, equipment)
    chosen = False
    for n in range(contact.data.number[CONTACTS]):
        if not _may_push(contact, n) or is_pushing(removal_power(rows, contact, n), total) <= 0.0:
            continue
        chosen = True
        for other in range(contact.data.number[CONTACTS]):
            if _may_push(contact, other) and _same_bodies(contact, n, other):
                contact.data.held[other] = -1 - loop
    return chosen


@inlined
def _may_push(contact: ContactBundle, n: int) -> bool:
    """True if contact n is hard, penetrates and takes part in the step."""
    may: bool = contact.data.row[n] >= 0 and contact.data.soft[n] == 0 and contact.data.held[n] <= 0
    return may and contact.data.gap[n] <= 0.0


@inlined
def _same_bodies(contact: ContactBundle, n: int, other: int) -> bool:
    """True if two contacts are between the same two bodies."""
    alike = True
    for end in range(2):
        body = contact.model.body[contact.data.shape[n, end]]
        alike = alike and body == contact.model.body[contact.data.shape[other, end]]
    return alike


@njit
def _most_strained(rows: Rows, equipment: EquipmentBundle) -> int:
    """The hard loop that takes up most power in yielding."""
    loop, most = -1, 0.0
    before, power = -1, 0.0
    for n in range(rows.number[LASTING_ROWS]):
        if not is_of_hard_loop(rows, equipment, n):
            continue
        power = power if rows.dof[n] == before else 0.0  # a loop's rows are adjacent
        before = rows.dof[n]
        power += rows.cfm[n] * rows.impulse[n] * rows.impulse[n]
        if power > most:
            loop, most = before, power
    return loop


# ------------------------------------------------------------------ loads on light links


@njit
def _stiffen_rows(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle, solver: SolverBundle
) -> bool:
    """Stiffen the rows of loops that yield to a load; True if all of them then yield less. Rows that still yield as
    before contradict others, and get back their softness; the yields before are in rows.miss.
    """
    h = run.inputs.time_step[0]
    worst = _yield_of_loops(rows, equipment)
    if h * worst <= STRAINED:
        return False
    for n in range(rows.number[LASTING_ROWS]):
        rows.miss[n] = abs(rows.cfm[n] * rows.impulse[n]) if is_of_hard_loop(rows, equipment, n) else 0.0
        if h * rows.miss[n] > STRAINED:
            rows.cfm[n] *= max(_STIFFEST, _LEFT / (h * rows.miss[n]))
    _solve_anew(robot, rows, run.step, solver)
    solved = rows.report[RESIDUAL] <= UNSOLVED
    contradict = False
    for n in range(rows.number[LASTING_ROWS]):
        if rows.miss[n] <= 0.0:
            continue
        most = _HELPED * max(rows.miss[n], _MINOR * worst)
        if not solved or (h * rows.miss[n] > STRAINED and abs(rows.cfm[n] * rows.impulse[n]) > most):
            rows.cfm[n] = softness(equipment, rows.dof[n], rows.part[n])
            contradict = True
    if contradict:
        _solve_without_start(robot, rows, run.step, equipment, solver)
    return not contradict


@njit
def _solve_anew(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle) -> None:
    """Solve again with other softness: only the impulses of the last solution are kept."""
    rows.report[RESIDUAL] = UNTRIED
    ask(solver.call, SOLVE_AGAIN)


@njit
def _solve_without_start(
    robot: RobotBundle, rows: Rows, step: Step, equipment: EquipmentBundle, solver: SolverBundle
) -> None:
    """Solve again from zero impulses of contacts and hard loops, since the last ones were no answer to a load."""
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] == CONTACT_ROW or is_of_hard_loop(rows, equipment, n):
            rows.impulse[n] = 0.0
    _solve_anew(robot, rows, step, solver)
