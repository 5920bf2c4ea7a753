"""Forward kinematics: poses and velocities of bodies, motion columns, Jacobians, mass properties in world axes.

World axes throughout, each body about its own origin. A transform between bodies is therefore a translation only, and
M, Jacobians and momenta are dot products of the columns computed here once. Cost O(nb) except for the Jacobians.
"""

from __future__ import annotations

from artsim.sim.articulation.model import FREE, PLANAR, PRISMATIC, REVOLUTE, Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import real
from artsim.sim.foundation.records import ConstReals3, Lanes1, Lanes2, Lanes3, Mat3, Real, Reals1, Vec3
from artsim.sim.foundation.sincos import sincos
from artsim.sim.foundation.vec3 import cross, dot, minus, plus, plus_times, row_of, set_row, turn


@inlined
def _set_axis(data: Workspace, k: int, x: Real, y: Real, z: Real) -> None:
    data.axis[k, 0] = x
    data.axis[k, 1] = y
    data.axis[k, 2] = z


@inlined
def _turned_by_quaternion(data: Workspace, i: int, E: Mat3, qw: Real, qx: Real, qy: Real, qz: Real) -> None:
    """rotation[i] = E R(q), q of unit length."""
    xx = qx * qx
    yy = qy * qy
    zz = qz * qz
    r00 = 1.0 - 2.0 * (yy + zz)
    r01 = 2.0 * (qx * qy - qw * qz)
    r02 = 2.0 * (qx * qz + qw * qy)
    r10 = 2.0 * (qx * qy + qw * qz)
    r11 = 1.0 - 2.0 * (xx + zz)
    r12 = 2.0 * (qy * qz - qw * qx)
    r20 = 2.0 * (qx * qz - qw * qy)
    r21 = 2.0 * (qy * qz + qw * qx)
    r22 = 1.0 - 2.0 * (xx + yy)
    R = data.rotation
    R[i, 0, 0] = E[0] * r00 + E[1] * r10 + E[2] * r20
    R[i, 0, 1] = E[0] * r01 + E[1] * r11 + E[2] * r21
    R[i, 0, 2] = E[0] * r02 + E[1] * r12 + E[2] * r22
    R[i, 1, 0] = E[3] * r00 + E[4] * r10 + E[5] * r20
    R[i, 1, 1] = E[3] * r01 + E[4] * r11 + E[5] * r21
    R[i, 1, 2] = E[3] * r02 + E[4] * r12 + E[5] * r22
    R[i, 2, 0] = E[6] * r00 + E[7] * r10 + E[8] * r20
    R[i, 2, 1] = E[6] * r01 + E[7] * r11 + E[8] * r21
    R[i, 2, 2] = E[6] * r02 + E[7] * r12 + E[8] * r22


@inlined
def _turned_about_z(data: Workspace, i: int, E: Mat3, s: Real, c: Real) -> None:
    """rotation[i] = E Rz, with s and c the sine and cosine of the angle."""
    R = data.rotation
    R[i, 0, 0] = E[0] * c + E[1] * s
    R[i, 1, 0] = E[3] * c + E[4] * s
    R[i, 2, 0] = E[6] * c + E[7] * s
    R[i, 0, 1] = E[1] * c - E[0] * s
    R[i, 1, 1] = E[4] * c - E[3] * s
    R[i, 2, 1] = E[7] * c - E[6] * s
    R[i, 0, 2] = E[2]
    R[i, 1, 2] = E[5]
    R[i, 2, 2] = E[8]


@inlined
def _place(data: Workspace, i: int, above: int, d0: Real, d1: Real, d2: Real, root: bool) -> None:
    data.offset[i, 0] = d0
    data.offset[i, 1] = d1
    data.offset[i, 2] = d2
    for k in range(3):
        # a free root is its tree's reference point
        data.arm[i, k] = d0 - d0 if root else data.arm[above, k] + data.offset[i, k]


@njit
def kinematics(model: Model, q: Lanes1, data: Workspace) -> None:
    """Rotations, origins and axes of all bodies at q (nq,). Featherstone 2008, ch. 4."""
    for i in range(1, model.body_parent.shape[0]):
        place_body(model, q, data, i)


@inlined
def _joint_frame(R: Lanes3, T: ConstReals3, A: int, i: int) -> Mat3:
    """Rotation of body i's joint frame in the world, 9 numbers by rows; A is the parent."""
    return (
        R[A, 0, 0] * T[i, 0, 0] + R[A, 0, 1] * T[i, 1, 0] + R[A, 0, 2] * T[i, 2, 0],
        R[A, 0, 0] * T[i, 0, 1] + R[A, 0, 1] * T[i, 1, 1] + R[A, 0, 2] * T[i, 2, 1],
        R[A, 0, 0] * T[i, 0, 2] + R[A, 0, 1] * T[i, 1, 2] + R[A, 0, 2] * T[i, 2, 2],
        R[A, 1, 0] * T[i, 0, 0] + R[A, 1, 1] * T[i, 1, 0] + R[A, 1, 2] * T[i, 2, 0],
        R[A, 1, 0] * T[i, 0, 1] + R[A, 1, 1] * T[i, 1, 1] + R[A, 1, 2] * T[i, 2, 1],
        R[A, 1, 0] * T[i, 0, 2] + R[A, 1, 1] * T[i, 1, 2] + R[A, 1, 2] * T[i, 2, 2],
        R[A, 2, 0] * T[i, 0, 0] + R[A, 2, 1] * T[i, 1, 0] + R[A, 2, 2] * T[i, 2, 0],
        R[A, 2, 0] * T[i, 0, 1] + R[A, 2, 1] * T[i, 1, 1] + R[A, 2, 2] * T[i, 2, 1],
        R[A, 2, 0] * T[i, 0, 2] + R[A, 2, 1] * T[i, 1, 2] + R[A, 2, 2] * T[i, 2, 2],
    )


@njit
def place_body(model: Model, q: Lanes1, data: Workspace, i: int) -> None:
    """Rotation, origin and axes of body i, given those of its parent."""
    R = data.rotation
    T = model.tree_rotation
    above = model.body_parent[i]
    kind = model.joint_type[i]
    k = model.body_dof[i]
    n = model.body_coord[i]
    p = model.tree_position[i]
    A = above
    E = _joint_frame(R, T, A, i)
    d = turn(R, A, p)
    if kind == REVOLUTE:
        s, c = sincos(q[n])
        _turned_about_z(data, i, E, s, c)
        _place(data, i, above, d[0], d[1], d[2], False)
        _set_axis(data, k, E[2], E[5], E[8])
    elif kind == PRISMATIC:
        s = q[n]
        for row in range(3):
            for column in range(3):
                R[i, row, column] = E[3 * row + column]
        _place(data, i, above, d[0] + s * E[2], d[1] + s * E[5], d[2] + s * E[8], False)
        _set_axis(data, k, E[2], E[5], E[8])
    elif kind == PLANAR:
        x = q[n]
        y = q[n + 1]
        s, c = sincos(q[n + 2])
        _turned_about_z(data, i, E, s, c)
        _place(
            data, i, above, d[0] + x * E[0] + y * E[1], d[1] + x * E[3] + y * E[4], d[2] + x * E[6] + y * E[7], False
        )
        _set_axis(data, k, E[0], E[3], E[6])
        _set_axis(data, k + 1, E[1], E[4], E[7])
        _set_axis(data, k + 2, E[2], E[5], E[8])
    else:
        first = n
        turning = k
        if kind == FREE:
            x = q[n]
            y = q[n + 1]
            z = q[n + 2]
            d = (
                d[0] + x * E[0] + y * E[1] + z * E[2],
                d[1] + x * E[3] + y * E[4] + z * E[5],
                d[2] + x * E[6] + y * E[7] + z * E[8],
            )
            first = n + 3
            turning = k + 3
            for axis in range(3):
                _set_axis(data, k + axis, E[axis], E[3 + axis], E[6 + axis])
        _turned_by_quaternion(data, i, E, q[first], q[first + 1], q[first + 2], q[first + 3])
        _place(data, i, above, d[0], d[1], d[2], kind == FREE and above == 0)
        for axis in range(3):
            _set_axis(data, turning + axis, R[i, 0, axis], R[i, 1, axis], R[i, 2, axis])


@njit
def world_inertia(model: Model, data: Workspace) -> None:
    """First moments and inertias of all bodies in world axes, about their origins."""
    for i in range(1, model.body_parent.shape[0]):
        turn_inertia(model, data, i, data.moment, data.inertia)


@njit
def turn_inertia(model: Model, data: Workspace, i: int, moment: Lanes2, inertia: Lanes2) -> None:
    """Body i's first moment and inertia in world axes, into row i: R h, R I Rᵀ, 54 multiplications."""
    R = data.rotation
    h = model.body_moment[i]
    h0, h1, h2 = turn(R, i, h)
    moment[i, 0] = h0
    moment[i, 1] = h1
    moment[i, 2] = h2
    I = model.body_inertia[i]
    a = turn(R, i, (I[0], I[1], I[2]))
    b = turn(R, i, (I[1], I[3], I[4]))
    c = turn(R, i, (I[2], I[4], I[5]))
    inertia[i, 0] = a[0] * R[i, 0, 0] + b[0] * R[i, 0, 1] + c[0] * R[i, 0, 2]
    inertia[i, 1] = a[0] * R[i, 1, 0] + b[0] * R[i, 1, 1] + c[0] * R[i, 1, 2]
    inertia[i, 2] = a[0] * R[i, 2, 0] + b[0] * R[i, 2, 1] + c[0] * R[i, 2, 2]
    inertia[i, 3] = a[1] * R[i, 1, 0] + b[1] * R[i, 1, 1] + c[1] * R[i, 1, 2]
    inertia[i, 4] = a[1] * R[i, 2, 0] + b[1] * R[i, 2, 1] + c[1] * R[i, 2, 2]
    inertia[i, 5] = a[2] * R[i, 2, 0] + b[2] * R[i, 2, 1] + c[2] * R[i, 2, 2]


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
def point_of(model: Model, data: Workspace, body: int, x: float, y: float, z: float) -> Vec3:
    """World position of the point (x, y, z) of a body's internal frame [m]."""
    r = turn(data.rotation, body, (x, y, z))
    o = origin_of(model, data, body)
    return plus(o, r)


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
    S = data.motion
    for k in range(model.dof_body.shape[0]):
        i = model.dof_body[k]
        a = axis_of(data, k)
        if model.dof_linear[k]:
            zero = a[0] - a[0]
            S[0, k] = a[0]
            S[1, k] = a[1]
            S[2, k] = a[2]
            S[3, k] = zero
            S[4, k] = zero
            S[5, k] = zero
        else:
            l = cross(row_of(data.arm, i), a)
            S[0, k] = l[0]
            S[1, k] = l[1]
            S[2, k] = l[2]
            S[3, k] = a[0]
            S[4, k] = a[1]
            S[5, k] = a[2]


@njit
def velocities(model: Model, v: Lanes1, data: Workspace) -> None:
    """Velocity of every body's origin and its angular velocity at v (nv,)."""
    u = data.velocity
    o = data.angular_velocity
    for i in range(1, model.body_parent.shape[0]):
        above = model.body_parent[i]
        o0 = o[above, 0]
        o1 = o[above, 1]
        o2 = o[above, 2]
        u0, u1, u2 = cross((o0, o1, o2), row_of(data.offset, i))
        u0 = u0 + u[above, 0]
        u1 = u1 + u[above, 1]
        u2 = u2 + u[above, 2]
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            a = axis_of(data, k)
            if model.dof_linear[k]:
                u0 = u0 + a[0] * v[k]
                u1 = u1 + a[1] * v[k]
                u2 = u2 + a[2] * v[k]
            else:
                o0 = o0 + a[0] * v[k]
                o1 = o1 + a[1] * v[k]
                o2 = o2 + a[2] * v[k]
        u[i, 0] = u0
        u[i, 1] = u1
        u[i, 2] = u2
        o[i, 0] = o0
        o[i, 1] = o1
        o[i, 2] = o2


@njit
def accelerations(model: Model, v: Lanes1, a: Lanes1, data: Workspace) -> None:
    """Acceleration (of the origin, less gravity) and angular acceleration of every body at v and a (nv,).

    Classical accelerations, not spatial ones: d²p/dt² = a_parent + α × d + ω × (ω × d) + axis terms with 2 ω × ḋ.
    Needs kinematics; computes the angular velocities on the way.
    """
    o = data.angular_velocity
    al = data.angular_acceleration
    ac = data.acceleration
    for i in range(1, model.body_parent.shape[0]):
        above = model.body_parent[i]
        o0 = o[above, 0]
        o1 = o[above, 1]
        o2 = o[above, 2]
        x = row_of(al, above)
        d = row_of(data.offset, i)
        c = cross((o0, o1, o2), d)
        c = cross((o0, o1, o2), c)
        b = cross(x, d)
        b = plus(plus(row_of(ac, above), b), c)
        # rates in the joint: their directions turn with the parent (linear) or, summed over the joint, with ω_parent ×
        r0 = o0 - o0
        r1 = r0
        r2 = r0
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            a0, a1, a2 = axis_of(data, k)
            if model.dof_linear[k]:
                s = cross((o0, o1, o2), (a0, a1, a2))
                t = 2.0 * v[k]
                b = plus_times(plus_times(b, a[k], (a0, a1, a2)), t, s)
            else:
                r0 = r0 + a0 * v[k]
                r1 = r1 + a1 * v[k]
                r2 = r2 + a2 * v[k]
                x = plus_times(x, a[k], (a0, a1, a2))
        s = cross((o0, o1, o2), (r0, r1, r2))
        set_row(al, i, plus(x, s))
        set_row(o, i, plus((o0, o1, o2), (r0, r1, r2)))
        set_row(ac, i, b)


@njit
def jacobian(model: Model, data: Workspace, body: int, r0: Real, r1: Real, r2: Real, out: Lanes2) -> None:
    """Jacobian (6, nv) of the point of `body` at (r0, r1, r2) from the tree's reference point: linear, angular.

    Columns of the body's chain only; the rest of `out` is left as it is. O(d). Needs `motion_columns`.
    """
    S = data.motion
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        l = cross((S[3, k], S[4, k], S[5, k]), (r0, r1, r2))
        out[0, k] = l[0] + S[0, k]
        out[1, k] = l[1] + S[1, k]
        out[2, k] = l[2] + S[2, k]
        out[3, k] = S[3, k]
        out[4, k] = S[4, k]
        out[5, k] = S[5, k]
        k = model.dof_parent[k]


@njit
def add_jacobian(
    model: Model, data: Workspace, body: int, r0: Real, r1: Real, r2: Real, sign: float, out: Lanes2
) -> None:
    """Add `sign` times that Jacobian to out (6, nv): for a point relative to another, dofs that move both cancel."""
    S = data.motion
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        l = cross((S[3, k], S[4, k], S[5, k]), (r0, r1, r2))
        out[0, k] += sign * (l[0] + S[0, k])
        out[1, k] += sign * (l[1] + S[1, k])
        out[2, k] += sign * (l[2] + S[2, k])
        out[3, k] += sign * S[3, k]
        out[4, k] += sign * S[4, k]
        out[5, k] += sign * S[5, k]
        k = model.dof_parent[k]


@inlined
def link_frame(model: Model, data: Workspace, link: int) -> tuple[Mat3, Vec3]:
    """Rotation (9 numbers, row-major) of a link frame in the world, and its origin from its body's origin."""
    i = model.link_body[link]
    R = data.rotation
    L = model.link_rotation[link]
    p = model.link_position[link]
    x = turn(R, i, p)
    a = turn(R, i, (L[0, 0], L[1, 0], L[2, 0]))
    b = turn(R, i, (L[0, 1], L[1, 1], L[2, 1]))
    c = turn(R, i, (L[0, 2], L[1, 2], L[2, 2]))
    return (a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2]), x


@inlined
def like(x: float, data: Workspace) -> Real:
    """The float x as a T of the workspace."""
    return real(x, data.rotation[0, 0, 0])
