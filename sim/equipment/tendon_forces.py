"""Springs and dampers of tendons, and the springs' energy."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit


@njit
def tendon_forces(e: Any, x: Any) -> None:
    """x.tendon (nv,): what the springs and dampers of all tendons do to the dofs; lengths and moments are up to date.

    -(a x + b x² + c x³) beyond the rest lengths, -(a v + b |v| v + c v³): XML reference, "spatial".
    """
    for k in range(x.tendon.shape[0]):
        x.tendon[k] = 0.0
    for t in range(x.tendon_length.shape[0]):
        y = _stretch(x, t)
        v = x.tendon_velocity[t]
        a = e.tendon_stiffness[t]
        b = e.tendon_damping[t]
        x.tendon_pull[t] = -y * (a[0] + y * (a[1] + y * a[2])) - v * (b[0] + abs(v) * (b[1] + abs(v) * b[2]))
        pull_along(e, x, t, x.tendon_pull[t])


@njit
def tendon_spring_energy(e: Any, x: Any) -> Any:
    """Potential energy of the tendons' springs [J]: the integral of a x + b x² + c x³ beyond the rest lengths."""
    total = 0.0
    for t in range(x.tendon_length.shape[0]):
        y = _stretch(x, t)
        a = e.tendon_stiffness[t]
        total += y * y * (a[0] / 2.0 + y * (a[1] / 3.0 + y * a[2] / 4.0))
    return total


@inlined
def _stretch(x: Any, t: Any) -> Any:
    """How far tendon t is beyond its rest lengths; negative: it is too short [m or rad]."""
    length = x.tendon_length[t]
    return max(length - x.spring_length[t, 1], 0.0) + min(length - x.spring_length[t, 0], 0.0)


@njit
def pull_along(e: Any, x: Any, t: Any, force: Any) -> None:
    """Add to x.tendon what a force along tendon t does to the dofs; positive: it lengthens."""
    for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
        x.tendon[e.tendon_dof[entry]] += x.tendon_moment[entry] * force
