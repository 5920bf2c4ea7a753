"""A linear system with names: its poles, and the gains of a linear-quadratic regulator."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real


@dataclass(frozen=True)
class LinearSystem:
    """ẋ = A x + B u, or x⁺ = A x + B u after a step of `dt`, and y = C x + D u, about a state.

    x, u and y are changes: of the state in the tangent space, of inputs and of outputs.
    """

    A: Real  # (nx, nx)
    B: Real  # (nx, nu)
    C: Real  # (ny, nx)
    D: Real  # (ny, nu)
    states: tuple[str, ...]  # "q:elbow", "v:elbow", "a:biceps"
    inputs: tuple[str, ...]  # "torque:elbow"
    outputs: tuple[str, ...]
    dt: float = 0.0  # [s]; 0: continuous

    @property
    def poles(self) -> Array:
        """Eigenvalues of A, by real part or, of a step, by magnitude, the least stable first."""
        found = np.linalg.eigvals(self.A)
        by = np.abs(found) if self.dt else found.real
        return found[np.lexsort((found.imag, -np.round(by, 9)))]

    def lqr(self, Q: ArrayLike, R: ArrayLike) -> tuple[Real, Real]:
        """Gains K (nu, nx) of u = -K x that minimise ∫ (xᵀ Q x + uᵀ R u) dt, or the sum over steps, and the solution P
        (nx, nx) of the Riccati equation.

        Args:
            Q, R: weights: a number, one for each state or input, or a matrix.

        Raises UsageError: a wrong shape, R that is not positive, or states that inputs do not reach and that do not
        settle by themselves.
        """
        from scipy.linalg import LinAlgError, solve_continuous_are, solve_discrete_are

        weights = _weights("Q", Q, len(self.states)), _weights("R", R, len(self.inputs))
        if not self.inputs:
            raise UsageError("lqr: there are no inputs")
        if np.linalg.eigvalsh(weights[1]).min() <= 0.0:
            raise UsageError("lqr: R is not positive definite")
        solve = solve_discrete_are if self.dt else solve_continuous_are
        try:
            P: Real = solve(self.A, self.B, *weights)
        except (LinAlgError, ValueError):
            raise UsageError(f"lqr: {self._unreached()}") from None
        if self.dt:
            K = np.linalg.solve(weights[1] + self.B.T @ P @ self.B, self.B.T @ P @ self.A)
        else:
            K = np.linalg.solve(weights[1], self.B.T @ P)
        return K.astype(float), P

    def _unreached(self) -> str:
        """The reason why there are no gains: an unstable motion that no input moves, if there is one."""
        values, left = np.linalg.eig(self.A.T)
        unstable = np.abs(values) >= 1.0 - 1e-9 if self.dt else values.real >= -1e-9
        for value, vector in zip(values[unstable], left.T[unstable], strict=True):
            reach = np.abs(vector @ self.B).max(initial=0.0)
            if reach <= 1e-9 * max(1.0, float(np.abs(self.B).max(initial=0.0))):
                most = self.states[int(np.abs(vector).argmax())]
                return f"no input reaches the motion of pole {value:.4g}, mostly of {most!r}, which does not settle"
        return "the Riccati equation has no solution with these weights"


def _weights(name: str, given: ArrayLike, size: int) -> Real:
    """A weight as a matrix. Raises UsageError."""
    values = np.asarray(given, float)
    if values.ndim == 0:
        values = np.full(size, float(values))
    if values.shape not in ((size,), (size, size)):
        raise UsageError(f"lqr: {name} has shape {values.shape}, want a number, ({size},) or ({size}, {size})")
    if not np.isfinite(values).all():
        raise UsageError(f"lqr: {name} is not finite")
    return np.diag(values) if values.ndim == 1 else 0.5 * (values + values.T)
