"""The kernel of `robot.compute` and `artsim batch`: quantities of a table of configurations, 1 or 8 at once.

Intermediate results that several quantities need are computed once per pack: kinematics, then mass properties, then
composites.
"""

from __future__ import annotations

from artsim.sim.articulation.centroidal import (
    centre_of_mass,
    centre_of_mass_jacobian,
    centroidal_map,
    kinetic_energy,
    momentum,
    potential_energy,
    root_wrench,
)
from artsim.sim.articulation.coupling import expand, follow, reduce_matrix, reduce_vector
from artsim.sim.articulation.dynamics import (
    add_to_parents,
    articulated_dynamics,
    coupled_bias,
    factorise,
    inverse_dynamics,
    invert,
    mass_matrix,
    solve,
)
from artsim.sim.articulation.joint_forces import gravity_compensation, joint_forces
from artsim.sim.articulation.kinematics import like, motion_columns, place_body, turn_inertia, velocities
from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.articulation.state import Joints, RobotBundle, Workspace
from artsim.sim.foundation.gather_scatter import gather, scatter_chosen, scatter_row
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, lane_count, lane_of, sqrt, where_greater
from artsim.sim.foundation.records import ConstInts1, Lanes1, Lanes2, Real, Reals2
from artsim.sim.foundation.vec3 import dot
from artsim.sim.quantities.catalogue import BAD_INPUT, BAD_RESULT, OK
from artsim.sim.quantities.compute_records import END_ROW, FIRST_ROW, OF_INPUTS, OF_RESULTS, Batch, Scratch, Task
from artsim.sim.quantities.link_quantities import (
    fall,
    gain_rates,
    jacobian_rates,
    jacobians,
    link_accelerations,
    link_velocities,
    poses,
    reduce_rows,
    wrench_forces,
)

_LARGEST = 1e15  # the sine of a larger angle has no correct digit; products of smaller inputs do not overflow
SINGULAR = 1e10  # ratio of inertia to pivot above which the pivot is rounding: robots have 1e6, singular ones 3e10


@njit
def compute(robot: RobotBundle, joints: Joints, scratch: Scratch, task: Task, batch: Batch) -> None:
    """Compute all wanted quantities of the task's rows; joints, scratch: of the lanes; batch: inputs and outputs."""
    constants(robot, scratch)
    for first in range(task.rows[FIRST_ROW], task.rows[END_ROW], lane_count(robot.state.qpos)):
        load_inputs(robot, scratch, task, batch, first)
        if task.places[0] == 1:
            _place(robot, task, batch)
            _links(robot, scratch, task, batch, first)
            _whole_robot(robot, scratch, task, batch, first)
            _matrices(robot, scratch, task, batch, first)
            _forward_dynamics(robot, scratch, task, batch, first)
        _forces(robot, joints, scratch, task, batch, first)
        _status(robot.data, scratch, batch, first)


# ------------------------------------------------------------------ inputs and status


@njit
def constants(robot: RobotBundle, scratch: Scratch) -> None:
    """Set the values that are constant over packs: inputs not given, and gains and drifts of independent dofs."""
    data = robot.data
    zero = like(0.0, data)
    for k in range(scratch.zero.shape[0]):
        robot.state.qvel[k] = zero
        scratch.qacc[k] = zero
        scratch.zero[k] = zero
        data.gain[k] = like(1.0, data)
        data.drift[k] = zero


@njit
def load_inputs(robot: RobotBundle, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Load state and acceleration of the pack, with followers from their leaders if reduced; flags wrong inputs."""
    model, state, data = robot.model, robot.state, robot.data
    gather(batch.qpos, first, state.qpos)
    scratch.check[OF_INPUTS] = normalise(model, state.qpos, data)
    if batch.qvel.shape[0] > 0:
        gather(batch.qvel, first, state.qvel)
    if batch.qacc.shape[0] > 0:
        gather(batch.qacc, first, scratch.qacc)
    if task.reduced[0] == 1:
        expand(model, state.qpos, state.qvel, data)
        _expand_acceleration(model, data, scratch)
    scratch.check[OF_INPUTS] = scratch.check[OF_INPUTS] + wrong_share(state.qpos, data)
    if batch.qvel.shape[0] > 0:
        scratch.check[OF_INPUTS] = scratch.check[OF_INPUTS] + wrong_share(state.qvel, data)
    if batch.qacc.shape[0] > 0:
        scratch.check[OF_INPUTS] = scratch.check[OF_INPUTS] + wrong_share(scratch.qacc, data)
    scratch.check[OF_RESULTS] = like(0.0, data)


@njit
def _expand_acceleration(model: Model, data: Workspace, scratch: Scratch) -> None:
    """scratch.qacc = G u̇ + Ġ u, where u̇ are its independent entries."""
    for k in range(scratch.zero.shape[0]):
        a = model.dof_independent[k]
        scratch.input[k] = scratch.qacc[model.independent_dof[a]] if a >= 0 else like(0.0, data)
    for k in range(scratch.zero.shape[0]):
        scratch.qacc[k] = data.gain[k] * scratch.input[k] + data.drift[k]


@inlined
def wrong_share(values: Lanes1, data: Workspace) -> Real:
    """0 if all values are numbers up to _LARGEST, otherwise NaN or more than that."""
    largest = like(_LARGEST, data)
    zero = like(0.0, data)
    total = zero
    for k in range(values.shape[0]):
        y = absolute(values[k])
        total = total + where_greater(y, largest, largest, zero * y)
    return total


@inlined
def check_result(values: Lanes1, data: Workspace, scratch: Scratch) -> None:
    """scratch.check[1] stays 0 while all values are finite; otherwise it becomes NaN."""
    total = like(0.0, data)
    for k in range(values.shape[0]):
        total = total + 0.0 * values[k]
    scratch.check[OF_RESULTS] = scratch.check[OF_RESULTS] + total


@njit
def normalise(model: Model, q: Lanes1, data: Workspace) -> Real:
    """Normalise quaternions, which files round; one of length 0 becomes NaN. Returns `wrong_share` of them."""
    wrong = like(0.0, data)
    for i in range(1, model.body_parent.shape[0]):
        kind = model.joint_type[i]
        if kind == BALL or kind == FREE:
            n = model.body_coord[i] + (3 if kind == FREE else 0)
            wrong = wrong + wrong_share(q[n : n + 4], data)
            scale = 1.0 / sqrt(q[n] * q[n] + q[n + 1] * q[n + 1] + q[n + 2] * q[n + 2] + q[n + 3] * q[n + 3])
            for k in range(n, n + 4):
                q[k] = q[k] * scale
    return wrong


@njit
def _status(data: Workspace, scratch: Scratch, batch: Batch, first: int) -> None:
    for lane in range(lane_count(data.arm)):
        status = OK
        if lane_of(scratch.check[OF_RESULTS], lane) != 0.0:
            status = BAD_RESULT
        if lane_of(scratch.check[OF_INPUTS], lane) != 0.0:
            status = BAD_INPUT
        batch.status[first + lane] = status


# ------------------------------------------------------------------ quantities


@njit
def _place(robot: RobotBundle, task: Task, batch: Batch) -> None:
    """Compute the poses of the bodies and, while their rotations are in registers, the mass properties needed."""
    model, data = robot.model, robot.data
    composite = (
        batch.mass_matrix.shape[0] + batch.inverse_mass_matrix.shape[0] + batch.centroidal_momentum_matrix.shape[0]
    )
    composite += (
        batch.momentum.shape[0] + batch.com.shape[0] + batch.com_jacobian.shape[0] + batch.potential_energy.shape[0]
    )
    composite += batch.centroidal_bias.shape[0] + task.reduced[0] * batch.forward_dynamics.shape[0]
    single = batch.forward_dynamics.shape[0] + batch.centroidal_bias.shape[0] + batch.kinetic_energy.shape[0]
    for i in range(1, model.body_parent.shape[0]):
        place_body(model, robot.state.qpos, data, i)
        if single > 0:
            turn_inertia(model, data, i, data.moment, data.inertia)
        if composite > 0:
            turn_inertia(model, data, i, data.composite_moment, data.composite_inertia)
    if composite > 0:
        add_to_parents(model, data)


@njit
def _links(robot: RobotBundle, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    model, state, data = robot.model, robot.state, robot.data
    poses(model, data, scratch, task, batch, first)
    if batch.link_velocity.shape[0] + batch.jacobian_dot.shape[0] + batch.kinetic_energy.shape[0] > 0:
        velocities(model, state.qvel, data)
    if batch.link_velocity.shape[0] > 0:
        link_velocities(model, data, scratch, task, batch, first)
    if batch.jacobian.shape[0] > 0:
        jacobians(model, data, scratch, task, batch, first)
    if batch.jacobian_dot.shape[0] > 0:
        if task.reduced[0] == 1:
            gain_rates(model, state.qpos, state.qvel, data, scratch)
            if batch.jacobian.shape[0] == 0:
                motion_columns(model, data)
        jacobian_rates(model, data, scratch, task, batch, first)
    if batch.wrench.shape[0] > 0:
        wrench_forces(model, data, scratch, task, batch, first)
        scratch.check[OF_INPUTS] = scratch.check[OF_INPUTS] + wrong_share(scratch.wrench, data)
    if batch.external_force.shape[0] > 0:
        for k in range(data.bias.shape[0]):
            data.bias[k] = -scratch.external[k]
        _out(model, data, scratch, task, batch.external_force, first)
    if batch.link_acceleration.shape[0] > 0:
        link_accelerations(model, state.qvel, scratch.qacc, data, scratch, task, batch, first)


@njit
def _whole_robot(robot: RobotBundle, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Compute centre of mass, momentum and energy of the whole robot."""
    model, state, data = robot.model, robot.state, robot.data
    about = (
        batch.com.shape[0]
        + batch.centroidal_momentum_matrix.shape[0]
        + batch.momentum.shape[0]
        + batch.centroidal_bias.shape[0]
    )
    if about + batch.potential_energy.shape[0] > 0:
        centre_of_mass(model, data, scratch.com)
    if batch.com.shape[0] > 0:
        scatter_row(scratch.com, batch.com, first, scratch.stage)
    if batch.com_jacobian.shape[0] > 0:
        centre_of_mass_jacobian(model, data, scratch.short_columns)
        if task.reduced[0] == 1:
            reduce_rows(model, data, scratch.short_columns, scratch.reduced_short_columns)
            scatter_row(scratch.reduced_short_columns, batch.com_jacobian, first, scratch.stage)
        else:
            scatter_row(scratch.short_columns, batch.com_jacobian, first, scratch.stage)
    if batch.centroidal_momentum_matrix.shape[0] + batch.momentum.shape[0] > 0:
        centroidal_map(model, data, scratch.com, scratch.columns)
        if batch.momentum.shape[0] > 0:
            momentum(scratch.columns, state.qvel, like(0.0, data), scratch.vector)
            scatter_row(scratch.vector, batch.momentum, first, scratch.stage)
        if batch.centroidal_momentum_matrix.shape[0] > 0:
            if task.reduced[0] == 1:
                reduce_rows(model, data, scratch.columns, scratch.reduced_columns)
                scatter_row(scratch.reduced_columns, batch.centroidal_momentum_matrix, first, scratch.stage)
            else:
                scatter_row(scratch.columns, batch.centroidal_momentum_matrix, first, scratch.stage)
    if batch.centroidal_bias.shape[0] > 0:
        fall(model, data, 0.0)
        inverse_dynamics(model, state.qvel, data.drift, data, data.bias)
        fall(model, data, 1.0)
        root_wrench(model, data, scratch.com, scratch.vector)
        scatter_row(scratch.vector, batch.centroidal_bias, first, scratch.stage)
    if batch.kinetic_energy.shape[0] > 0:
        scratch.number[0] = kinetic_energy(model, state.qvel, data)
        scatter_row(scratch.number, batch.kinetic_energy, first, scratch.stage)
    if batch.potential_energy.shape[0] > 0:
        scratch.number[0] = potential_energy(model, state.qpos, scratch.com)
        scatter_row(scratch.number, batch.potential_energy, first, scratch.stage)


@njit
def _forces(robot: RobotBundle, joints: Joints, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Compute the joint forces of gravity, velocity and acceleration, which need no poses of bodies."""
    model, state, data = robot.model, robot.state, robot.data
    placed = batch.gravity.shape[0] > 0
    if batch.gravity.shape[0] > 0:
        gravity_compensation(model, state.qpos, data, joints, data.bias)
        _out(model, data, scratch, task, batch.gravity, first)
    if batch.coriolis.shape[0] > 0:
        joint_forces(robot, state.qpos, state.qvel, data.drift, 0.0, placed, joints, data.bias)
        placed = True
        _add_rotors(model, data.drift, data.bias)
        _out(model, data, scratch, task, batch.coriolis, first)
    if batch.bias.shape[0] > 0:
        joint_forces(robot, state.qpos, state.qvel, data.drift, 1.0, placed, joints, data.bias)
        placed = True
        _add_rotors(model, data.drift, data.bias)
        _out(model, data, scratch, task, batch.bias, first)
    if batch.inverse_dynamics.shape[0] > 0:
        joint_forces(robot, state.qpos, state.qvel, scratch.qacc, 1.0, placed, joints, data.bias)
        _add_rotors(model, scratch.qacc, data.bias)
        if batch.wrench.shape[0] > 0:
            for k in range(data.bias.shape[0]):
                data.bias[k] = data.bias[k] - scratch.external[k]
        _out(model, data, scratch, task, batch.inverse_dynamics, first)


@inlined
def _add_rotors(model: Model, a: Lanes1, tau: Lanes1) -> None:
    """Add the inertia forces of the rotors at accelerations a (nv,)."""
    for k in range(tau.shape[0]):
        tau[k] = tau[k] + model.armature[k] * a[k]


@inlined
def _out(model: Model, data: Workspace, scratch: Scratch, task: Task, out: Reals2, first: int) -> None:
    """Write data.bias as a row; if reduced, Gᵀ data.bias."""
    if task.reduced[0] == 1:
        reduce_vector(model, data.bias, data, scratch.reduced)
        check_result(scratch.reduced, data, scratch)
        scatter_row(scratch.reduced, out, first, scratch.stage)
    else:
        check_result(data.bias, data, scratch)
        scatter_row(data.bias, out, first, scratch.stage)


@njit
def _matrices(robot: RobotBundle, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    """Compute M and its inverse; if reduced, those of GᵀMG, whose factors stay in data.factor for forward dynamics."""
    model, data = robot.model, robot.data
    reduced_forward = task.reduced[0] * batch.forward_dynamics.shape[0]
    if batch.mass_matrix.shape[0] + batch.inverse_mass_matrix.shape[0] + reduced_forward > 0:
        mass_matrix(model, data)
        if task.reduced[0] == 1:
            reduce_matrix(model, data, scratch.zero)
            _matrices_of(
                data.factor, model.independent_parent, model.independent_run, data, scratch, task, batch, first
            )
        else:
            _matrices_of(data.mass_matrix, model.dof_parent, model.dof_run, data, scratch, task, batch, first)
    if batch.coupling_matrix.shape[0] > 0:
        _coupling_matrix(robot, scratch, batch, first)


@njit
def _matrices_of(
    M: Lanes2,
    parent: ConstInts1,
    run: ConstInts1,
    data: Workspace,
    scratch: Scratch,
    task: Task,
    batch: Batch,
    first: int,
) -> None:
    """Write the outputs of M (lower triangle, entries of the tree's ancestors); factorise it if more is wanted."""
    if batch.mass_matrix.shape[0] > 0:
        scatter_chosen(M, task.mass_entries, batch.mass_matrix, first, scratch.stage)
    if batch.inverse_mass_matrix.shape[0] + task.reduced[0] * batch.forward_dynamics.shape[0] > 0:
        factorise_checked(M, parent, run, data, scratch)
    if batch.inverse_mass_matrix.shape[0] > 0:
        invert(M, scratch.pivot, parent, scratch.square)
        scatter_chosen(scratch.square, task.inverse_entries, batch.inverse_mass_matrix, first, scratch.stage)


@njit
def factorise_checked(M: Lanes2, parent: ConstInts1, run: ConstInts1, data: Workspace, scratch: Scratch) -> None:
    """Factorise M (n, n) in place, the inverse pivots into scratch.pivot; flags pivots that are rounding."""
    for k in range(M.shape[0]):
        scratch.column[k] = M[k, k]
    factorise(M, scratch.pivot, parent, run)
    for k in range(M.shape[0]):
        check_pivot(scratch.pivot[k], scratch.column[k], data, scratch)


@inlined
def check_pivot(inverse: Real, inertia: Real, data: Workspace, scratch: Scratch) -> None:
    """scratch.check[1] stays 0 while 1 / inverse, the pivot, is a positive share of the inertia and not rounding."""
    worst = like(SINGULAR, data)
    zero = like(0.0, data)
    wrong = where_greater(inverse * inertia, worst, worst, zero * inverse)
    scratch.check[OF_RESULTS] = scratch.check[OF_RESULTS] + where_greater(inverse, zero, wrong, worst)


@njit
def _check_pivots(model: Model, data: Workspace, scratch: Scratch) -> None:
    """Check the pivots of `articulated_dynamics` against the inertia that each dof moves if all others are locked."""
    for i in range(model.body_parent.shape[0]):
        scratch.inertia[i] = data.inertia[i, 0] + data.inertia[i, 3] + data.inertia[i, 5]
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        d = data.offset[i]
        scratch.inertia[model.body_parent[i]] += scratch.inertia[i] + model.carried_mass[i] * dot(d, d)
    for k in range(model.dof_body.shape[0]):
        i = model.dof_body[k]
        inertia = like(model.carried_mass[i], data) if model.dof_linear[k] else scratch.inertia[i]
        check_pivot(data.pivot[k], inertia, data, scratch)


@njit
def _coupling_matrix(robot: RobotBundle, scratch: Scratch, batch: Batch, first: int) -> None:
    """Compute G, one entry per row, without changing state and gains of the pack."""
    model, data = robot.model, robot.data
    for k in range(scratch.gain.shape[0]):
        scratch.gain[k] = like(1.0 if model.dof_independent[k] >= 0 else 0.0, data)
        if model.dof_coord[k] >= 0:
            scratch.input[k] = robot.state.qpos[model.dof_coord[k]]
    for c in range(model.coupling_follower.shape[0]):
        f = model.coupling_follower[c]
        l = model.coupling_leader[c]
        if l >= 0:
            y, slope, _ = follow(model.coupling_polynomial[c], scratch.input[l])
            scratch.input[f] = y
            scratch.gain[f] = slope * scratch.gain[l]
    for k in range(scratch.gains.shape[0]):
        for a in range(scratch.gains.shape[1]):
            scratch.gains[k, a] = scratch.gain[k] if model.dof_independent[k] == a else like(0.0, data)
    scatter_row(scratch.gains, batch.coupling_matrix, first, scratch.stage)


@njit
def _forward_dynamics(robot: RobotBundle, scratch: Scratch, task: Task, batch: Batch, first: int) -> None:
    model, state, data = robot.model, robot.state, robot.data
    if batch.forward_dynamics.shape[0] == 0:
        return
    if batch.tau.shape[0] > 0:
        gather(batch.tau, first, scratch.input)
        scratch.check[OF_INPUTS] = scratch.check[OF_INPUTS] + wrong_share(scratch.input, data)
    else:
        for k in range(scratch.input.shape[0]):
            scratch.input[k] = scratch.zero[k]
    if batch.wrench.shape[0] > 0:
        for k in range(scratch.input.shape[0]):
            scratch.input[k] = scratch.input[k] + scratch.external[k]
    if task.reduced[0] == 1:
        coupled_bias(model, state.qvel, data)
        for k in range(scratch.input.shape[0]):
            data.bias[k] = scratch.input[k] - data.bias[k]
        reduce_vector(model, data.bias, data, scratch.reduced)
        solve(data.factor, scratch.pivot, model.independent_parent, model.independent_run, scratch.reduced)
        check_result(scratch.reduced, data, scratch)
        scatter_row(scratch.reduced, batch.forward_dynamics, first, scratch.stage)
    else:
        for k in range(scratch.diagonal.shape[0]):
            scratch.diagonal[k] = like(model.armature[k], data)
        articulated_dynamics(model, state.qvel, scratch.input, scratch.diagonal, data, data.bias)
        _check_pivots(model, data, scratch)
        check_result(data.bias, data, scratch)
        scatter_row(data.bias, batch.forward_dynamics, first, scratch.stage)
