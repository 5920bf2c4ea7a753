"""Lengths, velocities and moment arms of tendons, and the inertia of tendons with armature.

A spatial tendon is a chain of straight pieces between points of bodies. The points on a geom that it wraps around may
be regarded as fixed to the geom: the path is shortest, so moving them does not change the length to first order.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import accelerations, add_point_force, kinematics, origin_of, point_of
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.equipment.arrays import PATH_JOINT, PATH_LOOP, PATH_PULLEY, PATH_SITE, EquipmentBundle
from artsim.sim.equipment.loop_axes import loop_coordinate
from artsim.sim.equipment.wrapping import unit3, wrap
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import turn, turn_back
from artsim.sim.foundation.records import Reals1, Reals2, Vec3
from artsim.sim.foundation.vec3 import cross, dot, minus, plus, row_of, times


@njit
def tendon_paths(robot: RobotBundle, q: Reals1, v: Reals1, equipment: EquipmentBundle) -> None:
    """Set equipment.data.tendon_length, tendon_velocity (nt,) and tendon_moment (entries,) from kinematics in data."""
    for t in range(equipment.data.tendon_length.shape[0]):
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            equipment.data.row[equipment.model.tendon_dof[entry]] = 0.0
        first = equipment.model.tendon_path[t]
        if equipment.model.path_kind[first] == PATH_JOINT:
            equipment.data.tendon_length[t] = _sum_of_joints(robot.model, q, equipment, t)
        elif equipment.model.path_kind[first] == PATH_LOOP:
            loop, axis = equipment.model.path_index[first], int(equipment.model.path_value[first])
            equipment.data.tendon_length[t] = loop_coordinate(robot, equipment, loop, axis, equipment.data.row)
        else:
            equipment.data.tendon_length[t] = _path(robot, equipment, t)
        rate = 0.0
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            k = equipment.model.tendon_dof[entry]
            equipment.data.tendon_moment[entry] = equipment.data.row[k]
            rate += equipment.data.row[k] * v[k]
        equipment.data.tendon_velocity[t] = rate


@njit
def rest_lengths(robot: RobotBundle, q: Reals1, v: Reals1, equipment: EquipmentBundle) -> None:
    """Set equipment.data.spring_length (nt, 2).

    Without a length in the file, the rest length is that at the joints' spring references. q (nq,) is scratch and v
    (nv,) zero.
    """
    for n in range(q.shape[0]):
        q[n] = equipment.model.relaxed[n]
    kinematics(robot.model, q, robot.data)
    tendon_paths(robot, q, v, equipment)
    for t in range(equipment.data.tendon_length.shape[0]):
        for end in range(2):
            rest = equipment.model.tendon_spring[t, end]
            equipment.data.spring_length[t, end] = equipment.data.tendon_length[t] if rest != rest else rest


@njit
def _sum_of_joints(model: Model, q: Reals1, equipment: EquipmentBundle, t: int) -> float:
    """Length of a fixed tendon, Σ coefficient · coordinate; its moment arms are added to equipment.data.row."""
    length = 0.0
    for p in range(equipment.model.tendon_path[t], equipment.model.tendon_path[t + 1]):
        k = equipment.model.path_index[p]
        length += equipment.model.path_value[p] * q[model.dof_coord[k]]
        equipment.data.row[k] += equipment.model.path_value[p]
    return length


@njit
def _path(robot: RobotBundle, equipment: EquipmentBundle, t: int) -> float:
    """Length of a spatial tendon, branch by branch; its moment arms are added to equipment.data.row."""
    length = 0.0
    share = 1.0
    p = equipment.model.tendon_path[t]
    while p < equipment.model.tendon_path[t + 1] - 1:
        if equipment.model.path_kind[p] == PATH_PULLEY:
            share = 1.0 / equipment.model.path_value[p]
            p += 1
        elif equipment.model.path_kind[p + 1] == PATH_PULLEY:
            p += 1
        elif equipment.model.path_kind[p + 1] == PATH_SITE:
            length += share * _straight(
                robot, equipment, equipment.model.path_index[p], equipment.model.path_index[p + 1], share
            )
            p += 1
        else:
            length += share * _wrapped(robot, equipment, p, share)
            p += 2
    return length


@inlined
def site_point(model: Model, data: Workspace, equipment: EquipmentBundle, site: int) -> Vec3:
    """Position of a site in the world [m]."""
    p = equipment.model.site_position[site]
    return point_of(model, data, equipment.model.site_body[site], p)


@njit
def _straight(robot: RobotBundle, equipment: EquipmentBundle, first: int, second: int, share: float) -> float:
    """Length of the straight piece between two sites."""
    model, data = robot.model, robot.data
    a = site_point(model, data, equipment, first)
    b = site_point(model, data, equipment, second)
    body_a, body_b = equipment.model.site_body[first], equipment.model.site_body[second]
    return _piece(robot, body_a, body_b, a, b, share, equipment.data.row)


@njit
def _piece(robot: RobotBundle, body_a: int, body_b: int, a: Vec3, b: Vec3, share: float, out: Reals1) -> float:
    """Length from point a of one body to b of another; share times its derivatives is added to out (nv,)."""
    u, length = unit3(minus(b, a))
    if body_a != body_b:
        add_point_force(robot, body_a, a, times(-share, u), out)
        add_point_force(robot, body_b, b, times(share, u), out)
    return length


@njit
def _wrapped(robot: RobotBundle, equipment: EquipmentBundle, p: int, share: float) -> float:
    """Length from site to site around the geom at path element p + 1."""
    model, data = robot.model, robot.data
    first, geom, second = (
        equipment.model.path_index[p],
        equipment.model.path_index[p + 1],
        equipment.model.path_index[p + 2],
    )
    on_geom, meets, leaves = way_around(model, data, equipment, p)
    if on_geom < 0.0:
        return _straight(robot, equipment, first, second, share)
    body = equipment.model.wrap_body[geom]
    a = site_point(model, data, equipment, first)
    b = site_point(model, data, equipment, second)
    before = _piece(robot, equipment.model.site_body[first], body, a, meets, share, equipment.data.row)
    after = _piece(robot, body, equipment.model.site_body[second], leaves, b, share, equipment.data.row)
    return before + on_geom + after


@njit
def way_around(model: Model, data: Workspace, equipment: EquipmentBundle, p: int) -> tuple[float, Vec3, Vec3]:
    """Length on the geom at path element p + 1 (-1: no contact), and the points where the tendon arrives and leaves."""
    first, geom, second = (
        equipment.model.path_index[p],
        equipment.model.path_index[p + 1],
        equipment.model.path_index[p + 2],
    )
    side = site_point(model, data, equipment, first)
    start = _in_geom(model, data, equipment, geom, side)
    end = _in_geom(model, data, equipment, geom, site_point(model, data, equipment, second))
    sided = equipment.model.path_side[p + 1] >= 0
    if sided:
        side = site_point(model, data, equipment, equipment.model.path_side[p + 1])
        side = _in_geom(model, data, equipment, geom, side)
    kind, radius = equipment.model.path_kind[p + 1], equipment.model.wrap_radius[geom]
    on_geom, meets, leaves = wrap(kind, radius, start, end, sided, side)
    if on_geom >= 0.0:
        meets = _out_of_geom(model, data, equipment, geom, meets)
        leaves = _out_of_geom(model, data, equipment, geom, leaves)
    return on_geom, meets, leaves


@inlined
def _in_geom(model: Model, data: Workspace, equipment: EquipmentBundle, geom: int, point: Vec3) -> Vec3:
    """Transform a world point to the frame of a wrap geom."""
    body = equipment.model.wrap_body[geom]
    in_body = turn_back(data.rotation, body, minus(point, origin_of(model, data, body)))
    return turn_back(equipment.model.wrap_rotation, geom, minus(in_body, equipment.model.wrap_position[geom]))


@inlined
def _out_of_geom(model: Model, data: Workspace, equipment: EquipmentBundle, geom: int, point: Vec3) -> Vec3:
    """Transform a point from the frame of a wrap geom to the world."""
    p = plus(equipment.model.wrap_position[geom], turn(equipment.model.wrap_rotation, geom, point))
    return point_of(model, data, equipment.model.wrap_body[geom], p)


@njit
def add_tendon_inertia(model: Model, data: Workspace, equipment: EquipmentBundle) -> None:
    """Add armature · Jᵀ J of all tendons to the entries that data.mass_matrix has, between dofs of one chain.

    MuJoCo's M holds these entries, too.
    """
    for t in range(equipment.model.tendon_armature.shape[0]):
        if equipment.model.tendon_armature[t] == 0.0:
            continue
        for k in range(equipment.data.row.shape[0]):
            equipment.data.row[k] = 0.0
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            equipment.data.row[equipment.model.tendon_dof[entry]] = equipment.data.tendon_moment[entry]
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            k = equipment.model.tendon_dof[entry]
            j = k
            while j >= 0:
                data.mass_matrix[k, j] += (
                    equipment.model.tendon_armature[t] * equipment.data.row[k] * equipment.data.row[j]
                )
                j = model.dof_parent[j]


@njit
def has_inertia(equipment: EquipmentBundle) -> bool:
    """True when a tendon has armature."""
    for t in range(equipment.model.tendon_armature.shape[0]):
        if equipment.model.tendon_armature[t] > 0.0:
            return True
    return False


@njit
def add_inertia_forces(
    model: Model, v: Reals1, a: Reals1, data: Workspace, equipment: EquipmentBundle, out: Reals1
) -> None:
    """Add the inertia forces of tendons at velocities v and accelerations a, armature Jᵀ (J a + J̇ v), to out (nv,).

    Lengths and moment arms in equipment.data and the result of `velocities` are up to date. Afterwards the bodies'
    accelerations are those at a = 0.
    """
    if not has_inertia(equipment):
        return
    prepare_drifts(model, v, data, equipment)
    for t in range(equipment.model.tendon_armature.shape[0]):
        if equipment.model.tendon_armature[t] > 0.0:
            rate = tendon_drift(model, data, equipment, t)
            for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
                rate += equipment.data.tendon_moment[entry] * a[equipment.model.tendon_dof[entry]]
            for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
                out[equipment.model.tendon_dof[entry]] += (
                    equipment.model.tendon_armature[t] * rate * equipment.data.tendon_moment[entry]
                )


@njit
def add_inertia(equipment: EquipmentBundle, M: Reals2) -> None:
    """Add armature · Jᵀ J of all tendons to M (nv, nv), between all dofs."""
    for t in range(equipment.model.tendon_armature.shape[0]):
        if equipment.model.tendon_armature[t] > 0.0:
            for row in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
                share = equipment.model.tendon_armature[t] * equipment.data.tendon_moment[row]
                for column in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
                    M[equipment.model.tendon_dof[row], equipment.model.tendon_dof[column]] += (
                        share * equipment.data.tendon_moment[column]
                    )


@njit
def inertia_energy(equipment: EquipmentBundle) -> float:
    """Kinetic energy of the tendons' armature [J]; equipment.data.tendon_velocity is up to date."""
    total = 0.0
    for t in range(equipment.model.tendon_armature.shape[0]):
        total += (
            0.5
            * equipment.model.tendon_armature[t]
            * equipment.data.tendon_velocity[t]
            * equipment.data.tendon_velocity[t]
        )
    return total


# ------------------------------------------------------------------ the moments' rates


@njit
def find_tendon_drifts(model: Model, v: Reals1, data: Workspace, equipment: EquipmentBundle) -> None:
    """Set equipment.data.tendon_drift of all tendons. Needs `velocities`."""
    prepare_drifts(model, v, data, equipment)
    for t in range(equipment.data.tendon_drift.shape[0]):
        equipment.data.tendon_drift[t] = tendon_drift(model, data, equipment, t)


@njit
def prepare_drifts(model: Model, v: Reals1, data: Workspace, equipment: EquipmentBundle) -> None:
    """Compute the bodies' accelerations at zero generalised acceleration, which tendon_drift needs."""
    for k in range(equipment.data.row2.shape[0]):
        equipment.data.row2[k] = 0.0
    accelerations(model, v, equipment.data.row2, data)


@njit
def tendon_drift(model: Model, data: Workspace, equipment: EquipmentBundle, t: int) -> float:
    """J̇ v: the second derivative of a tendon's length at zero generalised acceleration [m/s²].

    Fixed tendons and paths over sites. Needs `velocities` and `prepare_drifts`.
    """
    total = 0.0
    share = 1.0
    for p in range(equipment.model.tendon_path[t], equipment.model.tendon_path[t + 1] - 1):
        if equipment.model.path_kind[p] == PATH_PULLEY:
            share = 1.0 / equipment.model.path_value[p]
        elif equipment.model.path_kind[p] == PATH_SITE and equipment.model.path_kind[p + 1] == PATH_SITE:
            total += share * _stretching(
                model, data, equipment, equipment.model.path_index[p], equipment.model.path_index[p + 1]
            )
    return total


@njit
def _stretching(model: Model, data: Workspace, equipment: EquipmentBundle, first: int, second: int) -> float:
    """Second derivative of the distance l of two sites: û · Δa + (|Δv|² - l̇²) / l [m/s²]."""
    a = site_point(model, data, equipment, first)
    b = site_point(model, data, equipment, second)
    u, length = unit3(minus(b, a))
    v, c = _motion(model, data, equipment.model.site_body[first], a)
    x, d = _motion(model, data, equipment.model.site_body[second], b)
    x = minus(x, v)
    rate = dot(u, x)
    value = dot(u, minus(d, c))
    if length > 0.0:
        value += (dot(x, x) - rate * rate) / length
    return value


@njit
def _motion(model: Model, data: Workspace, body: int, point: Vec3) -> tuple[Vec3, Vec3]:
    """Velocity and acceleration (minus gravity) of a body's point."""
    r = minus(point, origin_of(model, data, body))
    w = row_of(data.angular_velocity, body)
    turning = cross(w, r)
    acceleration = plus(row_of(data.acceleration, body), cross(w, turning))
    acceleration = plus(acceleration, cross(row_of(data.angular_acceleration, body), r))
    return plus(row_of(data.velocity, body), turning), acceleration
