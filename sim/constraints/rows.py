"""Constraint rows: one shape for every kind, built joint by joint in the order in which the PhysX guide solves them.

Each kind is a builder in a file of its own; adding one is one builder and a line in `build`.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.actuator import actuator_rows
from artsim.sim.constraints.contact import contact_rows
from artsim.sim.constraints.coupling import coupling_row
from artsim.sim.constraints.drive import drive_row
from artsim.sim.constraints.friction import friction_row
from artsim.sim.constraints.limit import position_rows, velocity_rows
from artsim.sim.constraints.link_velocity import link_rows
from artsim.sim.constraints.loop import loop_rows
from artsim.sim.constraints.tendon import tendon_rows, tendon_spring_rows
from artsim.sim.jit import inlined, njit
from artsim.sim.run import (
    ACTUATOR_ROW,
    CONTACT_ROW,
    COUPLING_ROW,
    DRIVE_ROW,
    FRICTION_ROW,
    LOOP_ROW,
    POSITION_ROW,
    TENDON_ROW,
    VELOCITY_ROW,
)


@njit
def build(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, g: Any, t: Any, d: Any, o: Any) -> None:
    """All rows of this step: r.number of them, with the impulses of the last step. Needs r.implicit.

    Those of contacts come and go, the others are the same ones in the same order at every step.

    A coupling comes at the first of its two joints: the guide solves a joint's mimic joint before its drive, and the
    drive is as often on the leader as on the follower.
    """
    r.number[0] = 0
    soft = 0
    for k in range(m.dof_body.shape[0]):
        while soft < m.row_follower.shape[0] and _first_dof(m, soft) == k:
            coupling_row(m, s, w, i, r, f, soft)
            soft += 1
        friction_row(m, s, w, i, r, k)
        drive_row(m, s, w, i, r, f, k)
        position_rows(m, s, w, i, r, k)
        velocity_rows(m, w, i, r, k)
    if e is not None:
        actuator_rows(m, w, i, r, e, x)
        tendon_rows(m, s.qvel, w, i, r, e, x)
        loop_rows(m, s.qvel, w, i, r, f, e, x)
    if d is not None:
        link_rows(m, w, i, r, d, o)
    if e is not None:
        tendon_spring_rows(m, w, i, r, e, x)  # which are not always there
    for n in range(r.number[0]):
        r.impulse[n] = s.impulse[n]
    r.number[1] = r.number[0]
    if g is not None:  # last: their number changes, and the others keep their places
        contact_rows(m, s, w, i, r, f, e, x, g, t)


@njit
def _first_dof(m: Any, c: Any) -> Any:
    leader = m.row_leader[c]
    return min(m.row_follower[c], leader) if leader >= 0 else m.row_follower[c]


@njit
def joint_forces(r: Any, f: Any, scale: Any) -> None:
    """Add Jᵀ λ `scale` of all rows to f's forces by source."""
    for n in range(r.number[0]):
        kind = r.kind[n]
        for e in range(r.start[n], r.start[n + 1]):
            _add_force(kind, r.entry_dof[e], r.entry_value[e] * r.impulse[n] * scale, f)


@njit
def count_limits(r: Any, f: Any) -> None:
    """Count the step for every dof that is at a limit."""
    counted = -1
    for n in range(r.number[0]):
        kind = r.kind[n]
        if kind == POSITION_ROW or kind == VELOCITY_ROW:
            k = r.dof[n]
            if k != counted and r.impulse[n] > 0.0:  # a dof's rows stand together
                f.limit_steps[k] += 1
                counted = k


@inlined
def _add_force(kind: Any, k: Any, force: Any, f: Any) -> None:
    if kind == COUPLING_ROW:
        f.coupling[k] += force
    elif kind == FRICTION_ROW:
        f.passive[k] += force
    elif kind == DRIVE_ROW or kind == ACTUATOR_ROW:
        f.drive[k] += force
    elif kind == LOOP_ROW:
        f.loop[k] += force
    elif kind == TENDON_ROW:
        f.tendon[k] += force
    elif kind == CONTACT_ROW:
        f.contact[k] += force
    else:
        f.limit[k] += force
