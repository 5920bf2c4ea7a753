"""Values of MJCF's sensors, at the state before the step and with the acceleration over it."""

from __future__ import annotations

from artsim.sim.articulation.kinematics import accelerations, link_frame, origin_of, turned_inertia, velocities
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.equipment.arrays import (
    ACCELEROMETER,
    ACTUATOR_FORCE,
    ACTUATOR_POSITION,
    ACTUATOR_VELOCITY,
    BALL_ANGULAR_VELOCITY,
    BALL_QUATERNION,
    CLOCK,
    CONTACT,
    FRAME_ANGULAR_ACCELERATION,
    FRAME_ANGULAR_VELOCITY,
    FRAME_LINEAR_ACCELERATION,
    FRAME_LINEAR_VELOCITY,
    FRAME_POSITION,
    FRAME_QUATERNION,
    FRAME_X_AXIS,
    FRAME_Z_AXIS,
    GYRO,
    JOINT_ACTUATOR_FORCE,
    JOINT_LIMIT_POSITION,
    JOINT_LIMIT_VELOCITY,
    JOINT_POSITION,
    JOINT_VELOCITY,
    MAGNETOMETER,
    RANGEFINDER,
    SUBTREE_ANGULAR_MOMENTUM,
    SUBTREE_COM,
    SUBTREE_VELOCITY,
    TENDON,
    TENDON_ACTUATOR_FORCE,
    TENDON_LIMIT_POSITION,
    TENDON_LIMIT_VELOCITY,
    TENDON_POSITION,
    TENDON_VELOCITY,
    TORQUE,
    TOUCH,
    VELOCIMETER,
    EquipmentBundle,
)
from artsim.sim.equipment.contact_sensor import contact_sensor
from artsim.sim.equipment.rangefinder import aim, rangefinder
from artsim.sim.equipment.touch import touch
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import columns, plus_turned, turn, turn_matrix, turned_back
from artsim.sim.foundation.quaternions import quaternion_of
from artsim.sim.foundation.records import Mat3, Vec3
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.vec3 import cross, divided, minus, plus, plus_times, put_at, row_of, triple
from artsim.sim.geometry.contacts import ContactBundle
from artsim.sim.run_data.run_records import STEP_NUMBER, RunBundle, Step


@njit
def sensor_values(
    robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, contact: ContactBundle | None
) -> None:
    """Set equipment.data.sensor (outputs,); step.link_force and step.link_torque hold the wrenches through the joints.

    `contact` is None in a run without contact.
    """
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    accelerations(model, state.qvel, step.qacc, data)
    velocities(model, state.qvel, data)
    for ray in range(equipment.model.ray_sensor.shape[0]):
        aim(model, data, equipment, ray, sensor_frame(model, data, equipment, equipment.model.ray_sensor[ray], 0))
    if equipment.model.ray_sensor.shape[0] > 0:
        run_entry(equipment.data.ray_caster)
    for n in range(equipment.model.sensor_kind.shape[0]):
        kind = equipment.model.sensor_kind[n]
        first = equipment.model.sensor_first[n]
        if kind <= MAGNETOMETER:
            _on_site(model, data, step, equipment, n, kind, first)
        elif kind <= FRAME_ANGULAR_ACCELERATION:
            _of_frame(model, data, equipment, n, kind, first)
        elif kind <= SUBTREE_ANGULAR_MOMENTUM:
            _of_subtree(model, data, equipment, n, kind, first)
        elif kind == CLOCK:
            equipment.data.sensor[first] = step.counters[STEP_NUMBER] * run.inputs.time_step[0]
        elif kind == TOUCH:
            equipment.data.sensor[first] = 0.0
            if contact is not None:
                equipment.data.sensor[first] = touch(
                    model, data, equipment, n, sensor_frame(model, data, equipment, n, 0), contact
                )
        elif kind == RANGEFINDER:
            rangefinder(equipment, n)
        elif kind == CONTACT:
            for k in range(first, equipment.model.sensor_first[n + 1]):
                equipment.data.sensor[k] = 0.0
            if contact is not None:
                contact_sensor(model, data, equipment, n, sensor_frame(model, data, equipment, n, 0), contact)
        else:
            _of_joint(robot, step, equipment, n, kind, first)
        bound = equipment.model.sensor_cutoff[n]
        for k in range(first, equipment.model.sensor_first[n + 1]):
            equipment.data.sensor[k] = min(max(equipment.data.sensor[k], -bound), bound)


@inlined
def sensor_frame(model: Model, data: Workspace, equipment: EquipmentBundle, n: int, end: int) -> tuple[int, Mat3, Vec3]:
    """Frame of an object (end 0) or its reference (1): body, rotation (9, by rows), offset from its origin [m]."""
    body = equipment.model.sensor_body[end, n]
    k = end * equipment.model.sensor_kind.shape[0] + n
    R = turn_matrix(data.rotation, body, equipment.model.sensor_rotation[k])
    return body, R, turn(data.rotation, body, equipment.model.sensor_position[k])


@inlined
def _rate(data: Workspace, body: int, d: Vec3) -> Vec3:
    """Velocity of a body's point at offset d from the origin [m/s]."""
    o = data.angular_velocity
    c = cross(row_of(o, body), d)
    return plus(row_of(data.velocity, body), c)


@inlined
def _acceleration(data: Workspace, body: int, d: Vec3) -> Vec3:
    """Acceleration minus gravity of a body's point at offset d from the origin [m/s²]."""
    o = data.angular_velocity
    al = data.angular_acceleration
    c = cross(row_of(o, body), d)
    c = cross(row_of(o, body), c)
    b = cross(row_of(al, body), d)
    a = data.acceleration
    return plus(plus(row_of(a, body), b), c)


@njit
def _on_site(
    model: Model, data: Workspace, step: Step, equipment: EquipmentBundle, n: int, kind: int, first: int
) -> None:
    """Write a sensor of acceleration, velocity, force, torque or field at a site, in the site's axes."""
    body, R, d = sensor_frame(model, data, equipment, n, 0)
    a = (0.0, 0.0, 0.0)
    if kind == ACCELEROMETER:
        a = _acceleration(data, body, d)
    elif kind == VELOCIMETER:
        a = _rate(data, body, d)
    elif kind == GYRO:
        a = row_of(data.angular_velocity, body)
    elif kind == MAGNETOMETER:
        a = triple(equipment.model.magnetic)
    else:
        link = equipment.model.sensor_index[n]
        F = step.link_force[link]
        N = step.link_torque[link]
        a = triple(F)
        if kind == TORQUE:
            _, p = link_frame(model, data, link)
            c = cross(minus(p, d), F)
            a = plus(N, c)
    v = turned_back(R, a)
    put_at(equipment.data.sensor, first, v)


@njit
def _of_frame(model: Model, data: Workspace, equipment: EquipmentBundle, n: int, kind: int, first: int) -> None:
    """Write pose, velocity or acceleration of a frame, relative to and in the axes of its reference if it has one."""
    body, R, d = sensor_frame(model, data, equipment, n, 0)
    other, Q, g = sensor_frame(model, data, equipment, n, 1)
    p = origin_of(model, data, body)
    o = origin_of(model, data, other)
    r = minus(minus(plus(p, d), o), g)
    if kind == FRAME_QUATERNION:
        a = turned_back(Q, (R[0], R[3], R[6]))
        b = turned_back(Q, (R[1], R[4], R[7]))
        c = turned_back(Q, (R[2], R[5], R[8]))
        q = quaternion_of(columns(a, b, c))
        for k in range(4):
            equipment.data.sensor[first + k] = q[k]
        return
    v = (0.0, 0.0, 0.0)
    u = data.angular_velocity
    if kind == FRAME_POSITION:
        v = r
    elif kind >= FRAME_X_AXIS and kind <= FRAME_Z_AXIS:
        axis = kind - FRAME_X_AXIS
        v = (R[axis], R[3 + axis], R[6 + axis])
    elif kind == FRAME_LINEAR_VELOCITY:
        a = _rate(data, body, d)
        b = _rate(data, other, g)
        c = cross(row_of(u, other), r)
        v = minus(minus(a, b), c)
    elif kind == FRAME_ANGULAR_VELOCITY:
        v = minus(row_of(u, body), row_of(u, other))
    elif kind == FRAME_LINEAR_ACCELERATION:
        v = _acceleration(data, body, d)
    else:
        a = data.angular_acceleration[body]
        v = triple(a)
    if equipment.model.sensor_referred[n] == 1:
        v = turned_back(Q, v)
    put_at(equipment.data.sensor, first, v)


@njit
def _of_subtree(model: Model, data: Workspace, equipment: EquipmentBundle, n: int, kind: int, first: int) -> None:
    """Write centre of mass, its velocity or the angular momentum about it, of the subtree of a link."""
    root = equipment.model.sensor_index[n]
    mass = 0.0
    c, u = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for link in range(root, model.link_body.shape[0]):
        if _hangs_on(model, link, root):
            p, v, _ = _link_motion(model, data, link)
            share = model.link_mass[link]
            mass += share
            c = plus_times(c, share, p)
            u = plus_times(u, share, v)
    if mass > 0.0:
        c, u = divided(c, mass), divided(u, mass)
    else:
        c, _, _ = _link_motion(model, data, root)
    if kind == SUBTREE_COM:
        put_at(equipment.data.sensor, first, c)
        return
    if kind == SUBTREE_VELOCITY:
        put_at(equipment.data.sensor, first, u)
        return
    total = (0.0, 0.0, 0.0)
    for link in range(root, model.link_body.shape[0]):
        if _hangs_on(model, link, root):
            p, v, L = _link_motion(model, data, link)
            total = plus(total, plus_times(L, model.link_mass[link], cross(minus(p, c), minus(v, u))))
    put_at(equipment.data.sensor, first, total)


@inlined
def _hangs_on(model: Model, link: int, root: int) -> bool:
    """True if a link is the root or one of its descendants; links are ordered parents first."""
    k = link
    while k > root:
        k = model.link_parent[k]
    return k == root


@inlined
def _link_motion(model: Model, data: Workspace, link: int) -> tuple[Vec3, Vec3, Vec3]:
    """Centre of mass [m], its velocity [m/s], and the angular momentum about it [kg m²/s], of a single link."""
    body = model.link_body[link]
    R, d = link_frame(model, data, link)
    c = model.link_com[link]
    p = plus_turned(d, R, c)
    v = _rate(data, body, p)
    L = turned_inertia(model, link, R, row_of(data.angular_velocity, body))
    return plus(origin_of(model, data, body), p), v, L


@njit
def _of_joint(robot: RobotBundle, step: Step, equipment: EquipmentBundle, n: int, kind: int, first: int) -> None:
    """Write a sensor of a joint, tendon or actuator."""
    model, state = robot.model, robot.state
    k = equipment.model.sensor_index[n]
    out = equipment.data.sensor
    if kind == JOINT_POSITION:
        out[first] = state.qpos[model.dof_coord[k]]
    elif kind == JOINT_VELOCITY:
        out[first] = state.qvel[k]
    elif kind == BALL_QUATERNION:
        for c in range(4):
            out[first + c] = state.qpos[model.body_coord[model.dof_body[k]] + c]
    elif kind == BALL_ANGULAR_VELOCITY:
        for c in range(3):
            out[first + c] = state.qvel[k + c]
    elif kind == JOINT_ACTUATOR_FORCE:
        out[first] = step.drive[k]
    elif kind == TENDON_POSITION:
        out[first] = equipment.data.tendon_length[k]
    elif kind == TENDON_VELOCITY:
        out[first] = equipment.data.tendon_velocity[k]
    elif kind == TENDON_ACTUATOR_FORCE:
        total = 0.0
        for a in range(equipment.model.actuator_target.shape[0]):
            if equipment.model.actuator_transmission[a] == TENDON and equipment.model.actuator_target[a] == k:
                total += equipment.data.actuator_force[a]
        out[first] = total
    elif kind == ACTUATOR_POSITION:
        for c in range(equipment.model.sensor_first[n + 1] - first):
            out[first + c] = equipment.data.actuator_length[k + c]
    elif kind == ACTUATOR_VELOCITY:
        for c in range(equipment.model.sensor_first[n + 1] - first):
            out[first + c] = equipment.data.actuator_velocity[k + c]
    elif kind == ACTUATOR_FORCE:
        for c in range(equipment.model.sensor_first[n + 1] - first):
            out[first + c] = equipment.data.actuator_force[k + c]
    else:
        out[first] = _of_limit(robot, step, equipment, kind, k)


@njit
def _of_limit(robot: RobotBundle, step: Step, equipment: EquipmentBundle, kind: int, k: int) -> float:
    """The distance, inward velocity or force of the nearer limit of joint or tendon k if it is active or violated,
    else 0.
    """
    model, state = robot.model, robot.state
    if kind >= TENDON_LIMIT_POSITION:
        value, rate = equipment.data.tendon_length[k], equipment.data.tendon_velocity[k]
        lower, upper = equipment.model.tendon_lower[k], equipment.model.tendon_upper[k]
    else:
        value, rate = state.qpos[model.dof_coord[k]], state.qvel[k]
        lower, upper = model.lower[k], model.upper[k]
    sign = 1.0 if value - lower < upper - value else -1.0
    distance = value - lower if sign > 0.0 else upper - value
    force = equipment.data.tendon_limit_force[k] if kind >= TENDON_LIMIT_POSITION else sign * step.limit[k]
    if not (distance < 0.0 or force > 0.0):
        return 0.0
    if kind == JOINT_LIMIT_POSITION or kind == TENDON_LIMIT_POSITION:
        return distance
    if kind == JOINT_LIMIT_VELOCITY or kind == TENDON_LIMIT_VELOCITY:
        return sign * rate
    return force
