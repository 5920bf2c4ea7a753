"""Wrenches on links that are inputs of the run, as MuJoCo's xfrc_applied: controls of their own, six for each link."""

from __future__ import annotations

from artsim.sim.articulation.kinematics import link_frame, point_of
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import LINK_AXES, WRENCH, EquipmentBundle
from artsim.sim.equipment.transmissions import add_wrench
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Vec3
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
        w = found.link_wrench[n]
        p0, p1, p2 = wrench_point(robot, equipment, n)
        body = robot.model.link_body[model.link_wrench_link[n]]
        add_wrench(robot, equipment, body, p0, p1, p2, (w[0], w[1], w[2], w[3], w[4], w[5]), 1.0)
    for k in range(found.row.shape[0]):
        run.step.applied[k] += found.row[k]


@inlined
def wrench_point(robot: RobotBundle, equipment: EquipmentBundle, n: int) -> Vec3:
    """World position of the point at which wrench n acts [m]."""
    body = robot.model.link_body[equipment.model.link_wrench_link[n]]
    p = equipment.model.link_wrench_point[n]
    return point_of(robot.model, robot.data, body, p[0], p[1], p[2])


@njit
def _find_wrench(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, n: int, first: int) -> None:
    """Set equipment.data.link_wrench[n] to the six controls from `first`, turned to world axes."""
    given, row = run.inputs.control, run.step.counters[CONTROL_ROW]
    R, _ = link_frame(robot.model, robot.data, equipment.model.link_wrench_link[n])
    for part in range(0, WRENCH, 3):
        x = given[row, first + part]
        y = given[row, first + part + 1]
        z = given[row, first + part + 2]
        if equipment.model.link_wrench_axes[n] == LINK_AXES:
            x, y, z = (
                R[0] * x + R[1] * y + R[2] * z,
                R[3] * x + R[4] * y + R[5] * z,
                R[6] * x + R[7] * y + R[8] * z,
            )
        equipment.data.link_wrench[n, part] = x
        equipment.data.link_wrench[n, part + 1] = y
        equipment.data.link_wrench[n, part + 2] = z
