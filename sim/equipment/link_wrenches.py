"""Wrenches on links that are inputs of the run, as MuJoCo's xfrc_applied: controls of their own, six for each link."""

from __future__ import annotations

from artsim.sim.articulation.kinematics import link_frame, point_of
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import LINK_AXES, WRENCH, EquipmentBundle
from artsim.sim.equipment.transmissions import add_wrench
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import turned
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.spatial import six_of
from artsim.sim.foundation.vec3 import put_at, triple_at
from artsim.sim.run_data.run_records import CONTROL_ROW, RunBundle


@njit
def apply_link_wrenches(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Add Jᵀ w of the control row's wrenches to step.applied (nv,), in the pose of up-to-date kinematics."""
    model, found = equipment.model, equipment.data
    count = model.link_wrench_link.shape[0]
    if count == 0:
        return
    first = model.control_lower.shape[0] - WRENCH * count
    for k in range(found.row.shape[0]):
        found.row[k] = 0.0
    for n in range(count):
        _find_wrench(robot, run, equipment, n, first + WRENCH * n)
        body = robot.model.link_body[model.link_wrench_link[n]]
        add_wrench(robot, equipment, body, wrench_point(robot, equipment, n), six_of(found.link_wrench, n), 1.0)
    for k in range(found.row.shape[0]):
        run.step.applied[k] += found.row[k]


@inlined
def wrench_point(robot: RobotBundle, equipment: EquipmentBundle, n: int) -> Vec3:
    """World position of the point at which wrench n acts [m]."""
    body = robot.model.link_body[equipment.model.link_wrench_link[n]]
    p = equipment.model.link_wrench_point[n]
    return point_of(robot.model, robot.data, body, p)


@njit
def _find_wrench(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, n: int, first: int) -> None:
    """Set equipment.data.link_wrench[n] to the six controls from `first`, turned to world axes."""
    given, row = run.inputs.control, run.step.counters[CONTROL_ROW]
    R, _ = link_frame(robot.model, robot.data, equipment.model.link_wrench_link[n])
    for part in range(0, WRENCH, 3):
        a = triple_at(given[row], first + part)
        if equipment.model.link_wrench_axes[n] == LINK_AXES:
            a = turned(R, a)
        put_at(equipment.data.link_wrench[n], part, a)
