"""The configurations of a UR5 for poses of its flange in closed form, for tables of poses in numpy.

Hawkins 2013, Analytic inverse kinematics for the Universal Robots UR-5/UR-10 arms, with the angles of shoulder and
elbow from the triangle in the plane of the second frame. Poses are those of tool0 in the frame `base` of ur5.urdf.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
D = (0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823)  # [m]
A = (0.0, -0.425, -0.39225, 0.0, 0.0, 0.0)  # [m]
ALPHA = (np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0)  # [rad]
_ALIGNED = 1e-9  # sine of the fifth angle below which only the sum of others counts


def joint(n: int, angle: Array) -> Array:
    """The transforms (N, 4, 4) of a joint by Denavit and Hartenberg's parameters at angles (N,)."""
    c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(ALPHA[n]), np.sin(ALPHA[n])
    T = np.zeros((len(angle), 4, 4))
    T[:, 0] = np.stack([c, -s * ca, s * sa, A[n] * c], axis=1)
    T[:, 1] = np.stack([s, c * ca, -c * sa, A[n] * s], axis=1)
    T[:, 2, 1:], T[:, 3, 3] = (sa, ca, D[n]), 1.0
    return T


def forward(q: Array) -> Array:
    """The poses (N, 4, 4) of the flange at configurations (N, 6)."""
    T = joint(0, q[:, 0])
    for n in range(1, 6):
        T = T @ joint(n, q[:, n])
    return T


def configurations(T: Array) -> Array:
    """The configurations (N, 8, 6) for poses (N, 4, 4) within -π … π; NaN where there is none."""
    found = np.full((len(T), 8, 6), np.nan)
    wrist = T[:, :2, 3] - D[5] * T[:, :2, 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        opening = np.arccos(D[3] / np.hypot(wrist[:, 0], wrist[:, 1]))
        for branch in range(8):
            shoulder, turned, bent = (1.0 if branch & bit else -1.0 for bit in (1, 2, 4))
            first = np.arctan2(wrist[:, 1], wrist[:, 0]) + shoulder * opening + np.pi / 2
            s, c = np.sin(first), np.cos(first)
            fifth = turned * np.arccos(_unit((T[:, 0, 3] * s - T[:, 1, 3] * c - D[3]) / D[5]))
            sine = np.sin(fifth)
            sixth = np.arctan2((T[:, 1, 1] * c - T[:, 0, 1] * s) / sine, (T[:, 0, 0] * s - T[:, 1, 0] * c) / sine)
            sixth = np.where(np.abs(sine) < _ALIGNED, 0.0, sixth)
            of_arm = np.linalg.inv(joint(0, first)) @ T @ np.linalg.inv(joint(4, fifth) @ joint(5, sixth))
            x, y = of_arm[:, 0, 3], of_arm[:, 1, 3]
            third = bent * np.arccos(_unit((x * x + y * y - A[1] ** 2 - A[2] ** 2) / (2 * A[1] * A[2])))
            second = np.arctan2(y, x) - np.arctan2(A[2] * np.sin(third), A[1] + A[2] * np.cos(third))
            fourth = np.arctan2(of_arm[:, 1, 0], of_arm[:, 0, 0]) - second - third
            found[:, branch] = np.stack([first, second, third, fourth, fifth, sixth], axis=1)
    found[np.isnan(found).any(axis=2)] = np.nan
    return np.arctan2(np.sin(found), np.cos(found))


def _unit(x: Array) -> Array:
    """A cosine that rounding may have carried beyond 1."""
    return np.where((np.abs(x) > 1.0) & (np.abs(x) < 1.0 + 1e-12), np.sign(x), x)
