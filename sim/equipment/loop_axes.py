"""The coordinates of loop joints: displacements of the second frame along, and rotations about, an axis of the first.

A coordinate is the length of a tendon of its own (tendons.py), so that limits, friction, springs and actuators of
tendons are those of the loop's free axes. With Q = conj(q_a) q_b, d = p_b - p_a and the axis i of frame a:

    x_i = (R_aᵀ d)_i,  ẋ_i = axis · (v_b - v_a at p_b)
    θ_i = 2 atan2(Q_i, Q_0), the twist about the axis,  θ̇_i = (Q_0² e_i + Q_0 q × e_i + Q_i q) · ω / (Q_0² + Q_i²)

with ω = ω_b - ω_a in a's axes. For a joint that turns about axis i alone, θ̇_i = ω_i.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import add_point_force, add_torque, point_of
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.articulation.swing_twist import UPSIDE_DOWN, twist_angle
from artsim.sim.equipment.arrays import AnyEquipment, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.quaternions import quaternion_of
from artsim.sim.foundation.records import Mat3, Reals1, Vec3, Vec6
from artsim.sim.foundation.vec3 import cross, turn


@inlined
def end_frame(data: Workspace, equipment: AnyEquipment, body: int, n: int) -> Mat3:
    """Rotation of an end's frame in the world, 9 numbers in row-major order."""
    L = equipment.model.loop_rotation[n]
    a = turn(data.rotation, body, (L[0, 0], L[1, 0], L[2, 0]))
    b = turn(data.rotation, body, (L[0, 1], L[1, 1], L[2, 1]))
    c = turn(data.rotation, body, (L[0, 2], L[1, 2], L[2, 2]))
    return a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2]


@inlined
def relative(A: Mat3, B: Mat3) -> Mat3:
    """Bᵀ A, 9 numbers in row-major order."""
    return (
        B[0] * A[0] + B[3] * A[3] + B[6] * A[6],
        B[0] * A[1] + B[3] * A[4] + B[6] * A[7],
        B[0] * A[2] + B[3] * A[5] + B[6] * A[8],
        B[1] * A[0] + B[4] * A[3] + B[7] * A[6],
        B[1] * A[1] + B[4] * A[4] + B[7] * A[7],
        B[1] * A[2] + B[4] * A[5] + B[7] * A[8],
        B[2] * A[0] + B[5] * A[3] + B[8] * A[6],
        B[2] * A[1] + B[5] * A[4] + B[8] * A[7],
        B[2] * A[2] + B[5] * A[5] + B[8] * A[8],
    )


@inlined
def end_point(model: Model, data: Workspace, equipment: AnyEquipment, n: int, end: int) -> Vec3:
    """World position of the origin of an end's frame [m]."""
    p = equipment.model.loop_position[2 * n + end]
    return point_of(model, data, equipment.model.loop_body[n, end], p[0], p[1], p[2])


@njit
def loop_wrench(
    model: Model, data: Workspace, equipment: EquipmentBundle, n: int, axis: int
) -> tuple[float, Vec3, Vec6]:
    """Coordinate of loop n along or about `axis` (0 to 5) [m or rad], the point where its force acts on both links,
    and the wrench on the second link per unit force, world axes.
    """
    A = end_frame(data, equipment, equipment.model.loop_body[n, 0], 2 * n)
    B = end_frame(data, equipment, equipment.model.loop_body[n, 1], 2 * n + 1)
    point = end_point(model, data, equipment, n, 1)
    if axis < 3:
        u = _column(A, axis)
        a = end_point(model, data, equipment, n, 0)
        along = u[0] * (point[0] - a[0]) + u[1] * (point[1] - a[1]) + u[2] * (point[2] - a[2])
        return along, point, (u[0], u[1], u[2], 0.0, 0.0, 0.0)
    q0, q1, q2, q3 = quaternion_of(relative(B, A))
    e = (1.0 if axis == 3 else 0.0, 1.0 if axis == 4 else 0.0, 1.0 if axis == 5 else 0.0)
    own = q1 * e[0] + q2 * e[1] + q3 * e[2]
    square = q0 * q0 + own * own
    scale = 1.0 / square if square > UPSIDE_DOWN else 0.0
    c = cross((q1, q2, q3), e)
    g = (
        scale * (q0 * q0 * e[0] + q0 * c[0] + own * q1),
        scale * (q0 * q0 * e[1] + q0 * c[1] + own * q2),
        scale * (q0 * q0 * e[2] + q0 * c[2] + own * q3),
    )
    t = (
        A[0] * g[0] + A[1] * g[1] + A[2] * g[2],
        A[3] * g[0] + A[4] * g[1] + A[5] * g[2],
        A[6] * g[0] + A[7] * g[1] + A[8] * g[2],
    )
    return twist_angle(q0, own), point, (0.0, 0.0, 0.0, t[0], t[1], t[2])


@inlined
def _column(A: Mat3, axis: int) -> Vec3:
    """Column `axis` of a rotation given as 9 numbers by rows."""
    if axis == 0:
        return A[0], A[3], A[6]
    if axis == 1:
        return A[1], A[4], A[7]
    return A[2], A[5], A[8]


@njit
def loop_coordinate(robot: RobotBundle, equipment: EquipmentBundle, n: int, axis: int, out: Reals1) -> float:
    """Coordinate of loop n along or about `axis`; its derivatives are added to out (nv,)."""
    length, point, w = loop_wrench(robot.model, robot.data, equipment, n, axis)
    a, b = equipment.model.loop_body[n, 0], equipment.model.loop_body[n, 1]
    if axis < 3:
        add_point_force(robot, a, point, (-w[0], -w[1], -w[2]), out)
        add_point_force(robot, b, point, (w[0], w[1], w[2]), out)
    else:
        add_torque(robot, a, (-w[3], -w[4], -w[5]), out)
        add_torque(robot, b, (w[3], w[4], w[5]), out)
    return length
