"""Passive forces beyond linear springs and dampers: gravity compensation, fluid, springs of balls, polynomials.

All explicit, but for the linear part of a ball's spring: M̂ holds its h² K, and the force here is that at the step's
start, so that together they are the spring at the step's end as for any other joint.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.dynamics import gather_forces
from artsim.sim.equipment.fluid import fluid_wrenches
from artsim.sim.jit import inlined, njit
from artsim.sim.model import BALL, FREE
from artsim.sim.quaternions import rotation_vector


@njit
def passive_extra(m: Any, q: Any, v: Any, w: Any, e: Any, x: Any) -> None:
    """x.passive (nv,) at the kinematics and velocities in w; x.compensation by motors, added to x.actuator_total.

    Uses w.force and w.torque as scratch.
    """
    for k in range(v.shape[0]):
        x.passive[k] = 0.0
        x.given[k] = 0.0
    _dampers(v, e, x)
    _springs(m, q, e, x)
    if e.compensated_mass.shape[0] > 0:
        _compensate_gravity(m, w, e)
        gather_forces(m, w, x.row)
        for k in range(v.shape[0]):
            if e.gravity_by_actuator[k]:
                x.compensation[k] = x.row[k]
                x.actuator_total[k] += x.row[k]
            else:
                x.passive[k] += x.row[k]
                x.given[k] += x.row[k]
    if e.box_body.shape[0] + e.ellipsoid_body.shape[0] > 0:
        for body in range(m.body_parent.shape[0]):
            for axis in range(3):
                w.force[body, axis] = 0.0
                w.torque[body, axis] = 0.0
        fluid_wrenches(m, w, e)
        gather_forces(m, w, x.row)
        for k in range(v.shape[0]):
            x.passive[k] += x.row[k]
            x.given[k] += x.row[k]


@njit
def _compensate_gravity(m: Any, w: Any, e: Any) -> None:
    """Wrenches that carry each body's compensated share of its weight."""
    g = m.gravity
    R = w.rotation
    for i in range(m.body_parent.shape[0]):
        h = e.compensated_moment[i]
        h0 = R[i, 0, 0] * h[0] + R[i, 0, 1] * h[1] + R[i, 0, 2] * h[2]
        h1 = R[i, 1, 0] * h[0] + R[i, 1, 1] * h[1] + R[i, 1, 2] * h[2]
        h2 = R[i, 2, 0] * h[0] + R[i, 2, 1] * h[1] + R[i, 2, 2] * h[2]
        for axis in range(3):
            w.force[i, axis] = -e.compensated_mass[i] * g[axis]
        w.torque[i, 0] = h2 * g[1] - h1 * g[2]
        w.torque[i, 1] = h0 * g[2] - h2 * g[0]
        w.torque[i, 2] = h1 * g[0] - h0 * g[1]


@njit
def _dampers(v: Any, e: Any, x: Any) -> None:
    """-(c1 |v| + c2 v²) v; the linear part is M̂'s."""
    for n in range(e.damper_dof.shape[0]):
        k = e.damper_dof[n]
        x.passive[k] -= (e.damper_terms[n, 0] * abs(v[k]) + e.damper_terms[n, 1] * v[k] * v[k]) * v[k]


@njit
def _springs(m: Any, q: Any, e: Any, x: Any) -> None:
    """-(c1 x + c2 x²) x of one coordinate; of a rotation or a place in space -(c0 + c1 |x| + c2 |x|²) x, x a vector.

    c0 of single coordinates and places is M̂'s.
    """
    for n in range(e.spring_body.shape[0]):
        i = e.spring_body[n]
        c = e.spring_terms[n]
        k = m.body_dof[i]
        at = m.body_coord[i]
        kind = m.joint_type[i]
        if kind == FREE:
            x0 = q[at] - e.reference[at]
            x1 = q[at + 1] - e.reference[at + 1]
            x2 = q[at + 2] - e.reference[at + 2]
            _pull(x, k, 0.0, c, x0, x1, x2)
            at += 3
            k += 3
        if kind == FREE or kind == BALL:
            x0, x1, x2 = _turned(q, e.reference, at)
            _pull(x, k, c[0], c, x0, x1, x2)
        else:
            y = q[at] - m.spring_reference[k]
            x.passive[k] -= (c[1] + c[2] * y) * y * y


@njit
def spring_energy(m: Any, q: Any, e: Any) -> Any:
    """Potential energy of the same springs, without the linear part of single coordinates and places [J]."""
    total = 0.0
    for n in range(e.spring_body.shape[0]):
        i = e.spring_body[n]
        c = e.spring_terms[n]
        at = m.body_coord[i]
        kind = m.joint_type[i]
        if kind == FREE:
            x0 = q[at] - e.reference[at]
            x1 = q[at + 1] - e.reference[at + 1]
            x2 = q[at + 2] - e.reference[at + 2]
            total += _stored(0.0, c, math.sqrt(x0 * x0 + x1 * x1 + x2 * x2))
            at += 3
        if kind == FREE or kind == BALL:
            x0, x1, x2 = _turned(q, e.reference, at)
            total += _stored(c[0], c, math.sqrt(x0 * x0 + x1 * x1 + x2 * x2))
        else:
            total += _stored(0.0, c, q[at] - m.spring_reference[m.body_dof[i]])
    return total


@inlined
def _stored(linear: Any, c: Any, y: Any) -> Any:
    """∫ (linear + c1 y + c2 y²) y dy [J]."""
    return y * y * (linear / 2.0 + y * (c[1] / 3.0 + y * c[2] / 4.0))


@njit
def _pull(x: Any, k: Any, linear: Any, c: Any, x0: Any, x1: Any, x2: Any) -> None:
    size = math.sqrt(x0 * x0 + x1 * x1 + x2 * x2)
    stiffness = linear + (c[1] + c[2] * size) * size
    x.passive[k] -= stiffness * x0
    x.passive[k + 1] -= stiffness * x1
    x.passive[k + 2] -= stiffness * x2


@njit
def _turned(q: Any, p: Any, n: Any) -> Any:
    """Rotation vector of conj(p) q, both quaternions starting at n."""
    return rotation_vector(
        p[n] * q[n] + p[n + 1] * q[n + 1] + p[n + 2] * q[n + 2] + p[n + 3] * q[n + 3],
        p[n] * q[n + 1] - p[n + 1] * q[n] - p[n + 2] * q[n + 3] + p[n + 3] * q[n + 2],
        p[n] * q[n + 2] - p[n + 2] * q[n] - p[n + 3] * q[n + 1] + p[n + 1] * q[n + 3],
        p[n] * q[n + 3] - p[n + 3] * q[n] - p[n + 1] * q[n + 2] + p[n + 2] * q[n + 1],
    )
