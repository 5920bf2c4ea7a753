"""Inverse dynamics with loops, couplings and contacts: which torques and forces produce a motion.

In independent coordinates M u̇ + b = Sᵀ τ + Jᵀ λ + Σ Jₖᵀ fₖ. What this determines is exact. Of what it leaves open the
torques of least norm are taken, then the forces of least norm: τ from the equations without λ and f, which a basis of
the left null space of [Jᵀ Jₖᵀ] takes out, then λ and f from the rest. With friction the forces of contacts lie within
their cones, by a convex programme for the least |τ|², and of those for nearly the least forces (cone_programme.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.tangent import follow_leaders, moved
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, frame_with_z, rotation_matrix
from artsim.sim.quantities.cone_programme import least_in_cones, outside

_SINGULAR = 1e-9  # share of the largest singular value below which directions count as not reached
_LEFT = 1e-8  # share of the forces that may be left without a source
_OPENS = 1e-6  # share of the accelerations by which a motion may open loops
_FORCES = 1e-4  # weight of |f|² beside |τ|² in the programme
_SLIPPERY = 1e-6  # the least coefficient of friction of a cone with an inside
_AHEAD = 1e-3  # [s] over which J̇ is found
_CENTRAL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


class Computing(Protocol):
    """The part of Robot that is needed here."""

    @property
    def model(self) -> Model: ...
    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def links(self) -> tuple[str, ...]: ...
    @property
    def dofs(self) -> tuple[str, ...]: ...
    @property
    def independent_dofs(self) -> tuple[str, ...]: ...
    @property
    def has_constraints(self) -> bool: ...
    def compute(self, qpos: ArrayLike, *given: Any, **options: Any) -> dict[str, Array]: ...
    def constraints(self, *, reduced: bool = False) -> tuple[str, ...]: ...


class ContactPoint(NamedTuple):
    """A point of a link on which the world exerts a force."""

    link: str
    point: Sequence[float] = (0.0, 0.0, 0.0)  # (3,) in the link's axes, from its origin [m]
    normal: Sequence[float] = (0.0, 0.0, 1.0)  # (3,) world axes, out of the world
    friction: float | None = None  # coefficient; None: that of all


@dataclass(frozen=True)
class InverseDynamics:
    """Forces that produce motions; arrays have a first axis of rows unless a single motion was given."""

    torque: Real  # (…, actuated) [N m or N]
    constraint: Real  # (…, constraints) λ of the rows of `constraint_jacobian` [N or N m]
    contact: Real  # (…, contacts, 3) on the links, world axes [N]
    actuated: tuple[str, ...]
    constraints: tuple[str, ...]
    contacts: tuple[str, ...]  # names of links

    def __getitem__(self, joint: str) -> Real:
        """The torque of a joint. Raises UsageError for one that is not actuated."""
        if joint not in self.actuated:
            raise UsageError(f"{joint!r} is not actuated{nearest(joint, self.actuated)}")
        return self.torque[..., self.actuated.index(joint)]


def inverse_dynamics(
    robot: Computing,
    qpos: ArrayLike,
    qvel: ArrayLike | None,
    qacc: ArrayLike | None,
    actuated: Sequence[str] | None,
    contacts: Sequence[ContactPoint | str],
    friction: float | None,
    check: bool,
) -> InverseDynamics:
    """See Robot.inverse_dynamics."""
    dofs = robot.independent_dofs if actuated is None else tuple(actuated)
    for name in dofs:
        if name not in robot.dofs:
            raise UsageError(f"actuated: {name!r} is not a dof of this robot{nearest(name, robot.dofs)}")
    points = [ContactPoint(point) if isinstance(point, str) else ContactPoint(*point) for point in contacts]
    for point in points:
        if point.link not in robot.links:
            raise UsageError(f"contacts: {point.link!r} is not a link of this robot{nearest(point.link, robot.links)}")
        if not np.linalg.norm(point.normal) > 0.0:
            raise UsageError(f"contacts: the normal at {point.link!r} is {tuple(point.normal)}")
    motion = _Motion.of(robot, qpos, qvel, qacc)
    needed = _needed(robot, motion)
    J = _constraint_rows(robot, motion.qpos)
    names = robot.constraints(reduced=True) if J.shape[1] else ()
    if check and names:
        _refuse_opening(robot, motion, J, names)
    G = robot.compute(motion.qpos, quantities=["coupling_matrix"])["coupling_matrix"]
    S = np.swapaxes(G[:, [robot.dofs.index(name) for name in dofs]], 1, 2)
    Jc, frames = _contact_rows(robot, motion.qpos, points)
    F = np.concatenate([np.swapaxes(J, 1, 2), np.swapaxes(Jc, 1, 2)], axis=2)
    given = [point.friction if point.friction is not None else friction for point in points]
    if any(mu is not None for mu in given):
        solved = [_in_cones(robot, *row, J.shape[1], frames, given) for row in zip(S, F, needed, strict=True)]
        tau, forces = (np.array(part) for part in zip(*solved, strict=True))
    else:
        tau, forces = _least(robot, S, F, needed)
    m = J.shape[1]
    found = tau, forces[:, :m], forces[:, m:].reshape(len(tau), -1, 3)
    tau, constraint, contact = (part[0] for part in found) if motion.single else found
    return InverseDynamics(tau, constraint, contact, dofs, names, tuple(point.link for point in points))


class _Motion(NamedTuple):
    """Rows of a motion."""

    qpos: Real  # (n, nq)
    qvel: Real  # (n, nv)
    qacc: Real  # (n, nv)
    single: bool

    @classmethod
    def of(cls, robot: Computing, qpos: ArrayLike, qvel: ArrayLike | None, qacc: ArrayLike | None) -> _Motion:
        first = np.asarray(qpos, float)
        single, rows = first.ndim == 1, 1 if first.ndim == 1 else len(first)
        given = {"qpos": (first, robot.nq), "qvel": (qvel, robot.nv), "qacc": (qacc, robot.nv)}
        made = []
        for name, (values, size) in given.items():
            table = np.zeros(size) if values is None else np.asarray(values, float)
            if table.shape != (size,) and (single or table.shape != (rows, size)):
                raise UsageError(f"{name} has shape {table.shape}, want {(size,) if single else (rows, size)}")
            if not np.isfinite(table).all():
                raise UsageError(f"{name} is not finite")
            made.append(np.array(np.broadcast_to(table, (rows, size))))
        q, v, a = made
        follow_leaders(robot.model, q, v)
        return cls(q, v, a, single)


def _needed(robot: Computing, motion: _Motion) -> Real:
    """M u̇ + b (n, nu)."""
    found = robot.compute(
        motion.qpos, motion.qvel, motion.qacc, quantities=["inverse_dynamics", "status"], reduced=True
    )
    if found["status"].any():
        raise UsageError(f"row {int(np.flatnonzero(found['status'])[0])} of qpos cannot be computed")
    return found["inverse_dynamics"]


def _constraint_rows(robot: Computing, qpos: Real) -> Real:
    """J (n, m, nu); no rows for robots without constraints that are left."""
    nu = len(robot.independent_dofs)
    if not robot.has_constraints:
        return np.zeros((len(qpos), 0, nu))
    return robot.compute(qpos, quantities=["constraint_jacobian"], reduced=True)["constraint_jacobian"]


def _refuse_opening(robot: Computing, motion: _Motion, J: Real, names: Sequence[str]) -> None:
    """Raise UsageError for a motion that opens a loop."""
    independent = robot.model.independent_dof
    u, a = motion.qvel[:, independent], motion.qacc[:, independent]
    rates = np.einsum("nij,nj->ni", J, u)
    growing = np.einsum("nij,nj->ni", J, a)
    largest = np.abs(growing).max(initial=0.0)
    for ahead, weight in _CENTRAL if u.any() else ():
        there = _constraint_rows(robot, moved(robot.model, motion.qpos, ahead * _AHEAD * motion.qvel))
        part = weight / _AHEAD * np.einsum("nij,nj->ni", there, u)
        growing = growing + part
        largest = max(largest, float(np.abs(part).max()))
    for what, values, unit, scale in (
        ("velocity", rates, "m/s or rad/s", float(np.abs(u).max(initial=0.0))),
        ("acceleration", growing, "m/s² or rad/s²", float(largest)),
    ):
        wrong = np.abs(values) > _OPENS * max(scale, 1.0)
        if wrong.any():
            row, n = divmod(int(np.abs(values).argmax()), values.shape[1])
            at = "" if motion.single else f" in row {row}"
            raise UsageError(
                f"the {what}{at} breaks {names[n]!r} by {abs(values[row, n]):.3g} {unit}: no forces produce it "
                "(check=False leaves that out)"
            )


def _contact_rows(robot: Computing, qpos: Real, points: Sequence[ContactPoint]) -> tuple[Real, Real]:
    """The velocities (n, 3 k, nu) of contact points per u̇, world axes, and their frames (k, 3, 3): columns normal and
    tangents."""
    nu = len(robot.independent_dofs)
    if not points:
        return np.zeros((len(qpos), 0, nu)), np.zeros((0, 3, 3))
    links = tuple(dict.fromkeys(point.link for point in points))
    found = robot.compute(qpos, quantities=["jacobian", "link_quaternion"], reduced=True, at="origin", links=links)
    turns = rotation_matrix(np.moveaxis(found["link_quaternion"], -1, 0))
    rows = []
    for point in points:
        n = links.index(point.link)
        arm = np.einsum("nij,j->ni", turns[:, n], np.asarray(point.point, float))
        linear, angular = found["jacobian"][:, n, :3], found["jacobian"][:, n, 3:]
        rows.append(linear + np.cross(angular, arm[..., None], axisa=1, axisb=1, axisc=1))
    frames = np.array([frame_with_z(np.asarray(point.normal) / np.linalg.norm(point.normal)) for point in points])
    return np.concatenate(rows, axis=1), frames[:, :, [2, 0, 1]]


def _least(robot: Computing, S: Real, F: Real, needed: Real) -> tuple[Real, Real]:
    """Torques (n, actuated) and forces (n, m) of least norm, of torques first. Raises UsageError where none do."""
    left = np.eye(S.shape[1]) - F @ np.linalg.pinv(F, rcond=_SINGULAR)  # onto what F does not reach
    tau = np.einsum("nij,nj->ni", np.linalg.pinv(left @ S, rcond=_SINGULAR), np.einsum("nij,nj->ni", left, needed))
    rest = needed - np.einsum("nij,nj->ni", S, tau)
    forces = np.einsum("nij,nj->ni", np.linalg.pinv(F, rcond=_SINGULAR), rest)
    _refuse_unreached(robot, needed, rest - np.einsum("nij,nj->ni", F, forces))
    return tau, forces


def _refuse_unreached(robot: Computing, needed: Real, left: Real) -> None:
    """Raise UsageError naming the dof whose force has no source."""
    wrong = np.abs(left) > _LEFT * np.maximum(np.abs(needed).max(axis=1, keepdims=True), 1e-9)
    if not wrong.any():
        return
    row, dof = divmod(int(np.where(wrong, np.abs(left), 0.0).argmax()), left.shape[1])
    at = f" (row {row})" if len(needed) > 1 else ""
    raise UsageError(
        f"the motion needs {needed[row, dof]:.4g} at {robot.independent_dofs[dof]!r}{at}, of which "
        f"{left[row, dof]:.3g} has no source: no actuated joint, constraint or contact gives it"
    )


def _in_cones(
    robot: Computing, S: Real, F: Real, needed: Real, rows: int, frames: Real, friction: Sequence[float | None]
) -> tuple[Real, Real]:
    """Torques and forces of one motion, those of contacts within their cones. Raises UsageError without any."""
    tau, forces = (part[0] for part in _least(robot, S[None], F[None], needed[None]))
    actuated, turn = S.shape[1], np.eye(F.shape[1])
    for k, frame in enumerate(frames):
        at = slice(rows + 3 * k, rows + 3 * k + 3)
        turn[at, at] = frame
    bounded = [k for k, mu in enumerate(friction) if mu is not None]
    cones = np.array([[actuated + rows + 3 * k + axis for axis in range(3)] for k in bounded])
    slopes = np.array([max(friction[k] or 0.0, _SLIPPERY) for k in bounded])
    if not outside(np.concatenate([tau, turn.T @ forces]), cones, slopes):
        return tau, forces
    E = np.concatenate([S, F @ turn], axis=1)
    U, sizes, _ = np.linalg.svd(E, full_matrices=False)
    reached = U[:, sizes > _SINGULAR * sizes.max(initial=0.0)].T
    weights = np.diag(np.concatenate([np.ones(actuated), np.full(F.shape[1], _FORCES)]))
    x, shift = least_in_cones(weights, reached @ E, reached @ needed, cones, slopes)
    if x is None:
        raise UsageError(
            "no forces of the contacts within their friction cones produce the motion: the cones would have to be "
            f"{shift:.3g} N wider"
        )
    return x[:actuated], turn @ x[actuated:]
