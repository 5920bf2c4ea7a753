"""Vectors as triples of T, so that kernels need one line instead of three.

Triples are numba's tuples: they live in registers, and cost no more than scalars written out. Sums go from left to
right; a matrix times a vector is a sum over the vector's entries.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import sqrt
from artsim.sim.foundation.records import (
    Array,
    Lanes1,
    Lanes2,
    Real,
    Reals2,
    Vec3,
    Vector,
)

# ------------------------------------------------------------------ entries of arrays


@inlined
def triple(a: Vector) -> Vec3:
    """The three entries of an array."""
    return a[0], a[1], a[2]


@inlined
def row_of(A: Array, i: int) -> Vec3:
    """The first three entries of row i of an array."""
    return A[i, 0], A[i, 1], A[i, 2]


@inlined
def triple_at(a: Lanes1, first: int) -> Vec3:
    """The three entries of an array from `first`."""
    return a[first], a[first + 1], a[first + 2]


@inlined
def put_at(out: Lanes1, first: int, a: Vector) -> None:
    """Set the three entries of an array from `first` to a."""
    out[first] = a[0]
    out[first + 1] = a[1]
    out[first + 2] = a[2]


@inlined
def put(out: Lanes1, a: Vec3) -> None:
    """out = a, for an array of three."""
    out[0] = a[0]
    out[1] = a[1]
    out[2] = a[2]


@inlined
def set_row(A: Reals2, i: int, a: Vector) -> None:
    """Set the first three entries of row i of an array to a."""
    A[i, 0] = a[0]
    A[i, 1] = a[1]
    A[i, 2] = a[2]


@inlined
def add_to_row(A: Lanes2, i: int, a: Vector) -> None:
    """Add a to the first three entries of row i of an array."""
    A[i, 0] = A[i, 0] + a[0]
    A[i, 1] = A[i, 1] + a[1]
    A[i, 2] = A[i, 2] + a[2]


@inlined
def column_of(A: Lanes2, k: int, first: int) -> Vec3:
    """The entries first, first + 1, first + 2 of column k of an array."""
    return A[first, k], A[first + 1, k], A[first + 2, k]


@inlined
def set_column(A: Lanes2, k: int, first: int, a: Vector) -> None:
    """Set the entries first, first + 1, first + 2 of column k of an array to a."""
    A[first, k] = a[0]
    A[first + 1, k] = a[1]
    A[first + 2, k] = a[2]


@inlined
def zeros_like(a: Vector) -> Vec3:
    """Three zeros of the kind of a's entries: a float, or one of each lane."""
    zero = a[0] - a[0]
    return zero, zero, zero


@inlined
def component(a: Vec3, k: int) -> float:
    """a[k] for an index k known only at run time."""
    return a[0] if k == 0 else (a[1] if k == 1 else a[2])


@inlined
def shifted(a: Vec3) -> Vec3:
    """a with its axes shifted by one: its entries 1, 2, 0."""
    return a[1], a[2], a[0]


# ------------------------------------------------------------------ sums and products


@inlined
def plus(a: Vector, b: Vector) -> Vec3:
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inlined
def minus(a: Vector, b: Vector) -> Vec3:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inlined
def negative(a: Vector) -> Vec3:
    """-a."""
    return -a[0], -a[1], -a[2]


@inlined
def times(k: Real, a: Vector) -> Vec3:
    """k a for a number k."""
    return k * a[0], k * a[1], k * a[2]


@inlined
def divided(a: Vector, k: Real) -> Vec3:
    """a / k for a number k."""
    return a[0] / k, a[1] / k, a[2] / k


@inlined
def plus_times(a: Vector, k: Real, b: Vector) -> Vec3:
    """a + k b for a number k."""
    return a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]


@inlined
def minus_times(a: Vector, k: Real, b: Vector) -> Vec3:
    """a - k b for a number k."""
    return a[0] - k * b[0], a[1] - k * b[1], a[2] - k * b[2]


@inlined
def combined(j: Real, a: Vec3, k: Real, b: Vec3) -> Vec3:
    """j a + k b for numbers j, k."""
    return j * a[0] + k * b[0], j * a[1] + k * b[1], j * a[2] + k * b[2]


@inlined
def plus_along(a: Vector, k: Vec3, u: Vec3, v: Vec3, w: Vec3) -> Vec3:
    """a + k_0 u + k_1 v + k_2 w."""
    return plus_times(plus_times(plus_times(a, k[0], u), k[1], v), k[2], w)


@inlined
def by_component(a: Vector, b: Vec3) -> Vec3:
    """a_i b_i."""
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


@inlined
def dot(a: Vector, b: Vector) -> Real:
    """a · b; also for arrays of three."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def cross(a: Vector, b: Vector) -> Vec3:
    """a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined
def length(a: Vector) -> Real:
    """|a|."""
    return sqrt(dot(a, a))
