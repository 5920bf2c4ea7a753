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
from artsim.sim.foundation.mat3 import matrix_of, set_matrix, turn, turn_back, turned, turned_back
from artsim.sim.foundation.records import Force, Lanes1, Mat3, Real, Vec3, Vector
from artsim.sim.foundation.sincos import sincos
from artsim.sim.foundation.spatial import add_pair, newton_euler, pair_of, set_pair, shifted_force
from artsim.sim.foundation.vec3 import (
    add_to_row,
    cross,
    plus,
    plus_times,
    put_at,
    row_of,
    set_row,
    times,
    triple_at,
)


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
    zero = like(0.0, data)
    d = (zero, zero, zero)
    if kind == PRISMATIC:
        d = (zero, zero, q[n])
    elif kind == PLANAR:
        d = (q[n], q[n + 1], zero)
        s, c = sincos(q[n + 2])
        joints.sine[i] = s
        joints.cosine[i] = c
    else:
        if kind == FREE:
            d = triple_at(q, n)
            n += 3
        set_matrix(joints.turn, i, 0, _of_quaternion(q[n], q[n + 1], q[n + 2], q[n + 3]))
    set_row(joints.reach, i, plus(turn(model.tree_rotation, i, d), model.tree_position[i]))


@inlined
def _of_quaternion(w: Real, x: Real, y: Real, z: Real) -> Mat3:
    """The rotation of a quaternion of unit length."""
    return (
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        1.0 - 2.0 * (x * x + y * y),
    )


@inlined
def _to_child(joints: Joints, i: int, kind: int, a: Vec3) -> Vec3:
    """Transform a vector from the joint's axes to the child's."""
    if kind == REVOLUTE or kind == PLANAR:
        s, c = joints.sine[i], joints.cosine[i]
        return c * a[0] + s * a[1], c * a[1] - s * a[0], a[2]
    return a if kind == PRISMATIC else turned_back(matrix_of(joints.turn, i, 0), a)


@inlined
def _to_joint(joints: Joints, i: int, kind: int, a: Vec3) -> Vec3:
    """Transform a vector from the child's axes to the joint's."""
    if kind == REVOLUTE or kind == PLANAR:
        s, c = joints.sine[i], joints.cosine[i]
        return c * a[0] - s * a[1], c * a[1] + s * a[0], a[2]
    return a if kind == PRISMATIC else turned(matrix_of(joints.turn, i, 0), a)


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
def _at_joint(model: Model, joints: Joints, i: int, r: Vector) -> tuple[Vec3, Vec3, Vec3]:
    """Angular velocity and acceleration of the parent, acceleration of its point r at the joint, in the joint's
    axes."""
    above, T = model.body_parent[i], model.tree_rotation
    w = row_of(joints.angular_velocity, above)
    b, x = pair_of(joints.acceleration, joints.angular_acceleration, above)
    b = plus(plus(b, cross(x, r)), cross(w, cross(w, r)))
    return turn_back(T, i, w), turn_back(T, i, x), turn_back(T, i, b)


@inlined
def _move_revolute(model: Model, v: Lanes1, a: Lanes1, joints: Joints, i: int) -> None:
    k = model.body_dof[i]
    w, x, b = _at_joint(model, joints, i, model.tree_position[i])
    w, x, b = _to_child(joints, i, REVOLUTE, w), _to_child(joints, i, REVOLUTE, x), _to_child(joints, i, REVOLUTE, b)
    set_row(joints.angular_velocity, i, (w[0], w[1], w[2] + v[k]))
    x = (x[0] + w[1] * v[k], x[1] - w[0] * v[k], x[2] + a[k])
    set_pair(joints.acceleration, joints.angular_acceleration, i, (b, x))


@njit
def _move_other(model: Model, v: Lanes1, a: Lanes1, data: Workspace, joints: Joints, i: int) -> None:
    kind = model.joint_type[i]
    k = model.body_dof[i]
    w, x, b = _at_joint(model, joints, i, row_of(joints.reach, i))
    b = plus_times(b, 2.0, cross(w, _linear_rates(model, v, data, kind, k)))
    b = _to_child(joints, i, kind, plus(b, _linear_rates(model, a, data, kind, k)))
    w, x = _to_child(joints, i, kind, w), _to_child(joints, i, kind, x)
    s = _angular_rates(model, v, data, kind, k)
    x = plus(plus(x, cross(w, s)), _angular_rates(model, a, data, kind, k))
    set_row(joints.angular_velocity, i, plus(w, s))
    set_pair(joints.acceleration, joints.angular_acceleration, i, (b, x))


@inlined
def _linear_rates(model: Model, v: Lanes1, data: Workspace, kind: int, k: int) -> Vec3:
    """Contribution of a joint's dofs from k on to the rates of its displacement, in the joint's axes."""
    zero = like(0.0, data)
    if kind == PRISMATIC:
        return zero, zero, v[k]
    if kind == PLANAR:
        return v[k], v[k + 1], zero
    if kind == FREE:
        return triple_at(v, k)
    return zero, zero, zero


@inlined
def _angular_rates(model: Model, v: Lanes1, data: Workspace, kind: int, k: int) -> Vec3:
    """Contribution of a joint's dofs from k on to the rates of its rotation, in the child's axes."""
    zero = like(0.0, data)
    if kind == PLANAR:
        return zero, zero, v[k + 2]
    if kind == BALL or kind == FREE:
        return triple_at(v, k + 3 if kind == FREE else k)
    return zero, zero, zero


@inlined
def _wrench(model: Model, joints: Joints, i: int) -> None:
    """Force and torque about the origin that give body i its motion."""
    w = row_of(joints.angular_velocity, i)
    A = pair_of(joints.acceleration, joints.angular_acceleration, i)
    F = newton_euler(model.body_mass[i], model.body_moment[i], model.body_inertia, i, w, A)
    set_pair(joints.force, joints.torque, i, F)


@inlined
def _collect(model: Model, joints: Joints, i: int, tau: Lanes1) -> None:
    """Joint forces of body i from its wrench, which is then passed on to the parent."""
    kind, above, T = model.joint_type[i], model.body_parent[i], model.tree_rotation
    f, n = pair_of(joints.force, joints.torque, i)
    f = _to_joint(joints, i, kind, f)
    _joint_components(kind, model.body_dof[i], f, n, tau)
    if above > 0:
        F = turn(T, i, f), turn(T, i, _to_joint(joints, i, kind, n))
        add_pair(joints.force, joints.torque, above, _about_parent(model, joints, i, F))


@inlined
def _about_parent(model: Model, joints: Joints, i: int, F: Force) -> Force:
    """A force about body i's origin, in the parent's axes, about the parent's."""
    if model.joint_type[i] == REVOLUTE:
        return shifted_force(F, model.tree_position[i])
    return shifted_force(F, row_of(joints.reach, i))


@inlined
def _joint_components(kind: int, k: int, force: Vec3, torque: Vec3, tau: Lanes1) -> None:
    """The dofs' components of a force in the joint's axes and a torque in the child's; k is the first dof."""
    if kind == REVOLUTE:
        tau[k] = torque[2]
    elif kind == PRISMATIC:
        tau[k] = force[2]
    elif kind == PLANAR:
        tau[k] = force[0]
        tau[k + 1] = force[1]
        tau[k + 2] = torque[2]
    else:
        n = k
        if kind == FREE:
            put_at(tau, k, force)
            n = k + 3
        put_at(tau, n, torque)


# ------------------------------------------------------------------ gravity


@njit
def gravity_compensation(model: Model, q: Lanes1, data: Workspace, joints: Joints, tau: Lanes1) -> None:
    """tau (nv,) = g(q). All bodies accelerate alike, so only directions and torques are propagated. O(nb)."""
    for k in range(3):
        joints.acceleration[WORLD, k] = like(-model.gravity[k], data)
    for i in range(1, model.body_parent.shape[0]):
        _place(model, q, data, joints, i)
        b = turn_back(model.tree_rotation, i, row_of(joints.acceleration, model.body_parent[i]))
        b = _to_child(joints, i, model.joint_type[i], b)
        set_row(joints.acceleration, i, b)
        set_row(joints.torque, i, cross(model.body_moment[i], b))
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        _collect_weight(model, joints, i, tau)


@inlined
def _collect_weight(model: Model, joints: Joints, i: int, tau: Lanes1) -> None:
    """The same as `_collect` where all bodies accelerate alike."""
    kind, above, T = model.joint_type[i], model.body_parent[i], model.tree_rotation
    carried = model.carried_mass[i]
    b, n = row_of(joints.acceleration, above), row_of(joints.torque, i)
    if kind == REVOLUTE:
        tau[model.body_dof[i]] = n[2]
    else:
        _joint_components(kind, model.body_dof[i], times(carried, turn_back(T, i, b)), n, tau)
    if above > 0:
        F = times(carried, b), turn(T, i, _to_joint(joints, i, kind, n))
        add_to_row(joints.torque, above, _about_parent(model, joints, i, F)[1])
