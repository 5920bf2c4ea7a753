"""A kernel that evaluates tendons alone (test_tendons.py)."""

from __future__ import annotations

from typing import Any

from artsim.sim.equipment.forces import calibrate
from artsim.sim.equipment.tendon_forces import tendon_forces
from artsim.sim.equipment.tendons import tendon_drift, tendon_paths
from artsim.sim.jit import njit
from artsim.sim.kinematics import accelerations, kinematics, velocities


@njit
def tendons(model: Any, state: Any, data: Any, step: Any, equipment: Any, equipment_data: Any) -> None:
    """Lengths, velocities, moments and forces at the state; step.qacc[t] is J̇ v of tendon t, as far as there is room."""
    calibrate(model, data, equipment, equipment_data, step)
    kinematics(model, state.qpos, data)
    velocities(model, state.qvel, data)
    tendon_paths(model, state.qpos, state.qvel, data, equipment, equipment_data)
    tendon_forces(equipment, equipment_data)
    for k in range(step.velocity.shape[0]):
        step.velocity[k] = 0.0
    accelerations(model, state.qvel, step.velocity, data)
    for t in range(min(equipment.tendon_friction.shape[0], step.qacc.shape[0])):
        step.qacc[t] = tendon_drift(model, data, equipment, t)
