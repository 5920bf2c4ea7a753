"""The affine force of an actuator, constant - stiffness · length - damping · velocity, and the bounds of forces.

The functions are generic in T: floats for one robot, lanes for packs of 8.
"""

from __future__ import annotations

from artsim.sim.equipment.actuation import foreseen
from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import real, where_greater, zero_like
from artsim.sim.foundation.records import Real, Vec3, Vec4
from artsim.sim.foundation.scalars import divisor, largest, least


@inlined
def force_over_step(
    constant: Real, stiffness: Real, damping: Real, length: Real, share: Real, before: Real, rate: Real, h: float
) -> Real:
    """Unbounded force over a step in which the length changes at `rate`, and at `before` before it."""
    return constant - stiffness * (length + h * foreseen(share, before, rate)) - damping * rate


@inlined
def share_of_row(h: float, stiffness: Real, mobility: Real) -> Real:
    """The share (actuation.py) of an actuator that is a row: 1 / max(1, h² K J M⁻¹ Jᵀ), of the M in the file's pose."""
    one = real(1.0, stiffness)
    return one / largest(one, h * h * stiffness * mobility)


@inlined
def row_of_force(h: float, affine: Vec3, length: Real, share: Real, velocity: Real) -> Vec4:
    """(error, rate, bias, cfm) of the row of an affine force (constraints/actuator_rows.py), affine = (constant,
    stiffness, damping); the bias without the moment arms' drift. All are 0 where stiffness and damping are 0,
    since gains are accelerations of dofs without mobility.
    """
    constant, stiffness, damping = affine
    zero = zero_like(stiffness)
    total = h * (1.0 - 0.75 * share) * stiffness + damping
    force = constant - stiffness * (length + h * foreseen(share, velocity, zero))
    acting, springy = divisor(total), divisor(stiffness)
    error = where_greater(stiffness, zero, -force / springy, zero)
    rate = where_greater(stiffness, zero, stiffness / acting, zero)
    cfm = where_greater(total, zero, 1.0 / (h * acting), zero)
    return error, rate, where_greater(total, zero, -force / acting, zero), cfm


@inlined
def bounded(value: Real, lower: float, upper: float) -> Real:
    """Clamp a T between two floats."""
    low = real(lower, value)
    return least(where_greater(low, value, low, value), real(upper, value))
