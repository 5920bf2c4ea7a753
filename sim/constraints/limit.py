"""Joint position and velocity limits as rows that push one way.

A position limit keeps the end of the step inside: q + h v⁺ ≥ lower. What is already outside is brought back at
its distance over a tenth of a second: all at once would be a kick.

A dof can have rows on both sides: what breaks the one limit while a drive is still in M̂, or before another joint meets
its limit, can break the other when the step is solved again.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.actuation import coordinate
from artsim.sim.constraints.row import single_row
from artsim.sim.jit import njit
from artsim.sim.run import POSITION_ROW, VELOCITY_ROW

_RECOVERY = 0.1  # s
_LOWER, _UPPER = 1, 2  # marks, added up


@njit
def position_rows(m: Any, s: Any, w: Any, i: Any, r: Any, k: Any) -> None:
    """The rows of dof k's marked position limits."""
    if r.row_of_position[k] & _LOWER:
        _position_row(m, s, w, i, r, k, 1.0, m.lower[k])
    if r.row_of_position[k] & _UPPER:
        _position_row(m, s, w, i, r, k, -1.0, m.upper[k])


@njit
def _position_row(m: Any, s: Any, w: Any, i: Any, r: Any, k: Any, sign: Any, bound: Any) -> None:
    n = single_row(m, w, r, POSITION_ROW, k, sign)
    gap = sign * (coordinate(m, s.qpos, k) - bound)
    h = i.time_step[0]
    r.bias[n] = gap / (h if gap >= 0.0 else max(h, _RECOVERY)) + sign * h * w.drift[k]
    r.lower[n] = 0.0


@njit
def velocity_rows(m: Any, w: Any, i: Any, r: Any, k: Any) -> None:
    """The rows of dof k's velocity limit, on the marked sides."""
    if r.row_of_velocity[k] & _LOWER:
        _velocity_row(m, w, i, r, k, 1.0)
    if r.row_of_velocity[k] & _UPPER:
        _velocity_row(m, w, i, r, k, -1.0)


@njit
def _velocity_row(m: Any, w: Any, i: Any, r: Any, k: Any, sign: Any) -> None:
    n = single_row(m, w, r, VELOCITY_ROW, k, sign)
    r.bias[n] = m.velocity_limit[k] + sign * i.time_step[0] * w.drift[k]
    r.lower[n] = 0.0


@njit
def mark_violations(m: Any, s: Any, i: Any, r: Any, f: Any) -> bool:
    """Mark limits that the velocities f.velocity would break and that have no row yet; True when there are any."""
    h = i.time_step[0]
    found = False
    for k in range(f.velocity.shape[0]):
        v = f.velocity[k]
        if m.dof_coord[k] >= 0:
            end = coordinate(m, s.qpos, k) + h * v
            side = 0
            if end < m.lower[k] - 1e-13 * max(1.0, abs(m.lower[k])):
                side = _LOWER
            elif end > m.upper[k] + 1e-13 * max(1.0, abs(m.upper[k])):
                side = _UPPER
            if side & ~r.row_of_position[k]:
                r.row_of_position[k] |= side
                found = True
        if abs(v) > m.velocity_limit[k] * (1.0 + 1e-13):
            side = _UPPER if v > 0.0 else _LOWER
            if side & ~r.row_of_velocity[k]:
                r.row_of_velocity[k] |= side
                found = True
    return found
