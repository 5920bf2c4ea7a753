"""Builds the rows of tendons: equalities, inertia, friction, limits.

Equalities are couplings of all the joints of their tendons (notes on mimic joints, eq. 17): hard, springs of a
compliance or of a natural frequency, or soft as the file says (impedance.py).

Inertia: a tendon of armature a has the momentum a L̇, so its impulse is λ = -a (L̇⁺ - L̇) with L̇⁺ = J v⁺ + h J̇ v,
which is a row of cfm 1/a. This row is exact, and the factorised matrix keeps the tree's sparsity. Recorded rows count
the inertia in M and bias, not among the forces (recording.py).
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import follow, reduce_vector
from artsim.sim.articulation.dynamics import solve
from artsim.sim.articulation.kinematics import accelerations, kinematics, like
from artsim.sim.articulation.model import D_MAX, D_MIN, Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.impedance import (
    behind,
    has_soft_friction,
    impedance,
    safe_reference,
    slowest,
    softened,
    sprung,
    yield_with_friction,
)
from artsim.sim.constraints.kinds import (
    AT_LONGEST,
    AT_SHORTEST,
    TENDON_EQUALITY,
    TENDON_FRICTION,
    TENDON_INERTIA,
    TENDON_ROW,
    TENDON_SPRING,
)
from artsim.sim.constraints.row import add_entry, closing_rate, drift_of, within_reach
from artsim.sim.constraints.tendon_limit_rows import mobility_of_tendon, tendon_limit_rows, tendon_row
from artsim.sim.equipment.actuation import foreseen
from artsim.sim.equipment.arrays import (
    LONGEST,
    REFERENCE_B,
    REFERENCE_K,
    REFERENCE_TIME,
    SHORTEST,
    TENDON,
    EquipmentBundle,
)
from artsim.sim.equipment.tendon_forces import spring_of_tendon, stretch_of
from artsim.sim.equipment.tendons import find_tendon_drifts, has_inertia, tendon_paths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real, Reals1, Vec3
from artsim.sim.foundation.scalars import divisor, largest
from artsim.sim.run_data.run_records import ALL_ROWS, BETA, Inputs, Rows, RunBundle, Step


@njit
def tendons_need_rows(equipment: EquipmentBundle) -> bool:
    """True if every step has rows of tendons: equalities, friction or armature."""
    if equipment.model.tendon_row_follower.shape[0] > 0 or has_inertia(equipment):
        return True
    for t in range(equipment.model.tendon_friction.shape[0]):
        if equipment.model.tendon_friction[t] > 0.0:
            return True
    return False


@njit
def tendon_rows(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle) -> None:
    """Append the rows of all tendons but their springs, in both widths; lengths and moments in equipment.data are up to
    date. Limits have rows where they press, as those of dofs (limit_rows.py).
    """
    model, data, inputs, v = robot.model, robot.data, run.inputs, robot.state.qvel
    h = inputs.time_step[0]
    for c in range(equipment.model.tendon_row_follower.shape[0]):
        _tied_row(model, data, inputs, rows, equipment, c)
    if run.lanes is None and has_inertia(equipment):
        find_tendon_drifts(model, v, data, equipment)
    for t in range(equipment.data.tendon_length.shape[0]):
        if equipment.model.tendon_armature[t] > 0.0:
            n = _inertia_row(model, data, rows, equipment, t)
            rows.bias[n] = h * rows.bias[n] - equipment.data.tendon_velocity[t]
        if equipment.model.tendon_friction[t] > 0.0:
            n = tendon_row(model, data, rows, equipment, t, 1.0)
            rows.part[n] = TENDON_FRICTION
            drift, at = drift_of(data, rows, n), model.dof_body.shape[0] + t
            rows.bias[n] = h * drift
            if has_soft_friction(inputs, at):
                rate = equipment.data.tendon_velocity[t]
                yield_with_friction(inputs, rows, n, at, mobility_of_tendon(equipment, t), rate, drift)
            rows.lower[n] = like(-h * equipment.model.tendon_friction[t], data)
            rows.upper[n] = like(h * equipment.model.tendon_friction[t], data)
        tendon_limit_rows(robot, run, rows, equipment, t)
    if has_inertia(equipment):
        accelerations(model, v, data.drift, data)  # as the bias left them: loops' rows depend on these


@njit
def _tied_row(model: Model, data: Workspace, inputs: Inputs, rows: Rows, equipment: EquipmentBundle, c: int) -> None:
    """Append the row of tendon equality c, in both widths."""
    h = inputs.time_step[0]
    n, error, rate = _equality_row(model, data, rows, equipment, c)
    drift = drift_of(data, rows, n)
    rows.error[n] = error
    rows.rate[n] = within_reach(rows, n, closing_rate(inputs, absolute(error), equipment.model.tendon_row_erp[c]))
    rows.bias[n] = rows.rate[n] * (error + behind(inputs) * rate) + h * drift
    reference, mobility = _reference(equipment, c), equipment.data.tendon_mobility[c]
    if _is_sprung(equipment, c):
        compliance = equipment.model.tendon_row_compliance[c]
        resistance = mobility
        if compliance >= 0.0:
            resistance = like(compliance, data)
        if any_positive(resistance) or compliance == 0.0:
            rows.rate[n], rows.bias[n], rows.cfm[n] = sprung(
                inputs, reference, resistance, mobility, error, rate, drift, inputs.scheme[BETA]
            )
    elif reference[REFERENCE_K] >= 0.0:  # without the curvature of paths and polynomial, as in MuJoCo
        d = impedance(equipment.model.tendon_row_impedance, c, absolute(error))
        time = equipment.model.tendon_row_reference[c, REFERENCE_TIME]
        reference = safe_reference(h, reference[REFERENCE_K], reference[REFERENCE_B], time)
        rows.bias[n], rows.cfm[n] = softened(inputs, h, reference, d, mobility, error, rate, drift)
        rows.rate[n] = zero_like(error)


@njit
def has_hard_equalities(equipment: EquipmentBundle) -> bool:
    """True if a tendon equality is to hold exactly."""
    for c in range(equipment.model.tendon_row_follower.shape[0]):
        if equipment.model.tendon_row_reference[c, REFERENCE_K] < 0.0:
            return True
    return False


@njit
def find_tendon_misses(inputs: Inputs, rows: Rows, equipment: EquipmentBundle, zero: Real) -> Real:
    """Set rows.miss of hard equalities, and return the largest, a T as `zero`; equipment.data holds the lengths at the
    step's end. In both widths."""
    worst = zero
    c = 0
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] != TENDON_ROW:
            continue
        if c == equipment.model.tendon_row_follower.shape[0]:
            break  # equalities come first
        if equipment.model.tendon_row_reference[c, REFERENCE_K] < 0.0:
            error, _, _ = _error(equipment, c)
            miss = error - rows.error[n] * (1.0 - inputs.time_step[0] * rows.rate[n])
            rows.miss[rows.place[n]] = miss
            worst = largest(worst, absolute(miss))
        c += 1
    return worst


@njit
def tendon_spring_rows(model: Model, data: Workspace, inputs: Inputs, rows: Rows, equipment: EquipmentBundle) -> None:
    """Append the springs and dampers of tendons that are rows: linear about the step's start, scaled as joints' are. In
    both widths: they have no effect in lanes in which they are explicit.

    λ / h = F - h K (a L̇⁺ - b L̇) - D (L̇⁺ - L̇); a slack spring with a range of rest lengths never pushes.
    """
    by_row, zero = equipment.data.tendon_by_row[0], like(0.0, data)
    if not any_positive(by_row):
        return
    h = inputs.time_step[0]
    for t in range(equipment.data.tendon_length.shape[0]):
        force, stiffness, damping = spring_of_tendon(equipment, t)
        share, v = equipment.data.tendon_share[t], equipment.data.tendon_velocity[t]
        total = h * stiffness * (1.0 - 0.75 * share) + damping
        acts = where_greater(total, zero, by_row, zero)
        if not any_positive(acts):
            continue
        n = tendon_row(model, data, rows, equipment, t, 1.0)
        rows.part[n] = TENDON_SPRING
        force += damping * v - h * stiffness * foreseen(share, v, zero)
        total = divisor(total)
        rows.bias[n] = h * drift_of(data, rows, n) - force / total
        rows.cfm[n] = 1.0 / (h * total)
        rest = equipment.data.spring_length[t]
        slack = where_greater(damping, zero, zero, where_greater(rest[LONGEST], rest[SHORTEST], zero + 1.0, zero))
        pulls = where_greater(stretch_of(equipment, t), zero, slack, zero)
        rows.upper[n] = where_greater(acts - pulls, zero, rows.upper[n], zero)
        rows.lower[n] = where_greater(acts - slack + pulls, zero, rows.lower[n], zero)


@njit
def hold_tendons(
    model: Model, v: Reals1, data: Workspace, inputs: Inputs, rows: Rows, equipment: EquipmentBundle, a: float
) -> None:
    """Append rows of tendon equalities and armature on accelerations, for RK4: C̈ + 2 a Ċ + a² C = 0, or soft."""
    if has_inertia(equipment) or equipment.model.tendon_row_follower.shape[0] > 0:
        find_tendon_drifts(model, v, data, equipment)
    for c in range(equipment.model.tendon_row_follower.shape[0]):
        if _is_sprung(equipment, c):
            continue  # a force: spring_tendons
        n, error, rate = _equality_row(model, data, rows, equipment, c)
        if equipment.model.tendon_row_reference[c, REFERENCE_K] >= 0.0:
            d = impedance(equipment.model.tendon_row_impedance, c, abs(error))
            B = equipment.model.tendon_row_reference[c, REFERENCE_B]
            most = slowest(inputs.time_step[0], B, equipment.model.tendon_row_impedance[c, D_MAX])
            rows.bias[n] = (
                drift_of(data, rows, n)
                + most * B * rate
                + most * most * d * equipment.model.tendon_row_reference[c, REFERENCE_K] * error
            )
            rows.cfm[n] = equipment.data.tendon_mobility[c] * (1.0 - d) / d
            continue
        rows.bias[n] = (
            2.0 * a * rate
            + a * a * error
            + drift_of(data, rows, n)
            + equipment.data.tendon_drift[equipment.model.tendon_row_follower[c]]
        )
        leader = equipment.model.tendon_row_leader[c]
        if leader >= 0:
            _, slope, bend = _polynomial(equipment, c)
            rows.bias[n] -= (
                slope * equipment.data.tendon_drift[leader] + bend * equipment.data.tendon_velocity[leader] ** 2
            )
    for t in range(equipment.data.tendon_length.shape[0]):
        if equipment.model.tendon_armature[t] > 0.0:
            _inertia_row(model, data, rows, equipment, t)


@njit
def tendon_mobilities(model: Model, data: Workspace, equipment: EquipmentBundle) -> None:
    """equipment.data.tendon_mobility of every tendon equality, J M⁻¹ Jᵀ summed over its two tendons, and then of every
    tendon: MuJoCo's invweight0.

    M must be factorised in data.mass_matrix and equipment.data.row2 (equipment/forces.py).
    """
    for c in range(equipment.model.tendon_row_follower.shape[0]):
        leader = equipment.model.tendon_row_leader[c]
        equipment.data.tendon_mobility[c] = _mobility(model, data, equipment, equipment.model.tendon_row_follower[c])
        if leader >= 0:
            equipment.data.tendon_mobility[c] += _mobility(model, data, equipment, leader)
    first = equipment.model.tendon_row_follower.shape[0]
    for t in range(equipment.data.tendon_length.shape[0]):
        equipment.data.tendon_mobility[first + t] = _mobility(model, data, equipment, t)


@njit
def _mobility(model: Model, data: Workspace, equipment: EquipmentBundle, t: int) -> float:
    """J M⁻¹ Jᵀ of tendon t."""
    y = equipment.data.row
    for k in range(y.shape[0]):
        y[k] = 0.0
    for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
        y[equipment.model.tendon_dof[entry]] = equipment.data.tendon_moment[entry]
    solve(data.mass_matrix, equipment.data.row2, model.dof_parent, model.dof_run, y)
    value = 0.0
    for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
        value += equipment.data.tendon_moment[entry] * y[equipment.model.tendon_dof[entry]]
    return value


@inlined
def _reference(equipment: EquipmentBundle, c: int) -> tuple[float, float]:
    """K and B of tendon equality c."""
    reference = equipment.model.tendon_row_reference[c]
    return reference[REFERENCE_K], reference[REFERENCE_B]


@inlined
def _is_sprung(equipment: EquipmentBundle, c: int) -> bool:
    """True if tendon equality c has a compliance or a natural frequency, and is not soft as in MuJoCo."""
    return equipment.model.tendon_row_impedance[c, D_MIN] < 0.0


@njit
def has_sprung_tendons(equipment: EquipmentBundle) -> bool:
    """True if a tendon equality has a compliance or a natural frequency."""
    for c in range(equipment.model.tendon_row_follower.shape[0]):
        if _is_sprung(equipment, c):
            return True
    return False


@njit
def sprung_mobilities(model: Model, data: Workspace, equipment: EquipmentBundle) -> None:
    """equipment.data.tendon_mobility of the springs among the equalities: r = J M⁻¹ Jᵀ, with the bare M factorised in
    data.factor; in both widths.

    M excludes the armature of tendons.
    """
    for c in range(equipment.model.tendon_row_follower.shape[0]):
        if not _is_sprung(equipment, c):
            continue
        for k in range(equipment.data.row.shape[0]):
            equipment.data.row[k] = like(0.0, data)
        add_equality_gradient(equipment, c, 1.0, equipment.data.row)
        reduce_vector(model, equipment.data.row, data, data.reduced)
        solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, data.reduced)
        value = like(0.0, data)
        for k in range(equipment.data.row.shape[0]):
            a = model.dof_independent[k]
            if a >= 0:
                value += equipment.data.row[k] * data.gain[k] * data.reduced[a]
        equipment.data.tendon_mobility[c] = value


@njit
def spring_tendons(equipment: EquipmentBundle, step: Step) -> None:
    """Add the explicit forces of the springs among the equalities to step.tendon and step.force, for RK4."""
    for c in range(equipment.model.tendon_row_follower.shape[0]):
        if _is_sprung(equipment, c) and equipment.data.tendon_mobility[c] > 0.0:
            error, rate, _ = _error(equipment, c)
            reference = equipment.model.tendon_row_reference[c]
            force = reference[REFERENCE_K] * error + reference[REFERENCE_B] * rate
            add_equality_gradient(equipment, c, -force / equipment.data.tendon_mobility[c], step.tendon)
            add_equality_gradient(equipment, c, -force / equipment.data.tendon_mobility[c], step.force)
            _add_along(equipment, c, -force / equipment.data.tendon_mobility[c], equipment.data.tendon_pull)


@njit
def note_tendon_forces(rows: Rows, equipment: EquipmentBundle, scale: float, explicit: bool) -> None:
    """equipment.data.tendon_force (nt,): springs, dampers, actuators, and λ `scale` of the tendons' rows, in their
    order; tendon_limit_force (nt,) of the limits' rows alone.

    explicit: the rows are those of `hold_tendons`.
    """
    for t in range(equipment.data.tendon_force.shape[0]):
        equipment.data.tendon_force[t] = equipment.data.tendon_pull[t]
        equipment.data.tendon_limit_force[t] = 0.0
    for a in range(equipment.model.actuator_target.shape[0]):
        if equipment.model.actuator_transmission[a] == TENDON:
            equipment.data.tendon_force[equipment.model.actuator_target[a]] += (
                equipment.model.actuator_gear[a, 0] * equipment.data.actuator_force[a]
            )
    c = 0
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] != TENDON_ROW:
            continue
        t, part = rows.dof[n], rows.part[n]
        if part == TENDON_EQUALITY:
            while explicit and _is_sprung(equipment, c):
                c += 1
            _add_along(equipment, c, rows.impulse[n] * scale, equipment.data.tendon_force)
            c += 1
        elif part == AT_LONGEST:
            equipment.data.tendon_force[t] -= rows.impulse[n] * scale
            equipment.data.tendon_limit_force[t] += rows.impulse[n] * scale
        else:
            equipment.data.tendon_force[t] += rows.impulse[n] * scale
            equipment.data.tendon_limit_force[t] += rows.impulse[n] * scale if part == AT_SHORTEST else 0.0


@inlined
def _add_along(equipment: EquipmentBundle, c: int, force: float, out: Reals1) -> None:
    """Add to out (nt,) the forces along the tendons of equality c that are equal to a force on its error."""
    out[equipment.model.tendon_row_follower[c]] += force
    if equipment.model.tendon_row_leader[c] >= 0:
        _, slope, _ = _polynomial(equipment, c)
        out[equipment.model.tendon_row_leader[c]] -= slope * force


@njit
def note_tendon_errors(robot: RobotBundle, step: Step, equipment: EquipmentBundle) -> None:
    """Set step.tendon_error to the largest |C| of the tendon equalities at the state, if it is the largest so far."""
    state = robot.state
    if equipment.model.tendon_row_follower.shape[0] == 0:
        return
    kinematics(robot.model, state.qpos, robot.data)
    tendon_paths(robot, state.qpos, state.qvel, equipment)
    for c in range(equipment.model.tendon_row_follower.shape[0]):
        error, _, _ = _error(equipment, c)
        step.tendon_error[0] = max(step.tendon_error[0], abs(error))


# ------------------------------------------------------------------ rows


@njit
def _inertia_row(model: Model, data: Workspace, rows: Rows, equipment: EquipmentBundle, t: int) -> int:
    """Append the row J a + J̇ v + λ / armature = 0 on accelerations. Return its number."""
    n = tendon_row(model, data, rows, equipment, t, 1.0)
    rows.part[n] = TENDON_INERTIA
    rows.bias[n] = equipment.data.tendon_drift[t] + drift_of(data, rows, n)
    rows.cfm[n] = like(1.0 / equipment.model.tendon_armature[t], data)
    return n


@njit
def _equality_row(
    model: Model, data: Workspace, rows: Rows, equipment: EquipmentBundle, c: int
) -> tuple[int, Real, Real]:
    """Append the row of tendon equality c without its bias; return number, error C [m] and Ċ. In both widths."""
    error, rate, slope = _error(equipment, c)
    n = tendon_row(model, data, rows, equipment, equipment.model.tendon_row_follower[c], 1.0)
    t = equipment.model.tendon_row_leader[c]
    if t >= 0:
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            add_entry(
                model, data, rows, equipment.model.tendon_dof[entry], -slope * equipment.data.tendon_moment[entry]
            )
    return n, error, rate


@njit
def add_equality_gradient(equipment: EquipmentBundle, c: int, scale: Real, out: Lanes1) -> None:
    """Add scale × dC/dq of tendon equality c to out (nv,)."""
    t = equipment.model.tendon_row_follower[c]
    for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
        out[equipment.model.tendon_dof[entry]] += scale * equipment.data.tendon_moment[entry]
    t = equipment.model.tendon_row_leader[c]
    if t >= 0:
        _, slope, _ = _polynomial(equipment, c)
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            out[equipment.model.tendon_dof[entry]] -= scale * slope * equipment.data.tendon_moment[entry]


@njit
def _error(equipment: EquipmentBundle, c: int) -> Vec3:
    """C = L_a - L_a0 - p(L_b - L_b0), Ċ and p'."""
    a = equipment.model.tendon_row_follower[c]
    b = equipment.model.tendon_row_leader[c]
    value, slope, _ = _polynomial(equipment, c)
    rate = equipment.data.tendon_velocity[a]
    if b >= 0:
        rate -= slope * equipment.data.tendon_velocity[b]
    return equipment.data.tendon_length[a] - equipment.data.tendon_length0[a] - value, rate, slope


@njit
def _polynomial(equipment: EquipmentBundle, c: int) -> Vec3:
    """Value, slope and second derivative of equality c's polynomial at its leader."""
    a, b = equipment.model.tendon_row_follower[c], equipment.model.tendon_row_leader[c]
    x = zero_like(equipment.data.tendon_length[a])
    if b >= 0:
        x = equipment.data.tendon_length[b] - equipment.data.tendon_length0[b]
    return follow(equipment.model.tendon_row_polynomial[c], x)
