"""The initial state of a run: pose of a keyframe or of the file, then bases and values by name, then followers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from artsim.sim.articulation.description import Articulation, Keyframe
from artsim.sim.articulation.model import BALL, BY_PLACE, BY_TURN, FREE, Compiled, Labels, Model
from artsim.sim.articulation.poses import at_leader
from artsim.sim.articulation.turn_limits import about_axis, axis_couplings, follow_axes, start_notes, twist_rates
from artsim.sim.foundation.errors import SettingError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.placing import place_bases
from artsim.sim.runs.settings import Place, Value


def find_keyframe(articulation: Articulation, name: str) -> Keyframe:
    """The keyframe of that name, or an empty one for an empty name. Raises UsageError for an unknown name."""
    if not name:
        return Keyframe("")
    for key in articulation.keyframes:
        if key.name == name:
            return key
    known = [key.name for key in articulation.keyframes]
    there = nearest(name, known) or f"; the file has {', '.join(known[:8]) or 'none'}"
    raise UsageError(f"keyframe {name!r} does not exist{there}")


def initial_qpos(
    compiled: Compiled,
    given: Value,
    notes: list[str],
    key: Sequence[float] = (),
    bases: Mapping[str, Place] | None = None,
    *,
    soft: bool = False,
    yielding: Array | None = None,
) -> Real:
    """Initial coordinates (nq,): those of a keyframe or of the file's pose clamped to the limits, replaced by `bases`,
    the poses of free bodies, then by `given` values; followers are set last. `soft`: couplings that are rows yield, and
    move nothing; `yielding` (nv,): nor do the limits of these dofs.

    Raises UsageError: unknown coordinate, value not finite, or a follower that contradicts its leader.
    """
    model, labels = compiled.model, compiled.labels
    if len(key):
        q = np.array(key, float)
    else:
        q = compiled.reference.copy()
        _clamp(model, q, np.zeros(len(model.dof_coord), bool) if yielding is None else yielding)
    place_bases(model, labels, q, bases or {})
    for name, value in given.items():
        if name not in labels.coords:
            raise SettingError(f"q0: {name!r} is not a joint of this robot{nearest(name, labels.coords)}", "q0", name)
        if not math.isfinite(value):
            raise SettingError(f"q0: {name} is {value}, want a finite number", "q0", name)
        q[labels.coords.index(name)] = value
    settle_coordinates(model, labels, q, given, soft=soft)
    for k, coord in enumerate(model.dof_coord):
        if coord >= 0 and not model.lower[k] - 1e-9 <= q[coord] <= model.upper[k] + 1e-9:
            notes.append(
                f"{labels.coords[coord]} starts at {q[coord]:.6g}, outside its limits "
                f"[{model.lower[k]:.6g}, {model.upper[k]:.6g}]"
            )
    notes += start_notes(model, labels, q)
    return q


def settle_coordinates(model: Model, labels: Labels, q: Real, given: Value, *, soft: bool = False) -> None:
    """Normalise quaternions and set followers from their leaders, except those with couplings as rows that are given;
    of couplings as rows none where they are `soft`.

    Raises SettingError: a quaternion of zeros, or a given follower that contradicts its leader.
    """
    _unit_quaternions(model, labels, q)
    for follower, leader, p in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        coord = int(model.dof_coord[follower])
        want, _ = at_leader(p, q[model.dof_coord[leader]] if leader >= 0 else 0.0)
        name = labels.coords[coord]
        if name in given and abs(given[name] - want) > 1e-9 * max(1.0, abs(want)):
            raise SettingError(
                f"q0: {name} follows another joint and must be {want:.9g} here, got {given[name]:.9g}", "q0", name
            )
        q[coord] = want
    if not soft:
        _place_row_followers(model, labels, q, given)
    follow_axes(model, q, {n for n, name in enumerate(labels.coords) if name in given})


def moved_into_limits(compiled: Compiled, q: Real) -> list[str]:
    """A warning about joints whose limits exclude the file's pose and which start at a limit instead."""
    model, labels = compiled.model, compiled.labels
    moved = [
        f"{labels.coords[coord]} at {q[coord]:.6g}, not {compiled.reference[coord]:.6g}"
        for k, coord in enumerate(model.dof_coord)
        if coord >= 0 and not model.lower[k] <= compiled.reference[coord] <= model.upper[k]
        if q[coord] in (model.lower[k], model.upper[k])
    ]
    more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    return [f"the file's pose is beyond limits; starts at them: {', '.join(moved[:3])}{more}"] if moved else []


def _place_row_followers(model: Model, labels: Labels, q: Real, given: Value) -> None:
    """Start followers whose couplings are rows where these hold; a follower that is given may start elsewhere.

    A follower that another coupling eliminates starts where that coupling holds.
    """
    for _ in model.row_follower:  # rows are not sorted leaders first: one pass per link of the longest chain
        for follower, leader, p in zip(model.row_follower, model.row_leader, model.row_polynomial, strict=True):
            coord = int(model.dof_coord[follower])
            if labels.coords[coord] not in given and follower not in model.coupling_follower:
                q[coord], _ = at_leader(p, q[model.dof_coord[leader]] if leader >= 0 else 0.0)


def _clamp(model: Model, q: Real, yielding: Array) -> None:
    """Move independent coordinates into their own limits and, through linear couplings, their followers', but for the
    limits of dofs that yield (nv,)."""
    low, high = np.where(yielding, -np.inf, model.lower), np.where(yielding, np.inf, model.upper)
    couplings = [*zip(model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True)][::-1]
    hard = np.flatnonzero(model.row_frequency < 0)
    rows = [*zip(model.row_follower[hard], model.row_leader[hard], model.row_polynomial[hard], strict=True)]
    for follower, leader, p in (*rows * min(len(rows), 20), *couplings):  # rows are not sorted by leader
        if leader < 0 or p[1] == 0 or np.any(p[2:]):
            continue
        ends = sorted(((low[follower] - p[0]) / p[1], (high[follower] - p[0]) / p[1]))
        if max(low[leader], ends[0]) <= min(high[leader], ends[1]):
            low[leader], high[leader] = max(low[leader], ends[0]), min(high[leader], ends[1])
    for k in model.independent_dof:
        coord = model.dof_coord[k]
        if coord >= 0:
            q[coord] = min(max(q[coord], low[k]), high[k])


def _unit_quaternions(model: Model, labels: Labels, q: Real) -> None:
    for i, kind in enumerate(model.joint_type):
        if i == 0 or kind not in (BALL, FREE):
            continue
        start = int(model.body_coord[i]) + (3 if kind == FREE else 0)
        part = slice(start, start + 4)
        length = float(np.linalg.norm(q[part]))
        if length < 1e-9:
            raise SettingError(f"q0: the quaternion {', '.join(labels.coords[part])} is zero", "q0")
        if abs(length - 1.0) > 1e-14:  # keeps a normalised quaternion bit for bit
            q[part] /= length


def follow_velocities(model: Model, labels: Labels, q: Real, v: Real, given: Value) -> None:
    for follower, leader, p in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        want = at_leader(p, q[model.dof_coord[leader]])[1] * v[leader] if leader >= 0 else 0.0
        name = labels.dofs[follower]
        if name in given and abs(given[name] - want) > 1e-9 * max(1.0, abs(want)):
            raise SettingError(
                f"v0: {name} follows another joint and must be {want:.9g} here, got {given[name]:.9g}", "v0", name
            )
        v[follower] = want
    for _ in model.row_follower:
        for follower, leader, p in zip(model.row_follower, model.row_leader, model.row_polynomial, strict=True):
            if labels.dofs[follower] not in given and follower not in model.coupling_follower:
                v[follower] = at_leader(p, q[model.dof_coord[leader]])[1] * v[leader] if leader >= 0 else 0.0
    for turn, dof, terms, follower in axis_couplings(model):
        first = int(model.body_dof[model.dof_body[turn]])
        order = [first + (turn - first + k) % 3 for k in range(3)]
        rates = terms[BY_TURN] * twist_rates(about_axis(model, q, turn))
        if labels.dofs[follower] not in given:
            others = rates @ v[order] + terms[BY_PLACE] * v[dof]
            own = terms[BY_PLACE] if follower == dof else rates[0]
            v[follower] -= others / own
