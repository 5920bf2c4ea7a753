"""Actuators as arrays (record.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from artsim.sim.description import Actuator, Articulation
from artsim.sim.equipment.record import (
    AFFINE,
    BODY,
    DC_MOTOR,
    DC_MOTOR_DYNAMICS,
    FILTER,
    FILTER_EXACT,
    FIXED,
    INTEGRATOR,
    JOINT,
    JOINT_IN_PARENT,
    MUSCLE,
    MUSCLE_DYNAMICS,
    NO_BIAS,
    NO_DYNAMICS,
    SITE,
    SLIDER_CRANK,
    TENDON,
)
from artsim.sim.records import Array

if TYPE_CHECKING:
    from artsim.sim.equipment.build import Places

TRANSMISSIONS = {
    "joint": JOINT,
    "jointinparent": JOINT_IN_PARENT,
    "tendon": TENDON,
    "site": SITE,
    "body": BODY,
    "slidercrank": SLIDER_CRANK,
}
DYNAMICS = {
    "none": NO_DYNAMICS,
    "integrator": INTEGRATOR,
    "filter": FILTER,
    "filterexact": FILTER_EXACT,
    "muscle": MUSCLE_DYNAMICS,
    "dcmotor": DC_MOTOR_DYNAMICS,
}
GAINS = {"fixed": FIXED, "affine": AFFINE, "muscle": MUSCLE, "dcmotor": DC_MOTOR}
BIASES = {"none": NO_BIAS, "affine": AFFINE, "muscle": MUSCLE, "dcmotor": DC_MOTOR}


def actuator_arrays(
    articulation: Articulation, places: Places, site_body: Array, tendons: Mapping[str, Array]
) -> dict[str, Array]:
    """The arrays of the actuators that are not disabled by group, and the bounds of what they do to each dof."""
    actuators = articulation.actuators
    entries = [sorted(_dofs(a, places, site_body, tendons)) for a in actuators]
    first = np.cumsum([0, *(a.activation_size for a in actuators)])[:-1]
    return {
        "actuator_transmission": np.array([TRANSMISSIONS[a.transmission] for a in actuators], np.int64),
        "actuator_target": np.array([_target(a, places) for a in actuators], np.int64),
        "actuator_reference": np.array([places.sites[a.reference] if a.reference else -1 for a in actuators], np.int64),
        "actuator_gear": _padded([a.gear for a in actuators], 6),
        "actuator_crank": np.array([a.crank_length for a in actuators]),
        "actuator_entry": np.cumsum([0, *map(len, entries)]),
        "actuator_dof": np.array([k for dofs in entries for k in dofs], np.int64),
        "actuator_dynamics": np.array([DYNAMICS[a.dynamics] for a in actuators], np.int64),
        "actuator_gain": np.array([GAINS[a.gain] for a in actuators], np.int64),
        "actuator_bias": np.array([BIASES[a.bias] for a in actuators], np.int64),
        "dynamics_parameters": _padded([a.dynamics_parameters for a in actuators], 10),
        "gain_parameters": _padded([a.gain_parameters for a in actuators], 10),
        "bias_parameters": _padded([a.bias_parameters for a in actuators], 10),
        **_range("control", [a.control_range for a in actuators]),
        **_range("force", [a.force_range for a in actuators]),
        **_range("activation", [a.activation_range for a in actuators]),
        "activation_first": np.where([a.activation_size > 0 for a in actuators], first, -1),
        "activation_early": np.array([int(a.activation_early) for a in actuators], np.int64),
        "actuator_damping": np.array([a.damping for a in actuators]).reshape(-1, 3),
        "actuator_length_range": np.array([a.length_range or (0.0, 0.0) for a in actuators]).reshape(-1, 2),
        **_dof_ranges(articulation, places),
    }


def _padded(rows: Sequence[tuple[float, ...]], width: int) -> Array:
    table = np.zeros((len(rows), width))
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table


def _range(name: str, ranges: Sequence[tuple[float, float] | None]) -> dict[str, Array]:
    infinite = (-np.inf, np.inf)
    table = np.array([bounds or infinite for bounds in ranges]).reshape(-1, 2)
    return {f"{name}_lower": table[:, 0], f"{name}_upper": table[:, 1]}


def _dof_ranges(articulation: Articulation, places: Places) -> dict[str, Array]:
    """actuatorfrcrange of joints."""
    bounds = np.tile([-np.inf, np.inf], (len(places.compiled.model.dof_body), 1))
    for joint in articulation.joints:
        if joint.actuator_range is not None:
            bounds[places.compiled.labels.joint_dofs[joint.name]] = joint.actuator_range
    return {"dof_force_lower": bounds[:, 0], "dof_force_upper": bounds[:, 1]}


def _target(actuator: Actuator, places: Places) -> int:
    if actuator.transmission in ("joint", "jointinparent"):
        return places.first_dof(actuator.target)
    if actuator.transmission == "tendon":
        return places.tendons[actuator.target]
    if actuator.transmission == "body":
        model = places.compiled.model
        return int(model.link_body[places.links[actuator.target]])
    return places.sites[actuator.target]


def _dofs(actuator: Actuator, places: Places, site_body: Array, tendons: Mapping[str, Array]) -> set[int]:
    """The dofs that its force can act on."""
    target = _target(actuator, places)
    if actuator.transmission in ("joint", "jointinparent"):
        dofs = places.compiled.labels.joint_dofs[actuator.target]
        return set(range(dofs.start, dofs.stop))
    if actuator.transmission == "tendon":
        start, stop = tendons["tendon_entry"][target : target + 2]
        return {int(k) for k in tendons["tendon_dof"][start:stop]}
    if actuator.transmission == "body":
        return places.dofs_of_body(target)
    sites = [target, *([places.sites[actuator.reference]] if actuator.reference else [])]
    return set[int]().union(*(places.dofs_of_body(int(site_body[site])) for site in sites))
