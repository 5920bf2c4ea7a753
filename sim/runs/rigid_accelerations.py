"""Accelerations of a robot by its own forces, with loops closed and contacts held rigidly.

Forces of joints, drives, actuators, tendons and media are evaluated as rk4 does, none implicit, on a copy of the robot
without limits, dry friction, loops and contacts. Loops, equalities of tendons and held contacts are rows J u̇ = -J̇ u
beside them, by which a = a₀ + M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ (-J a₀ - J̇ u) (Udwadia and Kalaba 1992). All in independent
coordinates u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.description import Articulation, Coupling, TurnLimits
from artsim.sim.articulation.tangent import moved
from artsim.sim.articulation.turn_limits import axis_couplings
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.rotations import Real, rotation_matrix
from artsim.sim.run_data.integration import RK4
from artsim.sim.runs.compiled_robot import compiled_robot
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.copied_steps import Starts
from artsim.sim.runs.plan import Plan, plan_run
from artsim.sim.runs.settings import FILE
from artsim.sim.runs.simulate import Simulation

_STEP = 1e-5  # [s] in which activations move
_AHEAD = 1e-3  # [s] over which J̇ is found
_CENTRAL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
_SINGULAR = 1e-10  # share of the largest singular value below which rows count as redundant
_ONE_SIDED = ("lower_limit", "upper_limit", "limit_stiffness", "limit_damping", "swing_limit", "twist_limit")
_OFF = ("velocity_limits", "ignore_follower_limits", "continuous", "ground", "self_collide")
_NONE = ("link_velocity_limit", "compliance", "compliance_damping", "joint_friction", "friction_coefficient")


class Held(NamedTuple):
    """A contact that is held: a point fixed to two links, whose relative velocity along directions is 0."""

    links: tuple[int, int]  # -1: the world
    points: Real  # (2, 3) in the axes of the links, of their origins; of the world: in its own [m]
    directions: Real  # (n, 3) in the axes of the first link


class Accelerations:
    """The accelerations (n, nu) of the independent dofs of a plan's robot, and the rates of activations."""

    def __init__(self, plan: Plan, held: Sequence[Held] = ()) -> None:
        if axis_couplings(plan.robot.model):
            raise UsageError("linearize: couplings of axes of ball joints have no linear model yet")
        self.plan, self.held = plan, tuple(held)
        self._unbound = _unbound(plan)
        self.robot = self._unbound.robot
        if self.robot.coords != plan.robot.coords:
            raise UsageError("linearize: axes that equal limits lock have no linear model yet")
        hard = replace(plan.robot.articulation, couplings=_hard_couplings(plan.robot.articulation))
        self._tied = compiled_robot(hard, self._unbound.config)
        self._rows = self._tied.constraints(reduced=True) if _is_tied(plan.robot.articulation) else ()
        rows = Controls.held(**{name: getattr(self._unbound, name) for name in VALUES})
        self._simulation = Simulation(self._unbound, rows)
        self._snapshot = self._simulation.save()

    @property
    def constrained(self) -> bool:
        """True if loops, equalities or contacts hold the robot."""
        return bool(self._rows) or bool(self.held)

    def of(self, starts: Starts) -> tuple[Real, Real]:
        """Accelerations (n, nu) and rates of activations (n, nact) [1/s] at n states."""
        free, rates = self._free(starts)
        free = free[:, self.robot.model.independent_dof]
        if not self.constrained:
            return free, rates
        u = starts.qvel[:, self.robot.model.independent_dof]
        J = self.rows(starts.qpos)
        drift = np.zeros(J.shape[:2])
        if u.any():
            for ahead, weight in _CENTRAL:
                there = moved(self.robot.model, starts.qpos, ahead * _AHEAD * starts.qvel)
                drift += weight / _AHEAD * np.einsum("nij,nj->ni", self.rows(there), u)
        J, wanted = _independent(J, -np.einsum("nij,nj->ni", J, free) - drift)
        M = self._tied.compute(starts.qpos, quantities=["mass_matrix"], reduced=True)["mass_matrix"]
        response = np.linalg.solve(M, np.swapaxes(J, 1, 2))
        inverse = np.linalg.pinv(J @ response, rcond=_SINGULAR, hermitian=True)
        return free + np.einsum("nij,nj->ni", response @ inverse, wanted), rates

    def gains(self, qpos: Real) -> Real:
        """G (nv, nu) of v = G u at one configuration, couplings eliminated."""
        return self._tied.compute(qpos, quantities=["coupling_matrix"])["coupling_matrix"]

    def rows(self, qpos: Real) -> Real:
        """J (n, m, nu): rows of loops, equalities of tendons and held contacts, which the motion keeps at 0."""
        parts = []
        if self._rows:
            found = self._tied.compute(qpos, quantities=["constraint_jacobian"], reduced=True)
            parts.append(found["constraint_jacobian"])
        if self.held:
            parts.append(self._contact_rows(qpos))
        return np.concatenate(parts, axis=1)

    def _contact_rows(self, qpos: Real) -> Real:
        names = self.robot.links
        chosen = sorted({link for held in self.held for link in held.links if link >= 0})
        found = self._tied.compute(
            qpos,
            quantities=["jacobian", "link_quaternion"],
            reduced=True,
            at="origin",
            links=[names[link] for link in chosen],
        )
        turns = rotation_matrix(np.moveaxis(found["link_quaternion"], -1, 0))
        parts = []
        for held in self.held:
            velocity: Real | float = 0.0
            directions = held.directions
            for sign, link, point in zip((-1.0, 1.0), held.links, held.points, strict=True):
                if link < 0:
                    continue
                n = chosen.index(link)
                arm = np.einsum("nij,j->ni", turns[:, n], point)
                linear, angular = found["jacobian"][:, n, :3], found["jacobian"][:, n, 3:]
                velocity = velocity + sign * (linear + np.cross(angular, arm[..., None], axisa=1, axisb=1, axisc=1))
            along = (
                directions[None]
                if held.links[0] < 0
                else directions @ np.swapaxes(turns[:, chosen.index(held.links[0])], 1, 2)
            )
            parts.append(along @ velocity)
        return np.concatenate(parts, axis=1)

    def _free(self, starts: Starts) -> tuple[Real, Real]:
        """Accelerations (n, nv) without rows, and rates of activations (n, nact)."""
        simulation, n = self._simulation, len(starts.qpos)
        accelerations = np.empty((n, self.robot.nv))
        rates = np.zeros((n, starts.activation.shape[1]))
        steps = 2 if starts.activation.shape[1] else 1
        held = {name: getattr(self._unbound, name) for name in VALUES}
        for k in range(n):
            simulation.restore(self._snapshot)
            for place, values in zip(simulation.state, starts[:3], strict=True):
                place[:] = values[k]
            for name in VALUES:
                simulation.inputs._asdict()[name][0] = starts.inputs[name][k] if name in starts.inputs else held[name]
            if not simulation.take(steps):
                list(simulation.left_blocks())
                simulation.check()
            rows = simulation.taken().rows
            accelerations[k] = rows["qacc"][0]
            if steps == 2:
                first, second, third = starts.activation[k], rows["activation"][1], simulation.state[2]
                rates[k] = (4.0 * second - 3.0 * first - third) / (2.0 * _STEP)
        return accelerations, rates


def _is_tied(articulation: Articulation) -> bool:
    return any(loop.active for loop in articulation.loops) or bool(articulation.tendon_couplings)


def _independent(J: Real, wanted: Real) -> tuple[Real, Real]:
    """Rows (n, k, nu), k up to nu, and right sides (n, k) that ask for the same as rows of which many may be redundant;
    zeros fill them up."""
    U, sizes, V = np.linalg.svd(J, full_matrices=False)
    kept = sizes > _SINGULAR * sizes.max(axis=1, keepdims=True, initial=0.0)
    share = np.where(kept, 1.0 / np.where(kept, sizes, 1.0), 0.0)
    return V * kept[..., None], share * np.einsum("nij,ni->nj", U, wanted)


def _hard_couplings(articulation: Articulation) -> tuple[Coupling, ...]:
    return tuple(
        replace(coupling, frequency=None, damping_ratio=1.0, compliance=None, erp=None)
        for coupling in articulation.couplings
    )


def _unbound(plan: Plan) -> Plan:
    """The plan of the robot without limits, dry friction, loops and contacts, in steps by which activations move."""
    found = plan.robot.articulation
    joints = tuple(
        replace(joint, turning=TurnLimits(), friction=0.0, friction_coefficient=0.0)
        if joint.lower is not None and joint.lower == joint.upper  # which locks it
        else replace(joint, lower=None, upper=None, turning=TurnLimits(), friction=0.0, friction_coefficient=0.0)
        for joint in found.joints
    )
    tendons = tuple(replace(tendon, lower=None, upper=None, friction=0.0) for tendon in found.tendons)
    loops = tuple(replace(loop, active=False) for loop in found.loops)
    couplings = _hard_couplings(found)
    free = replace(found, joints=joints, tendons=tendons, loops=loops, tendon_couplings=(), couplings=couplings)
    config = plan.config
    off: dict[str, object] = {name: {} for name in (*_ONE_SIDED, *_NONE)} | dict.fromkeys(_OFF, False)
    off |= {"contacts": False, "on_ground": None, "com_velocity_limit": None, "restitution": 0.0}
    off |= {"coupling": "exact", "coupling_frequency": None, "coupling_damping": 1.0, "coupling_erp": 0.0}
    off |= {"integrator": RK4.name, "contact_law": FILE, "cone": "auto", "solver": "newton", "coordinates": "reduced"}
    off |= {"sleep_threshold": 0.0, "dt": _STEP, "steps": 2, "every": 1, "record": ("qacc", "activation"), "push": ()}
    off |= {"scheme": "auto", "scheme_alpha": None, "scheme_beta": None, "keyframe": ""}
    off |= {"constraint_alpha": {}, "constraint_beta": {}}
    return plan_run(free, replace(config, **off))  # type: ignore[arg-type]
