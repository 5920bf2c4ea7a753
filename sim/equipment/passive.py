"""Passive forces beyond linear springs and dampers: gravity compensation, fluid, balls, polynomials."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def passive_extra(m: Any, q: Any, v: Any, w: Any, e: Any, x: Any) -> None:
    """x.passive (nv,) at the kinematics in w; all explicit."""
