"""Springs and dampers of tendons: explicit if they are slow relative to the step, else constraint rows.

Explicit springs are stable while no mode has hω > 2. The sum over all tendons of h² K J M⁻¹ Jᵀ + h D J M⁻¹ Jᵀ, an upper
bound of the largest (hω)², decides for all tendons together: above STIFF_TENDONS they are rows
(constraints/tendon_rows.py).
"""

from __future__ import annotations

import math

from artsim.sim.equipment.arrays import LONGEST, SHORTEST, STIFF_TENDONS, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, where_greater, zero_like
from artsim.sim.foundation.records import Real, Vec3
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.run_data.registry import SWEEPING
from artsim.sim.run_data.run_records import NOT_CONVEX, Inputs


@njit
def tendon_forces(equipment: EquipmentBundle) -> None:
    """Set equipment.data.tendon (nv,), the forces of all tendons' springs and dampers on the dofs; zero if rows.

    Lengths and moment arms are up to date.
    """
    for k in range(equipment.data.tendon.shape[0]):
        equipment.data.tendon[k] = 0.0
    for t in range(equipment.data.tendon_length.shape[0]):
        equipment.data.tendon_pull[t] = 0.0
        if equipment.data.tendon_by_row[0] == 0.0:
            equipment.data.tendon_pull[t], _, _ = spring_of_tendon(equipment, t)
            pull_along(equipment, t, equipment.data.tendon_pull[t])


@njit
def weigh_tendons(inputs: Inputs, equipment: EquipmentBundle, explicit: int) -> None:
    """Set equipment.data.tendon_by_row[0], 1 if springs and dampers are rows, and tendon_share (nt,) (actuation.py).

    In RK4, with the sweeping solvers and under the convex law springs and dampers are always explicit.
    """
    equipment.data.tendon_by_row[0] = 0.0
    if explicit == 1 or SWEEPING[inputs.solver[0]] or inputs.convex[0] != NOT_CONVEX:
        return
    h = inputs.time_step[0]
    total = 0.0
    for t in range(equipment.data.tendon_length.shape[0]):
        _, stiffness, damping = spring_of_tendon(equipment, t)
        root = 0.0
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            root += abs(equipment.data.tendon_moment[entry]) * math.sqrt(
                inputs.mobility[equipment.model.tendon_dof[entry]]
            )
        square = h * h * stiffness * root * root
        equipment.data.tendon_share[t] = 1.0 / max(1.0, square)
        total += square + h * damping * root * root
    equipment.data.tendon_by_row[0] = 1.0 if total > STIFF_TENDONS else 0.0


@inlined
def stretch_of(equipment: EquipmentBundle, t: int) -> Real:
    """Extension of tendon t beyond its rest lengths, negative below them [m or rad]; in both widths."""
    length = equipment.data.tendon_length[t]
    rest, zero = equipment.data.spring_length[t], zero_like(length)
    return largest(length - rest[LONGEST], zero) + least(length - rest[SHORTEST], zero)


@inlined
def spring_of_tendon(equipment: EquipmentBundle, t: int) -> Vec3:
    """Force of tendon t's spring and damper, its stiffness and its damping at the current length and velocity; in both
    widths.

    -(a x + b x² + c x³) beyond the rest lengths, -(a v + b |v| v + c v³): XML reference, "spatial".
    """
    y = stretch_of(equipment, t)
    v = equipment.data.tendon_velocity[t]
    a = equipment.model.tendon_stiffness[t]
    b = equipment.model.tendon_damping[t]
    size, zero = absolute(v), zero_like(v)
    force = -y * (a[0] + y * (a[1] + y * a[2])) - v * (b[0] + size * (b[1] + size * b[2]))
    stiffness = where_greater(absolute(y), zero, a[0] + y * (2.0 * a[1] + y * 3.0 * a[2]), zero)
    damping = b[0] + size * (2.0 * b[1] + size * 3.0 * b[2])
    return force, largest(stiffness, zero), largest(damping, zero)


@njit
def tendon_spring_energy(equipment: EquipmentBundle) -> float:
    """Potential energy of the tendons' springs [J]: the integral of a x + b x² + c x³ beyond the rest lengths."""
    total = 0.0
    for t in range(equipment.data.tendon_length.shape[0]):
        y = stretch_of(equipment, t)
        a = equipment.model.tendon_stiffness[t]
        total += y * y * (a[0] / 2.0 + y * (a[1] / 3.0 + y * a[2] / 4.0))
    return total


@njit
def pull_along(equipment: EquipmentBundle, t: int, force: float) -> None:
    """Add the effect of a force along tendon t on the dofs to equipment.data.tendon; positive: lengthening."""
    for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
        equipment.data.tendon[equipment.model.tendon_dof[entry]] += equipment.data.tendon_moment[entry] * force
