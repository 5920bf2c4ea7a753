"""Visits WIDTH units of a crowd at once, one in each lane.

A unit is a contact with friction, or a row with bounds; no two of the WIDTH move the same body.

Row r of the unit in lane l has the place p + WIDTH r + l among the island's rows, so that row r of all units is a
strip. The units' lines of `law` and `pairs` are turned (`turn`): column c of row r in lane l becomes entry l of line
p + WIDTH r + c, or, of the second body in `pairs`, entry WIDTH + l. The strips of velocities in `moving`, one per body,
are turned in registers. A lane's result does not depend on the others.

Without numba the results are computed lane by lane.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.foundation.body_strips import gather, loading, read, scatter, write
from artsim.sim.foundation.jit import compiled_form, inlined
from artsim.sim.foundation.lanes import absolute, any_positive, sqrt, where_greater, zero_like
from artsim.sim.foundation.records import WIDTH, Pack, Reals2, Vec3
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.foundation.strips import _store
from artsim.sim.run_data.scratch import NewtonWork
from artsim.sim.solvers.crowd_law import impulse_at

# columns of work.law, in the line of a unit's first row
MISS, SOFT, SLOPE, RATE, PULL, W0, W1, W2 = range(8)  # RATE: κ of a contact that slides; PULL: impulse per velocity
LOWER, UPPER = W0, W1  # of a row with bounds
BIG, SMALL = 1, 2  # in the line of a contact's second row
COSINE, SINE = 1, 2  # in the line of a contact's third row
# columns of work.sides, in the line of a unit's first row
PAIRED, BODY, OTHER = range(3)
_FEW, _FREE = 3, 6  # dofs of a body that slides along three axes, and of a free one: columns beyond need not be read


_of_law, _of_pairs = loading(WIDTH), loading(2 * WIDTH)


# ------------------------------------------------------------------ cones


@inlined
def _within_cone(z: Vec3, mu: Pack) -> Vec3:
    """An impulse with its normal part not below 0 and its tangential part at most μ times the normal part."""
    zero = zero_like(mu)
    z0 = where_greater(z[0], zero, z[0], zero)
    square = z[1] * z[1] + z[2] * z[2]
    most = mu * z0
    scale = where_greater(square, most * most, most / sqrt(square), zero + 1.0)
    return z0, scale * z[1], scale * z[2]


# ------------------------------------------------------------------ products


@inlined
def _times(J: Reals2, line: int, column: int, width: int, y: tuple[Pack, ...]) -> Pack:
    """Σ J[line + i, column : column + WIDTH] y[i], over `width` columns."""
    v = (
        _of_pairs(J, line, column) * y[0]
        + _of_pairs(J, line + 1, column) * y[1]
        + _of_pairs(J, line + 2, column) * y[2]
    )
    if width > _FEW:
        v = v + _of_pairs(J, line + 3, column) * y[3] + _of_pairs(J, line + 4, column) * y[4]
        v = v + _of_pairs(J, line + 5, column) * y[5]
    if width > _FREE:
        v = v + _of_pairs(J, line + 6, column) * y[6] + _of_pairs(J, line + 7, column) * y[7]
    return v


@inlined
def _column_times(J: Reals2, line: int, column: int, z: Vec3) -> Pack:
    """Σ J[line + WIDTH r, column : column + WIDTH] z[r] over three rows."""
    v = _of_pairs(J, line, column) * z[0] + _of_pairs(J, line + WIDTH, column) * z[1]
    return v + _of_pairs(J, line + 2 * WIDTH, column) * z[2]


@inlined
def _move_three(J: Reals2, p: int, column: int, width: int, y: tuple[Pack, ...], z: Vec3) -> tuple[Pack, ...]:
    """y + J̃ᵀ z of one body per lane, for three rows."""
    y0 = y[0] + _column_times(J, p, column, z)
    y1 = y[1] + _column_times(J, p + 1, column, z)
    y2 = y[2] + _column_times(J, p + 2, column, z)
    y3, y4, y5, y6, y7 = y[3], y[4], y[5], y[6], y[7]
    if width > _FEW:
        y3 = y3 + _column_times(J, p + 3, column, z)
        y4 = y4 + _column_times(J, p + 4, column, z)
        y5 = y5 + _column_times(J, p + 5, column, z)
    if width > _FREE:
        y6 = y6 + _column_times(J, p + 6, column, z)
        y7 = y7 + _column_times(J, p + 7, column, z)
    return y0, y1, y2, y3, y4, y5, y6, y7


@inlined
def _move_one(J: Reals2, p: int, column: int, width: int, y: tuple[Pack, ...], z: Pack) -> tuple[Pack, ...]:
    """y + J̃ᵀ z of one body per lane, for one row."""
    y0 = y[0] + _of_pairs(J, p, column) * z
    y1 = y[1] + _of_pairs(J, p + 1, column) * z
    y2 = y[2] + _of_pairs(J, p + 2, column) * z
    y3, y4, y5, y6, y7 = y[3], y[4], y[5], y[6], y[7]
    if width > _FEW:
        y3 = y3 + _of_pairs(J, p + 3, column) * z
        y4 = y4 + _of_pairs(J, p + 4, column) * z
        y5 = y5 + _of_pairs(J, p + 5, column) * z
    if width > _FREE:
        y6 = y6 + _of_pairs(J, p + 6, column) * z
        y7 = y7 + _of_pairs(J, p + 7, column) * z
    return y0, y1, y2, y3, y4, y5, y6, y7


@inlined
def _velocity_in_lanes(J: Reals2, line: int, width: int, y: tuple[Pack, ...], x: tuple[Pack, ...]) -> Pack:
    """J̃ y of one row of WIDTH units: y of their first bodies, x of their second ones."""
    return _times(J, line, 0, width, y) + _times(J, line, WIDTH, width, x)


@inlined
def _push_three(work: NewtonWork, p: int, width: int, y: tuple[Pack, ...], x: tuple[Pack, ...], z: Vec3) -> None:
    """Add J̃ᵀ z of three rows to the velocities y, x of both bodies."""
    scatter(work.moving, work.sides, p, BODY, _move_three(work.pairs, p, 0, width, y, z))
    scatter(work.moving, work.sides, p, OTHER, _move_three(work.pairs, p, WIDTH, width, x, z))


@inlined
def _push_one(work: NewtonWork, p: int, width: int, y: tuple[Pack, ...], x: tuple[Pack, ...], z: Pack) -> None:
    """Add J̃ᵀ z of one row to the velocities y, x of both bodies."""
    scatter(work.moving, work.sides, p, BODY, _move_one(work.pairs, p, 0, width, y, z))
    scatter(work.moving, work.sides, p, OTHER, _move_one(work.pairs, p, WIDTH, width, x, z))


@inlined
def _bodies(work: NewtonWork, p: int) -> tuple[int, tuple[Pack, ...], tuple[Pack, ...]]:
    """The number of columns of J̃ that are read, and the velocities of both bodies."""
    y = gather(work.moving, work.sides, p, BODY)
    x = gather(work.moving, work.sides, p, OTHER)
    return work.sides[p, PAIRED], y, x


# ------------------------------------------------------------------ visits


def _velocity(work: Any, p: int, row: int, lane: int) -> Any:
    """J̃ y of a row in one lane."""
    a, b = work.moving[work.sides[p + lane, BODY]], work.moving[work.sides[p + lane, OTHER]]
    line = p + WIDTH * row
    own, others = work.pairs[line : line + WIDTH, lane], work.pairs[line : line + WIDTH, WIDTH + lane]
    return sum(own[i] * a[i] + others[i] * b[i] for i in range(WIDTH))


def _move(work: Any, p: int, row: int, lane: int, z: float) -> None:
    """y += J̃ᵀ z of a row in one lane."""
    line = p + WIDTH * row
    work.moving[work.sides[p + lane, BODY]] += work.pairs[line : line + WIDTH, lane] * z
    work.moving[work.sides[p + lane, OTHER]] += work.pairs[line : line + WIDTH, WIDTH + lane] * z


def visit_contacts(work: Any, p: int) -> None:
    """Solve WIDTH contacts with friction by their law."""
    law = work.law
    for lane in range(WIDTH):
        places = p + lane, p + WIDTH + lane, p + 2 * WIDTH + lane
        z: Any = [work.impulse[place] for place in places]
        v: Any = [_velocity(work, p, row, lane) + law[p + WIDTH * row + MISS, lane] for row in range(3)]
        w: Any = [law[p + entry, lane] for entry in (W0, W1, W2, WIDTH + BIG, WIDTH + SMALL)]
        rest: Any = [law[p + entry, lane] for entry in (SOFT, PULL, SLOPE, RATE)]
        *found, law[p + RATE, lane] = impulse_at(v, z, w, rest)
        for row in range(3):
            work.impulse[places[row]] = found[row]
            _move(work, p, row, lane, found[row] - z[row])


@compiled_form(visit_contacts)
def _visit_contacts(work, p):  # type: ignore[no-untyped-def]
    def strips(work, p):  # type: ignore[no-untyped-def]
        J, law = work.pairs, work.law
        width, y, x = _bodies(work, p)
        a = read(work.impulse, p)
        v0 = _velocity_in_lanes(J, p, width, y, x) + _of_law(law, p + MISS, 0)
        zero = zero_like(a)
        if not any_positive(where_greater(a, zero, a, -v0)):
            return  # all contacts stay open
        b, c = read(work.impulse, p + WIDTH), read(work.impulse, p + 2 * WIDTH)
        v1 = _velocity_in_lanes(J, p + WIDTH, width, y, x)
        v2 = _velocity_in_lanes(J, p + 2 * WIDTH, width, y, x)
        v = v0, v1 + _of_law(law, p + WIDTH + MISS, 0), v2 + _of_law(law, p + 2 * WIDTH + MISS, 0)
        stiff = _of_law(law, p + WIDTH + BIG, 0), _of_law(law, p + WIDTH + SMALL, 0)
        w = _of_law(law, p + W0, 0), _of_law(law, p + W1, 0), _of_law(law, p + W2, 0), stiff[0], stiff[1]
        rest = (
            _of_law(law, p + SOFT, 0),
            _of_law(law, p + PULL, 0),
            _of_law(law, p + SLOPE, 0),
            _of_law(law, p + RATE, 0),
        )
        z0, z1, z2, rate = impulse_at(v, (a, b, c), w, rest)
        _store(law, p + RATE, 0, rate)
        write(work.impulse, p, z0)
        write(work.impulse, p + WIDTH, z1)
        write(work.impulse, p + 2 * WIDTH, z2)
        z = z0 - a, z1 - b, z2 - c
        _push_three(work, p, width, y, x, z)

    return strips


def visit_rows(work: Any, p: int) -> None:
    """Solve WIDTH rows with bounds."""
    law = work.law
    for lane in range(WIDTH):
        z = work.impulse[p + lane]
        v = _velocity(work, p, 0, lane) + law[p + MISS, lane] + law[p + SOFT, lane] * z
        found = min(max(law[p + LOWER, lane], z - law[p + PULL, lane] * v), law[p + UPPER, lane])
        work.impulse[p + lane] = found
        _move(work, p, 0, lane, found - z)


@compiled_form(visit_rows)
def _visit_rows(work, p):  # type: ignore[no-untyped-def]
    def strips(work, p):  # type: ignore[no-untyped-def]
        J, law = work.pairs, work.law
        width, y, x = _bodies(work, p)
        z = read(work.impulse, p)
        v = _velocity_in_lanes(J, p, width, y, x)
        v = v + _of_law(law, p + MISS, 0) + _of_law(law, p + SOFT, 0) * z
        found = least(
            largest(_of_law(law, p + LOWER, 0), z - _of_law(law, p + PULL, 0) * v), _of_law(law, p + UPPER, 0)
        )
        change = found - z
        if not any_positive(absolute(change)):
            return
        write(work.impulse, p, found)
        _push_one(work, p, width, y, x, change)

    return strips


def set_contacts(work: Any, p: int, wanted: Any) -> None:
    """Set the impulses of WIDTH contacts to those wanted, within their cones, and y to match."""
    for lane in range(WIDTH):
        places = p + lane, p + WIDTH + lane, p + 2 * WIDTH + lane
        impulse: Any = [wanted[place] for place in places]
        found = _within_cone(impulse, work.law[p + SLOPE, lane])
        for row in range(3):
            _move(work, p, row, lane, found[row] - work.impulse[places[row]])
            work.impulse[places[row]] = found[row]


@compiled_form(set_contacts)
def _set_contacts(work, p, wanted):  # type: ignore[no-untyped-def]
    def strips(work, p, wanted):  # type: ignore[no-untyped-def]
        a, b, c = read(work.impulse, p), read(work.impulse, p + WIDTH), read(work.impulse, p + 2 * WIDTH)
        aims = read(wanted, p), read(wanted, p + WIDTH), read(wanted, p + 2 * WIDTH)
        z0, z1, z2 = _within_cone(aims, _of_law(work.law, p + SLOPE, 0))
        z = z0 - a, z1 - b, z2 - c
        if not any_positive(absolute(z[0]) + absolute(z[1]) + absolute(z[2])):
            return
        write(work.impulse, p, z0)
        write(work.impulse, p + WIDTH, z1)
        write(work.impulse, p + 2 * WIDTH, z2)
        width, y, x = _bodies(work, p)
        _push_three(work, p, width, y, x, z)

    return strips


def set_rows(work: Any, p: int, wanted: Any) -> None:
    """Set the impulses of WIDTH rows with bounds to those wanted, within their bounds, and y to match."""
    for lane in range(WIDTH):
        found = min(max(work.law[p + LOWER, lane], wanted[p + lane]), work.law[p + UPPER, lane])
        _move(work, p, 0, lane, found - work.impulse[p + lane])
        work.impulse[p + lane] = found


@compiled_form(set_rows)
def _set_rows(work, p, wanted):  # type: ignore[no-untyped-def]
    def strips(work, p, wanted):  # type: ignore[no-untyped-def]
        found = least(largest(_of_law(work.law, p + LOWER, 0), read(wanted, p)), _of_law(work.law, p + UPPER, 0))
        change = found - read(work.impulse, p)
        if not any_positive(absolute(change)):
            return
        write(work.impulse, p, found)
        width, y, x = _bodies(work, p)
        _push_one(work, p, width, y, x, change)

    return strips


def velocities(work: Any, p: int, count: int) -> None:
    """work.abreast = J̃ y of `count` rows of WIDTH units, a line per row."""
    for row in range(count):
        for lane in range(WIDTH):
            work.abreast[row, lane] = _velocity(work, p, row, lane)


@compiled_form(velocities)
def _velocities(work, p, count):  # type: ignore[no-untyped-def]
    def strips(work, p, count):  # type: ignore[no-untyped-def]
        J = work.pairs
        width, y, x = _bodies(work, p)
        for row in range(count):
            line = p + WIDTH * row
            _store(work.abreast, row, 0, _velocity_in_lanes(J, line, width, y, x))

    return strips
