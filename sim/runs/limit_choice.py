"""Tells runs whose integrator leaves steps in which limits act to the default."""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import Equipped
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.runs.configuration import RunConfig

_NONE = 1e300  # bounds of tendons from there on are none


def leaves_limits(config: RunConfig, model: Model, equipped: Equipped | None) -> bool:
    """True if the run's integrator leaves steps in which limits act to the default."""
    if not INTEGRATORS[config.integrator].kernel:
        return False
    bounds = [model.lower, model.upper]
    bounds += [] if equipped is None else [equipped.arrays.tendon_lower, equipped.arrays.tendon_upper]
    return any(bool(np.any(np.abs(bound) < _NONE)) for bound in bounds) or bool(np.any(model.dof_turn >= 0))
