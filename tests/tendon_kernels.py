"""A kernel that evaluates tendons alone (test_tendons.py)."""

from __future__ import annotations

from typing import Any

from artsim.sim.equipment.forces import calibrate
from artsim.sim.equipment.tendon_forces import tendon_forces
from artsim.sim.equipment.tendons import tendon_drift, tendon_paths
from artsim.sim.jit import njit
from artsim.sim.kinematics import accelerations, kinematics, velocities


@njit
def tendons(m: Any, s: Any, w: Any, f: Any, e: Any, x: Any) -> None:
    """Lengths, velocities, moments and forces at the state; f.qacc[t] is J̇ v of tendon t, as far as there is room."""
    calibrate(m, w, e, x, f)
    kinematics(m, s.qpos, w)
    velocities(m, s.qvel, w)
    tendon_paths(m, s.qpos, s.qvel, w, e, x)
    tendon_forces(e, x)
    for k in range(f.velocity.shape[0]):
        f.velocity[k] = 0.0
    accelerations(m, s.qvel, f.velocity, w)
    for t in range(min(e.tendon_friction.shape[0], f.qacc.shape[0])):
        f.qacc[t] = tendon_drift(m, w, e, t)
