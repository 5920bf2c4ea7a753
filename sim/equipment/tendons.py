"""Tendons: lengths, velocities, moment arms."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def tendon_paths(m: Any, q: Any, v: Any, w: Any, e: Any, x: Any) -> None:
    """x.tendon_length, tendon_velocity (nt,) and tendon_moment (entries,) at the kinematics in w."""
