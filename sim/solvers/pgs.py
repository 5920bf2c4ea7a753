"""Projected Gauss-Seidel over the rows in their order, accumulated impulses (seed 001, eq. 2.10; seed 000, eq. 16).

Δλ = -(J u + bias + cfm λ) / (J M̂⁻¹ Jᵀ + cfm), λ clamped to its bounds. The row solved last wins when nothing yields.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def pgs(r: Any, u: Any, sweeps: Any, tolerance: Any) -> None:
    """Sweep until no row changes a velocity by more than `tolerance` [rad/s or m/s], at most `sweeps` times.

    u (nu,) holds the velocities without these impulses on entry, with them on return. r.report: sweeps, last change.
    """
    done = 0
    change = 0.0
    for _ in range(sweeps):
        change = 0.0
        done += 1
        for n in range(r.number[0]):
            denominator = r.effective[n] + r.cfm[n]
            if denominator <= 0.0:
                continue  # nothing it acts on can move
            error = r.bias[n] + r.cfm[n] * r.impulse[n]
            for e in range(r.start[n], r.stop[n]):
                error += r.value[e] * u[r.column[e]]
            new = min(max(r.impulse[n] - error / denominator, r.lower[n]), r.upper[n])
            delta = new - r.impulse[n]
            if delta != 0.0:
                r.impulse[n] = new
                x = r.response[n]
                for a in range(u.shape[0]):
                    u[a] += x[a] * delta
                change = max(change, abs(delta) * denominator)
        if change <= tolerance:
            break
    r.report[0] += done
    r.report[1] = change
