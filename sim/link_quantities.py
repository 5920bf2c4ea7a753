"""Quantities of links: poses, velocities, accelerations, Jacobians and their rates; joint forces of wrenches."""

from __future__ import annotations

from typing import Any

from artsim.sim.coupling import follow, reduce_vector
from artsim.sim.dynamics import gather_forces
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import accelerations, axis_of, cross, jacobian, like, link_frame, motion_columns, origin_of
from artsim.sim.lanes import jacobian_block, lane_count, lane_of, lane_set, stream
from artsim.sim.quaternions import quaternion_of
from artsim.sim.records import BUFFER, WIDTH
from artsim.sim.tables import gather, scatter, scatter_row


@inlined
def _point(m: Any, w: Any, t: Any, link: Any) -> Any:
    """From its body's origin to the link's point: its centre of mass or its frame's origin."""
    R, r = link_frame(m, w, link)
    c = m.link_com[link]
    scale = 1.0 * t.at_com[0]
    c0 = scale * c[0]
    c1 = scale * c[1]
    c2 = scale * c[2]
    return (
        r[0] + R[0] * c0 + R[1] * c1 + R[2] * c2,
        r[1] + R[3] * c0 + R[4] * c1 + R[5] * c2,
        r[2] + R[6] * c0 + R[7] * c1 + R[8] * c2,
    )


@njit
def poses(m: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """Position of the links' frames and their rotations as quaternions."""
    if b.link_position.shape[0] > 0:
        for n in range(t.links.shape[0]):
            link = t.links[n]
            _, r = link_frame(m, w, link)
            p = origin_of(m, w, m.link_body[link])
            for k in range(3):
                x.positions[n, k] = p[k] + r[k]
        scatter_row(x.positions, b.link_position, first, x.stage)
    if b.link_quaternion.shape[0] > 0:
        for n in range(t.links.shape[0]):
            R, _ = link_frame(m, w, t.links[n])
            for lane in range(lane_count(w.arm)):
                rotation = (
                    lane_of(R[0], lane),
                    lane_of(R[1], lane),
                    lane_of(R[2], lane),
                    lane_of(R[3], lane),
                    lane_of(R[4], lane),
                    lane_of(R[5], lane),
                    lane_of(R[6], lane),
                    lane_of(R[7], lane),
                    lane_of(R[8], lane),
                )
                q = quaternion_of(rotation)
                for k in range(4):
                    b.link_quaternion[first + lane, n, k] = q[k]


@njit
def link_velocities(m: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """Linear velocity of the links' points, angular velocity. Needs `velocities`."""
    for n in range(t.links.shape[0]):
        i = m.link_body[t.links[n]]
        r = _point(m, w, t, t.links[n])
        o = w.angular_velocity[i]
        c = cross(o[0], o[1], o[2], r[0], r[1], r[2])
        for k in range(3):
            x.twists[n, k] = w.velocity[i, k] + c[k]
            x.twists[n, 3 + k] = o[k]
    scatter_row(x.twists, b.link_velocity, first, x.stage)


@njit
def link_accelerations(m: Any, v: Any, a: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """Classical acceleration of the links' points (d²p/dt², gravity not included), angular acceleration."""
    fall(m, w, 0.0)
    accelerations(m, v, a, w)
    fall(m, w, 1.0)
    for n in range(t.links.shape[0]):
        i = m.link_body[t.links[n]]
        r = _point(m, w, t, t.links[n])
        o = w.angular_velocity[i]
        e = w.angular_acceleration[i]
        c0, c1, c2 = cross(o[0], o[1], o[2], r[0], r[1], r[2])
        c = cross(o[0], o[1], o[2], c0, c1, c2)
        d = cross(e[0], e[1], e[2], r[0], r[1], r[2])
        for k in range(3):
            base = w.acceleration[i, k] if i > 0 else like(0.0, w)
            x.twists[n, k] = base + d[k] + c[k]
            x.twists[n, 3 + k] = e[k]
    scatter_row(x.twists, b.link_acceleration, first, x.stage)


@inlined
def fall(m: Any, w: Any, share: Any) -> None:
    """Let the world accelerate upwards at `share` times gravity, which is how gravity enters `accelerations`."""
    for k in range(3):
        w.acceleration[0, k] = like(-share * m.gravity[k], w)


@njit
def jacobians(m: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """Jacobians of the links' points. Needs `place_body`. What is written, zeros included, costs more than all else."""
    motion_columns(m, w)
    if t.reduced[0] == 1 and m.coupling_follower.shape[0] > 0:
        _reduced_jacobians(m, w, x, t, b, first)
    else:
        _plain_jacobians(m, w, x, t, b, first)


@njit
def _plain_jacobians(m: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """Robot by robot, 8 columns at a time, through a buffer that leaves in whole cache lines.

    The Jacobians of a pack stand one after the other in the table: what is written is one stream. Turning a matrix of
    lanes link by link took 1.1 to 1.4 times as long as going robot by robot.
    """
    for n in range(t.links.shape[0]):
        i = m.link_body[t.links[n]]
        r = _point(m, w, t, t.links[n])
        for k in range(3):
            x.positions[n, k] = w.arm[i, k] + r[k]
    nv = w.motion.shape[1]
    scatter(w.motion, x.robot_motion, 0, x.robot_motion.shape[1])
    scatter(x.positions, x.robot_points, 0, x.robot_points.shape[1])
    place = first * t.links.shape[0] * 6 * nv
    filled = 0
    for lane in range(lane_count(w.arm)):
        S = lane * x.robot_motion.shape[1]
        for n in range(t.links.shape[0]):
            chain = t.chains[m.link_body[t.links[n]]]
            r = x.robot_points[lane, 3 * n : 3 * n + 3]
            for back in range(chain.shape[0]):  # the last block first: it writes past the rows' ends
                block = chain.shape[0] - 1 - back
                k = block * WIDTH
                jacobian_block(x.buffer, filled + k, nv, x.robot_motion, S + k, r[0], r[1], r[2], chain[block])
            filled += 6 * nv
            if filled >= BUFFER:
                whole = filled - filled % WIDTH
                stream(x.buffer, whole, b.jacobian, place)
                place += whole
                filled -= whole
                for k in range(filled):
                    x.buffer[k] = x.buffer[whole + k]
    for k in range(filled):
        lane_set(b.jacobian, place + k, 0, x.buffer[k])


@njit
def _reduced_jacobians(m: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """J G, link by link."""
    J = x.columns
    for n in range(t.links.shape[0]):
        i = m.link_body[t.links[n]]
        r0, r1, r2 = _point(m, w, t, t.links[n])
        _clear(w, J)
        jacobian(m, w, i, w.arm[i, 0] + r0, w.arm[i, 1] + r1, w.arm[i, 2] + r2, J)
        reduce_rows(m, w, J, x.reduced_columns)
        _scatter_link(x.reduced_columns, b.jacobian, first, n)


@inlined
def _clear(w: Any, J: Any) -> None:
    zero = like(0.0, w)
    for row in range(J.shape[0]):
        for k in range(J.shape[1]):
            J[row, k] = zero


@njit
def _scatter_link(J: Any, out: Any, first: Any, n: Any) -> None:
    robot = out.shape[1] * J.size  # from one robot's Jacobians to the next one's
    scatter(J, out, first * robot + n * J.size, robot)


@njit
def reduce_rows(m: Any, w: Any, J: Any, out: Any) -> None:
    """out (rows, nu) = J (rows, nv) G, for the rows that out has."""
    for row in range(out.shape[0]):
        reduce_vector(m, J[row], w, out[row])


@njit
def jacobian_rates(m: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """Time derivatives of the Jacobians at qvel; reduced: of J G, the rate of G included. Needs `velocities`.

    An axis turns with the body it belongs to: that of a rotation with the joint's child, of a translation with the
    parent. So d(a × (p - o))/dt = (ω × a) × (p - o) + a × (ṗ - ȯ).
    """
    for n in range(t.links.shape[0]):
        i = m.link_body[t.links[n]]
        r0, r1, r2 = _point(m, w, t, t.links[n])
        _clear(w, x.rates)
        _rate_columns(m, w, i, r0, r1, r2, x.rates)
        if t.reduced[0] == 0:
            _scatter_link(x.rates, b.jacobian_dot, first, n)
        else:
            _clear(w, x.columns)
            jacobian(m, w, i, w.arm[i, 0] + r0, w.arm[i, 1] + r1, w.arm[i, 2] + r2, x.columns)
            reduce_rows(m, w, x.rates, x.reduced_columns)
            for c in range(m.coupling_follower.shape[0]):
                f = m.coupling_follower[c]
                a = m.dof_independent[f]
                if a >= 0:
                    for row in range(6):
                        x.reduced_columns[row, a] += x.gain_rate[f] * x.columns[row, f]
            _scatter_link(x.reduced_columns, b.jacobian_dot, first, n)


@njit
def _rate_columns(m: Any, w: Any, body: Any, r0: Any, r1: Any, r2: Any, out: Any) -> None:
    """Rates of the columns of body's chain for its point at r from its origin."""
    o = w.angular_velocity
    u = w.velocity
    c0, c1, c2 = cross(o[body, 0], o[body, 1], o[body, 2], r0, r1, r2)
    p0 = u[body, 0] + c0
    p1 = u[body, 1] + c1
    p2 = u[body, 2] + c2
    zero = like(0.0, w)
    k = m.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        i = m.dof_body[k]
        a0, a1, a2 = axis_of(w, k)
        turning = m.body_parent[i] if m.dof_linear[k] else i
        e0, e1, e2 = cross(o[turning, 0], o[turning, 1], o[turning, 2], a0, a1, a2)
        if m.dof_linear[k]:
            out[0, k] = e0
            out[1, k] = e1
            out[2, k] = e2
            out[3, k] = zero
            out[4, k] = zero
            out[5, k] = zero
        else:
            d0 = w.arm[body, 0] + r0 - w.arm[i, 0]
            d1 = w.arm[body, 1] + r1 - w.arm[i, 1]
            d2 = w.arm[body, 2] + r2 - w.arm[i, 2]
            s0, s1, s2 = cross(e0, e1, e2, d0, d1, d2)
            t0, t1, t2 = cross(a0, a1, a2, p0 - u[i, 0], p1 - u[i, 1], p2 - u[i, 2])
            out[0, k] = s0 + t0
            out[1, k] = s1 + t1
            out[2, k] = s2 + t2
            out[3, k] = e0
            out[4, k] = e1
            out[5, k] = e2
        k = m.dof_parent[k]


@njit
def gain_rates(m: Any, q: Any, v: Any, w: Any, x: Any) -> None:
    """x.gain_rate (nv,) = Ġ's entry of each dof, after `expand`."""
    for k in range(x.gain_rate.shape[0]):
        x.gain_rate[k] = like(0.0, w)
    for c in range(m.coupling_follower.shape[0]):
        f = m.coupling_follower[c]
        l = m.coupling_leader[c]
        if l >= 0:
            _, slope, bend = follow(m.coupling_polynomial[c], q[m.dof_coord[l]])
            x.gain_rate[f] = bend * v[l] * w.gain[l] + slope * x.gain_rate[l]


@njit
def wrench_forces(m: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """x.external (nv,) = Σ Jᵀ f over the links' wrenches. O(nb + links)."""
    zero = like(0.0, w)
    for i in range(m.body_parent.shape[0]):
        for k in range(3):
            w.force[i, k] = zero
            w.torque[i, k] = zero
    gather(b.wrench, first, x.wrench)
    for n in range(t.links.shape[0]):
        i = m.link_body[t.links[n]]
        r = _point(m, w, t, t.links[n])
        f = x.wrench[6 * n : 6 * n + 6]
        c = cross(r[0], r[1], r[2], f[0], f[1], f[2])
        for k in range(3):
            w.force[i, k] += f[k]
            w.torque[i, k] += f[3 + k] + c[k]
    gather_forces(m, w, x.external)
