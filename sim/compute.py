"""The kernel behind `robot.compute`: rigid-body quantities of a table of configurations, one by one or 8 at a time."""

from __future__ import annotations

from typing import Any

from artsim.sim.coupling import expand, reduce_matrix, reduce_vector
from artsim.sim.dynamics import (
    articulated_dynamics,
    column_momentum,
    composites,
    coupled_bias,
    factorise,
    inverse_dynamics,
    mass_matrix,
    solve,
)
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import (
    cross,
    jacobian,
    kinematics,
    like,
    link_frame,
    motion_columns,
    origin_of,
    world_inertia,
)
from artsim.sim.lanes import blocks_from_lanes, blocks_to_lanes, lane_count, lane_get, lane_of, lane_set
from artsim.sim.quaternions import quaternion_of


@njit
def compute(m: Any, s: Any, w: Any, x: Any, b: Any) -> None:
    """All wanted quantities of all configurations. x: lane scratch; b: inputs and outputs. Rows a multiple of lanes."""
    lanes = lane_count(s.qpos)
    for first in range(0, b.qpos.shape[0], lanes):
        _gather(b.qpos, first, s.qpos)
        _gather(b.qvel, first, s.qvel)
        reduced = b.options[1] == 1
        if reduced:
            expand(m, s.qpos, s.qvel, w)
        kinematics(m, s.qpos, w)
        _poses(m, w, b, first)
        _jacobians(m, w, x, b, first, reduced)
        inertial = (
            b.com.shape[0]
            + b.centroidal_momentum_matrix.shape[0]
            + b.momentum.shape[0]
            + b.mass_matrix.shape[0]
            + b.gravity.shape[0]
            + b.bias.shape[0]
            + b.inverse_dynamics.shape[0]
            + b.forward_dynamics.shape[0]
        )
        if inertial > 0:
            world_inertia(m, w)
            _centroidal(m, s, w, x, b, first)
            _joint_space(m, s, w, x, b, first, reduced)


@njit
def _gather(rows: Any, first: Any, out: Any) -> None:
    """Rows first, first + 1, … of a table (N, n) into a lane vector (n,)."""
    n = out.shape[0]
    start = first * n
    done = blocks_to_lanes(rows, start, n, out, n)
    for lane in range(lane_count(out)):
        for i in range(done, n):
            lane_set(out, i, lane, lane_get(rows, start + lane * n + i, 0))


@njit
def _scatter(values: Any, out: Any, start: Any, stride: Any) -> None:
    """A lane array, flat, to the places start, start + stride, … of a flat table, one for each lane."""
    count = values.size
    done = blocks_from_lanes(values, count, out, start, stride)
    for lane in range(lane_count(values)):
        for i in range(done, count):
            lane_set(out, start + lane * stride + i, 0, lane_get(values, i, lane))


@njit
def _poses(m: Any, w: Any, b: Any, first: Any) -> None:
    if b.link_position.shape[0] == 0 and b.link_quaternion.shape[0] == 0:
        return
    for link in range(m.link_body.shape[0]):
        i = m.link_body[link]
        R, r = link_frame(m, w, link)
        p = origin_of(m, w, i)
        for lane in range(lane_count(w.arm)):
            row = first + lane
            if b.link_position.shape[0] > 0:
                for k in range(3):
                    b.link_position[row, link, k] = lane_of(p[k] + r[k], lane)
            if b.link_quaternion.shape[0] > 0:
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
                    b.link_quaternion[row, link, k] = q[k]


@njit
def _jacobians(m: Any, w: Any, x: Any, b: Any, first: Any, reduced: Any) -> None:
    if b.jacobian.shape[0] == 0:
        return
    J = x.columns
    motion_columns(m, w)
    zero = like(0.0, w)
    for link in range(m.link_body.shape[0]):
        i = m.link_body[link]
        R, r = link_frame(m, w, link)
        r0, r1, r2 = r
        if b.options[0] == 1:
            c = m.link_com[link]
            r0 = r0 + R[0] * c[0] + R[1] * c[1] + R[2] * c[2]
            r1 = r1 + R[3] * c[0] + R[4] * c[1] + R[5] * c[2]
            r2 = r2 + R[6] * c[0] + R[7] * c[1] + R[8] * c[2]
        for row in range(6):
            for k in range(J.shape[1]):
                J[row, k] = zero
        jacobian(m, w, i, w.arm[i, 0] + r0, w.arm[i, 1] + r1, w.arm[i, 2] + r2, J)
        width = b.jacobian.shape[3]
        robot = m.link_body.shape[0] * 6 * width  # from one robot's Jacobians to the next one's
        start = first * robot + link * 6 * width
        if reduced:
            for row in range(6):
                reduce_vector(m, J[row], w, x.reduced)
                _scatter(x.reduced, b.jacobian, start + row * width, robot)
        else:
            _scatter(J, b.jacobian, start, robot)


@njit
def _centroidal(m: Any, s: Any, w: Any, x: Any, b: Any, first: Any) -> None:
    """Centre of mass of every link, the momentum matrix about it, and the momentum."""
    if b.com.shape[0] + b.centroidal_momentum_matrix.shape[0] + b.momentum.shape[0] == 0:
        return
    c = x.com
    mass = m.body_mass[0]
    for k in range(3):
        c[k] = like(m.body_moment[0, k], w)
    for i in range(1, m.body_parent.shape[0]):
        mass += m.body_mass[i]
        p = origin_of(m, w, i)
        for k in range(3):
            c[k] = c[k] + w.moment[i, k] + m.body_mass[i] * p[k]
    for k in range(3):
        c[k] = c[k] * (1.0 / mass if mass > 0.0 else 0.0)
    if b.com.shape[0] > 0:
        _scatter(c, b.com, first * c.size, c.size)
    if b.centroidal_momentum_matrix.shape[0] + b.momentum.shape[0] == 0:
        return
    composites(m, w)
    A = x.columns
    h = x.momentum
    for row in range(6):
        h[row] = like(0.0, w)
    for k in range(m.dof_body.shape[0]):
        i = m.dof_body[k]
        f0, f1, f2, n0, n1, n2 = column_momentum(m, w, k)
        p = origin_of(m, w, i)
        t0, t1, t2 = cross(p[0] - c[0], p[1] - c[1], p[2] - c[2], f0, f1, f2)
        A[0, k] = f0
        A[1, k] = f1
        A[2, k] = f2
        A[3, k] = n0 + t0
        A[4, k] = n1 + t1
        A[5, k] = n2 + t2
        for row in range(6):
            h[row] = h[row] + A[row, k] * s.qvel[k]
    if b.momentum.shape[0] > 0:
        _scatter(h, b.momentum, first * h.size, h.size)
    if b.centroidal_momentum_matrix.shape[0] > 0:
        _scatter(A, b.centroidal_momentum_matrix, first * A.size, A.size)


@njit
def _joint_space(m: Any, s: Any, w: Any, x: Any, b: Any, first: Any, reduced: Any) -> None:
    zero = like(0.0, w)
    nv = m.dof_body.shape[0]
    for k in range(nv):
        x.zero[k] = zero
        x.diagonal[k] = zero
        if not reduced:
            w.gain[k] = like(1.0, w)
            w.drift[k] = zero
    if b.gravity.shape[0] > 0:
        inverse_dynamics(m, x.zero, x.zero, w, w.bias)
        _out(m, w, x, b.gravity, first, reduced)
    if b.bias.shape[0] > 0:
        coupled_bias(m, s.qvel, w)
        _out(m, w, x, b.bias, first, reduced)
    if b.inverse_dynamics.shape[0] > 0:
        _gather(b.qacc, first, x.input)
        if reduced:
            for k in range(nv):
                a = m.dof_independent[k]
                x.diagonal[k] = x.input[m.independent_dof[a]] if a >= 0 else zero
            for k in range(nv):
                x.input[k] = w.gain[k] * x.diagonal[k] + w.drift[k]
                x.diagonal[k] = zero
        inverse_dynamics(m, s.qvel, x.input, w, w.bias)
        for k in range(nv):
            w.bias[k] = w.bias[k] + m.armature[k] * x.input[k]
        _out(m, w, x, b.inverse_dynamics, first, reduced)
    if b.mass_matrix.shape[0] > 0 or (reduced and b.forward_dynamics.shape[0] > 0):
        composites(m, w)
        mass_matrix(m, w)
    if b.mass_matrix.shape[0] > 0:
        if reduced:
            reduce_matrix(m, w, x.diagonal)
            _scatter_symmetric(w.factor, m.independent_parent, first, b.mass_matrix)
        else:
            _scatter_symmetric(w.mass_matrix, m.dof_parent, first, b.mass_matrix)
    if b.forward_dynamics.shape[0] > 0:
        _gather(b.tau, first, x.input)
        if reduced:
            coupled_bias(m, s.qvel, w)
            for k in range(nv):
                w.bias[k] = x.input[k] - w.bias[k]
            reduce_vector(m, w.bias, w, x.reduced)
            reduce_matrix(m, w, x.diagonal)
            factorise(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run)
            solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, x.reduced)
            _scatter(x.reduced, b.forward_dynamics, first * x.reduced.size, x.reduced.size)
        else:
            for k in range(nv):
                x.diagonal[k] = zero + m.armature[k]
            articulated_dynamics(m, s.qvel, x.input, x.diagonal, w, w.bias)
            _scatter(w.bias, b.forward_dynamics, first * w.bias.size, w.bias.size)


@inlined
def _out(m: Any, w: Any, x: Any, out: Any, first: Any, reduced: Any) -> None:
    if reduced:
        reduce_vector(m, w.bias, w, x.reduced)
        _scatter(x.reduced, out, first * x.reduced.size, x.reduced.size)
    else:
        _scatter(w.bias, out, first * w.bias.size, w.bias.size)


@njit
def _scatter_symmetric(M: Any, parent: Any, first: Any, out: Any) -> None:
    """A full symmetric matrix per lane: ancestors' entries are mirrored, the rest was always 0."""
    for i in range(M.shape[0]):
        j = parent[i]
        while j >= 0:
            M[j, i] = M[i, j]
            j = parent[j]
    _scatter(M, out, first * M.size, M.size)
