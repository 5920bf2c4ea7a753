"""Refuses, before a run starts, features that its integrator, solver, controller or coordinates do not serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import PATH_CYLINDER, PATH_SPHERE, REFERENCE_K, Equipped
from artsim.sim.foundation.errors import SettingError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.geometry.contacts import Touching
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.integration import (
    DEFAULT,
    IMPLICITFAST,
    INTEGRATORS,
    ONE_SIDED_OPTIONS,
    SEMI_IMPLICIT_EULER,
    Integrator,
    asked_for,
)
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.run_data.run_records import NOT_CONVEX
from artsim.sim.run_data.scratch import CROWD_TREES, may_crowd
from artsim.sim.runs.compliances import needs_implicit_rows, refuse_unservable_weights
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.implicit_choice import refuse_idle_radius
from artsim.sim.runs.settings import CONVEX

# settings that steps of the convex law, which are solved once, do not serve
_NOT_CONVEX_OPTIONS = (
    "velocity_limits",
    "link_velocity_limit",
    "com_velocity_limit",
    "continuous",
    "restitution",
    "sleep_threshold",
)


def integrator_for(articulation: Articulation, config: RunConfig, notes: list[str]) -> Integrator:
    """The integrator that the file asks for if it serves the run, else the default with a note that says why."""
    if config.contact_law == CONVEX:
        return _convex_integrator(articulation, notes)
    wanted, default = asked_for(articulation.options.integrator), default_for(config)
    if wanted is DEFAULT or config.accuracy is not None:
        return default
    if config.is_maximal and not wanted.maximal:
        notes.append(f"the file wants {wanted.asked_for}; maximal coordinates move by {default.name}")
        return default
    reason = "" if wanted.one_sided else _one_sided_option(config) or _one_sided_part(articulation)
    reason = reason or ("" if wanted.axis_couplings else _axis_coupling(articulation))
    reason = reason or ("" if wanted.inertial_drives else _inertial_drive(articulation))
    reason = reason or ("" if wanted.compliances else needs_implicit_rows(articulation, config))
    if reason:
        _note_rows(wanted, reason, default, notes)
        return default
    return wanted


def _convex_integrator(articulation: Articulation, notes: list[str]) -> Integrator:
    """The integrator of runs under the convex law: that of the file, or the nearest with a note."""
    name = articulation.options.integrator or "Euler"
    wanted = asked_for(name, convex=True)
    if name == "implicit":  # which has the derivatives of Coriolis forces besides
        wanted = IMPLICITFAST
    if wanted.asked_for != name:
        notes.append(f"the file wants {name}, which --contact-law convex lacks: {wanted.name} is used")
    return wanted


def _refuse_unservable_law(robot: Robot, config: RunConfig) -> None:
    """Raise UsageError for settings and scenes that the convex law does not serve, or settings that it alone
    serves."""
    integrator = INTEGRATORS[config.integrator]
    if config.contact_law != CONVEX:
        if integrator.convex != NOT_CONVEX:
            raise UsageError(f"integrator {integrator.name!r} is for --contact-law convex")
        return
    if config.is_maximal or config.solver != "newton":
        raise UsageError("--contact-law convex is for --solver newton and --coordinates reduced")
    if integrator.convex == NOT_CONVEX:
        served = "euler, implicitfast and runge-kutta"
        raise UsageError(f"--contact-law convex is for integrators {served}, not {integrator.name!r}")
    given = [name for name in _NOT_CONVEX_OPTIONS if getattr(config, name)]
    if given:
        raise UsageError(f"--contact-law convex does not serve --{given[0].replace('_', '-')}")
    if may_crowd(robot.model):  # crowds are swept by Coulomb's law
        raise UsageError(f"--contact-law convex is for scenes of up to {CROWD_TREES} robots and loose bodies")


def default_for(config: RunConfig) -> Integrator:
    """The integrator of runs whose file asks for none: of those that serve the coordinates and the solver the best."""
    served = DEFAULT.maximal if config.is_maximal else DEFAULT.sweeping or not SOLVERS[config.solver].sweeping
    return DEFAULT if served else SEMI_IMPLICIT_EULER


def with_rows_for_contacts(config: RunConfig, notes: list[str]) -> RunConfig:
    """Replace an integrator that the user did not choose by the default one if contacts need it."""
    integrator = INTEGRATORS[config.integrator]
    if integrator.one_sided:
        return config
    default = default_for(config)
    _note_rows(integrator, "contacts", default, notes)
    return replace(config, integrator=default.name)


def _note_rows(wanted: Integrator, reason: str, default: Integrator, notes: list[str]) -> None:
    notes.append(f"the file wants {wanted.asked_for}, which has no rows for {reason}: {default.name} is used")


def _one_sided_option(config: RunConfig) -> str:
    """The first option that needs one-sided rows, or an empty string."""
    return next((f"--{name.replace('_', '-')}" for name in ONE_SIDED_OPTIONS if getattr(config, name)), "")


def _one_sided_part(articulation: Articulation) -> str:
    """The first part of the robot that needs one-sided rows, or an empty string."""
    for joint in articulation.joints:
        if joint.friction or joint.friction_coefficient:
            return f"the friction of joint {joint.name!r}"
        if joint.lower is not None or joint.upper is not None or joint.turning.given:
            return f"the limits of joint {joint.name!r}"
    for tendon in articulation.tendons:
        if tendon.friction or tendon.lower is not None or tendon.upper is not None:
            return f"the limits or friction of tendon {tendon.name!r}"
    return ""


def refuse_unservable(
    robot: Robot, config: RunConfig, equipped: Equipped | None, touching: Touching | None = None
) -> None:
    """Raise UsageError for features that the integrator or the solver does not serve, if known before the run."""
    _refuse_unservable_law(robot, config)
    if config.link_damping and not SOLVERS[config.solver].mass_matrix:
        raise UsageError(f"solver {config.solver!r} forms no mass matrix, which --link-damping needs; use newton")
    refuse_unservable_weights(robot.articulation, config)
    refuse_idle_radius(config)
    for name, default, solvers in (("velocity_iterations", 0, ("pgs", "tgs")), ("error_step", "step", ("tgs",))):
        if getattr(config, name) != default and (config.is_maximal or config.solver not in solvers):
            raise UsageError(f"--{name.replace('_', '-')} is for --solver {' and '.join(solvers)}, not {config.solver}")
    integrator, served = INTEGRATORS[config.integrator], default_for(config)
    if SOLVERS[config.solver].sweeping and not integrator.sweeping and not config.is_maximal:
        raise UsageError(f"integrator {integrator.name!r} is not for solver {config.solver!r}; use {served.name}")
    if "delassus" in config.record and (config.is_maximal or not integrator.one_sided):
        what = "--coordinates maximal" if config.is_maximal else f"integrator {integrator.name!r}"
        instead = "--coordinates reduced" if config.is_maximal else served.name
        raise UsageError(f"delassus cannot be recorded with {what}, which has other rows; use {instead}")
    if not integrator.one_sided and (reason := _one_sided_reason(robot, config, equipped, touching)):
        raise UsageError(
            f"integrator {integrator.name!r} has no inequality rows, which {reason} needs; use {served.name}"
        )
    tied = "" if integrator.axis_couplings else _axis_coupling(robot.articulation)
    if tied:
        raise UsageError(f"integrator {integrator.name!r} cannot hold {tied}; use {served.name}")
    inertial = "" if integrator.inertial_drives else _inertial_drive(robot.articulation)
    if inertial:
        raise UsageError(f"integrator {integrator.name!r} has no acceleration drive of {inertial}; use {served.name}")
    wrapped = None if equipped is None or integrator.wrapped_equalities else _wrapped_equality(equipped)
    if wrapped:
        raise UsageError(
            f"integrator {integrator.name!r} cannot hold the equality of tendon {wrapped!r}, which wraps around a "
            f"geom; use {served.name}"
        )


def _one_sided_reason(robot: Robot, config: RunConfig, equipped: Equipped | None, touching: Touching | None) -> str:
    """The part of the run that has one-sided rows in every step, or an empty string. Limits do not count, as they may
    never be reached."""
    model = robot.model
    rubbing = (model.friction > 0) | (model.friction_coefficient > 0)
    if rubbing.any():
        return f"joint friction ({robot.dofs[int(np.argmax(rubbing))]})"
    if equipped is not None and np.any(equipped.arrays.tendon_friction > 0):
        t = int(np.argmax(equipped.arrays.tendon_friction > 0))
        return f"the friction of tendon {equipped.labels.tendons[t]!r}"
    return _one_sided_option(config) or ("contacts (--no-contacts)" if touching is not None else "")


def _inertial_drive(articulation: Articulation) -> str:
    """The first loop whose drive's gains are accelerations, or an empty string."""
    return next((f"loop {actuator.name!r}" for actuator in articulation.actuators if actuator.by_inertia), "")


def _axis_coupling(articulation: Articulation) -> str:
    """The first coupling of an axis of a ball, or an empty string."""
    return next((f"the coupling of {c.follower!r} with a ball's axis" for c in articulation.couplings if c.axis), "")


def _wrapped_equality(equipped: Equipped) -> str | None:
    """The name of a tendon that wraps around a geom and has a hard equality, or None."""
    e = equipped.arrays
    hard = e.tendon_row_reference[:, REFERENCE_K] < 0
    held = np.concatenate([e.tendon_row_follower[hard], e.tendon_row_leader[hard]])
    for t in held[held >= 0]:
        if np.isin(e.path_kind[e.tendon_path[t] : e.tendon_path[t + 1]], (PATH_SPHERE, PATH_CYLINDER)).any():
            name: str = equipped.labels.tendons[t]
            return name
    return None


def needs_rows(robot: Robot, config: RunConfig, equipped: Equipped | None) -> str:
    """The part of a run for which steps need rows even where no limit and no contact acts, or an empty string."""
    reason = _one_sided_reason(robot, config, equipped, None) or needs_implicit_rows(robot.articulation, config)
    reason = reason or _axis_coupling(robot.articulation) or _inertial_drive(robot.articulation)
    return reason or ("" if equipped is None else _wrapped_equality(equipped) or "")


def refuse_beside_accuracy(config: RunConfig, delayed: bool) -> None:
    """Raise UsageError for what steps chosen by accuracy do not serve; `delayed`: controls or sensors are."""
    if config.accuracy is None:
        return
    names = (DEFAULT.name, SEMI_IMPLICIT_EULER.name)
    reasons = {
        "--coordinates maximal": config.is_maximal,
        "--contact-law convex": config.contact_law == CONVEX,
        f"--integrator {config.integrator}": config.integrator not in names,
        f"--solver {config.solver}": config.solver != "newton",
        "--sleep-threshold": config.sleep_threshold > 0,
        "--coupling-erp": bool(config.coupling_erp),
        "--scheme-beta": config.scheme_beta not in (None, 1.0),
        "controls and sensors with a delay": delayed,
        "drive limits that are impulses": "impulse" in _each(config.drive_limit_kind),
    }
    if unserved := next((name for name, given in reasons.items() if given), ""):
        raise UsageError(f"--accuracy chooses the length of steps, on which {unserved} depends; leave one of them out")


def _each(value: str | Mapping[str, str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else (*value.values(),)


NEEDS_COMPUTED_TORQUE = "needs --controller computed-torque"


def refuse_idle_targets(config: RunConfig, robot: Robot, inputs: Mapping[str, Array], target: Array) -> None:
    """Raise UsageError for targets, and target accelerations, that no drive or controller follows. Targets of followers
    that agree with their leaders' are accepted."""
    labels = robot.labels
    for name in config.target_acceleration:
        dof = labels.dofs.index(name)
        body = int(robot.model.dof_body[dof])
        why = ""
        if not config.built_in.follows:
            why = NEEDS_COMPUTED_TORQUE
        elif dof not in robot.model.independent_dof or np.diff(robot.model.body_dof)[body] > 1:
            why = "has no effect: computed torque moves joints of one dof that follow no other"
        if why:
            raise SettingError(f"acceleration of {name!r} {why}", "target_acceleration", name)
    if config.built_in.follows:
        return
    driven = (inputs["drive_stiffness"] > 0) | (inputs["drive_damping"] > 0)
    driven[[*led_targets(robot.model, target[None])]] = True
    for name in config.target:
        if config.built_in.holds:
            raise SettingError(
                f"controller {config.controller!r} keeps the start; for a target of {name!r} use computed-torque",
                "target",
                name,
            )
        if not driven[labels.dofs.index(name)]:
            raise SettingError(f"target of {name!r} {undriven(name)}", "target", name)


def led_targets(model: Model, target: Array) -> set[int]:
    """The dofs that follow others and whose targets (rows, nv) agree with their leaders' by the couplings."""
    found = set()
    for followers, leaders, polynomials in (
        (model.coupling_follower, model.coupling_leader, model.coupling_polynomial),
        (model.row_follower, model.row_leader, model.row_polynomial),
    ):
        for follower, leader, p in zip(followers, leaders, polynomials, strict=True):
            x = target[:, leader] if leader >= 0 else np.zeros(len(target))
            if np.allclose(target[:, follower], np.polynomial.polynomial.polyval(x, p), rtol=1e-9, atol=1e-9):
                found.add(int(follower))
    return found


def undriven(name: str) -> str:
    """The words about a target that no drive follows."""
    return f"needs a drive: give --stiffness {name}=… and --damping {name}=…"


def refuse_turning_drives(config: RunConfig, robot: Robot, inputs: Mapping[str, Array]) -> None:
    """Raise UsageError for drives on rotations of ball and free joints, which maximal coordinates lack."""
    driven = (inputs["drive_stiffness"] > 0) & (robot.model.dof_coord < 0)
    if config.is_maximal and driven.any():
        name = robot.dofs[int(np.argmax(driven))]
        raise UsageError(f"--coordinates maximal has nothing for the drive of {name!r}; use --coordinates reduced")
