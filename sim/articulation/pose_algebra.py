"""Algebra of quaternions (w, x, y, z) and poses as tuples of floats, for readers of models and values computed once.

Kernels have functions of their own (foundation/quaternions.py), and numpy matrices theirs (foundation/rotations.py).
"""

from __future__ import annotations

import math

from artsim.sim.articulation.description import Pose, Quaternion, Vector3


def about(axis: Vector3, angle: float) -> Quaternion:
    """The rotation about a unit vector by an angle [rad]."""
    c, s = math.cos(angle / 2), math.sin(angle / 2)
    return (c, s * axis[0], s * axis[1], s * axis[2])


def quaternion_from_rpy(roll: float, pitch: float, yaw: float) -> Quaternion:
    """(w, x, y, z) of Rz(yaw) Ry(pitch) Rx(roll), angles in rad: rotations about the parent's fixed axes x, y, z."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def quaternion_from_z(normal: tuple[float, ...]) -> Quaternion:
    """The shortest rotation (w, x, y, z) that turns the z axis to a unit vector."""
    x, y, z = normal
    across = x * x + y * y
    if z < 0 and across == 0:
        return (0.0, 1.0, 0.0, 0.0)
    w = 1.0 + z if z >= 0 else across / (1.0 - z)  # the same without cancellation near -z
    norm = math.hypot(w, x, y)
    return (w / norm, -y / norm, x / norm, 0.0)


def from_columns(x: Vector3, y: Vector3, z: Vector3) -> Quaternion:
    """The quaternion of the rotation whose matrix has these columns, by its largest component (Shepperd 1978)."""
    trace = x[0] + y[1] + z[2]
    squares = (trace, x[0], y[1], z[2])
    largest = squares.index(max(squares))
    if largest == 0:
        q = (1.0 + trace, y[2] - z[1], z[0] - x[2], x[1] - y[0])
    elif largest == 1:
        q = (y[2] - z[1], 1.0 + x[0] - y[1] - z[2], x[1] + y[0], z[0] + x[2])
    elif largest == 2:
        q = (z[0] - x[2], x[1] + y[0], 1.0 - x[0] + y[1] - z[2], y[2] + z[1])
    else:
        q = (x[1] - y[0], z[0] + x[2], y[2] + z[1], 1.0 - x[0] - y[1] + z[2])
    length = math.hypot(*q)
    return (q[0] / length, q[1] / length, q[2] / length, q[3] / length)


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """The rotation a after b."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


def conjugate(q: Quaternion) -> Quaternion:
    """The inverse rotation."""
    return (q[0], -q[1], -q[2], -q[3])


def cross(a: Vector3, b: Vector3) -> Vector3:
    """a × b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def rotate(q: Quaternion, v: Vector3) -> Vector3:
    """The vector v turned by q."""
    t = cross((q[1], q[2], q[3]), v)
    t = (2 * t[0], 2 * t[1], 2 * t[2])
    u = cross((q[1], q[2], q[3]), t)
    return (v[0] + q[0] * t[0] + u[0], v[1] + q[0] * t[1] + u[1], v[2] + q[0] * t[2] + u[2])


def compose(outer: Pose, inner: Pose) -> Pose:
    """A pose in a frame that is itself in a frame; exact where the outer one is the identity."""
    if outer == Pose():
        return inner
    x, y, z = rotate(outer.rotation, inner.position)
    px, py, pz = outer.position
    return Pose((px + x, py + y, pz + z), multiply(outer.rotation, inner.rotation))


def inverse(pose: Pose) -> Pose:
    """The frame of the parent in the child."""
    back = conjugate(pose.rotation)
    x, y, z = rotate(back, pose.position)
    return Pose((-x, -y, -z), back)
