"""Rows of tables, one robot's each, into lanes and back: transposed in registers, 8 entries of 8 robots at a time."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit
from artsim.sim.lanes import blocks_from_lanes, blocks_to_lanes, lane_count, lane_get, lane_set


@njit
def gather(rows: Any, first: Any, out: Any) -> None:
    """Rows first, first + 1, … of a table (N, n) into a lane vector (n,)."""
    n = out.shape[0]
    start = first * n
    done = blocks_to_lanes(rows, start, n, out, n)
    for lane in range(lane_count(out)):
        for i in range(done, n):
            lane_set(out, i, lane, lane_get(rows, start + lane * n + i, 0))


@njit
def scatter(values: Any, out: Any, start: Any, stride: Any) -> None:
    """A lane array, flat, to the places start, start + stride, … of a flat table, one for each lane."""
    count = values.size
    done = blocks_from_lanes(values, count, out, start, stride)
    for lane in range(lane_count(values)):
        for i in range(done, count):
            lane_set(out, start + lane * stride + i, 0, lane_get(values, i, lane))


@njit
def scatter_row(values: Any, out: Any, first: Any) -> None:
    """A lane array that is the whole row of a table, to rows first, first + 1, …"""
    scatter(values, out, first * values.size, values.size)
