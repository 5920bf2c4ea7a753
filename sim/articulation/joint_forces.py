"""Joint forces alone, in body axes: RNEA and gravity compensation for large tables of configurations.

In world axes (dynamics.py) a body's inertia has to be rotated, 54 multiplications, before it is used;
here it is constant, and a revolute joint's own rotation costs 4 multiplications per vector. Measured in packs, RNEA is
1.3 to 1.6 times as fast (38 dofs, 6 dofs), gravity compensation 1.2 to 1.4 times. Where composite or articulated
inertias are needed as well, rotating those from body to body would cost more than it saves.

Featherstone 2008, table 5.1, with classical accelerations. The joint frame is the child's frame at zero displacement.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import BALL, FREE, PLANAR, PRISMATIC, REVOLUTE, WORLD, Model
from artsim.sim.articulation.state import Joints, RobotBundle, Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Lanes1, Lanes2, Real, Vec3
from artsim.sim.foundation.sincos import sincos
from artsim.sim.foundation.vec3 import cross, dot, plus, row_of, set_row, symmetric_times, times


@inlined
def _place(model: Model, q: Lanes1, data: Workspace, joints: Joints, i: int) -> None:
    """Set rotation and displacement of body i's joint at q (nq,) in joints."""
    kind = model.joint_type[i]
    n = model.body_coord[i]
    if kind == REVOLUTE:
        s, c = sincos(q[n])
        joints.sine[i] = s
        joints.cosine[i] = c
    else:
        _place_other(model, q, data, joints, i, kind, n)


@njit
def _place_other(model: Model, q: Lanes1, data: Workspace, joints: Joints, i: int, kind: int, n: int) -> None:
    d0 = like(0.0, data)
    d1 = d0
    d2 = d0
    if kind == PRISMATIC:
        d2 = q[n]
    elif kind == PLANAR:
        d0 = q[n]
        d1 = q[n + 1]
        s, c = sincos(q[n + 2])
        joints.sine[i] = s
        joints.cosine[i] = c
    else:
        if kind == FREE:
            d0 = q[n]
            d1 = q[n + 1]
            d2 = q[n + 2]
            n += 3
        x = q[n + 1]
        y = q[n + 2]
        z = q[n + 3]
        Q = joints.turn
        Q[i, 0] = 1.0 - 2.0 * (y * y + z * z)
        Q[i, 1] = 2.0 * (x * y - q[n] * z)
        Q[i, 2] = 2.0 * (x * z + q[n] * y)
        Q[i, 3] = 2.0 * (x * y + q[n] * z)
        Q[i, 4] = 1.0 - 2.0 * (x * x + z * z)
        Q[i, 5] = 2.0 * (y * z - q[n] * x)
        Q[i, 6] = 2.0 * (x * z - q[n] * y)
        Q[i, 7] = 2.0 * (y * z + q[n] * x)
        Q[i, 8] = 1.0 - 2.0 * (x * x + y * y)
    r = _outwards(model, i, d0, d1, d2)
    for k in range(3):
        joints.reach[i, k] = r[k] + model.tree_position[i, k]


@inlined
def _inwards(model: Model, i: int, a0: Real, a1: Real, a2: Real) -> Vec3:
    """Transform a vector from the parent's axes to the joint's."""
    T = model.tree_rotation
    return (
        T[i, 0, 0] * a0 + T[i, 1, 0] * a1 + T[i, 2, 0] * a2,
        T[i, 0, 1] * a0 + T[i, 1, 1] * a1 + T[i, 2, 1] * a2,
        T[i, 0, 2] * a0 + T[i, 1, 2] * a1 + T[i, 2, 2] * a2,
    )


@inlined
def _outwards(model: Model, i: int, a0: Real, a1: Real, a2: Real) -> Vec3:
    """Transform a vector from the joint's axes to the parent's."""
    T = model.tree_rotation
    return (
        T[i, 0, 0] * a0 + T[i, 0, 1] * a1 + T[i, 0, 2] * a2,
        T[i, 1, 0] * a0 + T[i, 1, 1] * a1 + T[i, 1, 2] * a2,
        T[i, 2, 0] * a0 + T[i, 2, 1] * a1 + T[i, 2, 2] * a2,
    )


@inlined
def _to_child(joints: Joints, i: int, kind: int, a0: Real, a1: Real, a2: Real) -> Vec3:
    """Transform a vector from the joint's axes to the child's."""
    b0 = a0
    b1 = a1
    b2 = a2
    if kind == REVOLUTE or kind == PLANAR:
        b0 = joints.cosine[i] * a0 + joints.sine[i] * a1
        b1 = joints.cosine[i] * a1 - joints.sine[i] * a0
    elif kind != PRISMATIC:
        Q = joints.turn
        b0 = Q[i, 0] * a0 + Q[i, 3] * a1 + Q[i, 6] * a2
        b1 = Q[i, 1] * a0 + Q[i, 4] * a1 + Q[i, 7] * a2
        b2 = Q[i, 2] * a0 + Q[i, 5] * a1 + Q[i, 8] * a2
    return b0, b1, b2


@inlined
def _to_joint(joints: Joints, i: int, kind: int, a0: Real, a1: Real, a2: Real) -> Vec3:
    """Transform a vector from the child's axes to the joint's."""
    b0 = a0
    b1 = a1
    b2 = a2
    if kind == REVOLUTE or kind == PLANAR:
        b0 = joints.cosine[i] * a0 - joints.sine[i] * a1
        b1 = joints.cosine[i] * a1 + joints.sine[i] * a0
    elif kind != PRISMATIC:
        Q = joints.turn
        b0 = dot(row_of(Q, i), (a0, a1, a2))
        b1 = Q[i, 3] * a0 + Q[i, 4] * a1 + Q[i, 5] * a2
        b2 = Q[i, 6] * a0 + Q[i, 7] * a1 + Q[i, 8] * a2
    return b0, b1, b2


# ------------------------------------------------------------------ inverse dynamics


@njit
def joint_forces(
    robot: RobotBundle, q: Lanes1, v: Lanes1, a: Lanes1, share: float, placed: bool, joints: Joints, tau: Lanes1
) -> None:
    """tau (nv,) = M(q) a + C(q, v) v + share g, without armature. RNEA, O(nb). placed: joints already hold those at
    q."""
    model, data = robot.model, robot.data
    for k in range(3):
        joints.acceleration[WORLD, k] = like(-share * model.gravity[k], data)
    for i in range(1, model.body_parent.shape[0]):
        if not placed:
            _place(model, q, data, joints, i)
        if model.joint_type[i] == REVOLUTE:
            _move_revolute(model, v, a, joints, i)
        else:
            _move_other(model, v, a, data, joints, i)
        _wrench(model, joints, i)
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        _collect(model, joints, i, tau)


@inlined
def _set(array: Lanes2, i: int, a0: Real, a1: Real, a2: Real) -> None:
    array[i, 0] = a0
    array[i, 1] = a1
    array[i, 2] = a2


@inlined
def _at_joint(model: Model, joints: Joints, i: int, r0: Real, r1: Real, r2: Real) -> tuple[Vec3, Vec3, Vec3]:
    """Angular velocity and acceleration of the parent, acceleration of its point at the joint, in the joint's axes."""
    A = model.body_parent[i]
    o = row_of(joints.angular_velocity, A)
    e = row_of(joints.angular_acceleration, A)
    c = cross(o, (r0, r1, r2))
    c = cross(o, c)
    d = cross(e, (r0, r1, r2))
    return (
        _inwards(model, i, o[0], o[1], o[2]),
        _inwards(model, i, e[0], e[1], e[2]),
        _inwards(
            model,
            i,
            joints.acceleration[A, 0] + d[0] + c[0],
            joints.acceleration[A, 1] + d[1] + c[1],
            joints.acceleration[A, 2] + d[2] + c[2],
        ),
    )


@inlined
def _move_revolute(model: Model, v: Lanes1, a: Lanes1, joints: Joints, i: int) -> None:
    k = model.body_dof[i]
    p = model.tree_position[i]
    o, e, b = _at_joint(model, joints, i, p[0], p[1], p[2])
    s = joints.sine[i]
    c = joints.cosine[i]
    o0 = c * o[0] + s * o[1]
    o1 = c * o[1] - s * o[0]
    _set(joints.angular_velocity, i, o0, o1, o[2] + v[k])
    e0 = c * e[0] + s * e[1] + o1 * v[k]
    e1 = c * e[1] - s * e[0] - o0 * v[k]
    _set(joints.angular_acceleration, i, e0, e1, e[2] + a[k])
    _set(joints.acceleration, i, c * b[0] + s * b[1], c * b[1] - s * b[0], b[2])


@njit
def _move_other(model: Model, v: Lanes1, a: Lanes1, data: Workspace, joints: Joints, i: int) -> None:
    kind = model.joint_type[i]
    k = model.body_dof[i]
    o, e, b = _at_joint(model, joints, i, joints.reach[i, 0], joints.reach[i, 1], joints.reach[i, 2])
    l = _linear_rates(model, v, data, kind, k)
    d = _linear_rates(model, a, data, kind, k)
    c = cross(o, l)
    b0, b1, b2 = _to_child(
        joints, i, kind, b[0] + 2.0 * c[0] + d[0], b[1] + 2.0 * c[1] + d[1], b[2] + 2.0 * c[2] + d[2]
    )
    o0, o1, o2 = _to_child(joints, i, kind, o[0], o[1], o[2])
    e0, e1, e2 = _to_child(joints, i, kind, e[0], e[1], e[2])
    s = _angular_rates(model, v, data, kind, k)
    r = _angular_rates(model, a, data, kind, k)
    c = cross((o0, o1, o2), s)
    _set(joints.angular_velocity, i, o0 + s[0], o1 + s[1], o2 + s[2])
    _set(joints.angular_acceleration, i, e0 + c[0] + r[0], e1 + c[1] + r[1], e2 + c[2] + r[2])
    _set(joints.acceleration, i, b0, b1, b2)


@inlined
def _linear_rates(model: Model, v: Lanes1, data: Workspace, kind: int, k: int) -> Vec3:
    """Contribution of a joint's dofs from k on to the rates of its displacement, in the joint's axes."""
    l0 = like(0.0, data)
    l1 = l0
    l2 = l0
    if kind == PRISMATIC:
        l2 = v[k]
    elif kind == PLANAR or kind == FREE:
        l0 = v[k]
        l1 = v[k + 1]
        if kind == FREE:
            l2 = v[k + 2]
    return l0, l1, l2


@inlined
def _angular_rates(model: Model, v: Lanes1, data: Workspace, kind: int, k: int) -> Vec3:
    """Contribution of a joint's dofs from k on to the rates of its rotation, in the child's axes."""
    s0 = like(0.0, data)
    s1 = s0
    s2 = s0
    if kind == PLANAR:
        s2 = v[k + 2]
    elif kind == BALL or kind == FREE:
        n = k + (3 if kind == FREE else 0)
        s0 = v[n]
        s1 = v[n + 1]
        s2 = v[n + 2]
    return s0, s1, s2


@inlined
def _wrench(model: Model, joints: Joints, i: int) -> None:
    """Force and torque about the origin that give body i its motion."""
    mass = model.body_mass[i]
    h = model.body_moment[i]
    o = row_of(joints.angular_velocity, i)
    e = row_of(joints.angular_acceleration, i)
    b = row_of(joints.acceleration, i)
    c = cross(o, h)
    c = cross(o, c)
    d = cross(e, h)
    _set(joints.force, i, mass * b[0] + d[0] + c[0], mass * b[1] + d[1] + c[1], mass * b[2] + d[2] + c[2])
    L = symmetric_times(model.body_inertia, i, o)
    g = cross(o, L)
    k = symmetric_times(model.body_inertia, i, e)
    t = cross(h, b)
    _set(joints.torque, i, k[0] + g[0] + t[0], k[1] + g[1] + t[1], k[2] + g[2] + t[2])


@inlined
def _collect(model: Model, joints: Joints, i: int, tau: Lanes1) -> None:
    """Joint forces of body i from its wrench, which is then passed on to the parent."""
    kind = model.joint_type[i]
    k = model.body_dof[i]
    A = model.body_parent[i]
    n = row_of(joints.torque, i)
    f = _to_joint(joints, i, kind, joints.force[i, 0], joints.force[i, 1], joints.force[i, 2])
    _joint_components(model, kind, k, f, n, tau)
    if A > 0:
        n = _to_joint(joints, i, kind, n[0], n[1], n[2])
        f = _outwards(model, i, f[0], f[1], f[2])
        n = _outwards(model, i, n[0], n[1], n[2])
        set_row(joints.force, A, plus(row_of(joints.force, A), f))
        if kind == REVOLUTE:
            p = model.tree_position[i]
            c = cross(p, f)
        else:
            c = cross(row_of(joints.reach, i), f)
        set_row(joints.torque, A, plus(row_of(joints.torque, A), plus(n, c)))


@inlined
def _joint_components(model: Model, kind: int, k: int, force: Vec3, torque: Vec3, tau: Lanes1) -> None:
    """The dofs' components of a force in the joint's axes and a torque in the child's."""
    f = force
    n0, n1, n2 = torque
    if kind == REVOLUTE:
        tau[k] = n2
    elif kind == PRISMATIC:
        tau[k] = f[2]
    elif kind == PLANAR:
        tau[k] = f[0]
        tau[k + 1] = f[1]
        tau[k + 2] = n2
    else:
        n = k
        if kind == FREE:
            tau[k] = f[0]
            tau[k + 1] = f[1]
            tau[k + 2] = f[2]
            n = k + 3
        tau[n] = n0
        tau[n + 1] = n1
        tau[n + 2] = n2


# ------------------------------------------------------------------ gravity


@njit
def gravity_compensation(model: Model, q: Lanes1, data: Workspace, joints: Joints, tau: Lanes1) -> None:
    """tau (nv,) = g(q). All bodies accelerate alike, so only directions and torques are propagated. O(nb)."""
    for k in range(3):
        joints.acceleration[WORLD, k] = like(-model.gravity[k], data)
    for i in range(1, model.body_parent.shape[0]):
        _place(model, q, data, joints, i)
        A = model.body_parent[i]
        b = _inwards(model, i, joints.acceleration[A, 0], joints.acceleration[A, 1], joints.acceleration[A, 2])
        b = _to_child(joints, i, model.joint_type[i], b[0], b[1], b[2])
        _set(joints.acceleration, i, b[0], b[1], b[2])
        h = model.body_moment[i]
        n = cross(h, b)
        _set(joints.torque, i, n[0], n[1], n[2])
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        _collect_weight(model, joints, i, tau)


@inlined
def _collect_weight(model: Model, joints: Joints, i: int, tau: Lanes1) -> None:
    kind = model.joint_type[i]
    A = model.body_parent[i]
    carried = model.carried_mass[i]
    n = row_of(joints.torque, i)
    if kind == REVOLUTE:
        tau[model.body_dof[i]] = n[2]
    else:
        b = _inwards(model, i, joints.acceleration[A, 0], joints.acceleration[A, 1], joints.acceleration[A, 2])
        carries = times(carried, b)
        _joint_components(model, kind, model.body_dof[i], carries, n, tau)
    if A > 0:
        n = _to_joint(joints, i, kind, n[0], n[1], n[2])
        n = _outwards(model, i, n[0], n[1], n[2])
        f = times(carried, row_of(joints.acceleration, A))
        if kind == REVOLUTE:
            p = model.tree_position[i]
            c = cross(p, f)
        else:
            c = cross(row_of(joints.reach, i), f)
        set_row(joints.torque, A, plus(row_of(joints.torque, A), plus(n, c)))
