"""Transmissions: an actuator's length, velocity and moment arms."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def transmissions(m: Any, q: Any, v: Any, w: Any, e: Any, x: Any) -> None:
    """x.actuator_length, actuator_velocity (na,) and actuator_moment (entries,); tendons are up to date."""
