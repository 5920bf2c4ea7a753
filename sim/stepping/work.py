"""The work of a step's forces by source, over the way of the step's middle, and its sums in the account.

M (v⁺ - v) = h Σ τ makes h ½ (v + v⁺) · τ exactly the change of kinetic energy at the step's start. With couplings v is
G u, and integrators of several evaluations weigh the power at each. energy_account.py compares the sums with the energy
of the state.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.kinds import TAU, TENDON_ROW, TENDON_SPRING
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.foundation.recordtype import connected
from artsim.sim.geometry.contacts import CONTACTS, ContactBundle
from artsim.sim.run_data.registry import MEAN_VELOCITY
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    APPLIED,
    ASKED,
    BETA,
    CEILING,
    CONTACT,
    COUPLING,
    DRIVE,
    ENERGY,
    IMPACT,
    LAG,
    LIMIT,
    LOOP,
    MEDIUM,
    PASSIVE,
    RUNGE_KUTTA,
    STEP_NUMBER,
    STRUCK,
    TENDON,
    WEIGHT,
    WORK,
    Rows,
    RunBundle,
    Step,
)

_FIRST = 8  # step of the first comparison
_CYCLE, _WITHIN = 32, 13  # two comparisons in 32 steps, apart by 13 and 19: no period meets both
_SOURCE_OF = (DRIVE, PASSIVE, COUPLING, LIMIT, LOOP, TENDON, CONTACT)  # by TAU


@inlined
def _add_way(step: Step, equipment: EquipmentBundle | None, k: int, way: float) -> None:
    """Add to step.work the work of the forces on dof k along its way; in both widths."""
    work = step.work
    work[APPLIED] = work[APPLIED] + step.applied[k] * way
    work[DRIVE] = work[DRIVE] + step.drive[k] * way
    work[PASSIVE] = work[PASSIVE] + step.passive[k] * way
    work[COUPLING] = work[COUPLING] + step.coupling[k] * way
    work[LIMIT] = work[LIMIT] + step.limit[k] * way
    work[LOOP] = work[LOOP] + step.loop[k] * way
    work[TENDON] = work[TENDON] + step.tendon[k] * way
    work[CONTACT] = work[CONTACT] + step.contact[k] * way
    if equipment is not None:
        work[WEIGHT] = work[WEIGHT] + equipment.data.carried[k] * way
        work[MEDIUM] = work[MEDIUM] + equipment.data.drag[k] * way


@njit
def find_work(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Set step.work, by source, of the forces booked along the mean of the velocities before and after the step.

    Needs step.passive without the terms that midpoint.py adds for files.
    """
    model, state, data, step = robot.model, robot.state, robot.data, run.step
    half = 0.5 * run.inputs.time_step[0]
    for s in range(step.work.shape[0]):
        step.work[s] = like(0.0, data)
    for k in range(step.velocity.shape[0]):
        a = model.dof_independent[k]
        if a >= 0:
            _add_way(step, equipment, k, half * (state.qvel[k] + data.gain[k] * step.next[a]))


@njit
def add_pull_work(robot: RobotBundle, run: RunBundle, contact: ContactBundle) -> None:
    """Add the work of adhesion to the actuators' work. Adhesion has been added to step.contact after `find_work`."""
    pulled = False
    for n in range(contact.data.number[CONTACTS]):
        pulled = pulled or contact.data.pull[n] > 0.0
    if not pulled:
        return
    model, state, data, step = robot.model, robot.state, robot.data, run.step
    total = 0.0
    for k in range(step.velocity.shape[0]):
        a = model.dof_independent[k]
        if a >= 0:
            way = 0.5 * run.inputs.time_step[0] * (state.qvel[k] + data.gain[k] * step.next[a])
            total += step.contact[k] * way
    step.work[DRIVE] += total - step.work[CONTACT]


@njit
def add_stage_work(step: Step, equipment: EquipmentBundle | None, v: Reals1, time: float) -> None:
    """Add to step.work the work of the forces of an evaluation at velocities v (nv,) over its share of the step [s]."""
    for k in range(v.shape[0]):
        _add_way(step, equipment, k, time * v[k])


@njit
def book_work(run: RunBundle, rows: Rows) -> None:
    """Add a step's work to the account; in the account's first step, also the energy that open rows may give."""
    step, account = run.step, run.step.account
    for s in range(step.work.shape[0]):
        account[WORK + s] += step.work[s]
    account[WORK + PASSIVE] -= step.work[WEIGHT] + step.work[MEDIUM]
    if -(step.work[LIMIT] + step.work[LOOP] + step.work[TENDON] + step.work[CONTACT]) > account[IMPACT]:
        account[STRUCK] = 1.0
    if account[ASKED] == 0.0:
        account[ASKED] = 1.0
        _let_close(rows, step, run.inputs.time_step[0])


@njit
def _let_close(rows: Rows, step: Step, h: float) -> None:
    """Raise the ceilings of rows' sources by the energy stored in their errors, or that of the motion that corrects
    the errors."""
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] == TENDON_ROW and rows.part[n] == TENDON_SPRING:
            continue
        source = _SOURCE_OF[TAU[rows.kind[n]]]
        one_sided = source == LIMIT or source == CONTACT
        if source > PASSIVE and not (one_sided and rows.error[n] > 0.0):
            rate = rows.rate[n] if rows.rate[n] > 0.0 else 1.0 / h
            step.account[CEILING + source] += 0.5 * abs(rows.impulse[n] * rows.error[n]) * rate


@njit
def note_lag(run: RunBundle, rows: Rows) -> None:
    """Note the share of a step by which the velocities found are behind the positions: ½, less with sub-steps, and none
    with an integrator of its own steps."""
    own = connected(run.step.integrator) or run.inputs.convex[0] == RUNGE_KUTTA
    run.step.account[LAG] = 0.0 if own else run.inputs.scheme[BETA] - 0.5
    if MEAN_VELOCITY[run.inputs.solver[0]] and rows.number[ALL_ROWS] > 0:
        run.step.account[LAG] /= run.inputs.iterations[0]


@inlined
def is_new(step: Step) -> bool:
    """True if the account has yet to be opened, with the energy of the next step's start."""
    return math.isnan(step.account[ENERGY])


@inlined
def is_due(step: Step) -> bool:
    """True if the account is to be compared with the energy before this step.

    A comparison follows every impact, too, so that energy created later does not count as taken by the impact.
    """
    n = step.counters[STEP_NUMBER]
    due: bool = n == _FIRST or n % _CYCLE == 0 or n % _CYCLE == _WITHIN or is_new(step)
    return due or step.account[STRUCK] == 1.0
