"""Rows that packs have in every step, found anew.

A single robot's code finds them lane by lane (rows_of_lane.py) unless they are built in all lanes at once
(pack_rows.py).

Decisions that depend on a lane alone are made here, lane by lane. The pack solves these rows together with its others.
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.kinds import TENDON_ROW
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import (
    absolute,
    lane_count,
    lane_get,
    lane_of,
    where_greater,
    zero_like,
)
from artsim.sim.foundation.records import Ints2, Pack
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import (
    EVALUATION,
    RULE_ROUNDS,
    Rows,
    RunBundle,
)
from artsim.sim.stepping.packs import LaneBundle

FIRST_ROW, HAS_BOUNDS, HAS_SPRINGS = range(3)  # of OwnRows.fixed


# ------------------------------------------------------------------ the rows


@inlined
def takes_springs(lanes: LaneBundle) -> bool:
    """True if springs of tendons may be rows."""
    if lanes.own is None:
        return False
    return lanes.own.fixed[HAS_SPRINGS] == 1


@njit
def begin_own_rows(run: RunBundle, chosen: Pack) -> None:
    """Mark the rows of lanes where `chosen` is 1 to be found anew."""
    lanes, own = run.lanes, run.lanes.own
    zero = zero_like(chosen)
    own.outdated[0] = where_greater(chosen, zero, zero + 1.0, own.outdated[0])
    if own.fixed[HAS_BOUNDS] == 1:
        for lane in range(lane_count(own.outdated)):
            if lane_of(chosen, lane) > 0.0:
                lanes.helpers.retries[lane, RULE_ROUNDS] = 0


@njit
def forget_aims(run: RunBundle, rows: Rows, chosen: Pack) -> None:
    """Restore the biases without aims in lanes where `chosen` is 1."""
    own, zero = run.lanes.own, zero_like(chosen)
    for t in range(own.bias.shape[0]):
        n = own.fixed[FIRST_ROW] + t
        rows.bias[n] = where_greater(chosen, zero, own.bias[t], rows.bias[n])


@njit
def find_own_rows(robot: RobotBundle, run: RunBundle) -> None:
    """Find the rows of lanes in which they are outdated."""
    lanes, helpers, own = run.lanes, run.lanes.helpers, run.lanes.own
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane] and lane_get(own.outdated, 0, lane) > 0.0:
            helpers.counters[lane, EVALUATION] = run.step.counters[EVALUATION]
            run_entry(helpers.finder[lane])


# ------------------------------------------------------------------ reactions to the velocities found


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
            run_entry(entry[lane])


@njit
def find_tendon_misses_in_lanes(robot: RobotBundle, run: RunBundle, rows: Rows, chosen: Pack) -> Pack:
    """Set rows.miss of tendon equalities at step.stage_qpos where `chosen` is 1, and return the largest."""
    own = run.lanes.own
    _ask_helpers(robot, run, run.lanes.helpers.misser, chosen)
    worst = zero_like(chosen)
    for t in range(own.kind.shape[0]):
        if own.kind[t] == TENDON_ROW:
            rows.miss[own.fixed[FIRST_ROW] + t] = chosen * own.miss[t]
            worst = largest(worst, chosen * absolute(own.miss[t]))
    return worst
