"""The step, and the loop over a block of steps.

Semi-implicit Euler: kinematics → M̂ and bias → free velocity → constraint rows → solver → positions. What no row
bounds is exact at once; a limit, velocity limit or drive limit gets its row when the velocities found would break it,
and the step is solved again (lazy rows), until nothing is broken.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.actuation import (
    actuator_force,
    applied_forces,
    coordinate,
    drive_force,
    implicit_system,
    passive_forces,
)
from artsim.sim.centroidal import centre_of_mass, kinetic_energy, potential_energy
from artsim.sim.constraints.actuator import has_actuator_rows
from artsim.sim.constraints.coupling import coupling_slope
from artsim.sim.constraints.limit import mark_violations
from artsim.sim.constraints.loop import clear_loop_forces, note_loop_forces
from artsim.sim.constraints.rows import build, joint_forces, only_equalities, responses
from artsim.sim.constraints.tendon import mark_tendon_violations, needs_rows
from artsim.sim.coupling import expand, expand_velocity, reduce_matrix, reduce_vector
from artsim.sim.dynamics import (
    articulated_dynamics,
    composites,
    coupled_bias,
    factorise,
    inverse_dynamics,
    mass_matrix,
    solve,
)
from artsim.sim.equipment.actuators import advance_activations, clamp_actuators
from artsim.sim.equipment.forces import calibrate, equipment_forces
from artsim.sim.integrators import move
from artsim.sim.jit import njit
from artsim.sim.kinematics import kinematics, velocities, world_inertia
from artsim.sim.recording import record
from artsim.sim.run import DIRECT, INEQUALITY, NON_FINITE, PGS
from artsim.sim.solvers.direct import direct
from artsim.sim.solvers.pgs import pgs

_TOLERANCE = 1e-13  # of `auto`'s sweeps [rad/s or m/s]


@njit
def simulate(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, b: Any) -> None:
    """Take b.plan[0] steps from s, recording every b.plan[1]-th, or stop early with the reason in f.counters[2]."""
    _simulate(m, s, w, i, r, f, b, None, None)


@njit
def simulate_equipped(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, b: Any, e: Any, x: Any) -> None:
    """The same for a robot with equipment."""
    _simulate(m, s, w, i, r, f, b, e, x)


@njit
def _simulate(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, b: Any, e: Any, x: Any) -> None:
    """`e` and `x` are None for a robot without equipment: what asks for them is then not compiled."""
    begin(m, s, w, i, f, e, x)
    for _ in range(b.plan[0]):
        choose_controls(i, f)
        _euler(m, s, w, i, r, f, e, x)
        if not is_finite(m, f) or f.counters[2] != 0:
            break
        if f.counters[0] % b.plan[1] == 0:
            record(m, s, w, i, r, f, b, e, x)
        _finish_euler(m, s, w, i, f)
        if e is not None:
            advance_activations(e, x, i.time_step[0], s.activation)
        f.counters[0] += 1
    f.energy[1] = total_energy(m, s, w, f)


@njit
def begin(m: Any, s: Any, w: Any, i: Any, f: Any, e: Any, x: Any) -> None:
    """What a block of steps starts with: followers in place, no rows; before the first step energy and load."""
    f.counters[1] = 0
    if e is not None:
        calibrate(m, w, e, x, f)
    expand(m, s.qpos, s.qvel, w)
    f.counters[5] = 1 if _is_free(m, i) else 0
    if e is not None and (needs_rows(e) or has_actuator_rows(e)):
        f.counters[5] = 0
    if f.counters[0] == 0:
        f.energy[0] = total_energy(m, s, w, f)
        note_load(m, s, w, f)  # what the joints carry before anything moves: friction acts from the first step


@njit
def total_energy(m: Any, s: Any, w: Any, f: Any) -> Any:
    """Kinetic plus potential energy at the state [J]."""
    kinematics(m, s.qpos, w)
    world_inertia(m, w)
    composites(m, w)
    centre_of_mass(m, w, f.com)
    velocities(m, s.qvel, w)
    return kinetic_energy(m, s.qvel, w) + potential_energy(m, s.qpos, f.com)


@njit
def choose_controls(i: Any, f: Any) -> None:
    """f.counters[4]: the control row that acts on this step."""
    row = f.counters[4]
    while row + 1 < i.start_step.shape[0] and i.start_step[row + 1] <= f.counters[0]:
        row += 1
    f.counters[4] = row


@njit
def is_finite(m: Any, f: Any) -> bool:
    """False when a velocity at the end of the step is not finite; then the reason and its dof are in f.counters."""
    for a in range(f.next.shape[0]):
        if not math.isfinite(f.next[a]):
            f.counters[2] = NON_FINITE
            f.counters[3] = m.independent_dof[a]
            return False
    return True


# ------------------------------------------------------------------ semi-implicit Euler


@njit
def _euler(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any) -> None:
    """f.next = u at the end of the step, and the forces that lead there."""
    kinematics(m, s.qpos, w)
    world_inertia(m, w)
    applied_forces(m, s.qpos, s.qvel, w, i, f)
    if e is not None:
        equipment_forces(m, s.qpos, s.qvel, w, i, e, x, f, s.activation, 0)
    for k in range(f.velocity.shape[0]):
        f.stiffness[k] = i.drive_stiffness[k]
        f.damping[k] = i.drive_damping[k]
        r.row_of_position[k] = 0
        r.row_of_velocity[k] = 0
        r.implicit[k] = 1 if i.solver[0] != PGS and f.stiffness[k] + f.damping[k] > 0.0 else 0
    r.number[0] = 0
    r.report[0] = 0.0
    r.report[1] = 0.0
    if f.counters[5] == 1:
        _free_step(m, s, w, i, r, f, x)
        broken = _broken(m, s, i, r, f, e, x)
        clamped = _clamped(m, s, i, f, e, x)
        if not broken and not clamped:
            _collect_forces(m, s, w, i, r, f, e, x)
            return
        if broken and _refused(i, r, f, x):
            return
    bare_system(m, s.qpos, s.qvel, w, i, f)
    most = 5 * f.velocity.shape[0] + 1
    if e is not None:
        most += f.velocity.shape[0] + 2 * (e.actuator_target.shape[0] + e.tendon_lower.shape[0])
    for _ in range(most):  # every round adds a row; two or three rounds are the rule
        _solve_with_rows(m, s, w, i, r, f, e, x)
        broken = _broken(m, s, i, r, f, e, x)
        clamped = _clamped(m, s, i, f, e, x)
        if not broken and not clamped:
            break
        if broken and _refused(i, r, f, x):
            return
    f.worst_residual[0] = max(f.worst_residual[0], r.report[1])
    _collect_forces(m, s, w, i, r, f, e, x)


@njit
def _is_free(m: Any, i: Any) -> bool:
    """True when a step needs no matrix unless a limit is met: no couplings, no friction, drives all in M̂."""
    if m.coupling_follower.shape[0] + m.row_follower.shape[0] > 0:
        return False
    for k in range(m.dof_body.shape[0]):
        if m.friction[k] > 0.0 or m.friction_coefficient[k] > 0.0 or i.drive_acceleration[k] == 1:
            return False
        if i.solver[0] == PGS and i.drive_stiffness[k] + i.drive_damping[k] > 0.0:
            return False
    return True


@njit
def _free_step(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, x: Any) -> None:
    """The step without rows, by the articulated-body algorithm in O(n)."""
    h = i.time_step[0]
    implicit_system(m, s, w, i, r, f, x)
    for k in range(f.diagonal.shape[0]):
        f.diagonal[k] += m.armature[k]
    articulated_dynamics(m, s.qvel, f.force, f.diagonal, w, f.qacc)
    for k in range(f.qacc.shape[0]):
        f.velocity[k] = s.qvel[k] + h * f.qacc[k]
        f.next[k] = f.velocity[k]


@njit
def _broken(m: Any, s: Any, i: Any, r: Any, f: Any, e: Any, x: Any) -> bool:
    """Mark what the velocities found would break: limits get rows, drives leave M̂. True when there is any."""
    limits = mark_violations(m, s, i, r, f)
    drives = _release_drives(m, s, i, r, f)
    if e is not None:
        tendons = mark_tendon_violations(m, i, e, x, f)
        return limits or drives or tendons
    return limits or drives


@njit
def _clamped(m: Any, s: Any, i: Any, f: Any, e: Any, x: Any) -> bool:
    """Actuators beyond their bounds leave M̂ and the rows. True when there are any."""
    if e is not None:
        return clamp_actuators(m, s.qpos, i, e, x, f)
    return False


@njit
def bare_system(m: Any, q: Any, v: Any, w: Any, i: Any, f: Any) -> None:
    """Bias, M, and what is defined on the bare M: acceleration drives' gains (scaled in place), soft rows' r."""
    coupled_bias(m, v, w)
    composites(m, w)
    mass_matrix(m, w)
    needed = m.row_follower.shape[0] > 0
    for k in range(f.diagonal.shape[0]):
        f.diagonal[k] = 0.0
        if i.drive_acceleration[k] == 1:
            needed = True
    if not needed:
        return
    reduce_matrix(m, w, f.diagonal)
    factorise(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run)
    for c in range(m.row_follower.shape[0]):
        leader = m.row_leader[c]
        _, slope, _ = coupling_slope(m, c, coordinate(m, q, leader) if leader >= 0 else 0.0)
        f.effective_coupling[c] = _effective(m, w, m.row_follower[c], leader, slope)
    for k in range(f.diagonal.shape[0]):
        if i.drive_acceleration[k] == 1:
            mobility = _effective(m, w, k, -1, 0.0)
            inertia = 1.0 / mobility if mobility > 0.0 else 0.0  # of a dof that nothing moves: no force
            f.stiffness[k] *= inertia
            f.damping[k] *= inertia


@njit
def _effective(m: Any, w: Any, k: Any, leader: Any, slope: Any) -> Any:
    """J M⁻¹ Jᵀ for J = e_k - slope e_leader (no leader: -1), with the bare M factorised."""
    x = w.reduced
    for a in range(x.shape[0]):
        x[a] = 0.0
    a = m.dof_independent[k]
    b = m.dof_independent[leader] if leader >= 0 else -1
    if a >= 0:
        x[a] += w.gain[k]
    if b >= 0:
        x[b] -= slope * w.gain[leader]
    solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, x)
    value = 0.0
    if a >= 0:
        value += w.gain[k] * x[a]
    if b >= 0:
        value -= slope * w.gain[leader] * x[b]
    return value


@njit
def _solve_with_rows(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any) -> None:
    """Velocities at the end of the step, with the rows marked so far: f.next (nu,), f.velocity (nv,)."""
    h = i.time_step[0]
    implicit_system(m, s, w, i, r, f, x)
    for k in range(f.force.shape[0]):
        f.force[k] -= w.bias[k] + f.diagonal[k] * w.drift[k]
    reduce_matrix(m, w, f.diagonal)
    factorise(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run)
    reduce_vector(m, f.force, w, f.free)
    solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, f.free)
    for a in range(f.free.shape[0]):
        f.next[a] = s.qvel[m.independent_dof[a]] + h * f.free[a]
    build(m, s, w, i, r, f, e, x)
    if r.number[0] > 0:
        responses(m, w, r)
        if i.solver[0] == PGS:
            pgs(r, f.next, i.iterations[0], 0.0)
        elif only_equalities(r):
            direct(r, f.next)
        else:
            pgs(r, f.next, i.iterations[0], _TOLERANCE)
    expand_velocity(m, f.next, w, f.velocity)
    for k in range(f.velocity.shape[0]):
        f.velocity[k] += h * w.drift[k]


@njit
def _release_drives(m: Any, s: Any, i: Any, r: Any, f: Any) -> bool:
    """Drives in M̂ that would exceed their limit become rows; True when there are any."""
    found = False
    h = i.time_step[0]
    for k in range(f.velocity.shape[0]):
        if r.implicit[k]:
            v = f.velocity[k]
            force = drive_force(i, f, f.counters[4], k, coordinate(m, s.qpos, k) + h * v, v)
            if abs(force) > i.drive_limit[k] * (1.0 + 1e-12):
                r.implicit[k] = 0
                found = True
    return found


@njit
def _refused(i: Any, r: Any, f: Any, x: Any) -> bool:
    """True when the rows marked are not for this solver; f.counters then say why and which dof (tendons: + nv)."""
    if i.solver[0] != DIRECT:
        return False
    f.counters[2] = INEQUALITY
    f.counters[3] = 0
    if x is not None:
        for t in range(x.row_of_tendon.shape[0]):
            if x.row_of_tendon[t] != 0:
                f.counters[3] = f.velocity.shape[0] + t
    for k in range(f.velocity.shape[0] - 1, -1, -1):
        released = f.stiffness[k] + f.damping[k] > 0.0 and r.implicit[k] == 0
        if r.row_of_position[k] != 0 or r.row_of_velocity[k] != 0 or released:
            f.counters[3] = k
    return True


@njit
def _collect_forces(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any) -> None:
    """Joint forces by source and qacc, from the velocities found."""
    h = i.time_step[0]
    passive_forces(m, s, i, f)
    for k in range(f.velocity.shape[0]):
        v = f.velocity[k]
        f.drive[k] = 0.0
        f.limit[k] = 0.0
        f.coupling[k] = 0.0
        f.loop[k] = 0.0
        f.tendon[k] = 0.0
        q = coordinate(m, s.qpos, k) + h * v
        if r.implicit[k]:
            f.drive[k] = drive_force(i, f, f.counters[4], k, q, v)
        if x is not None:
            f.drive[k] += actuator_force(x, k, q, v)
            f.passive[k] += x.passive[k]
            f.tendon[k] = x.tendon[k]
        f.qacc[k] = (v - s.qvel[k]) / h
    joint_forces(r, f, 1.0 / h)
    if e is not None:
        clear_loop_forces(x)
        note_loop_forces(r, e, x, 1.0 / h)


@njit
def _finish_euler(m: Any, s: Any, w: Any, i: Any, f: Any) -> None:
    """The state at the end of the step."""
    note_load(m, s, w, f)
    for a in range(f.next.shape[0]):
        s.qvel[m.independent_dof[a]] = f.next[a]
    move(m, s.qpos, s.qvel, i.time_step[0])
    settle(m, s, w, f)


@njit
def note_load(m: Any, s: Any, w: Any, f: Any) -> None:
    """f.load of this step, where friction depends on it: |force| (linear dofs) or |torque| (angular) in the joint."""
    wanted = False
    for k in range(f.load.shape[0]):
        if m.friction_coefficient[k] > 0.0:
            wanted = True
    if not wanted:
        return
    inverse_dynamics(m, s.qvel, f.qacc, w, f.force)
    for k in range(f.load.shape[0]):
        body = m.dof_body[k]
        x = w.force[body] if m.dof_linear[k] else w.torque[body]
        f.load[k] = math.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])


@njit
def settle(m: Any, s: Any, w: Any, f: Any) -> None:
    """Followers from their leaders, and what is left of the couplings."""
    expand(m, s.qpos, s.qvel, w)
    for c in range(m.row_follower.shape[0]):
        leader = m.row_leader[c]
        value, _, _ = coupling_slope(m, c, s.qpos[m.dof_coord[leader]] if leader >= 0 else 0.0)
        f.coupling_error[0] = max(f.coupling_error[0], abs(s.qpos[m.dof_coord[m.row_follower[c]]] - value))
