"""Products of a contact's rows with the velocities of its two bodies, a strip of WIDTH entries for each; one robot.

A matrix row holds the coefficients of both strips side by side; the rows of another hold the strips of velocities.
"""

from __future__ import annotations

from typing import Any

from numba.extending import overload

from artsim.sim.foundation.records import WIDTH
from artsim.sim.foundation.strips import _load, _store, _sum

NONE = -1  # in place of the second strip


def three_products(J: Any, p: int, y: Any, a: int, b: int) -> Any:
    """J[p + row, :WIDTH] · y[a] + J[p + row, WIDTH:] · y[b] of three rows; without the second term for b = NONE."""
    sums = [0.0, 0.0, 0.0]
    for row in range(3):
        for i in range(WIDTH):
            sums[row] += J[p + row, i] * y[a, i] + (J[p + row, WIDTH + i] * y[b, i] if b != NONE else 0.0)
    return sums[0], sums[1], sums[2]


@overload(three_products)
def _three_products(J, p, y, a, b):  # type: ignore[no-untyped-def]  # numba compares signatures
    def strips(J, p, y, a, b):  # type: ignore[no-untyped-def]
        x = _load(y, a, 0)
        s, t, u = _load(J, p, 0) * x, _load(J, p + 1, 0) * x, _load(J, p + 2, 0) * x
        if b != NONE:
            x = _load(y, b, 0)
            s = s + _load(J, p, WIDTH) * x
            t = t + _load(J, p + 1, WIDTH) * x
            u = u + _load(J, p + 2, WIDTH) * x
        return _sum(s), _sum(t), _sum(u)

    return strips


def one_product(J: Any, p: int, y: Any, a: int, b: int) -> Any:
    """The first of these."""
    total = 0.0
    for i in range(WIDTH):
        total += J[p, i] * y[a, i] + (J[p, WIDTH + i] * y[b, i] if b != NONE else 0.0)
    return total


@overload(one_product)
def _one_product(J, p, y, a, b):  # type: ignore[no-untyped-def]
    def strips(J, p, y, a, b):  # type: ignore[no-untyped-def]
        s = _load(J, p, 0) * _load(y, a, 0)
        if b != NONE:
            s = s + _load(J, p, WIDTH) * _load(y, b, 0)
        return _sum(s)

    return strips


def add_three(J: Any, p: int, y: Any, a: int, b: int, z: Any) -> None:
    """y[a] += Σ J[p + row, :WIDTH] z[row] over three rows; unless b = NONE, y[b] += the sum of the second strips."""
    for row in range(3):
        for i in range(WIDTH):
            y[a, i] += J[p + row, i] * z[row]
            if b != NONE:
                y[b, i] += J[p + row, WIDTH + i] * z[row]


@overload(add_three)
def _add_three(J, p, y, a, b, z):  # type: ignore[no-untyped-def]
    def strips(J, p, y, a, b, z):  # type: ignore[no-untyped-def]
        s = _load(J, p, 0) * z[0] + _load(J, p + 1, 0) * z[1]
        _store(y, a, 0, _load(y, a, 0) + (s + _load(J, p + 2, 0) * z[2]))
        if b != NONE:
            s = _load(J, p, WIDTH) * z[0] + _load(J, p + 1, WIDTH) * z[1]
            _store(y, b, 0, _load(y, b, 0) + (s + _load(J, p + 2, WIDTH) * z[2]))

    return strips


def add_one(J: Any, p: int, y: Any, a: int, b: int, z: float) -> None:
    """y[a] += J[p, :WIDTH] z, and unless b = NONE, y[b] += the second strip times z."""
    for i in range(WIDTH):
        y[a, i] += J[p, i] * z
        if b != NONE:
            y[b, i] += J[p, WIDTH + i] * z


@overload(add_one)
def _add_one(J, p, y, a, b, z):  # type: ignore[no-untyped-def]
    def strips(J, p, y, a, b, z):  # type: ignore[no-untyped-def]
        _store(y, a, 0, _load(y, a, 0) + _load(J, p, 0) * z)
        if b != NONE:
            _store(y, b, 0, _load(y, b, 0) + _load(J, p, WIDTH) * z)

    return strips
