"""The coefficients of integrators with an implicit stage, by the configuration of a run."""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.foundation.errors import UsageError
from artsim.sim.run_data.implicit_work import (
    ImplicitWork,
    generalized_alpha,
    implicit_euler,
    implicit_midpoint,
    make_implicit_work,
)
from artsim.sim.run_data.integration import GENERALIZED_ALPHA, IMPLICIT_EULER, INTEGRATORS
from artsim.sim.runs.configuration import RunConfig

_RHO_INF = 0.8


def implicit_works(model: Model, config: RunConfig) -> tuple[ImplicitWork, ...]:
    """The scratch of the integrator, empty for one without an implicit stage."""
    name = config.integrator
    if not INTEGRATORS[name].implicit:
        return ()
    if name == IMPLICIT_EULER.name:
        coefficients = implicit_euler()
    elif name == GENERALIZED_ALPHA.name:
        coefficients = generalized_alpha(_RHO_INF if config.rho_inf is None else config.rho_inf)
    else:
        coefficients = implicit_midpoint()
    return (make_implicit_work(model, *coefficients),)


def refuse_idle_radius(config: RunConfig) -> None:
    """Raise UsageError for a spectral radius that the integrator lacks."""
    if config.rho_inf is not None and config.integrator != GENERALIZED_ALPHA.name:
        raise UsageError(f"--rho-inf is for --integrator {GENERALIZED_ALPHA.name}, not {config.integrator}")
