"""Whole-robot quantities: centre of mass, momentum and its map, energy."""

from __future__ import annotations

from artsim.sim.articulation.dynamics import column_momentum
from artsim.sim.articulation.kinematics import axis_of, like, origin_of
from artsim.sim.articulation.model import WORLD, Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import symmetric_times
from artsim.sim.foundation.records import Lanes1, Lanes2, Real
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.foundation.spatial import set_motion_column, shifted_force
from artsim.sim.foundation.vec3 import cross, dot, minus, row_of, set_column, times


@njit
def centre_of_mass(model: Model, data: Workspace, c: Lanes1) -> None:
    """c (3,): centre of mass of all links, fixed ones included [m]; 0 for a robot without mass. Needs `composites`."""
    for k in range(3):
        c[k] = like(model.body_moment[WORLD, k], data)
    for i in range(1, model.body_parent.shape[0]):
        if model.body_parent[i] == 0:
            p = origin_of(model, data, i)
            for k in range(3):
                c[k] = c[k] + data.composite_moment[i, k] + model.carried_mass[i] * p[k]
    for k in range(3):
        c[k] = c[k] * _per_mass(model)


@inlined
def _per_mass(model: Model) -> Real:
    return inverse_or_zero(model.carried_mass[WORLD])


@njit
def centre_of_mass_jacobian(model: Model, data: Workspace, J: Lanes2) -> None:
    """The first 3 rows of J (…, nv): velocity of the centre of mass per dof. Needs `composites`."""
    h = data.composite_moment
    for k in range(model.dof_body.shape[0]):
        i = model.dof_body[k]
        a = axis_of(data, k)
        if model.dof_linear[k]:
            set_column(J, k, 0, times(_per_mass(model) * model.carried_mass[i], a))
        else:
            set_column(J, k, 0, times(_per_mass(model), cross(a, row_of(h, i))))


@njit
def centroidal_map(model: Model, data: Workspace, c: Lanes1, A: Lanes2) -> None:
    """A (6, nv): momentum per unit of generalised velocity, linear, then angular about c (3,), world axes. Needs
    `composites`.

    Orin, Goswami, Lee 2013, with composite bodies. O(nv).
    """
    for k in range(model.dof_body.shape[0]):
        p = origin_of(model, data, model.dof_body[k])
        set_motion_column(A, k, shifted_force(column_momentum(model, data, k), minus(p, c)))


@njit
def momentum(A: Lanes2, v: Lanes1, zero: Real, h: Lanes1) -> None:
    """h (6,) = A v."""
    for row in range(6):
        h[row] = zero
        for k in range(v.shape[0]):
            h[row] = h[row] + A[row, k] * v[k]


@njit
def root_wrench(model: Model, data: Workspace, c: Lanes1, out: Lanes1) -> None:
    """out (6,): sum of the wrenches that `inverse_dynamics` left at the trees' roots, about c (3,).

    Without gravity this is the rate of change of the momentum (fixed parts have none).
    """
    for row in range(6):
        out[row] = like(0.0, data)
    for i in range(1, model.body_parent.shape[0]):
        if model.body_parent[i] == 0:
            p = origin_of(model, data, i)
            f = data.force[i]
            t = cross(minus(p, c), f)
            for row in range(3):
                out[row] = out[row] + f[row]
                out[3 + row] = out[3 + row] + data.torque[i, row] + t[row]


@njit
def kinetic_energy(model: Model, v: Lanes1, data: Workspace) -> Real:
    """½ vᵀ M v, including rotors [J]. Needs `world_inertia` and `velocities`."""
    total = like(0.0, data)
    for i in range(1, model.body_parent.shape[0]):
        total += body_energy(model, data, i)
    for k in range(v.shape[0]):
        total += 0.5 * model.armature[k] * v[k] * v[k]
    return total


@njit
def body_energy(model: Model, data: Workspace, i: int) -> Real:
    """Kinetic energy of body i, without its rotors [J]."""
    u = row_of(data.velocity, i)
    o = row_of(data.angular_velocity, i)
    L = symmetric_times(data.inertia, i, o)
    c = cross(o, row_of(data.moment, i))
    linear = 0.5 * model.body_mass[i] * dot(u, u) + u[0] * c[0] + u[1] * c[1] + u[2] * c[2]
    return linear + 0.5 * dot(o, L)


@njit
def potential_energy(model: Model, q: Lanes1, c: Lanes1) -> Real:
    """Potential energy of gravity, with the centre of mass at c (3,), and of linear springs of single coordinates
    [J]."""
    g = model.gravity
    total = -model.carried_mass[WORLD] * dot(g, c)
    for k in range(model.stiffness.shape[0]):
        if model.stiffness[k] != 0.0 and model.dof_coord[k] >= 0:
            x = q[model.dof_coord[k]] - model.spring_reference[k]
            total += 0.5 * model.stiffness[k] * x * x
    return total
