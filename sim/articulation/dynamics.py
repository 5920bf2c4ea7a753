"""RNEA, CRBA, LᵀDL and ABA: inverse dynamics, joint-space inertia matrix, its factorisation, forward dynamics.

Featherstone, Rigid Body Dynamics Algorithms (2008), ch. 5 to 7; in world axes, classical instead of spatial
accelerations.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import accelerations, axis_of, like, motion_columns
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, subtract_row
from artsim.sim.foundation.mat3 import (
    add_matrix,
    add_symmetric,
    matrix_minus,
    matrix_of,
    outer,
    plus_symmetric,
    plus_turned,
    plus_turned_back,
    set_matrix,
    set_symmetric,
    skew_times,
    subtract_matrix,
    subtract_symmetric,
    symmetric_minus,
    symmetric_of,
    symmetric_plus,
    symmetric_times,
    symmetric_turned,
    times_skew,
    transposed,
    turned,
    turned_back,
    upper,
    whole,
)
from artsim.sim.foundation.records import ConstInts1, Force, Ints1, Lanes1, Lanes2, Mat3, Real, Sym3, Vec3
from artsim.sim.foundation.spatial import (
    add_pair,
    motion_column,
    newton_euler,
    pair_of,
    pair_times,
    power,
    set_pair,
    set_six,
    shifted_force,
    six_of,
)
from artsim.sim.foundation.vec3 import add_to_row, cross, dot, plus, plus_times, row_of, set_row, times, zeros_like

_A, _B, _C = 0, 6, 15  # where the blocks of an articulated inertia begin in its row of 21


@njit
def inverse_dynamics(model: Model, v: Lanes1, a: Lanes1, data: Workspace, tau: Lanes1) -> None:
    """tau (nv,) = M(q) a + C(q, v) v + g, without armature. RNEA, Featherstone 2008, table 5.1. O(nb).

    Needs `kinematics` and `world_inertia`. Leaves in data the accelerations and, per body, force and torque through
    its joint.
    """
    body_forces(model, v, a, data)
    gather_forces(model, data, tau)


@njit
def body_forces(model: Model, v: Lanes1, a: Lanes1, data: Workspace) -> None:
    """Accelerations at v and a (nv,), and the force and torque about its origin that each body needs for its own, into
    data. O(nb)."""
    accelerations(model, v, a, data)
    for i in range(1, model.body_parent.shape[0]):
        w = row_of(data.angular_velocity, i)
        A = pair_of(data.acceleration, data.angular_acceleration, i)
        F = newton_euler(model.body_mass[i], row_of(data.moment, i), data.inertia, i, w, A)
        set_pair(data.force, data.torque, i, F)


@njit
def coupled_bias(model: Model, v: Lanes1, data: Workspace) -> None:
    """data.bias (nv,) = C(q, v) v + g + M Ġ u, rotors included: the force at zero independent acceleration. O(nb)."""
    inverse_dynamics(model, v, data.drift, data, data.bias)
    for k in range(model.armature.shape[0]):
        data.bias[k] = data.bias[k] + model.armature[k] * data.drift[k]


@njit
def gather_forces(model: Model, data: Workspace, tau: Lanes1) -> None:
    """Joint forces from the wrenches in data, adding each body's wrench to its parent's on the way. O(nb)."""
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        F = pair_of(data.force, data.torque, i)
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            tau[k] = along_axis(model, data, k, F)
        above = model.body_parent[i]
        if above > 0:
            add_pair(data.force, data.torque, above, shifted_force(F, row_of(data.offset, i)))


@inlined
def along_axis(model: Model, data: Workspace, k: int, F: Force) -> Real:
    """The component of a force that dof k feels, about the origin of the dof's body."""
    f, n = F
    return dot(axis_of(data, k), f) if model.dof_linear[k] else dot(axis_of(data, k), n)


@njit
def composites(model: Model, data: Workspace) -> None:
    """First moment and inertia of each body with all below it, about its origin. Needs `world_inertia`. O(nb)."""
    for i in range(model.body_parent.shape[0]):
        for k in range(3):
            data.composite_moment[i, k] = data.moment[i, k]
        for k in range(6):
            data.composite_inertia[i, k] = data.inertia[i, k]
    add_to_parents(model, data)


@njit
def add_to_parents(model: Model, data: Workspace) -> None:
    """Turn the bodies' own moments and inertias in data.composite_* into composite ones, with all descendants.
    O(nb)."""
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        above = model.body_parent[i]
        if above > 0:
            mass, p, h = model.carried_mass[i], row_of(data.offset, i), row_of(data.composite_moment, i)
            I = symmetric_of(data.composite_inertia, i, 0)
            add_symmetric(data.composite_inertia, above, 0, _shifted_inertia(I, p, plus_times(h, 0.5 * mass, p)))
            add_to_row(data.composite_moment, above, plus_times(h, mass, p))


@inlined
def _shifted_inertia(I: Sym3, p: Vec3, s: Vec3) -> Sym3:
    """The inertia about a point from which its own point lies at p, by the theorem of parallel axes: I + 2 sym(p·h 1 -
    p hᵀ) + m (p·p 1 - p pᵀ), with s = h + m p / 2.
    """
    d = 2.0 * dot(p, s)
    return (
        I[0] + d - 2.0 * p[0] * s[0],
        I[1] - p[0] * s[1] - p[1] * s[0],
        I[2] - p[0] * s[2] - p[2] * s[0],
        I[3] + d - 2.0 * p[1] * s[1],
        I[4] - p[1] * s[2] - p[2] * s[1],
        I[5] + d - 2.0 * p[2] * s[2],
    )


@inlined
def column_momentum(model: Model, data: Workspace, k: int) -> Force:
    """Momentum of dof k's body and all below it at unit velocity of k: linear, and angular about the body's origin."""
    i = model.dof_body[k]
    a, h = axis_of(data, k), row_of(data.composite_moment, i)
    if model.dof_linear[k]:
        return times(model.carried_mass[i], a), cross(h, a)
    return cross(a, h), symmetric_times(data.composite_inertia, i, a)


@njit
def mass_matrix(model: Model, data: Workspace) -> None:
    """M into data.mass_matrix: lower triangle, entries of ancestors only, armature included. CRBA, O(n d).

    Featherstone 2008, sec. 6.2, with the columns seen at the tree's reference point: an entry is six products.
    """
    motion_columns(model, data)
    S = data.motion
    M = data.mass_matrix
    for k in range(model.dof_body.shape[0]):
        i = model.dof_body[k]
        F = column_momentum(model, data, k)
        # within the joint, about the body's own origin, where small inertias keep their digits
        first = model.body_dof[i]
        for j in range(first, k):
            M[k, j] = along_axis(model, data, j, F)
        M[k, k] = along_axis(model, data, k, F) + model.armature[k]
        F = shifted_force(F, row_of(data.arm, i))
        j = model.dof_parent[first]
        while j >= 0:
            start = model.dof_run[j]
            for c in range(start, j + 1):
                M[k, c] = power(motion_column(S, c), F)
            j = model.dof_parent[start]


@njit
def factorise(H: Lanes2, inverse_pivot: Lanes1, parent: Ints1, run: Ints1) -> None:
    """H = LᵀDL in place: lower triangle in, L below the diagonal and D on it out. O(n d²).

    Featherstone 2008, table 6.3; rows are walked in unbroken runs of ancestors, whose entries lie side by side.
    """
    for k in range(H.shape[0] - 1, -1, -1):
        inverse = 1.0 / H[k, k]
        inverse_pivot[k] = inverse
        i = parent[k]
        while i >= 0:
            a = H[k, i] * inverse
            j = i
            while j >= 0:
                start = run[j]
                subtract_row(H, i, k, start, j + 1, a)
                j = parent[start]
            H[k, i] = a
            i = parent[i]


@njit
def solve(L: Lanes2, inverse_pivot: Lanes1, parent: Ints1, run: Ints1, x: Lanes1) -> None:
    """x = H⁻¹ x for the factorised H. Featherstone 2008, table 6.5. O(n d)."""
    solve_part(L, inverse_pivot, parent, run, x, 0, x.shape[0])


@njit
def solve_part(L: Lanes2, inverse_pivot: Lanes1, parent: Ints1, run: Ints1, x: Lanes1, first: int, end: int) -> None:
    """x = H⁻¹ x for an x that is 0 except for the entries of one tree, from `first` to before `end`."""
    for i in range(end - 1, first - 1, -1):
        y = x[i]
        j = parent[i]
        while j >= 0:
            start = run[j]
            for c in range(start, j + 1):
                x[c] = x[c] - L[i, c] * y
            j = parent[start]
    for i in range(first, end):
        y = x[i] * inverse_pivot[i]
        j = parent[i]
        while j >= 0:
            start = run[j]
            for c in range(start, j + 1):
                y = y - L[i, c] * x[c]
            j = parent[start]
        x[i] = y


@njit
def solve_rows(L: Lanes2, inverse_pivot: Lanes1, parent: Ints1, run: Ints1, X: Lanes2) -> None:
    """X (n, m) = H⁻¹ X for the factorised H, whole rows at a time: columns would wait for their own sums.
    O(n m d)."""
    m = X.shape[1]
    for i in range(X.shape[0] - 1, -1, -1):
        j = parent[i]
        while j >= 0:
            start = run[j]
            for c in range(start, j + 1):
                subtract_row(X, c, i, 0, m, L[i, c])
            j = parent[start]
    for i in range(X.shape[0]):
        for k in range(m):
            X[i, k] = X[i, k] * inverse_pivot[i]
        j = parent[i]
        while j >= 0:
            start = run[j]
            for c in range(start, j + 1):
                subtract_row(X, i, c, 0, m, L[i, c])
            j = parent[start]


@njit
def invert(L: Lanes2, inverse_pivot: Lanes1, parent: ConstInts1, out: Lanes2) -> None:
    """out (n, n) = H⁻¹ of the factorised H = LᵀDL, both triangles. O(n² d).

    L H⁻¹ = D⁻¹ L⁻ᵀ, whose lower triangle is D⁻¹: so row i is minus the sum of its ancestors' rows times L[i, ancestor].
    The entries of these rows that are not known yet are entries of column i, by symmetry.
    """
    for i in range(L.shape[0]):
        for k in range(i + 1):
            y = inverse_pivot[i] if k == i else inverse_pivot[i] - inverse_pivot[i]
            c = parent[i]
            while c >= 0:
                y = y - L[i, c] * out[c, k]
                c = parent[c]
            out[i, k] = y
            out[k, i] = y


@njit
def articulated_dynamics(model: Model, v: Lanes1, tau: Lanes1, diagonal: Lanes1, data: Workspace, a: Lanes1) -> None:
    """a (nv,) = (M + diag)⁻¹ (tau - C v - g), `diagonal` (nv,) holding armature and implicit terms. ABA, O(nb).

    Featherstone 2008, table 7.1. A joint's dofs are eliminated one by one, as if massless bodies lay between them.
    Needs `kinematics` and `world_inertia`.
    """
    articulate(model, diagonal, data, False)
    articulated_accelerations(model, v, tau, data, a)


@njit
def articulate(model: Model, diagonal: Lanes1, data: Workspace, again: bool) -> None:
    """Articulated inertias, [f; n] = [A B; Bᵀ C] [a; α] about each origin: the part of articulated_dynamics that
    depends on neither v nor tau.

    `again`: the inertias in data differ from the new ones by `diagonal` alone, so that bodies after the last one whose
    entries have changed keep their inertias.
    """
    last = _last_changed(model, diagonal, data) if again else model.body_parent.shape[0] - 1
    if last == 0:
        return
    for k in range(diagonal.shape[0]):
        data.diagonal[k] = diagonal[k]
    for i in range(1, last + 1):
        rigid_inertia(model, data, i)
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        if i <= last:
            for k in range(model.body_dof[i + 1] - 1, model.body_dof[i] - 1, -1):
                U = projected_inertia(model, data, i, k)
                data.pivot[k] = 1.0 / (along_axis(model, data, k, U) + diagonal[k])
                take_out(data, i, k, U, data.pivot[k])
        if 0 < model.body_parent[i] <= last:
            shift_inertia(model, data, i)


@inlined
def _last_changed(model: Model, diagonal: Lanes1, data: Workspace) -> int:
    """The last body with a dof whose entry of `diagonal` differs from that in data; 0: none."""
    for k in range(diagonal.shape[0] - 1, -1, -1):
        if any_positive(absolute(diagonal[k] - data.diagonal[k])):
            return model.dof_body[k]
    return 0


@njit
def articulated_accelerations(model: Model, v: Lanes1, tau: Lanes1, data: Workspace, a: Lanes1) -> None:
    """a (nv,) by the articulated inertias of `articulate`, for any number of v and tau at these positions."""
    nb = model.body_parent.shape[0]
    for i in range(1, nb):
        _bias_wrench(model, v, data, i)
    for i in range(nb - 1, 0, -1):
        for k in range(model.body_dof[i + 1] - 1, model.body_dof[i] - 1, -1):
            _take_force(model, data, i, k, tau[k])
        if model.body_parent[i] > 0:
            _add_to_parent(model, data, i)
    _accelerate(model, data, a)


@inlined
def _bias_wrench(model: Model, v: Lanes1, data: Workspace, i: int) -> None:
    """Body i's velocity-product acceleration (left in data.acceleration, data.angular_acceleration, relative to the
    parent's) and gyroscopic wrench (in data.force, data.torque)."""
    w = row_of(data.angular_velocity, model.body_parent[i])
    b = cross(w, cross(w, row_of(data.offset, i)))
    r = zeros_like(w)
    for k in range(model.body_dof[i], model.body_dof[i + 1]):
        a = axis_of(data, k)
        if model.dof_linear[k]:
            b = plus_times(b, 2.0 * v[k], cross(w, a))
        else:
            r = plus_times(r, v[k], a)
    set_pair(data.acceleration, data.angular_acceleration, i, (b, cross(w, r)))
    w = plus(w, r)
    set_row(data.angular_velocity, i, w)
    force = cross(w, cross(w, row_of(data.moment, i)))
    set_pair(data.force, data.torque, i, (force, cross(w, symmetric_times(data.inertia, i, w))))


@inlined
def rigid_inertia(model: Model, data: Workspace, i: int) -> None:
    """Body i's own inertia, stiffened, into data.articulated: B maps α to force, α × h = -[h]× α."""
    zero = like(0.0, data)
    mass = zero + model.body_mass[i]
    x, y, z = row_of(data.moment, i)
    inertia = symmetric_plus(symmetric_of(data.inertia, i, 0), symmetric_of(data.stiffening, i, 0))
    set_symmetric(data.articulated, i, _A, (mass, zero, zero, mass, zero, mass))
    set_matrix(data.articulated, i, _B, (zero, z, -y, -z, zero, x, y, -x, zero))
    set_symmetric(data.articulated, i, _C, inertia)


@inlined
def _blocks(data: Workspace, i: int) -> tuple[Sym3, Mat3, Sym3]:
    """The blocks A, B, C of body i's articulated inertia."""
    Y = data.articulated
    return symmetric_of(Y, i, _A), matrix_of(Y, i, _B), symmetric_of(Y, i, _C)


@inlined
def projected_inertia(model: Model, data: Workspace, i: int, k: int) -> Force:
    """U = I S of dof k in body i's articulated inertia; its component along the dof is D = Sᵀ I S."""
    a = axis_of(data, k)
    A, B, C = _blocks(data, i)
    if model.dof_linear[k]:
        return symmetric_turned(A, a), turned_back(B, a)
    return turned(B, a), symmetric_turned(C, a)


@inlined
def _take_force(model: Model, data: Workspace, i: int, k: int, tau: Real) -> None:
    """Take dof k out of body i's bias wrench: p += U u / D."""
    u = tau - along_axis(model, data, k, pair_of(data.force, data.torque, i))
    data.surplus[k] = u
    add_pair(data.force, data.torque, i, pair_times(u * data.pivot[k], six_of(data.projected, k)))


@inlined
def take_out(data: Workspace, i: int, k: int, U: Force, inverse: Real) -> None:
    """Take dof k out of body i's articulated inertia, I -= U Uᵀ / D; U is kept in data.projected[k]."""
    f, n = U  # values, not entries of an array, which would be loaded again after every store
    scaled = times(inverse, f)
    subtract_symmetric(data.articulated, i, _A, upper(outer(scaled, f)))
    subtract_matrix(data.articulated, i, _B, outer(scaled, n))
    subtract_symmetric(data.articulated, i, _C, upper(outer(times(inverse, n), n)))
    set_six(data.projected, k, U)


@inlined
def _add_to_parent(model: Model, data: Workspace, i: int) -> None:
    """Bias wrench of body i, p + I c of the bias acceleration c, onto its parent."""
    A, B, C = _blocks(data, i)
    b, x = pair_of(data.acceleration, data.angular_acceleration, i)
    f = plus_turned(plus_symmetric(row_of(data.force, i), A, b), B, x)
    n = plus(plus_turned_back(row_of(data.torque, i), B, b), symmetric_turned(C, x))
    add_pair(data.force, data.torque, model.body_parent[i], shifted_force((f, n), row_of(data.offset, i)))


@inlined
def shift_inertia(model: Model, data: Workspace, i: int) -> None:
    """Articulated inertia of body i, moved by its offset d, onto its parent.

    With D = [d]×: B' = B - A D, C' = C - Bᵀ D + D B'.
    """
    Y, above, d = data.articulated, model.body_parent[i], row_of(data.offset, i)
    A, B, C = _blocks(data, i)
    moved = matrix_minus(B, times_skew(whole(A), d))
    add_symmetric(Y, above, _A, A)
    add_matrix(Y, above, _B, moved)
    less = symmetric_minus(C, upper(times_skew(transposed(B), d)))
    add_symmetric(Y, above, _C, symmetric_plus(less, upper(skew_times(d, moved))))


@njit
def _accelerate(model: Model, data: Workspace, a: Lanes1) -> None:
    """Outward: accelerations of bodies and dofs from the eliminated system."""
    for i in range(1, model.body_parent.shape[0]):
        b, x = pair_of(data.acceleration, data.angular_acceleration, model.body_parent[i])
        b = plus(plus(b, cross(x, row_of(data.offset, i))), row_of(data.acceleration, i))
        x = plus(x, row_of(data.angular_acceleration, i))
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            a[k] = (data.surplus[k] - power((b, x), six_of(data.projected, k))) * data.pivot[k]
            if model.dof_linear[k]:
                b = plus_times(b, a[k], axis_of(data, k))
            else:
                x = plus_times(x, a[k], axis_of(data, k))
        set_pair(data.acceleration, data.angular_acceleration, i, (b, x))
