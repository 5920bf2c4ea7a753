"""Kernel of tendon_inertia.py: moment arms of tendons with armature, and spring energy, for many configurations."""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand, reduce_vector
from artsim.sim.articulation.kinematics import kinematics, velocities
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.passive import spring_energy
from artsim.sim.equipment.tendon_forces import tendon_spring_energy
from artsim.sim.equipment.tendons import prepare_drifts, rest_lengths, tendon_drift, tendon_paths
from artsim.sim.foundation.jit import njit
from artsim.sim.quantities.compute import normalise
from artsim.sim.quantities.compute_records import END_ROW, FIRST_ROW
from artsim.sim.quantities.tendon_inertia import TendonTask


@njit
def tendon_inertia(robot: RobotBundle, equipment: EquipmentBundle, task: TendonTask) -> None:
    """Compute moment arms, drifts and length rates for the task's rows, each times √armature, and the spring energy."""
    model, state, data = robot.model, robot.state, robot.data
    for k in range(state.qvel.shape[0]):
        state.qvel[k] = 0.0
    rest_lengths(robot, state.qpos, state.qvel, equipment)
    for row in range(task.rows[FIRST_ROW], task.rows[END_ROW]):
        for c in range(state.qpos.shape[0]):
            state.qpos[c] = task.qpos[row, c]
        for k in range(min(task.qvel.shape[0], 1) * state.qvel.shape[0]):
            state.qvel[k] = task.qvel[row, k]
        normalise(model, state.qpos, data)
        if task.reduced[0] == 1:
            expand(model, state.qpos, state.qvel, data)
        kinematics(model, state.qpos, data)
        velocities(model, state.qvel, data)
        tendon_paths(robot, state.qpos, state.qvel, equipment)
        if task.stored.shape[0] > 0:
            task.stored[row - task.rows[FIRST_ROW]] = spring_energy(
                model, state.qpos, equipment
            ) + tendon_spring_energy(equipment)
        prepare_drifts(model, state.qvel, data, equipment)
        for n in range(task.tendon.shape[0]):
            _tendon(model, data, equipment, task, row - task.rows[FIRST_ROW], n)


@njit
def _tendon(model: Model, data: Workspace, equipment: EquipmentBundle, task: TendonTask, row: int, n: int) -> None:
    """Compute the n-th tendon's results of row `row`; data.drift holds the followers' accelerations at u̇ = 0."""
    tendon = task.tendon[n]
    scale = equipment.model.tendon_armature[tendon] ** 0.5
    drift = tendon_drift(model, data, equipment, tendon)
    J = equipment.data.row
    for k in range(J.shape[0]):
        J[k] = 0.0
    for entry in range(equipment.model.tendon_entry[tendon], equipment.model.tendon_entry[tendon + 1]):
        k = equipment.model.tendon_dof[entry]
        J[k] = scale * equipment.data.tendon_moment[entry]
        drift += equipment.data.tendon_moment[entry] * data.drift[k]
    task.drift[row, n] = scale * drift
    task.speed[row, n] = scale * equipment.data.tendon_velocity[tendon]
    if task.reduced[0] == 1:
        reduce_vector(model, J, data, task.moment[row, n])
    else:
        for k in range(J.shape[0]):
            task.moment[row, n, k] = J[k]
