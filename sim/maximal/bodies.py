"""Bodies with six coordinates each: poses, velocities, masses, and the forces on each free body.

A body's velocity (6,) is the linear velocity of its centre of mass, then the angular velocity, in world axes. Its
momentum is then given by a mass and an inertia, and only the rows of joints couple bodies. The world is body 0 and
never moves. Between several joints of one link stand massless bodies, which the KKT system can handle.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, symmetric


@dataclass(frozen=True)
class BodyStates:
    """Poses and velocities of nb bodies, and the corresponding joint coordinates."""

    centre: Real  # (nb, 3) [m]
    turn: Real  # (nb, 4) quaternions (w, x, y, z)
    velocity: Real  # (nb, 6) of the centre of mass [m/s], angular [rad/s]
    qpos: Real  # (nq,) resolves the turns of revolute joints and the signs of quaternions: the nearest are meant

    @cached_property
    def rotation(self) -> Real:
        """Rotations (nb, 3, 3) of the bodies' own frames."""
        return rotations(self.turn)


@dataclass(frozen=True)
class Masses:
    """Mass properties: mass (nb,) [kg], centre of mass (nb, 3) [m] and inertia about it (nb, 3, 3) in own frames."""

    mass: Real
    centre: Real
    inertia: Real

    @classmethod
    def of(cls, model: Model) -> Masses:
        """The mass properties of a model; the centre of a massless body is its origin."""
        mass = np.array(model.body_mass)
        mass[0] = 0.0
        centre = np.array(model.body_moment) / np.where(mass > 0, mass, 1.0)[:, None]
        centre[mass == 0] = 0.0
        about_origin = np.array([symmetric(six) for six in model.body_inertia])
        square = np.einsum("bk,bk->b", centre, centre)[:, None, None] * np.eye(3)
        shift = square - centre[:, :, None] * centre[:, None, :]
        return cls(mass, centre, about_origin - mass[:, None, None] * shift)


def moved(state: BodyStates, way: Real) -> BodyStates:
    """The state with its poses moved by (nb, 6): centres by a way [m], frames by rotation vectors [rad], world axes."""
    turn = _product(_exponential(way[:, 3:]), state.turn)
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    return replace(state, centre=state.centre + way[:, :3], turn=turn)


def origins(masses: Masses, state: BodyStates, rotation: Real) -> Real:
    """Origins (nb, 3) of the bodies' own frames in the world [m]."""
    arm: Real = np.einsum("bij,bj->bi", rotation, masses.centre)
    return state.centre - arm


def joint_frames(model: Model, rotation: Real, origin: Real) -> tuple[Real, Real]:
    """Joint frames on the parents, in the world: rotations (nb, 3, 3), origins (nb, 3) [m]."""
    above = rotation[model.body_parent]
    place = origin[model.body_parent] + np.einsum("bij,bj->bi", above, model.tree_position)
    return above @ model.tree_rotation, place


def inertias(masses: Masses, rotation: Real) -> Real:
    """Inertias (nb, 6, 6) of all bodies in world axes; that of the world is the identity, since no row moves it."""
    M = np.zeros((len(rotation), 6, 6))
    M[:, range(3), range(3)] = masses.mass[:, None]
    M[:, 3:, 3:] = rotation @ masses.inertia @ np.swapaxes(rotation, 1, 2)
    M[0] = np.eye(6)
    return M


def explicit_forces(model: Model, state: BodyStates, inertia: Real) -> Real:
    """Weight and gyroscopic torque -ω × I ω at the start of the step, (nb, 6) [N, N m]."""
    force = np.zeros((len(inertia), 6))
    spin = state.velocity[1:, 3:]
    force[1:, :3] = inertia[1:, 0, 0, None] * model.gravity
    force[1:, 3:] = -cross_matrix_product(spin, np.einsum("bij,bj->bi", inertia[1:, 3:, 3:], spin))
    return force


# ------------------------------------------------------------------ rotations, many at once


def rotations(turn: Real) -> Real:
    """Rotation matrices (n, 3, 3) of unit quaternions (n, 4)."""
    w, x, y, z = turn.T
    entries: Array = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return np.ascontiguousarray(np.moveaxis(entries, 2, 0))


def cross_matrix_product(a: Real, b: Real) -> Real:
    """a × b of vectors (n, 3); numpy's own function takes five times as long for few vectors."""
    x, y, z = a.T
    u, v, w = b.T
    return np.column_stack([y * w - z * v, z * u - x * w, x * v - y * u])


def skew(vectors: Real) -> Real:
    """Matrices (n, 3, 3) of the cross products a × · for a (n, 3)."""
    S = np.zeros((len(vectors), 3, 3))
    S[:, 0, 1], S[:, 0, 2], S[:, 1, 2] = -vectors[:, 2], vectors[:, 1], -vectors[:, 0]
    return S - np.swapaxes(S, 1, 2)


def _exponential(vectors: Real) -> Real:
    """Quaternions (n, 4) of rotation vectors (n, 3)."""
    half = 0.5 * np.linalg.norm(vectors, axis=1)
    share = 0.5 * np.sinc(half / np.pi)
    return np.column_stack([np.cos(half), share[:, None] * vectors])


def _product(p: Real, q: Real) -> Real:
    """Quaternion products p q, (n, 4)."""
    a, b, c, d = p.T
    w, x, y, z = q.T
    return np.column_stack(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ]
    )
