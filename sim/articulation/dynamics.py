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
from artsim.sim.foundation.records import ConstInts1, Ints1, Lanes1, Lanes2, Real, Vec6
from artsim.sim.foundation.vec3 import cross, symmetric_times


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
        h0 = data.moment[i, 0]
        h1 = data.moment[i, 1]
        h2 = data.moment[i, 2]
        o0 = data.angular_velocity[i, 0]
        o1 = data.angular_velocity[i, 1]
        o2 = data.angular_velocity[i, 2]
        x0 = data.angular_acceleration[i, 0]
        x1 = data.angular_acceleration[i, 1]
        x2 = data.angular_acceleration[i, 2]
        b0 = data.acceleration[i, 0]
        b1 = data.acceleration[i, 1]
        b2 = data.acceleration[i, 2]
        c0, c1, c2 = cross(o0, o1, o2, h0, h1, h2)
        c0, c1, c2 = cross(o0, o1, o2, c0, c1, c2)
        e0, e1, e2 = cross(x0, x1, x2, h0, h1, h2)
        f[i, 0] = mass * b0 + e0 + c0
        f[i, 1] = mass * b1 + e1 + c1
        f[i, 2] = mass * b2 + e2 + c2
        L0, L1, L2 = symmetric_times(data.inertia, i, o0, o1, o2)
        g0, g1, g2 = cross(o0, o1, o2, L0, L1, L2)
        k0, k1, k2 = symmetric_times(data.inertia, i, x0, x1, x2)
        t0, t1, t2 = cross(h0, h1, h2, b0, b1, b2)
        n[i, 0] = k0 + g0 + t0
        n[i, 1] = k1 + g1 + t1
        n[i, 2] = k2 + g2 + t2
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
            a0, a1, a2 = axis_of(data, k)
            if model.dof_linear[k]:
                tau[k] = a0 * f0 + a1 * f1 + a2 * f2
            else:
                tau[k] = a0 * n0 + a1 * n1 + a2 * n2
        above = model.body_parent[i]
        if above > 0:
            c0, c1, c2 = cross(data.offset[i, 0], data.offset[i, 1], data.offset[i, 2], f0, f1, f2)
            f[above, 0] += f0
            f[above, 1] += f1
            f[above, 2] += f2
            n[above, 0] += n0 + c0
            n[above, 1] += n1 + c1
            n[above, 2] += n2 + c2


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
            p0 = data.offset[i, 0]
            p1 = data.offset[i, 1]
            p2 = data.offset[i, 2]
            h0 = h[i, 0]
            h1 = h[i, 1]
            h2 = h[i, 2]
            # parallel axes: I + 2 sym(p·h 1 - p hᵀ) + m (p·p 1 - p pᵀ), with s = h + m p / 2
            s0 = h0 + 0.5 * mass * p0
            s1 = h1 + 0.5 * mass * p1
            s2 = h2 + 0.5 * mass * p2
            d = 2.0 * (p0 * s0 + p1 * s1 + p2 * s2)
            Y[above, 0] += Y[i, 0] + d - 2.0 * p0 * s0
            Y[above, 1] += Y[i, 1] - p0 * s1 - p1 * s0
            Y[above, 2] += Y[i, 2] - p0 * s2 - p2 * s0
            Y[above, 3] += Y[i, 3] + d - 2.0 * p1 * s1
            Y[above, 4] += Y[i, 4] - p1 * s2 - p2 * s1
            Y[above, 5] += Y[i, 5] + d - 2.0 * p2 * s2
            h[above, 0] += h0 + mass * p0
            h[above, 1] += h1 + mass * p1
            h[above, 2] += h2 + mass * p2


@inlined
def column_momentum(model: Model, data: Workspace, k: int) -> Vec6:
    """Momentum of dof k's body and all below it at unit velocity of k: linear, and angular about the body's origin."""
    i = model.dof_body[k]
    a0, a1, a2 = axis_of(data, k)
    h = data.composite_moment
    if model.dof_linear[k]:
        mass = model.carried_mass[i]
        f0 = mass * a0
        f1 = mass * a1
        f2 = mass * a2
        n0, n1, n2 = cross(h[i, 0], h[i, 1], h[i, 2], a0, a1, a2)
    else:
        f0, f1, f2 = cross(a0, a1, a2, h[i, 0], h[i, 1], h[i, 2])
        n0, n1, n2 = symmetric_times(data.composite_inertia, i, a0, a1, a2)
    return f0, f1, f2, n0, n1, n2


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
        a0, a1, a2 = axis_of(data, k)
        # within the joint, about the body's own origin, where small inertias keep their digits
        first = model.body_dof[i]
        for j in range(first, k):
            b0, b1, b2 = axis_of(data, j)
            if model.dof_linear[j]:
                M[k, j] = b0 * f0 + b1 * f1 + b2 * f2
            else:
                M[k, j] = b0 * n0 + b1 * n1 + b2 * n2
        own = a0 * f0 + a1 * f1 + a2 * f2 if model.dof_linear[k] else a0 * n0 + a1 * n1 + a2 * n2
        M[k, k] = own + model.armature[k]
        c0, c1, c2 = cross(data.arm[i, 0], data.arm[i, 1], data.arm[i, 2], f0, f1, f2)
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
    c0, c1, c2 = cross(o0, o1, o2, data.offset[i, 0], data.offset[i, 1], data.offset[i, 2])
    b0, b1, b2 = cross(o0, o1, o2, c0, c1, c2)
    r0 = o0 - o0
    r1 = r0
    r2 = r0
    for k in range(model.body_dof[i], model.body_dof[i + 1]):
        a0, a1, a2 = axis_of(data, k)
        if model.dof_linear[k]:
            s0, s1, s2 = cross(o0, o1, o2, a0, a1, a2)
            t = 2.0 * v[k]
            b0 = b0 + s0 * t
            b1 = b1 + s1 * t
            b2 = b2 + s2 * t
        else:
            r0 = r0 + a0 * v[k]
            r1 = r1 + a1 * v[k]
            r2 = r2 + a2 * v[k]
    s0, s1, s2 = cross(o0, o1, o2, r0, r1, r2)
    data.acceleration[i, 0] = b0
    data.acceleration[i, 1] = b1
    data.acceleration[i, 2] = b2
    data.angular_acceleration[i, 0] = s0
    data.angular_acceleration[i, 1] = s1
    data.angular_acceleration[i, 2] = s2
    o0 = o0 + r0
    o1 = o1 + r1
    o2 = o2 + r2
    o[i, 0] = o0
    o[i, 1] = o1
    o[i, 2] = o2
    c0, c1, c2 = cross(o0, o1, o2, data.moment[i, 0], data.moment[i, 1], data.moment[i, 2])
    f0, f1, f2 = cross(o0, o1, o2, c0, c1, c2)
    data.force[i, 0] = f0
    data.force[i, 1] = f1
    data.force[i, 2] = f2
    L0, L1, L2 = symmetric_times(data.inertia, i, o0, o1, o2)
    n0, n1, n2 = cross(o0, o1, o2, L0, L1, L2)
    data.torque[i, 0] = n0
    data.torque[i, 1] = n1
    data.torque[i, 2] = n2


@inlined
def rigid_inertia(model: Model, data: Workspace, i: int) -> None:
    """Body i's own inertia, stiffened, into data.articulated: B maps α to force, α × h = -[h]× α."""
    Y = data.articulated
    zero = like(0.0, data)
    mass = zero + model.body_mass[i]
    h0 = data.moment[i, 0]
    h1 = data.moment[i, 1]
    h2 = data.moment[i, 2]
    Y[i, 0] = mass
    Y[i, 1] = zero
    Y[i, 2] = zero
    Y[i, 3] = mass
    Y[i, 4] = zero
    Y[i, 5] = mass
    Y[i, 6] = zero
    Y[i, 7] = h2
    Y[i, 8] = -h1
    Y[i, 9] = -h2
    Y[i, 10] = zero
    Y[i, 11] = h0
    Y[i, 12] = h1
    Y[i, 13] = -h0
    Y[i, 14] = zero
    for c in range(6):
        Y[i, 15 + c] = data.inertia[i, c] + data.stiffening[i, c]


@inlined
def projected_inertia(model: Model, data: Workspace, i: int, k: int) -> tuple[Real, ...]:
    """U = I S of dof k in body i's articulated inertia: linear, angular; and D = Sᵀ I S."""
    Y = data.articulated
    a0, a1, a2 = axis_of(data, k)
    if model.dof_linear[k]:
        U0 = Y[i, 0] * a0 + Y[i, 1] * a1 + Y[i, 2] * a2
        U1 = Y[i, 1] * a0 + Y[i, 3] * a1 + Y[i, 4] * a2
        U2 = Y[i, 2] * a0 + Y[i, 4] * a1 + Y[i, 5] * a2
        U3 = Y[i, 6] * a0 + Y[i, 9] * a1 + Y[i, 12] * a2
        U4 = Y[i, 7] * a0 + Y[i, 10] * a1 + Y[i, 13] * a2
        U5 = Y[i, 8] * a0 + Y[i, 11] * a1 + Y[i, 14] * a2
        D = U0 * a0 + U1 * a1 + U2 * a2
    else:
        U0 = Y[i, 6] * a0 + Y[i, 7] * a1 + Y[i, 8] * a2
        U1 = Y[i, 9] * a0 + Y[i, 10] * a1 + Y[i, 11] * a2
        U2 = Y[i, 12] * a0 + Y[i, 13] * a1 + Y[i, 14] * a2
        U3 = Y[i, 15] * a0 + Y[i, 16] * a1 + Y[i, 17] * a2
        U4 = Y[i, 16] * a0 + Y[i, 18] * a1 + Y[i, 19] * a2
        U5 = Y[i, 17] * a0 + Y[i, 19] * a1 + Y[i, 20] * a2
        D = U3 * a0 + U4 * a1 + U5 * a2
    return U0, U1, U2, U3, U4, U5, D


@inlined
def _take_force(model: Model, data: Workspace, i: int, k: int, tau: Real) -> None:
    """Take dof k out of body i's bias wrench: p += U u / D."""
    U = data.projected
    a0, a1, a2 = axis_of(data, k)
    p = data.force if model.dof_linear[k] else data.torque
    u = tau - (p[i, 0] * a0 + p[i, 1] * a1 + p[i, 2] * a2)
    data.surplus[k] = u
    s = u * data.pivot[k]
    data.force[i, 0] += U[k, 0] * s
    data.force[i, 1] += U[k, 1] * s
    data.force[i, 2] += U[k, 2] * s
    data.torque[i, 0] += U[k, 3] * s
    data.torque[i, 1] += U[k, 4] * s
    data.torque[i, 2] += U[k, 5] * s


@inlined
def take_out(data: Workspace, i: int, k: int, column: Vec6, inverse: Real) -> None:
    """Take dof k out of body i's articulated inertia, I -= U Uᵀ / D; U, the column, is kept in data.projected[k]."""
    Y = data.articulated
    U0, U1, U2, U3, U4, U5 = column
    # U stays in registers here: an array entry would be loaded again after every store to Y
    x0 = U0 * inverse
    x1 = U1 * inverse
    x2 = U2 * inverse
    Y[i, 0] -= x0 * U0
    Y[i, 1] -= x0 * U1
    Y[i, 2] -= x0 * U2
    Y[i, 3] -= x1 * U1
    Y[i, 4] -= x1 * U2
    Y[i, 5] -= x2 * U2
    Y[i, 6] -= x0 * U3
    Y[i, 7] -= x0 * U4
    Y[i, 8] -= x0 * U5
    Y[i, 9] -= x1 * U3
    Y[i, 10] -= x1 * U4
    Y[i, 11] -= x1 * U5
    Y[i, 12] -= x2 * U3
    Y[i, 13] -= x2 * U4
    Y[i, 14] -= x2 * U5
    y0 = U3 * inverse
    y1 = U4 * inverse
    y2 = U5 * inverse
    Y[i, 15] -= y0 * U3
    Y[i, 16] -= y0 * U4
    Y[i, 17] -= y0 * U5
    Y[i, 18] -= y1 * U4
    Y[i, 19] -= y1 * U5
    Y[i, 20] -= y2 * U5
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
    d0 = data.offset[i, 0]
    d1 = data.offset[i, 1]
    d2 = data.offset[i, 2]
    b0 = data.acceleration[i, 0]
    b1 = data.acceleration[i, 1]
    b2 = data.acceleration[i, 2]
    x0 = data.angular_acceleration[i, 0]
    x1 = data.angular_acceleration[i, 1]
    x2 = data.angular_acceleration[i, 2]
    A0 = Y[i, 0]
    A1 = Y[i, 1]
    A2 = Y[i, 2]
    A3 = Y[i, 3]
    A4 = Y[i, 4]
    A5 = Y[i, 5]
    B0 = Y[i, 6]
    B1 = Y[i, 7]
    B2 = Y[i, 8]
    B3 = Y[i, 9]
    B4 = Y[i, 10]
    B5 = Y[i, 11]
    B6 = Y[i, 12]
    B7 = Y[i, 13]
    B8 = Y[i, 14]
    f0 = data.force[i, 0] + A0 * b0 + A1 * b1 + A2 * b2 + B0 * x0 + B1 * x1 + B2 * x2
    f1 = data.force[i, 1] + A1 * b0 + A3 * b1 + A4 * b2 + B3 * x0 + B4 * x1 + B5 * x2
    f2 = data.force[i, 2] + A2 * b0 + A4 * b1 + A5 * b2 + B6 * x0 + B7 * x1 + B8 * x2
    t0, t1, t2 = cross(d0, d1, d2, f0, f1, f2)
    k0 = Y[i, 15] * x0 + Y[i, 16] * x1 + Y[i, 17] * x2
    k1 = Y[i, 16] * x0 + Y[i, 18] * x1 + Y[i, 19] * x2
    k2 = Y[i, 17] * x0 + Y[i, 19] * x1 + Y[i, 20] * x2
    data.force[above, 0] += f0
    data.force[above, 1] += f1
    data.force[above, 2] += f2
    data.torque[above, 0] += data.torque[i, 0] + B0 * b0 + B3 * b1 + B6 * b2 + k0 + t0
    data.torque[above, 1] += data.torque[i, 1] + B1 * b0 + B4 * b1 + B7 * b2 + k1 + t1
    data.torque[above, 2] += data.torque[i, 2] + B2 * b0 + B5 * b1 + B8 * b2 + k2 + t2


@inlined
def shift_inertia(model: Model, data: Workspace, i: int) -> None:
    """Articulated inertia of body i, moved by its offset d, onto its parent.

    With D = [d]×: B' = B - A D, C' = C - Bᵀ D + D B'.
    """
    Y = data.articulated
    above = model.body_parent[i]
    d0 = data.offset[i, 0]
    d1 = data.offset[i, 1]
    d2 = data.offset[i, 2]
    A0 = Y[i, 0]
    A1 = Y[i, 1]
    A2 = Y[i, 2]
    A3 = Y[i, 3]
    A4 = Y[i, 4]
    A5 = Y[i, 5]
    B0 = Y[i, 6]
    B1 = Y[i, 7]
    B2 = Y[i, 8]
    B3 = Y[i, 9]
    B4 = Y[i, 10]
    B5 = Y[i, 11]
    B6 = Y[i, 12]
    B7 = Y[i, 13]
    B8 = Y[i, 14]
    # rows of B' = B - A D: row r of A D is -(d × row) … (A D)_r = A_r × d
    u0, u1, u2 = cross(A0, A1, A2, d0, d1, d2)
    E0 = B0 - u0
    E1 = B1 - u1
    E2 = B2 - u2
    u0, u1, u2 = cross(A1, A3, A4, d0, d1, d2)
    E3 = B3 - u0
    E4 = B4 - u1
    E5 = B5 - u2
    u0, u1, u2 = cross(A2, A4, A5, d0, d1, d2)
    E6 = B6 - u0
    E7 = B7 - u1
    E8 = B8 - u2
    # Bᵀ D: row r is (column r of B) × d; D B': column c is d × (column c of B')
    p0, p1, p2 = cross(B0, B3, B6, d0, d1, d2)
    _, r1, r2 = cross(B1, B4, B7, d0, d1, d2)
    _, _, s2 = cross(B2, B5, B8, d0, d1, d2)
    g0, _, _ = cross(d0, d1, d2, E0, E3, E6)
    h0, h1, _ = cross(d0, d1, d2, E1, E4, E7)
    k0, k1, k2 = cross(d0, d1, d2, E2, E5, E8)
    Y[above, 0] += A0
    Y[above, 1] += A1
    Y[above, 2] += A2
    Y[above, 3] += A3
    Y[above, 4] += A4
    Y[above, 5] += A5
    Y[above, 6] += E0
    Y[above, 7] += E1
    Y[above, 8] += E2
    Y[above, 9] += E3
    Y[above, 10] += E4
    Y[above, 11] += E5
    Y[above, 12] += E6
    Y[above, 13] += E7
    Y[above, 14] += E8
    Y[above, 15] += Y[i, 15] - p0 + g0
    Y[above, 16] += Y[i, 16] - p1 + h0
    Y[above, 17] += Y[i, 17] - p2 + k0
    Y[above, 18] += Y[i, 18] - r1 + h1
    Y[above, 19] += Y[i, 19] - r2 + k1
    Y[above, 20] += Y[i, 20] - s2 + k2


@njit
def _accelerate(model: Model, data: Workspace, a: Lanes1) -> None:
    """Outward: accelerations of bodies and dofs from the eliminated system."""
    for i in range(1, model.body_parent.shape[0]):
        above = model.body_parent[i]
        x0 = data.angular_acceleration[above, 0]
        x1 = data.angular_acceleration[above, 1]
        x2 = data.angular_acceleration[above, 2]
        c0, c1, c2 = cross(x0, x1, x2, data.offset[i, 0], data.offset[i, 1], data.offset[i, 2])
        b0 = data.acceleration[above, 0] + c0 + data.acceleration[i, 0]
        b1 = data.acceleration[above, 1] + c1 + data.acceleration[i, 1]
        b2 = data.acceleration[above, 2] + c2 + data.acceleration[i, 2]
        x0 = x0 + data.angular_acceleration[i, 0]
        x1 = x1 + data.angular_acceleration[i, 1]
        x2 = x2 + data.angular_acceleration[i, 2]
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            U = data.projected[k]
            a[k] = (
                data.surplus[k] - (U[0] * b0 + U[1] * b1 + U[2] * b2 + U[3] * x0 + U[4] * x1 + U[5] * x2)
            ) * data.pivot[k]
            a0, a1, a2 = axis_of(data, k)
            if model.dof_linear[k]:
                b0 = b0 + a0 * a[k]
                b1 = b1 + a1 * a[k]
                b2 = b2 + a2 * a[k]
            else:
                x0 = x0 + a0 * a[k]
                x1 = x1 + a1 * a[k]
                x2 = x2 + a2 * a[k]
        data.acceleration[i, 0] = b0
        data.acceleration[i, 1] = b1
        data.acceleration[i, 2] = b2
        data.angular_acceleration[i, 0] = x0
        data.angular_acceleration[i, 1] = x1
        data.angular_acceleration[i, 2] = x2
