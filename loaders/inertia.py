"""Possible inertia tensors: their test and the nearest one. Plain Python: `check` must not pay for importing numpy."""

from __future__ import annotations

import math

Inertia = tuple[float, float, float, float, float, float]  # xx, xy, xz, yy, yz, zz [kg m²]
Rows = list[list[float]]
NEGATIVE = 1e-6  # relative: files round to six digits, which makes moments of a flat body slightly negative
TRIANGLE = 1e-6  # relative, for rounding in files: thin plates have A + B = C exactly


def principal_moments(inertia: Inertia) -> tuple[float, float, float]:
    """Eigenvalues, ascending [kg m²]. Cyclic Jacobi rotations: exact to rounding, unlike the closed formula."""
    low, middle, high = sorted(diagonalised(inertia)[0])
    return low, middle, high


def diagonalised(inertia: Inertia) -> tuple[list[float], Rows]:
    """Eigenvalues [kg m²] in no order, and the matrix whose columns are their axes."""
    xx, xy, xz, yy, yz, zz = inertia
    a = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    for _ in range(30):
        if a[0][1] == a[0][2] == a[1][2] == 0.0:
            break
        for p, q in ((0, 1), (0, 2), (1, 2)):
            rotate(a, axes, p, q)
    return [a[0][0], a[1][1], a[2][2]], axes


def rotate(a: Rows, axes: Rows, p: int, q: int) -> None:
    """One Jacobi rotation of the symmetric 3 x 3 matrix `a` that makes a[p][q] zero. Golub & Van Loan, 8.5."""
    apq = a[p][q]
    if abs(apq) <= 1e-300 + 1e-20 * abs(a[p][p] + a[q][q]):
        a[p][q] = a[q][p] = 0.0
        return
    theta = (a[q][q] - a[p][p]) / (2.0 * apq)
    t = math.copysign(1.0, theta) / (abs(theta) + math.hypot(theta, 1.0))
    c = 1.0 / math.hypot(t, 1.0)
    s = t * c
    r = 3 - p - q  # the third axis
    arp, arq = a[r][p], a[r][q]
    a[p][p] -= t * apq
    a[q][q] += t * apq
    a[p][q] = a[q][p] = 0.0
    a[r][p] = a[p][r] = c * arp - s * arq
    a[r][q] = a[q][r] = s * arp + c * arq
    for row in axes:
        row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]


def is_negative(moments: tuple[float, float, float], rounding: float = 0.0) -> bool:
    """True if a principal moment is negative beyond rounding; `rounding` [kg m²] adds to the relative tolerance."""
    return moments[0] < -max(NEGATIVE * max(abs(moments[0]), moments[2]), rounding)


def breaks_triangle(moments: tuple[float, float, float], rounding: float = 0.0) -> bool:
    """True if the two smaller moments add up to less than the largest, which no distribution of mass allows."""
    return moments[0] + moments[1] < moments[2] * (1.0 - TRIANGLE) - rounding


def nearest_possible(inertia: Inertia) -> tuple[Inertia, float]:
    """The nearest inertia that a body can have, and its distance [kg m²]: the Frobenius norm of the difference.

    The set of possible inertias is convex and does not change under rotations, so the nearest one has the same axes,
    and its moments are the nearest point of the cone A + B >= C (and its two permutations).
    """
    moments, axes = diagonalised(inertia)
    order = sorted(range(3), key=moments.__getitem__)
    a, b, c = nearest_in_cone(*(moments[k] for k in order))
    repaired = [0.0] * 3
    for k, moment in zip(order, (a, b, c), strict=True):
        repaired[k] = moment
    xx, xy, xz, yy, yz, zz = (
        sum(axes[i][k] * repaired[k] * axes[j][k] for k in range(3)) for i in range(3) for j in range(i, 3)
    )
    return (xx, xy, xz, yy, yz, zz), math.dist(moments, repaired)


def nearest_in_cone(a: float, b: float, c: float) -> tuple[float, float, float]:
    """The nearest moments to a <= b <= c that a body can have: inside the cone, on a face, on an edge, or all zero."""
    short = c - a - b
    if short <= 0.0:
        return a, b, c
    a, b, c = a + short / 3.0, b + short / 3.0, c - short / 3.0
    if a >= 0.0:
        return a, b, c
    middle = max((b + c) / 2.0, 0.0)
    return 0.0, middle, middle


def balanced(moments: tuple[float, float, float]) -> Inertia:
    """The inertia that MuJoCo's balanceinertia substitutes: that of a ball with the same trace."""
    mean = sum(moments) / 3.0
    return (mean, 0.0, 0.0, mean, 0.0, mean)
