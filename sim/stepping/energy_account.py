"""Keeps an account of energy: work by source, and the share of the energy there is that nothing has given.

The work of every force is summed in every step, over the way of the step's middle: M (v⁺ - v) = h Σ τ makes
h ½ (v + v⁺) · τ exactly the change of kinetic energy. Velocities of semi-implicit Euler are those half a step before
its positions, so that energy is measured at q ⊖ ½ h v; there the account of a free body, a weight or a linear spring
(actuation.py) is exact, and others differ by h². With couplings v is G u; RK4 weighs the powers of its stages.

Inputs, drives and actuators, compensated weight and wind give and take. Springs give what they have stored. Everything
else only takes: of joints (damping, friction) never less than before, of rows (couplings, limits, loops, tendons,
contacts) never less than none in all, since soft ones store, but for what closes them where they start open. Whatever
is there beyond what these have given was created. Of it remains the share that is not dissipated since.

Sums of work miss nothing between the steps in which they are compared with the energy at the state.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.articulation.centroidal import body_energy, centre_of_mass, kinetic_energy, potential_energy
from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.dynamics import composites
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import kinematics, like, velocities, world_inertia
from artsim.sim.articulation.model import LINEAR, WORLD
from artsim.sim.constraints.kinds import TAU, TENDON_ROW, TENDON_SPRING
from artsim.sim.constraints.loop_rows import loop_spring_energy
from artsim.sim.equipment.arrays import WIND_X, WIND_Y, WIND_Z
from artsim.sim.equipment.passive import spring_energy
from artsim.sim.equipment.tendon_forces import tendon_spring_energy
from artsim.sim.equipment.tendons import inertia_energy, tendon_paths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.geometry.contacts import CONTACTS
from artsim.sim.run_data.registry import MEAN_VELOCITY
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    APPLIED,
    AT_REST,
    AVAILABLE,
    BEGAN,
    BETA,
    CEILING,
    CONTACT,
    COUPLING,
    CREATED,
    CREDIT,
    DRIVE,
    ENERGY,
    EXCESS,
    EXCESS_DOF,
    EXCESS_SOURCE,
    EXCESS_STEP,
    LAG,
    LIMIT,
    LOOP,
    LOWEST,
    MEDIUM,
    MOTION,
    OPENED,
    PASSIVE,
    SOURCES,
    START_DEPTH,
    STEP_NUMBER,
    STORED,
    TENDON,
    WEIGHT,
    WORK,
)

TOO_MUCH = 0.05  # created energy over what is there otherwise, above which it is told
_ROUND = 16  # first steps, each of which is compared
_CYCLE, _WITHIN = 32, 13  # later two comparisons in so many steps, apart by 13 and 19: no period meets both
_SLACK = 5e-5  # [J/kg] created in any case: 1 cm/s
_ROUNDING = 1e-10  # of the energies that are added
_LOOSE = 0.125  # [J/kg] with which loops, equalities and contacts may be closed: 0.5 m/s
_PLACING = 1.0  # [s] at the start, during which they are
_SOURCE_OF = (DRIVE, PASSIVE, COUPLING, LIMIT, LOOP, TENDON, CONTACT)  # by TAU


@inlined
def _add_way(step: Any, equipment: Any, k: Any, way: Any) -> None:
    """Add to step.work what the forces on dof k do along its way; in both widths."""
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
def find_work(robot: Any, run: Any, equipment: Any) -> None:
    """Set step.work, by source, of the forces booked along the mean of the velocities before and after the step.

    Needs step.passive without what midpoint.py adds to it for files.
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
def add_pull_work(robot: Any, run: Any, contact: Any) -> None:
    """Add to the actuators' work that of adhesion, which step.contact holds besides the rows' forces since then."""
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
def add_stage_work(step: Any, equipment: Any, v: Any, first: bool, time: Any) -> None:
    """Add to step.work what the forces of a stage of RK4 do at velocities v (nv,) in its share of time [s]."""
    for s in range(step.work.shape[0]):
        if first:
            step.work[s] = v[0] - v[0]
    for k in range(v.shape[0]):
        _add_way(step, equipment, k, time * v[k])


@njit
def book_work(run: Any, rows: Any) -> None:
    """Add a step's work to the account; in its first step, what rows that are not closed may give."""
    step, account = run.step, run.step.account
    for s in range(step.work.shape[0]):
        account[WORK + s] += step.work[s]
    account[WORK + PASSIVE] -= step.work[WEIGHT] + step.work[MEDIUM]
    if account[OPENED] == 0.0:
        account[OPENED] = 1.0
        _let_close(rows, step, run.inputs.time_step[0])


@njit
def _let_close(rows: Any, step: Any, h: Any) -> None:
    """Raise the ceilings of rows' sources by what their errors store, or the motion that corrects these has."""
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] == TENDON_ROW and rows.part[n] == TENDON_SPRING:
            continue
        source = _SOURCE_OF[TAU[rows.kind[n]]]
        if source > PASSIVE:
            rate = rows.rate[n] if rows.rate[n] > 0.0 else 1.0 / h
            step.account[CEILING + source] += 0.5 * abs(rows.impulse[n] * rows.error[n]) * rate


@njit
def note_lag(run: Any, rows: Any) -> None:
    """Note by how much of a step the velocities found are behind the positions: ½, or less of sub-steps."""
    run.step.account[LAG] = run.inputs.scheme[BETA] - 0.5
    if MEAN_VELOCITY[run.inputs.solver[0]] and rows.number[ALL_ROWS] > 0:
        run.step.account[LAG] /= run.inputs.iterations[0]


@inlined
def is_new(step: Any) -> bool:
    """Whether the account has yet to be opened, with the energy of the next step's start."""
    return math.isnan(step.account[ENERGY])


@inlined
def is_due(step: Any) -> bool:
    """Whether the account is to be compared with the energy before this step."""
    n = step.counters[STEP_NUMBER]
    due: bool = n < _ROUND or n % _CYCLE == 0 or n % _CYCLE == _WITHIN or is_new(step)
    return due


@njit
def energies(robot: Any, q: Any, v: Any, step: Any, equipment: Any) -> Any:
    """Energy of motion and that of heights, joint springs, tendons and loops at (q, v) [J]; leaves data there.

    Tendons have that of their springs and of their inertia.
    """
    model, data = robot.model, robot.data
    kinematics(model, q, data)
    world_inertia(model, data)
    composites(model, data)
    centre_of_mass(model, data, step.com)
    velocities(model, v, data)
    moving = kinetic_energy(model, v, data)
    g = model.gravity
    heights = -model.carried_mass[WORLD] * (g[0] * step.com[0] + g[1] * step.com[1] + g[2] * step.com[2])
    springs = potential_energy(model, q, step.com) - heights
    tendons = 0.0
    loops = 0.0
    if equipment is not None:
        tendon_paths(robot, q, v, equipment)
        springs += spring_energy(model, q, equipment)
        tendons = tendon_spring_energy(equipment) + inertia_energy(equipment)
        loops = loop_spring_energy(model, data, equipment)
    return moving, heights, springs, tendons, loops


@njit
def compare_energy(robot: Any, run: Any, equipment: Any, account: Any, watch: Any) -> None:
    """Compare the account with the energy of the state, and open it if it is new; the first excess goes to `watch`."""
    step = run.step
    if step.counters[AT_REST] == 1 or watch[EXCESS_STEP] > 0.0:
        return
    moving, heights, springs, tendons, loops = _measure(robot, run, equipment)
    energy = moving + heights + springs + tendons + loops
    if math.isnan(account[ENERGY]):  # new
        _open(step, equipment, account, springs, tendons, loops)
        account[LOWEST] = energy - moving
        account[ENERGY] = energy
        return
    given, taken = _settle(robot.model, run, account, springs, tendons, loops)
    account[LOWEST] = min(account[LOWEST], energy - moving)
    there = max(energy - account[LOWEST], 0.0)
    kept = there / (there + taken) if taken > 0.0 else 1.0
    account[CREATED] = max(kept * account[CREATED] + energy - account[ENERGY] - given, 0.0)
    account[ENERGY] = energy
    available = max(there - account[CREATED], 0.0)
    slack = _SLACK * _moving_mass(robot.model) + _ROUNDING * (abs(energy) + abs(heights) + springs)
    if account[CREATED] > TOO_MUCH * available + slack:
        watch[EXCESS_STEP] = step.counters[STEP_NUMBER] + 1.0
        watch[EXCESS_DOF] = _liveliest(robot.model, robot.data)
        watch[EXCESS_SOURCE] = _main_source(account, springs, tendons, loops)
        watch[EXCESS] = account[CREATED]
        watch[AVAILABLE] = available


@njit
def look(robot: Any, run: Any, equipment: Any) -> None:
    """Compare the account with the present state, in copies: the account does not depend on when it is looked at."""
    step = run.step
    for n in range(step.account.shape[0]):
        step.last_account[n] = step.account[n]
    for n in range(step.watch.shape[0]):
        step.last_watch[n] = step.watch[n]
    compare_energy(robot, run, equipment, step.last_account, step.last_watch)
    kinematics(robot.model, robot.state.qpos, robot.data)  # what else is done between steps finds data at the state
    velocities(robot.model, robot.state.qvel, robot.data)


@njit
def _measure(robot: Any, run: Any, equipment: Any) -> Any:
    """`energies` where the velocities of the state belong: account[LAG] of a step before its positions."""
    model, state, step = robot.model, robot.state, run.step
    for n in range(step.stage_qpos.shape[0]):
        step.stage_qpos[n] = state.qpos[n]
    for k in range(step.stage_qvel.shape[0]):
        step.stage_qvel[k] = state.qvel[k]
    move(model, step.stage_qpos, step.stage_qvel, -step.account[LAG] * run.inputs.time_step[0])
    expand(model, step.stage_qpos, step.stage_qvel, robot.data)
    found = energies(robot, step.stage_qpos, step.stage_qvel, step, equipment)
    expand(model, state.qpos, state.qvel, robot.data)
    return found


@njit
def _open(step: Any, equipment: Any, account: Any, springs: Any, tendons: Any, loops: Any) -> None:
    """Begin the account anew: nothing was given, and rows may close what is open."""
    for s in range(SOURCES):
        account[WORK + s] = 0.0
        account[CREDIT + s] = 0.0
        account[STORED + s] = _stored(s, springs, tendons, loops)
        account[CEILING + s] = math.inf if s < MEDIUM else 0.0
    if equipment is not None and _is_windy(equipment):
        account[CEILING + MEDIUM] = math.inf
    account[BEGAN] = step.counters[STEP_NUMBER]
    account[OPENED] = 0.0
    account[CREATED] = 0.0


@inlined
def _is_windy(equipment: Any) -> bool:
    medium = equipment.model.medium
    windy: bool = medium[WIND_X] != 0.0 or medium[WIND_Y] != 0.0 or medium[WIND_Z] != 0.0
    return windy


@inlined
def _stored(s: Any, springs: Any, tendons: Any, loops: Any) -> Any:
    """What the springs of source s store [J]."""
    if s == PASSIVE:
        return springs
    if s == TENDON:
        return tendons
    return loops if s == LOOP else 0.0


@njit
def _settle(model: Any, run: Any, account: Any, springs: Any, tendons: Any, loops: Any) -> Any:
    """Energy that sources can have given since the last comparison, and how much of it they took [J]."""
    step = run.step
    time = (step.counters[STEP_NUMBER] - account[BEGAN]) * run.inputs.time_step[0]
    placed = _moving_mass(model) * (_LOOSE + _weight_of(model) * max(step.yielded[START_DEPTH], step.loop_gap[LINEAR]))
    given = 0.0
    taken = 0.0
    for s in range(SOURCES):
        gave = account[WORK + s] + _stored(s, springs, tendons, loops) - account[STORED + s]
        if s == PASSIVE:
            account[CEILING + s] = min(account[CEILING + s], gave)
        elif s > PASSIVE and time <= _PLACING:
            account[CEILING + s] = max(account[CEILING + s], min(gave, placed))
        credit = min(account[CEILING + s], gave)
        given += credit - account[CREDIT + s]
        taken += max(account[CREDIT + s] - credit, 0.0)
        account[CREDIT + s] = credit
    return given, taken


@inlined
def _weight_of(model: Any) -> Any:
    g = model.gravity
    return math.sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2])


@inlined
def _moving_mass(model: Any) -> Any:
    """Mass of all bodies but what is fixed to the world [kg]."""
    return model.carried_mass[WORLD] - model.body_mass[WORLD]


@njit
def _main_source(account: Any, springs: Any, tendons: Any, loops: Any) -> Any:
    """The source that gave more than half of the created energy, MOTION if none did."""
    most = 0.5 * account[CREATED]
    found = MOTION
    for s in range(SOURCES):
        over = account[WORK + s] + _stored(s, springs, tendons, loops) - account[STORED + s] - account[CREDIT + s]
        if over > most:
            most = over
            found = s
    return found


@njit
def _liveliest(model: Any, data: Any) -> Any:
    """The last dof of the body with the most kinetic energy. Needs `world_inertia` and `velocities`."""
    found = 0
    most = -1.0
    for i in range(1, model.body_parent.shape[0]):
        energy = body_energy(model, data, i)
        if model.body_dof[i + 1] > model.body_dof[i] and energy > most:
            most = energy
            found = model.body_dof[i + 1] - 1
    return found
