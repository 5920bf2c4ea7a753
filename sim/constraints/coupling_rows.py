"""Builds the row of a coupling q_follower = p(q_leader): hard, of a compliance, or of a natural frequency.

Notes on mimic joints, eq. 5 to 29, generalised from a gear ratio to the polynomial's slope. Equalities of MJCF files
whose solref is set yield as in MuJoCo (impedance.py).
"""

from __future__ import annotations

import math

from artsim.sim.articulation.coupling import follow
from artsim.sim.articulation.dynamics import solve
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import D_MIN, Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.impedance import (
    behind,
    impedance,
    safe_reference,
    softened,
    sprung,
)
from artsim.sim.constraints.kinds import COUPLING_ROW
from artsim.sim.constraints.row import add_entry, drift_of, recovery_rate, single_row
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, real, zero_like
from artsim.sim.foundation.records import Lanes1, Real, Vec3
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import BETA, LASTING_ROWS, Inputs, Rows, RunBundle, Step

_CLOSER = 100.0  # times closer than loops are couplings held: elimination holds them to rounding


@njit
def coupling_slope(model: Model, c: int, x: Real) -> Vec3:
    """Value and first two derivatives of coupling row c's polynomial at x."""
    return follow(model.row_polynomial[c], x)


@inlined
def reference_of(model: Model, c: int) -> tuple[float, float]:
    """K and B of coupling row c: 1 and the damping of its compliance, else μ² and 2 ζ μ, where μ = 2π frequency."""
    if model.row_compliance[c] >= 0.0:
        return 1.0, model.row_relaxation[c]
    mu = 2.0 * math.pi * model.row_frequency[c]
    return mu * mu, 2.0 * model.row_damping_ratio[c] * mu


@inlined
def resistance_of(model: Model, c: int, mobility: Real) -> Real:
    """The divisor of K and B of coupling row c: its compliance, or the mobility; -1: the row is hard."""
    if model.row_compliance[c] >= 0.0:
        return real(model.row_compliance[c], mobility)
    return mobility if model.row_frequency[c] > 0.0 and any_positive(mobility) else real(-1.0, mobility)


@inlined
def own_mobility(model: Model, inputs: Inputs, c: int, resistance: Real, slope: Real) -> Real:
    """J M⁻¹ Jᵀ of coupling row c, by which its spring is weighed: its resistance, or that of its two dofs apart."""
    if model.row_compliance[c] < 0.0:
        return resistance
    leader = model.row_leader[c]
    mobility = zero_like(resistance) + inputs.mobility[model.row_follower[c]]
    return mobility + slope * slope * inputs.mobility[leader] if leader >= 0 else mobility


@inlined
def coupling_rate(model: Model, v: Lanes1, c: int, slope: Real) -> Real:
    """Ċ of coupling row c."""
    leader = model.row_leader[c]
    rate = v[model.row_follower[c]]
    return rate - slope * v[leader] if leader >= 0 else rate


@njit
def row_mobilities(model: Model, data: Workspace, step: Step, equipment: EquipmentBundle) -> None:
    """step.effective_coupling of the rows that yield as in MuJoCo: Model.row_mobility with the inertia of tendons.

    M must be factorised in data.mass_matrix and equipment.data.row2 (equipment/forces.py).
    """
    for c in range(model.row_follower.shape[0]):
        if model.row_impedance[c, D_MIN] >= 0.0:
            step.effective_coupling[c] = _inverse_inertia(model, data, equipment, model.row_follower[c])
            if model.row_leader[c] >= 0:
                step.effective_coupling[c] += _inverse_inertia(model, data, equipment, model.row_leader[c])


@njit
def _inverse_inertia(model: Model, data: Workspace, equipment: EquipmentBundle, k: int) -> float:
    """Diagonal entry k of M⁻¹; 1 / mass for a link that only slides."""
    if equipment.model.dof_sliding[k] > 0.0:
        return 1.0 / equipment.model.dof_sliding[k]
    y = equipment.data.row
    for j in range(y.shape[0]):
        y[j] = 0.0
    y[k] = 1.0
    solve(data.mass_matrix, equipment.data.row2, model.dof_parent, model.dof_run, y)
    return y[k]


@njit
def coupling_row(robot: RobotBundle, run: RunBundle, rows: Rows, c: int) -> None:
    """Append the row of coupling c: C = q_follower - p(q_leader), J = e_follower - p' e_leader. In both widths."""
    model, state, data = robot.model, robot.state, robot.data
    inputs, step = run.inputs, run.step
    h = inputs.time_step[0]
    follower = model.row_follower[c]
    leader = model.row_leader[c]
    place = state.qpos[model.dof_coord[follower]]
    x = state.qpos[model.dof_coord[leader]] if leader >= 0 else zero_like(place)
    value, slope, _ = coupling_slope(model, c, x)
    error = place - value
    n = single_row(model, data, rows, COUPLING_ROW, follower, 1.0)
    if leader >= 0:
        add_entry(model, data, rows, leader, -slope)
    drift = drift_of(data, rows, n)
    rate = coupling_rate(model, state.qvel, c, slope)
    rows.error[n] = error
    rows.rate[n] = recovery_rate(inputs, absolute(error), model.row_erp[c])
    rows.bias[n] = rows.rate[n] * (error + behind(inputs) * rate) + h * drift
    resistance = resistance_of(model, c, step.effective_coupling[c])
    if not any_positive(-resistance):
        reference = reference_of(model, c)
        if model.row_impedance[c, D_MIN] >= 0.0:
            d = impedance(model.row_impedance, c, absolute(error))
            # without the polynomial's curvature, as in MuJoCo
            reference = safe_reference(h, reference[0], reference[1], model.row_time[c])
            rows.bias[n], rows.cfm[n] = softened(inputs, h, reference, d, resistance, error, rate, drift)
            rows.rate[n] = zero_like(error)
            return
        mobility = own_mobility(model, inputs, c, resistance, slope)
        rows.rate[n], rows.bias[n], rows.cfm[n] = sprung(
            inputs, reference, resistance, mobility, error, rate, drift, inputs.scheme[BETA]
        )


@njit
def coupling_error(model: Model, q: Lanes1, c: int) -> Real:
    """C of coupling row c at coordinates q [rad or m], in both widths."""
    leader = model.row_leader[c]
    place = q[model.dof_coord[model.row_follower[c]]]
    value, _, _ = coupling_slope(model, c, q[model.dof_coord[leader]] if leader >= 0 else zero_like(place))
    return place - value


@njit
def has_curved_couplings(model: Model) -> bool:
    """True if a hard coupling row follows a polynomial that is not a straight line."""
    for c in range(model.row_follower.shape[0]):
        if _is_aimed(model, c):
            return True
    return False


@inlined
def _is_aimed(model: Model, c: int) -> bool:
    """True if coupling row c is hard, and its polynomial not a straight line."""
    p = model.row_polynomial[c]
    return model.row_frequency[c] < 0.0 and (p[2] != 0.0 or p[3] != 0.0 or p[4] != 0.0)


@njit
def find_coupling_misses(model: Model, data: Workspace, inputs: Inputs, q: Lanes1, rows: Rows) -> Real:
    """Set rows.miss of curved hard couplings, and return the largest times _CLOSER; q are the coordinates at the step's
    end. In both widths."""
    worst = like(0.0, data)
    c = 0
    for n in range(rows.number[LASTING_ROWS]):
        if rows.kind[n] != COUPLING_ROW or c == model.row_follower.shape[0]:
            continue
        if _is_aimed(model, c):
            left = rows.error[n] * (1.0 - inputs.time_step[0] * rows.rate[n])
            miss = coupling_error(model, q, c) - left
            rows.miss[rows.place[n]] = miss
            worst = largest(worst, _CLOSER * absolute(miss))
        c += 1
    return worst
