"""Lines and rows: relative velocities of pairs of bodies, and the constraints built from them.

A line is one component of the relative velocity of two bodies. A row is a line, or a line plus a multiple of another (a
coupling), with a target, a compliance and bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.foundation.spatial import Real

# the sources of rows, by which their forces are recorded
HELD_DOF, INERTIA, PASSIVE, DRIVE, COUPLING, LIMIT, LOOP = range(7)


class Lines(NamedTuple):
    """n lines, each a component of the relative velocity of two bodies."""

    body: Array  # (n, 2) the two bodies
    value: Real  # (n, 12) coefficients of both velocities
    rate: Real  # (n,) current velocity [m/s or rad/s]
    error: Real  # (n,) position along the line [m or rad]
    drift: Real  # (n,) rate of change of `rate` at zero acceleration of the bodies
    turning: Array  # (n,) whether it is an angular velocity


class BodyRows(NamedTuple):
    """n rows: J Δu + (give + yielding · mobility) Λ = b, while Λ is within its bounds."""

    source: Array  # (n,) HELD_DOF, …
    line: Array  # (n, 2) the second one: -1 for none
    factor: Real  # (n, 2)
    error: Real  # (n,) position error C of rows that hold one [m or rad], else 0
    b: Real  # (n,)
    give: Real  # (n,) compliance: velocity per impulse
    lower: Real  # (n,) bound of the impulse
    upper: Real
    yielding: (
        Real  # (n,) share of the group's mean J M⁻¹ Jᵀ that regularises the row, so that redundant rows do no harm
    )
    group: Array  # (n,)

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
    error: Real | float = 0.0,
    give: Real | float = 0.0,
    lower: Real | float = -np.inf,
    upper: Real | float = np.inf,
    second: Array | None = None,
    factor: Real | float = 1.0,
    second_factor: Real | float = 0.0,
    yielding: float = 0.0,
    group: Array | None = None,
) -> BodyRows:
    """Make rows of one source; a single number applies to all of them."""
    n = len(line)

    def full(value: Real | float) -> Real:
        return np.full(n, value, float)

    lines = np.column_stack([line, np.full(n, -1) if second is None else second]).astype(np.int64)
    factors = np.column_stack([full(factor), full(second_factor)])
    groups = np.arange(n) if group is None else np.asarray(group, np.int64)
    bounds = full(lower), full(upper)
    return BodyRows(np.full(n, source), lines, factors, full(error), b, full(give), *bounds, full(yielding), groups)


def joined_rows(parts: list[BodyRows]) -> BodyRows:
    """Concatenate rows."""
    shift = 0
    groups = []
    for part in parts:
        groups.append(part.group + shift)
        shift += int(part.group.max(initial=-1)) + 1
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return BodyRows(*columns)._replace(group=np.concatenate(groups))


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
