"""Sums of rows of dense matrices in strips of WIDTH columns, for matrices with room for whole strips."""

from __future__ import annotations

from typing import Any

from numba.extending import overload

from artsim.sim.foundation.records import WIDTH
from artsim.sim.foundation.strips import _load, _store

UNIT = 2 * WIDTH - 1  # column of the 1 in a row of zeros, from which strips of unit vectors are read
NOWHERE = -1  # row of the unit vector 0
_ZEROS = 2 * WIDTH  # column from which a strip of that row is zeros


def sum_rows(H: Any, i: int, unit: Any, G: Any, rows: Any, count: int, x: Any) -> None:
    """H[i, :count] = e - Σ x[q] G[q, :count] over rows[0] ≤ q < rows[1]; count: a multiple of WIDTH.

    unit: a matrix with zeros in its first row but for a 1 in the column UNIT, and the index of the 1 in e, or NOWHERE.
    """
    for n in range(count):
        value = 1.0 if n == unit[1] else 0.0
        for q in range(rows[0], rows[1]):
            value = value - x[q] * G[q, n]
        H[i, n] = value


@overload(sum_rows)
def _sum_rows(H, i, unit, G, rows, count, x):  # type: ignore[no-untyped-def]
    def strips(H, i, unit, G, rows, count, x):  # type: ignore[no-untyped-def]
        units, one = unit
        first, last = rows
        for c in range(0, count, WIDTH):
            t = _load(units, 0, UNIT - (one - c) if c <= one < c + WIDTH else _ZEROS)
            for q in range(first, last):
                t = t - x[q] * _load(G, q, c)
            _store(H, i, c, t)

    return strips
