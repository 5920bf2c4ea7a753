"""Coulomb's law for the lanes of a pack, in the impulses of each lane's own few rows.

Robots of a pack touch with different limbs: the rows of all lanes together are many more than those of any lane. The
factor of M̂ and J L⁻¹ are therefore found for the rows of all (delassus.py); each lane's own lines of J L⁻¹ are then
moved side by side, and W = J M̂⁻¹ Jᵀ and the dense problem that remains are as small as the most rows of a lane. Lanes
of many rows are apart, for which the others would wait: each takes its steps by itself, and in later efforts, which may
be long, every lane does (lane_coulomb.py).

Own rows keep their order. Where the units of all lanes change size, the lanes' own units begin at one place again, so
that a place holds units of one size. A place without a row of the lane has no bounds there, so that its impulse stays 0
and changes nothing: the result of a lane depends on no other. Impulses are in N s or N m s, velocities in rad/s or m/s.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import (
    any_positive,
    gathered,
    lane_count,
    lane_get,
    lane_of,
    lane_set,
    where_greater,
    zero_like,
)
from artsim.sim.foundation.records import Ints1, Ints2, Lanes1, Pack
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import STEPPING_UNITS, NewtonWork, SolverBundle
from artsim.sim.solvers.blocks import island_places
from artsim.sim.solvers.delassus import list_unit, multiply_halves, row_count, set_halves


@njit
def set_own_delassus(rows: Rows, solver: SolverBundle, island: int) -> None:
    """W of the lanes' own rows among the units listed, those of lanes where pack.placed is 1, for M̂ factorised in
    work.matrix [velocity per impulse]."""
    work, pack, own = solver.newton, solver.pack, solver.own.work
    set_halves(rows, work, island)
    if pack.alike[0] == 1:
        _place_all(rows, solver)
    else:
        _place_units(rows, solver)
        _place_apart(rows, solver)
        _move_lines(solver, island)
    units, end = own.sizes[STEPPING_UNITS], row_count(own)
    while end < pack.own_lines[0]:  # lines of lanes apart
        end += 1
        work.unit_stop[units] = end
        units += 1
    multiply_halves(work, island, units)


@njit
def _place_all(rows: Rows, solver: SolverBundle) -> None:
    """Let the rows of all lanes be those of each."""
    work, pack, own = solver.newton, solver.pack, solver.own
    own.work.sizes[STEPPING_UNITS] = 0
    end = 0
    for unit in range(work.sizes[STEPPING_UNITS]):
        n = work.stepping_unit[unit]
        size = max(rows.cone[n], 1)
        _add_unit(own.rows.cone, solver, end, size)
        for lane in range(pack.own_end.shape[0]):
            for row in range(size):
                pack.own_row[end + row, lane] = n + row
        end += size
    for lane in range(pack.own_end.shape[0]):
        pack.own_end[lane] = end
    pack.own_lines[0] = end


@njit
def _place_units(rows: Rows, solver: SolverBundle) -> None:
    """Give the own units of lanes that step together places, in their order."""
    work, pack, own = solver.newton, solver.pack, solver.own
    lanes = pack.own_end.shape[0]
    own.work.sizes[STEPPING_UNITS] = 0
    line, end, before = 0, 0, 0
    first, first_unit = 0, 0
    for lane in range(lanes):
        pack.own_end[lane] = 0
    for unit in range(work.sizes[STEPPING_UNITS]):
        n = work.stepping_unit[unit]
        size = max(rows.cone[n], 1)
        if size != before:
            before, first, first_unit = size, end, own.work.sizes[STEPPING_UNITS]
            for lane in range(lanes):
                pack.own_end[lane] = first
        for lane in range(lanes):
            if lane_get(pack.placed, n, lane) > 0.0 and lane_get(pack.apart, 0, lane) <= 0.0:
                at = pack.own_end[lane]
                pack.own_end[lane] = at + size
                if at == end:
                    _add_unit(own.rows.cone, solver, at, size)
                    end += size
                pack.own_unit[first_unit + (at - first) // size, lane] = unit
                for row in range(size):
                    pack.own_row[at + row, lane] = n + row
                    pack.own_line[at + row, lane] = line + row
        line += size
    pack.own_lines[0] = end


@njit
def _place_apart(rows: Rows, solver: SolverBundle) -> None:
    """Give the own rows of lanes apart the first places, whatever the units of the other lanes there."""
    work, pack = solver.newton, solver.pack
    for lane in range(pack.own_end.shape[0]):
        if lane_get(pack.apart, 0, lane) <= 0.0:
            continue
        line, at = 0, 0
        for unit in range(work.sizes[STEPPING_UNITS]):
            n = work.stepping_unit[unit]
            size = max(rows.cone[n], 1)
            if lane_get(pack.placed, n, lane) > 0.0:
                for row in range(size):
                    if at == pack.own_lines[0]:
                        _clear_line(solver, at)
                        pack.own_lines[0] = at + 1
                    pack.own_row[at, lane] = n + row
                    pack.own_line[at, lane] = line + row
                    at += 1
            line += size
        pack.own_end[lane] = at


@inlined
def _clear_line(solver: SolverBundle, at: int) -> None:
    """Let no lane have a row in this place."""
    pack = solver.pack
    for lane in range(pack.own_end.shape[0]):
        pack.own_row[at, lane] = -1
        pack.own_line[at, lane] = -1


@inlined
def _add_unit(cone: Ints1, solver: SolverBundle, at: int, size: int) -> None:
    """Add a unit whose rows begin at this place, of no lane yet."""
    pack, own = solver.pack, solver.own.work
    unit = own.sizes[STEPPING_UNITS]
    own.listed[unit] = at
    list_unit(own, at)
    own.unit_start[1] = unit + 1
    own.unit_stop[unit] = at + size
    cone[at] = size if size > 1 else 0
    for lane in range(pack.own_end.shape[0]):
        pack.own_unit[unit, lane] = -1
    for row in range(at, at + size):
        _clear_line(solver, row)
        own.delassus_row[row] = row


@njit
def _move_lines(solver: SolverBundle, island: int) -> None:
    """Move the lines of work.half to the places of the lanes' own rows, none of which is after its line; `reach` of a
    place is 1 where that of any line is."""
    work, pack, own = solver.newton, solver.pack, solver.own.work
    first, last = island_places(work, island)
    nu = work.half.shape[1]
    for i in range(pack.own_lines[0]):
        if _differs(pack.own_line, i):
            for c in range(first, last):
                work.half[i, c] = gathered(work.half, pack.own_line, i, nu, c)
    units = own.sizes[STEPPING_UNITS]
    if any_positive(pack.apart[0]):  # whose lines have other units
        for unit in range(units + pack.own_lines[0] - row_count(own)):
            for p in range(work.island_start[island], work.island_start[island + 1]):
                work.reach[unit, work.member[p]] = 1
        return
    for unit in range(units):
        if _differs(pack.own_unit, unit):
            for p in range(work.island_start[island], work.island_start[island + 1]):
                b = work.member[p]
                reaches = 0
                for lane in range(pack.own_end.shape[0]):
                    other = pack.own_unit[unit, lane]
                    if other >= 0:
                        reaches = max(reaches, work.reach[other, b])
                work.reach[unit, b] = reaches


@inlined
def _differs(places: Ints2, at: int) -> bool:
    """True if any lane has something from elsewhere at this place."""
    for lane in range(places.shape[1]):
        if places[at, lane] >= 0 and places[at, lane] != at:
            return True
    return False


@njit
def take_own_rows(rows: Rows, solver: SolverBundle) -> None:
    """Copy the lanes' own rows from the rows of all, with the λ and the velocities there."""
    source, target = taken_fields(rows, solver.newton), taken_fields(solver.own.rows, solver.own.work)
    for f in range(len(target)):
        for i in range(solver.pack.own_lines[0]):
            target[f][i] = _own(source[f], solver, i)
    for i in range(solver.pack.own_lines[0]):
        begin_row(solver.own.rows, solver.own.work, i)


@inlined
def taken_fields(rows: Rows, work: NewtonWork) -> tuple[Lanes1, ...]:
    """The fields by which rows enter the dense problem, with the λ and the velocities there."""
    return rows.slope, rows.shifting, rows.cfm, rows.lower, rows.upper, rows.impulse, work.velocity, work.eps, work.rho


@inlined
def begin_row(rows: Rows, work: NewtonWork, n: int) -> None:
    """Let λ_k of row n of the dense problem be λ, and nothing be known of its step."""
    work.centre[n] = rows.impulse[n]
    work.along[n] = zero_like(work.rho[n])
    work.linear[n] = zero_like(work.rho[n])


@inlined
def _own(values: Lanes1, solver: SolverBundle, i: int) -> Pack:
    """Values of the lanes' own rows in this place."""
    if solver.pack.alike[0] == 1:
        return values[solver.pack.own_row[i, 0]]
    return gathered(values, solver.pack.own_row, i, 1, 0)


@njit
def give_own_impulses(rows: Rows, solver: SolverBundle, chosen: Pack) -> None:
    """Set λ and λ_k of the rows of all to the λ of the lanes' own rows, in lanes where `chosen` is 1."""
    pack, own = solver.pack, solver.own
    if pack.alike[0] == 1:
        for i in range(row_count(own.work)):
            n = pack.own_row[i, 0]
            rows.impulse[n] = where_greater(chosen, zero_like(chosen), own.rows.impulse[i], rows.impulse[n])
            solver.newton.centre[n] = rows.impulse[n]
        return
    for lane in range(lane_count(chosen)):
        if lane_of(chosen, lane) > 0.0:
            for i in range(pack.own_end[lane]):
                n = pack.own_row[i, lane]
                if n >= 0:
                    impulse = lane_get(own.rows.impulse, i, lane)
                    lane_set(rows.impulse, n, lane, impulse)
                    lane_set(solver.newton.centre, n, lane, impulse)
