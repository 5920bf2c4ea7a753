"""Start and end of the steps of integrators that have their own, and activations of actuators at their stages.

The rest that they share is in accelerations.py. Such integrators have no unilateral rows: a run stops at the state
before the step that would violate a limit. The code serves both widths; a lane that stops keeps the state before the
step, and its later numbers carry no meaning.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.kinematics import kinematics
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.limit_rows import ball_rotation, is_cone
from artsim.sim.constraints.loop_rows import note_loop_gaps
from artsim.sim.constraints.tendon_limit_rows import broken_side
from artsim.sim.constraints.turn_limit_rows import is_turned_beyond
from artsim.sim.equipment.actuators import advance_activations
from artsim.sim.equipment.arrays import EitherEquipment, EquipmentBundle
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import lane_count, lane_get, lane_set
from artsim.sim.foundation.records import Reals1
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import (
    EVALUATION,
    INEQUALITY,
    ITERATIONS,
    NON_FINITE,
    ONCE,
    RESIDUAL,
    RUNNING,
    STOP_DOF,
    STOP_REASON,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.accelerations import evaluate
from artsim.sim.stepping.booking import settle
from artsim.sim.stepping.lane_ends import end
from artsim.sim.stepping.solution import is_finite
from artsim.sim.stepping.work import add_stage_work

_BEYOND = 1e-9  # [rad or m] by which coordinates and tendons may exceed their limits
_LIMITED = 1e308  # [m] limits of tendons from there on are none


@njit
def start_step(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Evaluate the state at the step's start. A state beyond its limits stops the run, since the step may end within
    them without the limit's force."""
    state, step = robot.state, run.step
    if run.lanes is None:
        step.counters[EVALUATION] = ONCE
        rows.report[ITERATIONS] = 0.0
        rows.report[RESIDUAL] = 0.0
        for s in range(step.work.shape[0]):
            step.work[s] = 0.0
        if equipment is not None:
            equipment.data.stage[0] = 0.0
            for n in range(state.activation.shape[0]):
                equipment.data.sum_activation[n] = 0.0
    evaluate(robot, state.qpos, state.qvel, run, rows, equipment, rules, solver)
    if run.lanes is not None:
        _end_lanes(robot, run, step.next, True)
        return
    if equipment is not None:
        note_loop_gaps(robot.model, robot.data, step, equipment)
    _stop_beyond_limits(robot, step, equipment)


@njit
def keep_start(robot: RobotBundle, run: RunBundle, equipment: EitherEquipment) -> None:
    """Keep the state at the step's start."""
    state, step = robot.state, run.step
    for n in range(step.start_qpos.shape[0]):
        step.start_qpos[n] = state.qpos[n]
    for k in range(step.start_qvel.shape[0]):
        step.start_qvel[k] = state.qvel[k]
    if run.lanes is not None:
        return
    if equipment is not None:
        data = equipment.data
        for n in range(state.activation.shape[0]):
            data.start_activation[n] = state.activation[n]
        for n in range(data.start_length.shape[0]):
            data.start_length[n] = data.actuator_length[n]
            data.start_velocity[n] = data.actuator_velocity[n]


@njit
def go_ahead(robot: RobotBundle, run: RunBundle, equipment: EitherEquipment, ahead: float) -> None:
    """Let the next evaluation be `ahead` of the step's start [steps], with activations by the rates of the last one."""
    if run.lanes is not None:
        return
    if equipment is not None:
        state, data, time = robot.state, equipment.data, ahead * run.inputs.time_step[0]
        data.stage[0] = ahead
        for n in range(state.activation.shape[0]):
            state.activation[n] = data.start_activation[n] + time * data.activation_rate[n]


@njit
def weigh_evaluation(run: RunBundle, equipment: EitherEquipment, v: Reals1, weight: float, total: float) -> None:
    """Add the work of the forces of an evaluation at velocities v (nv,), and the activations' rates there, to their
    sums over the step; `total`: the sum of the weights.
    """
    if run.lanes is not None:
        return
    add_stage_work(run.step, equipment, v, weight * run.inputs.time_step[0] / total)
    if equipment is not None:
        for n in range(equipment.data.sum_activation.shape[0]):
            equipment.data.sum_activation[n] += weight * equipment.data.activation_rate[n]


@njit
def advance_activations_by_mean(robot: RobotBundle, run: RunBundle, equipment: EitherEquipment, total: float) -> None:
    """Set the activations at the step's end, by their mean rates; `total`: the sum of the weights.

    Exactly integrated activations advance with the values at the step's start, as in MuJoCo.
    """
    if run.lanes is not None:
        return
    if equipment is not None:
        state, data = robot.state, equipment.data
        for n in range(state.activation.shape[0]):
            state.activation[n] = data.start_activation[n]
            data.activation_rate[n] = data.sum_activation[n] / total
        for n in range(data.start_length.shape[0]):
            data.actuator_length[n] = data.start_length[n]
            data.actuator_velocity[n] = data.start_velocity[n]
        advance_activations(equipment, run.inputs.time_step[0], state.activation)


@njit
def finish_step(robot: RobotBundle, run: RunBundle, equipment: EitherEquipment) -> None:
    """Set followers from their leaders at the step's end; take a step back that is not finite or violates a limit."""
    model, state, step = robot.model, robot.state, run.step
    if run.lanes is not None:
        expand(model, state.qpos, state.qvel, robot.data)
    else:
        settle(robot, run)
    for a in range(step.next.shape[0]):
        step.next[a] = state.qvel[model.independent_dof[a]]
    if run.lanes is not None:
        _end_lanes(robot, run, step.next, False)
        return
    if is_finite(model, step):
        if equipment is not None:
            _measure_limited_tendons(robot, equipment)
        _stop_beyond_limits(robot, step, equipment)
    if step.counters[STOP_REASON] != RUNNING:
        _take_back(robot, step, equipment)


@njit
def _take_back(robot: RobotBundle, step: Step, equipment: EquipmentBundle | None) -> None:
    """Restore the state at the step's start."""
    state = robot.state
    for n in range(step.start_qpos.shape[0]):
        state.qpos[n] = step.start_qpos[n]
    for k in range(step.start_qvel.shape[0]):
        state.qvel[k] = step.start_qvel[k]
    if equipment is not None:
        for n in range(state.activation.shape[0]):
            state.activation[n] = equipment.data.start_activation[n]


@njit
def _stop_beyond_limits(robot: RobotBundle, step: Step, equipment: EquipmentBundle | None) -> None:
    """Note the reason and the dof (nv + t for tendon t) in step.counters if a coordinate or a tendon is beyond its
    limits. Needs the tendons' lengths at the state.
    """
    model, state = robot.model, robot.state
    nv = state.qvel.shape[0]
    for k in range(nv):
        c = model.dof_coord[k]
        outside = c >= 0 and (state.qpos[c] < model.lower[k] - _BEYOND or state.qpos[c] > model.upper[k] + _BEYOND)
        if is_cone(model, k):
            _, _, _, angle = ball_rotation(model, state.qpos, k, 0)
            outside = outside or angle > model.upper[k] + _BEYOND
        if model.dof_turn[k] >= 0 and is_turned_beyond(model, state.qpos, k, _BEYOND):
            outside = True
        if outside:
            step.counters[STOP_REASON] = INEQUALITY
            step.counters[STOP_DOF] = k
            return
    if equipment is not None:
        for t in range(equipment.model.tendon_lower.shape[0]):
            if broken_side(equipment, t, equipment.data.tendon_length[t], _BEYOND) != 0:
                step.counters[STOP_REASON] = INEQUALITY
                step.counters[STOP_DOF] = nv + t
                return


@njit
def _measure_limited_tendons(robot: RobotBundle, equipment: EquipmentBundle) -> None:
    """Set the tendons' lengths at the state if any tendon has limits."""
    limited = False
    for t in range(equipment.model.tendon_lower.shape[0]):
        limited = limited or equipment.model.tendon_upper[t] < _LIMITED or equipment.model.tendon_lower[t] > -_LIMITED
    if limited:
        kinematics(robot.model, robot.state.qpos, robot.data)
        tendon_paths(robot, robot.state.qpos, robot.state.qvel, equipment)


# ------------------------------------------------------------------ of packs


@njit
def _end_lanes(robot: RobotBundle, run: RunBundle, values: Reals1, at_start: bool) -> None:
    """Stop lanes in which one of these values is not finite, or a coordinate is beyond its limits, at the state before
    the step: at the step's start the present one. Lanes that sleep through the step go on.
    """
    state, step, lanes = robot.state, run.step, run.lanes
    for lane in range(lane_count(state.qpos)):
        if lanes.data.alive[lane] == 0 or lane_get(step.asleep, 0, lane) > 0.0:
            continue
        reason, dof = _why_to_end(robot, values, lane)
        if reason != RUNNING:
            if not at_start:
                for n in range(step.start_qpos.shape[0]):
                    lane_set(state.qpos, n, lane, lane_get(step.start_qpos, n, lane))
                for k in range(step.start_qvel.shape[0]):
                    lane_set(state.qvel, k, lane, lane_get(step.start_qvel, k, lane))
            end(state, run, lane, reason, dof)


@njit
def _why_to_end(robot: RobotBundle, values: Reals1, lane: int) -> tuple[int, int]:
    """The reason why a lane stops, RUNNING if there is none, and the dof."""
    model, state = robot.model, robot.state
    for a in range(values.shape[0]):
        if not math.isfinite(lane_get(values, a, lane)):
            return NON_FINITE, model.independent_dof[a]
    for k in range(state.qvel.shape[0]):
        c = model.dof_coord[k]
        if c >= 0:
            place = lane_get(state.qpos, c, lane)
            if place < model.lower[k] - _BEYOND or place > model.upper[k] + _BEYOND:
                return INEQUALITY, k
    return RUNNING, 0
