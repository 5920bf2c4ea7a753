"""Steps of a pack by the method of Runge and Kutta (rk4.py): free motion, all forces explicit, couplings exact.

Forces that a single robot's code would find lane by lane, and rows, are left to runs of single robots.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.coupling import expand, expand_velocity, reduce_matrix, reduce_vector
from artsim.sim.articulation.dynamics import composites, coupled_bias, factorise, mass_matrix, solve
from artsim.sim.articulation.kinematics import kinematics, like, world_inertia
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import coordinate, drive_force, find_places
from artsim.sim.equipment.affine import bounded
from artsim.sim.equipment.pack_actuation import set_drives
from artsim.sim.equipment.pack_equipment import PackEquipment
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import lane_count, lane_get, lane_set
from artsim.sim.foundation.records import Lanes1
from artsim.sim.run_data.run_records import (
    INEQUALITY,
    NON_FINITE,
    RUNNING,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.pack_step import choose_inputs, end, record, record_final
from artsim.sim.stepping.packs import STEP
from artsim.sim.stepping.rk4 import advance_state, begin_stage, end_stage, keep_start
from artsim.sim.stepping.system import scale_drives_in_lanes

_BEYOND = 1e-9  # [rad or m] by which coordinates may exceed their limits


@njit
def roll_rk4(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: PackEquipment,
    contact: None,
    rules: None,
    solver: SolverBundle,
) -> None:
    """Take a pack's steps as rk4.simulate_rk4 does; the arguments are those of pack_step.roll. A lane that stops keeps
    the state before the step; its later numbers carry no meaning.
    """
    state, data = robot.state, robot.data
    step, block, lanes = run.step, run.block, run.lanes
    for _ in range(block.plan[STEPS_TO_TAKE]):
        choose_inputs(robot.model, data, run, equipment)
        expand(robot.model, state.qpos, state.qvel, data)
        if lanes.data.counters[STEP] % block.plan[STEPS_PER_ROW] == 0:
            record(state, block, lanes.data.counters[STEP] // block.plan[STEPS_PER_ROW])
        _find_accelerations(robot, state.qpos, state.qvel, run, rows, equipment, solver)
        _end_lanes(robot, run, step.next, True)
        keep_start(state, step)
        for stage in range(1, 4):
            _, weight = begin_stage(robot.model, step, run.inputs.time_step[0], stage)
            _find_accelerations(robot, step.stage_qpos, step.stage_qvel, run, rows, equipment, solver)
            end_stage(robot.model, step, weight)
        advance_state(robot, run)
        expand(robot.model, state.qpos, state.qvel, data)
        for a in range(step.next.shape[0]):
            step.next[a] = state.qvel[robot.model.independent_dof[a]]
        _end_lanes(robot, run, step.next, False)
        lanes.data.counters[STEP] += 1
    for lane in range(lane_count(state.qpos)):
        if lanes.data.alive[lane]:
            record_final(state, block, lane)


@njit
def _find_accelerations(
    robot: RobotBundle, q: Lanes1, v: Lanes1, run: RunBundle, rows: Rows, equipment: PackEquipment, solver: SolverBundle
) -> None:
    """Set step.qacc (nv,) and step.next = u̇ (nu,) at (q, v), with all forces explicit."""
    model, data, step = robot.model, robot.data, run.step
    expand(model, q, v, data)
    kinematics(model, q, data)
    world_inertia(model, data)
    coupled_bias(model, v, data)
    composites(model, data)
    mass_matrix(model, data)
    set_drives(run)
    if run.lanes.drives is not None:
        scale_drives_in_lanes(model, data, run, solver)
    find_places(model, q, run, 0)
    _find_actuator_forces(model, q, v, equipment)
    for k in range(step.force.shape[0]):
        place = coordinate(model, q, k)
        limit = run.inputs.drive_limit[k]
        drive = bounded(drive_force(run, 0, k, step.place[k], v[k]), -limit, limit)
        passive = -model.damping[k] * v[k] - model.stiffness[k] * (place - model.spring_reference[k])
        step.diagonal[k] = like(0.0, data)
        step.force[k] = step.applied[k] + drive + equipment.data.actuator_total[k] + passive - data.bias[k]
    reduce_matrix(model, data, step.diagonal)
    reduce_vector(model, step.force, data, step.next)
    factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)
    solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, step.next)
    expand_velocity(model, step.next, data, step.qacc)
    for k in range(step.qacc.shape[0]):
        step.qacc[k] = step.qacc[k] + data.drift[k]


@njit
def _find_actuator_forces(model: Model, q: Lanes1, v: Lanes1, equipment: PackEquipment) -> None:
    """Set equipment.data.actuator_total (nv,) from the forces at (q, v)."""
    actuators, data = equipment.model, equipment.data
    for k in range(data.actuator_total.shape[0]):
        data.actuator_total[k] = v[k] - v[k]
    for n in range(actuators.number.shape[0]):
        force = data.constant[n]
        for entry in range(actuators.entry[n], actuators.entry[n + 1]):
            k, moment = actuators.dof[entry], actuators.moment[entry]
            force = force - data.slope[n] * moment * coordinate(model, q, k) - data.resistance[n] * moment * v[k]
        force = bounded(force, actuators.force_lower[n], actuators.force_upper[n])
        for entry in range(actuators.entry[n], actuators.entry[n + 1]):
            k = actuators.dof[entry]
            data.actuator_total[k] = data.actuator_total[k] + actuators.moment[entry] * force
    for k in range(data.actuator_total.shape[0]):
        data.actuator_total[k] = bounded(data.actuator_total[k], actuators.dof_lower[k], actuators.dof_upper[k])


@njit
def _end_lanes(robot: RobotBundle, run: RunBundle, values: Lanes1, at_start: bool) -> None:
    """Stop lanes in which one of these values is not finite, or a coordinate is beyond its limits, at the state before
    the step: at the step's start the present one.
    """
    state, step, lanes = robot.state, run.step, run.lanes
    for lane in range(lane_count(state.qpos)):
        if not lanes.data.alive[lane]:
            continue
        reason, dof = _why_to_end(robot, values, lane)
        if reason != RUNNING:
            if not at_start:
                for n in range(step.start_qpos.shape[0]):
                    lane_set(state.qpos, n, lane, lane_get(step.start_qpos, n, lane))
                for k in range(step.start_qvel.shape[0]):
                    lane_set(state.qvel, k, lane, lane_get(step.start_qvel, k, lane))
            end(state, lanes, run.block, lane, reason, dof)


@njit
def _why_to_end(robot: RobotBundle, values: Lanes1, lane: int) -> tuple[int, int]:
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
