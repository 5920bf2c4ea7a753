"""Tendons as rows: equalities, inertia, friction, limits.

Equalities are couplings of as many joints as their tendons have (seed 000, eq. 17): hard, springs of a natural
frequency and a damping ratio, or soft as the file says (softness.py).

Inertia: a tendon of armature a has the momentum a L̇, so its impulse is λ = -a (L̇⁺ - L̇) with L̇⁺ = J v⁺ + h J̇ v, which
is a row of cfm 1/a. It is exact, and the matrix that is factorised stays the tree's. What is recorded has it in M and
bias, not among the forces (recording.py).
"""

from __future__ import annotations

from typing import Any

from artsim.sim.actuation import foreseen
from artsim.sim.constraints.row import add_entry, add_row, closing_rate, drift_of, one_sided, within_reach
from artsim.sim.constraints.softness import impedance, slowest, softened, sprung
from artsim.sim.coupling import follow, reduce_vector
from artsim.sim.dynamics import solve
from artsim.sim.equipment.record import TENDON
from artsim.sim.equipment.tendon_forces import spring_of_tendon, stretch_of
from artsim.sim.equipment.tendons import has_inertia, prepare_drifts, tendon_drift, tendon_paths
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import accelerations, kinematics
from artsim.sim.run import TENDON_ROW

_LOWER, _UPPER = 1, 2


@njit
def needs_rows(e: Any) -> bool:
    """True when every step has rows: loops, tendon friction, armature or equalities."""
    if e.loop_kind.shape[0] > 0 or e.tendon_row_follower.shape[0] > 0 or has_inertia(e):
        return True
    for t in range(e.tendon_friction.shape[0]):
        if e.tendon_friction[t] > 0.0:
            return True
    return False


@njit
def tendon_rows(m: Any, v: Any, w: Any, i: Any, r: Any, e: Any, x: Any) -> None:
    """The rows of all tendons; lengths and moments in x are up to date."""
    h = i.time_step[0]
    for c in range(e.tendon_row_follower.shape[0]):
        n, error, rate = _equality_row(m, w, r, e, x, c)
        drift = drift_of(w, r, n)
        r.error[n] = error
        r.rate[n] = within_reach(r, n, closing_rate(i, abs(error)))
        r.bias[n] = r.rate[n] * error + h * drift
        K, B = e.tendon_row_reference[c, 0], e.tendon_row_reference[c, 1]
        if _is_sprung(e, c):
            if x.tendon_mobility[c] > 0.0:
                r.rate[n], r.bias[n], r.cfm[n] = sprung(h, K, B, x.tendon_mobility[c], error, drift)
        elif K >= 0.0:  # without what bends in paths and polynomial, as MuJoCo has it
            d = impedance(e.tendon_row_impedance, c, abs(error))
            r.bias[n], r.cfm[n] = softened(h, K, B, d, x.tendon_mobility[c], error, rate, drift)
            r.rate[n] = 0.0
    if has_inertia(e):
        prepare_drifts(m, v, w, x)
    for t in range(x.tendon_length.shape[0]):
        if e.tendon_armature[t] > 0.0:
            n = _inertia_row(m, w, r, e, x, t)
            r.bias[n] = h * r.bias[n] - x.tendon_velocity[t]
        if e.tendon_friction[t] > 0.0:
            n = _tendon_row(m, w, r, e, x, t, 1.0)
            r.bias[n] = h * drift_of(w, r, n)
            r.lower[n] = -h * e.tendon_friction[t]
            r.upper[n] = h * e.tendon_friction[t]
        if e.tendon_lower[t] > -1e308:
            _limit_row(m, w, r, e, x, t, 1.0, e.tendon_lower[t], i)
        if e.tendon_upper[t] < 1e308:
            _limit_row(m, w, r, e, x, t, -1.0, e.tendon_upper[t], i)
    if has_inertia(e):
        accelerations(m, v, w.drift, w)  # as the bias left them: loops' rows go by these


@njit
def has_hard_equalities(e: Any) -> bool:
    """True when a tendon equality is to hold exactly."""
    for c in range(e.tendon_row_follower.shape[0]):
        if e.tendon_row_reference[c, 0] < 0.0:
            return True
    return False


@njit
def find_tendon_misses(i: Any, r: Any, e: Any, x: Any) -> Any:
    """r.miss of the rows of hard equalities, and the largest; x holds the lengths at the step's end."""
    worst = 0.0
    c = 0
    for n in range(r.number[0]):
        if r.kind[n] != TENDON_ROW:
            continue
        if c == e.tendon_row_follower.shape[0]:
            break  # equalities come first
        if e.tendon_row_reference[c, 0] < 0.0:
            error, _, _ = _error(e, x, c)
            r.miss[n] = error - r.error[n] * (1.0 - i.time_step[0] * r.rate[n])
            worst = max(worst, abs(r.miss[n]))
        c += 1
    return worst


@njit
def tendon_spring_rows(m: Any, w: Any, i: Any, r: Any, e: Any, x: Any) -> None:
    """The springs and dampers of tendons where they are rows: linear about the step's start, weighed as joints' are.

    λ / h = F - h K (a L̇⁺ - b L̇) - D (L̇⁺ - L̇); a slack spring of a range of rest lengths never pushes.
    """
    if x.tendon_by_row[0] == 0.0:
        return
    h = i.time_step[0]
    for t in range(x.tendon_length.shape[0]):
        force, stiffness, damping = spring_of_tendon(e, x, t)
        total = h * stiffness * (1.0 - 0.75 * x.tendon_share[t]) + damping
        if total <= 0.0:
            continue
        n = _tendon_row(m, w, r, e, x, t, 1.0)
        v = x.tendon_velocity[t]
        force += damping * v - h * stiffness * foreseen(x.tendon_share[t], v, 0.0)
        r.bias[n] = h * drift_of(w, r, n) - force / total
        r.cfm[n] = 1.0 / (h * total)
        if damping == 0.0 and x.spring_length[t, 0] < x.spring_length[t, 1]:
            if stretch_of(x, t) > 0.0:
                r.upper[n] = 0.0
            else:
                r.lower[n] = 0.0


@njit
def hold_tendons(m: Any, v: Any, w: Any, i: Any, r: Any, e: Any, x: Any, a: Any) -> None:
    """The rows of tendon equalities and of armature on accelerations, for RK4: C̈ + 2 a Ċ + a² C = 0, or soft."""
    if has_inertia(e) or e.tendon_row_follower.shape[0] > 0:
        prepare_drifts(m, v, w, x)
    for c in range(e.tendon_row_follower.shape[0]):
        if _is_sprung(e, c):
            continue  # a force: spring_tendons
        n, error, rate = _equality_row(m, w, r, e, x, c)
        if e.tendon_row_reference[c, 0] >= 0.0:
            d = impedance(e.tendon_row_impedance, c, abs(error))
            B = e.tendon_row_reference[c, 1]
            most = slowest(i.time_step[0], B, e.tendon_row_impedance[c, 1])
            r.bias[n] = drift_of(w, r, n) + most * B * rate + most * most * d * e.tendon_row_reference[c, 0] * error
            r.cfm[n] = x.tendon_mobility[c] * (1.0 - d) / d
            continue
        r.bias[n] = 2.0 * a * rate + a * a * error + drift_of(w, r, n) + tendon_drift(m, w, e, e.tendon_row_follower[c])
        leader = e.tendon_row_leader[c]
        if leader >= 0:
            _, slope, bend = _polynomial(e, x, c)
            r.bias[n] -= slope * tendon_drift(m, w, e, leader) + bend * x.tendon_velocity[leader] ** 2
    for t in range(x.tendon_length.shape[0]):
        if e.tendon_armature[t] > 0.0:
            _inertia_row(m, w, r, e, x, t)


@njit
def tendon_mobilities(m: Any, w: Any, e: Any, x: Any) -> None:
    """x.tendon_mobility of every tendon equality: J M⁻¹ Jᵀ of its two tendons, added: MuJoCo's invweight0.

    M stands factorised in w.mass_matrix and x.row2 (equipment/forces.py).
    """
    for c in range(e.tendon_row_follower.shape[0]):
        leader = e.tendon_row_leader[c]
        x.tendon_mobility[c] = _mobility(m, w, e, x, e.tendon_row_follower[c])
        if leader >= 0:
            x.tendon_mobility[c] += _mobility(m, w, e, x, leader)


@njit
def _mobility(m: Any, w: Any, e: Any, x: Any, t: Any) -> Any:
    """J M⁻¹ Jᵀ of tendon t."""
    y = x.row
    for k in range(y.shape[0]):
        y[k] = 0.0
    for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
        y[e.tendon_dof[entry]] = x.tendon_moment[entry]
    solve(w.mass_matrix, x.row2, m.dof_parent, m.dof_run, y)
    value = 0.0
    for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
        value += x.tendon_moment[entry] * y[e.tendon_dof[entry]]
    return value


@inlined
def _is_sprung(e: Any, c: Any) -> bool:
    """Whether tendon equality c is a spring of a natural frequency and a damping ratio, not as soft as MuJoCo's."""
    spring: bool = e.tendon_row_impedance[c, 0] < 0.0
    return spring


@njit
def has_sprung_tendons(e: Any) -> bool:
    """True when a tendon equality is a spring of a natural frequency and a damping ratio."""
    for c in range(e.tendon_row_follower.shape[0]):
        if _is_sprung(e, c):
            return True
    return False


@njit
def sprung_mobilities(m: Any, w: Any, e: Any, x: Any) -> None:
    """x.tendon_mobility of the springs among the equalities: r = J M⁻¹ Jᵀ, the bare M being factorised in w.factor.

    Without what armature of tendons adds to M.
    """
    for c in range(e.tendon_row_follower.shape[0]):
        if not _is_sprung(e, c):
            continue
        for k in range(x.row.shape[0]):
            x.row[k] = 0.0
        _add_gradient(e, x, c, 1.0, x.row)
        reduce_vector(m, x.row, w, w.reduced)
        solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, w.reduced)
        value = 0.0
        for k in range(x.row.shape[0]):
            a = m.dof_independent[k]
            if a >= 0:
                value += x.row[k] * w.gain[k] * w.reduced[a]
        x.tendon_mobility[c] = value


@njit
def spring_tendons(e: Any, x: Any, f: Any) -> None:
    """Add the springs among the equalities to f.tendon and f.force, explicitly: for RK4."""
    for c in range(e.tendon_row_follower.shape[0]):
        if _is_sprung(e, c) and x.tendon_mobility[c] > 0.0:
            error, rate, _ = _error(e, x, c)
            force = e.tendon_row_reference[c, 0] * error + e.tendon_row_reference[c, 1] * rate
            _add_gradient(e, x, c, -force / x.tendon_mobility[c], f.tendon)
            _add_gradient(e, x, c, -force / x.tendon_mobility[c], f.force)
            _add_along(e, x, c, -force / x.tendon_mobility[c], x.tendon_pull)


@njit
def note_tendon_forces(r: Any, e: Any, x: Any, scale: Any, explicit: Any) -> None:
    """x.tendon_force (nt,): springs, dampers, actuators, and λ `scale` of the tendons' rows, in their order.

    explicit: the rows are those of `hold_tendons`.
    """
    for t in range(x.tendon_force.shape[0]):
        x.tendon_force[t] = x.tendon_pull[t]
    for a in range(e.actuator_target.shape[0]):
        if e.actuator_transmission[a] == TENDON:
            x.tendon_force[e.actuator_target[a]] += e.actuator_gear[a, 0] * x.actuator_force[a]
    n = 0
    while n < r.number[0] and r.kind[n] != TENDON_ROW:
        n += 1
    if n == r.number[0]:
        return
    for c in range(e.tendon_row_follower.shape[0]):
        if explicit and _is_sprung(e, c):
            continue
        _add_along(e, x, c, r.impulse[n] * scale, x.tendon_force)
        n += 1
    for t in range(x.tendon_force.shape[0]):
        if e.tendon_armature[t] > 0.0:
            x.tendon_force[t] += r.impulse[n] * scale
            n += 1
        if e.tendon_friction[t] > 0.0 and not explicit:
            x.tendon_force[t] += r.impulse[n] * scale
            n += 1
        if e.tendon_lower[t] > -1e308 and not explicit:
            x.tendon_force[t] += r.impulse[n] * scale
            n += 1
        if e.tendon_upper[t] < 1e308 and not explicit:
            x.tendon_force[t] -= r.impulse[n] * scale
            n += 1
    for later in range(n, r.number[0]):  # of one tendon each, along it
        if r.kind[later] == TENDON_ROW:
            x.tendon_force[r.dof[later]] += r.impulse[later] * scale


@inlined
def _add_along(e: Any, x: Any, c: Any, force: Any, out: Any) -> None:
    """Add to out (nt,) what a force on the error of tendon equality c is along its tendons."""
    out[e.tendon_row_follower[c]] += force
    if e.tendon_row_leader[c] >= 0:
        _, slope, _ = _polynomial(e, x, c)
        out[e.tendon_row_leader[c]] -= slope * force


@njit
def note_tendon_errors(m: Any, s: Any, w: Any, f: Any, e: Any, x: Any) -> None:
    """f.tendon_error: the largest |C| of the tendon equalities at the state, if it is the largest so far."""
    if e.tendon_row_follower.shape[0] == 0:
        return
    kinematics(m, s.qpos, w)
    tendon_paths(m, s.qpos, s.qvel, w, e, x)
    for c in range(e.tendon_row_follower.shape[0]):
        error, _, _ = _error(e, x, c)
        f.tendon_error[0] = max(f.tendon_error[0], abs(error))


@njit
def tendons_hold(i: Any, e: Any, x: Any, f: Any) -> bool:
    """False when the velocities f.velocity would take a tendon beyond its limits."""
    h = i.time_step[0]
    for t in range(x.tendon_length.shape[0]):
        end = x.tendon_length[t]
        for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
            end += h * x.tendon_moment[entry] * f.velocity[e.tendon_dof[entry]]
        if broken_side(e, t, end, 1e-13) != 0:
            return False
    return True


@njit
def broken_side(e: Any, t: Any, length: Any, tolerance: Any) -> Any:
    """The mark of the limit that a length is beyond, 0 when it is within both."""
    if length < e.tendon_lower[t] - tolerance * max(1.0, abs(e.tendon_lower[t])):
        return _LOWER
    if length > e.tendon_upper[t] + tolerance * max(1.0, abs(e.tendon_upper[t])):
        return _UPPER
    return 0


# ------------------------------------------------------------------ rows


@njit
def _tendon_row(m: Any, w: Any, r: Any, e: Any, x: Any, t: Any, sign: Any) -> Any:
    """A row on the velocity of tendon t, J = sign dL/dq. Returns its number."""
    n = add_row(r, TENDON_ROW, t)
    for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
        add_entry(m, w, r, e.tendon_dof[entry], sign * x.tendon_moment[entry])
    return n


@njit
def _limit_row(m: Any, w: Any, r: Any, e: Any, x: Any, t: Any, sign: Any, bound: Any, i: Any) -> None:
    """The length stays on its side of the bound at the end of the step."""
    n = _tendon_row(m, w, r, e, x, t, sign)
    one_sided(r, i, n, sign * (x.tendon_length[t] - bound))
    r.bias[n] += i.time_step[0] * drift_of(w, r, n)


@njit
def _inertia_row(m: Any, w: Any, r: Any, e: Any, x: Any, t: Any) -> Any:
    """J a + J̇ v + λ / armature = 0 on accelerations. Returns its number."""
    n = _tendon_row(m, w, r, e, x, t, 1.0)
    r.bias[n] = tendon_drift(m, w, e, t) + drift_of(w, r, n)
    r.cfm[n] = 1.0 / e.tendon_armature[t]
    return n


@njit
def _equality_row(m: Any, w: Any, r: Any, e: Any, x: Any, c: Any) -> Any:
    """The row of tendon equality c, without its bias: number, error C [m] and Ċ."""
    error, rate, slope = _error(e, x, c)
    n = _tendon_row(m, w, r, e, x, e.tendon_row_follower[c], 1.0)
    t = e.tendon_row_leader[c]
    if t >= 0:
        for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
            add_entry(m, w, r, e.tendon_dof[entry], -slope * x.tendon_moment[entry])
    return n, error, rate


@njit
def _add_gradient(e: Any, x: Any, c: Any, scale: Any, out: Any) -> None:
    """Add scale × dC/dq of tendon equality c to out (nv,)."""
    t = e.tendon_row_follower[c]
    for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
        out[e.tendon_dof[entry]] += scale * x.tendon_moment[entry]
    t = e.tendon_row_leader[c]
    if t >= 0:
        _, slope, _ = _polynomial(e, x, c)
        for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
            out[e.tendon_dof[entry]] -= scale * slope * x.tendon_moment[entry]


@njit
def _error(e: Any, x: Any, c: Any) -> Any:
    """C = L_a - L_a0 - p(L_b - L_b0), Ċ and p'."""
    a = e.tendon_row_follower[c]
    b = e.tendon_row_leader[c]
    value, slope, _ = _polynomial(e, x, c)
    rate = x.tendon_velocity[a]
    if b >= 0:
        rate -= slope * x.tendon_velocity[b]
    return x.tendon_length[a] - x.tendon_length0[a] - value, rate, slope


@njit
def _polynomial(e: Any, x: Any, c: Any) -> Any:
    """Value, slope and second derivative of equality c's polynomial at its leader."""
    b = e.tendon_row_leader[c]
    return follow(e.tendon_row_polynomial[c], x.tendon_length[b] - x.tendon_length0[b] if b >= 0 else 0.0)
