"""Computed torque in maximal coordinates (Siciliano 2009, sec. 8.5.2), by Newton-Euler along the joints' lines.

Joints of one dof get a = a_d + ω² (q_d - q) + 2 ζ ω (v_d - v), all other joints none. The forces for these
accelerations are those of inverse dynamics, plus those that make up for springs, dampers and friction of the joints,
tendons and other passive forces, as the step will find them: implicit forces at its end. Friction is taken in the
direction of the wanted motion.
"""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.bodies import BodyStates, Masses, explicit_forces, inertias
from artsim.sim.maximal.conversion import joint_loads
from artsim.sim.maximal.joints import follow_all
from artsim.sim.maximal.table import Now
from artsim.sim.run_data.run_records import POSITION_GAIN, VELOCITY_GAIN

_RESTING = 1e-6  # [rad/s or m/s] below it friction grows with the velocity, as in stepping/controller.py


def torque_for_targets(now: Now, masses: Masses, state: BodyStates, load: Real, passive: Real) -> Real:
    """Joint forces (nv,) for the wanted accelerations, of every dof, followers too; load (nv,): the joints' loads;
    passive (nv,): forces of tendons, nonlinear springs, dampers and carried weights at the start of the step."""
    m, h, row = now.model, now.scheme.h, now.control
    v = now.lines.rate[now.dof_line]
    single = (np.diff(m.body_dof)[m.dof_body] == 1) & (m.dof_coord >= 0)
    q = np.where(single, now.qpos[m.dof_coord], 0.0)
    further = now.inputs.target_acceleration[row]
    gains = now.inputs.controller_gains
    rate = now.inputs.target_velocity[row] - 0.5 * h * further - v
    wanted = further + gains[POSITION_GAIN] * (now.inputs.target[row] - q) + gains[VELOCITY_GAIN] * rate
    a = followed(m, now.qpos, np.where(single, wanted, 0.0), v)
    towards = followed(m, now.qpos, now.inputs.target_velocity[row] + h * further, np.zeros_like(v))
    M = inertias(masses, state.rotation)
    force = joint_loads(now.lines, M, explicit_forces(m, state, M), now.dof_line, a)[now.dof_line]
    after = v + h * a
    stretch = np.where(m.dof_coord >= 0, now.qpos[m.dof_coord] - m.spring_reference, 0.0) + h * after
    force += m.armature * a + m.damping * after + m.stiffness * stretch
    friction = m.friction + m.friction_coefficient * load
    wanted_force: Real = force + friction * np.clip(towards / _RESTING, -1.0, 1.0) - passive
    return wanted_force


def followed(model: Model, qpos: Real, a: Real, v: Real) -> Real:
    """Accelerations (nv,) with those of followers set from their leaders' by exact couplings; v (nv,)."""
    found = np.array(a)
    for f, lead, polynomial in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        if lead < 0:
            found[f] = 0.0
            continue
        _, slope, bend = follow_all(polynomial[None], qpos[model.dof_coord[lead]][None])
        found[f] = slope[0] * found[lead] + bend[0] * v[lead] ** 2
    return found
