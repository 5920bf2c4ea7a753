"""Lines and rows: relative velocities of pairs of bodies, and the constraints built from them.

A line is one component of the relative velocity of two bodies. A row is a sum of multiples of lines (a coupling is of
two) with a target, a compliance and bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real

# the sources of rows, by which their forces are recorded
HELD_DOF, INERTIA, PASSIVE, DRIVE, COUPLING, LIMIT, LOOP, CONTACT = range(8)


class Lines(NamedTuple):
    """n lines, each a component of the relative velocity of two bodies."""

    body: Array  # (n, 2) the two bodies
    value: Real  # (n, 12) coefficients of both velocities
    rate: Real  # (n,) current velocity [m/s or rad/s]
    error: Real  # (n,) position along the line [m or rad]
    drift: Real  # (n,) rate of change of `rate` at zero acceleration of the bodies
    turning: Array  # (n,) True for angular velocities
    link: Array  # (n, 2) the links on which its force acts as on free bodies; -1: none, or the force is a joint's


class BodyRows(NamedTuple):
    """n rows: J Δu + (give + yielding · mobility) Λ = b, while Λ is within its bounds."""

    source: Array  # (n,) HELD_DOF, …
    line: Array  # (n, most) lines whose sum the row is; -1: none
    factor: Real  # (n, most)
    error: Real  # (n,) position error C of rows that hold one [m or rad], else 0
    b: Real  # (n,)
    give: Real  # (n,) compliance: velocity per impulse
    lower: Real  # (n,) bound of the impulse
    upper: Real
    yielding: (
        Real  # (n,) share of the group's mean J M⁻¹ Jᵀ that regularises the row, so that redundant rows do no harm
    )
    group: Array  # (n,)
    cone: Array  # (n,) 0: bounds; first row of a friction cone: its number of rows; the others: -1
    slope: Real  # (n,) friction coefficient, at a cone's first row: |Λ_t| ≤ slope Λ_n

    def entries(self, lines: Lines) -> tuple[Array, Array]:
        """Rows and columns of the entries of J; a position may occur twice."""
        which = np.column_stack([lines.body[:, :1] * 6 + np.arange(6), lines.body[:, 1:] * 6 + np.arange(6)])
        there = self.line >= 0
        n = np.broadcast_to(np.arange(len(self.b))[:, None], there.shape)[there]
        return np.repeat(n, 12), which[self.line[there]].ravel()

    def values(self, lines: Lines) -> Real:
        """The values of these entries; zero for the world, which never moves."""
        there = self.line >= 0
        moving = np.repeat(lines.body > 0, 6, axis=1)
        found: Real = (self.factor[there][:, None] * (lines.value * moving)[self.line[there]]).ravel()
        return found


def make_body_rows(
    source: int,
    line: Array,
    b: Real,
    *,
    second: Array | None = None,
    factor: Real | float = 1.0,
    second_factor: Real | float = 0.0,
    **more: Any,
) -> BodyRows:
    """Make rows of one source, of a line each or of two; a single number applies to all of them. more: as below."""
    lines = np.column_stack([line, np.full(len(line), -1) if second is None else second]).astype(np.int64)
    factors = np.empty((len(line), 2))
    factors[:, 0], factors[:, 1] = factor, second_factor
    return make_summed_rows(source, lines, factors, b, **more)


def make_summed_rows(
    source: int,
    line: Array,
    factor: Real,
    b: Real,
    *,
    error: Real | float = 0.0,
    give: Real | float = 0.0,
    lower: Real | float = -np.inf,
    upper: Real | float = np.inf,
    yielding: Real | float = 0.0,
    group: Array | None = None,
    cone: Array | None = None,
    slope: Real | float = 0.0,
) -> BodyRows:
    """Make rows of one source that are sums of lines (n, most) with factors (n, most)."""
    n = len(line)

    def full(value: Real | float) -> Real:
        return np.full(n, value, float)

    groups = np.arange(n) if group is None else np.asarray(group, np.int64)
    cones = np.zeros(n, np.int64) if cone is None else cone
    bounds = full(lower), full(upper)
    own = np.full(n, source), np.asarray(line, np.int64), np.asarray(factor, float)
    return BodyRows(*own, full(error), full(b), full(give), *bounds, full(yielding), groups, cones, full(slope))


def joined_rows(parts: list[BodyRows]) -> BodyRows:
    """Concatenate rows."""
    shift = 0
    groups = []
    for part in parts:
        groups.append(part.group + shift)
        shift += int(part.group.max(initial=-1)) + 1
    most = max(part.line.shape[1] for part in parts)
    parts = [_widened(part, most) for part in parts]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return BodyRows(*columns)._replace(group=np.concatenate(groups))


def _widened(rows: BodyRows, most: int) -> BodyRows:
    """The rows with room for `most` lines each."""
    room = ((0, 0), (0, most - rows.line.shape[1]))
    return rows._replace(line=np.pad(rows.line, room, constant_values=-1), factor=np.pad(rows.factor, room))


def joined_lines(parts: list[Lines]) -> Lines:
    """Concatenate lines."""
    return Lines(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def dense(rows: BodyRows, lines: Lines, width: int) -> Real:
    """J as a dense matrix (n, width)."""
    n, column = rows.entries(lines)
    flat = np.bincount(n * width + column, weights=rows.values(lines), minlength=len(rows.b) * width).astype(float)
    return flat.reshape(len(rows.b), width)


def wrenches_on_bodies(lines: Lines, which: Array, force: Real, bodies: int) -> Real:
    """Wrenches (nb, 6) about the bodies' centres of mass from forces along lines."""
    found = np.zeros((bodies, 6))
    pair = force[:, None] * lines.value[which]
    np.add.at(found, lines.body[which, 0], pair[:, :6])
    np.add.at(found, lines.body[which, 1], pair[:, 6:])
    found[0] = 0.0
    return found


def by_line(rows: BodyRows, force: Real, lines: Lines) -> Real:
    """Forces of rows summed up along the lines (lines,)."""
    there = rows.line >= 0
    along = (rows.factor * force[:, None])[there]
    return np.bincount(rows.line[there], along, minlength=len(lines.rate)).astype(
        float
    )  # bincount returns integers for empty input
