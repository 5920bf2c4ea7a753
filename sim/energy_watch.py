"""Energy is watched: a run that has more kinetic energy than it can have been given is wrong, and says so once.

Given are the energy at the start, what potential energy has become less since (weights, springs), the work of applied
forces, drives, actuators, the medium and compensated weights, and for the first moments that of what brings joints,
loops and contacts into place. All else (dampers, friction, limits, couplings, contacts) can only take.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.centroidal import body_energy, centre_of_mass, kinetic_energy, potential_energy
from artsim.sim.dynamics import composites
from artsim.sim.equipment.passive import spring_energy
from artsim.sim.equipment.tendon_forces import tendon_spring_energy
from artsim.sim.equipment.tendons import inertia_energy, tendon_paths
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import kinematics, velocities, world_inertia
from artsim.sim.run import EXCESS_DOF, EXCESS_FACTOR, EXCESS_STEP, GIVEN, MOST

EVERY = 16  # steps between looks
TOO_MUCH = 1.2  # times what was given: steps of a reasonable size stay within a few per cent
_SLACK = 5e-5  # J/kg that nothing needs to have given: 1 cm/s
_LOOSE = 0.125  # J/kg where loops, equalities or contacts are closed at up to 0.5 m/s
_PLACING = 0.2  # s at the start in which bodies are brought into place


@njit
def energies(m: Any, s: Any, w: Any, f: Any, e: Any, x: Any) -> Any:
    """Kinetic and potential energy at the state [J]; w and x are then at the state."""
    kinematics(m, s.qpos, w)
    world_inertia(m, w)
    composites(m, w)
    centre_of_mass(m, w, f.com)
    velocities(m, s.qvel, w)
    moving = kinetic_energy(m, s.qvel, w)
    stored = potential_energy(m, s.qpos, f.com)
    if e is not None:
        tendon_paths(m, s.qpos, s.qvel, w, e, x)
        moving += inertia_energy(e, x)
        stored += spring_energy(m, s.qpos, e) + tendon_spring_energy(e, x)
    return moving, stored


@njit
def watch_energy(m: Any, s: Any, w: Any, f: Any, e: Any, x: Any, t: Any) -> None:
    """Compare what the state has with what it was given, before a step; f.watch notes the first excess."""
    if f.watch[EXCESS_STEP] > 0.0:
        return
    moving, stored = energies(m, s, w, f, e, x)
    f.watch[MOST] = max(f.watch[MOST], f.energy[0] + f.watch[GIVEN] - stored)
    slack = m.carried_mass[0] * (_LOOSE if _is_loose(e, t) else _SLACK) + 1e-9 * (abs(f.energy[0]) + abs(stored))
    if moving > TOO_MUCH * f.watch[MOST] + slack:
        f.watch[EXCESS_STEP] = f.counters[0] + 1.0
        f.watch[EXCESS_DOF] = _liveliest(m, w)
        f.watch[EXCESS_FACTOR] = moving / max(f.watch[MOST], slack)


@njit
def note_work(i: Any, f: Any, x: Any, before: Any, after: Any) -> None:
    """Add to f.watch the work of a step's forces, over the mean of the velocities (nv,) before and after it."""
    h = i.time_step[0]
    placing = f.counters[0] * h < _PLACING
    work = 0.0
    for k in range(before.shape[0]):
        way = 0.5 * h * (before[k] + after[k])
        work += (f.applied[k] + f.drive[k]) * way
        if x is not None:
            work += x.given[k] * way
        if placing:
            work += max(way * (f.limit[k] + f.loop[k] + f.contact[k] + f.coupling[k]), 0.0)
    f.watch[GIVEN] += work


@inlined
def _is_loose(e: Any, t: Any) -> bool:
    """Whether there is something that may start open, or inside something else."""
    if t is not None:
        return True
    if e is not None:
        loose: bool = e.loop_kind.shape[0] + e.tendon_row_follower.shape[0] > 0
        return loose
    return False


@njit
def _liveliest(m: Any, w: Any) -> Any:
    """The last dof of the body that has most kinetic energy. Needs `world_inertia` and `velocities`."""
    found = 0
    most = -1.0
    for i in range(1, m.body_parent.shape[0]):
        energy = body_energy(m, w, i)
        if m.body_dof[i + 1] > m.body_dof[i] and energy > most:
            most = energy
            found = m.body_dof[i + 1] - 1
    return found
