"""What the equipment does at a configuration, in the order in which its parts need each other."""

from __future__ import annotations

from typing import Any

from artsim.sim.coupling import reduce_matrix
from artsim.sim.dynamics import composites, factorise, mass_matrix, solve
from artsim.sim.equipment.actuators import actuator_forces
from artsim.sim.equipment.passive import passive_extra
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.equipment.transmissions import transmissions
from artsim.sim.jit import njit
from artsim.sim.kinematics import kinematics, velocities, world_inertia


@njit
def calibrate(m: Any, w: Any, e: Any, x: Any, f: Any) -> None:
    """x.tendon_length0, spring_length and acceleration0: what is defined in the pose of the file. Once."""
    if x.calibrated[0] == 1.0:
        return
    x.calibrated[0] = 1.0
    for k in range(f.velocity.shape[0]):
        f.velocity[k] = 0.0
        f.diagonal[k] = 0.0
    kinematics(m, e.reference, w)
    world_inertia(m, w)
    velocities(m, f.velocity, w)
    tendon_paths(m, e.reference, f.velocity, w, e, x)
    transmissions(m, e.reference, f.velocity, w, e, x)
    for t in range(x.tendon_length.shape[0]):
        x.tendon_length0[t] = x.tendon_length[t]
        for end in range(2):
            rest = e.tendon_spring[t, end]
            x.spring_length[t, end] = x.tendon_length[t] if rest != rest else rest
    if e.actuator_target.shape[0] == 0:
        return
    composites(m, w)
    mass_matrix(m, w)
    reduce_matrix(m, w, f.diagonal)
    factorise(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run)
    for a in range(e.actuator_target.shape[0]):
        x.acceleration0[a] = _acceleration(m, w, e, x, a)


@njit
def _acceleration(m: Any, w: Any, e: Any, x: Any, a: Any) -> Any:
    """|M⁻¹ moment| of actuator a."""
    y = w.reduced
    for n in range(y.shape[0]):
        y[n] = 0.0
    for entry in range(e.actuator_entry[a], e.actuator_entry[a + 1]):
        k = e.actuator_dof[entry]
        n = m.dof_independent[k]
        if n >= 0:
            y[n] += w.gain[k] * x.actuator_moment[entry]
    solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, y)
    total = 0.0
    for k in range(m.dof_body.shape[0]):
        n = m.dof_independent[k]
        if n >= 0:
            total += (w.gain[k] * y[n]) ** 2
    return total**0.5


@njit
def equipment_forces(
    m: Any, q: Any, v: Any, w: Any, i: Any, e: Any, x: Any, f: Any, activation: Any, explicit: Any
) -> None:
    """All forces of the equipment at (q, v), kinematics in w being up to date; `explicit` 1: nothing is implicit."""
    velocities(m, v, w)
    tendon_paths(m, q, v, w, e, x)
    transmissions(m, q, v, w, e, x)
    for a in range(x.actuator_clamp.shape[0]):
        x.actuator_clamp[a] = 0.0
    actuator_forces(m, v, i, e, x, f, activation, explicit)
    passive_extra(m, q, v, w, e, x)
