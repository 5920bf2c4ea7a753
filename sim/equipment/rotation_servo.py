"""Rotation servos: three forces of one actuator, each along an axis of the body that it turns (MuJoCo 4.0's `so3`).

force = k_p e - k_v ω with e = log(q⁻¹ t), the rotation vector from the orientation q to the target t, in body axes.
Each force is affine in a length of its own, a component of log(q), whose setpoint lies e from it, as with drives of
ball joints (actuation.py), and is therefore implicit in the default step.

The norm of the three forces is bounded. At its bound a servo acts like a weaker servo, with k_p and k_v times the scale
at which the norm equals the bound. The servo remains implicit and pulls in the direction of the unbounded servo at the
velocities found; for explicit forces this is the force clipped to its bound. The scale is a root: with u = 1 / scale,
1 / norm is affine in u for a body of equal inertia about all axes, and nearly so for others, so that a few steps of the
secant method find it.
"""

from __future__ import annotations

import math

from artsim.sim.equipment.arrays import INVERSE_NORM, INVERSE_SCALE, ROLE_FOURTH, SOLUTIONS, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, real, where_greater, zero_like
from artsim.sim.foundation.quaternions import quaternion_along, rotation_between
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.foundation.vec3 import length, triple_at

_NO_QUATERNION = 1e-15  # norm below which a quaternion stands for no rotation, as in MuJoCo
_NEAR = 1e-10  # relative distance of a norm from its bound that counts as equal
_MOST_SCALES = 8  # solutions after which a servo acts explicitly


@njit
def setpoint(equipment: EquipmentBundle, a: int) -> float:
    """The wanted length of force a [rad], from equipment.data.actuator_length and the clamped controls."""
    axis = equipment.model.actuator_axis[a]
    n = a - axis
    qw, qx, qy, qz = quaternion_along(
        equipment.data.actuator_length[n], equipment.data.actuator_length[n + 1], equipment.data.actuator_length[n + 2]
    )
    u = equipment.model.control_first[a]
    if equipment.model.control_role[a, ROLE_FOURTH] < 0:
        c, s0, s1, s2 = quaternion_along(
            equipment.data.control[u], equipment.data.control[u + 1], equipment.data.control[u + 2]
        )
    else:
        c, s0, s1, s2 = (
            equipment.data.control[u],
            equipment.data.control[u + 1],
            equipment.data.control[u + 2],
            equipment.data.control[u + 3],
        )
        norm = math.sqrt(c * c + s0 * s0 + s1 * s1 + s2 * s2)
        if norm < _NO_QUATERNION:
            c, s0, s1, s2 = 1.0, 0.0, 0.0, 0.0
        else:
            c, s0, s1, s2 = c / norm, s0 / norm, s1 / norm, s2 / norm
    e0, e1, e2 = rotation_between(qw, qx, qy, qz, c, s0, s1, s2)
    error = e0 if axis == 0 else (e1 if axis == 1 else e2)
    return equipment.data.actuator_length[a] + error


@inlined
def _norm(equipment: EquipmentBundle, a: int) -> Real:
    """Norm of the three forces that begin at a [N m]."""
    return length(triple_at(equipment.data.actuator_force, a))


@inlined
def _has_norm(equipment: EquipmentBundle, a: int) -> bool:
    """True if a is the first of the three forces of a servo whose norm is bounded."""
    return equipment.model.actuator_axis[a] == 0 and equipment.model.force_norm[a] < math.inf


@njit
def bound_norms(equipment: EquipmentBundle) -> None:
    """Clip the forces at the start of the step to the bounds of their norms."""
    for a in range(equipment.model.actuator_axis.shape[0]):
        if _has_norm(equipment, a):
            norm = _norm(equipment, a)
            if norm > equipment.model.force_norm[a]:
                for n in range(a, a + 3):
                    equipment.data.actuator_force[n] *= equipment.model.force_norm[a] / norm


@njit
def guess_scales(equipment: EquipmentBundle) -> None:
    """Set equipment.data.actuator_scale of implicit servos from the forces that would act at unchanged velocities."""
    data = equipment.data
    for a in range(equipment.model.actuator_axis.shape[0]):
        if _has_norm(equipment, a) and any_positive(data.acts[a]):
            bound = real(equipment.model.force_norm[a], data.acts[a])
            data.scaling[a, SOLUTIONS] = zero_like(bound)
            scale = bound / largest(_norm(equipment, a), bound)
            for n in range(a, a + 3):
                data.actuator_scale[n] = where_greater(data.acts[a], zero_like(bound), scale, data.actuator_scale[n])


@njit
def scale_rotations(equipment: EquipmentBundle, chosen: Real) -> Real:
    """Scale implicit servos whose norm, over the step, is not at its bound; 1 where there are any. Only lanes where
    `chosen` is 1 change."""
    changed = zero_like(chosen)
    for a in range(equipment.model.actuator_axis.shape[0]):
        if _has_norm(equipment, a) and any_positive(chosen * equipment.data.acts[a]):
            changed = largest(changed, _scale(equipment, a, chosen * equipment.data.acts[a]))
    return changed


@njit
def _scale(equipment: EquipmentBundle, a: int, chosen: Real) -> Real:
    """Set the next scale of the servo whose forces begin at a; after the last trial it acts as a clipped force. 1 where
    the norm was not settled: it has to be at its bound or, without a scale, may be below. A settled servo starts its
    next search afresh.
    """
    data, bound = equipment.data, equipment.model.force_norm[a]
    norm, scale, count = _norm(equipment, a), data.actuator_scale[a], data.scaling[a, SOLUTIONS]
    zero = zero_like(norm)
    one = zero + 1.0
    low = where_greater(zero + bound * (1.0 - _NEAR), norm, where_greater(one, scale, one, zero), zero)
    trial = chosen * where_greater(norm, zero + bound * (1.0 + _NEAR), one, low)
    last = trial * where_greater(count, zero + (_MOST_SCALES - 0.5), one, zero)
    norm = largest(norm, zero + 1e-300)
    inverse = 1.0 / norm
    u = 1.0 / where_greater(scale, zero, scale, one)
    pull = norm * u  # du / d(1 / norm) if the force of the unscaled servo does not change
    rise = inverse - data.scaling[a, INVERSE_NORM]
    secant = (u - data.scaling[a, INVERSE_SCALE]) / where_greater(absolute(rise), zero, rise, one)
    secant = where_greater(absolute(rise), zero, secant, zero)
    pull = where_greater(count * secant, zero, secant, pull)
    going = trial - last
    data.scaling[a, INVERSE_SCALE] = where_greater(going, zero, u, data.scaling[a, INVERSE_SCALE])
    data.scaling[a, INVERSE_NORM] = where_greater(going, zero, inverse, data.scaling[a, INVERSE_NORM])
    data.scaling[a, SOLUTIONS] = where_greater(
        going, zero, count + 1.0, where_greater(chosen - trial, zero, zero, count)
    )
    found = 1.0 / largest(one, u - pull * (inverse - 1.0 / bound))
    clip = least(one, bound / norm)
    for n in range(a, a + 3):
        data.actuator_scale[n] = where_greater(going, zero, found, scale)
        data.acts[n] = where_greater(last, zero, zero, data.acts[n])
        data.actuator_force[n] = where_greater(last, zero, clip * data.actuator_force[n], data.actuator_force[n])
    return trial
