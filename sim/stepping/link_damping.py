"""Damping of link motion, -c m v at the centre of mass and -c I ω, integrated implicitly like that of joints.

D = Σ Jᵀ diag(c m, c I) J has the sparsity of M, and h D is added to it, which is stable at any c and time step. The
code serves both widths.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import gather_forces
from artsim.sim.articulation.kinematics import jacobian, like, link_frame, velocities
from artsim.sim.articulation.model import ANGULAR, LINEAR, Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.constraints.link_velocity_rows import link_centre
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.foundation.vec3 import cross, plus, row_of, set_row, symmetric_times, times, turned_back
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
        jacobian(model, data, i, data.arm[i, 0] + c[0], data.arm[i, 1] + c[1], data.arm[i, 2] + c[2], J)
        linear = h * rules.model.damping[n, LINEAR] * model.link_mass[link]
        angular = h * rules.model.damping[n, ANGULAR]
        R, _ = link_frame(model, data, link)
        k = model.body_dof[i + 1] - 1
        while k >= 0:
            u = turned_back(R, (J[3, k], J[4, k], J[5, k]))
            L = symmetric_times(model.link_inertia, link, u)
            t = (
                angular * (R[0] * L[0] + R[1] * L[1] + R[2] * L[2]),
                angular * (R[3] * L[0] + R[4] * L[1] + R[5] * L[2]),
                angular * (R[6] * L[0] + R[7] * L[1] + R[8] * L[2]),
            )
            f = (linear * J[0, k], linear * J[1, k], linear * J[2, k])
            j = k
            while j >= 0:
                M[k, j] += (
                    f[0] * J[0, j] + f[1] * J[1, j] + f[2] * J[2, j] + t[0] * J[3, j] + t[1] * J[4, j] + t[2] * J[5, j]
                )
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
        a = row_of(data.angular_velocity, i)
        y = cross(a, c)
        linear = -rules.model.damping[n, LINEAR] * model.link_mass[link]
        f = times(linear, plus(row_of(data.velocity, i), y))
        R, _ = link_frame(model, data, link)
        u = turned_back(R, a)
        L = symmetric_times(model.link_inertia, link, u)
        t = cross(c, f)
        angular = -rules.model.damping[n, ANGULAR]
        set_row(data.force, i, plus(row_of(data.force, i), f))
        data.torque[i, 0] += t[0] + angular * (R[0] * L[0] + R[1] * L[1] + R[2] * L[2])
        data.torque[i, 1] += t[1] + angular * (R[3] * L[0] + R[4] * L[1] + R[5] * L[2])
        data.torque[i, 2] += t[2] + angular * (R[6] * L[0] + R[7] * L[1] + R[8] * L[2])
    gather_forces(model, data, rules.data.force)
