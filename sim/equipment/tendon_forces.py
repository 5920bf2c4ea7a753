"""Springs and dampers of tendons: explicit while they are slow for the step, as rows where they are not.

Explicit springs are stable while no mode has hω > 2. The sum over all tendons of h² K J M⁻¹ Jᵀ + h D J M⁻¹ Jᵀ, which is
no less than the largest (hω)², decides for all of them together: above _FAST they are rows (constraints/tendon.py).
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.run import BLOCK_GS, PGS, TGS

_FAST = 0.25


@njit
def tendon_forces(e: Any, x: Any) -> None:
    """x.tendon (nv,): what springs and dampers of all tendons do to the dofs; lengths and moments are up to date.

    Nothing where they are rows.
    """
    for k in range(x.tendon.shape[0]):
        x.tendon[k] = 0.0
    for t in range(x.tendon_length.shape[0]):
        x.tendon_pull[t] = 0.0
        if x.tendon_by_row[0] == 0.0:
            x.tendon_pull[t], _, _ = spring_of_tendon(e, x, t)
            pull_along(e, x, t, x.tendon_pull[t])


@njit
def weigh_tendons(i: Any, e: Any, x: Any, explicit: Any) -> None:
    """x.tendon_by_row[0], 1 where springs and dampers are rows, and their x.tendon_share (nt,) (actuation.py).

    Explicit ones remain so (RK4), and those of the sweeping solvers.
    """
    x.tendon_by_row[0] = 0.0
    solver = i.solver[0]
    if explicit == 1 or solver == PGS or solver == TGS or solver == BLOCK_GS:
        return
    h = i.time_step[0]
    total = 0.0
    for t in range(x.tendon_length.shape[0]):
        _, stiffness, damping = spring_of_tendon(e, x, t)
        root = 0.0
        for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
            root += abs(x.tendon_moment[entry]) * math.sqrt(i.mobility[e.tendon_dof[entry]])
        square = h * h * stiffness * root * root
        x.tendon_share[t] = 1.0 / max(1.0, square)
        total += square + h * damping * root * root
    x.tendon_by_row[0] = 1.0 if total > _FAST else 0.0


@inlined
def stretch_of(x: Any, t: Any) -> Any:
    """How far tendon t is beyond its rest lengths, negative below them [m or rad]."""
    length = x.tendon_length[t]
    return max(length - x.spring_length[t, 1], 0.0) + min(length - x.spring_length[t, 0], 0.0)


@inlined
def spring_of_tendon(e: Any, x: Any, t: Any) -> Any:
    """Force of tendon t's spring and damper, its stiffness and its damping at the length and velocity found.

    -(a x + b x² + c x³) beyond the rest lengths, -(a v + b |v| v + c v³): XML reference, "spatial".
    """
    y = stretch_of(x, t)
    v = x.tendon_velocity[t]
    a = e.tendon_stiffness[t]
    b = e.tendon_damping[t]
    force = -y * (a[0] + y * (a[1] + y * a[2])) - v * (b[0] + abs(v) * (b[1] + abs(v) * b[2]))
    stiffness = a[0] + y * (2.0 * a[1] + y * 3.0 * a[2]) if y != 0.0 else 0.0
    damping = b[0] + abs(v) * (2.0 * b[1] + abs(v) * 3.0 * b[2])
    return force, max(stiffness, 0.0), max(damping, 0.0)


@njit
def tendon_spring_energy(e: Any, x: Any) -> Any:
    """Potential energy of the tendons' springs [J]: the integral of a x + b x² + c x³ beyond the rest lengths."""
    total = 0.0
    for t in range(x.tendon_length.shape[0]):
        y = stretch_of(x, t)
        a = e.tendon_stiffness[t]
        total += y * y * (a[0] / 2.0 + y * (a[1] / 3.0 + y * a[2] / 4.0))
    return total


@njit
def pull_along(e: Any, x: Any, t: Any, force: Any) -> None:
    """Add to x.tendon what a force along tendon t does to the dofs; positive: it lengthens."""
    for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
        x.tendon[e.tendon_dof[entry]] += x.tendon_moment[entry] * force
