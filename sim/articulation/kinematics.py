"""Forward kinematics: poses and velocities of bodies, motion columns, Jacobians, mass properties in world axes.

World axes throughout, each body about its own origin. A transform between bodies is therefore a translation only, and
M, Jacobians and momenta are dot products of the columns computed here once. Cost O(nb) except for the Jacobians.
"""

from __future__ import annotations

from artsim.sim.articulation.model import FREE, PLANAR, PRISMATIC, REVOLUTE, WORLD, Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import real
from artsim.sim.foundation.mat3 import (
    columns,
    first_column,
    second_column,
    set_rotation,
    set_symmetric,
    symmetric_times,
    third_column,
    turn,
    turn_matrix,
    turned,
    turned_back,
)
from artsim.sim.foundation.records import Lanes1, Lanes2, Mat3, Real, Reals1, Vec3, Vector
from artsim.sim.foundation.sincos import sincos
from artsim.sim.foundation.spatial import add_motion_column, motion_column, pair_of, set_motion_column, set_pair
from artsim.sim.foundation.vec3 import (
    cross,
    dot,
    minus,
    minus_times,
    plus,
    plus_along,
    plus_times,
    row_of,
    set_row,
    times,
    triple_at,
    zeros_like,
)


@inlined
def _turned_by_quaternion(data: Workspace, i: int, E: Mat3, qw: Real, qx: Real, qy: Real, qz: Real) -> None:
    """rotation[i] = E R(q), q of unit length."""
    xx, yy, zz = qx * qx, qy * qy, qz * qz
    x = (1.0 - 2.0 * (yy + zz), 2.0 * (qx * qy + qw * qz), 2.0 * (qx * qz - qw * qy))
    y = (2.0 * (qx * qy - qw * qz), 1.0 - 2.0 * (xx + zz), 2.0 * (qy * qz + qw * qx))
    z = (2.0 * (qx * qz + qw * qy), 2.0 * (qy * qz - qw * qx), 1.0 - 2.0 * (xx + yy))
    set_rotation(data.rotation, i, columns(turned(E, x), turned(E, y), turned(E, z)))


@inlined
def _turned_about_z(data: Workspace, i: int, E: Mat3, s: Real, c: Real) -> None:
    """rotation[i] = E Rz, with s and c the sine and cosine of the angle."""
    x, y = first_column(E), second_column(E)
    x, y = plus_times(times(c, x), s, y), minus_times(times(c, y), s, x)
    set_rotation(data.rotation, i, columns(x, y, third_column(E)))


@inlined
def _place(data: Workspace, i: int, above: int, d: Vec3, root: bool) -> None:
    """Put body i's origin at d from its parent's; that of a free root is its tree's reference point."""
    set_row(data.offset, i, d)
    set_row(data.arm, i, zeros_like(d) if root else plus(row_of(data.arm, above), d))


@njit
def kinematics(model: Model, q: Lanes1, data: Workspace) -> None:
    """Rotations, origins and axes of all bodies at q (nq,). Featherstone 2008, ch. 4."""
    for i in range(1, model.body_parent.shape[0]):
        place_body(model, q, data, i)


@njit
def place_body(model: Model, q: Lanes1, data: Workspace, i: int) -> None:
    """Rotation, origin and axes of body i, given those of its parent."""
    above = model.body_parent[i]
    kind = model.joint_type[i]
    k = model.body_dof[i]
    n = model.body_coord[i]
    E = turn_matrix(data.rotation, above, model.tree_rotation[i])
    x, y, z = first_column(E), second_column(E), third_column(E)
    d = turn(data.rotation, above, model.tree_position[i])
    if kind == REVOLUTE:
        s, c = sincos(q[n])
        _turned_about_z(data, i, E, s, c)
        _place(data, i, above, d, False)
        set_row(data.axis, k, z)
    elif kind == PRISMATIC:
        set_rotation(data.rotation, i, E)
        _place(data, i, above, plus_times(d, q[n], z), False)
        set_row(data.axis, k, z)
    elif kind == PLANAR:
        s, c = sincos(q[n + 2])
        _turned_about_z(data, i, E, s, c)
        _place(data, i, above, plus_times(plus_times(d, q[n], x), q[n + 1], y), False)
        _set_axes(data, k, x, y, z)
    else:
        if kind == FREE:
            d = plus_along(d, triple_at(q, n), x, y, z)
            _set_axes(data, k, x, y, z)
            n += 3
            k += 3
        _turned_by_quaternion(data, i, E, q[n], q[n + 1], q[n + 2], q[n + 3])
        _place(data, i, above, d, kind == FREE and above == 0)
        R = data.rotation
        for axis in range(3):
            set_row(data.axis, k + axis, (R[i, 0, axis], R[i, 1, axis], R[i, 2, axis]))


@inlined
def _set_axes(data: Workspace, k: int, x: Vec3, y: Vec3, z: Vec3) -> None:
    """Set the axes of the dofs k, k + 1, k + 2."""
    set_row(data.axis, k, x)
    set_row(data.axis, k + 1, y)
    set_row(data.axis, k + 2, z)


@njit
def world_inertia(model: Model, data: Workspace) -> None:
    """First moments and inertias of all bodies in world axes, about their origins."""
    for i in range(1, model.body_parent.shape[0]):
        turn_inertia(model, data, i, data.moment, data.inertia)


@njit
def turn_inertia(model: Model, data: Workspace, i: int, moment: Lanes2, inertia: Lanes2) -> None:
    """Body i's first moment and inertia in world axes, into row i: R h, R I Rᵀ, 54 multiplications."""
    R = data.rotation
    I = model.body_inertia[i]
    set_row(moment, i, turn(R, i, model.body_moment[i]))
    a = turn(R, i, (I[0], I[1], I[2]))
    b = turn(R, i, (I[1], I[3], I[4]))
    c = turn(R, i, (I[2], I[4], I[5]))
    x, y, z = turn(R, i, (a[0], b[0], c[0])), turn(R, i, (a[1], b[1], c[1])), turn(R, i, (a[2], b[2], c[2]))
    set_symmetric(inertia, i, 0, (x[0], x[1], x[2], y[1], y[2], z[2]))


@inlined
def axis_of(data: Workspace, k: int) -> Vec3:
    """The axis of dof k in the world: direction of translation or of rotation."""
    return row_of(data.axis, k)


@inlined
def origin_of(model: Model, data: Workspace, i: int) -> Vec3:
    """Position of body i's origin in the world [m]."""
    root = model.body_root[i]
    p = data.offset
    return plus(row_of(p, root), row_of(data.arm, i))


@inlined
def point_of(model: Model, data: Workspace, body: int, p: Vector) -> Vec3:
    """World position of the point p of a body's internal frame [m]."""
    return plus(origin_of(model, data, body), turn(data.rotation, body, p))


@njit
def add_point_force(robot: RobotBundle, body: int, point: Vec3, force: Vec3, out: Reals1) -> None:
    """Add Jᵀ f to out (nv,), for a force on a body at a point, both in world axes. O(d). Needs kinematics."""
    p = point
    f = force
    model, data = robot.model, robot.data
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        a = axis_of(data, k)
        if model.dof_linear[k]:
            out[k] += dot(a, f)
        else:
            o = origin_of(model, data, model.dof_body[k])
            t = cross(minus(p, o), f)
            out[k] += dot(a, t)
        k = model.dof_parent[k]


@njit
def add_torque(robot: RobotBundle, body: int, torque: Vec3, out: Reals1) -> None:
    """Add Jᵀ t to out (nv,), for a torque on a body in world axes. O(d). Needs kinematics."""
    model, data = robot.model, robot.data
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        if not model.dof_linear[k]:
            a = axis_of(data, k)
            out[k] += dot(a, torque)
        k = model.dof_parent[k]


@njit
def motion_columns(model: Model, data: Workspace) -> None:
    """data.motion: motion of the tree's reference point per unit velocity of each dof. Needs kinematics."""
    for k in range(model.dof_body.shape[0]):
        a = axis_of(data, k)
        if model.dof_linear[k]:
            set_motion_column(data.motion, k, (a, zeros_like(a)))
        else:
            set_motion_column(data.motion, k, (cross(row_of(data.arm, model.dof_body[k]), a), a))


@njit
def weigh_down(model: Model, data: Workspace) -> None:
    """Set the acceleration of the world to that against gravity, from which forces follow in all recursions."""
    for k in range(3):
        data.acceleration[WORLD, k] = like(-1.0, data) * model.gravity[k]


@njit
def velocities(model: Model, v: Lanes1, data: Workspace) -> None:
    """Velocity of every body's origin and its angular velocity at v (nv,)."""
    for i in range(1, model.body_parent.shape[0]):
        u, w = pair_of(data.velocity, data.angular_velocity, model.body_parent[i])
        u = plus(cross(w, row_of(data.offset, i)), u)
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            if model.dof_linear[k]:
                u = plus_times(u, v[k], axis_of(data, k))
            else:
                w = plus_times(w, v[k], axis_of(data, k))
        set_pair(data.velocity, data.angular_velocity, i, (u, w))


@njit
def linear_velocities(model: Model, v: Lanes1, data: Workspace) -> None:
    """Velocity of every body's origin at v (nv,), at which the angular velocities are known."""
    for i in range(1, model.body_parent.shape[0]):
        u, w = pair_of(data.velocity, data.angular_velocity, model.body_parent[i])
        u = plus(cross(w, row_of(data.offset, i)), u)
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            if model.dof_linear[k]:
                u = plus_times(u, v[k], axis_of(data, k))
        set_row(data.velocity, i, u)


@njit
def accelerations(model: Model, v: Lanes1, a: Lanes1, data: Workspace) -> None:
    """Acceleration (of the origin, less gravity) and angular acceleration of every body at v and a (nv,).

    Classical accelerations, not spatial ones: d²p/dt² = a_parent + α × d + ω × (ω × d) + axis terms with 2 ω × ḋ.
    Needs kinematics; computes the angular velocities on the way.
    """
    for i in range(1, model.body_parent.shape[0]):
        above = model.body_parent[i]
        d = row_of(data.offset, i)
        w = row_of(data.angular_velocity, above)
        b, x = pair_of(data.acceleration, data.angular_acceleration, above)
        b = plus(plus(b, cross(x, d)), cross(w, cross(w, d)))
        # rates in the joint: their directions turn with the parent (linear) or, summed over the joint, with ω_parent ×
        r = zeros_like(w)
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            axis = axis_of(data, k)
            if model.dof_linear[k]:
                b = plus_times(plus_times(b, a[k], axis), 2.0 * v[k], cross(w, axis))
            else:
                r = plus_times(r, v[k], axis)
                x = plus_times(x, a[k], axis)
        set_pair(data.acceleration, data.angular_acceleration, i, (b, plus(x, cross(w, r))))
        set_row(data.angular_velocity, i, plus(w, r))


@njit
def jacobian(model: Model, data: Workspace, body: int, p: Vector, out: Lanes2) -> None:
    """Jacobian (6, nv) of the point of `body` at p from the body's origin, in world axes: linear, angular.

    Columns of the body's chain only; the rest of `out` is left as it is. O(d). Needs `motion_columns`.
    """
    r = plus(row_of(data.arm, body), p)
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        u, w = motion_column(data.motion, k)
        set_motion_column(out, k, (plus(cross(w, r), u), w))
        k = model.dof_parent[k]


@njit
def add_jacobian(model: Model, data: Workspace, body: int, p: Vector, sign: float, out: Lanes2) -> None:
    """Add `sign` times that Jacobian to out (6, nv): for a point relative to another, dofs that move both cancel."""
    r = plus(row_of(data.arm, body), p)
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        u, w = motion_column(data.motion, k)
        add_motion_column(out, k, sign, (plus(cross(w, r), u), w))
        k = model.dof_parent[k]


@inlined
def link_frame(model: Model, data: Workspace, link: int) -> tuple[Mat3, Vec3]:
    """Rotation of a link frame in the world, and its origin from its body's origin."""
    i = model.link_body[link]
    R = turn_matrix(data.rotation, i, model.link_rotation[link])
    return R, turn(data.rotation, i, model.link_position[link])


@inlined
def turned_inertia(model: Model, link: int, R: Mat3, w: Vec3) -> Vec3:
    """I ω of a link about its centre of mass, in world axes; R is the rotation of the link's frame."""
    return turned(R, symmetric_times(model.link_inertia, link, turned_back(R, w)))


@inlined
def like(x: float, data: Workspace) -> Real:
    """The float x as a T of the workspace."""
    return real(x, data.rotation[0, 0, 0])
