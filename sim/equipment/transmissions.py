"""Transmissions: an actuator's length, velocity and moment arms (MuJoCo's computation chapter, "Transmission").

Forces on sites are wrenches mapped to the dofs of their bodies; a moment arm is the effect of a unit force on a dof.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.dynamics import along_axis
from artsim.sim.articulation.kinematics import origin_of
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.equipment.arrays import JOINT, JOINT_IN_PARENT, SITE, SLIDER_CRANK, TENDON, EquipmentBundle
from artsim.sim.equipment.tendons import site_point
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import turn
from artsim.sim.foundation.quaternions import quaternion_of, rotation_vector
from artsim.sim.foundation.records import Force, Reals1, Vec3
from artsim.sim.foundation.spatial import shifted_force
from artsim.sim.foundation.vec3 import (
    cross,
    dot,
    minus,
    minus_times,
    negative,
    plus_times,
    put_at,
    times,
    triple,
    triple_at,
    zeros_like,
)


@njit
def transmissions(robot: RobotBundle, q: Reals1, v: Reals1, equipment: EquipmentBundle) -> None:
    """Set equipment.data.actuator_length, actuator_velocity (na,) and actuator_moment (entries,).

    Tendon lengths and moment arms are up to date.
    """
    for a in range(equipment.model.actuator_target.shape[0]):
        kind = equipment.model.actuator_transmission[a]
        equipment.data.actuator_length[a] = 0.0  # free joints, bodies and sites without reference have no length
        if kind == JOINT or kind == JOINT_IN_PARENT:
            _joint(robot.model, q, equipment, a)
        elif kind == TENDON:
            _tendon(equipment, a)
        else:
            for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
                equipment.data.row[equipment.model.actuator_dof[entry]] = 0.0
            if kind == SITE:
                _site(robot, equipment, a)
            elif kind == SLIDER_CRANK:
                _slider_crank(robot, equipment, a)
            for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
                equipment.data.actuator_moment[entry] = equipment.data.row[equipment.model.actuator_dof[entry]]
        rate = 0.0
        for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
            rate += equipment.data.actuator_moment[entry] * v[equipment.model.actuator_dof[entry]]
        equipment.data.actuator_velocity[a] = rate


@njit
def _tendon(equipment: EquipmentBundle, a: int) -> None:
    gear = equipment.model.actuator_gear[a, 0]
    t = equipment.model.actuator_target[a]
    equipment.data.actuator_length[a] = gear * equipment.data.tendon_length[t]
    shift = equipment.model.tendon_entry[t] - equipment.model.actuator_entry[a]
    for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
        equipment.data.actuator_moment[entry] = gear * equipment.data.tendon_moment[entry + shift]


@njit
def _joint(model: Model, q: Reals1, equipment: EquipmentBundle, a: int) -> None:
    """Transmission of a joint: gear · coordinate, or a torque (and a force) along the gear of a ball or free joint."""
    first = equipment.model.actuator_entry[a]
    size = equipment.model.actuator_entry[a + 1] - first
    gear = equipment.model.actuator_gear[a]
    k = equipment.model.actuator_target[a]
    if size == 1:
        equipment.data.actuator_moment[first] = gear[0]
        equipment.data.actuator_length[a] = gear[0] * q[model.dof_coord[k]]
        return
    angular = size - 3  # the force of a free joint comes first
    n = model.body_coord[model.dof_body[k]] + angular
    qw, qx, qy, qz = q[n], q[n + 1], q[n + 2], q[n + 3]
    g = triple_at(gear, angular)
    if equipment.model.actuator_transmission[a] == JOINT_IN_PARENT:
        g = _turned_back(qw, (qx, qy, qz), g)
    for axis in range(angular):
        equipment.data.actuator_moment[first + axis] = gear[axis]
    put_at(equipment.data.actuator_moment, first + angular, g)
    if angular == 0:
        r = rotation_vector(qw, qx, qy, qz)
        equipment.data.actuator_length[a] = dot(r, g)


@inlined
def _turned_back(w: float, u: Vec3, g: Vec3) -> Vec3:
    """g in the axes that the quaternion (w, u) rotates: Rᵀ g = g - 2 w u × g + 2 u × (u × g)."""
    c = cross(u, g)
    return plus_times(minus_times(g, 2.0 * w, c), 2.0, cross(u, c))


@inlined
def turned_gear(data: Workspace, equipment: EquipmentBundle, site: int, g: Vec3) -> Vec3:
    """Transform a vector from a site's axes to world axes."""
    return turn(data.rotation, equipment.model.site_body[site], turn(equipment.model.site_rotation, site, g))


@njit
def add_wrench(
    robot: RobotBundle,
    equipment: EquipmentBundle,
    body: int,
    p: Vec3,
    wrench: Force,
    sign: float,
) -> None:
    """equipment.data.row += sign Jᵀ wrench: a force at point p of `body` and a torque, world axes. O(depth)."""
    model, data = robot.model, robot.data
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        o = origin_of(model, data, model.dof_body[k])
        equipment.data.row[k] += sign * along_axis(model, data, k, shifted_force(wrench, minus(p, o)))
        k = model.dof_parent[k]


@inlined
def wrench_frame(equipment: EquipmentBundle, a: int) -> int:
    """The site in whose axes the gear of an actuator at a site is given."""
    own = equipment.model.actuator_reference[a] < 0 or equipment.model.actuator_axis[a] >= 0
    return equipment.model.actuator_target[a] if own else equipment.model.actuator_reference[a]


@njit
def _site(robot: RobotBundle, equipment: EquipmentBundle, a: int) -> None:
    """Transmission of a site: a wrench in its own axes, or in those of a reference site, which takes the reaction.

    A rotation servo uses the site's own axes in either case. With a reference, dofs that move both sites do not count,
    nor does, as in MuJoCo, the rotation of the reference's axes.
    """
    model, data = robot.model, robot.data
    site = equipment.model.actuator_target[a]
    reference = equipment.model.actuator_reference[a]
    frame = wrench_frame(equipment, a)
    gear = equipment.model.actuator_gear[a]
    f = turned_gear(data, equipment, frame, triple(gear))
    t = turned_gear(data, equipment, frame, triple_at(gear, 3))
    p = site_point(model, data, equipment, site)
    body = equipment.model.site_body[site]
    add_wrench(robot, equipment, body, p, (f, t), 1.0)
    if reference < 0:
        return
    r = site_point(model, data, equipment, reference)
    base = equipment.model.site_body[reference]
    add_wrench(robot, equipment, base, r, (f, t), -1.0)
    k = _common_dof(model, body, base)
    while k >= 0:
        equipment.data.row[k] = 0.0
        k = model.dof_parent[k]
    length = dot(f, minus(p, r))
    if gear[3] != 0.0 or gear[4] != 0.0 or gear[5] != 0.0:
        v = _difference(data, equipment, site, reference)
        length += dot(v, t)
    equipment.data.actuator_length[a] = length


@njit
def _common_dof(model: Model, body: int, base: int) -> int:
    """The last dof that moves both bodies, -1: none."""
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    j = model.body_dof[base + 1] - 1 if base > 0 else -1
    while k != j:
        if k > j:
            k = model.dof_parent[k]
        else:
            j = model.dof_parent[j]
    return k


@njit
def _difference(data: Workspace, equipment: EquipmentBundle, site: int, reference: int) -> Vec3:
    """The rotation vector from a reference site's axes to a site's, in world axes."""
    a = turned_gear(data, equipment, site, (1.0, 0.0, 0.0))
    b = turned_gear(data, equipment, site, (0.0, 1.0, 0.0))
    c = turned_gear(data, equipment, site, (0.0, 0.0, 1.0))
    i = turned_gear(data, equipment, reference, (1.0, 0.0, 0.0))
    j = turned_gear(data, equipment, reference, (0.0, 1.0, 0.0))
    k = turned_gear(data, equipment, reference, (0.0, 0.0, 1.0))
    R = (dot(i, a), dot(i, b), dot(i, c), dot(j, a), dot(j, b), dot(j, c), dot(k, a), dot(k, b), dot(k, c))
    qw, qx, qy, qz = quaternion_of(R)
    r = rotation_vector(qw, qx, qy, qz)
    return plus_times(plus_times(times(r[0], i), r[1], j), r[2], k)


@njit
def _slider_crank(robot: RobotBundle, equipment: EquipmentBundle, a: int) -> None:
    """Transmission of a slider-crank: the slider moves on the z axis of its site; a rod joins it to the crank's pin."""
    model, data = robot.model, robot.data
    pin = equipment.model.actuator_target[a]
    slider = equipment.model.actuator_reference[a]
    length, f, n = crank(model, data, equipment, a)
    equipment.data.actuator_length[a] = length
    p = site_point(model, data, equipment, pin)
    s = site_point(model, data, equipment, slider)
    add_wrench(robot, equipment, equipment.model.site_body[pin], p, (f, zeros_like(f)), 1.0)
    add_wrench(robot, equipment, equipment.model.site_body[slider], s, (f, negative(n)), -1.0)


@njit
def crank(model: Model, data: Workspace, equipment: EquipmentBundle, a: int) -> tuple[float, Vec3, Vec3]:
    """Length of a slider-crank, the force of a unit actuator force on the pin, and the torque on the slider's body.

    With d from slider to pin, L = d·z - √((d·z)² + r² - d·d); beyond the rod's reach the root counts as 0.
    """
    pin = equipment.model.actuator_target[a]
    slider = equipment.model.actuator_reference[a]
    gear = equipment.model.actuator_gear[a, 0]
    rod = equipment.model.actuator_crank[a]
    z = turned_gear(data, equipment, slider, (0.0, 0.0, 1.0))
    p = site_point(model, data, equipment, pin)
    s = site_point(model, data, equipment, slider)
    d = minus(p, s)
    along = dot(d, z)
    square = along * along + rod * rod - dot(d, d)
    by_z = 1.0  # dL/dd = by_z z + by_d d, dL/dz = by_z d
    by_d = 0.0
    length = along
    if square > 0.0:
        root = math.sqrt(square)
        length = along - root
        by_z = 1.0 - along / root
        by_d = 1.0 / root
    f = times(gear, plus_times(times(by_z, z), by_d, d))
    n = cross(z, times(gear * by_z, d))
    return gear * length, f, n
