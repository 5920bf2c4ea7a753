"""Solves a step again while impacts cause further impacts or contacts gain energy, in both widths.

Contacts rebound in a step's first solution. If this solution shows further impacts, they are taken in sequence
(impacts.py) and the rows are solved again with the speeds that they lead to, then while contacts gain energy, with ever
less restitution. Each call of `bounce_on` looks at one solution and says where another one is needed.
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.row import UNSOLVED, row_rate
from artsim.sim.contact.contact_law import brings_apart
from artsim.sim.contact.contact_rows import aim_normal_rows, aim_rebounds, bounces, gains, throws
from artsim.sim.contact.impacts import along_row, pass_on_blows, take_blows, weaken
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.geometry.contacts import CONTACTS, AnyContacts, ContactBundle
from artsim.sim.run_data.run_records import ALL_ROWS, RESIDUAL, Inputs, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.solvers.calls import factorise_system, reduce_system

REBOUNDING, STRUCK, LIMITED, BOUNCED = range(4)  # of ContactWork.phase

_ATTEMPTS = 6  # solutions in phase STRUCK, and in phase LIMITED


@njit
def begin_bounces(contact: AnyContacts, chosen: Real) -> None:
    """Let the contacts rebound by their own speeds where `chosen` is 1, as the rows that are built anew do."""
    zero = zero_like(chosen)
    contact.data.phase[0] = where_greater(chosen, zero, zero + REBOUNDING, contact.data.phase[0])
    contact.data.tries[0] = where_greater(chosen, zero, zero, contact.data.tries[0])
    for n in range(contact.data.number[CONTACTS]):
        contact.data.inside[n] = where_greater(chosen, zero, zero, contact.data.inside[n])
        if contact.bounces is not None:
            contact.bounces.aimed[n] = where_greater(chosen, zero, zero, contact.bounces.aimed[n])
            contact.bounces.hit[n] = where_greater(chosen, zero, zero, contact.bounces.hit[n])


@inlined
def is_bouncing(contact: AnyContacts) -> Real:
    """1 in the midst of the further solutions for impacts or for energy."""
    zero, phase = zero_like(contact.data.phase[0]), contact.data.phase[0]
    further = where_greater(phase, zero + REBOUNDING, zero + 1.0, zero)
    return where_greater(zero + BOUNCED, phase, further, zero)


@njit
def bounce_on(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, solver: SolverBundle, chosen: Real
) -> Real:
    """1 where the rows are to be solved again with other biases of contacts (contact_rows.aim_rebounds), since impacts
    cause further ones or contacts gain energy. The solution is looked at where `chosen` is 1.
    """
    work, zero = contact.data, zero_like(chosen)
    most = zero + (_ATTEMPTS - 0.5)
    limited = where_greater(work.phase[0], zero + (STRUCK + 0.5), chosen, zero)
    several = zero
    if contact.bounces is not None:
        several = _strike_on(robot, run, rows, contact, solver, chosen - limited)
    others = chosen - several
    work.tries[0] = where_greater(others - limited, zero, zero, work.tries[0])
    may = where_greater(most, work.tries[0], others, zero)
    gaining = zero
    if any_positive(may):
        gaining = _limit_energy(robot, run, rows, contact, may)
    again = several + gaining
    work.tries[0] = work.tries[0] + again
    phase = where_greater(gaining, zero, zero + LIMITED, zero + BOUNCED)
    phase = where_greater(several, zero, zero + STRUCK, phase)
    work.phase[0] = where_greater(chosen, zero, phase, work.phase[0])
    return again


@njit
def aim_again(robot: RobotBundle, inputs: Inputs, rows: Rows, contact: ContactBundle) -> None:
    """Set the biases that `bounce_on` asks for in the rows of a single robot, which are not built anew."""
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.row[n] < 0 or contact.data.soft[n] == 1:
            continue
        if contact.data.restitution[n] > 0.0 or contact.data.inside[n] > 0.0:
            aim_normal_rows(robot, inputs, rows, contact, n)
            aim_rebounds(robot, inputs, rows, contact, n)


@njit
def _strike_on(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, solver: SolverBundle, chosen: Real
) -> Real:
    """Take several impacts in sequence where `chosen` is 1 and the first solution shows further impacts, or the last
    sequence gained energy; 1 where there are several.
    """
    zero = zero_like(chosen)
    fresh = where_greater(zero + (STRUCK - 0.5), contact.data.phase[0], chosen, zero)
    struck = chosen - fresh
    blown = zero
    if any_positive(fresh):
        blown = least(fresh, pass_on_blows(robot, run, rows, contact))
    if any_positive(struck):
        gaining = weaken(robot, run, rows, contact, struck)
        blown = blown + where_greater(zero + (_ATTEMPTS - 0.5), contact.data.tries[0], gaining, zero)
    if not any_positive(blown):
        return zero
    return _aim_at_blows(robot, run, rows, contact, solver, blown)


@njit
def _aim_at_blows(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, solver: SolverBundle, chosen: Real
) -> Real:
    """Aim contacts at the speeds to which several impacts in sequence lead; 1 where `chosen` is 1 and there are
    several.
    """
    model, data, step = robot.model, robot.data, run.step
    speed, half = step.stage_qvel, step.tangent
    reduce_system(model, data, step, solver)
    factorise_system(model, data, solver)
    several = least(chosen, take_blows(robot, run, rows, contact, solver, chosen, (speed, half)))
    reduce_system(model, data, step, solver)
    zero = zero_like(chosen)
    for n in range(contact.data.number[CONTACTS]):
        row = contact.data.row[n]
        if row >= 0:
            bias = -along_row(rows, row, speed) - along_row(rows, row, half)
            bias = where_greater(contact.bounces.hit[n], zero, bias, zero + 1e308)
            contact.bounces.aim[n] = where_greater(several, zero, bias, contact.bounces.aim[n])
            contact.bounces.aimed[n] = where_greater(several, zero, zero + 1.0, contact.bounces.aimed[n])
    return several


@njit
def _limit_energy(robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, chosen: Real) -> Real:
    """Halve the restitution of contacts whose impulses do work, and leave penetration whose removal takes too much
    energy, where `chosen` is 1; 1 where there are any of these contacts.

    Newton's law with friction can gain energy: a bounce may return more along the surface than it takes across it (Kane
    and Levinson 1985; Stronge 1990). A penetration may be one that no joint can separate (links that overlap where they
    are hinged), or only at an excessive speed; its contact is then only kept from getting deeper.
    """
    zero = zero_like(chosen)
    unsolved = where_greater(rows.report[RESIDUAL], zero + UNSOLVED, zero + 1.0, zero)
    limited = zero
    for n in range(contact.data.number[CONTACTS]):
        row = contact.data.row[n]
        if row < 0 or contact.data.soft[n] == 1:
            continue
        if contact.bounces is not None:
            limited = largest(limited, _weaken_alone(robot, run, rows, contact, n, chosen))
        # regularised contacts yield before they throw, and count as unsolved
        penetrates = where_greater(rows.regularised[row], zero, zero, brings_apart(rows.rate[row], contact.data.gap[n]))
        apart = where_greater(contact.data.restitution[n], zero, zero, chosen * penetrates)
        if any_positive(apart):
            thrown = least(apart, largest(unsolved, throws(robot, rows, run.step, contact, n)))
            contact.data.inside[n] = largest(contact.data.inside[n], thrown)
            limited = largest(limited, thrown)
            _forget_impulses(rows, row, row + contact.data.rows[n], thrown)
    _forget_impulses(rows, 0, rows.number[ALL_ROWS], limited * unsolved)  # nor are unsolved impulses a warm start
    return limited


@inlined
def _weaken_alone(robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, n: int, chosen: Real) -> Real:
    """Halve the restitution of contact n where `chosen` is 1, it bounces by itself and its impulses do work; 1 where
    they do.
    """
    zero, e = zero_like(chosen), contact.data.restitution[n]
    bounce = where_greater(e, zero, chosen * (1.0 - contact.bounces.hit[n]), zero)
    if any_positive(bounce):
        rate = row_rate(rows, contact.data.row[n], robot.state.qvel)
        bounce = bounce * bounces(contact, n, rate, run.inputs.time_step[0])
        if any_positive(bounce):
            bounce = bounce * gains(robot.state, rows, run.step, contact, n)
            contact.data.restitution[n] = where_greater(bounce, zero, 0.5 * e, e)
            contact.bounces.aimed[n] = where_greater(bounce, zero, zero, contact.bounces.aimed[n])
    return bounce


@inlined
def _forget_impulses(rows: Rows, first: int, end: int, chosen: Real) -> None:
    """Let rows `first` to before `end` start from no impulses where `chosen` is 1."""
    zero = zero_like(chosen)
    if any_positive(chosen):
        for row in range(first, end):
            rows.impulse[row] = where_greater(chosen, zero, zero, rows.impulse[row])
