"""The freedom that loops and couplings leave to a robot near a configuration, in numpy: ranks of their Jacobian.

Grübler's count of dofs less rows is wrong for a planar linkage, whose rows repeat each other, and for a Bennett
linkage, whose loop is mobile against the count. The rank is therefore that of the Jacobian where the loops are closed,
which Newton's method finds, and the largest of several closed configurations beside each other: one of them may be
singular. Limits do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Compiled, Model
from artsim.sim.articulation.poses import at_leader, body_poses
from artsim.sim.articulation.turn_limits import about_axis, axis_couplings, twist_of, twist_rates
from artsim.sim.constraints.kinds import AXIS_ROW, COUPLING_ROW, LOOP_ROW
from artsim.sim.constraints.row_names import row_name
from artsim.sim.equipment.arrays import LOOP_JOINT, Equipped
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, quaternion
from artsim.sim.ik.columns import Constraints, chain_of, tied

_DEPENDENT = 1e-5  # share of the largest singular value up to which a row counts as dependent: files round axes
_CLOSED = 1e-9  # [m or rad]
MOST = 400  # rows or dofs that are counted
_STEPS = 60
_BESIDE = 3  # configurations beside the first one
_AWAY = 0.05  # [rad or m] how far they are


class Freedom(NamedTuple):
    """The freedom of a robot whose couplings are eliminated."""

    dofs: int  # independent ones
    rows: int  # of loops and couplings that hold
    independent_rows: int
    redundant: tuple[str, ...]  # names of rows that repeat others
    gap: float  # [m or rad] by which loops stay open where this was found

    @property
    def left(self) -> int:
        """Number of dofs that are left to move."""
        return self.dofs - self.independent_rows


def freedom(compiled: Compiled, equipped: Equipped | None, start: Real) -> Freedom | None:
    """The freedom near a configuration (nq,); None for a robot without loops and couplings that are rows,
    or with so many that counting takes seconds."""
    rows = _Rows(compiled, equipped)
    if not rows.names or max(rows.size, len(rows.names)) > MOST:
        return None
    generator = np.random.Generator(np.random.Philox(key=0))
    found: tuple[int, list[int], float] | None = None
    for n in range(1 + _BESIDE):
        beside = np.zeros(rows.size) if n == 0 else generator.uniform(-_AWAY, _AWAY, rows.size)
        gap, J = rows.closed(rows.moved(start, beside))
        independent = _independent(J)
        better = found is None or (gap < _CLOSED, len(independent)) > (found[2] < _CLOSED, len(found[1]))
        if better:
            found = n, independent, gap
    assert found is not None
    _, independent, gap = found
    redundant = tuple(name for n, name in enumerate(rows.names) if n not in independent)
    return Freedom(rows.size, len(rows.names), len(independent), redundant, gap)


def _independent(J: Real) -> list[int]:
    """The rows of J that do not depend on those before them."""
    scale = float(np.linalg.norm(J, 2)) if J.size else 0.0
    basis: list[Real] = []
    found = []
    for n, row in enumerate(J):
        left = row.copy()
        for _ in range(2):  # once leaves rounding
            for known in basis:
                left -= (left @ known) * known
        size = float(np.linalg.norm(left))
        if size > _DEPENDENT * scale:
            basis.append(left / size)
            found.append(n)
    return found


def is_locked(compiled: Compiled, equipped: Equipped | None, q: Real) -> bool:
    """True for a robot of which loops and couplings leave nothing to move near q (nq,), unless all are welds, which are
    to hold it."""
    if equipped is None or equipped.arrays.loop_held.all():
        return False
    rows = _Rows(compiled, equipped)
    if len(rows.names) < rows.size or rows.size > MOST or len(_independent(rows.at(q)[1])) < rows.size:
        return False
    found = freedom(compiled, equipped, q)
    return found is not None and found.left == 0


class _Rows:
    """The rows of a robot that hold: their names, errors and Jacobian in independent coordinates."""

    def __init__(self, compiled: Compiled, equipped: Equipped | None) -> None:
        self._model, self._equipped = compiled.model, equipped
        labels = compiled.labels
        self._held: Constraints = tied(compiled, equipped, (), compiled.model.dof_independent >= 0, everything=True)[1]
        self.size = len(compiled.model.independent_dof)
        first = [min(int(f), int(l)) if l >= 0 else int(f) for f, l in self._pairs()]
        self.names = [row_name(COUPLING_ROW, labels.dofs[k], 0) for k in first]
        turns = [self._turn(c) for c in self._held.axes]
        self.names += [row_name(AXIS_ROW, labels.dofs[min(turn, dof)], 0) for turn, dof, _, _ in turns]
        if equipped is not None:
            for n in self._held.loops:
                lines = _held_lines(equipped, n).tolist()
                self.names += [row_name(LOOP_ROW, equipped.labels.loops[n], line) for line in lines]

    def _pairs(self) -> list[tuple[int, int]]:
        held, model = self._held.couplings, self._model
        return list(zip(model.row_follower[held].tolist(), model.row_leader[held].tolist(), strict=True))

    def _turn(self, c: int) -> tuple[int, int, Real, int]:
        return axis_couplings(self._model)[c]

    def closed(self, q: Real) -> tuple[float, Real]:
        """The largest error that Newton's method leaves [m or rad], and the Jacobian there."""
        C, J = self.at(q)
        for _ in range(_STEPS):
            if np.abs(C).max(initial=0.0) < 1e-13:
                break
            step: Real = -np.linalg.lstsq(J, C, rcond=_DEPENDENT)[0].astype(float)
            step /= max(1.0, float(np.abs(step).max(initial=0.0)) / 0.3)
            q = self.moved(q, step)
            C, J = self.at(q)
        return float(np.abs(C).max(initial=0.0)), J

    def moved(self, q: Real, step: Real) -> Real:
        """Coordinates (nq,) after a step of the independent dofs, with followers from their leaders."""
        model = self._model
        q, v = q.copy(), np.zeros(len(model.dof_body))
        v[model.independent_dof] = step
        for i in range(1, len(model.body_parent)):
            k, n = int(model.body_dof[i]), int(model.body_coord[i])
            for dof in range(k, int(model.body_dof[i + 1])):
                if model.dof_coord[dof] >= 0:
                    q[model.dof_coord[dof]] += v[dof]
            if model.joint_type[i] in (BALL, FREE):
                free = 3 * (int(model.joint_type[i]) == FREE)
                q[n + free : n + free + 4] = _turned(q[n + free : n + free + 4], v[k + free : k + free + 3])
        for f, l, p in self._couplings():
            q[model.dof_coord[f]] = at_leader(p, q[model.dof_coord[l]] if l >= 0 else 0.0)[0]
        return q

    def _couplings(self) -> list[tuple[int, int, Real]]:
        model = self._model
        columns = (model.coupling_follower.tolist(), model.coupling_leader.tolist(), model.coupling_polynomial)
        return list(zip(*columns, strict=True))

    def at(self, q: Real) -> tuple[Real, Real]:
        """Errors (rows,) and Jacobian (rows, nu) at q."""
        model = self._model
        errors: list[float] = []
        lines: list[Real] = []
        nv = len(model.dof_body)
        for c, (f, l) in zip(self._held.couplings, self._pairs(), strict=True):
            line = np.zeros(nv)
            value, slope = at_leader(model.row_polynomial[c], q[model.dof_coord[l]] if l >= 0 else 0.0)
            line[f] += 1.0
            if l >= 0:
                line[l] -= slope
            errors.append(float(q[model.dof_coord[f]]) - value)
            lines.append(line)
        for c in self._held.axes:
            turn, dof, terms, _ = self._turn(c)
            rotation = about_axis(model, q, turn)
            first = int(model.body_dof[model.dof_body[turn]])
            line = np.zeros(nv)
            line[[first + (turn - first + k) % 3 for k in range(3)]] = terms[0] * twist_rates(rotation)
            line[dof] += terms[1]
            errors.append(float(terms[0] * twist_of(rotation) + terms[1] * q[model.dof_coord[dof]] + terms[2]))
            lines.append(line)
        if self._held.loops and self._equipped is not None:
            rotation, origin = body_poses(model, q)
            axes = _axes(model, rotation)
            for n in self._held.loops:
                C, J = _loop(model, self._equipped, n, rotation, origin, axes)
                held = _held_lines(self._equipped, n)
                errors += C[held].tolist()
                lines += list(J[held])
        full = np.array(lines).reshape(-1, nv)
        return np.array(errors), full @ self._gains(q)

    def _gains(self, q: Real) -> Real:
        """G (nv, nu)."""
        model = self._model
        G = np.zeros((len(model.dof_body), self.size))
        G[model.independent_dof, np.arange(self.size)] = 1.0
        for f, l, p in self._couplings():
            if l >= 0:
                G[f] = at_leader(p, q[model.dof_coord[l]])[1] * G[l]
        return G


def _held_lines(equipped: Equipped, n: int) -> Array:
    """The lines of C that a loop holds; a torque scale of 0 leaves rotations free."""
    held = equipped.arrays.loop_held[n] * ([1] * 3 + [int(equipped.arrays.loop_torque_scale[n] > 0)] * 3)
    return np.flatnonzero(held)


def _turned(q: Real, turn: Real) -> Real:
    """A unit quaternion turned by a rotation vector in its own axes [rad]."""
    angle = float(np.linalg.norm(turn))
    s = np.sin(0.5 * angle) / angle if angle > 0 else 0.5
    w, v = np.cos(0.5 * angle), s * turn
    made: Real = np.array([q[0] * w - q[1:] @ v, *(q[0] * v + w * q[1:] + np.cross(q[1:], v))])
    return made / np.linalg.norm(made)


def _axes(model: Model, rotation: Real) -> Real:
    """The axis (nv, 3) of each dof in the world."""
    axes = np.zeros((len(model.dof_body), 3))
    for k, i in enumerate(model.dof_body.tolist()):
        place = k - int(model.body_dof[i])
        above = rotation[model.body_parent[i]] @ model.tree_rotation[i]
        if model.joint_type[i] in (BALL, FREE):
            turns = model.joint_type[i] == BALL or place > 2
            axes[k] = rotation[i][:, place % 3] if turns else above[:, place]
        else:
            several = int(model.body_dof[i + 1] - model.body_dof[i]) > 1
            axes[k] = above[:, place if several else 2]
    return axes


def _loop(model: Model, equipped: Equipped, n: int, rotation: Real, origin: Real, axes: Real) -> tuple[Real, Real]:
    """C (6,) of a loop and its Jacobian (6, nv), as constraints/loop_rows.py has them, rotations in rad."""
    e = equipped.arrays
    bodies: Sequence[int] = e.loop_body[n].tolist()
    point = [origin[body] + rotation[body] @ e.loop_position[2 * n + k] for k, body in enumerate(bodies)]
    frame = [rotation[body] @ e.loop_rotation[2 * n + k] for k, body in enumerate(bodies)]
    J = np.zeros((6, len(model.dof_body)))
    of_frame = e.loop_kind[n] == LOOP_JOINT
    for body, sign, at in zip(bodies, (1.0, -1.0), (point[1] if of_frame else point[0], point[1]), strict=True):
        for k in chain_of(model, body):
            if model.dof_linear[k]:
                J[:3, k] += sign * axes[k]
            else:
                J[:3, k] += sign * np.cross(axes[k], at - origin[model.dof_body[k]])
                J[3:, k] += sign * axes[k]
    gap = point[0] - point[1]
    if of_frame:
        J[:3], gap = frame[0].T @ J[:3], frame[0].T @ gap
    q = quaternion(frame[1].T @ frame[0])
    q = q if q[0] >= 0 else -q
    turned = frame[1].T @ J[3:]
    J[3:] = q[0] * turned + np.cross(turned, q[1:], axis=0)
    return np.concatenate([gap, 2.0 * q[1:]]), J
