"""The rows of a robot in a step: those in the system's matrix, and those with bounds that are solved afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import Equipment
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.joints import (
    coupling_rows,
    drive_rows,
    friction_rows,
    held_rows,
    inertia_rows,
    limit_rows,
    spring_rows,
    velocity_limit_rows,
)
from artsim.sim.maximal.lines import HELD_DOF, BodyRows, Lines, joined_rows, make_body_rows
from artsim.sim.maximal.loops import loop_groups, rows_of_loops
from artsim.sim.maximal.scheme import Scheme
from artsim.sim.run_data.run_records import Inputs

Mobility = Callable[[BodyRows], Real]  # J M⁻¹ Jᵀ of rows, with M without springs, dampers and drives
_YIELD = 1e-12


class Tuning(NamedTuple):
    """α and β of every hard constraint, (rows, 2) each."""

    held: Real  # of the lines that joints hold
    exact: Real  # of exact couplings
    rows: Real  # of other couplings
    loops: Real  # of the loops' lines


class Now(NamedTuple):
    """The data from which the rows of a step are made."""

    model: Model
    inputs: Inputs
    control: int  # current row of the inputs
    scheme: Scheme
    lines: Lines
    qpos: Real  # (nq,)
    dof_line: Array  # (nv,)
    tuning: Tuning


def rigid_rows(now: Now, held: Array) -> BodyRows:
    """The rows that make up the robot's M: held directions, rotors, exact couplings."""
    m = now.model
    k = np.flatnonzero(m.armature > 0)
    followers = m.coupling_follower, m.coupling_leader, m.coupling_polynomial
    return joined_rows(
        [
            held_rows(now.scheme, now.lines, held, now.tuning.held),
            inertia_rows(now.scheme, now.lines, now.dof_line[k], m.armature[k]),
            coupling_rows(
                now.scheme, now.lines, *followers, now.qpos, now.dof_line, m.dof_coord, tuning=now.tuning.exact
            ),
        ]
    )


def soft_rows(now: Now, mobility: Mobility) -> list[BodyRows]:
    """The rows of springs and dampers of joints, drives without limits and compliant couplings."""
    m = now.model
    k = np.flatnonzero((m.damping > 0) | (m.stiffness > 0))
    stretch = np.where(m.dof_coord[k] >= 0, now.qpos[m.dof_coord[k]] - m.spring_reference[k], 0.0)
    springs = spring_rows(now.scheme, now.lines, now.dof_line[k], m.stiffness[k], m.damping[k], stretch)
    return [springs, _drives(now, mobility, limited=False), _coupling_springs(now, mobility)]


def boxed_rows(now: Now, mobility: Mobility, load: Real, equipment: Equipment | None) -> BodyRows:
    """Rows with bounds, and rows that may be redundant: loops and second couplings of a joint. load: (nv,)."""
    m, scheme, lines, d = now.model, now.scheme, now.lines, now.dof_line
    loose = m.dof_independent >= 0  # locked joints need no rows
    k = np.flatnonzero(loose & ((m.friction > 0) | (m.friction_coefficient > 0)))
    friction = friction_rows(scheme, lines, d[k], m.friction[k] + m.friction_coefficient[k] * load[k])
    parts = [friction, _drives(now, mobility, limited=True)]
    for sign, bound in ((1.0, m.lower), (-1.0, m.upper)):
        k = np.flatnonzero(loose & np.isfinite(bound) & (m.dof_coord >= 0))
        parts.append(limit_rows(scheme, lines, d[k], now.qpos[m.dof_coord[k]], sign, bound[k]))
        k = np.flatnonzero(loose & np.isfinite(m.velocity_limit))
        parts.append(velocity_limit_rows(scheme, lines, d[k], sign, m.velocity_limit[k]))
    c = np.flatnonzero(m.row_frequency <= 0)
    pairs = m.row_follower[c], m.row_leader[c], m.row_polynomial[c]
    tuning = now.tuning.rows[c]
    where = now.qpos, d, m.dof_coord
    parts.append(coupling_rows(scheme, lines, *pairs, *where, yielding=_YIELD, tuning=tuning))
    if equipment is not None:
        first = 6 * (len(m.body_parent) - 1)
        parts.append(rows_of_loops(scheme, lines, first, loop_groups(equipment), now.tuning.loops))
    return joined_rows(parts)


def _drives(now: Now, mobility: Mobility, *, limited: bool) -> BodyRows:
    """The rows of drives with a force limit, or of those without."""
    m, i = now.model, now.inputs
    driven = (i.drive_stiffness + i.drive_damping > 0) & (m.dof_independent >= 0)
    k = np.flatnonzero(driven & (np.isfinite(i.drive_limit) == limited))
    which, gain = now.dof_line[k], np.ones(len(k))
    by_inertia = i.drive_acceleration[k] == 1
    if by_inertia.any():
        gain[by_inertia] = 1.0 / mobility(make_body_rows(HELD_DOF, which[by_inertia], np.zeros(int(by_inertia.sum()))))
    place = np.where(m.dof_coord[k] >= 0, now.qpos[m.dof_coord[k]], 0.0)
    gains = gain * i.drive_stiffness[k], gain * i.drive_damping[k]
    stretch, target = place - i.target[now.control, k], i.target_velocity[now.control, k]
    return drive_rows(now.scheme, now.lines, which, *gains, stretch, target, i.drive_limit[k])


def _coupling_springs(now: Now, mobility: Mobility) -> BodyRows:
    """Rows of compliant couplings: k_p = μ²/r, k_d = 2 ζ μ/r, μ = 2π frequency, r = J M⁻¹ Jᵀ.

    Source: notes on mimic joints, eq. 24 and 25.
    """
    m = now.model
    c = np.flatnonzero(m.row_frequency > 0)
    pairs = m.row_follower[c], m.row_leader[c], m.row_polynomial[c]
    where = now.qpos, now.dof_line, m.dof_coord
    if not len(c):
        return coupling_rows(now.scheme, now.lines, *pairs, *where)
    r = mobility(coupling_rows(now.scheme, now.lines, *pairs, *where))
    mu = 2.0 * np.pi * m.row_frequency[c]
    spring = mu * mu / r, 2.0 * m.row_damping_ratio[c] * mu / r
    return coupling_rows(now.scheme, now.lines, *pairs, *where, spring=spring)
