"""The kernel of derivatives for `robot.compute` and `artsim batch`: those of a table of configurations, 1 or 8 at once.

It has the tables, tasks and scratch of the kernel `compute`, after which it runs, and is compiled for those alone who
ask for derivatives.
"""

from __future__ import annotations

from artsim.sim.articulation.centroidal import centre_of_mass, centroidal_map, root_wrench
from artsim.sim.articulation.coupling import expand_velocity, reduce_matrix, reduce_vector
from artsim.sim.articulation.derivatives import (
    add_reduced,
    add_reduced_columns,
    add_reduced_constant,
    body_momenta,
    clear_wrench_maps,
    column_slopes,
    coriolis_maps,
    coupling_slopes,
    gather_wrench_maps,
    gravity_derivative,
    inverse_dynamics_derivatives,
    mirror,
    momentum_derivative,
    momentum_rate_derivatives,
    reduce_force_bends,
)
from artsim.sim.articulation.dynamics import (
    body_forces,
    composites,
    gather_forces,
    invert,
    mass_matrix,
    solve,
    solve_rows,
)
from artsim.sim.articulation.kinematics import kinematics, like, motion_columns, velocities, world_inertia
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.slopes import Slopes
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.gather_scatter import gather, scatter_chosen, scatter_row
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import lane_count, lane_of
from artsim.sim.foundation.records import Lanes1, Lanes2, Reals3
from artsim.sim.quantities.catalogue import BAD_INPUT, BAD_RESULT, OK
from artsim.sim.quantities.compute import check_result, constants, factorise_checked, load_inputs, wrong_share
from artsim.sim.quantities.compute_records import END_ROW, FIRST_ROW, OF_INPUTS, OF_RESULTS, Batch, Scratch, Task
from artsim.sim.quantities.link_quantities import (
    apply_wrenches,
    fall,
    link_acceleration_slopes,
    link_velocity_slopes,
    reduce_columns_dq,
    reduce_columns_dv,
)


@njit
def derivative_rows(robot: RobotBundle, slopes: Slopes, scratch: Scratch, task: Task, batch: Batch) -> None:
    """Compute all wanted derivatives of the task's rows; slopes, scratch: of the lanes; batch: inputs and outputs."""
    model, state, data = robot.model, robot.state, robot.data
    constants(robot, scratch)
    for first in range(task.rows[FIRST_ROW], task.rows[END_ROW], lane_count(robot.state.qpos)):
        load_inputs(robot, scratch, task, batch, first)
        kinematics(model, state.qpos, data)
        world_inertia(model, data)
        composites(model, data)
        motion_columns(model, data)
        _gravity(robot, slopes, scratch, task, batch, first)
        dynamics = batch.inverse_dynamics_dq.shape[0] + batch.inverse_dynamics_dv.shape[0] + _forward(batch)
        if dynamics + _of_motion(batch) > 0:
            velocities(model, state.qvel, data)
            coriolis_maps(model, data, slopes)
        if dynamics > 0:
            if batch.wrench.shape[0] > 0:
                gather(batch.wrench, first, scratch.wrench)
                scratch.check[OF_INPUTS] = scratch.check[OF_INPUTS] + wrong_share(scratch.wrench, data)
            if task.reduced[0] + _forward(batch) > 0:
                if task.tendon_inertia.shape[0] > 0:
                    _clear(data.mass_matrix, data)
                mass_matrix(model, data)
            _inverse_dynamics(robot, slopes, scratch, task, batch, first)
            if _forward(batch) > 0:
                _forward_dynamics(robot, slopes, scratch, task, batch, first)
        if _of_motion(batch) > 0:
            _motion(robot, slopes, scratch, task, batch, first)
        _join_status(data, scratch, batch, first)


@njit
def _clear(X: Lanes2, data: Workspace) -> None:
    for k in range(X.shape[0]):
        for j in range(X.shape[1]):
            X[k, j] = like(0.0, data)


@njit
def _forward(batch: Batch) -> int:
    """The number of entries of the outputs of forward dynamics, 0: none is wanted."""
    wanted: int = (
        batch.forward_dynamics_dq.shape[0] + batch.forward_dynamics_dv.shape[0] + batch.forward_dynamics_dtau.shape[0]
    )
    return wanted


@njit
def _of_motion(batch: Batch) -> int:
    """The number of entries of the outputs of links and momentum, 0: none is wanted."""
    links: int = batch.link_velocity_dq.size + batch.link_acceleration_dq.size + batch.link_acceleration_dv.size
    whole: int = batch.momentum_dq.shape[0] + batch.momentum_rate_dq.shape[0] + batch.momentum_rate_dv.shape[0]
    return links + whole


@njit
def _join_status(data: Workspace, scratch: Scratch, batch: Batch, first: int) -> None:
    """Set the status of rows that `compute` found right."""
    for lane in range(lane_count(data.arm)):
        if batch.status[first + lane] == OK:
            if lane_of(scratch.check[OF_RESULTS], lane) != 0.0:
                batch.status[first + lane] = BAD_RESULT
            if lane_of(scratch.check[OF_INPUTS], lane) != 0.0:
                batch.status[first + lane] = BAD_INPUT


@njit
def _write_chains(X: Lanes2, data: Workspace, scratch: Scratch, task: Task, out: Reals3, first: int) -> None:
    """Write a matrix (nv, nv) of which the entries of dofs on one chain are set."""
    _check(X, data, scratch)
    scatter_chosen(X, task.slope_entries, out, first, scratch.stage)


@njit
def _write_square(data: Workspace, scratch: Scratch, out: Reals3, first: int) -> None:
    """Write scratch.square."""
    _check(scratch.square, data, scratch)
    scatter_row(scratch.square, out, first, scratch.stage)


@njit
def _check(X: Lanes2, data: Workspace, scratch: Scratch) -> None:
    for k in range(X.shape[0]):
        check_result(X[k], data, scratch)


# ------------------------------------------------------------------ gravity and inverse dynamics


@njit
def _gravity(robot: RobotBundle, slopes: Slopes, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    if batch.gravity_derivative.shape[0] == 0:
        return
    model, state, data = robot.model, robot.state, robot.data
    gravity_derivative(model, data, slopes)
    if task.reduced[0] == 0:
        _write_chains(slopes.dq, data, scratch, task, batch.gravity_derivative, first)
    else:
        coupling_slopes(model, state.qpos, scratch.zero, scratch.zero, data, slopes)
        reduce_force_bends(model, data, slopes, scratch.square)
        add_reduced(model, data, slopes.dq, data.gain, scratch.square)
        _write_square(data, scratch, batch.gravity_derivative, first)


@njit
def _inverse_dynamics(
    robot: RobotBundle, slopes: Slopes, scratch: Scratch, task: Task, batch: Batch, first: int
) -> None:
    data = robot.data
    wanted = batch.inverse_dynamics_dq.shape[0] + batch.inverse_dynamics_dv.shape[0]
    if wanted == 0:
        return
    _slopes_at(robot, scratch.qacc, slopes, scratch, task, batch)
    if task.reduced[0] == 0:
        if batch.inverse_dynamics_dq.shape[0] > 0:
            _write_chains(slopes.dq, data, scratch, task, batch.inverse_dynamics_dq, first)
        if batch.inverse_dynamics_dv.shape[0] > 0:
            _write_chains(slopes.dv, data, scratch, task, batch.inverse_dynamics_dv, first)
    else:
        if batch.inverse_dynamics_dq.shape[0] > 0:
            _reduce_dq(robot.model, data, slopes, scratch, task)
            _write_square(data, scratch, batch.inverse_dynamics_dq, first)
        if batch.inverse_dynamics_dv.shape[0] > 0:
            _reduce_dv(robot.model, data, slopes, scratch, task)
            _write_square(data, scratch, batch.inverse_dynamics_dv, first)


@njit
def _slopes_at(robot: RobotBundle, a: Lanes1, slopes: Slopes, scratch: Scratch, task: Task, batch: Batch) -> None:
    """slopes.dq and slopes.dv at accelerations a (nv,); if reduced, those of couplings, too."""
    model, state, data = robot.model, robot.state, robot.data
    _joint_forces(robot, a, slopes, scratch, task, batch)
    column_slopes(model, data, slopes)
    inverse_dynamics_derivatives(model, data, slopes)
    if task.reduced[0] == 1:
        coupling_slopes(model, state.qpos, state.qvel, a, data, slopes)
        mirror(model, data.mass_matrix)


@njit
def _joint_forces(robot: RobotBundle, a: Lanes1, slopes: Slopes, scratch: Scratch, task: Task, batch: Batch) -> None:
    """slopes.tau (nv,) = M a + C v + g - Jᵀ f, with armature; leaves the forces through joints in data."""
    model, data = robot.model, robot.data
    body_forces(model, robot.state.qvel, a, data)
    clear_wrench_maps(model, data, slopes)
    if batch.wrench.shape[0] > 0:
        apply_wrenches(model, data, scratch, task, slopes)
        gather_wrench_maps(model, data, slopes)
    gather_forces(model, data, slopes.tau)
    for k in range(slopes.tau.shape[0]):
        slopes.tau[k] = slopes.tau[k] + model.armature[k] * a[k]
    for k in range(task.tendon_inertia.shape[0]):
        for j in range(task.tendon_inertia.shape[0]):
            slopes.tau[k] = slopes.tau[k] + task.tendon_inertia[k, j] * a[j]


@njit
def _reduce_dq(model: Model, data: Workspace, slopes: Slopes, scratch: Scratch, task: Task) -> None:
    """scratch.square (nu, nu) = ∂(Gᵀ τ)/∂y at constant u and u̇."""
    reduce_force_bends(model, data, slopes, scratch.square)
    add_reduced(model, data, slopes.dq, data.gain, scratch.square)
    add_reduced(model, data, slopes.dv, slopes.velocity_slope, scratch.square)
    add_reduced(model, data, data.mass_matrix, slopes.acceleration_slope, scratch.square)
    add_reduced_constant(model, data, task.tendon_inertia, slopes.acceleration_slope, scratch.square)


@njit
def _reduce_dv(model: Model, data: Workspace, slopes: Slopes, scratch: Scratch, task: Task) -> None:
    """scratch.square (nu, nu) = ∂(Gᵀ τ)/∂u at constant u̇."""
    _clear(scratch.square, data)
    add_reduced(model, data, slopes.dv, data.gain, scratch.square)
    add_reduced(model, data, data.mass_matrix, slopes.twice, scratch.square)
    add_reduced_constant(model, data, task.tendon_inertia, slopes.twice, scratch.square)


# ------------------------------------------------------------------ forward dynamics


@njit
def _forward_dynamics(
    robot: RobotBundle, slopes: Slopes, scratch: Scratch, task: Task, batch: Batch, first: int
) -> None:
    """∂q̈/∂q = -M⁻¹ ∂τ/∂q and ∂q̈/∂v = -M⁻¹ ∂τ/∂v at the acceleration q̈, ∂q̈/∂τ = M⁻¹: Carpentier and Mansard 2018."""
    model, data = robot.model, robot.data
    H = data.factor if task.reduced[0] == 1 else data.mass_matrix
    if task.reduced[0] == 1:
        if task.tendon_inertia.shape[0] > 0:
            _clear(H, data)
        reduce_matrix(model, data, scratch.zero)
    _add_tendon_inertia(model, data, scratch, task, H)
    factorise_checked(H, task.parent, task.run, data, scratch)
    if batch.forward_dynamics_dtau.shape[0] > 0:
        invert(H, scratch.pivot, task.parent, scratch.square)
        _write_square(data, scratch, batch.forward_dynamics_dtau, first)
    if batch.forward_dynamics_dq.shape[0] + batch.forward_dynamics_dv.shape[0] == 0:
        return
    if batch.forward_dynamics_dq.shape[0] > 0:  # ∂τ/∂v does not depend on the acceleration
        _accelerate(robot, H, slopes, scratch, task, batch, first)
    _slopes_at(robot, slopes.acceleration, slopes, scratch, task, batch)
    if batch.forward_dynamics_dq.shape[0] > 0:
        for k in range(slopes.tau.shape[0]):  # Gᵀ turns given forces, too: those of followers reach their leaders by it
            slopes.tau[k] = slopes.tau[k] - scratch.input[k]
        _solve_slopes(robot, H, slopes, scratch, task, True)
        _write_square(data, scratch, batch.forward_dynamics_dq, first)
    if batch.forward_dynamics_dv.shape[0] > 0:
        _solve_slopes(robot, H, slopes, scratch, task, False)
        _write_square(data, scratch, batch.forward_dynamics_dv, first)


@njit
def _add_tendon_inertia(model: Model, data: Workspace, scratch: Scratch, task: Task, H: Lanes2) -> None:
    """Add the inertia of tendons to the lower triangle of H, M or GᵀMG."""
    E = task.tendon_inertia
    if task.reduced[0] == 1 and E.shape[0] > 0:
        _clear(scratch.square, data)
        add_reduced_constant(model, data, E, data.gain, scratch.square)
        for a in range(H.shape[0]):
            for b in range(a + 1):
                H[a, b] = H[a, b] + scratch.square[a, b]
    elif E.shape[0] > 0:
        for k in range(H.shape[0]):
            for j in range(k + 1):
                H[k, j] = H[k, j] + E[k, j]


@njit
def _accelerate(
    robot: RobotBundle,
    H: Lanes2,
    slopes: Slopes,
    scratch: Scratch,
    task: Task,
    batch: Batch,
    first: int,
) -> None:
    """slopes.acceleration (nv,) under the joint forces tau and the wrenches, by the factors H of M or GᵀMG."""
    model, data = robot.model, robot.data
    _joint_forces(robot, data.drift, slopes, scratch, task, batch)
    if batch.tau.shape[0] > 0:
        gather(batch.tau, first, scratch.input)
        scratch.check[OF_INPUTS] = scratch.check[OF_INPUTS] + wrong_share(scratch.input, data)
    else:
        for k in range(scratch.input.shape[0]):
            scratch.input[k] = scratch.zero[k]
    a = slopes.acceleration
    for k in range(a.shape[0]):
        a[k] = scratch.input[k] - slopes.tau[k]
    if task.reduced[0] == 0:
        solve(H, scratch.pivot, task.parent, task.run, a)
    else:
        reduce_vector(model, a, data, scratch.reduced)
        solve(H, scratch.pivot, task.parent, task.run, scratch.reduced)
        expand_velocity(model, scratch.reduced, data, a)
        for k in range(a.shape[0]):
            a[k] = a[k] + data.drift[k]


@njit
def _solve_slopes(
    robot: RobotBundle, H: Lanes2, slopes: Slopes, scratch: Scratch, task: Task, by_position: bool
) -> None:
    """scratch.square = -M⁻¹ ∂τ/∂q, or -M⁻¹ ∂τ/∂v, by the factors H of M or GᵀMG. O(n² d)."""
    out = scratch.square
    if task.reduced[0] == 1:
        if by_position:
            _reduce_dq(robot.model, robot.data, slopes, scratch, task)
        else:
            _reduce_dv(robot.model, robot.data, slopes, scratch, task)
    X = out if task.reduced[0] == 1 else slopes.dq if by_position else slopes.dv
    for k in range(out.shape[0]):
        for j in range(out.shape[0]):
            out[k, j] = -X[k, j]
    solve_rows(H, scratch.pivot, task.parent, task.run, out)


# ------------------------------------------------------------------ links and momentum


@njit
def _motion(robot: RobotBundle, slopes: Slopes, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Derivatives of the motion of links and of the whole robot, which know nothing of gravity and wrenches."""
    model, state, data = robot.model, robot.state, robot.data
    fall(model, data, 0.0)
    body_forces(model, state.qvel, scratch.qacc, data)
    fall(model, data, 1.0)
    clear_wrench_maps(model, data, slopes)
    column_slopes(model, data, slopes)
    if task.reduced[0] == 1:
        coupling_slopes(model, state.qpos, state.qvel, scratch.qacc, data, slopes)
    if batch.link_velocity_dq.size > 0:
        link_velocity_slopes(model, data, scratch, task, slopes, batch, first)
    if batch.link_acceleration_dq.size + batch.link_acceleration_dv.size > 0:
        link_acceleration_slopes(model, data, scratch, task, slopes, batch, first)
    whole = batch.momentum_dq.shape[0] + batch.momentum_rate_dq.shape[0] + batch.momentum_rate_dv.shape[0]
    if whole > 0:
        centre_of_mass(model, data, scratch.com)
        centroidal_map(model, data, scratch.com, scratch.columns)
        _momentum_rate(robot, slopes, scratch, task, batch, first)
    if batch.momentum_dq.shape[0] > 0:
        _momentum(robot, slopes, scratch, task, batch, first)


@njit
def _momentum_rate(robot: RobotBundle, slopes: Slopes, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Write the derivatives of the rate of the momentum, from the forces in data."""
    model, data = robot.model, robot.data
    if batch.momentum_rate_dq.shape[0] + batch.momentum_rate_dv.shape[0] == 0:
        return
    dq, dv = slopes.columns_dq, slopes.columns_dv
    gather_forces(model, data, slopes.tau)
    root_wrench(model, data, scratch.com, scratch.vector)
    momentum_rate_derivatives(model, data, slopes, scratch.com, scratch.vector, dq, dv)
    if batch.momentum_rate_dq.shape[0] > 0:
        if task.reduced[0] == 1:
            reduce_columns_dq(model, data, scratch, slopes)
            scatter_row(scratch.reduced_columns, batch.momentum_rate_dq, first, scratch.stage)
        else:
            scatter_row(dq, batch.momentum_rate_dq, first, scratch.stage)
    if batch.momentum_rate_dv.shape[0] > 0:
        if task.reduced[0] == 1:
            reduce_columns_dv(model, data, scratch, slopes)
            scatter_row(scratch.reduced_columns, batch.momentum_rate_dv, first, scratch.stage)
        else:
            scatter_row(dv, batch.momentum_rate_dv, first, scratch.stage)


@njit
def _momentum(robot: RobotBundle, slopes: Slopes, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Write the derivative of the momentum by position."""
    model, data = robot.model, robot.data
    body_momenta(model, data)
    gather_forces(model, data, slopes.tau)
    root_wrench(model, data, scratch.com, scratch.vector)
    momentum_derivative(model, data, scratch.com, scratch.vector, slopes.columns_dq)
    if task.reduced[0] == 1:
        _clear(scratch.reduced_columns, data)
        add_reduced_columns(model, slopes.columns_dq, data.gain, scratch.reduced_columns)
        add_reduced_columns(model, scratch.columns, slopes.velocity_slope, scratch.reduced_columns)
        scatter_row(scratch.reduced_columns, batch.momentum_dq, first, scratch.stage)
    else:
        scatter_row(slopes.columns_dq, batch.momentum_dq, first, scratch.stage)
