"""How long motors of a run give their largest force, counted in the recorded rows as they come."""

from __future__ import annotations

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.runs.plan import Plan

AT_LIMIT = 1.0 - 1e-9  # share of the largest force from which it counts as reached
MOTOR = ("tau_applied", "tau_drive")  # of inputs and controllers, of drives and actuators


def largest_forces(plan: Plan) -> Array:
    """The largest force of each dof's motor (nv,) [N m or N]: the lower of effort and --drive-limit, inf without."""
    return np.minimum(plan.inputs["drive_limit"], plan.robot.model.effort)


class EffortTally:
    """Called with the rows of every block of a run."""

    def __init__(self, plan: Plan) -> None:
        limits = largest_forces(plan)
        self._names, self._limits = plan.robot.labels.dofs, np.where(limits > 0.0, limits, np.inf)
        self._row_time = plan.dt * plan.config.every
        self._rows = np.zeros(len(self._limits), np.int64)

    def __call__(self, rows: dict[str, Array], tables: object) -> None:
        """Count the rows of a block."""
        given = [rows[name] for name in MOTOR if name in rows]
        if given and np.isfinite(self._limits).any():
            self._rows += (np.abs(sum(given)) >= AT_LIMIT * self._limits).sum(axis=0)

    @property
    def at_limit(self) -> dict[str, float]:
        """The time for which each dof's motor gave its largest force [s], for those that did, the longest first."""
        reached = sorted(np.flatnonzero(self._rows), key=lambda k: -self._rows[k])
        return {self._names[k]: float(self._rows[k] * self._row_time) for k in reached}
