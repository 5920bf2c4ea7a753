"""Projected Gauss-Seidel: row after row in PhysX's order, as often as asked. The last row wins when nothing yields."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit
from artsim.sim.run import ITERATIONS, RESIDUAL
from artsim.sim.solvers.sweep import prepare, sweep


@njit
def pgs(model: Any, data: Any, inputs: Any, rows: Any, force: Any, u: Any, sweeps: Any) -> None:
    """As `newton`, from λ = 0, with inputs.iterations sweeps at most. rows.report: sweeps, largest change of the
    last."""
    prepare(model, data, rows, force, u, sweeps)
    change = 0.0
    for _ in range(inputs.iterations[0]):
        change = sweep(rows, u, sweeps)
        rows.report[ITERATIONS] += 1
        if change == 0.0:
            break  # nor would further ones change anything
    rows.report[RESIDUAL] = change
