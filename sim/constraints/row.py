"""Appending a row."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def add_row(m: Any, w: Any, r: Any, kind: Any, k: Any, sign: Any) -> Any:
    """A row on the velocity of dof k, J = sign G[k]: unbounded, hard, no bias. Returns its number."""
    n = r.number[0]
    r.number[0] = n + 1
    r.kind[n] = kind
    r.dof[n] = k
    r.sign[n] = sign
    r.entries[n] = 0
    r.impulse[n] = 0.0
    r.bias[n] = 0.0
    r.cfm[n] = 0.0
    r.lower[n] = -1e308
    r.upper[n] = 1e308
    add_entry(m, w, r, n, k, sign)
    return n


@njit
def add_entry(m: Any, w: Any, r: Any, n: Any, k: Any, value: Any) -> None:
    """Another dof in row n; followers act through G. A dof that nothing moves has no entry."""
    a = m.dof_independent[k]
    if a < 0:
        return
    entry = 2 * n + r.entries[n]
    r.column[entry] = a
    r.value[entry] = value * w.gain[k]
    r.entries[n] += 1
