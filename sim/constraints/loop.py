"""Loop joints as rows: two points that coincide (connect), two frames that coincide (weld)."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def loop_rows(m: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any) -> None:
    """The rows of all loops, kinematics in w being up to date."""


@njit
def hold_loops(m: Any, v: Any, w: Any, r: Any, f: Any, e: Any, x: Any, a: Any) -> None:
    """The rows on accelerations, for RK4: J v̇ + J̇ v + 2 a Ċ + a² C = 0."""
