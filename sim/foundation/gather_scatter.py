"""Copies table rows, one per robot, into lanes and back: transposed in registers, 8 entries of 8 robots at a time."""

from __future__ import annotations

from typing import Any

from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import (
    blocks_from_lanes,
    blocks_to_lanes,
    chosen_from_lanes,
    lane_count,
    lane_get,
    lane_set,
    stream,
)


@njit
def gather(rows: Any, first: Any, out: Any) -> None:
    """Gather rows first, first + 1, … of a table (N, n) into a lane vector (n,)."""
    n = out.shape[0]
    start = first * n
    done = blocks_to_lanes(rows, start, n, out, n)
    for lane in range(lane_count(out)):
        for i in range(done, n):
            lane_set(out, i, lane, lane_get(rows, start + lane * n + i, 0))


@njit
def scatter(values: Any, out: Any, start: Any, stride: Any) -> None:
    """Scatter a lane array, flat, to the places start, start + stride, … of a flat table, one per lane."""
    count = values.size
    done = blocks_from_lanes(values, count, out, start, stride)
    for lane in range(lane_count(values)):
        for i in range(done, count):
            lane_set(out, start + lane * stride + i, 0, lane_get(values, i, lane))


@njit
def scatter_row(values: Any, out: Any, first: Any, stage: Any) -> None:
    """Scatter a lane array that is the whole row of a table to rows first, first + 1, …

    `stage` collects the rows of a pack side by side as in the table, so that they are written in one stream: without it
    gravity compensation takes a quarter longer.
    """
    lanes = lane_count(values)
    if lanes == 1:
        scatter(values, out, first * values.size, values.size)
    else:
        scatter(values, stage, 0, values.size)
        stream(stage, lanes * values.size, out, first * values.size)


@njit
def scatter_chosen(values: Any, entries: Any, out: Any, first: Any, stage: Any) -> None:
    """Scatter entries of a lane array, by flat index (negative: 0), to the rows first, first + 1, … of a table.

    Goes through `stage`, as in `scatter_row`.
    """
    n = entries.shape[0]
    lanes = lane_count(values)
    if lanes == 1:
        for i in range(n):
            lane_set(out, first * n + i, 0, lane_get(values, entries[i], 0) if entries[i] >= 0 else 0.0)
        return
    done = chosen_from_lanes(values, entries, stage, 0, n)
    for lane in range(lanes):
        for i in range(done, n):
            lane_set(stage, lane * n + i, 0, lane_get(values, entries[i], lane) if entries[i] >= 0 else 0.0)
    stream(stage, lanes * n, out, first * n)
