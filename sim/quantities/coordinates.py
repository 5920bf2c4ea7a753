"""Conversions between full, independent and maximal coordinates of a configuration, in numpy.

Full: qpos (nq,), qvel (nv,) of all joints. Independent: without those that hard couplings determine, q = g(y), v = G u.
Maximal: pose and twist of every link, as PhysX stores them outside of its joint data (packJointData, unpackJointData).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, PLANAR, PRISMATIC, REVOLUTE, Compiled, Model
from artsim.sim.articulation.poses import at_leader, body_poses, pose_in_parent
from artsim.sim.articulation.tangent import move_joint
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, quaternion, rotation_matrix
from artsim.sim.maximal.bodies import skew
from artsim.sim.maximal.conversion import coordinates_of_joint

_STEPS = 50  # of Newton's method, for the coordinates of several joints between two links
_STARTS = 30
_FOUND = 1e-9  # m, rad

_Pose = tuple[Real, Real]
"""Rotation (3, 3) to the world and origin (3,) [m]."""


class LinkStates(NamedTuple):
    """Maximal coordinates: the frames of all links in the world, in the model's order."""

    position: Real  # (nl, 3) position of the origin [m]
    quaternion: Real  # (nl, 4) w, x, y, z
    twist: Real  # (nl, 6) velocity of the origin [m/s], angular velocity [rad/s], world axes


# ------------------------------------------------------------------ independent


def independent_coordinates(model: Model) -> Array:
    """Indices of the independent coordinates, in order."""
    followers = {int(model.dof_coord[k]) for k in model.coupling_follower}
    return np.array([n for n in range(int(model.body_coord[-1])) if n not in followers], np.int64)


def to_full(model: Model, y: Real, u: Real) -> tuple[Real, Real]:
    """Full coordinates (nq,), (nv,) from independent ones; followers are computed from their leaders."""
    q, v = np.zeros(int(model.body_coord[-1])), np.zeros(len(model.dof_body))
    q[independent_coordinates(model)] = y
    v[model.independent_dof] = u
    for follower, leader, p in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        value, slope = at_leader(p, q[model.dof_coord[leader]] if leader >= 0 else 0.0)
        q[model.dof_coord[follower]] = value
        v[follower] = slope * v[leader] if leader >= 0 else 0.0
    return q, v


def to_independent(compiled: Compiled, q: Real, v: Real, tolerance: float) -> tuple[Real, Real]:
    """Independent coordinates from full ones. Raises UsageError if a follower deviates by more than the tolerance."""
    model, labels = compiled.model, compiled.labels
    y, u = q[independent_coordinates(model)], v[model.independent_dof]
    full_q, full_v = to_full(model, y, u)
    for what, given, want, names in (("is at", q, full_q, labels.coords), ("moves at", v, full_v, labels.dofs)):
        off = np.abs(given - want) > tolerance * np.maximum(1.0, np.abs(want))
        if off.any():
            n = int(np.argmax(off))
            raise UsageError(f"{names[n]} {what} {given[n]:.9g}, but follows another joint, which wants {want[n]:.9g}")
    return y, u


# ------------------------------------------------------------------ maximal


def to_maximal(model: Model, q: Real, v: Real) -> LinkStates:
    """Pose and twist of every link at full coordinates."""
    rotation, origin = body_poses(model, q)
    twist = np.zeros((len(origin), 6))
    for i in range(1, len(origin)):
        above = int(model.body_parent[i])
        dofs = slice(int(model.body_dof[i]), int(model.body_dof[i + 1]))
        columns = _columns(model, [i], rotation, origin, i)
        twist[i] = _carried(twist[above], origin[i] - origin[above]) + columns @ v[dofs]
    body = model.link_body
    arm = np.einsum("lij,lj->li", rotation[body], model.link_position)
    turn = rotation[body] @ model.link_rotation
    twists = np.array([_carried(twist[b], d) for b, d in zip(body, arm, strict=True)])
    return LinkStates(origin[body] + arm, np.array([quaternion(R) for R in turn]), twists)


def from_maximal(compiled: Compiled, states: LinkStates, near: Real, tolerance: float) -> tuple[Real, Real]:
    """Full coordinates from links' poses and twists; among several solutions (turns, signs) the one nearest to `near`.

    Raises UsageError naming the link whose pose or twist differs from those that its joint allows by more than the
    tolerance.
    """
    model, names = compiled.model, compiled.labels.links
    q, v = np.array(near, float), np.zeros(len(model.dof_body))
    rotation, origin = body_poses(model, q)
    twist = np.zeros((len(origin), 6))
    placed = {0}
    for link, name in enumerate(names):
        body = int(model.link_body[link])
        (turn, place), moving = _body_of_link(model, states, link)
        if body not in placed:
            chain = _chain(model, body, placed)
            _fit(model, chain, rotation, origin, (turn, place), q)
            dofs = slice(int(model.body_dof[chain[0]]), int(model.body_dof[body + 1]))
            above = int(model.body_parent[chain[0]])
            ahead = moving - _carried(twist[above], place - origin[above])
            columns = _columns(model, chain, rotation, origin, body)
            v[dofs] = np.linalg.lstsq(columns, ahead, rcond=None)[0]
            twist[body] = _carried(twist[above], origin[body] - origin[above]) + columns @ v[dofs]
            placed.update(chain)
        gap = np.concatenate([place - origin[body], _rotation_vector(rotation[body].T @ turn)])
        _refuse(f"link {name!r} is off what its joint allows by", gap, "m", "rad", tolerance)
        _refuse(
            f"link {name!r} moves, beyond what its joint allows, at", moving - twist[body], "m/s", "rad/s", tolerance
        )
        rotation[body], origin[body], twist[body] = (
            turn,
            place,
            moving,
        )  # so that errors further on are reported for their own joint
    return q, v


def _refuse(what: str, off: Real, linear: str, angular: str, tolerance: float) -> None:
    sizes = float(np.linalg.norm(off[:3])), float(np.linalg.norm(off[3:]))
    if not max(sizes) <= tolerance:
        raise UsageError(f"{what} {sizes[0]:.3g} {linear}, {sizes[1]:.3g} {angular}; {tolerance:g} is tolerated")


def _body_of_link(model: Model, states: LinkStates, link: int) -> tuple[_Pose, Real]:
    """Pose and twist of the body to which a link belongs."""
    q = np.asarray(states.quaternion[link], float)
    length = float(np.linalg.norm(q))
    if not length > 1e-9:
        raise UsageError("the quaternion of a link is zero or not a number")
    turn = rotation_matrix(tuple(q / length)) @ model.link_rotation[link].T
    arm = -turn @ model.link_position[link]
    return (turn, states.position[link] + arm), _carried(np.asarray(states.twist[link], float), arm)


def _carried(twist: Real, arm: Real) -> Real:
    """The twist at a point `arm` away."""
    return np.concatenate([twist[:3] + np.cross(twist[3:], arm), twist[3:]])


def _chain(model: Model, body: int, placed: set[int]) -> list[int]:
    """Bodies from the last placed one (excluded) down to this one; several where a link has several joints."""
    chain: list[int] = []
    while body not in placed:
        chain.insert(0, body)
        body = int(model.body_parent[body])
    return chain


def _fit(model: Model, chain: Sequence[int], rotation: Real, origin: Real, wanted: _Pose, q: Real) -> None:
    """Fit the coordinates of a chain's joints, in q, so that its last body is as near as possible to the wanted pose.

    The poses of the chain's bodies go to rotation and origin. One joint is solved directly, several by Newton's method
    from `q` and then from other starting points.
    """
    if len(chain) == 1:
        i = chain[0]
        above = int(model.body_parent[i])
        frame = rotation[above] @ model.tree_rotation[i]
        foot = origin[above] + rotation[above] @ model.tree_position[i]
        part = slice(int(model.body_coord[i]), int(model.body_coord[i + 1]))
        turn, place = frame.T @ wanted[0], frame.T @ (wanted[1] - foot)
        q[part] = coordinates_of_joint(int(model.joint_type[i]), place, turn, q[part])
        _place(model, chain, rotation, origin, q)
        return
    random = np.random.default_rng(0)
    given = np.array(q)
    best, least = given, np.inf
    for start in range(_STARTS):
        trial = given if start == 0 else _elsewhere(model, chain, given, random)
        gap = _newton(model, chain, rotation, origin, wanted, trial)
        if gap < least:
            best, least = np.array(trial), gap
        if least < _FOUND:
            break
    q[:] = best
    _unwind(model, chain, given, q)
    _place(model, chain, rotation, origin, q)


def _elsewhere(model: Model, chain: Sequence[int], near: Real, random: np.random.Generator) -> Real:
    q = np.array(near)
    for i in chain:
        move_joint(model, i, q, random.normal(size=int(model.body_dof[i + 1] - model.body_dof[i])))
    return q


def _newton(model: Model, chain: Sequence[int], rotation: Real, origin: Real, wanted: _Pose, q: Real) -> float:
    """Improve q in place; returns the remaining error of the pose [m, rad]."""
    first = int(model.body_dof[chain[0]])
    body = chain[-1]
    gap = np.inf
    for _ in range(_STEPS):
        _place(model, chain, rotation, origin, q)
        turn = rotation[body] @ _rotation_vector(rotation[body].T @ wanted[0])
        off = np.concatenate([wanted[1] - origin[body], turn])
        gap = float(np.abs(off).max())
        if gap < 1e-14:
            break
        step = np.linalg.lstsq(_columns(model, chain, rotation, origin, body), off, rcond=1e-10)[0]
        step *= min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-300))
        for i in chain:
            move_joint(model, i, q, step[int(model.body_dof[i]) - first : int(model.body_dof[i + 1]) - first])
    return gap


def _place(model: Model, chain: Sequence[int], rotation: Real, origin: Real, q: Real) -> None:
    """Set the poses of a chain's bodies at q, from that of the body above it."""
    for i in chain:
        above = int(model.body_parent[i])
        turn, place = pose_in_parent(model, i, q)
        rotation[i] = rotation[above] @ turn
        origin[i] = origin[above] + rotation[above] @ place


def _columns(model: Model, chain: Sequence[int], rotation: Real, origin: Real, body: int) -> Real:
    """Jacobian of a body's origin by the dofs of the chain that ends with it (6, dofs)."""
    columns = []
    for i in chain:
        above, kind = int(model.body_parent[i]), int(model.joint_type[i])
        frame = rotation[above] @ model.tree_rotation[i]
        slides = {PRISMATIC: frame[:, 2:], PLANAR: frame[:, :2], FREE: frame}.get(kind, np.zeros((3, 0)))
        turns = {REVOLUTE: frame[:, 2:], PLANAR: frame[:, 2:]}.get(kind, np.zeros((3, 0)))
        turns = rotation[i] if kind in (BALL, FREE) else turns
        columns.append(np.vstack([slides, np.zeros_like(slides)]))
        columns.append(np.vstack([skew((origin[i] - origin[body])[None])[0] @ turns, turns]))
    return np.hstack(columns)


def _unwind(model: Model, chain: Sequence[int], near: Real, q: Real) -> None:
    """Choose the turns of hinges and the signs of quaternions nearest to `near`."""
    for i in chain:
        n, kind = int(model.body_coord[i]), int(model.joint_type[i])
        if kind in (REVOLUTE, PLANAR):
            n += 2 if kind == PLANAR else 0
            q[n] += 2 * np.pi * np.round((near[n] - q[n]) / (2 * np.pi))
        elif kind in (BALL, FREE):
            part = slice(n + 3 if kind == FREE else n, n + 7 if kind == FREE else n + 4)
            if q[part] @ near[part] < 0:
                q[part] *= -1


def _rotation_vector(turn: Real) -> Real:
    """The rotation vector (3,) of a rotation matrix, of length at most π."""
    w, *xyz = quaternion(turn)
    size = float(np.linalg.norm(xyz))
    return np.array(xyz) * (2.0 if size < 1e-12 else 2.0 * np.arctan2(size, w) / size)
