"""The step of a robot or a pack that only its joints constrain, in O(n)."""

from __future__ import annotations

from artsim.sim.articulation.dynamics import articulate, articulated_accelerations
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import damper, implicit_system
from artsim.sim.equipment.arrays import EitherEquipment
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.run_records import INERTIAS, NOT_CONVEX, WEIGHED, Rows, RunBundle


@njit
def free_step(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EitherEquipment) -> None:
    """Take the step without rows by the articulated-body algorithm in O(n) (Featherstone 2008, ch. 7).

    A further call in the same step reuses the articulated inertias wherever M̂'s implicit terms have not changed.
    """
    model = robot.model
    step = run.step
    h = run.inputs.time_step[0]
    implicit_system(robot, run, rows, equipment)
    for k in range(step.diagonal.shape[0]):
        if run.inputs.convex[0] != NOT_CONVEX:  # without rows, dampers act as well at once
            step.diagonal[k] = h * damper(model, run, rows, equipment, k)
        step.diagonal[k] += model.armature[k]
    articulate(model, step.diagonal, robot.data, step.counters[WEIGHED] & INERTIAS != 0)
    step.counters[WEIGHED] |= INERTIAS
    articulated_accelerations(model, step.middle, step.force, robot.data, step.qacc)
    for k in range(step.qacc.shape[0]):
        step.velocity[k] = robot.state.qvel[k] + h * step.qacc[k]
        step.next[k] = step.velocity[k]
