"""Samples that are rated before each of their steps: their costs are summed, and those that shall end are ended.

A program of expressions (sim/quantities/program.py) gives, of each lane's state, whether the sample ends there and the
cost of the step from there. A pack whose step is taken again, with more room for contacts, rates no state twice.
"""

from __future__ import annotations

from artsim.sim.articulation.state import State
from artsim.sim.foundation.gather_scatter import scatter
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import lane_count
from artsim.sim.foundation.records import ConstReals3, Reals2
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.run_data.run_records import RunBundle
from artsim.sim.stepping.lane_ends import record_final, step_of_lane
from artsim.sim.stepping.packs import BY_CONTROL, BY_TARGET, COST, FIRST_SAMPLE, UNTIL, Rating


@njit
def rate(state: State, run: RunBundle, rating: Rating) -> None:
    """Rate the states of all living lanes, and end those that shall end; see Rating."""
    alive, first = run.lanes.data.alive, run.block.plan[FIRST_SAMPLE]
    _show(state, run, rating)
    if connected(rating.finder):
        run_entry(rating.finder)
    if rating.memory.shape[1] > 0:
        _recall(run, rating)
    run_entry(rating.evaluator)
    for lane in range(lane_count(state.qpos)):
        sample, step = first + lane, step_of_lane(run, lane)
        if not alive[lane] or rating.rated[sample] >= step:
            continue
        rating.rated[sample] = step
        ends, cost = rating.output[lane, UNTIL], rating.output[lane, COST]
        if ends != ends or cost != cost:
            _note_unknown(rating, lane, sample)
        elif ends == 0.0:
            rating.cost[sample] += cost
            for k in range(rating.memory.shape[1]):
                rating.kept[sample, k] = rating.memory[lane, k]
            continue
        else:
            rating.ended[sample] = step
        alive[lane] = 0
        record_final(state, run.block, lane)


@njit
def _show(state: State, run: RunBundle, rating: Rating) -> None:
    """Write the lanes' states and inputs into the tables of the program."""
    scatter(state.qpos, rating.qpos, 0, rating.qpos.shape[1])
    scatter(state.qvel, rating.qvel, 0, rating.qvel.shape[1])
    if rating.activation.shape[1] > 0:
        scatter(state.activation, rating.activation, 0, rating.activation.shape[1])
    for lane in range(rating.time.shape[0]):
        rating.time[lane, 0] = step_of_lane(run, lane) * rating.time_step[0]
    if rating.by[0] == BY_CONTROL:
        _show_inputs(run.lanes.controls.control, run.lanes.data.input_row[0], rating.action)
    elif rating.by[0] == BY_TARGET:
        _show_inputs(run.lanes.controls.target, run.lanes.data.input_row[0], rating.action)
    else:
        _show_inputs(run.lanes.controls.torque, run.lanes.data.input_row[0], rating.action)


@njit
def _show_inputs(table: ConstReals3, row: int, out: Reals2) -> None:
    """Copy a row of inputs, of all lanes or of each, into a table of the program."""
    for lane in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[lane, k] = table[lane if table.shape[0] > 1 else 0, row, k]


@njit
def _recall(run: RunBundle, rating: Rating) -> None:
    """Set the program's memories to those of the samples; of a sample that begins, to the present values."""
    first, begins = run.block.plan[FIRST_SAMPLE], False
    for lane in range(rating.memory.shape[0]):
        begins = begins or step_of_lane(run, lane) == 0
    if begins:
        rating.always[0] = 1
        run_entry(rating.evaluator)
        rating.always[0] = 0
    for lane in range(rating.memory.shape[0]):
        if step_of_lane(run, lane) != 0:
            for k in range(rating.memory.shape[1]):
                rating.memory[lane, k] = rating.kept[first + lane, k]


@njit
def _note_unknown(rating: Rating, lane: int, sample: int) -> None:
    """Note that a sample cannot be rated, with all registers of the program for the first of these samples."""
    if rating.unknown[0] < 0 or sample < rating.unknown[0]:
        rating.unknown[0] = sample
        for k in range(rating.found.shape[0]):
            rating.found[k] = rating.register[k, lane]
