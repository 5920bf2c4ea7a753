"""Projected Gauss-Seidel: row after row in PhysX's order, as often as asked. The last row wins when nothing yields."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit
from artsim.sim.solvers.sweep import prepare, sweep


@njit
def pgs(m: Any, w: Any, i: Any, r: Any, force: Any, u: Any, y: Any) -> None:
    """As `newton`, from λ = 0, with i.iterations sweeps at most. r.report: sweeps, largest change of the last."""
    prepare(m, w, r, force, u, y)
    change = 0.0
    for _ in range(i.iterations[0]):
        change = sweep(r, u, y)
        r.report[0] += 1
        if change == 0.0:
            break  # nor would further ones change anything
    r.report[1] = change
