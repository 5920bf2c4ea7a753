"""Dormand and Prince's Runge-Kutta pair of orders 5 and 4, for motion without unilateral rows, with its own error.

Hairer, Nørsett and Wanner 1993, ch. II.5, table 5.2; rotations are integrated on the group (Munthe-Kaas 1999), as in
rk4.py. The last stage is evaluated at the step's end: with it, the difference of the two orders is the error of the
lower one, and the step goes on with the higher.
"""

from __future__ import annotations

from artsim.sim.articulation.integrators import inverse_tangent, move
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import EVALUATE, TASK, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.run_data.stage_slopes import STAGES, StageSlopes
from artsim.sim.stepping.accelerations import evaluate
from artsim.sim.stepping.own_steps import (
    advance_activations_by_mean,
    finish_step,
    go_ahead,
    keep_start,
    start_step,
    weigh_evaluation,
)

AHEAD = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
COEFFICIENT = (  # of the stages before each stage, row by row; the last row leads to the step's end
    *(1 / 5,),
    *(3 / 40, 9 / 40),
    *(44 / 45, -56 / 15, 32 / 9),
    *(19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    *(9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    *(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
WEIGHT = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0)
DIFFERENCE = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)  # of the two orders' weights


@njit
def dormand_prince(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    rules: RuleBundle | None,
    solver: SolverBundle,
    slopes: StageSlopes,
) -> None:
    """Evaluate the first stage, whose acceleration and forces a recorded row holds; or take the others, advance the
    state, and leave the error in `slopes`."""
    state, step = robot.state, run.step
    if step.integrator[TASK] == EVALUATE:
        start_step(robot, run, rows, equipment, rules, solver)
        weigh_evaluation(run, equipment, state.qvel, WEIGHT[0], 1.0)
        return
    keep_start(robot, run, equipment)
    for k in range(step.qacc.shape[0]):
        slopes.velocity[0, k] = state.qvel[k]
        slopes.acceleration[0, k] = step.qacc[k]
    for s in range(1, STAGES):
        _go_to_stage(robot, run, slopes, s)
        if s == STAGES - 1:
            for n in range(step.stage_qpos.shape[0]):
                state.qpos[n] = step.stage_qpos[n]
            for k in range(step.stage_qvel.shape[0]):
                state.qvel[k] = step.stage_qvel[k]
        go_ahead(robot, run, equipment, AHEAD[s])
        evaluate(robot, step.stage_qpos, step.stage_qvel, run, rows, equipment, rules, solver)
        weigh_evaluation(run, equipment, step.stage_qvel, WEIGHT[s], 1.0)
        _keep_slopes(robot, run, slopes, s)
    _find_error(run, slopes)
    advance_activations_by_mean(robot, run, equipment, 1.0)
    finish_step(robot, run, equipment)


@njit
def _go_to_stage(robot: RobotBundle, run: RunBundle, slopes: StageSlopes, s: int) -> None:
    """Set step.stage_qpos (nq,) and stage_qvel (nv,) from the slopes of the stages before stage s; step.tangent is then
    the way to there, with rotation vectors."""
    step, h = run.step, run.inputs.time_step[0]
    first = s * (s - 1) // 2
    for k in range(step.tangent.shape[0]):
        way = 0.0
        change = 0.0
        for j in range(s):
            way += COEFFICIENT[first + j] * slopes.velocity[j, k]
            change += COEFFICIENT[first + j] * slopes.acceleration[j, k]
        step.tangent[k] = h * way
        step.stage_qvel[k] = step.start_qvel[k] + h * change
    for n in range(step.start_qpos.shape[0]):
        step.stage_qpos[n] = step.start_qpos[n]
    move(robot.model, step.stage_qpos, step.tangent, 1.0)


@njit
def _keep_slopes(robot: RobotBundle, run: RunBundle, slopes: StageSlopes, s: int) -> None:
    """Keep the slopes of stage s, its velocities as tangents at the step's start."""
    step = run.step
    for k in range(step.qacc.shape[0]):
        step.velocity[k] = step.stage_qvel[k]
    inverse_tangent(robot.model, step.tangent, step.velocity)
    for k in range(step.qacc.shape[0]):
        slopes.velocity[s, k] = step.velocity[k]
        slopes.acceleration[s, k] = step.qacc[k]


@njit
def _find_error(run: RunBundle, slopes: StageSlopes) -> None:
    """Set the differences of the two orders at the step's end."""
    h = run.inputs.time_step[0]
    for k in range(slopes.error.shape[0]):
        way = 0.0
        change = 0.0
        for s in range(STAGES):
            way += DIFFERENCE[s] * slopes.velocity[s, k]
            change += DIFFERENCE[s] * slopes.acceleration[s, k]
        slopes.error[k] = h * way
        slopes.velocity_error[k] = h * change
