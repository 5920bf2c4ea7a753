"""Rotations and small inertia arithmetic in numpy, for values computed once (kernels have their own functions)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]


def rotation_matrix(quaternion: Sequence[float] | Real) -> Real:
    """Rotation matrix (…, 3, 3), child to parent, of a unit quaternion (w, x, y, z), four numbers or arrays (…)."""
    w, x, y, z = quaternion
    return _matrix(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _matrix(entries: Sequence[Sequence[float | Real]]) -> Real:
    """The matrix (…, 3, 3) of these entries (…)."""
    matrix = np.array(entries)
    return matrix if matrix.ndim == 2 else np.moveaxis(matrix, (0, 1), (-2, -1))


def quaternion(matrix: Real) -> Real:
    """Unit quaternion (w, x, y, z), w ≥ 0, of a rotation matrix (Shepperd 1978)."""
    m = matrix
    squares = np.array(
        [
            1 + m[0, 0] + m[1, 1] + m[2, 2],
            1 + m[0, 0] - m[1, 1] - m[2, 2],
            1 - m[0, 0] + m[1, 1] - m[2, 2],
            1 - m[0, 0] - m[1, 1] + m[2, 2],
        ]
    )
    k = int(np.argmax(squares))
    products = np.array(
        [
            [squares[0], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], squares[1], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]],
            [m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], squares[2], m[1, 2] + m[2, 1]],
            [m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], squares[3]],
        ]
    )
    q: Real = products[k] / (2 * np.sqrt(squares[k]))
    q /= np.linalg.norm(q)
    return -q if q[0] < 0 else q


def frame_with_z(axis: Sequence[float]) -> Real:
    """The rotation (3, 3) of least angle whose third column is the unit vector `axis` (about x where axis is -z)."""
    x, y, z = axis
    across = x * x + y * y
    if z < 0 and across < 1e-30:
        return np.diag([1.0, -1.0, -1.0])
    k = (1 - z) / across if z < 0 else 1 / (1 + z)  # equal; near -z the second loses all digits
    return np.array([[1 - x * x * k, -x * y * k, x], [-x * y * k, 1 - y * y * k, y], [-x, -y, z]])


def frame_with_x(axis: Sequence[float]) -> Real:
    """The rotation (3, 3) of least angle whose first column is the unit vector `axis` (about y where axis is -x)."""
    x, y, z = axis
    return np.roll(frame_with_z((y, z, x)), (1, 1), (0, 1))


def turn_about_z(angle: float | Real) -> Real:
    """The rotation (…, 3, 3) about z by angles (…) [rad]."""
    c, s = np.cos(angle), np.sin(angle)
    zero, one = np.zeros_like(c), np.ones_like(c)
    return _matrix([[c, -s, zero], [s, c, zero], [zero, zero, one]])


def symmetric(six: Sequence[float]) -> Real:
    """The symmetric matrix of (xx, xy, xz, yy, yz, zz)."""
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def six(matrix: Real) -> Real:
    """(xx, xy, xz, yy, yz, zz) of a symmetric matrix."""
    return matrix[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


def point_inertia(mass: float, position: Real) -> Real:
    """Inertia (3, 3) about the origin of a point mass at `position` (parallel axis theorem)."""
    return mass * (position @ position * np.eye(3) - np.outer(position, position))
