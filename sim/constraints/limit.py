"""Joint position and velocity limits as rows that push one way.

A position limit keeps the end of the step inside: q + h v⁺ ≥ lower. What is already outside is brought back at
its distance over a tenth of a second, no faster than a velocity limit allows: all at once would be a kick.

A ball's limit is one on its angle: its row acts along the axis of its rotation. What spin across that axis adds to the
angle in the step, ¼ h² cot(angle / 2) |ω|², is taken off the room there is.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.actuation import coordinate
from artsim.sim.constraints.row import add_entry, add_row, one_sided, single_row
from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import absolute
from artsim.sim.quaternions import rotation_vector
from artsim.sim.run import POSITION_ROW, VELOCITY_ROW
from artsim.sim.sincos import sincos
from artsim.sim.solvers.cone import largest

_SQUEEZE = 5.0  # [rad/s] at most, with which a ball's angle makes room for the spin across its axis


@njit
def position_rows(m: Any, s: Any, w: Any, i: Any, r: Any, k: Any) -> None:
    """The rows of dof k's position limits."""
    if is_cone(m, k):
        _cone_row(m, s, w, i, r, k)
        return
    if m.dof_coord[k] < 0:
        return
    if m.lower[k] > -math.inf:
        _position_row(m, s, w, i, r, k, 1.0, m.lower[k])
    if m.upper[k] < math.inf:
        _position_row(m, s, w, i, r, k, -1.0, m.upper[k])


@njit
def _position_row(m: Any, s: Any, w: Any, i: Any, r: Any, k: Any, sign: Any, bound: Any) -> None:
    n = single_row(m, w, r, POSITION_ROW, k, sign)
    one_sided(r, i, n, sign * (coordinate(m, s.qpos, k) - bound))
    r.bias[n] = max(r.bias[n], -m.velocity_limit[k]) + sign * i.time_step[0] * w.drift[k]


@njit
def is_cone(m: Any, k: Any) -> bool:
    """Whether m.upper[k] is that of a ball's angle; k is then its first dof."""
    limited: bool = m.dof_coord[k] < 0 and m.upper[k] < math.inf
    return limited


@njit
def ball_rotation(m: Any, q: Any, k: Any) -> Any:
    """Rotation vector of the ball whose first dof is k, and its length: the angle, at most π."""
    n = m.body_coord[m.dof_body[k]]
    x, y, z = rotation_vector(q[n], q[n + 1], q[n + 2], q[n + 3])
    return x, y, z, math.sqrt(x * x + y * y + z * z)


@njit
def _cone_row(m: Any, s: Any, w: Any, i: Any, r: Any, k: Any) -> None:
    """J = -axis, in the ball's axes and its parent's alike. Without an angle there is no axis, and nothing to hold."""
    n = add_row(r, POSITION_ROW, k)
    x, y, z, angle = ball_rotation(m, s.qpos, k)
    if angle > 0.0:
        add_entry(m, w, r, k, -x / angle)
        add_entry(m, w, r, k + 1, -y / angle)
        add_entry(m, w, r, k + 2, -z / angle)
    h = i.time_step[0]
    one_sided(r, i, n, m.upper[k] - angle)
    r.bias[n] -= min(_widening(s.qvel, k, x, y, z, angle, h) / h, _SQUEEZE)


@njit
def _widening(v: Any, k: Any, x: Any, y: Any, z: Any, angle: Any, h: Any) -> Any:
    """What velocity across the axis adds to a ball's angle in a step."""
    if angle <= 0.0:
        return 0.0
    along = (x * v[k] + y * v[k + 1] + z * v[k + 2]) / angle
    across = v[k] ** 2 + v[k + 1] ** 2 + v[k + 2] ** 2 - along * along
    s, c = sincos(0.5 * angle)
    return min(0.25 * h * h * across * c / s, h * math.sqrt(max(across, 0.0)))


@njit
def velocity_rows(m: Any, w: Any, i: Any, r: Any, k: Any) -> None:
    """The rows of dof k's velocity limit."""
    if m.velocity_limit[k] < math.inf:
        _velocity_row(m, w, i, r, k, 1.0)
        _velocity_row(m, w, i, r, k, -1.0)


@njit
def _velocity_row(m: Any, w: Any, i: Any, r: Any, k: Any, sign: Any) -> None:
    n = single_row(m, w, r, VELOCITY_ROW, k, sign)
    r.bias[n] = m.velocity_limit[k] + sign * i.time_step[0] * w.drift[k]
    r.lower[n] = 0.0


@njit
def limits_hold(m: Any, s: Any, i: Any, f: Any) -> bool:
    """False when the velocities f.velocity would break a limit."""
    for k in range(f.velocity.shape[0]):
        if beyond_limits(m, s, i, f, k) > 0.0 or (is_cone(m, k) and _opens_cone(m, s, f, k, i.time_step[0])):
            return False
    return True


@inlined
def beyond_limits(m: Any, s: Any, i: Any, f: Any, k: Any) -> Any:
    """A T, more than 0 where the velocity f.velocity would break dof k's limits, that of a ball's angle left out."""
    v = f.velocity[k]
    beyond = absolute(v) - m.velocity_limit[k] * (1.0 + 1e-13)
    if m.dof_coord[k] >= 0:
        end = coordinate(m, s.qpos, k) + i.time_step[0] * v
        beyond = largest(beyond, (m.lower[k] - 1e-13 * max(1.0, abs(m.lower[k]))) - end)
        beyond = largest(beyond, end - (m.upper[k] + 1e-13 * max(1.0, abs(m.upper[k]))))
    return beyond


@njit
def _opens_cone(m: Any, s: Any, f: Any, k: Any, h: Any) -> bool:
    """True when the velocities f.velocity would take the ball's angle beyond its limit."""
    x, y, z, angle = ball_rotation(m, s.qpos, k)
    v = f.velocity
    if angle > 0.0:
        end = angle + h * (x * v[k] + y * v[k + 1] + z * v[k + 2]) / angle + _widening(v, k, x, y, z, angle, h)
    else:
        end = h * math.sqrt(v[k] ** 2 + v[k + 1] ** 2 + v[k + 2] ** 2)
    beyond: bool = end > m.upper[k] * (1.0 + 1e-13) + 1e-13
    return beyond
