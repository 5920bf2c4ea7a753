"""Keeps an account of energy: the start's energy and the work of all sources since, beside the state's energy.

Velocities of semi-implicit Euler are those half a step before its positions, so that energy is measured at q ⊖ ½ h v:
there the account of a free body, a weight or a linear spring (actuation.py) is exact, and others differ by h².

Inputs, drives and actuators, compensated weight and wind give and take. Springs give the energy that they have stored.
All other sources only take: the energy taken by joints (damping, friction) never decreases; that taken by rows
(couplings, limits, loops, tendons, contacts) may decrease, since soft rows store energy, but is never negative, except
for the work of closing rows that start open. Energy of the state beyond the sum of these is created energy. The account
keeps the share of the created energy that has not been dissipated since.

Work (work.py) is summed over all steps, also between the steps in which the sums are compared with the energy.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.centroidal import body_energy, centre_of_mass, kinetic_energy, potential_energy
from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.dynamics import composites
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import kinematics, velocities, world_inertia
from artsim.sim.articulation.model import LINEAR, WORLD, Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.loop_rows import loop_spring_energy
from artsim.sim.constraints.row import RECOVERY
from artsim.sim.equipment.arrays import WIND_X, WIND_Y, WIND_Z, EquipmentBundle
from artsim.sim.equipment.passive import spring_energy
from artsim.sim.equipment.tendon_forces import tendon_spring_energy
from artsim.sim.equipment.tendons import inertia_energy, tendon_paths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.foundation.vec3 import dot, length
from artsim.sim.run_data.run_records import (
    ASKED,
    AT_REST,
    AVAILABLE,
    BEGAN,
    CEILING,
    CREATED,
    CREDIT,
    ENERGY,
    EXCESS,
    EXCESS_DOF,
    EXCESS_SOURCE,
    EXCESS_STEP,
    IMPACT,
    LAG,
    LIMIT,
    LOOP,
    LOWEST,
    MEDIUM,
    MOTION,
    PASSIVE,
    SOURCES,
    START_DEPTH,
    STEP_NUMBER,
    STORED,
    STRUCK,
    TENDON,
    WORK,
    RunBundle,
    Step,
)

TOO_MUCH = 0.05  # ratio of created energy to all other energy above which a warning is given
_SLACK = 5e-5  # [J/kg] created energy that is tolerated in any case: 1 cm/s
_ROUNDING = 1e-10  # tolerated share of the energies that are added
_IMPACT = 0.5  # share of the energy that rows take in a step which counts as an impact
_LATE = 4.0  # steps that take more than (1 - 1 / _LATE) of the energy also take the energy created within them
_LOOSE = 0.125  # [J/kg] energy that may close loops, equalities and contacts: 0.5 m/s
_PLACING = 1.0  # [s] from the start, during which loops, equalities and contacts may be closed


@njit
def energies(
    robot: RobotBundle, q: Reals1, v: Reals1, step: Step, equipment: EquipmentBundle | None
) -> tuple[float, ...]:
    """Energies of motion, heights, joint springs, tendons and loops at (q, v) [J]; leaves data at (q, v).

    The energy of tendons is that of their springs and of their inertia.
    """
    model, data = robot.model, robot.data
    kinematics(model, q, data)
    world_inertia(model, data)
    composites(model, data)
    centre_of_mass(model, data, step.com)
    velocities(model, v, data)
    moving = kinetic_energy(model, v, data)
    g = model.gravity
    heights = -model.carried_mass[WORLD] * dot(g, step.com)
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
def compare_energy(
    robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None, account: Reals1, watch: Reals1
) -> None:
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
        account[IMPACT] = _IMPACT * moving + _SLACK * _moving_mass(robot.model)
        return
    given, taken = _settle(robot.model, run, account, springs, tendons, loops)
    account[LOWEST] = min(account[LOWEST], energy - moving)
    there = max(energy - account[LOWEST], 0.0)
    kept = there / (there + taken) if taken > 0.0 else 1.0
    made = energy - account[ENERGY] - given
    account[CREATED] = max(kept * account[CREATED] + min(_LATE * kept, 1.0) * made, 0.0)
    account[ENERGY] = energy
    available = max(there - account[CREATED], 0.0)
    account[IMPACT] = _IMPACT * there + _SLACK * _moving_mass(robot.model)
    account[STRUCK] = 0.0
    slack = _SLACK * _moving_mass(robot.model) + _ROUNDING * (abs(energy) + abs(heights) + springs)
    if account[CREATED] > TOO_MUCH * available + slack:
        watch[EXCESS_STEP] = step.counters[STEP_NUMBER] + 1.0
        watch[EXCESS_DOF] = _liveliest(robot.model, robot.data)
        watch[EXCESS_SOURCE] = _main_source(account, springs, tendons, loops)
        watch[EXCESS] = account[CREATED]
        watch[AVAILABLE] = available


@njit
def look(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Compare the account with the present state, in copies, so that the account does not depend on these calls."""
    step = run.step
    for n in range(step.account.shape[0]):
        step.last_account[n] = step.account[n]
    for n in range(step.watch.shape[0]):
        step.last_watch[n] = step.watch[n]
    compare_energy(robot, run, equipment, step.last_account, step.last_watch)
    kinematics(robot.model, robot.state.qpos, robot.data)  # other tasks between steps need data at the state
    velocities(robot.model, robot.state.qvel, robot.data)


@njit
def _measure(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> tuple[float, ...]:
    """`energies` at the time to which the velocities of the state belong: account[LAG] steps before its positions."""
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
def _open(
    step: Step, equipment: EquipmentBundle | None, account: Reals1, springs: float, tendons: float, loops: float
) -> None:
    """Begin the account anew: no source has given energy yet, and rows may close gaps that are open."""
    for s in range(SOURCES):
        account[WORK + s] = 0.0
        account[CREDIT + s] = 0.0
        account[STORED + s] = _stored(s, springs, tendons, loops)
        account[CEILING + s] = math.inf if s < MEDIUM else 0.0
    if equipment is not None and _is_windy(equipment):
        account[CEILING + MEDIUM] = math.inf
    account[BEGAN] = step.counters[STEP_NUMBER]
    account[ASKED] = 0.0
    account[STRUCK] = 0.0
    account[CREATED] = 0.0


@inlined
def _is_windy(equipment: EquipmentBundle) -> bool:
    medium = equipment.model.medium
    return medium[WIND_X] != 0.0 or medium[WIND_Y] != 0.0 or medium[WIND_Z] != 0.0


@inlined
def _stored(s: int, springs: float, tendons: float, loops: float) -> float:
    """The energy that the springs of source s store [J]."""
    if s == PASSIVE:
        return springs
    if s == TENDON:
        return tendons
    return loops if s == LOOP else 0.0


@njit
def _settle(
    model: Model, run: RunBundle, account: Reals1, springs: float, tendons: float, loops: float
) -> tuple[float, float]:
    """The energy that sources can have given since the last comparison, and the energy that sources took back [J]."""
    step = run.step
    time = (step.counters[STEP_NUMBER] - account[BEGAN]) * run.inputs.time_step[0]
    deep, open_by = step.yielded[START_DEPTH], step.loop_gap[LINEAR]
    speed = 2.0 * deep / RECOVERY  # of bodies that are pushed out, and turn
    placed = _moving_mass(model) * (_LOOSE + 0.5 * speed * speed + _weight_of(model) * max(deep, open_by))
    soft_limits = run.inputs.limit_impedance.shape[0] > 0  # as stiff as the inertia that they meet
    given = 0.0
    taken = 0.0
    for s in range(SOURCES):
        gave = account[WORK + s] + _stored(s, springs, tendons, loops) - account[STORED + s]
        if s == PASSIVE:
            account[CEILING + s] = min(account[CEILING + s], gave)
        elif s > PASSIVE and time <= _PLACING:
            most = math.inf if s == LIMIT and soft_limits else placed
            account[CEILING + s] = max(account[CEILING + s], min(gave, most))
        credit = min(account[CEILING + s], gave)
        given += credit - account[CREDIT + s]
        taken += max(account[CREDIT + s] - credit, 0.0)
        account[CREDIT + s] = credit
    return given, taken


@inlined
def _weight_of(model: Model) -> float:
    g = model.gravity
    return length(g)


@inlined
def _moving_mass(model: Model) -> float:
    """Mass of all bodies that are not fixed to the world [kg]."""
    return model.carried_mass[WORLD] - model.body_mass[WORLD]


@njit
def _main_source(account: Reals1, springs: float, tendons: float, loops: float) -> int:
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
def _liveliest(model: Model, data: Workspace) -> int:
    """The last dof of the body with the most kinetic energy. Needs `world_inertia` and `velocities`."""
    found = 0
    most = -1.0
    for i in range(1, model.body_parent.shape[0]):
        energy = body_energy(model, data, i)
        if model.body_dof[i + 1] > model.body_dof[i] and energy > most:
            most = energy
            found = model.body_dof[i + 1] - 1
    return found
