"""Whether an inertia tensor can belong to a body, in plain Python: `check` must not pay for importing numpy."""

from __future__ import annotations

import math

Inertia = tuple[float, float, float, float, float, float]  # xx, xy, xz, yy, yz, zz [kg m²]
NEGATIVE = 1e-6  # relative: files round to six digits, so a body without extent comes out a little negative
TRIANGLE = 1e-6  # relative, for the same reason: thin plates have A + B = C exactly


def principal_moments(inertia: Inertia) -> tuple[float, float, float]:
    """Eigenvalues, ascending [kg m²]. Cyclic Jacobi rotations: exact to rounding, unlike the closed formula."""
    xx, xy, xz, yy, yz, zz = inertia
    a = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    for _ in range(30):
        if a[0][1] == a[0][2] == a[1][2] == 0.0:
            break
        for p, q in ((0, 1), (0, 2), (1, 2)):
            rotate(a, p, q)
    low, middle, high = sorted((a[0][0], a[1][1], a[2][2]))
    return low, middle, high


def rotate(a: list[list[float]], p: int, q: int) -> None:
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


def is_negative(moments: tuple[float, float, float]) -> bool:
    """Whether a principal moment is negative beyond rounding."""
    return moments[0] < -NEGATIVE * max(abs(moments[0]), moments[2])


def breaks_triangle(moments: tuple[float, float, float]) -> bool:
    """Whether the two smaller moments do not reach the largest: no distribution of mass does that."""
    return moments[0] + moments[1] < moments[2] * (1.0 - TRIANGLE)


def balanced(moments: tuple[float, float, float]) -> Inertia:
    """What MuJoCo's balanceinertia puts in place: a ball of the same trace."""
    mean = sum(moments) / 3.0
    return (mean, 0.0, 0.0, mean, 0.0, mean)
