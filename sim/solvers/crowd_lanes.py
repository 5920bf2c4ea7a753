"""J̃ of WIDTH units of a crowd that are visited abreast, one in each lane: its products with their bodies' velocities.

A unit is a contact with friction, or a row with bounds; no two of the WIDTH move the same body. Row r of the unit in
lane l has the place p + WIDTH r + l among the island's rows, so that row r of all units is a strip. So is column i of
J̃ in work.pairs: of the units' first bodies, then of their second ones. The velocities in work.moving, a row per body,
are turned in registers. A lane's result does not depend on the others.

Without numba one lane is visited after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from artsim.sim.foundation.body_strips import Lane, gather, load, scatter
from artsim.sim.foundation.jit import compiled_form, inlined
from artsim.sim.foundation.records import STRIPS, WIDTH, Real, Reals1, Vec3
from artsim.sim.run_data.scratch import NewtonWork
from artsim.sim.solvers.crowd_law import Units

# columns of work.sides; the first in the line of the first unit
DOFS, BODY, OTHER = range(3)
PAIR = 2 * WIDTH  # entries of work.pairs for a column of J̃ of WIDTH units
PLACE_PAIRS = 2 * STRIPS  # and for a place
_ROW = WIDTH * PLACE_PAIRS  # and for a row
_FEW, _FREE = 3, 6  # dofs of a body that slides along three axes, and of a free one: columns beyond need not be read

Strips: TypeAlias = tuple[Real, ...]  # velocities of a body, STRIPS of them
Bodies: TypeAlias = tuple[Strips, Strips]  # those of both bodies
VisitAbreast: TypeAlias = Callable[[NewtonWork, Units], None]


def abreast(visit: VisitAbreast, work: NewtonWork, place: int, count: int) -> None:
    """Visit `count` units, at most WIDTH, that stand abreast from a place on."""
    for lane in range(count):
        visit(work, Units(place, WIDTH, lane))


@compiled_form(abreast)
def _abreast(visit, work, place, count):  # type: ignore[no-untyped-def]
    return lambda visit, work, place, count: visit(work, Units(place, WIDTH, None))


@inlined
def bodies(work: NewtonWork, units: Units) -> Bodies:
    """The velocities of both bodies."""
    y = gather(work.moving, work.sides, units.place, BODY, units.lane)
    return y, gather(work.moving, work.sides, units.place, OTHER, units.lane)


@inlined
def velocity(work: NewtonWork, units: Units, row: int, y: Bodies) -> Real:
    """J̃ y of a row."""
    J, at, lane = work.pairs, PLACE_PAIRS * units.place + _ROW * row, units.lane
    own, other = y
    dofs = work.sides[units.place, DOFS]
    v = _term(J, at, lane, own[0], other[0])
    v = v + _term(J, at + PAIR, lane, own[1], other[1])
    v = v + _term(J, at + 2 * PAIR, lane, own[2], other[2])
    if dofs > _FEW:
        v = v + _term(J, at + 3 * PAIR, lane, own[3], other[3])
        v = v + _term(J, at + 4 * PAIR, lane, own[4], other[4])
        v = v + _term(J, at + 5 * PAIR, lane, own[5], other[5])
    if dofs > _FREE:
        v = v + _term(J, at + 6 * PAIR, lane, own[6], other[6])
        v = v + _term(J, at + 7 * PAIR, lane, own[7], other[7])
    return v


@inlined
def _term(J: Reals1, at: int, lane: Lane, own: Real, other: Real) -> Real:
    """The share of one dof of both bodies in J̃ y."""
    return load(J, at, lane) * own + load(J, at + WIDTH, lane) * other


@inlined
def push_contact(work: NewtonWork, units: Units, y: Bodies, change: Vec3) -> None:
    """y += J̃ᵀ dλ of three rows, for the velocities y of both bodies."""
    y = _moved(work, units, 0, y, change[0])
    y = _moved(work, units, 1, y, change[1])
    _write(work, units, _moved(work, units, 2, y, change[2]))


@inlined
def push_row(work: NewtonWork, units: Units, y: Bodies, change: Real) -> None:
    """y += J̃ᵀ dλ of one row, for the velocities y of both bodies."""
    _write(work, units, _moved(work, units, 0, y, change))


@inlined
def _write(work: NewtonWork, units: Units, y: Bodies) -> None:
    """Write the velocities of both bodies."""
    scatter(work.moving, work.sides, units.place, BODY, units.lane, y[0])
    scatter(work.moving, work.sides, units.place, OTHER, units.lane, y[1])


@inlined
def _moved(work: NewtonWork, units: Units, row: int, y: Bodies, change: Real) -> Bodies:
    """y + J̃ᵀ dλ of a row."""
    at, dofs = PLACE_PAIRS * units.place + _ROW * row, work.sides[units.place, DOFS]
    own = _moved_body(work.pairs, at, units.lane, dofs, y[0], change)
    return own, _moved_body(work.pairs, at + WIDTH, units.lane, dofs, y[1], change)


@inlined
def _moved_body(J: Reals1, at: int, lane: Lane, dofs: int, y: Strips, change: Real) -> Strips:
    """y + J̃ᵀ dλ of a row, for one of the bodies."""
    y0 = y[0] + load(J, at, lane) * change
    y1 = y[1] + load(J, at + PAIR, lane) * change
    y2 = y[2] + load(J, at + 2 * PAIR, lane) * change
    y3, y4, y5, y6, y7 = y[3], y[4], y[5], y[6], y[7]
    if dofs > _FEW:
        y3 = y3 + load(J, at + 3 * PAIR, lane) * change
        y4 = y4 + load(J, at + 4 * PAIR, lane) * change
        y5 = y5 + load(J, at + 5 * PAIR, lane) * change
    if dofs > _FREE:
        y6 = y6 + load(J, at + 6 * PAIR, lane) * change
        y7 = y7 + load(J, at + 7 * PAIR, lane) * change
    return y0, y1, y2, y3, y4, y5, y6, y7
