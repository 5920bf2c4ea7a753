"""Rows that packs have in every step: found, aimed, and held at their bounds.

A single robot's code finds them lane by lane (rows_of_lane.py) unless they are built in all lanes at once
(pack_rows.py).

Decisions that depend on a lane alone are made here, lane by lane. The pack solves these rows together with its others.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import kinematics
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.coupling_rows import CLOSER
from artsim.sim.constraints.kinds import COUPLING_ROW, LOOP_ROW
from artsim.sim.constraints.loop_rows import HAIR, STRAINED, SURPLUS, is_hard, is_pushing, loop_error
from artsim.sim.constraints.row import AIMS, CLOSED, FASTER, MISSED, NEARER, share_of_aim
from artsim.sim.contact.contact_rows import removal_power
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import (
    absolute,
    any_positive,
    highest,
    lane_count,
    lane_get,
    lane_of,
    lane_set,
    where_greater,
    zero_like,
)
from artsim.sim.foundation.records import Ints2, Pack
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.scalars import largest
from artsim.sim.geometry.contacts import CONTACTS
from artsim.sim.run_data.run_records import (
    BOUND_ROUNDS,
    EVALUATION,
    RULE_ROUNDS,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.packs import LaneBundle, LoopBundle, OwnRows

FIRST_ROW, HAS_AIMED, HAS_ACTUATORS, HAS_BOUNDS, HAS_SPRINGS = range(5)  # of OwnRows.fixed
# of OwnRows.phase: the last solution of the lane in the sequence of aims.close_loops
UNAIMED, AIMED, LAST_AIM, TAKEN_BACK, RELAXED, TIGHTENED, CLOSED_LOOPS = range(7)


# ------------------------------------------------------------------ the rows


@inlined
def takes_springs(lanes: LaneBundle) -> bool:
    """True if springs of tendons may be rows."""
    if lanes.own is None:
        return False
    return lanes.own.fixed[HAS_SPRINGS] == 1


@njit
def begin_own_rows(lanes: LaneBundle, chosen: Pack) -> None:
    """Mark the rows of lanes where `chosen` is 1 to be found anew, and aimed from the beginning."""
    own = lanes.own
    zero = zero_like(chosen)
    own.outdated[0] = where_greater(chosen, zero, zero + 1.0, own.outdated[0])
    forget_aims(lanes, chosen)
    if own.fixed[HAS_BOUNDS] == 1:
        for lane in range(lane_count(own.outdated)):
            if lane_of(chosen, lane) > 0.0:
                lanes.helpers.retries[lane, RULE_ROUNDS] = 0


@njit
def forget_aims(lanes: LaneBundle, chosen: Pack) -> None:
    """Take back all aims in lanes where `chosen` is 1."""
    own = lanes.own
    zero = zero_like(chosen)
    own.phase[0] = where_greater(chosen, zero, zero + UNAIMED, own.phase[0])
    for t in range(own.aim.shape[0]):
        own.aim[t] = where_greater(chosen, zero, zero, own.aim[t])


@njit
def find_own_rows(robot: RobotBundle, run: RunBundle) -> None:
    """Find the rows of lanes in which they are outdated."""
    lanes, helpers, own = run.lanes, run.lanes.helpers, run.lanes.own
    if highest(own.outdated[0]) <= 0.0:
        return
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane] and lane_get(own.outdated, 0, lane) > 0.0:
            helpers.counters[lane, EVALUATION] = run.step.counters[EVALUATION]
            run_entry(helpers.finder[lane])
    own.outdated[0] = zero_like(own.outdated[0])


# ------------------------------------------------------------------ reactions to the velocities found


@njit
def clamp_own_actuators(robot: RobotBundle, run: RunBundle, chosen: Pack) -> Pack:
    """Make actuators that are rows and leave their bounds act as forces, and those that return act as rows again; 1 in
    lanes where an actuator changes. Only lanes where `chosen` is 1 change.
    """
    own = run.lanes.own
    own.again[0] = zero_like(chosen)
    if own.fixed[HAS_ACTUATORS] == 1:
        _ask_helpers(robot, run, run.lanes.helpers.clamper, chosen)
    return own.again[0]


@njit
def aim_bounds_in_lanes(robot: RobotBundle, run: RunBundle, chosen: Pack) -> Pack:
    """Direct the rows that bound velocities of links; 1 in lanes to be solved again, 2 in those that no round brings
    within their bounds. Only lanes where `chosen` is 1 are looked at.
    """
    own = run.lanes.own
    own.again[0] = zero_like(chosen)
    if own.fixed[HAS_BOUNDS] == 1:
        _ask_helpers(robot, run, run.lanes.helpers.bounder, chosen)
    return own.again[0]


@njit
def _ask_helpers(robot: RobotBundle, run: RunBundle, entry: Ints2, chosen: Pack) -> None:
    """Let the helpers of lanes where `chosen` is 1 react to the velocities found, by one of their entries, which says
    in own.again and own.outdated whether something changes."""
    lanes = run.lanes
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane] and lane_of(chosen, lane) > 0.0:
            lanes.helpers.retries[lane, BOUND_ROUNDS] = int(lane_get(lanes.data.rounds, 0, lane)) + 1
            run_entry(entry[lane])


@njit
def aim_own_rows(robot: RobotBundle, run: RunBundle, solver: SolverBundle, chosen: Pack) -> Pack:
    """Aim rows as aims.close_loops does, one solution of the pack after the other; 1 in lanes that need another one.
    Only lanes where `chosen` is 1 are looked at.
    """
    lanes = run.lanes
    own = lanes.own
    own.again[0] = zero_like(chosen)
    if own.fixed[HAS_AIMED] == 0:
        return own.again[0]
    if lanes.lane_rows is None and _some_aim(own.phase[0], chosen):
        _find_loops_at_end(robot, run)
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane] and lane_of(chosen, lane) > 0.0 and _aim(run, solver, lane):
            lane_set(own.again, 0, lane, 1.0)
    return own.again[0]


@inlined
def _some_aim(phase: Pack, chosen: Pack) -> bool:
    """True if chosen lanes may take an aim."""
    zero = zero_like(chosen)
    return any_positive(where_greater(zero + TAKEN_BACK, phase, chosen, zero))


@njit
def strains(run: RunBundle, rows: Rows, solver: SolverBundle, contact: PackContactBundle | None, chosen: Pack) -> Pack:
    """1 in lanes where `chosen` is 1 and hard loops, not aimed yet, are strained (stepping/strain.py). Strained lanes
    take the step alone.
    """
    lanes, own, h = run.lanes, run.lanes.own, run.inputs.time_step[0]
    zero = zero_like(chosen)
    chosen = where_greater(zero + AIMED, own.phase[0], chosen, zero)
    most, total = zero, zero
    for t in range(own.kind.shape[0]):
        if own.kind[t] == LOOP_ROW and _is_hard(lanes.loops, own.dof[t]):
            impulse = rows.impulse[own.fixed[FIRST_ROW] + t]
            most = largest(most, absolute(own.cfm[t] * impulse))
            total = total + own.cfm[t] * impulse * impulse
    strained = where_greater(h * most, zero + STRAINED, chosen, zero)
    if contact is not None and any_positive(where_greater(h * most, zero + HAIR, chosen, zero)):
        for n in range(contact.data.number[CONTACTS]):
            if contact.data.row[n] >= 0 and contact.data.soft[n] == 0:
                power = removal_power(rows, contact, n)
                pushing = chosen * is_pushing(power, total)
                strained = largest(strained, where_greater(h * most, zero + HAIR, pushing, zero))
    return strained


@njit
def _find_loops_at_end(robot: RobotBundle, run: RunBundle) -> None:
    """Set the loops' errors to those where step.velocity leads, as aims.find_misses does; `data` is left as it is."""
    model, state, data, step = robot.model, robot.state, robot.data, run.step
    for k in range(step.tangent.shape[0]):
        step.tangent[k] = data.drift[k]
    for n in range(step.stage_qpos.shape[0]):
        step.stage_qpos[n] = state.qpos[n]
    move(model, step.stage_qpos, step.velocity, run.inputs.time_step[0])
    expand(model, step.stage_qpos, step.stage_qvel, data)
    kinematics(model, step.stage_qpos, data)
    if run.lanes.loops is not None:
        for n in range(run.lanes.loops.model.loop_kind.shape[0]):
            loop_error(model, data, run.lanes.loops, n)
    expand(model, state.qpos, state.qvel, data)
    for k in range(step.tangent.shape[0]):
        data.drift[k] = step.tangent[k]
    kinematics(model, state.qpos, data)


@njit
def _aim(run: RunBundle, solver: SolverBundle, lane: int) -> bool:
    """True if a lane is to be solved again, with other biases of its rows."""
    own, first, h = run.lanes.own, run.lanes.own.fixed[FIRST_ROW], run.inputs.time_step[0]
    phase = int(lane_get(own.phase, 0, lane))
    aims = lane_get(own.aims, 0, lane)
    before = lane_get(own.before, 0, lane)
    if phase == CLOSED_LOOPS:
        return False
    if phase == TIGHTENED:
        return _go_to(own, lane, CLOSED_LOOPS)
    if phase == RELAXED:
        return _tighten(run, solver, lane)
    if phase == TAKEN_BACK:
        return _relax(run, solver, lane)
    if phase == UNAIMED:
        lane_set(own.most, 0, lane, FASTER * _fastest(run.step, lane))
        aims, before = 0.0, math.inf
    else:
        if _fastest(run.step, lane) > lane_get(own.most, 0, lane):
            for t in range(own.aim.shape[0]):
                if lane_get(own.aim, t, lane) != lane_get(own.unaimed, t, lane):
                    lane_set(own.aim, t, lane, lane_get(own.unaimed, t, lane))
                    lane_set(solver.pack.impulse, first + t, lane, 0.0)
            return _go_to(own, lane, TAKEN_BACK)
        aims += 1.0
        if phase == LAST_AIM or aims >= AIMS:
            return _relax(run, solver, lane)
    miss = _find_misses(run, lane)
    if aims > 0.0 and miss <= CLOSED:
        return _relax(run, solver, lane)
    helped = miss <= NEARER * before
    if helped:
        _aim_on(own, h, lane)
    else:
        _turn_aim(own, h, aims, lane)
    lane_set(own.aims, 0, lane, aims)
    lane_set(own.before, 0, lane, miss)
    return _go_to(own, lane, LAST_AIM if not helped or miss <= MISSED else AIMED)


@inlined
def _aim_on(own: OwnRows, h: float, lane: int) -> None:
    """Aim at where the velocities found miss, as in aims.close_loops."""
    for t in range(own.aim.shape[0]):
        aim = lane_get(own.aim, t, lane)
        lane_set(own.unaimed, t, lane, aim)
        lane_set(own.aim, t, lane, aim + lane_get(own.miss, t, lane) / h)


@njit
def _turn_aim(own: OwnRows, h: float, aims: float, lane: int) -> None:
    along, square = 0.0, 0.0
    for t in range(own.aim.shape[0]):
        target = h * (lane_get(own.aim, t, lane) - lane_get(own.unaimed, t, lane))
        along += target * lane_get(own.miss, t, lane)
        square += target * target
    share = share_of_aim(along, square)
    for t in range(own.aim.shape[0]):
        aim, unaimed = lane_get(own.aim, t, lane), lane_get(own.unaimed, t, lane)
        if share == 0.0:
            lane_set(own.aim, t, lane, aim - aims * lane_get(own.miss, t, lane) / h)
        else:
            lane_set(own.aim, t, lane, unaimed + share * (aim - unaimed))


@inlined
def _go_to(own: OwnRows, lane: int, phase: int) -> bool:
    """Note a lane's phase; True if the lane is to be solved in this phase."""
    lane_set(own.phase, 0, lane, 1.0 * phase)
    return phase != CLOSED_LOOPS


@njit
def _relax(run: RunBundle, solver: SolverBundle, lane: int) -> bool:
    """Relax the rows of hard loops in a lane, as loop_rows.relax_loops does; True if the lane is to be solved again."""
    own, h = run.lanes.own, run.inputs.time_step[0]
    found = False
    for t in range(own.kind.shape[0]):
        lane_set(own.miss, t, lane, 0.0)
        if own.kind[t] == LOOP_ROW and _is_hard(run.lanes.loops, own.dof[t]):
            left = _left(own, solver, t, lane)
            if HAIR < h * abs(left) < SURPLUS:
                lane_set(own.miss, t, lane, left)
                lane_set(own.aim, t, lane, lane_get(own.aim, t, lane) + left)
                found = True
    return _go_to(own, lane, RELAXED if found else CLOSED_LOOPS)


@inlined
def _is_hard(loops: LoopBundle, n: int) -> bool:
    """True if loop n is to be closed exactly."""
    if loops is None:
        return False
    return is_hard(loops, n)


@njit
def _tighten(run: RunBundle, solver: SolverBundle, lane: int) -> bool:
    """Tighten the relaxed rows in a lane, as loop_rows.tighten_loops does; True if the lane is to be solved again."""
    own, h = run.lanes.own, run.inputs.time_step[0]
    found = False
    for t in range(own.kind.shape[0]):
        if lane_get(own.miss, t, lane) != 0.0:
            left = _left(own, solver, t, lane)
            lane_set(own.aim, t, lane, lane_get(own.aim, t, lane) - left)
            found = found or h * abs(left) > HAIR
    return _go_to(own, lane, TIGHTENED if found else CLOSED_LOOPS)


@inlined
def _left(own: OwnRows, solver: SolverBundle, t: int, lane: int) -> float:
    """The velocity by which row t yields [rad/s or m/s]."""
    return lane_get(own.cfm, t, lane) * lane_get(solver.pack.impulse, own.fixed[FIRST_ROW] + t, lane)


@inlined
def _fastest(step: Step, lane: int) -> float:
    """The largest velocity found in a lane."""
    fastest = 0.0
    for a in range(step.next.shape[0]):
        fastest = max(fastest, abs(lane_get(step.next, a, lane)))
    return fastest


@njit
def _find_misses(run: RunBundle, lane: int) -> float:
    """Set own.miss of a lane, and return the largest."""
    lanes, own = run.lanes, run.lanes.own
    if lanes.lane_rows is None:
        return _find_loop_misses(lanes, own, lane)
    run_entry(lanes.helpers.misser[lane])
    worst = 0.0
    for t in range(own.kind.shape[0]):
        miss = abs(lane_get(own.miss, t, lane))
        worst = max(worst, miss * (CLOSER if own.kind[t] == COUPLING_ROW else 1.0))
    return worst


@njit
def _find_loop_misses(lanes: LaneBundle, own: OwnRows, lane: int) -> float:
    """Set own.miss of a lane's loops from their errors at the end of the step, and return the largest."""
    worst = 0.0
    for t in range(own.kind.shape[0]):
        miss = 0.0
        if own.kind[t] == LOOP_ROW and _is_hard(lanes.loops, own.dof[t]):
            miss = _loop_miss(lanes.loops, own.dof[t], own.part[t], lane)
        lane_set(own.miss, t, lane, miss)
        worst = max(worst, abs(miss))
    return worst


@inlined
def _loop_miss(loops: LoopBundle, n: int, axis: int, lane: int) -> float:
    """The miss of the target of line `axis` of loop n in a lane [m]."""
    if loops is None:
        return 0.0
    place = 6 * n + axis
    return lane_get(loops.data.loop_error, place, lane) - lane_get(loops.data.loop_aim, place, lane)
