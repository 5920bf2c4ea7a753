"""Sleeping, as PhysX has it: a robot whose links have all been slow for a while stands still and is not stepped.

Slow is every link whose kinetic energy per mass is below the threshold. A robot that is commanded to move slowly stays
awake: while a drive has a target velocity, an actuator's state changes, or a delayed control is still to act. What
wakes is any change of the inputs: forces, targets, controls.

A sleeping robot has no velocity and no acceleration, and its recorded forces balance: they are those of a step from
rest, and what the step would still move by is held by a passive force, as by stiction.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.link_velocity import link_centre
from artsim.sim.jit import njit
from artsim.sim.kinematics import cross, link_frame, symmetric_times, turned_back, velocities

_CHANGE = 1e-9  # of an activation in a step, relative to the larger of it and 1: less is none


@njit
def is_asleep(s: Any, i: Any, f: Any) -> bool:
    """Whether the step is slept through; a change of the inputs wakes."""
    if i.sleep[0] <= 0.0 or s.still[0] < i.sleep[1]:
        return False
    if _commands_differ(s, i, f):
        s.still[0] = 0.0
        f.counters[6] = 0
        return False
    return True


@njit
def _commands_differ(s: Any, i: Any, f: Any) -> bool:
    row = f.counters[4]
    nv = s.qvel.shape[0]
    differ = False
    for k in range(nv):
        if s.command[k] != i.torque[row, k] or s.command[nv + k] != i.target[row, k]:
            differ = True
        if s.command[2 * nv + k] != i.target_velocity[row, k]:
            differ = True
    for n in range(i.control.shape[1]):
        if s.command[3 * nv + n] != i.control[row, n]:
            differ = True
    return differ


@njit
def note_commands(s: Any, i: Any, f: Any) -> None:
    """s.command: the inputs of this step."""
    row = f.counters[4]
    nv = s.qvel.shape[0]
    for k in range(nv):
        s.command[k] = i.torque[row, k]
        s.command[nv + k] = i.target[row, k]
        s.command[2 * nv + k] = i.target_velocity[row, k]
    for n in range(i.control.shape[1]):
        s.command[3 * nv + n] = i.control[row, n]


@njit
def count_still(m: Any, s: Any, w: Any, i: Any, f: Any, x: Any) -> None:
    """s.still after the step; a robot that falls asleep loses its velocity. x.start_activation: before the step."""
    still = _slow(m, s, w, i) and not _moved_on_purpose(s, i, f)
    if x is not None:
        for n in range(s.activation.shape[0]):
            change = abs(s.activation[n] - x.start_activation[n])
            if not change <= _CHANGE * max(1.0, abs(s.activation[n])):
                still = False
        if x.pending[0] != 0.0:
            still = False
    s.still[0] = s.still[0] + 1.0 if still else 0.0
    if s.still[0] >= i.sleep[1]:
        for k in range(s.qvel.shape[0]):
            s.qvel[k] = 0.0
        for n in range(s.impulse.shape[0]):
            s.impulse[n] = 0.0


@njit
def _slow(m: Any, s: Any, w: Any, i: Any) -> bool:
    """Whether ½ v² + ½ ωᵀ I ω / m of every link with mass is below the threshold [m²/s²]; w is of the step's start."""
    velocities(m, s.qvel, w)
    moving = False
    found = False
    for link in range(m.link_body.shape[0]):
        b = m.link_body[link]
        mass = m.link_mass[link]
        if b > 0 and mass > 0.0:
            found = True
            a = w.angular_velocity[b]
            c0, c1, c2 = link_centre(m, w, link)
            y0, y1, y2 = cross(a[0], a[1], a[2], c0, c1, c2)
            v0 = w.velocity[b, 0] + y0
            v1 = w.velocity[b, 1] + y1
            v2 = w.velocity[b, 2] + y2
            R, _ = link_frame(m, w, link)
            u0, u1, u2 = turned_back(R, a[0], a[1], a[2])
            L0, L1, L2 = symmetric_times(m.link_inertia, link, u0, u1, u2)
            spin = (u0 * L0 + u1 * L1 + u2 * L2) / mass
            if not 0.5 * (v0 * v0 + v1 * v1 + v2 * v2 + spin) < i.sleep[0]:
                moving = True
    return found and not moving


@njit
def _moved_on_purpose(s: Any, i: Any, f: Any) -> bool:
    for k in range(s.qvel.shape[0]):
        if i.target_velocity[f.counters[4], k] != 0.0:
            return True
    return False
