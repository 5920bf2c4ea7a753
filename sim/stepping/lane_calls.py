"""Calls of a pack's solver: which lanes it solves, and in which the velocities found before stand, to the last bit.

A step begins with no solution. Lanes without rows take the step without rows, all others are solved together. Lanes
whose velocities call for it (stepping/retries.py) are solved again, with other rows, targets or forces.
"""

from __future__ import annotations

from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.contact.pack_contacts import PackSolver
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import highest, lane_count, lane_set, where_greater, zero_like
from artsim.sim.foundation.records import Ints1, Pack
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import LARGE, M_IS_SET, RESIDUAL, WEIGHED, Rows, Step


@inlined
def begin_solutions(pack: PackSolver) -> None:
    """Begin with no solution."""
    zero = zero_like(pack.done[0])
    pack.done[0] = pack.warm[0] = pack.by_newton[0] = zero
    pack.same[0] = 0


@njit
def choose_lanes(step: Step, pack: PackSolver, alive: Ints1) -> None:
    """Set pack.skip, the lanes that the solver ignores: those without rows, those whose solution stands, and dead ones,
    which count as lanes with rows."""
    zero = zero_like(pack.done[0])
    pack.skip[0] = where_greater(step.bound[0], zero, pack.done[0], zero + 1.0)
    for lane in range(lane_count(pack.skip)):
        if not alive[lane]:
            lane_set(step.bound, 0, lane, 1.0)
            lane_set(pack.skip, 0, lane, 1.0)


@inlined
def lanes_to_look_at(step: Step, pack: PackSolver, one: Pack) -> Pack:
    """1 in lanes whose solution is to be looked at: not in those whose rows the solver ignores."""
    zero = zero_like(one)
    chosen = where_greater(pack.done[0], zero, zero, one)
    return where_greater(step.bound[0] * pack.skip[0], zero, zero, chosen)


@inlined
def solve_lanes(step: Step, pack: PackSolver) -> None:
    """Find step.next of lanes with rows; that of the others is the one of the step without rows."""
    run_entry(pack.entry)
    zero = zero_like(pack.done[0])
    for k in range(step.next.shape[0]):
        step.next[k] = where_greater(step.bound[0], zero, step.next[k], pack.free[k])


@inlined
def keep_what_stands(step: Step, pack: PackSolver) -> None:
    """Restore step.next of lanes whose solution stands."""
    zero = zero_like(pack.done[0])
    for k in range(step.next.shape[0]):
        step.next[k] = where_greater(pack.done[0], zero, pack.kept[k], step.next[k])


@inlined
def start_again(step: Step, rows: Rows, pack: PackSolver, again: tuple[Pack, Pack, Pack], by_rules: bool) -> None:
    """Prepare a further solution. `again`: 1 in lanes whose rows have changed, whose targets have, and whose bias acts
    elsewhere; `by_rules`: rows may act on other dofs when they are built anew, those of links' bounds."""
    changed, aimed, moved = again
    warm = start_of_next(rows, step.bound[0])
    pack.warm[0] = largest(warm, aimed)  # targets change, and impulses stay as they are
    anew = highest(changed) > 0.0 or step.counters[WEIGHED] & M_IS_SET == 0 or by_rules
    pack.same[0] = 0 if anew else 1
    keep_others(step, pack, changed + aimed + moved)


@inlined
def start_of_next(rows: Rows, bound: Pack) -> Pack:
    """1 in lanes that have rows and whose impulses are a start for the next solution: they solve the rows, and are not
    so large that they lose the digits of velocities."""
    zero = zero_like(bound)
    start = where_greater(rows.report[RESIDUAL], zero + UNSOLVED, zero, bound)
    return where_greater(rows.report[LARGE], zero, zero, start)


@inlined
def keep_others(step: Step, pack: PackSolver, chosen: Pack) -> None:
    """Keep the velocities found in lanes where `chosen` is 0."""
    pack.done[0] = 1.0 - chosen
    for k in range(step.next.shape[0]):
        pack.kept[k] = step.next[k]
