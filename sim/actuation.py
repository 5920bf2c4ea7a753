"""What acts on the joints: applied torques and built-in controllers, drives, springs, damping.

What is linear and unlimited enters M̂ = M + h D + h² a K, so it is stable at any gain. Drives that reach their limit,
and Coulomb friction, are constraint rows (constraints/).

Dampers act at the velocity of the step's end. A spring acts at q + h (a v⁺ - b v), where x = hω with its own frequency
ω says the weights, s = min(1, 1/x²):

    a = 1 - ¾ s,  b = ¼ s

Up to x = 1 (six steps per period) a = b = ¼: Newmark's β = ¼ in its two-step form, f = -K (¼ q⁺ + ½ q + ¼ q⁻), with
velocities that stand between the positions. It is stable at any x, loses nothing, and differs from the explicit spring
of MuJoCo's Euler by h² only. What is faster cannot be followed in such steps: its weights go over to implicit Euler's
(a = 1, b = 0), which come to rest where a stiff drive wants them within a step or two.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.dynamics import inverse_dynamics
from artsim.sim.equipment.tendons import add_inertia_forces, has_inertia, tendon_paths
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import velocities
from artsim.sim.lanes import highest, lane_count, lane_get, lane_set, real
from artsim.sim.model import BALL, FREE
from artsim.sim.quaternions import quaternion_along, rotation_between
from artsim.sim.run import BLOCK_GS, COMPUTED_TORQUE, GRAVITY_COMPENSATION, NO_CONTROLLER, PGS, TGS
from artsim.sim.solvers.cone import largest


@njit
def applied_forces(m: Any, q: Any, v: Any, w: Any, i: Any, f: Any, e: Any, x: Any) -> None:
    """f.applied (nv,) = the torques of the control row, and of the built-in controller on the independent joints."""
    row = f.counters[4]
    for k in range(f.applied.shape[0]):
        f.applied[k] = i.torque[row, k]
    if i.controller[0] != NO_CONTROLLER:
        _controller(m, q, v, w, i, f, e, x)


@njit
def _controller(m: Any, q: Any, v: Any, w: Any, i: Any, f: Any, e: Any, x: Any) -> None:
    """Gravity compensation or computed torque, as a torque on the independent joints within their efforts.

    Computed torque (Siciliano 2009, sec. 8.5.2): a = ω² (target - q) - 2 ζ ω v with v relative to the target's,
    tau = Gᵀ (M a + bias). The dofs of free, ball and planar joints are not actuated, and count as not accelerating.
    """
    row = f.counters[4]
    nv = f.applied.shape[0]
    for k in range(nv):
        f.velocity[k] = 0.0
        f.force[k] = 0.0
        if i.controller[0] == COMPUTED_TORQUE:
            f.velocity[k] = v[k]
            c = m.dof_coord[k]
            if c >= 0 and _actuated(m, k):
                error = i.target[row, k] - q[c]
                rate = i.target_velocity[row, k] - v[k]
                f.force[k] = i.controller_gains[0] * error + i.controller_gains[1] * rate
    for k in range(nv):
        a = m.dof_independent[k]
        lead = m.independent_dof[a] if a >= 0 else 0
        # a follower's acceleration is its leader's
        f.qacc[k] = w.gain[k] * f.force[lead] + w.drift[k] if a >= 0 else 0.0
    if i.controller[0] == GRAVITY_COMPENSATION:
        for k in range(nv):
            f.qacc[k] = 0.0
    inverse_dynamics(m, f.velocity, f.qacc, w, f.force)
    if e is not None and i.controller[0] == COMPUTED_TORQUE and has_inertia(e):
        velocities(m, v, w)
        tendon_paths(m, q, v, w, e, x)
        add_inertia_forces(m, v, f.qacc, w, e, x, f.force)
    for k in range(nv):
        a = m.dof_independent[k]
        if a >= 0 and m.dof_coord[m.independent_dof[a]] >= 0 and _actuated(m, m.independent_dof[a]):
            lead = m.independent_dof[a]
            f.applied[lead] += w.gain[k] * (f.force[k] + m.armature[k] * f.qacc[k])
    for k in range(nv):
        f.applied[k] = min(max(f.applied[k], -m.effort[k]), m.effort[k])


@inlined
def _actuated(m: Any, k: Any) -> Any:
    """A joint of one dof, as motors drive."""
    body = m.dof_body[k]
    return m.body_dof[body + 1] - m.body_dof[body] == 1


@njit
def find_places(m: Any, q: Any, i: Any, f: Any, row: Any) -> None:
    """f.place (nv,): coordinates, and for the rotations of ball and free joints what stands for them.

    A drive there turns along the rotation vector that leads to the target, e = log(q⁻¹ exp(target)) in the joint's
    axes; the place of its dofs is their target less e.
    """
    for k in range(f.place.shape[0]):
        f.place[k] = coordinate(m, q, k)
    for body in range(1, m.body_parent.shape[0]):
        kind = m.joint_type[body]
        if kind == BALL or kind == FREE:
            k = m.body_dof[body]
            n = m.body_coord[body]
            shift = 3 if kind == FREE else 0
            stiff = i.drive_stiffness[k + shift] + i.drive_stiffness[k + shift + 1] + i.drive_stiffness[k + shift + 2]
            if highest(stiff) > 0.0:
                for lane in range(lane_count(q)):
                    _find_turn(q, n + shift, i.target, row * f.place.shape[0] + k + shift, f.place, k + shift, lane)


@njit
def _find_turn(q: Any, n: Any, target: Any, at: Any, place: Any, k: Any, lane: Any) -> None:
    """place[k:k+3] of one lane: the target vector less log(q⁻¹ exp(target)), q's quaternion starting at n."""
    w = lane_get(q, n, lane)
    x = lane_get(q, n + 1, lane)
    y = lane_get(q, n + 2, lane)
    z = lane_get(q, n + 3, lane)
    t0 = lane_get(target, at, lane)
    t1 = lane_get(target, at + 1, lane)
    t2 = lane_get(target, at + 2, lane)
    c, a, b, d = quaternion_along(t0, t1, t2)
    e0, e1, e2 = rotation_between(w, x, y, z, c, a, b, d)
    lane_set(place, k, lane, t0 - e0)
    lane_set(place, k + 1, lane, t1 - e1)
    lane_set(place, k + 2, lane, t2 - e2)


@inlined
def driven_at(s: Any, i: Any, f: Any, k: Any) -> Any:
    """As felt_at, for drives."""
    return f.place[k] + i.time_step[0] * foreseen(f.share[k], s.qvel[k], f.velocity[k])


@njit
def drive_force(i: Any, f: Any, row: Any, k: Any, q: Any, v: Any) -> Any:
    """Force of drive k at coordinate q and velocity v [N m or N]."""
    return f.stiffness[k] * (i.target[row, k] - q) + f.damping[k] * (i.target_velocity[row, k] - v)


@njit
def coordinate(m: Any, q: Any, k: Any) -> Any:
    """The coordinate of dof k; 0 for the rotations of ball and free joints, which have none."""
    c = m.dof_coord[k]
    return q[c] if c >= 0 else real(0.0, q[0])


@njit
def weigh_springs(m: Any, i: Any, f: Any, x: Any) -> None:
    """f.share (nv,) of what pulls each dof to a place: s = min(1, 1/x²), x² = h² K (M⁻¹)_kk.

    A drive whose gains are accelerations has x² = h² K. The sweeping solvers' drives are PhysX's: implicit Euler.
    """
    square = i.time_step[0] * i.time_step[0]
    for k in range(f.share.shape[0]):
        stiff = m.stiffness[k] * i.mobility[k]
        drive = i.drive_stiffness[k]
        stiff = stiff + (drive if i.drive_acceleration[k] == 1 else drive * i.mobility[k])
        if x is not None:
            stiff = stiff + x.stiffness[k] * i.mobility[k]
        one = real(1.0, stiff)
        f.share[k] = one / largest(one, square * stiff)
        if _are_rows(i.solver[0]) and highest(i.drive_stiffness[k] + i.drive_damping[k]) > 0.0:
            f.share[k] = one - one


@inlined
def _are_rows(solver: Any) -> bool:
    """Whether a solver has every drive as a row, as the PhysX guide has them."""
    rows: bool = solver == PGS or solver == TGS or solver == BLOCK_GS
    return rows


@inlined
def foreseen(share: Any, before: Any, after: Any) -> Any:
    """a v⁺ - b v: times h how far from its start a spring of this share is felt, for velocities v before, v⁺ after."""
    return after - share * (0.75 * after + 0.25 * before)


@inlined
def felt_at(m: Any, s: Any, i: Any, f: Any, k: Any) -> Any:
    """The coordinate at which springs of dof k act over the step that ends at f.velocity."""
    return coordinate(m, s.qpos, k) + i.time_step[0] * foreseen(f.share[k], s.qvel[k], f.velocity[k])


@inlined
def actuator_force(x: Any, k: Any, q: Any, v: Any) -> Any:
    """What actuators do to dof k: explicit ones, and implicit ones at coordinate q and velocity v [N m or N]."""
    return x.actuator_total[k] + x.offset[k] - x.stiffness[k] * q - x.damping[k] * v


@njit
def implicit_system(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, x: Any) -> None:
    """f.diagonal: h D + h² a K of damping, springs and the drives in M̂; f.force: what acts on that M̂, bias left out.

    M̂ Δv = h (f - bias) with f = applied - K (q + h (a - b) v - target) - D (v - target velocity).
    """
    h = i.time_step[0]
    row = f.counters[4]
    for k in range(f.force.shape[0]):
        q = coordinate(m, s.qpos, k)
        v = s.qvel[k]
        ahead = h * foreseen(f.share[k], v, v)
        q = q + ahead
        d = m.damping[k] + w.slack[k]
        stiff = m.stiffness[k]
        force = f.applied[k] - d * v - stiff * (q - m.spring_reference[k])
        if r.implicit[k]:
            d += f.damping[k]
            stiff += f.stiffness[k]
            force += drive_force(i, f, row, k, f.place[k] + ahead, v)
        if x is not None:
            d += x.damping[k]
            stiff += x.stiffness[k]
            force += actuator_force(x, k, q, v) + x.passive[k] + x.tendon[k]
        f.diagonal[k] = h * d + h * h * (1.0 - 0.75 * f.share[k]) * stiff
        f.force[k] = force


@njit
def passive_forces(m: Any, s: Any, i: Any, f: Any) -> None:
    """f.passive (nv,) of damping and springs as they act over the step."""
    for k in range(f.passive.shape[0]):
        v = f.velocity[k]
        q = felt_at(m, s, i, f, k)
        f.passive[k] = -m.damping[k] * v - m.stiffness[k] * (q - m.spring_reference[k])
