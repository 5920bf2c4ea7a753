"""The classical Runge-Kutta method of order 4, for free motion: everything explicit, couplings exact or as rows.

It has no rows that push one way: a run that meets a limit stops. Rotations are integrated on the group
(Munthe-Kaas 1999).
"""

from __future__ import annotations

from typing import Any

from artsim.sim.actuation import actuator_force, applied_forces, coordinate, drive_force, find_places
from artsim.sim.constraints.coupling import coupling_rate, coupling_slope, reference_of
from artsim.sim.constraints.limit import ball_rotation, is_cone
from artsim.sim.constraints.loop import clear_loop_forces, hold_loops, note_loop_forces, note_loop_gaps
from artsim.sim.constraints.row import add_entry, drift_of, single_row
from artsim.sim.constraints.rows import joint_forces
from artsim.sim.constraints.softness import impedance, slowest
from artsim.sim.constraints.tendon import (
    broken_side,
    hold_tendons,
    note_tendon_errors,
    note_tendon_forces,
    spring_tendons,
)
from artsim.sim.coupling import expand, expand_velocity, reduce_matrix, reduce_vector
from artsim.sim.energy_watch import EVERY, note_work, watch_energy
from artsim.sim.equipment.actuators import advance_activations
from artsim.sim.equipment.forces import equipment_forces
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.integrators import inverse_tangent, move
from artsim.sim.jit import njit
from artsim.sim.kinematics import kinematics, world_inertia
from artsim.sim.recording import record
from artsim.sim.recordtype import run_entry
from artsim.sim.run import COUPLING_ROW, INEQUALITY
from artsim.sim.solvers.alone import run_newton
from artsim.sim.step import bare_system, begin, choose_controls, is_finite, settle, total_energy


@njit
def simulate_rk4(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, b: Any, e: Any, x: Any, y: Any) -> None:
    """As step.simulate; a recorded row holds the first stage's acceleration and forces."""
    begin(m, s, w, i, f, e, x, None, (y, None, None, None, None))
    for _ in range(b.plan[0]):
        if f.counters[0] % EVERY == 0:
            watch_energy(m, s, w, f, e, x, None)
        choose_controls(i, f)
        r.report[0] = 0.0
        r.report[1] = 0.0
        if x is not None:
            x.stage[0] = 0.0
        _stage(m, s.qpos, s.qvel, w, i, r, f, e, x, y, s.activation)
        if not is_finite(m, f):
            break
        if x is not None and x.feeler[0] != 0:
            run_entry(x.feeler)
        recorded = 1 if f.counters[0] % b.plan[1] == 0 else 0
        if recorded:
            record(m, s, w, i, r, f, b, e, x, None, None)
        if e is not None:
            note_loop_gaps(m, w, f, e, x)
        _finish(m, s, w, i, r, f, e, x, y)
        note_work(i, f, x, f.start_qvel, s.qvel)  # of the last stage's forces
        if f.counters[2] != 0:
            f.counters[1] -= recorded  # a step that was not taken has no row
            break
        if x is not None and x.keeper[0] != 0:
            run_entry(x.keeper)
        f.counters[0] += 1
    f.energy[1] = total_energy(m, s, w, f, e, x)


@njit
def _stage(m: Any, q: Any, v: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, y: Any, activation: Any) -> None:
    """f.qacc (nv,), f.next = u̇ (nu,) and the forces at (q, v), everything explicit; equality rows as constraints."""
    expand(m, q, v, w)
    kinematics(m, q, w)
    world_inertia(m, w)
    applied_forces(m, q, v, w, i, f, e, x)
    if e is not None:
        equipment_forces(m, q, v, w, i, e, x, f, activation, 1)
    for k in range(f.stiffness.shape[0]):
        f.stiffness[k] = i.drive_stiffness[k]
        f.damping[k] = i.drive_damping[k]
    bare_system(m, q, v, w, i, f, e, x, None, None)
    row = f.counters[4]
    find_places(m, q, i, f, row)
    for k in range(f.force.shape[0]):
        place = coordinate(m, q, k)
        drive = drive_force(i, f, row, k, f.place[k], v[k])
        f.drive[k] = min(max(drive, -i.drive_limit[k]), i.drive_limit[k])
        f.passive[k] = -m.damping[k] * v[k] - m.stiffness[k] * (place - m.spring_reference[k])
        f.coupling[k] = 0.0
        f.limit[k] = 0.0
        f.loop[k] = 0.0
        f.tendon[k] = 0.0
        f.contact[k] = 0.0
        if x is not None:
            f.drive[k] += actuator_force(x, k, place, v[k])
            f.passive[k] += x.passive[k]
            f.tendon[k] = x.tendon[k]
        f.diagonal[k] = 0.0
        f.force[k] = f.applied[k] + f.drive[k] + f.passive[k] + f.tendon[k] - w.bias[k]
    _spring_couplings(m, q, v, f)
    if e is not None:
        clear_loop_forces(x)
        spring_tendons(e, x, f)
    for k in range(f.force.shape[0]):
        f.force[k] += f.coupling[k]
    reduce_matrix(m, w, f.diagonal)
    reduce_vector(m, f.force, w, f.free)
    for a in range(f.next.shape[0]):
        f.next[a] = 0.0
    _hold(m, q, v, w, i, r, f, e, x)
    run_newton(y, 0)
    joint_forces(r, f, 1.0)
    if e is not None:
        note_loop_forces(r, e, x, 1.0)
        note_tendon_forces(r, e, x, 1.0, True)
    expand_velocity(m, f.next, w, f.qacc)
    for k in range(f.qacc.shape[0]):
        f.qacc[k] += w.drift[k]


@njit
def _spring_couplings(m: Any, q: Any, v: Any, f: Any) -> None:
    """f.coupling of the compliant coupling rows as explicit springs."""
    for c in range(m.row_follower.shape[0]):
        if m.row_frequency[c] > 0.0 and m.row_impedance[c, 0] < 0.0 and f.effective_coupling[c] > 0.0:
            follower = m.row_follower[c]
            leader = m.row_leader[c]
            x = q[m.dof_coord[leader]] if leader >= 0 else 0.0
            value, slope, _ = coupling_slope(m, c, x)
            K, B = reference_of(m, c)
            error = q[m.dof_coord[follower]] - value
            force = -(K * error + B * coupling_rate(m, v, c, slope)) / f.effective_coupling[c]
            f.coupling[follower] += force
            if leader >= 0:
                f.coupling[leader] -= slope * force


@njit
def _hold(m: Any, q: Any, v: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any) -> None:
    """Equalities as rows on the accelerations, with Baumgarte's terms (seed 003): C̈ + 2 a Ċ + a² C = 0, a = 0.1 / h."""
    a = 0.1 / i.time_step[0]
    r.number[0] = 0
    _hold_couplings(m, q, v, w, i, r, f, a)
    if e is not None:
        hold_loops(m, v, w, i, r, f, e, x, a)
        hold_tendons(m, v, w, i, r, e, x, a)


@njit
def _hold_couplings(m: Any, q: Any, v: Any, w: Any, i: Any, r: Any, f: Any, a: Any) -> None:
    """The rows of hard couplings, and of those that give way as MuJoCo's do."""
    h = i.time_step[0]
    for c in range(m.row_follower.shape[0]):
        if m.row_frequency[c] > 0.0 and m.row_impedance[c, 0] < 0.0:
            continue
        follower = m.row_follower[c]
        leader = m.row_leader[c]
        x = q[m.dof_coord[leader]] if leader >= 0 else 0.0
        value, slope, bend = coupling_slope(m, c, x)
        n = single_row(m, w, r, COUPLING_ROW, follower, 1.0)
        if leader >= 0:
            add_entry(m, w, r, leader, -slope)
        error = q[m.dof_coord[follower]] - value
        rate = coupling_rate(m, v, c, slope)
        drift = drift_of(w, r, n)
        if m.row_frequency[c] > 0.0:
            K, B = reference_of(m, c)
            d = impedance(m.row_impedance, c, abs(error))
            most = slowest(h, B, m.row_impedance[c, 1])
            r.bias[n] = drift + most * B * rate + most * most * d * K * error
            r.cfm[n] = f.effective_coupling[c] * (1.0 - d) / d
        else:
            speed = v[leader] if leader >= 0 else 0.0
            r.bias[n] = drift - bend * speed * speed + 2.0 * a * rate + a * a * error


@njit
def _finish(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, y: Any) -> None:
    """Stages two to four and the state at the end of the step (Munthe-Kaas 1999 for the rotations).

    Stage one's acceleration is in f.qacc. A limit that the step would break stops the run: RK4 has no rows for it.
    """
    h = i.time_step[0]
    nv = f.qacc.shape[0]
    for n in range(f.start_qpos.shape[0]):
        f.start_qpos[n] = s.qpos[n]
    for k in range(nv):
        f.start_qvel[k] = s.qvel[k]
        f.tangent[k] = s.qvel[k]
        f.sum_velocity[k] = s.qvel[k]
        f.sum_acceleration[k] = f.qacc[k]
    if x is not None:
        for n in range(s.activation.shape[0]):
            x.start_activation[n] = s.activation[n]
            x.sum_activation[n] = x.activation_rate[n]
        for n in range(x.start_length.shape[0]):
            x.start_length[n] = x.actuator_length[n]
            x.start_velocity[n] = x.actuator_velocity[n]
    for stage in range(1, 4):
        ahead = h if stage == 3 else 0.5 * h
        for n in range(f.start_qpos.shape[0]):
            f.stage_qpos[n] = f.start_qpos[n]
        move(m, f.stage_qpos, f.tangent, ahead)
        for k in range(nv):
            f.tangent[k] *= ahead  # the rotation vector of this stage
            f.stage_qvel[k] = f.start_qvel[k] + ahead * f.qacc[k]
        if x is not None:
            x.stage[0] = ahead / h
            for n in range(s.activation.shape[0]):
                s.activation[n] = x.start_activation[n] + ahead * x.activation_rate[n]
        _stage(m, f.stage_qpos, f.stage_qvel, w, i, r, f, e, x, y, s.activation)
        weight = 1.0 if stage == 3 else 2.0
        if x is not None:
            for n in range(s.activation.shape[0]):
                x.sum_activation[n] += weight * x.activation_rate[n]
        for k in range(nv):
            f.velocity[k] = f.stage_qvel[k]
        inverse_tangent(m, f.tangent, f.velocity)
        for k in range(nv):
            f.tangent[k] = f.velocity[k]
            f.sum_velocity[k] += weight * f.velocity[k]
            f.sum_acceleration[k] += weight * f.qacc[k]
    for k in range(nv):
        f.sum_velocity[k] /= 6.0
        s.qvel[k] = f.start_qvel[k] + h * f.sum_acceleration[k] / 6.0
    move(m, s.qpos, f.sum_velocity, h)
    if x is not None:
        for n in range(s.activation.shape[0]):
            s.activation[n] = x.start_activation[n]
            x.activation_rate[n] = x.sum_activation[n] / 6.0
        for n in range(x.start_length.shape[0]):  # what advances exactly does so with the step's start, as in MuJoCo
            x.actuator_length[n] = x.start_length[n]
            x.actuator_velocity[n] = x.start_velocity[n]
        advance_activations(e, x, h, s.activation)
    settle(m, s, w, f)
    if e is not None:
        note_tendon_errors(m, s, w, f, e, x)
    for a in range(f.next.shape[0]):
        f.next[a] = s.qvel[m.independent_dof[a]]
    if not is_finite(m, f) or not _inside(m, s, w, f, e, x):
        for n in range(f.start_qpos.shape[0]):
            s.qpos[n] = f.start_qpos[n]
        for k in range(nv):
            s.qvel[k] = f.start_qvel[k]
        if x is not None:
            for n in range(s.activation.shape[0]):
                s.activation[n] = x.start_activation[n]


@njit
def _inside(m: Any, s: Any, w: Any, f: Any, e: Any, x: Any) -> bool:
    """False when a coordinate or a tendon is beyond its limit; then f.counters say why and which (tendons: + nv)."""
    for k in range(s.qvel.shape[0]):
        c = m.dof_coord[k]
        if c >= 0 and (s.qpos[c] < m.lower[k] - 1e-9 or s.qpos[c] > m.upper[k] + 1e-9):
            f.counters[2] = INEQUALITY
            f.counters[3] = k
            return False
        if is_cone(m, k):
            _, _, _, angle = ball_rotation(m, s.qpos, k)
            if angle > m.upper[k] + 1e-9:
                f.counters[2] = INEQUALITY
                f.counters[3] = k
                return False
    if e is not None:
        return _tendons_inside(m, s, w, f, e, x)
    return True


@njit
def _tendons_inside(m: Any, s: Any, w: Any, f: Any, e: Any, x: Any) -> bool:
    limited = False
    for t in range(e.tendon_lower.shape[0]):
        limited = limited or e.tendon_upper[t] < 1e308 or e.tendon_lower[t] > -1e308
    if not limited:
        return True
    kinematics(m, s.qpos, w)
    tendon_paths(m, s.qpos, s.qvel, w, e, x)
    for t in range(e.tendon_lower.shape[0]):
        if broken_side(e, t, x.tendon_length[t], 1e-9) != 0:
            f.counters[2] = INEQUALITY
            f.counters[3] = s.qvel.shape[0] + t
            return False
    return True
