"""Inputs between the rows of a control file: held, or values of their own for every step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artsim.sim.foundation.budget import refuse_beyond_memory
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.settings import HOLD, LINEAR, PCHIP

IntArray = npt.NDArray[np.int64]

_COPIES = 3  # of the rows: made here, kept by Controls, handed to the kernels


class Interpolation(NamedTuple):
    """The course of inputs from row to row (hold, linear, cubic, pchip), and the number of steps of the run."""

    kind: str = HOLD
    steps: int = 0

    def steps_between(self, start: IntArray, width: int) -> IntArray:
        """The steps (rows,) with inputs of their own, from that of the first row of a file to that of the last.

        `start` (rows,): the steps at which the file's rows begin; `width`: the number of inputs. Raises
        MemoryShortageError for more rows than a model may take.
        """
        last = max(int(start[0]), min(int(start[-1]), self.steps - 1))
        count = last - int(start[0]) + 1
        refuse_beyond_memory(8.0 * _COPIES * width * count, f"inputs of their own for {count} steps (--interpolate)")
        return np.arange(int(start[0]), last + 1, dtype=np.int64)

    def values(self, time: Real, rows: Real, at: Real) -> Real:
        """The inputs (m, n) at the times `at` (m,) from rows (rows, n) at increasing times (rows,); held beyond the
        ends.

        linear: straight lines. cubic: the spline with continuous second derivatives whose third derivative is
        continuous at the second and the last but one row (not-a-knot); two rows: a line, three: a parabola.
        pchip: cubics with a continuous slope that is 0 at every extremum of the rows, so that values keep between
        those of their two rows (Fritsch and Butland 1984).
        """
        at = np.clip(at, time[0], time[-1])
        if len(time) == 1:
            return np.repeat(rows, len(at), axis=0)
        if self.kind == LINEAR:
            return np.stack([np.interp(at, time, column) for column in rows.T], axis=1)
        from scipy.interpolate import CubicSpline, PchipInterpolator

        curve = PchipInterpolator if self.kind == PCHIP else CubicSpline
        found: Real = curve(time, rows)(at)
        return found


HELD = Interpolation()
