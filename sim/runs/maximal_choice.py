"""Chooses the scheme of a run in maximal coordinates, and refuses by name features that such runs lack."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import D_MIN, Model
from artsim.sim.equipment.arrays import Equipped
from artsim.sim.foundation.errors import SettingError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import Touching
from artsim.sim.maximal.loops import loop_sizes
from artsim.sim.maximal.table import Tuning
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.run_records import COMPUTED_TORQUE
from artsim.sim.runs.configuration import RunConfig

_OF_ROWS = ("compliance", "coupling_erp")


def with_scheme(
    articulation: Articulation,
    config: RunConfig,
    robot: Robot,
    equipped: Equipped | None,
    touching: Touching | None,
    delayed: bool,
) -> RunConfig:
    """Resolve scheme, α and β of the configuration; it is returned unchanged for joint coordinates.

    Raises UsageError: Baumgarte's scheme without maximal coordinates, invalid factors, and features that maximal
    coordinates lack.
    """
    given = {"scheme_alpha": config.scheme_alpha, "scheme_beta": config.scheme_beta}
    own = {"constraint_alpha": config.constraint_alpha, "constraint_beta": config.constraint_beta}
    if not config.is_maximal:
        if config.scheme == "baumgarte":
            raise UsageError("--scheme baumgarte is for --coordinates maximal")
        if tuned := next((name for name, values in own.items() if values), None):
            raise UsageError(f"--{tuned.replace('_', '-')} is for --coordinates maximal")
        for name, value in given.items():
            if value is not None and not 0 < value <= 1:
                raise UsageError(f"{name} is {value}, want a share above 0 and up to 1")
        return config
    _refuse_unservable(articulation, config, robot, equipped, touching, delayed)
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
    for name, values in own.items():
        if values and scheme != "baumgarte":
            raise UsageError(f"{name} is for --scheme baumgarte; the implicit scheme has one α and one β for all")
        for constraint, value in values.items():
            if not (math.isfinite(value) and value >= 0):
                raise SettingError(
                    f"{name} of {constraint!r} is {value}, want a finite number from 0", name, constraint
                )
    return replace(config, scheme=scheme, scheme_alpha=alpha, scheme_beta=beta)


def tuning_of(robot: Robot, config: RunConfig, equipped: Equipped | None, held: Array) -> Tuning:
    """α and β of every hard constraint; held: the lines that joints hold.

    A joint's name stands for the directions that it holds and for a coupling by which it follows; other names are those
    of loops.
    """
    model, labels = robot.model, robot.labels
    pairs: dict[str, list[float | None]] = {}
    for n, (values, general) in enumerate(
        ((config.constraint_alpha, config.scheme_alpha), (config.constraint_beta, config.scheme_beta))
    ):
        for name, value in values.items():
            pairs.setdefault(name, [config.scheme_alpha, config.scheme_beta])[n] = value
        assert general is not None
    joint_of = {k: name for name, dofs in labels.joint_dofs.items() for k in range(dofs.start, dofs.stop)}
    body_joint = {int(model.dof_body[k]): name for k, name in joint_of.items()}
    arrays, names = (None, None) if equipped is None else (equipped.arrays, equipped.labels)
    sizes = [] if arrays is None else loop_sizes(arrays).tolist()

    def of(constraints: list[str]) -> Real:
        general = [config.scheme_alpha, config.scheme_beta]
        return np.array([pairs.get(name, general) for name in constraints], np.float64).reshape(-1, 2)

    return Tuning(
        of([body_joint.get(line // 6 + 1, "") for line in held.tolist()]),
        of([joint_of[k] for k in model.coupling_follower.tolist()]),
        of([joint_of[k] for k in model.row_follower.tolist()]),
        of([] if names is None else [name for name, size in zip(names.loops, sizes, strict=True) for _ in range(size)]),
    )


def default_factors(scheme: str, h: float) -> tuple[float, float]:
    """The default α and β of a scheme at time step h [s].

    Baumgarte: after a step of semi-implicit Euler the error obeys C⁺ = C + h Ċ⁺, Ċ⁺ = (1 - α h) Ċ - β h C. Both roots
    are r for α h = 1 - r², β h² = (1 - r)², the critically damped pairs; r = 0 is chosen, which removes an error in
    two steps (gaps of a pendulum and of a four-bar at 4 ms: a third of those at r = 1/2, energies no worse).
    """
    return (1.0 / h, 1.0 / h**2) if scheme == "baumgarte" else (1.0, 1.0)


def _refuse_unservable(
    articulation: Articulation,
    config: RunConfig,
    robot: Robot,
    equipped: Equipped | None,
    touching: Touching | None,
    delayed: bool,
) -> None:
    """Raise UsageError for the first force or constraint of the robot without rows in maximal coordinates."""
    what = _option(config, robot.model) or _of_world(articulation) or _of_loops(articulation)
    what = what or _of_robot(config, robot, equipped)
    if not what and delayed:
        what = "delays"
    if not what and touching is not None and config.continuous:
        what = "--continuous"
    if what:
        raise UsageError(f"--coordinates maximal has nothing for {what}; use --coordinates reduced")


def _option(config: RunConfig, model: Model) -> str:
    if not INTEGRATORS[config.integrator].maximal:
        return f"integrator {config.integrator!r}"
    for name in ("link_damping", "link_velocity_limit", "com_velocity_limit", "sleep_threshold", *_OF_ROWS):
        if getattr(config, name):
            return f"--{name.replace('_', '-')}"
    if config.solver != RunConfig.solver:
        return f"solver {config.solver!r} (it has its own)"
    if (model.limit_stiffness > 0).any():
        return "limits with a stiffness"
    if len(model.axis_dof):
        return "a coupling of a ball's axis"
    if (model.row_compliance >= 0).any():
        return "a coupling with a compliance"
    if (model.row_impedance[:, D_MIN] >= 0).any() if len(model.row_impedance) else False:
        return "a joint equality that gives way (solref)"
    return ""


def _of_world(articulation: Articulation) -> str:
    if articulation.options.density or articulation.options.viscosity:
        return "the medium (density, viscosity)"
    return ""


def _of_loops(articulation: Articulation) -> str:
    for loop in articulation.loops:
        if loop.active and loop.softness.reference is not None:
            return f"the softness (solref) of loop {loop.name!r}"
        if loop.active and (loop.spring is not None or loop.kind in ("hinge", "joint")):
            return f"loop {loop.name!r}, which is a {'spring' if loop.spring else loop.kind}"
    return ""


def _of_robot(config: RunConfig, robot: Robot, equipped: Equipped | None) -> str:
    """The first part of a robot that only the tests have in maximal coordinates: tests/maximal/oracle."""
    m = robot.model
    if config.built_in.law == COMPUTED_TORQUE:
        return f"controller {config.controller!r}"
    limited = ((m.dof_coord < 0) & np.isfinite(m.upper)) | (m.dof_turn >= 0)
    if limited.any():
        return f"the range of joint {_joint_of(robot, int(np.argmax(limited)))!r}"
    return "" if equipped is None else _of_equipment(equipped, robot)


def _joint_of(robot: Robot, dof: int) -> str:
    """The name of a dof's joint."""
    return next(name for name, dofs in robot.labels.joint_dofs.items() if dofs.start <= dof < dofs.stop)


def _of_equipment(equipped: Equipped, robot: Robot) -> str:
    """Actuators, tendons, and passive forces of joints beyond linear springs and dampers of one coordinate."""
    e, m = equipped.arrays, robot.model
    for kind, names in (("actuator", equipped.labels.actuators), ("tendon", equipped.labels.tendons)):
        if names:
            return f"{kind} {names[0]!r}"
    if e.compensated_mass.any():
        return "gravity compensation of bodies (gravcomp)"
    for kind, dofs in (("spring", m.body_dof[e.spring_body]), ("damping", e.damper_dof)):
        if len(dofs):
            return f"the {kind} of joint {_joint_of(robot, int(dofs[0]))!r}, which is not linear in one coordinate"
    return ""
