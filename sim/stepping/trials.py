"""Records by which a pack takes one step from many starts, in groups of as many as it has lanes, in one call.

A trial is the step of a copy of a robot from another state, with other inputs or properties. Arrays of the pack are set
from tables before each group's step and kept in tables after it, each by an entry of its own. No numba here.
"""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.records import Ints1, Ints2, Reals2

GROUPS, BEFORE = range(2)  # entries of Trials.number: groups of starts; entries of `before` that are run


class Trials(NamedTuple):
    """The groups of trials of a pack, and the entries that they run."""

    number: Ints1  # (2,) GROUPS, BEFORE
    group: Ints1  # (1,) the group whose step is taken: row of the tables
    before: Ints2  # (k, 2) entries that set arrays of the pack
    take: Ints2  # (1, 2) the pack's kernel
    after: Ints2  # (m, 2) entries that keep arrays of the pack
    counters: Ints1  # Step.counters of the pack


class Copied(NamedTuple):
    """An array of a pack and its table, whose rows are those of groups, or one row for all of them."""

    group: Ints1  # (1,) as in Trials
    source: Reals2  # (groups or 1, entries)
    target: Reals2  # (groups or 1, entries)


class CopiedInts(NamedTuple):
    """Copied, of integers."""

    group: Ints1
    source: Ints2
    target: Ints2


_MODULE = "artsim.sim.stepping.take_trials"
TAKE_TRIALS = Entry("take_trials", _MODULE, (Trials,))
COPY_ROW = Entry("copy_row", _MODULE, (Copied,))
COPY_INTS = Entry("copy_row", _MODULE, (CopiedInts,), "_of_ints")
