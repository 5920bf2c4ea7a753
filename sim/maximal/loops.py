"""Loop joints as lines and rows: two points that coincide (connect), two frames that coincide (weld)."""

from __future__ import annotations

import numpy as np

from artsim.sim.equipment.arrays import WELD, Equipment
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, quaternion
from artsim.sim.maximal.bodies import BodyStates, Masses, origins, skew
from artsim.sim.maximal.lines import LOOP, BodyRows, Lines, make_body_rows
from artsim.sim.maximal.scheme import Scheme

_SPEED = 0.5  # [m/s or rad/s] at which a loop that starts open is closed, as in constraints/loop_rows.py
_YIELD = 1e-9  # share of its links' mobility by which a row yields, as in constraints/loop_rows.py


def loop_sizes(e: Equipment) -> Array:
    """The number of lines of each loop (nloop,)."""
    return np.where(_turns(e), 6, 3)


def loop_groups(e: Equipment) -> Array:
    """Group numbers (lines,), equal for the three lines that belong together."""
    return np.repeat(np.arange(int(loop_sizes(e).sum()) // 3), 3)


def _turns(e: Equipment) -> Array:
    """True for loops that hold rotations, too (welds)."""
    held: Array = (e.loop_kind == WELD) & (e.loop_torque_scale > 0)
    return held


def loop_lines(e: Equipment, masses: Masses, state: BodyStates) -> Lines:
    """Lines of loops: three in world axes for each, and for a weld three of the relative rotation in b's axes."""
    rotation = state.rotation
    origin = origins(masses, state, rotation)
    body, value, error, drift = [], [], [], []
    for n, turns in enumerate(_turns(e)):
        a, b = e.loop_body[n]
        points = [origin[k] + rotation[k] @ e.loop_position[2 * n + end] for end, k in enumerate((a, b))]
        arms = np.array([points[end] - state.centre[k] for end, k in enumerate((a, b))])
        own, other = state.velocity[a], state.velocity[b]
        cross = skew(arms)
        value.append(np.hstack([np.eye(3), -cross[0], -np.eye(3), cross[1]]))
        error.append(points[0] - points[1])
        spins = [np.cross(u[3:], np.cross(u[3:], arm)) for u, arm in zip((own, other), arms, strict=True)]
        drift.append(spins[0] - spins[1])
        body += [(a, b)] * (6 if turns else 3)
        if turns:
            frames = [rotation[k] @ e.loop_rotation[2 * n + end] for end, k in enumerate((a, b))]
            across = frames[1].T
            value.append(np.hstack([np.zeros((3, 3)), across, np.zeros((3, 3)), -across]))
            error.append(2.0 * quaternion(across @ frames[0])[1:])
            drift.append(-across @ np.cross(other[3:], own[3:]))
    bodies = np.array(body, np.int64).reshape(-1, 2)
    lines = np.array(value).reshape(-1, 12)
    velocity = np.hstack([state.velocity[bodies[:, 0]], state.velocity[bodies[:, 1]]])
    rate = np.einsum("nk,nk->n", lines, velocity)
    turning = np.repeat([part for turns in _turns(e) for part in ((False, True) if turns else (False,))], 3)
    link = np.repeat(e.loop_link, loop_sizes(e), axis=0).reshape(-1, 2)
    return Lines(bodies, lines, rate, np.array(error).ravel(), np.array(drift).ravel(), turning, link)


def rows_of_loops(scheme: Scheme, lines: Lines, first: int, groups: Array, tuning: Real) -> BodyRows:
    """Rows of the lines from `first` on, with α and β (rows, 2); an error too large for one step is removed at a
    bounded speed.

    A planar closed loop has redundant rows; the rows are therefore regularised by 1e-9 of their links' mobility.
    """
    which = np.arange(first, first + len(groups))
    error = lines.error[which]
    size = np.sqrt(np.bincount(groups, error**2))[groups]
    now = scheme.by_and_by(error, size, _SPEED, tuning)
    b = scheme.hard(now, lines.rate[which], lines.drift[which], tuning)
    return make_body_rows(LOOP, which, b, error=error, yielding=_YIELD, group=groups)
