"""The affine force of an actuator, constant - stiffness · length - damping · velocity, and the bounds of forces.

The functions are generic in T: floats for one robot, lanes for packs of 8.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.equipment.actuation import foreseen
from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import absolute, real, where_greater, zero_like
from artsim.sim.foundation.scalars import largest, least

SLACK = 1e-12  # relative: excess over a bound that counts as rounding


@inlined
def force_over_step(
    constant: Any, stiffness: Any, damping: Any, length: Any, share: Any, before: Any, rate: Any, h: Any
) -> Any:
    """Unbounded force over a step in which the length changes at `rate`, and at `before` before it."""
    return constant - stiffness * (length + h * foreseen(share, before, rate)) - damping * rate


@inlined
def add_to_joint(joint_data: Any, k: Any, gear: Any, constant: Any, stiffness: Any, damping: Any) -> None:
    """Add a force whose length is gear times dof k's coordinate to joint_data.offset, stiffness and damping (nv,)."""
    joint_data.stiffness[k] += gear * gear * stiffness
    joint_data.damping[k] += gear * gear * damping
    joint_data.offset[k] += gear * constant


@inlined
def bounded(value: Any, lower: Any, upper: Any) -> Any:
    """Clamp a T between two floats."""
    low = real(lower, value)
    return least(where_greater(low, value, low, value), real(upper, value))


@inlined
def is_beyond(force: Any, lower: Any, upper: Any) -> Any:
    """1 where a force exceeds its bounds, two floats, by more than rounding, else 0."""
    zero = zero_like(force)
    one = zero + 1.0
    slack = SLACK * absolute(force)
    below = where_greater(lower - slack, force, one, zero)
    return largest(below, where_greater(force, upper + slack, one, zero))
