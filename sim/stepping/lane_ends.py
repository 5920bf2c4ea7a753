"""The number of a lane's step, which lanes take steps and which rest, and the end of a lane."""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle, State
from artsim.sim.constraints.row import TOLD
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, lane_count, lane_get, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1
from artsim.sim.run_data.run_records import NON_FINITE, RESIDUAL, STEP_NUMBER, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.packs import FIRST_SAMPLE, AnyBlock


@inlined
def step_of_lane(run: RunBundle, lane: int) -> int:
    """The number of this step of a lane, 0 for its first."""
    number: int = run.step.counters[STEP_NUMBER] - run.lanes.data.began[lane]
    return number


@njit
def end(state: State, run: RunBundle, lane: int, reason: int, dof: int) -> None:
    """Stop a lane: its final state is the one before the step."""
    lanes = run.lanes
    lanes.data.alive[lane] = 0
    lanes.data.stopped[lane] = step_of_lane(run, lane)
    lanes.data.stopped_dof[lane] = dof
    lanes.data.reason[lane] = reason
    record_final(state, run.block, lane)


@inlined
def record_final(state: State, block: AnyBlock, lane: int) -> None:
    sample = block.plan[FIRST_SAMPLE] + lane
    for n in range(block.final_qpos.shape[1]):
        block.final_qpos[sample, n] = lane_get(state.qpos, n, lane)
    for k in range(block.final_qvel.shape[1]):
        block.final_qvel[sample, k] = lane_get(state.qvel, k, lane)


@inlined
def lanes_live(run: RunBundle) -> bool:
    """True if a lane takes steps."""
    living = 0
    for lane in range(run.lanes.data.alive.shape[0]):
        living += run.lanes.data.alive[lane]
    return living > 0


@inlined
def lanes_rest(run: RunBundle) -> bool:
    """True if all living lanes sleep through this step, in which nothing then moves."""
    for lane in range(run.lanes.data.alive.shape[0]):
        if run.lanes.data.alive[lane] and not lane_get(run.step.asleep, 0, lane) > 0.0:
            return False
    return True


@njit
def note_lanes(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """Note residuals of the step just solved, and end lanes whose velocities are not finite."""
    if solver.pack is not None:
        _count_by_newton(run, solver.pack.by_newton)
    _find_dead(robot, run)
    _note_residuals(run, rows)


@inlined
def _count_by_newton(run: RunBundle, by_newton: Lanes1) -> None:
    """Count the lanes whose rows newton itself has solved in this step."""
    if any_positive(by_newton[0]):
        for lane in range(lane_count(by_newton)):
            solved = run.lanes.data.alive[lane] and lane_get(by_newton, 0, lane) > 0.0
            run.lanes.data.by_newton[0] += 1 if solved else 0


@njit
def _note_residuals(run: RunBundle, rows: Rows) -> None:
    """Note the residuals of lanes in which the solver left any, as booking.book_forces does."""
    lanes = run.lanes
    if not any_positive(rows.report[RESIDUAL]):
        return
    for lane in range(lane_count(rows.report)):
        residual = lane_get(rows.report, RESIDUAL, lane)
        if lanes.data.alive[lane]:
            lanes.data.worst_residual[lane] = max(lanes.data.worst_residual[lane], residual)
            lanes.data.unsolved[lane] += 1 if residual > TOLD else 0


@njit
def _find_dead(robot: RobotBundle, run: RunBundle) -> None:
    """Mark lanes whose end velocities are not finite."""
    state, data = robot.state, robot.data
    step, lanes = run.step, run.lanes
    total = like(0.0, data)
    for k in range(step.next.shape[0]):
        total = total + 0.0 * step.next[k]
    one = like(1.0, data)
    lanes.data.dead[0] = where_greater(one, total, zero_like(one), one)  # NaN does not compare less than one
    if any_positive(lanes.data.dead[0]):
        for lane in range(lane_count(state.qpos)):
            if lanes.data.alive[lane] and lane_get(lanes.data.dead, 0, lane) > 0.0:
                first = 0
                while math.isfinite(lane_get(step.next, first, lane)):
                    first += 1
                end(state, run, lane, NON_FINITE, robot.model.independent_dof[first])
