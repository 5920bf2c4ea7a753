"""Assembles the constraint rows: one record for every kind, built joint by joint in the PhysX guide's solving order.

Each kind is declared in kinds.py and built in a file of its own. Adding a kind takes a declaration, a builder and its
line in `build_rows`, and a line in `needs_rows` if every step of a robot with this kind needs rows.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.actuator_rows import actuator_rows, has_actuator_rows
from artsim.sim.constraints.axis_rows import axis_row
from artsim.sim.constraints.coupling_rows import coupling_row
from artsim.sim.constraints.drive_rows import drive_row, drives_need_rows
from artsim.sim.constraints.friction_rows import friction_row, has_friction
from artsim.sim.constraints.kinds import (
    LIMITS,
    TAU,
    TAU_CONTACT,
    TAU_COUPLING,
    TAU_DRIVE,
    TAU_LIMIT,
    TAU_LOOP,
    TAU_PASSIVE,
    TAU_TENDON,
)
from artsim.sim.constraints.limit_rows import limit_rows
from artsim.sim.constraints.link_velocity_rows import link_rows
from artsim.sim.constraints.loop_rows import has_loops, loop_rows
from artsim.sim.constraints.row import begin_impulses
from artsim.sim.constraints.tendon_rows import tendon_rows, tendon_spring_rows, tendons_need_rows
from artsim.sim.contact.contact_rows import contact_rows
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.equipment.arrays import EitherEquipment, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.geometry.contacts import EitherContacts
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    LASTING_PLACES,
    LASTING_ROWS,
    PLACES,
    SOLVED_ONCE,
    Inputs,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.pack_rows import contact_rows_in_lanes, keep_rows_in_lanes


@njit
def needs_rows(model: Model, inputs: Inputs, equipment: EquipmentBundle | None, rules: RuleBundle | None) -> bool:
    """True if every step has rows or couplings to eliminate; otherwise a step without rows is tried first.

    Limits and contacts do not count, since a step without rows can find them to be satisfied.
    """
    if model.coupling_follower.shape[0] + model.row_follower.shape[0] + model.axis_dof.shape[0] > 0:
        return True
    if has_friction(model) or drives_need_rows(inputs):
        return True
    if equipment is not None and (has_loops(equipment) or tendons_need_rows(equipment) or has_actuator_rows(equipment)):
        return True
    return rules is not None


@njit
def build_rows(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Build all rows of this step, rows.number of them, with the impulses of the last step, or those of the step's
    previous solution. Needs rows.implicit, motion columns, and the accelerations that the bias leaves.

    The numbers of contact rows and of limits that press change; all other rows and their order stay from step to step.
    A pack has a row where any of its lanes has: it has no effect in the others, so that the order of a lane's rows, and
    with it the rounding of its sums, does not depend on the other lanes.
    """
    if run.lanes is None:
        _build_lasting_rows(robot, run, rows, equipment, rules)
        begin_impulses(robot.state, rows)
        if contact is not None:  # last: the number of contacts changes, and the other rows keep their places
            contact_rows(robot, run, rows, equipment, contact)
        if run.step.retries[SOLVED_ONCE] == 1:
            recall_impulses(rows, 1.0)
    else:
        _build_in_lanes(robot, run, rows, equipment, contact, rules, solver)


@njit
def _build_in_lanes(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: PackContactBundle | None,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Build the rows of a pack, or as many of them as differ from those of the step's previous solution."""
    step, pack = run.step, solver.pack
    outdated = any_positive(step.outdated[0])
    if outdated:
        if any_positive(pack.warm[0]):
            keep_rows_in_lanes(rows, contact)
        _build_lasting_rows(robot, run, rows, equipment, rules)
        begin_impulses(robot.state, rows)
        if any_positive(pack.warm[0]):
            recall_biases(rows, step)
    else:
        rows.number[ALL_ROWS], rows.number[PLACES] = rows.number[LASTING_ROWS], rows.number[LASTING_PLACES]
    if contact is not None:
        contact_rows_in_lanes(robot, run, rows, contact, pack)
    if outdated and any_positive(pack.warm[0]):
        recall_impulses(rows, pack.warm[0])
    step.outdated[0] = zero_like(step.outdated[0])


@njit
def _build_lasting_rows(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EitherEquipment, rules: RuleBundle | None
) -> None:
    """Build the rows of everything but contacts, in both widths.

    A coupling's row comes at the first of its two joints: the guide solves a joint's mimic joint before its drive, and
    the drive may be on the leader as well as on the follower.
    """
    model, state, data = robot.model, robot.state, robot.data
    inputs = run.inputs
    rows.number[ALL_ROWS] = 0
    rows.number[PLACES] = 0
    soft = axes = 0
    for k in range(model.dof_body.shape[0]):
        while soft < model.row_follower.shape[0] and _first_dof(model, soft) == k:
            coupling_row(robot, run, rows, soft)
            soft += 1
        while axes < model.axis_dof.shape[0] and min(model.axis_turn[axes], model.axis_dof[axes]) == k:
            axis_row(robot, run, rows, axes)
            axes += 1
        friction_row(robot, inputs, rows, k)
        drive_row(robot, run, rows, k)
        limit_rows(robot, run, rows, k)
    if equipment is not None:
        actuator_rows(model, data, inputs, rows, equipment)
        tendon_rows(robot, run, rows, equipment)
        loop_rows(model, state.qvel, data, run, rows, equipment, run.step.columns)
    if rules is not None:
        link_rows(model, data, inputs, rows, rules)
    if equipment is not None:
        tendon_spring_rows(model, data, inputs, rows, equipment)  # present in some steps only


@njit
def keep_impulses(rows: Rows) -> None:
    """Store the impulses of all rows in rows.previous_impulse, by place; in both widths."""
    for place in range(rows.number[PLACES]):
        rows.previous_impulse[place] = zero_like(rows.previous_impulse[place])
    for n in range(rows.number[ALL_ROWS]):
        rows.previous_impulse[rows.place[n]] = rows.impulse[n]


@njit
def recall_impulses(rows: Rows, chosen: Real) -> None:
    """Set the impulses of rows built anew to those in rows.previous_impulse where `chosen` is 1, in both widths."""
    zero = zero_like(chosen)
    for n in range(rows.number[ALL_ROWS]):
        rows.impulse[n] = where_greater(chosen, zero, rows.previous_impulse[rows.place[n]], rows.impulse[n])


@njit
def recall_biases(rows: Rows, step: Step) -> None:
    """Set the biases and softness of rows built anew, but for those of contacts, to those of before in lanes where they
    are not outdated: they may be aimed or stiffened. Rows that were not there before are not."""
    outdated = step.outdated[0]
    zero = zero_like(outdated)
    for n in range(rows.number[LASTING_ROWS]):
        place = rows.place[n]
        before = where_greater(outdated, zero, zero + math.inf, rows.previous_bias[place])
        known = where_greater(zero + math.inf, before, zero + 1.0, zero)
        rows.bias[n] = where_greater(known, zero, before, rows.bias[n])
        rows.cfm[n] = where_greater(known, zero, rows.previous_cfm[place], rows.cfm[n])
        rows.unaimed[place] = where_greater(known, zero, rows.unaimed[place], rows.bias[n])


@njit
def _first_dof(model: Model, c: int) -> int:
    leader = model.row_leader[c]
    return min(model.row_follower[c], leader) if leader >= 0 else model.row_follower[c]


@njit
def add_constraint_forces(rows: Rows, step: Step, scale: float) -> None:
    """Add `scale` Jᵀ λ of all rows to the step's forces by source."""
    for n in range(rows.number[ALL_ROWS]):
        kind = rows.kind[n]
        for e in range(rows.start[n], rows.start[n + 1]):
            _add_force(kind, rows.entry_dof[e], rows.entry_value[e] * rows.impulse[n] * scale, step)


@njit
def count_limits(rows: Rows, step: Step) -> None:
    """Count this step in step.limit_steps for every dof that is at a limit."""
    counted = -1
    for n in range(rows.number[ALL_ROWS]):
        if LIMITS[rows.kind[n]]:
            k = rows.dof[n]
            if k != counted and rows.impulse[n] > 0.0:  # the rows of one dof are adjacent
                step.limit_steps[k] += 1
                counted = k


@inlined
def _add_force(kind: int, k: int, force: float, step: Step) -> None:
    tau = TAU[kind]  # inside the loop over entries the compiler would fuse their product into the sum
    if tau == TAU_COUPLING:
        step.coupling[k] += force
    elif tau == TAU_PASSIVE:
        step.passive[k] += force
    elif tau == TAU_DRIVE:
        step.drive[k] += force
    elif tau == TAU_LOOP:
        step.loop[k] += force
    elif tau == TAU_TENDON:
        step.tendon[k] += force
    elif tau == TAU_CONTACT:
        step.contact[k] += force
    elif tau == TAU_LIMIT:
        step.limit[k] += force
