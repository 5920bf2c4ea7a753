"""Tendons and actuators as sums of lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.lines import CONTACT, Lines

TENDON, ACTUATOR = CONTACT + 1, CONTACT + 2  # sources of rows beside the engine's own


class SummedLines(NamedTuple):
    """n tendons or actuators as sums of lines."""

    lines: Lines  # those that they have beside the joints'
    line: Array  # (n, most) -1: none
    factor: Real  # (n, most)
    length: Real  # (n,) [m or rad]


def summed_lines(lines: Lines, sums: list[list[tuple[int, float]]], length: Real) -> SummedLines:
    """Sums of lines, each given by numbers of lines and their factors."""
    most = max([1, *map(len, sums)])
    line, factor = np.full((len(sums), most), -1), np.zeros((len(sums), most))
    for n, own in enumerate(sums):
        for k, (number, share) in enumerate(own):
            line[n, k], factor[n, k] = number, share
    return SummedLines(lines, line, factor, length)


def summed(line: Array, factor: Real, values: Real) -> Real:
    """Sums of `values` of lines (lines,) by rows of numbers and factors (n, most)."""
    found: Real = np.sum(factor * np.where(line >= 0, values[line], 0.0), axis=1)
    return found
