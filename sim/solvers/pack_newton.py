"""newton for a pack: the first strategies of strategies.py for 8 robots, each of which ends independently.

A robot's result is that found when its own rows are solved; neither other robots of the pack that still go on nor rows
that only others have change any of it. Robots that these strategies do not solve, of many rows, or whose contacts
yield, are settled by newton itself, one by one.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import any_positive, lane_count, lane_of, where_greater, zero_like
from artsim.sim.foundation.records import Pack
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.run_data.run_records import ALL_ROWS, LARGE, RESIDUAL, Rows, Step
from artsim.sim.run_data.scratch import ISLANDS, KEPT_ISLAND, SolverBundle
from artsim.sim.solvers.attempts import (
    CLOSE,
    FAR,
    RESTING,
    SLIDING_STEPS,
    count_cones,
    is_articulated,
    note_start,
    restart,
)
from artsim.sim.solvers.elimination import find_structure
from artsim.sim.solvers.impulses import hold, keep, project, set_gradient
from artsim.sim.solvers.lane_newton import settle_by_newton
from artsim.sim.solvers.loads import forget, loads_are_open, rub
from artsim.sim.solvers.multipliers import newton_step, prepare_island, recentre
from artsim.sim.solvers.pack_coulomb import differ, fits_delassus, has_many_rows, slide
from artsim.sim.solvers.shift import slides
from artsim.sim.solvers.tolerance import largest_speed

_CONVEX_STEPS = 8  # for which all robots wait for the slowest
# of coulomb.py where those have not solved the rows, as in strategies.py
_SHARING = (60, CLOSE, False, True)
_EFFORTS = ((20, CLOSE, False, False), (60, FAR, False, False))


@njit
def solve_pack(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle) -> None:
    """Set step.next (nu,) to the velocities at the end of the step [rad/s or m/s], rows.impulse to the impulses that
    cause them [N s or N m s]; robots that are ignored keep their impulses.

    pack.skip: 1 for robots to be ignored; pack.yields: 1 for robots with contacts that yield. M̂ is in
    robot.data.factor, the impulse of all other forces in step.free, the warm start in rows.impulse. The residual is
    in rows.report.
    """
    work = solver.newton
    u = step.next
    find_structure(robot.model, rows, work, True, solver.pack.whole[0] == 1)
    if solver.pack.same[0] == 0:
        work.sizes[KEPT_ISLAND] = 0
    zero, solved = like(0.0, robot.data), 1.0 - solver.pack.yields[0]
    for n in (RESIDUAL, LARGE):
        rows.report[n] = where_greater(solver.pack.skip[0], zero, rows.report[n], zero)
    for n in range(rows.number[ALL_ROWS]):
        solver.pack.impulse[n] = rows.impulse[n]
        work.along[n] = work.linear[n] = zero  # the last step of a robot that was not finite would outlast it
    for k in range(work.sizes[ISLANDS]):
        work.factorised[k] = 0
        note_start(rows, work, k)
        prepare_island(robot.data, rows, step, solver, k)
        many = has_many_rows(rows, solver, k)
        solved = least(solved - solved * many, _settle_in_lanes(robot, rows, step, solver, k, many))
    left = (1.0 - solver.pack.skip[0]) * (1.0 - solved)
    if any_positive(left):
        for lane in range(lane_count(u)):
            if lane_of(left, lane) > 0.0:
                settle_by_newton(robot, rows, step, solver, lane)
    for a in range(u.shape[0]):
        u[a] = u[a] + solver.pack.change[a]
    for n in range(rows.number[ALL_ROWS]):
        rows.impulse[n] = solver.pack.impulse[n]


@njit
def _settle_in_lanes(
    robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int, left_out: Pack
) -> Pack:
    """Find pack.change and pack.impulse of the island by the strategies that come first for a single robot, each in the
    lanes that need it; 1 in lanes of robots whose rows are solved, and where `left_out` is 1.
    """
    work = solver.newton
    one = like(1.0, robot.data)
    zero = like(0.0, robot.data)
    ended = largest(largest(solver.pack.skip[0], solver.pack.yields[0]), left_out)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            solver.pack.change[a] = zero
    if not any_positive(one - ended):
        return ended
    cones = count_cones(rows, work, island) > 0
    in_impulses, opened = fits_delassus(rows, solver, island), zero
    if cones:
        opened = loads_are_open(rows, work, island)
    in_impulses = in_impulses * (one - opened)  # loads are followed only where contacts slide on
    sliding = in_impulses
    if cones:
        sliding = largest(in_impulses, slides(rows, work, island, RESTING * largest_speed(step.next, work, island)))
    sliding = (one - ended) * sliding
    if any_positive(sliding):
        set_gradient(rows, step.free, work, island)
        ended = ended + slide(robot, rows, step, solver, island, sliding, (SLIDING_STEPS, CLOSE, True, True))
        if any_positive(one - ended):
            restart(robot.model, robot.data, rows, step, solver, island)
    in_impulses = in_impulses * (one - ended)
    if differ(solver) and any_positive(in_impulses):
        ended = ended + slide(robot, rows, step, solver, island, in_impulses, _EFFORTS[0])
        if any_positive(one - ended):
            restart(robot.model, robot.data, rows, step, solver, island)
    unshared = zero
    if any_positive(one - ended):
        found, unshared = _convex(robot, rows, step, solver, island, one - ended)
        ended = ended + found
    if not cones:
        return ended
    ended = ended + _slide_anew(robot, rows, step, solver, island, opened * (one - ended), _SHARING)
    ended = ended + unshared * (one - ended)
    swept = (
        zero if is_articulated(robot.model, work, island) else opened
    )  # free bodies' loads are then as sweeps leave them
    for effort in _EFFORTS:
        ended = ended + _slide_anew(robot, rows, step, solver, island, (one - swept) * (one - ended), effort)
    return ended


@njit
def _slide_anew(
    robot: RobotBundle,
    rows: Rows,
    step: Step,
    solver: SolverBundle,
    island: int,
    chosen: Pack,
    effort: tuple[int, float, bool, bool],
) -> Pack:
    """`slide` from the start of the step; 1 in lanes that are solved."""
    if not any_positive(chosen):
        return zero_like(chosen)
    restart(robot.model, robot.data, rows, step, solver, island)
    return slide(robot, rows, step, solver, island, chosen, effort)


@njit
def _convex(
    robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int, chosen: Pack
) -> tuple[Pack, Pack]:
    """Take the convex steps in lanes where `chosen` is 1; 1 in lanes that are solved, and 1 in lanes whose loads are
    still to be shared: their solution is kept, too.
    """
    work = solver.newton
    zero = zero_like(chosen)
    one = zero + 1.0
    solved, unshared, running = zero, zero, chosen
    shares = loads_are_open(rows, work, island)
    opened = shares
    project(rows, work, island)
    hold(rows, work, island)
    for turn in range(_CONVEX_STEPS):
        bent, tolerance = newton_step(robot.model, robot.data, rows, step, solver, island, turn == 0)
        flat = where_greater(bent, tolerance, zero, one)  # 1: the robot's round has ended
        if any_positive(flat):
            _, moved = recentre(rows, work, island, flat, True)
            met = where_greater(moved, tolerance, zero, flat) * running
            now = met
            if any_positive(now):
                rubbing = now * opened * rub(rows, work, island, work.linear) if turn > 0 else zero
                running = running - now
                keep(rows, solver, island, work.linear, now)
                solved = solved + now - rubbing
                unshared = unshared + rubbing
            if not any_positive(running):
                break
            if any_positive(flat * shares):
                forget(rows, work, island, flat * shares)
                shares = shares * (one - flat)
            project(rows, work, island)
    return solved, unshared
