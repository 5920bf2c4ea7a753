"""Joint position and velocity limits as rows that push one way.

A position limit keeps the end of the step inside: q + h v⁺ ≥ lower. What is already outside is brought back at
its distance over a tenth of a second: all at once would be a kick.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.actuation import coordinate
from artsim.sim.constraints.row import add_row
from artsim.sim.jit import njit
from artsim.sim.run import POSITION_ROW, VELOCITY_ROW

_RECOVERY = 0.1  # s


@njit
def position_row(m: Any, s: Any, w: Any, i: Any, r: Any, k: Any) -> None:
    """The row of dof k's lower (mark -1) or upper (mark 1) position limit."""
    side = r.row_of_position[k]
    if side == 0:
        return
    sign = -1.0 if side > 0 else 1.0
    bound = m.upper[k] if side > 0 else m.lower[k]
    n = add_row(m, w, r, POSITION_ROW, k, sign)
    gap = sign * (coordinate(m, s.qpos, k) - bound)
    h = i.time_step[0]
    r.bias[n] = gap / (h if gap >= 0.0 else max(h, _RECOVERY)) + sign * h * w.drift[k]
    r.lower[n] = 0.0


@njit
def velocity_row(m: Any, w: Any, i: Any, r: Any, k: Any) -> None:
    """The row of dof k's velocity limit, on the side of the mark."""
    side = r.row_of_velocity[k]
    if side == 0:
        return
    sign = -1.0 if side > 0 else 1.0
    n = add_row(m, w, r, VELOCITY_ROW, k, sign)
    r.bias[n] = m.velocity_limit[k] + sign * i.time_step[0] * w.drift[k]
    r.lower[n] = 0.0


@njit
def mark_violations(m: Any, s: Any, i: Any, r: Any, f: Any) -> bool:
    """Mark limits that the velocities f.velocity would break and that have no row yet; True when there are any."""
    h = i.time_step[0]
    found = False
    for k in range(f.velocity.shape[0]):
        v = f.velocity[k]
        if r.row_of_position[k] == 0 and m.dof_coord[k] >= 0:
            q = coordinate(m, s.qpos, k)
            end = q + h * v
            if end < m.lower[k] - 1e-13 * max(1.0, abs(m.lower[k])):
                r.row_of_position[k] = -1
                found = True
            elif end > m.upper[k] + 1e-13 * max(1.0, abs(m.upper[k])):
                r.row_of_position[k] = 1
                found = True
        if r.row_of_velocity[k] == 0 and abs(v) > m.velocity_limit[k] * (1.0 + 1e-13):
            r.row_of_velocity[k] = 1 if v > 0.0 else -1
            found = True
    return found
