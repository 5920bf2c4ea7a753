"""Small convex programmes over friction cones: the least ½ xᵀ P x with E x = r and forces within cones.

A barrier method (Boyd and Vandenberghe 2004, ch. 11): Newton's method on t ½ xᵀ P x - Σ log(μ² n² - |s|²) along the
null space of E, with t growing. It begins inside of the cones, at a point that the same method finds by the least shift
that all cones need; where that is not negative there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real

_ACCURACY = 1e-14  # of the objective, as a share of it
_GROWTH = 20.0
_NEWTON = 60
_ROUNDS = 80
_SIGNS = np.array([1.0, -1.0, -1.0])


def least_in_cones(P: Real, E: Real, r: Real, cones: Array, friction: Real) -> tuple[Real | None, float]:
    """The least x (n,), None if no x lies within the cones; and the shift that they need [of x], negative inside.

    Args:
        P: (n, n), E: (m, n) of full rank, r: (m,).
        cones: (k, 3) indices into x of each cone's normal and two tangential forces.
        friction: (k,) coefficients.
    """
    n = len(P)
    start = np.linalg.lstsq(E, r, rcond=None)[0].astype(float)
    ways = np.linalg.svd(E)[2][len(E) :].T  # along which E x stays
    scale = max(float(np.abs(start).max(initial=0.0)), 1e-12)
    need = float(_margins(start, cones, friction).max(initial=-np.inf))
    shifted = np.zeros((n + 1, ways.shape[1] + 1))
    shifted[:n, :-1], shifted[n, -1] = ways, 1.0
    bounded = np.zeros((n + 1, n + 1))
    bounded[:n, :n] = 1e-9 * np.eye(n) / scale  # keeps x bounded where cones leave it free
    slope = np.zeros(n + 1)
    slope[n] = 1.0
    phase = _Programme(bounded, slope, shifted, cones, friction, n)
    x = phase.least(np.concatenate([start, [max(need, 0.0) + scale]]), enough=-1e-6 * scale)
    if x[n] >= -1e-9 * scale:
        return None, float(x[n])
    return _Programme(P, np.zeros(n), ways, cones, friction, -1).least(x[:n]), float(x[n])


def outside(x: Real, cones: Array, friction: Real) -> bool:
    """True if a force lies outside of its cone."""
    return bool((_margins(x, cones, friction) > 0.0).any())


def _margins(x: Real, cones: Array, friction: Real) -> Real:
    """By how much each cone must be shifted along its normal, times its coefficient, to hold its force."""
    shifts: Real = np.hypot(x[cones[:, 1]], x[cones[:, 2]]) - friction * x[cones[:, 0]]
    return shifts


class _Programme(NamedTuple):
    """The least ½ xᵀ P x + cᵀ x along `ways`, within cones that are shifted by x[shift], if that is given."""

    P: Real  # (n, n)
    c: Real  # (n,)
    ways: Real  # (n, m)
    cones: Array  # (k, 3)
    friction: Real  # (k,)
    shift: int  # -1: none

    def least(self, x: Real, *, enough: float = -np.inf) -> Real:
        """The least x from one inside, or the first whose x[shift] is below `enough`."""
        number = float(max(2 * len(self.cones), 1))
        t = number / max(abs(self._value(x)), 1e-9)
        for _ in range(_ROUNDS):
            for _ in range(_NEWTON):
                step, decrement = self._newton(t, x)
                length = self._length(t, x, step, decrement)
                if decrement < 1e-16 or not length:
                    break
                x = x + length * step
                if self.shift >= 0 and x[self.shift] < enough:
                    return x
            if number / t <= _ACCURACY * max(abs(self._value(x)), 1e-12):
                break
            t *= _GROWTH
        return x

    def _value(self, x: Real) -> float:
        return float(0.5 * x @ self.P @ x + self.c @ x)

    def _inside(self, x: Real) -> tuple[Real, Real, Real]:
        """Per cone: (3, k) the forces μ n + shift, s₁ and s₂, and (k,) the difference of their squares; x[shift]."""
        along = self.friction * x[self.cones[:, 0]] + (x[self.shift] if self.shift >= 0 else 0.0)
        forces = np.stack([along, x[self.cones[:, 1]], x[self.cones[:, 2]]])
        return forces, forces[0] ** 2 - forces[1] ** 2 - forces[2] ** 2, along

    def _merit(self, t: float, x: Real) -> float:
        _, inside, along = self._inside(x)
        if (inside <= 0.0).any() or (along <= 0.0).any():
            return np.inf
        return t * self._value(x) - float(np.log(inside).sum())

    def _length(self, t: float, x: Real, step: Real, decrement: float) -> float:
        """The share of a step that lowers the merit enough; 0: none does."""
        before, length = self._merit(t, x), 1.0
        while self._merit(t, x + length * step) > before - 0.1 * length * decrement:
            length *= 0.5
            if length < 1e-12:
                return 0.0
        return length

    def _newton(self, t: float, x: Real) -> tuple[Real, float]:
        """Newton's step along the ways, and its decrement."""
        H, g = t * self.P, t * (self.P @ x + self.c)
        forces, inside, _ = self._inside(x)
        for k, cone in enumerate(self.cones):
            places = [*cone.tolist(), *([self.shift] if self.shift >= 0 else [])]
            rows = np.eye(3, len(places))
            rows[0, 0] = self.friction[k]
            if self.shift >= 0:
                rows[0, 3] = 1.0
            first = 2.0 * rows.T @ (forces[:, k] * _SIGNS)
            second = 2.0 * rows.T @ np.diag(_SIGNS) @ rows
            g[places] -= first / inside[k]
            H[np.ix_(places, places)] += np.outer(first, first) / inside[k] ** 2 - second / inside[k]
        H, g = self.ways.T @ H @ self.ways, self.ways.T @ g
        size = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
        step = -size * np.linalg.lstsq(H * size * size[:, None], size * g, rcond=1e-15)[0]
        return self.ways @ step, float(-g @ step)
