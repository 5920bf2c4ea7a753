"""Scratch and coefficients of integrators that solve for the acceleration of a step. Does not import numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.foundation.records import ConstReals1, ConstReals2, Ints1, Reals1, Reals2, allocate
from artsim.sim.foundation.rotations import Real

# rows of ImplicitWork.shares: what the columns' accelerations add to velocities and ways, at the stage and at the end,
# and the acceleration that the next step remembers
STAGE_VELOCITY, STAGE_WAY, END_VELOCITY, END_WAY, NEXT_MEMORY = range(5)
# columns: accelerations remembered from the last step, at the step's start, and at the stage
OF_MEMORY, OF_START, OF_STAGE = range(3)
# entries of ImplicitWork.times [steps]: of the stage; share of the step for which the forces at the start count
AHEAD, START_SHARE = range(2)


class ImplicitWork(NamedTuple):
    """Of a step with one implicit stage (stepping/implicit_steps.py)."""

    shares: ConstReals2  # (5, 3) of h and, for ways, of h²
    times: ConstReals1  # (2,) AHEAD, START_SHARE
    memory: Reals1  # (nv,) accelerations remembered from the last step [rad/s² or m/s²]
    start: Reals1  # (nv,) accelerations at the step's start
    stage: Reals1  # (nu,) accelerations of the independent dofs at the stage
    base: Reals1  # (nu,) those that the stage's forces give
    change: Reals1  # (nu,) of `stage` in an iteration
    matrix: Reals2  # (nu, nu) 1 - ∂u̇/∂(stage), factorised
    pivot: Ints1  # (nu,) rows of its pivots


def make_implicit_work(model: Model, shares: Real, times: Real) -> ImplicitWork:
    """Allocate the scratch for a model."""
    nv, nu = len(model.dof_body), len(model.independent_dof)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("memory", "start"), (nv,))
    shapes |= dict.fromkeys(("stage", "base", "change", "pivot"), (nu,)) | {"matrix": (nu, nu)}
    work: ImplicitWork = allocate(ImplicitWork, shapes | {"shares": (5, 3), "times": (2,)})
    for array in (shares, times):
        array.setflags(write=False)
    return work._replace(shares=shares, times=times)


def implicit_euler() -> tuple[Real, Real]:
    """v⁺ = v + h a⁺, q⁺ = q ⊕ h v⁺."""
    end = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    return np.array([*end, *end, [0.0, 0.0, 0.0]]), np.array([1.0, 0.0])


def implicit_midpoint() -> tuple[Real, Real]:
    """v' = v + ½ h a', q' = q ⊕ ½ h v' midway; v⁺ = v + h a', q⁺ = q ⊕ h v' (Hairer, Lubich and Wanner 2006)."""
    half = [[0.0, 0.0, 0.5], [0.0, 0.0, 0.25]]
    whole = [[0.0, 0.0, 1.0], [0.0, 0.0, 0.5]]
    return np.array([*half, *whole, [0.0, 0.0, 0.0]]), np.array([0.5, 0.0])


def generalized_alpha(rho: float) -> tuple[Real, Real]:
    """The generalised-α method with the spectral radius `rho` of infinitely fast motion (Chung and Hulbert 1993); on
    the group by Brüls, Cardona and Arnold 2012: (1 - αm) a⁺ + αm a = (1 - αf) v̇⁺ + αf v̇, with which v⁺ = v + h ((1 -
    γ) a + γ a⁺) and q⁺ = q ⊕ (h v + h² ((½ - β) a + β a⁺))."""
    alpha_m, alpha_f = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    next_memory = np.array([-alpha_m, alpha_f, 1.0 - alpha_f]) / (1.0 - alpha_m)
    memory = np.array([1.0, 0.0, 0.0])
    end = [(1.0 - gamma) * memory + gamma * next_memory, (0.5 - beta) * memory + beta * next_memory]
    return np.array([*end, *end, next_memory]), np.array([1.0, 0.5])
