"""Inverse dynamics, joint-space inertia matrix, its factorisation, forward dynamics: RNEA, CRBA, LᵀDL, ABA, in world
axes.

Featherstone, Rigid Body Dynamics Algorithms (2008), ch. 5 to 7; classical instead of spatial accelerations.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import accelerations, axis_of, like, motion_columns
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, subtract_row
from artsim.sim.foundation.records import ConstInts1, Ints1, Lanes1, Lanes2, Real, Vec6
from artsim.sim.foundation.vec3 import cross, dot, minus, plus, plus_times, row_of, set_row, symmetric_times, times


@njit
def inverse_dynamics(model: Model, v: Lanes1, a: Lanes1, data: Workspace, tau: Lanes1) -> None:
    """tau (nv,) = M(q) a + C(q, v) v + g, without armature. RNEA, Featherstone 2008, table 5.1. O(nb).

    Needs `kinematics` and `world_inertia`. Leaves in data the accelerations and, per body, force and torque through
    its joint.
    """
    accelerations(model, v, a, data)
    f = data.force
    n = data.torque
    for i in range(1, model.body_parent.shape[0]):
        mass = model.body_mass[i]
        h = row_of(data.moment, i)
        o = row_of(data.angular_velocity, i)
        x = row_of(data.angular_acceleration, i)
        b = row_of(data.acceleration, i)
        c = cross(o, h)
        c = cross(o, c)
        e = cross(x, h)
        set_row(f, i, plus(plus(times(mass, b), e), c))
        L = symmetric_times(data.inertia, i, o)
        g = cross(o, L)
        k = symmetric_times(data.inertia, i, x)
        t = cross(h, b)
        set_row(n, i, plus(plus(k, g), t))
    gather_forces(model, data, tau)


@njit
def coupled_bias(model: Model, v: Lanes1, data: Workspace) -> None:
    """data.bias (nv,) = C(q, v) v + g + M Ġ u, rotors included: the force at zero independent acceleration. O(nb)."""
    inverse_dynamics(model, v, data.drift, data, data.bias)
    for k in range(model.armature.shape[0]):
        data.bias[k] = data.bias[k] + model.armature[k] * data.drift[k]


@njit
def gather_forces(model: Model, data: Workspace, tau: Lanes1) -> None:
    """Joint forces from the wrenches in data, adding each body's wrench to its parent's on the way. O(nb)."""
    f = data.force
    n = data.torque
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        f0 = f[i, 0]
        f1 = f[i, 1]
        f2 = f[i, 2]
        n0 = n[i, 0]
        n1 = n[i, 1]
        n2 = n[i, 2]
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            a = axis_of(data, k)
            if model.dof_linear[k]:
                tau[k] = dot(a, (f0, f1, f2))
            else:
                tau[k] = dot(a, (n0, n1, n2))
        above = model.body_parent[i]
        if above > 0:
            c = cross(row_of(data.offset, i), (f0, f1, f2))
            f[above, 0] += f0
            f[above, 1] += f1
            f[above, 2] += f2
            set_row(n, above, plus(row_of(n, above), plus((n0, n1, n2), c)))


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
    Y = data.composite_inertia
    h = data.composite_moment
    for i in range(model.body_parent.shape[0] - 1, 0, -1):
        above = model.body_parent[i]
        if above > 0:
            mass = model.carried_mass[i]
            p = row_of(data.offset, i)
            h0 = h[i, 0]
            h1 = h[i, 1]
            h2 = h[i, 2]
            # parallel axes: I + 2 sym(p·h 1 - p hᵀ) + m (p·p 1 - p pᵀ), with s = h + m p / 2
            s = plus_times((h0, h1, h2), 0.5 * mass, p)
            d = 2.0 * dot(p, s)
            Y[above, 0] += Y[i, 0] + d - 2.0 * p[0] * s[0]
            Y[above, 1] += Y[i, 1] - p[0] * s[1] - p[1] * s[0]
            Y[above, 2] += Y[i, 2] - p[0] * s[2] - p[2] * s[0]
            Y[above, 3] += Y[i, 3] + d - 2.0 * p[1] * s[1]
            Y[above, 4] += Y[i, 4] - p[1] * s[2] - p[2] * s[1]
            Y[above, 5] += Y[i, 5] + d - 2.0 * p[2] * s[2]
            set_row(h, above, plus(row_of(h, above), plus_times((h0, h1, h2), mass, p)))


@inlined
def column_momentum(model: Model, data: Workspace, k: int) -> Vec6:
    """Momentum of dof k's body and all below it at unit velocity of k: linear, and angular about the body's origin."""
    i = model.dof_body[k]
    a = axis_of(data, k)
    h = data.composite_moment
    if model.dof_linear[k]:
        mass = model.carried_mass[i]
        f = times(mass, a)
        n = cross(row_of(h, i), a)
    else:
        f = cross(a, row_of(h, i))
        n = symmetric_times(data.composite_inertia, i, a)
    return f[0], f[1], f[2], n[0], n[1], n[2]


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
        f0, f1, f2, n0, n1, n2 = column_momentum(model, data, k)
        a = axis_of(data, k)
        # within the joint, about the body's own origin, where small inertias keep their digits
        first = model.body_dof[i]
        for j in range(first, k):
            b = axis_of(data, j)
            if model.dof_linear[j]:
                M[k, j] = dot(b, (f0, f1, f2))
            else:
                M[k, j] = dot(b, (n0, n1, n2))
        own = dot(a, (f0, f1, f2)) if model.dof_linear[k] else dot(a, (n0, n1, n2))
        M[k, k] = own + model.armature[k]
        c0, c1, c2 = cross(row_of(data.arm, i), (f0, f1, f2))
        n0 = n0 + c0
        n1 = n1 + c1
        n2 = n2 + c2
        j = model.dof_parent[first]
        while j >= 0:
            start = model.dof_run[j]
            for c in range(start, j + 1):
                M[k, c] = S[0, c] * f0 + S[1, c] * f1 + S[2, c] * f2 + S[3, c] * n0 + S[4, c] * n1 + S[5, c] * n2
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
                U0, U1, U2, U3, U4, U5, D = projected_inertia(model, data, i, k)
                data.pivot[k] = 1.0 / (D + diagonal[k])
                take_out(data, i, k, (U0, U1, U2, U3, U4, U5), data.pivot[k])
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
    o = data.angular_velocity
    above = model.body_parent[i]
    o0 = o[above, 0]
    o1 = o[above, 1]
    o2 = o[above, 2]
    c = cross((o0, o1, o2), row_of(data.offset, i))
    b = cross((o0, o1, o2), c)
    r0 = o0 - o0
    r1 = r0
    r2 = r0
    for k in range(model.body_dof[i], model.body_dof[i + 1]):
        a = axis_of(data, k)
        if model.dof_linear[k]:
            s = cross((o0, o1, o2), a)
            t = 2.0 * v[k]
            b = plus_times(b, t, s)
        else:
            r0 = r0 + a[0] * v[k]
            r1 = r1 + a[1] * v[k]
            r2 = r2 + a[2] * v[k]
    s = cross((o0, o1, o2), (r0, r1, r2))
    set_row(data.acceleration, i, b)
    set_row(data.angular_acceleration, i, s)
    o0 = o0 + r0
    o1 = o1 + r1
    o2 = o2 + r2
    o[i, 0] = o0
    o[i, 1] = o1
    o[i, 2] = o2
    c = cross((o0, o1, o2), row_of(data.moment, i))
    f = cross((o0, o1, o2), c)
    set_row(data.force, i, f)
    L = symmetric_times(data.inertia, i, (o0, o1, o2))
    n = cross((o0, o1, o2), L)
    set_row(data.torque, i, n)


@inlined
def rigid_inertia(model: Model, data: Workspace, i: int) -> None:
    """Body i's own inertia, stiffened, into data.articulated: B maps α to force, α × h = -[h]× α."""
    Y = data.articulated
    zero = like(0.0, data)
    mass = zero + model.body_mass[i]
    h = row_of(data.moment, i)
    Y[i, 0] = mass
    Y[i, 1] = zero
    Y[i, 2] = zero
    Y[i, 3] = mass
    Y[i, 4] = zero
    Y[i, 5] = mass
    Y[i, 6] = zero
    Y[i, 7] = h[2]
    Y[i, 8] = -h[1]
    Y[i, 9] = -h[2]
    Y[i, 10] = zero
    Y[i, 11] = h[0]
    Y[i, 12] = h[1]
    Y[i, 13] = -h[0]
    Y[i, 14] = zero
    for c in range(6):
        Y[i, 15 + c] = data.inertia[i, c] + data.stiffening[i, c]


@inlined
def projected_inertia(model: Model, data: Workspace, i: int, k: int) -> tuple[Real, ...]:
    """U = I S of dof k in body i's articulated inertia: linear, angular; and D = Sᵀ I S."""
    Y = data.articulated
    a = axis_of(data, k)
    if model.dof_linear[k]:
        U = (
            dot(row_of(Y, i), a),
            Y[i, 1] * a[0] + Y[i, 3] * a[1] + Y[i, 4] * a[2],
            Y[i, 2] * a[0] + Y[i, 4] * a[1] + Y[i, 5] * a[2],
        )
        U3 = Y[i, 6] * a[0] + Y[i, 9] * a[1] + Y[i, 12] * a[2]
        U4 = Y[i, 7] * a[0] + Y[i, 10] * a[1] + Y[i, 13] * a[2]
        U5 = Y[i, 8] * a[0] + Y[i, 11] * a[1] + Y[i, 14] * a[2]
        D = dot(U, a)
    else:
        U = (
            Y[i, 6] * a[0] + Y[i, 7] * a[1] + Y[i, 8] * a[2],
            Y[i, 9] * a[0] + Y[i, 10] * a[1] + Y[i, 11] * a[2],
            Y[i, 12] * a[0] + Y[i, 13] * a[1] + Y[i, 14] * a[2],
        )
        U3 = Y[i, 15] * a[0] + Y[i, 16] * a[1] + Y[i, 17] * a[2]
        U4 = Y[i, 16] * a[0] + Y[i, 18] * a[1] + Y[i, 19] * a[2]
        U5 = Y[i, 17] * a[0] + Y[i, 19] * a[1] + Y[i, 20] * a[2]
        D = U3 * a[0] + U4 * a[1] + U5 * a[2]
    return U[0], U[1], U[2], U3, U4, U5, D


@inlined
def _take_force(model: Model, data: Workspace, i: int, k: int, tau: Real) -> None:
    """Take dof k out of body i's bias wrench: p += U u / D."""
    U = data.projected
    a = axis_of(data, k)
    p = data.force if model.dof_linear[k] else data.torque
    u = tau - dot(row_of(p, i), a)
    data.surplus[k] = u
    s = u * data.pivot[k]
    set_row(data.force, i, plus(row_of(data.force, i), times(s, row_of(U, k))))
    data.torque[i, 0] += U[k, 3] * s
    data.torque[i, 1] += U[k, 4] * s
    data.torque[i, 2] += U[k, 5] * s


@inlined
def take_out(data: Workspace, i: int, k: int, column: Vec6, inverse: Real) -> None:
    """Take dof k out of body i's articulated inertia, I -= U Uᵀ / D; U, the column, is kept in data.projected[k]."""
    Y = data.articulated
    U0, U1, U2, U3, U4, U5 = column
    # U stays in registers here: an array entry would be loaded again after every store to Y
    x = (U0 * inverse, U1 * inverse, U2 * inverse)
    Y[i, 0] -= x[0] * U0
    Y[i, 1] -= x[0] * U1
    Y[i, 2] -= x[0] * U2
    Y[i, 3] -= x[1] * U1
    Y[i, 4] -= x[1] * U2
    Y[i, 5] -= x[2] * U2
    Y[i, 6] -= x[0] * U3
    Y[i, 7] -= x[0] * U4
    Y[i, 8] -= x[0] * U5
    Y[i, 9] -= x[1] * U3
    Y[i, 10] -= x[1] * U4
    Y[i, 11] -= x[1] * U5
    Y[i, 12] -= x[2] * U3
    Y[i, 13] -= x[2] * U4
    Y[i, 14] -= x[2] * U5
    y = (U3 * inverse, U4 * inverse, U5 * inverse)
    Y[i, 15] -= y[0] * U3
    Y[i, 16] -= y[0] * U4
    Y[i, 17] -= y[0] * U5
    Y[i, 18] -= y[1] * U4
    Y[i, 19] -= y[1] * U5
    Y[i, 20] -= y[2] * U5
    U = data.projected
    U[k, 0] = U0
    U[k, 1] = U1
    U[k, 2] = U2
    U[k, 3] = U3
    U[k, 4] = U4
    U[k, 5] = U5


@inlined
def _add_to_parent(model: Model, data: Workspace, i: int) -> None:
    """Bias wrench of body i, p + I c of the bias acceleration c, onto its parent."""
    Y = data.articulated
    above = model.body_parent[i]
    d = row_of(data.offset, i)
    b = row_of(data.acceleration, i)
    x = row_of(data.angular_acceleration, i)
    A = row_of(Y, i)
    A3 = Y[i, 3]
    A4 = Y[i, 4]
    A5 = Y[i, 5]
    B = (Y[i, 6], Y[i, 7], Y[i, 8])
    B3 = Y[i, 9]
    B4 = Y[i, 10]
    B5 = Y[i, 11]
    B6 = Y[i, 12]
    B7 = Y[i, 13]
    B8 = Y[i, 14]
    f = (
        data.force[i, 0] + A[0] * b[0] + A[1] * b[1] + A[2] * b[2] + B[0] * x[0] + B[1] * x[1] + B[2] * x[2],
        data.force[i, 1] + A[1] * b[0] + A3 * b[1] + A4 * b[2] + B3 * x[0] + B4 * x[1] + B5 * x[2],
        data.force[i, 2] + A[2] * b[0] + A4 * b[1] + A5 * b[2] + B6 * x[0] + B7 * x[1] + B8 * x[2],
    )
    t = cross(d, f)
    k = (
        Y[i, 15] * x[0] + Y[i, 16] * x[1] + Y[i, 17] * x[2],
        Y[i, 16] * x[0] + Y[i, 18] * x[1] + Y[i, 19] * x[2],
        Y[i, 17] * x[0] + Y[i, 19] * x[1] + Y[i, 20] * x[2],
    )
    set_row(data.force, above, plus(row_of(data.force, above), f))
    data.torque[above, 0] += data.torque[i, 0] + B[0] * b[0] + B3 * b[1] + B6 * b[2] + k[0] + t[0]
    data.torque[above, 1] += data.torque[i, 1] + B[1] * b[0] + B4 * b[1] + B7 * b[2] + k[1] + t[1]
    data.torque[above, 2] += data.torque[i, 2] + B[2] * b[0] + B5 * b[1] + B8 * b[2] + k[2] + t[2]


@inlined
def shift_inertia(model: Model, data: Workspace, i: int) -> None:
    """Articulated inertia of body i, moved by its offset d, onto its parent.

    With D = [d]×: B' = B - A D, C' = C - Bᵀ D + D B'.
    """
    Y = data.articulated
    above = model.body_parent[i]
    d = row_of(data.offset, i)
    A = row_of(Y, i)
    A3 = Y[i, 3]
    A4 = Y[i, 4]
    A5 = Y[i, 5]
    B = (Y[i, 6], Y[i, 7], Y[i, 8])
    B3 = Y[i, 9]
    B4 = Y[i, 10]
    B5 = Y[i, 11]
    B6 = Y[i, 12]
    B7 = Y[i, 13]
    B8 = Y[i, 14]
    # rows of B' = B - A D: row r of A D is -(d × row) … (A D)_r = A_r × d
    u = cross(A, d)
    E = minus(B, u)
    u = cross((A[1], A3, A4), d)
    E3 = B3 - u[0]
    E4 = B4 - u[1]
    E5 = B5 - u[2]
    u = cross((A[2], A4, A5), d)
    E6 = B6 - u[0]
    E7 = B7 - u[1]
    E8 = B8 - u[2]
    # Bᵀ D: row r is (column r of B) × d; D B': column c is d × (column c of B')
    p = cross((B[0], B3, B6), d)
    _, r1, r2 = cross((B[1], B4, B7), d)
    _, _, s2 = cross((B[2], B5, B8), d)
    g0, _, _ = cross(d, (E[0], E3, E6))
    h0, h1, _ = cross(d, (E[1], E4, E7))
    k = cross(d, (E[2], E5, E8))
    set_row(Y, above, plus(row_of(Y, above), A))
    Y[above, 3] += A3
    Y[above, 4] += A4
    Y[above, 5] += A5
    Y[above, 6] += E[0]
    Y[above, 7] += E[1]
    Y[above, 8] += E[2]
    Y[above, 9] += E3
    Y[above, 10] += E4
    Y[above, 11] += E5
    Y[above, 12] += E6
    Y[above, 13] += E7
    Y[above, 14] += E8
    Y[above, 15] += Y[i, 15] - p[0] + g0
    Y[above, 16] += Y[i, 16] - p[1] + h0
    Y[above, 17] += Y[i, 17] - p[2] + k[0]
    Y[above, 18] += Y[i, 18] - r1 + h1
    Y[above, 19] += Y[i, 19] - r2 + k[1]
    Y[above, 20] += Y[i, 20] - s2 + k[2]


@njit
def _accelerate(model: Model, data: Workspace, a: Lanes1) -> None:
    """Outward: accelerations of bodies and dofs from the eliminated system."""
    for i in range(1, model.body_parent.shape[0]):
        above = model.body_parent[i]
        x = row_of(data.angular_acceleration, above)
        c = cross(x, row_of(data.offset, i))
        b = plus(plus(row_of(data.acceleration, above), c), row_of(data.acceleration, i))
        x = plus(x, row_of(data.angular_acceleration, i))
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            U = data.projected[k]
            a[k] = (
                data.surplus[k] - (U[0] * b[0] + U[1] * b[1] + U[2] * b[2] + U[3] * x[0] + U[4] * x[1] + U[5] * x[2])
            ) * data.pivot[k]
            a0, a1, a2 = axis_of(data, k)
            if model.dof_linear[k]:
                b = plus_times(b, a[k], (a0, a1, a2))
            else:
                x = plus_times(x, a[k], (a0, a1, a2))
        set_row(data.acceleration, i, b)
        set_row(data.angular_acceleration, i, x)
