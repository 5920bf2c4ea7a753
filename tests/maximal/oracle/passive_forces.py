"""Passive forces of joints beyond linear springs and dampers, and compensated weights, at the start of a step."""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.equipment.arrays import CUBIC, QUADRATIC, Equipment
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.bodies import BodyStates, Masses, origins, rotations
from tests.maximal.oracle.body_actuators import rotation_vector


def passive_forces_of_joints(e: Equipment, model: Model, qpos: Real, qvel: Real) -> Real:
    """Forces along the dofs (nv,): -(c1 |v| + c2 v²) v of dampers, -(c1 x + c2 x²) x of springs of one coordinate, of
    rotations and positions of ball and free joints -(c0 + c1 |x| + c2 |x|²) x.

    The linear terms of single coordinates, and of the positions of free joints, are springs at the end of the step.
    """
    force = np.zeros(len(qvel))
    v = qvel[e.damper_dof]
    np.add.at(force, e.damper_dof, -(e.damper_terms[:, QUADRATIC] * np.abs(v) + e.damper_terms[:, CUBIC] * v * v) * v)
    for body, c in zip(e.spring_body, e.spring_terms, strict=True):
        k, n, kind = int(model.body_dof[body]), int(model.body_coord[body]), int(model.joint_type[body])
        if kind == FREE:
            force[k : k + 3] += _pull(0.0, c, qpos[n : n + 3] - e.reference[n : n + 3])
            k, n = k + 3, n + 3
        if kind in (FREE, BALL):
            turn = rotations(np.stack([e.reference[n : n + 4], qpos[n : n + 4]]))
            force[k : k + 3] += _pull(float(c[0]), c, rotation_vector(turn[0].T @ turn[1]))
        else:
            y = float(qpos[n] - model.spring_reference[k])
            force[k] -= (c[1] + c[2] * y) * y * y
    return force


def _pull(linear: float, c: Real, x: Real) -> Real:
    size = float(np.linalg.norm(x))
    found: Real = -(linear + (c[1] + c[2] * size) * size) * x
    return found


def energy_of_springs(e: Equipment, model: Model, qpos: Real) -> float:
    """Potential energy of these springs [J]."""
    total = 0.0
    for body, c in zip(e.spring_body, e.spring_terms, strict=True):
        k, n, kind = int(model.body_dof[body]), int(model.body_coord[body]), int(model.joint_type[body])
        if kind == FREE:
            total += _stored(0.0, c, float(np.linalg.norm(qpos[n : n + 3] - e.reference[n : n + 3])))
            n += 3
        if kind in (FREE, BALL):
            turn = rotations(np.stack([e.reference[n : n + 4], qpos[n : n + 4]]))
            total += _stored(float(c[0]), c, float(np.linalg.norm(rotation_vector(turn[0].T @ turn[1]))))
        else:
            total += _stored(0.0, c, float(qpos[n] - model.spring_reference[k]))
    return total


def _stored(linear: float, c: Real, y: float) -> float:
    return float(y * y * (linear / 2.0 + y * (c[1] / 3.0 + y * c[2] / 4.0)))


def carried_weights(e: Equipment, model: Model, masses: Masses, state: BodyStates) -> Real:
    """Wrenches (nb, 6) about the centres of mass that carry the compensated share of each body's weight."""
    wrench = np.zeros((len(model.body_parent), 6))
    if len(e.compensated_mass):
        rotation = state.rotation
        from_centre = origins(masses, state, rotation) - state.centre
        moment = np.einsum("bij,bj->bi", rotation, e.compensated_moment) + e.compensated_mass[:, None] * from_centre
        wrench[:, :3] = -e.compensated_mass[:, None] * model.gravity
        wrench[:, 3:] = -np.cross(moment, model.gravity)
        wrench[0] = 0.0
    return wrench
