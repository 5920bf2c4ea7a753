"""MuJoCo's Runge-Kutta method of order 4 under the convex contact law: four solutions of the step's equations.

The stages are those of rk4.py, each solved with its own contacts and rows. The first stage is the step's own solution,
whose forces are booked.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import EitherEquipment
from artsim.sim.foundation.jit import njit
from artsim.sim.geometry.contacts import EitherContacts
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import CROWDED, STOP_REASON, UNSOLVED_STEPS, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.booking import book_forces
from artsim.sim.stepping.own_steps import go_ahead, keep_start, weigh_evaluation
from artsim.sim.stepping.rk4 import AHEAD, TOTAL, WEIGHT, add_slopes, begin_slopes, go_to_stage
from artsim.sim.stepping.solution import solve_step


@njit
def take_stages(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Solve the other three stages; set step.next and step.velocity to the velocities at the step's end, and
    step.tangent to those by which positions move. The state stays that of the step's start. In both widths."""
    state, step, h = robot.state, run.step, run.inputs.time_step[0]
    keep_start(robot, run, equipment)
    _set_accelerations(robot, run)
    begin_slopes(robot, run)
    unsolved = step.yielded[UNSOLVED_STEPS]
    if run.lanes is None:
        for source in range(step.work.shape[0]):
            step.work[source] = 0.0
        if equipment is not None:
            for n in range(state.activation.shape[0]):
                equipment.data.sum_activation[n] = 0.0
    weigh_evaluation(run, equipment, state.qvel, WEIGHT[0], TOTAL)
    for s in range(1, 4):
        go_to_stage(robot, run, AHEAD[s])
        for n in range(step.stage_qpos.shape[0]):
            state.qpos[n] = step.stage_qpos[n]
        for k in range(step.stage_qvel.shape[0]):
            state.qvel[k] = step.stage_qvel[k]
        expand(robot.model, state.qpos, state.qvel, robot.data)
        go_ahead(robot, run, equipment, AHEAD[s])
        solve_step(robot, run, rows, equipment, contact, rules, solver)
        if step.counters[STOP_REASON] == CROWDED:
            break
        if run.lanes is None:
            book_forces(robot, run, rows, equipment, contact, rules)
        _set_accelerations(robot, run)
        add_slopes(robot, run, WEIGHT[s])
        weigh_evaluation(run, equipment, step.stage_qvel, WEIGHT[s], TOTAL)
    for n in range(step.start_qpos.shape[0]):
        state.qpos[n] = step.start_qpos[n]
    for k in range(step.velocity.shape[0]):
        state.qvel[k] = step.start_qvel[k]
        step.qacc[k] = step.sum_acceleration[k] / TOTAL
        step.velocity[k] = step.start_qvel[k] + h * step.qacc[k]
        step.tangent[k] = step.sum_velocity[k] / TOTAL
    for a in range(step.next.shape[0]):
        step.next[a] = step.velocity[robot.model.independent_dof[a]]
    if run.lanes is None:
        step.yielded[UNSOLVED_STEPS] = min(step.yielded[UNSOLVED_STEPS], unsolved + 1.0)
    if run.lanes is None and equipment is not None:
        go_ahead(robot, run, equipment, 0.0)
        for n in range(state.activation.shape[0]):
            equipment.data.activation_rate[n] = equipment.data.sum_activation[n] / TOTAL


@njit
def _set_accelerations(robot: RobotBundle, run: RunBundle) -> None:
    """Set step.qacc (nv,) from the velocities found."""
    for k in range(run.step.qacc.shape[0]):
        run.step.qacc[k] = (run.step.velocity[k] - robot.state.qvel[k]) / run.inputs.time_step[0]
