"""Tables of numbers as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artsim.sim.foundation.records import Array

_ROUNDING = 1e-15  # of the largest entry of a matrix: smaller ones are shown as 0


def matrix_lines(rows: Sequence[str], columns: Sequence[str], values: Array) -> list[str]:
    """A matrix with the names of its rows and columns."""
    values = np.where(np.abs(values) < _ROUNDING * np.abs(values).max(initial=0.0), 0.0, values)
    cells = [("", *columns)]
    cells += [(label, *(f"{x:.6g}" for x in row)) for label, row in zip(rows, values.tolist(), strict=True)]
    return aligned(cells)


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Rows of a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(["", row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in cells]
