"""Chooses the scheme of a run in maximal coordinates, and refuses by name what such runs do not support."""

from __future__ import annotations

import math
from dataclasses import replace

from artsim.sim.articulation.description import Articulation, Joint
from artsim.sim.articulation.model import D_MIN, Model
from artsim.sim.equipment.arrays import Equipped
from artsim.sim.foundation.errors import UsageError
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.run_records import NO_CONTROLLER
from artsim.sim.runs.configuration import RunConfig

_OF_ROWS = ("compliance", "coupling_erp")


def with_scheme(articulation: Articulation, config: RunConfig, model: Model, equipped: Equipped | None) -> RunConfig:
    """Resolve scheme, α and β of the configuration; it is returned unchanged for joint coordinates.

    Raises UsageError: Baumgarte's scheme without maximal coordinates, invalid factors, and what maximal coordinates
    lack.
    """
    given = {"scheme_alpha": config.scheme_alpha, "scheme_beta": config.scheme_beta}
    if not config.is_maximal:
        if config.scheme == "baumgarte":
            raise UsageError("--scheme baumgarte is for --coordinates maximal")
        for name, value in given.items():
            if value is not None and not 0 < value <= 1:
                raise UsageError(f"{name} is {value}, want a share above 0 and up to 1")
        return config
    _refuse_unservable(articulation, config, model, equipped)
    assert config.dt is not None
    scheme = "implicit" if config.scheme == "auto" else config.scheme
    alpha, beta = default_factors(scheme, config.dt)
    alpha = alpha if config.scheme_alpha is None else config.scheme_alpha
    beta = beta if config.scheme_beta is None else config.scheme_beta
    for name, value in (("scheme_alpha", alpha), ("scheme_beta", beta)):
        if scheme == "implicit" and not 0 < value <= 1:
            raise UsageError(f"{name} is {value}, want a share above 0 and up to 1")
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"{name} is {value}, want a finite number from 0")
    return replace(config, scheme=scheme, scheme_alpha=alpha, scheme_beta=beta)


def default_factors(scheme: str, h: float) -> tuple[float, float]:
    """The default α and β of a scheme at time step h [s].

    Baumgarte: after a step of semi-implicit Euler the error obeys C⁺ = C + h Ċ⁺, Ċ⁺ = (1 - α h) Ċ - β h C. Both roots
    are r for α h = 1 - r², β h² = (1 - r)², the critically damped pairs; r = 0 is chosen, which removes an error in
    two steps (gaps of a pendulum and of a four-bar at 4 ms: a third of those at r = 1/2, energies no worse).
    """
    return (1.0 / h, 1.0 / h**2) if scheme == "baumgarte" else (1.0, 1.0)


def _refuse_unservable(articulation: Articulation, config: RunConfig, model: Model, equipped: Equipped | None) -> None:
    """Raise UsageError for the first force or constraint of the robot without rows in maximal coordinates."""
    what = _option(config, model) or _of_joints(articulation) or _of_links(articulation)
    if not what and equipped is not None:
        what = _of_equipment(articulation, equipped)
    if what:
        raise UsageError(f"--coordinates maximal has nothing for {what}; use --coordinates reduced")


def _option(config: RunConfig, model: Model) -> str:
    if not INTEGRATORS[config.integrator].maximal:
        return f"integrator {config.integrator!r}"
    for name in ("ground", "link_damping", "link_velocity_limit", "com_velocity_limit", "sleep_threshold", *_OF_ROWS):
        if getattr(config, name):
            return f"--{name.replace('_', '-')}"
    if config.solver != RunConfig.solver:
        return f"solver {config.solver!r} (it has its own)"
    if config.built_in.law != NO_CONTROLLER:
        return f"controller {config.controller!r}"
    if len(model.axis_dof):
        return "a coupling of a ball's axis"
    if (model.row_compliance >= 0).any():
        return "a coupling with a compliance"
    if (model.row_impedance[:, D_MIN] >= 0).any() if len(model.row_impedance) else False:
        return "a joint equality that gives way (solref)"
    return ""


def _of_joints(articulation: Articulation) -> str:
    for joint in articulation.joints:
        reason = _of_joint(joint)
        if reason:
            return f"{reason} of joint {joint.name!r}"
    return ""


def _of_joint(joint: Joint) -> str:
    if joint.kind == "ball" and joint.upper is not None:
        return "the range"
    if joint.turning.given:
        return "the swing and twist limits"
    if joint.kind in ("ball", "free") and joint.stiffness:
        return "the spring"
    if any(joint.stiffness_polynomial):
        return "the polynomial spring"
    if any(joint.damping_polynomial):
        return "the polynomial damping"
    return ""


def _of_links(articulation: Articulation) -> str:
    for link in articulation.links:
        if link.gravity_compensation:
            return f"the gravity compensation of link {link.name!r}"
    if articulation.options.density or articulation.options.viscosity:
        return "the medium (density, viscosity)"
    return ""


def _of_equipment(articulation: Articulation, equipped: Equipped) -> str:
    labels = equipped.labels
    for kind, names in (("tendon", labels.tendons), ("actuator", labels.actuators), ("sensor", labels.sensors)):
        if names:
            return f"{kind} {names[0]!r}"
    for loop in articulation.loops:
        if loop.active and loop.softness.reference is not None:
            return f"the softness (solref) of loop {loop.name!r}"
        if loop.active and (loop.spring is not None or loop.kind == "hinge"):
            return f"loop {loop.name!r}, which is a {'spring' if loop.spring else 'hinge'}"
    return ""
