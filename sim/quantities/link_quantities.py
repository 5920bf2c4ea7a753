"""Kernels for the quantities of links: poses, velocities, accelerations, Jacobians and their rates, wrenches."""

from __future__ import annotations

from artsim.sim.articulation.coupling import follow, reduce_vector
from artsim.sim.articulation.derivatives import (
    add_reduced_columns,
    add_wrench,
    link_acceleration_derivatives,
    link_velocity_derivative,
)
from artsim.sim.articulation.dynamics import gather_forces
from artsim.sim.articulation.kinematics import (
    accelerations,
    axis_of,
    jacobian,
    like,
    link_frame,
    motion_columns,
    origin_of,
)
from artsim.sim.articulation.model import WORLD, Model
from artsim.sim.articulation.slopes import Slopes
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.gather_scatter import gather, scatter, scatter_row
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import jacobian_block, lane_count, lane_of, lane_set, stream
from artsim.sim.foundation.mat3 import plus_turned
from artsim.sim.foundation.quaternions import quaternion_of
from artsim.sim.foundation.records import BUFFER, WIDTH, Lanes1, Lanes2, Reals4, Vec3
from artsim.sim.foundation.spatial import pair_of, set_motion_column, velocity_at
from artsim.sim.foundation.vec3 import cross, minus, plus, row_of, times, triple_at, zeros_like
from artsim.sim.quantities.compute_records import Batch, Scratch, Task


@inlined
def _point(model: Model, data: Workspace, task: Task, link: int) -> Vec3:
    """Vector from the body's origin to the link's reference point, its centre of mass or its frame's origin [m]."""
    R, r = link_frame(model, data, link)
    return plus_turned(r, R, times(1.0 * task.at_com[0], model.link_com[link]))


@njit
def poses(model: Model, data: Workspace, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Write the positions of the links' frames and their rotations as quaternions."""
    if batch.link_position.shape[0] > 0:
        for n in range(task.links.shape[0]):
            link = task.links[n]
            _, r = link_frame(model, data, link)
            p = origin_of(model, data, model.link_body[link])
            for k in range(3):
                scratch.positions[n, k] = p[k] + r[k]
        scatter_row(scratch.positions, batch.link_position, first, scratch.stage)
    if batch.link_quaternion.shape[0] > 0:
        for n in range(task.links.shape[0]):
            R, _ = link_frame(model, data, task.links[n])
            for lane in range(lane_count(data.arm)):
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
                    batch.link_quaternion[first + lane, n, k] = q[k]


@njit
def link_velocities(model: Model, data: Workspace, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Write the linear velocities of the links' points and the angular velocities. Needs `velocities`."""
    for n in range(task.links.shape[0]):
        i = model.link_body[task.links[n]]
        r = _point(model, data, task, task.links[n])
        o = data.angular_velocity[i]
        c = cross(o, r)
        for k in range(3):
            scratch.twists[n, k] = data.velocity[i, k] + c[k]
            scratch.twists[n, 3 + k] = o[k]
    scatter_row(scratch.twists, batch.link_velocity, first, scratch.stage)


@njit
def link_accelerations(
    model: Model, v: Lanes1, a: Lanes1, data: Workspace, scratch: Scratch, task: Task, batch: Batch, first: int
) -> None:
    """Write the classical accelerations of the links' points (d²p/dt², without gravity) and angular accelerations."""
    fall(model, data, 0.0)
    accelerations(model, v, a, data)
    fall(model, data, 1.0)
    for n in range(task.links.shape[0]):
        i = model.link_body[task.links[n]]
        r = _point(model, data, task, task.links[n])
        o = data.angular_velocity[i]
        e = data.angular_acceleration[i]
        c0, c1, c2 = cross(o, r)
        c = cross(o, (c0, c1, c2))
        d = cross(e, r)
        for k in range(3):
            base = data.acceleration[i, k] if i > 0 else like(0.0, data)
            scratch.twists[n, k] = base + d[k] + c[k]
            scratch.twists[n, 3 + k] = e[k]
    scatter_row(scratch.twists, batch.link_acceleration, first, scratch.stage)


@inlined
def fall(model: Model, data: Workspace, share: float) -> None:
    """Let the world accelerate upwards at `share` times gravity, through which gravity enters `accelerations`."""
    for k in range(3):
        data.acceleration[WORLD, k] = like(-share * model.gravity[k], data)


@njit
def jacobians(model: Model, data: Workspace, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Write the Jacobians of the links' points. Needs `place_body`. Most of the cost is writing, zeros included."""
    motion_columns(model, data)
    if task.reduced[0] == 1 and model.coupling_follower.shape[0] > 0:
        _reduced_jacobians(model, data, scratch, task, batch, first)
    else:
        _plain_jacobians(model, data, scratch, task, batch, first)


@njit
def _plain_jacobians(model: Model, data: Workspace, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Write Jacobians robot by robot, 8 columns at a time, through a buffer that is written in whole cache lines.

    The Jacobians of a pack follow each other in the table, so that the output is one stream. Transposing a matrix of
    lanes link by link took 1.1 to 1.4 times as long as proceeding robot by robot.
    """
    for n in range(task.links.shape[0]):
        i = model.link_body[task.links[n]]
        r = _point(model, data, task, task.links[n])
        for k in range(3):
            scratch.positions[n, k] = data.arm[i, k] + r[k]
    nv = data.motion.shape[1]
    scatter(data.motion, scratch.robot_motion, 0, scratch.robot_motion.shape[1])
    scatter(scratch.positions, scratch.robot_points, 0, scratch.robot_points.shape[1])
    place = first * task.links.shape[0] * 6 * nv
    filled = 0
    for lane in range(lane_count(data.arm)):
        S = lane * scratch.robot_motion.shape[1]
        for n in range(task.links.shape[0]):
            chain = task.chains[model.link_body[task.links[n]]]
            point = scratch.robot_points[lane, 3 * n : 3 * n + 3]
            for back in range(chain.shape[0]):  # last block first, since it writes past the ends of the rows
                block = chain.shape[0] - 1 - back
                k = block * WIDTH
                jacobian_block(
                    scratch.buffer,
                    filled + k,
                    nv,
                    scratch.robot_motion,
                    S + k,
                    point[0],
                    point[1],
                    point[2],
                    chain[block],
                )
            filled += 6 * nv
            if filled >= BUFFER:
                whole = filled - filled % WIDTH
                stream(scratch.buffer, whole, batch.jacobian, place)
                place += whole
                filled -= whole
                for k in range(filled):
                    scratch.buffer[k] = scratch.buffer[whole + k]
    for k in range(filled):
        lane_set(batch.jacobian, place + k, 0, scratch.buffer[k])


@njit
def _reduced_jacobians(model: Model, data: Workspace, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Write J G, link by link."""
    J = scratch.columns
    for n in range(task.links.shape[0]):
        i = model.link_body[task.links[n]]
        r = _point(model, data, task, task.links[n])
        _clear(data, J)
        jacobian(model, data, i, r, J)
        reduce_rows(model, data, J, scratch.reduced_columns)
        _scatter_link(scratch.reduced_columns, batch.jacobian, first, n)


@inlined
def _clear(data: Workspace, J: Lanes2) -> None:
    zero = like(0.0, data)
    for row in range(J.shape[0]):
        for k in range(J.shape[1]):
            J[row, k] = zero


@njit
def _scatter_link(J: Lanes2, out: Reals4, first: int, n: int) -> None:
    robot = out.shape[1] * J.size  # distance from one robot's Jacobians to the next one's
    scatter(J, out, first * robot + n * J.size, robot)


@njit
def reduce_rows(model: Model, data: Workspace, J: Lanes2, out: Lanes2) -> None:
    """out (rows, nu) = J (rows, nv) G, for as many rows as out has."""
    for row in range(out.shape[0]):
        reduce_vector(model, J[row], data, out[row])


@njit
def jacobian_rates(model: Model, data: Workspace, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Write the time derivatives of the Jacobians at qvel; if reduced those of J G, including Ġ. Needs `velocities`.

    A joint axis rotates with the body to which it is fixed, that of a rotation with the child, that of a translation
    with the parent. Hence d(a × (p - o))/dt = (ω × a) × (p - o) + a × (ṗ - ȯ).
    """
    for n in range(task.links.shape[0]):
        i = model.link_body[task.links[n]]
        r = _point(model, data, task, task.links[n])
        _clear(data, scratch.rates)
        _rate_columns(model, data, i, r, scratch.rates)
        if task.reduced[0] == 0:
            _scatter_link(scratch.rates, batch.jacobian_dot, first, n)
        else:
            _clear(data, scratch.columns)
            jacobian(model, data, i, r, scratch.columns)
            reduce_rows(model, data, scratch.rates, scratch.reduced_columns)
            for c in range(model.coupling_follower.shape[0]):
                f = model.coupling_follower[c]
                a = model.dof_independent[f]
                if a >= 0:
                    for row in range(6):
                        scratch.reduced_columns[row, a] += scratch.gain_rate[f] * scratch.columns[row, f]
            _scatter_link(scratch.reduced_columns, batch.jacobian_dot, first, n)


@njit
def _rate_columns(model: Model, data: Workspace, body: int, r: Vec3, out: Lanes2) -> None:
    """Rates of the columns of body's chain for its point at r from its origin."""
    o = data.angular_velocity
    speed = velocity_at(pair_of(data.velocity, o, body), r)
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        i = model.dof_body[k]
        a = axis_of(data, k)
        turning = model.body_parent[i] if model.dof_linear[k] else i
        e = cross(row_of(o, turning), a)
        if model.dof_linear[k]:
            set_motion_column(out, k, (e, zeros_like(e)))
        else:
            d = minus(plus(row_of(data.arm, body), r), row_of(data.arm, i))
            linear = plus(cross(e, d), cross(a, minus(speed, row_of(data.velocity, i))))
            set_motion_column(out, k, (linear, e))
        k = model.dof_parent[k]


@njit
def gain_rates(model: Model, q: Lanes1, v: Lanes1, data: Workspace, scratch: Scratch) -> None:
    """scratch.gain_rate (nv,) = Ġ's entry of each dof, after `expand`."""
    for k in range(scratch.gain_rate.shape[0]):
        scratch.gain_rate[k] = like(0.0, data)
    for c in range(model.coupling_follower.shape[0]):
        f = model.coupling_follower[c]
        l = model.coupling_leader[c]
        if l >= 0:
            _, slope, bend = follow(model.coupling_polynomial[c], q[model.dof_coord[l]])
            scratch.gain_rate[f] = bend * v[l] * data.gain[l] + slope * scratch.gain_rate[l]


@njit
def wrench_forces(model: Model, data: Workspace, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """scratch.external (nv,) = Σ Jᵀ f over the links' wrenches. O(nb + links)."""
    zero = like(0.0, data)
    for i in range(model.body_parent.shape[0]):
        for k in range(3):
            data.force[i, k] = zero
            data.torque[i, k] = zero
    gather(batch.wrench, first, scratch.wrench)
    for n in range(task.links.shape[0]):
        i = model.link_body[task.links[n]]
        r = _point(model, data, task, task.links[n])
        f = scratch.wrench[6 * n : 6 * n + 6]
        c = cross(r, f)
        for k in range(3):
            data.force[i, k] += f[k]
            data.torque[i, k] += f[3 + k] + c[k]
    gather_forces(model, data, scratch.external)


@njit
def link_velocity_slopes(
    model: Model, data: Workspace, scratch: Scratch, task: Task, slopes: Slopes, batch: Batch, first: int
) -> None:
    """Write the derivatives of the links' velocities by position. Needs `column_slopes`."""
    dq, J = slopes.columns_dq, scratch.columns
    for n in range(task.links.shape[0]):
        i, r = model.link_body[task.links[n]], _point(model, data, task, task.links[n])
        _clear(data, dq)
        link_velocity_derivative(model, data, slopes, i, r, dq)
        if task.reduced[0] == 1:
            _clear(data, J)
            jacobian(model, data, i, r, J)
            _clear(data, scratch.reduced_columns)
            add_reduced_columns(model, dq, data.gain, scratch.reduced_columns)
            add_reduced_columns(model, J, slopes.velocity_slope, scratch.reduced_columns)
            _scatter_link(scratch.reduced_columns, batch.link_velocity_dq, first, n)
        else:
            _scatter_link(dq, batch.link_velocity_dq, first, n)


@njit
def link_acceleration_slopes(
    model: Model, data: Workspace, scratch: Scratch, task: Task, slopes: Slopes, batch: Batch, first: int
) -> None:
    """Write the derivatives of the links' accelerations. Needs `column_slopes`, without gravity."""
    dq, dv, J = slopes.columns_dq, slopes.columns_dv, scratch.columns
    for n in range(task.links.shape[0]):
        i, r = model.link_body[task.links[n]], _point(model, data, task, task.links[n])
        _clear(data, dq)
        _clear(data, dv)
        link_acceleration_derivatives(model, data, slopes, i, r, dq, dv)
        if task.reduced[0] == 1:
            _clear(data, J)
            jacobian(model, data, i, r, J)
        if batch.link_acceleration_dq.shape[0] > 0:
            if task.reduced[0] == 1:
                reduce_columns_dq(model, data, scratch, slopes)
                _scatter_link(scratch.reduced_columns, batch.link_acceleration_dq, first, n)
            else:
                _scatter_link(dq, batch.link_acceleration_dq, first, n)
        if batch.link_acceleration_dv.shape[0] > 0:
            if task.reduced[0] == 1:
                reduce_columns_dv(model, data, scratch, slopes)
                _scatter_link(scratch.reduced_columns, batch.link_acceleration_dv, first, n)
            else:
                _scatter_link(dv, batch.link_acceleration_dv, first, n)


@njit
def reduce_columns_dq(model: Model, data: Workspace, scratch: Scratch, slopes: Slopes) -> None:
    """scratch.reduced_columns (6, nu) = ∂x/∂y by slopes.columns_dq, slopes.columns_dv and scratch.columns, ∂x/∂a."""
    _clear(data, scratch.reduced_columns)
    add_reduced_columns(model, slopes.columns_dq, data.gain, scratch.reduced_columns)
    add_reduced_columns(model, slopes.columns_dv, slopes.velocity_slope, scratch.reduced_columns)
    add_reduced_columns(model, scratch.columns, slopes.acceleration_slope, scratch.reduced_columns)


@njit
def reduce_columns_dv(model: Model, data: Workspace, scratch: Scratch, slopes: Slopes) -> None:
    """scratch.reduced_columns (6, nu) = ∂x/∂u by slopes.columns_dv and scratch.columns, ∂x/∂a."""
    _clear(data, scratch.reduced_columns)
    add_reduced_columns(model, slopes.columns_dv, data.gain, scratch.reduced_columns)
    add_reduced_columns(model, scratch.columns, slopes.twice, scratch.reduced_columns)


@njit
def apply_wrenches(model: Model, data: Workspace, scratch: Scratch, task: Task, slopes: Slopes) -> None:
    """Let the wrenches in scratch.wrench act on the bodies, for derivatives."""
    for n in range(task.links.shape[0]):
        i = model.link_body[task.links[n]]
        w = scratch.wrench
        if i > 0:
            F = triple_at(w, 6 * n), triple_at(w, 6 * n + 3)
            add_wrench(data, slopes, i, _point(model, data, task, task.links[n]), F)
