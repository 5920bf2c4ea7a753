"""Vectors as triples of T, so that kernels need one line instead of three.

Triples are numba's tuples: they live in registers, and cost no more than scalars written out. Sums go from left to
right; a matrix times a vector is a sum over the vector's entries.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import sqrt

# ------------------------------------------------------------------ entries of arrays


@inlined
def triple(a: Any) -> Any:
    """The three entries of an array."""
    return a[0], a[1], a[2]


@inlined
def row_of(A: Any, i: Any) -> Any:
    """The first three entries of row i of an array."""
    return A[i, 0], A[i, 1], A[i, 2]


@inlined
def put(out: Any, a: Any) -> None:
    """out = a, for an array of three."""
    out[0] = a[0]
    out[1] = a[1]
    out[2] = a[2]


@inlined
def set_row(A: Any, i: Any, a: Any) -> None:
    """Set the first three entries of row i of an array to a."""
    A[i, 0] = a[0]
    A[i, 1] = a[1]
    A[i, 2] = a[2]


@inlined
def component(a: Any, k: Any) -> Any:
    """a[k] for an index k known only at run time."""
    return a[0] if k == 0 else (a[1] if k == 1 else a[2])


@inlined
def shifted(a: Any) -> Any:
    """a with its axes shifted by one: its entries 1, 2, 0."""
    return a[1], a[2], a[0]


# ------------------------------------------------------------------ sums and products


@inlined
def plus(a: Any, b: Any) -> Any:
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inlined
def minus(a: Any, b: Any) -> Any:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inlined
def negative(a: Any) -> Any:
    """-a."""
    return -a[0], -a[1], -a[2]


@inlined
def times(k: Any, a: Any) -> Any:
    """k a for a number k."""
    return k * a[0], k * a[1], k * a[2]


@inlined
def divided(a: Any, k: Any) -> Any:
    """a / k for a number k."""
    return a[0] / k, a[1] / k, a[2] / k


@inlined
def plus_times(a: Any, k: Any, b: Any) -> Any:
    """a + k b for a number k."""
    return a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]


@inlined
def minus_times(a: Any, k: Any, b: Any) -> Any:
    """a - k b for a number k."""
    return a[0] - k * b[0], a[1] - k * b[1], a[2] - k * b[2]


@inlined
def combined(j: Any, a: Any, k: Any, b: Any) -> Any:
    """j a + k b for numbers j, k."""
    return j * a[0] + k * b[0], j * a[1] + k * b[1], j * a[2] + k * b[2]


@inlined
def plus_along(a: Any, k: Any, u: Any, v: Any, w: Any) -> Any:
    """a + k_0 u + k_1 v + k_2 w."""
    return plus_times(plus_times(plus_times(a, k[0], u), k[1], v), k[2], w)


@inlined
def by_component(a: Any, b: Any) -> Any:
    """a_i b_i."""
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


@inlined
def dot(a: Any, b: Any) -> Any:
    """a · b; also for arrays of three."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def crossed(a: Any, b: Any) -> Any:
    """a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined
def length(a: Any) -> Any:
    """|a|."""
    return sqrt(dot(a, a))


# ------------------------------------------------------------------ matrices


@inlined
def turned_back_by(R: Any, i: Any, a: Any) -> Any:
    """R[i]ᵀ a for an array R (n, 3, 3)."""
    return (
        R[i, 0, 0] * a[0] + R[i, 1, 0] * a[1] + R[i, 2, 0] * a[2],
        R[i, 0, 1] * a[0] + R[i, 1, 1] * a[1] + R[i, 2, 1] * a[2],
        R[i, 0, 2] * a[0] + R[i, 1, 2] * a[1] + R[i, 2, 2] * a[2],
    )


@inlined
def rotated(R: Any, a: Any) -> Any:
    """R a for an array R (3, 3)."""
    return (
        R[0, 0] * a[0] + R[0, 1] * a[1] + R[0, 2] * a[2],
        R[1, 0] * a[0] + R[1, 1] * a[1] + R[1, 2] * a[2],
        R[2, 0] * a[0] + R[2, 1] * a[1] + R[2, 2] * a[2],
    )


@inlined
def plus_rotated(b: Any, R: Any, a: Any) -> Any:
    """b + R a for an array R (3, 3)."""
    return (
        b[0] + R[0, 0] * a[0] + R[0, 1] * a[1] + R[0, 2] * a[2],
        b[1] + R[1, 0] * a[0] + R[1, 1] * a[1] + R[1, 2] * a[2],
        b[2] + R[2, 0] * a[0] + R[2, 1] * a[1] + R[2, 2] * a[2],
    )


@inlined
def rotated_back(R: Any, a: Any) -> Any:
    """Rᵀ a for an array R (3, 3)."""
    return (
        R[0, 0] * a[0] + R[1, 0] * a[1] + R[2, 0] * a[2],
        R[0, 1] * a[0] + R[1, 1] * a[1] + R[2, 1] * a[2],
        R[0, 2] * a[0] + R[1, 2] * a[1] + R[2, 2] * a[2],
    )


@inlined
def cross(a0: Any, a1: Any, a2: Any, b0: Any, b1: Any, b2: Any) -> Any:
    """a × b."""
    return a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0


@inlined
def turn(R: Any, i: Any, x: Any, y: Any, z: Any) -> Any:
    """R[i] (x, y, z)."""
    return (
        R[i, 0, 0] * x + R[i, 0, 1] * y + R[i, 0, 2] * z,
        R[i, 1, 0] * x + R[i, 1, 1] * y + R[i, 1, 2] * z,
        R[i, 2, 0] * x + R[i, 2, 1] * y + R[i, 2, 2] * z,
    )


@inlined
def turned_back(R: Any, x: Any, y: Any, z: Any) -> Any:
    """Rᵀ (x, y, z), with R as 9 numbers in row-major order."""
    return R[0] * x + R[3] * y + R[6] * z, R[1] * x + R[4] * y + R[7] * z, R[2] * x + R[5] * y + R[8] * z


@inlined
def symmetric_times(I: Any, i: Any, x: Any, y: Any, z: Any) -> Any:
    """I[i] (x, y, z) for I[i] = (xx, xy, xz, yy, yz, zz)."""
    return (
        I[i, 0] * x + I[i, 1] * y + I[i, 2] * z,
        I[i, 1] * x + I[i, 3] * y + I[i, 4] * z,
        I[i, 2] * x + I[i, 4] * y + I[i, 5] * z,
    )
