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

from artsim.sim.equipment.arrays import BY_ROW, INVERSE_NORM, INVERSE_SCALE, ROLE_FOURTH, SOLUTIONS, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.quaternions import quaternion_along, rotation_between
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
def _norm(equipment: EquipmentBundle, a: int) -> float:
    """Norm of the three forces that begin at a [N m]."""
    return length(triple_at(equipment.data.actuator_force, a))


@inlined
def _cut(equipment: EquipmentBundle, a: int, share: float) -> None:
    """Scale the three forces that begin at a by a common factor."""
    for n in range(a, a + 3):
        equipment.data.actuator_force[n] *= share


@njit
def bound_norms(equipment: EquipmentBundle) -> None:
    """Clip the forces at the start of the step to the bounds of their norms."""
    for a in range(equipment.model.actuator_axis.shape[0]):
        if equipment.model.actuator_axis[a] == 0 and equipment.model.force_norm[a] < math.inf:
            norm = _norm(equipment, a)
            if norm > equipment.model.force_norm[a]:
                _cut(equipment, a, equipment.model.force_norm[a] / norm)


@njit
def guess_scales(equipment: EquipmentBundle) -> None:
    """Set equipment.data.actuator_scale of implicit servos from the forces that would act at unchanged velocities."""
    for a in range(equipment.model.actuator_axis.shape[0]):
        if (
            equipment.model.actuator_axis[a] == 0
            and equipment.data.actuator_implicit[a] == BY_ROW
            and equipment.model.force_norm[a] < math.inf
        ):
            equipment.data.scaling[a, SOLUTIONS] = 0.0
            _set_scale(
                equipment,
                a,
                min(1.0, equipment.model.force_norm[a] / max(_norm(equipment, a), equipment.model.force_norm[a])),
            )


@inlined
def _set_scale(equipment: EquipmentBundle, a: int, scale: float) -> None:
    for n in range(a, a + 3):
        equipment.data.actuator_scale[n] = scale


@njit
def is_settled(equipment: EquipmentBundle, a: int) -> bool:
    """True if the norm of the forces that begin at a, as they act over the step, is settled.

    A norm is settled at its bound and, without a scale, also below it. A settled servo starts its next search afresh.
    """
    norm = _norm(equipment, a)
    bound = equipment.model.force_norm[a]
    if bound == math.inf:
        return True
    if norm > bound * (1.0 + _NEAR) or (equipment.data.actuator_scale[a] < 1.0 and norm < bound * (1.0 - _NEAR)):
        return False
    equipment.data.scaling[a, SOLUTIONS] = 0.0
    return True


@njit
def rescale(equipment: EquipmentBundle, a: int) -> bool:
    """Set the next scale of the servo whose forces begin at a; False, and clipped forces, after the last trial."""
    norm = max(_norm(equipment, a), 1e-300)
    bound = equipment.model.force_norm[a]
    if equipment.data.scaling[a, SOLUTIONS] >= _MOST_SCALES:
        if norm > bound:
            _cut(equipment, a, bound / norm)
        return False
    u = 1.0 / equipment.data.actuator_scale[a]
    pull = norm * u  # du / d(1 / norm) if the force of the unscaled servo does not change
    if equipment.data.scaling[a, SOLUTIONS] > 0.0:
        rise = 1.0 / norm - equipment.data.scaling[a, INVERSE_NORM]
        secant = (u - equipment.data.scaling[a, INVERSE_SCALE]) / rise if rise != 0.0 else 0.0
        if secant > 0.0:
            pull = secant
    equipment.data.scaling[a, INVERSE_SCALE] = u
    equipment.data.scaling[a, INVERSE_NORM] = 1.0 / norm
    equipment.data.scaling[a, SOLUTIONS] += 1.0
    _set_scale(equipment, a, 1.0 / max(1.0, u - pull * (1.0 / norm - 1.0 / bound)))
    return True
