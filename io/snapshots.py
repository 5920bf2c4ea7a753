"""Converts the whole state of a run between a Simulation's snapshot and its form in files, /final and /checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from artsim.io.reader import Recording, read_count, read_whole, reading
from artsim.io.schema import COMPLETE, INTERRUPTED, STATE
from artsim.sim.foundation.errors import ModelError
from artsim.sim.run_data.run_records import ACCOUNT_ENTRIES

Array = npt.NDArray[Any]

# the parts of schema's `extremes`, with their sizes
_EXTREMES = {
    "coupling_error": 1,
    "tendon_error": 1,
    "worst_residual": 1,
    "energy": 2,
    "contact_extremes": 4,
    "joint_gap": 2,
    "watch": 5,
    "yielded": 6,
    "loop_gap": 2,
    "account": ACCOUNT_ENTRIES,
    "held": 5,
    "opened": 6,
}


def stored(snapshot: Mapping[str, Array], dt: float, *, touching: bool) -> dict[str, Array]:
    """A snapshot as variables of schema.STATE, without those the robot lacks. `touching`: contacts are possible."""
    extremes = [snapshot.get(name, np.full(size, np.nan)) for name, size in _EXTREMES.items()]
    values = {name: np.asarray(snapshot[name]) for name in STATE if name in snapshot}
    values |= {
        "still": np.asarray(snapshot["still"][0], np.int64),
        "last_input": snapshot["command"],
        "extremes": np.concatenate(extremes),
        "time": np.asarray(int(snapshot["step"]) * dt),
    }
    if not touching:
        del values["contact"]
    return {name: np.asarray(values[name]) for name in STATE if name in values and _is_there(name, values[name])}


def _is_there(name: str, values: Array) -> bool:
    """True if the robot has this variable; the number of contacts may be zero."""
    return name == "contact" or values.size > 0


def restored(state: Mapping[str, Array], fresh: Mapping[str, Array]) -> dict[str, Array]:
    """A stored state in the form of Simulation.restore; `fresh`: a snapshot of the same run before its first step."""
    values = {name: state[name] if name in state else np.asarray(fresh[name]) for name in fresh}
    values["still"] = np.array([state["still"]], float)
    values["command"] = state.get("last_input", fresh["command"])
    if np.shape(values["command"]) != np.shape(fresh["command"]):  # of a file with fewer inputs: it wakes the robot
        values["command"] = fresh["command"]
    start = 0
    for name, size in _EXTREMES.items():
        if name in fresh:
            stored = np.asarray(state["extremes"])[start : start + size]
            values[name] = stored if len(stored) == size else np.asarray(fresh[name])
        start += size
    return values


def final_state(recording: Recording) -> dict[str, Array] | None:
    """The state after the last step; None if the run did not end properly."""
    state = recording.final
    ended = recording.status in (COMPLETE, INTERRUPTED) and bool(np.isfinite(state["time"]))
    return state if ended and "extremes" in state else None


def checkpoints(recording: Recording) -> Array:
    """The steps of the checkpoints in the file, up to the last recorded row."""
    with reading(recording.path):
        group = recording.group("checkpoint")
        if group is None:
            return np.zeros(0, np.int64)
        steps: Array = read_whole(recording.path, group["step"])[: read_count(recording.path, group["n_valid"])]
    return steps[-(-steps // recording.every) <= recording.n_valid]


def checkpoint_state(recording: Recording, index: int) -> dict[str, Array]:
    """The state of the checkpoint at `index`. Raises ModelError if its contacts are incomplete."""
    with reading(recording.path):
        group = recording.group("checkpoint")
        assert group is not None
        state = {name: np.asarray(group[name][index]) for name in STATE if name in group and name != "contact"}
        if "contact" in group:
            ends = np.cumsum(group["contact_count"][: index + 1])
            count = int(group["contact_count"][index])
            state["contact"] = group["contact"][int(ends[-1]) - count : int(ends[-1])]
            if len(state["contact"]) != count or count < 0:
                raise ModelError(f"{recording.path}: /checkpoint/contact_count does not fit the contacts in the file")
    return state
