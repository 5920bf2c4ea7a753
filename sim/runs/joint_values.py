"""Values by joint as arrays along the dofs: drives, limits, targets that hold, and notes on joints left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Labels, Model, following_dofs
from artsim.sim.articulation.regularity import dof_mobilities
from artsim.sim.equipment.arrays import Equipped
from artsim.sim.foundation.errors import SettingError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.registry import SOLVERS, SWEEPING
from artsim.sim.runs.compliances import common_erp
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.setting import MAX_STEPS
from artsim.sim.runs.settings import Value

TRACKING_FREQUENCY = 20.0  # [rad/s] natural frequency of the critically damped errors of computed torque


def values_by_name(given: Value, names: tuple[str, ...], what: str, kind: str, start: Sequence[float]) -> Real:
    """The start values (names,) with the given ones in their places."""
    values = np.array(start if len(start) else np.zeros(len(names)), float)
    for name, value in given.items():
        if name not in names:
            raise SettingError(f"{what}: {name!r} is no {kind} of this robot{nearest(name, names)}", what, name)
        if not math.isfinite(value):
            raise SettingError(f"{what}: {name} is {value}, want a finite number", what, name)
        values[names.index(name)] = value
    return values


def dof_values(given: Value, labels: Labels, what: str, default: Real) -> Real:
    values = np.array(default, float)
    for name, value in given.items():
        if name not in labels.dofs:
            raise SettingError(f"{what}: {name!r} is not a joint of this robot{nearest(name, labels.dofs)}", what, name)
        if not math.isfinite(value):
            raise SettingError(f"{what}: {name} is {value}, want a finite number", what, name)
        values[labels.dofs.index(name)] = value
    return values


def joint_values(given: Value, robot: Robot, what: str, default: Real) -> Real:
    """Values by dof name as (nv,); "*" sets every independent joint of one dof."""
    values = np.array(default, float)
    if "*" in given:
        values[drivable(robot.model)] = given["*"]
    named = {name: value for name, value in given.items() if name != "*"}
    values = dof_values(named, robot.labels, what, values)
    if np.any(values < 0):
        name = robot.labels.dofs[int(np.argmin(values))]
        raise SettingError(f"{what}: {name} is {values.min()}, want a number from 0", what, name)
    return values


def position_limits(robot: Robot, config: RunConfig) -> dict[str, Array]:
    """The limits of coordinates that the configuration gives, for every axis of a joint, and the limits' softness."""
    model, labels = robot.model, robot.labels
    changes: dict[str, Array] = {}
    free = sorted(following_dofs(model)) if config.ignore_follower_limits else []
    for setting, name, unlimited in (("lower_limit", "lower", -math.inf), ("upper_limit", "upper", math.inf)):
        limits = np.array(getattr(model, name))
        limits[free] = unlimited
        if free or getattr(config, setting):
            changes[name] = dof_values(getattr(config, setting), labels, setting, limits)
    for setting in ("limit_stiffness", "limit_damping"):
        if given := getattr(config, setting):
            changes[setting] = joint_values(given, robot, setting, getattr(model, setting))
    for setting in ("lower_limit", "upper_limit", "limit_stiffness", "limit_damping"):
        for name in getattr(config, setting):
            if name != "*" and model.dof_coord[labels.dofs.index(name)] < 0:
                told = f"{setting}: {name!r} turns without a coordinate: give its joint --swing-limit"
                raise SettingError(told, setting, name)
    lower, upper = (changes.get(name, getattr(model, name)) for name in ("lower", "upper"))
    crossed = (lower > upper) & (model.dof_coord >= 0)
    if changes and crossed.any():
        k = int(np.argmax(crossed))
        told = f"lower_limit: {labels.dofs[k]} is {lower[k]:g}, above its upper limit of {upper[k]:g}"
        raise SettingError(told, "lower_limit", labels.dofs[k])
    stiffness, damping = (changes.get(f"limit_{name}", np.zeros(robot.nv)) for name in ("stiffness", "damping"))
    if ((damping > 0) & (stiffness <= 0)).any():
        k = int(np.argmax((damping > 0) & (stiffness <= 0)))
        told = f"limit_damping: {labels.dofs[k]} has no --limit-stiffness: its limits are hard"
        raise SettingError(told, "limit_damping", labels.dofs[k])
    return changes


def drivable(model: Model) -> list[int]:
    """The dofs that can have a drive: joints of one dof that follow no other, by elimination or by rows."""
    count = np.diff(model.body_dof)
    followers = following_dofs(model)
    return [int(k) for k in model.independent_dof if count[model.dof_body[k]] == 1 and k not in followers]


def _scheme(config: RunConfig) -> Array:
    """α and β of the scheme, and the place in the step where the bias acts. Without α and β, α is -1 and springs have
    the weights of joints' springs."""
    alpha, beta = config.scheme_alpha, config.scheme_beta
    if alpha is None:
        sweeping = SWEEPING[SOLVERS[config.solver].number]  # implicit Euler, as their drives
        alpha = 1.0 if sweeping or beta is not None else -1.0
    return np.array([alpha, 1.0 if beta is None else beta, INTEGRATORS[config.integrator].midway], float)


_GAINS = ("stiffness", "damping", "drive_limit", "friction_coefficient", "limit_stiffness", "limit_damping")


def left_out_by_all(robot: Robot, config: RunConfig) -> list[str]:
    """A note on the joints that one value for all does not reach: those that follow others or have several dofs.

    Free bases, which nobody drives, are not told.
    """
    given = [name for name in _GAINS if "*" in getattr(config, name)]
    if not given:
        return []
    model, labels = robot.model, robot.labels
    driven, followers = set(drivable(model)), following_dofs(model)
    told = []
    for name, dofs in labels.joint_dofs.items():
        own = range(dofs.start, dofs.stop)
        body = int(model.dof_body[dofs.start]) if own else 0
        named = all(any(labels.dofs[k] in getattr(config, setting) for k in own) for setting in given)
        of_base = model.joint_type[body] == FREE and model.body_parent[body] == 0
        if own and not driven.intersection(own) and not named and not of_base:
            told.append(f"{name} ({'follows another' if followers.issuperset(own) else f'{len(own)} dofs'})")
    if not told:
        return []
    options = " and ".join(f"--{name.replace('_', '-')}" for name in given)
    more = f" and {len(told) - 4} more" if len(told) > 4 else ""
    return [
        f"one value of {options} is for joints of one dof that follow no other, not for {', '.join(told[:4])}{more}"
    ]


def drive_inputs(robot: Robot, config: RunConfig, dt: float) -> dict[str, Array]:
    model = robot.model
    zero = np.zeros(robot.nv)
    drive_stiffness = joint_values(config.stiffness, robot, "stiffness", zero)
    drive_damping = joint_values(config.damping, robot, "damping", zero)
    limit = joint_values(config.drive_limit, robot, "drive_limit", np.full(robot.nv, np.inf))
    limit = np.where(_chosen(config.drive_limit_kind, "impulse", "force", robot), limit / dt, limit)
    driven = (drive_stiffness > 0) | (drive_damping > 0)
    accelerating = _chosen(config.drive_mode, "acceleration", "force", robot)
    gain = TRACKING_FREQUENCY
    resting = min(config.sleep_time / dt, MAX_STEPS)  # steps
    return {
        "time_step": np.array([dt]),
        "solver": np.array([SOLVERS[config.solver].number]),
        "iterations": np.array([config.iterations]),
        "recovery": np.array([common_erp(config)], float),
        "sweeping": np.array(
            [config.relaxation, config.mass_splitting, config.velocity_iterations, config.error_step == "sub-step"],
            float,
        ),
        "controller": np.array([config.built_in.law]),
        "controller_gains": np.array([gain**2, 2 * gain]),
        "drive_stiffness": drive_stiffness,
        "drive_damping": drive_damping,
        "drive_limit": np.minimum(limit, model.effort),
        "scheme": _scheme(config),
        "sleep": np.array([config.sleep_threshold, max(1, math.ceil(resting * (1 - 1e-12)))]),
        "drive_acceleration": (driven & accelerating).astype(np.int64),
    }


def _chosen(given: str | Value | Mapping[str, str], choice: str, default: str, robot: Robot) -> Array:
    """(nv,) True for dofs with this choice; "*" sets every independent joint of one dof, others have the default."""
    if isinstance(given, str):
        return np.full(robot.nv, given == choice)
    chosen = np.full(robot.nv, default == choice)
    if "*" in given:
        chosen[drivable(robot.model)] = given["*"] == choice
    for name, value in given.items():
        if name != "*":
            chosen[robot.dofs.index(name)] = value == choice
    return chosen


def held_places(model: Model, qpos: Real) -> Real:
    """Targets (nv,) that hold the initial position: coordinates, and rotation vectors of ball and free joints."""
    hold = np.array([qpos[c] if c >= 0 else 0.0 for c in model.dof_coord])
    for i in range(1, len(model.body_parent)):
        if model.joint_type[i] in (BALL, FREE):
            w, *turn = (float(value) for value in qpos[model.body_coord[i + 1] - 4 : model.body_coord[i + 1]])
            sine = math.hypot(*turn)
            angle = 2.0 * math.atan2(math.copysign(sine, w), abs(w))
            hold[model.body_dof[i + 1] - 3 : model.body_dof[i + 1]] = np.array(turn) * (
                angle / sine if sine > 0 else 2.0
            )
    return hold


def mobilities(robot: Robot, inputs: Mapping[str, Array], equipped: Equipped | None) -> Array:
    """(M⁻¹)_kk (nv,) in the pose of the file; zero for a robot without springs and drives."""
    model = robot.model
    springs = model.stiffness + model.limit_stiffness + inputs["drive_stiffness"]
    if not springs.any() and not (model.row_compliance > 0.0).any() and equipped is None:
        return np.zeros(robot.nv)
    return dof_mobilities(robot.compiled)
