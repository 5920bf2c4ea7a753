"""The two schemes that enforce constraints in maximal coordinates, and the linear system of a step.

Unknowns are the bodies' velocity changes Δu and the rows' impulses Λ = h λ:

    [ M  -Jᵀ ] [Δu]   [h f]
    [ J   C  ] [ Λ] = [ b ]

Baumgarte (CS 599, scribe notes, 2011): C̈ + α Ċ + β C = 0, so J Δu = h (-J̇u - α Ċ - β C). Implicit (Faure, Compliant
plugin, 2012, eq. 14): the constraint is a spring of compliance c and damping d; α and β say how implicit its force and
the positions are; c = d = 0 is hard. Faure's prediction of C at the end of the step is extended by the omitted term
½ h² J̇u, so that gaps are O(h³) instead of O(h²). Compliant elements (springs, dampers, drives, soft couplings) are
implicit springs in both schemes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.complementarity import solve_cones
from artsim.sim.maximal.lines import CONTACT, BodyRows, Lines, dense


class Scheme(NamedTuple):
    """The scheme by which constraints enter a step of length h [s]."""

    h: float
    baumgarte: bool
    alpha: float  # Baumgarte: [1/s]; implicit: weight of the force at the end of the step
    beta: float  # Baumgarte: [1/s²]; implicit: weight of the velocity at the end of the step

    @property
    def ahead(self) -> float:
        """Share of the velocity change that moves the positions: x⁺ = x + h (u + ahead Δu)."""
        return 1.0 if self.baumgarte else self.beta

    def hard(self, error: Real, rate: Real, drift: Real, tuning: Real | None = None) -> Real:
        """b of rows that hold C = 0, with rate Ċ = J u and drift J̇ u; tuning (rows, 2): their own α and β, where
        they have some (Baumgarte)."""
        h = self.h
        if self.baumgarte:
            alpha, beta = (self.alpha, self.beta) if tuning is None else tuning.T
            return -h * (drift + alpha * rate + beta * error)
        # eq. 14 with c = d = 0 multiplies a gap by 1 - 1/α and its rate by 1 - 1/β in every step, which grows for
        # weights below ½. A hard row has no force law to weigh: with α = 1 and d = h (1 - β) its gap is gone then.
        d = h * (1.0 - self.beta)
        return -(error + (d + h) * rate + h * (0.5 * h + d) * drift) / h

    def by_and_by(self, error: Real, size: Real, speed: float, tuning: Real) -> Real:
        """The errors to remove in a step: those that α and β would remove at once, at a bounded speed, since an opening
        that closes in a step is a blow; size (rows,): of the openings that the rows are part of."""
        share = np.minimum(1.0, self.h * speed / np.maximum(size, 1e-300))
        slow = self.baumgarte and tuning[:, 1] * self.h**2 < 1.0
        return error * np.where(slow, 1.0, share)

    def soft(
        self, stiffness: Real, damping: Real, stretch: Real, slip: Real, rate: Real, drift: Real
    ) -> tuple[Real, Real]:
        """b and C of springs with λ = -K stretch - D slip at the end of the step; slip: rate minus target rate."""
        return self.compliant(-stiffness * stretch - damping * slip, stiffness, damping, rate, drift)

    def compliant(self, force: Real, stiffness: Real, damping: Real, rate: Real, drift: Real) -> tuple[Real, Real]:
        """b and C of forces that are `force` at the start of the step, with slopes -K and -D, at its end."""
        h, alpha, beta = self.h, *((1.0, 1.0) if self.baumgarte else (self.alpha, self.beta))
        gain = alpha * (h * beta * stiffness + damping)
        return (force - alpha * h * stiffness * rate) / gain - h * drift, 1.0 / (h * gain)


class Solution(NamedTuple):
    """The solution of a step's system."""

    change: Real  # (6 nb,) Δu
    held: Real  # (rows,) impulses of the rows in the matrix
    boxed: Real  # (rows,) impulses of the rows with bounds
    pivots: int  # or Newton steps, with contacts
    residual: float  # largest |J Δu + C Λ - b| of a row that is not at a bound, or of complementarity with contacts


class Factor:
    """The factorised system of one step, for rows without bounds."""

    def __init__(self, pattern: Pattern, inertia: Real, lines: Lines, rows: BodyRows) -> None:
        from scipy.sparse.linalg import splu

        self._matrix = pattern.matrix(inertia, lines, rows)
        self._lu: Any = splu(self._matrix)
        self._velocities = 6 * len(inertia)

    def solve(self, impulse: Real, b: Real) -> tuple[Real, Real]:
        """Solve for Δu (6 nb,) and Λ (rows,) with one step of iterative refinement."""
        right = np.concatenate([impulse, b])
        x = self._lu.solve(right)
        x += self._lu.solve(right - self._matrix @ x)
        return x[: self._velocities], x[self._velocities :]

    def responses(self, J: Real) -> Real:
        """Response of velocities and held rows to unit impulses along rows J (n, 6 nb): (6 nb + rows, n)."""
        right = np.zeros((self._matrix.shape[0], len(J)))
        right[: self._velocities] = J.T
        answer: Real = self._lu.solve(right)
        return answer

    def mobility(self, rows: BodyRows, lines: Lines) -> Real:
        """J K⁻¹ Jᵀ (n,) of further rows."""
        J = dense(rows, lines, self._velocities)
        found: Real = np.einsum("nk,kn->n", J, self.responses(J)[: self._velocities])
        return found


class Pattern:
    """Sparsity pattern of the system's matrix, found once for all steps."""

    def __init__(self, bodies: int, lines: Lines, rows: BodyRows) -> None:
        n = 6 * bodies
        block = np.arange(n).reshape(-1, 6)
        at, to = np.repeat(block, 6, axis=1).ravel(), np.tile(block, (1, 6)).ravel()
        r, c = rows.entries(lines)
        diagonal = n + np.arange(len(rows.b))
        self._size = n + len(rows.b)
        row, column = np.concatenate([at, n + r, c, diagonal]), np.concatenate([to, c, n + r, diagonal])
        places, self._slot = np.unique(column * self._size + row, return_inverse=True)
        self._indices = (places % self._size).astype(np.int32)
        starts = np.searchsorted(places, np.arange(self._size + 1) * self._size)
        self._starts = starts.astype(np.int32)

    def matrix(self, inertia: Real, lines: Lines, rows: BodyRows) -> Any:
        """The matrix [M -Jᵀ; J C] in compressed columns; inertia (nb, 6, 6)."""
        from scipy.sparse import csc_matrix

        J = rows.values(lines)
        data = np.bincount(
            self._slot, weights=np.concatenate([inertia.ravel(), J, -J, rows.give]), minlength=len(self._indices)
        )
        return csc_matrix((data, self._indices, self._starts), shape=(self._size, self._size))


def solve_bodies(factor: Factor, impulse: Real, lines: Lines, held: BodyRows, boxed: BodyRows) -> Solution:
    """Solve for Δu and all impulses of a step; `impulse` (6 nb,) is that of the known forces."""
    change, reaction = factor.solve(impulse, held.b)
    n = len(change)
    if not len(boxed.b):
        return Solution(change, reaction, np.zeros(0), 0, 0.0)
    J = dense(boxed, lines, n)
    answer = factor.responses(J)
    W = J @ answer[:n]
    mobility = np.bincount(boxed.group, np.diag(W)) / np.maximum(np.bincount(boxed.group), 1)
    W = 0.5 * (W + W.T) + np.diag(boxed.give + boxed.yielding * mobility[boxed.group])
    s = J @ change - boxed.b
    if np.any(boxed.source == CONTACT):
        start = np.zeros(len(s))
        impulses, pivots, residual = solve_cones(W, s, boxed.lower, boxed.upper, boxed.cone, boxed.slope, start)
    else:
        impulses, pivots, residual = boxed_problem(W, s, boxed.lower, boxed.upper)
    x = answer @ impulses
    return Solution(change + x[:n], reaction + x[n:], impulses, pivots, residual)


def boxed_problem(W: Real, s: Real, lower: Real, upper: Real) -> tuple[Real, int, float]:
    """Λ with σ = W Λ + s zero, or ≥ 0 where Λ = lower, ≤ 0 where Λ = upper; number of pivots; largest remaining error.

    Exact for positive definite W: all infeasible rows change sides at once while this lowers their number, else the
    last one alone, which cannot cycle (Júdice and Pires 1994, block principal pivoting; Murty 1974).
    """
    n = len(s)
    side = np.where((lower <= 0) & (upper >= 0) & ((lower < 0) | (s < 0)) & ((upper > 0) | (s > 0)), 0, -1)
    side[(side != 0) & (lower < 0)] = 1
    best, patience = n + 1, 10
    for pivot in range(50 * (n + 1)):
        value, slack = _at_sides(W, s, lower, upper, side)
        tolerance = 1e-13 * (1.0 + np.abs(value))
        low = (side == 0) & (value < lower - tolerance)
        high = (side == 0) & (value > upper + tolerance)
        room = 1e-14 * (np.abs(s) + np.abs(W) @ np.abs(value))
        free = ((side < 0) & (slack < -room)) | ((side > 0) & (slack > room))
        wrong = np.flatnonzero(low | high | free)
        if not len(wrong):
            return value, pivot, float(np.max(np.abs(slack[side == 0]), initial=0.0))
        if len(wrong) < best:
            best, patience = len(wrong), 10
        elif patience > 0:
            patience -= 1
        else:
            wrong = wrong[-1:]
        side[wrong] = np.where(low[wrong], -1, np.where(high[wrong], 1, 0))
    error = np.maximum(np.maximum(lower - value, value - upper), 0.0)
    return np.clip(value, lower, upper), pivot, float(np.max(np.diag(W) * error, initial=0.0))


def _at_sides(W: Real, s: Real, lower: Real, upper: Real, side: Array) -> tuple[Real, Real]:
    """Λ and σ if the rows of side 0 are solved and the others are at their bounds."""
    value = np.where(side < 0, lower, np.where(side > 0, upper, 0.0))
    inside = np.flatnonzero(side == 0)
    if len(inside):
        known = s[inside] + W[np.ix_(inside, side != 0)] @ value[side != 0]
        inner = W[np.ix_(inside, inside)]
        try:
            value[inside] = np.linalg.solve(inner, -known)
        except np.linalg.LinAlgError:  # rows without mobility
            value[inside] = np.linalg.lstsq(inner, -known)[0]
    return value, W @ value + s
