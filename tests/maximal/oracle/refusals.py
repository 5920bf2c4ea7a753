"""Refuses by name tendons, actuators and joints that the oracle lacks, so that it leaves nothing out in silence."""

from __future__ import annotations

import math

import numpy as np

from artsim.sim.articulation.description import Articulation
from artsim.sim.equipment.arrays import (
    AFFINE,
    DC_MOTOR,
    FILTER,
    FILTER_EXACT,
    INTEGRATOR,
    JOINT,
    JOINT_IN_PARENT,
    MUSCLE,
    NO_DYNAMICS,
    PATH_CYLINDER,
    PATH_SPHERE,
    PER_VELOCITY,
    PID,
    REFERENCE_K,
    SITE,
    SLIDER_CRANK,
    TENDON,
    Equipment,
    Equipped,
)
from artsim.sim.foundation.errors import UsageError
from artsim.sim.run_data.run_records import COMPUTED_TORQUE
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import Plan


def refuse_what_the_oracle_lacks(plan: Plan, articulation: Articulation) -> None:
    """Raise UsageError for the first tendon, actuator or joint without a law here."""
    config, model, equipped = plan.config, plan.robot.model, plan.equipped
    if equipped is None:
        return
    what = _of_tendons(equipped, config) or _of_actuators(equipped) or _of_joints(articulation)
    if config.built_in.law == COMPUTED_TORQUE and (model.row_frequency > 0).any():
        what = f"controller {config.controller!r} with compliant couplings"
    if what:
        raise UsageError(f"the oracle has nothing for {what}")


def _of_joints(articulation: Articulation) -> str:
    for joint in articulation.joints:
        if joint.kind == "free" and any(joint.stiffness_polynomial):
            return f"the polynomial spring of joint {joint.name!r}"
    return ""


def _of_tendons(equipped: Equipped, config: RunConfig) -> str:
    e, names = equipped.arrays, equipped.labels.tendons
    for t, name in enumerate(names):
        kinds = e.path_kind[e.tendon_path[t] : e.tendon_path[t + 1]]
        if np.isin(kinds, (PATH_SPHERE, PATH_CYLINDER)).any():
            return f"tendon {name!r}, which wraps around a geom"
        if e.tendon_armature[t] > 0:
            return f"the armature of tendon {name!r}"
        if e.tendon_limit_spring[t, 0] > 0:
            return f"the limits of tendon {name!r}, which have a stiffness"
        if config.built_in.law == COMPUTED_TORQUE and e.tendon_friction[t] > 0:
            return f"controller {config.controller!r} with the friction of tendon {name!r}"
    for c, t in enumerate(e.tendon_row_follower):
        if e.tendon_row_reference[c, REFERENCE_K] >= 0:
            return f"the equality of tendon {names[t]!r}, which gives way (solref or a frequency)"
    return ""


_DYNAMICS = (NO_DYNAMICS, INTEGRATOR, FILTER, FILTER_EXACT)
_TRANSMISSIONS = (JOINT, JOINT_IN_PARENT, TENDON, SITE)


def _of_actuators(equipped: Equipped) -> str:
    e = equipped.arrays
    for a, name in enumerate(equipped.labels.actuators):
        reason = _of_actuator(e, a)
        if reason:
            return f"actuator {name!r}, {reason}"
    return ""


def _of_actuator(e: Equipment, a: int) -> str:
    """What of an actuator has no law here, or an empty string."""
    if not e.actuator_active[a]:
        return ""
    if MUSCLE in (e.actuator_gain[a], e.actuator_bias[a]):
        return "a muscle"
    if DC_MOTOR in (e.actuator_gain[a], e.actuator_bias[a]):
        return "a DC motor"
    if PID in (e.actuator_gain[a], e.actuator_bias[a]) or e.actuator_dynamics[a] not in _DYNAMICS:
        return "a PID servo or one with dynamics of its own"
    if e.actuator_transmission[a] not in _TRANSMISSIONS:
        return "on a slider-crank" if e.actuator_transmission[a] == SLIDER_CRANK else "which makes a body adhere"
    if e.actuator_axis[a] >= 0:
        return "a servo of a rotation"
    if e.actuator_bias[a] == AFFINE and e.bias_parameters[a, PER_VELOCITY] > 0:
        return "whose damping is a ratio"
    same = (e.actuator_transmission == e.actuator_transmission[a]) & (e.actuator_target == e.actuator_target[a])
    target = int(e.actuator_target[a])
    on_joint = e.actuator_transmission[a] in (JOINT, JOINT_IN_PARENT)
    bounds = (
        (e.dof_force_lower[target], e.dof_force_upper[target])
        if on_joint
        else (e.tendon_force_lower[target], e.tendon_force_upper[target])
        if e.actuator_transmission[a] == TENDON
        else (-math.inf, math.inf)
    )
    if bounds != (-math.inf, math.inf) and np.count_nonzero(same & (e.actuator_active == 1)) > 1:
        return "whose force is bounded together with that of others"
    if on_joint and e.actuator_entry[a + 1] - e.actuator_entry[a] > 1 and _bounded_axes(e, a):
        return "whose force is bounded by the joint's range"
    return ""


def _bounded_axes(e: Equipment, a: int) -> bool:
    dofs = e.actuator_dof[e.actuator_entry[a] : e.actuator_entry[a + 1]]
    return bool(np.isfinite(e.dof_force_lower[dofs]).any() or np.isfinite(e.dof_force_upper[dofs]).any())
