"""Builds the row of a coupling q_follower = p(q_leader), hard, or with a natural frequency and a damping ratio.

Notes on mimic joints, eq. 5 to 29, generalised from a gear ratio to the polynomial's slope. Equalities of MJCF files
whose solref is set yield as in MuJoCo (impedance.py).
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.articulation.coupling import follow
from artsim.sim.articulation.dynamics import solve
from artsim.sim.articulation.model import D_MIN
from artsim.sim.constraints.impedance import impedance, softened, sprung
from artsim.sim.constraints.kinds import COUPLING_ROW
from artsim.sim.constraints.row import add_entry, drift_of, recovery_rate, single_row
from artsim.sim.foundation.jit import inlined, njit


@njit
def coupling_slope(model: Any, c: Any, x: Any) -> Any:
    """Value and first two derivatives of coupling row c's polynomial at x."""
    return follow(model.row_polynomial[c], x)


@inlined
def reference_of(model: Any, c: Any) -> Any:
    """K = μ² and B = 2 ζ μ of coupling row c, where μ = 2π frequency."""
    mu = 2.0 * math.pi * model.row_frequency[c]
    return mu * mu, 2.0 * model.row_damping_ratio[c] * mu


@inlined
def coupling_rate(model: Any, v: Any, c: Any, slope: Any) -> Any:
    """Ċ of coupling row c."""
    leader = model.row_leader[c]
    return v[model.row_follower[c]] - (slope * v[leader] if leader >= 0 else 0.0)


@njit
def row_mobilities(model: Any, data: Any, step: Any, equipment: Any) -> None:
    """step.effective_coupling of the rows that yield as in MuJoCo: Model.row_mobility with the inertia of tendons.

    M must be factorised in data.mass_matrix and equipment.data.row2 (equipment/forces.py).
    """
    for c in range(model.row_follower.shape[0]):
        if model.row_impedance[c, D_MIN] >= 0.0:
            step.effective_coupling[c] = _inverse_inertia(model, data, equipment, model.row_follower[c])
            if model.row_leader[c] >= 0:
                step.effective_coupling[c] += _inverse_inertia(model, data, equipment, model.row_leader[c])


@njit
def _inverse_inertia(model: Any, data: Any, equipment: Any, k: Any) -> Any:
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
def coupling_row(robot: Any, run: Any, rows: Any, c: Any) -> None:
    """Append the row of coupling c: C = q_follower - p(q_leader), J = e_follower - p' e_leader."""
    model, state, data = robot.model, robot.state, robot.data
    inputs, step = run.inputs, run.step
    h = inputs.time_step[0]
    follower = model.row_follower[c]
    leader = model.row_leader[c]
    x = state.qpos[model.dof_coord[leader]] if leader >= 0 else 0.0
    value, slope, _ = coupling_slope(model, c, x)
    error = state.qpos[model.dof_coord[follower]] - value
    n = single_row(model, data, rows, COUPLING_ROW, follower, 1.0)
    if leader >= 0:
        add_entry(model, data, rows, leader, -slope)
    drift = drift_of(data, rows, n)
    rows.error[n] = error
    rows.rate[n] = recovery_rate(inputs, abs(error))
    rows.bias[n] = rows.rate[n] * error + h * drift
    if model.row_frequency[c] > 0.0 and step.effective_coupling[c] > 0.0:
        K, B = reference_of(model, c)
        if model.row_impedance[c, D_MIN] >= 0.0:
            d = impedance(model.row_impedance, c, abs(error))
            rate = coupling_rate(model, state.qvel, c, slope)
            # without the polynomial's curvature, as in MuJoCo
            rows.bias[n], rows.cfm[n] = softened(h, K, B, d, step.effective_coupling[c], error, rate, drift)
            rows.rate[n] = 0.0
            return
        rows.rate[n], rows.bias[n], rows.cfm[n] = sprung(h, K, B, step.effective_coupling[c], error, drift)
