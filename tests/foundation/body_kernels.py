"""A kernel that turns rows of bodies to strips and back, and a run of it that prints what came out (test_widths.py)."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.body_strips import gather, save, scatter
from artsim.sim.foundation.jit import Entry, bind, njit
from artsim.sim.foundation.records import SEATS, STRIPS, WIDTH, Ints2, Reals1, Reals2


class Bodies(NamedTuple):
    """Rows of bodies."""

    moving: Reals2  # (4 WIDTH, SEATS)
    sides: Ints2  # (WIDTH, 3) nothing; a body whose numbers are taken; one to which they are given
    sums: Reals1  # (WIDTH,) of the numbers of the former


@njit
def turn(b: Bodies) -> None:
    """Give the numbers of some bodies to others."""
    y = gather(b.moving, b.sides, 0, 1, None)
    total = y[0]
    for n in range(1, len(y)):
        total = total + y[n]
    save(b.sums, 0, None, total)
    scatter(b.moving, b.sides, 0, 2, None, y)


def main() -> None:
    """Turn random numbers; print bodies, their numbers before and after, and the sums."""
    rng = np.random.default_rng(WIDTH)
    moving = np.zeros((4 * WIDTH, SEATS))
    moving[:, :STRIPS] = rng.normal(size=(4 * WIDTH, STRIPS))
    sides = np.zeros((WIDTH, 3), np.int64)
    sides[:, 1:] = rng.permutation(4 * WIDTH)[: 2 * WIDTH].reshape(WIDTH, 2)
    bodies, before = Bodies(moving, sides, np.zeros(WIDTH)), moving.tolist()
    bind(Entry("turn", __name__, (Bodies,)), 1, bodies)()
    print(json.dumps([sides.tolist(), before, moving.tolist(), bodies.sums.tolist()]))
