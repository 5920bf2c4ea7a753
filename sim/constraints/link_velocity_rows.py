"""Builds unilateral rows that limit the velocities of links and of the whole robot (PhysX: maxLinearVelocity, …).

A velocity (3 numbers) may be as long as its bound, in any direction. Its row bounds it along one direction d: dᵀ J v ≤
bound. The rows exist in every step but are inactive at first. When the velocities found violate a bound, its row gets
the direction of the velocity, and the step is solved again. Where a chain is lighter in one direction than in another,
a push along d changes the velocity in another direction, so d is found iteratively: with p the velocity and p₀ that
without the row, p = p₀ - λ W d must be parallel to d. With α = dᵀ (p₀ - p) = λ dᵀ W d, the next d is the direction of p
+ α d, which is exact at once where W is a multiple of the identity. Each round costs another solution of the step (two
to eight as a rule; more only for velocities many times the bound); none is needed while no bound is violated. The
excess that remains after MOST_BOUND_ROUNDS counts as the solver's residual.

The bounds apply to the velocity after the step in the pose after it, as a user sees it.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.centroidal import centre_of_mass, centre_of_mass_jacobian, centroidal_map
from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import (
    jacobian,
    kinematics,
    like,
    link_frame,
    origin_of,
    turned_inertia,
    velocities,
)
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.kinds import LINK_ROW
from artsim.sim.constraints.row import add_entry, add_row, drift_of
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, sqrt, where_greater, zero_like
from artsim.sim.foundation.mat3 import plus_turned, symmetric_turned
from artsim.sim.foundation.records import Lanes1, Real, Vec3
from artsim.sim.foundation.scalars import divisor, inverse_or_zero, largest
from artsim.sim.foundation.spatial import pair_of, velocity_at
from artsim.sim.foundation.vec3 import column_of, cross, dot, minus, plus, put, row_of, set_column, times, triple
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import RESIDUAL, Inputs, Rows, RunBundle

_TOLERANCE = 1e-13  # relative to the bound
_BROKEN = 1e-6  # relative to the bound, or [m/s or rad/s] for bounds below 1
MOST_BOUND_ROUNDS = 60


@njit
def link_rows(model: Model, data: Workspace, inputs: Inputs, rows: Rows, rules: RuleBundle) -> None:
    """Append a row per bound, without entries until active; lanes where it is not active get no impulse from it. Needs
    motion columns and composites of the mass matrix. In both widths."""
    h = inputs.time_step[0]
    J = rules.data.columns
    zero = like(0.0, data)
    for n in range(rules.model.bound.shape[0]):
        row = add_row(rows, LINK_ROW, n)
        rows.part[row] = rules.model.bound_angular[n]
        rows.lower[row] = zero
        active = rules.data.active[n]
        rows.upper[row] = where_greater(active, zero, rows.upper[row], zero)
        if not any_positive(active):
            continue
        _columns(model, data, rules, n)
        x = rules.data.direction[n]
        first = 3 * rules.model.bound_angular[n]
        for k in range(J.shape[1]):
            value = x[0] * J[first, k] + x[1] * J[first + 1, k] + x[2] * J[first + 2, k]
            if any_positive(active * absolute(value)):
                add_entry(model, data, rows, k, where_greater(active, zero, -value, zero))
        rows.bias[row] = rules.model.bound[n] - rules.data.ahead[n] + h * drift_of(data, rows, row)


@njit
def loosen(rules: RuleBundle, chosen: Real) -> None:
    """Deactivate all bounds where `chosen` is 1, as every evaluation of the bias starts; in both widths."""
    zero = zero_like(chosen)
    for n in range(rules.model.bound.shape[0]):
        rules.data.active[n] = where_greater(chosen, zero, zero, rules.data.active[n])
        rules.data.speed[n] = where_greater(chosen, zero, zero, rules.data.speed[n])


@njit
def note_excess(model: Model, data: Workspace, rows: Rows, rules: RuleBundle, chosen: Real) -> Real:
    """Count the excess over the bounds that the rounds left as the solver's residual where `chosen` is 1; 1 + the
    number of a bound that is violated and ends the run, 0 where there is none. In both widths.

    A state that starts above a bound may take some steps to come down to it. data is that of the step's start.
    """
    zero = zero_like(chosen)
    violated = zero
    for n in range(rules.model.bound.shape[0]):
        bound, speed = rules.model.bound[n], rules.data.speed[n]
        excess = where_greater(chosen, zero, speed - bound, zero)
        rows.report[RESIDUAL] = largest(rows.report[RESIDUAL], excess)
        fast = where_greater(excess, zero + _BROKEN * max(bound, 1.0), chosen, zero)
        if any_positive(fast):
            _velocity_in(model, data, rules, n)
            x = rules.data.velocity
            fast = where_greater(sqrt(dot(x, x)), speed, zero, fast)
            violated = where_greater(fast, zero, zero + (1 + n), violated)
    return violated


@njit
def _velocity_in(model: Model, data: Workspace, rules: RuleBundle, n: int) -> None:
    """rules.data.velocity of bound n, in the pose of data."""
    if rules.model.bound_link[n] < 0:
        _whole_velocity(model, data, rules.model.bound_angular[n], rules)
    else:
        _link_velocity(model, data, rules.model.bound_link[n], rules.model.bound_angular[n], rules)


@njit
def aim_bounds(robot: RobotBundle, run: RunBundle, rules: RuleBundle, chosen: Real) -> Real:
    """Direct the rows of bounds that step.velocity violates, in the pose to which it leads, where `chosen` is 1; 1
    where it violates any. In both widths."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    broken = zero_like(chosen)
    if rules.model.bound.shape[0] == 0:
        return broken
    h = run.inputs.time_step[0]
    for n in range(rules.model.bound.shape[0]):
        _columns(model, data, rules, n)
        first = 3 * rules.model.bound_angular[n]
        for axis in range(3):
            rules.data.seen[n, axis] = zero_like(chosen)
            for k in range(step.velocity.shape[0]):
                rules.data.seen[n, axis] += rules.data.columns[first + axis, k] * step.velocity[k]
    for k in range(step.tangent.shape[0]):
        step.tangent[k] = data.drift[k]
    for k in range(step.stage_qpos.shape[0]):
        step.stage_qpos[k] = state.qpos[k]
    for k in range(step.velocity.shape[0]):
        step.stage_qvel[k] = step.velocity[k]
    move(model, step.stage_qpos, step.stage_qvel, h)
    expand(model, step.stage_qpos, step.stage_qvel, data)
    kinematics(model, step.stage_qpos, data)
    velocities(model, step.stage_qvel, data)
    for n in range(rules.model.bound.shape[0]):
        _velocity_in(model, data, rules, n)
        broken = largest(broken, _aim(rules, n, chosen))
    expand(model, state.qpos, state.qvel, data)
    for k in range(step.tangent.shape[0]):
        data.drift[k] = step.tangent[k]
    kinematics(model, state.qpos, data)
    velocities(model, state.qvel, data)
    return broken


@njit
def _aim(rules: RuleBundle, n: int, chosen: Real) -> Real:
    """1 where `chosen` is 1 and rules.data.velocity violates bound n; sets its row's direction there, and the part that
    the row does not see."""
    p, work, zero = rules.data.velocity, rules.data, zero_like(chosen)
    speed = sqrt(dot(p, p))
    most = zero + (rules.model.bound[n] * (1.0 + _TOLERANCE) + 1e-300)
    broken = where_greater(speed, most, where_greater(zero + math.inf, speed, chosen, zero), zero)
    new = where_greater(work.active[n], zero, zero, broken)
    further = where_greater(speed, work.speed[n], where_greater(work.speed[n], zero, broken - new, zero), zero)
    share = where_greater(further, zero, 2.0 * work.share[n], work.share[n])  # the direction turned too far
    work.share[n] = where_greater(new, zero, zero + 1.0, share)
    work.active[n] = where_greater(broken, zero, zero + 1.0, work.active[n])
    x = work.direction[n]
    along = zero
    for axis in range(3):
        work.unbound[n, axis] = where_greater(new, zero, p[axis], work.unbound[n, axis])
        along += x[axis] * (work.unbound[n, axis] - p[axis])
    along = where_greater(new, zero, zero, largest(along, zero) * work.share[n])
    work.speed[n] = where_greater(chosen, zero, where_greater(broken, zero, speed, zero), work.speed[n])
    size = zero
    for axis in range(3):
        aim = where_greater(along, zero, p[axis] + along * x[axis], p[axis])
        x[axis] = where_greater(broken, zero, aim, x[axis])
        size += x[axis] * x[axis]
    size = sqrt(size)
    ahead = zero
    for axis in range(3):
        x[axis] = where_greater(broken, zero, x[axis] / divisor(size), x[axis])
        ahead += x[axis] * (p[axis] - work.seen[n, axis])
    work.ahead[n] = where_greater(broken, zero, ahead, work.ahead[n])
    return broken


@njit
def _columns(model: Model, data: Workspace, rules: RuleBundle, n: int) -> None:
    """rules.data.columns (6, nv): the Jacobian to which bound n applies, in the step's pose."""
    J = rules.data.columns
    for line in range(6):
        for k in range(J.shape[1]):
            J[line, k] = like(0.0, data)
    link = rules.model.bound_link[n]
    if link >= 0:
        i = model.link_body[link]
        c = link_centre(model, data, link)
        jacobian(model, data, i, c, J)
    elif rules.model.bound_angular[n] == 0:
        centre_of_mass_jacobian(model, data, J)
    else:
        centre_of_mass(model, data, rules.data.centre)
        centroidal_map(model, data, rules.data.centre, J)
        _whole_inertia(model, data, rules)
        for k in range(J.shape[1]):
            set_column(J, k, 3, _divided(rules.data.inertia, column_of(J, k, 3)))


@inlined
def link_centre(model: Model, data: Workspace, link: int) -> Vec3:
    """A link's centre of mass relative to its body's origin, world axes [m]."""
    R, p = link_frame(model, data, link)
    c = model.link_com[link]
    return plus_turned(p, R, c)


# ------------------------------------------------------------------ velocities in the pose of data


@njit
def _link_velocity(model: Model, data: Workspace, link: int, angular: int, rules: RuleBundle) -> None:
    """rules.data.velocity of a link: of its centre of mass, or angular. Needs `velocities`."""
    i = model.link_body[link]
    V = pair_of(data.velocity, data.angular_velocity, i)
    put(rules.data.velocity, V[1] if angular == 1 else velocity_at(V, link_centre(model, data, link)))


@njit
def _whole_velocity(model: Model, data: Workspace, angular: int, rules: RuleBundle) -> None:
    """rules.data.velocity of the robot: of its centre of mass, or the mean angular one I⁻¹ L about it (Orin 2013)."""
    zero = like(0.0, data)
    for axis in range(3):
        rules.data.centre[axis] = zero
        rules.data.velocity[axis] = zero
    mass = zero
    for link in range(model.link_body.shape[0]):
        mass += model.link_mass[link]
    per_mass = inverse_or_zero(mass)
    for link in range(model.link_body.shape[0]):
        share = model.link_mass[link] * per_mass
        p, u = _motion(model, data, link)
        for axis in range(3):
            rules.data.centre[axis] += share * p[axis]
            rules.data.velocity[axis] += share * u[axis]
    if angular == 0:
        return
    v = triple(rules.data.velocity)
    L = (zero, zero, zero)
    for link in range(model.link_body.shape[0]):
        p, u = _motion(model, data, link)
        orbit = times(model.link_mass[link], cross(minus(p, rules.data.centre), minus(u, v)))
        L = plus(L, plus(orbit, _spin(model, data, link)))
    _whole_inertia(model, data, rules)
    put(rules.data.velocity, _divided(rules.data.inertia, L))


@inlined
def _motion(model: Model, data: Workspace, link: int) -> tuple[Vec3, Vec3]:
    """Position and velocity of a link's centre of mass."""
    i = model.link_body[link]
    c = link_centre(model, data, link)
    return plus(origin_of(model, data, i), c), velocity_at(pair_of(data.velocity, data.angular_velocity, i), c)


@inlined
def _spin(model: Model, data: Workspace, link: int) -> Vec3:
    """I ω of a link about its centre of mass, world axes."""
    R, _ = link_frame(model, data, link)
    return turned_inertia(model, link, R, row_of(data.angular_velocity, model.link_body[link]))


@njit
def _whole_inertia(model: Model, data: Workspace, rules: RuleBundle) -> None:
    """rules.data.inertia (6,) of the robot about rules.data.centre, world axes."""
    I = rules.data.inertia
    for n in range(6):
        I[n] = like(0.0, data)
    for link in range(model.link_body.shape[0]):
        c = link_centre(model, data, link)
        x = origin_of(model, data, model.link_body[link])
        y = minus(plus(x, c), rules.data.centre)
        R, _ = link_frame(model, data, link)
        T = model.link_inertia[link]
        mass = model.link_mass[link]
        n = 0
        for a in range(3):
            p = (
                R[3 * a] * T[0] + R[3 * a + 1] * T[1] + R[3 * a + 2] * T[2],
                R[3 * a] * T[1] + R[3 * a + 1] * T[3] + R[3 * a + 2] * T[4],
                R[3 * a] * T[2] + R[3 * a + 1] * T[4] + R[3 * a + 2] * T[5],
            )
            for b in range(a, 3):
                I[n] += p[0] * R[3 * b] + p[1] * R[3 * b + 1] + p[2] * R[3 * b + 2]
                n += 1
        I[0] += mass * (y[1] * y[1] + y[2] * y[2])
        I[1] -= mass * y[0] * y[1]
        I[2] -= mass * y[0] * y[2]
        I[3] += mass * (y[0] * y[0] + y[2] * y[2])
        I[4] -= mass * y[1] * y[2]
        I[5] += mass * (y[0] * y[0] + y[1] * y[1])


@inlined
def _divided(I: Lanes1, L: Vec3) -> Vec3:
    """I⁻¹ L for a symmetric matrix (6,); 0 where it is singular."""
    a = I[3] * I[5] - I[4] * I[4]
    b = I[2] * I[4] - I[1] * I[5]
    c = I[1] * I[4] - I[2] * I[3]
    determinant = I[0] * a + I[1] * b + I[2] * c
    per = inverse_or_zero(determinant)
    e = I[0] * I[5] - I[2] * I[2]
    g = I[1] * I[2] - I[0] * I[4]
    k = I[0] * I[3] - I[1] * I[1]
    return times(per, symmetric_turned((a, b, c, e, g, k), L))
