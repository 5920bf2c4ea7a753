"""LDLᵀ of K = J M̂⁻¹ Jᵀ + cfm, dense: exact where all rows are equalities (seed 001, 3.2.1)."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def direct(r: Any, u: Any) -> None:
    """Impulses and velocities of unbounded rows; u (nu,) as in `pgs`. A redundant row (zero pivot) gets no impulse.

    Two rounds: the second solves for what rounding left of the first. O(rows³ + rows nu).
    """
    count = r.number[0]
    K = r.delassus
    y = r.correction
    for n in range(count):
        x = r.response[n]
        for j in range(n + 1):
            value = 0.0
            for e in range(r.start[j], r.stop[j]):
                value += r.value[e] * x[r.column[e]]
            K[n, j] = value
        K[n, n] += r.cfm[n]
    for n in range(count):  # L below the diagonal, D on it, by rows
        for j in range(n):
            value = K[n, j]
            for c in range(j):
                value -= K[n, c] * K[j, c]
            K[n, j] = value  # L D for now
        pivot = K[n, n]
        for c in range(n):
            lower = K[n, c] / K[c, c] if K[c, c] != 0.0 else 0.0
            pivot -= lower * K[n, c]
            K[n, c] = lower
        K[n, n] = pivot if pivot > 1e-13 * (r.effective[n] + r.cfm[n]) else 0.0
    residual = 0.0
    for _ in range(2):
        residual = 0.0
        for n in range(count):
            error = r.bias[n] + r.cfm[n] * r.impulse[n]
            for e in range(r.start[n], r.stop[n]):
                error += r.value[e] * u[r.column[e]]
            residual = max(residual, abs(error))
            y[n] = -error
        for n in range(count):
            for c in range(n):
                y[n] -= K[n, c] * y[c]
        for n in range(count):
            y[n] = y[n] / K[n, n] if K[n, n] > 0.0 else 0.0
        for n in range(count - 1, -1, -1):
            for c in range(n):
                y[c] -= K[n, c] * y[n]
        for n in range(count):
            r.impulse[n] += y[n]
            x = r.response[n]
            for a in range(u.shape[0]):
                u[a] += x[a] * y[n]
    r.report[0] += 1.0
    r.report[1] = residual
