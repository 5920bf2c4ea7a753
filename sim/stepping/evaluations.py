"""Evaluations of a step: where the bias acts, and on which bodies, decided by the velocities found, in both widths.

The first evaluation shows the bodies that are taut, which the second one stiffens, and those that turn fast, and curved
couplings; for these, step.middle follows the velocities found until it no longer changes. An evaluation that moves
step.middle away from its target, or leaves rows unsolved, is taken back.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import accelerations
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.loop_rows import clear_loop_forces, note_loop_forces
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.equipment.arrays import EitherEquipment
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Pack, Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import (
    AGAIN,
    EVALUATION,
    MIDWAY,
    ONCE,
    RESIDUAL,
    STIFFENED,
    WEIGHED,
    WITHOUT_ROWS,
    Rows,
    RunBundle,
)
from artsim.sim.solvers.tolerance import UNTRIED
from artsim.sim.stepping.midpoint import (
    MOST_EVALUATIONS,
    clear_stiffening,
    foresee,
    go_back,
    go_midway,
    loops_pull,
    misled,
    stiffen,
    stiffened,
    turning_and_tautness,
    unsettled,
)
from artsim.sim.stepping.packs import LaneBundle
from artsim.sim.stepping.secants import secant_drift


@njit
def start_evaluations(robot: RobotBundle, run: RunBundle, chosen: Real) -> None:
    """Set the velocities expected midway and the drift of couplings, from which evaluations with these contacts start,
    where `chosen` is 1. Elsewhere the step is solved, but for aims of contacts.
    """
    state, data, step = robot.state, robot.data, run.step
    zero = zero_like(chosen)
    if step.counters[EVALUATION] == STIFFENED:
        clear_stiffening(data, chosen)
        step.counters[WEIGHED] = 0
    if step.counters[EVALUATION] != STIFFENED or not any_positive(stiffened(data)):
        step.counters[EVALUATION] = ONCE
    foresee(robot, run, chosen)
    for k in range(step.middle.shape[0]):
        if any_positive(absolute(step.middle[k] - state.qvel[k])):
            step.counters[EVALUATION] = max(step.counters[EVALUATION], AGAIN)
    bent = secant_drift(robot, run.inputs.time_step[0], step, chosen)
    step.evaluations[0] = where_greater(chosen, zero, zero, step.evaluations[0])
    step.follows[0] = where_greater(chosen, zero, zero + (1.0 if bent else 0.0), step.follows[0])
    step.away[0] = where_greater(chosen, zero, zero, step.away[0])
    step.nearest[0] = where_greater(chosen, zero, zero + UNTRIED, step.nearest[0])


@njit
def misplaces_bias(robot: RobotBundle, run: RunBundle, rows: Rows, loops: EitherEquipment, chosen: Real) -> Real:
    """1 where the bias must act at another step.middle, which is then moved, or on stiffened bodies; looked at where
    `chosen` is 1. `loops`: the equipment with the loops, or those of a pack."""
    step = run.step
    zero = zero_like(chosen)
    first = where_greater(step.evaluations[0], zero, zero, chosen)
    taut = zero
    if any_positive(first):
        step.evaluations[0] = step.evaluations[0] + first
        if run.inputs.scheme[MIDWAY] > 0.0:
            fast, taut = _turns_fast_or_is_taut(robot, run, rows, loops, first)
            step.follows[0] = largest(step.follows[0], fast)
    looked = where_greater(step.follows[0], zero, chosen - taut, zero)  # the motion of taut bodies tells nothing
    looked = where_greater(step.away[0], zero, zero, looked)
    looked = where_greater(step.evaluations[0], zero + (MOST_EVALUATIONS + 0.5), zero, looked)
    if not any_positive(looked):
        return taut
    step.counters[EVALUATION] = max(step.counters[EVALUATION], AGAIN)
    change, most = misled(robot, step)
    away = where_greater(change, step.nearest[0], looked, zero)
    unsolved = where_greater(zero + UNTRIED, step.nearest[0], looked, zero)
    away = where_greater(rows.report[RESIDUAL], zero + UNSOLVED, unsolved, away)
    on = where_greater(unsettled(change, step.nearest[0], most), zero, looked - away, zero)
    moved = away + on
    if not any_positive(moved):
        return taut
    if any_positive(away):
        go_back(step, away)
    if any_positive(on):
        go_midway(robot, step, on)
    step.away[0] = step.away[0] + away
    step.nearest[0] = where_greater(moved, zero, change, step.nearest[0])
    step.evaluations[0] = step.evaluations[0] + moved
    secant_drift(robot, run.inputs.time_step[0], step, moved)
    return taut + moved


@njit
def _turns_fast_or_is_taut(
    robot: RobotBundle, run: RunBundle, rows: Rows, loops: EitherEquipment, chosen: Real
) -> tuple[Real, Real]:
    """1 where a body turns too fast for one evaluation of the bias, and 1 where bodies are taut, which are then
    stiffened; looked at where `chosen` is 1."""
    model, state, data, step = robot.model, robot.state, robot.data, run.step
    h = run.inputs.time_step[0]
    zero = zero_like(chosen)
    if step.retries[WITHOUT_ROWS] == 0:  # the step without rows leaves velocities and accelerations up to date
        for k in range(step.qacc.shape[0]):
            step.qacc[k] = (step.velocity[k] - state.qvel[k]) / h
        accelerations(model, step.middle, step.qacc, data)
    turning, tautness = turning_and_tautness(model, data, h)
    taut = where_greater(tautness, zero, chosen, zero)
    if loops is not None:
        clear_loop_forces(loops)
        note_loop_forces(rows, loops, 1.0 / h)
        taut = where_greater(loops_pull(model, data, h, loops), zero, chosen, taut)
    if any_positive(taut):
        if run.lanes is not None:
            _note_stiffening(data, run.lanes)
        taut = where_greater(stiffen(model, state.qvel, data, h, step, loops), zero, taut, zero)
        if run.lanes is not None:
            _recall_stiffening(data, run.lanes, taut)
        if any_positive(taut):
            step.counters[EVALUATION] = STIFFENED
            step.counters[WEIGHED] = 0
    return where_greater(turning, zero, chosen, zero), taut


# ------------------------------------------------------------------ of packs, of which some lanes are stiffened already


@inlined
def _note_stiffening(data: Workspace, lanes: LaneBundle) -> None:
    """Store the stiffening of all lanes."""
    for i in range(data.stiffening.shape[0]):
        for c in range(6):
            lanes.data.stiffening[i, c] = data.stiffening[i, c]
    for k in range(data.slack.shape[0]):
        lanes.data.slack[k] = data.slack[k]


@inlined
def _recall_stiffening(data: Workspace, lanes: LaneBundle, chosen: Pack) -> None:
    """Restore the stiffening in all but the lanes where `chosen` is 1."""
    zero = zero_like(chosen)
    for i in range(data.stiffening.shape[0]):
        for c in range(6):
            data.stiffening[i, c] = where_greater(chosen, zero, data.stiffening[i, c], lanes.data.stiffening[i, c])
    for k in range(data.slack.shape[0]):
        data.slack[k] = where_greater(chosen, zero, data.slack[k], lanes.data.slack[k])
