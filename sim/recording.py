"""A row of the recorded block: forces by source, the wrench through every link's joint, what was asked for."""

from __future__ import annotations

from typing import Any

from artsim.sim.centroidal import centre_of_mass, centroidal_map, kinetic_energy, momentum, potential_energy
from artsim.sim.constraints.contact import is_felt, take_off_contacts
from artsim.sim.constraints.friction import constant_share
from artsim.sim.constraints.loop import take_off_loops
from artsim.sim.dynamics import composites, inverse_dynamics, mass_matrix
from artsim.sim.equipment.passive import spring_energy
from artsim.sim.equipment.sensors import sensor_values
from artsim.sim.equipment.tendon_forces import tendon_spring_energy
from artsim.sim.equipment.tendons import add_inertia, add_inertia_forces, inertia_energy
from artsim.sim.equipment.wrenches import take_off_actuators, take_off_tendons
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import (
    accelerations,
    cross,
    link_frame,
    motion_columns,
    origin_of,
    symmetric_times,
    turned_back,
    velocities,
)
from artsim.sim.quaternions import quaternion_of
from artsim.sim.run import FRICTION_ROW


@njit
def record(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, b: Any, e: Any, x: Any, g: Any, t: Any) -> None:
    """Write the step's row: the state before it, the acceleration over it and the forces that made it."""
    row = f.counters[1]
    f.counters[1] = row + 1
    _copy(s.qpos, row, b.qpos)
    _copy(s.qvel, row, b.qvel)
    _copy(f.qacc, row, b.qacc)
    _copy(f.applied, row, b.tau_applied)
    _copy(f.drive, row, b.tau_drive)
    _copy(f.passive, row, b.tau_passive)
    _copy(f.limit, row, b.tau_limit)
    _copy(f.loop, row, b.tau_loop)
    _copy(f.contact, row, b.tau_contact)
    if x is not None:
        _copy(s.activation, row, b.activation)
        _copy(x.actuator_force, row, b.actuator_force)
        _copy(x.actuator_length, row, b.actuator_length)
        _copy(x.actuator_velocity, row, b.actuator_velocity)
        _copy(x.tendon_length, row, b.tendon_length)
        _copy(x.tendon_velocity, row, b.tendon_velocity)
        _copy(x.tendon_force, row, b.tendon_force)
    if b.link_position.shape[0] > 0 or b.link_quaternion.shape[0] > 0:
        _poses(m, w, row, b)
    if m.coupling_follower.shape[0] > 0 and b.tau_coupling.shape[0] > 0:
        _coupling_remainder(m, s.qvel, w, f)
    if e is not None:  # what tendons' inertias need is part of M qacc + bias, not of the forces
        add_inertia_forces(m, s.qvel, f.qacc, w, e, x, f.tendon)
    _copy(f.tendon, row, b.tau_tendon)
    if t is not None and b.contact_wrench.shape[0] > 0:
        _clear_wrenches(f)
        take_off_contacts(m, w, f, g, t)
        _copy_wrenches(f, row, -1.0, b.contact_wrench)
    if b.external_wrench.shape[0] > 0:
        _clear_wrenches(f)
        _take_off_all(m, w, f, e, x, g, t)
        _copy_wrenches(f, row, -1.0, b.external_wrench)
    if b.incoming_wrench.shape[0] + b.sensors.shape[0] > 0:
        joint_wrenches(m, s.qvel, w, f, e, x, g, t)
    _copy(f.coupling, row, b.tau_coupling)
    _copy_wrenches(f, row, 1.0, b.incoming_wrench)
    if x is not None and b.sensors.shape[0] > 0:
        if x.feeler[0] == 0:  # else it has been done, in this step as in all
            sensor_values(m, s, w, i, f, e, x, g, t)
        _copy(x.sensor, row, b.sensors)
    if t is not None and b.contact_count.shape[0] > 0:
        _contacts(f, row, b, t)
    if b.friction_constant.shape[0] + b.friction_by_load.shape[0] > 0:
        _frictions(m, s, i, r, row, b)
    _on_request(m, s, w, r, f, row, b, e, x)


@inlined
def _copy(values: Any, row: Any, out: Any) -> None:
    for k in range(min(out.shape[0], 1) * values.shape[0]):
        out[row, k] = values[k]


@njit
def _frictions(m: Any, s: Any, i: Any, r: Any, row: Any, b: Any) -> None:
    """What joint friction does, as two parts: in the ratio of what is constant in its bound and what goes by load."""
    for k in range(m.friction.shape[0]):
        for out in (b.friction_constant, b.friction_by_load):
            if out.shape[0] > 0:
                out[row, k] = 0.0
    for n in range(r.number[0]):
        if r.kind[n] == FRICTION_ROW:
            k = r.dof[n]
            force = r.impulse[n] / i.time_step[0]
            share = constant_share(m, s, k)
            if b.friction_constant.shape[0] > 0:
                b.friction_constant[row, k] = share * force
            if b.friction_by_load.shape[0] > 0:
                b.friction_by_load[row, k] = (1.0 - share) * force


@njit
def is_full(f: Any, b: Any, t: Any) -> bool:
    """Whether there is no room in the block for the contacts of one more step."""
    full: bool = b.contact_count.shape[0] > 0 and b.contacts[0] + t.gap.shape[0] > b.contact_step.shape[0]
    return full


@njit
def _contacts(f: Any, row: Any, b: Any, t: Any) -> None:
    """Contacts that touch or carry something; those that are only near are left out."""
    first = b.contacts[0]
    k = first
    for n in range(t.number[0]):
        if not is_felt(t, n):
            continue
        b.contact_step[k] = f.counters[0]
        b.contact_depth[k] = -t.distance[n]
        for j in range(2):
            b.contact_shapes[k, j] = t.shape[n, j]
        for j in range(3):
            b.contact_point[k, j] = t.point[n, j]
            b.contact_normal[k, j] = t.frame[n, 0, j]
            b.contact_tangent[k, j] = t.frame[n, 1, j]
            b.contact_force[k, j] = t.force[n, j]
            b.contact_torque[k, j] = t.force[n, 3 + j]
        k += 1
    b.contacts[0] = k
    b.contact_count[row] = k - first


@inlined
def _clear_wrenches(f: Any) -> None:
    for link in range(f.link_force.shape[0]):
        for k in range(3):
            f.link_force[link, k] = 0.0
            f.link_torque[link, k] = 0.0


@inlined
def _copy_wrenches(f: Any, row: Any, sign: Any, out: Any) -> None:
    """Wrenches of the links (nl, 6) times sign; 0 has no sign."""
    for link in range(min(out.shape[0], 1) * f.link_force.shape[0]):
        for k in range(3):
            out[row, link, k] = 0.0 + sign * f.link_force[link, k]
            out[row, link, 3 + k] = 0.0 + sign * f.link_torque[link, k]


@njit
def _take_off_all(m: Any, w: Any, f: Any, e: Any, x: Any, g: Any, t: Any) -> None:
    """Subtract from f.link_force and f.link_torque all that acts on links but their weights and the tree's joints."""
    if e is not None:
        take_off_loops(m, w, f, e, x)
        take_off_tendons(m, w, f, e, x)
        take_off_actuators(m, w, f, e, x)
    if t is not None:
        take_off_contacts(m, w, f, g, t)


@njit
def _poses(m: Any, w: Any, row: Any, b: Any) -> None:
    for link in range(m.link_body.shape[0]):
        R, x = link_frame(m, w, link)
        p = origin_of(m, w, m.link_body[link])
        q = quaternion_of(R)
        for k in range(min(b.link_position.shape[0], 1) * 3):
            b.link_position[row, link, k] = p[k] + x[k]
        for k in range(min(b.link_quaternion.shape[0], 1) * 4):
            b.link_quaternion[row, link, k] = q[k]


@njit
def joint_wrenches(m: Any, v: Any, w: Any, f: Any, e: Any, x: Any, g: Any, t: Any) -> None:
    """f.link_force, f.link_torque: what each link receives through its joint, by Newton and Euler per link.

    Link by link and not body by body, since a link merged into another still has a joint that carries it. What loop
    joints, contacts, spatial tendons and actuators at sites do is taken off; all else counts as acting in the joints.
    """
    accelerations(m, v, f.qacc, w)
    n = m.link_body.shape[0]
    for link in range(n):
        i = m.link_body[link]
        R, p = link_frame(m, w, link)
        o0 = w.angular_velocity[i, 0]
        o1 = w.angular_velocity[i, 1]
        o2 = w.angular_velocity[i, 2]
        a0 = w.angular_acceleration[i, 0]
        a1 = w.angular_acceleration[i, 1]
        a2 = w.angular_acceleration[i, 2]
        c = m.link_com[link]
        c0 = R[0] * c[0] + R[1] * c[1] + R[2] * c[2]
        c1 = R[3] * c[0] + R[4] * c[1] + R[5] * c[2]
        c2 = R[6] * c[0] + R[7] * c[1] + R[8] * c[2]
        d0 = p[0] + c0
        d1 = p[1] + c1
        d2 = p[2] + c2
        s0, s1, s2 = cross(o0, o1, o2, d0, d1, d2)
        s0, s1, s2 = cross(o0, o1, o2, s0, s1, s2)
        g0, g1, g2 = cross(a0, a1, a2, d0, d1, d2)
        mass = m.link_mass[link]
        f0 = mass * (w.acceleration[i, 0] + g0 + s0)
        f1 = mass * (w.acceleration[i, 1] + g1 + s1)
        f2 = mass * (w.acceleration[i, 2] + g2 + s2)
        # I α + ω × I ω in link axes, then turned
        u0, u1, u2 = turned_back(R, o0, o1, o2)
        q0, q1, q2 = turned_back(R, a0, a1, a2)
        L0, L1, L2 = symmetric_times(m.link_inertia, link, u0, u1, u2)
        k0, k1, k2 = symmetric_times(m.link_inertia, link, q0, q1, q2)
        h0, h1, h2 = cross(u0, u1, u2, L0, L1, L2)
        k0 += h0
        k1 += h1
        k2 += h2
        t0, t1, t2 = cross(c0, c1, c2, f0, f1, f2)
        f.link_force[link, 0] = f0
        f.link_force[link, 1] = f1
        f.link_force[link, 2] = f2
        f.link_torque[link, 0] = t0 + R[0] * k0 + R[1] * k1 + R[2] * k2
        f.link_torque[link, 1] = t1 + R[3] * k0 + R[4] * k1 + R[5] * k2
        f.link_torque[link, 2] = t2 + R[6] * k0 + R[7] * k1 + R[8] * k2
    _take_off_all(m, w, f, e, x, g, t)
    for link in range(n - 1, -1, -1):
        above = m.link_parent[link]
        if above >= 0:
            d0, d1, d2 = _between(m, w, link, above)
            F = f.link_force[link]
            t0, t1, t2 = cross(d0, d1, d2, F[0], F[1], F[2])
            for k in range(3):
                f.link_force[above, k] += F[k]
                f.link_torque[above, k] += f.link_torque[link, k]
            f.link_torque[above, 0] += t0
            f.link_torque[above, 1] += t1
            f.link_torque[above, 2] += t2


@inlined
def _between(m: Any, w: Any, link: Any, above: Any) -> Any:
    """From the origin of the link above to the link's [m]; there may be several bodies between them."""
    _, p = link_frame(m, w, link)
    _, y = link_frame(m, w, above)
    d0 = p[0] - y[0]
    d1 = p[1] - y[1]
    d2 = p[2] - y[2]
    body = m.link_body[link]
    while body != m.link_body[above]:
        d0 += w.offset[body, 0]
        d1 += w.offset[body, 1]
        d2 += w.offset[body, 2]
        body = m.body_parent[body]
    return d0, d1, d2


@njit
def _coupling_remainder(m: Any, v: Any, w: Any, f: Any) -> None:
    """f.coupling = M qacc + bias - all other forces: what exact couplings carry. Tendons' inertias are forces here."""
    inverse_dynamics(m, v, f.qacc, w, f.force)
    for k in range(f.force.shape[0]):
        known = f.applied[k] + f.drive[k] + f.passive[k] + f.limit[k] + f.loop[k] + f.tendon[k]
        known += f.contact[k]
        f.coupling[k] = f.force[k] + m.armature[k] * f.qacc[k] - known


@njit
def _on_request(m: Any, s: Any, w: Any, r: Any, f: Any, row: Any, b: Any, e: Any, x: Any) -> None:
    nv = m.dof_body.shape[0]
    if b.solver_iterations.shape[0] > 0:
        b.solver_iterations[row] = r.report[0]
    if b.asleep.shape[0] > 0:
        b.asleep[row] = f.counters[6]
    if b.solver_residual.shape[0] > 0:
        b.solver_residual[row] = r.report[1]
    if b.jacobian.shape[0] > 0:
        _jacobians(m, w, row, b)
    if b.energy.shape[0] + b.com.shape[0] + b.momentum.shape[0] + b.mass_matrix.shape[0] > 0:
        composites(m, w)
        centre_of_mass(m, w, f.com)
        _copy(f.com, row, b.com)
    if b.energy.shape[0] > 0:
        velocities(m, s.qvel, w)
        b.energy[row, 0] = kinetic_energy(m, s.qvel, w)
        if e is not None:
            b.energy[row, 0] += inertia_energy(e, x)
        b.energy[row, 1] = potential_energy(m, s.qpos, f.com)
        if e is not None:
            b.energy[row, 1] += spring_energy(m, s.qpos, e) + tendon_spring_energy(e, x)
    if b.momentum.shape[0] > 0:
        centroidal_map(m, w, f.com, f.columns)
        momentum(f.columns, s.qvel, 0.0, f.momentum)
        _copy(f.momentum, row, b.momentum)
    if b.mass_matrix.shape[0] > 0:
        mass_matrix(m, w)
        for k in range(nv):
            for j in range(nv):
                b.mass_matrix[row, k, j] = 0.0
        for k in range(nv):
            j = k
            while j >= 0:
                b.mass_matrix[row, k, j] = w.mass_matrix[k, j]
                b.mass_matrix[row, j, k] = w.mass_matrix[k, j]
                j = m.dof_parent[j]
        if e is not None:
            add_inertia(e, x, b.mass_matrix[row])
    for k in range(nv):
        f.tangent[k] = 0.0
    if b.gravity.shape[0] > 0:
        inverse_dynamics(m, f.tangent, f.tangent, w, w.bias)
        _copy(w.bias, row, b.gravity)
    if b.bias.shape[0] > 0:
        inverse_dynamics(m, s.qvel, f.tangent, w, w.bias)
        if e is not None:
            add_inertia_forces(m, s.qvel, f.tangent, w, e, x, w.bias)
        _copy(w.bias, row, b.bias)


@njit
def _jacobians(m: Any, w: Any, row: Any, b: Any) -> None:
    """Jacobians of all links at their centres of mass: of each the columns of its chain, as in jacobian_columns."""
    motion_columns(m, w)
    S = w.motion
    end = 0
    for link in range(m.link_body.shape[0]):
        i = m.link_body[link]
        R, x = link_frame(m, w, link)
        c = m.link_com[link]
        r0 = w.arm[i, 0] + x[0] + R[0] * c[0] + R[1] * c[1] + R[2] * c[2]
        r1 = w.arm[i, 1] + x[1] + R[3] * c[0] + R[4] * c[1] + R[5] * c[2]
        r2 = w.arm[i, 2] + x[2] + R[6] * c[0] + R[7] * c[1] + R[8] * c[2]
        last = m.body_dof[i + 1] - 1 if i > 0 else -1
        k = last
        while k >= 0:
            end += 1
            k = m.dof_parent[k]
        column = end
        k = last
        while k >= 0:
            column -= 1
            l0, l1, l2 = cross(S[3, k], S[4, k], S[5, k], r0, r1, r2)
            b.jacobian[row, column, 0] = l0 + S[0, k]
            b.jacobian[row, column, 1] = l1 + S[1, k]
            b.jacobian[row, column, 2] = l2 + S[2, k]
            for line in range(3, 6):
                b.jacobian[row, column, line] = S[line, k]
            k = m.dof_parent[k]
