"""Conjugate gradients for crowds: the minimum of the convex problem, its conditions written out in numpy; a crowd."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contact.robot_contacts import growth
from tests.contact.test_contact_closed_forms import FLOOR, free, mjcf, play
from tests.solvers.newton_kernels import Case, Real
from tests.solvers.sweep_kernels import swept
from tests.solvers.test_newton import rolling_spheres

GIVE = 0.2  # [1/kg] softness of the contacts


def projected(c: Case, u: Real, shift: Real) -> Real:
    """λ that soft contacts give at the velocities u: (contacts, 3)."""
    free_impulse = (-(c.jacobian @ u) / GIVE).reshape(-1, 3)
    free_impulse[:, 0] -= shift / GIVE
    out = np.zeros_like(free_impulse)
    for n, z in enumerate(free_impulse):
        mu, length = c.slope[3 * n], np.hypot(z[1], z[2])
        if length <= mu * z[0]:
            out[n] = z
        elif mu * length > -z[0]:
            normal = (z[0] + mu * length) / (1.0 + mu * mu)
            out[n] = [normal, *(mu * normal * z[1:] / length)]
    return out


@pytest.mark.parametrize("seed", range(10))
def test_the_minimum_of_the_convex_problem(seed: int) -> None:
    """Spheres that roll into each other: M̂ x = f + Jᵀλ, λ the projection that x asks for."""
    c, parent = rolling_spheres(np.random.default_rng([7, seed]))
    c = c._replace(cfm=np.full(len(c.jacobian), GIVE))
    bound = swept("conjugate", c, parent, 300)
    bound.call()
    found = bound.problem.next.reshape(-1)
    slip = (c.jacobian @ c.velocity).reshape(-1, 3)[:, 1:]
    impulse = projected(c, found, c.slope[::3] * np.hypot(*slip.T))
    assert bound.rows.impulse.reshape(-1, 3) == pytest.approx(impulse, abs=1e-9)
    balance = c.matrix @ (found - c.velocity) - c.force - c.jacobian.T @ impulse.ravel()
    assert np.abs(balance / np.diag(c.matrix)).max() <= 1e-7
    assert bound.rows.report[0] <= 250


def test_a_crowd_of_grains() -> None:
    """A heap of hard grains in one island of hundreds of contacts falls apart: what gives way makes no energy."""
    rng = np.random.default_rng(3)
    count = 7
    grains = "".join(
        free(
            'type="sphere" size=".01" mass=".004"',
            f"{0.02001 * i + x} {0.02001 * j + y} {0.02 * k + 0.01}",
            name=f"g{i}.{j}.{k}",
        )
        for i in range(count)
        for j in range(count)
        for k in range(count)
        for x, y in [rng.uniform(-5e-6, 5e-6, 2)]
    )
    run = play(mjcf(FLOOR + grains), 0.2, 2e-3, record=("energy", "solver_residual"))
    energy = run["energy"].sum(axis=1)
    residual = run["solver_residual"].max()
    print(
        f"{run.simulation.contact_extremes[0]} contacts, {run.simulation.eased_steps} steps that gave way,",
        f"energy gained {growth(energy):.1e} of {energy[0] - energy[-1]:.1e} J, residual {residual:.1e}",
    )
    assert run.simulation.contact_extremes[0] >= 500
    assert run.simulation.eased_steps >= 50
    assert growth(energy) <= 1e-9 * (energy[0] - energy[-1])
    assert residual <= 1.0
