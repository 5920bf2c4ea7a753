"""A record and its entries for test_jit.py. Run as a script it prints, as JSON, what a process saw that calls one."""

from __future__ import annotations

import json
import sys
from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.jit import Entry, bind
from artsim.sim.foundation.records import ConstReals1, Ints1, Lanes1, Reals1, allocate


class Table(NamedTuple):
    """Angles in, sines and cosines out."""

    factor: ConstReals1  # (1,)
    angle: Lanes1  # (n,)
    sine: Lanes1  # (n,)
    cosine: Lanes1  # (n,)
    plain: Reals1  # (1,)


class Called(NamedTuple):
    """What calls an entry compiled apart."""

    pointers: Ints1  # (2,)


class Inner(NamedTuple):
    """A bundle."""

    table: Table
    missing: Table | None


class Outer(NamedTuple):
    """A bundle that holds another."""

    missing: Table | None
    inner: Inner
    table: Table


def entry(name: str, module: str = "small_kernels") -> Entry:
    """An entry of small_kernels.py, under the module name by which this process finds it."""
    return Entry(name, module, (Table,))


def make_table(count: int, width: int) -> Table:
    """`count` elements; the factor is 1."""
    shapes = {"factor": (1,), "plain": (1,), **dict.fromkeys(("angle", "sine", "cosine"), (count,))}
    made: Table = allocate(Table, shapes, width)
    factor = np.ones(1)
    factor.setflags(write=False)
    return made._replace(factor=factor)


def main() -> None:
    table = make_table(3, 1)
    table.angle[:] = 0.0, 0.5, 2.0
    for _ in range(2):
        bind(entry("sines"), 1, table)()
    print(json.dumps({"sine": list(table.sine), "numba": "numba" in sys.modules}))


if __name__ == "__main__":
    main()
