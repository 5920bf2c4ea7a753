"""Loads that rows leave open: a choice among the impulses that Coulomb's law allows.

Two pads hold a box by eight points: the weight of the box determines neither the load of each point nor, if the pads
slip, the axis about which the box turns. The solution chosen is the limit of that with compliant contacts as their
compliance goes to 0. The compliance is ε of multipliers.py: one share of the mobility for all rows, one value for all
contacts of two bodies. This choice has no unit and depends neither on earlier steps nor on the order of bodies. Among
impulses that hold a body at rest it is the least sum of squares, each weighed by the mobility of its row (Tikhonov's
regularisation).

In the first round of rows that leave loads open λ_k is therefore 0, not the impulses with which the step began. Further
rounds move λ only by the velocities that the compliance leaves, a millionth. If contacts slip, their loads decide the
motion of bodies: shifts (shift.py) that are held while λ is found stay near their starts, so that only coulomb.py,
which finds shifts and λ together, shares the loads. With little compliance its equations have many solutions there, of
which coulomb.py finds the one next to its start. The start is therefore the solution with a large compliance, of which
there is one, or that of the step before.
"""

from __future__ import annotations

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import NewtonWork

SHARED = 1e-7  # compliance of contacts that share loads, relative to their mobility J diag(M̂)⁻¹ Jᵀ
SOFT = 1e-10  # cfm, relative to that mobility, above which a row needs no ε
_ON_EDGE = 1.0 - 1e-6  # of the square of the largest friction: above it the cone's edge shares in the answer


@njit
def loads_are_open(rows: Rows, work: NewtonWork, island: int) -> Real:
    """1 where the contacts of the island may bear a load in several ways, else 0, T: where two bodies touch in several
    points, or hard rows are more than the dofs that they move. O(entries).
    """
    zero = zero_like(work.change[0])
    contacts, count, shared = zero, zero, zero
    first = work.unit_start[island]
    while first < work.unit_start[island + 1]:
        last = first + 1
        while last < work.unit_start[island + 1] and are_of_one_pair(rows, work.listed[first], work.listed[last]):
            last += 1
        together, widest = zero, zero
        for entry in range(first, last):
            n = work.listed[entry]
            size = where_greater(work.eps[n], zero, acting_rows(rows, work, n), zero)
            together = together + size
            widest = largest(size, widest)
        count = count + together
        if rows.kind[work.listed[first]] == CONTACT_ROW:
            contacts = contacts + together
            shared = where_greater(together - widest, zero + 2.5, zero + 1.0, shared)
        first = last
    if any_positive(where_greater(contacts, zero, 0.5 - shared, zero)):
        shared = where_greater(count, _moved(rows, work, island) + 0.5, zero + 1.0, shared)
    return where_greater(contacts, zero, shared, zero)


@njit
def _moved(rows: Rows, work: NewtonWork, island: int) -> Real:
    """The number of dofs that hard rows of the island move, T."""
    zero = zero_like(work.change[0])
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = zero
    moved = zero
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        hard = where_greater(acts(rows, work, n), zero, work.eps[n], zero)
        for e in range(rows.start[n], rows.stop[n]):
            a = rows.column[e]
            new = where_greater(hard, zero, 1.0 - work.direction[a], zero)
            work.direction[a] = work.direction[a] + new
            moved = moved + new
    return moved


@inlined
def acts(rows: Rows, work: NewtonWork, n: int) -> Real:
    """More than 0 where the unit of row n may have an impulse."""
    zero = zero_like(work.rho[n])
    return where_greater(rows.upper[n], rows.lower[n], work.rho[n], zero)


@inlined
def acting_rows(rows: Rows, work: NewtonWork, n: int) -> Real:
    """The number of rows of the unit of row n where it may have an impulse, else 0, T."""
    zero = zero_like(work.rho[n])
    return where_greater(acts(rows, work, n), zero, zero + max(rows.cone[n], 1), zero)


@inlined
def are_of_one_pair(rows: Rows, n: int, other: int) -> bool:
    """True if two rows are contacts that move the same dofs."""
    alike: bool = rows.kind[n] == CONTACT_ROW and rows.kind[other] == CONTACT_ROW
    begin, entries = rows.start[n], rows.stop[n] - rows.start[n]
    alike = alike and entries > 0 and entries == rows.stop[other] - rows.start[other]
    e = 0
    while alike and e < entries:
        alike = rows.column[begin + e] == rows.column[rows.start[other] + e]
        e += 1
    return alike


@njit
def forget(rows: Rows, work: NewtonWork, island: int, chosen: Real) -> None:
    """Set λ_k of the island to 0 in lanes where `chosen` is 1. From the λ_k of the step before, rounds would lead to
    the nearest impulses that satisfy the rows, which would keep the loads left by an impact for ever."""
    zero = zero_like(chosen)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.centre[row] = where_greater(chosen, zero, zero, work.centre[row])


@njit
def rub(rows: Rows, work: NewtonWork, island: int, impulse: Lanes1) -> Real:
    """1 where one of these impulses (rows,) of a hard contact of the island is on its cone's edge, else 0, T."""
    zero = zero_like(work.change[0])
    rubbing = zero
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.cone[n] > 1:
            square = zero
            for row in range(n + 1, n + rows.cone[n]):
                square = square + impulse[row] * impulse[row]
            limit = rows.slope[n] * impulse[n]
            edge = where_greater(square, _ON_EDGE * limit * limit, zero + 1.0, zero)
            rubbing = where_greater(work.eps[n], zero, largest(edge, rubbing), rubbing)
    return rubbing


@njit
def is_redundant(rows: Rows, work: NewtonWork, island: int) -> bool:
    """True if the island has more contact rows than dofs: contacts then share the load."""
    count, dofs = 0, 0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.kind[n] == CONTACT_ROW:
            count += max(rows.cone[n], 1)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        dofs += work.block_start[b + 1] - work.block_start[b]
    return count > dofs
