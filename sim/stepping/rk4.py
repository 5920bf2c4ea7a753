"""Classical Runge-Kutta method of order 4 for free motion: all forces explicit, couplings exact or as rows.

The method has no unilateral rows: a run that meets a limit stops. Rotations are integrated on the group (Munthe-Kaas
1999).
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand, expand_velocity, reduce_matrix, reduce_vector
from artsim.sim.articulation.integrators import inverse_tangent, move
from artsim.sim.articulation.kinematics import kinematics, world_inertia
from artsim.sim.articulation.model import D_MAX, D_MIN, Model
from artsim.sim.articulation.state import RobotBundle, State, Workspace
from artsim.sim.constraints.coupling_rows import coupling_rate, coupling_slope, reference_of
from artsim.sim.constraints.impedance import impedance, slowest
from artsim.sim.constraints.kinds import COUPLING_ROW
from artsim.sim.constraints.limit_rows import ball_rotation, is_cone
from artsim.sim.constraints.loop_rows import clear_loop_forces, hold_loops, note_loop_forces, note_loop_gaps
from artsim.sim.constraints.row import add_entry, drift_of, single_row
from artsim.sim.constraints.tendon_rows import (
    broken_side,
    hold_tendons,
    note_tendon_errors,
    note_tendon_forces,
    spring_tendons,
)
from artsim.sim.constraints.turn_limit_rows import is_turned_beyond
from artsim.sim.equipment.actuation import actuator_force, coordinate, drive_force, find_places
from artsim.sim.equipment.actuators import advance_activations
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.forces import equipment_forces
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    CONTROL_ROW,
    END,
    INEQUALITY,
    ITERATIONS,
    LAG,
    RECORD,
    RESIDUAL,
    ROWS_RECORDED,
    RUNNING,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    STOP_DOF,
    STOP_REASON,
    WATCH,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.run_data.scratch import SOLVE, SolverBundle
from artsim.sim.solvers.calls import ask
from artsim.sim.stepping.assembly import add_constraint_forces
from artsim.sim.stepping.booking import settle
from artsim.sim.stepping.controller import applied_forces
from artsim.sim.stepping.step import begin, choose_controls, is_finite, run_beside
from artsim.sim.stepping.system import bare_system
from artsim.sim.stepping.work import add_stage_work, book_work, is_due


@njit
def simulate_rk4(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: None,
    rules: None,
    solver: SolverBundle,
) -> None:
    """Take the block's steps as step.simulate does; a recorded row holds the first stage's acceleration and forces."""
    model, state = robot.model, robot.state
    step, block = run.step, run.block
    begin(robot, run, equipment, rules)
    step.account[LAG] = 0.0
    for taken in range(block.plan[STEPS_TO_TAKE]):
        if taken == 0 and not _inside(robot, step, equipment):
            break  # the first step may end within a limit that it starts beyond, without the limit's force
        if is_due(step):
            run_beside(step, WATCH)
        choose_controls(run)
        rows.report[ITERATIONS] = 0.0
        rows.report[RESIDUAL] = 0.0
        if equipment is not None:
            equipment.data.stage[0] = 0.0
        _stage(robot, state.qpos, state.qvel, run, rows, equipment, solver, state.activation)
        add_stage_work(step, equipment, state.qvel, True, run.inputs.time_step[0] / 6.0)
        if not is_finite(model, step):
            break
        if equipment is not None and connected(equipment.data.feeler):
            run_entry(equipment.data.feeler)
        recorded = 1 if step.counters[STEP_NUMBER] % block.plan[STEPS_PER_ROW] == 0 else 0
        if recorded:
            run_beside(step, RECORD)
        if equipment is not None:
            note_loop_gaps(model, robot.data, step, equipment)
        _finish(robot, run, rows, equipment, solver)
        book_work(run, rows)
        if step.counters[STOP_REASON] != RUNNING:
            step.counters[ROWS_RECORDED] -= recorded  # a step that was not taken has no row
            break
        if equipment is not None and connected(equipment.data.keeper):
            run_entry(equipment.data.keeper)
        step.counters[STEP_NUMBER] += 1
    run_beside(step, END)


@njit
def _stage(
    robot: RobotBundle,
    q: Reals1,
    v: Reals1,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    solver: SolverBundle,
    activation: Reals1,
) -> None:
    """Set step.qacc (nv,), step.next = u̇ (nu,) and the forces at (q, v), all explicit, with equality rows as
    constraints."""
    model, data = robot.model, robot.data
    inputs, step = run.inputs, run.step
    expand(model, q, v, data)
    kinematics(model, q, data)
    world_inertia(model, data)
    if equipment is not None:
        equipment_forces(robot, q, v, run, equipment, activation, 1)
    applied_forces(robot, q, v, run, equipment, 0.0)
    for k in range(step.stiffness.shape[0]):
        step.stiffness[k] = inputs.drive_stiffness[k]
        step.damping[k] = inputs.drive_damping[k]
    bare_system(model, q, v, data, run, equipment, solver)
    row = step.counters[CONTROL_ROW]
    find_places(model, q, run, row)
    for k in range(step.force.shape[0]):
        place = coordinate(model, q, k)
        drive = drive_force(run, row, k, step.place[k], v[k])
        step.drive[k] = min(max(drive, -inputs.drive_limit[k]), inputs.drive_limit[k])
        step.passive[k] = -model.damping[k] * v[k] - model.stiffness[k] * (place - model.spring_reference[k])
        step.coupling[k] = 0.0
        step.limit[k] = 0.0
        step.loop[k] = 0.0
        step.tendon[k] = 0.0
        step.contact[k] = 0.0
        if equipment is not None:
            step.drive[k] += actuator_force(equipment, k, place, v[k])
            step.passive[k] += equipment.data.passive[k]
            step.tendon[k] = equipment.data.tendon[k]
        step.diagonal[k] = 0.0
        step.force[k] = step.applied[k] + step.drive[k] + step.passive[k] + step.tendon[k] - data.bias[k]
    _spring_couplings(model, q, v, step)
    if equipment is not None:
        clear_loop_forces(equipment)
        spring_tendons(equipment, step)
    for k in range(step.force.shape[0]):
        step.force[k] += step.coupling[k]
    reduce_matrix(model, data, step.diagonal)
    reduce_vector(model, step.force, data, step.free)
    for a in range(step.next.shape[0]):
        step.next[a] = 0.0
    _hold(model, q, v, data, run, rows, equipment)
    ask(solver.call, SOLVE)
    add_constraint_forces(rows, step, 1.0)
    if equipment is not None:
        note_loop_forces(rows, equipment, 1.0)
        note_tendon_forces(rows, equipment, 1.0, True)
    expand_velocity(model, step.next, data, step.qacc)
    for k in range(step.qacc.shape[0]):
        step.qacc[k] += data.drift[k]


@njit
def _spring_couplings(model: Model, q: Reals1, v: Reals1, step: Step) -> None:
    """step.coupling of the compliant coupling rows, as explicit springs."""
    for c in range(model.row_follower.shape[0]):
        if model.row_frequency[c] > 0.0 and model.row_impedance[c, D_MIN] < 0.0 and step.effective_coupling[c] > 0.0:
            follower = model.row_follower[c]
            leader = model.row_leader[c]
            x = q[model.dof_coord[leader]] if leader >= 0 else 0.0
            value, slope, _ = coupling_slope(model, c, x)
            K, B = reference_of(model, c)
            error = q[model.dof_coord[follower]] - value
            force = -(K * error + B * coupling_rate(model, v, c, slope)) / step.effective_coupling[c]
            step.coupling[follower] += force
            if leader >= 0:
                step.coupling[leader] -= slope * force


@njit
def _hold(
    model: Model, q: Reals1, v: Reals1, data: Workspace, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None
) -> None:
    """Constrain accelerations by the equality rows, with Baumgarte stabilisation (CS 599, scribe notes, 2011): C̈ + 2 a
    Ċ + a² C = 0, a = 0.1 / h.
    """
    inputs = run.inputs
    a = 0.1 / inputs.time_step[0]
    rows.number[ALL_ROWS] = 0
    _hold_couplings(model, q, v, data, run, rows, a)
    if equipment is not None:
        hold_loops(model, v, data, run, rows, equipment, a)
        hold_tendons(model, v, data, inputs, rows, equipment, a)


@njit
def _hold_couplings(model: Model, q: Reals1, v: Reals1, data: Workspace, run: RunBundle, rows: Rows, a: float) -> None:
    """The rows of hard couplings, and of compliant ones of MuJoCo's kind."""
    h = run.inputs.time_step[0]
    for c in range(model.row_follower.shape[0]):
        if model.row_frequency[c] > 0.0 and model.row_impedance[c, D_MIN] < 0.0:
            continue
        follower = model.row_follower[c]
        leader = model.row_leader[c]
        x = q[model.dof_coord[leader]] if leader >= 0 else 0.0
        value, slope, bend = coupling_slope(model, c, x)
        n = single_row(model, data, rows, COUPLING_ROW, follower, 1.0)
        if leader >= 0:
            add_entry(model, data, rows, leader, -slope)
        error = q[model.dof_coord[follower]] - value
        rate = coupling_rate(model, v, c, slope)
        drift = drift_of(data, rows, n)
        if model.row_frequency[c] > 0.0:
            K, B = reference_of(model, c)
            d = impedance(model.row_impedance, c, abs(error))
            most = slowest(h, B, model.row_impedance[c, D_MAX])
            rows.bias[n] = drift + most * B * rate + most * most * d * K * error
            rows.cfm[n] = run.step.effective_coupling[c] * (1.0 - d) / d
        else:
            speed = v[leader] if leader >= 0 else 0.0
            rows.bias[n] = drift - bend * speed * speed + 2.0 * a * rate + a * a * error


@njit
def _finish(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, solver: SolverBundle
) -> None:
    """Take stages two to four and advance the state to the end of the step (Munthe-Kaas 1999 for the rotations).

    Stage one's acceleration is in step.qacc. A limit that the step would violate stops the run: RK4 has no rows for it.
    """
    model, state = robot.model, robot.state
    step = run.step
    keep_start(state, step)
    if equipment is not None:
        _keep_equipment(state, equipment)
    for stage in range(1, 4):
        _take_stage(robot, run, rows, equipment, solver, stage)
    advance_state(robot, run)
    if equipment is not None:
        _advance_equipment(robot, run, equipment)
    settle(robot, step)
    if equipment is not None:
        note_tendon_errors(robot, step, equipment)
    for a in range(step.next.shape[0]):
        step.next[a] = state.qvel[model.independent_dof[a]]
    if not is_finite(model, step) or not _inside(robot, step, equipment):
        for n in range(step.start_qpos.shape[0]):
            state.qpos[n] = step.start_qpos[n]
        for k in range(step.qacc.shape[0]):
            state.qvel[k] = step.start_qvel[k]
        if equipment is not None:
            for n in range(state.activation.shape[0]):
                state.activation[n] = equipment.data.start_activation[n]


@njit
def keep_start(state: State, step: Step) -> None:
    """Keep the state before the step, and start the sums with the first stage; in both widths."""
    for n in range(step.start_qpos.shape[0]):
        step.start_qpos[n] = state.qpos[n]
    for k in range(step.qacc.shape[0]):
        step.start_qvel[k] = state.qvel[k]
        step.tangent[k] = state.qvel[k]
        step.sum_velocity[k] = state.qvel[k]
        step.sum_acceleration[k] = step.qacc[k]


@njit
def _keep_equipment(state: State, equipment: EquipmentBundle) -> None:
    """Keep activations, lengths and their rates before the step, and start the sum of the activations' rates."""
    for n in range(state.activation.shape[0]):
        equipment.data.start_activation[n] = state.activation[n]
        equipment.data.sum_activation[n] = equipment.data.activation_rate[n]
    for n in range(equipment.data.start_length.shape[0]):
        equipment.data.start_length[n] = equipment.data.actuator_length[n]
        equipment.data.start_velocity[n] = equipment.data.actuator_velocity[n]


@njit
def _take_stage(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, solver: SolverBundle, stage: int
) -> None:
    """Evaluate one of the later stages, from the slopes of the one before, and add it to the sums."""
    state, step = robot.state, run.step
    h = run.inputs.time_step[0]
    ahead, weight = begin_stage(robot.model, step, h, stage)
    if equipment is not None:
        equipment.data.stage[0] = ahead / h
        for n in range(state.activation.shape[0]):
            state.activation[n] = equipment.data.start_activation[n] + ahead * equipment.data.activation_rate[n]
    _stage(robot, step.stage_qpos, step.stage_qvel, run, rows, equipment, solver, state.activation)
    add_stage_work(step, equipment, step.stage_qvel, False, weight * h / 6.0)
    if equipment is not None:
        for n in range(state.activation.shape[0]):
            equipment.data.sum_activation[n] += weight * equipment.data.activation_rate[n]
    end_stage(robot.model, step, weight)


@njit
def begin_stage(model: Model, step: Step, h: float, stage: int) -> tuple[float, float]:
    """Set step.stage_qpos and stage_qvel of a later stage, from the slopes of the one before; its time from the start
    of the step [s] and its weight. In both widths.
    """
    ahead = h if stage == 3 else 0.5 * h
    weight = 1.0 if stage == 3 else 2.0
    for n in range(step.start_qpos.shape[0]):
        step.stage_qpos[n] = step.start_qpos[n]
    move(model, step.stage_qpos, step.tangent, ahead)
    for k in range(step.qacc.shape[0]):
        step.tangent[k] = ahead * step.tangent[k]  # the rotation vector of this stage
        step.stage_qvel[k] = step.start_qvel[k] + ahead * step.qacc[k]
    return ahead, weight


@njit
def end_stage(model: Model, step: Step, weight: float) -> None:
    """Add the slopes of a stage to the sums; in both widths."""
    for k in range(step.qacc.shape[0]):
        step.velocity[k] = step.stage_qvel[k]
    inverse_tangent(model, step.tangent, step.velocity)
    for k in range(step.qacc.shape[0]):
        step.tangent[k] = step.velocity[k]
        step.sum_velocity[k] += weight * step.velocity[k]
        step.sum_acceleration[k] += weight * step.qacc[k]


@njit
def advance_state(robot: RobotBundle, run: RunBundle) -> None:
    """Set coordinates and velocities at the end of the step, of the sums of the stages; in both widths."""
    state, step = robot.state, run.step
    h = run.inputs.time_step[0]
    for k in range(step.qacc.shape[0]):
        step.sum_velocity[k] = step.sum_velocity[k] / 6.0
        state.qvel[k] = step.start_qvel[k] + h * step.sum_acceleration[k] / 6.0
    move(robot.model, state.qpos, step.sum_velocity, h)


@njit
def _advance_equipment(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Set the activations at the end of the step, of the sums of the stages."""
    state = robot.state
    for n in range(state.activation.shape[0]):
        state.activation[n] = equipment.data.start_activation[n]
        equipment.data.activation_rate[n] = equipment.data.sum_activation[n] / 6.0
    # exactly integrated activations advance with the values at the step's start, as in MuJoCo
    for n in range(equipment.data.start_length.shape[0]):
        equipment.data.actuator_length[n] = equipment.data.start_length[n]
        equipment.data.actuator_velocity[n] = equipment.data.start_velocity[n]
    advance_activations(equipment, run.inputs.time_step[0], state.activation)


@njit
def _inside(robot: RobotBundle, step: Step, equipment: EquipmentBundle | None) -> bool:
    """True if all coordinates and tendons are within their limits; if not, step.counters hold the reason and the dof
    (nv + t for tendon t).
    """
    model, state = robot.model, robot.state
    for k in range(state.qvel.shape[0]):
        c = model.dof_coord[k]
        if c >= 0 and (state.qpos[c] < model.lower[k] - 1e-9 or state.qpos[c] > model.upper[k] + 1e-9):
            step.counters[STOP_REASON] = INEQUALITY
            step.counters[STOP_DOF] = k
            return False
        if is_cone(model, k):
            _, _, _, angle = ball_rotation(model, state.qpos, k)
            if angle > model.upper[k] + 1e-9:
                step.counters[STOP_REASON] = INEQUALITY
                step.counters[STOP_DOF] = k
                return False
        if model.dof_turn[k] >= 0 and is_turned_beyond(model, state.qpos, k, 1e-9):
            step.counters[STOP_REASON] = INEQUALITY
            step.counters[STOP_DOF] = k
            return False
    if equipment is not None:
        return _tendons_inside(robot, step, equipment)
    return True


@njit
def _tendons_inside(robot: RobotBundle, step: Step, equipment: EquipmentBundle) -> bool:
    state = robot.state
    limited = False
    for t in range(equipment.model.tendon_lower.shape[0]):
        limited = limited or equipment.model.tendon_upper[t] < 1e308 or equipment.model.tendon_lower[t] > -1e308
    if not limited:
        return True
    kinematics(robot.model, state.qpos, robot.data)
    tendon_paths(robot, state.qpos, state.qvel, equipment)
    for t in range(equipment.model.tendon_lower.shape[0]):
        if broken_side(equipment, t, equipment.data.tendon_length[t], 1e-9) != 0:
            step.counters[STOP_REASON] = INEQUALITY
            step.counters[STOP_DOF] = state.qvel.shape[0] + t
            return False
    return True
