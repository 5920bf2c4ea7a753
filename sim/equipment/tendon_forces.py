"""Springs and dampers of tendons."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def tendon_forces(e: Any, x: Any) -> None:
    """x.tendon (nv,): what the springs and dampers of all tendons do to the dofs; lengths and moments are up to date.

    -(a x + b x² + c x³) beyond the rest lengths, -(a v + b |v| v + c v³): XML reference, "spatial".
    """
    for k in range(x.tendon.shape[0]):
        x.tendon[k] = 0.0
    for t in range(x.tendon_length.shape[0]):
        length = x.tendon_length[t]
        y = max(length - x.spring_length[t, 1], 0.0) + min(length - x.spring_length[t, 0], 0.0)
        v = x.tendon_velocity[t]
        a = e.tendon_stiffness[t]
        b = e.tendon_damping[t]
        pull_along(e, x, t, -y * (a[0] + y * (a[1] + y * a[2])) - v * (b[0] + abs(v) * (b[1] + abs(v) * b[2])))


@njit
def pull_along(e: Any, x: Any, t: Any, force: Any) -> None:
    """Add to x.tendon what a force along tendon t does to the dofs; positive: it lengthens."""
    for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
        x.tendon[e.tendon_dof[entry]] += x.tendon_moment[entry] * force
