"""Rows of joints: held directions, rotors, springs, drives, friction, limits and couplings.

Every joint has six lines: the velocity of the child's origin relative to the coincident point of the parent, in the
joint frame, and the relative angular velocity, also in the joint frame (for ball and free joints in the child's). Some
lines are dofs, the others are held. A row's force acts at one point on both bodies, which conserves angular momentum.
"""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, PLANAR, PRISMATIC, REVOLUTE, Model
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.bodies import BodyStates, Masses, cross_matrix_product, joint_frames, origins, skew
from artsim.sim.maximal.lines import (
    COUPLING,
    DRIVE,
    HELD_DOF,
    INERTIA,
    LIMIT,
    PASSIVE,
    BodyRows,
    Lines,
    make_body_rows,
)
from artsim.sim.maximal.scheme import Scheme

DOF_LINES = {
    REVOLUTE: (5,),
    PRISMATIC: (2,),
    BALL: (3, 4, 5),
    PLANAR: (0, 1, 5),
    FREE: (0, 1, 2, 3, 4, 5),
}
"""The lines of a joint, out of six, that are its dofs; the others are held."""
_RECOVERY = 0.1  # [s] in which an initial violation of a limit is removed, as in constraints/limit_rows.py
_YIELD = 1e-12


def dof_lines(model: Model) -> Array:
    """The line of each dof (nv,)."""
    found = [
        6 * (i - 1) + line for i in range(1, len(model.joint_type)) for line in DOF_LINES[int(model.joint_type[i])]
    ]
    return np.array(found, np.int64)


def held_lines(model: Model) -> Array:
    """The lines that are not dofs."""
    return np.setdiff1d(np.arange(6 * (len(model.body_parent) - 1)), dof_lines(model))


def joint_lines(model: Model, masses: Masses, state: BodyStates) -> Lines:
    """The six lines of every joint, in the order of the bodies from body 1 on."""
    rotation = state.rotation
    origin = origins(masses, state, rotation)
    frame, place = joint_frames(model, rotation, origin)
    parent = model.body_parent
    axes = np.swapaxes(frame, 1, 2)
    free_turning = np.isin(model.joint_type, (BALL, FREE))[:, None, None]
    turning = np.where(free_turning, np.swapaxes(rotation, 1, 2), axes)
    arms = np.stack([origin - state.centre, origin - state.centre[parent]])
    value = np.zeros((len(rotation), 6, 12))
    for end, sign in ((0, 1.0), (1, -1.0)):
        part = value[:, :, 6 * end : 6 * end + 6]
        part[:, :3, :3] = sign * axes
        part[:, :3, 3:] = -sign * axes @ skew(arms[end])
        part[:, 3:, 3:] = sign * turning
    above, own = state.velocity[parent], state.velocity
    rate = np.einsum("bij,bj->bi", value, np.concatenate([own, above], axis=1))
    linear = np.einsum("bji,bj->bi", axes, rate[:, :3])  # back in world axes
    drift = _centripetal(own, arms[0]) - _centripetal(above, arms[1]) - 2.0 * cross_matrix_product(above[:, 3:], linear)
    spin = -cross_matrix_product(above[:, 3:], own[:, 3:])
    bend = np.concatenate([np.einsum("bij,bj->bi", axes, drift), np.einsum("bij,bj->bi", turning, spin)], axis=1)
    gap = np.einsum("bij,bj->bi", axes, origin - place)
    error = np.concatenate([gap, _tilt(model, axes @ rotation)], axis=1)
    body = np.repeat(np.column_stack([np.arange(len(parent)), parent]), 6, axis=0)
    turns = np.tile(np.repeat([False, True], 3), len(parent) - 1)
    values = value[1:].reshape(-1, 12), rate[1:].ravel(), error[1:].ravel(), bend[1:].ravel()
    return Lines(body[6:], *values, turns, np.full((len(turns), 2), -1))


def _centripetal(velocity: Real, arm: Real) -> Real:
    return cross_matrix_product(velocity[:, 3:], cross_matrix_product(velocity[:, 3:], arm))


def _tilt(model: Model, relative: Real) -> Real:
    """Small angles (nb, 3) about the axes that joints hold; 0 about the axis of a revolute joint."""
    x, y = -relative[:, 1, 2], relative[:, 0, 2]  # of the child's z axis
    fixed = 0.5 * np.column_stack(
        [
            relative[:, 2, 1] - relative[:, 1, 2],
            relative[:, 0, 2] - relative[:, 2, 0],
            relative[:, 1, 0] - relative[:, 0, 1],
        ]
    )
    held_axis = np.array([5 not in DOF_LINES[int(kind)] for kind in model.joint_type])
    return np.where(held_axis[:, None], fixed, np.column_stack([x, y, np.zeros_like(x)]))


# ------------------------------------------------------------------ rows


def held_rows(scheme: Scheme, lines: Lines, which: Array, tuning: Real) -> BodyRows:
    """Rows of the directions that joints hold; tuning (rows, 2): their α and β."""
    error = lines.error[which]
    hard = scheme.hard(error, lines.rate[which], lines.drift[which], tuning)
    return make_body_rows(HELD_DOF, which, hard, error=error)


def inertia_rows(scheme: Scheme, lines: Lines, which: Array, armature: Real) -> BodyRows:
    """Rotors: λ = -a q̈, exact since q̈ h = J Δu + h J̇u."""
    return make_body_rows(INERTIA, which, -scheme.h * lines.drift[which], give=1.0 / armature)


def spring_rows(scheme: Scheme, lines: Lines, which: Array, stiffness: Real, damping: Real, stretch: Real) -> BodyRows:
    """Rows of springs and dampers in joints, which act at the end of the step."""
    rate = lines.rate[which]
    b, give = scheme.soft(stiffness, damping, stretch, rate, rate, lines.drift[which])
    return make_body_rows(PASSIVE, which, b, give=give)


def drive_rows(
    scheme: Scheme,
    lines: Lines,
    which: Array,
    stiffness: Real,
    damping: Real,
    stretch: Real,
    target_velocity: Real,
    limit: Real,
) -> BodyRows:
    """Rows of drives: springs towards a target and dampers towards its velocity, with a force limit."""
    rate = lines.rate[which]
    b, give = scheme.soft(stiffness, damping, stretch, rate - target_velocity, rate, lines.drift[which])
    return make_body_rows(DRIVE, which, b, give=give, lower=-scheme.h * limit, upper=scheme.h * limit)


def friction_rows(scheme: Scheme, lines: Lines, which: Array, force: Real) -> BodyRows:
    """Rows of Coulomb friction, which stop the dof by the end of the step within the friction bound."""
    b = -lines.rate[which] - scheme.h * lines.drift[which]
    bound = scheme.h * force
    return make_body_rows(PASSIVE, which, b, lower=-bound, upper=bound, yielding=_YIELD)


def limit_rows(scheme: Scheme, lines: Lines, which: Array, place: Real, sign: float, bound: Real) -> BodyRows:
    """Rows of position limits, which keep q on its side of the bound at the end of the step.

    Every limit is a row at all times; complementarity (boxed_problem) finds the active set.
    """
    gap = sign * (place - bound)
    wanted = np.where(gap >= 0.0, gap / scheme.h, gap / max(scheme.h, _RECOVERY)) + sign * lines.rate[which]
    b = -wanted / scheme.ahead - sign * scheme.h * lines.drift[which]
    return make_body_rows(LIMIT, which, b, factor=sign, lower=0.0, yielding=_YIELD)


def velocity_limit_rows(scheme: Scheme, lines: Lines, which: Array, sign: float, bound: Real) -> BodyRows:
    """Rows of velocity limits: sign v + bound ≥ 0 at the end of the step."""
    b = -bound - sign * (lines.rate[which] + scheme.h * lines.drift[which])
    return make_body_rows(LIMIT, which, b, factor=sign, lower=0.0, yielding=_YIELD)


def coupling_rows(
    scheme: Scheme,
    lines: Lines,
    follower: Array,
    leader: Array,
    polynomial: Real,
    qpos: Real,
    dof_line: Array,
    dof_coord: Array,
    spring: tuple[Real, Real] | None = None,
    yielding: float = 0.0,
    tuning: Real | None = None,
) -> BodyRows:
    """Rows of couplings C = q_follower - p(q_leader), either hard, with α and β (rows, 2), or springs (stiffness,
    damping)."""
    first = dof_line[follower]
    second = np.where(leader >= 0, dof_line[leader], -1)
    leads = (leader >= 0).astype(float)
    x = leads * qpos[dof_coord[leader]]
    value, slope, bend = follow_all(polynomial, x)
    slope = leads * slope
    error = qpos[dof_coord[follower]] - value
    v = leads * lines.rate[second]
    rate = lines.rate[first] - slope * v
    drift = lines.drift[first] - slope * lines.drift[second] - leads * bend * v * v
    if spring is None:
        b, give = scheme.hard(error, rate, drift, tuning), np.zeros(len(first))
    else:
        b, give = scheme.soft(*spring, error, rate, rate, drift)
    pair = {"second": second, "second_factor": -slope}
    return make_body_rows(COUPLING, first, b, error=error, give=give, yielding=yielding, **pair)


def follow_all(polynomial: Real, x: Real) -> tuple[Real, Real, Real]:
    """Values Σ p_i xⁱ of polynomials (n, 5) at x (n,), with first and second derivatives."""
    p = polynomial.T
    return (
        p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4]))),
        p[1] + x * (2 * p[2] + x * (3 * p[3] + x * 4 * p[4])),
        2 * p[2] + x * (6 * p[3] + x * 12 * p[4]),
    )


def carried_by_leaders(model: Model, qpos: Real, load: Real) -> Real:
    """Joint forces (nv,) that carry `load` by the joints of one dof that exact couplings leave independent."""
    gain = np.ones(len(load))
    lead = np.arange(len(load))
    pending = list(zip(model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True))
    for follower, leader, polynomial in pending:  # leaders come before their followers
        x = qpos[model.dof_coord[leader]] if leader >= 0 else 0.0
        _, slope, _ = follow_all(polynomial[None], np.array([x]))
        gain[follower] = slope[0] * gain[leader] if leader >= 0 else 0.0
        lead[follower] = lead[leader] if leader >= 0 else follower
    sizes = np.diff(model.body_dof)[model.dof_body]
    share = np.where((model.dof_independent >= 0) & (sizes[lead] == 1), gain * load, 0.0)
    found: Real = np.bincount(lead, share, minlength=len(load)).astype(np.float64)
    return found
