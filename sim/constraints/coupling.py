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
        # r = J M⁻¹ Jᵀ on the bare M is in f.effective_coupling
        K, B = reference_of(m, c)
        if m.row_impedance[c, 0] >= 0.0:
            d = impedance(m.row_impedance, c, abs(error))
            rate = coupling_rate(m, s.qvel, c, slope)
            # without what bends in the polynomial, as MuJoCo has it
            r.bias[n], r.cfm[n] = softened(h, K, B, d, f.effective_coupling[c], error, rate, drift)
            r.rate[n] = 0.0
            return
        r.rate[n], r.bias[n], r.cfm[n] = sprung(h, K, B, f.effective_coupling[c], error, drift)
