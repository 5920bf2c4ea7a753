"""How long motors of a run give their largest force, counted in the recorded rows as they come."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.runs.plan import Plan

AT_LIMIT = 1.0 - 1e-9  # share of the largest force from which it counts as reached
MOTOR = ("tau_applied", "tau_drive")  # of inputs and controllers, of drives and actuators


def largest_forces(plan: Plan) -> Array:
    """The largest force of each dof's motor (nv,) [N m or N]: the lower of effort and --drive-limit, inf without."""
    return np.minimum(plan.inputs["drive_limit"], plan.robot.model.effort)


def counted_forces(limit: Array) -> Array:
    """Largest forces from which a motor counts as at its limit: never one that has no force to give."""
    return np.where(limit > 0.0, AT_LIMIT * limit, np.inf)


def at_largest(plan: Plan, rows: Mapping[str, Array]) -> Array | None:
    """True (…, nv) where the motors of recorded rows (…, nv) by variable give their largest force; None where forces
    are not recorded, or none has a limit."""
    counted = counted_forces(largest_forces(plan))
    given = [rows[name] for name in MOTOR if name in rows]
    return np.abs(sum(given)) >= counted if given and np.isfinite(counted).any() else None


class EffortTally:
    """Called with the rows of every block of a run."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._names = plan, plan.robot.labels.dofs
        self._row_time = plan.dt * plan.config.every
        self._rows = np.zeros(len(self._names), np.int64)

    def __call__(self, rows: dict[str, Array], tables: object) -> None:
        """Count the rows of a block."""
        if (reached := at_largest(self._plan, rows)) is not None:
            self._rows += reached.sum(axis=0)

    @property
    def at_limit(self) -> dict[str, float]:
        """The time for which each dof's motor gave its largest force [s], for those that did, the longest first."""
        reached = sorted(np.flatnonzero(self._rows), key=lambda k: -self._rows[k])
        return {self._names[k]: float(self._rows[k] * self._row_time) for k in reached}
