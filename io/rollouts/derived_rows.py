"""Derivatives of the steps of a rollout: of each sample, from each recorded row to the state after one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.errors import MemoryShortageError, StoppedError
from artsim.sim.foundation.memory import memory_left
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.copied_packs import CopiedPacks
from artsim.sim.runs.fleet import Fleet
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import row_count
from artsim.sim.runs.step_derivatives import IMPLICIT, STEP, StepDerivatives, step_derivatives


class RolloutDerivatives(NamedTuple):
    """Derivatives of the step that each sample takes from each of its rows; StepDerivatives describes them. NaN from
    the step before which a sample ends or stops, and of one in which it stops."""

    A: Real  # (samples, rows, nx, nx)
    B: Real  # (samples, rows, nx, nu)
    side: Array  # (samples, rows, nx + nu) 0, or 1 and -1 of columns with a kink: the side on which the slope is
    error: Real  # (samples, rows, nx + nu) of each column
    implicit: Array  # (samples, rows) True where found by the implicit function theorem, False: by differences
    states: tuple[str, ...]
    inputs: tuple[str, ...]


class DerivedRows:
    """Takes the derivatives of the samples of a fleet, row by row."""

    def __init__(self, plan: Plan, inputs: Sequence[str], samples: int) -> None:
        """`inputs`: as of step_derivatives."""
        self._copies, self._inputs, self._samples = CopiedPacks(plan), inputs, samples
        self._rows, self._every = row_count(plan), plan.config.every
        self.found: RolloutDerivatives | None = None  # None before the first

    def take(self, fleet: Fleet, row: int, samples: Array) -> None:
        """Find those of the steps that some samples are about to take. Raises UsageError, MemoryShortageError."""
        for sample in samples.tolist():
            self._copies.begin_in(fleet, sample)
            try:
                own = step_derivatives(self._copies, self._inputs, (), reduced=False, step=STEP)
            except StoppedError:  # the sample's own step will tell
                continue
            if self.found is None:
                self.found = self._empty(own)
            found = self.found
            found.A[sample, row], found.B[sample, row] = own.A, own.B
            found.side[sample, row], found.error[sample, row] = own.side, own.error
            found.implicit[sample, row] = own.method == IMPLICIT

    def until(self, ends: Array) -> RolloutDerivatives | None:
        """Those of the steps before `ends` (samples, …), at which samples stopped or ended, -1 if they did not; None if
        there are none."""
        found = self.found
        if found is not None:
            for sample in np.flatnonzero(ends[: self._samples] >= 0):
                late = slice(-(-int(ends[sample]) // self._every), None)
                for values in (found.A, found.B, found.error):
                    values[sample, late] = np.nan
                found.side[sample, late], found.implicit[sample, late] = 0, False
        return found

    def _empty(self, like: StepDerivatives) -> RolloutDerivatives:
        """Room for all samples and rows."""
        shape, (nx, nu) = (self._samples, self._rows), like.B.shape
        need = 8 * self._samples * self._rows * (nx + nu) * (nx + 2)
        left, what = memory_left()
        if need > left:
            told = f"derivatives of {self._samples} samples need {need / 1e6:.0f} MB, {what} {left / 1e6:.0f} MB"
            raise MemoryShortageError(f"not enough memory: {told}; try a larger `every`")
        A, B, error = (np.full((*shape, *size), np.nan) for size in ((nx, nx), (nx, nu), (nx + nu,)))
        side, implicit = np.zeros((*shape, nx + nu), np.int8), np.zeros(shape, bool)
        return RolloutDerivatives(A, B, side, error, implicit, like.states, like.inputs)
