"""Books a solved step: joint forces by source, the state at its end, and the warm start of the next step."""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand, reduce_vector
from artsim.sim.articulation.dynamics import inverse_dynamics
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import kinematics, like, velocities
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.axis_rows import axis_error
from artsim.sim.constraints.coupling_rows import coupling_error
from artsim.sim.constraints.drive_rows import keep_drives
from artsim.sim.constraints.loop_rows import clear_loop_forces, note_loop_forces
from artsim.sim.constraints.row import TOLD, hand_on_impulses
from artsim.sim.constraints.tendon_rows import note_tendon_errors, note_tendon_forces
from artsim.sim.contact.contact_rows import note_contact_forces
from artsim.sim.contact.detection import remember
from artsim.sim.equipment.actuation import (
    actuator_force,
    drive_force,
    driven_at,
    felt_at,
    part_of_matrix,
    passive_forces,
)
from artsim.sim.equipment.actuators import advance_activations
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import any_positive, sqrt, where_greater
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.foundation.vec3 import dot
from artsim.sim.geometry.contacts import ContactBundle, EitherContacts
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    AT_REST,
    BETA,
    CONTROL_ROW,
    EVALUATION,
    IMPLICITFAST,
    NOT_CONVEX,
    ONCE,
    RESIDUAL,
    RUNGE_KUTTA,
    STIFFENED,
    TAUT,
    UNSOLVED_STEPS,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.solvers.calls import moves_by_mean, sweeps_rows
from artsim.sim.stepping.assembly import add_constraint_forces, count_limits
from artsim.sim.stepping.lane_booking import end_step_in_lanes, remember_in_lanes, stop_trees_in_lanes
from artsim.sim.stepping.link_damping import link_damping_forces
from artsim.sim.stepping.midpoint import book_midpoint, note_changes, stiffened
from artsim.sim.stepping.sleeping import count_still, stay_asleep
from artsim.sim.stepping.work import add_pull_work, find_work, note_lag


@njit
def book_forces(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: ContactBundle | None,
    rules: RuleBundle | None,
) -> None:
    """Book the joint forces by source and qacc from the velocities found."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    h = run.inputs.time_step[0]
    step.worst_residual[0] = max(step.worst_residual[0], rows.report[RESIDUAL])
    step.yielded[UNSOLVED_STEPS] += 1.0 if rows.report[RESIDUAL] > TOLD else 0.0
    passive_forces(robot, run)
    if rules is not None:
        link_damping_forces(model, step.velocity, data, rules)
        velocities(model, state.qvel, data)
    for k in range(step.velocity.shape[0]):
        v = step.velocity[k]
        step.drive[k] = 0.0
        step.limit[k] = 0.0
        step.coupling[k] = 0.0
        step.loop[k] = 0.0
        step.tendon[k] = 0.0
        step.contact[k] = 0.0
        q = felt_at(robot, run, k)
        if part_of_matrix(run, rows, k) > 0.0:
            driven = driven_at(state, run, k)
            step.drive[k] = drive_force(run, step.counters[CONTROL_ROW], k, driven, v)
        if equipment is not None:
            law = run.inputs.convex[0]
            felt = v if law == NOT_CONVEX or law == IMPLICITFAST else state.qvel[k]  # by dampers of actuators
            step.drive[k] += actuator_force(equipment, k, q, felt)
            step.passive[k] += equipment.data.passive[k]
            step.tendon[k] = equipment.data.tendon[k]
        if rules is not None:
            step.passive[k] += rules.data.force[k]
        step.qacc[k] = (v - state.qvel[k]) / h
    add_constraint_forces(rows, step, 1.0 / h)
    whole = run.inputs.convex[0] != RUNGE_KUTTA  # else the stages' works are weighed (stages.py)
    if whole:
        find_work(robot, run, equipment)
    if step.counters[EVALUATION] == STIFFENED:  # AGAIN is booked where it is recorded
        step.retries[TAUT] = 1
        book_midpoint(model, state.qvel, data, step)
    if equipment is not None:
        clear_loop_forces(equipment)
        note_loop_forces(rows, equipment, 1.0 / h)
        note_tendon_forces(rows, equipment, 1.0 / h, False)
    if contact is not None:
        note_contact_forces(rows, step, contact, 1.0 / h)
        if whole:
            add_pull_work(robot, run, contact)


@njit
def rest(robot: RobotBundle, step: Step) -> None:
    """Balance the forces of a sleeping robot: the remainder of the forces of a step from rest is booked as passive."""
    model, state, data = robot.model, robot.state, robot.data
    step.counters[AT_REST] = 1
    step.counters[EVALUATION] = ONCE
    for n in range(state.impulse.shape[0]):
        state.impulse[n] = 0.0
    for k in range(step.qacc.shape[0]):
        step.qacc[k] = 0.0
    inverse_dynamics(model, state.qvel, step.qacc, data, step.force)
    for k in range(step.force.shape[0]):
        step.force[k] -= step.applied[k] + step.drive[k] + step.passive[k] + step.coupling[k]
        step.force[k] -= step.limit[k] + step.loop[k] + step.tendon[k] + step.contact[k]
    reduce_vector(model, step.force, data, step.free)
    for a in range(step.free.shape[0]):
        step.passive[model.independent_dof[a]] += step.free[a]


@njit
def move_on(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: EitherContacts,
    solver: SolverBundle,
) -> None:
    """Advance the state to the end of the step: x⁺ = x + h (β v⁺ + (1 - β) v), β = 1 unless --scheme-beta is given."""
    state = robot.state
    inputs, step = run.inputs, run.step
    hand_on_impulses(state, rows)
    if contact is not None:
        if run.lanes is not None:
            remember_in_lanes(robot, run, rows, contact)
        else:
            remember(state, rows, contact)
    keep_drives(state, step, rows)
    note_load(robot, run)
    if run.lanes is not None:
        set_end_velocity(robot, run, stiffened(robot.data))
    else:
        count_limits(rows, step)
        note_lag(run, rows)
        set_end_velocity(robot, run, float(step.retries[TAUT]))
        if (
            sweeps_rows(solver)
            and moves_by_mean(inputs)
            and rows.number[ALL_ROWS] > 0
            and not inputs.scheme[BETA] < 1.0
        ):
            for k in range(step.tangent.shape[0]):
                step.tangent[k] = solver.call.mean[k]
    if contact is not None:
        _stop_trees(robot, run, contact)
    move(robot.model, state.qpos, step.tangent, inputs.time_step[0])
    settle(robot, run)
    if equipment is not None:
        for n in range(state.activation.shape[0]):
            equipment.data.start_activation[n] = state.activation[n]
        if run.lanes is not None:
            for n in range(state.activation.shape[0]):
                state.activation[n] = equipment.data.next_activation[n]
        else:
            advance_activations(equipment, inputs.time_step[0], state.activation)


@njit
def set_end_velocity(robot: RobotBundle, run: RunBundle, taut: Real) -> None:
    """Set state.qvel to the velocities found, and step.tangent to those by which positions move, in both widths; `taut`
    as for note_changes."""
    state, step, beta = robot.state, run.step, run.inputs.scheme[BETA]
    if beta < 1.0:
        for k in range(step.tangent.shape[0]):
            step.tangent[k] = beta * step.velocity[k] + (1.0 - beta) * state.qvel[k]
    note_changes(state, step, taut)
    for a in range(step.next.shape[0]):
        state.qvel[robot.model.independent_dof[a]] = step.next[a]
    if not beta < 1.0 and run.inputs.convex[0] != RUNGE_KUTTA:
        for k in range(step.tangent.shape[0]):
            step.tangent[k] = state.qvel[k]


@njit
def end_step(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """End a step of any integrator: count slow steps, after which a robot falls asleep, and note errors of tendons."""
    if run.lanes is not None:
        if any_positive(run.step.asleep[0]):
            stay_asleep(robot.state, run, equipment)
        count_still(robot, run, equipment)
        end_step_in_lanes(robot, run)
        return
    count_still(robot, run, equipment)
    if equipment is not None:
        note_tendon_errors(robot, run.step, equipment)  # leaves `data` at the end of the step


@njit
def _stop_trees(robot: RobotBundle, run: RunBundle, contact: EitherContacts) -> None:
    """Set step.tangent so that trees stop where they meet something, under the continuous check."""
    if run.lanes is not None:
        if contact.sweep is not None:
            stop_trees_in_lanes(robot, run, contact)
    elif connected(contact.data.advancement):
        run_entry(contact.data.advancement)
        kinematics(robot.model, robot.state.qpos, robot.data)
        velocities(robot.model, robot.state.qvel, robot.data)


@njit
def note_load(robot: RobotBundle, run: RunBundle) -> None:
    """Set state.load for this step where friction depends on it, in robots that are awake: the magnitude of the force
    through the joint, |F| for linear dofs and √(|F|² + |T|²) for angular ones; in both widths.
    """
    model, state, data, step = robot.model, robot.state, robot.data, run.step
    wanted = False
    for k in range(state.load.shape[0]):
        if any_positive(model.friction_coefficient[k]):
            wanted = True
    if not wanted:
        return
    if run.lanes is not None:
        for k in range(step.qacc.shape[0]):
            step.qacc[k] = (step.velocity[k] - state.qvel[k]) / run.inputs.time_step[0]
    inverse_dynamics(model, state.qvel, step.qacc, data, step.force)
    zero = like(0.0, data)
    for k in range(state.load.shape[0]):
        body = model.dof_body[k]
        square = dot(data.force[body], data.force[body])
        if not model.dof_linear[k]:
            square += dot(data.torque[body], data.torque[body])
        state.load[k] = where_greater(step.asleep[0], zero, state.load[k], sqrt(square))


@njit
def settle(robot: RobotBundle, run: RunBundle) -> None:
    """Set followers from their leaders, and measure the remaining coupling error of a single robot."""
    model, state, step = robot.model, robot.state, run.step
    expand(model, state.qpos, state.qvel, robot.data)
    if run.lanes is None:
        for c in range(model.row_follower.shape[0]):
            step.coupling_error[0] = max(step.coupling_error[0], abs(coupling_error(model, state.qpos, c)))
        for c in range(model.axis_dof.shape[0]):
            step.coupling_error[0] = max(step.coupling_error[0], abs(axis_error(model, state.qpos, c)))
