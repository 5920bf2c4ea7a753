"""The step as the book has it, for one robot and for packs: kinematics, forces, contacts, M̂ and bias, rows, solver."""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import kinematics, world_inertia
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.impedance import is_convex
from artsim.sim.contact.detection import find_contacts
from artsim.sim.contact.pack_detection import find_in_lanes
from artsim.sim.equipment.actuation import find_places
from artsim.sim.equipment.arrays import EitherEquipment
from artsim.sim.equipment.drives import begin_drives
from artsim.sim.equipment.forces import equipment_forces
from artsim.sim.foundation.jit import njit
from artsim.sim.geometry.contacts import EitherContacts
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.phases import BROAD_PHASE, FORCES
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    CONTROL_ROW,
    CROWDED,
    LASTING_ROWS,
    NON_FINITE,
    SEARCHES,
    STOP_DOF,
    STOP_REASON,
    WEIGHED,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.controller import applied_forces
from artsim.sim.stepping.convex_step import damp_velocities
from artsim.sim.stepping.free_motion import holds_without_rows
from artsim.sim.stepping.lane_equipment import exert
from artsim.sim.stepping.retries import (
    FROM_BIAS,
    FROM_TARGETS,
    SOLVED,
    look_again,
    solve_again,
    start_search,
)
from artsim.sim.stepping.system import find_velocities, set_bias, set_rows, set_system


@njit
def solve_step(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Find the velocities v⁺ at the end of the step and the forces that lead there, by semi-implicit Euler (Stewart and
    Trinkle 1996): M (v⁺ - v) = h (τ - b) + Jᵀ λ, with J v⁺ + bias + cfm λ complementary to λ in its bounds or cone.

    A pack takes the same stages, all lanes at once.
    """
    place(robot)
    run.step.counters[WEIGHED] = 0
    rows.number[ALL_ROWS] = rows.number[LASTING_ROWS] = 0
    find_forces(robot, run, equipment)
    if contact is not None and not look_for_contacts(robot, run, contact):
        return
    start_search(robot, run, rows, equipment, contact, rules, solver)
    stage = FROM_BIAS
    while stage != SOLVED:
        if stage == FROM_TARGETS:
            solve_again(robot, run, solver)
        elif not holds_without_rows(robot, run, rows, equipment, contact, solver):
            if stage == FROM_BIAS:
                set_bias(robot, run, rows, equipment, contact, rules, solver)
            set_system(robot, run, rows, equipment, rules, solver)
            set_rows(robot, run, rows, equipment, contact, rules, solver)
            find_velocities(robot, run, rows, solver)
        stage = look_again(robot, run, rows, equipment, contact, rules, solver)
    if is_convex(run.inputs):
        damp_velocities(robot, run, rows, equipment, solver)


@njit
def place(robot: RobotBundle) -> None:
    """Forward kinematics: poses of bodies, and their inertias in world axes."""
    kinematics(robot.model, robot.state.qpos, robot.data)
    world_inertia(robot.model, robot.data)


@njit
def find_forces(robot: RobotBundle, run: RunBundle, equipment: EitherEquipment) -> None:
    """Set the forces at the state, applied and of controllers and equipment, and the targets of drives."""
    state, step = robot.state, run.step
    find_places(robot.model, state.qpos, run, step.counters[CONTROL_ROW])
    begin_drives(state, run)
    if equipment is not None:
        if run.lanes is not None:
            exert(robot, run, equipment)
        else:
            equipment_forces(robot, state.qpos, state.qvel, run, equipment, state.activation, 0)
    applied_forces(robot, state.qpos, state.qvel, run, equipment, run.inputs.time_step[0])
    mark(run.clock, FORCES)


@njit
def look_for_contacts(robot: RobotBundle, run: RunBundle, contact: EitherContacts) -> bool:
    """Detect the step's contacts; False, noted in step.counters, where they exceed the room."""
    if run.lanes is not None:
        found = find_in_lanes(robot, run.inputs, contact, run.lanes.data.alive)
    else:
        run.step.retries[SEARCHES] = 0
        found = find_contacts(robot, run.inputs, contact)
    if not found:
        run.step.counters[STOP_REASON] = CROWDED
    mark(run.clock, BROAD_PHASE)
    return found


@njit
def is_finite(model: Model, step: Step) -> bool:
    """True if all velocities at the end of the step are finite; if not, step.counters hold the reason and the dof."""
    for a in range(step.next.shape[0]):
        if not math.isfinite(step.next[a]):
            step.counters[STOP_REASON] = NON_FINITE
            step.counters[STOP_DOF] = model.independent_dof[a]
            return False
    return True
