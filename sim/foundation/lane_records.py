"""Records copied between a pack and a single robot, or blended between two packs: all fields in which lanes differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import lane_get, lane_set, pack
from artsim.sim.foundation.records import Array, kinds


def take_lane(lanes: Any, lane: int, own: Any) -> None:
    """Copy one lane of a pack's record to that of a single robot: the fields of T that both have."""
    for name in _fields(lanes, own):
        getattr(own, name)[...] = getattr(lanes, name)


def _fields(lanes: Any, other: Any) -> list[str]:
    """The names of the fields of T of a pack's record that another record has, too."""
    return [name for name, kind in kinds(type(lanes)).items() if kind.lanes and name in other._fields]


@njit
def _take(values: Array, lane: int, out: Array) -> None:
    for n in range(values.size):
        lane_set(out, n, 0, lane_get(values, n, lane))


def _for_each_field(head: str, line: str, lanes: Any, other: Any) -> Callable[..., None]:
    """A function of the parameters `head` that has one `line` for each field of T of both record types."""
    names = [name for name, (array, _) in lanes.fields.items() if array.dtype == pack and name in other.fields]
    body = "".join(f"\n    {line.format(name)}" for name in names) or "\n    pass"
    made: dict[str, Any] = {}
    exec(f"def copy({head}):{body}", globals(), made)  # since numba has no loop over fields
    function: Callable[..., None] = made["copy"]
    return function


@overload(take_lane)
def _take_lane(lanes, lane, own):  # type: ignore[no-untyped-def]  # numba compares signatures
    return _for_each_field("lanes, lane, own", "_take(lanes.{0}, lane, own.{0})", lanes, own)
