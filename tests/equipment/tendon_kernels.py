"""A kernel that evaluates tendons alone (test_tendons.py)."""

from __future__ import annotations

from typing import Any

from artsim.sim.articulation.kinematics import accelerations, kinematics, velocities
from artsim.sim.equipment.tendon_forces import tendon_forces
from artsim.sim.equipment.tendons import tendon_drift, tendon_paths
from artsim.sim.foundation.jit import njit
from artsim.sim.stepping.calibration import calibrate


@njit
def tendons(robot: Any, step: Any, equipment: Any) -> None:
    """Lengths, velocities, moments and forces at the state; step.qacc[t] is J̇ v of tendon t, if there is room."""
    model, state, data = robot.model, robot.state, robot.data
    calibrate(robot, equipment, step, False)
    kinematics(model, state.qpos, data)
    velocities(model, state.qvel, data)
    tendon_paths(robot, state.qpos, state.qvel, equipment)
    tendon_forces(equipment)
    for k in range(step.velocity.shape[0]):
        step.velocity[k] = 0.0
    accelerations(model, state.qvel, step.velocity, data)
    for t in range(min(equipment.model.tendon_friction.shape[0], step.qacc.shape[0])):
        step.qacc[t] = tendon_drift(model, data, equipment, t)
