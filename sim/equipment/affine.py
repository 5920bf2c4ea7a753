"""An actuator's affine force, constant - stiffness · length - damping · velocity, and bounds of forces, in T: of floats
for one robot, of packs for 8 at once.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.equipment.actuation import foreseen
from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import absolute, real, where_greater, zero_like
from artsim.sim.foundation.scalars import largest, least

_SLACK = 1e-12  # of a force, by which it may be beyond a bound


@inlined
def force_over_step(
    constant: Any, stiffness: Any, damping: Any, length: Any, share: Any, before: Any, rate: Any, h: Any
) -> Any:
    """The force as a step feels it in which the length changes at `rate`, and at `before` before; without bounds."""
    return constant - stiffness * (length + h * foreseen(share, before, rate)) - damping * rate


@inlined
def add_to_joint(joint_data: Any, k: Any, gear: Any, constant: Any, stiffness: Any, damping: Any) -> None:
    """What such a force, whose length is gear times dof k's coordinate, does to that dof: added to joint_data.offset,
    stiffness and damping (nv,)."""
    joint_data.stiffness[k] += gear * gear * stiffness
    joint_data.damping[k] += gear * gear * damping
    joint_data.offset[k] += gear * constant


@inlined
def bounded(value: Any, lower: Any, upper: Any) -> Any:
    """A T within two floats."""
    low = real(lower, value)
    return least(where_greater(low, value, low, value), real(upper, value))


@inlined
def is_beyond(force: Any, lower: Any, upper: Any) -> Any:
    """1 where a force is out of two floats by more than rounding, else 0."""
    zero = zero_like(force)
    one = zero + 1.0
    slack = _SLACK * absolute(force)
    below = where_greater(lower - slack, force, one, zero)
    return largest(below, where_greater(force, upper + slack, one, zero))
