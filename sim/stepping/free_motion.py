"""The step of a robot or a pack that only its joints constrain, in O(n).

It is taken wherever nothing is known to call for rows, and stands unless retries.py finds that it violates a limit. It
serves both widths: lanes of a pack take it beside those with rows.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import articulate, articulated_accelerations
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.impedance import is_convex
from artsim.sim.equipment.actuation import damper, implicit_system
from artsim.sim.equipment.arrays import EitherEquipment
from artsim.sim.equipment.drives import bound_drives
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, where_greater
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.geometry.contacts import CONTACTS, EitherContacts
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.phases import SYSTEM
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    FREE_STEPS_POSSIBLE,
    INERTIAS,
    LASTING_ROWS,
    WEIGHED,
    WITHOUT_ROWS,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.lane_calls import choose_lanes, keep_what_stands
from artsim.sim.stepping.system import set_end_velocities


@njit
def holds_without_rows(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    solver: SolverBundle,
) -> bool:
    """Take the step without rows where nothing calls for them; True if no rows are to be solved. In a pack its
    velocities are then in solver.pack.free, for the lanes that are not solved."""
    step = run.step
    if is_convex(run.inputs):
        bound_drives(robot, run, rows)
    step.bound[0] = _calls_for_rows(robot, run, equipment, contact)
    left = like(1.0, robot.data)
    if solver.pack is not None:
        choose_lanes(step, solver.pack, run.lanes.data.alive)
        if contact is not None:
            solver.pack.yields[0] = contact.lanes.yielding[0]
        left = left - solver.pack.done[0]
    if any_positive((1.0 - step.bound[0]) * left):
        free_step(robot, run, rows, equipment)
        if solver.pack is not None:
            for a in range(step.next.shape[0]):
                solver.pack.free[a] = step.next[a]
    bound = any_positive(step.bound[0] * left)
    step.retries[WITHOUT_ROWS] = 0
    if solver.pack is not None:
        if not bound:
            keep_what_stands(step, solver.pack)
            set_end_velocities(robot.model, robot.data, run)
    elif not bound:
        rows.number[ALL_ROWS] = rows.number[LASTING_ROWS] = 0
        step.retries[WITHOUT_ROWS] = 1
        mark(run.clock, SYSTEM)
    return not bound


@njit
def _calls_for_rows(robot: RobotBundle, run: RunBundle, equipment: EitherEquipment, contact: EitherContacts) -> Real:
    """1 where the step has rows: the robot has some in all steps, shapes touch, limits press or pressed in the last
    step, drives do not settle, or springs of tendons are too stiff to be explicit."""
    state, step = robot.state, run.step
    zero = like(0.0, robot.data)
    if step.counters[FREE_STEPS_POSSIBLE] == 0:
        return zero + 1.0
    bound = largest(step.drive_rows[0], step.ball_rows[0])
    for n in range(state.impulse.shape[0]):  # of limits, since no other rows were there but those of contacts
        bound = where_greater(state.impulse[n], zero, zero + 1.0, bound)
    for k in range(step.pressed.shape[0]):
        for side in range(step.pressed.shape[1]):
            bound = largest(bound, step.pressed[k, side])
    if equipment is not None:
        bound = largest(bound, equipment.data.tendon_by_row[0])
    if contact is not None:
        bound = largest(bound, _touches(robot, run, contact))
    return bound


@inlined
def _touches(robot: RobotBundle, run: RunBundle, contact: EitherContacts) -> Real:
    """1 where there are contacts, touching or speculative."""
    if run.lanes is not None:
        return contact.lanes.touching[0]
    return like(1.0 if contact.data.number[CONTACTS] > 0 else 0.0, robot.data)


@njit
def free_step(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EitherEquipment) -> None:
    """Take the step without rows by the articulated-body algorithm in O(n) (Featherstone 2008, ch. 7).

    A further call in the same step reuses the articulated inertias wherever M̂'s implicit terms have not changed.
    """
    model = robot.model
    step = run.step
    h = run.inputs.time_step[0]
    implicit_system(robot, run, rows, equipment)
    for k in range(step.diagonal.shape[0]):
        if is_convex(run.inputs):  # without rows, dampers act as well at once
            step.diagonal[k] = h * damper(model, run, rows, equipment, k)
        step.diagonal[k] += model.armature[k]
    articulate(model, step.diagonal, robot.data, step.counters[WEIGHED] & INERTIAS != 0)
    step.counters[WEIGHED] |= INERTIAS
    articulated_accelerations(model, step.middle, step.force, robot.data, step.qacc)
    for k in range(step.qacc.shape[0]):
        step.velocity[k] = robot.state.qvel[k] + h * step.qacc[k]
        step.next[k] = step.velocity[k]
