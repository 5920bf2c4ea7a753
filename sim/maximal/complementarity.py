"""Impulses within bounds and friction cones, by a semismooth Newton method on the dense problem.

σ = W Λ + s are the velocities along the rows. A row with bounds has σ = 0, or ≥ 0 where Λ is at its lower bound and ≤ 0
at its upper. Of a cone the normal row has 0 ≤ Λ_n ⊥ σ_n ≥ 0; the friction impulse lies in the disc of radius μ Λ_n, and
where it is on the rim it opposes the slip σ_t (Coulomb). Both say that Λ is the projection of Λ - ρ σ onto its set
(Alart and Curnier 1991, A mixed formulation for frictional contact problems prone to Newton like solution methods,
sec. 3), for any scale ρ > 0.

The residual is piecewise smooth, so that Newton's steps converge at once when the contacts that stick, slip and part
are known; a line search shortens steps that do not reduce the residual. If no step does, sweeps of projected
Gauss-Seidel lead to another start: neither method finds the way out alone.
"""

from __future__ import annotations

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real

_EXACT = 1e-13  # of the velocities: nothing smaller is sought
_STEPS, _ROUNDS, _SWEEPS = 40, 12, 30
_HALVINGS = 10
_FURTHER = 8  # Newton steps without a better residual, after which sweeps follow


def solve_cones(
    W: Real, s: Real, lower: Real, upper: Real, cone: Array, slope: Real, start: Real
) -> tuple[Real, int, float]:
    """Λ (n,), the number of Newton steps, and the largest residual left [m/s or rad/s].

    W (n, n) is symmetric positive definite; cone and slope are those of BodyRows; start (n,): a first guess.
    """
    problem = _Problem(W, s, lower, upper, cone, slope)
    enough = _EXACT * (1.0 + float(np.max(np.abs(s), initial=0.0)))
    best = problem.projected(start)
    left, steps = problem.residual(best), 0
    for sweeps in range(_ROUNDS):
        value, residual, taken = _newton(problem, best, enough)
        steps += taken
        if residual < left:
            best, left = value, residual
        if left <= enough:
            break
        value = problem.swept(best, _SWEEPS * (1 + sweeps))
        if sweeps == 0 or problem.residual(value) < left:
            best, left = value, problem.residual(value)
        else:
            best = value
            left = problem.residual(value)
    return best, steps, left


def _newton(problem: _Problem, value: Real, enough: float) -> tuple[Real, float, int]:
    """The best of the iterates from a start, its residual, and the number of steps."""
    best, least, since = value, problem.residual(value), 0
    for step in range(_STEPS):
        F, G = problem.equations(value)
        merit = float(F @ F)
        way = _direction(G, F)
        length = 1.0
        for _ in range(_HALVINGS):
            tried = value + length * way
            found, _ = problem.equations(tried, slopes=False)
            if float(found @ found) <= (1.0 - 1e-4 * length) * merit:
                break
            length *= 0.5
        value = tried
        residual = problem.residual(value)
        since = 0 if residual < 0.9 * least else since + 1
        if residual < least:
            best, least = value, residual
        if least <= enough or since > _FURTHER:
            return best, least, step + 1
    return best, least, _STEPS


def _direction(G: Real, F: Real) -> Real:
    """Newton's step, by least squares where the slopes are singular."""
    if not (np.all(np.isfinite(G)) and np.all(np.isfinite(F))):
        return np.zeros(len(F))
    try:
        way: Real = np.linalg.solve(G, -F).astype(np.float64)
        way += np.linalg.solve(G, -F - G @ way)
        if np.all(np.isfinite(way)):
            return way
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(G, -F, rcond=None)[0], np.float64)


class _Problem:
    """The projection of Λ - ρ σ onto bounds and cones, and the slopes of Λ less it."""

    def __init__(self, W: Real, s: Real, lower: Real, upper: Real, cone: Array, slope: Real) -> None:
        self.W, self.s, self.slope = W, s, slope
        self.first = np.flatnonzero(cone > 0)
        self.size = cone[self.first]
        lower, upper = np.array(lower), np.array(upper)
        lower[self.first], upper[self.first] = 0.0, np.inf
        self.lower, self.upper = lower, upper
        self.scale = 1.0 / np.maximum(np.diag(W), 1e-300)
        for a, size in zip(self.first, self.size, strict=True):  # a cone stays one: its tangents have one scale
            self.scale[a + 1 : a + size] = (size - 1) / max(
                float(np.trace(W[a + 1 : a + size, a + 1 : a + size])), 1e-300
            )
            lower[a + 1 : a + size], upper[a + 1 : a + size] = -np.inf, np.inf

    def projected(self, z: Real) -> Real:
        """z (n,) on its bounds and in its cones, whose radius is that of the projected normal."""
        found: Real = np.clip(z, self.lower, self.upper)
        for a, size in zip(self.first, self.size, strict=True):
            radius = self.slope[a] * found[a]
            length = float(np.linalg.norm(z[a + 1 : a + size]))
            if length > radius:
                found[a + 1 : a + size] *= radius / length
        return found

    def residual(self, value: Real) -> float:
        """The largest |Λ - projection| / ρ, a velocity."""
        velocity = self.W @ value + self.s
        off = (value - self.projected(value - self.scale * velocity)) / self.scale
        return float(np.max(np.abs(off), initial=0.0))

    def equations(self, value: Real, *, slopes: bool = True) -> tuple[Real, Real]:
        """F = (Λ - projection) / √ρ and its slopes by Λ (n, n); the weights make the merit |F|² one of energies."""
        z = value - self.scale * (self.W @ value + self.s)
        weight = 1.0 / np.sqrt(self.scale)
        F = (value - self.projected(z)) * weight
        if not slopes:
            return F, np.zeros((0, 0))
        moves = -self.scale[:, None] * self.W  # slopes of z by Λ
        moves[np.diag_indices_from(moves)] += 1.0
        P = moves * ((z > self.lower) & (z < self.upper))[:, None]
        for a, size in zip(self.first, self.size, strict=True):
            rows = slice(a + 1, a + size)
            radius = self.slope[a] * max(z[a], 0.0)
            length = float(np.linalg.norm(z[rows]))
            if length > radius:
                along = z[rows] / length
                across = np.eye(size - 1) - np.outer(along, along)
                P[rows] = self.slope[a] * np.outer(along, P[a]) + radius / length * across @ moves[rows]
        return F, (np.eye(len(value)) - P) * weight[:, None]

    def swept(self, value: Real, sweeps: int) -> Real:
        """The impulses after sweeps of projected Gauss-Seidel, row by row, tangents of a cone together."""
        value = np.array(value)
        inside = np.zeros(len(value), bool)
        for a, size in zip(self.first, self.size, strict=True):
            inside[a + 1 : a + size] = True
        sizes = dict(zip(self.first.tolist(), self.size.tolist(), strict=True))
        for _ in range(sweeps):
            before = value.copy()
            for n in np.flatnonzero(~inside).tolist():
                rate = self.W[n] @ value + self.s[n]
                value[n] = min(max(value[n] - self.scale[n] * rate, self.lower[n]), self.upper[n])
                if n in sizes:
                    rows = slice(n + 1, n + sizes[n])
                    tried = value[rows] - self.scale[rows] * (self.W[rows] @ value + self.s[rows])
                    length, radius = float(np.linalg.norm(tried)), self.slope[n] * value[n]
                    value[rows] = tried * (radius / length) if length > radius else tried
            if np.max(np.abs(value - before), initial=0.0) <= 1e-15 * np.max(np.abs(value), initial=0.0):
                break
        return value
