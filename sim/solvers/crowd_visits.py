"""Visits of the units of a crowd, which solve them by their law, set λ as a mixture wants it, or find the residual.

Each is written for units abreast (CONTACTS, ROWS), whose products are those of crowd_lanes.py, and for one by itself
(ONE), with those of crowd_matrix.py; the law is the same, and so is its code (crowd_law.py). Cones that have other
numbers of rows than three, for spinning and rolling friction, are always visited one by one, and take a projection
step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from artsim.sim.foundation.body_strips import save
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive
from artsim.sim.foundation.records import WIDTH, ConstInts1
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import NewtonWork
from artsim.sim.solvers.cone import cone_projection
from artsim.sim.solvers.crowd_lanes import VisitAbreast, abreast, bodies, push_contact, push_row, velocity
from artsim.sim.solvers.crowd_law import (
    LOWER,
    MISS,
    PULL,
    SLOPE,
    SOFT,
    UPPER,
    Units,
    law_of,
    of_row,
    pushes,
    set_row,
    solve_contact,
    solve_row,
    take_contact,
    take_row,
)
from artsim.sim.solvers.crowd_matrix import apply, find_velocities
from artsim.sim.solvers.crowd_order import CONTACTS, ENTRY, KIND, ONE, PLACE, ROWS, UNITS

_VisitOne: TypeAlias = Callable[[ConstInts1, Rows, NewtonWork, int, Units], None]

# ------------------------------------------------------------------ solved by their law


@njit
def sweep(parent: ConstInts1, rows: Rows, work: NewtonWork, visits: int) -> None:
    """Solve all units, one visit after the other."""
    for visit in range(visits):
        _visit(parent, rows, work, visit, _solve_contacts, _solve_rows, _solve_one)


@inlined
def _visit(
    parent: ConstInts1,
    rows: Rows,
    work: NewtonWork,
    visit: int,
    by_contacts: VisitAbreast,
    by_rows: VisitAbreast,
    by_one: _VisitOne,
) -> None:
    """Visit the unit or units of a line of work.visits, by the function for their kind."""
    line = work.visits[visit]
    kind, units, place = line[KIND], line[UNITS], line[PLACE]
    if kind == CONTACTS:
        abreast(by_contacts, work, place, units)
    elif kind == ROWS:
        abreast(by_rows, work, place, units)
    else:
        by_one(parent, rows, work, work.sequence[line[ENTRY]], Units(place, 1, 0))


@inlined
def _solve_contacts(work: NewtonWork, units: Units) -> None:
    """Solve contacts; of those that all stay open only the normal velocity is computed."""
    y = bodies(work, units)
    v = velocity(work, units, 0, y)
    if any_positive(pushes(work, units, v)):
        change = solve_contact(work, units, (v, velocity(work, units, 1, y), velocity(work, units, 2, y)))
        push_contact(work, units, y, change)


@inlined
def _solve_rows(work: NewtonWork, units: Units) -> None:
    """Solve rows with bounds."""
    y = bodies(work, units)
    change = solve_row(work, units, velocity(work, units, 0, y))
    if any_positive(absolute(change)):
        push_row(work, units, y, change)


@inlined
def _solve_one(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """Solve the unit of row n."""
    v, change = work.along, work.linear
    find_velocities(parent, rows, work, n, unit)
    if rows.cone[n] == 3:
        change[n], change[n + 1], change[n + 2] = solve_contact(work, unit, (v[n], v[n + 1], v[n + 2]))
    elif rows.cone[n] > 1:
        _step_cone(rows, work, n, unit)
    else:
        change[n] = solve_row(work, unit, v[n])
    _apply_change(parent, rows, work, n, unit)


@inlined
def _apply_change(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """y += J̃ᵀ dλ of the unit of row n, unless its dλ in work.linear is 0."""
    moves = False
    for row in range(n, n + max(rows.cone[n], 1)):
        moves = moves or work.linear[row] != 0.0
    if moves:
        apply(parent, rows, work, n, unit)


@njit
def _step_cone(rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """Take a projection step with a cone; work.linear is then the change of λ."""
    soft = law_of(work, unit, 0, SOFT)
    square = 0.0
    for row in range(rows.cone[n]):
        z = of_row(work.impulse, unit, row)
        v = work.along[n + row] + law_of(work, unit, row, MISS) + soft * z
        work.linear[n + row] = z - law_of(work, unit, row, PULL) * v
        square += work.linear[n + row] * work.linear[n + row] if row > 0 else 0.0
    _set_cone(rows, work, n, unit, square)


@inlined
def _set_cone(rows: Rows, work: NewtonWork, n: int, unit: Units, square: float) -> None:
    """Set λ of a cone to work.linear, within the cone, and work.linear to its change; square: |λ_t|² there."""
    normal = max(0.0, work.linear[n])
    most = law_of(work, unit, 0, SLOPE) * normal
    length = math.sqrt(square)
    factor = most / length if length > most else 1.0
    for row in range(rows.cone[n]):
        before = of_row(work.impulse, unit, row)
        z = factor * work.linear[n + row] if row > 0 else normal
        set_row(work.impulse, unit, row, z)
        work.linear[n + row] = z - before


# ------------------------------------------------------------------ λ as wanted


@njit
def set_impulses(parent: ConstInts1, rows: Rows, work: NewtonWork, visits: int) -> None:
    """Set λ of all units to work.wanted, within bounds and cones, and y to match."""
    for visit in range(visits):
        _visit(parent, rows, work, visit, _set_contacts, _set_rows, _set_one)


@inlined
def _set_contacts(work: NewtonWork, units: Units) -> None:
    """Set λ of contacts."""
    change = take_contact(work, units)
    if any_positive(absolute(change[0]) + absolute(change[1]) + absolute(change[2])):
        push_contact(work, units, bodies(work, units), change)


@inlined
def _set_rows(work: NewtonWork, units: Units) -> None:
    """Set λ of rows with bounds."""
    change = take_row(work, units, of_row(work.wanted, units, 0))
    if any_positive(absolute(change)):
        push_row(work, units, bodies(work, units), change)


@inlined
def _set_one(parent: ConstInts1, rows: Rows, work: NewtonWork, n: int, unit: Units) -> None:
    """Set λ of the unit of row n."""
    change = work.linear
    if rows.cone[n] == 3:
        change[n], change[n + 1], change[n + 2] = take_contact(work, unit)
    elif rows.cone[n] > 1:
        square = 0.0
        for row in range(rows.cone[n]):
            change[n + row] = of_row(work.wanted, unit, row)
            square += change[n + row] * change[n + row] if row > 0 else 0.0
        _set_cone(rows, work, n, unit, square)
    else:
        change[n] = take_row(work, unit, of_row(work.wanted, unit, 0))
    _apply_change(parent, rows, work, n, unit)


# ------------------------------------------------------------------ the residual


@njit
def residual(parent: ConstInts1, rows: Rows, work: NewtonWork, visits: int) -> float:
    """The largest |λ - P(λ - ρ û)| / ρ of a unit [rad/s or m/s], as coulomb_system.py has it."""
    worst = 0.0
    for visit in range(visits):
        _visit(parent, rows, work, visit, _note_contacts, _note_rows, find_velocities)
        line = work.visits[visit]
        kind, entry, units, place = line[KIND], line[ENTRY], line[UNITS], line[PLACE]
        for lane in range(units):
            n = work.sequence[entry + lane]
            if kind != ONE:
                for row in range(max(rows.cone[n], 1)):
                    work.along[n + row] = work.abreast[WIDTH * row + lane]
            unit = Units(place, 1 if kind == ONE else WIDTH, lane)
            missed = _cone_miss(rows, work, n, unit) if rows.cone[n] > 1 else _row_miss(work, n, unit)
            worst = max(missed * inverse_or_zero(work.rho[n]), worst)
    return worst


@inlined
def _note_contacts(work: NewtonWork, units: Units) -> None:
    """work.abreast = J̃ y of contacts, row by row."""
    y = bodies(work, units)
    for row in range(3):
        save(work.abreast, WIDTH * row, units.lane, velocity(work, units, row, y))


@inlined
def _note_rows(work: NewtonWork, units: Units) -> None:
    """work.abreast = J̃ y of rows with bounds."""
    save(work.abreast, 0, units.lane, velocity(work, units, 0, bodies(work, units)))


@inlined
def _row_miss(work: NewtonWork, n: int, unit: Units) -> float:
    """|λ - P(λ - ρ u)| of a row with bounds."""
    z = of_row(work.impulse, unit, 0)
    free = z - work.rho[n] * (work.along[n] + law_of(work, unit, 0, MISS) + law_of(work, unit, 0, SOFT) * z)
    return abs(z - min(max(law_of(work, unit, 0, LOWER), free), law_of(work, unit, 0, UPPER)))


@njit
def _cone_miss(rows: Rows, work: NewtonWork, n: int, unit: Units) -> float:
    """|λ - P(λ - ρ û)| of a cone."""
    mu, soft = law_of(work, unit, 0, SLOPE), law_of(work, unit, 0, SOFT)
    slip, square = 0.0, 0.0
    for row in range(rows.cone[n]):
        z = of_row(work.impulse, unit, row)
        v = work.along[n + row] + law_of(work, unit, row, MISS) + soft * z
        work.linear[n + row] = z - work.rho[n] * v
        if row > 0:
            slip += v * v
            square += work.linear[n + row] * work.linear[n + row]
    free = work.linear[n] - work.rho[n] * mu * math.sqrt(slip)
    length = math.sqrt(square)
    _, _, _, _, along, across = cone_projection(mu, free, length, inverse_or_zero(length))
    scale = across * inverse_or_zero(length)
    off = of_row(work.impulse, unit, 0) - along
    total = off * off
    for row in range(1, rows.cone[n]):
        off = of_row(work.impulse, unit, row) - scale * work.linear[n + row]
        total += off * off
    return math.sqrt(total)
