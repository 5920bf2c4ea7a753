"""A drive as a row: the spring and damper of M̂'s drives, with the impulse bounded by the drive's limit.

J v⁺ + (K (q - h b v - target) - D target_velocity) / (h a K + D) + λ / (h (h a K + D)) = 0: seed 000, eq. 21 to 23,
with the weights a and b of actuation.py.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.actuation import drive_force, foreseen
from artsim.sim.constraints.row import single_row
from artsim.sim.jit import njit
from artsim.sim.run import DRIVE_ROW


@njit
def drive_row(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, k: Any) -> None:
    """The row of dof k's drive, if it has one that is not part of M̂."""
    h = i.time_step[0]
    stiff = f.stiffness[k] * (1.0 - 0.75 * f.share[k])
    total = h * stiff + f.damping[k]
    if r.implicit[k] or total <= 0.0:
        return
    n = single_row(m, w, r, DRIVE_ROW, k, 1.0)
    behind = f.place[k] + h * foreseen(f.share[k], s.qvel[k], 0.0)
    force = drive_force(i, f, f.counters[4], k, behind, 0.0)
    if f.stiffness[k] > 0.0:
        r.error[n] = -force / f.stiffness[k]
        r.rate[n] = f.stiffness[k] / total
    r.bias[n] = h * w.drift[k] - force / total
    r.cfm[n] = 1.0 / (h * total)
    r.lower[n] = max(-h * i.drive_limit[k], -1e308)
    r.upper[n] = min(h * i.drive_limit[k], 1e308)
