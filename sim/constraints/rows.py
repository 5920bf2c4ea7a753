"""Constraint rows: one shape for every kind, built joint by joint in the order in which the PhysX guide solves them.

Each kind is a builder in a file of its own; adding one is one builder and a line in `build`.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.coupling import coupling_row
from artsim.sim.constraints.drive import drive_row
from artsim.sim.constraints.friction import friction_row
from artsim.sim.constraints.limit import position_rows, velocity_rows
from artsim.sim.dynamics import solve
from artsim.sim.jit import njit
from artsim.sim.run import COUPLING_ROW, DRIVE_ROW, FRICTION_ROW


@njit
def build(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any) -> None:
    """All rows of this step: r.number of them. Needs the marks r.implicit, r.row_of_position, r.row_of_velocity.

    A coupling comes at the first of its two joints: the guide solves a joint's mimic joint before its drive, and the
    drive is as often on the leader as on the follower.
    """
    r.number[0] = 0
    soft = 0
    for k in range(m.dof_body.shape[0]):
        while soft < m.row_follower.shape[0] and _first_dof(m, soft) == k:
            coupling_row(m, s, w, i, r, f, soft)
            soft += 1
        friction_row(m, w, i, r, f, k)
        drive_row(m, s, w, i, r, f, k)
        position_rows(m, s, w, i, r, k)
        velocity_rows(m, w, i, r, k)


@njit
def _first_dof(m: Any, c: Any) -> Any:
    leader = m.row_leader[c]
    return min(m.row_follower[c], leader) if leader >= 0 else m.row_follower[c]


@njit
def responses(m: Any, w: Any, r: Any) -> None:
    """r.response = M̂⁻¹ Jᵀ and r.effective = J M̂⁻¹ Jᵀ of every row, with the factorised w.factor."""
    for n in range(r.number[0]):
        x = r.response[n]
        for a in range(x.shape[0]):
            x[a] = 0.0
        for e in range(2 * n, 2 * n + r.entries[n]):
            x[r.column[e]] += r.value[e]
        solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, x)
        r.effective[n] = 0.0
        for e in range(2 * n, 2 * n + r.entries[n]):
            r.effective[n] += r.value[e] * x[r.column[e]]


@njit
def only_equalities(r: Any) -> bool:
    """True when no row is bounded: couplings alone are not, and `direct` has room for no more."""
    for n in range(r.number[0]):
        if r.kind[n] != COUPLING_ROW:
            return False
    return True


@njit
def joint_forces(r: Any, f: Any, scale: Any) -> None:
    """Add the impulses of the rows on single dofs, times `scale`, to f's forces by source; count steps at limits."""
    counted = -1
    for n in range(r.number[0]):
        force = r.sign[n] * r.impulse[n] * scale
        k = r.dof[n]
        kind = r.kind[n]
        if kind == FRICTION_ROW:
            f.passive[k] += force
        elif kind == DRIVE_ROW:
            f.drive[k] += force
        elif kind != COUPLING_ROW:
            f.limit[k] += force
            if k != counted and r.impulse[n] > 0.0:  # a dof's rows stand together
                f.limit_steps[k] += 1
                counted = k
