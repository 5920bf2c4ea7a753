"""Matrices of three rows, as values and as rows of arrays, times vectors (vec3.py).

A Mat3 is nine numbers by rows; a Sym3 is the upper triangle of a symmetric matrix: xx, xy, xz, yy, yz, zz. Sums go
from left to right, so that a product is the same number however it is written. Entries are written out one by one: a
loop's index into a tuple would be looked up at run time.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.records import Array, Lanes2, Lanes3, Mat3, Real, Reals1, Reals2, Reals3, Sym3, Vec3, Vector
from artsim.sim.foundation.vec3 import cross

# ------------------------------------------------------------------ rotations in arrays


@inlined
def turn(R: Lanes3, i: int, a: Vector) -> Vec3:
    """R[i] a for an array R (n, 3, 3)."""
    return (
        R[i, 0, 0] * a[0] + R[i, 0, 1] * a[1] + R[i, 0, 2] * a[2],
        R[i, 1, 0] * a[0] + R[i, 1, 1] * a[1] + R[i, 1, 2] * a[2],
        R[i, 2, 0] * a[0] + R[i, 2, 1] * a[1] + R[i, 2, 2] * a[2],
    )


@inlined
def turn_back(R: Reals3, i: int, a: Vector) -> Vec3:
    """R[i]ᵀ a for an array R (n, 3, 3)."""
    return (
        R[i, 0, 0] * a[0] + R[i, 1, 0] * a[1] + R[i, 2, 0] * a[2],
        R[i, 0, 1] * a[0] + R[i, 1, 1] * a[1] + R[i, 2, 1] * a[2],
        R[i, 0, 2] * a[0] + R[i, 1, 2] * a[1] + R[i, 2, 2] * a[2],
    )


@inlined
def rotated(R: Reals2, a: Vec3) -> Vec3:
    """R a for an array R (3, 3)."""
    return (
        R[0, 0] * a[0] + R[0, 1] * a[1] + R[0, 2] * a[2],
        R[1, 0] * a[0] + R[1, 1] * a[1] + R[1, 2] * a[2],
        R[2, 0] * a[0] + R[2, 1] * a[1] + R[2, 2] * a[2],
    )


@inlined
def plus_rotated(b: Reals1, R: Reals2, a: Vec3) -> Vec3:
    """b + R a for an array R (3, 3)."""
    return (
        b[0] + R[0, 0] * a[0] + R[0, 1] * a[1] + R[0, 2] * a[2],
        b[1] + R[1, 0] * a[0] + R[1, 1] * a[1] + R[1, 2] * a[2],
        b[2] + R[2, 0] * a[0] + R[2, 1] * a[1] + R[2, 2] * a[2],
    )


@inlined
def rotated_back(R: Reals2, a: Vec3) -> Vec3:
    """Rᵀ a for an array R (3, 3)."""
    return (
        R[0, 0] * a[0] + R[1, 0] * a[1] + R[2, 0] * a[2],
        R[0, 1] * a[0] + R[1, 1] * a[1] + R[2, 1] * a[2],
        R[0, 2] * a[0] + R[1, 2] * a[1] + R[2, 2] * a[2],
    )


@inlined
def set_rotation(R: Lanes3, i: int, A: Mat3) -> None:
    """R[i] = A for an array R (n, 3, 3)."""
    R[i, 0, 0] = A[0]
    R[i, 0, 1] = A[1]
    R[i, 0, 2] = A[2]
    R[i, 1, 0] = A[3]
    R[i, 1, 1] = A[4]
    R[i, 1, 2] = A[5]
    R[i, 2, 0] = A[6]
    R[i, 2, 1] = A[7]
    R[i, 2, 2] = A[8]


# ------------------------------------------------------------------ matrices as values


@inlined
def columns(a: Vector, b: Vector, c: Vector) -> Mat3:
    """The matrix of these columns."""
    return a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2]


@inlined
def matrix_of(A: Lanes2, i: int, first: int) -> Mat3:
    """Nine entries of row i of an array."""
    return (
        A[i, first],
        A[i, first + 1],
        A[i, first + 2],
        A[i, first + 3],
        A[i, first + 4],
        A[i, first + 5],
        A[i, first + 6],
        A[i, first + 7],
        A[i, first + 8],
    )


@inlined
def set_matrix(A: Lanes2, i: int, first: int, B: Mat3) -> None:
    """Set nine entries of row i of an array to B."""
    A[i, first] = B[0]
    A[i, first + 1] = B[1]
    A[i, first + 2] = B[2]
    A[i, first + 3] = B[3]
    A[i, first + 4] = B[4]
    A[i, first + 5] = B[5]
    A[i, first + 6] = B[6]
    A[i, first + 7] = B[7]
    A[i, first + 8] = B[8]


@inlined
def add_matrix(A: Lanes2, i: int, first: int, B: Mat3) -> None:
    """Add B to nine entries of row i of an array."""
    A[i, first] = A[i, first] + B[0]
    A[i, first + 1] = A[i, first + 1] + B[1]
    A[i, first + 2] = A[i, first + 2] + B[2]
    A[i, first + 3] = A[i, first + 3] + B[3]
    A[i, first + 4] = A[i, first + 4] + B[4]
    A[i, first + 5] = A[i, first + 5] + B[5]
    A[i, first + 6] = A[i, first + 6] + B[6]
    A[i, first + 7] = A[i, first + 7] + B[7]
    A[i, first + 8] = A[i, first + 8] + B[8]


@inlined
def subtract_matrix(A: Lanes2, i: int, first: int, B: Mat3) -> None:
    """Subtract B from nine entries of row i of an array."""
    A[i, first] = A[i, first] - B[0]
    A[i, first + 1] = A[i, first + 1] - B[1]
    A[i, first + 2] = A[i, first + 2] - B[2]
    A[i, first + 3] = A[i, first + 3] - B[3]
    A[i, first + 4] = A[i, first + 4] - B[4]
    A[i, first + 5] = A[i, first + 5] - B[5]
    A[i, first + 6] = A[i, first + 6] - B[6]
    A[i, first + 7] = A[i, first + 7] - B[7]
    A[i, first + 8] = A[i, first + 8] - B[8]


@inlined
def turn_matrix(R: Lanes3, i: int, L: Array) -> Mat3:
    """R[i] L for arrays R (n, 3, 3), L (3, 3)."""
    return columns(
        turn(R, i, (L[0, 0], L[1, 0], L[2, 0])),
        turn(R, i, (L[0, 1], L[1, 1], L[2, 1])),
        turn(R, i, (L[0, 2], L[1, 2], L[2, 2])),
    )


@inlined
def turned(R: Mat3, a: Vector) -> Vec3:
    """R a."""
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@inlined
def plus_turned(b: Vector, R: Mat3, a: Vector) -> Vec3:
    """b + R a."""
    return (
        b[0] + R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        b[1] + R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        b[2] + R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@inlined
def turned_back(R: Mat3, a: Vector) -> Vec3:
    """Rᵀ a."""
    return (
        R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@inlined
def plus_turned_back(b: Vector, R: Mat3, a: Vector) -> Vec3:
    """b + Rᵀ a."""
    return (
        b[0] + R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        b[1] + R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        b[2] + R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@inlined
def first_column(R: Mat3) -> Vec3:
    """R x̂."""
    return R[0], R[3], R[6]


@inlined
def second_column(R: Mat3) -> Vec3:
    """R ŷ."""
    return R[1], R[4], R[7]


@inlined
def third_column(R: Mat3) -> Vec3:
    """R ẑ."""
    return R[2], R[5], R[8]


@inlined
def column(R: Mat3, k: int) -> Vec3:
    """Column k, known only at run time."""
    return first_column(R) if k == 0 else (second_column(R) if k == 1 else third_column(R))


@inlined
def transposed(R: Mat3) -> Mat3:
    """Rᵀ."""
    return R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]


@inlined
def matrix_minus(A: Mat3, B: Mat3) -> Mat3:
    """A - B."""
    return (
        A[0] - B[0],
        A[1] - B[1],
        A[2] - B[2],
        A[3] - B[3],
        A[4] - B[4],
        A[5] - B[5],
        A[6] - B[6],
        A[7] - B[7],
        A[8] - B[8],
    )


@inlined
def matrix_plus(A: Mat3, B: Mat3) -> Mat3:
    """A + B."""
    return (
        A[0] + B[0],
        A[1] + B[1],
        A[2] + B[2],
        A[3] + B[3],
        A[4] + B[4],
        A[5] + B[5],
        A[6] + B[6],
        A[7] + B[7],
        A[8] + B[8],
    )


@inlined
def multiple_of_unit(k: Real) -> Mat3:
    """k 1 for a number k."""
    zero = k - k
    return k, zero, zero, zero, k, zero, zero, zero, k


@inlined
def outer(a: Vector, b: Vector) -> Mat3:
    """a bᵀ."""
    return (
        a[0] * b[0],
        a[0] * b[1],
        a[0] * b[2],
        a[1] * b[0],
        a[1] * b[1],
        a[1] * b[2],
        a[2] * b[0],
        a[2] * b[1],
        a[2] * b[2],
    )


@inlined
def skew_times(d: Vector, A: Mat3) -> Mat3:
    """[d]× A: its columns are d × those of A."""
    return columns(cross(d, first_column(A)), cross(d, second_column(A)), cross(d, third_column(A)))


@inlined
def times_skew(A: Mat3, d: Vector) -> Mat3:
    """A [d]×: its rows are those of A × d."""
    a, b, c = cross((A[0], A[1], A[2]), d), cross((A[3], A[4], A[5]), d), cross((A[6], A[7], A[8]), d)
    return a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]


# ------------------------------------------------------------------ symmetric matrices


@inlined
def symmetric_times(I: Lanes2, i: int, a: Vector) -> Vec3:
    """I[i] a for an array I (n, 6) of upper triangles."""
    return symmetric_turned(symmetric_of(I, i, 0), a)


@inlined
def symmetric_of(A: Lanes2, i: int, first: int) -> Sym3:
    """Six entries of row i of an array."""
    return A[i, first], A[i, first + 1], A[i, first + 2], A[i, first + 3], A[i, first + 4], A[i, first + 5]


@inlined
def set_symmetric(A: Lanes2, i: int, first: int, S: Sym3) -> None:
    """Set six entries of row i of an array to S."""
    A[i, first] = S[0]
    A[i, first + 1] = S[1]
    A[i, first + 2] = S[2]
    A[i, first + 3] = S[3]
    A[i, first + 4] = S[4]
    A[i, first + 5] = S[5]


@inlined
def add_symmetric(A: Lanes2, i: int, first: int, S: Sym3) -> None:
    """Add S to six entries of row i of an array."""
    A[i, first] = A[i, first] + S[0]
    A[i, first + 1] = A[i, first + 1] + S[1]
    A[i, first + 2] = A[i, first + 2] + S[2]
    A[i, first + 3] = A[i, first + 3] + S[3]
    A[i, first + 4] = A[i, first + 4] + S[4]
    A[i, first + 5] = A[i, first + 5] + S[5]


@inlined
def subtract_symmetric(A: Lanes2, i: int, first: int, S: Sym3) -> None:
    """Subtract S from six entries of row i of an array."""
    A[i, first] = A[i, first] - S[0]
    A[i, first + 1] = A[i, first + 1] - S[1]
    A[i, first + 2] = A[i, first + 2] - S[2]
    A[i, first + 3] = A[i, first + 3] - S[3]
    A[i, first + 4] = A[i, first + 4] - S[4]
    A[i, first + 5] = A[i, first + 5] - S[5]


@inlined
def symmetric_turned(S: Sym3, a: Vector) -> Vec3:
    """S a."""
    return (
        S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
        S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
        S[2] * a[0] + S[4] * a[1] + S[5] * a[2],
    )


@inlined
def plus_symmetric(b: Vector, S: Sym3, a: Vector) -> Vec3:
    """b + S a."""
    return (
        b[0] + S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
        b[1] + S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
        b[2] + S[2] * a[0] + S[4] * a[1] + S[5] * a[2],
    )


@inlined
def whole(S: Sym3) -> Mat3:
    """S with both triangles."""
    return S[0], S[1], S[2], S[1], S[3], S[4], S[2], S[4], S[5]


@inlined
def upper(A: Mat3) -> Sym3:
    """The upper triangle of a symmetric matrix."""
    return A[0], A[1], A[2], A[4], A[5], A[8]


@inlined
def symmetric_plus(A: Sym3, B: Sym3) -> Sym3:
    """A + B."""
    return A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5]


@inlined
def symmetric_minus(A: Sym3, B: Sym3) -> Sym3:
    """A - B."""
    return A[0] - B[0], A[1] - B[1], A[2] - B[2], A[3] - B[3], A[4] - B[4], A[5] - B[5]
