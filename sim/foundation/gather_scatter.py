"""Copies table rows, one per robot, into lanes and back: transposed in registers, 8 entries of 8 robots at a time."""

from __future__ import annotations

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
from artsim.sim.foundation.records import Array, Ints1, Lanes1, Lanes2, Reals1, Reals3


@njit
def gather(rows: Array, first: int, out: Lanes1) -> None:
    """Gather rows first, first + 1, … of a table (N, n) into a lane vector (n,)."""
    n = out.shape[0]
    start = first * n
    done = blocks_to_lanes(rows, start, n, out, n)
    for lane in range(lane_count(out)):
        for i in range(done, n):
            lane_set(out, i, lane, lane_get(rows, start + lane * n + i, 0))


@njit
def scatter(values: Array, out: Array, start: int, stride: int) -> None:
    """Scatter a lane array, flat, to the places start, start + stride, … of a flat table, one per lane."""
    count = values.size
    done = blocks_from_lanes(values, count, out, start, stride)
    for lane in range(lane_count(values)):
        for i in range(done, count):
            lane_set(out, start + lane * stride + i, 0, lane_get(values, i, lane))


@njit
def scatter_row(values: Array, out: Array, first: int, stage: Reals1) -> None:
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
def scatter_chosen(values: Lanes2, entries: Ints1, out: Reals3, first: int, stage: Reals1) -> None:
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
