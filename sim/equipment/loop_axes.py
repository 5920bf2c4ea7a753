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
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import column, columns, turn_matrix, turned, turned_back
from artsim.sim.foundation.quaternions import quaternion_of
from artsim.sim.foundation.records import Force, Mat3, Reals1, Vec3
from artsim.sim.foundation.vec3 import cross, dot, minus, negative, plus_times, times, zeros_like


@inlined
def end_frame(data: Workspace, equipment: EquipmentBundle, body: int, n: int) -> Mat3:
    """Rotation of an end's frame in the world, 9 numbers in row-major order."""
    return turn_matrix(data.rotation, body, equipment.model.loop_rotation[n])


@inlined
def relative(A: Mat3, B: Mat3) -> Mat3:
    """Bᵀ A."""
    return columns(turned_back(B, column(A, 0)), turned_back(B, column(A, 1)), turned_back(B, column(A, 2)))


@inlined
def end_point(model: Model, data: Workspace, equipment: EquipmentBundle, n: int, end: int) -> Vec3:
    """World position of the origin of an end's frame [m]."""
    p = equipment.model.loop_position[2 * n + end]
    return point_of(model, data, equipment.model.loop_body[n, end], p)


@njit
def loop_wrench(
    model: Model, data: Workspace, equipment: EquipmentBundle, n: int, axis: int
) -> tuple[float, Vec3, Force]:
    """Coordinate of loop n along or about `axis` (0 to 5) [m or rad], the point where its force acts on both links,
    and the wrench on the second link per unit force, world axes.
    """
    A = end_frame(data, equipment, equipment.model.loop_body[n, 0], 2 * n)
    B = end_frame(data, equipment, equipment.model.loop_body[n, 1], 2 * n + 1)
    point = end_point(model, data, equipment, n, 1)
    if axis < 3:
        u = column(A, axis)
        return dot(u, minus(point, end_point(model, data, equipment, n, 0))), point, (u, zeros_like(u))
    q0, q1, q2, q3 = quaternion_of(relative(B, A))
    v = (q1, q2, q3)
    e = (1.0 if axis == 3 else 0.0, 1.0 if axis == 4 else 0.0, 1.0 if axis == 5 else 0.0)
    own = dot(v, e)
    square = q0 * q0 + own * own
    scale = 1.0 / square if square > UPSIDE_DOWN else 0.0
    g = times(scale, plus_times(plus_times(times(q0 * q0, e), q0, cross(v, e)), own, v))
    t = turned(A, g)
    return twist_angle(q0, own), point, (zeros_like(t), t)


@njit
def loop_coordinate(robot: RobotBundle, equipment: EquipmentBundle, n: int, axis: int, out: Reals1) -> float:
    """Coordinate of loop n along or about `axis`; its derivatives are added to out (nv,)."""
    length, point, w = loop_wrench(robot.model, robot.data, equipment, n, axis)
    a, b = equipment.model.loop_body[n, 0], equipment.model.loop_body[n, 1]
    if axis < 3:
        add_point_force(robot, a, point, negative(w[0]), out)
        add_point_force(robot, b, point, w[0], out)
    else:
        add_torque(robot, a, negative(w[1]), out)
        add_torque(robot, b, w[1], out)
    return length
