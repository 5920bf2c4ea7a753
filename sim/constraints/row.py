"""Appending a row."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.run import BLOCK_GS, PGS, TGS

TOLD = 1e-6  # [rad/s or m/s] that a solver leaves in a step, of which the summary speaks
UNSOLVED = 1e-9  # [rad/s or m/s] that a solver leaves: rows that contradict each other
RECOVERY = 0.1  # [s] in which what is beyond a bound, or open at the start, is brought back
_CREEP = 1e-3  # [m/s or rad/s] with which an error may always be taken back: what a step leaves, at once
_CLOSING = 0.5  # [m/s or rad/s] of a loop or a tendon equality that does not hold
_PUSH = 5.0  # [rad/s or m/s] of the joints at most, with which a row takes an error back


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
def recovery_rate(i: Any, size: Any) -> Any:
    """Of an error of this size [rad or m], how much a hard row takes back per second [1/s].

    All at once would be a kick: exponentially over RECOVERY, small ones at once; or as --coupling-erp says. The
    sweeping solvers, which leave errors at every step, take all back at once.
    """
    h = i.time_step[0]
    solver = i.solver[0]
    if i.recovery[0] > 0.0:
        return i.recovery[0] / h
    if solver == PGS or solver == TGS or solver == BLOCK_GS:
        return 1.0 / h
    return min(1.0 / h, max(1.0 / RECOVERY, _CREEP / max(size, 1e-300)))


@inlined
def closing_rate(i: Any, size: Any) -> Any:
    """The same of loops and tendon equalities, which close at _CLOSING at most unless --coupling-erp is given."""
    h = i.time_step[0]
    if i.recovery[0] > 0.0:
        return i.recovery[0] / h
    return min(1.0 / h, _CLOSING / max(size, 1e-300))


@inlined
def within_reach(r: Any, n: Any, rate: Any) -> Any:
    """`rate`, or what takes the error of row n back with joint velocities of _PUSH.

    Where a row hardly moves anything (a straight arm, a dead centre) any velocity along it would take endless ones.
    """
    reach = 0.0
    for e in range(r.start[n], r.start[n + 1]):
        reach += abs(r.entry_value[e])
    return min(rate, _PUSH * reach / max(abs(r.error[n]), 1e-300))


@inlined
def one_sided(r: Any, i: Any, n: Any, gap: Any) -> None:
    """Row n pushes only, and lets the gap [rad or m] close within the step.

    What is beyond the bound is brought back over a tenth of a second: all at once would be a kick. The sweeping solvers
    break bounds at every step and would drift away with that; they take all back at once, as PhysX does.
    """
    h = i.time_step[0]
    solver = i.solver[0]
    sweeps = solver == PGS or solver == TGS or solver == BLOCK_GS
    r.error[n] = gap
    r.rate[n] = 1.0 / h
    if gap < 0.0 and i.recovery[0] > 0.0:
        r.rate[n] = i.recovery[0] / h
    elif gap < 0.0 and not sweeps:
        r.rate[n] = within_reach(r, n, 1.0 / max(h, RECOVERY))
    r.bias[n] = r.rate[n] * gap
    r.lower[n] = 0.0
