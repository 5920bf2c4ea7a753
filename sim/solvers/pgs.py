"""Projected Gauss-Seidel over the rows in their order, accumulated impulses (seed 001, eq. 2.10; seed 000, eq. 16).

Δλ = -(J u + bias + cfm λ) / (J M̂⁻¹ Jᵀ + cfm), λ clamped to its bounds. The row solved last wins when nothing yields.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.dynamics import factorise, solve
from artsim.sim.jit import njit


@njit
def pgs(m: Any, w: Any, i: Any, r: Any, force: Any, u: Any, y: Any) -> None:
    """As `newton`; sweeps as often as i.iterations says. r.report: sweeps, the last one's largest change."""
    _answers(m, w, r, y)
    solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, force)
    for a in range(u.shape[0]):
        u[a] += force[a]
    for n in range(r.number[0]):
        r.impulse[n] = 0.0
    change = 0.0
    for _ in range(i.iterations[0]):
        change = 0.0
        for n in range(r.number[0]):
            denominator = y.effective[n] + r.cfm[n]
            if denominator <= 0.0:
                continue  # nothing it acts on can move
            error = r.bias[n] + r.cfm[n] * r.impulse[n]
            for e in range(r.start[n], r.stop[n]):
                error += r.value[e] * u[r.column[e]]
            new = min(max(r.impulse[n] - error / denominator, r.lower[n]), r.upper[n])
            delta = new - r.impulse[n]
            if delta != 0.0:
                r.impulse[n] = new
                x = y.response[n]
                for a in range(u.shape[0]):
                    u[a] += x[a] * delta
                change = max(change, abs(delta) * denominator)
    r.report[0] += i.iterations[0]
    r.report[1] = change


@njit
def _answers(m: Any, w: Any, r: Any, y: Any) -> None:
    """y.response = M̂⁻¹ Jᵀ and y.effective = J M̂⁻¹ Jᵀ of every row; M̂ is left factorised in w.factor."""
    factorise(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run)
    for n in range(r.number[0]):
        x = y.response[n]
        for a in range(x.shape[0]):
            x[a] = 0.0
        for e in range(r.start[n], r.stop[n]):
            x[r.column[e]] += r.value[e]
        solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, x)
        y.effective[n] = 0.0
        for e in range(r.start[n], r.stop[n]):
            y.effective[n] += r.value[e] * x[r.column[e]]
