"""Actuators: forces from controls and activations, and the activations' rates."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import njit


@njit
def actuator_forces(m: Any, v: Any, i: Any, e: Any, x: Any, f: Any, activation: Any, explicit: Any) -> None:
    """What the actuators do; lengths and moments are up to date. f.counters[4] is the control row.

    x.actuator_force (na,), x.activation_rate; x.actuator_total (nv,) = Σ moment · force of those that act explicitly;
    what is affine in one dof's position and velocity goes to x.stiffness, x.damping, x.offset (nv,), unless `explicit`
    is 1 or x.actuator_clamp says that its bound holds.
    """


@njit
def clamp_actuators(m: Any, q: Any, i: Any, e: Any, x: Any, f: Any, activation: Any) -> bool:
    """Mark in x.actuator_clamp the implicit ones whose force at the step's end is beyond their range; True if any.

    The end is q + h f.velocity, f.velocity. What is marked acts with its bound, explicitly, when the step is solved
    again. On False x.actuator_force holds what acted over the step.
    """
    return False


@njit
def advance_activations(e: Any, x: Any, h: Any, activation: Any) -> None:
    """activation (nact,) at the end of the step."""
