"""Tendons as rows: limits, friction, armature, equalities."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def tendon_rows(m: Any, v: Any, w: Any, i: Any, r: Any, e: Any, x: Any) -> None:
    """The rows of all tendons; lengths and moments in x are up to date."""


@njit
def mark_tendon_violations(m: Any, i: Any, e: Any, x: Any, f: Any) -> bool:
    """Mark limits that the velocities f.velocity would break and that have no row yet; True when there are any."""
    return False


@njit
def needs_rows(e: Any) -> bool:
    """True when every step has rows: loops, tendon friction, armature or equalities."""
    found: bool = e.loop_kind.shape[0] > 0
    return found


@njit
def hold_tendons(m: Any, v: Any, w: Any, r: Any, e: Any, x: Any, a: Any) -> None:
    """The rows of tendon equalities and armature on accelerations, for RK4."""
