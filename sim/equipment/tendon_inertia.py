"""Tendons with armature, and the energy of springs, at a table of configurations (sim/tendon_inertia.py)."""

from __future__ import annotations

from typing import Any

from artsim.sim.compute import normalise
from artsim.sim.coupling import expand, reduce_vector
from artsim.sim.equipment.passive import spring_energy
from artsim.sim.equipment.tendon_forces import tendon_spring_energy
from artsim.sim.equipment.tendons import prepare_drifts, rest_lengths, tendon_drift, tendon_paths
from artsim.sim.jit import njit
from artsim.sim.kinematics import kinematics, velocities


@njit
def tendon_inertia(m: Any, s: Any, w: Any, e: Any, x: Any, t: Any) -> None:
    """Moments, their rates and the lengths' rates of the task's rows, each times √armature."""
    for k in range(s.qvel.shape[0]):
        s.qvel[k] = 0.0
    rest_lengths(m, s.qpos, s.qvel, w, e, x)
    for row in range(t.rows[0], t.rows[1]):
        for c in range(s.qpos.shape[0]):
            s.qpos[c] = t.qpos[row, c]
        for k in range(min(t.qvel.shape[0], 1) * s.qvel.shape[0]):
            s.qvel[k] = t.qvel[row, k]
        normalise(m, s.qpos, w)
        if t.reduced[0] == 1:
            expand(m, s.qpos, s.qvel, w)
        kinematics(m, s.qpos, w)
        velocities(m, s.qvel, w)
        tendon_paths(m, s.qpos, s.qvel, w, e, x)
        if t.stored.shape[0] > 0:
            t.stored[row - t.rows[0]] = spring_energy(m, s.qpos, e) + tendon_spring_energy(e, x)
        prepare_drifts(m, s.qvel, w, x)
        for n in range(t.tendon.shape[0]):
            _tendon(m, w, e, x, t, row - t.rows[0], n)


@njit
def _tendon(m: Any, w: Any, e: Any, x: Any, t: Any, row: Any, n: Any) -> None:
    """The n-th tendon's entries of row `row` of what is found. w.drift: followers' accelerations at u̇ = 0."""
    tendon = t.tendon[n]
    scale = e.tendon_armature[tendon] ** 0.5
    drift = tendon_drift(m, w, e, tendon)
    J = x.row
    for k in range(J.shape[0]):
        J[k] = 0.0
    for entry in range(e.tendon_entry[tendon], e.tendon_entry[tendon + 1]):
        k = e.tendon_dof[entry]
        J[k] = scale * x.tendon_moment[entry]
        drift += x.tendon_moment[entry] * w.drift[k]
    t.drift[row, n] = scale * drift
    t.speed[row, n] = scale * x.tendon_velocity[tendon]
    if t.reduced[0] == 1:
        reduce_vector(m, J, w, t.moment[row, n])
    else:
        for k in range(J.shape[0]):
            t.moment[row, n, k] = J[k]
