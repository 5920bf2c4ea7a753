"""Appending a row."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.run import BLOCK_GS, PGS, TGS

TOLD = 1e-6  # [rad/s or m/s] that a solver leaves in a step, of which the summary speaks
UNSOLVED = 1e-9  # [rad/s or m/s] that a solver leaves: rows that contradict each other
RECOVERY = 0.1  # [s] in which what is beyond a bound is brought back


@njit
def add_row(r: Any, kind: Any, k: Any) -> Any:
    """A row without entries, on dof k (or whatever its kind counts): unbounded, hard, no bias. Returns its number."""
    n = r.number[0]
    r.number[0] = n + 1
    r.kind[n] = kind
    r.dof[n] = k
    if n == 0:
        r.start[0] = 0
    r.start[n + 1] = r.start[n]
    r.stop[n] = r.start[n]
    r.impulse[n] = 0.0
    r.error[n] = 0.0
    r.rate[n] = 0.0
    r.bias[n] = 0.0
    r.cfm[n] = 0.0
    r.lower[n] = -1e308
    r.upper[n] = 1e308
    r.cone[n] = 0
    r.slope[n] = 0.0
    r.eased[n] = 0
    r.static[n] = 0
    return n


@njit
def add_entry(m: Any, w: Any, r: Any, k: Any, value: Any) -> None:
    """Another dof in the last row; followers act through G, a dof that nothing moves only takes the force."""
    n = r.number[0] - 1
    entry = r.start[n + 1]
    r.start[n + 1] = entry + 1
    r.entry_dof[entry] = k
    r.entry_value[entry] = value
    a = m.dof_independent[k]
    if a >= 0:
        r.column[r.stop[n]] = a
        r.value[r.stop[n]] = value * w.gain[k]
        r.stop[n] += 1


@njit
def single_row(m: Any, w: Any, r: Any, kind: Any, k: Any, sign: Any) -> Any:
    """A row on the velocity of dof k alone, J = sign G[k]. Returns its number."""
    n = add_row(r, kind, k)
    add_entry(m, w, r, k, sign)
    return n


@njit
def drift_of(w: Any, r: Any, n: Any) -> Any:
    """J's part in Ġ u: acceleration of row n at zero independent acceleration, of what its entries are."""
    value = 0.0
    for e in range(r.start[n], r.start[n + 1]):
        value += r.entry_value[e] * w.drift[r.entry_dof[e]]
    return value


@inlined
def row_rate(r: Any, n: Any, v: Any) -> Any:
    """J v of row n for velocities of the dofs."""
    value = 0.0
    for e in range(r.start[n], r.start[n + 1]):
        value += r.entry_value[e] * v[r.entry_dof[e]]
    return value


@inlined
def one_sided(r: Any, i: Any, n: Any, gap: Any) -> None:
    """Row n pushes only, and lets the gap [rad or m] close within the step.

    What is beyond the bound is brought back over a tenth of a second: all at once would be a kick. The sweeping solvers
    break bounds at every step and would drift away with that; they take all back at once, as PhysX does.
    """
    h = i.time_step[0]
    solver = i.solver[0]
    at_once = gap >= 0.0 or solver == PGS or solver == TGS or solver == BLOCK_GS
    r.error[n] = gap
    r.rate[n] = 1.0 / (h if at_once else max(h, RECOVERY))
    r.bias[n] = gap / (h if at_once else max(h, RECOVERY))
    r.lower[n] = 0.0
