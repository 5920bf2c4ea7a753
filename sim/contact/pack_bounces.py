"""Bounces of a pack, treated as the bounces of a single robot in retries.py, one solution of the pack after the other.

A lane's contacts rebound in its first solution. If this solution shows further impacts, they are taken in sequence
(impacts.py) and the lane is solved again with the speeds that they lead to; then while contacts gain energy, with ever
less restitution.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import reduce_matrix
from artsim.sim.articulation.dynamics import factorise
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.row import row_rate
from artsim.sim.contact.contact_law import brings_apart, second_order
from artsim.sim.contact.contact_rows import bounces, gains, is_pyramid, set_rebounds, throws
from artsim.sim.contact.impacts import ATTEMPTS_AT_ENERGY, along_row, pass_on_blows, take_blows, weaken
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, highest, where_greater, zero_like
from artsim.sim.foundation.records import Pack
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.geometry.contacts import ALONG_NORMAL, CONTACTS
from artsim.sim.run_data.run_records import Inputs, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle

REBOUNDING, STRUCK, LIMITED, BOUNCED = range(4)  # of PackBounces.phase: kind of a lane's last solution


@njit
def begin_bounces(contact: PackContactBundle, chosen: Pack) -> None:
    """Let the contacts of lanes where `chosen` is 1 rebound by their own speeds, as rows that are built anew do."""
    pack = contact.bounces
    zero = zero_like(chosen)
    pack.phase[0] = where_greater(chosen, zero, zero + REBOUNDING, pack.phase[0])
    pack.tries[0] = where_greater(chosen, zero, zero, pack.tries[0])
    for n in range(contact.data.number[CONTACTS]):
        pack.aimed[n] = where_greater(chosen, zero, zero, pack.aimed[n])
        pack.inside[n] = where_greater(chosen, zero, zero, pack.inside[n])
        contact.data.hit[n] = where_greater(chosen, zero, zero, contact.data.hit[n])


@njit
def aim_bounces(robot: RobotBundle, inputs: Inputs, rows: Rows, contact: PackContactBundle, n: int) -> None:
    """Change the bias of the rows of contact n, as set_targets leaves them, where it bounces, or stays inside."""
    pack = contact.bounces
    if contact.data.soft[n] == 1:
        return
    row = contact.data.row[n]
    bias = rows.bias[row]
    zero = zero_like(bias)
    if any_positive(contact.data.restitution[n]):
        set_rebounds(robot, inputs, rows, contact, n)
        struck = least(bias, pack.aim[n])
        rows.bias[row] = where_greater(pack.aimed[n], zero, struck, rows.bias[row])
    inside = pack.inside[n]
    if any_positive(inside):
        for k in range(contact.data.rows[n] if is_pyramid(contact, n) else 1):
            rate = where_greater(inside, zero, rows.rate[row + k], zero)
            known = where_greater(inside, zero, second_order(inputs.time_step[0], contact.data.drift[n]), zero)
            rows.bias[row + k] -= rate * contact.data.gap[n] + known
            rows.rate[row + k] = where_greater(inside, zero, zero, rows.rate[row + k])


@njit
def bounce_on(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle, solver: SolverBundle, chosen: Pack
) -> Pack:
    """1 in lanes to be solved again since impacts cause further ones, or contacts gain energy. Only lanes where
    `chosen` is 1 are looked at.
    """
    pack = contact.bounces
    zero = zero_like(chosen)
    half = zero + 0.5
    fresh = where_greater(zero + STRUCK - half, pack.phase[0], chosen, zero)
    limited = where_greater(pack.phase[0], zero + STRUCK + half, chosen, zero)
    struck = chosen - fresh - limited
    blown = zero
    if any_positive(fresh):
        blown = least(fresh, pass_on_blows(robot, run, rows, contact))
    if any_positive(struck):
        gaining = weaken(robot, run, rows, contact, struck)
        blown = blown + where_greater(zero + ATTEMPTS_AT_ENERGY - half, pack.tries[0], gaining, zero)
    several = zero
    if any_positive(blown):
        several = _take_blows(robot, run, rows, contact, solver, blown)
    others = chosen - several
    pack.tries[0] = where_greater(others - limited, zero, zero, pack.tries[0])
    may = where_greater(zero + ATTEMPTS_AT_ENERGY - half, pack.tries[0], others, zero)
    gaining = _limit_energy(robot, run, rows, contact, may)
    again = several + gaining
    pack.tries[0] = pack.tries[0] + again
    phase = where_greater(gaining, zero, zero + LIMITED, zero + BOUNCED)
    phase = where_greater(several, zero, zero + STRUCK, phase)
    pack.phase[0] = where_greater(chosen, zero, phase, pack.phase[0])
    return again


@inlined
def goes_on(contact: PackContactBundle) -> Pack:
    """1 in lanes whose last solution was a further one, for impacts or for energy."""
    zero = zero_like(contact.bounces.phase[0])
    return where_greater(contact.bounces.phase[0], zero + REBOUNDING, zero + 1.0, zero)


@njit
def _take_blows(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle, solver: SolverBundle, chosen: Pack
) -> Pack:
    """Aim contacts at the speeds to which several impacts in sequence lead; 1 in chosen lanes where there are
    several.
    """
    model, data = robot.model, robot.data
    pack = contact.bounces
    reduce_matrix(model, data, run.step.diagonal)  # the pack's solver has left it as it was; every solution renews it
    factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)
    several = least(chosen, take_blows(robot, run, rows, contact, solver, chosen, (pack.speed, pack.half)))
    zero = zero_like(chosen)
    for n in range(contact.data.number[CONTACTS]):
        row = contact.data.row[n]
        if row >= 0:
            speed = -along_row(rows, row, pack.speed) - along_row(rows, row, pack.half)
            speed = where_greater(contact.data.hit[n], zero, speed, zero + 1e308)
            pack.aim[n] = where_greater(several, zero, speed, pack.aim[n])
            pack.aimed[n] = where_greater(several, zero, zero + 1.0, pack.aimed[n])
    return several


@njit
def _limit_energy(robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle, chosen: Pack) -> Pack:
    """Limit the energy that contacts gain in lanes where `chosen` is 1, as contact_rows.limit_energy does; 1 in lanes
    to be solved again."""
    state, step = robot.state, run.step
    pack, h = contact.bounces, run.inputs.time_step[0]
    zero = like(0.0, robot.data)
    limited = zero
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.row[n] < 0 or contact.data.soft[n] == 1 or highest(chosen) <= 0.0:
            continue
        row, e = contact.data.row[n], contact.data.restitution[n]
        if any_positive(e):
            bounce = where_greater(e, zero, chosen * (1.0 - contact.data.hit[n]), zero)
            rate = row_rate(rows, row, state.qvel) + contact.data.belt[n, ALONG_NORMAL]
            bounce = bounce * bounces(contact, n, rate, h)
            if any_positive(bounce):
                bounce = bounce * gains(state, rows, step, contact, n)
                contact.data.restitution[n] = where_greater(bounce, zero, 0.5 * e, e)
                pack.aimed[n] = where_greater(bounce, zero, zero, pack.aimed[n])
                limited = largest(limited, bounce)
        apart = where_greater(e, zero, zero, chosen * brings_apart(rows.rate[row], contact.data.gap[n]))
        if any_positive(apart):
            thrown = least(apart, throws(robot, rows, step, contact, n))
            pack.inside[n] = largest(pack.inside[n], thrown)
            limited = largest(limited, thrown)
    return limited
