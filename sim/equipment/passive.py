"""Passive forces beyond linear springs and dampers: gravity compensation, fluid, springs of balls, polynomials.

All are explicit, except the linear part of a ball joint's spring: M̂ holds its h² K, and the force here is the spring's
force at the start of the step; together they are the spring at the end of the step, as for any other joint.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import gather_forces
from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.equipment.arrays import CUBIC, QUADRATIC, EquipmentBundle
from artsim.sim.equipment.fluid import fluid_wrenches
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import turn
from artsim.sim.foundation.quaternions import rotation_vector
from artsim.sim.foundation.records import ConstReals1, Reals1, Vec3
from artsim.sim.foundation.spatial import set_pair
from artsim.sim.foundation.vec3 import cross, length, minus, minus_times, put_at, times, triple_at


@njit
def passive_extra(model: Model, q: Reals1, v: Reals1, data: Workspace, equipment: EquipmentBundle) -> None:
    """Set equipment.data.passive (nv,) from the kinematics and velocities in data.

    Gravity compensation by motors goes to equipment.data.compensation (nv,). Uses data.force and data.torque as
    scratch.
    """
    for k in range(v.shape[0]):
        equipment.data.passive[k] = 0.0
        equipment.data.carried[k] = 0.0
        equipment.data.drag[k] = 0.0
    _dampers(v, equipment)
    _springs(model, q, equipment)
    if equipment.model.compensated_mass.shape[0] > 0:
        _compensate_gravity(model, data, equipment)
        gather_forces(model, data, equipment.data.row)
        for k in range(v.shape[0]):
            if equipment.model.gravity_by_actuator[k]:
                equipment.data.compensation[k] = equipment.data.row[k]
            else:
                equipment.data.passive[k] += equipment.data.row[k]
                equipment.data.carried[k] = equipment.data.row[k]
    if equipment.model.box_body.shape[0] + equipment.model.ellipsoid_body.shape[0] > 0:
        for body in range(model.body_parent.shape[0]):
            for axis in range(3):
                data.force[body, axis] = 0.0
                data.torque[body, axis] = 0.0
        fluid_wrenches(model, data, equipment)
        gather_forces(model, data, equipment.data.row)
        for k in range(v.shape[0]):
            equipment.data.passive[k] += equipment.data.row[k]
            equipment.data.drag[k] = equipment.data.row[k]


@njit
def _compensate_gravity(model: Model, data: Workspace, equipment: EquipmentBundle) -> None:
    """Add the wrenches that carry the compensated share of each body's weight."""
    g = model.gravity
    for i in range(model.body_parent.shape[0]):
        h = equipment.model.compensated_moment[i]
        force = times(-equipment.model.compensated_mass[i], g)
        set_pair(data.force, data.torque, i, (force, cross(g, turn(data.rotation, i, h))))


@njit
def _dampers(v: Reals1, equipment: EquipmentBundle) -> None:
    """Add nonlinear damping, -(c1 |v| + c2 v²) v; the linear part is in M̂."""
    for n in range(equipment.model.damper_dof.shape[0]):
        k = equipment.model.damper_dof[n]
        equipment.data.passive[k] -= (
            equipment.model.damper_terms[n, QUADRATIC] * abs(v[k])
            + equipment.model.damper_terms[n, CUBIC] * v[k] * v[k]
        ) * v[k]


@njit
def _springs(model: Model, q: Reals1, equipment: EquipmentBundle) -> None:
    """Add nonlinear springs: -(c1 x + c2 x²) x of one coordinate, -(c0 + c1 |x| + c2 |x|²) x of a rotation or position.

    The linear coefficient c0 of single coordinates and positions is in M̂.
    """
    for n in range(equipment.model.spring_body.shape[0]):
        i = equipment.model.spring_body[n]
        c = equipment.model.spring_terms[n]
        k = model.body_dof[i]
        at = model.body_coord[i]
        kind = model.joint_type[i]
        if kind == FREE:
            _pull(equipment, k, 0.0, c, minus(triple_at(q, at), triple_at(equipment.model.reference, at)))
            at += 3
            k += 3
        if kind == FREE or kind == BALL:
            _pull(equipment, k, c[0], c, _turned(q, equipment.model.reference, at))
        else:
            y = q[at] - model.spring_reference[k]
            equipment.data.passive[k] -= (c[1] + c[2] * y) * y * y


@njit
def spring_energy(model: Model, q: Reals1, equipment: EquipmentBundle) -> float:
    """Potential energy of the nonlinear springs without the linear part of single coordinates and positions [J]."""
    total = 0.0
    for n in range(equipment.model.spring_body.shape[0]):
        i = equipment.model.spring_body[n]
        c = equipment.model.spring_terms[n]
        at = model.body_coord[i]
        kind = model.joint_type[i]
        if kind == FREE:
            x = minus(triple_at(q, at), triple_at(equipment.model.reference, at))
            total += _stored(0.0, c, length(x))
            at += 3
        if kind == FREE or kind == BALL:
            total += _stored(c[0], c, length(_turned(q, equipment.model.reference, at)))
        else:
            total += _stored(0.0, c, q[at] - model.spring_reference[model.body_dof[i]])
    return total


@inlined
def _stored(linear: float, c: ConstReals1, y: float) -> float:
    """∫ (linear + c1 y + c2 y²) y dy [J]."""
    return y * y * (linear / 2.0 + y * (c[1] / 3.0 + y * c[2] / 4.0))


@njit
def _pull(equipment: EquipmentBundle, k: int, linear: float, c: ConstReals1, x: Vec3) -> None:
    """Subtract (linear + c1 |x| + c2 |x|²) x from the passive forces of three dofs from k."""
    size = length(x)
    stiffness = linear + (c[1] + c[2] * size) * size
    put_at(equipment.data.passive, k, minus_times(triple_at(equipment.data.passive, k), stiffness, x))


@njit
def _turned(q: Reals1, p: ConstReals1, n: int) -> Vec3:
    """Rotation vector of conj(p) q; both quaternions start at index n."""
    return rotation_vector(
        p[n] * q[n] + p[n + 1] * q[n + 1] + p[n + 2] * q[n + 2] + p[n + 3] * q[n + 3],
        p[n] * q[n + 1] - p[n + 1] * q[n] - p[n + 2] * q[n + 3] + p[n + 3] * q[n + 2],
        p[n] * q[n + 2] - p[n + 2] * q[n] - p[n + 3] * q[n + 1] + p[n + 1] * q[n + 3],
        p[n] * q[n + 3] - p[n + 3] * q[n] - p[n + 1] * q[n + 2] + p[n + 2] * q[n + 1],
    )
