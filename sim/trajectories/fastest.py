"""The fastest motion along a path within limits: reachability analysis (TOPP-RA) after Pham and Pham 2018.

A path q(s) is passed with the velocity ṡ. Of x = ṡ² and u = s̈ limits of velocity, acceleration and joint force are
linear: a u + b x + c ≤ 0 at each place of a grid, with u constant between two. From the end back to the start the
velocities are found from which the rest of the path can be passed; from the start on the largest u is taken that stays
among these. Both are problems in two variables, which are solved by eliminating u (Fourier and Motzkin): every pair of
a bound from above and one from below leaves a bound of x.

Rows hold at both ends of each stretch of the grid, so that between them limits are exceeded by the square of its length
only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.rotations import Real

AHEAD = 1e-200  # ṡ at rest: forwards, by which friction has its sign
_FLAT = 1e-12  # share of the largest |a| up to which a row does not bound u
_ROUNDING = 1e-9  # by how much bounds may cross: sums of terms of size 1 are rounded


class PathLimits(NamedTuple):
    """Limits along a path: a u + b x + c ≤ 0 at the N + 1 places of a grid, rows divided by their limits."""

    grid: Real  # (N + 1,) the places s
    a: Real  # (N + 1, m)
    b: Real  # (N + 1, m)
    c: Real  # (N + 1, m)
    top: Real  # (N + 1,) largest x


class Passage(NamedTuple):
    """The motion along a path: u is constant from place to place, and x linear in s."""

    grid: Real  # (N + 1,) the places s
    x: Real  # (N + 1,) ṡ² there
    u: Real  # (N,) s̈ between them
    time: Real  # (N + 1,) [s] at which they are passed

    @property
    def duration(self) -> float:
        """The time of the whole path [s]."""
        return float(self.time[-1])

    def at(self, time: Real) -> tuple[Real, Real, Real]:
        """s, ṡ and s̈ at times (n,) within the passage [s]."""
        k = np.clip(np.searchsorted(self.time, time, "right") - 1, 0, len(self.u) - 1)
        t = time - self.time[k]
        rate = np.sqrt(self.x[k])
        s = np.clip(self.grid[k] + t * (rate + 0.5 * t * self.u[k]), self.grid[k], self.grid[k + 1])
        return s, np.maximum(rate + self.u[k] * t, AHEAD), self.u[k]

    def between(self, parts: int) -> tuple[Real, Real, Real]:
        """s, ṡ and s̈ at this number of places within each stretch of the grid, both ends among them."""
        share = np.linspace(0.0, 1.0, parts)
        step = np.diff(self.grid)
        s = self.grid[:-1, None] + step[:, None] * share
        x = self.x[:-1, None] * (1.0 - share) + self.x[1:, None] * share
        return s.ravel(), np.maximum(np.sqrt(x), AHEAD).ravel(), np.repeat(self.u, parts)


class StuckError(Exception):
    """Raised where no velocity is within the limits; `place` is the number in the grid."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


def fastest(limits: PathLimits) -> Passage:
    """The fastest passage from rest to rest. Raises StuckError."""
    count = len(limits.grid) - 1
    low, high = np.zeros(count + 1), np.zeros(count + 1)
    for i in range(count - 1, -1, -1):
        rows = _rows(limits, i, low[i + 1], high[i + 1])
        low[i], high[i] = _passable(*rows, float(limits.top[i]))
        if low[i] > high[i]:
            raise StuckError(i)
    if low[0] > 0.0:
        raise StuckError(0)
    x, u = np.zeros(count + 1), np.zeros(count)
    for i in range(count):
        step = limits.grid[i + 1] - limits.grid[i]
        largest = _largest(*_rows(limits, i, low[i + 1], high[i + 1]), float(x[i]))
        x[i + 1] = np.clip(x[i] + 2.0 * step * largest, low[i + 1], high[i + 1])
        u[i] = (x[i + 1] - x[i]) / (2.0 * step)
        if x[i] + x[i + 1] <= 0.0:
            raise StuckError(i)
    rate = np.sqrt(x)
    time = np.concatenate([[0.0], np.cumsum(2.0 * np.diff(limits.grid) / (rate[:-1] + rate[1:]))])
    return Passage(limits.grid, x, u, time)


def _rows(limits: PathLimits, i: int, low: float, high: float) -> tuple[Real, Real, Real]:
    """Rows of stretch i in its u and in x at its beginning: limits at both ends, and x at its end in low … high."""
    ahead = 2.0 * (limits.grid[i + 1] - limits.grid[i])
    a, b, c = limits.a, limits.b, limits.c
    return (
        np.concatenate([a[i], a[i + 1] + ahead * b[i + 1], [ahead, -ahead]]),
        np.concatenate([b[i], b[i + 1], [1.0, -1.0]]),
        np.concatenate([c[i], c[i + 1], [-high, low]]),
    )


def _bounds(a: Real, b: Real, c: Real) -> tuple[Real, Real, Real]:
    """u ≤ p + r x of rows with a > 0, and u ≥ p + r x of those with a < 0: p and r of all rows, and the sign of a."""
    sign = np.where(np.abs(a) > _FLAT * np.abs(a).max(), np.sign(a), 0.0)
    divisor = np.where(sign == 0.0, 1.0, a)
    return -c / divisor, -b / divisor, sign


def _passable(a: Real, b: Real, c: Real, top: float) -> tuple[float, float]:
    """The least and the largest x in 0 … top for which some u obeys the rows; a least above the largest: none."""
    p, r, sign = _bounds(a, b, c)
    above, below, flat = sign > 0, sign < 0, sign == 0
    slope = np.concatenate([(r[below][:, None] - r[above]).ravel(), b[flat]])
    room = np.concatenate([(p[above] - p[below][:, None]).ravel(), -c[flat]])
    size = np.concatenate([(np.abs(p[above]) + np.abs(p[below])[:, None]).ravel(), np.ones(int(flat.sum()))])
    room = room + _ROUNDING * _ROUNDING * size  # an equation is two rows, whose bounds are to touch
    rising, falling = slope > 0, slope < 0
    high = min(top, float((room[rising] / slope[rising]).min(initial=np.inf)))
    low = max(0.0, float((room[falling] / slope[falling]).max(initial=-np.inf)))
    if (room[slope == 0] < 0.0).any():
        return 1.0, 0.0
    if high < low <= high + _ROUNDING * max(1.0, abs(high)):
        high = low
    return low, high


def _largest(a: Real, b: Real, c: Real, x: float) -> float:
    """The largest u at x."""
    p, r, sign = _bounds(a, b, c)
    return float((p + r * x)[sign > 0].min())
