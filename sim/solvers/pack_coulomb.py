"""Coulomb's law for a pack: the rounds of coulomb.py for 8 robots together."""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import (
    absolute,
    any_positive,
    highest,
    lane_count,
    lane_of,
    where_greater,
    with_lane,
    zero_like,
)
from artsim.sim.foundation.records import Pack
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import (
    KEPT_ISLAND,
    KEPT_UNITS,
    MOST_ABREAST,
    MOST_DELASSUS_ROWS,
    MOST_OF_LANE,
    MOST_TOGETHER,
    STEPPING_UNITS,
    NewtonWork,
    SolverBundle,
)
from artsim.sim.solvers.attempts import restart
from artsim.sim.solvers.coulomb import Effort, Task, balance, balance_by_factor, is_met, refresh, take_rounds
from artsim.sim.solvers.coulomb_system import residual, set_rates
from artsim.sim.solvers.delassus import MOST_PULL, list_unit
from artsim.sim.solvers.impulses import keep
from artsim.sim.solvers.lane_coulomb import settle_lane
from artsim.sim.solvers.loads import acting_rows, acts, loads_are_open
from artsim.sim.solvers.own_rows import give_own_impulses, set_own_delassus, take_own_rows
from artsim.sim.solvers.tolerance import (
    ENOUGH,
    UNBOUNDED,
    UNTRIED,
    largest_pull,
    natural_impulse,
    rounding,
    tolerance_of,
)

_ALIKE = 0.7  # share of the rows of all lanes, in one lane, above which the lanes' own rows are not sorted out
_REFINEMENTS = 4  # of a lane's impulses by the velocities that follow from x: the first suffices as a rule


@njit
def slide(
    robot: RobotBundle,
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

    Lanes of few rows take steps in impulses, as many of these lanes together as there is room for their rows. The
    result of a lane does not depend on the others. Impulses that become too large for such steps are found by steps in
    x.
    """
    left = chosen * fits_delassus(rows, solver, island)
    others = chosen - left
    solved = zero_like(chosen)
    tried = False
    while any_positive(left):
        _list_lanes(rows, solver, island, left)
        if tried:
            restart(robot.model, robot.data, rows, step, solver, island)
        tried = True
        now = solver.pack.in_impulses[0]
        found = _slide(robot, rows, step, solver, island, now, effort)
        pull = largest_pull(rows, solver.newton, island)
        others = others + where_greater(pull, zero_like(pull) + MOST_PULL, now - found, zero_like(pull))
        solved, left = solved + found, left - now
    if any_positive(others):
        solver.newton.sizes[STEPPING_UNITS] = 0
        if tried:
            restart(robot.model, robot.data, rows, step, solver, island)
        solved = solved + _slide(robot, rows, step, solver, island, others, effort)
    return solved


@inlined
def differ(solver: SolverBundle) -> bool:
    """True if lanes may have quite different rows: the contacts of a robot can have more than W has room for.

    A quadruped's four feet fill most rows of most lanes; of a humanoid's hundreds of rows each lane has a few of its
    own.
    """
    return solver.pack.unlike[0] == 1


@njit
def fits_delassus(rows: Rows, solver: SolverBundle, island: int) -> Pack:
    """1 in lanes of so few rows that steps are taken in impulses, and whose impulses are not too large for such steps.

    These are lanes with contacts, or with a few rows that are all those of limits: other rows hardly leave their
    bounds, and one convex step solves them in all lanes. Where lanes have much the same rows, contacts have no more
    rows than there are dofs.
    """
    work = solver.newton
    zero = zero_like(work.change[0])
    count, of_contacts, of_limits, dofs = _own_count(rows, work, island), zero, zero, 0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        size = acting_rows(rows, work, n)
        if rows.cone[n] > 1:
            of_contacts = of_contacts + size
        else:
            one_sided = where_greater(rows.lower[n], zero - UNBOUNDED, size, zero)
            of_limits = of_limits + where_greater(rows.upper[n], zero + UNBOUNDED, one_sided, zero)
    within = where_greater(largest_pull(rows, work, island), zero + MOST_PULL, zero, zero + 1.0)
    others = where_greater(count, zero + MOST_ABREAST, count, count - of_limits)
    others = where_greater(of_contacts, zero, zero, others)
    within = where_greater(others, zero, zero, where_greater(count, zero, within, zero))
    if differ(solver):
        return where_greater(count, zero + MOST_OF_LANE, zero, within)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        dofs += work.block_start[b + 1] - work.block_start[b]
    within = where_greater(of_contacts, zero + dofs, zero, within)
    return where_greater(count, zero + MOST_DELASSUS_ROWS, zero, within)


@njit
def has_many_rows(rows: Rows, solver: SolverBundle, island: int) -> Pack:
    """1 in lanes of so many rows that newton itself solves them sooner: steps in x would be taken in all lanes, with
    the rows of all."""
    zero = zero_like(solver.newton.change[0])
    if not differ(solver):
        return zero
    return where_greater(_own_count(rows, solver.newton, island), zero + MOST_OF_LANE, zero + 1.0, zero)


@njit
def _list_lanes(rows: Rows, solver: SolverBundle, island: int, left: Pack) -> None:
    """Set pack.in_impulses to 1 in as many of the lanes where `left` is 1 as there is room for their rows, and list
    their units. W and the factor of M̂ are kept from a solution before that had these units.
    """
    work, pack = solver.newton, solver.pack
    zero = zero_like(left)
    own = _own_count(rows, work, island)
    apart = where_greater(own, zero + MOST_ABREAST, left, zero)
    kept = work.sizes[KEPT_ISLAND] == island + 1 and not any_positive(absolute(apart - left * pack.apart[0]))
    if kept and _are_placed(rows, solver, island, left):
        work.sizes[STEPPING_UNITS] = work.sizes[KEPT_UNITS]
        pack.in_impulses[0] = left
        return
    work.sizes[KEPT_ISLAND] = 0
    work.sizes[STEPPING_UNITS] = 0
    now, room = zero, MOST_TOGETHER
    for lane in range(lane_count(left)):
        if lane_of(left, lane) > 0.0:
            then = with_lane(now, lane, 1.0)
            more = _count_more(rows, work, island, now, then)
            if more <= room:
                room, now = room - more, then
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        pack.placed[n] = where_greater(now * acts(rows, work, n), zero, zero + 1.0, zero)
        if any_positive(pack.placed[n]):
            list_unit(work, n)
    pack.in_impulses[0] = now
    pack.apart[0] = apart * now
    together = _count_more(rows, work, island, zero, now)
    alike = highest(own * now) > _ALIKE * together and not any_positive(pack.apart[0])
    pack.alike[0] = 1 if alike else 0


@njit
def _own_count(rows: Rows, work: NewtonWork, island: int) -> Pack:
    """The number of rows of the island that act in each lane."""
    count = zero_like(work.change[0])
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        count = count + acting_rows(rows, work, work.listed[entry])
    return count


@njit
def _are_placed(rows: Rows, solver: SolverBundle, island: int, chosen: Pack) -> bool:
    """True if all units of the island that act in chosen lanes are placed there."""
    work = solver.newton
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if any_positive(chosen * acts(rows, work, n) * (1.0 - solver.pack.placed[n])):
            return False
    return True


@njit
def _count_more(rows: Rows, work: NewtonWork, island: int, before: Pack, now: Pack) -> int:
    """The number of rows of the island that act in lanes where `now` is 1, and in none where `before` is."""
    count = 0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        size = acting_rows(rows, work, work.listed[entry])
        count += int(highest(size * now) if not any_positive(size * before) else 0.0)
    return count


@njit
def _slide(
    robot: RobotBundle,
    rows: Rows,
    step: Step,
    solver: SolverBundle,
    island: int,
    chosen: Pack,
    effort: tuple[int, float, bool, bool],
) -> Pack:
    """Solve Coulomb's law in chosen lanes, whose results are kept; return 1 in lanes that are solved."""
    work = solver.newton
    most, first, near, shared = effort
    zero = zero_like(chosen)
    tolerance = tolerance_of(rows, step.next, work, island)
    limit = natural_impulse(robot.data, rows, step, work, island, tolerance)
    if work.sizes[KEPT_ISLAND] == island + 1:
        balance_by_factor(rows, work, island)
    else:
        balance(robot.model, robot.data, rows, work, island)
        if work.sizes[STEPPING_UNITS] > 0:
            set_own_delassus(rows, solver, island)
    task = (chosen, loads_are_open(rows, work, island) if shared else zero, tolerance, limit)
    if work.sizes[STEPPING_UNITS] > 0:
        return _settle_own_rows(rows, step, solver, island, task, (most, first, near))
    left = take_rounds(robot, rows, step, work, island, task, (most, first, near))
    solved = where_greater(left, ENOUGH * tolerance, zero, chosen)
    keep(rows, solver, island, rows.impulse, solved)
    return solved


@njit
def _settle_own_rows(rows: Rows, step: Step, solver: SolverBundle, island: int, task: Task, effort: Effort) -> Pack:
    """Solve Coulomb's law in chosen lanes, whose units are listed, by W; x, the velocities that follow from x, and
    their residual are then found. Return 1 in lanes that are solved.
    """
    work = solver.newton
    running, opened, tolerance, limit = task
    zero = zero_like(running)
    set_rates(rows, work, island, tolerance)
    solved, last = zero, zero + UNTRIED
    for _ in range(_REFINEMENTS):
        if not any_positive(running):
            break
        take_own_rows(rows, solver)
        apart = running * solver.pack.apart[0] if effort[2] else running
        left = _settle_one_by_one(rows, solver, (apart, opened, tolerance, limit), effort)
        abreast = running - apart
        if any_positive(abreast):
            task = (abreast, opened, tolerance, limit)
            found = take_rounds(None, solver.own.rows, None, solver.own.work, 0, task, effort)
            left = where_greater(abreast, zero, found, left)
        give_own_impulses(rows, solver, running)
        running = where_greater(left, ENOUGH * tolerance, zero, running)
        refresh(rows, step, work, island, running)
        size = residual(rows, work, island)
        good = ENOUGH * largest(rounding(rows, work, island), tolerance)
        ended = running * is_met(size, last, good, tolerance)
        keep(rows, solver, island, rows.impulse, ended)
        solved, running, last = solved + ended, running - ended, size
    return solved


@njit
def _settle_one_by_one(rows: Rows, solver: SolverBundle, task: Task, effort: Effort) -> Pack:
    """Solve the own rows of chosen lanes, each lane by itself; return their residuals [rad/s or m/s]."""
    running, opened, tolerance, limit = task
    left = zero_like(running)
    for lane in range(lane_count(left)):
        if lane_of(running, lane) > 0.0:
            of_lane = (1.0, lane_of(opened, lane), lane_of(tolerance, lane), lane_of(limit, lane))
            left = with_lane(left, lane, settle_lane(rows.cone, solver, lane, of_lane, effort))
    return left
