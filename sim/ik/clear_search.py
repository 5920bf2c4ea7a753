"""Searches for configurations that are clear, such as those without shapes inside each other: others are tried."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.ik.search_records import REACHED
from artsim.sim.ik.solver import PoseSearch

ROUNDS = 32  # other starts of a row whose configuration is not clear


class Clear(Protocol):
    """A judge of configurations."""

    def depths(self, q: Real) -> Real:
        """By how much each configuration (N, nq) is not clear (N,) [m]; 0: it is."""


def find_clear(
    search: PoseSearch,
    clear: Clear,
    wanted: tuple[Real, Real],
    start: Real,
    threads: int,
    first: int,
) -> dict[str, Array]:
    """The results of a search whose reached rows are clear where one of ROUNDS further starts leads to such a
    configuration, and their `depth` (N,) [m]. `wanted`, `start`, `first`: as PoseSearch.solve takes them."""
    found = search.solve(*wanted, start, threads, first)
    found["depth"] = clear.depths(found["qpos"])
    for number in range(ROUNDS):
        rows = np.flatnonzero((found["status"] == REACHED) & (found["depth"] > 0))
        if not len(rows):
            break
        own = start[rows] if len(start) > 1 else start
        others = search.other_starts(own, first + rows, number)
        again = search.solve(wanted[0][rows], wanted[1][rows], others, threads, first)
        search.unwind(again["qpos"], own)
        again["depth"] = clear.depths(again["qpos"])
        better = (again["status"] == REACHED) & (again["depth"] < found["depth"][rows])
        for name in ("iterations", "attempts"):
            found[name][rows] += again.pop(name)
        for name, values in again.items():
            found[name][rows[better]] = values[better]
    return found
