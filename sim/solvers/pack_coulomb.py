"""Coulomb's law for a pack: the Newton steps of coulomb.py for 8 robots, each of which ends independently."""

from __future__ import annotations

import math
from typing import TypeAlias

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, lane_count, lane_of, lane_set, where_greater, zero_like
from artsim.sim.foundation.records import Pack
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import (
    FEW_UNITS,
    KEPT_ISLAND,
    KEPT_UNITS,
    MOST_DELASSUS_ROWS,
    MOST_OF_LANE,
    MOST_TOGETHER,
    NewtonWork,
    SolverBundle,
)
from artsim.sim.solvers.attempts import restart
from artsim.sim.solvers.coulomb import (
    EASIER,
    GLANCE,
    HARDER,
    MEMORY,
    NO_BETTER,
    OVERFLOWING,
    ROUND_STEPS,
    balance,
    balance_by_factor,
    begin_round,
    begin_rounds,
    bound_of_sharing,
    find_step,
    go_on_sharing,
    is_met,
    recentre,
    refresh,
    scale,
    take_step,
)
from artsim.sim.solvers.coulomb_system import residual, set_rates
from artsim.sim.solvers.delassus import MOST_PULL, list_unit, set_delassus
from artsim.sim.solvers.impulses import keep
from artsim.sim.solvers.lane_coulomb import HEAVY, SETTLED, settle_lane
from artsim.sim.solvers.loads import acts, loads_are_open
from artsim.sim.solvers.tolerance import (
    ABSURD,
    ENOUGH,
    UNTRIED,
    largest_impulse,
    largest_pull,
    natural_impulse,
    rounding,
    tolerance_of,
)

_REFINEMENTS = 4  # of a lane's impulses by the velocities that follow from x: the first suffices as a rule

# of steps that lanes take together: most, first, near and shared as in coulomb.Effort; True for steps in impulses; True
# if W is kept
Steps: TypeAlias = tuple[tuple[int, float, bool, bool], bool, bool]


@njit
def slide(
    model: Model,
    data: Workspace,
    rows: Rows,
    step: Step,
    solver: SolverBundle,
    island: int,
    chosen: Pack,
    effort: tuple[int, float, bool, bool],
) -> Pack:
    """Solve Coulomb's law of the island from x = 0 and the warm-start λ in lanes where `chosen` is 1; return 1 in lanes
    that are solved, whose results are then in pack.change and pack.impulse. effort: (most, first, near, shared) as in
    `coulomb`. work.gradient holds -f - Jᵀλ.

    Lanes of few rows take steps in impulses; as many of these lanes share W as it has room for. The result of a lane
    does not depend on the lanes with which it shares.
    """
    left = chosen * fits_delassus(rows, solver, island)
    others = chosen - left
    solved = zero_like(chosen)
    tried = False
    while any_positive(left):
        kept = _list_lanes(rows, solver, island, left)
        if tried:
            restart(model, data, rows, step, solver, island)
        tried = True
        if differ(solver):
            solved = solved + _slide_one_by_one(model, data, rows, step, solver, island, effort, kept)
        else:
            now = solver.pack.in_impulses[0]
            solved = solved + _slide(model, data, rows, step, solver, island, now, (effort, True, kept))
        left = left - solver.pack.in_impulses[0]
    if any_positive(others):
        if tried:
            restart(model, data, rows, step, solver, island)
        solved = solved + _slide(model, data, rows, step, solver, island, others, (effort, False, False))
    return solved


@inlined
def differ(solver: SolverBundle) -> bool:
    """True if lanes may have quite different rows: the contacts of a robot can have more than W has room for.

    A quadruped's four feet fill most rows of most lanes, which then step together; of a humanoid's hundreds of rows
    each lane has a few of its own.
    """
    return solver.pack.unlike[0] == 1


@njit
def fits_delassus(rows: Rows, solver: SolverBundle, island: int) -> Pack:
    """1 in lanes of so few rows that steps are taken in impulses, and whose impulses are not too large for such steps.

    If lanes step together, these are lanes with contacts that have no more rows than there are dofs; if lanes step one
    by one, those with contacts or limits: other rows hardly leave their bounds, and one step solves them in all lanes.
    """
    work = solver.newton
    zero = zero_like(work.change[0])
    count, of_contacts, of_limits, dofs = zero, zero, zero, 0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        size = where_greater(acts(rows, work, n), zero, zero + max(rows.cone[n], 1), zero)
        count = count + size
        if rows.cone[n] > 1:
            of_contacts = of_contacts + size
        else:
            one_sided = where_greater(rows.lower[n], zero - math.inf, size, zero)
            of_limits = of_limits + where_greater(zero + math.inf, rows.upper[n], zero, one_sided)
    within = where_greater(largest_pull(rows, work, island), zero + MOST_PULL, zero, zero + 1.0)
    within = where_greater(solver.pack.large_impulses[0], zero, zero, within)
    if differ(solver):
        within = where_greater(of_contacts + of_limits, zero, within, zero)
        return where_greater(count, zero + MOST_OF_LANE, zero, within)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        dofs += work.block_start[b + 1] - work.block_start[b]
    within = where_greater(of_contacts, zero, within, zero)
    within = where_greater(of_contacts, zero + dofs, zero, within)
    return where_greater(count, zero + MOST_DELASSUS_ROWS, zero, within)


@njit
def _list_lanes(rows: Rows, solver: SolverBundle, island: int, left: Pack) -> bool:
    """Set pack.in_impulses to 1 in as many of the lanes where `left` is 1 as W has room for, and list their units; True
    where W and the factor of M̂ are those of a solution before, which had these units.
    """
    work = solver.newton
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        work.marked[work.listed[entry]] = 0
    kept = work.sizes[KEPT_ISLAND] == island + 1
    if kept:
        for unit in range(work.sizes[KEPT_UNITS]):
            work.marked[work.delassus_unit[unit]] = 1
        for entry in range(work.unit_start[island], work.unit_start[island + 1]):
            n = work.listed[entry]
            if work.marked[n] == 0 and any_positive(left * acts(rows, work, n)):
                kept = False
    if kept:
        solver.pack.in_impulses[0] = left
        return True
    solver.pack.in_impulses[0] = zero_like(left)
    work.sizes[FEW_UNITS] = 0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        work.marked[work.listed[entry]] = 0
    count = 0
    room = MOST_TOGETHER if differ(solver) else MOST_DELASSUS_ROWS
    for lane in range(lane_count(solver.pack.in_impulses)):
        if lane_of(left, lane) > 0.0:
            more = 0
            for entry in range(work.unit_start[island], work.unit_start[island + 1]):
                n = work.listed[entry]
                if work.marked[n] == 0 and lane_of(acts(rows, work, n), lane) > 0.0:
                    more += max(rows.cone[n], 1)
            if count + more <= room:
                count += more
                lane_set(solver.pack.in_impulses, 0, lane, 1.0)
                for entry in range(work.unit_start[island], work.unit_start[island + 1]):
                    n = work.listed[entry]
                    if lane_of(acts(rows, work, n), lane) > 0.0:
                        work.marked[n] = 1
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        if work.marked[work.listed[entry]] == 1:
            list_unit(work, work.listed[entry])
    return False


@njit
def _slide_one_by_one(
    model: Model,
    data: Workspace,
    rows: Rows,
    step: Step,
    solver: SolverBundle,
    island: int,
    effort: tuple[int, float, bool, bool],
    kept: bool,
) -> Pack:
    """Solve Coulomb's law in lanes where pack.in_impulses is 1, whose units are listed, each lane by itself from W; x,
    the velocities that follow from x, and their residual are then found for all. Return 1 in lanes that are solved.
    """
    work = solver.newton
    running = solver.pack.in_impulses[0]
    zero = zero_like(running)
    tolerance = tolerance_of(rows, step.next, work, island)
    limit = natural_impulse(data, rows, step, work, island, tolerance)
    _prepare(model, data, rows, work, island, True, kept, tolerance)
    opened = loads_are_open(rows, work, island) if effort[3] else zero
    solved, last = zero, zero + UNTRIED
    for _ in range(_REFINEMENTS):
        for lane in range(lane_count(solver.pack.in_impulses)):
            if lane_of(running, lane) > 0.0:
                bounds = (lane_of(tolerance, lane), lane_of(limit, lane))
                ending = settle_lane(rows, solver, lane, bounds, effort, lane_of(opened, lane))
                lane_set(solver.pack.settled, 0, lane, 1.0 if ending == SETTLED else 0.0)
                if ending == HEAVY:
                    lane_set(solver.pack.large_impulses, 0, lane, 1.0)
        running = running * solver.pack.settled[0]
        if not any_positive(running):
            break
        refresh(rows, step, work, island, running, True)
        size = residual(rows, work, island)
        good = ENOUGH * largest(rounding(rows, work, island), tolerance)
        ended = running * is_met(size, last, good, tolerance)
        if any_positive(ended):
            keep(rows, solver, island, rows.impulse, ended)
            solved = solved + ended
            running = running - ended
            if not any_positive(running):
                break
        last = size
    return solved


@njit
def _slide(
    model: Model, data: Workspace, rows: Rows, step: Step, solver: SolverBundle, island: int, chosen: Pack, way: Steps
) -> Pack:
    """Solve Coulomb's law in chosen lanes, which take their steps together; return 1 in lanes that are solved.

    A lane whose rows are solved waits, without moving, for the others; its residual by x then decides whether the lane
    has ended.
    """
    work = solver.newton
    (_, first, near, shared), in_impulses, kept = way
    zero, one = zero_like(chosen), zero_like(chosen) + 1.0
    tolerance = tolerance_of(rows, step.next, work, island)
    limit = natural_impulse(data, rows, step, work, island, tolerance)
    _prepare(model, data, rows, work, island, in_impulses, kept, tolerance)
    opened = loads_are_open(rows, work, island) if shared else zero
    size, shares, ease = begin_rounds(rows, work, island, first, opened, tolerance if near else zero - 1.0)
    begin, bar, past, since, last, left = size, size, one, zero, zero + UNTRIED, zero + UNTRIED
    solved, running, waiting, taken = zero, chosen, zero, zero
    while any_positive(running):
        on = where_greater(size, bound_of_sharing(rows, work, island, tolerance, ease), zero, running * shares)
        if any_positive(on):
            then, still, ease = go_on_sharing(rows, work, island, on, ease)
            shares = where_greater(on, zero, still, shares)
            size = where_greater(on, zero, then, size)
            last = where_greater(on, zero, zero + UNTRIED, last)
        good = ENOUGH * largest(rounding(rows, work, island), tolerance)
        waiting = largest(waiting, running * (one - shares) * is_met(size, last, good, tolerance))
        met = zero
        if not any_positive(running - waiting):  # x is found for all lanes at once
            refresh(rows, step, work, island, waiting, in_impulses)
            size = where_greater(waiting, zero, residual(rows, work, island), size)
            met, waiting = waiting * is_met(size, last, good, tolerance), zero
        if any_positive(met):
            left, lost, ended = _end_round(rows, solver, island, met, size, left, (limit, good, tolerance))
            solved, running, met = solved + ended, running - lost - ended, met - lost - ended
            if any_positive(met):
                size = _harden(rows, work, island, met, opened, size)
                last = where_greater(met, zero, zero + UNTRIED, last)
        moving = running - waiting
        easier = where_greater(since, zero + (ROUND_STEPS - 0.5), moving * (one - met) * (one - on), zero)
        if any_positive(easier):
            running, moving = running - easier * shares, moving - easier * shares
            size = _ease(rows, work, island, easier, size)
        anew = largest(largest(met, on), easier)
        bar, past = where_greater(anew, zero, size, bar), where_greater(anew, zero, one, past)
        since = where_greater(anew, zero, zero, since) + moving
        out = _give_up(rows, solver, island, way, moving, taken, size, begin)
        running, moving = running - out, moving - out
        if any_positive(moving):
            find_step(model, data, rows, step, work, island, in_impulses)
            last = where_greater(moving, zero, size, last)
            follows = one - shares if near else zero
            size = where_greater(moving, zero, take_step(rows, work, island, bar, size, follows, moving), size)
            bar = where_greater(moving, zero, (MEMORY * past * bar + size) / (MEMORY * past + 1.0), bar)
            past, taken = where_greater(moving, zero, MEMORY * past + 1.0, past), taken + moving
            running = where_greater(zero + OVERFLOWING, size, running, zero)
    return solved


@inlined
def _prepare(
    model: Model,
    data: Workspace,
    rows: Rows,
    work: NewtonWork,
    island: int,
    in_impulses: bool,
    kept: bool,
    tolerance: Pack,
) -> None:
    """Set the quantities that steps need, with M̂ x = f + Jᵀλ."""
    if kept:
        balance_by_factor(rows, work, island)
    else:
        balance(model, data, rows, work, island)
        if in_impulses:
            set_delassus(rows, work, island)
    set_rates(rows, work, island, tolerance)


@inlined
def _end_round(
    rows: Rows,
    solver: SolverBundle,
    island: int,
    met: Pack,
    size: Pack,
    before: Pack,
    bounds: tuple[Pack, Pack, Pack],
) -> tuple[Pack, Pack, Pack]:
    """End the round of lanes where `met` is 1, with the residual `size` and `before` it: the residual of rows
    [rad/s or m/s], and 1 in lanes whose impulses are no solution, and in those that are solved, whose results are kept.
    """
    limit, good, tolerance = bounds
    work, zero = solver.newton, zero_like(met)
    left = where_greater(met, zero, largest(size, recentre(rows, work, island, met)), before)
    lost = met * _is_too_large(rows, work, island, limit)
    ended = (met - lost) * _is_enough(left, before, good, tolerance)
    if any_positive(ended):
        keep(rows, solver, island, rows.impulse, ended)
    return left, lost, ended


@inlined
def _harden(rows: Rows, work: NewtonWork, island: int, met: Pack, opened: Pack, size: Pack) -> Pack:
    """Begin the next round, with a smaller ε, in lanes where `met` is 1; the residual [rad/s or m/s]."""
    zero = zero_like(met)
    one = zero + 1.0
    harder = where_greater(opened, zero, one, zero + HARDER)
    scale(rows, work, island, where_greater(met, zero, harder, one))
    return where_greater(met, zero, residual(rows, work, island), size)


@inlined
def _ease(rows: Rows, work: NewtonWork, island: int, easier: Pack, size: Pack) -> Pack:
    """Begin a round with a larger ε in lanes where `easier` is 1; the residual [rad/s or m/s]."""
    zero = zero_like(easier)
    eased = begin_round(rows, work, island, where_greater(easier, zero, zero + EASIER, zero + 1.0), easier)
    return where_greater(easier, zero, eased, size)


@inlined
def _give_up(
    rows: Rows,
    solver: SolverBundle,
    island: int,
    effort: Steps,
    moving: Pack,
    taken: Pack,
    size: Pack,
    begin: Pack,
) -> Pack:
    """1 in moving lanes that have taken their steps, have not come nearer than at the beginning, or whose impulses are
    too large for steps in impulses.
    """
    (most, _, near, _), in_impulses, _ = effort
    zero = zero_like(moving)
    out = where_greater(taken, zero + (most - 0.5), moving, zero)
    if near:
        glance = where_greater(absolute(taken - GLANCE), zero + 0.5, zero, moving)
        out = largest(out, where_greater(size, begin, glance, zero))
    if in_impulses:
        large = where_greater(largest_pull(rows, solver.newton, island), zero + MOST_PULL, moving - out, zero)
        solver.pack.large_impulses[0] = largest(solver.pack.large_impulses[0], large)
        out = out + large
    return out


@inlined
def _is_too_large(rows: Rows, work: NewtonWork, island: int, limit: Pack) -> Pack:
    """1 where impulses are no solution: they exceed the demand of loads and motion, or pull absurdly."""
    zero = zero_like(limit)
    beyond = where_greater(largest_impulse(rows, work, island), limit, zero + 1.0, zero)
    return where_greater(largest_pull(rows, work, island), zero + ABSURD, zero + 1.0, beyond)


@inlined
def _is_enough(left: Pack, before: Pack, good: Pack, tolerance: Pack) -> Pack:
    """1 where a round that leaves `left` is the last one: within the tolerance, or good and hardly better than the one
    before.
    """
    zero = zero_like(left)
    bound = where_greater(left, NO_BETTER * before, good, tolerance)
    return where_greater(left, bound, zero, zero + 1.0)
