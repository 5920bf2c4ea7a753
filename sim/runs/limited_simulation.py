"""A run of an integrator without one-sided rows, whose steps are the default's where a limit acts."""

from __future__ import annotations

import numpy as np

from artsim.sim.run_data.run_records import (
    FIRST_ROW,
    INEQUALITY,
    LAG,
    ROWS_RECORDED,
    RUNNING,
    STEPS_TO_TAKE,
    STOP_REASON,
)
from artsim.sim.runs.simulate import Simulation


class LimitedSimulation(Simulation):
    """A run in progress as in Simulation. A step that begins or would end beyond a limit, which the integrator leaves
    undone, is taken by the default instead; what follows is the integrator's again."""

    def _connect(self) -> None:
        super()._connect()
        self._own_steps, self._call = self._call, self._take_steps

    def _take_steps(self) -> None:
        """Take the steps of the block, as one call of the kernel does."""
        plan, counters, integrator = self._block.plan, self._step.counters, self._step.integrator
        asked, end, own = np.array(plan), self.step + int(plan[STEPS_TO_TAKE]), np.array(integrator[:2])
        self._own_steps()
        while counters[STOP_REASON] == INEQUALITY:
            integrator[:2] = 0
            self.steps_by_default += 1
            self._go_on(1)
            integrator[:2] = own
            self._step.account[LAG] = 0.0
            if counters[STOP_REASON] == RUNNING and self.step < end:
                self._go_on(end - self.step)
        plan[:] = asked

    def _go_on(self, steps: int) -> None:
        """Take further steps, whose rows follow those that are recorded."""
        plan, counters = self._block.plan, self._step.counters
        plan[FIRST_ROW], plan[STEPS_TO_TAKE] = counters[ROWS_RECORDED], steps
        counters[STOP_REASON] = RUNNING
        self._own_steps()
