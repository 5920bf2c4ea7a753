"""Damping of link motion, -c m v at the centre of mass and -c I ω, integrated implicitly like that of joints.

D = Σ Jᵀ diag(c m, c I) J has the sparsity of M, and h D is added to it, which is stable at any c and time step. The
code serves both widths.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import gather_forces
from artsim.sim.articulation.kinematics import jacobian, like, link_frame, turned_inertia, velocities
from artsim.sim.articulation.model import ANGULAR, LINEAR, Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.constraints.link_velocity_rows import link_centre
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.foundation.spatial import add_pair, motion_column, pair_of, power, velocity_at
from artsim.sim.foundation.vec3 import cross, plus_times, times
from artsim.sim.run_data.link_rules import RuleBundle


@njit
def add_link_damping(model: Model, data: Workspace, h: float, rules: RuleBundle) -> None:
    """data.mass_matrix += h D. Needs kinematics and motion columns. O(d²) per damped link of d dofs."""
    J = rules.data.columns
    M = data.mass_matrix
    for n in range(rules.model.damped_link.shape[0]):
        link = rules.model.damped_link[n]
        i = model.link_body[link]
        c = link_centre(model, data, link)
        jacobian(model, data, i, c, J)
        linear = h * rules.model.damping[n, LINEAR] * model.link_mass[link]
        angular = h * rules.model.damping[n, ANGULAR]
        R, _ = link_frame(model, data, link)
        k = model.body_dof[i + 1] - 1
        while k >= 0:
            u, w = motion_column(J, k)
            F = times(linear, u), times(angular, turned_inertia(model, link, R, w))
            j = k
            while j >= 0:
                M[k, j] += power(motion_column(J, j), F)
                j = model.dof_parent[j]
            k = model.dof_parent[k]


@njit
def link_damping_forces(model: Model, v: Reals1, data: Workspace, rules: RuleBundle) -> None:
    """rules.data.force (nv,) = -D v. Needs kinematics; leaves data with the velocities at v."""
    velocities(model, v, data)
    zero = like(0.0, data)
    for i in range(model.body_parent.shape[0]):
        for axis in range(3):
            data.force[i, axis] = zero
            data.torque[i, axis] = zero
    for n in range(rules.model.damped_link.shape[0]):
        link = rules.model.damped_link[n]
        i = model.link_body[link]
        c = link_centre(model, data, link)
        V = pair_of(data.velocity, data.angular_velocity, i)
        f = times(-rules.model.damping[n, LINEAR] * model.link_mass[link], velocity_at(V, c))
        R, _ = link_frame(model, data, link)
        angular = -rules.model.damping[n, ANGULAR]
        torque = plus_times(cross(c, f), angular, turned_inertia(model, link, R, V[1]))
        add_pair(data.force, data.torque, i, (f, torque))
    gather_forces(model, data, rules.data.force)
