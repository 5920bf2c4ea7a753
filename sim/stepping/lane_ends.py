"""The number of a lane's step, and the end of a lane."""

from __future__ import annotations

from artsim.sim.articulation.state import State
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_get
from artsim.sim.run_data.run_records import STEP_NUMBER, RunBundle
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
