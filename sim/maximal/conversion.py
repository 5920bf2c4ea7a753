"""Conversion of joint coordinates to bodies (body_states) and back (unpack), and joint quantities from bodies.

All use the joints' lines: with L (6 nj, 6 nj) of all lines of a tree, L u are the relative velocities. L⁻¹ therefore
maps joint velocities to the velocities of bodies, and L⁻ᵀ maps wrenches on bodies to the joints.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from artsim.sim.articulation.model import FREE, PLANAR, PRISMATIC, REVOLUTE, Model
from artsim.sim.articulation.poses import body_poses
from artsim.sim.foundation.rotations import Real, quaternion
from artsim.sim.maximal.bodies import BodyStates, Masses, joint_frames, origins
from artsim.sim.maximal.joints import dof_lines, joint_lines
from artsim.sim.maximal.lines import Lines


def body_states(model: Model, masses: Masses, qpos: Real, qvel: Real) -> BodyStates:
    """Poses and velocities of all bodies at full coordinates qpos (nq,), qvel (nv,)."""
    rotation, origin = body_poses(model, qpos)
    turn = np.array([quaternion(matrix) for matrix in rotation])
    centre = origin + np.einsum("bij,bj->bi", rotation, masses.centre)
    still = BodyStates(centre, turn, np.zeros((len(turn), 6)), np.array(qpos))
    columns = joint_twists(joint_lines(model, masses, still), dof_lines(model))
    return replace(still, velocity=np.vstack([np.zeros(6), (columns @ qvel).reshape(-1, 6)]))


def unpack(model: Model, masses: Masses, state: BodyStates) -> tuple[Real, Real]:
    """Joint coordinates (nq,) and velocities (nv,) of the joints' free directions, even if joints have gaps.

    The turn of a revolute joint and the sign of a quaternion are those nearest to state.qpos.
    """
    return joint_coordinates(model, masses, state), joint_lines(model, masses, state).rate[dof_lines(model)]


def joint_coordinates(model: Model, masses: Masses, state: BodyStates) -> Real:
    """Joint coordinates (nq,), the first half of `unpack`."""
    rotation = state.rotation
    origin = origins(masses, state, rotation)
    frame, foot = joint_frames(model, rotation, origin)
    across = np.swapaxes(frame, 1, 2)
    place, turn = np.einsum("bij,bj->bi", across, origin - foot), across @ rotation
    q = np.zeros_like(state.qpos)
    for i in range(1, len(model.body_parent)):
        n, end = int(model.body_coord[i]), int(model.body_coord[i + 1])
        q[n:end] = coordinates_of_joint(int(model.joint_type[i]), place[i], turn[i], state.qpos[n:end])
    return q


def coordinates_of_joint(kind: int, place: Real, turn: Real, near: Real) -> Real:
    if kind == PRISMATIC:
        return place[2:]
    if kind in (REVOLUTE, PLANAR):
        angle = np.arctan2(turn[1, 0] - turn[0, 1], turn[0, 0] + turn[1, 1])
        angle += 2 * np.pi * np.round((near[-1] - angle) / (2 * np.pi))
        return np.array([angle]) if kind == REVOLUTE else np.array([place[0], place[1], angle])
    turned = quaternion(turn)
    turned = -turned if turned @ near[-4:] < 0 else turned
    return np.concatenate([place, turned]) if kind == FREE else turned


# ------------------------------------------------------------------ in joint coordinates


def line_matrix(lines: Lines) -> Real:
    """L (6 nj, 6 nj) of the joints' lines on all bodies except the world."""
    count = int(lines.body[:, 0].max(initial=0))
    n = 6 * count
    L = np.zeros((n, 6 * (count + 1)))
    for end in range(2):
        column = 6 * lines.body[:n, end, None] + np.arange(6)
        np.add.at(L, (np.arange(n)[:, None], column), lines.value[:n, 6 * end : 6 * end + 6])
    return L[:, 6:]


def joint_twists(lines: Lines, dof_line: Real) -> Real:
    """H (6 nj, nv): the velocities of the bodies per dof, u = H v if no joint has a gap."""
    L = line_matrix(lines)
    wanted = np.zeros((len(L), len(dof_line)))
    wanted[dof_line, np.arange(len(dof_line))] = 1.0
    return np.asarray(np.linalg.solve(L, wanted), np.float64)


def joint_loads(lines: Lines, inertia: Real, force: Real, dof_line: Real, qacc: Real) -> Real:
    """Loads of the joints along their lines (6 nj,) at accelerations qacc (nv,) and under wrenches `force` (nb, 6).

    Newton-Euler inverse dynamics: L a = qacc - drift, then Lᵀ λ = M a - f.
    """
    L = line_matrix(lines)
    wanted = -lines.drift[: len(L)]
    wanted[dof_line] += qacc
    a = np.linalg.solve(L, wanted).reshape(-1, 6)
    found: Real = np.linalg.solve(L.T, (np.einsum("bij,bj->bi", inertia[1:], a) - force[1:]).ravel())
    return found


def in_joints(lines: Lines, wrench: Real, dof_line: Real) -> Real:
    """Joint forces (nv,) of wrenches on bodies (nb, 6)."""
    L = line_matrix(lines)
    found: Real = np.linalg.solve(L.T, wrench[1:].ravel())[dof_line]
    return found
