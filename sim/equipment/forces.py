"""What the equipment does at a configuration, in the order in which its parts need each other."""

from __future__ import annotations

from typing import Any

from artsim.sim.actuation import weigh_springs
from artsim.sim.constraints.coupling import row_mobilities
from artsim.sim.constraints.loop import loop_mobilities
from artsim.sim.constraints.tendon import tendon_mobilities
from artsim.sim.dynamics import composites, factorise, mass_matrix, solve
from artsim.sim.equipment.actuators import actuator_forces, bound_totals, guess_bounds, weigh_actuators
from artsim.sim.equipment.passive import passive_extra
from artsim.sim.equipment.record import MUSCLE, PID
from artsim.sim.equipment.tendon_forces import tendon_forces, weigh_tendons
from artsim.sim.equipment.tendons import add_tendon_inertia, has_inertia, rest_lengths, tendon_paths
from artsim.sim.equipment.transmissions import transmissions
from artsim.sim.jit import njit
from artsim.sim.kinematics import kinematics, velocities, world_inertia


@njit
def calibrate(m: Any, w: Any, e: Any, x: Any, f: Any) -> None:
    """Lengths and mobilities that are defined in the pose of the file, into x. Once.

    Mobilities are MuJoCo's, of the tree without couplings but with the tendons' inertia. That M, factorised, stands in
    w.mass_matrix and x.row2 until the step makes its own.
    """
    if x.calibrated[0] == 1.0:
        return
    x.calibrated[0] = 1.0
    q = f.stage_qpos  # a constant array would have all that follows compiled a second time
    for k in range(f.velocity.shape[0]):
        f.velocity[k] = 0.0
    rest_lengths(m, q, f.velocity, w, e, x)
    for n in range(q.shape[0]):
        q[n] = e.reference[n]
    kinematics(m, q, w)
    world_inertia(m, w)
    velocities(m, f.velocity, w)
    tendon_paths(m, q, f.velocity, w, e, x)
    transmissions(m, q, f.velocity, w, e, x)
    for t in range(x.tendon_length.shape[0]):
        x.tendon_length0[t] = x.tendon_length[t]
    for a in range(e.actuator_target.shape[0]):
        x.actuator_damping[a] = -e.bias_parameters[a, 2]
    if _needs_mobilities(m, e, x):  # else M may be singular
        composites(m, w)
        mass_matrix(m, w)
        add_tendon_inertia(m, w, e, x)
        factorise(w.mass_matrix, x.row2, m.dof_parent, m.dof_run)
        _calibrate_actuators(m, w, e, x)
        tendon_mobilities(m, w, e, x)
        loop_mobilities(m, w, f, e, x)
        if has_inertia(e):
            row_mobilities(m, w, f, e, x)


@njit
def _needs_mobilities(m: Any, e: Any, x: Any) -> bool:
    """True when something is given relative to the robot's inertia."""
    for a in range(e.actuator_target.shape[0]):
        if e.actuator_gain[a] == MUSCLE or e.actuator_bias[a] == MUSCLE or x.actuator_damping[a] < 0.0:
            return True
    found: bool = e.loop_kind.shape[0] + e.tendon_row_follower.shape[0] > 0
    return found or (has_inertia(e) and m.row_follower.shape[0] > 0)


@njit
def _calibrate_actuators(m: Any, w: Any, e: Any, x: Any) -> None:
    """x.acceleration0 = |M⁻¹ J|, and damping ratios as dampings 2 ζ √(k_p m), m = 1 / J M⁻¹ Jᵀ (position servos).

    Of the servo of a rotation J M⁻¹ Jᵀ is the mean of its three.
    """
    y = x.row
    for a in range(e.actuator_target.shape[0]):
        for k in range(y.shape[0]):
            y[k] = 0.0
        for entry in range(e.actuator_entry[a], e.actuator_entry[a + 1]):
            y[e.actuator_dof[entry]] = x.actuator_moment[entry]
        solve(w.mass_matrix, x.row2, m.dof_parent, m.dof_run, y)
        square = 0.0
        for k in range(y.shape[0]):
            square += y[k] * y[k]
        x.acceleration0[a] = square**0.5
        mobility = 0.0
        for entry in range(e.actuator_entry[a], e.actuator_entry[a + 1]):
            mobility += x.actuator_moment[entry] * y[e.actuator_dof[entry]]
        x.actuator_share[a] = mobility
    for a in range(e.actuator_target.shape[0]):
        mobility = x.actuator_share[a]
        if e.actuator_axis[a] >= 0:
            n = a - e.actuator_axis[a]
            mobility = (x.actuator_share[n] + x.actuator_share[n + 1] + x.actuator_share[n + 2]) / 3.0
        x.actuator_damping[a] = _servo_damping(e, a, mobility)


@njit
def _servo_damping(e: Any, a: Any, mobility: Any) -> Any:
    """The velocity coefficient of an affine bias; a positive one of a servo is its damping ratio."""
    rate = e.bias_parameters[a, 2]
    kp = -e.bias_parameters[a, 1]
    if rate <= 0.0 or (e.gain_parameters[a, 0] != kp and e.actuator_gain[a] != PID):
        return -rate
    if mobility <= 0.0 or kp <= 0.0:
        return 0.0
    return 2.0 * rate * (kp / mobility) ** 0.5


@njit
def equipment_forces(
    m: Any, q: Any, v: Any, w: Any, i: Any, e: Any, x: Any, f: Any, activation: Any, explicit: Any
) -> None:
    """All forces of the equipment at (q, v), kinematics in w being up to date; `explicit` 1: nothing is implicit."""
    velocities(m, v, w)
    tendon_paths(m, q, v, w, e, x)
    weigh_tendons(i, e, x, explicit)
    tendon_forces(e, x)
    transmissions(m, q, v, w, e, x)
    actuator_forces(m, v, i, e, x, f, activation, explicit)
    passive_extra(m, q, v, w, e, x)
    bound_totals(e, x)
    if explicit == 0:
        weigh_springs(m, i, f, x)
        weigh_actuators(i, e, x)
        guess_bounds(m, q, v, i, e, x, f)
