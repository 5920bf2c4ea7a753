"""The entries of trials: a pack takes the same step from many starts, without a return to Python."""

from __future__ import annotations

from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.run_data.run_records import RUNNING, STOP_REASON
from artsim.sim.stepping.trials import BEFORE, GROUPS, Copied, CopiedInts, Trials


@njit
def take_trials(trials: Trials) -> None:
    """Take the steps of all groups, or up to one that lacks room for its contacts, with which trials.group ends."""
    for group in range(trials.group[0], trials.number[GROUPS]):
        trials.group[0] = group
        for k in range(trials.number[BEFORE]):
            run_entry(trials.before[k])
        run_entry(trials.take[0])
        for k in range(trials.after.shape[0]):
            run_entry(trials.after[k])
        if trials.counters[STOP_REASON] != RUNNING:
            return


@njit
def copy_row(copied: Copied | CopiedInts) -> None:
    """Copy the group's row of the source to that of the target."""
    source, target = copied.source, copied.target
    a, b = copied.group[0] % source.shape[0], copied.group[0] % target.shape[0]
    for n in range(source.shape[1]):
        target[b, n] = source[a, n]
