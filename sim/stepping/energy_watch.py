"""Watches energy: a run whose kinetic energy exceeds what it can have received is wrong, and is reported once.

What it can have received is the energy at the start, the potential energy released since (weights, springs), the work
of applied forces, drives, actuators, the medium and compensated weights, and, during the first moments, the work that
brings joints, loops and contacts into place. Everything else (dampers, friction, limits, couplings, contacts) can only
dissipate.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.articulation.centroidal import body_energy, centre_of_mass, kinetic_energy, potential_energy
from artsim.sim.articulation.dynamics import composites
from artsim.sim.articulation.kinematics import kinematics, velocities, world_inertia
from artsim.sim.articulation.model import WORLD
from artsim.sim.constraints.loop_rows import loop_spring_energy
from artsim.sim.equipment.passive import spring_energy
from artsim.sim.equipment.tendon_forces import tendon_spring_energy
from artsim.sim.equipment.tendons import inertia_energy, tendon_paths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.run_data.run_records import AT_START, EXCESS_DOF, EXCESS_FACTOR, EXCESS_STEP, GIVEN, MOST, STEP_NUMBER

EVERY = 16  # steps between checks
TOO_MUCH = 1.2  # times the energy received: steps of a reasonable size stay within a few per cent
_SLACK = 5e-5  # [J/kg] tolerated in any case: 1 cm/s
_LOOSE = 0.125  # [J/kg] where loops, equalities or contacts are closed at up to 0.5 m/s
_PLACING = 0.2  # [s] at the start, during which bodies are brought into place


@njit
def energies(robot: Any, step: Any, equipment: Any) -> Any:
    """Kinetic and potential energy at the state [J]; leaves data and equipment.data at the state."""
    model, state, data = robot.model, robot.state, robot.data
    kinematics(model, state.qpos, data)
    world_inertia(model, data)
    composites(model, data)
    centre_of_mass(model, data, step.com)
    velocities(model, state.qvel, data)
    moving = kinetic_energy(model, state.qvel, data)
    stored = potential_energy(model, state.qpos, step.com)
    if equipment is not None:
        tendon_paths(robot, state.qpos, state.qvel, equipment)
        moving += inertia_energy(equipment)
        stored += spring_energy(model, state.qpos, equipment) + tendon_spring_energy(equipment)
        stored += loop_spring_energy(model, data, equipment)
    return moving, stored


@njit
def watch_energy(robot: Any, step: Any, equipment: Any, contact: Any) -> None:
    """Compare the energy of the state before a step with what it received; the first excess goes to step.watch."""
    model = robot.model
    if step.watch[EXCESS_STEP] > 0.0:
        return
    moving, stored = energies(robot, step, equipment)
    step.watch[MOST] = max(step.watch[MOST], step.energy[AT_START] + step.watch[GIVEN] - stored)
    slack = model.carried_mass[WORLD] * (_LOOSE if _is_loose(equipment, contact) else _SLACK) + 1e-9 * (
        abs(step.energy[AT_START]) + abs(stored)
    )
    if moving > TOO_MUCH * step.watch[MOST] + slack:
        step.watch[EXCESS_STEP] = step.counters[STEP_NUMBER] + 1.0
        step.watch[EXCESS_DOF] = _liveliest(model, robot.data)
        step.watch[EXCESS_FACTOR] = moving / max(step.watch[MOST], slack)


@njit
def note_work(run: Any, equipment: Any, before: Any, after: Any) -> None:
    """Add to step.watch the work of a step's forces, over the mean of the velocities (nv,) before and after it."""
    step = run.step
    h = run.inputs.time_step[0]
    placing = step.counters[STEP_NUMBER] * h < _PLACING
    work = 0.0
    for k in range(before.shape[0]):
        way = 0.5 * h * (before[k] + after[k])
        work += (step.applied[k] + step.drive[k]) * way
        if equipment is not None:
            work += equipment.data.given[k] * way
        if placing:
            work += max(way * (step.limit[k] + step.loop[k] + step.contact[k] + step.coupling[k]), 0.0)
    step.watch[GIVEN] += work


@inlined
def _is_loose(equipment: Any, contact: Any) -> bool:
    """Whether a loop or equality may start open, or a contact in penetration."""
    if contact is not None:
        return True
    if equipment is not None:
        loose: bool = equipment.model.loop_kind.shape[0] + equipment.model.tendon_row_follower.shape[0] > 0
        return loose
    return False


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
