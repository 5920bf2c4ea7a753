"""Tendons: lengths, velocities, moment arms.

A spatial tendon is a chain of straight pieces between points of bodies. The points on a geom that it wraps around may
be taken as fixed to the geom: where the way is shortest, moving them changes no length.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.equipment.record import PATH_JOINT, PATH_PULLEY, PATH_SITE
from artsim.sim.equipment.wrapping import unit3, wrap
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import accelerations, add_point_force, cross, kinematics, origin_of, point_of, turn


@njit
def tendon_paths(m: Any, q: Any, v: Any, w: Any, e: Any, x: Any) -> None:
    """x.tendon_length, tendon_velocity (nt,) and tendon_moment (entries,) at the kinematics in w."""
    for t in range(x.tendon_length.shape[0]):
        for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
            x.row[e.tendon_dof[entry]] = 0.0
        if e.path_kind[e.tendon_path[t]] == PATH_JOINT:
            x.tendon_length[t] = _sum_of_joints(m, q, e, x, t)
        else:
            x.tendon_length[t] = _path(m, w, e, x, t)
        rate = 0.0
        for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
            k = e.tendon_dof[entry]
            x.tendon_moment[entry] = x.row[k]
            rate += x.row[k] * v[k]
        x.tendon_velocity[t] = rate


@njit
def rest_lengths(m: Any, q: Any, v: Any, w: Any, e: Any, x: Any) -> None:
    """x.spring_length (nt, 2); where the file gives none, that in the joints' spring references. q is scratch, v 0."""
    for n in range(q.shape[0]):
        q[n] = e.relaxed[n]
    kinematics(m, q, w)
    tendon_paths(m, q, v, w, e, x)
    for t in range(x.tendon_length.shape[0]):
        for end in range(2):
            rest = e.tendon_spring[t, end]
            x.spring_length[t, end] = x.tendon_length[t] if rest != rest else rest


@njit
def _sum_of_joints(m: Any, q: Any, e: Any, x: Any, t: Any) -> Any:
    """Length of a fixed tendon: coordinates with their coefficients; its moments are added to x.row."""
    length = 0.0
    for p in range(e.tendon_path[t], e.tendon_path[t + 1]):
        k = e.path_index[p]
        length += e.path_value[p] * q[m.dof_coord[k]]
        x.row[k] += e.path_value[p]
    return length


@njit
def _path(m: Any, w: Any, e: Any, x: Any, t: Any) -> Any:
    """Length of a spatial tendon, branch by branch; its moments are added to x.row."""
    length = 0.0
    share = 1.0
    p = e.tendon_path[t]
    while p < e.tendon_path[t + 1] - 1:
        if e.path_kind[p] == PATH_PULLEY:
            share = 1.0 / e.path_value[p]
            p += 1
        elif e.path_kind[p + 1] == PATH_PULLEY:
            p += 1
        elif e.path_kind[p + 1] == PATH_SITE:
            length += share * _straight(m, w, e, x, e.path_index[p], e.path_index[p + 1], share)
            p += 1
        else:
            length += share * _wrapped(m, w, e, x, p, share)
            p += 2
    return length


@inlined
def site_point(m: Any, w: Any, e: Any, site: Any) -> Any:
    """Where a site is in the world [m]."""
    p = e.site_position[site]
    return point_of(m, w, e.site_body[site], p[0], p[1], p[2])


@njit
def _straight(m: Any, w: Any, e: Any, x: Any, first: Any, second: Any, share: Any) -> Any:
    """Length of the straight piece between two sites."""
    a0, a1, a2 = site_point(m, w, e, first)
    b0, b1, b2 = site_point(m, w, e, second)
    return _piece(m, w, e.site_body[first], e.site_body[second], a0, a1, a2, b0, b1, b2, share, x.row)


@njit
def _piece(
    m: Any,
    w: Any,
    body_a: Any,
    body_b: Any,
    a0: Any,
    a1: Any,
    a2: Any,
    b0: Any,
    b1: Any,
    b2: Any,
    share: Any,
    out: Any,
) -> Any:
    """Length from point a of one body to b of another; share × its derivatives by the dofs are added to out (nv,)."""
    u0, u1, u2, length = unit3(b0 - a0, b1 - a1, b2 - a2)
    if body_a != body_b:
        add_point_force(m, w, body_a, a0, a1, a2, -share * u0, -share * u1, -share * u2, out)
        add_point_force(m, w, body_b, b0, b1, b2, share * u0, share * u1, share * u2, out)
    return length


@njit
def _wrapped(m: Any, w: Any, e: Any, x: Any, p: Any, share: Any) -> Any:
    """Length from site to site by way of the geom at path element p + 1."""
    first, geom, second = e.path_index[p], e.path_index[p + 1], e.path_index[p + 2]
    on_geom, c0, c1, c2, d0, d1, d2 = way_around(m, w, e, p)
    if on_geom < 0.0:
        return _straight(m, w, e, x, first, second, share)
    body = e.wrap_body[geom]
    a0, a1, a2 = site_point(m, w, e, first)
    b0, b1, b2 = site_point(m, w, e, second)
    before = _piece(m, w, e.site_body[first], body, a0, a1, a2, c0, c1, c2, share, x.row)
    after = _piece(m, w, body, e.site_body[second], d0, d1, d2, b0, b1, b2, share, x.row)
    return before + on_geom + after


@njit
def way_around(m: Any, w: Any, e: Any, p: Any) -> Any:
    """Length on the geom at path element p + 1 (-1: the tendon passes it), and where the tendon meets and leaves it."""
    first, geom, second = e.path_index[p], e.path_index[p + 1], e.path_index[p + 2]
    a0, a1, a2 = site_point(m, w, e, first)
    b0, b1, b2 = site_point(m, w, e, second)
    l0, l1, l2 = _in_geom(m, w, e, geom, a0, a1, a2)
    r0, r1, r2 = _in_geom(m, w, e, geom, b0, b1, b2)
    sided = e.path_side[p + 1] >= 0
    s0, s1, s2 = a0, a1, a2
    if sided:
        s0, s1, s2 = site_point(m, w, e, e.path_side[p + 1])
        s0, s1, s2 = _in_geom(m, w, e, geom, s0, s1, s2)
    on_geom, c0, c1, c2, d0, d1, d2 = wrap(
        e.path_kind[p + 1], e.wrap_radius[geom], l0, l1, l2, r0, r1, r2, sided, s0, s1, s2
    )
    if on_geom >= 0.0:
        c0, c1, c2 = _out_of_geom(m, w, e, geom, c0, c1, c2)
        d0, d1, d2 = _out_of_geom(m, w, e, geom, d0, d1, d2)
    return on_geom, c0, c1, c2, d0, d1, d2


@inlined
def _in_geom(m: Any, w: Any, e: Any, geom: Any, x: Any, y: Any, z: Any) -> Any:
    """A point of the world in the frame of a wrap geom."""
    body = e.wrap_body[geom]
    R = w.rotation[body]
    L = e.wrap_rotation[geom]
    p = e.wrap_position[geom]
    o0, o1, o2 = origin_of(m, w, body)
    x, y, z = x - o0, y - o1, z - o2
    d0 = R[0, 0] * x + R[1, 0] * y + R[2, 0] * z - p[0]
    d1 = R[0, 1] * x + R[1, 1] * y + R[2, 1] * z - p[1]
    d2 = R[0, 2] * x + R[1, 2] * y + R[2, 2] * z - p[2]
    return (
        L[0, 0] * d0 + L[1, 0] * d1 + L[2, 0] * d2,
        L[0, 1] * d0 + L[1, 1] * d1 + L[2, 1] * d2,
        L[0, 2] * d0 + L[1, 2] * d1 + L[2, 2] * d2,
    )


@inlined
def _out_of_geom(m: Any, w: Any, e: Any, geom: Any, x: Any, y: Any, z: Any) -> Any:
    """A point of a wrap geom in the world."""
    p = e.wrap_position[geom]
    d0, d1, d2 = turn(e.wrap_rotation, geom, x, y, z)
    return point_of(m, w, e.wrap_body[geom], p[0] + d0, p[1] + d1, p[2] + d2)


@njit
def add_tendon_inertia(m: Any, w: Any, e: Any, x: Any) -> None:
    """Add armature Jᵀ J of all tendons to w.mass_matrix, in what it holds: between dofs of one chain, as MuJoCo's M."""
    for t in range(e.tendon_armature.shape[0]):
        if e.tendon_armature[t] == 0.0:
            continue
        for k in range(x.row.shape[0]):
            x.row[k] = 0.0
        for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
            x.row[e.tendon_dof[entry]] = x.tendon_moment[entry]
        for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
            k = e.tendon_dof[entry]
            j = k
            while j >= 0:
                w.mass_matrix[k, j] += e.tendon_armature[t] * x.row[k] * x.row[j]
                j = m.dof_parent[j]


@njit
def has_inertia(e: Any) -> bool:
    """True when a tendon has armature."""
    for t in range(e.tendon_armature.shape[0]):
        if e.tendon_armature[t] > 0.0:
            return True
    return False


@njit
def add_inertia_forces(m: Any, v: Any, a: Any, w: Any, e: Any, x: Any, out: Any) -> None:
    """Add what the tendons' inertias need at velocities v and accelerations a, armature Jᵀ (J a + J̇ v), to out (nv,).

    Lengths and moments in x are up to date, and so are `velocities`; `accelerations` are then those at a = 0.
    """
    if not has_inertia(e):
        return
    prepare_drifts(m, v, w, x)
    for t in range(e.tendon_armature.shape[0]):
        if e.tendon_armature[t] > 0.0:
            rate = tendon_drift(m, w, e, t)
            for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
                rate += x.tendon_moment[entry] * a[e.tendon_dof[entry]]
            for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
                out[e.tendon_dof[entry]] += e.tendon_armature[t] * rate * x.tendon_moment[entry]


@njit
def add_inertia(e: Any, x: Any, M: Any) -> None:
    """Add armature Jᵀ J of all tendons to M (nv, nv), between all dofs."""
    for t in range(e.tendon_armature.shape[0]):
        if e.tendon_armature[t] > 0.0:
            for row in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
                share = e.tendon_armature[t] * x.tendon_moment[row]
                for column in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
                    M[e.tendon_dof[row], e.tendon_dof[column]] += share * x.tendon_moment[column]


@njit
def inertia_energy(e: Any, x: Any) -> Any:
    """Kinetic energy of the tendons' own motion [J], x.tendon_velocity being up to date."""
    total = 0.0
    for t in range(e.tendon_armature.shape[0]):
        total += 0.5 * e.tendon_armature[t] * x.tendon_velocity[t] * x.tendon_velocity[t]
    return total


# ------------------------------------------------------------------ the moments' rates


@njit
def prepare_drifts(m: Any, v: Any, w: Any, x: Any) -> None:
    """The bodies' accelerations where no dof accelerates, which tendon_drift works with."""
    for k in range(x.row2.shape[0]):
        x.row2[k] = 0.0
    accelerations(m, v, x.row2, w)


@njit
def tendon_drift(m: Any, w: Any, e: Any, t: Any) -> Any:
    """J̇ v: the second derivative of a tendon's length where nothing accelerates [m/s²].

    Fixed tendons and paths over sites. Needs `velocities` and `prepare_drifts`.
    """
    total = 0.0
    share = 1.0
    for p in range(e.tendon_path[t], e.tendon_path[t + 1] - 1):
        if e.path_kind[p] == PATH_PULLEY:
            share = 1.0 / e.path_value[p]
        elif e.path_kind[p] == PATH_SITE and e.path_kind[p + 1] == PATH_SITE:
            total += share * _stretching(m, w, e, e.path_index[p], e.path_index[p + 1])
    return total


@njit
def _stretching(m: Any, w: Any, e: Any, first: Any, second: Any) -> Any:
    """d²l/dt² of the distance l of two sites: û · Δa + (|Δv|² - l̇²) / l."""
    a0, a1, a2 = site_point(m, w, e, first)
    b0, b1, b2 = site_point(m, w, e, second)
    u0, u1, u2, length = unit3(b0 - a0, b1 - a1, b2 - a2)
    v0, v1, v2, c0, c1, c2 = _motion(m, w, e.site_body[first], a0, a1, a2)
    x0, x1, x2, d0, d1, d2 = _motion(m, w, e.site_body[second], b0, b1, b2)
    x0, x1, x2 = x0 - v0, x1 - v1, x2 - v2
    rate = u0 * x0 + u1 * x1 + u2 * x2
    value = u0 * (d0 - c0) + u1 * (d1 - c1) + u2 * (d2 - c2)
    if length > 0.0:
        value += (x0 * x0 + x1 * x1 + x2 * x2 - rate * rate) / length
    return value


@njit
def _motion(m: Any, w: Any, body: Any, x: Any, y: Any, z: Any) -> Any:
    """Velocity and acceleration (less gravity) of a body's point at (x, y, z)."""
    o0, o1, o2 = origin_of(m, w, body)
    x, y, z = x - o0, y - o1, z - o2
    o = w.angular_velocity[body]
    b = w.angular_acceleration[body]
    r0, r1, r2 = cross(o[0], o[1], o[2], x, y, z)
    c0, c1, c2 = cross(o[0], o[1], o[2], r0, r1, r2)
    d0, d1, d2 = cross(b[0], b[1], b[2], x, y, z)
    u = w.velocity[body]
    a = w.acceleration[body]
    return u[0] + r0, u[1] + r1, u[2] + r2, a[0] + c0 + d0, a[1] + c1 + d1, a[2] + c2 + d2
