"""A coupling kept as a row: q_follower = p(q_leader), hard, or with a natural frequency and a damping ratio.

Seed 000, eq. 5 to 29, generalised from a gear ratio to the polynomial's slope. Equalities of MJCF files whose solref is
set give way as MuJoCo's do (softness.py).
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.constraints.row import add_entry, drift_of, recovery_rate, single_row
from artsim.sim.constraints.softness import impedance, softened, sprung
from artsim.sim.coupling import follow
from artsim.sim.dynamics import solve
from artsim.sim.jit import inlined, njit
from artsim.sim.run import COUPLING_ROW


@njit
def coupling_slope(m: Any, c: Any, x: Any) -> Any:
    """Value and first two derivatives of coupling row c's polynomial at x."""
    return follow(m.row_polynomial[c], x)


@inlined
def reference_of(m: Any, c: Any) -> Any:
    """K = μ² and B = 2 ζ μ of coupling row c, μ = 2π frequency."""
    mu = 2.0 * math.pi * m.row_frequency[c]
    return mu * mu, 2.0 * m.row_damping_ratio[c] * mu


@inlined
def coupling_rate(m: Any, v: Any, c: Any, slope: Any) -> Any:
    """Ċ of coupling row c."""
    leader = m.row_leader[c]
    return v[m.row_follower[c]] - (slope * v[leader] if leader >= 0 else 0.0)


@njit
def row_mobilities(m: Any, w: Any, f: Any, e: Any, x: Any) -> None:
    """f.effective_coupling of rows that give way as MuJoCo's, as Model.row_mobility but with the tendons' inertias.

    M stands factorised in w.mass_matrix and x.row2 (equipment/forces.py).
    """
    for c in range(m.row_follower.shape[0]):
        if m.row_impedance[c, 0] >= 0.0:
            f.effective_coupling[c] = _inverse_inertia(m, w, e, x, m.row_follower[c])
            if m.row_leader[c] >= 0:
                f.effective_coupling[c] += _inverse_inertia(m, w, e, x, m.row_leader[c])


@njit
def _inverse_inertia(m: Any, w: Any, e: Any, x: Any, k: Any) -> Any:
    """The entry of M⁻¹ on dof k's diagonal; of a link that only slides 1 / mass."""
    if e.dof_sliding[k] > 0.0:
        return 1.0 / e.dof_sliding[k]
    y = x.row
    for j in range(y.shape[0]):
        y[j] = 0.0
    y[k] = 1.0
    solve(w.mass_matrix, x.row2, m.dof_parent, m.dof_run, y)
    return y[k]


@njit
def coupling_row(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, c: Any) -> None:
    """C = q_follower - p(q_leader), J = e_follower - p' e_leader."""
    h = i.time_step[0]
    follower = m.row_follower[c]
    leader = m.row_leader[c]
    x = s.qpos[m.dof_coord[leader]] if leader >= 0 else 0.0
    value, slope, _ = coupling_slope(m, c, x)
    error = s.qpos[m.dof_coord[follower]] - value
    n = single_row(m, w, r, COUPLING_ROW, follower, 1.0)
    if leader >= 0:
        add_entry(m, w, r, leader, -slope)
    drift = drift_of(w, r, n)
    r.error[n] = error
    r.rate[n] = recovery_rate(i, abs(error))
    r.bias[n] = r.rate[n] * error + h * drift
    if m.row_frequency[c] > 0.0 and f.effective_coupling[c] > 0.0:
        K, B = reference_of(m, c)
        if m.row_impedance[c, 0] >= 0.0:
            d = impedance(m.row_impedance, c, abs(error))
            rate = coupling_rate(m, s.qvel, c, slope)
            # without what bends in the polynomial, as MuJoCo has it
            r.bias[n], r.cfm[n] = softened(h, K, B, d, f.effective_coupling[c], error, rate, drift)
            r.rate[n] = 0.0
            return
        r.rate[n], r.bias[n], r.cfm[n] = sprung(h, K, B, f.effective_coupling[c], error, drift)
