"""Stages of step.solve_step that differ for a pack, which takes them for all lanes at once.

All lanes take the step without rows, or the step with the rows of joint friction and of contacts with static shapes.
lanes.beyond marks the lanes that violate another bound, touch something else, or are not solved by the packs' solver:
pack_step.py takes the steps of those lanes one by one.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.articulation.kinematics import accelerations, like
from artsim.sim.constraints.limit_rows import beyond_limits
from artsim.sim.contact.pack_detection import find_in_lanes, find_outrun
from artsim.sim.contact.pack_rows import may_gain_energy, take_impulses
from artsim.sim.equipment.actuation import (
    actuator_force,
    coordinate,
    felt_at,
    find_places,
    is_beyond_drive,
    weigh_springs,
)
from artsim.sim.equipment.affine import force_over_step, is_beyond
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import highest, lane_count, lane_get, lane_set, where_greater, zero_like
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.stepping.free_motion import free_step
from artsim.sim.stepping.midpoint import foresee_spin, turning_and_tautness, unsettled
from artsim.sim.stepping.packs import CROWD


@njit
def find_forces_in_lanes(robot: Any, run: Any, equipment: Any) -> None:
    """Forces at the state, and the targets of drives."""
    inputs, step = run.inputs, run.step
    for k in range(step.applied.shape[0]):
        step.applied[k] = inputs.torque[0, k]
        step.stiffness[k] = inputs.drive_stiffness[k]
        step.damping[k] = inputs.drive_damping[k]
    find_places(robot.model, robot.state.qpos, run, 0)
    weigh_springs(robot.model, run, equipment)


@njit
def look_for_contacts_in_lanes(robot: Any, run: Any, contact: Any) -> bool:
    """Detect the step's contacts; False, with lanes.counters[CROWD] = 1, where they exceed the room."""
    if not find_in_lanes(robot, run.inputs, contact, run.lanes.data.alive):
        run.lanes.data.counters[CROWD] = 1
        return False
    return True


@njit
def start_in_lanes(robot: Any, run: Any) -> None:
    """Set what the evaluation starts from: the velocities before the step, with spin foreseen."""
    state, data = robot.state, robot.data
    step = run.step
    for k in range(step.middle.shape[0]):
        step.middle[k] = state.qvel[k]
    foresee_spin(robot.model, state.qvel, data, run.inputs.time_step[0], step.middle)
    run.lanes.data.beyond[0] = like(-1.0, data)


@njit
def hold_without_rows_in_lanes(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, solver: Any) -> bool:
    """Whether no lane has rows; otherwise the velocities of the step without rows are in solver.pack.free."""
    if solver.pack is None:
        free_step(robot, run, rows, equipment)
        return True
    _choose_bound(robot, run.lanes, solver, contact)
    if highest(1.0 - solver.pack.bound[0]) > 0.0:
        free_step(robot, run, rows, equipment)
        for k in range(solver.pack.free.shape[0]):
            solver.pack.free[k] = run.step.next[k]
    held: bool = highest(solver.pack.bound[0]) <= 0.0
    return held


@njit
def find_velocities_in_lanes(robot: Any, run: Any, rows: Any, contact: Any, solver: Any) -> None:
    """step.next and step.velocity: by the pack's solver in lanes with rows, from the step without rows elsewhere."""
    if solver.pack is None:
        return
    lanes, step = run.lanes, run.step
    zero = like(0.0, robot.data)
    run_entry(solver.pack.entry)
    if contact is not None:
        take_impulses(solver, contact)
    for k in range(step.next.shape[0]):
        step.next[k] = where_greater(solver.pack.bound[0], zero, step.next[k], solver.pack.free[k])
        step.velocity[k] = step.next[k]
    unsolved = like(1.0, robot.data)
    lanes.data.beyond[0] = where_greater(solver.pack.bound[0], solver.pack.solved[0], unsolved, lanes.data.beyond[0])
    if contact is not None:
        lanes.data.beyond[0] = largest(lanes.data.beyond[0], may_gain_energy(robot, run, rows, solver, contact))


@njit
def look_beyond(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, solver: Any) -> None:
    """Set lanes.beyond to more than 0 in lanes that a single robot would solve again (retries.py)."""
    lanes = run.lanes
    if contact is not None:
        lanes.data.beyond[0] = largest(lanes.data.beyond[0], contact.data.away[0])
        find_outrun(robot.model, robot.data, run, contact, lanes.data.alive, lanes.data.beyond)
        lanes.data.beyond[0] = largest(lanes.data.beyond[0], contact.data.outrun[0])
    beyond = largest(_beyond_bounds(robot, run, rows), _beyond_actuators(robot, run, equipment))
    lanes.data.beyond[0] = largest(lanes.data.beyond[0], largest(beyond, _needs_more(robot, run, solver)))


@njit
def _choose_bound(robot: Any, lanes: Any, solver: Any, contact: Any) -> None:
    """Set pack.bound, the lanes with rows, and pack.skip, those the solver ignores. Both include dead lanes."""
    one = like(1.0, robot.data)
    solver.pack.bound[0] = one if solver.pack.rubbing.shape[0] > 0 else zero_like(one)
    solver.pack.skip[0] = zero_like(one)
    if contact is not None:
        solver.pack.bound[0] = largest(solver.pack.bound[0], contact.data.touching[0])
        solver.pack.skip[0] = contact.data.away[0]
    for lane in range(lane_count(robot.state.qpos)):
        if not lanes.data.alive[lane]:
            lane_set(solver.pack.bound, 0, lane, 1.0)
            lane_set(solver.pack.skip, 0, lane, 1.0)
        elif lane_get(solver.pack.bound, 0, lane) == 0.0:
            lane_set(solver.pack.skip, 0, lane, 1.0)


@inlined
def _needs_more(robot: Any, run: Any, solver: Any) -> Any:
    """More than 0 where one evaluation of the step is not enough (midpoint.py)."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    h = run.inputs.time_step[0]
    if solver.pack is not None:
        for k in range(step.qacc.shape[0]):
            step.qacc[k] = (step.velocity[k] - state.qvel[k]) / h
        accelerations(model, state.qvel, step.qacc, data)
    turning, tautness = turning_and_tautness(model, data, h)
    return largest(least(turning, unsettled(robot, step)), tautness)


@inlined
def _beyond_bounds(robot: Any, run: Any, rows: Any) -> Any:
    """More than 0 where the step without rows violates a limit of a joint or a drive."""
    beyond = like(-1.0, robot.data)
    for k in range(run.step.velocity.shape[0]):
        beyond = largest(beyond, beyond_limits(robot, run, k))
        if rows.implicit[k] and run.inputs.drive_limit[k] < math.inf:
            beyond = largest(beyond, is_beyond_drive(robot.state, run, 0, k))
    return beyond


@inlined
def _beyond_actuators(robot: Any, run: Any, equipment: Any) -> Any:
    """More than 0 where an actuator, or the sum of a joint's actuators, exceeds its bounds at the end of the step."""
    state = robot.state
    step = run.step
    h = run.inputs.time_step[0]
    beyond = like(-1.0, robot.data)
    for n in range(equipment.model.dof.shape[0]):
        if equipment.model.implicit[n] == 1 and (
            equipment.model.force_lower[n] > -math.inf or equipment.model.force_upper[n] < math.inf
        ):
            k = equipment.model.dof[n]
            gear = equipment.model.gear[n]
            force = force_over_step(
                equipment.data.constant[n],
                equipment.model.stiffness[n],
                equipment.model.damping[n],
                gear * coordinate(robot.model, state.qpos, k),
                step.share[k],
                gear * state.qvel[k],
                gear * step.velocity[k],
                h,
            )
            beyond = largest(beyond, is_beyond(force, equipment.model.force_lower[n], equipment.model.force_upper[n]))
    for k in range(step.velocity.shape[0]):
        if equipment.model.dof_implicit[k] == 1 and (
            equipment.model.dof_lower[k] > -math.inf or equipment.model.dof_upper[k] < math.inf
        ):
            force = actuator_force(equipment, k, felt_at(robot, run, k), step.velocity[k])
            beyond = largest(beyond, is_beyond(force, equipment.model.dof_lower[k], equipment.model.dof_upper[k]))
    return beyond
