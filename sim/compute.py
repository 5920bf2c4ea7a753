"""The kernel of `robot.compute` and `artsim batch`: quantities of a table of configurations, 1 or 8 at once.

What several quantities need is computed once per pack: kinematics, then mass properties, then composites.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.centroidal import (
    centre_of_mass,
    centre_of_mass_jacobian,
    centroidal_map,
    kinetic_energy,
    momentum,
    potential_energy,
    root_wrench,
)
from artsim.sim.coupling import expand, follow, reduce_matrix, reduce_vector
from artsim.sim.dynamics import (
    add_to_parents,
    articulated_dynamics,
    coupled_bias,
    factorise,
    inverse_dynamics,
    invert,
    mass_matrix,
    solve,
)
from artsim.sim.jit import inlined, njit
from artsim.sim.joint_forces import gravity_compensation, joint_forces
from artsim.sim.kinematics import like, motion_columns, place_body, turn_inertia, velocities
from artsim.sim.lanes import absolute, lane_count, lane_of, sqrt, where_greater
from artsim.sim.link_quantities import (
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
from artsim.sim.model import BALL, FREE
from artsim.sim.quantities import BAD_INPUT, BAD_RESULT, OK
from artsim.sim.tables import gather, scatter_chosen, scatter_row

_LARGEST = 1e15  # the sine of an angle above it has no digit left; products of such inputs do not overflow
_SINGULAR = 1e10  # an inertia over its pivot above which rounding takes the pivot: robots have 1e6, singular ones 3e10


@njit
def compute(m: Any, s: Any, w: Any, j: Any, x: Any, t: Any, b: Any) -> None:
    """All wanted quantities of the task's rows. j, x: lane scratch; t: the task; b: inputs and outputs."""
    _constants(s, w, x)
    for first in range(t.rows[0], t.rows[1], lane_count(s.qpos)):
        _inputs(m, s, w, x, t, b, first)
        if t.places[0] == 1:
            _place(m, s, w, t, b)
            _links(m, s, w, x, t, b, first)
            _whole_robot(m, s, w, x, t, b, first)
            _matrices(m, s, w, x, t, b, first)
            _forward_dynamics(m, s, w, x, t, b, first)
        _forces(m, s, w, j, x, t, b, first)
        _status(w, x, b, first)


# ------------------------------------------------------------------ inputs and status


@njit
def _constants(s: Any, w: Any, x: Any) -> None:
    """What no pack changes: inputs that are not given, the gains and drifts of dofs that follow nothing."""
    zero = like(0.0, w)
    for k in range(x.zero.shape[0]):
        s.qvel[k] = zero
        x.qacc[k] = zero
        x.zero[k] = zero
        w.gain[k] = like(1.0, w)
        w.drift[k] = zero


@njit
def _inputs(m: Any, s: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """State and acceleration of the pack, followers from their leaders when reduced; x.check sees what is wrong."""
    gather(b.qpos, first, s.qpos)
    x.check[0] = normalise(m, s.qpos, w)
    if b.qvel.shape[0] > 0:
        gather(b.qvel, first, s.qvel)
    if b.qacc.shape[0] > 0:
        gather(b.qacc, first, x.qacc)
    if t.reduced[0] == 1:
        expand(m, s.qpos, s.qvel, w)
        _expand_acceleration(m, w, x)
    x.check[0] = x.check[0] + _wrong(s.qpos, w)
    if b.qvel.shape[0] > 0:
        x.check[0] = x.check[0] + _wrong(s.qvel, w)
    if b.qacc.shape[0] > 0:
        x.check[0] = x.check[0] + _wrong(x.qacc, w)
    x.check[1] = like(0.0, w)


@njit
def _expand_acceleration(m: Any, w: Any, x: Any) -> None:
    """x.qacc = G u̇ + Ġ u, u̇ being its independent entries."""
    for k in range(x.zero.shape[0]):
        a = m.dof_independent[k]
        x.input[k] = x.qacc[m.independent_dof[a]] if a >= 0 else like(0.0, w)
    for k in range(x.zero.shape[0]):
        x.qacc[k] = w.gain[k] * x.input[k] + w.drift[k]


@inlined
def _wrong(values: Any, w: Any) -> Any:
    """0 when all values are numbers up to _LARGEST, NaN or more than that otherwise."""
    largest = like(_LARGEST, w)
    zero = like(0.0, w)
    total = zero
    for k in range(values.shape[0]):
        y = absolute(values[k])
        total = total + where_greater(y, largest, largest, zero * y)
    return total


@inlined
def _check_result(values: Any, w: Any, x: Any) -> None:
    """x.check[1] stays 0 while all values are finite; otherwise it becomes NaN."""
    total = like(0.0, w)
    for k in range(values.shape[0]):
        total = total + 0.0 * values[k]
    x.check[1] = x.check[1] + total


@njit
def normalise(m: Any, q: Any, w: Any) -> Any:
    """Quaternions to unit length: those of files are rounded. One of length 0 becomes NaN. Returns `_wrong` of them."""
    wrong = like(0.0, w)
    for i in range(1, m.body_parent.shape[0]):
        kind = m.joint_type[i]
        if kind == BALL or kind == FREE:
            n = m.body_coord[i] + (3 if kind == FREE else 0)
            wrong = wrong + _wrong(q[n : n + 4], w)
            scale = 1.0 / sqrt(q[n] * q[n] + q[n + 1] * q[n + 1] + q[n + 2] * q[n + 2] + q[n + 3] * q[n + 3])
            for k in range(n, n + 4):
                q[k] = q[k] * scale
    return wrong


@njit
def _status(w: Any, x: Any, b: Any, first: Any) -> None:
    for lane in range(lane_count(w.arm)):
        status = OK
        if lane_of(x.check[1], lane) != 0.0:
            status = BAD_RESULT
        if lane_of(x.check[0], lane) != 0.0:
            status = BAD_INPUT
        b.status[first + lane] = status


# ------------------------------------------------------------------ quantities


@njit
def _place(m: Any, s: Any, w: Any, t: Any, b: Any) -> None:
    """Where bodies are; of their mass properties what is needed, while their rotations are at hand."""
    composite = b.mass_matrix.shape[0] + b.inverse_mass_matrix.shape[0] + b.centroidal_momentum_matrix.shape[0]
    composite += b.momentum.shape[0] + b.com.shape[0] + b.com_jacobian.shape[0] + b.potential_energy.shape[0]
    composite += b.centroidal_bias.shape[0] + t.reduced[0] * b.forward_dynamics.shape[0]
    single = b.forward_dynamics.shape[0] + b.centroidal_bias.shape[0] + b.kinetic_energy.shape[0]
    for i in range(1, m.body_parent.shape[0]):
        place_body(m, s.qpos, w, i)
        if single > 0:
            turn_inertia(m, w, i, w.moment, w.inertia)
        if composite > 0:
            turn_inertia(m, w, i, w.composite_moment, w.composite_inertia)
    if composite > 0:
        add_to_parents(m, w)


@njit
def _links(m: Any, s: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    poses(m, w, x, t, b, first)
    if b.link_velocity.shape[0] + b.jacobian_dot.shape[0] + b.kinetic_energy.shape[0] > 0:
        velocities(m, s.qvel, w)
    if b.link_velocity.shape[0] > 0:
        link_velocities(m, w, x, t, b, first)
    if b.jacobian.shape[0] > 0:
        jacobians(m, w, x, t, b, first)
    if b.jacobian_dot.shape[0] > 0:
        if t.reduced[0] == 1:
            gain_rates(m, s.qpos, s.qvel, w, x)
            if b.jacobian.shape[0] == 0:
                motion_columns(m, w)
        jacobian_rates(m, w, x, t, b, first)
    if b.wrench.shape[0] > 0:
        wrench_forces(m, w, x, t, b, first)
        x.check[0] = x.check[0] + _wrong(x.wrench, w)
    if b.external_force.shape[0] > 0:
        for k in range(w.bias.shape[0]):
            w.bias[k] = -x.external[k]
        _out(m, w, x, t, b.external_force, first)
    if b.link_acceleration.shape[0] > 0:
        link_accelerations(m, s.qvel, x.qacc, w, x, t, b, first)


@njit
def _whole_robot(m: Any, s: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """Centre of mass, momentum, energy."""
    about = b.com.shape[0] + b.centroidal_momentum_matrix.shape[0] + b.momentum.shape[0] + b.centroidal_bias.shape[0]
    if about + b.potential_energy.shape[0] > 0:
        centre_of_mass(m, w, x.com)
    if b.com.shape[0] > 0:
        scatter_row(x.com, b.com, first, x.stage)
    if b.com_jacobian.shape[0] > 0:
        centre_of_mass_jacobian(m, w, x.short_columns)
        if t.reduced[0] == 1:
            reduce_rows(m, w, x.short_columns, x.reduced_short_columns)
            scatter_row(x.reduced_short_columns, b.com_jacobian, first, x.stage)
        else:
            scatter_row(x.short_columns, b.com_jacobian, first, x.stage)
    if b.centroidal_momentum_matrix.shape[0] + b.momentum.shape[0] > 0:
        centroidal_map(m, w, x.com, x.columns)
        if b.momentum.shape[0] > 0:
            momentum(x.columns, s.qvel, like(0.0, w), x.vector)
            scatter_row(x.vector, b.momentum, first, x.stage)
        if b.centroidal_momentum_matrix.shape[0] > 0:
            if t.reduced[0] == 1:
                reduce_rows(m, w, x.columns, x.reduced_columns)
                scatter_row(x.reduced_columns, b.centroidal_momentum_matrix, first, x.stage)
            else:
                scatter_row(x.columns, b.centroidal_momentum_matrix, first, x.stage)
    if b.centroidal_bias.shape[0] > 0:
        fall(m, w, 0.0)
        inverse_dynamics(m, s.qvel, w.drift, w, w.bias)
        fall(m, w, 1.0)
        root_wrench(m, w, x.com, x.vector)
        scatter_row(x.vector, b.centroidal_bias, first, x.stage)
    if b.kinetic_energy.shape[0] > 0:
        x.number[0] = kinetic_energy(m, s.qvel, w)
        scatter_row(x.number, b.kinetic_energy, first, x.stage)
    if b.potential_energy.shape[0] > 0:
        x.number[0] = potential_energy(m, s.qpos, x.com)
        scatter_row(x.number, b.potential_energy, first, x.stage)


@njit
def _forces(m: Any, s: Any, w: Any, j: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """Joint forces of gravity, velocity and acceleration: no body's place is needed for them."""
    placed = b.gravity.shape[0] > 0
    if b.gravity.shape[0] > 0:
        gravity_compensation(m, s.qpos, w, j, w.bias)
        _out(m, w, x, t, b.gravity, first)
    if b.coriolis.shape[0] > 0:
        joint_forces(m, s.qpos, s.qvel, w.drift, 0.0, placed, w, j, w.bias)
        placed = True
        _add_rotors(m, w.drift, w.bias)
        _out(m, w, x, t, b.coriolis, first)
    if b.bias.shape[0] > 0:
        joint_forces(m, s.qpos, s.qvel, w.drift, 1.0, placed, w, j, w.bias)
        placed = True
        _add_rotors(m, w.drift, w.bias)
        _out(m, w, x, t, b.bias, first)
    if b.inverse_dynamics.shape[0] > 0:
        joint_forces(m, s.qpos, s.qvel, x.qacc, 1.0, placed, w, j, w.bias)
        _add_rotors(m, x.qacc, w.bias)
        if b.wrench.shape[0] > 0:
            for k in range(w.bias.shape[0]):
                w.bias[k] = w.bias[k] - x.external[k]
        _out(m, w, x, t, b.inverse_dynamics, first)


@inlined
def _add_rotors(m: Any, a: Any, tau: Any) -> None:
    """What the rotors need for accelerations a."""
    for k in range(tau.shape[0]):
        tau[k] = tau[k] + m.armature[k] * a[k]


@inlined
def _out(m: Any, w: Any, x: Any, t: Any, out: Any, first: Any) -> None:
    """w.bias as a row; reduced: Gᵀ w.bias."""
    if t.reduced[0] == 1:
        reduce_vector(m, w.bias, w, x.reduced)
        _check_result(x.reduced, w, x)
        scatter_row(x.reduced, out, first, x.stage)
    else:
        _check_result(w.bias, w, x)
        scatter_row(w.bias, out, first, x.stage)


@njit
def _matrices(m: Any, s: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """M and its inverse; reduced: of GᵀMG, whose factors stay in w.factor for forward dynamics."""
    reduced_forward = t.reduced[0] * b.forward_dynamics.shape[0]
    if b.mass_matrix.shape[0] + b.inverse_mass_matrix.shape[0] + reduced_forward > 0:
        mass_matrix(m, w)
        if t.reduced[0] == 1:
            reduce_matrix(m, w, x.zero)
            _matrices_of(w.factor, m.independent_parent, m.independent_run, w, x, t, b, first)
        else:
            _matrices_of(w.mass_matrix, m.dof_parent, m.dof_run, w, x, t, b, first)
    if b.coupling_matrix.shape[0] > 0:
        _coupling_matrix(m, s, w, x, b, first)


@njit
def _matrices_of(M: Any, parent: Any, run: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    """Outputs of M (lower triangle, entries of the tree's ancestors); factorised when more than M is wanted."""
    n = M.shape[0]
    if b.mass_matrix.shape[0] > 0:
        scatter_chosen(M, t.mass_entries, b.mass_matrix, first, x.stage)
    if b.inverse_mass_matrix.shape[0] + t.reduced[0] * b.forward_dynamics.shape[0] > 0:
        for k in range(n):
            x.column[k] = M[k, k]
        factorise(M, x.pivot, parent, run)
        for k in range(n):
            _check_pivot(x.pivot[k], x.column[k], w, x)
    if b.inverse_mass_matrix.shape[0] > 0:
        invert(M, x.pivot, parent, x.square)
        scatter_chosen(x.square, t.inverse_entries, b.inverse_mass_matrix, first, x.stage)


@inlined
def _check_pivot(inverse: Any, inertia: Any, w: Any, x: Any) -> None:
    """x.check[1] stays 0 while 1 / inverse is a positive part of the inertia, not what rounding leaves of nothing."""
    worst = like(_SINGULAR, w)
    zero = like(0.0, w)
    wrong = where_greater(inverse * inertia, worst, worst, zero * inverse)
    x.check[1] = x.check[1] + where_greater(inverse, zero, wrong, worst)


@njit
def _check_pivots(m: Any, w: Any, x: Any) -> None:
    """The pivots of `articulated_dynamics` against the inertia that each dof would move if nothing gave way."""
    for i in range(m.body_parent.shape[0]):
        x.inertia[i] = w.inertia[i, 0] + w.inertia[i, 3] + w.inertia[i, 5]
    for i in range(m.body_parent.shape[0] - 1, 0, -1):
        d = w.offset[i]
        x.inertia[m.body_parent[i]] += x.inertia[i] + m.carried_mass[i] * (d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
    for k in range(m.dof_body.shape[0]):
        i = m.dof_body[k]
        inertia = like(m.carried_mass[i], w) if m.dof_linear[k] else x.inertia[i]
        _check_pivot(w.pivot[k], inertia, w, x)


@njit
def _coupling_matrix(m: Any, s: Any, w: Any, x: Any, b: Any, first: Any) -> None:
    """G, one entry a row. State and gains of the pack stay as they are: in full coordinates nothing else is coupled."""
    for k in range(x.gain.shape[0]):
        x.gain[k] = like(1.0 if m.dof_independent[k] >= 0 else 0.0, w)
        if m.dof_coord[k] >= 0:
            x.input[k] = s.qpos[m.dof_coord[k]]
    for c in range(m.coupling_follower.shape[0]):
        f = m.coupling_follower[c]
        l = m.coupling_leader[c]
        if l >= 0:
            y, slope, _ = follow(m.coupling_polynomial[c], x.input[l])
            x.input[f] = y
            x.gain[f] = slope * x.gain[l]
    for k in range(x.gains.shape[0]):
        for a in range(x.gains.shape[1]):
            x.gains[k, a] = x.gain[k] if m.dof_independent[k] == a else like(0.0, w)
    scatter_row(x.gains, b.coupling_matrix, first, x.stage)


@njit
def _forward_dynamics(m: Any, s: Any, w: Any, x: Any, t: Any, b: Any, first: Any) -> None:
    if b.forward_dynamics.shape[0] == 0:
        return
    if b.tau.shape[0] > 0:
        gather(b.tau, first, x.input)
        x.check[0] = x.check[0] + _wrong(x.input, w)
    else:
        for k in range(x.input.shape[0]):
            x.input[k] = x.zero[k]
    if b.wrench.shape[0] > 0:
        for k in range(x.input.shape[0]):
            x.input[k] = x.input[k] + x.external[k]
    if t.reduced[0] == 1:
        coupled_bias(m, s.qvel, w)
        for k in range(x.input.shape[0]):
            w.bias[k] = x.input[k] - w.bias[k]
        reduce_vector(m, w.bias, w, x.reduced)
        solve(w.factor, x.pivot, m.independent_parent, m.independent_run, x.reduced)
        _check_result(x.reduced, w, x)
        scatter_row(x.reduced, b.forward_dynamics, first, x.stage)
    else:
        for k in range(x.diagonal.shape[0]):
            x.diagonal[k] = like(m.armature[k], w)
        articulated_dynamics(m, s.qvel, x.input, x.diagonal, w, w.bias)
        _check_pivots(m, w, x)
        _check_result(w.bias, w, x)
        scatter_row(w.bias, b.forward_dynamics, first, x.stage)
