"""Derivatives of inverse dynamics, of the motion of links and of the momentum, by recursions. O(n d).

Carpentier and Mansard, Analytical Derivatives of Rigid Body Dynamics Algorithms (2018), in the form of Singh, Russell
and Wensing, Efficient Analytical Derivatives of Rigid-Body Dynamics Using Spatial Vector Algebra (2022): for dofs k of
body i and j of a joint above,

    ∂τ_k/∂q_j = S_k · (2B Ψ̇_j + I Ψ̈_j)           ∂τ_j/∂q_k = S_j · (2B Ψ̇_k + I Ψ̈_k + S_k ×* f)
    ∂τ_k/∂v_j = S_k · (2B S_j + I (Ψ̇_j + Ṡ_j))    ∂τ_j/∂v_k = S_j · (2B S_k + I (Ψ̇_k + Ṡ_k))

with Ψ̇ = v × S and Ψ̈ = a × S + v × Ψ̇ by the motion of the frame before the joint, and I, 2B, f of body i and all below
it. Of dofs of one joint the left column holds. A derivative by q_k is the one along unit velocity of dof k, rotations
of balls and free bodies about the body's own axes, where the components of v, a and τ stay as they are. Accelerations
are classical, as in kinematics.py, by which Ψ̈ of a rotation is (a × S + 2 u × (w × S), …) at the body's origin, whose
velocity is u and acceleration a, gravity taken off. 2B maps the angular part alone:

    2B ω = 2 Σ m (ω × ẋ, r × (ω × ẋ)) = (ω × P, C ω),    P = 2 Σ m ẋ,    C = 2 Σ m (r·ẋ 1 - ẋ rᵀ)

over the points r of the bodies. A wrench (f, n) at r that keeps its direction in the world differs from one that turns
with its body by (ω × f, r × (ω × f) + ω × n), which has the same form.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import follow
from artsim.sim.articulation.dynamics import along_axis, column_momentum
from artsim.sim.articulation.kinematics import axis_of, like, origin_of
from artsim.sim.articulation.model import WORLD, Model
from artsim.sim.articulation.slopes import Slopes
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import (
    add_matrix,
    matrix_minus,
    matrix_of,
    matrix_plus,
    multiple_of_unit,
    outer,
    set_matrix,
    skew_times,
    symmetric_of,
    symmetric_times,
    turned,
    turned_back,
    whole,
)
from artsim.sim.foundation.records import Force, Lanes1, Lanes2, Mat3, Motion, Reals2, Vec3
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.foundation.spatial import (
    motion_column,
    pair_of,
    pair_plus,
    power,
    set_motion_column,
    set_pair,
    set_six,
    shifted_force,
    shifted_motion,
    six_of,
    velocity_at,
)
from artsim.sim.foundation.vec3 import (
    add_to_row,
    cross,
    dot,
    minus,
    negative,
    plus,
    plus_times,
    row_of,
    set_row,
    times,
    zeros_like,
)

_C = 3  # where C begins in a map's row of twelve

# ------------------------------------------------------------------ forward


@njit
def column_slopes(model: Model, data: Workspace, slopes: Slopes) -> None:
    """Ψ̇, Ψ̈ and Ψ̇ + Ṡ of all dofs at the tree's reference point. Needs `velocities` and `accelerations`."""
    for k in range(model.dof_body.shape[0]):
        r = row_of(data.arm, model.dof_body[k])
        rate, bend, both = _own_slopes(model, data, k)
        set_six(slopes.psi_rate, k, shifted_motion(rate, r))
        set_six(slopes.psi_bend, k, shifted_motion(bend, r))
        set_six(slopes.column_rate, k, shifted_motion(both, r))


@inlined
def _own_slopes(model: Model, data: Workspace, k: int) -> tuple[Motion, Motion, Motion]:
    """Ψ̇, Ψ̈ and Ψ̇ + Ṡ of dof k at its body's origin, which the joint's own rotation does not move."""
    i = model.dof_body[k]
    above = model.body_parent[i]
    s, w = axis_of(data, k), row_of(data.angular_velocity, above)
    rate = cross(w, s)
    bend = plus(cross(row_of(data.angular_acceleration, above), s), cross(w, rate))
    if model.dof_linear[k]:
        return (rate, zeros_like(s)), (bend, zeros_like(s)), (times(2.0, rate), zeros_like(s))
    u, a = row_of(data.velocity, i), row_of(data.acceleration, i)
    e = cross(u, s)
    linear = plus_times(cross(a, s), 2.0, cross(u, rate))
    both = cross(plus(w, row_of(data.angular_velocity, i)), s)
    return (e, rate), (linear, bend), (times(2.0, e), both)


# ------------------------------------------------------------------ maps of angular velocities to forces


@njit
def coriolis_maps(model: Model, data: Workspace, slopes: Slopes) -> None:
    """2B of each body with all below it. Needs `world_inertia` and `velocities`.

    2 Σ m ẋ rᵀ = 2 (u hᵀ + [ω]× Q) with Q = Σ m r rᵀ = ½ tr(I) 1 - I, and [ω]× Q has no trace.
    """
    T = slopes.coriolis_map
    for i in range(1, model.body_parent.shape[0]):
        u, w = pair_of(data.velocity, data.angular_velocity, i)
        h, I = row_of(data.moment, i), symmetric_of(data.inertia, i, 0)
        half = 0.5 * (I[0] + I[3] + I[5])
        D = matrix_plus(outer(u, h), skew_times(w, matrix_minus(multiple_of_unit(half), whole(I))))
        set_row(T, i, times(2.0, plus(times(model.body_mass[i], u), cross(w, h))))
        set_matrix(T, i, _C, matrix_minus(multiple_of_unit(2.0 * dot(u, h)), matrix_plus(D, D)))
    _gather_maps(model, data, T)


@njit
def clear_wrench_maps(model: Model, data: Workspace, slopes: Slopes) -> None:
    """Start without external wrenches."""
    for i in range(model.body_parent.shape[0]):
        for n in range(12):
            slopes.wrench_map[i, n] = like(0.0, data)


@njit
def add_wrench(data: Workspace, slopes: Slopes, i: int, r: Vec3, F: Force) -> None:
    """Let a force and torque in world axes act on body i at r from its origin: takes it off the force that the body
    needs, and adds its map."""
    f, n = F
    add_to_row(data.force, i, negative(f))
    add_to_row(data.torque, i, negative(plus(n, cross(r, f))))
    add_to_row(slopes.wrench_map, i, f)
    zero = n[0] - n[0]
    add_matrix(slopes.wrench_map, i, _C, _arm_map(f, r))
    add_matrix(slopes.wrench_map, i, _C, (zero, n[2], -n[1], -n[2], zero, n[0], n[1], -n[0], zero))


@njit
def gather_wrench_maps(model: Model, data: Workspace, slopes: Slopes) -> None:
    """Let the wrenches on each body be those on all below it, too."""
    _gather_maps(model, data, slopes.wrench_map)


@njit
def _gather_maps(model: Model, data: Workspace, T: Lanes2) -> None:
    """Add each body's map to its parent's, about whose origin r is longer by the offset."""
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        above = model.body_parent[i]
        if above > 0:
            P, C = row_of(T, i), matrix_of(T, i, _C)
            add_to_row(T, above, P)
            add_matrix(T, above, _C, C)
            add_matrix(T, above, _C, _arm_map(P, row_of(data.offset, i)))


@inlined
def _arm_map(f: Vec3, r: Vec3) -> Mat3:
    """The matrix of ω → r × (ω × f), r·f 1 - f rᵀ."""
    return matrix_minus(multiple_of_unit(dot(r, f)), outer(f, r))


@inlined
def _mapped_force(T: Lanes2, i: int, w: Vec3) -> Force:
    """The force (ω × P, C ω) of a map."""
    return cross(w, row_of(T, i)), turned(matrix_of(T, i, _C), w)


@inlined
def _map_along(model: Model, data: Workspace, T: Lanes2, k: int) -> Vec3:
    """The row Sᵀ T of dof k and its body's map: its product with ω is the force along the dof."""
    s, i = axis_of(data, k), model.dof_body[k]
    return cross(row_of(T, i), s) if model.dof_linear[k] else turned_back(matrix_of(T, i, _C), s)


@inlined
def composite_force(model: Model, data: Workspace, i: int, A: Motion) -> Force:
    """I A of body i and all below it, about its origin. Needs `composites`."""
    a, x = A
    h = row_of(data.composite_moment, i)
    force = plus(times(model.carried_mass[i], a), cross(x, h))
    return force, plus(cross(h, a), symmetric_times(data.composite_inertia, i, x))


# ------------------------------------------------------------------ inverse dynamics


@njit
def inverse_dynamics_derivatives(model: Model, data: Workspace, slopes: Slopes) -> None:
    """slopes.dq, slopes.dv (nv, nv): derivatives of the joint forces by q and v. O(n d).

    Needs `composites`, `motion_columns`, `column_slopes`, the maps, and in data the forces through the joints
    (`gather_forces`).
    """
    for k in range(model.dof_body.shape[0]):
        i = model.dof_body[k]
        first = model.body_dof[i]
        X, Y = force_slopes(model, data, slopes, k)
        for j in range(first, model.body_dof[i + 1]):
            slopes.dq[j, k] = along_axis(model, data, j, X)
            slopes.dv[j, k] = along_axis(model, data, j, Y)
            if model.dof_linear[j] and not model.dof_linear[k]:  # the joint's translation stands above its rotation
                slopes.dq[j, k] = slopes.dq[j, k] + dot(
                    axis_of(data, j), cross(axis_of(data, k), row_of(data.force, i))
                )
        _slopes_above(model, data, slopes, k, pair_plus(X, turning_force(model, data, k)), Y)


@inlined
def force_slopes(model: Model, data: Workspace, slopes: Slopes, k: int) -> tuple[Force, Force]:
    """2B Ψ̇ + I Ψ̈ and 2B S + I (Ψ̇ + Ṡ) of dof k about its body's origin, external wrenches in the first."""
    i, s = model.dof_body[k], axis_of(data, k)
    rate, bend, both = _own_slopes(model, data, k)
    X, Y = composite_force(model, data, i, bend), composite_force(model, data, i, both)
    if model.dof_linear[k]:
        return X, Y
    X = pair_plus(X, _mapped_force(slopes.coriolis_map, i, rate[1]))
    X = pair_plus(X, _mapped_force(slopes.wrench_map, i, s))
    return X, pair_plus(Y, _mapped_force(slopes.coriolis_map, i, s))


@inlined
def turning_force(model: Model, data: Workspace, k: int) -> Force:
    """S ×* f of dof k and the force in data that its body transmits, about the body's origin."""
    s = axis_of(data, k)
    f, n = pair_of(data.force, data.torque, model.dof_body[k])
    if model.dof_linear[k]:
        return zeros_like(s), cross(s, f)
    return cross(s, f), cross(s, n)


@inlined
def _slopes_above(model: Model, data: Workspace, slopes: Slopes, k: int, X: Force, Y: Force) -> None:
    """The entries of dof k and the dofs of all joints above, X and Y being ∂f/∂q_k and ∂f/∂v_k about the body's
    origin."""
    i = model.dof_body[k]
    r = row_of(data.arm, i)
    X, Y = shifted_force(X, r), shifted_force(Y, r)
    F = shifted_force(column_momentum(model, data, k), r)
    B = _map_along(model, data, slopes.coriolis_map, k)
    W = _map_along(model, data, slopes.wrench_map, k)
    j = model.dof_parent[model.body_dof[i]]
    while j >= 0:
        start = model.dof_run[j]
        for c in range(start, j + 1):
            S, rate = motion_column(data.motion, c), six_of(slopes.psi_rate, c)
            slopes.dq[k, c] = power(six_of(slopes.psi_bend, c), F) + dot(rate[1], B) + dot(S[1], W)
            slopes.dv[k, c] = power(six_of(slopes.column_rate, c), F) + dot(S[1], B)
            slopes.dq[c, k] = power(S, X)
            slopes.dv[c, k] = power(S, Y)
        j = model.dof_parent[start]


@njit
def gravity_derivative(model: Model, data: Workspace, slopes: Slopes) -> None:
    """slopes.dq (nv, nv) = ∂g/∂q and slopes.tau (nv,) = g, as bodies accelerate with the world. O(n d).

    The Hessian of the potential energy; of the rotations of one joint its part without their commutators. Needs
    `composites` and `motion_columns`.
    """
    b = row_of(data.acceleration, WORLD)
    for k in range(model.dof_body.shape[0]):
        i = model.dof_body[k]
        first = model.body_dof[i]
        s, h = axis_of(data, k), row_of(data.composite_moment, i)
        slopes.tau[k] = along_axis(model, data, k, (times(model.carried_mass[i], b), cross(h, b)))
        turned_weight = cross(h, cross(b, s))
        for j in range(first, model.body_dof[i + 1]):
            both_turn = model.dof_linear[j] == 0 and model.dof_linear[k] == 0
            slopes.dq[j, k] = dot(axis_of(data, j), turned_weight) if both_turn else like(0.0, data)
        torque = cross(column_momentum(model, data, k)[0], b)
        j = model.dof_parent[first]
        while j >= 0:
            slopes.dq[j, k] = like(0.0, data) if model.dof_linear[j] else dot(axis_of(data, j), torque)
            slopes.dq[k, j] = slopes.dq[j, k]
            j = model.dof_parent[j]


# ------------------------------------------------------------------ links and the whole robot


@njit
def link_velocity_derivative(model: Model, data: Workspace, slopes: Slopes, body: int, r: Vec3, dq: Lanes2) -> None:
    """dq (6, nv): derivative by q of the velocity of the point of `body` at r from its origin, and of its angular
    velocity: Ψ̇ at the point and, since the motion turns with the joint, σ × both. The one by v is the Jacobian.

    Columns of the body's chain only. O(d). Needs `velocities`, `motion_columns`, `column_slopes`.
    """
    w = row_of(data.angular_velocity, body)
    u = velocity_at(pair_of(data.velocity, data.angular_velocity, body), r)
    p = plus(row_of(data.arm, body), r)
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        s = motion_column(data.motion, k)[1]
        rate = six_of(slopes.psi_rate, k)
        linear = plus(velocity_at(rate, p), cross(s, u))
        set_motion_column(dq, k, (linear, plus(rate[1], cross(s, w))))
        k = model.dof_parent[k]


@njit
def link_acceleration_derivatives(
    model: Model, data: Workspace, slopes: Slopes, body: int, r: Vec3, dq: Lanes2, dv: Lanes2
) -> None:
    """dq, dv (6, nv): derivatives of the classical acceleration of that point and of the angular acceleration: Ψ̈ at
    the point + 2 Ψ̇ × u + σ × a, and Ψ̇ + Ṡ at the point + 2 σ × u. Needs `accelerations` beside."""
    w, x = row_of(data.angular_velocity, body), row_of(data.angular_acceleration, body)
    u = velocity_at(pair_of(data.velocity, data.angular_velocity, body), r)
    a = plus(velocity_at(pair_of(data.acceleration, data.angular_acceleration, body), r), cross(w, cross(w, r)))
    p = plus(row_of(data.arm, body), r)
    k = model.body_dof[body + 1] - 1 if body > 0 else -1
    while k >= 0:
        s, rate = motion_column(data.motion, k)[1], six_of(slopes.psi_rate, k)[1]
        bend, both = six_of(slopes.psi_bend, k), six_of(slopes.column_rate, k)
        linear = plus(plus_times(velocity_at(bend, p), 2.0, cross(rate, u)), cross(s, a))
        set_motion_column(dq, k, (linear, plus(plus(bend[1], cross(rate, w)), cross(s, x))))
        linear = plus_times(velocity_at(both, p), 2.0, cross(s, u))
        set_motion_column(dv, k, (linear, plus(both[1], cross(s, w))))
        k = model.dof_parent[k]


@njit
def body_momenta(model: Model, data: Workspace) -> None:
    """Momentum of each body, linear and about its origin, in place of its force and torque in data. Needs
    `world_inertia` and `velocities`."""
    for i in range(1, model.body_parent.shape[0]):
        u, w = pair_of(data.velocity, data.angular_velocity, i)
        h = row_of(data.moment, i)
        linear = plus(times(model.body_mass[i], u), cross(w, h))
        set_pair(data.force, data.torque, i, (linear, plus(cross(h, u), symmetric_times(data.inertia, i, w))))


@njit
def momentum_derivative(model: Model, data: Workspace, c: Lanes1, total: Lanes1, dq: Lanes2) -> None:
    """dq (6, nv): derivative by q of the momentum, linear, then angular about the centre of mass c (3,): I Ψ̇ + S ×* h
    of the bodies that dof moves. The one by v is the centroidal map.

    Needs `composites`, and in data the gathered momenta, whose sum is total (6,).
    """
    for k in range(model.dof_body.shape[0]):
        rate = _own_slopes(model, data, k)[0]
        F = pair_plus(composite_force(model, data, model.dof_body[k], rate), turning_force(model, data, k))
        set_motion_column(dq, k, _about_centre(model, data, k, c, total, F))


@njit
def momentum_rate_derivatives(
    model: Model, data: Workspace, slopes: Slopes, c: Lanes1, total: Lanes1, dq: Lanes2, dv: Lanes2
) -> None:
    """dq, dv (6, nv): derivatives of the rate of the momentum, linear, then angular about the centre of mass c (3,).

    The force that moves all bodies, as in `inverse_dynamics_derivatives`. Needs `composites`, `coriolis_maps`, no
    external wrenches, and in data the gathered forces without gravity, whose sum is total (6,).
    """
    for k in range(model.dof_body.shape[0]):
        X, Y = force_slopes(model, data, slopes, k)
        X = pair_plus(X, turning_force(model, data, k))
        r = minus(origin_of(model, data, model.dof_body[k]), c)
        set_motion_column(dq, k, _about_centre(model, data, k, c, total, X))
        set_motion_column(dv, k, shifted_force(Y, r))


@inlined
def _about_centre(model: Model, data: Workspace, k: int, c: Lanes1, total: Lanes1, F: Force) -> Force:
    """∂(f, n)/∂q_k about the centre of mass, from the one about the origin of dof k's body: since the centre moves by
    ∂c/∂q_k, its moment less ∂c/∂q_k × the total f."""
    f, n = shifted_force(F, minus(origin_of(model, data, model.dof_body[k]), c))
    moved = times(inverse_or_zero(model.carried_mass[WORLD]), column_momentum(model, data, k)[0])
    return f, minus(n, cross(moved, total))


# ------------------------------------------------------------------ independent coordinates


@njit
def coupling_slopes(model: Model, q: Lanes1, v: Lanes1, a: Lanes1, data: Workspace, slopes: Slopes) -> None:
    """∂v/∂y, ∂a/∂y and ∂a/∂u of each dof by the independent one that moves it: with q = g(y), v = g' u and
    a = g' u̇ + g'' u² they are g'' u, g'' u̇ + g''' u² and 2 g'' u. Needs `expand`. O(nv)."""
    third = slopes.acceleration_slope
    for k in range(third.shape[0]):
        slopes.bend[k] = like(0.0, data)
        third[k] = like(0.0, data)
    for c in range(model.coupling_follower.shape[0]):
        f, l = model.coupling_follower[c], model.coupling_leader[c]
        if l >= 0:
            p, x, g = model.coupling_polynomial[c], q[model.dof_coord[l]], data.gain[l]
            _, slope, bend = follow(p, x)
            change = 6.0 * p[3] + x * (24.0 * p[4])
            slopes.bend[f] = bend * g * g + slope * slopes.bend[l]
            third[f] = change * g * g * g + 3.0 * bend * g * slopes.bend[l] + slope * third[l]
    for k in range(third.shape[0]):
        n = model.dof_independent[k]
        u = v[model.independent_dof[n]] if n >= 0 else like(0.0, data)
        rate = a[model.independent_dof[n]] if n >= 0 else like(0.0, data)
        third[k] = slopes.bend[k] * rate + third[k] * u * u
        slopes.velocity_slope[k] = slopes.bend[k] * u
        slopes.twice[k] = 2.0 * slopes.velocity_slope[k]


@njit
def reduce_force_bends(model: Model, data: Workspace, slopes: Slopes, out: Lanes2) -> None:
    """out (nu, nu) = (∂Gᵀ/∂y) τ, diagonal: each dof follows one independent dof."""
    for a in range(out.shape[0]):
        for b in range(out.shape[1]):
            out[a, b] = like(0.0, data)
    for k in range(slopes.tau.shape[0]):
        a = model.dof_independent[k]
        if a >= 0:
            out[a, a] = out[a, a] + slopes.bend[k] * slopes.tau[k]


@njit
def add_reduced(model: Model, data: Workspace, X: Lanes2, slope: Lanes1, out: Lanes2) -> None:
    """out (nu, nu) += Gᵀ X (nv, nv) diag(slope), of the entries of X on chains."""
    for k in range(slope.shape[0]):
        a = model.dof_independent[k]
        j = k
        while j >= 0:
            b = model.dof_independent[j]
            if a >= 0 and b >= 0:
                out[a, b] = out[a, b] + data.gain[k] * X[k, j] * slope[j]
                if j != k:
                    out[b, a] = out[b, a] + data.gain[j] * X[j, k] * slope[k]
            j = model.dof_parent[j]


@njit
def add_reduced_constant(model: Model, data: Workspace, X: Reals2, slope: Lanes1, out: Lanes2) -> None:
    """out (nu, nu) += Gᵀ X (nv, nv) diag(slope) for a constant X, of entries anywhere; X may be empty."""
    for k in range(X.shape[0]):
        a = model.dof_independent[k]
        for j in range(X.shape[0]):
            b = model.dof_independent[j]
            if a >= 0 and b >= 0:
                out[a, b] = out[a, b] + data.gain[k] * X[k, j] * slope[j]


@njit
def add_reduced_columns(model: Model, X: Lanes2, slope: Lanes1, out: Lanes2) -> None:
    """out (6, nu) += X (6, nv) diag(slope), summed over the dofs that an independent one moves."""
    for k in range(slope.shape[0]):
        a = model.dof_independent[k]
        if a >= 0:
            for row in range(6):
                out[row, a] = out[row, a] + X[row, k] * slope[k]


@njit
def mirror(model: Model, M: Lanes2) -> None:
    """Fill the upper triangle of a symmetric matrix (nv, nv), entries on chains only."""
    for k in range(M.shape[0]):
        j = model.dof_parent[k]
        while j >= 0:
            M[j, k] = M[k, j]
            j = model.dof_parent[j]
