"""Classical Runge-Kutta method of order 4, for motion without unilateral rows.

Hairer, Nørsett and Wanner 1993, ch. II.1; rotations are integrated on the group (Munthe-Kaas 1999). The code serves
both widths.

With (q, v)ₛ the state at stage s, aₛ = evaluate((q, v)ₛ) its accelerations and ωₛ its velocities, as tangents at the
step's start: each stage leads from the step's start over AHEAD[s] h, by the slopes (ω, a) of the one before, and the
step over h, by the means Σ WEIGHT[s] (ω, a)ₛ / TOTAL.
"""

from __future__ import annotations

from artsim.sim.articulation.integrators import inverse_tangent, move
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import EitherEquipment
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import EVALUATE, TASK, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.accelerations import evaluate
from artsim.sim.stepping.own_steps import (
    advance_activations_by_mean,
    finish_step,
    go_ahead,
    keep_start,
    start_step,
    weigh_evaluation,
)

AHEAD = (0.0, 0.5, 0.5, 1.0)
WEIGHT = (1.0, 2.0, 2.0, 1.0)
TOTAL = 6.0


@njit
def rk4(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Evaluate the first stage, whose acceleration and forces a recorded row holds; or take the other three, and
    advance the state.
    """
    state, step = robot.state, run.step
    if step.integrator[TASK] == EVALUATE:
        start_step(robot, run, rows, equipment, rules, solver)
        weigh_evaluation(run, equipment, state.qvel, WEIGHT[0], TOTAL)
        return
    keep_start(robot, run, equipment)
    begin_slopes(robot, run)
    for s in range(1, 4):
        go_to_stage(robot, run, AHEAD[s])
        go_ahead(robot, run, equipment, AHEAD[s])
        evaluate(robot, step.stage_qpos, step.stage_qvel, run, rows, equipment, rules, solver)
        weigh_evaluation(run, equipment, step.stage_qvel, WEIGHT[s], TOTAL)
        add_slopes(robot, run, WEIGHT[s])
    _advance(robot, run)
    advance_activations_by_mean(robot, run, equipment, TOTAL)
    finish_step(robot, run, equipment)


@njit
def begin_slopes(robot: RobotBundle, run: RunBundle) -> None:
    """Begin the sums of slopes with those of the first stage, at the step's start."""
    step = run.step
    for k in range(step.qacc.shape[0]):
        step.tangent[k] = robot.state.qvel[k]
        step.sum_velocity[k] = robot.state.qvel[k]
        step.sum_acceleration[k] = step.qacc[k]


@njit
def go_to_stage(robot: RobotBundle, run: RunBundle, ahead: float) -> None:
    """Set step.stage_qpos (nq,) and stage_qvel (nv,), from the slopes of the stage before; step.tangent is then the
    rotation vector of this stage. `ahead`: its time from the start of the step [steps]."""
    step, time = run.step, ahead * run.inputs.time_step[0]
    for n in range(step.start_qpos.shape[0]):
        step.stage_qpos[n] = step.start_qpos[n]
    move(robot.model, step.stage_qpos, step.tangent, time)
    for k in range(step.qacc.shape[0]):
        step.tangent[k] = time * step.tangent[k]
        step.stage_qvel[k] = step.start_qvel[k] + time * step.qacc[k]


@njit
def add_slopes(robot: RobotBundle, run: RunBundle, weight: float) -> None:
    """Set step.tangent (nv,) to the stage's velocities as tangents at the step's start, and add its slopes to the
    sums."""
    step = run.step
    for k in range(step.qacc.shape[0]):
        step.velocity[k] = step.stage_qvel[k]
    inverse_tangent(robot.model, step.tangent, step.velocity)
    for k in range(step.qacc.shape[0]):
        step.tangent[k] = step.velocity[k]
        step.sum_velocity[k] += weight * step.velocity[k]
        step.sum_acceleration[k] += weight * step.qacc[k]


@njit
def _advance(robot: RobotBundle, run: RunBundle) -> None:
    """Set coordinates and velocities at the end of the step, by the means of the slopes."""
    state, step = robot.state, run.step
    h = run.inputs.time_step[0]
    for k in range(step.qacc.shape[0]):
        step.sum_velocity[k] = step.sum_velocity[k] / TOTAL
        state.qvel[k] = step.start_qvel[k] + h * step.sum_acceleration[k] / TOTAL
    move(robot.model, state.qpos, step.sum_velocity, h)
