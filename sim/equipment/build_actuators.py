"""Builds the Equipment arrays (arrays.py) of an articulation's actuators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from artsim.sim.articulation.description import Actuator, Articulation
from artsim.sim.articulation.model import BALL
from artsim.sim.equipment.arrays import (
    AFFINE,
    BODY,
    BY_ROW,
    DC_MOTOR,
    DC_MOTOR_DYNAMICS,
    EXPLICIT,
    FILTER,
    FILTER_EXACT,
    FIXED,
    IN_MATRIX,
    INTEGRATOR,
    JOINT,
    JOINT_IN_PARENT,
    MUSCLE,
    MUSCLE_DYNAMICS,
    NO_BIAS,
    NO_DYNAMICS,
    PATH_LOOP,
    PID,
    PID_DYNAMICS,
    SITE,
    SLIDER_CRANK,
    TENDON,
)
from artsim.sim.equipment.places import Places
from artsim.sim.foundation.records import Array

_TRANSMISSIONS = {
    "joint": JOINT,
    "jointinparent": JOINT_IN_PARENT,
    "tendon": TENDON,
    "site": SITE,
    "body": BODY,
    "slidercrank": SLIDER_CRANK,
}
_DYNAMICS = {
    "none": NO_DYNAMICS,
    "integrator": INTEGRATOR,
    "filter": FILTER,
    "filterexact": FILTER_EXACT,
    "muscle": MUSCLE_DYNAMICS,
    "dcmotor": DC_MOTOR_DYNAMICS,
    "pid": PID_DYNAMICS,
}
_GAINS = {"fixed": FIXED, "affine": AFFINE, "muscle": MUSCLE, "dcmotor": DC_MOTOR, "pid": PID, "rotation": FIXED}
_BIASES = {"none": NO_BIAS, "affine": AFFINE, "muscle": MUSCLE, "dcmotor": DC_MOTOR}
_INPUTS = ("position", "velocity", "feedforward", "voltage")


def acting(articulation: Articulation) -> tuple[Actuator, ...]:
    """The actuators that turn controls into forces."""
    return tuple(actuator for actuator in articulation.actuators if actuator.acts)


def forces_of(articulation: Articulation) -> list[tuple[Actuator, int]]:
    """Each force with its actuator and, for a rotation servo, its axis (-1 otherwise).

    To the engine each of a rotation servo's three forces is an actuator, whose gear is the axis.
    """
    forces = []
    for actuator in acting(articulation):
        if actuator.gain != "rotation":
            forces.append((actuator, -1))
            continue
        before = 3 if actuator.transmission == "site" else 0  # forces come first there
        for axis in range(3):
            gear = (0.0,) * (before + axis) + (1.0,)
            forces.append((replace(actuator, gear=gear), axis))
    return forces


def idle_controls(articulation: Articulation) -> tuple[float, ...]:
    """The default controls."""
    return tuple(value for actuator in acting(articulation) for value in actuator.idle)


def actuator_arrays(
    articulation: Articulation, places: Places, site_body: Array, tendons: Mapping[str, Array]
) -> dict[str, Array]:
    """The arrays of the actuators' forces, and the bounds of their sums on each dof."""
    actuators = [actuator for actuator, _ in forces_of(articulation)]
    axes = [axis for _, axis in forces_of(articulation)]
    entries = [sorted(_dofs(a, places, site_body, tendons)) for a in actuators]
    ranges = _dof_ranges(articulation, places)
    linear = [_linear(a, dofs, ranges, places, tendons) for a, dofs in zip(actuators, entries, strict=True)]
    return {
        "actuator_active": np.array([not a.disabled for a in actuators], np.int64),
        "actuator_frozen": np.array([a.frozen for a in actuators], np.int64),
        "actuator_linear": np.array(linear, np.int64),
        "actuator_by_inertia": np.array([a.by_inertia for a in actuators], np.int64),
        "actuator_period": np.array([_period(a, places, tendons) for a in actuators]),
        "actuator_transmission": np.array([_TRANSMISSIONS[a.transmission] for a in actuators], np.int64),
        "actuator_target": np.array([_target(a, places) for a in actuators], np.int64),
        "actuator_reference": np.array([places.sites[a.reference] if a.reference else -1 for a in actuators], np.int64),
        "actuator_axis": np.array(axes, np.int64),
        "actuator_gear": _padded([a.gear for a in actuators], 6),
        "actuator_crank": np.array([a.crank_length for a in actuators]),
        "actuator_entry": np.cumsum([0, *map(len, entries)]),
        "actuator_dof": np.array([k for dofs in entries for k in dofs], np.int64),
        "actuator_dynamics": np.array([_DYNAMICS[a.dynamics] for a in actuators], np.int64),
        "actuator_gain": np.array([_GAINS[a.gain] for a in actuators], np.int64),
        "actuator_bias": np.array([_BIASES[a.bias] for a in actuators], np.int64),
        "dynamics_parameters": _padded([a.dynamics_parameters for a in actuators], 10),
        "gain_parameters": _padded([a.gain_parameters for a in actuators], 10),
        "bias_parameters": _padded([a.bias_parameters for a in actuators], 10),
        **_range("control", [bounds for a in acting(articulation) for bounds in a.control_ranges]),
        **_range("force", [a.force_range if axis < 0 else None for a, axis in zip(actuators, axes, strict=True)]),
        "force_norm": np.array([_norm(a) for a in actuators]),
        **_range("activation", [a.activation_range for a in actuators]),
        **_places_in_state(actuators),
        **_controls(acting(articulation)),
        "activation_early": np.array([int(a.activation_early) for a in actuators], np.int64),
        "actuator_length_range": np.array([_length_range(a) for a in actuators]).reshape(-1, 2),
        **ranges,
    }


def _length_range(actuator: Actuator) -> tuple[float, float]:
    """The length range of an actuator; NaN if still unknown, which stops a run."""
    unknown = (0.0, 0.0) if actuator.length_search is None else (np.nan, np.nan)
    return actuator.length_range or unknown


def _norm(actuator: Actuator) -> float:
    """The bound of the norm of a rotation servo [N m]."""
    bounds = actuator.force_range if actuator.gain == "rotation" else None
    return np.inf if bounds is None else bounds[1]


def _places_in_state(actuators: Sequence[Actuator]) -> dict[str, Array]:
    """The places of each actuator's activations in State.activation."""
    first = np.cumsum([0, *(a.activation_size for a in actuators)], dtype=np.int64)
    sizes = np.diff(first)
    slots = np.full((len(actuators), 5), -1, np.int64)
    for row, actuator, start in zip(slots, actuators, first[:-1], strict=True):
        has = np.array(actuator.states)
        row[has] = start + np.arange(np.count_nonzero(has))
    return {
        "activation_first": np.where(sizes > 0, first[:-1], -1),
        "activation_last": np.where(sizes > 0, first[1:] - 1, -2),
        "activation_slot": slots,
    }


def _controls(actuators: Sequence[Actuator]) -> dict[str, Array]:
    """The places of the controls of each force; an unnamed control is the first of its kind."""
    first = np.cumsum([0, *(len(a.inputs) for a in actuators)], dtype=np.int64)[:-1]
    forces = [len(actuator.outputs) for actuator in actuators]
    roles = np.full((len(actuators), len(_INPUTS)), -1, np.int64)
    for row, actuator, start in zip(roles, actuators, first, strict=True):
        for n, name in enumerate(actuator.inputs):
            row[_INPUTS.index(name) if name in _INPUTS else n] = start + n
    return {"control_first": np.repeat(first, forces), "control_role": np.repeat(roles, forces, axis=0)}


_SERVO_DYNAMICS = ("none", "integrator", "filter", "filterexact")


def _period(actuator: Actuator, places: Places, tendons: Mapping[str, Array]) -> float:
    """The period of a servo's setpoint: a full turn if its length is an angle on a circle, else 0.

    The lengths of position and PID servos are angles on ball joints and on a site's rotation about a reference site, as
    in MuJoCo, and on a loop's rotation.
    """
    if actuator.transmission == "tendon":
        first = tendons["tendon_path"][places.tendons[actuator.target]]
        turns = tendons["path_kind"][first] == PATH_LOOP and tendons["path_value"][first] >= 3
        return 2 * math.pi if turns else 0.0
    gear = np.array(actuator.gear + (0.0,) * (6 - len(actuator.gear)))
    gain, bias = (*actuator.gain_parameters, 0.0), (*actuator.bias_parameters, 0.0, 0.0)
    servo = actuator.gain == "fixed" and actuator.bias == "affine" and gain[0] == -bias[1]
    if not (servo and actuator.dynamics in _SERVO_DYNAMICS) and actuator.gain != "pid":
        return 0.0
    if actuator.transmission == "site" and actuator.reference and not gear[:3].any():
        return float(2 * np.pi * np.linalg.norm(gear[3:]))
    if actuator.transmission in ("joint", "jointinparent"):
        model = places.compiled.model
        if model.joint_type[model.dof_body[_target(actuator, places)]] == BALL:
            return float(2 * np.pi * np.linalg.norm(gear[:3]))
    return 0.0


def _linear(
    actuator: Actuator, dofs: Sequence[int], ranges: Mapping[str, Array], places: Places, tendons: Mapping[str, Array]
) -> int:
    """The way in which a force enters a semi-implicit step: EXPLICIT, IN_MATRIX or BY_ROW. A force that is a row cannot
    be part of a bounded sum."""
    if actuator.gain not in ("fixed", "affine", "pid", "rotation") or actuator.bias not in ("none", "affine"):
        return EXPLICIT
    if actuator.transmission in ("joint", "jointinparent") and len(dofs) == 1:
        return IN_MATRIX
    if actuator.transmission == "body":
        return EXPLICIT
    if actuator.transmission == "tendon":
        t = _target(actuator, places)
        if tendons["path_kind"][tendons["tendon_path"][t]] == PATH_LOOP:
            return BY_ROW
        if np.isfinite(tendons["tendon_force_lower"][t]) or np.isfinite(tendons["tendon_force_upper"][t]):
            return EXPLICIT
    bounded = np.isfinite(ranges["dof_force_lower"][dofs]) | np.isfinite(ranges["dof_force_upper"][dofs])
    return EXPLICIT if not dofs or bounded.any() else BY_ROW


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
    """The bounds of the sum of each joint's actuators (MuJoCo's actuatorfrcrange)."""
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
    """The dofs on which an actuator's force can act."""
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
