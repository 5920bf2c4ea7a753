"""What acts on the joints: applied torques and built-in controllers, drives, springs, damping.

What is linear and unlimited enters M̂ = M + h D + h² K, so it is stable at any gain; forces are those at the end of
the step. Drives that reach their limit, and Coulomb friction, are constraint rows (constraints/).
"""

from __future__ import annotations

from typing import Any

from artsim.sim.dynamics import inverse_dynamics
from artsim.sim.equipment.tendons import add_inertia_forces, has_inertia, tendon_paths
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import velocities
from artsim.sim.lanes import real
from artsim.sim.run import COMPUTED_TORQUE, GRAVITY_COMPENSATION, NO_CONTROLLER


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
def drive_force(i: Any, f: Any, row: Any, k: Any, q: Any, v: Any) -> Any:
    """Force of drive k at coordinate q and velocity v [N m or N]."""
    return f.stiffness[k] * (i.target[row, k] - q) + f.damping[k] * (i.target_velocity[row, k] - v)


@njit
def coordinate(m: Any, q: Any, k: Any) -> Any:
    """The coordinate of dof k; 0 for the rotations of ball and free joints, which have none."""
    c = m.dof_coord[k]
    return q[c] if c >= 0 else real(0.0, q[0])


@inlined
def actuator_force(x: Any, k: Any, q: Any, v: Any) -> Any:
    """What actuators do to dof k: explicit ones, and implicit ones at coordinate q and velocity v [N m or N]."""
    return x.actuator_total[k] + x.offset[k] - x.stiffness[k] * q - x.damping[k] * v


@njit
def implicit_system(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, x: Any) -> None:
    """f.diagonal: h D + h² K of damping, springs and the drives in M̂; f.force: what acts on that M̂, bias left out.

    M̂ Δv = h (f - bias) with f = applied - K (q + h v - target) - D (v - target velocity).
    """
    h = i.time_step[0]
    row = f.counters[4]
    for k in range(f.force.shape[0]):
        q = coordinate(m, s.qpos, k)
        v = s.qvel[k]
        d = m.damping[k]
        stiff = m.stiffness[k]
        force = f.applied[k] - d * v - stiff * (q + h * v - m.spring_reference[k])
        if r.implicit[k]:
            d += f.damping[k]
            stiff += f.stiffness[k]
            force += drive_force(i, f, row, k, q + h * v, v)
        if x is not None:
            d += x.damping[k]
            stiff += x.stiffness[k]
            force += actuator_force(x, k, q + h * v, v) + x.passive[k] + x.tendon[k]
        f.diagonal[k] = h * d + h * h * stiff
        f.force[k] = force


@njit
def passive_forces(m: Any, s: Any, i: Any, f: Any) -> None:
    """f.passive (nv,) of damping and springs at the end of the step."""
    h = i.time_step[0]
    for k in range(f.passive.shape[0]):
        v = f.velocity[k]
        q = coordinate(m, s.qpos, k) + h * v
        f.passive[k] = -m.damping[k] * v - m.stiffness[k] * (q - m.spring_reference[k])
