"""Actuators on bodies: the lines along which their forces act, as sums of lines, and the forces.

A force at a site is a wrench on the site's body, a force along a tendon pulls at its path, and a force in a joint acts
along the joint's lines: none is mapped to joint coordinates. The law of a force, gain · input + bias (MuJoCo's
computation chapter), is written here for numpy once more, so that both engines' actuators check each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import (
    AFFINE,
    CONSTANT,
    FILTER,
    FILTER_EXACT,
    INTEGRATOR,
    JOINT,
    JOINT_IN_PARENT,
    NO_DYNAMICS,
    PER_LENGTH,
    PER_VELOCITY,
    SITE,
    TENDON,
    Equipment,
)
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, quaternion
from artsim.sim.maximal.bodies import BodyStates
from artsim.sim.maximal.body_wrenches import OnLink, wrench_lines
from artsim.sim.maximal.lines import BodyRows, make_summed_rows
from artsim.sim.maximal.scheme import Scheme
from tests.maximal.oracle.body_tendons import Sites
from tests.maximal.oracle.sums import ACTUATOR, SummedLines, summed_lines

_TINY = 1e-15  # least time constant [s]


def transmissions_of_bodies(
    e: Equipment,
    model: Model,
    sites: Sites,
    tendons: tuple[Array, Real, Real],
    state: BodyStates,
    dof_line: Array,
    first: int,
) -> SummedLines:
    """Actuators as sums of lines; tendons: lines, factors and lengths; the lines of sites have numbers from `first`."""
    wrenches: list[OnLink] = []
    sums: list[list[tuple[int, float]]] = []
    length = np.zeros(len(e.actuator_target))
    for a, kind in enumerate(e.actuator_transmission):
        target, gear = int(e.actuator_target[a]), e.actuator_gear[a]
        if kind in (JOINT, JOINT_IN_PARENT):
            own, length[a] = _on_joint(e, model, a, state.qpos, dof_line)
        elif kind == TENDON:
            line, factor, lengths = tendons
            own = [(int(n), float(gear[0] * f)) for n, f in zip(line[target], factor[target], strict=True) if n >= 0]
            length[a] = gear[0] * lengths[target]
        else:
            assert kind == SITE
            acts, length[a] = _at_site(e, model, sites, a, state)
            own = [(first + len(wrenches) + n, 1.0) for n in range(len(acts))]
            wrenches += acts
        sums.append(own)
    return summed_lines(wrench_lines(wrenches, state), sums, length)


def _on_joint(e: Equipment, model: Model, a: int, qpos: Real, dof_line: Array) -> tuple[list[tuple[int, float]], float]:
    """Gear times the coordinate of a joint, or a torque (and force) along the gear of a ball or free joint."""
    k, gear = int(e.actuator_target[a]), e.actuator_gear[a]
    size = int(e.actuator_entry[a + 1] - e.actuator_entry[a])
    if size == 1:
        return [(int(dof_line[k]), float(gear[0]))], float(gear[0] * qpos[model.dof_coord[k]])
    angular = size - 3
    n = int(model.body_coord[model.dof_body[k]]) + angular
    turn = _rotation_of(qpos[n : n + 4])
    torque = gear[angular:size]
    if e.actuator_transmission[a] == JOINT_IN_PARENT:
        torque = turn.T @ torque
    shares = [*gear[:angular], *torque]
    length = float(rotation_vector(turn) @ torque) if angular == 0 else 0.0
    return [(int(dof_line[k + axis]), float(share)) for axis, share in enumerate(shares)], length


def _at_site(e: Equipment, model: Model, sites: Sites, a: int, state: BodyStates) -> tuple[list[OnLink], float]:
    """A wrench at a site, in its own axes or in those of a reference site, which takes the reaction.

    Where the two forces form a couple, MuJoCo gives none of the couple to dofs that move both sites: the link where the
    chains of the sites meet takes it up.
    """
    site, reference = int(e.actuator_target[a]), int(e.actuator_reference[a])
    axes = sites.rotation[site if reference < 0 else reference]
    gear = e.actuator_gear[a]
    force, torque = axes @ gear[:3], axes @ gear[3:]
    own = _acting(e, sites, site, force, torque)
    if reference < 0:
        return [own], 0.0
    found = [own, _acting(e, sites, reference, -force, -torque)]
    link, base = int(e.site_link[site]), int(e.site_link[reference])
    while link != base:
        if link > base:
            link = int(model.link_parent[link])
        else:
            base = int(model.link_parent[base])
    apart = sites.point[site] - sites.point[reference]
    if link >= 0:
        couple = np.concatenate([np.zeros(3), np.cross(-apart, force)])
        found.append((int(model.link_body[link]), link, couple))
    length = float(force @ apart)
    if np.any(gear[3:]):
        turn = sites.rotation[reference].T @ sites.rotation[site]
        length += float(sites.rotation[reference] @ rotation_vector(turn) @ torque)
    return found, length


def _acting(e: Equipment, sites: Sites, site: int, force: Real, torque: Real) -> OnLink:
    wrench = np.concatenate([force, np.cross(sites.arm[site], force) + torque])
    return int(e.site_body[site]), int(e.site_link[site]), wrench


def _rotation_of(q: Real) -> Real:
    w, v = q[0], q[1:]
    cross = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    found: Real = np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross
    return found


def rotation_vector(R: Real) -> Real:
    """The rotation vector (3,) of a rotation matrix, at most π long [rad]."""
    q = quaternion(R)
    q = -q if q[0] < 0 else q
    sine = float(np.linalg.norm(q[1:]))
    found: Real = q[1:] * (2.0 * np.arctan2(sine, q[0]) / sine if sine > 1e-300 else 2.0)
    return found


# ------------------------------------------------------------------ laws


class ActuatorForces(NamedTuple):
    """Forces constant - K length - D velocity of actuators (na,), and the rates of their activations."""

    constant: Real
    stiffness: Real
    damping: Real
    activation_rate: Real  # (nact,) [1/s]


def actuator_laws(e: Equipment, length: Real, control: Real, activation: Real, h: float) -> ActuatorForces:
    """The affine forces of all actuators; inactive ones have none."""
    constant, stiffness, damping = np.zeros((3, len(length)))
    rates = np.zeros(len(activation))
    for a in np.flatnonzero(e.actuator_active):
        kind, n = int(e.actuator_dynamics[a]), int(e.activation_last[a])
        u = float(
            np.clip(
                control[e.control_first[a]], e.control_lower[e.control_first[a]], e.control_upper[e.control_first[a]]
            )
        )
        period = float(e.actuator_period[a])
        if kind != NO_DYNAMICS:
            time = max(_TINY, float(e.dynamics_parameters[a, 0]))
            aimed = _nearest_turn(u, float(activation[n]), period)
            rates[n] = u if kind == INTEGRATOR else (aimed - activation[n]) / time
            u = float(activation[n])
            if e.activation_early[a]:
                u = next_activation(e, int(a), u, float(rates[n]), h)
        u = _nearest_turn(u, float(length[a]), period)
        gain, bias = e.gain_parameters[a], e.bias_parameters[a]
        constant[a] = gain[CONSTANT] * u
        if e.actuator_gain[a] == AFFINE:
            stiffness[a], damping[a] = -gain[PER_LENGTH] * u, -gain[PER_VELOCITY] * u
        if e.actuator_bias[a] == AFFINE:
            constant[a] += bias[CONSTANT]
            stiffness[a] -= bias[PER_LENGTH]
            damping[a] -= bias[PER_VELOCITY]
    return ActuatorForces(constant, stiffness, damping, rates)


def _nearest_turn(angle: float, near: float, period: float) -> float:
    return angle if period <= 0.0 else angle + period * round((near - angle) / period)


def next_activation(e: Equipment, a: int, value: float, rate: float, h: float) -> float:
    """The activation of actuator a after a time h [s], in its range."""
    time = max(_TINY, float(e.dynamics_parameters[a, 0]))
    value += rate * (time * (1.0 - np.exp(-h / time)) if e.actuator_dynamics[a] == FILTER_EXACT else h)
    return float(min(max(value, e.activation_lower[a]), e.activation_upper[a]))


def advanced(e: Equipment, activation: Real, rates: Real, length: Real, h: float) -> Real:
    """Activations (nact,) at the end of the step; a setpoint on a circle stays near the length."""
    found = np.array(activation)
    for a in np.flatnonzero((e.actuator_dynamics != NO_DYNAMICS) & (e.actuator_frozen == 0)):
        n = int(e.activation_last[a])
        found[n] = next_activation(e, int(a), float(activation[n]), float(rates[n]), h)
        if e.actuator_dynamics[a] in (INTEGRATOR, FILTER, FILTER_EXACT):
            found[n] = _nearest_turn(float(found[n]), float(length[a]), float(e.actuator_period[a]))
    return found


def bounds_of_actuators(e: Equipment) -> tuple[Real, Real]:
    """Bounds of the forces (na,), those of a joint's or a tendon's sum included: of one actuator only, as
    refusals.py sees to."""
    lower, upper = np.array(e.force_lower), np.array(e.force_upper)
    for a, kind in enumerate(e.actuator_transmission):
        k, gear = int(e.actuator_target[a]), float(e.actuator_gear[a, 0])
        if kind in (JOINT, JOINT_IN_PARENT) and e.actuator_entry[a + 1] - e.actuator_entry[a] == 1 and gear != 0.0:
            ends = sorted((e.dof_force_lower[k] / gear, e.dof_force_upper[k] / gear))
        elif kind == TENDON:
            ends = [e.tendon_force_lower[k], e.tendon_force_upper[k]]
        else:
            continue
        lower[a], upper[a] = np.clip(lower[a], *ends), np.clip(upper[a], *ends)
    return lower, upper


def actuator_rows_of_bodies(
    scheme: Scheme, e: Equipment, transmissions: SummedLines, laws: ActuatorForces, rate: Real
) -> tuple[BodyRows, Array, Real]:
    """Rows of forces with K, D ≥ 0, which act at the end of the step, the actuators of these rows, and the explicit
    forces of all others (na,)."""
    K, D = laws.stiffness, laws.damping
    lower, upper = bounds_of_actuators(e)
    force = laws.constant - K * transmissions.length - D * rate
    implicit = (K >= 0.0) & (D >= 0.0) & (K + D > 0.0)
    a = np.flatnonzero(implicit)
    b, give = scheme.compliant(force[a], K[a], D[a], rate[a], np.zeros(len(a)))
    bounds = {"lower": scheme.h * lower[a], "upper": scheme.h * upper[a]}
    rows = make_summed_rows(ACTUATOR, transmissions.line[a], transmissions.factor[a], b, give=give, **bounds)
    return rows, a, np.where(implicit, 0.0, np.clip(force, lower, upper))
